"""Comparing functions that are compiled with their loops with the same functions in Python."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import np_compile

from ..support import Copier, compare, leaves, observe


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Functions are compiled with their loops, at once; faults of the reader are raised."""
    with np_compile.config.patch(loops="whole", compile_in="call", debug=1):
        yield


@dataclasses.dataclass
class Case:
    """A function and the calls of it that are compared. rtol: of floats; 0 is bit for bit.
    refused: words of the reason for which a part of it runs in Python; none: all is compiled.
    often: whether it runs each time; if not, with `pytest -m thorough`.
    fault: what is wrong with it, as far as is known."""

    function: Callable
    calls: list[tuple]
    rtol: float | None = None
    refused: str = ""
    fault: str = ""
    often: bool = True


def case(f: Callable, *calls: tuple, **more: Any) -> Case:
    return Case(f, list(calls), **more)


def exact(f: Callable, *calls: tuple, **more: Any) -> Case:
    return Case(f, list(calls), 0, **more)


def rarely(*cases: Case) -> list[Case]:
    """Cases of kinds that others show each time."""
    return [dataclasses.replace(c, often=False) for c in cases]


def each(cases: list[Case]) -> Any:
    """A test for each case; those with a fault have to fail."""
    params = []
    for c in cases:
        marks = [pytest.mark.xfail(reason=c.fault, strict=True)] if c.fault else []
        marks += [] if c.often else [pytest.mark.thorough]
        params.append(pytest.param(c, marks=marks, id=c.function.__name__))
    return pytest.mark.parametrize("c", params)


def check(c: Case, rounds: int = 2) -> Any:
    """Compare all calls of a case, in `rounds` rounds; the compiled function."""
    fast = np_compile.compile(c.function)
    with whole():
        for _ in range(rounds):
            for args in c.calls:
                check_call(fast, c.function, args, c.rtol)
    found = refusals(fast)
    if c.refused:
        assert any(c.refused in why for why in found), f"{c.refused!r} is not among {found}"
    else:
        assert not found, found
    return fast


def check_whatever_leaves(f: Callable, calls: list[tuple]) -> None:
    """Compare calls, of which some leave compiled code or are not read, three times."""
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            for args in calls:
                check_call(fast, f, args, 0)


def check_call(
    fast: Callable, plain: Callable, args: tuple, rtol: float | None = None, alias: bool = True
) -> None:
    """Compare one call, on equal copies of the arguments."""
    want = observe(plain, Copier()(args), {})
    got = observe(fast, Copier()(args), {})
    try:
        compare(got, want, rtol, alias)
        if rtol == 0:
            same_signs(got.result, want.result)
            same_signs(got.args, want.args)
    except AssertionError as e:
        e.add_note(f"{plain.__name__}{args!r}")
        raise


def same_signs(got: Any, want: Any) -> None:
    """That zeros have the same signs."""
    for g, w in zip(_floats(got), _floats(want), strict=True):
        if g.tobytes() == w.tobytes():
            continue
        known = ~np.isnan(w)
        np.testing.assert_array_equal(np.signbit(g)[known], np.signbit(w)[known])


def _floats(x: Any) -> list[np.ndarray]:
    found = [np.asarray(a) for a in leaves(x)]
    waiting, numbers = [x], []
    while waiting:
        y = waiting.pop()
        if isinstance(y, (list, tuple)):
            waiting += y
        elif isinstance(y, (float, complex, np.inexact)):
            numbers.append(y)
    found.append(np.array(numbers, complex))
    parts = []
    for a in found:
        if a.dtype.kind == "c":
            parts += [a.real, a.imag]
        elif a.dtype.kind == "f":
            parts.append(a)
    return parts


def refusals(fast: Any) -> list[str]:
    """Why parts of a compiled function run in Python, with their lines."""
    reading = fast._reading
    found = [f"{r.why} (line {r.line})" for r in reading._refused.values()]
    return [reading.given_up, *found] if reading.given_up else found


def calls_in_python(fast: Any) -> list[Any]:
    """The functions that compiled code calls in Python."""
    regions = [r for known in fast._reading._regions.values() for r in known]
    return [site.function for r in regions for site in r.sites]
