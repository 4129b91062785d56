"""Kernels of a region's loops: what they take, and what is known of their runs."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_float, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from np_compile.kernels.build.nvrtc import Modules
from np_compile.kernels.target import Gpu

from .kernels import MOST_BYTES, Kernel


class _Pair(ctypes.Structure):
    _fields_ = (("r", c_double), ("i", c_double))


class _ShortPair(ctypes.Structure):
    _fields_ = (("r", c_float), ("i", c_float))


class _Sum(ctypes.Structure):
    _fields_ = (("all", c_int64), ("part", c_int64))


_TYPES: dict[str, Any] = {
    "i64": c_int64, "i32": c_int32, "i16": ctypes.c_int16, "i8": ctypes.c_int8,
    "u64": ctypes.c_uint64, "u32": ctypes.c_uint32, "u16": ctypes.c_uint16, "u8": ctypes.c_uint8,
    "f64": c_double, "f32": c_float, "int": c_int, "c128": _Pair, "c64": _ShortPair, "Sum": _Sum,
    "f16": ctypes.c_uint16,
}  # fmt: skip


@dataclass
class Offer:
    """A kernel of a region, and what is known of it. why: why it did not run on a device when it
    was last asked for; ran: how often it did. gain: seconds that it would have gained while it was
    not compiled. taken: the least seconds of its runs, by the logarithm of their number of
    iterations."""

    kernel: Kernel
    why: str = ""
    ran: int = 0
    gain: float = 0.0
    taken: dict[int, float] = field(default_factory=dict)
    refused: bool = False
    _made: dict[torch.device, Any] = field(default_factory=dict)
    _functions: dict[torch.device, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.why = self.kernel.why
        self.refused = bool(self.why)

    @cached_property
    def given(self) -> Any:
        """The structure that the loop takes from around; None if it is too large."""
        rows = [(x, _type(ctype)) for x, ctype in self.kernel.fields]
        made = type("Given", (ctypes.Structure,), {"_fields_": rows})
        return made if ctypes.sizeof(made) <= MOST_BYTES else None

    @cached_property
    def argument(self) -> Any:
        """What the kernel takes."""
        more = [("from", c_int64), ("to", c_int64), ("across", c_int64), ("stop", c_void_p)]
        rows = [("given", self.given), *more, ("flag", c_void_p), ("sums", c_void_p)]
        return type("Memory", (ctypes.Structure,), {"_fields_": rows})

    @cached_property
    def pointers(self) -> list[str]:
        """The fields that are addresses of what it touches."""
        return [x for x, t in self.kernel.fields if "*" in t and x in self.kernel.touched]

    def is_known(self, device: torch.device, machine: Gpu) -> bool:
        """Whether NVRTC has compiled it before."""
        return device in self._functions or self._modules(device, machine).is_known

    def _modules(self, device: torch.device, machine: Gpu) -> Any:
        if device not in self._made:
            self._made[device] = Modules(self.kernel.text, device.index or 0, machine.name)
        return self._made[device]

    def function(self, device: torch.device, machine: Gpu) -> Any:
        """The handle of its kernel on a device. KernelsFailed: there is none."""
        if device not in self._functions:
            made = self._modules(device, machine).functions({"kernel_0": 0}, False)
            self._functions[device] = made["kernel_0"]
        return self._functions[device]


def _type(ctype: str) -> Any:
    return c_void_p if "*" in ctype else _TYPES[ctype.replace("const", "").strip()]
