"""Whether a back end gives what torch's operators give, program by program, on the data of a call.

`accuracy` runs a function and compares; `compare` compares one program. `minify` makes what differs
smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from np_compile.backends import lookup
from np_compile.capture.state import Options
from np_compile.errors import TensorArgument

from .target import compiled_of

# How far results may be apart, relative to their largest element: sums are added in another order.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2}
_TOLERANCE |= {torch.complex128: 1e-9, torch.complex64: 1e-4}


@dataclass
class Fault:
    """A program with which a back end fails, or gives something else than torch's operators.

    what: it does, in words. lines: of user code that the program is of. graph, inputs: the program,
    and the tensors on which it ran.
    """

    what: str
    lines: list[str]
    graph: fx.GraphModule = field(repr=False)
    inputs: list[torch.Tensor] = field(repr=False)


@dataclass
class Accuracy:
    """What `accuracy` gives. result: of the call, by torch's operators.
    checked: how many runs of programs were compared. faults: those that differ."""

    name: str
    backend: str
    result: Any = None
    checked: int = 0
    faults: list[Fault] = field(default_factory=list)

    def __str__(self) -> str:
        right = self.checked - len(self.faults)
        lines = [f"{self.name}, back end {self.backend}: {right} of {self.checked} programs right"]
        for fault in self.faults:
            lines += [f"  {fault.what}", *(f"    {line}" for line in fault.lines)]
        return "\n".join(lines)


def accuracy(fn: Callable, backend: Any = None) -> Callable[..., Accuracy]:
    """A function that calls `fn` (compiled or not) and compares a back end with torch's operators.

    The call is a real one, with all its effects, and compiles anew. Each program runs on the same
    data by the back end and operator by operator, its gradients too where there are any, and what
    is apart by more than rounding is a fault. backend: that of `fn`, where none is given.

    >>> import numpy as np, np_compile
    >>> f = np_compile.compile(lambda x: np.sin(x) + 1)
    >>> print(np_compile.accuracy(f)(np.zeros(3)))
    <lambda>, back end native: 1 of 1 programs right
    """
    compiled = compiled_of(fn)
    lookup(compiled._options.backend if backend is None else backend)

    def call(*args: Any, **kwargs: Any) -> Accuracy:
        options = compiled._options
        chosen = options.backend if backend is None else backend
        name = chosen if isinstance(chosen, str) else getattr(chosen, "__name__", repr(chosen))
        report = Accuracy(options.name, name)

        def checking(graph: fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
            made: Any = None

            def run(*tensors: torch.Tensor) -> Any:
                nonlocal made
                report.checked += 1
                before = copies(tensors)
                made = _Made(graph, copies(tensors), chosen) if made is None else made
                what = made.differs(before)
                if what:
                    lines = [n.meta.get("user_line") for n in graph.graph.nodes]
                    seen = list(dict.fromkeys(line for line in lines if line))
                    report.faults.append(Fault(what, seen, graph, before))
                return graph.forward(*tensors)

            return run

        fresh = Options(checking, options.fullgraph, options.dynamic, options.tensors)
        fresh.name = options.name
        compiled._options = fresh
        try:
            report.result = compiled._run(args, kwargs, lambda *event: None)
        finally:
            compiled._options = options
        return report

    return call


def compare(graph: fx.GraphModule, inputs: Sequence[torch.Tensor], backend: Any) -> str:
    """How a back end's results of a tensor graph, or its failure, differ from what torch's
    operators give; empty where they do not."""
    return _Made(graph, copies(inputs), backend).differs(inputs)


def compare_program(
    program: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], backend: Any
) -> str:
    """As `compare`, of a function of tensors, such as those that `minify` writes."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def results(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return list(program(*tensors))

    with torch.no_grad():
        graph = make_fx(results, tracing_mode="fake")(*copies(inputs))
    return compare(graph, inputs, backend)


class _Made:
    """What a back end made of a graph, or how it failed."""

    def __init__(self, graph: fx.GraphModule, inputs: list[torch.Tensor], backend: Any):
        self._graph = graph
        # A program that writes to what has a gradient is compared without.
        writes = any(_is_mutable(n) for n in graph.graph.nodes)
        self._grad = torch.is_grad_enabled() and not writes
        self._failed = ""
        try:
            with torch.set_grad_enabled(self._grad):
                self._run: Any = lookup(backend)(graph, inputs)
            if hasattr(self._run, "wait"):
                self._run.wait()
        except Exception as e:
            self._failed = _failure("compiling", e)

    def differs(self, inputs: Sequence[torch.Tensor]) -> str:
        """How, on these inputs; empty where it does not."""
        if self._failed:
            return self._failed
        with torch.set_grad_enabled(self._grad):
            wanted = _outcome(self._graph.forward, copies(inputs))
            try:
                got = _outcome(self._run, copies(inputs))
            except Exception as e:
                return _failure("running", e)
        if len(got) != len(wanted):
            return f"it gives {len(got)} tensors in place of {len(wanted)}"
        for (name, want), (_, have) in zip(wanted, got, strict=True):
            what = _difference(want, have)
            if what:
                return f"{name}: {what}"
        return ""


def _failure(when: str, e: Exception) -> str:
    text = str(e).strip().partition("\n")[0]
    return f"it fails in {when}: {type(e).__name__}: {text}"


def _outcome(run: Callable, inputs: list[torch.Tensor]) -> list[tuple[str, torch.Tensor | None]]:
    """Results, the inputs afterwards, and their gradients, by what they are."""
    results = run(*inputs)
    found: list[tuple[str, torch.Tensor | None]]
    found = [(f"result {k}", t) for k, t in enumerate(results)]
    found += [(f"input {k}", t) for k, t in enumerate(inputs)]
    wanted = [t for t in inputs if t.requires_grad]
    made = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
    if wanted and made:
        # Each element has a weight of its own, so that no two mistakes cancel.
        weights = [torch.linspace(0.5, 1.5, t.numel()).reshape(t.shape).to(t) for t in made]
        gradients = torch.autograd.grad(made, wanted, weights, allow_unused=True)
        found += [(f"gradient {k}", t) for k, t in enumerate(gradients)]
    return found


def _difference(want: Any, have: Any) -> str:
    """How a tensor differs from the one that is wanted."""
    if want is None or have is None:
        return "" if want is have else f"{have} in place of {want}"
    if not isinstance(have, torch.Tensor):
        return f"{type(have).__name__} in place of a tensor"
    if (have.shape, have.dtype) != (want.shape, want.dtype):
        return f"{_type(have)} in place of {_type(want)}"
    want, have = want.detach().cpu(), have.detach().cpu()
    tolerance = _TOLERANCE.get(want.dtype)
    if tolerance is None:
        wrong = have != want
    else:
        finite = want[want.isfinite()].abs()
        scale = float(finite.max()) if finite.numel() else 0.0
        close = torch.isclose(have, want, tolerance, tolerance * scale, equal_nan=True)
        wrong = ~close
    if not wrong.any():
        return ""
    at = tuple(wrong.nonzero()[0].tolist())
    count = f"{int(wrong.sum())} of {want.numel()} elements differ"
    return f"{count}, first at {list(at)}: {have[at].item()} in place of {want[at].item()}"


def _type(t: torch.Tensor) -> str:
    return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def _is_mutable(node: fx.Node) -> bool:
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def copies(tensors: Sequence[Any]) -> list[Any]:
    """Copies of tensors with the same strides; those that shared memory share it again."""
    held: dict[int, Any] = {}
    made = []
    with torch.no_grad():
        for t in tensors:
            if not isinstance(t, torch.Tensor):  # a size
                made.append(t)
                continue
            if t.layout is not torch.strided:
                raise TensorArgument(f"a tensor with the layout {t.layout}")
            memory = t.untyped_storage()
            own = held.setdefault(memory.data_ptr(), memory.clone())
            copy = torch.empty(0, dtype=t.dtype, device=t.device)
            copy.set_(own, t.storage_offset(), t.size(), t.stride())  # type: ignore[call-overload]
            made.append(copy.requires_grad_(t.requires_grad))
    return made
