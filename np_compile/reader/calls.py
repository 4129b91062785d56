"""Calls: of builtins and `math`, of the user's functions and methods, of lists."""

from __future__ import annotations

import ast
import bisect
import heapq
import inspect
import sys
import types
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from np_compile import disallowed

from . import functions, iterators, mathematics, outside, recursion, small, source, text, wide
from .branches import both, chosen, condition_of, either
from .dicts import (
    as_list,
    counter,
    default_dict,
    gone_through,
    in_any_order,
    in_order,
    table_method,
    table_of,
)
from .functions.operands import array_like, dtype_of, number_method, scalar_type
from .functions.reductions import python_extreme
from .functions.ufunc_methods import method as ufunc_method
from .functions.ufuncs import call_ufunc, ufunc
from .generators import is_generator
from .items import apart
from .lists import (
    as_vector,
    growing,
    heap_pop,
    heap_push,
    heapify,
    length,
    list_method,
    list_of,
    ordered,
    range_length,
)
from .mathematics import single
from .nest import kept, loops
from .numbers import convert, modulus, to_float, to_int, truth
from .objects import new_object, no_nan_in, of_class, special
from .operators import operate
from .read import LIBRARY, Reader, certain, dotted
from .sorting import bisected, extreme, inserted, sort, sorted_list
from .unions import absolute, binary, unary
from .values import (
    PARTS,
    PYTHON,
    PYTHON_TYPE,
    Arr,
    Binary,
    Bound,
    Items,
    Known,
    Lazy,
    Lst,
    Made,
    NotYet,
    Num,
    Obj,
    Range,
    Rng,
    Slice,
    Table,
    Tup,
    Unreadable,
    Value,
    python,
)

_DEPTH = 12  # functions inside one another that are read in place


def call(r: Reader, node: ast.Call) -> Value:
    """The value of a call."""
    alone, r.alone = node is r.alone, None
    function = r.grammar.expression(r, node.func)
    # The arguments of a function that is read in place are names there.
    read = r.grammar.operand if _is_read_in_place(function) else r.grammar.anything
    f = function.value if isinstance(function, Known) and _hashable(function.value) else None
    if len(node.args) == 1 and not node.keywords:
        (given,) = node.args
        if f in (any, all) and isinstance(given, ast.GeneratorExp) and len(given.generators) == 1:
            return r.grammar.comprehension(r, given, f.__name__)
        if f is sum and isinstance(given, (ast.GeneratorExp, ast.ListComp)):
            saved = r.save()
            try:
                return called(r, function, [comprehension(r, given)], {})
            except Unreadable:  # arrays are added as they come
                r.restore(saved)
                return r.grammar.comprehension(r, given, "sum")
    args: list[Value] = []
    for a in node.args:
        if isinstance(a, ast.Call) and f in TAKES_ALL:
            if _of_generator(r, a):
                args.append(r.grammar.comprehension(r, _listed(r, a)))
                continue
            mapped = _mapped(r, a)
            if mapped is not None:
                args.append(comprehension(r, mapped))
                continue
        if isinstance(a, ast.Starred):
            args += apart(r, r.grammar.expression(r, a.value))
        elif isinstance(a, ast.GeneratorExp):
            if f not in TAKES_ALL and f not in (any, all):
                raise Unreadable("a generator that is not used up at once")
            args.append(comprehension(r, a))
        else:
            args.append(array_like(r, a) if _is_numpy(f) else read(r, a))
    kwargs: dict[str, Value] = {}
    for k in node.keywords:
        if k.arg is None:
            raise Unreadable("** in a call")
        kwargs[k.arg] = read(r, k.value)
    r.hoisted = alone
    return called(r, function, args, kwargs)


# What takes everything of an iterator, in its order, before anything else happens; `any` and `all`
# may stop before.
TAKES_ALL = frozenset((sum, min, max, list, tuple, sorted, set, frozenset, dict, deque))


def _of_generator(r: Reader, node: ast.Call) -> bool:
    """Whether a call is of a generator function."""
    if not isinstance(node.func, ast.Name):
        return False
    saved = r.save()
    try:
        f = r.grammar.expression(r, node.func)
    except Unreadable:
        f = None
    r.restore(saved)
    if not isinstance(f, Known):
        return False
    return is_generator(f.value) or iterators.generator_of(f.value, node) is not None


def _listed(r: Reader, node: ast.Call) -> ast.ListComp:
    """A list of what a generator gives."""
    key = id(node), "listed"
    if key not in r.entry.normalized:
        name = f"__given{node.lineno}_{node.col_offset}"
        part = ast.comprehension(ast.Name(name, ast.Store()), node, [], 0)
        made = ast.copy_location(ast.ListComp(ast.Name(name, ast.Load()), [part]), node)
        r.entry.normalized[key] = ast.fix_missing_locations(made), node
    return r.entry.normalized[key][0]


def _mapped(r: Reader, node: ast.Call) -> ast.ListComp | None:
    """A list of what `map(f, x)` gives; None of another call."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    known = {*r.env, *r.frame.scope, *r.frame.function.__globals__}
    if name != "map" or name in known or len(node.args) != 2 or not dotted(node.args[0]):
        return None
    key = id(node), "mapped"
    if key not in r.entry.normalized:
        f, values = node.args
        item = f"__item{node.lineno}_{node.col_offset}"
        part = ast.comprehension(ast.Name(item, ast.Store()), values, [], 0)
        made = ast.ListComp(ast.Call(f, [ast.Name(item, ast.Load())], []), [part])
        r.entry.normalized[key] = ast.fix_missing_locations(ast.copy_location(made, node)), node
    return r.entry.normalized[key][0]


def called(r: Reader, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    f = function.value if isinstance(function, Known) else None
    if not _takes_none(function):
        args = [certain(r, a) for a in args]
        kwargs = {k: certain(r, v) for k, v in kwargs.items()}
    if isinstance(function, Bound):
        if isinstance(function.owner, Known) and isinstance(function.owner.value, type):
            return inlined(r, function.more["f"], [function.owner, *args], kwargs)
        return _method(r, function, args, kwargs)
    if isinstance(function, (Made, Obj)) and not kwargs:
        made = special(r, function, "__call__", *args)
        if made is not None:
            return made
    if not isinstance(function, Known):
        raise Unreadable("a call of what is no function")
    if f is super and not args and not kwargs:
        return _super(r)
    if disallowed.is_function(f):
        raise Unreadable(disallowed.why(str(getattr(f, "__qualname__", f))))
    if isinstance(f, np.ufunc):
        return _or_outside(r, f, lambda: call_ufunc(r, f, list(args), dict(kwargs)), args, kwargs)
    found = _BUILTINS.get(f) if _hashable(f) else None
    if found is not None:
        return _applied(r, found, args, kwargs)
    if isinstance(f, types.FunctionType) and f.__module__ != "numpy" and not _is_numpy(f):
        return inlined(r, f, args, kwargs)
    if isinstance(f, types.MethodType):
        raise Unreadable("a bound method that is found as a value")
    if isinstance(f, type) and f not in outside.PURE:
        if issubclass(f, tuple) and hasattr(f, "_fields"):
            return _named_tuple(r, f, args, kwargs)
        if issubclass(f, np.generic):
            return scalar_type(r, f, args)
        if f in (np.finfo, np.iinfo):
            return Known(f(dtype_of(args[0])))
        return new_object(r, f, args, kwargs)
    handler = (functions.TABLE.get(f) or small.TABLE.get(f)) if _hashable(f) else None
    if handler is not None:
        r.one_by_one(LIBRARY if f in small.TABLE else 0)
        return _or_outside(r, f, lambda: handler(r, *args, **kwargs), args, kwargs)
    if _hashable(f):
        return outside.call(r, f, args, kwargs)
    raise Unreadable(f"a call of {getattr(f, '__qualname__', f)!s}")


def _is_read_in_place(function: Value) -> bool:
    """Whether a call asks for no element of its arguments by itself."""
    if isinstance(function, Bound):
        return isinstance(function.owner, (Obj, Made))
    f = function.value if isinstance(function, Known) else None
    return f is len or (isinstance(f, types.FunctionType) and not _is_numpy(f))


def _takes_none(function: Value) -> bool:
    """Whether a function may be given what is None or not."""
    if isinstance(function, Bound):
        return isinstance(function.owner, (Obj, Items))
    f = function.value if isinstance(function, Known) else None
    if isinstance(f, type):
        return f.__module__ != "builtins" and not _is_numpy(f)
    return isinstance(f, types.FunctionType) and not _is_numpy(f)


def _applied(r: Reader, handler: Callable, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What a handler makes of a call, if it knows all of its arguments."""
    try:
        inspect.signature(handler).bind(r, *args, **kwargs)
    except TypeError as e:
        raise Unreadable(f"a call with other arguments: {e}") from None
    return handler(r, *args, **kwargs)


def _or_outside(r: Reader, f: Any, read: Callable[[], Value], args: list, kwargs: dict) -> Value:
    """What `read` makes of a call; where it cannot, the call is made in Python."""
    saved = r.save()
    try:
        return read()
    except (Unreadable, TypeError) as e:
        if not outside.is_known(f):
            raise Unreadable(str(e)) from None
        if "out" in kwargs or (isinstance(f, np.ufunc) and len(args) > f.nin):
            raise Unreadable(str(e)) from None
        r.restore(saved)
        return outside.call(r, f, args, kwargs)


def _drawn(r: Reader, g: Rng, name: str, args: list, kwargs: dict) -> Value:
    """Random numbers, which C draws itself, or has a generator draw in Python."""
    from .random import METHODS

    if not hasattr(np.random.RandomState if g.legacy else np.random.Generator, name):
        raise Unreadable(f"the method {name!r} of such a generator")
    saved = r.save()
    try:
        if name in METHODS:
            return _applied(r, METHODS[name], [g, *args], kwargs)
    except (Unreadable, TypeError):
        r.restore(saved)
    return outside.drawn(r, g, name, args, kwargs)


def _hashable(f: Any) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True


def _is_numpy(f: Any) -> bool:
    return (getattr(f, "__module__", None) or "").split(".")[0] == "numpy"


# The user's functions


def inlined(r: Reader, f: types.FunctionType, args: list[Value], kwargs: dict) -> Value:
    """A call of a Python function, which is read in place."""
    node = source.tree(f)
    recurs = recursion.is_known(r, node)
    if len(r.frames) > _DEPTH:
        raise Unreadable(f"{f.__name__} is called by functions that are called by others")
    if source.outer_names(node) and not r.is_local(Known(f)):
        raise Unreadable(f"{f.__name__} binds names of another function")
    if not recurs and any(x.function is f for x in r.frames):
        recursion.seen(r, node)
    env = bound_arguments(r, f, node, args, kwargs)
    whole = f.__code__ in r.effectful
    alone, r.hoisted = r.hoisted, False
    if whole and r.frame.whole and not alone:
        raise Unreadable(f"{f.__name__} changes what it is given, within an expression")
    try:
        if recurs:
            return recursion.call(r, f, node, env, whole)
        return r.grammar.function(r, f, node, env, whole or r.finds)
    except NotYet:
        if not whole:
            r.puzzling.add(f.__code__)
        raise


def bound_arguments(
    r: Reader, f: types.FunctionType, node: Any, args: list[Value], kwargs: dict
) -> dict[str, Value]:
    """The parameters' values."""
    code = f.__code__
    names = code.co_varnames[: code.co_argcount]
    if code.co_flags & 0x0C and (node.args.vararg is None or kwargs or code.co_kwonlyargcount):
        raise Unreadable("** among parameters")
    env: dict[str, Value] = {}
    if node.args.vararg is not None:
        env[node.args.vararg.arg] = Tup(tuple(kept(r, a) for a in args[len(names) :]))
        args = args[: len(names)]
    if len(args) > len(names):
        raise Unreadable("too many arguments")
    for name, a in zip(names, args, strict=False):
        env[name] = kept(r, a)
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    for name, a in kwargs.items():
        if name in env or name not in (*names, *only):
            raise Unreadable(f"the argument {name!r}")
        env[name] = kept(r, a)
    r.entry.watch(("function", f, "__defaults__"), f.__defaults__)
    r.entry.watch(("function", f, "__kwdefaults__"), f.__kwdefaults__)
    defaults = dict(zip(reversed(names), reversed(f.__defaults__ or ()), strict=False))
    defaults |= f.__kwdefaults__ or {}
    for name in (*names, *only):
        if name not in env:
            if name not in defaults:
                raise Unreadable(f"the argument {name!r} is missing")
            env[name] = r.entry.constant(r, defaults[name])
    return env


def _named_tuple(r: Reader, f: Any, args: list[Value], kwargs: dict) -> Value:
    if not f.__new__.__module__.startswith("namedtuple_"):
        raise Unreadable(f"{f.__qualname__} has a __new__ of its own")
    if len(args) + len(kwargs) != len(f._fields):
        raise Unreadable("a named tuple's default")
    items = [kept(r, a) for a in args]
    for name in f._fields[len(args) :]:
        if name not in kwargs:
            raise Unreadable(f"the argument {name!r} is missing")
        items.append(kept(r, kwargs[name]))
    return Tup(tuple(items), f)


# Methods


def _method(r: Reader, bound: Bound, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner, name = bound.owner, bound.name
    if isinstance(owner, (Obj, Made)):
        kind = owner.made if isinstance(owner, Made) else owner.type
        f = source.written(bound.more.get("f") or getattr(kind, name, None))
        if f is object.__init__ and not args and not kwargs:
            return Known(None)
        if isinstance(f, types.FunctionType):
            return inlined(r, f, [owner, *args], kwargs)
        raise Unreadable(f"the method {name!r}")
    if isinstance(owner, (Arr, Lazy)):
        if f"ndarray.{name}" in disallowed.rows:
            raise Unreadable(disallowed.why(f"ndarray.{name}"))
        handler = functions.METHODS.get(name)
        if handler is None:
            if name not in outside.METHODS:
                raise Unreadable(f"the method {name!r} of an array")
            return outside.call(r, outside.Method(name), [owner, *args], kwargs)
        if name not in outside.METHODS:
            return _applied(r, handler, [owner, *args], kwargs)
        read = lambda: handler(r, owner, *args, **kwargs)  # noqa: E731
        return _or_outside(r, outside.Method(name), read, [owner, *args], kwargs)
    if isinstance(owner, Tup) and owner.made is list:
        growing(r, owner)
    if owner == Known("") and name == "join" and len(args) == 1 and not kwargs:
        return text.join_texts(r, "", args[0])
    if text.is_text(owner) and not kwargs:
        return text.text_method(r, text.in_parts(r, owner), name, args)
    if isinstance(owner, Lst) and owner.made is list and name == "sort":
        return _applied(r, sort, [owner, *args], kwargs)
    if isinstance(owner, Lst):
        return list_method(r, owner, name, args, kwargs)
    if isinstance(owner, Table):
        return _applied(r, table_method(r, owner, name), [owner, *args], kwargs)
    if isinstance(owner, Rng):
        return _drawn(r, owner, name, args, kwargs)
    if isinstance(owner, Num):
        if kwargs:
            raise Unreadable(f"keywords of the method {name!r} of a number")
        if owner.kind == "char":
            return text.char_method(r, owner, name, args)
        return number_method(r, owner, name, args)
    if isinstance(owner, Known) and isinstance(owner.value, np.ufunc):
        if disallowed.is_function(owner.value):
            raise Unreadable(disallowed.why(owner.value.__name__))
        of_ufunc = lambda: ufunc_method(r, owner.value, name, args, kwargs)  # noqa: E731
        return _or_outside(r, getattr(owner.value, name), of_ufunc, args, kwargs)
    if isinstance(owner, Binary) and name == "count" and args == [Known("1")] and not kwargs:
        return number_method(r, owner.of, "bit_count", [])
    raise Unreadable(f"the method {name!r}")


@dataclass(frozen=True)
class Super:
    """`super()` in a method. after: the class behind which methods are looked for."""

    owner: Value
    after: type

    def method(self, r: Reader, name: str) -> Value:
        """`super().name`."""
        kind = type_of(self.owner)
        order = kind.__mro__[kind.__mro__.index(self.after) + 1 :]
        f = next((vars(c)[name] for c in order if name in vars(c)), None)
        if f is not object.__init__ and not isinstance(source.written(f), types.FunctionType):
            raise Unreadable(f"super().{name}")
        c = next(c for c in order if name in vars(c))
        r.entry.watch(("function", c, name), f)
        return Bound(self.owner, name, {"f": f})


def _super(r: Reader) -> Value:
    code = r.frame.function.__code__
    if "__class__" not in code.co_freevars or not code.co_argcount:
        raise Unreadable("super() outside of a method")
    cell = r.frame.function.__closure__[code.co_freevars.index("__class__")]
    owner = r.env.get(code.co_varnames[0])
    if not isinstance(owner, (Obj, Made)) or not issubclass(type_of(owner), cell.cell_contents):
        raise Unreadable("super() of this")
    return Super(owner, cell.cell_contents)


def attribute_of_known(r: Reader, owner: Any, name: str) -> Value:
    """An attribute of an object that is the same in each call."""
    if isinstance(owner, (np.finfo, np.iinfo)):
        return r.entry.constant(r, getattr(owner, name))
    if isinstance(owner, type) and issubclass(owner, np.generic):
        raise Unreadable(f"{owner.__name__}.{name}")
    if isinstance(owner, np.dtype):
        return r.entry.constant(r, getattr(owner, name))
    if isinstance(owner, np.ufunc):
        return Bound(Known(owner), name)
    if type(owner) in (str, bytes):
        return Bound(Known(owner), name)
    if isinstance(owner, type) and owner.__module__ != "builtins" and not _is_numpy(owner):
        return of_class(r, owner, name)
    raise Unreadable(f"the attribute {name!r}")


# Lists of numbers


def comprehension(r: Reader, node: Any) -> Value:
    """`[f(x) for x in xs if c]` of numbers: a list."""
    return r.grammar.comprehension(r, node)


# Builtins


def _abs(r: Reader, x: Value) -> Value:
    if isinstance(x, Num) and len(x.kinds) > 1 and not wide.is_wide(x):
        return absolute(r, x)
    if isinstance(x, (Arr, Lazy)) or (isinstance(x, Num) and not x.is_python):
        return ufunc(r, "absolute", [x])
    if isinstance(x, (Made, Obj)) and (made := special(r, x, "__abs__")) is not None:
        return made
    if not isinstance(x, Num):
        raise Unreadable("abs of this")
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
    key = None if isinstance(key, Known) and key.value is None else key
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
    items = x.items if isinstance(x, Tup) else None
    if items is not None:
        total: Value = start or python(0)
        for y in items:
            total = binary(r, "Add", total, y)
        return total
    if isinstance(x, Lst) and start is None:
        if x.of is None:
            return python(0)
        if x.kind == "float" and sys.version_info >= (3, 12):
            raise Unreadable("sum of floats")
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
            name = r.fresh("s")
            r.line(f"f64 {name} = 0;")
            with loops(r, [n], vector="") as index:
                r.line(f"{name} += {v.data}[{index[0]}];")
            return r.number(name, "f64", (x.kind,))
    raise Unreadable("sum of this")


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
    if isinstance(x, (Made, Obj)) and (made := special(r, x, "__len__")) is not None:
        return made
    if isinstance(x, Items) and not isinstance(x, Made):
        return length(r, x)
    if isinstance(x, (Arr, Lazy)) and x.ndim:
        return x.dims[0]
    if isinstance(x, Range):
        return range_length(r, x)
    if isinstance(x, Known) and isinstance(x.value, (str, tuple, list, dict)):
        return python(len(x.value))
    raise Unreadable("len of this")


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
    x = single(x)
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
    if not (x.is_python and y.is_python):
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
    return Tup(tuple([kept(r, y) for y in apart(r, x)]))


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
        return table_of(r, made, Tup(()) if x is None else text.in_parts(r, x))

    return make


def _counter(r: Reader, x: Value | None = None) -> Value:
    return counter(r, None if x is None else text.in_parts(r, x))


def _sorted(r: Reader, x: Value, **words: Value) -> Value:
    x = in_any_order(r, x) if "key" not in words else in_order(r, x)
    return _applied(r, sorted_list, [x], words)


def _heap_push(r: Reader, a: Value, x: Value) -> Value:
    if isinstance(x, Made):
        no_nan_in(r, x)
    return heap_push(r, a, x)


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
    if isinstance(x, (Arr, Lazy)):
        return np.ndarray
    if isinstance(x, Tup):
        return x.made
    if isinstance(x, Known):
        return type(x.value)
    if isinstance(x, Items):
        return x.made
    if isinstance(x, Obj):
        return x.type
    raise Unreadable("the type of this")


_BUILTINS: dict[Any, Callable] = {
    abs: _abs, min: _extreme("min"), max: _extreme("max"), sum: _sum, len: _len, range: _range,
    int: _int, float: _float, bool: _bool, complex: _complex, divmod: _divmod,
    round: mathematics.rounded, bin: _bin, pow: _pow,
    tuple: _tuple, slice: _slice, list: _list(list), deque: _deque,
    heapq.heappush: _heap_push, heapq.heappop: heap_pop, heapq.heapify: heapify,
    isinstance: _isinstance,
    any: _any_all("any"), all: _any_all("all"),
    sorted: _sorted, dict: _table(dict), set: _table(set), defaultdict: default_dict,
    bisect.bisect_left: bisected("left"), bisect.bisect_right: bisected("right"),
    bisect.bisect: bisected("right"), bisect.insort: inserted("right"),
    bisect.insort_right: inserted("right"), bisect.insort_left: inserted("left"),
    Counter: _counter, ord: text.ord_, chr: text.chr_,
    **mathematics.TABLE,
}  # fmt: skip
