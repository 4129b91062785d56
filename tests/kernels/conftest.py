"""Fixtures of the native back end's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from np_compile import config

_CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.cuda,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ],
)


_HOST_ONLY = (
    "test_torchs_operators_write_through_views",  # which it has in host memory
    "test_powers_by_real_numbers", "test_every_ufunc_of_special_complex_numbers",  # NaN's sign
)  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What whole programs do is tested for each target."""
    module, name = metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__
    if module.startswith("test_native_") and name not in _HOST_ONLY:
        metafunc.parametrize("_target", ["c", _CUDA], indirect=True)


@pytest.fixture(autouse=True)
def _target(request: pytest.FixtureRequest) -> Iterator[None]:
    """The target that programs are compiled for: on a device, as their arrays are there."""
    with torch.device("cuda") if getattr(request, "param", "c") == "cuda" else nullcontext():
        yield


@pytest.fixture(autouse=True)
def _debug() -> Iterator[None]:
    """Each program is checked after each pass."""
    with config.patch(debug=1):
        yield


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """pytest takes a folder of that name for one of built files."""
    return False if collection_path.name == "build" else None
