"""`itertools`, `map`, `zip`, and comprehensions that change something, in compiled loops."""

from __future__ import annotations

import bisect
import itertools

import numpy as np

from .support import check, check_whatever_leaves, each, exact


def triangles(d):
    best, arg = np.inf, None
    for a, b, c in itertools.combinations(range(len(d)), 3):
        s = d[a, b] + d[b, c] + d[c, a]
        if s < best:
            best, arg = s, (a, b, c)
    return best, arg


def close_pairs(x):
    found = [(i, j) for i, j in itertools.combinations(range(len(x)), 2) if abs(x[i] - x[j]) < 0.3]
    return found, list(itertools.permutations([1, 2, 3], 2))


def grids(x, n):
    total = 0.0
    for i, j in itertools.product(range(n), repeat=2):
        if i == j:
            continue
        total += x[i] * j
        if total > 50:
            break
    for i, u, k in itertools.product(range(2), x, (3, 4)):
        total -= u * u * k - i
    for i, j in itertools.combinations_with_replacement(range(n), 2):
        total += i - 2 * j
    for i, j, k in itertools.permutations(range(n), 3):
        total += (i - j) * k
    return total


def misnamed(x):
    total = 0.0
    for u, v in itertools.product(x, x, times=1):
        total += u * v
    return total


def in_order(pts):
    for _ in range(2):
        p = sorted(map(tuple, pts))
    return p, sum(map(abs, [-1.5, 2.0])), list(map(int, pts[:, 0] * 10))


def with_a_tuple(x):
    total = 0.0
    for w, u in zip((1.0, 4.0, 1.0), x, strict=False):
        total += w * u
    for u, w in zip(x, (), strict=False):
        total += u * w + 1e9
    return total


def drawn_in_lists(n, seed):
    rng = np.random.default_rng(seed)
    x = [rng.random() for _ in range(n)]
    y = np.array([[rng.integers(0, 9) for _ in range(k)] + [k] * (3 - k) for k in range(4)])
    k = 7
    z = [(k, float(rng.normal())) for k in range(n) if k % 2]
    return x, y, z, k, rng.random()


def popped(items):
    out = [items.pop() for _ in range(3)]
    return out, items


def longest(x):
    tails = []
    for v in x:
        k = bisect.bisect_left(tails, v)
        if k == len(tails):
            tails.append(v)
        else:
            tails[k] = v
    return tails


def ranked(x, y):
    found = []
    for v in y:
        k = bisect.bisect_left(x, v)
        found.append((k, bisect.bisect_right(x, v), bisect.bisect(x, v)))
    kept = [2.0]
    for v in y:
        bisect.insort(kept, float(v))
        bisect.insort_left(kept, v / 2.0)
    return found, kept


def _first_primes(n):
    k = 2
    count = 0
    while True:
        if all(k % d for d in range(2, k)):
            yield k
            count += 1
            if count == n:
                return
        k += 1


def _until_negative(x):
    for row in x:
        for v in row:
            if v < 0:
                return
            yield v
        yield 0.5


def through_returns(x, n):
    total = 0.0
    for v in _until_negative(x):
        total += v
        if total > 90:
            break
    primes = []
    for p in _first_primes(n):
        if p == 5:
            continue
        primes.append(p)
    return total, primes, list(_until_negative(x)), sum(_first_primes(n))


def accumulated(x, y):
    total, largest = 0.0, []
    for k, v in enumerate(itertools.accumulate(x)):
        if k + 1 < len(x):
            x[k + 1] += 1  # it has not been taken yet
        total += k * v
    for k, v in enumerate(itertools.accumulate(y, initial=100), start=3):
        if k == 5:
            continue
        if k > 9:
            break
        total += v
    for v in itertools.accumulate(y, max):
        largest.append(v)
        largest.append(v * 2)
    return total, largest, x


def steps(x):
    found = []
    for a, b in itertools.pairwise(x):
        found.append(b - a)
        if len(x) < 20:
            x.append(a + b)
    return found, x


def first_step_down(x):
    for k, (a, b) in enumerate(itertools.pairwise(x)):
        if b < a:
            return k
    return a, b


def lengths(x):
    out = np.zeros(len(x) - 1)
    for k, (a, b) in enumerate(itertools.pairwise(x)):
        out[k] = np.sqrt(((a - b) ** 2).sum())
    for row in itertools.accumulate(x):
        out[0] += row[0]
    return out, row


def chained(x, y):
    total = 0.0
    for k, v in enumerate(itertools.chain(x, y, [0.25] * 9)):
        if v > 0.9 or k == 2:
            continue
        total += v
        if total > 1e6:
            break
    else:
        total = -total
    for n in itertools.repeat(2, 3):
        total -= n
    for k in itertools.chain(range(2), range(5, len(x))):
        total += x[k] * k
    for n in itertools.chain.from_iterable([[1, 2], [3]] * 20):
        total += n
    return total


def sliced(x):
    total = 0.0
    for v in itertools.islice(x, 3):
        total += v
    for v in itertools.islice(x, None):
        total -= v * 0.1
    for k, v in enumerate(itertools.islice(x, 1, None, 3)):
        total += k * v
    return total, list(itertools.islice(x, 0)), [v * 2 for v in itertools.islice(x, 2, 5)]


def first_above(x, low):
    for k in itertools.count(low):
        if x[k] > 0.7:
            return k


def counted(n):
    total = 0
    for k in itertools.count(5, -2):
        if k < n:
            break
        total += k
    for i, k in enumerate(itertools.count(0.5, 0.1)):
        if i > 30:
            return total
        total += k


def steps_by_pairs(x):
    total = 0
    for a, b in itertools.pairwise(x):
        total += 10 // (b - a)
    return total


def numbered_generator(x):
    def large(y):
        for v in y:
            if v > 0.3:
                yield v

    total = 0.0
    for k, v in enumerate(large(x), 2):
        if v > 0.8:
            continue
        total += k * v
    return total


def before_the_first(x):
    total = 0.0
    for v in itertools.islice(x, -1):
        total += v
    return total


def so_many_times(n):
    total = 0
    for v in itertools.repeat(3, n):
        total += v
    return total


R = np.random.default_rng(2)
X = R.random((3, 4))
Y = np.where(np.arange(12).reshape(3, 4) == 6, -1, X)
CASES = [
    exact(triangles, (R.random((6, 6)),)),
    exact(close_pairs, (R.random(6),)),
    exact(grids, (R.random(9), 5), (R.random(9) * 30, 9)),
    exact(in_order, (R.random((5, 2)),)),
    exact(with_a_tuple, (R.random(5),)),
    exact(drawn_in_lists, (5, 3), (0, 1)),
    exact(longest, (R.integers(0, 20, 30),), (R.random(11),)),
    exact(ranked, ([1.0, 2.0, 2.0, 5.0], np.array([0, 2, 3, 9])),
          (np.array([1.0, 2.0, 2.0]), np.array([2, 7]))),
    exact(accumulated, (R.random(12), R.random(9)), ([1.5] * 30, [2.5] * 40),
          (list(range(30)), [3, 1, 2] * 9)),
    exact(steps, ([1.0, 2.0],), (list(range(12)),)),
    exact(first_step_down, (R.random(30),), (np.arange(4),), (list(range(50)),), (R.random(1),)),
    exact(lengths, (R.random((4, 3)),), (R.random((3, 30)).T,)),
    exact(chained, (R.random(12), [0.5] * 30)),
    exact(sliced, (R.random(50),), (R.random(2),), ([1.5, 2.5] * 30,)),
    exact(first_above, (R.random(50), 0), (np.zeros(4), -2)),
    exact(counted, (-50,)),
    exact(steps_by_pairs, (np.arange(30) ** 2,), ([1, 2, 4, 4, 5] * 6,)),
    exact(numbered_generator, (R.random(30),)),
    exact(through_returns, (X, 4), (Y, 3), (X * 20, 1)),
]  # fmt: skip


@each(CASES)
def test_iterators(c):
    check(c)


def test_other_words_are_an_error():
    check_whatever_leaves(misnamed, [(R.random(3),)])


def test_bounds_that_itertools_refuses():
    check_whatever_leaves(before_the_first, [(R.random(3),)])
    check_whatever_leaves(so_many_times, [(40,), (-1,), (2.5,)])


def test_what_a_comprehension_takes_is_gone():
    check_whatever_leaves(popped, [([1, 2, 3, 4, 5],), ([1, 2],), ([1.5] * 4,)])
