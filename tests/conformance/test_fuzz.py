"""The fuzzer of programs: a few programs of each kind, and that what is wrong would be found."""

from __future__ import annotations

import ast
import os
import signal
import time
import types
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.fuzz import KINDS, documented, driver, plainly
from conformance.fuzz.compare import Seen, difference, observe
from conformance.fuzz.loan import on_tensors
from conformance.fuzz.maker import Program
from conformance.fuzz.minimise import minimised
from conformance.fuzz.run import Outcome, Setup, load, observed, run, written
from np_compile import api

SEED = 7


# Of the programs of the reader (native) these are without faults that are known and not mended.
PROGRAMS = [
    *((kind, "eager", k) for kind in KINDS for k in range(6)),
    *(("histories", "native", k) for k in (0, 3, 4, 5)),
]


@pytest.mark.parametrize(("kind", "backend", "k"), PROGRAMS)
def test_random_programs(kind: str, backend: str, k: int, tmp_path: Path) -> None:
    program = driver.made(kind, SEED, k)
    how = replace(driver.setup(kind, SEED, k, backend, None, None), dynamic=None)
    outcome = run(written(program, tmp_path / "program.py"), program.exact, how)
    assert not outcome.finding


@pytest.mark.parametrize(("kind", "k"), [("arrays", 0), ("calls", 1), ("histories", 2)])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_random_programs_on_a_device(
    kind: str, k: int, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []

    def place(*call) -> torch.device | None:  # host memory stands for a device here
        places.append(torch.device(device) if api._context_depth() else None)
        return places[-1]

    monkeypatch.setattr(api, "_device", place)
    program = driver.made(kind, SEED, k)
    how = driver.setup(kind, SEED, k, "native", None, device)
    assert not run(written(program, tmp_path / "program.py"), program.exact, how).finding
    assert any(places)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_programs(kind: str) -> None:
    assert driver.made(kind, 1, 2) == driver.made(kind, 1, 2)
    assert driver.made(kind, 1, 2) != driver.made(kind, 1, 3) != driver.made(kind, 2, 3)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("arrays", 0.25), ("loops", 0.45), ("histories", 0.1), ("calls", 0.3), ("idioms", 0.3)],
)
def test_most_calls_raise_nothing(kind: str, most: float, tmp_path: Path) -> None:
    seen: Counter = Counter()
    for k in range(40):
        module = load(written(driver.made(kind, SEED, k), tmp_path / "program.py"))
        seen.update(call.error is None for call in observed(module, module.program)[0])
    assert seen[False] <= most * sum(seen.values())


def _seen(f, *arguments) -> Seen:
    return observe(f, arguments, dict)[0]


def _fail(x):
    x[0] = 7
    raise ValueError("no")


@pytest.mark.parametrize(
    ("f", "g", "words"),
    [
        (lambda x: x * 2, lambda x: x * 3, "result[0]: np.float64(3.0); NumPy has np.float64(2.0)"),
        (lambda x: x * 0.0, lambda x: x * -0.0, "result[0]: np.float64(-0.0); NumPy has"),
        (lambda x: x, lambda x: x.astype("f4"), "float32"),
        (lambda x: x[:1], lambda x: x[:2], "(2,)"),
        (lambda x: x[0], lambda x: float(x[0]), "'float'"),
        (lambda x: (x,), lambda x: [x], "'list'"),
        (lambda x: x[::-1], lambda x: x[::-1].copy(), "memory: result 0 shares memory"),
        (lambda x: x.fill(2), lambda x: None, "arguments"),
        (lambda x: x[5], lambda x: None, "raises nothing; NumPy raises IndexError"),
        (_fail, lambda x: x.setflags(write=False) or _raise(x), "arguments"),
        (lambda x: print(1), lambda x: None, "prints"),
    ],
)
def test_what_differs_is_seen(f, g, words: str) -> None:
    want = _seen(f, np.array([1.0, 2.0]))
    assert difference(_seen(f, np.array([1.0, 2.0])), want, True, 0.0, True) == ""
    assert words in difference(_seen(g, np.array([1.0, 2.0])), want, True, 0.0, True)


def _raise(x):
    raise ValueError("no")


def test_structures_are_compared_field_by_field() -> None:
    def f(x):
        made = np.zeros(2, [("n", "i4"), ("p", "f8", (2,))])
        made["p"] = x
        return made

    want = _seen(f, np.array([np.nan, 1.0]))
    assert difference(_seen(f, np.array([np.nan, 1.0])), want, True, 0.0, True) == ""
    assert "['p']" in difference(_seen(f, np.array([np.nan, 2.0])), want, True, 0.0, True)


def test_rounding_is_no_difference_where_programs_round() -> None:
    eps = float(np.finfo(float).eps)
    want, got = _seen(lambda x: x / 3, np.ones(2)), _seen(lambda x: x / 3 + eps, np.ones(2))
    assert difference(got, want, True, eps, True)
    assert not difference(got, want, False, eps, False)


def test_sums_of_large_numbers_are_rounded() -> None:
    """In another order, in programs that are exact otherwise."""
    eps = float(np.finfo(float).eps)
    for size, found in ((2.0**50, False), (4.0, True)):
        want, got = (_seen(lambda x: x * 1, np.array([1.0, 1 + e]) * size) for e in (0.0, eps))
        assert bool(difference(got, want, True, eps, True, sums=True)) is found
        assert difference(got, want, True, eps, True)


def test_arrays_are_lent_as_tensors() -> None:
    """A program sees tensors of their memory; who gave an array gets it back."""

    def program(t, box):
        t += 1
        box.u, box.v = t[1:], t
        return t, [t[:1]], box.n

    x = np.arange(3.0)
    box = types.SimpleNamespace(u=x, v=None, n=2)
    got, (first,), n = on_tensors(program)(x, box)
    assert got is x is box.v
    assert x.tolist() == [1, 2, 3]
    assert np.shares_memory(box.u, x)
    assert np.shares_memory(first, x)
    assert n == 2


def test_views_of_the_same_elements_may_be_one_object_but_not_the_other_way_round() -> None:
    x = np.arange(3.0)

    def seen(result) -> Seen:
        return observe(lambda: result, (), dict)[0]

    one, two, apart = seen([x, x]), seen([x, x[:]]), seen([x, x.copy()])
    assert not difference(one, two, True, 0.0, True)
    for got, want in ((two, one), (one, apart), (apart, one), (two, apart)):
        assert "memory" in difference(got, want, True, 0.0, True)


def test_views_are_of_the_same_elements_whatever_the_strides_of_axes_of_one() -> None:
    x, y = np.zeros((2, 1))[::2], np.zeros((2, 2))

    def seen(result) -> Seen:
        return observe(lambda: result, (), dict)[0]

    assert x.T[-1].strides != x[0].strides
    assert not difference(seen([x[0]] * 2), seen([x.T[-1], x[0]]), True, 0.0, True)
    assert "memory" in difference(seen([y] * 2), seen([y, y.T]), True, 0.0, True)
    assert "memory" in difference(seen([y[:1]] * 2), seen([y[:1], y[:, :1].T]), True, 0.0, True)


@pytest.mark.parametrize(
    ("what", "does"),
    [("crashes", "os.kill(os.getpid(), signal.SIGSEGV)"), ("takes longer", "signal.pause()")],
)
def test_what_numpy_itself_does_not_end_is_no_finding(
    what: str, does: str, tmp_path: Path, monkeypatch
) -> None:
    text = f"import os, signal\ndef program():\n    {does}\n\ndef history():\n    yield ()\n"
    monkeypatch.setattr(driver, "made", lambda *_: Program(text, True))
    monkeypatch.setattr(driver, "SECONDS", 2.0 if what == "takes longer" else 60.0)
    fuzzing = driver.Fuzzing(SEED, "eager", None, tmp_path)
    assert fuzzing.run(["arrays"], 60, 1) == 0
    assert fuzzing.seen[f"{what} in NumPy itself"] == 1


def test_programs_get_smaller() -> None:
    program = driver.made("arrays", SEED, 2)
    assert "np." in program.source.partition("def program")[2]

    def fails(source: str) -> bool:
        return "data((" in source.partition("def history")[2] and "def program" in source

    small = minimised(program.source, fails, 20)
    assert fails(small)
    assert len(small) < len(program.source) / 3
    ast.parse(small)


def _fuzzing(folder: Path, monkeypatch, judge, most: int) -> driver.Fuzzing:
    monkeypatch.setattr(driver, "run", judge)
    monkeypatch.setattr(driver, "MINIMISING", 0.2)
    fuzzing = driver.Fuzzing(SEED, "eager", None, folder)
    fuzzing.run(["arrays"], 60, most)
    return fuzzing


def test_what_is_found_becomes_a_test(tmp_path: Path, monkeypatch) -> None:
    def judge(path: Path, exact: bool, how: Setup) -> Outcome:
        body, history, _ = path.read_text().partition("def program")[2].partition("def history")
        wrong = ".T" in body and history
        return Outcome("call 1: result: 1; NumPy has 2" if wrong else "")

    fuzzing = _fuzzing(tmp_path, monkeypatch, judge, 12)
    assert fuzzing.seen["programs"] == 12
    (sort,) = fuzzing.findings
    files = list(tmp_path.glob("test_arrays_7_*.py"))
    assert len(files) == min(driver.ALIKE, fuzzing.findings[sort])
    source = files[0].read_text()
    assert ".T" in source
    names = [f.name for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)]
    assert names[-3:] == ["program", "history", "test_program"]
    assert "found" in fuzzing.told()


@pytest.mark.parametrize(("wrong", "why"), [("dies", "crashes: SIGKILL"), ("sleeps", "longer")])
def test_a_crash_costs_one_program(wrong: str, why: str, tmp_path: Path, monkeypatch) -> None:
    def judge(path: Path, exact: bool, how: Setup) -> Outcome:
        if path.stem == "program_2":
            os.kill(os.getpid(), signal.SIGKILL) if wrong == "dies" else time.sleep(60)
        return Outcome()

    monkeypatch.setattr(driver, "SECONDS", 1.0)
    fuzzing = _fuzzing(tmp_path, monkeypatch, judge, 5)
    assert fuzzing.seen["programs"] == 5
    assert [why in finding for finding in fuzzing.findings] == [True]


def test_a_program_that_is_a_test(tmp_path: Path) -> None:
    source = (
        "def program(x):\n    return x + 1\n\n\n"
        "def history():\n    x = yield (1,)\n    assert x == 2\n    yield (2.5,)\n"
    )
    path = tmp_path / "test_it.py"
    path.write_text(
        driver.as_test(Program(source, True), Setup("eager"), 'an """odd""" \\ finding')
    )
    load(path).test_program()


def test_programs_whose_calls_all_raise_go_on_without_what_raises(tmp_path: Path) -> None:
    text = (
        "def program(k):\n    if k:\n        1 / 0\n    raise KeyError\n    return k\n\n"
        "def history():\n    yield (1,)\n    yield (2,)\n"
    )
    program = Program(text, True)
    for k, ends in ((1, None), (4, "ZeroDivisionError")):
        driver.prepared(program, k, path := tmp_path / "program.py")
        module = load(path)
        calls, _ = observed(module, module.program)
        assert {c.error and c.error[0] for c in calls} == {ends}
    assert calls[0].arguments == ("tuple", [("int", "1")])
    some = Program(text.replace("raise KeyError\n", "").replace("(2,)", "(0,)"), True)
    driver.prepared(some, 1, path)
    assert path.read_text() == some.source


def test_a_program_that_plain_python_does_not_end_is_not_compiled(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(plainly, "SECONDS", 0.2)
    text = "def program():\n    while True:\n        pass\n\ndef history():\n    yield ()\n"
    monkeypatch.setattr(driver, "made", lambda *_: Program(text, True))
    fuzzing = driver.Fuzzing(SEED, "eager", None, tmp_path)
    assert fuzzing.run(["arrays"], 60, 3) == 0
    assert fuzzing.seen == {"programs": 3, driver.LONGER: 3}


def test_signs_of_infinities_count_where_no_zero_may_have_divided() -> None:
    got, want = _seen(lambda x: x, np.array([np.inf])), _seen(lambda x: x, np.array([-np.inf]))
    assert difference(got, want, True, 0.0, False)
    assert not difference(got, want, True, 0.0, False, True)
    two = _seen(lambda x: x, np.array([2.0]))
    assert difference(got, two, True, 0.0, False, True)


def _outcome(body: str, calls: str, folder: Path, loops: str = "recorded") -> Outcome:
    lines = "\n    ".join(body.split("; "))
    text = (
        f"import numpy as np\n\ndef program(x, n):\n    {lines}\n\n"
        f"def history():\n    for n in {calls}:\n        yield np.arange(16.0).reshape(4, 4), n\n"
    )
    how = Setup("eager", settings=(("loops", loops), ("plain", "never")))
    return run(written(Program(text, True), folder / "program.py"), True, how)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("x[1] = x[:, 3]", "a row that is set"),
        ("t = x[np.array([n, 0])]; t = x[0]; return t * 2", "an index out of bounds"),
        ("x[np.array([n])]; return x + 1", "an index out of bounds"),
        ("x[1] = x[:, 3]; t = x[np.array([n])]; return x * 2", "both"),
    ],
)
def test_what_is_documented_is_no_finding(body: str, what: str, tmp_path: Path) -> None:
    outcome = _outcome(body, "(1, 9)", tmp_path)
    assert not outcome.finding
    assert any(what in word for word in outcome.seen)


def test_what_is_near_to_it_is_a_finding(tmp_path: Path) -> None:
    """Results that are used, and what no documented form of a program gives."""
    source = (
        "def program(x, n):\n    t = x[n]\n    x[1:] = x[:-1]\n    try:\n        s = x[n]\n"
        "    finally:\n        pass\n    return t\n"
    )
    told = dict(documented.forms(source, recorded=True))
    module = types.ModuleType("form")
    exec("import numpy as np\n" + told["both"], vars(module))
    with pytest.raises(IndexError):  # of `try`
        module.program(np.zeros(3), 5)
    exec(f"import numpy as np\n{told['both']}".replace("s = x[n]", "pass"), vars(module))
    assert type(module.program(np.zeros(3), 5)).__name__ == "_Unused"
    assert set(dict(documented.forms(source, recorded=False))) == {
        "a row that is set to a column that it meets"
    }
    assert not list(documented.forms("def program(x):\n    x[0] = 1\n", recorded=True))


def test_stores_into_a_copy_are_documented_and_those_into_a_view_are_not() -> None:
    source = "def program(x, i, n):\n    np.add.at({}, n, 1.0)\n"

    def outcome(target: str) -> None:
        told = dict(documented.forms(source.format(target), recorded=True))
        module = types.ModuleType("form")
        exec(f"import numpy as np\n{told['an index out of bounds that nobody uses']}", vars(module))
        module.program(np.zeros(3), np.array([0, 1]), np.array([5]))

    outcome("x[i]")
    with pytest.raises(KeyError):  # it has no other form
        outcome("x[:2]")


def test_scalars_are_not_filled_and_arrays_are() -> None:
    filled = [
        line.strip()
        for k in range(400)
        for line in driver.made("mixes", SEED, k).source.splitlines()
        if ".fill(" in line
    ]
    assert any(line.startswith("q[0].fill") for line in filled)
    for k in range(400):
        source = driver.made("mixes", SEED, k).source
        assert not ("(()," in source and "q[0].fill(" in source)
