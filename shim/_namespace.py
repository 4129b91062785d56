"""The table made into namespaces: module attributes, submodules, methods of ndarray."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ._dtypes import TO_NUMPY
from ._table import TABLE

_CONSTANTS = ("pi", "e", "inf", "nan", "newaxis", "euler_gamma")
_NUMPY_OWN = (
    *("dtype", "finfo", "iinfo", "errstate", "seterr", "geterr", "seterrcall", "geterrcall"),
    *("get_printoptions", "set_printoptions", "printoptions", "exceptions", "dtypes"),
    *("generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating"),
    *("complexfloating", "bool", "bool_", "byte", "ubyte", "short", "ushort", "intc", "uintc"),
    *("int_", "uint", "intp", "uintp", "long", "ulong", "longlong", "ulonglong", "half", "single"),
    *("double", "csingle", "cdouble", "issubdtype", "isdtype", "sctypeDict", "typecodes"),
    *("mintypecode", "broadcast_shapes", "ndindex", "binary_repr", "base_repr", "typename"),
    *("__version__", "little_endian", "True_", "False_"),
)


def attach_methods(cls: type) -> None:
    """Give the array class every row "ndarray.<method>" as an attribute."""
    for name, row in TABLE.items():
        owner, _, method = name.partition(".")
        if owner == "ndarray" and method not in cls.__dict__:
            setattr(cls, method, row.function)


def top_level() -> dict[str, Any]:
    """Rows without a dot, the constants, and the objects that are NumPy's own."""
    names = {name: row.function for name, row in TABLE.items() if "." not in name}
    for name in (*_CONSTANTS, *_NUMPY_OWN, *(d.name for d in TO_NUMPY.values())):
        if hasattr(np, name):
            names.setdefault(name, getattr(np, name))
    return names


def submodule(path: str) -> dict[str, Any]:
    """The rows under `path` ("linalg", "fft", "random"), by their last name."""
    names = {
        name.removeprefix(path + "."): row.function
        for name, row in TABLE.items()
        if name.startswith(path + ".")
    }
    return {name: value for name, value in names.items() if "." not in name}


def missing(path: str, module: Any, name: str) -> AttributeError:
    """The error for a name the shim lacks: it says whether NumPy has it."""
    shim = path.replace("numpy", "np_compile.shim", 1)
    known = hasattr(module, name) if not name.startswith("__") else False
    if known and isinstance(getattr(module, name), ModuleType):
        return AttributeError(f"module {shim!r} has no submodule {name!r}; NumPy has")
    if known:
        return AttributeError(
            f"{path}.{name} is not in the shim; a compiled function runs it in NumPy"
        )
    return AttributeError(f"module {shim!r} has no attribute {name!r} (nor has NumPy)")
