"""What np_compile itself costs, apart from the kernels: recording, hand-over, small calls, loops.

    python benchmarks/overhead.py [--quick] [--json FILE] [--without torch]

All contenders run in one process, turn by turn, so that a slow moment of the machine meets all of
them. Times are medians of several rounds; ratios are medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import np_compile
from np_compile.backends import lookup

TARGET_CALL_US = 2.0
TARGET_SEGMENT_US = 15.0
TARGET_ELEMENT_LOOP = 5.0


def rounds_of(contenders: dict[str, Callable[[], object]], rounds: int, seconds: float) -> dict:
    """Seconds of one call of each contender, by round. Each round runs them all, in turn."""
    repeats = {}
    for name, call in contenders.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in contenders.items():
                n = repeats[name]
                start = time.perf_counter()
                for _ in range(n):
                    call()
                times[name].append((time.perf_counter() - start) / n)
    finally:
        gc.enable()
    return times


def ratio(times: dict, of: str, to: str) -> float:
    """Median over the rounds of one contender's time by another's."""
    return statistics.median(a / b for a, b in zip(times[of], times[to], strict=True))


class Precomputed:
    """A back end whose programs return tensors computed once: what is left is our own cost.

    direct: the last program and its arguments, to be called without np_compile.
    """

    def __init__(self) -> None:
        self.direct: Callable[[], object] = lambda: None

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list) -> Callable:
        results = [t.clone() for t in graph(*example_inputs)]

        def program(*inputs: torch.Tensor) -> list[torch.Tensor]:
            return results

        inputs = tuple(example_inputs)
        self.direct = lambda: program(*inputs)
        return program


def chain(length: int) -> Callable:
    """A function of so many recorded calls on one array."""
    scope: dict = {"np": np}
    body = "".join(f"    y = np.sin(y) * x\n" for _ in range(length // 2))  # noqa: F541
    exec(f"def f(x):\n    y = x\n{body}    return y\n", scope)
    scope["f"].recorded = True  # with an attribute of its own it is, in each call: none is kept
    return scope["f"]


def broken(breaks: int) -> Callable:
    """A function of two calls for each segment, `breaks` breaks and one segment more."""

    def f(x):
        y = x
        for _ in range(breaks):
            y = np.sin(y) * x
            np_compile.graph_break()
        return np.sin(y) * x

    return f


def recording(rounds: int, seconds: float) -> dict:
    """Cost of a recorded call and of a segment: differences of functions that have more."""
    x = np.ones(10)
    functions = {
        "2 calls": chain(2),
        "202 calls": chain(202),
        "1 segment": broken(0),
        "7 segments": broken(6),
    }
    back_ends = {name: Precomputed() for name in functions}
    compiled = {
        name: np_compile.compile(f, backend=back_ends[name]) for name, f in functions.items()
    }
    for f in compiled.values():
        f(x)
    contenders = {name: (lambda f=f: f(x)) for name, f in compiled.items()}
    contenders["a program"] = back_ends["1 segment"].direct
    times = rounds_of(contenders, rounds, seconds)
    call = statistics.median(
        (b - a) / 200 for a, b in zip(times["2 calls"], times["202 calls"], strict=True)
    )
    program = statistics.median(times["a program"])
    segment = statistics.median(
        (b - a) / 6 for a, b in zip(times["1 segment"], times["7 segments"], strict=True)
    )
    return {
        "recorded_call_us": call * 1e6,
        "segment_us": (segment - 2 * call - program) * 1e6,
        "whole_call_us": statistics.median(times["1 segment"]) * 1e6,
        "target_recorded_call_us": TARGET_CALL_US,
        "target_segment_us": TARGET_SEGMENT_US,
    }


def small(a, b):
    """The function of the small-call benchmark."""
    return np.sin(a) * b + 1


def small_calls(rounds: int, seconds: float, with_torch: bool) -> dict:
    """A whole call on 10 elements: µs, and the ratio to NumPy."""
    a, b = np.linspace(0, 1, 10), np.linspace(1, 2, 10)
    contenders: dict[str, Callable[[], object]] = {"NumPy": lambda: small(a, b)}
    for name in ("native", "eager", "inductor"):
        f = np_compile.compile(small, backend=name)
        contenders[f"np_compile, {name}"] = lambda f=f: f(a, b)
    if with_torch:
        g = torch.compile(small)
        contenders["torch.compile"] = lambda: g(a, b)
    expected = small(a, b)
    for name, call in contenders.items():
        np.testing.assert_allclose(call(), expected, err_msg=name)
    times = rounds_of(contenders, rounds, seconds)
    return {
        name: {"us": statistics.median(t) * 1e6, "ratio": ratio(times, name, "NumPy")}
        for name, t in times.items()
    }


def element_sum(x, y, n):
    """A loop over single elements."""
    s = 0.0
    for i in range(n):
        s += x[i] * y[i]
    return s


def element_loop(rounds: int, n: int) -> dict:
    """A loop over n single elements against plain NumPy; the limit is a factor of 5."""
    rng = np.random.default_rng(0)
    x, y = rng.random(n), rng.random(n)
    f = np_compile.compile(element_sum, backend="eager")
    if not np.isclose(f(x, y, n), element_sum(x, y, n), rtol=1e-12):
        raise AssertionError("the element loop gives another sum")
    times = rounds_of(
        {"NumPy": lambda: element_sum(x, y, n), "np_compile": lambda: f(x, y, n)}, rounds, 0.0
    )
    return {
        "elements": n,
        "numpy_s": statistics.median(times["NumPy"]),
        "np_compile_s": statistics.median(times["np_compile"]),
        "ratio": ratio(times, "np_compile", "NumPy"),
        "target_ratio": TARGET_ELEMENT_LOOP,
    }


def stencil(u, steps):
    """Time steps in place."""
    inner = u[1:-1, 1:-1]
    for _ in range(steps):
        inner += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)


class Counting:
    """A back end that counts what it compiles."""

    def __init__(self, name: str):
        self.name = name
        self.compiles = 0

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list) -> Callable:
        self.compiles += 1
        return lookup(self.name)(graph, example_inputs)


def stencil_steps(steps: int, size: int, backend: str, rounds: int) -> dict:
    """Many time steps: how often something was compiled, first call and later calls."""
    counting = Counting(backend)
    f = np_compile.compile(stencil, backend=counting)
    start_plate = np.random.default_rng(0).random((size, size))

    def run(function: Callable) -> tuple[float, np.ndarray]:
        u = start_plate.copy()
        start = time.perf_counter()
        function(u, steps)
        return time.perf_counter() - start, u

    first, got = run(f)
    _, expected = run(stencil)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    after_first = counting.compiles
    pairs = [(run(stencil)[0], run(f)[0]) for _ in range(rounds)]
    return {
        "steps": steps,
        "size": size,
        "back_end": backend,
        "compiles_first_call": after_first,
        "compiles_later": counting.compiles - after_first,
        "first_call_s": first,
        "numpy_s": statistics.median(a for a, _ in pairs),
        "np_compile_s": statistics.median(b for _, b in pairs),
        "speedup": statistics.median(a / b for a, b in pairs),
    }


def machine() -> dict:
    """What the figures were measured on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def show(results: dict) -> None:
    """Print all figures as text."""
    m = results["machine"]
    print(
        f"Python {m['python']}, NumPy {m['numpy']}, torch {m['torch']}, {m['system']}, "
        f"{m['cores']} cores, {m['threads']} threads\n"
    )
    r = results["recording"]
    print("cost of np_compile itself                       measured     target")
    print(f"  a recorded NumPy call, on repeat          {r['recorded_call_us']:9.2f} µs {2:7} µs")
    print(f"  a segment, beyond its back end's call     {r['segment_us']:9.2f} µs {15:7} µs")
    print(f"  a whole call of 2 NumPy calls             {r['whole_call_us']:9.2f} µs")
    print("\nsin(a) * b + 1 on 10 elements, one call         measured   to NumPy")
    for name, figure in results["small_calls"].items():
        print(f"  {name:41} {figure['us']:9.2f} µs {figure['ratio']:9.1f}")
    e = results["element_loop"]
    print(f"\ns += x[i] * y[i], {e['elements']} times                 measured   to NumPy")
    print(f"  {'NumPy':41} {e['numpy_s'] * 1e3:9.1f} ms {1:9.1f}")
    print(
        f"  {'np_compile':41} {e['np_compile_s'] * 1e3:9.1f} ms {e['ratio']:9.1f}"
        f"  (limit {e['target_ratio']:.0f})"
    )
    for s in results["stencil"]:
        print(
            f"\nstencil in place, {s['size']}x{s['size']}, {s['steps']} steps, {s['back_end']}: "
            f"{s['compiles_first_call']} compiles in the first call, {s['compiles_later']} later\n"
            f"  first call {s['first_call_s']:.2f} s, then {s['np_compile_s']:.3f} s; "
            f"NumPy {s['numpy_s']:.3f} s; {s['speedup']:.2f} times as fast"
        )


def main(arguments: list[str] | None = None) -> dict:
    """Measure, print, and return all figures."""
    parser = argparse.ArgumentParser(description="What np_compile itself costs.")
    parser.add_argument("--quick", action="store_true", help="few rounds, small sizes, eager only")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file; - for stdout")
    parser.add_argument("--without", choices=["torch"], action="append", default=[])
    options = parser.parse_args(arguments)
    quick = options.quick
    rounds, seconds = (3, 0.01) if quick else (15, 0.1)
    np_compile.config.compile_in = "call"
    results: dict = {"machine": machine()}
    results["recording"] = recording(rounds, seconds)
    results["element_loop"] = element_loop(3 if quick else 7, 10_000 if quick else 100_000)
    stencils = [(1000, 700, "inductor"), (1000, 64, "inductor")]
    results["stencil"] = [
        stencil_steps(steps, size, backend, 1 if quick else 3)
        for steps, size, backend in ([(50, 64, "eager")] if quick else stencils)
    ]
    with_torch = "torch" not in options.without and not quick
    results["small_calls"] = small_calls(rounds, seconds, with_torch)
    show(results) if options.json != "-" else json.dump(results, sys.stdout, indent=2)
    if options.json and options.json != "-":
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
            file.write("\n")
    return results


if __name__ == "__main__":
    main()
