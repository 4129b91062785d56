"""Functions that are read in place and return at several places, with arrays that they make."""

import numpy as np

from .support import check, each, exact


def near(v, i, far):
    """One way makes nothing, the other one several arrays."""
    if i < far:
        return np.zeros(2)
    a = v[i] * 0.005
    b = v[i:].sum(axis=0)
    return a + b - v[i]


def collected(v, far):
    return np.array([near(v, i, far) for i in range(len(v))])


def kept_in_a_list(v, far):
    found = []
    for i in range(len(v)):
        x = near(v, i, far)
        found.append(x)
        y = near(v, len(v) - 1 - i, far) + x
        found.append(y)
    return found


def kept_under_names(v, far):
    last = before = v[0]
    for i in range(len(v)):
        before = last
        last = near(v, i, far)
    return last, before


def left_early(v, far):
    """Ways out in the middle of loops give back what was made until then."""
    total = np.zeros(2)
    for i in range(len(v)):
        if i == far:
            continue
        total += near(v, i, far)
        if total[0] > 3:
            break
        total = near(v, i, 1) + total
    return total


def from_a_loop(v, limit):
    for i in range(len(v)):
        a = v[i] * 2
        if a[0] > limit:
            return a + i
    return np.ones(2)


def in_a_loop(v, limit):
    s = np.zeros(2)
    for k in range(5):
        s = s + from_a_loop(v, limit + k * 0.3)
    return s


def maybe(v, i):
    if v[i, 0] > 0.5:
        return None
    if v[i, 1] > 0.5:
        return v[i]
    return v[i] * 2


def or_none(v):
    found = []
    for i in range(len(v)):
        x = maybe(v, i)
        if x is not None:
            found.append(x + 1)
    return found


def pair(v, i):
    if i % 2:
        return v[i] * 2, i
    w = v[i] + 1
    return w, -i


def pairs(v):
    s, n = np.zeros(2), 0
    for i in range(len(v)):
        a, k = pair(v, i)
        s = s + a
        n += k
    return s, n


class Flock:
    def __init__(self, n):
        rng = np.random.default_rng(n)
        self.x, self.v = rng.random((n, 2)) * 100, rng.random((n, 2))

    def rule(self, i):
        d = self.x - self.x[i]
        distance = np.hypot(d[:, 0], d[:, 1])
        others = (distance < 40) & (distance > 0)
        if not others.any():
            return np.zeros(2)
        return d[others].sum(axis=0) * 0.005 + self.v[others].sum(axis=0)


def step(flock):
    force = np.array([flock.rule(i) for i in range(len(flock.x))])
    flock.v += force
    return force


def truths(v):
    """Of a function that Python calls: NumPy's bool, which has the name of Python's."""
    out = []
    for k in range(len(v)):
        v[k] += 1
    out.append(np.all(v, where=True))
    return out, np.any(v, where=v > 1), v.all(axis=0, where=v > 0)


class Counted:
    def __init__(self):
        self.count = 0

    def within(self, k, most):
        if k > most:
            return False
        self.count += 1
        return True


def asked_again(v, k):
    """What holds behind a `return` in a function holds there alone."""
    counted, total = Counted(), near(v, k, 2)
    for i in range(len(v)):
        total = total + v[i] * (k < 2)
        counted.within(k, 5)
        total = total + (k > 5)
    return total, counted.count, k < 2, k > 5, k > 4


_v = np.random.default_rng(0).random((12, 2))

CASES = [
    exact(collected, (_v, 3), (_v, 0), (_v, 20)),
    exact(kept_in_a_list, (_v, 3), (_v, 12)),
    exact(kept_under_names, (_v, 3), (_v, 11)),
    exact(left_early, (_v, 3), (_v, 5)),
    exact(in_a_loop, (_v, 0.2), (_v, 1.5)),
    exact(or_none, (_v,)),
    exact(pairs, (_v,)),
    exact(truths, (_v,)),
    exact(asked_again, (_v, 1), (_v, 4), (_v, 7)),
    exact(step, (Flock(25),), (Flock(3),)),
]


@each(CASES)
def test_returns_at_several_places(c):
    check(c)
