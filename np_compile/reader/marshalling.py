"""The C that reads the lists, dicts, sets and objects that a region is given, and gives them back,
by their forms (`given.py`)."""

from __future__ import annotations

import copyreg

import numpy as np

from . import direct
from .dicts import MIX
from .given import RANK
from .nest import CODES
from .values import DTYPE_OF, SIZES

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
    "PySet_New": "void *, void *", "PySet_Size": "i64, void *", "PySet_Clear": "int, void *",
    "PySet_Add": "int, void *, void *", "PyObject_GetIter": "void *, void *",
    "PyIter_Next": "void *, void *",
    "PyObject_CallFunctionObjArgs": "void *, void *, ...", "Py_IncRef": "void, void *",
    "Py_DecRef": "void, void *", "PyUnicode_GetLength": "i64, void *",
    "PyUnicode_AsUCS4": "void *, void *, void *, i64, int",
    "PyUnicode_FromKindAndData": "void *, int, void *, i64",
    "PyBytes_Size": "i64, void *", "PyBytes_AsString": "void *, void *",
    "PyObject_RichCompareBool": "int, void *, void *, int",
    "PyObject_GetAttr": "void *, void *, void *",
    "PyObject_GenericSetAttr": "int, void *, void *, void *",
}  # fmt: skip
FUNCTIONS = tuple(_CALLS)
OBJECTS = (
    None, list, dict, set, tuple, int, float, bool, np.int64, np.float64, np.bool_, str, bytes,
    copyreg.__newobj__,  # type: ignore[attr-defined]
)  # fmt: skip


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


_TYPE_NUMBERS = ", ".join(str(DTYPE_OF[x].num if x in DTYPE_OF else -1) for x in CODES)
_ITEM_SIZES = ", ".join(str(SIZES[x]) for x in CODES)

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
    if (*f == '@') return behind(f + 2);
    if (*f == 'a') return f + 3 + 2 * (f[2] - '0');
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
    case 'n': case '}}': return 0;
    case 'u': return 2;
    case '?': return words_in(f + 1) + 1;
    case '(':
        for (f++; *f != ')'; f = behind(f)) n += words_in(f);
        return n;
    case 'a':
        for (const char *g = f + 3; g < behind(f); g++) n += *g == '.';
        return n + 3;
    default: return 1;
    }}
}}
static i64 lists_in(const char *f, i64 at) {{
    if (__builtin_strchr("[{{sya@", *f)) return 1L << at;
    if (*f != '(') return 0;
    i64 found = 0;
    for (f++; *f != ')'; f = behind(f)) {{ found |= lists_in(f, at); at += words_in(f); }}
    return found;
}}
/* The form of a dict's values, and the words before one in an entry. */
static const char *values_in(const char *form) {{ return behind(form + 1); }}
static i64 words_before(const char *form) {{ return 1 + words_in(form + 1); }}
/* Whether a form is a set's: keys alone. */
static int is_set(const char *form) {{
    return *form == '{{' && form[1] != '}}' && *values_in(form) == '}}';
}}
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
static void *sure(void *x) {{ if (!x) __builtin_trap(); return x; }}
static Buf *read_list(Runtime *rt, const char *form, void *x, Shared *s, int changes);
static Buf *read_object(Runtime *rt, const char *form, void *x, Shared *s);
static const int types[] = {{{_TYPE_NUMBERS}}}, sizes[] = {{{_ITEM_SIZES}}};
/* The extents of an array and its strides in elements, which has no gaps; whether they are those of
   the form. Words are read or written. */
static int read_array(Runtime *rt, const char *f, void *x, Word **words) {{
    PyArray *a = x;
    i64 n = f[2] - '0', wanted = {direct.FLAT | direct.WRITEABLE | direct.ALIGNED};
    i64 steps[{RANK}], step = 1;
    Word *w = *words;
    if (TYPE(x) != ARRAY_TYPE || a->nd != n || TYPE_NUMBER(a->descr) != types[f[1] - 'A']) return 0;
    if ((a->flags & wanted) != wanted || BYTE_ORDER_OF(a->descr) == '>') return 0;
    for (i64 k = n - 1; k >= 0; k--) {{ steps[k] = step; step *= a->dims[k]; }}
    w[0].p = adopt(rt, (i64)x, a->data);
    w[1].p = a->data;
    Py_IncRef(x);
    w += 2;
    for (i64 k = 0; k < 2 * n; k++) {{
        i64 size = k < n ? a->dims[k] : steps[k - n];
        if (f[3 + k] == '.') (w++)->i = size;
        else if (f[3 + k] - '0' != size) return 0;
    }}
    (w++)->i = 0;
    *words = w;
    return 1;
}}
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
    case '@': return ((*w)++->p = read_object(rt, f, x, s)) != 0;
    case 'a': return read_array(rt, f, x, w);
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
/* The next entry, if it fits; value: 0 of a set. */
static int read_entry(Runtime *rt, Buf *b, Shared *s, void *key, void *value) {{
    const char *f = b->form + 1;
    Word *entry = entry_of(b, b->dims[0]), *w = entry + 1;
    if (!read_value(rt, f, key, &w, s) || is_nan(f, entry + 1)) return 0;
    w = entry + words_before(b->form);
    if (value && !read_value(rt, values_in(b->form), value, &w, s)) return 0;
    entry->i = hash_of(f, entry + 1, 0) | 1;
    entered(b, entry->i);
    return 1;
}}
static int read_entries(Runtime *rt, Buf *b, Shared *s, i64 n) {{
    i64 at = 0;
    void *k, *x;
    if (more_entries(b, n)) return 0;
    if (!is_set(b->form)) {{
        while (PyDict_Next(b->object, &at, &k, &x))
            if (b->dims[0] == n || !read_entry(rt, b, s, k, x)) return 0;
        return 1;
    }}
    if (n && b->form[1] == 'n') return 0; /* a set of nothing */
    void *all = sure(PyObject_GetIter(b->object));
    int fits = 1;
    while (fits && (k = PyIter_Next(all))) {{
        fits = b->dims[0] < n && read_entry(rt, b, s, k, 0);
        Py_DecRef(k);
    }}
    Py_DecRef(all);
    return fits;
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
    int is_dict = *form == '{{', of_keys = is_set(form);
    if (TYPE(x) != (of_keys ? PYTHON_set : is_dict ? PYTHON_dict : PYTHON_list)) return 0;
    if (s->n) {{
        u64 at = found_at(s, x);
        if (s->objects[at]) {{
            if (s->lists[at]->form != form) {{ s->is_odd = 1; return 0; }}
            s->lists[at]->refs++;
            return s->lists[at];
        }}
    }}
    const char *f = form + 1;
    i64 n = of_keys ? PySet_Size(x) : is_dict ? PyDict_Size(x) : LENGTH(x);
    i64 size = size_of(f), lists = 0;
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
    if (is_dict) return nothing || read_entries(rt, b, s, n) ? b : 0;
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
/* The class of an object, and the names of its attributes, by its form. */
#define CLEAR_ERROR() (((void (*)(void))rt->api[5])())
#define CLASS_OF(form) (((Word *)rt->classes)[2 * ((form)[1] - '0')].p)
#define NAMES_OF(form) (((Word *)rt->classes)[2 * ((form)[1] - '0') + 1].p)
static Buf *read_object(Runtime *rt, const char *form, void *x, Shared *s) {{
    if (TYPE(x) != CLASS_OF(form)) return 0;
    if (s->n) {{
        u64 at = found_at(s, x);
        if (s->objects[at]) {{
            if (s->lists[at]->form[1] != form[1]) {{ s->is_odd = 1; return 0; }}
            s->lists[at]->refs++;
            return s->lists[at];
        }}
    }}
    Buf *b = new_object(rt, size_of(form + 2), lists_in(form + 2, 0));
    if (!b) return 0;
    b->form = form; b->object = x; b->changes = s->rows; b->refs = 2;
    Py_IncRef(x);
    if (s->may_change) add_list(s, x, b);
    Word *w = b->data;
    const char *f = form + 3;
    for (i64 k = 0; *f != ')'; f = behind(f), k++) {{
        void *value = PyObject_GetAttr(x, PyTuple_GetItem(NAMES_OF(form), k));
        if (!value) {{ CLEAR_ERROR(); return 0; }}
        int fits = read_value(rt, f, value, &w, s);
        Py_DecRef(value);
        if (!fits) return 0;
    }}
    return b;
}}
/* 1; 0 if a list is not what the region is for, -2 if lists are shared in a way that it is not. */
QUIET i64 read_lists(Runtime *rt, const Word *in, Buf **lists, const char *const *forms,
                     const char *changes, int rows, i64 n, i64 aside) {{
    Shared s = {{0, 0, 0, 0, rows, 0, rows}};
    int held = ((int (*)(void))rt->api[0])(), fits = 1;
    for (i64 k = 0; k < n; k++) s.may_change |= changes[k];
    rt->classes = in + n + aside;
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
    case '[': case '{{': case '@': return x == ((Buf *)w->p)->object;
    case 'a':
        if (((Buf *)w->p)->owner != (i64)x || w[words_in(f) - 1].i) return 0;
        return w[1].p == ((PyArray *)x)->data;
    case 'u': return is_number(rt, f[2 + w[1].i], f[1] == 'f', x, w);
    default: return is_number(rt, *f, 0, x, w);
    }}
}}
static void *object_of(Runtime *rt, const char *form, Buf *b);
static void *array_object(Runtime *rt, const char *f, const Word *w);
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
    case '@': return object_of(rt, f, w->p);
    case 'a': return array_object(rt, f, w);
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
/* As the function has put them in, so that they come in the order in which Python has them. */
static void add_keys(Runtime *rt, Buf *b, i64 from) {{
    for (i64 k = from; k < b->dims[0]; k++) {{
        void *key = made_value(rt, b->form + 1, entry_of(b, k) + 1);
        if (PySet_Add(b->object, key)) __builtin_trap();
        Py_DecRef(key);
    }}
}}
static void give_back_set(Runtime *rt, Buf *b) {{
    if (b->changes == 2) PySet_Clear(b->object); /* keys are taken out all at once alone */
    add_keys(rt, b, PySet_Size(b->object));
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
        b->object = sure(
            is_set(form) ? PySet_New(0) : *form == '{{' ? PyDict_New() : PyList_New(0));
        if (form[1] == ']' || form[1] == '}}') {{ }}
        else if (is_set(form)) add_keys(rt, b, 0);
        else if (*form == '{{') {{ together(b); add_entries(rt, b, 0, 0); }}
        else extend_object(rt, b, 0, b->dims[0]);
    }}
    Py_IncRef(b->object);
    return b->object;
}}
/* Have Python's object have the attributes that this one has. */
static void give_back_object(Runtime *rt, Buf *b, int is_new) {{
    const char *f = b->form + 3;
    Word *w = b->data;
    for (i64 k = 0; *f != ')'; w += words_in(f), f = behind(f), k++) {{
        void *name = PyTuple_GetItem(NAMES_OF(b->form), k);
        void *old = is_new ? 0 : PyObject_GetAttr(b->object, name);
        if (!old) CLEAR_ERROR();
        if (!old || !is_same(rt, f, old, w)) {{
            void *x = made_value(rt, f, w);
            if (PyObject_GenericSetAttr(b->object, name, x)) __builtin_trap();
            Py_DecRef(x);
        }}
        if (old) Py_DecRef(old);
    }}
}}
static void *object_of(Runtime *rt, const char *form, Buf *b) {{
    if (!b->object) {{
        b->form = form;
        void *kind = CLASS_OF(form);
        b->object = sure(PyObject_CallFunctionObjArgs(PYTHON___newobj__, kind, (void *)0));
        give_back_object(rt, b, 1);
    }}
    Py_IncRef(b->object);
    return b->object;
}}
/* An array as NumPy has it: the one whose memory it is, or a view of that. Views are kept, to be
   the same objects elsewhere. */
static const char VIEW[] = "v";
static void *array_object(Runtime *rt, const char *f, const Word *w) {{
    Buf *b = w->p;
    char *data = w[1].p;
    i64 code = f[1] - 'A', ndim = f[2] - '0', sizes_of[2 * {RANK}], n = 1;
    const Word *next = w + 2;
    for (i64 k = 0; k < 2 * ndim; k++) sizes_of[k] = f[3 + k] == '.' ? (next++)->i : f[3 + k] - '0';
    i64 *dims = sizes_of, *steps = sizes_of + ndim, view = next->i;
    for (i64 k = 0; k < ndim; k++) {{ n *= dims[k]; steps[k] *= sizes[code]; }}
    PyArray *base = b->owner >= {direct.OWN} ? (void *)b->owner : b->object;
    if (!base) {{ /* memory of C's own: an array of it is made once */
        base = b->object = sure(new_array(rt, b->code, 0, b->ndim, b->dims));
        __builtin_memcpy(base->data, b->data, b->bytes);
    }}
    if (b->owner < 0) data += base->data - (char *)b->data;
    int same = !view && base->data == data && base->nd == ndim;
    for (i64 k = 0; same && k < ndim; k++) same = base->dims[k] == dims[k];
    if (same && TYPE_NUMBER(base->descr) == types[code]) {{ Py_IncRef(base); return base; }}
    i64 flags = base->flags & (view == 2 ? 0 : {direct.WRITEABLE});
    for (Buf *v = rt->first.next; v; v = v->next) {{ /* it may be there already */
        PyArray *known = (void *)v->owner;
        if (v->object != base || v->form != VIEW || v->data != data || known->nd != ndim) continue;
        if ((known->flags & {direct.WRITEABLE}) != flags) continue;
        same = TYPE_NUMBER(known->descr) == types[code];
        for (i64 k = 0; same && k < ndim; k++)
            same = known->dims[k] == dims[k] && known->strides[k] == steps[k];
        if (same) {{ Py_IncRef(known); return known; }}
    }}
    void *descr = PyArray_DescrFromType(types[code]);
    void *made = sure(PyArray_NewFromDescr(ARRAY_TYPE, descr, ndim, dims, steps, data, flags, 0));
    Py_IncRef(base);
    if (PyArray_SetBaseObject(made, base)) __builtin_trap();
    Buf *v = adopt(rt, (i64)made, data);
    v->form = VIEW; v->object = base;
    Py_IncRef(base);
    Py_IncRef(made);
    return made;
}}
QUIET void give_back_lists(Runtime *rt) {{
    int held = ((int (*)(void))rt->api[0])();
    for (Buf *b = rt->first.next; b; b = b->next) {{
        if (!b->changes || b->form[1] == ']' || b->form[1] == '}}') continue;
        if (is_set(b->form)) {{ give_back_set(rt, b); continue; }}
        if (*b->form == '{{') {{ give_back_dict(rt, b); continue; }}
        if (*b->form == '@') {{ give_back_object(rt, b, 0); continue; }}
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
