"""Calls of regions by C itself, without a line of Python: `dispatch.c` makes them.

What a region's inputs have to be (see `entry`), and what an exit gives (see `exits`), are rows of
integers here. Regions with inputs of other kinds than these are called by Python, and it makes what
other exits give: what is a way out, and lists and objects.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import sys
import types
from collections.abc import Callable
from ctypes import POINTER, c_int64, c_void_p
from enum import IntEnum
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from np_compile import config, dict_tags, log
from np_compile.kernels.build.beside import Job, Libraries
from np_compile.kernels.build.structures import declarations
from np_compile.kernels.build.toolchain import CompileFailed, NoCompiler
from np_compile.kernels.targets.c.prelude import prelude

from . import direct, runtime, twister
from .direct import NotInC
from .entry import KEYS, LISTED, SAME, Entry, Exit, Input
from .linear import WIDE
from .pieces import SMALL, is_itself
from .random import generator_of
from .source import written
from .values import KIND_OF_DTYPE, TEXT

_FEW = 16  # items that take next to no time
_VIEWS, _GENERATORS = 8, 8  # arrays that an exit gives, generators that a region is given
_SCALAR_AS_CTYPE = 62  # in NumPy's table


class Fetch(IntEnum):
    """Where an input is found."""

    ARGUMENT, OBJECT, NAME, BUILTIN, CELL, ATTRIBUTE, KEY, OF, METHOD, KEYS = range(10)


class Fits(IntEnum):
    """What it has to be."""

    SAME, TYPED, EQUAL, INTEGER, FLOATING, COMPLEX, ARRAY, SCALAR, ITEMS, FUNCTION = range(10)
    GENERATOR = 10


class Gives(IntEnum):
    """What leaves, beside what is an argument to `direct.Row`."""

    PLACE, ONE_OF, OR_NONE, OUT_ARRAY, OUT_TUPLE, INT_OF_FLOAT = range(20, 26)


class State(ctypes.Structure):
    """Memory of one run at a time. found: the values of the inputs."""

    _fields_ = (
        ("next", c_void_p),
        ("runtime", c_void_p),
        ("words", c_void_p),
        ("found", POINTER(c_void_p)),
    )


class _Form(ctypes.Structure):
    """Calls of one form. of, code, defaults, named: the function, and what it has to have."""

    _fields_ = (
        ("is_live", c_int64),
        ("of", c_void_p),
        ("code", c_void_p),
        ("defaults", c_void_p),
        ("named", c_void_p),
        ("function", c_void_p),
        ("finish", c_void_p),
        # Names in dicts and what they lead to; these dicts, and the tags that they had when it was
        # last looked; where in a dict its tag is, or 0.
        ("names", POINTER(c_int64)),
        ("names_end", POINTER(c_int64)),
        ("dicts", POINTER(c_int64)),
        ("tags", POINTER(c_int64)),
        ("count", c_int64),
        ("tag", c_int64),
        ("arguments", c_int64),
        ("inputs", c_int64),
        ("guards", POINTER(c_int64)),
        ("exits", POINTER(POINTER(c_int64))),  # by number; 0: Python's
        ("free", c_void_p),  # states
        ("more", c_void_p),  # makes a state, gives its address
        ("ended", c_void_p),  # Python's: (address of the state, exit, inputs, arguments)
        ("runs", c_int64),
        # How many items were in the lists of the last call that was timed, as many as count at
        # least; the calls before the next one is: see `replay.calls.Table`.
        ("items", c_int64),
        ("unweighed", POINTER(c_int64)),
    )


class Rows:
    """The rows of a region: what its inputs are, of whatever form the call, and its exits."""

    def __init__(self, entry: Entry):
        self._held: list[Any] = []
        self._places = {path: k for k, path in enumerate(entry.inputs)}
        # The names of dicts that have to be there, and what they have to lead to.
        self.dicts: list[dict] = []
        self.names: list[int] = []
        inputs = entry.inputs.values()
        self.inputs = [self._settled(self._fetch(i), self._fits(i)) for i in inputs]
        lists = [self._places[i.path] for i in inputs if i.piece is LISTED]
        if lists and (entry.aside or entry.classes):
            raise NotInC
        one = [self._place(path) for path in may_be_one(entry)]
        parameters = {path[1] for path in entry.inputs if path[0] == "local" and len(path) == 2}
        self.sees_all = parameters >= {*entry.example}  # the arguments of each call
        drawn = [
            (self._places[i.path], self._address(_bits(i.value)))
            for i in inputs
            if generator_of(i.value) is not None
        ]
        if len(drawn) > _GENERATORS:
            raise NotInC
        self.ends = [len(one), *one, len(lists), *lists, len(drawn), *chain(*drawn)]
        self._paths = {k: v for k, v in entry.paths.items() if isinstance(k, str)}
        self.exits = {number: self._exit(x) for number, x in entry.exits.items()}

    def _address(self, x: Any) -> int:
        self._held.append(x)
        return id(x)

    def _place(self, path: tuple) -> int:
        place = self._places.get(path)
        if place is None:
            raise NotInC
        return place

    # Inputs

    def _settled(
        self, where: list[int] | str, what: list[int]
    ) -> tuple[list[int] | str, list[int]]:
        """How an input is found, and what it has to be: what a name leads to is known where it has
        to be one object, and the dict is looked at only when it has changed."""
        if (
            type(where) is str
            or what[0] != Fits.SAME
            or where[0] not in (Fetch.NAME, Fetch.BUILTIN)
        ):
            return where, what
        self.names += [*where, what[1]]
        for at in where[1:-1]:
            found = next(x for x in self._held if id(x) == at)
            if not any(x is found for x in self.dicts):
                self.dicts.append(found)
        return [Fetch.OBJECT, what[1], 0], what

    def _fetch(self, i: Input) -> list[int] | str:
        """The words that find an input; the name of a parameter."""
        where, last = i.path[0], i.path[-1]
        if last == KEYS:
            return [Fetch.KEYS, self._place(i.path[:-1]), 0]
        if where == "local" and len(i.path) == 2:
            return str(last)
        if isinstance(last, str) and last.startswith("."):
            names = [self._address(sys.intern(name)) for name in last[1:].split(".")]
            kind = Fetch.ATTRIBUTE if len(names) == 1 else Fetch.METHOD
            return [kind, self._place(i.path[:-1]), *names]
        if isinstance(last, str) and last.startswith("["):
            key = self._address(ast.literal_eval(last)[0])
            return [Fetch.KEY, self._place(i.path[:-1]), key]
        if where == "global":
            return [Fetch.NAME, self._address(i.path[1].__globals__), self._address(last)]
        if where == "builtin":
            f = i.path[1]
            scopes = self._address(f.__globals__), self._address(f.__builtins__)
            return [Fetch.BUILTIN, *scopes, self._address(last)]
        if where == "cell":
            f = i.path[1]
            cell = f.__closure__[f.__code__.co_freevars.index(last)]
            return [Fetch.CELL, self._address(cell), 0]
        if where == "module" and type(i.path[1]) is types.ModuleType and last in vars(i.path[1]):
            return [Fetch.NAME, self._address(vars(i.path[1])), self._address(last)]
        if where in ("module", "function") and "." not in last:
            return [Fetch.OF, self._address(i.path[1]), self._address(last)]
        if where == "state":
            return [Fetch.OF, self._address(np.random.mtrand), self._address("_rand")]
        raise NotInC

    def _fits(self, i: Input) -> list[int]:
        x = i.value
        if i.piece is SAME or (type(i.piece) is tuple and i.piece[0] == "same"):
            return [Fits.SAME, self._address(x)]
        if i.piece is KEYS:
            return [Fits.EQUAL, self._address(x)]
        if i.piece is LISTED:
            return [Fits.TYPED, self._address(type(x))]
        if twister.is_drawn(x):
            raise NotInC
        found = generator_of(x)
        if found is not None:
            bits: Any = found[0]
            if _pointer(bits.capsule, b"BitGenerator") != bits.ctypes.bit_generator.value:
                raise NotInC
            names = _bits(x), "capsule"
            return [Fits.GENERATOR, self._address(type(x)), *map(self._address, names)]
        return self._value(x, i.taken)

    def _value(self, x: Any, taken: bool) -> list[int]:
        kind = type(x)
        if kind is np.ndarray:
            given = taken and x.dtype in KIND_OF_DTYPE
            return [Fits.ARRAY, self._address(x.dtype), given]
        if kind is int and -SMALL < x < SMALL:
            return [Fits.INTEGER, SMALL, 0]
        if kind is int and -WIDE <= x < WIDE:
            return [Fits.INTEGER, 0, SMALL]
        if kind is float:
            return [Fits.FLOATING, 0]
        if kind is bool or x is None:
            return [Fits.SAME, self._address(x)]
        if kind is str:
            return [Fits.EQUAL, self._address(x)]
        if kind is complex and taken:
            return [Fits.COMPLEX, self._address(complex)]
        if isinstance(x, np.generic) and x.dtype in KIND_OF_DTYPE and taken:
            return [Fits.SCALAR, self._address(kind), ord(x.dtype.kind), x.itemsize]
        if kind in (tuple, list) or (isinstance(x, tuple) and hasattr(kind, "_fields")):
            if not taken:
                raise NotInC
            row = [Fits.ITEMS, self._address(kind), kind is list, len(x)]
            for y in x:
                row += self._value(y, taken)
            return row
        f = written(x)
        if isinstance(f, types.FunctionType):
            parts = f.__code__, f.__defaults__, f.__kwdefaults__
            own = [self._address(part) if part is not None else 0 for part in parts]
            return [Fits.FUNCTION, self._address(x), self._address(f), *own]
        if is_itself(x):
            return [Fits.SAME, self._address(x)]
        if kind in (int, range) or isinstance(x, np.generic) or generator_of(x) is not None:
            raise NotInC
        return [Fits.TYPED, self._address(kind)]

    # Exits

    def _exit(self, x: Exit) -> list[int] | None:
        """The words of an exit; None if it is Python's."""
        if x.frames is not None:
            return None
        out = _Out(self)
        try:
            row = [len(x.attributes)]
            for (owner, name), spec in x.attributes.items():
                is_item = name.startswith("[")
                key = ast.literal_eval(name)[0] if is_item else name
                flag = -1
                if spec[0] == "maybe":
                    _, flag, spec = spec
                value = out.words(spec)
                path = owner if isinstance(owner, tuple) else self._paths[owner]
                row += [self._place(path), self._address(key), is_item, flag, len(value), *value]
            return row + out.words(x.result)
        except NotInC:
            return None


def _bits(x: Any) -> str:
    """The attribute of a generator that has its bit generator."""
    return "bit_generator" if type(x) is np.random.Generator else "_bit_generator"


_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

# The kinds of numbers that are made of a word's integer, its float, and of two floats.
_LETTERS = {"i": "biu", "f": "f", "c": "cf"}


def _letter(kind: str) -> str:
    return np.dtype(kind.rstrip("_")).kind if kind not in ("wide", *TEXT) else "none"


class _Out(direct.Values):
    """The words of what an exit gives."""

    def __init__(self, rows: Rows):
        self._rows = rows
        self._held = rows._held
        self._arrays = 0
        self._lists: set[int] = set()

    def words(self, spec: Any) -> list[int]:
        """Those of a value that `Export.value` describes."""
        row: list[int] = []
        self._value(spec, row)
        return row

    def _value(self, spec: Any, row: list[int]) -> None:
        kind = spec[0]
        if kind in ("number", "complex"):
            kinds, tag = spec[1], spec[3]
            if tag is None:
                part = "c" if kind == "complex" else spec[4]
                if kinds[0] == "int" and part != "i":  # together with a float, in one variable
                    row += (Gives.INT_OF_FLOAT, spec[2])
                elif _letter(kinds[0]) in _LETTERS[part]:
                    super()._value(spec, row)
                else:
                    raise NotInC
                return
            each = [self.words((kind, (name,), spec[2], None, *spec[4:])) for name in kinds]
            starts = list(accumulate(map(len, each), initial=3 + len(each)))
            row += (Gives.ONE_OF, tag, starts.pop(), *starts)
            for part in each:
                row += part
        elif kind == "array":
            self._arrays += 1
            if self._arrays > _VIEWS:
                raise NotInC
            at, view = len(row), spec[-1]
            super()._value(spec, row)
            row[at] = Gives.OUT_ARRAY
            row += (1, view[1]) if type(view) is tuple else (0, view)
        elif kind == "tuple":
            _, made, items = spec
            if id(spec) in self._lists:  # one list in two places
                raise NotInC
            if made is list:
                self._lists.add(id(spec))
            maker = 0 if made in (tuple, list) else self._address(made)
            row += (Gives.OUT_TUPLE, maker, int(made is list), len(items))
            for x in items:
                self._value(x, row)
        elif kind == "or none":
            inner = self.words(spec[2])
            row += (Gives.OR_NONE, spec[1], len(inner), *inner)
        elif kind == "path":
            path = spec[1]
            place = path if isinstance(path, tuple) else self._rows._paths[path]
            row += (Gives.PLACE, self._rows._place(place))
        else:
            super()._value(spec, row)


def may_be_one(entry: Entry) -> list[tuple]:
    """The paths of objects of types of which attributes are set, if there are several of one."""
    types = {type(entry.object_at(entry.paths[owner])) for owner, _ in entry.set.values()}
    paths = [path for name, path in entry.paths.items() if isinstance(name, str)]
    found = [path for path in paths if type(entry.object_at(path)) in types]
    return found if len(found) > 1 else []


def rows(entry: Entry) -> Rows | None:
    """The rows of a region; None if Python makes its calls."""
    try:
        return Rows(entry)
    except NotInC:
        return None


class Form:
    """The calls of a region with so many arguments, the last ones by these names, for C. called:
    the address of what makes one, of that of `memory` and those of its arguments; see `npc_called`.
    sees_all: whether all arguments are looked at.

    more: makes the memory of one run at a time, `region._Call`. ended: see `Reading`.
    """

    def __init__(
        self, f: types.FunctionType, count: int, names: tuple[str, ...], of: Rows, function: Any,
        finish: Any, more: Callable, ended: Callable,
    ):  # fmt: skip
        library = _library()
        assert library is not None
        self.count, self.names, self.called = count, names, library.called
        self.sees_all = of.sees_all
        self._of, self._more, self._on_end = of, more, ended
        self._states: dict[int, tuple] = {}
        guards: list[int] = []
        for where, what in of.inputs:
            guards += self._fetch(f, where) if isinstance(where, str) else where
            guards += what
        exits = (POINTER(c_int64) * (max(of.exits, default=0) + 1))()
        for number, row in of.exits.items():
            if row is not None:
                exits[number] = ctypes.cast((c_int64 * len(row))(*row), POINTER(c_int64))
        inputs = (c_int64 * (len(guards) + len(of.ends)))(*guards, *of.ends)
        n = len(of.dicts)
        dicts, tags = (c_int64 * (n + 1))(*map(id, of.dicts)), (c_int64 * (n + 1))()
        names_of = (c_int64 * (len(of.names) + 1))(*of.names)
        behind = ctypes.byref(names_of, 8 * len(of.names))
        end_of = ctypes.cast(behind, POINTER(c_int64))
        held = f, f.__code__, f.__defaults__, f.__kwdefaults__
        self._held = (*held, make := self._state, end := self._ended)
        self.memory = _Form(
            1, *(0 if x is None else id(x) for x in held),
            ctypes.cast(function, c_void_p).value, ctypes.cast(finish, c_void_p).value,
            names_of, end_of, dicts, tags, n, dict_tags.OFFSET, count, len(of.inputs), inputs,
            exits, None, id(make), id(end), 0, _FEW, None,
        )  # fmt: skip

    def _fetch(self, f: types.FunctionType, name: str) -> list[int]:
        """The words that find a parameter's value."""
        code = f.__code__
        positional, given = code.co_varnames[: code.co_argcount], self.count - len(self.names)
        if name in self.names:
            return [Fetch.ARGUMENT, given + self.names.index(name), 0]
        if name not in positional:  # a default of a keyword
            return [Fetch.NAME, id(f.__kwdefaults__), self._of._address(name)]
        k = positional.index(name)
        if k < given:
            return [Fetch.ARGUMENT, k, 0]
        defaults = f.__defaults__ or ()
        return [Fetch.OBJECT, id(defaults[k - len(positional)]), 0]

    def counts(self, unweighed: c_int64) -> None:
        """A call with many times the items of the last one that was timed counts for as many of
        those that are not timed."""
        self._unweighed = unweighed
        self.memory.unweighed = ctypes.pointer(unweighed)

    def end(self) -> None:
        """From now on Python makes such calls."""
        self.memory.is_live = 0

    @property
    def runs(self) -> int:
        """How many calls C has made."""
        return self.memory.runs

    def _state(self) -> int:
        call = self._more()
        found = (c_void_p * max(len(self._of.inputs), 1))()
        made = State(None, call.address, call.words_address, found)
        address = ctypes.addressof(made)
        self._states[address] = made, call, found
        return address

    def _ended(self, address: int, number: int, found: tuple, args: tuple) -> Any:
        """What Python makes of a call that C has ended."""
        call = self._states[address][1]
        call.found = found
        given = len(args) - len(self.names)
        by_name = dict(zip(self.names, args[given:], strict=True))
        return self._on_end(call, number, args[:given], by_name)


class Taker(Protocol):
    """What has C make calls: whether it can, now, and has it make those of a form."""

    def can_take(self) -> bool: ...

    def takes(self, form: Form) -> None: ...


class _Library:
    """The functions of `dispatch.c`."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        rows = ctypes.cast(library.npc_names, POINTER(_Row))
        k = 0
        while (name := rows[k].name) is not None:
            if name == b"PyArray_ScalarAsCtype":
                rows[k].address[0] = runtime.numpy_table()[_SCALAR_AS_CTYPE]
            else:
                f = getattr(ctypes.pythonapi, name.decode())
                rows[k].address[0] = ctypes.cast(f, c_void_p).value
            k += 1
        runtime.Runtime.in_dll(library, "npc_python").api = ctypes.addressof(runtime.api)
        self.called = ctypes.cast(library.npc_called, c_void_p).value


class _Row(ctypes.Structure):
    """A name, and where its address goes."""

    _fields_ = (("name", ctypes.c_char_p), ("address", POINTER(c_void_p)))


def source() -> str:
    """The C that makes calls."""
    kinds = [f"{kind.name} = {int(kind)}" for table in (Fetch, Fits, Gives) for kind in table]
    kinds += [
        f"VIEWS = {_VIEWS}", f"GENERATORS = {_GENERATORS}", f"AXES = {runtime.AXES}",
        f"WRITEABLE = {direct.WRITEABLE}", f"OWN = {direct.OWN}", f"FEW = {_FEW}",
    ]  # fmt: skip
    text = (
        runtime.C
        + runtime.of_python(False, True)
        + f"enum {{ {', '.join(kinds)} }};\n"
        + declarations(State, _Form)
        + Path(__file__).with_name("dispatch.c").read_text(encoding="utf-8")
    )
    return prelude(text) + text


@functools.cache
def _making() -> Job:
    """What writes the C and has it compiled, beside the program."""
    return Job(lambda: Libraries([(source(), "dispatch")], False))


@functools.cache
def _library() -> _Library | None:
    """What makes calls; None where the C compiler fails."""
    try:
        return _Library(_making().result().get()[0])
    except (CompileFailed, NoCompiler, AttributeError) as e:  # or a name has gone
        if isinstance(e, CompileFailed):
            e.warn("calls of loops go by Python, since the C compiler failed")
        if config.shows("loops"):
            log.failed("calls of loops go by Python", e, sys.stderr)
    return None


def available() -> bool:
    """Whether the C compiler has done its work. It begins, and nothing waits for it: until then
    calls go by Python. Where calls wait for what they run, the C text is waited for: it is made in
    some ms, and its library may be in the cache."""
    making = _making()
    try:
        if not (config.waits() or making.ready) or not making.result().ready:
            return False
    except NoCompiler:
        pass  # which is told once
    return _library() is not None
