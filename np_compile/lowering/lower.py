"""From a segment of the tape to a tensor graph: the shim is traced through.

The segment's calls are replayed through the shim on tensors without data, and the operators that
run are written down: by a `Recorder`, which is quick, where all lies on one device and no gradient
is asked for, else by torch's `make_fx`. What comes out is a `torch.fx.GraphModule` of ATen
operators, the contract of every torch compiler back end.

Inputs of the graph: the segment's arrays in order; then, if there are any, its Python floats as one
float64 vector and its changing integers as one int64 vector, both where the arrays are.
Outputs: the live arrays, in order; an input among them is not written to, what it becomes is new.
Views are not outputs: they are made again from their bases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.tape.call import Call, Parameter
from np_compile.tape.form import Form
from np_compile.tape.node import Node, picked
from np_compile.tape.tree import mapped

from .general import GeneralGraph, Tie, lower_general
from .lens import Lens, indexed, settle
from .record import Recorder
from .tensor_graph import Differentiable, TensorGraph


def written_inputs(node: Node, live: tuple[int, ...]) -> dict[int, int]:
    """Numbers of the inputs whose memory the segment writes to, by their positions. It makes new
    ones of those that are among its results."""
    written = {r for step, _ in node.calls() for r in step.mutates}.difference(live)
    roots = [v.index for step in node.path() if step.call is None for v in step.values]
    return {k: root for k, root in enumerate(roots) if root in written}


def lower(
    node: Node, live: tuple[int, ...], args: list[torch.Tensor], n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], device: torch.device | None, kernels: bool = False,
) -> torch.fx.GraphModule:  # fmt: skip
    """The tensor graph of the segment that ends at `node`, specialized to the shapes of `args`.

    kernels: whether it becomes kernels. torch's own operators on a GPU multiply by the reciprocal
    where a `Recorder` has a number as divisor.
    """

    def replay(tensors: Any, graph: torch.fx.Graph | None) -> list[torch.Tensor]:
        return _replay(node, live, tensors, n_inputs, has_floats, ints, dynamic, graph)

    written = [*written_inputs(node, live)]
    with torch.no_grad(), shim.quiet():
        place = _place([a.detach() for a in args], device)
        if place is not None and (kernels or place.type == "cpu"):
            if any(a.requires_grad for a in args):
                return _record_differentiable(replay, args, n_inputs, place, written)
            return _record(replay, args, n_inputs, place)
        from .trace import trace  # with much of torch behind it

        return trace(replay, args, written, device)


def lower_for_sizes(
    node: Node, live: tuple[int, ...], args: list[torch.Tensor], n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], form: Form, changing: frozenset[int],
    ties: Mapping[int, Tie], device: torch.device | None,
) -> GeneralGraph:  # fmt: skip
    """As `lower`, for all values of the changing ones among the sizes of the segment's form and,
    after them, its integers. ties: of some of these. Errors: `general.Special`, and whatever the
    shim gives for such sizes."""

    def replay(
        tensors: Any, numbers: list[Any], call_of: Callable[[Call], Call],
        graph: torch.fx.Graph | None, told: Callable[[list[torch.Tensor]], None],
    ) -> list[torch.Tensor]:  # fmt: skip
        return _replay(
            node, live, tensors, n_inputs, has_floats, numbers, dynamic, graph, call_of, told
        )  # fmt: skip

    followed = any(a.requires_grad for a in args)
    place = _place([a.detach() for a in args], device)
    if place is None:
        raise NotImplementedError("arrays on several devices")
    if followed and written_inputs(node, live):
        raise NotImplementedError("gradients for many sizes through writes")
    with torch.no_grad(), shim.quiet():
        return lower_general(node, form, ints, changing, ties, replay, args, place)


def _place(args: list[torch.Tensor], device: torch.device | None) -> torch.device | None:
    """The one device on which tensors lie as they are, and the arrays of the segment will; None
    where there are several, or gradients are asked for."""
    if not all(map(_plain, args)):
        return None
    places = {t.device for t in args}
    if not places and device is None:
        return torch.device("cpu")
    (place, *others) = places or (None,)
    if others or place is None or place.type not in ("cpu", "cuda"):
        return None
    same = (device or place).type == place.type and (device or place).index in (None, place.index)
    return place if same else None


def _plain(t: torch.Tensor) -> bool:
    """Whether a tensor lies in memory as it is, and no gradient is asked of it."""
    return type(t) is torch.Tensor and not (t.requires_grad or t.is_conj() or t.is_neg())


def _record(
    replay: Callable, args: list[torch.Tensor], n_inputs: int, place: torch.device
) -> torch.fx.GraphModule:
    """The graph of a replay for inputs like `args`, on their device. After so many inputs come the
    vectors of parameters."""
    recorder = Recorder(place)
    inputs = [recorder.input(a, k >= n_inputs) for k, a in enumerate(args)]
    with recorder:
        outputs = replay(inputs, recorder.graph)
    graph = recorder.finish(outputs)
    return TensorGraph(recorder.constants, graph)


def _record_differentiable(
    replay: Callable, args: list[torch.Tensor], n_inputs: int, place: torch.device,
    written: list[int],
) -> torch.fx.GraphModule:  # fmt: skip
    """As `_record`, of operators that autograd can go through; `written`: the inputs that the
    replay writes to."""
    from .trace import DIFFERENTIABLE, without_writes

    recorder = Recorder(place, DIFFERENTIABLE)
    inputs = [recorder.input(a.detach(), k >= n_inputs) for k, a in enumerate(args)]
    pure = without_writes(lambda *tensors: replay(tensors, recorder.graph), written)
    with recorder, torch.enable_grad():
        outputs = pure(*inputs)
    return Differentiable(recorder.constants, recorder.finish(outputs))


def interpreter(
    node: Node, live: tuple[int, ...], n_inputs: int, has_floats: bool, ints: list[int],
    dynamic: tuple[int, ...], device: torch.device | None,
    told: Callable[[list[torch.Tensor]], None] | None = None,
) -> Callable[..., list[torch.Tensor]]:  # fmt: skip
    """The segment as a function of the graph's inputs that runs the shim call by call. told: see
    `_replay`.

    Its integers are known then, so that a view is a view.
    """

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        numbers = list(ints)
        if dynamic:
            for k, number in zip(dynamic, tensors[-1].tolist(), strict=True):
                numbers[k] = number
        with device or nullcontext():
            return _replay(node, live, tensors, n_inputs, has_floats, numbers, (), None, told=told)

    return run


def _replay(
    node: Node, live: tuple[int, ...], tensors: Any, n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], graph: torch.fx.Graph | None,
    call_of: Callable[[Call], Call] = lambda call: call,
    told: Callable[[list[torch.Tensor]], None] | None = None,
) -> list[torch.Tensor]:  # fmt: skip
    """told: called with the tensors of each step's new values."""
    rest = list(tensors[n_inputs:])
    floats = rest.pop(0) if has_floats else None
    numbers: list[Any] = list(ints)
    if dynamic:
        vector = rest.pop(0)
        for place, k in enumerate(dynamic):
            numbers[k] = shim.Weak(vector[place], int)

    def parameter(p: Parameter) -> Any:
        return _number(p, floats if p.is_float else numbers)

    values: list[Any] = []
    inputs = iter(tensors)
    for step in node.path():
        if step.call is None:
            (value,) = step.values
            t = next(inputs)
            t = t.clone() if value.index in live else t
            values.append(shim.ndarray(t, value.meta._flip, value.scalar))
            if value.index not in live:
                values[-1]._shared = True  # others have its memory
            if told is not None:
                told([values[-1]._t])
            continue
        last = next(iter(reversed(graph.nodes)), None) if graph is not None else None
        args, kwargs = call_of(step.call).evaluate(values, parameter)
        before = len(values)
        _run(step, step.call.name, args, kwargs, values)
        if told is not None:
            told([settle(v)._t for v in values[before:]])
        if graph is not None:
            _annotate(graph, last, step.call.name, step.user_line)
    return [settle(values[i]).tensor for i in live]


def _run(step: Node, name: str, args: list, kwargs: dict, values: list[Any]) -> None:
    """One call. Values behind a changing index are read before it, those of them that it has
    written to are written back after it."""
    held: dict[int, tuple[Lens, shim.ndarray]] = {}

    def read(x: Any) -> Any:
        return held.setdefault(id(x), (x, x.read()))[1] if isinstance(x, Lens) else x

    behind = bool(args) and isinstance(args[0], Lens)
    if name == "ndarray.__getitem__" and (behind or indexed(args[1])):
        value = step.values[0]
        part = Lens.getitem(args[0], mapped(args[1], read), value.meta._t.stride())
        values.append(part if value.source is not None else part.get(settle(args[0])))
        return
    if name == "ndarray.__setitem__" and (behind or indexed(args[1])):
        Lens.getitem(args[0], mapped(args[1], read)).write(mapped(args[2], read))
        return
    function = shim.TABLE[name].function
    now = mapped(args, read)
    named = mapped(kwargs, read)
    before = {k: _writes(a) for k, (_, a) in held.items()}
    result = function(*now, **named)
    for k, (lens, a) in held.items():
        if _writes(a) != before[k]:
            lens.write(a)
    for value in step.values:
        found = picked(result, value.pick)
        owner = None
        if value.source is not None:
            owner = next((x for x in held.values() if _one_memory(x[1], found)), None)
            if owner is None and isinstance(values[value.source], Lens):
                raise NotImplementedError(f"{name}: a view that depends on how memory is laid out")
        if owner is not None:
            lens, a = owner
            found = Lens(lens, _viewing(function, now, named, a, value.pick))
        values.append(found)


def _viewing(
    function: Callable, args: list, kwargs: dict, source: shim.ndarray, pick: tuple
) -> Callable[[shim.ndarray], shim.ndarray]:
    """What makes the view that a call has made of `source` of another array in its place."""

    def view(x: shim.ndarray) -> shim.ndarray:
        put = lambda a: x if a is source else a  # noqa: E731
        return picked(function(*mapped(args, put), **mapped(kwargs, put)), pick)

    return view


def _writes(a: shim.ndarray) -> int:
    """How often an array of this replay has been written to."""
    if torch._is_functional_tensor(a._t):  # its version stays
        return torch._functionalize_mutation_counter(a._t)
    return a._t._version


def _one_memory(a: shim.ndarray, b: shim.ndarray) -> bool:
    return a._t.untyped_storage()._cdata == b._t.untyped_storage()._cdata


def _number(p: Parameter, numbers: Any) -> Any:
    """What stands for a parameter. numbers: the vector of floats, or the integers."""
    if p.kind in ("int", "index"):
        return numbers[p.place]
    if p.kind == "float":
        return shim.Weak(numbers[p.place], float)
    if p.kind == "complex":
        return shim.Weak(torch.complex(numbers[p.place], numbers[p.place + 1]), complex)
    # A NumPy scalar, whose type counts.
    dtype = shim.torch_dtype(np.dtype(p.kind))
    value = numbers[p.place]
    value = value.tensor if isinstance(value, shim.Weak) else value
    known = not isinstance(value, torch.Tensor)
    t = torch.tensor(value, dtype=dtype) if known else value.to(dtype)
    return shim.ndarray(t, (), True)


def _annotate(graph: torch.fx.Graph, last: Any, name: str, line: str) -> None:
    """Write the user's line on the graph nodes that a call has made."""
    for made in reversed(graph.nodes):
        if made is last:
            break
        made.meta["np_call"] = name
        made.meta["user_line"] = line
