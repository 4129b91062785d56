"""The first 30 calls of each program, with default settings, by turns with NumPy.

    python -m benchmarks.early_calls [--programs NAME ...] [--sizes small ...] [--calls N]
                                     [--held] [--json FILE]

Seconds are the calling thread's of a processor, and kernels run in one thread: what works beside
it, such as the C compiler, is not in them. For each program and size, in a process of its own with
an empty cache:

| figure | is |
|---|---|
| `ratio` | calls 4 to 30, each by the NumPy call beside it: the usual one |
| `first` | seconds of the first call beyond NumPy's, and of the first three |
| `kept` | the call after which calls of the kind are kept, or compiled whole; 0 if none is |

A compiler on the other half of a core takes a part of the calling thread's speed, now and then:
so each call is compared with the one beside it. Either comes first by turns, which costs it some
time, as it finds other things in the caches: of each order there is a median, and `ratio` is their
geometric mean. With `--held` nothing is compiled: it is what calls cost that wait, alone. That of a
call of 2 us is over the bar: to find out in C that it is to run as it stands takes 0.1 us.

At the end it lists what is over 1.05 of NumPy's time, and first calls over half a second.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import np_compile
from np_compile.kernels.build import beside

from .processes import figures_of
from .programs import PROGRAMS, SIZES
from .programs.registry import Program

SETTLED = 3  # calls after which none may be slower
BAR, LONG = 1.05, 0.5
_SHORT = 2e-3  # seconds: of shorter calls some are timed at once


def seconds_of(call: Callable, given: list[tuple]) -> float:
    """Processor seconds of a call, the mean of those with some arguments."""
    start = time.thread_time()
    for args in given:
        call(*args)
    return (time.thread_time() - start) / len(given)


def warm() -> None:
    """What is imported and compiled once in a process is no matter of one function, such as the C
    of kept calls; nor is the collection of garbage that is due after torch's import, for a tenth of
    a second."""
    other = np_compile.compile(lambda x: np.sin(x) + x.sum())
    for _ in range(50):
        other(np.ones(100))
        time.sleep(0.1)
        if other._keeper.kept or other._keeper.plain:
            break
    gc.collect()


def arguments(program: Program, size: str, many: int) -> list[tuple]:
    """Those of so many calls: the same ones, but where calls change them."""
    if program.in_place:
        return [program.arguments(size) for _ in range(many)]
    return [program.arguments(size)] * many


def measured(name: str, size: str, calls: int) -> dict[str, Any]:
    """The figures of a program, of one size."""
    program = PROGRAMS[name]
    fast = np_compile.compile(program.function)
    plain, compiled = [], []
    kept = 0
    for k in range(calls):
        many = 1
        if k >= SETTLED and plain[-1] < _SHORT:
            many = max(1, int(_SHORT / max(plain[-1], 1e-6)) // 8)
        turns = [
            (times, call, arguments(program, size, many))
            for times, call in ((plain, program.function), (compiled, fast))
        ]
        for times, call, given in turns if k % 2 or k < SETTLED else turns[::-1]:
            times.append(seconds_of(call, given))
        keeper, reading = fast._keeper, fast._reading
        known = bool(keeper is not None and keeper.kept) or getattr(reading, "runs", 0) > 0
        kept = kept or (k + 1 if known else 0)
        time.sleep(min(compiled[-1], 0.02))  # for the compiler
    usual = statistics.median(plain)
    return {
        "NumPy": usual,
        "ratio": statistics.geometric_mean(
            statistics.median(c / p for c, p in zip(compiled[k::2], plain[k::2], strict=True))
            for k in (SETTLED, SETTLED + 1)
        ),
        "first": compiled[0] - usual,
        "first three": sum(compiled[:SETTLED]) - SETTLED * usual,
        "kept": kept,
    }


def in_process(name: str, size: str, calls: int, held: bool) -> dict[str, Any]:
    """The same, in a process with an empty cache. held: see above."""
    command = [sys.executable, "-m", "benchmarks.early_calls", "--here", "--programs", name]
    command += ["--sizes", size, "--calls", str(calls)]
    return figures_of([*command, "--held"] if held else command)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, and return the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "medium"])
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--held", action="store_true", help="nothing is compiled meanwhile")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--here", action="store_true", help="one, in this process")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    names = options.programs or list(PROGRAMS)
    if options.here:
        warm()
        with beside.held() if options.held else contextlib.nullcontext():
            figures = measured(names[0], options.sizes[0], options.calls)
        print(json.dumps(figures))
        return figures
    found = {}
    for name in names:
        for size in options.sizes:
            row = found[f"{name} {size}"] = in_process(name, size, options.calls, options.held)
            texts = [f"{key} {value:.4g}" for key, value in row.items()]
            print(f"{name} {size}:", *texts, sep="  ", flush=True)
    slow = [f"{what}: {row['ratio']:.2f}" for what, row in found.items() if row["ratio"] > BAR]
    print(f"over {BAR} of NumPy's time after {SETTLED} calls:", *slow, sep="\n  ")
    long = [f"{what}: {row['first']:.2f}" for what, row in found.items() if row["first"] > LONG]
    print(f"first calls over {LONG} s:", *long, sep="\n  ")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
