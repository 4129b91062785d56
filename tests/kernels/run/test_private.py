"""What the kernels take from torch and NumPy beside what these promise."""

from __future__ import annotations

import ctypes

import numpy as np
import torch

from np_compile.kernels.run import private


def test_an_array_object_begins_with_the_address_of_its_data() -> None:
    for a in (np.arange(6.0), np.arange(6.0)[2:], np.zeros((2, 3), "c8").T):
        found = ctypes.c_void_p.from_address(id(a) + private.DATA)
        assert found.value == a.__array_interface__["data"][0]


def test_new_tensors_are_those_of_torch() -> None:
    for new in (private.empty_strided, private._empty_strided):
        t = new((2, 3), (1, 2), torch.float32)
        assert (t.shape, t.stride(), t.dtype) == ((2, 3), (1, 2), torch.float32)
        assert t.device.type == "cpu"
