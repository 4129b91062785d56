"""From a segment of the tape to a tensor graph: the shim is traced through.

The segment's calls are replayed through the shim under `make_fx` on fake tensors; what comes out is
a `torch.fx.GraphModule` of ATen operators, the contract of every torch compiler back end.

Inputs of the graph: the segment's arrays in order; then, if there are any, its Python floats as one
float64 vector and its changing integers as one int64 vector, both in host memory.
Outputs: the live arrays, in order. Views are not outputs: they are made again from their bases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

from np_compile import shim
from np_compile.capture.tape import INPUT, Decoder, Node

from .lens import Lens, indexed, settle


def _written_inputs(node: Node) -> list[int]:
    """Positions of the inputs whose memory the segment writes to."""
    written = {r for step in node.calls() for r in step.mutates}
    roots = [step.value.index for step in node.path() if step.key[0] is INPUT]  # type: ignore[union-attr]
    return [k for k, root in enumerate(roots) if root in written]


def _without_writes(replay: Callable, written: list[int]) -> Callable:
    """The segment with its writes made into new values, and inputs written to once, at the end:
    nothing that autograd has saved is changed behind its back."""

    def on_copies(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        own = list(tensors)
        for k in written:
            own[k] = tensors[k].clone()
        return replay(*own), [own[k] for k in written]

    pure = torch.func.functionalize(on_copies)

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        outputs, new = pure(*tensors)
        for k, values in zip(written, new, strict=True):
            tensors[k].copy_(values)
        return outputs

    return run


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return source.to(target.dtype).expand(target.shape).clone()


# What functionalization leaves of a write has no derivative in torch; this has.
_DIFFERENTIABLE = {torch.ops.aten.copy.default: _copy}


def lower(
    node: Node, live: tuple[int, ...], args: list[torch.Tensor], n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...], device: torch.device | None,
) -> torch.fx.GraphModule:  # fmt: skip
    """The tensor graph of the segment that ends at `node`, specialized to the shapes of `args`."""

    def replay(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return _replay(node, live, tensors, n_inputs, has_floats, ints, dynamic)

    traced: Callable = replay
    if any(a.requires_grad for a in args):
        traced = _without_writes(replay, _written_inputs(node))
    examples = [a.detach() for a in args]
    where = device if device is not None else nullcontext()
    with where, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = make_fx(
            traced,
            decomposition_table=_DIFFERENTIABLE,
            tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*examples)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def interpreter(
    node: Node, live: tuple[int, ...], n_inputs: int, has_floats: bool, ints: list[int],
    dynamic: tuple[int, ...],
) -> Callable[..., list[torch.Tensor]]:  # fmt: skip
    """The segment as a function of the graph's inputs that runs the shim call by call."""

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return _replay(node, live, tensors, n_inputs, has_floats, ints, dynamic)

    return run


def _replay(
    node: Node, live: tuple[int, ...], tensors: Any, n_inputs: int, has_floats: bool,
    ints: list[int], dynamic: tuple[int, ...],
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
    mode = get_proxy_mode()
    graph = mode.tracer.graph if mode is not None else None
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
        base = lenses[0]
        position = args.index(base)

        def view(x: Any, at: int) -> Any:
            result = shim.TABLE[name].function(*args[:position], x, *args[position + 1 :], **kwargs)
            return _flat(result)[at]

        values.extend(Lens(base, partial(view, at=at)) for at in range(len(step.values)))
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
    if step.values:
        fresh = [r for r in _flat(result) if not any(r is h for h in held.values())]
        values.extend(fresh[-len(step.values) :])


def _flat(r: Any) -> list:
    if isinstance(r, (tuple, list)):
        return [x for v in r for x in _flat(v)]
    return [r] if isinstance(r, shim.ndarray) else []


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
