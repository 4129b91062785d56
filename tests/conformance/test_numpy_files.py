"""Some of NumPy's own test files, on the shim and compiled: what fails is what is known to fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance import expected, numpy_tests

from .. import fresh
from ..support import thorough

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not np.__version__.startswith("2.4."), reason="the lists are those of NumPy 2.4"
)

SHIM = [
    *("fft/test_pocketfft", "lib/test_ufunclike", "lib/test_index_tricks"),
    "_core/test_nep50_promotions",
    *thorough(
        "_core/test_indexing",
        *("fft/test_helper", "linalg/test_linalg", "lib/test_twodim_base", "lib/test_polynomial"),
        *("_core/test_shape_base", "_core/test_item_selection", "_core/test_scalarmath"),
        "random/test_randomstate_regression",
    ),
]
COMPILED = ["lib/test_ufunclike", *thorough("_core/test_item_selection", "lib/test_twodim_base")]
# Whether single precision is close enough here depends on the vectors of the machine; whether five
# units in the last place are enough, on numbers that are others in each run.
BY_MACHINE = {
    "numpy/fft/tests/test_pocketfft.py::test_fft_with_order",
    "numpy/fft/tests/test_pocketfft.py::TestFFT1D::test_identity_long_short",
    "numpy/fft/tests/test_pocketfft.py::TestFFT1D::test_identity_long_short_reversed",
}


def worker(words: list[str], environment: dict[str, str], timeout: float) -> int:
    """A worker process that need not import torch anew."""
    code = "import runpy; runpy.run_module('conformance.worker', None, '__main__')"
    done = fresh.run(code, *words, timeout=timeout, env=environment, cwd=str(ROOT))
    return done.returncode


def failing(name: str, mode: str) -> tuple[dict, set[str], set[str]]:
    """The functions of a file; those that fail; those that are known to fail, on any machine."""
    (path,) = (p for p in numpy_tests.files([name]) if numpy_tests.short(p) == name)
    functions = numpy_tests.run_file(path, mode, worker)
    suite = "numpy" if mode == "shim" else "numpy-compiled"
    start = f"numpy/{name.replace('/', '/tests/', 1)}.py::"
    known = {test for test in expected.read(suite) if test.startswith(start)}
    failed = {f.name for f in functions.values() if f.state == "failed"}
    return functions, failed - BY_MACHINE, known - BY_MACHINE


@pytest.mark.parametrize("name", SHIM)
def test_on_the_shim(name):
    functions, failed, known = failing(name, "shim")
    assert sum(f.state == "passed" for f in functions.values()) > len(known)
    assert failed == known, {f.name: f.why for f in functions.values() if f.state == "failed"}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    functions, failed, known = failing(name, "compiled:eager")
    assert sum(f.state == "passed" for f in functions.values()) > len(known)
    assert failed == known, {f.name: f.why for f in functions.values() if f.state == "failed"}


def test_lists():
    lists = numpy_tests.scope()
    assert set(lists["files"].values()) == set(lists["reasons"])
    there = {numpy_tests.short(p) for p in numpy_tests.ROOT.glob("*/tests/test_*.py")}
    assert set(lists["files"]) <= there
    assert {numpy_tests.short(p) for p in numpy_tests.files()} <= there - set(lists["files"])
