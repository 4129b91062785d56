"""Operators on numbers that are of one kind or another, which only data can tell.

The kinds that an operand may be of are calculated with as one where that gives what each of them
would give: Python's integers and NumPy's as 64-bit ones, integers and floats as float64. Where an
integer has not the bits that its own kind has, compiled code leaves. float32 rounds in its own way:
there the program branches.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from np_compile.kernels.ir.scalars import c_cast

from . import members, wide, words
from .numbers import (
    COMPARISONS,
    EXACT,
    OPERATORS,
    as_union,
    convert,
    fits,
    join_numbers,
    kind_of,
    limits_of,
    modulus,
    of_one_kind,
    python_integers,
    rep_of,
    resolved,
)
from .numbers import unary as of_one
from .read import Reader
from .values import (
    C_TYPE,
    DTYPE_OF,
    INTEGERS,
    MEMBERS,
    PARTS,
    PYTHON,
    REPRESENTATION,
    Conflict,
    Num,
    Unreadable,
    Value,
    c_int,
    python,
    shown,
)

_WHOLE = INTEGERS - {"u64"} | {"bool"}  # what 64-bit integers hold


@dataclass(frozen=True)
class _Way:
    """Kinds that two operands may be of: their places, what comes out, calculated in what."""

    places: tuple[int, int]
    kinds: tuple[str, str]
    kind: str
    rep: str


def binary(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a op b`, op: the name of the operator's class in `ast`."""
    if op == "MatMult":
        raise Unreadable("@ of numbers")
    if a.is_text or b.is_text:
        return _of_characters(r, op, a, b)
    if wide.is_wide(a, b):
        return wide.binary(r, op, a, b)
    if len(a.kinds) == len(b.kinds) == 1:
        return of_one_kind(r, op, a, b)
    caught, r.catches = r.catches, r.catches if a.is_python and b.is_python else []
    try:
        return _of_several(r, op, a, b)
    finally:
        r.catches = caught  # NumPy's numbers raise nothing


def _of_several(r: Reader, op: str, a: Num, b: Num) -> Num:
    ways = [
        _Way((i, j), (k, m), *_calculated(op, k, m))
        for (i, k), (j, m) in itertools.product(enumerate(a.kinds), enumerate(b.kinds))
    ]
    reps = {w.rep for w in ways}
    if "f32" in reps and len(reps) > 1:
        return _apart(r, op, a, b)
    kinds = list(dict.fromkeys(w.kind for w in ways))
    if op not in COMPARISONS or len(reps) == 1:
        _weak_fit(r, a, b, ways)
    if len(reps) == 1:
        rep = ways[0].rep
        x = of_one_kind(r, op, _common(a, rep), _common(b, rep), careful=True)
        if len(kinds) == 1:
            return _as_kind(r, x, kinds[0])
    elif reps <= _WHOLE:
        x = python_integers(r, op, _as(a, "i64", "int"), _as(b, "i64", "int"))
    elif reps <= _WHOLE | {"f64"} and op not in ("Pow", "Div"):
        x = of_one_kind(r, op, _as(a, "f64"), _as(b, "f64"), careful=True)
    elif reps <= {"i64", "f64", "c128"}:
        x = of_one_kind(r, op, _common(a), _common(b), careful=True)
    else:
        raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
    return _tagged(r, x, a, b, ways, kinds)


def unlike(op: str, x: Value) -> Num:
    """`x == text` or `x != text` of what is no text: NumPy's numbers give a truth of NumPy's."""
    made = python(op == "NotEq")
    kinds = x.kinds if isinstance(x, Num) else ()
    ours = {k in PYTHON or k in MEMBERS for k in kinds}
    if len(ours) > 1:
        raise Unreadable("a comparison of a text and a number of Python's or of NumPy's")
    return made if ours != {False} else Num(made.text, "bool", ("bool_",), low=0, high=1)


def _of_characters(r: Reader, op: str, a: Num, b: Num) -> Num:
    """A comparison of two characters, by their code points, or of words."""
    if members.is_member(a) or members.is_member(b):
        return members.operate(r, op, a, b)
    both = a.is_text and b.is_text
    if op in ("Eq", "NotEq") and not both:
        return unlike(op, b if a.is_text else a)
    if op not in COMPARISONS or not both:
        raise Unreadable(f"{op} of text")
    if a.value is not None and b.value is not None:
        made: dict[str, bool] = {
            "Eq": a.value == b.value, "NotEq": a.value != b.value, "Lt": a.value < b.value,
            "LtE": a.value <= b.value, "Gt": a.value > b.value, "GtE": a.value >= b.value,
        }  # fmt: skip
        return python(made[op])
    if (a.kind == "word" or b.kind == "word") and op not in ("Eq", "NotEq"):
        x, y = (a, b) if op in ("Lt", "GtE") else (b, a)
        text = f"{'' if op in ('Lt', 'Gt') else '!'}{words.BEFORE}({x.text}, {y.text})"
        return Num(f"({text})", "bool", ("bool",), low=0, high=1)
    sign = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}[op]
    return Num(f"({a.text} {sign} {b.text})", "bool", ("bool",), low=0, high=1)


@functools.lru_cache(4096)
def _calculated(op: str, a: str, b: str) -> tuple[str, str]:
    """Of two kinds: that of the result, and the representation that it is calculated in."""
    if a not in PYTHON or b not in PYTHON:
        dtypes = resolved(OPERATORS[op][0], (a, b))
        unlike = dtypes[0] != dtypes[1]  # in sign
        return kind_of(dtypes[-1]), "u64" if unlike else rep_of(dtypes[0])
    rep = "c128" if "complex" in (a, b) else "f64" if "float" in (a, b) or op == "Div" else "i64"
    if op in COMPARISONS:
        return "bool", rep
    if rep == "i64" and a == b == "bool" and op in ("BitAnd", "BitOr", "BitXor"):
        return "bool", rep
    return {"c128": "complex", "f64": "float", "i64": "int"}[rep], rep


def _weak_fit(r: Reader, a: Num, b: Num, ways: Sequence[_Way]) -> None:
    """Leave where one of Python's integers is none of NumPy's that it meets."""
    for w in ways:
        if w.rep in INTEGERS and "int" in w.kinds and not all(k in PYTHON for k in w.kinds):
            weak = replace((a, b)[w.kinds.index("int")], value=None, kinds=("int",), lin=None)
            fits(r, weak, w.rep, _are((a, w.places[0]), (b, w.places[1])))


def _common(x: Num, rep: str = "") -> Num:
    """A number of several kinds as one of a kind of NumPy's, if it is not Python's in any case.
    rep: what is calculated in."""
    if len(x.kinds) == 1:
        return x
    if x.is_python:
        kind = {"f64": "float", "i64": "int", "c128": "complex", "bool": "bool"}[x.rep]
        return replace(x, kinds=(kind,), tag="")
    narrow = rep != x.rep and ((rep in INTEGERS and x.rep in INTEGERS) or rep == "f32")
    if narrow:
        return _as(x, rep)
    return replace(x, kinds=(kind_of(DTYPE_OF[x.rep]),), tag="")


def _as(x: Num, rep: str, kind: str = "") -> Num:
    """A number of any kind in a representation, and of the kind that this has in NumPy."""
    kinds = (kind or kind_of(DTYPE_OF[rep]),)
    if x.rep == rep:
        return replace(x, kinds=kinds, tag="")
    low, high = (x.low, x.high) if x.rep in INTEGERS else limits_of(x.rep)
    return Num(c_cast(x.rep, rep, x.text), rep, kinds, low=low, high=high)


def _as_kind(r: Reader, x: Num, kind: str) -> Num:
    x = convert(r, x, REPRESENTATION[kind], exact=True)
    return Num(r.named(x.text, C_TYPE[x.rep]), x.rep, (kind,), "", x.lin if x.rep == "i64" else
               None, x.low, x.high)  # fmt: skip


def _are(*numbers: tuple[Num, int]) -> str:
    """C: whether each number is of that one of its kinds."""
    return " && ".join(f"{x.tag} == {k}" for x, k in numbers if len(x.kinds) > 1)


def _tagged(r: Reader, x: Num, a: Num, b: Num, ways: Sequence[_Way], kinds: Sequence[str]) -> Num:
    """A result with the kind that those of the operands give it."""
    if len(kinds) == 1:
        kind = kinds[0]
        if kind in PYTHON or kind in ("bool_", "float64", "complex128"):
            return _as_kind(r, x, kind)
    target = _joined(kinds)
    tag = "0"
    for w in ways:
        if kinds.index(w.kind):
            are = _are((a, w.places[0]), (b, w.places[1]))
            tag = f"({are} ? {kinds.index(w.kind)} : {tag})"
    tag = r.named(tag, "int", "kind")
    for k, kind in enumerate(kinds):
        _has_its_bits(r, x, kind, f"{tag} == {k}")
    x = convert(r, x, target.rep, exact=True)
    return Num(r.named(x.text, C_TYPE[target.rep]), target.rep, tuple(kinds), tag)


def _has_its_bits(r: Reader, x: Num, kind: str, where: str) -> None:
    """Leave where a result of this kind is not what was calculated in a wider representation."""
    rep = REPRESENTATION[kind]
    if rep == x.rep or rep not in _WHOLE:
        return
    low, high = limits_of(rep) if rep != "i64" else (-EXACT, EXACT)
    if x.rep in INTEGERS and low <= x.low and x.high <= high:
        return
    text = r.named(x.text, C_TYPE[x.rep]) + (".r" if x.rep in PARTS else "")
    outside = f"!({text} >= {c_int(low)} && {text} <= {c_int(high)})"
    r.leave_if(f"{where} && {outside}", f"an integer that is not one of {DTYPE_OF[rep]}")


def _joined(kinds: Sequence[str]) -> Num:
    found: Any = Num("", REPRESENTATION[kinds[0]], (kinds[0],))
    for k in kinds[1:]:
        found = _join(found, Num("", REPRESENTATION[k], (k,)))
    return found


def _join(a: Num, b: Num) -> Num:
    found = join_numbers(a, b)
    if isinstance(found, Conflict):
        raise Unreadable(found.why)
    return found


def _part(x: Num, places: Sequence[int]) -> Num:
    """A number where it is of some of its kinds."""
    kinds = tuple(x.kinds[k] for k in places)
    if len(kinds) == 1:
        return _as(x, REPRESENTATION[kinds[0]], kinds[0])
    of = _joined(kinds)
    tag = "0"
    for k, place in enumerate(places):
        tag = f"({x.tag} == {place} ? {k} : {tag})" if k else tag
    return Num(c_cast(x.rep, of.rep, x.text), of.rep, kinds, tag)


def _apart(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a op b` by a branch: the first kind of an operand, and the others."""
    x = a if len(a.kinds) > 1 else b

    def made(places: Sequence[int]) -> Callable[[], Num]:
        part = _part(x, places)
        return lambda: binary(r, op, *((part, b) if x is a else (a, part)))

    return _chosen(r, f"{x.tag} == 0", made([0]), made(range(1, len(x.kinds))))


def _chosen(r: Reader, test: str, yes: Callable[[], Num], no: Callable[[], Num]) -> Num:
    r.one_by_one()
    ways: list[tuple[list, Num]] = []
    for make in (yes, no):
        lines: list = []
        mark = r.facts.mark()
        with r.elsewhere(lines):
            made = make()
        r.facts.back_to(mark)
        ways.append((lines, made))
    of = _join(*(x for _, x in ways))
    name, tag = r.fresh("v"), r.fresh("kind")
    r.line(f"{C_TYPE[of.rep]} {name} = 0;")
    r.line(f"int {tag} = 0;")
    for head, (lines, made) in zip((f"if ({test})", "else"), ways, strict=True):
        with r.block(head):
            r.lines.append(lines)
            x = as_union(r, made, of)
            r.line(f"{name} = {x.text};")
            r.line(f"{tag} = {x.tag or 0};")
    several = len(of.kinds) > 1
    return Num(name, of.rep, of.kinds, tag if several else "")


def unary(r: Reader, op: str, x: Num) -> Num:
    """`op x`: USub, UAdd, Invert, Not."""
    if op != "Not" and x.is_text:
        raise Unreadable(f"{op} of text")
    if op != "Not" and wide.is_wide(x) and x.value is None:
        return wide.unary(r, op, x)
    if op == "Not" or len(x.kinds) == 1 or {*map(REPRESENTATION.get, x.kinds)} == {x.rep}:
        return of_one(r, op, x)
    return _of_each(r, x, lambda x: of_one(r, op, x))


def absolute(r: Reader, x: Num) -> Num:
    """`abs(x)` of several kinds."""
    if x.rep == "c128":
        return _of_each(r, x, lambda x: modulus(r, replace(x, kinds=("complex",)), "float"))
    if x.rep == "f64":
        return _of_each(r, x, lambda x: r.number(f"__builtin_fabs({x.text})", "f64", x.kinds))
    if x.rep != "i64":
        raise Unreadable(f"the absolute value of {shown(x)}")

    def made(x: Num) -> Num:
        low, high = (x.low, x.high) if x.low >= 0 else (0, max(x.high, -x.low))
        negative = of_one(r, "USub", x)
        return r.integer(f"({x.text} < 0 ? {negative.text} : {x.text})", low, high)

    return _of_each(r, x, made)


_REAL = {"complex": "float", "complex128": "float64"}


def _of_each(r: Reader, x: Num, made: Callable[[Num], Num]) -> Num:
    """What a function of the widest kind makes of a number: of its kinds, or real."""
    if {"bool", "bool_", "complex64"} & {*x.kinds}:
        raise Unreadable(f"a function of {shown(x)}")
    y = made(_as(x, x.rep, "int" if x.rep == "i64" else "float"))
    real = [k if y.rep == x.rep else _REAL.get(k, k) for k in x.kinds]
    kinds = tuple(dict.fromkeys(real))
    tag = "0"
    for k, kind in enumerate(real):
        if kinds.index(kind):
            tag = f"({x.tag} == {k} ? {kinds.index(kind)} : {tag})"
        _has_its_bits(r, y, kind, f"{x.tag} == {k}")
    several = len(kinds) > 1
    return replace(y, kinds=kinds, tag=(x.tag if len(kinds) == len(real) else tag) * several)
