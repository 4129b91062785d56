"""Dicts and sets that are made in a function.

The entries of a table lie one after the other in the order in which they came, as in Python's
dicts: a hash, the key, and of a dict the value, each laid out as in a list. An index of hashes,
with linear probing, leads to them (`runtime.py`). The order of Python's sets is that of their
hashes: nothing is read here that depends on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from .lists import (
    admit,
    allocated,
    buffers,
    each,
    held,
    length,
    list_of,
    made_list,
    may_change,
    place_of,
    put,
    run_over,
)
from .nest import kept
from .read import Reader, certain, int_constant
from .sorting import in_order_of
from .values import (
    ANYWHERE,
    HELD,
    INTEGERS,
    WORDS,
    Conflict,
    Known,
    Lst,
    NoKey,
    NotYet,
    Num,
    OrNone,
    Table,
    Tup,
    Unreadable,
    Value,
    is_none,
    letters,
    python,
)
from .variables import Variable, as_type, join

MIX = "0x9E3779B97F4A7C15UL"
HASH = Num("", "i64", ("int",))
_NO_KEY = "a key that is no integer, no float and no tuple of these"
CHANGING = frozenset(("setdefault", "add", "clear", "pop", "popitem", "update"))


@dataclass(frozen=True)
class View:
    """`d.keys()`, `d.values()` or `d.items()`, where it is gone through at once."""

    table: Table
    name: str


# Keys


def class_of_key(x: Value) -> Any:
    """What keys that may be equal have in common."""
    if isinstance(x, Tup) and x.made is tuple:
        return tuple(map(class_of_key, x.items))
    if isinstance(x, Num):
        if x.is_text:
            return "text" if set(x.kinds) <= WORDS else x.kind
        if x.rep in INTEGERS - {"u64"} or x.rep == "bool":
            return "integer"
        if x.rep == "f64" and set(x.kinds) <= {"float", "float64"}:
            return "float"
    raise Unreadable(_NO_KEY)


def _key(r: Reader, t: Table, x: Value) -> Value:
    """What may be a key of a table."""
    x = kept(r, letters(x) or certain(r, x))
    mine = class_of_key(x)
    if t.of is not None and class_of_key(t.of.items[1]) != mine:
        raise Unreadable("keys of several types")
    return x


def _words(r: Reader, x: Value) -> list[str]:
    """The C of 64-bit words that equal keys have in common."""
    if isinstance(x, Tup):
        return [word for y in x.items for word in _words(r, y)]
    assert isinstance(x, Num)
    if x.rep == "f64":
        r.leave_if(f"{x.text} != {x.text}", "NaN as a key")
        return [f"bits_of({x.text})"]
    return [f"(u64)(i64){x.text}"]


def _hash(r: Reader, key: Value) -> Num:
    text = "0UL"
    for k, word in enumerate(_words(r, key)):
        mixed = f"(({text} ^ {text} >> 29) + {word})" if k else word
        text = r.named(f"{mixed} * {MIX}", "u64", "h")
    return Num(r.named(f"(i64)({text} | 1)", "i64", "h"), "i64", ("int",))


def _equal(a: Value, b: Value) -> str:
    """C for whether two keys are equal."""
    if isinstance(a, Tup):
        return " && ".join(_equal(x, y) for x, y in zip(a.items, b.items, strict=True)) or "1"
    if a.rep == "f64":
        return f"{a.text} == {b.text}"
    return f"(i64){a.text} == (i64){b.text}"


def _found(r: Reader, t: Table, key: Value) -> tuple[str, Num]:
    """The C name of a key's place, -1 if it has none; and its hash."""
    h = _hash(r, key)
    at = r.fresh("at")
    r.line(f"i64 {at} = -1;")
    r.one_by_one()
    if t.of is None:
        return at, h
    s, e = r.fresh("s"), r.fresh("e")
    first, following = f"first_slot({t.buf}, {h.text})", f"next_slot({t.buf}, {s})"
    with (
        r.block(f"if ({t.buf}->dims[5])"),
        r.block(f"for (u64 {s} = {first};; {s} = {following})"),
        r.scope(),
    ):
        r.line(f"const i64 {e} = ((const int *){t.buf}->dims[5])[{s}];")
        r.line(f"if ({e} == -1) break;")
        r.line(f"if ({e} < 0) continue;")
        mine = place_of(r, t, e).items[1].load(r)
        r.line(f"if ({_equal(mine, key)}) {{ {at} = {e}; break; }}")
    return at, h


# Tables that are made


def new_table(
    r: Reader, made: type, keys: Sequence[Value], values: Sequence[Value] = (),
    factory: Any = None, site: Any = None,
) -> Table:  # fmt: skip
    """A dict of these keys and values, or a set of keys."""
    site = site or r.list_site()
    result = _empty(r, r.memory.get(site, {}).get("of"), site, made, factory)
    for k, key in enumerate(keys):
        _stored(r, result, key, *values[k : k + 1])()
    return result


def _empty(r: Reader, of: Any, site: Any, made: type, factory: Any = None) -> Table:
    x = allocated(r, of, int_constant(0), site, made)
    return Table(x.buf, x.of, x.roots, x.sites, made, factory)


def table_of(r: Reader, made: type, x: Value) -> Value:
    """`dict(x)`, `set(x)`."""
    if isinstance(x, Tup) and made is set:
        return new_table(r, set, x.items)
    if isinstance(x, Table) and x.made is not set and made is dict:
        return copied(r, x, dict)
    if isinstance(x, Tup) and not x.items:
        return new_table(r, made, ())
    view = gone_through(x)
    if made is not set or isinstance(x, Table):  # of these the order of a set is another one
        raise Unreadable(f"a {made.__name__} of this")
    source = as_list(r, view) if view is not None else list_of(r, x)
    result = new_table(r, set, ())
    assert isinstance(source, Lst)
    if source.of is not None:
        with each(r, length(r, source)) as k:
            _stored(r, result, place_of(r, source, k.text).load(r))()
    return result


def copied(r: Reader, t: Table, made: type | None = None) -> Table:
    """`t.copy()`, or a plain dict of the same entries."""
    result = _empty(r, t.of, r.list_site(), made or t.made, None if made else t.factory)
    if t.of is None:
        return result
    n = together(r, t)
    r.leave_if(f"more_entries({result.buf}, {n.text})", "no memory")
    with each(r, n) as k:
        put(r, result, k.text, place_of(r, t, k.text).load(r), True)
    r.line(f"{result.buf}->dims[0] = {n.text};")
    r.line(f"enter_all({result.buf});")
    return result


def default_dict(r: Reader, factory: Value) -> Value:
    """`defaultdict(factory)`."""
    f = factory.value if isinstance(factory, Known) else None
    if isinstance(f, FunctionType):
        _constant_of(r, f)
    elif f not in (int, float, list, deque, dict, set):
        raise Unreadable("a defaultdict of this")
    return new_table(r, defaultdict, (), factory=f)


def _constant_of(r: Reader, f: FunctionType) -> Num:
    """The number that a function gives in each call."""
    with r.elsewhere([]):
        made = r.grammar.called(r, Known(f), [], {})
    if f.__code__.co_freevars or not isinstance(made, Num) or made.value is None:
        raise Unreadable("a defaultdict of a function that gives no constant number")
    return python(made.value)


def counter(r: Reader, x: Value | None = None) -> Value:
    """`Counter(x)`."""
    result = new_table(r, Counter, ())
    if x is not None:
        _count(r, result, x)
    return result


def _count(r: Reader, t: Table, x: Value) -> Value:
    """`t.update(x)` of a counter."""
    if isinstance(x, Table) and x.made is not set:
        raise Unreadable("a counter of counts")
    source = in_any_order(r, x) if isinstance(x, View) else list_of(r, x)
    if source.of is not None:
        with each(r, length(r, source)) as k:
            key = place_of(r, source, k.text).load(r)
            n = table_item(r, t, [key])
            _stored(r, t, key, r.integer(f"{n.text} + 1", 1))()
    r.changed(t.roots)
    return Known(None)


def _most_common(r: Reader, t: Table, n: Value | None = None) -> Value:
    found = as_list(r, View(t, "items"))
    if t.of is None:
        return found
    counts = as_list(r, View(t, "values"))
    if is_none(n):
        return in_order_of(r, found, counts)
    if not isinstance(n, Num) or n.kind != "int":
        raise Unreadable("the most common items of this number")
    r.leave_if(f"{n.text} < 0", "a negative number of items")
    in_order_of(r, found, counts)
    r.line(f"if ({n.text} < {found.buf}->dims[0]) {found.buf}->dims[0] = {n.text};")
    return found


def maker(t: Table) -> Callable[[Any], Any]:
    """What makes Python's object of the entries."""
    if t.made is Counter:
        return _counter
    if t.factory is None:
        return t.made
    return partial(_from_constants if t.made is set else defaultdict, t.factory)


def _counter(entries: list[tuple]) -> Counter:
    made: Counter = Counter()
    dict.update(made, entries)
    return made


def _from_constants(first: frozenset, keys: list) -> set:
    """A set that is made of the constants of a display, as Python makes it, and then of others."""
    made: set = set()
    made.update(first)
    made.update(keys)
    return made


# Entries


def _stored(
    r: Reader, t: Table, key: Value, *value: Value, alone: bool = True
) -> Callable[[], None]:
    """What puts an entry into a table, or another value into the one that is there; the checks are
    made now."""
    key = _key(r, t, key)
    value = tuple(kept(r, x) for x in value)
    admit(r, t, Tup((HASH, key, *value)))
    at, h = _found(r, t, key)
    if not alone:
        r.leave_if(f"{at} < 0", "a new key of a dict, and what else is assigned to")
    _may_grow(r, t, at)

    def commit() -> None:
        with r.block(f"if ({at} < 0)"):
            _enter(r, t, at, (h, key, *value))
        for x in value:
            with r.block("else"):
                v = place_of(r, t, at).items[2]
                r.lines += [*v.hold(x), *v.put(r, x)]

    return commit


def _may_grow(r: Reader, t: Table, at: str) -> None:
    """Leave where a new entry has no room, or where a loop over the table runs, which it ends."""
    test = run_over(r, t)
    if test:
        same = " || ".join(test.values())
        r.leave_if(f"{at} < 0 && ({same})", "a dict that changes while a loop runs over it")
    r.leave_if(f"{at} < 0 && more_entries({t.buf}, 1)", "no memory")


def _enter(r: Reader, t: Table, at: str, entry: tuple[Value, ...]) -> None:
    """A new entry, for which there is room."""
    r.line(f"{at} = {t.buf}->dims[0];")
    put(r, t, at, Tup(entry), True)
    r.line(f"entered({t.buf}, {entry[0].text});")


def contains_key(r: Reader, t: Table, x: Value) -> Num:
    """`x in t`."""
    if t.of is None:
        return python(False)
    at, _ = _found(r, t, _key(r, t, x))
    return Num(f"({at} >= 0)", "bool", ("bool",), low=0, high=1)


def table_item(r: Reader, t: Table, items: list[Any]) -> Value:
    """`t[key]`."""
    key = _key(r, t, _index(t, items))
    if t.made is Counter:
        return _get(r, t, key, python(0))
    if t.factory is not None:
        return _or_new(r, t, key, r.list_site())
    if t.of is None:
        raise NoKey("an item of a dict of which nothing is known")
    at, _ = _found(r, t, key)
    r.fails_if(f"{at} < 0", "a key that a dict does not have", KeyError)
    return held(r, place_of(r, t, at).items[2])


def _index(t: Table, items: list[Any]) -> Value:
    key = letters(items[0]) or items[0]
    if t.made is set or not isinstance(key, (Num, Tup, OrNone)):
        raise Unreadable(_NO_KEY)
    return key


def assign_table_item(
    r: Reader, t: Table, items: list[Any], value: Value, alone: bool = True
) -> Callable[[], None]:
    """alone: whether nothing else is assigned to between the look for the key and the change."""
    return _stored(r, t, _index(t, items), value, alone=alone)


def _or_new(r: Reader, t: Table, key: Value, site: Any) -> Value:
    """An item of a defaultdict, which is made where there is none."""
    f = t.factory
    of: Value
    if f in (int, float):
        of = python(f())
    elif isinstance(f, FunctionType):
        of = _constant_of(r, f)
    else:
        inner = Lst if f in (list, deque) else Table
        seen = r.memory.get(site, {}).get("of")
        of = inner("", seen, frozenset((ANYWHERE,)), frozenset((site,)), f)
    admit(r, t, Tup((HASH, key, of)))
    at, h = _found(r, t, key)
    _may_grow(r, t, at)
    with r.block(f"if ({at} < 0)"), r.scope():
        x = of
        if f in (list, deque):
            x = made_list(r, (), site, f)
        elif isinstance(of, Table):
            x = new_table(r, f, (), site=site)
        _enter(r, t, at, (h, key, x))
        r.lines += r.releases(len(r.owned) - 1)
    r.changed(t.roots)
    return held(r, place_of(r, t, at).items[2])


# What is taken out


def without_key(r: Reader, t: Table, items: list[Any]) -> None:
    """`del t[key]`."""
    at = _there(r, t, _index(t, items))
    _let_go(r, t, at)


def _there(r: Reader, t: Table, key: Value) -> str:
    """The place of a key, which has one; it is to be taken out."""
    if t.of is None:
        raise NotYet("an item of a dict of which nothing is known")
    may_change(r, t)
    at, _ = _found(r, t, _key(r, t, key))
    r.fails_if(f"{at} < 0", "a key that a dict does not have", KeyError)
    return at


def _let_go(r: Reader, t: Table, at: str) -> None:
    value = place_of(r, t, at).items[2].load(r)
    r.lines += [f"release(rt, {name});" for name in buffers(value)]
    r.line(f"taken_out({t.buf}, {at});")
    r.changed(t.roots)


def _pop(r: Reader, t: Table, key: Value, default: Value | None = None) -> Value:
    if default is None:
        at = _there(r, t, key)
        made = held(r, place_of(r, t, at).items[2])
        _let_go(r, t, at)
        return made
    made = _get(r, t, key, default)
    if t.of is not None:
        may_change(r, t)
        at, _ = _found(r, t, _key(r, t, key))
        with r.block(f"if ({at} >= 0)"):
            _let_go(r, t, at)
    return made


def _pop_item(r: Reader, t: Table) -> Value:
    may_change(r, t)
    if t.of is None:
        raise NotYet("an item of a dict of which nothing is known")
    n = together(r, t)
    r.leave_if(f"{n.text} == 0", "an item of an empty dict")
    last = f"{n.text} - 1"
    _, key, value = place_of(r, t, last).items
    made = Tup((key.load(r), held(r, value)))
    _let_go(r, t, last)
    return made


# Methods


def _get(r: Reader, t: Table, key: Value, default: Value | None = None) -> Value:
    other: Value = Known(None) if default is None else kept(r, default)
    at, _ = _found(r, t, _key(r, t, key))
    if t.of is None:
        return other
    here: list = []
    with r.elsewhere(here):
        value = place_of(r, t, at).items[2].load(r)
    of = join(value, other, r)
    if isinstance(of, Conflict) or not isinstance(of, HELD):
        raise Unreadable("a dict's value, or a default of another type")
    v = Variable(r, "got", as_type(of))
    r.lines += v.declare
    with r.block(f"if ({at} >= 0)"):
        r.lines += [here, *v.put(r, value, owned=False)]
    with r.block("else"):
        r.lines += v.put(r, other, owned=False)
    return held(r, v)


def _set_default(r: Reader, t: Table, key: Value, default: Value) -> Value:
    key, default = _key(r, t, key), kept(r, default)
    admit(r, t, Tup((HASH, key, default)))
    at, h = _found(r, t, key)
    _may_grow(r, t, at)
    with r.block(f"if ({at} < 0)"):
        _enter(r, t, at, (h, key, default))
    r.changed(t.roots)
    return held(r, place_of(r, t, at).items[2])


def put_in(r: Reader, t: Table, x: Value) -> Value:
    """`t.add(x)` of a set."""
    _stored(r, t, x)()
    r.changed(t.roots)
    return Known(None)


def _clear(r: Reader, t: Table) -> Value:
    may_change(r, t)
    if t.made is set and t.factory is not None:
        raise Unreadable("a set of constants that is cleared")
    r.line(f"release_items(rt, {t.buf}); forget_entries({t.buf});")
    r.changed(t.roots)
    return Known(None)


_METHODS: dict[tuple[type | None, str], Callable] = {
    (dict, "get"): _get, (dict, "setdefault"): _set_default, (set, "add"): put_in,
    (dict, "pop"): _pop, (dict, "popitem"): _pop_item,
    (Counter, "update"): _count, (Counter, "most_common"): _most_common,
    (None, "clear"): _clear, (dict, "copy"): copied,
    (dict, "keys"): lambda r, t: View(t, "keys"),
    (dict, "values"): lambda r, t: View(t, "values"),
    (dict, "items"): lambda r, t: View(t, "items"),
}  # fmt: skip


def table_method(t: Table, name: str) -> Callable:
    made = set if t.made is set else dict
    method = next((m for k in (t.made, made, None) if (m := _METHODS.get((k, name)))), None)
    if method is None:
        raise Unreadable(f"the method {name!r} of a {t.made.__name__}")
    return method


# What goes through them


def together(r: Reader, t: Table) -> Num:
    """The number of entries, which lie one after the other from here on."""
    r.line(f"together({t.buf});")
    r.accesses.anything(t.roots)
    return length(r, t)


def gone_through(x: Value) -> View | None:
    """What a loop over a value, or a list of it, goes through, if it is a dict or a part of one."""
    if isinstance(x, Table) and x.made is not set:
        return View(x, "keys")
    return x if isinstance(x, View) else None


def item_of(r: Reader, x: View, k: str) -> Value:
    """What is at a place that there is."""
    _, key, value = place_of(r, x.table, k).items
    if x.name == "keys":
        return key.load(r)
    return held(r, value) if x.name == "values" else Tup((key.load(r), held(r, value)))


def as_list(r: Reader, x: View) -> Lst:
    """`list(x)`; of a set's keys too, in some order."""
    t, site = x.table, r.list_site()
    if t.of is None:
        return made_list(r, (), site)
    which = {"keys": 1, "values": 2}.get(x.name)
    of = Tup(t.of.items[1:]) if which is None else t.of.items[which]
    n = together(r, t)
    result = allocated(r, of, n, site)
    with each(r, n) as k:
        parts = place_of(r, t, k.text).items
        got = Tup(tuple(v.load(r) for v in parts[1:])) if which is None else parts[which].load(r)
        put(r, result, k.text, got, True)
    return result


def in_any_order(r: Reader, x: Value) -> Value:
    """A list of what is in a dict, a part of one, or a set, for what does not ask for an order; all
    else as it is."""
    if isinstance(x, Table) and x.made is set:
        return as_list(r, View(x, "keys"))
    view = gone_through(x)
    return x if view is None else as_list(r, view)


def in_order(r: Reader, x: Value) -> Value:
    """A list of what is in a dict or in a part of one, in its order; all else as it is."""
    view = gone_through(x)
    return x if view is None else as_list(r, view)
