"""Operators and methods of stand-ins, from the shim's own tables, and who has a say in what an
operator gives: an operand of a class of the user's may."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.shim._operators import OPERATORS, simple_power
from np_compile.tape.key import FLOAT, INT, NUMBERS, is_number
from np_compile.tape.node import Break

from ..frames import as_user
from ..names.origins import origin_of
from .array import Array, read, recorded

# Operators that give no warning, or, of sums and differences, hardly ever one.
NEVER_WARN = frozenset(
    [
        "add", "subtract", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
        "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    ]
)  # fmt: skip
# Types of operands beside arrays that NumPy takes as they are.
OPERANDS = frozenset((np.ndarray, int, float, bool, complex, np.float64, np.int64, np.bool_))
# Operators of Python's floats with the operand behind them; those of complex numbers among them.
_OF_FLOAT = frozenset(
    [
        "__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rpow__",
        "__rfloordiv__", "__rmod__", "__rdivmod__",
    ]
)  # fmt: skip
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_LOWEST_PRIORITY = -1e6  # NumPy's for its scalars, and for what names none
_COMPARISONS = {
    "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__",
    "__eq__": "__eq__", "__ne__": "__ne__",
}  # fmt: skip
_REFLECTED = {
    name: _COMPARISONS.get(name) or name.replace("__", "__r", 1)
    for name, (_, how) in OPERATORS.items()
    if how is False
}


def _is_foreign(other: Any) -> bool:
    """Whether an operand of an operator is none that NumPy computes with by itself: then both have
    a say in what comes out."""
    kind = type(other)
    if kind is Array or kind in (int, float, complex, bool, range):
        return False
    if kind is np.ndarray or isinstance(other, np.generic):
        return other.dtype not in shim.NUMPY_DTYPES
    if isinstance(other, NUMBERS):  # numbers that stand for Python's pass for them
        return issubclass(kind, NUMBERS) and not is_number(other)
    if kind is list or kind is tuple:
        return any(map(_is_foreign, other))
    if isinstance(other, torch.Tensor):  # among tensors it is one more array
        from ..state import current

        capture = current()
        return capture is None or not capture.tensors
    return isinstance(other, np.ndarray) or not hasattr(type(other), "__dlpack__")


def _with_foreign(a: Array, name: str, other: Any) -> Any:
    """An operator of an array and a foreign operand: what both make of it, on the real array.

    A class of the user's that NumPy leaves the answer to gets the stand-in, to go on recording.
    """
    kind = type(other)
    why = Break("foreign", f"{kind.__name__} has a say in what {name} gives")
    reflected = _REFLECTED.get(name)
    has_reflected = reflected is not None and (
        getattr(kind, reflected, None) is not getattr(object, reflected, None)
    )
    if has_reflected and origin_of(kind) == "user" and _defers(a, other):
        if reflected is not None and _is_pythons(a, reflected, other):
            return _in_python(a, reflected, other)
        return NotImplemented
    if not _defers(a, other):
        other = read(other)
        if type(other) is Array:
            return getattr(a, name)(other)

    def answer(real: Any, other: Any) -> Any:
        method = getattr(type(real), name, None)
        return NotImplemented if method is None else method(real, other)

    if not (has_reflected and isinstance(other, np.ndarray)):  # a subclass is asked first
        result = a._in_capture.foreign(answer, (a, other), {}, why)
        if result is not NotImplemented or (name in _COMPARISONS and not has_reflected):
            return result
    if name.startswith("__r") and reflected is None:
        return a._in_capture.foreign(
            _python_operator(name.replace("__r", "__", 1)), (other, a), {}, why
        )
    return a._in_capture.foreign(_python_operator(name), (a, other), {}, why)


def _python_operator(name: str) -> Callable:
    return divmod if name == "__divmod__" else getattr(operator, name)


def _defers(a: Array, other: Any) -> bool:
    """Whether NumPy leaves an operator to its right operand, by NEP 13."""
    if isinstance(other, np.ndarray):
        return False
    missing = object()
    protocol = getattr(type(other), "__array_ufunc__", missing)
    if protocol is not missing:
        return protocol is None
    own = _LOWEST_PRIORITY if a._is_scalar() else 0.0
    return own < getattr(other, "__array_priority__", _LOWEST_PRIORITY)


def _is_pythons(a: Array, name: str, other: Any) -> bool:
    """Whether Python computes an operator of `other` and `a` by itself, by `other`'s method of this
    name: a float64 scalar is a float, with which complex numbers are done, and those of classes
    derived from float, of which NumPy's is none."""
    if isinstance(other, np.generic) or not a._is_scalar() or a._in_capture.tensors:
        return False
    kind = type(other)
    number: type = float if isinstance(other, float) else complex
    own = getattr(number, name, None)
    if kind is float or own is None or getattr(kind, name, None) is not own:
        return False
    return a.dtype == np.float64 or (
        number is complex and kind is not complex and a.dtype == np.complex128
    )


def _in_python(a: Array, name: str, other: Any) -> Any:
    value = a._in_capture.real(a, "a number of Python's and a scalar that is one, too").item()
    return getattr(other, name)(value)


def binary(row: str, reverse: bool = False, name: str | None = None) -> Callable:
    """A ufunc of a stand-in and one other operand: the hottest path of recording.

    name: of one of Python's operators, where the other operand may have a say.
    """

    ufunc = getattr(np, row)
    by_python = reverse and name in _OF_FLOAT
    forward = (name or "").replace("__r", "__", 1)

    def plainly(self: Array, other: Any) -> Any:
        """In plain mode: NumPy computes it, on arrays and numbers."""
        c = self._in_capture
        kind = type(other)
        is_operand = kind is Array or (kind in OPERANDS and not (by_python and kind is complex))
        if c.closed or not is_operand:
            return otherwise(self, other)
        x = c.real(self, None) if self._np is None else self._np
        y = other
        if kind is Array:
            y = c.real(other, None) if other._np is None else other._np
        if row in NEVER_WARN:
            return c.new_plain(ufunc(y, x) if reverse else ufunc(x, y))
        call = as_user(2)
        return c.new_plain(call(ufunc, y, x) if reverse else call(ufunc, x, y))

    def otherwise(self: Array, other: Any) -> Any:
        if name is not None:
            if by_python and _is_pythons(self, forward, other):
                return _in_python(self, forward, other)
            repeats = row == "multiply" and isinstance(other, (list, tuple)) and self._is_scalar()
            if repeats and self.dtype.kind in "iu":
                return NotImplemented  # Python repeats the sequence
            if repeats or _is_foreign(other):
                return _with_foreign(self, name, other)
        return self._in_capture.call(row, (other, self) if reverse else (self, other), {})

    def method(self: Array, other: Any) -> Any:
        c = self._in_capture
        seg = c.seg
        if self._in_segment is not seg:
            if c.is_plain():
                return plainly(self, other)
            if self._sel is not None:
                return otherwise(self, other)
            c.enter(self)
        kind = type(other)
        if kind is Array:
            if other._in_segment is not seg:
                if other._sel is not None:
                    return otherwise(self, other)
                c.enter(other)
            key = (
                (row, other._as_number, self._as_number)
                if reverse
                else (row, self._as_number, other._as_number)
            )
            node = seg.node.next.get(key)
        elif kind is float:
            key = (row, FLOAT, self._as_number) if reverse else (row, self._as_number, FLOAT)
            node = seg.node.next.get(key)
            if node is not None and not node.special:
                seg.floats.append(other)
        elif kind is int and _INT64_MIN <= other <= _INT64_MAX:
            key = (row, INT, self._as_number) if reverse else (row, self._as_number, INT)
            node = seg.node.next.get(key)
            if node is not None and not node.special:
                seg.ints.append(other)
        else:
            node = None
        if node is None or node.special:
            return otherwise(self, other)
        seg.node = node
        return c.told(seg, node.value) if c.elements_read else recorded(c, seg, node.value)

    return method


def _inplace(name: str, row: str) -> Callable:
    plain = name.replace("__i", "__", 1)
    fallback, python = Array.__dict__[plain], _python_operator(plain)

    def method(self: Array, other: Any) -> Any:
        if self._is_scalar():
            return (python if isinstance(other, (list, tuple)) else fallback)(self, other)
        if _is_foreign(other):
            return _with_foreign(self, name, other)
        if row == "matmul":  # which refuses a vector
            return self._in_capture.call("ndarray.__imatmul__", (self, other), {})
        function = simple_power(self.dtype.kind, other) if row == "power" else None
        if function is not None:
            return self._in_capture.call(function, (self, self), {})
        return self._in_capture.call(row, (self, other, self), {})  # the third is `out`

    return method


def _power(name: str, reverse: bool) -> Callable:
    """`**`. As in NumPy, some exponents are functions of their own; a Python int is part of the
    call, since kernels differ by it."""

    def method(self: Array, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return NotImplemented
        if reverse and _is_pythons(self, "__pow__", other):
            return _in_python(self, "__pow__", other)
        if _is_foreign(other):
            return _with_foreign(self, name, other)
        if reverse:
            return self._in_capture.call("power", (other, self), {})
        function = None if self._is_scalar() else simple_power(self.dtype.kind, other)
        if function is not None:
            return self._in_capture.call(function, (self,), {})
        return self._in_capture.call("power", (self, other), {})

    return method


def _unary(row: str) -> Callable:
    def method(self: Array) -> Any:
        return self._in_capture.call(row, (self,), {})

    return method


def _method(row: str) -> Callable:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return self._in_capture.call(row, (self, *args), kwargs)

    return method


def _plain_binary(name: str, row: str, reverse: bool) -> Callable:
    forward = name.replace("__r", "__", 1)
    of_arrays = row == "matmul"  # which NumPy's scalars do not have

    def method(self: Array, other: Any) -> Any:
        if reverse and _is_pythons(self, forward, other):
            return _in_python(self, forward, other)
        if _is_foreign(other):
            return _with_foreign(self, name, other)
        if of_arrays and self._is_scalar() and not isinstance(other, np.ndarray):
            why = Break("numpy", "@ of scalars raises")
            args = (other, self) if reverse else (self, other)
            return self._in_capture.foreign(_python_operator(forward), args, {}, why)
        return self._in_capture.call(row, (other, self) if reverse else (self, other), {})

    return method


def _attach() -> None:
    """Operators and methods, from the shim's own tables."""
    for name, (row, how) in OPERATORS.items():
        if how is None:
            made: Callable = _unary(row)
        elif row == "power" and how != "inplace":
            made = _power(name, how is True)
        elif row in ("matmul", "divmod") and how != "inplace":
            made = _plain_binary(name, row, how is True)
        elif how == "inplace":
            continue
        else:
            made = binary(row, how is True, name)
        made.__name__ = name
        setattr(Array, name, made)
    for name, (row, how) in OPERATORS.items():
        if how == "inplace":
            made = _inplace(name, row)
            made.__name__ = name
            setattr(Array, name, made)
    for name in shim.TABLE:
        method = name.removeprefix("ndarray.")
        if (
            method != name
            and method not in Array.__dict__
            and callable(getattr(np.ndarray, method, None))
        ):
            made = _method(name)
            made.__name__ = method
            setattr(Array, method, made)
    Array.__name__ = "numpy.ndarray"  # by which Python's own errors call it


_attach()
