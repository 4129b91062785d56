"""Python's integers of up to 64 bits without a sign, and what is taken modulo a power of two.

A number of kind "wide" is a Python integer that is not negative, in an unsigned C integer. It comes
of a constant, or of `x & mask` where the mask is one; its sums and products leave where they need
more. Where a mask is applied to sums, products and shifts at once (`(a * x + c) & mask`), they are
calculated modulo 2**64, and nothing can be beyond.
"""

from __future__ import annotations

import ast
from typing import Any

from .linear import WIDE
from .numbers import COMPARISONS, EXACT, of_one_kind, python_integers
from .read import Reader
from .values import FLOATS, Known, Num, Unreadable, Value, python

ALL = 2 * WIDE  # how many such integers there are
INTEGERS = frozenset(("int", "wide", "bool"))


def is_wide(*numbers: Num) -> bool:
    return any("wide" in x.kinds for x in numbers)


def number(r: Reader, text: str) -> Num:
    return Num(r.named(text, "u64", "w"), "u64", ("wide",), low=0, high=ALL - 1)


def unsigned(r: Reader, x: Num) -> str:
    """The C of an integer of any kind without its sign; leaves where it is negative."""
    if x.value is not None:
        if x.value < 0:
            raise Unreadable("a negative integer, and one of 64 bits without a sign")
        return f"{int(x.value)}UL"
    if x.kind == "wide":
        return x.text
    if not set(x.kinds) <= INTEGERS:
        raise Unreadable("an integer of 64 bits without a sign, and another number")
    if len(x.kinds) > 1:
        where = f"{x.tag} != {x.kinds.index('wide')} && " if "wide" in x.kinds else ""
        r.leave_if(f"{where}(i64){x.text} < 0", "a negative integer where 64 bits have no sign")
    elif x.low < 0:
        r.leave_if(f"{x.text} < 0", "a negative integer where 64 bits have no sign")
    return f"(u64){x.text}"


def as_float(r: Reader, x: Num) -> Num:
    """x, an integer or a float, as Python converts it."""
    if x.rep in FLOATS:
        return x
    return Num(r.named(f"(f64){unsigned(r, x)}", "f64"), "f64", ("float",))


def binary(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a op b`, of which one is wide, or may be."""
    if a.kind == "float" or b.kind == "float":
        if op in COMPARISONS:
            for x in (a, b):
                if is_wide(x):
                    r.leave_if(f"{unsigned(r, x)} > {EXACT}UL", "an integer of more than 53 bits")
        return of_one_kind(r, op, as_float(r, a), as_float(r, b))
    if not {*a.kinds, *b.kinds} <= INTEGERS:
        raise Unreadable("an integer of 64 bits without a sign, and another number")
    if a.value is not None and b.value is not None:
        return python_integers(r, op, a, b)
    if op in ("BitAnd", "LShift", "RShift"):
        return _of_bits(r, op, a, b)
    if op in ("Add", "Sub", "Mult"):
        return _with_overflow(r, op, a, b)
    left, right = unsigned(r, a), unsigned(r, b)
    if op in COMPARISONS:
        sign = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}[op]
        return Num(f"({left} {sign} {right})", "bool", ("bool",), low=0, high=1)
    if op in ("BitOr", "BitXor"):
        return number(r, f"({left} {'|' if op == 'BitOr' else '^'} {right})")
    if op in ("FloorDiv", "Mod", "Div") and not b.value:
        r.fails_if(f"{right} == 0", "division by zero", ZeroDivisionError)
    if op == "Div":
        return _quotient(r, a, b, left, right)
    if op == "FloorDiv":
        if b.value is not None and b.value > 1:
            return r.integer(f"(i64)({left} / {right})", 0, (ALL - 1) // b.value)
        return number(r, f"({left} / {right})")
    if op == "Mod":
        if b.kind == "int":
            return r.integer(f"(i64)({left} % {right})", 0, max(b.high - 1, 0))
        return number(r, f"({left} % {right})")
    raise Unreadable(f"{op} of an integer of 64 bits without a sign")


def _of_bits(r: Reader, op: str, a: Num, b: Num) -> Num:
    if op == "BitAnd":
        for x, other in ((a, b), (b, a)):
            if x.kind == "int" and x.low >= 0:  # the other one's sign does not matter
                return r.integer(f"(i64)({_low_bits(other)} & {_low_bits(x)})", 0, x.high)
        if a.kind == "wide" or b.kind == "wide":
            return number(r, f"({_low_bits(a)} & {_low_bits(b)})")
        return number(r, f"({unsigned(r, a)} & {unsigned(r, b)})")
    if b.value is None and not (b.kind == "int" and b.low >= 0):
        r.leave_if(f"(i64){b.text} < 0", "a shift by a number that is negative, or large")
    elif b.value is not None and b.value < 0:
        raise Unreadable("a negative shift")
    bits, n = unsigned(r, a), f"(u64){b.text}"
    if op == "RShift":
        if b.value is not None:
            if b.value > 63:
                return python(0)
            high = (ALL - 1) >> b.value
            return r.integer(f"(i64)({bits} >> {n})", 0, high) if b.value else number(r, bits)
        return number(r, f"({n} > 63 ? 0 : {bits} >> ({n} & 63))")
    r.leave_if(
        f"{bits} && ({n} > 63 || {bits} << ({n} & 63) >> ({n} & 63) != {bits})",
        "an integer beyond 64 bits",
    )
    return number(r, f"({n} > 63 ? 0 : {bits} << ({n} & 63))")


def _low_bits(x: Num) -> str:
    """The C of the lowest 64 bits of an integer of any kind."""
    if x.value is not None:
        return f"{int(x.value) % ALL}UL"
    return f"(u64){x.text}"


def _with_overflow(r: Reader, op: str, a: Num, b: Num) -> Num:
    """A sum, a difference, a product, of which C finds whether it has 64 bits without a sign."""
    texts = []
    for x in (a, b):
        signed = x.kind == "int" and x.value is None and x.low < 0
        negative = x.value is not None and x.value < 0
        texts.append(x.text if signed or negative else unsigned(r, x))
    word = {"Add": "add", "Sub": "sub", "Mult": "mul"}[op]
    name = r.fresh("w")
    r.line(f"u64 {name};")
    why = "an integer that is negative, or beyond 64 bits"
    r.leave_if(f"__builtin_{word}_overflow({texts[0]}, {texts[1]}, &{name})", why)
    return Num(name, "u64", ("wide",), low=0, high=ALL - 1)


def _quotient(r: Reader, a: Num, b: Num, x: str, y: str) -> Num:
    """`a / b`: one rounding."""
    if b.value is not None and b.value & (b.value - 1) == 0:
        return over_power_of_two(r, a, int(b.value))
    r.leave_if(f"({x} | {y}) > {EXACT}UL", "an integer of more than 53 bits")
    return r.number(f"((f64){x} / (f64){y})", "f64", ("float",))


def over_power_of_two(r: Reader, a: Num, n: int) -> Num:
    """`a / n`, n: a power of two of up to 1000 bits."""
    text = a.text if a.kind == "int" else unsigned(r, a)
    return r.number(f"((f64){text} * 0x1p-{n.bit_length() - 1})", "f64", ("float",))


def unary(r: Reader, op: str, x: Num) -> Num:
    """`-x`, `+x`, `~x`."""
    text = unsigned(r, x)
    if op == "UAdd":
        return number(r, text)
    r.leave_if(f"{text} > {WIDE - 1}UL", "an integer beyond 64 bits")
    sign = "-" if op == "USub" else "~"
    return r.integer(f"({sign}(i64){text})", -WIDE, 0)


# Modulo 2**64

_RING = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|",
         ast.BitXor: "^"}  # fmt: skip
_BEYOND = (ast.Add, ast.Sub, ast.Mult, ast.LShift)


class _NoInteger(Exception):
    """An operand is no Python integer."""


def masked(r: Reader, node: ast.BinOp) -> Value | None:
    """`x & mask` or `x % 2**k`, if x is made of sums, products, shifts of Python's integers."""
    if isinstance(node.op, ast.BitAnd):
        pairs = [(node.left, node.right), (node.right, node.left)]
    elif isinstance(node.op, ast.Mod):
        pairs = [(node.left, node.right)]
    else:
        return None
    for x, other in pairs:
        if not _may_be_beyond(x):
            continue
        saved = r.save()
        try:
            mask = _mask(r.grammar.expression(r, other), isinstance(node.op, ast.Mod))
            if mask is not None:
                return _and(r, _ring(r, x), mask)
        except _NoInteger:
            pass
        r.restore(saved)
    return None


def _may_be_beyond(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.USub)) and not isinstance(
            node.operand, ast.Constant
        )
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, _BEYOND):
        return True
    inside = type(node.op) in _RING
    return inside and (_may_be_beyond(node.left) or _may_be_beyond(node.right))


def _mask(x: Value, is_modulus: bool) -> Num | None:
    value: Any = x.value if isinstance(x, (Num, Known)) else None
    if is_modulus:
        powers = type(value) is int and 0 < value <= ALL and value & (value - 1) == 0
        return python(value - 1) if powers else None
    if not isinstance(x, Num) or x.kind not in ("int", "wide"):
        return None
    return x if x.kind == "wide" or x.low >= 0 else None


def _and(r: Reader, text: str, mask: Num) -> Num:
    if mask.kind == "int":
        return r.integer(f"(i64)({text} & {_low_bits(mask)})", 0, mask.high)
    return number(r, text if mask.value == ALL - 1 else f"({text} & {_low_bits(mask)})")


def _ring(r: Reader, node: ast.expr) -> str:
    """The C of an expression's lowest 64 bits."""
    if isinstance(node, ast.BinOp) and type(node.op) in _RING:
        a = _ring(r, node.left)
        return f"({a} {_RING[type(node.op)]} {_ring(r, node.right)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.USub)):
        x = _ring(r, node.operand)
        return f"(~{x})" if isinstance(node.op, ast.Invert) else f"(0UL - {x})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
        a = _ring(r, node.left)
        n: Any = r.grammar.expression(r, node.right)
        if not isinstance(n, Num) or n.kind != "int":
            raise _NoInteger
        if n.low < 0:
            r.leave_if(f"{n.text} < 0", "a negative shift")
        if n.value is not None:
            return f"({a} << {n.value})" if n.value < 64 else f"({a} * 0)"
        return f"({n.text} > 63 ? 0 : {a} << ({n.text} & 63))"
    x = r.grammar.expression(r, node)
    if isinstance(x, Known) and type(x.value) is int:
        return f"{x.value % ALL}UL"
    if not isinstance(x, Num) or not set(x.kinds) <= INTEGERS:
        raise _NoInteger
    return _low_bits(x)
