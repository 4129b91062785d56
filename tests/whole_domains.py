"""Whole programs of many trades, with what Python people put around arrays: named tuples, abstract
classes, enumerations, `match`, `nonlocal`, caches, context managers, tables of options."""

from __future__ import annotations

import abc
import enum
import functools
import heapq
import math
from collections import Counter, deque, namedtuple
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from .whole_programs import R, _real, whole

# Chemistry

_Reaction = namedtuple("_Reaction", "rate reactants change")


def _propensities(x, reactions):
    a = np.empty(len(reactions))
    for i, r in enumerate(reactions):
        h = 1.0
        for s, n in r.reactants:
            for k in range(n):
                h *= (x[s] - k) / (k + 1)
        a[i] = r.rate * h
    return a


@whole(np.array([50, 4, 0]), [0.02, 0.3, 0.05], 5.0, 3)
def reactions_one_by_one(start, rates, end, seed):
    rng = np.random.default_rng(seed)
    reactions = [
        _Reaction(rates[0], [(0, 1), (1, 1)], np.array([-1, 1, 0])),
        _Reaction(rates[1], [(1, 1)], np.array([0, -1, 1])),
        _Reaction(rates[2], [(2, 1)], np.array([1, 0, -1])),
    ]
    x, t = start.copy(), 0.0
    times, states = [t], [x.copy()]
    while t < end:
        a = _propensities(x, reactions)
        total = a.sum()
        if total <= 0:
            break
        t += rng.exponential(1 / total)
        x += reactions[int(np.searchsorted(np.cumsum(a), rng.random() * total))].change
        times.append(t)
        states.append(x.copy())
    at = np.searchsorted(np.array(times), np.linspace(0, end, 9), side="right") - 1
    return np.array(states)[at], len(times), start


# Models of hidden states


@whole(R.integers(0, 4, 40), R.dirichlet(np.ones(3), 3), R.dirichlet(np.ones(4), 3))
def trained_states(seen, a, b):
    """Baum and Welch's."""
    start, logs = np.full(3, 1 / 3), []
    for _ in range(4):
        alpha, beta = np.zeros((len(seen), 3)), np.ones((len(seen), 3))
        scale = np.zeros(len(seen))
        for t, o in enumerate(seen):
            alpha[t] = (start if t == 0 else alpha[t - 1] @ a) * b[:, o]
            scale[t] = alpha[t].sum()
            alpha[t] /= scale[t]
        for t in range(len(seen) - 2, -1, -1):
            beta[t] = a @ (b[:, seen[t + 1]] * beta[t + 1]) / scale[t + 1]
        gamma = alpha * beta
        gamma /= gamma.sum(axis=1, keepdims=True)
        pairs = np.zeros((3, 3))
        for t in range(len(seen) - 1):
            x = np.outer(alpha[t], b[:, seen[t + 1]] * beta[t + 1]) * a
            pairs += x / x.sum()
        start, a = gamma[0], pairs / pairs.sum(axis=1, keepdims=True)
        for o in range(4):
            b[:, o] = gamma[seen == o].sum(axis=0)
        b /= b.sum(axis=1, keepdims=True)
        logs.append(np.log(scale).sum())
    return start, a, logs, f"{logs[-1] > logs[0]}"


# Percolation


class _Sets:
    def __init__(self, n):
        self.parent, self.size, self.n = np.arange(n), np.ones(n, int), n

    def find(self, i):
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def join(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        self.n -= 1

    def __len__(self):
        return self.n

    def __contains__(self, pair):
        return self.find(pair[0]) == self.find(pair[1])


@whole(8, R.permutation(64))
def opened_until_it_percolates(n, order):
    sets, is_open = _Sets(n * n + 2), np.zeros((n, n), bool)
    top, bottom = n * n, n * n + 1
    for count, s in enumerate(order, 1):
        i, j = divmod(int(s), n)
        is_open[i, j] = True
        if i == 0:
            sets.join(s, top)
        if i == n - 1:
            sets.join(s, bottom)
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = i + di, j + dj
            if 0 <= a < n and 0 <= b < n and is_open[a, b]:
                sets.join(s, a * n + b)
        if (top, bottom) in sets:
            return count / n**2, is_open, len(sets), sets.size.max()
    raise AssertionError("all is open")


# Compression

_Leaf = namedtuple("_Leaf", "symbol")
_Fork = namedtuple("_Fork", "left right")


def _codes(counts):
    heap = [(n, k, _Leaf(s)) for k, (s, n) in enumerate(sorted(counts.items()))]
    heapq.heapify(heap)
    made = len(heap)
    while len(heap) > 1:
        (a, _, x), (b, _, y) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a + b, made, _Fork(x, y)))
        made += 1
    codes, todo = {}, deque([(heap[0][2], "")])
    while todo:
        match todo.popleft():
            case (_Leaf(symbol=s), code):
                codes[s] = code or "0"
            case (_Fork(left=x, right=y), code):
                todo += [(x, code + "0"), (y, code + "1")]
    return codes


@whole((R.standard_normal((12, 8)) * 9).astype(np.int8), 4)
def packed_by_frequency(image, step):
    q = np.rint(image / step).astype(int)
    symbols = q.ravel().tolist()
    codes = _codes(Counter(symbols))
    bits = "".join(codes[s] for s in symbols)
    packed = np.packbits(np.frombuffer(bits.encode(), np.uint8) - 48)
    back, word, of_code = [], "", {c: s for s, c in codes.items()}
    for bit in np.unpackbits(packed)[: len(bits)]:
        word += str(bit)
        if word in of_code:
            back.append(of_code[word])
            word = ""
    p = np.unique(q, return_counts=True)[1] / q.size
    return packed, np.array(back).reshape(q.shape) * step, -(p * np.log2(p)).sum(), len(codes)


@whole(R.integers(97, 103, 40).astype(np.uint8), 1 << 16)
def coded_by_ranges(data, top):
    cum = np.concatenate(([0], np.cumsum(np.bincount(data, minlength=128) + 1)))
    low, high, pending, bits = 0, top - 1, 0, []

    def emit(bit):
        nonlocal pending
        bits.extend([bit] + [1 - bit] * pending)
        pending = 0

    for s in data:
        span = high - low + 1
        low, high = (
            low + span * int(cum[s]) // int(cum[-1]),
            low + span * int(cum[s + 1]) // int(cum[-1]) - 1,
        )
        while True:
            if high < top // 2:
                emit(0)
            elif low >= top // 2:
                emit(1)
                low, high = low - top // 2, high - top // 2
            elif low >= top // 4 and high < 3 * (top // 4):
                pending += 1
                low, high = low - top // 4, high - top // 4
            else:
                break
            low, high = 2 * low, 2 * high + 1
    pending += 1
    emit(int(low >= top // 4))
    return np.packbits(np.array(bits, np.uint8)), len(bits)


# Rays


@dataclass(frozen=True)
class _Material:
    color: tuple = (0.9, 0.2, 0.2)
    mirror: float = 0.0


class _Shape(abc.ABC):
    known: dict = {}  # noqa: RUF012 - as users write them

    def __init_subclass__(cls):
        _Shape.known[cls.__name__] = cls

    def __init__(self, material):
        self.material = material

    @abc.abstractmethod
    def hit(self, o, d): ...

    @abc.abstractmethod
    def normal(self, p): ...

    def color(self, p):
        return np.broadcast_to(np.array(self.material.color), p.shape)


class _Ball(_Shape):
    def __init__(self, center, radius, material):
        super().__init__(material)
        self.center, self.radius = np.asarray(center, float), radius

    def hit(self, o, d):
        b = 2 * np.einsum("ij,ij->i", d, o - self.center)
        disc = b * b - 4 * (((o - self.center) ** 2).sum(-1) - self.radius**2)
        t = (-b - np.sqrt(np.maximum(disc, 0))) / 2
        return np.where((disc > 0) & (t > 1e-3), t, np.inf)

    def normal(self, p):
        return (p - self.center) / self.radius


class _Floor(_Shape):
    def __init__(self, y, material):
        super().__init__(material)
        self.y = y

    def hit(self, o, d):
        with np.errstate(divide="ignore"):
            t = (self.y - o[:, 1]) / d[:, 1]
        return np.where(t > 1e-3, t, np.inf)

    def normal(self, p):
        n = np.zeros_like(p)
        n[:, 1] = 1
        return n

    def color(self, p):
        even = (np.floor(p[:, 0]).astype(int) + np.floor(p[:, 2]).astype(int)) % 2 == 0
        return np.where(even[:, None], super().color(p), 0.2)


def _shaded(scene, o, d, depth=0):
    hits = np.stack([s.hit(o, d) for s in scene])
    nearest, out = hits.min(0), np.zeros((len(o), 3))
    for s, t in zip(scene, hits, strict=True):
        m = (nearest != np.inf) & (t == nearest)
        if not m.any():
            continue
        p = o[m] + d[m] * t[m, None]
        n = s.normal(p)
        light = np.array([5.0, 5.0, -10.0]) - p
        light /= np.sqrt((light**2).sum(-1, keepdims=True))
        color = 0.05 + s.color(p) * np.maximum((n * light).sum(-1), 0)[:, None]
        if s.material.mirror and depth < 2:
            r = d[m] - n * 2 * (d[m] * n).sum(-1)[:, None]
            color += s.material.mirror * _shaded(scene, p + n * 1e-3, r, depth + 1)
        out[m] += color
    return out


@whole(
    [
        ("_Ball", ((-0.5, 0.1, 1.0), 0.6), {"mirror": 0.5}),
        ("_Floor", (-0.5,), {"color": (1.0, 1.0, 1.0)}),
        ("_Ball", ((0.9, 0.1, 2.2), 0.6), {"color": (0.5, 0.2, 0.6), "mirror": 0.1}),
    ],
    np.array([0, 0.3, -2]),
)
def rays(spec, eye):
    scene, base = [], _Material()
    for kind, where, options in spec:
        scene.append(_Shape.known[kind](*where, replace(base, **options)))
    x, y = np.meshgrid(np.linspace(-1, 1, 12), np.linspace(0.6, -0.6, 8))
    d = np.stack([x, y, np.ones_like(x)], -1).reshape(-1, 3)
    d /= np.sqrt(np.einsum("ij,ij->i", d, d))[:, None]
    seen = _shaded(scene, np.zeros_like(d) + eye, d).reshape(8, 12, 3)
    return seen, (255 * np.clip(seen, 0, 1) ** 0.45).astype(np.uint8)


# Medicine


@whole(
    np.ceil(R.exponential(9, 36)),
    R.integers(0, 2, 36),
    np.column_stack([R.integers(0, 2, 36), R.standard_normal(36)]),
)
def hazards(t, died, x):
    """Kaplan and Meier's curve of each group, and Cox's regression."""
    curves = {}
    for g in np.unique(x[:, 0]):
        m = x[:, 0] == g
        order = np.lexsort((-died[m], t[m]))
        times, first = np.unique(t[m][order], return_index=True)
        deaths = np.add.reduceat(died[m][order], first)
        alive = np.cumprod(1 - deaths / (m.sum() - first))
        half = np.nonzero(alive <= 0.5)[0]
        curves[int(g)] = times, alive, times[half[0]] if half.size else None
    order = np.argsort(-t, kind="stable")
    t, died, x = t[order], died[order], x[order]
    beta = np.zeros(2)
    for _ in range(20):
        w = np.exp(x @ beta)
        s0, s1 = np.cumsum(w), np.cumsum(w[:, None] * x, axis=0)
        s2 = np.cumsum(w[:, None, None] * x[:, :, None] * x[:, None, :], axis=0)
        last = np.searchsorted(-t, -t, side="right") - 1
        mean = s1[last] / s0[last][:, None]
        spread = s2[last] / s0[last][:, None, None] - mean[:, :, None] * mean[:, None, :]
        info = (died[:, None, None] * spread).sum(0)
        step = np.linalg.solve(info, (died[:, None] * (x - mean)).sum(0))
        beta = beta + step
        if np.abs(step).max() < 1e-8:
            break
    return curves, beta, np.sqrt(np.diag(np.linalg.inv(info)))


# Formulas that evolve


class _Op(enum.Enum):
    ADD = enum.auto()
    MUL = enum.auto()
    SIN = enum.auto()
    X = enum.auto()
    CONST = enum.auto()

    @property
    def arity(self):
        return {_Op.ADD: 2, _Op.MUL: 2, _Op.SIN: 1}.get(self, 0)


class _Formula:
    def __init__(self, op, *parts, value=None):
        self.op, self.parts, self.value = op, list(parts), value

    def __call__(self, x):
        match self.op:
            case _Op.ADD:
                return self.parts[0](x) + self.parts[1](x)
            case _Op.MUL:
                return self.parts[0](x) * self.parts[1](x)
            case _Op.SIN:
                return np.sin(self.parts[0](x))
            case _Op.X:
                return x
        return np.full_like(x, self.value)

    def __len__(self):
        return 1 + sum(map(len, self.parts))

    def __iter__(self):
        yield self
        for p in self.parts:
            yield from p

    def copy(self):
        return _Formula(self.op, *(p.copy() for p in self.parts), value=self.value)


def _grown(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.5:
            return _Formula(_Op.X)
        return _Formula(_Op.CONST, value=float(rng.normal()))
    op = [_Op.ADD, _Op.MUL, _Op.SIN][rng.integers(3)]
    return _Formula(op, *(_grown(rng, depth - 1) for _ in range(op.arity)))


@contextmanager
def _noted(notes, name):
    notes.append(f"+{name}")
    try:
        yield lambda value: notes.append(f"{name}: {value:.4f}")
    finally:
        notes.append(f"-{name}")


@whole(np.linspace(-2, 2, 15), 8, 4)
def evolved_formulas(x, count, seed):
    rng, y, notes = np.random.default_rng(seed), np.sin(x) * x + 0.5, []
    members = [_grown(rng, 3) for _ in range(count)]
    with _noted(notes, "generation") as note:
        for _ in range(3):
            errors = np.array(
                [math.sqrt(np.mean((m(x) - y) ** 2)) + 0.01 * len(m) for m in members]
            )
            order = errors.argsort(kind="stable")
            note(errors[order[0]])
            best = [members[k] for k in order[: count // 2]]
            members = [m.copy() for m in best]
            for m in best:
                places = list(m.copy())
                place = places[rng.integers(len(places))]
                other = _grown(rng, 2)
                place.op, place.parts, place.value = other.op, other.parts, other.value
                members.append(places[0])
    return errors, notes, [m.op.name for m in members], members[0](x)


# Wavelets


@functools.lru_cache
def _taps(name):
    h = {"haar": (1, 1), "db2": (1 + 3**0.5, 3 + 3**0.5, 3 - 3**0.5, 1 - 3**0.5)}[name]
    low = np.array(h) / np.linalg.norm(h)
    return low, low[::-1] * (-1.0) ** np.arange(len(h))


@whole(_real(64).cumsum(), "db2", 3)
def denoised(x, name, levels):
    low, high = _taps(name)
    rest, details = x, []
    for _ in range(levels):
        at = (np.arange(0, len(rest), 2)[:, None] + np.arange(len(low))) % len(rest)
        details.append(rest[at] @ high)
        rest = rest[at] @ low
    limit = np.median(np.abs(details[0])) / 0.6745 * np.sqrt(2 * np.log(len(x)))
    for d in reversed(details):
        d = np.sign(d) * np.maximum(np.abs(d) - limit, 0)
        out = np.zeros(2 * len(d))
        at = (np.arange(0, len(out), 2)[:, None] + np.arange(len(low))) % len(out)
        np.add.at(out, at, rest[:, None] * low + d[:, None] * high)
        rest = out
    return rest, limit, [len(d) for d in details]
