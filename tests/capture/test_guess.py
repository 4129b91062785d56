"""Lengths that depend on data, taken to be what they nearly always are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.capture.policy import guess
from np_compile.tools.explain import KeptReport, kept_calls


@pytest.fixture(autouse=True)
def _never_plain():
    with config.patch(plain="never"):
        yield


def counts(x):
    return np.bincount(x * 2, minlength=16)


def sums(x, w):
    return np.bincount(x, weights=w * 2, minlength=8) + 1


def on_tensors(f: Callable, **options: Any) -> Callable:
    """f compiled for tensors, called on tensors of the memory of arrays."""
    fast = np_compile.compile(np_compile.wrap_numpy(f), **options)

    def call(*args: np.ndarray) -> np.ndarray:
        result: np.ndarray = fast(*[torch.from_numpy(a) for a in args]).numpy()
        return result

    call.fast = fast  # type: ignore[attr-defined]
    return call


COMPILES = [np_compile.compile, on_tensors]
compiles = pytest.mark.parametrize("compiled", COMPILES, ids=["arrays", "tensors"])


def calls(fast: Callable) -> list[KeptReport]:
    """The kept calls of a compiled function."""
    return kept_calls(getattr(fast, "fast", fast))


def kept(compiled: Callable, f: Callable, *args: np.ndarray) -> Callable:
    """f compiled, after calls of which the last is kept."""
    fast: Callable = compiled(f)
    for _ in range(3):
        np.testing.assert_array_equal(fast(*args), f(*args))
    assert len(calls(fast)) == 1
    return fast


def same(fast: Callable, f: Callable, *args: np.ndarray) -> None:
    """Both give the same, or raise the same, and leave the same in the arguments."""
    found = []
    for g in (f, fast):
        own = [a.copy() for a in args]
        try:
            result = g(*own)
            found.append((result.dtype, result.tolist(), [a.tolist() for a in own]))
        except Exception as e:
            found.append((type(e), str(e), e.__context__))
    assert found[0] == found[1]


@compiles
def test_counting_is_one_kept_program(compiled):
    x = np.array([0, 7, 3, 3, 1])
    fast = kept(compiled, counts, x)
    (one,) = calls(fast)
    assert one.programs == 1
    fast = kept(compiled, sums, x, np.arange(5.0))
    assert calls(fast)[0].programs == 1


@compiles
@settings(deadline=None, max_examples=15)
@given(
    rows=st.lists(st.lists(st.integers(-2, 40), min_size=6, max_size=6), min_size=1, max_size=6),
    kind=st.sampled_from("bhilBHIL"),
)  # fmt: skip
def test_any_numbers(compiled: Callable, rows: list[list[int]], kind: str):
    w = np.linspace(-1, 1, 6)
    fast = kept(compiled, sums, np.arange(6).astype(kind), w)
    for row in rows:
        same(fast, sums, np.abs(row).astype(kind) if kind in "BHIL" else np.array(row, kind), w)


@compiles
@pytest.mark.parametrize("value", [8, 100, -1, -(2**60)])
def test_a_number_beyond_makes_the_call_again(compiled: Callable, value: int):
    x, w = np.arange(6), np.ones(6)
    fast = kept(compiled, sums, x, w)
    y = x.copy()
    y[2] = value
    for z in (y, x, y, x):
        same(fast, sums, z, w)


@compiles
def test_the_first_call_with_a_number_beyond(compiled):
    fast = compiled(counts)
    for top in (3, 9, 3, 3, 30, 3):
        same(fast, counts, np.array([0, top]))


@compiles
def test_what_was_written_is_not_written_again(compiled):
    def before(x, y):
        y += 1
        return np.bincount(x, minlength=4) * y[0]

    def after(x, y):
        n = np.bincount(x, minlength=4)
        y += n.sum()
        return n * 2

    def element(x, y):
        n = np.bincount(x, minlength=4)
        y[0] += 1
        return n * 2

    for f in (before, after, element):
        fast = compiled(f)
        for top in (3, 3, 3, 9, 3, 9):
            same(fast, f, np.array([1, top]), np.zeros(3))


@compiles
def test_the_length_is_used_meanwhile(compiled):
    def f(x):
        n = np.bincount(x, minlength=5)
        return np.zeros(n.shape) + len(n) + np.cumsum(n)

    fast = compiled(f)
    for top in (4, 4, 4, 6, 4, 4):
        same(fast, f, np.array([2, top]))


def test_other_arguments_of_bincount():
    fast = np_compile.compile(lambda x: np.bincount(x))
    for _ in range(3):
        np.testing.assert_array_equal(fast(np.array([1, 4])), [0, 1, 0, 0, 1])
    for bad in (
        lambda x: np.bincount(x, np.ones(3), 4),
        lambda x: np.bincount(x, np.ones(2) * 1j, 4),
        lambda x: np.bincount(x[None], minlength=4),
        lambda x: np.bincount(x * 1.0, minlength=4),
        lambda x: np.bincount(x, minlength=-1),
        lambda x: np.bincount(x[:0], np.ones(0), 4),
        lambda x: np.bincount(x > 2, minlength=4),
    ):
        fast = np_compile.compile(bad)
        for _ in range(3):
            same(fast, bad, np.array([1, 3]))


@compiles
def test_a_back_end_of_ones_own_is_not_asked_to_guess(compiled):
    fast = compiled(counts, backend="eager")
    for top in (3, 3, 3, 12):
        same(fast, counts, np.array([0, top]))


def written_before(x, w):
    for k in range(12):
        w += k
    return np.bincount(x, minlength=8) + w[0]


def written_in_the_segment(x, w):
    w += 1
    counts = np.bincount(x, minlength=8)
    w *= 2
    return counts


@compiles
@pytest.mark.parametrize("f", [written_before, written_in_the_segment])
def test_a_wrong_guess_writes_nothing_twice(compiled, f):
    """Whether it is found in a kept call, or in one that was watched."""
    right, wrong = np.array([0, 7, 3]), np.array([0, 9, 3])
    for before in range(5):
        fast = compiled(f)
        for _ in range(before):
            same(fast, f, right, np.arange(4.0))
        for _ in range(2):
            same(fast, f, wrong, np.arange(4.0))
            same(fast, f, right, np.arange(4.0))


def test_gradients_are_not_guessed():
    fast = np_compile.compile(np_compile.wrap_numpy(sums))
    x, w = torch.tensor([0, 3, 3]), torch.ones(3, dtype=torch.float64)
    for _ in range(3):
        fast(x, w)
    w.requires_grad_()
    for top in (3, 9, 3):
        got = fast(torch.tensor([0, top, 3]), w)
        assert len(got) == max(8, top + 1)
        (g,) = torch.autograd.grad(got.sum(), w)
        assert g.tolist() == [2, 2, 2]


def test_operators_of_a_device_are_not_asked_to_guess():
    """There an index out of bounds ends the process."""
    device = torch.device("cuda")
    for direct, by_operators, mutates, place, wrong in (
        (True, False, True, device, False),
        (True, True, False, device, True),
        (False, False, False, device, True),
        (False, False, False, None, False),
        (True, True, True, None, True),
    ):
        program = SimpleNamespace(direct=direct, mutates=mutates)
        with pytest.raises(guess.Wrong) if wrong else nullcontext():
            guess.check(program, by_operators, place)  # type: ignore[arg-type]
