"""Smaller: a program with which a back end is wrong, as a script of a few operators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from np_compile.log import graph_text

from .accuracy import _is_mutable, accuracy, compare, copies
from .target import compiled_of

_TRIES = 200  # smaller programs that are compiled, at most
_WRITTEN = 64  # elements of a tensor that is written into the script; larger ones go to a file


@dataclass
class Minified:
    """A small program with which a back end is wrong. what: it does, in words. operators: how many
    it has. script: where it is."""

    what: str
    operators: int
    script: Path
    text: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.script}: {self.operators} operators: {self.what}"


def minify(
    fn: Callable, backend: Any = None, folder: str | os.PathLike[str] = "minified"
) -> Callable[..., Minified | None]:
    """A function that calls `fn` (compiled or not), and writes the first program with which the
    back end fails, or differs from torch's operators, as a script with as few operators as can be.
    None where there is none: see `accuracy`.

    The script compares again when it is run, and ends with status 1 where it finds the fault.
    """
    compiled = compiled_of(fn)

    def call(*args: Any, **kwargs: Any) -> Minified | None:
        chosen = compiled._options.backend if backend is None else backend
        report = accuracy(compiled, chosen)(*args, **kwargs)
        if not report.faults:
            return None
        fault = report.faults[0]
        graph, inputs = smaller(fault.graph, fault.inputs, chosen)
        what = compare(graph, inputs, chosen) or fault.what
        return _written(graph, inputs, chosen, what, Path(folder), report.name)

    return call


def smaller(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], backend: Any
) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """A part of a graph, and its inputs, with which a back end is wrong as it is with the whole."""
    values = _Values(graph)
    values.run(*copies(inputs))
    pieces = _Pieces(graph, values.found)
    tries = 0

    def fails(outputs: Sequence[fx.Node], cut: Iterable[fx.Node], without: set[fx.Node]) -> bool:
        nonlocal tries
        tries += 1
        if tries > _TRIES:
            return False
        return bool(compare(*pieces.of(outputs, set(cut), without), backend))

    outputs = list(dict.fromkeys(pieces.results))
    cut: set[fx.Node] = set()
    without: set[fx.Node] = set()
    for one in outputs:
        if fails([one], cut, without):
            outputs = [one]
            break
    for node in [n for n in graph.graph.nodes if _is_mutable(n)]:
        if fails(outputs, cut, without | {node}):
            without.add(node)
    if len(outputs) == 1:  # the earliest value that is wrong
        chain = pieces.before(outputs[0])
        low, high = 0, len(chain) - 1
        while low < high:
            middle = (low + high) // 2
            if fails([chain[middle]], cut, without):
                high = middle
            else:
                low = middle + 1
        if fails([chain[high]], cut, without):
            outputs = [chain[high]]
    for one in outputs:  # from what it is made of: first of all at once, then one by one
        near = [n for n in one.all_input_nodes if n in values.found]
        if fails(outputs, cut | set(near), without):
            cut |= set(near)
    for node in reversed(pieces.needed(outputs, cut)):
        if node not in outputs and fails(outputs, cut | {node}, without):
            cut.add(node)
    return pieces.of(outputs, cut, without)


class _Values(fx.Interpreter):
    """Runs a graph, and keeps of each tensor what it was when it was made."""

    def __init__(self, graph: fx.GraphModule):
        super().__init__(graph)
        self.found: dict[fx.Node, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and n.op != "output":
            grad = value.requires_grad
            (kept,) = copies([value.detach()])
            self.found[n] = kept.requires_grad_(grad)
        return value


class _Pieces:
    """Parts of a graph: some of its values as results, others as inputs.

    results: of the graph. values: what each node gave.
    """

    def __init__(self, graph: fx.GraphModule, values: dict[fx.Node, torch.Tensor]):
        self._graph = graph
        self._values = values
        (output,) = (n for n in graph.graph.nodes if n.op == "output")
        self.results: list[fx.Node] = list(output.all_input_nodes)

    def before(self, node: fx.Node) -> list[fx.Node]:
        """The values that one is made of, and itself, in order."""
        return [n for n in self.needed([node], set()) if not _is_mutable(n)]

    def needed(self, outputs: Sequence[fx.Node], cut: set[fx.Node]) -> list[fx.Node]:
        """The operators that make values of what is cut, in order."""
        found: set[fx.Node] = set()
        waiting = [n for n in outputs if n not in cut]
        while waiting:
            node = waiting.pop()
            if node not in found and node.op == "call_function":
                found.add(node)
                waiting += [n for n in node.all_input_nodes if n not in cut]
        return [n for n in self._graph.graph.nodes if n in found and n in self._values]

    def of(
        self, outputs: Sequence[fx.Node], cut: set[fx.Node], without: set[fx.Node]
    ) -> tuple[fx.GraphModule, list[torch.Tensor]]:
        """The part with these results. cut: values that are inputs of it. without: writes that are
        left out, as all are that come after the last result, if it is not one of the graph."""
        nodes = list(self._graph.graph.nodes)
        last = len(nodes)
        if set(outputs) != set(self.results):
            last = max(map(nodes.index, outputs))
        kept = set(outputs)
        for node in reversed(nodes[: last + 1]):  # what is needed, backwards
            writes = _is_mutable(node) and node not in without
            if (node in kept or writes) and node not in cut:
                kept |= {node, *node.all_input_nodes}
        made = fx.Graph()
        own: dict[fx.Node, fx.Node] = {}
        given = []
        for node in nodes:  # inputs come first
            if node in kept and (node in cut or node.op in ("placeholder", "get_attr")):
                if node not in self._values:
                    continue
                own[node] = made.placeholder(node.name)
                own[node].meta = {"val": self._values[node].to("meta"), **node.meta}
                given.append(self._values[node])
        for node in nodes:
            if node in kept and node not in own and node.op == "call_function":
                own[node] = made.node_copy(node, own.__getitem__)
        made.output([own[n] for n in outputs])
        return fx.GraphModule(self._graph, made), given


def _written(
    graph: fx.GraphModule, inputs: list[torch.Tensor], backend: Any, what: str, folder: Path,
    name: str,
) -> Minified:  # fmt: skip
    """The script, in a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    number = next(k for k in range(10**6) if not (folder / f"program{k}.py").exists())
    script = folder / f"program{number}.py"
    names, lines = [], []
    for k, t in enumerate(inputs):
        if isinstance(t, torch.Tensor) and t.numel() <= _WRITTEN and t.is_contiguous():
            text = f"torch.tensor({t.tolist()!r}, dtype={t.dtype}, device={str(t.device)!r})"
        else:
            file = folder / f"program{number}_input{k}.pt"
            torch.save(t.detach(), file)
            text = f"torch.load(Path(__file__).with_name({file.name!r}))"
        grad = ".requires_grad_()" if isinstance(t, torch.Tensor) and t.requires_grad else ""
        names.append(f"input{k}")
        lines.append(f"input{k} = {text}{grad}")
    if isinstance(backend, str):
        imported, chosen = "", repr(backend)
    else:
        imported = f"from {backend.__module__} import {backend.__qualname__}\n"
        chosen = backend.__qualname__
    body = graph_text(graph).partition("def program(")[2]
    title = f"{name}, back end {chosen}: {what}".replace('"', "'").replace("\\", "/")
    made = "\n".join(lines)
    text = f'''"""{title}"""

from pathlib import Path

import torch
from torch import device, inf, nan

from np_compile.tools.accuracy import compare_program
{imported}
aten = torch.ops.aten


def program({body}

{made}

if __name__ == "__main__":
    what = compare_program(program, [{", ".join(names)}], {chosen})
    print(what or "no difference")
    raise SystemExit(bool(what))
'''
    script.write_text(text, encoding="utf-8")
    operators = sum(n.op == "call_function" for n in graph.graph.nodes)
    return Minified(what, operators, script, text)
