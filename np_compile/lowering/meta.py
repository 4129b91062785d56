"""What torch's operators give, found without data: shapes, strides and dtypes on the meta device.

torch sends most operators on meta tensors through references written in Python. They take 0.1 ms a
call, and the first call of each kind imports torch's compiler, which takes a second. Below them lie
the shape functions in C++ that the kernels themselves use; `Shapes` goes there directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_COMPOSITE = torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional


class _Mode(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not wrap `__torch_dispatch__` for torch's compiler: that would import it."""
        return False


class _Outputs(_Mode):
    """Within it, the `out=` form of an operator leaves its outputs as they are.

    The composite form of a structured operator makes its outputs, laid out as the operator lays
    them out, and then calls the `out=` form to fill them.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        outs = _outs(func)
        if not outs:
            return func(*args, **kwargs)
        names, first = outs
        made = tuple(kwargs[n] if n in kwargs else args[first + k] for k, n in enumerate(names))
        return made if len(made) > 1 else made[0]


class Shapes(_Mode):
    """Within it, operators on meta tensors give meta tensors quickly; others run as they would."""

    def __init__(self) -> None:
        super().__init__()
        self._outputs = _Outputs()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if all(t.is_meta for t in tensors_of(args, kwargs)):
            return self.run(func, args, kwargs)
        return func(*args, **kwargs)

    def run(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The operator on meta tensors. Errors are those that the operator itself gives."""
        rule = _rule(func)
        if rule is None:
            return func(*args, **kwargs)
        with self._outputs:
            return rule(*args, **kwargs)


def tensors_of(args: tuple, kwargs: dict) -> Iterator[torch.Tensor]:
    """Every tensor among an operator's arguments, also in lists."""
    for a in (*args, *kwargs.values()):
        if isinstance(a, torch.Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            for b in a:
                if isinstance(b, torch.Tensor):
                    yield b


@cache
def _outs(func: Any) -> tuple[list[str], int] | None:
    """Names of an operator's output parameters, and the place of the first; None without any."""
    parameters = func._schema.arguments
    names = [p.name for p in parameters if p.is_out]
    return (names, [p.is_out for p in parameters].index(True)) if names else None


@cache
def _rule(func: Any) -> Callable | None:
    """A quick way to an operator's results on meta tensors, None where there is none."""
    if func in _RULES:
        return _RULES[func]
    name = func.name()
    if func.is_view or not torch._C._dispatch_has_kernel_for_dispatch_key(name, _COMPOSITE.name):
        return None
    return _call(func)


def _call(func: Any) -> Callable:
    return partial(func._op_dk, _COMPOSITE)


def _where(condition: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`clamp` lays its result out by three tensors as `where` does, but knows no complex ones."""
    clamp = _call(_aten.clamp.Tensor)
    if a.dtype is b.dtype and a.dtype.is_floating_point:
        return clamp(condition, a, b)
    dtype = torch.result_type(a, b)
    layout = clamp(condition, *(_of_dtype(t.to(dtype), torch.float32) for t in (a, b)))
    return _of_dtype(layout, dtype)


def _of_dtype(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor laid out as `t`."""
    return torch.empty_strided(t.shape, t.stride(), dtype=dtype, device="meta")


def _like(
    t: torch.Tensor, *fill: Any, dtype: torch.dtype | None = None, memory_format: Any = None,
    **where: Any,
) -> torch.Tensor:  # fmt: skip
    """A tensor beside `t`; `fill`, and `where` it lies, are no matter of its shape."""
    if memory_format not in (None, torch.preserve_format):
        return torch.empty(t.shape, dtype=dtype or t.dtype, device="meta")
    return _of_dtype(_test(t), dtype or t.dtype)


def _flip(t: torch.Tensor, dims: Any) -> torch.Tensor:
    return _like(t)


def _roll(t: torch.Tensor, shifts: Any, dims: Any = ()) -> torch.Tensor:
    """Two parts of `t` are joined."""
    if t.dim() == 0:
        return _like(t)
    d = dims[0] if dims else 0
    return _call(_aten.cat.default)([t.narrow(d, 0, 0), t], d)


def _stack(parts: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
    return _call(_aten.cat.default)([t.unsqueeze(dim) for t in parts], dim)


def _arange(start: Any, end: Any, step: Any = 1, dtype: Any = None, **where: Any) -> torch.Tensor:
    """Steps from `start` to before `end`; `where` they lie is no matter of their number."""
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, end, step))
        dtype = torch.int64 if whole else torch.get_default_dtype()
    if all(isinstance(v, int) for v in (start, end, step)):
        size = -((start - end) // step)
    else:
        size = math.ceil((end - start) / step)
    return torch.empty(size, dtype=dtype, device="meta")


def _arange_from_0(end: Any, **options: Any) -> torch.Tensor:
    return _arange(0, end, **options)


def _repeat(t: torch.Tensor, repeats: Any) -> torch.Tensor:
    shape = [1] * (len(repeats) - t.dim()) + list(t.shape)
    extents = [n * r for n, r in zip(shape, repeats, strict=True)]
    return torch.empty(extents, dtype=t.dtype, device="meta")


def _index_put(
    t: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    return _like(t)


def _masked_scatter(t: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """`t` and `mask` as they broadcast; in C order, however they lie."""
    if t.dtype is not values.dtype or mask.dtype is not torch.bool:
        return _aten.masked_scatter.default(t, mask, values)
    shape = _call(_aten.eq.Tensor)(t, mask).shape
    return torch.empty(shape, dtype=t.dtype, device="meta")


def _mv(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _call(_aten.mm.default)(a, b.unsqueeze(1)).squeeze(1)


def _dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _call(_aten.mm.default)(a.unsqueeze(0), b.unsqueeze(1)).view(())


def _rsub(t: torch.Tensor, other: Any, alpha: Any = 1) -> torch.Tensor:
    return _call(_aten.sub.Tensor)(t, other, alpha=alpha)


def _add_number(t: torch.Tensor, other: Any, alpha: Any = 1) -> torch.Tensor:
    return _call(_aten.mul.Tensor)(t, other)


def _divide_by_number(t: torch.Tensor, other: Any) -> torch.Tensor:
    made: torch.Tensor = _call(_aten.mul.Tensor)(t, other)
    if made.is_floating_point() or made.is_complex():
        return made
    return _of_dtype(made, torch.get_default_dtype())


def _mean(t: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _call(_aten.mean.dim)(t, None, dtype=dtype)


def _complex(real: torch.Tensor, imag: torch.Tensor) -> torch.Tensor:
    return _of_dtype(_call(_aten.eq.Tensor)(real, imag), real.dtype.to_complex())


def _abs(t: torch.Tensor) -> torch.Tensor:
    if not t.dtype.is_complex:
        return _call(_aten.sgn.default)(t)
    return _of_dtype(_test(t), t.dtype.to_real())


def _frexp(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _like(t), _like(t, dtype=torch.int32)


def _sort(
    t: torch.Tensor, dim: int = -1, descending: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return _call(_aten.sort.stable)(t, stable=False, dim=dim, descending=descending)


def _searchsorted(
    bounds: torch.Tensor, values: torch.Tensor, *, out_int32: bool = False, **which: Any
) -> torch.Tensor:
    """A place for each value; `which`, next to equal ones, is no matter of their number."""
    dtype = torch.int32 if out_int32 else torch.int64
    return torch.empty(values.shape, dtype=dtype, device="meta")


def _convolution(
    t: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, *rest: Any,
) -> torch.Tensor:  # fmt: skip
    """Along one axis; of two, memory may be laid out by channels."""
    if t.dim() != 3 or transposed:
        ways = (bias, stride, padding, dilation, transposed, *rest)
        return _aten.convolution.default(t, weight, *ways)
    reach = dilation[0] * (weight.shape[2] - 1)
    size = (t.shape[2] + 2 * padding[0] - reach - 1) // stride[0] + 1
    return torch.empty((t.shape[0], weight.shape[0], size), dtype=t.dtype, device="meta")


def _test(t: torch.Tensor) -> torch.Tensor:
    return _call(_aten.eq.Scalar)(t, 0)


def _transform(t: torch.Tensor, axes: list[int], sizes: list[int], dtype: Any) -> torch.Tensor:
    """A Fourier transform along axes lays its result out by batches, in the order of their strides,
    and along these axes last. See `_exec_fft` in aten/src/ATen/native/mkl/SpectralOps.cpp."""
    batches = _by_stride(t, [d for d in range(t.dim()) if d not in axes])
    order = [*batches, *axes]
    laid_out = torch.empty([sizes[d] for d in order], dtype=dtype, device=t.device)
    return laid_out.permute([order.index(d) for d in range(t.dim())])


def _by_stride(t: torch.Tensor, axes: list[int]) -> list[int]:
    strides = t.stride()
    return sorted((d % t.dim() for d in axes), key=lambda d: -strides[d])


def _fft_c2c(t: torch.Tensor, dim: list[int], normalization: int, forward: bool) -> torch.Tensor:
    return _transform(t, _by_stride(t, dim), list(t.shape), t.dtype)


def _fft_r2c(t: torch.Tensor, dim: list[int], normalization: int, onesided: bool) -> torch.Tensor:
    sizes = list(t.shape)
    if onesided:
        sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1
    axes = [*_by_stride(t, dim[:-1]), dim[-1] % t.dim()]
    return _transform(t, axes, sizes, t.dtype.to_complex())


def _fft_c2r(t: torch.Tensor, dim: list[int], normalization: int, last: int) -> torch.Tensor:
    if len(dim) > 1:
        t = _fft_c2c(t, dim[:-1], normalization, False)
    sizes = list(t.shape)
    sizes[dim[-1]] = last
    return _transform(t, [dim[-1] % t.dim()], sizes, t.dtype.to_real())


_aten = torch.ops.aten
# Operators without a composite form, by others of the same layout that have one.
_RULES: dict[Any, Callable] = {
    _aten.where.self: _where,
    _aten.abs.default: _abs,
    _aten.angle.default: _abs,
    _aten.complex.default: _complex,
    _aten.empty_like.default: _like,
    _aten.zeros_like.default: _like,
    _aten.ones_like.default: _like,
    _aten.full_like.default: _like,
    _aten.isnan.default: _test,
    _aten.isinf.default: _test,
    _aten.logical_not.default: _test,
    _aten.logical_and.default: _call(_aten.eq.Tensor),
    _aten.logical_or.default: _call(_aten.eq.Tensor),
    _aten.logical_xor.default: _call(_aten.eq.Tensor),
    _aten._conj_physical.default: _like,
    _aten.clone.default: _like,
    _aten.frexp.Tensor: _frexp,
    _aten.sort.default: _sort,
    _aten.searchsorted.Tensor: _searchsorted,
    _aten.convolution.default: _convolution,
    _aten.flip.default: _flip,
    _aten.roll.default: _roll,
    _aten.repeat.default: _repeat,
    _aten.stack.default: _stack,
    _aten.index_put.default: _index_put,
    _aten.masked_scatter.default: _masked_scatter,
    _aten.__lshift__.Tensor: _call(_aten.bitwise_left_shift.Tensor),
    _aten.__lshift__.Scalar: _call(_aten.mul.Tensor),
    _aten.__rshift__.Tensor: _call(_aten.bitwise_right_shift.Tensor),
    _aten.__rshift__.Scalar: _call(_aten.mul.Tensor),
    _aten.arange.default: _arange_from_0,
    _aten.arange.start: _arange,
    _aten.arange.start_step: _arange,
    _aten.mv.default: _mv,
    _aten.dot.default: _dot,
    _aten.rsub.Scalar: _rsub,
    _aten.floor_divide.default: partial(_call(_aten.div.Tensor_mode), rounding_mode="floor"),
    # Of these `mul` alone takes a number in the place of a tensor, and all promote alike.
    _aten.remainder.Scalar: _call(_aten.mul.Tensor),
    _aten.fmod.Scalar: _call(_aten.mul.Tensor),
    _aten.mul.Scalar: _call(_aten.mul.Tensor),
    _aten.add.Scalar: _add_number,
    _aten.sub.Scalar: _add_number,
    _aten.div.Scalar: _divide_by_number,
    _aten.mean.default: _mean,
    _aten.relu.default: _call(_aten.sgn.default),
    _aten.bitwise_and.Scalar: _call(_aten.mul.Tensor),
    _aten.bitwise_or.Scalar: _call(_aten.mul.Tensor),
    _aten.bitwise_xor.Scalar: _call(_aten.mul.Tensor),
}
if torch.backends.mkl.is_available():  # other libraries lay their results out in other ways
    _TRANSFORMS = {
        _aten._fft_c2c.default: _fft_c2c,
        _aten._fft_r2c.default: _fft_r2c,
        _aten._fft_c2r.default: _fft_c2r,
    }
    _RULES |= _TRANSFORMS
