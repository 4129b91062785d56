"""Which tensors kernels may take, and the modes of torch in which nothing may be compiled.

A kernel gets the address of a tensor's memory, its shape and strides. A tensor that is more than
that (a DTensor, a FakeTensor, one inside a transform of `torch.func`, a subclass) says itself what
an operator does with it, so its function runs operator by operator.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._C import _get_tracing_state, _len_torch_dispatch_stack
from torch._C._functorch import is_functorch_wrapped_tensor, peek_interpreter_stack
from torch.autograd import forward_ad

from np_compile import shim
from np_compile.errors import TensorArgument

_ORDINARY = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class Unusual(TensorArgument):
    """A tensor that kernels cannot take, met where it is too late to run without them."""


def traced() -> bool:
    """Whether torch looks at each operator: a transform of `torch.func`, forward derivatives, a
    dispatch mode (of fake tensors, of a tracer), `torch.jit.trace`."""
    return (
        _len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
    )


def on_shim(args: tuple) -> bool:
    """Whether arguments come from a wrapped function that runs on the shim's arrays."""
    return any(type(a) is shim.ndarray for a in args)


def ordinary(t: torch.Tensor) -> bool:
    """Whether a tensor is memory with a shape and strides, and nothing more."""
    return (
        type(t) in _ORDINARY
        and t.layout is torch.strided
        and t.device.type != "meta"
        and not (t.is_conj() or t.is_neg() or t.is_nested or t._is_zerotensor())
        and not torch._is_functional_tensor(t)
        and not is_functorch_wrapped_tensor(t)
    )


def check_tensor(t: torch.Tensor) -> None:
    """TensorArgument for a tensor that no NumPy array can stand for."""
    with torch._C.DisableTorchFunctionSubclass():
        nested, layout, dtype = t.is_nested, t.layout, t.dtype
    if nested:
        raise TensorArgument(
            "a nested tensor: the rows of a NumPy array are of one length\n"
            "  Remedy: pad it first, `torch.nested.to_padded_tensor(x, 0.0)`."
        )
    if layout is not torch.strided:
        raise TensorArgument(
            f"a tensor with the layout {layout}: a NumPy array has all its elements in memory\n"
            "  Remedy: convert it first, `x.to_dense()`, and the result back."
        )
    if dtype not in shim.TO_NUMPY:
        way = "dequantize()" if t.is_quantized else "cfloat()" if dtype.is_complex else "float()"
        raise TensorArgument(
            f"a tensor of {dtype}: NumPy has no such dtype\n"
            f"  Remedy: convert it first, `x.{way}`, and the result back."
        )


def check_place(t: torch.Tensor, device: torch.device | None) -> None:
    """TensorArgument for a tensor that does not lie where those before it do; None: there were
    none."""
    if device is not None and t.device != device:
        raise TensorArgument(
            f"tensors on two devices, {device} and {t.device}: the arrays of a call lie on one\n"
            f"  Remedy: move them first, `x.to({str(device)!r})`."
        )


def of_memory(x: Any) -> torch.Tensor:
    """The tensor on the memory of another library's array, by DLPack."""
    strides = getattr(x, "strides", None)
    if isinstance(strides, tuple) and min(strides, default=0) < 0:  # torch would end the process
        raise TensorArgument(
            f"a {type(x).__name__} that is walked backwards: a tensor cannot be\n"
            "  Remedy: copy it first, `x.copy()`."
        )
    return torch.from_dlpack(x)


def check_ordinary(t: torch.Tensor) -> None:
    """As `check_tensor`, and Unusual for a tensor that kernels cannot take."""
    check_tensor(t)
    if not ordinary(t):
        kind = type(t).__name__ if type(t) not in _ORDINARY else "tensor that is no plain memory"
        raise Unusual(
            f"a {kind} that the function did not get as an argument: kernels cannot take it\n"
            "  Remedy: hand it over as an argument; the function then runs operator by operator."
        )
