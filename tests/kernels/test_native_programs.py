"""The capture tests' programs, run by the native back end."""

from __future__ import annotations

import pytest

from ..capture.test_programs import PROGRAMS
from ..support import check


@pytest.mark.parametrize(
    ("f", "args", "options"),
    [
        p if k % 3 else pytest.param(*p.values, id=p.id, marks=pytest.mark.thorough)
        for k, p in enumerate(PROGRAMS)
    ],
)
def test_program(f, args, options):
    check(f, *args, **{"rtol": 1e-9, **options, "backend": "native"})
