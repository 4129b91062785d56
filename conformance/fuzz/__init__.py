"""Random programs, run plainly and compiled: `python -m conformance fuzz --help`."""

KINDS = ("arrays", "loops", "histories", "idioms", "calls", "sizes")  # modules, each with `program`
