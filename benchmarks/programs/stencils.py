"""Finite differences in one, two and three dimensions, in place or not."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _rod(rng, n):
    return rng.random(n), 50


@program(
    "stencils",
    make=_rod,
    small=(100,),
    medium=(10_000,),
    large=(1_000_000,),
    in_place=(0,),
    python_loop=True,
)
def heat_1d(u, steps):
    """Heat in a rod: time steps in place on a vector."""
    for _ in range(steps):
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])


@heat_1d.numba
def _heat_1d_numba(u, steps):
    a, b = u, u.copy()
    for _ in range(steps):
        for i in prange(1, u.size - 1):
            b[i] = a[i] + 0.25 * (a[i - 1] - 2 * a[i] + a[i + 1])
        a, b = b, a
    u[:] = a


@heat_1d.jax
def _heat_1d_jax(u, steps):
    def step(_, u):
        return u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))

    return lax.fori_loop(0, steps, step, u)


def _plate(rng, n):
    return rng.random((n, n)), 50


@program(
    "stencils",
    make=_plate,
    small=(10,),
    medium=(100,),
    large=(700,),
    in_place=(0,),
    python_loop=True,
)
def heat_2d(u, steps):
    """Heat in a plate: 50 time steps in place with the five-point stencil."""
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )


@heat_2d.numba
def _heat_2d_numba(u, steps):
    rows, columns = u.shape
    a, b = u, u.copy()
    for _ in range(steps):
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                b[i, j] = a[i, j] + 0.2 * (
                    a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4 * a[i, j]
                )
        a, b = b, a
    u[:] = a


@heat_2d.jax
def _heat_2d_jax(u, steps):
    def step(_, u):
        return u.at[1:-1, 1:-1].add(
            0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        )

    return lax.fori_loop(0, steps, step, u)


def _block(rng, n):
    return rng.random((n, n, n)), 10


@program(
    "stencils",
    make=_block,
    small=(5,),
    medium=(22,),
    large=(100,),
    in_place=(0,),
    python_loop=True,
)
def heat_3d(u, steps):
    """Heat in a block: time steps in place with the seven-point stencil."""
    c = u[1:-1, 1:-1, 1:-1]
    for _ in range(steps):
        c += 0.1 * (
            u[:-2, 1:-1, 1:-1]
            + u[2:, 1:-1, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2]
            + u[1:-1, 1:-1, 2:]
            - 6 * c
        )


@heat_3d.numba
def _heat_3d_numba(u, steps):
    n, m, p = u.shape
    a, b = u, u.copy()
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                for k in range(1, p - 1):
                    b[i, j, k] = a[i, j, k] + 0.1 * (
                        a[i - 1, j, k]
                        + a[i + 1, j, k]
                        + a[i, j - 1, k]
                        + a[i, j + 1, k]
                        + a[i, j, k - 1]
                        + a[i, j, k + 1]
                        - 6 * a[i, j, k]
                    )
        a, b = b, a
    u[:] = a


@heat_3d.jax
def _heat_3d_jax(u, steps):
    def step(_, u):
        c = u[1:-1, 1:-1, 1:-1]
        return u.at[1:-1, 1:-1, 1:-1].add(
            0.1
            * (
                u[:-2, 1:-1, 1:-1]
                + u[2:, 1:-1, 1:-1]
                + u[1:-1, :-2, 1:-1]
                + u[1:-1, 2:, 1:-1]
                + u[1:-1, 1:-1, :-2]
                + u[1:-1, 1:-1, 2:]
                - 6 * c
            )
        )

    return lax.fori_loop(0, steps, step, u)


def _boundary(rng, n):
    u = np.zeros((n, n))
    u[0] = np.sin(np.linspace(0, np.pi, n))
    return u, 0.02


@program("stencils", make=_boundary, small=(10,), medium=(100,), large=(1000,), python_loop=True)
def jacobi(u, tolerance):
    """Jacobi's iteration for Laplace's equation until no point changes by more than a tolerance."""
    change = np.inf
    while change > tolerance:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        change = np.abs(new - u).max()
        u = new
    return u


@jacobi.numba
def _jacobi_numba(u, tolerance):
    rows, columns = u.shape
    a, b = u.copy(), u.copy()
    change = np.inf
    while change > tolerance:
        change = 0.0
        for i in prange(1, rows - 1):
            largest = 0.0
            for j in range(1, columns - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
                largest = max(largest, abs(b[i, j] - a[i, j]))
            change = max(change, largest)
        a, b = b, a
    return a


@jacobi.jax
def _jacobi_jax(u, tolerance):
    def step(state):
        u, _ = state
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        new = u.at[1:-1, 1:-1].set(inner)
        return new, jnp.abs(new - u).max()

    return lax.while_loop(lambda state: state[1] > tolerance, step, (u, jnp.inf))[0]


def _wave(rng, n):
    x = np.linspace(-3, 3, n)
    return np.exp(-(x[:, None] ** 2 + x[None, :] ** 2)), 10


@program("stencils", make=_wave, small=(10,), medium=(100,), large=(1000,), python_loop=True)
def wave(u, steps):
    """The wave equation on a torus: neighbours by np.roll, two time levels."""
    before = u
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        u, before = 2 * u - before + 0.2 * (around - 4 * u), u
    return u


@wave.numba
def _wave_numba(u, steps):
    rows, columns = u.shape
    now, before, after = u.copy(), u.copy(), np.empty_like(u)
    for _ in range(steps):
        for i in prange(rows):
            up, down = (i - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left = j - 1 if j > 0 else columns - 1
                right = j + 1 if j + 1 < columns else 0
                c = now[i, j]
                around = now[up, j] + now[down, j] + now[i, left] + now[i, right]
                after[i, j] = 2 * c - before[i, j] + 0.2 * (around - 4 * c)
        before, now, after = now, after, before
    return now


@wave.jax
def _wave_jax(u, steps):
    def step(_, state):
        u, before = state
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return 2 * u - before + 0.2 * (around - 4 * u), u

    return lax.fori_loop(0, steps, step, (u, u))[0]
