"""Light iterations of a loop are some at a time in a call that is kept, and do what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.kernels.analysis import footprint
from np_compile.kernels.compile import listening
from np_compile.kernels.run.execute import Executable

from ..support import same


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(footprint, "_MANY", 100)
    with config.patch(plain="never", unroll=2):
        yield


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def repeated(f: Callable, *args: Any, calls: int = 4) -> list[int]:
    """How many programs each of some calls compiles; all do what NumPy does."""
    compiled = np_compile.compile(f)
    counts = []
    for k in range(calls):
        mine, theirs = ([_scaled(a, k) for a in args] for _ in range(2))
        made: list[Executable] = []
        with listening(made.append):
            result = compiled(*mine)
        counts.append(len(made))
        same(result, f(*theirs), f.__name__)
        same(tuple(mine), tuple(theirs), "arguments")
    return counts


def _scaled(a: Any, k: int) -> Any:
    return a * (k + 1) if isinstance(a, np.ndarray) else a


def decays(x, n):
    for _ in range(n):
        x = x * 0.5 + 1.0
    return x


def changes(x, n):
    for _ in range(n):
        x *= 0.5
        x += 1.0
    return x


@pytest.mark.parametrize("f", [decays, changes])
@pytest.mark.parametrize("n", [3, 5, 6, 9, 10, 11, 20, 33])
def test_the_second_call_compiles_some_iterations_at_a_time(f: Callable, n: int) -> None:
    first, second, *others = repeated(f, data(200), n)
    assert first == 1
    assert second == (1 if n >= 6 else 0)  # two, to see that they repeat, and at least four
    assert others == [0, 0]


def test_slices_that_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neighbours are no hindrance, as on a GPU: the bounds are the same in each iteration."""
    monkeypatch.setattr(Executable, "light", True)

    def inner_part(x, n):
        for _ in range(n):
            x[1:-1] += x[2:] * 0.5
        return x

    assert repeated(inner_part, data(200), 20) == [1, 1, 0, 0]


def test_what_is_seen_of_an_array_afterwards() -> None:
    def keeps(x, n):
        before = x
        for _ in range(n):
            before, x = x, np.where(x > 0.1, x * 0.5, x)
        return before, x

    assert repeated(keeps, data(200), 15)[2:] == [0, 0]


def test_few_elements_and_heavy_ones_are_one_at_a_time() -> None:
    def heavy(x, n):
        for _ in range(n):
            x = np.sin(np.exp(-x * x)) * np.tanh(x) + np.arctan(x) * np.cos(x)
        return x

    assert repeated(decays, data(50), 20)[1:] == [0, 0, 0]
    assert repeated(heavy, data(200), 20)[1:] == [0, 0, 0]


def test_neighbours_and_integers_are_one_at_a_time() -> None:
    def shifted(x, n):
        for _ in range(n):
            x[1:] = x[:-1] * 0.5
        return x

    def rows(x, n):
        for k in range(n):
            x[k] = x[k] * 0.5 + 1.0
        return x

    assert sum(repeated(shifted, data(200), 20)[1:]) == 0
    assert sum(repeated(rows, data(20, 200), 20)[2:]) == 0


def test_iterations_of_several_kinds_compile_few_programs() -> None:
    def kinds(x, n):
        for k in range(n):
            x = x * 0.5
            if k * k % 7 == 4:
                x = x + 1.0
        return x

    counts = repeated(kinds, data(200), 60)
    assert sum(counts) <= 2 + 3


def test_loops_in_loops() -> None:
    def inner(x, n):
        for _ in range(n):
            x = x - 1.0
            for _ in range(n):
                x = x * 0.5
        return x

    counts = repeated(inner, data(200), 9)
    assert sum(counts) <= 6
    assert counts[2:] == [0, 0]


def test_a_function_that_is_not_kept_goes_on_as_it_does() -> None:
    seen = []

    def counts(x, n):
        for k in range(n):
            x = x * 0.5
            seen.append(k)
        return x

    assert repeated(counts, data(200), 20)[1:] == [0, 0, 0]


def test_other_sizes_have_as_many_at_a_time() -> None:
    compiled = np_compile.compile(decays)
    with config.patch(compile_in="call", loops="recorded"):
        for size in (200, 300, 431):
            for _ in range(3):
                same(compiled(data(size), 20), decays(data(size), 20), "decays")
        made = [c.calls for c in np_compile.recompiles(compiled)]
    # An iteration, and some at a time: of each one program for the first size, one for the others.
    assert len(made) == 4
    assert len({len(calls) for calls in made}) == 2
