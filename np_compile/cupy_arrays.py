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
from .capture.exchange.arguments import attributes, is_record, set_attributes
from .errors import TensorArgument
from .loan import Loan

_LOOKED_AT = 1000  # objects among the arguments, of which the first ones count


def among(args: tuple, kwargs: dict) -> bool:
    """Whether there are CuPy arrays among the arguments, also in lists, tuples, dicts and the
    attributes of objects."""
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
        if isinstance(x, (list, tuple)):
            waiting += islice(x, _LOOKED_AT)
        elif isinstance(x, dict):
            waiting += islice(x.values(), _LOOKED_AT)
        elif _is_object(x):
            waiting += attributes(x).values()
    return False


def _is_object(x: Any) -> bool:
    """Whether x is an instance of a user's class, none of arrays."""
    return is_record(x) and not hasattr(type(x), "__dlpack__")


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
    """CuPy's arrays, for which tensors on their memory stand; also in the attributes of objects."""

    def __init__(self, cupy: Any):
        super().__init__()
        self._cupy = cupy
        self._objects: list[tuple[Any, Any]] = []  # those of the caller, and what stands for them

    def take(self, x: Any) -> Any:
        if id(x) in self._made or not _is_object(x):
            return super().take(x)
        if not self.holds(x):
            self._as_they_are.append(x)
            return x
        made = self.pair(x, object.__new__(type(x)))
        self._objects.append((x, made))
        set_attributes(made, {k: self.take(v) for k, v in attributes(x).items()})
        return made

    def give(self, x: Any) -> Any:
        if id(x) in self._given or not _is_object(x):
            return super().give(x)
        if id(x) not in self._passed:
            self._passed[id(x)] = x
            self._become(x, x)
        return x

    def end(self) -> None:
        super().end()
        for x, made in self._objects:
            self._become(x, made)

    def _become(self, x: Any, made: Any) -> None:
        """An object has what another one has, as the caller gets it."""
        old, new = attributes(x), {k: self.give(v) for k, v in attributes(made).items()}
        if list(new) != list(old) or any(new[k] is not old[k] for k in new):
            set_attributes(x, new)

    def stand_in(self, x: Any) -> Any:
        return of_memory(x) if isinstance(x, self._cupy.ndarray) else None

    def array(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return None
        return self._cupy.from_dlpack(x.detach().resolve_conj().resolve_neg())

    def holds(self, x: Any) -> bool:
        return among((x,), {})
