"""Classes derived from the shim's array that answer NumPy's functions themselves."""

from __future__ import annotations

import numpy as np
import pytest

from np_compile import shim

pytestmark = pytest.mark.handing


def lengths(numpy):
    """A class of arrays with a power of a unit, and what is done with one."""

    class Lengths(numpy.ndarray):
        power = 1

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            plain = [x.view(numpy.ndarray) if isinstance(x, Lengths) else x for x in inputs]
            powers = [getattr(x, "power", 0) for x in inputs]
            result = super().__array_ufunc__(ufunc, method, *plain, **options)
            if not isinstance(result, numpy.ndarray):
                return result
            result = result.view(Lengths)
            if ufunc is numpy.multiply:
                result.power = sum(powers)
            elif ufunc in (numpy.add, numpy.subtract):
                result.power = powers[0]
            else:
                return NotImplemented
            return result

    class Areas(Lengths):
        power = 2

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            if ufunc is numpy.subtract:
                raise ValueError("no differences")
            return super().__array_ufunc__(ufunc, method, *inputs, **options)

    x, y = (numpy.arange(3.0).view(kind) for kind in (Lengths, Areas))
    found = []
    for way in (
        lambda: x * x, lambda: x * x * 2.0, lambda: x + x, lambda: 2 - x, lambda: y * x,
        lambda: numpy.add(x, 1), lambda: numpy.multiply.outer(x, x), lambda: numpy.add.reduce(x),
        lambda: numpy.sin(x), lambda: y - y,
    ):  # fmt: skip
        try:
            r = way()
            found.append((type(r).__name__, getattr(r, "power", None), numpy.asarray(r).tolist()))
        except (TypeError, ValueError) as e:
            found.append(str(e))
    return found


def named_functions(numpy):
    class Named(numpy.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            if function is numpy.mean:
                return "mean"
            if function is numpy.linalg.norm:
                return "norm"
            result = super().__array_function__(function, types, args, kwargs)
            return type(result).__name__, numpy.asarray(result).tolist()

    x = numpy.arange(3.0).view(Named)
    return [
        numpy.mean(x), numpy.linalg.norm(x), numpy.sort(x), numpy.concatenate([x, x]),
        numpy.sum(x), type(x + 1).__name__, numpy.asarray(numpy.sqrt(x)).tolist(),
    ]  # fmt: skip


def both(numpy):
    class Counted(numpy.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            found.append("*" if ufunc is numpy.multiply else "")
            plain = [x.view(numpy.ndarray) if isinstance(x, Counted) else x for x in inputs]
            return super().__array_ufunc__(ufunc, method, *plain, **options)

        def __array_function__(self, function, types, args, kwargs):
            found.append("cumsum" if function is numpy.cumsum else "")
            return super().__array_function__(function, types, args, kwargs)

    class Refusing(numpy.ndarray):
        __array_ufunc__ = None

    found = []
    x = numpy.arange(3.0).view(Counted)
    found += [(x * 2).tolist(), numpy.cumsum(x).tolist(), numpy.median(x).tolist()]
    try:
        numpy.add(numpy.ones(2).view(Refusing), 1)
    except TypeError as e:
        found.append(str(e)[:40])
    return found


@pytest.mark.parametrize("program", [lengths, named_functions, both])
def test_as_in_numpy(program):
    assert program(shim) == program(np)
