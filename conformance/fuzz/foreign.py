"""Programs of arrays and what is none of NumPy's usual: numbers of libraries, containers, classes
that take part in operators, dtypes that torch lacks, and errors asked for of floats."""

from __future__ import annotations

import random
import re

from .maker import DATA, Maker, Program

WORLD = '''
class Named:
    def __repr__(self):
        return type(self).__name__


class Meters(Named):
    """Takes part in operators, and is no array."""

    __array_ufunc__ = None

    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Meters(self.n + np.sum(other))

    __radd__ = __mul__ = __rmul__ = __add__

    def __eq__(self, other):
        return self.n == (other.n if isinstance(other, Meters) else other)


class Counted(Named):
    """Answers NumPy's functions itself."""

    def __init__(self, v):
        self.v, self.calls = v, []

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.calls.append((ufunc.__name__, method, len(options)))
        inputs = [a.v if isinstance(a, Counted) else a for a in inputs]
        return Counted(getattr(ufunc, method)(*inputs, **options))

    def __array_function__(self, f, types, arguments, options):
        self.calls.append(f.__name__)
        if f is np.copyto:
            arguments[0][...] = 7
        return len(arguments)


class Holder(Named):
    def __init__(self, v):
        self.v = v

    def __array__(self, dtype=None, copy=None):
        return np.array(self.v, dtype)

    def __len__(self):
        return len(self.v)

    def __getitem__(self, k):
        return self.v[k]


class Place(Named):
    def __float__(self):
        return 2.5

    def __index__(self):
        return 1


class Tagged(np.ndarray):
    tag = "none"

    def __array_finalize__(self, other):
        self.tag = getattr(other, "tag", "new")

    def twice(self):
        return self * 2


class Color(IntEnum):
    RED = 1
    BLUE = 2


class Celsius(float):
    pass
'''
# F: what is foreign and a number; G: foreign and of the arrays' length; A, B: arrays and views; C:
# one that is written to; K: a place; M: a mask; S: a number; OP, OQ: operators; OR, OC: those
# that are no comparisons, and comparisons, whose type is left open where F is a number of a class
# of the user's; U, V: functions of one and two; E: an error's treatment.
STATEMENTS = """
out.append(A OQ F)|out.append(F OQ A)|out.append(A OQ G)|out.append(G OQ A)|C OP F|C OP G|C[K] = F
C[:] = G|C[K] OP F|C[M] = F|out.append(np.V(A, F))|out.append(np.V(F, A))|out.append(np.V(A, G))
np.V(A, G, out=C)|out.append(np.U(G))|out.append(np.U(F))|out.append(np.where(M, A, F))
out.append(np.where(M, G, A))|out.append(A[K] OQ F)|out.append(F OR A[K])|out.append(S OQ F)
out.append(bool(F OC A[K]))|out.append(np.concatenate([A, G]))|out.append(np.array(G))
out.append(np.asarray(F))|out.append(np.array([F, S]))|out.append(np.sum(G))|out.append(sum(G))
out.append(np.max(G))|out.append(F in A)|out.append(A[K] in G)|out.append(A == F)|C.fill(F)
out.append(F == A)|out.append(np.full(2, F))|out.append(np.full_like(A, F))
out.append(np.clip(A, 0, F))|out.append(np.isclose(A, F))|out.append(np.dot(A, G))|out.append(A @ G)
out.append(np.stack([A, G]))|out.append(np.append(A, F))|out.append(np.result_type(A, F))
out.append(np.searchsorted(np.sort(A), F))|out.append(np.isin(A, G))
out.append(np.array_equal(A, G))|C[K:] = G[K:]|C[::-1] = G|t = t OQ F|t = F OR t|t = A[K] OQ t
out.append(t)|t = F|out.append(max(A[K], F))|out.append(float(F))|out.append(round(F, 1))
out.append(A[F])|out.append(A[:F])|out.append(range(F))|out.append(f"{F}")
out.append(isinstance(F, (int, float)))|out.append(type(A[K] OQ F).__name__)|out.append(bool(F))
for e in G: t = t + e|for e in A: t = t OQ F|for e, f in zip(A, G): out.append(e OQ f)
for i in range(len(C)): C[i] = C[i] OQ F|for i, e in enumerate(G): C[i] OP e
for i in range(1, len(C)): C[i] += C[i - 1] * F
while t < 9 and len(out) < 30: t = t + F; out.append(t)|d = {F: 1}; out.append(d.get(S, 0))
out.append(sorted(G)[:2])|out.append(list(G) == list(A))|out.append(np.add.reduce(G))
np.add.at(C, [0, -1], F)|out.append(np.cumsum(G))|out.append(G[K])|out.append([e OQ F for e in A])
out.append(np.outer(A, G)[:1])|C[:len(G)] += G|with np.errstate(E): out.append(A / S)
with np.errstate(E): C /= A - A[K]|with np.errstate(E): out.append(np.log(A))
with np.errstate(E): out.append(np.exp(A * 400))
with np.errstate(E): out.append(A[K] / np.float64(0))|with np.errstate(E): C[:] = A * 1e300 * 1e300
with np.errstate(E): np.sqrt(A, out=C)
with np.errstate(E): out.append(np.divide(A, 0, where=M, out=C))
with np.errstate(E): t = np.float64(t) / 0|with np.errstate(E): out.append(1 / A)
with np.errstate(E): out.append((A * np.inf).sum())|with np.errstate(E): out.append(A % 0)
with np.errstate(E): out.append(np.power(A, 0.5))
with np.errstate(E): out.append(A.astype('f4') * 1e38)
with np.errstate(E): out.append(int(A[K] // 0) if A[K] else 0)|out.append(sorted(np.geterr()))
with np.errstate(E): out.extend(1 / e for e in A)|np.seterr(E); out.append(A / 0)
with warnings.catch_warnings(): warnings.simplefilter('error', RuntimeWarning); C /= 0
out.append(np.nan_to_num(A / 0))|C[:] = np.nan|C[:2] = [np.inf, -1]|C[K] = np.nan|C[M] = np.inf
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
NUMBERS = """
Fraction(1, 2)|Fraction(3)|Decimal('0.5')|Decimal(2)|Color.BLUE|Celsius(1.5)|True|2**70
-(2**63)|np.longdouble(0.5)|np.float16(2)|np.array(2)|np.array([1.5])|np.datetime64('2020-01-02')
np.timedelta64(2, 'D')|timedelta(1)|np.str_('2')|Place()|'2'|None|b'a'|Holder([1.0])|Meters(2)
np.bool_(True)|1e400|complex(1, 2)|torch.tensor(2.0, device='cpu')|np.ma.masked|Counted(2.0)
np.uint64(3)|[2]|(1,)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
MANY = """
x.tolist()|tuple(x)|range(len(x))|array.array('d', x.tolist())|memoryview(x.copy())|list(x)
Holder(x)|Counted(x)|x.view(Tagged)|x.astype(object)|x.astype('U4')|x.astype(np.longdouble)
x.astype('>f8')|np.ma.array(x, mask=x > 1)|[Fraction(k, 3) for k, e in enumerate(x)]
torch.arange(len(x), device='cpu')|x.astype('i8').astype('M8[D]')
x.astype('i8').astype('m8[s]')|(e for e in x)
iter(x)|{1: 2}|np.array([(2.5, 1)] * len(x), dtype=[('a', 'f8'), ('b', 'i4')])
deque(x.tolist())|np.float32(x)|x.copy()|x.view(np.recarray)|x.T|x[None, :]|x[:, None]
np.array(x, ndmin=3)|bytes(3)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
HEAD = """
import array
import math
import warnings
from collections import deque
from datetime import timedelta
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import numpy as np
import torch
"""


class Foreign(Maker):
    """One function of arrays x, y, foreign f (a number) and g (of the length of x), and numbers."""

    def filled(self, text: str) -> str:
        words = {
            "A": ["x", "x", "y", "x[::-1]", "x[:]", "w", "(x * 1)"],
            "C": ["x", "y", "y", "x[::-1]"],
            "F": ["f", "f", "h"], "G": ["g"], "K": ["0", "-1", "n", "n % 2", "len(x) // 2"],
            "M": ["m", "~m", "x > 0"], "S": ["t", "n", "2", "0.5", "x[0]"],
            "OQ": ["+", "-", "*", "/", "//", "%", "<", "==", "**", "!="],
            "OR": ["+", "-", "*", "/", "//", "%", "**"], "OC": ["<", "==", "!="],
            "OP": ["+=", "-=", "*=", "/=", "="],
            "U": ["abs", "sqrt", "negative", "isnan", "square", "sum", "sort", "size", "shape"],
            "V": ["add", "multiply", "subtract", "maximum", "equal", "less", "divide", "power"],
            "E": ["all='raise'", "divide='raise'", "invalid='raise'", "over='raise'",
                  "all='ignore'", "divide='raise', invalid='ignore'", "all='warn'"],
        }  # fmt: skip
        return re.sub(r"\b(OP|OQ|OR|OC|[ACFGKMSUVE])\b", lambda m: self.of(words[m[0]]), text)

    def statement(self) -> None:
        text = self.filled(self.of(STATEMENTS))
        if self.once_in(3):
            self.lines_of(text)
            return
        with self.block("try:"):
            self.lines_of(text)
        with self.block("except Exception as e:"):
            self.put("out.append(type(e).__name__)")

    def lines_of(self, text: str) -> None:
        head, found, body = text.partition(": ")
        if found and head.split()[0] in ("for", "while", "with"):
            with self.block(head + ":"):
                for line in body.split("; "):
                    self.put(line)
        else:
            for line in text.split("; "):
                self.line_of(line)

    def line_of(self, text: str) -> None:
        into = re.fullmatch(r"np\.power\(.*, out=([^,]*)(, .*)?\)", text)
        if into is None:
            self.put(text)
            return
        with self.block("try:"):
            self.put(text)
        # Of integers to negative powers NumPy leaves there what it had in a buffer.
        with self.block("except ValueError:"):
            self.put(f"{into[1]}[...] = 0")
            self.put("raise")

    def source(self) -> str:
        """The module."""
        self.depth = 0
        arguments = "x, y, w, f, g, m, n, t"
        with self.block(f"def program({arguments}):"):
            self.put("out, h = [], f")
            for _ in range(3 + self.pick(6)):
                if self.once_in(8):
                    self.put(f"h = {self.of(NUMBERS)}")
                self.statement()
            self.put("return out, t")
        self.lines += ["", ""]
        with self.block("def history():"):
            for call in range(4):
                if call in (0, 2):
                    n = self.of((1, 2, 3, 3, 5, 7, 0)) if call else 3
                    dtype, other = (self.of(("f8", "f8", "f4", "i8", "i4")) for _ in range(2))
                    f, g = self.of(NUMBERS), self.of(MANY)
                self.put(f"x, y = {self.laid_out((n,), dtype)}, {self.laid_out((n,), other)}")
                self.put(f"w, m = data(({n},), 'f8', {self.pick(8)}), data(({n},), 'i8', 3) > 0")
                self.put(f"f, g = {f}, {g}")
                self.put(f"n, t = {self.pick(3)}, {self.of(['0.5', '2.0', '1'])}")
                self.put(f"yield {arguments}")
        return "\n".join([HEAD + DATA + WORLD, "", *self.lines, ""])


# What is added in another order or rounds, and what is none of NumPy's promises.
_ROUNDS = ("sum", "@", "dot", "exp", "log", "power", "**", "add.reduce", "add.at")


def program(rng: random.Random) -> Program:
    """A program of foreign values."""
    source = Foreign(rng, True).source()
    within = source[source.index("def program") : source.index("def history")]
    return Program(source, not any(word in within for word in _ROUNDS))
