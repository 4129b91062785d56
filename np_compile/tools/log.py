"""What NP_COMPILE_DEBUG shows, level by level, and the texts of a segment that `inspect` gives."""

from __future__ import annotations

from typing import Any, TextIO

import torch

from np_compile import config
from np_compile.capture.tape import COMPLEX, FLOAT, INPUT, INT, KW, Node


def compiled(program: Any, name: str, stream: TextIO) -> None:
    """Report a compile, in as much detail as the level asks for."""
    head = f"np_compile: {name}: compiled {program.node.count} NumPy calls"
    if config.debug >= 2:
        head += ", " + ", ".join(f"{k} {v * 1e3:.0f} ms" for k, v in program.seconds.items())
    print(head, file=stream)
    if config.debug >= 3:
        print(calls_text(program.node, program.live), file=stream)
    if config.debug >= 4:
        print(graph_text(program.graph), file=stream)
    if config.debug >= 5:
        print(f"# made by the back end {program.backend_name!r}:\n{program.compiled}", file=stream)


def broke(reason: Any, name: str, line: str, stream: TextIO) -> None:
    """Report a break: why, and at which line of the user's code."""
    print(f"np_compile: {name}: break ({reason.kind}): {reason.text}\n  at {line}", file=stream)


def _type(value: Any) -> str:
    extents = ",".join(map(str, value.shape))
    return f"{value.dtype.name}[{extents}]" if not value.scalar else value.dtype.name


def calls_text(node: Node, live: tuple[int, ...] = ()) -> str:
    """The NumPy calls of a segment, one a line: `d: float64[4,3] = np.add(a, c)`."""
    lines = []
    where = None
    for step in node.path():
        if step.key[0] is INPUT:
            value = step.value
            assert value is not None
            lines.append(f"v{value.index}: {_type(value)} = input")
            continue
        if step.user_line != where:
            where = step.user_line
            lines.append(f"# {where}")
        made = ", ".join(f"v{v.index}: {_type(v)}" for v in step.values)
        name = step.key[0]
        label = name if name.startswith("ndarray.") else f"np.{name}"
        call = f"{label}({_arguments(step.key)})"
        lines.append(f"{made} = {call}" if made else call)
    lines.append("return " + (", ".join(f"v{i}" for i in live) or "nothing"))
    return "\n".join(lines)


def _arguments(key: tuple) -> str:
    if KW in key:
        at = key.index(KW)
        named = [f"{k}={_piece(p)}" for k, p in zip(key[at + 1], key[at + 2 :], strict=True)]
        return ", ".join([*map(_piece, key[1:at]), *named])
    return ", ".join(map(_piece, key[1:]))


def _piece(p: Any) -> str:
    if type(p) is int:
        return f"v{p}"
    if p is FLOAT:
        return "<float>"
    if p is INT:
        return "<int>"
    if p is COMPLEX:
        return "<complex>"
    if type(p) is not tuple:
        return repr(p)
    tag = p[0]
    if tag == "c":
        return getattr(p[2], "__name__", None) or repr(p[2])
    if tag == "n":
        return f"<{p[1]}>"
    if tag == "x":
        return "[" + ", ".join(_index(q) for q in p[1:]) + "]"
    inner = ", ".join(map(_piece, p[2:] if tag == "d" else p[1:]))
    return f"({inner})" if tag == "t" else f"[{inner}]"


def _index(q: Any) -> str:
    if type(q) is tuple and q[0] is INT:
        return f"<int>:+{q[1]}" + (f":{q[2]}" if q[2] != 1 else "")
    if q is None:
        return "newaxis"
    return "..." if q == "." else q if q == ":" else _piece(q)


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
