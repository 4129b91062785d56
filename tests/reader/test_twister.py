"""Python's own random numbers in compiled loops: the same, and the same state afterwards."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from random import randint, uniform
from random import random as drawn

import pytest

import np_compile

from .support import refusals, whole


def inside_circle(n, rnd):
    found = 0
    for _ in range(n):
        x, y = random.random(), rnd.random()
        found += x * x + y * y < 1
    return found


def integers(n, rnd):
    out = []
    for k in range(1, n):
        out.append(rnd.randint(-k, k) + rnd.randrange(k) + rnd.randrange(3, 3 + k * 10**12))
        out.append(rnd.getrandbits(k % 60) + rnd._randbelow(k))
    return out


def imported(n, rnd):
    s = 0.0
    for _ in range(n):
        s += drawn() * uniform(2, 5) - randint(0, 10**12)
    return s


def read_from_its_source(n, rnd):
    out = []
    for _ in range(n):
        out.append(rnd.uniform(1, 2) + rnd.expovariate(2.0) + rnd.normalvariate(0.5, 2.0))
        out.append(rnd.triangular(0.0, 1.0, 0.3) + rnd.choice([1.5, 2.5, -1.0]))
    return out


def shuffled(n, rnd):
    deck = list(range(n))
    first = 0
    for _ in range(5):
        rnd.shuffle(deck)
        first += deck[0]
    return first, deck


def by_method(n, rnd):
    draw = rnd.random
    s = 0.0
    for k in range(n):
        s += draw() - 0.5
        s += 1.0 / (n - 3 - k) if k < n - 3 else draw()
        x = draw()
        s += [x][k // (n - 1)]  # leaves at the end
    return s


def empty_range(n, rnd):
    s = 0
    for k in range(n):
        s += rnd.randint(1, n - 3 - k)
    return s


class Walker:
    def __init__(self, rnd):
        self.rnd, self.x = rnd, 0.0

    def step(self):
        self.x += self.rnd.uniform(-1, 1)


def of_an_object(n, rnd, kind=Walker):
    w = kind(rnd)
    for _ in range(n):
        w.step()
    return w.x


def _ended(f: Callable, n: int, seed: int) -> tuple:
    rnd = random.Random(seed)
    random.seed(seed + 1)
    try:
        result = f(n, rnd)
    except (ValueError, IndexError) as e:
        result = str(e)
    return result, rnd.getstate(), random.getstate()


@pytest.mark.parametrize("f", [inside_circle, integers, imported, read_from_its_source, shuffled,
                               by_method, empty_range, of_an_object])  # fmt: skip
def test_numbers_and_state(f):
    fast = np_compile.compile(f)
    with whole():
        for n, seed in ((9, 1), (9, 2), (700, 3)):
            got, want = _ended(fast, n, seed), _ended(f, n, seed)
            assert got[1:] == want[1:]
            if f is read_from_its_source:  # logarithms
                assert got[0] == pytest.approx(want[0], rel=1e-12)
            else:
                assert got[0] == want[0]
    assert not refusals(fast)


def test_its_methods_as_arguments():
    def total(draw, n):
        s = 0.0
        for _ in range(n):
            s += draw()
        return s

    fast = np_compile.compile(total)
    with whole():
        for seed in range(3):
            a, b = random.Random(seed), random.Random(seed)
            assert fast(a.random, 50) == total(b.random, 50)
            assert a.getstate() == b.getstate()
        random.seed(5)
        got = fast(random.random, 50)
        random.seed(5)
        assert got == total(random.random, 50)
    assert not refusals(fast)
    assert len(fast._reading._regions) == 1


def test_what_keeps_every_other_number_is_pythons():
    def total(n, rnd):
        s = 0.0
        for _ in range(n):
            s += rnd.gauss(0.0, 1.0)
        return s

    fast = np_compile.compile(total)
    with whole():
        assert _ended(fast, 9, 1) == _ended(total, 9, 1)
    assert any("gauss_next" in why for why in refusals(fast))


def test_a_class_of_ones_own_is_pythons():
    class Fixed(random.Random):
        def random(self):
            return 0.25

    def total(rnd, n):
        s = 0.0
        for _ in range(n):
            s += rnd.random()
        return s

    fast = np_compile.compile(total)
    with whole():
        assert fast(random.Random(1), 4) == total(random.Random(1), 4)
        assert fast(Fixed(), 4) == 1.0


def test_threads_take_turns():
    def total(rnd, n):
        s = 0
        for _ in range(n):
            s += rnd.getrandbits(20)
        return s

    fast = np_compile.compile(total)
    rnd, same, sums = random.Random(1), random.Random(1), []
    with whole():
        fast(random.Random(2), 10)
        running = [threading.Thread(target=lambda: sums.append(fast(rnd, 20000))) for _ in range(4)]
        for t in running:
            t.start()
        for t in running:
            t.join()
    assert sorted(sums) == sorted(total(same, 20000) for _ in range(4))
    assert rnd.getstate() == same.getstate()
