"""Programs of what people write around arrays: classes, dicts, generators, closures, text."""

from __future__ import annotations

import random
import re

from .maker import DATA, Maker, Program

WORLD = """
class Point(NamedTuple):
    x: float
    y: float = 0.5

    def moved(self, by):
        return self._replace(x=self.x + by)


@dataclass
class Cell:
    value: float
    near: list = field(default_factory=list)
    seen: bool = False

    def visit(self, by):
        self.seen = not self.seen
        self.near.append(by)
        return self.value + len(self.near)


class Filter:
    gain = 2.0

    def __init__(self, state, rate):
        self.state, self.rate, self.log = state, rate, []

    @property
    def energy(self):
        return (self.state ** 2).sum()

    @staticmethod
    def clipped(v):
        return np.clip(v, -3, 3)

    @classmethod
    def scaled(cls, v):
        return v * cls.gain

    def step(self, v):
        self.state[: len(v)] += self.rate * v
        self.count = self.size() + 1
        return self.out()

    def out(self):
        return self.scaled(self.clipped(self.state))

    def size(self):
        return len(self.state)

    def run(self, vs):
        for v in vs:
            self.log.append(float(v))
            if self.hot(v):
                self.reset(v)
        return len(self.log)

    def hot(self, v):
        return v > self.rate

    def reset(self, v):
        self.state = self.state - v

    def __call__(self, v):
        return v + self.rate

    def __len__(self):
        return len(self.state)

    def __getitem__(self, k):
        return self.state[k]

    def __setitem__(self, k, v):
        self.state[k] = v

    def __iter__(self):
        yield from self.state

    def __enter__(self):
        self.rate += 1
        return self

    def __exit__(self, *error):
        self.rate -= 1
        return False


class Decaying(Filter):
    gain = 0.5

    def out(self):
        return super().out() + 1

    def hot(self, v):
        return v > 0 and super().hot(v)


def pairs(v):
    for k in range(1, len(v)):
        yield v[k - 1], v[k]


def windows(v, n=2):
    for k in range(0, len(v) - n + 1):
        yield v[k : k + n]


def depth(n, acc=()):
    if n <= 0:
        return acc
    return depth(n - 1, (*acc, n))


def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


def kept(v, memory=[]):
    memory.append(v)
    return len(memory)


def summed(*values, start=0, **more):
    total = start
    for v in values:
        total += v
    for name in more:
        total += more[name]
    return total


def first(v, limit):
    for k, e in enumerate(v):
        if e > limit:
            return k
    return None


def odd(v, k):
    if k == 0:
        return None
    if k == 1:
        return v
    if k == 2:
        return v, k
    return float(k)


def maker(by):
    total = 0

    def add(v):
        nonlocal total
        total += v * by
        return total

    return add


def changed(v):
    v += 1
    v[:1] = 0


TOTAL = 0
CACHE = {}
SEEN = []
"""

# Statements. V, W: vectors of floats of one length; M: a matrix; I: a vector of places; U: uint8;
# C: complex; H: float16; B: a mask; N: an integer; T: a float; D, E: dicts from text to floats, and
# from integers to numbers; L, K: lists of floats and of integers; S: text; O: an object; P: a named
# tuple; Q: a dataclass. NEW is a name that is not used yet. Lines of BODY become statements.
STATEMENTS = """
V[1:] = V[:-1]
V[::-1] = W
V = V[::-1]
V, W = W, V
V = W = V * 2
V[:2] = W[:2] = N
V += W[::-1]
V[I] += 1
V[I] = W[:len(I)][:1] if len(W) else 0
np.add.at(V, I, 1.0)
np.add.at(V, I, W[I])
np.subtract.at(V, I[:2], T)
np.maximum.at(V, I, T)
V.sort()
V[::2].sort()
V.fill(T)
V.put(I, N)
V.partition(range(len(V))) if len(V) else None
V[B] = T
V[B] += W[B]
V[~B] *= -1
V[V < 0] = 0
V[np.isnan(V)] = 0
np.clip(V, -2, T, out=V)
np.cumsum(W, out=V)
np.take(W, I, out=V[:len(I)], mode='clip')
np.dot(M, V, out=W)
np.dot(V, T, out=W)
np.sum(M, axis=0, out=V)
np.max(M, axis=1, out=V)
np.add(T, N, out=V)
np.multiply(V, T, V)
np.sqrt(np.abs(V), out=V)
V.clip(0, 1, out=W)
np.cumsum(M, axis=0, out=M)
np.matmul(M, V, out=W)
M[..., 0] = T
V[..., 0] += N
NEW = V[:]; NEW += 1; out.append(NEW is V)
NEW = np.diag(M); M[0] = N; T = NEW.sum()
np.add(V, W, out=V, where=B)
np.multiply(V, 2, out=V[::-1])
np.copyto(V, W, where=B)
np.copyto(V, T)
np.putmask(V, B, W)
np.place(V, B, [1, 2])
np.fill_diagonal(M, N)
M[np.diag_indices(len(M))] += T
M[I, I] = V[:1].sum()
M[:, 0] = V
M[0] = M[-1]
M[:] = M.T
M += M.T.copy()
M[1:-1, 1:-1] = (M[:-2, 1:-1] + M[2:, 1:-1]) / 2
M[B] = 0
M[:, B] = T
M[B, 0] += 1
M[np.ix_(I, I)] = N
V = M.sum(axis=N % 2)
V = M[N % len(M)] if len(M) else V
V = M.diagonal().copy()
V = M.max(axis=1, initial=0)
T = float(V.sum())
T = V.max(initial=0)
T = float(M.trace())
T = np.float64(N) / 2
T = V[0] if len(V) else T
T = V.min(initial=5) if V.any() else -1.0
T = round(T, 1)
T = abs(T) % 5
T = T if T == T else 0.0
T = max(V, default=0.0)
T = min(T, *V)
T = sum(V)
T = sum(L)
T = sum(L, start=0.5)
T = sum(e for e in V if e > 0)
T = np.sum(V > 0)
T = D.get('a', 0.0)
T = D.pop('b', N)
T = math.fsum(L)
T = float(f"{T:.2f}")
T = V.item(0) if V.size else 0.0
T = V.tolist()[0] if len(V) else 0.0
T = np.round(T, 1)
T = -T if N % 2 else +T
T **= 2
T //= 2
T = (T + 0.5) // 0.25 % 3
N = len(L)
N = int(V.sum()) % 7
N = int(np.argmax(V)) if len(V) else 0
N = V.argmin() if len(V) else 0
N = len(set(K))
N = sum(1 for e in V if e > T)
N = K.index(K[-1]) if K else 0
N = K[0] if K else N
N = gcd(N, 6)
N = N * 10 ** 20 % 7
N = (N << 3) % 11
N = ~N & 7
N = -N // 2
N = int(str(abs(N))[0])
N = N if isinstance(N, int) else int(N)
N = first(V, T) or 0
N = kept(N)
N = bool(N) + 2
N = divmod(N, 4)[1]
N = hash((N, 3)) % 5
N = ord(S[0]) % 5 if S else 2
N = np.int64(N) + 1
N = int(np.count_nonzero(B))
N = np.searchsorted(np.sort(V), T)
N = (lambda k: k + 1)(N)
N = reduce(lambda a, b: a + b, K, 0)
N = next((k for k in range(5) if k > N), 0)
N = sorted(K, key=lambda k: -k)[0] if K else 0
N = max(K, key=lambda k: k % 3, default=1)
N = min(range(4), key=lambda k: abs(k - N))
D['a'] = T
D['b'] = D.get('b', 0) + T
D[S] = N
D.update(c=T, d=N)
D.setdefault('e', T)
D = {k: v + 1 for k, v in D.items()}
D = dict(zip('abc', L))
D = {**D, 'z': T}
del D[next(iter(D))]
E[N] = T
E[N] = E.get(N, 0) + 1
E[N] += 1
E = {k: k * k for k in range(N)}
E = {k: [k] for k in K}
E = dict(enumerate(L))
E.clear()
E = dict(sorted(E.items()))
E = Counter(K)
E = defaultdict(int, E)
L = list(D.values())
L = [float(e) for e in V]
L = V.tolist()
L = list(V)
L = [e for e in V if e > T]
L = [v * k for k, v in enumerate(V, 1)]
L = [a - b for a, b in zip(V, W)]
L = [a - b for a, b in zip(V[1:], V)]
L = [max(a, b) for a, b in pairs(V)]
L = [w.sum() for w in windows(V)]
L = sorted(L)
L = sorted(L, reverse=True)
L = L[::-1]
L = L * 2
L = L[: N + 1]
L = L[10:-20:-1]
L = [*L, T]
L = [T] * N
L = list(map(abs, L))
L = list(filter(None, L))
L = list(map(lambda e: e * 2, V))
L = [x for row in M for x in row if x > 0][:5]
L = [[a, b] for a in range(2) for b in range(a)]
L = [y for e in V if (y := e * 2) > 1]
L.append(T)
L.append(V[N % len(V)] if len(V) else 0)
L.insert(0, T)
L.extend(V)
L += [N, T]
L += list(V[:2])
L[0:1] = [T, T]
L[-1:] = []
L.sort()
L.sort(key=lambda e: -e)
L.reverse()
L.pop() if L else None
L.remove(L[0]) if L else None
del L[:1]
K = [int(k) for k in I]
K = list(range(N))
K = list(range(N, -1, -2))
K = [k for k in range(5) if k != N]
K = [N, *K[:3]]
K = list({*K})
K = [k % 3 for k in K]
K.append(N)
K = I.tolist()
K = list(E)
K = [len(s) for s in S.split(',')]
S = f"{T:.3f}"
S = f"{N},{T}"
S = f"{N:>4}|{T:8.2f}|{S[:3]!r}"
S = S + str(N)
S = ','.join(str(k) for k in K)
S = ' '.join(f'{e:.2f}' for e in V)
S = repr(T)
S = str(V[:3])
S = repr(V[:2])
S = str(M.shape)
S = 'abc'[N % 3]
S = S.upper()[:4]
S = '%d %.2f' % (N, T)
S = '{} {:.1f}'.format(N, float(T))
S = type(T).__name__
S = str(V.dtype)
S = 'x' * (N % 4)
S = f'{V.mean():.3f}' if len(V) else ''
V = np.array(L[:len(V)] + [0.0] * (len(V) - len(L)))
V = np.array([float(k) for k in range(len(V))])
V = np.asarray(V)
V = V.copy()
V = V + N
V = V * T
V = V - V[::-1]
V = np.where(B, V, W)
V = np.where(V > T, V, N)
V = np.maximum(V, W[::-1])
V = np.roll(V, N)
V = np.concatenate([V[1:], V[:1]])
V = np.append(V[1:], T) if len(V) else V
V = np.sort(V)
V = V[np.argsort(V, kind='stable')]
V = np.minimum.accumulate(V)
V = np.cumsum(V)
V = np.diff(V, prepend=0)
V = np.zeros_like(V)
V = np.full(len(V), T)
V = np.arange(len(V)) * 0.5
V = np.interp(V, [0, 1, 2], [0, 2, 1])
V = np.select([V < 0, V > T], [0, 1], default=V)
V = np.clip(V, a_min=None, a_max=T)
V = np.nan_to_num(V, nan=1.0)
V = np.abs(V).round(1)
V = np.sign(V) * T
V = np.floor(V / 2)
V = V % 3
V = V // 2
V = V.astype(int).astype(float)
V = V.astype(np.float32).astype(float)
V = V.clip(min=T)
V = V.reshape(-1)
V = V.reshape(1, -1)[0]
V = V[None].repeat(2, axis=0)[1]
V = np.atleast_1d(V)
V = np.stack([V, W]).max(axis=0)
V = np.vstack((V, W))[N % 2]
V = np.convolve(V, [0.5, 1], mode='same')[:len(V)] if len(V) > 1 else V
V = np.fromiter((e + 1 for e in V), float, len(V))
V = np.array([O(e) for e in V]).reshape(len(V))
V = np.vectorize(lambda e: e + 1, otypes=[float])(V)
V = np.apply_along_axis(lambda r: r.max(initial=0), 1, M)
V = functools.reduce(np.add, [V, W, V])
V = M @ V
V = np.outer(V, W).sum(axis=0)
V = np.einsum('ij->i', M)
V = np.empty(len(W)); V[...] = W
V = W[np.arange(len(W))[::-1]]
V = W[I][:0].sum() + W
V = W.T
V = W.view()
V = W.ravel()
V = np.real(C).copy()
V = C.imag * 1.0
V = np.abs(H).astype(float)
V[:1] = T
V[-1:] -= 1
V[N % len(V)] = T
V[N % len(V)] += N
V[N] = 1
V[...] = T
V[()] = V * 2
V *= N
V /= 2
V /= N
V -= V.max(initial=0)
V **= 2
V **= N % 3
V //= 2
V %= 3
V[[0, 0]] += 1
V[[0, -1]] = V[[-1, 0]]
V[V.argmax()] = T
V[slice(0, N)] = N
V[1:N] = V[1:N][::-1]
V[5:1:-1] = N
V[-100:100:2] += 1
V[N:][:2] = 9
V.flat[0] = T
V.itemset if False else None
V.resize(V.shape, refcheck=False)
V.shape = (len(V),)
V.real[:1] = 2
changed(V)
changed(V[1:])
U += 1
U -= 200
U[:1] = 250
U *= 3
U[0] = 300
U[0] = V[0]
U[:] = V
U = U + U
U = ~U
U = U << 1
U = (U.astype(int) - 5).clip(0, 255).astype(np.uint8)
U = np.bitwise_xor(U, 255)
U[I] = N
I[0] = T
I[0] = np.nan
I[:1] = 1e30
I = np.clip(I + 1, 0, len(V) - 1)
I = I[::-1]
I = np.arange(len(V))[:3]
I = np.flatnonzero(B)[:3]
I = np.where(B)[0]
I = np.nonzero(V > 0)[0]
I = np.argsort(V, kind='stable')[:2]
I = np.unique(I)
C *= 1j
C += V
C = np.conj(C)
C[0] = T
C.imag[:1] = T
C.real = V
C = C / 2 + 1j * N
H += 1
H *= 3
H = H / 7
H[:1] = T
H = np.float16(T) * H
B = V > T
B = B ^ (V > 0)
B = ~B
B &= V > W
B[:1] = N
B = np.logical_or(B, V < 0)
B = np.isin(V, [0.0, 1.0])
B = (V > 0) & (W > 0) | B
T = np.uint8(200) + np.uint8(100)
T = np.uint64(2**63) + np.uint64(N)
T = np.int8(100) + N
T = np.float32(0.1) * N
T = np.float32(T) + np.float64(0.1)
T = complex(T, N).imag
T = np.array(T)[()]
T = np.array(2.5) + N
T = float(np.array([T]).sum())
O.rate = T
O.rate += 1
O.state[:1] += T
O.state = O.state + 1
O.state *= 2
O.log.append(N)
O.extra = V
O[0] = T
O[0] += 1
T = O[0]
T = O(T)
T = O.energy
T = O.size() + O.rate
T = getattr(O, 'rate')
setattr(O, 'rate', N)
V[:len(O)] = O.state[:len(V)]
V = O.step(V[:len(O)])[:1].sum() + V
N = O.run(V)
N = len(O)
T = sum(O)
V = O.clipped(V)
V = Filter.scaled(V)
O = type(O)(O.state.copy(), T)
T = O.__class__.gain
P = P.moved(N)
P = Point(T, N)
P = P._replace(y=T)
P = Point(*L[:2]) if len(L) > 1 else P
T = P.x + P[1]
(NEW, T) = P
T = Q.visit(N)
Q.value = T
Q.value += N
Q.near = Q.near[:2]
Q = Cell(T, [N])
Q = replace(Q, seen=True)
N = len(Q.near)
T = summed(*V)
T = summed(N, T, start=1)
T = summed(*K, **{'w': N})
T = summed(start=T, **D)
N = depth(N % 5, acc=(1,))[-1]
NEW = odd(V, N % 4)
NEW = maker(N); T = NEW(T) + NEW(2)
NEW = [maker(k) for k in range(3)]; T = sum(f(T) for f in NEW)
NEW = [lambda v: v + k for k in range(3)]; T = NEW[0](T)
NEW = {k: v for v, k in enumerate(S)}; N = len(NEW)
NEW, *OTHERNEW = V if len(V) else [0.0]; T = len(OTHERNEW) + NEW
*NEW, OTHERNEW = K if K else [0]; N = OTHERNEW
(NEW, OTHERNEW), T = (N, T), N
NEW = V; NEW += 1
NEW = V; V = V + 1; NEW[:1] = 7
NEW = V[1:]; NEW += 1; NEW = NEW * 2
NEW = V[::2]; NEW[:] = 0; V[0:1] = 5; T = NEW.sum()
NEW = M[0]; NEW += 1; M[0, 0] = NEW.sum()
NEW = M.T; NEW[0] = N
NEW = M.ravel(); NEW[0] = T
NEW = M.flatten(); NEW[0] = T
NEW = iter(V); T = next(NEW, 0.0) + next(NEW, 1.0)
NEW = pairs(V); T = sum(a * b for a, b in NEW)
NEW = (e for e in V); V = V + 1; L = list(NEW)[:3]
NEW = np.zeros(len(V)); NEW[...] = V; NEW[:1] += 1; V = NEW
NEW = [V, W]; NEW[0] += 1; NEW[1][:1] = T; V = NEW[1]
NEW = {'v': V}; NEW['v'] += 1; NEW['w'] = NEW['v'][:2]; NEW['w'][:] = T
NEW = (V, W); NEW[0][:1] = T; V = NEW[1]
NEW = np.zeros(2, dtype=[('a', int), ('b', float)]); NEW['b'] += T; T = NEW['b'].sum()
NEW = np.random.default_rng(N); T = NEW.integers(0, 9) + round(NEW.random(), 3)
NEW = np.random.RandomState(3); V = V + NEW.randint(0, 4, len(V))
NEW = set(K) | {N}; N = len(NEW)
NEW = frozenset(K); N = int(N in NEW)
NEW = deque(K, maxlen=3); NEW.append(N); NEW.appendleft(2); K = list(NEW)
NEW = [0] * 4; NEW[N % 4] += 1; K = NEW
NEW = [[0.0] * 3 for _ in range(2)]; NEW[1][N % 3] = T; L = NEW[1]
NEW = np.array([[1.0, 2], [3, 4]]); NEW[N % 2, :] = T; T = NEW.sum()
NEW = bytearray(b'ab'); NEW[0] = N % 200; S = NEW.hex()
NEW = str(N).zfill(4); K = [int(c) for c in NEW if c.isdigit()]
NEW = '1 2 3;4 5 6'; V = V + np.array([[float(a) for a in r.split()] for r in NEW.split(';')]).sum()
assert len(V) == len(W) or N > 0
assert N < 100, f'large {N}'
CACHE[N] = T
SEEN.append(N)
SEEN = [N]
TOTAL += N
TOTAL = T
del V; V = W * 1.0
print(N, T)
print(f'{T:.2f}', V[:2])
print(S, end=' ')
print(*K)
print(V)
out.append(T)
out.append(V)
out.append(V.copy())
out.append(V[:2])
out.append((N, T))
out.append(B.any())
out.append(V.shape)
out.append({'n': N, 'v': V[:1]})
out += [S]
out.extend(D)
out.append(isinstance(T, float))
out.append(isinstance(T, np.floating))
out.append(type(N).__name__)
out.append(T is None)
out.append(V is W)
out.append(np.shares_memory(V, W))
out.append(V.base is None)
out.append(V.flags.c_contiguous)
out.append(N in K)
out.append(T in V)
out.append(S in D)
out.append(K == sorted(K))
out.append((N, T) < (2, 1.0))
out.append(not V.size or bool(V[0]))
out.append(np.array_equal(V, W))
out.append(np.allclose(V, W))
out.append((V == W).all())
out.append(any(e > T for e in V))
out.append(all(e > T for e in V))
out.append([e > T for e in V])
out.append(0 < T < 5)
out.append(V.sum() / len(V))
out.append(1 / T)
out.append(V[N])
out.append(V[10])
out.append(M[N, 0])
out.append(L[N])
out.append(D['q'])
out.append(V if N % 2 else W)
out.append(T and V)
out.append(L or K)
out.append(V[:, None].shape)
out.append(M[..., 0])
out.append(np.argwhere(B).tolist())
out.append(np.unique(K, return_counts=True))
out.append(np.bincount(I, minlength=3))
out.append(np.histogram(V, bins=3, range=(-4, 4))[0])
out.append(np.meshgrid(V, K[:2])[0])
out.append(np.searchsorted([0, 1, 2], V))
out.append(list(np.ndindex(2, 2)))
out.append([k for k, _ in np.ndenumerate(M)][:2])
out.append(np.split(V, [1])[0])
out.append([a.sum() for a in np.array_split(V, 2)])
out.append(np.cross([1, 2, 3], [N, 1, 0]))
out.append(np.trapezoid(V, dx=0.5))
out.append(np.gradient(V) if len(V) > 1 else 0)
out.append(np.median(V) if len(V) else 0)
out.append(np.percentile(V, 50) if len(V) else 0)
out.append(V.mean() if len(V) else 0)
out.append(np.tril(M))
out.append(np.triu(M, 1).sum())
out.append(np.kron([1, N], [1, 2]))
out.append(np.prod(V[:3]))
out.append(V.dot(W))
out.append(np.polyval([1, N, 2], V))
out.append(np.polyval([1, 2], T))
out.append(np.eye(3)[N % 3])
out.append(np.sum([V, W], axis=0))
out.append(np.max([T, N]))
out.append(np.mean([T, N, 1]))
out.append(np.hypot(T, 2 * T))
out.append(np.sqrt(abs(T)))
out.append(V.astype(str)[:1])
out.append(np.array(['a', 'b'])[N % 2])
out.append(np.isnan(V).any())
out.append(np.isfinite(T))
out.append(np.ptp(V) if len(V) else 0)
out.append(np.digitize(V, [0, 1]))
out.append(np.lexsort((V, W)))
out.append(np.flip(M, 0))
out.append(np.rot90(M))
out.append(np.tile(V[:2], 2))
out.append(np.expand_dims(V, 0).shape)
out.append(np.squeeze(M[:1]))
out.append(np.delete(V, slice(0, 1)))
out.append(np.insert(V, 0, T))
out.append(np.count_nonzero(M, axis=0))
out.append(np.nanmax(V) if len(V) else 0)
out.append(np.nansum(V))
out.append(np.linalg.norm(V))
out.append(np.trace(M))
out.append(np.cov(V, W) if len(V) > 1 else 0)
out.append(O.rate)
out.append(vars(Q))
out.append(P)
out.append(tuple(K))
out.append(str(O.log))
""".strip().splitlines()  # fmt: skip
FORMS = """
for k in range(N): BODY
for k in range(len(V)): BODY
for k in range(1, len(V)): V[k] = V[k - 1] + W[k]
for k in range(len(V) - 1, -1, -1): BODY
for k in range(0, len(V), 2): V[k] = T
for e in V: BODY
for e in V: T = T + e
for e in V.copy(): BODY
for k, e in enumerate(V): BODY
for k, e in enumerate(L, start=1): BODY
for a, b in zip(V, K): BODY
for a, b, c in zip(V, W, range(3)): T = a + b * c
for k, (a, b) in enumerate(zip(V, W)): V[k] = min(a, b)
for name, v in D.items(): BODY
for name in D: T = T + D[name]
for name in sorted(D): BODY
for v in D.values(): BODY
for k in E: BODY
for k, v in list(E.items()): E[k] = N
for a, b in pairs(V): BODY
for w in windows(V, 2): w += 1
for w in windows(V): BODY
for row in M: row += N
for row in M: BODY
for k, row in enumerate(M): V[k] = row.max()
for row, e in zip(M, V): row *= e
for col in M.T: col[:] = T
for r in range(len(M)): for c in range(r): M[r, c] = M[c, r] + N
for r in range(M.shape[0]): for c in range(M.shape[1]): M[r, c] = T if M[r, c] > T else M[r, c] / 2
for r, c in itertools.product(range(2), range(2)): BODY
for r, c in np.ndindex(M.shape): M[r, c] += r
for (r, c), e in np.ndenumerate(M): BODY
for e in M.flat: T = e
for k in I: V[k] += 1
for k in I: BODY
for ch in S: BODY
for word in S.split(','): BODY
for k in K: BODY
for k in list(K): K.append(k)
for e in reversed(L): BODY
for e in sorted(V): BODY
for e in sorted(V, key=lambda v: -v): T = e
for e in set(K): BODY
for e in (N, T): BODY
for name, f in (('a', np.abs), ('s', np.sign)): V = f(V)
for f in (np.sin, math.floor): T = float(f(T))
for e in O: BODY
for k in itertools.count(): BREAKING
for e in itertools.chain(K, L): BODY
for a, b in itertools.combinations(range(3), 2): BODY
for b in V > 0: BODY
for e in U: N = N + int(e)
for e in U: U[0] += e
for e in C: T = abs(e)
for e in H: T = e * 2
while N > 0: COUNTING
while V.max(initial=0) > 1: HALVING
while (V > 1).any(): HALVING
while T > 1: T = T / 2
while L: SHRINKING
while True: BREAKING
while len(K) > 2: K.pop(0)
while (NEW := len(L)) > 3: L.pop()
if N > 2: BODY
if T > 0: BODY
if V.any(): BODY
if (V > T).all(): BODY
if L: BODY
if S: BODY
if len(V) > 2 and V[0] > V[1]: BODY
if (NEW := V.sum()) > 1: BODY
if isinstance(T, float): BODY
if N in E: BODY
if 'a' in D: BODY
if N == 1: return V
if N == 4: return None
if T > 100: return T, N
if T != T: raise ValueError(f'{T}')
try: BODY
try: V[20] = 1
try: T = 1 / N
try: T = D['nothing']
try: V[:] = np.zeros(len(V) + 1)
try: raise ValueError(S)
with np.errstate(all='ignore'): BODY
with np.errstate(divide='ignore', invalid='ignore'): V = np.log(V); V[~np.isfinite(V)] = 0
with O: BODY
with O as o: o.state += 1
with contextlib.suppress(IndexError): BODY
def local(v): BODYNEW
def local(v=V, *rest): BODYNEW
""".strip().splitlines()
INEXACT = (
    "log", "sin", "hypot", "@", "dot", "norm", "einsum", "cov", "mean", "convolve", "interp",
    "gradient", "trapezoid", "polyval", "** 2).sum", "sqrt", "median", "percentile",
)  # fmt: skip
NAMES = {
    "V": ("x", "x", "y"), "W": ("y", "x"), "M": ("m",), "I": ("idx",), "U": ("u",), "C": ("c0",),
    "H": ("h",), "B": ("mask",), "N": ("n", "n", "j"), "T": ("t", "t", "s"), "D": ("d",),
    "E": ("table",), "L": ("values",), "K": ("counts",), "S": ("text",), "O": ("o",), "P": ("p",),
    "Q": ("q",),
}  # fmt: skip
ARGUMENTS = "x, y, m, idx, u, c0, h, mask, n, t, o"
BOUND = {  # names that the function binds first, where it uses them
    "out": "[]", "j": "2", "s": "0.5", "text": "'a,b'", "d": "{'a': 1.5, 'b': 2.0}",
    "table": "{1: 2}", "values": "[0.5, 2.0]", "counts": "[3, 1, 2]", "p": "Point(1.5, 2)",
    "q": "Cell(2.5)",
}  # fmt: skip
HEAD = """
import contextlib
import functools
import itertools
import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
"""


class Idioms(Maker):
    """One function with names of fixed meaning, and statements about them."""

    def filled(self, text: str) -> str:
        """A template with names in the places of its letters."""
        chosen: dict[str, str] = {}

        def name(found: re.Match) -> str:
            letter = found[0]
            if letter in ("NEW", "OTHERNEW"):
                return chosen.setdefault(letter, self.fresh("w"))
            if letter not in chosen:
                others = [v for v in NAMES[letter] if letter != "W" or v != chosen.get("V")]
                chosen[letter] = self.of(others)
            return chosen[letter]

        parts = re.split(r"('[^'{]*')", text)  # letters in text are letters
        pattern = r"(?<!\.)\b(?:[VWMIUCHBNTDELKSOPQ]|NEW|OTHERNEW)\b"
        return "".join(p if k % 2 else re.sub(pattern, name, p) for k, p in enumerate(parts))

    def simple(self) -> None:
        for line in self.filled(self.of(STATEMENTS)).split("; "):
            self.put(line)

    def form(self) -> None:
        text = self.of(FORMS)
        head, _, body = text.rpartition(": ")
        heads = head.split(": ") if head.startswith("for r in range") else [head]
        whole = self.filled(": ".join(heads) + "\n" + body)
        head, body = whole.split("\n")
        heads = head.split(": ") if len(heads) > 1 else [head]
        for h in heads[:-1]:
            self.put(h + ":")
            self.depth += 1
        with self.block(heads[-1] + ":"):
            self.body_of(body, heads[-1])
        self.depth -= len(heads) - 1
        self.after(heads[0])

    def body_of(self, body: str, head: str) -> None:
        if body == "BODY":
            for name in re.findall("^for.*(values|counts)", head):  # which may grow meanwhile
                self.put(f"if len({name}) > 40: break")
            names = re.findall(r"^for (.*?) in", head)
            self.body(1 + self.pick(3))
            if names and self.once_in(2):
                used = self.of(re.findall(r"\w+", names[0]))
                self.put(
                    self.of(["out.append({})", "t = t + {}", "x[:1] = {}", "last = {}"]).format(
                        used
                    )
                )
            if head.startswith("for") and self.once_in(3):
                with self.block(self.of(["if t > 2:", "if n % 2:", "if len(out) > 9:"])):
                    self.put(self.of(["break", "continue"]))
        elif body == "BODYNEW":
            self.put(self.of(["return v + 1", "return v * t", "return np.sum(v) + len(x)",
                              "return [e + 1 for e in np.ravel(v)]"]))  # fmt: skip
        elif body in ("COUNTING", "SHRINKING", "HALVING", "BREAKING"):
            self.put("out.append(n)")  # so that it ends
            self.put("if len(out) > 30: break")
            self.put({
                "COUNTING": f"{head.split()[1]} -= 1", "SHRINKING": "values.pop()",
                "HALVING": self.of(["x /= 2", "x = x / 2", "y = y / 2"]),
                "BREAKING": self.of(["if t > 1: break", "if out: continue", "n = n + 1"]),
            }[body])  # fmt: skip
            self.body(1)
        else:
            for line in body.split("; "):
                self.put(line)

    def after(self, head: str) -> None:
        """What follows a form."""
        if head.startswith("try"):
            kind = self.pick(4)
            if kind < 3:
                caught = ["IndexError", "(KeyError, ZeroDivisionError)", "Exception as error",
                          "ValueError as error"]  # fmt: skip
                with self.block(f"except {self.of(caught)}:"):
                    self.body(1)
            if kind > 1:
                with self.block("finally:"):
                    self.body(1)
            elif self.once_in(3):
                with self.block("else:"):
                    self.body(1)
        elif head.startswith("if"):
            if self.once_in(2):
                with self.block(self.of(["else:", "elif n > 1:"])):
                    self.body(1)
        elif head.startswith("def"):
            calls = ["NEW = local(V)", "NEW = local(T)", "NEW = [local(e) for e in L]"]
            self.put(self.filled(self.of(calls)))
        elif head.startswith(("for", "while")) and self.once_in(6):
            with self.block("else:"):
                self.body(1)

    def body(self, count: int) -> None:
        for _ in range(count):
            if self.depth < 4 and self.once_in(4):
                self.form()
            else:
                self.simple()

    def function(self) -> None:
        with self.block(f"def program({ARGUMENTS}):"):
            at = len(self.lines)
            for _ in range(2 + self.pick(5)):
                if self.once_in(2):
                    self.form()
                else:
                    self.simple()
            if any(line.lstrip().startswith(("TOTAL", "SEEN =")) for line in self.lines):
                self.lines.insert(at, "    global TOTAL, SEEN")
            used = [v for v in BOUND if re.search(rf"\b{v}\b", "\n".join(self.lines[at:]))]
            self.lines[at:at] = [f"    {v} = {BOUND[v]}" for v in used]
            results = [ARGUMENTS.split(", ") + used] * 2 + [["x", "y", "m", *used], ["x", "t"]]
            self.put("return " + ", ".join(self.of(results)))

    def history(self) -> None:
        with self.block("def history():"):
            for call in range(4):
                if call in (0, 2) or self.once_in(3):
                    n = self.of((3, 5, 5, 7, 13)) if not self.once_in(12) else self.of((0, 1, 2))
                if call in (0, 3):
                    dtype = "f8" if self.pick(5) else self.of(["f4", "i8", "i4"])
                self.put(f"x, y = {self.laid_out((n,), dtype)}, {self.laid_out((n,), dtype)}")
                if self.once_in(12):
                    self.put("y = x" if self.pick(2) else "y = x[::-1]")
                self.put(f"m = {self.laid_out((n, n), dtype)}")
                places = [self.pick(max(n, 1)) for _ in range(min(n, 3))]
                self.put(f"idx = np.array({places}, int)")
                self.put(f"u, h = data(({n},), 'u1', {self.pick(9)}), data(({n},), 'f2')")
                self.put(f"c0, mask = data(({n},), 'c16'), data(({n},), 'f8', {self.pick(9)}) > 0")
                numbers = ["0.5", "1.5", "-0.75", "3.0"]
                if self.once_in(3):
                    numbers += ["2", "np.float64(1.25)", "np.float32(0.5)"]
                self.put(f"n, t = {self.pick(5)}, {self.of(numbers)}")
                kind = self.of(["Filter", "Filter", "Decaying"])
                self.put(f"o = {kind}(data(({max(n, 1)},), 'f8', 1), 0.25)")
                self.put(f"yield {ARGUMENTS}")

    def source(self) -> str:
        """The module."""
        self.depth = 0
        self.function()
        self.lines += ["", ""]
        self.history()
        return "\n".join([HEAD + DATA + WORLD, "", *self.lines, ""])


def program(rng: random.Random) -> Program:
    """A program of idioms."""
    source = Idioms(rng, True).source()
    within = source[source.index("def program") :]
    return Program(source, not any(word in within for word in INEXACT))
