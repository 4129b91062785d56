"""Whole programs as people write them, with classes, containers, closures, generators and loops."""

import abc
import collections
import copy
import dataclasses
import enum
import functools
import heapq
import itertools

import numpy as np
import pytest

from ..support import check, data

PROGRAMS = {}


def case(*args, **options):
    """Enter a program, with the arguments that it is called with."""

    def enter(f):
        PROGRAMS[f.__name__] = f, args, options
        return f

    return enter


class Layer(abc.ABC):
    @abc.abstractmethod
    def forward(self, x): ...

    @abc.abstractmethod
    def backward(self, g, lr): ...


class Linear(Layer):
    def __init__(self, n, m, rng):
        self.W = rng.standard_normal((n, m)) * 0.1
        self.b = np.zeros(m)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, g, lr):
        gx = g @ self.W.T
        self.W -= lr * self.x.T @ g
        self.b -= lr * g.sum(axis=0)
        return gx


class Relu(Layer):
    def forward(self, x):
        self.mask = x > 0
        return np.where(self.mask, x, 0)

    def backward(self, g, lr):
        return g * self.mask


class Softmax(Layer):
    def forward(self, x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        self.p = e / e.sum(axis=1, keepdims=True)
        return self.p

    def backward(self, y, lr):
        return (self.p - y) / len(y)


class Net:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.layers = []
        for n, m in itertools.pairwise(sizes):
            self.layers += [Linear(n, m, rng), Relu()]
        self.layers[-1] = Softmax()
        self.history = []

    def fit(self, X, Y, epochs=3, lr=0.1, batch=8):
        for e in range(epochs):
            order = np.random.default_rng(e).permutation(len(X))
            loss = 0.0
            for i in range(0, len(X), batch):
                idx = order[i : i + batch]
                p = functools.reduce(lambda h, layer: layer.forward(h), self.layers, X[idx])
                loss += -np.log(p[np.arange(len(idx)), Y[idx]] + 1e-09).mean()
                g = np.eye(3)[Y[idx]]
                for layer in reversed(self.layers):
                    g = layer.backward(g, lr)
            self.history.append(float(loss))
        return self

    def predict(self, X):
        return functools.reduce(lambda h, layer: layer.forward(h), self.layers, X).argmax(axis=1)


@case(data(24, 5), np.arange(24) % 3)
def network(X, Y):
    n = Net([5, 7, 3]).fit(X, Y)
    return (n.predict(X), n.history)


@case(Net([5, 7, 3]), data(24, 5), np.arange(24) % 3)
def net_given(n, X, Y):
    n.fit(X, Y, epochs=2)
    return n.predict(X)


@dataclasses.dataclass
class Kalman:
    F: np.ndarray
    H: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    x: np.ndarray
    P: np.ndarray
    log: list = dataclasses.field(default_factory=list)

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ y
        self.P = (np.eye(len(self.x)) - K @ self.H) @ self.P
        self.log.append(self.x.copy())


@case(data(12, 1))
def kalman(zs):
    k = Kalman(
        np.array([[1.0, 1.0], [0, 1.0]]),
        np.array([[1.0, 0]]),
        np.eye(2) * 0.01,
        np.eye(1),
        np.zeros(2),
        np.eye(2),
    )
    for z in zs:
        k.predict()
        k.update(z)
    return (np.array(k.log), k.P)


class Life:
    def __init__(self, g):
        self.g = g.astype(np.uint8)

    def neighbours(self):
        return sum(
            np.roll(np.roll(self.g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
        )

    def step(self):
        n = self.neighbours()
        self.g = ((n == 3) | (self.g == 1) & (n == 2)).astype(np.uint8)

    def run(self, k):
        for _ in range(k):
            self.step()
            yield self.g.sum()


@case(data(10, 10, dtype=bool))
def life(g):
    colony = Life(g)
    return list(colony.run(5)), colony.g


class Dual:
    __array_priority__ = 100

    def __init__(s, v, d):
        s.v = v
        s.d = d

    def __add__(s, o):
        o = o if isinstance(o, Dual) else Dual(o, 0)
        return Dual(s.v + o.v, s.d + o.d)

    __radd__ = __add__

    def __mul__(s, o):
        o = o if isinstance(o, Dual) else Dual(o, 0)
        return Dual(s.v * o.v, s.v * o.d + s.d * o.v)

    __rmul__ = __mul__

    def __pow__(s, n):
        return Dual(s.v**n, n * s.v ** (n - 1) * s.d)

    def sin(s):
        return Dual(np.sin(s.v), np.cos(s.v) * s.d)


@case(data(6))
def dual_numbers(x):
    d = Dual(x, np.ones_like(x))
    y = (x * d + d**3 + 2.0).sin() * x
    return (y.v, y.d)


@case(data(5, 3))
def event_queue(x):
    q = []
    for i, r in enumerate(x):
        heapq.heappush(q, (float(r.sum()), i, r * 2))
    out = []
    while q:
        t, i, r = heapq.heappop(q)
        out.append(r + t)
    return np.stack(out)


def blur(im, k=3):
    p = np.pad(im, k // 2, mode="edge")
    out = np.zeros_like(im)
    for i in range(k):
        for j in range(k):
            out += p[i : i + im.shape[0], j : j + im.shape[1]]
    return out / k**2


def sobel(im):
    gx = np.zeros_like(im)
    gy = np.zeros_like(im)
    gx[:, 1:-1] = im[:, 2:] - im[:, :-2]
    gy[1:-1] = im[2:] - im[:-2]
    return np.hypot(gx, gy)


def thresh(im):
    t = np.percentile(im, 70)
    return (im > t).astype(float)


PIPE = collections.OrderedDict(blur=blur, sobel=sobel, thresh=thresh)


@case(np.abs(data(12, 14)))
def image_pipeline(im):
    res = {}
    for name, f in PIPE.items():
        im = f(im)
        res[name] = im
    return (res, {k: v.mean() for k, v in res.items()})


State = collections.namedtuple("State", "x v t")


def deriv(s):
    return State(s.v, -s.x, 1.0)


def axpy(s, d, h):
    return State(*(a + h * b for a, b in zip(s, d, strict=True)))


def rk4(s, h):
    k1 = deriv(s)
    k2 = deriv(axpy(s, k1, h / 2))
    k3 = deriv(axpy(s, k2, h / 2))
    k4 = deriv(axpy(s, k3, h))
    return State(
        *(
            a + h / 6 * (p + 2 * q + 2 * r + w)
            for a, p, q, r, w in zip(s, k1, k2, k3, k4, strict=True)
        )
    )


@case(State(data(4), data(4, seed=1), 0.0))
def oscillator(s):
    for _ in range(6):
        s = rk4(s, 0.05)
    return s


class Cheb:
    def __init__(self):
        self.cache = {}

    def T(self, n, x):
        if n not in self.cache:
            self.cache[n] = (
                np.ones_like(x)
                if n == 0
                else x
                if n == 1
                else 2 * x * self.T(n - 1, x) - self.T(n - 2, x)
            )
        return self.cache[n]


@case(data(5))
def chebyshev(x):
    c = Cheb()
    return (sum(c.T(n, x) / (n + 1) for n in range(7)), sorted(c.cache))


class Timer:
    def __enter__(self):
        self.a = np.zeros(2)
        return self

    def __exit__(self, *e):
        self.a += 1
        self.err = e[0]
        return e[0] is ZeroDivisionError


@case(data(5))
def with_block(x):
    with Timer() as t:
        t.a += x[:2]
        t.err = 1 / 0
    try:
        np.linalg.inv(np.zeros((2, 2)) + 0 * x[0])
    except np.linalg.LinAlgError as e:
        msg = str(e)
    return (t.a, t.err, msg)


class Kind(enum.Enum):
    A = 1
    B = 2


def apply(kind, x, *rest, **kw):
    match kind:
        case Kind.A:
            return np.add(x, *rest)
        case Kind.B:
            return np.clip(x, **kw)
        case {"f": f}:
            return f(x)
        case [a, b]:
            return a * x + b


@case(data(5))
def matching(x):
    return (
        [
            apply(Kind.A, x, 1),
            apply(Kind.B, x, a_min=0, a_max=1),
            apply({"f": np.tanh}, x),
            apply([2, 3], x),
        ],
        (n := x.sum()),
        n * 2,
    )


def make_counter():
    total = np.zeros(3)
    n = 0

    def add(x):
        nonlocal n, total
        n += 1
        total += x
        total = total * 1.0
        return (total, n)

    return add


@case(data(3))
def counters(x):
    c = make_counter()
    c(x)
    return (c(x * 2), c(x))


class MC:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.n = 0

    def paths(self, S0, k, n):
        z = self.rng.standard_normal((k, n))
        self.n += k * n
        return S0 * np.exp(np.cumsum(-0.5 * 0.04 * 0.1 + 0.2 * np.sqrt(0.1) * z, axis=0))

    def price(self, S0, K):
        p = self.paths(S0, 6, 50)
        return (np.maximum(p[-1] - K, 0).mean(), p.max(axis=0).mean())


@case(MC(3), 100.0, 95.0, new=False)
def monte_carlo(m, s, k):
    return (m.price(s, k), m.price(s, k))


class Graph:
    def __init__(self, A):
        self.A = A

    def bfs(self, s):
        d = np.full(len(self.A), -1)
        d[s] = 0
        q = collections.deque([s])
        while q:
            u = q.popleft()
            for v in np.flatnonzero(self.A[u]):
                if d[v] < 0:
                    d[v] = d[u] + 1
                    q.append(v)
        return d

    def pagerank(self, k=5, a=0.85):
        out = self.A.sum(axis=1)
        P = np.where(out[:, None] > 0, self.A / np.maximum(out, 1)[:, None], 1 / len(self.A))
        r = np.ones(len(self.A)) / len(self.A)
        for _ in range(k):
            r = a * r @ P + (1 - a) / len(self.A)
        return r


@case((data(7, 7) > 0.3).astype(float))
def graph_search(A):
    g = Graph(A)
    return (g.bfs(0), g.pagerank())


class Base:
    scale = np.array([1.0, 2.0, 3.0])

    def run(self, x):
        return self.post(self.core(self.pre(x)))

    def pre(self, x):
        return x * self.scale

    def post(self, x):
        return x

    def core(self, x):
        raise NotImplementedError


class Mixin:
    def post(self, x):
        return np.sort(super().post(x))[::-1]


class Impl(Mixin, Base):
    def core(self, x):
        return np.cumsum(x)


@case(data(3))
def template_methods(x):
    return (Impl().run(x), Impl.scale is Base.scale)


@case(Net([3, 4, 3]))
def copies_of_objects(n):
    m = copy.deepcopy(n)
    m.layers[0].W *= 2
    c = copy.copy(n)
    c.layers = c.layers[:1]
    return (m.layers[0].W, n.layers[0].W, len(c.layers))


class Desc:
    def __set_name__(s, o, n):
        s.n = "_" + n

    def __get__(s, i, o):
        return s if i is None else np.asarray(getattr(i, s.n)) * 2

    def __set__(s, i, v):
        setattr(i, s.n, np.array(v) + 1)


class Proxy:
    a = Desc()

    def __init__(s, x):
        s.a = x
        s.d = {"k": x}

    def __getattr__(s, n):
        if n == "k":
            return s.d["k"] * 3
        raise AttributeError(n)

    def __contains__(s, v):
        return bool(np.any(s.d["k"] == v))

    def __eq__(s, o):
        return bool(np.array_equal(s.d["k"], o.d["k"]))

    def __hash__(s):
        return 3

    def __bool__(s):
        return bool(s.d["k"].sum() > 0)


@case(data(3))
def descriptors(x):
    p = Proxy(x)
    q = Proxy(x * 1)
    return (p.a, p.k, 5.0 in p, p == q, {p: 1}[q], bool(p), hasattr(p, "zz"))


def gen(x):
    for r in x:
        yield (r * 2)


@case(data(4, 3))
def generators(x):
    return (
        list(map(np.sum, gen(x))),
        [a + b for a, b in zip(gen(x), x, strict=True)],
        list(filter(lambda r: r.sum() > 0, gen(x))),
        max(gen(x), key=np.sum),
        sum(gen(x)),
        dict(enumerate(gen(x))),
    )


@case(data(4))
def texts(x):
    return (
        f"{x.mean():.3f} {x[0]:+.2e} {x!r}",
        str(x.sum()),
        format(x.max(), ".2f"),
        np.array2string(x, precision=2),
        repr(x.max()),
    )


class CSR:
    def __init__(s, A):
        r, c = np.nonzero(A)
        s.data = A[r, c]
        s.ind = c
        s.ptr = np.searchsorted(r, np.arange(len(A) + 1))
        s.shape = A.shape

    def __matmul__(s, x):
        y = np.zeros(s.shape[0])
        for i in range(s.shape[0]):
            y[i] = np.dot(s.data[s.ptr[i] : s.ptr[i + 1]], x[s.ind[s.ptr[i] : s.ptr[i + 1]]])
        return y


# Integers become data at their second value, so the repeat compiles again.
@case(data(6, 6) * (data(6, 6, seed=1) > 0), data(6), plain="auto")
def csr_by_rows(A, x):
    M = CSR(A)
    return (M @ x, M @ (M @ x))


def cg(A, b, callback=None, tol=1e-10):
    x = np.zeros_like(b)
    r = b - A(x)
    p = r.copy()
    rs = r @ r
    for k in range(len(b) * 2):
        Ap = A(p)
        a = rs / (p @ Ap)
        x += a * p
        r -= a * Ap
        new = r @ r
        if callback:
            callback(k, x)
        if np.sqrt(new) < tol:
            break
        p = r + new / rs * p
        rs = new
    return (x, k)


class Op:
    def __init__(s, M):
        s.M = M @ M.T + np.eye(len(M)) * 3
        s.calls = 0

    def __call__(s, v):
        s.calls += 1
        return s.M @ v


@case(data(6, 6), data(6), rtol=1e-08)
def conjugate_gradients(M, b):
    hist = []
    op = Op(M)
    x, k = cg(op, b, lambda k, x: hist.append((k, np.linalg.norm(x))))
    return (x, k, hist, op.calls)


@case(data(4))
def records(x):
    r = np.zeros(4, dtype=[("x", float), ("n", int)])
    r["x"] = x
    r["n"] = np.arange(4)
    r["x"] += 1
    return (np.sort(r, order="x")["n"], r["x"].sum(), r)


class KM:
    def __init__(s, k):
        s.k = k

    def fit(s, X):
        s.c = X[: s.k].copy()
        s.it = 0
        while True:
            d = ((X[:, None] - s.c) ** 2).sum(-1)
            s.lab = d.argmin(1)
            new = np.array(
                [X[s.lab == j].mean(0) if np.any(s.lab == j) else s.c[j] for j in range(s.k)]
            )
            s.it += 1
            if np.allclose(new, s.c) or s.it > 20:
                break
            s.c = new
        return s


@case(data(20, 2))
def kmeans(X):
    m = KM(3).fit(X)
    return (m.c, m.lab, m.it)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    f, args, options = PROGRAMS[name]
    check(f, *args, **options)
