"""A program of many compiled functions, each of them called a few times, by turns with NumPy.

    python -m benchmarks.many_functions [--functions N] [--rounds N] [--size small] [--json FILE]

The functions are those of the benchmark's programs, all in one process with an empty cache, with
default settings. In each round each function is called once, so that what one has compiled for it
delays others. For each round:

| figure | is |
|---|---|
| `NumPy`, `beyond` | seconds that NumPy took, and that compiled functions took longer than that |
| `clock` | the latter by a clock, with what the compiler took of the processors |
| `usual` | the median, over the functions, of a call by NumPy's |
| `compiled` | functions of which calls are kept, or compiled whole |

But for `clock`, seconds are the calling thread's of a processor.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import np_compile

from .early_calls import arguments, warm
from .processes import figures_of
from .programs import PROGRAMS, SIZES


def measured(names: list[str], size: str, rounds: int) -> dict[str, Any]:
    """The figures of each round of calls of these programs' functions."""
    functions = {name: np_compile.compile(PROGRAMS[name].function) for name in names}
    found = []
    for k in range(rounds):
        seconds: dict[str, list[float]] = {"plain": [], "compiled": []}
        clocks = {"plain": 0.0, "compiled": 0.0}
        for name, fast in functions.items():
            turns = [("plain", PROGRAMS[name].function), ("compiled", fast)]
            for which, call in turns if k % 2 else turns[::-1]:
                (args,) = arguments(PROGRAMS[name], size, 1)
                clock, start = time.perf_counter(), time.thread_time()
                call(*args)
                seconds[which].append(time.thread_time() - start)
                clocks[which] += time.perf_counter() - clock
        plain, compiled = seconds["plain"], seconds["compiled"]
        found.append({
            "NumPy": sum(plain),
            "beyond": sum(compiled) - sum(plain),
            "clock": clocks["compiled"] - clocks["plain"],
            "usual": statistics.median(c / p for c, p in zip(compiled, plain, strict=True)),
            "compiled": sum(map(is_compiled, functions.values())),
        })  # fmt: skip
    return {"rounds": found}


def is_compiled(fast: Any) -> bool:
    """Whether some calls of a function are kept, or compiled whole."""
    keeper, reading = fast._keeper, fast._reading
    return bool(keeper is not None and keeper.kept) or getattr(reading, "runs", 0) > 0


def main(given: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure, print, and return the figures of the rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--functions", type=int, default=len(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args(given)
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    if options.here:
        warm()
        gc.collect()
        made = measured([*PROGRAMS][: options.functions], options.size, options.rounds)
        print(json.dumps(made))
        return made["rounds"]  # type: ignore[no-any-return]
    command = [sys.executable, "-m", "benchmarks.many_functions", "--here", "--size", options.size]
    command += ["--functions", str(options.functions), "--rounds", str(options.rounds)]
    rounds: list[dict[str, Any]] = figures_of(command)["rounds"]
    for k, row in enumerate(rounds, 1):
        print(f"round {k}:", *[f"{key} {value:.4g}" for key, value in row.items()], sep="  ")
    first, later = sum(r["beyond"] for r in rounds[:3]), rounds[3:]
    print(f"beyond NumPy in the first three rounds: {first:.2f} s")
    if later:
        ratio = 1 + sum(r["beyond"] for r in later) / sum(r["NumPy"] for r in later)
        print(f"later rounds, of NumPy's time: {ratio:.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(rounds, indent=1), encoding="utf-8")
    return rounds


if __name__ == "__main__":
    main()
