"""The user's own word on single functions that compiled code calls, and on where segments end."""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import disallowed, eager, shim
from .api import compile, plain_function
from .capture.frames import as_user
from .capture.names.namespace import mentions
from .capture.names.numpy_names import row_of_function, stands_for
from .capture.names.origins import origin_of
from .capture.names.substitute import contents
from .capture.state import current, local
from .errors import NotCompilable
from .made import Made
from .shim._table import add_row
from .tape.node import Break
from .tape.tree import leaves

_CALLED = 64  # functions that a disabled one calls, of which the compiled ones are kept
_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_NUMBERS = (int, float, complex, str, np.generic, type(None))  # that a call may give beside arrays
_numbers = itertools.count()


def graph_break() -> None:
    """End the segment here. Outside compiled code it does nothing."""
    capture = current()
    if capture is not None and not capture.closed:
        capture.cut(Break("asked", "graph_break() asks for it"))


def is_compiling() -> bool:
    """Whether the code that asks runs inside a compiled function."""
    capture = current()
    return capture is not None and not capture.closed


class Disabled(Made):
    """A function that runs in plain NumPy; made by `disable`."""

    def __init__(self, function: Callable, recursive: bool = True):
        super().__init__(function)
        code = getattr(function, "__code__", None)
        self._warns = code is not None and "warn" in code.co_names  # of the caller's line, it may
        self._recursive = recursive
        self._runs = function if recursive else _Calling(function).run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fn, capture = self._runs, current()
        if capture is None or capture.closed:
            if self._warns:
                return as_user(1)(functools.partial(fn, **kwargs), *args)
            return fn(*args, **kwargs)
        label = getattr(self.__wrapped__, "__qualname__", self.__wrapped__)
        return capture.foreign(fn, args, kwargs, Break("asked", f"{label} is marked @disable"))

    def _settings(self) -> tuple[Callable, dict[str, Any]]:
        return disable, {"recursive": self._recursive}

    def __repr__(self) -> str:
        return f"<disabled {self.__wrapped__!r}>"


def disable(fn: Callable | None = None, recursive: bool = True) -> Any:
    """`fn` marked to run in plain NumPy, on real arrays, also when compiled code calls it.

    With `recursive=False` that is said of `fn` alone: the user's functions that it calls by their
    names are compiled, each as a function of its own. Without `fn`: a decorator.

    Errors, with `recursive=False`: NotCompilable for what is no Python function, or writes to
    globals.

    >>> import numpy as np, np_compile
    >>> @np_compile.disable(recursive=False)
    ... def steps(x):
    ...     return [step(x, float(v)) for v in x]
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive)
    return Disabled(fn, bool(recursive))


class _Globals(dict):
    """The globals of a module, with compiled functions in the place of its own."""

    def __init__(self, module: dict, of: Callable[[Any], Any]):
        super().__init__()
        self._module, self._of = module, of

    def __missing__(self, name: str) -> Any:
        return self._of(self._module[name])


class _Calling:
    """A function as it stands, whose calls of the user's functions are calls of compiled ones."""

    def __init__(self, function: Any):
        f = self._function = plain_function(function, "disable(recursive=False)")
        written = [i.argval for i in dis.get_instructions(f.__code__) if i.opname in _WRITES]
        if written:
            raise NotCompilable(
                f"disable(recursive=False): {f.__qualname__} writes to the global {written[0]}\n"
                "  Remedy: leave out recursive=False, or write to it in a function of its own."
            )
        self._globals = _Globals(f.__globals__, self._of)
        self._compiled = functools.lru_cache(_CALLED)(compile)

    def _of(self, value: Any) -> Any:
        if type(value) is not types.FunctionType or origin_of(value) != "user":
            return value
        return self._compiled(value)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        f = self._function
        cells = [c if (v := contents(c)) is self._of(v) else types.CellType(self._of(v))
                 for c in f.__closure__ or ()]  # fmt: skip
        copy = types.FunctionType(
            f.__code__, self._globals, f.__name__, f.__defaults__, tuple(cells) or None
        )
        copy.__kwdefaults__ = f.__kwdefaults__
        return copy(*args, **kwargs)


class _ArgumentsAlone(eager.ShimNames):
    """Names of a function whose result follows from its arguments."""

    def of_one_call(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def array(self, value: Any) -> Any:
        raise shim.NotSupported("it uses an array that is no argument of it")


def _parts(x: Any) -> Iterator[Any]:
    """What a result is, without the tuples and lists around it."""
    if isinstance(x, (tuple, list)):
        for v in x:
            yield from _parts(v)
    else:
        yield x


def _share(a: shim.ndarray, b: shim.ndarray) -> bool:
    """Whether two arrays have one memory."""
    return a.tensor.untyped_storage()._cdata == b.tensor.untyped_storage()._cdata


class Allowed(Made):
    """A function whose calls are one call of the program each; made by `allow_in_graph`.

    It has a row of the shim's table, as NumPy's functions have.
    """

    def __init__(self, function: Callable):
        super().__init__(function)
        f = self._function = plain_function(function, "allow_in_graph")
        self._on_arrays = eager.OnArrays(f, _ArgumentsAlone)
        self._row = f"{f.__qualname__}#{next(_numbers)}"
        signature = inspect.signature(f)
        names = frozenset(signature.parameters)
        add_row(shim.Row(self._row, self._on_shim, data=names, signature=signature))
        stands_for(self, self._row)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture = current()
        if capture is not None and not capture.closed and mentions((args, kwargs)):
            return capture.call(self._row, args, kwargs)
        substitution = getattr(local, "substitution", None)
        if capture is None and substitution is not None:  # a wrapped function that is not compiled
            return substitution.helper(self._function)(*args, **kwargs)
        return self.__wrapped__(*args, **kwargs)

    def _on_shim(self, *args: Any, **kwargs: Any) -> Any:
        given = [v for v in leaves((args, kwargs)) if type(v) is shim.ndarray]
        versions = [a.tensor._version for a in given]
        with shim.refusing_draws():
            result = self._on_arrays(args, kwargs)
        written = [a.tensor._version for a in given] != versions
        for part in _parts(result):
            if type(part) is not shim.ndarray:
                if not isinstance(part, _NUMBERS):
                    raise shim.NotSupported(f"it gives a {type(part).__name__}")
            elif written and any(part is not a and _share(part, a) for a in given):
                # Views are made again by the call that made them.
                raise shim.NotSupported("it writes to its arguments, and gives views of them")
        return result

    def _settings(self) -> tuple[Callable, dict[str, Any]]:
        return allow_in_graph, {}

    def __repr__(self) -> str:
        return f"<allowed {self.__wrapped__!r}>"


def allow_in_graph(fn: Callable) -> Callable:
    """`fn` as one call of the compiled functions that call it.

    Its code is not captured: in a call of a known kind it does not run, and the kernels that were
    made of it do. So it costs as little as a NumPy function, whatever Python it contains. `fn` may
    call NumPy, and torch on `torch.from_numpy(x)`. You say by it that the result follows from the
    arguments alone, by the same calls for all values of arrays, and that there are no effects but
    writes to its arguments. Where `fn` needs the values of its arrays, uses arrays that are no
    arguments, draws random numbers, or gives other things than arrays and numbers, NumPy runs it,
    and `explain` says so. Outside compiled functions it is the function as it stands.

    Errors: NotCompilable for what is no Python function.
    """
    return Allowed(fn)


def disallow_in_graph(fn: Any) -> None:
    """Keep calls of `fn` out of programs: NumPy makes them, on real arrays, and segments end there.

    fn: a function of NumPy's (then the method and the operator of its name are meant, too), one of
    the user's, or a list or tuple of such. It is said of the whole process, and heard by compiled
    functions that have not been called yet.

    Errors: NotCompilable for what is no function.
    """
    for f in fn if isinstance(fn, (list, tuple)) else (fn,):
        if isinstance(f, type) or not callable(f):
            raise NotCompilable(f"disallow_in_graph: {f!r} is no function")
        row = row_of_function(f)
        if row is not None:
            disallowed.rows |= {row, f"ndarray.{row}"}
        disallowed.functions.add(f)
