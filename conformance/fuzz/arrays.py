"""Programs of whole arrays: views of views, writes in place, reductions, masks, branches."""

from __future__ import annotations

import random

from .maker import DATA, SHOWS_SIGNS, SIZES, Array, Maker, Parameter, Program, leaves_signs_open

HELPERS = """
class Box:
    def __init__(self, u, v):
        self.u, self.v, self.steps = u, v, 0

    def scale(self, c):
        self.u *= c
        self.steps += 1

    def shifted(self):
        r = np.zeros_like(self.u)
        r[1:] = self.v[:-1]
        return r

    @property
    def top(self):
        return self.u.max(initial=0)


def relax(z, w):
    z[1:] += w[:-1]
    return z[::-1]


def picked(z, flag=False):
    if flag:
        return z.copy()
    return z
"""
ORDER = "buifc"
EXTENTS = {
    "n-1": "max(n - 1, 0)",
    "k-1": "max(k - 1, 0)",
    "n/2": "(n + 1) // 2",
    "k/2": "(k + 1) // 2",
}
PARTS = {"-1": ("1:", ":-1"), "/2": ("::2", "::-2"), "": ("", "", "", "::-1", ":")}

# Of an expression: the classes of numbers that it takes, and the one that it gives ("": the same).
UNARY = [
    ("np.abs({})", "biuf", ""), ("(-{})", "iuf", ""), ("np.sign({})", "iuf", ""),
    ("np.square({})", "iuf", ""), ("np.logical_not({})", "biuf", "b"), ("(~{})", "biu", ""),
    ("np.isnan({})", "f", "b"), ("np.floor({})", "f", ""), ("np.rint({})", "f", ""),
    ("np.sqrt(np.abs({}))", "iuf", "f"), ("({} + 1)", "iufc", ""), ("({} * 2)", "iufc", ""),
    ("({} * 0.5)", "biufc", "f"), ("(3 - {})", "iufc", ""), ("{}.copy()", "biufc", ""),
    ("np.clip({}, -2, 3)", "if", ""), ("np.clip({}, 1, 5)", "iuf", ""), ("np.conj({})", "fc", ""),
    ("{}.astype('i8')", "biu", "i"), ("{}.astype('f4')", "biuf", "f"),
    ("{}.astype('f8')", "biuf", "f"),
    ("({} > 0)", "iuf", "b"), ("({} != 2)", "biuf", "b"), ("np.nan_to_num({})", "f", ""),
    ("({} // 2)", "iuf", ""), ("({} % 3)", "iuf", ""), ("({} / 4)", "iuf", "f"),
    ("({} + t)", "iufc", "f"), ("({} * i)", "iufc", ""), ("np.where({0} > 1, {0}, 0)", "iuf", ""),
    ("{}.astype('i4')", "f", "i"), ("{}.astype(bool)", "biufc", "b"), ("np.trunc({})", "f", ""),
    ("np.positive({})", "iufc", ""), ("np.ascontiguousarray({})", "biufc", ""),
    ("np.real({})", "c", "f"), ("np.signbit({})", "f", "b"), ("np.isfinite({})", "fc", "b"),
]  # fmt: skip
SMOOTH = [
    ("np.exp(-np.abs({}))", "iuf", "f"), ("np.sin({})", "f", ""), ("np.tanh({})", "f", ""),
    ("np.log1p(np.abs({}))", "iuf", "f"), ("np.arctan({})", "f", ""), ("np.abs({})", "biufc", ""),
    ("np.sqrt(np.abs({}) + 1)", "iuf", "f"), ("({0} / (1 + np.abs({0})))", "iuf", "f"),
    ("(-{})", "iufc", ""), ("({} * 0.5)", "biufc", "f"), ("({} + 1)", "iufc", ""),
    ("({} + t)", "iufc", "f"), ("{}.copy()", "biufc", ""), ("np.conj({})", "fc", ""),
    ("(np.tanh({}) ** 2)", "f", ""), ("{}.astype('f8')", "biuf", "f"), ("np.cos({} * t)", "f", ""),
    ("({} * i)", "iufc", ""), ("np.square(np.tanh({}))", "f", ""),
]  # fmt: skip
BINARY = [
    ("({} + {})", "biufc", ""), ("({} - {})", "iufc", ""), ("({} * {})", "biufc", ""),
    ("({} / {})", "iuf", "f"), ("({} // {})", "iuf", ""), ("({} % {})", "iuf", ""),
    ("np.maximum({}, {})", "biuf", ""), ("np.minimum({}, {})", "biuf", ""),
    ("({} < {})", "biuf", "b"), ("({} == {})", "biufc", "b"), ("({} >= {})", "biuf", "b"),
    ("({} & {})", "biu", ""), ("({} | {})", "biu", ""), ("({} ^ {})", "biu", ""),
    ("np.fmax({}, {})", "iuf", ""), ("np.copysign({}, {})", "f", ""),
    ("np.logical_and({}, {})", "biuf", "b"), ("np.add({}, {})", "iufc", ""),
    ("np.subtract({}, {})", "iufc", ""), ("np.logical_xor({}, {})", "biuf", "b"),
]  # fmt: skip
SMOOTH_BINARY = [
    ("({} + {})", "biufc", ""), ("({} - {})", "iufc", ""), ("({} * np.tanh({}))", "f", ""),
    ("np.hypot({}, {})", "f", ""), ("np.add({}, {})", "iufc", ""), ("({} + 0.5 * {})", "iuf", "f"),
    ("np.arctan2({}, 2 + np.abs({}))", "f", ""), ("({} / (1 + np.abs({})))", "iuf", "f"),
    ("np.maximum({}, {})", "biuf", ""), ("np.subtract({}, {})", "iufc", ""),
]  # fmt: skip
REDUCE = [
    ("{}.max({})", "biuf", ""), ("np.min({}, {})", "biuf", ""), ("np.any({}, {})", "biuf", "b"),
    ("{}.all({})", "biuf", "b"), ("np.sum({}, {})", "biu", "i"),
    ("np.count_nonzero({}, {})", "biuf", "i"),
    ("np.argmax({}, {})", "biuf", "i"), ("{}.argmin({})", "biuf", "i"),
    ("np.ptp({}, {})", "iuf", ""),
    ("np.nanmax({}, {})", "f", ""),
]  # fmt: skip
SMOOTH_REDUCE = [
    ("{}.sum({})", "biufc", ""), ("np.mean({}, {})", "biufc", "f"),
    ("np.sum({}, {}) * 0.25", "iuf", "f"),
    ("np.std({}, {})", "iuf", "f"), ("{}.max({})", "biuf", ""), ("np.sum({}, {})", "iuf", ""),
    ("np.prod(np.tanh({}), {})", "iuf", "f"), ("np.average({}, {})", "iuf", "f"),
]  # fmt: skip


class Arrays(Maker):
    """One function of arrays (x, y, m, ...), an integer i, a float t, and perhaps an object."""

    def __init__(self, rng: random.Random, exact: bool):
        super().__init__(rng, exact)
        self.whole = self.of("iiu")  # the class of integers
        floats = self.of("fffc") if exact else self.of("fffffc")
        classes = [floats, "f", self.whole, "b"] if exact else [floats, "f", "f", self.whole]
        self.parameters = [
            Parameter("x", ("n",), self.of(classes)),
            Parameter("y", self.of([("n",), ("n",), ("k",), ("n", "k")]), self.of(classes)),
            Parameter("m", ("n", "k"), self.of(classes)),
        ]
        for name in ("z", "w")[: self.pick(3)]:
            shape = self.of([("n",), ("k", "n"), (), ("n", "2", "k"), ("1", "k"), ("n", "1")])
            self.parameters.append(Parameter(name, shape, self.of(classes)))
        self.boxed = self.once_in(3)
        self.names = [Array(p.name, p.shape, p.number) for p in self.parameters]
        if self.boxed:
            self.box = [
                Parameter("u", ("n",), "f"),
                Parameter("v", ("n",), self.of([self.whole, "f"])),
            ]
            self.names += [Array(f"box.{p.name}", p.shape, p.number) for p in self.box]
        self.indices: list[tuple[str, str]] = []  # loop variables, and what they count
        self.numbers: list[str] = []  # names of Python's and NumPy's numbers

    # Expressions

    def extent(self, label: str) -> str:
        return EXTENTS.get(label, label)

    def tuple_of(self, shape: tuple[str, ...]) -> str:
        parts = [self.extent(s) for s in shape]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def joined(self, a: str, b: str) -> str:
        return max(a, b, key=ORDER.index)

    def index(self, label: str) -> str:
        """An integer that mostly fits an axis."""
        known = [name for name, counts in self.indices if counts == label]
        if known and not self.once_in(3):
            return self.of(known)
        if label not in ("n", "k", "2", "n/2", "k/2"):
            return "-1"
        return self.of(["0", "-1", f"i % max({self.extent(label)}, 1)", "-1", "0"])

    def part(self, have: str, want: str) -> str | None:
        """The slice that takes an extent to another one."""
        if have == want:
            return self.of(PARTS[""])
        for end in ("-1", "/2"):
            if have + end == want:
                return self.of(PARTS[end])
        return None

    def view_of(self, a: Array, shape: tuple[str, ...]) -> Array | None:
        """A view of an array that has this shape, if there is one."""
        extra = len(a.shape) - len(shape)
        if len(a.shape) == 2 and extra == 0 and a.shape != shape and a.shape[::-1] == shape:
            return Array(
                f"{a.text}{self.of(['.T', '.T', '.transpose(1, 0)', '.swapaxes(0, 1)'])}",
                shape,
                a.number,
                a.writeable,
            )
        if extra < 0:
            return None
        dropped = set(self.random.sample(range(len(a.shape)), extra))
        parts, k = [], 0
        for axis, have in enumerate(a.shape):
            if axis in dropped:
                parts.append(self.index(have))
                continue
            part = self.part(have, shape[k])
            if part is None:
                return None
            parts.append(part)
            k += 1
        while parts and parts[-1] in ("", ":"):
            parts.pop()
        if not parts:
            text = a.text
            if shape and self.once_in(12):
                text = (
                    f"{a.text}[...]"
                    if self.once_in(2)
                    else f"{a.text}.reshape({self.tuple_of(shape)})"
                )
            return Array(text, shape, a.number, a.writeable)
        text = f"{a.text}[{', '.join(p or ':' for p in parts)}]"
        return Array(text, shape, a.number, a.writeable and bool(shape))

    def leaf(self, shape: tuple[str, ...], top: str) -> Array:
        """A name, a view of one, or a new array, of a class up to `top`."""
        fits = [a for a in self.names if ORDER.index(a.number) <= ORDER.index(top)]
        for _ in range(8 if fits else 0):
            view = self.view_of(self.of(fits), shape)
            if view is not None:
                return view
        if not shape:
            return Array(
                self.of(
                    ["2", "1", "i"]
                    if top in "iu"
                    else ["True"]
                    if top == "b"
                    else ["0.5", "t", "i", "2"]
                ),
                (),
                top,
            )
        size = self.tuple_of(shape)
        if top == "b":
            return Array(f"np.zeros({size}, bool)", shape, "b")
        number = "i" if top in "iu" else "f"
        dtype = ", int" if number == "i" else ""
        made = self.of([f"np.zeros({size}{dtype})", f"np.ones({size}{dtype})"])
        if len(shape) == 1 and self.once_in(2):
            made = f"np.arange({self.extent(shape[0])})"
            return Array(made, shape, "i")
        return Array(made, shape, number)

    def narrower(self, shape: tuple[str, ...]) -> tuple[str, ...]:
        """A shape that is broadcast to another one."""
        kind = self.pick(6)
        if kind < 3 or not shape:
            return shape
        if kind == 3:
            return ()
        return shape[1:]

    def rows(self, table: list, other: list, top: str) -> tuple[str, str, str]:
        """A row of a table whose result is of a class up to `top`."""
        rows = table if self.exact else other
        while True:
            text, takes, gives = self.of(rows)
            limit = ORDER.index(top)
            if gives and ORDER.index(gives) > limit:
                continue
            takes = [c for c in takes if gives or ORDER.index(c) <= limit]
            if takes:
                return text, "".join(takes), gives

    def fitting(self, shape: tuple[str, ...], depth: int, takes: str) -> Array:
        """An expression of one of these classes, if that can be had in a few attempts."""
        top = max(takes, key=ORDER.index)
        for _ in range(4):
            a = self.array(shape, depth, top)
            if a.number in takes:
                return a
        if a.number == "b":
            return Array(f"({a.text} * 1)", shape, "i")
        return self.leaf(shape, top) if a.number not in takes else a

    def array(self, shape: tuple[str, ...], depth: int = 2, top: str = "c") -> Array:
        """An expression of this shape, of a class up to `top`."""
        kind = self.pick(22) if depth > 0 else 0
        if kind < 5:
            return self.leaf(shape, top)
        if kind < 9:
            text, takes, gives = self.rows(UNARY, SMOOTH, top)
            a = self.fitting(shape, depth - 1, takes)
            if text.startswith("{}.") and not shape:  # numbers of Python's have no methods
                text = text.replace("{}", "np.asarray({})")
            return Array(text.format(a.text), shape, gives or a.number, False)
        if kind < 14:
            text, takes, gives = self.rows(BINARY, SMOOTH_BINARY, top)
            a = self.fitting(shape, depth - 1, takes)
            b = self.fitting(self.narrower(shape), depth - 1, takes)
            if self.once_in(3) and text[0] == "(" and not gives:
                a, b = b, a
            return Array(
                text.format(a.text, b.text), shape, gives or self.joined(a.number, b.number), False
            )
        if kind == 14 and len(shape) < 2:
            return self.reduced(shape, depth, top)
        if kind == 15:
            a, b = (
                self.array(shape, depth - 1, top),
                self.array(self.narrower(shape), depth - 1, top),
            )
            number = self.joined(a.number, b.number)
            return Array(f"np.where({self.mask(shape)}, {a.text}, {b.text})", shape, number, False)
        if kind == 16 and shape:
            a = self.array(shape, depth - 1, top)
            text = self.of(
                ["np.roll({}, {shift}, 0)", "np.flip({}, 0)", "np.roll({}, i, -1)", "np.copy({})"]
            )
            return Array(text.format(a.text, shift=self.of([1, -1, 2])), shape, a.number, False)
        if kind == 17 and shape:
            a = self.array(shape, depth - 1, "f" if top == "c" else top)
            if a.number in "biu" or self.exact:
                return Array(f"np.sort({a.text}, {self.of([0, -1])})", shape, a.number, False)
            return Array(f"np.cumsum({a.text}, {self.of([0, -1])})", shape, a.number, False)
        if kind == 18 and shape and shape[0] in ("n", "k"):
            a = self.array(shape, depth - 1, top)
            size = self.extent(shape[0])
            index = self.of(
                [
                    f"np.arange({size})[::-1]",
                    f"(np.arange({size}) * i) % {size}",
                    f"np.arange({size}) // 2",
                ]
            )
            return Array(
                self.of(["({})[{}]", "np.take({}, {}, 0)"]).format(a.text, index),
                shape,
                a.number,
                False,
            )
        if kind == 19 and len(shape) == 1 and shape[0] in ("n", "k"):
            a = self.array((shape[0] + "-1",), depth - 1, top)
            b = self.leaf(shape, top)
            return Array(
                f"np.concatenate([{b.text}[:1], {a.text}])",
                shape,
                self.joined(a.number, b.number),
                False,
            )
        if kind == 20 and len(shape) == 1:
            a = self.leaf(shape, top)
            return Array(
                self.of(
                    ["picked({}, i > 2)", "picked({})", "np.asarray({})", "np.ravel({})"]
                ).format(a.text),
                shape,
                a.number,
            )
        if kind == 21 and not self.exact and len(shape) == 1 and top in "fc":
            a, b = self.fitting((shape[0], "k"), 1, "f"), self.fitting(("k",), 1, "f")
            return Array(f"({a.text} @ {b.text})", shape, "f", False)
        return self.leaf(shape, top)

    def reduced(self, shape: tuple[str, ...], depth: int, top: str) -> Array:
        text, takes, gives = self.rows(REDUCE, SMOOTH_REDUCE, top)
        extra = self.of(["n", "k", "k"])
        axis = self.pick(len(shape) + 1)
        whole = (*shape[:axis], extra, *shape[axis:])
        a = self.fitting(whole, depth - 1, takes)
        words = [f"axis={axis}" if shape or self.once_in(2) else "axis=None"]
        if "arg" not in text and "count" not in text and self.once_in(4):
            words.append("keepdims=True")
        plain = any(w in text for w in (".max", ".min", ".sum"))
        if plain and "nan" not in text and self.once_in(3) and a.number != "c":
            if ".sum" not in text:
                words.append("initial=1")
            words.append(f"where={self.mask(whole)}")
        elif any(w in text for w in ("max", "min")) and "arg" not in text and a.number != "b":
            words.append("initial=0")
        made = text.format(f"({a.text})" if text[0] == "{" else a.text, ", ".join(words))
        if "keepdims" in made:
            inside = ", ".join("0" if k == axis else ":" for k in range(len(whole)))
            made = f"({made})[{inside}]"
        return Array(made, shape, gives or a.number, False)

    def mask(self, shape: tuple[str, ...]) -> str:
        """Booleans of this shape."""
        known = [a for a in self.names if a.number == "b"]
        for _ in range(2 if known and self.once_in(2) else 0):
            view = self.view_of(self.of(known), shape)
            if view is not None:
                return view.text
        top = "f" if self.exact else self.whole
        a = self.leaf(shape, top)
        if a.number not in "biu" + ("f" if self.exact else ""):
            a = Array(f"np.ones({self.tuple_of(shape)}, int)", shape, "i")
        return f"({a.text} {self.of(['>', '<', '>=', '!='])} {self.of(['0', '1', '2', 'i'])})"

    def number(self) -> str:
        """A single number."""
        kind = self.pick(7)
        if kind == 0:
            return "i"
        if kind == 1:
            return "t"
        if kind == 2 and self.numbers:
            return self.of(self.numbers)
        if kind == 3:
            return self.leaf((), "f").text
        return self.of(["0", "1", "2", "-1.5", "0.25", "3"])

    def test(self) -> str:
        """A condition."""
        kind = self.pick(6)
        if kind == 0:
            return f"n > {self.of([0, 1, 2, 4])}"
        if kind == 1:
            return self.of(["i % 2 == 0", "i > 3", "t > 0", "n == k", "not n", "n and k"])
        if kind == 2:
            return f"np.any({self.mask(self.of([('n',), ('n', 'k')]))})"
        a = self.leaf(self.of([("n",), ("n", "k"), ("k",)]), "f" if self.exact else self.whole)
        if a.number in "bu" or (a.number == "f" and not self.exact):
            return f"{a.text}.any()" if a.number == "b" else "i > 1"
        return f"{a.text}.max(initial=0) > {self.of(['i', '1', 't', '2'])}"

    # Statements

    def target(self, rank: int | None = None) -> Array | None:
        """A name, or a view of one, that may be written to."""
        a = self.of([a for a in self.names if a.writeable])
        if not a.shape:
            return None
        shape = list(a.shape)
        for axis in range(len(shape)):
            if shape[axis] in ("n", "k") and self.once_in(4):
                shape[axis] += self.of(["-1", "/2"])
        while len(shape) > 1 and self.once_in(3):
            shape.pop(self.pick(len(shape)))
        return self.view_of(a, tuple(shape))

    def bind(self, a: Array) -> None:
        """A new name for a value."""
        name = self.fresh({"b": "q", "i": "j", "u": "j"}.get(a.number, "a"))
        self.put(f"{name} = {a.text}")
        if a.shape:
            if self.depth == 1:
                self.names.append(Array(name, a.shape, a.number, True))
        elif self.depth == 1:
            self.numbers.append(name) if a.number in "if" else None
            self.results.append(name)

    def store(self) -> None:
        z = self.target()
        if z is None:
            return
        top = "f" if z.number == "c" and self.once_in(2) else z.number
        op = {"b": ["=", "&=", "|=", "^="], "i": ["=", "+=", "-=", "*="]}.get(
            z.number, ["=", "=", "+=", "-=", "*="]
        )
        op = self.of(op)
        if not self.exact and op == "*=":
            op = "+="
        value = self.array(self.narrower(z.shape), 2, top)
        text = z.text if z.text.endswith("]") or op != "=" else f"{z.text}[...]"
        if text.endswith(")") or text.endswith(".T"):
            text += "[...]"
        self.put(f"{text} {op} {value.text}")

    def out(self) -> None:
        """A function of NumPy's with `out=`."""
        z = self.target()
        if z is None:
            return
        text, takes, _ = self.rows(
            [("np.add", "biuf", ""), ("np.subtract", "iuf", ""), ("np.maximum", "biuf", ""),
             ("np.multiply", "biuf", ""), ("np.less", "biuf", "b")],
            [("np.add", "biuf", ""), ("np.subtract", "iuf", ""), ("np.hypot", "f", "")], z.number,
        )  # fmt: skip
        a, b = self.fitting(z.shape, 1, takes), self.fitting(self.narrower(z.shape), 1, takes)
        more = f", where={self.mask(z.shape)}" if text != "np.less" and self.once_in(4) else ""
        more += ', casting="unsafe"' if self.once_in(6) else ""
        kind = self.pick(8)
        if kind == 0:
            call = f"np.copyto({z.text}, {a.text}{more})"
        elif kind == 1 and len(z.shape) == 1 and z.number in "iu":
            wide = self.fitting((*z.shape, "k"), 1, "biu")
            call = f"np.{self.of(['max', 'min'])}({wide.text}, axis=1, out={z.text}, initial=0)"
        else:
            call = f"{text}({a.text}, {b.text}, out={z.text}{more})"
        if self.once_in(3) and kind > 1 and self.depth == 1:
            name = self.fresh("a")
            self.put(f"{name} = {call}")
            self.names.append(Array(name, z.shape, z.number))
        else:
            self.put(call)

    def method(self) -> None:
        """What changes an array by a call."""
        z = self.target()
        if z is None:
            return
        kind = self.pick(9)
        value = self.leaf((), "i" if z.number in "biu" else "f").text
        if kind == 0:
            self.put(f"{z.text}.fill({value if z.number != 'b' else 'i > 2'})")
        elif kind == 1 and (self.exact or z.number in "biu") and z.number != "c":
            self.put(f"{z.text}.sort({self.of(['', '0', '-1'])})")
        elif kind == 2 and z.shape[0] in ("n", "k"):
            size = self.extent(z.shape[0])
            index = self.of([f"np.arange({size}) // 2", f"(np.arange({size}) * i) % {size}"])
            if len(z.shape) == 1:
                a = self.array(z.shape, 1, z.number)
                if z.number == "b":
                    self.put(f"{z.text}[{index}] = {a.text}")
                else:
                    self.put(f"np.add.at({z.text}, {index}, {a.text})")
        elif kind == 3 and z.shape[0] in ("n", "k"):
            size = self.extent(z.shape[0])
            a = self.array(z.shape, 1, z.number)
            index = self.of(
                [f"np.arange({size})[::-1]", "::-1", f"(np.arange({size}) + i) % {size}"]
            )
            self.put(f"{z.text}[{index}] = {a.text}")
        elif kind == 4 and z.number != "b":
            op = self.of(["=", "+=", "*="] if self.exact else ["=", "+="])
            self.put(f"{z.text}[{self.mask(z.shape)}] {op} {self.of(['0', '1', '2'])}")
        elif kind == 5 and z.number != "b":  # a mask that changes: see docs/deviations.md
            mask = self.fresh("q")
            self.put(f"{mask} = {self.mask(z.shape)}")
            a = self.array(z.shape, 1, z.number)
            self.put(f"{z.text}[{mask}] = ({a.text})[{mask}]")
        elif kind == 6 and len(z.shape) == 1:
            other = self.leaf(z.shape, z.number)
            name = self.fresh("a")
            self.put(
                f"{name} = relax({z.text}, {other.text})"
                if z.number != "b"
                else f"{name} = {z.text}[::-1]"
            )
            if self.depth == 1:
                self.names.append(Array(name, z.shape, z.number))
        elif kind == 7:
            index = ", ".join(self.index(s) for s in z.shape)
            op = self.of(["=", "+="]) if z.number != "b" else "="
            self.put(f"{z.text}[{index}] {op} {value}")
        elif self.boxed:
            name = self.fresh("a")
            self.put(self.of(["box.scale(2)", "box.v[1:] = box.u[:-1] > 0", "box.u = box.u + 1",
                              f"{name} = box.shifted()", "box.steps += i",
                              f"{name} = box.top"]))  # fmt: skip
            if self.lines[-1].strip() == f"{name} = box.shifted()" and self.depth == 1:
                self.names.append(Array(name, ("n",), "f"))

    def swap(self) -> None:
        """Names that change places."""
        a = self.of(self.names)
        alike = [
            b for b in self.names if b.shape == a.shape and b.number == a.number and b is not a
        ]
        if alike and "." not in a.text and self.depth == 1:
            b = self.of(alike)
            self.put(f"{a.text}, {b.text} = {b.text}, {a.text}")

    def branch(self) -> None:
        with self.block(f"if {self.test()}:"):
            self.statements(1 + self.pick(2))
            if self.once_in(12):
                self.put(f"return {self.of(self.names).text}, n")
        if self.once_in(2):
            with self.block("else:"):
                self.statements(1 + self.pick(2))

    def loop(self) -> None:
        label = self.of(["n", "k", "3", "2"])
        name = self.fresh("r")
        if self.once_in(4):
            self.put(f"{name} = 0")
            with self.block(f"while {name} < {label} and {self.test()}:"):
                self.statements(1 + self.pick(2))
                self.put(f"{name} += 1")
            return
        with self.block(f"for {name} in range({label}):"):
            self.indices.append((name, label))
            self.statements(1 + self.pick(3))
            if self.once_in(5):
                self.put(f"if {self.test()}:")
                self.put(f"    {self.of(['break', 'continue'])}")
                self.statements(1)
            self.indices.pop()

    def attempt(self) -> None:
        with self.block("try:"):
            self.statements(1)
            a = self.of([a for a in self.names if a.shape])
            self.put(f"{a.text}[{self.of(['i', '0', '-2', 'n'])}] = {self.of(['1', '0'])}")
            self.statements(1)
        with self.block(
            f"except {self.of(['IndexError', '(IndexError, ValueError)', 'Exception'])}:"
        ):
            self.statements(1)

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        kind = self.pick(22)
        if kind < 6:
            shape = self.of(
                [("n",), ("n",), ("n", "k"), ("k",), ("n-1",), ("k", "n"), ("n/2",), ()]
            )
            self.bind(self.array(shape, 3))
        elif kind < 8:
            z = self.target()
            if z is not None and self.depth == 1:
                self.bind(z)
        elif kind < 12:
            self.store()
        elif kind < 14:
            self.out()
        elif kind < 17:
            self.method()
        elif kind == 17:
            self.swap()
        elif self.depth > 2:
            self.store()
        elif kind == 18:
            self.branch()
        elif kind == 19:
            self.loop()
        elif kind == 20 and self.once_in(2):
            self.attempt()
        else:
            name = self.fresh("s")
            made = self.of(["float", "float", "int", ""]) if self.exact else ""
            self.put(f"{name} = {made}({self.leaf((), 'i').text})")
            if self.depth == 1:
                self.results.append(name)

    def source(self) -> str:
        """The module."""
        self.results: list[str] = []
        self.put("n, k = m.shape")
        self.statements(4 + self.pick(7))
        results = [a.text for a in self.names[len(self.parameters) :]][-6:] + self.results[-3:]
        if self.once_in(4):
            results.append(self.of(["n", "x", "m.T", "x[1:]", "(y, [n])", "{'x': x, 'k': k}"]))
        kind = self.pick(8)
        joined = ", ".join(results) or "x"
        self.put(
            {0: f"return [{joined}]", 1: f"return ({joined}), {{'m': m}}"}.get(
                kind, f"return {joined}"
            )
        )
        names = [p.name for p in self.parameters] + ["i", "t"] + (["box"] if self.boxed else [])
        head = [
            "import math",
            "",
            "import numpy as np",
            DATA,
            HELPERS,
            f"def program({', '.join(names)}):",
        ]
        body = self.lines
        self.lines, self.depth = [], 1
        self.history(", ".join(names))
        return "\n".join([*head, *body, "", "", "def history():", *self.lines, ""])

    def history(self, names: str) -> None:
        parameters = self.parameters
        numbers: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for call in range(5):
            if call in (0, 3):
                wild = self.once_in(6)
                for p in (*parameters, *(self.box if self.boxed else ())):
                    numbers[p.name] = self.dtype(p.number, wild and self.once_in(2))
            if call in (0, 2, 4):
                n, k = (self.of(SIZES[1:]) if not self.once_in(30) else 0 for _ in range(2))
                sizes = {"n": n, "k": k, "2": 2, "1": 1}
            for line in self.given(parameters, sizes, numbers):
                self.put(line)
            self.put(f"i, t = {self.pick(8)}, {self.of(['0.5', '-1.25', '2.0', '0.0', '3'])}")
            if self.boxed:
                for line in self.given(self.box, sizes, numbers):
                    self.put(line)
                self.put(f"box = Box(u, {self.of(['v', 'v', 'v', 'x', 'u'])})")
            self.put(f"yield {names}")


def program(rng: random.Random) -> Program:
    """A program of whole arrays."""
    exact = rng.random() < 0.65
    source = Arrays(rng, exact).source()
    while SHOWS_SIGNS.search(source) and leaves_signs_open(source):
        source = Arrays(rng, exact).source()
    return Program(source, exact)
