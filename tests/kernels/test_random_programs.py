"""Random programs do in the interpreter, after each pass, and in C, what they do in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from np_compile.kernels.analysis.memory import plan
from np_compile.kernels.frontend.translate import Translation
from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.ir.program import accesses
from np_compile.kernels.passes.pipeline import PASSES
from np_compile.kernels.target import HOST

from ..changing import build
from ..changing import program as changing_program
from ..support import Copier, examples
from .graphs import captured, compiled, copied, eager_passes, preserved, traced

# Random programs


BINARY: dict[str, Callable] = {
    "add": np.add, "subtract": lambda x, y: x * 1 - y, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum, "less": np.less, "not_equal": np.not_equal,
}  # fmt: skip
UNARY: dict[str, Callable] = {
    "negative": lambda x: -(x * 1), "absolute": np.absolute, "square": lambda x: x * x,
    "positive": lambda x: x > 0, "doubled": lambda x: x * 2.0, "copy": lambda x: x.copy(),
}  # fmt: skip
REDUCE: dict[str, Callable] = {
    "sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin,
    "any": np.any, "prod": lambda x, **k: np.prod(np.sign(x * 1), **k),
}  # fmt: skip
MOVE: dict[str, Callable] = {
    "transpose": np.transpose, "flip": np.flip, "ravel": lambda x: x.reshape(-1),
    "new": lambda x: x[..., None], "first": lambda x: x[0], "last": lambda x: x[..., -1],
    "roll": lambda x: np.roll(x, 1), "double": lambda x: np.concatenate([x, x]),
    "pad": lambda x: np.pad(x, 1)[1:], "tril": np.tril, "diff": np.diff,
}  # fmt: skip


def bounded(x: Any) -> Any:
    """Values small enough that every order of summation is exact."""
    return np.clip(x, -40, 40) if x.dtype != bool else x * 1


def do(values: list[Any], step: tuple) -> None:
    """One step of a random program."""
    kind, *rest = step
    if kind == "binary":
        op, a, b = rest
        values.append(bounded(BINARY[op](values[a], values[b])))
    elif kind == "unary":
        op, a = rest
        values.append(bounded(UNARY[op](values[a])))
    elif kind == "reduce":
        op, a, axis, keep = rest
        values.append(bounded(REDUCE[op](values[a], axis=axis, keepdims=keep)))
    elif kind == "view":
        a, where = rest
        values.append(values[a][where])
    elif kind == "move":
        op, a = rest
        values.append(MOVE[op](values[a]))
    elif kind == "cumsum":
        a, axis = rest
        values.append(bounded(np.cumsum(values[a], axis=axis)))
    elif kind == "where":
        a, b, c = rest
        values.append(np.where(values[a] > 0, values[b], values[c]))
    elif kind == "take":
        a, index, axis = rest
        values.append(np.take(values[a], np.array(index), axis=axis))
    elif kind == "add at":
        a, index, b = rest
        np.add.at(values[a], np.array(index), values[b])
    else:
        a, where, b = rest
        if kind == "store":
            values[a][where] = values[b]
        elif kind == "add":
            values[a][where] += values[b]
        else:
            values[a][where] = np.maximum(values[a][where], values[b])


@st.composite
def slices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """A slice of each axis, of any step, that leaves at least one element."""
    found = []
    for n in shape:
        if draw(st.integers(0, 2)) == 0:
            found.append(slice(None))
            continue
        low = draw(st.integers(0, n - 1))
        high = draw(st.integers(low + 1, n))
        step = draw(st.sampled_from((1, 1, 2, -1, -2)))
        start, stop = (low, high) if step > 0 else (high - 1, low - 1 if low else None)
        found.append(slice(start, stop, step))
    return tuple(found)


SMALL = ((6,), (4, 5), (5, 4), (5, 1), (3, 4, 2), (5, 5), (9,))
LARGE = ((300,), (37, 70), (70, 37), (70, 1), (3, 5, 67), (64, 64), (2, 5000))


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        both = np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return len(both) <= 3 and np.prod(both) <= 4 * max(np.prod(a), np.prod(b))


@st.composite
def arguments(draw: st.DrawFn, shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """An array of small integers, of several dtypes and layouts."""
    shape = draw(st.sampled_from(shapes))
    dtype = draw(st.sampled_from(("f8", "f8", "f8", "i8", "f4", "i4", "bool")))
    seed = draw(st.integers(0, 3))
    layout = draw(st.sampled_from(("C", "C", "F", "step", "back")))
    wide = tuple(2 * n for n in shape) if layout == "step" else shape
    a = np.random.default_rng(seed).integers(-4, 5, wide)
    a = np.array(a if dtype != "bool" else a > 0, dtype, order="F" if layout == "F" else "C")
    return a[(slice(None, None, 2),) * a.ndim] if layout == "step" else (
        a[..., ::-1] if layout == "back" else a
    )  # fmt: skip


@st.composite
def programs(
    draw: st.DrawFn, longest: int, shapes: Sequence[tuple[int, ...]] = SMALL
) -> tuple[list[np.ndarray], list[tuple], list[int]]:
    """Arguments, steps, and the numbers of the values that the program returns."""
    given_ = draw(st.lists(arguments(shapes), min_size=1, max_size=3))
    values: list[Any] = [a.copy(order="K") for a in given_]
    steps: list[tuple] = []

    def pick(test: Callable[[Any], bool] = lambda v: True) -> int | None:
        """A value for which `test` holds, the latest first."""
        fit = [k for k, v in enumerate(values) if test(v)]
        return fit[-1 - draw(st.integers(0, len(fit) - 1))] if fit else None

    kinds = (
        "binary", "binary", "binary", "unary", "reduce", "reduce", "view", "move", "cumsum",
        "where", "take", "add at", "store", "add", "extreme",
    )  # fmt: skip
    for _ in range(draw(st.integers(2, longest))):
        kind = draw(st.sampled_from(kinds))
        a = draw(st.integers(0, len(values) - 1))
        x = values[a]
        step: tuple | None = None
        if kind in ("binary", "where"):
            b = pick(lambda v, x=x: _fits(v.shape, x.shape))
            if b is None:
                continue
            step = (kind, draw(st.sampled_from(sorted(BINARY))), a, b)
            if kind == "where":
                both = np.broadcast_shapes(x.shape, values[b].shape)
                c = pick(lambda v, both=both: _fits(v.shape, both))
                step = None if c is None else (kind, a, b, c)
        elif kind == "unary":
            step = (kind, draw(st.sampled_from(sorted(UNARY))), a)
        elif kind == "reduce" and x.ndim:
            op = draw(st.sampled_from(sorted(REDUCE)))
            axes = [None, *range(-1, x.ndim - 1)]
            many = [(0, x.ndim - 1)] if x.ndim > 1 and not op.startswith("arg") else []
            step = (kind, op, a, draw(st.sampled_from([*axes, *many])), draw(st.booleans()))
        elif kind == "view" and x.ndim:
            step = (kind, a, draw(slices(x.shape)))
        elif kind == "move":
            op = draw(st.sampled_from(sorted(MOVE)))
            least = {"first": 1, "last": 1, "tril": 2, "diff": 2, "pad": 1, "double": 1}
            fine = x.ndim >= least.get(op, 0) and x.size < 20_000 and (op != "new" or x.ndim < 3)
            fine = fine and not (op == "diff" and (x.shape[-1] < 2 or x.dtype == bool))
            step = (kind, op, a) if fine else None
        elif kind == "cumsum" and x.ndim:
            step = (kind, a, draw(st.integers(0, x.ndim - 1)))
        elif kind in ("take", "add at") and x.ndim:
            axis = draw(st.integers(0, x.ndim - 1)) if kind == "take" else 0
            n = x.shape[axis]
            index = draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4))
            step = (kind, a, index, axis)
            if kind == "add at":
                if not x.flags.writeable or x.dtype == bool:
                    continue
                shape = (len(index), *x.shape[1:])
                b = pick(lambda v, x=x, shape=shape: _stores(v, shape, x.dtype))
                step = None if b is None else (kind, a, index, b)
        elif kind in ("store", "add", "extreme") and x.ndim and x.flags.writeable:
            if kind == "add" and x.dtype == bool:
                continue
            where = draw(slices(x.shape))
            b = pick(lambda v, x=x, where=where: _stores(v, x[where].shape, x.dtype))
            step = None if b is None else (kind, a, where, b)
        if step is None:
            continue
        do(values, step)
        steps.append(step)
    results = draw(st.lists(st.integers(0, len(values) - 1), max_size=2, unique=True))
    return given_, steps, [*results, len(values) - 1]


def _stores(v: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array can be stored in, and added to, one of that shape and dtype."""
    try:
        return np.broadcast_shapes(v.shape, shape) == shape and np.can_cast(v.dtype, dtype)
    except ValueError:
        return False


def function(steps: list[tuple], results: list[int]) -> Callable:
    def program(*arrays: Any) -> list[Any]:
        values = list(arrays)
        for step in steps:
            do(values, step)
        return [values[k] for k in results]

    return program


def verify(
    given_: list[np.ndarray], steps: list[tuple], results: list[int], *checks: Callable
) -> None:
    """The traced program does what NumPy does, and its graphs stand the checks."""
    f = function(steps, results)
    mine, theirs = copied(given_), copied(given_)
    wanted = f(*mine)
    got, graphs = traced(f, *theirs)
    for x, y in zip([*got, *theirs], [*wanted, *mine], strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    for module, inputs in graphs:
        for check_ in checks:
            check_(module, inputs)


@given(programs(10))
def test_random_programs(case: tuple) -> None:
    with eager_passes():
        verify(*case, preserved)


# Views at changing indices


@st.composite
def changing(draw: st.DrawFn) -> tuple[list[np.ndarray], list[tuple], list[int], int]:
    """A program on views at indices that are data, and the number that they follow from."""
    made, steps, results = build(lambda n: draw(st.integers(0, n - 1)), 8)
    return made, steps, results, draw(st.integers(0, 9))


def verify_changing(case: tuple, *checks: Callable) -> None:
    arrays, steps, results, k = case
    f = changing_program(steps, results, 1)
    mine, theirs = Copier()((k, *arrays)), Copier()((k, *arrays))
    wanted = f(*mine)
    got, graphs = traced(f, *theirs, dynamic=True)
    for x, y in zip([*got, *theirs], [*wanted, *mine], strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    for module, inputs in graphs:
        for check_ in checks:
            check_(module, inputs)


@settings(max_examples=examples(50))
@given(changing())
def test_random_views_at_changing_indices(case: tuple) -> None:
    with eager_passes():
        verify_changing(case, preserved)


@settings(max_examples=examples(15))
@given(changing())
def test_random_views_at_changing_indices_in_c(case: tuple) -> None:
    with eager_passes():
        verify_changing(case, compiled)


# Updates in place from neighbours


def _neighbours(offsets: Sequence[tuple[int, ...]], step: int, kind: str) -> Callable:
    """The update of an array's inner part from a few neighbours, twice."""

    def update(x: Any) -> Any:
        inner = tuple(slice(3, -3, step) for _ in range(x.ndim))
        for _ in (0, 1):
            total = 0
            for at in offsets:
                where = (slice(3 + a, -3 + a or None, step) for a in at)
                total = total + x[tuple(where)] * (2 + at[0])
            if kind == "store":
                x[inner] = total
            elif kind == "add":
                x[inner] += total
            else:
                x[inner] = np.where(total > 0, total, x[inner] - total.max(axis=-1, keepdims=True))
        return x.sum()

    return update


@st.composite
def stencils(draw: st.DrawFn) -> tuple[list[np.ndarray], Callable]:
    """An array, and a function that updates it in place from neighbours."""
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(8, 20)), *(draw(st.integers(8, 9)) for _ in range(rank - 1))]
    x = np.random.default_rng(draw(st.integers(0, 3))).integers(-4, 5, shape).astype("f8")
    if draw(st.booleans()):
        x = np.asfortranarray(x)
    at = st.tuples(*(st.integers(-3, 3) for _ in range(rank)))
    step = draw(st.sampled_from((1, 1, 1, 2)))
    offsets = draw(st.lists(at, min_size=1, max_size=4))
    return [x], _neighbours(offsets, step, draw(st.sampled_from(("store", "add", "where"))))


@settings(max_examples=examples(40))
@given(stencils())
def test_random_stencils(case: tuple) -> None:
    arrays, f = case
    mine, theirs = copied(arrays), copied(arrays)
    wanted = f(*mine)
    got, graphs = traced(f, *theirs)
    np.testing.assert_array_equal([got, *theirs[0].flat], [wanted, *mine[0].flat])
    with eager_passes():
        for module, inputs in graphs:
            preserved(module, inputs)


@settings(max_examples=examples(25))
@given(programs(10, LARGE))
def test_random_programs_in_c(case: tuple) -> None:
    with eager_passes():
        verify(*case, compiled)


# Memory


@given(programs(10))
def test_temporaries_that_live_at_once_lie_apart(case: tuple) -> None:
    arguments_, steps, results = case
    for module, _ in captured(function(steps, results), *copied(arguments_)):
        translation = Translation(module.graph, partial(getattr, module))
        program = translation.program
        for step in PASSES:
            program = step(program, HOST)
        layout = plan(program, HOST)
        offsets, size = layout.offsets, layout.size
        lives: dict[Any, list[int]] = {}
        for k, step in enumerate(program.steps):
            for b in set().union(*accesses(step)):
                lives.setdefault(b, []).append(k)
        places = [(b, offsets[b], offsets[b] + b.size * DTYPES[b.dtype].size) for b in offsets]
        for b, begin, end in places:
            assert begin >= 0
            assert end <= size
            for c, low, high in places:
                together = min(lives[b]) <= max(lives[c]) and min(lives[c]) <= max(lives[b])
                assert b is c or not together or end <= low or high <= begin
