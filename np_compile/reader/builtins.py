"""Python's builtins, and functions of its `heapq`, `bisect` and `collections`."""

from __future__ import annotations

import bisect
import dataclasses
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import heaps, mathematics, members, named_items, text, wide
from .branches import both, chosen, condition_of, either
from .dicts import (
    as_list,
    counter,
    default_dict,
    gone_through,
    in_any_order,
    in_order,
    new_table,
    table_of,
)
from .functions.reductions import python_extreme
from .functions.ufuncs import ufunc
from .items import MANY, apart
from .lists import as_vector, length, list_of, ordered
from .mathematics import single
from .nest import kept, loops
from .numbers import convert, modulus, to_float, to_int, truth
from .objects import class_of, new_object, special
from .operators import operate
from .ranges import range_length
from .read import Reader
from .sorting import bisected, extreme, inserted, sorted_list
from .unions import absolute, binary, unary
from .values import (
    PARTS,
    PYTHON,
    PYTHON_TYPE,
    Arr,
    Binary,
    Items,
    Known,
    Lazy,
    Lst,
    Made,
    MadeRng,
    Num,
    Obj,
    Range,
    Slice,
    Tup,
    Unreadable,
    Value,
    is_none,
    python,
    shown,
)


def _abs(r: Reader, x: Value) -> Value:
    if isinstance(x, Num) and len(x.kinds) > 1 and not wide.is_wide(x):
        return absolute(r, x)
    if isinstance(x, (Arr, Lazy)) or (isinstance(x, Num) and not x.is_python):
        return ufunc(r, "absolute", [x])
    if isinstance(x, (Made, Obj)) and (made := special(r, x, "__abs__")) is not None:
        return made
    if not isinstance(x, Num):
        raise Unreadable(f"abs of {shown(x)}")
    if x.value is not None:
        return python(abs(x.value))
    if wide.is_wide(x):
        return wide.number(r, wide.unsigned(r, x))
    if x.rep in PARTS:
        return modulus(r, x, "float")
    if x.rep == "f64":
        return r.number(f"__builtin_fabs({x.text})", "f64", x.kinds)
    if x.low >= 0:
        return x
    negative = unary(r, "USub", x)
    made = r.integer(f"({x.text} < 0 ? {negative.text} : {x.text})", 0, max(x.high, -x.low))
    return made


def _extreme(name: str) -> Callable:
    op = "Lt" if name == "min" else "Gt"

    def find(r: Reader, *args: Value, **kwargs: Value) -> Value:
        if len(args) == 1 and kwargs.keys() <= {"key", "default"}:
            return _of_all(r, name, args[0], **kwargs)
        if kwargs:
            raise Unreadable(f"{name} with keywords")
        if not args:
            raise Unreadable(f"{name} of nothing")
        values = [kept(r, a) for a in args]
        best = values[0]
        for x in values[1:]:
            if isinstance(x, Tup) and isinstance(best, Tup):
                test = ordered(r, op, x, best)
            elif not isinstance(x, Num) or not isinstance(best, Num):
                raise Unreadable(f"{name} of what are no numbers")
            elif x.kind == best.kind == "int":
                best = least_int(r, name, best, x)
                continue
            else:
                test = truth(binary(r, op, x, best))
            held = best
            best = chosen(r, test, lambda x=x: x, lambda held=held: held)
        return best

    return find


def least_int(r: Reader, name: str, a: Num, b: Num) -> Num:
    if a.value is not None and b.value is not None:
        return python(min(a.value, b.value) if name == "min" else max(a.value, b.value))
    assert a.lin is not None
    assert b.lin is not None
    if r.facts.proves(b.lin - a.lin):
        return a if name == "min" else b
    if r.facts.proves(a.lin - b.lin):
        return b if name == "min" else a
    sign = "<" if name == "min" else ">"
    pick = min if name == "min" else max
    made = r.integer(
        f"({b.text} {sign} {a.text} ? {b.text} : {a.text})",
        pick(a.low, b.low), pick(a.high, b.high),
    )  # fmt: skip
    assert made.lin is not None
    for x in (a.lin, b.lin):
        r.facts.add(x - made.lin if name == "min" else made.lin - x)
    return made


def _of_all(
    r: Reader, name: str, x: Value, key: Value | None = None, default: Value | None = None
) -> Value:
    """min or max of one sequence."""
    key = None if is_none(key) else key
    x = in_any_order(r, x) if key is None else in_order(r, x)
    if default is not None:
        n = _len(r, x)
        some = Num(f"({n.text} > 0)", "bool", ("bool",), low=0, high=1)
        some = python(n.value > 0) if n.value is not None else some
        return chosen(r, some, lambda: _of_all(r, name, x, key), lambda: default)
    if key is not None:
        return extreme(r, name, list_of(r, x), key)
    if isinstance(x, Tup):
        return _extreme(name)(r, *x.items)
    if isinstance(x, Arr) and x.ndim == 1:
        return python_extreme(r, name, x)
    if isinstance(x, Lst) and x.kind is not None:
        return python_extreme(r, name, as_vector(r, x), x.kind)
    if isinstance(x, Lst):
        return extreme(r, name, x)
    raise Unreadable(f"{name} of this")


def _sum(r: Reader, x: Value, start: Value | None = None) -> Value:
    x = in_order(r, x)
    if isinstance(x, Tup):
        return _sum_of_items(r, x.items, start or python(0))
    if isinstance(x, Lst) and start is None:
        if x.of is None:
            return python(0)
        v = as_vector(r, x)
        n = v.dims[0]
        if x.kind == "int":
            total_name = r.fresh("s")
            r.line(f"i64 {total_name} = 0; int {total_name}_far = 0;")
            with loops(r, [n], vector="") as index:
                r.line(
                    f"{total_name}_far |= __builtin_add_overflow({total_name}, "
                    f"{v.data}[{index[0]}], &{total_name});"
                )
            r.leave_if(f"{total_name}_far", "an integer beyond 64 bits")
            return r.integer(total_name)
        if x.kind in ("float", "float64"):
            r.leave_if(f"{n.text} == 0", "the sum of nothing")
            total = FloatSum(r, "0", COMPENSATES and x.kind == "float")
            with loops(r, [n], vector="") as index:
                total.add(f"{v.data}[{index[0]}]")
            return r.number(total.text(), "f64", (x.kind,))
    raise Unreadable(f"sum of {shown(x)}")


def _sum_of_items(r: Reader, items: Sequence[Value], total: Value) -> Value:
    so_far: FloatSum | None = None  # while the total is one of Python's floats

    def result() -> Value:
        return total if so_far is None else r.number(so_far.text(), "f64", ("float",))

    for y in items:
        kinds = y.kinds if isinstance(y, Num) else ()
        if COMPENSATES and so_far is None and isinstance(total, Num) and "float" in total.kinds:
            if total.kinds != ("float",):
                raise Unreadable("a sum of what may be a float")
            so_far = FloatSum(r, convert(r, total, "f64", exact=True).text)
        if so_far is None:
            total = operate(r, "Add", total, y)
        elif isinstance(y, Num) and kinds and set(kinds) <= {"float", "int", "bool"}:
            if len(kinds) > 1:
                raise Unreadable("a sum of what may be a float")
            so_far.add(convert(r, y, "f64", exact=True).text, exactly=kinds == ("float",))
        else:
            total, so_far = operate(r, "Add", result(), y), None
    return result()


COMPENSATES = sys.version_info >= (3, 12)  # Python does, where it adds floats to a float


class FloatSum:
    """The sum of floats that `sum` makes: what each addition loses is added at the end, after
    Neumaier, where Python does so."""

    def __init__(self, r: Reader, start: str, compensated: bool = True) -> None:
        self.r, self.compensated = r, compensated
        self.name = r.fresh("s")
        self.lost = f"{self.name}_lost"
        r.line(f"f64 {self.name} = {start};")
        if compensated:
            r.line(f"f64 {self.lost} = 0;")

    def add(self, x: str, exactly: bool = True) -> None:
        """exactly: with what is lost."""
        s, lost = self.name, self.lost
        if not (self.compensated and exactly):
            self.r.line(f"{s} += {x};")
            return
        item, t = self.r.fresh("x"), self.r.fresh("t")
        larger = f"__builtin_fabs({s}) >= __builtin_fabs({item})"
        self.r.line(f"f64 {item} = {x}, {t} = {s} + {item};")
        self.r.line(f"{lost} += {larger} ? ({s} - {t}) + {item} : ({item} - {t}) + {s};")
        self.r.line(f"{s} = {t};")

    def text(self) -> str:
        if self.compensated:  # -0.0 stays, and infinity
            counts = f"{self.lost} != 0 && __builtin_isfinite({self.lost})"
            self.r.line(f"if ({counts}) {self.name} += {self.lost};")
        return self.name


def _any_all(name: str) -> Callable:
    def test(r: Reader, x: Value) -> Value:
        if isinstance(x, Lst):
            if x.of is None:
                return python(name == "all")
            if x.kind is None:
                raise Unreadable(f"{name} of a list of such items")
            v = as_vector(r, x)  # not of characters, of which each is true
            found = r.fresh("c")
            r.line(f"u8 {found} = {int(name == 'all')};")
            sign = "|" if name == "any" else "&"
            with loops(r, v.dims, vector="") as index:
                r.line(f"{found} {sign}= ({v.data}[{index[0]}] != 0);")
            return Num(found, "bool", ("bool",), low=0, high=1)
        if not isinstance(x, Tup):
            raise Unreadable(f"{name} of this")
        join = either if name == "any" else both

        def rest(k: int) -> Num:
            if k == len(x.items):
                return python(name == "all")
            return join(r, condition_of(r, x.items[k]), lambda: rest(k + 1))

        return rest(0)

    return test


def _len(r: Reader, x: Value) -> Value:
    if isinstance(x, Tup):
        return python(len(x.items))
    if named_items.has_named_items(x):
        return python(len(named_items.keys(r, x)))
    if isinstance(x, (Made, Obj)) and (made := special(r, x, "__len__")) is not None:
        return made
    if isinstance(x, Items) and not isinstance(x, (Made, MadeRng)):
        return length(r, x)
    if isinstance(x, (Arr, Lazy)) and x.ndim:
        return x.dims[0]
    if isinstance(x, Range):
        return range_length(r, x)
    if isinstance(x, Known) and isinstance(x.value, (str, tuple, list, dict)):
        return python(len(x.value))
    raise Unreadable(f"len of {shown(x)}")


def _range(r: Reader, *args: Value) -> Value:
    given: list[Num] = []
    for a in args:
        if not isinstance(a, Num) or not a.is_int:
            raise Unreadable("a range of what are no integers")
        given.append(to_int(r, a))
    if len(given) == 1:
        return Range(python(0), given[0], python(1))
    if len(given) == 2:
        return Range(given[0], given[1], python(1))
    start, stop, step = given
    return Range(start, stop, step)


def _int(r: Reader, x: Value = None) -> Value:
    x = single(members.as_integer(r, x))
    if x.kind == "char":
        return text.digit(r, x)
    if "wide" in x.kinds and set(x.kinds) <= {"int", "wide"}:
        return x
    return to_int(r, x)


def _float(r: Reader, x: Value) -> Value:
    if isinstance(x, Known) and isinstance(x.value, str):
        return python(float(x.value))
    x = single(x)
    return to_float(r, wide.as_float(r, x) if wide.is_wide(x) else x)


def _bool(r: Reader, x: Value) -> Value:
    return condition_of(r, x)


def _complex(r: Reader, x: Value, y: Value | None = None) -> Value:
    a = convert(r, single(x), "c128", exact=True)
    if y is None:
        return r.number(a.text, "c128", ("complex",))
    re, im = convert(r, single(x), "f64", exact=True), convert(r, single(y), "f64", exact=True)
    return r.number(f"(c128){{{re.text}, {im.text}}}", "c128", ("complex",))


def _divmod(r: Reader, a: Value, b: Value) -> Value:
    x, y = single(a), single(b)
    integers = x.is_int and y.is_int and "bool" not in (x.rep, y.rep)
    if not (x.is_python and y.is_python) and not integers:
        raise Unreadable("divmod of NumPy's numbers")
    return Tup((binary(r, "FloorDiv", x, y), binary(r, "Mod", x, y)))


def _bin(r: Reader, x: Value) -> Value:
    if not isinstance(x, Num) or x.kind not in ("int", "wide"):
        raise Unreadable("bin of this")
    return Binary(x)


def _pow(r: Reader, a: Value, b: Value) -> Value:
    return operate(r, "Pow", a, b)


def _tuple(r: Reader, x: Value | None = None) -> Value:
    if x is None or isinstance(x, Tup):
        return Tup(x.items if x is not None else ())
    if isinstance(x, Arr) and x.ndim and r.entry.at(x.dims[0].lin) <= MANY:
        return Tup(tuple([kept(r, y) for y in apart(r, x)]))
    return _list(tuple)(r, x)


def _slice(r: Reader, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        raise Unreadable("a slice of so many")
    given = (None, *bounds) if len(bounds) == 1 else bounds
    return Slice.of(*given, *[None] * (3 - len(given)))


def _deque(r: Reader, x: Value | None = None, maxlen: Value | None = None) -> Value:
    made = _list(deque)(r, x)
    if maxlen is None or maxlen == Known(None):
        return made
    n = maxlen.value if isinstance(maxlen, Num) and maxlen.kind == "int" else None
    if n is None or n < 1 or (x is not None and x != Tup(())):
        raise Unreadable("a deque with such a maxlen")
    return replace(made, maxlen=n)


def _list(made: type) -> Callable:
    def make(r: Reader, x: Value | None = None) -> Value:
        x = text.in_parts(r, Tup(()) if x is None else x)
        view = gone_through(x)
        if view is None:
            return list_of(r, x, made)
        found = as_list(r, view)
        return found if made is list else list_of(r, found, made)

    return make


def _table(made: type) -> Callable:
    def make(r: Reader, x: Value | None = None) -> Value:
        if made is dict and named_items.has_named_items(x):
            values = named_items.method(r, x, "values", []).items
            return new_table(r, dict, named_items.keys(r, x), values)
        return table_of(r, made, Tup(()) if x is None else text.in_parts(r, x))

    return make


def _counter(r: Reader, x: Value | None = None) -> Value:
    return counter(r, None if x is None else text.in_parts(r, x))


def _sorted(
    r: Reader, x: Value, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    x = in_any_order(r, x) if key is None else in_order(r, x)
    return sorted_list(r, x, key=key, reverse=reverse)


def _isinstance(r: Reader, x: Value, kinds: Value) -> Value:
    wanted = [k.value for k in (kinds.items if isinstance(kinds, Tup) else (kinds,))]
    mine = type_of(x)
    return python(any(issubclass(mine, k) for k in wanted))


def type_of(x: Value) -> type:
    """The Python type of a value."""
    if isinstance(x, Num) and x.kind is not None:
        if x.kind in PYTHON:
            return PYTHON_TYPE[x.kind]
        return np.dtype(x.kind.rstrip("_")).type
    if isinstance(x, Lazy) and x.ndim == 0:  # what NumPy computes without axes is a scalar
        return x.dtype.type
    if isinstance(x, (Arr, Lazy)):
        return np.ndarray
    if isinstance(x, Tup):
        return x.made
    if isinstance(x, Known):
        return type(x.itself)
    if isinstance(x, Items):
        return x.made
    if isinstance(x, Obj):
        return x.type
    raise Unreadable("the type of this")


def _replaced(r: Reader, x: Value, /, **changes: Value) -> Value:
    """`dataclasses.replace(x, ...)`."""
    kind = class_of(x)
    if kind is None or not dataclasses.is_dataclass(kind):
        raise Unreadable("dataclasses.replace of this")
    fields = dataclasses.fields(kind)
    if any(f.name in changes and not f.init for f in fields):
        raise Unreadable("dataclasses.replace of a field that is no parameter")
    same = [f.name for f in fields if f.init and f.name not in changes]
    return new_object(r, kind, [], {k: r.grammar.attribute(r, x, k) for k in same} | changes)


TABLE: dict[Any, Callable] = {
    abs: _abs, min: _extreme("min"), max: _extreme("max"), sum: _sum, len: _len, range: _range,
    int: _int, float: _float, bool: _bool, complex: _complex, divmod: _divmod,
    round: mathematics.rounded, bin: _bin, pow: _pow,
    tuple: _tuple, slice: _slice, list: _list(list), deque: _deque,
    isinstance: _isinstance, type: lambda r, x: Known(type_of(x)),
    any: _any_all("any"), all: _any_all("all"),
    sorted: _sorted, dict: _table(dict), set: _table(set), defaultdict: default_dict,
    bisect.bisect_left: bisected("left"), bisect.bisect_right: bisected("right"),
    bisect.bisect: bisected("right"), bisect.insort: inserted("right"),
    bisect.insort_right: inserted("right"), bisect.insort_left: inserted("left"),
    dataclasses.replace: _replaced, Counter: _counter, ord: text.ord_, chr: text.chr_,
    **heaps.TABLE, **mathematics.TABLE,
}  # fmt: skip
