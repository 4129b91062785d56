"""Which faults the tests would notice: small changes of the code, one at a time.

    python -m tests.mutate [--jobs N] [WORD ...]

Each row of `mutations` is a change that makes the code wrong, and the tests that should fail
under it. It is applied in a copy of the tree, the tests run there, and a line says whether they
noticed. Words choose the rows whose text has one of them. The exit status is the number of changes
that nobody noticed. A row whose old text is not found exactly once is out of date, and an error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from .mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent
SECONDS = 600  # for the tests of a row; what never ends is noticed too


@dataclass(frozen=True)
class Outcome:
    """What a row's tests did: the word for it, how long they took, and what they printed."""

    word: str
    seconds: float
    text: str


def copy_of_tree(target: Path) -> None:
    """The files that git knows, or would take; the shim lies where the built package has it."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        path = Path(name)
        if path.parts[0] in ("np_compile", "shim", "tests", "benchmarks", "pyproject.toml"):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, place)
    (target / "np_compile" / "shim").symlink_to(target / "shim")


def tried(tree: Path, row: Mutation) -> Outcome:
    """Run the tests of a row under its change."""
    path = tree / row.file
    text = path.read_text()
    if text.count(row.old) != 1:
        return Outcome("OUT OF DATE", 0.0, f"{row.file} has the old text {text.count(row.old)}x")
    path.write_text(text.replace(row.old, row.new))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no"]
    command += [f"tests/{name}" for name in row.tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        word = {0: "NOT NOTICED"}.get(done.returncode, "noticed")  # below 0: it crashed
        word = "TESTS DO NOT RUN" if done.returncode > 1 else word
        printed = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        word, printed = "noticed", "the tests did not end"
    finally:
        path.write_text(text)
    return Outcome(word, time.perf_counter() - start, printed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="rows with one of these words")
    parser.add_argument("--jobs", type=int, default=1, help="rows at a time (default 1)")
    options = parser.parse_args()
    rows = [r for r in MUTATIONS if not options.words or any(w in str(r) for w in options.words)]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="np_compile_mutate_") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()  # those that no row changes now
        for job in range(options.jobs):
            copy_of_tree(Path(folder) / str(job))
            trees.put(Path(folder) / str(job))

        def outcome_of(row: Mutation) -> Outcome:
            tree = trees.get()
            try:
                return tried(tree, row)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            for row, outcome in zip(rows, pool.map(outcome_of, rows), strict=True):
                what = f"{outcome.seconds:6.1f} s  {row.file}: {row.new!r}"
                print(f"{outcome.word:16} {what}", flush=True)
                if outcome.word != "noticed":
                    missed += 1
                    print("\n".join(outcome.text.splitlines()[-3:]), flush=True)
    print(f"{len(rows) - missed} of {len(rows)} noticed")
    return missed


if __name__ == "__main__":
    sys.exit(main())
