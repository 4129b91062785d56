"""Operators of ndarray: each is a ufunc; the table below is the only list of them."""

from __future__ import annotations

from collections.abc import Callable
from operator import imatmul
from typing import Any

import numpy as np
import torch

from ._dtypes import Weak
from ._ndarray import as_array, is_saved, ndarray, write_new
from ._shapes import let_numpy_raise, stand_in
from ._table import TABLE, Kind, Row, add_row
from ._ufuncs import UFUNCS

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "matmul": "matmul",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_COMPARE = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

# Python's name of an operator -> (name of the row, how the operands come). The second part is
# False: in order; True: swapped; "inplace": stored into the first; None: one operand.
OPERATORS: dict[str, tuple[str, bool | str | None]] = {
    **{f"__{op}__": (name, False) for op, name in (_BINARY | _COMPARE).items()},
    **{f"__r{op}__": (name, True) for op, name in _BINARY.items()},
    **{f"__i{op}__": (name, "inplace") for op, name in _BINARY.items() if op != "divmod"},
    **{f"__{op}__": (name, None) for op, name in _UNARY.items()},
}

_KNOWN = frozenset((ndarray, int, float, complex, bool, np.ndarray, Weak, list, tuple))


def defers(other: Any) -> bool:
    """Whether an operator leaves the answer to the other operand, by NumPy's protocol."""
    if type(other) in _KNOWN or isinstance(other, (np.generic, np.ndarray, torch.Tensor)):
        return False
    if hasattr(other, "__array_ufunc__"):
        return other.__array_ufunc__ is None
    return getattr(other, "__array_priority__", 0.0) > ndarray.__array_priority__


def _function(name: str) -> Callable:
    if name in UFUNCS:
        return UFUNCS[name]
    return lambda *operands, **options: TABLE[name].function(*operands, **options)


def _forward(name: str) -> Callable:
    run = _function(name)

    def operator(self: ndarray, other: Any, /) -> Any:
        if type(other) not in _KNOWN and defers(other):
            return NotImplemented
        return run(self, other)

    return operator


def _swapped(name: str) -> Callable:
    run = _function(name)

    def operator(self: ndarray, other: Any, /) -> Any:
        if type(other) not in _KNOWN and defers(other):
            return NotImplemented
        return run(other, self)

    return operator


def _in_place(name: str) -> Callable:
    run = _function(name)
    plain = getattr(UFUNCS.get(name), "plain", None)

    def operator(self: ndarray, other: Any, /) -> Any:
        if type(other) not in _KNOWN and defers(other):
            return NotImplemented
        if self._scalar:
            return run(self, other)
        if plain is not None and _fits(self, other) and not is_saved(self, other):
            found = plain(self, other)
            if found is not None and found._t.dtype is self._t.dtype:
                if run.before_storing is not None:  # type: ignore[attr-defined]
                    run.before_storing((found._t,), (self, other), {})  # type: ignore[attr-defined]
                write_new(self, found._t)
                return self
        return run(self, other, out=self)

    return operator


def _fits(a: ndarray, other: Any) -> bool:
    """Whether an operator of both that is stored into the first one has nothing to be asked."""
    if a._readonly or a._flip or hasattr(a, "_own"):
        return False
    if type(other) is ndarray:
        return not (other._flip or hasattr(other, "_own")) and other._t.shape == a._t.shape
    return type(other) in (int, float)


def matmul_in_place(self: ndarray, other: Any, /) -> Any:
    """`self @= other`. ValueError for a vector as other, as its product has an axis less."""
    matmul = TABLE["matmul"].function
    if self._scalar:
        return matmul(self, other)
    other = as_array(other)
    if self.ndim and other.ndim == 1:
        raise ValueError(
            "inplace matrix multiplication requires the first operand to have at least one and "
            "the second at least two dimensions."
        )
    try:
        return matmul(self, other, out=self)
    except ValueError:
        let_numpy_raise(imatmul, np.empty(self.shape, bool), stand_in(other._t))
        raise


add_row(
    Row("ndarray.__imatmul__", matmul_in_place, Kind.ARRAY, frozenset(("self", "other"))),
)


def _power(in_place: bool) -> Callable:
    """Some powers of an array are ufuncs of their own, as in NumPy (bool ** 2 gives int8)."""
    run = (_in_place if in_place else _forward)("power")

    def operator(self: ndarray, other: Any, /) -> Any:
        name = None if self._scalar else simple_power(self.dtype.kind, other)
        if name is None:
            return run(self, other)
        return UFUNCS[name](self, out=self) if in_place else UFUNCS[name](self)

    return operator


def simple_power(kind: str, exponent: Any) -> str | None:
    """The ufunc that NumPy runs for the power of an array of this kind; None for `power`."""
    if type(exponent) is int:
        return (
            "square" if exponent == 2 else "reciprocal" if (kind, exponent) == ("c", -1) else None
        )
    if type(exponent) is not float or kind not in "fc":
        return None
    if exponent == 0.5:
        return "sqrt"
    simple = {1.0: "positive", 2.0: "square", -1.0: "reciprocal"}
    return simple.get(exponent) if kind == "f" else None


def _equality(name: str) -> Callable:
    run = UFUNCS[name]

    def operator(self: ndarray, other: Any, /) -> Any:
        if other is None:
            answer = name == "not_equal"
            if self._scalar:
                return answer
            return ndarray(torch.full(self._t.shape, answer, device=self._t.device))
        if type(other) not in _KNOWN and defers(other):
            return NotImplemented
        return run(self, other)

    return operator


def _alone(name: str) -> Callable:
    run = UFUNCS[name]

    def operator(self: ndarray, /) -> ndarray:
        return run(self)

    return operator


def make_operator(python_name: str) -> Callable:
    """The method for one key of OPERATORS."""
    name, order = OPERATORS[python_name]
    if python_name == "__imatmul__":
        return matmul_in_place
    if name == "power" and order is not True:
        made = _power(order == "inplace")
    elif order is None:
        made = _alone(name)
    elif name in ("equal", "not_equal"):
        made = _equality(name)
    else:
        made = {False: _forward, True: _swapped, "inplace": _in_place}[order](name)
    if order in (False, None) and name != "power" and hasattr(UFUNCS.get(name), "plain"):
        made.plain = UFUNCS[name].plain  # type: ignore[attr-defined]
    made.__name__ = made.__qualname__ = python_name
    return made
