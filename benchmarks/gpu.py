"""Time programs on a CUDA device: one table, medians of event times in one run.

python -m benchmarks.gpu [PROGRAM ...] [--contenders np_compile torch eager cupy jax] [--rounds N]
                         [--json FILE]

A program is a NumPy function. `np_compile` is the native back end on tensors,
`torch` is torch.compile of the NumPy function, `eager` its operators one by one, `cupy` CuPy, `jax`
jax.jit of the function, or of a form of it without writes. The floor is what a copy takes that
moves as many bytes as the program has to; what an empty kernel takes is the floor of small calls.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch

import np_compile


@dataclass(frozen=True)
class Case:
    """A program, its arguments, and the bytes that it has to move; 0: that is not what it takes.
    wrt: positions of arguments by which it is differentiated. jax: a form for JAX."""

    function: Callable
    shapes: tuple[tuple[int, ...], ...]
    bytes: int
    dtype: str = "float32"
    wrt: tuple[int, ...] = ()
    jax: Callable | None = None

    def arguments(self) -> list[torch.Tensor]:
        """New arguments on the device."""
        dtype = getattr(torch, self.dtype)
        made = [torch.rand(s, dtype=dtype, device="cuda") for s in self.shapes]
        return [t.requires_grad_(k in self.wrt) for k, t in enumerate(made)]


CASES: dict[str, Case] = {}


def case(name: str, *shapes: tuple[int, ...], moved: float = 0, **more: Any) -> Callable:
    """Register a program by name. moved: elements of 4 bytes that it has to read and write."""

    def register(function: Callable) -> Callable:
        CASES[name] = Case(function, shapes, int(4 * moved), **more)
        return function

    return register


_ROOT = Path(__file__).parent.parent
_WARM = 12  # calls before any is timed: some are watched before they are kept
_AHEAD = 4_000_000  # cycles of the device
_CALLS = 8  # that follow one another while the host is timed
MANY = 10**8
ROWS = (32768, 4096)
CELLS = ROWS[0] * ROWS[1]


@case("scale and add, 10^8", (MANY,), (MANY,), moved=3 * MANY)
def scale_and_add(a, b):
    return a * 2.5 + b


@case("chain of 6, 10^8", (MANY,), (MANY,), moved=3 * MANY)
def chain(a, b):
    return np.sqrt(np.abs(a * 2.5 + b)) - b / 3


@case("softmax 32768x4096", ROWS, moved=2 * CELLS)
def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@case("layer norm 32768x4096", ROWS, moved=2 * CELLS)
def layer_norm(x):
    m = np.mean(x, axis=1, keepdims=True)
    v = np.mean((x - m) ** 2, axis=1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


@case("5-point stencil 16384^2", (16384, 16384), moved=2 * 16384**2)
def stencil(u):
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


@case("sum of outer products 65536x64", (65536, 64), moved=65536 * 64)
def outer_products(x):
    return x.T @ x


@case("the same, 1024x64 f64", (1024, 64), dtype="float64")
def small_outer_products(x):
    return x.T @ x


@case("sum of squares 10^8", (MANY,), moved=MANY)
def sum_of_squares(x):
    return np.sum(x * x)


@case("column sums 32768x4096", ROWS, moved=CELLS)
def column_sums(x):
    return np.sum(x, axis=0)


@case("cumsum 32768x4096, rows", ROWS, moved=2 * CELLS)
def cumsum(x):
    return np.cumsum(x, axis=1)


def heat(u):
    for _ in range(100):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return u


def heat_for_jax(u):
    import jax

    def step(_, u):
        change = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.1 * change)

    return jax.lax.fori_loop(0, 100, step, u)


for side in (2048, 128):
    CASES[f"in-place heat {side}^2, 100 steps"] = Case(heat, ((side, side),), 0, jax=heat_for_jax)
CASES["chain on 1000 elements"] = Case(chain, ((1000,), (1000,)), 0)


@case(
    "MLP 4096x256x512x10, with gradient", (4096, 256), (256, 512), (512, 10), (4096, 10), wrt=(1, 2)
)  # fmt: skip
def mlp(x, w, v, y):
    z = np.maximum(x @ w, 0) @ v
    z = z - np.max(z, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - np.sum(z * y, axis=1))


def _on_tensors(make: Callable[[Callable], Callable]) -> Callable[[Case], Callable[[], Any]]:
    """A contender that makes functions of tensors; they are called with their gradient, which
    autograd finds in the calling thread: to wake its own takes as long as the rest on some hosts.
    """

    def call(case: Case) -> Callable[[], Any]:
        run, arguments = make(case.function), case.arguments()
        if not case.wrt:
            return lambda: run(*arguments)
        inputs = [arguments[k] for k in case.wrt]

        def gradient() -> Any:
            with torch.autograd.set_multithreading_enabled(False):
                return torch.autograd.grad(run(*arguments), inputs)

        return gradient

    return call


def _np_compile(function: Callable) -> Callable:
    return np_compile.compile(np_compile.wrap_numpy(function), backend="native")


def _torch(function: Callable) -> Callable:
    return torch.compile(torch.compiler.wrap_numpy(function), dynamic=False)


def _with(function: Callable, numpy: Any) -> Callable:
    """A function with another module in NumPy's place."""
    return FunctionType(function.__code__, {**function.__globals__, "np": numpy})


def _cupy(function: Callable) -> Callable:
    import cupy

    there = _with(function, cupy)

    def run(*tensors: torch.Tensor) -> Any:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            return there(*map(cupy.asarray, tensors))

    return run


def _jax(case: Case) -> Callable[[], Any]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory as well
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # that of the others
    form = case.jax or _with(case.function, jax.numpy)
    run = jax.jit(jax.grad(form, case.wrt) if case.wrt else form)
    arguments = [jax.dlpack.from_dlpack(t.detach()) for t in case.arguments()]
    return lambda: run(*arguments)


# Each makes a call of a case.
CONTENDERS: dict[str, Callable[[Case], Callable[[], Any]]] = {
    "np_compile": _on_tensors(_np_compile),
    "torch": _on_tensors(_torch),
    "eager": _on_tensors(np_compile.wrap_numpy),
    "cupy": _on_tensors(_cupy),
    "jax": _jax,
}
QUEUED = ("jax",)  # those on streams of their own, which events of torch's do not time


def event_times(
    run: Callable[[], Any], rounds: int, queued: bool = False
) -> tuple[float, float, float]:
    """Medians in microseconds: of a call on the device alone, of the host that calls it, and of a
    call until its result is there. queued: the first is that of one of many calls that wait for
    each other, or of the host, if that takes longer."""
    for _ in range(_WARM):
        run()
    torch.cuda.synchronize()
    device, host, whole = [], [], []
    for _ in range(rounds if queued else 0):
        before = time.perf_counter()
        for _ in range(_CALLS):
            run()
        torch.cuda.synchronize()
        device.append((time.perf_counter() - before) / _CALLS * 1e6)
    for _ in range(0 if queued else rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(_AHEAD)  # so that the host is ahead of the device
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        device.append(start.elapsed_time(end) * 1e3)
    for _ in range(rounds):
        torch.cuda.synchronize()
        before = time.perf_counter()
        for _ in range(_CALLS):
            run()
        host.append((time.perf_counter() - before) / _CALLS * 1e6)
    for _ in range(rounds):
        torch.cuda.synchronize()
        before = time.perf_counter()
        run()
        torch.cuda.synchronize()
        whole.append((time.perf_counter() - before) * 1e6)
    return statistics.median(device), statistics.median(host), statistics.median(whole)


def floor(moved: int, rounds: int) -> float:
    """What a copy of half so many bytes takes, in microseconds."""
    source = torch.rand(moved // 8, device="cuda")
    target = torch.empty_like(source)
    return event_times(lambda: target.copy_(source), rounds)[0]


def measure(name: str, contenders: list[str], rounds: int) -> dict[str, Any]:
    """A row of the table."""
    found = CASES[name]
    row: dict[str, Any] = {"program": name}
    if found.bytes:
        row["floor"] = floor(found.bytes, rounds)
    for contender in contenders:
        torch._dynamo.reset()  # it counts the compiles of all wrapped functions together
        try:
            times = event_times(CONTENDERS[contender](found), rounds, contender in QUEUED)
            row[contender], row[f"{contender} host"], row[f"{contender} whole"] = times
        except Exception as e:
            row[contender] = f"{type(e).__name__}: {e}"[:200]
    return row


_FIRST = """
import time, torch
import numpy as np
torch.rand(1000, device="cuda")
torch.cuda.synchronize()
import np_compile
from benchmarks.gpu import CASES, CONTENDERS
case = CASES["chain on 1000 elements"]
start = time.perf_counter()
CONTENDERS[{contender!r}](case)()
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def first_calls(contender: str) -> tuple[float, float]:
    """Seconds of the first call in a new process, but for the import of torch: with empty caches,
    and with those that this has left."""
    with tempfile.TemporaryDirectory() as folder:
        own = {
            "NP_COMPILE_CACHE_DIR": f"{folder}/np_compile",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "CUPY_CACHE_DIR": f"{folder}/cupy",
            "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",  # as of what is installed
            "PYTHONDONTWRITEBYTECODE": "",
        }
        code = [sys.executable, "-W", "ignore", "-c", _FIRST.format(contender=contender)]
        times = [
            subprocess.run(
                code, env={**os.environ, **own}, capture_output=True, text=True, check=True
            ).stdout.split()[-1]
            for _ in range(2)
        ]
    return float(times[0]), float(times[1])


def kmeans() -> str:
    """The example `kmeans_photo` on the device, against NumPy on this host."""
    found = importlib.util.spec_from_file_location(
        "kmeans_photo", _ROOT / "examples/kmeans_photo.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    figures = module.main(["--device=cuda", "--rounds=5", "--out="])
    return f"k-means example: {figures['ratio']:.1f} times as fast as NumPy on this host"


def table(rows: list[dict[str, Any]], contenders: list[str]) -> str:
    """The rows as text, in microseconds; of each contender on the device alone, of the host alone,
    and of a call with its result."""
    heads = "".join(c.rjust(24) for c in contenders)
    lines = ["program".ljust(34) + "floor".rjust(8) + heads]
    for row in rows:
        line = row["program"].ljust(34)
        line += f"{row['floor']:8.0f}" if "floor" in row else " " * 8
        for c in contenders:
            value = row.get(c)
            known = isinstance(value, float)
            parts = (value, row[f"{c} host"], row[f"{c} whole"]) if known else ()
            text = " ".join(f"{t:.0f}" if t > 99 else f"{t:.1f}" for t in parts)
            line += (text or str(value)[:22]).rjust(24)
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("programs", nargs="*", help="words of their names; none for all")
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np_compile.config.compile_in = "call"  # nothing is compiled beside what is measured
    names = [n for n in CASES if not options.programs or any(w in n for w in options.programs)]
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    empty = event_times(lambda: torch.cuda._sleep(0), options.rounds)
    print("an empty kernel: device, host and whole", " ".join(f"{t:.1f}" for t in empty))
    rows = []
    for name in names:
        rows.append(measure(name, options.contenders, options.rounds))
        print(table(rows[-1:], options.contenders).splitlines()[1], flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    print(table(rows, options.contenders))
    if not options.programs:
        for contender in options.contenders:
            empty, cached = first_calls(contender)
            print(f"first call of {contender}: {empty:.2f} s, with its cache {cached:.2f} s")
        print(kmeans())


if __name__ == "__main__":
    main()
