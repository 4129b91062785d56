"""Fixtures of the native back end's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from np_compile import config


@pytest.fixture(autouse=True)
def _debug() -> Iterator[None]:
    """Each program is checked after each pass."""
    with config.patch(debug=1):
        yield


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """pytest takes a folder of that name for one of built files."""
    return False if collection_path.name == "build" else None
