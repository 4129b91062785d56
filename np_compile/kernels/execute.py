"""A program's run: pointers into the arguments and results, the C, and torch's calls in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import build, emit, pool
from .dtypes import DTYPES
from .ir import Buffer, Call, Fence, Program
from .translate import Tensor, Translation


@dataclass
class Source:
    """A program's C text and what its run needs to know."""

    program: Program
    translation: Translation
    layout: emit.Layout
    text: str
    sections: int


class Executable:
    """A compiled program: called with the graph's inputs, gives its outputs.

    Errors: IndexError, for an index array with a value out of bounds.
    """

    def __init__(self, source: Source, eager: Callable[..., Any]):
        self.source = source
        self._eager = eager
        self.library = build.load(source.text)
        self._run = ctypes.c_void_p(pool.run_address())
        layout = source.layout
        self._sections = [getattr(self.library, f"section_{k}") for k in range(source.sections)]
        for f in self._sections:
            f.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
            f.restype = ctypes.c_int
        self._count = layout.flag + 1
        self._bytes = layout.size + layout.partials
        t = source.translation
        used = layout.slots
        self._inputs = [(used[b], k) for k, b in enumerate(t.inputs) if b is not None and b in used]
        self._constants = [
            (slot, t.constants[b.position]) for b, slot in used.items() if b.kind == "constant"
        ]
        self._between = [s for s in source.program.steps if isinstance(s, (Call, Fence))]
        made = {b for s in self._between if isinstance(s, Call) for b in s.writes}
        self._fresh = [
            (slot, b) for b, slot in used.items() if b.kind == "output" and b not in made
        ]

    def __call__(self, *tensors: torch.Tensor) -> list[Any]:
        pointers = (ctypes.c_void_p * self._count)()
        held: dict[Buffer, torch.Tensor] = {}
        t = self.source.translation
        for slot, k in self._inputs:
            pointers[slot] = tensors[k].data_ptr()
        for slot, constant in self._constants:
            pointers[slot] = constant.data_ptr()
        for slot, b in self._fresh:
            made = held[b] = self._allocate(b)
            pointers[slot] = made.data_ptr()
        layout = self.source.layout
        flag = ctypes.c_int64(0)
        pointers[layout.flag] = ctypes.addressof(flag)
        block = None
        if self._bytes:
            block = torch.empty(self._bytes, dtype=torch.uint8)
            pointers[layout.block] = block.data_ptr()
        threads = torch.get_num_threads()

        def tensor(x: Tensor) -> torch.Tensor:
            return self._tensor(x, tensors, held, block)

        for k, section in enumerate(self._sections):
            if section(pointers, threads, self._run):
                raise self._out_of_bounds(tensors)
            step = self._between[k] if k < len(self._between) else None
            if isinstance(step, Call):
                self._call(step, tensor, held, pointers)
        return [tensor(x) if isinstance(x, Tensor) else x for x in t.outputs]

    def _out_of_bounds(self, tensors: Sequence[torch.Tensor]) -> IndexError:
        """The error of an index out of bounds, in NumPy's words."""
        try:
            self._eager(*(t.clone() for t in tensors))
        except (IndexError, RuntimeError) as e:
            return IndexError(str(e).splitlines()[0].replace(" dimension ", " axis "))
        return IndexError("an index is out of bounds")

    @property
    def notes(self) -> list[str]:
        """Decisions that a user may want to know: what was not fused, what torch runs, and why."""
        program = self.source.program
        calls = [
            f"torch runs {s.name}: {s.why}" + (f"\n  at {s.line}" if s.line else "")
            for s in self._between
            if isinstance(s, Call)
        ]
        return [*dict.fromkeys(program.notes), *calls]

    @property
    def scratch_bytes(self) -> int:
        """Memory beside arguments and results that a run of the kernels takes."""
        return self._bytes

    def __str__(self) -> str:
        """The loops, the decisions, the memory, and the C."""
        notes = "".join(f"/* {note} */\n" for note in self.notes)
        return (
            f"/* loops\n{self.source.program}\n*/\n{notes}"
            f"/* scratch memory: {self.scratch_bytes} bytes */\n{self.source.text}\n"
        )

    def _allocate(self, b: Buffer) -> torch.Tensor:
        """Memory of an output, flat: `_tensor` gives it its shape."""
        return torch.empty(b.size, dtype=getattr(torch, DTYPES[b.dtype].torch))

    def _tensor(
        self, x: Tensor, inputs: Sequence[torch.Tensor], held: dict, block: torch.Tensor | None
    ) -> torch.Tensor:
        b = x.buffer
        if b.kind == "input":
            base = inputs[b.position]
            if x.shape == tuple(base.shape) and x.strides == base.stride() and x.offset == 0:
                return base
        elif b.kind == "constant":
            base = self.source.translation.constants[b.position]
        elif b in held:
            base = held[b]
        else:
            assert block is not None
            offset = self.source.layout.offsets[b]
            size = b.size * DTYPES[b.dtype].size
            base = block[offset : offset + size].view(getattr(torch, DTYPES[b.dtype].torch))
        base = _under(base, x.dtype)
        return base.as_strided(x.shape, x.strides, base.storage_offset() + x.offset)

    def _call(self, call: Call, tensor: Callable, held: dict, pointers: Any) -> None:
        def fill(x: Any) -> Any:
            if isinstance(x, Tensor):
                return tensor(x)
            if isinstance(x, (tuple, list)):
                return type(x)(fill(v) for v in x)
            return x

        result = call.target(*fill(call.args), **{k: fill(v) for k, v in call.kwargs.items()})
        made = call.writes if call.strides else []
        flat = [r for r in (result if isinstance(result, (tuple, list)) else [result])
                if isinstance(r, torch.Tensor)]  # fmt: skip
        for b, r, strides in zip(made, flat, call.strides, strict=bool(made)):
            if r.stride() != strides:
                r = torch.empty_strided(r.shape, strides, dtype=r.dtype).copy_(r)
            held[b] = r
            if b in self.source.layout.slots:
                pointers[self.source.layout.slots[b]] = r.data_ptr()


def _under(base: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A buffer's memory under the dtype of a view of it."""
    if base.dtype == dtype:
        return base
    if dtype.is_complex:
        return torch.view_as_complex(base.reshape(-1, 2))
    if base.dtype.is_complex:
        base = torch.view_as_real(base)
    return base if base.dtype == dtype else base.view(dtype)
