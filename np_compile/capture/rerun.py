"""The calls of a recorded segment, made in NumPy.

For the words of an error, and where a segment is not worth a compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from np_compile.tape.call import Parameter
from np_compile.tape.node import Segment, picked

from .names.numpy_names import numpy_function


def rerun(seg: Segment, values: list[Any], live: Any = None) -> None:
    """Make the calls of a segment.

    values: real arrays by number, to begin with those of inputs; those that the calls give are put
    in their places. live: numbers of the values that are wanted; others go when their last reader
    has run. None: all are wanted.
    """
    parameter = parameters(seg)
    calls = seg.node.calls()
    last: dict[int, list[int]] = {}  # which values nobody needs after a call
    if live is not None:
        seen = set(live)
        for at, (node, call) in reversed(list(enumerate(calls))):
            used = {*call.references(), *(v.index for v in node.values)}
            last[at] = [i for i in used if i not in seen]
            seen |= used
    for at, (node, call) in enumerate(calls):
        args, kwargs = call.evaluate(values, parameter)
        function = numpy_function(call.name)
        try:
            made = function(*args, **kwargs)
        except Exception as e:
            if node.user_line:  # the segment may run at a later line, or as the function ends
                e.add_note(f"  of a call recorded at {node.user_line}")
            raise
        for value in node.values:
            values[value.index] = picked(made, value.pick)
        del args, kwargs, made
        for i in last.get(at, ()):
            values[i] = None


def parameters(seg: Segment) -> Callable[[Parameter], Any]:
    """What gives the number that each parameter of a segment is."""

    def parameter(p: Parameter) -> Any:
        numbers = seg.floats if p.is_float else seg.ints
        if p.kind == "complex":
            return complex(*numbers[p.place : p.place + 2])
        number = numbers[p.place]
        return number if p.kind in ("float", "int", "index") else np.dtype(p.kind).type(number)

    return parameter
