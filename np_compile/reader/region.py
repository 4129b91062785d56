"""Regions: functions, or the rest of one from a statement on, compiled for types of values.

A `Region` knows what it is made of (`inputs`: where each value is found, and what it has to be),
and what its exits mean. A `Reading` is what is known of one function: its regions, and how Python
and they take turns.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import math
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from np_compile import config
from np_compile.kernels.build.beside import Libraries
from np_compile.kernels.build.toolchain import compiler, vector_math_available
from np_compile.kernels.targets.c.prelude import prelude

from . import resume, runtime, source
from .linear import WIDE, Linear
from .nest import CODES, FAR, contiguous
from .random import OF_STATE, addresses, generator_of
from .read import C_STORAGE, Again, Effectful, Frame, Leave, Reader, int_constant
from .statements import Stopped, block
from .values import (
    C_TYPE,
    DTYPE_OF,
    KIND_OF_DTYPE,
    PARTS,
    PYTHON,
    REPRESENTATION,
    Arr,
    Bound,
    Conflict,
    Known,
    Lst,
    Maybe,
    Num,
    Obj,
    Range,
    Rng,
    Tup,
    Unreadable,
    Value,
    python,
)

MISS = object()
_SMALL = 1 << 31  # integers below are far from 64 bits, whatever a few products make of them
_CONSTANT = 8  # extents up to here are constants of a region, as long as there are few regions
_REGIONS = 24  # of one function
_LARGE = 20_000  # elements from which arrays are better off in whole-array kernels
_LEAVES = 4  # calls in which a region may leave in a loop before Python takes over
_LIST = 64  # a list of so many items is looked into


class Unfit(Exception):
    """A value that regions do not take."""


# What a value has to be


def piece(x: Any, small: bool) -> Any:
    """The type of a value as regions tell values apart. small: whether short extents are part."""
    kind = type(x)
    if kind is np.ndarray:
        return _array_piece(x, small)
    if kind is int:
        return "int" if -_SMALL < x < _SMALL else "long" if -WIDE <= x < WIDE else "huge"
    if kind is float:
        return "float"
    if kind is bool or x is None or kind is str:
        return kind, x
    if kind is complex:
        return "complex"
    if kind is tuple or kind is list:
        if len(x) > _LIST:
            return kind, len(x) if kind is tuple else -1
        return (kind, *[piece(y, small) for y in x])
    if isinstance(x, np.generic):
        return kind, x.dtype.char
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return (kind, *[piece(y, small) for y in x])
    if isinstance(x, types.FunctionType):
        return "function", x.__code__
    if kind is range:
        return "range", piece(x.start, small), piece(x.stop, small), x.step
    if isinstance(x, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc, np.dtype)):
        return "same", id(x)
    return kind


def _array_piece(x: np.ndarray, small: bool) -> Any:
    flags = x.flags
    limit = _CONSTANT if small else 1
    dims = tuple([n if n <= limit else -1 for n in x.shape])
    if flags.c_contiguous:
        return x.dtype.char, x.dtype.byteorder, dims, flags.writeable
    size = x.itemsize
    units = tuple([s == size for s in x.strides])
    whole = not any([s % size for s in x.strides]) if size else False
    return x.dtype.char, x.dtype.byteorder, dims, flags.writeable, units, whole


# Exits


@dataclass
class Exit:
    """What a number that compiled code returns means. result: how the returned value is made of
    the words; frames: of a leave, for each function, its path and how its names are made."""

    result: Any = None
    frames: list[tuple[Any, Any, list[tuple], dict[str, Any]]] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    line: int = 0
    top: int = 0


class _Export:
    """The C that stores values in words, and how Python makes them again."""

    def __init__(self, r: Reader):
        self.r = r
        self.lines: list[str] = []
        self.count = 0

    def _word(self, text: str, part: str) -> int:
        self.lines.append(f"out[{self.count}].{part} = {text};")
        self.count += 1
        return self.count - 1

    def _integer(self, x: Num) -> Any:
        return ("constant", x.value) if x.value is not None else self._word(x.text, "i")

    def value(self, x: Value) -> Any:
        if isinstance(x, Num):
            if x.value is not None and x.is_python:
                return ("constant", x.value)
            tag = self._word(x.tag, "i") if len(x.kinds) > 1 else None
            if x.rep in PARTS:
                at = self._word(f"{x.text}.r", "f")
                self._word(f"{x.text}.i", "f")
                return ("complex", x.kinds, at, tag)
            part = "f" if x.rep in ("f64", "f32") else "i"
            return ("number", x.kinds, self._word(x.text, part), tag, part)
        if isinstance(x, Arr):
            at = self._word(f"{x.buf}->owner", "i")
            self._word(x.buf, "p")
            self._word(f"(void *){x.data}", "p")
            dims = [self._integer(d) for d in x.dims]
            strides = [self._integer(s) for s in x.strides]
            return ("array", x.rep, at, dims, strides)
        if isinstance(x, Lst):
            if x.buf.startswith("?"):
                return ("empty",)
            return ("list", x.kind, self._word(x.buf, "p"))
        if isinstance(x, Tup):
            return ("tuple", x.made, [self.value(y) for y in x.items])
        if isinstance(x, Range):
            return ("range", [self.value(y) for y in (x.start, x.stop, x.step)])
        if isinstance(x, Known):
            return ("constant", x.value)
        if isinstance(x, Maybe):
            at = self._word(x.flag, "i")
            self.lines.append(f"if ({x.flag}) {{")
            inner = self.value(x.value)
            self.lines.append("}")
            return ("maybe", at, inner)
        if isinstance(x, Obj):
            return ("path", x.path)
        if isinstance(x, Rng):
            return ("path", self.r.entry.paths[x])
        raise Unreadable("a value that Python cannot be given")


# What is known where a region begins


@dataclass
class Input:
    """A value that a region takes. path: how it is found. piece: what it has to be."""

    path: tuple
    piece: Any


class Entry:
    """Where a region's values come from, while it is read. example: the values of a call."""

    def __init__(self, f: Any, node: Any, example: dict[str, Any], small: bool):
        self.function, self.node = f, node
        self.example = example
        self.small = small
        self.prologue: list[str] = []
        self.inputs: list[Input] = []
        self.words = 0
        self.arrays = 0
        self.exits: dict[int, Exit] = {}
        self.normalized: dict = {}
        self.fixed_lists = False
        self.paths: dict[Any, Any] = {}
        self.fetched: dict[tuple, Any] = {}
        self._outer: dict[tuple, Value] = {}
        self._counts: dict[Any, dict[str, int]] = {}
        self._total: dict[Any, dict[str, int]] = {}
        self.most = 0
        self.known: dict[str, int] = {}
        self.set: set[str] = set()
        self.attributes: dict[str, Value] = {}

    # Values from outside

    def begin(self, r: Reader) -> dict[str, Value]:
        loads = self.loads(self.node, None)
        env = {}
        for name, x in self.example.items():
            if not name.isidentifier() or not (loads.get(name) or name.startswith("__")):
                continue
            try:
                env[name] = self.take(r, ("local", name), x)
            except Unfit as e:
                env[name] = Conflict(str(e))
                self.inputs.append(Input(("local", name), piece(x, self.small)))
                self.fetched["local", name] = x
        return env

    def _in(self, part: str) -> str:
        self.words += 1
        return f"in[{self.words - 1}].{part}"

    def take(self, r: Reader, path: tuple, x: Any) -> Value:
        """A value from outside, that is of this type in each call of the region."""
        self.inputs.append(Input(path, piece(x, self.small)))
        self.fetched[path] = x
        with r.before(self.prologue):
            return self._value(r, path, x)

    def _value(self, r: Reader, path: tuple, x: Any) -> Value:
        kind = type(x)
        if kind is bool:
            return python(x)
        if kind is int:
            return self._int(r, x)
        if kind is float:
            return Num(r.named(self._in("f"), "f64"), "f64", ("float",))
        if kind is complex:
            parts = self._in("f"), self._in("f")
            return Num(r.named(f"(c128){{{', '.join(parts)}}}", "c128"), "c128", ("complex",))
        if kind is np.ndarray:
            return self._array(r, path, x)
        if isinstance(x, np.generic):
            return self._scalar(r, x)
        if kind is tuple or (kind is list and len(x) <= _LIST):
            return Tup(tuple(self._value(r, (*path, k), y) for k, y in enumerate(x)), kind)
        if kind is list:
            raise Unfit("a long list")
        if isinstance(x, tuple) and hasattr(kind, "_fields"):
            return Tup(tuple(self._value(r, (*path, k), y) for k, y in enumerate(x)), kind)
        if kind is range:
            return Range(self._int(r, x.start), self._int(r, x.stop), python(x.step))
        if x is None or kind is str or isinstance(
            x, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc,
                np.dtype)
        ):  # fmt: skip
            return Known(x)
        found = generator_of(x)
        if found is not None:
            made = Rng(r.named(f"(bitgen *){self._in('p')}", "bitgen *", "g"), found[1])
            self.paths[made] = path
            return made
        if callable(x) and getattr(kind, "__module__", "").startswith("numpy"):
            return Known(x)
        if hasattr(x, "__dict__") and not isinstance(x, (dict, list, set)):
            name = "/".join(map(str, path))
            if len(path) > 1 and path[0] == "local" and len(path) == 2:
                name = path[1]
            self.paths[name] = path
            return Obj(name, kind)
        raise Unfit(f"a value of type {kind.__name__}")

    def _int(self, r: Reader, x: int) -> Num:
        if not -WIDE <= x < WIDE:
            raise Unfit("an integer beyond 64 bits")
        small = -_SMALL < x < _SMALL
        made = r.integer(
            self._in("i"), -_SMALL if small else -WIDE, _SMALL if small else WIDE - 1
        )
        self.known[made.text] = x
        return made

    def _scalar(self, r: Reader, x: np.generic) -> Num:
        kind = KIND_OF_DTYPE.get(x.dtype)
        if kind is None:
            raise Unfit(f"a value of dtype {x.dtype}")
        rep = REPRESENTATION[kind]
        if rep in PARTS:
            text = f"({rep}){{{self._in('f')}, {self._in('f')}}}"
            return Num(r.named(text, rep), rep, (kind,))
        part = "f" if rep in ("f64", "f32") else "i"
        name = r.named(f"({C_TYPE[rep]}){self._in(part)}", C_TYPE[rep])
        lin = r.facts.name(name) if rep == "i64" else None
        return Num(name, rep, (kind,), "", lin)

    def _array(self, r: Reader, path: tuple, x: np.ndarray) -> Arr:
        kind = KIND_OF_DTYPE.get(x.dtype)
        if kind is None or not x.dtype.isnative or not x.flags.aligned or x.ndim > runtime.AXES:
            raise Unfit(f"an array of dtype {x.dtype}")
        rep = REPRESENTATION[kind]
        size = x.itemsize
        if any(s % size for s in x.strides):
            raise Unfit("an array whose elements lie in odd places")
        ctype = f"{C_STORAGE(rep)} *"
        limit = _CONSTANT if self.small else 1
        data = r.named(f"({ctype}){self._in('p')}", ctype, "p")
        dims = []
        for n in x.shape:
            if n <= limit:
                self._in("i")
                dims.append(int_constant(n))
            else:
                made = r.integer(self._in("i"), limit + 1, FAR)
                self.known[made.text] = n
                dims.append(made)
        if x.flags.c_contiguous:
            strides = contiguous(r, dims)
        else:
            strides = tuple(
                int_constant(1) if s == size else r.integer(self._in("i"), -FAR, FAR)
                for s in x.strides
            )
        k = self.arrays
        self.arrays += 1
        r.line(f"Buf arg_{k} = {{.refs = 1L << 40, .owner = {k}}};")
        buf = f"(&arg_{k})"
        return Arr(rep, buf, data, tuple(dims), strides, frozenset((buf,)), None,
                   not x.flags.writeable, x.flags.c_contiguous)  # fmt: skip

    def outer(self, r: Reader, f: Any, name: str) -> Value:
        """A name from outside of a function."""
        free = f.__code__.co_freevars
        if name in free:
            path: tuple = ("cell", f, name)
            try:
                x = f.__closure__[free.index(name)].cell_contents
            except ValueError:
                raise Unreadable(f"the name {name!r} has no value") from None
        elif name in f.__globals__:
            path, x = ("global", f, name), f.__globals__[name]
        else:
            builtins = f.__builtins__
            if name not in builtins:
                raise Unreadable(f"the name {name!r} is not known")
            path, x = ("builtin", f, name), builtins[name]
        key = (path[0], id(f.__globals__) if path[0] != "cell" else id(f), name)
        if key not in self._outer:
            try:
                self._outer[key] = self.take(r, path, x)
            except Unfit as e:
                raise Unreadable(f"{name!r}: {e}") from None
        return self._outer[key]

    def of_module(self, r: Reader, module: types.ModuleType, name: str) -> Value:
        """An attribute of a module."""
        try:
            x = getattr(module, name)
        except AttributeError as e:
            raise Unreadable(str(e)) from None
        if module is np.random and name in OF_STATE:
            state = np.random.mtrand._rand
            if ("state",) not in self._outer:
                self._outer["state",] = self.take(r, ("state",), state)
            return Bound(self._outer["state",], name)
        if type(x) in (bool, int, float, complex):
            if module.__name__.split(".")[0] in ("numpy", "math", "cmath"):
                return python(x)
            key = ("module", id(module), name)
            if key not in self._outer:
                self._outer[key] = self.take(r, ("module", module, name), x)
            return self._outer[key]
        if isinstance(x, (np.ndarray, np.generic)):
            raise Unreadable(f"an array in the module {module.__name__}")
        if not callable(x) and not isinstance(x, types.ModuleType) and x is not None:
            raise Unreadable(f"{module.__name__}.{name}")
        if isinstance(x, types.FunctionType) and (x.__module__ or "").split(".")[0] != "numpy":
            self.inputs.append(Input(("module", module, name), piece(x, self.small)))
        return Known(x)

    def attribute(self, r: Reader, owner: Obj, name: str) -> Value:
        """An attribute of an object of the user's."""
        key = f"@{owner.path}.{name}"
        if key in self.attributes:
            return self.attributes[key]
        path = (*self.paths[owner.path], "." + name)
        found = getattr(owner.type, name, None)
        if isinstance(found, types.FunctionType):
            x = self._object(owner)
            if name in getattr(x, "__dict__", {}):
                raise Unreadable(f"the attribute {name!r} hides a method")
            return Bound(owner, name)
        if isinstance(found, property):
            if found.fget is None:
                raise Unreadable(f"the property {name!r}")
            from .calls import inlined

            return inlined(r, found.fget, [owner], {})
        if isinstance(found, (staticmethod, classmethod)) or hasattr(found, "__get__") and callable(found):
            raise Unreadable(f"the attribute {name!r}")
        x = self._object(owner)
        if type(x).__getattribute__ is not object.__getattribute__:
            raise Unreadable(f"an attribute of {owner.type.__name__}")
        try:
            value = getattr(x, name)
        except AttributeError as e:
            raise Unreadable(str(e)) from None
        try:
            made = self.take(r, path, value)
        except Unfit as e:
            raise Unreadable(f"{name!r}: {e}") from None
        self.attributes[key] = made
        return made

    def _object(self, owner: Obj) -> Any:
        return self.fetched[self.paths[owner.path]]

    def may_set(self, r: Reader, owner: Obj, name: str) -> None:
        """Whether an attribute can be set by name, as any object's."""
        kind = owner.type
        if kind.__setattr__ is not object.__setattr__ or hasattr(getattr(kind, name, None), "__set__"):
            raise Unreadable(f"the attribute {name!r} is set by code of its own")
        self.attribute(r, owner, name)
        self.set.add(f"@{owner.path}.{name}")

    def constant(self, r: Reader, x: Any) -> Value:
        """A value that is the same in each call."""
        if type(x) in (bool, int, float, complex):
            return python(x)
        if isinstance(x, tuple):
            return Tup(tuple(self.constant(r, y) for y in x))
        if isinstance(x, np.generic):
            kind = KIND_OF_DTYPE.get(x.dtype)
            if kind is None:
                raise Unreadable(f"a value of dtype {x.dtype}")
            text = python(x.item())
            return Num(text.text, REPRESENTATION[kind], (kind,), "", text.lin, text.low, text.high)
        if x is None or isinstance(x, (str, type, types.FunctionType, np.dtype, np.ufunc)):
            return Known(x)
        raise Unreadable(f"a constant of type {type(x).__name__}")

    # Names

    def loads(self, node: Any, without: Any) -> dict[str, int]:
        """How often names are asked for in a function, outside of one of its loops."""
        key = (id(node), id(without))
        if key not in self._counts:
            counts = _count_loads(node)
            if without is not None:
                for name, n in _count_loads(without).items():
                    counts[name] = counts.get(name, 0) - n
            self._counts[key] = counts
        return self._counts[key]

    # Exits

    def result(self, r: Reader, x: Value) -> None:
        """The C that returns a value."""
        out = _Export(r)
        spec = out.value(x)
        self._exit(r, out, Exit(spec))

    def _exit(self, r: Reader, out: _Export, exit_: Exit) -> None:
        env = r.frames[0].env
        for name in sorted(self.set):
            if name in env:
                exit_.attributes[name] = out.value(env[name])
        number = len(self.exits) + 1
        self.exits[number] = exit_
        self.most = max(self.most, out.count)
        r.lines += [*out.lines, f"return {number};"]

    def leave(self, r: Reader, site: Leave, first: int) -> list[str]:
        """The C of a way out."""
        out = _Export(r)
        frames = []
        for frame, path, env in site.frames:
            loads = self.loads(frame.node, None)
            names = {}
            for name, x in env.items():
                if name.startswith("@") or not (loads.get(name) or name.startswith("__")):
                    continue
                if isinstance(x, Conflict):
                    path_in = ("local", name)
                    if frame is r.frames[0] and self.example.get(name, MISS) is not MISS:
                        names[name] = ("path_in", path_in)
                        continue
                    raise Unreadable(f"{name!r}: {x.why}")
                if isinstance(x, Bound):
                    raise Unreadable(f"{name!r} is a method")
                names[name] = out.value(x)
            frames.append((frame.function, frame.node, path, names))
        exit_ = Exit(frames=frames, reasons=tuple(site.reasons))
        path = site.frames[-1][1]
        exit_.line = next((s[1][s[2]].lineno for s in reversed(path) if s[0] == "block"), 0)
        exit_.top = site.frames[0][1][0][2] + first
        env = site.frames[0][2]
        for name in sorted(self.set):
            if name in env:
                exit_.attributes[name] = out.value(env[name])
        number = len(self.exits) + 1
        self.exits[number] = exit_
        self.most = max(self.most, out.count)
        label = f"leave_{site.number}: ;"
        return ["if (0) {", label, *out.lines, f"return {number};", "}"]


def _count_loads(node: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for x in ast.walk(node):
        if isinstance(x, ast.Name) and (isinstance(x.ctx, ast.Load)):
            counts[x.id] = counts.get(x.id, 0) + 1
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            counts[x.target.id] = counts.get(x.target.id, 0) + 1
    return counts


# Reading


@dataclass
class Refused:
    """Why a function, or a part of it, is not compiled: the reason and the line. next: the
    statement after which reading begins again."""

    why: str
    line: int
    next: int


@dataclass
class Read:
    """The C of a region, and what its inputs and exits mean."""

    text: str
    entry: Entry
    work: list[tuple[int, bool]]


def read(f: Any, node: Any, first: int, example: dict[str, Any], small: bool) -> Read | Refused:
    """The rest of a function from a statement of its body on, for values such as these."""
    effectful: set[Any] = set()
    memory: dict[Any, Any] = {}
    for _ in range(50):
        entry = Entry(f, node, example, small)
        r = Reader(entry)
        r.effectful, r.memory = effectful, memory
        try:
            return _read(r, entry, f, node, first)
        except Again:
            continue
        except Effectful as e:
            effectful.add(e.args[0].__code__)
        except Stopped as e:
            return Refused(str(e), e.node.lineno, 0)
        except Unreadable as e:
            return Refused(str(e), node.lineno, 0)
        except Unfit as e:
            return Refused(str(e), node.lineno, 0)
    return Refused("it is read again and again", node.lineno, 0)


def _read(r: Reader, entry: Entry, f: Any, node: Any, first: int) -> Read | Refused:
    scope = dict.fromkeys((*f.__code__.co_varnames, *f.__code__.co_cellvars))
    frame = Frame(f, node, {}, scope)
    r.frames.append(frame)
    frame.env = entry.begin(r)
    nodes = list(node.body[first:])
    body: list = []
    r.site = None
    with r.elsewhere(body):
        block(r, nodes, "body")
        if not frame.dead:
            entry.result(r, Known(None))
    lines = _flat(body, r, entry, first)
    top = next((e for e in entry.exits.values() if e.frames and _is_first(e)), None)
    if not any(s.startswith(("for (i64 k_", "for (;;)")) for s in lines):
        line = top.line if top else node.lineno
        why = top.reasons[0] if top and top.reasons else "there is no loop in it"
        return Refused(why, line, (top.top + 1) if top else len(node.body))
    text = _assembled(lines, entry, r)
    work = [(math.prod(_at(n, entry.known) for n in dims), inside) for dims, inside in r.work]
    return Read(text, entry, work)


def _is_first(e: Exit) -> bool:
    return e.frames is not None and len(e.frames[0][2]) == 1


def _at(total: Linear | None, known: dict[str, int]) -> int:
    """A linear form's value, 0 where it is not known."""
    if total is None or any(name not in known for name in total.terms):
        return 0
    return total.const + sum(c * known[name] for name, c in total.terms.items())


def _flat(lines: list, r: Reader, entry: Entry, first: int) -> list[str]:
    made: list[str] = []
    for x in lines:
        if isinstance(x, str):
            made.append(x)
        elif isinstance(x, Leave):
            made += entry.leave(r, x, first)
        else:
            made += _flat(x, r, entry, first)
    return made


def _assembled(lines: list[str], entry: Entry, r: Reader) -> str:
    body = "\n".join([*entry.prologue, *r.declarations, *lines])
    text = (
        runtime.C + runtime.complex_numbers() + runtime.draws()
        + "i64 region(Runtime *rt, Word *in) {\nWord *out = rt->out;\n" + body + "\n}\n"
        + "void finish(Runtime *rt) {\n    Buf *b = rt->first.next;\n    while (b) {\n"
        "        Buf *next = b->next;\n"
        "        if (b->owner < 0 && b->data != (void *)(b + 1)) free(b->data);\n"
        "        free(b);\n        b = next;\n    }\n}\n"
    )  # fmt: skip
    head = '#pragma GCC target("prefer-vector-width=256")\n' if compiler().kind == "gcc" else ""
    return head + prelude(text, vector_math_available(compiler().kind)) + text


# Calls


class Region:
    """A compiled region: `run` carries it out."""

    def __init__(self, made: Read, waits: bool):
        self.inputs = made.entry.inputs
        self.exits = made.entry.exits
        self._words = max(made.entry.words, 1)
        self._out = max(made.entry.most, 1)
        self.text = made.text
        self._libraries = Libraries([(made.text, "region")], waits)
        self._paths = {k: v for k, v in made.entry.paths.items() if isinstance(k, str)}
        self.left = 0
        self._function: Any = None
        self._finish: Any = None
        self._continuations: dict[Any, Any] = {}
        self.small = made.entry.small

    @property
    def ready(self) -> bool:
        return self._libraries.ready

    def wait(self) -> None:
        if self._function is None:
            library = self._libraries.get()[0]
            self._function, self._finish = library.region, library.finish
            self._function.restype = ctypes.c_int64

    def fetch(self, values: dict[str, Any]) -> dict[tuple, Any] | None:
        """The values of the inputs, if they are what the region is compiled for."""
        found: dict[tuple, Any] = {}
        small = self.small
        for i in self.inputs:
            path = i.path
            try:
                x = _found(path, values, found)
            except (KeyError, AttributeError, ValueError, IndexError):
                return None
            if piece(x, small) != i.piece:
                return None
            found[path] = x
        return found

    def run(self, found: dict[tuple, Any]) -> Any:
        """The exit that compiled code takes, and the values that it leaves behind."""
        self.wait()
        words = (runtime_word * self._words)()
        state = _Call(found, words, self._out)
        for i in self.inputs:
            state.put(found[i.path])
        if state.overlapping():
            return None
        with contextlib.ExitStack() as stack:
            for lock in state.locks:
                stack.enter_context(lock)
            number = self._function(ctypes.byref(state.runtime), words)
        try:
            if number < 0:
                raise state.error or KeyboardInterrupt
            exit_ = self.exits[number]
            attributes = {k: state.value(v) for k, v in exit_.attributes.items()}
            for name, x in attributes.items():
                owner, attribute = name[1:].rsplit(".", 1)
                setattr(found[self._paths[owner]], attribute, x)
            if exit_.frames is None:
                return exit_, state.value(exit_.result), None
            left = []
            for f, node, path, names in exit_.frames:
                made = {k: state.value(v, self._paths) for k, v in names.items()}
                left.append((f, node, path, {k: v for k, v in made.items() if v is not MISS}))
            return exit_, None, left
        finally:
            self._finish(ctypes.byref(state.runtime))


class runtime_word(ctypes.Union):
    """A word of input or output."""

    _fields_ = (("i", ctypes.c_int64), ("f", ctypes.c_double), ("p", ctypes.c_void_p))


def _found(path: tuple, values: dict[str, Any], found: dict[tuple, Any]) -> Any:
    """The value at a path."""
    where = path[0]
    if where == "local" and len(path) == 2:
        return values[path[1]]
    last = path[-1]
    if isinstance(last, str) and last.startswith("."):
        return getattr(found[path[:-1]], last[1:])
    if where == "global":
        return path[1].__globals__[path[2]]
    if where == "builtin":
        if path[2] in path[1].__globals__:
            raise KeyError
        return path[1].__builtins__[path[2]]
    if where == "cell":
        f = path[1]
        return f.__closure__[f.__code__.co_freevars.index(path[2])].cell_contents
    if where == "module":
        return getattr(path[1], path[2])
    if where == "state":
        return np.random.mtrand._rand
    raise KeyError(path)


class _Call:
    """One run of a region: words, buffers, and what C asks of Python meanwhile."""

    def __init__(self, found: dict[tuple, Any], words: Any, room: int):
        self.found = found
        self._words, self._at = words, 0
        self.arrays: list[np.ndarray] = []
        self.locks: list[Any] = []
        self.error: BaseException | None = None
        self._made: dict[int, np.ndarray] = {}
        self._small: dict[int, Any] = {}
        self._out = (runtime_word * room)()
        self._next = 1 << 20
        self._callbacks = (
            runtime.ALLOCATE(self._allocate), runtime.FREED(self._freed), runtime.TICK(self._tick),
        )  # fmt: skip
        self.runtime = runtime.Runtime()
        self.runtime.allocate, self.runtime.freed, self.runtime.tick = self._callbacks
        self.runtime.out = ctypes.addressof(self._out)
        table = addresses()
        self._draws = (ctypes.c_void_p * len(table))(*table)
        self.runtime.draws = ctypes.addressof(self._draws)

    # In

    def put(self, x: Any) -> None:
        """Store a value in the words, in the order in which the region takes them."""
        words, kind = self._words, type(x)
        if kind is np.ndarray:
            if KIND_OF_DTYPE.get(x.dtype) is None:
                return
            words[self._at].p = x.__array_interface__["data"][0]
            self._at += 1
            for n in x.shape:
                words[self._at].i = n
                self._at += 1
            size = x.itemsize
            if not x.flags.c_contiguous:
                for s in x.strides:
                    if s != size:
                        words[self._at].i = s // size
                        self._at += 1
            self.arrays.append(x)
        elif kind is bool or x is None or kind is str:
            return
        elif kind is int:
            if -WIDE <= x < WIDE:
                words[self._at].i = x
                self._at += 1
        elif kind is float:
            words[self._at].f = x
            self._at += 1
        elif kind is complex or isinstance(x, np.complexfloating):
            words[self._at].f, words[self._at + 1].f = x.real, x.imag
            self._at += 2
        elif isinstance(x, np.floating):
            words[self._at].f = x
            self._at += 1
        elif isinstance(x, np.generic):
            if x.dtype in KIND_OF_DTYPE:
                words[self._at].i = int(x)
                self._at += 1
        elif isinstance(x, tuple) or (kind is list and len(x) <= _LIST):
            for y in x:
                self.put(y)
        elif kind is range:
            self.put(x.start)
            self.put(x.stop)
        else:
            found = generator_of(x)
            if found is not None:
                bits: Any = found[0]
                words[self._at].p = bits.ctypes.bit_generator.value
                self._at += 1
                self.locks.append(bits.lock)

    def overlapping(self) -> bool:
        """Whether two of the arrays share memory."""
        if len(self.arrays) < 2:
            return False
        spans = []
        for x in self.arrays:
            if x.size == 0:
                continue
            low = high = x.__array_interface__["data"][0]
            if x.flags.c_contiguous:
                high += x.nbytes
            else:
                for n, s in zip(x.shape, x.strides, strict=True):
                    if s < 0:
                        low += (n - 1) * s
                    else:
                        high += (n - 1) * s
                high += x.itemsize
            spans.append((low, high))
        spans.sort()
        return any(a[1] > b[0] for a, b in zip(spans, spans[1:], strict=False))

    # Meanwhile

    def _allocate(self, code: int, zero: int, ndim: int, buf: int) -> int:
        try:
            b = runtime.Buffer.from_address(buf)
            shape = tuple(b.dims[:ndim])
            dtype = DTYPE_OF[CODES[code]]
            made = np.zeros(shape, dtype) if zero else np.empty(shape, dtype)
            self._next += 1
            self._made[self._next] = made
            b.data = made.__array_interface__["data"][0]
            return self._next
        except BaseException as e:
            self.error = e
            return -1

    def _freed(self, owner: int) -> None:
        self._made.pop(owner, None)

    def _tick(self) -> int:
        try:
            for _ in range(1):  # an opportunity for signal handlers
                pass
            return 0
        except BaseException as e:
            self.error = e
            return 1

    # Out

    def value(self, spec: Any, paths: dict[str, tuple] | None = None) -> Any:
        kind = spec[0]
        out = self._out
        if kind == "constant":
            return spec[1]
        if kind == "number":
            _, kinds, at, tag, part = spec
            x = out[at].f if part == "f" else out[at].i
            return _as_kind(x, kinds[out[tag].i if tag is not None else 0])
        if kind == "complex":
            _, kinds, at, tag = spec
            z = complex(out[at].f, out[at + 1].f)
            return _as_kind(z, kinds[out[tag].i if tag is not None else 0])
        if kind == "array":
            return self._array(spec)
        if kind == "tuple":
            items = [self.value(x, paths) for x in spec[2]]
            made = spec[1]
            return made(items) if made in (tuple, list) else made(*items)
        if kind == "list":
            return self._list(spec)
        if kind == "empty":
            return []
        if kind == "range":
            return range(*[self.value(x) for x in spec[1]])
        if kind == "maybe":
            return self.value(spec[2], paths) if out[spec[1]].i else MISS
        if kind == "path":
            path = spec[1] if isinstance(spec[1], tuple) else (paths or {})[spec[1]]
            return self.found[path]
        if kind == "path_in":
            return self.found[spec[1]]
        raise AssertionError(kind)

    def _array(self, spec: Any) -> np.ndarray:
        _, rep, at, dims, strides = spec
        out = self._out
        shape = tuple([d[1] if type(d) is tuple else out[d].i for d in dims])
        dtype = DTYPE_OF[rep]
        size = dtype.itemsize
        steps = tuple([(s[1] if type(s) is tuple else out[s].i) * size for s in strides])
        owner, data = out[at].i, out[at + 2].p or 0
        base = self._owner(owner, out[at + 1].p)
        start = base.__array_interface__["data"][0]
        same = base.shape == shape and base.dtype == dtype
        moved = data - start if owner >= 0 else data - self._small[out[at + 1].p][1]
        if same and moved == 0 and (base.strides == steps or base.size <= 1):
            return base
        if 0 in shape:
            return base.reshape(-1)[:0].reshape(shape) if base.size else np.empty(shape, dtype)
        key = (owner, out[at + 1].p if owner < 0 else 0, shape, steps, moved)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = _view(base, dtype, shape, moved, steps)
        return found

    @property
    def _views(self) -> dict:
        return self.__dict__.setdefault("views", {})

    def _owner(self, owner: int, address: int) -> np.ndarray:
        """The array whose memory it is."""
        if owner >= 1 << 20:
            return self._made[owner]
        if owner >= 0:
            return self.arrays[owner]
        if address not in self._small:
            b = runtime.Buffer.from_address(address)
            dtype = DTYPE_OF[CODES[b.code]]
            made = np.empty(tuple(b.dims[: b.ndim]), dtype)
            ctypes.memmove(made.__array_interface__["data"][0], b.data, b.bytes)
            self._small[address] = made, b.data
        return self._small[address][0]

    def _list(self, spec: Any) -> list:
        _, kind, at = spec
        address = self._out[at].p
        if address not in self._small:
            b = runtime.Buffer.from_address(address)
            dtype = DTYPE_OF[CODES[b.code]]
            n = b.dims[0]
            held = np.empty(n, dtype)
            ctypes.memmove(held.__array_interface__["data"][0], b.data, n * dtype.itemsize)
            items = held.tolist() if kind in PYTHON else list(held)
            self._small[address] = items
        return self._small[address]


def _view(base: np.ndarray, dtype: np.dtype, shape: tuple, moved: int, steps: tuple) -> np.ndarray:
    """A part of an array's memory, `moved` bytes from its first element."""
    made = np.lib.stride_tricks.as_strided(base, shape, steps, writeable=base.flags.writeable)
    if moved:
        low = base
        whole = base.reshape(-1, copy=False) if base.flags.c_contiguous else None
        if whole is not None:
            made = np.ndarray(shape, dtype, whole, moved, steps)
            made.flags.writeable = base.flags.writeable
            return made
        # From the end of the memory that lies lowest.
        back = sum((n - 1) * s for n, s in zip(low.shape, low.strides, strict=True) if s < 0)
        flat = tuple(slice(None, None, -1) if s < 0 else slice(None) for s in low.strides)
        lowest = low[flat]
        made = np.lib.stride_tricks.as_strided(lowest.view(), shape, steps)
        address = lowest.__array_interface__["data"][0]
        offset = base.__array_interface__["data"][0] + moved - address
        holder = _Holder(base, address + offset, shape, steps, dtype)
        made = np.asarray(holder)
        del back
    return made


class _Holder:
    """Memory of an array from an address on."""

    def __init__(self, base: Any, address: int, shape: tuple, steps: tuple, dtype: np.dtype):
        self.base = base
        self.__array_interface__ = {
            "data": (address, not base.flags.writeable), "shape": shape, "strides": steps,
            "typestr": dtype.str, "version": 3,
        }  # fmt: skip


_MAKE: dict[str, Callable[[Any], Any]] = {
    "int": int, "float": float, "bool": bool, "complex": complex,
    **{k: np.dtype(k.rstrip("_")).type for k in REPRESENTATION if k not in PYTHON},
}  # fmt: skip


def _as_kind(x: Any, kind: str) -> Any:
    if kind == "uint64":
        return np.uint64(x & (1 << 64) - 1)
    return _MAKE[kind](x)


# A function and its regions


class Reading:
    """What is known of one function. `call` carries a call out, or gives MISS."""

    def __init__(self, f: types.FunctionType):
        self.function = f
        self._lock = threading.Lock()
        self._code: Any = None
        self._regions: dict[int, list[Region]] = {}
        self._refused: dict[Any, Refused] = {}
        self._pieces: dict[Any, Any] = {}
        self.given_up: str = ""

    def _look(self) -> Any:
        """The tree of the function, if it has loops that may be read."""
        code = self.function.__code__
        if code is not self._code:
            self._code = code
            self._regions, self._refused = {}, {}
            self.given_up, self.node = "", None
            self._continuations: dict[Any, Any] = {}
            try:
                if not source.has_loops(self.function):
                    self.given_up = "there is no loop in it"
                else:
                    self.node = source.tree(self.function)
            except Unreadable as e:
                self.given_up = str(e)
        return None if self.given_up else self.node

    def call(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call, or MISS if it is to run otherwise."""
        node = self._look()
        if node is None:
            return MISS
        values = _bound(self.function, args, kwargs)
        if values is None:
            return MISS
        return self._go_on(node, 0, values)

    def _go_on(self, node: Any, first: int, values: dict[str, Any]) -> Any:
        """From a statement of the body on, with these values of names."""
        begun = first > 0
        while True:
            region, found = self._region(node, first, values)
            if isinstance(region, Refused):
                step = self._after(node, first, region)
                if step is None:
                    return self._python(node, first, values, None) if begun else MISS
                result = self._python(node, first, values, step)
            else:
                ran = region.run(found)
                if ran is None:
                    return self._python(node, first, values, None) if begun else MISS
                exit_, result, left = ran
                if left is None:
                    return result
                if not _is_first(exit_):
                    region.left += 1
                step = self._next(node, exit_.top + 1)
                result = self._resumed(region, exit_, left, step)
            begun = True
            if step is None or result[0] == resume.RETURNED:
                return result[1]
            values, first = result[1], step

    def _after(self, node: Any, first: int, refused: Refused) -> int | None:
        """The statement from which on reading begins again, behind a refusal."""
        at = refused.next
        if at <= first:
            # A loop was refused: the statement that has it runs in Python.
            at = next(
                (k + 1 for k in range(first, len(node.body))
                 if node.body[k].end_lineno >= refused.line), len(node.body),
            )  # fmt: skip
        return self._next(node, at)

    def _next(self, node: Any, at: int) -> int | None:
        """A statement with a loop, from one on; None if there is none."""
        for k in range(at, len(node.body)):
            if any(isinstance(x, (ast.For, ast.While, ast.Call)) for x in ast.walk(node.body[k])):
                if any(
                    isinstance(x, (ast.For, ast.While)) for s in node.body[k:] for x in ast.walk(s)
                ):
                    return k
        return None

    def _region(self, node: Any, first: int, values: dict[str, Any]) -> Any:
        """The region for these values, with what it takes of them; or why there is none."""
        known = self._regions.setdefault(first, [])
        for k, region in enumerate(known):
            found = region.fetch(values)
            if found is not None:
                if region.left >= _LEAVES:
                    return Refused("it left compiled code again and again", node.lineno, 0), None
                if k:
                    known.insert(0, known.pop(k))
                return region, found
        small = len(known) < 3
        key = (first, tuple([(k, piece(v, small)) for k, v in values.items()]))
        refused = self._refused.get(key)
        if refused is not None:
            return refused, None
        if len(known) >= _REGIONS:
            return Refused("it was compiled for many types", node.lineno, 0), None
        made = self._made(node, first, values, small)
        if isinstance(made, Refused):
            self._refused[key] = made
            return made, None
        region = Region(made, config.waits())
        found = region.fetch(values)
        if found is None:
            raise AssertionError("a region that does not take what it was made for")
        known.insert(0, region)
        return region, found

    def _made(self, node: Any, first: int, values: dict[str, Any], small: bool) -> Any:
        try:
            made = read(self.function, node, first, values, small)
        except RecursionError:
            made = Refused("it is too deep", node.lineno, 0)
        except Exception as e:
            if config.debug:
                raise
            made = Refused(f"{type(e).__name__}: {e}", node.lineno, 0)
        if isinstance(made, Read) and any(n >= _LARGE and inside for n, inside in made.work):
            made = Refused("its arrays are large: whole-array kernels", node.lineno, 0)
        return made

    def _python(self, node: Any, first: int, values: dict[str, Any], until: int | None) -> Any:
        """Statements of the body in Python, from one to another one."""
        path = [("block", node.body, first, "body")]
        key = (first, until, tuple(values))
        f = self._continuations.get(key)
        if f is None:
            f = resume.function(self.function, node, path, tuple(values), until=until)
            self._continuations[key] = f
        result = f(*values.values(), resume.rest_of, locals_of_caller)
        return result if until is not None else result[1]

    def _resumed(self, region: Region, exit_: Exit, left: list, until: int | None) -> Any:
        """What Python makes of the rest, from where compiled code has left."""
        value: Any = None
        for depth, (f, node, path, names) in enumerate(reversed(left)):
            given = depth > 0
            last = depth == len(left) - 1
            whole_path = path
            if last:
                whole_path = [("block", self.node.body, exit_.top, "body"), *path[1:]] if len(path) > 1 or True else path
                whole_path = _at_top(path, self.node.body, exit_.top)
            key = (id(exit_), depth, tuple(names), until if last else None)
            made = self._continuations.get(key)
            if made is None:
                made = resume.function(
                    f, node, whole_path, tuple(names), given, until if last else None
                )
                self._continuations[key] = made
            extra = [value] if given else []
            result = made(*names.values(), *extra, resume.rest_of, locals_of_caller)
            value = result[1]
        return result


def _at_top(path: list[tuple], body: list, top: int) -> list[tuple]:
    """A path whose first block is the rest of a body, as one of the whole body."""
    _, nodes, k, part = path[0]
    return [("block", [*[ast.Pass()] * (top - k), *nodes], top, part), *path[1:]]


def locals_of_caller() -> dict[str, Any]:
    """The names of the function that asks."""
    import sys

    return {
        k: v for k, v in sys._getframe(1).f_locals.items()
        if not k.startswith(("__first", "__rest_of", "__locals", "__value"))
    }  # fmt: skip


def _bound(f: types.FunctionType, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """The parameters' values; None where the call is not one of this function."""
    code = f.__code__
    n = code.co_argcount
    names = code.co_varnames[:n]
    if code.co_flags & 0x0C or len(args) > n or code.co_kwonlyargcount and f.__kwdefaults__ is None and not kwargs:
        return None
    values = dict(zip(names, args, strict=False))
    only = code.co_varnames[n : n + code.co_kwonlyargcount]
    for k, v in kwargs.items():
        if k in values or k not in (*names, *only) or k in code.co_varnames[: code.co_posonlyargcount]:
            return None
        values[k] = v
    defaults = f.__defaults__ or ()
    for k, v in zip(names[n - len(defaults) :], defaults, strict=True):
        values.setdefault(k, v)
    for k, v in (f.__kwdefaults__ or {}).items():
        values.setdefault(k, v)
    if len(values) != n + code.co_kwonlyargcount:
        return None
    return values


