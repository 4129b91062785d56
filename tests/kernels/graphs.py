"""The graphs of compiled functions, and what a program of the loop IR has to do like them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

import np_compile
from np_compile.kernels.compile import compile_graph, target, targeting
from np_compile.kernels.frontend.translate import Translation
from np_compile.kernels.ir.check import check
from np_compile.kernels.ir.interpret import execute
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import Call, Program
from np_compile.kernels.passes.pipeline import Pass, stages
from np_compile.kernels.target import HOST, Gpu

RTOL = {
    torch.float16: 4e-3, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float64: 1e-12,
    torch.complex128: 1e-12,
}  # fmt: skip

Graph = tuple[torch.fx.GraphModule, list[torch.Tensor]]


# Passes do something to small arrays.
SMALL = replace(
    HOST,
    reduction_steps=2, reduction_parts=3, parallel_ns=0, chunk_ns=50, rolling_rows=1,
    rolling_reach=6, tile_side=2, tiled_bytes=0, unrolled_results=1, scatter_values=2,
    scatter_density=1, scatter_parts=3, staged_block=2, staged_widest=4, staged_group=2,
    aligned_iterations=2, region_elements=0, frame_elements=0, scan_float_steps=4, scan_steps=5,
    scan_parts=2, long_scan_parts=3, long_scan_steps=9, line_bytes=8, row_iterations=3,
    row_cycles=2,
)  # fmt: skip


# The same of a GPU.
SMALL_GPU = replace(
    Gpu(),
    processors=2, resident=8, block_threads=4, most_threads=8, row_threads=2, waves=2, warp=4,
    reduction_steps=2, unrolled_results=1, region_elements=0, frame_elements=0, scan_float_steps=4,
    scan_steps=5, scan_elements=3, line_bytes=8, private_bytes=8, shared_values=8,
)  # fmt: skip


def eager_passes() -> AbstractContextManager[None]:
    """Within the block, what is compiled is compiled for `SMALL`."""
    return targeting(SMALL)


def captured(f: Callable, *args: Any) -> list[Graph]:
    """The graphs of a call of the compiled function, each with copies of its inputs."""
    return traced(f, *args)[1]


def traced(f: Callable, *args: Any, **options: Any) -> tuple[Any, list[Graph]]:
    """The result of a call of the compiled function, and its graphs with copies of their inputs."""
    found: list[Graph] = []

    def backend(module: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable:
        def run(*tensors: torch.Tensor) -> Any:
            found.append((module, copy.deepcopy([t.detach() for t in tensors])))
            return module.forward(*tensors)

        return run

    return np_compile.compile(f, backend=backend, **options)(*args), found


def equal(got: list[Any], expected: list[Any], what: str) -> None:
    """Tensors are equal, floats nearly."""
    assert len(got) == len(expected)
    for x, y in zip(got, expected, strict=True):
        if not isinstance(y, torch.Tensor):
            assert x == y
            continue
        assert (x.dtype, x.shape) == (y.dtype, y.shape), what
        rtol = RTOL.get(y.dtype, 0)
        a, b = (t.resolve_conj().numpy() for t in (x, y))
        finite = np.abs(b[np.isfinite(b)]).astype(float)
        np.testing.assert_allclose(
            a, b, rtol=rtol, atol=rtol * finite.max(initial=0), err_msg=what, strict=True
        )


def preserved(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Program:
    """The scheduled program; after each pass it does to the inputs what the graph does. A pass that
    leaves the text as it was has left the program as it was."""
    wanted_inputs = copy.deepcopy(inputs)
    wanted = list(module.forward(*wanted_inputs))
    gpu = isinstance(target(), Gpu)
    translation = Translation(module.graph, partial(getattr, module), gpu=gpu)
    program = translation.program
    passes = [*stages(target())]
    last = len(passes) - 1
    for k, (step, stage) in enumerate(((lambda p, _: p, "statements"), *passes), -1):
        name = step.__name__ if k >= 0 else "the translation"
        before = str(program)
        program = step(program, target())
        check(program, stage)
        if not any(isinstance(s, Call) for s in program.steps):
            text = str(program)
            assert str(parse(text)) == text
            if -1 < k < last and text == before:
                continue
        for backwards in (False, True) if k == last else (False,):
            mine = copy.deepcopy(inputs)
            got = execute(program, translation.interface, mine, backwards)
            what = f"{'backwards ' * backwards}after {name}:\n{program}\n\nbefore:\n{before}"
            equal(got, wanted, what)
            equal(mine, wanted_inputs, what)
    return program


def compiled(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> None:
    """The C does what the graph does."""
    wanted_inputs, mine = copy.deepcopy(inputs), copy.deepcopy(inputs)
    wanted = list(module.forward(*wanted_inputs))
    made = compile_graph(module)
    got = made(*mine)
    equal(got, wanted, str(made.source.program))
    equal(mine, wanted_inputs, str(made.source.program))


def copied(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies with the strides of the originals, and memory of their own."""
    made = []
    for a in arrays:
        base = a.base if a.base is not None else a
        fresh = base.copy(order="K")
        offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        flat = fresh.ravel(order="K").view(np.uint8)
        made.append(np.ndarray(a.shape, a.dtype, flat.data, offset, a.strides))
    return made


def after(text: str, *passes: Pass) -> str:
    """The steps of a program after some passes, with axes named by their order in the text."""
    program = parse(text)
    for step in passes:
        program = step(program, target())
        check(program)
    lines = str(program).splitlines()[len(program.buffers) :]
    names: dict[str, str] = {}
    word = re.compile(r"\b[ijklmn]\d*\b")
    return "\n".join(
        word.sub(lambda m: names.setdefault(m[0], "ijklmnoabcdef"[len(names)]), line)
        for line in lines
    )
