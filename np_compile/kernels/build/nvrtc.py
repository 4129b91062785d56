"""CUDA to loaded kernels: NVRTC through CuPy, which keeps what it compiled on disk."""

from __future__ import annotations

import importlib
import time
from typing import Any

from np_compile.errors import BackendError

# Products and sums are rounded apart, as NumPy's are.
_OPTIONS = ("-std=c++17", "--fmad=false")
_OLDEST = (7, 0)


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


class Modules:
    """The kernels of a program on one device, compiled when they are first asked for.

    took: seconds that this took.
    """

    ready = True  # nothing goes on beside the program
    seconds_left = 0.0

    def __init__(self, text: str, device: int):
        self._text, self._device = text, device
        self._loaded: dict[bool, Any] = {}
        self.took = 0.0

    def functions(self, shared: dict[str, int], aligned: bool) -> list[int]:
        """The handles of kernels by name, with the bytes that a block of each shares. aligned: for
        pointers to multiples of 16 bytes."""
        package = cupy()
        start = time.perf_counter()
        options = (*_OPTIONS, "-DBYTES=16") if aligned else _OPTIONS
        try:
            with package.cuda.Device(self._device):
                module = package.RawModule(code=self._text, options=options, backend="nvrtc")
                found = {name: module.get_function(name) for name in shared}
                for name, size in shared.items():
                    if size > _PLAIN_SHARED:
                        found[name].max_dynamic_shared_size_bytes = size
                handles = [k.kernel.ptr for k in found.values()]
        except package.cuda.compiler.CompileException as e:
            raise KernelsFailed(f"NVRTC: {str(e)[:2000]}") from e
        self._loaded[aligned] = module  # which owns the kernels
        self.took += time.perf_counter() - start
        return handles


_PLAIN_SHARED = 48 << 10  # bytes that a block may share without asking
