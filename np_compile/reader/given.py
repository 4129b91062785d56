"""Lists, dicts and sets that a region is given: C reads them when it begins, and gives the changes
back at its end.

The type of the items is that of an example; C looks at each item of each call. A *form* says it in
letters: `i`, `f`, `b` an int, a float, a bool; `I`, `F`, `B` NumPy's; `u` and a representation, the
letters of several kinds and a full stop: a number of any of these; `n` None; `?` what may be None;
`s` text, `y` bytes; parentheses a tuple, brackets a list, braces a dict's key and value, or a set's
key alone (`n`: of a set of nothing); `@`, the
number of a class and its attributes in parentheses an object of a class of the user's; `a`, a
letter of the dtype, the rank, extents and strides (a full stop where data tells) an array without
gaps. A list or an object that several names or rows share is read once. What a region may have
changed is compared with the caller's list, or object, item by item, and only what differs is
replaced: lists stay the objects that they are, and so do items that are as they were.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from . import objects
from .dicts import HASH, class_of_key
from .nest import CODES
from .numbers import join_numbers
from .read import Reader, int_constant
from .values import (
    ANYWHERE,
    CHAR,
    KIND_OF_DTYPE,
    REPRESENTATION,
    Arr,
    Conflict,
    Known,
    Loose,
    Lst,
    Made,
    Num,
    OrNone,
    Table,
    Tup,
    Unreadable,
    Value,
)
from .variables import item_type, join

# Whether lists and floats lie in memory as the C below takes it, which a build of Python without a
# lock does not promise.
_LENGTH, _VALUE = [1, 2, 3], 1.5
KNOWN = (
    ctypes.c_ssize_t.from_address(id(_LENGTH) + 16).value == len(_LENGTH)
    and ctypes.c_double.from_address(id(_VALUE) + 16).value == _VALUE
)
FEW = 8  # a list of so many items is taken as a tuple, as long as that will do
_DEEP = 4  # lists in one another
RANK = 8  # of arrays in objects, at most
_SMALL = 8  # extents up to here are constants, where all examples have them
_NAMES = {
    int: "int", float: "float", bool: "bool", np.int64: "int64", np.float64: "float64",
    np.bool_: "bool_",
}  # fmt: skip
_TEXTS: dict[Any, Num] = {str: CHAR, bytes: Num("", "i64", ("int",), low=0, high=255)}
_LETTERS = {"int": "i", "float": "f", "bool": "b", "int64": "I", "float64": "F", "bool_": "B"}


@dataclass
class Given:
    """A list or dict that a region is given. path: how it is found; name: the C name, and its
    root."""

    path: tuple
    name: str
    form: str


def type_of(r: Reader, some: Sequence[Any], path: tuple, name: str = "", depth: int = 0) -> Any:
    """The type of lists, dicts or sets such as these, with what they were seen to be given. path:
    of what the region is given; depth: of the containers there that these are. It is a Conflict
    where C does not read such ones."""
    of: Any = None
    if type(some[0]) in _TEXTS:
        return Lst(name, _TEXTS[type(some[0])], frozenset((name or ANYWHERE,)), made=type(some[0]))
    made = type(some[0])
    if made in (dict, set):
        entries = [entry for x in some for entry in (x.items() if made is dict else zip(x))]
        of = _entry(r, entries, path, depth) if entries else None
    else:
        of = _of_examples(r, list(chain.from_iterable(some)), path, depth)
    if isinstance(of, Conflict):
        return of
    site = "list", "given", path, depth
    seen = r.memory.get(site, {}).get("of")
    if seen is not None:
        of = item_type(seen if of is None else join(of, seen, r))
        if isinstance(of, Conflict):
            return of
    roots = frozenset((name or ANYWHERE,))
    if made in (dict, set):
        return Table(name, of, roots, frozenset((site,)), made)
    return Lst(name, of, roots, frozenset((site,)))


def _entry(r: Reader, entries: Sequence[tuple], path: tuple, depth: int) -> Any:
    """The type of a dict's entries, or of a set's, which are keys alone."""
    keys, *values = zip(*entries, strict=True)
    key = _of_examples(r, keys, path, _DEEP)
    of = [key, *[_of_examples(r, x, path, depth) for x in values]]
    for x in of:
        if isinstance(x, Conflict):
            return x
    try:
        class_of_key(key)
    except Unreadable as e:
        return Conflict(str(e))
    return Tup((HASH, *of))


def _of_examples(r: Reader, values: Sequence[Any], path: tuple, depth: int) -> Any:
    kinds = set(map(type, values))
    if not kinds:
        return None
    if type(None) in kinds:
        if len(kinds) == 1:
            return Known(None)
        of = _of_examples(r, [x for x in values if x is not None], path, depth)
        if isinstance(of, (Num, Tup)):
            return OrNone(of, "")
        return of if isinstance(of, Conflict) else Conflict("items that are lists or None")
    if kinds in ({str}, {bytes}):
        return type_of(r, values[:1], path)
    if kinds in ({list}, {dict}, {set}):
        if depth == _DEEP:
            return Conflict("lists in lists in lists")
        return type_of(r, values, path, depth=depth + 1)
    if kinds == {tuple}:
        if len(set(map(len, values))) > 1:
            return Conflict("tuples of one length or another")
        parts = tuple([_of_examples(r, x, path, _DEEP) for x in zip(*values, strict=True)])
        return next((x for x in parts if isinstance(x, Conflict)), Tup(parts))
    if kinds == {np.ndarray}:
        return _of_arrays(values)
    if len(kinds) == 1 and objects.is_written(*kinds):
        return Conflict("objects in objects") if depth > _DEEP else _of_objects(r, values, path)
    made: Any = None
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        name = _NAMES.get(kind)
        if name is None:
            return Conflict(f"items of type {kind.__name__}")
        x = Num("", REPRESENTATION[name], (name,))
        made = x if made is None else join_numbers(made, x)
        if isinstance(made, Conflict):
            return made
    return made


def _of_objects(r: Reader, values: Sequence[Any], path: tuple) -> Any:
    """The type of objects of a class: of attributes that C does not read, nothing is known."""
    kind = type(values[0])
    values = list({id(x): x for x in values}.values())
    names = objects.names_in(values[0])
    if any(objects.names_in(x) != names for x in values):
        return Conflict(f"objects of {kind.__name__} with different attributes")
    fields = {}
    for name in names:
        where = (*path, f".{name}")
        of = _of_examples(r, [getattr(x, name) for x in values], where, _DEEP + 1)
        if of is not None and form_of(r, of) is not None:
            fields[name] = of
    if not objects.known(r, kind) <= fields.keys():  # C was to have one hold what it does not read
        return Conflict(f"objects of {kind.__name__} with attributes of such types")
    objects.learn(r, kind, fields)
    return Made("", None, frozenset((ANYWHERE,)), made=kind)


def _of_arrays(values: Sequence[np.ndarray]) -> Any:
    """The type of arrays without gaps."""
    if len({(x.dtype, x.ndim) for x in values}) > 1:
        return Conflict("arrays of different dtypes or ranks")
    x = values[0]
    kind = KIND_OF_DTYPE.get(x.dtype)
    if kind is None or not 0 < x.ndim <= RANK:
        return Conflict(f"arrays of dtype {x.dtype} and rank {x.ndim}")
    dims = []
    for extents in zip(*(y.shape for y in values), strict=True):
        same = len({*extents}) == 1 and extents[0] <= _SMALL
        dims.append(int_constant(extents[0]) if same else Num("", "i64", ("int",), low=0))
    strides = [int_constant(1)]
    for d in dims[:0:-1]:
        before = strides[0].value
        known = before is not None and d.value is not None
        strides.insert(0, int_constant(before * d.value) if known else Num("", "i64", ("int",)))
    made = Arr(REPRESENTATION[kind], "", "", tuple(dims), tuple(strides), frozenset((ANYWHERE,)),
               flat=True, ordered=True)  # fmt: skip
    return item_type(made)


def _form_of_array(x: Arr) -> str | None:
    sizes = [d.value for d in (*x.dims, *x.strides)]
    if not x.flat or x.readonly or any(n is not None and not 0 <= n <= 9 for n in sizes):
        return None
    letters = "".join("." if n is None else str(n) for n in sizes)
    return f"a{chr(ord('A') + CODES.index(x.rep))}{x.ndim}{letters}"


def form_of(r: Reader, x: Value) -> str | None:
    """The form of items of a type; None if C does not read such ones."""
    if x is None:
        return ""
    if isinstance(x, Num):
        letters = [_LETTERS.get(kind) for kind in x.kinds]
        if None in letters or x.rep not in ("f64", "i64", "bool"):
            return None
        text = "".join(map(str, letters))
        return text if len(text) == 1 else f"u{'f' if x.rep == 'f64' else 'i'}{text}."
    if isinstance(x, Known):
        return "n" if x.value is None else None
    if isinstance(x, OrNone):
        inner = form_of(r, x.value) if isinstance(x.value, (Num, Tup)) else None
        return None if inner is None or {*"[{a@"} & {*inner} else f"?{inner}"
    if isinstance(x, Lst) and x.made in _TEXTS:
        return "s" if x.made is str else "y"
    if isinstance(x, Lst) and x.made is list:
        inner = form_of(r, x.of)
        return None if inner is None else f"[{inner}]"
    if isinstance(x, Table) and x.made in (dict, set) and not isinstance(x, Loose):
        nothing = ["n"] if x.made is set else []
        parts = nothing if x.of is None else [form_of(r, y) for y in x.of.items[1:]]
        return None if None in parts else f"{{{''.join(map(str, parts))}}}"
    if isinstance(x, Tup) and x.made is tuple:
        parts = [form_of(r, y) for y in x.items]
        return None if None in parts else f"({''.join(map(str, parts))})"
    if isinstance(x, Made):
        parts = [form_of(r, y) for y in objects.layout(r, x.made).of.values()]
        letter = r.entry.letter_of(x.made)
        return None if None in parts or not letter else f"@{letter}({''.join(map(str, parts))})"
    return _form_of_array(x) if isinstance(x, Arr) else None


def lines(lists: Sequence[Given], aside: int, words: int, written: frozenset[str]) -> list[str]:
    """The C that reads the lists. aside: how many lists are taken as tuples. words: of input,
    before the lists' own. written: the roots of memory that may change."""
    if not lists:
        return []
    rows = int(ANYWHERE in written)
    changes = [rows or int(x.name in written) for x in lists]
    forms = ", ".join(f'"{x.form}"' for x in lists)
    return [
        f"Buf *lists[{len(lists)}]; static const char *const forms[] = {{{forms}}};",
        f"{{ static const char changes[] = {{{', '.join(map(str, changes))}}};",
        f"i64 fits = read_lists(rt, in + {words}, lists, forms, changes, {rows}, {len(lists)}, "
        f"{aside}); if (fits < 1) return fits; }}",
        *(f"Buf *const {x.name} = lists[{k}];" for k, x in enumerate(lists)),
    ]
