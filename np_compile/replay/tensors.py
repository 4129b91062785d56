"""Calls on tensors that are kept: see `replay`.

A kept call runs its programs on the caller's tensors, as a recorded call does: its results have
the gradient history that they would have, and views are made by the shim. What is compared of a
tensor is all that recording looks at, and all that has torch treat it in another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch._C import _len_torch_function_stack
from torch._C._dynamo.guards import TensorGuards
from torch.autograd.graph import increment_version

from np_compile import shim
from np_compile.capture.array import Array
from np_compile.capture.tape import picked
from np_compile.capture.tensors import ordinary, traced
from np_compile.capture.window import WINDOW, bounds_of, overlaps_itself
from np_compile.runtime.program import sequence

from .arguments import Opened
from .calls import MISS, available
from .keeper import PATIENT, Keeper, Place, Watch, has_array, simple, steps_of
from .proof import Reach

_Tensor = torch.Tensor
_grad_enabled = torch.is_grad_enabled

Builder = Callable[[Sequence[Any], dict[int, torch.Tensor]], Any]


class TensorReplays(Keeper):
    """As a `Keeper`, of calls on tensors. plain: there are no calls that run as they stand."""

    plain = ()
    kept: tuple[TensorReplay, ...]

    def run(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call like one that was kept, or MISS."""
        grad = _grad_enabled()
        given, names = args, ()
        if kwargs:
            given, names = (*args, *kwargs.values()), tuple(kwargs)
        opened: Opened | None = None
        for replay in self.kept:
            if replay.grad is not grad or replay.names != names:
                continue
            leaves: Sequence[Any] = given
            if replay.form is not None:
                opened = Opened(given) if opened is None else opened
                if not opened.known or opened.form != replay.form:
                    continue
                leaves = opened.leaves
            if replay.fits(leaves):
                found = self.reach
                if found is None or not found.unchanged():
                    self._forget()
                    return MISS
                self.vain = 0
                return replay.run(leaves)
        return MISS

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """As `run`, called as the function is."""
        return self.run(args, kwargs)

    def _forget(self) -> None:
        super()._forget()
        self.call = None

    def watch(self, args: tuple, kwargs: dict) -> Watch | None:
        """A watch for a call that was not kept; None where keeping it has no chance."""
        self.calls += 1
        if self.hopeless or self.calls < 2:
            return None
        opened = Opened((*args, *kwargs.values()))
        if not _keepable(opened):
            return None
        found = self._reads()
        return None if found is None else _Watch(found, self.vain < PATIENT, opened)

    def keep(
        self, watch: _Watch, args: tuple, kwargs: dict, exchange: Any, result: Any, choice: None
    ) -> bool:
        """Keep a call that has ended, if it can be. exchange: what was handed to the function.
        choice: there is none, as NumPy cannot take the call over."""
        assert choice is None
        made = None
        if (
            self._holds(watch)
            and watch.opened.unchanged((*args, *kwargs.values()))
            and watch.opened.handed_on(exchange)
        ):
            made = _replay(watch, tuple(kwargs), exchange, result)
        kept = self._kept(made)
        if kept:
            self.call = self._call
        return kept


class _Watch(Watch):
    """opened: the arguments as the call found them. tensors: positions of different tensors among
    their leaves. alike: whether other tensors, all different, look like these did then: type,
    dtype, layout, device, shape, strides, whether they require a gradient, and what torch's modes
    do with them."""

    __slots__ = ("alike", "opened", "tensors")

    def __init__(self, reach: Reach, patient: bool, opened: Opened):
        super().__init__(reach, patient, False)
        self.opened = opened
        first = {id(t): k for k, t in reversed(list(enumerate(opened.leaves)))}
        places = sorted(k for k in first.values() if isinstance(opened.leaves[k], _Tensor))
        self.tensors = places
        self.alike = _guard([opened.leaves[k] for k in places])


def _keepable(opened: Opened) -> bool:
    """Whether a call with these arguments, now, may be kept."""
    if _len_torch_function_stack() or traced():
        return False
    tensors = [a for a in opened.leaves if isinstance(a, _Tensor)]
    return (
        opened.known
        and all(ordinary(a) if isinstance(a, _Tensor) else simple(a) for a in opened.leaves)
        and len({t.device for t in tensors}) == 1
    )


class TensorReplay:
    """One kept call.

    names: of the arguments that are named, the last ones. form: of the arguments, see `Opened`.
    grad: whether gradients are recorded. count: of leaves. tensors, alike: see `_Watch`. again:
    positions of leaves that are one of the tensors again. values: the other leaves. written, spans:
    bytes from the first to the last element of tensors that a program writes to, and, if there are
    any, of all. steps: (what runs, where its tensors come from, the number of the first that it
    makes, numbers that are not needed afterwards); a tensor is leaf k, k >= 0, or number -1-k of
    constants and results so far. sequence: the steps as one call, where they can be one. build:
    makes the result, of the leaves and those.
    """

    __slots__ = (
        "again", "alike", "build", "constants", "count", "form", "grad", "names", "sequence",
        "spans", "steps", "tensors", "values", "written",
    )  # fmt: skip

    def __init__(
        self, watch: _Watch, names: tuple[str, ...], steps: list[tuple],
        constants: list[torch.Tensor], build: Builder, wanted: set[int],
    ):  # fmt: skip
        self.form = watch.opened.form
        self.names = names
        self.grad = _grad_enabled()
        leaves = watch.opened.leaves
        self.count = len(leaves)
        self.tensors = watch.tensors
        self.alike = watch.alike
        first = {id(leaves[k]): k for k in self.tensors}
        tensors = [(k, t) for k, t in enumerate(leaves) if isinstance(t, _Tensor)]
        self.again = [(k, first[id(t)]) for k, t in tensors if first[id(t)] != k]
        self.values = [(k, a) for k, a in enumerate(leaves) if not isinstance(a, _Tensor)]
        written = {
            first[id(leaves[s])]
            for p, sources, *_ in steps
            for k in p.written
            if (s := sources[k]) >= 0
        }
        bounds = [(k, *bounds_of(leaves[k])) for k in self.tensors]
        spans = [(k, high - low) for k, low, high in bounds]
        self.written = [(k, size) for k, size in spans if k in written]
        self.spans = spans if self.written else []
        self.constants = constants
        self.build = build
        ends = _ends(steps, len(constants), wanted)
        firsts = accumulate((len(program.live) for program, *_ in steps), initial=len(constants))
        self.steps = [
            (program.bound(floats, ints), sources, first, end)
            for (program, sources, floats, ints), first, end in zip(
                steps, firsts, ends, strict=False
            )
        ]
        self.sequence = None
        if len(steps) > 1 and available():
            self.sequence = sequence(steps, constants, sorted(wanted), tensors=True)

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether a call with these arguments does what the kept one did."""
        if len(leaves) != self.count:
            return False
        different = leaves
        if len(self.tensors) < self.count:
            different = [leaves[k] for k in self.tensors]
            for k, value in self.values:
                if not _same(leaves[k], value):
                    return False
            for k, first in self.again:
                if leaves[k] is not leaves[first]:
                    return False
        if any(not isinstance(t, _Tensor) or t.is_nested for t in different):
            return False  # torch's guards end the process at a nested one
        return self.alike(*different) and (not self.written or self._apart(leaves))

    def _apart(self, leaves: Sequence[Any]) -> bool:
        """Whether nothing that is written to overlaps with another tensor."""
        for k, size in self.written:
            begin = leaves[k].data_ptr()
            for m, other in self.spans:
                if m != k:
                    there = leaves[m].data_ptr()
                    if there < begin + size and begin < there + other:
                        return False
        return True

    def run(self, leaves: Sequence[Any]) -> Any:
        """What the function does and gives, by the kept programs."""
        start, made = 0, dict(enumerate(self.constants))
        if self.sequence is not None:
            start, made = self.sequence.run(leaves)
            if self.written:
                increment_version([leaves[k] for k, _ in self.written])
        for run, sources, first, ends in self.steps[start:]:
            outputs = run([leaves[s] if s >= 0 else made[-1 - s] for s in sources])
            made.update(enumerate(outputs, first))
            for number in ends:
                made.pop(number, None)
        return self.build(leaves, made)


def _guard(tensors: list[torch.Tensor]) -> Callable[..., bool]:
    """What says whether as many tensors, all different, look like these."""
    made = TensorGuards(
        *tensors,
        dynamic_dims_sizes=[list(t.shape) for t in tensors],  # type: ignore[misc]
        dynamic_dims_strides=[list(t.stride()) for t in tensors],  # type: ignore[misc]
    )
    check: Callable[..., bool] = made.check
    return check


def _ends(steps: list[tuple], constants: int, wanted: set[int]) -> list[list[int]]:
    """Of each step the numbers of what is needed neither by a later one nor by the result."""
    last: dict[int, int] = {}
    number = constants
    for k, (program, sources, *_) in enumerate(steps):
        last.update((-1 - s, k) for s in sources if s < 0)
        for _ in program.live:
            last[number] = k
            number += 1
    ends: list[list[int]] = [[] for _ in steps]
    for number, k in last.items():
        if number not in wanted:
            ends[k].append(number)
    return ends


def _same(a: Any, b: Any) -> bool:
    """Whether two simple values are one to any program: signs of zeros and types included."""
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return a == b and (a != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b))
    if type(a) is complex:
        return _same(a.real, b.real) and _same(a.imag, b.imag)
    return bool(a == b)


def _replay(
    watch: _Watch, names: tuple[str, ...], exchange: Any, result: Any
) -> TensorReplay | None:
    opened = watch.opened
    known = exchange.capture.known
    positions: dict[int, int] = {}  # of the leaves, by their tensors
    stand_ins: dict[int, int] = {}
    for k, t in enumerate(opened.leaves):
        if isinstance(t, _Tensor):
            stand_in = known[id(t)][1]
            if stand_in._t is not t:
                return None
            stand_ins.setdefault(id(stand_in), k)
            positions.setdefault(id(t), k)
    found = steps_of(watch, positions)
    if found is None:
        return None
    steps, constants, place = found
    if any(_by_operators(opened.leaves, p, sources) for p, sources, *_ in steps):
        return None
    results = _Results(place, stand_ins, opened.lists(exchange))
    build = results.builder(result)
    if build is None:
        return None
    return TensorReplay(watch, names, steps, constants, build, results.wanted)


def _by_operators(leaves: Sequence[Any], program: Any, sources: Sequence[int]) -> bool:
    """Whether a program was run by operators, because of the tensors that it writes to."""
    written = [leaves[s] for k in program.written if (s := sources[k]) >= 0]
    return any(overlaps_itself(t.shape, t.stride()) or t.is_inference() for t in written)


class _Results:
    """How what a function gives is made of leaves and of what programs have made.

    place: the number of a tensor that a program has made. stand_ins: positions of leaves, by their
    stand-ins. lists: lists and dicts that are not new. wanted: numbers of tensors that are needed.
    """

    def __init__(self, place: Place, stand_ins: dict[int, int], lists: set[int]):
        self._place = place
        self._stand_ins = stand_ins
        self._lists = lists
        self.wanted: set[int] = set()

    def builder(self, result: Any) -> Builder | None:
        """What makes a result like this one; None where that is not known."""
        kind = type(result)
        if kind is Array:
            return self._array(result)
        if kind is tuple or kind is list or kind is dict:
            if id(result) in self._lists:
                return None
            if kind is not tuple:
                self._lists.add(id(result))
            values = result.values() if kind is dict else result
            parts = [self.builder(v) for v in values]
            known = [p for p in parts if p is not None]
            if len(known) < len(parts):
                return None
            return _structure(kind, tuple(result) if kind is dict else (), known)
        return (lambda leaves, made: result) if simple(result) else None

    def _array(self, a: Array) -> Builder | None:
        views = []
        while a._base is not None:
            views.append(a._via)
            a = a._base
        if a._sel is not None or a._flip or a._t is None:
            return None
        position = self._stand_ins.get(id(a))
        if position is not None:
            whole: Builder = lambda leaves, made: leaves[position]  # noqa: E731
        else:
            number = self._place(a._t)
            if number is None or a._readonly:
                return None
            self.wanted.add(number)
            whole = lambda leaves, made: made[number]  # noqa: E731
        return _views(whole, a._is_scalar(), views[::-1]) if views else whole


def _structure(kind: type, keys: tuple, parts: list[Builder]) -> Builder:
    """What makes a tuple, a list, or a dict of these parts."""
    if kind is dict:
        return lambda leaves, made: {k: p(leaves, made) for k, p in zip(keys, parts, strict=True)}
    return lambda leaves, made: kind([p(leaves, made) for p in parts])


def _views(whole: Builder, scalar: bool, views: list[tuple]) -> Builder | None:
    """What makes a view: by the shim, call by call."""
    calls = []
    for name, args, kwargs, pick in views:
        if name is WINDOW or any(map(has_array, (*args[1:], *kwargs.values()))):
            return None
        calls.append((shim.TABLE[name].function, args[1:], kwargs, pick))

    def view(leaves: Sequence[Any], made: dict[int, torch.Tensor]) -> torch.Tensor:
        x = shim.ndarray(whole(leaves, made), (), scalar)
        for function, rest, kwargs, pick in calls:
            x = picked(function(x, *rest, **kwargs), pick)
        return x.tensor

    return view
