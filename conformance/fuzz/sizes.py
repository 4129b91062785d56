"""Functions of arrays, called with sizes that are equal, differ, broadcast, overlap, come again."""

from __future__ import annotations

import random

from .maker import DATA, Maker, Program

WORLD = """
class Grid:
    def __init__(self, cells):
        self.cells, self.steps = cells, 0

    @property
    def shape(self):
        return self.cells.shape

    def step(self, by):
        self.steps += 1
        self.cells[1:] += by * self.cells[:-1]
        return self.cells

    def halved(self):
        return self.cells[: len(self.cells) // 2]

    def grown(self, x):
        self.cells = np.concatenate([self.cells, x])
        return self


def spread(x, w):
    out = np.zeros(len(x) + len(w))
    for k in range(len(w)):
        out[k : k + len(x)] += w[k] * x
    return out


def halves(x):
    n = len(x) // 2
    return x[:n] + x[len(x) - n :]


def shrinks(x):
    while len(x) > 2:
        x = x[1:] * 0.5 + x[:-1]
    return x


def runs(x):
    y = np.empty_like(x)
    y[:1] = x[:1]
    for k in range(1, len(x)):
        y[k] = 0.5 * y[k - 1] + x[k]
    return y
"""
# Of arrays r, x, y; a mask m of x; integers n, k; a float t; a total s.
STATEMENTS = [
    ("r = r + y",), ("r = r * y[:1]",), ("r += y[: len(r)]",), ("r = x * y + r[:1]",),
    ("r = r[1:]",), ("r = r[::-1]",), ("r = r[::2]",), ("r = r[n:]",), ("r = r[: len(r) - n]",),
    ("r = r[len(r) // 2 :]",), ("r = np.concatenate([r, x[:n]])",), ("r = np.append(r, y)",),
    ("r = halves(r)",), ("r = spread(r, y)",), ("r = shrinks(r)",), ("r = runs(r)",),
    ("r = np.where(m, x, y)",), ("r = x[m] * t",), ("s += x[m].sum()",), ("x[m] += t",),
    ("x[m] = y[m] if y.shape == m.shape else 0",), ("r = r[r > t]",), ("r = np.sort(r)",),
    ("m = x > y",), ("m &= x < n",), ("k = int(m.sum())",), ("r = r[:k]",),
    ("r = np.zeros(len(x) + n) + len(y)",), ("r = np.full((len(x),), t)",),
    ("r = np.ones(x.shape) * r[:1]",), ("r = np.arange(len(x)) * t",),
    ("r = np.outer(x, y).sum(axis=0)",), ("r = np.outer(r, y).ravel()[: len(r) + n]",),
    ("r = np.outer(r, r).trace() + x",), ("s += r @ r",),
    ("s += (r - r.mean()).sum() if r.size else 1",), ("r = r.reshape(-1, 1)[:, 0]",),
    ("r = np.tile(r, 2)",), ("r = np.repeat(r, n)[: len(x) + 3]",),
    ("r = np.stack([r, r * t]).T[:, 0]",), ("r = np.roll(r, n)",), ("r = np.cumsum(r)",),
    ("r = np.diff(r)",), ("r = r.reshape(len(r) // 2, 2).sum(1) if len(r) % 2 == 0 else r",),
    ("r = np.pad(r, n)",), ("x[1:] = x[:-1]",), ("x[:-1] += x[1:]",),
    ("y[: len(x)] = x[: len(y)]",), ("x += y",), ("x *= y[:1]",), ("y[...] = 0",), ("x[n:] = t",),
    ("x[k : k + n] -= 1",), ("g = Grid(r.copy())", "r = g.step(t) + g.steps"),
    ("g = Grid(x)", "r = g.step(0.5) + g.shape[0]"), ("r = Grid(r).halved()",),
    ("r = Grid(r).grown(y).cells",),
    ("if len(x) == len(y):", "    r = r + 1", "else:", "    r = r * 2"),
    ("if x.shape[0] > 2:", "    r = r + x.shape[0]"), ("if len(r) > 40:", "    r = r[:40]"),
    ("for j in range(len(x)):", "    s += x[j] * t"),
    ("for j in range(n):", "    r = r + j * x[:1]"),
    ("for j in range(len(y)):", "    r = r * 0.5 + y[j]"),
    ("for j in range(1, len(x)):", "    x[j] += x[j - 1] * 0.25"),
    ("for j in range(len(r)):", "    r[j:] -= r[j] * 0.125"),
    ("for j in range(0, len(x), 3):", "    s += x[j : j + 3].sum()"),
    ("while len(r) > 4:", "    r = r[::2] + n"),
    ("while s < n + 0.3:", "    s += 1", "    r = r + s"),  # sums come near to quarters, not to it
    ("while k > 0:", "    k //= 2", "    r = np.append(r, k)"), ("for v in y:", "    s += v"),
    ("for j, v in enumerate(x):", "    s += v * j"), ("for a, b in zip(x, y):", "    s += a * b"),
    ("rows = [x, y, r]", "s += sum(len(v) for v in rows)"),
    ("r = np.array([v.sum() for v in (x, y, r)])",), ("r = r + np.asarray(y).max(initial=0)",),
    ("r = x.astype('f4') + r[:1]",), ("r = np.minimum(x, y)",),
    ("i = np.argsort(x)[:n]", "r = x[i]"), ("i = np.arange(len(x)) // 2", "r = x[i] + r[:1]"),
    ("i = np.nonzero(m)[0]", "x[i] = t"), ("np.add.at(x, np.arange(len(x)) // 2, 1)",),
    ("r = np.linspace(0, t, len(x) + 1)",), ("r = np.eye(len(x), n)[:, :1].ravel() + x",),
    ("r = np.unique(r)",), ("r = r.copy()",),
]  # fmt: skip
GRIDS = [
    ("r = r + y",), ("r = r * y[:1]",), ("r = r.T",), ("r = r @ r.T",), ("r = r[1:, ::2]",),
    ("r = r[:, : r.shape[1] // 2]",), ("r = r.sum(axis=0) + x",),
    ("r = r - r.mean(axis=1, keepdims=True)",), ("x[1:-1, 1:-1] += x[:-2, 1:-1]",), ("x[m] = t",),
    ("r = np.where(m, x, y)",), ("s += x[m].sum()",),
    ("r = r.reshape(-1)[: x.shape[0]][:, None] + x",), ("r = np.vstack([r, r[:1]])",),
    ("r = np.hstack([r, r[:, :n]])",), ("r = r[:, np.newaxis].sum(1)",), ("m = x > y",),
    ("x += y",), ("for j in range(len(x)):", "    x[j] = x[j] + x[j - 1] * 0.5"),
    ("for j in range(r.shape[1]):", "    s += r[:, j].sum()"),
    (
        "for j in range(1, r.shape[0]):",
        "    for i in range(r.shape[1]):",
        "        s += r[j, i] - r[j - 1, i]",
    ),
    ("for row in r:", "    s += row.max(initial=0)"), ("r = np.roll(r, n, 0)",),
    ("r = x[::-1, ::-1] + r[:1, :1]",), ("if r.shape[0] == r.shape[1]:", "    r = r + r.T"),
    ("r = np.pad(r, 1)",), ("r = np.concatenate([r, y], axis=0)",),
    ("r = np.broadcast_to(y, x.shape) * t",),
    ("i, j = np.nonzero(m)", "r = x[i, j]", "r = r[:, None] * r[:2]"),
    ("s += np.einsum('ij,ij->', r, r)",), ("r = r[len(r) // 2 :]",), ("y[...] = x[:1, :1]",),
    ("r = r.copy()",),
]  # fmt: skip
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 29, 31, 64, 97)


class Sizes(Maker):
    """A function of two arrays, a mask, an int and a float, and calls of many sizes. wild: whether
    dtypes and layouts are chosen too."""

    wild = False

    def function(self, axes: int) -> None:
        statements = STATEMENTS if axes == 1 else GRIDS
        lines = [line for _ in range(2 + self.pick(6)) for line in self.of(statements)]
        with self.block("def program(x, y, m, n, t):"):
            begins = ["x * 1.0, 0.0, n", "x + y, 0.0, n", "y.copy(), 0, 1"]
            self.put(f"r, s, k = {self.of(begins)}")
            for line in lines:
                self.put(line)
            results = ["r, s", "r, s, x[1:]", "r, len(x), r.shape", "[r, s, m]", "r + s"]
            self.put(f"return {self.of(results)}")

    def array(self, shape: tuple[int, ...]) -> str:
        """An expression for one of a call."""
        if self.wild:
            return self.laid_out(shape, self.of(["f8", "f8", "f8", "f4", "i8"]))
        return f"data({shape!r}, 'f8', {self.pick(8)})"

    def call(self, shape: tuple[int, ...]) -> None:
        """A call with x of this shape."""
        n = shape[0]
        other = self.of([shape, shape, shape, shape, (1, *shape[1:]), (self.of(SIZES), *shape[1:])])
        kind = self.pick(8)
        if kind == 0 and n < 90:  # overlapping
            self.put(f"z = data({(n + 2, *shape[1:])!r}, 'f8')")
            self.put(f"x, y = z[:{n}], z[{self.of([0, 1, 2])} :][:{n}]")
        elif kind == 1:
            self.put(f"x = {self.array(shape)}")
            self.put("y = x")
        elif kind == 2:
            self.put(f"z = data({(2 * n, *shape[1:])!r}, 'f8')")
            self.put(
                f"x, y = {self.of(['z[::2], z[1::2]', f'z[:{n}], z[{n}:]', f'z[::-2], z[:{n}]'])}"
            )
        else:
            self.put(f"x, y = {self.array(shape)}, {self.array(other)}")
        self.put(f"m = {self.of(['x > 0', 'x > 0', 'x < 1', 'x == x', 'x != x'])}")
        self.put(f"n, t = {self.of([0, 1, 1, 2, 3])}, {self.of(['0.5', '1.5', '2.0'])}")
        self.put("yield x, y, m, n, t")

    def history(self, axes: int) -> None:
        with self.block("def history():"):
            self.wild = self.once_in(3)
            sizes = [self.of(SIZES) for _ in range(4 + self.pick(5))]
            if self.pick(2):  # small ones come when programs for many sizes are there
                sizes = [11, 13, *sizes]
            for n in sizes:
                shape = (n,) if axes == 1 else (n, self.of([n, n, 3, self.of(SIZES[:9])]))
                for _ in range(self.of([1, 1, 2, 3])):
                    self.call(shape)

    def source(self) -> str:
        """The module."""
        self.depth = 0
        axes = self.of([1, 1, 2])
        self.function(axes)
        self.put("")
        self.put("")
        self.history(axes)
        head = ["import math", "", "import numpy as np", "", DATA, WORLD, ""]
        return "\n".join([*head, *self.lines, ""])


def program(rng: random.Random) -> Program:
    """A program and its calls."""
    return Program(Sizes(rng, False).source(), False)
