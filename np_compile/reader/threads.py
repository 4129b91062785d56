"""Loops whose iterations are independent, on all cores.

Such a loop is a C function of its own, of a range of iterations and of what it takes from around
it. It begins in the calling thread, until it is known how long an iteration takes; where what is
ahead is worth it, the threads of the kernels' pool take the rest in chunks. Where one of them has
to leave, the arrays get the values back that they had, and the calling thread goes through the
iterations in their order; where one is interrupted, it is as if none had been made. So all is as
if there were one thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from .dependence import Independence
from .kernels import NO_DEVICE, Kernel, kernel
from .read import Reader, line_of
from .values import Arr
from .variables import Variable

WORTH = 30_000  # nanoseconds of work ahead from which threads are worth calling

C = """
typedef struct { void *low, *end; } Span;
void finish(Runtime *rt);
INLINE i64 bytes_of(Span x) { return x.end > x.low ? (char *)x.end - (char *)x.low : 0; }
QUIET void run_chunk(void *argument, long begin, long end) {
    Job *job = argument;
    if (has_failed(job)) return;
    Runtime own = *job->rt;
    own.first.next = 0;
    for (int k = 0; k < (int)(sizeof own.spares / sizeof *own.spares); k++) own.spares[k] = 0;
    own.job = job;
    if (job->loop(&own, job->context, job->from + begin, job->from + end))
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    for (int k = 0; k < 3; k++) if (own.error[k]) job->rt->error[k] = own.error[k];
    finish(&own);
}
QUIET i64 in_chunks(Job *job, i64 n, f64 each) {
    Runtime *rt = job->rt;
    i64 most = 2e7 * rt->threads / each;  /* between looks at what Python wants */
    most = most < 64 * rt->threads ? 64 * rt->threads : most;
    while (job->from < n) {
        i64 count = n - job->from < most ? n - job->from : most;
        i64 grain = count / (8 * rt->threads), least = 5000 / each;
        grain = grain < least ? least : grain;
        rt->run(run_chunk, job, count, grain < 1 ? 1 : grain, rt->threads);
        if (has_failed(job)) return 1;
        job->from += count;
        if (is_wanted(rt)) return -1;
    }
    return 0;
}
/* A sum of integers so far, and what chunks have added to it. */
typedef struct { i64 all, part; } Sum;
INLINE int added(Sum *sum, i64 x) {
    if (x >> 40 != 0 && x >> 40 != -1) return 1;  /* of 2^22 chunks none passes 64 bits */
    __atomic_fetch_add(&sum->part, x, __ATOMIC_RELAXED);
    return 0;
}
/* Iterations from `from` to before `last` by threads, and to before n by this one. */
QUIET i64 by_threads(Runtime *rt, Loop loop, void *context, i64 from, i64 last, i64 n, f64 each,
                     const Span *written, i64 arrays, i64 bytes, Buf *const *held, i64 buffers,
                     Sum *const *sums, i64 numbers) {
    char *copies = malloc(bytes + 1), *at = copies;
    i64 *refs = malloc(8 * buffers + 8);
    if (!copies || !refs) { free(copies); free(refs); return loop(rt, context, from, n); }
    for (i64 k = 0; k < arrays; at += bytes_of(written[k]), k++)
        __builtin_memcpy(at, written[k].low, bytes_of(written[k]));
    for (i64 k = 0; k < buffers; k++) if (held[k]) refs[k] = held[k]->refs;
    for (i64 k = 0; k < buffers; k++) if (held[k]) held[k]->refs = 1L << 40;
    for (i64 k = 0; k < numbers; k++) sums[k]->part = 0;
    Job job = {loop, context, rt, from, 0, &this_thread};
    i64 left = in_chunks(&job, last, each);
    i64 all[8];
    for (i64 k = 0; k < numbers && !left; k++)
        left = __builtin_add_overflow(sums[k]->all, sums[k]->part, &all[k]);
    for (i64 k = 0; k < numbers && !left; k++) sums[k]->all = all[k];
    for (i64 k = 0; k < buffers; k++) if (held[k]) held[k]->refs = refs[k];
    if (left > 0) {
        at = copies;
        for (i64 k = 0; k < arrays; at += bytes_of(written[k]), k++)
            __builtin_memcpy(written[k].low, at, bytes_of(written[k]));
    }
    free(copies);
    free(refs);
    if (left < 0 || (left && rt->error[1])) return -1;
    return loop(rt, context, left ? from : last, n);
}
/* The iterations from `from` to before `last` by a device. 0: it is not for it, for now; 1: they
   are done; 2: one leaves, so that all are this thread's; -1: it was interrupted. */
QUIET i64 by_device(Runtime *rt, i64 number, void *context, i64 from, i64 last, i64 keeps, f64 each,
                    const Span *written, i64 arrays, Sum *const *sums, i64 numbers) {
    for (i64 k = 0; k < numbers; k++) sums[k]->part = 0;
    i64 done = rt->device(number, context, from, last, each * 1e3, written, arrays, keeps);
    for (i64 k = 0; k < numbers && done == 1; k++) sums[k]->all += sums[k]->part;
    return done;
}
/* Iterations that this thread has to do, of arrays that a device may have. */
INLINE i64 alone(Runtime *rt, Loop loop, void *context, i64 n) {
    if (rt->device && !rt->job && rt->device(-1, 0, 0, 0, 0, 0, 0, 0) < 0) return -1;
    return loop(rt, context, 0, n);
}
/* All iterations. pace: picoseconds that one takes, as far as is known, and calls without a look at
   the clock. keeps: whether the last one has to be this thread's. number: of the loop. written:
   the arrays that it writes to; copied: how many of them, if it may leave, have to have their
   values again then. */
QUIET i64 spread(Runtime *rt, Loop loop, i64 number, void *context, i64 n, i64 keeps, i64 *pace,
                 const Span *written, i64 arrays, i64 copied, Buf *const *held, i64 buffers,
                 Sum *const *sums, i64 numbers) {
    f64 each = __atomic_load_n(pace, __ATOMIC_RELAXED) * 1e-3;
    i64 from = 0, last = n - keeps, bytes = 0, step = 1, away = rt->device && !rt->job;
    if (away && n > 0) {
        i64 done = by_device(rt, number, context, 0, last, keeps, each, written, arrays, sums,
                             numbers);
        if (done < 0) return -1;
        if (done) return loop(rt, context, done == 1 ? last : 0, n);
    }
    if ((rt->threads < 2 && !away) || rt->job || n < 2) return loop(rt, context, 0, n);
    if (each > 0 && each * n < 1000 && rt->worth && ++pace[1] & 63) return loop(rt, context, 0, n);
    for (i64 k = 0; k < copied; k++) bytes += bytes_of(written[k]);
    f64 worth = rt->worth ? rt->worth + bytes / 4 : 0;
    if (!rt->worth) each = 1e6;  /* at once, in many chunks */
    while (from < n) {
        if (each > 0 && each * (last - from) > worth) {
            i64 done = !away || !from ? 0 : by_device(rt, number, context, from, last, keeps, each,
                                                     written, arrays, sums, numbers);
            if (done < 0) return -1;
            if (done || rt->threads < 2) return loop(rt, context, done == 1 ? last : from, n);
            i64 begun = clock_of(rt, MONOTONIC);
            i64 left = by_threads(rt, loop, context, from, last, n, each, written, copied, bytes,
                                  held, buffers, sums, numbers);
            /* It took no longer than all of them; the one before may have been another loop's. */
            f64 most = (clock_of(rt, MONOTONIC) - begun) * rt->threads / (f64)(n - from);
            if (most < each) __atomic_store_n(pace, (i64)(most * 1e3) + 1, __ATOMIC_RELAXED);
            return left;
        }
        if (each > 0) step = 2e4 / each;
        i64 end = n - from <= step ? n : from + (step < 1 ? 1 : step);
        i64 begun = clock_of(rt, MONOTONIC), left = loop(rt, context, from, end);
        if (left) return left;
        i64 took = clock_of(rt, MONOTONIC) - begun;
        if (took > 200 || end == n) {
            each = (took > 30 ? took : 30) / (f64)(end - from);
            __atomic_store_n(pace, (i64)(each * 1e3), __ATOMIC_RELAXED);
        } else step *= 4;
        from = end;
    }
    return 0;
}
"""

_NAME = re.compile(r"\b[A-Za-z]\w*_(?:in)?\d+\b")
_DECLARED = re.compile(
    r"^(?:for \()?(const )?(\w+) (\*?) ?(?:const )?(\w+_(?:in)?\d+)(\[\d+\])?(?= =|;)"
)


_WHOLE = re.compile(r"for \(i64 (\w+) = 0; \1 < (.+); \1\+\+\) \{")
_LONG = 1 << 13  # elements
_ELEMENT = 5e-8  # seconds that Python would take for one: C takes a fiftieth

_LABEL = re.compile(r"^\w+: ;")
_GOTO = re.compile(r"\bgoto (\w+);")


@dataclass
class Iteration:
    """What one iteration does. counter: its C name. body: its C, in which the ways out are not
    written. seconds: that Python would take, roughly; times: how often it does. last: the line in
    the source where it ends. light: whether that is too little for threads to share, whose calls
    come one after the other."""

    counter: str
    body: list
    seconds: float
    times: float
    last: int
    light: bool


@dataclass
class Threaded:
    """A loop with independent iterations, in the lines of a reader. line: in the source. number: of
    its C function.
    lines: the loop, from `from` to before `to`. n: how many iterations there are. kept: variables
    of which the last iteration gives the value. sums: integers that all add to. written: the
    memory that is written to. tests: C that is true where iterations may depend on each other all
    the same. spreads: whether it may be worth sharing, by threads or a device; the lines of one
    that is not are all there is to it."""

    line: int
    number: str
    lines: list
    n: str
    kept: list[Variable]
    sums: list[Variable]
    written: list[str]
    tests: list[str]
    iteration: Iteration
    spreads: bool

    def in_place(self, lines: list[str]) -> list[str]:
        """The C of the loop where it stands."""
        return ["{", f"const i64 from = 0, to = {self.n};", *lines, "}"]

    def outlined(
        self, lines: list[str], around: Iterable[str], shared: list[str],
        number: int, small: Mapping[str, int],
    ) -> tuple[list[str], list[str], Kernel | None]:  # fmt: skip
        """The C of its function, and of the call; the loop as a kernel of a device. around: lines
        that declare what it may take. shared: declarations of variables that each user gives a
        value first. number: of the kernel. small: the bytes of arrays on the stack."""
        used = dict.fromkeys(name for line in lines for name in _NAME.findall(_code(line)))
        inner = lines
        lines = [x for x in shared if declarations([x]).keys() & used.keys()] + lines
        kept = declarations(line for v in self.kept for line in v.declare)
        sums = declarations(line for v in self.sums for line in v.declare)
        own, declared = declarations(lines), declarations(around)
        rests_on = {x for text in (*self.tests, *self.written) for x in _NAME.findall(text)}
        if rests_on & own.keys() or _jumps(lines):
            return [], self.in_place(lines), None
        taken = {x: declared[x] for x in used if x in declared and x not in own | kept | sums}
        context = f"struct in_{self.number}"
        fields = [*taken.items(), *kept.items()]
        back = "".join(f" c->{x} = {x};" for x in kept) + "".join(
            f" c->{x}.all = {x};" for x in sums
        )
        apart = " || ".join(f"added(&c->{x}, {x})" for x in sums)
        function = [
            f"{context} {{", *(f"{ctype}{name};" for name, ctype in fields),
            *(f"Sum {x};" for x in sums), "};",
            f"QUIET i64 loop_{self.number}(Runtime *rt, void *context, i64 from, i64 to) {{",
            f"{context} *c = context;", "Word *const out = rt->out;", "(void)out;",
            "i64 counted = rt->ticks, *const ticks = &counted;",
            *(f"{ctype}const {x} = c->{x};" for x, ctype in taken.items()),
            *(f"{ctype}{x} = rt->job ? ({ctype}){_zero(ctype)} : c->{x};"
              for x, ctype in kept.items()),
            *(f"i64 {x} = rt->job ? 0 : c->{x}.all;" for x in sums),
            *lines,
            *([f"if (!rt->job) {{{back} }}"] if back else []),
            *([f"if (rt->job && ({apart})) return -2;"] if sums else []),
            "rt->ticks = counted;", "return 0;", "}",
        ]  # fmt: skip
        held = [x for x, ctype in taken.items() if ctype == "Buf *"]
        may_fail = bool(sums) or any("return" in _code(line) for line in lines)
        written = self.written
        values = ", ".join(
            [*(f".{x} = {x}" for x, _ in fields), *(f".{x} = {{{x}, 0}}" for x in sums)]
        )
        call = (
            f"spread(rt, loop_{self.number}, {number}, &c, {self.n}, {int(bool(kept))}, pace, "
            f"(const Span[]){{{', '.join(written) or '{0, 0}'}}}, {len(written)}, "
            f"{len(written) if may_fail else 0}, "
            f"(Buf *const[]){{{', '.join(held) or '0'}}}, {len(held)}, "
            f"(Sum *const[]){{{', '.join(f'&c.{x}' for x in sums) or '0'}}}, {len(sums)})"
        )
        if self.tests:
            call = (
                f"{' || '.join(self.tests)} ? alone(rt, loop_{self.number}, &c, {self.n}) : {call}"
            )
        at_place = [
            "{", f"{context} c = {{{values}}};", "static i64 pace[2];", f"const i64 left = {call};",
            *(f"{name} = c.{name};" for name in kept), *(f"{x} = c.{x}.all;" for x in sums),
            "if (__builtin_expect(left != 0, 0)) return left;", "}",
        ]  # fmt: skip
        if self.iteration.light:  # as it stands, where there is no device
            at_place = ["if (rt->device) {", *at_place, NO_DEVICE, *self.in_place(inner), "}"]
        return function, at_place, kernel(self, fields, list(sums), shared, small)


def threaded(
    r: Reader, line: int, counter: str, lines: list, n: str, kept: list[Variable],
    sums: list[Variable], found: Independence, iteration: Iteration, spreads: bool,
) -> Threaded:  # fmt: skip
    """A loop whose iterations are independent, where what it rests on holds."""
    tests = rests_on(r, found)
    written = [f"{{{a.span}}}" for a in found.written]
    number = counter.rpartition("_")[2]
    return Threaded(line, number, lines, n, kept, sums, written, tests, iteration, spreads)


@contextmanager
def shared(r: Reader, target: Arr) -> Iterator[None]:
    """A block that writes loops over all elements of an array, each of which gives one its value:
    threads share the outermost, where the array is long in the call at hand."""
    outer, r.lines = r.lines, []
    try:
        yield
    finally:
        lines, r.lines = r.lines, outer
    extents = {d.text: r.entry.at(d.lin) for d in target.dims}
    n = math.prod(r.entry.at(d.lin) for d in target.dims)
    found = re.fullmatch(_WHOLE, lines[-3]) if n >= _LONG and not r.quiet else None
    if found is None:
        r.lines += lines
        return
    counter, extent = found.groups()
    head = f"for (i64 {counter} = from; {counter} < to; {counter}++) {{"
    line, number = line_of(r.frame.path), counter.rpartition("_")[2]
    one = Iteration(counter, lines[-2], n / extents[extent] * _ELEMENT, 1, line, False)
    where = line, number, [*lines[:-3], head, *lines[-2:]], extent
    r.lines.append(Threaded(*where, [], [], [f"{{{target.span}}}"], [], one, True))


def rests_on(r: Reader, found: Independence) -> list[str]:
    """C that is true where iterations may depend on each other all the same."""
    tests = [f"overlap({a.span}, {b.span})" for a, b in found.apart]
    for a in found.written:
        if a.flat or not a.ndim:
            continue
        steps = [s.text for s in a.strides]  # no two indices may lead to one element
        tests.append(f"{steps[-1]} < 1")
        inner = zip(steps, a.dims[1:], steps[1:], strict=False)
        tests += [f"{s} < {d.text} * {t}" for s, d, t in inner]
    return tests


def outlined(
    lines: Iterable[str | Threaded], prologue: Iterable[str], shared: list[str],
    small: Mapping[str, int],
) -> tuple[list[str], list[str], list[Kernel]]:  # fmt: skip
    """The functions of the loops that threads share, the lines with calls of them in their places,
    and these loops as kernels. prologue: lines before. shared: declarations of variables that are
    used in one place. small: the bytes of arrays on the stack."""
    functions: list[str] = []
    made: list[str] = []
    kernels: list[Kernel] = []
    lines = list(lines)
    around = [*prologue, *(x for x in lines if isinstance(x, str))]
    for x in lines:
        if isinstance(x, str):
            made.append(x)
        else:
            parts = in_one(x.lines), around, shared, len(kernels), small
            function, call, found = x.outlined(*parts)
            functions += function
            made += call
            kernels += [found] if found is not None else []
    return functions, made, kernels


def in_one(lines: Iterable[str | Threaded]) -> list[str]:
    """Lines in which loops that threads might share are as they stand."""
    made: list[str] = []
    for x in lines:
        made += [x] if isinstance(x, str) else x.in_place(in_one(x.lines))
    return made


def _jumps(lines: Iterable[str]) -> bool:
    """Whether there is a jump to a label that is elsewhere."""
    code = [_code(line) for line in lines]
    labels = {x.partition(":")[0] for x in code if _LABEL.match(x)}
    return any(x not in labels for line in code for x in _GOTO.findall(line))


def declarations(lines: Iterable[str]) -> dict[str, str]:
    """The C types of the names that lines declare."""
    found: dict[str, str] = {}
    for line in lines:
        match = _DECLARED.match(line)
        if match:
            const, kind, pointer, name, extent = match.groups()
            found[name] = f"{const or ''}{kind} *" if extent else f"{kind} {pointer}"
    return found


def _code(line: str) -> str:
    return "" if line.startswith("/*") else line


def _zero(ctype: str) -> str:
    return "{0, 0}" if ctype.strip() in ("c64", "c128") else "0"
