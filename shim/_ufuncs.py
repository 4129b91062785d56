"""The ufunc objects and their rows: `add`, `sin`, `add.reduce`, ...

The calls are written out for one and two operands, so that the frequent one is a single look-up.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

from . import _accumulate
from ._index_plan import readable
from ._ndarray import fresh, ndarray
from ._shapes import laid_by_all
from ._table import Deferred, Kind, Row, add_row
from ._ufunc import _OPTIONS, _laid_out, ufunc
from ._ufunc_table import ROWS

__all__ = ["UFUNCS", "_laid_out", "readable", "ufunc"]


class _Unary(ufunc):
    def __call__(
        self,
        x: Any,
        /,
        out: Any = None,
        *,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> ndarray:
        if (
            out is None
            and where is True
            and dtype is None
            and signature is None
            and order == "K"
            and casting == "same_kind"
        ):
            found = self.plain(x)
            if found is not None:
                return found
        return self._call((x,), out, where, casting, order, dtype, subok, signature)

    def plain(self, x: Any, /, *options: Any) -> ndarray | None:
        """The call without options; None the first time that such an operand comes."""
        if type(x) is not ndarray or options:
            return None
        a = x.tensor if x._flip else x._t
        run = self._direct.get(a.dtype)
        if run is None:
            return None
        r = run(a)
        return fresh(r, r.dim() == 0)


class _Binary(ufunc):
    def __call__(
        self,
        x1: Any,
        x2: Any,
        /,
        out: Any = None,
        *,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> ndarray:
        if (
            out is None
            and where is True
            and dtype is None
            and signature is None
            and order == "K"
            and casting == "same_kind"
        ):
            found = self.plain(x1, x2)
            if found is not None:
                return found
        return self._call((x1, x2), out, where, casting, order, dtype, subok, signature)

    def plain(self, x1: Any, x2: Any = None, /, *options: Any) -> ndarray | None:
        """The call without options; None the first time that such operands come."""
        if options:
            return None
        if type(x1) is ndarray:
            a = x1.tensor if x1._flip else x1._t
            ka = a.dtype
        else:
            a, ka = x1, type(x1)
        if type(x2) is ndarray:
            b = x2.tensor if x2._flip else x2._t
            kb = b.dtype
        else:
            b, kb = x2, type(x2)
        run = self._direct.get((ka, kb))
        if run is None:
            return None
        try:
            r = run(a, b)
        except RuntimeError as error:
            r = self._recover(error, run, (a, b))
        ndim = r.dim()
        if ndim > 1 and not r.is_contiguous():
            r = laid_by_all(r, a, b)
        return fresh(r, ndim == 0)


class _TwoOut(ufunc):
    """divmod, modf, frexp: outputs may be given one by one."""

    def __call__(self, *args: Any, out: Any = None, **options: Any) -> tuple[ndarray, ...]:
        nin, nargs = self.nin, self.nargs
        if not nin <= len(args) <= nargs:
            raise TypeError(
                f"{self.__name__}() takes from {nin} to {nargs} positional arguments but "
                f"{len(args)} were given"
            )
        if len(args) > nin:
            if out is not None:
                raise TypeError("cannot specify 'out' as both a positional and keyword argument")
            out = args[nin:] + (None,) * (nargs - len(args))
        for name in options:
            if name not in _OPTIONS:
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument {name!r}")
        return self._call(args[:nin], out, **{**_OPTIONS, **options})


UFUNCS: dict[str, ufunc] = {}


def _enter() -> None:
    for formulas in ROWS:
        own = formulas.numpy
        made = _TwoOut(formulas) if own.nout > 1 else (_Unary, _Binary)[own.nin - 1](formulas)
        UFUNCS[formulas.name] = made
        names = (formulas.name, *formulas.aliases)
        for name in names:
            UFUNCS[name] = made
        inputs = ("x",) if own.nin == 1 else ("x1", "x2")
        data = frozenset((*inputs, "out", "where"))
        aliases = [n for n in names[1:] if hasattr(np, n)]
        add_row(Row(formulas.name, made, Kind.ARRAY, data, made.__signature__), *aliases)
        if own.nout > 1:
            continue
        for method in (
            ("at",) if own.nin == 1 else ("reduce", "accumulate", "reduceat", "outer", "at")
        ):
            bound = getattr(made, method)
            kind = _method_kind(formulas.name, method)
            row = Row(
                f"{formulas.name}.{method}",
                bound,
                kind,
                _METHOD_DATA[method],
                Deferred(partial(inspect.signature, bound)),
            )
            add_row(row, *(f"{n}.{method}" for n in aliases))


_METHOD_DATA = {
    "reduce": frozenset(("array", "out", "initial", "where")),
    "accumulate": frozenset(("array", "out")),
    "reduceat": frozenset(("array", "indices", "out")),
    "outer": frozenset(("A", "B")),
    "at": frozenset(("a", "b")),  # integers of an index are known when the call is made
}


def _method_kind(name: str, method: str) -> Kind:
    if method == "reduceat" or (method == "at" and name not in _accumulate.SCATTERED):
        return Kind.DATA
    return Kind.ARRAY


_enter()
