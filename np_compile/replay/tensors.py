"""Kept calls on tensors, also with lists, tuples and dicts of them.

A kept call runs its programs on the caller's tensors, as a recorded call does: its results have
the gradient history that they would have, and views are made by the shim. What is compared of a
tensor is all that recording looks at, and all that has torch treat it in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch._C import _len_torch_function_stack
from torch.autograd import forward_ad
from torch.autograd.graph import increment_version

from np_compile.capture.arrays.tensors import ordinary, traced
from np_compile.capture.arrays.window import bounds_of
from np_compile.kernels.run.gpu_sequence import GpuSequence
from np_compile.kernels.run.on_tensors import runner
from np_compile.runtime.program import joined, would_join
from np_compile.shim._ndarray import overlaps_itself
from np_compile.shim._saved import following

from .arguments import Opened, opened, parameter_names
from .calls import MISS, Entry, Names, Table, Way, available
from .guards import Alike, Call, Name, Pair, Refused, Value, simple, text_of
from .hot import Return, is_general
from .plan import Kept, Plan
from .results import Result, giver
from .watch import Watch

_Tensor = torch.Tensor
_grad_enabled = torch.is_grad_enabled


class _Arguments(NamedTuple):
    """opened: the arguments as a call found them. shown: their leaves, for people. first: of each
    tensor among them its first position. guard: others look as they did then."""

    opened: Opened
    shown: list[str]
    first: dict[int, int]
    guard: Alike


class KeptOnTensors(Kept):
    """names: of the arguments that are named, the last ones. form: of the arguments, see `Opened`.
    grad: whether gradients are recorded. count: of leaves. checks: the guards on leaves. again:
    what gives it other programs, if it comes again."""

    __slots__ = (
        "_follows", "_give", "_joint", "_whole", "_written", "again", "checks", "count", "form",
        "grad", "names",
    )  # fmt: skip

    def __init__(
        self, call: Call, checks: list[Any], plan: Plan, result: Result, opened: Opened
    ):  # fmt: skip
        super().__init__([call, *checks], plan)
        self.names = call.names
        self.form = opened.form
        self.grad = call.grad
        self.count = len(opened.leaves)
        self.checks = checks
        self._written = sorted(plan.written)
        # A program may write to what an earlier one has saved.
        self._follows = call.grad and bool(plan.written) and len(plan.steps) > 1
        self._whole: Any = None
        if plan.steps and plan.sequence is not None:
            self._whole = runner(plan.sequence, plan.wanted, len(plan.constants))
        self.again: Return | None = None
        self._joint: Any = None
        if call.grad and self._whole is None and not plan.writes:
            self._joint = joined(plan.steps, plan.constants, plan.wanted, plan.reads)
        self._give = giver(result, int, True)
        apart = any(isinstance(c, Pair) and c.apart for c in checks)  # of which C knows nothing
        if opened.form is None and not apart and not plan.decided and available():
            self.entry = Entry(Way.UNSETTLED, self.count, call.names, self.guards)
            self.entry.calls(self.run)
            if isinstance(self._whole, GpuSequence) and self._whole.few and not self._written:
                self.entry.launches(self._whole, result, plan.wanted.index)

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        if self.entry is not None:
            self.entry.settle(settled, sampled)

    def run(self, leaves: Sequence[Any]) -> Any:
        results = self._results(leaves)
        return MISS if results is None else self._give(leaves, results)

    def follow(self, leaves: Sequence[Any]) -> tuple[Any, tuple]:
        """As `run`, where the function goes by what it computes. With MISS come the answers as far
        as they are known: up to the first one that is another than in this call."""
        results = self._results(leaves)
        if results is None:
            return MISS, ()
        decided = self.plan.decided
        for k, (number, answer) in enumerate(decided):
            found = type(answer)(results[number].item())
            if found != answer:
                return MISS, (*decided[:k], (number, found))
        return self._give(leaves, results), ()

    def _results(self, leaves: Sequence[Any]) -> Any:
        """What is wanted, by number; None where a program raises."""
        if self.again is not None:
            self._renew(self.again)
        plan = self.plan
        if self._joint is not None:
            results = self._jointly(leaves)
            if results is not None:
                return results
        start, before = 0, None
        if self._whole is not None:
            start, before = self._whole.run(leaves)
            if self._written:
                increment_version([leaves[k] for k in self._written])
            if start == len(plan.steps):
                return before
        with following() if self._follows else nullcontext():
            return plan.run(leaves, start, before)

    def _renew(self, again: Return) -> None:
        """Go by programs for these sizes alone, once there are such."""
        try:
            steps = again.ran()
        except Exception:  # of a compiler: the call stays as it is
            self.again = None
            return
        if steps is not None:
            self.again = None
            old = self.plan
            self.plan = Plan(steps, old.constants, old.wanted, False, old.decided)
            self._joint = joined(steps, old.constants, old.wanted, old.reads)

    def _jointly(self, leaves: Sequence[Any]) -> dict[int, torch.Tensor] | None:
        """What is wanted, by number, where all programs run as one call, and their gradients as
        another one; None where they do not, or not yet."""
        if not self._joint.is_ready():
            return None
        try:
            made: dict[int, torch.Tensor] = self._joint(leaves)
        except (IndexError, RuntimeError):  # one program after the other says which
            return None
        return made


class Tensors:
    """How kept calls on tensors are bound to their arguments: by what is found in them."""

    tensors = True
    for_sizes = False
    modes = (Name("torch's level of forward derivatives", vars(forward_ad), "_current_level", -1),)

    def __init__(self, function: Any):
        self._function = function

    def arguments(self, args: tuple, kwargs: dict) -> _Arguments:
        """The arguments of a call that may be kept; Refused for those with which none is."""
        if _len_torch_function_stack() or traced():
            raise Refused("torch looks at each operator")
        found = opened((*args, *kwargs.values()))
        leaves = found.leaves
        for a in leaves:
            if not (ordinary(a) if isinstance(a, _Tensor) else simple(a)):
                raise Refused(f"an argument is a {text_of(type(a))} that is not compared")
        if len({t.device for t in leaves if isinstance(t, _Tensor)}) != 1:
            raise Refused("it has no tensors, or on several devices")
        first = {id(t): k for k, t in reversed(list(enumerate(leaves))) if isinstance(t, _Tensor)}
        shown = found.names(parameter_names(self._function, len(args) + len(kwargs), [*kwargs]))
        guard = Alike.of(sorted(first.values()), shown, leaves)
        return _Arguments(found, shown, first, guard)

    def leaves(
        self, watch: Watch, given: tuple, exchange: Any
    ) -> Iterator[tuple[int, Any, torch.Tensor | None]]:
        """Of each tensor its position, its stand-in, and itself."""
        watch.arguments.opened.require_unchanged(given, exchange)
        known = exchange.capture.known
        for k, t in enumerate(watch.arguments.opened.leaves):
            if isinstance(t, _Tensor):
                stand_in = known[id(t)][1]
                if stand_in._t is not t:
                    raise Refused("an argument lies elsewhere than where it was")
                yield k, stand_in, t

    def known(self, watch: Watch, exchange: Any) -> set[int]:
        """Ids of lists and dicts that are not new."""
        lists: set[int] = watch.arguments.opened.lists(exchange)
        return lists

    def kept(self, watch: Watch, given: tuple, names: Names, plan: Plan, result: Result) -> Kept:
        """A call that has ended, as it is kept."""
        opened, shown, first, guard = watch.arguments
        leaves = opened.leaves
        for t in (leaves[k] for k in plan.written):
            if overlaps_itself(t.shape, t.stride()) or t.is_inference():
                raise Refused("it writes to a tensor that operators have to write to")
        checks: list[Any] = [
            Value(k, shown[k], a) for k, a in enumerate(leaves) if id(a) not in first
        ]
        again = ((k, first[id(t)]) for k, t in enumerate(leaves) if id(t) in first)
        checks += [Pair((k, m), (shown[k], shown[m]), True, False) for k, m in again if m != k]
        checks.append(guard)
        sizes = {k: high - low for k in guard.positions for low, high in [bounds_of(leaves[k])]}
        for k in sorted(plan.written):
            for m in guard.positions:
                if m > k or (m < k and m not in plan.written):
                    pair = shown[k], shown[m]
                    checks.append(Pair((k, m), pair, False, True, (sizes[k], sizes[m])))
        call = Call(shown, names, opened.form, _grad_enabled())
        kept = KeptOnTensors(call, checks, plan, result, opened)
        if call.grad and is_general(plan.steps) and would_join(plan.steps):
            kept.again = Return(plan.steps, [ints for *_, ints, _ in watch.steps])
        return kept

    def find(
        self, kept: Sequence[Any], table: Table | None, given: tuple, names: Names
    ) -> tuple[Kept, Sequence[Any]] | None:
        """The kept call that such a call is like, and the leaves of the arguments."""
        grad = _grad_enabled()
        opened: Opened | None = None
        for one in kept:
            if one.grad is not grad or one.names != names:
                continue
            leaves: Sequence[Any] = given
            if one.form is not None:
                opened = Opened(given) if opened is None else opened
                if not opened.known or opened.form != one.form:
                    continue
                leaves = opened.leaves
            if len(leaves) == one.count:
                for guard in one.checks:
                    if not guard.holds(leaves):
                        break
                else:
                    return one, leaves
        return None
