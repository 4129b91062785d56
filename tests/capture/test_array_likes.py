"""Objects that NumPy reads, and arrays where programs expect objects."""

from __future__ import annotations

import string

import numpy as np
import pytest

import np_compile
from np_compile import config

from ..support import same


class Vector:
    def __init__(self, values):
        self._v = np.array(values, float)

    def __array__(self, dtype=None, copy=None):
        return self._v.astype(dtype) if dtype else self._v

    def __float__(self):
        return float(self._v.sum())

    def __complex__(self):
        return complex(self._v[0], 1.0)


class Sized(Vector):
    def __len__(self):
        return len(self._v)

    def __getitem__(self, k):
        return float(self._v[k])


class Answering(Vector):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__":
            return NotImplemented
        return Answering(ufunc(*(np.asarray(x) for x in inputs), **kwargs))


def read(v):
    return np.asarray(v) * 2, np.array(v), np.asarray(v, dtype="f4")


def joined(v):
    return np.array([v, v]), np.stack([np.asarray(v)] * 2)


def reduced(v):
    return np.sqrt(np.asarray(v)).sum()


def as_numbers(v):
    return float(v), complex(v), np.exp(float(v))


def answered(v):
    return np.asarray(np.add(v, 1))


CLASSES = [Vector, Sized, Answering]
FUNCTIONS = [read, joined, reduced, as_numbers, answered]


@pytest.mark.parametrize("each", [False, True], ids=["function", "methods too"])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda x: x.__name__)
def test_array_likes_of_the_user(kind, each, monkeypatch):
    want = [f(kind([1.0, 4.0])) for f in FUNCTIONS]
    if each:
        for owner in kind.__mro__[:-1]:
            for name, member in list(vars(owner).items()):
                if callable(member):
                    monkeypatch.setattr(owner, name, np_compile.compile(member, backend="eager"))
    for plain in ("auto", "never"):
        with config.patch(plain=plain, compile_in="call"):
            for f, result in zip(FUNCTIONS, want, strict=True):
                fast = np_compile.compile(f, backend="eager")
                for _ in range(3):
                    same(fast(kind([1.0, 4.0])), result)


def of_names(x):
    y = x * 2 + 1
    s = y.sum()
    short = [n for n in string.ascii_lowercase if hasattr(y, "_" + n) or hasattr(s, "_" + n)]
    return y + getattr(y, "_v", 0.0) + getattr(s, "_c", 1.0), short


def test_arrays_have_no_short_names_of_their_own():
    """By which programs tell an object of theirs from an array."""
    fast = np_compile.compile(of_names, backend="eager")
    with config.patch(plain="never"):
        for _ in range(3):
            got = fast(np.arange(4.0))
            same(got[0], of_names(np.arange(4.0))[0])
            assert set(got[1]) <= {"t"}
