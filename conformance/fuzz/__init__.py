"""Random programs, run plainly and compiled: `python -m conformance fuzz --help`."""

KINDS = ("arrays", "loops", "histories", "idioms")  # modules, each with `program`
