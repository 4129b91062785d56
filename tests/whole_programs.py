"""Whole programs as users have them: images, statistics, simulations, networks, text and numbers.

Each is a function and its arguments; `PROGRAMS` holds all. They change arguments, index by data,
branch on values, use several dtypes, and give nested results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

R = np.random.default_rng(11)


@dataclass(frozen=True)
class Whole:
    """A program and its arguments. wrt: positions of what it is differentiated by, if it is a
    loss."""

    function: Callable
    arguments: tuple
    wrt: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Whole] = []


def whole(*arguments: Any, wrt: tuple[int, ...] = ()) -> Callable:
    """Register a program with its arguments."""

    def register(function: Callable) -> Callable:
        PROGRAMS.append(Whole(function, arguments, wrt))
        return function

    return register


def _real(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return R.standard_normal(shape).astype(dtype)


def _image(h: int = 24, w: int = 31, c: int = 3) -> np.ndarray:
    return R.integers(0, 256, (h, w, c)).astype(np.uint8)


# Images


@whole(_image())
def grey_and_contrast(image):
    grey = image @ np.array([0.299, 0.587, 0.114])
    low, high = np.percentile(grey, [2, 98])
    stretched = np.clip((grey - low) / (high - low), 0, 1)
    return (stretched * 255).astype(np.uint8), grey.astype(np.float32)


@whole(_image(20, 20, 1)[:, :, 0])
def equalized(image):
    counts = np.bincount(image.ravel(), minlength=256)
    table = np.cumsum(counts)
    table = (table - table.min()) * 255 // (table.max() - table.min())
    return table.astype(np.uint8)[image]


@whole(_real(22, 30, dtype=np.float32), _real(5, 5, dtype=np.float32))
def convolved(image, kernel):
    h, w = kernel.shape
    out = np.zeros((image.shape[0] - h + 1, image.shape[1] - w + 1), image.dtype)
    for i in range(h):
        for j in range(w):
            out += kernel[i, j] * image[i : i + out.shape[0], j : j + out.shape[1]]
    return out


@whole(_real(18, 25))
def edges(image):
    gx = image[1:-1, 2:] - image[1:-1, :-2]
    gy = image[2:, 1:-1] - image[:-2, 1:-1]
    size = np.hypot(gx, gy)
    angle = np.round(np.arctan2(gy, gx) * 4 / np.pi).astype(np.int8) % 4
    strong = size > size.mean() + size.std()
    return strong, np.where(strong, angle, -1), np.count_nonzero(strong)


@whole(_image(16, 18))
def posterized_in_place(image):
    image //= 64
    image *= 64
    image[image > 128] = 255
    image[:, ::2, 0] = 0


@whole(_image(16, 16, 1)[:, :, 0])
def dithered(image):
    pattern = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
    threshold = np.tile(pattern, (4, 4)) * 16 + 8
    return np.packbits(image > threshold, axis=1), np.unpackbits(image[0])


@whole(R.random((20, 22)) < 0.4)
def life(cells):
    for _ in range(6):
        n = sum(
            np.roll(np.roll(cells.astype(np.int32), i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if i or j
        )
        cells = (n == 3) | (cells & (n == 2))
    return cells, cells.sum()


@whole(_image(12, 14), 0.5)
def rotated_by_nearest(image, angle):
    h, w = image.shape[:2]
    y, x = np.mgrid[:h, :w]
    y, x = y - h / 2, x - w / 2
    u = np.rint(np.cos(angle) * x - np.sin(angle) * y + w / 2).astype(int)
    v = np.rint(np.sin(angle) * x + np.cos(angle) * y + h / 2).astype(int)
    inside = (u >= 0) & (u < w) & (v >= 0) & (v < h)
    out = np.zeros_like(image)
    out[inside] = image[v[inside], u[inside]]
    return out


# Statistics and tables


@whole(_real(200), R.integers(0, 7, 200))
def by_group(x, group):
    count = np.bincount(group, minlength=7)
    mean = np.bincount(group, x, minlength=7) / np.maximum(count, 1)
    square = np.bincount(group, (x - mean[group]) ** 2, minlength=7)
    best = np.full(7, -np.inf)
    np.maximum.at(best, group, x)
    return count, mean, np.sqrt(square / np.maximum(count - 1, 1)), best


@whole(_real(40, 5))
def covariance_and_scores(x):
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    c = np.cov(z, rowvar=False)
    values, vectors = np.linalg.eigh(c)
    return values[::-1] / values.sum(), np.abs(z @ vectors[:, ::-1][:, :2]), np.corrcoef(x.T)


@whole(np.where(R.random((30, 4)) < 0.2, np.nan, R.random((30, 4))))
def with_gaps(table):
    mean = np.nanmean(table, axis=0)
    filled = np.where(np.isnan(table), mean, table)
    rank = filled.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return filled, rank, np.nanmax(table, 1), np.isnan(table).sum(0)


@whole(_real(300))
def histogram_and_entropy(x):
    counts, edges = np.histogram(x, bins=16)
    p = counts / counts.sum()
    entropy = -np.sum(p[p > 0] * np.log2(p[p > 0]))
    return counts, edges, entropy, np.digitize(x[:20], edges), np.median(x), np.quantile(x, 0.3)


@whole(_real(120).cumsum(), 10)
def moving(x, n):
    total = np.cumsum(np.insert(x, 0, 0.0))
    mean = (total[n:] - total[:-n]) / n
    windows = np.lib.stride_tricks.sliding_window_view(x, n)
    return mean, windows.max(1), np.convolve(x, np.ones(n) / n, "valid"), np.diff(x, 2)


@whole(R.integers(0, 9, 60), R.integers(0, 9, 60))
def sets(a, b):
    values, first, inverse, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True
    )
    found = values, first, inverse, counts
    return found, np.intersect1d(a, b), np.isin(a, b[:5]), np.setdiff1d(a, b[:9])


@whole(_real(50), _real(50), 1.0)
def regression(x, y, ridge):
    a = np.vander(x, 4)
    left = a.T @ a + ridge * np.eye(4)
    w = np.linalg.solve(left, a.T @ y)
    r = y - a @ w
    return w, (r * r).mean(), np.linalg.norm(r), np.linalg.det(left)


# Simulations


@whole(_real(16, 3), _real(16, 3), np.abs(_real(16)) + 1)
def bodies(x, v, m):
    for _ in range(4):
        d = x[:, None] - x[None]
        r = np.sqrt((d**2).sum(-1) + 0.1)
        np.fill_diagonal(r, np.inf)
        v -= 0.01 * (m[None, :, None] * d / r[..., None] ** 3).sum(1)
        x += 0.01 * v
    return 0.5 * (m * (v**2).sum(1)).sum()


@whole(_real(15, 17), 30)
def heat_until_steady(u, most):
    steps = 0
    while steps < most:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        change = np.abs(new - u).max()
        u = new
        steps += 1
        if change < 0.02:
            break
    return u, steps


@whole(np.stack([np.ones((12, 12)), R.random((12, 12))]))
def reaction(fields):
    u, v = fields
    for _ in range(12):
        both = u * v * v
        u += 0.1 * (0.16 * laplacian(u) - both + 0.035 * (1 - u))
        v += 0.1 * (0.08 * laplacian(v) + both - 0.1 * v)
    return fields.mean((1, 2))


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


@whole(_real(64), 0.01, 20)
def waves(u, dt, steps):
    before = u.copy()
    for _ in range(steps):
        inner = 2 * u[1:-1] - before[1:-1] + dt * (u[2:] - 2 * u[1:-1] + u[:-2])
        before[:] = u
        u[1:-1] = inner
        u[0] = u[-1] = 0
    return before


@whole(_real(48) * 0.1, 6)
def spectral(u, steps):
    k = np.fft.fftfreq(48) * 48
    for _ in range(steps):
        f = np.fft.fft(u)
        f[np.abs(k) > 16] = 0
        u = np.fft.ifft(f * np.exp(-0.001 * k**2)).real
    return u, np.abs(np.fft.rfft(u)) ** 2


@whole(7, 2000)
def walkers(seed, n):
    rng = np.random.default_rng(seed)
    steps = rng.choice(np.array([-1, 1]), size=(n // 100, 100))
    place = steps.cumsum(axis=1)
    return place[:, -1], (np.abs(place) >= 8).any(1).mean(), place.max()


@whole(100.0, np.array([90.0, 100.0, 110.0]), 3)
def options(start, strikes, seed):
    z = np.random.default_rng(seed).standard_normal((64, 20))
    paths = start * np.exp(np.cumsum(0.001 + 0.02 * z, axis=1))
    pay = np.maximum(paths[:, -1:] - strikes, 0)
    return pay.mean(0), pay.std(0) / 8, paths.mean(1).max()


@whole(R.random(60), R.integers(0, 12, 60))
def particles_to_grid(x, cell):
    density = np.zeros(12, np.float32)
    np.add.at(density, cell, 1)
    mass = np.zeros(12)
    np.add.at(mass, cell, x)
    field = np.gradient(mass)
    cell[:] = (cell + np.where(field[cell] > 0, 1, -1)) % 12
    return density, field


@whole(np.linspace(-2, 0.6, 20), np.linspace(-1.2, 1.2, 18))
def escape_times(x, y):
    c = x + 1j * y[:, None]
    z = np.zeros_like(c)
    count = np.zeros(c.shape, int)
    for k in range(25):
        live = np.abs(z) <= 2
        z[live] = z[live] ** 2 + c[live]
        count[live] = k
    return count


@whole(_real(20, 20) + 20 * np.eye(20), _real(20))
def conjugate_gradient(a, b):
    a = a @ a.T
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    old = r @ r
    for _ in range(40):
        q = a @ p
        alpha = old / (p @ q)
        x += alpha * p
        r -= alpha * q
        new = r @ r
        if np.sqrt(new) < 1e-9:
            break
        p = r + new / old * p
        old = new
    return np.round(x, 6)


@whole(_real(9), np.abs(_real(8)) + 3, _real(8) * 0.1)
def tridiagonal(d, b, c):
    n = len(d)
    e = np.zeros(n)
    f = np.zeros(n)
    for i in range(1, n):
        e[i] = c[i - 1] / (b[i - 1] - c[i - 1] * e[i - 1])
        f[i] = (d[i - 1] - c[i - 1] * f[i - 1]) / (b[i - 1] - c[i - 1] * e[i - 1])
    return e, f


@whole(_real(10, 3), _real(4, 3))
def k_means(points, centres):
    for _ in range(5):
        d = ((points[:, None] - centres) ** 2).sum(-1)
        nearest = d.argmin(1)
        for j in range(4):
            if (nearest == j).any():
                centres[j] = points[nearest == j].mean(0)
    return nearest, d.min(1).sum()


# Networks


@whole(_real(12, 9, dtype=np.float32), _real(9, 16, dtype=np.float32), _real(16, dtype=np.float32),
       _real(16, 4, dtype=np.float32))  # fmt: skip
def forward(x, w, b, v):
    h = np.maximum(x @ w + b, 0)
    z = h @ v
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return p, p.argmax(1), np.log(p.max(1)).mean()


@whole(_real(2, 6, 8, dtype=np.float32), _real(8, 24, dtype=np.float32))
def attention(x, w):
    n, t, c = x.shape
    q, k, v = np.split(x @ w, 3, axis=-1)
    q, k, v = (a.reshape(n, t, 2, c // 2).transpose(0, 2, 1, 3) for a in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(c // 2))
    s = np.where(np.tril(np.ones((t, t), bool)), s, np.float32(-np.inf))
    e = np.exp(s - s.max(-1, keepdims=True))
    return ((e / e.sum(-1, keepdims=True)) @ v).transpose(0, 2, 1, 3).reshape(n, t, c)


@whole(_real(7, 5), _real(5), _real(8, 5), _real(8, 8) * 0.1)
def recurrent(xs, h0, wx, wh):
    h = np.zeros(8) + h0.sum()
    out = []
    for x in xs:
        h = np.tanh(wx @ x + wh @ h)
        out.append(h)
    return np.stack(out), h


@whole(_real(2, 3, 8, 8, dtype=np.float32), _real(4, 3, 3, 3, dtype=np.float32))
def convolutional(x, w):
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", views, w)
    y = np.where(y > 0, y, np.float32(0.1) * y)
    n, c, h, v = y.shape
    return y.reshape(n, c, h // 2, 2, v // 2, 2).max((3, 5))


@whole(_real(5, 6, dtype=np.float16), _real(6, 3, dtype=np.float16))
def half_precision(x, w):
    y = x @ w
    return y, np.tanh(y) * np.float16(2), y.astype(np.float32).sum(), (y > 0).astype(np.float16)


@whole(_real(30, 4), _real(4), (R.random(30) < 0.5).astype(np.float64), 0.5)
def logistic_steps(x, w, y, rate):
    losses = np.empty(8)
    for k in range(8):
        p = 1 / (1 + np.exp(-(x @ w)))
        losses[k] = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
        w -= rate * x.T @ (p - y) / len(y)
    return losses


@whole(_real(10, 6), _real(6, 5), _real(5, 3), np.eye(3)[R.integers(0, 3, 10)], wrt=(1, 2))
def loss_of_a_network(x, w, v, y):
    z = np.tanh(x @ w) @ v
    z = z - z.max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - (z * y).sum(1)) + 1e-3 * (w**2).sum()


@whole(_real(12), R.integers(0, 12, 20), _real(20), wrt=(0, 2))
def loss_by_index(table, rows, scale):
    picked = table[rows] * scale
    running = np.cumsum(picked)
    return np.sqrt(1 + running**2).sum() + np.where(picked > 0, picked, 0.1 * picked).max()


@whole(_real(9, 7), wrt=(0,))
def loss_with_views(x):
    y = x.copy()
    y[1:-1] = y[1:-1] * 2 + x[2:] - x[:-2]
    y[:, ::2] *= np.abs(x[:, ::2])
    return (y.T.reshape(3, -1).prod(1) / 1e3).sum() + np.sort(y.ravel())[-5:].sum()


# Integers, bits, text


@whole(R.integers(0, 2**32, 33, dtype=np.uint32), R.integers(0, 2**63, 33, dtype=np.uint64))
def hashes(a, b):
    h = np.uint32(2166136261)
    mixed = (a ^ h) * np.uint32(16777619)
    mixed ^= mixed >> np.uint32(13)
    wide = b * np.uint64(0x9E3779B97F4A7C15)
    wide ^= wide >> np.uint64(29)
    return mixed, wide % np.uint64(1000), np.bitwise_count(wide), np.bitwise_xor.reduce(mixed)


@whole(200)
def sieve(n):
    prime = np.ones(n, bool)
    prime[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return np.flatnonzero(prime), prime.sum()


@whole(R.integers(97, 123, 90, dtype=np.uint8), 3)
def caesar(text, shift):
    coded = (text - 97 + shift) % 26 + 97
    counts = np.zeros(26, np.int16)
    np.add.at(counts, coded - 97, 1)
    order = np.argsort(-counts, kind="stable")
    return coded.astype(np.uint8), counts, order[:5]


@whole(R.integers(-100, 100, (6, 8), dtype=np.int16), R.integers(1, 9, 8, dtype=np.int8))
def small_integers(a, b):
    a[::2] += b
    a[1] = a[0] * b
    np.floor_divide(a, b, out=a)
    return a % 7, np.left_shift(b, 2), a.sum(dtype=np.int32), a.astype(np.float32).mean(1), -b


@whole(R.integers(0, 8, (9, 9)), 3)
def flood(heights, level):
    wet = np.zeros(heights.shape, bool)
    wet[0] = heights[0] <= level
    while True:
        new = wet.copy()
        new[1:] |= wet[:-1]
        new[:-1] |= wet[1:]
        new[:, 1:] |= wet[:, :-1]
        new[:, :-1] |= wet[:, 1:]
        new &= heights <= level
        if (new == wet).all():
            return wet, wet.sum()
        wet = new


@whole(np.sort(R.random(40)), R.random(15), R.random(40))
def tables(x, at, y):
    k = np.searchsorted(x, at)
    k = np.clip(k, 1, len(x) - 1)
    t = (at - x[k - 1]) / (x[k] - x[k - 1])
    return y[k - 1] * (1 - t) + y[k] * t, np.interp(at, x, y), np.trapezoid(y, x)


@whole(_real(3, 4) + 1j * _real(3, 4), _real(4, 4).astype(np.complex64))
def quantum(state, gate):
    new = state @ gate.astype(np.complex128)
    p = np.abs(new) ** 2
    return (
        new / np.sqrt(p.sum(1, keepdims=True)),
        np.angle(new),
        np.vdot(state, state),
        gate.conj().T,
    )


@whole({"x": _real(6), "n": 3}, [_real(4), _real(2, 2)])
def nested(state, parts):
    state["x"] *= state["n"]
    parts[0][1:] += parts[0][:-1]
    return {"sum": state["x"].sum(), "parts": [p.T * 2 for p in parts], "n": state["n"]}


@whole(_real(30), 0.0)
def branches(x, level):
    if x.mean() > level:
        x -= x.mean()
    else:
        x += 1
    top = x[x > 0]
    return top, len(top), float(top.sum()), x[np.argmax(x)]


# Programs of classes, callbacks, queues and recursion


@whole([(_real(5, 3), _real(5) > 0) for _ in range(4)], 3)
def shuffled_batches(batches, seed):
    rng, w, losses = np.random.default_rng(seed), np.zeros(3), []
    for _ in range(3):
        rng.shuffle(batches)
        for x, y in batches:
            p = 1 / (1 + np.exp(-x @ w))
            w -= 0.5 * x.T @ (p - y) / len(y)
        losses.append(float(np.mean((p > 0.5) == y)))
    return w, losses, batches[0][0] * 2, rng.random()


class _Node:
    """A value of an expression, and how its gradient goes on to what it was made of."""

    def __init__(self, data, parents=(), back=lambda g: ()):
        self.data, self.parents, self.back, self.grad = data, parents, back, 0.0

    def __add__(self, other):
        return _Node(self.data + other.data, (self, other), lambda g: (g, g.sum(0)))

    def __matmul__(self, other):
        a, b = self.data, other.data
        return _Node(a @ b, (self, other), lambda g: (g @ b.T, a.T @ g))

    def tanh(self):
        t = np.tanh(self.data)
        return _Node(t, (self,), lambda g: ((1 - t**2) * g,))

    def backward(self, grad):
        self.grad = self.grad + grad
        for parent, g in zip(self.parents, self.back(grad), strict=False):
            parent.backward(g)


@whole(_real(7, 3), _real(3, 4), _real(4))
def tape_of_objects(x, w, b):
    weights, bias = _Node(w), _Node(b)
    for _ in range(2):
        out = ((_Node(x) @ weights) + bias).tanh()
        out.backward(out.data * 2 / out.data.size)
    weights.data -= 0.1 * weights.grad
    return out.data, weights.grad, bias.grad, weights.data


@whole(_real(9, 2), 4.0)
def filtered_track(seen, gate):
    dt = np.eye(4) + 0.1 * np.eye(4, k=2)
    at, spread, missed = np.zeros(4), np.eye(4) * 5, []
    see = np.eye(2, 4)
    for k, z in enumerate(seen):
        at, spread = dt @ at, dt @ spread @ dt.T + 0.01 * np.eye(4)
        s = see @ spread @ see.T + 0.1 * np.eye(2)
        off = z - see @ at
        if off @ np.linalg.solve(s, off) > gate:
            missed.append(k)
            continue
        gain = spread @ see.T @ np.linalg.inv(s)
        at = at + gain @ off
        spread = (np.eye(4) - gain @ see) @ spread
    return at, spread, missed


@whole(_image(19, 22, 1)[..., 0], 12)
def blocks_and_runs(image, step):
    h, w = image.shape
    k = np.arange(8)
    basis = np.cos(np.pi * (2 * k + 1) * k[:, None] / 16) * 0.5
    basis[0] /= np.sqrt(2)
    padded = np.pad(image, ((0, -h % 8), (0, -w % 8)), mode="edge")
    blocks = padded.reshape(-(-h // 8), 8, -1, 8).swapaxes(1, 2).astype(float)
    coded = np.rint(basis @ (blocks - 128) @ basis.T / step).astype(np.int16)
    runs, zeros = [], 0
    for v in coded[0, 0].ravel():
        if v == 0:
            zeros += 1
        else:
            runs.append((zeros, int(v)))
            zeros = 0
    back = (basis.T @ (coded * step) @ basis + 128).swapaxes(1, 2).reshape(padded.shape)
    return coded, runs, np.clip(back, 0, 255)[:h, :w].astype(np.uint8)


class _Unbounded(Exception):
    pass


@whole(np.abs(_real(4)) + 1, np.abs(_real(3, 4)) + 0.5, np.abs(_real(3)) * 5 + 1)
def simplex(c, a, b):
    def solve(table):
        steps = 0
        while (table[-1, :-1] < -1e-10).any():
            col = int(np.argmin(table[-1, :-1]))
            pivots = table[:-1, col]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(pivots > 1e-10, table[:-1, -1] / pivots, np.inf)
            row = int(ratio.argmin())
            if not np.isfinite(ratio[row]):
                raise _Unbounded(f"column {col} after {steps} steps")
            table[row] /= table[row, col]
            for i in range(len(table)):
                if i != row:
                    table[i] -= table[i, col] * table[row]
            steps += 1
        return table[-1, -1], steps

    m = len(a)
    last = np.concatenate([-c, np.zeros(m + 1)])
    table = np.vstack([np.hstack([a, np.eye(m), b[:, None]]), last])
    best = solve(table)
    try:
        solve(np.vstack([np.hstack([-a, np.eye(m), b[:, None]]), last]))
    except _Unbounded as e:
        return best, table, str(e)
    return best, table, None


@whole(np.where(_real(8, 9) > 0, 1, -1), 0.6, 4)
def clusters(spins, p, seed):
    rng, (h, w), sizes = np.random.default_rng(seed), spins.shape, []
    for _ in range(3):
        start = int(rng.integers(h)), int(rng.integers(w))
        sign, todo, found = spins[start].item(), [start], {start}
        while todo:
            r, c = todo.pop()
            for q in (((r + 1) % h, c), (r - 1, c), (r, (c + 1) % w), (r, c - 1)):
                q = q[0] % h, q[1] % w
                if q not in found and spins[q] == sign and rng.random() < p:
                    found.add(q)
                    todo.append(q)
        for q in found:
            spins[q] = -sign
        sizes.append(len(found))
    return spins.sum(), sizes


@whole(np.round(_real(24, 3), 1), R.integers(0, 3, 24))
def grown_tree(x, y):
    def impurity(labels):
        return 1 - ((np.bincount(labels, minlength=3) / len(labels)) ** 2).sum()

    def grow(rows, depth):
        labels = y[rows]
        if depth == 0 or len(np.unique(labels)) == 1:
            return np.bincount(labels, minlength=3) / len(labels)
        best = None
        for j in range(x.shape[1]):
            for level in np.unique(x[rows, j])[1:]:
                low = x[rows, j] < level
                n = low.mean()
                score = n * impurity(labels[low]) + (1 - n) * impurity(labels[~low])
                if best is None or score < best[0] - 1e-12:
                    best = score, j, level, low
        score, j, level, low = best
        sides = grow(rows[low], depth - 1), grow(rows[~low], depth - 1)
        return {"feature": j, "level": float(level), "low": sides[0], "high": sides[1]}

    return grow(np.arange(len(y)), 2)


@whole(_real(6, 4), {"q": _real(4, 4), "k": _real(4, 4), "v": _real(4, 4)}, 3)
def cached_attention(words, weights, steps):
    cache, chosen = {"k": [], "v": []}, [0]
    for _ in range(steps):
        x = words[chosen[-1]]
        for name in cache:
            cache[name].append(x @ weights[name])
        keys, values = np.stack(cache["k"]), np.stack(cache["v"])
        score = keys @ (x @ weights["q"]) / np.sqrt(len(x))
        score = np.exp(score - score.max())
        x = x + score @ values / score.sum()
        chosen.append(int(np.argmax(words @ x)))
    return chosen, x, cache
