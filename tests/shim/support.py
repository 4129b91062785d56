"""Assertions shared by the tests of the shim: NumPy itself is the expected answer."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import np_compile.shim as shim
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

BOOL = "?"
SIGNED = "bhil"
UNSIGNED = "BHIL"
INTEGERS = SIGNED + UNSIGNED
FLOATS = "efd"
COMPLEX = "FD"
ALL = BOOL + INTEGERS + FLOATS + COMPLEX

TOLERANCE = {
    np.dtype("e"): 2e-3,
    np.dtype("f"): 1e-6,
    np.dtype("d"): 1e-12,
    np.dtype("F"): 2e-6,
    np.dtype("D"): 1e-12,
}


class Formulas(TorchDispatchMode):
    """Here the shim computes by its formulas on tensors, as where it is recorded."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """NumPy without floating-point errors and warnings."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def to_shim(value: Any) -> Any:
    """The same argument for the shim: arrays (views kept as layouts) and what holds them."""
    if isinstance(value, np.ndarray):
        copy = np.array(value, order="K", copy=True)
        if any(s < 0 for s in value.strides):
            copy = value.copy()
            axes = tuple(i for i, s in enumerate(value.strides) if s < 0)
            return shim.from_numpy(np.flip(np.flip(copy, axes).copy(), axes))
        return shim.from_numpy(copy)
    if isinstance(value, np.generic):
        return shim.as_array(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_shim(v) for v in value)
    return value


def from_shim(value: Any) -> Any:
    """What the shim gave, as NumPy would have given it."""
    if type(value) is shim.ndarray:
        return shim.to_numpy(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(from_shim, value))
    if isinstance(value, (list, tuple)):
        return type(value)(from_shim(v) for v in value)
    return value


def assert_same(got: Any, expected: Any, rtol: float | None = None, context: Any = "") -> None:
    """Equal values, dtype, shape and Python type; floats within `rtol` (by dtype)."""
    if isinstance(expected, (list, tuple)):
        assert isinstance(got, (list, tuple)), f"{type(got)} for {type(expected)} {context}"
        assert len(got) == len(expected), context
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e, rtol, context)
        return
    got = from_shim(got)
    assert type(got) is type(expected), f"{type(got)} for {type(expected)} {context}"
    if not isinstance(expected, (np.ndarray, np.generic)):
        assert got == expected or (got != got and expected != expected), context
        return
    assert got.dtype == expected.dtype, f"{got.dtype} for {expected.dtype} {context}"
    assert got.shape == expected.shape, f"{got.shape} for {expected.shape} {context}"
    if rtol is None:
        rtol = TOLERANCE.get(expected.dtype, 0)
    if rtol == 0:
        np.testing.assert_array_equal(got, expected, err_msg=str(context))
        return
    with quiet():
        atol = rtol * 1e-3
        np.testing.assert_allclose(
            got, expected, rtol=rtol, atol=atol, equal_nan=True, err_msg=str(context)
        )


def outcome(call: Callable) -> Any:
    """What a call gives: its result, or the class and text of its exception."""
    try:
        with quiet():
            return call()
    except Exception as error:
        return type(error), str(error)


def assert_matches(
    name: str | Callable,
    *args: Any,
    rtol: float | None = None,
    meta: bool = True,
    **kwargs: Any,
) -> None:
    """One function of the shim against NumPy's, by dotted name: result, or exception and text.

    meta: also run on meta tensors and compare shape and dtype.
    """
    theirs, ours = _find(np, name), _find(shim, name)
    context = (name, _told(args), _told(kwargs))
    expected = error = None
    with quiet():
        try:
            expected = theirs(*args, **kwargs)
        except Exception as e:
            error = e
    shim_args = to_shim(tuple(args))
    shim_kwargs = {k: to_shim(v) for k, v in kwargs.items()}
    if error is not None:
        got = None
        try:
            with quiet():
                ours(*shim_args, **shim_kwargs)
        except Exception as e:
            got = e
        if got is not None:
            assert isinstance(got, _base(error)), (
                f"{type(got).__name__}: {got} for {type(error).__name__}: {error} {context}"
            )
            assert str(got) == str(error), context
            return
        raise AssertionError(f"no {type(error).__name__}: {error} {context}")
    with quiet():
        got = ours(*shim_args, **shim_kwargs)
    assert_same(got, expected, rtol, context)
    if meta:
        assert_meta(ours, got, shim_args, shim_kwargs, context)


def _base(error: Exception) -> type:
    """The public class of an error of NumPy's."""
    return next(c for c in type(error).__mro__ if not c.__name__.startswith(("_", "UFunc")))


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else text[:600] + "..."


class Rows:
    """The shim's namespace with nothing around its rows: no other row, no scalar of NumPy's."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        path = self._prefix + name
        if path in ("linalg", "fft", "random"):
            return Rows(f"{path}.")
        row = shim.TABLE.get(path)
        if row is not None:
            return row.function
        found = shim
        for part in path.split("."):
            found = getattr(found, part)
        return found


rows = Rows()


def _find(module: Any, name: str | Callable) -> Callable:
    module = rows if module is shim else module
    if callable(name):
        return lambda *args, **kwargs: name(module, *args, **kwargs)
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def to_meta(value: Any) -> Any:
    """The same argument without data."""
    if type(value) is shim.ndarray:
        return shim.ndarray(value._t.to("meta"), value._flip, value._scalar)
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_meta, value))
    return value


def assert_meta(function: Callable, eager: Any, args: Any, kwargs: Any, context: Any = "") -> None:
    """On meta tensors: the shape, dtype and Python type of the eager result."""
    with quiet():
        got = function(*to_meta(args), **{k: to_meta(v) for k, v in kwargs.items()})
    _same_layout(got, eager, context)


def _same_layout(got: Any, eager: Any, context: Any) -> None:
    if isinstance(eager, (list, tuple)):
        for g, e in zip(got, eager, strict=True):
            _same_layout(g, e, context)
    elif isinstance(eager, np.generic):  # a method's
        assert type(got) is shim.ndarray, context
        assert (got.shape, got.dtype, got._scalar) == ((), eager.dtype, True), context
    elif type(eager) is shim.ndarray:
        assert type(got) is shim.ndarray, context
        assert (got.shape, got.dtype, got._scalar) == (eager.shape, eager.dtype, eager._scalar), (
            context
        )


def shares_memory(a: shim.ndarray, b: shim.ndarray) -> bool:
    """Whether two shim arrays lie in the same storage."""
    return a._t.untyped_storage()._cdata == b._t.untyped_storage()._cdata


def sample(dtype: str, shape: tuple[int, ...] = (7,), seed: int = 0) -> np.ndarray:
    """Small values of a dtype, edges of its range and special floats among them."""
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    size = int(np.prod(shape))
    if d.kind == "b":
        return rng.integers(0, 2, shape).astype(d)
    if d.kind in "iu":
        info = np.iinfo(d)
        pool = np.array([0, 1, 2, 3, 5, info.max, info.min, info.max - 1, 7], dtype=d)
        if d.kind == "i":
            pool = np.append(pool, np.array([-1, -2, -3], dtype=d))
    else:
        pool = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 0.1, 7.0])
        if d.kind == "c":
            finite = pool[np.isfinite(pool)]
            parts = rng.choice(finite, (2, size))
            return (parts[0] + 1j * parts[1]).astype(d).reshape(shape)
        pool = pool.astype(d)
    return rng.choice(pool, size).reshape(shape)


__all__ = [
    "ALL",
    "BOOL",
    "COMPLEX",
    "FLOATS",
    "INTEGERS",
    "SIGNED",
    "UNSIGNED",
    "assert_matches",
    "assert_meta",
    "assert_same",
    "from_shim",
    "quiet",
    "rows",
    "sample",
    "shares_memory",
    "shim",
    "to_meta",
    "to_shim",
    "torch",
]
