"""A compiled segment: built once from its path in the tree, run with each call's data."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch._C import _is_any_autocast_enabled as _autocasts
from torch.autograd.graph import increment_version

from np_compile.backends import lookup
from np_compile.backends.native import sequence as native_sequence
from np_compile.errors import BackendError
from np_compile.lowering.lower import interpreter, lower, written_inputs
from np_compile.runtime.operators import Operators
from np_compile.runtime.progress import progress
from np_compile.shim import quiet
from np_compile.shim._saved import hooks, is_followed, part
from np_compile.tape.node import Node

# What a program may raise on its data; torch's hooks on what is saved, of which `checkpoint` ends a
# call that it makes again, raise others.
OF_DATA = (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError)


class Program:
    """A tensor program made by a back end, with the calling convention of segments.

    graph: the torch.fx.GraphModule that was compiled. seconds: times of the compile by phase.
    mutates: numbers of the inputs whose memory it writes to; written: their positions. name: of the
    compiled function. constant_ints: values of the integers that are constants of it, by number.
    grad: whether it may be differentiated. sizes: what a graph for many sizes takes beside its
    tensors. notes: on what it is for. general: what it is of for some sizes, if there are others.
    """

    __slots__ = (
        "_device", "_direct", "_dynamic", "_pending", "_signatures", "backend_name", "compiled",
        "constant_ints", "general", "grad", "graph", "live", "mutates", "name", "node", "notes",
        "seconds",
        "sizes", "written",
    )  # fmt: skip

    def __init__(
        self, node: Node, live: tuple, graph: Any, compiled: Callable, backend_name: str,
        dynamic: frozenset[int], seconds: dict[str, float], device: torch.device | None,
        name: str,
    ):  # fmt: skip
        self.node = node
        self.live = live
        self.graph = graph
        self.compiled = compiled
        self.backend_name = backend_name
        self.seconds = seconds
        written = written_inputs(node, live)
        self.written, self.mutates = [*written], sorted(written.values())
        self._dynamic = tuple(sorted(dynamic))
        self._device = device
        self._signatures: list[tuple] | None = None
        # An entry that takes the parameters as they are, without tensors made of them.
        self._direct: Callable | None = getattr(compiled, "run", None)
        self.name = name
        self.constant_ints: dict[int, int] = {}
        self.grad = False
        self.sizes: tuple[int, ...] = ()
        self.notes: list[str] = []
        self.general: Any = None
        self._pending = hasattr(compiled, "wait")  # for its C compiler, or that is not known

    @property
    def ready(self) -> bool:
        """Whether it can run: its C compiler is done. Where that has failed, it runs operator by
        operator from then on, with a warning."""
        if self._pending and self.compiled.ready:  # type: ignore[attr-defined]
            self.wait()
        return not self._pending

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the compile by phase, those of the C compiler too once it is done."""
        return {**self.seconds, **getattr(self.compiled, "seconds", {})}

    @property
    def seconds_left(self) -> float:
        """How long the C compiler takes for it, roughly."""
        return self.compiled.seconds_left if self._pending else 0.0  # type: ignore[attr-defined]

    def wait(self) -> None:
        """Wait until it can run."""
        if not self._pending:
            return
        try:
            self.compiled.wait()  # type: ignore[attr-defined]
        except BackendError as e:
            self.compiled = self.graph.forward
            self._direct = None
            _warn(self.name, f"the back end {self.backend_name!r} failed ({type(e).__name__}: {e})")
        self._pending = False

    def at_sizes(self, node: Node, compiled: Callable, sizes: tuple[int, ...]) -> Program:
        """The program of a segment of the same form that ends at another node."""
        made = Program.__new__(Program)
        for name in Program.__slots__:
            setattr(made, name, getattr(self, name))
        made.node, made.compiled, made.sizes = node, compiled, sizes
        made._direct = getattr(compiled, "run", None)
        made._pending = hasattr(compiled, "wait")
        made._signatures = None
        made.seconds = {}
        return made

    @property
    def direct(self) -> bool:
        """Whether it is native: where it raises, it has written nothing."""
        return self._direct is not None

    def run(self, inputs: list[Any], floats: list[float], ints: list[int]) -> Any:
        """Run on the stand-ins' tensors and the segment's parameters; a list of tensors."""
        return self.run_tensors([a._t for a in inputs], floats, self.dynamic_ints(ints))

    def dynamic_ints(self, ints: Sequence[int]) -> list[int]:
        """Those of a segment's integers that are data of the program."""
        return [ints[k] for k in self._dynamic]

    def run_tensors(
        self, tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int]
    ) -> Any:
        """Run on tensors, the segment's floats, and its changing integers; a list of tensors."""
        if self.written:
            self._before_writes(tensors)
        if self._direct is None:
            if _autocasts():  # of which NumPy knows nothing
                with torch._C._DisableAutocast():
                    return self.compiled(*self._with_parameters(tensors, floats, ints))
            return self.compiled(*self._with_parameters(tensors, floats, ints))
        made = self._direct(tensors, floats, ints)
        if self.written:  # as autograd wants to know
            increment_version([tensors[k] for k in self.written])
        return made

    def bound(
        self, floats: Sequence[float], ints: Sequence[int]
    ) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]:
        """`run_tensors` with these parameters."""
        direct = self._direct
        if self.written:
            return lambda tensors: self.run_tensors(tensors, floats, ints)
        if direct is None:
            run = getattr(self.compiled, "call", self.compiled)

            def compiled(tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
                if _autocasts():
                    return self.run_tensors(tensors, floats, ints)  # type: ignore[no-any-return]
                if floats or ints or self.sizes:
                    tensors = self._with_parameters(tensors, floats, ints)
                return run(*tensors)  # type: ignore[no-any-return]

            return compiled
        return lambda tensors: direct(tensors, floats, ints)

    def in_words(
        self, error: Exception, tensors: Sequence[torch.Tensor], floats: Sequence[float],
        ints: Sequence[int],
    ) -> Exception:  # fmt: skip
        """What NumPy says where a library has failed in a run; other errors as they are."""
        if isinstance(error, torch.linalg.LinAlgError) and not self.written:
            numbers = dict(zip(self._dynamic, ints, strict=True)) | self.constant_ints
            order = [numbers[k] for k in range(len(numbers))]
            counts = len(tensors), bool(floats), order, ()
            try:
                interpreter(self.node, self.live, *counts, self._device)(
                    *self._with_parameters(tensors, floats, ())
                )
            except np.linalg.LinAlgError as told:
                return told
        return error

    def run_by_operators(
        self, inputs: list[Any], floats: Sequence[float], ints: Sequence[int]
    ) -> Any:
        """As `run`, operator by operator: also right where inputs that are written to overlap."""
        tensors = [a._t for a in inputs]
        if self.written:
            self._before_writes(tensors)
        run = self.compiled if self.graph is None else Operators(self.graph).run
        if self.written and any(t.requires_grad for t in tensors):
            # The graph writes at its end, which others that share the memory would see too late.
            counts = len(tensors), bool(floats), list(ints), self._dynamic
            run = interpreter(self.node, self.live, *counts, self._device)
        with torch._C._DisableAutocast():
            return run(*self._with_parameters(tensors, floats, self.dynamic_ints(ints)))

    def _before_writes(self, tensors: Sequence[torch.Tensor]) -> None:
        """See that what is written to may be, and that what autograd has saved of it is kept."""
        written = [tensors[k] for k in self.written]
        if self._direct is None and torch.is_grad_enabled():
            _check_leaves(written)
        if is_followed():
            for t in written:
                part(t)

    def _with_parameters(
        self, tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int]
    ) -> list[Any]:
        """The inputs of the graph. Its parameters lie where its arrays do: a kernel on a device can
        read nothing else. Their copy there is made before the call returns, and waits for nothing.
        """
        args = list(tensors)
        if floats:
            args.append(torch.from_numpy(np.array(floats)))
        if ints:
            args.append(torch.from_numpy(np.array(ints, np.int64)))
        if self._device is not None:
            for k in range(len(tensors), len(args)):
                args[k] = args[k].to(self._device, non_blocking=True)
        return [*args, *self.sizes] if self.sizes else args

    def signatures(self, outputs: Any) -> list[tuple]:
        """Keys under which the outputs enter the next segment; the same for every run."""
        found = self._signatures
        if found is None:
            if not _are_tensors(outputs, len(self.live)):
                raise BackendError(
                    f"{self.name}: what the back end made gives {outputs!r}; a program gives a "
                    f"list of {len(self.live)} tensors"
                )
            values = self.node.all_values()
            found = self._signatures = [
                (t.dtype, t.shape, t.stride(), (), t.device, t.requires_grad, values[i].scalar,
                 values[i].readonly)
                for i, t in zip(self.live, outputs, strict=True)
            ]  # fmt: skip
        return found


def _are_tensors(outputs: Any, count: int) -> bool:
    """Whether a program gave so many tensors."""
    return (
        isinstance(outputs, (list, tuple))
        and len(outputs) == count
        and all(isinstance(t, torch.Tensor) for t in outputs)
    )


def _check_leaves(tensors: list[torch.Tensor]) -> None:
    """What torch says where a leaf is written to, which AOTAutograd lets pass."""
    if any(t.requires_grad and t.is_leaf for t in tensors):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def sequence(steps: list[tuple], constants: list[torch.Tensor], wanted: list[int]) -> Any:
    """Runs of programs as one call, without Python in between: a `kernels.run.sequence.Sequence`.
    None where that cannot be, as a program is not of kernels alone.

    steps: (program, where its tensors come from, floats, integers), see `sequence.Step`.
    wanted: the results that a run gives.
    """
    if any(program.backend_name != "native" for program, *_ in steps):
        return None
    parts = [(p.compiled, *rest) for p, *rest in steps]
    return native_sequence(parts, constants, wanted)


def would_join(steps: list[tuple]) -> bool:
    """Whether runs of programs with gradients are so many that they should be `joined`."""
    from np_compile.backends.joint import FEWEST

    return len(steps) >= FEWEST and any(p.general and p.grad for p, *_ in steps)


def joined(
    steps: list[tuple], constants: list[torch.Tensor], wanted: list[int], reads: Sequence[int]
) -> Any:
    """Runs of programs with gradients as one node of autograd's, a `backends.chain.Chain`; as
    `sequence`. None where they cannot be."""
    from np_compile.backends.chain import Step, chain

    if any(p.backend_name != "native" or p.written or p.sizes for p, *_ in steps):
        return None
    if any(p.general and p.grad for p, *_ in steps):  # their halves are for many sizes
        return None
    parts = [
        Step(p.compiled, len(p.live), sources, floats, ints, p._device)
        for p, sources, floats, ints in steps
    ]
    return chain(parts, constants, wanted, reads)


def build(
    node: Node, live: tuple, inputs: list[torch.Tensor], floats: list[float], ints: list[int],
    dynamic: frozenset[int], options: Any, device: torch.device | None, grad: bool,
) -> Program:  # fmt: skip
    """Lower a segment to a tensor graph and have the back end compile it.

    Errors: BackendError, when the back end raises.
    """
    backend = lookup(options.backend)
    args = [t.detach().requires_grad_(t.requires_grad) for t in inputs]
    for k in written_inputs(node, live):
        if args[k].requires_grad and grad:  # no leaf: AOTAutograd writes to one without its history
            args[k] = args[k].clone()
    if floats:
        args.append(torch.tensor(floats, dtype=torch.float64, device=device or "cpu"))
    order = tuple(sorted(dynamic))
    if order:
        numbers = [ints[k] for k in order]
        args.append(torch.tensor(numbers, dtype=torch.int64, device=device or "cpu"))
    tensors = len(inputs), bool(floats), ints, order
    with (
        uncollected(), hooks(False), torch.inference_mode(False), progress(options.name, node),
        torch.set_grad_enabled(grad), torch._C._DisableAutocast(),
        # torch's, where AOTAutograd looks at `.grad` of what is no leaf
        quiet("The .grad attribute of a Tensor that is not a leaf"),
    ):  # fmt: skip
        start = time.perf_counter()
        try:
            graph = lower(node, live, args, *tensors, device, options.backend == "native")
        except (RecursionError, MemoryError):  # the user's recursion, which leaves no room
            raise
        except Exception as e:
            _warn(options.name, f"its NumPy calls could not be traced ({type(e).__name__}: {e})")
            graph = None
        lowered = time.perf_counter()
        compiled = (
            interpreter(node, live, *tensors, device)
            if graph is None
            else _compile(backend, graph, args, options)
        )
        done = time.perf_counter()
    seconds = {"lower": lowered - start}
    own = sum(getattr(compiled, "seconds", {}).values())
    seconds["backend"] = max(0.0, done - lowered - own)
    name = options.backend if isinstance(options.backend, str) else "custom"
    program = Program(node, live, graph, compiled, name, dynamic, seconds, device, options.name)
    program.constant_ints = {k: n for k, n in enumerate(ints) if k not in dynamic}
    program.grad = grad
    return program


def by_operators(
    node: Node, live: tuple, inputs: list[Any], floats: list[float], ints: list[int],
    device: torch.device | None, told: Callable[[list[torch.Tensor]], None] | None = None,
) -> Program:  # fmt: skip
    """A program for one run of a segment: the shim, call by call. Nothing is compiled. told: called
    with what each call has made."""
    run = interpreter(node, live, len(inputs), bool(floats), list(ints), (), device, told)
    return Program(node, live, None, run, "eager", frozenset(), {}, device, "")


@contextmanager
def uncollected() -> Iterator[None]:
    """Within the block no garbage is collected. What a compile makes is mostly kept, and a full
    collection would look at all that torch's modules hold, for 0.1 s."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compile(backend: Any, graph: Any, args: list[torch.Tensor], options: Any) -> Callable:
    try:
        compiled = backend(graph, args)
    except (RecursionError, MemoryError):
        raise
    except Exception as e:
        what = f"the back end {options.backend!r} failed ({type(e).__name__}: {e})"
        if not isinstance(options.backend, str):
            raise BackendError(
                f"{options.name}: {what}\n  Remedy: backend='eager' runs the same tensor program "
                "without it; NP_COMPILE_DISABLE=1 runs NumPy itself."
            ) from e
        _warn(options.name, what)
        return graph.forward
    if not callable(compiled):
        raise BackendError(
            f"{options.name}: the back end {options.backend!r} returned "
            f"{type(compiled).__name__}, which cannot be called"
        )
    return compiled


def _warn(name: str, what: str) -> None:
    warnings.warn(
        f"np_compile: {name}: {what}; this segment runs operator by operator instead",
        RuntimeWarning,
        stacklevel=2,
    )
