"""The benchmark suite: its programs agree in np_compile and NumPy, and its reports are right."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as driver
from benchmarks import handwritten, report
from benchmarks.contenders import CONTENDERS, Unsupported, np_compile_contender, rebound
from benchmarks.measure import OutOfTime, Runner, difference, limited, measure, start
from benchmarks.programs import PROGRAMS, SIZES


def first(contender: str, program: str, size: str) -> Any:
    """The outcome of a contender's first calls."""
    p = PROGRAMS[program]
    pristine = p.arguments(size)
    expected = Runner(p, p.function, pristine).results()
    return start(CONTENDERS[contender], p, pristine, None, 120.0, expected)[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_gives_numpys_results(name: str) -> None:
    outcome = first("eager", name, "small")
    assert (outcome.status, outcome.reason) == ("ok", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_what_the_lists_show(name: str) -> None:
    program = PROGRAMS[name]
    assert program.description.endswith(".")
    sizes = [
        max((a.size for a in program.arguments(size) if isinstance(a, np.ndarray)), default=0)
        for size in SIZES
    ]
    assert sizes == sorted(sizes)
    written = Runner(program, program.function, program.arguments("small"))
    written.results()
    for i, (a, b) in enumerate(zip(written.arguments, written.pristine, strict=True)):
        changed = isinstance(a, np.ndarray) and not np.array_equal(a, b)
        assert changed == (i in program.in_place), f"argument {i}"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("size", ["small", "medium"])
@pytest.mark.parametrize("name", handwritten.MAKERS)
def test_c_by_hand_agrees(name: str, size: str) -> None:
    outcome = first("c", name, size)
    assert (outcome.status, outcome.reason) == ("ok", "")


def test_what_a_contender_cannot_run_has_a_reason() -> None:
    outcome = first("c", "polynomial", "small")
    assert (outcome.status, outcome.reason) == ("unsupported", "not written by hand")
    build = np_compile_contender("none").build
    with pytest.raises(Unsupported, match="no back end 'none'"):
        build(PROGRAMS["polynomial"], ())


def test_differences_are_found() -> None:
    x = np.array([1.0, np.nan, 1e-20])
    near, far = np.array([1.0, np.nan, 1e-12]), np.array([2.0, np.nan, 1e-20])
    assert difference([near], [x], 1e-9, True) == ""
    assert "1 of 3 elements differ, first at (0,)" in difference([far], [x], 1e-9, True)
    assert "1 of 3" in difference([np.nan_to_num(x)], [x], 1e-9, True)
    assert "shape" in difference([x[:2]], [x], 1e-9, False)
    assert "dtype" in difference([x.astype(np.float32)], [x], 1e-4, True)
    assert "2 results for 1" in difference([x, x], [x], 1e-9, False)
    n, m = np.array([1, 2]), np.array([1, 3])
    assert "result 1: 1 of 2" in difference([n, m], [n, n], 1e-9, False)


def test_a_wrong_result_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = CONTENDERS["numpy"].__class__(
        "wrong", "", lambda: None, lambda program, arguments: lambda a, b: np.sin(a) * b
    )
    monkeypatch.setitem(CONTENDERS, "wrong", wrong)
    outcomes = measure(
        PROGRAMS["sine_chain"], "small", ["numpy", "wrong"], 1, 60.0, {}, lambda line: None
    )
    assert outcomes["numpy"].status == "ok"
    assert outcomes["wrong"].status == "wrong"
    assert "100 of 100 elements differ" in outcomes["wrong"].reason


def test_long_first_calls_are_stopped() -> None:
    with pytest.raises(OutOfTime), limited(0.05):
        time.sleep(10)


def _helper(x: int) -> int:
    return x + OFFSET


def _outer(x: int) -> int:
    return _helper(x) * OFFSET


OFFSET = 1


def test_rebound_reaches_helpers() -> None:
    assert rebound(_outer, {"OFFSET": 10})(1) == 110
    assert _outer(1) == 2


def test_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    saved, picture = tmp_path / "figures.json", tmp_path / "figures.png"
    driver.main(
        [
            *("sine_chain", "--sizes", "small", "--contenders", "numpy", "eager", "c"),
            *("--rounds", "1", "--threads", "1", "--busy"),
            *("--json", str(saved), "--plot", str(picture)),
        ]
    )
    figures = json.loads(saved.read_text(encoding="utf-8"))
    (row,) = figures["results"]
    assert row["contenders"]["eager"]["status"] == "ok"
    assert row["contenders"]["eager"]["ratio"] == 1.0
    assert row["contenders"]["numpy"]["median_s"] > 0
    assert figures["machine"]["versions"]["numpy"] == np.__version__
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "sine_chain" in printed
    assert "geometric mean" in printed
    assert "first calls" in printed


def test_a_contender_that_crashes_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ok = {"status": "ok", "reason": "", "rounds_s": [1.0], "median_s": 1.0, "first_call_s": 1.0}
    tries = []

    def run_process(name: str, options: Any, contenders: list[str], sizes: list[str]) -> tuple:
        tries.append((list(contenders), list(sizes)))
        if len(tries) == 1:
            done = {"result": {"numpy": ok, "numba": ok}, "size": "small"}
            return [done, {"doing": "numba", "size": "large"}], "crashed, status -11"
        return [{"result": {"numpy": ok}, "size": "large"}], ""

    monkeypatch.setattr(driver, "run_process", run_process)
    options = argparse.Namespace(contenders=["numpy", "numba"], sizes=["small", "large"])
    small, large = driver.run_program("sine_chain", options)
    assert tries == [(["numpy", "numba"], ["small", "large"]), (["numpy"], ["large"])]
    assert small["contenders"]["numba"]["status"] == "ok"
    assert large["contenders"]["numba"] == {"status": "failed", "reason": "crashed, status -11"}


def rows(**times: list[float]) -> list[dict]:
    """Results of programs at the large size, one time of each contender for each."""
    names = ["sine_chain", "softmax"]
    return [
        report.result(
            PROGRAMS[name],
            "large",
            {n: {"status": "ok", "reason": "", "rounds_s": [t[k]]} for n, t in times.items()},
        )
        for k, name in enumerate(names)
    ]


def test_bars() -> None:
    by_hand, torch_bar, peers, numpy_bar, _ = report.BARS
    measured = rows(native=[1.0, 1.0], c=[0.9, 0.8], torch=[3.0, 2.0], numba=[9.0, 9.0])
    judged = report.judge(by_hand, measured, "native")
    assert judged is not None
    assert judged["missed_by"] == ["softmax large (c 0.80)"]
    judged = report.judge(torch_bar, measured, "native")
    assert judged is not None
    assert judged["met"]
    assert judged["geometric_means"]["torch"] == pytest.approx(6**0.5)
    judged = report.judge(peers, rows(native=[1.0, 1.0], numba=[9, 9], jax=[1.2, 1.2]), "native")
    assert judged is not None
    assert not judged["met"], "the mean with JAX is below 1.5"
    assert report.judge(numpy_bar, measured, "native") is None, "NumPy was not measured"
    measured[0]["contenders"]["native"] = {"status": "wrong", "reason": "1 of 2"}
    judged = report.judge(torch_bar, measured, "native")
    assert judged is not None
    assert judged["without_result"] == ["sine_chain large"]
    assert not judged["met"]
