"""Programs that go on with what earlier calls left: solvers, rings, tables, buffers for `out=`."""

from __future__ import annotations

import random
import re
import warnings

from .maker import DATA, Maker, Program

WORLD = '''
class Ring:
    """Rows, of which the oldest is overwritten."""

    def __init__(self, rows):
        self.rows, self.at = rows, 0

    @property
    def full(self):
        return self.at >= len(self.rows)

    @property
    def last(self):
        return self.rows[(self.at - 1) % len(self.rows)]

    @last.setter
    def last(self, row):
        self.rows[(self.at - 1) % len(self.rows)] = row

    def push(self, row):
        self.rows[self.at % len(self.rows)] = row
        self.at += 1
        return self

    def __iter__(self):
        for k in range(min(self.at, len(self.rows))):
            yield self.rows[(self.at - 1 - k) % len(self.rows)]

    def __len__(self):
        return min(self.at, len(self.rows))


class Solver:
    """A grid, a state and buffers, with what has been done to them."""

    bound = 4.0

    def __init__(self, grid, state, ring):
        self.grid, self.state, self.ring = grid, state, ring
        self.count, self.log, self._work = 0, [], None

    @property
    def work(self):
        if self._work is None or self._work.shape != self.state.shape:
            self._work = np.empty_like(self.state)
            self._work[...] = 0
        return self._work

    @work.deleter
    def work(self):
        self._work = None

    @property
    def inner(self):
        return self.grid[1:-1, 1:-1]

    @inner.setter
    def inner(self, values):
        self.grid[1:-1, 1:-1] = values

    @property
    def worst(self):
        return np.abs(self.grid).max(initial=0)

    def halve(self, most):
        k = 0
        while True:
            if k >= most:
                self.log.append("late")
                break
            if self.worst < self.bound:
                break
            self.grid //= 2
            k += 1
        self.count += k
        return k

    def spread(self, by):
        for k in range(1, len(self.state)):
            self.state[k] += self.state[k - 1] * by
            if self.state[k] > 99:
                self.state[k:] = 1
                break
        else:
            self.count += 1
        return self.state

    def into(self, function, *args, out=None, **more):
        out = self.work if out is None else out
        function(*args, out=out, **more)
        return out

    def grown(self, n):
        if n > len(self.state):
            wider = np.zeros(n, self.state.dtype)
            wider[: len(self.state)] = self.state
            self.state = wider
        return self

    def kept(self, key, make):
        found = self.__dict__.get(key)
        if found is None or found.shape != self.state.shape:
            found = self.__dict__[key] = make(self.state)
        return found


def place(v, least, low=0):
    high = len(v)
    while low < high:
        middle = (low + high) // 2
        if v[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


def settled(v, w, most=5):
    for k in range(most):
        before = v.copy()
        np.maximum(v[1:], v[:-1], out=v[1:])
        np.minimum(v, w, out=v, where=w > 0)
        if not (v != before).any():
            return k
    return -1
'''
# V, Y: vectors that are read; W: one that is written to; G, H: matrices, likewise; C: an array of
# three axes; M, B: masks of vectors and of matrices; X, A: an axis of a matrix, of a cube; U: an
# array of unsigned integers; Z: one of complex numbers; N, K: integers; T: a number; D: a dtype;
# F, E: functions of two and of one; R: one that is reduced by; OP, OQ: operators; L: a literal.
STATEMENTS = """
np.F(V, Y, out=W)|np.F(V, T, out=W, casting='unsafe')|np.F(V + 0, Y + 0, out=W, where=M)
np.F(V + 0, Y + 0, W, where=M, casting='unsafe')
np.E(V, out=W, casting='unsafe')|np.E(V + 0, out=W, where=M)
np.F(G, V, out=H)|np.F(G + 0, G.T + 0, out=H, where=B)|np.F(G, T, out=H[::-1], casting='unsafe')
np.F(V[1:], Y[:-1], out=W[1:])|np.F(W[1:], T, out=W[:-1])|np.F(V, Y, dtype=D, casting='unsafe')
s.into(np.F, V, Y)|s.into(np.F, V + 0, Y + 0, where=M)|s.into(np.E, V, out=W)
s.into(np.F, V, T, out=W[::-1])
s.into(np.cumsum, V)|s.into(np.clip, V, N, 3)|s.into(np.take, V, [0] * len(V), mode='clip')
s.into(np.sum, G, axis=X)|s.into(np.max, G, axis=X)|s.into(np.R.accumulate, V)
s.into(np.R.reduce, G, axis=X)|s.into(np.matmul, G, V)|s.into(np.copysign, V, Y, out=W)
np.sum(G, axis=X, out=W)|np.max(G, axis=X, out=W)|np.any(G, axis=X, out=W > 0)
np.R.reduce(G + 0, axis=X, out=W, where=B, initial=N)|np.R.reduce(C, axis=(0, -1), out=W)
np.sum(G, axis=X, keepdims=True, out=H[:1] if X == 0 else H[:, :1])|np.cumsum(G, axis=X, out=H)
np.argmax(G, axis=X, out=k)|np.argsort(V, kind='stable')|np.concatenate([V + 0, Y + 0], out=buf)
np.stack([V + 0, Y + 0], axis=-1, out=buf.reshape(-1, 2))|np.copyto(W, Y, where=M, casting='unsafe')
np.copyto(H, V[:, None], where=B, casting='unsafe')|np.round(V, 1, out=W)|np.mean(G, axis=X, out=W)
np.divmod(V, Y, out=(W, buf[: len(V)]))|np.divmod(V, 2)|np.modf(V, out=(W, W[::-1]))
np.where(M, V, Y)|np.where(M, V, L)|np.where(B, G, V)|np.where(M[:, None], G, T)
np.sum(G, axis=X, keepdims=True)|np.sum(C, axis=(-1, 0), keepdims=True)|np.sum(G, X, dtype=D)
np.max(C, axis=A, keepdims=True)|np.min(C, A)|np.prod(C, axis=A, dtype=D)|np.any(C, axis=(-1, -2))
np.cumsum(C, axis=A, dtype=D)|np.mean(C, axis=A, keepdims=True, where=C > 0)|np.ptp(C, axis=A)
np.argmax(C, axis=A, keepdims=True)|np.argmin(G, axis=X)|np.sort(C, axis=A)|np.flip(C, axis=A)
np.diff(C, axis=A)|np.roll(C, N, axis=A)|np.moveaxis(C, A, 0)|np.take(C, [0, -1], axis=A)
np.count_nonzero(C, axis=A, keepdims=True)|np.expand_dims(G, A)|np.concatenate([C, C], axis=A)
np.R.reduce(C, axis=A, keepdims=True)|np.R.accumulate(C, axis=A)|np.all(C, axis=A, where=C != 0)
np.linalg.norm(C, axis=A)|np.std(C, axis=A, keepdims=True)|np.var(G, axis=X, ddof=1)
W[K] = T|W[K] OP T|W[M] = T|W[M] OP V[M]|W OP V|W[::-1] OP V|W[::2] = L|W[...] = Y|W OP T
H OP V|H OP G.T|H OP V[:, None]|H[B] OP T|H[K] = V|H[:, K] OP Y|H[::-1] = G|H[B] = L
H[K, ::-1] OP V|H[[0, -1]] = V|H.T[K] = Y|H[np.arange(n), K] = V|H.flat[K] = T|H.flat = V
np.fill_diagonal(H, T)|np.fill_diagonal(H, V)|H.fill(T)|W.sort()|W[::-1].sort()|H.sort(axis=X)
np.add.at(W, [0, K, 0], T)|np.F.at(W, [K, 0], T)|np.maximum.at(H, (slice(None), K), V)
U OP N|U OP U[::-1]|U[K] OP 200|U -= U[:1]|U *= U|U <<= 1|U ^= 255|-U|~U|U - N|U * 3 + U|N - U
U[K] - U[0]|U[0] * 7|U.sum()|U.cumsum()|U.sum(dtype=U.dtype)|np.subtract(U, N, out=U)|U // 0|U % 0
np.add(U + 0, U + 0, out=U, where=U > 3)|U.prod(dtype='u1')|U.astype('i1')
U.view('i1') if 'u1' == U.dtype else 0|np.add(U, U[0], out=U)|U >> 1|U @ U|np.invert(U, out=U)
np.left_shift(U, 3, out=U)|np.negative(U, out=U)|np.square(U)|U ** 2|np.diff(U)|abs(U - U[::-1])
Z OP T|Z *= 1j|Z.real = V[: len(Z)]|Z.imag OP T|Z.imag[::-1] = 0|Z.conj()|abs(Z)|Z.real.max()
np.where(Z == Z[::-1], Z, 0)|np.conjugate(Z, out=Z)|Z + 1j * V[: len(Z)]|Z.sum()|Z == Z.real|Z[K]
np.sort(Z)|np.maximum(Z, 1j)|np.angle(Z)|np.iscomplex(Z)|Z.cumsum()|np.multiply(Z, Z, out=Z)
Z[K].real|Z[K] * 2j + T|Z.T @ Z|np.vdot(Z, Z)|complex(Z[K])
np.isnan(V)|np.nan_to_num(V, nan=T)|np.fmax(V, Y)|np.nanmax(G, axis=X)|np.nansum(C, axis=A)
W[np.isnan(W)] = 0|V == V|np.isfinite(G).all(axis=X)|np.isinf(V).any()|np.clip(V, -1, Y)|V.argmax()
np.signbit(V)|np.nanmin(V, initial=N)|np.minimum(V, np.nan)|max(V, default=0)|sorted(V[:4])
np.array_equal(V, Y, equal_nan=True)|np.unique(V)|np.nanargmax(V)|V[0] != V[0]|np.float32(V[K])
s.halve(N)|s.spread(0.5)|s.spread(N)|s.ring.push(V)|s.ring.push(N).push(Y)|s.ring.last = V
s.ring.last OP T|s.ring.last[::-1] OP V|s.inner = T|s.inner OP N|s.inner[...] = s.inner.T|s.worst
s.state = V|s.state = s.state[::-1]|s.state = s.state.astype(D)|s.grid = s.grid.T|s.grid = G
s.grid = np.asfortranarray(G)|s.state, s._work = s.work, s.state|del s.work|s.grown(len(V) + N)
s.ring.full|len(s.ring)|[v.max(initial=0) for v in s.ring]|sum(v[0] for v in s.ring)|s.count
list(s.ring)|s.log.append(K)|s.log.append(V[K])|s.kept('a', np.zeros_like) OP T|s.kept('b', np.copy)
s.kept('c', lambda v: v * 2)[K] = T|s.bound = N|s.count OP N|s.count %= 5|s.state[s.count % n] = T
d['v'] = W|d['v'] OP T|d['n'] = d.get('n', 0) + N|d.setdefault('w', V.copy())[K] = T|d['v'][...] = Y
d[K] = V[K]|d.pop('n', None)|d['z'] = s|len(d)|d['g'] = H; d['g'][K] OP T|sorted(map(str, d))
d['v'].sum()|d['m'] = M; W[d['m']] = T|d['a'], d['v'] = d['v'], V|d.update(v=d['v'][::-1])
place(np.sort(V), T)|place(np.sort(V), T, 1)|settled(W, Y)|settled(s.state, V)|settled(W, W[::-1])
V.dtype|V.shape, G.strides == G.copy().strides|G.flags.f_contiguous|G.T.ravel(order='K')
G.ravel(order='F')|G.reshape(-1, order='A')|G.copy(order='K').flags.f_contiguous|G.flatten('F')
np.array(G, order='F').T|np.add(G, 1, order='F').flags.f_contiguous|G + G.T|G @ G|G.sum()|G.max(X)
(G + 1).flags.c_contiguous|np.zeros_like(G).flags.f_contiguous|np.multiply(G, T, order='C')
x, y = y, x|x = x[::-1]|y = y.copy()|g = g.T|c = c.transpose(2, 1, 0)|x = np.flip(y)|m = ~m
m &= x > T|n = len(x)|t = V[K]|t = V.max(initial=0)|t = float(W[K])|k = V.argmin()|m[K] = T > 0
m ^= V > Y
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
LOOPS = """
while len(out) < 30 and t > 0.5: t = t * 0.5 - 0.25|while s.worst > N and s.count < 9: s.count += 1
while True: s.count += 1; if s.count % 4 == 0: break|for i in range(1, n): W[i] OP W[i - 1]
for i in range(n): if V[i] > T: break|for i in range(n - 1, -1, -1): if M[i]: continue
for v in G: if v.max(initial=0) > T: break|for v in s.ring: v OP 1
for i, v in enumerate(V): H[i] OP v|for i in range(n): W[i] OP G[i].max()
for v, w in zip(G, H): w[...] = v[::-1]|for i in (0, -1, 1): U[i] OP 3
while k < n: k += 1; if V[k - 1] == Y[k - 1]: continue
for name in list(d): d.pop(name) if N > 2 else 0
for i in range(n): for j in range(i): H[i, j] = G[j, i]; if G[i, j] > T: break
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "fmax", "floor_divide", "remainder",
          "less", "equal", "not_equal", "logical_and", "logical_xor", "divide", "copysign",
          "fmin", "greater_equal", "hypot")  # fmt: skip
UNARY = ("negative", "absolute", "square", "sign", "floor", "ceil", "rint", "isnan", "isfinite",
         "logical_not", "positive", "conjugate", "trunc", "sqrt", "reciprocal")  # fmt: skip
REDUCED = ("add", "maximum", "minimum", "multiply", "logical_or", "logical_and", "fmax")
DTYPES = ("f8", "f4", "i8", "i4", "i2", "u1", "c16", "?")
# What is added or rounded in another order, or in another way; only programs of rounded results
# have it.
_ROUNDED = re.compile(
    r"sum|mean|std|var\(|norm|@|matmul|hypot|add\.re|add\.acc|vdot|angle|prod|multiply\.|\*\*"
)
ARGUMENTS = "s, d, x, y, g, c, m, u, z, buf, n, t"


class Sessions(Maker):
    """A function of a solver, a dict, vectors, a matrix, a cube, a mask, buffers, and numbers."""

    looping = 0

    def word(self, letter: str) -> str:
        """What stands for a letter."""
        read = ["x", "x", "y", "s.state", "s.work", "x[::-1]", "g[0]", "g[:, -1]", "y[:]", "d['v']",
                "s.ring.last", "s.grid[-1]", "x + 0", "c[0, :, 0]"]  # fmt: skip
        write = ["x", "y", "y", "s.state", "s.work", "y[::-1]", "s.grid[0]", "g[:, 0]", "d['v']",
                 "s.ring.last", "c[1, :, -1]"]  # fmt: skip
        matrix = ["g", "g", "s.grid", "g.T", "g[::-1]", "c[:, :, 0].T @ c[:, :, 0]", "s.grid.T"]
        if self.exact:
            matrix = [v for v in matrix if "@" not in v]
        return {
            "V": self.of(read), "Y": self.of(read), "W": self.of(write), "G": self.of(matrix),
            "H": self.of(["g", "s.grid", "s.grid", "g.T", "g[:, ::-1]"]),
            "C": self.of(["c", "c", "c.T", "c[:, ::-1]", "c[..., ::2]"]),
            "M": self.of(["m", "m", "~m", "x > 0", "s.state != 0", "m[::-1]", "(y > 0)"]),
            "B": self.of(["(g > 0)", "(s.grid > 1)", "m", "m[:, None]", "(g == g.T)"]),
            "X": self.of(["0", "1", "-1", "-2"]), "A": self.of(["0", "-1", "-2", "-3", "1"]),
            "U": "u", "Z": "z", "N": self.of(["n", "2", "3", "1", "k", "s.count"]),
            "K": self.of(["0", "-1", "k % len(x)", "1", "-2", "k"]),
            "T": self.of(["t", "n", "0.5", "2", "-1.25", "x[0]", "np.float32(1.5)", "True"]),
            "D": repr(self.of(DTYPES)), "F": self.of(BINARY), "E": self.of(UNARY),
            "R": self.of(REDUCED), "L": self.of(["0", "1.5", "-1", "np.nan", "300", "1j", "False"]),
            "OP": self.of(["+=", "-=", "*=", "//=", "=", "/=", "|=", "%="]),
            "OQ": self.of(["+", "-", "*", "<", "=="]),
        }[letter]  # fmt: skip

    def filled(self, text: str) -> str:
        """A statement with words for its letters."""
        axes: dict[str, str] = {}

        def of(found: re.Match) -> str:
            letter = found[0]
            if letter in "XFR":  # one for each statement
                return axes.setdefault(letter, self.word(letter))
            return self.word(letter)

        pattern = r"(?<!['\w])(OP|OQ|[VYWGHCMBXAUZNKTDFERL])(?!['\w])"
        text = re.sub(r"\.T\b", ".\0", text)
        return re.sub(pattern, of, text).replace(".\0", ".T")

    def simple(self) -> None:
        while True:
            text = self.filled(self.of(STATEMENTS))
            if not (self.exact and _ROUNDED.search(text)):
                break
        for line in text.split("; "):
            stores = re.search(r"[^=!<>]=[^=]", re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", line))
            if stores or line.startswith("del "):
                self.put(line)
            else:
                self.put(f"out.append({line})")

    def statement(self) -> None:
        kind = self.pick(14)
        if self.depth > 3 or kind < 10:
            self.simple()
        elif kind < 13:
            self.loop()
        else:
            with self.block(self.filled("if " + self.of(["M.any():", "N > 2:", "T > 0:", "s:"]))):
                self.simple()
            with self.block("else:"):
                self.simple()

    def loop(self) -> None:
        head, _, rest = self.filled(self.of(LOOPS)).partition(": ")
        with self.block(f"{head}:"):
            inner = rest.split("; ")
            self.nested(inner)
            if self.once_in(2):
                self.simple()
        if self.once_in(4):
            with self.block("else:"):
                self.simple()

    def nested(self, lines: list[str]) -> None:
        """Lines of which the ones with a colon are blocks of the rest, or of one."""
        while lines:
            line = lines.pop(0)
            opened, colon, body = line.partition(": ")
            if not (colon and opened.startswith(("if ", "for "))):
                self.put(line)
                continue
            with self.block(f"{opened}:"):
                if opened.startswith("for "):
                    self.nested([body, *lines])
                    lines = []
                else:
                    self.put(body)

    def matrix(self, n: int, dtype: str) -> str:
        return self.laid_out((n, n), dtype)

    def world(self, n: int, dtypes: list[str]) -> None:
        """A new solver and dict."""
        f, g = dtypes[:2]
        self.put(f"ring = Ring({self.laid_out((self.of([1, 2, 3]), n), f)})")
        self.put(f"s = Solver({self.matrix(n, g)}, {self.laid_out((n,), f)}, ring)")
        self.put(f"d = {{'v': {self.of(['s.state', 's.grid[0]', self.laid_out((n,), f)])}}}")

    def arguments(self, n: int, dtypes: list[str]) -> None:
        f, g, h = dtypes
        self.put(f"x, y = {self.laid_out((n,), f)}, {self.laid_out((n,), h)}")
        self.put(f"g, c = {self.matrix(n, g)}, {self.laid_out((2, n, 3), f)}")
        mask = f"data(({n},), '?')"
        self.put(f"m = {self.of(['x > 0', 'y < 1', 'x == x', mask])}")
        unsigned = self.of(["u1", "u1", "u2", "u4", "u8"])
        self.put(f"u = {self.laid_out((max(n, 3),), unsigned)}")
        self.put(f"z = {self.laid_out((n,), self.of(['c16', 'c8']))}")
        self.put(f"buf = {self.laid_out((2 * n,), f)}")

    def source(self) -> str:
        """The module."""
        self.depth = 0
        with self.block(f"def program({ARGUMENTS}):"):
            self.put("out, k = [], 1")
            for _ in range(4 + self.pick(8)):
                self.statement()
            self.put(self.of(["return out, s.state, s.work", "return out, x, y[::-1], t",
                              "return out, s.ring.last, d", "return out, s.grid.T, k, n",
                              "return s, out"]))  # fmt: skip
        self.lines += ["", ""]
        numbers = "ffffffii" if self.exact else "fffi"
        with self.block("def history():"):
            for call in range(6):
                if call in (0, 3, 5):
                    n = self.of((2, 3, 4, 5, 8)) if self.pick(25) else 1
                    dtypes = [self.dtype(self.of(numbers), False) for _ in range(3)]
                    self.world(n, dtypes)
                self.arguments(n, dtypes)
                for _ in range(self.pick(3) if call else 0):
                    with self.block("with contextlib.suppress(Exception):"):
                        self.put(self.of(CHANGES))
                self.put(f"n, t = {self.pick(5)}, {self.of(['1.5', '-0.75', '2.0', '3'])}")
                self.put(f"yield {ARGUMENTS}")
        head = ["import contextlib", "import math", "", "import numpy as np", DATA + WORLD, ""]
        return "\n".join([*head, *self.lines, ""])


# What happens between calls
CHANGES = """
y = x|y = x[::-1]|x = s.state|y = s.state[::-1]|g = s.grid|g = s.grid.T|s.state = s.grid[:, 0]
s.state = s.state.astype('f4')|s.grid = np.asfortranarray(s.grid)|s.grid = s.grid.astype('f8')
s.ring.rows = s.ring.rows[::-1]|d['v'] = x|d['v'] = buf[::2]|d.clear(); d['v'] = y|s.count = 2
s.log = []|s.bound = 2|s._work = x|s.ring.last = 1|m = m[::-1]|m = np.zeros(len(x), bool)
buf = np.concatenate([x, y])|x, y = buf[: len(x)], buf[len(x) :]|u = u[::-1]|z = z.conj()
x.flags.writeable = False|s.state = x.copy()|s.ring = Ring(g)|s.grid[...] = 1|c = c.astype('f4')
c = np.asfortranarray(c)|x, y = g[0], g[:, 0]|g = np.broadcast_to(x, g.shape)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


def program(rng: random.Random) -> Program:
    """A program that goes on with what earlier calls left."""
    exact = rng.random() < 0.6
    while True:
        source = Sessions(rng, exact).source()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                compile(source, "sessions", "exec")
        except SyntaxError:  # a store into a call, or an item of a number
            continue
        return Program(source, exact and "abs(z)" not in source)  # of a complex number
