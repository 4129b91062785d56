"""Calls that run in NumPy: shim arrays in, on the same memory; shim arrays out.

What runs in NumPy, and why, is counted in `in_numpy`. Within `strict()` it raises in place of that.
"""

from __future__ import annotations

import cmath
import collections
import contextlib
import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from ._dtypes import TO_NUMPY, TO_TORCH, DataDependent, NotSupported, Weak
from ._ndarray import as_array, ndarray, overlaps_itself, share_or_host, to_numpy, within
from ._quiet import draws
from ._shapes import let_numpy_warn
from ._signals import ARITHMETIC, ONE_THREAD, level_beyond, noted

in_numpy: collections.Counter[tuple[str, str]] = collections.Counter()


class _Mode(threading.local):
    strict = False  # whether handing over is an error


_mode = _Mode()


@contextlib.contextmanager
def strict(on: bool = True) -> Iterator[None]:
    """A block in which nothing is handed over to NumPy: the shim's own error is raised."""
    before = _mode.strict
    _mode.strict = on
    try:
        yield
    finally:
        _mode.strict = before


def is_concrete(t: torch.Tensor) -> bool:
    """Whether a tensor's elements are at hand in host memory, and nothing follows what is done."""
    return (
        type(t) is torch.Tensor
        and t.is_cpu
        and not t.requires_grad
        and not _dispatch_modes()
        and _transform() is None
    )


_dispatch_modes = torch._C._len_torch_dispatch_stack
_transform = torch._C._functorch.peek_interpreter_stack  # the innermost of vmap, grad, ...


class Stays(NotSupported):
    """An argument that NumPy cannot have: without data, or with a gradient."""


class Handing:
    """The arguments of one call on their way to NumPy, and its results on the way back."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, ndarray]] = {}
        self._away: list[tuple[ndarray, np.ndarray, np.ndarray]] = []

    def give(self, value: Any, depth: int = 0) -> Any:
        """The argument for NumPy; itself where there is no shim array in it."""
        kind = type(value)
        if kind is ndarray:
            return self._array(value)
        if kind is list or kind is tuple or kind is set:
            if depth > 40 or not any(type(v) not in _PLAIN for v in value):
                return value
            items = [self.give(v, depth + 1) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else kind(items)
        if kind is dict:
            items = [self.give(v, depth + 1) for v in value.values()]
            same = all(a is b for a, b in zip(items, value.values(), strict=True))
            return value if same else dict(zip(value, items, strict=True))
        if kind in _PLAIN:
            return value
        if kind is Weak:
            return value.kind(value.tensor.item())
        if kind is slice:
            return slice(*(self.give(v) for v in (value.start, value.stop, value.step)))
        if value is ndarray:
            return np.ndarray
        own = getattr(kind, "__np_own__", None)
        if own is not None:
            found = own(value)
            self._known[id(found)] = (found, value)
            self._known.update(getattr(value, "_given", ()))
            return found
        if kind in _CALLABLE:
            real = getattr(value, "__numpy__", None)
            return _callback(value) if real is None else real
        if hasattr(kind, "__array__") and not _answers(kind):
            return _array_like(kind)(value)
        return value

    def _array(self, a: ndarray) -> Any:
        try:
            t = a._t
        except NotSupported:
            own = a._own
        else:
            if t.requires_grad or t.device.type == "meta":
                raise Stays("NumPy cannot have an array without data, or with a gradient")
            own = to_numpy(a)
            if t.device.type != "cpu" and not a._scalar:
                self._away.append((a, own, own.copy()))
        if isinstance(own, np.ndarray):
            self._known[id(own)] = (own, a)
        return own

    def take(self, value: Any) -> Any:
        """What NumPy gave, for who called: arrays as shim arrays; scalars are NumPy's."""
        kind = type(value)
        if kind is np.ndarray:
            known = self._known.get(id(value))
            if known is not None:
                return known[1]
            made = share_or_host(value)
            if value.base is not None:
                made._base = self._owner(value)
            return made
        if kind is tuple or kind is list:
            items = [self.take(v) for v in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else kind(items)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*map(self.take, value))
        if kind is dict:
            return {k: self.take(v) for k, v in value.items()}
        if isinstance(value, _ArrayLike):
            return value._value
        if kind is np.ufunc:
            return _UFUNCS.get(value, value)
        wrap = _WRAPPED.get(kind)
        if wrap is not None:
            known = self._known.get(id(value))
            if known is not None:
                return known[1]
            made = wrap(value)
            made._given.update(self.arrays())
            return made
        if isinstance(value, np.generic) and within.wrapped:
            return as_array(value) if value.dtype in TO_TORCH else value
        return value

    def arrays(self) -> dict[int, tuple[Any, ndarray]]:
        """The arrays that were given, by identity of NumPy's own."""
        return {k: pair for k, pair in self._known.items() if type(pair[1]) is ndarray}

    def _owner(self, result: np.ndarray) -> ndarray | None:
        for own, a in self._known.values():
            if type(a) is ndarray and np.may_share_memory(own, result):
                return a if a._base is None else a._base
        base = result.base
        return share_or_host(base) if type(base) is np.ndarray else None

    def settle(self) -> None:
        """Carry what NumPy wrote to copies of arrays on devices to the arrays."""
        for a, after, before in self._away:
            if after.tobytes() != before.tobytes():
                if overlaps_itself(a._t.shape, a._t.stride()):  # the copy's elements lie apart
                    raise Stays("NumPy writes to elements that lie in one place, on a device")
                a[...] = share_or_host(after)


_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis)))
_PLAIN |= {np.dtype(t).type for t in TO_TORCH}
_UFUNCS: dict[np.ufunc, ufunc] = {}  # of NumPy's, the shim's
# Stand-ins by identity of NumPy's object, which they hold.
_STANDING: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
# A class of NumPy's -> what makes its stand-in of an instance; see `handed_class`.
_WRAPPED: dict[type, Callable[[Any], Any]] = {}


def _answers(kind: type) -> bool:
    """Whether instances are NumPy's, or are asked for their own answer before they are read."""
    own = (np.ndarray, np.generic, np.flatiter, Handed, torch.Tensor)
    return kind in _WRAPPED or issubclass(kind, own) or hasattr(kind, "__array_ufunc__")


class _ArrayLike:
    """An object whose `__array__` gives a shim array, for NumPy."""

    def __init__(self, value: Any):
        self._value = value

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return Handing().give(self._value.__array__(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_value"], name)


def _wrap_up(self: _ArrayLike, array: Any, *context: Any) -> Any:
    return self._value.__array_wrap__(*map(Handing().take, (array, *context)))


def _forward(name: str) -> Callable:
    return lambda self, *args: getattr(self._value, name)(*args)


@functools.cache
def _array_like(kind: type) -> type:
    names = ("__len__", "__getitem__", "__float__", "__int__", "__index__", "__complex__")
    namespace: dict[str, Any] = {n: _forward(n) for n in names if hasattr(kind, n)}
    if hasattr(kind, "__array_wrap__"):
        namespace["__array_wrap__"] = _wrap_up
    return type(kind.__name__, (_ArrayLike,), namespace)


def _callback(function: Callable) -> Callable:
    """A function of the user's for NumPy to call: it meets shim arrays."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        handing = Handing()
        named = {k: handing.take(v) for k, v in kwargs.items()}
        return handing.give(function(*map(handing.take, args), **named))

    return call


def hand_over(label: str, own: Callable, args: tuple, kwargs: dict, why: Exception) -> Any:
    """Run a call in NumPy that the shim has refused. Errors are NumPy's own; `why` is raised in a
    `strict` block, and for tensors that NumPy cannot have."""
    if (
        _mode.strict
        or isinstance(why, DataDependent)
        or torch._C._len_torch_dispatch_stack()
    ):
        raise why
    handing = Handing()
    try:
        given = [handing.give(v) for v in args]
        named = {k: handing.give(v) for k, v in kwargs.items()}
    except Stays:
        raise why from None
    in_numpy[label, f"{type(why).__name__}: {why}"] += 1
    try:
        result = own(*given, **named)
    except Exception as error:
        raise error from None
    handing.settle()
    return handing.take(result)


def _doubtful(r: Any, divides: bool, noted: Callable[[], bool] | None = None) -> bool:
    """Whether some element of a row's result may come of a floating-point error that somebody
    asks for. divides: integers may err, too. noted: as in `_signals`, where the row is one of
    those that this is for."""
    if type(r) is ndarray:
        return _may_err(r._t, divides, noted)
    return type(r) is tuple and any(_doubtful(part, divides) for part in r)


def _again(own: Callable, args: tuple, kwargs: dict) -> None:
    """Have NumPy make a call again, for the errors that it gives as `np.errstate` asks."""
    if _mode.strict or within.wrapped:
        return
    handing = Handing()
    try:
        given = [handing.give(v) for v in args]
        named = {k: handing.give(v) for k, v in kwargs.items()}
    except Stays:
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            own(*given, **named)
        except FloatingPointError as error:
            raise error from None
    for warning in seen:
        if issubclass(warning.category, RuntimeWarning):
            warnings.warn(warning.message, stacklevel=level_beyond())


_DIVISIONS = frozenset(
    (np.floor_divide, np.remainder, np.fmod, np.divmod, "__floordiv__", "__mod__", "__divmod__")
)


def is_division(own: Callable) -> bool:
    """Whether a function of NumPy's, or a method of it, may err on integers."""
    names = own, getattr(own, "__self__", None), getattr(own, "__name__", "")
    return any(n in _DIVISIONS for n in names)


# The variable that holds what np.errstate set, and what it was, and said, when last looked at.
_errstate = getattr(np._core.umath, "_extobj_contextvar", None)
_seen: tuple[Any, bool, bool] = (None, True, True)


def _asked() -> tuple[bool, bool]:
    """Whether somebody wants to hear of underflow, and of the other floating-point errors."""
    global _seen
    state = None if _errstate is None else _errstate.get()
    known = _seen
    if state is None or known[0] is not state:
        heard = {error: how != "ignore" for error, how in np.geterr().items()}
        under = heard.pop("under")
        _seen = known = state, under, any(heard.values())
    return known[1], known[2]


def _doubtful_cast(args: tuple, r: Any) -> bool:
    """Whether `args[0].astype(...)` may have come to a value that the other dtype has not."""
    if type(r) is not ndarray or type(args[0]) is not ndarray or not any(_asked()):
        return False
    given, t = args[0].tensor, r._t
    inexact = t.is_floating_point() or t.is_complex()
    if inexact or t.dtype is torch.bool or not (given.is_floating_point() or given.is_complex()):
        return inexact and given.dtype is not t.dtype and _may_err(t, False, None)
    if not is_concrete(given) or not is_concrete(t):
        return False
    return not torch.equal(t.to(torch.float64), torch.trunc(given.real).to(torch.float64))


# Rows that store an argument into their first: its place and name.
_STORES = {"ndarray.__setitem__": (2, "value"), "ndarray.fill": (1, "value"), "copyto": (1, "src")}


def _cast_with_loss(args: tuple, value: Any) -> tuple[np.ndarray, np.dtype] | None:
    """A value that is stored into `args[0]`, as an array of NumPy's, and the dtype there, where
    the cast drops imaginary parts, or is a floating-point error that somebody asks for."""
    target = args[0] if args else None
    if type(target) is not ndarray or hasattr(target, "_own") or not is_concrete(target._t):
        return None
    dtype = TO_NUMPY[target._t.dtype]
    if type(value) is ndarray and value.dtype == dtype:
        return None
    if dtype.kind == "b" or (type(value) in (bool, int, float) and dtype.char in "dD"):
        return None
    try:
        given = np.asarray(Handing().give(value))
    except (Stays, TypeError, ValueError):  # the row has the word
        return None
    if given.dtype.kind == "c" and dtype.kind != "c":
        return given, dtype
    if any(_asked()) and not np.can_cast(given.dtype, dtype, "safe"):
        try:
            with np.errstate(all="raise", under="ignore"):
                given.astype(dtype)
        except FloatingPointError:
            return given, dtype
        except (ArithmeticError, TypeError, ValueError):
            return None
    return None


def _may_err(t: torch.Tensor, divides: bool, noted: Callable[[], bool] | None) -> bool:
    dtype = t.dtype
    if dtype.is_floating_point or dtype.is_complex:
        under, others = _asked()
        if not (under or others):
            return False
        if noted is not None and not under and dtype is not torch.float16:
            size = t.numel()  # where it is a symbol, nothing is to be asked of it
            if type(size) is int and size <= ONE_THREAD and not noted():
                return False
        if not is_concrete(t):
            return False
        if under:
            return True
        if not t.dim():
            return not cmath.isfinite(t.item())
        values = (t.resolve_conj().resolve_neg() if t.is_complex() or t.is_neg() else t).numpy()
        return not np.isfinite(values).all()
    # by 0: 0; the lowest integer by -1: itself, or 0
    return divides and is_concrete(t) and bool(((t == 0) | (t == torch.iinfo(t.dtype).min)).any())


_SCALARS = {t: n.type for t, n in TO_NUMPY.items()}
_INEXACT = frozenset(n for n in _SCALARS.values() if issubclass(n, np.inexact))


def scalar_or_array(r: ndarray) -> Any:
    """A result for the user: a NumPy scalar where it stands for one and its value is at hand."""
    if not r._scalar or within.wrapped or not is_concrete(r._t):
        return r
    return _SCALARS[r._t.dtype](r._t.item())


def results(r: Any) -> Any:
    """As `scalar_or_array`, for all that a row may give."""
    kind = type(r)
    if kind is ndarray:
        return scalar_or_array(r)
    if kind is tuple or kind is list:
        return kind(map(results, r))
    if isinstance(r, tuple) and hasattr(r, "_fields"):
        return kind(*map(results, r))
    return r


def door(label: str, row: Callable, own: Callable, signals: bool = False) -> Callable:
    """A row's function as users have it: what it refuses runs in NumPy, scalars are NumPy's.

    signals: floating-point errors are told as NumPy tells them.
    """

    plain = getattr(row, "plain", None)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            r = None if plain is None or kwargs else plain(*args)
            if r is None:
                r = row(*args, **kwargs)
        except Exception as why:
            return hand_over(label, own, args, kwargs, why)
        return r if type(r) is ndarray and not r._scalar else results(r)

    def call_and_tell(*args: Any, **kwargs: Any) -> Any:
        try:
            r = None if plain is None or kwargs else plain(*args)
            if r is None:
                r = row(*args, **kwargs)
        except Exception as why:
            return hand_over(label, own, args, kwargs, why)
        if type(r) is ndarray and r._scalar:
            found = scalar_or_array(r)
            if type(found) in _INEXACT:
                under, others = _asked()
                if under or (others and not cmath.isfinite(found)):
                    _again(own, args, kwargs)
                return found
        if kwargs.get("out") is None and doubts(args, r):
            _again(own, args, kwargs)
        return r if type(r) is ndarray and not r._scalar else results(r)

    def call_and_tell_of_cast(*args: Any, **kwargs: Any) -> None:
        place, name = _STORES[label]
        given = _cast_with_loss(args, args[place] if len(args) > place else kwargs.get(name))
        tell = method_of("astype")
        if given is not None and given[0].dtype.kind == "c":  # NumPy says so before it stores
            _again(tell, given, {})
        try:
            row(*args, **kwargs)
        except Exception as why:
            return hand_over(label, own, args, kwargs, why)
        if given is not None and given[0].dtype.kind != "c":
            _again(tell, given, {})
        return None

    divides = is_division(own)
    looks = noted if label in ARITHMETIC else None
    casts = label.rpartition(".")[2] == "astype"
    doubts = _doubtful_cast if casts else lambda _, r: _doubtful(r, divides, looks)
    call = call_and_tell_of_cast if label in _STORES else call_and_tell if signals else call
    made = call if hasattr(type(own), "__get__") else Unbound(call, label)
    _named_as(made, row, label)
    made.__wrapped__ = row
    made.__numpy__ = own
    return made


class Unbound:
    """A function that is no method of a class where it is an attribute, as those written in C."""

    def __init__(self, call: Callable, label: str):
        self._call = call
        self._label = label

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Unbound and self.__numpy__ == other.__numpy__)

    def __hash__(self) -> int:
        return hash(self.__numpy__)

    def __reduce__(self) -> tuple:
        return named, (self._label,)


def _named_as(call: Any, of: Any, label: str) -> None:
    path, _, name = label.rpartition(".")
    call.__name__ = name
    call.__qualname__ = label if path == "ndarray" else name
    call.__doc__ = of.__doc__
    call.__module__ = "np_compile.shim" if path in ("", "ndarray") else f"np_compile.shim.{path}"


def method_of(name: str) -> Callable:
    """NumPy's method: the array's own class is asked, not one derived from it."""

    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        cls = np.ndarray if isinstance(array, np.ndarray) else type(array)
        return getattr(cls, name)(array, *args, **kwargs)

    call.__name__ = name
    return call


def handed(label: str, own: Callable) -> Callable:
    """A function that the shim has no row for: it runs in NumPy."""
    why = NotSupported(f"numpy.{label} is not in the shim; a compiled function runs it in NumPy")

    def call(*args: Any, **kwargs: Any) -> Any:
        return hand_over(label, own, args, kwargs, why)

    made = call if hasattr(type(own), "__get__") else Unbound(call, label)
    _named_as(made, own, label)
    made.__wrapped__ = made.__numpy__ = own
    return made


@runtime_checkable
class Storing(Protocol):
    """A row that tells what it found, of which operands and with which options, before it stores
    that into `out=`, as that may overlap an operand."""

    before_storing: Callable[[tuple, tuple, dict], None] | None


class _UfuncType(type):
    """The type of ufunc: what it has not is that of NumPy's class."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ufunc, name)

    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is cls or isinstance(value, np.ufunc)


class ufunc(metaclass=_UfuncType):
    """NumPy's ufunc as users of the shim have it: `row` computes on tensors, NumPy what it lacks.

    row: the function of the table, None where there is none. methods: the rows of its methods.
    """

    def __init__(self, label: str, row: Callable | None, own: np.ufunc, methods: dict):
        self._own = own
        _UFUNCS[own] = self
        self._label = label
        self.__name__ = self.__qualname__ = own.__name__
        self.__doc__ = own.__doc__
        self._row = handed(label, own) if row is None else row
        self._plain = getattr(row, "plain", None)
        self._divides = is_division(own)
        self._noted = noted if label in ARITHMETIC else None
        if isinstance(row, Storing):
            row.before_storing = self._tell
        for name in ("reduce", "accumulate", "reduceat", "outer", "at"):
            path, method = f"{label}.{name}", getattr(own, name)
            found = methods.get(name)
            signals = name in ("reduce", "accumulate", "reduceat", "outer")
            made = handed(path, method) if found is None else door(path, found, method, signals)
            if name == "at" and found is not None:
                made._call = self._telling_at(made._call)
            setattr(self, name, made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            r = None if kwargs or self._plain is None else self._plain(*args)
            plain = r is not None
            if not plain:
                r = self._row(*args, **kwargs)
        except Exception as why:
            return hand_over(self._label, self._own, args, kwargs, why)
        if plain:
            if _may_err(r._t, self._divides, self._noted):
                _again(self._own, args, kwargs)
            return scalar_or_array(r) if r._scalar else r
        if len(args) > self._own.nin or "where" in kwargs:
            self._warn_of_call(args, kwargs)
        fresh = len(args) == self._own.nin and kwargs.get("out") is None
        unsafe = kwargs.get("casting") == "unsafe"
        if fresh and (unsafe or _doubtful(r, self._divides, self._noted)):
            _again(self._own, args, kwargs)
        return r if type(r) is ndarray and not r._scalar else results(r)

    def _warn_of_call(self, args: tuple, kwargs: dict) -> None:
        """Give the warnings that NumPy gives for the arguments' places alone."""
        if len(args) > self._own.nin:
            if self._label in ("maximum", "minimum"):
                let_numpy_warn(self._own, 0.0, 0.0, None)
        elif kwargs["where"] is not True and "out" not in kwargs:
            let_numpy_warn(np.positive, 0.0, where=False)

    def _telling_at(self, at: Callable) -> Callable:
        """`at`, which writes over what its errors come of: that is kept where somebody asks."""

        def call(a: Any, *args: Any, **kwargs: Any) -> None:
            given = None
            if type(a) is ndarray and not hasattr(a, "_own") and any(_asked()):
                inexact = a._t.is_floating_point() or a._t.is_complex()
                if (inexact or self._divides) and is_concrete(a._t):
                    given = to_numpy(a).copy()
            at(a, *args, **kwargs)
            if given is not None and _doubtful(a, self._divides):
                _again(self._own.at, (given, *args), kwargs)

        return call

    def _tell(self, results: tuple, args: tuple, options: dict) -> None:
        if any(_may_err(t, self._divides, self._noted) for t in results):
            _again(self._own, args, options)

    def __np_own__(self) -> np.ufunc:
        return self._own

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __eq__(self, other: object) -> bool:
        return self is other or other is self._own

    def __hash__(self) -> int:
        return hash(self._own)

    def __reduce__(self) -> tuple:
        return named, (self._label,)

    def __copy__(self) -> ufunc:
        return self

    def __deepcopy__(self, memo: Any) -> ufunc:
        return self


def named(path: str) -> Any:
    """What the shim has under a dotted name: how a pickled function comes back."""
    found: Any = sys.modules[__package__]
    for part in path.split("."):
        found = getattr(found, part)
    return found


class Handed:
    """An object of NumPy's that takes and gives shim arrays; its class is a `handed_class`.

    _own: NumPy's. _given: the arrays that it was made of, as in `Handing`: it may give them back.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        cls = type(self)
        handing = Handing()
        named = {k: handing.give(v) for k, v in kwargs.items()}
        self.__dict__["_own"] = own = cls._numpy(*map(handing.give, args), **named)
        self.__dict__["_given"] = handing.arrays()
        _STANDING[id(own)] = self

    @classmethod
    def of(cls, own: Any) -> Any:
        """What stands for an object of NumPy's: one object, as long as somebody has it."""
        x = _STANDING.get(id(own))
        if x is None:
            x = object.__new__(cls)
            x.__dict__["_own"] = own
            x.__dict__["_given"] = {}
            _STANDING[id(own)] = x
        return x

    def __np_own__(self) -> Any:
        return self.__dict__["_own"]

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        handing = Handing()
        return _member(handing.give(self), name, handing)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._own, name, Handing().give(value))

    def __reduce__(self) -> tuple:
        return _wrap, (type(self)._numpy, self._own)

    def __dir__(self) -> list[str]:
        return dir(self._own)


def _member(own: Any, name: str, handing: Handing) -> Any:
    value = getattr(own, name)
    if callable(value) and not isinstance(value, type):
        return drawing(value) if hasattr(value, "__name__") else functools.partial(returned, value)
    return handing.take(value)


def _wrap(own_class: type, own: Any) -> Any:
    return _WRAPPED[own_class](own)


_SPECIAL = (
    *("call", "getitem", "setitem", "delitem", "len", "iter", "next", "contains", "enter", "exit"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv"),
    *("mod", "rmod", "divmod", "rdivmod", "pow", "rpow", "neg", "pos", "eq", "ne", "lt", "le"),
    *("gt", "ge", "str", "repr", "format", "copy", "deepcopy", "bool", "hash"),
    *("getstate", "setstate"),
)


class _HandedType(type):
    """The type of such classes: their instances include NumPy's; other attributes are NumPy's."""

    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, cls._numpy)

    def __getattr__(cls, name: str) -> Any:
        if name == "_numpy":
            raise AttributeError(name)
        return _member(cls._numpy, name, Handing())


def _special(name: str) -> Callable:
    def method(self: Handed, *args: Any, **kwargs: Any) -> Any:
        return returned(getattr(type(self._own), name), self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def drawing(own: Callable) -> Callable:
    """A function of NumPy's that draws random numbers, or makes what does: it runs in NumPy."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        draws(f"random.{own.__name__}")
        return returned(own, *args, **kwargs)

    made = Unbound(draw, f"random.{own.__name__}")
    _named_as(made, own, own.__name__)
    made.__numpy__ = own
    return made


def returned(own: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """What a function of NumPy's gives, of shim arrays and as shim arrays."""
    handing = Handing()
    named = {k: handing.give(v) for k, v in kwargs.items()}
    result = own(*map(handing.give, args), **named)
    handing.settle()
    return handing.take(result)


def handed_class(own: type) -> type:
    """A class of NumPy's whose instances take and give shim arrays."""
    names = [f"__{n}__" for n in _SPECIAL]
    namespace: dict[str, Any] = {n: _special(n) for n in names if getattr(own, n, None) is not None}
    if hasattr(own, "__array__"):
        namespace["__array__"] = lambda self, *args, **kwargs: self._own.__array__(*args, **kwargs)
    namespace.update(_numpy=own, __doc__=own.__doc__, __module__=own.__module__)
    made = _HandedType(own.__name__, (Handed,), namespace)
    _WRAPPED[own] = made.of
    return made
