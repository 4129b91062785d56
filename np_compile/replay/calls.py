"""A table of kept calls: `calls.c` finds and makes them without Python, `entering.c` looks there.

A `Table` belongs to a function. Its entries say by guards what calls are like the ones they were
made of, and how to make such a call. The structures that C reads are declared here alone.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._C._dynamo.eval_frame import get_eval_frame_callback

from np_compile import config, dict_tags, errstate
from np_compile.capture.policy.budget import Pause
from np_compile.capture.state import captures
from np_compile.kernels import build
from np_compile.kernels.build import driver
from np_compile.kernels.build.structures import declarations as structures_of_c
from np_compile.kernels.run.gpu_sequence import GpuLink, GpuWork
from np_compile.kernels.run.private import (
    current_device,
    empty_strided_cuda,
    modes_at,
    modes_of_thread,
    raw_stream,
    runs_frames,
    usual,
)
from np_compile.kernels.run.sequence import Work, run_address
from np_compile.kernels.run.sequence import source as sequence_source

from . import callee
from .guards import Check, Guard, Words
from .results import Give, Result, giver

Names = tuple[str, ...]

MISS: Any = object()  # what a call gives that is not known

_FASTCALL = 0x80 | 0x2  # METH_FASTCALL | METH_KEYWORDS
_MOST = 32  # tensors that a call on a GPU reads and makes, for C
LEAVES = 64  # of structures among the arguments of a call
# What C calls, by the names that it has there.
_OF_TORCH = {
    "threads": torch.get_num_threads, "grad_enabled": torch.is_grad_enabled,
    "is_nested": "is_nested", "current_device": current_device, "raw_stream": raw_stream,
    "new_tensor": empty_strided_cuda, "data_ptr": torch.Tensor.data_ptr,
    "modes": torch._C._len_torch_function_stack, "frames": get_eval_frame_callback,
}  # fmt: skip
_CUPY = "cupy"
_FILTERS = "filters"
_METHODS = {"npc_call": b"call", "npc_read": b"read", "npc_unchanged": b"unchanged"}
# A method that is a slot of a class in C, and where in it is what Python knows such slots by.
_SLOT, _BINDS = (types.FunctionType.__dict__[name] for name in ("__call__", "__get__"))
_BASE = object.__basicsize__ + 3 * 8
_WRAPPED = _BASE + 8  # and what is called there
_NEW_ARRAY, _SCALAR = 94, 76  # PyArray_NewFromDescr and PyArray_Return in NumPy's table


class Way(IntEnum):
    """How an entry's calls are made: not by C yet, by its programs, by the function as it is, by
    what was made of its source."""

    UNSETTLED, COMPILED, PLAIN, READ = range(4)


class Array(ctypes.Structure):
    """An array object of NumPy's."""

    _fields_ = (
        ("references", c_int64),
        ("type", c_void_p),
        ("data", c_void_p),
        ("dimensions", c_int),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("base", c_void_p),
        ("dtype", c_void_p),
        ("flags", c_int),
    )


class Made(ctypes.Structure):
    """What a new array looks like."""

    _fields_ = (
        ("dtype", c_void_p),
        ("dimensions", c_int64),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    )


class Entry(ctypes.Structure):
    """Calls that look alike, and the way they are made."""

    _fields_ = (
        ("way", c_int64),
        ("owner", c_void_p),  # all memory of this entry is its
        ("given", c_int64),  # how many arguments
        ("count", c_int64),  # of them, or of the leaves of lists, tuples and dicts among them
        ("structures", POINTER(c_int64)),  # where there are such: see `_write_form`
        ("names", c_void_p),  # of those at the end that are given by name, or 0
        ("checks", POINTER(c_int64)),
        ("words", c_int64),
        # PLAIN: what is called. Else, without a sequence: what runs the programs.
        ("function", c_void_p),
        # After so many calls one goes the long way, -1: none; how many are left.
        ("skips", c_int64),
        ("left", c_int64),
        ("free", POINTER(Work)),
        ("more", c_void_p),  # makes a Work, gives its address
        ("reads", c_int64),
        ("read", POINTER(c_int64)),  # positions of the arguments that are read
        ("makes", c_int64),
        ("made", POINTER(Made)),
        ("block", c_void_p),  # makes a block, for one run; 0: none is needed, or each Work has one
        # Goes on where the sequence stopped: (arguments, made, steps done, address of the Work).
        ("stopped", c_void_p),
        ("result", POINTER(c_int64)),
        # On a GPU: shape, strides and dtype of each new tensor; the address of `npc_launches`; the
        # number of the device; works that are free.
        ("layouts", POINTER(c_void_p)),
        ("launch", c_void_p),
        ("device", c_void_p),
        ("ready", POINTER(GpuWork)),
        # READ: a function of C that makes a call, and its first argument. It gives 0 without an
        # error where the call is none of these.
        ("called", c_void_p),
        ("form", c_void_p),
        ("sees_all", c_int64),  # whether all arguments are looked at
    )

    def __init__(
        self, way: Way, count: int, names: Names, guards: Iterable[Guard],
        form: tuple | None = None,
    ):  # fmt: skip
        """form: of the arguments, see `Opened`; `count` leaves are in them."""
        words, structures = Words(guards), Words()
        for part in form or ():
            _write_form(part, structures)
        self._held: list[Any] = [names, words.held, structures.held]
        given = count if form is None else len(form)
        by_name = id(names) if names else 0
        opens = None if form is None else structures.array()
        super().__init__(way, id(self), given, count, opens, by_name, words.array(), len(words))

    @property
    def address(self) -> int:
        return ctypes.addressof(self)

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        """From now on C makes the calls; or not. sampled: as of `calls`."""
        self.way = Way.COMPILED if settled else Way.UNSETTLED
        self.skips = self.left = sampled - 1

    def calls(self, function: Callable, sampled: int = 0) -> None:
        """The calls are calls of `function`: plain ones with the arguments, others with a tuple of
        them, and what it gives is given. sampled: one of so many calls is not known, 0: none."""
        self.function = self._keep(function)
        self.skips = self.left = sampled - 1

    def made_by(self, called: int, form: Any, sees_all: bool) -> None:
        """The calls are made by a function of C at an address, which is given a structure.
        sees_all: whether it looks at all arguments."""
        self.way, self.called, self.sees_all = Way.READ, called, sees_all
        self._held.append(form)
        self.form = ctypes.addressof(form)

    def runs(self, sequence: Any, result: Result, place: Callable, stopped: Callable) -> None:
        """The calls run a `kernels.sequence.Sequence`. place: see `giver`. stopped: called with a
        tuple of the arguments, the new arrays, the number of sections done, and the address of the
        work."""
        self.more = self._keep(sequence.work)
        self.reads, self.read = len(sequence.read), _integers(sequence.read)
        self.makes = len(sequence.results)
        self.made = (Made * (self.makes + 1))(
            *[
                Made(self._keep(dtype), len(shape), _integers(shape), _integers(strides))
                for shape, strides, dtype in sequence.results
            ]
        )
        self.block = self._keep(sequence.block) if sequence.block is not None else 0
        self.stopped = self._keep(stopped)
        self._gives(result, place, False)

    def launches(self, sequence: Any, result: Result, place: Callable) -> None:
        """The calls are the launches of a `GpuSequence` of few, if C can make them; it does what
        the entry `calls` else, which it does where arguments are not aligned, too."""
        if len(sequence.read) + len(sequence.results) > _MOST:
            return
        self.more = self._keep(sequence.work)
        self.reads, self.read = len(sequence.read), _integers(sequence.read)
        self.makes = len(sequence.results)
        self.launch = driver.launch_address()
        layouts = [self._keep(layout) for layout in sequence.results]
        self.device = self._keep(sequence.device.index or 0)
        self._gives(result, place, True)
        self.layouts = (c_void_p * (self.makes + 1))(*layouts)

    def _gives(self, result: Result, place: Callable, tensors: bool) -> None:
        words = Words()
        _encode(result, place, tensors, words)
        self.result = words.array()
        self._held.append(words.held)

    def run(self, args: Sequence[Any]) -> Any:
        """Make such a call."""
        return _library().run(self.address, _addresses(args))

    def _keep(self, x: Any) -> int:
        """The address of an object."""
        self._held.append(x)
        return id(x)


def _write_form(form: tuple | None, words: Words) -> None:
    """Its type, how many parts, of a dict its keys, and all parts; of a leaf, 0."""
    if form is None:
        words.add(0)
        return
    kind, *inner = form
    keys = [inner.pop(0)] if kind is dict else []
    words.add(words.of(kind), len(inner), *map(words.of, keys))
    for part in inner:
        _write_form(part, words)


def _integers(values: Sequence[int]) -> Any:
    return (c_int64 * (len(values) + 1))(*values)


def _encode(result: Result, place: Callable[[int], int], tensors: bool, words: Words) -> None:
    kind, what = result
    if kind in (Give.TUPLE, Give.LIST):
        words.add(kind, len(what))
        for part in what:
            _encode(part, place, tensors, words)
    elif kind is Give.ARGUMENT:
        words.add(kind, what)
    elif kind in (Give.MADE, Give.SCALAR):
        words.add(Give.MADE if tensors else kind, place(what))
    elif kind is Give.CONSTANT:
        words.add(kind, words.of(what))
    else:
        words.add(Give.CALL, words.of(giver(result, place, tensors)))


def _addresses(args: Sequence[Any]) -> Any:
    return (c_void_p * (len(args) + 1))(*map(id, args))


class _Table(ctypes.Structure):
    _fields_ = (
        ("entries", POINTER(POINTER(Entry))),
        ("count", c_int64),
        ("reach", POINTER(c_int64)),  # checks of what the function reads beside its arguments
        ("words", c_int64),
        ("miss", c_void_p),
        ("function", c_void_p),
        ("stands", c_void_p),  # the code with which all calls run as the function stands, or 0
        # Until when calls that are not known run as it stands, in nanoseconds; see `Budget`.
        ("pause", POINTER(c_int64)),
        # Calls that are not timed before one is, of those that are READ; 0: none is timed.
        ("unweighed", POINTER(c_int64)),
    )


class Table:
    """The entries of a function. pause: see `Budget`. unweighed: how many calls of what was made
    of its source are not timed before one is; None: none is timed.

    capsule: what C knows it by. call: called as the function is, gives what it gives, or MISS:
    where no entry is for such a call, where its entry is not settled, where something that the
    function reads has changed, and for one plain call of some. unchanged: 1 while what the function
    reads is what it was, else 0.
    """

    def __init__(self, function: Any = None, pause: Any = None, unweighed: Any = None) -> None:
        self._function, self._pause = function, Pause() if pause is None else pause
        self._stands: Any = None
        self._memory = _Table(miss=id(MISS), function=id(function), pause=self._pause)
        if unweighed is not None:
            self._unweighed, self._memory.unweighed = unweighed, ctypes.pointer(unweighed)
        self._held: tuple = ()
        self._read: Any = None
        # Held, as its methods lie in it: threads that begin at once may make one each.
        self._library = _library()
        self.capsule = self._library.capsule(ctypes.addressof(self._memory))
        self.call: Callable = self._library.bind("npc_call", self.capsule)
        self.read: Callable = self._library.bind("npc_read", self.capsule)
        self.unchanged: Callable = self._library.bind("npc_unchanged", self.capsule)

    def publish(self, entries: Sequence[Entry]) -> None:
        """From now on these are the entries. One thread at a time."""
        addresses = (POINTER(Entry) * (len(entries) + 1))(*map(ctypes.pointer, entries))
        before = self._held, self._memory.entries
        self._memory.count = 0  # first, so that `find` finds nothing in between
        self._held = tuple(entries)
        self._memory.entries = addresses
        self._memory.count = len(entries)
        del before

    def watch(self, reach: Sequence[Guard]) -> None:
        """Compiled entries hold while these guards do."""
        words = Words(reach)
        before = self._read
        self._read = words, words.array()
        self._memory.words = 0
        self._memory.reach, self._memory.words = self._read[1], len(words)
        del before

    def begins(self, made: Any, slot: str, stands: types.CodeType | None) -> bool:
        """From now on calls of an object begin in C, with this table; whether they did not. slot:
        of its class, for the capsule. stands: the code with which all calls that are not known run
        as they stand."""
        if stands is not self._stands:
            self._memory.stands = 0
            self._stands = stands
            self._memory.stands = 0 if stands is None else id(stands)
        is_new = getattr(made, slot, None) is not self.capsule
        setattr(made, slot, self.capsule)
        self._library.enter(made, self.capsule, ctypes.addressof(self._memory))
        return is_new

    def find(self, args: Sequence[Any], names: Names) -> Entry | None:
        """The entry for such a call, which is found whatever the function reads."""
        held = self._held
        k = _library().find(
            ctypes.addressof(self._memory), _addresses(args), len(args), id(names) if names else 0
        )
        return None if k < 0 or self._held is not held else held[k]


def declarations() -> str:
    """What C shares with Python: the structures, and the numbers of all kinds."""
    structures = Array, Made, Work, driver.Launch, GpuLink, GpuWork, Entry, _Table, _Capsule, _Row
    made = ["typedef long i64;\ntypedef unsigned long u64;", structures_of_c(*structures, _Class)]
    tables = Check, Give, Way, config.Ways
    kinds = [f"{kind.name} = {int(kind)}" for table in tables for kind in table]
    kinds += [f"MOST = {_MOST}", f"LEAVES = {LEAVES}"]
    return "\n".join([*made, f"enum {{ {', '.join(kinds)} }};\n"])


class _Method(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("text", c_char_p))


class _Row(ctypes.Structure):
    """A name, and where its address goes."""

    _fields_ = (("name", c_char_p), ("address", POINTER(c_void_p)))


class _Capsule(ctypes.Structure):
    """What Python knows a table by."""

    _fields_ = (("references", c_int64), ("type", c_void_p), ("pointer", POINTER(_Table)))

    @property
    def address(self) -> int:
        return ctypes.addressof(self.pointer.contents)


class _Class(ctypes.Structure):
    """The class of compiled functions: where in one its table's capsule lies, what calls one."""

    _fields_ = (("table", c_int64), ("call", c_void_p))


@functools.cache
def _sources() -> list[tuple[str, str]]:
    """The C texts that kept calls need, with their names."""
    names = "calls.c", "entering.c"
    texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names]
    return [("\n".join([declarations(), *texts]), "calls"), (sequence_source(), "sequence")]


class _Library:
    """The functions of `calls.c` and `entering.c`, which hold the interpreter's lock."""

    def __init__(self) -> None:
        job = _job()
        found = build.load_all(_sources()) if job is None else job.result()
        self._library = library = found[0]
        errstate.raises()  # so that there is a state that C knows
        table = ctypes.cast(_numpy_table(), POINTER(c_void_p))
        found = {
            "array": id(np.ndarray), "integer": id(int), "floating": id(float),
            "complex": id(complex), "tuple": id(tuple), "list": id(list), "dict": id(dict),
            "new_array": table[_NEW_ARRAY],
            "scalar": table[_SCALAR], "sequence": run_address(), "yes": id(True),
            "errors": id(errstate.variable), "warnings": id(vars(warnings)),
            "filters": id(_FILTERS), "calm": errstate.calm_address,
            "allowed": ctypes.addressof(config.allowed), "captures": ctypes.addressof(captures),
            "ended": ctypes.addressof(build.Job.ended),
            "modes_of_thread": modes_of_thread, "modes_at": modes_at,
            "runs_frames": runs_frames, "usual": usual,
            "modules": id(sys.modules), "cupy": id(_CUPY),
            "items": tuple.__basicsize__, "none": id(None), "missed": id(MISS),
            "tag": dict_tags.OFFSET,
            "function": id(types.FunctionType), "calls_at": callee.place_of(types.FunctionType),
            **{name: id(value) for name, value in _OF_TORCH.items()},
        }  # fmt: skip
        rows = ctypes.cast(library.npc_names, POINTER(_Row))
        k = 0
        while (name := rows[k].name) is not None:
            known = found.get(name.decode())
            if known is None:
                known = _address(getattr(ctypes.pythonapi, name.decode()))
            rows[k].address[0] = known
            k += 1
        size, pointer, thing = c_int64, c_void_p, ctypes.py_object
        self.find = ctypes.PYFUNCTYPE(size, pointer, pointer, size, pointer)(
            _address(library.npc_find)
        )
        self.run = ctypes.PYFUNCTYPE(thing, pointer, pointer)(_address(library.npc_run))
        self._methods = {
            name: _Method(shown, _address(getattr(library, name)), _FASTCALL, None)
            for name, shown in _METHODS.items()
        }
        self._class = _Class.in_dll(library, "npc_class")
        self._descriptor = _python("PyDescr_NewWrapper", thing, thing, pointer, pointer)
        self._enter = _address(library.npc_enter)
        self._vectorcall = _address(library.npc_vectorcall)
        self._capsule = _python("PyCapsule_New", thing, pointer, pointer, pointer)
        self._function = _python("PyCFunction_NewEx", thing, pointer, thing, pointer)

    def capsule(self, table: int) -> Any:
        """What Python knows the table at an address by."""
        return self._capsule(table, None, None)

    def bind(self, name: str, capsule: Any) -> Callable:
        """A function of C for this table, as one of Python's."""
        made: Callable = self._function(ctypes.addressof(self._methods[name]), capsule, None)
        return made

    def enter(self, made: Any, capsule: Any, table: int) -> None:
        """Have calls of an object begin in C, if it is seen where the capsule lies, and in that the
        address of the table."""
        owner = type(made)
        call = owner.__dict__["__call__"]
        if self._class.call is None and isinstance(call, types.FunctionType):
            words = (c_void_p * (owner.__basicsize__ // 8)).from_address(id(made))
            places = [8 * k for k, word in enumerate(words) if word == id(capsule)]
            if len(places) != 1 or _Capsule.from_address(id(capsule)).address != table:
                return
            owner._call_in_python = call
            self._class.call, self._class.table = id(call), places[0]
            # As one of the class' slots: Python calls it without looking for it.
            base = c_void_p.from_address(id(_SLOT) + _BASE)
            owner.__call__ = self._descriptor(owner, base, self._enter)
            # Objects are bound as functions are, by what binds those.
            base, binds = (c_void_p.from_address(id(_BINDS) + k) for k in (_BASE, _WRAPPED))
            owner.__get__ = self._descriptor(owner, base, binds)
            callee.enable(owner)
        if self._class.call is not None:
            callee.set_function(made, self._vectorcall)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _python(name: str, result: Any, *parameters: Any) -> Callable:
    """A function of Python's. (Those of `ctypes.pythonapi` itself are everybody's.)"""
    made: Callable = ctypes.PYFUNCTYPE(result, *parameters)((name, ctypes.pythonapi))
    return made


def _numpy_table() -> int:
    """The address of NumPy's table of C functions."""
    get = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return int(get(np._core._multiarray_umath._ARRAY_API, None))  # type: ignore[attr-defined]


@functools.cache
def _library() -> _Library:
    return _Library()


def _looks_as_expected(a: np.ndarray) -> bool:
    seen = Array.from_address(id(a))
    return (
        seen.type == id(type(a))
        and seen.data == a.__array_interface__["data"][0]
        and seen.dimensions == a.ndim
        and tuple(seen.shape[: a.ndim]) == a.shape
        and tuple(seen.strides[: a.ndim]) == a.strides
        and seen.dtype == id(a.dtype)
        and seen.flags == a.flags.num
    )


@functools.cache
def _job() -> build.Compile | None:
    """The compile of what kept calls need, where it is not in the cache."""
    return None if build.load_cached(_sources()) is not None else build.Compile(_sources())


def pending() -> bool:
    """Whether it is not known yet if calls can be known, since the C compiler is at work. It
    begins."""
    try:
        job = _job()
    except build.NoCompiler:
        return False
    return job is not None and not job.ready


@functools.cache
def available() -> bool:
    """Whether calls can be known: objects and arrays lie in memory as `calls.c` takes them to, and
    the C compiler does its work."""
    if object.__basicsize__ != Array.data.offset or types.FunctionType.__dictoffset__ <= 0:
        return False
    arrays = (np.zeros(3), np.zeros((4, 5))[1:, ::2], np.array(1.0), np.zeros(0, np.int8))
    if not all(map(_looks_as_expected, arrays)):
        return False
    try:
        _library()
    except build.CompileFailed as e:
        e.warn("calls go by Python, since the C compiler failed")
        return False
    except (build.NoCompiler, AttributeError):  # or a name has gone
        return False
    return True
