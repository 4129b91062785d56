"""Programs with control flow: loops and branches over elements, slices, lists, and objects."""

from __future__ import annotations

import random

from .maker import DATA, SIZES, Maker, Parameter, Program

HELPERS = """
class Body:
    def __init__(self, u, dt):
        self.u, self.dt, self.steps = u, dt, 0

    def push(self, k, f):
        self.u[k] += f
        self.steps += 1
        return self.u[k]

    def shift(self):
        self.u[1:] = self.u[:-1] + self.dt


def blend(u, v):
    if u > v:
        return u - v
    return v * 2 + u


def bump(z, i, e):
    z[i] += e
    if z[i] > 40:
        z[i] = 0
    return z[i]


def count(z, k, limit=3):
    s = 0
    for q in range(k, len(z)):
        if z[q] > limit:
            s += 1
        elif z[q] == limit:
            return -s
    return s


def both(z, k):
    return k + 1, z[k]
"""
ERRORS = ["IndexError", "ZeroDivisionError", "(ValueError, IndexError)", "Exception"]
OWN = ("n", "t")  # numbers that come as arguments


class Loops(Maker):
    """One function of two vectors, a matrix, an int, a float, and perhaps an object and a stream
    of random numbers."""

    def __init__(self, rng: random.Random, exact: bool):
        super().__init__(rng, exact)
        self.names: dict[str, list[str]] = {
            "int": ["n"], "float": ["t"], "bool": [], "any": [], "ints": [], "floats": [],
            "loop": [],
        }  # fmt: skip
        self.vectors = ["x", "y"]
        self.room = 20
        self.bounds: dict[str, str] = {}  # of loop variables: what they are below
        self.boxed, self.drawn = self.once_in(4), self.once_in(5)
        if self.boxed:
            self.vectors.append("b.u")
            self.names["float"].append("b.dt")
            self.names["int"].append("b.steps")

    # Expressions

    def int(self, depth: int = 2) -> str:
        known = self.names["int"]
        kind = self.pick(19 if depth else 4)
        if kind < 2:
            return self.of(known)
        if kind == 2:
            return str(self.of([0, 1, 2, 3, 5, -1, -2, 7]))
        if kind == 3:
            z = self.of(self.vectors)
            sizes = [f"len({z})", f"{z}.shape[0]", "m.shape[1]", "len(m)", f"{z}.size"]
            return self.of(sizes + [f"len({v})" for v in self.names["ints"]])
        a, b = self.int(depth - 1), self.int(depth - 1)
        made = {
            4: f"({a} + {b})", 5: f"({a} - {b})", 6: f"({a} * {self.of([2, 3, -1, 5])})",
            7: f"({a} // {self.divisor(b)})", 8: f"({a} % {self.divisor(b)})",
            9: f"({a} & {b})", 10: f"({a} ^ {b})", 11: f"({a} >> ({b} & 3))", 12: f"min({a}, {b})",
            13: f"max({a}, {b})", 14: f"abs({a})", 15: f"({a} if {self.test(depth - 1)} else {b})",
            16: f"({a} * {b} % 1009)", 17: f"divmod({a}, 3)[{self.pick(2)}]",
        }  # fmt: skip
        if kind in made:
            return made[kind]
        lists = self.names["ints"]
        if lists and self.once_in(2):
            v = self.of(lists)
            return self.of([f"sum({v})", f"({v}[-1] if {v} else {a})", f"{v}.count({a})"])
        return f"int({self.item(depth - 1)})" if self.exact else a

    def float(self, depth: int = 2) -> str:
        kind = self.pick(15 if depth else 3)
        if kind < 2:
            return self.of(self.names["float"])
        if kind == 2:
            return self.of(["0.5", "1.0", "-2.25", "0.0", "3.0"])
        if kind == 12:
            return f"float({self.item(depth - 1)})"
        a, b = self.float(depth - 1), self.of([self.float, self.int])(depth - 1)
        made = {
            3: f"({a} + {b})", 4: f"({a} - {b})", 5: f"({a} * {self.of([b, '0.5'])})",
            6: f"({b} / {self.divisor(a)})", 7: f"math.sqrt(abs({a}))",
            8: f"({a} % {self.divisor(b)})",
            9: f"min({a}, {b})", 10: f"({a} if {self.test(depth - 1)} else {b})",
            11: f"({a} // {self.divisor(b)})", 13: f"round({a})", 14: f"abs({a})",
        }  # fmt: skip
        if not self.exact and kind in (5, 6, 8, 9, 11, 13):
            return self.of([f"math.tanh({a})", f"math.cos({a})", f"({a} * 0.25)", f"np.tanh({a})"])
        if self.drawn and self.once_in(4):
            return self.of(["rng.random()", "rng.standard_normal()", "rng.uniform(-1.0, 2.0)"])
        return made[kind]

    def divisor(self, text: str) -> str:
        """A number that is mostly not zero."""
        if self.once_in(20):
            return text
        return self.of(["2", "3", "5", f"(abs({text}) + 1)", f"({text} or 1)"])

    def index(self, length: str) -> str:
        """An index that mostly fits."""
        kind = self.pick(10)
        loops = self.names["loop"]
        fitting = [k for k in loops if self.bounds.get(k) == length]
        if fitting and kind < 6:
            return self.of(fitting)
        if self.once_in(25):
            return self.of([*self.names["int"], *loops, "1"])
        if kind == 1:
            return self.of(["0", "-1"])
        if kind < 5 and loops:
            return f"{self.of(loops)} % {length}"
        return f"({self.int(1)}) % {length}"

    def item(self, depth: int = 1) -> str:
        """A NumPy number, or one that may be of more than one type."""
        z = self.of(self.vectors)
        kind = self.pick(13)
        if kind < 4 or not depth:
            return f"{z}[{self.index(f'len({z})')}]"
        if kind < 6:
            return f"m[{self.index('len(m)')}, {self.index('m.shape[1]')}]"
        if kind == 6 and self.names["any"]:
            return self.of(self.names["any"])
        if kind == 7:
            return (
                f"({self.vector(0)} > {self.number(0)}).sum()"
                if self.exact
                else f"{self.vector(0)}.sum()"
            )
        if kind == 8:
            return f"m[{self.index('len(m)')}].max(initial=0)"
        if kind == 9 and self.exact:
            return f"blend({self.item(depth - 1)}, {self.of([self.item, self.int])(depth - 1)})"
        if kind == 10 and self.exact:
            return f"max({self.item(depth - 1)}, {self.number(0)})"
        if kind == 11 and self.boxed:
            return f"b.push({self.index('len(b.u)')}, {self.number(0)})"
        a = self.item(depth - 1)
        b = self.of([self.item, self.int, self.float])(depth - 1)
        signs = ["+", "-", "*", "/", "%", "//"] if self.exact else ["+", "-"]
        return f"({a} {self.of(signs)} {b})"

    def number(self, depth: int = 2) -> str:
        return self.of([self.int, self.float, self.item])(depth)

    def test(self, depth: int = 1) -> str:
        kind = self.pick(8 if depth else 3)
        compare = self.of(["<", "<=", ">", ">=", "==", "!="])
        if kind == 0 or (not self.exact and kind in (1, 3, 7)):
            return f"({self.int(depth)} {compare} {self.int(depth)})"
        if kind == 1:
            return f"({self.item(depth)} {compare} {self.number(depth)})"
        if kind == 2:
            return self.of(self.names["bool"]) if self.names["bool"] else "(n % 2 == 0)"
        if kind == 3:
            return f"({self.int(0)} <= {self.number(0)} < {self.int(0)})"
        if kind == 4:
            return f"({self.test(depth - 1)} and {self.test(depth - 1)})"
        if kind == 5:
            return f"({self.test(depth - 1)} or {self.test(depth - 1)})"
        if kind == 6:
            return f"(not {self.test(depth - 1)})"
        return f"({self.float(depth)} {compare} {self.number(depth)})"

    def part(self) -> str:
        """What selects a part of a vector."""
        low = self.of(["", *self.names["int"][:3], *self.names["loop"], "1", "-2"])
        high = self.of(["", *self.names["loop"], self.int(1), "3", "-1"])
        return f"{low}:{high}{self.of(['', '', '', '', ':2', ':-1', ':3'])}"

    def vector(self, depth: int = 1) -> str:
        z = self.of(self.vectors)
        kind = self.pick(13 if depth else 5)
        if kind < 2:
            return z
        if kind == 2:
            return f"{z}[{self.part()}]"
        if kind == 3:
            return self.of([f"m[{self.index('len(m)')}]", f"m[:, {self.index('m.shape[1]')}]"])
        if kind == 4:
            return f"{z}[::-1]"
        a, b = self.vector(depth - 1), self.of([self.vector, self.number])(depth - 1)
        if not self.exact and kind in (6, 9, 10):
            return f"np.tanh({a})"
        made = {
            5: f"({a} + {b})", 6: f"({a} * {b})", 7: f"({b} - {a})", 8: f"np.abs({a})",
            9: f"np.maximum({a}, {b})", 10: f"np.where({a} > {self.number(0)}, {a}, {b})",
            11: f"({a}).copy()", 12: f"np.array([{z}[k] for k in range(len({z}))])",
        }  # fmt: skip
        return made[kind]

    # Statements

    def remember(self, kind: str, name: str) -> None:
        """A name that is bound here; below a branch it may be forgotten when that ends."""
        self.names[kind].append(name)
        if self.depth > 1 and not self.once_in(40):
            self.local.append((kind, name))

    def assign(self) -> None:
        kind = self.of(["int", "int", "float", "float", "any", "any", "bool"])
        value = {"int": self.int, "float": self.float, "any": self.number, "bool": self.test}[
            kind
        ]()
        own = [v for v in self.names[kind] if v not in OWN and v not in self.names["loop"]]
        if own and not self.once_in(3):
            name = self.of(own)
            op = self.of(["=", "+=", "-="]) if kind != "bool" else "="
            self.put(f"{name} {op} {value}")
            return
        if kind == "any" and not self.once_in(3):
            value = self.of(["0", "0.0", "1"])
        name = self.fresh(kind[0])
        self.put(f"{name} = {value}")
        self.remember(kind, name)

    def store(self) -> None:
        z = self.of(self.vectors)
        kind = self.pick(10)
        op = self.of(["=", "=", "+=", "-=", "*="] if self.exact else ["=", "+=", "-="])
        if kind < 4:
            self.put(f"{z}[{self.index(f'len({z})')}] {op} {self.number()}")
        elif kind == 4:
            i, j = self.index("len(m)"), self.index("m.shape[1]")
            self.put(f"m[{i}, {j}] {op} {self.number()}")
        elif kind == 5:
            self.put(f"{z}[{self.part()}] {op} {self.number(1)}")
        elif kind == 6:
            low = self.of(["1:", ":-1", "::2", "::-1", ":"])
            other = {"1:": ":-1", ":-1": "1:", "::2": "::2", "::-1": ":", ":": "::-1"}[low]
            self.put(f"{z}[{low}] {op} {self.of([z, *self.vectors])}[{other}] * {self.of([1, 2])}")
        elif kind == 7:
            self.put(f"{z} {self.of(['+=', '-='])} {self.of([self.vector, self.number])(1)}")
        elif kind == 8:
            self.put(f"m[{self.index('len(m)')}] {op} {self.of([self.vector, self.number])(1)}")
        elif self.exact:
            self.put(f"{z}[{z} > {self.number(0)}] {op} {self.number(0)}")
        else:
            i, j = (self.index(f"len({z})") for _ in range(2))
            self.put(f"{z}[{i}], {z}[{j}] = {z}[{j}], {z}[{i}]")

    def new_vector(self) -> None:
        plain = [z for z in self.vectors if "." not in z]
        if len(self.vectors) < 5 and self.depth == 1:
            name = self.fresh("v")
            made = ["np.zeros(len(x))", "np.empty_like(y)", "np.arange(n)", "np.zeros((3,), int)"]
            self.put(f"{name} = {self.of([self.vector(2), self.vector(2), *made[::2]])}")
            self.vectors.append(name)
        elif self.once_in(2):
            a, b = self.of(plain), self.of(plain)
            self.put(f"{a}, {b} = {b}, {a}")
        else:
            name = self.of(plain)
            self.put(
                f"{name} = {name} + {self.number(1)}"
                if self.pick(4)
                else f"{name} = {self.vector(1)}"
            )

    def lists(self) -> None:
        """A list that is made, grows, shrinks, or is read."""
        number = self.of(["int", "float"])
        known = self.names[number + "s"]
        value = self.int if number == "int" else self.float
        if not known or self.once_in(5):
            name = self.fresh("l")
            bound = f"range({self.of(['n', 'len(x)', 'len(m)', '4'])})"
            self.put(f"{name} = " + self.of([
                "[]", "[]", f"[{value(1)}]", f"[{value(0)}, {value(1)}, {value(0)}]",
                f"[0] * {self.of(['3', 'n', 'len(y)'])}",
                f"[k * {value(0)} for k in {bound}]",
                f"[{value(0)} for k in {bound} if k % 2 == n % 2]",
            ]))  # fmt: skip
            self.remember(number + "s", name)
            return
        v = self.of(known)
        kind = self.pick(10)
        if kind < 4:
            self.put(f"{v}.append({value(1)})")
        elif kind == 4:
            with self.block(f"if {v}:"):
                self.put(self.of([f"{v}.pop()", f"{v}.pop(0)", f"{v}[0] += {value(1)}"]))
        elif kind == 5:
            name = self.fresh(number[0])
            self.put(f"{name} = {v}.pop() if {v} else {value(0)}")
            self.remember(number, name)
        elif kind == 6:
            with self.block(f"while {v} and len({v}) > {self.of(['2', 'n', '0'])}:"):
                name = self.fresh(number[0])
                self.put(f"{name} = {v}.pop()")
                self.remember(number, name)
                self.statements(1)
                self.names[number].remove(name)
                self.local = [x for x in self.local if x != (number, name)]
        elif kind == 7:
            with self.block(f"if {v}:"):
                self.put(f"{v}[{self.index(f'len({v})')}] {self.of(['=', '+='])} {value(1)}")
        elif kind == 8:
            other = self.of(known)
            self.put(self.of([f"{v}.extend({other}[:3])", f"{v} = {v} + [{value(0)}]",
                              f"{v} = {other}[::-1]",
                              f"{v}.reverse()", f"{v} = {v}[1:]"]))  # fmt: skip
        else:
            name = self.fresh("a")
            self.put(f"{name} = {self.of(['len', 'sum', 'len'])}({v})")
            self.remember("any", name)

    def call(self) -> None:
        kind = self.pick(7)
        z = self.of(self.vectors)
        if kind == 0 and self.exact:
            name = self.fresh("a")
            self.put(f"{name} = bump({z}, {self.index(f'len({z})')}, {self.number(1)})")
            self.remember("any", name)
        elif kind == 1 and self.exact:
            self.put(f"bump({z}, {self.index(f'len({z})')}, {self.int(1)})")
        elif kind == 2 and self.exact:
            name = self.fresh("i")
            more = f", limit={self.int(0)}" if self.once_in(2) else ""
            self.put(f"{name} = count({z}, {self.int(0)} % 5{more})")
            self.remember("int", name)
        elif kind == 3:
            a, b = self.fresh("i"), self.fresh("a")
            self.put(f"{a}, {b} = both({z}, {self.index(f'len({z})')})")
            self.remember("int", a)
            self.remember("any", b)
        elif kind == 4 and self.boxed:
            self.put(self.of(["b.shift()", f"b.dt = {self.float(1)}", "b.steps += 1",
                              f"b.push({self.index('len(b.u)')}, {self.number(1)})"]))  # fmt: skip
        elif kind == 5 and self.drawn:
            self.put(
                f"{z}[{self.index(f'len({z})')}] = rng.{self.of(['integers(0, 5)', 'integers(7)'])}"
            )
        else:
            self.put(f"out.append({self.of([self.int, self.float])(1)})" if not self.once_in(6)
                     else f"print({self.int(1)})")  # fmt: skip

    def body(self, count: int) -> None:
        """Statements; most names that they bind are forgotten after them."""
        before, self.local = self.local, []
        self.statements(count)
        for kind, name in self.local:
            self.names[kind].remove(name)
        self.local = before

    def branch(self) -> None:
        with self.block(f"if {self.test(2)}:"):
            self.body(1 + self.pick(3))
            if self.names["loop"] and self.once_in(3):
                self.put(self.of(["break", "continue"]))
            elif self.once_in(12):
                self.put(self.of(["return x, n", "raise ValueError(str(n))", "return t"]))
        if self.once_in(2):
            if self.once_in(3):
                with self.block(f"elif {self.test(1)}:"):
                    self.body(1 + self.pick(2))
            with self.block("else:"):
                self.body(1 + self.pick(2))

    def loop(self) -> None:
        name, item = self.fresh("k"), self.fresh("e")
        z = self.of(self.vectors)
        bounds = ["n", f"len({z})"]
        kind = self.pick(12)
        counter, items = True, []
        head = f"for {name} in range({self.int(1)} % 6):"
        if kind < 3:
            self.bounds[name] = self.of([*bounds, bounds[1], "len(m)", "m.shape[1]"])
            head = f"for {name} in range({self.bounds[name]}):"
        elif kind == 3:
            self.bounds[name] = self.of(bounds)
            first = self.of(["1", "0", f"{self.int(0)} % 4"])
            head = f"for {name} in range({first}, {self.bounds[name]}, {self.of([1, 2])}):"
        elif kind == 4:
            self.bounds[name] = self.of(bounds)
            head = f"for {name} in range({self.bounds[name]} - 1, -1, {self.of([-1, -2])}):"
        elif kind == 5:
            counter, items = False, [("any", item)]
            head = f"for {item} in {self.of([z, z, f'{z}[::-1]', f'{z}.copy()', 'm.ravel()'])}:"
        elif kind == 6:
            items, self.bounds[name] = [("any", item)], f"len({z})"
            head = f"for {name}, {item} in enumerate({self.of([z, z, f'{z}[1:]'])}):"
        elif kind == 7:
            counter, other = False, self.fresh("e")
            items = [("any", item), ("any", other)]
            head = f"for {item}, {other} in zip({z}, {self.of(self.vectors)}):"
        elif kind == 8 and self.names["ints"]:
            counter, items = False, [("int", item)]
            v = self.of(self.names["ints"])
            head = f"for {item} in {self.of([v, f'reversed({v})', f'list({v})', f'{v}[:4]'])}:"
        elif kind == 9:
            self.put(f"{name} = 0")
            head = f"while {name} < {self.of(['n', '5', f'len({z})'])} and {self.test(1)}:"
        elif kind == 10:
            head = f"for {name} in ({self.int(0)}, 1, 2):"
        elif kind == 11:
            counter, items = False, []
            head = f"for {name} in m{self.of(['', '', '.T', '[::-1]'])}:"
        with self.block(head):
            if kind == 9:
                self.put(f"{name} += 1")
            if kind == 11 and not items:
                self.vectors.append(name)
            if counter:
                self.names["loop"].append(name)
                self.names["int"].append(name)
            else:
                self.names["loop"].append("n")  # so that a branch may break
            for what, one in items:
                self.names[what].append(one)
            self.body(2 + self.pick(3))
            for what, one in items:
                self.names[what].remove(one)
            self.names["loop"].pop()
            if counter:
                self.names["int"].remove(name)
            if kind == 11 and name in self.vectors:
                self.vectors.remove(name)
        if self.once_in(8):
            with self.block("else:"):
                self.body(1)

    def attempt(self) -> None:
        with self.block("try:"):
            self.body(1 + self.pick(2))
        with self.block(f"except {self.of(ERRORS)}{self.of(['', ' as e'])}:"):
            self.body(1)
        if self.once_in(6):
            with self.block("finally:"):
                self.body(1)

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        if self.room <= 0:
            return
        self.room -= 1
        kind = self.pick(22)
        deep = self.depth > 4
        if kind < 6 or (deep and kind > 14):
            self.assign()
        elif kind < 10:
            self.store()
        elif kind == 10:
            self.new_vector()
        elif kind < 13:
            self.call()
        elif kind < 15:
            self.lists()
        elif kind < 17:
            self.branch()
        elif kind == 17:
            self.attempt()
        else:
            self.loop()

    def source(self) -> str:
        """The module."""
        self.local: list[tuple[str, str]] = []
        self.put("out = []")
        for _ in range(2):
            self.assign()
        self.statements(3 + self.pick(3))
        self.room = max(self.room, 6)
        self.loop()
        kinds = ("int", "float", "bool", "any", "ints", "floats")
        names = [v for kind in kinds for v in self.names[kind] if v not in OWN and "." not in v]
        returned = [
            *(v for v in self.vectors if "." not in v),
            "n",
            "t",
            "out",
            *dict.fromkeys(names),
        ]
        self.put(f"return {', '.join(returned)}")
        arguments = ["x", "y", "m", "n", "t"]
        arguments += ["b"] * self.boxed + ["rng"] * self.drawn
        head = ["import math", "", "import numpy as np", DATA, HELPERS,
                f"def program({', '.join(arguments)}):"]  # fmt: skip
        body = self.lines
        self.lines, self.depth = [], 1
        self.history(", ".join(arguments))
        return "\n".join([*head, *body, "", "", "def history():", *self.lines, ""])

    def history(self, arguments: str) -> None:
        numbers: dict[str, str] = {}
        sizes: dict[str, int] = {}
        parameters = [
            Parameter("x", ("n",), ""),
            Parameter("y", ("s",), ""),
            Parameter("m", ("n", "s"), ""),
        ]
        if self.boxed:
            parameters.append(Parameter("u", ("n",), ""))
        if self.drawn:
            self.put(f"rng = np.random.default_rng({self.pick(9)})")
        for call in range(5):
            if call in (0, 3):
                classes = "ffffffffffiiiubc" if self.exact else "ffffi"
                numbers = {p.name: self.dtype(self.of(classes), False) for p in parameters}
            if call in (0, 2, 3):
                n = self.of(SIZES[1:]) if not self.once_in(25) else 0
                sizes = {"n": n, "s": n if not self.once_in(4) else self.of(SIZES[1:])}
            for line in self.given(parameters, sizes, numbers):
                self.put(line)
            t = self.of(["0.0", "0.5", "-1.25", "3.0"] * 6 + ["math.inf"] * self.exact)
            self.put(f"n, t = {self.pick(7)}, {t}")
            if self.boxed:
                self.put(f"b = Body(u, {self.of(['0.5', '0.25', '1'])})")
            self.put(f"yield {arguments}")


def program(rng: random.Random) -> Program:
    """A program with loops."""
    exact = rng.random() < 0.8
    source = Loops(rng, exact).source()
    rounds = "abs(" in source and ("'c8'" in source or "'c16'" in source)
    return Program(source, exact and not rounds)
