"""CUDA to loaded kernels: NVRTC, by CuPy's bindings, and the disk cache of what it made."""

from __future__ import annotations

import hashlib
import importlib
import os
import time
from collections.abc import Mapping
from typing import Any

from np_compile.errors import BackendError

from . import cache
from .publish import SEAL_LENGTH, seal

# Products and sums are rounded apart, as NumPy's are.
_OPTIONS = ("-std=c++17", "--fmad=false")
_OLDEST = (7, 0)
_PLAIN_SHARED = 48 << 10  # bytes that a block may share without asking
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class NoCuda(Exception):
    """Why kernels cannot be made for a device."""


class KernelsFailed(BackendError):
    """NVRTC refuses a program."""


def cupy() -> Any:
    """The package. NoCuda without it."""
    try:
        return importlib.import_module("cupy")
    except Exception as e:  # an ImportError, or that of a driver that does not fit
        raise NoCuda(
            f"CuPy cannot be imported ({type(e).__name__}); `pip install cupy-cuda13x`"
        ) from e


def supports(capability: tuple[int, int]) -> bool:
    """Whether a device of that compute capability takes the kernels."""
    return capability >= _OLDEST


def compiled(text: str, options: tuple[str, ...]) -> bytes:
    """The binary of a program. KernelsFailed if NVRTC refuses it."""
    nvrtc = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
    words = "\0".join((text, *options, str(nvrtc.getVersion())))
    path = cache.folder()
    place = os.path.join(path, f"cuda_{hashlib.sha256(words.encode()).hexdigest()[:32]}.cubin")
    if cache.find(place) and (found := cache.read(place)) is not None:
        return found[:-SEAL_LENGTH]
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

    def functions(self, shared: Mapping[str, int], aligned: bool) -> dict[str, int]:
        """The handles of kernels by name. shared: the bytes that a block of each shares. aligned:
        for pointers to multiples of 16 bytes."""
        if aligned in self._loaded:
            return self._loaded[aligned][1]
        cuda = cupy().cuda
        start = time.perf_counter()
        options = (f"-arch={self._architecture}", *(("-DBYTES=16",) if aligned else ()))
        binary = compiled(self._text, options)
        with cuda.Device(self._device):
            module = cuda.function.Module()
            module.load(binary)
            found = {name: module.get_function(name).ptr for name in shared}
            for name, size in shared.items():
                if size > _PLAIN_SHARED:
                    cuda.driver.funcSetAttribute(found[name], _MOST_SHARED, size)
        self._loaded[aligned] = module, found  # the module owns the kernels
        self.took += time.perf_counter() - start
        return found
