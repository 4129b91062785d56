"""Heat on a plate: a stencil in place, for a fixed number of steps and until it settles.

    python examples/heat.py

Both functions change their argument in place. `diffuse` is a `for` loop; its body is compiled once,
however many steps there are. `settle` runs until the change is small: Python reads a value in each
step, and everything between two such reads stays compiled.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

import np_compile


def diffuse(u: np.ndarray, rate: float, steps: int) -> None:
    """`steps` explicit time steps of the heat equation, in place. u: f64[n,m]."""
    inner = u[1:-1, 1:-1]
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner += rate * (around - 4 * inner)


def settle(u: np.ndarray, tolerance: float) -> int:
    """Jacobi steps, in place, until no point changes by more than `tolerance`; their number."""
    steps = 0
    change = np.inf
    while change > tolerance:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = 0.25 * around
        change = np.abs(new - u[1:-1, 1:-1]).max()
        u[1:-1, 1:-1] = new
        steps += 1
    return steps


def plate(n: int) -> np.ndarray:
    """A cold plate with one edge at 100 degrees and one with a warm middle. f64[n,n]."""
    u = np.zeros((n, n))
    u[0, :] = 100.0
    u[n // 4 : 3 * n // 4, -1] = 50.0
    return u


def measure(function: Callable, n: int, args: tuple, rounds: int):
    """First call, median of later calls in seconds; plate and return value of the last one."""
    times = []
    for _ in range(rounds + 1):
        u = plate(n)
        start = time.perf_counter()
        result = function(u, *args)
        times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:]), u, result


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Run the comparison; the figures that were printed, by name."""
    parser = argparse.ArgumentParser(description="Heat on a plate, by NumPy and np_compile.")
    parser.add_argument(
        "--backend", default=None, help="native (default), inductor, aot_eager, eager"
    )
    parser.add_argument("--size", type=int, default=700, help="points along an edge")
    parser.add_argument("--steps", type=int, default=200, help="steps of the fixed-step part")
    parser.add_argument("--tolerance", type=float, default=0.1, help="of the settling part")
    parser.add_argument("--rounds", type=int, default=3, help="timed calls after the first")
    options = parser.parse_args(arguments)

    figures: dict[str, float] = {}
    print(f"plate of {options.size}x{options.size} points")
    print(f"{'':10} {'steps':>6} {'NumPy':>10} {'np_compile':>12} {'first call':>12} {'ratio':>7}")
    for function, args in ((diffuse, (0.2, options.steps)), (settle, (options.tolerance,))):
        name = function.__name__
        compiled = np_compile.compile(function, backend=options.backend)
        _, plain_s, plain_u, plain_steps = measure(function, options.size, args, options.rounds)
        first_s, compiled_s, compiled_u, compiled_steps = measure(
            compiled, options.size, args, options.rounds
        )
        if plain_steps != compiled_steps:
            raise AssertionError(f"{name}: {plain_steps} steps in NumPy, {compiled_steps} compiled")
        steps = options.steps if plain_steps is None else plain_steps
        print(
            f"{name:10} {steps:6} {plain_s:8.3f} s {compiled_s:10.3f} s {first_s:10.3f} s "
            f"{plain_s / compiled_s:7.1f}"
        )
        figures[f"{name}_steps"] = steps
        figures[f"{name}_ratio"] = plain_s / compiled_s
        figures[f"{name}_apart"] = float(np.abs(plain_u - compiled_u).max())
    apart = max(figures["diffuse_apart"], figures["settle_apart"])
    print(f"temperatures differ by at most {apart:.1e}")
    return figures


if __name__ == "__main__":
    main()
