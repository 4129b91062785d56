"""Whole programs with loops, as people write them, at several sizes."""

from __future__ import annotations

import math

import numpy as np

from .support import Case, case, check, each, exact, rarely

SIZES = (0, 1, 2, 3, 9, 17)


def rng(n=0):
    return np.random.default_rng(n)


def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - low[i, :j] @ low[j, :j]
            if i == j:
                if s <= 0:
                    raise ValueError("not positive definite")
                low[i, j] = np.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return low


def lu(a):
    n = len(a)
    a = a.copy()
    perm = np.arange(n)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if a[p, k] == 0:
            raise np.linalg.LinAlgError(f"column {k} is singular")
        if p != k:
            a[[k, p]] = a[[p, k]]
            perm[k], perm[p] = perm[p], perm[k]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a, perm


def gram_schmidt(a):
    m, n = a.shape
    q, r = np.zeros((m, n)), np.zeros((n, n))
    for j in range(n):
        v = a[:, j].copy()
        for i in range(j):
            r[i, j] = np.dot(q[:, i], v)
            v -= r[i, j] * q[:, i]
        r[j, j] = np.linalg.norm(v)
        q[:, j] = v / r[j, j]
    return q, r


def thomas(a, b, c, d):
    n = len(d)
    cp, dp, x = np.zeros(n), np.zeros(n), np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def gauss_seidel(u, f, tol, most):
    h = 1.0 / (u.shape[0] + 1)
    for sweep in range(most):  # noqa: B007
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (
                    u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - h * h * f[i, j]
                )
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change < tol:
            break
    return sweep, change


def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1], d


def floyd_warshall(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def csr_product(data, indices, indptr, x):
    y = np.zeros(len(indptr) - 1)
    for i in range(len(y)):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]
    return y


def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c ^= int(b)
        for _ in range(8):
            c = (c >> 1) ^ 0xEDB88320 if c & 1 else c >> 1
    return c ^ 0xFFFFFFFF


def sieve(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return prime, np.count_nonzero(prime)


def mandelbrot(h, w, most):
    out = np.zeros((h, w), dtype=np.int64)
    for i in range(h):
        for j in range(w):
            c = complex(-2 + 3 * j / w, -1.5 + 3 * i / h)
            z = 0j
            n = 0
            while abs(z) <= 2 and n < most:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


def life(board, steps):
    n, m = board.shape
    for _ in range(steps):
        new = np.zeros_like(board)
        for i in range(n):
            for j in range(m):
                around = -board[i, j]
                for a in (-1, 0, 1):
                    for b in (-1, 0, 1):
                        around += board[(i + a) % n, (j + b) % m]
                if around == 3 or (board[i, j] and around == 2):
                    new[i, j] = 1
        board = new
    return board


def n_body(x, v, m, dt, steps):
    n = len(m)
    for _ in range(steps):
        for i in range(n):
            force = np.zeros(3)
            for j in range(n):
                if i != j:
                    d = x[j] - x[i]
                    force += m[j] * d / (np.sum(d * d) + 0.01) ** 1.5
            v[i] += dt * force
        x += dt * v
    return 0.5 * np.sum(m * np.sum(v**2, axis=1))


def viterbi(obs, start, move, emit):
    t, n = len(obs), len(start)
    d, back = np.zeros((t, n)), np.zeros((t, n), dtype=int)
    d[0] = start * emit[:, obs[0]]
    for k in range(1, t):
        for j in range(n):
            p = d[k - 1] * move[:, j]
            back[k, j] = np.argmax(p)
            d[k, j] = p[back[k, j]] * emit[j, obs[k]]
    path = np.zeros(t, dtype=int)
    path[-1] = np.argmax(d[-1])
    for k in range(t - 2, -1, -1):
        path[k] = back[k + 1, path[k + 1]]
    return path


def pagerank(a, tol):
    p = np.ones(len(a)) / len(a)
    change, n = 1.0, 0
    while change > tol:
        q = 0.85 * (a @ p) + 0.15 / len(a)
        change = np.abs(q - p).sum()
        p = q
        n += 1
    return p, n


def pendulum(t, y):
    out = np.empty(2)
    out[0] = y[1]
    out[1] = -math.sin(y[0]) - 0.1 * y[1] * t
    return out


def runge_kutta(y, end, h, tol):
    t, taken, refused = 0.0, 0, 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = pendulum(t, y)
        k2 = pendulum(t + h / 2, y + h / 2 * k1)
        k3 = pendulum(t + 0.75 * h, y + 0.75 * h * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        error = np.abs(h * (-5 * k1 + 6 * k2 + 8 * k3) / 72).max()
        if error > tol:
            h *= 0.5
            refused += 1
            continue
        t, y = t + h, new
        taken += 1
        if error < tol / 10:
            h *= 2
    return y, t, taken, refused


def histogram(x, bins):
    h = np.zeros(bins, dtype=int)
    lo, hi = x.min(), x.max()
    for v in x:
        k = int((v - lo) / (hi - lo) * bins)
        if k == bins:
            k -= 1
        h[k] += 1
    return h


def levinson(r):
    n = len(r)
    a = np.zeros(n)
    a[0] = 1.0
    e = r[0]
    for i in range(1, n):
        acc = r[i]
        for j in range(1, i):
            acc += a[j] * r[i - j]
        k = -acc / e
        a[1:i] = a[1:i] + k * a[i - 1 : 0 : -1]
        a[i] = k
        e *= 1 - k * k
    return a, e


def jacobi(a, sweeps):
    n = len(a)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-12:
                    continue
                t = 0.5 * math.atan2(2 * a[p, q], a[q, q] - a[p, p])
                c, s = math.cos(t), math.sin(t)
                for k in range(n):
                    x, y = a[k, p], a[k, q]
                    a[k, p], a[k, q] = c * x - s * y, s * x + c * y
                for k in range(n):
                    x, y = a[p, k], a[q, k]
                    a[p, k], a[q, k] = c * x - s * y, s * x + c * y
    return np.sort(np.diag(a))


def median_filter(image):
    h, w = image.shape
    out = np.zeros_like(image)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            window = image[i - 1 : i + 2, j - 1 : j + 2]
            out[i, j] = (window.sum() - window.max() - window.min()) // 7
    return out


def kalman(zs, q, r):
    x, p = 0.0, 1.0
    out = []
    for z in zs:
        p = p + q
        k = p / (p + r)
        x = x + k * (z - x)
        p = (1 - k) * p
        out.append(x)
    return np.array(out), p


def iir(b, a, x):
    y = np.zeros_like(x)
    for n in range(len(x)):
        for k in range(len(b)):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n - k >= 0:
                y[n] -= a[k] * y[n - k]
        y[n] /= a[0]
    return y


def gradient_descent(x, y, rate, epochs):
    w, b = np.zeros(x.shape[1]), 0.0
    losses = []
    for _ in range(epochs):
        error = x @ w + b - y
        w -= rate * (x.T @ error) / len(y)
        b -= rate * error.mean()
        losses.append((error**2).mean())
    return w, b, losses


def spiral(n):
    m = np.zeros((n, n), dtype=int)
    i = j = 0
    di, dj = 0, 1
    for k in range(1, n * n + 1):
        m[i, j] = k
        a, b = i + di, j + dj
        if not (0 <= a < n and 0 <= b < n) or m[a, b]:
            di, dj = dj, -di
        i += di
        j += dj
    return m


def sandpile(g):
    topplings = 0
    while g.max() > 3:
        for i in range(g.shape[0]):
            for j in range(g.shape[1]):
                if g[i, j] > 3:
                    g[i, j] -= 4
                    topplings += 1
                    if i > 0:
                        g[i - 1, j] += 1
                    if i < g.shape[0] - 1:
                        g[i + 1, j] += 1
                    if j > 0:
                        g[i, j - 1] += 1
                    if j < g.shape[1] - 1:
                        g[i, j + 1] += 1
    return g, topplings


def each_size(make):
    return [make(n) for n in SIZES]


def square(n):
    return rng(n).random((n, n))


def definite(n):
    return square(n) + n * np.eye(n)


def symmetric(n):
    a = square(n)
    return a + a.T


CSR = (np.arange(1.0, 6), np.array([0, 2, 1, 0, 2]), np.array([0, 2, 2, 5]), np.array([1.0, 2, 4]))
HMM = (np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.1, 0.9], [0.6, 0.4]]))
CASES = [
    case(cholesky, *each_size(lambda n: (definite(n) @ definite(n).T,)), (-np.eye(3),)),
    *rarely(case(lu, *each_size(lambda n: (square(n),)), (np.ones((3, 3)),))),
    case(gram_schmidt, *each_size(lambda n: (square(n),)), (rng().random((9, 3)),), rtol=1e-9),
    exact(thomas, *each_size(lambda n: tuple(rng(n).random((4, n)) + 3 * np.eye(4, 1, -1)))),
    *rarely(exact(gauss_seidel, *each_size(lambda n: (square(n), square(n), 1e-3, 9)))),
    exact(edit_distance, *((rng(n).integers(0, 3, n), rng(1).integers(0, 3, 7)) for n in SIZES)),
    *rarely(exact(floyd_warshall, *each_size(lambda n: (square(n),)))),
    exact(csr_product, CSR, (*CSR[:3], CSR[3][:2]), (*CSR[:2], CSR[2][:1], CSR[3])),
    exact(crc, *each_size(lambda n: (rng(n).integers(0, 256, n).astype("u1"),))),
    exact(sieve, *((n,) for n in (1, 2, 3, 9, 100))),
    exact(mandelbrot, (0, 3, 5), (5, 6, 20)),
    exact(life, *each_size(lambda n: ((square(n) < 0.4).astype(int), 3))),

             case(n_body, *each_size(lambda n: (rng(n).random((n, 3)),
          np.zeros((n, 3)), np.ones(n), 0.1, 2))),
    exact(viterbi, *each_size(lambda n: (rng(n).integers(0, 2, n), *HMM))),
    case(pagerank, *each_size(lambda n: (square(n + 1) / (n + 1), 1e-8)), rtol=1e-9),
    case(runge_kutta, (np.array([1.0, 0.0]), 2.0, 0.1, 1e-4),
          (np.array([1.0, 0.0]), 0.0, 0.1, 1.0)),
    exact(histogram, *each_size(lambda n: (rng(n).random(n), 4))),
    *rarely(exact(levinson, *each_size(lambda n: (1 / np.arange(1.0, n + 1),)))),
    *rarely(case(jacobi, *each_size(lambda n: (symmetric(n), 3)), rtol=1e-10)),
    exact(median_filter, *each_size(lambda n: ((square(n) * 255).astype("u1"),))),
    *rarely(exact(median_filter, *each_size(lambda n: (square(n).astype("f4"),)))),
    *rarely(exact(kalman, *each_size(lambda n: (rng(n).random(n), 0.1, 0.5)))),

             exact(iir, *each_size(lambda n: (np.array([0.5, 0.25]),
          np.array([2.0, 0.5, -0.125]), rng(n).random(n)))),
    case(gradient_descent, *each_size(lambda n: (rng(n).random((n, 3)), rng(1).random(n), 0.1, 5))),
    exact(spiral, *((n,) for n in (0, 1, 2, 5))),
    exact(sandpile, *each_size(lambda n: (rng(n).integers(0, 9, (n + 1, n + 1)),))),
]  # fmt: skip


@each(CASES)
def test_programs(c: Case) -> None:
    check(c, rounds=1)
