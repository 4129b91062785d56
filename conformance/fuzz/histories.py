"""Programs between whose calls the world changes: globals, cells, attributes, code, settings."""

from __future__ import annotations

import random

from .maker import DATA, Maker, Program

WORLD = """
class Model:
    factor = 2.0

    def __init__(self, u, rate):
        self.u, self.rate, self.count = u, rate, 0

    def step(self, x):
        self.count += 1
        self.u[:2] += self.rate
        return x * self.factor + self.rate

    @property
    def twice(self):
        return self.rate * 2


class Other(Model):
    factor = 0.5

    def step(self, x):
        return x - self.rate


def shifted(x, by=1):
    return x + by * SCALE


def scaled(x, by=2):
    return x * by - COUNT


def stirred(x, by=1):
    for k in range(1, len(x)):
        x[k] += x[k - 1] * 0.25 + by
    return x


SCALE, COUNT, FLAG, NAME = 0.5, 2, True, "max"
WEIGHTS = data((3,), "f8", 1)
TABLE = [1, 2.0, 3]
MODES = {"a": 1.5, "b": data((2,), "f8")}
MODEL = Model(data((4,), "f8"), 0.25)
FUNCTION = shifted
"""
STATEMENTS = [
    ("r = r * SCALE",), ("r = r + COUNT",), ("r = r + WEIGHTS.sum()",), ("r = r + WEIGHTS[0]",),
    ("if FLAG:", "    r = r + 1", "else:", "    r = r - 2"), ("r = FUNCTION(r)",),
    ("r = shifted(r)",),
    ("r = r + offset",), ("r = r * inner(2)",), ("r = MODEL.step(r)",), ("r = r + MODEL.rate",),
    ("r = r + MODEL.twice",), ("r = r + MODEL.u[0]",), ("MODEL.u[1] = n",), ("MODEL.count += n",),
    ("r = r + sum(TABLE)",), ("r = r + TABLE[0]",), ("r = r + len(TABLE)",), ("TABLE.append(n)",),
    ("r = r + MODES['a']",), ("MODES['b'][0] += 1",), ("r = scaled(r, by=n)",), ("r = scaled(r)",),
    ("WEIGHTS[0] = t",), ("WEIGHTS[1:] += 1",), ("r = r + getattr(np, NAME)(x, initial=0)",),
    ("for k in range(COUNT):", "    r = r + k * SCALE"),
    ("for k in range(len(x)):", "    r[k] = r[k] * 0.5 + x[k] * SCALE"),
    ("for k in range(len(x)):", "    if k % 2 == COUNT % 2:", "        r[k] += offset"),
    ("for w in WEIGHTS:", "    s = s + w * t", "r = r + s"),
    ("for w in TABLE:", "    s += w", "r = r + s"),
    ("for k, e in enumerate(x):", "    s += e * MODEL.rate", "r = r + s"),
    ("while s < n:", "    s += MODEL.factor", "    r = r + 0.5"),
    ("for k in range(1, len(x)):", "    r[k] = r[k - 1] * 0.5 + shifted(x[k])"),
    ("stirred(r)",), ("r = stirred(r, by=SCALE)",), ("r = np.where(x > COUNT, r, t)",),
    ("COUNTER += 1", "r = r + COUNTER"), ("calls += 1",), ("r = r[::-1]",), ("r = np.tanh(r) + t",),
    ("for k in range(len(x)):", "    s = MODEL.step(s)", "r = r + s"),
    ("if n > 2:", "    SCALED = r * SCALE"), ("r[:1] = t",), ("x[-1:] += 1",),
    ("MODEL.u = MODEL.u + 1",), ("MODEL.rate = t",), ("r = r + x.max(initial=0)",),
]  # fmt: skip
CHANGES = [
    "SCALE = 2.0", "SCALE = 3", "SCALE = np.float32(0.5)", "SCALE = data((), 'f8', 2)",
    "SCALE = 0.5",
    "COUNT = 3", "COUNT = 2.0", "COUNT = np.int64(4)", "COUNT = True", "COUNT = 0", "COUNT = 2",
    "FLAG = False", "FLAG = np.True_", "FLAG = 0.0", "NAME = 'min'", "NAME = 'max'",
    "WEIGHTS = data((5,), 'f8', 2)", "WEIGHTS = data((3,), 'f4')", "WEIGHTS = data((3,), 'i8')",
    "WEIGHTS[...] = 1", "WEIGHTS = WEIGHTS[::-1]", "WEIGHTS = x", "WEIGHTS = MODEL.u[:3]",
    "TABLE = [*TABLE, 4]", "TABLE = [1]", "TABLE = (1, 2)",
    "if isinstance(TABLE, list): TABLE[:1] = [2.5]", "if isinstance(TABLE, list): del TABLE[1:]",
    "MODES['a'] = 3", "MODES = {'b': WEIGHTS, 'a': 2.0}", "MODEL.rate = 1",
    "MODEL.rate = np.float32(2)",
    "MODEL.u = data((4,), 'f4')", "MODEL.u = x", "MODEL = Model(data((6,), 'f8'), 0.5)",
    "MODEL = Other(data((4,), 'f8'), 0.5)", "Model.factor = 3.0", "MODEL.factor = 1.5",
    "Model.step = Other.step", "MODEL.step = scaled", "FUNCTION = scaled", "FUNCTION = shifted",
    "FUNCTION = np.abs", "FUNCTION = MODEL.step", "shifted = scaled", "shifted.__defaults__ = (3,)",
    "scaled.__defaults__ = (0.5,)", "shifted.__code__ = scaled.__code__", "stirred = shifted",
    "move(2.0)", "move(3)", "move(np.float64(0.5))", "move(data((), 'f4', 3))", "inward(scaled)",
    "sum = lambda x: 2", "MODEL.count = 7",
]  # fmt: skip
SETTERS = [
    "", "    def move(value):", "        nonlocal offset", "        offset = value", "",
    "    def inward(value):", "        nonlocal inner", "        inner = value", "",
]  # fmt: skip
SETTINGS = [
    "loops='recorded'", "loops='whole'", "loops='auto'", "plain='always'", "plain='auto'",
    "disable=True", "deterministic=True", "unroll=0", "max_calls=4", "debug=0",
]  # fmt: skip
NAMES = ("SCALE", "COUNT", "FLAG", "NAME", "WEIGHTS", "TABLE", "MODES", "MODEL", "FUNCTION",
         "shifted", "scaled", "stirred", "sum")  # fmt: skip


class Histories(Maker):
    """A function of an array, an int and a float, and of all that is around it."""

    def function(self) -> None:
        lines = [line for _ in range(3 + self.pick(5)) for line in self.of(STATEMENTS)]
        with self.block("def program(x, n, t):"):
            if any("COUNTER" in line for line in lines):
                self.put("global COUNTER")
            if any("calls" in line for line in lines):
                self.put("nonlocal calls")
            self.put(self.of(["r, s = x * 1.0, 0", "r, s = x * 1.0, 0.0", "r, s = x + 0.0, 0"]))
            for line in lines:
                self.put(line)
            results = ["r", "r, s", "r, x[::-1], calls", "[r, WEIGHTS]", "r, MODEL.u"]
            self.put(f"return {self.of(results)}")

    def history(self) -> None:
        with self.block("def history():"):
            self.put(f"global {', '.join(NAMES)}")
            dtype = self.of(["f8", "f8", "f4", "i8"])
            fresh = f"x = {self.laid_out((self.of([3, 5, 6]),), dtype)}"
            self.put(fresh)
            self.put(f"n, t = {self.pick(5)}, {self.of(['0.5', '1.5', '2'])}")
            for _ in range(3 + self.pick(4)):
                for _ in range(self.of([1, 2, 3])):
                    self.put("out = yield x, n, t")
                    if not self.once_in(6):
                        self.put(fresh)
                kind = self.pick(9)
                if kind < 6:
                    self.put(self.of(CHANGES))
                elif kind == 6:
                    with self.block(f"with np_compile.config.patch({self.of(SETTINGS)}):"):
                        self.put("yield x, n, t")
                elif kind == 7:
                    self.put(
                        self.of(["n += 1", "t = 3", "t = -0.75", "n = 2.0", "n = np.int32(3)"])
                    )
                else:
                    dtype = self.of(["f8", "f4", "i8", "i4", "u1"])
                    fresh = f"x = {self.laid_out((self.of([0, 1, 2, 3, 7]),), dtype)}"
                    self.put(fresh)
                    if self.once_in(3):
                        self.put("x = out if isinstance(out, np.ndarray) else x")
            self.put("yield x, n, t")

    def source(self) -> str:
        """The module."""
        self.depth = 0
        with self.block("def made():"):
            self.put(f"offset, calls = {self.of(['1.0', '2'])}, 0")
            self.put("inner = shifted")
            self.put("")
            self.function()
            self.lines += SETTERS
            self.put("return program, move, inward")
        self.lines += ["", "", "COUNTER = 0", "program, move, inward = made()", "", ""]
        self.history()
        head = [
            "import math",
            "",
            "import numpy as np",
            "",
            "import np_compile",
            "",
            DATA,
            WORLD,
            "",
        ]
        return "\n".join([*head, *self.lines, ""])


def program(rng: random.Random) -> Program:
    """A program and the changes between its calls."""
    return Program(Histories(rng, False).source(), False)
