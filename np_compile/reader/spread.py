"""The C that shares a loop among threads, for `threads.py`: a library of its own, compiled once."""

from __future__ import annotations

import ctypes
import functools

from np_compile.kernels import build
from np_compile.kernels.targets.c.prelude import prelude

from . import runtime

# What the C of a region has of it.
C = """
/* In how many pieces so many elements are reduced: a power of two, by their number alone. */
INLINE i64 pieces_of(i64 n) {
    i64 pieces = 2;
    while (pieces < 64 && n / pieces >= 16384) pieces *= 2;
    return pieces;
}
/* Memory that a loop writes to; a sum of integers so far, and what chunks have added to it. */
typedef struct { void *low, *end; } Span;
typedef struct { i64 all, part; } Sum;
INLINE int added(Sum *sum, i64 x) {
    if (x >> 40 != 0 && x >> 40 != -1) return 1;  /* of 2^22 chunks none passes 64 bits */
    __atomic_fetch_add(&sum->part, x, __ATOMIC_RELAXED);
    return 0;
}
/* Iterations that this thread has to do, of arrays that a device may have. */
INLINE i64 alone(Runtime *rt, Loop loop, void *context, i64 n) {
    if (rt->device && !rt->job && rt->device(-1, 0, 0, 0, 0, 0, 0, 0) < 0) return -1;
    return loop(rt, context, 0, n);
}
typedef i64 Spread(Runtime *, Loop, i64, void *, i64, i64, i64 *, const Span *, i64, i64,
                   Buf *const *, i64, Sum *const *, i64);
#define spread ((Spread *)rt->spread)
/* What cannot leave, and is none for a device. */
#define over_all(rt, loop, context, n, pace) \\
    spread(rt, loop, 0, context, n, 0, pace, 0, 0, 0, 0, 0, 0, 0)
"""

# What loops call by `Runtime.spread`.
_SPREAD = """
static __thread char this_thread;
void finish(Runtime *rt);
INLINE i64 bytes_of(Span x) { return x.end > x.low ? (char *)x.end - (char *)x.low : 0; }
QUIET void run_chunk(void *argument, long begin, long end) {
    Job *job = argument;
    if (has_failed(job)) return;
    Runtime own = *job->rt;
    own.first.next = 0;
    for (int k = 0; k < (int)(sizeof own.spares / sizeof *own.spares); k++) own.spares[k] = 0;
    own.job = job;
    own.helps = job->caller != &this_thread;
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
/* All iterations. pace: picoseconds that one takes, as far as is known, and calls without a look at
   the clock. keeps: whether the last one has to be this thread's. number: of the loop. written:
   the arrays that it writes to; copied: how many of them, if it may leave, have to have their
   values again then. */
i64 npc_spread(Runtime *rt, Loop loop, i64 number, void *context, i64 n, i64 keeps, i64 *pace,
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
    if (!rt->threads) rt->threads = rt->count_threads();
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


@functools.cache
def source() -> str:
    """The C of how loops are shared, to be compiled beside a first one."""
    text = runtime.C + C + _SPREAD + runtime.FINISH
    return prelude(text) + text


@functools.cache
def address() -> int:
    """The address of what shares the iterations of a loop."""
    found = ctypes.cast(build.load(source(), name="spread").npc_spread, ctypes.c_void_p).value
    assert found is not None
    return found
