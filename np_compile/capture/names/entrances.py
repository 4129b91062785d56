"""Functions that code reaches through objects: methods, properties, callbacks in containers.

Python looks their names up in their own module. So while a function runs on substituted names, the
code of each such function is exchanged for an entrance: a few instructions with the same signature
that lead to the function's substituted copy, and, in threads where no names are substituted, to a
plain copy of it. Afterwards the function has its own code again.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import state
from .origins import is_compiled, plain_of

_lock = threading.Lock()
_PARTS = ("fget", "fset", "fdel", "func", "__func__")  # of properties, class methods, and the like
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_PLACE = "np_compile: the entrance"
_COPY_FREE_VARS = dis.opmap["COPY_FREE_VARS"]
_NO_PLACE = bytes([0x80 | 15 << 3])  # of one instruction, in a table of lines
# Methods that C asks for an object of a type, and looks at itself: a stand-in will not do.
_FOR_C: dict[str, tuple[type, Callable]] = {
    "__array__": (np.ndarray, lambda stand_in: stand_in.__array__()),  # itself, no view of it
    "__float__": (float, float),
    "__complex__": (complex, complex),
}
# Methods that C gives a function of NumPy's, which they compare with names: `ufunc is np.add`.
ASKED_OF = ("__array_ufunc__", "__array_function__")
_OF_NUMPY = (np.ufunc, type(np.mean))
_OF_THREADS = ("_thread", "threading", "multiprocessing.synchronize")


class Entrance:
    """The way into one function. `users` substitutions lead through it at present."""

    def __init__(self, f: types.FunctionType):
        self.function = weakref.ref(f)
        self.users = 0
        self.own = f.__code__
        self.code = _entrance_code(f.__code__, self)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Called in the place of the function, with the values of all its parameters."""
        f: Any = self.function()  # it is there, as it runs
        substitution = getattr(state.local, "substitution", None)
        if substitution is not None and f.__name__ in ASKED_OF and type(args[1]) in _OF_NUMPY:
            args = (args[0], substitution.value(args[1]), *args[2:])
        result = self.behind(f)(*args, **kwargs)
        if f.__name__ in _FOR_C:
            kind, real = _FOR_C[f.__name__]
            if isinstance(result, kind) and not issubclass(type(result), kind):
                return real(result)
        return result

    def behind(self, f: Any) -> Callable:
        """What runs in the place of the function in this thread."""
        substitution = getattr(state.local, "substitution", None)
        if substitution is not None:
            return substitution.helper(f)
        return types.FunctionType(self.own, f.__globals__, f.__name__, None, f.__closure__)


def _entrance_code(code: types.CodeType, entrance: Entrance) -> types.CodeType:
    """Code with the signature of `code` that calls `entrance.call`."""
    last = code.co_argcount + code.co_kwonlyargcount
    names = iter(code.co_varnames)

    def some(n: int) -> list[ast.arg]:
        return [ast.arg(next(names)) for _ in range(n)]

    first, usual = some(code.co_posonlyargcount), some(code.co_argcount - code.co_posonlyargcount)
    named = some(last - code.co_argcount)
    rest = some(1)[0] if code.co_flags & inspect.CO_VARARGS else None
    others = some(1)[0] if code.co_flags & inspect.CO_VARKEYWORDS else None
    signature = ast.arguments(first, usual, rest, named, [None] * len(named), others, [])

    def value(arg: ast.arg) -> ast.Name:
        return ast.Name(arg.arg, ast.Load())

    given: list[ast.expr] = [value(a) for a in (*first, *usual)]
    if rest is not None:
        given.append(ast.Starred(value(rest), ast.Load()))
    by_name = [ast.keyword(a.arg, value(a)) for a in named]
    if others is not None:
        by_name.append(ast.keyword(None, value(others)))
    target = ast.Attribute(ast.Constant(_PLACE), "call", ast.Load())
    body = ast.Return(ast.Call(target, given, by_name))
    function = ast.FunctionDef(code.co_name, signature, [body], [])
    if hasattr(function, "type_params"):
        function.type_params = []
    module = ast.fix_missing_locations(ast.Module([function], []))
    made = next(
        c
        for c in compile(module, code.co_filename, "exec").co_consts
        if isinstance(c, types.CodeType)
    )
    begin, place = b"", b""
    if code.co_freevars:  # a frame has its cells, whoever looks at its variables
        begin, place = bytes([_COPY_FREE_VARS, len(code.co_freevars)]), _NO_PLACE
    return made.replace(
        co_code=begin + made.co_code,
        co_linetable=place + made.co_linetable,
        # With its own code among them, as who looks for names in a function looks into those too.
        co_consts=(*(entrance if c == _PLACE else c for c in made.co_consts), code),
        co_freevars=code.co_freevars,
        co_firstlineno=code.co_firstlineno,
        co_qualname=code.co_qualname,
    )


def _entrance(f: types.FunctionType) -> Entrance | None:
    return next((c for c in f.__code__.co_consts if type(c) is Entrance), None)


def own_code(f: types.FunctionType) -> types.CodeType:
    """The code of a function, which may have an entrance in its place."""
    entrance = _entrance(f)
    return f.__code__ if entrance is None else entrance.own


def has_entrance(f: types.FunctionType) -> bool:
    """Whether a call of it leads through an entrance now."""
    return _entrance(f) is not None


def captured(f: types.FunctionType) -> Callable:
    """What gives what a function gives, stand-ins too, which C could not take from it."""
    entrance = _entrance(f)
    return f if entrance is None else entrance.behind(f)


@functools.cache
def _reads_names(code: types.CodeType) -> bool:
    """Whether code looks up anything outside its own variables."""
    return any(step.opname in ("LOAD_GLOBAL", "LOAD_DEREF") for step in dis.Bytecode(code)) or any(
        _reads_names(c) for c in code.co_consts if isinstance(c, types.CodeType)
    )


def is_of_threads(x: Any) -> bool:
    """Whether it is a lock, or something else by which threads wait for each other."""
    kind = type(x)
    return kind.__module__ in _OF_THREADS and (hasattr(x, "acquire") or hasattr(x, "wait"))


CACHED = functools._lru_cache_wrapper  # of `functools.cache` too

_entrances: weakref.WeakKeyDictionary[Any, Entrance] = weakref.WeakKeyDictionary()


class Entrances:
    """The functions for which one substitution has entrances."""

    def __init__(self) -> None:
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._classes: weakref.WeakSet[type] = weakref.WeakSet()
        self._open: list[Any] | None = None  # functions whose entrances are in use
        self.caching: weakref.WeakSet[type] = weakref.WeakSet()  # classes of methods with a cache
        self.locks = False  # whether code was met that may wait for other threads

    def add(self, f: types.FunctionType, as_it_is: bool = True) -> bool:
        """Make an entrance for a function, from now on; whether calls of it come to what is behind
        it. as_it_is: one that looks nothing up needs no entrance."""
        if f in self._known:
            return True
        code = own_code(f)
        if code.co_flags & _GENERATOR:
            return False
        if as_it_is and not (_reads_names(code) or f.__name__ in _FOR_C):
            return True
        self._known.add(f)
        self.locks |= any(is_of_threads(f.__globals__.get(name)) for name in code.co_names)
        if self._open is not None:
            with _lock:
                self._open.append(f)
                _enter(f)
        return True

    def add_class(self, kind: type) -> None:
        """As `add`, for the functions of a class of the user's; not of its bases."""
        if kind in self._classes:
            return
        self._classes.add(kind)
        for name, member in list(vars(kind).items()):
            if type(member) is CACHED:
                self.caching.add(kind)
            for f in _functions(member):
                self.add(f)
            if (name in _FOR_C or name in ASKED_OF) and is_compiled(member):
                self.add(plain_of(member))

    def open(self) -> None:
        """Lead through the entrances until `close`."""
        self._open = list(self._known)
        with _lock:
            for f in self._open:
                _enter(f)

    def close(self) -> None:
        """The functions have their own code again, if no other substitution is at work."""
        functions, self._open = self._open, None
        with _lock:
            for f in functions or ():
                entrance = _entrances[f]
                entrance.users -= 1
                if entrance.users == 0 and f.__code__ is entrance.code:
                    f.__code__ = entrance.own


def _enter(f: types.FunctionType) -> None:
    entrance = _entrances.get(f)
    if entrance is None or (entrance.users == 0 and f.__code__ is not entrance.own):
        entrance = _entrances[f] = Entrance(f)
    if entrance.users == 0:
        f.__code__ = entrance.code
    entrance.users += 1


def _functions(member: Any) -> Iterator[types.FunctionType]:
    if isinstance(member, types.FunctionType):
        yield member
        return
    for part in _PARTS:
        f = getattr(member, part, None)
        if isinstance(f, types.FunctionType):
            yield f
