"""Calls of a compiled function that are known: `calls.c` finds and makes them without Python.

A `Table` belongs to a function. Its entries say what calls are like the ones they were made of, and
how to make such a call. What C reads of them are lists of words, integers and addresses.
"""

from __future__ import annotations

import ctypes
import functools
import types
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from np_compile.kernels import build

Names = tuple[str, ...]

MISS: Any = object()  # what a call gives that is not known

_HEAD = object.__basicsize__
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_FASTCALL = 0x80 | 0x2  # METH_FASTCALL | METH_KEYWORDS
_NEW_ARRAY, _SCALAR = 94, 76  # PyArray_NewFromDescr and PyArray_Return in NumPy's table
_USABLE = 0x0100 | 0x0400  # NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE


class _Check(IntEnum):
    """What a check looks at."""

    ARRAY, VALUE, TYPE, PAIR, BYTES, NAME, CELL, FUNCTION = range(8)


class Give(IntEnum):
    """What a part of a result is: an argument, a new array, its only element as a scalar, a tuple
    or list of parts, a constant, what a function of the arguments and the new arrays gives."""

    ARGUMENT, MADE, SCALAR, TUPLE, LIST, CONSTANT, CALL = range(7)


class Way(IntEnum):
    """How an entry's calls are made: not by C yet, by its programs, by the function as it is."""

    UNSETTLED, COMPILED, PLAIN = range(3)


def _names() -> str:
    """The numbers of all kinds, as C declares them."""
    kinds = [f"{kind.name} = {int(kind)}" for table in (_Check, Give, Way) for kind in table]
    return f"enum {{ {', '.join(kinds)} }};\n"


Result = tuple[Give, Any]  # with a position, a sequence of parts, a value, or a function


def give(result: Result, args: Sequence[Any], made: Sequence[Any]) -> Any:
    """What a function gives, of its arguments and new arrays."""
    kind, what = result
    if kind is Give.ARGUMENT:
        return args[what]
    if kind is Give.MADE:
        return made[what]
    if kind is Give.SCALAR:
        return made[what][()]
    if kind is Give.CONSTANT:
        return what
    if kind is Give.CALL:
        return what(args, made)
    parts = [give(part, args, made) for part in what]
    return tuple(parts) if kind is Give.TUPLE else parts


class _Words:
    """Words for C, and the objects whose addresses are among them."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self.held: list[Any] = []

    def add(self, *words: int) -> None:
        self._words += words

    def of(self, x: Any) -> int:
        """The address of an object."""
        self.held.append(x)
        return id(x)

    def finish(self) -> tuple[int, int]:
        """The address of the words, and how many there are."""
        words = np.array([*self._words, 0], np.int64)
        self.held.append(words)
        return words.ctypes.data, len(self._words)


def _span(a: np.ndarray) -> int:
    """The bytes from an array's first element to the end of its last; strides are not negative."""
    reach = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
    return reach + a.itemsize if a.size else 0


def _array(words: _Words, k: int, a: np.ndarray, needs: int) -> None:
    words.add(_Check.ARRAY, k, words.of(a.dtype), needs, a.ndim, *a.shape, *a.strides)


def exact_checks(args: tuple, read: dict[tuple[int, Any], bytes], writes: bool) -> _Words:
    """Checks that hold for calls in which arrays look as these do, and other values are the same.

    read: (position, index) of elements, or of all where it is `...`, that have to be the same.
    writes: whether arrays must not overlap.
    """
    words = _Words()
    arrays = [k for k, a in enumerate(args) if type(a) is np.ndarray]
    for k, a in enumerate(args):
        if type(a) is np.ndarray:
            _array(words, k, a, _USABLE)
        else:
            words.add(_Check.VALUE, k, words.of(a))
    for m, k in ((m, k) for m in arrays for k in arrays if k < m):
        a, b = args[k], args[m]
        words.add(_Check.PAIR, k, m, a is b, writes, _span(a), _span(b))
    for (k, index), content in read.items():
        for offset, size, start in _pieces(args[k], index):
            there = content[start : start + size]
            words.add(_Check.BYTES, k, offset, size, words.of(there) + bytes.__basicsize__ - 1)
    return words


def _pieces(a: np.ndarray, index: Any) -> list[tuple[int, int, int]]:
    """(offset in the array, bytes, offset in what `tobytes` gives) of elements."""
    if index is ...:
        if a.flags.c_contiguous:
            return [(0, a.nbytes, 0)]
        places = list(np.ndindex(a.shape))
    else:
        places = [index]
    width = a.itemsize
    offsets = [
        sum(i % n * s for i, n, s in zip(p, a.shape, a.strides, strict=True)) for p in places
    ]
    return [(offset, width, n * width) for n, offset in enumerate(offsets)]


def alike_checks(args: tuple) -> _Words | None:
    """Checks that hold for calls of the same `choice.signature`; None where they cannot say it."""
    words = _Words()
    for k, a in enumerate(args):
        kind = type(a)
        if kind is np.ndarray:
            _array(words, k, a, 0)
        elif kind in (int, bool, str, type(None)):
            words.add(_Check.VALUE, k, words.of(a))
        elif kind in (tuple, list, dict):
            return None
        else:
            words.add(_Check.TYPE, k, words.of(kind))
    return words


def reach_checks(
    names: list[tuple], cells: list[tuple], functions: list[tuple], missing: Any
) -> _Words:
    """Checks of what a function reads beside its arguments: (globals, name, value), (cell, value),
    and (function, code, defaults, keyword defaults). missing: the value of a name that leads
    nowhere."""
    words = _Words()

    def of(x: Any, none: Any = None) -> int:
        return 0 if x is none else words.of(x)

    for scope, name, value in names:
        words.add(_Check.NAME, words.of(scope), words.of(name), of(value, missing))
    for cell, value in cells:
        words.add(_Check.CELL, words.of(cell), of(value, missing))
    for f, code, defaults, named in functions:
        words.add(
            _Check.FUNCTION, words.of(f), types.FunctionType.__dictoffset__, words.of(code),
            of(defaults), of(named),
        )  # fmt: skip
    return words


class _Made(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_void_p),
        ("dimensions", ctypes.c_int64),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
    ]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("way", ctypes.c_int64),
        ("owner", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("names", ctypes.c_void_p),
        ("checks", ctypes.c_void_p),
        ("words", ctypes.c_int64),
        ("function", ctypes.c_void_p),
        ("skips", ctypes.c_int64),
        ("left", ctypes.c_int64),
        ("free", ctypes.c_void_p),
        ("more", ctypes.c_void_p),
        ("reads", ctypes.c_int64),
        ("read", ctypes.c_void_p),
        ("makes", ctypes.c_int64),
        ("made", ctypes.c_void_p),
        ("block", ctypes.c_void_p),
        ("stopped", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
    ]


class Entry:
    """Calls that look alike, and the way they are made."""

    def __init__(self, way: Way, count: int, names: Names, checks: _Words):
        self._held: list[Any] = [names, checks.held]
        self._memory = e = _Entry()
        e.way = way
        e.owner = id(self)
        e.count = count
        e.names = id(names) if names else 0
        e.checks, e.words = checks.finish()

    @property
    def address(self) -> int:
        return ctypes.addressof(self._memory)

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        """From now on C makes the calls; or not. sampled: as of `calls`."""
        self._memory.way = Way.COMPILED if settled else Way.UNSETTLED
        self._memory.skips = self._memory.left = sampled - 1

    def calls(self, function: Callable, sampled: int = 0) -> None:
        """The calls are calls of `function`: plain ones with the arguments, others with a tuple of
        them, and what it gives is given. sampled: one of so many calls is not known, 0: none."""
        self._memory.function = self._keep(function)
        self._memory.skips = self._memory.left = sampled - 1

    def runs(self, sequence: Any, result: Result, stopped: Callable) -> None:
        """The calls run a `kernels.run.sequence.Sequence`. stopped: called with a tuple of the
        arguments, the new arrays, the number of sections done, and the address of the work."""
        e = self._memory
        e.more = self._keep(sequence.work)
        e.reads, e.read = len(sequence.read), self._integers(sequence.read)
        made = (_Made * (len(sequence.results) + 1))()
        self._held.append(made)
        for m, (shape, strides, dtype) in zip(made, sequence.results, strict=False):
            m.dtype, m.dimensions = self._keep(dtype), len(shape)
            m.shape, m.strides = self._integers(shape), self._integers(strides)
        e.makes, e.made = len(sequence.results), ctypes.addressof(made)
        e.block = self._keep(sequence.block) if sequence.block is not None else 0
        e.stopped = self._keep(stopped)
        words = _Words()
        _encode(result, words)
        e.result = words.finish()[0]
        self._held.append(words.held)

    def run(self, args: Sequence[Any]) -> Any:
        """Make such a call."""
        return _library().run(self.address, _addresses(args))

    def _keep(self, x: Any) -> int:
        """The address of an object."""
        self._held.append(x)
        return id(x)

    def _integers(self, values: Sequence[int]) -> int:
        """The address of integers."""
        array = (ctypes.c_int64 * (len(values) + 1))(*values)
        self._held.append(array)
        return ctypes.addressof(array)


def _encode(result: Result, words: _Words) -> None:
    kind, what = result
    if kind in (Give.TUPLE, Give.LIST):
        words.add(kind, len(what))
        for part in what:
            _encode(part, words)
    else:
        words.add(kind, words.of(what) if kind in (Give.CONSTANT, Give.CALL) else what)


def _addresses(args: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * (len(args) + 1))(*map(id, args))


class _Table(ctypes.Structure):
    _fields_ = [
        ("entries", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("reach", ctypes.c_void_p),
        ("words", ctypes.c_int64),
        ("miss", ctypes.c_void_p),
    ]


class Table:
    """The entries of a function.

    call: called as the function is, gives what it gives, or MISS: where no entry is for such a
    call, where its entry is not settled, where something that the function reads has changed, and
    for one plain call of some.
    """

    def __init__(self) -> None:
        self._memory = _Table()
        self._memory.miss = id(MISS)
        self._held: Any = None
        self._read: Any = None
        self.call: Callable = _library().bind(ctypes.addressof(self._memory))

    def publish(self, entries: Sequence[Entry]) -> None:
        """From now on these are the entries."""
        addresses = (ctypes.c_void_p * (len(entries) + 1))(*(e.address for e in entries))
        before = self._held
        self._held = addresses, tuple(entries)
        self._memory.count = 0
        self._memory.entries = ctypes.addressof(addresses)
        self._memory.count = len(entries)
        del before

    def watch(self, reach: _Words) -> None:
        """Compiled entries hold while these checks do."""
        address, count = reach.finish()
        before = self._read
        self._read = reach
        self._memory.words = 0
        self._memory.reach, self._memory.words = address, count
        del before

    def find(self, args: Sequence[Any], names: Names) -> Entry | None:
        """The entry for such a call, which is found whatever the function reads."""
        k = _library().find(
            ctypes.addressof(self._memory), _addresses(args), len(args), id(names) if names else 0
        )
        return None if k < 0 else self._held[1][k]

    def unchanged(self) -> bool:
        """Whether what the function reads is what it was."""
        return bool(_library().unchanged(ctypes.addressof(self._memory)))


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


class _Found(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            "array", "floating", "complex", "tuple", "new_array", "scalar", "threads", "sequence",
        )
    ]  # fmt: skip


class _Row(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("address", ctypes.POINTER(ctypes.c_void_p))]


class _Library:
    """The functions of `calls.c`, which hold the interpreter's lock."""

    def __init__(self) -> None:
        from np_compile.kernels.run import sequence

        text = Path(__file__).with_name("calls.c").read_text(encoding="utf-8")
        both = [(_names() + text, "calls"), (sequence.source(), "sequence")]
        self._library = library = build.load_all(both)[0]
        rows = ctypes.cast(library.npc_python, ctypes.POINTER(_Row))
        k = 0
        while (name := rows[k].name) is not None:
            rows[k].address[0] = _address(getattr(ctypes.pythonapi, name.decode()))
            k += 1
        found = _Found.in_dll(library, "npc_found")
        found.array, found.floating = id(np.ndarray), id(float)
        found.complex, found.tuple = id(complex), id(tuple)
        table = ctypes.cast(_numpy_table(), ctypes.POINTER(ctypes.c_void_p))
        found.new_array, found.scalar = table[_NEW_ARRAY], table[_SCALAR]
        self._threads = torch.get_num_threads
        found.threads = id(self._threads)
        found.sequence = sequence.run_address()
        size, pointer = ctypes.c_int64, ctypes.c_void_p
        self.find = ctypes.PYFUNCTYPE(size, pointer, pointer, size, pointer)(
            _address(library.npc_find)
        )
        self.unchanged = ctypes.PYFUNCTYPE(size, pointer)(_address(library.npc_unchanged))
        self.run = ctypes.PYFUNCTYPE(ctypes.py_object, pointer, pointer)(_address(library.npc_run))
        self._method = _Method(b"call", _address(library.npc_call), _FASTCALL, None)
        thing = ctypes.py_object
        self._capsule = _python("PyCapsule_New", thing, pointer, pointer, pointer)
        self._function = _python("PyCFunction_NewEx", thing, pointer, thing, pointer)

    def bind(self, table: int) -> Callable:
        """`npc_call` as a function of Python's."""
        made: Callable = self._function(
            ctypes.addressof(self._method), self._capsule(table, None, None), None
        )
        return made


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


class _Array(ctypes.Structure):
    """NumPy's array behind its head."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dimensions", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


def _looks_as_expected(a: np.ndarray) -> bool:
    seen = _Array.from_address(id(a) + _HEAD)
    return (
        ctypes.c_void_p.from_address(id(a) + _HEAD - _POINTER).value == id(type(a))
        and seen.data == a.__array_interface__["data"][0]
        and seen.dimensions == a.ndim
        and tuple(seen.shape[: a.ndim]) == a.shape
        and tuple(seen.strides[: a.ndim]) == a.strides
        and seen.dtype == id(a.dtype)
        and seen.flags == a.flags.num
    )


@functools.cache
def available() -> bool:
    """Whether calls can be known: objects and arrays lie in memory as `calls.c` takes them to, and
    the C compiler does its work."""
    if _HEAD != 2 * _POINTER or types.FunctionType.__dictoffset__ <= 0:
        return False
    arrays = (np.zeros(3), np.zeros((4, 5))[1:, ::2], np.array(1.0), np.zeros(0, np.int8))
    if not all(map(_looks_as_expected, arrays)):
        return False
    try:
        _library()
    except (build.CompileFailed, build.NoCompiler, AttributeError):  # or a name has gone
        return False
    return True
