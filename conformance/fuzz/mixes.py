"""Programs of arrays, empty and 0-D ones too, and numbers of many dtypes: promotion, casts, `out=`,
`where=`, `dtype=`."""

from __future__ import annotations

import random

from .maker import DATA, SPECIAL, Maker, Program

# Integers alone: what casts of floats to unsigned integers of 32 and 64 bits give is open, see
# docs/deviations.md, "Casts to uint32 and uint64".
WHOLE = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u4", "u8", "u8")
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "f2", "f4", "f8", "c8", "c16")
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "equal",
    "not_equal",
    "less",
    "greater_equal",
    "logical_and",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "copysign",
    "gcd",
    "heaviside",
]
UNARY = [
    "negative",
    "absolute",
    "sign",
    "square",
    "conjugate",
    "logical_not",
    "invert",
    "isnan",
    "isfinite",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "signbit",
    "positive",
    "real",
    "imag",
    "reciprocal",
]
COMPARED = ("equal", "not_equal", "less", "greater_equal")
REDUCED = ("add", "maximum", "minimum", "logical_and", "logical_or", "bitwise_or", "multiply")
CASTINGS = ("'no'", "'safe'", "'same_kind'", "'same_kind'", "'unsafe'", "'unsafe'")
# A, B, C: names or views of one length; P: the same, which nothing changes; M: a mask; S: a
# number, NumPy's or Python's; F, G: functions of two and of one; R: one that is reduced by; D: a
# dtype; K: a casting; OP: an operator; L: a literal.
STATEMENTS = """
out.append(np.F(A, B))|out.append(np.F(A, S))|out.append(np.F(S, A))|out.append(np.F(S, L))
out.append(np.G(A))|out.append(np.G(S))|np.F(A, B, out=C)|np.F(A, S, out=C, casting=K)
np.F(A, B, out=C, where=M)|np.F(A, L, C, where=M, casting=K)|np.G(A, out=C)|np.G(A, C, where=M)
out.append(np.F(A, B, dtype=D))|out.append(np.F(A, S, dtype=D, casting=K))|np.F(A, B, A, casting=K)
out.append(np.G(A, dtype=D))|A OP B|A OP S|A OP L|A[1:] OP B[:-1]|A[M] OP S|A[M] = B[M]
A[:] = S|A[...] = B|A[0] = L|A[::2] = S|A.fill(S)|np.copyto(C, A, casting=K)
np.copyto(C, S, where=M, casting=K)|out.append(A.astype(D))|out.append(A.astype(D, casting=K))
out.append(np.where(M, A, S))|out.append(np.where(M, A, B))|out.append(np.where(M, L, S))
out.append(np.R.reduce(P, dtype=D))|out.append(np.R.reduce(P, where=M, initial=S))
out.append(np.R.accumulate(P, dtype=D))|np.R.accumulate(P, out=C)|out.append(np.F.outer(A, B))
np.R.reduce(P[:, None], axis=1, out=C)|np.F.at(A, [0, -1], S)|np.F.at(A, [0, 0], B[:2])
out.append(np.sum(P, dtype=D, where=M))|np.cumsum(P, out=C)|np.sum(P[None], 0, out=C)
out.append(np.concatenate([A, B]))|out.append(np.concatenate([A, B], dtype=D, casting=K))
out.append(np.stack([A, B]))|np.stack([w, w], out=q, casting=K)|out.append(np.append(A, S))
out.append(np.full_like(A, S))|out.append(np.full(len(A), L, dtype=D))|out.append(np.array([S, L]))
out.append(np.array([S, L], dtype=D))|out.append(np.clip(A, 0, S))|np.clip(A, L, S, out=C)
out.append(np.result_type(A, S))|out.append(np.result_type(A, B, L))|out.append(np.can_cast(A, D))
out.append(np.select([M], [A], S))|out.append(np.isin(A, B))|out.append(np.insert(A, 0, S))
np.putmask(A, M, S)|np.put(A, [0, -1], B)|np.place(A, M, [L])|np.take(A, [0, 0], out=C[:2])
out.append(np.searchsorted(np.arange(4).astype(D), A))|out.append(np.diff(P, append=S))
out.append(A OQ S)|out.append(S OQ A)|out.append(A OQ L)|out.append(L OQ A)|out.append(S OQ L)
out.append(A OQ B)|A.real = S|A.imag = S|out.append(np.nan_to_num(A, nan=S))|s = s OQ L
s = A[0] OQ S|out.append(np.ones_like(A, dtype=D) OQ B)|out.append(A.view(A.dtype))
out.append(A[0] OQ B[-1])
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


class Mixes(Maker):
    """One function of arrays x, y, z, w, of which w stays, a matrix q, a mask m, and numbers."""

    def __init__(self, rng: random.Random):
        super().__init__(rng, True)
        self.is_whole = self.once_in(4)
        self.has_special = not self.is_whole and self.once_in(3)
        self.dtypes = WHOLE if self.is_whole else DTYPES
        self.castings = CASTINGS[:-2] if self.is_whole else CASTINGS
        self.sizes = self.of(((2, 3, 5, 7, 12), (2, 3, 5, 7, 12), (0, 1, 2, 5, -1), (-1,)))

    def made(self, shape: tuple[int, ...], dtype: str) -> str:
        """An argument."""
        number = {"?": "b"}.get(dtype, dtype[0])
        special = f", {SPECIAL[number]}" if self.has_special and self.pick(2) else ""
        return f"data({shape}, {dtype!r}, {self.pick(8)}{special})"

    def word(self, letter: str) -> str:
        """What stands for a letter of a statement."""
        view = self.of(["{}", "{}", "{}", "{}[::-1]", "{}[:]", "{}.copy()", "q[0]", "q[-1]"])
        name = self.of("xyz")
        return {
            "A": view.format(name), "B": view.format(self.of("xyzw")), "C": self.of("xyz"),
            "P": self.of(["w", "w", "w[::-1]"]), "M": self.of(["m", "m", "~m", "m[::-1]"]),
            "S": self.of(["s", "s", "v", "w[0]", "np.uint8(3)", "np.float32(1.5)"]),
            "F": self.of(BINARY), "G": self.of(UNARY), "R": self.of(REDUCED),
            "K": self.of(self.castings),
            "D": repr(self.of(self.dtypes)),
            "OP": self.of(["+=", "-=", "*=", "//=", "&=", "/=", "<<="]),
            "OQ": self.of(["+", "-", "*", "//", "%", "&", "/", "<", "==", "|"]),
            "L": self.of(["2", "1", "0", "True", "0.5", "-1", "3", "1j", "300", "-0.25"]),
        }[letter]  # fmt: skip

    def statement(self) -> None:
        text = self.of(STATEMENTS)
        if "out=C, where" in text or "C, where=M" in text:  # which does not lie in what is read
            text = text.replace("A", "w").replace("B", "w")
        if "L, C, where=M" in text:  # NumPy crashes where such a number is beyond the dtype
            text = text.replace("F", self.of([f for f in BINARY if f not in COMPARED]))
        words, k = [], 0
        while k < len(text):
            end = k
            while end < len(text) and text[end].isalnum():
                end += 1
            word = text[k:end]
            letter = word in ("OP", "OQ") or (len(word) == 1 and word in "ABCPMSFGRKDL")
            words.append(self.word(word) if letter else word or text[k])
            k = max(end, k + 1)
        if text.startswith("A OP") and words[0].endswith(")"):
            words[0] += "[...]"
        if text.startswith("A.fill") and -1 in self.sizes and words[0].startswith("q"):
            words[0] += "[...]"  # of a scalar: see docs/deviations.md, "isinstance and type"
        with self.block("try:"):
            self.put("".join(words))
        with self.block("except Exception as e:"):
            self.put("out.append(type(e).__name__)")

    def source(self) -> str:
        """The module."""
        self.depth = 0
        arguments = "x, y, z, w, q, m, s, v"
        with self.block(f"def program({arguments}):"):
            self.put("out = []")
            for _ in range(3 + self.pick(7)):
                self.statement()
            self.put("return out, s")
        self.lines += ["", ""]
        with self.block("def history():"):
            for call in range(4):
                if call in (0, 2):
                    n = self.of(self.sizes)
                    shape = (n,) if n >= 0 else ()
                    types = [self.of(self.dtypes) for _ in range(5)]
                made = [self.made(shape, t) for t in types[:4]]
                self.put(f"x, y, z, w = {', '.join(made)}")
                self.put(f"q = {self.made((2, *shape), types[4])}")
                self.put(f"m = np.asarray(data({shape}, 'i8', {self.pick(8)}) > 0)")
                numbers = ["2", "0.5", "True", "np.int8(2)"]
                numbers += {-1: ["w[()]", "y.item()", "z"], 0: [], 1: ["w[-1]", "y[0]"]}.get(
                    n, ["w[-1]", "y[0]", "z[1]"]
                )
                self.put(f"s, v = {self.of(numbers)}, {self.of(numbers)}")
                self.put(f"yield {arguments}")
        head = ["import math", "", "import numpy as np", DATA, ""]
        return "\n".join([*head, *self.lines, ""])


def program(rng: random.Random) -> Program:
    """A program of mixed dtypes."""
    source = Mixes(rng).source()
    return Program(source, not any(text in source for text in ("c8", "c16", "1j")))
