"""Where a region's values come from: inputs, and what is known of them. `leaving` has the exits.

An array is given to C as NumPy's own structure; C looks whether it is what it was compiled for.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from np_compile.attributes import has_dict, held, is_answered
from np_compile.shim import is_writeable

from . import direct, given, members, runtime, twister
from .calls import inlined
from .exits import Exit
from .linear import WIDE, Linear
from .liveness import Live, live_names
from .nest import FAR, contiguous
from .pieces import CONSTANT, LIST, SMALL, is_of_numpy, piece
from .random import IN_PYTHON, METHODS, generator_of
from .read import C_STORAGE, Again, Reader, int_constant
from .source import written
from .values import (
    C_TYPE,
    KIND_OF_DTYPE,
    PARTS,
    REPRESENTATION,
    Arr,
    Bound,
    Conflict,
    Items,
    Known,
    Num,
    Obj,
    Opaque,
    OrNone,
    Partial,
    Range,
    Rng,
    Tup,
    Unreadable,
    Value,
    python,
)
from .walk import count_loads

_BRACKETS = (np.r_, np.c_, np.s_, np.index_exp, np.mgrid, np.ogrid)
_CLASSES = 10  # of objects in lists: each is named by a digit


class Unfit(Exception):
    """A value that regions do not take."""


# What is known where a region begins


@dataclass
class Input:
    """A value that a region takes. path: how it is found. value: that of the example. piece: what
    it has to be. taken: whether C is given it; why: it is not, as it does not fit."""

    path: tuple
    value: Any
    piece: Any
    taken: bool = True
    why: str = ""


KEYS = "{}"  # in a path, and the piece of it: all keys of a dict
SAME = object()  # the piece of a value that is to be this very one
LISTED = object()  # of a list, a dict or a set that is one of C


class Entry:
    """Where a region's values come from, while it is read. example: the values of a call."""

    def __init__(self, f: Any, node: Any, example: dict[str, Any], small: bool):
        self.function, self.node = f, node
        self.example = example
        self.small = small
        self.prologue: list[str] = []
        self.inputs: dict[tuple, Input] = {}  # by their paths
        self.words = 0
        self.arrays = 0
        self.strided = False  # whether one of them may be written to and is not contiguous
        self.owners: list[tuple] = []
        self.sizes: list[int] = []
        self.formats: list[str] = []
        self.exits: dict[int, Exit] = {}
        self.normalized: dict = {}
        self.paths: dict[Any, Any] = {}
        self._outer: dict[tuple, Value] = {}
        self._counts: dict[Any, dict[str, int]] = {}
        self._live: dict[int, dict[int, Live]] = {}
        self.most = 0
        self.known: dict[str, int] = {}
        self.set: dict[str, tuple[str, str]] = {}  # an object's path, and the attribute
        self.attributes: dict[str, Value] = {}
        self.unset: dict[str, tuple] = {}  # attributes that are set before they are asked for
        self.layouts: dict[type, list[tuple[str, Any]]] = {}
        self.lists: list[given.Given] = []
        self.aside: list[tuple] = []  # paths of lists that are taken as tuples
        self.classes: list[type] = []  # of objects in lists
        self.texts: dict[str, tuple] = {}  # where those are found that are constants
        self.lengths: dict[str, int] = {}
        self._prefers_lists = False
        self.again = False  # whether something became known that was needed earlier

    # Values from outside

    def begin(self, r: Reader) -> dict[str, Value]:
        loads = self.loads(self.node, None)
        env = {}
        for name, x in self.example.items():
            if not name.isidentifier() or not loads.get(name):
                continue
            try:
                env[name] = self.take(r, ("local", name), x)
            except Unfit as e:
                env[name] = Opaque(("local", name), str(e))
        return env

    def _in(self, part: str) -> str:
        self.words += 1
        return f"in[{self.words - 1}].{part}"

    def take(self, r: Reader, path: tuple, x: Any) -> Value:
        """A value from outside, that is of this type in each call of the region."""
        if path in self.inputs:  # it did not fit
            raise Unfit(self.inputs[path].why)
        taken = self.inputs[path] = Input(path, x, piece(x, self.small))
        if (method := twister.method_of(x)) is not None:
            return Bound(self.take(r, (*path, ".__self__"), x.__self__), method)
        words, arrays = self.words, self.arrays
        parts: tuple[list, ...] = self.prologue, self.owners, self.sizes, self.aside
        lengths = list(map(len, parts))
        try:
            with r.before(self.prologue):
                made = self._value(r, path, x)
        except Unfit as e:  # C is given nothing of it, not what fits either
            taken.taken, taken.why = False, str(e)
            self.words, self.arrays = words, arrays
            for part, n in zip(parts, lengths, strict=True):
                del part[n:]
            raise
        if isinstance(made, Items):
            taken.piece = LISTED
        return made

    def _value(self, r: Reader, path: tuple, x: Any) -> Value:
        kind = type(x)
        if kind is bool:
            return python(x)
        if kind is int:
            if WIDE <= x < 2 * WIDE:
                return Num(r.named(f"(u64){self._in('i')}", "u64", "w"), "u64", ("wide",))
            is_constant = path[0] in ("global", "cell") and not -WIDE <= x < WIDE
            return Known(x) if is_constant else self._int(r, x)
        if kind is float:
            return Num(r.named(self._in("f"), "f64"), "f64", ("float",))
        if kind is complex:
            parts = self._in("f"), self._in("f")
            return Num(r.named(f"(c128){{{', '.join(parts)}}}", "c128"), "c128", ("complex",))
        if kind is np.ndarray:
            return self._array(r, path, x)
        if isinstance(x, np.generic):
            return self._scalar(r, x)
        named = isinstance(x, tuple) and hasattr(kind, "_fields")
        is_record = kind is dict and len(x) > 0 and all(type(key) is str for key in x)
        is_text = kind is str and ("list", "text", path) in r.memory
        if (is_text or kind is bytes) and given.KNOWN and path == _whole(path):
            return self._list(r, path, x)
        if kind is str and path == _whole(path):
            self.texts.setdefault(x, path)
        if (
            kind is set
            or (kind is list and self._is_listed(r, path, x))
            or (kind is dict and not is_record)
        ):
            return self._list(r, path, x)
        if kind is tuple or named or kind is list:
            if kind is list:
                self.aside.append(path)
            items = tuple(self._value(r, (*path, k), y) for k, y in enumerate(x))
            return Tup(items, kind, path=path)
        if kind is range:
            return Range(self._int(r, x.start), self._int(r, x.stop), python(x.step))
        if x is None or kind is str or isinstance(
            x, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc,
                np.dtype)
        ):  # fmt: skip
            return Known(x)
        if members.is_taken(x):
            return Known(x)
        if isinstance(written(x), types.FunctionType):
            return _function(x)
        if twister.is_drawn(x):
            return self._twister(r, path)
        if kind is functools.partial:
            return self._partial(r, x)
        found = generator_of(x)
        if found is not None:
            made = Rng(r.named(f"(bitgen *){self._in('p')}", "bitgen *", "g"), found[1])
            self.paths[made] = path
            return made
        if is_of_numpy(x):
            return Known(x)
        if is_record or (has_dict(kind) and not isinstance(x, (dict, list, set))):
            name = "/".join(map(str, path))
            if len(path) > 1 and path[0] == "local" and len(path) == 2:
                name = path[1]
            self.paths[name] = path
            return Obj(name, kind)
        raise Unfit(f"a value of type {kind.__name__}")

    def _partial(self, r: Reader, x: functools.partial) -> Partial:
        if isinstance(x.func, types.FunctionType):
            self.watch(("function", x.func, "__code__"), x.func.__code__)
        try:
            f, *args = (self.constant(r, y) for y in (x.func, *x.args))
            return Partial(f, tuple(args), {k: self.constant(r, y) for k, y in x.keywords.items()})
        except Unreadable as e:
            raise Unfit(str(e)) from None

    def _twister(self, r: Reader, path: tuple) -> Rng:
        made = twister.Twister(r.named(f"(bitgen *){self._in('p')}", "bitgen *", "g"), False)
        self.paths[made] = path
        return made

    # Lists

    def _is_listed(self, r: Reader, path: tuple, x: list) -> bool:
        """Whether a list is taken as a list, not as a tuple of its items."""
        if path != _whole(path) or not given.KNOWN:
            if len(x) > LIST:
                raise Unfit("a long list")
            return False
        if len(x) > LIST:
            return True
        if ("list", "as tuples") in r.memory:
            return False
        is_long = len(x) > given.FEW and given.form_of(r, given.type_of(r, [x], path)) is not None
        if not is_long and ("list", "needed", path) not in r.memory:
            return False
        self._prefers_lists = True
        return True

    def takes_lists_as_tuples(self, r: Reader) -> bool:
        """Whether the next reading takes some lists as tuples that this one has not."""
        if self._prefers_lists:
            for key in [key for key in r.memory if key[:2] == ("list", "class")]:
                del r.memory[key]  # of objects that lists were to hold
            r.memory["list", "as tuples"] = {}
        return self._prefers_lists

    def _list(self, r: Reader, path: tuple, x: list | dict | set) -> Items:
        if path != _whole(path) or not given.KNOWN:
            raise Unfit(f"a value of type {type(x).__name__}")
        name = f"list_{len(self.lists)}"
        made = given.type_of(r, [x], path, name)
        form = given.form_of(r, made)
        if form is None:
            why = made.why if isinstance(made, Conflict) else "items that it is not read with"
            kind = type(x).__name__
            raise Unfit(f"a {kind} of {why}" if len(x) <= LIST else f"a long {kind} of {why}")
        self.lists.append(given.Given(path, name, form))
        self.lengths[name] = len(x)
        return made

    def growing(self, r: Reader, path: tuple) -> None:
        """Take a list that is found at a path for one that changes, if it can be."""
        whole = _whole(path)
        if whole not in self.inputs or ("list", "as tuples") in r.memory or not given.KNOWN:
            return
        x = self.inputs[whole].value
        if type(x) is list and given.form_of(r, given.type_of(r, [x], whole)) is not None:
            r.memory["list", "needed", whole] = {}
            raise Again

    def listed(self, written: frozenset[str]) -> list[str]:
        """The C that reads the lists. written: the roots of memory that the region may change."""
        return given.lines(self.lists, len(self.taken_apart()), self.words, written)

    def letter_of(self, kind: type) -> str:
        """What names a class of objects in lists; nothing where there are too many."""
        if kind not in self.classes:
            self.classes.append(kind)
        k = self.classes.index(kind)
        return chr(ord("0") + k) if k < _CLASSES else ""

    def taken_apart(self) -> list[tuple]:
        """The paths of what C does not take as a list or as an object in one, and that may be one
        all the same."""
        objects = [path for name, path in self.paths.items() if isinstance(name, str)]
        kinds = [(path, type(self.object_at(path))) for path in objects]
        return [*self.aside, *(path for path, kind in kinds if kind in self.classes)]

    def attributes_in_lists(self) -> list[Any]:
        """The classes of objects in lists, each with the names that C reads."""
        return [x for kind in self.classes for x in (kind, tuple(dict(self.layouts[kind])))]

    def _int(self, r: Reader, x: int) -> Num:
        if not -WIDE <= x < WIDE:
            raise Unfit("an integer beyond 64 bits")
        small = -SMALL < x < SMALL
        made = r.integer(self._in("i"), -SMALL if small else -WIDE, SMALL if small else WIDE - 1)
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
        limit = CONSTANT if self.small else 1
        k = self.arrays
        self.arrays += 1
        self.owners.append(path)
        self.sizes.append(size)
        flat, writeable = x.flags.c_contiguous, is_writeable(x)
        self.strided |= writeable and not flat
        r.line(f"PyArray *const given_{k} = {self._in('p')};")
        flags = direct.FLAT * flat | direct.WRITEABLE * writeable
        tests = [
            f"given_{k}->nd != {x.ndim}",
            f"(given_{k}->flags & {direct.FLAT | direct.WRITEABLE | direct.ALIGNED}) != "
            f"{flags | direct.ALIGNED}",
        ]
        for j, n in enumerate(x.shape):
            there = f"given_{k}->dims[{j}]"
            tests.append(f"{there} != {n}" if n <= limit else f"{there} <= {limit}")
        if not flat:
            for j, s in enumerate(x.strides):
                there = f"given_{k}->strides[{j}]"
                tests.append(f"({there} == {size}) != {int(s == size)} || {there} % {size}")
        ordered = (
            list(x.strides) == sorted(x.strides, reverse=True) and min(x.strides, default=0) >= 0
        )
        if ordered and not flat:
            texts = [f"given_{k}->strides[{j}]" for j in range(x.ndim)]
            tests += [f"{a} < {b}" for a, b in zip(texts, [*texts[1:], "0"], strict=True)]
        r.line(f"if ({' || '.join(tests)}) return 0;")
        data = r.named(f"({ctype})given_{k}->data", ctype, "p")
        dims = []
        for j, n in enumerate(x.shape):
            if n <= limit:
                dims.append(int_constant(n))
            else:
                made = r.integer(f"given_{k}->dims[{j}]", limit + 1, FAR)
                self.known[made.text] = n
                dims.append(made)
        if flat:
            strides = contiguous(r, dims)
        else:
            steps = []
            for j, s in enumerate(x.strides):
                text = f"given_{k}->strides[{j}] / {size}"
                steps.append(int_constant(1) if s == size else r.integer(text, -FAR, FAR))
                self.known[steps[-1].text] = s // size
            strides = tuple(steps)
        buf = self.root(k)
        r.line(f"Buf *const {buf} = rt->given + {k};")
        r.line(f"{buf}->refs = 1L << 40; {buf}->owner = {k}; {buf}->object = given_{k};")
        return Arr(rep, buf, data, tuple(dims), strides, frozenset((buf,)), None,
                   not writeable, flat, ordered)  # fmt: skip

    def root(self, k: int) -> str:
        """The name of the memory of an array that is given."""
        return f"arg_{k}"

    def apart(self) -> list[str]:
        """The C that turns a call away whose arrays share memory."""
        if self.arrays < 2 and not self.strided:
            return []
        listed = ", ".join(f"given_{k}" for k in range(self.arrays))
        sizes = ", ".join(map(str, self.sizes))
        return [
            f"{{ PyArray *const all[] = {{{listed}}}; const i64 sizes[] = {{{sizes}}};",
            f"if (share_memory(all, sizes, {self.arrays})) return -2; }}",
        ]

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
            item = f"[{name!r}]"
            if f"@{_names_of(f)}.{item}" in self.attributes or _set_as_item(path) in r.memory:
                return r.grammar.attribute(r, self.namespace(f), item)  # type: ignore[no-any-return]
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

    def namespace(self, f: Any) -> Obj:
        """The dict of a function's global names, as `globals()` gives it."""
        name = _names_of(f)
        if name not in self.paths:
            self.paths[name] = "function", f, "__globals__"
            self.watch(self.paths[name], f.__globals__)
        return Obj(name, dict)

    def of_module(self, r: Reader, module: types.ModuleType, name: str) -> Value:
        """An attribute of a module."""
        try:
            x = getattr(module, name)
        except AttributeError as e:
            raise Unreadable(str(e)) from None
        self.watch(("module", module, name), x)
        if module is np.random and (name in METHODS or name in IN_PYTHON):
            state = np.random.mtrand._rand
            if ("state",) not in self._outer:
                self._outer["state",] = self.take(r, ("state",), state)
            return Bound(self._outer["state",], name)
        if (method := twister.method_of(x)) is not None:
            path = ("module", module, name, ".__self__")
            if path not in self._outer:
                self._outer[path] = self.take(r, path, x.__self__)
            return Bound(self._outer[path], method)
        if type(x) in (bool, int, float, complex):
            return python(x)
        if isinstance(x, (np.ndarray, np.generic)):
            raise Unreadable(f"an array in the module {module.__name__}")
        known = x is None or any(x is y for y in _BRACKETS) or isinstance(x, types.ModuleType)
        if not known and not callable(x):
            raise Unreadable(f"{module.__name__}.{name}")
        return Known(x)

    def watch(self, path: tuple, x: Any) -> None:
        """The region is for calls where this very value is at the path."""
        if path not in self.inputs:
            self.inputs[path] = Input(path, x, SAME, False)

    def attribute(self, r: Reader, owner: Obj, name: str) -> Value:
        """An attribute of an object of the user's."""
        key = f"@{owner.path}.{name}"
        if key in self.attributes:
            return self.attributes[key]
        if name.startswith("["):
            return self._item(r, owner, name)
        path = (*self.paths[owner.path], "." + name)
        found = getattr(owner.type, name, None)
        if isinstance(written(found), types.FunctionType):
            x = self._object(owner)
            if name in held(x):
                raise Unreadable(f"the attribute {name!r} hides a method")
            if isinstance(inspect.getattr_static(owner.type, name), staticmethod):
                self.watch(path, found)
                return _function(found)
            self.watch((*self.paths[owner.path], f".{name}.__func__"), found)
            return Bound(owner, name)
        if isinstance(found, property):
            if found.fget is None:
                raise Unreadable(f"the property {name!r}")
            self.watch(("function", owner.type, name), found)
            getter: Any = found.fget
            return inlined(r, getter, [owner], {})
        if isinstance(found, (staticmethod, classmethod)) or (
            hasattr(found, "__get__") and callable(found)
        ):
            raise Unreadable(f"the attribute {name!r}")
        x = self._object(owner)
        if type(x).__getattribute__ is not object.__getattribute__ or is_answered(x, name):
            raise Unreadable(f"an attribute of {owner.type.__name__}")
        try:
            value = getattr(x, name)
        except AttributeError as e:
            raise Unreadable(str(e)) from None
        return self._attribute(r, owner, name, path, value)

    def _attribute(self, r: Reader, owner: Obj, name: str, path: tuple, value: Any) -> Value:
        try:
            made = self.take(r, path, value)
        except Unfit as e:
            raise Unreadable(f"{name!r}: {e}") from None
        self.attributes[f"@{owner.path}.{name}"] = made
        return made

    def _item(self, r: Reader, owner: Obj, name: str) -> Value:
        """An item of a dict whose keys are text."""
        key, x = ast.literal_eval(name)[0], self._object(owner)
        if key not in x:
            raise Unreadable(f"a key that a dict does not have, {key!r}")
        return self._attribute(r, owner, name, (*self.paths[owner.path], name), x[key])

    def keys(self, owner: Obj) -> tuple:
        """The keys of a dict, which are text: the region is for dicts that have these."""
        path = (*self.paths[owner.path], KEYS)
        if path not in self.inputs:
            self.inputs[path] = Input(path, tuple(self._object(owner)), KEYS, False)
        return self.inputs[path].value  # type: ignore[no-any-return]

    def _object(self, owner: Obj) -> Any:
        return self.object_at(self.paths[owner.path])

    def object_at(self, path: tuple) -> Any:
        """The object at a path, of the example."""
        items = []
        while path not in self.inputs:  # it is in a tuple
            *before, k = path
            path = tuple(before)
            items.append(k)
        x = self.inputs[path].value
        for k in reversed(items):
            x = x[k]
        return x

    def may_set(self, r: Reader, owner: Obj, name: str) -> None:
        """Whether an attribute can be set by name, as any object's."""
        kind = owner.type
        if kind is not dict and (
            kind.__setattr__ is not object.__setattr__
            or hasattr(getattr(kind, name, None), "__set__")
        ):
            raise Unreadable(f"the attribute {name!r} is set by code of its own")
        key, path = f"@{owner.path}.{name}", self.paths[owner.path]
        if kind is dict and path[-1] == "__globals__":
            of = "global", path[1], ast.literal_eval(name)[0]
            if ("global", id(path[1].__globals__), of[2]) in self._outer:  # it was read as a name
                r.memory[_set_as_item(of)] = {}
                raise Again
        if key not in self.attributes and self._is_set_first(r, owner, name):
            self.attributes[key] = Known(None)
            self.unset[key] = ("attribute", *self.paths[owner.path], name)
        else:
            self.attribute(r, owner, name)
        self.set[key] = owner.path, name

    def _is_set_first(self, r: Reader, owner: Obj, name: str) -> bool:
        """Whether an attribute that is set needs no value before, of what is known so far: it has
        none, or an array, which may be memory of another argument since the last call."""
        own = held(self._object(owner))
        if owner.type is dict or hasattr(owner.type, name):
            return False
        if ("attribute", *self.paths[owner.path], name) in r.memory:
            return False
        return name not in own or isinstance(own[name], np.ndarray)

    def since_set(self, r: Reader, owner: Obj, name: str, value: Value) -> Value:
        """The value of an attribute, which may not have been set yet."""
        place = self.unset.get(f"@{owner.path}.{name}")
        if place is None:
            return value
        if value != Known(None) and not isinstance(value, OrNone):
            return value
        if name in held(self._object(owner)):
            r.memory[place] = {}
            raise Again
        if value == Known(None):
            raise Unreadable(f"{owner.type.__name__!r} object has no attribute {name!r}")
        r.leave_if(f"!{value.flag}", f"there is no attribute {name!r} yet")
        return value.value

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
        fixed = (type, types.FunctionType, np.dtype, np.ufunc)
        if x is None or type(x) is str or isinstance(x, fixed) or members.is_taken(x):
            return Known(x)
        raise Unreadable(f"a constant of type {type(x).__name__}")

    def at(self, x: Linear | None) -> int:
        """A linear form's value for the example; 0 where it is not known."""
        if x is None or any(name not in self.known for name in x.terms):
            return 0
        return x.const + sum(c * self.known[name] for name, c in x.terms.items())

    # Names

    def loads(self, node: Any, without: Any) -> dict[str, int]:
        """How often names are asked for in a function, outside of one of its loops."""
        key = (id(node), id(without))
        if key not in self._counts:
            counts = {**count_loads(node)}
            if without is not None:
                for name, n in count_loads(without).items():
                    counts[name] = counts.get(name, 0) - n
            self._counts[key] = counts
        return self._counts[key]

    def live(self, node: Any) -> dict[int, Live]:
        """The live names of the loops of a function."""
        if id(node) not in self._live:
            self._live[id(node)] = live_names(node)
        return self._live[id(node)]


def _function(x: Any) -> Known:
    """A function, or a compiled one."""
    made = written(x)
    return Known(made, None if made is x else x)


def _names_of(f: Any) -> str:
    """How the dict of a function's global names is called."""
    return f"global/<names at {id(f.__globals__):#x}>/"


def _set_as_item(path: tuple) -> tuple:
    """What notes of a global name that it is set as an item of `globals()`."""
    return "global", id(path[1].__globals__), path[2]


def _whole(path: tuple) -> tuple:
    """The path of what something is an item of, or an item of an item."""
    n = len(path)
    while type(path[n - 1]) is int:
        n -= 1
    return path[:n]
