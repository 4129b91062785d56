"""Variables: C names for values that loops and branches change, and the types that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from .linear import SAFE, Linear
from .numbers import as_union, join_numbers
from .read import C_STORAGE, Again, Reader
from .values import (
    ANYWHERE,
    C_TYPE,
    HELD,
    WORDS,
    Aggregate,
    Arr,
    Conflict,
    Flagged,
    Items,
    Known,
    Lst,
    Maybe,
    Num,
    OrNone,
    Rec,
    Slice,
    Tup,
    Unreadable,
    Value,
    letters,
    one_or_another,
)


class Variable:
    """C variables that hold a value of a type: of an array several. `load` gives its value now.
    places: of a C type, C that can be assigned to, in the place of variables of its own."""

    def __init__(self, r: Reader, hint: str, of: Value, places: Callable[[str], str] | None = None):
        self.of = of
        self.declare: list[str] = []
        self._parts: list[str] = []
        self._places = places
        self._build(r, hint, of)

    def _new(self, r: Reader, ctype: str, hint: str) -> None:
        if self._places is not None:
            self._parts.append(self._places(ctype))
            return
        name = r.fresh(hint)
        zero = "{0, 0}" if ctype in ("c64", "c128") else "0"
        self.declare.append(f"{ctype} {name} = {zero};")
        self._parts.append(name)

    def _build(self, r: Reader, hint: str, x: Value) -> None:
        hint = "".join(c if c.isascii() and c.isalnum() else "_" for c in hint)
        if isinstance(x, Num):
            self._new(r, C_TYPE[x.rep], hint)
            if len(x.kinds) > 1:
                self._new(r, "int", hint + "_kind")
        elif isinstance(x, Arr):
            self._new(r, "Buf *", hint + "_buf")
            self._new(r, "void *", hint + "_data")
            for d in (*x.dims, *x.strides):
                if not d.text:
                    self._new(r, "i64", hint + "_n")
            if x.view == "?":
                self._new(r, "int", hint + "_view")
        elif isinstance(x, Items):
            self._new(r, "Buf *", hint + "_list")
        elif isinstance(x, Aggregate):
            self.items = [Variable(r, hint, y, self._places) for y in x.items]
            for v in self.items:
                self.declare += v.declare
        elif isinstance(x, Flagged):
            self.inner = Variable(r, hint, x.value, self._places)
            self.declare += self.inner.declare
            self._new(r, "int", hint + "_set")

    @property
    def place(self) -> str:
        """Of a number of one kind: its C variable."""
        return self._parts[0]

    def store(self, r: Reader, x: Value, owned: bool = True) -> list[str]:
        """The C that stores a value. owned: whether an array in it is held by the variable."""
        return [*(self.hold(x) if owned else ()), *self.put(r, x, owned)]

    def hold(self, x: Value) -> list[str]:
        """The C that holds the arrays of a value, before any variable gives back what it has."""
        if isinstance(self.of, (Arr, Items)):
            return [f"retain(rt, {x.buf});"]
        if isinstance(self.of, Aggregate):
            return [y for v, item in zip(self.items, x.items, strict=True) for y in v.hold(item)]
        if isinstance(self.of, Flagged):
            if _is_none(x):
                return []
            if type(x) is not type(self.of):
                return self.inner.hold(x)
            held = self.inner.hold(x.value)
            return [f"if ({x.flag}) {{", *held, "}"] if held else []
        return []

    def put(self, r: Reader, x: Value, owned: bool = True) -> list[str]:
        """The C that stores a value that is held."""
        if isinstance(self.of, Num):
            lines: list = []
            with r.elsewhere(lines), r.staying():
                x = letters(x) or x
                x = as_union(r, x, self.of)
                r.line(f"{self._parts[0]} = {x.text};")
                if len(self.of.kinds) > 1:
                    r.line(f"{self._parts[1]} = {x.tag};")
            return lines
        free = [f"release(rt, {name});" for name in self._parts[:1] if owned]
        if isinstance(self.of, Arr):
            values = [x.buf, f"(void *){x.data}"]
            for mine, theirs in zip(
                (*self.of.dims, *self.of.strides), (*x.dims, *x.strides), strict=True
            ):
                if not mine.text:
                    values.append(theirs.text)
            if self.of.view == "?":
                values.append(x.view)
            return [*free, *(f"{p} = {v};" for p, v in zip(self._parts, values, strict=True))]
        if isinstance(self.of, Items):
            return [*free, f"{self._parts[0]} = {x.buf};"]
        if isinstance(self.of, Aggregate):
            return [
                line
                for v, y in zip(self.items, x.items, strict=True)
                for line in v.put(r, y, owned)
            ]
        if isinstance(self.of, Flagged):
            clear = [] if owned else [f"{name} = 0;" for name in self.inner.buffers()]
            if isinstance(self.of, OrNone) and _is_none(x):
                return [*clear, f"{self._parts[0]} = 0;"]
            if type(x) is type(self.of):
                lines = [f"if ({x.flag}) {{", *self.inner.put(r, x.value, owned), "}"]
                return [*clear, *lines, f"{self._parts[0]} = {x.flag};"]
            return [*self.inner.put(r, x, owned), f"{self._parts[0]} = 1;"]
        return []

    def buffers(self) -> list[str]:
        """The C variables that hold arrays."""
        if isinstance(self.of, (Arr, Items)):
            return [self._parts[0]]
        if isinstance(self.of, Aggregate):
            return [name for v in self.items for name in v.buffers()]
        return self.inner.buffers() if isinstance(self.of, Flagged) else []

    def flags(self) -> list[str]:
        """The C variable that says whether there is a value."""
        return [self._parts[0]] if isinstance(self.of, Flagged) else []

    def load(self, r: Reader) -> Value:
        """Its value, under C names that stay."""
        x = self.of
        if isinstance(x, Num):
            text = r.named(self._parts[0], C_TYPE[x.rep])
            tag = r.named(self._parts[1], "int", "kind") if len(x.kinds) > 1 else ""
            lin = None
            if x.rep == "i64":
                lin = r.facts.name(text, x.low, x.high)
            return Num(text, x.rep, x.kinds, tag, lin, x.low, x.high)
        if isinstance(x, Arr):
            parts = iter(self._parts)
            buf = r.named(next(parts), "Buf *", "b")
            data = r.named(f"({C_STORAGE(x.rep)} *){next(parts)}", f"{C_STORAGE(x.rep)} *", "p")
            dims: list[Num] = []
            strides: list[Num] = []
            for k, d in enumerate((*x.dims, *x.strides)):
                if not d.text:
                    name = r.named(next(parts), "i64", "n")  # as it is now
                    d = r.integer(name, d.low if k < x.ndim else -SAFE, min(d.high, SAFE))
                (dims if k < x.ndim else strides).append(d)
            view = r.named(next(parts), "int", "view") if x.view == "?" else x.view
            return Arr(x.rep, buf, data, tuple(dims), tuple(strides), x.roots, None, x.readonly,
                       x.flat, x.ordered, view)  # fmt: skip
        if isinstance(x, Items):
            return replace(x, buf=r.named(self._parts[0], "Buf *", "b"))
        if isinstance(x, Aggregate):
            return replace(x, items=tuple(v.load(r) for v in self.items))
        if isinstance(x, Flagged):
            return type(x)(self.inner.load(r), r.named(self._parts[0], "int", "set"))
        return x


def stored(r: Reader, pairs: Iterable[tuple[Variable, Value]]) -> list[str]:
    """The C that stores values in variables, all at once."""
    pairs = list(pairs)
    held = [line for v, x in pairs for line in v.hold(x)]
    return [*held, *(line for v, x in pairs for line in v.put(r, x))]


def join(a: Value, b: Value, r: Reader) -> Value:
    """What holds either of two values; its texts mean nothing."""
    texts = [_is_text(x) or letters(x) is not None for x in (a, b)]
    if all(texts) and not (isinstance(a, Known) and a == b):
        a, b = letters(a) or a, letters(b) or b
    if isinstance(a, Maybe) or isinstance(b, Maybe):
        inner = join(
            a.value if isinstance(a, Maybe) else a, b.value if isinstance(b, Maybe) else b, r
        )
        return inner if isinstance(inner, Conflict) else Maybe(inner, "")
    if isinstance(a, OrNone) or isinstance(b, OrNone) or _is_none(a) != _is_none(b):
        x, y = (v.value if isinstance(v, OrNone) else v for v in (a, b))
        if isinstance(x, (Known, *HELD)) and isinstance(y, (Known, *HELD)):
            inner = y if _is_none(x) else x if _is_none(y) else join(x, y, r)
            inner = letters(inner) or inner
            if isinstance(inner, HELD):
                return OrNone(as_type(inner), "")
            if isinstance(inner, Conflict):
                return inner
    if isinstance(a, Conflict):
        return a
    if isinstance(b, Conflict):
        return b
    if isinstance(a, Num) and isinstance(b, Num):
        return join_numbers(a, b)
    if isinstance(a, Arr) and isinstance(b, Arr):
        if (a.rep, a.ndim) == (b.rep, b.ndim):
            return Arr(
                a.rep, "", "", tuple(_join_extent(*d, r) for d in zip(a.dims, b.dims, strict=True)),
                tuple(_join_extent(*d, r) for d in zip(a.strides, b.strides, strict=True)),
                a.roots | b.roots, None, a.readonly or b.readonly, a.flat and b.flat,
                a.ordered and b.ordered, a.view if a.view == b.view else "?",
            )  # fmt: skip
        return Conflict(one_or_another(a, b))
    if isinstance(a, Items) and isinstance(b, Items) and _alike(a) == _alike(b):
        return _join_items(a, b, r)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Tup) and x.made is list and x.site and isinstance(y, Lst):
            r.memory[x.site] = {"of": y.of}
            raise Again
        if isinstance(x, Rec) and isinstance(y, Tup) and y.made is list:
            shared(r, y)
        if isinstance(x, Rec) and isinstance(y, Lst):
            _as_records(r, y, len(x.of.items))
            as_lists(r, x)
    if isinstance(a, Slice) and isinstance(b, Slice):
        items = tuple(join(x, y, r) for x, y in zip(a.items, b.items, strict=True))
        same = all(isinstance(x, (Num, Known)) for x in items)
        return Slice(items) if same else Conflict("it is a slice of one form or another")
    if isinstance(a, Tup) and isinstance(b, Tup) and a.made is b.made:
        if len(a.items) != len(b.items):
            if a.made is list and a.site and b.site:
                r.memory[a.site] = r.memory[b.site] = {"of": None}
                raise Again
            return Conflict(one_or_another(a, b))
        if a.made is list and a.path != b.path:
            return Conflict("it is a list from outside or another one")
        if _is_in(a, b) or _is_in(b, a):  # without end, and a tree doubles each time
            return Conflict("it is a tuple that holds one like itself, or None")
        items = tuple(join(x, y, r) for x, y in zip(a.items, b.items, strict=True))
        found = [x for x in items if isinstance(x, Conflict)]
        return found[0] if found else Tup(
            items, a.made, a.site if a.site == b.site else None,
            a.path if a.path == b.path else None,
        )  # fmt: skip
    if a == b:
        return a
    return Conflict(one_or_another(a, b))


def _is_in(a: Tup, b: Tup) -> bool:
    """Whether a tuple holds one of another's type, which thus has no end."""
    inside = [x.value if isinstance(x, Flagged) else x for x in b.items]
    those = [x for x in inside if isinstance(x, Tup)]
    return bool(those) and any(item_type(a) == item_type(x) or _is_in(a, x) for x in those)


def _alike(x: Items) -> tuple:
    """What two containers have in common that a name may stand for."""
    return type(x), x.made, getattr(x, "factory", None), getattr(x, "maxlen", None)


def _join_items(a: Items, b: Items, r: Reader) -> Value:
    of = a.of if a.of == b.of else b.of if a.of is None else a.of if b.of is None else None
    of = of or (join(a.of, b.of, r) if a.of is not None and b.of is not None else None)
    if isinstance(of, Conflict):
        return as_lists(r, a, b) if isinstance(a, Rec) else of
    if a.sites != b.sites:
        for x in (a, b):
            if x.of != of:  # its items are as those of the other one, from the beginning
                if not x.sites:
                    return Conflict(f"it is a {x.made.__name__} of one type or another")
                if any(r.memory.get(site, {}).get("of") != of for site in x.sites):
                    made_anew(r, x, of)  # else it is what a container was to hold before
    return replace(a, buf="", of=of, roots=a.roots | b.roots, sites=a.sites | b.sites)


def made_anew(r: Reader, x: Items, of: Value) -> NoReturn:
    """Read again, with a container that is made for items of another type from the beginning."""
    if isinstance(x, Rec):
        _forget(r, x.sites)
    r.memory |= {site: r.memory.get(site, {}) | {"of": of} for site in x.sites}
    raise Again


def learned(r: Reader, x: Items, of: Value) -> None:
    """A container is to hold items of another type from the beginning: all is read again, but first
    to its end, since what comes may tell the same of others."""
    for site in x.sites:
        seen = r.memory.get(site, {})
        known = seen.get("of") if x.of is None else None  # by another one of its names
        known = of if known is None else join(known, of, r)
        if isinstance(known, Conflict):
            raise Unreadable(known.why)
        r.memory[site] = seen | {"of": item_type(known)}
    object.__setattr__(x, "of", of)  # under all its names; the C comes to nothing
    r.entry.again = True


def shared(r: Reader, x: Value) -> None:
    """A container is to refer to a value: lists in it that were taken for tuples are records."""
    if not isinstance(x, Tup):
        return
    if x.made is list and x.site is not None:
        r.memory[x.site] = {"of": None, "record": True}
        raise Again
    for y in x.items:
        shared(r, y)


def as_lists(r: Reader, *those: Items) -> NoReturn:
    """Read again, with lists whose items are of one type in the place of records."""
    sites = frozenset(site for x in those if isinstance(x, Rec) for site in x.sites)
    if not sites:
        raise Unreadable("a list that changes")
    _forget(r, sites)
    r.memory |= {site: {"of": None, "record": False} for site in sites}
    raise Again


def _as_records(r: Reader, x: Lst, n: int) -> None:
    """Read again, with records in the place of lists, if those are written as lists of n items."""
    sites = [site for site in x.sites if r.displays.get(site) == n]
    fresh = all(r.memory.get(site, {}).get("record") is None for site in sites)
    if fresh and sites and len(sites) == len(x.sites):
        r.memory |= {site: {"of": None, "record": True} for site in sites}
        raise Again


def _forget(r: Reader, sites: frozenset[Any]) -> None:
    """Learn anew what holds records of those sites."""
    for key in [key for key, seen in r.memory.items() if _mentions(seen, sites)]:
        del r.memory[key]


def _mentions(x: Any, sites: frozenset[Any]) -> bool:
    """Whether there are records of those sites in what is remembered of a container or a class."""
    if isinstance(x, Rec) and x.sites & sites:
        return True
    if isinstance(x, Tup):
        return any(_mentions(y, sites) for y in x.items)
    parts = x if isinstance(x, dict) else getattr(x, "of", None)
    if isinstance(parts, dict):
        return any(_mentions(y, sites) for y in parts.values())
    return parts is not None and _mentions(parts, sites)


def _join_extent(a: Num, b: Num, r: Reader) -> Num:
    """The extent of either of two arrays: the one that both have, or one in a variable."""
    known = a.lin is not None and b.lin is not None and (a.text or a.value is not None)
    if known and r.facts.same(a.lin or Linear(), b.lin or Linear()):
        return a
    low = min(a.low, b.low)
    return Num("", "i64", ("int",), low=min(low, 2) if low >= 0 else -SAFE, high=SAFE)


def settled_extent(d: Num) -> Num:
    """An extent under a text that means the same in an outer block."""
    if d.value is not None or d.lin is None or not d.text:
        return d
    parts = [f"{c}L * {k}" if c != 1 else k for k, c in d.lin.terms.items()]
    text = " + ".join([*parts, *([f"{d.lin.const}L"] if d.lin.const else [])])
    text = text if text in d.lin.terms else f"({text})"
    return Num(text, "i64", ("int",), "", d.lin, d.low, d.high)


def same_type(a: Value, b: Value, r: Reader) -> bool:
    """Whether a variable made for `a` holds `b` as well."""
    if isinstance(a, Flagged):
        if isinstance(a, OrNone) and _is_none(b):
            return True
        return same_type(a.value, b.value if type(b) is type(a) else b, r)
    if _is_text(a):
        b = letters(b) or b
    if type(a) is not type(b):
        return False
    if isinstance(a, Num):
        if a.kind == "word" and set(b.kinds) <= WORDS:
            return True
        if not set(b.kinds) <= set(a.kinds):
            return False
        return a.rep != "i64" or (a.low <= b.low and b.high <= a.high)
    if isinstance(a, Arr):
        alike = (a.rep, a.ndim) == (b.rep, b.ndim)
        return (
            alike
            and a.readonly >= b.readonly
            and a.flat <= b.flat
            and a.ordered <= b.ordered
            and b.roots <= a.roots
            and a.view in (b.view, "?")
            and all(
                k >= a.ndim or (x.low <= y.low and y.high <= x.high)
                if not x.text
                else x.lin is not None and y.lin is not None and r.facts.same(x.lin, y.lin)
                for k, (x, y) in enumerate(
                    zip((*a.dims, *a.strides), (*b.dims, *b.strides), strict=True)
                )
            )
        )
    if isinstance(a, Items):
        same = (a.of, _alike(a)) == (b.of, _alike(b)) and b.sites <= a.sites
        return same and b.roots <= a.roots
    if isinstance(a, Tup) and a.path != b.path:  # which of two lists it is
        return False
    if isinstance(a, Aggregate):
        return len(a.items) == len(b.items) and all(
            same_type(x, y, r) for x, y in zip(a.items, b.items, strict=True)
        )
    return a == b or isinstance(a, Conflict)


def is_same(a: Value, b: Value) -> bool:
    """Whether two values are one and the same."""
    if isinstance(a, (Num, Arr, Aggregate)):
        return a is b or a == b
    return a is b or (type(a) is type(b) and a == b)


def as_type(x: Value, keep: bool = False) -> Value:
    """A type that holds x. keep: extents of arrays, as long as none is found that differs."""
    if isinstance(x, Arr):
        dims, strides = (
            tuple(
                d if d.value is not None
                else settled_extent(d) if keep and d.text and d.lin is not None
                else replace(d, text="", lin=None)
                for d in those
            )
            for those in (x.dims, x.strides)
        )  # fmt: skip
        view = x.view if x.view.isdigit() else "?"
        return replace(x, dims=dims, strides=strides, origin=None, view=view)
    if isinstance(x, Aggregate):
        return replace(x, items=tuple(as_type(y, keep) for y in x.items))
    if isinstance(x, Flagged):
        return type(x)(as_type(x.value, keep), "")
    if isinstance(x, Num):
        return replace(x, lin=None, value=None)
    return x


def item_type(x: Value) -> Value:
    """The type of items of a list that x is one of, with nothing in it of where x is."""
    if isinstance(x, Num):
        return Num("", x.rep, x.kinds)
    if isinstance(x, Aggregate):
        return type(x)(tuple(map(item_type, x.items)), x.made)
    if isinstance(x, Arr):
        dims, strides = (
            tuple(
                d if d.value is not None else Num("", "i64", ("int",), low=-SAFE, high=SAFE)
                for d in those
            )
            for those in (x.dims, x.strides)
        )
        return replace(
            x, buf="", data="", dims=dims, strides=strides, roots=frozenset((ANYWHERE,)),
            origin=None, view="?",
        )  # fmt: skip
    if isinstance(x, Items):
        return replace(x, buf="", roots=frozenset((ANYWHERE,)))
    if isinstance(x, OrNone):
        return OrNone(item_type(x.value), "")
    if _is_none(x):
        return x
    if (word := letters(x)) is not None:
        return item_type(word)
    return Conflict("items of a list that are neither numbers nor arrays")


def _is_text(x: Value) -> bool:
    return isinstance(x, Num) and x.is_text


def _is_none(x: Value) -> bool:
    return isinstance(x, Known) and x.value is None
