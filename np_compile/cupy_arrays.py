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
from .tape.tree import with_items

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
        given = [loan.tensors(x) for x in args]
        named = {k: loan.tensors(x) for k, x in kwargs.items()}
    except (TensorArgument, BufferError, TypeError, ValueError):
        if plainly is None:
            raise
        return plainly(*args, **kwargs)
    with _on_stream(cupy):
        try:
            return loan.arrays(on_tensors(*given, **named))
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


class _Loan:
    """The arrays and structures of one call, and what stands for them in it."""

    def __init__(self, cupy: Any):
        self._cupy = cupy
        self._made: dict[int, tuple[Any, Any]] = {}  # id of what is given -> it, what stands for it
        self._given: dict[int, Any] = {}  # id of what stands for something -> that
        self._passed: dict[int, Any] = {}  # lists and dicts among the results

    def tensors(self, x: Any) -> Any:
        """An argument with tensors for arrays; itself, where it holds none."""
        known = self._made.get(id(x))
        if known is not None:
            return known[1]
        if isinstance(x, self._cupy.ndarray):
            return self._pair(x, of_memory(x))
        kind = type(x)
        if not (kind in (list, dict) or isinstance(x, tuple)) or not among((x,), {}):
            return x
        if kind is dict:
            made = self._pair(x, {})
            made.update((k, self.tensors(v)) for k, v in x.items())
        elif kind is list:
            made = self._pair(x, [])
            made.extend(map(self.tensors, x))
        else:
            made = self._pair(x, with_items(x, map(self.tensors, x)))
        return made

    def _pair(self, x: Any, made: Any) -> Any:
        self._made[id(x)] = x, made
        self._given[id(made)] = x
        return made

    def arrays(self, x: Any) -> Any:
        """A result with arrays for tensors: those of the caller where they are his. Lists and dicts
        that are new change where they are."""
        known = self._given.get(id(x))
        if known is not None:
            return known
        if isinstance(x, torch.Tensor):
            made = self._cupy.from_dlpack(x.detach().resolve_conj().resolve_neg())
            self._pair(made, x)
            return made
        if isinstance(x, tuple):
            items = [self.arrays(v) for v in x]
            same = all(a is b for a, b in zip(items, x, strict=True))
            return x if same else with_items(x, items)
        if type(x) in (list, dict) and id(x) not in self._passed:
            self._passed[id(x)] = x
            for k, v in list(x.items() if type(x) is dict else enumerate(x)):
                x[k] = self.arrays(v)
        return x

    def end(self) -> None:
        """Carry what the call has changed in lists and dicts back to the caller's."""
        for x, made in list(self._made.values()):
            if isinstance(x, list):
                now = [self.arrays(v) for v in made]
                if len(now) != len(x) or any(a is not b for a, b in zip(now, x, strict=True)):
                    x[:] = now
            elif isinstance(x, dict):
                new = {k: self.arrays(v) for k, v in made.items()}
                if list(new) != list(x) or any(new[k] is not x[k] for k in new):
                    x.clear()
                    x.update(new)
