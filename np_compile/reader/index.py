"""Indices: views by integers and slices, gathers by arrays, masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import wide
from .innermost import Check, Load, Store, View
from .linear import Linear
from .nest import (
    alloc,
    apart,
    broadcast,
    cast,
    common_extent_of_product,
    extent,
    lazy,
    load,
    loops,
    materialized,
    note_work,
    place,
    store,
    stretched,
    undisturbed,
    write,
)
from .numbers import convert, fits, limits_of, to_int
from .read import C_STORAGE, Line, Reader, int_constant
from .values import (
    C_TYPE,
    FLOATS,
    INTEGERS,
    PARTS,
    Arr,
    Known,
    Lazy,
    Num,
    Slice,
    Unreadable,
    Value,
)


def checked(r: Reader, i: Value, n: Num) -> Num:
    """An index into an axis of n: counted from the end if negative; leaves where it is outside."""
    if not isinstance(i, Num) or not i.is_int:
        raise Unreadable("an index that is no integer")
    if i.rep == "u64":
        r.leave_if(f"(i64){i.text} < 0", "an index beyond 63 bits")
    if i.rep != "i64":
        i = Num(f"(i64){i.text}", "i64", ("int",), low=i.low, high=i.high)
        i = r.integer(i.text, i.low, i.high)
    lin = i.lin
    if lin is None:
        i = r.integer(i.text, i.low, i.high)
        lin = i.lin
    assert lin is not None
    assert n.lin is not None
    proves = r.facts.proves
    negative = proves(-lin - 1)
    if negative:
        lin = lin + n.lin
        if not proves(lin):
            _leave_if(r, f"{i.text} + {n.text} < 0", lin, n)
            r.facts.add(lin)
        return r.integer(f"({i.text} + {n.text})", 0, lin=lin)
    if proves(lin):
        if not proves(n.lin - lin - 1):
            _leave_if(r, f"{i.text} >= {n.text}", lin, n)
            r.facts.add(n.lin - lin - 1)
        return i
    if proves(n.lin - lin - 1) and proves(lin + n.lin):
        return r.integer(f"({i.text} + ({i.text} < 0 ? {n.text} : 0))", 0, n.high)
    if (found := r.facts.indices.get((lin, n.lin))) is not None:
        return found
    made = r.fresh("n")
    r.line(f"i64 {made} = {i.text};")
    outside = f"({i.text} >= 0 || ({made} += {n.text}) < 0)"
    _leave_if(r, f"RARELY((u64){i.text} >= (u64){n.text}) && {outside}", lin, n)
    from_end = r.facts.name(made, 0, n.high)
    r.facts.add(n.lin - from_end - 1)
    checked = Num(made, "i64", ("int",), lin=from_end, low=0, high=n.high)
    r.facts.is_index(lin, n.lin, checked)
    return checked


def _leave_if(r: Reader, condition: str, at: Linear, n: Num) -> None:
    """Leave where an index is out of bounds."""
    text = r.fails_if(condition, "an index out of bounds", IndexError)
    if text is None:  # it is caught
        return
    jump = text[text.index("goto ") :]
    r.lines[-1] = Line(
        text, Check(at, n, f"if (__builtin_expect({{out}}, 0) && {condition}) {jump}")
    )


def _bound(r: Reader, x: Num, n: Num, low: int) -> Num:
    """A slice's bound, between 0 and n (for steps back: between -1 and n - 1)."""
    if x.rep != "i64" or x.lin is None:
        x = r.integer(f"(i64){x.text}", x.low, x.high)
    assert x.lin is not None
    assert n.lin is not None
    proves = r.facts.proves
    top = n.lin + low
    if proves(x.lin):
        if proves(top - x.lin):
            return x
        return _least(r, x.text, x.lin, f"({n.text} + {low})" if low else n.text, top)
    if proves(-x.lin - 1):
        lin = x.lin + n.lin
        text = f"({x.text} + {n.text})"
        if proves(lin - low):
            return r.integer(text, low, lin=lin)
        made = r.integer(f"({text} < {low} ? {low} : {text})", low, n.high)
        return _about(r, made, max(low, r.entry.at(lin)))
    made = r.integer(f"bound({x.text}, {n.text}, {low})", low, n.high)
    at, whole = r.entry.at(x.lin), r.entry.at(n.lin)
    return _about(r, made, min(max(at + whole * (at < 0), low), whole + low))


def _about(r: Reader, made: Num, n: int) -> Num:
    """The integer, which is n for the example, as far as is known."""
    r.entry.known[made.text] = n
    return made


def _least(r: Reader, a: str, x: Linear, b: str, y: Linear) -> Num:
    made = r.integer(f"({a} < {b} ? {a} : {b})", min(r.limits(x)[0], r.limits(y)[0]))
    _about(r, made, min(r.entry.at(x), r.entry.at(y)))
    assert made.lin is not None
    r.facts.add(x - made.lin)
    r.facts.add(y - made.lin)
    return made


def sliced(r: Reader, s: Slice, n: Num) -> tuple[Num, Any, Num]:
    """Start, step and length of a slice of an axis of n."""
    step = 1 if s.step is None else s.step.value
    if step == 0:
        raise Unreadable("a slice whose step is zero")
    if step is None:
        return _by_steps(r, s, n)
    assert n.lin is not None
    back = step < 0
    if s.start is None:
        start = r.integer(f"({n.text} - 1)", -1, lin=n.lin - 1) if back else int_constant(0)
    else:
        start = _bound(r, s.start, n, -1 if back else 0)
    if s.stop is None:
        stop = int_constant(-1) if back else n
    else:
        stop = _bound(r, s.stop, n, -1 if back else 0)
    assert start.lin is not None
    assert stop.lin is not None
    for x, bound in ((s.start, start), (s.stop, stop)):  # of an element it is as good as one
        if x is not None and {x.text, *(x.lin.terms if x.lin else ())} & r.facts.elements:
            r.facts.elements.add(bound.text)
    way = (start.lin - stop.lin) if back else (stop.lin - start.lin)
    text = f"({start.text} - {stop.text})" if back else f"({stop.text} - {start.text})"
    size = abs(step)
    if size == 1:
        if r.facts.proves(way):
            return start, step, extent(r, text, way)
        length = _about(r, extent(r, f"({text} > 0 ? {text} : 0)"), max(0, r.entry.at(way)))
        assert length.lin is not None
        r.facts.add(length.lin - way)
        r.facts.add(n.lin - length.lin)
        return start, step, length
    length = extent(r, f"({text} > 0 ? ({text} + {size - 1}) / {size} : 0)")
    _about(r, length, max(0, -(-r.entry.at(way) // size)))
    if way.constant is not None:
        length = int_constant(max(0, -(-way.constant // size)))
    else:
        assert length.lin is not None
        if r.facts.proves(way):
            r.facts.add(length.lin * size - way)
        r.facts.add(
            way + (size - 1) - length.lin * size if r.facts.proves(way) else n.lin - length.lin
        )
    return start, step, length


def _by_steps(r: Reader, s: Slice, n: Num) -> tuple[Num, Num, Num]:
    """Start, step and length of a slice whose step only data can tell; it has to be positive."""
    assert s.step is not None
    step = to_int(r, s.step)
    if step.low < 1:
        r.leave_if(f"{step.text} < 1", "a slice's step that is not positive")
    start, _, length = sliced(r, Slice.of(s.start, s.stop, None), n)
    made = extent(r, f"(({length.text} + {step.text} - 1) / {step.text})")
    assert made.lin is not None
    assert length.lin is not None
    r.facts.add(length.lin - made.lin)
    return start, step, made


def view(r: Reader, a: Arr, items: Sequence[Any]) -> Arr | Num:
    """a[items] of integers, slices, None and Ellipsis: a view, or an element."""
    has_dots = any(isinstance(x, Known) and x.value is Ellipsis for x in items)
    items = _filled(items, a.ndim)
    if has_dots and all(isinstance(x, Num) for x in items):
        raise Unreadable("an array without axes")
    base, parts = a.axes
    offsets: list[str] = []
    dims: list[Num] = []
    strides: list[Num] = []
    where: list[Any] = []
    axis = 0
    for item in items:
        if isinstance(item, Known) and item.value is None:
            dims.append(int_constant(1))
            strides.append(int_constant(0))
            continue
        n, s = a.dims[axis], a.strides[axis]
        axis += 1
        if isinstance(item, Slice):
            if item.start is item.stop is item.step is None:
                dims.append(n)
                strides.append(s)
                where.append(("slice", Linear(0), 1, n.lin))
                continue
            start, step, length = sliced(r, item, n)
            if start.text not in ("0", "0L"):
                offsets.append(f"{start.text} * {s.text}" if s.value != 1 else start.text)
            dims.append(length)
            if isinstance(step, Num):
                strides.append(r.integer(f"({s.text} * {step.text})"))
                where.append(("slice", None, 1, None))
                continue
            strides.append(s if step == 1 else _times(r, s, step))
            where.append(("slice", start.lin, step, length.lin))
        else:
            i = checked(r, item, n)
            if i.value != 0:
                offsets.append(f"{i.text} * {s.text}" if s.value != 1 else i.text)
            where.append(("index", i.lin))
    if any(w[1] is None or any(k.startswith("k_") for k in w[1].terms) for w in where):
        r.one_by_one()
    whole = _composed(parts, where)
    access = r.accesses.note(a, whole)
    if not dims and len(items) == a.ndim:
        r.one_by_one()
        x = element(r, a, f"{a.data}[{' + '.join(offsets) or '0'}]")
        if all(w[1] is not None for w in where):
            r.lines[-1] = Line(r.lines[-1], Load(x.text, a, tuple(w[1] for w in where), access))
        return x
    data = a.data
    if offsets:
        ctype = f"{C_STORAGE(a.rep)} *"
        data = r.named(f"{a.data} + ({' + '.join(offsets)})", ctype, "p")
    origin = (base, whole)
    ordered = a.ordered and not any(w[0] == "slice" and w[2] < 0 for w in where)
    flat = (len(dims) == 1 and strides[0].value == 1) or (a.flat and _is_leading(items))
    view = Arr(a.rep, a.buf, data, tuple(dims), tuple(strides), a.roots, origin, a.readonly, flat,
               ordered, a.of_view)  # fmt: skip
    if offsets:
        r.lines[-1] = Line(r.lines[-1], View(view, access))
    return view


def _is_leading(items: Sequence[Any]) -> bool:
    """Whether items take integers, then a slice by one, then all: what lies together."""
    rest = [x for x in items if not isinstance(x, Num)]
    if [isinstance(x, Num) for x in items] != [True] * (len(items) - len(rest)) + [False] * len(
        rest
    ):
        return False
    whole = [isinstance(x, Slice) and x.start is x.stop is x.step is None for x in rest]
    first = rest[0] if rest else None
    return all(whole[1:]) and (first is None or (isinstance(first, Slice) and first.step is None))


def _composed(parts: tuple, where: list) -> tuple:
    """The part of the whole array that a part of a part is."""
    made: list[Any] = []
    taken = iter(where)
    for part in parts:
        if part[0] == "index":
            made.append(part)
            continue
        _, start, step, _ = part
        item = next(taken)
        if start is None or item[1] is None:
            made.append(("slice", None, 1, None))
        elif item[0] == "index":
            made.append(("index", start + item[1] * step))
        else:
            made.append(("slice", start + item[1] * step, step * item[2], item[3]))
    return tuple(made)


def _times(r: Reader, s: Num, step: int) -> Num:
    if s.value is not None:
        return int_constant(s.value * step)
    return r.integer(f"({s.text} * {step}L)", lin=s.lin * step if s.lin is not None else None)


def element(r: Reader, a: Arr, text: str) -> Num:
    """The number in an element, read now."""
    name = r.named(text, C_TYPE[a.rep])
    if a.rep in INTEGERS:
        r.facts.elements.add(name)
        low, high = limits_of(a.rep)
        lin = r.facts.name(name, low, high) if a.rep == "i64" else None
        return Num(name, a.rep, (a.kind,), "", lin, low, high)
    return Num(name, a.rep, (a.kind,))


def _filled(items: Sequence[Any], rank: int) -> list[Any]:
    """The items, one for each axis."""
    given = [x for x in items if not (isinstance(x, Known) and x.value in (None, Ellipsis))]
    used = sum(x.ndim if isinstance(x, (Arr, Lazy)) and x.rep == "bool" else 1 for x in given)
    if used > rank:
        raise Unreadable("too many indices")
    whole = [Slice.of(None, None, None)] * (rank - used)
    dots = [k for k, x in enumerate(items) if isinstance(x, Known) and x.value is Ellipsis]
    if len(dots) > 1:
        raise Unreadable("two ellipses")
    if dots:
        return [*items[: dots[0]], *whole, *items[dots[0] + 1 :]]
    return [*items, *whole]


# Indices that are arrays


def is_advanced(items: Sequence[Any]) -> bool:
    return any(isinstance(x, (Arr, Lazy)) for x in items)


class Gather:
    """a[..., indices, ...] with arrays of integers, checked: where its elements lie."""

    def __init__(self, r: Reader, a: Arr, items: Sequence[Any]):
        expanded: list[Any] = []
        masks: list[tuple[Arr, tuple[Num, ...]]] = []  # the first index array of each
        sure: set[int] = set()  # index arrays that are known to be within bounds
        for x in items:
            if isinstance(x, (Arr, Lazy)) and x.rep == "bool":
                parts = positions(r, x)
                masks.append((parts[0], x.dims))
                sure |= set(map(id, parts))
                expanded += parts
            else:
                expanded.append(x)
        items = expanded
        items = _filled(items, a.ndim)
        if any(isinstance(x, Known) for x in items):
            raise Unreadable("None among index arrays")
        self.a = a
        for one, dims in masks:
            axis = next(k for k, x in enumerate(items) if x is one)
            for d, n in zip(dims, a.dims[axis:], strict=False):
                if not (d.lin is not None and n.lin is not None and r.facts.same(d.lin, n.lin)):
                    r.leave_if(f"{d.text} != {n.text}", "a mask of another shape")
        at = [k for k, x in enumerate(items) if isinstance(x, (Arr, Lazy, Num))]
        if at != list(range(at[0], at[-1] + 1)):
            raise Unreadable("index arrays that are not beside each other")
        listed: list[Any] = []
        for k in at:
            x = items[k]
            if isinstance(x, Num):
                listed.append(checked(r, x, a.dims[k]))
                continue
            if x.rep not in INTEGERS:
                raise Unreadable(f"an index array of {x.dtype}")
            if id(x) in sure:
                listed.append(x)
                continue
            arr = materialized(r, x)
            n = a.dims[k]
            bad = r.fresh("bad")
            r.line(f"int {bad} = 0;")
            with loops(r, arr.dims, vector=f"#pragma omp simd reduction(|:{bad})") as index:
                i = r.named(f"(i64){load(arr, index)}", "i64", "i")
                r.line(f"{bad} |= ({i} < -{n.text}) | ({i} >= {n.text});")
            r.leave_if(bad, "an index out of bounds")
            listed.append(arr)
        shape = broadcast(r, [x.dims for x in listed if isinstance(x, Arr)])
        first = at[0]
        rest = self._slices(r, items, at)
        self.dims = (*rest[0][0], *shape, *rest[1][0])
        before, width = len(rest[0][0]), len(shape)
        spread = [x if isinstance(x, Num) else stretched(lazy(x), shape) for x in listed]
        wraps = [not isinstance(x, Num) and id(x) not in sure for x in listed]
        self.reads = tuple((x, False) for x in listed if isinstance(x, Arr))

        def where(index: list[str]) -> str:
            inner = index[before : before + width]
            texts = []
            for k, x, wrap in zip(at, spread, wraps, strict=True):
                i = x.text if isinstance(x, Num) else x.at(inner)
                i = f"wrapped({i}, {a.dims[k].text})" if wrap else i
                s = a.strides[k]
                texts.append(i if s.value == 1 else f"{i} * {s.text}")
            own = [*index[:before], *index[before + width :]]
            for i, (start, step) in zip(own, [*rest[0][1], *rest[1][1]], strict=True):
                texts.append(f"({start} + {i}) * {step}" if start else f"{i} * {step}")
            return f"{a.data}[{' + '.join(texts)}]"

        self.where = where
        self.first = first

    def _slices(self, r: Reader, items: list[Any], at: list[int]) -> tuple[tuple, tuple]:
        """Extents, and starts with strides, of the slices before and behind the arrays."""
        sides: list[tuple[list, list]] = [([], []), ([], [])]
        for k, x in enumerate(items):
            if k in at:
                continue
            dims, steps = sides[k > at[0]]
            start, step, length = sliced(r, x, self.a.dims[k])
            if step != 1:
                raise Unreadable("a slice with a step beside index arrays")
            dims.append(length)
            steps.append(("" if start.value == 0 else start.text, self.a.strides[k].text))
        return sides[0], sides[1]

    def lazy(self) -> Lazy:
        reads = (*self.reads, (self.a, False))
        where, rep = self.where, self.a.rep
        return Lazy(rep, tuple(self.dims), lambda index: where(index), reads, True)


def positions(r: Reader, mask: Arr | Lazy) -> list[Arr]:
    """Where a mask is true: an index array for each of its axes."""
    m = materialized(r, mask)
    count = _count(r, m)
    made = [alloc(r, "i64", [extent(r, count)]) for _ in m.dims]
    with _true(r, m, count) as (index, at):
        for where, i in zip(made, index, strict=True):
            r.line(f"{where.data}[{at}] = {i};")
    return made


def true_places(r: Reader, mask: Arr | Lazy) -> Arr:
    """Where a mask is true: a row of indices for each, with a column for each of its axes."""
    m = materialized(r, mask)
    count = _count(r, m)
    made = alloc(r, "i64", [extent(r, count), int_constant(m.ndim)])
    with _true(r, m, count) as (index, at):
        for k, i in enumerate(index):
            write(r, made, [at, str(k)], i)
    return made


@contextmanager
def _true(r: Reader, m: Arr, count: str) -> Iterator[tuple[list[str], str]]:
    """A loop over the elements of a mask up to its last true one: gives the C of their indices and
    of the number of true ones before. The body, which stores at that place, runs for all: what it
    stores for one that is not true, the next one writes over. So there is no branch on data."""
    at = r.fresh("k")
    r.line(f"i64 {at} = 0;")
    with loops(r, m.dims, vector="", there=f"{at} < {count}") as index:
        yield index, at
        r.line(f"{at} += {load(m, index)} != 0;")


def _count(r: Reader, m: Arr) -> str:
    """The C name of the number of true elements."""
    count = r.fresh("n")
    r.line(f"i64 {count} = 0;")
    note_work(r, m.dims)
    with loops(r, m.dims, vector=f"#pragma omp simd reduction(+:{count})") as index:
        r.line(f"{count} += {load(m, index)} != 0;")
    return r.named(count, "i64", "n")


def gathered(r: Reader, a: Arr, items: Sequence[Any]) -> Arr:
    """a[items], with arrays among them: a new array."""
    r.accesses.note(a)
    if len(items) == 1 and isinstance(items[0], (Arr, Lazy)) and items[0].rep == "bool":
        return _masked(r, a, items[0])
    return materialized(r, Gather(r, a, items).lazy())


def _masked(r: Reader, a: Arr, mask: Arr | Lazy) -> Arr:
    """a[mask]: the elements, or rows, where it is true."""
    m = _mask(r, a, mask)
    count = _count(r, m)
    made = alloc(r, a.rep, [extent(r, count), *a.dims[m.ndim :]])
    if m.ndim == a.ndim:
        with _true(r, m, count) as (index, at):
            write(r, made, [at], load(a, index))
        return made
    at = r.fresh("k")
    r.line(f"i64 {at} = 0;")
    with loops(r, m.dims, vector="") as index, r.block(f"if ({load(m, index)})"):
        with loops(r, a.dims[m.ndim :]) as rest:
            write(r, made, [at, *rest], load(a, [*index, *rest]))
        r.line(f"{at}++;")
    return made


def _mask(r: Reader, a: Arr, mask: Arr | Lazy) -> Arr:
    if mask.ndim > a.ndim:
        raise Unreadable("a mask of more axes than the array")
    for d, n in zip(mask.dims, a.dims, strict=False):
        common_extent_of_product(r, d, n)
    return materialized(r, mask)


# Stores


def stored(value: Lazy | Num, r: Reader, rep: str) -> Lazy | Num:
    """A value as elements of an array, as NumPy stores it; numbers leave where they do not fit."""
    if isinstance(value, Lazy):
        if value.rep in PARTS and rep not in PARTS:
            raise Unreadable("complex numbers into an array of real ones")
        return cast(value, rep)
    return Num(store_text(r, value, rep), rep, value.kinds)


def store_text(r: Reader, x: Num, rep: str) -> str:
    """The C of a number as an element."""
    if wide.is_wide(x):
        if rep not in ("u64", "f64"):
            raise Unreadable("an integer of 64 bits without a sign, in such an array")
        return wide.unsigned(r, x) if rep == "u64" else wide.as_float(r, x).text
    if x.rep == rep:
        return x.text
    if x.rep in PARTS and rep not in PARTS:
        raise Unreadable("a complex number into an array of real ones")
    if rep in INTEGERS:
        if x.rep in FLOATS:
            low, high = limits_of(rep)
            if rep in ("i64", "u64"):
                low, high = -(1 << 62), 1 << 62
            if rep == "u64":
                low = 0
            inside = f"({x.text} > {low - 1}.0 && {x.text} < {high + 1}.0)"
            r.leave_if(f"!{inside}", "a float that the integers cannot hold")
            return f"({C_TYPE[rep]}){x.text}"
        elif x.rep in INTEGERS:
            fits(r, x, rep)
    if rep == "bool":
        return f"({x.text} != 0)"
    return convert(r, x, rep).text


def assign(r: Reader, a: Arr, items: Sequence[Any], value: Arr | Lazy | Num):
    """a[items] = value. What is given back does it, after all checks."""
    if a.readonly:
        raise Unreadable("a read-only array is written to")
    given: Lazy | Num = value if isinstance(value, Num) else lazy(value)
    given = stored(given, r, a.rep)
    if is_advanced(items):
        return _scatter(r, a, items, given)
    if not any(
        isinstance(x, Slice) or (isinstance(x, Known) and x.value in (None, Ellipsis))
        for x in items
    ) and len(items) == a.ndim:  # fmt: skip
        return _assign_element(r, a, items, given)
    given_items = [x for x in items if not (isinstance(x, Known) and x.value is Ellipsis)]
    if len(given_items) == a.ndim and all(isinstance(x, Num) for x in given_items):
        return _assign_element(r, a, given_items, given)
    target = view(r, a, items)
    assert isinstance(target, Arr)
    return fill(r, target, given)


def fill(r: Reader, target: Arr, given: Lazy | Num):
    """target[...] = given, already of its representation."""
    if isinstance(given, Num):
        text = given.text
        filled = Lazy(target.rep, target.dims, lambda index: text)
        return lambda: store(r, target, filled)
    dims = given.dims
    if len(dims) > target.ndim:
        extra = dims[: len(dims) - target.ndim]
        if any(d.value != 1 for d in extra):
            raise Unreadable("shapes do not fit")
        raise Unreadable("leading axes of one element")
    for d, n in zip(reversed(dims), reversed(target.dims), strict=False):
        if d.value != 1:
            common_extent_of_product(r, d, n)
    spread = stretched(given, target.dims)
    return lambda: store(r, target, spread)


def _assign_element(r: Reader, a: Arr, items: Sequence[Any], given: Lazy | Num):
    r.one_by_one()
    index = [checked(r, i, n) for i, n in zip(items, a.dims, strict=True)]
    at = _composed(a.axes[1], [("index", i.lin) for i in index])
    access = r.accesses.note(a, at, write=True)
    where = place(a, [i.text for i in index])
    if isinstance(given, Lazy):
        if given.ndim:
            raise Unreadable("an array into an element")
        text = given.at([])
    else:
        text = given.text
    held = r.named(text, C_TYPE[a.rep])
    line = f"{where} = {held};"
    if any(i.lin is None for i in index):
        return lambda: r.line(line)
    what = Store(held, a, tuple(i.lin for i in index if i.lin is not None), access)
    return lambda: r.lines.append(Line(line, what))


def _scatter(r: Reader, a: Arr, items: Sequence[Any], given: Lazy | Num):
    r.accesses.note(a, write=True)
    if len(items) == 1 and items[0].rep == "bool":
        return _assign_masked(r, a, items[0], given)
    items = [undisturbed(r, x, a) if isinstance(x, Arr) else x for x in items]
    g = Gather(r, a, items)
    if isinstance(given, Lazy):
        made = materialized(r, given)
        if made.ndim > len(g.dims):
            raise Unreadable("shapes do not fit")
        for d, n in zip(reversed(made.dims), reversed(g.dims), strict=False):
            if d.value != 1:
                common_extent_of_product(r, d, n)
        spread = stretched(lazy(made), g.dims)

        def commit() -> None:
            with loops(r, g.dims, vector="") as index:
                r.line(f"{g.where(index)} = {spread.at(index)};")
    else:
        text = given.text

        def commit() -> None:
            with loops(r, g.dims, vector="") as index:
                r.line(f"{g.where(index)} = {text};")

    return commit


def _assign_masked(r: Reader, a: Arr, mask: Arr | Lazy, given: Lazy | Num):
    m = _mask(r, a, mask)
    rest = a.dims[m.ndim :]
    if rest:  # NumPy takes the rows' indices first
        m = undisturbed(r, m, a)
    else:  # which elements see what was written before hangs on how NumPy goes through them
        apart(r, a, m, "a mask that shares memory with what it is of")
    if isinstance(given, Num):
        text = given.text

        def commit() -> None:
            with (
                loops(r, m.dims, vector="") as index,
                r.block(f"if ({load(m, index)})"),
                loops(r, rest) as more,
            ):
                write(r, a, [*index, *more], text)

        return commit
    made = materialized(r, given)
    if made.ndim > len(rest) + 1:
        raise Unreadable("shapes do not fit")
    count = _count(r, m)
    for d, n in zip(reversed(made.dims), reversed(rest), strict=False):
        if d.value != 1:
            common_extent_of_product(r, d, n)
    n = made.dims[0] if made.ndim > len(rest) else int_constant(1)
    if n.value != 1:
        r.leave_if(f"{count} != {n.text} && {n.text} != 1", "a mask of another number of elements")
    rows = stretched(lazy(made), [extent(r, count), *rest])

    def commit_rows() -> None:
        at = r.fresh("k")
        where = at if n.value is not None else f"({n.text} == 1 ? 0 : {at})"
        r.line(f"i64 {at} = 0;")
        with loops(r, m.dims, vector="") as index, r.block(f"if ({load(m, index)})"):
            with loops(r, rest) as more:
                write(r, a, [*index, *more], rows.at([where, *more]))
            r.line(f"{at}++;")

    return commit_rows
