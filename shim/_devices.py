"""The device on which torch makes new tensors: that of `with torch.device(...)`, or the default."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.utils._device import DeviceContext

_CPU = torch.device("cpu")

# Attribute of a meta tensor that stands in a program: what writes the program down, with the
# `place` where it will run, and the node of the tensor.
NODE = "_np_compile_node"


def modes() -> list[Any]:
    """The active modes of torch's functions, the innermost one first."""
    return [_get_function_stack_at(k) for k in reversed(range(_len_torch_function_stack()))]


def default_device() -> torch.device:
    """The device, with its index. Unlike `torch.get_default_device` it makes no tensor there."""
    for mode in modes():
        if isinstance(mode, DeviceContext):
            device: torch.device = mode.device
            if device.type == "cuda" and device.index is None:
                return torch.device("cuda", torch.cuda.current_device())
            return device
    return _CPU


def on_gpu(t: torch.Tensor) -> bool:
    """Whether the elements of a tensor are, or will be when its program runs, on a CUDA device."""
    if not t.is_meta:
        return t.is_cuda
    recorded = getattr(t, NODE, None)
    return recorded is not None and recorded[0].place.type == "cuda"
