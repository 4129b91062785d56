"""What other array sizes cost: compiles, calls that wait, and kernels for many sizes.

    python -m benchmarks.sizes [PART ...] [--programs NAME ...] [--rounds N] [--json FILE]

| part | measures |
|---|---|
| `history` | 30 sizes and 30 integers of one function, default settings: calls over 30 ms |
| `compiles` | the benchmark programs at 10 sizes each: compiles of each segment |
| `new` | a call whose size is new, against one that is kept for its size: all but the kernels |
| `kernels` | programs for many sizes against those for one: repeated calls, by turns |
| `index_list` | an index list that grows in a loop, 400 x 400: first call, and later ones |
| `transformer` | a transformer's forward pass at 20 lengths: compiles, and calls that wait |
| `first` | first calls that wait for their compile, with an empty cache and with a full one |

Each part begins with an empty cache, in a process of its own, and says what it has found of each
program on the standard error, at once. The seconds of `first` are those of processors, compilers
included. `kernels` takes up to `--rounds` calls each way, or what fits into two seconds, of at
least five.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import np_compile
from np_compile import config

from .processes import figures_of, figures_of_runs
from .programs import PROGRAMS
from .programs.registry import Program

WAIT = 0.03  # seconds: a call that takes longer has kept its user waiting
SIZES = 10
LEAST = 10_000  # elements of the largest argument from which kernels are compared
SETTLED = 0.3  # seconds of a processor, of calls before kernels are compared
FEWEST, LONG = 5, 2.0  # rounds in which kernels are compared, and seconds after which these do
_SMALL = 8  # extents up to this are no sizes: taps, colours, classes


def sizes_of(program: Program, size: str, count: int) -> Iterator[tuple]:
    """Arguments of so many sizes, from one of the program's own on."""
    base = program.sizes[size]
    for k in range(count):
        grown = [n if n <= _SMALL else int(n * (1 + 0.07 * k)) + k % 2 for n in base]
        yield program.make(np.random.default_rng(k), *grown)


def seconds_of(call: Callable, *args: Any) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def say(part: str, name: str, figure: float) -> None:
    """Print a figure while a part goes on."""
    print(f"{part}  {name}: {figure:.4g}", file=sys.stderr, flush=True)


def settle(call: Callable, args: tuple) -> None:
    """Call until such calls are kept: what serves new sizes is left after as long as that costs."""
    start, calls = time.thread_time(), 0
    while calls < 4 or time.thread_time() - start < SETTLED:
        call(*args)
        calls += 1


def history(_: argparse.Namespace) -> dict[str, Any]:
    """30 sizes and 30 integers, as a user meets them: nothing waits for the compiler."""

    def f(x: np.ndarray, s: int) -> Any:
        return np.sin(x * s) + s

    fast = np_compile.compile(f)
    times = []
    for k in range(30):
        x = np.random.default_rng(k).standard_normal(20_000 + 531 * k)
        times += [seconds_of(fast, x, s) for s in (1, k + 2)]
    return {"calls": len(times), "over 30 ms": sum(t > WAIT for t in times), "longest": max(times)}


def compiles(options: argparse.Namespace) -> dict[str, Any]:
    """Compiles of the benchmark programs at 10 sizes each, the first ones included."""
    found = {}
    with config.patch(compile_in="call", plain="never", recompile_limit=1000):
        for program in chosen(options):
            fast = np_compile.compile(program.function)
            for args in sizes_of(program, "small", SIZES):
                fast(*args)
            made = np_compile.recompiles(fast)
            segments = {(tuple(c.calls), c.line) for c in made}
            found[program.name] = {"compiles": len(made), "segments": len(segments)}
            say("compiles", program.name, len(made))
    most = [name for name, row in found.items() if row["compiles"] > 2 * row["segments"]]
    return {"programs": found, "more than 2 a segment": most}


def new(options: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of a call with a new size, and of a call that is kept for one."""
    found = {}
    with config.patch(compile_in="call", plain="never", recompile_limit=1000):
        for program in chosen(options):
            fast = np_compile.compile(program.function)
            for args in sizes_of(program, "small", 4):
                fast(*args)
            before = len(np_compile.recompiles(fast))
            several = list(sizes_of(program, "small", 24))[4:]
            fresh = statistics.median(seconds_of(fast, *args) for args in several) * 1e6
            if len(np_compile.recompiles(fast)) > before:
                continue  # some of the calls have compiled
            alone, args = np_compile.compile(program.function, dynamic=False), several[10]
            kept = min(seconds_of(alone, *args) for _ in range(20)) * 1e6
            found[program.name] = {"new": fresh, "kept": kept, "over": fresh - kept}
            say("new", program.name, fresh - kept)
    over = [row["over"] for row in found.values()]
    return {
        "programs": found,
        "median over a kept call, us": statistics.median(over) if over else None,
        "over 100 us": [name for name, row in found.items() if row["over"] > 100],
    }


def kernels(options: argparse.Namespace) -> dict[str, Any]:
    """Times of programs for many sizes by those for one, from 10^4 elements on."""
    found = {}
    with config.patch(compile_in="call", plain="never", recompile_limit=1000):
        for program in chosen(options):
            for size in ("medium", "large"):
                args = program.arguments(size)
                if max(getattr(a, "size", 1) for a in args) < LEAST:
                    continue
                one = np_compile.compile(program.function, dynamic=False)
                many = np_compile.compile(program.function)
                for other in list(sizes_of(program, size, 3))[1:]:
                    many(*other)
                calls = {"one": one, "many": many}
                times: dict[str, list[float]] = {name: [] for name in calls}
                for call in calls.values():
                    settle(call, args)
                start = time.perf_counter()
                for k in range(options.rounds):
                    if k >= FEWEST and time.perf_counter() - start > LONG:
                        break
                    for name, call in calls.items():
                        times[name].append(seconds_of(call, *args))
                found[f"{program.name} {size}"] = min(times["many"]) / min(times["one"])
                say("kernels", f"{program.name} {size}", found[f"{program.name} {size}"])
    ratios = list(found.values())
    return {
        "ratios": found,
        "geometric mean": statistics.geometric_mean(ratios) if ratios else None,
        "over 1.3": [name for name, ratio in found.items() if ratio > 1.3],
    }


def index_list(_: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the first call, of later ones, and of NumPy."""

    def spread(distance: np.ndarray, radius: float) -> list[int]:
        chosen = [0]
        for i in range(1, len(distance)):
            if distance[i, chosen].min() > radius:
                chosen.append(i)
        return chosen

    points = np.random.default_rng(0).random((400, 3))
    distance = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    fast = np_compile.compile(spread)
    first = seconds_of(fast, distance, 0.1)
    later = [seconds_of(fast, distance, 0.1) for _ in range(9)]
    plain = [seconds_of(spread, distance, 0.1) for _ in range(9)]
    return {
        "first call": first, "later calls": statistics.median(later),
        "NumPy": statistics.median(plain),
    }  # fmt: skip


def transformer_block(x: np.ndarray, w: list[np.ndarray], heads: int) -> np.ndarray:
    """Attention with a causal mask, and a layer of neurons, each with its norm."""
    n, d = x.shape

    def norm(a: np.ndarray) -> np.ndarray:
        mean = a.mean(axis=-1, keepdims=True)
        return (a - mean) / np.sqrt(a.var(axis=-1, keepdims=True) + 1e-5)

    q, k, v = (norm(x) @ w[0]).reshape(n, 3, heads, d // heads).transpose(1, 2, 0, 3)
    score = q @ k.transpose(0, 2, 1) / np.sqrt(d // heads)
    score = np.where(np.tril(np.ones((n, n), bool)), score, -1e9)
    score = np.exp(score - score.max(axis=-1, keepdims=True))
    score = score / score.sum(axis=-1, keepdims=True)
    x = x + (score @ v).transpose(1, 0, 2).reshape(n, d) @ w[1]
    h = norm(x) @ w[2]
    return x + 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h**3))) @ w[3]


def transformer(_: argparse.Namespace) -> dict[str, Any]:
    """Compiles at 20 lengths where calls wait for them, and calls that wait where they need not."""
    rng = np.random.default_rng(0)
    d, heads = 64, 4
    weights = [rng.standard_normal(s) * 0.1 for s in ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))]
    lengths = [int(n) for n in rng.permutation(np.arange(17, 137, 6))]

    def run(fast: Callable) -> list[float]:
        inputs = [rng.standard_normal((n, d)) for n in lengths]
        return [seconds_of(fast, x, weights, heads) for x in inputs]

    with config.patch(compile_in="call", plain="never"):
        fast = np_compile.compile(transformer_block)
        waited = run(fast)
    beside = run(np_compile.compile(transformer_block))
    return {
        "compiles": [str(c)[:160] for c in np_compile.recompiles(fast)],
        "longest call": max(waited), "median call": statistics.median(waited),
        "default setting: over 30 ms": sum(t > WAIT for t in beside),
    }  # fmt: skip


def first(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of first calls, in a process with an empty cache, and in one that finds all in it."""
    command = [sys.executable, "-m", "benchmarks.sizes", "first_calls", "--here", "--programs"]
    runs = figures_of_runs([*command, *(p.name for p in chosen(options))], 2)
    found = dict(zip(("cold", "warm"), runs, strict=True))
    long = {"cold": 2.0, "warm": 0.1}
    return {
        "programs": {p: {way: times[p] for way, times in found.items()} for p in runs[0]},
        **{f"{way}, median": statistics.median(times.values()) for way, times in found.items()},
        **{
            f"{way}, over {long[way]}": [p for p, seconds in times.items() if seconds > long[way]]
            for way, times in found.items()
        },
    }


def first_calls(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of first calls in this process, beyond what NumPy takes."""
    found = {}
    with config.patch(compile_in="call", plain="never"):
        np_compile.compile(lambda x: -x)(np.ones(3))  # imports
        for program in chosen(options):
            args, again = program.arguments("small"), program.arguments("small")
            before = _spent()
            np_compile.compile(program.function)(*args)
            after = _spent()
            program.function(*again)
            found[program.name] = after - before - (_spent() - after)
            say("first", program.name, found[program.name])
    return found


def _spent() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    part.__name__: part
    for part in (history, compiles, new, kernels, index_list, transformer, first, first_calls)
}


def chosen(options: argparse.Namespace) -> list[Program]:
    """The programs that were asked for."""
    return [PROGRAMS[name] for name in options.programs or PROGRAMS]


def in_process(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a part, measured in a process with an empty cache."""
    command = [sys.executable, "-m", "benchmarks.sizes", part, "--here"]
    command += ["--rounds", str(options.rounds)]
    if options.programs:
        command += ["--programs", *options.programs]
    return figures_of(command)


def shown(figures: dict[str, Any], indent: str = "  ") -> Iterator[str]:
    """Figures as lines."""
    for key, value in figures.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from shown(value, indent + "  ")
        elif isinstance(value, list) and any(isinstance(v, str) for v in value):
            yield f"{indent}{key}: {len(value)}"
            yield from (f"{indent}  {v}" for v in value)
        else:
            text = f"{value:.4g}" if isinstance(value, float) else value
            yield f"{indent}{key}: {text}"


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure the parts that were asked for; print and return their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--here", action="store_true", help="one part, in this process")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    if options.here:
        (part,) = options.parts
        figures = PARTS[part](options)
        print(json.dumps(figures))
        return figures
    found = {}
    for part in options.parts or [part for part in PARTS if part != first_calls.__name__]:
        found[part] = in_process(part, options)
        print(part, *shown(found[part]), sep="\n", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
