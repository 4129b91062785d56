"""CuPy arrays as arguments of a compiled function of NumPy: the call is one of tensors on their
memory, and what it gives are CuPy arrays on the memory of its results. Nothing is copied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from typing import Any

import torch

from .capture.arrays.tensors import of_memory
from .errors import TensorArgument
from .loan import Loan

_LOOKED_AT = 1000  # objects among the arguments, of which the first ones count


def among(args: tuple, kwargs: dict) -> bool:
    """Whether there are CuPy arrays among the arguments, also in lists, tuples and dicts."""
    cupy = sys.modules.get("cupy")  # nobody has its arrays who has not imported it
    kind = getattr(cupy, "ndarray", None)
    if kind is None:
        return False
    waiting: list[Any] = [*args, *kwargs.values()]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return False
        x = waiting.pop()
        if isinstance(x, kind):
            return True
        if isinstance(x, (list, tuple, dict)):
            waiting += islice(x.values() if isinstance(x, dict) else x, _LOOKED_AT)
    return False


def called(on_tensors: Callable, plainly: Callable | None, args: tuple, kwargs: dict) -> Any:
    """What a call gives, made by a function of tensors, on CuPy's stream. Where an array is none
    that a tensor can be made of, the function runs `plainly`, as CuPy has it, if it is given."""
    cupy: Any = sys.modules["cupy"]
    loan = _Loan(cupy)
    try:
        given = [loan.take(x) for x in args]
        named = {k: loan.take(x) for k, x in kwargs.items()}
    except (TensorArgument, BufferError, TypeError, ValueError):
        if plainly is None:
            raise
        return plainly(*args, **kwargs)
    with _on_stream(cupy):
        try:
            return loan.give(on_tensors(*given, **named))
        finally:
            loan.end()


def _on_stream(cupy: Any) -> Any:
    """A block in which torch's current stream is CuPy's."""
    if not torch.cuda.is_available():
        return nullcontext()
    index = cupy.cuda.Device().id
    stream = cupy.cuda.get_current_stream().ptr
    if stream == torch.cuda.current_stream(index).cuda_stream:
        return nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream, index))


class _Loan(Loan):
    """CuPy's arrays, for which tensors on their memory stand."""

    def __init__(self, cupy: Any):
        super().__init__()
        self._cupy = cupy

    def stand_in(self, x: Any) -> Any:
        return of_memory(x) if isinstance(x, self._cupy.ndarray) else None

    def array(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return None
        return self._cupy.from_dlpack(x.detach().resolve_conj().resolve_neg())

    def holds(self, x: Any) -> bool:
        return among((x,), {})
