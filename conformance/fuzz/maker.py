"""What all generators of programs share: choices, lines, blocks, and the data of the calls."""

from __future__ import annotations

import ast
import contextlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

# In each program: arguments are made by calls of it, so that a reader sees what they are.
DATA = '''
def data(shape, dtype, seed=0, special=()):
    """Small numbers, quarters where they are no integers; the special ones at the end."""
    x = (np.arange(math.prod(shape)) * 7 + seed * 5) % 19 - 6.0
    dtype = np.dtype(dtype)
    if dtype.kind in "bu":
        x = np.maximum(x, 0)
    if dtype.kind in "fc":
        x = x / 4
    x = x.astype(dtype)
    if dtype.kind == "c":
        x.imag = x.real[::-1]
    count = min(len(x), len(special))
    x[len(x) - count :] = special[:count]
    return x.reshape(shape)
'''

# Classes of numbers, from which a dtype is chosen for each call.
CLASSES = {
    "b": ("?",),
    "i": ("i8", "i4", "i2", "i1"),
    "u": ("u1", "u2", "u4", "u8"),
    "f": ("f8", "f8", "f4", "f2"),
    "c": ("c16", "c8"),
}
SPECIAL = {
    "b": "[True]",
    "i": "[-1, 100]",
    "u": "[0, 200]",
    "f": "[np.nan, np.inf, -0.0, -np.inf, 6e4]",
    "c": "[1j, -2.5]",
}
# Of two zeros these take one, or add in another order: see docs/deviations.md, "At the limits".
_OPEN_SIGNS = re.compile(
    r"max|min|clip|sort|sum|mean|dot|@|matmul|einsum|inner|trace|conv|corr|median|quantile|"
    r"percentile|average|std|var\(|linspace|interp|%|//|mod|rem|\*\*|pow|prod|round"
)
# NumPy may round the product and the sum in one at once: see docs/deviations.md, "Rounding".
_COMPLEX = re.compile(r"'c(8|16)'|\"c(8|16)\"|complex|\dj\b")
_PRODUCTS = re.compile(r"\*|multiply|square|prod|pow|vander")
# Which other back ends than native compute in another way: see "Rounding", too.
_COMPLEX_SIZES = re.compile(r"\babs|absolute|hypot|norm")
_SUMS = re.compile(
    r"sum|mean|average|std|var\(|dot|@|matmul|einsum|inner|trace|conv|corr|cov|norm|\.add\."
)
_DIVIDES = re.compile("/|divide|divmod|reciprocal")
SHOWS_SIGNS = re.compile("copysign|signbit")  # makes values of them
SIZES = (0, 1, 2, 3, 5, 7, 13)


def leaves_signs_open(source: str) -> bool:
    """Whether `program` and what it calls may give zeros of another sign than NumPy's."""
    return bool(_OPEN_SIGNS.search(_called(source)))


def multiplies_complex(source: str) -> bool:
    """Whether products of complex numbers may be rounded in another way than NumPy's."""
    return bool(_COMPLEX.search(source) and _PRODUCTS.search(_called(source)))


def sizes_complex(source: str) -> bool:
    """Whether absolute values of complex numbers are computed."""
    return bool(_COMPLEX.search(source) and _COMPLEX_SIZES.search(_called(source)))


def adds(source: str) -> bool:
    """Whether numbers may be added in another order than NumPy's."""
    return bool(_SUMS.search(_called(source)))


def divides(source: str) -> bool:
    """Whether infinities show the signs of zeros."""
    return bool(_DIVIDES.search(_called(source)))


def _called(source: str) -> str:
    """The text of `program` and of what it calls."""
    defined = {
        node.name: ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    met, names = "", ["program"]
    while names:
        met += defined.pop(names.pop(), "")
        names = [name for name in defined if re.search(rf"\b{name}\b", met)]
    return met


@dataclass
class Program:
    """A module: `program` and its helpers, and `history`, a generator that changes the world,
    yields the arguments of a call, and is sent the result.

    exact: results are compared bit for bit, since nothing in it is rounded in another way.
    """

    source: str
    exact: bool


def judged(source: str, within: str, products: Sequence[str], inexact: Sequence[str]) -> Program:
    """The program of a source: exact, if `within` has none of these words. products: words of what
    multiplies and adds, for which data have no special numbers."""
    if any(word in within for word in products):
        for special in SPECIAL.values():
            source = source.replace(f", {special}", "")
    return Program(source, not any(word in within for word in inexact))


@dataclass
class Array:
    """A name or an expression: its extents as text, its class of numbers, and whether it may be
    written to."""

    text: str
    shape: tuple[str, ...]
    number: str
    writeable: bool = True


@dataclass
class Parameter:
    """An array that is handed in."""

    name: str
    shape: tuple[str, ...]
    number: str


@dataclass
class Maker:
    """Lines of a function that are made of choices."""

    random: random.Random
    exact: bool
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    count: int = 0

    def pick(self, n: int) -> int:
        return self.random.randrange(n)

    def of(self, items: Sequence[Any] | str) -> Any:
        return items[self.random.randrange(len(items))]

    def once_in(self, n: int) -> bool:
        return self.random.randrange(n) == 0

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines below `head`; `pass` where there are none."""
        self.put(head)
        self.depth += 1
        at = len(self.lines)
        yield
        if len(self.lines) == at:
            self.put("pass")
        self.depth -= 1

    # The data of calls

    def sized_calls(self) -> Iterator[tuple[int, int, int, int]]:
        """The number of each call of a history, and three extents, which change from time to
        time; the first may be 0."""
        for call in range(4):
            if call in (0, 2) or self.once_in(3):
                n, k, c = (self.of((1, 2, 3, 3, 5, 7)) for _ in range(3))
                n = 0 if self.once_in(30) else n
            yield call, n, k, c

    def places(self, n: int) -> str:
        """An expression for an array of places along an axis of n elements, from both ends."""
        places = [self.pick(max(n, 1)) - self.pick(2) * n for _ in range(min(n, 3))]
        return f"np.array({places}, {self.of(['int', 'int', repr('i4')])})"

    def given_number(self) -> str:
        """A number of Python's, or of NumPy's."""
        return self.of(["0.5", "1.5", "-0.75", "3.0", "2", "np.float64(1.25)"])

    def dtype(self, number: str, wild: bool) -> str:
        """One of a class, or of any."""
        if wild:
            number = self.of("biufc")
        names = CLASSES[number]
        if not self.exact:
            names = tuple(d for d in names if d != "f2")
        return self.of(names)

    def special(self, number: str) -> str:
        """Further arguments of `data`."""
        text = f", {self.pick(8)}" if self.pick(2) else ""
        if self.exact and self.once_in(5):
            text = f", {self.pick(8)}, {SPECIAL[number]}"
        return text

    def laid_out(self, shape: tuple[int, ...], dtype: str) -> str:
        """An expression for an array of this shape, in some layout."""
        number = {"?": "b"}.get(dtype, dtype[0])
        more = self.special(number)

        def plain(*s: int) -> str:
            return f"data({s!r}, {dtype!r}{more})"

        kind = self.pick(10)
        if not shape or kind < 4:
            return plain(*shape)
        n, rest = shape[0], shape[1:]
        last = shape[-1]
        if kind == 4:
            return f"{plain(*shape)}[::-1]"
        if kind == 5:
            return f"{plain(2 * n, *rest)}[::2]"
        if kind == 6:
            inner = ":, " * (len(shape) - 1)
            return f"{plain(*shape[:-1], last + 2)}[{inner}1:-1]"
        if kind == 7 and len(shape) > 1:
            return f"np.asfortranarray({plain(*shape)})"
        if kind == 8 and len(shape) > 1:
            return f"{plain(*shape[::-1])}.T"
        if kind == 9 and len(shape) > 1 and self.once_in(6):
            return f"np.broadcast_to({plain(*rest)}, {shape!r})"
        return f"{plain(3 * n, *rest)}[n:][:n]".replace("[n:][:n]", f"[{n}:{2 * n}]")

    def given(
        self, parameters: list[Parameter], sizes: dict[str, int], numbers: dict[str, str]
    ) -> list[str]:
        """Statements that make the parameters of one call. numbers: dtypes by their names."""
        made = []
        done: list[Parameter] = []
        for p in parameters:
            shape = tuple(sizes[s] for s in p.shape)
            alike = [q for q in done if q.shape == p.shape and numbers[q.name] == numbers[p.name]]
            if alike and shape and self.once_in(6):
                q = self.of(alike)
                base, n = self.fresh("base"), shape[0]
                kind = self.pick(4)
                if kind == 0:
                    made.append(f"{p.name} = {q.name}")
                elif kind == 1:
                    made.append(f"{p.name} = {q.name}[::-1]")
                else:
                    made.append(f"{base} = data({(n + 1, *shape[1:])!r}, {numbers[p.name]!r})")
                    made.append(f"{q.name}, {p.name} = {base}[:-1], {base}[1:]")
            else:
                made.append(f"{p.name} = {self.laid_out(shape, numbers[p.name])}")
                if shape and self.once_in(120):
                    made.append(f"{p.name}.flags.writeable = False")
            done.append(p)
        return made
