"""The programs of a call, and their gradients, as two calls of C: one forward, one backward.

A loop of five hundred iterations is one node in torch's record, not five hundred, and no Python
runs between its iterations. What the forward halves save lies in a few blocks, for as long as
autograd keeps them. The backward halves add what they find to gradients that are there already, in
place: so a gradient of `x[t]` touches one row of that of `x`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import fx

from np_compile.kernels.build.toolchain import CompileFailed
from np_compile.kernels.compile import compile_graph
from np_compile.kernels.frontend.nodes import Unsupported
from np_compile.kernels.run.execute import Entry, Executable
from np_compile.kernels.run.on_tensors import OnTensors
from np_compile.kernels.run.sequence import Sequence as Runs
from np_compile.kernels.run.sequence import Step
from np_compile.lowering.record import has_an_effect

from .halves import Halves, has_memory
from .in_place import permuted, scattered, updated
from .saved import placeholders, results_of

_ALIGN = 64
_PIECE = 1 << 22  # bytes of a block of several
FEWEST = 3  # programs of a call that are worth it
# Where a gradient goes: into a new array, or it is added to what there is; else, by the position of
# an input of the backward half, into the memory of that.
_NEW, _ADDED = -1, -2
_Key = tuple[Any, tuple[int, ...]]
aten = torch.ops.aten


class Refused(Exception):
    """The programs of a call cannot be two calls of C."""


class Joint:
    """Makes the calls; `halves.Halves` of a whole plan, as far as autograd is concerned.

    steps: (what `native` made, where its tensors come from, floats, integers), as in a plan.
    constants, wanted: as there. reads: positions of the arguments that a call takes, in order.
    Errors: Refused.
    """

    def __init__(
        self, steps: list[tuple], constants: list[torch.Tensor], wanted: list[int],
        reads: Sequence[int],
    ):  # fmt: skip
        if len(steps) < FEWEST or not any(halves_of(made) for made, *_ in steps):
            raise Refused
        self._steps, self._constants, self._wanted = steps, constants, wanted
        self._reads = list(reads)
        self.refused = False  # found out when the halves were there
        self._backward: _Backward | None = None
        self._made: dict[_Key, Executable] = {}
        self._forward = _Forward(steps, constants, wanted)
        self.count = len(wanted)
        self.constant = [k for k, n in enumerate(wanted) if n not in self._forward.differentiable]

    def is_ready(self) -> bool:
        """Whether it can run: what it needs beside the halves is compiled, where they all are."""
        try:
            return not self.refused and self._prepared()
        except Refused:
            self.refused = True
        except CompileFailed as e:
            self.refused = True
            e.warn("gradients of several programs are computed one after the other, since the C "
                   "compiler failed")  # fmt: skip
        return False

    def _prepared(self) -> bool:
        if self._backward is None:
            if not any(h.asked for made, *_ in self._steps if (h := halves_of(made))):
                return False
            self._backward = _Backward(self._forward, self._made)
            self._forward.write_in_place(self._backward.needs)
            self.saved_results = self._backward.results
            self.saved_inputs = [self._reads.index(s) for s in self._backward.arguments]
        if not all(made.ready for made in (*self._made.values(), *self._forward.made.values())):
            return False
        self._forward.settle(self._backward.needs)
        self._backward.settle()
        return True

    def forward(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, and what is saved beside arguments.

        IndexError: an index is out of bounds.
        """
        made, blocks = self._forward.run(dict(zip(self._reads, tensors, strict=True)))
        return [*made, *blocks]

    def gradients(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """The gradients of the arguments, by those of the results and what a call has saved."""
        assert self._backward is not None
        if not all(map(has_memory, gradients)):
            found = self._backward.by_operators(saved, gradients)
            return [found.get(k) for k in self._reads]
        found = self._backward.run(saved, gradients)
        return [found.get(k) for k in self._reads]


def halves_of(made: Any) -> Halves | None:
    """Those of what `native` has made; None where nothing that it gives has a gradient."""
    halves: Halves | None = getattr(made, "halves", None)
    return halves


def entry_of(made: Any) -> Entry | None:
    """How to run it, or its forward half, as a step of a sequence; None where it is not of kernels
    of the CPU alone."""
    halves = halves_of(made)
    program = getattr(made, "without_gradient", made) if halves is None else made.first
    return program.entry() if type(program) is Executable else None  # no GPU's


class _Forward:
    """The forward halves as a sequence. numbers: of results, in a plan, to those here, with what is
    saved among them. saved: of each step the numbers of what its forward half gives beside its
    results. made: programs of the steps that write in place of making an array anew."""

    def __init__(self, steps: list[tuple], constants: list[torch.Tensor], wanted: list[int]):
        self.steps, self.constants, self.wanted = steps, constants, wanted
        self.numbers = list(range(len(constants)))
        self.first: list[int] = []  # of each step, the number of its first result in the plan
        self.saved: list[list[int]] = []
        self.differentiable: set[int] = set()
        self.made: dict[tuple[Halves, tuple[tuple[int, int], ...]], Executable] = {}
        self._entries: list[tuple[Entry, list[int]]] = []  # with the numbers of what it gives
        self._pairs: list[dict[int, int]] = []  # of each step, results that are made in inputs
        self.types: dict[int, Any] = {}  # of a result: its `_Output`
        number = len(constants)
        for made, _, _, _ in steps:
            halves = halves_of(made)
            entry = entry_of(made)
            if entry is None:
                raise Refused
            given = [number + k for k in range(len(entry.results))]
            self.types.update(zip(given, entry.results, strict=True))
            count = len(entry.results) if halves is None else halves.count
            self.first.append(len(self.numbers))
            if halves is not None:
                base = len(self.numbers)
                self.differentiable |= {base + k for k in range(count) if k not in halves.constant}
            self._entries.append((entry, given))
            self.numbers += given[:count]
            self.saved.append(given[count:])
            number += len(given)
        self._call: OnTensors | None = None

    def write_in_place(self, needs: list[int]) -> None:
        """Have steps write to arrays that nothing reads afterwards. needs: numbers of results that
        are read by the backward halves."""
        kept = {*needs, *[self.numbers[n] for n in self.wanted]}
        last = {s: k for k, (_, sources, *_) in enumerate(self.steps) for s in sources}
        for k, (made, sources, *_) in enumerate(self.steps):
            halves = halves_of(made)
            pairs = {}
            for result, position in () if halves is None else halves.updates.items():
                s = sources[position] if position < len(sources) else 0
                if s >= 0 or -1 - s < len(self.constants):
                    continue
                old, new = self.numbers[-1 - s], self.numbers[self.first[k] + result]
                if (
                    last[s] == k and sources.count(s) == 1 and old not in kept
                    and _layout(self.types[old]) == _layout(self.types[new])
                ):  # fmt: skip
                    pairs[result] = position
            if halves is None or not (pairs and self._updating(halves, tuple(pairs.items()))):
                pairs = {}
            self._pairs.append(pairs)

    def _updating(self, halves: Halves, pairs: tuple[tuple[int, int], ...]) -> Executable | None:
        """The program of a forward half that writes these results to inputs, if there is one."""
        if pairs not in halves.updating:
            halves.updating[pairs] = None
            graph = updated(halves.first.graph, dict(pairs))
            if graph is not None:
                with suppress(Unsupported):
                    module = fx.GraphModule(halves.first, graph)
                    halves.updating[pairs] = compile_graph(module)
        made: Executable | None = halves.updating[pairs]
        if made is not None:
            self.made[halves, pairs] = made
        return made

    def settle(self, needs: list[int]) -> None:
        """Lay out what is saved, when all programs are compiled. needs: numbers of results that
        are, in a block."""
        if self._call is not None:
            return
        lies = {k: k for k in range(len(self.constants))}  # numbers in the sequence
        count = len(lies)
        runs = []
        for k, (made, sources, floats, ints) in enumerate(self.steps):
            entry, given = self._entries[k]
            pairs = self._pairs[k]
            if pairs:
                halves = halves_of(made)
                assert halves is not None
                other = self.made[halves, tuple(pairs.items())].entry()
                pairs, entry = ({}, entry) if other is None else (pairs, other)
            places = tuple(s if s >= 0 else -1 - lies[self.numbers[-1 - s]] for s in sources)
            for result, number in enumerate(given):
                if result in pairs:
                    lies[number] = -1 - places[pairs[result]]
                else:
                    lies[number] = count
                    count += 1
            runs.append(Step(entry, places, floats, ints))
        wanted = [self.numbers[n] for n in self.wanted]
        if len(set(wanted)) != len(wanted):
            raise Refused
        self.blocks = _Blocks([self.types[n].bytes for n in needs])
        given = [lies[n] for n in (*wanted, *needs)]
        sequence = Runs(runs, self.constants, given)
        self._read = sequence.read
        self._results = [self.types[n] for n in wanted]
        self._call = OnTensors(sequence, given, len(self.constants))

    def run(
        self, tensors: dict[int, torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The results that are wanted, and the blocks."""
        made = [t.new() for t in self._results]
        blocks = self.blocks.new()
        own = [tensors[s].data_ptr() for s in self._read] + [t.data_ptr() for t in made]
        assert self._call is not None
        if not self._call.at(np.concatenate([own, self.blocks.addresses(blocks)])):
            raise IndexError
        return made, blocks


class _Backward:
    """The backward halves as a sequence, from the last one to the first.

    needs: numbers of results in the forward sequence that are read from the block. arguments:
    positions of those that are read; results: of the wanted results. made: the programs so far.
    """

    def __init__(self, forward: _Forward, made: dict[_Key, Executable]):
        self._forward, self._made = forward, made
        self._places: dict[tuple[str, int], int] = {}  # of caller's arrays, by what they are
        self._constants: list[torch.Tensor] = []
        self._known: dict[tuple, int] = {}  # constants
        self._tangents: dict[int, Any] = {}  # wanted: how the gradient is to look
        self._own: set[int] = set()  # of them, those that are added to
        self.sums: dict[int, Any] = {}  # position of an argument: how its gradient looks
        self._runs: list[tuple[_Key, list, list]] = []
        self._plan()
        self.needs = [n for kind, n in self._places if kind == "block"]
        self.arguments = [n for kind, n in self._places if kind == "argument"]
        self.results = [n for kind, n in self._places if kind == "result"]
        self._call: OnTensors | None = None

    def _place(self, kind: str, which: int) -> tuple[str, int]:
        self._places.setdefault((kind, which), len(self._places))
        return kind, which

    def _constant(self, key: tuple, make: Any) -> tuple[str, int]:
        if key not in self._known:
            self._known[key] = len(self._constants)
            self._constants.append(make())
        return "constant", self._known[key]

    def _plan(self) -> None:
        """The steps: each a program and where its tensors come from, see `settle`."""
        f = self._forward
        number = {n: k for k, n in enumerate(f.wanted)}
        gradients: dict[int, tuple[str, int]] = {}  # of results, by their numbers in the plan
        wanted = f.differentiable.intersection(f.wanted)
        for n in wanted:
            gradients[n] = self._place("tangent", number[n])
        count = 0
        for k in range(len(f.steps) - 1, -1, -1):
            made, sources, floats, ints = f.steps[k]
            halves = halves_of(made)
            if halves is None:
                continue
            first = f.first[k]
            if not any(first + at in gradients for at, _ in halves.tangents):
                continue
            saved = [self._saved(n, number) for n in f.saved[k]]
            saved += [self._saved(f.numbers[first + at], number) for at in halves.saved_results]
            vectors = [np.array(v, d) for v, d in ((floats, float), (ints, np.int64)) if v]
            for position in halves.saved_inputs:
                if position < len(sources):
                    saved.append(self._value(sources[position], number))
                else:
                    v = vectors[position - len(sources)]
                    saved.append(
                        self._constant((str(v.dtype), *v.tolist()), partial(torch.from_numpy, v))
                    )
            first_given = len(saved)
            for at, strides in halves.tangents:
                like = f.types[f.numbers[first + at]]
                if not torch.empty_strided(like.shape, strides, device="meta").is_contiguous():
                    raise Refused
                if first + at in wanted:
                    self._tangents[number[first + at]] = like
                zero = ("zero", like.shape, like.dtype)
                saved.append(
                    gradients[first + at] if first + at in gradients else
                    self._constant(zero, partial(torch.zeros, like.shape, dtype=like.dtype))
                )  # fmt: skip
            # Of floats and integers, which come last, there are no gradients.
            targets = [s for s, none in zip(sources, halves.none, strict=False) if not none]
            if len(set(targets)) != len(targets):
                raise Refused
            modes = []
            for r, s in enumerate(targets):
                at = halves.continued.get(r, -1)
                # The gradient of what this step has made is not needed afterwards.
                free = at >= first_given and saved[at][0] != "constant"
                added = s >= 0 or -1 - s in gradients
                modes.append(_ADDED if added else at if free else _NEW)
            key = self._program(halves, modes)
            places = []
            for s, mode, value in zip(targets, key[1], _gradients_of(halves), strict=True):
                if s >= 0:
                    self.sums[s] = value
                    place = self._place("sum", s)
                elif mode == _ADDED:
                    place = gradients[-1 - s]
                elif mode == _NEW:
                    place = "made", count
                    count += 1
                else:
                    place = saved[mode]
                if place[0] == "tangent":
                    self._own.add(place[1])
                if s < 0:
                    gradients[-1 - s] = place
                places.append(place)
            self._runs.append((key, saved, places))

    def _program(self, halves: Halves, modes: Sequence[int]) -> _Key:
        """Note the program of a backward half; where its gradients go."""
        for found in (tuple(modes), tuple(m if m == _ADDED else _NEW for m in modes)):
            if found not in halves.adding:
                halves.adding[found] = None
                with suppress(Unsupported):
                    graph = adding(halves.second, found)
                    halves.adding[found] = None if graph is None else compile_graph(graph)
            if halves.adding[found] is not None:
                self._made[halves, found] = halves.adding[found]
                return halves, found
        raise Refused

    def _value(self, s: int, number: dict[int, int]) -> tuple[str, int]:
        if s >= 0:
            return self._place("argument", s)
        if (n := -1 - s) < len(self._forward.constants):
            held = self._forward.constants[n]
            return self._constant(("held", n), lambda: held)
        return self._saved(self._forward.numbers[n], number)

    def _saved(self, n: int, number: dict[int, int]) -> tuple[str, int]:
        """What the forward sequence has made as number n: a result, or in the block."""
        for plan, k in number.items():
            if self._forward.numbers[plan] == n:
                return self._place("result", k)
        return self._place("block", n)

    def settle(self) -> None:
        """Make the sequence, of programs that are compiled."""
        if self._call is not None:
            return
        runs = []
        for key, given, places in self._runs:
            entry = self._made[key].entry()
            if entry is None:
                raise Refused
            added = [p for p, mode in zip(places, key[1], strict=True) if mode == _ADDED]
            sources = tuple(self._source(*place) for place in (*given, *added))
            runs.append(Step(entry, sources, (), ()))
        sequence = Runs(runs, self._constants, ())
        self._call = OnTensors(sequence, (), len(self._constants))
        self._kinds = list(self._places)
        self._read = np.array(sequence.read, np.int64)
        of_block = [k for k, (kind, _) in enumerate(self._kinds) if kind == "block"]
        self._of_block = np.array(of_block, np.int64)

    def _source(self, kind: str, which: int) -> int:
        if kind == "constant":
            return -1 - which
        if kind == "made":
            return -1 - len(self._constants) - which
        return self._places[kind, which]

    def run(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> dict[int, torch.Tensor]:
        """The gradients of arguments, by their positions."""
        first = self._forward.blocks.count
        results = saved[first : first + len(self.results)]
        arguments = saved[first + len(self.results) :]
        sums = {s: torch.zeros(v.shape, dtype=v.dtype) for s, v in self.sums.items()}
        tangents = {
            k: gradients[k].clone(memory_format=torch.contiguous_format) if k in self._own
            else gradients[k].resolve_conj().resolve_neg().contiguous() for k in self._tangents
        }  # fmt: skip
        held: dict[str, dict[int, torch.Tensor]] = {
            "result": dict(zip(self.results, results, strict=True)),
            "argument": dict(zip(self.arguments, arguments, strict=True)),
            "tangent": tangents, "sum": sums,
        }  # fmt: skip
        addresses = np.zeros(len(self._kinds), np.int64)
        addresses[self._of_block] = self._forward.blocks.addresses(saved[:first])
        for k, (kind, which) in enumerate(self._kinds):
            if kind != "block" and which in held[kind]:
                addresses[k] = held[kind][which].data_ptr()
        assert self._call is not None
        if not self._call.at(addresses[self._read]):
            raise IndexError("an index is out of bounds")
        return sums

    def by_operators(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> dict[int, torch.Tensor]:
        """The same, by torch's operators, of gradients that are more than memory."""
        blocks = self._forward.blocks
        rest = iter(saved[blocks.count :])
        values: dict[tuple[str, int], torch.Tensor] = {}
        values.update((("tangent", k), gradients[k]) for k in self._tangents)
        values.update((("result", k), next(rest)) for k in self.results)
        values.update((("argument", k), next(rest)) for k in self.arguments)
        values.update((("constant", k), c) for k, c in enumerate(self._constants))
        for k, n in enumerate(self.needs):
            like = self._forward.types[n]
            part = blocks.part(saved, k, like.bytes).view(like.dtype)
            values["block", n] = part.as_strided(like.shape, like.strides)
        for (halves, modes), given, places in self._runs:
            made = halves.second.forward(*[values[p] for p in given])
            for value, mode, place in zip(made, modes, places, strict=True):
                add = mode == _ADDED and place in values
                values[place] = values[place] + value if add else value
        return {s: values["sum", s] for s in self.sums}


def _layout(like: Any) -> tuple:
    return like.shape, like.strides, like.dtype


def _gradients_of(halves: Halves) -> list[torch.Tensor]:
    """What the backward half gives, without data."""
    return [n.meta["val"] for n in results_of(halves.second.graph)]


def adding(second: fx.GraphModule, modes: Sequence[int]) -> fx.GraphModule | None:
    """A backward half whose gradients go where `modes` says; None where they cannot. What is added
    to comes as more inputs, which are the last; it gives those that are new, each in memory of its
    own."""
    made = fx.Graph()
    own: dict[fx.Node, fx.Node] = {}
    given = placeholders(second.graph)
    for node in given:
        own[node] = made.node_copy(node)
    found = list(zip(results_of(second.graph), modes, strict=True))
    sums = []
    for k, (node, mode) in enumerate(found):
        if mode == _ADDED:
            sums.append(made.placeholder(f"sum_{k}"))
            sums[-1].target = sums[-1].name  # what is saved may be called so too
            sums[-1].meta["val"] = _contiguous(node.meta["val"])
    for node in second.graph.nodes:
        if node not in own and node.op != "output":
            own[node] = made.node_copy(node, own.__getitem__)

    def call(target: Any, like: torch.Tensor, *args: Any) -> fx.Node:
        node = made.call_function(target, args)
        node.meta["val"] = like
        return node

    # What may fail on its data comes first: nothing is written then.
    pairs = [(own[n], s) for n, s in zip([n for n, m in found if m == _ADDED], sums, strict=True)]
    scatters = [(scattered(g), g, s) for g, s in pairs]
    for parts, gradient, total in sorted(scatters, key=lambda found: not found[0]):
        if not parts:
            call(aten.add_.Tensor, total.meta["val"], total, gradient)
        for node, order in parts:
            view = permuted(made, total, order)
            call(aten.index_put_.default, view.meta["val"], view, *node.args[1:])
    results = []
    for node, mode in found:
        if mode == _NEW:
            like = _contiguous(node.meta["val"])
            copy = made.call_function(
                aten.clone.default, (own[node],), {"memory_format": torch.contiguous_format}
            )
            copy.meta["val"] = like
            results.append(copy)
        elif mode >= 0:
            results.append(own[node])
    made.output(tuple(results))
    made.eliminate_dead_code(has_an_effect)
    kept = [mode for mode in modes if mode != _ADDED]
    graph = updated(made, {r: position for r, position in enumerate(kept) if position >= 0})
    return None if graph is None else fx.GraphModule(second, graph)


def _contiguous(like: torch.Tensor) -> torch.Tensor:
    return torch.empty(like.shape, dtype=like.dtype, device="meta")


class _Blocks:
    """Memory of what is saved, for so many bytes each. Of more than `_PIECE` there are several:
    what is given back in such pieces is in memory still when the next call asks for it, a larger
    one is mapped anew, which takes as long as the kernels. count: how many."""

    def __init__(self, sizes: Sequence[int]):
        self._bytes = [0]
        places = []
        for n in sizes:
            size = -(-max(n, 1) // _ALIGN) * _ALIGN
            if self._bytes[-1] and self._bytes[-1] + size > _PIECE:
                self._bytes.append(0)
            places.append((len(self._bytes) - 1, self._bytes[-1]))
            self._bytes[-1] += size
        self._which, self._offsets = np.array(places, np.int64).reshape(-1, 2).T
        self.count = len(self._bytes)

    def new(self) -> list[torch.Tensor]:
        """The blocks of one call."""
        return [torch.empty(n + _ALIGN, dtype=torch.uint8) for n in self._bytes]

    def addresses(self, blocks: Sequence[torch.Tensor]) -> np.ndarray:
        """Where each is, from a cache line on."""
        starts = [math.ceil(b.data_ptr() / _ALIGN) * _ALIGN for b in blocks]
        return np.asarray(np.array(starts, np.int64)[self._which] + self._offsets)

    def part(self, blocks: Sequence[torch.Tensor], k: int, size: int) -> torch.Tensor:
        """The bytes of number k."""
        block = blocks[self._which[k]]
        begin = int(self.addresses(blocks)[k]) - block.data_ptr()
        return block[begin : begin + size]
