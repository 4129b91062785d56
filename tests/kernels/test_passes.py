"""Each pass keeps what a program means: the interpreter says so, and the compiled C too."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile.kernels import compile as pipeline
from np_compile.kernels import schedule as schedule_
from np_compile.kernels import skew as skew_
from np_compile.kernels.collapse import collapse, flatten
from np_compile.kernels.compile import PASSES
from np_compile.kernels.contract import contract
from np_compile.kernels.dtypes import DTYPES
from np_compile.kernels.fuse import fuse
from np_compile.kernels.inline import inline
from np_compile.kernels.interpret import execute
from np_compile.kernels.ir import Call, Loop, Program, accesses, check
from np_compile.kernels.memory import plan
from np_compile.kernels.order import order
from np_compile.kernels.parse import parse
from np_compile.kernels.share import share
from np_compile.kernels.translate import Translation

RTOL = {
    torch.float16: 4e-3, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float64: 1e-12,
    torch.complex128: 1e-12,
}  # fmt: skip

Graph = tuple[torch.fx.GraphModule, list[torch.Tensor]]


def captured(f: Callable, *args: Any) -> list[Graph]:
    """The graphs of a call of the compiled function, each with copies of its inputs."""
    return traced(f, *args)[1]


def traced(f: Callable, *args: Any) -> tuple[Any, list[Graph]]:
    """The result of a call of the compiled function, and its graphs with copies of their inputs."""
    found: list[Graph] = []

    def backend(module: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable:
        def run(*tensors: torch.Tensor) -> Any:
            found.append((module, copy.deepcopy([t.detach() for t in tensors])))
            return module.forward(*tensors)

        return run

    return np_compile.compile(f, backend=backend)(*args), found


def equal(got: list[Any], expected: list[Any], what: str) -> None:
    """Tensors are equal, floats nearly."""
    assert len(got) == len(expected)
    for x, y in zip(got, expected, strict=True):
        if not isinstance(y, torch.Tensor):
            assert x == y
            continue
        assert (x.dtype, x.shape) == (y.dtype, y.shape), what
        rtol = RTOL.get(y.dtype, 0)
        a, b = (t.resolve_conj().numpy() for t in (x, y))
        finite = np.abs(b[np.isfinite(b)]).astype(float)
        np.testing.assert_allclose(
            a, b, rtol=rtol, atol=rtol * finite.max(initial=0), err_msg=what, strict=True
        )


def preserved(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Program:
    """The scheduled program; after each pass it does to the inputs what the graph does."""
    wanted_inputs = copy.deepcopy(inputs)
    wanted = list(module.forward(*wanted_inputs))
    translation = Translation(module.graph, lambda name: getattr(module, name))
    program = translation.program
    last = len(PASSES) - 1
    for k, step in enumerate((lambda p: p, *PASSES), -1):
        name = step.__name__ if k >= 0 else "the translation"
        before = str(program)
        program = step(program)
        check(program)
        if not any(isinstance(s, Call) for s in program.steps):
            assert str(parse(str(program))) == str(program)
        for backwards in (False, True) if k == last else (False,):
            mine = copy.deepcopy(inputs)
            got = execute(program, translation, mine, backwards)
            what = f"{'backwards ' * backwards}after {name}:\n{program}\n\nbefore:\n{before}"
            equal(got, wanted, what)
            equal(mine, wanted_inputs, what)
    return program


def compiled(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> None:
    """The C does what the graph does."""
    wanted_inputs, mine = copy.deepcopy(inputs), copy.deepcopy(inputs)
    wanted = list(module.forward(*wanted_inputs))
    made = pipeline.compile_graph(module)
    got = made(*mine)
    equal(got, wanted, str(made.source.program))
    equal(mine, wanted_inputs, str(made.source.program))


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


def copied(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies with the strides of the originals, and memory of their own."""
    made = []
    for a in arrays:
        base = a.base if a.base is not None else a
        fresh = base.copy(order="K")
        offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        flat = fresh.ravel(order="K").view(np.uint8)
        made.append(np.ndarray(a.shape, a.dtype, flat.data, offset, a.strides))
    return made


@given(programs(10))
def test_random_programs(case: tuple) -> None:
    verify(*case, preserved)


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


@given(stencils())
def test_random_stencils(case: tuple) -> None:
    arrays, f = case
    mine, theirs = copied(arrays), copied(arrays)
    wanted = f(*mine)
    got, graphs = traced(f, *theirs)
    np.testing.assert_array_equal([got, *theirs[0].flat], [wanted, *mine[0].flat])
    with pytest.MonkeyPatch.context() as patch:  # short loops too become pairs, in many chunks
        patch.setattr(skew_, "_ROWS", 1)
        patch.setattr(skew_, "_PEELED", 6)
        for module, inputs in graphs:
            preserved(module, inputs)


@settings(max_examples=25)
@given(programs(10, LARGE))
def test_random_programs_in_c(case: tuple) -> None:
    with pytest.MonkeyPatch.context() as patch:  # all that may run in parallel does
        patch.setattr(schedule_, "_THRESHOLD", 0)
        patch.setattr(schedule_, "_CHUNK", 50)
        verify(*case, compiled)


# NumPy functions


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _norm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def _chain(x: Any) -> Any:
    for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10):
        x = np.sin(x) * 0.5 + k
    return x


def _stencil(x: Any) -> None:
    x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4


def _steps(x: Any) -> None:
    for _ in range(3):
        x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])


def _overlap(x: Any) -> None:
    x[1:] = x[:-1]
    x[:-2] += x[2:]
    x[::-1] -= x


def _add_at(x: Any, index: Any, values: Any) -> Any:
    np.add.at(x, index, values)
    return x * 2


def _masked(x: Any) -> Any:
    y = x.copy()
    y[x > 1] = 0.5
    return np.where(y < 0, -y, y), np.count_nonzero(y)


def _doubled_rows(x: Any) -> Any:
    x[0] = x[1] + x[0]
    x[1] = x[0] * 2
    return x.sum(axis=0)


def _parts(x: Any) -> Any:
    return x.real * 2, np.abs(x), np.conj(x) * x, (x - 1j).sum()


def _views(x: Any) -> Any:
    y = x.T
    y[0, :] = 7
    z = x.reshape(-1)
    z[::3] += 1
    return y.sum(axis=1), z[1:] - z[:-1]


def _a(*shape: int, dtype: str = "f8", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype[0] in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype[0] == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def _ties() -> np.ndarray:
    x = np.round(_a(6, 7))
    x[1, 2] = x[1, 4] = x[3, 0] = np.nan
    x[4] = np.inf
    return x


INDEX = np.array([2, 0, -1, 2, 2, 1])

FUNCTIONS: dict[str, tuple[Callable, tuple]] = {
    "chain": (_chain, (_a(5, 6),)),
    "broadcast": (lambda x, y: x[:, None] * y + x.sum(), (_a(4), _a(5))),
    "softmax": (_softmax, (_a(5, 6),)),
    "layer norm": (_norm, (_a(4, 3, 6),)),
    "standardization by columns": (lambda x: (x - x.mean(0)) / x.std(0), (_a(6, 5),)),
    "variance of Fortran order": (lambda x: x.var(axis=1), (np.asfortranarray(_a(5, 6)),)),
    "statistics": (lambda x: (x.mean(), x.sum(), x.min()), (_a(5, 6),)),
    "statistics by axis": (lambda x: (x.mean(0), x.sum(1), x.min(), x.prod(0)), (_a(5, 6),)),
    "outer sums": (lambda x, y: (x[:, :, None] * y[:, None, :]).sum((-2, -1)), (_a(3, 4), _a(3, 5))),
    "outer difference": (lambda x: np.abs(x[:, None] - x).max(1), (_a(6),)),
    "stencil": (_stencil, (_a(6, 7),)),
    "stencil in steps": (_steps, (_a(9),)),
    "overlap": (_overlap, (_a(9),)),
    "rows in place": (_doubled_rows, (_a(3, 4),)),
    "views of one memory": (_views, (_a(4, 5),)),
    "transposes": (lambda x: (x.T @ x if x.ndim > 2 else x.T + 1) * x.T, (_a(5, 6),)),
    "swapped axes": (lambda x: np.swapaxes(x, 0, 2) - np.moveaxis(x, 0, -1)[:2, :3, :4].sum(), (_a(4, 3, 2),)),
    "roll": (lambda x: np.roll(x, 2, axis=1) - np.roll(x, -1, axis=0), (_a(4, 5),)),
    "roll of all": (lambda x: np.roll(x, 3) + x, (_a(4, 5),)),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=3).sum(0), (_a(3, 4),)),
    "concatenate": (lambda x, y: np.concatenate([x * 2, y, x], axis=1), (_a(3, 4), _a(3, 2))),
    "stack": (lambda x: np.stack([x, -x, x + 1], axis=-1).max(-1), (_a(3, 4),)),
    "flips": (lambda x: x[::-1, ::2] - np.flip(x)[:, ::2], (_a(4, 6),)),
    "negative strides": (lambda x: np.cumsum(x * 2), (_a(8)[::-2],)),
    "gather": (lambda x, i: x[i] * x[0], (_a(3, 4), INDEX)),
    "gather along an axis": (lambda x, i: np.take(x, i, axis=1) + 1, (_a(4, 3), INDEX)),
    "scatter of sums": (_add_at, (_a(3), INDEX, _a(6))),
    "scatter": (lambda x, i: x.__setitem__(i[:2], 5.0), (_a(3, 4), INDEX)),
    "bins": (lambda i: np.bincount(i + 1, minlength=6), (INDEX,)),
    "cumsum by columns": (lambda x: np.cumsum(x, axis=0) * 2, (_a(5, 6),)),
    "cumsum by rows": (lambda x: np.cumsum(x - 1, axis=1).sum(0), (_a(5, 6),)),
    "cumulative product": (lambda x: np.cumprod(x), (_a(7),)),
    "argmax": (lambda x: (np.argmax(x, 0), np.argmax(x, 1), np.argmax(x)), (_ties(),)),
    "argmin": (lambda x: (np.argmin(x, 0), np.argmin(x, 1), np.argmin(x)), (_ties(),)),
    "extremes with NaN": (lambda x: (x.max(0), x.min(1), np.fmax(x, 0)), (_ties(),)),
    "complex": (_parts, (_a(3, 4, dtype="c16"),)),
    "complex product": (lambda x, y: (x * y / (y + 2), np.exp(x)), (_a(3, 4, dtype="c8"), _a(4, dtype="c8"))),
    "mixed dtypes": (lambda x, y, z: (x + y, y * z, x > z), (_a(4, dtype="f4"), _a(4, dtype="i4"), _a(4))),
    "any and all": (lambda x: ((x > 0).any(0), (x > -1).all(1), (x != 0).all()), (_a(4, 5),)),
    "where": (lambda x, y: np.where(x > y, x - y, np.minimum(x, y)), (_a(4, 5), _a(5))),
    "masks": (_masked, (_a(4, 5),)),
    "half": (lambda x: (x * 3 + 1, x.sum(0), x.max(), x.mean(1)), (_a(4, 5, dtype="f2"),)),
    "wrapping integers": (lambda x, y: (x * y, x + y, x.sum(1)), (_a(4, 5, dtype="i1"), _a(5, dtype="i1"))),
    "wrapping words": (lambda x: (x * x, x.sum(), x * 3 + 1), (_a(4, 5, dtype="i8"),)),
    "unsigned": (lambda x, y: (x - y, x // (y | 1), x % 7, x >> 3), (_a(4, dtype="u2"), _a(4, dtype="u2"))),
    "division of integers": (lambda x, y: (x // y, x % y), (_a(9, dtype="i4"), np.arange(-4, 5, dtype="i4"))),
    "triangle": (lambda x: np.tril(x) + np.triu(x, 1).T, (_a(4, 4),)),
    "diagonal": (lambda x: np.diagonal(x, 1).sum() + np.trace(x), (_a(4, 5),)),
    "matrix product": (lambda x, y: np.maximum(x @ y - 1, 0).sum(0), (_a(4, 5), _a(5, 3))),
    "sort": (lambda x: np.sort(x * 2, axis=0)[1:] - 1, (_a(4, 5),)),
    "mesh": (lambda x: np.arange(5) * x[:, None] + np.linspace(0, 1, 5), (_a(4),)),
    "no elements": (lambda x: (x[:0] * 2, x[:, :0].sum(1), x[:0].sum()), (_a(4, 5),)),
    "a single number": (lambda x: np.sqrt(x * x + 1), (np.array(2.5),)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_passes_keep_the_meaning(name: str) -> None:
    f, args = FUNCTIONS[name]
    graphs = captured(f, *copied(list(args)))
    assert graphs
    for module, inputs in graphs:
        preserved(module, inputs)


# How many loop nests


def nests(f: Callable, *args: Any) -> int:
    """Loop nests of the graphs of a call; nothing but single elements is outside of them."""
    steps = [
        s
        for module, _ in captured(f, *args)
        for s in pipeline.generate(module.graph, partial(getattr, module)).program.steps
    ]
    assert not any(isinstance(s, Call) for s in steps)
    return sum(isinstance(s, Loop) for s in steps)


def _sums(x: Any, y: Any) -> Any:
    d = x - y
    return (d * d).sum(axis=1), np.abs(d).max(axis=1), d.argmin(axis=1)


@pytest.mark.parametrize(
    ("f", "args", "wanted"),
    [
        (_softmax, (_a(40, 50),), 1),
        (_softmax, (np.asfortranarray(_a(40, 50)),), 1),
        (_norm, (_a(40, 50),), 1),
        (_norm, (_a(40, 5, 50),), 1),
        (lambda x: (x.mean(), x.sum(), x.min()), (_a(40, 50),), 1),
        (lambda x: (x.mean(1), x.sum(1), x.min(1)), (_a(40, 50),), 1),
        (_sums, (_a(40, 50), _a(50)), 1),
        (_chain, (_a(40, 50),), 1),
        (lambda x: np.sqrt(((x[:, None] - x) ** 2).sum(-1)), (_a(20, 3),), 1),
        (lambda x: np.roll(x.T[::-1] * 2, 1, axis=0) + 1, (_a(40, 50),), 1),
        (lambda x: np.cumsum(np.exp(x), axis=1) * 2, (_a(40, 50),), 1),
    ],
)
def test_number_of_nests(f: Callable, args: tuple, wanted: int) -> None:
    assert nests(f, *copied(list(args))) == wanted


@pytest.mark.parametrize("n", [1, 4, 12])
def test_a_chain_of_pointwise_operations_is_one_nest_forward_and_one_backward(n: int) -> None:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(n):
            x = np.tanh(x * y) + np.sin(x)
        return x

    made: list[Any] = []
    x, y = (torch.rand(20, 30, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with pipeline.listening(made.append):
        result = np_compile.compile(np_compile.wrap_numpy(chain), backend="native")(x, y)
        result.sum().backward()
    assert [sum(isinstance(s, Loop) for s in e.source.program.steps) for e in made] == [1, 1]
    grads = [x.grad, y.grad]
    x.grad = y.grad = None
    np_compile.wrap_numpy(chain)(x, y).sum().backward()
    for got, wanted in zip(grads, (x.grad, y.grad), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


# What single passes do


def after(text: str, *passes: Callable[[Program], Program]) -> str:
    """The steps of a program after some passes, with axes named by their order in the text."""
    program = parse(text)
    for step in passes:
        program = step(program)
        check(program)
    lines = str(program).splitlines()[len(program.buffers) :]
    names: dict[str, str] = {}
    word = re.compile(r"\b[ijklmn]\d*\b")
    return "\n".join(
        word.sub(lambda m: names.setdefault(m[0], "ijklmn"[len(names)]), line) for line in lines
    )


HEAD = """\
x: f64[4,6] strides[6,1] input 0
y: f64[6,4] strides[1,6] input 1
s: f64[4] strides[1] temporary
t: f64[4,6] strides[6,1] temporary
u: f64[4,6] strides[6,1] temporary
r: f64[4,6] strides[6,1] output
q: f64[4] strides[1] output
"""


def test_share_computes_once() -> None:
    text = """\
all i < 4, j < 6: t[i, j] = exp(x[i, j])
all k < 4, l < 6: u[k, l] = exp(x[k, l])
all m < 4, n < 6: r[m, n] = (t[m, n] * u[m, n])"""
    assert (
        after(HEAD + text, share, inline)
        == """\
all i < 4, j < 6: t[i, j] = exp(x[i, j])
all k < 4, l < 6: r[k, l] = (t[k, l] * t[k, l])"""
        or after(HEAD + text, share, inline)
        == """\
all i < 4, j < 6: r[i, j] = (exp(x[i, j]) * exp(x[i, j]))"""
    )


def test_inline_leaves_no_store_that_nobody_reads() -> None:
    text = """\
all i < 4, j < 6: t[i, j] = (x[i, j] + 1.0:f64)
all i < 4, j < 6: u[i, j] = (t[i, (5 + -1*j)] * 2.0:f64)
all i < 4, j < 6: r[i, j] = (u[i, j] - x[i, j])"""
    assert after(HEAD + text, inline) == (
        "all i < 4, j < 6: r[i, j] = (((x[i, (5 + -1*j)] + 1.0:f64) * 2.0:f64) - x[i, j])"
    )


def test_inline_stops_at_a_write_to_what_it_reads() -> None:
    text = """\
all i < 4, j < 6: t[i, j] = (x[i, j] + 1.0:f64)
all i < 4, j < 6: x[i, j] = 0.0:f64
all i < 4, j < 6: r[i, j] = t[i, j]"""
    assert after(HEAD + text, inline) == text


def test_inline_knows_that_a_store_to_a_part_changes_the_whole() -> None:
    text = """\
all i < 4, j < 6: t[i, j] = neg(x[i, j])
all j < 6: t[0, j] = 1.0:f64
all i < 4, j < 6: r[i, j] = t[i, j]"""
    assert after(HEAD + text, inline) == text


def test_order_walks_memory_in_the_smallest_steps() -> None:
    text = "all i < 6, j < 4: y[i, j] = (y[i, j] * 2.0:f64)"
    assert after(HEAD + text, order) == "all i < 4, j < 6: y[j, i] = (y[j, i] * 2.0:f64)"
    text = "all i < 4, j < 6: q[i] sum= y[j, i] over j"
    assert after(HEAD + text, order) == "all i < 4, j < 6: q[i] sum= y[j, i] over j"
    text = "all i < 6, j < 4: q[j] sum= x[j, i] over i"
    assert after(HEAD + text, order) == "all i < 4, j < 6: q[i] sum= x[i, j] over j"


ROWS = """\
all i < 4, j < 6: s[i] sum= x[i, j] over j
all k < 4, l < 6: r[k, l] = (x[k, l] / s[k])"""


def test_fuse_puts_a_reduction_and_its_use_in_one_loop_over_rows() -> None:
    assert (
        after(HEAD + ROWS, order, fuse)
        == """\
for i < 4:
  for j < 6:
    s[i] sum= x[i, j] over j
  for k < 6:
    r[i, k] = (x[i, k] / s[i])"""
    )


def test_contract_keeps_a_row_sum_in_a_register() -> None:
    assert (
        after(HEAD + ROWS, order, fuse, contract)
        == """\
for i < 4:
  for j < 6:
    s[] sum= x[i, j] over j
  for k < 6:
    r[i, k] = (x[i, k] / s[])"""
    )


def test_fuse_keeps_a_stencil_and_its_copy_apart() -> None:
    text = """\
all i < 4, j < 4: t[i, j] = (x[i, j] + x[i, (2 + j)])
all k < 4, l < 4: x[k, (1 + l)] = t[k, l]"""
    assert (
        after(HEAD + text, order, fuse)
        == """\
for i < 4:
  for j < 4:
    t[i, j] = (x[i, j] + x[i, (2 + j)])
  for k < 4:
    x[i, (1 + k)] = t[i, k]"""
    )


def test_collapse_makes_one_loop_of_contiguous_ones() -> None:
    text = "all i < 4, j < 6: r[i, j] = (x[i, j] + 1.0:f64)"
    passes = (order, fuse, contract, flatten, collapse)
    assert after(HEAD + text, *passes) == "for i < 24:\n  r[i] = (x[i] + 1.0:f64)"
    text = "all i < 4, j < 5: r[i, j] = (x[i, (1 + j)] + 1.0:f64)"
    assert (
        after(HEAD + text, *passes)
        == """\
for i < 4:
  for j < 5:
    r[(6*i + j)] = (x[(1 + 6*i + j)] + 1.0:f64)"""
    )


def test_schedule_marks_what_may_run_at_once() -> None:
    def marked(text: str) -> str:
        return after(text, order, fuse, contract, flatten, collapse, schedule_.schedule)

    long = "x: f64[90000] strides[1] input 0\ny: f64[90000] strides[1] input 1\n"
    text = marked(long + "all i < 90000: y[i] = exp(x[i])")
    assert re.fullmatch(r"for i < 90000 parallel \d+ simd:\n  y\[i\] = exp\(x\[i\]\)", text)
    text = marked(long + "all i < 90000: y[i] running sum= x[i] over i")
    assert text == "for i < 90000:\n  y[i] running sum= x[i] over i"
    text = marked(long + "all i < 9: y[i] = exp(x[i])")
    assert text == "for i < 9 simd:\n  y[i] = exp(x[i])"
    text = marked(long + "for i < 9:\n  y[(1 + i)] = y[i]")
    assert text == "for i < 9:\n  y[(1 + i)] = y[i]"


# Memory


@given(programs(10))
def test_temporaries_that_live_at_once_lie_apart(case: tuple) -> None:
    arguments_, steps, results = case
    for module, _ in captured(function(steps, results), *copied(arguments_)):
        translation = Translation(module.graph, partial(getattr, module))
        program = translation.program
        for step in PASSES:
            program = step(program)
        offsets, size = plan(program)
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
