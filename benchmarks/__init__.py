"""Benchmarks: NumPy programs run by every contender; `python -m benchmarks --help`."""
