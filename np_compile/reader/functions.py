"""NumPy's functions and methods on arrays, as loops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from np_compile.kernels.ir.scalars import c_expression

from .index import assign, fill, store_text, stored, view
from .items import item
from .lists import array_in, as_vector, each, length, range_length
from .nest import (
    alloc,
    cast,
    cast_text,
    common_extent_of_product,
    contiguous,
    dot,
    extent,
    extreme,
    lazy,
    load,
    loops,
    materialized,
    named_numbers,
    note_work,
    of_number,
    pointwise,
    reduced,
    size_of,
    solid,
    write,
)
from .numbers import binary, convert, fits, kind_of, rep_of, resolved, to_float, to_int, truth
from .read import Reader, int_constant
from .values import (
    C_TYPE,
    DTYPE_OF,
    FLOATS,
    INTEGERS,
    KIND_OF_DTYPE,
    PARTS,
    PYTHON,
    REPRESENTATION,
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Range,
    Slice,
    Tup,
    Unreadable,
    Value,
    python,
)

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
    op = _OPERATIONS.get(name)
    if op is None or (name == "fabs" and rep not in FLOATS):
        raise Unreadable(f"np.{name}")
    return lambda *texts: c_expression(op, rep, texts)


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
    if name not in _ON_COMPLEX:
        raise Unreadable(f"np.{name} of complex numbers")
    return lambda *texts: f"{_ON_COMPLEX[name]}_{rep}({', '.join(texts)})"


def ufunc(r: Reader, name: str, operands: Sequence[Value]) -> Value:
    """The ufunc of this name on arrays and numbers: an array, or NumPy's scalar."""
    operands = [as_operand(r, x) for x in operands]
    if name == "matmul":
        return product(r, *operands)
    kinds = tuple(_kind(x) for x in operands)
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
        texts = [named(r, convert(r, x, rep)).text for x, rep in zip(operands, reps, strict=False)]
        kind = kind_of(dtypes[-1])
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


def named(r: Reader, x: Num) -> Num:
    return named_numbers(r, x)


def _kind(x: Value) -> str:
    if isinstance(x, Num):
        if len(x.kinds) == 1:
            return x.kinds[0]
        if all(k in PYTHON for k in x.kinds):
            return {"f64": "float", "i64": "int", "c128": "complex", "bool": "bool"}[x.rep]
        raise Unreadable(f"a number of kind {' or '.join(x.kinds)} in a function of NumPy's")
    if x.ndim == 0:
        return KIND_OF_DTYPE[x.dtype]
    return x.kind


def as_operand(r: Reader, x: Value) -> Value:
    if isinstance(x, Num) and len(x.kinds) > 1 and not all(k in PYTHON for k in x.kinds):
        strong = [k for k in x.kinds if k not in PYTHON]
        if len(strong) == 1 and REPRESENTATION[strong[0]] == x.rep:
            # Of a Python number and NumPy's of the same representation: with float64 and int64
            # arrays the result is the same.
            return Num(x.text, x.rep, (strong[0],), "", x.lin, x.low, x.high)
    if isinstance(x, (Num, Arr, Lazy)):
        return x
    if isinstance(x, (Tup, Lst, Range)):
        return array_of(r, x)
    raise Unreadable("an operand that is no array")


def as_array(r: Reader, x: Value, other: Value) -> Value:
    """An operand of an operator whose other one is `other`: a list beside an array is an array."""
    if isinstance(x, (Tup, Lst)) and isinstance(other, (Arr, Lazy)):
        return array_of(r, x)
    if isinstance(x, (Tup, Lst)) and isinstance(other, Num) and not other.is_python:
        return array_of(r, x)
    return x


def call_ufunc(r: Reader, f: np.ufunc, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of a ufunc, with `out` if it is given."""
    out = kwargs.pop("out", None)
    if len(args) > f.nin and len(args) == f.nin + 1:
        out = args.pop()
    if isinstance(out, Tup) and len(out.items) == 1:
        out = out.items[0]
    dtype = kwargs.pop("dtype", None)
    if kwargs or f.nout != 1:
        raise Unreadable(f"keywords of np.{f.__name__}")
    if f.__name__ == "matmul":
        made = product(r, *[as_operand(r, a) for a in args])
    else:
        made = ufunc(r, f.__name__, args)
    if dtype is not None and (isinstance(made, Num) or rep_of(dtype_of(dtype)) != made.rep):
        raise Unreadable(f"np.{f.__name__} with dtype=")
    if out is None or (isinstance(out, Known) and out.value is None):
        return made
    return into(r, made, out)


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
    commit = fill(r, out, stored(value, r, out.rep) if value.dims else value)
    for d, n in zip(value.dims, out.dims, strict=True):
        if d.value == 1 and n.value != 1:
            raise Unreadable("out= that is larger")
    commit()
    r.changed(out.roots)
    return out


# dtypes


def dtype_of(x: Value) -> np.dtype:
    if isinstance(x, Known):
        try:
            made = np.dtype(x.value)
        except TypeError as e:
            raise Unreadable(str(e)) from None
        if made not in KIND_OF_DTYPE or not made.isnative:
            raise Unreadable(f"dtype {made}")
        return made
    raise Unreadable("a dtype that is no constant")


def _dtype(x: Value | None, default: Any = np.float64) -> str:
    if x is None or (isinstance(x, Known) and x.value is None):
        return rep_of(np.dtype(default))
    return rep_of(dtype_of(x))


def scalar_type(r: Reader, f: type, args: list[Value]) -> Value:
    """`np.float64(x)` and its like."""
    dtype = np.dtype(f)
    if dtype not in KIND_OF_DTYPE:
        raise Unreadable(f"np.{f.__name__}")
    kind = kind_of(dtype)
    rep = REPRESENTATION[kind]
    x = args[0] if args else python(0)
    if isinstance(x, (Arr, Lazy)) and x.ndim:
        return cast(lazy(x), rep)
    if not isinstance(x, Num):
        raise Unreadable(f"np.{f.__name__} of this")
    if rep in INTEGERS:
        if x.rep in FLOATS:
            x = to_int(r, x)
        if ("int" in x.kinds or x.rep in INTEGERS) and x.is_python:
            fits(r, x, rep)
    text = convert(r, x, rep).text if rep != "bool" else f"({x.text} != 0)"
    made = r.number(text, rep, (kind,))
    if rep == "i64":
        return Num(made.text, rep, (kind,), "", x.lin or r.facts.name(made.text), x.low, x.high)
    return made


# Arrays that are made


def extents_of(r: Reader, x: Value) -> list[Num]:
    items = x.items if isinstance(x, Tup) else (x,)
    dims = []
    for d in items:
        if not isinstance(d, Num) or not d.is_int:
            raise Unreadable("a shape that is no integers")
        d = to_int(r, d)
        if d.low < 0:
            if d.value is not None:
                raise Unreadable("a negative size")
            r.leave_if(f"(u64){d.text} >= {1 << 40}UL", "a negative size, or a large one")
            if d.lin is not None:
                r.facts.add(d.lin)
                d = Num(d.text, "i64", ("int",), "", d.lin, 0, 1 << 40)
        dims.append(d)
    return dims


def filled(r: Reader, rep: str, dims: Sequence[Num], text: str | None) -> Arr:
    """A new array of one value; of anything, without."""
    zero = text is not None and text in ("0", "0L", "0.0", "0x0.0p+0", "0x0.0p+0f", "0U", "0UL")
    made = alloc(r, rep, dims, zero)
    if text is not None and not zero:
        with loops(r, made.dims) as index:
            write(r, made, index, text)
    return made


def _of_value(value: int) -> Callable:
    def make(r: Reader, shape: Value, dtype: Value | None = None) -> Value:
        rep = _dtype(dtype)
        one = convert(r, python(value), rep) if rep in PARTS else None
        text = one.text if one and value else str(value)
        return filled(r, rep, extents_of(r, shape), text)

    return make


def _empty(r: Reader, shape: Value, dtype: Value | None = None) -> Value:
    # What is in it is anything, in NumPy too.
    return alloc(r, _dtype(dtype), extents_of(r, shape))


def _full(r: Reader, shape: Value, value: Value, dtype: Value | None = None) -> Value:
    if not isinstance(value, Num):
        raise Unreadable("np.full of an array")
    if dtype is None or (isinstance(dtype, Known) and dtype.value is None):
        if value.kind is None:
            raise Unreadable("np.full of a number of one kind or another")
        rep = {"int": "i64", "float": "f64", "bool": "bool", "complex": "c128"}.get(
            value.kind, value.rep
        )
    else:
        rep = _dtype(dtype)
    return filled(
        r,
        rep,
        extents_of(r, shape),
        named(r, Num(store_text(r, value, rep), rep, value.kinds)).text,
    )


def _like(value: int | None) -> Callable:
    def make(r: Reader, a: Value, dtype: Value | None = None) -> Value:
        a = as_operand(r, a)
        if isinstance(a, Num):
            raise Unreadable("a number's like")
        if isinstance(a, Arr) and not a.ordered and a.ndim > 1:
            raise Unreadable("the like of an array that is not in C order")
        rep = _dtype(dtype, a.dtype)
        text = None if value is None else str(value)
        if rep in PARTS and value:
            text = f"({rep}){{{value}, 0}}"
        return filled(r, rep, a.dims, text)

    return make


def _full_like(r: Reader, a: Value, value: Value, dtype: Value | None = None) -> Value:
    if not isinstance(a, (Arr, Lazy)) or (isinstance(a, Arr) and not a.ordered and a.ndim > 1):
        raise Unreadable("np.full_like of this")
    kind = Known(dtype_of(dtype) if isinstance(dtype, Known) and dtype.value else a.dtype)
    return _full(r, Tup(a.dims), value, kind)


def _arange(r: Reader, *args: Value, dtype: Value | None = None) -> Value:
    given = [x for x in args if isinstance(x, Num)]
    if len(given) != len(args) or len(args) > 3:
        raise Unreadable("np.arange of these")
    start = given[0] if len(given) > 1 else python(0)
    stop = given[1] if len(given) > 1 else given[0]
    step = given[2] if len(given) > 2 else python(1)
    if not all(x.is_int for x in (start, stop, step)) or step.value is None:
        raise Unreadable("np.arange of floats")
    start, stop, step = (to_int(r, x) for x in (start, stop, step))
    n = range_length(r, Range(start, stop, step))
    if n.low < 0 or n.high > 1 << 40:
        r.leave_if(f"(u64){n.text} > {1 << 40}UL", "a large range")
    rep = _dtype(dtype, np.int64)
    n = extent(r, n.text, n.lin)

    def at(index: list[str]) -> str:
        text = index[0] if step.value == 1 else f"({index[0]} * {step.text})"
        text = f"({start.text} + {text})" if start.value != 0 else text
        return text if rep == "i64" else f"(({C_TYPE[rep]}){text})"

    return Lazy(rep, (n,), at)


def _linspace(r: Reader, a: Value, b: Value, num: Value | None = None) -> Value:
    if not isinstance(a, Num) or not isinstance(b, Num):
        raise Unreadable("np.linspace of arrays")
    n = extents_of(r, num or python(50))[0]
    x, y = named(r, convert(r, a, "f64", exact=True)), named(r, convert(r, b, "f64", exact=True))
    made = alloc(r, "f64", [n])
    step = r.named(f"({y.text} - {x.text}) / (f64)({n.text} - 1)", "f64")
    r.leave_if(f"{n.text} > 1 && {step} == 0 && {y.text} != {x.text}", "a tiny step")
    with loops(r, made.dims) as index:
        write(r, made, index, f"((f64){index[0]} * {step} + {x.text})")
    with r.block(f"if ({n.text} == 1)"):
        write(r, made, ["0"], x.text)
    with r.block(f"if ({n.text} > 1)"):
        r.line(f"{made.data}[{n.text} - 1] = {y.text};")
    return made


def _eye(r: Reader, n: Value, m: Value | None = None, dtype: Value | None = None) -> Value:
    rows = extents_of(r, n)[0]
    columns = rows if m is None or isinstance(m, Known) else extents_of(r, m)[0]
    rep = _dtype(dtype)
    made = filled(r, rep, [rows, columns], "0")
    short = named(
        r, Num(f"({rows.text} < {columns.text} ? {rows.text} : {columns.text})", "i64", ("int",))
    )
    with loops(r, [Num(short.text, "i64", ("int",))], vector="") as index:
        one = f"({rep}){{1, 0}}" if rep in PARTS else "1"
        r.line(f"{made.data}[{index[0]} * ({columns.text} + 1)] = {one};")
    return made


def array_of(r: Reader, x: Value, dtype: Value | None = None) -> Arr:
    """`np.array(x)`: a new array."""
    if isinstance(x, Lst):
        if isinstance(x.of, (Arr, Lst)):
            return _as_dtype(r, _of_arrays(r, x), dtype)
        v = as_vector(r, x)
        if (v.rep == "i64" and x.kind == "int") or x.kind != "int":
            return _as_dtype(r, materialized(r, lazy(v)), dtype)
    if isinstance(x, (Arr, Lazy)):
        made = lazy(x)
        if dtype is not None and not (isinstance(dtype, Known) and dtype.value is None):
            made = cast(made, _dtype(dtype))
        if isinstance(x, Arr) and not x.ordered and x.ndim > 1:
            raise Unreadable("a copy of an array that is not in C order")
        return materialized(r, made)
    if isinstance(x, Num):
        raise Unreadable("an array without axes")
    if isinstance(x, Range):
        return _as_dtype(r, materialized(r, _arange(r, x.start, x.stop, x.step)), dtype)
    if not isinstance(x, Tup) or not x.items:
        raise Unreadable("np.array of this")
    return _stacked(r, [as_item(r, y) for y in x.items], 0, dtype)


def _of_arrays(r: Reader, x: Lst) -> Arr:
    """An array of a list of arrays, along a new axis, or of a list of lists."""
    n = length(r, x)
    r.leave_if(f"{n.text} == 0", "an array of no arrays")
    first = array_in(r, x, "0")
    made = alloc(r, first.rep, (n, *first.dims))
    with each(r, n) as k:
        part = array_in(r, x, k.text)
        for d, e in zip(part.dims, first.dims, strict=True):
            if d.value is None or d.value != e.value:
                r.leave_if(f"{d.text} != {e.text}", "an array of arrays of different shapes")
        target = view(r, made, [k])
        assert isinstance(target, Arr)
        fill(r, target, lazy(replace(part, dims=target.dims)))()
    return made


def as_item(r: Reader, y: Value) -> Value:
    if isinstance(y, (Tup, Lst, Range)):
        return array_of(r, y)
    return as_operand(r, y)


def _as_dtype(r: Reader, a: Arr, dtype: Value | None) -> Arr:
    if dtype is None or (isinstance(dtype, Known) and dtype.value is None):
        return a
    return materialized(r, cast(lazy(a), _dtype(dtype))) if _dtype(dtype) != a.rep else a


_PYTHON_DTYPE = {"bool": np.dtype(bool), "int": np.dtype(np.int64), "float": np.dtype(float),
                 "complex": np.dtype(complex)}  # fmt: skip


def _stacked(r: Reader, items: list[Value], axis: int, dtype: Value | None = None) -> Arr:
    """Arrays or numbers along a new axis."""
    if dtype is not None and not (isinstance(dtype, Known) and dtype.value is None):
        target = dtype_of(dtype)
    else:
        found = []
        for x in items:
            if isinstance(x, Num):
                if x.kind is None:
                    raise Unreadable("a number of one kind or another in an array")
                found.append(_PYTHON_DTYPE.get(x.kind) or DTYPE_OF[x.rep])
            else:
                found.append(x.dtype)
        target = functools.reduce(np.promote_types, found)
    rep = rep_of(target)
    shapes = [() if isinstance(x, Num) else x.dims for x in items]
    if len({len(s) for s in shapes}) != 1:
        raise Unreadable("an array of arrays of different ranks")
    inner = list(shapes[0])
    for s in shapes[1:]:
        inner = [common_extent_of_product(r, a, b) for a, b in zip(inner, s, strict=True)]
    axis = axis if axis >= 0 else axis + len(inner) + 1
    parts: list[Lazy | str] = []
    for x in items:
        if isinstance(x, Num):
            parts.append(named(r, Num(store_text(r, x, rep), rep, x.kinds)).text)
        else:
            parts.append(cast(lazy(x), rep))
    dims = [*inner[:axis], int_constant(len(items)), *inner[axis:]]
    made = alloc(r, rep, dims)
    for k, x in enumerate(parts):
        if isinstance(x, str):
            write(r, made, [str(k)], x)
            continue
        with loops(r, inner) as index:
            write(r, made, [*index[:axis], str(k), *index[axis:]], x.at(index))
    return made


def _array(r: Reader, x: Value, dtype: Value | None = None, copy: Value | None = None) -> Value:
    if copy is not None and not (isinstance(copy, Num) and copy.value is True):
        raise Unreadable("np.array with copy=")
    return array_of(r, x, dtype)


def _asarray(r: Reader, x: Value, dtype: Value | None = None) -> Value:
    if isinstance(x, Arr) and (
        dtype is None
        or (isinstance(dtype, Known) and dtype.value is None)
        or _dtype(dtype) == x.rep
    ):
        return x
    return array_of(r, x, dtype)


def _ascontiguous(r: Reader, x: Value, dtype: Value | None = None) -> Value:
    if isinstance(x, Arr) and not x.flat:
        raise Unreadable("np.ascontiguousarray of an array that may be contiguous")
    return _asarray(r, x, dtype)


def _copy(r: Reader, x: Value, order: Value | None = None) -> Value:
    if order is not None:
        raise Unreadable("a copy in another order")
    if isinstance(x, Num):
        return x
    if not isinstance(x, (Arr, Lazy)):
        return array_of(r, x)
    if isinstance(x, Lazy):
        return materialized(r, x)
    return materialized(r, lazy(x))  # `a.copy()` is in C order


def _np_copy(r: Reader, x: Value) -> Value:
    if isinstance(x, Arr) and not x.ordered and x.ndim > 1:
        raise Unreadable("a copy of an array that is not in C order")
    return _copy(r, x)


# Views


def transposed(r: Reader, x: Value, axes: Value | None, *more: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("a number's transpose")
    if isinstance(x, Lazy):
        x = materialized(r, x)
    if more:
        axes = Tup((axes, *more))
    order = list(reversed(range(x.ndim)))
    if axes is not None and not (isinstance(axes, Known) and axes.value is None):
        if not isinstance(axes, Tup) or not all(
            isinstance(a, Num) and a.value is not None for a in axes.items
        ):
            raise Unreadable("axes that are no constants")
        order = [int(a.value) % x.ndim for a in axes.items]
        if sorted(order) != list(range(x.ndim)):
            raise Unreadable("axes that are no permutation")
    if x.ndim < 2:
        return x
    return Arr(
        x.rep, x.buf, x.data, tuple(x.dims[k] for k in order), tuple(x.strides[k] for k in order),
        x.roots, (f"{x.data}.T", ()), x.readonly,
    )  # fmt: skip


def part(r: Reader, x: Value, name: str) -> Value:
    """`x.real`, `x.imag`."""
    if x.rep in PARTS:
        source = lazy(x)
        at = source.at
        reads = source.reads
        return Lazy(PARTS[x.rep], source.dims, lambda i: f"{at(i)}.{name[0]}", reads)
    if name == "real":
        return x
    raise Unreadable("the imaginary part of real numbers")


def _reshape(r: Reader, x: Value, *shape: Value, order: Value | None = None) -> Value:
    x = as_operand(r, x)
    if order is not None or isinstance(x, Num):
        raise Unreadable("reshape in an order")
    if isinstance(x, Lazy):
        x = materialized(r, x)
    if not x.flat:
        x = _gathered_up(r, x)
    given = shape[0] if len(shape) == 1 else Tup(shape)
    items = list(given.items if isinstance(given, Tup) else (given,))
    total = size_of(r, x.dims)
    free = [k for k, d in enumerate(items) if isinstance(d, Num) and d.value == -1]
    if len(free) > 1:
        raise Unreadable("two unknown sizes")
    dims: list[Num] = []
    for k, d in enumerate(items):
        dims.append(int_constant(1) if k in free else extents_of(r, d)[0])
    rest = size_of(r, dims)
    if free:
        if rest.value == 1:
            dims[free[0]] = total
        else:
            bad = f"{rest.text} == 0 || {total.text} % {rest.text}"
            if rest.value is None or total.value is None or total.value % rest.value:
                r.leave_if(bad, "a shape that does not fit")
            dims[free[0]] = (
                int_constant(total.value // rest.value)
                if rest.value and total.value is not None
                else extent(r, f"({total.text} / {rest.text})")
            )
    elif not (rest.lin is not None and total.lin is not None and r.facts.same(rest.lin, total.lin)):
        r.leave_if(f"{total.text} != {rest.text}", "a shape that does not fit")
    return Arr(
        x.rep, x.buf, x.data, tuple(dims), contiguous(r, dims), x.roots, (f"{x.data}.r", ()),
        x.readonly, True, True,
    )  # fmt: skip


def _gathered_up(r: Reader, x: Arr) -> Arr:
    """A copy of an array that has to be one to get another shape: its last axis but one does not
    go on where the last one ends."""
    if x.ndim != 2 or not x.ordered:
        raise Unreadable("reshape of an array that is not contiguous")
    (n, m), (s, t) = x.dims, x.strides
    r.leave_if(
        f"{s.text} == {m.text} * {t.text} || {n.text} < 2 || {m.text} < 2",
        "reshape of an array that may be contiguous",
    )
    return materialized(r, lazy(x))


def _ravel(r: Reader, x: Value) -> Value:
    return _reshape(r, x, python(-1))


def _flatten(r: Reader, x: Value) -> Value:
    made = _copy(r, x)
    return _reshape(r, made, python(-1))


def _astype(r: Reader, x: Value, dtype: Value, copy: Value | None = None) -> Value:
    if copy is not None:
        raise Unreadable("astype with copy=")
    rep = _dtype(dtype)
    if isinstance(x, Num):
        return scalar_type(r, DTYPE_OF[rep].type, [x])
    if x.rep in PARTS and rep not in PARTS:
        raise Unreadable("complex numbers as real ones")
    if isinstance(x, Arr) and not x.ordered and x.ndim > 1:
        raise Unreadable("a copy of an array that is not in C order")
    return materialized(r, cast(lazy(x), rep))


def _flip(r: Reader, x: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Lazy):
        x = materialized(r, x)
    back = Slice(None, None, python(-1))
    if axis is None or isinstance(axis, Known):
        return view(r, x, [back] * x.ndim)
    k = _axis(axis, x.ndim)
    return view(r, x, [Slice(None, None, None)] * k + [back])


def _expand_dims(r: Reader, x: Value, axis: Value) -> Value:
    x = as_operand(r, x)
    x = materialized(r, x) if isinstance(x, Lazy) else x
    k = _axis(axis, x.ndim + 1)
    return view(r, x, [Slice(None, None, None)] * k + [Known(None)])


# Reductions


def _axis(x: Value, rank: int) -> int:
    if not isinstance(x, Num) or not isinstance(x.value, int) or not -rank <= x.value < rank:
        raise Unreadable("an axis that is no constant")
    return x.value % rank


def _axes(x: Value | None, rank: int) -> tuple[int, ...]:
    if x is None or (isinstance(x, Known) and x.value is None):
        return tuple(range(rank))
    items = x.items if isinstance(x, Tup) else (x,)
    return tuple(sorted(_axis(a, rank) for a in items))


def _keeps(x: Value | None) -> bool:
    if x is None:
        return False
    if isinstance(x, Num) and isinstance(x.value, bool):
        return x.value
    raise Unreadable("keepdims that is no constant")


def _accumulated(op: str, rep: str) -> str:
    """The representation in which NumPy sums up."""
    if op in ("add", "mul"):
        if rep in ("bool", "i8", "i16", "i32"):
            return "i64"
        if rep in ("u8", "u16", "u32"):
            return "u64"
    return rep


def _reduction(op: str, test: bool = False) -> Callable:
    def reduce(
        r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
        out: Value | None = None, keepdims: Value | None = None,
    ) -> Value:  # fmt: skip
        x = as_operand(r, x)
        if isinstance(x, Num):
            raise Unreadable("a reduction of a number")
        axes = _axes(axis, x.ndim)
        if test:
            rep = "bool"
        else:
            rep = (
                _accumulated(op, x.rep)
                if dtype is None or (isinstance(dtype, Known) and dtype.value is None)
                else _dtype(dtype)
            )
        if len(axes) < x.ndim or x.ndim > 1:
            x = solid(r, x)
        if test and x.rep != "bool":
            x = _nonzero(x)
        made = reduced(r, op, x, axes, _keeps(keepdims), rep)
        if isinstance(made, str):
            made = _scalar(r, made, rep)
        return into(r, made, out) if out is not None else made

    return reduce


def _nonzero(x: Arr | Lazy) -> Lazy:
    source = lazy(x)
    at = source.at
    if x.rep in PARTS:
        return Lazy(
            "bool", source.dims, lambda i: f"({at(i)}.r != 0 || {at(i)}.i != 0)", source.reads
        )
    return Lazy("bool", source.dims, lambda i: f"({at(i)} != 0)", source.reads)


def _scalar(r: Reader, text: str, rep: str) -> Num:
    """NumPy's scalar in a C variable."""
    kind = kind_of(DTYPE_OF[rep])
    if rep == "i64":
        name = r.named(text, "i64", "n")
        return Num(name, rep, (kind,), "", r.facts.name(name))
    return Num(r.named(text, C_TYPE[rep]), rep, (kind,))


def _mean(
    r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
    out: Value | None = None, keepdims: Value | None = None,
) -> Value:  # fmt: skip
    x = as_operand(r, x)
    if isinstance(x, Num) or dtype is not None or out is not None:
        raise Unreadable("np.mean with these arguments")
    rep = x.rep if x.rep in FLOATS or x.rep in PARTS else "f64"
    axes = _axes(axis, x.ndim)
    n = size_of(r, [x.dims[k] for k in axes])
    total = reduced(r, "add", solid(r, x) if len(axes) < x.ndim else x, axes, _keeps(keepdims), rep)
    count = Num(
        f"({C_TYPE.get(PARTS.get(rep, rep))}){n.text}",
        PARTS.get(rep, rep),
        (kind_of(DTYPE_OF[PARTS.get(rep, rep)]),),
    )
    if isinstance(total, str):
        if rep in PARTS:
            return r.number(
                f"div_{rep}({total}, {cast_number(count, rep)})", rep, (kind_of(DTYPE_OF[rep]),)
            )
        return _scalar(r, f"({total} / {count.text})", rep)
    return ufunc(r, "true_divide", [total, Num(named(r, count).text, count.rep, count.kinds)])


def cast_number(x: Num, rep: str) -> str:
    return cast_text(x.rep, rep, x.text)


def _var(
    r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
    out: Value | None = None, ddof: Value | None = None, keepdims: Value | None = None,
) -> Value:  # fmt: skip
    x = as_operand(r, x)
    if isinstance(x, Num) or dtype is not None or out is not None or x.rep in PARTS:
        raise Unreadable("np.var with these arguments")
    x = materialized(r, x)
    axes = _axes(axis, x.ndim)
    middle = _mean(r, x, axis, keepdims=python(len(axes) < x.ndim))
    if len(axes) == x.ndim and isinstance(middle, Arr):
        raise Unreadable("np.var with keepdims")
    d = ufunc(r, "subtract", [x, middle])
    square = ufunc(r, "square", [d])
    total = _reduction("add")(r, square, axis, keepdims=keepdims)
    n = binary(r, "Sub", size_of(r, [x.dims[k] for k in axes]), ddof or python(0))
    count = Num(
        f"(f64)({n.text} > 0 ? {n.text} : 0)" if n.rep == "i64" else n.text, "f64", ("float",)
    )
    return ufunc(r, "true_divide", [total, Num(named(r, count).text, "f64", ("float",))])


def _std(r: Reader, *args: Value, **kwargs: Value) -> Value:
    return ufunc(r, "sqrt", [_var(r, *args, **kwargs)])


def _arg(op: str) -> Callable:
    def find(r: Reader, x: Value, axis: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or x.rep in PARTS:
            raise Unreadable("argmin of this")
        x = solid(r, x)
        if x.ndim == 1 or axis is None or isinstance(axis, Known):
            text = extreme(r, op, x)
            n = size_of(r, x.dims)
            name = r.named(text, "i64", "n")
            lin = r.facts.name(name, 0, n.high)
            if n.lin is not None:
                r.facts.add(n.lin - lin - 1)
            return Num(name, "i64", ("int64",), "", lin, 0, n.high)
        axes = _axes(axis, x.ndim)
        kept = [k for k in range(x.ndim) if k not in axes]
        source = lazy(x)
        made = alloc(r, "i64", [x.dims[k] for k in kept])
        with loops(r, made.dims, vector="") as index:

            def at(within: list[str], index: list[str] = index) -> str:
                whole = ["0"] * x.ndim
                for k, i in zip(kept, index, strict=True):
                    whole[k] = i
                whole[axes[0]] = within[0]
                return source.at(whole)

            n = x.dims[axes[0]]
            if n.low < 1:
                r.leave_if(f"{n.text} == 0", "the extreme of no elements")
            write(r, made, index, extreme(r, op, Lazy(x.rep, (n,), at)))
        return made

    return find


def python_extreme(r: Reader, name: str, x: Arr, kind: str = "") -> Num:
    """Python's min or max of a vector: the first of equal ones, by comparisons."""
    n = x.dims[0]
    if n.low < 1:
        r.leave_if(f"{n.text} == 0", "the extreme of no elements")
    best = r.fresh("best")
    r.line(f"{C_TYPE[x.rep]} {best} = {load(x, ['0'])};")
    sign = "<" if name == "min" else ">"
    with loops(r, x.dims, vector="") as index:
        text = load(x, index)
        r.line(f"{best} = {text} {sign} {best} ? {text} : {best};")
    kind = kind or x.kind
    if x.rep == "i64":
        made = r.integer(r.named(best, "i64", "n"))
        return Num(made.text, "i64", (kind,), "", made.lin)
    return r.number(r.named(best, C_TYPE[x.rep]), x.rep, (kind,))


def _count_nonzero(r: Reader, x: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("np.count_nonzero of a number")
    text = reduced(r, "add", _nonzero(x), tuple(range(x.ndim)), False, "i64")
    n = size_of(r, x.dims)
    made = r.integer(text, 0, n.high)
    kind = _COUNT_KIND
    return made if kind == "int" else Num(made.text, "i64", (kind,), "", made.lin, 0, n.high)


# A Python integer in older versions of NumPy.
_COUNT_KIND = type(np.count_nonzero(np.ones(1))).__name__


def _cumulative(op: str) -> Callable:
    def accumulate(r: Reader, x: Value, axis: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or (x.ndim > 1 and (axis is None or isinstance(axis, Known))):
            raise Unreadable("a cumulative sum of this")
        k = x.ndim - 1 if axis is None or isinstance(axis, Known) else _axis(axis, x.ndim)
        rep = _accumulated(op, x.rep)
        source = cast(lazy(x), rep)
        made = alloc(r, rep, x.dims)
        note_work(r, x.dims)
        order = [j for j in range(x.ndim) if j != k]
        if k == x.ndim - 1:
            with loops(
                r, [d if j != k else int_constant(1) for j, d in enumerate(x.dims)], vector=""
            ) as index:
                s, i = r.fresh("s"), r.fresh("i")
                r.line(f"{C_TYPE[rep]} {s} = {'0' if op == 'add' else '1'};")
                with r.block(f"for (i64 {i} = 0; {i} < {x.dims[k].text}; {i}++)"):
                    index[k] = i
                    r.line(f"{s} = {c_expression(op, rep, [s, source.at(index)])};")
                    write(r, made, index, s)
            return made
        with loops(r, x.dims, [k, *order]) as index:
            before = list(index)
            before[k] = f"({index[k]} - 1)"
            text = source.at(index)
            sum_ = c_expression(op, rep, [load(made, before), text])
            write(r, made, index, f"({index[k]} == 0 ? {text} : {sum_})")
        return made

    return accumulate


# Functions of several arrays


def product(r: Reader, a: Value, b: Value) -> Value:
    """`a @ b`."""
    a, b = as_operand(r, a), as_operand(r, b)
    if isinstance(a, Num) or isinstance(b, Num):
        raise Unreadable("@ of a number")
    return dot(r, a, b)


def _dot(r: Reader, a: Value, b: Value, out: Value | None = None) -> Value:
    a, b = as_operand(r, a), as_operand(r, b)
    if isinstance(a, Num) or isinstance(b, Num):
        if isinstance(a, Num) and isinstance(b, Num):
            raise Unreadable("np.dot of numbers")
        return ufunc(r, "multiply", [a, b])
    made = dot(r, a, b)
    return made if out is None else into(r, made, out)


def _outer(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1:
        raise Unreadable("np.outer of these")
    first, second = lazy(solid(r, x)), lazy(solid(r, y))
    column = Lazy(
        x.rep, (x.dims[0], int_constant(1)), lambda i: first.at(i[:1]),
        tuple((a, False) for a, _ in first.reads), True,
    )  # fmt: skip
    return ufunc(r, "multiply", [column, second])


def _where(r: Reader, test: Value, *ways: Value) -> Value:
    if len(ways) != 2:
        raise Unreadable("np.where of one argument")
    operands = [as_operand(r, x) for x in (test, *ways)]
    if all(isinstance(x, Num) for x in operands):
        raise Unreadable("np.where of numbers")
    kinds: list[Any] = []
    for x in operands[1:]:
        if isinstance(x, Num) and x.is_python:
            kinds.append({"bool": True, "int": 0, "float": 0.0, "complex": 0j}[_kind(x)])
        else:
            kinds.append(np.dtype(_kind(x).rstrip("_")))
    target = np.result_type(*kinds)
    rep = rep_of(target)
    c = operands[0]
    c_rep = c.rep
    tested = "{0}" if c_rep == "bool" else "({0} != 0)"
    return pointwise(
        r, operands, (c_rep, rep, rep), rep,
        lambda c, x, y: f"({tested.format(c)} ? {x} : {y})",
    )  # fmt: skip


def _clip(
    r: Reader, x: Value, low: Value | None = None, high: Value | None = None, **more: Value
) -> Value:
    low, high = more.pop("a_min", low), more.pop("a_max", high)
    low, high = more.pop("min", low), more.pop("max", high)
    out = more.pop("out", None)
    if more:
        raise Unreadable("np.clip with these arguments")
    made = x
    if low is not None and not isinstance(low, Known):
        made = ufunc(r, "maximum", [made, low])
    if high is not None and not isinstance(high, Known):
        made = ufunc(r, "minimum", [made, high])
    if made is x:
        raise Unreadable("np.clip without bounds")
    return made if out is None else into(r, made, out)


def _concatenate(r: Reader, arrays: Value, axis: Value | None = None) -> Value:
    items = _sequence(r, arrays)
    rank = items[0].ndim
    if any(x.ndim != rank for x in items) or rank == 0:
        raise Unreadable("arrays of different ranks")
    k = 0 if axis is None else _axis(axis, rank)
    rep = rep_of(functools.reduce(np.promote_types, [x.dtype for x in items]))
    dims = list(items[0].dims)
    total = dims[k]
    for x in items[1:]:
        for j in range(rank):
            if j != k:
                dims[j] = common_extent_of_product(r, dims[j], x.dims[j])
        more = binary(r, "Add", total, x.dims[k])
        total = extent(r, more.text, more.lin)
    dims[k] = total
    sources = [cast(lazy(x), rep) for x in items]
    made = alloc(r, rep, dims)
    at = int_constant(0)
    for x in sources:
        here = [d if j != k else x.dims[k] for j, d in enumerate(dims)]
        with loops(r, here) as index:
            there = list(index)
            if at.value != 0:
                there[k] = f"({at.text} + {index[k]})"
            write(r, made, there, x.at(index))
        at = binary(r, "Add", at, x.dims[k])
    return made


def _sequence(r: Reader, x: Value) -> list[Arr | Lazy]:
    if not isinstance(x, Tup):
        raise Unreadable("a sequence of arrays is needed")
    items = [as_item(r, y) for y in x.items]
    if not items or any(isinstance(y, Num) for y in items):
        raise Unreadable("a sequence of arrays is needed")
    return items


def _stack(r: Reader, arrays: Value, axis: Value | None = None) -> Value:
    items = _sequence(r, arrays)
    return _stacked(r, list(items), 0 if axis is None else _axis(axis, items[0].ndim + 1))


def _hstack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    return _concatenate(r, Tup(tuple(items)), python(0 if items[0].ndim == 1 else 1))


def _vstack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    if all(x.ndim == 1 for x in items):
        return _stacked(r, list(items), 0)
    return _concatenate(r, Tup(tuple(items)), python(0))


def _column_stack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    if all(x.ndim == 1 for x in items):
        return _stacked(r, list(items), 1)
    raise Unreadable("np.column_stack of matrices")


def _roll(r: Reader, x: Value, shift: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num) or (x.ndim > 1 and (axis is None or isinstance(axis, Known))):
        raise Unreadable("np.roll of this")
    if not isinstance(shift, Num) or not shift.is_int:
        raise Unreadable("np.roll by several")
    k = 0 if axis is None or isinstance(axis, Known) else _axis(axis, x.ndim)
    source = lazy(solid(r, x))
    n = x.dims[k]
    by = r.named(f"{n.text} ? remainder_i64({to_int(r, shift).text}, {n.text}) : 0", "i64", "n")
    made = alloc(r, x.rep, x.dims)
    note_work(r, x.dims)
    # Two stretches, each without a condition inside.
    for low, stretch, offset in (
        ("0", by, f"{n.text} - {by}"),
        (by, f"({n.text} - {by})", f"-{by}"),
    ):
        size = Num(r.named(stretch, "i64", "n"), "i64", ("int",))
        here = [d if j != k else size for j, d in enumerate(x.dims)]
        with loops(r, here) as index:
            there, back = list(index), list(index)
            there[k] = f"({low} + {index[k]})"
            back[k] = f"({low} + {index[k]} + ({offset}))"
            write(r, made, there, source.at(back))
    return made


def _diff(r: Reader, x: Value, n: Value | None = None, axis: Value | None = None) -> Value:
    if n is not None and not (isinstance(n, Num) and n.value == 1):
        raise Unreadable("np.diff of higher order")
    x = as_operand(r, x)
    if isinstance(x, Num) or x.rep == "bool":
        raise Unreadable("np.diff of this")
    x = materialized(r, x)
    k = x.ndim - 1 if axis is None else _axis(axis, x.ndim)
    before = [Slice(None, None, None)] * k
    later = view(r, x, [*before, Slice(python(1), None, None)])
    first = view(r, x, [*before, Slice(None, python(-1), None)])
    return ufunc(r, "subtract", [later, first])


def _norm(
    r: Reader,
    x: Value,
    ord: Value | None = None,
    axis: Value | None = None,
    keepdims: Value | None = None,
) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num) or x.rep in PARTS or (ord is not None and not isinstance(ord, Known)):
        raise Unreadable("np.linalg.norm with these arguments")
    if x.rep not in FLOATS:
        x = cast(lazy(x), "f64")
    if axis is not None and isinstance(axis, Tup):
        raise Unreadable("np.linalg.norm of matrices")
    x = solid(r, x)
    total = _reduction("add")(r, ufunc(r, "square", [x]), axis, keepdims=keepdims)
    return ufunc(r, "sqrt", [total])


def _cross(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1:
        raise Unreadable("np.cross of these")
    if x.dims[0].value != 3 or y.dims[0].value != 3:
        raise Unreadable("np.cross of vectors of a length that is not known")
    rep = rep_of(np.result_type(x.dtype, y.dtype))
    p, q = cast(lazy(x), rep), cast(lazy(y), rep)
    made = alloc(r, rep, [int_constant(3)])
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        texts = [p.at([str(i)]), q.at([str(j)]), p.at([str(j)]), q.at([str(i)])]
        m = [c_expression("mul", rep, texts[:2]), c_expression("mul", rep, texts[2:])]
        write(r, made, [str(k)], c_expression("sub", rep, m))
    return made


def _round(r: Reader, x: Value, decimals: Value | None = None, out: Value | None = None) -> Value:
    x = as_operand(r, x)
    digits = 0 if decimals is None else decimals.value if isinstance(decimals, Num) else None
    if not isinstance(digits, int) or not 0 <= digits <= 15 or out is not None:
        raise Unreadable("np.round with these arguments")
    if x.rep not in FLOATS:
        raise Unreadable("np.round of what are no floats")
    if digits == 0:
        return ufunc(r, "rint", [x])
    factor = python(float(10**digits))
    whole = ufunc(r, "rint", [ufunc(r, "multiply", [x, factor])])
    return ufunc(r, "true_divide", [whole, factor])


def _shape_of(r: Reader, x: Value) -> Value:
    x = as_operand(r, x)
    return Tup(() if isinstance(x, Num) else x.dims)


def _diag(r: Reader, x: Value) -> Value:
    if not isinstance(x, Arr) or x.ndim != 2:
        raise Unreadable("np.diag of this")
    n = _least_extent(r, x)
    source = lazy(x)
    return materialized(
        r, Lazy(x.rep, (n,), lambda i: source.at([i[0], i[0]]), ((x, False),))
    )  # np.diag gives a read-only view: what is read from it is the same


def _least_extent(r: Reader, x: Arr) -> Num:
    a, b = x.dims
    if a.lin is not None and b.lin is not None and r.facts.same(a.lin, b.lin):
        return a
    return extent(r, f"({a.text} < {b.text} ? {a.text} : {b.text})")


def _trace(r: Reader, x: Value) -> Value:
    if not isinstance(x, Arr) or x.ndim != 2:
        raise Unreadable("np.trace of this")
    source = lazy(x)
    n = _least_extent(r, x)
    return _reduction("add")(r, Lazy(x.rep, (n,), lambda i: source.at([i[0], i[0]]), ((x, False),)))


def _fill(r: Reader, x: Value, value: Value) -> Value:
    if not isinstance(x, Arr) or not isinstance(value, Num):
        raise Unreadable("fill of this")
    commit = assign(r, x, [Known(Ellipsis)], value)
    commit()
    r.changed(x.roots)
    return Known(None)


def _item(r: Reader, x: Value, *index: Value) -> Value:

    if isinstance(x, (Arr, Lazy)):
        if not index:
            n = size_of(r, x.dims)
            if n.value != 1:
                r.leave_if(f"{n.text} != 1", "item of an array of several elements")
            x = r.number(lazy(x).at(["0"] * x.ndim), x.rep, (x.kind,))
        else:
            x = item(r, x, list(index))
    return number_method(r, x, "item", [])


def number_method(r: Reader, x: Num, name: str, args: list[Value]) -> Value:
    """A method of a number."""
    if x.kind is None:
        raise Unreadable(f"the method {name!r} of a number of one kind or another")
    if name == "item" and not args and not x.is_python:
        kind = "bool" if x.rep == "bool" else "float" if x.rep in FLOATS else "int"
        if x.rep in PARTS:
            return Num(convert(r, x, "c128").text, "c128", ("complex",))
        return to_float(r, x) if kind == "float" else to_int(r, x) if kind == "int" else truth(x)
    if name in ("conjugate", "conj") and not args:
        return r.number(f"conj_{x.rep}({x.text})", x.rep, x.kinds) if x.rep in PARTS else x
    if name == "bit_length" and x.kind == "int":
        return r.integer(
            f"({x.text} ? 64 - __builtin_clzll({x.text} < 0 ? -(u64){x.text} : (u64){x.text}) : 0)",
            0,
            64,
        )
    handler = METHODS.get(name)
    if (
        handler is not None
        and not x.is_python
        and name in ("sum", "mean", "max", "min", "copy", "astype")
    ):
        if name == "astype":
            return scalar_type(r, dtype_of(args[0]).type, [x])
        return x
    raise Unreadable(f"the method {name!r} of a number")


def _size(r: Reader, x: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        return python(1)
    return size_of(r, x.dims) if axis is None else x.dims[_axis(axis, x.ndim)]


def _isscalar(r: Reader, x: Value) -> Value:
    return python(isinstance(x, Num))


def _allclose(name: str) -> Callable:
    def close(
        r: Reader, a: Value, b: Value, rtol: Value | None = None, atol: Value | None = None
    ) -> Value:
        x, y = as_operand(r, a), as_operand(r, b)
        rtol, atol = rtol or python(1e-5), atol or python(1e-8)
        y = y if isinstance(y, Num) else solid(r, y)
        x = x if isinstance(x, Num) else solid(r, x)
        bound = ufunc(r, "add", [atol, ufunc(r, "multiply", [rtol, ufunc(r, "absolute", [y])])])
        near = ufunc(r, "less_equal", [ufunc(r, "absolute", [ufunc(r, "subtract", [x, y])]), bound])
        near = ufunc(r, "logical_and", [near, ufunc(r, "isfinite", [y])])
        near = ufunc(r, "logical_or", [near, ufunc(r, "equal", [x, y])])
        if name == "isclose":
            return near
        if isinstance(near, Num):
            return Num(near.text, "bool", ("bool",), low=0, high=1)
        text = reduced(r, "and", near, tuple(range(near.ndim)), False, "bool")
        return Num(text, "bool", ("bool",), low=0, high=1)

    return close


def _array_equal(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != y.ndim:
        raise Unreadable("np.array_equal of these")
    for d, n in zip(x.dims, y.dims, strict=True):
        common_extent_of_product(r, d, n)
    near = ufunc(r, "equal", [x, y])
    text = reduced(r, "and", near, tuple(range(x.ndim)), False, "bool")
    return Num(text, "bool", ("bool",), low=0, high=1)


def _triangle(name: str) -> Callable:
    def take(r: Reader, x: Value, k: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or x.ndim != 2:
            raise Unreadable(f"np.{name} of this")
        by = k or python(0)
        if not isinstance(by, Num) or not by.is_int:
            raise Unreadable(f"np.{name} with k=")
        source = lazy(solid(r, x))
        sign = "<=" if name == "tril" else ">="
        zero = f"({x.rep}){{0, 0}}" if x.rep in PARTS else "0"
        at = source.at
        return Lazy(
            x.rep, x.dims, lambda i: f"({i[1]} - {i[0]} {sign} {by.text} ? {at(i)} : {zero})",
            source.reads,
        )  # fmt: skip

    return take


_SUM = _reduction("add")
_PROD = _reduction("mul")
_MIN = _reduction("minimum")
_MAX = _reduction("maximum")
_ANY = _reduction("or", True)
_ALL = _reduction("and", True)


def _logical(op: Callable) -> Callable:
    def reduce(
        r: Reader,
        x: Value,
        axis: Value | None = None,
        out: Value | None = None,
        keepdims: Value | None = None,
    ) -> Value:
        return op(r, x, axis, None, out, keepdims)

    return reduce


def _minmax(op: Callable) -> Callable:
    def reduce(
        r: Reader,
        x: Value,
        axis: Value | None = None,
        out: Value | None = None,
        keepdims: Value | None = None,
    ) -> Value:
        return op(r, x, axis, None, out, keepdims)

    return reduce


def _ptp(r: Reader, x: Value) -> Value:
    x = solid(r, as_operand(r, x))
    return ufunc(r, "subtract", [_MAX(r, x), _MIN(r, x)])


TABLE: dict[Any, Callable] = {
    np.zeros: _of_value(0), np.ones: _of_value(1), np.empty: _empty, np.full: _full,
    np.zeros_like: _like(0), np.ones_like: _like(1), np.empty_like: _like(None),
    np.full_like: _full_like, np.arange: _arange, np.linspace: _linspace, np.eye: _eye,
    np.identity: _eye, np.array: _array, np.asarray: _asarray, np.copy: _np_copy,
    np.ascontiguousarray: _ascontiguous, np.asanyarray: _asarray,
    np.transpose: lambda r, x, axes=None: transposed(r, x, axes), np.reshape: _reshape,
    np.ravel: _ravel, np.flip: _flip, np.expand_dims: _expand_dims,
    np.real: lambda r, x: part(r, x, "real"), np.imag: lambda r, x: part(r, x, "imag"),
    np.round: _round, np.around: _round,
    np.sum: _SUM, np.prod: _PROD, np.min: _minmax(_MIN), np.max: _minmax(_MAX),
    np.any: _logical(_ANY), np.all: _logical(_ALL), np.mean: _mean, np.var: _var, np.std: _std,
    np.argmin: _arg("minimum"), np.argmax: _arg("maximum"), np.ptp: _ptp,
    np.count_nonzero: _count_nonzero, np.cumsum: _cumulative("add"), np.cumprod: _cumulative("mul"),
    np.dot: _dot, np.outer: _outer, np.vdot: _dot, np.inner: _dot, np.where: _where, np.clip: _clip,
    np.concatenate: _concatenate, np.stack: _stack, np.hstack: _hstack, np.vstack: _vstack,
    np.column_stack: _column_stack, np.roll: _roll, np.diff: _diff, np.linalg.norm: _norm,
    np.cross: _cross, np.shape: _shape_of, np.size: _size,
    np.ndim: lambda r, x: python(getattr(x, "ndim", 0)),
    np.diag: _diag, np.trace: _trace, np.isscalar: _isscalar, np.allclose: _allclose("allclose"),
    np.isclose: _allclose("isclose"), np.array_equal: _array_equal, np.tril: _triangle("tril"),
    np.triu: _triangle("triu"),
    np.dtype: lambda r, x: Known(dtype_of(x)),
}  # fmt: skip


def _only_vectors(f: Callable, name: str) -> Callable:
    """np.inner and np.vdot are dot for vectors."""

    def apply(r: Reader, a: Value, b: Value) -> Value:
        x, y = as_operand(r, a), as_operand(r, b)
        if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1 or x.rep in PARTS:
            raise Unreadable(f"np.{name} of these")
        return f(r, x, y)

    return apply


TABLE[np.inner] = _only_vectors(_dot, "inner")
TABLE[np.vdot] = _only_vectors(_dot, "vdot")

METHODS: dict[str, Callable] = {
    "sum": _SUM, "prod": _PROD, "min": _minmax(_MIN), "max": _minmax(_MAX), "any": _logical(_ANY),
    "all": _logical(_ALL), "mean": _mean, "var": _var, "std": _std, "argmin": _arg("minimum"),
    "argmax": _arg("maximum"), "cumsum": _cumulative("add"), "cumprod": _cumulative("mul"),
    "dot": _dot, "copy": _copy, "astype": _astype, "reshape": _reshape, "ravel": _ravel,
    "flatten": _flatten, "transpose": lambda r, x, axes=None, *more: transposed(r, x, axes, *more),
    "fill": _fill, "round": _round, "item": _item,
    "clip": _clip, "conj": lambda r, x: ufunc(r, "conjugate", [x]),
    "conjugate": lambda r, x: ufunc(r, "conjugate", [x]), "trace": _trace,
}  # fmt: skip
