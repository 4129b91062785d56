"""Whose a function, a class or a module is: NumPy's, Python's own, a library's or the user's."""

from __future__ import annotations

import site
import sys
import sysconfig
import types
from typing import Any

_LIBRARY_FOLDERS = tuple(
    {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sys.base_prefix + "/lib/python",
    }
)
_FOREIGN_FOLDERS = tuple(
    {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
)
# Modules of Python's own whose C tells floats by their class, of which no stand-in is.
OF_FLOATS = frozenset(("datetime", "decimal", "json", "marshal", "select", "time"))
_IMMUTABLE = 1 << 8  # a flag of classes that are written in C


def origin_of(value: Any) -> str:
    """ "numpy", "torch", "library" (standard), "foreign" (installed), "own" or "user"."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
        file = getattr(value, "__file__", None)
    else:
        name = getattr(value, "__module__", None) or ""
        code = value.__code__ if hasattr(type(value), "__code__") else None
        module = sys.modules.get(name)
        if isinstance(code, types.CodeType):  # a class written in Cython has a descriptor
            file = code.co_filename
        else:
            file = getattr(module, "__file__", None)
    top = name.partition(".")[0]
    if top == "numpy":
        return "numpy"
    if top == "torch":
        return "torch"
    if top == "np_compile":
        return "own"
    if top in sys.stdlib_module_names or top == "__builtin__":
        return "library"
    if file is None:
        return "library" if top in ("builtins", "") else "user"
    if file.startswith(_FOREIGN_FOLDERS) or "site-packages" in file:
        return "foreign"
    if file.startswith(_LIBRARY_FOLDERS) or file.startswith("<frozen"):
        return "library"
    return "user"


def is_compiled(value: Any) -> bool:
    """Whether it is a function of `compile`, on arrays: those on tensors look at what they are
    given."""
    if origin_of(type(value)) != "own":  # others may answer to any name
        return False
    return getattr(value, "__np_compile_captured__", None) is not None and not value._tensors


def plain_of(value: Any) -> Any:
    """The function that is compiled, of one of `compile`; anything else as it is."""
    return value.__np_compile_captured__ if is_compiled(value) else value


def is_in_c(value: Any) -> bool:
    """Whether it is a function written in C, or by Cython."""
    return isinstance(value, types.BuiltinFunctionType) or type(value).__name__ in (
        "cython_function_or_method", "fused_cython_function"
    )  # fmt: skip


def takes_floats(value: Any) -> bool:
    """Whether a function or a class of Python's own takes NumPy's float64 for the float that it is.
    Of classes those that are written in C: they keep no array."""
    if getattr(value, "__module__", None) not in OF_FLOATS:
        return False
    return bool(value.__flags__ & _IMMUTABLE) if isinstance(value, type) else callable(value)
