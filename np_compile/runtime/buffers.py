"""Stand-ins whose memory C code reads: `hashlib`, `struct`, `zlib`, `file.write`, `ctypes`.

Such code asks an object's type for a buffer. From Python 3.12 on a class says by `__buffer__` what
it gives; before, only C can, which asks the class here, and so hands on errors as they are.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from ctypes import c_void_p

from np_compile.kernels import build

_C = """
static void *(*call)(void *, ...), *asked;
static int (*get_buffer)(void *, void **, int);
static void (*release)(void *);

void npc_begin(void *function, void *(*c)(void *, ...), int (*g)(void *, void **, int),
               void (*r)(void *)) {
    asked = function;
    call = c;
    get_buffer = g;
    release = r;
}

/* bf_getbuffer: of what the function gives for the object. */
int npc_get_buffer(void *object, void **view, int flags) {
    void *of = call(asked, object, (void *)0);
    if (!of) {
        view[1] = 0;
        return -1;
    }
    int result = get_buffer(of, view, flags);
    release(of);
    return result;
}
"""
_IN_C = "PyObject_CallFunctionObjArgs", "PyObject_GetBuffer", "Py_DecRef"
_AS_BUFFER = 20  # words of a type before `tp_as_buffer`, which has been there since Python 3.0


@functools.cache
def export(kind: type, asked: Callable) -> bool:
    """Let C code read instances of a class; whether it can. asked: what an instance stands for, of
    which C gets the buffer."""
    if hasattr(memoryview, "__buffer__"):
        return True  # by `__buffer__` of the class
    words = ctypes.POINTER(c_void_p).from_address(id(kind) + _AS_BUFFER * ctypes.sizeof(c_void_p))
    if sys.implementation.name != "cpython" or not words or words[0] is not None:
        return False
    try:
        library = build.load(_C, name="buffers")
    except build.CompileFailed as e:
        e.warn("C code cannot read arrays of compiled functions, since the C compiler failed")
        return False
    except build.NoCompiler:
        return False
    address = [ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in _IN_C]
    begin = ctypes.CFUNCTYPE(None, *[c_void_p] * 4)(("npc_begin", library))
    begin(id(asked), *address)
    words[0] = ctypes.cast(library.npc_get_buffer, c_void_p).value
    return True
