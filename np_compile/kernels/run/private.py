"""Names of torch and NumPy that are not promised to stay, each with what needs it, and what happens
without.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64
from pathlib import Path
from typing import Any

import torch
from torch.overrides import BaseTorchFunctionMode, _pop_mode, _push_mode


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


def _count_threads() -> Any:
    """A C function that gives the number of threads that torch's are told to be."""
    found = _address("_ZN2at15get_num_threadsEv")
    made = ctypes.CFUNCTYPE(ctypes.c_int)
    return made(found) if found else made(torch.get_num_threads)


def _place_of_modes() -> int:
    """Where in what torch has of a thread the pointers to its first mode and behind its last one
    are, of which each takes two words, as is tried; 0: it is not known."""
    if not modes_of_thread:
        return 0
    words = (c_int64 * 4).from_address(ctypes.CFUNCTYPE(c_int64)(modes_of_thread)())
    fits = [k for k in range(1, 3) if _holds_modes(words, k)]
    for _ in range(2):
        _push_mode(BaseTorchFunctionMode())
        fits = [k for k in fits if _holds_modes(words, k)]
    for _ in range(2):
        _pop_mode()
    return 8 * fits[0] if len(fits) == 1 else 0


def _holds_modes(words: ctypes.Array[c_int64], k: int) -> bool:
    return words[k + 1] - words[k] == 16 * torch._C._len_torch_function_stack()


# Gives the address of what torch has of the thread that asks, with the modes of its functions, for
# C; without, `torch._C._len_torch_function_stack` is called.
modes_of_thread = _address("_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv")
modes_at = _place_of_modes()

# Gives the number of threads, for C, without Python's lock; without it Python is asked.
_threads = _count_threads()
num_threads = ctypes.cast(_threads, ctypes.c_void_p).value or 0


def _of_python(name: str) -> int:
    function = getattr(ctypes.pythonapi, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


# Gives what runs Python's frames, and that if nobody has changed it: torch's compiler does while it
# is at work anywhere. Without, torch is asked whether it is.
runs_frames = _of_python("_PyInterpreterState_GetEvalFrameFunc")
usual = _of_python("_PyEval_EvalFrameDefault")
