"""C declarations of ctypes structures: what C and Python share is declared once, in Python."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_uint, c_void_p
from typing import Any

_C_NAMES = {
    c_int64: "i64", c_int: "int", c_uint: "unsigned", c_void_p: "void *", c_char_p: "const char *",
}  # fmt: skip


def declarations(*structures: type[ctypes.Structure]) -> str:
    """The C of structures, in an order in which each knows those before it. The name of a subclass
    of `c_void_p` is that of a C type."""
    return "".join(
        f"typedef struct {_fields(structure)} {structure.__name__.removeprefix('_')};\n"
        for structure in structures
    )


def _fields(structure: type[ctypes.Structure]) -> str:
    fields = (f"{_type(kind)} {name};" for name, kind, *_ in structure._fields_)
    return f"{{ {' '.join(fields)} }}"


def _type(kind: Any) -> str:
    """A type of a field, as C writes it."""
    inner = getattr(kind, "_type_", None)
    if inner is None or isinstance(inner, str):
        return _C_NAMES.get(kind, kind.__name__.removeprefix("_"))
    return f"{_type(inner)} *"
