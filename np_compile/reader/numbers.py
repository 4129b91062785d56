"""Arithmetic on single numbers: Python's own, and NumPy's where one of them is NumPy's.

Where the result cannot be had in 64 bits, or Python raises, compiled code leaves.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.ir.scalars import c_cast, c_expression

from . import words
from .linear import SAFE, WIDE, Linear
from .read import Reader, int_constant
from .values import (
    C_TYPE,
    DTYPE_OF,
    FLOATS,
    INTEGERS,
    KIND_OF_DTYPE,
    MEMBERS,
    PARTS,
    PYTHON,
    REPRESENTATION,
    TEXT,
    WORDS,
    Conflict,
    Num,
    Unreadable,
    c_int,
    c_text,
    python,
)

EXACT = 1 << 53  # between it and its negative, float64 has every integer
# Operator -> the ufunc it is, and the operation of the loop IR on equal dtypes.
OPERATORS = {
    "Add": ("add", "add"), "Sub": ("subtract", "sub"), "Mult": ("multiply", "mul"),
    "Div": ("true_divide", "div"), "FloorDiv": ("floor_divide", "floordiv"),
    "Mod": ("remainder", "remainder"), "Pow": ("power", "pow"), "LShift": ("left_shift", "lshift"),
    "RShift": ("right_shift", "rshift"), "BitAnd": ("bitwise_and", "and"),
    "BitOr": ("bitwise_or", "or"), "BitXor": ("bitwise_xor", "xor"),
    "MatMult": ("matmul", ""),
    "Eq": ("equal", "eq"), "NotEq": ("not_equal", "ne"), "Lt": ("less", "lt"),
    "LtE": ("less_equal", "le"), "Gt": ("greater", "gt"), "GtE": ("greater_equal", "ge"),
}  # fmt: skip
COMPARISONS = frozenset(("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"))
_WEAK = {"bool": np.dtype(bool), "int": int, "float": float, "complex": complex}


# Types


def join_numbers(a: Num, b: Num) -> Num | Conflict:
    """A type that holds numbers of either type. One that holds the other keeps the order of its
    kinds: behind a branch in a loop a number has the tag that it has at the loop's head."""
    kinds = (*a.kinds, *(k for k in b.kinds if k not in a.kinds))
    if set(a.kinds) < set(b.kinds):
        kinds = b.kinds
    if not TEXT.isdisjoint(kinds) and len(kinds) > 1:
        if set(kinds) <= WORDS:
            return Num("", "u32", ("word",))
        return Conflict("it is text or a number")
    reps = {REPRESENTATION[k] for k in kinds}
    low, high = min(a.low, b.low), max(a.high, b.high)
    if len(reps) == 1:
        return Num("", reps.pop(), kinds, low=low, high=high)
    if "wide" in kinds and set(kinds) <= {"int", "wide", "bool"}:
        return Num("", "u64", kinds)
    if reps <= {"i64", "f64", "f32", "i32", "i16", "i8", "u8", "u16", "u32"} and reps & FLOATS:
        return Num("", "f64", kinds)
    if reps <= {"i64", "i32", "i16", "i8", "u8", "u16", "u32", "bool"}:
        return Num("", "i64", kinds, low=low, high=high)
    if reps <= {"f64", "i64", "c128"}:
        return Num("", "c128", kinds)
    return Conflict(f"it is of type {' or '.join(kinds)}")


def as_union(r: Reader, x: Num, of: Num) -> Num:
    """x in the representation and with the tags of a type that holds it."""
    text = convert(r, x, of.rep, exact=True).text
    tag = x.tag
    if len(of.kinds) > 1:
        places = [of.kinds.index(k) for k in x.kinds]
        if len(places) == 1:
            tag = str(places[0])
        elif places != list(range(len(places))):
            tag = "0"
            for k, place in enumerate(places):
                tag = f"({x.tag} == {k} ? {place} : {tag})"
    return Num(text, of.rep, of.kinds, tag)


def convert(r: Reader, x: Num, rep: str, exact: bool = False) -> Num:
    """x in another representation; exact: leave where it would change."""
    if x.is_text and rep != "u32":
        raise Unreadable("text in the place of a number")
    if x.rep == rep:
        return x
    if "wide" in x.kinds and len(x.kinds) > 1 and rep != "u64":
        raise Unreadable("an integer of 64 bits with a sign or without")
    if x.value is not None and not isinstance(x.value, complex):
        return Num(c_text(x.value, rep), rep, x.kinds, x.tag, value=x.value)
    if rep in PARTS:
        if x.rep in PARTS:
            return Num(f"{rep}_of_{x.rep}({x.text})", rep, x.kinds, x.tag)
        part = convert(r, x, PARTS[rep], exact)
        return Num(f"({rep}){{{part.text}, 0}}", rep, x.kinds, x.tag)
    if x.rep in PARTS:
        raise Unreadable("a complex number where a real one is needed")
    if rep in FLOATS and x.rep == "i64":
        limit = EXACT if rep == "f64" else 1 << 24
        inside = -limit <= x.low and x.high <= limit
        if not inside and x.lin is not None:
            inside = r.facts.proves(Linear(limit) - x.lin) and r.facts.proves(x.lin + limit)
        if not inside and (rep == "f64" and (exact or x.is_python)):
            name = x.text
            r.leave_if(
                f"(u64)({name} + {limit}L) > {2 * limit}UL", "an integer of more than 53 bits"
            )
    return Num(c_cast(x.rep, rep, x.text), rep, x.kinds, x.tag, value=None)


@functools.lru_cache(4096)
def resolved(ufunc: str, kinds: tuple[str, ...]) -> tuple[np.dtype, ...]:
    """The dtypes of NumPy's loop for operands of these kinds: theirs, then the results'."""
    f = getattr(np, ufunc)
    if not TEXT.isdisjoint(kinds):
        raise Unreadable("text in a function of NumPy's")
    if "wide" in kinds:
        raise Unreadable("an integer of 64 bits without a sign, in a function of NumPy's")
    given = [_WEAK.get(k) or np.dtype(k.rstrip("_")) for k in kinds]
    try:
        return f.resolve_dtypes((*given, *[None] * f.nout))
    except TypeError as e:
        raise Unreadable(str(e)) from None


def kind_of(dtype: np.dtype) -> str:
    try:
        return KIND_OF_DTYPE[np.dtype(dtype)]
    except KeyError:
        raise Unreadable(f"dtype {dtype}") from None


def rep_of(dtype: np.dtype) -> str:
    return REPRESENTATION[kind_of(dtype)]


# Operations on two numbers, of one kind each


def of_one_kind(r: Reader, op: str, a: Num, b: Num, careful: bool = False) -> Num:
    """`a op b` of numbers of one kind each. careful: leave where Python's numbers would raise."""
    ka, kb = a.kinds[0], b.kinds[0]
    if ka == "complex" and kb == "float64":  # a float to Python, whose complex numbers go first
        kb, b = "float", replace(b, kinds=("float",))
    if ka in PYTHON and kb in PYTHON:
        if "complex" in (ka, kb):
            return _complex(r, op, a, b, python=True)
        if "float" in (ka, kb) or op == "Div":
            return _floats(r, op, a, b)
        return python_integers(r, op, a, b)
    ufunc, name = OPERATORS[op]
    dtypes = resolved(ufunc, (ka, kb))
    reps = [rep_of(d) for d in dtypes]
    if careful and op in ("Div", "FloorDiv", "Mod"):
        r.leave_if(f"{b.text} == 0", "division by zero")
    if op == "Pow" and reps[0] in INTEGERS and b.low < 0:
        r.leave_if(f"{b.text} < 0", "an integer to a negative power")
    if careful and reps[-1] == "i64" and op in ("Add", "Sub", "Mult"):
        return Num(*_checked(r, op, a, b)[:2], (kind_of(dtypes[-1]),))
    for x in (a, b):
        if x.kinds[0] == "int" and reps[0] in INTEGERS:
            fits(r, x, reps[0])
    x, y = convert(r, a, reps[0]), convert(r, b, reps[1])
    if reps[0] in PARTS:
        return _complex(r, op, x, y, kind=kind_of(dtypes[-1]))
    if reps[0] == "bool" and op in ("Add", "Mult"):
        name = "or" if op == "Add" else "and"
    if op in COMPARISONS and reps[0] != reps[1]:
        return _of_unlike_signs(r, op, x, y, kind_of(dtypes[-1]))
    kind = kind_of(dtypes[-1])
    rep = REPRESENTATION[kind]
    if op in COMPARISONS:
        text = _comparison(name, reps[0], x, y)
        return Num(text, "bool", (kind,), low=0, high=1, **_facts_of(r, op, a, b))
    if op == "Pow":
        text = _power_text(reps[0], x, y)
    elif op == "RShift" and reps[0] == "i64":
        text = _shifted_right(b, x.text, y.text)
    else:
        text = combined(name, reps[0], [x.text, y.text])
    made = Num(r.named(text, C_TYPE[rep]), rep, (kind,))
    if op == "Add" and rep in FLOATS:
        return _added(r, x, y, made)
    if rep == "i64" and a.lin is not None and b.lin is not None and op in ("Add", "Sub", "Mult"):
        lin = _linear(op, a, b)
        if lin is not None and r.is_safe(lin):
            low, high = r.limits(lin)
            return Num(made.text, rep, (kind,), "", lin, low, high)
    if rep == "i64":
        low, high = _interval(op, a, b)
        return Num(made.text, rep, (kind,), "", r.facts.name(made.text, low, high), low, high)
    return made


def _of_unlike_signs(r: Reader, op: str, x: Num, y: Num, kind: str) -> Num:
    """A comparison of integers of which one has no sign, by their values."""
    signed, other, below = (x, y, ("Lt", "LtE")) if y.rep == "u64" else (y, x, ("Gt", "GtE"))
    if {signed.rep, other.rep} != {"i64", "u64"}:
        raise Unreadable("integers of unlike signs are compared")
    name = r.named(signed.text, "i64")
    a, b = (f"(u64){name}", y.text) if signed is x else (x.text, f"(u64){name}")
    negative = int(op == "NotEq" or op in below)
    text = f"({name} < 0 ? {negative} : {c_expression(OPERATORS[op][1], 'u64', [a, b])})"
    return Num(text, "bool", (kind,), low=0, high=1)


def _comparison(name: str, rep: str, x: Num, y: Num) -> str:
    """A comparison; with the absolute value of a complex number, mostly by its square."""
    a, b = x.text, y.text
    if rep == "f64" and x.modulus:
        a = f"modulus_beside({x.modulus}, {b})"
    elif rep == "f64" and y.modulus:
        b = f"modulus_beside({y.modulus}, {a})"
    return c_expression(name, rep, [a, b])


def modulus(r: Reader, x: Num, kind: str) -> Num:
    """The absolute value of a complex number of double precision, under a name."""
    name = x.text if x.text.isidentifier() else r.named(x.text, "c128")
    if kind == "float":
        r.leave_if(f"modulus_overflows({name})", "an absolute value that is not finite")
    return replace(r.number(f"abs_c128({name})", "f64", (kind,)), modulus=name)


def combined(op: str, rep: str, texts: Sequence[str]) -> str:
    """The C of an operation on numbers, as NumPy and Python have it."""
    text = c_expression(op, rep, texts)
    if op == "remainder" and DTYPES[rep].kind == "f":
        return f"rest_{DTYPES[rep].register}({text}, {texts[1]})"
    return text


def _power_text(rep: str, a: Num, b: Num) -> str:
    if b.value == 2:
        return c_expression("mul", rep, [a.text, a.text])
    if b.value == 0.5 and rep == "f32":
        return f"powf({a.text}, 0.5f)"
    if rep == "f64":
        return _pow(a, b)
    return c_expression("pow", rep, [a.text, b.text])


def _pow(a: Num, b: Num) -> str:
    """The bits of libm's pow, without it where the exponent is a small number of halves."""
    if b.value is not None and abs(b.value) <= 12 and float(2 * b.value).is_integer():
        return f"pow_halves({a.text}, {int(2 * b.value)})"
    return f"pow_f64({a.text}, {b.text})"


def _shifted_right(b: Num, x: str, y: str) -> str:
    """The C of a shift of 64 bits by b, as x and y: C's own where b is known to be less."""
    if b.value is None and b.low >= 0 and b.high < 64:
        return f"({x} >> {y})"
    return c_expression("rshift", "i64", [x, y])


def fits(r: Reader, x: Num, rep: str, where: str = "1") -> None:
    """Leave where a Python integer is not one of a NumPy dtype: it raises. where: C, if one."""
    info = np.iinfo(DTYPE_OF[rep])
    low, high = int(info.min), int(info.max)
    if x.value is not None:
        if not low <= x.value <= high:
            raise Unreadable(f"the integer {x.value} is not one of {DTYPE_OF[rep]}")
    elif rep == "u64":
        if x.low < 0:
            r.leave_if(f"{where} && {x.text} < 0", "a negative integer for an unsigned one")
    elif rep != "i64" and not (low <= x.low and x.high <= high):
        r.leave_if(
            f"{where} && ({x.text} < {c_int(low)} || {x.text} > {c_int(high)})",
            f"an integer that is not one of {DTYPE_OF[rep]}",
        )


# Python's integers


def _linear(op: str, a: Num, b: Num) -> Linear | None:
    if a.lin is None or b.lin is None:
        return None
    if op == "Add":
        return a.lin + b.lin
    if op == "Sub":
        return a.lin - b.lin
    if op == "Mult":
        if b.lin.constant is not None:
            return a.lin * b.lin.constant
        if a.lin.constant is not None:
            return b.lin * a.lin.constant
    return None


def _interval(op: str, a: Num, b: Num) -> tuple[int, int]:
    if op == "Add":
        found = [a.low + b.low, a.high + b.high]
    elif op == "Sub":
        found = [a.low - b.high, a.high - b.low]
    elif op == "Mult":
        found = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    elif op == "FloorDiv" and b.low > 0:
        found = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
    elif op == "Mod" and b.low > 0:
        found = [0, b.high - 1]
    elif op == "RShift":
        found = [min(a.low, 0), max(a.high, 0)]
    elif op == "BitAnd" and (a.low >= 0 or b.low >= 0):
        found = [0, min(x.high for x in (a, b) if x.low >= 0)]
    else:
        return -WIDE, WIDE - 1
    return max(min(found), -WIDE), min(max(found), WIDE - 1)


def as_int(x: Num) -> Num:
    """A bool as the Python integer it is."""
    if x.rep == "i64":
        return x
    return Num(f"(i64){x.text}", "i64", ("int",), low=0, high=1)


def _checked(r: Reader, op: str, a: Num, b: Num) -> tuple[str, str, Linear | None, int, int]:
    lin = _linear(op, a, b)
    low, high = _interval(op, a, b)
    sign = {"Add": "+", "Sub": "-", "Mult": "*"}[op]
    safe = (lin is not None and r.is_safe(lin)) or (low > -SAFE and high < SAFE)
    if safe:
        return f"({a.text} {sign} {b.text})", "i64", lin, low, high
    name = r.fresh("n")
    r.line(f"i64 {name};")
    word = {"Add": "add", "Sub": "sub", "Mult": "mul"}[op]
    r.leave_if(
        f"__builtin_{word}_overflow({a.text}, {b.text}, &{name})", "an integer beyond 64 bits"
    )
    return name, "i64", None, low, high


def _at_least(r: Reader, n: int, x: Num) -> Num:
    """A number, with what is known as its range if it is known not to be less than n."""
    if x.low >= n or x.high < n or x.lin is None or not r.facts.proves(x.lin - n):
        return x
    return replace(x, low=n)


def _divided(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a // b` or `a % b`, of Python's integers."""
    a, b = _at_least(r, 0, a), _at_least(r, 1, b)
    if b.low <= 0 <= b.high:
        r.fails_if(f"{b.text} == 0", "division by zero", ZeroDivisionError)
        if b.low == 0 < b.high and b.lin is not None:
            r.facts.add(b.lin - 1)
            b = replace(b, low=1)
    if b.low <= -1 <= b.high and a.low == -WIDE:
        r.leave_if(f"{a.text} == {c_int(-WIDE)}", "an integer beyond 64 bits")
    low, high = _interval(op, a, b)
    exact = a.lin is not None and b.lin is not None
    if op == "FloorDiv" and exact and b.value is not None and (known := _quotient(r, a, b.value)):
        return r.integer(known, low, high, Linear(0, {known: 1}))
    if b.value is not None and b.value > 0 and b.value & (b.value - 1) == 0:
        bits = b.value.bit_length() - 1  # a power of two
        text = f">> {bits}" if op == "FloorDiv" else f"& {b.value - 1}L"
        made = r.integer(f"({a.text} {text})", low, high)
    elif op == "Mod" and b.low > 0 and exact and (near := _near(r, a, b)):
        made = r.integer(near, low, high)
    elif a.low >= 0 and b.low > 0:
        made = r.integer(f"({a.text} {'/' if op == 'FloorDiv' else '%'} {b.text})", low, high)
    else:
        name = OPERATORS[op][1]
        made = r.integer(c_expression(name, "i64", [a.text, b.text]), low, high)
    if made.lin is None or not exact:
        return made
    assert a.lin is not None
    assert b.lin is not None
    if b.value is not None and b.value > 0 and op == "FloorDiv":
        r.facts.add(a.lin - made.lin * b.value)  # b * q <= a < b * q + b
        r.facts.add(made.lin * b.value + (b.value - 1) - a.lin)
    if op == "Mod" and b.low > 0:
        r.facts.add(b.lin - made.lin - 1)
    if a.low >= 0 and b.low > 0:
        r.facts.add(a.lin - made.lin)
    return made


def _quotient(r: Reader, a: Num, b: int) -> str:
    """The C name of a // b, where it has one: by what is known of it."""
    assert a.lin is not None
    for fact in r.facts.mentioning(min(a.lin.terms)) if a.lin.terms else ():
        rest = fact - a.lin
        if rest.const == 0 and list(rest.terms.values()) == [-b]:
            (name,) = rest.terms
            if a.lin.terms.keys() == {name}:
                continue
            if Linear(b - 1, {name: b}) - a.lin in r.facts.mentioning(name):
                return name
    return ""


def _near(r: Reader, a: Num, b: Num) -> str:
    """The C of `a % b`, with b above 0, where a is known to be at most one step of b away."""
    assert a.lin is not None
    assert b.lin is not None
    if a.low >= 0 and r.facts.proves(b.lin * 2 - a.lin - 1):
        return f"({a.text} >= {b.text} ? {a.text} - {b.text} : {a.text})"
    if r.facts.proves(a.lin + b.lin) and r.facts.proves(b.lin - a.lin - 1):
        return f"({a.text} < 0 ? {a.text} + {b.text} : {a.text})"
    return ""


def python_integers(r: Reader, op: str, a: Num, b: Num) -> Num:
    if a.value is not None and b.value is not None:
        return _folded(op, a, b)
    if op in COMPARISONS:
        a, b = as_int(a), as_int(b)
        known = _known_comparison(r, op, a, b)
        if known is not None:
            return python(known)
        text = c_expression(OPERATORS[op][1], "i64", [a.text, b.text])
        return Num(text, "bool", ("bool",), low=0, high=1, **_facts_of(r, op, a, b))
    if a.kind == b.kind == "bool" and op in ("BitAnd", "BitOr", "BitXor"):
        text = c_expression(OPERATORS[op][1], "bool", [a.text, b.text])
        return Num(text, "bool", ("bool",), low=0, high=1)
    a, b = as_int(a), as_int(b)
    low, high = _interval(op, a, b)
    if op in ("Add", "Sub", "Mult"):
        text, _, lin, low, high = _checked(r, op, a, b)
        return r.integer(text, low, high, lin)
    if op in ("FloorDiv", "Mod"):
        return _divided(r, op, a, b)
    if op == "Pow":
        if b.low < 0:
            r.leave_if(f"{b.text} < 0", "an integer to a negative power")
        if b.value == 2:
            return python_integers(r, "Mult", a, a)
        name = r.fresh("n")
        r.line(f"i64 {name};")
        r.leave_if(f"power_overflows({a.text}, {b.text}, &{name})", "an integer beyond 64 bits")
        return r.integer(name)
    if op in ("LShift", "RShift"):
        if b.low < 0:
            r.leave_if(f"{b.text} < 0", "a negative shift")
        if op == "RShift":
            return r.integer(_shifted_right(b, a.text, b.text), low, high)
        if a.value is not None and b.high < 62 and abs(a.value) << b.high < SAFE:
            return r.integer(
                f"({a.text} << {b.text})", min(0, a.value << b.high), max(0, a.value << b.high)
            )
        name = r.fresh("n")
        r.line(f"i64 {name};")
        r.leave_if(f"shift_overflows({a.text}, {b.text}, &{name})", "an integer beyond 64 bits")
        return r.integer(name)
    text = c_expression(OPERATORS[op][1], "i64", [a.text, b.text])
    if op in ("BitOr", "BitXor") and a.low >= 0 and b.low >= 0:
        low, high = 0, (1 << max(a.high, b.high).bit_length()) - 1
    return r.integer(text, low, high)


def _folded(op: str, a: Num, b: Num) -> Num:
    import operator

    word = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv",
            "Mod": "mod", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitAnd": "and_",
            "BitOr": "or_", "BitXor": "xor", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le",
            "Gt": "gt", "GtE": "ge"}[op]  # fmt: skip
    if op in ("Pow", "LShift") and abs(b.value) > 64:
        raise Unreadable("a large power")
    try:
        return python(getattr(operator, word)(a.value, b.value))
    except (ArithmeticError, TypeError, ValueError) as e:
        raise Unreadable(str(e)) from None


def _known_comparison(r: Reader, op: str, a: Num, b: Num) -> bool | None:
    """The answer, where what is known of the integers gives it."""
    if a.lin is None or b.lin is None:
        return None
    less = b.lin - a.lin  # >= 0: a <= b
    proves = r.facts.proves
    if op in ("Gt", "GtE"):
        less, op = -less, "Lt" if op == "Gt" else "LtE"
    if op == "LtE":
        return True if proves(less) else False if proves(-less - 1) else None
    if op == "Lt":
        return True if proves(less - 1) else False if proves(-less) else None
    if less.constant is not None:
        return (less.constant == 0) == (op == "Eq")
    if proves(less - 1) or proves(-less - 1):
        return op == "NotEq"
    return None


def _facts_of(r: Reader, op: str, a: Num, b: Num) -> dict[str, Any]:
    """What is known where a comparison of integers is true, and where it is false."""
    if a.lin is None or b.lin is None:
        return {}
    d = b.lin - a.lin
    unlike: tuple[Linear, ...] = ()
    if op in ("Eq", "NotEq"):  # one that is not beyond the other is before it
        unlike = (d - 1,) if r.facts.proves(d) else (-d - 1,) if r.facts.proves(-d) else ()
    table = {
        "Lt": ((d - 1,), (-d,)), "LtE": ((d,), (-d - 1,)),
        "Gt": ((-d - 1,), (d,)), "GtE": ((-d,), (d - 1,)),
        "Eq": ((d, -d), unlike), "NotEq": (unlike, (d, -d)),
    }  # fmt: skip
    return dict(zip(("true", "false"), table[op], strict=True))


# Python's floats


def _floats(r: Reader, op: str, a: Num, b: Num) -> Num:
    if a.value is not None and b.value is not None:
        return _folded(op, a, b)
    x, y = convert(r, a, "f64", exact=True), convert(r, b, "f64", exact=True)
    name = OPERATORS[op][1]
    if op in COMPARISONS:
        return Num(_comparison(name, "f64", x, y), "bool", ("bool",), low=0, high=1)
    if op in ("Div", "FloorDiv", "Mod") and not y.value:
        r.fails_if(f"{y.text} == 0", "division by zero", ZeroDivisionError)
    if op == "Pow":
        return _float_power(r, x, y)
    if op not in ("Add", "Sub", "Mult", "Div", "FloorDiv", "Mod"):
        raise Unreadable("a bit operation on floats")
    made = r.number(combined(name, "f64", [x.text, y.text]), "f64", ("float",))
    return _added(r, x, y, made) if op == "Add" else made


def _added(r: Reader, x: Num, y: Num, made: Num) -> Num:
    """The sum of floats. The sum so far of what a loop adds to goes by a function that hides it
    from the C compiler, where the loop has added to it before (`prelude.so_far`)."""
    before = r.sums.get(x.text, r.sums.get(y.text))
    if before is None:
        return made
    if before:
        made = replace(made, text=r.named(f"so_far_{made.rep}({made.text})", C_TYPE[made.rep]))
    r.sums[made.text] = before + 1
    return made


def _float_power(r: Reader, x: Num, y: Num) -> Num:
    if y.value == 2:
        made = r.number(f"({x.text} * {x.text})", "f64", ("float",))
    else:
        made = r.number(_pow(x, y), "f64", ("float",))
    # Python raises, or goes on with complex numbers.
    finite = f"__builtin_isfinite({x.text}) && __builtin_isfinite({y.text})"
    r.leave_if(f"!__builtin_isfinite({made.text}) && {finite}", "a power that is not finite")
    return made


# Complex numbers

_COMPLEX = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "Eq": "eq", "NotEq": "ne"}


def _complex(
    r: Reader, op: str, a: Num, b: Num, kind: str = "complex", python: bool = False
) -> Num:
    rep = REPRESENTATION.get(kind, "c128") if not python else "c128"
    if op in COMPARISONS:
        rep = a.rep if a.rep in PARTS else b.rep
    x, y = convert(r, a, rep, exact=python), convert(r, b, rep, exact=python)
    if op == "Pow":
        n = b.value
        if n in (2, 3):
            square = f"mul_{rep}({x.text}, {x.text})"
            text = square if n == 2 else f"mul_{rep}({square}, {x.text})"
            return r.number(text, rep, (kind,))
        raise Unreadable("a power of a complex number")
    if op not in _COMPLEX:
        raise Unreadable("this operation on complex numbers")
    if python and op == "Div":
        at = f"{y.text}.r == 0 && {y.text}.i == 0"
        r.fails_if(at, "division by zero", ZeroDivisionError)
    name = "quotient" if python and op == "Div" else _COMPLEX[op]
    text = f"{name}_{rep}({x.text}, {y.text})"
    if op in COMPARISONS:
        return Num(text, "bool", ("bool" if python else "bool_",), low=0, high=1)
    return r.number(text, rep, (kind,))


# One number


def unary(r: Reader, op: str, x: Num) -> Num:
    """`op x`: USub, UAdd, Invert, Not."""
    if op == "Not":
        t = truth(x)
        if t.value is not None:
            return python(not t.value)
        return Num(f"(!{t.text})", "bool", ("bool",), low=0, high=1, true=t.false, false=t.true)
    if x.value is not None and x.is_python:
        value = x.value
        return python(-value if op == "USub" else +value if op == "UAdd" else ~value)
    if x.rep in PARTS:
        if op == "Invert":
            raise Unreadable("~ of a complex number")
        return r.number(f"neg_{x.rep}({x.text})", x.rep, x.kinds, tag=x.tag) if op == "USub" else x
    if x.is_python and x.rep in ("i64", "bool"):
        x = as_int(x)
        if op == "UAdd":
            return x
        if op == "Invert":
            return r.integer(f"(~{x.text})", -x.high - 1, -x.low - 1)
        return python_integers(r, "Sub", int_constant(0), x)
    if op == "UAdd":
        return x
    if x.rep == "bool":
        if op == "USub" or x.is_python:
            raise Unreadable("- of a bool")
        return Num(f"(!{x.text})", "bool", x.kinds)
    if op == "Invert" and x.rep in FLOATS:
        raise Unreadable("~ of a float")
    name = {"USub": "neg", "Invert": "not"}[op]
    made = r.number(c_expression(name, x.rep, [x.text]), x.rep, x.kinds, tag=x.tag)
    if made.rep == "i64":
        made = Num(made.text, "i64", x.kinds, x.tag, r.facts.name(made.text))
    return made


def truth(x: Num) -> Num:
    """`bool(x)`."""
    if x.value is not None or x.kind == "char":
        return python(x.kind == "char" or bool(x.value))
    if x.kind in MEMBERS:
        zero = [k for k, m in enumerate(MEMBERS[x.kind]) if not m]
        return Num(f"({x.text} != {zero[0]}U)", "bool", ("bool",)) if zero else python(True)
    if x.kind == "word":
        return Num(f"({x.text} != {words.code_of('')}U)", "bool", ("bool",), low=0, high=1)
    if x.rep == "bool":
        return Num(x.text, "bool", ("bool",), low=0, high=1, true=x.true, false=x.false)
    if x.rep in PARTS:
        text = f"({x.text}.r != 0 || {x.text}.i != 0)"
        return Num(text, "bool", ("bool",), low=0, high=1)
    false: tuple[Linear, ...] = ()
    if x.lin is not None:
        if x.low > 0:
            return python(True)
        false = (x.lin, -x.lin)
    true = (x.lin - 1,) if x.lin is not None and x.low == 0 else ()
    return Num(f"({x.text} != 0)", "bool", ("bool",), low=0, high=1, true=true, false=false)


def to_float(r: Reader, x: Num) -> Num:
    """`float(x)`."""
    return _named(r, convert(r, x, "f64", exact=True), "float")


def _named(r: Reader, x: Num, kind: str) -> Num:
    if x.value is not None:
        return python(float(x.value)) if kind == "float" else x
    return Num(r.named(x.text, C_TYPE[x.rep]), x.rep, (kind,))


def to_int(r: Reader, x: Num) -> Num:
    """`int(x)`: towards zero; leaves where it has no 64 bits."""
    if x.is_text:
        raise Unreadable("text in the place of a number")
    if x.value is not None:
        try:
            return python(int(x.value))
        except (ValueError, OverflowError) as e:
            raise Unreadable(str(e)) from None
    if x.rep in INTEGERS or x.rep == "bool":
        if x.rep == "u64":
            r.leave_if(f"(i64){x.text} < 0", "an integer beyond 64 bits")
        if x.lin is not None:
            return Num(x.text, "i64", ("int",), "", x.lin, x.low, x.high)
        made = r.integer(f"(i64){x.text}" if x.rep != "i64" else x.text, *limits_of(x.rep))
        r.facts.elements |= {made.text} if x.text in r.facts.elements else set()
        return made
    if x.rep in PARTS:
        raise Unreadable("int of a complex number")
    r.leave_if(f"!(__builtin_fabs({x.text}) < 0x1p62)", "a float that is no 64-bit integer")
    return r.integer(f"(i64){x.text}", -SAFE, SAFE)


def limits_of(rep: str) -> tuple[int, int]:
    if rep == "bool":
        return 0, 1
    if rep not in INTEGERS:
        return -WIDE, WIDE - 1
    info = np.iinfo(DTYPE_OF[rep])
    return int(info.min), min(int(info.max), WIDE - 1)
