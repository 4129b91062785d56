"""Calls of NumPy's functions by C itself, without a line of Python.

What `outside` says of a call, how its arguments are made of words and what its result is, is a row
of integers here, by which `call_numpy` makes the arguments, calls, and takes the result. Python is
asked where the function raises, where there is a device, and for calls with other arguments than
these: arrays, numbers of one kind, constants, tuples and lists of them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .nest import CODES
from .values import DTYPE_OF, PYTHON, SIZES

OWN = 1 << 20  # owners of memory from here on are addresses of arrays, which they hold
FLAT, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # flags of NumPy's arrays
_MOST = 16  # arguments
_AXES = 8
_CONSTANT, _INT, _FLOAT, _BOOL, _COMPLEX, _SCALAR, _ARRAY, _TUPLE, _LIST = range(9)
_OF_PYTHON = {"int": _INT, "float": _FLOAT, "bool": _BOOL, "complex": _COMPLEX}
# What is called of Python's and NumPy's, and where it is in NumPy's table; see `runtime.api`.
FUNCTIONS = {
    "PyObject_Vectorcall": ("void *, void *, void *const *, u64, void *", None),
    "PyObject_VectorcallMethod": ("void *, void *, void *const *, u64, void *", None),
    "PyComplex_FromDoubles": ("void *, f64, f64", None),
    "PyComplex_AsCComplex": ("c128, void *", None),
    "PyErr_Occurred": ("void *", None),
    "PyArray_Scalar": ("void *, void *, void *, void *", 60),
    "PyArray_NewFromDescr": (
        "void *, void *, void *, int, const i64 *, const i64 *, void *, int, void *", 94,
    ),
    "PyArray_SetBaseObject": ("int, void *, void *", 282),
}  # fmt: skip


class NotInC(Exception):
    """Python makes the call."""


class Values:
    """Values as integers; the objects that they are the addresses of are held."""

    _held: list[Any]

    def _address(self, x: Any) -> int:
        self._held.append(x)
        return id(x)

    def _value(self, spec: Any, row: list[int]) -> None:
        """An argument, which `Export.value` describes."""
        kind = spec[0]
        if kind == "constant":
            row += (_CONSTANT, self._address(spec[1]))
        elif kind in ("number", "complex"):
            _, kinds, at, tag = spec[:4]
            if tag is not None or len(kinds) != 1:
                raise NotInC
            if kinds[0] in _OF_PYTHON:
                row += (_OF_PYTHON[kinds[0]], at)
            elif kinds[0] in PYTHON:
                raise NotInC
            else:
                dtype = np.dtype(kinds[0].rstrip("_"))
                row += (_SCALAR, at, dtype.num, "biufc".index(dtype.kind), dtype.itemsize)
        elif kind == "array":
            _, rep, _, at, dims, strides, _ = spec
            if rep not in DTYPE_OF or len(dims) > _AXES:
                raise NotInC
            row += (_ARRAY, CODES.index(rep), DTYPE_OF[rep].num, SIZES[rep], at, len(dims))
            for d in (*dims, *strides):
                row += (1, d[1]) if type(d) is tuple else (0, d)
        elif kind == "tuple" and spec[1] in (tuple, list):
            row += (_TUPLE if spec[1] is tuple else _LIST, len(spec[2]))
            for x in spec[2]:
                self._value(x, row)
        else:
            raise NotInC


class Row(Values):
    """A call as integers."""

    def __init__(self, function: Any, name: str | None, args: list, kwargs: dict, result: Any):
        self._held = []
        names = tuple(kwargs)
        row = [
            self._address(function if name is None else name),
            self._address(names) if names else 0, len(args), len(names), int(name is not None),
        ]  # fmt: skip
        for x in (*args, *kwargs.values()):
            self._value(x, row)
        self._result(result, row)
        self.words = (ctypes.c_int64 * len(row))(*row)

    def _result(self, result: Any, row: list[int]) -> None:
        """A result, which `outside` describes."""
        kind = result[0]
        if kind == "array":
            _, dtype, ndim, at, flat, writeable, size = result
            if ndim > _AXES:
                raise NotInC
            row += (_ARRAY, dtype.num, ndim, at, int(flat), int(writeable), size)
        elif kind == "tuple":
            row += (_TUPLE, self._address(result[1]), len(result[2]))
            for x in result[2]:
                self._result(x, row)
        elif kind == "complex":
            row += (_COMPLEX, self._address(result[1]), result[2])
        elif kind == "number":
            _, made, at, part = result
            is_bool = made in (bool, np.bool_)
            row += (_FLOAT if part == "f" else _BOOL if is_bool else _INT, self._address(made), at)
        else:
            raise NotInC


def row(function: Any, name: str | None, args: list, kwargs: dict, result: Any) -> Row | None:
    """A call as C makes it: of a function, or of a method with this name of the first argument;
    None if Python makes it."""
    if len(args) + len(kwargs) > _MOST:
        return None
    try:
        return Row(function, name, args, kwargs, result)
    except NotInC:
        return None


def names(first: int, array_type: int) -> str:
    """The C names of what is called. first: the place of FUNCTIONS among what compiled code is
    given; array_type: that of np.ndarray."""
    made = f"#define ARRAY_TYPE rt->api[{array_type}]\n"
    for k, (name, (types, _)) in enumerate(FUNCTIONS.items()):
        result, _, params = types.partition(", ")
        made += f"#define {name} (({result} (*)({params or 'void'}))rt->api[{first + k}])\n"
    return made + _NAMES


_NAMES = """\
#define TYPE_NUMBER(descr) (((const int *)(descr))[7])
#define BYTE_ORDER_OF(descr) (((const char *)(descr))[26])
"""
# Calls of NumPy's functions.
C = f"""
/* An array as NumPy has it: the one whose memory it is, a view of that, or a copy of C's own. */
static void *array_of(Runtime *rt, const i64 **p) {{
    const i64 *s = *p, code = s[1], type = s[2], size = s[3], ndim = s[5];
    Word *out = rt->out;
    Buf *b = out[s[4]].p;
    char *data = out[s[4] + 1].p;
    i64 dims[{_AXES}], steps[{_AXES}], at[{_AXES}] = {{0}}, n = 1, flat = 1;
    s += 6;
    for (i64 k = 0; k < ndim; k++, s += 2) dims[k] = s[0] ? s[1] : out[s[1]].i;
    for (i64 k = 0; k < ndim; k++, s += 2) steps[k] = size * (s[0] ? s[1] : out[s[1]].i);
    *p = s;
    for (i64 k = ndim - 1; k >= 0; k--) {{
        if (dims[k] != 1 && steps[k] != n * size) flat = 0;
        n *= dims[k];
    }}
    PyArray *owner = b->owner >= {OWN} ? (void *)b->owner : b->owner >= 0 ? b->object : 0;
    if (owner && n) {{
        int same = owner->data == data && owner->nd == ndim && TYPE_NUMBER(owner->descr) == type;
        for (i64 k = 0; same && k < ndim; k++)
            same = owner->dims[k] == dims[k] && (dims[k] == 1 || owner->strides[k] == steps[k]);
        if (same) {{ Py_IncRef(owner); return owner; }}
        void *view = PyArray_NewFromDescr(ARRAY_TYPE, PyArray_DescrFromType(type), ndim, dims,
                                          steps, data, owner->flags & {WRITEABLE}, 0);
        if (!view) return 0;
        Py_IncRef(owner);
        if (PyArray_SetBaseObject(view, owner)) {{ Py_DecRef(view); return 0; }}
        return view;
    }}
    PyArray *made = new_array(rt, code, 0, ndim, dims);
    if (!made || !n) return made;
    if (flat) __builtin_memcpy(made->data, data, n * size);
    else for (i64 k = 0; k < n; k++) {{
        __builtin_memcpy(made->data + k * size, data, size);
        for (i64 d = ndim - 1; d >= 0; d--) {{
            data += steps[d];
            if (++at[d] < dims[d]) break;
            data -= dims[d] * steps[d];
            at[d] = 0;
        }}
    }}
    return made;
}}
static void *scalar_of(Runtime *rt, const i64 *s) {{
    Word *x = (Word *)rt->out + s[1];
    f32 narrow[2] = {{x[0].f, 0}};
    void *data = x, *descr = PyArray_DescrFromType(s[2]);
    if (s[4] == 4 && s[3] == 3) data = narrow;
    if (s[4] == 8 && s[3] == 4) {{ narrow[1] = x[1].f; data = narrow; }}
    void *made = PyArray_Scalar(data, descr, 0);
    Py_DecRef(descr);
    return made;
}}
static void *value_of(Runtime *rt, const i64 **p) {{
    const i64 *s = *p;
    Word *x = (Word *)rt->out + s[1];
    void *made;
    *p = s + 2;
    switch (s[0]) {{
    case {_CONSTANT}: Py_IncRef((void *)s[1]); return (void *)s[1];
    case {_INT}: return PyLong_FromLongLong(x->i);
    case {_FLOAT}: return PyFloat_FromDouble(x->f);
    case {_BOOL}: return PyBool_FromLong(x->i);
    case {_COMPLEX}: return PyComplex_FromDoubles(x->f, x[1].f);
    case {_SCALAR}: *p = s + 5; return scalar_of(rt, s);
    case {_ARRAY}: *p = s; return array_of(rt, p);
    }}
    made = s[0] == {_TUPLE} ? PyTuple_New(s[1]) : PyList_New(s[1]);
    for (i64 k = 0; made && k < s[1]; k++) {{
        void *item = value_of(rt, p);
        if (!item) {{ Py_DecRef(made); return 0; }}
        if (s[0] == {_TUPLE}) PyTuple_SetItem(made, k, item); else PyList_SetItem(made, k, item);
    }}
    return made;
}}
/* Whether a result is what was expected; with `store`, it is taken. */
static int taken(Runtime *rt, const i64 **p, void *x, int store) {{
    const i64 *s = *p;
    if (s[0] == {_ARRAY}) {{
        PyArray *a = x;
        i64 wanted = s[4] * {FLAT} | s[5] * {WRITEABLE} | {ALIGNED};
        *p = s + 7;
        if (((void **)x)[1] != ARRAY_TYPE || a->nd != s[2]) return 0;
        if (TYPE_NUMBER(a->descr) != s[1] || BYTE_ORDER_OF(a->descr) == '>') return 0;
        if ((a->flags & wanted) != wanted) return 0;
        if (!store) return 1;
        Word *out = (Word *)rt->out + s[3];
        Py_IncRef(x);
        out[0].p = x;
        out[1].p = a->data;
        for (i64 k = 0; k < s[2]; k++) {{
            out[2 + k].i = a->dims[k];
            out[2 + s[2] + k].i = a->strides[k] / s[6];
        }}
        return 1;
    }}
    *p = s + 3;
    if (((void **)x)[1] != (void *)s[1]) return 0;
    if (s[0] == {_TUPLE}) {{
        if (PyTuple_Size(x) != s[2]) return 0;
        for (i64 k = 0; k < s[2]; k++) if (!taken(rt, p, PyTuple_GetItem(x, k), store)) return 0;
        return 1;
    }}
    Word *out = (Word *)rt->out + s[2];
    int far = 0;
    if (s[0] == {_FLOAT}) out->f = PyFloat_AsDouble(x);
    else if (s[0] == {_BOOL}) out->i = PyObject_IsTrue(x);
    else if (s[0] == {_INT}) out->i = PyLong_AsLongLongAndOverflow(x, &far);
    else {{
        const c128 z = PyComplex_AsCComplex(x); /* of NumPy's types too */
        out[0].f = z.r;
        out[1].f = z.i;
    }}
    return !far && !PyErr_Occurred();
}}
static i64 called(Runtime *rt, const i64 *s) {{
    void *args[{_MOST}], *result = 0;
    i64 n = s[2] + s[3], made = 0;
    const i64 *p = s + 5;
    for (; made < n && (args[made] = value_of(rt, &p)); made++);
    if (made == n)
        result = s[4] ? PyObject_VectorcallMethod((void *)s[0], args, s[2], (void *)s[1])
                      : PyObject_Vectorcall((void *)s[0], args, s[2], (void *)s[1]);
    for (i64 k = 0; k < made; k++) Py_DecRef(args[k]);
    if (!result) return 2;
    const i64 *q = p;
    i64 how = taken(rt, &q, result, 0) && taken(rt, &p, result, 1) ? 0 : 1;
    Py_DecRef(result);
    if (how) ((void (*)(void))rt->api[5])();
    return how;
}}
/* How a call ended: 0 it is made; 1 compiled code has to leave; 2 an exception ends it. */
QUIET i64 call_numpy(Runtime *rt, i64 number) {{
    const i64 *s = rt->rows[number];
    if (!s || rt->device) return rt->python(number);
    int held = ((int (*)(void))rt->api[0])();
    i64 how = called(rt, s);
    if (how == 2) {{
        ((void (*)(void **, void **, void **))rt->api[2])(rt->error, rt->error + 1, rt->error + 2);
        ((void (*)(void **, void **, void **))rt->api[3])(rt->error, rt->error + 1, rt->error + 2);
        how = rt->python(-1);
    }}
    ((void (*)(int))rt->api[4])(held);
    return how;
}}
"""
