"""Methods of ufuncs: `np.add.at`, `np.minimum.reduce`, `np.maximum.accumulate`, `np.add.outer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..index import Gather, is_advanced, view
from ..nest import (
    cast,
    cast_text,
    common_extent_of_product,
    lazy,
    loops,
    materialized,
    named_numbers,
    stretched,
    undisturbed,
)
from ..numbers import convert, fits, rep_of, resolved
from ..read import Reader
from ..values import (
    INTEGERS,
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Slice,
    Tup,
    Unreadable,
    Value,
    python,
)
from .operands import array_of, as_operand, operand_kind, rep_or
from .reductions import cumulative, reduction
from .ufuncs import operation, ufunc

# Those that `at` calls element by element, which fail for no values.
_AT = frozenset(
    ("add", "subtract", "multiply", "divide", "minimum", "maximum", "fmin", "fmax", "bitwise_and",
     "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor")
)  # fmt: skip


def _at(r: Reader, f: np.ufunc, a: Value, where: Value, *values: Value) -> Value:
    """`np.add.at(a, where, values)`: one index after the other, all of which are checked before."""
    if f.__name__ not in _AT or len(values) != 1:
        raise Unreadable(f"np.{f.__name__}.at")
    if not isinstance(a, Arr) or a.readonly or not a.ndim:
        raise Unreadable(f"np.{f.__name__}.at of this")
    items = list(where.items) if isinstance(where, Tup) and where.made is tuple else [where]
    items = [array_of(r, x, is_index=True) if isinstance(x, (Tup, Lst)) else x for x in items]
    items = [materialized(r, x) if isinstance(x, Lazy) else x for x in items]
    value = as_operand(r, values[0])
    given = value if isinstance(value, Num) else materialized(r, value)
    if not is_advanced(items):
        raise Unreadable(f"np.{f.__name__}.at of such indices")
    items = [undisturbed(r, x, a) if isinstance(x, Arr) else x for x in items]
    given = undisturbed(r, given, a) if isinstance(given, Arr) else given
    dtypes = resolved(f.__name__, (a.kind, operand_kind(given)))
    own, other, made = map(rep_of, dtypes)
    if own != other or not np.can_cast(dtypes[-1], a.dtype, "same_kind"):
        raise Unreadable(f"np.{f.__name__}.at of such dtypes")
    if isinstance(given, Num) and "int" in given.kinds and other in INTEGERS:
        fits(r, given, other)
    op = operation(f.__name__, [own, other, made], [a, given])
    r.accesses.note(a, write=True)
    g = Gather(r, a, items)
    if isinstance(given, Num):
        text = named_numbers(r, convert(r, given, other)).text
        spread: Callable[[list[str]], str] = lambda index: text  # noqa: E731
    else:
        if given.ndim > len(g.dims):
            raise Unreadable("shapes do not fit")
        for d, n in zip(reversed(given.dims), reversed(g.dims), strict=False):
            if d.value != 1:
                common_extent_of_product(r, d, n)
        spread = stretched(cast(lazy(given), other), g.dims).at
    with loops(r, g.dims, vector="") as index:
        place = g.where(index)
        new = op(cast_text(a.rep, own, place), spread(index))
        r.line(f"{place} = {cast_text(made, a.rep, new)};")
    r.changed(a.roots, noted=True)
    return Known(None)


_REDUCED = {"add": "add", "multiply": "mul", "minimum": "minimum", "maximum": "maximum",
            "logical_or": "or", "logical_and": "and"}  # fmt: skip


def _reduce(
    r: Reader, f: np.ufunc, x: Value, axis: Value | None = None, dtype: Value | None = None,
    out: Value | None = None, keepdims: Value | None = None,
) -> Value:  # fmt: skip
    if f.__name__ not in _REDUCED:
        raise Unreadable(f"np.{f.__name__}.reduce")
    is_test = f.__name__.startswith("logical")
    if is_test and dtype is not None and dtype != Known(None) and rep_or(dtype) != "bool":
        raise Unreadable(f"np.{f.__name__}.reduce of such a dtype")
    made = reduction(_REDUCED[f.__name__], is_test)
    return made(r, x, python(0) if axis is None else axis, dtype, out, keepdims)


def _accumulate(r: Reader, f: np.ufunc, x: Value, axis: Value | None = None) -> Value:
    if f.__name__ not in ("add", "multiply", "minimum", "maximum"):
        raise Unreadable(f"np.{f.__name__}.accumulate")
    return cumulative(_REDUCED[f.__name__])(r, x, python(0) if axis is None else axis)


def _outer(r: Reader, f: np.ufunc, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if any(isinstance(v, Num) and v.is_python for v in (x, y)):
        raise Unreadable("an outer product with a number, of which NumPy makes an array")
    if isinstance(x, Num) or isinstance(y, Num):
        return ufunc(r, f.__name__, [x, y])
    column = x if isinstance(x, Arr) else materialized(r, x)
    whole = [Slice.of(None, None, None)] * column.ndim
    return ufunc(r, f.__name__, [view(r, column, [*whole, *[Known(None)] * y.ndim]), y])


_METHODS: dict[str, Callable] = {
    "at": _at, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer,
}  # fmt: skip


def method(r: Reader, f: np.ufunc, name: str, args: Sequence[Value], kwargs: dict) -> Value:
    """A call of a method of a ufunc."""
    if name not in _METHODS:
        raise Unreadable(f"np.{f.__name__}.{name}")
    return _METHODS[name](r, f, *args, **kwargs)
