"""Failures that are known: one a line, reason and id, in `expected/<suite>.txt`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "expected"


def read(suite: str) -> dict[str, str]:
    """The reason of each known failure, by id."""
    path = FOLDER / f"{suite}.txt"
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {
        test: reason
        for reason, _, test in (line.partition(" ") for line in lines if line and line[0] != "#")
    }


def write(suite: str, failures: dict[str, str], seen: set[str]) -> None:
    """Note what fails now, in place of what was known of the tests that were seen."""
    others = {test: reason for test, reason in read(suite).items() if test not in seen}
    failures = {**others, **failures}
    head = "# What is known to fail: the reason (see reasons.py) and the test function.\n"
    lines = (f"{reason} {test}\n" for test, reason in sorted(failures.items()))
    (FOLDER / f"{suite}.txt").write_text(head + "".join(lines), encoding="utf-8")


def compare(suite: str, failures: dict[str, str], seen: set[str]) -> tuple[list[str], list[str]]:
    """Failures that are not known, and known ones that do not fail, among the tests seen."""
    known = read(suite)
    new = sorted(set(failures) - set(known))
    fixed = sorted((set(known) & seen) - set(failures))
    return new, fixed
