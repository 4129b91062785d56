"""Lists and deques.

The items of a list are of one type. Numbers of one kind lie without gaps, as in an array; of other
items (tuples, arrays, lists, numbers of one kind or another) each has words of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .index import checked, element, sliced
from .nest import CODES, contiguous, extent, kept, place
from .numbers import as_union, to_int, truth
from .ranges import range_length, value_of_range
from .read import C_STORAGE, Again, Reader, int_constant
from .unions import binary
from .values import (
    ANYWHERE,
    FIXED,
    FLOATS,
    SIZES,
    TEXT,
    Aggregate,
    Arr,
    Conflict,
    Items,
    Known,
    Lst,
    Made,
    NotYet,
    Num,
    Obj,
    OrNone,
    Range,
    Rec,
    Slice,
    Table,
    Tup,
    Unreadable,
    Value,
    letters,
    python,
    shown,
)
from .variables import Variable, item_type, join, learned, made_anew, same_type, shared

_WORDS = {"f64": "f", "f32": "f", "Buf *": "p", "void *": "p", "c128": ""}
_MOST = 60  # words of an item


# Items in memory


def words_of(r: Reader, of: Value) -> list[str]:
    """The C types of an item's words."""
    found: list[str] = []

    def note(ctype: str) -> str:
        found.append(ctype)
        return "0"

    Variable(r, "", of, note)
    if "c64" in found or len(found) + found.count("c128") > _MOST:
        raise Unreadable("a list of such items")
    return [word for ctype in found for word in ([ctype, ""] if ctype == "c128" else [ctype])]


def size_of_item(r: Reader, of: Value) -> int:
    if isinstance(of, Num) and of.kind is not None:
        return SIZES[of.rep]
    return 8 * max(len(words_of(r, of)), 1)


def place_of(r: Reader, a: Items, k: str) -> Variable:
    """The item at an index, as a variable."""
    if a.kind is not None:
        return Variable(r, "", a.of, lambda ctype: f"(({C_STORAGE(a.of.rep)} *){a.buf}->data)[{k}]")
    words = iter(range(_MOST))
    size = size_of_item(r, a.of)

    def word(ctype: str) -> str:
        at = f"((Word *)((char *){a.buf}->data + ({k}) * {size}))[{next(words)}]"
        if ctype == "c128":
            next(words)
            return f"(*(c128 *)&{at})"
        return f"{at}.{_WORDS.get(ctype, 'i')}"

    return Variable(r, "", a.of, word)


def item_at(r: Reader, a: Lst, k: Num) -> Value:
    """The item at an index that the list has."""
    return held(r, place_of(r, a, k.text))


def held(r: Reader, place: Variable) -> Value:
    """The value at a place, of which the block that is being written holds what it refers to."""
    x = place.load(r)
    for name in buffers(x):
        r.line(f"retain(rt, {name});")
        r.owned[-1].append(name)
    return x


def buffers(x: Value) -> list[str]:
    if isinstance(x, (Arr, Items)):
        return [x.buf]
    if isinstance(x, OrNone):
        return buffers(x.value)
    return [name for y in x.items for name in buffers(y)] if isinstance(x, Aggregate) else []


def taken(r: Reader, a: Lst, k: str) -> Value:
    """The item at an index, which the list holds no longer."""
    x = place_of(r, a, k).load(r)
    r.owned[-1] += buffers(x)
    return x


def put(r: Reader, a: Items, k: str, x: Value, is_new: bool) -> None:
    place = place_of(r, a, k)
    r.lines += [*place.hold(x), *place.put(r, x, owned=not is_new)]


# Lists that are made


def made_list(r: Reader, values: Sequence[Value], site: Any, made: type = list) -> Lst:
    """A list that may grow, of these items. site: where it is made."""
    of = None
    values = [letters(x) or x for x in values]
    for x in values:
        shared(r, x)
        of = item_type(x) if of is None else join(of, item_type(x), r)
    result = allocated(r, of, int_constant(len(values)), site, made)
    for k, x in enumerate(values):
        put(r, result, str(k), x, True)
    return result


def allocated(r: Reader, of: Value, n: Num, site: Any = None, made: type = list) -> Lst:
    """A list of n items, of a type that holds such ones, and all that it was seen to be given."""
    seen = r.memory.get(site, {}).get("of")
    of = seen if of is None else of if seen is None else join(seen, of, r)
    if isinstance(of, Conflict):
        raise Unreadable(of.why)
    of = item_type(of) if of is not None else None
    code, pointers, size = -1, 0, 8
    if of is not None:
        size = size_of_item(r, of)
        if isinstance(of, Num) and of.kind is not None:
            code = CODES.index(of.rep)
        else:
            words = words_of(r, of)
            pointers = sum(1 << k for k, ctype in enumerate(words) if ctype == "Buf *")
    call = f"new_list(rt, {code}, {size}, {n.text}, {pointers})"
    buf = r.named(call, "Buf *", "b")
    r.leave_if(f"{buf} == 0", "no memory, or a negative size")
    r.made_here(buf)
    sites = frozenset(() if site is None else (site,))
    return Lst(buf, of, frozenset((buf,)), sites, made)


def growing(r: Reader, x: Tup) -> None:
    """Take a list of which the items were thought to stay for one that changes."""
    if x.site is None:
        if x.path is not None:
            r.entry.growing(r, x.path)
        raise Unreadable("a list that changes")
    r.memory[x.site] = {"of": None}
    raise Again


def admit(r: Reader, a: Items, x: Value) -> Value:
    """Make sure that a list holds items like this one: if not, it is made anew as one that does.
    The item as the list holds it."""
    x = letters(x) or x
    shared(r, x)
    of = item_type(x)
    if isinstance(of, Conflict):
        raise Unreadable(of.why)
    if a.of is not None:
        if same_type(a.of, of, r):
            return as_item(r, x, a.of)
        of = join(a.of, of, r)
        if isinstance(of, Conflict):
            raise Unreadable(of.why)
        of = item_type(of)
    if not a.sites:
        raise Unreadable(f"an item of another type in a {a.made.__name__}")
    if isinstance(a, Rec):
        made_anew(r, a, of)
    learned(r, a, of)
    return as_item(r, x, of)


def as_item(r: Reader, x: Value, of: Value) -> Value:
    """A value with its numbers as they lie in a list; where they cannot, it leaves here."""
    if isinstance(of, Num):
        x = letters(x) or x
    if isinstance(x, Num) and isinstance(of, Num):
        return x if x.kinds == of.kinds else as_union(r, x, of)
    if isinstance(x, Tup) and isinstance(of, Tup):
        pairs = zip(x.items, of.items, strict=True)
        return replace(x, items=tuple([as_item(r, y, part) for y, part in pairs]))
    return x


def length(r: Reader, x: Items) -> Num:
    if isinstance(x, Rec):
        return python(len(x.of.items))
    if x.of is None:
        return python(0)
    gone = f" - {x.buf}->dims[7]" if isinstance(x, Table) else ""
    n = extent(r, f"{x.buf}->dims[0]{gone}")
    if x.buf in r.entry.lengths:
        r.entry.known[n.text] = r.entry.lengths[x.buf]
    return n


@contextmanager
def each(r: Reader, n: Num) -> Iterator[Num]:
    """A loop over the indices below n."""
    name = r.fresh("k")
    with r.block(f"for (i64 {name} = 0; {name} < {n.text}; {name}++)"), r.scope():
        lin = r.facts.name(name, 0, max(n.high - 1, 0))
        yield Num(name, "i64", ("int",), "", lin, 0, max(n.high - 1, 0))
        r.lines += r.releases(len(r.owned) - 1)


def list_of(r: Reader, x: Value, made: type = list) -> Value:
    """`list(x)`, or `deque(x)`."""
    site = r.list_site()
    if isinstance(x, Tup):
        if x.path is not None and any(isinstance(y, Obj) for y in x.items):
            growing(r, x)  # objects that a name is to hold
        return made_list(r, x.items, site, made)
    if isinstance(x, Lst):
        n = length(r, x)
        result = allocated(r, x.of, n, site, made)
        if x.of is not None:
            _copy_items(r, x, result, n, lambda k: k)
        return result
    if isinstance(x, Range):
        n = range_length(r, x)
        at = value_of_range(x)
    elif isinstance(x, Arr) and x.ndim == 1:
        n = x.dims[0]
        at = lambda r, k: element(r, x, place(x, [k.text]))  # noqa: E731
    else:
        raise Unreadable(f"a list of {shown(x)}")
    of = Num("", x.rep, (x.kind,)) if isinstance(x, Arr) else Num("", "i64", ("int",))
    result = allocated(r, of, n, site, made)
    with each(r, n) as k:
        put(r, result, k.text, at(r, k), True)
    return result


def _copy_items(
    r: Reader, x: Lst, to: Lst, n: Num, at: Callable[[str], str], first: str = "0"
) -> None:
    """Copy items, from at(k) of a list to new places of another, from `first` on."""
    with each(r, n) as k:
        source = place_of(r, x, at(k.text)).load(r)
        put(r, to, f"{first} + {k.text}", source, True)


def repeated(r: Reader, a: Value, n: Num) -> Value:
    """`a * n` of a list."""
    if isinstance(a, Tup):
        a = made_list(r, a.items, r.list_site())
    assert isinstance(a, Lst)
    if a.of is None:
        return made_list(r, (), r.list_site())
    n = to_int(r, n)
    size = length(r, a)
    times = r.integer(f"({n.text} > 0 ? {n.text} : 0)", 0)
    far = r.fresh("far")
    total = r.fresh("n")
    r.line(f"i64 {total}; int {far} = __builtin_mul_overflow({size.text}, {times.text}, &{total});")
    r.leave_if(f"{far}", "a list beyond memory")
    made = allocated(r, a.of, extent(r, total), r.list_site())
    with each(r, times) as k:
        _copy_items(r, a, made, size, lambda j: j, f"{k.text} * {size.text}")
    return made


def joined(r: Reader, a: Lst, b: Lst) -> Lst:
    """`a + b` of lists."""
    if a.of is None or b.of is None:
        return list_of(r, b if a.of is None else a)
    n, m = length(r, a), length(r, b)
    made = allocated(r, join(a.of, b.of, r), binary(r, "Add", n, m), r.list_site())
    _copy_items(r, a, made, n, lambda k: k)
    _copy_items(r, b, made, m, lambda k: k, n.text)
    return made


# Items


def list_item(r: Reader, a: Lst, items: list[Any]) -> Value:
    r.one_by_one()
    if len(items) != 1:
        raise Unreadable("an index of a list")
    if isinstance(items[0], Slice):
        if a.made is deque:
            raise Unreadable("a slice of a deque")
        if a.of is None:
            return made_list(r, (), None)
        start, step, n = sliced(r, items[0], length(r, a))
        steps = step.text if isinstance(step, Num) else str(step)
        made = allocated(r, a.of, n, r.list_site(), a.made)
        _copy_items(r, a, made, n, lambda k: f"{start.text} + {k} * ({steps})")
        return made
    if not isinstance(items[0], Num):
        raise Unreadable("an index of a list")
    if a.of is None:
        raise NotYet("an item of a list of which nothing is known")
    return item_at(r, a, checked(r, items[0], length(r, a)))


def assign_list_item(r: Reader, a: Lst, items: list[Any], value: Value) -> Callable[[], None]:
    if len(items) != 1 or not isinstance(items[0], Num) or a.made in FIXED:
        raise Unreadable("a slice of a list is assigned to")
    value = admit(r, a, kept(r, value))
    at = checked(r, items[0], length(r, a))
    return lambda: put(r, a, at.text, value, False)


def contains(r: Reader, a: Lst, x: Value) -> Num:
    """`x in a`."""
    if a.of is None:
        return python(False)
    return _found(r, a, kept(r, x))[1]


def _found(r: Reader, a: Lst, x: Value) -> tuple[str, Num]:
    """The first index of an item that is equal, and whether there is one."""
    no_nan(r, x)
    at, found = r.fresh("at"), r.fresh("c")
    n = length(r, a)
    r.line(f"i64 {at} = 0; u8 {found} = 0;")
    with r.block(f"for (; {at} < {n.text}; {at}++)"), r.scope():
        test = equal_items(r, place_of(r, a, at).load(r), x)
        r.line(f"if ({test}) {{ {found} = 1; break; }}")
    return at, Num(found, "bool", ("bool",), low=0, high=1)


def equal_items(r: Reader, a: Value, b: Value) -> str:
    """C for whether two items are equal, none of which is NaN: it may be the same object."""
    a, b = (_spread(r, x) for x in (a, b))
    if isinstance(a, Tup) and isinstance(b, Tup) and len(a.items) == len(b.items):
        return (
            " && ".join(equal_items(r, x, y) for x, y in zip(a.items, b.items, strict=True)) or "1"
        )
    if isinstance(a, Made) or isinstance(b, Made):
        return _of_objects(r, "Eq", a, b)
    a, b = letters(a) or a, letters(b) or b
    if not isinstance(a, Num) or not isinstance(b, Num):
        raise Unreadable("a comparison of these items of a list")
    return f"({truth(binary(r, 'Eq', a, b)).text})"


def less(r: Reader, a: Value, b: Value) -> str:
    """C for whether an item is less than another one."""
    a, b = (_spread(r, x) for x in (a, b))
    if isinstance(a, Tup) and isinstance(b, Tup) and len(a.items) == len(b.items):
        pairs = list(zip(a.items, b.items, strict=True))
        text = "0"
        for x, y in reversed(pairs):
            text = f"({less(r, x, y)} || ({equal_items(r, x, y)} && {text}))"
        return text
    if isinstance(a, Made) or isinstance(b, Made):
        return _of_objects(r, "Lt", a, b)
    a, b = letters(a) or a, letters(b) or b
    if not isinstance(a, Num) or not isinstance(b, Num):
        raise Unreadable("a comparison of these items of a list")
    return f"({truth(binary(r, 'Lt', a, b)).text})"


def ordered(r: Reader, op: str, a: Tup, b: Tup) -> Num:
    """`a < b` of tuples, or another of the four."""
    if a.made is not b.made or len(a.items) != len(b.items):
        raise Unreadable("an order of tuples of different types")
    no_nan(r, a)
    no_nan(r, b)
    if op in ("Gt", "LtE"):
        a, b = b, a
    text = less(r, a, b)
    return Num(text if op in ("Lt", "Gt") else f"(!{text})", "bool", ("bool",), low=0, high=1)


def _of_objects(r: Reader, op: str, a: Value, b: Value) -> str:
    """C for a comparison of objects, by the method of their class; it cannot leave."""
    found = r.fresh("c")
    r.line(f"u8 {found};")
    with r.block(""), r.scope(), r.staying():
        made = r.grammar.operate(r, op, a, b)
        if not isinstance(made, Num):
            raise Unreadable("a comparison of objects that gives no truth")
        r.line(f"{found} = {truth(made).text};")
        r.lines += r.releases(len(r.owned) - 1)
    return found


def _spread(r: Reader, x: Value) -> Value:
    """A record as a tuple, of what nothing changes meanwhile."""
    return place_of(r, x, "0").load(r) if isinstance(x, Rec) else x


def no_nan(r: Reader, x: Value) -> None:
    x = _spread(r, x)
    if isinstance(x, Tup):
        for y in x.items:
            no_nan(r, y)
    elif isinstance(x, Num) and x.rep in FLOATS and x.value is None:
        r.leave_if(f"{x.text} != {x.text}", "NaN in a list in which is searched")


def without_item(r: Reader, a: Lst, items: list[Any]) -> None:
    """`del a[k]`."""
    if len(items) != 1 or not isinstance(items[0], Num) or a.made in FIXED:
        raise Unreadable("a slice of a list is deleted")
    _let_go(r, a, checked(r, items[0], length(r, a)).text)


def _let_go(r: Reader, a: Lst, k: str) -> None:
    may_change(r, a)
    r.lines += [f"release(rt, {name});" for name in buffers(place_of(r, a, k).load(r))]
    r.line(f"closed({a.buf}, {k});")
    r.changed(a.roots)


# Methods


def list_method(r: Reader, a: Lst, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    method = _METHODS.get((a.made, name)) or _METHODS.get((None, name))
    if method is None or (a.made is tuple and name not in ("index", "count")):
        raise Unreadable(f"the method {name!r} of a {a.made.__name__}")
    if a.maxlen is not None and name in ("appendleft", "insert", "copy"):
        raise Unreadable(f"the method {name!r} of a deque with a maxlen")
    if kwargs:
        raise Unreadable(f"keywords of the method {name!r} of a list")
    return method(r, a, *args, **kwargs)


def may_change(r: Reader, a: Items) -> None:
    """Fail, or leave, if the number of a list's items may not change here."""
    test = run_over(r, a)
    if a.buf in test:
        raise Unreadable(f"a {a.made.__name__} that changes while a loop runs over it")
    if test:
        r.leave_if(" || ".join(test.values()), "a list that changes while a loop runs over it")


def run_over(r: Reader, a: Items) -> dict[str, str]:
    """The containers that loops run over and that may be this one: C for whether they are."""
    found: dict[str, str] = {}
    for depth, x in r.steady:
        if x.made is a.made and (x.roots & a.roots or ANYWHERE in x.roots | a.roots):
            if depth != len(r.frames):  # Python would go on in the function before the loop
                raise Unreadable(f"a {a.made.__name__} that changes while a loop runs over it")
            found[x.buf] = f"{x.buf} == {a.buf}"
    if r.base:
        found["callers'"] = f"{a.buf}->steady"
    return found


def _inserted(r: Reader, a: Lst, at: str, x: Value) -> Value:
    x = admit(r, a, kept(r, x))
    may_change(r, a)
    r.leave_if(f"opened({a.buf}, {at})", "no memory")
    put(r, a, at, x, True)
    r.changed(a.roots)
    return Known(None)


def append(r: Reader, a: Lst, x: Value) -> Value:
    x = admit(r, a, kept(r, x))
    may_change(r, a)
    r.leave_if(f"grow({a.buf})", "no memory")
    if a.maxlen is not None and a.of is not None:
        with r.block(f"if ({a.buf}->dims[0] >= {a.maxlen})"), r.scope():
            _let_go(r, a, "0")
    _put_last(r, a, x)
    return Known(None)


def _put_last(r: Reader, a: Lst, x: Value) -> None:
    """Append what is of the type of the items, where there is room for it."""
    put(r, a, f"{a.buf}->dims[0]", x, True)
    r.line(f"{a.buf}->dims[0]++;")
    r.changed(a.roots)


def _insert(r: Reader, a: Lst, k: Value, x: Value) -> Value:
    if not isinstance(k, Num) or not k.is_int:
        raise Unreadable("an index of a list")
    k, n = to_int(r, k), length(r, a)
    low = r.integer(f"({k.text} < 0 ? ({k.text} + {n.text} < 0 ? 0 : {k.text} + {n.text}) : "
                    f"{k.text} > {n.text} ? {n.text} : {k.text})", 0)  # fmt: skip
    return _inserted(r, a, low.text, x)


def _pop(r: Reader, a: Lst, k: Value | None = None) -> Value:
    may_change(r, a)
    if a.of is None:
        raise NotYet("an item of a list of which nothing is known")
    n = length(r, a)
    r.fails_if(f"{n.text} == 0", "pop from an empty list", IndexError)
    if k is None:
        made = taken(r, a, f"{n.text} - 1")
        r.line(f"{a.buf}->dims[0]--;")
    else:
        if not isinstance(k, Num):
            raise Unreadable("an index of a list")
        at = checked(r, k, n)
        made = taken(r, a, at.text)
        r.line(f"closed({a.buf}, {at.text});")
    r.changed(a.roots)
    return made


def _extend(r: Reader, a: Lst, values: Value) -> Value:
    if a.maxlen is not None:
        raise Unreadable("a deque with a maxlen that is extended")
    if isinstance(values, Tup):
        items = [admit(r, a, kept(r, x)) for x in values.items]
        may_change(r, a)
        r.leave_if(f"room_for({a.buf}, {len(items)})", "no memory")
        for x in items:
            _put_last(r, a, x)
        return Known(None)
    if not isinstance(values, Lst):
        values = list_of(r, values)
    assert isinstance(values, Lst)
    if values.of is None:
        return Known(None)
    may_change(r, a)
    if a.of != values.of:
        with r.elsewhere([]):
            admit(r, a, place_of(r, values, "0").load(r))
    if a.of != values.of:
        raise Unreadable("a list that is extended by items of another type")
    n = length(r, values)
    r.leave_if(f"room_for({a.buf}, {n.text})", "no memory")
    _copy_items(r, values, a, n, lambda k: k, f"{a.buf}->dims[0]")
    r.line(f"{a.buf}->dims[0] += {n.text};")
    r.changed(a.roots)
    return Known(None)


def _clear(r: Reader, a: Lst) -> Value:
    may_change(r, a)
    r.line(f"release_items(rt, {a.buf}); {a.buf}->dims[0] = 0;")
    r.changed(a.roots)
    return Known(None)


def _reverse(r: Reader, a: Lst) -> Value:
    r.line(f"reverse({a.buf});")
    r.changed(a.roots)
    return Known(None)


def _index(r: Reader, a: Lst, x: Value) -> Value:
    if a.of is None:
        raise NotYet("an item of a list of which nothing is known")
    at, found = _found(r, a, kept(r, x))
    r.fails_if(f"!{found.text}", "an item that a list does not have", ValueError)
    return r.integer(at, 0)


def _remove(r: Reader, a: Lst, x: Value) -> Value:
    may_change(r, a)
    _let_go(r, a, _index(r, a, x).text)
    return Known(None)


def _count(r: Reader, a: Lst, x: Value) -> Value:
    if a.of is None:
        return python(0)
    x = kept(r, x)
    no_nan(r, x)
    name = r.fresh("n")
    r.line(f"i64 {name} = 0;")
    with each(r, length(r, a)) as k:
        r.line(f"{name} += {equal_items(r, place_of(r, a, k.text).load(r), x)};")
    return r.integer(name, 0)


_METHODS: dict[tuple[type | None, str], Callable] = {
    (None, "append"): append, (None, "pop"): _pop, (None, "extend"): _extend,
    (None, "clear"): _clear, (None, "reverse"): _reverse, (None, "index"): _index,
    (None, "count"): _count, (None, "remove"): _remove, (None, "insert"): _insert,
    (None, "copy"): lambda r, a: list_of(r, a, a.made),
    (deque, "appendleft"): lambda r, a, x: _inserted(r, a, "0", x),
    (deque, "popleft"): lambda r, a: _pop(r, a, python(0)),
}  # fmt: skip


# As arrays


def array_in(r: Reader, x: Lst, k: str) -> Arr:
    """The item at an index, of a list of arrays or of lists, as an array that the list holds."""
    item = place_of(r, x, k).load(r)
    return item if isinstance(item, Arr) else as_vector(r, item)


def as_vector(r: Reader, x: Lst) -> Arr:
    """The numbers of a list, as an array that lies where they are: of tuples with two axes."""
    if x.of is None:
        raise Unreadable("a list of which nothing is known")
    if x.kind in TEXT:
        raise Unreadable("a list of characters as an array")
    n = length(r, x)
    is_flat = True
    if x.kind is not None:
        rep, dims = x.of.rep, [n]
    elif isinstance(x.of, Num) and set(x.of.kinds) in ({"float", "float64"}, {"int", "int64"}):
        rep, dims, is_flat = x.of.rep, [n], False  # each with its kind behind it
    else:
        items = x.of.items if isinstance(x.of, Tup) else (None,)
        rep = items[0].rep if isinstance(items[0], Num) else ""
        if not all(isinstance(y, Num) and y.kinds == items[0].kinds for y in items):
            raise Unreadable("an array of such items of a list")
        words = words_of(r, x.of)
        if rep not in ("i64", "f64") or items[0].kind is None:
            raise Unreadable("an array of such items of a list")
        r.leave_if(f"{n.text} == 0", "an array of no items")
        dims = [n, int_constant(len(words))]
    data = r.named(f"({C_STORAGE(rep)} *){x.buf}->data", f"{C_STORAGE(rep)} *", "p")
    strides = contiguous(r, dims) if is_flat else (int_constant(2),)
    return Arr(rep, x.buf, data, tuple(dims), strides, x.roots, flat=is_flat, ordered=True)
