"""The CUDA driver, as far as programs on a GPU need it: modules, launches, graphs.

torch has loaded it. A call here takes the context that is current, which is torch's: it is there
once torch has worked on the device in this thread.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_uint, c_void_p
from pathlib import Path
from typing import Any

import torch

from . import library
from .structures import declarations
from .toolchain import CompileFailed, NoCompiler

_NAME = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_ASIDE = 1  # CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class DriverError(RuntimeError):
    """What the driver says."""


class Launch(ctypes.Structure):
    """A launch of a kernel that takes one argument. argument: the address of that."""

    _fields_ = (
        ("function", c_void_p), ("argument", c_void_p), ("blocks", c_uint), ("threads", c_uint),
        ("shared", c_uint),
    )  # fmt: skip


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(_NAME)


def _call(name: str, *arguments: Any) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise _error(name, code)


def _error(name: str, code: int) -> DriverError:
    text = c_char_p()
    _driver().cuGetErrorString(code, byref(text))
    return DriverError(f"CUDA: {(text.value or b'unknown error').decode()} ({code}, {name})")


class Module:
    """Loaded kernels, on the current device; unloaded with it."""

    def __init__(self, binary: bytes):
        self._handle = c_void_p()
        _enter()
        _call("cuModuleLoadData", byref(self._handle), binary)

    def function(self, name: str) -> int:
        """The handle of a kernel."""
        found = c_void_p()
        _call("cuModuleGetFunction", byref(found), self._handle, name.encode())
        return found.value or 0

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:  # which outlives `sys`
        if not ends() and self._handle:
            _driver().cuModuleUnload(self._handle)


def allow_shared(function: int, size: int) -> None:
    """Have blocks of a kernel share so many bytes, which are more than each may."""
    _call("cuFuncSetAttribute", c_void_p(function), _MOST_SHARED, size)


def _enter() -> None:
    """Make torch's context the current one of this thread, if none is."""
    context = c_void_p()
    _call("cuCtxGetCurrent", byref(context))
    if not context:
        torch.cuda.set_device(torch.cuda.current_device())


def launches_of(rows: list[tuple]) -> Any:
    """Launches as an array of C: handle, argument, blocks, threads, shared bytes of each."""
    return (Launch * len(rows))(*[Launch(*row) for row in rows])


def launch(launches: Any, stream: int) -> None:
    """Launch kernels one after the other on a stream of the current device."""
    if not launches:
        return
    run = _launcher()
    code = run(launches, len(launches), stream)
    if code == _NO_CONTEXT:  # at the first one, in a thread that has done nothing on a device
        _enter()
        code = run(launches, len(launches), stream)
    if code:
        raise _error("cuLaunchKernel", code)


def launch_address() -> int:
    """The address of `npc_launches`. CompileFailed, NoCompiler: there is none."""
    return ctypes.cast(_compiled().npc_launches, c_void_p).value or 0


def source() -> str:
    """The C text of `npc_launches`."""
    text = Path(__file__).with_name("launches.c").read_text(encoding="utf-8")
    return "typedef long i64;\n" + declarations(Launch) + text


@functools.cache
def _compiled() -> ctypes.CDLL:
    made = library.load(source(), name="launches")
    address = ctypes.cast(_driver().cuLaunchKernel, c_void_p)
    c_void_p.in_dll(made, "npc_launch_kernel").value = address.value
    return made


@functools.cache
def _launcher() -> Callable[[Any, int, int], int]:
    """`npc_launches`, or the same in Python where there is no C compiler."""
    try:
        run = _compiled().npc_launches
    except (CompileFailed, NoCompiler):
        return _one_by_one
    run.argtypes = [c_void_p, ctypes.c_int64, ctypes.c_int64]
    run.restype = ctypes.c_int
    return run  # type: ignore[no-any-return]


def _one_by_one(launches: Any, count: int, stream: int) -> int:
    """`npc_launches`."""
    begin = _driver().cuLaunchKernel
    for x in launches:
        parameters = c_void_p(x.argument)
        code = begin(
            c_void_p(x.function), x.blocks, 1, 1, x.threads, 1, 1, x.shared, c_void_p(stream),
            byref(parameters), None,
        )  # fmt: skip
        if code:
            return int(code)
    return 0


class Graph:
    """Launches that the host starts at once."""

    def __init__(self, launches: Any):
        self._made = c_void_p()
        with _captured(launches) as graph:
            _call("cuGraphInstantiateWithFlags", byref(self._made), graph, ctypes.c_ulonglong(0))

    def start(self, stream: int) -> None:
        """Start them on a stream."""
        code = _driver().cuGraphLaunch(self._made, c_void_p(stream))
        if code:
            raise _error("cuGraphLaunch", code)

    def __del__(self) -> None:
        if not sys.is_finalizing() and self._made:
            _driver().cuGraphExecDestroy(self._made)


@contextmanager
def _captured(launches: Any) -> Iterator[c_void_p]:
    """A graph of launches, as the driver has it."""
    stream, graph = c_void_p(), c_void_p()
    _enter()
    _call("cuStreamCreate", byref(stream), _ASIDE)
    try:
        _call("cuStreamBeginCapture_v2", stream, _RELAXED)
        try:
            launch(launches, stream.value or 0)
        finally:
            _call("cuStreamEndCapture", stream, byref(graph))
        yield graph
    finally:
        if graph:
            _driver().cuGraphDestroy(graph)
        _driver().cuStreamDestroy_v2(stream)
