"""A program of the loop IR as C."""
