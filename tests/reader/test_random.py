"""Random numbers drawn in compiled loops: NumPy's own, and the same state afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile.reader import region

from .support import Case, case, check, check_call, each, exact, refusals, whole


def walk(rng, n):
    x, path = 0.0, np.zeros(n)
    for k in range(n):
        x += rng.standard_normal() * 0.5 + rng.random() - 0.5
        path[k] = x
    return path, rng.random()


def metropolis(s, beta, n, seed):
    rng = np.random.default_rng(seed)
    m = s.shape[0]
    taken = 0
    for _ in range(n):
        i = rng.integers(0, m)
        j = rng.integers(0, m)
        e = 2 * s[i, j] * (s[(i + 1) % m, j] + s[i - 1, j] + s[i, (j + 1) % m] + s[i, j - 1])
        if e <= 0 or rng.random() < np.exp(-beta * e):
            s[i, j] = -s[i, j]
            taken += 1
    return s, taken, rng.integers(1000)


def distributions(rng, n):
    out = []
    for k in range(n):
        out.append(rng.normal(k, 2.0))
        out.append(rng.uniform(-1, k + 1))
        out.append(rng.exponential(0.5))
    return out, rng.random(3)


def arrays_drawn(rng, n):
    total = np.zeros(4)
    for _ in range(n):
        total += rng.random(4) - rng.standard_normal(4) + rng.integers(0, 10, 4)
        if total[0] > 1:
            total[0] -= rng.random()
    return total, rng.standard_normal()


def shuffled(x, rng):
    for i in range(len(x) - 1, 0, -1):
        j = rng.integers(0, i + 1)
        x[i], x[j] = x[j], x[i]
    return x


def until(rng, t):
    n = 0
    while True:
        n += 1
        if rng.random() > t:
            return n


def fails_on_the_way(rng, x, n):
    for k in range(n):
        x[k] = rng.random()
        if x[k] > 0.9:
            raise ValueError(f"{x[k]:.3f} at {k}")
    return x


def mixed_widths(rng, n):
    a = 0
    for _ in range(n):
        a += rng.integers(0, 7) + rng.integers(0, 2**40) % 5 + rng.integers(-3, 3, endpoint=True)
    return a, rng.integers(0, 100)


def legacy(n):
    s = 0.0
    out = np.zeros(n)
    for k in range(n):
        s += np.random.rand() + np.random.randn()
        out[k] = np.random.uniform(0, 2) + np.random.normal()
        if np.random.random() < 0.5:
            s -= np.random.randint(0, 10)
    return s, out, np.random.random()


def legacy_resampled(n):
    x = np.arange(5.0)
    out = np.zeros(n)
    for k in range(n):
        out[k] = x[np.random.randint(0, 5, 5)].sum() + np.random.permutation(x)[0]
        out[k] += np.random.choice(x) + np.random.randn(2)[1] + np.random.standard_exponential()
    return out, np.random.random()


def legacy_seeded(n, seed):
    np.random.seed(seed)
    s = 0
    for _ in range(n):
        s += np.random.randint(0, 100)
    return s


def seeds_first(seed, n):
    np.random.seed(seed)
    s = 0.0
    for _ in range(n):
        s += np.random.rand()
        np.random.seed(seed)
    return s


def picked(rng, n, values):
    out = np.zeros(n)
    for k in range(n):
        out[k] = rng.choice(values)
    return out


def monte_carlo(rng, n):
    inside = 0
    for _ in range(n):
        x, y = rng.random(), rng.random()
        if x * x + y * y < 1:
            inside += 1
    return 4 * inside / n


R = np.random.default_rng(8)


def generator(seed=1, bits=np.random.PCG64):
    return np.random.Generator(bits(seed))


def resampled(rng, x, n):
    out = np.empty(n)
    for k in range(n):
        out[k] = x[rng.choice(len(x), len(x))].mean() + rng.permutation(3)[0] + rng.poisson(2.5)
    return out, rng.uniform()


def by_weights(rng, p, n):
    total = 0
    for _ in range(n):
        total += rng.choice(3, p=p) + rng.multinomial(5, p)[1]
    return total, rng.random()


def pairs(rng, m, n):
    found = []
    for _ in range(n):
        i, j = sorted(rng.integers(0, m, 2))
        found.append((i, j, rng.gamma(2.0) + rng.beta(1, 2)))
    return found


def fails_to_draw(rng, scales):
    x = rng.random()
    for s in scales:
        x += rng.normal(0.0, 1.0) + rng.gamma(2.0, s)
    return x


def in_place(rng, x, rows, items):
    for _ in range(4):
        rng.shuffle(x)
        rng.shuffle(x[::2])
        rng.shuffle(rows)
        rng.shuffle(items)
    mine = [(k, x[k] * 0.5) for k in range(len(x))]
    rng.shuffle(mine)
    rng.shuffle(x[:0])
    return mine, rng.random()


def integers_drawn(rng, low, high):
    found = []
    for k in range(4):
        some = rng.integers(low, high, 5)
        found.append((some, rng.integers(high, size=(2, k))))
    return found, rng.integers(low, high), rng.random()


def made_here(seed, n):
    rng, old = np.random.default_rng(seed), np.random.RandomState(seed)
    total, steps = 0.0, 1
    for k in range(n):
        total += rng.random() * k + old.rand()
        steps = steps * 1000 + k  # beyond 64 bits Python goes on
    return (total, steps), rng, old.randint(0, 9, 3), rng.choice(9, 3, replace=False)


def seeded_here(n):
    np.random.seed(n)
    found = []
    for _ in range(n):
        found.append((np.random.randint(0, 50, 3), np.random.rand()))
        np.random.shuffle(found[-1][0])
        np.random.shuffle(found)
    return found


S = np.where(np.random.default_rng(0).random((6, 6)) < 0.5, -1, 1)
CASES = [
    case(walk, (generator(), 9), (generator(2), 0), (generator(3), 40)),
    case(metropolis, (S, 0.4, 200, 3), (S, 0.1, 0, 3)),
    case(distributions, (generator(), 4), (generator(), 0)),
    case(arrays_drawn, (generator(), 5), (generator(), 0)),
    case(shuffled, (np.arange(9.0), generator()), (np.arange(1.0), generator())),
    case(until, (generator(), 0.9), (generator(), 0.0)),
    case(fails_on_the_way, (generator(), np.zeros(50), 50), (generator(), np.zeros(3), 2)),
    case(fails_on_the_way, (generator(5), np.zeros(3), 9)),
    case(mixed_widths, (generator(), 20), (generator(7), 1)),
    case(picked, (generator(), 5, np.arange(3.0)), (generator(), 0, np.arange(3.0))),
    exact(resampled, (generator(), R.random(9), 5), (generator(4), R.random(4), 3)),
    exact(by_weights, (generator(), np.array([0.2, 0.5, 0.3]), 5)),
    exact(pairs, (generator(), 6, 4), (generator(9), 2, 9)),
    exact(in_place, *((generator(), np.arange(n), np.arange(2.0 * n).reshape(n, 2), [*range(70)])
                      for n in (1, 9))),
    exact(integers_drawn, *((generator(), low, high) for low, high in
                            ((0, 1), (-3, 9), (0, 2**32), (1, 2**32 - 1), (0, 2**40)))),
    case(monte_carlo, (generator(), 100), (generator(), 1), (generator(), 0)),
]  # fmt: skip


@each(CASES)
def test_generators(c: Case) -> None:
    check(c)


@pytest.mark.parametrize(("f", "calls"), [
    (legacy, [(5,), (0,), (30,)]), (legacy_seeded, [(5, 3), (0, 1), (9, 3)]),
    (legacy_resampled, [(5,), (0,)]), (seeded_here, [(5,), (0,)]),
], ids=["drawn", "seeded", "resampled", "seeded there"])  # fmt: skip
def test_legacy(f, calls) -> None:
    fast = np_compile.compile(f)
    with whole():
        for args in calls:
            np.random.seed(11)
            want = f(*args)
            state = np.random.get_state()
            np.random.seed(11)
            got = fast(*args)
            after = np.random.get_state()
            assert type(got) is type(want)
            np.testing.assert_equal(got, want)
            np.testing.assert_equal(after[1], state[1])
            assert after[2:] == state[2:]


@pytest.mark.parametrize(
    "seed", [0, 5, 2**32 - 1, 2**32, -1, np.int64(7), np.uint8(3), True, None, [4]]
)
def test_seeds(seed) -> None:
    """What np.random keeps beside the generator, every other normal number, is forgotten too."""
    fast = np_compile.compile(seeds_first)

    def ends(f, n):
        np.random.seed(3)
        np.random.randn()
        try:
            result = f(seed, n)
        except ValueError as e:
            result = str(e)
        state = np.random.get_state()
        fresh = seed is None and not isinstance(result, str)
        return [] if fresh else [result, state[1].tolist(), state[2:], np.random.randn()]

    with whole():
        for n in (1, 3, 3, 0):
            assert ends(fast, n) == ends(seeds_first, n)


def test_seeds_are_c_s() -> None:
    fast = np_compile.compile(seeds_first)
    with whole():
        fast(1, 2)
        assert "draw_seeded(rt, g" in np_compile.inspect(fast)(1, 2)[0].output
    assert not refusals(fast)
    assert not np_compile.explain(fast)(1, 2).segments


def test_seeds_of_another_bit_generator() -> None:
    fast = np_compile.compile(seeds_first)
    before = np.random.get_bit_generator()
    with whole():
        assert fast(5, 3) == seeds_first(5, 3)
        try:
            for bits in (np.random.MT19937, np.random.PCG64, np.random.MT19937):
                np.random.set_bit_generator(bits(4))
                for n in (3, 0):
                    assert fast(5, n) == seeds_first(5, n)
        finally:
            np.random.set_bit_generator(before)
        assert fast(5, 3) == seeds_first(5, 3)


def test_a_draw_that_fails_leaves_the_state_that_numpy_leaves() -> None:
    fast, scales = np_compile.compile(fails_to_draw), np.array([1.0, 2.0, -1.0, 3.0])
    with whole():
        for _ in range(3):
            mine, theirs = generator(5), generator(5)
            with pytest.raises(ValueError, match="scale < 0"):
                fast(mine, scales)
            with pytest.raises(ValueError, match="scale < 0"):
                fails_to_draw(theirs, scales)
            assert mine.bit_generator.state == theirs.bit_generator.state


def test_a_result_of_another_type_is_drawn_once(monkeypatch) -> None:
    """Where compiled code cannot take what was drawn, Python draws it again."""
    fast = np_compile.compile(resampled)
    with whole():
        fast(generator(), R.random(4), 2)
        monkeypatch.setattr(region, "stored", lambda *a: False)
        mine, theirs, x = generator(5), generator(5), R.random(4)
        np.testing.assert_equal(fast(mine, x, 3), resampled(theirs, x, 3))
        assert mine.bit_generator.state == theirs.bit_generator.state


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_other_bit_generators(bits) -> None:
    fast = np_compile.compile(walk)
    with whole():
        for n in (9, 0, 3):
            mine, theirs = generator(5, bits), generator(5, bits)
            np.testing.assert_equal(fast(mine, n), walk(theirs, n))
            np.testing.assert_equal(mine.bit_generator.state, theirs.bit_generator.state)
    assert not refusals(fast)


def test_one_generator_in_two_places() -> None:
    def two(a, b, n):
        s = 0.0
        for _ in range(n):
            s += a.random() - b.random()
        return s, a.random()

    fast = np_compile.compile(two)
    rng = generator()
    with whole():
        check_call(fast, two, (generator(1), generator(2), 5), 0)
        check_call(fast, two, (rng, rng, 5), 0)


def test_a_numpy_that_shuffles_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def dealt(rng, x, n):
        for _ in range(n):
            rng.shuffle(x)
        return x, rng.random()

    def fast_and_slow(made):
        for legacy in (np.random.default_rng, np.random.RandomState):
            got, want = made(legacy(3), np.arange(20), 4), dealt(legacy(3), np.arange(20), 4)
            np.testing.assert_equal(got, want)

    with whole():
        fast = np_compile.compile(dealt)
        fast_and_slow(fast)
        assert not refusals(fast)
        monkeypatch.setattr("np_compile.reader.random._shuffles_as_numpy", lambda: False)
        fast = np_compile.compile(dealt)
        fast_and_slow(fast)
        assert refusals(fast)


def test_generators_that_are_made_here() -> None:
    fast = np_compile.compile(made_here)
    with whole():
        for args in ((3, 5), (3, 0), (9, 40)):  # the last call ends in Python
            got, want = fast(*args), made_here(*args)
            assert got[0] == want[0]
            assert got[1].random() == want[1].random()
            for g, w in zip(got[2:], want[2:], strict=True):
                np.testing.assert_array_equal(g, w)
    assert fast._reading.is_compiled
