"""Gather, scatter and transforms: index arrays, histograms, FFT, strided slices."""

from __future__ import annotations

import numpy as np

from .registry import jnp, prange, program


def _values(rng, n):
    return rng.standard_normal(n), -4.0, 4.0, 64


@program("indexed", make=_values, small=(100,), medium=(10_000,), large=(1_000_000,))
def histogram(x, low, high, bins):
    """Counts of values in bins of equal width; what is outside counts in the end bins."""
    place = np.floor((x - low) * (bins / (high - low))).astype(np.int64)
    return np.bincount(np.clip(place, 0, bins - 1), minlength=bins)


@histogram.numba
def _histogram_numba(x, low, high, bins):
    blocks = 8
    counts = np.zeros((blocks, bins), np.int64)
    scale = bins / (high - low)
    for b in prange(blocks):
        for i in range(b * x.size // blocks, (b + 1) * x.size // blocks):
            place = np.int64(np.floor((x[i] - low) * scale))
            counts[b, min(max(place, 0), bins - 1)] += 1
    return counts.sum(axis=0)


@histogram.jax
def _histogram_jax(x, low, high, bins):
    place = jnp.floor((x - low) * (bins / (high - low))).astype(jnp.int64)
    return jnp.bincount(jnp.clip(place, 0, bins - 1), length=bins)


def _sparse(rng, rows, per_row):
    n = rows * per_row
    row = np.repeat(np.arange(rows), per_row)
    return row, rng.integers(0, rows, n), rng.standard_normal(n), rng.standard_normal(rows)


@program("indexed", make=_sparse, small=(20, 5), medium=(1000, 10), large=(100_000, 10))
def sparse_matvec(row, column, value, x):
    """A sparse matrix, given by its entries (row, column, value), times a vector."""
    return np.bincount(row, weights=value * x[column], minlength=x.size)


@sparse_matvec.numba
def _sparse_matvec_numba(row, column, value, x):
    # The rows are in order, so a block of entries owns its rows but for the first, which it leaves
    # to the block before.
    n = row.size
    blocks = 8
    out = np.zeros(x.size)
    for b in prange(blocks):
        first, last = b * n // blocks, (b + 1) * n // blocks
        while 0 < first < n and row[first] == row[first - 1]:
            first += 1
        while 0 < last < n and row[last] == row[last - 1]:
            last += 1
        for k in range(first, last):
            out[row[k]] += value[k] * x[column[k]]
    return out


@sparse_matvec.jax
def _sparse_matvec_jax(row, column, value, x):
    return jnp.bincount(row, weights=value * x[column], length=x.size)


def _scatter(rng, n, cells):
    return np.zeros(cells), rng.integers(0, cells, n), rng.standard_normal(n)


@program(
    "indexed",
    make=_scatter,
    small=(100, 20),
    medium=(10_000, 1000),
    large=(1_000_000, 10_000),
    in_place=(0,),
)
def scatter_add(grid, cell, charge):
    """Deposit charges on the cells of a grid, several on one cell."""
    np.add.at(grid, cell, charge)


@scatter_add.numba
def _scatter_add_numba(grid, cell, charge):
    blocks = 4
    n = cell.size
    part = np.zeros((blocks, grid.size))
    for b in prange(blocks):
        for k in range(b * n // blocks, (b + 1) * n // blocks):
            part[b, cell[k]] += charge[k]
    for i in prange(grid.size):
        for b in range(blocks):
            grid[i] += part[b, i]


@scatter_add.jax
def _scatter_add_jax(grid, cell, charge):
    return grid.at[cell].add(charge)


def _table(rng, n):
    return np.sin(np.linspace(0, 6, 1001)), rng.random(n)


@program("indexed", make=_table, small=(100,), medium=(10_000,), large=(1_000_000,))
def table_lookup(table, x):
    """Linear interpolation in a table over [0, 1]."""
    place = x * (table.size - 1)
    low = place.astype(np.int64)
    part = place - low
    return table[low] * (1 - part) + table[low + 1] * part


@table_lookup.numba
def _table_lookup_numba(table, x):
    out = np.empty(x.size)
    for i in prange(x.size):
        place = x[i] * (table.size - 1)
        low = np.int64(place)
        part = place - low
        out[i] = table[low] * (1 - part) + table[low + 1] * part
    return out


def _noisy(rng, n):
    return np.cumsum(rng.standard_normal(n)), 0.05


@program("indexed", make=_noisy, small=(128,), medium=(8192,), large=(1_048_576,))
def fft_smoothing(x, cut):
    """A series without its high frequencies, by the Fourier transform."""
    spectrum = np.fft.rfft(x)
    frequency = np.arange(spectrum.size) / x.size
    return np.fft.irfft(spectrum * np.exp(-((frequency / cut) ** 2)), x.size)


def _image(rng, height, width):
    return rng.standard_normal((height, width)), rng.standard_normal((3, 3))


@program("indexed", make=_image, small=(11, 11), medium=(101, 101), large=(1001, 1001))
def strided_convolution(image, kernel):
    """A 3x3 convolution with stride 2, as a sum of nine slices."""
    height, width = (image.shape[0] - 1) // 2, (image.shape[1] - 1) // 2
    out = np.zeros((height, width))
    for i in range(3):
        for j in range(3):
            out += kernel[i, j] * image[i : i + 2 * height : 2, j : j + 2 * width : 2]
    return out


@strided_convolution.numba
def _strided_convolution_numba(image, kernel):
    height, width = (image.shape[0] - 1) // 2, (image.shape[1] - 1) // 2
    out = np.empty((height, width))
    for y in prange(height):
        for x in range(width):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    total += kernel[i, j] * image[2 * y + i, 2 * x + j]
            out[y, x] = total
    return out
