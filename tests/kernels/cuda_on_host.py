"""CUDA programs on the host: their text as C++ for the CPU, run by what runs them on a device.

The threads of a block take turns (`cuda_on_host.h`), in an order of ours. What each thread computes
and where it waits is as on a device; how fast memory is, and what launches cost, is not. A result
that depends on the order of turns is a race.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from np_compile.kernels import compile as kernels
from np_compile.kernels.build import cache
from np_compile.kernels.build.toolchain import compiler
from np_compile.kernels.run import on_gpu, scatter
from np_compile.kernels.run.execute import Source
from np_compile.kernels.target import Gpu

_HEAD = Path(__file__).with_suffix(".h")
# Fibers leave stacks by `longjmp`, which checks of the C library take for an error.
_OPTIONS = (
    *("-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-w", "-fPIC"),
    "-U_FORTIFY_SOURCE",
)
TURNS = (0, 1, 2)  # orders in which threads and blocks take turns


def _text(text: str, names: list[str]) -> str:
    """The C++ of a program, and of its kernels by number."""
    text = text.replace("extern __shared__ __align__(16) char shared[];", "")
    calls = "".join(f"static void call_{n}(void *m) {{ {n}(*(Memory *)m); }}\n" for n in names)
    table = ", ".join(f"call_{n}" for n in names)
    return (
        f'#include "{_HEAD}"\n{text}\n{calls}'
        f"static void (*const table[])(void *) = {{{table}}};\n"
        'extern "C" int run(int k, void *m, unsigned blocks, unsigned threads, int turns) {\n'
        "    return run_grid(table[k], m, blocks, threads, turns);\n}\n"
    )


class HostModules:
    """As `Modules`; the handle of a kernel is itself."""

    ready, seconds_left, took = True, 0.0, 0.0

    def __init__(self, text: str):
        self._names = re.findall(r"(\w+)\(const __grid_constant__", text)
        self._text = _text(text, self._names)

    def functions(self, shared: Mapping[str, int], aligned: bool) -> dict[str, Any]:
        library = _built(self._text, aligned)
        return {name: (library.run, self._names.index(name)) for name in shared}


def _built(text: str, aligned: bool) -> ctypes.CDLL:
    options = (*_OPTIONS, *(("-DBYTES=16",) if aligned else ()))
    words = "\0".join((text, _HEAD.read_text(encoding="utf-8"), *options))
    made = Path(cache.folder(), f"host_{hashlib.sha256(words.encode()).hexdigest()[:32]}.so")
    if not made.exists():
        own = os.getpid()  # another process may build the same
        source, unready = made.with_suffix(f".{own}.cpp"), made.with_suffix(f".{own}.tmp")
        source.write_text(text, encoding="utf-8")
        command = ["g++", *options, "-shared", "-o", str(unready), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + text
        source.unlink()
        unready.replace(made)
    library = ctypes.CDLL(str(made))
    library.run.argtypes = [ctypes.c_int, ctypes.c_void_p] + [ctypes.c_uint] * 2 + [ctypes.c_int]
    return library


class _Torch:
    """The module torch, where the host is the device."""

    cuda = SimpleNamespace(current_stream=lambda _: SimpleNamespace(synchronize=lambda: None))

    @staticmethod
    def zeros(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        return torch.zeros(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@contextmanager
def on_host(turns: int) -> Iterator[None]:
    """Within the block `OnGpu` runs `HostModules` on tensors in host memory."""

    def launch(launches: list[tuple], stream: int) -> None:
        for (run, number), argument, blocks, threads, _ in launches:
            assert run(number, argument, blocks, threads, turns) == 0, "threads wait for ever"

    def empty(shape: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(shape, strides, dtype=dtype)

    def modules(text: str, *_: Any) -> HostModules:
        return HostModules(text)

    with (
        mock.patch.object(scatter, "launch", launch),
        mock.patch.object(scatter, "launches_of", list),
        mock.patch.object(scatter, "raw_stream", return_value=0),
        mock.patch.object(scatter, "Modules", modules),
        mock.patch.object(on_gpu, "launch", launch),
        mock.patch.object(on_gpu, "launches_of", list),
        mock.patch.object(on_gpu, "current_device", return_value=0),
        mock.patch.object(on_gpu, "raw_stream", return_value=0),
        mock.patch.object(on_gpu, "empty_strided_cuda", empty),
        mock.patch.object(on_gpu, "torch", _Torch()),
    ):
        yield


def executable(source: Source, module: torch.fx.GraphModule) -> on_gpu.OnGpu:
    """What runs a program, within `on_host`."""
    host = torch.device("cpu")
    return on_gpu.OnGpu(source, module.forward, host, HostModules(source.text))  # type: ignore[arg-type]


@contextmanager
def compiling_for(machine: Gpu, turns: int = 0) -> Iterator[None]:
    """Within the block the native back end makes CUDA programs that run on the host."""

    def compile_graph(module: torch.fx.GraphModule, device: Any = None) -> on_gpu.OnGpu:
        source = kernels.generate(module.graph, partial(getattr, module))
        return executable(source, module)

    with (
        on_host(turns),
        kernels.targeting(machine),
        mock.patch.object(kernels, "compile_graph", compile_graph),
        mock.patch.object(on_gpu, "modules_of", lambda source, _: HostModules(source.text)),
    ):
        yield


def available() -> bool:
    """Whether there is a compiler for the text."""
    return compiler().kind == "gcc"
