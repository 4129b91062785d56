"""What a call of a compiled function goes by: Python's fast way to call what is written in C.

Python hands such a call over as it is: the arguments where they lie, without a tuple and a dict of
them, and a method's object as one of them. The function of C lies in the object that is called; an
object that has none is called by the `__call__` of its class.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_uint, c_ulong, c_void_p

_PLACE = object.__basicsize__  # of the function of C
_SIZE, _READ_ONLY = 19, 1  # of a member of a class: Py_T_PYSSIZET, Py_READONLY
_MEMBERS, _CALL = 72, 50  # parts of a class: Py_tp_members, Py_tp_call
# Flags of one: Py_TPFLAGS_...
_FIXED, _BASE, _VECTORCALL, _METHOD = 1 << 8, 1 << 10, 1 << 11, 1 << 17
_FLAGS, _OFFSET = 168, 56  # where they lie in it, and where in its objects their function does


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("kind", c_int),
        ("offset", c_ssize_t),
        ("flags", c_int),
        ("text", c_char_p),
    )


class _Part(ctypes.Structure):
    _fields_ = (("number", c_int), ("what", c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("size", c_int),
        ("item", c_int),
        ("flags", c_uint),
        ("parts", POINTER(_Part)),
    )


def _made() -> type:
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SIZE, _PLACE, _READ_ONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, c_void_p)
    of_members = _Part(_MEMBERS, ctypes.cast(members, c_void_p))
    parts = (_Part * 3)(of_members, _Part(_CALL, call))
    size = _PLACE + ctypes.sizeof(c_void_p)
    spec = _Spec(f"{__name__}.Callee".encode(), size, 0, _BASE | _VECTORCALL | _METHOD, parts)
    from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, POINTER(_Spec))(
        ("PyType_FromSpec", ctypes.pythonapi)
    )
    made: type = from_spec(spec)
    return made


Callee = _made()


def enable(kind: type) -> None:
    """Have objects of a class derived from `Callee`, which has a `__call__`, called by what is in
    them; and called as methods with their object, without an object made of both. From now on the
    class is as it is: code that looks methods up remembers none whose class may change."""
    flags = c_ulong.from_address(id(kind) + _FLAGS)
    if flags.value == kind.__flags__:
        flags.value |= _FIXED | _VECTORCALL | _METHOD


def place_of(kind: type) -> int:
    """Where in objects of a class the function of C is that calls them; 0: it is not known."""
    place = c_ssize_t.from_address(id(kind) + _OFFSET).value
    seen = c_ssize_t.from_address(id(Callee) + _OFFSET).value == _PLACE
    return place if seen and 0 < place < kind.__basicsize__ else 0


def set_function(x: object, address: int) -> None:
    """Have calls of an object made by a function of C; its class is enabled."""
    c_void_p.from_address(id(x) + _PLACE).value = address
