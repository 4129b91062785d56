"""Long lists out of compiled code: Python's items of the words of many, a column at a time."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import words
from .runtime import data_of
from .values import DTYPE_OF, MEMBERS, PYTHON, REPRESENTATION, TEXT

_UTF32 = f"utf-32-{sys.byteorder[0]}e"
_MAKE: dict[str, Callable[[Any], Any]] = {
    "int": int, "float": float, "bool": bool, "complex": complex,
    "wide": lambda x: x & (1 << 64) - 1, "char": chr, "word": words.text_of,
    **{k: np.dtype(k.rstrip("_")).type for k in REPRESENTATION if k not in PYTHON},
}  # fmt: skip


def of_kind(x: Any, kind: str) -> Any:
    """The number of a kind, of what C has for it."""
    if kind == "uint64":
        return np.uint64(x & (1 << 64) - 1)
    if kind in MEMBERS:
        return list(MEMBERS[kind])[x]
    if type(x) is complex and not kind.startswith("complex"):
        x = x.real
    return _MAKE[kind](x)


def numbers(data: int, n: int, kind: str, rep: str) -> list:
    """The items of a list of numbers of one kind that lie without gaps."""
    if kind == "int" and rep == "i64":
        return (ctypes.c_int64 * n).from_address(data)[:] if n else []
    if kind == "float":
        return (ctypes.c_double * n).from_address(data)[:] if n else []
    if kind == "char":
        return list(ctypes.string_at(data, 4 * n).decode(_UTF32, "surrogatepass"))
    if kind == "word":
        codes = (ctypes.c_uint32 * n).from_address(data)[:] if n else []
        return list(map(words.text_of, codes))
    if kind in MEMBERS:
        places = (ctypes.c_uint32 * n).from_address(data)[:] if n else []
        return list(map(list(MEMBERS[kind]).__getitem__, places))
    held = np.empty(n, DTYPE_OF[rep])
    ctypes.memmove(data_of(held), data, held.nbytes)
    return held.tolist() if kind in PYTHON else list(held)


def column(
    spec: Any,
    words: np.ndarray,
    listed: Callable[[Any, list[int]], list],
    other: Callable[[Any, int], Any],
) -> list:
    """The values that a description gives (see `exits`), of rows of words.

    words: i64[n,k]. listed: makes lists, of their addresses. other: makes what else there is, of
    the row with a number.
    """
    kind, n = spec[0], len(words)
    if kind == "constant":
        return [spec[1]] * n
    if kind == "number":
        _, kinds, at, tag, part = spec
        return _numbers(words[:, at], part, kinds, None if tag is None else words[:, tag])
    if kind == "complex":
        _, kinds, at, tag = spec
        parts = np.ascontiguousarray(words[:, at : at + 2]).view(np.complex128)
        return _numbers(parts[:, 0], "", kinds, None if tag is None else words[:, tag])
    if kind == "tuple" and spec[2]:
        made = spec[1]
        rows = zip(*[column(x, words, listed, other) for x in spec[2]], strict=True)
        if made is tuple:
            return list(rows)
        return [made(row) for row in rows] if made is list else [made(*row) for row in rows]
    if kind == "or none":
        found: list = [None] * n
        places = words[:, spec[1]].nonzero()[0]
        where = places.tolist()
        made_of = column(spec[2], words[places], listed, lambda x, k: other(x, where[k]))
        for k, x in zip(where, made_of, strict=True):
            found[k] = x
        return found
    if kind == "list":
        return listed(spec, words[:, spec[3]].tolist())
    return [other(spec, k) for k in range(n)]


def _numbers(words: np.ndarray, part: str, kinds: tuple[str, ...], tags: Any) -> list:
    """Numbers of the kinds that their tags say, or of one kind."""
    x = words.view(np.float64) if part == "f" else words
    if tags is None:
        return _of_one_kind(x, kinds[0])
    found: list = [None] * len(x)
    for tag, kind in enumerate(kinds):
        places = (tags == tag).nonzero()[0]
        for k, v in zip(places.tolist(), _of_one_kind(x[places], kind), strict=True):
            found[k] = v
    return found


def _of_one_kind(x: np.ndarray, kind: str) -> list:
    if x.dtype.kind == "c" and not kind.startswith("complex"):
        x = x.real
    if kind == "bool":
        return (x != 0).tolist()
    if kind in PYTHON:
        same = kind not in TEXT and x.dtype == DTYPE_OF[PYTHON[kind]]
        return x.tolist() if same else [of_kind(v, kind) for v in x.tolist()]
    dtype = np.dtype(kind.rstrip("_"))
    return list(x.view(dtype) if dtype == np.uint64 else x.astype(dtype))
