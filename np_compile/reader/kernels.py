"""Loops whose iterations are independent as kernels of a device: one thread an iteration.

The C of an iteration (`threads.py`) is C++ of CUDA but for a few words. What it takes from around
is the same structure, with addresses of the device's memory in it. A way out becomes a flag: the
host then does the iterations, from arrays as they were. Where all that an iteration does is another
such loop, each of its iterations is a thread's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from np_compile.kernels.targets.cuda.prelude import named, prelude

from . import arithmetic
from .read import Leave

THREADS = 128  # of a block
MOST_BYTES = 3800  # that a kernel takes as its argument

_LEAVES = re.compile(r"\bgoto leave_\d+;")
_JUMPS = re.compile(r"\bgoto \w+;")
_MADE = re.compile(r"\((c64|c128)\)\{")
_OVERFLOW = re.compile(r"\b__builtin_(add|sub|mul)_overflow\(")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_STORES = re.compile(r"\] [-+*/|&^]?= |^\*\(|\+\+;|--;")
_COPY = re.compile(r"^(?:const )?(?:\w+ )?(\w+) = (-?\w+);$")
_FIRST_VALUE = re.compile(r"^(?:const )?(\w+ \*?)(?:const )?(\w+) = (.*;)$")
_CASTS = re.compile(r"\(\w+ \*\)|\([-+*/ \w]*\)")
_READS = re.compile(r"(?:^|[=(,!<>&|?:]\s*)\*\w")
_WORDS = frozenset(
    (
        "if",
        "for",
        "while",
        "switch",
        "return",
        "sizeof",
        "TICK",
        "is_wanted",
        "RARELY",
        "SETTLED_F",
        "SETTLED_I",
    )
)
_BUILTINS = {
    "__builtin_add_overflow", "__builtin_sub_overflow", "__builtin_mul_overflow",
    "__builtin_expect", "__builtin_isinf", "__builtin_isfinite", "__builtin_isnan",
    "__builtin_memcpy", "__builtin_inf", "__builtin_inff", "__builtin_nan", "__builtin_nanf",
    *(f"__builtin_{name}{s}" for name in ("fabs", "trunc", "floor", "rint", "ceil", "copysign",
                                          "sqrt", "fma") for s in ("", "f")),
}  # fmt: skip
# What is said of calls that a device has nothing for, by how their names begin.
_WHY = (
    (("draw_", "next_"), "it draws random numbers"),
    (("allocate", "new_array", "adopt", "retain", "release", "disown"),
     "it makes or holds arrays in memory of their own"),
    (("new_list", "new_object", "grow", "room_for", "opened", "closed", "enter", "moved", "reverse",
      "first_slot", "next_slot", "more_", "forget_"), "it uses a list, a dict or a set"),
)  # fmt: skip

_HEAD = """\
#define __FP_FAST_FMA 1
#define __builtin_expect(x, y) (x)
#define __builtin_isinf isinf
#define __builtin_isfinite isfinite
#define __builtin_isnan isnan
#define QUIET INLINE
#define TICK(n) if ((ticks += n) > 16384) { ticks = 0; if (*stop) return 1; }
#define is_wanted(rt) *stop
#define RARELY(x) (x)
struct c128 { f64 r, i; };
struct c64 { f32 r, i; };
INLINE int add_overflow(i64 a, i64 b, i64 *sum) {
    *sum = (i64)((u64)a + (u64)b);
    return ((a ^ *sum) & (b ^ *sum)) < 0;
}
INLINE int sub_overflow(i64 a, i64 b, i64 *difference) {
    *difference = (i64)((u64)a - (u64)b);
    return ((a ^ b) & (a ^ *difference)) < 0;
}
INLINE int mul_overflow(i64 a, i64 b, i64 *product) {
    *product = (i64)((u64)a * (u64)b);
    return __mul64hi(a, b) != *product >> 63;
}
"""
_KERNEL = """\
struct Sum { i64 all, part; };
struct Given { %(fields)s };
/* stop: polled, in the device's memory; flag: in the host's, which is told that one has left. */
struct Memory {
    Given given; i64 from, to, across; volatile int *stop, *flag; unsigned long long *sums;
};
INLINE int added(unsigned long long *sum, i64 x) {
    if (x >> 40 != 0 && x >> 40 != -1) return 1;  /* of 2^22 threads none passes 64 bits */
    atomicAdd(sum, (unsigned long long)x);
    return 0;
}
INLINE int iterations(const Memory &m) {
volatile int *const stop = m.stop;
i64 ticks = 0;
%(body)s
return 0;
}
extern "C" __global__ void __launch_bounds__(%(threads)d)
kernel_0(const __grid_constant__ Memory memory) {
    if (iterations(memory)) *memory.stop = *memory.flag = 1;
}
"""


@dataclass(frozen=True)
class Kernel:
    """A loop of the source as a kernel. line, last: where it begins and ends. source: its own part
    of the text; why: why it is no kernel, if it is none. fields: of the structure that it takes.
    sums: how many integers it adds up, which are the last of these. flags: whether an iteration may
    leave. across: how often a loop inside runs, each iteration of which is a thread's; 0 without
    one. seconds: that an iteration takes in Python, roughly; light: whether that is too little for
    threads. touched: the fields that it uses;
    small: the bytes of arrays on C's stack, by their names."""

    line: int
    last: int
    source: str
    why: str
    fields: tuple[tuple[str, str], ...]
    sums: int
    flags: bool
    across: float
    seconds: float
    light: bool
    touched: frozenset[str]
    small: Mapping[str, int]

    @cached_property
    def text(self) -> str:
        """The program; "" where it is none."""
        return "" if self.why else _whole(self.source)


@dataclass(frozen=True)
class Loops:
    """The loops of a region. kernels: those with independent iterations that a device may have.
    shares: whether there are some that threads share. dependent: others, by the line: the last
    line, and why one thread makes their iterations. reads: whether the C around them
    touches elements of arrays that are given; touches: whether that between or behind them touches
    elements of any; blank: whether nothing but them touches elements of arrays that the region
    makes, which are zeros, or anything, until then."""

    kernels: list[Kernel]
    shares: bool
    dependent: dict[int, tuple[int, str]]
    reads: bool
    touches: bool
    blank: bool


def kernel(
    loop: Any, fields: list[tuple[str, str]], sums: list[str], shared: list[str],
    small: Mapping[str, int],
) -> Kernel:  # fmt: skip
    """A loop as a kernel. fields: the names and C types of what it is given. shared: declarations
    of variables that are used in one place. small: the bytes of arrays on C's stack."""
    pair = _pair(loop)
    if pair is None:
        place = f"blockIdx.x * (i64){THREADS} + threadIdx.x", f"gridDim.x * (i64){THREADS}"
        lines = _loop(loop, f"m.from + {place[0]}", "m.to", place[1], _flat(loop.iteration.body))
    else:
        before, inner, after = pair
        first = f"blockIdx.x % m.across * (i64){THREADS} + threadIdx.x"
        within = _loop(inner, first, inner.n, f"m.across * (i64){THREADS}",
                       _flat(inner.iteration.body))  # fmt: skip
        lines = _loop(loop, "m.from + blockIdx.x / m.across", "m.to", "gridDim.x / m.across",
                      [*before, *within, *after])  # fmt: skip
    flags = bool(sums) or any(_LEAVES.search(x) for x in lines)
    lines = [_MADE.sub(r"\1{", _LEAVES.sub("return 1;", x)) for x in lines if not x.startswith("#")]
    used = {x for line in lines for x in _WORD.findall(line)}
    why = _why_not(lines, used, fields)
    own = [x for x in shared if used & set(_WORD.findall(x))]
    given = [
        f"{ctype}const {x} = m.given.{x};" for x, ctype in fields
        if x in used and x not in sums and ctype != "Buf *"
    ]  # fmt: skip
    kept = {v for x in loop.kept for d in x.declare for v in _WORD.findall(d)}
    given = [x.replace("const ", "", 1) if x.split(" = ")[0].split()[-1] in kept else x
             for x in given]  # fmt: skip
    begin = [f"i64 {x} = 0;" for x in sums]
    end = [f"if (added(m.sums + {k}, {x})) return 1;" for k, x in enumerate(sums)]
    body = [*given, *own, *begin, *lines, *end]
    if any(_JUMPS.search(x) for x in lines):
        body = [y for x in body for y in _declared_apart(x)]
    texts = {
        "fields": " ".join(
            [*(f"{'void *' if t == 'Buf *' else t}{x};" for x, t in fields),
             *(f"Sum {x};" for x in sums)]
        ),
        "body": "\n".join(body),
        "threads": THREADS,
    }  # fmt: skip
    typed = (*fields, *((x, "Sum ") for x in sums))
    across = pair[1].iteration.times if pair is not None else 0
    return Kernel(
        loop.line, loop.iteration.last, _KERNEL % texts, why, typed, len(sums), flags, across,
        loop.iteration.seconds, loop.iteration.light, frozenset(used), small,
    )  # fmt: skip


def _whole(text: str) -> str:
    text = _MADE.sub(r"\1{", arithmetic.pure()) + text
    text = _HEAD + _OVERFLOW.sub(r"\1_overflow(", text)
    return prelude(text, threads=False) + text


def _flat(lines: list) -> list[str]:
    """The C of what an iteration does, with loops that others might share as they stand."""
    made: list[str] = []
    for x in lines:
        if isinstance(x, str):
            made.append(x)
        elif isinstance(x, list):
            made += _flat(x)
        elif not isinstance(x, Leave) and not x.on_device:
            made += _flat(x.in_place(x.lines))
        elif not isinstance(x, Leave):
            made += _loop(x, "0", x.n, "1", _flat(x.iteration.body))
    return made


def _loop(loop: Any, first: str, end: str, step: str, body: list[str]) -> list[str]:
    k = loop.iteration.counter
    return [f"for (i64 {k} = {first}; {k} < {end}; {k} += {step}) {{", "TICK(1);", *body, "}"]


def _items(lines: list) -> Iterator[Any]:
    for x in lines:
        if isinstance(x, list):
            yield from _items(x)
        elif not isinstance(x, (str, Leave)) and not x.on_device:
            yield from _items(x.in_place(x.lines))
        elif not isinstance(x, Leave) and not (isinstance(x, str) and x.startswith("/*")):
            yield x


def _pair(loop: Any) -> tuple[list[str], Any, list[str]] | None:
    """Of a loop that does nothing but another one: the lines before that, it, and those behind."""
    items = list(_items(loop.iteration.body))
    loops = [k for k, x in enumerate(items) if not isinstance(x, str)]
    if len(loops) != 1:
        return None
    k = loops[0]
    before, inner, after = items[:k], items[k], items[k + 1 :]
    if not set(inner.tests) <= set(loop.tests):
        return None
    if "".join(before).count("{") != "".join(before).count("}"):
        return None
    writes = any(_STORES.search(x) or "memcpy(" in x for x in before)
    if writes or not all(map(_COPY.match, after)):
        return None
    # What is added up is passed on to the loop inside, and nothing else is done with it.
    passed = {name for v in loop.sums for line in v.declare for name in _WORD.findall(line)}
    passed -= {"i64"}
    for line in before:
        if passed & set(_WORD.findall(line)):
            copy = _COPY.match(line)
            if copy is None or copy[2] not in passed:
                return None
            passed.add(copy[1])
    return before, inner, after


def _why_not(lines: list[str], used: set[str], fields: list[tuple[str, str]]) -> str:
    """Why lines are none for a device; "" if they are."""
    known = named() | _WORDS | _BUILTINS | arithmetic.PURE
    for line in lines:
        for name in () if line.startswith("/*") else _CALLED.findall(line):
            if name not in known:
                for begins, why in _WHY:
                    if name.startswith(begins):
                        return why
                return f"it calls {name}, which is the host's"
    code = "\n".join(x for x in lines if not x.startswith("/*")).replace("is_wanted(rt)", "")
    if re.search(r"\brt\b|\bBuf\b|\bout\[", code):
        return "it calls Python, or holds arrays in memory of their own"
    if any(t == "Buf *" and re.search(rf"\b{x}\b", code) for x, t in fields if x in used):
        return "it makes or holds arrays in memory of their own"
    return ""


def _declared_apart(line: str) -> list[str]:
    """A declaration with a value as two lines: in C++ no jump passes a first value."""
    if line.startswith(("for (", "if (", "return ")):
        return [line]
    found = _FIRST_VALUE.match(line)
    if found is None or found[3].startswith("{"):
        return [line]
    return [f"{found[1]}{found[2]};", f"{found[2]} = {found[3]}"]


# What the host does around the loops

_POINTER = re.compile(r"^(?:const )?\w+ \*(?:const )?")
_NO_MEMORY = ("Buf *", "PyArray *", "bitgen *", "Word *")
NO_DEVICE = "} else /* without a device */ {"  # what follows runs where there is none
_ONLY_NAMES = ("out[", "struct in_", "const i64 left = ", "/*")


def touched(
    lines: Sequence[str], declared: Mapping[str, str], small: Iterable[str]
) -> tuple[bool, bool, bool]:
    """Whether the C around loops reads or writes elements of arrays that are given, whether that
    between or behind the loops does of any, and whether none does of arrays that are made.
    declared: the C types of names. small: arrays on C's stack, which are not meant."""
    pointers = {x for x, t in declared.items() if "*" in t and t.strip() + " " not in _NO_MEMORY}
    pointers -= {x for x, t in declared.items() if t.replace("const ", "") in _NO_MEMORY}
    pointers -= {*small, *(f"own_{x}" for x in small)}
    of_given = {x for x in pointers if "_in" in x}
    places: list[tuple[int, bool]] = []
    depth, outer, first = 0, 0, len(lines)
    skipped: int | None = None
    for k, line in enumerate(lines):
        if depth == 0:
            outer = k
        if line.startswith("const i64 left = "):
            first = min(first, outer)
        depth += line.count("{") - line.count("}")
        if line == NO_DEVICE:
            skipped = depth
        elif skipped is not None and depth < skipped:
            skipped = None
        if skipped is not None or line.startswith(_ONLY_NAMES):
            continue
        names = pointers & set(_WORD.findall(line))
        if not names:
            continue
        value = _POINTER.sub("", line)
        if "[" not in value and "(" not in _CASTS.sub("", value) and not _READS.search(value):
            if names & of_given:  # a view of what is given, or a name for it
                of_given |= names
            continue
        places.append((k, bool(names & of_given)))
    made = [k for k, given in places if not given]
    return len(made) < len(places), any(k >= first for k, _ in places), not made
