"""Measure one program in this process, the contenders turn by turn; the driver starts it.

Each line appended to the report file is a JSON object. {"doing": ...} comes before a contender is
called, so that the driver knows who crashed; {"out": ...} before this process ends because a first
call was stopped, which leaves compilers in no state to go on; {"result": ...} when all is known
about one size.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import json
import math
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .contenders import CONTENDERS, Contender, Unsupported
from .programs import PROGRAMS, SIZES, Program

ROUND_SECONDS = 0.005  # a round of one contender lasts at least so long
SIZE_SECONDS = 8.0  # all rounds of one size should not last longer
FEWEST_ROUNDS = 3
# A new thread often begins on the core of the one that made it; parting them takes the system time.
WARM_SECONDS = 0.1
# Threads of the contender before spin for this long before they sleep (libgomp's default).
PAUSE_SECONDS = 0.02


@dataclass
class Outcome:
    """What one contender did with one program and size. status: ok, wrong, failed, unsupported."""

    status: str = "ok"
    reason: str = ""
    median_s: float | None = None
    rounds_s: list[float] = field(default_factory=list)
    calls_per_round: int = 0
    first_call_s: float | None = None


class OutOfTime(BaseException):
    """A first call took longer than the limit. No Exception, so that no compiler catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """OutOfTime in this thread when the block lasts longer, where the system has such a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Runner:
    """One contender on one program and size, with arguments of its own."""

    def __init__(self, program: Program, call: Callable, pristine: tuple):
        self.program = program
        self.call = call
        self.pristine = pristine
        self.arguments = copy.deepcopy(pristine)
        self.drawn = [i for i, a in enumerate(pristine) if isinstance(a, np.random.Generator)]

    def restore(self) -> None:
        """Give the arguments that the program writes, and generators, their first values back."""
        for i in self.program.in_place:
            np.copyto(self.arguments[i], self.pristine[i])
        for i in self.drawn:
            self.arguments[i].bit_generator.state = self.pristine[i].bit_generator.state

    def results(self) -> list[np.ndarray]:
        """Call once; all results, those written in place included."""
        self.restore()
        returned = self.call(*self.arguments)
        if returned is None:
            returned = tuple(self.arguments[i].copy() for i in self.program.in_place)
        several = isinstance(returned, (tuple, list))
        return [np.asarray(r) for r in (returned if several else (returned,))]

    def seconds(self, calls: int) -> float:
        """Mean time of a call. Restoring arguments that are written is not counted."""
        clock = time.perf_counter
        call, arguments = self.call, self.arguments
        if not self.program.in_place and not self.drawn:
            start = clock()
            for _ in range(calls):
                call(*arguments)
            return (clock() - start) / calls
        total = 0.0
        for _ in range(calls):
            self.restore()
            start = clock()
            call(*arguments)
            total += clock() - start
        return total / calls


def difference(
    got: list[np.ndarray], expected: list[np.ndarray], rtol: float, same_dtype: bool
) -> str:
    """How results differ from NumPy's; empty if they agree.

    Integers and booleans must be equal, except images of bytes, which may be one level off. Floats
    may differ by rtol of the value or of the largest value.
    """
    if len(got) != len(expected):
        return f"{len(got)} results for {len(expected)}"
    for place, (g, e) in enumerate(zip(got, expected, strict=True)):
        where = f"result {place}: " if len(got) > 1 else ""
        if g.shape != e.shape:
            return f"{where}shape {g.shape} for {e.shape}"
        if same_dtype and g.dtype != e.dtype:
            return f"{where}dtype {g.dtype} for {e.dtype}"
        if e.dtype.kind in "biu":
            slack = 1.0 if e.dtype == np.uint8 else 0.0
            wrong = np.abs(g.astype(np.int64) - e.astype(np.int64)) > slack
        else:
            finite = np.abs(e[np.isfinite(e)])
            slack = rtol * float(finite.max(initial=0.0))
            wrong = ~np.isclose(g, e, rtol=rtol, atol=slack, equal_nan=True)
        if wrong.any():
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            return (
                f"{where}{int(wrong.sum())} of {e.size} elements differ, first at "
                f"{first}: {g[first]} for {e[first]}"
            )
    return ""


def words(error: BaseException) -> str:
    """The class and the first two lines of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]


def start(
    contender: Contender,
    program: Program,
    pristine: tuple,
    call: Callable | None,
    limit: float,
    expected: list[np.ndarray],
) -> tuple[Runner | None, Outcome]:
    """Build, if `call` is not built yet, call for the first time, and compare with NumPy.

    The runner is None if the contender cannot go on. The first call's time includes building, but
    no imports. OutOfTime if it lasts longer than the limit.
    """
    outcome = Outcome()
    try:
        contender.load()
        with limited(limit):
            begin = time.perf_counter()
            runner = Runner(program, call or contender.build(program, pristine), pristine)
            results = runner.results()
            outcome.first_call_s = time.perf_counter() - begin
            again = runner.results()
    except Unsupported as e:
        outcome.status, outcome.reason = "unsupported", str(e)
        return None, outcome
    except Exception as e:
        outcome.status, outcome.reason = "failed", words(e)
        return None, outcome
    for which, found in (("", results), ("second call: ", again)):
        text = difference(found, expected, program.rtol, contender.same_dtype)
        if text:
            outcome.status, outcome.reason = "wrong", which + text
            break
    return runner, outcome


def calls_for(runner: Runner) -> tuple[int, float]:
    """Calls that fill a round, and the seconds they take; before, some that warm up."""
    end = time.perf_counter() + WARM_SECONDS
    runner.seconds(2)
    while time.perf_counter() < end:
        runner.seconds(1)
    calls = 1
    while True:
        total = runner.seconds(calls) * calls
        if total >= ROUND_SECONDS:
            return calls, total
        calls = min(10 * calls, math.ceil(1.2 * calls * ROUND_SECONDS / max(total, 1e-9)))


def measure(
    program: Program,
    size: str,
    contenders: list[str],
    rounds: int,
    limit: float,
    built: dict[str, Callable],
    tell: Callable[[dict], None],
) -> dict[str, Outcome]:
    """Every contender's outcome on one size. NumPy is always run, to compare results with.

    `built` keeps what contenders built for a size before.
    """
    pristine = program.arguments(size)
    expected = Runner(program, program.function, pristine).results()
    outcomes: dict[str, Outcome] = {}
    runners: dict[str, Runner] = {}
    for name in contenders:
        tell({"doing": name, "size": size})
        runner, outcomes[name] = start(
            CONTENDERS[name], program, pristine, built.get(name), limit, expected
        )
        if runner is not None:
            built[name] = runner.call
            runners[name] = runner
    calls: dict[str, int] = {}
    total = 0.0
    for name, runner in runners.items():
        tell({"doing": name, "size": size})
        calls[name], once = calls_for(runner)
        total += 2 * once + PAUSE_SECONDS
    rounds = max(min(rounds, FEWEST_ROUNDS), min(rounds, int(SIZE_SECONDS / max(total, 1e-9))))
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name, runner in runners.items():
            tell({"doing": name, "size": size})
            time.sleep(PAUSE_SECONDS)
            runner.seconds(calls[name])  # caches and threads are the contender's own again
            outcomes[name].rounds_s.append(runner.seconds(calls[name]))
    gc.enable()
    for name in runners:
        outcomes[name].calls_per_round = calls[name]
        outcomes[name].median_s = statistics.median(outcomes[name].rounds_s)
    return outcomes


def load() -> None:
    """Import torch, then np_compile, so that OpenMP's threads wait as they do without np_compile.

    np_compile shortens their spinning for itself by a variable, which each OpenMP runtime reads
    when it is loaded; Numba's is loaded later. A choice of the user's stands.
    """
    chosen = "GOMP_SPINCOUNT" in os.environ
    import torch  # noqa: F401

    import np_compile  # noqa: F401

    if not chosen:
        os.environ.pop("GOMP_SPINCOUNT", None)


def first_call(program: Program, size: str, backend: str) -> dict[str, float]:
    """Seconds of np_compile's import and of a program's first call, torch being imported."""
    import torch  # noqa: F401

    arguments = program.arguments(size)
    begin = time.perf_counter()
    import np_compile

    imported = time.perf_counter()
    np_compile.compile(program.function, backend=backend)(*arguments)
    return {"import_s": imported - begin, "call_s": time.perf_counter() - imported}


def main(arguments: list[str] | None = None) -> None:
    """Measure and append to the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--report", required=True)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, required=True)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--first-call", metavar="BACKEND", help="measure a first call instead")
    options = parser.parse_args(arguments)
    with open(options.report, "a", encoding="utf-8", buffering=1) as report:

        def tell(line: dict[str, Any]) -> None:
            report.write(json.dumps(line) + "\n")

        if options.first_call:
            (size,) = options.sizes
            tell({"first_call": first_call(PROGRAMS[options.program], size, options.first_call)})
            return
        load()
        built: dict[str, Callable] = {}
        for size in options.sizes:
            try:
                outcomes = measure(
                    PROGRAMS[options.program], size, options.contenders, options.rounds,
                    options.limit, built, tell,
                )  # fmt: skip
            except OutOfTime:
                tell({"out": f"the first call took over {options.limit:g} s"})
                report.flush()
                os._exit(1)
            tell({"result": {name: asdict(o) for name, o in outcomes.items()}, "size": size})


if __name__ == "__main__":
    main()
