"""Fixtures of the native back end's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from np_compile import config


@pytest.fixture(autouse=True)
def _debug() -> Iterator[None]:
    """Each program is checked after each pass."""
    with config.patch(debug=1):
        yield
