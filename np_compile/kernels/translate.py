"""From a tensor graph to the loop IR: each operator becomes statements of its own.

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

from . import arrays, indexing, library, products, reductions, views
from . import expr as E
from .arrays import Array, of_torch
from .aten import ROWS, frexp, number
from .complex import COMPLEX
from .expr import Expr
from .ir import Buffer, Call, Program, Statement

_WITH_EFFECTS = torch.ops.higher_order.with_effects
_WRITES_METADATA = ("squeeze_", "unsqueeze_", "t_", "transpose_")


class Unsupported(Exception):
    """A graph that has no translation: the operator, and why."""


class Tensor:
    """An array in memory as an argument of a torch operator: a strided view of a buffer."""

    __slots__ = ("buffer", "dtype", "offset", "shape", "strides")

    def __init__(
        self, buffer: Buffer, offset: int, shape: tuple, strides: tuple, dtype: torch.dtype
    ):
        self.buffer, self.offset = buffer, offset
        self.shape, self.strides, self.dtype = shape, strides, dtype


@dataclass(frozen=True)
class _Operation:
    """A torch operator, its arguments, and tensors like its results."""

    target: Any
    args: tuple
    kwargs: dict[str, Any]
    value: Any


class Translation:
    """One graph's translation.

    program: the statements. outputs: for each result of the graph, an `Tensor`, or what is no
    tensor. constants: tensors that the graph holds.
    """

    def __init__(self, graph: fx.Graph, attributes: Callable[[str], torch.Tensor]):
        self.program = Program([], [])
        self.constants: list[torch.Tensor] = []
        self.outputs: list[Any] = []
        self.inputs: list[Buffer | None] = []
        self._attributes = attributes
        self._values: dict[fx.Node, Any] = {}
        self._root, self._mutated = _mutated_roots(graph)
        self._line = ""
        self._calls: tuple[str, ...] = ()
        self._fresh: set[Buffer] = set()
        for node in graph.nodes:
            self._line = node.meta.get("user_line", "")
            name = node.meta.get("np_call")
            self._calls = (name,) if name else ()
            self._node(node)

    # Building statements

    def buffer(
        self, dtype: str, shape: Sequence[int], kind: str = "temporary",
        strides: Sequence[int] | None = None, position: int = -1, hint: str = "t",
    ) -> Buffer:  # fmt: skip
        shape = tuple(shape)
        where = arrays.contiguous_strides(shape) if strides is None else tuple(strides)
        b = Buffer(f"{hint}{len(self.program.buffers)}", dtype, shape, where, kind, position)
        self.program.buffers.append(b)
        return b

    def add(
        self, axes: Sequence[Expr], target: Buffer, index: Sequence[Expr], value: Expr, **more: Any
    ) -> None:
        """One statement. Axes of extent 1 are 0; a statement over no elements is none."""
        if any(a.extent == 0 for a in axes if a not in more.get("over", ())):
            return
        ones = {a: E.integer(0) for a in axes if a.extent == 1}
        memo: dict[Expr, Expr] = {}
        given = more.pop("over", ())
        over = tuple(a for a in given if a not in ones)
        if given and not over:  # a reduction of single elements
            value = E.integer(0) if more.pop("rank", None) is not None else value
            more.update(op=None, scan=False)
        if more.get("rank") is not None:
            more["rank"] = E.substitute(more["rank"], ones, memo)
        self.program.steps.append(
            Statement(
                tuple(a for a in axes if a not in ones),
                target,
                tuple(E.substitute(i, ones, memo) for i in index),
                E.substitute(value, ones, memo),
                over=over,
                line=self._line,
                calls=self._calls,
                **more,
            )
        )

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
        return _truth(array)

    def write(self, target: Array, source: Array) -> None:
        """target[...] = source, broadcast and cast."""
        source = source.broadcast(target.shape) if source.shape != target.shape else source
        if target.complex and not source.complex:
            source = Array(source.axes, (source.parts[0], number(0, target.dtype)))
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
            self._values[node] = self._values[node.args[0]][node.args[1]]
        elif node.target is _WITH_EFFECTS:
            self._values[node] = self._with_effects(node)
        else:
            self._values[node] = self._operator(node)

    def _placeholder(self, node: fx.Node) -> Any:
        position = len(self.inputs)
        value = node.meta.get("val")
        if node.users and all(u.target is _WITH_EFFECTS and u.args[0] is node for u in node.users):
            self.inputs.append(None)  # it says what comes first, and holds no data
            return None
        if not isinstance(value, torch.Tensor):
            raise Unsupported("an input that is not a tensor")
        if value.device.type not in ("cpu", "meta"):
            raise Unsupported(f"a tensor on {value.device}")
        array, buffer = self._in_memory(value, "input", position, "x")
        self.inputs.append(buffer)
        return array

    def _constant(self, t: torch.Tensor) -> Array:
        if t.numel() == 1 and t.dtype in _LITERAL:
            return self.scalar_array(t.item(), tuple(t.shape), t.dtype)
        self.constants.append(t)
        return self._in_memory(t, "constant", len(self.constants) - 1, "c")[0]

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
        name, in_place = _packet(node)
        if name in views.RULES and not in_place:
            made = views.RULES[name](self, node)
            if made is not None:
                return made
        if name + "_" in _WRITES_METADATA and in_place:
            made = views.RULES[name](self, node)
            self._values[node.args[0]] = made
            return made
        for rules in (_RULES, reductions.RULES, indexing.RULES, products.RULES):
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
        return self.call(node, "no rule of the loop IR covers it")

    def _settle(self, node: fx.Node, result: Any, in_place: bool) -> Any:
        """A rule's result where it belongs: in the written argument, or in memory of its own."""
        if in_place:
            target = self.array(node.args[0])
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
        if own and not (mutated and result.complex):
            return result
        apart = result.complex and not mutated
        return self.materialize(result, None if apart else value)

    def _with_effects(self, node: fx.Node) -> tuple:
        """An operator that checks or prints, as AOTAutograd ties it to its place in the order."""
        token, target, *args = node.args
        step = _Operation(target, tuple(args), node.kwargs, tuple(node.meta["val"][1:]))
        return (self._values[token], *self._call(step, "it is called for its effect"))  # type: ignore[index]

    def call(self, node: fx.Node, why: str) -> Any:
        """The operator as a call of torch on arrays in memory."""
        if views.unknown_alias(node.target) and self._root[node] in self._mutated:
            raise Unsupported(f"{node.target}: a view that no index map describes")
        step = _Operation(node.target, node.args, node.kwargs, node.meta.get("val"))
        return self._call(step, why, library.faster(node))

    def _call(self, step: _Operation, why: str, faster: Callable | None = None) -> Any:
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
            kwargs["device"] = torch.device("cpu")
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
        run = faster or step.target
        if views.unknown_alias(step.target):
            run = _copying(step.target)
        name = str(step.target)
        self.program.steps.append(
            Call(name, run, args, kwargs, reads, made or changed, strides, why, self._line)
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
        results = node.args[0]
        for x in results if isinstance(results, (tuple, list)) else (results,):
            if not isinstance(x, fx.Node):
                self.outputs.append(x)
                continue
            if x not in taken:
                taken[x] = self._output(x)
            self.outputs.append(taken[x])

    def _output(self, node: fx.Node) -> Any:
        value = self._values[node]
        if not isinstance(value, Array):
            return value
        like = node.meta["val"]
        shape, strides = _static(like)
        place = arrays.strided(value)
        if place is not None:
            t = self.tensor(value, like)
            if t.buffer.kind in ("input", "output"):
                return t
            fits = all(n == 1 or s == m for n, s, m in zip(shape, strides, t.strides, strict=True))
            whole = t.buffer.size == like.numel() * (2 if value.complex else 1)
            called = any(isinstance(s, Call) and t.buffer in s.writes for s in self.program.steps)
            if t.buffer.kind == "temporary" and fits and whole and not called:
                t.buffer.kind = "output"
                t.buffer.position = -1
                return t
            if called and fits:
                t.buffer.kind = "output"
                return t
        held = self.materialize(value, like)
        t = self.tensor(held, like)
        t.buffer.kind = "output"
        return t


_LITERAL = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32,
    torch.float64,
)  # fmt: skip


def _copying(operator: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """An operator that gives a view of its argument, with memory of its own for the result."""
    return lambda *args, **kwargs: operator(*args, **kwargs).clone()


def _static(t: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape, strides = tuple(t.shape), tuple(t.stride())
    if not all(type(n) is int for n in (*shape, *strides)):
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
            return arrays.contiguous_strides(shape)
        step *= n
    return strides


def _packet(node: fx.Node) -> tuple[str, bool]:
    """An operator's name without namespace and overload, and whether it writes its argument."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if schema is None:
        raise Unsupported(f"{node.target} is no ATen operator")
    space, _, name = schema.name.partition("::")
    if space != "aten":
        return f"{space}::{name}", False
    first = schema.arguments[0] if schema.arguments else None
    writes = first is not None and first.alias_info is not None and first.alias_info.is_write
    return (name[:-1] if writes and name.endswith("_") else name), writes


def _mutated_roots(graph: fx.Graph) -> tuple[dict[fx.Node, fx.Node], set[fx.Node]]:
    """For each node the one whose memory it lies in, and those of them that are written to."""
    root: dict[fx.Node, fx.Node] = {}
    mutated: set[fx.Node] = set()
    for node in graph.nodes:
        root[node] = node
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            if node.op == "call_function" and node.args and isinstance(node.args[0], fx.Node):
                root[node] = root[node.args[0]]
            continue
        arguments = node.target._schema.arguments
        for spec, x in zip(arguments, node.args, strict=False):
            if spec.alias_info is None or not isinstance(x, fx.Node):
                continue
            root[node] = root[x]
            if spec.alias_info.is_write:
                mutated.add(root[x])
        for spec in arguments:
            x = node.kwargs.get(spec.name)
            if spec.alias_info is not None and spec.alias_info.is_write and x is not None:
                mutated.add(root[x])
    return root, mutated


# Rules: (translation, node) -> Array, a tuple of them, or None where the rule does not apply.


def _argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def _common(node: fx.Node, args: Sequence[Any]) -> torch.dtype:
    """The dtype in which torch compares operands."""
    values = [a.meta["val"] if isinstance(a, fx.Node) else a for a in args]
    return torch.result_type(*values)


def _pointwise(t: Translation, node: fx.Node) -> Array | None:
    name, _ = _packet(node)
    value = node.meta["val"]
    row = ROWS.get(name)
    schema = node.target._schema  # type: ignore[union-attr]
    given = dict(zip((a.name for a in schema.arguments), node.args, strict=False))
    given.update(node.kwargs)
    kinds = {a.name: str(a.type) for a in schema.arguments}
    operands = []
    options = {}
    for key, x in given.items():
        is_data = "Tensor" in kinds[key] or "number" in kinds[key] or "Scalar" in kinds[key]
        if is_data and key != "alpha":
            operands.append((key, x))
        elif x is not None:
            options[key] = x
    rule = row.rule if row is not None else "result"
    compute = value.dtype
    tensors = [x for _, x in operands if x is not None]
    if rule == "common":
        compute = _common(node, tensors)
    complex_case = value.dtype.is_complex or any(
        t.array(x).complex for x in tensors if isinstance(x, fx.Node)
    )
    if complex_case and name not in _LOGICAL:
        return _complex(t, name, tensors, options, value, compute, rule)
    if row is None:
        return None
    arrays_: list[Array | None] = []
    for key, x in operands:
        if x is None:
            arrays_.append(None)
        elif rule == "each" or (name in ("where", "masked_fill") and key in ("condition", "mask")):
            arrays_.append(t.operand(x, None))
        else:
            arrays_.append(t.operand(x, compute))
    if name in _LOGICAL:
        arrays_ = [None if a is None else _truth(a) for a in arrays_]
    if name == "where":
        arrays_[0] = _truth(arrays_[0])  # type: ignore[arg-type]
    axes = arrays.new_axes(value.shape)
    parts = [None if a is None else a.broadcast(value.shape).at(axes)[0] for a in arrays_]
    made = row.build(*parts, **options)
    return Array(axes, (E.cast(made, of_torch(value.dtype)[0]),))


# Operators on truth values: any operand is compared with zero first.
_LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")


def _truth(a: Array) -> Array:
    def nonzero(x: Expr) -> Expr:
        return x if x.dtype == "bool" else E.scalar("ne", x, number(0, x.dtype))

    if a.complex:
        either = E.scalar("or", nonzero(a.parts[0]), nonzero(a.parts[1]))
        return Array(a.axes, (either,))
    return a.map(nonzero)


def _complex(
    t: Translation, name: str, operands: list[Any], options: dict, value: torch.Tensor,
    compute: torch.dtype, rule: str,
) -> Array | None:  # fmt: skip
    build = COMPLEX.get(name)
    if build is None:
        return None
    if rule == "result" and not value.is_complex():
        compute = operands[0].meta["val"].dtype
    axes = arrays.new_axes(value.shape)
    pairs = []
    for k, x in enumerate(operands):
        plain = rule == "each" or (name, k) in (("where", 0), ("masked_fill", 1))
        a = t.operand(x, None if plain else compute)
        pairs.append(a.broadcast(value.shape).at(axes))
    parts = build(*pairs, **options)
    dtype = of_torch(value.dtype)[0]
    return Array(axes, tuple(E.cast(p, dtype) for p in parts))


def _full(t: Translation, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    name, in_place = _packet(node)
    if in_place:
        fill = 0 if name == "zero" else node.args[1]
        if isinstance(fill, fx.Node):
            return t.cast(t.array(fill), value.dtype).broadcast(value.shape)
    elif name in ("full", "new_full", "full_like"):
        fill = _argument(node, 2 if name == "new_full" else 1, "fill_value")
    elif name == "scalar_tensor":
        fill = node.args[0]
    elif "empty" in name and node in t._mutated:
        return t.empty(value)  # whatever lies there, as in NumPy
    else:
        fill = 1 if "ones" in name else 0
    if isinstance(fill, fx.Node):
        return None
    return t.scalar_array(fill, tuple(value.shape), value.dtype)


def _arange(t: Translation, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    overload = node.target._overloadname  # type: ignore[union-attr]
    start, step = 0, 1
    if overload == "start":
        start = node.args[0]
    elif overload == "start_step":
        start, step = node.args[0], _argument(node, 2, "step", 1)
    axes = arrays.new_axes(value.shape)
    if isinstance(start, int) and isinstance(step, int):
        count = E.plus(E.times(axes[0], step), start)
    elif isinstance(start, fx.Node) or isinstance(step, fx.Node):
        return None
    else:
        steps = E.scalar("mul", E.cast(axes[0], "f64"), number(step, "f64"))
        count = E.scalar("add", number(start, "f64"), steps)
    return Array(axes, (E.cast(count, of_torch(value.dtype)[0]),))


def _copied(t: Translation, node: fx.Node) -> Array | None:
    """clone, _to_copy and the like: the same elements as new memory."""
    value = node.meta["val"]
    source = t.array(node.args[0])
    if value.device.type not in ("cpu", "meta"):
        return None
    return t.cast(source, value.dtype)


def _copy(t: Translation, node: fx.Node) -> Array | None:
    _, in_place = _packet(node)
    source = t.array(node.args[1])
    if in_place:
        target = t.array(node.args[0])
        return t.cast(source, node.args[0].meta["val"].dtype).broadcast(target.shape)  # type: ignore[union-attr]
    return t.cast(source, node.meta["val"].dtype).broadcast(node.meta["val"].shape)


def _make_complex(t: Translation, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    axes = arrays.new_axes(value.shape)
    dtype, _ = of_torch(value.dtype)
    parts = tuple(
        E.cast(t.array(x).broadcast(value.shape).at(axes)[0], dtype) for x in node.args[:2]
    )
    return Array(axes, parts)


def _frexp(t: Translation, node: fx.Node) -> tuple[Array, Array]:
    source = t.array(node.args[0])
    mantissa, exponent = frexp(source.parts[0])
    return Array(source.axes, (mantissa,)), Array(source.axes, (exponent,))


_COPIES = ("clone", "_to_copy", "lift_fresh_copy", "contiguous", "resolve_conj", "resolve_neg")
_FILLS = (
    "full", "zeros", "ones", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
    "new_full", "scalar_tensor", "fill", "zero", "empty", "empty_like", "new_empty",
    "empty_strided", "new_empty_strided",
)  # fmt: skip

_RULES: dict[str, Callable[[Translation, fx.Node], Any]] = {
    **dict.fromkeys(ROWS, _pointwise),
    **dict.fromkeys(COMPLEX, _pointwise),
    **dict.fromkeys(_COPIES, _copied),
    **dict.fromkeys(_FILLS, _full),
    "copy": _copy,
    **views.COPIES,
    "arange": _arange,
    "complex": _make_complex,
    "frexp": _frexp,
}
