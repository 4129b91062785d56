"""Long lists of arrays that become one array: joined some at a time, with gradients.

What a loop has collected (`out.append(h)`, then `np.stack(out)`) would be one program with an
input and a gradient for each iteration, each of which takes torch's compiler milliseconds.
So some of the arrays are joined in a segment, as an iteration is one: all these segments are one
program, and what they give is joined in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from np_compile.tape.node import Break

from .arrays.array import Array

if TYPE_CHECKING:
    from .capture import Capture

_MANY = 32  # arrays that are joined at once, at most
_TOGETHER = range(16, 7, -1)  # of longer lists
_LOOP = Break("loop", "arrays of a long list were joined")
_NEW = frozenset(["array", "asarray"])  # of lists: along a new first axis
# Functions to which a list is the array of its items.
_OF_ARRAY = frozenset(["sum", "mean", "prod", "amax", "amin", "max", "min", "std", "var"])
_JOINS = frozenset(["stack", "concatenate", "vstack", "hstack", "dstack", "column_stack"])
NAMES = _NEW | _OF_ARRAY | _JOINS


def is_long(c: Capture, name: str, args: tuple, kwargs: dict) -> bool:
    """Whether a call, of one of `NAMES`, is made as `call` makes it."""
    items: Any = args[0] if args else None
    if type(items) not in (list, tuple) or len(items) <= _MANY or not c.differentiates():
        return False
    most = {"stack": 2, "concatenate": 2}.get(name, 1)
    if name not in _OF_ARRAY and (len(args) > most or not {"axis"}.issuperset(kwargs)):
        return False
    first = _form(items[0])
    return first is not None and all(_form(a) == first for a in items)


def _form(x: Any) -> tuple | None:
    """What an array, or lists and tuples of arrays, look like; None for all else."""
    if type(x) is Array:
        return None if x._sel is not None else (x.shape, x.dtype)
    if type(x) not in (list, tuple):
        return None
    parts = tuple(map(_form, x))
    return None if None in parts else parts


def call(c: Capture, name: str, args: tuple, kwargs: dict) -> Any:
    """The result of such a call."""
    items, *options = args
    if name in _OF_ARRAY:
        return c.call(name, (c.call("array", (items,), {}), *options), kwargs)
    axis = 0
    if name in ("stack", "concatenate"):
        axis = options[0] if options else kwargs.get("axis", 0)
    elif name in ("dstack", "column_stack"):
        axis = 2 if name == "dstack" else 1
    size = next((n for n in _TOGETHER if len(items) % n == 0), _TOGETHER[0])
    parts = []
    c.cut(_LOOP)
    for k in range(0, len(items), size):
        parts.append(c.call(name, (items[k : k + size], *options), kwargs))
        c.cut(_LOOP)
    if name == "hstack":
        axis = 0 if parts[0].ndim == 1 else 1
    return c.call("concatenate", (parts, axis), {})
