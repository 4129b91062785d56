"""More whole programs: algorithms of several functions, on views, index arrays and lists."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from .whole_programs import R, _real, whole


@whole(100.0, 105.0, 0.03, 0.2, _real(40, 6))
def american_option(spot, strike, rate, sigma, normal):
    """By regression on the paths that are in the money."""
    step = 1.0 / normal.shape[1]
    normal = np.vstack([normal, -normal])
    drift = (rate - sigma**2 / 2) * step
    paths = spot * np.exp(np.cumsum(drift + sigma * np.sqrt(step) * normal, axis=1))
    cash = np.maximum(strike - paths[:, -1], 0)
    for t in range(normal.shape[1] - 2, -1, -1):
        cash = cash * np.exp(-rate * step)
        inside = paths[:, t] < strike
        if inside.sum() < 4:
            continue
        fit = np.polyfit(paths[inside, t], cash[inside], 2)
        gain = strike - paths[inside, t]
        now = gain > np.polyval(fit, paths[inside, t])
        cash[np.where(inside)[0][now]] = gain[now]
    return cash.mean() * np.exp(-rate * step), cash.std(ddof=1) / np.sqrt(len(cash))


@whole(R.integers(0, 1000, 32).astype(np.int16), 3)
def lifting(x, levels):
    """An integer wavelet in place, on views of views, and back."""
    parts, low = [], x
    for _ in range(levels):
        even, odd = low[::2], low[1::2]
        odd -= (even + np.roll(even, -1)) // 2
        even += (np.roll(odd, 1) + odd + 2) // 4
        parts.append((even, odd))
        low = even
    energy = [int(np.abs(odd).sum()) for _, odd in parts]
    back = x.copy()
    for k in range(levels - 1, -1, -1):
        low = back[:: 2**k]
        even, odd = low[::2], low[1::2]
        even -= (np.roll(odd, 1) + odd + 2) // 4
        odd += (even + np.roll(even, -1)) // 2
    return back, energy, low.dtype


@whole(_real(9, 11) > 0.1)
def connected(mask):
    """Components of an image, by a list of parents that grows."""
    h, w = mask.shape
    labels, parent = np.zeros((h, w), dtype=np.int32), [0]

    def find(a):
        while parent[a] != a:
            a = parent[a]
        return a

    for i in range(h):
        for j in range(w):
            if not mask[i, j]:
                continue
            up = labels[i - 1, j] if i else 0
            left = labels[i, j - 1] if j else 0
            if up and left:
                a, b = find(int(up)), find(int(left))
                labels[i, j] = min(a, b)
                parent[max(a, b)] = min(a, b)
            elif up or left:
                labels[i, j] = up or left
            else:
                parent.append(len(parent))
                labels[i, j] = len(parent) - 1
    roots = np.array([find(k) for k in range(len(parent))])
    found, place = np.unique(roots, return_inverse=True)
    labels = place[labels].astype(np.int32)
    return labels, np.bincount(labels.ravel()), len(found) - 1


@whole(R.integers(0, 8, (9, 8)))
def sandpile(grid):
    rounds = 0
    while (over := grid >= 4).any():
        grains = grid // 4
        grains[~over] = 0
        grid -= 4 * grains
        grid[1:] += grains[:-1]
        grid[:-1] += grains[1:]
        grid[:, 1:] += grains[:, :-1]
        grid[:, :-1] += grains[:, 1:]
        rounds += 1
    return rounds, int(grid.sum())


@dataclass
class _Station:
    free: np.ndarray
    waits: list = field(default_factory=list)
    lengths: dict = field(default_factory=dict)

    def serve(self, arrival, work):
        k = int(np.argmin(self.free))
        start = max(arrival, self.free[k])
        self.free[k] = start + work
        self.waits.append(start - arrival)
        n = int((self.free > arrival).sum())
        self.lengths[n] = self.lengths.get(n, 0) + 1
        return start + work


@whole(R.exponential(0.4, 25), R.exponential(1.0, 25), 3)
def queue_with_servers(gaps, works, servers):
    station = _Station(np.zeros(servers))
    events = [(float(t), k) for k, t in enumerate(np.cumsum(gaps))]
    heapq.heapify(events)
    end = 0.0
    while events:
        t, k = heapq.heappop(events)
        end = max(end, station.serve(t, works[k]))
    waits = np.asarray(station.waits)
    return np.quantile(waits, [0.5, 0.9]), float(end), sorted(station.lengths.items()), station.free


@whole(_real(7, 7) + 3 * np.eye(7)[::-1], _real(7))
def solved_with_pivots(a, b):
    """Gaussian elimination in place, rows swapped by index lists."""
    n, sign, order = len(a), 1, np.arange(len(a))
    for k in range(n - 1):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
            sign = -sign
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    x = b[order]
    for i in range(1, n):
        x[i] -= a[i, :i] @ x[:i]
    for i in reversed(range(n)):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, order, sign * np.prod(np.diag(a))


@whole(_real(200), 32, 8)
def gated_spectrogram(x, size, hop):
    """Short-time transforms there and back, the weak parts left out."""
    window = np.hanning(size + 1)[:-1]
    padded = np.concatenate([np.zeros(size // 2), x, np.zeros(size)])
    count = 1 + (len(padded) - size) // hop
    frames = padded[np.arange(size)[None] + hop * np.arange(count)[:, None]] * window
    spectrum = np.fft.rfft(frames, axis=1)
    strength = np.abs(spectrum)
    gate = strength > np.median(strength)
    back = np.fft.irfft(np.where(gate, spectrum, 0), n=size, axis=1) * window
    out, norm = np.zeros(len(padded)), np.zeros(len(padded))
    for k in range(count):
        out[k * hop : k * hop + size] += back[k]
        norm[k * hop : k * hop + size] += window**2
    norm[norm < 1e-10] = 1
    return (out / norm)[size // 2 : size // 2 + len(x)], gate.mean()


@whole(R.random((9, 9)), 0.6)
def percolation(u, p):
    """Whether open cells lead from the top to the bottom, by sets that are joined."""
    n = len(u)
    free = u < p
    parent = list(range(n * n + 2))

    def find(a):
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    for i in range(n):
        for j in range(n):
            if not free[i, j]:
                continue
            k = i * n + j
            if i == 0:
                parent[find(k)] = find(n * n)
            if i == n - 1:
                parent[find(k)] = find(n * n + 1)
            if i and free[i - 1, j]:
                parent[find(k)] = find(k - n)
            if j and free[i, j - 1]:
                parent[find(k)] = find(k - 1)
    return find(n * n) == find(n * n + 1), len({find(k) for k in range(n * n)})


@whole(R.random((3, 3)), R.random((3, 4)), R.integers(0, 4, 20))
def most_likely_states(step, sign, seen):
    """Viterbi's path, and the log-likelihood of what was seen."""
    step, sign = (np.log(m / m.sum(axis=1, keepdims=True)) for m in (step, sign))
    best = sign[:, seen[0]]
    total = best
    came = np.zeros((len(seen), len(step)), dtype=int)
    for t in range(1, len(seen)):
        ways = best[:, None] + step
        came[t] = ways.argmax(axis=0)
        best = ways.max(axis=0) + sign[:, seen[t]]
        total = np.logaddexp.reduce(total[:, None] + step, axis=0) + sign[:, seen[t]]
    path = [int(best.argmax())]
    for t in range(len(seen) - 1, 0, -1):
        path.append(int(came[t, path[-1]]))
    return path[::-1], best, np.logaddexp.reduce(total)


class _Filter:
    """Recursive least squares."""

    def __init__(self, taps, forget):
        self.weights = np.zeros(taps)
        self.inverse = np.eye(taps) * 100
        self.forget = forget

    def step(self, u, wanted):
        gain = self.inverse @ u / (self.forget + u @ self.inverse @ u)
        error = wanted - self.weights @ u
        self.weights = self.weights + gain * error
        self.inverse = (self.inverse - np.outer(gain, u @ self.inverse)) / self.forget
        return error


@whole(_real(60), 4)
def adapted_filter(x, taps):
    wanted = np.convolve(x, 0.5 ** np.arange(taps))[: len(x)]
    adapting = _Filter(taps, 0.99)
    errors = np.zeros(len(x))
    for i in range(taps, len(x)):
        errors[i] = adapting.step(x[i - taps + 1 : i + 1][::-1], wanted[i])
    return errors, adapting.weights, adapting.inverse


@whole(R.integers(0, 256, (10, 13, 3)).astype(np.uint8), 3)
def seams_carved(image, count):
    """The paths of least change from top to bottom are taken out, one after the other."""
    out = image.astype(np.float64)
    removed = []
    for _ in range(count):
        grey = out.sum(axis=2)
        cost = np.abs(np.gradient(grey, axis=0)) + np.abs(np.gradient(grey, axis=1))
        h, w = cost.shape
        back = np.zeros((h, w), dtype=np.intp)
        for i in range(1, h):
            ways = np.stack(
                [np.r_[np.inf, cost[i - 1, :-1]], cost[i - 1], np.r_[cost[i - 1, 1:], np.inf]]
            )
            least = ways.argmin(axis=0)
            back[i] = np.arange(w) + least - 1
            cost[i] += ways[least, np.arange(w)]
        j = int(cost[-1].argmin())
        keep = np.ones((h, w), dtype=bool)
        for i in range(h - 1, -1, -1):
            keep[i, j] = False
            removed.append(j)
            j = int(back[i, j])
        out = out[keep].reshape(h, w - 1, 3)
    return out.astype(np.uint8), removed
