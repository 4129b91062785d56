"""The names of captured code: recording NumPy, marked `range`, other libraries through a break."""

from __future__ import annotations

import builtins
import functools
import math
import sys
import types
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

import numpy as np
import torch

from np_compile import config, disallowed
from np_compile.tape.node import Break
from np_compile.tape.tree import mapped, of_type

from ..arrays.array import Array
from ..arrays.traced import Traced
from ..arrays.transfers import LARGE
from ..exchange.arguments import holds_arrays
from ..policy.loops import MarkedRange
from ..state import current, switch
from .entrances import CACHED
from .namespace import (
    RANDOM_SOURCES,
    RandomSource,
    RecordingModule,
    RecordingModules,
    RecordingUfunc,
    Standing,
    mentions,
    real_of,
    replacement,
    stands_for_array,
)
from .origins import origin_of
from .substitute import Substitution, compares_numpy, evaluators, importer

BY_IDENTITY = "compares a function of NumPy's by `is`: `==` is recorded"


def _label(function: Callable) -> str:
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))
    return f"{module}.{name}" if module else str(name)


def foreign(function: Callable, why: Break | None = None) -> Callable:
    """A function that gets NumPy arrays, outside the tape."""
    why = why or Break("foreign", f"calls {_label(function)}, which is not NumPy")
    users = origin_of(function) == "user"  # it may have an entrance, which leads here

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        capture = current()
        if capture is None:
            return function(*args, **kwargs)
        if not mentions(args) and not mentions(kwargs):
            return (
                capture.foreign(function, args, kwargs, None)
                if users
                else function(*args, **kwargs)
            )
        return capture.foreign(function, args, kwargs, why)

    return call


class _Maker(Standing):
    """A class whose instances are made of values, outside the tape."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return foreign(self.__np_compile_real__)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return foreign(value) if isinstance(value, types.BuiltinMethodType) else value


class _Cached(Standing):
    """A function with a cache: what it calls is to give arrays, for it keeps them."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = switch(None, None)
        try:
            return self.__np_compile_real__(*args, **kwargs)
        finally:
            switch(*before)


_STAND_INS = (Array, Traced, MarkedRange, RandomSource, RecordingUfunc)


def _stand_in_class(real: type, call: Callable) -> type:
    """A builtin class for captured code: `call` in the place of its constructor, else the same."""

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    return Meta(real.__name__, (type,) if real is type else (), {})


def _type_of(*args: Any, **kwargs: Any) -> Any:
    """`type(x)` of a stand-in is the type NumPy would give."""
    if len(args) == 1 and not kwargs:
        real = type(args[0])
        return args[0].__class__ if real in _STAND_INS else real
    return type(*args, **kwargs)


def _length(x: Any) -> Any:
    """`len(x)` of a stand-in; in a call that may be kept for many sizes it is traced."""
    if type(x) is Array and x._in_capture.traces and x.ndim:
        return x.shape[0]
    return len(x)


def _memory_of(real: type) -> Callable:
    """`memoryview(x)`, `bytearray(x)` of the memory of a stand-in."""

    def call(*args: Any, **kwargs: Any) -> Any:
        why = "reads an array's memory"
        return real(
            *(a._in_capture.memory(a, why) if type(a) is Array else a for a in args), **kwargs
        )

    return call


def _extreme(name: str) -> Callable:
    """`max` or `min`: over NumPy scalars of one type it is recorded, else Python's own."""
    real = getattr(builtins, name)
    compare = "greater" if name == "max" else "less"

    def extreme(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2 or kwargs or not all(type(a) is Array and a._is_scalar() for a in args):
            return real(*args, **kwargs)
        best = args[0]
        capture = best._in_capture
        if (capture.fullgraph is False and capture.plain) or any(
            a.dtype != best.dtype for a in args
        ):
            return real(*args)
        for a in args[1:]:
            chosen = capture.call("where", (capture.call(compare, (a, best), {}), a, best), {})
            best = capture.call("ndarray.__getitem__", (chosen, ()), {})
        return best

    return extreme


class _Builtin(Standing):
    """A function of Python's for captured code."""

    def __init__(self, real: Callable, call: Callable):
        super().__init__(real)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


class TorchNames:
    """The module `torch` for captured code: its doors to NumPy know stand-ins."""

    def __init__(self, real: Any):
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_real"], name)
        if name in ("from_numpy", "as_tensor", "asarray", "tensor") and (
            self.__dict__["_real"] is torch
        ):
            return _to_torch(value, copies=name == "tensor")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_real"], name, value)


@functools.cache
def _torch_names(module: Any) -> TorchNames:
    return TorchNames(module)


def _to_torch(real: Callable, copies: bool) -> Callable:
    @functools.wraps(real)
    def convert(data: Any, *args: Any, **kwargs: Any) -> Any:
        if type(data) is not Array:
            return real(data, *args, **kwargs)
        why = Break("foreign", f"torch.{real.__name__} takes an array over to torch")
        t = data._in_capture.tensor(data, why)
        if not copies:
            data._in_capture.lent.append(data)
        if real.__name__ == "from_numpy":
            return t
        if not copies:
            return real(t, *args, **kwargs)
        grad = kwargs.pop("requires_grad", False)
        kwargs.setdefault("dtype", args[0] if args else None)
        return t.detach().clone().to(**kwargs).requires_grad_(grad)

    return convert


def _substitution() -> Substitution | None:
    capture = current()
    return None if capture is None else capture.substitution


_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def _is_own(frame: types.FrameType | None) -> bool:
    """Whether it is code of this package that has called torch, and torch this frame."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith("torch."):
            return bool(name.startswith("np_compile."))
        frame = frame.f_back
    return False


class TensorDoors(torch.overrides.TorchFunctionMode):
    """Within a capture, `t.numpy()` gives a stand-in on the tensor: no copy, no lost gradient.

    Once torch has the memory of an array, its functions find in it what the code before has written
    there, and change nothing that recorded code has still to read.
    """

    def __torch_function__(
        self, func: Any, kinds: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        capture = current()
        if capture is not None and not (capture.closed or _is_own(sys._getframe(1))):
            if capture.lent and capture.seg.node is not capture.root:
                capture.cut(Break("foreign", "torch uses memory that it shares with an array"))
            if func is torch._C._set_grad_enabled and capture.grads:
                capture.cut(Break("asked", "gradients are switched on or off"))
            if func in _INDEXING and (mentions(args[1:]) or mentions(kwargs)):
                why = Break("foreign", "a torch.Tensor is indexed by an array")
                convert = capture.tensors_of if capture.tensors else capture.reals
                args = convert(args, why)
            if func is torch.Tensor.numpy:
                t = args[0]
                if stands_for_array(capture, t):
                    return capture.adopt(t.detach() if kwargs.get("force") else t)
                return capture.taken_from(func(*args, **kwargs))
        return func(*args, **kwargs)


class _Vain(Exception):
    """A call that is better recorded."""


_VAIN = 3  # calls that were better recorded, before all are
_APART = (Array, Traced, RandomSource, np.ndarray, np.generic, int, float, complex, str, NoneType)


def _apart(f: types.FunctionType, copy: types.FunctionType, reading: Callable) -> Callable:
    """What stands for a function that goes by elements. It is called on NumPy arrays, outside the
    tape, compiled with its loops or as it stands; where that is no good its copy is recorded.
    reading: gives, of a function, what does so: its result in a tuple, or None if it will not."""
    code = copy.__code__
    twin = types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    twin.__kwdefaults__ = f.__kwdefaults__
    twin.__module__, twin.__qualname__ = f.__module__, f.__qualname__
    read = reading(twin)  # f itself is not held
    why = Break("foreign", f"calls {_label(f)}, which goes by elements")
    vain = 0

    def run(*args: Any, **kwargs: Any) -> Any:
        done = read(args, kwargs)
        if done is None:
            raise _Vain
        return done[0]

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal vain
        capture = current()
        if (
            capture is None
            or not capture.options.reads
            or capture.heard
            or copy.__code__ is not code
            or vain >= _VAIN
            or config.loops == "recorded"
            or not _is_simple((*args, *kwargs.values()))
            or capture.differentiates()
            or (capture.device is not None and _is_large((*args, *kwargs.values())))
        ):
            return copy(*args, **kwargs)
        args, kwargs = mapped(args, real_of), mapped(kwargs, real_of)
        try:
            return capture.foreign(run, args, kwargs, why)
        except _Vain:
            vain += 1
        return copy(*args, **kwargs)

    del call.__wrapped__
    run.__name__ = f.__name__
    return call


def _is_simple(values: Iterable[Any]) -> bool:
    """Whether values are arrays and numbers, or tuples and lists of such."""
    return all(
        isinstance(v, _APART) or (type(v) in (tuple, list) and _is_simple(v)) for v in values
    )


def _is_large(values: Iterable[Any]) -> bool:
    """Whether arrays among values, also in tuples and lists, take long to move to the host."""
    arrays = of_type(tuple(values), Array)
    return sum(math.prod(a._extents()) * a.dtype.itemsize for a in arrays) > LARGE


class RecordingNames:
    """See `substitute.Names`; of one substitution."""

    builtins = {  # noqa: RUF012
        "range": MarkedRange,
        "len": _Builtin(len, _length),
        "type": _stand_in_class(type, _type_of),
        "memoryview": _stand_in_class(memoryview, _memory_of(memoryview)),
        "bytearray": _stand_in_class(bytearray, _memory_of(bytearray)),
        "max": _Builtin(max, _extreme("max")),
        "min": _Builtin(min, _extreme("min")),
        "__import__": importer(_substitution),
        **evaluators(_substitution),
    }

    def __init__(self, reading: Callable) -> None:
        """reading: see `_apart`; None for a function that does not go by elements."""
        self._modules = RecordingModules()
        self._reading = reading

    def renew(self) -> None:
        self._modules.renew()

    def numpy(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return self._modules.of(value)
        return replacement(value)

    def foreign(self, value: Any) -> Any:
        return foreign(value)

    def maker(self, value: type) -> Any:
        return _Maker(value)

    def torch(self, value: Any) -> Any:
        if value is torch:
            return _torch_names(value)
        if value in (torch.from_numpy, torch.as_tensor, torch.asarray, torch.tensor):
            return _to_torch(value, copies=value is torch.tensor)
        return value

    def helper(self, f: types.FunctionType, copy: types.FunctionType) -> Callable:
        if disallowed.is_function(f):
            return foreign(f, Break("asked", disallowed.why(f.__qualname__)))
        capture = current()
        if compares_numpy(f) and not (capture is None or capture.tensors):
            return foreign(f, Break("foreign", f"{f.__qualname__} {BY_IDENTITY}"))
        return copy if self._reading(f) is None else _apart(f, copy, self._reading)

    def instance(self, value: Any) -> Any:
        if isinstance(value, type):
            return replacement(value)
        if type(value) is CACHED:
            return _Cached(value)
        return RandomSource(value) if isinstance(value, RANDOM_SOURCES) else value

    def real(self, value: Any) -> Any:
        kind = type(value)
        if kind is MarkedRange:
            return value._range
        if kind is TorchNames:
            return value.__dict__["_real"]
        if kind is RecordingModule or kind is RandomSource:
            return value.__np_compile_real__
        return real_of(value)

    def of_one_call(self, value: Any) -> bool:
        return type(value) in (np.ndarray, Array) or holds_arrays(value)

    def array(self, value: Any) -> Any:
        capture = current()
        return value if capture is None else capture.exchange.take(value)
