"""Whole programs on objects, dicts, generators, functions that call themselves, and exceptions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from .whole_programs import R, _real, whole


class _Springs:
    """Damped springs, and what was noted of them."""

    def __init__(self, x):
        self.x, self.v = x.copy(), np.zeros_like(x)
        self.settings = {"dt": 0.01, "k": 1.5, "damping": [0.1, 0.2]}
        self.steps, self.noted = 0, []

    @property
    def energy(self):
        return 0.5 * (self.v**2).sum() + 0.5 * self.settings["k"] * (self.x**2).sum()

    def _force(self):
        s = self.settings
        return -s["k"] * self.x - s["damping"][self.steps % 2] * self.v

    def step(self):
        dt = self.settings["dt"]
        self.v += dt * self._force()
        self.x += dt * self.v
        self.steps += 1
        if self.steps % 5 == 0:
            self.noted.append((self.steps * dt, self.energy))


@whole(_real(12, 2), 17)
def springs(x, count):
    system = _Springs(x)
    for _ in range(count):
        system.step()
    return system.x, system.energy, system.noted, system.steps


@whole(R.integers(0, 4, 24), R.integers(0, 4, 19), 2, -1, -2)
def aligned_sequences(a, b, match, mismatch, gap):
    """Needleman and Wunsch's, with the way back."""
    score = np.zeros((len(a) + 1, len(b) + 1), int)
    score[:, 0] = gap * np.arange(len(a) + 1)
    score[0] = gap * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            pair = match if a[i - 1] == b[j - 1] else mismatch
            score[i, j] = max(
                score[i - 1, j - 1] + pair, score[i - 1, j] + gap, score[i, j - 1] + gap
            )
    i, j, way = len(a), len(b), []
    while i > 0 or j > 0:
        pair = match if i and j and a[i - 1] == b[j - 1] else mismatch
        if i and j and score[i, j] == score[i - 1, j - 1] + pair:
            way.append(0)
            i, j = i - 1, j - 1
        elif i and score[i, j] == score[i - 1, j] + gap:
            way.append(1)
            i -= 1
        else:
            way.append(2)
            j -= 1
    return score, np.array(way[::-1])


@whole(_real(32) + 1j * _real(32))
def recursive_transform(x):
    def transformed(x):
        n = len(x)
        if n == 1:
            return x
        even, odd = transformed(x[::2]), transformed(x[1::2])
        turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate([even + turned, even - turned])

    return transformed(x)


@whole({"x": R.random(8), "v": R.random(8), "n": 0}, [0.1, 0.2, 0.05])
def state_in_a_dict(state, steps):
    log = []
    for dt in steps:
        state["x"] += dt * state["v"]
        state["v"] = state["v"] * 0.9 - dt * np.sin(state["x"])
        state["n"] += 1
        log.append({"dt": dt, "largest": state["x"].max()})
    state["last"] = log[-1]["largest"]
    return log, state


class _Diverged(Exception):
    def __init__(self, step, norm):
        super().__init__(f"diverged in step {step}: {norm:.3e}")
        self.step = step


def _iterated(a, b, log):
    x = np.zeros_like(b)
    try:
        for k in range(40):
            r = b - a @ x
            x = x + 0.9 * r
            norm = np.linalg.norm(r)
            log.append(float(norm))
            if norm > 1e3:
                raise _Diverged(k, norm)
            if norm < 1e-10:
                break
    finally:
        log.append(-1.0)
    return x


@whole(np.eye(6) + 0.05 * R.random((6, 6)), 3 * np.eye(6), R.random(6))
def iteration_that_may_diverge(good, bad, b):
    log = []
    x = _iterated(good, b, log)
    try:
        _iterated(bad, b, log)
    except _Diverged as e:
        return x, e.step, str(e), len(log)
    return x, log


def _windows(x, size) -> Iterator:
    for k in range(0, len(x) - size + 1, size // 2):
        yield k, x[k : k + size]


@whole(_real(120), 20)
def windows_one_by_one(x, size):
    found = []
    for k, w in _windows(x, size):
        if w.std() == 0:
            continue
        found.append((k, w.mean(), np.abs(np.fft.rfft(w))[1:4].max()))
    return np.array(found), max(found, key=lambda t: t[2])[0]


@functools.cache
def _gaussian(n):
    k = np.arange(-n, n + 1)
    g = np.exp(-(k**2) / (2 * (n / 2) ** 2))
    return g / g.sum()


@whole(R.random((16, 20)), 2, 2)
def pyramid(image, levels, n):
    g, made = _gaussian(n), [image]
    for _ in range(levels):
        a = made[-1]
        for axis, mode in ((1, "reflect"), (0, "edge")):
            a = np.apply_along_axis(
                lambda r, mode=mode: np.convolve(np.pad(r, n, mode=mode), g, "valid"), axis, a
            )
        made.append(a[::2, ::2])
    left = [
        a - np.kron(b, np.ones((2, 2)))[: a.shape[0], : a.shape[1]]
        for a, b in itertools.pairwise(made)
    ]
    return made[-1], [float(x.std()) for x in left]


@whole(_real(2, 8, 8), _real(3, 2, 3, 3), _real(3))
def convolution_layer(x, kernel, bias):
    w = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    y = np.einsum("chwij,ocij->ohw", w, kernel) + bias[:, None, None]
    y = np.maximum(y, 0.1 * y)
    pooled = y.reshape(3, 3, 2, 3, 2).max(axis=(2, 4))
    e = np.exp(pooled - pooled.max())
    s = e / e.sum()
    return y, s, np.unravel_index(s.argmax(), s.shape), np.tensordot(kernel, w[:, 0, 0], axes=3)


@whole(R.random((7, 7)))
def views_of_one_array(x):
    x[1:] += x[:-1]
    x[:, ::-1] -= x
    y = x.T[::2]
    y[...] = y[::-1]
    np.add(x[2:], x[:-2], out=x[1:-1])
    x.ravel()[3] = -1
    d = x.diagonal()
    np.fill_diagonal(x[1:, 1:], 3)
    x[x > 5] *= 0.5
    x.flat[::5] = 0.25
    return x, y, d, np.swapaxes(x, 0, 1).reshape(-1)


@whole(R.integers(0, 256, 40).astype(np.uint8), R.integers(-128, 128, 40).astype(np.int8))
def integers_that_wrap(a, b):
    c, d = a + np.uint8(200), np.abs(b)
    e, f = b // np.int8(-3), b % np.int8(7)
    g = (a.astype(np.int16) - 300) >> 2
    a[::2] = 44
    a[1::2] -= 250
    h = a[::-1].copy()
    h[1:] ^= h[:-1]
    return c, d, e, f, g, a << 1, h, np.bitwise_xor.reduce(h), (b == -128).any(), a.mean(), b.sum()
