"""Programs of NumPy's functions with all their options, on views of all kinds, and of objects."""

from __future__ import annotations

import random
import re

from .maker import DATA, Maker, Program, judged

WORLD = """
@dataclass
class State:
    u: np.ndarray
    v: np.ndarray
    dt: float = 0.5
    trace: list = field(default_factory=list)

    def __post_init__(self):
        self.n = len(self.u)

    def advance(self, by=1):
        self.u[1:] += self.v[:-1] * by
        self.trace.append(self.total(where=self.v > 0))
        return self

    def total(self, **more):
        return self.u.sum(**more)

    @property
    def upper(self):
        return self.u[self.n // 2 :]

    @upper.setter
    def upper(self, values):
        self.u[self.n // 2 :] = values

    def halves(self):
        yield self.u[: self.n // 2]
        yield self.upper

    def __add__(self, other):
        return replace(self, u=self.u + getattr(other, "u", other))

    def __radd__(self, other):
        return self + other

    def __eq__(self, other):
        return np.array_equal(self.u, other.u)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.u, dtype)


class Slotted:
    __slots__ = ("w", "k")

    def __init__(self, w):
        self.w, self.k = w, 0

    def __setitem__(self, k, value):
        self.w[k] = value
        self.k += 1

    def __getitem__(self, k):
        return self.w[k]

    def __iadd__(self, value):
        self.w += value
        return self

    def __len__(self):
        return len(self.w)


def chunks(z, size):
    for k in range(0, len(z), size):
        got = yield z[k : k + size]
        if got is not None:
            z[k] = got


def running(z):
    total = 0
    while len(z):
        total = total + z[0]
        yield total
        z = z[1:]


def nested(zs):
    for z in zs:
        yield from chunks(z, 2)


def steps(z):
    return [s for s, n in zip(z.strides, z.shape) if n > 1 and z.size]


def normal(z, *, axis=None, keepdims=True, **more):
    return z - z.mean(axis=axis, keepdims=keepdims, **more)
"""

# Names by rank, with extents of their own; `q` is of integers, `b` of booleans, like `m`.
VECTORS, MATRICES, CUBE = ("x", "y"), ("m", "w"), "a"
AXES = {1: ["None", "0", "-1", "(0,)", "()"],
        2: ["None", "0", "1", "-1", "(0, 1)", "(1, 0)", "()", "(-1,)"],
        3: ["None", "0", "1", "2", "-2", "(0, 2)", "(2, 0)", "()", "(0, 1, 2)"]}  # fmt: skip
# name, options, whether it takes more than one axis, whether it is a method too
REDUCTIONS = [
    ("sum", "kiwdo", True, True), ("prod", "kiwdo", True, True), ("max", "kIo", True, True),
    ("min", "kIo", True, True), ("any", "kwo", True, True), ("all", "kwo", True, True),
    ("mean", "kwdo", True, True), ("std", "kwDo", True, True), ("var", "kwDo", True, True),
    ("argmax", "ko", False, True), ("argmin", "ko", False, True), ("ptp", "ko", True, False),
    ("count_nonzero", "k", True, False), ("nansum", "kiwdo", True, False),
    ("amax", "kI", True, False), ("nanmax", "kI", True, False), ("nanmin", "kI", True, False),
    ("nanmean", "kwd", True, False), ("median", "k", True, False), ("average", "k", True, False),
    ("nanprod", "kd", True, False), ("cumsum", "do", False, True), ("cumprod", "do", False, True),
    ("add.reduce", "kiwdo", True, False), ("maximum.reduce", "kIo", True, False),
    ("logical_or.reduce", "kwo", True, False), ("multiply.reduce", "kiwo", True, False),
    ("add.accumulate", "do", False, False), ("minimum.accumulate", "o", False, False),
    ("nancumsum", "d", False, False), ("quantile", "q", True, False),
    ("percentile", "Q", True, False), ("nanstd", "kwD", True, False),
    ("linalg.norm", "k", False, False), ("cumulative_sum", "dx", False, False),
]  # fmt: skip
# Functions of one array, with places for options; A: an array, V: a vector, M: a matrix, X: an
# axis of it, N, K: integers, T: a float, B: a mask like it, I: places of a vector, D: a dtype.
UNARY = """
np.sort(A, axis=X, kind='stable')|np.sort(A, axis=None)|np.argsort(A, axis=X, kind='stable')
np.partition(V, N % len(V))[N % len(V)]|np.diff(A, n=2, axis=X)
np.diff(A, axis=X, prepend=0, append=T)|np.diff(V, prepend=V[:1])|np.roll(A, N, axis=X)
np.roll(A, (1, -1), axis=(0, -1))|np.roll(M, N)|np.flip(A, X)|np.flip(A)|np.moveaxis(A, 0, -1)
np.swapaxes(A, X, 0)|np.rollaxis(A, X)|np.rot90(M, N)|np.rot90(M, k=N, axes=(1, 0))
np.transpose(A)|np.permute_dims(M, (1, 0))|np.reshape(A, -1, order='F')|A.reshape(-1, order='F')
A.ravel(order='K')|A.flatten('F')|A.ravel()|np.repeat(A, N, axis=X)|np.repeat(V, 2)
np.repeat(A, 3)|np.tile(A, (2, 1))|np.tile(V, N)|np.take(A, [0, -1], axis=X)
np.take(A, [0, 9], axis=X, mode='clip')|np.take(A, [5, -7], mode='wrap')|A.take([[0, 0]], X)
np.take_along_axis(A, np.argsort(A, X, kind='stable'), X)|np.compress([True, False], A, X)
np.delete(A, 0, X)|np.insert(A, 0, T, axis=X)|np.insert(V, [0, 1], [T, N])|np.append(A, A, axis=X)
np.pad(A, 1)|np.pad(A, (1, 2), constant_values=T)|np.pad(V, 2, mode='edge')
np.pad(M, ((1, 0), (0, 2)))|np.pad(V, 1, 'reflect')|np.pad(V, (2, 1), 'wrap')
np.pad(A, 1, 'symmetric')|np.pad(V, 2, 'linear_ramp', end_values=T)|np.clip(A, None, T)
np.clip(A, T, None, dtype=float)|A.clip(min=N)|np.clip(A, 1, 0)|np.clip(A, a_min=-1, a_max=A)
np.where(A > T)|np.nonzero(A)|np.argwhere(A)|np.flatnonzero(A)|A.nonzero()|np.where(B, A, T)
np.unique(A)|np.unique(A, return_index=True, return_inverse=True)
np.unique(A, return_counts=True, axis=0)|np.histogram(A, bins=N + 1)
np.histogram(A, [0, 1, 3], weights=A * 0 == 0)|np.histogram(V, 3, (0, 2), density=True)
np.digitize(A, [0, 1, 2], right=True)|np.searchsorted([0, 1, 1, 2], A, side='right')
np.bincount(I, V[: len(I)], 4)|np.array_split(A, 2, X)|np.split(V, [1, N])|np.vsplit(M, [1])
np.hsplit(M, [N])|np.dsplit(CU, [1])|np.stack([A, A], axis=X)
np.concatenate((A, A), axis=X, dtype=D, casting='unsafe')|np.concatenate([M, CU], axis=None)
np.column_stack([V, V])|np.vstack([V, V])|np.dstack([V, V])|np.hstack([M, M])
np.block([[M, M], [M, M]])|np.broadcast_to(V, (2, len(V)))|np.broadcast_arrays(V, T)
np.expand_dims(A, (0, -1))|np.squeeze(A[None], 0)|np.atleast_3d(A)|np.atleast_2d(V, T)
np.asarray(A, order='F')|np.array(A, copy=True, ndmin=4, dtype=D)|np.astype(A, np.float32)
A.astype(D, order='F', copy=False)|A.astype(D, casting='unsafe')|A.astype(D, casting='safe')
np.full_like(A, T)|np.full_like(A, N, dtype=D, shape=(2, 2))|np.zeros_like(A, order='F', dtype=D)
np.ones_like(A, shape=3)|np.nan_to_num(A, nan=T, posinf=9)|np.nan_to_num(A, copy=False)
np.around(A, 1)|A.round(decimals=-1)|np.fix(A)|np.trace(M, offset=1)
np.trace(CU, axis1=0, axis2=2)|CU.diagonal(0, 1, 2)|np.diag(M, k=-1)|np.diag(V, 1)|np.diagflat(M)
np.tril(M, k=N)|np.triu(CU, -1)|np.vander(V, 3, increasing=True)|np.tri(3, N, -1)
np.einsum('ij->ji', M)|np.einsum('ij,ij->i', M, M)|np.einsum('ij,j', M, V2)
np.tensordot(M, M, axes=((0, 1), (0, 1)))|np.dot(M, V2)|np.inner(M, M)|np.outer(V, V)
np.vdot(M, M)|np.matmul(CU, M.T[:, :1])|M.T @ M|np.kron(V, [1, 2])
np.cross(M[:, :3], [1, 2, 3]) if M.shape[1] > 2 else 0|np.convolve(V, [1, 2], 'valid')
np.correlate(V, [0.5, 1], 'full')|np.interp(V, [0, 1, 2], [0, 4, 1], left=-1, right=T)
np.gradient(V, 0.5)|np.gradient(M, axis=0)|np.gradient(V, edge_order=2)
np.trapezoid(A, dx=0.5, axis=X)|np.cov(M, bias=True)|np.cov(M, rowvar=False, ddof=0)
np.corrcoef(M)|np.isin(A, [0, 1], invert=True)|np.in1d(V, [T]) if False else 0
np.isclose(A, T, atol=0.5)|np.array_equal(A, A, equal_nan=True)|np.union1d(V, [0, T])
np.setdiff1d(V, [0])|np.intersect1d(V, V[::-1], return_indices=True)|np.ediff1d(V, to_begin=N)
np.choose(I % 2, [V[: len(I)], V[: len(I)] + 1])|np.select([A > T, A < 0], [A, -A], T)
np.piecewise(V, [V > 0], [1, T])|np.apply_along_axis(np.sum, X, A)
np.apply_over_axes(np.sum, CU, (0, 2))|np.vectorize(lambda e: e * 2)(V)|np.packbits(B)
np.unravel_index(I, (9, 9))|np.ravel_multi_index((I, I), (20, 20))|np.ix_(I, I)
np.lib.stride_tricks.sliding_window_view(V, 2)
np.lib.stride_tricks.sliding_window_view(M, (1, 2)).sum(axis=-1)|A.sum().item()|A.item(-1)
A.tolist()|A.size, A.ndim, A.nbytes, A.itemsize, A.dtype.name|steps(A) == steps(A.copy())
np.lexsort((V, V[::-1]))|np.flatnonzero(B)|np.triu_indices(len(V), 1)|np.mask_indices(2, np.triu)
np.indices((2, N))|np.nanquantile(V, 0.5, method='lower')
np.quantile(V, [0, 0.25, 1], method='nearest')|np.percentile(A, 50, axis=X, keepdims=True)
np.average(M, axis=1, weights=np.arange(1.0, M.shape[1] + 1), returned=True)
np.linalg.norm(A, axis=X, ord=1)|np.iscomplexobj(A), np.isrealobj(A), np.isscalar(T)
np.result_type(A, T), np.can_cast(A.dtype, D)|np.promote_types(A.dtype, D)|np.frexp(A)|np.modf(A)
np.divmod(A, 2)|np.ldexp(V, 2)|np.spacing(V)|np.nextafter(V, T)|np.heaviside(A, 0.5)|np.signbit(A)
np.gcd(Q, 6)|np.lcm(Q, 4)|np.left_shift(Q, 1)|Q >> 1|Q & 3|np.invert(Q)|np.bitwise_count(Q)
np.floor_divide(Q, 0)|Q % 0|Q ** 2|2 ** np.abs(Q)|np.power(Q, 3)|np.float_power(Q, 2)|Q / 0
np.true_divide(Q, 4, dtype='f4')|np.remainder(Q, -3)|np.add(A, T, dtype=D, casting='unsafe')
np.multiply(A, A, dtype=D)|np.subtract(A, 1, order='F')|np.negative(A, dtype='f8')
np.add.outer(V, V)|np.multiply.outer(V, [1, 2])|np.add.reduceat(V, [0, 1]) if len(V) > 1 else 0
np.subtract.outer(M, V).shape|np.s_[1:].start, np.r_[V, 0, 1:3]|np.c_[V, V]|np.mgrid[0:2, 0:N]
np.ogrid[:2, :N]|np.meshgrid(V, [1, 2], indexing='ij')|normal(A, axis=X)
normal(M, axis=1, keepdims=True, where=B)|np.linspace(0, T, N, endpoint=False)
np.arange(N, 9, 2, dtype=D)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
# What changes arrays; OP: an operator in place.
CHANGES = """
A OP N|A OP T|A OP A|V OP V[::-1]|V[1:] OP V[:-1]
M OP M.T[: len(M), : len(M.T)] if M.shape[0] == M.shape[1] else N|V[I] OP T|V[I] = V[: len(I)]
V[I[::-1]] OP N|M[I % len(M), 0] = N|M[:, I % M.shape[1]] OP T|M[0, ::-1] = M[-1]
V[N % len(V)] OP T|V[-N] = N|V[N:] = T|V[::-2] OP N|V[[0, -1]] = N, T|M[N % len(M)] = V2
M[..., N % M.shape[1]] OP T|M[B2] = T|M[B2] OP N|M[~B2] = M[~B2] * 2|V[V > T] = N|V[V != V] = 0
M[M.max(axis=1) > T] = N|M[:, M[0] > 0] OP N|Q[0] = T|Q[:] = V[: 1]|Q[...] = M|Q[0] = N + 0.75
Q[:1] = np.nan|Q[0] = True|Q OP N|Q[Q > 1] = T|Q[-1] = M[0]|Q[:, 0] = 1e10|Q[0, 0] = np.nan
Q[0, 0] = 2 ** 70|Q[0] = -1|Q[0, 0] = 300|Q[0, 0] = '7'|Q[0, 0] = 1j|Q[:] = M * 100|Q[0, :1] = [T]
Q[:, ::2] = T * 3|Q.flat[0] = T|Q.flat[::2] = N|M.flat = T|M.T[0] = N|M.T.flat[1:3] = [T, N]
CU[0].T[...] = N|CU.reshape(-1)[:2] = T|CU[:, N % CU.shape[1]] = T|CU[..., None, 0] OP N
CU[1, :, ::-1] = CU[0]|CU.swapaxes(0, 2)[0] = N|CU[[0, 1], 0] OP T|CU[0, I % CU.shape[1]] = N
CU[I % 2, :, 0] = T|CU[np.ix_([0], [0], [0])] = N|CU[CU > T] = 0|np.moveaxis(CU, 0, -1)[0] = T
A.fill(T)|A.sort(axis=X)|A.sort()|V[::-1].sort()|M.T.sort(axis=0)|V.partition(range(len(V)))
A.put([0, 1], T)|A.put([99], N, mode='clip')|np.put(A, [0, -1], [N, T])
np.put_along_axis(A, np.argmax(A, X, keepdims=True), T, X)|np.copyto(A, T, where=A > N)
np.copyto(Q, M, casting='unsafe')|np.copyto(V, V[::-1])|np.place(V, V > T, [1, 2, 3])
np.putmask(A, A > N, A * 2)|np.fill_diagonal(M, T)|np.fill_diagonal(M, [1, N], wrap=True)
np.add.at(V, I, T)|np.add.at(M, (0, I % M.shape[1]), N)|np.maximum.at(V, I, N)
np.multiply.at(V, I, V[: len(I)])|np.clip(A, 0, N, out=A)|A.clip(-1, T, out=A)
np.round(A, 1, out=A)|np.cumsum(A, X, out=A)|np.add(A, N, out=A, casting='unsafe')
np.add(V[1:], V[:-1], out=V[1:])|np.subtract(V, 1, out=V, where=V > T)
np.multiply(A, T, out=A, where=B)|np.negative(M.T, out=M.T)|np.sqrt(np.abs(A), out=A)
np.divide(A, N, out=A, where=A > 0)|np.matmul(M, M.T, out=SQ)|np.dot(M, V2, out=V3)
np.einsum('ij->i', M, out=V3)|np.take(V, I, out=V[: len(I)], mode='wrap')
np.concatenate([V, V], out=V4)|np.stack([V, V], axis=1, out=V4.reshape(-1, 2))
np.compress([True], V, out=V[:1])|np.choose(I % 2, [T, N], out=V[: len(I)])|np.mean(M, 0, out=V2)
np.max(CU, axis=(0, 2), out=V5)|np.sum(M, 1, out=Q[:, 0])|np.std(M, 0, out=V2)
np.outer(V, V2, out=OU)|np.trace(CU, 0, 1, 2, out=V6)|np.logical_and(V, 1, out=V)
np.greater(V, T, out=V)|V[:], V2 = V[::-1], V2 + 1|V[...] = V[0]|V.real = N
V.shape = (len(V), 1); V.shape = (-1,)
np.random.default_rng(N).shuffle(V)|V.resize(len(V))|V.setflags(write=True)
V.byteswap(inplace=True); V.byteswap(True)|V.__setitem__(0, T)|V.__iadd__(N)
np.nan_to_num(V, copy=False, nan=T)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
# Objects, generators, functions
OBJECTS = """
s.advance()|s.advance(by=N).advance()|s.u, s.v = s.v, s.u|s.upper = N|s.upper += T|s.upper[:1] = N
s.u = s.u[::-1]|s += 1|s = s + s|s = 1 + s|s = replace(s, dt=T)|s.v = s.u|s.u[s.v > T] = N
s.trace += [s.n]|s.dt *= 2; s.u = s.u * s.dt|o[0] = T|o[1:] = N|o += N|o += V[:1]|o.w = V
o.w = o.w[: max(len(o) - 1, 1)]|out.append(o[0])|out.append(o[-1:])|out.append(len(o))
out.append(s == s)|out.append(s.total(initial=N))|out.append(s.total(keepdims=True))
out.append(s.upper)|out.append(np.sum(s))|out.append(np.asarray(s) is s.u)
out.append(np.add(s, 1))|out.append(np.concatenate([s, V]))|out.append(np.mean(a=s))
out.append(V + np.asarray(s)[0])|out += list(chunks(V, 2))|out += [c.sum() for c in chunks(M, 1)]
out += running(V[:4])|out += nested([V, M])|for h in s.halves(): h += N
for c in chunks(V, 3): c[...] = c[::-1]|for c in nested([M, V]): c *= 2
for r in running(V): last = r
g = chunks(V, 2); out.append(next(g, None)); out.append(next(g, None))
g = running(V); next(g, 0); V[1:] += 1; out.append(next(g, None))
g = chunks(V, 1); next(g, 0); g.send(N) if len(V) > 1 else 0
out.append(max(chunks(V, 2), key=len, default=None))
f = functools.partial(np.sum, axis=0); out.append(f(M))
f = functools.partial(np.clip, a_min=0); out.append(f(V, a_max=N))
f = np.max if N else np.min; out.append(f(M, axis=-1))
out.append(getattr(V, ['sum', 'max', 'min'][N % 3])(initial=0))
out.append([f(V) for f in (np.sum, len, np.size)])|out.append(dict(a=V[:1], n=N))
out.append(list(map(np.sum, M)))|out.append(sorted(V.tolist()))|out.append(sum(M))
out.append(max(V[:1], default=N))|out.append(list(zip(V, range(2))))|out.append([*V[:2], T])
out.append({k: r for k, r in enumerate(M)})|d = {'v': V, 'm': M}; d['v'][0] = N; out.append(d)
d = {'v': V}; d['v'] = d['v'] + 1; out.append(d)|d = {**vars(s)}; d['u'][:1] = N; out.append(d)
l = [V, V[1:]]; l[1] += 1; out.append(l)|l = [V] * 2; l[0] += N; out.append(l)
l = [row for row in M]; l[0][:] = T|p = V; p += 1; out.append(p is V)
c = np.nditer(V); out.append([float(e) for e in c])
out.append([i for i, e in np.ndenumerate(M) if e > T])
it = iter(V); out.append(next(it, None)); out.append(list(it))|n += 1|n = int(V.argmax())
n = len(V) // 2|n = N ^ 1|n = (N * 3 + 1) % 5|t = float(V[0])|t = V.max(initial=N)|t = -T
t = T * 0.5 + N|I = (I + N) % len(V)|I = np.argsort(V, kind='stable')[:2]|I = I[::-1]
V2 = M[0].copy()|V = V + 0|M = M * 1|b = M > T|b = ~b|b = b & (M > 0)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
LOOPS = """
for r in range(N + 1)|for r in range(len(V))|for r in range(len(V) - 1, 0, -1)|for r in (2, 0, 1)
for r, e in enumerate(V)|for e in V|for e in M|for e in M.T|for r, e in zip(range(3), M)
for r in range(2, 14, 3)|for r in I|for r in reversed(range(3))|while n < 6 and counted(out)
while V.max(initial=0) > T and counted(out)|while n and counted(out)
while not (V < 9).all() and counted(out)|if N > 1|if V.any()|if M[0, 0] > T|if (V > T).sum() % 2
if not N|if b[0].all()|with np.errstate(all='ignore')
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
HEAD = """
import functools
import math
from dataclasses import dataclass, field, replace

import numpy as np
"""
COUNTED = """

def counted(out):
    return len(out) < 24
"""
ARGUMENTS = "x, y, m, w, a, q, b, idx, s, o, n, t"
INEXACT = ("std", "var(", "corrcoef", "cov(", "norm", "density", "spacing", "float_power", "prod",
           "linspace", "/ N", "divide", "average", "mean", "** 3", "power")  # fmt: skip
# What NumPy's libraries leave out where the other factor is zero.
PRODUCTS = ("dot", "@", "matmul", "einsum", "inner", "tensordot", "convolve", "correlate")


class Calls(Maker):
    """One function of arrays of ranks 1 to 3, of two objects, an integer and a float."""

    def operand(self, rank: int = 0) -> tuple[str, int]:
        """A name, or a view of one that has its shape; its rank."""
        rank = rank or self.of([1, 1, 2, 2, 3])
        name = self.of({1: (*VECTORS, "s.u", "o.w"), 2: (*MATRICES, "m", "q"), 3: (CUBE,)}[rank])
        if self.once_in(5):
            name = self.of({1: ["x[::-1]", "m[0]", "m.T[0]", "a[0, 0]", "q[-1]", "m.diagonal()",
                                "x[idx]", "a[0, :, 0]", "x[1:]", "x[::2]", "m.real[0]", "x.view()"],
                            2: ["m.T", "m[::-1]", "a[0]", "a[:, 0]", "m[:, ::-1]", "a[..., -1]",
                                "x[:, None]", "x[None]", "q.T", "a.reshape(2, -1)", "m[1:]",
                                "np.broadcast_to(x, (2, len(x)))", "m[..., ::2]"],
                            3: ["a.T", "a[::-1]", "m[None]", "a[:, ::-1, :1]", "m[:, None, :]",
                                "np.moveaxis(a, 0, 1)"]}[rank])  # fmt: skip
        return name, rank

    def reduction(self) -> str:
        name, options, many, method = self.of(REDUCTIONS)
        array, rank = self.operand()
        axes = [x for x in AXES[rank] if many or "(" not in x]
        if name == "linalg.norm" or "cumulative" in name:
            axes = [str(rank - 1)]
        words = []
        if not self.once_in(5):
            words.append(f"axis={self.of(axes)}")
        given = {
            "k": f"keepdims={self.of(['True', 'True', 'False'])}",
            "i": f"initial={self.of(['n', 't', '2', '0'])}",
            "I": f"initial={self.of(['n', '-9', 't'])}",
            "w": f"where={self.of([f'({array} > {self.number()})', 'True', 'np.True_'])}",
            "d": f"dtype={self.of(['float', 'np.float64', repr('c16'), repr('f8')])}",
            "D": self.of(["ddof=1", "ddof=0", "correction=1"]), "x": "include_initial=True",
        }  # fmt: skip
        words += [given[k] for k in options if k in given and self.once_in(3)]
        if "I" in options and any("initial" in word for word in words) and self.once_in(2):
            words.append(given["w"])
        text = ", ".join(words) or "axis=-1"
        if "q" in options.lower():
            text = f"{self.of(['0.5', '[0, 1]', '0.25'])}, " + text
        call = f"np.{name}({array}, {text})"
        if method and self.once_in(2):
            call = f"({array}).{name}({text})"
        if "o" in options and self.once_in(4):
            made = self.fresh("z")
            self.put(f"{made} = {call}")
            where = self.of([f"np.zeros_like({made})", f"np.empty_like({made})[...]",
                             f"np.zeros((2, *np.shape({made})))[1]",
                             f"np.zeros(np.shape({made})[::-1], np.asarray({made}).dtype).T",
                             f"np.zeros(np.shape({made}))"])  # fmt: skip
            self.put(f"{made} = {where}")
            return call[:-1] + f", out={made})"
        return call

    def number(self) -> str:
        return self.of(["0", "1", "t", "n", "0.5", "-1"])

    def filled(self, text: str) -> str:
        """A template with operands in the places of its letters."""
        array, rank = self.operand()
        vector, matrix = self.operand(1)[0], self.operand(2)[0]
        if "M" in text and "V2" in text:
            matrix = self.of(["m", "w"])
        names = {
            "A": array, "V": vector, "M": matrix, "X": self.of(["0", "-1", str(rank - 1)]),
            "N": self.of(["n", "n", "1", "2", "r"]), "T": self.of(["t", "t", "0.5", "n"]),
            "B2": f"({matrix} > {self.number()})", "B": f"({array} > {self.number()})",
            "I": "idx", "D": self.of(["'f4'", "int", "'u1'", "complex", "bool", "float", "'i2'"]),
            "CU": self.of([CUBE, CUBE, "a[::-1]"]), "Q": self.of(["q", "q", "q[::-1]"]),
            "V2": "m[-1]", "V3": "np.zeros(len(m))", "SQ": f"np.zeros((len({matrix}),) * 2)",
            "V4": "np.zeros(2 * len(x))", "V5": "np.zeros(a.shape[1])",
            "V6": "np.zeros(a.shape[2])",
            "OU": f"np.zeros((len({vector}), m.shape[1]))",
            "OP": self.of(["+=", "-=", "*=", "=", "/=", "//=", "%="]),
        }  # fmt: skip
        if "V4" in text:
            names["V"] = "x"
        words, k = [], 0
        while k < len(text):
            end = k
            while end < len(text) and (text[end].isalnum() or text[end] in "_'"):
                end += 1
            word = text[k:end]
            member = k > 0 and text[k - 1] == "."  # the T of `M.T`
            words.append((word if member else names.get(word, word)) or text[k])
            k = max(end, k + 1)
        return "".join(words)

    def target(self, text: str, named: bool = False) -> str:
        """A statement; where its left side is a view without a name, it is stored into, and so are
        arrays, if not `named`."""
        found = re.match(r"(\S.*?) ([-+*/%]*=) (.*)", text)
        if found is None or found[1].count("(") != found[1].count(")"):
            return text
        left, op, right = found.groups()
        bare = op == "=" and left in ("x", "y", "m", "w", "a", "q") and not named
        view = left.endswith((")", ".T"))
        return f"{left}[...] {op} {right}" if bare or view else text

    def statement(self) -> None:
        kind = self.pick(20)
        if kind < 5:
            self.guarded(f"out.append({self.reduction()})")
        elif kind < 9:
            text = self.filled(self.of(UNARY))
            self.guarded(f"out.append(({text}))")
        elif kind < 14:
            self.guarded(self.target(self.filled(self.of(CHANGES))))
        elif kind < 17 or self.depth > 3:
            lines = self.filled(self.of(OBJECTS)).split("; ")
            self.guarded("; ".join(self.target(line, named=True) for line in lines))
        else:
            self.nested()

    def nested(self) -> None:
        head = self.filled(self.of(LOOPS))
        with self.block(f"{head}:"):
            if head.startswith("while"):
                self.put("out.append(n)")
                self.put(self.of(["n += 1", "n = n - 1", "x = x * 0.5", "x[...] = x / 2"]))
            for _ in range(1 + self.pick(3)):
                self.statement()
            if head.startswith("for") and self.once_in(5):
                self.put(f"if {self.of(['n > 2', 't > 0', 'x[0] > 1', 'r == 1'])}:")
                self.put(f"    {self.of(['break', 'continue'])}")

    def guarded(self, text: str) -> None:
        """Statements, in some cases with their errors as results."""
        lines = [text] if text.startswith("for ") else text.split("; ")
        if self.once_in(3):
            with self.block("try:"):
                for line in lines:
                    self.put(line)
            with self.block("except Exception as e:"):
                self.put("out.append(type(e).__name__)")
            return
        for line in lines:
            self.put(line)

    def source(self) -> str:
        """The module."""
        self.depth = 0
        with self.block(f"def program({ARGUMENTS}):"):
            self.put("out, r = [], 1")
            for _ in range(3 + self.pick(6)):
                self.statement()
            self.put(self.of([f"return out, {ARGUMENTS}", "return out, s, o",
                              "return out, x[::-1], m.T, q, r", "return out"]))  # fmt: skip
        self.lines += ["", ""]
        self.history()
        return "\n".join([HEAD + DATA + WORLD + COUNTED, "", *self.lines, ""])

    def history(self) -> None:
        with self.block("def history():"):
            for call, n, k, c in self.sized_calls():
                if call in (0, 3):
                    f = "f8" if self.pick(4) else self.of(["f4", "c16", "i8", "f4"])
                    i = self.of(["i8", "i8", "i4", "u1", "i2", "u2", "?"])
                lay = self.laid_out
                self.put(f"x, y = {lay((n,), f)}, {lay((n,), self.of([f, 'i4']))}")
                self.put(f"m, w = {lay((n, k), f)}, {lay((n, k), f)}")
                self.put(f"a, q = {lay((2, k, c), f)}, {lay((n, k), i)}")
                self.put(f"b = data({(n, k)}, 'f8', {self.pick(9)}) > 0")
                self.put(f"idx = {self.places(n)}")
                self.put(f"s = State({lay((n,), f)}, {lay((n,), 'f8')})")
                self.put(f"o = Slotted({self.of(['x', 's.v', lay((3,), f), 'x[::-1]'])})")
                t = self.given_number()
                self.put(f"n, t = {self.pick(5)}, {t}")
                self.put(f"yield {ARGUMENTS}")


def program(rng: random.Random) -> Program:
    """A program of calls with options."""
    source = Calls(rng, True).source()
    within = source[source.index("def program") :]
    return judged(source, within, PRODUCTS, INEXACT)
