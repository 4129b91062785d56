"""Signals, images and statistics with loops in Python: filters, hidden states, windows."""

from __future__ import annotations

import numpy as np

from .registry import jax, jnp, lax, prange, program


def _track(rng, steps):
    F = np.eye(4)
    F[0, 2] = F[1, 3] = 0.1
    H = np.eye(4)[:2]
    Q = 0.01 * np.eye(4)
    R = 0.5 * np.eye(2)
    path = np.cumsum(rng.standard_normal((steps, 2)), axis=0)
    return path + 0.7 * rng.standard_normal((steps, 2)), F, H, Q, R


@program("loops", make=_track, small=(15,), medium=(800,), large=(25_000,))
def kalman_filter(measurements, F, H, Q, R):
    """Positions and velocities from noisy positions, by a Kalman filter."""
    x = np.zeros(4)
    P = np.eye(4)
    states = np.zeros((len(measurements), 4))
    for t, z in enumerate(measurements):
        x = F @ x
        P = F @ P @ F.T + Q
        y = z - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ y
        P = (np.eye(4) - K @ H) @ P
        states[t] = x
    return states


@kalman_filter.jax
def _kalman_filter_jax(measurements, F, H, Q, R):
    def step(state, z):
        x, P = state
        x = F @ x
        P = F @ P @ F.T + Q
        K = P @ H.T @ jnp.linalg.inv(H @ P @ H.T + R)
        x = x + K @ (z - H @ x)
        return (x, (jnp.eye(4) - K @ H) @ P), x

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), measurements)[1]


def _signal(rng, n):
    b = np.array([0.0048, 0.0193, 0.0289, 0.0193, 0.0048])
    a = np.array([1.0, -2.3695, 2.3140, -1.0547, 0.1874])
    return b, a, rng.standard_normal(n)


@program("loops", make=_signal, small=(60,), medium=(5000,), large=(200_000,))
def iir_filter(b, a, x):
    """A recursive filter of order 4, by its difference equation."""
    y = np.zeros_like(x)
    for n in range(len(x)):
        for k in range(len(b)):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n - k >= 0:
                y[n] -= a[k] * y[n - k]
    return y


def _samples(rng, n):
    return rng.standard_normal(n), 0.1, 0.3


@program("loops", make=_samples, small=(100,), medium=(20_000,), large=(1_000_000,))
def exponential_smoothing(x, alpha, beta):
    """Holt's smoothing with a trend: level and trend follow a series."""
    out = np.empty_like(x)
    level = x[0]
    trend = x[1] - x[0]
    out[0] = level
    for t in range(1, len(x)):
        last = level
        level = alpha * x[t] + (1 - alpha) * (level + trend)
        trend = beta * (level - last) + (1 - beta) * trend
        out[t] = level
    return out


@exponential_smoothing.jax
def _exponential_smoothing_jax(x, alpha, beta):
    def step(state, value):
        last, trend = state
        level = alpha * value + (1 - alpha) * (last + trend)
        return (level, beta * (level - last) + (1 - beta) * trend), level

    return jnp.append(x[:1], lax.scan(step, (x[0], x[1] - x[0]), x[1:])[1])


def _layer(rng, size, channels, filters):
    image = rng.standard_normal((size, size, channels)).astype(np.float32)
    kernels = rng.standard_normal((3, 3, channels, filters)).astype(np.float32)
    return image, kernels, rng.standard_normal(filters).astype(np.float32)


@program(
    "loops",
    make=_layer,
    small=(8, 3, 4),
    medium=(40, 8, 16),
    large=(210, 16, 32),
    rtol=1e-4,
)
def convolution_layer(image, kernels, bias):
    """A convolution with ReLU, window by window, in float32."""
    size = kernels.shape[0]
    height = image.shape[0] - size + 1
    width = image.shape[1] - size + 1
    out = np.empty((height, width, kernels.shape[-1]), dtype=np.float32)
    for i in range(height):
        for j in range(width):
            window = image[i : i + size, j : j + size, :, np.newaxis]
            out[i, j] = np.sum(window * kernels, axis=(0, 1, 2))
    out += bias
    return np.maximum(out, 0)


@convolution_layer.numba
def _convolution_layer_numba(image, kernels, bias):
    size, _, channels, filters = kernels.shape
    height = image.shape[0] - size + 1
    width = image.shape[1] - size + 1
    out = np.empty((height, width, filters), dtype=np.float32)
    for i in prange(height):
        for j in range(width):
            out[i, j] = bias
            for y in range(size):
                for x in range(size):
                    for c in range(channels):
                        for f in range(filters):
                            out[i, j, f] += image[i + y, j + x, c] * kernels[y, x, c, f]
            for f in range(filters):
                out[i, j, f] = max(out[i, j, f], np.float32(0))
    return out


@convolution_layer.jax
def _convolution_layer_jax(image, kernels, bias):
    out = lax.conv_general_dilated(
        image[None], kernels, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.nn.relu(out[0] + bias)


def _pool(rng, batch, size):
    return (rng.standard_normal((batch, size, size, 4)).astype(np.float32),)


@program("loops", make=_pool, small=(2, 6), medium=(4, 44), large=(24, 140), rtol=1e-4)
def max_pooling(x):
    """Maxima of windows of 2 by 2 and where they are, by loops over images and places."""
    n, height, width, channels = x.shape
    out = np.zeros((n, height // 2, width // 2, channels), dtype=x.dtype)
    where = np.zeros(out.shape, dtype=np.int8)
    for b in range(n):
        for i in range(height // 2):
            for j in range(width // 2):
                window = x[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, channels)
                out[b, i, j] = window.max(axis=0)
                where[b, i, j] = window.argmax(axis=0)
    return out, where


@max_pooling.numba
def _max_pooling_numba(x):
    n, height, width, channels = x.shape
    out = np.zeros((n, height // 2, width // 2, channels), dtype=x.dtype)
    where = np.zeros(out.shape, dtype=np.int8)
    for b in prange(n):
        for i in range(height // 2):
            for j in range(width // 2):
                for c in range(channels):
                    best = x[b, 2 * i, 2 * j, c]
                    place = 0
                    for k in range(1, 4):
                        value = x[b, 2 * i + k // 2, 2 * j + k % 2, c]
                        if value > best:
                            best = value
                            place = k
                    out[b, i, j, c] = best
                    where[b, i, j, c] = place
    return out, where


def _markov(rng, states, steps):
    def rows(n, m):
        p = rng.random((n, m)) + 0.05
        return p / p.sum(axis=1, keepdims=True)

    return rows(1, states)[0], rows(states, states), rows(states, 6), rng.integers(0, 6, steps)


@program("loops", make=_markov, small=(3, 30), medium=(8, 2500), large=(16, 80_000))
def hmm_forward(start, transition, emission, observed):
    """Scaled forward probabilities of a hidden Markov model, and the log-likelihood."""
    alpha = np.zeros((len(observed), len(start)))
    log_likelihood = 0.0
    alpha[0] = start * emission[:, observed[0]]
    for t in range(len(observed)):
        if t > 0:
            alpha[t] = (alpha[t - 1] @ transition) * emission[:, observed[t]]
        scale = alpha[t].sum()
        alpha[t] /= scale
        log_likelihood += np.log(scale)
    return alpha, log_likelihood


@hmm_forward.jax
def _hmm_forward_jax(start, transition, emission, observed):
    def step(state, seen):
        alpha, total = state
        alpha = alpha * emission[:, seen]
        scale = alpha.sum()
        alpha = alpha / scale
        return (alpha @ transition, total + jnp.log(scale)), alpha

    (_, total), alphas = lax.scan(step, (start, 0.0), observed)
    return alphas, total


@program("loops", make=_markov, small=(3, 15), medium=(6, 500), large=(12, 10_000))
def viterbi(start, transition, emission, observed):
    """The most probable path of a hidden Markov model."""
    n, T = len(start), len(observed)
    score = np.zeros((T, n))
    back = np.zeros((T, n), dtype=np.int64)
    score[0] = np.log(start) + np.log(emission[:, observed[0]])
    for t in range(1, T):
        for s in range(n):
            candidates = score[t - 1] + np.log(transition[:, s])
            back[t, s] = np.argmax(candidates)
            score[t, s] = np.max(candidates) + np.log(emission[s, observed[t]])
    path = np.zeros(T, dtype=np.int64)
    path[-1] = np.argmax(score[-1])
    for t in range(T - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, score[-1].max()


@viterbi.jax
def _viterbi_jax(start, transition, emission, observed):
    step_log, emission_log = jnp.log(transition), jnp.log(emission)

    def forward(score, seen):
        candidates = score[:, None] + step_log
        return candidates.max(axis=0) + emission_log[:, seen], candidates.argmax(axis=0)

    def backward(state, back):
        before = back[state]
        return before, before

    first = jnp.log(start) + emission_log[:, observed[0]]
    last, back = lax.scan(forward, first, observed[1:])
    end = last.argmax()
    path = lax.scan(backward, end, back, reverse=True)[1]
    return jnp.append(path, end), last.max()


def _two_series(rng, n):
    return np.cumsum(rng.standard_normal(n)), np.cumsum(rng.standard_normal(n))


@program("loops", make=_two_series, small=(12,), medium=(150,), large=(900,))
def dynamic_time_warping(a, b):
    """Distance of two series that may be stretched in time."""
    n, m = len(a), len(b)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = abs(a[i - 1] - b[j - 1])
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def _pixels(rng, height, width):
    return (rng.integers(0, 256, (height, width), dtype=np.uint8),)


@program("loops", make=_pixels, small=(10, 10), medium=(250, 300), large=(1800, 1800))
def gray_histogram(image):
    """Counts of the gray levels of an image, by element, and Otsu's threshold from them."""
    counts = np.zeros(256, dtype=np.int64)
    for row in image:
        for value in row:
            counts[value] += 1
    total = image.size
    whole = 0.0
    for level in range(256):
        whole += level * counts[level]
    below, weight = 0.0, 0
    best, threshold = -1.0, 0
    for level in range(256):
        weight += counts[level]
        if weight == 0:
            continue
        if weight == total:
            break
        below += level * counts[level]
        difference = below / weight - (whole - below) / (total - weight)
        between = weight * (total - weight) * difference**2
        if between > best:
            best, threshold = between, level
    return counts, threshold


@program(
    "loops",
    make=_pixels,
    small=(8, 8),
    medium=(90, 80),
    large=(500, 600),
    in_place=(0,),
)
def floyd_steinberg(image):
    """Black and white dithering of an image of bytes by error diffusion, in place."""
    height, width = image.shape
    work = image.astype(np.float64)
    for y in range(height):
        for x in range(width):
            old = work[y, x]
            new = 255.0 if old > 127 else 0.0
            work[y, x] = new
            error = old - new
            if x + 1 < width:
                work[y, x + 1] += error * 7 / 16
            if y + 1 < height:
                if x > 0:
                    work[y + 1, x - 1] += error * 3 / 16
                work[y + 1, x] += error * 5 / 16
                if x + 1 < width:
                    work[y + 1, x + 1] += error * 1 / 16
    image[:] = work.astype(np.uint8)


@program("loops", make=_pixels, small=(5, 5), medium=(30, 34), large=(200, 220))
def median_filter(image):
    """An image without speckles: medians of windows of 3 by 3, borders kept."""
    out = image.copy()
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            out[i, j] = np.median(image[i - 1 : i + 2, j - 1 : j + 2])
    return out


def _wave(rng, log2):
    n = 2**log2
    return (rng.standard_normal(n) + 1j * rng.standard_normal(n),)


@program("loops", make=_wave, small=(5,), medium=(12,), large=(17,))
def fft_radix_2(x):
    """A Fourier transform of a power of two, butterfly by butterfly, in complex numbers."""
    n = len(x)
    y = x.copy()
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            y[i], y[j] = y[j], y[i]
    length = 2
    while length <= n:
        step = np.exp(-2j * np.pi / length)
        for start in range(0, n, length):
            w = 1 + 0j
            for k in range(length // 2):
                even = y[start + k]
                odd = y[start + k + length // 2] * w
                y[start + k] = even + odd
                y[start + k + length // 2] = even - odd
                w *= step
        length *= 2
    return y


def _points(rng, n, k):
    centers = 6 * rng.standard_normal((k, 3))
    points = centers[rng.integers(0, k, n)] + rng.standard_normal((n, 3))
    return points, points[:k].copy()


@program("loops", make=_points, small=(12, 2), medium=(400, 4), large=(8000, 8))
def kmeans_loops(points, centers):
    """Clusters by Lloyd's algorithm, point by point, until no point moves."""
    centers = centers.copy()
    labels = np.full(len(points), -1)
    moved = True
    rounds = 0
    while moved and rounds < 20:
        moved = False
        for i, point in enumerate(points):
            distances = ((centers - point) ** 2).sum(axis=1)
            nearest = np.argmin(distances)
            if nearest != labels[i]:
                labels[i] = nearest
                moved = True
        for c in range(len(centers)):
            if np.any(labels == c):
                centers[c] = points[labels == c].mean(axis=0)
        rounds += 1
    return centers, labels


@kmeans_loops.numba
def _kmeans_loops_numba(points, centers):
    centers = centers.copy()
    n, d = points.shape
    k = len(centers)
    labels = np.full(n, -1)
    moved = 1
    rounds = 0
    while moved > 0 and rounds < 20:
        moved = 0
        for i in prange(n):
            nearest = 0
            least = np.inf
            for c in range(k):
                distance = 0.0
                for j in range(d):
                    distance += (centers[c, j] - points[i, j]) ** 2
                if distance < least:
                    least = distance
                    nearest = c
            if nearest != labels[i]:
                labels[i] = nearest
                moved += 1
        sums = np.zeros((k, d))
        counts = np.zeros(k)
        for i in range(n):
            counts[labels[i]] += 1
            for j in range(d):
                sums[labels[i], j] += points[i, j]
        for c in range(k):
            if counts[c] > 0:
                centers[c] = sums[c] / counts[c]
        rounds += 1
    return centers, labels
