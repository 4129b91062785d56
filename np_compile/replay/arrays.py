"""Kept calls on arrays: found by their arguments, and made, in C; see `calls.Table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from np_compile.capture.arrays.stand_ins import tensor_like
from np_compile.capture.arrays.transfers import copy, to_device, to_host
from np_compile.kernels.run.on_tensors import runner
from np_compile.shim import share_numpy

from .arguments import Opened, leaves_of, opened, parameter_names
from .calls import LEAVES, MISS, Entry, Names, Table, Way
from .guards import Call, Elements, Guard, Layout, Name, Pair, Refused, Value, simple, text_of
from .hot import Heat, for_one_size, is_general
from .plan import Kept, Plan
from .results import Result, giver
from .watch import Watch

# Without the modes of torch's, such as `torch.device`, which look at each call for microseconds.
_Direct = torch._C.DisableTorchFunction
USABLE = 0x0100 | 0x0400  # NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE


class Called(NamedTuple):
    """How a function is called. leaves: how many the arguments have, which are of this form, see
    `Opened`; names: of arguments, the last ones."""

    leaves: int
    names: Names
    form: tuple | None


class KeptOnArrays(Kept):
    """A call on arrays, which C knows."""

    __slots__ = ("_give",)
    entry: Entry

    def __init__(self, guards: list[Guard], plan: Plan, result: Result, call: Called):
        super().__init__(guards, plan)
        self._give = giver(result, plan.wanted.index, False)
        self.entry = Entry(Way.UNSETTLED, call.leaves, call.names, guards, call.form)
        if plan.sequence is None:
            self.entry.calls(self._one_by_one)
        else:
            self.entry.runs(plan.sequence, result, plan.wanted.index, self._goes_on)

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        self.entry.settle(settled, sampled)

    def run(self, given: tuple) -> Any:
        return self.entry.run(given)

    def _goes_on(self, args: tuple, made: list[np.ndarray], row: int, work: int) -> Any:
        """As `run`, of a sequence that an index out of bounds has stopped."""
        assert self.plan.sequence is not None
        step, arrays = self.plan.sequence.before(row, made, work)
        return self._one_by_one(args, step, {k: torch.from_numpy(a) for k, a in arrays.items()})

    def _one_by_one(
        self, args: tuple, start: int = 0, before: Mapping[int, torch.Tensor] | None = None
    ) -> Any:
        """As `run`, one program after the other."""
        tensors = {k: torch.from_numpy(args[k]) for k in self.plan.reads}
        made = self.plan.run(tensors, start, before)
        if made is None:
            return MISS
        return self._give(args, [made[k].numpy() for k in self.plan.wanted])


class KeptOnDevice(Kept):
    """A call on NumPy's arrays whose programs run on a device: what they read is sent there, what
    they write and make comes back."""

    __slots__ = ("_device", "_give", "_whole")
    entry: Entry

    def __init__(
        self, guards: list[Guard], plan: Plan, result: Result, call: Called, device: torch.device
    ):
        super().__init__(guards, plan)
        self._device = device
        self._give = giver(result, plan.wanted.index, False)
        # By which it is found.
        self.entry = Entry(Way.UNSETTLED, call.leaves, call.names, guards, call.form)
        self._whole: Any = None
        if plan.steps and plan.sequence is not None:
            self._whole = runner(plan.sequence, plan.wanted, len(plan.constants))

    def run(self, given: tuple) -> Any:
        plan, (leaves, _) = self.plan, leaves_of(given)
        with _Direct():
            here = {k: share_numpy(leaves[k]).tensor for k in plan.reads}
            there = {k: to_device(t, self._device) for k, t in here.items()}
            made = None if self._whole is None else self._whole.run(there)[1]
        if made is None:
            made = plan.run(there)
        if made is None:
            return MISS
        with _Direct():
            for k in plan.written:
                copy(here[k], there[k])
            arrays = [to_host(made[k]).numpy() for k in plan.wanted]
        return self._give(leaves, arrays)


@dataclass(frozen=True)
class _Again:
    """What a call is kept by, to keep it by other programs. integers: of each step all that there
    are."""

    guards: list[Guard]
    plan: Plan
    result: Result
    call: Called
    integers: list[tuple]

    def programs(self) -> list[tuple]:
        """The steps of its plan by programs for one size."""
        return for_one_size(self.plan.steps, self.integers)

    def kept(self, steps: list[tuple]) -> KeptOnArrays:
        """The call by these steps."""
        before = self.plan
        plan = Plan(steps, before.constants, before.wanted, before.sequence is not None)
        return KeptOnArrays(self.guards, plan, self.result, self.call)


class Arrays:
    """How kept calls on arrays are bound to their arguments, and to what lists, tuples and dicts
    among them hold."""

    tensors = False
    for_sizes = True  # whether calls may be kept for many sizes
    modes: tuple[Name, ...] = ()  # of torch's, in which no call is like a kept one

    def __init__(self, function: Any):
        self._function = function

    def arguments(self, args: tuple, kwargs: dict) -> Opened:
        """The arguments of a call that may be kept; Refused for those with which none is."""
        found = opened((*args, *kwargs.values()))
        if found.form is not None and max(len(found.leaves), found.structures) > LEAVES:
            raise Refused(f"lists and dicts among the arguments hold more than {LEAVES} things")
        for a in found.leaves:
            if not simple(a) and not (tensor_like(a) and min(a.strides, default=0) >= 0):
                raise Refused(f"an argument is {_kind(a)}")
        return found

    def leaves(
        self, watch: Watch, given: tuple, exchange: Any
    ) -> Iterator[tuple[int, Any, torch.Tensor | None]]:
        """Of each array its position, its stand-in, and the tensor that was read, if it was."""
        known, leaves = exchange.capture.known, watch.arguments.leaves
        watch.arguments.require_unchanged(given, exchange)
        for k, a in enumerate(leaves):
            if type(a) is not np.ndarray:
                continue
            stand_in = known[id(a)][1] if id(a) in known else None
            if stand_in is None or stand_in._base is not None or stand_in._readonly:
                raise Refused("an argument is read-only, or shares memory with another one")
            t = stand_in._t
            if t is not None and not self._stands_for(stand_in, t, a):
                raise Refused("an argument lies elsewhere than where it was")
            yield k, stand_in, t
        if any(a not in map(id, leaves) for a, _ in watch.read):
            raise Refused("Python reads an element of an array that is no argument")

    def _stands_for(self, stand_in: Any, t: torch.Tensor, a: np.ndarray) -> bool:
        """Whether a stand-in's tensor is the memory of the argument that it stands for."""
        strides = tuple(s * a.itemsize for s in t.stride())
        return not stand_in._flip and t.data_ptr() == a.ctypes.data and strides == a.strides

    def known(self, watch: Watch, exchange: Any) -> set[int]:
        """Ids of lists and dicts that are not new."""
        lists: set[int] = watch.arguments.lists(exchange)
        return lists

    def kept(self, watch: Watch, given: tuple, names: Names, plan: Plan, result: Result) -> Kept:
        """A call that has ended, as it is kept."""
        leaves, form = watch.arguments.leaves, watch.arguments.form
        places = {id(a): k for k, a in enumerate(leaves)}
        read = {(places[a], index): content for (a, index), content in watch.read.items()}
        shown = watch.arguments.names(parameter_names(self._function, len(given), names))
        guards: list[Guard] = [Call(shown, names, form), *exact(leaves, shown, read, plan.writes)]
        return self._made(watch, Called(len(leaves), names, form), guards, plan, result)

    def _made(
        self, watch: Watch, call: Called, guards: list[Guard], plan: Plan, result: Result
    ) -> Kept:
        kept = KeptOnArrays(guards, plan, result, call)
        if is_general(plan.steps):
            integers = [ints for *_, ints, _ in watch.steps]
            kept.heat = Heat(_Again(guards, plan, result, call, integers))
        return kept

    def find(
        self, kept: Sequence[Any], table: Table | None, given: tuple, names: Names
    ) -> tuple[Kept, tuple] | None:
        """The kept call that such a call is like, and the arguments."""
        assert table is not None
        entry = table.find(given, names)
        return next(((k, given) for k in kept if k.entry is entry), None)


class ArraysOnDevice(Arrays):
    """The same, of calls whose arrays live on a device meanwhile."""

    for_sizes = False

    def __init__(self, function: Any, device: torch.device):
        super().__init__(function)
        self._device = device

    def _stands_for(self, stand_in: Any, t: torch.Tensor, a: np.ndarray) -> bool:
        return not stand_in._flip and stand_in._host is a and t.device == self._device

    def _made(
        self, watch: Watch, call: Called, guards: list[Guard], plan: Plan, result: Result
    ) -> Kept:
        return KeptOnDevice(guards, plan, result, call, self._device)


def _kind(a: Any) -> str:
    if type(a) is np.ndarray:
        return f"an array of {a.dtype} with strides {a.strides}, which no program takes"
    return f"a {text_of(type(a))}"


def exact(
    args: Sequence[Any], names: Sequence[str], read: dict[tuple[int, Any], bytes], writes: bool
) -> list[Guard]:
    """Guards that hold for calls in which arrays look as these do, and other values are the same.

    read: (position, index) of elements, or of all where it is `...`, that have to be the same.
    writes: whether arrays must not overlap.
    """
    arrays = [k for k, a in enumerate(args) if type(a) is np.ndarray]
    guards: list[Guard] = [
        Layout.of(k, names[k], a, USABLE) if k in arrays else Value(k, names[k], a)
        for k, a in enumerate(args)
    ]
    for m, k in ((m, k) for m in arrays for k in arrays if k < m):
        a, b = args[k], args[m]
        sizes = _span(a), _span(b)
        guards.append(Pair((k, m), (names[k], names[m]), a is b, writes, sizes))
    looks = {guard.position: guard for guard in guards if isinstance(guard, Layout)}
    return [*guards, *(Elements(looks[k], index, content) for (k, index), content in read.items())]


def _span(a: np.ndarray) -> int:
    """The bytes from an array's first element to the end of its last; strides are not negative."""
    reach = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
    return reach + a.itemsize if a.size else 0
