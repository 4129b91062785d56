"""The calls of a recorded segment, made in NumPy.

For the words of an error, to compare times, and where a segment is not worth a compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .infer import value_numbers
from .numpy_names import numpy_function
from .tape import INPUT, Decoder, Segment, picked


def rerun(
    seg: Segment, values: list[Any], invoke: Callable | None = None, live: Any = None
) -> None:
    """Make the calls of a segment.

    values: real arrays by number, to begin with those of inputs; those that the calls give are put
    in their places. invoke: makes a call, `invoke(function, args, kwargs)`. live: numbers of the
    values that are wanted; others go when their last reader has run. None: all are wanted.
    """
    decoder = Decoder(
        values, iter(seg.floats), iter(seg.ints), lambda v, char: np.dtype(char).type(v), complex
    )
    path = seg.node.path()
    last: dict[int, list[int]] = {}  # which values nobody needs after a call
    if live is not None:
        seen = set(live)
        for at in range(len(path) - 1, -1, -1):
            if path[at].key[0] is INPUT:
                continue
            used = {*value_numbers(path[at].key), *(v.index for v in path[at].values)}
            last[at] = [i for i in used if i not in seen]
            seen |= used
    for at, node in enumerate(path):
        if node.key[0] is INPUT:
            continue
        args, kwargs = decoder.call(node.key)
        function = numpy_function(node.key[0])
        made = function(*args, **kwargs) if invoke is None else invoke(function, args, kwargs)
        for value in node.values:
            values[value.index] = picked(made, value.pick)
        del args, kwargs, made
        for i in last.get(at, ()):
            values[i] = None
