"""The modes of torch's functions that a call finds: `with torch.device(...)`, and others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch._C import _len_torch_function_stack
from torch.overrides import _pop_mode, _push_mode
from torch.utils._device import DeviceContext

from np_compile.shim._devices import modes


def only_devices() -> bool:
    """Whether no modes of torch's are active but `with torch.device(...)`."""
    return all(type(m) is DeviceContext and m.device.type != "meta" for m in modes())


def count_of_modes() -> int:
    """How many modes are active."""
    count: int = _len_torch_function_stack()
    return count


@contextlib.contextmanager
def beneath(outer: int) -> Iterator[None]:
    """Outside of all modes but so many outer ones."""
    inner = [_pop_mode() for _ in range(outer, _len_torch_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(inner):
            _push_mode(mode)


def on_the_host() -> contextlib.AbstractContextManager[None]:
    """Outside of all `with torch.device(...)`."""
    return beneath(0)
