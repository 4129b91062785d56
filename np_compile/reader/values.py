"""What names and expressions of a read function stand for, and the kinds of numbers.

A *kind* is the type of a number as Python sees it: "int", "float", "bool", "complex", "wide" (an
int of 64 bits without a sign), or the name of a NumPy scalar type ("float64", "int32", "bool_"). A
*representation* is how C holds it: a dtype of the loop IR, or "c64" or "c128". A number can be of
one kind or another, which only data can tell (`s = 0`, then `s += x[i]`): then `tag` is a C
integer, its place among `kinds`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from np_compile.kernels.ir.dtypes import DTYPES

from . import words
from .linear import WIDE, Linear


class Unreadable(Exception):
    """What stands in the source cannot be compiled: the reason, for people."""


class NotYet(Unreadable):
    """What would have a meaning if more were known, that may stand further on."""


class NoKey(NotYet):
    """An item of a dict that nothing has been put into yet, as far as is known."""


# A "wide" number is a Python integer too (`wide.py`), a "char" a text of one character (`text.py`),
# a "word" one of the constant texts, or of one character (`words.py`).
PYTHON = {"bool": "bool", "int": "i64", "float": "f64", "complex": "c128", "wide": "u64",
          "char": "u32", "word": "u32"}  # fmt: skip
PYTHON_TYPE: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "wide": int,
    "char": str, "word": str,
}  # fmt: skip
_NUMPY = {
    np.dtype(row.numpy).type.__name__: name
    for name, row in DTYPES.items()
    if name not in ("bf16", "f16")
} | {"complex64": "c64", "complex128": "c128"}
_NUMPY["bool"] = "bool"
REPRESENTATION: dict[str, str] = {
    **{("bool_" if k == "bool" else k): v for k, v in _NUMPY.items()},
    **PYTHON,
}
KIND_OF_DTYPE: dict[np.dtype, str] = {
    np.dtype(k.rstrip("_")): k for k in REPRESENTATION if k not in PYTHON
}
PARTS = {"c64": "f32", "c128": "f64"}  # of a complex representation, that of its parts
SIZES = {name: row.size for name, row in DTYPES.items()} | {"c64": 8, "c128": 16}
DTYPE_OF: dict[str, np.dtype] = {
    v: np.dtype(k.rstrip("_")) for k, v in REPRESENTATION.items() if k not in PYTHON
}
C_TYPE = {name: row.register for name, row in DTYPES.items()} | {"c64": "c64", "c128": "c128"}
WORDS = frozenset(("char", "word"))
TEXT = {*WORDS}  # kinds that are no numbers: members of enumerations too (`members.py`)
MEMBERS: dict[str, type[Enum]] = {}  # kinds: enumerations
INTEGERS = frozenset(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"))
FLOATS = frozenset(("f32", "f64"))


@dataclass(frozen=True)
class Num:
    """A number. text: its C. lin: of a Python or 64-bit integer, its linear form. low, high: bounds
    of an integer. value: of a literal. true, false: linear forms that are not negative if it is
    true, if it is false. modulus: the C name of the complex number whose absolute value it is."""

    text: str
    rep: str
    kinds: tuple[str, ...]
    tag: str = ""
    lin: Linear | None = None
    low: int = -WIDE
    high: int = WIDE - 1
    value: Any = None
    true: tuple[Linear, ...] = ()
    false: tuple[Linear, ...] = ()
    modulus: str = ""

    @property
    def kind(self) -> str | None:
        """The kind, if there is one only."""
        return self.kinds[0] if len(self.kinds) == 1 else None

    @property
    def is_python(self) -> bool:
        return all(k in PYTHON for k in self.kinds)

    @property
    def is_int(self) -> bool:
        """Whether it can be an index, or count."""
        return self.rep in INTEGERS and not {"bool", "bool_", *TEXT} & {*self.kinds}

    @property
    def is_text(self) -> bool:
        return not TEXT.isdisjoint(self.kinds)


def is_none(x: Value | None) -> bool:
    """Whether an argument is not given, or None."""
    return x is None or (isinstance(x, Known) and x.value is None)


def python(value: Any) -> Num:
    """A literal."""
    kind = type(value).__name__
    if kind == "int":
        return _integer(int(value))
    low, high = (0, 1) if kind == "bool" else (-WIDE, WIDE - 1)
    text = c_text(value, PYTHON[kind])
    return Num(text, PYTHON[kind], (kind,), low=low, high=high, value=value)


@functools.lru_cache(4096)
def _integer(value: int) -> Num:
    if WIDE <= value < 2 * WIDE:
        return Num(f"{value}UL", "u64", ("wide",), low=value, high=value, value=value)
    if not -WIDE <= value < WIDE:
        raise Unreadable(f"an integer of more than 64 bits, {value}")
    return Num(c_int(value), "i64", ("int",), lin=Linear(value), low=value, high=value, value=value)


CHAR = Num("", "u32", ("char",))


def char(x: Value) -> Num | None:
    """A constant text of one character as a number of that kind; None of anything else."""
    if not isinstance(x, Known) or type(x.value) is not str or len(x.value) != 1:
        return None
    return Num(f"{ord(x.value)}U", "u32", ("char",), value=x.value)


def letters(x: Value) -> Num | None:
    """A constant text as a number: one character, or a word; a member of an enumeration as its
    place; None of anything else."""
    if isinstance(x, Known) and isinstance(x.value, Enum):
        return _member(x.value)
    if not isinstance(x, Known) or type(x.value) is not str:
        return None
    return char(x) or Num(f"{words.code_of(x.value)}U", "u32", ("word",), value=x.value)


def _member(x: Enum) -> Num:
    kind = next((k for k, of in MEMBERS.items() if of is type(x)), None)
    if kind is None:
        kind = f"{type(x).__module__}.{type(x).__qualname__}.{len(MEMBERS)}"
        MEMBERS[kind] = type(x)
        TEXT.add(kind)
        PYTHON[kind] = REPRESENTATION[kind] = "u32"
        PYTHON_TYPE[kind] = type(x)
    place = next(k for k, m in enumerate(type(x)) if m is x)
    return Num(f"{place}U", "u32", (kind,), value=x)


def c_int(value: int) -> str:
    if value == -WIDE:
        return f"({value + 1}L - 1)"
    return f"{value}L" if value >= 0 else f"({value}L)"


def c_text(value: Any, rep: str) -> str:
    """The C of a number."""
    from np_compile.kernels.ir.scalars import c_constant

    if rep in PARTS:
        part = PARTS[rep]
        return f"({rep}){{{c_constant(value.real, part)}, {c_constant(value.imag, part)}}}"
    return c_constant(value, rep)


class _Elements:
    """What has elements of one type, and extents."""

    rep: str
    dims: tuple[Num, ...]

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def dtype(self) -> np.dtype:
        return DTYPE_OF[self.rep]

    @property
    def kind(self) -> str:
        """The kind of an element that is taken out."""
        return KIND_OF_DTYPE[self.dtype]


@dataclass(frozen=True)
class Arr(_Elements):
    """An array: C names of its memory (`buf`), of its first element (`data`), extents and strides
    in elements. roots: whose memory it may be. origin: the array it is a view of by slices and
    integers, with, for each axis of that one, where it starts, and its own axis and step or None.
    flat: whether it is known to lie in C order without gaps; ordered: in C order, with gaps
    or without. view: the C of what it is to Python: 0, the array itself whose memory it is; 1, a
    view of that; 2, a view that is read-only; in a type "?" where it may be any."""

    rep: str
    buf: str
    data: str
    dims: tuple[Num, ...]
    strides: tuple[Num, ...]
    roots: frozenset[str]
    origin: tuple[Any, ...] | None = None
    readonly: bool = False
    flat: bool = False
    ordered: bool = False
    view: str = "0"

    @property
    def axes(self) -> tuple[str, tuple]:
        """The array whose part it is, and of each of its axes an index or a slice."""
        if self.origin is not None:
            return self.origin  # type: ignore[return-value]
        return self.data, tuple(("slice", Linear(0), 1, d.lin) for d in self.dims)

    @property
    def span(self) -> str:
        """The first and the last element's addresses, as C arguments."""
        low = high = "0"
        for d, s in zip(self.dims, self.strides, strict=True):
            if s.value is not None and s.value >= 0:
                high += f" + ({d.text} - 1) * {s.text}"
            else:
                step = f"({d.text} - 1) * {s.text}"
                low += f" + (({step}) < 0 ? {step} : 0)"
                high += f" + (({step}) > 0 ? {step} : 0)"
        return f"{self.data} + {low}, {self.data} + {high} + 1"

    @property
    def of_view(self) -> str:
        """What a view of it is."""
        if self.view.isdigit():
            return "2" if self.view == "2" else "1"
        return f"({self.view} == 2 ? 2 : 1)"


Element = Callable[[list[str]], str]


@dataclass(frozen=True)
class Lazy(_Elements):
    """An array that is not in memory: its extents, and the C of its element at indices.

    reads: the arrays it is made of, each with its axes among those of this one (None where it is
    read otherwise than in place).
    """

    rep: str
    dims: tuple[Num, ...]
    at: Element
    reads: tuple[tuple[Arr, bool], ...] = ()
    cheap: bool = True

    made: bool = True

    @property
    def whole(self) -> bool:
        """Whether NumPy has it in memory without gaps: of a view it is not so."""
        return len(self.reads) != 1 or self.made or self.reads[0][0].flat


@dataclass(frozen=True)
class Aggregate:
    """Values side by side, as many as are known here; `made` makes it of their Python values."""

    items: tuple[Any, ...]
    made: Any = tuple


@dataclass(frozen=True)
class Tup(Aggregate):
    """A tuple, a named tuple, or a list of a length that is known. site: where a list is made,
    that might change after all; path: of one from outside."""

    site: Any = None
    path: Any = None


@dataclass(frozen=True)
class Slice(Aggregate):
    """A slice: its bounds and its step, each given or not."""

    made: Any = slice

    @classmethod
    def of(cls, *bounds: Value) -> Slice:
        """Of start, stop and step, None for one that is not given."""
        given = tuple(Known(None) if x is None else x for x in bounds)
        for x in given:
            if x != Known(None) and not (isinstance(x, Num) and x.is_int):
                raise Unreadable("a slice's bound that is no integer")
        return cls(given)

    @property
    def start(self) -> Num | None:
        return self._given(0)

    @property
    def stop(self) -> Num | None:
        return self._given(1)

    @property
    def step(self) -> Num | None:
        return self._given(2)

    def _given(self, k: int) -> Num | None:
        x = self.items[k]
        return None if isinstance(x, Known) else x


@dataclass(frozen=True)
class Items:
    """A container that was made here: it grows and shrinks. buf: the C name. of: the type of its
    items; None where nothing was seen of them yet. sites: where it may have been made."""

    buf: str
    of: Any
    roots: frozenset[str]
    sites: frozenset[Any] = frozenset()
    made: type = list

    @property
    def kind(self) -> str | None:
        """Of a list of numbers of one kind, which lie without gaps: the kind."""
        return self.of.kind if isinstance(self.of, Num) else None


@dataclass(frozen=True)
class Lst(Items):
    """A Python list, a tuple of a length that data tells, or a deque; maxlen: of that."""

    maxlen: int | None = None


class Rec(Items):
    """A list of a fixed number of items that a container holds (`records.py`). of: their tuple."""


@dataclass(frozen=True)
class Table(Items):
    """A dict or a set. of: a tuple of a hash, a key, and of a dict a value. factory: of a
    `defaultdict`; of a set the constants that Python makes it of at once, if it does."""

    factory: Any = None


class Loose(Table):
    """A set of which it is not known in which order Python has it (`sets.py`)."""


class Made(Items):
    """An object of a user's class that was made here (`objects.py`). made: the class."""


class MadeRng(Items):
    """A random generator that is made here, by Python. made: its class."""

    @property
    def text(self) -> str:
        """The C of its bit generator."""
        return f"((bitgen *){self.buf}->data)"

    @property
    def legacy(self) -> bool:
        """Whether it draws as `np.random` itself."""
        return self.made is np.random.RandomState


# What Python lets nobody change.
FIXED = (str, bytes, tuple)

# Memory of which nothing is known: of an item of a list.
ANYWHERE = "*"


@dataclass(frozen=True)
class Rng:
    """A random generator from outside: the C name of its bit generator. legacy: of `np.random`
    itself."""

    text: str
    legacy: bool


@dataclass(frozen=True, eq=False)
class Known:
    """A Python object that is the same in each call: a module, a function, a string, None.
    compiled: of a compiled function, whose value here is what it was made of, the object."""

    value: Any
    compiled: Any = None

    def __eq__(self, other: object) -> bool:
        """Of one type: `np.dtype("f8")` equals None, `np.float64` and "f8", for NumPy."""
        if not isinstance(other, Known) or type(self.value) is not type(other.value):
            return False
        if self.compiled is not other.compiled:
            return False
        return self.value is other.value or self.value == other.value

    @property
    def itself(self) -> Any:
        """The object that it is to Python."""
        return self.value if self.compiled is None else self.compiled

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True)
class Obj:
    """An object of the user's, whose attributes are read and written by name; or a dict with keys
    that are text, whose items are like attributes of the name `['key']`. path: how it is reached
    from the arguments and globals."""

    path: str
    type: type


@dataclass(frozen=True)
class Begun(Obj):
    """An object that is made, and that its `__init__` is at work on. path: a name of its own."""


def item_name(x: Obj, items: list[Any]) -> str:
    """The name of a dict's item in the place of an attribute's."""
    key = items[0].value if len(items) == 1 and isinstance(items[0], Known) else None
    if x.type is not dict or type(key) is not str:
        raise Unreadable("an index of this value")
    return f"[{key!r}]"


@dataclass(frozen=True)
class Range:
    """A `range`."""

    start: Num
    stop: Num
    step: Num


@dataclass(frozen=True)
class Conflict:
    """A name that has been given values of different types: nothing can be done with it."""

    why: str


@dataclass(frozen=True)
class Opaque:
    """A value from outside that compiled code does nothing with. path: where it is found."""

    path: tuple
    why: str


@dataclass(frozen=True)
class Flagged:
    """What has a value only if the C integer `flag` is not zero."""

    value: Any
    flag: str


class Maybe(Flagged):
    """A name that may have no value yet."""


class OrNone(Flagged):
    """A value, or None."""


Value = Any

# What variables hold: see `variables.Variable`.
HELD = (Num, Arr, Aggregate, Items, Maybe, OrNone)


@dataclass(frozen=True)
class Binary:
    """`bin(x)`, of which the ones are counted."""

    of: Num


@dataclass(frozen=True)
class Partial:
    """`functools.partial(function, *args, **kwargs)`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass
class Bound:
    """A method, or a function of the shim's kind, with what it is bound to."""

    owner: Any
    name: str
    more: dict[str, Any] = field(default_factory=dict)


def shown(x: Value) -> str:
    """What a value is, for people."""
    if isinstance(x, Flagged):
        return shown(x.value) + (" or None" if isinstance(x, OrNone) else "")
    if isinstance(x, Num):
        kinds = [PYTHON_TYPE[k].__name__ if k in PYTHON_TYPE else k for k in x.kinds]
        return ("a value" if x.is_text else "a number") + f" of type {' or '.join(kinds)}"
    if isinstance(x, _Elements):
        return f"an array of {x.dtype} with {x.ndim} {'axis' if x.ndim == 1 else 'axes'}"
    if isinstance(x, (Conflict, Opaque)):
        return f"a value that cannot be compiled ({x.why})"
    if isinstance(x, Tup):
        return f"a {x.made.__name__} of {len(x.items)}"
    made = x.made if isinstance(x, Items) else x.type if isinstance(x, Obj) else None
    if isinstance(x, Known):
        if x.value is None:
            return "None"
        name = getattr(x.value, "__name__", None)
        if name is not None:
            return f"{'class' if isinstance(x.value, type) else 'function'} {name}"
        made = type(x.value)
    name = made.__name__ if made is not None else type(x).__name__.lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def one_or_another(a: Value, b: Value) -> str:
    """Why no name can hold both of two values."""
    x, y = shown(a), shown(b)
    return f"it is one or another: {x}, or {y if x != y else 'one of another form'}"
