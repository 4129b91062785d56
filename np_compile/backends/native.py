"""The native back end: fused loops, in C on the CPU and in CUDA on a GPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from np_compile import config

from .by_torch import device_of, inductor

if TYPE_CHECKING:
    from .halves import Halves

_HOST = torch.device("cpu")


def native(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
    """A tensor program as kernels, in C or in CUDA; on others, or without CuPy, by inductor.

    With inputs that require gradients there is a forward and a backward graph, and each becomes
    kernels. What is saved between the two is the cheapest cut of the joint graph.
    """
    device = device_of(graph, example_inputs)
    if device.type != "cpu":
        why = _no_kernels(device)
        if why:
            _warn_once(f"np_compile: programs on {device.type} are compiled by inductor: {why}")
            return inductor(graph, example_inputs)
        if device.index is None:
            device = torch.device(device.type, torch.cuda.current_device())
        move_constants(graph, device)
    if torch.is_grad_enabled() and any(t.requires_grad for t in example_inputs):
        return _Differentiable(graph, example_inputs, device)
    return _kernels(graph, device, example_inputs)


def move_constants(graph: torch.fx.GraphModule, device: torch.device) -> None:
    """Have the constants of a graph lie where its arrays do: kernels can read nothing else."""
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            held = getattr(graph, str(node.target))
            if isinstance(held, torch.Tensor) and held.device != device:
                setattr(graph, str(node.target), held.to(device))


def _no_kernels(device: torch.device) -> str:
    """Why there are no kernels for a device; empty if there are."""
    from np_compile.kernels.build.nvrtc import NoCuda
    from np_compile.kernels.run.machine import gpu

    try:
        gpu(device)
    except NoCuda as e:
        return str(e)
    return ""


class _Inductor:
    """A program of inductor's. notes: why it is none of kernels."""

    def __init__(self, program: Callable, why: str):
        self._program = program
        self.notes = [why]

    def __call__(self, *tensors: torch.Tensor) -> Any:
        return self._program(*tensors)


def _kernels(
    graph: torch.fx.GraphModule, device: torch.device = _HOST,
    example_inputs: list[torch.Tensor] | None = None,
) -> Callable:  # fmt: skip
    """The kernels of a graph; without them inductor's on a device, given inputs, or operators."""
    from np_compile.kernels.build.toolchain import NoCompiler
    from np_compile.kernels.compile import compile_graph
    from np_compile.kernels.frontend.nodes import Unsupported

    try:
        return compile_graph(graph, device)
    except NoCompiler as e:
        _warn_once(f"np_compile: tensor programs run operator by operator: {e}")
    except Unsupported as e:
        if device.type != "cpu" and example_inputs is not None:
            return _Inductor(inductor(graph, example_inputs), f"inductor compiles it: {e}")
        _warn_once(
            f"np_compile: the native back end cannot run {e}; this segment runs operator by "
            "operator."
        )
    return graph.forward


def sequence(steps: list[tuple], constants: list[torch.Tensor], wanted: list[int]) -> Any:
    """Runs of programs that `native` has made as a `kernels.run.sequence.Sequence`, or as a
    `GpuSequence`; None where not all of them are of kernels alone. steps: (program, *the rest of a
    `sequence.Step`)."""
    from np_compile.kernels.run.sequence import Sequence, Step

    if any(getattr(program, "device", _HOST) != _HOST for program, *_ in steps):
        return _gpu_sequence(steps, constants, wanted)

    entries = {}
    for program in {program for program, *_ in steps}:
        entry = getattr(program, "entry", None)
        found = None if entry is None else entry()
        if found is None:
            return None
        entries[program] = found
    return Sequence([Step(entries[p], *rest) for p, *rest in steps], constants, wanted)


def _gpu_sequence(steps: list[tuple], constants: list[torch.Tensor], wanted: list[int]) -> Any:
    from np_compile.kernels.run.gpu_sequence import GpuSequence, Step
    from np_compile.kernels.run.on_gpu import OnGpu

    programs = [program for program, *_ in steps]
    device = getattr(programs[0], "device", _HOST)
    if not all(isinstance(p, OnGpu) and p.alone and p.device == device for p in programs):
        return None
    if any(c.device != device for c in constants):
        return None
    if not all(p.in_bounds(ints) for p, _, _, ints in steps):
        return None
    runs = [Step(p, *rest) for p, *rest in steps]
    return GpuSequence(runs, constants, wanted, lambda: config.cuda_graphs)


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)


LINES = ("user_line", "np_call")  # of a graph node: the user's line, and the NumPy call there


def with_lines(part: torch.fx.GraphModule) -> torch.fx.GraphModule:
    for node in part.graph.nodes:
        node.meta.update(node.meta.get("custom", {}))
    return part


class Differentiated:
    """A program that autograd differentiates: kernels for each half, the backward ones made when
    the first gradient is asked for. first, second: those made so far. call: what a call calls.
    halves: that without AOTAutograd's wrappers, if it can do without them."""

    first: Callable
    second: Callable | None = None
    halves: Halves | None = None
    call: Callable

    def __call__(self, *tensors: torch.Tensor) -> Any:
        return self.call(*tensors)

    def __str__(self) -> str:
        parts = {"forward": self.first, "backward": self.second}
        return "\n".join(
            f"/* {half} */\n{part}" for half, part in parts.items() if part is not None
        )

    @property
    def ready(self) -> bool:
        """Whether the kernels of the halves made so far are compiled."""
        return all(getattr(part, "ready", True) for part in (self.first, self.second))

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the compiles of both halves by phase, as far as they are made."""
        total: dict[str, float] = {}
        for part in (self.first, self.second):
            for phase, seconds in getattr(part, "seconds", {}).items():
                total[phase] = total.get(phase, 0.0) + seconds
        return total

    @property
    def seconds_left(self) -> float:
        """How long that will take, roughly."""
        return sum(getattr(part, "seconds_left", 0.0) for part in (self.first, self.second))

    def wait(self) -> None:
        """Wait until they are. CompileFailed if they cannot be."""
        parts: tuple[Any, ...] = (self.first, self.second)
        for part in parts:
            if hasattr(part, "wait"):
                part.wait()

    @property
    def notes(self) -> list[str]:
        """The decisions of both halves."""
        return [note for part in (self.first, self.second) for note in getattr(part, "notes", ())]


class _Differentiable(Differentiated):
    """Such a program of one graph."""

    def __init__(
        self, graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor],
        device: torch.device,
    ):  # fmt: skip
        from np_compile.kernels.frontend.nodes import mutated_roots

        from .checks import checking, put_checks, take_checks
        from .differentiated import Written, differentiated
        from .halves import only_makes_arrays, with_gradient, without_copies
        from .saved import is_copied_alone, placeholders, results_of
        from .split import split
        from .twice import refusing

        self._device = device
        self._split: tuple[torch.fx.GraphModule, torch.fx.GraphModule, int] | None = None
        graph, checks = take_checks(graph)
        renewed = [n for n in placeholders(graph.graph) if is_copied_alone(n)]
        without_copies(graph.graph)
        graph.recompile()
        _, mutated = mutated_roots(graph.graph)
        inputs = enumerate(placeholders(graph.graph), 1)
        names = {n: f"primals_{k}" for k, n in inputs}  # AOTAutograd's
        self._written = {name for n, name in names.items() if n in mutated}
        self._renewed = {name for n, name in names.items() if n in renewed}
        alone = only_makes_arrays(graph.graph)
        asked = [t.requires_grad for t in example_inputs]
        if alone:
            count = len(results_of(graph.graph))
            try:
                found = differentiated(graph, example_inputs, device, LINES)
            except (Written, RuntimeError):  # the meta device has no way; or there is none, which
                pass  # torch says then
            else:
                if found is None:
                    put_checks(graph.graph, checks, count)
                    self.call = self._make_first(graph)
                    return
                joint, floats = found
                self._save(*split(joint, count), count)
                if self._tied(floats, checks, len(asked)):
                    return
        self._split = None
        program = self._by_torch(graph, example_inputs)
        if alone and self._split is not None:
            forward, _, count = self._split
            floats = with_gradient(forward.graph, count, asked)
            if self._tied(floats, checks, len(asked)):
                return
        self.call = checking(refusing(program), checks)
        self._make_first(self._whole)

    def _by_torch(
        self, graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Callable:
        """The program between AOTAutograd's wrappers."""
        from torch._dynamo.backends.common import aot_autograd

        from .differentiated import decompositions

        for node in graph.graph.nodes:  # of a node's notes, AOTAutograd hands this one on
            node.meta["custom"] = {k: node.meta[k] for k in LINES if k in node.meta}
        with torch._functorch.config.patch(
            donated_buffer=False
        ):  # a graph may be gone through twice
            program: Callable = aot_autograd(
                fw_compiler=self._forward,
                bw_compiler=self._backward,
                partition_fn=self._partition,
                decompositions={**decompositions()},
            )(graph, example_inputs)
        return program

    def _tied(self, floats: list[int], checks: list[tuple], inputs: int) -> bool:
        """Whether the halves can do without wrappers; then they are made. floats: numbers of the
        results that have a gradient."""
        from .checks import put_checks
        from .halves import Halves, complete

        assert self._split is not None
        forward, backward, count = self._split
        if not complete(forward.graph, backward.graph, count, inputs, floats):
            return False
        count = put_checks(forward.graph, checks, count)
        self.halves = Halves(forward, backward, floats, count, self._make_first, self._gradient)
        self.call = self.halves.call
        return True

    @property
    def without_gradient(self) -> Callable | None:
        """What runs, where nothing that it gives has a gradient; else None."""
        return self.first if self._split is None else None

    def _partition(self, joint: Any, inputs: Any, *, num_fwd_outputs: int, **options: Any) -> tuple:
        """Both halves of AOTAutograd's graph, of which the forward one gives so many results."""
        from torch._functorch.partitioners import min_cut_rematerialization_partition as cut
        from torch.fx._lazy_graph_module import _use_lazy_graph_module as without_code

        with without_code(True):  # nobody runs the halves
            forward, backward = cut(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
        self._save(forward, backward, num_fwd_outputs)
        return forward, backward

    def _save(
        self, forward: torch.fx.GraphModule, backward: torch.fx.GraphModule, count: int
    ) -> None:
        """Note the halves, and what one saves for the other. count: results of the forward one."""
        from .saved import save_copies

        save_copies(forward, backward, count, self._written, self._renewed)
        self._split = forward, backward, count

    def _forward(self, part: torch.fx.GraphModule, _inputs: Any) -> Callable:
        """The forward half, or all of it: made once it is known whether it is to run as it is."""
        self._whole = part
        return _boxed(lambda *tensors: self.first(*tensors))

    def _backward(self, part: torch.fx.GraphModule, _inputs: Any) -> Callable:
        return _boxed(self._gradient(part))

    def _make_first(self, part: torch.fx.GraphModule) -> Callable:
        """The program of the forward half."""
        self.first = _kernels(with_lines(part), self._device)
        return self.first

    def _gradient(self, part: torch.fx.GraphModule) -> Callable:
        """The program of the backward half. One that no compiler takes runs by operators."""
        from np_compile.kernels.build.toolchain import CompileFailed

        try:
            self.second = _kernels(with_lines(part), self._device)
        except CompileFailed as e:
            _warn_once(f"np_compile: a gradient is computed operator by operator: {e}")
            self.second = part.forward
        return self.second


def _boxed(made: Callable) -> Callable:
    from torch._functorch.aot_autograd import make_boxed_func

    boxed: Callable = make_boxed_func(made)
    return boxed
