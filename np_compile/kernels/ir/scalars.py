"""Scalar operations of the loop IR: for each its C text, its meaning in NumPy, and its cost.

`OPS` has a row for each. All operands of an operation have one dtype (amounts of shifts too); only
"where" has a bool before two operands of one dtype. Meaning is that of torch's operator on the CPU:
integers wrap around, a divisor of zero gives zero, and "f16" and "bf16" are computed in "f32" and
rounded at once. No operation has undefined behaviour in C.

`evaluate` is the reference. C and NumPy agree in every bit, but for the elementary functions, whose
distance is `libm.ULP`, for which of two zeros is the lesser, and for the bits of a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import evaluators as ev
from .dtypes import DTYPES, round_to_bf16


@dataclass(frozen=True)
class Op:
    """A scalar operation.

    kinds: the kinds of operands that it takes, of "b", "i", "u", "f". result: "same" (the dtype of
    the operands) or "bool". c: from the dtype of registers and the operands' C texts to a C
    expression. evaluate: the same on NumPy arrays. cost: cycles for an element in a vector loop.
    exact: a result on narrow operands is a narrow number already. steps: the function needs the
    narrow dtype itself, not that of registers.
    """

    name: str
    arity: int
    kinds: str
    result: str
    c: Callable[..., str]
    evaluate: Callable[..., Any]
    cost: int
    doc: str
    exact: bool = False
    steps: bool = False


# C texts


def _text(template: str) -> Callable[..., str]:
    """The C text in which {0}, {1}, ... are the operands and {t} is the dtype."""
    return lambda dtype, *operands: template.format(*operands, t=dtype)


def _call(name: str) -> Callable[..., str]:
    """A call of the prelude's function `name` for the dtype."""
    return lambda dtype, *operands: f"{name}_{dtype}({', '.join(operands)})"


def _builtin(name: str) -> Callable[..., str]:
    """A call of gcc's builtin on floats; integers, which it leaves as they are."""

    def c(dtype: str, *operands: str) -> str:
        if DTYPES[dtype].kind != "f":
            return operands[0]
        suffix = "f" if dtype == "f32" else ""
        return f"__builtin_{name}{suffix}({', '.join(operands)})"

    return c


def _wrapping(sign: str) -> Callable[..., str]:
    """An infix operation whose overflow wraps around."""

    def c(dtype: str, a: str, b: str) -> str:
        if DTYPES[dtype].kind == "f":
            return f"({a} {sign} {b})"
        sort = "w" if DTYPES[dtype].kind == "i" else "u"
        wide = f"{sort}{64 if DTYPES[dtype].size == 8 else 32}"
        return f"({dtype})(({wide}){a} {sign} ({wide}){b})"

    return c


def _negative(dtype: str, a: str) -> str:
    if DTYPES[dtype].kind == "f":
        return f"(-{a})"
    return _wrapping("-")(dtype, "0", a)


def _absolute(dtype: str, a: str) -> str:
    kind = DTYPES[dtype].kind
    return a if kind in "bu" else _builtin("fabs")(dtype, a) if kind == "f" else f"abs_{dtype}({a})"


def _sign(dtype: str, a: str) -> str:
    return a if dtype == "bool" else f"sign_{dtype}({a})"


def _signbit(dtype: str, a: str) -> str:
    kind = DTYPES[dtype].kind
    return f"signbit_{dtype}({a})" if kind == "f" else f"({a} < 0)" if kind == "i" else "0"


def _bitwise_not(dtype: str, a: str) -> str:
    return f"(!{a})" if dtype == "bool" else f"({dtype})(~{a})"


def _infix(sign: str) -> Callable[..., str]:
    """An infix operation on integers that cannot overflow."""
    return lambda dtype, a, b: f"({DTYPES[dtype].register})({a} {sign} {b})"


def _extreme(name: str, on_bools: str) -> Callable[..., str]:
    call = _call(name)
    return lambda dtype, a, b: f"({a} {on_bools} {b})" if dtype == "bool" else call(dtype, a, b)


def _test(template: str, otherwise: str) -> Callable[..., str]:
    """A test on floats; the answer for all integers is `otherwise`."""

    def c(dtype: str, a: str) -> str:
        if DTYPES[dtype].kind != "f":
            return otherwise
        suffix = "f" if dtype == "f32" else ""
        return template.format(a, s=suffix)

    return c


def _truncdiv(dtype: str, a: str, b: str) -> str:
    if DTYPES[dtype].kind == "f":
        return _builtin("trunc")(dtype, f"{a} / {b}")
    return _call("truncdiv")(dtype, a, b)


# The rows

_SAME = "same"


def _elementary(cost: int, *names: str) -> list[Op]:
    """Rows of functions of one float that libm has."""
    return [
        Op(name, 1, "f", _SAME, _call(name), ev.ELEMENTARY[name], cost, f"{name}(a)")
        for name in names
    ]


def _compare(name: str, sign: str, evaluate: Callable[..., Any]) -> Op:
    return Op(name, 2, "biuf", "bool", _text(f"({{0}} {sign} {{1}})"), evaluate, 1, f"a {sign} b")


def _bits(name: str, sign: str, evaluate: Callable[..., Any]) -> Op:
    return Op(name, 2, "biu", _SAME, _infix(sign), evaluate, 1, f"a {sign} b, bit by bit")


def _whole(name: str, builtin: str, evaluate: Callable[..., Any], doc: str) -> Op:
    c = _builtin(builtin)
    return Op(name, 1, "iuf", _SAME, c, evaluate, 1, doc, exact=True)


_ROWS = [
    Op("add", 2, "iuf", _SAME, _wrapping("+"), np.add, 1, "a + b"),
    Op("sub", 2, "iuf", _SAME, _wrapping("-"), np.subtract, 1, "a - b"),
    Op("mul", 2, "iuf", _SAME, _wrapping("*"), np.multiply, 1, "a * b"),
    Op("div", 2, "f", _SAME, _text("({0} / {1})"), np.divide, 4, "a / b"),
    Op("floordiv", 2, "iuf", _SAME, _call("floordiv"), ev.floordiv, 15, "quotient, rounded down"),
    Op("truncdiv", 2, "iuf", _SAME, _truncdiv, ev.truncdiv, 8,
       "quotient, rounded to zero"),
    Op("remainder", 2, "iuf", _SAME, _call("remainder"), ev.remainder, 10,
       "remainder with the sign of b"),
    Op("fmod", 2, "iuf", _SAME, _call("fmod"), np.fmod, 8, "remainder with the sign of a",
       exact=True),
    Op("neg", 1, "iuf", _SAME, _negative, np.negative, 1, "-a", exact=True),
    Op("abs", 1, "biuf", _SAME, _absolute, np.abs, 1, "|a|", exact=True),
    Op("sign", 1, "biuf", _SAME, _sign, ev.sign, 2, "-1, 0 or 1; 0 of NaN", exact=True),
    Op("signbit", 1, "biuf", "bool", _signbit, ev.signbit, 1, "whether the sign is -"),
    Op("copysign", 2, "f", _SAME, _builtin("copysign"), np.copysign, 1, "|a| with the sign of b",
       exact=True),
    Op("minimum", 2, "biuf", _SAME, _extreme("minimum", "&"), ev.minimum, 2,
       "the lesser; NaN if one is", exact=True),
    Op("maximum", 2, "biuf", _SAME, _extreme("maximum", "|"), ev.maximum, 2,
       "the greater; NaN if one is", exact=True),
    Op("fmin", 2, "f", _SAME, _call("fmin"), ev.fmin, 2, "the lesser that is no NaN", exact=True),
    Op("fmax", 2, "f", _SAME, _call("fmax"), ev.fmax, 2, "the greater that is no NaN", exact=True),
    _compare("eq", "==", np.equal),
    _compare("ne", "!=", np.not_equal),
    _compare("lt", "<", np.less),
    _compare("le", "<=", np.less_equal),
    _compare("gt", ">", np.greater),
    _compare("ge", ">=", np.greater_equal),
    _bits("and", "&", np.bitwise_and),
    _bits("or", "|", np.bitwise_or),
    _bits("xor", "^", np.bitwise_xor),
    Op("not", 1, "biu", _SAME, _bitwise_not, np.invert, 1, "~a; of a bool, not a"),
    Op("land", 2, "biuf", "bool", _text("(({0} != 0) & ({1} != 0))"), np.logical_and, 1, "a and b"),
    Op("lor", 2, "biuf", "bool", _text("(({0} != 0) | ({1} != 0))"), np.logical_or, 1, "a or b"),
    Op("lxor", 2, "biuf", "bool", _text("(({0} != 0) ^ ({1} != 0))"), np.logical_xor, 1,
       "either a or b"),
    Op("lnot", 1, "biuf", "bool", _text("({0} == 0)"), np.logical_not, 1, "not a"),
    Op("lshift", 2, "iu", _SAME, _call("lshift"), np.left_shift, 2, "a * 2**b"),
    Op("rshift", 2, "iu", _SAME, _call("rshift"), np.right_shift, 2, "a / 2**b, rounded down"),
    Op("where", 3, "biuf", _SAME, _text("({0} ? {1} : {2})"), ev.where, 1, "b if a else c",
       exact=True),
    Op("sqrt", 1, "f", _SAME, _builtin("sqrt"), np.sqrt, 6, "square root"),
    Op("rsqrt", 1, "f", _SAME, lambda t, a: f"(1 / {_builtin('sqrt')(t, a)})", ev.rsqrt, 10,
       "1 / sqrt(a)"),
    Op("reciprocal", 1, "f", _SAME, _text("(1 / {0})"), np.reciprocal, 4, "1 / a"),
    *_elementary(15, "exp", "exp2", "log", "log2", "log10", "sin", "cos", "cbrt"),
    *_elementary(20, "expm1", "log1p", "tan", "asin", "acos", "atan", "tanh", "erf"),
    *_elementary(30, "sinh", "cosh", "asinh", "acosh", "atanh", "erfc"),
    *_elementary(100, "lgamma", "tgamma"),
    Op("sigmoid", 1, "f", _SAME, _call("sigmoid"), ev.sigmoid, 20, "1 / (1 + exp(-a))"),
    Op("atan2", 2, "f", _SAME, _call("atan2"), np.arctan2, 30, "angle of the point (b, a)"),
    Op("hypot", 2, "f", _SAME, _call("hypot"), np.hypot, 15, "sqrt(a*a + b*b)"),
    Op("pow", 2, "iuf", _SAME, _call("pow"), ev.power, 40, "a ** b"),
    _whole("floor", "floor", np.floor, "the integer below"),
    _whole("ceil", "ceil", np.ceil, "the integer above"),
    _whole("trunc", "trunc", np.trunc, "the integer towards zero"),
    _whole("round", "rint", ev.rint, "the nearest integer, of two the even one"),
    Op("isnan", 1, "biuf", "bool", _test("(__builtin_isnan({0}) != 0)", "0"), ev.isnan, 1,
       "whether it is NaN"),
    Op("isinf", 1, "biuf", "bool", _test("(__builtin_fabs{s}({0}) == __builtin_inf{s}())", "0"),
       ev.isinf, 1, "whether it is infinite"),
    Op("isfinite", 1, "biuf", "bool", _test("(__builtin_fabs{s}({0}) < __builtin_inf{s}())", "1"),
       ev.isfinite, 1, "whether it is a number"),
    Op("nextafter", 2, "f", _SAME, _call("nextafter"), ev.nextafter, 8,
       "the number beside a, towards b", exact=True, steps=True),
    Op("gcd", 2, "iu", _SAME, _call("gcd"), np.gcd, 60, "greatest common divisor"),
]  # fmt: skip

OPS: dict[str, Op] = {op.name: op for op in _ROWS}

# Elementary functions: of vectors of them some last places may differ from those of single values.
INEXACT = frozenset((*ev.ELEMENTARY, "atan2", "hypot", "pow"))


# What a program asks


def result_dtype(name: str, dtype: str) -> str:
    """The dtype of operation `name` on operands of `dtype` ("where": that of the last two)."""
    op = OPS[name]
    if DTYPES[dtype].kind not in op.kinds:
        raise TypeError(f"the operation {name!r} takes no operands of dtype {dtype}")
    return dtype if op.result == _SAME else op.result


def c_expression(name: str, dtype: str, args: Sequence[str]) -> str:
    """The C expression of operation `name` on the C expressions `args`, of registers of `dtype`.

    Each operand occurs once in the text. It is a name, an element, a call, a cast or in
    parentheses, and so is the result.
    """
    op, row = OPS[name], DTYPES[dtype]
    text = op.c(dtype if op.steps else row.working, *args)
    if row.narrow and op.result == _SAME and not op.exact:
        return f"round_{dtype}({text})"
    return text


def c_cast(src: str, dst: str, arg: str) -> str:
    """The C expression of `arg`, a register of dtype `src`, as a register of dtype `dst`."""
    if src == dst:
        return arg
    source, target = DTYPES[src], DTYPES[dst]
    if dst == "bool":
        return f"({arg} != 0)"
    if source.kind == "f" and target.kind in "iu":
        return f"{dst}_of_{source.working}({arg})"
    if src == "f64" and dst == "f16":
        return f"round_f16(odd_f64({arg}))"  # rounded once
    text = arg if source.register == target.register else f"({target.register}){arg}"
    return f"round_{dst}({text})" if target.narrow else text


def c_load(dtype: str, element: str) -> str:
    """The C expression of the register with the value of `element`, which lies in memory."""
    return f"load_{dtype}({element})" if DTYPES[dtype].narrow else element


def c_store(dtype: str, register: str) -> str:
    """The C expression to assign to an element in memory for the value in `register`."""
    return f"store_{dtype}({register})" if DTYPES[dtype].narrow else register


def c_constant(value: Any, dtype: str) -> str:
    """The C text of `value` as a register of `dtype`; floats are exact, in hexadecimal."""
    exact = convert_constant(value, dtype)
    if DTYPES[dtype].kind == "f":
        return _float_text(exact, "f" if DTYPES[dtype].register == "f32" else "")
    if dtype in ("i32", "i64") and exact == -(1 << (DTYPES[dtype].bits - 1)):
        suffix = "L" if dtype == "i64" else ""
        return f"({exact + 1}{suffix} - 1)"
    text = f"{int(exact)}{ {'i64': 'L', 'u32': 'U', 'u64': 'UL'}.get(dtype, '') }"
    return f"({text})" if exact < 0 else text


def _float_text(value: float, suffix: str) -> str:
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return f"__builtin_inf{suffix}()" if value > 0 else f"(-__builtin_inf{suffix}())"
    text = value.hex() + suffix
    return f"({text})" if text.startswith("-") else text


# Reference


def evaluate(name: str, dtype: str, *operands: Any) -> Any:
    """Operation `name` on arrays or scalars of `dtype` (`DTYPES[dtype].numpy`), by NumPy."""
    op, row = OPS[name], DTYPES[dtype]
    out = DTYPES[result_dtype(name, dtype)]
    with np.errstate(all="ignore"):
        arrays = [np.asarray(x) for x in operands]
        if op.steps:
            result = op.evaluate(dtype, *arrays)
        else:
            working = DTYPES[row.working].numpy
            first = 1 if name == "where" else 0
            arrays[first:] = [x.astype(working) for x in arrays[first:]]
            result = op.evaluate(*arrays)
        if out.name == "bf16":
            result = round_to_bf16(result)
        return np.asarray(result).astype(out.numpy)[()]


def evaluate_cast(src: str, dst: str, operand: Any) -> Any:
    """`operand`, of dtype `src`, as `dst`, by NumPy."""
    with np.errstate(all="ignore"):
        return np.asarray(ev.cast(np.asarray(operand), DTYPES[src], DTYPES[dst]))[()]


def fold(name: str, dtype: str, values: Sequence[Any]) -> Any:
    """Operation `name` on Python numbers, as constants of `dtype`: a Python number."""
    kind = DTYPES[dtype].numpy.type
    return evaluate(name, dtype, *(kind(convert_constant(v, dtype)) for v in values)).item()


def convert(value: Any, src: str, dst: str) -> Any:
    """A constant of dtype `src` as a constant of `dst`: a Python number."""
    exact = DTYPES[src].numpy.type(convert_constant(value, src))
    return evaluate_cast(src, dst, exact).item()


def convert_constant(value: Any, dtype: str) -> Any:
    """The Python number that a constant of `dtype` with the number `value` is."""
    row = DTYPES[dtype]
    if row.kind == "b":
        return bool(value)
    if row.kind in "iu":
        low = int(value) & ((1 << row.bits) - 1)
        return low - (1 << row.bits) if row.kind == "i" and low >> (row.bits - 1) else low
    with np.errstate(all="ignore"):
        return float(evaluate_cast("f64", dtype, np.float64(value)))
