"""Simplex, interior points, branch and bound: functions within functions, errors as answers."""

from __future__ import annotations

import heapq
import math
import warnings

import numpy as np

from ..whole_programs import whole


class LPError(Exception):
    pass


class Infeasible(LPError):
    pass


class Unbounded(LPError):
    def __init__(self, ray):
        self.ray = ray
        super().__init__("unbounded along " + np.array2string(ray, precision=3))


def _pivot(T, basis, r, c):
    T[r] /= T[r, c]
    for i in range(len(T)):
        if i != r and T[i, c] != 0:
            T[i] -= T[i, c] * T[r]
    basis[r] = c


def simplex(c, A, b, eps=1e-10):
    """max c x, A x <= b, x >= 0, two phases."""
    c, A, b = (np.asarray(v, dtype=np.float64) for v in (c, A, b))
    m, n = A.shape
    neg = b < 0
    A, b = np.where(neg[:, None], -A, A), np.abs(b)
    T = np.zeros((m + 1, n + m + int(neg.sum()) + 1))
    T[:m, :n] = A
    T[:m, n : n + m] = np.diag(np.where(neg, -1.0, 1.0))
    T[:m, -1] = b
    basis = np.arange(n, n + m)
    art = np.flatnonzero(neg)
    for k, r in enumerate(art):
        T[r, n + m + k] = 1
        basis[r] = n + m + k
    pivots = 0

    def solve(limit):
        nonlocal pivots
        while True:
            cols = np.flatnonzero(T[-1, :limit] < -eps)
            if cols.size == 0:
                return
            j = cols[0]
            pos = T[:m, j] > eps
            if not np.any(pos):
                ray = np.zeros(limit)
                ray[j] = 1
                inside = basis < limit
                ray[basis[inside]] = -T[:m, j][inside]
                raise Unbounded(ray[:n])
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(pos, T[:m, -1] / T[:m, j], np.inf)
            best = ratio.min()
            ties = np.flatnonzero(ratio <= best + eps)
            r = ties[np.argmin(basis[ties])]
            _pivot(T, basis, r, j)
            pivots += 1

    if art.size:
        T[-1, :] = -T[art].sum(axis=0)
        T[-1, n + m : -1] = 0
        solve(n + m)
        if abs(T[-1, -1]) > 1e-8:
            raise Infeasible(f"phase one ends with {-T[-1, -1]:.3g}")
        T[-1] = 0
    T[-1, :n] = -c
    for r, j in enumerate(basis):
        if T[-1, j] != 0:
            T[-1] -= T[-1, j] * T[r]
    solve(n + m)
    x = np.zeros(T.shape[1] - 1)
    x[basis] = T[:m, -1]
    return x[:n], T[-1, -1], pivots


def interior(c, A, b, tol=1e-8, maxiter=50):
    """Mehrotra, min -c x with slacks."""
    m, n = A.shape
    Af = np.hstack([A, np.eye(m)])
    cf = np.concatenate([-np.asarray(c, float), np.zeros(m)])
    x, s = np.ones(n + m), np.ones(n + m)
    y = np.zeros(m)
    for it in range(maxiter):
        rb, rc = Af @ x - b, Af.T @ y + s - cf
        mu = x @ s / len(x)
        if max(np.linalg.norm(rb), np.linalg.norm(rc), mu) < tol:
            break
        d = x / s
        M = (Af * d) @ Af.T

        def direction(rxs):
            rhs = -rb - Af @ (d * rc) + Af @ (rxs / s)
            dy = np.linalg.solve(M, rhs)
            ds = -rc - Af.T @ dy
            return -(rxs + x * ds) / s, dy, ds

        def length(v, dv):
            neg = dv < 0
            return min(1.0, (-v[neg] / dv[neg]).min()) if neg.any() else 1.0

        dx, dy, ds = direction(x * s)
        ap, ad = length(x, dx), length(s, ds)
        sigma = ((x + ap * dx) @ (s + ad * ds) / len(x) / mu) ** 3
        dx, dy, ds = direction(x * s + dx * ds - sigma * mu)
        ap, ad = 0.99 * length(x, dx), 0.99 * length(s, ds)
        x = x + ap * dx
        y, s = y + ad * dy, s + ad * ds
    else:
        warnings.warn(f"interior point: {maxiter} iterations", stacklevel=2)
    return x[:n], it


def branch_and_bound(c, A, b, limit=60):
    best, incumbent = -math.inf, None
    heap, count = [(-math.inf, 0, [], [])], 0
    while heap and count < limit:
        bound, _, rows, rhs = heapq.heappop(heap)
        if -bound <= best:
            continue
        count += 1
        try:
            x, v, _ = simplex(c, np.vstack([A, *rows]) if rows else A, np.append(b, rhs))
        except Infeasible:
            continue
        if v <= best + 1e-9:
            continue
        frac = np.abs(x - np.rint(x))
        if frac.max() < 1e-7:
            best, incumbent = v, np.rint(x).astype(int)
            continue
        k = int(frac.argmax())
        e = np.zeros((1, len(c)))
        e[0, k] = 1
        heapq.heappush(heap, (-v, 2 * count, rows + [e], rhs + [math.floor(x[k])]))
        heapq.heappush(heap, (-v, 2 * count + 1, rows + [-e], rhs + [-math.ceil(x[k])]))
    return incumbent, best, count


@whole([5.0, 4, 3], np.array([[2.0, 3, 1], [4, 1, 2], [3, 4, 2]]), np.array([5.0, 11, 8]))
def linear_and_integer_program(c, A, b):
    try:
        x, v, pivots = simplex(c, A, b)
    except LPError as e:
        print(type(e).__name__, e)
        return repr(e), getattr(e, "ray", None)
    xi, it = interior(c, A, b)
    z, best, nodes = branch_and_bound(c, A, b)
    print(
        f"simplex {v:.6f} in {pivots}, interior {np.dot(c, xi):.6f} in {it}, "
        f"integers {best} in {nodes} {z}"
    )
    return x, v, pivots, xi, it, z, best, nodes
