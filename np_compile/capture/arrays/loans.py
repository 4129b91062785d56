"""Memory that code outside the captured function was given: whether something still refers to it.

A library may keep an array (a sparse matrix, an iterator, a masked array on the same memory). What
is recorded runs later, so reads and writes of both would come in another order than in Python.
While somebody keeps the memory, nothing is recorded.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from np_compile.tape.tree import leaves


class Loan:
    """Memory of stand-ins that is given away, with the references to it that there were before:
    those of the stand-ins among them, which live as long."""

    __slots__ = ("_arrays", "_counts", "_stand_ins")

    def __init__(self, stand_ins: Iterable[Any]):
        self._stand_ins = list(stand_ins)
        owners = (b for a in self._stand_ins for b in _owners(a._np))
        self._arrays = list({id(b): b for b in owners}.values())
        self._counts = self._references()

    def without(self, arguments: Any) -> Loan:
        """The same, where references were counted that the arguments of a call were."""
        counted = Counter(map(id, _arrays(arguments)))
        self._counts = [n - counted[id(a)] for n, a in zip(self._counts, self._arrays, strict=True)]
        return self

    def _references(self) -> list[int]:
        arrays = self._arrays
        return [sys.getrefcount(arrays[i]) for i in range(len(arrays))]

    def is_kept(self, result: Any = None) -> bool:
        """Whether there are more references now, beside those of arrays in `result`."""
        now = self._references()
        reached = [self._reached(v) for v in _arrays(result)] if result is not None else []
        known = [sum(r is a for r in reached) for a in self._arrays]
        return any(n - k > c for n, k, c in zip(now, known, self._counts, strict=True))

    def _reached(self, view: Any) -> Any:
        """Which of the arrays something is a view of: the first on the way to its memory."""
        while view is not None and not any(view is a for a in self._arrays):
            view = getattr(view, "base", None)
        return view


def _owners(a: Any) -> Iterator[np.ndarray]:
    """An array, what it is a view of, and so on."""
    while isinstance(a, np.ndarray):
        yield a
        a = a.base


def _arrays(x: Any) -> Iterator[np.ndarray]:
    return (v for v in leaves(x) if isinstance(v, np.ndarray))
