"""Programs for many sizes: one serves all segments of a form whose sizes its guards admit.

The first segment of a form has a program for its own sizes. When another one comes, the sizes that
differ become variables of a second program; it serves each later one that keeps the rest as it was.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from np_compile import config
from np_compile.backends import for_sizes
from np_compile.kernels.build import Job as Job
from np_compile.lowering.general import LEAST, GeneralGraph, Special, Tie
from np_compile.lowering.lower import lower_for_sizes
from np_compile.tape.form import Form, Rule, Step, extents_in, form_of, size_names
from np_compile.tape.node import Node

from .program import Program, uncollected

_HOST = torch.device("cpu")
_TRIES = 3  # traces of one segment, with fewer sizes that may change each time
_FAILURES = 2  # of a form, after which its programs are for one size each
_PROGRAMS = 6  # for many sizes of one form; the guards of each admit others


class General:
    """One program for many sizes. dynamic: the integers that are data of it; symbolic: those that
    are sizes; ints: all of the segment that it was made for. guards: what it asks of sizes, as
    text. noted: whether the compile was, see `segments`."""

    __slots__ = (
        "_constants", "_device", "_first", "_graph", "_made", "backend_name", "dynamic", "guards",
        "ints", "noted", "notes", "seconds", "symbolic",
    )  # fmt: skip

    def __init__(
        self, graph: GeneralGraph, made: Any, backend_name: str, dynamic: frozenset[int],
        ints: Sequence[int], seconds: dict[str, float], names: Sequence[str],
        ties: Mapping[int, Tie], device: torch.device | None,
    ):  # fmt: skip
        self._device = device
        self._graph = graph
        self._made = made
        self.backend_name = backend_name
        self.dynamic = dynamic
        self.ints = tuple(ints)
        count = len(names) - len(ints)
        moving = (*graph.symbols.values(), *ties)
        self.symbolic = frozenset(k - count for k in moving if k >= count)
        self._constants = [
            (k, n) for k, n in enumerate(ints) if k not in dynamic and k not in self.symbolic
        ]
        self.guards = made.guards
        what = (f"n{k} is {names[place]}" for k, place in enumerate(graph.symbols.values()))
        self.notes = ["one program for many sizes: " + ", ".join(what)]
        self.notes += [f"{names[k]} is {names[t.position]} {t.more:+}" for k, t in ties.items()]
        self.notes += [f"it serves sizes with {guard}" for guard in self.guards]
        self.seconds = seconds
        self.noted = False
        self._first: Program | None = None  # that was made of it

    def serves(self, sizes: Sequence[int], ints: Sequence[int]) -> bool:
        """Whether it is the program of these sizes and integers."""
        if not self._serves_integers(ints):
            return False
        every = (*sizes, *ints)
        return self._graph.holds(every) and self._made.serves(every)

    @property
    def ready(self) -> bool:
        """Whether its programs can run: the C compiler is done."""
        return bool(self._made.ready)

    def fits(self, data: frozenset[int]) -> bool:
        """Whether none of these integers, which change alone, is a size of it."""
        return not self.symbolic & data

    def constants(self, ints: Sequence[int]) -> tuple[int, ...]:
        """Those of a segment's integers that are no data of it."""
        return tuple([n for k, n in enumerate(ints) if k not in self.dynamic])

    def _serves_integers(self, ints: Sequence[int]) -> bool:
        """Whether those of a segment's integers that are no data of it are what they were."""
        return all(n == ints[k] for k, n in self._constants)

    def program(
        self, node: Node, live: tuple, sizes: Sequence[int], ints: Sequence[int], options: Any
    ) -> Program:
        """It, for the segment of these sizes and integers that ends at a node."""
        if self._first is not None:
            return self.at_sizes(node, sizes, ints)
        every = (*sizes, *ints)
        compiled = self._made.bind(every)
        made = self._first = Program(
            node, live, self._graph.graph, compiled, self.backend_name, self.dynamic,
            {}, self._device, options.name,
        )  # fmt: skip
        made.constant_ints = dict(self._constants)
        made.sizes = self._taken(every)
        made.notes = self.notes
        made.general = self
        made.grad = any(self._graph.differentiated)
        return made

    def at_sizes(self, node: Node, sizes: Sequence[int], ints: Sequence[int]) -> Program:
        """As `program`, after the first one."""
        assert self._first is not None
        every = (*sizes, *ints)
        return self._first.at_sizes(node, self._made.bind(every), self._taken(every))

    @property
    def runs(self) -> bool:
        """Whether its kernels can be run: they are compiled."""
        return self._first is not None and self._first.ready and self._first.direct

    @property
    def runs_alone(self) -> bool:
        """Whether it does no more than to run kernels that make arrays."""
        return bool(self._first is not None and self._made.runs_alone)

    def symbols(self, sizes: Sequence[Any], ints: Sequence[Any]) -> dict[str, Any]:
        """What the symbols of its kernels are, for `results` and `with_sizes`."""
        found: dict[str, Any] = self._made.symbols((*sizes, *ints))
        return found

    def taken(self, sizes: Sequence[Any], ints: Sequence[Any]) -> tuple:
        """Those of the sizes that the graph takes as inputs, likewise."""
        return self._taken((*sizes, *ints))

    def results(self, symbols: Mapping[str, Any]) -> list[tuple]:
        """Shape, strides and bytes of each array that it gives, if it runs alone. Errors:
        LookupError, where they lie in memory in another way than those that it was made for."""
        found: list[tuple] = self._made.results(symbols)
        return found

    def with_sizes(self, symbols: Mapping[str, int], taken: Sequence[int]) -> Any:
        """What runs it for such sizes, in one call, if it runs alone."""
        return self._made.with_sizes(symbols, taken)

    def dynamic_ints(self, ints: Sequence[Any]) -> list[Any]:
        """Those of a segment's integers that are data of it."""
        assert self._first is not None
        return self._first.dynamic_ints(ints)

    def _taken(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Those of the sizes that the graph takes as inputs."""
        return tuple([sizes[k] for k in self._graph.integers])

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Of the steps of its segments, as far as they are known."""
        return self._graph.rules


class Sizes:
    """What is known of the segments of one form. seen: sizes and integers of those that have a
    program for them alone. data: integers that were seen to change while the sizes did not.
    programs: those for many sizes. failures: attempts to make one. job: one that is under way,
    beside the program."""

    __slots__ = ("data", "failures", "job", "programs", "seen")

    def __init__(self) -> None:
        self.seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.data: frozenset[int] = frozenset()
        self.programs: list[General] = []
        self.failures = 0
        self.job: Job | None = None

    @property
    def pending(self) -> bool:
        """Whether a program for many sizes is being made."""
        if self.job is not None and self.job.ready:
            self.job = None
        return self.job is not None

    @property
    def is_full(self) -> bool:
        """Whether no more programs are to be made."""
        return self.failures >= _FAILURES or len(self.programs) >= _PROGRAMS

    def find(self, sizes: Sequence[int], ints: Sequence[int]) -> General | None:
        """The program for these, if there is one: that in which as many integers are data as are
        known to change."""
        found = (g for g in self.programs if g.serves(sizes, ints))
        return min(found, key=lambda g: len(g.symbolic & self.data), default=None)


class Forms:
    """The forms of a function's segments. root: of their tree."""

    __slots__ = ("_known", "root")

    def __init__(self) -> None:
        self._known: dict[tuple, Sizes] = {}
        self.root = Step()

    def of(self, node: Node, live: tuple, grad: bool) -> tuple[Form, Sizes]:
        """The form of the segment that ends at a node, and what is known of such. grad: whether
        what it does is differentiated."""
        form = form_of(node)
        key = form.step, live, grad
        known = self._known.get(key)
        return form, self._known.setdefault(key, Sizes()) if known is None else known


def build_general(
    node: Node, live: tuple, inputs: list[Any], floats: list[float], ints: list[int],
    data: frozenset[int], options: Any, device: torch.device | None, form: Form, known: Sizes,
    grad: bool,
) -> General | None:  # fmt: skip
    """A program for the sizes that differ from those seen before, or with `dynamic=True` for all.
    None where one cannot be made, or is made beside the program. data: integers that can be data;
    of those of indices the others are sizes. grad: whether it is differentiated."""
    if known.is_full or for_sizes(options.backend) is None:
        return None
    every = options.dynamic is True
    changing = frozenset(
        k for k, n in enumerate(form.sizes) if every or any(s[k] != n for s, _ in known.seen)
    )
    moved = frozenset(
        k for k, n in enumerate(ints) if every or any(i[k] != n for _, i in known.seen)
    )
    if not changing:
        return None
    if any(a._t.is_conj() or a._t.is_neg() for a in inputs):
        return None
    dynamic = moved & data
    changing |= {len(form.sizes) + k for k in moved - data}
    # Of the inputs no more than dtype and device is asked, and whether a gradient is.
    args = [
        torch.empty(0, dtype=a._t.dtype, device=a._t.device).requires_grad_(
            grad and a._t.requires_grad
        )
        for a in inputs
    ]
    numbers = list(ints)

    def make() -> General | None:
        return _made(
            node, live, args, floats, numbers, dynamic, changing, every, options, device, form,
            known,
        )  # fmt: skip

    if config.waits():
        return make()
    known.job = Job(make)
    return None


def _made(
    node: Node, live: tuple, inputs: list[torch.Tensor], floats: list[float], ints: list[int],
    dynamic: frozenset[int], changing: frozenset[int], every: bool, options: Any,
    device: torch.device | None, form: Form, known: Sizes,
) -> General | None:  # fmt: skip
    """As `build_general`, for what is to change."""
    backend = for_sizes(options.backend)
    assert backend is not None
    args = list(inputs)
    if floats:
        args.append(torch.tensor(floats, dtype=torch.float64, device=device or "cpu"))
    order = tuple(sorted(dynamic))
    if order:
        numbers = [ints[k] for k in order]
        args.append(torch.tensor(numbers, dtype=torch.int64, device=device or "cpu"))
    ties = _ties(node, form, ints, changing, known)
    start = time.perf_counter()
    with uncollected(), torch.inference_mode(False), torch._C._DisableAutocast():
        for _ in range(_TRIES):
            try:
                graph = lower_for_sizes(
                    node, live, args, len(inputs), bool(floats), ints, order, form, changing, ties,
                    device,
                )  # fmt: skip
                lowered = time.perf_counter()
                made = backend(graph, device or _HOST)
            except Special as e:
                if not changing - e.positions or (not every and e.positions & _inputs(form)):
                    break
                changing -= e.positions
                ties = {k: t for k, t in ties.items() if t.position not in e.positions}
                continue
            except (RecursionError, MemoryError):
                raise
            except Exception:  # of the shim or of torch, on symbolic sizes
                break
            done = time.perf_counter()
            seconds = {"lower": lowered - start, "backend": done - lowered}
            names = size_names(node, form, len(ints))
            general = General(
                graph, made, options.backend, dynamic, ints, seconds, names, ties, device
            )
            if general.serves(form.sizes, ints):
                known.programs.append(general)
                for rule in graph.rules:
                    rule.like.step.learn(rule)
                return general
            break
    known.failures += 1
    return None


def _ties(
    node: Node, form: Form, ints: Sequence[int], changing: frozenset[int], known: Sizes
) -> dict[int, Tie]:
    """Which of the changing integers were always as much more than an extent of an input, wherever
    it was another, and than no other; or equal to an integer before. They are taken to follow."""
    every = [(*form.sizes, *ints), *((*sizes, *others) for sizes, others in known.seen)]
    found: dict[int, Tie] = {}
    extents = [k for k in extents_in(node) if k in changing and len({s[k] for s in every}) > 1]
    before: dict[tuple[int, ...], int] = {}  # integers that follow from none, by what they were
    entered = _entered(node, form)
    for k in sorted(changing - _inputs(form)):
        own = tuple([s[k] for s in every])
        there = [j for j in extents if j < entered[k]]
        follows = [j for j in there if len({s[k] - s[j] for s in every}) == 1]
        if follows and len({tuple([s[j] for s in every]) for j in follows}) == 1:
            found[k] = Tie(follows[0], every[0][k] - every[0][follows[0]])
        elif own in before:
            found[k] = Tie(before[own], 0)
        elif len({*own}) > 1 and min(own) >= LEAST:
            before[own] = k
    return found


def _entered(node: Node, form: Form) -> dict[int, int]:
    """Of each integer the number of sizes of inputs that have entered before its call."""
    found: dict[int, int] = {}
    integers, ints = form.inputs, len(form.sizes)
    for step in node.path():
        count = len(step.extents)
        after = form.inputs + len(step.integers)
        found.update(dict.fromkeys(range(integers, after), count))
        found.update(dict.fromkeys(range(ints, len(form.sizes) + step.ints), count))
        integers, ints = after, len(form.sizes) + step.ints
    return found


def _inputs(form: Form) -> frozenset[int]:
    return frozenset(range(form.inputs))
