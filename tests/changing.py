"""Random programs on views at changing indices, which read and write through one another.

A program is a list of steps on a growing list of arrays, some of which are views of others. Its
indices follow from a number k: they are integers and starts of slices that become data of the
compiled program, while all shapes stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .support import Copier

OPERATIONS: dict[str, Callable] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip
VIEWS: dict[str, Callable] = {
    "transposed": lambda x: x.T, "backwards": lambda x: x[::-1], "flat": lambda x: x.reshape(-1),
    "new axis": lambda x: x[..., None], "every other": lambda x: x[..., ::2],
    "diagonal": lambda x: np.diagonal(x) if x.ndim > 1 else x[:],
    "swapped": lambda x: np.swapaxes(x, 0, -1), "halves": lambda x: np.array_split(x, 2)[0],
    "first": lambda x: x[0], "wide": lambda x: np.atleast_2d(x), "raveled": np.ravel,
    "in F's order": lambda x: np.reshape(x, (-1,), order="F"), "whole": lambda x: x[...],
}  # fmt: skip
WRITES: dict[str, Callable] = {
    "fill": lambda x, n: x.fill(n), "sort": lambda x, n: x.sort(), "sum": lambda x, n: np.cumsum(
        x, axis=-1, out=x), "put": lambda x, n: np.put(x, [0, -1], [n, 1]),
    "mask": lambda x, n: x.__setitem__(x > n, 2), "scaled": lambda x, n: x.__imul__(2),
    "where": lambda x, n: np.copyto(x, n, where=x < 0), "clip": lambda x, n: np.clip(x, -n, n, x),
    "add at": lambda x, n: np.add.at(x, [0, -1, 0], n), "rows": lambda x, n: x.__setitem__(
        [0, -1], x[[-1, 0]]), "flat": lambda x, n: x.flat.__setitem__(0, n),
}  # fmt: skip


def index(spec: tuple, k: int) -> tuple:
    """The index of a spec in a run: of each axis (kind, extent, start, length, step)."""
    found: list[Any] = []
    for kind, extent, start, length, step in spec:
        if kind == "integer":
            found.append((start + k) % extent)
        elif kind == "slice":
            room = extent - (length - 1) * abs(step)
            at = (start + k) % room
            if step < 0:
                at = extent - 1 - at
            stop = at + length * step
            found.append(slice(at, stop if stop >= 0 else None, step))
        else:
            found.append({"all": slice(None), "new": None, "rest": Ellipsis}[kind])
    return tuple(found)


def do(values: list[Any], step: tuple, k: int) -> None:
    """One step of a program."""
    kind, *rest = step
    if kind == "part":
        a, spec = rest
        values.append(values[a][index(spec, k)])
    elif kind == "view":
        name, a = rest
        values.append(VIEWS[name](values[a]))
    elif kind == "new":
        name, a, b = rest
        values.append(OPERATIONS[name](values[a], values[b]) * 0.5)
    elif kind == "store":
        a, spec, b = rest
        values[a][index(spec, k)] = values[b] if type(b) is int else float(k)
    elif kind == "into":
        name, a, spec, b, how = rest
        target, value, operation = values[a][index(spec, k)], values[b], OPERATIONS[name]
        if how == "out":
            operation(value, target, out=target)
        elif how == "tuple":
            operation(target, value, out=(target,))
        elif how == "item":
            values[a][index(spec, k)] = operation(values[a][index(spec, k)], value)
        else:
            getattr(target, {"add": "__iadd__", "subtract": "__isub__"}.get(name, "__imul__"))(
                value
            )
    elif kind == "write":
        name, a, n = rest
        WRITES[name](values[a], n + k % 2)
    else:
        assert kind == "sum", kind
        name, a, b = rest
        OPERATIONS[name].reduce(values[a], axis=0, out=values[b])


def program(steps: list[tuple], results: list[int], rounds: int) -> Callable:
    """The function of a list of steps, done in a loop of so many rounds."""

    def run(k: int, *arrays: Any) -> list[Any]:
        values: list[Any] = []
        for r in range(rounds):
            values = list(arrays)
            for step in steps:
                do(values, step, k + r)
        return [values[n] for n in results]

    return run


def build(choose: Callable[[int], int], longest: int) -> tuple[list[np.ndarray], list, list[int]]:
    """Arguments, steps, and the numbers of the results; choose(n): a number below n."""
    made: list[np.ndarray] = []
    for n in range(2):
        dtype = ("f8", "i8", "i4", "f4")[choose(4)]
        layout = choose(4)
        a = np.random.default_rng(choose(4) + 7 * n).integers(-4, 5, (6, 8)).astype(dtype)
        made.append([a[:, :4].copy(), a[:, ::2], a[:, :4].copy(order="F"), a[::-1, 3::-1]][layout])
    if choose(4) == 0:
        made[1] = made[0][1:5]
    elif choose(4) == 0:
        made[1] = made[0].reshape(-1)[:8] if made[0].flags.c_contiguous else made[0][2]
    values: list[Any] = list(Copier()(tuple(made)))
    steps: list[tuple] = []

    def spec(shape: tuple[int, ...]) -> tuple:
        found: list[tuple] = []
        for n in shape[: len(shape) - choose(2) * choose(2)]:
            kind = ("integer", "slice", "slice", "all")[choose(4)]
            step = (1, 1, 1, 2, -1, -2)[choose(6)]
            longest = (n - 1) // abs(step) + 1
            found.append((kind, n, choose(4), 1 + choose(longest), step))
        if choose(6) == 0:
            found.insert(choose(len(found) + 1), ("new", 0, 0, 0, 0))
        elif choose(6) == 0:
            found.append(("rest", 0, 0, 0, 0))
        return tuple(found)

    def pick(fits: Callable[[Any], bool]) -> int | None:
        found = [n for n, v in enumerate(values) if fits(v)]
        return found[choose(len(found))] if found else None

    def is_array(v: Any) -> bool:
        return isinstance(v, np.ndarray) and 0 < v.ndim < 4

    for _ in range(2 + choose(longest - 1)):
        kind = ("part", "part", "part", "view", "new", "store", "into", "into", "write", "sum")[
            choose(10)
        ]
        a = pick(is_array)
        assert a is not None
        x = values[a]
        step: tuple | None = None
        if kind == "part":
            step = (kind, a, spec(x.shape))
        elif kind == "view":
            step = (kind, sorted(VIEWS)[choose(len(VIEWS))], a)
        elif kind == "write":
            name = sorted(WRITES)[choose(len(WRITES))]
            step = (kind, name, a, choose(3))
        else:
            name = sorted(OPERATIONS)[choose(len(OPERATIONS))]
            where = spec(x.shape)
            part = x[index(where, 0)]
            if kind == "new":
                b = pick(lambda v, x=x: fit(v, x.shape))
                step = None if b is None else (kind, name, a, b)
            elif kind == "store":
                b = pick(lambda v, p=part: fit(v, p.shape))
                step = (kind, a, where, b if choose(4) else None)
            elif kind == "into" and part.ndim:
                how = ("out", "tuple", "item", "operator")[choose(4)]
                b = pick(lambda v, p=part: fit(v, p.shape) and np.can_cast(
                    np.result_type(v, p), p.dtype, "same_kind"))  # fmt: skip
                step = None if b is None else (kind, name, a, where, b, how)
            elif kind == "sum":
                b = pick(lambda v, x=x: is_array(v) and v.shape == x.shape[1:] and np.can_cast(
                    x.dtype, v.dtype, "same_kind"))  # fmt: skip
                step = None if b is None else (kind, name, a, b)
        if step is None:
            continue
        if able(values, step):
            steps.append(step)
            continue
        values = list(Copier()(tuple(made)))
        for old in steps:
            do(values, old, 0)
    return made, steps, [choose(len(values)), len(values) - 1]


def able(values: list[Any], step: tuple) -> bool:
    """Do a step; whether NumPy can, and the numbers stay small."""
    try:
        do(values, step, 0)
    except (ValueError, IndexError, TypeError):
        return False
    return all(np.all(np.abs(np.asarray(v)) < 1000) for v in values)


def fit(v: Any, shape: tuple[int, ...]) -> bool:
    """Whether an array can be stored in one of that shape."""
    try:
        return np.broadcast_shapes(np.shape(v), shape) == shape
    except ValueError:
        return False
