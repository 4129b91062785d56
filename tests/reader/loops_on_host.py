"""Loops on a device, where there is none: kernels of the reader's loops are compiled for the host,
and their threads take turns in an order of ours. Arrays "on the device" are memory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from np_compile.kernels.target import Gpu
from np_compile.reader import offers, offload

from ..kernels.cuda_on_host import HostModules

HOST = torch.device("cpu")
MACHINE = Gpu(processors=2, resident=256)  # so that a thread has several iterations


class Unknown(HostModules):
    """Kernels that nobody has compiled before."""

    is_known = False


@contextmanager
def device(turns: int = 0, always: bool = True) -> Iterator[None]:
    """Within the block loops may go to the host as if it were a device; those that can do, if
    `always`."""

    def launch(rows: list[tuple], stream: int) -> None:
        for (run, number), argument, blocks, threads, _ in rows:
            assert run(number, argument, blocks, threads, turns) == 0

    @contextmanager
    def on_device(device: torch.device) -> Iterator[int]:
        yield 0

    with (
        mock.patch.object(offers, "Modules", lambda text, *_: Unknown(text)),
        mock.patch.object(offload, "launch", launch),
        mock.patch.object(offload, "launches_of", list),
        mock.patch.object(offload, "on_device", on_device),
        mock.patch.object(offload, "serves", return_value=True),
        mock.patch.object(offload, "machine_of", return_value=MACHINE),
        mock.patch.object(offload, "ALWAYS", always),
    ):
        yield


def copied(to: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """As `transfers.copy`."""
    return to.copy_(given)


@contextmanager
def away(turns: int = 0) -> Iterator[offload.Offload]:
    """Within the block regions that are called have their loops on the device."""
    with device(turns), offload.on(HOST, copied) as made:
        yield made


def loops_of(fast: Any) -> tuple[list[int], dict[int, str]]:
    """The lines of a compiled function's loops that ran on a device, and why others did not."""
    read = fast._reading if hasattr(fast, "_reading") else fast
    regions = [region for known in read._regions.values() for region in known]
    offers = [offer for region in regions for offer in region.offers]
    ran = sorted({offer.kernel.line for offer in offers if offer.ran})
    return ran, {offer.kernel.line: offer.why for offer in offers if not offer.ran}
