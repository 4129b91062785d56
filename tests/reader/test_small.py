"""Functions of small arrays in loops, which have C of their own."""

from __future__ import annotations

import numpy as np
import pytest

from .support import Case, case, check, each, exact

_RNG = np.random.default_rng(5)


def inverses(a):
    total = np.zeros(a.shape[1:])
    for k in range(len(a)):
        total += np.linalg.inv(a[k])
    return total


def systems(a, b):
    out = np.zeros(b.shape)
    for k in range(len(a)):
        out[k] = np.linalg.solve(a[k], b[k])
    return out


def determinants(a):
    out = []
    for m in a:
        out.append(np.linalg.det(m))  # noqa: PERF401
    return out


def kalman(z, f, h, q, s, x, p):
    means = np.zeros((len(z), len(x)))
    for k in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + s)
        x = x + gain @ (z[k] - h @ x)
        p = (np.eye(len(x)) - gain @ h) @ p
        means[k] = x
    return means, p


def newton(x, n):
    for _ in range(n):
        f = np.array([x[0] ** 2 + x[1] - 3, x[0] - x[1] ** 2 + 1])
        j = np.array([[2 * x[0], 1.0], [1.0, -2 * x[1]]])
        x = x - np.linalg.solve(j, f)
    return x


def medians(x, n):
    out = np.zeros(len(x))
    for k in range(len(x)):
        out[k] = np.median(x[max(0, k - n) : k + n + 1])
    return out


def medians_of_images(x):
    out = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = np.median(x[i - 1 : i + 2, j - 1 : j + 2])
    return out


def sorted_parts(x, n):
    out = np.zeros(n)
    for k in range(n):
        s = np.sort(x[: k + 1])
        out[k] = s[k // 2] - s[0]
    return out


def sorts_rows(a):
    for k in range(len(a)):
        a[k] = np.sort(a[k])
    return a


def fails_at_a_singular_one(a, x):
    done = 0
    for k in range(len(a)):
        done += 1
        x[k] = np.linalg.inv(a[k])[0, 0]
    return x, done


def matrices(*shape):
    return _RNG.normal(size=shape) + 3 * np.eye(shape[-1])


SINGULAR = matrices(3, 2, 2)
SINGULAR[1] = [[1, 2], [2, 4]]
SPECIAL = np.array([3.0, np.nan, -1, np.inf, 2, -np.inf, 0.5, np.nan])
CASES = [
    *(case(inverses, (matrices(4, n, n),)) for n in (1, 2, 3, 5, 17)),
    case(inverses, (_RNG.integers(-9, 9, (3, 3, 3)),), (matrices(0, 2, 2),)),
    *(case(systems, (matrices(4, n, n), _RNG.normal(size=(4, n)))) for n in (1, 2, 4)),
    case(systems, (matrices(4, 3, 3), _RNG.normal(size=(4, 3, 2)))),
    case(determinants, (matrices(4, 3, 3),), (SINGULAR,), (-matrices(3, 2, 2),)),
    case(kalman, (_RNG.normal(size=(9, 2)), matrices(4, 4) / 4, matrices(2, 2) @ np.eye(2, 4),
                  np.eye(4), np.eye(2), np.zeros(4), np.eye(4))),
    case(newton, (np.array([1.0, 2.0]), 6)),
    exact(medians, (_RNG.normal(size=40), 3), (_RNG.normal(size=9), 20), (SPECIAL, 1),
          (np.arange(5), 1)),
    exact(medians_of_images, (_RNG.normal(size=(7, 6)),), (_RNG.integers(0, 255, (5, 5)),)),
    exact(sorted_parts, (_RNG.normal(size=60), 60), (SPECIAL, 8)),
    exact(sorts_rows, (_RNG.normal(size=(3, 70)),), (_RNG.normal(size=(3, 1)),)),
]  # fmt: skip


@each(CASES)
def test_small(c: Case) -> None:
    fast = check(c)
    calls = [site for known in fast._reading._regions.values() for r in known for site in r.sites]
    assert not calls  # none is made in Python


def test_a_singular_matrix_raises_where_numpy_does() -> None:
    check(exact(fails_at_a_singular_one, (SINGULAR, np.zeros(3)), (SINGULAR[:1], np.zeros(3))))


@pytest.mark.parametrize("n", [31, 40, 100])
def test_large_ones_are_called(n) -> None:
    check(case(inverses, (matrices(2, n, n),)))
    x = _RNG.normal(size=n * 20)
    check(exact(medians, (x, n * 10), (np.sort(x)[::-1].copy(), n * 10), (np.round(x), n * 7)))
