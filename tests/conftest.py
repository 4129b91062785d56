"""Settings of the test run: hypothesis profiles, the CUDA marker."""

from __future__ import annotations

import gc
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

# Before torch starts its threads: several test processes share the cores, and threads that spin
# while they wait for one that does not run cost a hundred times the work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Calls wait for the compiler, so that what a test sees does not depend on how long that takes.
os.environ.setdefault("NP_COMPILE_COMPILE_IN", "call")

import pytest
import torch
from hypothesis import HealthCheck, settings

from np_compile import api, config
from np_compile.capture import capture, record, run, segments
from np_compile.capture.policy import budget, choice
from np_compile.reader import dispatch
from np_compile.replay import calls, keeper

from .support import Clock

# A first example compiles something, so deadlines and timing checks say nothing.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("dev", max_examples=30, deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", max_examples=15, deadline=None, suppress_health_check=_QUIET, derandomize=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


# Rooms with many parameters for each test: dtypes, or such that each costs a run of the compiler.
_PARTED = (
    *("capture", "kernels", "lowering", "reader", "replay", "shim"),
    *("test_benchmarks.py", "test_whole_programs.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="K/N",
        type=_part,
        default=(0, 1),
        help="of the parameters of each test of most rooms, every Nth from the Kth on",
    )


def _part(text: str) -> tuple[int, int]:
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and int(n)):
        raise ValueError("a part is K/N, of whole numbers")
    return int(k) % int(n), int(n)


def _chosen(items: list[pytest.Item], part: int, parts: int) -> set[pytest.Item]:
    """The items of a part: of each test of the rooms above some parameters, one at least."""
    chosen = set(items)
    alike: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        room = item.path.relative_to(Path(__file__).parent).parts[0]
        if room in _PARTED and hasattr(item, "callspec"):
            on_device = item.get_closest_marker("cuda") is not None  # of which others are skipped
            alike.setdefault((item.nodeid.partition("[")[0], on_device), []).append(item)
    for (test, _), of in alike.items():
        n = min(parts, len(of))
        chosen -= set(of)
        chosen |= set(of[(part + zlib.crc32(test.encode())) % n :: n])
    return chosen


@pytest.hookimpl(trylast=True)  # after those that markers leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the part; skip the tests marked `cuda` where there is no CUDA device."""
    part, parts = config.getoption("--part")
    if parts > 1:
        chosen = _chosen(items, part, parts)
        config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
        items[:] = [x for x in items if x in chosen]
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if item.get_closest_marker("cuda") is not None:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def _calls_from_c() -> None:
    """The C that makes calls is there before a test that stands in for the compiler: it is asked
    for once in a process."""
    calls.available()
    dispatch._making().result().get()


@pytest.fixture
def recorded() -> Iterator[None]:
    """Loops are recorded as they run, also where they could be read."""
    with config.patch(loops="recorded"):
        yield


@pytest.fixture(autouse=True)
def _objects_of_its_own() -> Iterator[None]:
    """A look through all objects of the process leaves out what there was before a test: all tests
    that are collected, among others, which makes it slow."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _accounts_of_their_own():
    """What other tests have compiled of the same code is no matter of a test."""
    budget._of_code.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What calls, and recordings, are timed by goes as a test says. It begins now, as C ends pauses
    by its own clock."""
    made = Clock(time.monotonic())
    for module in (api, budget, choice, keeper, run):
        monkeypatch.setattr(module, "time", made)
    for module in (capture, record, segments):
        monkeypatch.setattr(module, "_clock", made.perf_counter)
    return made


@pytest.fixture
def without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CuPy is imported its arrays are looked for, and Python makes more of the calls."""
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
