"""The array of the shim: a torch tensor with NumPy's semantics.

torch has no negative strides. An array is therefore a tensor `_t` and a tuple `_flip` of the axes
that are read backwards: `x[::-1]` is a view with `_flip=(0,)`, and a write through it arrives.
Functions that only read take `.tensor`, where the flips have been carried out.

A NumPy scalar is a 0-D array with `_scalar` set: immutable, so `s += 1` makes a new one.

Methods and operators are not written here: rows named "ndarray.<method>" of the table are attached
to the class when the package is imported.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch._C._functorch import (
    get_unwrapped,
    is_batchedtensor,
    is_functorch_wrapped_tensor,
    maybe_get_level,
)
from torch._C._functorch import peek_interpreter_stack as _transform
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad

from . import _saved, _unsigned
from ._devices import default_device
from ._dtypes import (
    NUMPY_DTYPES,
    TO_NUMPY,
    NotSupported,
    Weak,
    check_python_int,
    numpy_dtype,
    torch_dtype,
)


class _Within(threading.local):
    wrapped = False  # whether NumPy code of tensors runs, which may have others too
    grads = False  # whether there is one among these that requires a gradient


within = _Within()


class _ArrayType(type):
    """The type of ndarray: NumPy's arrays are instances too, and derived classes are NumPy's.

    base_of: what a class with such names derives from in its place; see `_subclass`.
    """

    base_of: Callable[[dict[str, Any]], type]

    def __new__(meta, name: str, bases: tuple, namespace: dict, **more: Any) -> type:
        if any(type(b) is meta for b in bases):
            own = meta.base_of(namespace)
            bases = tuple(own if type(b) is meta else b for b in bases)
            return type(np.ndarray)(name, bases, namespace, **more)
        return super().__new__(meta, name, bases, namespace, **more)

    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is cls or isinstance(value, np.ndarray)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, np.ndarray)


class ndarray(metaclass=_ArrayType):
    """NumPy's array on a torch tensor, on any device, with gradients.

    t: the tensor, shared and not copied. flip: axes that are read backwards.
    scalar: the array stands for a NumPy scalar (0-D, immutable).
    Or, as in NumPy: shape, dtype, buffer, offset, strides, order.

    An array whose dtype torch lacks is held as NumPy's own: `_own` is set and `_t` is not, and
    who asks for `_t` gets NotSupported.
    """

    __slots__ = (
        "__weakref__", "_base", "_flip", "_limits", "_own", "_readonly", "_scalar", "_shared", "_t",
    )  # fmt: skip
    _t: torch.Tensor
    _flip: tuple[int, ...]
    _scalar: bool
    _readonly: bool
    _base: ndarray | None
    _shared: Any
    _limits: tuple[int, int]  # of a NumPy scalar without data: as of a Weak; else unset
    _own: np.ndarray

    __array_priority__ = 1000.0

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is ndarray:
            return object.__new__(ndarray)
        own = (np.ndarray if v is ndarray else to_numpy(v) for v in args)  # of a derived class
        return np.ndarray.__new__(cls, *own, **{k: to_numpy(v) for k, v in kwargs.items()})

    def __init__(
        self, t: Any = None, flip: Any = (), scalar: Any = False, *more: Any, **given: Any
    ):
        self._base = self._shared = None
        self._readonly = False
        if isinstance(t, torch.Tensor):
            self._t = t
            self._flip = flip
            self._scalar = scalar
            return
        names = ("shape", "dtype", "buffer", "offset", "strides", "order")
        places = (t, *((flip, scalar) if flip != () else ()), *more)
        given = {**{n: v for n, v in zip(names, places, strict=False) if v is not None}, **given}
        if isinstance(given.get("buffer"), ndarray):
            given["buffer"] = np.asarray(given["buffer"])
        if given.get("buffer") is False:  # the default of `scalar`
            del given["buffer"]
        _take_over(self, np.ndarray(**given))

    def __getattr__(self, name: str) -> Any:
        if name == "_t":
            raise NotSupported(f"dtype {self._own.dtype.str!r} has no torch counterpart")
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    @property
    def tensor(self) -> torch.Tensor:
        """The array as a torch tensor: shared where no axis is reversed, else a copy."""
        return _unsigned.flip(self._t, self._flip) if self._flip else self._t

    @property
    def shape(self) -> tuple[int, ...]:
        try:
            return tuple(self._t.shape)
        except NotSupported:
            return self._own.shape

    @property
    def dtype(self) -> np.dtype:
        try:
            return TO_NUMPY[self._t.dtype]
        except NotSupported:
            return self._own.dtype

    @property
    def ndim(self) -> int:
        try:
            return self._t.dim()
        except NotSupported:
            return self._own.ndim

    @property
    def size(self) -> int:
        try:
            return self._t.numel()
        except NotSupported:
            return self._own.size

    @property
    def itemsize(self) -> int:
        try:
            return self._t.element_size()
        except NotSupported:
            return self._own.itemsize

    @property
    def nbytes(self) -> int:
        try:
            return self._t.numel() * self._t.element_size()
        except NotSupported:
            return self._own.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes along each axis, negative for reversed ones."""
        try:
            width = self._t.element_size()
        except NotSupported:
            return self._own.strides
        return tuple(
            -s * width if axis in self._flip else s * width
            for axis, s in enumerate(self._t.stride())
        )

    @property
    def base(self) -> ndarray | None:
        """The array this one is a view of, None when it owns its data."""
        return self._base

    @property
    def device(self) -> str:
        try:
            return str(self._t.device)
        except NotSupported:
            return "cpu"

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """What torch makes of an array: stored into a tensor it is a tensor. A module takes it for
        a buffer, since it has this method; torch's other functions do not."""
        if function is torch.Tensor.__setitem__:
            return function(*args[:2], as_tensor(args[2]))
        raise TypeError(
            f"torch's {getattr(function, '__name__', function)} of an array: arrays are NumPy's\n"
            "  Remedy: call NumPy's function, or hand the array over: `torch.from_numpy(x)`."
        )

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    if TYPE_CHECKING:  # rows of the table, of which mypy does not know

        def __getitem__(self, key: Any) -> ndarray: ...

        def __setitem__(self, key: Any, value: Any) -> None: ...


_new = object.__new__


def fresh(t: torch.Tensor, scalar: bool = False) -> ndarray:
    """`ndarray(t, (), scalar)`, for what frequent calls make."""
    x = _new(ndarray)
    x._t = t
    x._flip = ()
    x._scalar = scalar
    x._readonly = False
    x._base = x._shared = None
    return x


def refuse_own(a: ndarray) -> None:
    """NotSupported for an array that is NumPy's own."""
    _ = a._t


class _Sharing:
    """What an array and all views of it hold. views: those that are known, by identity."""

    __slots__ = ("views",)

    def __init__(self) -> None:
        self.views: weakref.WeakValueDictionary[int, ndarray] = weakref.WeakValueDictionary()


def _calibrated() -> int:
    held = [object()]
    token = held[0]
    return sys.getrefcount(token)


_ALONE = _calibrated()  # what Python counts of a token that an array and a variable refer to


def before_write(a: ndarray, *given: Any) -> None:
    """What autograd has saved of an array gets memory of its own before a write.

    Where that is not known, the array gets fresh memory, with what it is a view of: if nobody else
    can see it, all views are known, and it is not the caller's. given: what is written, and where;
    under `vmap` these may be many at once, and the array becomes as many.

    Errors: NotSupported, where it cannot.
    """
    if _transform() is not None:
        _spread(a, given)
    if _saved.is_followed():
        _saved.part(a._t)
        return
    owner = a if a._base is None else a._base
    if not (_followed(a) or owner._t.requires_grad) or not torch.is_grad_enabled():
        return
    views = _known_views(owner)
    if views is not None:
        _move(owner, views, owner._t.clone())


def _move(owner: ndarray, views: list[ndarray], memory: torch.Tensor) -> None:
    """Give an array and its views other memory, laid out as theirs."""
    old, owner._t = owner._t, memory
    shift = owner._t.storage_offset() - old.storage_offset()
    for view in views:
        t, whole, size = view._t, owner._t, 1
        if t.dtype is not old.dtype:
            whole, size = torch.view_as_real(whole), 2
        view._t = whole.as_strided(t.shape, t.stride(), t.storage_offset() + shift * size)


def _spread(a: ndarray, given: Iterable[Any]) -> None:
    """Make an array one for each example of `vmap`, if something of these is so."""
    tensors = [t for x in given for t in _tensors_in(x)]
    owner = a if a._base is None else a._base
    known = _levels(owner._t)
    many = [t for t in tensors if not _levels(t) <= known]
    if not many:
        return
    views = _known_views(owner)
    if views is None:
        raise NotSupported(
            "vmap: what differs among its examples is written to an array that is one for all"
        )
    of_all = sum(torch.zeros_like(t, dtype=torch.int64).sum() for t in many) == 0
    _move(owner, views, torch.where(of_all, owner._t, owner._t))


def _tensors_in(x: Any) -> Iterator[torch.Tensor]:
    """The tensors of arrays in an index, or a value."""
    if isinstance(x, (tuple, list)):
        for v in x:
            yield from _tensors_in(v)
    elif type(x) is ndarray:
        yield x._t
    elif isinstance(x, torch.Tensor):
        yield x


def _levels(t: torch.Tensor) -> set[int]:
    """The levels of `vmap` at which a tensor is many."""
    found = set()
    while is_functorch_wrapped_tensor(t):
        if is_batchedtensor(t):
            found.add(maybe_get_level(t))
        t = get_unwrapped(t)
    return found


def _known_views(owner: ndarray) -> list[ndarray] | None:
    """All that have the memory of an array, if they can have other memory; None else."""
    token = owner._shared
    if token is None:
        return []
    if type(token) is not _Sharing:
        return None
    views = list(token.views.values())
    dtypes = owner._t.dtype, owner._t.dtype.to_real()  # the latter of `.real` and `.imag`
    known = sys.getrefcount(token) == _ALONE + len(views)
    if known and _is_dense(owner._t) and all(view._t.dtype in dtypes for view in views):
        return views
    return None


def _followed(a: ndarray) -> bool:
    """Whether autograd may have saved what an array holds."""
    return within.grads or a._t.requires_grad


def is_followed_here(a: ndarray) -> bool:
    """Whether a gradient of an array is asked for, in a function that `wrap_numpy` runs."""
    if not within.wrapped or hasattr(a, "_own"):
        return False
    return (a._t.requires_grad and torch.is_grad_enabled()) or is_transformed(a._t)


def is_transformed(t: torch.Tensor) -> bool:
    """Whether a tensor is one of `torch.func`'s, or carries a forward derivative."""
    if is_functorch_wrapped_tensor(t):
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(t).tangent is not None


def _is_dense(t: torch.Tensor) -> bool:
    """Whether a copy has the same strides."""
    return torch.empty_like(t, device="meta").stride() == t.stride()


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements of an array may have one place in memory."""
    reach = 0
    for stride, extent in sorted(zip(map(abs, strides), shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return 0 not in shape
            reach += stride * (extent - 1)
    return False


def check_places(t: torch.Tensor) -> None:
    """NotSupported where elements of a tensor that is written to share memory: NumPy writes them
    one after the other, torch in any order."""
    if not t.is_contiguous() and overlaps_itself(t.shape, t.stride()):
        raise NotSupported("writes to elements that lie in one place")


def write(a: ndarray, values: torch.Tensor) -> None:
    """Set all elements of `a` from a tensor of its shape, cast; flipped axes from their end."""
    before_write(a, values)
    check_places(a._t)
    values = _unsigned.cast(values, a._t.dtype)
    a._t.copy_(_unsigned.flip(values, a._flip) if a._flip else values)


def write_new(a: ndarray, t: torch.Tensor) -> None:
    """As `write`, of a tensor of its dtype that nobody else has: it may take the place of what
    autograd has saved."""
    alone = a._base is None and a._shared is None
    saved = alone and _followed(a) and torch.is_grad_enabled()
    if saved and not a._flip and t.stride() == a._t.stride():
        a._t = t
    else:
        write(a, t)


def is_saved(a: ndarray, other: Any) -> bool:
    """Whether autograd saves what `a` holds where an operator of both is stored into it: in memory
    that is not given up for that."""
    if a._shared is None or not torch.is_grad_enabled() or _saved.is_followed():
        return False
    if not (a._t.requires_grad or (type(other) is ndarray and other._t.requires_grad)):
        return False
    return _known_views(a if a._base is None else a._base) is None


def may_share(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors may overlap in memory."""
    try:
        return a.untyped_storage()._cdata == b.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return True


def view_of(a: ndarray, t: torch.Tensor, flip: tuple[int, ...] = ()) -> ndarray:
    """The array on `t`, a view of the memory of `a`: same base, writeable when `a` is."""
    view = fresh(t)
    view._flip = flip
    base = a._base
    view._base = owner = a if base is None else base
    token = owner._shared
    if token is None:
        owner._shared = token = _Sharing()
    view._shared = token  # every view holds it: `before_write` counts them
    if (t.requires_grad or within.wrapped) and type(token) is _Sharing:
        token.views[id(view)] = view
    if a._scalar or a._readonly:
        view._readonly = True
    return view


def to_numpy(a: ndarray) -> Any:
    """The NumPy array (shared where it lies in host memory) or NumPy scalar of a shim array; what
    is NumPy's already is returned as it is."""
    if type(a) is not ndarray:
        return a
    try:
        t = a._t.detach()
    except NotSupported:
        return a._own
    if is_functorch_wrapped_tensor(t):
        plain = ndarray(_values(t), a._flip, a._scalar)
        plain._readonly = a._readonly
        with temporarily_clear_interpreter_stack():
            return to_numpy(plain)
    if t.device.type != "cpu":
        t = t.cpu()
    result = t.resolve_conj().resolve_neg().numpy()
    if a._flip:
        result = np.flip(result, a._flip)
    if a._readonly:
        result = result.view()
        result.flags.writeable = False
    return result[()] if a._scalar else result


def is_of_batch(t: torch.Tensor) -> bool:
    """Whether a tensor is another one for each of a batch: one of `vmap`'s."""
    while is_functorch_wrapped_tensor(t):
        if is_batchedtensor(t):
            return True
        t = get_unwrapped(t)
    return False


def _values(t: torch.Tensor) -> torch.Tensor:
    """What a tensor of a transform of `torch.func` holds. RuntimeError within `vmap`."""
    if is_of_batch(t):
        raise RuntimeError(
            "vmap: Python asks for the elements of an array, of which there is another one for "
            "each of the batch\n  Remedy: compute with NumPy's functions, such as np.where."
        )
    while is_functorch_wrapped_tensor(t):
        t = get_unwrapped(t)
    return t


class _Writable:
    """The memory of a read-only NumPy array, for torch, which knows no read-only tensors."""

    def __init__(self, a: np.ndarray):
        self.owner = a
        interface = dict(a.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        if not a.size:  # that of what is contiguous leaves them out
            interface["strides"] = a.strides
        self.__array_interface__ = interface


_WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE


def is_writeable(a: np.ndarray) -> bool:
    """As `a.flags.writeable`, which warns of the results of `np.broadcast_arrays`."""
    return bool(a.flags.num & _WRITEABLE)


def share_numpy(a: np.ndarray) -> ndarray:
    """A shim array on the very memory of a NumPy array, negative strides included.

    The result of a read-only array is marked read-only. ValueError, TypeError where torch cannot
    share: foreign byte order, strides that are no multiple of the item size.
    """
    readonly = not is_writeable(a)
    if readonly:
        a = np.asarray(_Writable(a))  # of which a single element has a positive stride
    flip = tuple(i for i, s in enumerate(a.strides) if s < 0)
    if flip and a.size:
        a = np.flip(a, flip)
    elif flip:  # as slices of nothing have the steps of what they are parts of
        a = np.ndarray(a.shape, a.dtype, a, 0, tuple(map(abs, a.strides)))
    if a.dtype.char in "lLqQ" and np.dtype(a.dtype.str).char != a.dtype.char:
        a = a.view(np.dtype(a.dtype.str))
    x = ndarray(torch.from_numpy(a), flip)
    if readonly:
        x._readonly = True
    return x


def from_numpy(a: np.ndarray) -> ndarray:
    """A shim array of a NumPy array: on its memory if torch can share that, else a copy; on the
    default device. NotSupported for dtypes that torch has not."""
    dtype = torch_dtype(a.dtype.newbyteorder("="))
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    try:
        x = share_numpy(a if _aligned(a) else a.copy())
    except (ValueError, TypeError):
        x = share_numpy(a.copy())
    assert x._t.dtype == dtype
    device = default_device()
    return x if device.type == "cpu" else ndarray(x._t.to(device), x._flip)


def _aligned(a: np.ndarray) -> bool:
    """Whether the elements lie where torch's kernels expect them: complex numbers as a whole."""
    return a.flags.aligned and (a.dtype.kind != "c" or a.ctypes.data % a.itemsize == 0)


def _take_over(x: ndarray, a: np.ndarray) -> None:
    """Make x, which is new, the array of `a`: on its memory, as a tensor where torch can."""
    x._flip, x._scalar = (), False
    if a.dtype in NUMPY_DTYPES and _aligned(a):
        try:
            shared = share_numpy(a)
        except (ValueError, TypeError):  # torch cannot say where its elements lie
            x._own = a
            return
        device = default_device()
        x._t = shared._t if device.type == "cpu" else shared._t.to(device)
        x._flip, x._readonly = shared._flip, shared._readonly
    else:
        x._own = a


def share_or_host(a: np.ndarray) -> ndarray:
    """The shim array on the memory of a NumPy array; NumPy's own behind it if torch lacks it."""
    x = ndarray.__new__(ndarray)
    x._base = x._shared = None
    x._readonly = False
    _take_over(x, a)
    return x


def from_tensor(t: torch.Tensor) -> ndarray:
    """A shim array on a torch tensor, shared. NotSupported for dtypes that NumPy has not."""
    numpy_dtype(t.dtype)
    a = ndarray(t)
    a._shared = True
    if t.requires_grad and within.wrapped:
        within.grads = True
        _saved.follow()
    return a


def as_array(value: Any) -> ndarray:
    """Any array-like as a shim array; a shim array is returned as it is."""
    if type(value) is ndarray:
        return value
    if isinstance(value, Weak):
        return ndarray(value.tensor, (), True)
    if isinstance(value, torch.Tensor):
        if within.wrapped:
            return from_tensor(value)
        raise TypeError(
            "got a torch.Tensor where the shim expects arrays; use wrap_numpy, or "
            "np_compile.shim.from_tensor(t)"
        )
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray:
            raise NotSupported(f"subclass of ndarray: {type(value).__name__}")
        a = from_numpy(value)
        if within.wrapped:
            a._shared = True
        return a
    if isinstance(value, np.generic):
        return ndarray(from_numpy(np.array(value))._t, (), True)
    if isinstance(value, (list, tuple)):
        return _stack(value) if _holds_arrays(value) else from_numpy(np.array(value))
    kind = type(value)
    if hasattr(kind, "__shim_array__"):
        return value.__shim_array__()
    if hasattr(kind, "__array_wrap__"):
        raise NotSupported(f"{kind.__name__} wraps up what NumPy gives")
    if hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_function__"):
        raise NotSupported(f"{kind.__name__} has its own answers to NumPy's functions")
    if hasattr(kind, "__array__") and not isinstance(value, (int, float, complex)):
        return read_array(value)
    return from_numpy(np.array(value))


def read_array(value: Any) -> ndarray:
    """What the `__array__` of an object gives."""
    found = value.__array__()
    return as_array(found) if isinstance(found, (ndarray, np.generic)) else from_numpy(found)


def _holds_arrays(values: Any) -> bool:
    return any(
        type(v) in (ndarray, Weak) or (isinstance(v, (list, tuple)) and _holds_arrays(v))
        for v in values
    )


def _stack(values: Any) -> ndarray:
    """A nested list with shim arrays in it, stacked as np.array would."""
    from ._dtypes import result_type

    parts = [as_operand(_stack(v) if isinstance(v, (list, tuple)) else v) for v in values]
    kinds = []
    for p in parts:
        if isinstance(p, torch.Tensor):
            kinds.append(p.dtype)
        elif isinstance(p, Weak):
            kinds.append(torch_dtype(p.kind))
        else:
            kinds.append(torch_dtype(np.array(p).dtype))
    dtype = result_type(*kinds)
    tensors = [scalar_tensor(p, dtype) for p in parts]
    if len({t.shape for t in tensors}) > 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            f"shape after 1 dimensions. The detected shape was ({len(tensors)},) + inhomogeneous "
            "part."
        )
    return ndarray(torch.stack(tensors))


def as_tensor(value: Any) -> torch.Tensor:
    """Any array-like as a tensor to read from; Python numbers get NumPy's default dtype."""
    a = value if type(value) is ndarray else as_array(value)
    return _unsigned.flip(a._t, a._flip) if a._flip else a._t


def as_operand(value: Any) -> Any:
    """As `as_tensor`, but Python numbers and Weak, which promote weakly, stay what they are."""
    if type(value) is ndarray:
        return _unsigned.flip(value._t, value._flip) if value._flip else value._t
    if type(value) in _WEAK:
        return value
    return as_tensor(value)


# What promotes weakly: Python's numbers themselves, none of a class derived from theirs.
_WEAK = frozenset((bool, int, float, complex, Weak))


def scalar_tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """An operand (tensor, Weak or Python number) as a tensor of `dtype`.

    Errors: OverflowError, as in NumPy, for a Python int that does not fit an integer dtype.
    """
    if isinstance(value, (torch.Tensor, Weak)):
        return _unsigned.cast(value.tensor if isinstance(value, Weak) else value, dtype)
    if type(value) is int:
        check_python_int(value, dtype)
        if dtype.is_floating_point or dtype.is_complex:
            value = float(value)  # of any size
    if dtype is torch.float16:
        with np.errstate(over="ignore"):  # who asks for that is told of it by NumPy
            value = float(np.float16(value))
    return torch.full((), value, dtype=dtype)


def store(out: Any, result: Any) -> Any:
    """Store a result into `out=` (cast same_kind, shapes equal) and return `out` itself."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if type(out) is not ndarray:
        raise TypeError("return arrays must be of ArrayType")
    if out._scalar or out._readonly:
        raise ValueError("output array is read-only")
    if type(result) is ndarray:
        result = result.tensor
    if tuple(out._t.shape) != tuple(result.shape):
        raise ValueError(
            f"output array has wrong shape {tuple(out._t.shape)}, expected {tuple(result.shape)}"
        )
    if not np.can_cast(TO_NUMPY[result.dtype], TO_NUMPY[out._t.dtype], "same_kind"):
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[result.dtype]!r} to "
            f"{TO_NUMPY[out._t.dtype]!r} according to the rule 'same_kind'"
        )
    write(out, result)
    return out
