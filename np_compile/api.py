"""The public functions: compile, wrap_numpy, and the controls."""

from __future__ import annotations

import functools
import inspect
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_int64
from typing import Any

import torch
from torch._C import _len_torch_function_stack as _context_depth
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

from np_compile.tape.node import Break

from . import config, cupy_arrays, errstate, tensor_loops
from .backends import lookup
from .capture.arrays.tensors import on_shim, traced
from .capture.arrays.transfers import copy
from .capture.exchange.arguments import attributes, is_record
from .capture.names.entrances import has_entrance
from .capture.names.recording import RecordingNames
from .capture.names.substitute import Substitution
from .capture.policy.budget import account
from .capture.policy.choice import kind_of, leaves, new_choice, of_types, signature
from .capture.run import NotCaptured
from .capture.run import run as run_captured
from .capture.state import Options, captures, current
from .devices import on_the_host, only_devices
from .errors import GraphBreak, NotCompilable, SettingError
from .made import Made
from .reader import offload, reading
from .reader.reading import Reading
from .replay.callee import Callee
from .replay.calls import MISS
from .replay.keeper import Keeper
from .shim._devices import default_device
from .tensor_loops import TensorLoops

_RECORDED = 32  # NumPy calls that take longer to record for other sizes than a region runs,
_RECORD = 1e-4  # seconds that recording and keeping one takes
_COLD = int(config.Ways.COLD)
_KINDS = 256  # of arguments, of which is remembered how long a region takes for them
_MIXED = 32  # pauses that are short after a call of which it was not known which way is faster


class Compiled(Made, Callee):  # type: ignore[misc, valid-type]
    """A function that runs as compiled segments; made by `compile`.

    `__wrapped__` is the original. Calling it gives what the original gives.
    """

    # Not in the dictionary, which `functools.wraps` copies. _in_c: the table of calls that C knows.
    __slots__ = (
        "__np_compile_captured__", "_disable", "_each", "_in_c", "_keeper", "_local", "_mixed",
        "_of_kinds", "_on_devices", "_on_tensors", "_options", "_reading", "_tensors", "_unweighed",
    )  # fmt: skip
    __np_compile_captured__: Any  # the Python function behind `__wrapped__`; set by `compile`

    def __init__(self, function: Any, options: Options, disable: bool, tensors: bool):
        super().__init__(function)
        self.__np_compile_captured__ = function
        self._options = options
        self._disable = disable
        self._tensors = tensors
        self._local = threading.local()
        plain = function.__wrapped__ if tensors else function
        # Calls that are taken to be faster compiled, for now; C counts them too.
        self._unweighed = c_int64(0)
        self._mixed = 0  # so many pauses without weighing are short, as other kinds are met
        self._each = 1.0  # the seconds that each of them is taken to last
        pause, unweighed = options.budget.pause, self._unweighed if options.adapts else None
        self._keeper = None if disable else Keeper(plain, tensors, None, pause, unweighed)
        self._reading: Reading | TensorLoops | None = None
        self._of_kinds: dict[tuple, float] = {}  # seconds of regions that serve new sizes
        self._on_tensors: Compiled | None = None  # for CuPy's arrays
        self._on_devices: dict[torch.device, Keeper] = {}  # of arrays that live there meanwhile

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # What C does with calls that it does not know, and all that is done until it can be asked.
        keeper = self._keeper
        if (
            keeper is not None
            and self._options.budget.pause[0]
            and keeper.is_new
            and config.allowed.value & _COLD
            and captures.value == 0
            and _context_depth() == 0
            and (self._tensors or not cupy_arrays.among(args, kwargs))
            and self._options.budget.is_resting()
        ):
            return self.__np_compile_captured__(*args, **kwargs)
        if (
            keeper is not None
            and not config.disable
            and current() is None
            and _context_depth() == 0
            and (self._tensors or not cupy_arrays.among(args, kwargs))
        ):
            if errstate.is_new() and not errstate.raises():
                return self(*args, **kwargs)  # C knows that now
            if (call := keeper.call_in_python) is not None:
                result = call(*args, **kwargs)
                if result is not MISS:
                    return result
            budget, found = self._options.budget, self._reading
            stands = found.stands if type(found) is Reading else None
            needed = budget.cold or budget.rests or stands is not None
            table = keeper.table(needed)
            if table is not None and table.begins(self, "_in_c", stands):
                return self(*args, **kwargs)  # C may know it
            if type(found) is Reading and found.serves:
                if found.waits:
                    return budget.waits(self.__np_compile_captured__, args, kwargs)
                return self._alone(args, kwargs)
            if config.measures() and not config.waits() and budget.is_cold():
                budget.begins()
                result = keeper.run(args, kwargs)  # a kept call that is still weighed
                if result is MISS:
                    result = self._kept_for_sizes(args, kwargs)
                if result is not MISS:
                    return result
                choice = (
                    self._options.choices.get(signature(args, kwargs)) if keeper.plain else None
                )
                if choice is not None and choice.way == "plain":  # one of those that are timed
                    return keeper.run_plainly(choice, args, kwargs)
                return budget.coldly(self.__np_compile_captured__, args, kwargs)
        return self._long_way(args, kwargs)

    def _long_way(self, args: tuple, kwargs: dict) -> Any:
        """As a call, of which nothing is known."""
        function = self.__np_compile_captured__
        capture = current()
        if capture is not None and not capture.closed:
            if self._disable:
                return capture.foreign(
                    function, args, kwargs, Break("asked", f"{self.__name__} is not compiled")
                )
            if self._tensors:
                return _within(capture, self, function, args, kwargs)
            if has_entrance(function):  # C may have called it, and takes no stand-in
                return function(*args, **kwargs)
            return capture.substitution.helper(function)(*args, **kwargs)
        if self._disable or config.disable or (self._tensors and (traced() or on_shim(args))):
            return self.__wrapped__(*args, **kwargs)
        if not self._tensors and cupy_arrays.among(args, kwargs):
            return cupy_arrays.called(self.of_tensors(), self.__wrapped__, args, kwargs)
        if _context_depth() and only_devices():
            device = _device(args, kwargs, self._tensors)
            if self._tensors:
                if device is None and default_device().type != "cpu":
                    with on_the_host():  # as its tensors are
                        return self(*args, **kwargs)
            elif device is not None:
                return self._placed(device, args, kwargs)
        return self._alone(args, kwargs)

    def _placed(self, device: torch.device, args: tuple, kwargs: dict) -> Any:
        """As a call, on NumPy's arrays under a device context: there, or where it is quicker."""
        places, budget = self._options.places, self._options.budget
        if places.makes_tensors:
            return self._alone(args, kwargs)
        if places.on_host(args, kwargs):
            with on_the_host():
                return self(*args, **kwargs)
        if not self._options.adapts or not config.measures():
            return self._alone(args, kwargs)
        if not config.waits() and budget.is_cold():
            keeper = self._keeper_on(device)
            result = MISS if keeper is None else keeper.run(args, kwargs)
            if result is not MISS:
                return result
            with on_the_host():
                return self(*args, **kwargs)
        kind = places.kind(args, kwargs)
        start = time.perf_counter()
        if kind.wants_numpy:
            with on_the_host():
                result = self.__np_compile_captured__(*args, **kwargs)
            kind.ran_in_numpy(time.perf_counter() - start)
        else:
            result = self._alone(args, kwargs)
            kind.ran(time.perf_counter() - start)
        return result

    def _alone(self, args: tuple, kwargs: dict) -> Any:
        """As a call that no other one is captured around, and that is not kept in C."""
        if errstate.raises():
            if self._options.fullgraph:
                where = _where(self.__np_compile_captured__)
                raise GraphBreak(f"fullgraph=True, but {errstate.REASON}\n  at {where}")
            return self.__wrapped__(*args, **kwargs)
        self._options.budget.begins()
        try:
            return self._unknown(args, kwargs)
        finally:
            self._options.budget.ended()
            found, keeper = self._reading, self._keeper
            vain = keeper is not None and keeper.in_vain and config.loops == "auto"
            if type(found) is Reading and vain and _context_depth() == 0:
                found.is_not_kept()

    def _unknown(self, args: tuple, kwargs: dict) -> Any:
        """The result of such a call: by what is compiled of it, by what is kept, or captured."""
        found = self._reading
        weighs = type(found) is Reading and found.is_compiled and self._options.adapts
        if weighs and config.measures() and config.loops == "auto" and _context_depth() == 0:
            result = self._weighed(found, args, kwargs)
        else:
            result = self._read(args, kwargs)
        if result is not reading.MISS:
            return result
        keeper = self._keeper
        if keeper is not None and _context_depth() == 0:
            result = keeper.run(args, kwargs)
            if result is not MISS:
                return result
            choices = self._options.choices
            if choices and config.measures():
                choice = choices.get(signature(args, kwargs))
                if choice is not None and choice.way == "plain":
                    return keeper.run_plainly(choice, args, kwargs)
            result = self._read_for_sizes(args, kwargs)
            if result is not reading.MISS:
                return result
            result = self._kept_for_sizes(args, kwargs)
            if result is not MISS:
                return result
        elif not self._tensors and (device := _device(args, kwargs, False)) is not None:
            keeper = self._keeper_on(device)
            if keeper is not None:
                result = keeper.run(args, kwargs)
                if result is not MISS:
                    return result
        result = self._run(args, kwargs, None)
        if type(found) is TensorLoops:
            found.recorded()
        return result

    def _keeper_on(self, device: torch.device | None) -> Keeper | None:
        """The kept calls on tensors, or on arrays that live on a device meanwhile; None: there
        may be none."""
        if device is None or self._tensors:
            return self._keeper
        if self._disable or not only_devices():
            return None
        made = self._on_devices.get(device)
        if made is None:
            made = Keeper(self.__np_compile_captured__, False, device)
        return self._on_devices.setdefault(device, made)

    def _keeper_of(self, args: tuple, kwargs: dict) -> Keeper | None:
        """The kept calls that are looked through for such a call."""
        return self._keeper_on(_device(args, kwargs, self._tensors))

    def of_tensors(self) -> Compiled:
        """The function of tensors that it is where its arguments are CuPy's arrays."""
        if self._on_tensors is None:
            self._on_tensors = wrap_numpy(self)
        assert self._on_tensors is not None
        return self._on_tensors

    def _read(self, args: tuple, kwargs: dict, instead: Callable | None = None) -> Any:
        """The result of a call that is compiled whole, with its loops; MISS if it is not. It runs
        on the host, whatever the device, but for loops whose iterations a device does at once.
        instead: of the compiled function of arrays, where that is to run in place of tensors, what
        is called in its stead."""
        found = self._reading
        if found is None or config.loops == "recorded" or not only_devices():
            return reading.MISS
        device = None if self._tensors else _device(args, kwargs, False)
        if device is not None and type(found) is Reading and found.as_not_kept:
            return reading.MISS  # recorded, whole arrays are the device's
        if type(found) is TensorLoops:
            return found.call(args, kwargs, instead)
        if device is None:
            return found.call(args, kwargs)
        asked = False
        if offload.serves(device):
            with offload.on(device, copy) as away:
                result = found.call(args, kwargs)
            asked = away.asked
        else:
            result = found.call(args, kwargs)
        if result is not reading.MISS and not asked:
            self._options.places.kind(args, kwargs).read += 1
        return result

    def _read_for_sizes(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call with new sizes, of which much would be recorded again, such as each
        iteration of a loop: by a region, which serves all sizes; MISS if there is none."""
        found, keeper = self._reading, self._keeper
        general = found.for_sizes if type(found) is Reading else None
        if general is None or keeper is None or self._options.calls <= _RECORDED:
            return reading.MISS
        if self._options.dynamic is False or config.loops != "auto":
            return reading.MISS
        # Sizes that come again are recorded when the region has taken as long as that takes.
        came, kind = keeper.came(args, kwargs), kind_of(args, kwargs)
        taken = ((came or 0) + 1) * self._of_kinds.get(kind, 0.0)
        if came is None or taken > _RECORD * self._options.calls:
            return reading.MISS
        weighs = self._options.adapts and config.measures() and general.is_compiled
        call = functools.partial(self._weighed, general) if weighs else general.call
        runs, start = general.runs, time.perf_counter()
        result = call(args, kwargs)
        if general.runs > runs:
            seconds = time.perf_counter() - start
            if len(self._of_kinds) >= _KINDS:
                self._of_kinds.clear()
            self._of_kinds[kind] = min(self._of_kinds.get(kind, seconds), seconds)
        if result is not reading.MISS:
            keeper.meet(args, kwargs)
        return result

    def _kept_for_sizes(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call that is like a kept one but for the extents of arrays; MISS if there
        is none, or NumPy is faster."""
        keeper: Any = self._keeper
        if not keeper.for_sizes:
            return MISS
        if not self._options.adapts or not config.measures():
            return keeper.run_for_sizes(args, kwargs)
        choices, key = self._options.choices, kind_of(args, kwargs)
        choice = choices.get(key) or new_choice(choices, key, self._options.budget)
        if choice.way == "plain":
            choice.passes()
            return MISS
        if choice.wants_plain():
            return choice.call(self.__np_compile_captured__, args, kwargs)
        start = time.perf_counter()
        result = keeper.run_for_sizes(args, kwargs)
        if result is not MISS:
            choice.ran_for_sizes(time.perf_counter() - start, of_types(choices, key))
        return result

    def _weighed(self, found: Any, args: tuple, kwargs: dict) -> Any:
        """As `_read`, of a function that is compiled whole, or as it stands where that is faster:
        short calls are timed both ways, and some of those that follow are taken to be like one that
        is faster compiled."""
        keeper: Any = self._keeper
        choices, key = self._options.choices, kind_of(args, kwargs)
        choice = choices.get(key)
        if choice is not None and choice.way == "plain":
            if choice not in keeper.plain:
                self._mixed = _MIXED
            return keeper.run_plainly(choice, args, kwargs, True)
        if self._unweighed.value > 0:
            start = time.perf_counter()
            result = found.call(args, kwargs)
            # A longer one counts for as many: it may be one of a kind that NumPy is faster for.
            lasted = int((time.perf_counter() - start) / self._each)
            self._unweighed.value = max(self._unweighed.value - max(lasted, 1), 0)
            return result
        choice = choice or new_choice(choices, key, self._options.budget)
        if choice.way is None:
            self._mixed = _MIXED
        if choice.wants_plain():
            return choice.call(self.__np_compile_captured__, args, kwargs)
        runs, listed, called = found.runs, found.listed, found.called
        start = time.perf_counter()
        result = keeper.read(args, kwargs) if found is self._reading else MISS
        ran = result is not MISS
        if not ran:
            start = self._options.budget.start
            result = found.call(args, kwargs)
            ran = result is not reading.MISS and found.runs > runs and not found.is_new_to_c
        if ran:
            seconds = time.perf_counter() - start
            listed, called = found.listed - listed, found.called - called
            choice.ran_whole(seconds, listed, called, found.single, of_types(choices, key))
            if choice.way == "compiled":
                often = self._mixed or choice.is_slow
                self._unweighed.value = choice.soon if often else choice.seldom
                self._mixed, self._each = max(self._mixed - 1, 0), max(choice.compiled, 1e-9)
                keeper.is_compiled(args, kwargs)
        elif found.runs > runs:  # C cannot make it yet: a pause, if Python takes longer for that
            budget = self._options.budget
            budget.idle = time.perf_counter() - budget.start > budget.took
        elif not found.is_compiling and self._runs_anyhow(result, args, kwargs):
            choice.ran_neither()
        return result

    def _substitution(self) -> Substitution:
        of_helper = tensor_loops.of_helper if self._tensors else reading.of_helper
        account = self._options.budget
        return Substitution(RecordingNames(functools.partial(of_helper, account=account)))

    def _runs_anyhow(self, result: Any, args: tuple, kwargs: dict) -> bool:
        """Whether a call of which nothing was compiled, with this result, runs as it stands."""
        if result is not reading.MISS:
            return True
        keeper: Any = self._keeper
        known = keeper.kept or keeper.for_sizes or signature(args, kwargs) in self._options.choices
        return not known and not self._options.budget.captures(args, kwargs)

    def _run(self, args: tuple, kwargs: dict, listener: Any) -> Any:
        if listener is not None and errstate.raises():
            told = Break("plain", errstate.REASON)
            listener("break", told, _where(self.__np_compile_captured__))
            return self.__wrapped__(*args, **kwargs)
        free: list[Substitution] = self._local.__dict__.setdefault("free", [])
        # Each call that runs has its own: one may be made within another one, by a library, say.
        substitution = free.pop() if free else self._substitution()
        device = _device(args, kwargs, self._tensors)
        keeper = self._keeper_on(device)
        function = self.__np_compile_captured__
        try:
            return run_captured(
                function, substitution, self._options, args, kwargs, device,
                listener, keeper if listener is None else None,
            )  # fmt: skip
        except NotCaptured as e:
            why = str(e)
            if self._options.fullgraph:
                where = _where(function)
                raise GraphBreak(f"fullgraph=True, but {why}\n  at {where}") from None
        finally:
            free.append(substitution)
        if listener is not None:
            listener("break", Break("asked", why), _where(function))
        return self.__wrapped__(*args, **kwargs)

    def _settings(self) -> tuple[Callable, dict[str, Any]]:
        o = self._options
        return compile, {
            "fullgraph": o.fullgraph, "dynamic": o.dynamic, "backend": o.backend,
            "disable": self._disable,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<compiled {self.__wrapped__!r}>"


def _skipped_by_dynamo(call: Any) -> None:
    """Have torch.compile call a function as it stands, with all that it calls."""
    call._torchdynamo_disable = True
    skip = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    set_code_exec_strategy(call.__code__, skip)


_skipped_by_dynamo(Compiled.__call__)


def _device(args: tuple, kwargs: dict, tensors: bool) -> torch.device | None:
    """Where a call's arrays live: the tensors' device, or that of a `torch.device` context."""
    if tensors:
        for x in (*args, *kwargs.values()):
            if isinstance(x, torch.Tensor):
                return x.device if x.device.type != "cpu" else None
            if hasattr(type(x), "__cuda_array_interface__"):
                return torch.device("cuda", x.device.id)
    if _context_depth() == 0:  # no `with torch.device(...)`, no torch.set_default_device
        return None
    t = next(_tensors_in((args, kwargs), set()), None) if tensors else None
    device = default_device() if t is None else t.device
    return None if device.type == "cpu" else device


def _within(capture: Any, wrapped: Any, function: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a wrapped function in captured code. Among wrapped functions it is captured with
    its caller, as long as it gets arrays; else it is a call on its own, which gives tensors."""
    if capture.tensors and next(_tensors_in((args, kwargs), set()), None) is None:
        return capture.substitution.function(function)(*args, **kwargs)
    why = Break("foreign", f"calls {wrapped.__name__}, which takes and gives tensors")
    return capture.aside(wrapped, args, kwargs, why)


def _tensors_in(x: Any, known: set[int]) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples, dicts and the attributes of objects of the user's classes."""
    if isinstance(x, torch.Tensor):
        yield x
        return
    inner: Iterable[Any]
    if isinstance(x, (tuple, list)):
        inner = x
    elif isinstance(x, dict):
        inner = x.values()
    elif is_record(x):
        inner = attributes(x).values()
    else:
        return
    if id(x) not in known:
        known.add(id(x))
        for item in inner:
            yield from _tensors_in(item, known)


def _check_function(fn: Any, what: str) -> None:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise NotCompilable(
            f"{what}: {fn.__qualname__} is a generator function, which gives values one by one "
            f"while its caller runs\n  at {_where(fn)}\n  Remedy: compile the function that "
            "computes one value, and call it from the generator."
        )
    if inspect.iscoroutinefunction(fn):
        raise NotCompilable(
            f"{what}: {fn.__qualname__} is a coroutine function\n  at {_where(fn)}\n"
            "  Remedy: compile the function that computes, and await around it."
        )
    if isinstance(fn, type):
        raise NotCompilable(
            f"{what}: {fn.__qualname__} is a class\n  Remedy: compile its methods one by one."
        )
    if isinstance(fn, (property, functools.cached_property)):
        raise NotCompilable(
            f"{what}: a {type(fn).__name__} is no function\n"
            f"  Remedy: put @{type(fn).__name__} above @{what}."
        )
    if not callable(fn):
        raise NotCompilable(f"{what}: {fn!r} is no function")


def _where(fn: Any) -> str:
    code = fn.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def plain_function(fn: Any, what: str) -> types.FunctionType:
    """The Python function behind what a user handed in."""
    _check_function(fn, what)
    if isinstance(fn, functools.partial):
        inner = fn

        def call(*args: Any, **kwargs: Any) -> Any:
            return inner(*args, **kwargs)

        call.__name__ = getattr(fn.func, "__name__", "partial")
        return call  # type: ignore[return-value]
    if isinstance(fn, types.MethodType):
        method = fn.__func__
        instance = fn.__self__
        plain_function(method, what)

        def call_method(*args: Any, **kwargs: Any) -> Any:
            return method(instance, *args, **kwargs)

        call_method.__name__ = method.__name__
        return call_method  # type: ignore[return-value]
    if isinstance(fn, types.FunctionType):
        return fn
    if isinstance(fn, Compiled):

        def call_compiled(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return call_compiled  # type: ignore[return-value]
    call_dunder = inspect.getattr_static(type(fn), "__call__")  # there is one: fn is callable
    if isinstance(call_dunder, staticmethod):
        return plain_function(call_dunder.__func__, what)
    if isinstance(call_dunder, (types.FunctionType, Compiled)):
        return plain_function(types.MethodType(call_dunder, fn), what)
    raise NotCompilable(
        f"{what}: {fn!r} is not written in Python, there is no code to capture\n"
        "  Remedy: wrap it in a function: lambda x: f(x)."
    )


def _code(fn: Any, function: types.FunctionType) -> types.CodeType:
    """The code that a user has written, behind what was handed in; that of `function`, which calls
    it, where there is none (a function in C, with some of its arguments)."""
    while not isinstance(fn, types.FunctionType):
        if isinstance(fn, (Compiled, Wrapped)):
            fn = fn.__wrapped__
        elif isinstance(fn, functools.partial):
            fn = fn.func
        elif isinstance(fn, types.MethodType):
            fn = fn.__func__
        elif isinstance(called := type(fn).__call__, types.WrapperDescriptorType):
            return function.__code__
        else:
            fn = called
    return fn.__code__


def compile(
    fn: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    disable: bool = False,
) -> Any:
    """A function that gives exactly what `fn` gives, computed by compiled kernels.

    Usable bare (`@compile`), with arguments (`@compile(backend="eager")`) and as a call. What `fn`
    does in NumPy is recorded while it runs; recorded segments are compiled once and found again on
    the next call. Where Python needs a value, or NumPy has to run itself, the segment ends and
    another one begins: see `explain`.

    fullgraph: raise GraphBreak, with the line of code, where more than one segment would be needed.
    dynamic: True: integers (indices, factors) are data from the first call on; False: every new
        integer compiles anew; None: an integer becomes data once a second value is seen. A new
        shape compiles anew, as long as that pays.
    backend: "native" (the default; see the setting `backend`), "inductor", "aot_eager", "eager", or
    a
        callable backend(graph_module, example_inputs) -> callable.
    disable: return a function that runs plainly.

    Errors: UnknownBackend, NotCompilable (generator, coroutine, class), SettingError.

    >>> import numpy as np, np_compile
    >>> @np_compile.compile(backend="eager")
    ... def scaled(x, s):
    ...     return np.sqrt(x) * s
    >>> scaled(np.array([1.0, 4.0]), 2.0)
    array([2., 4.])
    """
    if dynamic not in (None, True, False):
        raise SettingError(f"dynamic={dynamic!r}: expected True, False or None")
    backend = config.backend if backend is None else backend
    lookup(backend)
    if fn is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, disable=disable
        )
    if isinstance(fn, (staticmethod, classmethod)):
        again = functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, disable=disable
        )
        return type(fn)(again(fn.__func__))
    tensors = isinstance(fn, Wrapped)
    function = plain_function(fn.__wrapped__ if isinstance(fn, Wrapped) else fn, "compile")
    options = Options(backend, bool(fullgraph), dynamic, tensors)
    if "warn" in function.__code__.co_names:  # its warnings may point to the caller: see `run`
        options.adapts = options.reads = False
    if options.adapts:
        options.budget = account(_code(fn, function))
    options.name = getattr(fn, "__qualname__", function.__name__)
    compiled = Compiled(fn, options, bool(disable), tensors)
    compiled.__np_compile_captured__ = function
    if (keeper := compiled._keeper) is not None and backend == "native":
        if tensors:
            on_arrays = functools.partial(compile, function, fullgraph=fullgraph, dynamic=dynamic)
            compiled._reading = TensorLoops(function, on_arrays, lambda: keeper.in_vain)
        else:
            budget = compiled._options.budget
            found = Reading(function, budget, keeps=keeper.may_keep, taker=keeper)
            found.on_leaving = functools.partial(leaves, options.choices, compiled._unweighed)
            compiled._reading = found
    return compiled


class Wrapped(Made):
    """A NumPy function that takes and gives torch tensors; made by `wrap_numpy`."""

    __slots__ = ("_local", "_plain")

    def __init__(self, function: Callable):
        super().__init__(function)
        self._local = threading.local()
        self._plain = plain_function(function, "wrap_numpy")  # a method's has its object

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .eager import run_eagerly

        capture = current()
        if capture is not None and not capture.closed:
            return _within(capture, self, self._plain, args, kwargs)
        return run_eagerly(self, self._plain, args, kwargs)

    def _settings(self) -> tuple[Callable, dict[str, Any]]:
        return wrap_numpy, {}

    def __repr__(self) -> str:
        return f"<wrap_numpy {self.__wrapped__!r}>"


_skipped_by_dynamo(Wrapped.__call__)


def wrap_numpy(fn: Callable) -> Any:
    """The NumPy function `fn` as a function of torch tensors.

    Tensors (CuPy arrays and other DLPack producers too), also nested in lists, tuples, dicts, go in
    as arrays, and arrays come out as tensors, on the same device, without copies, with gradients.
    Alone it runs eagerly through the shim; `compile(wrap_numpy(fn))` compiles forward and backward.
    `fn` may also be a compiled function: the result is then compiled with the same options. What is
    wrapped already is given back.

    Errors: NotCompilable for what is no Python function.

    >>> import numpy as np, torch, np_compile
    >>> norm = np_compile.wrap_numpy(lambda x: np.sqrt(np.sum(x * x)))
    >>> norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(wrap_numpy(fn.__func__))
    if isinstance(fn, Wrapped) or (isinstance(fn, Compiled) and fn._tensors):
        return fn
    if isinstance(fn, Compiled):
        make, settings = fn._settings()
        return make(Wrapped(fn.__wrapped__), **settings)
    return Wrapped(fn)
