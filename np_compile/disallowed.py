"""What users keep out of programs: the functions that `disallow_in_graph` was told of."""

from __future__ import annotations

from typing import Any

functions: set[Any] = set()  # the functions themselves
rows: set[str] = set()  # the shim's rows of those that are NumPy's, with the methods and operators


def is_function(f: Any) -> bool:
    """Whether a function is one of them."""
    try:
        return f in functions
    except TypeError:  # it has no hash
        return False


def why(label: str) -> str:
    """The reason of a break, or why a loop is not compiled."""
    return f"{label} is kept out of programs by disallow_in_graph"
