"""Loops in Python over rows or columns, each step a slice that needs the one before."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _grid(rng, n):
    return rng.random((n, n)), 0.5


@program(
    "sweeps",
    make=_grid,
    small=(10,),
    medium=(100,),
    large=(1000,),
    in_place=(0,),
    python_loop=True,
)
def adi_sweeps(u, r):
    """One step of an alternating-direction method: tridiagonal solves along rows, then columns."""
    n = len(u)
    c = np.empty(n)
    c[0] = r / (1 + 2 * r)
    for i in range(1, n):
        c[i] = r / (1 + 2 * r - r * c[i - 1])
    u[0] /= 1 + 2 * r
    for i in range(1, n):
        u[i] = (u[i] + r * u[i - 1]) * (c[i] / r)
    for i in range(n - 2, -1, -1):
        u[i] += c[i] * u[i + 1]
    u[:, 0] /= 1 + 2 * r
    for j in range(1, n):
        u[:, j] = (u[:, j] + r * u[:, j - 1]) * (c[j] / r)
    for j in range(n - 2, -1, -1):
        u[:, j] += c[j] * u[:, j + 1]


@adi_sweeps.numba
def _adi_sweeps_numba(u, r):
    n = len(u)
    c = np.empty(n)
    c[0] = r / (1 + 2 * r)
    for i in range(1, n):
        c[i] = r / (1 + 2 * r - r * c[i - 1])
    blocks = 8
    for b in prange(blocks):
        first, last = b * n // blocks, (b + 1) * n // blocks
        for j in range(first, last):
            u[0, j] /= 1 + 2 * r
        for i in range(1, n):
            for j in range(first, last):
                u[i, j] = (u[i, j] + r * u[i - 1, j]) * (c[i] / r)
        for i in range(n - 2, -1, -1):
            for j in range(first, last):
                u[i, j] += c[i] * u[i + 1, j]
    for i in prange(n):
        u[i, 0] /= 1 + 2 * r
        for j in range(1, n):
            u[i, j] = (u[i, j] + r * u[i, j - 1]) * (c[j] / r)
        for j in range(n - 2, -1, -1):
            u[i, j] += c[j] * u[i, j + 1]


@adi_sweeps.jax
def _adi_sweeps_jax(u, r):
    def factor(before, _):
        after = r / (1 + 2 * r - r * before)
        return after, after

    c = lax.scan(factor, 0.0, None, length=len(u))[1]

    def solve(u):
        def forward(before, row_factor):
            row, factor = row_factor
            after = (row + r * before) * (factor / r)
            return after, after

        def backward(below, row_factor):
            row, factor = row_factor
            above = row + factor * below
            return above, above

        zero = jnp.zeros_like(u[0])
        u = lax.scan(forward, zero, (u, c))[1]
        return lax.scan(backward, zero, (u, c), reverse=True)[1]

    return solve(solve(u).T).T


def _lower(rng, n, columns):
    matrix = np.tril(rng.standard_normal((n, n))) / n + np.eye(n)
    return matrix, rng.standard_normal((n, columns))


@program(
    "sweeps",
    make=_lower,
    small=(8, 12),
    medium=(16, 625),
    large=(32, 31_250),
    in_place=(1,),
    python_loop=True,
)
def triangular_solve(lower, x):
    """Forward substitution: solve with a lower triangular matrix for many right sides, in place."""
    for i in range(len(lower)):
        x[i] -= lower[i, :i] @ x[:i]
        x[i] /= lower[i, i]


@triangular_solve.numba
def _triangular_solve_numba(lower, x):
    n, columns = x.shape
    blocks = max(8, columns // 512)
    for b in prange(blocks):
        first, last = b * columns // blocks, (b + 1) * columns // blocks
        total = np.empty(last - first)
        for i in range(n):
            total[:] = 0.0
            for k in range(i):
                factor = lower[i, k]
                for j in range(last - first):
                    total[j] += factor * x[k, first + j]
            for j in range(last - first):
                x[i, first + j] = (x[i, first + j] - total[j]) / lower[i, i]


@triangular_solve.jax
def _triangular_solve_jax(lower, x):
    # Entries of x behind row i are still right sides; the zeros of the matrix take them out.
    def step(i, x):
        diagonal = lower[i, i]
        rest = lower[i].at[i].set(0.0) @ x
        return x.at[i].set((x[i] - rest) / diagonal)

    return lax.fori_loop(0, len(lower), step, x)


def _rates(rng, steps, paths):
    return 0.02 * rng.standard_normal((steps, paths)), 100.0, 95.0


@program(
    "sweeps",
    make=_rates,
    small=(10, 10),
    medium=(20, 500),
    large=(50, 20_000),
    python_loop=True,
)
def barrier_paths(returns, start, barrier):
    """Final prices of simulated paths; a path that falls below the barrier is worth nothing."""
    price = np.full(returns.shape[1], start)
    alive = np.ones(returns.shape[1], bool)
    for step in returns:
        price = price * np.exp(step)
        alive &= price > barrier
    return np.where(alive, price, 0.0)


@barrier_paths.numba
def _barrier_paths_numba(returns, start, barrier):
    steps, paths = returns.shape
    out = np.empty(paths)
    for j in prange(paths):
        price = start
        alive = True
        for t in range(steps):
            price *= np.exp(returns[t, j])
            alive &= price > barrier
        out[j] = price if alive else 0.0
    return out


@barrier_paths.jax
def _barrier_paths_jax(returns, start, barrier):
    def step(state, row):
        price, alive = state
        price = price * jnp.exp(row)
        return (price, alive & (price > barrier)), None

    paths = returns.shape[1]
    first = jnp.full(paths, start), jnp.ones(paths, bool)
    price, alive = lax.scan(step, first, returns)[0]
    return jnp.where(alive, price, 0.0)
