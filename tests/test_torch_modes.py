"""Modes of torch's around a call, in which others may have begun."""

from __future__ import annotations

import torch
from np_compile.shim._devices import default_device
from torch.overrides import TorchFunctionMode

from np_compile.devices import beneath, count_of_modes, on_the_host


def test_a_device_beneath_modes_that_began_later():
    host = torch.device("cpu")
    with torch.device("meta"):
        outer = count_of_modes()
        with TorchFunctionMode():
            with beneath(outer):
                host.__enter__()
            assert default_device().type == "cpu"
        assert default_device().type == "cpu"  # the mode has ended, and not the device
        with on_the_host():
            assert count_of_modes() == 0
        with beneath(outer + 1):
            host.__exit__(None, None, None)
        assert default_device().type == "meta"
    assert count_of_modes() == 0
