"""Stores at index arrays and under masks: of rows, and where the indices share memory with what is
written to."""

from __future__ import annotations

import numpy as np

from .support import Case, check, each, exact


def rows_under_masks(x, v, n):
    new = x.copy()
    for k in range(n):
        m = x[:, 0] > k * 0.1
        new[m] = x[m]
        x[m] += v[m]
        x[~m] = v[0]
        new[m] *= 1.5
        new[m, 1] = 3.0
        x[m] = np.arange(x.shape[1])
        x[m] -= 0.5
        new[m] = new[m][:, ::-1]
    return x, new


def put_under(x, m, v, n):
    for _ in range(n):
        x[m] = v
    return x


def indices_of_itself(a, n):
    b = a.copy()
    for k in range(n):
        a[a % 3] = k + 5
        b[b[::-1] % 3] += 7
        b[b % 3] = b[::-1]
    return a, b


def written_indices(a, n):
    """The array is its own index array: what is written is no index any more."""
    for k in range(n):
        a[a] = len(a) * 1000 + k
        a[:] = 0
    return a


def shifted_indices(a, n):
    for _ in range(n):
        a[1:][a[:-1] % 3] = a[1:] + 1
    return a


def shifted_masks(m, rows, n):
    found = []
    for _ in range(n):
        m[m] = m[::-1].sum() > 2
        rows[rows[:, 1]] = m[:3]
        rows[:, 1:][rows[:, 0]] = False
        m[2] = True
        found.append(m.sum())
    return found, m, rows


def masks_of_itself(m, n):
    found = []
    for _ in range(n):
        m[m[::-1]] = False
        m[1:][m[:-1]] = True
        found.append(m.sum())
    return found, m


def springs(pos, pairs, n):
    force = np.zeros_like(pos)
    for t in range(n):
        force[:] = 0
        a, b = pairs.T
        d = pos[b] - pos[a]
        np.add.at(force, a, d)
        np.subtract.at(force, b, d)
        np.maximum.at(force, a, d * 0.1)
        i, j = pairs[t % len(pairs)]
        pos[i] += 0.1 * force[j]
    return pos, force


class Cloth:
    def __init__(self, pos, pairs):
        self.pos, self.pairs, self.force = pos, pairs, np.zeros(pos.shape)

    def step(self):
        self.force[:] = 0
        a, b = self.pairs.T
        d = self.pos[b] - self.pos[a]
        np.add.at(self.force, a, d)
        np.add.at(self.force, self.pairs[:, 1], -d)
        np.add.at(self.pos, a, self.pos[: len(a)])
        np.add.at(self.pairs, (a % 2, b % 2), self.pairs[:, 0])
        self.pairs %= len(self.pos)
        m = self.pos[:, 0] > 0.2
        self.pos[m] = self.force[m]
        self.pos /= 2 + np.abs(self.pos).max()


def cloth(pos, pairs, n):
    c = Cloth(pos, pairs)
    for _ in range(n):
        c.step()
    return c.pos, c.force


def at_itself(a, n):
    for _ in range(n):
        np.add.at(a, a % 4, a[::-1])
        np.multiply.at(a[1:], a[:-1] % 3, 2)
        a %= 1000
    return a


def put(x, i, v, n):
    for k in range(n):
        np.put(x, i, k + 0.5)
        np.put(x, k % x.size, -1)
        np.put(x, i, v)
        np.put(x, [0, -1], [k, v[0]])
        np.put(x, np.array([[1, 0]]), 2)
    return x


def put_in_turn(x, v, n):
    """Fewer values than indices: they are taken in turn."""
    s = 0.0
    for k in range(n):
        np.put(x, np.arange(4), v)
        s += x[k]
    return x, s


def put_by_truth(x, m, n):
    for _ in range(n):
        np.put(x, m, 5.0)
    return x


G = np.random.default_rng(0)
POS, PAIRS = G.random((4, 3)), np.array([[0, 1], [1, 2], [2, 3]])
M = np.array([True, False, True, True])
V2 = np.array([1.5, -2.5])
M6 = G.random((6, 3)) < 0.5
CASES = [
    exact(rows_under_masks, (G.random((5, 3)), G.random((5, 3)), 3),
          (G.random((1, 2)), G.random((1, 2)), 1)),
    exact(put_under, *((POS, M, v, 2) for v in (1.0, np.arange(3.0), np.ones((1, 3)))),
          *((POS, M, G.random(shape), 2) for shape in ((3, 3), (3, 1), (1, 1), (1,))),
          (POS[:, 0].copy(), M, G.random(3), 2), (POS[:, 0].copy(), M, G.random(1), 2),
          (G.random((2, 2, 3)), M.reshape(2, 2), G.random((3, 3)), 2),
          (POS, M & False, G.random((1, 3)), 1), (POS, M & False, np.ones((0, 3)), 1)),
    exact(put_under, (POS, M, G.random((2, 3)), 2), (POS, M[:3], 1.0, 1),
          (POS, M, POS[:2, :2].copy(), 1), (POS, M & False, G.random((3, 3)), 1)),
    exact(indices_of_itself, (np.array([2, 0, 1]), 3), (np.array([1, 1, 0, 2]), 4)),
    exact(written_indices, (np.array([2, 0, 1]), 3), (np.arange(40), 2)),
    exact(shifted_indices, (np.array([1, 0, 2, 1]), 3), (np.array([0, 5]), 2)),
    exact(shifted_masks, (np.array([True, False, True, True, False, False]), M6, 4)),
    exact(masks_of_itself, (M6[:, 0].copy(), 4), (M6[:, 1].copy(), 0),
          refused="shares memory"),
    exact(springs, (POS, PAIRS, 3), (POS, PAIRS[:1], 2)),
    exact(cloth, (POS, PAIRS, 3), (POS, PAIRS, 0)),
    exact(put, (G.random(5), np.array([3, 1, -2]), G.random(3), 3),
          (G.random((2, 3)), np.array([3, 1, 5]), G.random(3), 3),
          (G.random(9)[::2], np.array([3, 1]), G.random(2), 3), (np.arange(5), PAIRS[0], V2, 2),
          (G.random(3), np.array([3, 1]), G.random(2), 3)),
    exact(put_in_turn, (G.random(6), V2, 3), (G.random(6), G.random(4), 3),
          (G.random(6), G.random(6), 2)),
    exact(put_by_truth, (G.random(3), M, 2), refused="such indices"),
    exact(at_itself, (np.arange(7), 4), (np.arange(4), 1)),
]  # fmt: skip


@each(CASES)
def test_scattered(c: Case) -> None:
    check(c)
