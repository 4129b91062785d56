"""Names that hold a value or None."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import Case, check, check_whatever_leaves, each, exact, whole


def least(x):
    best = None
    for v in x:
        if best is None or v < best:
            best = v
    return best


def least_place(x):
    best, at = None, None
    for k in range(len(x)):
        if best is None or x[k] < best:
            best, at = x[k], k
    return best, at


def first_negative(x):
    for k in range(len(x)):
        if x[k] < 0:
            return k
    return None


def falls_off_the_end(x):
    for v in x:
        if v > 3:
            return v


def uses_a_helper(x):
    k = first_negative(x)
    found = falls_off_the_end(x)
    total = 0.0
    for v in x:
        total += v if k is None else v * k
    if found is not None:
        total += found
    return total, k, found


def differences(x):
    last = None
    out = []
    for v in x:
        if last is not None:
            out.append(v - last)
        last = v
    return out, last


def best_split(x, y):
    best = None, None, np.inf
    for f in range(x.shape[1]):
        for t in x[:, f]:
            left = 0
            for k in range(len(y)):
                if x[k, f] <= t:
                    left += y[k]
            score = abs(left - 2.5)
            if score < best[2] - 1e-12:
                best = f, t, score
    return best


def adds_none(x):
    best = None
    for k in range(len(x)):
        if x[k] > 2:
            best = best + x[k]
        elif x[k] < 0:
            best = 1.0
    return best


def default_of(x, start=None):
    total = start or 0.5
    for v in x:
        total += v
    return total


def truth(x):
    seen = None
    count = 0
    for v in x:
        if seen:
            count += 1
        seen = v if v != 4 else None
    return count, seen


def array_or_none(x, n):
    kept = None
    for k in range(n):
        y = x * k
        if y.sum() > 3:
            kept = y
    return kept


def best_of_arrays(x, n):
    best, score = None, None
    for k in range(n):
        y = x + k * (-1) ** k
        s = float(y.sum())
        if score is None or s > score:
            best, score = y, s
    return best, score


def chosen_value(x, k):
    y = x[0] if k > 0 else None
    for v in x:
        if y is not None:
            y = y + v
    return y


def list_with_none(n):
    parent = [None] * n
    for k in range(1, n):
        parent[k] = (k - 1) // 2
    path = []
    k = n - 1
    while k is not None:
        path.append(k)
        k = parent[k]
    return parent, path


class Search:
    def __init__(self):
        self.best = None
        self.steps = 0

    def run(self, x):
        for v in x:
            self.steps += 1
            if self.best is None or v > self.best:
                self.best = v
        return self.best


def searches(s, x):
    return s.run(x), s.best, s.steps


def prints_none(x):
    last = None
    for v in x:
        print("last:", last)
        last = v
    return last


def _positive(v):
    return float(v) if v > 0 else None


def arrays_of_some(x):
    return np.array([_positive(v) for v in x])


X = np.array([3.0, -1.0, 4.0, 1.5, -9.5])
J = np.array([2, 5, -4])


def padded(x, n):
    before = None
    for k in range(n):
        if k % 2:
            before = k
        if k:
            x = np.pad(x, (before, k))[:9]
    return x


CASES = [
    exact(padded, (np.arange(3.0), 5), (np.arange(3.0), 0)),
    exact(least, (X,), (X[:0],), (J,)),
    exact(least_place, (X,), (X[:0],), (J,)),
    exact(first_negative, (X,), (X[:1],), (X[:0],)),
    exact(falls_off_the_end, (X,), (X[:2],), (J,)),
    exact(uses_a_helper, (X,), (X[:1],), (X[:0],)),
    exact(differences, (X,), (X[:1],), (X[:0],)),
    exact(best_split, (X.reshape(5, 1), np.arange(5)), (X.reshape(5, 1)[:0], J[:0])),
    exact(adds_none, (X,), (X[1:],), (-X,)),
    exact(default_of, (X,), (X, 2.0), (X, 0), (X, None)),
    exact(truth, (X,), (X[2:],), (X[:0],)),
    exact(array_or_none, (np.abs(X), 4), (np.abs(X), 0), (-np.abs(X), 3)),
    exact(best_of_arrays, (X, 5), (X, 0), (X, 1)),
    exact(chosen_value, (X, 1), (X, 0)),
    exact(list_with_none, (7,), (1,), (2,)),
    exact(searches, (Search(), X), (Search(), X[:0])),
    exact(prints_none, (X,), (X[:0],)),
    exact(arrays_of_some, (X,), (-X,), refused="such an argument of a function of NumPy's"),
]


@each(CASES)
def test_none(c: Case) -> None:
    check(c)


def owned(a, whole):
    n = 0
    for k in range(len(a)):
        if a.base is None:
            n += 1
        if a.base is whole:
            n += 100
        if a[k].base is not None:
            n += 1000
    return n


def lacking(a):
    n = 0
    for _ in range(len(a)):
        if n.base is None:
            n += 1
    return n


def test_attributes_that_are_no_methods():
    """They are asked for in Python: they may be None, and there may be none."""
    x = np.arange(9.0)
    check_whatever_leaves(lacking, [(x,)])
    fast = np_compile.compile(owned)
    with whole():
        for args in ((x[1:], x), (x.copy(), x), (x[1:], x)):
            assert fast(*args) == owned(*args)


def last_dtype(x):
    found = None
    for v in x:
        if v > 1:
            found = x.dtype
    return found


def doubled_above_one(x, dtype=None):
    total = 0.0
    for v in x:
        if v > 1:
            dtype = x.dtype
        total += v if dtype is None else 2 * v
    return total


def none_again(x):
    found = x.dtype
    for v in x:
        if v > 1:
            found = None
    return found


def a_type_or_its_dtype(x):
    found = np.float64
    for v in x:
        if v > 1:
            found = x.dtype
    return found


@whole()
def test_a_dtype_that_numpy_takes_for_equal_to_none_or_to_its_type_is_neither():
    for f in (last_dtype, doubled_above_one, none_again, a_type_or_its_dtype):
        check_whatever_leaves(f, [(np.arange(4.0),), (np.zeros(3),)])
