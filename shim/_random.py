"""numpy.random: NumPy's own stream of numbers, as arrays on torch's default device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._dtypes import TO_TORCH, Weak
from ._ndarray import as_array, ndarray, to_numpy
from ._table import Kind, Row, add_row


def _to_numpy(value: Any, written: list) -> Any:
    """An argument for NumPy; arrays that NumPy has to work on in a copy are noted in `written`."""
    if type(value) is ndarray:
        own = to_numpy(value)
        if not value._scalar and value._t.device.type != "cpu":
            written.append((value, own, own.copy()))
        return own
    if isinstance(value, Weak):
        return value.kind(value.tensor.item())
    if isinstance(value, (tuple, list)):
        return type(value)(_to_numpy(v, written) for v in value)
    if isinstance(value, (Generator, RandomState)):
        return value._own
    return value


def _from_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype in TO_TORCH:
        return as_array(value)
    if isinstance(value, np.random.Generator):
        return Generator(value)
    if isinstance(value, list):
        return [_from_numpy(v) for v in value]
    return value


def _drawing(draw: Callable) -> Callable:
    """A NumPy function that draws: shim arrays in, changed in place where NumPy does; and out."""

    def call(*args: Any, **kwargs: Any) -> Any:
        written: list = []
        given = [_to_numpy(a, written) for a in args]
        named = {k: _to_numpy(v, written) for k, v in kwargs.items()}
        result = draw(*given, **named)
        for array, after, before in written:
            if not np.array_equal(after, before, equal_nan=after.dtype.kind in "fc"):
                array[...] = as_array(after)
        for original, own in zip((*args, *kwargs.values()), (*given, *named.values()), strict=True):
            if result is own and type(original) is ndarray:
                return original  # out=
        return _from_numpy(result)

    call.__name__ = call.__qualname__ = draw.__name__
    call.__doc__ = f"numpy.random.{draw.__name__}, with shim arrays."
    return call


class _Drawer:
    """A NumPy generator whose arrays are shim arrays."""

    def __init__(self, own: Any):
        self._own = own

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._own, name)
        return _drawing(value) if callable(value) else value

    def __repr__(self) -> str:
        return repr(self._own)

    def __reduce__(self):
        return type(self), (self._own,)


class Generator(_Drawer):
    """numpy.random.Generator, drawing shim arrays. Made from a bit generator."""

    def __init__(self, bit_generator: Any):
        own = bit_generator
        super().__init__(own if isinstance(own, np.random.Generator) else np.random.Generator(own))

    def spawn(self, n_children: int) -> list[Generator]:
        """New generators, independent of one another."""
        return [Generator(g) for g in self._own.spawn(n_children)]


class RandomState(_Drawer):
    """numpy.random.RandomState, drawing shim arrays. seed: as in NumPy."""

    def __init__(self, seed: Any = None):
        own = seed
        if not isinstance(own, np.random.RandomState):
            own = np.random.RandomState(_to_numpy(own, []))
        super().__init__(own)


def default_rng(seed: Any = None) -> Generator:
    """A new Generator; a Generator is returned as it is. Errors as in NumPy."""
    if isinstance(seed, Generator):
        return seed
    return Generator(np.random.default_rng(_to_numpy(seed, [])))


def _enter() -> None:
    own = {"default_rng": default_rng, "Generator": Generator, "RandomState": RandomState}
    for name in np.random.__all__:
        value = getattr(np.random, name)
        if not callable(value):
            continue
        function = own.get(name) or (value if isinstance(value, type) else _drawing(value))
        add_row(Row(f"random.{name}", function, Kind.IMPURE))


_enter()
