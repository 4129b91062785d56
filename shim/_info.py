"""What the array API standard lets a library ask about the namespace: devices and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._devices import default_device

_NUMPY = np.__array_namespace_info__()


class NamespaceInfo:
    """The answers of `__array_namespace_info__()`: NumPy's, on torch's devices."""

    def capabilities(self) -> dict[str, Any]:
        """NumPy's capabilities, by name."""
        return _NUMPY.capabilities()

    def default_device(self) -> str:
        """Where new arrays are made: torch's default device."""
        return str(default_device())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtype of each kind of number. ValueError for a device that torch does not know."""
        return _NUMPY.default_dtypes(device=_known(device))

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, or of all kinds, by name. ValueError for other devices, kinds."""
        return _NUMPY.dtypes(device=_known(device), kind=kind)

    def devices(self) -> list[str]:
        """The devices that torch has here."""
        return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def _known(device: Any) -> Any:
    """None for a device of torch's; anything else as it is, for NumPy to refuse."""
    try:
        torch.device(device)
    except (RuntimeError, TypeError):
        return device
    return None
