"""What a value has to be for a region: a word for its type, by which regions tell values apart."""

from __future__ import annotations

import functools
import types
from enum import Enum
from typing import Any

import numpy as np

from np_compile.shim import is_writeable

from . import twister
from .linear import WIDE
from .source import written

SMALL = 1 << 31  # integers below are far from 64 bits, whatever a few products make of them
CONSTANT = 8  # extents up to here are constants of a region, as long as there are few regions
LIST = 64  # a list of so many items is looked into


def piece(x: Any, small: bool) -> Any:
    """The type of a value as regions tell values apart. small: whether short extents are part."""
    kind = type(x)
    if kind is np.ndarray:
        return _array_piece(x, small)
    if kind is int:
        if -WIDE <= x < 2 * WIDE:
            return "int" if -SMALL < x < SMALL else "long" if x < WIDE else "wide"
        return "huge", x
    if kind is float:
        return "float"
    if kind is bool or x is None or kind is str:
        return kind, x
    if kind is complex:
        return "complex"
    if kind is tuple or kind is list:
        if len(x) > LIST:
            return kind, len(x) if kind is tuple else -1
        return (kind, *[piece(y, small) for y in x])
    if isinstance(x, np.generic):
        return kind, x.dtype.char
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return (kind, *[piece(y, small) for y in x])
    if isinstance(x, types.FunctionType):
        return _function_piece(x)
    if (method := twister.method_of(x)) is not None:
        return "drawn", method
    if kind is range:
        return "range", piece(x.start, small), piece(x.stop, small), x.step
    if is_itself(x):
        return "same", id(x)
    if written(x) is not x:
        return "compiled", _function_piece(written(x))
    return kind


def is_itself(x: Any) -> bool:
    """Whether a value is known by its identity: a function that is not written in Python, a class,
    a module, a member of an enumeration."""
    fixed = (type, types.ModuleType, types.BuiltinFunctionType, np.dtype, functools.partial, Enum)
    return isinstance(x, fixed) or is_of_numpy(x)


def is_of_numpy(x: Any) -> bool:
    """Whether a value is one of NumPy's functions, or another object of NumPy's that is called."""
    return callable(x) and getattr(type(x), "__module__", "").startswith("numpy")


def _function_piece(f: types.FunctionType) -> Any:
    """A function that is made again, without anything of its own, is the same one."""
    if f.__closure__ or f.__defaults__ or f.__kwdefaults__:
        return "function", f, f.__code__
    return "function", f.__code__, id(f.__globals__)


def _array_piece(x: np.ndarray, small: bool) -> Any:
    flags = x.flags
    limit = CONSTANT if small else 1
    dims = tuple([n if n <= limit else -1 for n in x.shape])
    if flags.c_contiguous:
        return x.dtype.char, x.dtype.byteorder, dims, is_writeable(x)
    size = x.itemsize
    units = tuple([s == size for s in x.strides])
    whole = not any(s % size for s in x.strides) if size else False
    return x.dtype.char, x.dtype.byteorder, dims, is_writeable(x), units, whole
