"""Whole programs that make their own arrays, mix numbers with them, and go over elements: what
meets the border between host memory and a device."""

from __future__ import annotations

import numpy as np

from ..support import data

PROGRAMS = []


def program(*args):
    """Register a program with its arguments."""

    def register(f):
        PROGRAMS.append((f, args))
        return f

    return register


@program(1.5, 0.5, data(9, 7), data(7, 8), data(9, 8))
def scaled_product(alpha, beta, a, b, c):
    c[:] = alpha * a @ b + beta * c
    return c.sum()


@program(np.float64(1.5), data(9, 9), data(9))
def product_with_numpy_numbers(alpha, a, x):
    y = alpha * (a @ x) + np.float32(0.5) * x
    y[1:-1] += alpha * x[2:]
    return y, alpha * x


@program(data(40), 0.2)
def recursive_filter(x, a):
    y = np.empty_like(x)
    y[0] = x[0]
    for n in range(1, len(x)):
        y[n] = a * x[n] + (1 - a) * y[n - 1]
    return y


@program(data(40), [0.2, 0.3], [1.0, -0.4, 0.1])
def difference_equation(x, b, a):
    y = np.zeros(len(x))
    for n in range(len(x)):
        y[n] = sum(b[k] * x[n - k] for k in range(len(b)) if n >= k)
        y[n] -= sum(a[k] * y[n - k] for k in range(1, len(a)) if n >= k)
    return y / a[0]


@program(data(9, 8), data(3, 3), 0.25)
def convolution_with_bias(image, weights, bias):
    h, w = image.shape
    k = len(weights)
    out = np.zeros((h - k + 1, w - k + 1))
    for i in range(k):
        for j in range(k):
            out += weights[i, j] * image[i : h - k + 1 + i, j : w - k + 1 + j]
    return np.maximum(out + bias, 0)


@program(14, 12)
def mandelbrot_in_place(n, limit):
    x = np.linspace(-2, 0.5, n)
    y = np.linspace(-1, 1, n)
    c = x + y[:, None] * 1j
    count = np.zeros(c.shape, int)
    z = np.zeros(c.shape, np.complex128)
    for k in range(limit):
        inside = np.less(abs(z), 2.0)
        count[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    count[count == limit - 1] = 0
    return z, count


@program(12, 3)
def alternating_directions(n, steps):
    x = np.linspace(0, 1, n)
    u = np.sin(np.pi * x)[:, None] * np.sin(np.pi * x)
    r = 0.3
    for _ in range(steps):
        for j in range(1, n - 1):
            u[1:-1, j] += r * (u[2:, j] - 2 * u[1:-1, j] + u[:-2, j])
        for i in range(1, n - 1):
            u[i, 1:-1] += r * (u[i, 2:] - 2 * u[i, 1:-1] + u[i, :-2])
    return u, u.sum()


@program(64)
def contour_integral(n):
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    z = 1.5 * np.exp(1j * t)
    dz = 1.5j * np.exp(1j * t) * (2 * np.pi / n)
    center = 0.5 + 0.25j
    residue = (1 / (z - center) * dz).sum() / (2j * np.pi)
    return residue, abs(residue - 1) < 1e-12, (z**2 - center).real


@program(data(12, dtype=np.int64), data(10, dtype=np.int64))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table, table[-1, -1]


@program(np.abs(data(9, 11)))
def cheapest_path(cost):
    h, w = cost.shape
    best = np.full((h, w), np.inf)
    best[0] = np.cumsum(cost[0])
    for i in range(1, h):
        for j in range(w):
            best[i, j] = cost[i, j] + best[i - 1, max(0, j - 1) : j + 2].min()
    return best, best[-1].argmin()


@program(data(10, 10) + 10 * np.eye(10))
def lu_by_hand(a):
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.tril(a, -1) + np.eye(n), np.triu(a)


@program(data(12), data(11), data(11) / 9)
def tridiagonal_system(rhs, lower, upper):
    n = len(rhs)
    diagonal = np.full(n, 5.0)
    for i in range(1, n):
        w = lower[i - 1] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        rhs[i] -= w * rhs[i - 1]
    x = np.empty(n)
    x[-1] = rhs[-1] / diagonal[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (rhs[i] - upper[i] * x[i + 1]) / diagonal[i]
    return x


@program(np.array([0, 2, 3, 3, 5]), np.array([0, 2, 1, 0, 3]), data(5), data(4))
def compressed_rows_product(starts, columns, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


@program(10, 1.5, 1e-3)
def over_relaxation(n, omega, tolerance):
    u = np.zeros((n, n))
    u[0] = 1
    sweeps = 0
    while True:
        largest = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                change = omega * (
                    0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) - u[i, j]
                )
                u[i, j] += change
                largest = max(largest, abs(change))
        sweeps += 1
        if largest < tolerance:
            return u, sweeps


@program(2.0, 1e-12)
def newton_with_numbers(x, tolerance):
    x = np.array([x, x + 1])
    steps = 0
    while np.abs(x * x - 2).max() > tolerance:
        x = x - (x * x - 2) / (2 * x)
        steps += 1
    return x, steps


@program(9, 3, 50)
def random_walk(walkers, dimensions, steps):
    rng = np.random.default_rng(5)
    position = np.zeros((walkers, dimensions))
    furthest = np.zeros(walkers)
    for _ in range(steps):
        position += rng.choice([-1, 1], size=(walkers, dimensions))
        furthest = np.maximum(furthest, np.sqrt((position**2).sum(1)))
    return position, furthest


@program(data(200), 10)
def histogram_by_hand(x, bins):
    low, high = x.min(), x.max()
    count = np.zeros(bins, int)
    for v in x:
        k = int((v - low) / (high - low) * bins)
        count[min(k, bins - 1)] += 1
    return count, np.histogram(x, bins)[0]


@program(16, 4)
def poisson_by_transform(n, modes):
    x = np.linspace(0, 2 * np.pi, n, endpoint=False)
    f = np.sin(x)[:, None] * np.cos(2 * x) + sum(np.cos(k * x) for k in range(1, modes))
    k = np.fft.fftfreq(n, 1 / n)
    k2 = k[:, None] ** 2 + k**2
    k2[0, 0] = 1
    u = np.fft.fft2(f) / -k2
    u[0, 0] = 0
    return np.fft.ifft2(u).real


@program(data(30), 25)
def bootstrap(x, rounds):
    rng = np.random.default_rng(3)
    means = np.array([x[rng.integers(0, len(x), len(x))].mean() for _ in range(rounds)])
    return means.mean(), np.percentile(means, [2.5, 97.5]), means.std(ddof=1)


@program(data(12, 12) > 0, 3, 0.4)
def ising(spins, sweeps, coupling):
    s = np.where(spins, 1, -1)
    rng = np.random.default_rng(1)
    i, j = np.indices(s.shape)
    for sweep in range(sweeps):
        near = sum(np.roll(s, d, axis) for d in (-1, 1) for axis in (0, 1))
        flips = (rng.random(s.shape) < np.exp(-2 * coupling * s * near)) & (
            (i + j + sweep) % 2 == 0
        )
        s[flips] *= -1
    return s, s.mean()


@program(np.linspace(2.6, 3.9, 15), 40)
def logistic_map(r, steps):
    x = 1e-2 * np.ones(len(r))
    exponent = np.zeros_like(x)
    for _ in range(steps):
        x = r * x * (1 - x)
        exponent += np.log(abs(r - 2 * r * x) + 1e-300)
    return exponent / steps


@program(["the cat", "the dog", "a cat"], data(3))
def words_and_dates(texts, weights):
    words = np.array(sorted({w for t in texts for w in t.split()}))
    days = np.datetime64("2024-02-27") + np.arange(3)
    count = np.array([[t.split().count(w) for w in words] for t in texts])
    return words, days, count.T @ weights, words[count.sum(0).argmax()]


@program(data(6, 5), data(5, 4), data(4, 3), 0.1, 4)
def train_network(x, w1, w2, rate, steps):
    target = np.eye(3)[np.arange(6) % 3]
    for _ in range(steps):
        h = np.tanh(x @ w1)
        p = np.exp(h @ w2)
        p /= p.sum(1, keepdims=True)
        d = (p - target) / len(x)
        w2 -= rate * h.T @ d
        w1 -= rate * x.T @ ((d @ w2.T) * (1 - h**2))
    return -np.log(p[target > 0]).mean(), w1, w2


@program(data(7, 3) * 3, 0.05, 6)
def n_body_in_place(position, dt, steps):
    velocity = np.zeros_like(position)
    for _ in range(steps):
        for i in range(len(position)):
            d = position - position[i]
            r3 = ((d**2).sum(1) + 0.1) ** 1.5
            velocity[i] += dt * (d / r3[:, None]).sum(0)
        position += dt * velocity
    return position, velocity, 0.5 * (velocity**2).sum()


@program(data(18, 18))
def blur_and_edges(image):
    kernel = np.array([1, 2, 1]) / 4
    soft = np.apply_along_axis(np.convolve, 1, image, kernel, "same")
    soft = np.apply_along_axis(np.convolve, 0, soft, kernel, "same")
    gy, gx = np.gradient(soft)
    strength = np.hypot(gx, gy)
    return strength, strength > strength.mean() + strength.std()


@program(data(9), 30)
def views_in_loops(x, steps):
    v = x[1:]
    seen = []
    for _ in range(steps):
        v[0] += 1
        w = v[::2]
        w *= 1.5
        seen.append(float(w[0]))
    y = v * 2
    x += 1
    for _ in range(steps):
        v[1] -= 1
        seen.append(y[1] + v[1])
    return v, y, seen, w.shape, w
