"""Random generators that objects, lists and names hold, and constructors that draw."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import np_compile

from ..support import observe
from .support import Case, check, check_whatever_leaves, each, exact, refusals, whole


def generator(seed=1):
    return np.random.default_rng(seed)


class Walker:
    def __init__(self, seed, n):
        self.rng = np.random.default_rng(seed)
        self.x = np.zeros(n)

    def step(self):
        self.x += self.rng.normal(size=len(self.x)) + self.rng.random()
        return self.rng.integers(0, 100)


class Old:
    def __init__(self, seed):
        self.rng, self.drawn = np.random.RandomState(seed), 0

    def draw(self):
        self.drawn += 1
        return self.rng.rand() + self.rng.randint(0, 9) + self.rng.normal() + self.rng.poisson(3)


class Net:
    """An `__init__` that draws, and may end in the middle."""

    def __init__(self, rng, sizes, scale=1.0):
        self.rng = rng
        self.first = rng.normal(0.0, 1.0, 3) * 1.0
        self.weights = self._made(sizes, scale)
        self.bias = [rng.random() for _ in range(2)]
        if len(sizes) == 2:
            return
        self.bias[0] += rng.random()

    def _made(self, sizes, scale):
        weights = []
        for a, b in itertools.pairwise(sizes):
            if self.rng.random() > 0.97:
                raise ValueError(f"unlucky at {a}, {b}: {self.first[0]:.6f}")
            weights.append(self.rng.normal(0, scale, (a, b)))
        return weights


class Deep(Net):
    def __init__(self, rng, sizes):
        super().__init__(rng, sizes, 0.5)
        self.more = rng.random() + self.bias[0]


@dataclasses.dataclass
class Source:
    rng: np.random.Generator
    noise: float = 0.5
    sent: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.start = self.rng.random() * self.noise

    def send(self):
        self.sent.append(self.start + self.rng.random())


class Shared:
    def __init__(self, seed=None):
        self.rng = np.random.default_rng(seed)
        self.big = 0

    def grow(self):
        self.big = self.big * 1000 + int(self.rng.integers(1, 9))


def walked(seed, n, k):
    w, s = Walker(seed, n), 0
    for _ in range(k):
        s += w.step()
    return s, w.x, w.rng.random()


def walkers(seeds, k):
    all_of_them = [Walker(s, 2) for s in seeds]
    total = 0.0
    for _ in range(k):
        for w in all_of_them:
            total += w.step() + w.x[0]
    return total, [w.rng.random() for w in all_of_them]


def old_ones(seed, k):
    o, s = Old(seed), 0.0
    for _ in range(k):
        s += o.draw()
    return s, o.drawn, o.rng.rand()


def nets(rng, sizes, k):
    s = 0.0
    for _ in range(k):
        net = Net(rng, sizes)
        s += net.weights[0][0, 0] + net.bias[1] + net.first[0]
        deep = Deep(net.rng, sizes)
        s -= deep.more * deep.weights[-1][0, 0]
    return s, rng.random()


def sources(rng, k):
    found = []
    for j in range(k):
        source = Source(rng, noise=j)
        source.send()
        source.send()
        found.append(source)
    return [x.sent for x in found], [x.start for x in found], rng.random()


def ends_in_python(seed, k):
    x = Shared(seed)
    for _ in range(k):
        x.grow()
    return x.big, x.rng.random(), x.rng is x.rng


def one_or_another(seed, old, k):
    made = np.random.default_rng(seed) if old else np.random.default_rng([seed, 1])
    held = made
    found = [(made, 0.0)]
    for _ in range(k):
        other = np.random.default_rng(k)
        if made.random() < 0.5:
            held = other
        found.append((held, other.random()))
    return [g.random() for g, _ in found], held is found[-1][0], held is made, bool(held)


def drawn_by(g, k):
    return 0.0 if k == 0 else g.random() + drawn_by(g, k - 1)


def drawn_by_itself(seed, k):
    g = np.random.default_rng(seed)
    s = 0.0
    for _ in range(3):
        s += drawn_by(g, k)
    return s, g.random()


HELD = [
    exact(walked, (1, 3, 5), (7, 1, 0), (2, 0, 3)),
    exact(walkers, ([1, 2, 5], 4), ([3], 0), ([1] * 9, 2)),
    exact(old_ones, (1, 5), (3, 0)),
    exact(nets, (generator(), [3, 2, 4], 2), (generator(3), [2, 2], 3), (generator(), [2, 2], 0)),
    exact(sources, (generator(), 4), (generator(), 0)),
    exact(one_or_another, (1, True, 5), (1, False, 5), (1, False, 0)),
    exact(drawn_by_itself, (1, 5), (2, 0)),
]  # fmt: skip


@each(HELD)
def test_generators_that_are_held(c: Case) -> None:
    check(c)


def test_generators_that_are_held_where_python_goes_on() -> None:
    check_whatever_leaves(ends_in_python, [(1, 5), (2, 40), (2, 0)])


def test_an_object_s_beginning_that_fails() -> None:
    """What was drawn before is drawn, and the exception is Python's own."""
    fast = np_compile.compile(nets)
    with whole():
        for seed in range(12):  # in some of them, in a constructor within a constructor
            mine, theirs = generator(seed), generator(seed)
            got, want = (
                observe(f, (g, [2, 3, 1, 2], 4), {}) for f, g in ((fast, mine), (nets, theirs))
            )
            assert (got.error, str(got.error)) == (got.error, str(want.error))
            assert type(got.error) is type(want.error)
            np.testing.assert_equal(got.result, want.result)
            assert mine.bit_generator.state == theirs.bit_generator.state


def test_objects_with_generators_as_results() -> None:
    def made(rng, k):
        found = [Net(rng, [2, 2]), Source(rng)]
        w = Walker(k, 2)
        for _ in range(k):
            w.step()
            found[1].send()
        return found, w, w.rng, (rng, w.rng)

    fast = np_compile.compile(made)
    with whole():
        for k in (3, 0):
            mine, theirs = generator(), generator()
            ((net, source), w, g, (given, own)), other = fast(mine, k), made(theirs, k)
            assert net.rng is source.rng is given is mine
            assert w.rng is g is own
            assert g.random() == other[2].random()
            assert source.sent == other[0][1].sent
            np.testing.assert_equal(w.x, other[1].x)
            np.testing.assert_equal(net.weights, other[0][0].weights)
            assert mine.bit_generator.state == theirs.bit_generator.state
    assert not refusals(fast)


class Returning:
    def __init__(self, rng):
        self.x = rng.random()
        return self.x if self.x > 0.5 else None


class Counting:
    made = 0

    def __init__(self, counts):
        counts.append(self.made)
        self.k = len(counts)


class Binding:
    def __init__(self, rng):
        rng.random()
        self.x = 1.0
        self = None


def counted(n):
    counts = []
    for _ in range(n):
        c = Counting(counts)
        counts.append(c.k + 10)
    return counts


def test_beginnings_that_change_what_they_are_given() -> None:
    check(exact(counted, (4,), (0,)))


@pytest.mark.parametrize("kind", [Returning, Binding])
def test_beginnings_that_are_not_read(kind) -> None:
    def made(rng, n):
        s = 0.0
        for _ in range(n):
            s += kind(rng).x
        return s

    fast = np_compile.compile(made)
    with whole():
        for seed in range(5):
            mine, theirs = generator(seed), generator(seed)
            got, want = observe(fast, (mine, 3), {}), observe(made, (theirs, 3), {})
            assert (type(got.error), str(got.error)) == (type(want.error), str(want.error))
            assert got.result == want.result
            assert mine.bit_generator.state == theirs.bit_generator.state
    assert refusals(fast)


DRAWN = np.random.default_rng(3)


def of_the_module(n):
    s = 0.0
    for _ in range(n):
        s += DRAWN.random() + DRAWN.normal(size=2)[1]
    return s


def test_a_generator_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = np_compile.compile(of_the_module)
    with whole():
        for n in (4, 0, 4):
            found = []
            for f in (of_the_module, fast):
                monkeypatch.setitem(globals(), "DRAWN", generator(n))
                found.append((f(n), DRAWN.random()))
            assert found[0] == found[1]
    assert not refusals(fast)


class Agent:
    def __init__(self, seed, n):
        self.rng, self.x = np.random.default_rng(seed), np.zeros(n)

    def act(self):
        self.x[0] += self.rng.random()


def acted(agents, n):
    for _ in range(n):
        for a in agents:
            a.act()
    return agents[0].x[0]


def test_objects_from_outside_that_draw() -> None:
    """In a list C does not read their generators."""
    fast = np_compile.compile(acted)
    with whole():
        for count in (2, 12):
            mine, theirs = ([Agent(k, 2) for k in range(count)] for _ in range(2))
            assert fast(mine, 3) == acted(theirs, 3)
            for a, b in zip(mine, theirs, strict=True):
                assert a.x[0] == b.x[0]
                assert a.rng.random() == b.rng.random()
