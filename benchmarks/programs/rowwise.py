"""Programs that treat each row alone: a reduction and what is done with it."""

from __future__ import annotations

import numpy as np

from .registry import jnp, lax, prange, program


def _single(rng, rows, columns):
    return (rng.standard_normal((rows, columns), np.float32),)


def _double(rng, rows, columns):
    return (rng.standard_normal((rows, columns)),)


@program("rowwise", make=_single, small=(4, 25), medium=(100, 100), large=(4096, 1024), rtol=1e-4)
def softmax(x):
    """The softmax of each row, float32."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@softmax.numba
def _softmax_numba(x):
    rows, columns = x.shape
    out = np.empty_like(x)
    for i in prange(rows):
        top = x[i, 0]
        for j in range(1, columns):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(columns):
            e = np.exp(x[i, j] - top)
            out[i, j] = e
            total += e
        for j in range(columns):
            out[i, j] /= total
    return out


def _layer(rng, rows, columns):
    draw = rng.standard_normal
    return draw((rows, columns), np.float32), draw(columns, np.float32), draw(columns, np.float32)


@program("rowwise", make=_layer, small=(4, 25), medium=(100, 100), large=(2048, 512), rtol=1e-4)
def layer_norm(x, weight, bias):
    """Each row to mean 0 and variance 1, then scaled and shifted by column, float32."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * weight + bias


@layer_norm.numba
def _layer_norm_numba(x, weight, bias):
    rows, columns = x.shape
    out = np.empty_like(x)
    for i in prange(rows):
        total = np.float32(0)
        for j in range(columns):
            total += x[i, j]
        mean = np.float32(total / columns)
        squares = np.float32(0)
        for j in range(columns):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = np.float32(1) / np.sqrt(np.float32(squares / columns) + np.float32(1e-5))
        for j in range(columns):
            out[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]
    return out


@program("rowwise", make=_double, small=(10, 10), medium=(100, 100), large=(1000, 1000))
def zscore_rows(x):
    """Rows with mean 0 and standard deviation 1."""
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)


@zscore_rows.numba
def _zscore_rows_numba(x):
    rows, columns = x.shape
    out = np.empty_like(x)
    for i in prange(rows):
        total = 0.0
        for j in range(columns):
            total += x[i, j]
        mean = total / columns
        squares = 0.0
        for j in range(columns):
            squares += (x[i, j] - mean) ** 2
        deviation = np.sqrt(squares / columns)
        for j in range(columns):
            out[i, j] = (x[i, j] - mean) / deviation
    return out


@program("rowwise", make=_double, small=(10, 10), medium=(100, 100), large=(1000, 1000))
def row_extremes(x):
    """Where the largest element of each row is, and how far it is above the smallest."""
    return x.argmax(axis=1), x.max(axis=1) - x.min(axis=1)


@row_extremes.numba
def _row_extremes_numba(x):
    rows, columns = x.shape
    where = np.empty(rows, np.int64)
    spread = np.empty(rows)
    for i in prange(rows):
        top = bottom = x[i, 0]
        place = 0
        for j in range(1, columns):
            if x[i, j] > top:
                top = x[i, j]
                place = j
            bottom = min(bottom, x[i, j])
        where[i] = place
        spread[i] = top - bottom
    return where, spread


def _filter(rng, rows, columns):
    return rng.standard_normal((rows, columns)), np.array([0.1, 0.2, 0.4, 0.2, 0.1])


@program("rowwise", make=_filter, small=(10, 10), medium=(100, 100), large=(1000, 1000))
def fir_rows(x, taps):
    """A filter of five taps along each row, as a sum of slices."""
    n = x.shape[1] - len(taps) + 1
    out = np.zeros((x.shape[0], n))
    for k in range(5):
        out += taps[k] * x[:, k : k + n]
    return out


@fir_rows.numba
def _fir_rows_numba(x, taps):
    rows, width = x.shape[0], taps.size
    out = np.empty((rows, x.shape[1] - width + 1))
    for i in prange(rows):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(5):
                total += taps[k] * x[i, j + k]
            out[i, j] = total
    return out


def _signals(rng, steps, channels):
    return rng.standard_normal((steps, channels)), 0.9, 0.1


@program(
    "rowwise",
    make=_signals,
    small=(10, 10),
    medium=(20, 500),
    large=(50, 20_000),
    python_loop=True,
)
def iir_rows(x, keep, take):
    """A recursive filter of many channels at once: each row from the row before it."""
    y = np.empty_like(x)
    y[0] = take * x[0]
    for t in range(1, len(x)):
        y[t] = keep * y[t - 1] + take * x[t]
    return y


@iir_rows.numba
def _iir_rows_numba(x, keep, take):
    steps, channels = x.shape
    y = np.empty_like(x)
    blocks = 16
    for b in prange(blocks):
        first, last = b * channels // blocks, (b + 1) * channels // blocks
        for j in range(first, last):
            y[0, j] = take * x[0, j]
        for t in range(1, steps):
            for j in range(first, last):
                y[t, j] = keep * y[t - 1, j] + take * x[t, j]
    return y


@iir_rows.jax
def _iir_rows_jax(x, keep, take):
    def step(before, row):
        after = keep * before + take * row
        return after, after

    return lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def _series(rng, n):
    return rng.standard_normal(n), 0.1


@program(
    "rowwise",
    make=_series,
    small=(100,),
    medium=(10_000,),
    large=(1_000_000,),
    scalar_loop=True,
)
def smoothing(x, take):
    """Exponential smoothing of one series, element by element in Python."""
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = y[i - 1] + take * (x[i] - y[i - 1])
    return y


@smoothing.jax
def _smoothing_jax(x, take):
    def step(before, value):
        after = before + take * (value - before)
        return after, after

    return lax.scan(step, x[0], x)[1]
