"""The recording `numpy`: what user code finds under `np` while it is captured.

Functions of the shim's table record their call; other NumPy functions run in NumPy, through a
break. Classes, dtypes and constants are NumPy's own.
"""

from __future__ import annotations

import copy
import pickle
import types
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from functools import partial
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
import torch

from np_compile import shim
from np_compile.shim._bracketed import bracketed
from np_compile.tape.node import Break

from ..arrays.array import Array, let_read, read, recorded
from ..arrays.operators import OPERANDS, binary
from ..arrays.traced import has_traced, known
from ..frames import as_user
from ..state import current, switch
from .numpy_names import numpy_function, row_of_function

_SUBMODULES = ("linalg", "fft", "random", "lib", "lib.stride_tricks")


def mentions(x: Any) -> bool:
    """Whether arguments hold a stand-in."""
    kind = type(x)
    if kind is Array:
        return True
    if kind is tuple or kind is list:
        return any(mentions(v) for v in x)
    if kind is dict:
        return any(mentions(v) for v in x.values())
    return False


class Standing:
    """What stands for a function of NumPy's: equal to it, as a key of a dictionary too."""

    def __init__(self, real: Any):
        self.__np_compile_real__ = real
        self.__name__ = self.__qualname__ = getattr(real, "__name__", "?")
        self.__module__ = getattr(real, "__module__", None) or "numpy"
        self.__doc__ = real.__doc__

    @property  # type: ignore[misc]  # `object` has a setter
    def __class__(self) -> type:
        return type(self.__dict__["__np_compile_real__"])

    def __eq__(self, other: object) -> bool:
        mine, found = self.__np_compile_real__, real_of(other)
        return found is mine or (type(found) is type(mine) and found == mine)  # bound methods

    def __hash__(self) -> int:
        return hash(self.__np_compile_real__)

    def __deepcopy__(self, memo: dict) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:  # as the function itself
        return pickle.loads, (pickle.dumps(self.__np_compile_real__, protocol),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__np_compile_real__"], name)

    def __repr__(self) -> str:
        return repr(self.__np_compile_real__)


def real_of(x: Any) -> Any:
    """The function of NumPy's that x stands for; x itself where it stands for none."""
    return x.__np_compile_real__ if issubclass(type(x), Standing) else x


class _Recording(Standing):
    """A function of the table."""

    def __init__(self, real: Any, name: str):
        super().__init__(real)
        self._name = name
        self._creates = shim.TABLE[name].function.__module__.endswith(("._creation", "._ranges"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Array:
                return a._in_capture.call(self._name, args, kwargs)
        real = self.__np_compile_real__
        return _without_stand_in(self._name, real, self._creates, args, kwargs)


def _recorder(name: str, real: Callable) -> Callable:
    """What stands for a function of the table."""
    impure = shim.TABLE[name].kind is shim.Kind.IMPURE
    return Drawing(real) if impure else _Recording(real, name)


def _without_stand_in(name: str, real: Callable, creates: bool, args: tuple, kwargs: dict) -> Any:
    """A call none of whose positional arguments is a stand-in (but lists may hold some)."""
    given = (*args, *kwargs.values()) if kwargs else args
    capture = current()
    if capture is None:
        return real(*args, **kwargs)
    if capture.traces and (has_traced(args) or has_traced(kwargs)):
        if creates:
            return capture.call(name, args, kwargs)
        args, kwargs = known(args), known(kwargs)
    if capture.plain and capture.is_plain():
        if not kwargs and OPERANDS.issuperset(map(type, args)):
            return capture.new_plain(as_user(2)(real, *args))
        if any(map(_is_read, given)):
            args, kwargs = _read(capture, name, creates, args, kwargs)
        if (args and mentions(args)) or (kwargs and mentions(kwargs)):
            return capture.call(name, args, kwargs)
        return capture.new_plain(_called(real, args, kwargs))
    if creates and not kwargs and len(args) == 1 and type(args[0]) in (int, tuple):
        return capture.call(name, args, kwargs)  # of a shape: `zeros(n)`, `arange(n)`
    if (args and mentions(args)) or (kwargs and mentions(kwargs)):
        return capture.call(name, args, kwargs)
    if name in ("asarray", "array") and len(args) == 1 and isinstance(args[0], torch.Tensor):
        return _of_tensor(capture, name, real, args[0], kwargs)
    if any(isinstance(a, np.ndarray) or hasattr(type(a), "__dlpack__") for a in given):
        return capture.call(name, args, kwargs)
    if creates and not any(isinstance(a, list) for a in given):
        return capture.call(name, args, kwargs)
    if any(map(_is_read, given)):
        args, kwargs = _read(capture, name, creates, args, kwargs)
        if mentions(args) or mentions(kwargs):
            return capture.call(name, args, kwargs)
    # Numbers and lists only: nothing to compile, and NumPy's own answer is at hand.
    return capture.fresh(_called(real, args, kwargs))


def _read(capture: Any, name: str, creates: bool, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Arguments with array-likes of the user's read, or as NumPy is to read them: of a dtype, or of
    `copy`, come arguments of `__array__`."""
    if name == "array" or (creates and len(args) + len(kwargs) > 1):
        let_read(capture, (args, kwargs))
        return args, kwargs
    return read(args), read(kwargs)


def _is_read(value: Any) -> bool:
    """Whether NumPy reads an argument, or the first of a list, through its `__array__`."""
    if type(value) in (list, tuple):
        return bool(value) and _is_read(value[0])
    return hasattr(type(value), "__array__")


def _called(real: Callable, args: tuple, kwargs: dict) -> Any:
    function = partial(real, **kwargs) if kwargs else real
    if not _answer(args) and not (kwargs and _answer(tuple(kwargs.values()))):
        return as_user(3)(function, *args)
    before = switch(None, None)  # it is asked of NumPy's own function: `f is np.mean`
    try:
        return as_user(3)(function, *args)
    finally:
        switch(*before)


def _answer(values: Sequence) -> bool:
    """Whether NumPy asks arguments, or items of lists among them, what a function of its gives."""
    kinds = set(map(type, values)) - OPERANDS
    if not kinds:
        return False
    if any(
        not issubclass(k, np.ndarray)
        and (hasattr(k, "__array_function__") or hasattr(k, "__array_ufunc__"))
        for k in kinds
    ):
        return True
    within = not kinds.isdisjoint((list, tuple))
    return within and any(type(v) in (list, tuple) and _answer(v) for v in values)


class RecordingUfunc(Standing):
    """A NumPy ufunc whose calls and methods are recorded."""

    def __init__(self, name: str, ufunc: np.ufunc):
        super().__init__(ufunc)
        self._name = name
        # Of two array-likes and one result; `**` apart, whose exponent is part of the call.
        simple = (ufunc.nin, ufunc.nout) == (2, 1) and name != "power"
        self._operator = binary(name) if simple else None
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            if f"{name}.{method}" in shim.TABLE:
                setattr(self, method, _recorder(f"{name}.{method}", getattr(ufunc, method)))
            else:
                setattr(self, method, _Lacking(getattr(ufunc, method), f"np.{name}.{method}"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            n = len(args)
            x = args[0] if n else None
            if n == 2:
                if type(x) is Array and self._operator is not None:
                    return self._operator(x, args[1])
            elif n == 1 and type(x) is Array:  # the hot path of a function of one array
                c = x._in_capture
                seg = c.seg
                if x._in_segment is not seg:
                    if x._sel is not None or c.is_plain():
                        return c.call(self._name, args, kwargs)
                    c.enter(x)
                node = seg.node.next.get((self._name, x._as_number))
                if node is not None and not node.special and node.value is not None:
                    seg.node = node
                    if c.elements_read:
                        return c.told(seg, node.value)
                    return recorded(c, seg, node.value)
                return c.call(self._name, args, kwargs)
        for a in args:
            if type(a) is Array:
                return a._in_capture.call(self._name, args, kwargs)
        return _without_stand_in(self._name, self.__np_compile_real__, False, args, kwargs)


class _Grid(Standing):
    """np.mgrid, np.ogrid: NumPy makes the arrays, which are the function's own."""

    def __getitem__(self, key: Any) -> Any:
        made = self.__np_compile_real__[known(key)]
        capture = current()
        if capture is None:
            return made
        plain = capture.plain and capture.is_plain()
        return capture.new_plain(made) if plain else capture.fresh(made)


class _Brackets(_Grid):
    """np.r_, np.c_: of the function's arrays they are calls of `np.concatenate` and its like."""

    def __getitem__(self, key: Any) -> Any:
        if current() is None or not mentions(key):
            return super().__getitem__(key)
        made = bracketed(_Names, self.__np_compile_real__, key)
        return self.__np_compile_real__[key] if made is None else made


class _NamesType(type):
    def __getattr__(cls, name: str) -> Any:
        return replacement(getattr(np, name), name)


class _Names(metaclass=_NamesType):
    """Functions of NumPy's that record their calls."""


class _Lacking(Standing):
    """A function that the shim has not: it runs in NumPy; code around it stays compiled."""

    def __init__(self, real: Any, label: str):
        super().__init__(real)
        self._why = Break("numpy", f"{label} is not in the shim")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture, real = current(), self.__np_compile_real__
        if capture is None:
            return real(*args, **kwargs)
        why = self._why if mentions(args) or mentions(kwargs) else None
        return capture.foreign(real, args, kwargs, why)


class _ErrorStates(Standing):
    """np.errstate: while a block asks for exceptions, NumPy runs."""

    def __call__(self, **given: Any) -> Any:
        return _ErrorState(self.__np_compile_real__, given)

    def __instancecheck__(self, value: Any) -> bool:
        return type(value) is _ErrorState or isinstance(value, self.__np_compile_real__)

    def __mro_entries__(self, bases: tuple) -> tuple[type]:
        return (self.__np_compile_real__,)


class _ErrorState(ContextDecorator):
    """A block of np.errstate."""

    def __init__(self, kind: type, given: dict):
        self._kind, self._given = kind, given
        self._real = kind(**given)

    def __enter__(self) -> None:
        self._real.__enter__()
        try:
            _listen()
        except BaseException:
            self._real.__exit__(None, None, None)
            raise

    def __exit__(self, *error: Any) -> None:
        self._real.__exit__(*error)

    def _recreate_cm(self) -> _ErrorState:
        return _ErrorState(self._kind, self._given)


class _Asking(Standing):
    """np.seterr, np.seterrcall."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.__np_compile_real__(*args, **kwargs)
        _listen()
        return result


def _listen() -> None:
    """The code has said what floating-point errors are."""
    capture = current()
    if capture is not None and not capture.closed and not capture.heard and capture.is_told():
        capture.hear()


class RecordingModules:
    """The recording counterparts of NumPy's modules, for one substitution."""

    def __init__(self) -> None:
        self._made: dict[str, RecordingModule] = {}

    def of(self, real: types.ModuleType) -> types.ModuleType:
        """What stands for a module: itself where nothing in it is recorded."""
        short = real.__name__.removeprefix("numpy.")
        if real is not np and short not in _SUBMODULES:
            return real
        found = self._made.get(short)
        if found is None:
            prefix = "" if real is np else f"{short}."
            found = self._made[short] = RecordingModule(real, prefix, self)
        return found

    def renew(self) -> None:
        """Forget what stands for attributes that are no longer what they were."""
        for module in self._made.values():
            module._renew()


# The dictionary in which a module looks its names up, whatever its class says.
_kept: Callable[[types.ModuleType], dict] = vars(types.ModuleType)["__dict__"].__get__


class RecordingModule(types.ModuleType):
    """A NumPy module with its functions recorded; everything else is NumPy's own.

    _seen: what the attributes in its dictionary stand for.
    """

    __slots__ = ("__np_compile_real__", "_modules", "_prefix", "_seen")

    def __init__(self, real: types.ModuleType, prefix: str, modules: RecordingModules):
        super().__init__(real.__name__, real.__doc__)
        parts = {
            "__np_compile_real__": real, "_prefix": prefix, "_modules": modules, "_seen": {},
        }  # fmt: skip
        for name, part in parts.items():
            types.ModuleType.__setattr__(self, name, part)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return vars(self.__np_compile_real__)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__np_compile_real__, name)
        if isinstance(value, types.ModuleType):
            given: Any = self._modules.of(value)
        else:
            given = replacement(value, self._prefix + name)
        capture = current()
        if given is value and capture is not None:  # it may be the user's own
            given = capture.substitution.value(value)
        self._seen[name] = value
        _kept(self)[name] = given
        return given

    def _renew(self) -> None:
        seen, real = self._seen, vars(self.__np_compile_real__)
        for name in [k for k, value in seen.items() if real.get(k, seen) is not value]:
            del seen[name]
            _kept(self).pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        capture = current()
        value = real_of(value) if capture is None else capture.substitution.real(value)
        setattr(self.__np_compile_real__, name, value)
        _kept(self).pop(name, None)

    def __delattr__(self, name: str) -> None:
        delattr(self.__np_compile_real__, name)
        _kept(self).pop(name, None)

    def __dir__(self) -> list[str]:
        return dir(self.__np_compile_real__)


def replacement(value: Any, name: str | None = None) -> Any:
    """What stands for an attribute of NumPy's in captured code: itself unless it computes."""
    found = _standing.get(id(value))
    if found is not None:
        return found
    if value is np.mgrid or value is np.ogrid:
        return _standing.setdefault(id(value), _Grid(value))
    if value is np.r_ or value is np.c_:
        return _standing.setdefault(id(value), _Brackets(value))
    if isinstance(value, type):
        return value
    if not callable(value):
        return value
    known = name in shim.TABLE and numpy_function(name) is value
    key = row_of_function(value) or (name if known else None)
    if isinstance(value, np.ufunc):
        made: Any = RecordingUfunc(key, value) if key is not None else value
    elif key is not None:
        made = _recorder(key, value)
    elif name is not None and name.startswith("random."):
        made = Drawing(value)
    elif (getattr(value, "__module__", "") or "").startswith("numpy"):
        made = _Lacking(value, f"np.{name or getattr(value, '__name__', '?')}")
    else:
        return value
    place = str(key or name or getattr(value, "__name__", ""))
    if made is not value and _attribute(place) is value:
        _standing[id(value)] = made
    return made


def _attribute(name: str) -> Any:
    """The attribute of NumPy's of this name, with those of its modules; None where it has none."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


_standing: dict[int, Any] = {}  # id of a function of a module -> what stands for it, and holds it


def stands_for_array(capture: Any, t: torch.Tensor) -> bool:
    """Whether a tensor may be taken for an array where it lies: to NumPy one on a device is none,
    unless torch was given arrays that live there meanwhile."""
    if capture.tensors:
        return True
    return t.device.type != "cpu" and t.device == capture.device and bool(capture.lent)


def _of_tensor(capture: Any, name: str, real: Callable, t: torch.Tensor, kwargs: dict) -> Any:
    """`np.asarray(t)`, `np.array(t)` of a tensor."""
    if stands_for_array(capture, t):
        a = capture.adopt_foreign(t) if capture.tensors else capture.adopt(t)
        return a if name == "asarray" and not kwargs else capture.call(name, (a,), kwargs)
    a = real(t, **kwargs)
    return capture.taken_from(a) if type(a) is np.ndarray else a


class RandomSource:
    """A NumPy random generator in captured code: draws from NumPy's stream, gives stand-ins. One
    for each generator, as long as somebody has it."""

    __np_compile_real__: Any
    _all: ClassVar[WeakValueDictionary[int, RandomSource]] = WeakValueDictionary()

    def __new__(cls, real: Any) -> RandomSource:
        if type(real) is cls:
            return real
        found = cls._all.get(id(real))
        if found is None:
            found = cls._all[id(real)] = super().__new__(cls)
            found.__np_compile_real__ = real
        return found

    @property  # type: ignore[misc]  # `object` has a setter
    def __class__(self) -> type:
        return type(self.__np_compile_real__)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["__np_compile_real__"], name)
        return Drawing(value) if callable(value) and not name.startswith("__") else value

    def __deepcopy__(self, memo: dict) -> RandomSource:
        return RandomSource(copy.deepcopy(self.__np_compile_real__, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:  # as the generator itself
        return pickle.loads, (pickle.dumps(self.__np_compile_real__, protocol),)

    def __repr__(self) -> str:
        return repr(self.__np_compile_real__)


RANDOM_SOURCES = (np.random.Generator, np.random.RandomState)


class Drawing(Standing):
    """A function, or a method of a generator, that draws random numbers: NumPy's own do."""

    @property
    def __self__(self) -> Any:
        owner = self.__np_compile_real__.__self__
        return RandomSource(owner) if isinstance(owner, RANDOM_SOURCES) else owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture, real = current(), self.__np_compile_real__
        if capture is None:
            return real(*args, **kwargs)
        # C code looks for its own.
        args = tuple(a.__np_compile_real__ if type(a) is RandomSource else a for a in args)
        return capture.foreign(real, args, kwargs, None)


class _Source(Drawing):
    """A class of NumPy's generators, or of what they are made of: instances draw, arrays seed."""

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self.__np_compile_real__)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(real_of(kind), self.__np_compile_real__)

    def __mro_entries__(self, bases: tuple) -> tuple[type]:
        return (self.__np_compile_real__,)


_standing.update(
    {id(np.errstate): _ErrorStates(np.errstate)}
    | {id(f): _Asking(f) for f in (np.seterr, np.seterrcall)}
)
_standing.update(
    (id(kind), _Source(kind))
    for kind in map(np.random.__dict__.get, np.random.__all__)
    if isinstance(kind, type) and kind is not np.random.BitGenerator
)
