"""The device on which torch makes new tensors: that of `with torch.device(...)`, or the default."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import _get_function_stack_at, _len_torch_function_stack
from torch.overrides import _pop_mode, _push_mode
from torch.utils._device import DeviceContext

_CPU = torch.device("cpu")


def default_device() -> torch.device:
    """The device, with its index. Unlike `torch.get_default_device` it makes no tensor there."""
    for mode in _modes():
        if isinstance(mode, DeviceContext):
            device: torch.device = mode.device
            if device.type == "cuda" and device.index is None:
                return torch.device("cuda", torch.cuda.current_device())
            return device
    return _CPU


def only_devices() -> bool:
    """Whether no modes of torch's are active but `with torch.device(...)`."""
    return all(type(m) is DeviceContext and m.device.type != "meta" for m in _modes())


@contextlib.contextmanager
def on_the_host() -> Iterator[None]:
    """Outside of all `with torch.device(...)`."""
    modes = [_pop_mode() for _ in range(_len_torch_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


def _modes() -> list[Any]:
    """The active modes of torch's functions, the innermost one first."""
    return [_get_function_stack_at(k) for k in reversed(range(_len_torch_function_stack()))]
