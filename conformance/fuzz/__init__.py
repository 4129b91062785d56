"""Random programs, run plainly and compiled: `python -m conformance fuzz --help`."""

# Modules, each with `program`
KINDS = ("arrays", "loops", "histories", "idioms", "calls", "sizes", "tensors", "mixes", "states",
         "foreign", "algorithms", "sessions", "families")  # fmt: skip
