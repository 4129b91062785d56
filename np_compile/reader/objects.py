"""Objects of the user's classes that are made in a function.

An object is memory of its own, which names, lists and other objects refer to: words for each of its
attributes, laid out as a list's item is. All objects of a class have the same attributes, of the
same types: those that are seen while the function is read (`Layout`). So an object may refer to
others of its class. While `__init__` runs, the attributes are values of their own (`Begun`); when
it ends, the memory is made of them. One that changes something else too, such as a generator of
random numbers, is a function of its own that gives the object: where it is left, Python gets what
the object has by then.

A class may do nothing of its own where objects are made, where attributes are asked for or set, and
where objects go: no `__new__`, `__getattr__`, `__setattr__`, `__del__`, no metaclass.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import FunctionType, MemberDescriptorType
from typing import Any

from np_compile.attributes import has_dict, held, slot_values

from .exits import of_words
from .lists import (
    as_item,
    buffers,
    no_nan,
    place_of,
    size_of_item,
    words_of,
)
from .nest import kept
from .read import Again, Reader
from .source import written
from .values import (
    FLOATS,
    HELD,
    Begun,
    Bound,
    Conflict,
    Items,
    Known,
    Made,
    MadeRng,
    Maybe,
    NotYet,
    Num,
    Obj,
    OrNone,
    Rng,
    Tup,
    Unreadable,
    Value,
    python,
)
from .variables import item_type, join, same_type, shared


@dataclass
class Layout:
    """The attributes of the objects of a class, in the order in which they were set first. Those
    that are set when `__init__` has ended are Maybe."""

    of: dict[str, Value]

    @property
    def item(self) -> Tup:
        return Tup(tuple(self.of.values()))


def layout(r: Reader, kind: type) -> Layout:
    return r.memory["list", "class", kind]  # type: ignore[return-value]


def known(r: Reader, kind: type) -> set[str]:
    """The attributes of objects of a class, as far as they were seen."""
    found: Any = r.memory.get(("list", "class", kind))
    return set(found.of) if found is not None else set()


def described(r: Reader) -> dict[type, list[tuple[str, Any]]]:
    """How Python makes the attributes of objects of the words, for each class."""
    made = {}
    for key, found in r.memory.items():
        if key[:2] == ("list", "class") and isinstance(found, Layout):
            words = count()
            made[key[2]] = [(k, of_words(x, words, r.entry.paths)) for k, x in found.of.items()]
    return made


# Objects that are made


def new_object(r: Reader, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`kind(*args, **kwargs)`."""
    _check(kind)
    x = Begun(r.fresh("new"), kind)
    r.begun[x.path] = len(r.frames)
    init: Any = kind.__init__  # type: ignore[misc]
    r.entry.watch(("function", kind, "__init__"), init)
    made = None
    if init is object.__init__:
        if args or kwargs:
            raise Unreadable(f"{kind.__name__} takes no arguments")
    elif is_generated(kind, "__init__"):
        made = _of_fields(r, x, kind, args, kwargs)
    else:
        made = _run(r, init, [x, *args], kwargs)
    return made or finished(r, x)


def initializer(kind: type) -> Any:
    """The method of the user's that is run when an object of a class is made."""
    name = "__post_init__" if is_generated(kind, "__init__") else "__init__"
    return written(inspect.getattr_static(kind, name, None))


def begins(r: Reader, args: list[Value]) -> bool:
    """Whether a function that is called with these arguments makes the object of which it is the
    `__init__`."""
    return bool(args) and isinstance(args[0], Begun) and r.begun[args[0].path] == len(r.frames)


def finished(r: Reader, x: Begun) -> Made:
    """The object that its `__init__` has made, in memory."""
    prefix, env = f"@{x.path}.", r.frames[0].env
    names = {key[len(prefix) :]: v for key, v in env.items() if key.startswith(prefix)}
    for name in names:
        del env[prefix + name]
    return _allocated(r, x.type, names)


def is_written(kind: type) -> bool:
    """Whether objects of a class are nothing but their attributes."""
    try:
        _check(kind)
    except Unreadable:
        return False
    return True


def names_in(x: Any) -> list[str]:
    """The names of an object's own attributes that are set."""
    kind = type(x)
    found = [*held(x), *slot_values(x)]
    return [name for name in found if _is_plain(inspect.getattr_static(kind, name, None))]


def _is_plain(found: Any) -> bool:
    """Whether a class has no code of its own for an attribute; found: what it has by that name."""
    return not hasattr(type(found), "__set__") or isinstance(found, MemberDescriptorType)


def _check(kind: type) -> None:
    name = kind.__name__
    if type(kind) is not type or kind.__module__ == "builtins":
        raise Unreadable(f"an object of {kind.__qualname__} is made")
    bases = [c for c in kind.__mro__ if c is not object]
    if any(c.__module__ == "builtins" or not c.__flags__ & 1 << 9 for c in bases):
        raise Unreadable(f"an object of {name}, which has a base that is not written in Python")
    for special in ("__getattr__", "__del__"):
        if hasattr(kind, special):
            raise Unreadable(f"an object of {name}, which has {special}")
    own = kind.__new__ is not object.__new__
    if own or kind.__getattribute__ is not object.__getattribute__:
        raise Unreadable(f"an object of {name}, which has code of its own where it is made")
    if kind.__setattr__ is not object.__setattr__ and not is_frozen(kind):
        raise Unreadable(f"an object of {name}, which has __setattr__")


def is_frozen(kind: type) -> bool:
    params = getattr(kind, "__dataclass_params__", None)
    return params is not None and params.frozen and is_generated(kind, "__setattr__")


def is_generated(kind: type, name: str) -> bool:
    """Whether a method is one that `dataclass` has written."""
    f = getattr(kind, name, None)
    return (
        dataclasses.is_dataclass(kind)
        and isinstance(f, FunctionType)
        and f.__code__.co_filename == "<string>"
    )


def _run(r: Reader, f: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`__init__`, or `__post_init__`; one that changes more than the object, and may be left in the
    middle, is read as a function that gives it (`source.giving`)."""
    f = written(f)
    if not isinstance(f, FunctionType):
        raise Unreadable("an __init__ that is not written in Python")
    r.entry.watch(("function", f, "__code__"), f.__code__)
    made = r.grammar.called(r, Known(f), args, kwargs)
    if f.__code__ in r.effectful and isinstance(made, Made):
        return made
    if made != Known(None):
        raise Unreadable(f"{f.__qualname__} returns something")
    return None


def _of_fields(
    r: Reader, x: Begun, kind: type, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Set the attributes of a dataclass's object, as the `__init__` that `dataclass` has written;
    the object, if its `__post_init__` gives it."""
    alone, r.hoisted = r.hoisted, False
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    every = kind.__dataclass_fields__.values()  # type: ignore[attr-defined]
    if any("InitVar" in str(f._field_type) for f in every):
        raise Unreadable(f"{kind.__name__} has an InitVar")
    in_place = [f.name for f in fields if f.init and not f.kw_only]
    if len(args) > len(in_place) or not kwargs.keys() <= {f.name for f in fields if f.init}:
        raise Unreadable(f"the arguments of {kind.__name__}")
    given = dict(zip(in_place, args, strict=False))
    if given.keys() & kwargs.keys():
        raise Unreadable(f"the arguments of {kind.__name__}")
    given |= kwargs
    for f in fields:
        if f.name in given:
            value = kept(r, given[f.name])
        elif f.default is not dataclasses.MISSING:
            if not f.init:
                raise Unreadable("a field that is not among the parameters, with a default")
            value = r.entry.constant(r, f.default)
        elif f.default_factory is not dataclasses.MISSING:
            value = kept(r, r.grammar.called(r, Known(f.default_factory), [], {}))
        elif f.init:
            raise Unreadable(f"the argument {f.name!r} is missing")
        else:
            continue
        set_begun(r, x, f.name, value)
    post = getattr(kind, "__post_init__", None)
    r.hoisted = alone
    return None if post is None else _run(r, post, [x], {})


def set_begun(r: Reader, x: Begun, name: str, value: Value) -> None:
    """Set an attribute of an object that `__init__` is at work on."""
    _may_be_set(x.type, name)
    env, key = r.frames[0].env, f"@{x.path}.{name}"
    inside = (step[0] for f in r.frames[r.begun[x.path] :] for step in f.path)
    if key not in env and any(step in ("for", "while", "unrolled", "try") for step in inside):
        raise Unreadable(f"the attribute {name!r} is set first in a loop")
    env[key] = value


def _type_of_field(r: Reader, x: Value) -> Value:
    if isinstance(x, Maybe):
        return Maybe(_type_of_field(r, x.value), "")
    shared(r, x)
    constant = isinstance(x, (Known, Rng)) or type(x) is Obj
    of = x if constant else item_type(x)
    if isinstance(of, Conflict):
        raise Unreadable(f"an attribute: {of.why}")
    return of


def learn(r: Reader, kind: type, values: dict[str, Value]) -> None:
    """Have objects of a class hold such attributes; if they do not yet, all is read again."""
    key = "list", "class", kind
    known: Any = r.memory.get(key)
    if known is None:
        r.memory[key] = Layout({k: _type_of_field(r, x) for k, x in values.items()})  # type: ignore[assignment]
        return
    if not values.keys() <= known.of.keys():
        raise Unreadable(f"objects of {kind.__name__} with other attributes")
    grown = dict(known.of)
    for name, x in values.items():
        of = _type_of_field(r, x)
        if not same_type(grown[name], of, r):
            try:
                of = join(grown[name], of, r)
            except Again:  # containers are made for other items: it is learnt anew
                r.memory.pop(key, None)
                raise
            if not isinstance(of, HELD):
                raise Unreadable(f"the attribute {name!r} of {kind.__name__} has several types")
            grown[name] = _type_of_field(r, of)
    if grown != known.of:
        r.memory[key] = Layout(grown)  # type: ignore[assignment]
        r.entry.again = True


def _allocated(r: Reader, kind: type, values: dict[str, Value]) -> Made:
    key = "list", "class", kind
    known: Any = r.memory.get(key)
    late = {k for k, x in known.of.items() if isinstance(x, Maybe)} if known is not None else set()
    if known is not None and [k for k in known.of if k in values or k not in late] != list(values):
        raise Unreadable(f"objects of {kind.__name__} with other attributes, or in another order")
    for name, x in values.items():
        if r.is_local(x) or not isinstance(x, (*HELD, Known, Rng, Obj)) or isinstance(x, Begun):
            raise Unreadable(f"the attribute {name!r} of {kind.__name__}")
    learn(r, kind, values)
    found = layout(r, kind)
    values = {k: _as_field(r, x, found.of[k]) for k, x in values.items()}
    words = words_of(r, found.item)
    pointers = sum(1 << k for k, ctype in enumerate(words) if ctype == "Buf *")
    call = f"new_object(rt, {size_of_item(r, found.item)}, {pointers})"
    buf = r.named(call, "Buf *", "o")
    r.leave_if(f"{buf} == 0", "no memory")
    r.made_here(buf)
    r.one_by_one()
    made = Made(buf, None, frozenset((buf,)), made=kind)
    for name, v in zip(found.of, _places(r, made), strict=True):
        if name in values:
            x = values[name]
            r.lines += [*v.hold(x), *v.put(r, x, owned=False)]
    return made


def _as_field(r: Reader, x: Value, of: Value) -> Value:
    """A value as the attribute has it; where it cannot, it leaves here."""
    of = of.value if isinstance(of, Maybe) else of
    if isinstance(of, OrNone) and isinstance(x, (Num, Tup)):
        return as_item(r, x, of.value)
    return as_item(r, x, of)


def _places(r: Reader, x: Made) -> list[Any]:
    """The attributes, as variables."""
    item = Items(x.buf, layout(r, x.made).item, x.roots)
    return place_of(r, item, "0").items


# Attributes


def attribute(r: Reader, owner: Made | Begun, name: str) -> Value:
    """`owner.name`."""
    kind = owner.made if isinstance(owner, Made) else owner.type
    if isinstance(owner, Begun):
        key = f"@{owner.path}.{name}"
        if key in r.frames[0].env:
            value = r.frames[0].env[key]
            if isinstance(value, Conflict):
                raise Unreadable(f"the attribute {name!r}: {value.why}")
            if isinstance(value, Maybe):
                r.leave_if(f"!{value.flag}", f"there is no attribute {name!r} yet")
                return value.value
            return value
    elif name in layout(r, kind).of:
        return _read(r, owner, name)
    return of_class(r, kind, name, owner)


def of_class(r: Reader, kind: type, name: str, owner: Value | None = None) -> Value:
    """`owner.name` where the object has no such attribute of its own, or `kind.name`."""
    found = inspect.getattr_static(kind, name, None)
    itself = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    f = written(itself)
    if found is None or isinstance(found, MemberDescriptorType):
        raise NotYet(f"{kind.__name__} has no attribute {name!r}")
    if isinstance(found, property) and owner is not None:
        r.entry.watch(("function", kind, name), found)
        if not isinstance(written(found.fget), FunctionType):
            raise Unreadable(f"the property {name!r}")
        return r.grammar.called(r, Known(written(found.fget)), [owner], {})
    if isinstance(f, FunctionType):
        if isinstance(found, classmethod):  # each look makes another method of it
            r.entry.watch(("function", kind, f"{name}.__func__"), getattr(kind, name).__func__)
        else:
            r.entry.watch(("function", kind, name), getattr(kind, name))
        r.entry.watch(("function", f, "__code__"), f.__code__)
        if isinstance(found, classmethod):
            return Bound(Known(kind), name, {"f": f})
        bound = owner is not None and not isinstance(found, staticmethod)
        return Bound(owner, name) if bound else Known(f, None if f is itself else itself)
    if hasattr(type(found), "__get__"):
        raise Unreadable(f"the attribute {name!r}")
    r.entry.watch(("function", kind, name), found)
    return r.entry.constant(r, found)


def _read(r: Reader, owner: Made, name: str) -> Value:
    r.one_by_one()
    r.accesses.anything(owner.roots)
    k = list(layout(r, owner.made).of).index(name)
    x = _places(r, owner)[k].load(r)
    if isinstance(x, Maybe):
        r.leave_if(f"!{x.flag}", f"there is no attribute {name!r} yet")
        x = x.value
    if r.added is not None and isinstance(x, Num) and x.rep in FLOATS:
        r.sums[x.text] = int((owner.made, name) in r.added)
    for buf in buffers(x):
        r.line(f"retain(rt, {buf});")
        r.owned[-1].append(buf)
    return x


def _may_be_set(kind: type, name: str) -> None:
    found = inspect.getattr_static(kind, name, None)
    if not _is_plain(found):
        raise Unreadable(f"the attribute {name!r} is set by code of its own")
    if not has_dict(kind) and not isinstance(found, MemberDescriptorType):
        raise Unreadable(f"{kind.__name__} has no attribute {name!r}")


def _set_late(r: Reader, kind: type, name: str, value: Value) -> None:
    """Read again, with an attribute that objects of a class do not have at first."""
    found = inspect.getattr_static(kind, name, None)
    if found is not None and not isinstance(found, MemberDescriptorType):
        raise Unreadable(f"the attribute {name!r} of {kind.__name__}, which the class has too")
    of = Maybe(_type_of_field(r, value), "")
    r.memory["list", "class", kind] = Layout({**layout(r, kind).of, name: of})  # type: ignore[assignment]
    r.entry.again = True


def set_attribute(r: Reader, owner: Made, name: str, value: Value) -> Callable[[], None]:
    """What sets an attribute; the checks are made now."""
    kind = owner.made
    _may_be_set(kind, name)
    if is_frozen(kind):
        raise Unreadable(f"an attribute of {kind.__name__}, which is frozen, is set")
    value = kept(r, value)
    if r.is_local(value) or isinstance(value, Begun):
        raise Unreadable(f"the attribute {name!r} of {kind.__name__}")
    if name not in layout(r, kind).of:
        _set_late(r, kind, name, value)
    learn(r, kind, {name: value})
    known = layout(r, kind)
    value = _as_field(r, value, known.of[name])
    r.one_by_one()

    def commit() -> None:
        v = _places(r, owner)[list(known.of).index(name)]
        r.lines += [*v.hold(value), *v.put(r, value)]
        if r.added is not None:
            r.added.add((owner.made, name))
        r.changed(owner.roots)

    return commit


# What Python asks of a class


def class_of(x: Value) -> type | None:
    """The class of a value that is an object of the user's."""
    if isinstance(x, Made):
        return x.made
    return x.type if isinstance(x, Obj) and x.type is not dict else None


def special(r: Reader, x: Value, name: str, *args: Value) -> Value | None:
    """What a class's method with a name that Python knows gives; None if it has none."""
    kind = class_of(x)
    f = written(inspect.getattr_static(kind, name, None)) if kind is not None else None
    if f is None or kind is None:
        return None
    if not isinstance(f, FunctionType):
        raise Unreadable(f"{name} of {kind.__name__}")
    r.entry.watch(("function", kind, name), f)
    r.entry.watch(("function", f, "__code__"), f.__code__)
    return r.grammar.called(r, Known(f), [x, *args], {})


UNARY = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}


def no_nan_in(r: Reader, x: Made) -> None:
    """Leave where an object of a dataclass has NaN among what is compared."""
    if is_generated(x.made, "__eq__"):
        for f in dataclasses.fields(x.made):  # type: ignore[arg-type]
            if f.compare:
                no_nan(r, attribute(r, x, f.name))


def identical(a: Value, b: Value) -> Num:
    """Whether two values are one object, of which one is a container or an object made here."""
    texts = [f"{x.flag} != 0" for x in (a, b) if isinstance(x, OrNone)]
    x, y = (v.value if isinstance(v, OrNone) else v for v in (a, b))
    if not isinstance(x, Items) and not isinstance(y, Items):
        raise Unreadable("identity of values")
    if not isinstance(x, Items) or not isinstance(y, Items):
        if isinstance(x, (Num, Obj, Known)) or isinstance(y, (Num, Obj, Known)):
            return python(False)
        raise Unreadable("identity of values")
    if {x.made, y.made} & {str, bytes}:
        raise Unreadable("identity of text")
    if len(texts) == 2:
        raise Unreadable("identity of values that may be None")
    if isinstance(x, MadeRng) and isinstance(y, MadeRng):  # `default_rng` may give what it is given
        texts.append(f"{x.buf}->owner == {y.buf}->owner")
        return Num(f"({' && '.join(texts)})", "bool", ("bool",), low=0, high=1)
    # A list that C only reads is there once for each name that it is given under.
    texts.append(f"same_object({x.buf}, {y.buf})")
    return Num(f"({' && '.join(texts)})", "bool", ("bool",), low=0, high=1)


def truth_of(r: Reader, x: Value) -> Value:
    """`bool(x)`, as a value whose truth it is."""
    for name in ("__bool__", "__len__"):
        made = special(r, x, name)
        if made is not None:
            return made
    return python(True)
