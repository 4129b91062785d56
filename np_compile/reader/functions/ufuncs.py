"""Pointwise functions as loops, products, and results into `out`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.ir.scalars import OPS, c_expression

from ..arithmetic import OF_LIBM
from ..index import fill, stored
from ..nest import (
    apart,
    cast,
    common_extent_of_product,
    lazy,
    load,
    loops,
    materialized,
    named_numbers,
    of_number,
    pointwise,
    stretched,
)
from ..numbers import combined, convert, fits, kind_of, modulus, rep_of, resolved
from ..read import Reader
from ..values import (
    DTYPE_OF,
    FLOATS,
    INTEGERS,
    PARTS,
    Arr,
    Known,
    Lazy,
    Num,
    Tup,
    Unreadable,
    Value,
    is_none,
)
from .operands import agreed, as_operand, dtype_of, operand_kind
from .products import product_of

# ufunc -> operation of the loop IR, on operands of the loop's dtype.
_OPERATIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "divide": "div",
    "floor_divide": "floordiv", "remainder": "remainder", "fmod": "fmod", "negative": "neg",
    "absolute": "abs", "fabs": "abs", "minimum": "minimum", "maximum": "maximum", "fmin": "fmin",
    "fmax": "fmax", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "invert": "not", "logical_and": "land", "logical_or": "lor",
    "logical_xor": "lxor", "logical_not": "lnot", "left_shift": "lshift", "right_shift": "rshift",
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round",
    "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite", "signbit": "signbit",
    "copysign": "copysign", "arctan2": "atan2", "hypot": "hypot", "power": "pow",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "gcd": "gcd",
    **{n: n for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
                      "sinh", "cosh", "tanh", "cbrt")},
}  # fmt: skip


_COSTLY = frozenset(
    ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh",
     "tanh", "cbrt", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "hypot", "pow",
     "floordiv", "remainder", "fmod", "gcd")
)  # fmt: skip


_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


_ON_COMPLEX = {
    "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "divide": "div",
    "negative": "neg", "equal": "eq", "not_equal": "ne",
}  # fmt: skip


def operation(name: str, reps: Sequence[str], operands: Sequence[Value]) -> Callable[..., str]:
    """The C text of a ufunc on texts of its loop's representations."""
    rep = reps[0]
    if rep in PARTS:
        return _complex_operation(name, rep)
    if name == "square":
        return lambda x: c_expression("mul", rep, [x, x])
    if name == "reciprocal" and rep in FLOATS:
        return lambda x: c_expression("reciprocal", rep, [x])
    if name in ("positive", "conjugate"):
        return lambda x: x
    if name == "sign" and rep in FLOATS:
        return lambda x: f"({x} != {x} ? {x} : {c_expression('sign', rep, [x])})"
    if name == "sign":
        return lambda x: c_expression("sign", rep, [x])
    if name in ("deg2rad", "radians", "rad2deg", "degrees"):
        factor = np.pi / 180 if name in ("deg2rad", "radians") else 180 / np.pi
        if rep == "f64":
            return lambda x: f"({x} * {float(factor).hex()})"
    if name == "power":
        return _power(rep, operands[1])
    if rep == "bool" and name in ("add", "multiply"):
        return lambda x, y: f"({x} {'|' if name == 'add' else '&'} {y})"
    if name in ("fmin", "fmax") and rep not in FLOATS:  # there is no NaN
        name = {"fmin": "minimum", "fmax": "maximum"}[name]
    op = _OPERATIONS.get(name)
    taken = op is not None and DTYPES[rep].kind in OPS[op].kinds
    if op is None or not taken or (name == "fabs" and rep not in FLOATS):
        raise Unreadable(f"np.{name}")
    if name in _COMPARISONS and rep == "f64":
        return lambda a, b: c_expression(op, rep, [_beside(a, b), _beside(b, a)])
    return lambda *texts: combined(op, rep, texts)


def _beside(a: str, b: str) -> str:
    """An operand of a comparison: of the absolute value of a complex number mostly its square."""
    if not a.startswith("abs_c128(") or b.startswith("abs_c128("):
        return a
    inner = a[len("abs_c128(") : -1]
    depth = 0
    for c in inner:
        depth += (c == "(") - (c == ")")
        if depth < 0:  # the last parenthesis is another one's
            return a
    return f"modulus_beside({inner}, {b})"


def _power(rep: str, exponent: Value) -> Callable[..., str]:
    n = exponent.value if isinstance(exponent, Num) else None
    if n == 2:
        return lambda x, y: c_expression("mul", rep, [x, x])
    if rep in FLOATS:
        if n == 0.5:
            return lambda x, y: c_expression("sqrt", rep, [x])
        if n == 1:
            return lambda x, y: x
        if n == -1:
            return lambda x, y: c_expression("reciprocal", rep, [x])
        if n == 0:
            return lambda x, y: "1"
    return lambda x, y: c_expression("pow", rep, [x, y])


def _complex_operation(name: str, rep: str) -> Callable[..., str]:
    part = PARTS[rep]
    if name == "absolute":
        return lambda x: f"abs_{rep}({x})"
    if name == "conjugate":
        return lambda x: f"conj_{rep}({x})"
    if name == "positive":
        return lambda x: x
    if name == "square":
        return lambda x: f"mul_{rep}({x}, {x})"
    if name in ("isnan", "isfinite", "isinf"):
        join = "&" if name == "isfinite" else "|"
        return lambda x: "({} {} {})".format(
            c_expression(name, part, [f"{x}.r"]), join, c_expression(name, part, [f"{x}.i"])
        )
    if name in OF_LIBM:
        return lambda x: f"complex_{name}_{rep}({x})"
    if name not in _ON_COMPLEX:
        raise Unreadable(f"np.{name} of complex numbers")
    return lambda *texts: f"{_ON_COMPLEX[name]}_{rep}({', '.join(texts)})"


def ufunc(r: Reader, name: str, operands: Sequence[Value]) -> Value:
    """The ufunc of this name on arrays and numbers: an array, or NumPy's scalar."""
    given, operands = operands, [as_operand(r, x) for x in operands]
    if name == "matmul":
        return product(r, *operands)
    if any(isinstance(x, Num) and len(x.kinds) > 1 for x in given):
        agreed(
            [x if isinstance(x, Num) else y for x, y in zip(given, operands, strict=True)],
            functools.partial(resolved, name),
        )
    kinds = tuple(operand_kind(x) for x in operands)
    dtypes = resolved(name, kinds)
    reps = [rep_of(d) for d in dtypes]
    if len(reps) != len(operands) + 1:
        raise Unreadable(f"np.{name}, which gives several arrays")
    for x, rep in zip(operands, reps, strict=False):
        if isinstance(x, Num) and "int" in x.kinds and rep in INTEGERS:
            fits(r, x, rep)
    if name == "power":
        if reps[0] in PARTS and not (isinstance(operands[1], Num) and operands[1].value == 2):
            raise Unreadable("powers of complex numbers")
        if reps[0] in PARTS:
            name, operands, reps = "square", operands[:1], [reps[0], reps[-1]]
        if reps[0] in INTEGERS:
            _nonnegative(r, operands[1])
    if len(operands) == 2 and reps[0] != reps[1] and name not in ("left_shift", "right_shift"):
        raise Unreadable("integers of unlike signs are compared")
    text = operation(name, reps, operands)
    op = _OPERATIONS.get(name, "")
    cheap = op not in _COSTLY or (name == "power" and _power_is_cheap(operands[1]))
    if all(isinstance(x, Num) for x in operands):
        texts = [
            named_numbers(r, convert(r, x, rep)).text
            for x, rep in zip(operands, reps, strict=False)
        ]
        kind = kind_of(dtypes[-1])
        if name == "absolute" and reps[0] == "c128":
            return modulus(r, Num(texts[0], "c128", ("complex",)), kind)
        if reps[-1] == "bool":
            return Num(text(*texts), "bool", (kind,), low=0, high=1)
        made = r.number(text(*texts), reps[-1], (kind,))
        if made.rep == "i64":
            made = Num(made.text, "i64", (kind,), "", r.facts.name(made.text))
        return made
    return pointwise(r, operands, reps[: len(operands)], reps[-1], text, cheap)


def _power_is_cheap(x: Value) -> bool:
    return isinstance(x, Num) and x.value in (2, 0.5, 1, -1, 0)


def _nonnegative(r: Reader, x: Value) -> None:
    if isinstance(x, Num):
        if x.low < 0 and not (x.value is not None and x.value >= 0):
            r.leave_if(f"{x.text} < 0", "integers to a negative power")
        return
    if x.rep.startswith("i"):
        arr = materialized(r, x)
        bad = r.fresh("bad")
        r.line(f"int {bad} = 0;")
        with loops(r, arr.dims) as index:
            r.line(f"{bad} |= {load(arr, index)} < 0;")
        r.leave_if(bad, "integers to a negative power")


def call_ufunc(r: Reader, f: np.ufunc, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of a ufunc, with `out` if it is given."""
    out = kwargs.pop("out", None)
    if len(args) > f.nin and len(args) == f.nin + 1:
        out = args.pop()
    if isinstance(out, Tup) and len(out.items) == 1:
        out = out.items[0]
    dtype, where = kwargs.pop("dtype", None), kwargs.pop("where", None)
    if kwargs or f.nout != 1:
        raise Unreadable(f"keywords of np.{f.__name__}")
    if f.__name__ == "matmul":
        made = product(r, *[as_operand(r, a) for a in args])
    else:
        made = ufunc(r, f.__name__, args)
    if dtype is not None and (isinstance(made, Num) or rep_of(dtype_of(dtype)) != made.rep):
        raise Unreadable(f"np.{f.__name__} with dtype=")
    if is_none(out):
        if where is not None:
            raise Unreadable("where= without out=")
        return made
    if where is not None:
        made = _under(r, made, as_operand(r, where), out)
    return into(r, made, out)


def _under(r: Reader, made: Value, mask: Value, out: Value) -> Lazy:
    """What `out` holds then: a result where a mask is true, what it held before elsewhere."""
    if not isinstance(out, Arr) or not isinstance(mask, (Arr, Lazy)) or mask.rep != "bool":
        raise Unreadable("where= that is no mask")
    if not isinstance(made, (Arr, Lazy)) or made.ndim > out.ndim or mask.ndim > out.ndim:
        raise Unreadable("where= of another rank")
    if not np.can_cast(made.dtype, out.dtype, "same_kind"):
        raise Unreadable("out= of another kind of dtype")
    for x in (made, mask):
        for d, n in zip(reversed(x.dims), reversed(out.dims), strict=False):
            if d.value != 1:
                common_extent_of_product(r, d, n)
    new = stretched(cast(lazy(made), out.rep), out.dims)
    test, old = stretched(lazy(mask), out.dims), lazy(out)
    return Lazy(
        out.rep, out.dims,
        lambda index: f"({test.at(index)} ? {new.at(index)} : {old.at(index)})",
        (*new.reads, *test.reads, *old.reads),
    )  # fmt: skip


def into(r: Reader, made: Value, out: Value) -> Value:
    """A result in the array `out`."""
    if not isinstance(out, Arr):
        raise Unreadable("out= of this")
    src = made.dtype if not isinstance(made, Num) else DTYPE_OF[made.rep]
    if not np.can_cast(src, out.dtype, "same_kind"):
        raise Unreadable("out= of another kind of dtype")
    if out.readonly:
        raise Unreadable("out= that is read-only")
    value = of_number(made) if isinstance(made, Num) else lazy(made)
    if len(value.dims) != out.ndim:
        raise Unreadable("out= of another rank")
    commit = fill(r, out, stored(value, r, out.rep))
    for d, n in zip(value.dims, out.dims, strict=True):
        if d.value == 1 and n.value != 1:
            raise Unreadable("out= that is larger")
    commit()
    r.changed(out.roots, noted=True)
    return out


def _copyto(r: Reader, dst: Value, src: Value, where: Value | None = None) -> Value:
    """`np.copyto(dst, src, where=mask)`."""
    if not isinstance(dst, Arr) or not isinstance(src, (Num, Arr, Lazy)) or dst.readonly:
        raise Unreadable("np.copyto of this")
    if isinstance(src, Num) and src.is_python:
        takes = all(dst.dtype.kind in _TAKES.get(kind, "") for kind in src.kinds)
    else:
        from_ = DTYPE_OF[src.rep] if isinstance(src, Num) else src.dtype
        takes = np.can_cast(from_, dst.dtype, "same_kind")
    if not takes:
        raise Unreadable("np.copyto from another kind of dtype")
    value = stored(src if isinstance(src, Num) else lazy(src), r, dst.rep)
    if where is not None:
        if isinstance(where, Arr):  # NumPy looks at it while it writes
            apart(r, dst, where, "a mask that shares memory with what is written")
        text = value.text if isinstance(value, Num) else ""
        new = Lazy(dst.rep, (), lambda index: text) if isinstance(value, Num) else value
        value = _under(r, new, where, dst)
    commit = fill(r, dst, value)
    commit()
    r.changed(dst.roots, noted=True)
    return Known(None)


_TAKES = {"bool": "biufc", "int": "ifc", "float": "fc", "complex": "c"}  # of Python's numbers


def product(r: Reader, a: Value, b: Value) -> Value:
    """`a @ b`."""
    a, b = as_operand(r, a), as_operand(r, b)
    if isinstance(a, Num) or isinstance(b, Num):
        raise Unreadable("@ of a number")
    return product_of(r, a, b)


def _conjugate(r: Reader, x: Value) -> Value:
    """`x.conj()`, which is x itself where its numbers are real."""
    return x if isinstance(x, Arr) and x.rep not in PARTS else ufunc(r, "conjugate", [x])


TABLE: dict[Any, Callable] = {np.copyto: _copyto}
METHODS: dict[str, Callable] = {"conj": _conjugate, "conjugate": _conjugate}
