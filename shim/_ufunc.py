"""What every ufunc does: dtypes by NumPy's own resolution, formulas from `_ufunc_table`.

A call looks up, by the dtypes (or Python number types) of its operands, a closure that converts
and computes; only `out=`, `where=`, `dtype=` and their like take the long way.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from . import _accumulate
from ._dtypes import (
    NUMBERS,
    TO_NUMPY,
    WIDER,
    NotSupported,
    Weak,
    check_python_int,
    promotion_kind,
    torch_dtype,
)
from ._ndarray import as_array, as_operand, as_tensor, may_share, ndarray, scalar_tensor, write
from ._reduce import NoValue, reduce_dtype, reduce_engine, shape_text
from ._saved import is_followed
from ._shapes import common_shape, laid_by_all, let_numpy_raise
from ._ufunc_math import complex_whole_power, natural_power, refuse_negative, sqrt
from ._ufunc_table import Formulas, loop
from ._unsigned import cast, choose_by

# Loop dtypes whose torch kernels take a Python number as second operand, rounded as NumPy does.
_WITHNUMBERS = frozenset(
    (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32, torch.float64)
)
_COMPARISONS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_OPTIONS = {
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
    "signature": None,
}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_ORDERS = ("C", "F", "A", "K")


def _number(value: Any, dtype: torch.dtype) -> Any:
    """A Python number as torch kernels of `dtype` take it. OverflowError when it does not fit."""
    if dtype.is_floating_point:
        return float(value)
    check_python_int(value, dtype)
    return value


def _place(value: Any, dtype: torch.dtype, device: torch.device | None) -> torch.Tensor:
    """An operand as a tensor of the loop's dtype, moved to `device` where it is 0-D."""
    t = cast(value, dtype) if isinstance(value, torch.Tensor) else scalar_tensor(value, dtype)
    return t.to(device) if device is not None and t.dim() == 0 and t.device != device else t


def _device(operands: Any) -> torch.device | None:
    """Where a call runs: with the first operand that has dimensions, else with the first."""
    tensors = [t for t in operands if isinstance(t, torch.Tensor)]
    for t in tensors:
        if t.dim():
            return t.device
    return tensors[0].device if tensors else None


def find(name: str) -> ufunc:
    """The ufunc of a name: how a pickled one comes back."""
    from ._table import TABLE

    return TABLE[name].function


def _apart(operands: list, targets: tuple) -> list:
    """Operands in memory of their own, where autograd may save what `out=` writes over."""
    tensors = [o for o in operands if isinstance(o, torch.Tensor)]
    if not any(o.requires_grad for o in tensors):
        return operands
    written = [t._t for t in targets if t is not None]
    return [
        o.clone() if any(o is t for t in tensors) and any(may_share(o, w) for w in written) else o
        for o in operands
    ]


def _meet(outputs: list[torch.Tensor]) -> bool:
    """Whether the memory of one of two outputs begins before that of the other one ends."""
    if len(outputs) < 2 or not may_share(*outputs) or not all(t.numel() for t in outputs):
        return False
    firsts = [t.storage_offset() * t.itemsize for t in outputs]
    spans = [sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) for t in outputs]
    ends = [f + (n + 1) * t.itemsize for f, n, t in zip(firsts, spans, outputs, strict=True)]
    return max(firsts) < min(ends)


class ufunc:
    """A NumPy universal function on shim arrays: `np.add` and its like.

    Called with array-likes it gives a fresh array, a NumPy scalar for 0-D operands, or `out`.
    Errors are NumPy's: UFuncTypeError for dtypes without a loop or casts that `casting` forbids,
    ValueError for shapes that do not broadcast, OverflowError for Python ints that do not fit.
    """

    signature = None  # no generalized ufunc among them

    def __init__(self, formulas: Formulas):
        own = formulas.numpy
        self._formulas = formulas
        self._numpy = own
        self._name = formulas.name
        self._direct: dict[Any, Callable] = {}
        self._resolved: dict[tuple, tuple] = {}
        # What users have tells errors: see `_door.Storing`.
        self.before_storing: Callable[[tuple, tuple, dict], None] | None = None
        self._int_power = formulas.name == "power"
        self.__name__ = self.__qualname__ = own.__name__
        self.__doc__ = f"numpy.{own.__name__} on tensors: {own.nin} in, {own.nout} out."
        self.nin, self.nout, self.nargs = own.nin, own.nout, own.nargs
        self.identity, self.types, self.ntypes = own.identity, own.types, own.ntypes
        self.__signature__ = _call_signature(own.nin, own.nout)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self):
        return find, (self._name,)

    def resolve_dtypes(self, dtypes: Any, **options: Any) -> tuple:
        """NumPy's own answer."""
        return self._numpy.resolve_dtypes(dtypes, **options)

    # dtypes

    def _resolve(self, keys: tuple, outs: tuple, casting: str, signature: Any) -> tuple:
        """The torch dtypes of the loop, (ins, outs), by NumPy's rules; NumPy's errors."""
        memo = (keys, outs, casting, signature)
        found = self._resolved.get(memo)
        if found is None:
            alone = all(k in NUMBERS for k in keys)
            given = [TO_NUMPY[k] if k not in NUMBERS else np.dtype(k) if alone else k for k in keys]
            given += [None if o is None else TO_NUMPY[o] for o in outs]
            more = {} if signature is None else {"signature": signature}
            resolved = self._numpy.resolve_dtypes(tuple(given), casting=casting, **more)
            torch_dtypes = tuple(torch_dtype(d) for d in resolved)
            found = torch_dtypes[: self.nin], torch_dtypes[self.nin :]
            self._resolved[memo] = found
        return found

    def _signature(self, dtype: Any, signature: Any) -> tuple | None:
        """`dtype=` and `signature=` as the tuple of dtypes that resolve_dtypes wants."""
        if signature is None:
            if dtype is None:
                return None
            wanted = TO_NUMPY[torch_dtype(dtype)]
            return (None,) * self.nin + (wanted,) * self.nout
        if dtype is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        if isinstance(signature, str):
            ins, _, outs = signature.partition("->")
            chars = ins + outs
            if not outs:
                wanted = np.dtype(signature)
                return (None,) * self.nin + (wanted,) * self.nout
            return tuple(np.dtype(c) for c in chars)
        if isinstance(signature, tuple):
            if signature == (None,):
                let_numpy_raise(self._numpy, *(0,) * self.nin, signature=signature)
            if len(signature) == 1:
                return (None,) * self.nin + (np.dtype(signature[0]),) * self.nout
            return tuple(None if s is None else np.dtype(s) for s in signature)
        raise TypeError("the signature object to ufunc must be a string or a tuple.")

    # computing

    def _bind(self, keys: tuple, ins: tuple, outs: tuple) -> Callable:
        """The closure that computes for operands with these keys."""
        run = loop(self._name, ins, outs)
        integers = self._int_power and not (ins[0].is_floating_point or ins[0].is_complex)
        if keys == ins:
            return run
        if integers and not (isinstance(keys[1], torch.dtype) and keys[1].is_signed):
            run = self._natural(run, ins)
        if self._name == "power" and keys[1] in NUMBERS and ins[0].is_floating_point:
            run = torch.pow  # a half is seen below
        numbers = self._formulas.numbers
        if len(keys) == 2 and numbers and keys[0] is ins[0] and keys[1] in NUMBERS:
            dtype = ins[1]
            if dtype in _WITHNUMBERS and keys[1] is not complex:
                return self._with_number(run, dtype)

        alone = all(k is int for k in keys)

        def convert(*operands: Any):
            if alone and any(type(o) is int and o.bit_length() > 63 for o in operands):
                raise NotSupported("Python integers beyond int64: uint64 or objects to NumPy")
            device = _device(operands)
            placed = [_place(o, d, device) for o, d in zip(operands, ins, strict=True)]
            if integers and type(operands[1]) is int and operands[1] < 0 and placed[0].numel():
                refuse_negative()
            return run(*placed)

        if int in keys and (
            self._name in _LOGICAL or (self._name in _COMPARISONS and torch.bool in keys)
        ):
            return _of_c_longs(convert)
        if self._name in _COMPARISONS and int in keys:
            return self._against_any_int(convert, ins)
        if self._name == "power" and keys[1] in NUMBERS and ins[0].is_floating_point:
            return _power_of_number(convert, ins[0])
        if self._name == "power" and keys[1] in (int, float) and ins[0].is_complex:
            return _complex_power_of_number(convert, ins[0])
        return convert

    @staticmethod
    def _natural(run: Callable, ins: tuple) -> Callable:
        """The power of integers for an exponent that cannot be negative, or is a known number."""
        return run if ins[0] in WIDER else natural_power

    def _with_number(self, run: Callable, dtype: torch.dtype) -> Callable:
        def against(a: torch.Tensor, number: Any):
            if isinstance(number, Weak):
                return run(a, _place(number, dtype, a.device))
            return run(a, _number(number, dtype))

        return (
            self._against_any_int(against, (dtype, dtype))
            if self._name in _COMPARISONS
            else (against)
        )

    def _against_any_int(self, run: Callable, ins: tuple) -> Callable:
        """Comparisons take Python ints beyond the range of the dtype, and answer right."""
        compare = _COMPARISONS[self._name]

        def guarded(a: Any, b: Any):
            for value, dtype, first in ((a, ins[0], True), (b, ins[1], False)):
                if type(value) is int and not (dtype.is_floating_point or dtype.is_complex):
                    try:
                        check_python_int(value, dtype)
                    except OverflowError:
                        other = b if first else a
                        answer = compare(value, 0) if first else compare(0, value)
                        if not isinstance(other, torch.Tensor):
                            return torch.tensor(answer)
                        return torch.full_like(other, answer, dtype=torch.bool)
            return run(a, b)

        return guarded

    def _compute(self, operands: list, keys: tuple, ins: tuple, outs: tuple) -> Any:
        """Run the loop on operands; broadcast errors in NumPy's words."""
        run = self._bind(keys, ins, outs)
        try:
            return run(*operands)
        except RuntimeError as error:
            return self._recover(error, run, operands)

    def _recover(self, error: RuntimeError, run: Callable, operands: Any, *more: Any) -> Any:
        shapes = [tuple(o.shape) for o in (*operands, *more) if isinstance(o, torch.Tensor)]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise ValueError(
                "operands could not be broadcast together with shapes "
                + "".join(shape_text(s) + " " for s in shapes)
            ) from None
        device = _device(operands)
        if any(
            isinstance(o, torch.Tensor) and o.device != device and not o.dim() for o in operands
        ):
            return run(*[o.to(device) if isinstance(o, torch.Tensor) else o for o in operands])
        raise error

    def _call(self, inputs, out, where, casting, order, dtype, subok, signature) -> Any:
        """The long way, with every option."""
        if casting not in _CASTINGS:
            let_numpy_raise(np.can_cast, "d", "d", casting)
            raise ValueError(
                "casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' "
                f"(got {casting!r})"
            )
        if order not in _ORDERS:
            raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
        operands = [as_operand(x) for x in inputs]
        operands = [torch.tensor(x) if isinstance(x, bool) else x for x in operands]
        targets = self._targets(out)
        if out is not None and torch.is_grad_enabled() and not is_followed():
            operands = _apart(operands, targets)
        if self._int_power and where is not True and isinstance(operands[1], torch.Tensor):
            # what is masked may be negative
            operands[1] = torch.where(as_tensor(where), operands[1], 1)
        keys = tuple(map(promotion_kind, operands))
        out_keys = tuple(None if t is None else t._t.dtype for t in targets)
        ins, outs = self._resolve(keys, out_keys, casting, self._signature(dtype, signature))
        plain = casting == "same_kind" and dtype is None and signature is None
        if plain and out is None and not any(isinstance(o, Weak) for o in operands):
            run = self._bind(keys, ins, outs)
            self._direct[keys if len(keys) > 1 else keys[0]] = run
            try:
                result = run(*operands)
            except RuntimeError as error:
                result = self._recover(error, run, operands)
        else:
            result = self._compute(operands, keys, ins, outs)
        results = result if isinstance(result, tuple) else (result,)
        if out is not None and self.before_storing is not None:
            given = {"where": where, "casting": casting, "dtype": dtype, "signature": signature}
            options = {n: v for n, v in given.items() if v is not _OPTIONS[n]}
            self.before_storing(results, inputs, options)
        mask = None
        if where is not True:
            mask = as_tensor(where)
            if mask.dtype is not torch.bool:
                raise TypeError(
                    f"Cannot cast array data from {TO_NUMPY[mask.dtype]!r} to dtype('bool') "
                    "according to the rule 'safe'"
                )
        finished = tuple(
            self._finish(r, t, mask, order, operands) for r, t in zip(results, targets, strict=True)
        )
        return finished if self.nout > 1 else finished[0]

    def _targets(self, out: Any) -> tuple:
        """`out=` as one array or None for each output. TypeError, ValueError as in NumPy."""
        if out is None:
            return (None,) * self.nout
        if isinstance(out, tuple):
            if len(out) != self.nout:
                raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        elif self.nout > 1:
            raise TypeError("'out' must be a tuple of arrays")
        else:
            out = (out,)
        for target in out:
            if target is not None and (type(target) is not ndarray or target._scalar):
                raise TypeError("return arrays must be of ArrayType")
            if target is not None and target._readonly:
                raise ValueError("output array is read-only")
        if self.nout > 1 and _meet([t._t for t in out if t is not None]):
            # which of the two stays depends on NumPy's loop, and on what it copies for it
            raise NotSupported(f"{self.__name__} with outputs that share memory")
        return out

    def _finish(self, result, target, mask, order, operands) -> ndarray:
        """Apply `where`, store into `out`, or wrap."""
        if mask is not None and mask.device != result.device and not mask.dim():
            mask = mask.to(result.device)
        if target is None:
            if mask is not None:
                shapes = [t.shape for t in (result, mask)]
                shape = self._broadcast(operands, *shapes)
                mask, result = mask.expand(shape), result.expand(shape)
                result = choose_by(mask, result, torch.zeros_like(result))
            if order in ("C", "F") and result.dim() > 1:
                result = _laid_out(result, order)
            elif not result.is_contiguous():
                result = laid_by_all(result, *operands)
            return ndarray(result, (), result.dim() == 0)
        shape = self._broadcast(operands, result.shape, *(() if mask is None else (mask.shape,)))
        full = self._broadcast(operands, shape, target._t.shape, say=target._t.shape)
        if full != tuple(target._t.shape):
            raise ValueError(
                f"non-broadcastable output operand with shape {shape_text(target._t.shape)} "
                f"doesn't match the broadcast shape {shape_text(full)}"
            )
        result = cast(result, target._t.dtype)
        if tuple(result.shape) != full:
            result = result.expand(full)
        if mask is not None:
            result = choose_by(mask.expand(full), result, target.tensor)
        write(target, result)
        return target

    def _broadcast(self, operands: list, *shapes: Any, say: Any = None) -> tuple[int, ...]:
        try:
            return common_shape(*shapes)
        except ValueError:
            told = [o.shape for o in operands if isinstance(o, torch.Tensor)]
            told += [] if say is None else [say]
            raise ValueError(
                "operands could not be broadcast together with shapes "
                + "".join(shape_text(s) + " " for s in told)
            ) from None

    # methods

    def _check_binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary functions")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    def _out_array(self, out: Any, dtype: Any, t: torch.Tensor) -> tuple[ndarray | None, Any]:
        """The `out=` of a method on a tensor, and the dtype to compute in, if one is asked for."""
        target = self._targets(out)[0] if out is not None else None
        wanted = None if dtype is None else torch_dtype(dtype)
        if target is not None and wanted is None and not self._name.startswith("logical"):
            wanted = reduce_dtype(self._name, t.dtype, None, target._t.dtype)
        return target, wanted

    def _give(self, result: torch.Tensor, target: ndarray | None, scalar: bool = True) -> ndarray:
        if target is None:
            return ndarray(result, (), scalar and result.dim() == 0)
        if tuple(target._t.shape) != tuple(result.shape):
            raise ValueError(
                f"output parameter for reduction operation {self.__name__} has the wrong shape: "
                f"expected {tuple(result.shape)} got {tuple(target._t.shape)}"
            )
        result = cast(result, target._t.dtype)
        write(target, result)
        return target

    def reduce(
        self,
        array: Any,
        /,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = NoValue,
        where: Any = True,
    ) -> ndarray:
        """Fold the ufunc along `axis` (int, tuple, None for all): the axes are gone, or 1 long."""
        self._check_binary("reduce")
        tensor = as_tensor(array)
        target, wanted = self._out_array(out, dtype, tensor)
        start = initial if initial is NoValue or initial is None else as_operand(initial)
        mask = where if isinstance(where, bool) else as_tensor(where)
        result = reduce_engine(self._name, tensor, axis, wanted, bool(keepdims), start, mask)
        return self._give(result, target)

    def accumulate(
        self, array: Any, /, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray:
        """All partial results of `reduce` along one axis: the shape of `array`."""
        self._check_binary("accumulate")
        tensor = as_tensor(array)
        target, wanted = self._out_array(out, dtype, tensor)
        result = _accumulate.accumulate_engine(self._name, tensor, axis, wanted)
        return self._give(result, target)

    def reduceat(
        self, array: Any, /, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray:
        """Reductions over the slices between successive indices of one axis."""
        self._check_binary("reduceat")
        tensor = as_tensor(array)
        target, wanted = self._out_array(out, dtype, tensor)
        result = _accumulate.reduceat_engine(self._name, tensor, as_tensor(indices), axis, wanted)
        return self._give(result, target)

    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> ndarray:
        """The ufunc of all pairs: shape A.shape + B.shape."""
        if self.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        a, b = as_array(A), as_array(B)
        left = a.tensor
        if a.ndim:  # 0-D operands stay so: they may lie on another device
            left = left.reshape(tuple(a.shape) + (1,) * b.ndim)
        return self(ndarray(left, (), a._scalar), b, **kwargs)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """In place: a[indices] = ufunc(a[indices], b), repeated indices once for each time."""
        if type(a) is not ndarray:
            raise TypeError("first operand must be array")
        if a._readonly or a._scalar:
            raise ValueError("assignment destination is read-only")
        if self.nin == 2 and b is None:
            raise ValueError("second operand needed for ufunc")
        if self.nin == 1 and b is not None:
            raise ValueError("second operand provided when ufunc is unary")
        if self.nout != 1:
            raise ValueError("Only two operand ufuncs with one output are supported")
        _accumulate.at_engine(self, a, indices, b)


def _laid_out(t: torch.Tensor, order: str) -> torch.Tensor:
    """The same values, rows ("C") or columns ("F") adjacent in memory."""
    if order == "C":
        return t.contiguous()
    axes = tuple(reversed(range(t.dim())))
    return t.permute(axes).contiguous().permute(axes)


def _of_c_longs(run: Callable) -> Callable:
    """Python ints have to fit a C long, whatever dtype they are compared in."""

    def checked(*operands: Any):
        for operand in operands:
            if type(operand) is int:
                check_python_int(operand, torch.int64)
        return run(*operands)

    return checked


def _power_of_number(run: Callable, dtype: torch.dtype) -> Callable:
    """Powers that have a cheaper and more exact form, as NumPy has it."""

    def power(a: Any, exponent: Any):
        if type(a) is torch.Tensor and a.dtype is dtype and not isinstance(exponent, Weak):
            if exponent == 2:
                return torch.square(a)
            if exponent == 0.5 and dtype is not torch.float16:
                return sqrt(a)
        return run(a, exponent)

    return power


def _complex_power_of_number(run: Callable, dtype: torch.dtype) -> Callable:
    """Whole powers are products, as NumPy has it."""

    def power(a: Any, exponent: Any):
        if not isinstance(exponent, Weak) and abs(exponent) < 100 and exponent == int(exponent):
            return complex_whole_power(_place(a, dtype, None), int(exponent))
        return run(a, exponent)

    return power


@cache
def _call_signature(nin: int, nout: int) -> inspect.Signature:
    p = inspect.Parameter
    names = ("x",) if nin == 1 else ("x1", "x2")
    params = [p(n, p.POSITIONAL_ONLY) for n in names]
    params.append(p("out", p.POSITIONAL_OR_KEYWORD, default=None if nout == 1 else (None,) * nout))
    params += [p(n, p.KEYWORD_ONLY, default=d) for n, d in _OPTIONS.items()]
    return inspect.Signature(params)
