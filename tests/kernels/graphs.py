"""The graphs of compiled functions, and what a program of the loop IR has to do like them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import np_compile
from np_compile.kernels.analysis import cost
from np_compile.kernels.compile import compile_graph
from np_compile.kernels.frontend.translate import Translation
from np_compile.kernels.ir.check import check
from np_compile.kernels.ir.interpret import execute
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import Call, Program
from np_compile.kernels.passes import (
    index_staging,
    reduction_splitting,
    region_splitting,
    rolling_buffer,
    scan_blocking,
    scatter_privatization,
    schedule,
    tile,
    unroll,
)
from np_compile.kernels.passes.pipeline import PASSES, stages
from np_compile.kernels.targets.c import loops

RTOL = {
    torch.float16: 4e-3, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float64: 1e-12,
    torch.complex128: 1e-12,
}  # fmt: skip

Graph = tuple[torch.fx.GraphModule, list[torch.Tensor]]


# Sizes from which on passes do something, so small that small arrays have them.
_SMALL = (
    (reduction_splitting, "_STEPS", 2), (reduction_splitting, "_PARTS", 3),
    (cost, "_THRESHOLD", 0), (cost, "_CHUNK", 50), (rolling_buffer, "_ROWS", 1),
    (rolling_buffer, "_PEELED", 6), (tile, "_SIDE", 2), (tile, "_LARGE", 0),
    (unroll, "_RESULTS", 1), (scatter_privatization, "_VALUES", 2),
    (scatter_privatization, "_DENSE", 1), (scatter_privatization, "_PARTS", 3),
    (index_staging, "_BLOCK", 2), (index_staging, "_WIDEST", 4), (index_staging, "_GROUP", 2),
    (loops, "_LONG", 2), (region_splitting, "_FEWEST", 0), (region_splitting, "_MANY", 0),
    (scan_blocking, "_SLOW", 4), (scan_blocking, "_QUICK", 5), (scan_blocking, "_FEW", 2),
    (scan_blocking, "_MANY", 3), (scan_blocking, "_LONG", 9), (scan_blocking, "_LINE", 8),
    (schedule, "_ROWS", 3), (schedule, "_HEAVY", 2),
)  # fmt: skip


@contextmanager
def eager_passes() -> Iterator[None]:
    """Within the block, passes change small programs too."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in _SMALL:
            assert hasattr(module, name)
            patch.setattr(module, name, value)
        yield


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
    """The scheduled program; after each pass it does to the inputs what the graph does."""
    wanted_inputs = copy.deepcopy(inputs)
    wanted = list(module.forward(*wanted_inputs))
    translation = Translation(module.graph, partial(getattr, module))
    program = translation.program
    last = len(PASSES) - 1
    for k, (step, stage) in enumerate(((lambda p: p, "statements"), *stages()), -1):
        name = step.__name__ if k >= 0 else "the translation"
        before = str(program)
        program = step(program)
        check(program, stage)
        if not any(isinstance(s, Call) for s in program.steps):
            assert str(parse(str(program))) == str(program)
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


def after(text: str, *passes: Callable[[Program], Program]) -> str:
    """The steps of a program after some passes, with axes named by their order in the text."""
    program = parse(text)
    for step in passes:
        program = step(program)
        check(program)
    lines = str(program).splitlines()[len(program.buffers) :]
    names: dict[str, str] = {}
    word = re.compile(r"\b[ijklmn]\d*\b")
    return "\n".join(
        word.sub(lambda m: names.setdefault(m[0], "ijklmnoabcdef"[len(names)]), line)
        for line in lines
    )
