"""The capture tests' programs, run by the native back end."""

from __future__ import annotations

import pytest

from ..capture.test_programs import PROGRAMS
from ..support import check


@pytest.mark.parametrize(("f", "args", "options"), PROGRAMS)
def test_program(f, args, options):
    check(f, *args, **{"rtol": 1e-9, **options, "backend": "native"})
