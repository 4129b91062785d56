"""A program and its gradient as one graph, written down operator by operator.

AOTAutograd goes through a graph three times, on fake tensors below several layers, as it sees to
writes, to results that share memory and to subclasses of tensors. A graph that only makes new
arrays needs none of that: it runs once on tensors without data, under torch's autograd, and a
`Recorder` below that writes down what both do, in a tenth of the time.
"""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import fx
from torch.autograd.graph import _engine_run_backward, saved_tensors_hooks

from np_compile.lowering.record import Recorder
from np_compile.lowering.sized import SizedRecorder
from np_compile.lowering.symint import size_of
from np_compile.lowering.tensor_graph import Differentiable
from np_compile.shim._devices import NODE
from np_compile.size import Facts

from .saved import placeholders, results_of

_aten = torch.ops.aten


def differentiated(
    graph: fx.GraphModule, example_inputs: Sequence[torch.Tensor], place: torch.device,
    notes: Sequence[str],
) -> tuple[fx.GraphModule, list[int]] | None:  # fmt: skip
    """The graph that takes inputs (`primals_1`, ...) and gradients of results (`tangents_1`, ...),
    and gives the results and a gradient of each input, or None; with the numbers of the results
    that have a gradient; None where none has one. graph: only makes new arrays. place: where they
    lie. notes: what nodes hand on of their `meta`. Errors: Written.
    """
    recorder = _Recorder(notes, place=place)
    inputs = []
    for k, (node, like) in enumerate(zip(placeholders(graph.graph), example_inputs, strict=True)):
        made = recorder.input(like.detach(), node.meta.get("parameters", False), f"primals_{k + 1}")
        inputs.append(made.requires_grad_(like.requires_grad))
    return _differentiated(graph, recorder, inputs)


def differentiated_for_sizes(
    graph: fx.GraphModule, facts: Facts, asked: Sequence[bool], place: torch.device,
    notes: Sequence[str],
) -> tuple[fx.GraphModule, list[int]] | None:  # fmt: skip
    """The same of a graph for many sizes, see `lowering.general.GeneralGraph`. asked: of which of
    its first inputs gradients are. Its integers, the last inputs, stay inputs."""
    recorder = _SizedGradients(notes, facts=facts, place=place)
    inputs = []
    for k, node in enumerate(placeholders(graph.graph)):
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            inputs.append(recorder.integer_input(size_of(value)))
            continue
        name = f"primals_{k + 1}"
        if node.meta.get("parameters", False):
            inputs.append(recorder.input(value, True, name))
            continue
        shape, strides = map(size_of, value.shape), map(size_of, value.stride())
        made = recorder.sized_input([*shape], [*strides], value.dtype, name)
        inputs.append(made.requires_grad_(k < len(asked) and asked[k]))
    return _differentiated(graph, recorder, inputs)


def _differentiated(
    graph: fx.GraphModule, recorder: _Recorder, inputs: list[Any]
) -> tuple[fx.GraphModule, list[int]] | None:
    """As `differentiated`, on the recorder's inputs."""
    values: dict[fx.Node, Any] = dict(zip(placeholders(graph.graph), inputs, strict=True))
    with recorder, torch.enable_grad(), _saved_here():
        for node in graph.graph.nodes:
            if node.op == "get_attr":
                values[node] = recorder.held(getattr(graph, str(node.target)))
            elif isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat)):
                values[node] = node.meta["val"]
            elif node.op == "call_function":
                recorder.follow(node)
                args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
                values[node] = _OWN.get(node.target, node.target)(*args, **kwargs)
    results = [values[n] for n in results_of(graph.graph)]
    floats = [k for k, t in enumerate(results) if t.requires_grad]
    if not floats:
        return None
    with recorder.graph.inserting_before(recorder.first):
        tangents = [recorder.tangent(results[k], f"tangents_{n}") for n, k in enumerate(floats, 1)]
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    asked = [t for t in tensors if t.requires_grad]
    recorder.turn()
    with recorder:
        # As `torch.autograd.grad`, which imports a library of algebra to compare shapes.
        found = _engine_run_backward(
            tuple([results[k] for k in floats]), tuple(tangents), False, False, tuple(asked), True,
            accumulate_grad=False,
        )  # fmt: skip
    gradients = iter(found)
    given = [next(gradients) if t.requires_grad else None for t in tensors]
    joint = recorder.finish([*results, *given])
    return Differentiable(recorder.constants, joint), floats


def _saved_here() -> saved_tensors_hooks:
    """What autograd saves within the block is not told to hooks of the caller's."""
    return saved_tensors_hooks(lambda t: t, lambda t: t)


class Written(Exception):
    """An operator writes to memory that others share."""


class _Recorder(Recorder):
    """Writes down what autograd does too. Each node has the notes of the operator of the graph that
    it comes from."""

    def __init__(self, notes: Sequence[str], **given: Any):
        super().__init__(rules=own_decompositions(), **given)
        self._names = notes
        self._begins: list[int] = []  # numbers of autograd's of the first node of each operator
        self._notes: list[dict[str, Any]] = []  # beside these
        self._backward = False
        self._shared: dict[int, int] = {}  # how many tensors there are of each memory

    @property
    def first(self) -> fx.Node:
        """What follows the inputs."""
        return next(n for n in self.graph.nodes if n.op != "placeholder")

    def tangent(self, result: torch.Tensor, name: str) -> torch.Tensor:
        """The next input, the gradient of a result."""
        return self.input(self._like(result), name=name)

    def _like(self, t: torch.Tensor) -> torch.Tensor:
        """A tensor of the same shape, laid out without gaps."""
        made: torch.Tensor = self.run(_aten.empty_like.default, (t.detach(),), {})
        return made

    def follow(self, node: fx.Node) -> None:
        """What comes is of this node of the graph."""
        self._begins.append(torch.autograd._get_sequence_nr())
        self._notes.append({k: node.meta[k] for k in self._names if k in node.meta})

    def turn(self) -> None:
        """What comes are gradients."""
        self._backward = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is _aten.detach.default:  # autograd, of what it saves
            return self._track(args[0].detach(), self._node(args[0]))
        if func._schema.is_mutable:
            return self._anew(func, args, kwargs or {})
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _anew(self, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
        """What an operator writes to a tensor, or to a slice of one, as that tensor's new value."""
        t: torch.Tensor = args[0]
        name = func.overloadpacket.__name__
        packet = getattr(_aten, name[:-1], None) if name.endswith("_") else None
        form = getattr(packet, func._overloadname, None)
        base = t if t._base is None else t._base
        if form is None or self._shared.get(_memory(t), 0) != (1 if base is t else 2):
            raise Written
        with self:
            made = form(*args, **kwargs)
            if made.dtype is not t.dtype or made.shape != t.shape:
                raise Written
            if base is not t:
                place = _slice_of(t, base)
                whole = _aten.slice_scatter.default(base, made, *place)
                made = _aten.slice.Tensor(whole, *place)
                self._put(base, whole)
        self._put(t, made)
        return t

    def _put(self, t: torch.Tensor, made: torch.Tensor) -> None:
        """Have a tensor be what is made in its place."""
        if made.stride() != t.stride():
            raise Written
        setattr(t, NODE, (self, self._node(made)))

    def _track(self, result: Any, node: fx.Node) -> Any:
        if "val" not in node.meta and self._notes:
            node.meta.update(self._current())
        if isinstance(result, torch.Tensor):
            self._shared[_memory(result)] = self._shared.get(_memory(result), 0) + 1
        return super()._track(result, node)

    def _current(self) -> dict[str, Any]:
        if not self._backward:
            return self._notes[-1]
        node = torch._C._current_autograd_node()
        at = 0 if node is None else bisect_right(self._begins, node._sequence_nr())
        return self._notes[at - 1] if at else {}


class _SizedGradients(_Recorder, SizedRecorder):
    """The same of tensors whose sizes may change."""

    def tangent(self, result: torch.Tensor, name: str) -> torch.Tensor:
        like = self._like(result)
        shape, strides = map(size_of, like.shape), map(size_of, like.stride())
        return self.sized_input([*shape], [*strides], like.dtype, name)


def _memory(t: torch.Tensor) -> int:
    return t.untyped_storage()._cdata


def _slice_of(t: torch.Tensor, base: torch.Tensor) -> tuple[int, int, int]:
    """Axis, start and stop of the slice of a tensor that a view is."""
    axes = [d for d, (n, m) in enumerate(zip(t.shape, base.shape, strict=False)) if n != m]
    if t.ndim != base.ndim or t.stride() != base.stride() or len(axes) != 1:
        raise Written
    (d,) = axes
    start = (t.storage_offset() - base.storage_offset()) // t.stride(d)
    return d, start, start + t.shape[d]


class _RunningProduct(torch.autograd.Function):
    """Torch's gradient of running products asks how long they are, and is one of that length.

    Behind the first zero all products are zero; the gradient there is of the products without it.
    """

    @staticmethod
    def forward(ctx: Any, t: torch.Tensor, axis: int) -> torch.Tensor:
        made = torch.cumprod(t, axis)
        ctx.save_for_backward(t, made)
        ctx.axis = axis
        return made

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        t, made = ctx.saved_tensors
        d = ctx.axis

        def behind(values: torch.Tensor) -> torch.Tensor:
            return values.flip(d).cumsum(d).flip(d)

        zero = t == 0
        zeros = zero.cumsum(d)
        first = zero & (zeros == 1)
        without = torch.where(first, 1, t).cumprod(d)
        before = behind(grad * made.conj()) / torch.where(zero, 1, t).conj()
        at = torch.where(first, behind(grad * without.conj()), 0)
        return torch.where(zeros == 0, before, at), None


def _running_product(t: torch.Tensor, axis: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    made: torch.Tensor = _RunningProduct.apply(t if dtype is None else t.to(dtype), axis)
    return made


# What stands for operators as they are differentiated
_OWN = {_aten.cumprod.default: _running_product}
# Operators that there are kernels for
_WHOLE = (_aten.dot.default, _aten.mv.default, _aten.tril.default, _aten.triu.default)
# Rules of torch's that ask for the dtype in which halves are computed, which imports much
_OF_FLOATS = (_aten.sgn.default, _aten.sigmoid_backward.default, _aten.tanh_backward.default)
_FLOATS = (torch.float32, torch.float64, torch.complex64, torch.complex128)
_SHORT = 16  # windows whose gradient is written out


@cache
def own_decompositions() -> Mapping[Any, Callable]:
    """As `decompositions`, without those that import torch's compiler, or a library of algebra,
    where there is another way."""
    made = {f: rule for f, rule in decompositions().items() if f not in _WHOLE}
    made |= {f: _of_floats(made[f]) for f in _OF_FLOATS}
    return made | {
        _aten.zeros.default: partial(_full, 0),
        _aten.ones.default: partial(_full, 1),
        _aten.unfold_backward.default: _unfold_backward,
    }


def _unfold_backward(
    grad: torch.Tensor, size: Sequence[Any], dim: int, length: Any, step: Any
) -> torch.Tensor:
    """The gradient of windows: of short ones a sum of slices, a loop without a scatter."""
    if not isinstance(length, int) or length > _SHORT:
        return NotImplemented
    d = dim % len(size)
    zero = grad.new_zeros(size)
    end = (grad.shape[d] - 1) * step + 1
    total = zero
    for k in range(length):
        part = _aten.slice_scatter.default(zero, grad.select(-1, k), d, k, end + k, step)
        total = total + part if k else part
    return total


def _of_floats(rule: Callable) -> Callable:
    bare = inspect.unwrap(rule)

    def run(*args: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = (bare if all(t.dtype in _FLOATS for t in args) else rule)(*args)
        return made

    return run


def _full(value: int, size: Any, dtype: torch.dtype | None = None, **where: Any) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    return torch.full(size, bool(value) if dtype is torch.bool else value, dtype=dtype, **where)


@cache
def decompositions() -> Mapping[Any, Callable]:
    """Operators that are made of others, as AOTAutograd is told; but `index_add`, which refuses
    indices below zero, and what it is made of does not."""
    from torch._decomp import _core_aten_decompositions_post_autograd

    made = _core_aten_decompositions_post_autograd()
    return {f: rule for f, rule in made.items() if f is not _aten.index_add.default}
