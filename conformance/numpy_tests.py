"""NumPy's own test files, run in worker processes, and what came of each test function."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = Path(np.__file__).parent
FILE_SECONDS = 1800  # for one file


def scope() -> dict:
    """The lists of scope.toml."""
    return tomllib.loads((HERE / "scope.toml").read_text(encoding="utf-8"))


def short(path: Path) -> str:
    """The name of a test file in lists: package and stem."""
    return f"{path.relative_to(ROOT).parts[0]}/{path.stem}"


def files(names: Iterable[str] = ()) -> list[Path]:
    """The test files in scope; of these the ones whose names have one of `names` in them."""
    lists = scope()
    found = [
        path
        for package in lists["packages"]
        for path in sorted((ROOT / package / "tests").glob("test_*.py"))
        if short(path) not in lists["files"]
    ]
    wanted = tuple(names)
    return [p for p in found if not wanted or any(w in short(p) for w in wanted)]


@dataclass
class Function:
    """A test function: what its parameter sets did, and why the first that failed did."""

    name: str
    outcomes: Counter = field(default_factory=Counter)
    why: str = ""
    private: bool = False
    segments: int = 0  # compiled ones, of all its parameter sets
    failing: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """passed, failed, skipped (all sets were) or private."""
        if self.private:
            return "private"
        if self.outcomes["failed"]:
            return "failed"
        return "passed" if self.outcomes["passed"] else "skipped"

    @property
    def reason(self) -> str:
        return self.why.partition(":")[0]


def _worker(words: list[str], environment: dict[str, str], timeout: float) -> int:
    """Run a worker process to its end; its exit status. subprocess.TimeoutExpired: it was late."""
    done = subprocess.run(
        [sys.executable, "-m", "conformance.worker", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE.parent,
        stdin=subprocess.DEVNULL, env=environment, timeout=timeout,
    )  # fmt: skip
    return done.returncode


def run_file(path: Path, mode: str, worker: Callable = _worker) -> dict[str, Function]:
    """All test functions of a file by id. Each crash of the process costs the test that ran."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", NPY_AVAILABLE_MEM="0 B")
    if mode.startswith("compiled"):
        environment["NP_COMPILE_PLAIN"] = "never"
    functions: dict[str, Function] = {}
    ends = time.monotonic() + FILE_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        results, done = Path(folder, "results"), Path(folder, "done")
        results.touch()
        done.touch()
        finished: set[str] = set()
        while True:
            words = [mode, str(path), str(results), str(done)]
            try:
                status = worker(words, environment, ends - time.monotonic())
                over = status in (0, 1, 5)
            except subprocess.TimeoutExpired:
                over = False
            started = _read(results, functions, finished)
            if over:
                return functions
            left = started - finished
            late = time.monotonic() > ends
            why = "late: the file" if late else f"crash: exit status {status}"
            for test in left:
                _note(functions, test, "failed", why, False)
            if late or not left:
                for f in functions.values():
                    if not f.outcomes:
                        f.outcomes["failed"], f.why = 1, why
                return functions
            finished |= left
            results.write_text("", encoding="utf-8")
            done.write_text("\n".join(finished), encoding="utf-8")


def _read(results: Path, functions: dict[str, Function], finished: set[str]) -> set[str]:
    started = set()
    for line in results.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "functions" in entry:
            for name in entry["functions"]:
                functions.setdefault(name, Function(name))
        elif "start" in entry:
            started.add(entry["start"])
        elif "id" in entry:
            finished.add(entry["id"])
            _note(functions, entry["id"], entry["outcome"], entry["why"], bool(entry["private"]))
            functions[entry["id"].partition("[")[0]].segments += entry["segments"]
    return started


def _note(functions: dict[str, Function], test: str, outcome: str, why: str, private: bool) -> None:
    name = test.partition("[")[0]
    f = functions.setdefault(name, Function(name))
    f.outcomes[outcome] += 1
    f.private |= private
    if outcome == "failed":
        f.failing.append(test)
        f.why = f.why or why


def collected(path: Path) -> set[str]:
    """The test functions that a file has with NumPy itself."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        results.touch()
        subprocess.run(
            [sys.executable, "-m", "conformance.worker", "collect", str(path), str(results)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE.parent,
        )  # fmt: skip
        functions: dict[str, Function] = {}
        _read(results, functions, set())
    return set(functions)


def run(paths: list[Path], mode: str, jobs: int) -> dict[Path, dict[str, Function]]:
    """All files, some at a time, the largest first. Functions that did not load have failed."""

    def one(path: Path) -> dict[str, Function]:
        functions = run_file(path, mode)
        for name in collected(path) - set(functions):
            functions[name] = Function(name, Counter(failed=1), "lost: its module did not load")
        print(f"{short(path)}: {_told(functions)}", file=sys.stderr, flush=True)
        return functions

    ordered = sorted(paths, key=lambda p: -p.stat().st_size)
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(ordered, pool.map(one, ordered), strict=True))
    return {p: found[p] for p in paths}


def _told(functions: dict[str, Function]) -> str:
    states = Counter(f.state for f in functions.values())
    return ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
