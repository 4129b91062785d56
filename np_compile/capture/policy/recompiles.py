"""The compiles of one function: what made each of them new, and how many are enough."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from np_compile import config, log
from np_compile.tape.call import parameters
from np_compile.tape.node import Node

if TYPE_CHECKING:
    from np_compile.runtime.program import Program

_REMEDIES = {
    "shape": "pad the arrays to a few sizes, or leave the function to NumPy by `disable`",
    "integer": "dynamic=True makes integers data where NumPy's result does not depend on them",
    "dtype": "convert the arrays to one dtype first",
    "layout": "np.ascontiguousarray gives all arrays one layout",
}


@dataclass(frozen=True)
class Change:
    """What is other than in an earlier compile. what: such as "shape of input 0"."""

    what: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.what}: {self.old} -> {self.new}"


class Compiles:
    """The programs of a function, in the order in which they were compiled."""

    __slots__ = ("_places", "_warned", "programs")

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self._places: dict[tuple, list[Program]] = {}
        self._warned: set[tuple] = set()

    def add(self, program: Program) -> None:
        """Note a compile."""
        self.programs.append(program)
        self._places.setdefault(_place(program.node), []).append(program)

    def changes(self, program: Program) -> list[Change]:
        """What is other in a program than in the one before it, of the same calls at the same
        lines, that is most like it; empty for the first of them."""
        known = self._places[_place(program.node)]
        mine = _facts(program)
        found = []
        for other in reversed(known[: known.index(program)]):
            old = _facts(other)
            found.append([Change(k, old.get(k), mine[k]) for k in mine if old.get(k) != mine[k]])
        return min(found, key=len, default=[])

    def are_enough(self, node: Node, name: str) -> bool:
        """Whether the calls up to a node are not to be compiled once more; the first time with a
        warning. name: of the function."""
        place = _place(node)
        known = self._places.get(place, ())
        if len(known) < config.recompile_limit:
            return False
        if place not in self._warned:
            self._warned.add(place)
            warnings.warn(_warning(self, known, node, name), RuntimeWarning, stacklevel=2)
        return True


def _place(node: Node) -> tuple:
    return tuple([(call.name, step.user_line) for step, call in node.calls()])


def _facts(program: Program) -> dict[str, Any]:
    """All that a compile is for, by what it is called."""
    node = program.node
    found: dict[str, Any] = {}
    count = 0
    for step in node.path():
        if step.call is None:
            (value,) = step.values
            found[f"shape of input {count}"] = tuple(value.shape)
            found[f"dtype of input {count}"] = value.dtype.name
            found[f"layout of input {count}"] = _layout(value.meta)
            found[f"requires_grad of input {count}"] = step.signature[5]
            count += 1
            continue
        where = f"{step.call.label} at {step.user_line}"
        found[f"arguments of {where}"] = log.arguments_text(step.call)
        for p in parameters((step.call.args, step.call.kwargs)):
            if not p.is_float and p.place in program.constant_ints:
                found[f"integer {p.place} of {where}"] = program.constant_ints[p.place]
    found["gradients"] = program.grad
    found["results that are needed"] = program.live
    return found


def _layout(a: Any) -> str:
    if a.flags.c_contiguous:
        return "C order"
    return "Fortran order" if a.flags.f_contiguous else f"strides {a.strides}"


def _warning(compiles: Compiles, known: Any, node: Node, name: str) -> str:
    counted = Counter(change.what for p in known for change in compiles.changes(p))
    what, times = counted.most_common(1)[0] if counted else ("what it reads", 0)
    remedy = _REMEDIES.get(what.split()[0], "np_compile.recompiles(f) shows each compile")
    return (
        f"np_compile: {name}: the calls from {_line(node)} on were compiled {len(known)} times "
        f"(recompile_limit), and run in NumPy with anything new from now on. What changed most, "
        f"{times} times: {what}. Remedy: {remedy}."
    )


def _line(node: Node) -> str:
    return next((step.user_line for step, _ in node.calls()), "its beginning")
