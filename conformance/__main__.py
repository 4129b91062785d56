"""The command line: see `python -m conformance --help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from . import array_api, coverage, expected, numpy_tests
from .fuzz import KINDS
from .reasons import REASONS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser(
        "numpy", help="NumPy's own test files, as the installed wheel has them"
    )
    own.add_argument("--compiled", action="store_true", help="each test function runs compiled")
    own.add_argument("--backend", default="eager", help="of --compiled (default: eager)")
    own.add_argument("--plain", action="store_true", help="NumPy itself, to compare with")
    own.add_argument("--files", nargs="+", default=(), help="parts of names, as lib/test_arraypad")
    api = commands.add_parser("array-api", help="the test suite of the array API standard")
    api.add_argument("--suite", type=Path, required=True, help="a checkout of array-api-tests")
    api.add_argument("--examples", type=int, default=20, help="of each property (default: 20)")
    api.add_argument("--plain", action="store_true", help="NumPy itself, to compare with")
    for command in (own, api):
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
        command.add_argument("--update", action="store_true", help="note what fails as known")
        command.add_argument("--details", type=Path, help="a file for all that failed, as JSON")
    commands.add_parser("coverage", help="write docs/coverage.md")
    fuzz = commands.add_parser("fuzz", help="random programs, plainly and compiled")
    fuzz.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    fuzz.add_argument("--seed", type=int, default=0, help="the same programs for the same seed")
    fuzz.add_argument("--backend", default="native", help="(default: native)")
    fuzz.add_argument("--loops", choices=("auto", "whole", "recorded"), help="(default: mixed)")
    fuzz.add_argument("--device", help="on which arrays live, as cuda (default: host memory)")
    fuzz.add_argument("--kind", choices=KINDS, help="(default: all)")
    fuzz.add_argument("--found", type=Path, default=Path("found"), help="folder of what is found")
    return parser.parse_args()


def _numpy(a: argparse.Namespace) -> int:
    mode = f"compiled:{a.backend}" if a.compiled else "numpy" if a.plain else "shim"
    found = numpy_tests.run(numpy_tests.files(a.files), mode, a.jobs)
    total: Counter = Counter()
    print(f"{'file':<40} {'functions':>9} {'passed':>7} {'%':>6}")
    for path, functions in found.items():
        states = Counter(f.state for f in functions.values())
        total += states
        n = states["passed"] + states["failed"]
        if n:
            print(
                f"{numpy_tests.short(path):<40} {n:>9} {states['passed']:>7} "
                f"{100 * states['passed'] / n:>6.1f}"
            )
    n = total["passed"] + total["failed"]
    print(
        f"{'all in scope':<40} {n:>9} {total['passed']:>7} "
        f"{100 * total['passed'] / max(n, 1):>6.1f}"
    )
    print(f"private names: {total['private']}, skipped: {total['skipped']}")
    functions = [f for one in found.values() for f in one.values()]
    if a.compiled:
        captured = sum(f.state == "passed" and f.segments > 0 for f in functions)
        print(f"passed with compiled segments: {captured}")
    failures = {f.name: f.reason for f in functions if f.state == "failed"}
    if a.details:
        details = {f.name: [f.why, f.failing] for f in functions if f.state == "failed"}
        a.details.write_text(json.dumps(details, indent=1), encoding="utf-8")
    suite = "numpy-compiled" if a.compiled else "numpy-plain" if a.plain else "numpy"
    return _close(suite, failures, {f.name for f in functions}, a.update)


def _close(suite: str, failures: dict[str, str], seen: set[str], update: bool) -> int:
    for reason, n in Counter(failures.values()).most_common():
        print(f"{n:>6} {reason}: {REASONS.get(reason, '')}")
    if update:
        expected.write(suite, failures, seen)
        return 0
    new, fixed = expected.compare(suite, failures, seen)
    for test in new:
        print(f"fails: {test} ({failures[test]})")
    for test in fixed:
        print(f"known to fail, and passes: {test}")
    return 1 if new or fixed else 0


def _fuzz(a: argparse.Namespace) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch starts its threads: it forks
    from .fuzz.driver import Fuzzing

    fuzzing = Fuzzing(a.seed, a.backend, a.loops, a.found, a.device)
    findings = fuzzing.run([a.kind] if a.kind else list(KINDS), a.minutes * 60)
    print(fuzzing.told())
    return 1 if findings else 0


def main() -> int:
    a = _arguments()
    if a.command == "fuzz":
        return _fuzz(a)
    if a.command == "numpy":
        return _numpy(a)
    if a.command == "array-api":
        failures, passed = array_api.run(a.suite, a.examples, a.plain, a.jobs)
        print(f"array API: {len(passed)} of {len(failures) + len(passed)}")
        if a.details:
            a.details.write_text(json.dumps(failures, indent=1), encoding="utf-8")
        reasons = {test: why.partition(":")[0] for test, why in failures.items()}
        return _close(
            "array-api-plain" if a.plain else "array-api", reasons, {*failures, *passed}, a.update
        )
    coverage.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
