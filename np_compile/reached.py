"""What a function may come to beside its arguments: names, and what they lead to. Where there may
be tensors among it, or it may put some there, arrays do not stand for the tensors of a call."""

from __future__ import annotations

import abc
import datetime
import decimal
import dis
import enum
import fractions
import functools
import logging
import operator
import random
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from typing import Any, NamedTuple

import numpy as np

from .attributes import own_dict, slots
from .capture.exchange.arguments import is_record
from .capture.names.origins import origin_of
from .capture.names.substitute import contents
from .loan import Loan
from .reader import source
from .replay.guards import simple

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type(np.mean))
_FROM_OUTSIDE = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_OF_ITEMS = ("BINARY_SUBSCR", "BINARY_OP")  # of which Python 3.14 makes elements too
_ITEMS = 1000  # of a list or dict, that are looked at
_DEEP = 8  # lists in lists
_OTHERS = 64
_PLAIN = (
    np.generic, np.dtype, np.ufunc, np.random.Generator, np.random.RandomState, random.Random,
    bytes, range, slice, re.Pattern, fractions.Fraction, decimal.Decimal, datetime.date,
    datetime.time, datetime.timedelta, logging.Logger,
)  # fmt: skip
_OF_C = (types.MethodDescriptorType, types.WrapperDescriptorType)
_CACHED = functools._lru_cache_wrapper
_STRUCTURES = (list, dict, set, tuple, frozenset, deque, defaultdict, Counter, OrderedDict)
METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)
_Name = tuple[Callable[[Any], Any], Any, Any]  # looks a name up; the name; what it led to

_FAR = (eval, exec, compile, globals, __import__)
_CHANGING = ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR")
_OF_CLASSES = ("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__",
               "__qualname__", "__firstlineno__", "__static_attributes__", "__match_args__",
               "__dataclass_params__", "__abstractmethods__", "_abc_impl", "_fields",
               "__orig_bases__")  # fmt: skip
_MADE_OF = frozenset(("__dataclass_fields__", "_fields"))  # what methods of a class are made of
_OF_FIELDS = (types.MemberDescriptorType, type(NamedTuple("_", [("x", int)]).x))  # type: ignore[attr-defined]


class Stays(Exception):
    """A call of which tensors stay what they are: the reason."""


class Reached:
    """What a function may come to beside its arguments. functions: those that it may call, and
    classes."""

    def __init__(self, function: Any):
        self._function = function
        self._names: list[_Name] = []
        self._held: list[tuple[Any, list]] = []  # lists, dicts and sets, and what is in them
        self._others: dict[Any, Reached] = {}  # classes and functions among the arguments
        self.functions: set[Any] = set()

    def check(self) -> None:
        """Errors: Stays, where there may be tensors among it."""
        if (
            not self._names
            or any(get(where) is not x for get, where, x in self._names)
            or any(not _same(_items(x), held) for x, held in self._held)
        ):
            f, self.functions = self._function, set()
            of_class = isinstance(f, type)
            names = _read_by_class(f, self.functions) if of_class else _read_by(f, self.functions)
            self._names = list(names)
            found = {id(x): x for *_, x in self._names if isinstance(x, (list, dict, set, deque))}
            self._held = [(x, _items(x)) for x in found.values()]

    def of(self, x: Any) -> None:
        """As `check`, of a class or function among the arguments. Errors: Stays."""
        known = self._others.get(x)
        if known is None:
            if len(self._others) >= _OTHERS:
                self._others.clear()
            known = self._others[x] = Reached(x)
        known.check()
        self.functions |= known.functions

    def give(self, loan: Loan) -> None:
        """Have lists, dicts and sets that the call has put arrays into hold tensors. Arrays that
        were there stay arrays."""
        for x, held in (*self._held, *[h for o in self._others.values() for h in o._held]):
            if not _same(_items(x), held):
                for a in held:
                    if type(a) is np.ndarray:
                        loan.pair(a, a)
                loan.give(x)


def _items(x: Any) -> list:
    return [*x, *x.values()] if isinstance(x, dict) else [*x]


def _same(now: list, then: list) -> bool:
    return len(now) == len(then) and all(map(operator.is_, now, then))


def _read_by(f: types.FunctionType, known: set[Any], of_class: bool = False) -> Iterator[_Name]:
    """The names that a function and those that it calls may read: they lead to nothing that a
    tensor is found in. of_class: whether its first argument is a class. Errors: Stays."""
    if f in known:
        return
    known.add(f)
    wrapped = f.__dict__.get("__wrapped__")
    if isinstance(wrapped, types.FunctionType):
        yield from _read_by(wrapped, known)
    if f.__dict__:
        yield own_dict, f, f.__dict__
    for name, v in f.__dict__.items():
        if name != "__wrapped__":
            yield from _read_by_value(f"an attribute of {f.__name__}", v, known, 1)
    for d in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
        yield from _read_by_value(f"a default of {f.__name__}", d, known, 1)
    names = _names_of(f.__code__, of_class)
    if isinstance(names, str):
        raise Stays(names)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    builtins: dict[str, Any] = f.__builtins__  # type: ignore[attr-defined]
    for name in names:
        found: _Name = f.__globals__.get, name, f.__globals__.get(name)
        if name in cells:
            found = contents, cells[name], contents(cells[name])
        yield found
        x: Any = builtins.get(name) if found[2] is None else found[2]
        yield from _read_by_value(f"the name {name}", x, known)


def _itself(x: Any) -> Any:
    return x


def _read_by_value(where: str, x: Any, known: set[Any], depth: int = 0) -> Iterator[_Name]:
    """As `_read_by`, of what a name leads to, or of what is in that."""
    if type(x) in _STRUCTURES or is_record(x):
        if id(x) in known:
            return
        known.add(id(x))
    g = source.written(x)
    if isinstance(g, types.FunctionType) and _library(g.__module__) not in _MODULES:
        yield from _read_by(g, known)
    elif type(x) in METACLASSES and origin_of(x) == "user":
        yield from _read_by_class(x, known)
    elif isinstance(x, enum.Enum) and origin_of(type(x)) == "user":
        yield from _read_by_class(type(x), known)
    elif type(x) in _STRUCTURES and len(x) <= _ITEMS and depth < _DEEP:
        if depth and type(x) is not tuple:
            yield _itself, x, x
        yield from _read_by_items(where, x, known, depth + 1)
        if type(x) is defaultdict:
            yield from _read_by_value(where, x.default_factory, known, depth + 1)
    elif type(x) is types.MethodType:
        yield from _read_by_items(where, [x.__func__, x.__self__], known, depth + 1)
    elif type(x) is functools.partial:
        yield from _read_by_items(where, [x.func, x.args, x.keywords], known, depth + 1)
    elif type(x) is _CACHED and isinstance(x.__wrapped__, types.FunctionType):
        yield from _read_by(x.__wrapped__, known)  # keeps arrays in each case
    elif type(x) is np.vectorize and isinstance(x.pyfunc, types.FunctionType):
        yield from _read_by(x.pyfunc, known)
    elif depth < _DEEP and is_record(x) and not slots(type(x)):
        yield own_dict, x, own_dict(x)
        yield from _read_by_value(where, type(x), known)
        yield from _read_by_items(where, own_dict(x), known, depth + 1)
    elif not is_plain(x):
        raise Stays(f"{where}, {'which holds a' if depth else 'a'} {type(x).__name__}")


def _read_by_items(where: str, x: Any, known: set[Any], depth: int = 1) -> Iterator[_Name]:
    """As `_read_by`, of what is in a list, tuple, dict, deque or set."""
    for item in _items(x):
        yield from _read_by_value(where, item, known, depth)


def _read_by_class(kind: type, known: set[Any]) -> Iterator[_Name]:
    """As `_read_by`, of the methods of a class, of which the call may make objects."""
    if kind in known:
        return
    known.add(kind)
    for base in kind.__mro__:
        if base is object or base is tuple:
            continue
        if base.__module__ == "builtins" and issubclass(kind, (BaseException, enum.Enum)):
            continue
        if base.__module__ in ("abc", "enum", "typing"):
            continue
        if origin_of(base) != "user" or type(base) not in METACLASSES:
            raise Stays(f"the class {kind.__name__}, which has a base that is not the user's")
        members = base.__members__ if issubclass(base, enum.Enum) else {}
        for member in members.values():
            yield own_dict, member, own_dict(member)
            yield from _read_by_items(kind.__name__, own_dict(member), known)
        for name, x in list(vars(base).items()):
            if name in _OF_CLASSES or isinstance(x, _OF_FIELDS) or name in members:
                continue
            if issubclass(base, enum.Enum) and re.fullmatch("_[^_].*_", name):  # of `enum` itself
                continue
            if name == "__dataclass_fields__":
                x = [v for f in x.values() for v in (f.default, f.default_factory)]
                yield from _read_by_items(name, [v for v in x if v is not MISSING], known)
                continue
            f: Any = x.__func__ if isinstance(x, (staticmethod, classmethod)) else x
            generated = isinstance(f, types.FunctionType) and f.__code__.co_filename == "<string>"
            if generated and not _MADE_OF.isdisjoint(vars(base)):
                continue
            if name == "_field_defaults" and all(map(is_plain, x.values())):
                continue
            yield vars(base).get, name, x
            parts: Any = (f.fget, f.fset, f.fdel) if isinstance(f, property) else (f,)
            for part in parts:
                if isinstance(part, types.FunctionType):
                    if not is_plain(part):
                        yield from _read_by(part, known, isinstance(x, classmethod))
                else:
                    yield from _read_by_value(f"{kind.__name__}.{name}", part, known)


@functools.lru_cache(4096)
def _names_of(
    code: types.CodeType, of_class: bool = False, around: frozenset[str] = frozenset(),
    shared: frozenset[str] = frozenset(),
) -> tuple[str, ...] | str:  # fmt: skip
    """The names that code reads; where it changes what they lead to, how. of_class: whether its
    first argument is a class. around: locals of the code around it that hold objects among the
    arguments, or that the call has made. shared: those that it may bind anew (`nonlocal`)."""
    others = {*code.co_varnames[:1]} if of_class else set()  # locals that may be no object's
    cells = around.union(code.co_cellvars) - {"__class__"}
    before: Any = None
    copied: Any = None
    added_to: dict[str, Any] = {}  # what loaded the object of `x.name += y`, by its attribute
    for step in dis.get_instructions(code):
        op = step.opname
        if op == "COPY":
            copied = before
        elif op == "LOAD_ATTR" and before is not None and before[0] == "COPY":
            added_to[step.argval] = copied
        elif op == "STORE_ATTR" and before is not None and before[0] == "SWAP":
            before = added_to.get(step.argval)
        is_pair = type(step.argval) is tuple and "FAST" in op  # two locals, no constant
        last = step.argval[-1] if is_pair else step.argval
        harmless = (
            op == "STORE_ATTR" and before is not None and _is_of_object(before, others, cells)
        ) or (op == "IMPORT_NAME" and str(step.argval).partition(".")[0] in _MODULES)
        outer = op in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars
        changes = op in _CHANGING or (outer and step.argval not in shared)
        if changes and not harmless:
            return f"the instruction {op} (line {code.co_firstlineno} and on)"
        stores = op.startswith("STORE_FAST") or op == "STORE_DEREF"
        if stores and before is not None and before[0] in _FROM_OUTSIDE:
            others |= {step.argval[0] if is_pair else step.argval}
        before = op, last
    names = [*code.co_names, *code.co_freevars]
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            free = inner.co_freevars
            own = (cells - others).intersection(free)
            of_call = shared.union(code.co_cellvars).intersection(free)
            found = _names_of(inner, around=frozenset(own), shared=frozenset(of_call))
            if isinstance(found, str):
                return found
            names += found
    return tuple(names)


def _is_of_object(before: tuple[str, Any], others: set[str], cells: frozenset[str]) -> bool:
    """Whether an attribute is set of an object among the arguments, or that the call has made, by
    the instruction before. others: locals that may be something else; cells: those that functions
    share."""
    op, name = before
    if op == "LOAD_DEREF":
        return name in cells and name not in others
    if op.startswith("LOAD_FAST") or op == "STORE_FAST_LOAD_FAST":
        return name not in others
    return (op == "LOAD_ATTR" and name not in ("__class__", "__dict__")) or op in _OF_ITEMS


# Modules that lead to nothing of the user's.
_MODULES = frozenset((
    "abc", "base64", "binascii", "bisect", "builtins", "bz2", "calendar", "cmath", "collections",
    "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "hashlib", "heapq", "io", "itertools", "json", "logging", "math", "numbers",
    "numpy", "operator", "os", "pathlib", "pickle", "platform", "pprint", "random", "re",
    "reprlib", "scipy", "secrets", "statistics", "string", "struct", "textwrap", "time",
    "traceback", "types", "typing", "uuid", "warnings", "zlib",
))  # fmt: skip


def _library(module: str | None) -> str:
    """The library that a module is of; of one in C the one that it is written for."""
    return (module or "").partition(".")[0].removeprefix("_")


def is_plain(x: Any) -> bool:
    """Whether no tensor is found in a value, nor can be put there."""
    if isinstance(x, types.ModuleType):
        return _library(x.__name__) in _MODULES
    if isinstance(x, type):
        return _library(x.__module__) in _MODULES or issubclass(x, BaseException)
    if any(x is f for f in _FAR):
        return False
    if type(x) is np.ndarray:
        return not x.dtype.hasobject
    names = x.__globals__ if isinstance(x, types.FunctionType) else {}
    library = _library(names.get("__name__") or getattr(x, "__module__", None))
    return (
        simple(x)
        or isinstance(x, _PLAIN)
        or (isinstance(x, enum.Enum) and library in _MODULES)
        or (isinstance(x, _OF_C) and _library(x.__objclass__.__module__) in _MODULES)
        or (isinstance(x, _FUNCTIONS) and library in _MODULES)
    )
