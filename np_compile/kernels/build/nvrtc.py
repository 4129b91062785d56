"""CUDA to loaded kernels: NVRTC, by CuPy's bindings, and the disk cache of what it made.

CuPy takes a tenth of a second to import: only what NVRTC has to compile waits for it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import time
from collections.abc import Mapping
from typing import Any

import torch

from np_compile.errors import BackendError

from . import cache, driver
from .publish import SEAL_LENGTH, seal

# Products and sums are rounded apart, as NumPy's are.
_OPTIONS = ("-std=c++17", "--fmad=false")
_OLDEST = (7, 0)
_PLAIN_SHARED = 48 << 10  # bytes that a block may share without asking
_NVRTC = "cupy_backends.cuda.libs.nvrtc"


class NoCuda(Exception):
    """Why kernels cannot be made for a device."""


class KernelsFailed(BackendError):
    """NVRTC refuses a program."""


@functools.cache
def identity() -> str:
    """What tells this CuPy from others, without its import. NoCuda without one."""
    try:
        found = importlib.util.find_spec(_NVRTC)
    except ModuleNotFoundError:  # the package that it is in
        found = None
    if found is None or found.origin is None:
        raise NoCuda("CuPy is not installed; `pip install cupy-cuda13x`")
    file = os.stat(found.origin)
    return f"{found.origin} {file.st_size} {file.st_mtime_ns}"


def _nvrtc() -> Any:
    """CuPy's bindings. KernelsFailed, where they cannot be loaded."""
    try:
        return importlib.import_module(_NVRTC)
    except Exception as e:  # an ImportError, or that of a driver that does not fit
        raise KernelsFailed(f"CuPy's NVRTC cannot be loaded ({type(e).__name__}: {e})") from e


def supports(capability: tuple[int, int]) -> bool:
    """Whether a device of that compute capability takes the kernels."""
    return capability >= _OLDEST


def _place(text: str, options: tuple[str, ...]) -> tuple[str, str]:
    """The cache's folder, and the file of a program's binary in it."""
    words = "\0".join((text, *options, identity()))
    path = cache.folder()
    return path, os.path.join(path, f"cuda_{hashlib.sha256(words.encode()).hexdigest()[:32]}.cubin")


def compiled(text: str, options: tuple[str, ...]) -> bytes:
    """The binary of a program. KernelsFailed if NVRTC refuses it."""
    path, place = _place(text, options)
    if cache.find(place) and (found := cache.read(place)) is not None:
        return found[:-SEAL_LENGTH]
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(text, "program.cu", (), ())
    try:
        nvrtc.compileProgram(program, [*_OPTIONS, *options])
        made: bytes = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as e:
        raise KernelsFailed(f"NVRTC: {nvrtc.getProgramLog(program)[:2000]}") from e
    finally:
        nvrtc.destroyProgram(program)
    try:
        cache.write(place, made + seal(made))
        cache.sweep(path)
    except OSError:  # it is compiled again in the next process
        pass
    return made


class Modules:
    """The kernels of a program on one device of an architecture, compiled when they are first asked
    for.

    took: seconds that this took.
    """

    ready = True  # nothing goes on beside the program
    seconds_left = 0.0

    def __init__(self, text: str, device: int, architecture: str):
        self._text, self._device, self._architecture = text, device, architecture
        self._loaded: dict[bool, tuple[Any, dict[str, int]]] = {}
        self.took = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the cache has the binary, for pointers that are not aligned."""
        return cache.find(_place(self._text, (f"-arch={self._architecture}",))[1])

    def functions(self, shared: Mapping[str, int], aligned: bool) -> dict[str, int]:
        """The handles of kernels by name. shared: the bytes that a block of each shares. aligned:
        for pointers to multiples of 16 bytes."""
        if aligned in self._loaded:
            return self._loaded[aligned][1]
        start = time.perf_counter()
        options = (f"-arch={self._architecture}", *(("-DBYTES=16",) if aligned else ()))
        binary = compiled(self._text, options)
        with torch.cuda.device(self._device):
            module = driver.Module(binary)
            found = {name: module.function(name) for name in shared}
            for name, size in shared.items():
                if size > _PLAIN_SHARED:
                    driver.allow_shared(found[name], size)
        self._loaded[aligned] = module, found  # the module owns the kernels
        self.took += time.perf_counter() - start
        return found
