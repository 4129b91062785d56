"""Sums and moments: over everything, or over columns."""

from __future__ import annotations

import numpy as np

from .registry import jnp, prange, program


def _normal(rng, *shape):
    return (rng.standard_normal(shape),)


def _two(rng, rows, columns):
    return rng.standard_normal((rows, columns)), rng.standard_normal((rows, columns))


@program("reductions", make=_two, small=(2, 7), medium=(8, 35), large=(1024, 64))
def outer_sum(x, y):
    """The sum over all products of a row of x with the same row of y."""
    return np.sum(x[:, :, None] * y[:, None, :], (-2, -1))


@outer_sum.numba
def _outer_sum_numba(x, y):
    rows, columns = x.shape
    out = np.empty(rows)
    for i in prange(rows):
        total = 0.0
        for j in range(columns):
            for k in range(columns):
                total += x[i, j] * y[i, k]
        out[i] = total
    return out


@program("reductions", make=_normal, small=(10, 10), medium=(1000, 10), large=(10_000, 100))
def zscore_columns(x):
    """Columns with mean 0 and standard deviation 1."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


@zscore_columns.numba
def _zscore_columns_numba(x):
    rows, columns = x.shape
    blocks = 8
    sums = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                sums[b, j] += x[i, j]
    mean = sums.sum(axis=0) / rows
    squares = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                squares[b, j] += (x[i, j] - mean[j]) ** 2
    deviation = np.sqrt(squares.sum(axis=0) / rows)
    out = np.empty_like(x)
    for i in prange(rows):
        for j in range(columns):
            out[i, j] = (x[i, j] - mean[j]) / deviation[j]
    return out


@program("reductions", make=_normal, small=(10, 10), medium=(1000, 10), large=(10_000, 100))
def column_variance(x):
    """The variance of each column, with n - 1 in the denominator."""
    return np.var(x, axis=0, ddof=1)


@column_variance.numba
def _column_variance_numba(x):
    rows, columns = x.shape
    blocks = 8
    sums = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                sums[b, j] += x[i, j]
    mean = sums.sum(axis=0) / rows
    squares = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                squares[b, j] += (x[i, j] - mean[j]) ** 2
    return squares.sum(axis=0) / (rows - 1)


def _paths(rng, n):
    return rng.standard_normal(n), 100.0, 0.2


@program("reductions", make=_paths, small=(100,), medium=(10_000,), large=(1_000_000,))
def moments(z, start, volatility):
    """Mean, variance, skewness and kurtosis of simulated prices, given the normal draws."""
    price = start * np.exp(volatility * z - 0.5 * volatility * volatility)
    mean = price.mean()
    d = price - mean
    variance = (d * d).mean()
    skewness = (d * d * d).mean() / variance**1.5
    kurtosis = (d * d * d * d).mean() / variance**2
    return np.stack((mean, variance, skewness, kurtosis))


@moments.numba
def _moments_numba(z, start, volatility):
    n = z.size
    price = np.empty(n)
    total = 0.0
    for i in prange(n):
        price[i] = start * np.exp(volatility * z[i] - 0.5 * volatility * volatility)
        total += price[i]
    mean = total / n
    s2 = s3 = s4 = 0.0
    for i in prange(n):
        d = price[i] - mean
        s2 += d * d
        s3 += d * d * d
        s4 += d * d * d * d
    variance = s2 / n
    return np.array([mean, variance, s3 / n / variance**1.5, s4 / n / variance**2])


@program("reductions", make=_normal, small=(10, 10), medium=(500, 20), large=(10_000, 100))
def correlation(x):
    """The matrix of correlations of the columns."""
    d = x - x.mean(axis=0)
    d /= np.sqrt((d * d).sum(axis=0))
    return d.T @ d


@correlation.numba
def _correlation_numba(x):
    rows, columns = x.shape
    blocks = 8
    sums = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                sums[b, j] += x[i, j]
    mean = sums.sum(axis=0) / rows
    d = np.empty_like(x)
    squares = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            for j in range(columns):
                d[i, j] = x[i, j] - mean[j]
                squares[b, j] += d[i, j] * d[i, j]
    norm = np.sqrt(squares.sum(axis=0))
    for i in prange(rows):
        for j in range(columns):
            d[i, j] /= norm[j]
    return np.dot(d.T, d)


@correlation.jax
def _correlation_jax(x):
    d = x - x.mean(axis=0)
    d = d / jnp.sqrt((d * d).sum(axis=0))
    return d.T @ d


@program("reductions", make=_normal, small=(10, 10), medium=(100, 100), large=(1000, 1000))
def summed_area(x):
    """The table of sums over all rectangles that begin in the corner: sums along both axes."""
    return np.cumsum(np.cumsum(x, axis=0), axis=1)


@summed_area.numba
def _summed_area_numba(x):
    rows, columns = x.shape
    out = np.empty_like(x)
    for i in prange(rows):
        total = 0.0
        for j in range(columns):
            total += x[i, j]
            out[i, j] = total
    blocks = 8
    for b in prange(blocks):
        for i in range(1, rows):
            for j in range(b * columns // blocks, (b + 1) * columns // blocks):
                out[i, j] += out[i - 1, j]
    return out


def _series(rng, n):
    return rng.standard_normal(n), 25


@program("reductions", make=_series, small=(100,), medium=(10_000,), large=(1_000_000,))
def moving_average(x, width):
    """Means of a window that moves along a series, through the cumulative sum."""
    total = np.cumsum(x)
    out = np.empty(x.size - width + 1)
    out[0] = total[width - 1]
    out[1:] = total[width:] - total[:-width]
    return out / width


@moving_average.numba
def _moving_average_numba(x, width):
    n = x.size - width + 1
    out = np.empty(n)
    blocks = 8
    for b in prange(blocks):
        first, last = b * n // blocks, (b + 1) * n // blocks
        total = 0.0
        for k in range(width):
            total += x[first + k]
        out[first] = total / width
        for i in range(first + 1, last):
            total += x[i + width - 1] - x[i - 1]
            out[i] = total / width
    return out


@moving_average.jax
def _moving_average_jax(x, width):
    total = jnp.cumsum(x)
    return jnp.concatenate((total[width - 1 : width], total[width:] - total[:-width])) / width
