"""Each pass keeps what a program means: the interpreter says so, and the compiled C too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile.kernels import compile as pipeline
from np_compile.kernels.compile import PASSES
from np_compile.kernels.interpret import execute
from np_compile.kernels.ir import Call, Program, check
from np_compile.kernels.parse import parse
from np_compile.kernels.translate import Translation

RTOL = {
    torch.float16: 4e-3, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float64: 1e-12,
    torch.complex128: 1e-12,
}  # fmt: skip

Graph = tuple[torch.fx.GraphModule, list[torch.Tensor]]


def captured(f: Callable, *args: Any) -> list[Graph]:
    """The graphs of a call of the compiled function, each with copies of its inputs."""
    found: list[Graph] = []

    def backend(module: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable:
        def run(*tensors: torch.Tensor) -> Any:
            found.append((module, copy.deepcopy([t.detach() for t in tensors])))
            return module.forward(*tensors)

        return run

    np_compile.compile(f, backend=backend)(*args)
    return found


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


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "less": np.less, "not_equal": np.not_equal,
}  # fmt: skip
UNARY: dict[str, Callable] = {
    "negative": lambda x: -x, "absolute": np.absolute, "square": lambda x: x * x,
    "positive": lambda x: x > 0, "doubled": lambda x: x * 2.0, "copy": lambda x: x.copy(),
}  # fmt: skip
REDUCE: dict[str, Callable] = {
    "sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin,
    "any": np.any, "prod": lambda x, **k: np.prod(np.sign(x), **k),
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


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        both = np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return len(both) <= 3 and max(both, default=1) <= 12


@st.composite
def arguments(draw: st.DrawFn) -> np.ndarray:
    """An array of small integers, of several dtypes and layouts."""
    shape = draw(st.sampled_from(((6,), (4, 5), (5, 4), (5, 1), (3, 4, 2), (5, 5), (9,))))
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
def programs(draw: st.DrawFn, longest: int) -> tuple[list[np.ndarray], list[tuple], list[int]]:
    """Arguments, steps, and the numbers of the values that the program returns."""
    given_ = draw(st.lists(arguments(), min_size=1, max_size=3))
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
            step = (kind, draw(st.sampled_from(sorted(BINARY))), a, b)
            if kind == "where":
                both = np.broadcast_shapes(x.shape, values[b].shape)  # type: ignore[index]
                c = pick(lambda v, both=both: _fits(v.shape, both))
                step = (kind, a, b, c)
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
            fine = x.ndim >= least.get(op, 0) and x.size < 100 and (op != "new" or x.ndim < 3)
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


def verify(given_: list[np.ndarray], steps: list[tuple], results: list[int], c: bool) -> None:
    """The compiled program does what NumPy does, and each of its graphs survives the passes."""
    f = function(steps, results)
    mine = copied(given_)
    wanted = f(*mine)
    theirs = copied(given_)
    graphs = captured(f, *theirs)
    for module, inputs in graphs:
        preserved(module, inputs)
        if c:
            compiled(module, inputs)
    again = copied(given_)
    got = np_compile.compile(f, backend="native" if c else "eager")(*again)
    for x, y in zip([*got, *again], [*wanted, *mine], strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


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


@given(programs(8))
def test_random_programs(case: tuple) -> None:
    verify(*case, c=False)


@settings(max_examples=15)
@given(programs(12))
def test_random_programs_in_c(case: tuple) -> None:
    verify(*case, c=True)
