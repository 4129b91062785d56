"""Methods and attributes of ndarray that are no function of NumPy's namespace."""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import _attributes, _unsigned
from ._assigned import assigned
from ._door import door, method_of
from ._dtypes import TO_NUMPY, NotSupported, torch_dtype
from ._flags import flagsobj
from ._index import _fitted, one_element, refuse_list
from ._ndarray import before_write, is_followed_here, ndarray, share_or_host, to_numpy, view_of
from ._operators import OPERATORS, make_operator
from ._shapes import checked_order, copied, inverse, let_numpy_raise, memory_order, walking_order
from ._table import TABLE, Deferred, Kind, Row, add_row
from ._ufuncs import UFUNCS

__all__ = ["OPERATORS", "_attributes"]


def _method(name: str | None = None, kind: Kind = Kind.ARRAY, data: tuple[str, ...] = ("self",)):
    """Enter a function as the row "ndarray.<name>"."""

    def enter(f: Callable) -> Callable:
        signature = Deferred(lambda: inspect.signature(f))
        row_name = f"ndarray.{name or f.__name__}"
        add_row(Row(row_name, f, kind, frozenset(data), signature))
        return f

    return enter


def _is_laid_out(a: ndarray, order: str) -> bool:
    flags = flagsobj(a)
    c, f = flags.c_contiguous, flags.f_contiguous
    return {"C": c, "F": f, "A": c or f, "K": True}[order]


@_method()
def astype(
    self: ndarray,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> ndarray:
    """A copy in another dtype; `self` where copy=False and nothing changes.

    TypeError when `casting` forbids the cast; ComplexWarning when imaginary parts are dropped.
    """
    if copy is not True and copy is not False:
        let_numpy_raise(np.empty(0).astype, np.float64, copy=copy)
    wanted = torch_dtype(dtype)
    t = self._t
    given, asked = TO_NUMPY[t.dtype], TO_NUMPY[wanted]
    if casting != "unsafe" and not np.can_cast(given, asked, casting):
        raise TypeError(
            f"Cannot cast array data from {given!r} to {asked!r} according to the rule '{casting}'"
        )
    order = checked_order("K" if order is None else order)
    if wanted is t.dtype:
        as_it_is = not copy and _is_laid_out(self, order)
        return self if as_it_is else ndarray(copied(self, order), (), self._scalar)
    if t.dtype.is_complex and not wanted.is_complex and wanted is not torch.bool:
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=2,
        )
    axes = memory_order(self, order)
    result = _unsigned.cast(self.tensor.permute(axes), wanted)
    if not result.is_contiguous() or (t.dtype.is_complex and not wanted.is_complex):
        result = result.clone(memory_format=torch.contiguous_format)
    return ndarray(result.permute(inverse(axes)), (), self._scalar)


@_method()
def copy(self: ndarray, order: str = "C") -> ndarray:
    """A copy in fresh memory."""
    return ndarray(copied(self, order), (), self._scalar)


@_method()
def flatten(self: ndarray, order: str = "C") -> ndarray:
    """A one-dimensional copy, in C or Fortran order ("A", "K": as it lies in memory)."""
    t = self.tensor.permute(walking_order(self, order))
    return ndarray(t.clone(memory_format=torch.contiguous_format).reshape(-1))


@_method(kind=Kind.DATA)
def item(self: ndarray, *args: Any) -> Any:
    """One element as a Python number. ValueError when none is named and there are several."""
    return to_numpy(self).item(*args)


@_method(kind=Kind.DATA)
def tolist(self: ndarray) -> Any:
    """Nested lists of Python numbers."""
    return to_numpy(self).tolist()


@_method(kind=Kind.DATA)
def tobytes(self: ndarray, order: str = "C") -> bytes:
    """The memory of a contiguous copy."""
    return to_numpy(self).tobytes(order)


@_method(kind=Kind.IMPURE)
def tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    to_numpy(self).tofile(fid, sep=sep, format=format)


@_method(data=("self", "value"))
def fill(self: ndarray, value: Any) -> None:
    """Set every element, in place."""
    if self._scalar:
        return
    if self._readonly:
        raise ValueError("assignment destination is read-only")
    refuse_list(value, self.dtype)
    v = assigned(value, self._t.dtype, self._t.device, True)
    if v.dim():
        v = one_element(v, value)
    before_write(self, value)
    self._t.copy_(_fitted(v, self._t.shape, ()))


@_method()
def view(self: ndarray, dtype: Any = None, type: Any = None) -> ndarray:
    """The same memory as another dtype. ValueError when sizes do not fit."""
    for given in (dtype, type):
        if isinstance(given, _class) and issubclass(given, (np.ndarray, ndarray)):
            if given not in (np.ndarray, ndarray):
                raise NotSupported(f"view as a subclass of ndarray: {given.__name__}")
            dtype = None if given is dtype else dtype
            type = None if given is type else type
    if type is not None:
        raise TypeError("Type must be a sub-type of ndarray type")
    if dtype is None:
        return view_of(self, self._t[...], self._flip)
    wanted = torch_dtype(dtype)
    t = self._t
    if wanted is t.dtype:  # torch's view of the same dtype drops gradients
        return self if self._scalar else view_of(self, t[...], self._flip)
    if wanted.itemsize != t.dtype.itemsize:
        if t.dim() == 0:
            raise ValueError(
                "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
            )
        if t.stride(-1) != 1 or t.dim() - 1 in self._flip:
            raise ValueError(
                "To change to a dtype of a different size, the last axis must be contiguous"
            )
        if (t.shape[-1] * t.dtype.itemsize) % wanted.itemsize:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in "
                "bytes of the last axis of the array."
            )
    if self._scalar:
        return ndarray(t.view(wanted).clone(), (), True)
    if t.storage_offset() * t.dtype.itemsize % TO_NUMPY[wanted].alignment:
        raise NotSupported(f"a view as {wanted} that does not lie at a multiple of its size")
    return view_of(self, t.view(wanted), self._flip)


_class = type(ndarray)


@_method()
def byteswap(self: ndarray, inplace: bool = False) -> ndarray:
    """Not supported: a compiled function runs it in NumPy."""
    raise NotSupported(f"byteswap(inplace={inplace})")


@_method()
def resize(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Change shape and size in place, zeros at the end. ValueError where others see the memory.

    Whether names beside this one refer to the array, which NumPy asks unless refcheck is false,
    is not known here: it is never refused for that.
    """
    shape = new_shape[0] if len(new_shape) == 1 else new_shape
    if not isinstance(refcheck, (bool, int)):
        let_numpy_raise(np.zeros(1).resize, 1, refcheck=refcheck)
    if new_shape in ((), (None,)):
        return
    own = getattr(self, "_own", None)
    if own is not None:
        own.resize(shape, refcheck=False)
        return
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    let_numpy_raise(np.zeros(self.shape, np.int8).resize, shape, refcheck=False)
    changes = math.prod(shape) != self._t.numel()
    if changes and (self._base is not None or self._shared is not None or self._readonly):
        let_numpy_raise(np.zeros(4)[:2].resize, 3, refcheck=refcheck)
    flat = self.tensor.reshape(-1)
    made = torch.zeros(math.prod(shape), dtype=flat.dtype, device=flat.device)
    kept = min(flat.numel(), made.numel())
    made[:kept] = flat[:kept]
    self._t, self._flip = made.reshape(shape), ()


@_method()
def getfield(self: ndarray, dtype: Any, offset: int = 0) -> ndarray:
    """Not supported: a compiled function runs it in NumPy."""
    raise NotSupported(f"getfield({dtype!r}, offset={offset})")


@_method(data=("self", "val"))
def setfield(self: ndarray, val: Any, dtype: Any, offset: int = 0) -> None:
    """Not supported: a compiled function runs it in NumPy."""
    raise NotSupported(f"setfield({val!r}, {dtype!r}, offset={offset})")


@_method(kind=Kind.DATA)
def dumps(self: ndarray) -> bytes:
    """The pickle of the NumPy array."""
    return np.asarray(to_numpy(self)).dumps()


@_method(kind=Kind.IMPURE)
def dump(self: ndarray, file: Any) -> None:
    """Write the pickle of the NumPy array to a file."""
    np.asarray(to_numpy(self)).dump(file)


@_method(data=("self",))
def to_device(self: ndarray, device: Any, /, *, stream: Any = None) -> ndarray:
    """The array on a torch device: itself where it is there already."""
    if stream is not None:
        raise ValueError(f"to_device() takes no stream here, got {stream!r}")
    t = self.tensor.to(device)
    return self if t is self._t else ndarray(t, (), self._scalar)


def _conjugate(self: ndarray) -> ndarray:
    """Complex conjugate; a real array is returned as it is."""
    return UFUNCS["conjugate"](self) if self._t.dtype.is_complex else self


add_row(
    Row(
        "ndarray.conj",
        _conjugate,
        Kind.ARRAY,
        frozenset(("self",)),
        Deferred(lambda: inspect.signature(_conjugate)),
    ),
    "ndarray.conjugate",
)


@_method()
def setflags(self: ndarray, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Set whether the array may be written to."""
    if align is not None and not align:
        raise NotSupported("setflags(align=False)")
    if uic:
        raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
    if write is not None:
        flagsobj(self).writeable = write


# Python's protocols


@_method("__bool__", Kind.DATA)
def _bool(self: ndarray) -> bool:
    if self._t.numel() != 1:
        return bool(to_numpy(self)) if self._t.device.type != "meta" else bool(np.empty(self.shape))
    return bool(self._t != 0)


def _delegate(name: str, convert: Callable) -> None:
    def method(self: ndarray, /) -> Any:
        return convert(to_numpy(self))

    method.__name__ = method.__qualname__ = name
    _method(name, Kind.DATA)(method)


for _name, _convert in (
    ("__int__", int),
    ("__float__", float),
    ("__complex__", complex),
    ("__index__", operator.index),
):
    _delegate(_name, _convert)


@_method("__hash__", Kind.DATA)
def _hash(self: ndarray) -> int:
    if not self._scalar:
        raise TypeError("unhashable type: 'numpy.ndarray'")
    return hash(to_numpy(self))


@_method("__iter__")
def _iter(self: ndarray) -> Iterator[ndarray]:
    if self._t.dim() == 0:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(self._t.shape[0]))


@_method("__delitem__")
def _delitem(self: ndarray, index: Any) -> None:
    raise ValueError("cannot delete array elements")


@_method("__contains__", Kind.DATA, ("self", "value"))
def _contains(self: ndarray, value: Any) -> bool:
    return bool((UFUNCS["equal"](self, value))._t.any())


def _shown(self: ndarray, how: Callable) -> str:
    if self._t.device.type == "meta":
        return f"array(shape={self.shape}, dtype={self.dtype}, device='meta')"
    return how(to_numpy(self))


@_method("__repr__", Kind.DATA)
def _repr(self: ndarray) -> str:
    return _shown(self, repr)


@_method("__str__", Kind.DATA)
def _str(self: ndarray) -> str:
    return _shown(self, str)


@_method("__format__", Kind.DATA)
def _format(self: ndarray, spec: str) -> str:
    return format(to_numpy(self), spec)


@_method("__round__", Kind.DATA)
def _round(self: ndarray, ndigits: Any = None) -> Any:
    if not self._scalar:
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    if ndigits is None:
        return round(to_numpy(self))
    return TABLE["round"].function(self, ndigits)


@_method("__copy__")
def _copy(self: ndarray) -> ndarray:
    return copy(self, "K")


@_method("__deepcopy__")
def _deepcopy(self: ndarray, memo: Any) -> ndarray:
    made = copy(self, "K")
    memo[id(self)] = made
    return made


def _rebuild(values: Any, scalar: bool) -> ndarray:
    made = share_or_host(np.array(values))
    made._scalar = scalar
    return made


@_method("__reduce__", Kind.DATA)
def _reduce(self: ndarray) -> tuple:
    return _rebuild, (np.asarray(to_numpy(self)), self._scalar)


# meeting NumPy, and others


def _check_no_gradient_is_lost(a: ndarray) -> None:
    """Before code outside gets the elements. NumPy asks for a buffer first, and for `__array__`
    where that raises anything; other libraries ask for one of these alone."""
    if is_followed_here(a):
        raise NotSupported(
            "code outside reads an array that requires a gradient, which would be lost: "
            "call it under torch.no_grad(), or replace it by NumPy's calls that the shim has"
        )


@_method("__array__", Kind.DATA)
def _array(self: ndarray, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
    _check_no_gradient_is_lost(self)
    shared = np.asarray(to_numpy(self))
    if copy is False and self._t.device.type != "cpu":
        raise ValueError("Unable to avoid copy: the array is not in host memory")
    if dtype is not None and np.dtype(dtype) != shared.dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return shared.astype(dtype)
    return shared.copy() if copy else shared


if hasattr(memoryview, "__buffer__"):  # before Python 3.12 only classes in C have it

    def _buffer(self: ndarray, flags: int) -> memoryview:
        _check_no_gradient_is_lost(self)
        return np.asarray(to_numpy(self)).__buffer__(flags)

    ndarray.__buffer__ = _buffer  # type: ignore[attr-defined]


@_method("__dlpack__", Kind.DATA)
def _dlpack(
    self: ndarray,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    _check_no_gradient_is_lost(self)
    if self._readonly and not copy:
        raise BufferError("Cannot export readonly array since signalling readonly is unsupported")
    if self._flip and copy is False:
        raise BufferError("a reversed array cannot be exported without a copy")
    t = self.tensor.detach()
    return t.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


@_method("__dlpack_device__", Kind.QUERY)
def _dlpack_device(self: ndarray) -> tuple:
    return self._t.__dlpack_device__()


@_method("__array_namespace__", Kind.QUERY)
def _array_namespace(self: ndarray, *, api_version: str | None = None) -> Any:
    let_numpy_raise(np.zeros(0).__array_namespace__, api_version=api_version)
    import np_compile.shim

    return np_compile.shim


def _row_of(name: str) -> Callable:
    row = TABLE.get(name)
    if row is None:
        raise TypeError(
            f"numpy.{name} is not in the shim; a compiled function runs it in NumPy, "
            "np_compile.shim.to_numpy(a) gives it arrays of its own"
        )
    return row.function


@_method("__array_ufunc__", data=("self",))
def _array_ufunc(self: ndarray, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    return _row_of(name)(*inputs, **options)


@_method("__array_function__", data=("self",))
def _array_function(self: ndarray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if not all(issubclass(t, (ndarray, np.ndarray)) for t in types):
        return NotImplemented
    path = (func.__module__ or "numpy").removeprefix("numpy").lstrip(".")
    inner = f"{path}.{func.__name__}"
    return _row_of(inner if inner in TABLE else func.__name__)(*args, **kwargs)


for _name, (_, _how) in OPERATORS.items():
    _operator, _own = make_operator(_name), method_of(_name)
    setattr(ndarray, _name, door(f"ndarray.{_name}", _operator, _own, _how != "inplace"))
