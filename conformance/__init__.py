"""Tests that others wrote, against the shim and the compiler: `python -m conformance --help`."""
