"""Names of torch and NumPy that are not promised to stay, each with what needs it, and what happens
without.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import torch


def _empty_strided(
    shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype)


try:
    # A new tensor, in a third of the time of `torch.empty_strided`, which does as well.
    empty_strided = torch._C._dynamo.guards._empty_strided_cpu  # type: ignore[attr-defined]
except AttributeError:
    empty_strided = _empty_strided

# Where in an array object of NumPy's the address of its data is: right behind what every object
# has. `npc_sequence` reads it there. Without, kept calls could not run; a test looks.
DATA = object.__basicsize__


def _empty_strided_cuda(
    shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype, device="cuda")


def _raw_stream(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)


# On a GPU, likewise quicker than what does as well: a new tensor on the current device, the handle
# of torch's current stream, and the number of the current device.
empty_strided_cuda = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", _empty_strided_cuda)
raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _raw_stream)
current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


def _address(name: str) -> int:
    """The address of a C++ function of torch's; 0 without."""
    for path in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        try:
            found = getattr(ctypes.CDLL(str(path)), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0


# What `torch._C._len_torch_function_stack` gives as an int64, for C; that is asked without.
count_of_modes = _address("_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv")
