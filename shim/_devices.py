"""The device on which torch makes new tensors: that of `with torch.device(...)`, or the default."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.utils._device import DeviceContext

_CPU = torch.device("cpu")


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
