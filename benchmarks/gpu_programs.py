"""The benchmark programs on a CUDA device, against CuPy there and the CPU back end: calls until
their results are there.

python -m benchmarks.gpu_programs [PROGRAM ...] [--size large] [--least N] [--seconds S]

Programs whose arguments have fewer than N elements are left out; so are those of the group `loops`,
but where they or the group are named. A ratio above 1: np_compile on tensors of the device is the
faster one. `arrays` are NumPy's, under `torch.device("cuda")`.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import np_compile

from .contenders import rebound
from .measure import OutOfTime, limited
from .programs import LOOPS, PROGRAMS, SIZES, Program

_WARM = 5  # calls before any is timed
_CALLS = 15
CONTENDERS = ("device", "arrays", "cupy", "cpu")


def _elements(arguments: tuple) -> int:
    return sum(a.size for a in arguments if isinstance(a, np.ndarray))


def call_of(contender: str, program: Program, arguments: tuple) -> Callable[[], Any]:
    """A call of a program by a contender, on arrays of its own."""
    function = program.loss or program.function
    if contender == "cpu":
        fast = np_compile.compile(function, backend="native")
        mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        return lambda: fast(*mine)
    if contender == "arrays":
        fast = np_compile.compile(function, backend="native")
        mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]

        def call() -> Any:
            with torch.device("cuda"):
                return fast(*mine)

        return call
    if contender == "device":
        fast = np_compile.compile(np_compile.wrap_numpy(function), backend="native")
        there = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in arguments]
        return lambda: fast(*there)
    import cupy

    own = rebound(function, {"np": cupy})
    arrays = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    return lambda: own(*arrays)


def milliseconds(call: Callable[[], Any], limit: float) -> float:
    """The median of some calls, each until the device is done; OutOfTime after so many seconds."""
    times = []
    with limited(limit):
        for k in range(_WARM + _CALLS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            if k >= _WARM:
                times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def row(program: Program, arguments: tuple, limit: float) -> dict[str, float | str]:
    """Milliseconds by contender, or what stood in the way."""
    found: dict[str, float | str] = {}
    for contender in CONTENDERS:
        try:
            found[contender] = milliseconds(call_of(contender, program, arguments), limit)
        except OutOfTime:
            found[contender] = "time"
        except Exception as e:
            found[contender] = type(e).__name__
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("programs", nargs="*", help="names; none for all")
    parser.add_argument("--size", default="large", choices=SIZES)
    parser.add_argument("--least", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np_compile.config.compile_in = "call"  # nothing is compiled beside what is measured
    print("program".ljust(24) + "elements".rjust(12) + "".join(c.rjust(12) for c in CONTENDERS)
          + "".join(f"{c}/device".rjust(14) for c in CONTENDERS[1:]))  # fmt: skip
    ratios: dict[str, list[float]] = {c: [] for c in CONTENDERS[1:]}
    for name, program in PROGRAMS.items():
        if options.programs and not {name, program.group} & {*options.programs}:
            continue
        if not options.programs and program.group == LOOPS:
            continue
        arguments = program.arguments(options.size)
        if _elements(arguments) < options.least:
            continue
        found = row(program, arguments, options.seconds)
        line = name.ljust(24) + f"{_elements(arguments):12d}"
        line += "".join(_text(found[c]).rjust(12) for c in CONTENDERS)
        for c in CONTENDERS[1:]:
            ours, its = found["device"], found[c]
            if isinstance(ours, float) and isinstance(its, float):
                ratios[c].append(its / ours)
                line += f"{its / ours:14.2f}"
            else:
                line += "".rjust(14)
        print(line, flush=True)
    for c, values in ratios.items():
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            slower = sum(v < 1 for v in values)
            print(
                f"{c}: {mean:.2f} in the geometric mean of {len(values)}; {slower} slower than it"
            )


def _text(value: float | str) -> str:
    return f"{value:.3f}" if isinstance(value, float) else value[:11]


if __name__ == "__main__":
    main()
