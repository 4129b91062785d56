"""Names of torch and NumPy that are not promised to stay, each with what needs it, and what happens
without.
"""

from __future__ import annotations

from collections.abc import Sequence

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
