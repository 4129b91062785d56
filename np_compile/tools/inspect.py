"""The texts of a function's segments: NumPy calls, tensor program, what the back end made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

from np_compile import cupy_arrays
from np_compile.backends import lookup
from np_compile.capture.state import Options
from np_compile.log import calls_text, graph_text
from np_compile.reader.reading import MISS

from .target import compiled_of


@dataclass
class SegmentText:
    """One segment in three texts.

    calls: the NumPy calls. program: PyTorch code that runs, a function `program` of the inputs.
    output: what the back end made of it.
    """

    calls: str
    program: str
    output: str

    def __str__(self) -> str:
        return (
            f"--- NumPy calls\n{self.calls}\n\n--- tensor program\n{self.program}\n"
            f"--- back end\n{self.output}"
        )


def inspect(fn: Callable) -> Callable[..., list[SegmentText]]:
    """A function that calls `fn` (compiled or not) and gives the texts of its segments.

    The call is a real one, with all its effects, and compiles anew.

    >>> import numpy as np, np_compile
    >>> f = np_compile.compile(lambda x: np.sin(x) + 1, backend="eager")
    >>> print(np_compile.inspect(f)(np.zeros(3))[0].calls.splitlines()[-2])
    v2: float64[3] = np.add(v1, <int>)
    """
    compiled = compiled_of(fn)

    def call(*args: Any, **kwargs: Any) -> list[SegmentText]:
        if cupy_arrays.among(args, kwargs):
            return cupy_arrays.called(inspect(compiled.of_tensors()), None, args, kwargs)
        options = compiled._options
        outputs: dict[int, str] = {}

        def backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
            made, text = _with_text(options.backend, graph, example_inputs)
            outputs[id(graph)] = text
            return made

        if isinstance(options.backend, str):
            backend.__name__ = options.backend
        fresh = Options(backend, options.fullgraph, options.dynamic, options.tensors)
        fresh.name = options.name
        texts: dict[int, SegmentText] = {}

        def listen(event: str, node: Any, program: Any) -> None:
            if event == "segment" and id(program) not in texts:
                texts[id(program)] = SegmentText(
                    calls_text(node, program.live),
                    graph_text(program.graph),
                    outputs[id(program.graph)],
                )

        of_arrays: list[SegmentText] = []

        def instead(inner: Any) -> Callable:
            def call(*args: Any, **kwargs: Any) -> Any:
                of_arrays.extend(inspect(inner)(*args, **kwargs))

            return call

        if compiled._read(args, kwargs, instead) is not MISS and compiled._reading is not None:
            if of_arrays:
                return of_arrays
            return [_of_region(text) for text in compiled._reading.texts()]
        before, compiled._options = compiled._options, fresh
        try:
            compiled._run(args, kwargs, listen)
        finally:
            compiled._options = before
        return list(texts.values())

    return call


def _of_region(text: str) -> SegmentText:
    """A function that is compiled whole, with its loops: there is only C of it."""
    return SegmentText("# read from the source, with its loops", "# none", text)


def _with_text(
    backend: Any, graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
) -> tuple[Callable, str]:
    """Compile, and the source of what was made."""
    if backend == "native":
        return _native_text(graph, example_inputs)
    if backend != "inductor":
        name = backend if isinstance(backend, str) else getattr(backend, "__name__", repr(backend))
        return lookup(backend)(graph, example_inputs), (
            f"# the back end {name!r} runs the tensor program; it generates no source\n"
        )
    from torch._inductor import config as inductor_config
    from torch._inductor.graph import GraphLowering

    codes: list[str] = []
    with (
        mock.patch.object(GraphLowering, "save_output_code", codes.append),
        inductor_config.patch(force_disable_caches=True),
    ):
        made = lookup(backend)(graph, example_inputs)
    return made, "\n".join(codes)


def _native_text(
    graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
) -> tuple[Callable, str]:
    """The native back end's programs: loops, decisions, memory, C. With gradients, two."""
    from torch._functorch import config as aot_config

    from np_compile.errors import BackendError
    from np_compile.kernels.run.execute import Executable

    try:
        # Else the backward program would be made by the first call of `backward`.
        with aot_config.patch(force_non_lazy_backward_lowering=True):
            run: Any = lookup("native")(graph, example_inputs)
    except BackendError as e:
        return graph.forward, f"/* no kernels, the tensor program runs itself: {e} */\n"
    if getattr(run, "halves", None) is not None:
        run.halves.prepare()
    both = [getattr(run, "first", run), getattr(run, "second", None)]
    texts = [str(made) for made in both if isinstance(made, Executable)]
    if not texts:
        return run, "/* no kernels, the tensor program runs itself */\n"
    if len(texts) == 1:
        return run, texts[0]
    return run, f"/* forward */\n{texts[0]}\n/* backward */\n{texts[1]}"
