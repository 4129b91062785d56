"""Programs of NumPy's families of functions on stacks, text, dates, places and complex numbers:
sums in index notation, linear algebra, sorting and sets, borders, meshes, windows."""

from __future__ import annotations

import random
import re

from .maker import DATA, Maker, Program, judged

# V, W: vectors; M: a matrix; A: an array of three dimensions; Q: square matrices; C: complex
# numbers; I: places, J: places along two axes; B: a mask; D, E: dates and spans of time; S: texts;
# U: small unsigned integers; N: an integer, T: a number, X: an axis of A or M. NEW: a new name.
STATEMENTS = """
np.einsum('ij,kj->ik', M, M)|np.einsum('kij,kjl->kil', Q, Q)|np.einsum('kii->ki', Q)
np.einsum('kii', Q)|np.einsum('...i,...i', A, A)|np.einsum('i,j->ij', V, W)|np.einsum('i->', V)
np.einsum(M, [0, 1], [1, 0])|np.einsum('ij,j->i', M, M[0])|np.einsum('kij->jk', A)
np.einsum('...ij->...ji', A)|np.einsum('i...->...', A)|np.einsum('ij,ij', M, M, optimize=True)
np.einsum('ii->i', Q[0])[N]|np.einsum('i,i,i->i', V, V, W)|np.einsum('ij,jk', M, M)
np.linalg.matrix_transpose(Q)|np.linalg.trace(Q, offset=1)|np.linalg.diagonal(Q, offset=-1)
np.trace(Q, axis1=1, axis2=2)|np.linalg.norm(Q, ord=1, axis=(1, 2))|np.linalg.norm(A, axis=X)
np.linalg.norm(Q, ord='fro', axis=(-2, -1), keepdims=True)|np.linalg.vector_norm(A, ord=np.inf)
np.linalg.norm(V, ord=0)|np.linalg.norm(M, ord=np.inf)|np.linalg.vector_norm(A, axis=X, ord=1)
np.linalg.outer(V, W)|np.linalg.cross(V[:3], W[:3])|np.linalg.matmul(Q, Q)|np.linalg.vecdot(M, M)
np.linalg.matrix_power(Q, N)|np.linalg.multi_dot([Q[0], Q[-1], Q[0]])|np.matvec(Q, Q[0])
np.vecmat(Q[0], Q)|np.vecdot(A, A, axis=X)|Q @ Q|Q @ Q[0, 0]|Q[0, 0] @ Q|np.matmul(Q, Q[:1])
np.tensordot(A, M, axes=(1, 0))|np.tensordot(Q, Q, ((1, 2), (2, 1)))|np.inner(A, V)
np.linalg.solve(Q + 99 * np.eye(Q.shape[1]), Q)|np.linalg.inv(Q + 99 * np.eye(Q.shape[1]))
np.linalg.det(Q)|np.linalg.slogdet(Q + 99 * np.eye(Q.shape[1]))|np.linalg.matrix_rank(0 * Q)
np.linalg.cholesky(Q * 0 + 4 * np.eye(Q.shape[1]))|np.linalg.eigvalsh(Q * 0 + np.eye(Q.shape[1]))
np.linalg.svdvals(Q * 0)|np.linalg.solve(M, V)|np.linalg.inv(M)|np.linalg.det(V)|np.sort(A, axis=X)
np.sort(M, axis=None)|np.argsort(V, stable=True)|np.argsort(M, X2, kind='stable')|np.sort(C)
np.sort_complex(C)|np.sort(S)|np.sort(D)|np.argsort(D, kind='stable')|np.sort(U)[::-1]|np.sort(B)
np.sort(V, kind='stable')[N:]|np.lexsort((I, I[::-1]))|np.lexsort(M)|np.lexsort((W, V))
np.partition(V, [0, len(V) - 1])[[0, -1]]|np.argpartition(V, 0)[0]|np.searchsorted(np.sort(V), W)
np.searchsorted(np.sort(V), W, 'right')|np.searchsorted(V, W, sorter=np.argsort(V, kind='stable'))
np.searchsorted(np.sort(D), D[0])|np.searchsorted([1, 2], T)|np.sort(V).searchsorted(T)
np.digitize(V, [-1, 0, T + 9])|np.digitize(T, [0, 1, 2])|np.unique(V)|np.unique(M, axis=X2)
np.unique(I, return_index=True)|np.unique(S, return_counts=True)|np.unique(D)|np.unique(C)
np.unique(A, return_inverse=True)|np.unique_values(V)|np.unique_counts(I)|np.unique_inverse(U)
np.unique(B)|np.unique(V, sorted=True)|np.union1d(I, U)|np.intersect1d(V, W, assume_unique=False)
np.setdiff1d(V, W)|np.setxor1d(I, U)|np.isin(M, V)|np.isin(V, W, kind='sort')
np.isin(I, U, invert=True)|np.isin(S, ['b', 'c'])|np.bincount(np.abs(I), minlength=N)
np.bincount(U % 5)|np.bincount(np.abs(I), weights=np.arange(len(I)))
np.count_nonzero(M, axis=X2, keepdims=True)|np.pad(A, 1)
np.pad(M, ((0, N), (1, 0)), constant_values=((0, 1), (2, T)))|np.pad(V, N, 'edge')
np.pad(M, 1, 'reflect')|np.pad(M, 2, mode='symmetric')|np.pad(V, (N, 1), mode='wrap')
np.pad(V, 1, 'maximum')|np.pad(M, 1, 'minimum', stat_length=1)|np.pad(V, (0, 2), 'empty')[: len(V)]
np.pad(M, (1, 0), 'reflect', reflect_type='odd')|np.pad(C, 1)|np.pad(B, 1)|np.pad(D, 1, 'edge')
np.pad(I, (1, 1), lambda v, p, *_: v.fill(p[0]))|np.roll(A, N, axis=X)|np.roll(A, (N, 1), (0, 1))
np.roll(M, -N)|np.roll(D, N)|np.roll(V, len(V) + N)|np.roll(B, 1)|np.rot90(A, N, (0, 2))
np.ix_(I, I)|M[np.ix_(I % len(M), B2)]|A[:, I % A.shape[1]]|A[0, :, [0, -1]]|A[[0, 1], :, 0]
A[..., [0, -1]]|A[:, [[0], [-1]], [0, 0]]|M[I % len(M)][:, ::-1]|M[I % len(M), None]
M[:, I % M.shape[1]]|M[[0, -1], 1:]|M[1:, [0, -1, 0]]|A[J]|A[J][..., 0]|A[[True, False]]|A[:, B2M]
A[B3]|M[B2, ::-1]|M[..., B2]|M[(0, -1), (0, 0)]|V[[]]|V[np.array([], int)]|M[np.newaxis, [0]]
V[I][::-1]|A[1, I % A.shape[1], ...]|np.take(A, I, axis=X, mode='wrap')|np.take(V, [[0, -1]])
np.take_along_axis(M, np.argsort(M, 0, kind='stable'), 0)|np.choose(I % 3, [I, I + 1, -I])
np.choose([1, 0], (V[:2], W[:2]))|np.compress(B, V)|np.extract(M > T, M)
np.select([V > T, V < 0], [V, W * 2], -1)|np.where(B)|np.where(M > T)|np.where(A)|np.where(D > D[0])
np.where(B, V, W)|np.where(B, D, D[0])|np.where(B, S[0], 'zz')|np.where(B, C, V)|np.nonzero(A > T)
np.argwhere(M > T)|np.flatnonzero(M)|np.where(M > T)[0]|np.argwhere(B)[:, 0]|np.cumsum(A, axis=X)
np.cumsum(I)|np.cumsum(U, dtype='u1')|np.cumsum(B)|np.cumprod(I % 3)|np.cumsum(E)
np.cumulative_sum(V, include_initial=True)|np.nancumsum(M, X2)|np.maximum.accumulate(M, axis=X2)
np.logical_or.accumulate(B)|np.fmin.accumulate(V)|np.cumsum(C)|np.diff(D)|np.diff(A, axis=X)
np.diff(V, 2)|np.diff(B)|np.diff(I, prepend=0)|np.diff(U)|np.ediff1d(I, 0, [1, 2])
np.add.reduceat(V, [0])|np.add.reduceat(M, [0, 1], axis=1)|np.maximum.reduceat(V, [0, 1, 0])
np.logical_and.reduce(M > T, X2)|D + E|D - D[0]|D - E|E * 2|E / E[-1]|E // 2|D > D[0]
D.max() - D.min()|D.astype('M8[M]')|E.sum()|-E|D.astype('M8[D]').astype(int)|E.astype(int) + I[:1]
np.abs(E)|np.mean(E)|D[B]|D[::-1]|D == D[-1]|D[N % len(D)]|np.isnat(D)|np.datetime_as_string(D)
str(D[0])|D[0] + np.timedelta64(N, 'D')|D.min()|np.argmax(D)|D.tolist()[:1]
np.arange(D[0], D[0] + np.timedelta64(3, 'D'))|np.is_busday(D)|np.busday_offset(D[0], N, 'forward')
E[0] / np.timedelta64(1, 'h')|E.astype('m8[h]')|(D - D[0]) / np.timedelta64(1, 'D') * T
np.maximum(D, D[0])|C * C|C + 1j|C - V|C * T|C / 2|abs(C)|C.conj() * C|C ** 2|C.real * C.imag
np.angle(C * 0 + 1)|C == C.conj()|C.sum()|C @ C|np.vdot(C, C)|np.dot(C, V)|np.iscomplex(C)
np.real_if_close(C * 0 + 2)|C[0] * T|C[0].real + T|C.mean()|np.prod(C[:2])|np.outer(C[:2], C)|C.T
C[::-1].imag|np.isfinite(C)|C != 0|C.astype('c8')|1j * V|V * (1 + 2j)|complex(C[0])|C[0].conjugate()
np.exp(C * 0)|np.sqrt(V * V + 0j)|C > C[0]|np.maximum(C, C[0])|C.max()|np.abs(C).max()
f'{T:.3f} {N:03d}'|f'{V[0]:8.2f};{I[0]:>5}'|f'{V.sum():.2e}'|'%5.1f' % V[0]|'%d %s' % (N, T)
f'{C[0]:.2f}'|f'{V[:2]}'|str(M[0])|repr(V[:3])|'{:.1f},{:g}'.format(V[0], T)|f'{B[0]} {U[0]!r}'
np.array2string(V[:2], precision=2)|f'{D[0]}'|','.join(f'{e:.1f}' for e in V)|str(T).rjust(8)
format(V.max(), '.4f')|f'{len(V):,}'|f'{I.sum():b}'|round(V[0], 1)|np.char.upper(S)
np.strings.str_len(S)|S == 'b'|np.char.add(S, 'x')|S[I % len(S)]|S.tolist()|np.strings.find(S, 'b')
S[0] + 'q'|'b' in S|np.concatenate([S, ['long']])|S.astype(object)|np.array([str(e) for e in I])
sorted(S)|set(I.tolist())|{int(e) for e in I}|{str(e): k for k, e in enumerate(V.tolist())}
dict(zip(S.tolist(), V))|{k: V[k] for k in I}|{V[0]: 1}.get(V[0])|len({*V})|sorted({*I})
V[0] in {V[0]}|{(k, int(e)) for k, e in enumerate(I)}|set(V) == set(V[::-1])
collections.Counter(I.tolist())|max(set(I), key=lambda e: (-e, 0))|frozenset(U.tolist())|{N: T}[N]
{str(k): e for k, e in enumerate(V)}|np.meshgrid(V, W, sparse=True)|np.mgrid[:N, :2]
np.indices((2, N), sparse=True)|np.tri(3, k=N)|np.vander(V[:3], N)|np.tril_indices(len(M), -1)
M[np.triu_indices(min(M.shape), 1)]|M[np.diag_indices(min(M.shape))]|np.diag_indices_from(Q[0])
np.unravel_index(np.argmax(M), M.shape)|np.ravel_multi_index(J[:2], (9, 9), mode='wrap')
np.ndindex(2, 2).__next__()|sliding_window_view(V, 2)|sliding_window_view(M, (1, 2)).mean(axis=-1)
sliding_window_view(V, 2).max(axis=1)|np.apply_along_axis(lambda r: r[::-1], X2, M)
np.apply_along_axis(np.cumsum, X2, M)|np.piecewise(V, [V < 0, V > 1], [T, N, 0])|np.split(A, 2)
np.array_split(V, 3)|np.hsplit(M, M.shape[1])|np.unstack(A)|np.stack([V, W], -1)
np.block([[M], [M]])|np.concatenate([M, M[:1]])|np.r_[V, T, 0:3]|np.c_[V, W]
np.column_stack((V, W, V))|np.dstack((V, W))|np.insert(M, 1, T, X2)|np.delete(V, I)
np.delete(M, [0], X2)|np.append(M, M, X2)|np.tile(M, (1, 2))|np.repeat(V, U % 3)
np.repeat(M, [1] * len(M), 0)|np.packbits(B)|np.unpackbits(U)|np.bitwise_count(U)|U.view('i1')
U << N|~U|U ** 2|U - 1|U // 3|np.invert(B)|U @ U|U.mean()|np.left_shift(U, 9)|np.gcd.reduce(I)
np.lcm(I, 4)|I ** 2|-I // 2|I % 3|divmod(I, 3)|np.fmod(I, 3)|I & 1|I.astype('u1')|V.astype('i4')
V.round()|np.modf(V)|np.frexp(V)|np.ldexp(V, 2)|np.copysign(1, V)|np.signbit(I)|np.nextafter(T, 9)
np.spacing(T)|np.quantile(M, [0.25, 1], axis=X2, method='lower')|np.median(A, axis=X)
np.percentile(V, 50, method='nearest')|np.ptp(M, X2)|np.histogram(V, bins=4, range=(-2, 2))
np.histogram2d(V, W, 2, [[-9, 9], [-9, 9]])[0]|np.histogram_bin_edges(V, 4, (0, 4))
np.argmax(M, axis=X2, keepdims=True)|np.nanargmin(V)|np.max(A, axis=(0, 2), initial=T)
np.min(M, X2, where=B2M, initial=99)|np.array_equal(V, W)|np.allclose(V, V + 1e-12)
np.isclose(V, W, rtol=0.5)|np.array_equiv(V, M)|np.broadcast_shapes((3, 1), (N,))
np.convolve(V, [1, 2])|np.correlate(V, W)|np.interp(T, [0, 1], [2, 4])|np.polyval([1, N], V)
np.poly1d([1, 2])(V)|np.trim_zeros(I)|np.roots([1, -N]).size|np.fliplr(M)|np.flip(A, (0, 1))
np.nan_to_num(V / V)|np.heaviside(V, T)|np.clip(V, W, None)|A.transpose(2, 0, 1)|A.swapaxes(0, 2)
np.moveaxis(A, [0, 1], [1, 2])|A.reshape(2, -1, order='F')|A.reshape(-1, A.shape[2])|A.squeeze()
A.ravel('F')|M.flatten()[::2]|M.item(0)|M.tolist()|A.mean(axis=(0, 1))|A.std()|A.var(X, ddof=1)
M.T.copy().strides == M.strides
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
# Changes, in place and of names.
CHANGES = """
V[I] += T|V[I] = W[: len(I)]|V[B] *= 2|V[I][:] = 9|V[[0, -1]] = V[[-1, 0]]|V[~B] = W[~B]|V[::2] -= T
V[N:] = V[: len(V) - N].copy()|M[I % len(M)] += T|M[:, I % M.shape[1]] = N
M[np.ix_(I % len(M), [0])] = T|M[B2] = 0|M[B2, 0] += 1|M[..., B2] = T|M[1:, [0, -1]] = N
A[:, [0, -1]] = T|A[J] = N|A[J] += 1|A[0, :, [0]] = N|A[B3] = T|A[..., ::-1] = A|A[[0, 1], 0] += T
A[:, None] += 0|A[1] = A[0].copy()|M[[0, -1], 1:] = T
M[:, 0], M[:, -1] = M[:, -1].copy(), M[:, 0].copy()|np.add.at(M, (I % len(M), 0), T)
np.add.at(V, I, 1)|np.subtract.at(I, [0, 0], 1)
np.put_along_axis(M, np.argmin(M, 0, keepdims=True), T, 0)|np.put(M, I, N, mode='wrap')
np.place(V, B, [T, N])|np.fill_diagonal(Q[0], N)|Q[0] = Q[-1].T|Q[:, 0, 0] = T
Q += Q.transpose(0, 2, 1).copy()|Q[0] @= Q[0]|np.matmul(Q, Q.copy(), out=Q)
np.einsum('kii->ki', Q)[...] = T|V.sort()|M.sort(axis=X2)|M.T.sort(0)|I.sort()|S.sort()|D.sort()
D[0] = D[-1]|D += np.timedelta64(1, 'D')|D[B] = D[0]|E *= 2|E[:1] = 0|E[0] = np.timedelta64('NaT')
D[N % len(D)] = 'NaT'|C[0] = T|C *= 1j|C.imag[:] = V|C.real[0] += 1|C[B] = 0|C += V|C[:] = C.conj()
C[I] -= 1j|S[0] = 'zzzz'|S[B] = 'q'|U += 250|U[0] = N|U[B] -= 1|U <<= 1|U[I] = U[0]|U ^= 3|b[:] = ~b
b[0] = T|b &= V > T|b ^= V < 0|b = b & B|I[0] = N % len(V)|np.cumsum(M, axis=X2, out=M)
np.maximum.accumulate(V, out=V)|np.clip(V, 0, W, out=V)|np.roll(V, 1, axis=0)[...]
np.copyto(M, M.T[:1].T if 0 else M[::-1].copy())|V = V[I]; V = np.resize(V, len(W))
M = np.pad(M, 1)[1:-1, 1:-1]|NEW = M[B2]; NEW += 1; M[B2] = NEW|NEW = A[:, 0]; NEW[...] = T
NEW = V[I]; NEW[0] = T|NEW = np.ix_(I % len(M), [0]); M[NEW] = M[NEW] + 1
NEW = M.reshape(-1); NEW[::2] = N|NEW = V.view('i8') if V.dtype == 'f8' else V; out.append(NEW[:1])
NEW = C.view(C.real.dtype); NEW[0] = T|NEW = A.swapaxes(0, 1); NEW[0] = T
NEW = np.diagonal(Q, axis1=1, axis2=2); out.append(NEW.sum())
NEW = {}; NEW[N] = V; NEW[N] += 1; out.append(NEW)
NEW = {float(e) for e in V if e == e}; NEW.add(T); out.append(sorted(NEW))
NEW = [*V]; NEW[0] = T; out.append(NEW)|NEW = np.zeros(3, 'M8[D]'); NEW[1:] = D[:1]; out.append(NEW)
NEW = np.empty(2, object); NEW[0] = V; out.append(NEW[0] is V)|NEW = iter(M); out.append(next(NEW))
T = float(f'{T:.1f}')|T = V[I].sum()|T = T + V[N % len(V)]|T = M[0, 0] * 2|N = int(np.argmax(V))
N = len(np.unique(I))|N = N + 1 & 3|T = max(V[0], T)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
HEADS = """
for k in range(3)|for k in range(len(V))|for k, e in enumerate(V)|for row in M|for q in Q|for k in I
for d in D|for c in C|for e, f in zip(V, W)|for k in np.unique(I)|for k in np.flatnonzero(B)
for k, c in zip(*np.unique(I, return_counts=True))|for r, c in np.argwhere(M > T)|for s in S
for i, j in itertools.product(range(2), repeat=2)|for w in sliding_window_view(V, 2)
if np.any(M > T)|if D[0] > D[-1]|if C[0].imag > 0|if N in I|if S[0] == 'b'|if B.all()
if np.isin(N, I)|while N < 4
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
# What is done with the names of a loop's head.
USED = {
    "k": ["V[k % len(V)] = T", "out.append(V[k % len(V)])", "T = T + k", "M[k % len(M)] += 1"],
    "e": ["T = T + e", "out.append(e)", "T = max(T, e)"], "row": ["row += 1", "T = row.sum()"],
    "q": ["q += q.T.copy()", "T = np.trace(q)", "out.append(q @ q)"], "d": ["out.append(d)"],
    "c": ["out.append(c + 0)"], "f": ["T = T - f"], "r": ["M[r, c] = T", "out.append(A[0, r, 0])"],
    "s": ["out.append(s)", "out.append(s + 'x')"], "i": ["T += M[i % len(M), j % M.shape[1]]"],
    "w": ["out.append(w.sum())", "T = w.max()"],
}  # fmt: skip
NAMES = {
    "V": ("x", "x", "y"), "W": ("y", "x"), "M": ("m",), "A": ("a",), "Q": ("q",), "C": ("c0",),
    "I": ("idx",), "B": ("b", "b", "(x > 0)"), "B2": ("(m[:, 0] > 0)",),
    "B2M": ("(a[0] > 0)", "(m > 0)"), "B3": ("(a > 0)", "(a == a)"), "D": ("d",), "E": ("e0",),
    "J": ("(idx % 2, idx % a.shape[1])", "(0, idx % a.shape[1])", "([1, 0], [0, -1])",
          "(slice(None), idx % a.shape[1])", "(idx % 2, slice(None), 0)"),
    "S": ("s0",), "U": ("u",), "N": ("n",), "T": ("t",), "X": ("0", "1", "2", "-1"),
    "X2": ("0", "1", "-1"),
}  # fmt: skip
HEAD = """
import collections
import itertools
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
"""
ARGUMENTS = "x, y, m, a, q, c0, idx, b, d, e0, s0, u, n, t"
# What NumPy's libraries leave out where the other factor is zero.
PRODUCTS = ("dot", "@", "matmul", "einsum", "inner", "tensordot", "convolve", "correlate", "vec",
            "matrix_power", "kron", "outer", "det")  # fmt: skip
INEXACT = (*PRODUCTS, "solve", "inv(", "norm", "cholesky", "eigvals", "svdvals", "mean", "std",
           "var(", "interp", "exp", "sqrt", "angle", "roots", "abs(c0", "prod", "polyval",
           "poly1d", "vander", "c0 /", "** 2", "median", "quantile", "percentile", "histogram",
           "/ e0", "timedelta64(1, 'D') *")  # fmt: skip


class Families(Maker):
    """One function of arrays of many kinds, an integer and a number."""

    def filled(self, text: str) -> str:
        """A template with names in the places of its letters, but within quotes."""
        chosen: dict[str, str] = {}

        def name(found: re.Match) -> str:
            letter = found[0]
            if letter not in chosen:
                others = NAMES.get(letter) or (self.fresh("w"),)
                chosen[letter] = self.of([v for v in others if v != chosen.get("V")] or others)
            return chosen[letter]

        pattern = r"(?<!\.)\b(?:B2M|B2|B3|X2|NEW|[VWMAQCIJBDESUNTX])\b"
        parts = re.split(r"((?<!f)'[^'{]*')", text)
        return "".join(p if k % 2 else re.sub(pattern, name, p) for k, p in enumerate(parts))

    def statement(self) -> None:
        if self.depth < 3 and self.once_in(6):
            self.nested()
            return
        if self.once_in(2):
            lines = [f"out.append({self.filled(self.of(STATEMENTS))})"]
        else:
            lines = self.filled(self.of(CHANGES)).split("; ")
        if self.once_in(3):
            for line in lines:
                self.put(line)
            return
        with self.block("try:"):
            for line in lines:
                self.put(line)
        with self.block("except Exception as error:"):
            self.put("out.append(type(error).__name__)")

    def nested(self) -> None:
        head = self.filled(self.of(HEADS))
        with self.block(f"{head}:"):
            self.put("if len(out) > 40: break" if head.startswith(("for", "while")) else "pass")
            if head.startswith("while"):
                self.put("n += 1")
            for used in re.findall(r"\w+", head[3 : head.find(" in ")] if " in " in head else ""):
                if used in USED and head.startswith("for") and self.pick(3):
                    self.put(self.filled(self.of(USED[used])))
            for _ in range(1 + self.pick(2)):
                self.statement()

    def source(self) -> str:
        """The module."""
        self.depth = 0
        with self.block(f"def program({ARGUMENTS}):"):
            self.put("out = []")
            for _ in range(3 + self.pick(7)):
                self.statement()
            self.put(self.of([f"return out, {ARGUMENTS}", "return out, x, m, t", "return out"]))
        self.lines += ["", ""]
        self.history()
        return "\n".join([HEAD + DATA, "", *self.lines, ""])

    def history(self) -> None:
        with self.block("def history():"):
            for call, n, k, c in self.sized_calls():
                if call in (0, 3):
                    f = "f8" if self.pick(4) else self.of(["f4", "i8", "i4"])
                lay = self.laid_out
                self.put(f"x, y = {lay((n,), f)}, {lay((n,), self.of([f, 'f8', 'i4']))}")
                self.put(f"m, a = {lay((n, k), f)}, {lay((2, n, k), f)}")
                self.put(f"q = data({(2, c, c)}, {self.of([f, 'f8'])!r}, {self.pick(8)})")
                self.put(f"c0, u = {lay((n,), self.of(['c16', 'c16', 'c8']))}, {lay((n,), 'u1')}")
                self.put(f"idx = {self.places(n)}")
                self.put(f"b = data({(n,)}, 'f8', {self.pick(9)}) > 0")
                unit = self.of("DDhs")
                self.put(f"d = data(({n},), 'i8', {self.pick(8)}).astype('M8[{unit}]')")
                self.put(f"e0 = data(({n},), 'i8', {self.pick(8)}).astype('m8[{unit}]')")
                self.put(f"s0 = np.array(['b', 'a', 'cd'] * 3)[{self.pick(3)}:][:{n}]")
                t = self.given_number()
                self.put(f"n, t = {self.pick(4)}, {t}")
                self.put(f"yield {ARGUMENTS}")


def program(rng: random.Random) -> Program:
    """A program of families of functions."""
    source = Families(rng, True).source()
    within = source[source.index("def program") : source.index("def history")]
    return judged(source, within, PRODUCTS, INEXACT)
