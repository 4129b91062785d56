"""Python's own random numbers: objects of `random.Random`, and the functions of that module.

C draws from the state that such an object has in memory, where it is laid out as is thought: the
place, then the 624 words of a Mersenne twister. All else (`choice`, `shuffle`, `uniform`, ...) is
read from the source of `random.py`, which asks for no more than that.
"""

from __future__ import annotations

import ctypes
import functools
import random
import threading
import weakref
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from .numbers import convert, to_int
from .read import Reader
from .values import Num, Rng, Unreadable, Value, python

# An index of a race with a thread of plain Python stays within the words.
C = """\
static u32 twister_word(bitgen *g) {
    int *place = (int *)g;
    u32 *key = (u32 *)g + 1, y;
    unsigned k = *place;
    if (k >= 624) {
        for (int i = 0; i < 624; i++) {
            y = (key[i] & 0x80000000U) | (key[i < 623 ? i + 1 : 0] & 0x7fffffffU);
            key[i] = key[i < 227 ? i + 397 : i - 227] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfU : 0);
        }
        k = 0;
    }
    y = key[k];
    *place = k + 1;
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680U;
    y ^= y << 15 & 0xefc60000U;
    return y ^ y >> 18;
}
INLINE f64 twister_double(bitgen *g) {
    const u32 a = twister_word(g) >> 5, b = twister_word(g) >> 6;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}
INLINE u64 twister_bits(bitgen *g, int n) {
    if (n <= 32) return n ? twister_word(g) >> (32 - n) : 0;
    const u64 low = twister_word(g);
    return low | (u64)(twister_word(g) >> (64 - n)) << 32;
}
INLINE u64 twister_below(bitgen *g, u64 n) {
    const int bits = 64 - __builtin_clzll(n);
    u64 x;
    do x = twister_bits(g, bits); while (x >= n);
    return x;
}
"""
NAMES = ("twister_double", "twister_bits", "twister_below")
_MOST = 1 << 62
_locks: weakref.WeakKeyDictionary[random.Random, Any] = weakref.WeakKeyDictionary()


class Twister(Rng):
    """An object of `random.Random`: the C name of where its state is."""


@functools.cache
def _offset() -> int:
    """Where the state is in such an object; 0 if it is not laid out as is thought."""
    probe = random.Random(1)
    at = object.__basicsize__
    for draws in range(3):
        _, state, _ = probe.getstate()
        size = type(probe).__base__.__basicsize__  # type: ignore[union-attr]
        if size < at + 2500:
            return 0
        words = (ctypes.c_uint32 * 625).from_address(id(probe) + at)
        if [*words] != [state[-1], *state[:-1]]:
            return 0
        for _ in range(300 + draws):
            probe.random()
    return at


def address_of(x: random.Random) -> int:
    """Where the state of a generator is."""
    return id(x) + _offset()


def lock_of(x: random.Random) -> Any:
    """What compiled code holds while it draws."""
    return _locks.setdefault(x, threading.RLock())


def is_drawn(x: object) -> bool:
    """Whether C draws from an object."""
    return type(x) is random.Random and _offset() > 0


def method_of(x: Any) -> str | None:
    """The name of a method that is bound to what C draws from; None of any other value."""
    bound = isinstance(x, (MethodType, BuiltinMethodType)) and is_drawn(x.__self__)
    return x.__name__ if bound else None


def attribute(name: str) -> None:
    """Only methods are read: what else such an object has is Python's."""
    if not callable(getattr(random.Random, name, None)):
        raise Unreadable(f"the attribute {name!r} of random.Random")


def by_source(name: str) -> FunctionType | None:
    """The method, if it is read from the source of `random.py`; None if C has one of its own.
    Errors: Unreadable."""
    f: Any = getattr(random.Random, name, None)
    if name in _OWN:
        return None
    if not isinstance(f, FunctionType):
        raise Unreadable(f"the method {name!r} of random.Random")
    return f


def call(r: Reader, g: Twister, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of a method that C has."""
    counts, own = _OWN[name]
    if kwargs or len(args) not in counts:
        raise Unreadable(f"the method {name!r} of random.Random")
    r.one_by_one()
    made = own(r, g, *args)
    r.changed()
    return made


def _random(r: Reader, g: Twister) -> Num:
    return r.number(f"twister_double({g.text})", "f64", ("float",))


def _whole(r: Reader, *given: Value) -> list[Num]:
    if not all(isinstance(x, Num) and x.is_int for x in given):
        raise Unreadable("random integers of what are no integers")
    return [convert(r, to_int(r, x), "i64", exact=True) for x in given]


def _below(r: Reader, g: Twister, more: int, first: Num, end: Num) -> Num:
    """A number from the first one on that is below `end + more`."""
    n = r.named(f"(u64){end.text} - (u64){first.text} + {more}", "u64")
    r.leave_if(f"{end.text} < {first.text} || {n} - 1 >= {_MOST}UL", "no such range")
    name = r.named(f"(i64)((u64){first.text} + twister_below({g.text}, {n}))", "i64", "n")
    lin = r.facts.name(name, first.low, end.high + more - 1)
    made = Num(name, "i64", ("int",), "", lin, first.low, end.high + more - 1)
    if first.lin is not None and end.lin is not None:
        r.facts.add(lin - first.lin)
        r.facts.add(end.lin - lin + (more - 1))
    return made


def _of_size(r: Reader, g: Twister, n: Value) -> Num:
    (end,) = _whole(r, n)
    return _below(r, g, 0, python(0), end)


def _range(r: Reader, g: Twister, first: Value, end: Value | None = None) -> Num:
    return _of_size(r, g, first) if end is None else _below(r, g, 0, *_whole(r, first, end))


def _integer(r: Reader, g: Twister, first: Value, last: Value) -> Num:
    return _below(r, g, 1, *_whole(r, first, last))


def _bits(r: Reader, g: Twister, n: Value) -> Num:
    (bits,) = _whole(r, n)
    r.leave_if(f"{bits.text} < 0 || {bits.text} > 62", "so many bits")
    return r.integer(f"(i64)twister_bits({g.text}, {bits.text})", 0, _MOST - 1)


# What is drawn here: with how many arguments, and how.
_OWN: dict[str, tuple[tuple[int, ...], Any]] = {
    "random": ((0,), _random), "getrandbits": ((1,), _bits), "_randbelow": ((1,), _of_size),
    "randrange": ((1, 2), _range), "randint": ((2,), _integer),
}  # fmt: skip
