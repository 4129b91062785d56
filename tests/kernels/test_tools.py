"""What `inspect` and `explain` show of the native back end, and the memory that programs take."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import np_compile
from np_compile.kernels.compile import listening
from np_compile.kernels.run.execute import Executable

from ..support import data


@pytest.fixture(autouse=True)
def always_compiled() -> Iterator[None]:
    """No call runs in plain NumPy because that is the faster way."""
    with np_compile.config.patch(plain="never"):
        yield


def native(f: Callable) -> Callable:
    return np_compile.compile(f, backend="native")


def output(f: Callable, *args: Any) -> str:
    """What the back end has made of a function of one segment."""
    (segment,) = np_compile.inspect(native(f))(*args)
    return segment.output


def _scaled(x: np.ndarray) -> np.ndarray:
    y = np.sin(x)
    return y * 2 + 1


def _sorted(x: np.ndarray) -> np.ndarray:
    z = np.sort(x, axis=0)
    return np.tanh(z) + 1


def test_inspect_shows_loops_memory_and_c() -> None:
    text = output(_scaled, data(1000))
    assert text.startswith("/* loops\nx0: f64[1000] strides[1] input 0\n")
    assert "for " in text.partition("*/")[0]
    assert "/* scratch memory: 0 bytes */" in text
    assert "static void kernel_0(void **memory, i64 begin, i64 end)" in text
    assert "#pragma omp simd" in text
    assert "int section_0(" in text


def test_inspect_shows_the_users_lines_in_the_c() -> None:
    text = output(_scaled, data(1000))
    c = text.partition("scratch memory")[2]
    assert f"{__file__}:" in c
    assert "return y * 2 + 1 */" in c


def _cumulated(x: np.ndarray) -> np.ndarray:
    return np.cumsum(np.cumsum(x, axis=0), axis=1)


def test_inspect_shows_decisions() -> None:
    text = output(_cumulated, data(300, 200))
    assert " is not fused with what is before it: " in text


def test_inspect_shows_calls_of_torch_with_reason_and_line() -> None:
    text = output(_sorted, data(300, 200))
    assert "= call aten.sort.stable(x0)" in text
    note = text[text.index("torch runs aten.sort.stable: ") :]
    assert "z = np.sort(x, axis=0)" in note.partition("*/")[0]


def test_inspect_shows_products_of_matrices() -> None:
    text = output(lambda x, y: np.tanh(x @ y), data(300, 200), data(200, 300))
    assert "= call aten.mm.default(x0, x1)" in text
    assert "torch runs" not in text


def test_the_c_that_inspect_shows_compiles() -> None:
    from np_compile.kernels import build

    text = output(_scaled, data(77))
    assert build.load(text).section_0


def test_inspect_shows_both_halves_of_a_gradient() -> None:
    @np_compile.wrap_numpy
    def energy(w: np.ndarray) -> np.ndarray:
        z = np.exp(np.sin(w))
        return np.sum(z * z)

    f = np_compile.compile(energy, backend="native")
    (segment,) = np_compile.inspect(f)(torch.linspace(0, 1, 100, requires_grad=True))
    forward, found, backward = segment.output.partition("/* backward */")
    assert found
    assert forward.startswith("/* forward */\n/* loops")
    assert backward.count("/* loops") == 1
    assert "np.exp(np.sin(w))" in backward  # the line that the gradient belongs to
    (plain,) = np_compile.inspect(f)(torch.linspace(0, 1, 100))
    assert "backward" not in plain.output


def test_explain_has_the_notes() -> None:
    report = np_compile.explain(native(_sorted))(data(300, 200))
    (note,) = [n for n in report.segments[0].notes if "torch runs" in n]
    assert "z = np.sort(x, axis=0)" in note
    assert f"note: {note.splitlines()[0]}" in str(report)
    assert np_compile.explain(native(_scaled))(data(10)).segments[0].notes == []


def test_explain_has_the_notes_of_a_gradient() -> None:
    f = np_compile.compile(np_compile.wrap_numpy(_sorted), backend="native")
    x = torch.from_numpy(data(300, 200)).requires_grad_()
    report = np_compile.explain(f)(x)
    assert any("torch runs aten.sort" in n for n in report.segments[0].notes)


def test_explain_shows_which_calls_run_between_segments() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        if x.sum() > 0:
            x = x * 2
        return x + 1

    report = np_compile.explain(native(f))(np.ones(5))
    assert len(report.segments) == 2
    assert report.breaks[0].kind == "value"


# -- memory --------------------------------------------------------------------------------------


def programs(f: Callable, *args: Any) -> list[Executable]:
    """The programs that a call compiles."""
    made: list[Executable] = []
    with listening(made.append):
        native(f)(*args)
    return made


def _chain(x: np.ndarray) -> np.ndarray:
    return np.sin(x) * 2 + np.exp(-x) / (1 + x * x)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _layer_norm(x: np.ndarray) -> np.ndarray:
    m = x.mean(axis=-1, keepdims=True)
    v = ((x - m) ** 2).mean(axis=-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


def _standardized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def _totals(x: np.ndarray) -> tuple:
    return (x * x).sum(), x.max(), x.argmax()


def _running(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x * 2, axis=0) - 1


def _sweep(u: np.ndarray) -> None:
    u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])


def _five_point(u: np.ndarray) -> None:
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def _in_place(x: np.ndarray) -> None:
    x *= 2
    x += 1
    np.sin(x, out=x)


def _into(x: np.ndarray, y: np.ndarray) -> None:
    np.multiply(x, 2, out=y)
    np.add(y, x, out=y)
    np.sqrt(y, out=y)


# Scratch memory in bytes. Stencils keep some rows for each chunk of rows.
MOST_SCRATCH = [
    (_chain, (1000, 1000), 0),
    (_softmax, (1000, 1024), 0),
    (_layer_norm, (1000, 1024), 0),
    (_standardized, (1000, 300), 4 * 300 * 8),
    (_totals, (1_000_000,), 4096),
    (_running, (300, 200), 0),
    (_sweep, (1_000_000,), 4096),
    (_sweep, (1000, 1000), 64 * 1000 * 8),
    (_five_point, (700, 700), 64 * 700 * 8),
    (_in_place, (1_000_000,), 0),
]


@pytest.mark.parametrize(("f", "shape", "most"), MOST_SCRATCH)
def test_scratch_memory(f: Callable, shape: tuple[int, ...], most: int) -> None:
    (program,) = programs(f, np.random.default_rng(0).random(shape))
    assert program.scratch_bytes <= most
    assert f"/* scratch memory: {program.scratch_bytes} bytes */" in str(program)


class Allocations(TorchDispatchMode):
    """Bytes of the storages that operators make within it."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        views = any(a.alias_info is not None for a in func._schema.returns)
        if isinstance(result, torch.Tensor) and not views:
            self.bytes += result.untyped_storage().nbytes()
        return result


def allocated(f: Callable, *args: Any) -> int:
    """Bytes that a call takes from torch and NumPy, once it is compiled and its scratch memory is
    there. Less than 32 kB is Python's own."""
    f = native(f)
    for _ in range(4):
        f(*args)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with Allocations() as seen:
            f(*args)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return seen.bytes + (peak if peak >= 1 << 15 else 0)


@pytest.mark.parametrize("f", [_in_place, _sweep, _five_point], ids=lambda f: f.__name__[1:])
def test_programs_in_place_allocate_nothing(f: Callable) -> None:
    assert allocated(f, np.random.default_rng(0).random((700, 700))) == 0


def test_programs_with_out_allocate_nothing() -> None:
    assert allocated(_into, np.random.default_rng(0).random(500_000), np.empty(500_000)) == 0


@pytest.mark.parametrize(
    "f", [_chain, _softmax, _layer_norm, _running], ids=lambda f: f.__name__[1:]
)
def test_other_programs_allocate_their_results(f: Callable) -> None:
    x = np.random.default_rng(0).random((500, 700))
    assert x.nbytes <= allocated(f, x) < x.nbytes + (1 << 15)


def test_a_program_goes_with_its_function():
    made = []
    with listening(lambda program: made.append(weakref.ref(program))):
        fast = np_compile.compile(lambda x: np.sin(x) + 1, fullgraph=True)
        fast(data(5))
    assert len(made) == 1
    del fast
    gc.collect()
    assert made[0]() is None
