"""From stand-ins to data: NumPy arrays, tensors, shim arrays; cutting the tape where they wait."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import shim
from np_compile.errors import GradientLost

from . import masked
from .array import Array
from .frames import user_line
from .loans import Loan
from .numpy_names import numpy_function
from .objects import with_items
from .tape import Break, Segment, picked


def is_element(key: Any, ndim: int) -> bool:
    """Whether an index of an array is that of one element."""
    if type(key) is not tuple:
        return ndim == 1
    return len(key) == ndim and all(type(i) is int for i in key)


class Values:
    """The part of a capture that answers where Python, NumPy or torch needs data."""

    seg: Segment
    device: torch.device | None
    tensors: bool
    immediate: bool
    plain: bool
    closed: bool
    moved: list[Array]
    ahead: list[Array]
    watch: Any
    known: dict[int, tuple[Any, Array]]
    loans: list[Loan]
    lasting: bool
    before_loans: bool
    thread: int
    limit: float

    if TYPE_CHECKING:

        def cut(self, reason: Break) -> None: ...
        def enter(self, a: Array) -> None: ...
        def enter_thread(self) -> None: ...
        def _load(self, a: Array) -> None: ...
        def send(self, a: Array) -> None: ...

    def settled(self, a: Array, key: Any = None) -> np.ndarray | None:
        """The NumPy array of a stand-in whose data are there and not about to change, or None.

        key: of the element that is to be read; None if one is to be written.
        """
        if not self.immediate or (key is None and self.seg.node.guesses):
            return None  # what is written is not to be written again, should a guess be wrong
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None) or a._is_scalar():
            return None
        watch = self.watch
        if watch is not None and not watch.spoiled:
            if key is not None and not is_element(key, a.ndim):
                return None  # a view is wanted
            if not watch.touches(a):
                if key is not None and id(a._np) in self.known and watch.reads(a._np, key):
                    return a._np  # but not as `_fast`, so that the next element is noted too
                watch.spoil("Python reads or writes an element of an array")
        r = self._real(a, None)
        if root is a:
            a._fast = r
        return r

    def real(self, a: Array, why: Any) -> Any:
        """The NumPy array or scalar of a stand-in; cuts the tape if its data are not there."""
        if self.watch is not None:
            self.watch.spoil(why or "an array is handed to NumPy, or to Python")
        return self._real(a, why)

    def _real(self, a: Array, why: Any) -> Any:
        if a._sel is not None:
            self.settle(a)
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None and root._host is None):
            self.cut(why if type(why) is Break else Break("value", str(why)))
        if a._np is not None:
            return a._np
        if a._base is not None:
            name, args, kwargs, pick = a._via
            self.real(a._base, why)  # what waits to be run comes first
            r = numpy_function(name)(*self._reals(args, why), **self._reals(kwargs, why))
            r = picked(r, pick)
        elif a._host is not None:
            if a._dirty:
                a._host[...] = shim.to_numpy(shim.ndarray(a._t, a._flip))
                a._dirty = False
            self._touched(a)
            return a._host
        else:
            t = a._t
            lost = type(why) is Break and why.kind in ("numpy", "foreign")
            if lost and t.requires_grad and torch.is_grad_enabled():
                raise gradient_lost(why.text)
            if self.device is not None:  # apart from it, whatever the device
                t = t.detach().to("cpu", copy=True)
            r = shim.to_numpy(shim.ndarray(t, a._flip, a._is_scalar()))
            if a._readonly:
                r.flags.writeable = False
        if self.device is None:
            a._np = r
        elif a._base is None and isinstance(r, np.ndarray):
            a._host = r
            a._dirty = False
            if not self.closed:
                self.moved.append(a)
            self._touched(a)
        return r

    def _touched(self, a: Array) -> None:
        """Code has the host memory of a root that lives on a device."""
        if self.plain and not self.closed and not a._ahead:
            a._ahead = True
            self.ahead.append(a)

    def settle(self, a: Array) -> None:
        """Make an ordinary array of a selection; its elements are needed."""
        masked.settle(self, [a])

    @staticmethod
    def _root(a: Array) -> Array:
        return a if a._root is None else a._root

    def memory(self, a: Array, why: str) -> Any:
        """As `real`, for code that may write to it: nothing recorded still waits to read it.

        Errors: GradientLost, since what that code computes has no gradient.
        """
        root = self._root(a)
        if root._s is self.seg:
            self.cut(Break("value", why))
        if root._t is not None and root._t.requires_grad and torch.is_grad_enabled():
            raise gradient_lost(why)
        if type(self.real(a, why)) is np.ndarray:
            self.lend(Loan([a]))
        return a._np if a._host is None else a._host

    def lend(self, loan: Loan) -> None:
        """Record nothing while code outside keeps the memory of arrays."""
        if self.tensors or self.device is not None or self.closed or self.lasting:
            return
        if not self.loans:
            self.before_loans = self.plain
        if not self.plain:
            self.cut(Break("value", "code outside the function keeps the memory of an array"))
        self.loans.append(loan)
        self.plain = True
        self.limit = float("inf")

    def is_plain(self) -> bool:
        """Whether calls run in NumPy at present. It ends when all that was lent is given back."""
        if get_ident() != self.thread and not self.lasting:
            self.enter_thread()
        if self.loans:
            self.loans = [loan for loan in self.loans if loan.is_kept()]
            self.plain = bool(self.loans) or self.lasting or self.before_loans
        return self.plain

    def tensor(self, a: Array, why: Any) -> torch.Tensor:
        """The torch tensor of a stand-in, on its device, with its gradient history; shared."""
        return self.shim_array(a, why).tensor

    def shim_array(self, a: Array, why: Any) -> shim.ndarray:
        """The shim array on the memory of a stand-in."""
        if self.watch is not None:
            self.watch.spoil(why or "an array is handed to the shim, or to torch")
        if a._sel is not None:
            self.settle(a)
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None and root._host is None):
            self.cut(why if type(why) is Break else Break("value", str(why)))
        if a._base is not None:
            name, args, kwargs, pick = a._via
            self.shim_array(a._base, why)
            r = shim.TABLE[name].function(*self._shims(args, why), **self._shims(kwargs, why))
            return picked(r, pick)
        if a._t is None:
            self._load(a)
        self.send(a)
        x = shim.ndarray(a._t, a._flip, a._is_scalar())
        if a._readonly:
            x._readonly = True
        return x

    def meta(self, a: Array) -> shim.ndarray:
        """The shim array without data that has the layout of a stand-in."""
        if a._sel is not None:
            self.settle(a)
        if a._v is None:
            self.enter(a)
        return a._v.meta

    def has_data(self, a: Array) -> bool:
        """Whether the data of a stand-in are there, or will be at the next cut."""
        if a._sel is not None:
            return self.has_data(a._sel.full(self.seg)) and self.has_data(
                a._sel.mask.array(self.seg)
            )
        root = a if a._root is None else a._root
        return not (root._t is None and root._np is None and root._host is None) or (
            root._s is self.seg
        )

    def outside(self, a: Array) -> Any:
        """What the caller gets for a stand-in: a NumPy array or scalar, or a tensor."""
        return self.tensor(a, None) if self.tensors else self.real(a, None)

    def _reals(self, x: Any, why: Any = None) -> Any:
        """Arguments with their stand-ins replaced by NumPy arrays, nested structures included."""
        return _with(x, lambda a: self.real(a, why))

    def _tensors(self, x: Any, why: Any) -> Any:
        """As `_reals`, by tensors."""
        return _with(x, lambda a: self.tensor(a, why))

    def _shims(self, x: Any, why: Any) -> Any:
        """As `_reals`, by shim arrays."""
        return _with(x, lambda a: self.shim_array(a, why))


def _with(x: Any, of: Callable[[Array], Any]) -> Any:
    """A structure with `of(a)` for each stand-in a."""
    kind = type(x)
    if kind is Array:
        return of(x)
    if kind is list:
        return [_with(v, of) for v in x]
    if kind is dict:
        return {k: _with(v, of) for k, v in x.items()}
    return with_items(x, [_with(v, of) for v in x]) if isinstance(x, tuple) else x


def gradient_lost(why: str) -> GradientLost:
    return GradientLost(
        f"{why}: it would run in NumPy, and the gradient of its argument would be lost\n"
        f"  at {user_line()}\n  Remedy: call it under torch.no_grad(), or replace it by NumPy "
        "calls that the shim has."
    )
