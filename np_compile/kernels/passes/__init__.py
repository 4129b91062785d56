"""Transformations of a program of the loop IR, one a module; `pipeline` has their order."""
