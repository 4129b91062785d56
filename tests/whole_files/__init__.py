"""A whole program in each file, of the kind that people have, and register with `whole`."""

from . import (  # noqa: F401 - register programs
    autodiff,
    circuits,
    codecs,
    embedding,
    finite_elements,
    linear_programs,
    self_consistent,
    statistics,
    trackers,
)
