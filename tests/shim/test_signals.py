"""Floating-point errors of frequent calls: the warnings that NumPy gives, and no others."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest
import torch

from .support import shim, to_shim

pytestmark = pytest.mark.handing

LONG = 40_000  # more than torch computes in one thread
PAIRS = {
    "nothing": (1.5, 2.0),
    "to_infinity": (1e300, 1e300),
    "by_zero": (1.0, 0.0),
    "zero_by_zero": (0.0, 0.0),
    "infinities": (np.inf, np.inf),
    "opposite": (np.inf, -np.inf),
    "nan": (np.nan, 1.0),
    "infinity_by_zero": (np.inf, 0.0),
    "below_zero": (-1.0, -1.0),
}
CALLS = {
    "add": lambda m, a, b: m.add(a, b),
    "+": lambda m, a, b: a + b,
    "-": lambda m, a, b: a - b,
    "*": lambda m, a, b: a * b,
    "/": lambda m, a, b: a / b,
    "by_number": lambda m, a, b: 1.0 / b,
    "of_number": lambda m, a, b: a * 1e30,
    "in_place": lambda m, a, b: operator.itruediv(a.copy(), b),
    "out": lambda m, a, b: m.multiply(a, b, out=m.zeros_like(a)),
    "where": lambda m, a, b: m.divide(a, b, out=m.zeros_like(a), where=b != 0),
    "floor_divide": lambda m, a, b: operator.ifloordiv(a.real.copy(), b.real),
    "at": lambda m, a, b: m.divide.at(a.copy(), [0, -1], b[-1]),
    "log_at": lambda m, a, b: m.log.at(a.copy(), [0]),
    "dot": lambda m, a, b: m.dot(a, b),
    "sqrt": lambda m, a, b: m.sqrt(a),
    "sqrt_of_ints": lambda m, a, b: m.sqrt(-m.arange(3)),
    "square": lambda m, a, b: m.square(a),
    "reciprocal": lambda m, a, b: m.reciprocal(b),
    "exp": lambda m, a, b: m.exp(a),
    "log": lambda m, a, b: m.log(b),
    "sum": lambda m, a, b: m.sum(m.stack([a, b])),
    "sum_of_few": lambda m, a, b: m.concatenate([a * 0, a, b]).sum(),
    "sum_axis": lambda m, a, b: m.stack([a, b]).sum(axis=0),
    "to_int": lambda m, a, b: a.real.astype("i4"),
    "to_unsigned": lambda m, a, b: (-a.real).astype("u1"),
    "narrowed": lambda m, a, b: (a.real * 100).astype("f2"),
    "first": lambda m, a, b: operator.truediv(a[0], b[0]),
}


def told(call, *args) -> list[str]:
    """The warnings of a call, in order of their text."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call(*args)
    return sorted(str(w.message) for w in seen)


@pytest.mark.parametrize("size", [1, 3, 10, LONG])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("pair", PAIRS)
def test_as_numpy_warns(pair, dtype, size):
    with np.errstate(all="ignore"):
        values = np.array(PAIRS[pair]).astype(dtype)
    a, b = np.ones(size, dtype), np.ones(size, dtype)
    a[-1], b[-1] = values
    for name, call in CALLS.items():
        expected = told(call, np, a, b)
        assert told(call, shim, *to_shim((a, b))) == expected, name


def test_what_was_noted_before_is_not_told():
    big = to_shim(np.full(3, 1e300))
    with np.errstate(all="ignore"):
        _ = big * big
    _ = torch.from_numpy(np.array([1.0])) / 0
    assert told(lambda: big + big) == []


def test_errstate_is_looked_at_in_each_call():
    a = to_shim(np.zeros(2))
    for _ in range(2):
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
            _ = a / a
        assert told(lambda: a / a) == ["invalid value encountered in divide"]
        with np.errstate(invalid="ignore"):
            assert told(lambda: a / a) == []


STORED = {
    "element": lambda m, x, v: operator.setitem(x, 0, v[0]),
    "slice": lambda m, x, v: operator.setitem(x, slice(None), v),
    "indices": lambda m, x, v: operator.setitem(x, [0, 2], v[:2]),
    "mask": lambda m, x, v: operator.setitem(x, m.array([True, False, True]), v[1:]),
    "fill": lambda m, x, v: x.fill(v[1]),
    "copyto": lambda m, x, v: m.copyto(x, v, casting="unsafe"),
    "copyto_by_name": lambda m, x, v: m.copyto(x, src=v, casting="unsafe"),
    "flat": lambda m, x, v: operator.setitem(x.flat, slice(None), v),
    "list": lambda m, x, v: operator.setitem(x, slice(None), [v[2]] * 3),
}


@pytest.mark.parametrize("to", "?bBefdFD")
@pytest.mark.parametrize("given", ["q", "f", "d", "D"])
def test_what_is_stored_is_cast_as_numpy_warns(given, to):
    big = {"q": 2**40, "f": 1e38}.get(given, 1e300)
    for third in (1, big) if given == "q" else (1, big, np.nan, np.inf):
        values = np.array([1, 2, third], given)
        for name, call in STORED.items():
            if name in ("element", "fill", "list") and to in "bB":
                continue  # NumPy refuses what does not fit
            expected = set(told(call, np, np.zeros(3, to), values))  # of a list one for each item
            found = told(call, shim, shim.zeros(3, to), to_shim(values))
            assert sorted(expected) == found, (name, third)


def test_casts_raise_where_that_is_asked_for():
    x = shim.zeros(3, "i4")
    with np.errstate(invalid="raise"):
        for call in (operator.setitem, lambda x, i, v: shim.copyto(x, v, casting="unsafe")):
            with pytest.raises(FloatingPointError, match="invalid value encountered in cast"):
                call(x, slice(None), shim.array([1.0, np.nan, 2.0]))
        with pytest.raises(FloatingPointError, match="invalid value"):
            shim.add(x, shim.array([np.nan] * 3), dtype="i4", casting="unsafe")


ARGUMENTS = {  # what NumPy warns of, or refuses, for the arguments
    "where": lambda m, x: m.add(x, x, where=x == x)[0],
    "where_out": lambda m, x: m.add(x, x, where=x == x, out=None)[0],
    "maximum": lambda m, x: m.maximum(x, x, m.zeros(4)),
    "isclose": lambda m, x: m.isclose(x, x, rtol=np.inf, atol=np.nan),
    "fftn": lambda m, x: m.fft.fftn(x, (None,), (0,)),
    "histogram_of_bools": lambda m, x: m.histogram(x > 1, 2),
    "edges_of_bools": lambda m, x: m.histogram_bin_edges(x > 1, 2),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_warnings_of_arguments(name):
    x = np.arange(4.0)
    assert told(ARGUMENTS[name], shim, to_shim(x)) == told(ARGUMENTS[name], np, x)


def test_code_whose_globals_have_no_name_is_warned():
    scope = {"x": shim.zeros(2)}
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        eval("1.0 / x", scope)


def test_what_is_refused_for_its_imaginary_parts_is_not_stored():
    x = shim.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(np.exceptions.ComplexWarning):
            x[:] = shim.array([1 + 2j, 3])
    assert x.tolist() == [1, 1]
