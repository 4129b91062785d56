"""Programs on integers, booleans and images of bytes."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _words(rng, n):
    return (rng.integers(0, 2**32, n, dtype=np.uint32),)


@program("integers", make=_words, small=(100,), medium=(10_000,), large=(1_000_000,))
def hash_mix(x):
    """Mix the bits of uint32 numbers: shifts, exclusive or, products that wrap around."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _seeds(rng, n):
    return rng.integers(0, 2**62, n), 8


@program(
    "integers",
    make=_seeds,
    small=(100,),
    medium=(10_000,),
    large=(1_000_000,),
    python_loop=True,
)
def random_walks(state, steps):
    """Many walks at once, each driven by its own int64 generator that wraps around."""
    position = np.zeros_like(state)
    for _ in range(steps):
        state = state * 6364136223846793005 + 1442695040888963407
        position += ((state >> 33) & 1) * 2 - 1
    return position


@random_walks.numba
def _random_walks_numba(state, steps):
    position = np.zeros_like(state)
    for i in prange(state.size):
        s = state[i]
        p = 0
        for _ in range(steps):
            s = s * 6364136223846793005 + 1442695040888963407
            p += ((s >> 33) & 1) * 2 - 1
        position[i] = p
    return position


@random_walks.jax
def _random_walks_jax(state, steps):
    def step(_, pair):
        s, p = pair
        s = s * 6364136223846793005 + 1442695040888963407
        return s, p + ((s >> 33) & 1) * 2 - 1

    return lax.fori_loop(0, steps, step, (state, jnp.zeros_like(state)))[1]


def _board(rng, height, width):
    return rng.random((height, width)) < 0.3, 4


@program(
    "integers",
    make=_board,
    small=(10, 10),
    medium=(100, 100),
    large=(1000, 1000),
    python_loop=True,
)
def life(alive, steps):
    """Generations of the game of life on a torus of booleans."""
    for _ in range(steps):
        count = np.zeros(alive.shape, np.int8)
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if di or dj:
                    count += np.roll(alive, (di, dj), axis=(0, 1))
        alive = (count == 3) | (alive & (count == 2))
    return alive


@life.numba
def _life_numba(alive, steps):
    height, width = alive.shape
    for _ in range(steps):
        new = np.empty_like(alive)
        for i in prange(height):
            up, down = (i - 1) % height, (i + 1) % height
            for j in range(width):
                left = j - 1 if j > 0 else width - 1
                right = j + 1 if j + 1 < width else 0
                count = (
                    np.int8(alive[up, left])
                    + np.int8(alive[up, j])
                    + np.int8(alive[up, right])
                    + np.int8(alive[i, left])
                    + np.int8(alive[i, right])
                    + np.int8(alive[down, left])
                    + np.int8(alive[down, j])
                    + np.int8(alive[down, right])
                )
                new[i, j] = (count == 3) | (alive[i, j] & (count == 2))
        alive = new
    return alive


@life.jax
def _life_jax(alive, steps):
    def step(_, alive):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        cells = alive.astype(jnp.int8)
        count = sum(jnp.roll(cells, shift, axis=(0, 1)) for shift in shifts)
        return (count == 3) | (alive & (count == 2))

    return lax.fori_loop(0, steps, step, alive)


def _picture(rng, height, width):
    return (rng.integers(0, 256, (height, width, 3), dtype=np.uint8),)


@program("integers", make=_picture, small=(6, 6), medium=(58, 58), large=(577, 577), rtol=1e-4)
def gray_gamma(image):
    """A picture of bytes (height, width, 3) to gray, with gamma 1/2.2, to bytes."""
    weights = np.array([0.299, 0.587, 0.114], np.float32)
    gray = (image.astype(np.float32) * weights).sum(axis=2) / np.float32(255)
    bright = gray ** np.float32(1 / 2.2)
    return (bright * np.float32(255) + np.float32(0.5)).astype(np.uint8)


@gray_gamma.numba
def _gray_gamma_numba(image):
    height, width, _ = image.shape
    out = np.empty((height, width), np.uint8)
    for i in prange(height):
        for j in range(width):
            gray = (
                np.float32(0.299) * np.float32(image[i, j, 0])
                + np.float32(0.587) * np.float32(image[i, j, 1])
                + np.float32(0.114) * np.float32(image[i, j, 2])
            ) / np.float32(255)
            bright = gray ** np.float32(1 / 2.2)
            out[i, j] = np.uint8(bright * np.float32(255) + np.float32(0.5))
    return out


def _flags(rng, n):
    return tuple(rng.random((3, n)) < 0.5)


@program("integers", make=_flags, small=(100,), medium=(10_000,), large=(1_000_000,))
def majority(a, b, c):
    """Where two of three vectors of booleans agree on True, and how often all differ from it."""
    vote = (a & b) | (b & c) | (a & c)
    return vote, np.count_nonzero(vote ^ a ^ b ^ c)


@majority.numba
def _majority_numba(a, b, c):
    vote = np.empty_like(a)
    odd = 0
    for i in prange(a.size):
        v = (a[i] & b[i]) | (b[i] & c[i]) | (a[i] & c[i])
        vote[i] = v
        odd += np.int64(v ^ a[i] ^ b[i] ^ c[i])
    return vote, odd
