"""What tests of calls that C makes have in common."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def without_cupy(monkeypatch):
    """Where CuPy is imported its arrays are looked for, and Python makes more of the calls."""
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
