"""The stand-in array: what user code holds while it is being captured.

Its shape and dtype are known, its data are not. An operation on it adds a call to the tape; asking
for its value (`float(x)`, `if x:`, `print(x)`) cuts the tape, and the compiled segment is run.

Slots of a stand-in, all with class defaults so that making one costs little. Programs ask objects
for attributes of theirs (`hasattr(x, "_v")`), and stand-ins come along, so none has a short name:

    _in_capture              the capture it belongs to
    _in_segment, _as_number  the segment in which it has this number
    _as_value                its Value: shape, dtype, ... (None: an argument nobody has asked yet)
    _base   the stand-in it is a view of, and _via the call that made it: (name, args, kwargs, pick)
    _root   the stand-in that owns the memory (None: itself)
    _t      roots: the torch tensor with the data, once there is one; _flip: axes to read backwards
    _np     the NumPy array on the same memory, once there is one
    _copied roots: whether that is a copy of an array met on the way
    _reformed whether its shape or dtype was set in place: it is a view of what it was
    _shown  what has the memory that `__array_interface__` told of
    _host   of what lives on a device: the caller's NumPy array, or the view of it. Of roots
            _dirty: it is behind the device; _ahead: it may be ahead, as other code touched it
    _fast   roots: _np, while single elements may be read from it at once
    _written_in   roots: the segment with a write to it that has not run yet
    _sig    roots: the key under which it enters a segment
    _sel    what it is a selection of, see `masked`; it has no data and no number then
    _by_size   whether `_via` has numbers that were traced, see `traced`
    _selects   masks: what it held when it was last used to select, a weak reference
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from math import prod, trunc
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.errors import TensorArgument
from np_compile.shim._attributes import as_part
from np_compile.tape.node import Break
from np_compile.tape.tree import leaves, mapped

from ..names.entrances import captured
from ..names.origins import plain_of
from .flags import Flags
from .flat import Flat

_new = object.__new__


def _read_in_numpy(a: Array, name: str) -> Any:
    return getattr(a._in_capture.memory(a, f"ndarray.{name} runs in NumPy"), name)


def _of_memory(name: str) -> property:
    """An attribute that is read in NumPy, and that nobody can set."""
    return property(lambda a: _read_in_numpy(a, name))


class Array:
    """A stand-in for a NumPy array or NumPy scalar inside a captured function."""

    _base: Any = None
    _via: Any = None
    _root: Any = None
    _t: Any = None
    _flip: tuple[int, ...] = ()
    _np: Any = None
    _fast: Any = None
    _host: Any = None
    _dirty = False
    _ahead = False
    _written_in: Any = None
    _in_segment: Any = None
    _as_number = -1
    _as_value: Any = None
    _sig: Any = None
    _scalar = False
    _readonly = False
    _copied = False
    _reformed = False
    _shown: Any = None
    _sel: Any = None
    _selects: Any = None
    _by_size = False

    __array_priority__ = 1e6

    def __new__(cls, capture: Any, a: Any = None) -> Array:
        if not hasattr(capture, "traces"):  # of a library that takes it for a type of numbers
            raise TypeError(f"no array is made of a {type(capture).__name__}")
        return _new(cls)

    def __init__(self, capture: Any, a: Any = None):
        self._in_capture = capture
        if a is not None:
            self._np = a

    # -- what is known without data ---------------------------------------------------------

    @property  # type: ignore[misc]  # `object` has a setter
    def __class__(self) -> type:  # isinstance(x, np.ndarray), isinstance(s, float) hold
        return self.dtype.type if self._is_scalar() else np.ndarray

    def _is_scalar(self) -> bool:
        v = self._as_value
        return v.scalar if v is not None else self._scalar

    @property
    def shape(self) -> tuple[int, ...]:
        c = self._in_capture
        return c.shape_seen(self, self._extents()) if c.traces else self._extents()

    @shape.setter
    def shape(self, value: Any) -> None:
        self._in_capture.change_in_place(self, "reshape", value)

    def _extents(self) -> tuple[int, ...]:
        """Its shape, which the user's code does not see."""
        v = self._as_value
        if v is not None:
            return v.shape
        if self._sel is not None:
            self._in_capture.settle(self)
        if self._np is None and self._t is not None:
            return tuple(self._t.shape)
        return self._known().shape

    @property
    def dtype(self) -> np.dtype:
        v = self._as_value
        if v is not None:
            return v.dtype
        if self._sel is not None:
            return self._sel.dtype
        if self._np is None and self._t is not None:
            return shim.ndarray(self._t).dtype
        return self._known().dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        self._in_capture.change_in_place(self, "ndarray.view", value)

    def _known(self) -> Any:
        """The NumPy array on the memory; on a device it is made anew for a view of plain mode."""
        return self._in_capture.real(self, "a view of plain mode") if self._np is None else self._np

    @property
    def ndim(self) -> int:
        v = self._as_value
        if v is not None:
            return v.ndim
        return 1 + self._sel.trailing if self._sel is not None else len(self._extents())

    @property
    def size(self) -> Any:
        n: Any = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def strides(self) -> tuple[int, ...]:
        if self._in_capture.traces:
            self._in_capture.watch.sees("the strides of an array")
        if self._as_value is None and self._np is not None:
            return self._np.strides
        return self._in_capture.meta(self).strides

    @property
    def flags(self) -> Any:
        return Flags(self)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """As in NumPy, on the array itself."""
        self._in_capture.set_flags(self, write, align, uic)

    @property
    def T(self) -> Any:
        return self._in_capture.call("ndarray.transpose", (self,), {})

    @property
    def mT(self) -> Any:
        return self._in_capture.call("ndarray.mT", (self,), {})

    @property
    def real(self) -> Any:
        return self._in_capture.call("real", (self,), {})

    @real.setter
    def real(self, value: Any) -> None:
        self._refuse_scalar("real")
        self._in_capture.call("real", (self,), {})[...] = self._as_part(value)

    @property
    def imag(self) -> Any:
        return self._in_capture.call("imag", (self,), {})

    @imag.setter
    def imag(self, value: Any) -> None:
        self._refuse_scalar("imag")
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self._in_capture.call("imag", (self,), {})[...] = self._as_part(value)

    def _refuse_scalar(self, part: str) -> None:
        if self._is_scalar():
            raise AttributeError(f"attribute '{part}' of 'numpy.generic' objects is not writable")

    def _as_part(self, value: Any) -> Any:
        return as_part(value, self.dtype, lambda x: self._in_capture.call("asarray", (x,), {}))

    @property
    def base(self) -> Any:
        of = self  # whose memory it is, as the caller sees it
        while of._base is not None and not _is_given(of):
            of = of._base
        real = of._np if of._np is not None else of._host
        above = None if real is None else real.base
        if isinstance(above, torch.Tensor) and not _is_given(of):
            above = None  # what a program made; nobody has its tensor
        if of is not self and not (_is_given(of) and type(above) is np.ndarray):
            return of
        known = self._in_capture.known.get(id(above))
        return above if known is None else known[1]

    data, ctypes, device = map(_of_memory, ("data", "ctypes", "device"))

    def __len__(self) -> int:
        shape = self._extents()
        if self._in_capture.traces and shape:
            self._in_capture.length_seen(self, shape)
        if not shape:
            if self._is_scalar():
                raise TypeError(f"object of type 'numpy.{self.__class__.__name__}' has no len()")
            raise TypeError("len() of unsized object")
        return shape[0]

    # -- elements and slices ----------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        # One element of data that lies in host memory: NumPy reads it, nothing is recorded.
        kind = type(key)
        if kind is int or (kind is tuple and key and type(key[-1]) is int):
            real = self._fast
            if real is None:
                real = self._in_capture.settled(self, key)
            if real is not None and (kind is int or Array not in map(type, key)):
                try:
                    r = real[key]
                except IndexError:
                    r = real
                if type(r) is not np.ndarray:
                    return r
                if kind is int and self._in_capture.plain and r is not real:
                    return self._in_capture.plain_view(self, key, r)
        if self._in_capture.plain:
            return self._in_capture.plain_item(self, key)
        return self._in_capture.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        c = self._in_capture
        kind = type(key)
        if (kind is int or (kind is tuple and key and type(key[-1]) is int)) and (
            type(value) is not Array
        ):
            root = owner(self)
            if root._in_segment is not c.seg:  # no recorded call waits to read it
                real = self._fast
                if real is None:
                    real = c.settled(self)
                if (
                    real is not None
                    and real.ndim == (1 if kind is int else len(key))
                    and (kind is int or Array not in map(type, key))
                ):
                    try:
                        real[key] = value
                        return
                    except IndexError:  # as above
                        pass
        c.setitem(self, key, value)

    def __iter__(self) -> Iterator:
        shape = self._extents()
        if self._in_capture.traces and shape:
            self._in_capture.length_seen(self, shape)
        if not shape:
            if self._is_scalar():
                raise TypeError(f"'numpy.{self.__class__.__name__}' object is not iterable")
            raise TypeError("iteration over a 0-d array")
        if (
            len(shape) == 1
            and self._in_capture.immediate
            and not self._in_capture.are_recorded(self, shape[0])
        ):
            return self._in_capture.elements(self, "iterates over the elements of an array")
        frame = sys._getframe(1)
        return self._in_capture.rows(self, (frame.f_code, frame.f_lasti))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        known = isinstance(found, (Array, np.ndarray, np.generic))  # not what value's own == gives
        return bool((found if known else np.array(found)).any())

    # -- where Python needs the value -------------------------------------------------------

    def __bool__(self) -> bool:
        return self._in_capture.decided(self, bool, "branches on an array's value")

    def __float__(self) -> float:
        return float(self._in_capture.real(self, "float() of an array"))

    def __int__(self) -> int:
        return self._in_capture.decided(self, int, "int() of an array")

    def __trunc__(self) -> int:
        return trunc(self._in_capture.real(self, "math.trunc() of an array"))

    def __complex__(self) -> complex:
        return complex(self._in_capture.real(self, "complex() of an array"))

    def __index__(self) -> int:
        return self._in_capture.decided(
            self, operator.index, "an array's value as an index or a size"
        )

    @property
    def flat(self) -> Any:
        if self._in_capture.differentiates():
            return Flat(self)
        return self._in_capture.memory(self, "ndarray.flat runs in NumPy").flat

    @flat.setter
    def flat(self, value: Any) -> None:
        if self._in_capture.differentiates():
            Flat(self)[:] = value
            return
        real = self._in_capture.reals(value)
        self._in_capture.memory(self, "ndarray.flat runs in NumPy").flat = real

    def __bytes__(self) -> bytes:
        return bytes(self._in_capture.real(self, "reads an array's memory"))

    def __buffer__(self, flags: int) -> memoryview:  # from Python 3.12 on
        return self._read_by_c().__buffer__(flags)

    def _read_by_c(self) -> Any:
        """What C code gets the buffer of; see `runtime.buffers`."""
        try:
            found = self._in_capture.memory(self, "reads an array's memory")
        except BaseException as e:
            self._in_capture.unheard = e  # NumPy drops it, and asks for `__array__`
            raise
        _note_shown(self, found)
        return found

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """As in NumPy, in place."""
        self._in_capture.resize(self, shape, refcheck)

    def item(self, *args: Any) -> Any:
        """As in NumPy; the value is needed."""
        return self._in_capture.real(self, "item() needs the value of an array").item(*args)

    def tolist(self) -> Any:
        """As in NumPy; the values are needed."""
        return self._in_capture.real(self, "tolist() needs the values of an array").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """As in NumPy; the values are needed."""
        return self._in_capture.real(self, "tobytes() needs the values of an array").tobytes(order)

    def __repr__(self) -> str:
        return repr(self._in_capture.real(self, "shows an array as text"))

    def __str__(self) -> str:
        return str(self._in_capture.real(self, "shows an array as text"))

    def __format__(self, spec: str) -> str:
        return format(self._in_capture.real(self, "shows an array as text"), spec)

    def __hash__(self) -> int:
        if self._is_scalar():
            return hash(self._in_capture.real(self, "hash() of a NumPy scalar"))
        raise TypeError("unhashable type: 'numpy.ndarray'")

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is None or not self._is_scalar():
            return round(self._in_capture.real(self, "round() to a Python int"), ndigits)
        return self._in_capture.call("round", (self, ndigits), {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._in_capture.real(self, "pickles an array").__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self._in_capture.call("ndarray.copy", (self, "K"), {})

    def __deepcopy__(self, memo: dict) -> Any:
        return self._in_capture.call("ndarray.copy", (self, "K"), {})

    # -- protocols --------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        unheard, self._in_capture.unheard = self._in_capture.unheard, None
        if unheard is not None:
            raise unheard
        a = np.asarray(
            self._in_capture.memory(self, "code outside the function reads an array", False)
        )
        _note_shown(self, a)
        if dtype is not None and a.dtype != dtype:
            return a.__array__(dtype, copy=copy)
        return a.copy() if copy else a

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self._in_capture.real_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._in_capture.real_function(function, args, kwargs)

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """A function of torch met a stand-in: it says what it says of a NumPy array."""
        from ..state import current

        capture = current()
        if capture is not None and capture.tensors and function is torch.Tensor.__setitem__:
            capture.cut(_STORES)  # what is recorded may read the tensor
            return function(*capture.tensors_of(args, _STORES))
        if capture is not None and capture.tensors and set(types) == {cls}:
            name = getattr(function, "__name__", str(function))
            raise TensorArgument(
                f"torch's {name} of an array: arrays in a wrapped function are NumPy's\n"
                "  Remedy: call NumPy's function, or hand the array over: `torch.from_numpy(x)`."
            )
        if capture is None or capture.tensors:
            return NotImplemented
        return capture.foreign(function, args, kwargs or {}, _MEETS_TENSOR)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self._in_capture.substitution.module(np)

    @property
    def __array_interface__(self) -> dict:
        # NumPy asks for it before `__array__`, and would keep the stand-in as the owner of memory.
        code = sys._getframe(1).f_code
        if "__array_interface__" not in (*code.co_names, *code.co_consts):  # or by `hasattr`
            raise AttributeError("__array_interface__")
        a = self._shown = np.asarray(
            self._in_capture.memory(self, "another library reads an array", False)
        )
        return a.__array_interface__

    def __conform__(self, protocol: Any) -> Any:  # by which sqlite3 asks, before it looks for bytes
        return self._in_capture.real(self, "another library reads an array")

    def __dlpack__(self, **kwargs: Any) -> Any:
        c, why = self._in_capture, "another library reads an array"
        of_tensor = c.tensors or c.device is not None or self._is_scalar()
        return (c.tensor if of_tensor else c.memory)(self, why).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._in_capture.tensor(self, "another library reads an array").__dlpack_device__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(
            self.dtype.type if self._is_scalar() else np.ndarray, name
        ):
            kind = self.__class__
            label = "numpy.ndarray" if kind is np.ndarray else f"numpy.{kind.__name__}"
            raise AttributeError(f"'{label}' object has no attribute '{name}'")
        return _read_in_numpy(self, name)


_STORES = Break("foreign", "an array is stored into a torch.Tensor")
_MEETS_TENSOR = Break(
    "foreign",
    "an array meets a torch.Tensor, which compile(wrap_numpy(f)) would record",
)


def recorded(capture: Any, seg: Any, value: Any) -> Array:
    """The stand-in of a value that a call in the segment gives."""
    r = _new(Array)
    r._in_capture = capture
    r._in_segment = seg
    r._as_number = value.index
    r._as_value = value
    seg.values.append(r)
    return r


def placed(seg: Any, value: Any) -> Array:
    """A stand-in of a value of a segment, which no capture knows of."""
    r = _new(Array)
    r._in_segment, r._as_number, r._as_value = seg, value.index, value
    return r


def elements(a: Array) -> int:
    """How many elements an array has."""
    return prod(a._extents())


def _note_shown(a: Array, memory: Any) -> None:
    """Note that code outside reads an array, and what it reads."""
    if isinstance(memory, np.ndarray):
        a._in_capture.shown[memory.__array_interface__["data"][0]] = a


def bases(a: Array, is_there: Callable[[Array], bool]) -> list[Array]:
    """What a view is a view of, the first of them first, up to the last one that is there. A view
    may be one of thousands, each of the last: too many for functions that call themselves."""
    found: list[Array] = []
    while a._base is not None and not (found and is_there(a)):
        a = a._base
        found.append(a)
    return found[::-1]


def owner(a: Array) -> Array:
    """The stand-in that owns the memory: of a view, what it is a view of in the end."""
    return a if a._root is None else a._root


def _is_given(a: Array) -> bool:
    """Whether it stands for an array of the caller's, by reference."""
    real = a._np if a._np is not None else a._host
    known = None if real is None else a._in_capture.known.get(id(real))
    return known is not None and known[1] is a


def viewing(r: Array, base: Array, via: tuple) -> Array:
    """A stand-in as a view of another one, by a call: (name, args, kwargs, place in its result)."""
    r._base = base
    r._root = owner(base)
    r._via = via
    return r


def _refusing(name: str) -> Callable[[Array, Any], None]:
    """The setter of an attribute that NumPy's arrays have only to be read."""

    def refuse(array: Array, value: Any) -> None:
        kind = "generic" if array._is_scalar() else "ndarray"
        raise AttributeError(f"attribute '{name}' of 'numpy.{kind}' objects is not writable")

    return refuse


for _name in ("ndim", "size", "itemsize", "nbytes", "T", "mT", "base", "flags"):
    setattr(Array, _name, getattr(Array, _name).setter(_refusing(_name)))


def read(x: Any) -> Any:
    """Arguments with array-likes of the user's read: their `__array__` may give a stand-in."""
    return mapped(x, _of_array_like)


_READ_OTHERWISE = Array, torch.Tensor, int, float, complex, str, bytes


def is_array_like(value: Any) -> bool:
    """Whether it is an object of the user's that NumPy reads through `__array__` alone."""
    kind = type(value)
    reads = _reading(kind)
    if not isinstance(reads, types.FunctionType) or isinstance(value, _READ_OTHERWISE):
        return False
    # NumPy asks one that has these for more.
    return not any(hasattr(kind, f"__array_{n}__") for n in ("ufunc", "function", "wrap"))


def let_read(capture: Any, x: Any) -> None:
    """Have NumPy find arrays where it reads array-likes of the user's among arguments, in its own
    way: how often it calls `__array__`, and with what, depends on the function."""
    for v in leaves(x):
        if is_array_like(v):
            capture.substitution.entrances.add(_reading(type(v)))


def _of_array_like(value: Any) -> Any:
    return captured(_reading(type(value)))(value) if is_array_like(value) else value


def _reading(kind: type) -> Any:
    """The `__array__` of a class, also where it is compiled by itself."""
    return plain_of(getattr(kind, "__array__", None))
