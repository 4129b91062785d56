"""Programs of Python's state: dicts, lists, objects, generators, errors in loops, drawn numbers."""

from __future__ import annotations

import random
import re

from .maker import DATA, Maker, Program

WORLD = '''
class Tank:
    """An array with a level, which refuses what does not fit."""

    def __init__(self, v, level=0):
        self.v, self._level, self.log = v, level, []

    @property
    def level(self):
        return self._level

    @level.setter
    def level(self, value):
        if value > 9:
            raise ValueError(f"level {value}")
        self.log.append(value)
        self._level = value

    @property
    def free(self):
        return self.v[: max(len(self.v) - int(self.level), 0)]

    def __len__(self):
        return len(self.v)

    def __getitem__(self, k):
        return self.v[k]

    def __call__(self, by):
        self.free[...] += by
        return self


def fill(v, by):
    v[::2] += by
    v[-1:] *= 2
    return v[::-1]


def first(values, least, otherwise=None):
    for k, value in enumerate(values):
        if value >= least:
            break
    else:
        return otherwise
    return k, value


def steps(v, most=4):
    k = 0
    while k < most:
        sent = yield v[k % len(v)] if len(v) else k
        k += 1 if sent is None else sent


def add_to(table, key, value):
    table[key] = table.get(key, 0) + value
    return len(table)


def checked(value, bound):
    assert value < bound, "beyond"
    return value
'''
# A: an array or a view of one; B: one of its length; W: an array that is written to; I: integers;
# K: a place; N, J: integers; S: a number; Y: a key; OP, OQ: operators.
STATEMENTS = """
W[K] = S|W[K] OP S|W[K] = W[J] OQ S|A OP S|A OP B|W[::-1] OP A|W[1:] OP W[:-1]|W[::-2] = S
I[K] = N|I[K] += N|I[N:J] += 1|I[::-1] OP N|x, w = w, x|x[:] = x[::-1]|W[I % len(W)] += S
fill(A, S)|r = fill(A, S); r[:1] = S|fill(o.v, N)|fill(o.free, S)|fill(W[J:], t)
fill(d.get(Y, x), S)
o.level = N|o.level += J|o.level -= t|o(S)|o(N)(J)|o.v = W|o.v[K] = o[J]|o.free[:] = S
out.append(o.level)|out.append(len(o))|out.append(o[K])|out.append(o.free.sum())|o = Tank(W, N)
o.log[-1] = S|o._level = N|out.append(list(o.log))|t = o.level|n = len(o.free)
d[Y] = S|d[Y] += N|d[Y] = W|d.setdefault(Y, []).append(N)|n = add_to(d, Y, N)|t = d.get(Y, t)
d.pop(Y)|d.pop(Y, None)|del d[Y]|out.append(d[Y])|out.append(Y in d)|out.append(sorted(d))
d.update({Y: N})|d = dict(d)|d = {k: v for k, v in d.items() if k != Y}|out.append(len(d))
l.append(S)|l.append(N)|t = l.pop()|l.pop(0)|l[K] = S|l[K] += N|out.append(l[J])|l.insert(0, N)
l.extend(range(min(N, 4)))|l = l[::-1]|l += [S]|l.sort(key=abs)|l = (l * 2)[:9]|del l[K]
out.append(sum(l))
l.reverse()|out.append(l[N:J])|l[1:3] = [S]|out.append(max(l, default=N))|l = [v * N for v in l]
out.append(N in l)|n = l.index(S)|l.remove(N)|l.clear()|l = sorted(set(l))|out.append(l.count(N))
out.append(first(A, S))|out.append(first(l, N, S))|k = first(A, N, (0, 0)); n = k[0]
g = steps(A); out.append(next(g)); out.append(g.send(J))|out.extend(steps(A, N))
g = steps(l); next(g); W[0] = next(g)|out.append(sum(steps(A)))|a, *b = steps(A, 3); out.append(b)
for v in steps(A): t = v OQ S|out.append([v for v in steps(I) if v > N])|g.close()
out.append(next(steps(A, 0), S))|out.append(dict(zip('abc', steps(A))))
t = checked(t, J)|n = checked(N, J)|out.append(checked(A[0], S))|n = N OQ J|t = t OQ S
big = big * 3 + N|big = big OQ J|out.append(big)|big //= 2|out.append(big % 1000)|n = int(big % 7)
out.append(big > N)|W[K] = big|big = big & 0xFFFF|big = -big|big ^= N|out.append(N << (J & 7))
c = c * S|c = c OQ S|out.append(c.real)|out.append(abs(c))|W[K] = c.imag|c = complex(t, N)
out.append(S == c)|c = c.conjugate()|out.append(c)|b = not b|b = N > J|b |= t > 0|out.append(b OQ N)
n += b|W[K] = b|out.append(N OQ S)|out.append(S OQ S)|out.append(W[K] OQ S)|out.append(I[K] OQ S)
out.append(divmod(N, J))|out.append(round(t, 1))|out.append(int(t))|out.append(N ** 2)
out.append(N / J)|out.append(math.floor(t))|out.append(bool(A[K]))|n = int(W[K])|t = float(I[K])
n = min(N, J)|t = max(t, S)|out.append(f'{N}')|out.append(N if b else S)|n = ~N|out.append(-b)
t = W[K]|n = I[K]|t = A.sum()|n = A.argmax()|out.append(A.max())|out.append((A > S).any())
np.add.at(W, I % len(W), S)|np.subtract.at(W, [K, J], B[:2])|np.maximum.at(I, [0, -1], N)
out.append(np.add.reduceat(A, [0, K]))|out.append(np.maximum.reduceat(A, [0, 0]))
np.cumsum(A, out=W)|A.cumsum(out=W)|A.sum(out=W[K])|np.add(A, S, out=W)|A.clip(N, J, out=W)
np.maximum(A, B, W)|A.round(out=W)|A.take(I % len(A), out=W, mode='clip')|A.max(out=W[:1][0])
np.multiply(A, S, out=W, where=A > N)|np.copyto(dst=W, src=A)
np.clip(a=A, a_min=N, a_max=None, out=W)
np.sum(a=A, axis=0, keepdims=True)|W.sort(kind='stable')|W.fill(S)|np.put(a=W, ind=[K], v=S)
out.append(rng.random())|W[K] = rng.random()|n = int(rng.integers(0, 5))|I[K] = rng.integers(9)
W += rng.random(len(W))|t = rng.normal()|l.append(rng.uniform(-1, N))|rng.shuffle(I)
out.append(rng.choice(3))|out.append(rng.permutation(3))|np.random.seed(N); t = np.random.rand()
np.random.seed(J); out.append(np.random.randint(0, 9, 3))|W[K] = np.random.default_rng(N).random()
W[rng.integers(len(W))] OP S|rng.random(out=W)|out.append(rng.standard_normal(2))
raise KeyError(N)|raise ValueError|continue|break|return out, t|out.append(W[N:J].copy())
out.append(A)|out.append(A[::-1])|out.append(W[K:])|out.append(I[::-1])|w = W.copy()|x = x[::-1]
x = x + 0|x = x[: max(len(x) - 1, 1)]|w = w[1:]|x = np.concatenate([x, w])|y = y[::-1]|y = y * 1
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
LOOPS = """
for i in range(min(J, 6))|for i in range(len(x))|for i in range(len(x) - 1, -1, -1)
for i in range(5, 0, -2)
for i, v in enumerate(A)|for v in l[:4]|for i in I[:3].tolist()|for key, value in list(d.items())
while n < 7 and len(out) < 40|while t > 0.5 and len(out) < 30|for v in steps(A)
for i, v in zip(I, A)
for i in (2, 0, -1)|for key in sorted(d)|for i in [0, 3, 1]
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
TESTS = "N > J|t > S|b|not b|i == 2|W[K] > S|Y in d|l|len(out) > 5|I[K] == N|big > 99|N % 2"
ERRORS = "IndexError|(IndexError, KeyError)|ZeroDivisionError|ValueError|Exception|ArithmeticError"
ARGUMENTS = "x, w, y, d, l, o, n, t, big, c"


class States(Maker):
    """One function of arrays x, w, integers y, a dict, a list, an object, and numbers."""

    loops: int = 0

    def word(self, letter: str) -> str:
        """What stands for a letter."""
        name = self.of("xxw")
        views = ["{}", "{}", "{}", "{}[::-1]", "{}[1:]", "{}[::2]", "{}[:0]", "{}[::-2]", "o.v"]
        return {
            "A": self.of(views).format(name), "B": self.of(["w", "x", "w[::-1]", "x[:]"]),
            "W": self.of(["x", "w", "w", "o.v"]), "I": "y",
            "K": self.of(["i", "i", "-1", "0", "n", "i - 1", "-i", "n % 3"]),
            "N": self.of(["n", "i", "2", "3", "1", "len(l)", "0"]),
            "J": self.of(["3", "n", "5", "i + 1", "1", "-2"]),
            "S": self.of(["t", "n", "0.5", "2", "-1.25", "big", "True", "c", "x[0]", "y[-1]", "1j",
                          "2**70", "i", "np.float32(0.5)", "np.int64(3)"]),
            "Y": self.of(["'a'", "'b'", "'v'", "n", "i", "(1, 2)"]),
            "OP": self.of(["+=", "-=", "*=", "//=", "/=", "%=", "="]),
            "OQ": self.of(["+", "-", "*", "//", "%", "/", "<", "==", "|", "&", "-"]),
        }[letter]  # fmt: skip

    def filled(self, text: str) -> str:
        def of(m: re.Match) -> str:
            return m[0] if m.start() and text[m.start() - 1] in ".'" else self.word(m[0])

        return re.sub(r"\b(OP|OQ|[ABWIKNJSY])\b", of, text)

    def statements(self, most: int) -> None:
        for _ in range(1 + self.pick(most)):
            self.statement()

    def statement(self) -> None:
        kind = self.pick(16)
        if self.depth > 4 or kind < 9:
            self.simple()
        elif kind < 12:
            with self.block(f"{self.filled(self.of(LOOPS))}:"):
                self.put("out.append(n)")
                self.loops += 1
                self.statements(4)
                self.put(self.of(["n += 1", "t = t * 0.5", "n, t = n + 1, t - 0.5"]))
                self.loops -= 1
            if self.once_in(4):
                with self.block("else:"):
                    self.simple()
        elif kind < 14:
            with self.block("try:"):
                self.statements(3)
            with self.block(f"except {self.of(ERRORS.split('|'))} as e:"):
                self.put("out.append(type(e).__name__)")
                if self.once_in(3):
                    self.simple()
            if self.once_in(4):
                with self.block(self.of(["else:", "finally:"])):
                    self.put("out.append(n)")
        else:
            with self.block(f"if {self.filled(self.of(TESTS.split('|')))}:"):
                self.statements(2)
            if self.once_in(2):
                with self.block("else:"):
                    self.statements(2)

    def simple(self) -> None:
        while True:
            text = self.of(STATEMENTS)
            leaves = text in ("continue", "break") and not self.loops
            if not leaves and not (text.startswith(("raise", "return")) and self.pick(4)):
                break
        text = self.filled(text)
        for line in [text] if text.startswith("for ") else text.split("; "):
            self.put(line)

    def source(self) -> str:
        """The module."""
        self.depth = 0
        with self.block(f"def program({ARGUMENTS}):"):
            self.put("out, i, b, rng = [], 0, True, np.random.default_rng(7)")
            self.statements(9)
            self.put(self.of(["return out, x, w, n, t", "return out, d, l, o",
                              "return big, c, b, out",
                              "return out, x[::-1], o.free"]))  # fmt: skip
        self.lines += ["", ""]
        with self.block("def history():"):
            for call in range(4):
                if call in (0, 2):
                    n = self.of((1, 3, 4, 6)) if self.pick(20) else 0
                    f, j = (
                        self.of(["f8", "f8", "f8", "f4", "i8"]),
                        self.of(["i8", "i8", "i4", "u1"]),
                    )
                x, w = (self.laid_out((n,), f) for _ in range(2))
                self.put(f"x, w, y = {x}, {w}, np.abs({self.laid_out((n,), j)})")
                self.put(
                    f"d = {self.of(['{}', repr({'a': 1, 'b': 2.5}), '{1: w}', '{0: 3, 2: x}'])}"
                )
                self.put(f"l = {self.of(['[]', '[1, 2, 3]', '[0.5, -1.0]', '[2, 0.25]'])}")
                self.put(f"o = Tank({self.of(['x', 'w', 'w[::-1]'])}, {self.pick(3)})")
                self.put(f"n, t = {self.pick(5)}, {self.of(['1.5', '-0.75', '2.0', '3.25'])}")
                big = self.of(["7", "2**40 + 1", "2**66", "-5"])
                self.put(f"big, c = {big}, {self.of(['1j', '0.5 - 2j', '2 + 0j'])}")
                self.put(f"yield {ARGUMENTS}")
        return "\n".join(["import math\n\nimport numpy as np", DATA + WORLD, "", *self.lines, ""])


# What may be added in another order.
_SUMS = ("sum", "add.at", "subtract.at", "reduceat", "rng.", "np.random", "% len(W)")


def program(rng: random.Random) -> Program:
    """A program of Python's state."""
    while True:
        source = States(rng, True).source()
        try:
            compile(source, "states", "exec")
        except SyntaxError:  # a `break` beside a loop, a store into a literal
            continue
        within = source[source.index("def program") : source.index("def history")]
        return Program(source, not any(word in within for word in _SUMS))
