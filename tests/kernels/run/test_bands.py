"""Nests that run in bands do what they do one after the other, and share what they should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.kernels.compile import targeting
from np_compile.kernels.run import sequence
from np_compile.kernels.run.bands import Alone, Group
from np_compile.kernels.run.blocks import Block, Memory, most_bytes
from np_compile.kernels.target import HOST

from ...support import examples, same

# Blocks


@st.composite
def blocks(draw: Callable) -> Block:
    begin = draw(st.integers(-20, 60))
    width = draw(st.integers(1, 12))
    step = draw(st.sampled_from((0, 1, 3, 8, 8, 24, -8)))
    return Block(begin, begin + width, step, draw(st.booleans()))


def meet(a: Block, b: Block, parts: int) -> bool:
    """Whether different parts meet, found by trying all."""
    for i, k in product(range(parts), repeat=2):
        begin = max(a.begin + i * a.step, b.begin + k * b.step)
        if i != k and begin < min(a.end + i * a.step, b.end + k * b.step):
            return True
    return False


@given(blocks(), blocks(), st.integers(2, 7))
def test_blocks_that_are_apart_do_not_meet(a: Block, b: Block, parts: int) -> None:
    if a.apart(b, parts):
        assert not meet(a, b, parts)
    elif a.step == b.step != 0:
        assert meet(a, b, parts)


@given(st.lists(blocks(), max_size=9), blocks(), st.integers(2, 7))
def test_a_memory_admits_what_is_apart_from_all(there: list[Block], new: Block, parts: int) -> None:
    memory = Memory()
    for k, b in enumerate(there):
        memory.add(b, k, k)
    wanted = all(new.apart(b, parts) or not (new.written or b.written) for b in there)
    assert memory.admits(new, parts) == wanted


@given(blocks(), st.integers(1, 6), st.integers(1, 4))
def test_a_coarser_block_is_its_parts(b: Block, parts: int, groups: int) -> None:
    coarse = b.of(parts)
    for k in range(groups):
        fine = [b.begin + (k * parts + i) * b.step for i in range(parts)]
        assert coarse.begin + k * coarse.step == min(fine)
        assert coarse.end + k * coarse.step == max(fine) + b.end - b.begin


def test_bytes_in_use() -> None:
    first, second = Memory(), Memory()
    first.add(Block(0, 8, 8, True), 0, 0)
    first.add(Block(0, 8, 8, False), 2, 2)  # the same bytes, in use meanwhile
    second.add(Block(64, 68, 4, True), 1, 1)
    second.add(Block(1000, 1004, 4, True), 2, 2)
    second.add(Block(0, 8, 800, True), 3, 3)  # a line of the cache
    assert most_bytes([first, second], 4, HOST.line_bytes) == 64
    assert most_bytes([first], 4, HOST.line_bytes) == 8


# Kept calls


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[Group | Alone]]]:
    """The plans of the calls that are kept meanwhile."""
    found: list[list[Group | Alone]] = []
    made = sequence.bands.plan

    def plan(*args: Any) -> list[Group | Alone]:
        found.append(made(*args))
        return found[-1]

    monkeypatch.setattr(sequence.bands, "plan", plan)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    with config.patch(plain="never", unroll=1):
        yield found
    torch.set_num_threads(threads)


@pytest.fixture
def small() -> Iterator[None]:
    """Bands and chunks of few elements."""
    machine = replace(
        HOST, parallel_ns=0, chunk_ns=20, working_bytes=1200, l2_bytes=0, band_ns=0, band_parts=2
    )
    with targeting(machine):
        yield


def kept(f: Callable, *args: Any, calls: int = 4) -> None:
    """Some calls of the compiled function, each compared with NumPy's."""
    compiled = np_compile.compile(f)
    for k in range(calls):
        mine, theirs = ([_copy(a, k) for a in args] for _ in range(2))
        same(compiled(*mine), f(*theirs), f.__name__)
        same(tuple(mine), tuple(theirs), f"arguments of {f.__name__}")


def _copy(a: Any, k: int) -> Any:
    """A copy with other values, and the same layout."""
    if not isinstance(a, np.ndarray):
        return a
    new = a.copy(order="K")
    new *= k + 1
    return new


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def whole(plan: list[Group | Alone]) -> list[int]:
    """How many nests the groups have; 0 for what runs alone."""
    return [len(item.members) if isinstance(item, Group) else 0 for item in plan]


def escape(c, steps):
    z = np.zeros_like(c)
    count = np.zeros(c.shape, np.int64)
    for _ in range(steps):
        inside = z.real * z.real + z.imag * z.imag < 4.0
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def test_a_loop_over_elements_is_one_group(plans: list) -> None:
    c = data(30_000) + 1j * data(30_000, seed=1)
    kept(escape, c, 5)
    (plan,) = plans
    (group,) = plan
    assert len(group.members) == 2 + 5
    assert group.parts == 30_000
    assert group.band <= group.grain < group.parts


def recursion(x, keep):
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = keep * y[t - 1] + x[t]
    return y


def columns(x, keep):
    for t in range(1, x.shape[1]):
        x[:, t] = keep * x[:, t - 1] + x[:, t]


def against(x, keep):
    for t in range(x.shape[0] - 2, -1, -1):
        x[t] += keep * x[t + 1]


def test_rows_and_columns_by_given_integers_are_one_group(plans: list, small: None) -> None:
    for f, shape in ((recursion, (9, 300)), (columns, (300, 9)), (against, (9, 300))):
        kept(f, data(*shape), 0.5)
        assert [n > 5 for n in whole(plans.pop())] == [True], f


def test_rows_of_a_matrix_and_its_elements_are_one_group(plans: list, small: None) -> None:
    def rows(x, steps):
        for _ in range(steps):
            x = x - x.max(axis=1, keepdims=True)
            x *= 0.5
        return x

    kept(rows, data(200, 30), 4)
    (plan,) = plans
    assert max(whole(plan)) >= 4
    assert max(g.parts for g in plan) == 200


def test_programs_for_many_sizes_are_groups_too(plans: list, small: None) -> None:
    for f, shapes in (
        (recursion, [(9, 300), (9, 340), (9, 431)]),
        (columns, [(300, 9), (340, 9), (431, 9)]),
        (escape, [(30_000,), (40_000,), (45_678,)]),
    ):
        compiled = np_compile.compile(f)
        for shape in shapes:
            plans.clear()
            for k in range(1, 5):
                x = data(*shape, seed=k) * (1 + 1j if f is escape else 1)
                mine, theirs, given = x.copy(), x.copy(), 9 if f is escape else 0.5
                with config.patch(loops="recorded"):
                    got = compiled(mine, given)
                same(got, f(theirs, given), f.__name__)
                same(mine, theirs, "argument")
            assert plans, (f, shape)
            assert max(whole(plans[-1])) > (2 if f is escape else 5), (f, shape)


def shifted(x, steps):
    y = np.zeros_like(x)
    for _ in range(steps):
        y[1:] = x[:-1]
        x = y * 0.5
    return x


def turned(x, steps):
    for _ in range(steps):
        x = x.T * 0.5 + x
    return x


def test_what_reads_its_neighbours_is_no_group(plans: list, small: None) -> None:
    for f, args in ((shifted, (data(1000), 4)), (turned, (data(40, 40), 4))):
        kept(f, *args)
        plan = plans.pop()
        for item in plan:
            names = [m.step for m in item.members] if isinstance(item, Group) else []
            assert len(set(names)) <= 2, f
        assert len(plan) > 2, f


def picks(x, where, steps):
    for k in range(steps):
        x = x * 0.5 + x[where[k]]
    return x


def test_an_index_that_is_data_is_no_given_integer(plans: list, small: None) -> None:
    kept(picks, data(200), np.array([3, 5, 0, 7]), 4)
    for plan in plans:
        assert max(whole(plan)) <= 2


def test_a_sum_over_all_ends_a_group(plans: list, small: None) -> None:
    def centred(x, steps):
        for _ in range(steps):
            x = np.abs(x - x.max())
        return x

    kept(centred, data(3000), 3)
    (plan,) = plans
    assert 0 in whole(plan)


def test_an_index_out_of_bounds_behind_a_group(plans: list, small: None) -> None:
    def picked(x, where, steps):
        for _ in range(steps):
            x = x * 0.5
            x = x + 1
        return x, x[where]

    compiled = np_compile.compile(picked)
    x, where = data(500), np.arange(20)
    for _ in range(3):
        same(compiled(x, where, 3), picked(x, where, 3), "picked")
    assert len(plans) <= 3  # calls with elements of other values, where Python read some
    bad = where + 490
    with pytest.raises(IndexError) as mine:
        compiled(x, bad, 3)
    with pytest.raises(IndexError) as theirs:
        picked(x, bad, 3)
    assert str(mine.value) == str(theirs.value)
    same(compiled(x, where, 3), picked(x, where, 3), "picked")


# Random loops: f(a, b, v, k) changes some of the arrays in place, or gives new ones.


def _in_place(a, b, v, k):
    a *= 0.5
    b += a
    return a, b, v


def _new(a, b, v, k):
    return a * 0.5 + b, b, v


def _masked(a, b, v, k):
    return np.where(a > b, a - b, a), b, v


def _extremes(a, b, v, k):
    return a, b, np.maximum(v, a.max(axis=1))


def _by_rows(a, b, v, k):
    return a - v[:, None], b, v * 0.5


def _column(a, b, v, k):
    a[:, k % 3] += b[:, 0]
    return a, b, v


def _from_end(a, b, v, k):
    a[:, -1 - k % 2] *= b[:, -2]
    return a, b, v


def _row(a, b, v, k):
    b[k % 3] = a[k % 3] * 2
    return a, b, v


def _down(a, b, v, k):
    a[1:] = b[:-1] * 0.25
    return a, b, v


def _across(a, b, v, k):
    a[:, 1:] -= b[:, :-1]
    return a, b, v


def _backwards(a, b, v, k):
    return a[::-1] + b, b, v[::-1] * 1


def _turned(a, b, v, k):
    return a, (a.T * 0.5).T, v


def _scalar(a, b, v, k):
    return a + v[0], b, v


def _swapped(a, b, v, k):
    return b * 1, a, v


def _flags(a, b, v, k):
    inside = a < b
    return a + inside, b * ~inside, v


STEPS = (
    _in_place, _new, _masked, _extremes, _by_rows, _column, _from_end, _row, _down, _across,
    _backwards, _turned, _scalar, _swapped, _flags,
)  # fmt: skip


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    st.sampled_from(((3, 3), (31, 5), (33, 4), (64, 16), (100, 7), (257, 3))),
    st.sampled_from("CF"),
    st.integers(2, 5),
)
def test_random_loops(plans: list, small: None, steps: list, shape: tuple, order: str, n: int):
    names = {f"step_{i}": step for i, step in enumerate(steps)}
    text = f"def loop(a, b, v):\n    for k in range({n}):\n"
    text += "".join(f"        a, b, v = {name}(a, b, v, k)\n" for name in names)
    exec(text + "    return a, b, v\n", names)
    a, b = (np.asarray(data(*shape, seed=s), order=order) for s in (1, 2))
    plans.clear()
    kept(names["loop"], a, b, data(shape[0], seed=3))
    assert len(plans) <= 3  # calls with elements of other values, where Python read some


def test_overlapping_arguments(plans: list, small: None) -> None:
    def steps(a, b):
        for _ in range(4):
            a += 1.0
            b *= 0.5
        return a - b

    compiled = np_compile.compile(steps)
    for at in (200, 200, 200, 0, 3, 100, 200, 0):
        mine, theirs = data(500), data(500)
        result = compiled(mine[:200], mine[at : at + 200])
        same(result, steps(theirs[:200], theirs[at : at + 200]), "result")
        same(mine, theirs, "memory")
    assert plans
