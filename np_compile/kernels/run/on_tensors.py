"""A `Sequence` on tensors: `replay.calls` makes the calls on NumPy's arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence as Several
from typing import Any

import torch

from .private import DATA
from .sequence import Sequence, Work, run_address

_num_threads = torch.get_num_threads


def runner(sequence: Any, wanted: Several[int], first: int) -> Any:
    """What runs a sequence on tensors: itself, on a GPU."""
    return OnTensors(sequence, wanted, first) if isinstance(sequence, Sequence) else sequence


class OnTensors:
    """Runs a sequence. wanted: the numbers of what it gives; first: that of the first result, after
    the constants. Several threads may run it at once."""

    def __init__(self, sequence: Sequence, wanted: Several[int], first: int):
        self._sequence = sequence
        self._steps = len(sequence.steps)
        self._read = sequence.read
        outputs = [o for step in sequence.steps for o in step.program.results]
        self._results = [(number, outputs[number - first]) for number in wanted]
        self._call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_int)(run_address())
        self._free: list[tuple[Work, Any, Any]] = []

    def run(self, tensors: Several[Any]) -> tuple[int, dict[int, torch.Tensor]]:
        """How many steps ran on these tensors, and what they make that is wanted, by number.

        An index out of bounds is in the step that did not run; nothing of it was written, and with
        the results come the constants and all that the steps before have made.
        """
        try:
            held = self._free.pop()
        except IndexError:
            held = self._work()
        work, objects, data = held
        k = 0
        for position in self._read:
            data[k] = tensors[position].data_ptr()
            k += 1
        made = {}
        for number, output in self._results:
            t = output.new()
            made[number] = t
            data[k] = t.data_ptr()
            k += 1
        block = None if self._sequence.block is None else self._sequence.block()
        if block is not None:
            objects[k] = id(block)
        done = self._call(work.sequence, _num_threads())
        if done < work.rows:
            arrays = [t.numpy() for t in made.values()]
            step, found = self._sequence.before(done, arrays, ctypes.addressof(work))
            return step, {k: torch.from_numpy(a) for k, a in found.items()}
        self._free.append(held)
        return self._steps, made

    def at(self, addresses: Any) -> bool:
        """Run it on memory: of what it reads, then of what is wanted, as an array of int64. Whether
        it ran to its end: not where an index is out of bounds."""
        try:
            held = self._free.pop()
        except IndexError:
            held = self._work()
        work, objects, data = held
        ctypes.memmove(data, addresses.ctypes.data, addresses.nbytes)
        block = None if self._sequence.block is None else self._sequence.block()
        if block is not None:
            objects[len(data)] = id(block)
        done = self._call(work.sequence, _num_threads())
        work.flag = 0
        self._free.append(held)
        return bool(done >= work.rows)

    def _work(self) -> tuple[Work, Any, Any]:
        """A new `Work`, its objects, and what is the data of each of them but the block."""
        work = Work.from_address(self._sequence.work())
        count = len(self._read) + len(self._results)
        objects = (ctypes.c_void_p * (count + 1)).from_address(work.objects)
        data = (ctypes.c_void_p * count)()
        for k in range(count):  # as if it were a field of an array object
            objects[k] = ctypes.addressof(data) + ctypes.sizeof(ctypes.c_void_p) * k - DATA
        return work, objects, data
