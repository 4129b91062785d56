"""The shim's own answers are tested: nothing is handed over to NumPy, unless a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import np_compile.shim as shim
import pytest


@pytest.fixture(autouse=True)
def _strict(request: pytest.FixtureRequest) -> Iterator[None]:
    with shim.strict("handing" not in request.keywords):
        yield
