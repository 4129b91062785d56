"""The benchmark suite: its programs agree in np_compile and NumPy, and its reports are right."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as driver
from benchmarks import handwritten, many_functions, report
from benchmarks.contenders import (
    CONTENDERS,
    DEFAULT,
    Unsupported,
    exported,
    extracted,
    np_compile_contender,
    rebound,
)
from benchmarks.measure import OutOfTime, Runner, difference, limited, measure, start
from benchmarks.programs import LOOPS, PROGRAMS, SIZES

LOOP_PROGRAMS = [name for name, program in PROGRAMS.items() if program.section == LOOPS]


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


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:np_compile:RuntimeWarning")
@pytest.mark.parametrize("contender", ["device", "tensors"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_gives_numpys_results(name: str, contender: str) -> None:
    outcome = first(contender, name, "small")
    if outcome.status != "unsupported":
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


@pytest.mark.parametrize("name", LOOP_PROGRAMS)
def test_what_pythran_is_given_is_the_program(name: str) -> None:
    program = PROGRAMS[name]
    text = extracted(program.function)
    assert "@" not in text.replace(" @ ", ""), "decorators are left out"
    scope: dict[str, Any] = {}
    exec(text, scope)
    arguments = program.arguments("small")
    expected = Runner(program, program.function, arguments).results()
    assert difference(Runner(program, scope[name], arguments).results(), expected, 0, True) == ""


def test_exported_types() -> None:
    values = (np.zeros((2, 2), np.uint8), np.zeros(3), np.float32(1), 1, 2.0, 1j, True)
    words = "uint8[:,:] order(C), float64[:], float32, int, float, complex, bool"
    assert ", ".join(map(exported, values)) == words
    assert exported(np.zeros((1, 1, 1), bool)) == "bool[:,:,:]"
    with pytest.raises(Unsupported, match="Generator"):
        exported(np.random.default_rng())


@pytest.mark.parametrize("kind", ["PythranSyntaxError", "PythranCompileError"])
def test_what_pythran_does_not_compile_is_no_failure(kind, monkeypatch) -> None:
    errors = types.ModuleType("pythran.errors")
    for each in ("PythranSyntaxError", "PythranCompileError"):
        setattr(errors, each, type(each, (Exception,), {}))

    def refuse(*given: Any, **options: Any) -> None:
        raise getattr(errors, kind)("Attribute 'iinfo' unknown")

    pythran = types.ModuleType("pythran")
    pythran.compile_pythrancode = refuse
    monkeypatch.setitem(sys.modules, "pythran", pythran)
    monkeypatch.setitem(sys.modules, "pythran.errors", errors)
    program = PROGRAMS["matrix_chain"]
    with pytest.raises(Unsupported, match="does not compile: Attribute 'iinfo' unknown"):
        CONTENDERS["pythran"].build(program, program.arguments("small"))


def test_generators_begin_anew_with_each_call() -> None:
    program = PROGRAMS["metropolis_sampling"]
    runner = Runner(program, program.function, program.arguments("small"))
    first_samples = runner.results()[0]
    runner.seconds(2)
    np.testing.assert_array_equal(runner.results()[0], first_samples)


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
            *("--rounds", "1", "--threads", "1"),
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


def test_a_core_is_kept_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    popen = driver.subprocess.Popen
    monkeypatch.setattr(
        driver.subprocess, "Popen", lambda *args: begun.append(popen(*args)) or begun[-1]
    )
    with driver.busy_core(True):
        (process,) = begun
        assert process.poll() is None
    assert process.poll() == -signal.SIGKILL
    with driver.busy_core(False):
        assert len(begun) == 1


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


def rows(names: tuple[str, ...] = ("sine_chain", "softmax"), **times: list[float]) -> list[dict]:
    """Results of programs at the large size, one time of each contender for each."""
    return [
        report.result(
            PROGRAMS[name],
            "large",
            {n: {"status": "ok", "reason": "", "rounds_s": [t[k]]} for n, t in times.items()},
        )
        for k, name in enumerate(names)
    ]


def test_bars() -> None:
    by_hand, torch_bar, peers, numpy_bar, _ = (b for b in report.BARS if b.section == "arrays")
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


def test_bars_of_loops() -> None:
    best, by_hand, numpy_bar = (b for b in report.BARS if b.section == LOOPS)
    names = ("cholesky", "crc32")
    times = {"njit": [9.0, 1.1], "numba": [4.0, 3.0], "c": [0.5, 0.5], "numpy": [90.0, 40.0]}
    measured = rows(names, native=[1.0, 1.0], **times)
    judged = report.judge(best, measured, "native")
    assert judged is not None
    assert judged["geometric_means"]["the best of them"] == pytest.approx(4.4**0.5)
    assert judged["worst"] == "crc32 large (njit 1.10)"
    assert judged["met"]
    judged = report.judge(by_hand, measured, "native")
    assert judged is not None
    assert judged["missed_by"] == ["cholesky large (c 0.50)"], "crc32 is not written by hand"
    judged = report.judge(numpy_bar, measured, "native")
    assert judged is not None
    assert judged["met"]
    measured[0]["contenders"]["njit"]["rounds_s"] = [0.5]
    judged = report.judge(best, measured, "native")
    assert judged is not None
    assert judged["missed_by"] == ["cholesky large (njit 0.50)"]
    arrays = [b for b in report.BARS if b.section == "arrays"]
    assert not any(report.judge(bar, measured, "native") for bar in arrays)


def test_bars_of_first_calls() -> None:
    def calls(empty: float, full: float) -> dict[str, dict]:
        return {"empty_cache": {"call_s": empty}, "full_cache": {"call_s": full}}

    figures = {"cholesky": calls(0.5, 0.05), "crc32": calls(0.3, 0.05), "sieve": calls(2.5, 0.2)}
    cold, warm = report.judge_first_calls(figures)
    assert cold["seconds"] == 0.5
    assert not cold["met"], "sieve takes over 2 s"
    assert cold["detail"] == "the longest sieve, 2.5 s; over the limit sieve 2.5 s"
    assert warm["met"]
    outer_sum = {which: {"import_s": 0.2, "call_s": 0.1} for which in ("empty_cache", "full_cache")}
    assert [j["met"] for j in report.judge_first_calls({"outer_sum": outer_sum})] == [True, False]
    assert report.judge_first_calls({}) == []


def test_groups_and_their_contenders(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def run_process(name: str, options: Any, contenders: list[str], sizes: list[str]) -> tuple:
        asked.append((name, contenders))
        done = {"status": "ok", "reason": "", "rounds_s": [1.0], "median_s": 1.0}
        return [{"result": dict.fromkeys(contenders, done), "size": "small"}], ""

    monkeypatch.setattr(driver, "run_process", run_process)
    monkeypatch.setattr(driver, "measure_first_calls", lambda names, options, backend: {})
    figures = driver.main(["--group", LOOPS, "integers", "--sizes", "small"])
    groups = {PROGRAMS[name].group for name, _ in asked}
    assert groups == {LOOPS, "integers"}
    assert dict(asked)["crc32"] == list(DEFAULT[LOOPS])
    assert dict(asked)["life"] == list(DEFAULT["arrays"])
    assert set(figures["geometric_means"]) == {LOOPS, "arrays"}
    arrays, loops = (
        line.split()[2:]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("program ")
    )
    assert loops == [n for n in CONTENDERS if n in DEFAULT[LOOPS]]
    assert "pythran" not in arrays
    for group in DEFAULT:
        asked.clear()
        driver.main(["--group", group, "--sizes", "small"])
        assert {PROGRAMS[name].section for name, _ in asked} == {group}


def test_many_functions_in_one_process():
    found = many_functions.measured(["sine_chain", "histogram"], "small", 2)["rounds"]
    assert len(found) == 2
    for row in found:
        assert row["NumPy"] > 0
        assert row["usual"] > 0
        assert 0 <= row["compiled"] <= 2
