"""Tests that others wrote, run against the shim and the compiler: `python -m conformance --help`."""
