"""The device that kernels are made for."""

from __future__ import annotations

import functools

import torch

from ..build.nvrtc import NoCuda, identity, supports
from ..target import Gpu


@functools.cache
def gpu(device: torch.device) -> Gpu:
    """A device, as the passes know it. NoCuda, if kernels cannot be made for it."""
    identity()
    if device.type != "cuda" or torch.version.hip is not None:
        raise NoCuda(f"{device.type} is no device of CUDA")
    facts = torch.cuda.get_device_properties(device)
    if not supports((facts.major, facts.minor)):
        raise NoCuda(f"{facts.name} is older than the kernels need")
    return Gpu(
        name=f"sm_{facts.major}{facts.minor}",
        processors=facts.multi_processor_count,
        resident=facts.max_threads_per_multi_processor,
        shared_bytes=getattr(facts, "shared_memory_per_block_optin", 48 << 10) - (8 << 10),
    )
