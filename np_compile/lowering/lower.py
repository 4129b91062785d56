"""From a segment of the tape to a tensor graph: the shim is traced through.

The segment's calls are replayed through the shim on tensors without data, and the operators that
run are written down: by a `Recorder`, which is quick, where all lies in host memory and no gradient
is asked for, else by torch's `make_fx`. What comes out is a `torch.fx.GraphModule` of ATen
operators, the contract of every torch compiler back end.

Inputs of the graph: the segment's arrays in order; then, if there are any, its Python floats as one
float64 vector and its changing integers as one int64 vector, both in host memory.
Outputs: the live arrays, in order. Views are not outputs: they are made again from their bases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.capture.tape import INPUT, Decoder, Node, picked

from .lens import Lens, indexed, settle
from .record import Recorder
from .tensor_graph import TensorGraph


def written_inputs(node: Node) -> list[int]:
    """Positions of the inputs whose memory the segment writes to."""
    written = {r for step in node.calls() for r in step.mutates}
    roots = [step.value.index for step in node.path() if step.key[0] is INPUT]  # type: ignore[union-attr]
    return [k for k, root in enumerate(roots) if root in written]


def lower(
    node: Node, live: tuple[int, ...], args: list[torch.Tensor], n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], device: torch.device | None,
) -> torch.fx.GraphModule:  # fmt: skip
    """The tensor graph of the segment that ends at `node`, specialized to the shapes of `args`."""

    def replay(tensors: Any, graph: torch.fx.Graph | None) -> list[torch.Tensor]:
        return _replay(node, live, tensors, n_inputs, has_floats, ints, dynamic, graph)

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if device is None and all(map(_plain, args)):
            return _record(replay, args)
        from .trace import trace  # with much of torch behind it

        return trace(replay, args, written_inputs(node), device)


def _plain(t: torch.Tensor) -> bool:
    """Whether a tensor lies in host memory as it is, and no gradient is asked of it."""
    return (
        type(t) is torch.Tensor
        and t.device.type == "cpu"
        and not (t.requires_grad or t.is_conj() or t.is_neg())
    )


def _record(replay: Callable, args: list[torch.Tensor]) -> torch.fx.GraphModule:
    """The graph of a replay for inputs like `args`."""
    recorder = Recorder()
    inputs = [recorder.input(a) for a in args]
    with recorder:
        outputs = replay(inputs, recorder.graph)
    graph = recorder.finish(outputs)
    return TensorGraph(recorder.constants, graph)


def interpreter(
    node: Node, live: tuple[int, ...], n_inputs: int, has_floats: bool, ints: list[int],
    dynamic: tuple[int, ...],
) -> Callable[..., list[torch.Tensor]]:  # fmt: skip
    """The segment as a function of the graph's inputs that runs the shim call by call."""

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return _replay(node, live, tensors, n_inputs, has_floats, ints, dynamic, None)

    return run


def _replay(
    node: Node, live: tuple[int, ...], tensors: Any, n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], graph: torch.fx.Graph | None,
) -> list[torch.Tensor]:  # fmt: skip
    floats: Iterator = iter(())
    rest = list(tensors[n_inputs:])
    if has_floats:
        floats = _floats(rest.pop(0))
    numbers: list[Any] = list(ints)
    if dynamic:
        vector = rest.pop(0)
        for place, k in enumerate(dynamic):
            numbers[k] = shim.Weak(vector[place], int)
    values: list[Any] = []
    decoder = Decoder(values, floats, iter(numbers), _scalar, _complex)
    inputs = iter(tensors)
    for step in node.path():
        key = step.key
        if key[0] is INPUT:
            _dtype, _shape, _stride, flip, _device, _grad, scalar, _readonly = key[1]
            values.append(shim.ndarray(next(inputs), flip, scalar))
            continue
        last = next(iter(reversed(graph.nodes)), None) if graph is not None else None
        args, kwargs = decoder.call(key)
        _run(step, key, args, kwargs, values)
        if graph is not None:
            _annotate(graph, last, step)
    return [settle(values[i]).tensor for i in live]


def _run(step: Node, key: tuple, args: list, kwargs: dict, values: list[Any]) -> None:
    """One call. Values behind a changing index are read before it and written back after it."""
    name = key[0]
    if name == "ndarray.__getitem__" and (isinstance(args[0], Lens) or indexed(args[1])):
        values.append(Lens.getitem(args[0], args[1]))
        return
    if name == "ndarray.__setitem__" and (isinstance(args[0], Lens) or indexed(args[1])):
        Lens.getitem(args[0], args[1]).write(settle(args[2]))
        return
    lenses = [a for a in (*args, *kwargs.values()) if isinstance(a, Lens)]
    if lenses and step.values and all(v.source is not None for v in step.values):

        def view(x: Any, base: Any, pick: tuple) -> Any:
            given = [x if a is base else settle(a) for a in args]
            return picked(shim.TABLE[name].function(*given, **kwargs), pick)

        for v in step.values:
            base = values[v.source]  # type: ignore[index]
            if isinstance(base, Lens):
                values.append(Lens(base, partial(view, base=base, pick=v.pick)))
            else:
                values.append(view(base, base, v.pick))
        return
    held = {id(a): settle(a) for a in lenses}

    def read(x: Any) -> Any:
        if isinstance(x, Lens):
            return held.setdefault(id(x), settle(x))
        if isinstance(x, (tuple, list)):
            return type(x)(read(v) for v in x)
        return x

    result = shim.TABLE[name].function(
        *(read(a) for a in args), **{k: read(v) for k, v in kwargs.items()}
    )
    if step.mutates:
        for a in lenses:
            a.write(held[id(a)])
    values.extend(picked(result, v.pick) for v in step.values)


def _floats(vector: torch.Tensor) -> Iterator[shim.Weak]:
    k = 0
    while True:
        yield shim.Weak(vector[k], float)
        k += 1


def _scalar(value: Any, char: str) -> shim.ndarray:
    """A NumPy scalar parameter: strongly typed."""
    dtype = shim.torch_dtype(np.dtype(char))
    t = value.tensor.to(dtype) if isinstance(value, shim.Weak) else torch.tensor(value, dtype=dtype)
    return shim.ndarray(t, (), True)


def _complex(real: shim.Weak, imag: shim.Weak) -> shim.Weak:
    return shim.Weak(torch.complex(real.tensor, imag.tensor), complex)


def _annotate(graph: torch.fx.Graph, last: Any, step: Node) -> None:
    """Write the user's line on the graph nodes that a call has made."""
    for made in reversed(graph.nodes):
        if made is last:
            break
        made.meta["np_call"] = step.key[0]
        made.meta["user_line"] = step.user_line
