"""Calls: what is called, and what it is given; of the user's functions and methods."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from np_compile import disallowed

from . import (
    builtins,
    functions,
    iterators,
    members,
    named_items,
    outside,
    recursion,
    sets,
    small,
    source,
    text,
    twister,
)
from .builtins import type_of
from .dicts import (
    table_method,
)
from .functions.operands import array_like, dtype_of, number_method, scalar_type
from .functions.ufunc_methods import method as ufunc_method
from .functions.ufuncs import call_ufunc
from .generators import is_generator
from .items import apart
from .lists import (
    growing,
    list_method,
)
from .nest import kept
from .objects import begins, new_object, of_class, special
from .read import LIBRARY, Reader, certain, dotted, is_effectful
from .records import spread
from .sorting import sort
from .values import (
    MEMBERS,
    Arr,
    Binary,
    Bound,
    Items,
    Known,
    Lazy,
    Lst,
    Made,
    MadeRng,
    NotYet,
    Num,
    Obj,
    Partial,
    Rec,
    Rng,
    Table,
    Tup,
    Unreadable,
    Value,
)
from .variables import as_lists

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
                return called(r, function, [r.grammar.comprehension(r, given)], {})
            except Unreadable:  # arrays are added as they come
                r.restore(saved)
                return r.grammar.comprehension(r, given, "sum")
    if f is sum and len(node.args) == 2 and isinstance(node.args[0], ast.GeneratorExp):
        saved = r.save()
        start = kept(r, array_like(r, node.args[1]))
        if isinstance(start, Arr) and not node.keywords:  # they are added as they come
            return r.grammar.comprehension(r, node.args[0], "sum", start)
        r.restore(saved)
    args: list[Value] = []
    for a in node.args:
        is_taken = len(node.args) == 1 or (a is node.args[0] and f in (sum, deque, np.fromiter))
        if isinstance(a, ast.Call) and f in TAKES_ALL and is_taken:
            if _of_generator(r, a):
                given = _all_of(r, _listed(r, a, f is dict and len(node.args) == 1))
                if f is dict and isinstance(given, Table) and not node.keywords:
                    return given
                args.append(given)
                continue
            mapped = _mapped(r, a)
            if mapped is not None:
                args.append(r.grammar.comprehension(r, mapped))
                continue
        if isinstance(a, ast.Starred):
            args += apart(r, r.grammar.expression(r, a.value), _starred(f, node))
        elif isinstance(a, ast.GeneratorExp):
            if f not in TAKES_ALL and f not in (any, all):
                raise Unreadable("a generator that is not used up at once")
            args.append(r.grammar.comprehension(r, a))
        else:
            args.append(array_like(r, a) if _is_numpy(f) else read(r, a))
    kwargs: dict[str, Value] = {}
    for k in node.keywords:
        if k.arg is None:
            kwargs |= _by_names(r, r.grammar.expression(r, k.value), kwargs)
        else:
            kwargs[k.arg] = read(r, k.value)
    r.hoisted = alone
    return called(r, function, args, kwargs)


# What takes everything of an iterator, in its order, before anything else happens; `any` and `all`
# may stop before.
TAKES_ALL = frozenset(
    (sum, min, max, list, tuple, sorted, set, frozenset, dict, deque, np.fromiter)
)


def _by_names(r: Reader, x: Value, others: dict[str, Value]) -> dict[str, Value]:
    """The arguments that `**x` stands for."""
    if not named_items.has_named_items(x):
        raise Unreadable("** in a call of what is no dict from outside with keys that are text")
    found = {key.value: named_items.item(r, x, key) for key in named_items.keys(r, x)}
    if found.keys() & others.keys():
        raise Unreadable("an argument that is given twice")
    return found


def _starred(f: Any, node: ast.Call) -> int | None:
    """How many values `*x` stands for, where the function takes so many, no more and no less."""
    stars = sum(isinstance(a, ast.Starred) for a in node.args)
    if stars != 1 or node.keywords:
        return None
    most = None
    if isinstance(f, np.ufunc):
        most = f.nin
    elif isinstance(f, types.FunctionType) and not f.__defaults__:
        takes_more = f.__code__.co_flags & inspect.CO_VARARGS
        most = None if takes_more else f.__code__.co_argcount
    return None if most is None else most - (len(node.args) - 1)


def _of_generator(r: Reader, node: ast.Call) -> bool:
    """Whether a call is of a generator function, or makes an iterator that loops go through."""
    if dotted(node.func) is None:
        return False
    saved = r.save()
    try:
        f = r.grammar.expression(r, node.func)
    except Unreadable:
        f = None
    r.restore(saved)
    if not isinstance(f, Known):
        return False
    if f.value in (zip, enumerate, reversed):
        return True
    return is_generator(f.value) or iterators.generator_of(f.value, node) is not None


def _listed(r: Reader, node: ast.Call, as_dict: bool) -> ast.ListComp | ast.DictComp:
    """A list of what a generator gives; as_dict: a dict of its pairs."""
    key = id(node), "listed"
    if key not in r.entry.normalized:
        name = f"__given{node.lineno}_{node.col_offset}"
        made: ast.expr
        if as_dict:
            names = f"{name}_key", f"{name}_value"
            k, x = (ast.Name(name, ast.Load()) for name in names)
            pair = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            made = ast.DictComp(k, x, [ast.comprehension(pair, node, [], 0)])
        else:
            part = ast.comprehension(ast.Name(name, ast.Store()), node, [], 0)
            made = ast.ListComp(ast.Name(name, ast.Load()), [part])
        made = ast.copy_location(made, node)
        r.entry.normalized[key] = ast.fix_missing_locations(made), node
    return r.entry.normalized[key][0]


def _all_of(r: Reader, node: ast.ListComp | ast.DictComp) -> Value:
    """What a comprehension gives. In a loop of its own a name may have no value at first."""
    saved = r.save()
    try:
        return r.grammar.comprehension(r, node)
    except Unreadable:
        if ("apart", node) in r.memory or not r.frame.whole:
            raise
        r.restore(saved)
        r.apart(node)


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
    if isinstance(function, Partial):
        given, by_name = function.args, function.kwargs | kwargs
        return called(r, function.function, [*given, *args], by_name)
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
    if f is functools.partial and args:
        held = [kept(r, a) for a in args[1:]]
        return Partial(args[0], tuple(held), {k: kept(r, x) for k, x in kwargs.items()})
    if f is super and not args and not kwargs:
        return _super(r)
    if f is globals and not args and not kwargs:
        return r.entry.namespace(r.frame.function)
    if disallowed.is_function(f):
        raise Unreadable(disallowed.why(str(getattr(f, "__qualname__", f))))
    if isinstance(f, np.ufunc):
        return _or_outside(r, f, lambda: call_ufunc(r, f, list(args), dict(kwargs)), args, kwargs)
    found = builtins.TABLE.get(f) if _hashable(f) else None
    if found is not None:
        if getattr(f, "__module__", "") not in ("_heapq", "_bisect"):  # those keep their arguments
            args = [spread(r, x) for x in args]
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
    args = [spread(r, x) for x in args]
    handler = (functions.TABLE.get(f) or small.TABLE.get(f)) if _hashable(f) else None
    if handler is not None:
        r.one_by_one(LIBRARY if f in small.TABLE else 0)
        return _or_outside(r, f, lambda: handler(r, *args, **kwargs), args, kwargs)
    if _hashable(f):
        return outside.call(r, f, args, kwargs)
    raise Unreadable(f"a call of {getattr(f, '__qualname__', f)!s}")


def _is_read_in_place(function: Value) -> bool:
    """Whether a call asks for no element of its arguments by itself."""
    if isinstance(function, Partial):
        return _is_read_in_place(function.function)
    if isinstance(function, Bound):
        return isinstance(function.owner, (Obj, Made, twister.Twister))
    f = function.value if isinstance(function, Known) else None
    return f is len or (isinstance(f, types.FunctionType) and not _is_numpy(f))


def _takes_none(function: Value) -> bool:
    """Whether a function may be given what is None or not."""
    if isinstance(function, Partial):
        return _takes_none(function.function)
    if isinstance(function, Bound):
        return isinstance(function.owner, (Obj, Items))
    f = function.value if isinstance(function, Known) else None
    if isinstance(f, type):
        return f is bool or (f.__module__ != "builtins" and not _is_numpy(f))
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
        others = f"{getattr(f, '__name__', 'a call')} with these arguments"
        why = others if isinstance(e, TypeError) else str(e)  # it has no such parameter
        if not outside.is_known(f):
            raise Unreadable(why) from None
        if "out" in kwargs or (isinstance(f, np.ufunc) and len(args) > f.nin):
            raise Unreadable(why) from None
        r.restore(saved)
        return outside.call(r, f, args, kwargs)


def _drawn(r: Reader, g: Rng | MadeRng, name: str, args: list, kwargs: dict) -> Value:
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
    whole = is_effectful(r, f)
    if whole and begins(r, args):
        node = source.giving(node)
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
    if named_items.has_named_items(owner) and not kwargs:
        return named_items.method(r, owner, name, args)
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
    if isinstance(owner, Rec):
        as_lists(r, owner)
    if owner == Known("") and name == "join" and len(args) == 1 and not kwargs:
        return text.join_texts(r, args[0])
    if text.is_text(owner) and not kwargs:
        return text.text_method(r, text.in_parts(r, owner), name, args)
    if isinstance(owner, Lst) and owner.made is list and name == "sort":
        return _applied(r, sort, [owner, *args], kwargs)
    if isinstance(owner, Lst):
        return list_method(r, owner, name, args, kwargs)
    if isinstance(owner, Table):
        own = sets.METHODS.get(name) if sets.is_set(owner) else None
        return _applied(r, own or table_method(owner, name), [owner, *args], kwargs)
    if isinstance(owner, twister.Twister):
        f = twister.by_source(name)
        if f is not None:
            return inlined(r, f, [owner, *args], kwargs)
        return twister.call(r, owner, name, args, kwargs)
    if isinstance(owner, (Rng, MadeRng)):
        return _drawn(r, owner, name, args, kwargs)
    if isinstance(owner, Num):
        if kwargs:
            raise Unreadable(f"keywords of the method {name!r} of a number")
        if owner.kind in MEMBERS:
            raise Unreadable(f"the method {name!r} of a member of an enumeration")
        if owner.is_text:
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
    is_named = isinstance(owner, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc))
    if name == "__name__" and (is_named or _is_numpy(owner)):
        found = getattr(owner, name, None)
        if type(found) is str and not r.is_local(Known(owner)):
            if getattr(owner, name) is found:  # C's own are made of what nobody changes
                r.entry.watch(("function", owner, name), found)
            return Known(found)
    if isinstance(owner, (np.finfo, np.iinfo)):
        return r.entry.constant(r, getattr(owner, name))
    if isinstance(owner, type) and issubclass(owner, np.generic):
        raise Unreadable(f"{owner.__name__}.{name}")
    if isinstance(owner, np.dtype):
        return r.entry.constant(r, getattr(owner, name))
    if isinstance(owner, np.ufunc):
        return Bound(Known(owner), name)
    if members.is_taken(owner):
        return members.of_one(r, owner, name)
    if type(owner) in (str, bytes):
        return Bound(Known(owner), name)
    if owner is itertools.chain and name == "from_iterable":
        return Known(owner.from_iterable)
    if isinstance(owner, type) and owner.__module__ != "builtins" and not _is_numpy(owner):
        return of_class(r, owner, name)
    raise Unreadable(f"the attribute {name!r}")
