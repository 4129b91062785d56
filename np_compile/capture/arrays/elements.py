"""Elements of arguments, `kernel[i, j]` or `x[0]`, as data of the program.

Python reads an element of host memory at once, and a program takes the number as it takes those
that stand in the source. A call may be kept so as long as the elements are what they were. Once
they are seen to change, or sizes are, reading one is recorded (`Options.elements_are_data`): the
program reads it, whatever it is. Where Python needs such a number after all, in a branch or as a
size, it has it at once, and what is computed of such numbers alone too: NumPy computes it, and
nothing is cut. So it has truth values, which are two objects in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from np_compile import shim
from np_compile.tape.node import Node

from ..names.numpy_names import numpy_function
from ..rerun import parameters
from .array import Array, owner, recorded

if TYPE_CHECKING:
    from ..capture import Capture

_MOST = 200  # elements whose reading is recorded in a call; a loop over more is not for the tape
_ITEM = "ndarray.__getitem__"


def is_element(key: Any, ndim: int) -> bool:
    """Whether an index of an array is that of one element."""
    if type(key) is not tuple:
        return ndim == 1
    return len(key) == ndim and all(type(i) is int for i in key)


def are_recorded(c: Capture, a: Array, count: int) -> bool:
    """Whether reading so many elements of an array is recorded."""
    if not c.elements_are_data or id(owner(a)._np) not in c.known or a.dtype.kind == "b":
        return False
    if c.elements_read + count > _MOST:
        c.elements_are_data = False
        return False
    c.elements_read += count
    return True


def told(c: Capture, seg: Any, value: Any) -> Any:
    """The stand-in of a result; where it is a truth value of elements of arguments alone, that: for
    Python asks for its truth, or whether it is `np.True_`."""
    r = recorded(c, seg, value)
    if not value.scalar or value.dtype.kind != "b":
        return r
    known = value_of(c, r)
    return r if known is None else known


def value_of(c: Capture, a: Array) -> Any:
    """The value of what is computed of elements of arguments alone, in the present segment; None
    for anything else."""
    seg = c.seg
    if a._in_segment is not seg or c.plain or not a._is_scalar():
        return None
    needed = {a._as_number}
    nodes: list[Node] = []
    for node in reversed(seg.node.path()):
        if needed.isdisjoint([v.index for v in node.values]):
            continue
        if not _is_simple(c, node):
            return None
        nodes.append(node)
        if node.call is not None:
            needed.update(node.call.references())
    values: dict[int, Any] = {}
    parameter = parameters(seg)
    with shim.quiet(), np.errstate(all="ignore"):
        for node in reversed(nodes):
            call, value = node.call, node.value
            assert value is not None
            if call is None:
                values[value.index] = seg.values[value.index]._np
                continue
            args, kwargs = call.evaluate(values, parameter)  # type: ignore[arg-type]
            if call.name == _ITEM and value.source is None:
                _note(c, seg.values[next(call.references())], args)
            values[value.index] = numpy_function(call.name)(*args, **kwargs)
    return values[a._as_number]


def _is_simple(c: Capture, node: Node) -> bool:
    """Whether a call takes a part of an argument, or computes of single numbers; or is an
    argument."""
    seg, value, call = c.seg, node.value, node.call
    if value is None or node.mutates:
        return False
    if call is None:
        real = seg.values[value.index]
        return real._written_in is not seg and id(real._np) in c.known
    if value.source is not None:
        return True
    if not value.scalar:
        return False
    used: Iterator[int] = call.references()
    if call.name == _ITEM:
        next(used)
    return all(seg.values[i]._is_scalar() for i in used)


def _note(c: Capture, a: Array, args: list) -> None:
    """Note that Python knows an element of an argument, or of a part of it."""
    watch, real = c.watch, owner(a)._np
    if watch is None:
        return
    if a._base is None:
        watch.reads(real, args[1], alone=True)
    elif not watch.reads_all(real):
        watch.spoil("Python needs the value of an element of a part of an argument")
