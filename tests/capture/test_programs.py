"""Whole programs, as NumPy users write them, compiled and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from ..support import check, data

PROGRAMS = []


def program(*args, **options):
    """Register a program with its arguments, and options for `check`."""

    def register(f):
        PROGRAMS.append(pytest.param(f, args, options, id=f.__name__))
        return f

    return register


@program(data(60, 2), 3, 8)
def k_means(points, k, steps):
    centers = points[:k].copy()
    for _ in range(steps):
        distance = ((points[:, None, :] - centers[None]) ** 2).sum(axis=-1)
        label = distance.argmin(axis=1)
        for j in range(k):
            members = points[label == j]
            if len(members):
                centers[j] = members.mean(axis=0)
    inertia = distance.min(axis=1).sum()
    return centers, label, inertia


@program(data(60, 3), 4, 6)
def k_means_one_hot(points, k, steps):
    centers = points[:k].copy()
    for _ in range(steps):
        d = (points**2).sum(1)[:, None] - 2 * points @ centers.T + (centers**2).sum(1)
        one_hot = (d.argmin(1)[:, None] == np.arange(k)).astype(points.dtype)
        centers = one_hot.T @ points / np.maximum(one_hot.sum(0), 1)[:, None]
    return centers, np.bincount(d.argmin(1), minlength=k)


@program(data(12, 15, dtype=bool), 10)
def game_of_life(board, steps):
    board = board.astype(np.uint8)
    for _ in range(steps):
        n = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((n == 3) | ((board == 1) & (n == 2))).astype(np.uint8)
    return board, board.sum()


@program(data(12, 15, dtype=np.uint8) % 2, 12)
def game_of_life_by_slices(z, steps):
    for _ in range(steps):
        n = (
            z[0:-2, 0:-2] + z[0:-2, 1:-1] + z[0:-2, 2:] + z[1:-1, 0:-2]
            + z[1:-1, 2:] + z[2:, 0:-2] + z[2:, 1:-1] + z[2:, 2:]
        )  # fmt: skip
        birth = (n == 3) & (z[1:-1, 1:-1] == 0)
        survive = ((n == 2) | (n == 3)) & (z[1:-1, 1:-1] == 1)
        z[...] = 0
        z[1:-1, 1:-1][birth | survive] = 1
    return z


@program(24, 16, 20, new=False)
def mandelbrot(w, h, limit):
    y, x = np.ogrid[-1.4 : 1.4 : h * 1j, -2 : 0.8 : w * 1j]
    c = x + y * 1j
    z = c
    escaped = limit + np.zeros(z.shape, dtype=int)
    for i in range(limit):
        z = z**2 + c
        diverge = z * np.conj(z) > 2**2
        now = diverge & (escaped == limit)
        escaped[now] = i
        z[diverge] = 2
    return escaped


@program(24, 16, 20, new=False)
def mandelbrot_where(w, h, limit):
    c = np.linspace(-2, 0.8, w)[None] + 1j * np.linspace(-1.4, 1.4, h)[:, None]
    z = np.zeros_like(c)
    n = np.zeros(c.shape, dtype=np.int32)
    for _ in range(limit):
        alive = np.abs(z) <= 2
        z = np.where(alive, z * z + c, z)
        n += alive
    return n


@program(data(7, 3), data(7, 3, seed=1), abs(data(7, seed=2)) + 0.5, 15, 0.01)
def n_body(position, velocity, mass, steps, dt):
    for _ in range(steps):
        r = position[None] - position[:, None]
        inverse = ((r**2).sum(-1) + 0.05) ** -1.5
        velocity += dt * (r * inverse[..., None] * mass[None, :, None]).sum(1)
        position += dt * velocity
    kinetic = 0.5 * (mass * (velocity**2).sum(1)).sum()
    return kinetic, position.mean(0)


@program(data(4, 3), data(4, 3, seed=1), [1.0, 2.0, 3.0, 4.0], 12, 0.01)
def n_body_by_pairs(position, velocity, mass, steps, dt):
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                r = position[i] - position[j]
                f = r / (np.dot(r, r) + 0.1) ** 1.5
                velocity[i] -= f * mass[j] * dt
                velocity[j] += f * mass[i] * dt
        position += velocity * dt
    return sum(m * np.dot(v, v) for m, v in zip(mass, velocity, strict=True)) / 2


@program(data(10, 12), 1e-2)
def jacobi(u, tol):
    steps = 0
    while True:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        err = np.abs(new - u).max()
        u = new
        steps += 1
        if err < tol:
            break
    return u, steps


@program(data(9, 9), 4)
def gauss_seidel(u, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return np.linalg.norm(u)


@program(data(10, 10), 12)
def red_black(u, sweeps):
    i, j = np.indices(u.shape)
    inner = (i > 0) & (i < u.shape[0] - 1) & (j > 0) & (j < u.shape[1] - 1)
    for _ in range(sweeps):
        for colour in (0, 1):
            mean = 0.25 * (
                np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
            )
            u[:] = np.where(inner & ((i + j) % 2 == colour), mean, u)
    return u


@program(data(40), 30)
def red_black_by_steps(u, sweeps):
    for _ in range(sweeps):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2])
        u[2:-1:2] = 0.5 * (u[1:-2:2] + u[3::2])
    return u


@program(data(12, 12), 0.1, 20)
def heat_in_place(u, c, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] += c * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u[0] = u[1]
        u[-1] = u[-2]
    return u.mean()


@program(data(50), 0.3, 25)
def wave(u, c, steps):
    before = u.copy()
    energy = []
    for _ in range(steps):
        after = np.empty_like(u)
        after[1:-1] = 2 * u[1:-1] - before[1:-1] + c**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        after[0] = after[-1] = 0
        before, u = u, after
        energy.append(((u - before) ** 2).sum())
    return u, np.array(energy)


@program(50 + 10 * abs(data(30)), 60.0, 0.05, 0.2, np.linspace(0.1, 2, 30))
def black_scholes(spot, strike, rate, sigma, years):
    def cdf(x):
        k = 1 / (1 + 0.2316419 * np.abs(x))
        poly = k * (
            0.319381530
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
        return np.where(x >= 0, 1 - tail, tail)

    d1 = (np.log(spot / strike) + (rate + sigma**2 / 2) * years) / (sigma * np.sqrt(years))
    d2 = d1 - sigma * np.sqrt(years)
    call = spot * cdf(d1) - strike * np.exp(-rate * years) * cdf(d2)
    return {"call": call, "put": call - spot + strike * np.exp(-rate * years), "delta": cdf(d1)}


@program(400, 7, new=False)
def monte_carlo_pi(n, seed):
    np.random.seed(seed)
    x, y = np.random.rand(n), np.random.rand(n)
    inside = x * x + y * y <= 1
    return 4 * inside.mean(), inside.sum()


@program(50, 20, 3, new=False)
def monte_carlo_option(paths, steps, seed):
    rng = np.random.default_rng(seed)
    s = np.full(paths, 100.0)
    top = s.copy()
    for _ in range(steps):
        s = s * np.exp(-0.5 * 0.04 / steps + 0.2 * np.sqrt(1 / steps) * rng.standard_normal(paths))
        np.maximum(top, s, out=top)
    payoff = np.maximum(s - 100, 0)
    return payoff.mean(), payoff.std(ddof=1) / np.sqrt(paths), top.max()


@program(data(64), 10)
def fft_filter(signal, keep):
    spectrum = np.fft.rfft(signal)
    power = np.abs(spectrum) ** 2
    spectrum[np.arange(len(spectrum)) > keep] = 0
    smooth = np.fft.irfft(spectrum, len(signal))
    return smooth, power / power.sum(), np.fft.fftfreq(len(signal), 0.1)[:3]


@program(data(10, 12), data(3, 3, seed=1))
def convolution_2d(image, kernel):
    kh, kw = kernel.shape
    padded = np.pad(image, ((kh // 2,) * 2, (kw // 2,) * 2))
    out = np.zeros_like(image)
    for i in range(kh):
        for j in range(kw):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out, np.convolve(image[0], kernel[0], "same"), np.convolve(image[0], kernel[1])


@program(data(20, 5), data(20, dtype=np.int64) % 3, 3, 12)
def softmax_regression(x, labels, classes, steps):
    w = np.zeros((x.shape[1], classes))
    target = np.eye(classes)[labels]
    for _ in range(steps):
        logits = x @ w
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        w -= 0.1 * x.T @ (p - target) / len(x)
    loss = -np.log(p[np.arange(len(x)), labels]).mean()
    return w, loss, (p.argmax(1) == labels).mean()


@program(
    {"w1": data(5, 8), "b1": data(8), "w2": data(8, 2), "b2": data(2)}, data(20, 5), data(20, 2), 10
)
def mlp(params, x, y, steps):
    for _ in range(steps):
        h = np.tanh(x @ params["w1"] + params["b1"])
        out = h @ params["w2"] + params["b2"]
        g = 2 * (out - y) / y.size
        gh = (g @ params["w2"].T) * (1 - h**2)
        for name, grad in (("w1", x.T @ gh), ("b1", gh.sum(0)), ("w2", h.T @ g), ("b2", g.sum(0))):
            params[name] -= 0.05 * grad
    return ((out - y) ** 2).mean(), params


@program(data(30, 4))
def pca(x):
    centered = x - x.mean(axis=0)
    cov = centered.T @ centered / (len(x) - 1)
    values, vectors = np.linalg.eigh(cov)
    order = np.argsort(values)[::-1]
    vectors = vectors[:, order] * np.sign(vectors[0, order])
    return values[order], np.abs(centered @ vectors[:, :2]), values[order] / values.sum()


@program(data(30, 3), data(30, seed=1))
def linear_regression(x, y):
    design = np.column_stack([np.ones(len(x)), x])
    beta = np.linalg.solve(design.T @ design, design.T @ y)
    residual = y - design @ beta
    r2 = 1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum()
    return (
        beta,
        r2,
        np.linalg.lstsq(design, y, rcond=None)[0],
        np.sqrt(np.diag(np.linalg.inv(design.T @ design))),
    )


@program(data(25, 3), data(25, dtype=np.int64) % 3, data(6, 3, seed=1), 5)
def nearest_neighbours(train, labels, test, k):
    d = np.sqrt(((test[:, None] - train[None]) ** 2).sum(-1))
    near = np.argsort(d, axis=1)[:, :k]
    votes = labels[near]
    return np.array([np.bincount(v, minlength=3).argmax() for v in votes]), d.min(1), near


@program((abs(data(20, 20)) * 80).astype(np.uint8))
def histogram_equalization(image):
    counts, _ = np.histogram(image.flatten(), 256, [0, 256])
    cdf = counts.cumsum()
    low = cdf[cdf > 0].min()
    table = ((cdf - low) * 255 / (cdf[-1] - low)).clip(0, 255).astype("uint8")
    return table[image], np.bincount(image.ravel(), minlength=256)


@program("kitten", "sitting", new=False)
def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    d[0] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(
                d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            )
    return d[-1, -1], d


@program(abs(data(8, 8)) * 10)
def floyd_warshall(d):
    d[d > 12] = np.inf
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[None, k, :], out=d)
    return d, np.isfinite(d).all()


@program(data(6, 6), 1e-8)
def power_iteration(a, tol):
    a = a @ a.T
    v = np.ones(len(a)) / np.sqrt(len(a))
    before = 0.0
    for n in range(500):  # noqa: B007
        v = a @ v
        v /= np.linalg.norm(v)
        value = v @ a @ v
        if abs(value - before) < tol:
            break
        before = value
    return value, np.abs(v), n, np.linalg.matrix_power(a / 10, 3)


@program(data(40))
def running_statistics(x):
    n = np.arange(1, len(x) + 1)
    mean = np.cumsum(x) / n
    var = np.cumsum(x**2) / n - mean**2
    top = np.maximum.accumulate(x)
    drawdown = (top - x).max()
    z = (x - mean) / np.sqrt(np.maximum(var, 1e-12))
    return mean, var, top, drawdown, z[1:], np.diff(x), np.ediff1d(x), np.gradient(x)


@program(data(30), 5)
def rolling_mean(x, n):
    w = np.lib.stride_tricks.sliding_window_view(x, n)
    c = np.cumsum(np.insert(x, 0, 0))
    return (
        w.mean(-1),
        (c[n:] - c[:-n]) / n,
        np.convolve(x, np.ones(n) / n, "valid"),
        w.max(1) - w.min(1),
    )


@program(data(15, 15), 0.4)
def rotate_by_indexing(image, angle):
    h, w = image.shape
    y, x = np.mgrid[:h, :w]
    cy, cx = (h - 1) / 2, (w - 1) / 2
    sy = np.cos(angle) * (y - cy) - np.sin(angle) * (x - cx) + cy
    sx = np.sin(angle) * (y - cy) + np.cos(angle) * (x - cx) + cx
    yi, xi = np.rint(sy).astype(int), np.rint(sx).astype(int)
    inside = (yi >= 0) & (yi < h) & (xi >= 0) & (xi < w)
    out = np.zeros_like(image)
    out[inside] = image[yi[inside], xi[inside]]
    nearest = image[np.clip(yi, 0, h - 1), np.clip(xi, 0, w - 1)]
    return out, np.where(inside, nearest, 0)


@program(data(20))
def ranks(x):
    order = x.argsort()
    rank = np.empty_like(order)
    rank[order] = np.arange(len(x))
    top = x[np.argsort(-x)[:5]]
    quartiles = np.percentile(x, [25, 50, 75])
    return rank, top, quartiles, np.searchsorted(np.sort(x), x), x[np.lexsort((x, x > 0))]


@program(np.array([1, 1, 2, 2, 2, 3, 1, 1]), new=False)
def run_length_encoding(x):
    starts = np.concatenate([[0], np.nonzero(x[1:] != x[:-1])[0] + 1])
    lengths = np.diff(np.append(starts, len(x)))
    assert np.array_equal(np.repeat(x[starts], lengths), x)
    return list(zip(x[starts].tolist(), lengths.tolist(), strict=True)), starts


@program(200, new=False)
def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return np.nonzero(prime)[0]


@program(data(5, 5) + 5 * np.eye(5), data(5))
def conjugate_gradient(a, b):
    a = a @ a.T
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return np.round(x, 6)


@program(data(5, 5))
def gram_schmidt(a):
    q = np.zeros_like(a)
    for k in range(a.shape[1]):
        v = a[:, k].copy()
        for j in range(k):
            v -= (q[:, j] @ a[:, k]) * q[:, j]
        q[:, k] = v / np.sqrt(v @ v)
    return q, np.round(q.T @ q, 6)


@program(np.array([60, 100, 120]), np.array([1, 2, 3]), 5, new=False)
def knapsack(values, weights, capacity):
    best = np.zeros((len(values) + 1, capacity + 1), dtype=np.int64)
    for i in range(1, len(values) + 1):
        v, w = values[i - 1], weights[i - 1]
        best[i] = best[i - 1]
        best[i, w:] = np.maximum(best[i, w:], best[i - 1, : capacity + 1 - w] + v)
    return best[-1, -1], best


@program(data(3), 0.01, 40)
def lorenz_rk4(state, dt, steps):
    def slope(s):
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    path = np.empty((steps, 3))
    for k in range(steps):
        a = slope(state)
        b = slope(state + dt / 2 * a)
        c = slope(state + dt / 2 * b)
        d = slope(state + dt * c)
        state = state + dt / 6 * (a + 2 * b + 2 * c + d)
        path[k] = state
    return path


@program(data(12), 0.3, 5)
def kalman_filter(z, q, n):
    x, p = 0.0, 1.0
    out = np.zeros(len(z))
    for k in range(len(z)):
        p = p + q
        gain = p / (p + 1.0)
        x = x + gain * (z[k] - x)
        p = (1 - gain) * p
        out[k] = x
    return out, x, p


@program(data(6, 4), data(4, 4, seed=1), data(4, 4, seed=2), data(4, 4, seed=3))
def attention(x, wq, wk, wv):
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = q @ k.T / np.sqrt(x.shape[-1])
    mask = np.triu(np.ones_like(scores, dtype=bool), 1)
    scores = np.where(mask, -np.inf, scores)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    out = p @ v
    mu, sd = out.mean(-1, keepdims=True), out.std(-1, keepdims=True)
    return (out - mu) / (sd + 1e-5), np.einsum("ij,kj->ik", q, k)


@program(data(2, 3, 8, 8), data(4, 3, 3, 3, seed=1))
def conv_layer_by_windows(x, w):
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, w)
    y = np.maximum(y, 0)
    n, c, h, v = y.shape
    return y.reshape(n, c, h // 2, 2, v // 2, 2).max(axis=(3, 5))


@program(data(16, 16), 3)
def haar_wavelet(x, levels):
    for _ in range(levels):
        a, b = x[::2] + x[1::2], x[::2] - x[1::2]
        x = np.concatenate([a, b]) / np.sqrt(2)
        x = np.hstack([x[:, ::2] + x[:, 1::2], x[:, ::2] - x[:, 1::2]]) / np.sqrt(2)
    return x, (x**2).sum()


@program(data(40, 2))
def convex_hull(points):
    points = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half(ps):
        hull = []
        for p in ps:
            while len(hull) >= 2:
                a, b = hull[-1] - hull[-2], p - hull[-2]
                if a[0] * b[1] - a[1] * b[0] > 0:
                    break
                hull.pop()
            hull.append(p)
        return hull[:-1]

    return np.array(half(points) + half(points[::-1]))


@program(["the cat sat", "the dog sat on the cat"], new=False)
def bag_of_words(texts):
    words = sorted({w for t in texts for w in t.split()})
    counts = np.zeros((len(texts), len(words)))
    for i, t in enumerate(texts):
        for w in t.split():
            counts[i, words.index(w)] += 1
    tf = counts / counts.sum(1, keepdims=True)
    idf = np.log(len(texts) / (counts > 0).sum(0)) + 1
    tfidf = tf * idf
    norm = tfidf / np.linalg.norm(tfidf, axis=1, keepdims=True)
    return dict(zip(words, idf.tolist(), strict=True)), norm @ norm.T


@program(data(8, 8, dtype=np.int64) % 5)
def flood_levels(grid):
    label = np.zeros_like(grid)
    label[grid > 1] = np.arange(1, (grid > 1).sum() + 1)
    changed = True
    rounds = 0
    while changed:
        p = np.pad(label, 1)
        new = np.max([label, p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]], axis=0)
        new[grid <= 1] = 0
        changed = (new != label).any()
        label = new
        rounds += 1
    return label, rounds, len(np.unique(label)) - 1


@program(data(30), data(30, seed=1), 1.5)
def robust_fit(x, y, delta):
    a = b = 0.0
    for _ in range(20):
        r = y - (a * x + b)
        w = np.where(np.abs(r) <= delta, 1.0, delta / np.maximum(np.abs(r), 1e-9))
        sw, mx, my = w.sum(), (w * x).sum(), (w * y).sum()
        a = (sw * (w * x * y).sum() - mx * my) / (sw * (w * x * x).sum() - mx**2)
        b = (my - a * mx) / sw
    return a, b, np.median(np.abs(r))


@program(np.arange(24.0).reshape(2, 3, 4))
def statistics_table(x):
    table = {}
    for axis in (None, 0, 1, (0, 2), -1):
        table[axis] = [
            f(x, axis=axis) for f in (np.sum, np.mean, np.std, np.min, np.prod, np.ptp, np.median)
        ]
    return table, np.corrcoef(x[0]), np.cov(x[1]), np.average(x, axis=1, weights=[1, 2, 3])


@pytest.mark.parametrize(("f", "args", "options"), PROGRAMS)
def test_program(f, args, options):
    check(f, *args, **{"rtol": 1e-9, **options})


@pytest.mark.parametrize(("f", "args", "options"), PROGRAMS)
@pytest.mark.parametrize("plain", ["auto", "always"])
def test_program_whose_loops_may_run_plainly(f, args, options, plain):
    check(f, *args, plain=plain, **{"rtol": 1e-9, **options})


def test_programs_under_aot_eager():
    for f in (softmax_regression, jacobi, black_scholes, mandelbrot, pca):
        found = next(p for p in PROGRAMS if p.values[0] is f)
        check(f, *found.values[1], backend="aot_eager", **{"rtol": 1e-9, **found.values[2]})


@pytest.mark.parametrize("shape", [(2, 5, 3), (8, 50, 30)])
def test_reductions_of_one_new_array_along_its_middle_axis(shape: tuple) -> None:
    """Their loops are in another order than those that make it."""

    def f(a):
        v = np.exp(a)
        return v.sum(1) / v.max(1), v / v.sum(1, keepdims=True)

    a = np.random.default_rng(0).normal(size=shape)
    fast = np_compile.compile(f, backend="native")
    for got, want in zip(fast(a), f(a), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
