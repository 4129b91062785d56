"""Lists and dicts that a region is given: C reads them when it begins, and gives the changes back
at its end.

The type of the items is that of an example; C looks at each item of each call. A *form* says it in
letters: `i`, `f`, `b` an int, a float, a bool; `I`, `F`, `B` NumPy's; `u` and a representation, the
letters of several kinds and a full stop: a number of any of these; `n` None; `?` what may be None;
`s` text, `y` bytes; parentheses a tuple, brackets a list, braces a dict's key and value. A list
that several names or rows share is read once. What a region may have changed is compared with the
caller's list, item by item, and only what differs is replaced: lists stay the objects that they
are, and so do items that are as they were.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from .dicts import HASH, MIX, class_of_key
from .nest import CODES
from .numbers import join_numbers
from .read import Reader
from .values import (
    ANYWHERE,
    CHAR,
    REPRESENTATION,
    Conflict,
    Known,
    Lst,
    Num,
    OrNone,
    Table,
    Tup,
    Unreadable,
    Value,
)
from .variables import item_type, join

# Whether lists and floats lie in memory as the C below takes it, which a build of Python without a
# lock does not promise.
_LENGTH, _VALUE = [1, 2, 3], 1.5
KNOWN = (
    ctypes.c_ssize_t.from_address(id(_LENGTH) + 16).value == len(_LENGTH)
    and ctypes.c_double.from_address(id(_VALUE) + 16).value == _VALUE
)
FEW = 8  # a list of so many items is taken as a tuple, as long as that will do
_DEEP = 4  # lists in one another
_NAMES = {
    int: "int", float: "float", bool: "bool", np.int64: "int64", np.float64: "float64",
    np.bool_: "bool_",
}  # fmt: skip
_TEXTS: dict[Any, Num] = {str: CHAR, bytes: Num("", "i64", ("int",), low=0, high=255)}
_LETTERS = {"int": "i", "float": "f", "bool": "b", "int64": "I", "float64": "F", "bool_": "B"}


@dataclass
class Given:
    """A list or dict that a region is given. path: how it is found; name: the C name, and its
    root."""

    path: tuple
    name: str
    form: str


def type_of(r: Reader, some: Sequence[Any], path: tuple, name: str = "", depth: int = 0) -> Any:
    """The type of lists, or of dicts, such as these, with what they were seen to be given. path: of
    what the region is given; depth: of the containers there that these are. It is a Conflict where
    C does not read such ones."""
    of: Any = None
    if type(some[0]) in _TEXTS:
        return Lst(name, _TEXTS[type(some[0])], frozenset((name or ANYWHERE,)), made=type(some[0]))
    is_dict = type(some[0]) is dict
    if is_dict:
        entries = [entry for x in some for entry in x.items()]
        of = _entry(r, entries, path, depth) if entries else None
    else:
        of = _of_examples(r, list(chain.from_iterable(some)), path, depth)
    if isinstance(of, Conflict):
        return of
    site = "list", "given", path, depth
    seen = r.memory.get(site, {}).get("of")
    if seen is not None:
        of = item_type(seen if of is None else join(of, seen, r))
        if isinstance(of, Conflict):
            return of
    roots = frozenset((name or ANYWHERE,))
    if is_dict:
        return Table(name, of, roots, frozenset((site,)), dict)
    return Lst(name, of, roots, frozenset((site,)))


def _entry(r: Reader, entries: Sequence[tuple], path: tuple, depth: int) -> Any:
    """The type of a dict's entries."""
    key = _of_examples(r, [k for k, _ in entries], path, _DEEP)
    value = _of_examples(r, [x for _, x in entries], path, depth)
    for x in (key, value):
        if isinstance(x, Conflict):
            return x
    try:
        class_of_key(key)
    except Unreadable as e:
        return Conflict(str(e))
    return Tup((HASH, key, value))


def _of_examples(r: Reader, values: Sequence[Any], path: tuple, depth: int) -> Any:
    kinds = set(map(type, values))
    if not kinds:
        return None
    if type(None) in kinds:
        if len(kinds) == 1:
            return Known(None)
        of = _of_examples(r, [x for x in values if x is not None], path, depth)
        if isinstance(of, (Num, Tup)):
            return OrNone(of, "")
        return of if isinstance(of, Conflict) else Conflict("items that are lists or None")
    if kinds in ({str}, {bytes}):
        return type_of(r, values[:1], path)
    if kinds in ({list}, {dict}):
        if depth == _DEEP:
            return Conflict("lists in lists in lists")
        return type_of(r, values, path, depth=depth + 1)
    if kinds == {tuple}:
        if len(set(map(len, values))) > 1:
            return Conflict("tuples of one length or another")
        parts = tuple([_of_examples(r, x, path, _DEEP) for x in zip(*values, strict=True)])
        return next((x for x in parts if isinstance(x, Conflict)), Tup(parts))
    made: Any = None
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        name = _NAMES.get(kind)
        if name is None:
            return Conflict(f"items of type {kind.__name__}")
        x = Num("", REPRESENTATION[name], (name,))
        made = x if made is None else join_numbers(made, x)
        if isinstance(made, Conflict):
            return made
    return made


def form_of(x: Value) -> str | None:
    """The form of items of a type; None if C does not read such ones."""
    if x is None:
        return ""
    if isinstance(x, Num):
        letters = [_LETTERS.get(kind) for kind in x.kinds]
        if None in letters or x.rep not in ("f64", "i64", "bool"):
            return None
        text = "".join(map(str, letters))
        return text if len(text) == 1 else f"u{'f' if x.rep == 'f64' else 'i'}{text}."
    if isinstance(x, Known):
        return "n" if x.value is None else None
    if isinstance(x, OrNone):
        inner = form_of(x.value) if isinstance(x.value, (Num, Tup)) else None
        return None if inner is None or "[" in inner or "{" in inner else f"?{inner}"
    if isinstance(x, Lst) and x.made in _TEXTS:
        return "s" if x.made is str else "y"
    if isinstance(x, Lst) and x.made is list:
        inner = form_of(x.of)
        return None if inner is None else f"[{inner}]"
    if isinstance(x, Table) and x.made is dict:
        parts = [] if x.of is None else [form_of(y) for y in x.of.items[1:]]
        return None if None in parts else f"{{{''.join(map(str, parts))}}}"
    if isinstance(x, Tup) and x.made is tuple:
        parts = [form_of(y) for y in x.items]
        return None if None in parts else f"({''.join(map(str, parts))})"
    return None


def lines(lists: Sequence[Given], aside: int, words: int, written: frozenset[str]) -> list[str]:
    """The C that reads the lists. aside: how many lists are taken as tuples. words: of input,
    before the lists' own. written: the roots of memory that may change."""
    if not lists:
        return []
    rows = int(ANYWHERE in written)
    changes = [rows or int(x.name in written) for x in lists]
    forms = ", ".join(f'"{x.form}"' for x in lists)
    return [
        f"Buf *lists[{len(lists)}]; static const char *const forms[] = {{{forms}}};",
        f"{{ static const char changes[] = {{{', '.join(map(str, changes))}}};",
        f"i64 fits = read_lists(rt, in + {words}, lists, forms, changes, {rows}, {len(lists)}, "
        f"{aside}); if (fits < 1) return fits; }}",
        *(f"Buf *const {x.name} = lists[{k}];" for k, x in enumerate(lists)),
    ]


_F64, _I64, _BOOL, _U32 = (CODES.index(rep) for rep in ("f64", "i64", "bool", "u32"))

# What is called of Python's: see `runtime.api`.
_CALLS = {
    "PyList_SetItem": "int, void *, i64, void *", "PyList_Append": "int, void *, void *",
    "PyList_SetSlice": "int, void *, i64, i64, void *", "PyList_New": "void *, i64",
    "PyTuple_Size": "i64, void *", "PyTuple_GetItem": "void *, void *, i64",
    "PyTuple_New": "void *, i64", "PyTuple_SetItem": "int, void *, i64, void *",
    "PyFloat_AsDouble": "f64, void *", "PyFloat_FromDouble": "void *, f64",
    "PyLong_AsLongLongAndOverflow": "i64, void *, int *", "PyLong_FromLongLong": "void *, i64",
    "PyObject_IsTrue": "int, void *", "PyBool_FromLong": "void *, i64",
    "PyDict_New": "void *", "PyDict_Size": "i64, void *", "PyDict_Clear": "void, void *",
    "PyDict_Copy": "void *, void *", "PyDict_Next": "int, void *, i64 *, void **, void **",
    "PyDict_GetItem": "void *, void *, void *",
    "PyDict_SetItem": "int, void *, void *, void *",
    "PyObject_CallFunctionObjArgs": "void *, void *, ...", "Py_IncRef": "void, void *",
    "Py_DecRef": "void, void *", "PyUnicode_GetLength": "i64, void *",
    "PyUnicode_AsUCS4": "void *, void *, void *, i64, int",
    "PyUnicode_FromKindAndData": "void *, int, void *, i64",
    "PyBytes_Size": "i64, void *", "PyBytes_AsString": "void *, void *",
    "PyObject_RichCompareBool": "int, void *, void *, int",
}  # fmt: skip
FUNCTIONS = tuple(_CALLS)
OBJECTS = (None, list, dict, tuple, int, float, bool, np.int64, np.float64, np.bool_, str, bytes)


def names(first: int) -> str:
    """The C names of what is called. first: the place of FUNCTIONS among what compiled code is
    given of Python's; OBJECTS are behind them."""
    made = ""
    for k, (name, types) in enumerate(_CALLS.items()):
        result, _, params = types.partition(", ")
        made += f"#define {name} (({result} (*)({params}))rt->api[{first + k}])\n"
    for k, x in enumerate(OBJECTS):
        name = "NONE" if x is None else f"NUMPY_{x.__name__}" if x.__module__ == "numpy" else (
            f"PYTHON_{x.__name__}")  # fmt: skip
        made += f"#define {name} rt->api[{first + len(FUNCTIONS) + k}]\n"
    return made.replace("NUMPY_bool_\n", "NUMPY_bool\n")


# Reading lists, and giving them back.
C = f"""
#define TYPE(x) (((void **)(x))[1])
#define LENGTH(list) (((i64 *)(list))[2])
#define ITEM(list, k) (((void ***)(list))[3][k])
/* The lists that were read, by their objects, where some may change. */
typedef struct {{ void **objects; Buf **lists; i64 n, bits, rows; int is_odd, may_change; }} Shared;
INLINE u64 slot_of(const Shared *s, const void *x) {{
    return ((u64)x >> 4) * 0x9E3779B97F4A7C15UL >> (64 - s->bits);
}}
/* Where an object is, or would be, among the lists that were read. */
static u64 found_at(const Shared *s, const void *x) {{
    u64 k = slot_of(s, x), mask = (1UL << s->bits) - 1;
    while (s->objects[k] && s->objects[k] != x) k = (k + 1) & mask;
    return k;
}}
static void add_list(Shared *s, void *x, Buf *b) {{
    if (!s->bits || 2 * (s->n + 1) > 1L << s->bits) {{
        Shared old = *s;
        s->bits = old.bits ? old.bits + 1 : 4;
        s->objects = calloc(1L << s->bits, 8);
        s->lists = malloc(8L << s->bits);
        if (!s->objects || !s->lists) __builtin_trap();
        for (i64 k = 0; old.bits && k < 1L << old.bits; k++)
            if (old.objects[k]) {{
                u64 at = found_at(s, old.objects[k]);
                s->objects[at] = old.objects[k]; s->lists[at] = old.lists[k];
            }}
        free(old.objects); free(old.lists);
    }}
    u64 at = found_at(s, x);
    s->objects[at] = x; s->lists[at] = b; s->n++;
}}
/* The form behind one of an item, and the words of an item. */
static const char *behind(const char *f) {{
    i64 depth = 0;
    if (*f == '?') return behind(f + 1);
    if (*f == 'u') {{ while (*f != '.') f++; return f + 1; }}
    do {{
        depth += (*f == '(' || *f == '[' || *f == '{{') - (*f == ')' || *f == ']' || *f == '}}');
        f++;
    }} while (depth);
    return f;
}}
static i64 words_in(const char *f) {{
    i64 n = 0;
    switch (*f) {{
    case 'n': return 0;
    case 'u': return 2;
    case '?': return words_in(f + 1) + 1;
    case '(':
        for (f++; *f != ')'; f = behind(f)) n += words_in(f);
        return n;
    default: return 1;
    }}
}}
static i64 lists_in(const char *f, i64 at) {{
    if (*f == '[' || *f == '{{' || *f == 's' || *f == 'y') return 1L << at;
    if (*f != '(') return 0;
    i64 found = 0;
    for (f++; *f != ')'; f = behind(f)) {{ found |= lists_in(f, at); at += words_in(f); }}
    return found;
}}
/* The form of a dict's values, and the words before one in an entry. */
static const char *values_in(const char *form) {{ return behind(form + 1); }}
static i64 words_before(const char *form) {{ return 1 + words_in(form + 1); }}
static u64 hash_of(const char *f, const Word *w, u64 h) {{
    if (*f == '(') {{
        for (f++; *f != ')'; w += words_in(f), f = behind(f)) h = hash_of(f, w, h);
        return h;
    }}
    int is_float = *f == 'f' || *f == 'F' || (*f == 'u' && f[1] == 'f');
    return ((h ^ h >> 29) + (is_float ? bits_of(w->f) : (u64)w->i)) * {MIX};
}}
static int is_flat(char letter) {{
    return letter != 0 && letter != 'n' && __builtin_strchr("ifbIFB", letter) != 0;
}}
INLINE i64 size_of(const char *f) {{
    if (*f == '}}') return 8;
    if (is_flat(*f)) return *f == 'b' || *f == 'B' ? 1 : 8;
    i64 n = *f == ']' ? 1 : words_in(f);
    return 8 * (n < 1 ? 1 : n);
}}
INLINE int read_number(Runtime *rt, char letter, int as_float, void *x, Word *w) {{
    void *type = TYPE(x);
    int over = 0;
    switch (letter) {{
    case 'f': case 'F':
        if (type != (letter == 'f' ? PYTHON_float : NUMPY_float64)) return 0;
        w->f = PyFloat_AsDouble(x);
        return 1;
    case 'i': case 'I':
        if (type != (letter == 'i' ? PYTHON_int : NUMPY_int64)) return 0;
        i64 n = PyLong_AsLongLongAndOverflow(x, &over);
        if (over) return 0;
        if (!as_float) {{ w->i = n; return 1; }}
        if (n > 1L << 53 || n < -(1L << 53)) return 0;
        w->f = n;
        return 1;
    default:
        if (type != (letter == 'b' ? PYTHON_bool : NUMPY_bool)) return 0;
        w->i = PyObject_IsTrue(x);
        return 1;
    }}
}}
static Buf *read_list(Runtime *rt, const char *form, void *x, Shared *s, int changes);
static int read_value(Runtime *rt, const char *f, void *x, Word **w, Shared *s) {{
    i64 n, k = 0;
    int fits;
    switch (*f) {{
    case 'n': return x == NONE;
    case '?':
        if (x == NONE) {{
            for (n = words_in(f); k < n; k++) (*w)++->i = 0;
            return 1;
        }}
        fits = read_value(rt, f + 1, x, w, s);
        (*w)++->i = 1;
        return fits;
    case '(':
        if (TYPE(x) != PYTHON_tuple) return 0;
        n = PyTuple_Size(x);
        for (f++; *f != ')'; f = behind(f), k++)
            if (k >= n || !read_value(rt, f, PyTuple_GetItem(x, k), w, s)) return 0;
        return k == n;
    case '[': case '{{': case 's': case 'y':
        return ((*w)++->p = read_list(rt, f, x, s, s->rows)) != 0;
    case 'u':
        for (n = f[1] == 'f', f += 2; *f != '.'; f++, k++)
            if (read_number(rt, *f, n, x, *w)) {{ (*w)[1].i = k; *w += 2; return 1; }}
        return 0;
    default: return read_number(rt, *f, 0, x, (*w)++);
    }}
}}
static int is_nan(const char *f, const Word *w) {{
    if (*f == '(') {{
        for (f++; *f != ')'; w += words_in(f), f = behind(f)) if (is_nan(f, w)) return 1;
        return 0;
    }}
    return (*f == 'f' || *f == 'F' || (*f == 'u' && f[1] == 'f')) && w->f != w->f;
}}
static Word *entry_of(Buf *b, i64 k) {{ return (Word *)((char *)b->data + k * b->dims[4]); }}
static int read_entries(Runtime *rt, Buf *b, Shared *s) {{
    const char *key = b->form + 1, *value = values_in(b->form);
    i64 n = PyDict_Size(b->object), before = words_before(b->form), at = 0;
    void *k, *x;
    if (more_entries(b, n)) return 0;
    while (PyDict_Next(b->object, &at, &k, &x)) {{
        Word *entry = entry_of(b, b->dims[0]), *w = entry + 1;
        if (b->dims[0] == n || !read_value(rt, key, k, &w, s) || is_nan(key, entry + 1)) return 0;
        w = entry + before;
        if (!read_value(rt, value, x, &w, s)) return 0;
        entry->i = hash_of(key, entry + 1, 0) | 1;
        entered(b, entry->i);
    }}
    return 1;
}}
/* Text is read once for each place where it is: it has no other names that show. */
static Buf *read_text(Runtime *rt, const char *form, void *x) {{
    int is_text = *form == 's';
    if (TYPE(x) != (is_text ? PYTHON_str : PYTHON_bytes)) return 0;
    i64 n = is_text ? PyUnicode_GetLength(x) : PyBytes_Size(x);
    Buf *b = new_list(rt, is_text ? {_U32} : {_I64}, is_text ? 4 : 8, n, 0);
    if (!b) return 0;
    b->form = form; b->object = x; b->refs = 2;
    Py_IncRef(x);
    if (is_text) {{ if (!PyUnicode_AsUCS4(x, b->data, n, 0)) __builtin_trap(); return b; }}
    const unsigned char *bytes = PyBytes_AsString(x);
    for (i64 k = 0; k < n; k++) ((i64 *)b->data)[k] = bytes[k];
    return b;
}}
static Buf *read_list(Runtime *rt, const char *form, void *x, Shared *s, int changes) {{
    if (*form == 's' || *form == 'y') return read_text(rt, form, x);
    int is_dict = *form == '{{';
    if (TYPE(x) != (is_dict ? PYTHON_dict : PYTHON_list)) return 0;
    if (s->n) {{
        u64 at = found_at(s, x);
        if (s->objects[at]) {{
            if (s->lists[at]->form != form) {{ s->is_odd = 1; return 0; }}
            s->lists[at]->refs++;
            return s->lists[at];
        }}
    }}
    const char *f = form + 1;
    i64 n = is_dict ? PyDict_Size(x) : LENGTH(x), size = size_of(f), lists = 0;
    int nothing = *f == ']' || *f == '}}', flat = is_flat(*f) && !is_dict;
    if (is_dict && !nothing) {{
        i64 before = words_before(form);
        size = 8 * (before + words_in(values_in(form)));
        lists = lists_in(values_in(form), before);
    }} else if (!flat && !nothing) lists = lists_in(f, 0);
    i64 code = flat ? (size == 1 ? {_BOOL} : *f == 'f' || *f == 'F' ? {_F64} : {_I64}) : -1;
    if (nothing && n) return 0;
    Buf *b = new_list(rt, code, size, n, lists);
    if (!b) return 0;
    b->dims[0] = 0;
    b->form = form; b->object = x; b->changes = changes; b->refs = 2; /* one is the call's */
    Py_IncRef(x);
    if (s->may_change) add_list(s, x, b);
    if (is_dict) return nothing || read_entries(rt, b, s) ? b : 0;
    for (i64 k = 0; k < n; k++) {{
        void *item = ITEM(x, k);
        Word got, *w = &got;
        if (!flat) {{
            w = (Word *)((char *)b->data + k * size);
            if (!read_value(rt, f, item, &w, s)) return 0;
        }} else {{
            if (*f == 'f' && TYPE(item) == PYTHON_float) got.f = ((f64 *)item)[2];
            else if (!read_number(rt, *f, 0, item, &got)) return 0;
            if (size == 1) ((unsigned char *)b->data)[k] = got.i;
            else ((Word *)b->data)[k] = got;
        }}
        b->dims[0] = k + 1;
    }}
    return b;
}}
/* 1; 0 if a list is not what the region is for, -2 if lists are shared in a way that it is not. */
QUIET i64 read_lists(Runtime *rt, const Word *in, Buf **lists, const char *const *forms,
                     const char *changes, int rows, i64 n, i64 aside) {{
    Shared s = {{0, 0, 0, 0, rows, 0, rows}};
    int held = ((int (*)(void))rt->api[0])(), fits = 1;
    for (i64 k = 0; k < n; k++) s.may_change |= changes[k];
    for (i64 k = 0; k < n && fits; k++) {{
        i64 known = s.n;
        lists[k] = read_list(rt, forms[k], in[k].p, &s, changes[k]);
        fits = lists[k] != 0;
        int is_text = *forms[k] == 's' || *forms[k] == 'y';
        if (s.may_change && fits && s.n == known && !is_text)
            s.is_odd = 1; /* it has another name */
    }}
    for (i64 k = 0; k < aside && fits && s.n; k++)
        s.is_odd |= s.objects[found_at(&s, in[n + k].p)] != 0;
    free(s.objects); free(s.lists);
    ((void (*)(int))rt->api[4])(held);
    return s.is_odd ? -2 : fits;
}}
static int is_number(Runtime *rt, char letter, int as_float, void *x, const Word *w) {{
    Word now;
    return read_number(rt, letter, as_float, x, &now) && now.i == w->i;
}}
static void *list_object(Runtime *rt, const char *form, Buf *b);
/* Whether an item is as it was. */
static int is_same(Runtime *rt, const char *f, void *x, const Word *w) {{
    i64 k = 0;
    int fits;
    void *made;
    switch (*f) {{
    case 'n': return x == NONE;
    case '?': return w[words_in(f + 1)].i ? is_same(rt, f + 1, x, w) : x == NONE;
    case '(':
        if (TYPE(x) != PYTHON_tuple) return 0;
        for (f++; *f != ')'; w += words_in(f), f = behind(f))
            if (!is_same(rt, f, PyTuple_GetItem(x, k++), w)) return 0;
        return 1;
    case 's': case 'y':
        made = list_object(rt, f, w->p);
        fits = x == made || (TYPE(x) == TYPE(made) && PyObject_RichCompareBool(x, made, 2) == 1);
        Py_DecRef(made);
        return fits;
    case '[': case '{{': return x == ((Buf *)w->p)->object;
    case 'u': return is_number(rt, f[2 + w[1].i], f[1] == 'f', x, w);
    default: return is_number(rt, *f, 0, x, w);
    }}
}}
static void *sure(void *x) {{ if (!x) __builtin_trap(); return x; }}
static void *made_number(Runtime *rt, char letter, int as_float, const Word *w) {{
    void *x, *type, *y;
    switch (letter) {{
    case 'f': case 'F': x = PyFloat_FromDouble(w->f); type = NUMPY_float64; break;
    case 'i': case 'I':
        x = PyLong_FromLongLong(as_float ? (i64)w->f : w->i); type = NUMPY_int64; break;
    default: x = PyBool_FromLong(w->i); type = NUMPY_bool;
    }}
    if (letter > 'Z') return sure(x);
    y = PyObject_CallFunctionObjArgs(type, sure(x), (void *)0);
    Py_DecRef(x);
    return sure(y);
}}
static void *made_value(Runtime *rt, const char *f, const Word *w) {{
    i64 n = 0;
    void *x;
    switch (*f) {{
    case 'n': Py_IncRef(NONE); return NONE;
    case '?':
        if (w[words_in(f + 1)].i) return made_value(rt, f + 1, w);
        Py_IncRef(NONE);
        return NONE;
    case '(':
        for (const char *g = f + 1; *g != ')'; g = behind(g)) n++;
        x = sure(PyTuple_New(n));
        n = 0;
        for (f++; *f != ')'; w += words_in(f), f = behind(f))
            PyTuple_SetItem(x, n++, made_value(rt, f, w));
        return x;
    case '[': case '{{': case 's': case 'y': return list_object(rt, f, w->p);
    case 'u': return made_number(rt, f[2 + w[1].i], f[1] == 'f', w);
    default: return made_number(rt, *f, 0, w);
    }}
}}
static Word *item_of(Buf *b, i64 k, Word *small) {{
    i64 size = b->dims[4];
    char *at = (char *)b->data + k * size;
    if (size > 1) return (Word *)at;
    small->i = *(unsigned char *)at;
    return small;
}}
static void extend_object(Runtime *rt, Buf *b, i64 from, i64 n) {{
    Word small;
    for (i64 k = from; k < n; k++) {{
        void *x = made_value(rt, b->form + 1, item_of(b, k, &small));
        if (PyList_Append(b->object, x)) __builtin_trap();
        Py_DecRef(x);
    }}
}}
static void set_entry(Runtime *rt, Buf *b, const Word *entry, void *x) {{
    void *k = made_value(rt, b->form + 1, entry + 1);
    if (PyDict_SetItem(b->object, k, x)) __builtin_trap();
    Py_DecRef(k);
    Py_DecRef(x);
}}
static void add_entries(Runtime *rt, Buf *b, i64 from, void *old) {{
    const char *f = values_in(b->form);
    for (i64 k = from; k < b->dims[0]; k++) {{
        Word *entry = entry_of(b, k), *w = entry + words_before(b->form);
        void *x = 0;
        if (old) {{
            void *key = made_value(rt, b->form + 1, entry + 1);
            x = PyDict_GetItem(old, key);
            Py_DecRef(key);
        }}
        if (x && is_same(rt, f, x, w)) Py_IncRef(x);
        else x = made_value(rt, f, w);
        set_entry(rt, b, entry, x);
    }}
}}
static void give_back_dict(Runtime *rt, Buf *b) {{
    const char *f = values_in(b->form);
    i64 n = 0, at = 0;
    void *k, *x;
    together(b);
    if (b->changes == 2) {{ /* entries are gone: what is left is put in again, in its order */
        void *old = sure(PyDict_Copy(b->object));
        PyDict_Clear(b->object);
        add_entries(rt, b, 0, old);
        Py_DecRef(old);
        return;
    }}
    while (n < b->dims[0] && PyDict_Next(b->object, &at, &k, &x)) {{
        Word *entry = entry_of(b, n++), *w = entry + words_before(b->form);
        if (!is_same(rt, f, x, w)) set_entry(rt, b, entry, made_value(rt, f, w));
    }}
    add_entries(rt, b, n, 0);
}}
static void *list_object(Runtime *rt, const char *form, Buf *b) {{
    if (!b->object && *form == 's') {{
        b->form = form;
        b->object = sure(PyUnicode_FromKindAndData(4, b->data, b->dims[0]));
    }} else if (!b->object) {{
        b->form = form;
        b->object = sure(*form == '{{' ? PyDict_New() : PyList_New(0));
        if (form[1] == ']' || form[1] == '}}') {{ }}
        else if (*form == '{{') {{ together(b); add_entries(rt, b, 0, 0); }}
        else extend_object(rt, b, 0, b->dims[0]);
    }}
    Py_IncRef(b->object);
    return b->object;
}}
QUIET void give_back_lists(Runtime *rt) {{
    int held = ((int (*)(void))rt->api[0])();
    for (Buf *b = rt->first.next; b; b = b->next) {{
        if (!b->changes || b->form[1] == ']' || b->form[1] == '}}') continue;
        if (*b->form == '{{') {{ give_back_dict(rt, b); continue; }}
        i64 n = b->dims[0], m = LENGTH(b->object);
        Word small;
        if (n < m) {{ PyList_SetSlice(b->object, n, m, 0); m = n; }}
        for (i64 k = 0; k < m; k++) {{
            Word *w = item_of(b, k, &small);
            if (!is_same(rt, b->form + 1, ITEM(b->object, k), w))
                PyList_SetItem(b->object, k, made_value(rt, b->form + 1, w));
        }}
        extend_object(rt, b, m, n);
    }}
    ((void (*)(int))rt->api[4])(held);
}}
"""
