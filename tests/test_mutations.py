"""The rows of `mutations` are up to date: each finds its text."""

from __future__ import annotations

from pathlib import Path

from .mutations import MUTATIONS

ROOT = Path(__file__).parent.parent


def test_each_row_finds_its_text_once() -> None:
    stale = [
        (m.file, m.old)
        for m in MUTATIONS
        if not (ROOT / m.file).exists() or (ROOT / m.file).read_text("utf-8").count(m.old) != 1
    ]
    assert not stale
    files = {name.partition("::")[0] for m in MUTATIONS for name in m.tests.split()}
    assert not [name for name in files if not (ROOT / "tests" / name).exists()]
