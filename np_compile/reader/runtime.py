"""What compiled functions share with Python while they run: the C that they begin with, and the
structures that C and Python both see."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from . import arithmetic, direct, marshalling
from .values import DTYPE_OF, SIZES

AXES = 8


class Buffer(ctypes.Structure):
    """Memory of an array or a list. next, prev: the others of the call. owner: a number that
    Python knows it by, -1 if it is C's own. code: of its representation. For a list, `dims` is its
    length, the room that there is, how much of it is before the first item, which words of an item
    are buffers, and the bytes of an item; for a dict or a set also the address of its index, the
    logarithm of how long that is, and how many entries are gone. object, form, changes: of a list
    that Python has too, that list, its form, and whether it is to be changed as this one is (2:
    entries have been taken out; `given.py`); object is also the array that was made of memory of
    C's own, and what a view that was made is of. steady: how many loops run over it in functions
    that call themselves, or one another."""


Buffer._fields_ = [
    ("next", ctypes.POINTER(Buffer)), ("prev", ctypes.POINTER(Buffer)), ("refs", c_int64),
    ("owner", c_int64), ("bytes", c_int64), ("code", c_int64), ("ndim", c_int64),
    ("dims", c_int64 * AXES), ("data", c_void_p), ("object", c_void_p), ("form", c_void_p),
    ("changes", c_int64), ("steady", c_int64),
]  # fmt: skip


class Word(ctypes.Union):
    """A word of input or output."""

    _fields_ = (("i", ctypes.c_int64), ("f", ctypes.c_double), ("p", ctypes.c_void_p))


def data_of(x: np.ndarray) -> int:
    """The address of an array's first element: of what NumPy's C headers say it is."""
    return c_int64.from_address(id(x) + 2 * ctypes.sizeof(c_void_p)).value


PYTHON = ctypes.CFUNCTYPE(c_int64, c_int64)
# The number of a loop, its context, iterations from one to before another, the picoseconds that one
# takes, the memory that they write to and how many pieces it is, whether the next one is C's.
DEVICE = ctypes.CFUNCTYPE(
    c_int64, c_int64, c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int64, c_int64
)


SPARES = 4  # small arrays that are kept for the next ones


class Runtime(ctypes.Structure):
    """A call: its buffers, what it asks of Python, values in and out, the buffers of its inputs.
    run, count_threads, threads, worth: how loops are shared among threads, whose number is asked by
    the first one of a call (0 until then); job: the one that this is a part of;
    device: what is asked to have a loop run on a device, if there is one; rows: of calls in Python,
    where C makes them itself (`direct.py`); depth, deepest, left, stack, outside: of functions that
    call themselves (`recursion.py`); classes: of objects in lists, each with its attributes' names
    (`marshalling.py`); spares: small arrays that were given back, for the next ones of their
    size; spread: what shares a loop (`threads.py`); helps: whether this is a part that another
    thread than the caller does."""

    _fields_ = (
        ("first", Buffer), ("api", c_void_p), ("python", PYTHON), ("ticks", c_int64),
        ("deadline", c_int64), ("out", c_void_p), ("draws", c_void_p), ("error", c_void_p * 3),
        ("given", c_void_p), ("run", c_void_p), ("count_threads", c_void_p),
        ("threads", c_int64), ("worth", c_int64),
        ("job", c_void_p), ("device", DEVICE), ("rows", c_void_p), ("depth", c_int64),
        ("deepest", c_int64), ("left", c_void_p), ("stack", c_void_p), ("outside", c_void_p),
        ("classes", c_void_p), ("spares", c_void_p * SPARES),
        ("spread", c_void_p), ("helps", c_int64),
    )  # fmt: skip


def numpy_table() -> Any:
    """The addresses of NumPy's C functions."""
    get = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    return (c_void_p * 512).from_address(get(capsule, None))


def _table() -> Any:
    """The addresses of the functions of Python's and NumPy's that `_API` names."""
    numpy = numpy_table()
    found = []
    for name in _API:
        at = _IN_NUMPY.get(name)
        f = (
            ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value
            if at is None
            else numpy[at]
        )
        found.append(f)
    found += map(id, (*marshalling.OBJECTS, np.ndarray))
    return (c_void_p * len(found))(*found)


# What compiled code calls of Python's and NumPy's, in this order; where in NumPy's table it is.
_API = (
    "PyGILState_Ensure", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_NormalizeException",
    "PyGILState_Release", "PyErr_Clear", "Py_DecRef",
    "PyArray_DescrFromType", "PyArray_Zeros", "PyArray_Empty", *direct.FUNCTIONS,
    *marshalling.FUNCTIONS,
)  # fmt: skip
_IN_NUMPY = {
    "PyArray_DescrFromType": 45, "PyArray_Zeros": 183, "PyArray_Empty": 184,
    **{name: place for name, (_, place) in direct.FUNCTIONS.items() if place is not None},
}  # fmt: skip
api = _table()

# An array of so many bytes is memory of NumPy's from the beginning: nothing is copied at the end.
LARGE = 1 << 14
SPARED = 1 << 20  # bytes of the largest
EVERY = 1 << 10  # iterations between looks at the clock
_NANOSECONDS = 20_000_000  # between looks at what Python wants

_TYPE_NUMBERS = ", ".join(str(DTYPE_OF[x].num if x in DTYPE_OF else -1) for x in SIZES)

C = f"""
typedef struct {{
    void *head[2];
    char *data;
    int nd;
    i64 *dims, *strides;
    void *base, *descr;
    int flags;
}} PyArray;
typedef struct {{ f64 r, i; }} c128;
typedef struct {{ f32 r, i; }} c64;
typedef struct Buf Buf;
struct Buf {{ Buf *next, *prev; i64 refs, owner, bytes, code, ndim, dims[{AXES}];
              void *data, *object; const char *form; i64 changes, steady; }};
typedef struct Job Job;
struct outside;
typedef struct {{
    Buf first;
    void **api;
    i64 (*python)(i64);
    i64 ticks, deadline;
    void *out;
    void **draws, *error[3];
    Buf *given;
    void (*run)(void (*)(void *, long, long), void *, long, long, int);
    int (*count_threads)(void);
    i64 threads, worth;
    Job *job;
    i64 (*device)(i64, void *, i64, i64, i64, const void *, i64, i64);
    const i64 **rows;
    i64 depth, deepest;
    Buf *left;
    void *stack;
    const struct outside *outside;
    const void *classes;
    Buf *spares[{SPARES}];
    void *spread;
    i64 helps;
}} Runtime;
typedef i64 (*Loop)(Runtime *, void *, i64, i64);
struct Job {{ Loop loop; void *context; Runtime *rt; i64 from, failed; const char *caller; }};
INLINE int has_failed(const Job *job) {{ return __atomic_load_n(&job->failed, __ATOMIC_RELAXED); }}
typedef union {{ i64 i; f64 f; void *p; }} Word;
typedef struct {{
    void *state;
    u64 (*next_uint64)(void *);
    u32 (*next_uint32)(void *);
    f64 (*next_double)(void *);
    u64 (*next_raw)(void *);
}} bitgen;
extern void *malloc(u64), *calloc(u64, u64), *realloc(void *, u64);
extern void free(void *);
typedef struct {{ i64 seconds, nanoseconds; }} Time;
#ifdef __APPLE__
#define MONOTONIC 8
#else
#define MONOTONIC 1
#endif
extern int clock_gettime(int, Time *);
#define QUIET static __attribute__((unused, noinline))
/* Threads that share a loop may hold the same item of a list. */
INLINE void retain(Runtime *rt, Buf *b) {{
    if (!b) return;
    if (rt->job) __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
    else b->refs++;
}}
INLINE void free_memory(Buf *b) {{
    if (b->owner >= 0 || b->data == (void *)(b + 1)) return;
    free(b->ndim < 0 ? (char *)b->data - b->dims[2] * b->dims[4] : b->data);
    if (b->ndim < 0) free((void *)b->dims[5]);
}}
/* NumPy's arrays are made and given back without a line of Python, where a signal's handler would
   raise amid what C does. */
#define PyArray_DescrFromType ((void *(*)(int))rt->api[7])
QUIET void *new_array(Runtime *rt, i64 code, i64 zero, i64 ndim, const i64 *dims) {{
    static const signed char types[] = {{{_TYPE_NUMBERS}}};
    int held = ((int (*)(void))rt->api[0])();
    void *descr = PyArray_DescrFromType(types[code]);
    void *(*make)(int, const i64 *, void *, int) = rt->api[zero ? 8 : 9];
    void *made = make(ndim, dims, descr, 0);
    if (!made) ((void (*)(void))rt->api[5])();
    ((void (*)(int))rt->api[4])(held);
    return made;
}}
QUIET void disown(Runtime *rt, Buf *b) {{
    if (b->owner < {direct.OWN}) return;
    int held = ((int (*)(void))rt->api[0])();
    ((void (*)(void *))rt->api[6])((void *)b->owner);
    ((void (*)(int))rt->api[4])(held);
}}
static void release(Runtime *rt, Buf *b);
QUIET void release_items(Runtime *rt, Buf *b) {{
    i64 size = b->dims[4];
    for (i64 k = 0; b->dims[3] && k < b->dims[0]; k++)
        for (i64 w = 0; b->dims[3] >> w; w++)
            if (b->dims[3] >> w & 1) release(rt, *(Buf **)((char *)b->data + k * size + 8 * w));
}}
/* An iteration often makes arrays of the sizes that the one before gave back. */
INLINE i64 with_room(i64 bytes) {{ return (bytes + 255) & -256; }}
INLINE int spare(Runtime *rt, Buf *b) {{
    if (b->ndim < 0 || b->owner != -1 || b->object || b->data != (void *)(b + 1)) return 0;
    if (b->bytes > {SPARED}) return 0;
    for (int k = 0; k < {SPARES}; k++) if (!rt->spares[k]) {{ rt->spares[k] = b; return 1; }}
    Buf *oldest = rt->spares[0];
    for (int k = 1; k < {SPARES}; k++) rt->spares[k - 1] = rt->spares[k];
    rt->spares[{SPARES} - 1] = b;
    free(oldest);
    return 1;
}}
INLINE Buf *from_spares(Runtime *rt, i64 bytes) {{
    for (int k = 0; k < {SPARES}; k++) {{
        Buf *b = rt->spares[k];
        if (b && with_room(b->bytes) == with_room(bytes)) {{ rt->spares[k] = 0; return b; }}
    }}
    return malloc(sizeof(Buf) + with_room(bytes));
}}
QUIET void empty_spares(Runtime *rt) {{
    for (int k = 0; k < {SPARES}; k++) {{ free(rt->spares[k]); rt->spares[k] = 0; }}
}}
/* What it refers to goes with it, one after the other: a chain may be long. */
static __thread Buf *dying;
QUIET void destroy(Runtime *rt, Buf *b) {{
    b->prev->next = b->next;
    if (b->next) b->next->prev = b->prev;
    if (spare(rt, b)) return;
    Buf *others = dying;
    b->next = others ? others->next : 0;
    if (others) {{ others->next = b; return; }}
    for (dying = b; b; b = dying) {{
        if (b->ndim < 0) release_items(rt, b);
        dying = b->next;
        disown(rt, b);
        free_memory(b);
        free(b);
    }}
}}
INLINE void release(Runtime *rt, Buf *b) {{
    if (!b) return;
    i64 left = rt->job ? __atomic_sub_fetch(&b->refs, 1, __ATOMIC_RELAXED) : --b->refs;
    if (left == 0) destroy(rt, b);
}}
INLINE void link_in(Runtime *rt, Buf *b) {{
    b->next = rt->first.next;
    b->prev = &rt->first;
    if (b->next) b->next->prev = b;
    rt->first.next = b;
}}
QUIET Buf *allocate(Runtime *rt, i64 code, i64 size, i64 zero, i64 ndim, ...) {{
    __builtin_va_list args;
    i64 dims[{AXES}], bytes = size;
    __builtin_va_start(args, ndim);
    for (i64 k = 0; k < ndim; k++) {{
        dims[k] = __builtin_va_arg(args, i64);
        if (dims[k] < 0 || __builtin_mul_overflow(bytes, dims[k], &bytes)) return 0;
    }}
    __builtin_va_end(args);
    i64 large = bytes >= {LARGE} && !rt->job;
    Buf *b = large ? malloc(sizeof(Buf)) : from_spares(rt, bytes);
    if (!b) return 0;
    b->refs = 1; b->bytes = bytes; b->code = code; b->ndim = ndim; b->owner = -1;
    b->object = 0; b->form = 0; b->changes = b->steady = 0;
    for (i64 k = 0; k < ndim; k++) b->dims[k] = dims[k];
    b->data = b + 1;
    if (large) {{
        PyArray *made = new_array(rt, code, zero, ndim, dims);
        if (!made) {{ free(b); return 0; }}
        b->owner = (i64)made;
        b->data = made->data;
    }} else if (zero) __builtin_memset(b->data, 0, bytes);
    link_in(rt, b);
    return b;
}}
QUIET Buf *new_list(Runtime *rt, i64 code, i64 size, i64 n, i64 pointers) {{
    if (n < 0 || n >> 40) return 0;
    i64 room = n < 8 ? 8 : n;
    Buf *b = malloc(sizeof(Buf));
    if (!b) return 0;
    b->refs = 1; b->bytes = room * size; b->code = code; b->ndim = -1; b->owner = -1;
    b->dims[0] = n; b->dims[1] = room; b->dims[2] = 0; b->dims[3] = pointers; b->dims[4] = size;
    b->dims[5] = b->dims[6] = b->dims[7] = 0;
    b->object = 0; b->form = 0; b->changes = b->steady = 0;
    b->data = malloc(room * size);
    if (!b->data) {{ free(b); return 0; }}
    link_in(rt, b);
    return b;
}}
/* An object: its attributes are the only item. */
QUIET Buf *new_object(Runtime *rt, i64 size, i64 pointers) {{
    Buf *b = malloc(sizeof(Buf) + size);
    if (!b) return 0;
    b->refs = 1; b->bytes = size; b->code = -1; b->ndim = -1; b->owner = -1;
    b->dims[0] = b->dims[1] = 1; b->dims[2] = 0; b->dims[3] = pointers; b->dims[4] = size;
    b->dims[5] = b->dims[6] = b->dims[7] = 0;
    b->object = 0; b->form = 0; b->changes = b->steady = 0;
    b->data = b + 1;
    __builtin_memset(b->data, 0, size);
    link_in(rt, b);
    return b;
}}
QUIET Buf *adopt(Runtime *rt, i64 owner, void *data) {{
    Buf *b = malloc(sizeof(Buf));
    if (!b) __builtin_trap();
    b->refs = 1; b->bytes = 0; b->code = 0; b->ndim = 0; b->owner = owner; b->data = data;
    b->object = 0; b->form = 0; b->changes = b->steady = 0;
    link_in(rt, b);
    return b;
}}
/* Room for so many items, `front` of them before the first one. */
QUIET int moved(Buf *b, i64 room, i64 front) {{
    i64 size = b->dims[4];
    char *data = malloc(room * size);
    if (!data) return 1;
    __builtin_memcpy(data + front * size, b->data, b->dims[0] * size);
    free_memory(b);
    b->data = data + front * size;
    b->bytes = room * size; b->dims[1] = room; b->dims[2] = front;
    return 0;
}}
QUIET int more_room(Buf *b, i64 n) {{
    i64 need = b->dims[0] + n, size = b->dims[4], room = b->dims[1];
    if (b->dims[2] == 0) {{
        while (room < need) room *= 2;
        void *data = realloc(b->data, room * size);
        if (!data) return 1;
        b->data = data; b->dims[1] = room; b->bytes = room * size;
        return 0;
    }}
    while (room < 2 * need) room *= 2;
    return moved(b, room, 0);
}}
INLINE int room_for(Buf *b, i64 n) {{
    return b->dims[2] + b->dims[0] + n <= b->dims[1] ? 0 : more_room(b, n);
}}
INLINE int grow(Buf *b) {{ return room_for(b, 1); }}
/* Room before the first item, and as much behind the last one, for more than there are: a list that
   goes round (`x.insert(0, x.pop())`) is moved into the room that it has. */
QUIET int amid_room(Buf *b) {{
    i64 n = b->dims[0], room = b->dims[1] < 3 * n + 16 ? 3 * n + 16 : b->dims[1];
    return moved(b, room, (room - n) / 2);
}}
/* A place for an item before the k-th one. */
QUIET int opened(Buf *b, i64 k) {{
    i64 size = b->dims[4], n = b->dims[0];
    if (2 * k < n) {{
        if (b->dims[2] == 0 && amid_room(b)) return 1;
        char *data = b->data;
        __builtin_memmove(data - size, data, k * size);
        b->data = data - size;
        b->dims[2]--;
    }} else {{
        if (grow(b)) return 1;
        char *data = b->data;
        __builtin_memmove(data + (k + 1) * size, data + k * size, (n - k) * size);
    }}
    b->dims[0]++;
    return 0;
}}
/* Without the k-th item. */
QUIET void closed(Buf *b, i64 k) {{
    i64 size = b->dims[4], n = --b->dims[0];
    char *data = b->data;
    if (2 * k < n) {{
        __builtin_memmove(data + size, data, k * size);
        b->data = data + size;
        b->dims[2]++;
    }} else __builtin_memmove(data + k * size, data + (k + 1) * size, (n - k) * size);
}}
INLINE int same_object(const Buf *a, const Buf *b) {{
    return a == b || (a->object && a->object == b->object);
}}
/* Whether two lists of numbers without gaps have the same items. */
QUIET int same_items(const Buf *a, const Buf *b) {{
    u64 bytes = a->dims[0] * a->dims[4];
    return a->dims[0] == b->dims[0] && !__builtin_memcmp(a->data, b->data, bytes);
}}
INLINE void swap(char *data, i64 i, i64 j, i64 size) {{
    char *a = data + i * size, *z = data + j * size;
    for (i64 k = 0; k < size; k++) {{ char x = a[k]; a[k] = z[k]; z[k] = x; }}
}}
QUIET void reverse(Buf *b) {{
    for (i64 i = 0, j = b->dims[0] - 1; i < j; i++, j--) swap(b->data, i, j, b->dims[4]);
}}
/* The index of a table: places of entries, -1 where there is none, -2 where there was one. The hash
   of an entry that is gone is 0, of others it is odd. */
INLINE u64 first_slot(const Buf *b, i64 hash) {{ return (u64)hash >> (64 - b->dims[6]); }}
INLINE u64 next_slot(const Buf *b, u64 s) {{ return (s + 1) & ((1UL << b->dims[6]) - 1); }}
INLINE u64 bits_of(f64 x) {{
    u64 bits;
    x += 0.0;  /* equal zeros are the same */
    __builtin_memcpy(&bits, &x, 8);
    return bits ^ bits >> 32;
}}
INLINE void enter(Buf *b, i64 k, i64 hash) {{
    int *slots = (int *)b->dims[5];
    u64 s = first_slot(b, hash);
    while (slots[s] >= 0) s = next_slot(b, s);
    slots[s] = k;
}}
INLINE void entered(Buf *b, i64 hash) {{ enter(b, b->dims[0], hash); b->dims[0]++; }}
INLINE i64 hash_at(const Buf *b, i64 k) {{
    return *(const i64 *)((const char *)b->data + k * b->dims[4]);
}}
QUIET void enter_all(Buf *b) {{
    __builtin_memset((void *)b->dims[5], -1, 4UL << b->dims[6]);
    for (i64 k = 0; k < b->dims[0]; k++) if (hash_at(b, k)) enter(b, k, hash_at(b, k));
}}
/* An entry is gone, of which nothing is held any longer. */
QUIET void taken_out(Buf *b, i64 k) {{
    i64 size = b->dims[4];
    u64 s = first_slot(b, hash_at(b, k));
    while (((int *)b->dims[5])[s] != k) s = next_slot(b, s);
    ((int *)b->dims[5])[s] = -2;
    if (k == b->dims[0] - 1) b->dims[0]--;
    else {{ __builtin_memset((char *)b->data + k * size, 0, size); b->dims[7]++; }}
    if (b->changes) b->changes = 2;
}}
/* The number of entries, which lie one after the other then. */
QUIET i64 together(Buf *b) {{
    i64 size = b->dims[4], n = 0;
    char *data = b->data;
    if (b->dims[7] == 0) return b->dims[0];
    for (i64 k = 0; k < b->dims[0]; k++)
        if (hash_at(b, k)) {{
            if (n < k) __builtin_memcpy(data + n * size, data + k * size, size);
            n++;
        }}
    b->dims[0] = n; b->dims[7] = 0;
    enter_all(b);
    return n;
}}
/* Room for n more entries. */
QUIET int larger_index(Buf *b, i64 need) {{
    i64 bits = 4;
    while (2 * need > 1L << bits) bits++;
    if (bits > 31) return 1;
    void *slots = malloc(4UL << bits);
    if (!slots) return 1;
    free((void *)b->dims[5]);
    b->dims[5] = (i64)slots; b->dims[6] = bits;
    enter_all(b);
    return 0;
}}
INLINE int more_entries(Buf *b, i64 n) {{
    i64 need = b->dims[0] + n;
    if (2 * b->dims[7] > b->dims[0] && need > b->dims[1]) need = together(b) + n;
    if (room_for(b, n)) return 1;
    return !b->dims[5] || 2 * need > 1L << b->dims[6] ? larger_index(b, need) : 0;
}}
INLINE void forget_entries(Buf *b) {{
    free((void *)b->dims[5]);
    b->dims[0] = b->dims[5] = b->dims[7] = 0;
    if (b->changes) b->changes = 2;
}}
/* Whether a signal's handler raises; other threads of Python's have their turn meanwhile. */
QUIET int ask_python(Runtime *rt) {{
    int held = ((int (*)(void))rt->api[0])();
    int raised = ((int (*)(void))rt->api[1])();
    if (raised) {{
        ((void (*)(void **, void **, void **))rt->api[2])(rt->error, rt->error + 1, rt->error + 2);
        ((void (*)(void **, void **, void **))rt->api[3])(rt->error, rt->error + 1, rt->error + 2);
    }}
    ((void (*)(int))rt->api[4])(held);
    return raised;
}}
/* What Python's clocks tell. No loop that asks for it is a kernel, which has no `rt`. */
INLINE i64 clock_of(Runtime *rt, int kind) {{
    Time t;
    clock_gettime(kind, &t);
    return t.seconds * 1000000000L + t.nanoseconds;
}}
QUIET int is_wanted(Runtime *rt) {{
    if (rt->job && has_failed(rt->job)) return 1;
    if (rt->helps) return 0;
    i64 now = clock_of(rt, MONOTONIC);
    if (now < rt->deadline) return 0;
    i64 first = rt->deadline == 0;
    rt->deadline = now + {_NANOSECONDS}L;
    return first ? 0 : ask_python(rt);
}}
/* A function counts up to 0 in a variable of its own: C does not know what changes rt->ticks. */
#define TICK(n) if (__builtin_expect((*ticks += n) >= 0, 0) \\
                    && (*ticks = -{EVERY}, is_wanted(rt))) return -1
/* Of a test before one that may leave: what follows it lies away from the loop's own code. */
#ifdef __has_builtin
#if __has_builtin(__builtin_expect_with_probability)
#define RARELY(x) __builtin_expect_with_probability(x, 0, 0.9999)
#endif
#endif
#ifndef RARELY
#define RARELY(x) __builtin_expect(x, 0)
#endif
INLINE int overlap(const void *a, const void *a_end, const void *b, const void *b_end) {{
    return (const char *)a < (const char *)b_end && (const char *)b < (const char *)a_end;
}}
/* Whether elements of an array that may be written to lie in one place. */
QUIET int overlaps_itself(const PyArray *a) {{
    i64 reach = 0, seen = 0;
    if ((a->flags & {direct.FLAT}) || !(a->flags & {direct.WRITEABLE})) return 0;
    for (int d = 0; d < a->nd; d++) if (a->dims[d] == 0) return 0;
    for (int n = 0; n < a->nd; n++) {{  /* from the least stride on */
        int next = -1;
        for (int d = 0; d < a->nd; d++)
            if (!(seen >> d & 1)
                && (next < 0 || __builtin_labs(a->strides[d]) < __builtin_labs(a->strides[next])))
                next = d;
        seen |= 1L << next;
        if (a->dims[next] == 1) continue;
        if (__builtin_labs(a->strides[next]) <= reach) return 1;
        reach += __builtin_labs(a->strides[next]) * (a->dims[next] - 1);
    }}
    return 0;
}}
QUIET int share_memory(PyArray *const *arrays, const i64 *sizes, i64 n) {{
    char *low[64], *end[64];
    i64 full = 0;
    if (n > 64) return 1;
    for (i64 k = 0; k < n; k++) {{
        const PyArray *a = arrays[k];
        i64 empty = 0;
        low[full] = a->data;
        end[full] = a->data + sizes[k];
        for (int d = 0; d < a->nd; d++) {{
            i64 far = (a->dims[d] - 1) * a->strides[d];
            empty |= a->dims[d] == 0;
            if (far < 0) low[full] += far; else end[full] += far;
        }}
        if (empty) continue;
        if (overlaps_itself(a)) return 1;
        for (i64 j = 0; j < full; j++) if (low[j] < end[full] && low[full] < end[j]) return 1;
        full++;
    }}
    return 0;
}}
{arithmetic.NUMBERS}INLINE f64 next_double(bitgen *g) {{ return g->next_double(g->state); }}
"""


def of_python(lists: bool, calls: bool) -> str:
    """The C that reads Python's lists and gives them back, and that calls NumPy's functions."""
    if not (lists or calls):
        return ""
    names = marshalling.names(_API.index(marshalling.FUNCTIONS[0]))
    end = len(_API) + len(marshalling.OBJECTS)
    names += direct.names(_API.index(next(iter(direct.FUNCTIONS))), end)
    return names + (direct.C if calls else "") + (marshalling.C if lists else "")


# What a call has left is given back; Python's lock is taken if something is Python's.
FINISH = f"""\
void finish(Runtime *rt) {{
    int held = -1;
    empty_spares(rt);
    for (Buf *b = rt->first.next, *next; b; b = next) {{
        int is_owned = b->owner >= {direct.OWN};
        next = b->next;
        if (held < 0 && (b->object || is_owned)) held = ((int (*)(void))rt->api[0])();
        if (b->object) ((void (*)(void *))rt->api[6])(b->object);
        if (is_owned) ((void (*)(void *))rt->api[6])((void *)b->owner);
        free_memory(b);
        free(b);
    }}
    if (held >= 0) ((void (*)(int))rt->api[4])(held);
}}
"""


def draws() -> str:
    """The C that calls NumPy's distributions."""
    from .random import DISTRIBUTIONS, SEEDED

    made = SEEDED
    for k, (name, (_, kind)) in enumerate(DISTRIBUTIONS.items()):
        result = kind.split(" ", 1)[0]
        types = kind[kind.index(")(") + 2 : -1].split(", ")
        params = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
        args = ", ".join(f"a{i}" for i in range(len(types)))
        made += (
            f"INLINE {result} draw_{name}(Runtime *rt, {params}) "
            f"{{ return (({kind})rt->draws[{k}])({args}); }}\n"
        )
    return made
