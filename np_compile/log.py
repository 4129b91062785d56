"""What NP_COMPILE_DEBUG and NP_COMPILE_LOGS show; the texts of a segment that `inspect` gives."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, TextIO

import torch

from np_compile import config, debug_output
from np_compile.tape.call import Call, Parameter, Reference, Span
from np_compile.tape.node import Node


def compiled(program: Any, name: str, changes: Iterable[Any], stream: TextIO) -> None:
    """Report a compile. changes: what is other than in the compile before."""
    heads = []
    if config.shows("compiles"):
        heads.append(f"compiled {program.node.count} NumPy calls")
    if config.shows("times"):
        heads += (f"{k} {v * 1e3:.0f} ms" for k, v in program.seconds.items())
    if heads:
        print(f"np_compile: {name}: {', '.join(heads)}", file=stream)
    if config.shows("recompiles"):
        for change in changes:
            print(f"np_compile: {name}: compiled anew: {change}", file=stream)
    if config.shows("calls"):
        print(calls_text(program.node, program.live), file=stream)
    if config.shows("graph"):
        print(graph_text(program.graph), file=stream)
    if config.shows("output"):
        print(f"# made by the back end {program.backend_name!r}:\n{program.compiled}", file=stream)


def save(program: Any, name: str, changes: Iterable[Any]) -> None:
    """Write all about a compile to a folder of the setting `debug_dir`. changes: what is other than
    in the compile before."""
    made = str(program.compiled)
    lines = dict.fromkeys(step.user_line for step, _ in program.node.calls())
    about = [
        f"{name}: {program.node.count} NumPy calls, back end {program.backend_name}",
        *(f"{phase}: {seconds:.4f} s" for phase, seconds in program.phases.items()),
        *(f"new: {change}" for change in changes),
        *lines,
    ]
    texts = {"about.txt": "\n".join(about), "calls.txt": calls_text(program.node, program.live)}
    if program.graph is not None:
        texts["program.py"] = graph_text(program.graph)
    texts["output.c" if made.startswith("/*") else "output.txt"] = made
    debug_output.save(name, texts)


def broke(reason: Any, name: str, line: str, stream: TextIO) -> None:
    """Report a break: why, and at which line of the user's code."""
    if config.shows("breaks"):
        print(f"np_compile: {name}: break ({reason.kind}): {reason.text}\n  at {line}", file=stream)


def read(code: types.CodeType, line: int, why: str, stream: TextIO) -> None:
    """Report what became of a function with loops, from a line on. why: it is not compiled."""
    what = f"not compiled with its loops: {why}" if why else "compiled with its loops"
    print(f"np_compile: {code.co_name}: {what}\n  at {code.co_filename}:{line}", file=stream)


def failed(what: str, error: Exception, stream: TextIO) -> None:
    """Report a library of our own that could not be made. what: comes of it."""
    print(f"np_compile: {what}: {type(error).__name__}: {error}", file=stream)


def _type(value: Any) -> str:
    extents = ",".join(map(str, value.shape))
    return f"{value.dtype.name}[{extents}]" if not value.scalar else value.dtype.name


def calls_text(node: Node, live: tuple[int, ...] = ()) -> str:
    """The NumPy calls of a segment, one a line: `d: float64[4,3] = np.add(a, c)`."""
    lines = []
    where = None
    for step in node.path():
        if step.call is None:
            (value,) = step.values
            lines.append(f"v{value.index}: {_type(value)} = input")
            continue
        if step.user_line != where:
            where = step.user_line
            lines.append(f"# {where}")
        made = ", ".join(f"v{v.index}: {_type(v)}" for v in step.values)
        call = f"{step.call.label}({arguments_text(step.call)})"
        lines.append(f"{made} = {call}" if made else call)
    lines.append("return " + (", ".join(f"v{i}" for i in live) or "nothing"))
    return "\n".join(lines)


def arguments_text(call: Call) -> str:
    """The arguments of a recorded call: `v0, axis=1`."""
    parts = [_index(a) if a is call.index else _argument(a) for a in call.args]
    return ", ".join(parts + [f"{k}={_argument(v)}" for k, v in call.kwargs.items()])


def _argument(x: Any) -> str:
    if type(x) is Reference:
        return f"v{x.number}"
    if type(x) is Parameter:
        return f"<{'int' if x.kind == 'index' else x.kind}>"
    if type(x) is Span:
        return f"{_argument(x.start)}:+{x.length}" + (f":{x.step}" if x.step != 1 else "")
    if type(x) is slice:
        return f"slice({', '.join(map(_argument, (x.start, x.stop, x.step)))})"
    if isinstance(x, (tuple, list, dict)):
        inner = ", ".join(map(_argument, x.values() if isinstance(x, dict) else x))
        return f"({inner})" if isinstance(x, tuple) else f"[{inner}]"
    return getattr(x, "__name__", None) or repr(x)


def _index(items: tuple) -> str:
    return f"[{', '.join(map(_item, items))}]"


def _item(x: Any) -> str:
    if x is None:
        return "newaxis"
    if type(x) is slice and x == slice(None):
        return ":"
    return "..." if x is Ellipsis else _argument(x)


def graph_text(graph: torch.fx.GraphModule) -> str:
    """A tensor graph as PyTorch code that runs: a function `program` of the graph's inputs."""
    lines = ["import torch", "from torch import device, inf, nan", "", "aten = torch.ops.aten", ""]
    inputs: list[str] = []
    body: list[str] = []
    where = None
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
            continue
        line = node.meta.get("user_line")
        if line and line != where:
            where = line
            body.append(f"# {line}")
        if node.op == "get_attr":
            constant = getattr(graph, node.target)
            body.append(
                f"{node.name} = torch.tensor({constant.tolist()!r}, dtype={constant.dtype})"
            )
        elif node.op == "call_function":
            args = [_value(a) for a in node.args]
            args += [f"{k}={_value(v)}" for k, v in node.kwargs.items()]
            body.append(f"{node.name} = {_target(node.target)}({', '.join(args)}){_note(node)}")
        elif node.op == "output":
            body.append(f"return {_value(node.args[0])}")
    lines.append(f"def program({', '.join(inputs)}):")
    return "\n".join(lines + ["    " + line for line in body]) + "\n"


def _target(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        namespace, _, name = target.name().partition("::")
        name = name.partition(".")[0]
        prefix = "aten" if namespace == "aten" else f"torch.ops.{namespace}"
        return f"{prefix}.{name}.{target._overloadname}"
    module = getattr(target, "__module__", "")
    if module == "_operator":
        return f"__import__('operator').{target.__name__}"
    return f"{module}.{target.__name__}"


def _value(v: Any) -> str:
    if isinstance(v, torch.fx.Node):
        return v.name
    if isinstance(v, (list, tuple)):
        inner = ", ".join(_value(x) for x in v)
        return f"[{inner}]" if isinstance(v, list) else f"({inner},)"
    return repr(v)


def _note(node: torch.fx.Node) -> str:
    made = node.meta.get("val")
    if not isinstance(made, torch.Tensor):
        return ""
    return f"  # {str(made.dtype).removeprefix('torch.')}[{','.join(map(str, made.shape))}]"
