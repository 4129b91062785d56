"""The harness: a test module with the shim in the place of NumPy, and what becomes of its tests."""

from __future__ import annotations

import sys

import np_compile.shim as shim
import numpy as np
import pytest

from conformance import coverage, expected, numpy_tests, substitute
from conformance.reasons import REASONS, reason_of

FILE = """
import os, signal
import numpy as np
from numpy import arange, spam
from numpy._core.multiarray import _reconstruct
from numpy.testing import assert_array_equal
import numpy.linalg as la
import pytest

lost = 1 / 0


def test_passes():
    assert type(np.zeros(3)).__module__.startswith("np_compile")
    assert_array_equal(arange(3) * 2, [0, 2, 4])
    assert la.norm(np.ones(4)) == 2


def test_dtype_is_compared():
    with pytest.raises(AssertionError):
        assert_array_equal(arange(3), np.arange(3.0), strict=True)


@pytest.mark.parametrize("n", [1, 2])
def test_one_set_fails(n):
    assert n == 1


def test_crashes():
    os.kill(os.getpid(), signal.SIGKILL)


def test_after_the_crash():
    pass


def test_vacuous():
    with pytest.raises(AttributeError):
        spam(1)


def test_private():
    assert _reconstruct is not None


@pytest.mark.skip
def test_skipped():
    pass
"""


def test_what_becomes_of_tests(tmp_path):
    folder = tmp_path / "numpy" / "sample" / "tests"
    folder.mkdir(parents=True)
    path = folder / "test_sample.py"
    path.write_text(FILE.replace("arange, spam", "arange"), encoding="utf-8")
    functions = numpy_tests.run_file(path, "shim")
    states = {name.rpartition("::")[2]: f.state for name, f in functions.items()}
    assert states == {
        "test_passes": "passed",
        "test_dtype_is_compared": "passed",
        "test_one_set_fails": "failed",
        "test_crashes": "failed",
        "test_after_the_crash": "passed",
        "test_vacuous": "failed",
        "test_private": "private",
        "test_skipped": "skipped",
    }
    reasons = {n.rpartition("::")[2]: f.reason for n, f in functions.items() if f.why}
    assert reasons["test_crashes"] == "crash"
    assert [t.rpartition("[")[2] for f in functions.values() for t in f.failing if "[" in t] == [
        "2]"
    ]


def test_a_missing_name(monkeypatch, tmp_path):
    monkeypatch.setattr(substitute, "_shim_module", lambda name: None)
    path = tmp_path / "test_missing.py"
    path.write_text(
        "from numpy import sum\nimport numpy as np\nclass A(np.ndarray): x = np.ones(2)\nB = 1\n",
        encoding="utf-8",
    )
    module = substitute.load(path, "numpy.missing.tests.test_missing")
    assert module.__lost__ == []
    assert module.B == 1
    substitute.TOUCHED.start()
    with pytest.raises(substitute.MissingName, match=r"numpy\.sum is not in the shim"):
        module.sum([1])
    assert substitute.TOUCHED.missing == {"numpy.sum"}
    substitute.TOUCHED.running = False
    del sys.modules["numpy.missing.tests.test_missing"]


def test_numpy_stays_what_it_is():
    facade = substitute.module("numpy")
    assert facade.add is shim.add
    assert facade._core.umath.add is shim.add
    assert facade.float64 is np.float64
    assert sys.modules["numpy"] is np
    assert np.add is not shim.add


def test_expected_failures_are_compared_both_ways(monkeypatch, tmp_path):
    monkeypatch.setattr(expected, "FOLDER", tmp_path)
    assert expected.read("suite") == {}
    expected.write("suite", {"a": "value", "b c": "error"}, set())
    assert expected.read("suite") == {"a": "value", "b c": "error"}
    assert expected.compare("suite", {"a": "value", "d": "error"}, {"b c"}) == (["d"], ["b c"])
    assert expected.compare("suite", {"a": "value"}, {"x"}) == ([], [])
    expected.write("suite", {"d": "value"}, {"a", "d"})
    assert expected.read("suite") == {"b c": "error", "d": "value"}


@pytest.mark.parametrize("suite", ["numpy", "array-api"])
def test_every_known_failure_has_a_reason(suite):
    known = expected.read(suite)
    assert known
    assert set(known.values()) <= set(REASONS)


def test_reasons():
    assert reason_of(shim.NotSupported("dtype 'O' has no torch counterpart")) == "dtype"
    assert reason_of(AssertionError("dtype mismatch")) == "type"
    assert reason_of(AssertionError("x and y")) == "value"
    assert reason_of(ValueError("x")) == "raises"


@pytest.mark.parametrize("module", coverage.MODULES, ids=lambda m: m.__name__)
def test_every_public_name_is_there(module):
    for name in coverage.names(module):
        path = [*module.__name__.split(".")[1:], name]
        found = shim
        for part in path:
            found = getattr(found, part)
        state, _, gradient = coverage.state(".".join(path), getattr(module, name), found)
        assert state in ("tensors", "NumPy", "NumPy's own")
        assert gradient in ("yes", "no", "")
