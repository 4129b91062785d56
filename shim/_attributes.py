"""Attributes of ndarray: real, imag, T, flat, flags and their setters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from ._door import door
from ._dtypes import NotSupported
from ._flags import flagsobj, flatiter
from ._handed import handed_class
from ._host import is_concrete
from ._index import setitem
from ._ndarray import as_array, is_followed_here, ndarray, to_numpy, view_of, within
from ._shapes import let_numpy_warn
from ._table import Kind, Row, add_row


def real(self: ndarray) -> ndarray:
    """The real part: a view of a complex array, a real array itself."""
    if not self._t.dtype.is_complex:
        return self
    part = self._t.resolve_conj().real
    return ndarray(part.clone(), (), True) if self._scalar else view_of(self, part, self._flip)


def imag(self: ndarray) -> ndarray:
    """The imaginary part: a view of a complex array, read-only zeros for a real one."""
    if self._t.dtype.is_complex:
        part = self._t.resolve_conj().imag
        return ndarray(part.clone(), (), True) if self._scalar else view_of(self, part, self._flip)
    zeros = ndarray(torch.zeros_like(self._t), (), self._scalar)
    zeros._readonly = True
    return zeros


_NUMBERS = (int, float, np.generic)


def _arrays_are_made() -> bool:
    """Whether NumPy makes an array of what is given to `real` and `imag`, as it did before 2.5."""
    x = np.zeros(1, np.uint8)
    try:
        x.real = -1
    except OverflowError:
        return False
    return True


_ARRAYS_ARE_MADE = _arrays_are_made()


def as_part(value: Any, dtype: np.dtype, as_array: Callable[[Any], Any]) -> Any:
    """What is given to `real` or `imag` of an array: NumPy before 2.5 makes an array of it first,
    which may be cast in any way."""
    if not _ARRAYS_ARE_MADE:
        return value
    if type(value) is complex and dtype.kind != "b":  # of which both parts count
        value = value.real
    if isinstance(value, _NUMBERS) and dtype.kind in "fc":
        return value
    return as_array(value) if isinstance(value, (*_NUMBERS, str, list, tuple)) else value


def _set_real(self: ndarray, value: Any) -> None:
    setitem(real(self), Ellipsis, as_part(value, self.dtype, as_array))


def _set_imag(self: ndarray, value: Any) -> None:
    if not self._t.dtype.is_complex:
        raise TypeError("array does not have imaginary part to set")
    setitem(imag(self), Ellipsis, as_part(value, self.dtype, as_array))


def transposed(self: ndarray) -> ndarray:
    """The axes in reverse order: a view."""
    if self._scalar:
        return self
    last = self._t.dim() - 1
    turned = self._t.permute(tuple(range(last, -1, -1)))
    return view_of(self, turned, tuple(sorted(last - f for f in self._flip)))


def matrix_transposed(self: ndarray) -> ndarray:
    """The last two axes swapped: a view. ValueError below two dimensions."""
    n = self._t.dim()
    if n < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    swap = {n - 1: n - 2, n - 2: n - 1}
    return view_of(self, self._t.mT, tuple(sorted(swap.get(f, f) for f in self._flip)))


def _set_shape(self: ndarray, shape: Any) -> None:
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    size = self._t.numel()
    if wanted.count(-1) == 1:
        known = math.prod(n for n in wanted if n != -1)
        wanted = tuple(size // known if n == -1 and known else n for n in wanted)
    if math.prod(wanted) != size or any(n < 0 for n in wanted):
        raise ValueError(f"cannot reshape array of size {size} into shape {_shape(shape)}")
    if self._flip and wanted != self.shape:
        raise NotSupported("setting the shape of a reversed array")
    let_numpy_warn(setattr, np.zeros(1), "shape", (1,))  # deprecated from NumPy 2.5 on
    try:
        self._t = self._t.view(wanted)
    except RuntimeError:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with "
            "the desired shape."
        ) from None


def _shape(shape: Any) -> str:
    return str((shape,) if isinstance(shape, int) else tuple(shape)).replace(" ", "")


def _set_flat(self: ndarray, value: Any) -> None:
    flatiter(self).assign(value)


def _in_host_memory(self: ndarray, name: str) -> np.ndarray:
    """NumPy's array on the very memory, of which such a protocol tells an address and which nobody
    else keeps. AttributeError, upon which NumPy asks for `__array__`: it is a copy."""
    t = self._t
    if t.device.type != "cpu" or t.is_conj() or t.is_neg() or is_followed_here(self):
        raise AttributeError(f"{name}: the elements do not lie in host memory as they are")
    return np.asarray(to_numpy(self))


def _array_interface(self: ndarray) -> dict:
    own = getattr(self, "_own", None)
    if own is not None:
        found = own.__array_interface__
        if own.dtype.names is not None and np.dtype(found["descr"]) != own.dtype:
            raise AttributeError("__array_interface__: it takes gaps between fields for fields")
        return found
    return _in_host_memory(self, "__array_interface__").__array_interface__


def _array_struct(self: ndarray) -> Any:
    """Only where torch has the dtype: the structure cannot say more, and NumPy misreads others."""
    if hasattr(self, "_own"):
        raise AttributeError("__array_struct__: numbers in host memory have it")
    return _in_host_memory(self, "__array_struct__").__array_struct__


def _cuda_array_interface(self: ndarray) -> dict:
    if self._flip:
        raise AttributeError("__cuda_array_interface__: a reversed array has none")
    return self._t.detach().__cuda_array_interface__


def _ctypes(self: ndarray) -> Any:
    """Not supported: a compiled function runs it in NumPy."""
    raise NotSupported("ndarray.ctypes")


def _set_attribute(name: str, array: Any, value: Any) -> None:
    setattr(array, name, value)


def _flat(self: ndarray) -> Any:
    """NumPy's own iterator where the elements are in host memory."""
    if within.wrapped or not is_concrete(self._t):
        return flatiter(self)
    return FlatIterator.of(to_numpy(self).flat)


FlatIterator = handed_class(np.flatiter)
_PROPERTIES = {
    "real": (real, _set_real, Kind.ARRAY),
    "imag": (imag, _set_imag, Kind.ARRAY),
    "T": (transposed, None, Kind.ARRAY),
    "mT": (matrix_transposed, None, Kind.ARRAY),
    "flat": (flatiter, _set_flat, Kind.ARRAY),
    "flags": (flagsobj, None, Kind.QUERY),
    "ctypes": (_ctypes, None, Kind.QUERY),
    "__cuda_array_interface__": (_cuda_array_interface, None, Kind.DATA),
}
for _name, (_get, _set, _kind) in _PROPERTIES.items():
    _label = f"ndarray.{_name}"
    _get = _flat if _get is flatiter else _get
    _public = door(_label, _get, attrgetter(_name))
    _setter = None if _set is None else door(_label, _set, partial(_set_attribute, _name))
    setattr(ndarray, _name, property(_public, _setter, doc=_get.__doc__))
    add_row(Row(f"ndarray.{_name}", _get, _kind, frozenset(("self",))))
# Not by doors: what goes to NumPy by these is a copy that nothing keeps.
for _name, _get in (("interface", _array_interface), ("struct", _array_struct)):
    setattr(ndarray, f"__array_{_name}__", property(_get))
add_row(Row("ndarray.__array_interface__", _array_interface, Kind.DATA, frozenset(("self",))))
ndarray.shape = ndarray.shape.setter(
    door("ndarray.shape", _set_shape, partial(_set_attribute, "shape"))
)
