"""What functions of NumPy's are given: operands, dtypes, axes, shapes, arrays made of lists."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..index import fill, store_text, view
from ..lists import array_in, as_vector, each, length
from ..nest import (
    FAR,
    alloc,
    cast,
    cast_text,
    common_extent_of_product,
    copy_of,
    extent,
    kept,
    lazy,
    load,
    loops,
    materialized,
    named_numbers,
    write,
)
from ..numbers import convert, fits, kind_of, rep_of, to_float, to_int, truth
from ..ranges import range_length
from ..read import Reader, int_constant
from ..records import new_list
from ..values import (
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
    Tup,
    Unreadable,
    Value,
    char,
    is_none,
    python,
)

WEAK = {"bool": True, "int": 0, "float": 0.0, "complex": 0j}  # what gives way to other dtypes


def operand_kind(x: Value) -> str:
    if isinstance(x, Num):
        if "wide" in x.kinds:
            raise Unreadable("an integer of 64 bits without a sign, in a function of NumPy's")
        if len(x.kinds) == 1:
            return x.kinds[0]
        if all(k in PYTHON for k in x.kinds):
            return {"f64": "float", "i64": "int", "c128": "complex", "bool": "bool"}[x.rep]
        raise Unreadable(f"a number of kind {' or '.join(x.kinds)} in a function of NumPy's")
    if x.ndim == 0:
        return KIND_OF_DTYPE[x.dtype]
    return x.kind


def as_operand(r: Reader, x: Value) -> Value:
    if isinstance(x, Num) and len(x.kinds) > 1 and not x.is_python:
        strong = [k for k in x.kinds if k not in PYTHON]
        if len(strong) == 1 and {REPRESENTATION[k] for k in x.kinds} == {x.rep}:
            # Of a Python number and NumPy's of the same representation: with float64 and int64
            # arrays the result is the same, see `agreed`.
            return Num(x.text, x.rep, (strong[0],), "", x.lin, x.low, x.high)
    if isinstance(x, (Num, Arr, Lazy)):
        return x
    if isinstance(x, (Tup, Lst, Range)):
        return array_of(r, x)
    raise Unreadable("an operand that is no array")


def array_like(r: Reader, node: ast.expr) -> Value:
    """An argument of a function of NumPy's. Of a list that is written there nothing but its items
    is seen: it is not made."""
    if not isinstance(node, ast.List) or not node.elts:
        return r.grammar.anything(r, node)
    if any(isinstance(x, ast.Starred) for x in node.elts):
        return r.grammar.anything(r, node)
    items = [kept(r, array_like(r, x)) for x in node.elts]
    return new_list(r, items) if any(map(char, items)) else Tup(tuple(items), list)


def agreed(operands: Sequence[Value], result: Callable[[tuple[str, ...]], Any]) -> None:
    """That all the kinds that operands may be of give one result."""
    kinds = [x.kinds if isinstance(x, Num) else (operand_kind(x),) for x in operands]
    if len({result(k) for k in itertools.product(*kinds)}) > 1:
        raise Unreadable("its type is one or another")


def as_array(r: Reader, x: Value, other: Value) -> Value:
    """An operand of an operator whose other one is `other`: a list beside an array is an array."""
    if isinstance(x, (Tup, Lst)) and isinstance(other, (Arr, Lazy)):
        return array_of(r, x)
    if isinstance(x, (Tup, Lst)) and isinstance(other, Num) and not other.is_python:
        return array_of(r, x)
    return x


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


def rep_or(x: Value | None, default: Any = np.float64) -> str:
    if is_none(x):
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
    if "wide" in x.kinds and (x.kind is None or rep != "u64"):
        raise Unreadable(f"np.{f.__name__} of an integer of 64 bits without a sign")
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


_LARGE = 1 << 40  # more elements than there are in an axis


def extents_of(r: Reader, x: Value) -> list[Num]:
    return [extent_of(r, d) for d in (x.items if isinstance(x, Tup) else (x,))]


def extent_of(r: Reader, d: Value) -> Num:
    """One extent, where NumPy takes no tuple."""
    if not isinstance(d, Num) or not d.is_int:
        raise Unreadable("a shape that is no integers")
    d = to_int(r, d)
    if d.low < 0 or d.high > _LARGE:
        if d.value is not None:
            raise Unreadable("a negative size, or a large one")
        r.leave_if(f"(u64){d.text} >= {_LARGE}UL", "a negative size, or a large one")
        if d.lin is not None:
            r.facts.add(d.lin)
            d = Num(d.text, "i64", ("int",), "", d.lin, max(d.low, 0), min(d.high, _LARGE))
    return d


def arange(r: Reader, *args: Value, dtype: Value | None = None) -> Value:
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
    rep = rep_or(dtype, np.int64)
    n = extent(r, n.text, n.lin)
    _check_range(r, start, step.value, n, rep)

    def at(index: list[str]) -> str:
        text = index[0] if step.value == 1 else f"({index[0]} * {step.text})"
        text = f"({start.text} + {text})" if start.value != 0 else text
        return cast_text("i64", rep, text)

    return Lazy(rep, (n,), at)


def _check_range(r: Reader, start: Num, step: int, n: Num, rep: str) -> None:
    """Leave where NumPy has no range of this dtype: its first two numbers have to be of it."""
    if rep == "bool":
        if n.high > 2:
            r.leave_if(f"{n.text} > 2", "a range of booleans")
        return
    if rep not in INTEGERS:
        return
    fits(r, start, rep, f"{n.text} > 0")
    if start.value is not None:
        second = python(start.value + step)
    else:
        text, low, high = f"({start.text} + {step})", start.low + step, start.high + step
        second = Num(text, "i64", ("int",), "", None, low, high)
    fits(r, second, rep, f"{n.text} > 1")


def array_of(r: Reader, x: Value, dtype: Value | None = None, is_index: bool = False) -> Arr:
    """`np.array(x)`: a new array. is_index: of which no more than its values is asked for."""
    typed = is_index or not (dtype is None or dtype == Known(None))
    if isinstance(x, Lst):
        if isinstance(x.of, (Arr, Lst)):
            made = _of_arrays(r, x)
            if isinstance(x.of, Lst) and not typed:
                _leave_if_none(r, made)
            return _as_dtype(r, made, dtype)
        if x.made in (str, bytes):
            raise Unreadable("an array of text")
        if isinstance(x.of, Num) and "wide" in x.of.kinds:
            raise Unreadable("an array of integers of 64 bits without a sign")
        v = as_vector(r, x)
        if not typed:
            _leave_if_none(r, v)
        if (v.rep == "i64" and x.kind == "int") or x.kind != "int":
            copied = materialized(r, lazy(v))
            _check_numbers(r, copied, dtype)
            return _as_dtype(r, copied, dtype)
    if isinstance(x, (Arr, Lazy)):
        values = lazy(x)
        if not is_none(dtype):
            values = cast(values, rep_or(dtype))
        return copy_of(r, x, values)
    if isinstance(x, Num):
        raise Unreadable("an array without axes")
    if isinstance(x, Range):
        made = materialized(r, arange(r, x.start, x.stop, x.step))
        if not typed:
            _leave_if_none(r, made)
        return _as_dtype(r, made, dtype)
    if not isinstance(x, Tup) or not x.items:
        raise Unreadable("np.array of this")
    return stacked(r, [as_item(r, y) for y in x.items], 0, dtype)


def _leave_if_none(r: Reader, x: Arr) -> None:
    """Leave where a list's items would be no float64 and there are none: NumPy's array is of these
    then."""
    if x.rep != "f64" and not x.dims[-1].value:
        r.leave_if(f"{x.dims[-1].text} == 0", "an array of no items")


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
    if is_none(dtype):
        return a
    return materialized(r, cast(lazy(a), rep_or(dtype))) if rep_or(dtype) != a.rep else a


def _check_numbers(r: Reader, a: Arr, dtype: Value | None) -> None:
    """Leave where a number of a list is not one of the integers of a dtype."""
    if not isinstance(dtype, Known) or dtype.value is None or a.ndim != 1:
        return
    rep = rep_or(dtype)
    if rep in INTEGERS and rep != a.rep:
        with each(r, a.dims[0]) as k:
            store_text(r, Num(load(a, [k.text]), a.rep, (a.dtype.name,)), rep)


_PYTHON_DTYPE = {"bool": np.dtype(bool), "int": np.dtype(np.int64), "float": np.dtype(float),
                 "complex": np.dtype(complex)}  # fmt: skip


def stacked(r: Reader, items: list[Value], axis: int, dtype: Value | None = None) -> Arr:
    """Arrays or numbers along a new axis."""
    if not is_none(dtype):
        target = dtype_of(dtype)
    else:
        found = []
        for x in items:
            if isinstance(x, Num):
                if x.kind is None or x.kind == "wide":
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
            parts.append(named_numbers(r, Num(store_text(r, x, rep), rep, x.kinds)).text)
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


def part(r: Reader, x: Value, name: str) -> Value:
    """`x.real`, `x.imag`: a view, of what has memory."""
    x = as_operand(r, x)
    if isinstance(x, Num):
        return _part_of_number(r, x, name)
    if isinstance(x, Arr) and x.rep in PARTS:
        rep = PARTS[x.rep]
        data = r.named(f"(({rep} *){x.data} + {int(name == 'imag')})", f"{rep} *", "p")
        steps = tuple([r.integer(f"(2 * {s.text})", -FAR, FAR) for s in x.strides])
        return Arr(
            rep, x.buf, data, x.dims, steps, x.roots, (f"{x.data}.{name}", ()), x.readonly,
            view=x.of_view,
        )  # fmt: skip
    if x.rep in PARTS:
        source = lazy(x)
        at = source.at
        reads = source.reads
        return Lazy(PARTS[x.rep], source.dims, lambda i: f"{at(i)}.{name[0]}", reads)
    if name == "real":
        return x
    raise Unreadable("the imaginary part of real numbers")


def _part_of_number(r: Reader, x: Num, name: str) -> Num:
    if x.kind is None or x.is_text:
        raise Unreadable(f"{name!r} of a number of one kind or another")
    if x.rep in PARTS:
        kind = "float" if x.is_python else {"c128": "float64", "c64": "float32"}[x.rep]
        return r.number(f"{x.text}.{name[0]}", PARTS[x.rep], (kind,))
    if x.kind == "bool":  # Python's are integers
        x = to_int(r, x)
    if name == "real":
        return x
    if x.is_python:
        return python(0.0 if x.kind == "float" else 0)
    return Num("0", x.rep, x.kinds)


def axis_of(x: Value, rank: int) -> int:
    if not isinstance(x, Num) or type(x.value) is not int or not -rank <= x.value < rank:
        raise Unreadable("an axis that is no constant")  # nor is a bool one
    return x.value % rank


def axes_of(x: Value | None, rank: int) -> tuple[int, ...]:
    if is_none(x):
        return tuple(range(rank))
    items = x.items if isinstance(x, Tup) else (x,)
    axes = {axis_of(a, rank) for a in items}
    if len(axes) < len(items):
        raise Unreadable("an axis that is given twice")
    return tuple(sorted(axes))


def keeps(x: Value | None) -> bool:
    if x is None:
        return False
    if isinstance(x, Num) and isinstance(x.value, bool):
        return x.value
    raise Unreadable("keepdims that is no constant")


_SUMMED_AS_OTHERS = ("bool", "i8", "i16", "i32", "u8", "u16", "u32")  # as 64-bit integers


def number_method(r: Reader, x: Num, name: str, args: list[Value]) -> Value:
    """A method of a number."""
    if x.kind is None:
        raise Unreadable(f"the method {name!r} of a number of one kind or another")
    if name == "item" and not args and not x.is_python:
        kind = "bool" if x.rep == "bool" else "float" if x.rep in FLOATS else "int"
        if x.rep in PARTS:
            return Num(convert(r, x, "c128").text, "c128", ("complex",))
        return to_float(r, x) if kind == "float" else to_int(r, x) if kind == "int" else truth(x)
    if name in ("conjugate", "conj") and not args and x.rep != "bool":
        return r.number(f"conj_{x.rep}({x.text})", x.rep, x.kinds) if x.rep in PARTS else x
    if name == "bit_length" and x.kind == "wide":
        return r.integer(f"({x.text} ? 64 - __builtin_clzll({x.text}) : 0)", 0, 64)
    if name == "bit_count" and not args and x.kind == "wide":
        return r.integer(f"__builtin_popcountll({x.text})", 0, 64)
    if name == "bit_length" and x.kind == "int":
        return r.integer(
            f"({x.text} ? 64 - __builtin_clzll({x.text} < 0 ? -(u64){x.text} : (u64){x.text}) : 0)",
            0,
            64,
        )
    if name == "bit_count" and not args and x.kind == "int":
        size = f"({x.text} < 0 ? -(u64){x.text} : (u64){x.text})"
        return r.integer(f"__builtin_popcountll{size}", 0, 64)
    same = {"max": True, "min": True, "copy": True, "sum": x.rep not in _SUMMED_AS_OTHERS,
            "mean": x.rep in FLOATS or x.rep in PARTS}  # fmt: skip
    if not x.is_python and same.get(name) and not args:
        return x
    if not x.is_python and name == "astype" and len(args) == 1:
        return scalar_type(r, dtype_of(args[0]).type, [x])
    raise Unreadable(f"the method {name!r} of a number")
