"""The table made into namespaces: module attributes, submodules, methods of ndarray.

What users find under a name is made from NumPy's own object of that name by `public`: a row of
the table where there is one, NumPy's own where no array goes in or out, else a stand-in that hands
calls over to NumPy.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ._attributes import FlatIterator
from ._bracketed import bracketed
from ._door import door, handed, method_of, ufunc
from ._handed import handed_class
from ._ndarray import ndarray, share_or_host
from ._places import choosing, getting, setting, summing
from ._table import TABLE, Kind

# Classes of NumPy's that take and give arrays. All others are handed out as they are: scalar types,
# dtypes, errors, and what derives from NumPy's array, which stays one of NumPy's.
_HANDED = (np.nditer, np.broadcast, np.poly1d, np.vectorize, np.ndenumerate, np.lib.Arrayterator)
_OWN_MODULES = ("ma", "typing", "f2py", "ctypeslib", "exceptions", "dtypes", "version", "core")
# Functions that take and give no arrays.
_OWN_FUNCTIONS = (
    *("seterr", "geterr", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "show_config"),
    *("get_printoptions", "set_printoptions", "printoptions", "show_runtime", "get_include"),
    *("issubdtype", "isdtype", "mintypecode", "broadcast_shapes", "binary_repr", "base_repr"),
    *("typename", "info", "datetime_data", "test"),
)
_REPLACED: dict[Any, Any] = {np.ndarray: ndarray, np.ufunc: ufunc, np.flatiter: FlatIterator}
_made: dict[int, tuple[Any, Any]] = {}  # of NumPy's object: itself, and what stands for it


def _rows() -> dict[int, tuple[Any, str]]:
    """The row's name for a function of NumPy's, by identity; with the function, as methods of
    ufuncs are made when they are asked for, and others would get their identity."""
    found: dict[int, tuple[Any, str]] = {}
    for name in TABLE:
        if name.startswith("ndarray."):
            continue
        value: Any = np
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None:
            found.setdefault(id(value), (value, name))
    return found


_ROWS = _rows()


def public(own: Any, label: str = "") -> Any:
    """What users of the shim have in the place of an object of NumPy's."""
    known = _made.get(id(own))
    if known is not None:
        return known[1]
    try:
        stand_in = _REPLACED.get(own)
    except TypeError:  # unhashable
        stand_in = None
    if stand_in is None:
        stand_in = _stand_in(own, label or getattr(own, "__name__", ""))
    _made[id(own)] = (own, stand_in)
    return stand_in


def _stand_in(own: Any, label: str) -> Any:
    known = _ROWS.get(id(own))
    if known is not None:
        name = known[1]
        row = TABLE[name]
        if isinstance(own, np.ufunc):
            return ufunc(name, row.function, own, _methods(name))
        if row.kind is Kind.IMPURE:
            return row.function
        return door(name, row.function, own, name in _TELLING, _SHORT.get(name))
    if isinstance(own, types.ModuleType):
        short = own.__name__.removeprefix("numpy.")
        return own if short.partition(".")[0] in _OWN_MODULES else Module(own)
    if isinstance(own, np.ufunc):
        return ufunc(label, None, own, {})
    if type(own) is np.ndarray:
        return share_or_host(own)
    if isinstance(own, type):
        return handed_class(own) if own in _HANDED else own
    if isinstance(own, (np.dtype, np.generic, str, int, float, complex, tuple, dict, enum.Enum)):
        return own
    if own is None or isinstance(own, (list, set, frozenset)) or label in _OWN_FUNCTIONS:
        return own
    if callable(own):
        return handed(label, own)
    if own is np.r_ or own is np.c_:
        return _Brackets(handed_class(type(own)).of(own))
    return handed_class(type(own)).of(own)


class _Brackets:
    """np.r_, np.c_."""

    def __init__(self, handed: Any):
        self._handed = handed

    def __getitem__(self, key: Any) -> Any:
        made = bracketed(_np, self._handed._own, key)
        return self._handed[key] if made is None else made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handed, name)

    def __len__(self) -> int:
        return len(self._handed)


# Functions whose results tell of floating-point errors. Other rows give their warnings themselves.
_TELLING = frozenset(
    (
        *("sum", "prod", "cumsum", "cumprod", "nansum", "nanprod"),
        *("astype", "dot", "vdot", "inner", "matmul", "vecdot", "matvec", "vecmat"),
    )
)


_SHORT = {"sum": summing, "where": choosing}


def _methods(name: str) -> dict[str, Callable]:
    names = ("reduce", "accumulate", "reduceat", "outer", "at")
    rows = {n: TABLE.get(f"{name}.{n}") for n in names}
    return {n: row.function for n, row in rows.items() if row is not None}


class Module(types.ModuleType):
    """A module of NumPy's, of which the shim has a row for some names or for none."""

    def __init__(self, own: types.ModuleType):
        super().__init__(own.__name__.replace("numpy", "np_compile.shim", 1), own.__doc__)
        self.__dict__["_own"] = own

    def __getattr__(self, name: str) -> Any:
        return lookup(self._own, name)

    def __dir__(self) -> list[str]:
        return dir(self._own)


_np = Module(np)


def lookup(module: types.ModuleType, name: str) -> Any:
    """The public name of a module of NumPy's as the shim has it. AttributeError, as there."""
    short = module.__name__.removeprefix("numpy").lstrip(".")
    path = f"{short}.{name}" if short else name
    if name.startswith("_") and name not in ("__version__", "__all__"):
        raise AttributeError(f"module 'np_compile.shim' has no public attribute {path!r}")
    try:
        own = getattr(module, name)
    except AttributeError:
        text = f"module 'np_compile.shim' has no attribute {path!r} (nor has NumPy)"
        raise AttributeError(text) from None
    return public(own, path)


def top_level() -> dict[str, Any]:
    """What has a row, under the names that have no dot."""
    return {
        name: public(getattr(np, name)) for name in TABLE if "." not in name and hasattr(np, name)
    }


def submodule(module: types.ModuleType) -> dict[str, Any]:
    """The public names of `numpy.linalg`, `numpy.fft` or `numpy.random`."""
    return {
        name: lookup(module, name)
        for name in module.__all__
        if not isinstance(getattr(module, name), types.ModuleType)
    }


def _array_ufunc(array: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    return getattr(ufunc, method)(*inputs, **options)


def _array_function(array: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


_QUICK = {"__getitem__": getting, "__setitem__": setting}
_PROTOCOLS = {
    "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,
    "__hash__": lambda a: hash(a),  # that of an array is None
    "__round__": lambda a, *digits: round(a, *digits),  # of NumPy's arrays scalars alone have it
}  # fmt: skip
# Of the class itself, or what NumPy's array has for the classes derived from it.
_LEFT = frozenset(dir(object)) | {
    *("__class_getitem__", "__array_finalize__", "__setstate__", "__doc__"),
    *("__array_priority__", "__buffer__", "__release_buffer__", "__array_prepare__"),
}


def attach_methods(cls: type) -> None:
    """Give the array class every row "ndarray.<method>", and what NumPy's array has beside."""
    for name, row in TABLE.items():
        owner, _, method = name.partition(".")
        if owner != "ndarray" or method in cls.__dict__:
            continue
        if row.kind is Kind.QUERY and not callable(getattr(np.ndarray, method, len)):
            continue  # an attribute
        own = _PROTOCOLS.get(method) or method_of(method)
        made = door(name, row.function, own, method in _TELLING, _SHORT.get(method))
        setattr(cls, method, _QUICK[method](made) if method in _QUICK else made)
    for name in dir(np.ndarray):
        if name in _LEFT or name in cls.__dict__:
            continue
        if callable(getattr(np.ndarray, name)):
            setattr(cls, name, handed(f"ndarray.{name}", method_of(name)))
        else:
            setattr(cls, name, property(handed(f"ndarray.{name}", _attribute(name))))
    cls.__class_getitem__ = classmethod(lambda cls, item: np.ndarray[item])
    cls.__array_finalize__ = None


def _attribute(name: str) -> Callable:
    return lambda array: getattr(array, name)
