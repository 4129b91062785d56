"""Lowering of a tensor graph to the loop IR: each operator becomes statements of its own.

Nothing is decided here about fusion or memory; the passes do that. An operator that no rule knows
becomes a call of torch between kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from np_compile.size import Real, Size

from ..ir import expr as E
from ..ir.expr import Expr, new_axes, number
from ..ir.program import (
    Buffer,
    Call,
    Interface,
    Program,
    Statement,
    Store,
    Tensor,
    contiguous_strides,
    elements,
)
from . import arrays, elementwise, indexing, library, products, reductions, views
from .arrays import Array, of_torch
from .nodes import Unsupported, args_of, argument_of, mutated_roots, packet, source_of

_WITH_EFFECTS = torch.ops.higher_order.with_effects
_HOST = torch.device("cpu")
# Operators that name an offset in the storage, and how many arguments come before it.
_AT_OFFSET: dict[Any, int] = {
    torch.ops.aten.as_strided.default: 3, torch.ops.aten.as_strided_copy.default: 3,
    torch.ops.aten.as_strided_scatter.default: 4,
}  # fmt: skip
_WRITES_METADATA = ("squeeze_", "unsqueeze_", "t_", "transpose_")


@dataclass(frozen=True)
class _Operation:
    """A torch operator, its arguments, and tensors like its results."""

    target: Any
    args: tuple
    kwargs: dict[str, Any]
    value: Any


class Translation:
    """One graph's translation.

    line: the user's, of the node at hand. program: the statements. interface: how it is called.
    device: where its arrays lie. gpu: whether it is for a GPU, where what the CPU has functions of
    its own for is torch's work.
    """

    def __init__(
        self, graph: fx.Graph, attributes: Callable[[str], torch.Tensor],
        device: torch.device = _HOST, gpu: bool = False,
    ):  # fmt: skip
        self.device, self.gpu = device, gpu
        self.program = Program([], [])
        self.interface = Interface()
        self._attributes = attributes
        self._values: dict[fx.Node, Any] = {}
        self._root, self._mutated = mutated_roots(graph)
        self.line = ""
        self._calls: tuple[str, ...] = ()
        self._fresh: set[Buffer] = set()
        for node in graph.nodes:
            self.line = node.meta.get("user_line", "")
            name = node.meta.get("np_call")
            self._calls = (name,) if name else ()
            self._node(node)

    # Building statements

    def buffer(
        self, dtype: str, shape: Sequence[int], kind: str = "temporary",
        strides: Sequence[int] | None = None, position: int = -1, hint: str = "t",
    ) -> Buffer:  # fmt: skip
        return self.program.buffer(hint, dtype, shape, kind, strides, position)

    def add(
        self, axes: Sequence[Expr], target: Buffer, index: Sequence[Expr], value: Expr, **more: Any
    ) -> None:
        """One statement. Axes of extent 1 are 0; a statement over no elements is none."""
        if any(a.extent == 0 for a in axes if a not in more.get("over", ())):
            return
        ones = {a: E.integer(0) for a in axes if a.extent == 1}
        given = more.pop("over", ())
        over = tuple(a for a in given if a not in ones)
        if given and not over:  # a reduction of single elements
            if more.pop("rank", None) is not None:
                value = E.integer(0)
            elif more["op"] == "sum" and not more.get("scan"):  # a sum is never a negative zero
                value = E.scalar("add", value, number(0, value.dtype))
            more.update(op=None, scan=False)
        kept = tuple(a for a in axes if a not in ones)
        s = Statement(
            kept, target, tuple(index), value, over=over, line=self.line, calls=self._calls, **more
        )
        s.map(E.axes_replaced(ones))
        self.program.steps.append(s)

    def materialize(self, array: Array, like: torch.Tensor | None = None) -> Array:
        """The array in memory of its own. like: a tensor with its shape, for the strides."""
        strides = _dense_strides(like) if like is not None else None
        if array.complex and like is None:
            # Parts apart: nobody needs them side by side.
            return Array(array.axes, tuple(self._store(array.axes, p, None) for p in array.parts))
        if not array.complex:
            return Array(array.axes, (self._store(array.axes, array.parts[0], strides),))
        shape = (*array.shape, 2)
        wide = None if strides is None else (*(2 * s for s in strides), 1)
        b = self.buffer(array.dtype, shape, strides=wide)
        for k, part in enumerate(array.parts):
            self.add(array.axes, b, (*array.axes, E.integer(k)), part)
        return arrays.of_buffer(b, True)

    def _store(self, axes: tuple[Expr, ...], value: Expr, strides: tuple | None) -> Expr:
        b = self.buffer(value.dtype, [a.extent for a in axes], strides=strides)
        self.add(axes, b, axes, value)
        return E.load(b, axes)

    def fresh(self, dtype: str, shape: Sequence[int]) -> Buffer:
        """Memory that holds a rule's result, and needs no copy of it."""
        b = self.buffer(dtype, shape)
        self._fresh.add(b)
        return b

    def empty(self, like: torch.Tensor) -> Array:
        """New memory for a rule's result of that shape and dtype, to be written by it."""
        dtype, is_complex = of_torch(like.dtype)
        strides = _dense_strides(like)
        if is_complex:
            shape = (*like.shape, 2)
            b = self.buffer(dtype, shape, strides=(*(2 * s for s in strides), 1))
        else:
            b = self.buffer(dtype, like.shape, strides=strides)
        self._fresh.add(b)
        return arrays.of_buffer(b, is_complex)

    def copy(self, array: Array, like: torch.Tensor) -> Array:
        """A copy for a rule to write to."""
        whole = self.empty(like)
        self.write(whole, array)
        return whole

    def apart(self, array: Array, target: Array) -> Array:
        """The array, copied if it reads memory that `target` lies in."""
        own = {x.value for p in target.parts for x in E.loads(p)}
        if any(x.value in own for p in array.parts for x in E.loads(p)):
            return self.materialize(array)
        return array

    def root(self, node: fx.Node) -> fx.Node:
        """The node that made the memory which a node's array lies in."""
        return self._root[node]

    def truth(self, array: Array) -> Array:
        """Whether each element differs from 0."""
        return elementwise.truth(array)

    def write(self, target: Array, source: Array) -> None:
        """target[...] = source, broadcast and cast."""
        source = source.broadcast(target.shape) if source.shape != target.shape else source
        if target.complex and not source.complex:
            source = Array(source.axes, (source.parts[0], number(0, target.dtype)))
        if not elements(target.shape):
            return
        places = [arrays.place_of(p) for p in target.parts]
        if any(p is None for p in places):
            raise Unsupported("a write to an array that is not in memory")
        values = [E.cast(p, target.dtype) for p in source.at(target.axes)]
        values = [
            E.bitcast(v, place[0].dtype) for v, place in zip(values, places, strict=False) if place
        ]
        touched = {p[0] for p in places if p is not None}
        own = all(
            x.args == place[1]
            for value, place in zip(values, places, strict=True)
            for x in E.loads(value)
            if place is not None and x.value in touched
        )
        if not own:
            held = self.materialize(Array(target.axes, tuple(values)))
            values = list(held.parts)
        for place, value in zip(places, values, strict=False):
            assert place is not None
            self.add(target.axes, *place, value)

    # Nodes

    def _node(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self._values[node] = self._placeholder(node)
        elif node.op == "get_attr":
            self._values[node] = self._constant(self._attributes(str(node.target)))
        elif node.op == "output":
            self._finish(node)
        elif node.op != "call_function":
            raise Unsupported(f"a graph node of kind {node.op}")
        elif node.target is operator.getitem:
            self._values[node] = self._values[args_of(node)[0]][args_of(node)[1]]
        elif node.target is _WITH_EFFECTS:
            self._values[node] = self._with_effects(node)
        else:
            self._values[node] = self._operator(node)

    def _placeholder(self, node: fx.Node) -> Any:
        position = len(self.interface.inputs)
        value = node.meta.get("val")
        if node.users and all(
            u.target is _WITH_EFFECTS and args_of(u)[0] is node for u in node.users
        ):
            self.interface.inputs.append(None)  # it says what comes first, and holds no data
            return None
        if not isinstance(value, torch.Tensor):
            raise Unsupported("an input that is not a tensor")
        if value.device.type not in (self.device.type, "meta"):
            raise Unsupported(f"a tensor on {value.device}")
        array, buffer = self._in_memory(value, "input", position, "x")
        self.interface.inputs.append(buffer)
        if node.meta.get("parameters") and buffer.dtype == "i64":
            self.program.integers = buffer
        return array

    def _constant(self, t: torch.Tensor) -> Array:
        if t.numel() == 1 and t.dtype in _LITERAL:
            return self.scalar_array(t.item(), tuple(t.shape), t.dtype)
        self.interface.constants.append(t.to(self.device))
        return self._in_memory(t, "constant", len(self.interface.constants) - 1, "c")[0]

    def _in_memory(
        self, t: torch.Tensor, kind: str, position: int, hint: str
    ) -> tuple[Array, Buffer]:
        dtype, is_complex = of_torch(t.dtype)
        shape, strides = _static(t)
        if is_complex:
            shape, strides = (*shape, 2), (*(2 * s for s in strides), 1)
        b = self.buffer(dtype, shape, kind, strides, position, hint)
        return arrays.of_buffer(b, is_complex), b

    def scalar_array(self, value: Any, shape: tuple[int, ...], dtype: torch.dtype) -> Array:
        name, is_complex = of_torch(dtype)
        if isinstance(value, (Size, Real)):
            size = E.integer(value.size if isinstance(value, Real) else value)
            parts = (E.cast(size, name), number(0, name))
            return arrays.constant(shape, *parts[: 1 + is_complex])
        if is_complex:
            z = complex(value)
            return arrays.constant(shape, number(z.real, name), number(z.imag, name))
        return arrays.constant(shape, number(value, name))

    def array(self, x: Any) -> Array:
        """The array of an argument."""
        found = self._values[x] if isinstance(x, fx.Node) else x
        if not isinstance(found, Array):
            raise Unsupported(f"an argument {x}")
        return found

    def operand(self, x: Any, dtype: torch.dtype | None) -> Array:
        """An argument that is a tensor or a number, cast to `dtype` (None: as it is)."""
        if isinstance(x, fx.Node):
            array = self.array(x)
            return array if dtype is None else self.cast(array, dtype)
        if dtype is None and isinstance(x, (Size, Real)):
            dtype = torch.int64 if isinstance(x, Size) else torch.get_default_dtype()
        if dtype is None:
            dtype = torch.result_type(torch.empty((), dtype=torch.bool), x)
        return self.scalar_array(x, (), dtype)

    def cast(self, array: Array, dtype: torch.dtype) -> Array:
        name, is_complex = of_torch(dtype)
        parts = tuple(E.cast(p, name) for p in array.parts)
        if is_complex and len(parts) == 1:
            parts = (parts[0], number(0, name))
        return Array(array.axes, parts if is_complex else parts[:1])

    def _operator(self, node: fx.Node) -> Any:
        name, in_place = packet(node)
        if name in views.RULES and not in_place:
            made = views.RULES[name](self, node)
            if made is not None:
                return made
        if name + "_" in _WRITES_METADATA and in_place:
            made = views.RULES[name](self, node)
            self._values[args_of(node)[0]] = made
            return made
        for rules in (elementwise.RULES, reductions.RULES, indexing.RULES, products.RULES):
            rule = rules.get(name)
            if rule is not None:
                mark = len(self.program.steps)
                self._fresh.clear()
                try:
                    result = rule(self, node)
                except E.NoOperation:
                    result = None
                if result is not None:
                    return self._settle(node, result, in_place)
                del self.program.steps[mark:]
        return self.call(node, library.reason(name))

    def _settle(self, node: fx.Node, result: Any, in_place: bool) -> Any:
        """A rule's result where it belongs: in the written argument, or in memory of its own."""
        if in_place:
            target = self.array(args_of(node)[0])
            if result is not target:
                self.write(target, result)
            return target
        mutated = node in self._mutated
        if isinstance(result, tuple):
            values = node.meta["val"]
            return tuple(self._kept(r, v, mutated) for r, v in zip(result, values, strict=True))
        return self._kept(result, node.meta["val"], mutated)

    def _kept(self, result: Array, value: torch.Tensor, mutated: bool) -> Array:
        """A result in memory of its own, unless nothing that changes is in it."""
        if value.numel() == 0:
            return self.scalar_array(0, tuple(value.shape), value.dtype)
        if not mutated and not any(E.loads(p) for p in result.parts):
            return result
        loaded = {x.value for p in result.parts for x in E.loads(p)}
        own = loaded <= self._fresh and all(arrays.element_of(p) for p in result.parts)
        if own and (not (mutated and result.complex) or arrays.strided(result) is not None):
            return result  # a complex one that is written to has its parts side by side
        apart = result.complex and not mutated
        return self.materialize(result, None if apart else value)

    def _with_effects(self, node: fx.Node) -> tuple:
        """An operator that checks or prints, as AOTAutograd ties it to its place in the order."""
        token, target, *args = args_of(node)
        step = _Operation(target, tuple(args), node.kwargs, tuple(node.meta["val"][1:]))
        return (self._values[token], *self._call(step, "it is called for its effect"))

    def call(self, node: fx.Node, why: str) -> Any:
        """The operator as a call of torch on arrays in memory."""
        if views.unknown_alias(node.target) and self._root[node] in self._mutated:
            raise Unsupported(f"{node.target}: a view that no index map describes")
        into = None if self.gpu else library.faster(node)
        if into is not None:
            return self._stored(node, into, why)
        args, kwargs = node.args, node.kwargs
        if node.target in _AT_OFFSET:
            args, kwargs = self._at_own_offset(node)
        step = _Operation(node.target, args, kwargs, node.meta.get("val"))
        return self._call(step, why)

    def _at_own_offset(self, node: fx.Node) -> tuple[tuple, dict]:
        """The arguments of such an operator without the offset in the storage, which is another one
        where the program has its memory: torch takes that of the tensor."""
        source, offset = source_of(node), argument_of(node, "storage_offset")
        if self._root[source] is not source or offset not in (
            None, source.meta["val"].storage_offset()
        ):  # fmt: skip
            raise Unsupported(f"{node.target}: places beside those of its argument")
        kwargs = {k: v for k, v in node.kwargs.items() if k != "storage_offset"}
        return node.args[: _AT_OFFSET[node.target]], kwargs

    def _stored(self, node: fx.Node, into: library.Into, why: str) -> Any:
        """A call that stores its only result that is read in memory of the program."""
        source = source_of(node)
        given = self.tensor(self.array(source), source.meta["val"])
        values: Any = node.meta["val"]
        like = values if into.result is None else values[into.result]
        made = self.empty(like)
        out = self.tensor(made, like)
        buffers = [given.buffer], [out.buffer]
        name, args = str(node.target), (out, given)
        call = Store(name, into.function, args, {}, *buffers, [], why, self.line)
        self.program.steps.append(call)
        if into.result is None:
            return made
        return tuple(made if k == into.result else None for k in range(len(values)))

    def _call(self, step: _Operation, why: str) -> Any:
        schema = step.target._schema
        written = [
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
        ]
        reads: list[Buffer] = []
        changed: list[Buffer] = []
        moved: list[tuple[Array, Array]] = []

        def argument(x: Any, name: str) -> Any:
            if isinstance(x, (tuple, list)):
                return type(x)(argument(v, name) for v in x)
            if not isinstance(x, fx.Node):
                return x
            value = self._values[x]
            if not isinstance(value, Array):
                return value
            if name in written and arrays.strided(value) is None:
                held = self.materialize(value, x.meta["val"])
                moved.append((value, held))
                value = held
            t = self.tensor(value, x.meta["val"])
            reads.append(t.buffer)
            if name in written:
                changed.append(t.buffer)
            return t

        names = [a.name for a in schema.arguments]
        args = tuple(argument(a, n) for a, n in zip(step.args, names, strict=False))
        kwargs = {k: argument(v, k) for k, v in step.kwargs.items()}
        if "device" in kwargs:
            kwargs["device"] = self.device
        made: list[Buffer] = []
        strides: list[tuple[int, ...]] = []

        def result(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return tuple(result(v) for v in value)
            if not isinstance(value, torch.Tensor):
                return value
            array, buffer = self._in_memory(value, "temporary", -1, "r")
            made.append(buffer)
            strides.append(tuple(value.stride()))
            return array

        outcome: Any = self._values[step.args[0]] if changed else result(step.value)
        run = _copying(step.target) if views.unknown_alias(step.target) else step.target
        name = str(step.target)
        self.program.steps.append(
            Call(name, run, args, kwargs, reads, made or changed, strides, why, self.line)
        )
        for array, held in moved:
            self.write(array, held)
        return outcome

    def tensor(self, array: Array, like: torch.Tensor) -> Tensor:
        """The array as a tensor: where it lies, or copied to memory of its own."""
        place = arrays.strided(array)
        if place is None:
            place = arrays.strided(self.materialize(array, like))
            assert place is not None
        buffer, offset, strides = place
        if array.complex:
            offset, strides = offset // 2, tuple(s // 2 for s in strides)
        return Tensor(buffer, offset, array.shape, strides, like.dtype)

    def _finish(self, node: fx.Node) -> None:
        taken: dict[Any, Any] = {}
        results = args_of(node)[0]
        for x in results if isinstance(results, (tuple, list)) else (results,):
            if not isinstance(x, fx.Node):
                self.interface.outputs.append(x)
                continue
            if x not in taken:
                taken[x] = self._output(x)
            self.interface.outputs.append(taken[x])

    def _output(self, node: fx.Node) -> Any:
        value = self._values[node]
        if not isinstance(value, Array):
            return value
        like = node.meta["val"]
        shape, strides = _static(like)
        place = arrays.strided(value)
        if place is not None:
            t = self.tensor(value, like)
            fits = all(n == 1 or s == m for n, s, m in zip(shape, strides, t.strides, strict=True))
            if t.buffer.kind == "input" or (t.buffer.kind == "output" and fits):
                return t
            whole = t.buffer.size == like.numel() * (2 if value.complex else 1)
            called = any(isinstance(s, Call) and t.buffer in s.writes for s in self.program.steps)
            if t.buffer.kind == "temporary" and fits and whole and not called:
                t.buffer.kind = "output"
                t.buffer.position = -1
                return t
            if called and fits:
                t.buffer.kind = "output"
                return t
        if like.numel() and _dense_strides(like) != strides:
            t = self._spread(value, like)
        else:
            t = self.tensor(self.materialize(value, like), like)
        t.buffer.kind = "output"
        return t

    def _spread(self, array: Array, like: torch.Tensor) -> Tensor:
        """The array in new memory with gaps or repeats, at the strides of `like`: whoever asked for
        the result may have planned for them."""
        shape, strides = _static(like)
        span = 1 + sum(s * (n - 1) for s, n in zip(strides, shape, strict=True))
        once = [0 if s == 0 else n for s, n in zip(strides, shape, strict=True)]
        axes = new_axes([max(n, 1) for n in once])
        place: Expr = E.integer(0)
        for a, s in zip(axes, strides, strict=True):
            place = E.plus(place, E.times(a, s))
        index = [a if n else E.integer(0) for a, n in zip(axes, once, strict=True)]
        width = len(array.parts)
        b = self.buffer(array.dtype, (span * width,))
        for k, part in enumerate(array.at(index)):
            self.add(axes, b, (E.plus(E.times(place, width), k),), part)
        return Tensor(b, 0, shape, strides, like.dtype)


_LITERAL = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32,
    torch.float64,
)  # fmt: skip


def _copying(operator: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """An operator that gives a view of its argument, with memory of its own for the result."""
    return lambda *args, **kwargs: operator(*args, **kwargs).clone()


def _static(t: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape, strides = tuple(t.shape), tuple(t.stride())
    if not all(type(n) in (int, Size) for n in (*shape, *strides)):
        raise Unsupported("sizes that are symbols")
    return shape, strides


def _dense_strides(t: torch.Tensor) -> tuple[int, ...]:
    """A tensor's strides if its elements fill memory once, C order otherwise."""
    shape, strides = _static(t)
    step = 1
    for s, n in sorted(zip(strides, shape, strict=True)):
        if n == 1:
            continue
        if s != step:
            return contiguous_strides(shape)
        step *= n
    return strides
