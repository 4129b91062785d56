"""Programs of machine learning and physics with matrix products and distances."""

from __future__ import annotations

import numpy as np

from .registry import jnp, prange, program


def _labelled(rng, rows, columns):
    x = rng.standard_normal((rows, columns))
    y = (rng.random(rows) < 0.5).astype(np.float64)
    return x, y, 0.1 * rng.standard_normal(columns), 0.5


@program("learning", make=_labelled, small=(10, 10), medium=(1000, 10), large=(20_000, 50))
def logistic_step(x, y, weights, rate):
    """The weights of a logistic regression after one step of gradient descent."""
    p = 1.0 / (1.0 + np.exp(-(x @ weights)))
    return weights - rate * (x.T @ (p - y)) / len(y)


@logistic_step.numba
def _logistic_step_numba(x, y, weights, rate):
    rows, columns = x.shape
    blocks = 8
    sums = np.zeros((blocks, columns))
    for b in prange(blocks):
        for i in range(b * rows // blocks, (b + 1) * rows // blocks):
            logit = 0.0
            for j in range(columns):
                logit += x[i, j] * weights[j]
            error = 1.0 / (1.0 + np.exp(-logit)) - y[i]
            for j in range(columns):
                sums[b, j] += error * x[i, j]
    return weights - rate * sums.sum(axis=0) / rows


def _clusters(rng, points, dimensions, centres):
    x = rng.standard_normal((points, dimensions))
    return x, x[:centres].copy()


@program("learning", make=_clusters, small=(25, 4, 3), medium=(2500, 4, 5), large=(125_000, 8, 8))
def kmeans_step(x, centres):
    """Assign points to their nearest centres, then move the centres to the means."""
    distances = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    member = nearest[:, None] == np.arange(len(centres))
    counts = np.maximum(member.sum(axis=0), 1)
    return (member.T.astype(np.float64) @ x) / counts[:, None], nearest


@kmeans_step.numba
def _kmeans_step_numba(x, centres):
    points, dimensions = x.shape
    k = centres.shape[0]
    nearest = np.empty(points, np.int64)
    blocks = 8
    sums = np.zeros((blocks, k, dimensions))
    counts = np.zeros((blocks, k))
    for b in prange(blocks):
        for i in range(b * points // blocks, (b + 1) * points // blocks):
            best = np.inf
            place = 0
            for c in range(k):
                distance = 0.0
                for d in range(dimensions):
                    distance += (x[i, d] - centres[c, d]) ** 2
                if distance < best:
                    best = distance
                    place = c
            nearest[i] = place
            counts[b, place] += 1
            for d in range(dimensions):
                sums[b, place, d] += x[i, d]
    total = np.maximum(counts.sum(axis=0), 1)
    return sums.sum(axis=0) / total.reshape(k, 1), nearest


def _points(rng, n, m, dimensions):
    return rng.random((n, dimensions)), rng.random((m, dimensions))


@program("learning", make=_points, small=(10, 10, 3), medium=(100, 100, 3), large=(1000, 1000, 3))
def pairwise_distances(x, y):
    """The distances of all points of x (n, d) to all of y (m, d)."""
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))


@pairwise_distances.numba
def _pairwise_distances_numba(x, y):
    n, dimensions = x.shape
    m = y.shape[0]
    out = np.empty((n, m))
    for i in prange(n):
        for j in range(m):
            total = 0.0
            for d in range(dimensions):
                total += (x[i, d] - y[j, d]) ** 2
            out[i, j] = np.sqrt(total)
    return out


def _bodies(rng, n):
    return rng.standard_normal((n, 3)), rng.random(n), 1e-3


@program("learning", make=_bodies, small=(10,), medium=(100,), large=(1000,))
def nbody(position, mass, softening):
    """The gravitational accelerations of n bodies, with softened distances."""
    d = position[None, :, :] - position[:, None, :]
    r2 = (d * d).sum(axis=-1) + softening
    return (d * (mass * r2**-1.5)[:, :, None]).sum(axis=1)


@nbody.numba
def _nbody_numba(position, mass, softening):
    n = len(mass)
    out = np.empty((n, 3))
    for i in prange(n):
        ax = ay = az = 0.0
        for j in range(n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + softening
            pull = mass[j] / (r2 * np.sqrt(r2))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        out[i, 0] = ax
        out[i, 1] = ay
        out[i, 2] = az
    return out


def _network(rng, rows, inputs, hidden, outputs):
    return (
        0.1 * rng.standard_normal((inputs, hidden)),
        0.1 * rng.standard_normal(hidden),
        0.1 * rng.standard_normal((hidden, outputs)),
        0.1 * rng.standard_normal(outputs),
        rng.standard_normal((rows, inputs)),
        rng.standard_normal((rows, outputs)),
    )


@program(
    "learning",
    make=lambda *size: _network(*size)[:5],
    small=(10, 10, 10, 5),
    medium=(100, 50, 100, 10),
    large=(4000, 64, 250, 10),
)
def mlp_forward(w1, b1, w2, b2, x):
    """A network with one hidden layer of tanh and a softmax at its end."""
    logits = np.tanh(x @ w1 + b1) @ w2 + b2
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@mlp_forward.numba
def _mlp_forward_numba(w1, b1, w2, b2, x):
    hidden = np.dot(x, w1)
    rows, width = hidden.shape
    for i in prange(rows):
        for j in range(width):
            hidden[i, j] = np.tanh(hidden[i, j] + b1[j])
    out = np.dot(hidden, w2)
    for i in prange(rows):
        top = -np.inf
        for j in range(out.shape[1]):
            out[i, j] += b2[j]
            top = max(top, out[i, j])
        total = 0.0
        for j in range(out.shape[1]):
            out[i, j] = np.exp(out[i, j] - top)
            total += out[i, j]
        for j in range(out.shape[1]):
            out[i, j] /= total
    return out


def mlp_loss(w1, b1, w2, b2, x, y):
    """The mean squared error of a network with one hidden layer of tanh."""
    return np.mean((np.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)


@program(
    "learning",
    make=_network,
    small=(10, 10, 10, 5),
    medium=(100, 50, 100, 10),
    large=(4000, 64, 250, 10),
    loss=mlp_loss,
    wrt=(0, 1, 2, 3),
)
def mlp_gradient(w1, b1, w2, b2, x, y):
    """The gradient of mlp_loss by its weights, derived by hand.

    The contenders that differentiate do so with mlp_loss.
    """
    hidden = np.tanh(x @ w1 + b1)
    error = (hidden @ w2 + b2 - y) * (2.0 / y.size)
    inner = (error @ w2.T) * (1.0 - hidden * hidden)
    return x.T @ inner, inner.sum(axis=0), hidden.T @ error, error.sum(axis=0)


@mlp_gradient.numba
def _mlp_gradient_numba(w1, b1, w2, b2, x, y):
    hidden = np.dot(x, w1)
    rows, width = hidden.shape
    for i in prange(rows):
        for j in range(width):
            hidden[i, j] = np.tanh(hidden[i, j] + b1[j])
    error = (np.dot(hidden, w2) + b2 - y) * (2.0 / y.size)
    inner = np.dot(error, w2.T)
    for i in prange(rows):
        for j in range(width):
            inner[i, j] *= 1.0 - hidden[i, j] * hidden[i, j]
    return np.dot(x.T, inner), inner.sum(axis=0), np.dot(hidden.T, error), error.sum(axis=0)


def _ranked(rng, n):
    return (rng.standard_normal(n),)


@program("learning", make=_ranked, small=(100,), medium=(10_000,), large=(1_000_000,))
def rank_quantiles(x):
    """The quartiles of a sample, and each element's rank from 0 to 1."""
    order = np.argsort(x)
    rank = np.empty(x.size)
    rank[order] = np.arange(x.size) / (x.size - 1)
    ordered = x[order]
    place = np.array([0.25, 0.5, 0.75]) * (x.size - 1)
    low = place.astype(np.int64)
    part = place - low
    return rank, ordered[low] * (1 - part) + ordered[low + 1] * part


@rank_quantiles.jax
def _rank_quantiles_jax(x):
    order = jnp.argsort(x)
    rank = jnp.empty(x.size).at[order].set(jnp.arange(x.size) / (x.size - 1))
    ordered = x[order]
    place = jnp.array([0.25, 0.5, 0.75]) * (x.size - 1)
    low = place.astype(jnp.int64)
    part = place - low
    return rank, ordered[low] * (1 - part) + ordered[low + 1] * part
