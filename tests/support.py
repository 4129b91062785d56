"""Comparing a compiled function with the plain function, in everything that a caller can see.

`check` is the one entry point of the capture tests: it runs both on equal copies of the arguments,
and compares results, types, structure, changed arguments, aliasing, printed text and exceptions.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import os
import time
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch

import np_compile
from np_compile.backends import lookup
from np_compile.capture.policy.budget import Budget
from np_compile.kernels.build import beside, toolchain
from np_compile.made import Made

RTOL = {"e": 2e-3, "f": 1e-6, "d": 1e-12, "F": 1e-6, "D": 1e-12}


def thorough(*values: Any) -> list[Any]:
    """Parameters that only `pytest -m thorough` runs: what they are for, others show each time."""
    return [pytest.param(v, marks=pytest.mark.thorough) for v in values]


def first(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Parameters of which these run each time, and the others with `pytest -m thorough`."""
    return [v if v in kept else thorough(v)[0] for v in values]


def examples(count: int) -> int:
    """How many examples hypothesis tries: where `CI` is set, as few as show each kind."""
    return max(count // 3, 6) if os.environ.get("CI") else count


def less_optimized() -> tuple:
    """The table of the compiler's flags, for two thirds of the time that it takes."""
    (level, *where), *others = toolchain.FLAGS
    assert level == "-O3"
    return (("-O1", *where), *others)


class Counting:
    """A back end that counts its compiles."""

    def __init__(self, backend: Any = "eager"):
        self._make = lookup(backend)
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
        self.count += 1
        return self._make(graph, example_inputs)


def compiled(f: Callable, backend: Any = "eager", **options: Any) -> tuple[Callable, Counting]:
    """The compiled function, and the counter of its compiles."""
    counter = Counting(backend)
    return np_compile.compile(f, backend=counter, **options), counter


def counted_nodes(fast: Any) -> int:
    """How many calls are recorded in the trees of a compiled function."""
    open_ = list(fast._options.roots.values())
    count = 0
    while open_:
        node = open_.pop()
        count += len(node.next)
        open_ += node.next.values()
    return count


# -- time --------------------------------------------------------------------------------------


class Clock:
    """Stands in for the module `time`, see the fixture `clock`. Seconds go by as a test says, and
    so many at each look. worked: those in which this thread had the processor."""

    def __init__(self, now: float, look: float = 1e-9):
        self.now, self.worked, self.look = now, 0.0, look

    def passes(self, seconds: float, worked: float | None = None) -> None:
        """Let so many go by. worked: fewer where others had the processor meanwhile."""
        self.now += seconds
        self.worked += seconds if worked is None else worked

    def perf_counter(self) -> float:
        self.passes(self.look)
        return self.now

    def monotonic_ns(self) -> int:
        return int(self.perf_counter() * 1e9)

    def thread_time(self) -> float:
        return self.worked


def lasts(
    kind: type, name: str, seconds: float, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a method does takes so many seconds longer, by the clock."""
    method = getattr(kind, name)

    def longer(*args: Any, **kwargs: Any) -> Any:
        clock.passes(seconds)
        return method(*args, **kwargs)

    monkeypatch.setattr(kind, name, longer)


def lasts_plainly(seconds: float, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that run as they stand, and are timed, take so many seconds longer, by the clock."""
    timed = Budget.timed

    def longer(budget: Budget, function: Callable, *args: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            clock.passes(seconds)
            return function(*args, **kwargs)

        return timed(budget, called, *args)

    monkeypatch.setattr(Budget, "timed", longer)


def wait_for(done: Callable[[], Any]) -> None:
    """Wait for what another thread or process does, however long a busy machine takes for it."""
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end, "it has not come"
        time.sleep(1e-3)


def wait_for_workers() -> None:
    """Wait until nothing is compiled beside the program."""
    wait_for(lambda: not beside._workers.threads)


# -- copies of arguments -----------------------------------------------------------------------


def _owner(a: np.ndarray) -> np.ndarray:
    while True:
        base = a.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided puts an object of its own between
        if not isinstance(base, np.ndarray):
            return a
        a = base


class Copier:
    """Copies of nested arguments: views stay views of one copied memory, flags and strides stay."""

    def __init__(self, change: Callable[[np.ndarray], np.ndarray] | None = None):
        self.change = change
        self.memo: dict[int, Any] = {}
        self.keep: list[Any] = []

    def array(self, a: np.ndarray) -> np.ndarray:
        owner = _owner(a)
        if id(owner) not in self.memo:
            mine = owner.copy(order="K")
            if self.change is not None and mine.dtype.kind in "biufc" and mine.size > 1:
                self.change(mine.ravel(order="K"))
            self.memo[id(owner)] = mine
            self.keep.append(owner)
        mine = self.memo[id(owner)]
        if a is not owner:
            start = owner.__array_interface__["data"][0]
            offset = a.__array_interface__["data"][0] - start
            if a.size == 0:
                mine = np.lib.stride_tricks.as_strided(mine[:0], a.shape, a.strides)
            else:
                flat = mine.ravel(order="K")
                mine = np.ndarray(a.shape, a.dtype, flat, offset, a.strides)
        if not a.flags.writeable:
            mine.flags.writeable = False
        return mine

    def __call__(self, x: Any) -> Any:
        if id(x) in self.memo and not isinstance(x, np.ndarray):
            return self.memo[id(x)]
        if type(x) is np.ndarray:
            key = ("array", id(x))
            if key not in self.memo:
                self.memo[key] = self.array(x)
                self.keep.append(x)
            return self.memo[key]
        self.keep.append(x)
        if isinstance(x, (list, dict)):
            made = self.memo[id(x)] = type(x)()
            if isinstance(x, list):
                made.extend(self(v) for v in x)
            else:
                made.update((k, self(v)) for k, v in x.items())
            return made
        if isinstance(x, tuple):
            items = [self(v) for v in x]
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        if _is_record(x):
            made = self.memo[id(x)] = object.__new__(type(x))
            made.__dict__.update((k, self(v)) for k, v in vars(x).items())
            return made
        if isinstance(x, np.random.Generator):
            made = self.memo[id(x)] = copy.deepcopy(x)
            return made
        if isinstance(x, np.ndarray):
            return x.copy()
        return x


# What holds nothing else: most of what long lists have.
_SINGLE = frozenset({bool, int, float, complex, str, bytes, type(None)})


def _is_record(x: Any) -> bool:
    plain = (
        type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
        np.random.Generator, np.ndarray, np.ufunc, torch.Tensor, Made, Enum,
    )  # fmt: skip
    return hasattr(x, "__dict__") and not isinstance(x, plain)


def _roll(flat: np.ndarray) -> None:
    flat[...] = np.roll(flat, 1)


# -- running -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Seen:
    """What one call showed: its result or error, its arguments afterwards, its printed text."""

    result: Any
    error: BaseException | None
    args: tuple
    kwargs: dict
    text: str


def observe(f: Callable, args: tuple, kwargs: dict) -> Seen:
    """Call f and keep everything that the caller can see."""
    out = io.StringIO()
    result = error = None
    with (
        contextlib.redirect_stdout(out),
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="numpy")
        warnings.filterwarnings("ignore", category=np.exceptions.ComplexWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch")
        warnings.filterwarnings("ignore", "(Mean of empty|Degrees of freedom|All-NaN)")
        try:
            result = f(*args, **kwargs)
        except Exception as e:
            error = e
    return Seen(result, error, args, kwargs, out.getvalue())


# -- comparing ---------------------------------------------------------------------------------


def same_array(got: Any, want: Any, where: str, rtol: float | None = None) -> None:
    """Values, dtype and shape of an array or NumPy scalar."""
    assert got.dtype == want.dtype, f"{where}: dtype {got.dtype}, NumPy has {want.dtype}"
    assert got.shape == want.shape, f"{where}: shape {got.shape}, NumPy has {want.shape}"
    if got.tobytes() == want.tobytes():
        return
    kind = want.dtype.kind
    if kind not in "fc" or want.dtype.char in "gG":
        np.testing.assert_array_equal(got, want, err_msg=where)
        return
    tolerance = RTOL[want.dtype.char] if rtol is None else rtol
    with np.errstate(all="ignore"):
        finite = np.abs(np.asarray(want)[np.isfinite(want)])
        scale = float(finite.max(initial=0.0))
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True, err_msg=where
        )


def same(got: Any, want: Any, where: str = "result", rtol: float | None = None) -> None:
    """Structure, Python types and values, down to the leaves."""
    assert type(got) is type(want), (
        f"{where}: {type(got).__name__} {got!r}, NumPy gives {type(want).__name__} {want!r}"
    )
    if isinstance(want, (np.ndarray, np.generic)):
        if isinstance(want, np.ma.MaskedArray):
            same_array(got.filled(), want.filled(), where, rtol)
            same_array(np.ma.getmaskarray(got), np.ma.getmaskarray(want), where + ".mask")
            return
        if want.dtype.kind in "OVMmSUT":
            assert got.dtype == want.dtype, where
            assert got.shape == want.shape, where
            np.testing.assert_array_equal(got, want, err_msg=where)
            return
        same_array(got, want, where, rtol)
        if isinstance(want, np.ndarray):
            assert got.flags.writeable == want.flags.writeable, (
                f"{where}: writeable {got.flags.writeable}, NumPy has {want.flags.writeable}"
            )
    elif isinstance(want, (list, tuple, deque)):
        assert getattr(got, "maxlen", None) == getattr(want, "maxlen", None), where
        assert len(got) == len(want), f"{where}: {len(got)} items, not {len(want)}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            if type(g) is not type(w) or type(w) not in _SINGLE or g != w:
                same(g, w, f"{where}[{i}]", rtol)
    elif isinstance(want, dict):
        assert list(got) == list(want), f"{where}: keys {list(got)}, not {list(want)}"
        for k in want:
            same(got[k], want[k], f"{where}[{k!r}]", rtol)
    elif isinstance(want, (float, complex)):
        if got == want:
            return
        tolerance = 1e-12 if rtol is None else rtol
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(want, np.random.Generator):
        assert got.bit_generator.state == want.bit_generator.state, f"{where}: other state"
    elif _is_record(want):
        same(vars(got), vars(want), where, rtol)
    elif callable(want) or isinstance(want, types.GeneratorType):
        pass
    else:
        assert got == want, f"{where}: {got!r}, NumPy gives {want!r}"


def leaves(x: Any, found: list | None = None, seen: set | None = None) -> list[np.ndarray]:
    """The arrays of a structure, in a fixed order."""
    found = [] if found is None else found
    seen = set() if seen is None else seen
    if isinstance(x, np.ndarray):
        found.append(x)
    elif isinstance(x, (list, tuple)):
        for v in x:
            if type(v) not in _SINGLE:
                leaves(v, found, seen)
    elif isinstance(x, dict):
        for v in x.values():
            leaves(v, found, seen)
    elif _is_record(x) and id(x) not in seen:
        seen.add(id(x))
        leaves(vars(x), found, seen)
    return found


def containers(x: Any, found: list | None = None) -> list:
    """The lists, dicts and records of a structure, in a fixed order."""
    found = [] if found is None else found
    if isinstance(x, (list, dict)) or _is_record(x):
        if any(x is y for y in found):
            return found
        found.append(x)
    if isinstance(x, (list, tuple)):
        for v in x:
            if type(v) not in _SINGLE:
                containers(v, found)
    elif isinstance(x, dict):
        for v in x.values():
            containers(v, found)
    elif _is_record(x):
        for v in vars(x).values():
            containers(v, found)
    return found


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=100_000)
    except np.exceptions.TooHardError:
        return np.may_share_memory(a, b)


def aliasing(seen: Seen) -> list[str]:
    """Which arrays of result and arguments share memory or are one object."""
    named = [(f"result{i}", a) for i, a in enumerate(leaves(seen.result))]
    named += [(f"argument{i}", a) for i, a in enumerate(leaves((seen.args, seen.kwargs)))]
    if len(named) > 24:
        named = named[:24]
    pairs = []
    for i, (m, a) in enumerate(named):
        for n, b in named[i + 1 :]:
            if a is b:
                pairs.append(
                    f"{m} is {n}{_EMPTY if isinstance(a, np.ndarray) and not a.size else ''}"
                )
            elif _share(a, b):
                pairs.append(f"{m} shares memory with {n}")
    mine = containers((seen.args, seen.kwargs))
    for i, x in enumerate(containers(seen.result)):
        pairs += [f"container {i} is argument's {j}" for j, y in enumerate(mine) if x is y]
    return pairs


_EMPTY = ", of no elements"  # docs/deviations.md, "Views that compiled loops make"


def compare(got: Seen, want: Seen, rtol: float | None = None, alias: bool = True) -> None:
    """Everything that `Seen` holds."""
    if want.error is None and got.error is not None:
        raise AssertionError(f"raised {got.error!r}, NumPy gives {want.result!r}") from got.error
    if want.error is not None:
        assert got.error is not None, f"gives {got.result!r}, NumPy raises {want.error!r}"
        assert type(got.error) is type(want.error), f"{got.error!r}, NumPy has {want.error!r}"
        assert str(got.error) == str(want.error), f"{got.error!r}, NumPy has {want.error!r}"
    else:
        same(got.result, want.result, "result", rtol)
    for i, (g, w) in enumerate(zip(got.args, want.args, strict=True)):
        same(g, w, f"argument {i} afterwards", rtol)
    same(got.kwargs, want.kwargs, "keyword arguments afterwards", rtol)
    assert got.text == want.text
    if alias:
        wanted = aliasing(want)
        found = [pair for pair in aliasing(got) if pair in wanted or not pair.endswith(_EMPTY)]
        assert found == wanted


@dataclasses.dataclass
class Checked:
    """What `check` gives for further assertions."""

    first: Seen
    compiled: Callable
    compiles: int
    compiles_on_new_data: int


def check(
    f: Callable | None, *args: Any, backend: Any = "eager", kwargs: dict | None = None,
    new: bool = True, alias: bool = True, rtol: float | None = None, plain: str = "never",
    make: Callable[[], Callable] | None = None, **options: Any,
) -> Checked:  # fmt: skip
    """Plain and compiled `f` on equal arguments, three times: first, repeat, new data.

    The repeat must compile nothing, unless `make` gives a function with state of its own.
    new: whether to run on rolled values. plain: the setting, by which loops go on in
    plain NumPy or not. options go to `compile`.
    """
    with np_compile.config.patch(plain=plain):
        return _check(f, args, backend, kwargs, new, alias, rtol, plain != "never", make, options)


def _check(
    f: Any, args: tuple, backend: Any, kwargs: dict | None, new: bool, alias: bool,
    rtol: float | None, plainly: bool, make: Any, options: dict,
) -> Checked:  # fmt: skip
    kwargs = {} if kwargs is None else kwargs
    plain = f if make is None else make()
    fast, counter = compiled(f if make is None else make(), backend, **options)
    first = None
    counts = []
    changes = [None, None, *([_roll] if new else [])]
    for round_, change in enumerate(changes):
        wanted, given = Copier(change), Copier(change)
        want = observe(plain, wanted(args), wanted(kwargs))
        got = observe(fast, given(args), given(kwargs))
        try:
            compare(got, want, rtol, alias)
        except AssertionError as e:
            e.add_note(f"in call {round_ + 1}")
            raise
        if first is None:
            first = got
        counts.append(counter.count)
    again = counts[1] - counts[0]
    assert again == 0 or make is not None or plainly, (  # what runs plainly depends on times
        f"the repeat compiled {again} more programs (first call: {counts[0]})"
    )
    return Checked(first, fast, counts[0], counts[-1] - counts[0])  # type: ignore[arg-type]


def data(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Reproducible values: normal, or small integers, or booleans."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)
