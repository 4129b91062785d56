"""Neighbours by a k-d tree, a layout by samples, clusters by density."""

from __future__ import annotations

import heapq

import numpy as np

from ..whole_programs import whole


class KDTree:
    __slots__ = ("axis", "index", "left", "point", "right")

    def __init__(self, X, idx, depth=0):
        self.axis = depth % X.shape[1]
        idx = idx[np.argsort(X[idx, self.axis], kind="stable")]
        m = len(idx) // 2
        self.index, self.point = int(idx[m]), X[idx[m]]
        self.left = KDTree(X, idx[:m], depth + 1) if m else None
        self.right = KDTree(X, idx[m + 1 :], depth + 1) if m + 1 < len(idx) else None

    def query(self, q, k, heap=None):
        top = heap is None
        heap = [] if top else heap
        d = float(((q - self.point) ** 2).sum())
        if len(heap) < k:
            heapq.heappush(heap, (-d, self.index))
        elif d < -heap[0][0]:
            heapq.heapreplace(heap, (-d, self.index))
        gap = q[self.axis] - self.point[self.axis]
        near, far = (self.left, self.right) if gap < 0 else (self.right, self.left)
        if near is not None:
            near.query(q, k, heap)
        if far is not None and (len(heap) < k or gap**2 < -heap[0][0]):
            far.query(q, k, heap)
        if top:
            return sorted((-d, i) for d, i in heap)


def smooth_knn(dist, k, iters=40):
    n = len(dist)
    rho = np.zeros(n)
    sigma = np.zeros(n)
    target = np.log2(k)
    for i in range(n):
        pos = dist[i][dist[i] > 0]
        rho[i] = pos.min() if pos.size else 0.0
        lo, hi, mid = 0.0, np.inf, 1.0
        for _ in range(iters):
            s = 0.0
            for d in dist[i]:
                s += np.exp(-max(d - rho[i], 0.0) / mid)
            if abs(s - target) < 1e-5:
                break
            if s > target:
                hi = mid
                mid = (lo + hi) / 2
            else:
                lo = mid
                mid = mid * 2 if hi == np.inf else (lo + hi) / 2
        sigma[i] = mid
    return rho, sigma


def graph(X, k):
    n = len(X)
    tree = KDTree(X, np.arange(n))
    idx, dist = np.zeros((n, k), int), np.zeros((n, k))
    for i in range(n):
        for c, (d, j) in enumerate(tree.query(X[i], k)):
            idx[i, c], dist[i, c] = j, np.sqrt(d)
    rho, sigma = smooth_knn(dist, k)
    W = np.zeros((n, n))
    w = np.exp(-np.maximum(dist - rho[:, None], 0) / sigma[:, None])
    W[np.repeat(np.arange(n), k), idx.ravel()] = w.ravel()
    np.fill_diagonal(W, 0)
    return W + W.T - W * W.T


def clip(v, c=4.0):
    return c if v > c else (-c if v < -c else v)


def layout(W, rng, epochs, a=1.58, b=0.9, negatives=3):
    n = len(W)
    heads, tails = np.nonzero(W)
    weights = W[heads, tails]
    per = weights.max() / weights
    due = per.copy()
    Y = rng.uniform(-10, 10, (n, 2)).astype(np.float32)
    for ep in range(epochs):
        alpha = 1.0 - ep / epochs
        for e in range(len(heads)):
            if due[e] > ep + 1:
                continue
            i, j = heads[e], tails[e]
            d2 = 0.0
            for c in range(2):
                d2 += (Y[i, c] - Y[j, c]) ** 2
            g = -2.0 * a * b * d2 ** (b - 1.0) / (a * d2**b + 1.0) if d2 > 0.0 else 0.0
            for c in range(2):
                step = clip(g * (Y[i, c] - Y[j, c])) * alpha
                Y[i, c] += step
                Y[j, c] -= step
            due[e] += per[e]
            for _ in range(negatives):
                r = rng.integers(n)
                if r == i:
                    continue
                d2 = ((Y[i] - Y[r]) ** 2).sum()
                g = 2.0 * b / ((0.001 + d2) * (a * d2**b + 1)) if d2 > 0 else 0.0
                for c in range(2):
                    Y[i, c] += (clip(g * (Y[i, c] - Y[r, c])) if g > 0 else 4.0) * alpha
    return Y


def dbscan(X, eps, minpts):
    n = len(X)
    labels = np.full(n, -2)
    D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    c = -1
    for p in range(n):
        if labels[p] != -2:
            continue
        nb = list(np.flatnonzero(D[p] <= eps))
        if len(nb) < minpts:
            labels[p] = -1
            continue
        c += 1
        labels[p] = c
        while nb:
            q = nb.pop(0)
            if labels[q] == -1:
                labels[q] = c
            if labels[q] != -2:
                continue
            labels[q] = c
            more = np.flatnonzero(D[q] <= eps)
            if more.size >= minpts:
                nb.extend(more.tolist())
    return labels


def silhouette(D, labels):
    s = np.zeros(len(labels))
    groups = np.unique(labels)
    if len(groups) < 2:
        return s
    for i, li in enumerate(labels):
        same = labels == li
        same[i] = False
        if not same.any():
            continue
        a = D[i, same].mean()
        b = min(D[i, labels == g].mean() for g in groups if g != li)
        s[i] = (b - a) / max(a, b)
    return s


@whole(np.sin(np.arange(36.0)).reshape(12, 3) + (np.arange(12) % 3)[:, None] * 3, 4, 2, 1.5, 0)
def layout_and_clusters(X, k, epochs, eps, seed):
    W = graph(X, k)
    Y = layout(W, np.random.default_rng(seed), epochs)
    labels = dbscan(X, eps, 3)
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    s = silhouette(D, labels)
    print(
        f"{np.count_nonzero(W)} edges, {len(set(labels.tolist()))} labels, "
        f"silhouette {s.mean():.4f}, layout {Y.dtype} {np.isfinite(Y).all()}"
    )
    return W, labels, s, Y.shape, Y.dtype
