"""Ranges: how many values they have, and which."""

from __future__ import annotations

from collections.abc import Callable

from .linear import SAFE, Linear
from .read import Reader
from .values import Num, Range, Unreadable, Value, python


def range_length(r: Reader, x: Range) -> Num:
    """The number of values of a range."""
    step = x.step.value
    if step == 0:
        raise Unreadable("a range whose step is zero")
    if step is None:
        if x.step.low < 1:
            r.leave_if(f"{x.step.text} < 1", "a range's step that is not positive")
        length_ = range_length(r, Range(x.start, x.stop, python(1)))
        positive = f"({length_.text} > 0 ? ({length_.text} - 1) / {x.step.text} + 1 : 0)"
        return r.integer(positive, 0, max(length_.high, 0))
    a, b = (x.start, x.stop) if step > 0 else (x.stop, x.start)
    assert a.lin is not None
    assert b.lin is not None
    way = b.lin - a.lin
    if not r.is_safe(way):
        ends = " | ".join(f"((u64){x.text} + (1UL << 62))" for x in (a, b))  # no bit of signs
        r.leave_if(f"(i64)({ends}) < 0", "a range beyond 62 bits")
        for lin in (a.lin, b.lin):
            r.facts.add(lin + SAFE)
            r.facts.add(Linear(SAFE - 1) - lin)
    text = f"({b.text} - {a.text})"
    size = abs(step)
    if size == 1 and r.facts.proves(way):
        return r.integer(text, 0, lin=way)
    if way.constant is not None:
        return python(max(0, -(-way.constant // size)))
    made = r.integer(f"({text} > 0 ? ({text} + {size - 1}) / {size} : 0)", 0)
    r.entry.known[made.text] = max(0, -(-r.entry.at(way) // size))
    return made


def least_way(x: Range, n: Num) -> tuple[Linear, ...]:
    """What is not negative of a range that has values; n: how many."""
    if x.step.value is None or x.start.lin is None or x.stop.lin is None or n.lin is None:
        return ()
    way = (x.stop.lin - x.start.lin) * (1 if x.step.value > 0 else -1)
    size = abs(x.step.value)
    return (way + (size - 1) - n.lin * size,)


def value_of_range(value: Range) -> Callable[[Reader, Num], Value]:
    """What gives the k-th value of a range."""
    start, step = value.start, value.step

    def at(r: Reader, k: Num) -> Value:
        assert k.lin is not None
        assert start.lin is not None
        if step.value == 1 and start.value == 0:
            return k
        if step.value is None:
            made = r.integer(f"({start.text} + {k.text} * {step.text})", start.low)
            assert made.lin is not None
            last = value.stop
            if last.lin is not None:
                r.facts.add(made.lin - start.lin)
                r.facts.add(last.lin - made.lin - 1)
            return made
        times = f" * {step.text}" if step.value != 1 else ""
        lin = start.lin + k.lin * step.value
        return r.integer(f"({start.text} + {k.text}{times})", lin=lin)

    return at
