"""Numbers stored into arrays: NumPy refuses nan, infinities and what an integer dtype cannot hold.

Python numbers are parameters of a recorded call, so each call has to look at their values.
"""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import np_compile

from ..shim.support import assert_matches
from ..support import check, compare, compiled, observe, same

STORES = {
    "slice": "x[1:] = v",
    "ellipsis": "x[...] = v",
    "element": "x[3] = v",
    "mask": "x[x > 3] = v",
    "indices": "x[[0, 2]] = v",
    "reversed": "x[::-1][:2] = v",
    "view": "x.reshape(3, 3)[1] = v",
    "selection": "y = x[x > 1]; y[y > 4] = v; x[x > 1] = y",
    "fill": "x.fill(v)",
    "list": "x[1:3] = [v, 1]",
    "list with an array": "x[1:3] = [v, x[0]]",
    "put": "np.put(x, [1, 2], v)",
    "place": "np.place(x, x > 3, v)",
    "putmask": "np.putmask(x, x > 3, v)",
    "put_along_axis": "np.put_along_axis(x, np.array([1]), v, 0)",
    "fill_diagonal": "np.fill_diagonal(x.reshape(3, 3), v)",
    "flat": "x.flat = v",
    "real part": "x.real = v",
    "insert": "x = np.insert(x, 1, v)",
    "array": "x = np.array(v, dtype=x.dtype)",
    "array of a list": "x = np.array([v, x[0]], dtype=x.dtype)",
    "full": "x = np.full(3, v, dtype=x.dtype)",
    "full_like": "x = np.full_like(x, v)",
    "copyto": "np.copyto(x, v, casting='unsafe')",
    "start of a sum": "x = np.sum(x, initial=v)",
    "start of a maximum": "x = np.maximum.reduce(x, initial=v)",
    "scalar of the data": "x[1:] = x.mean() * v",
    "element of the data": "x[4] = (x * 1.0)[2] * v",
    "integer of the data": "x[1:3] = x.sum() * 40",
}
NAN, INF = float("nan"), float("inf")
NUMBERS = [
    0.0, 2.5, -1.0, -1.5, 300.5, 1e30, -1e30, 9.3e18, NAN, INF, -INF, 1j, True, 300, -1, 10**30,
    np.float64(NAN), np.float32(1e30), np.float64(300.5), np.float16(2.5), np.int64(300),
    np.complex64(1j), np.array(NAN), np.array([2.5]),
]  # fmt: skip


def storing(statement):
    """The function (array, number) -> array that carries out a statement."""
    text = f"def f(x, v):\n    {statement}\n    return x"
    scope = {"np": np}
    exec(text, scope)
    return scope["f"]


def as_in_the_shim(f, x, v):
    """Compare the shim's function with NumPy's, on copies."""

    def run(np, x, v):
        own = types.FunctionType(f.__code__, {**f.__globals__, "np": np})
        return own(x.copy(), v)

    assert_matches(run, x, v, meta=False)


@pytest.mark.parametrize(("dtype", "value"), [("i8", NAN), ("u1", -2.5)])
@pytest.mark.parametrize("name", STORES)
def test_a_float_that_does_not_fit_raises(name, dtype, value):
    check(storing(STORES[name]), np.arange(9, dtype=dtype), value)
    as_in_the_shim(storing(STORES[name]), np.arange(9, dtype=dtype), value)


@given(
    st.sampled_from(list(STORES.values())),
    st.sampled_from(["i1", "i4", "i8", "u1", "u4", "u8", "?", "f2", "f4", "c8"]),
    st.sampled_from(NUMBERS),
)
@example("x[1:] = v", "i4", NAN)
@example("x[[0, 2]] = v", "u1", 300.5)
@example("x.fill(v)", "i8", np.float64(NAN))
def test_any_number_into_any_dtype(statement, dtype, value):
    check(storing(statement), np.arange(9).astype(dtype), value)


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_the_value_is_looked_at_in_each_call(backend):
    def f(x, v):
        x[1:] = v
        return x * 2

    fast, counter = compiled(f, backend)
    for v in (1.5, NAN, 2.5, 1e300, -INF, 3.0, 2.0**63, -(2.0**63)):
        ours, theirs = np.arange(4), np.arange(4)
        try:
            want = f(theirs, v)
        except (ValueError, OverflowError) as e:
            with pytest.raises(type(e), match=str(e)):
                fast(ours, v)
        else:
            same(fast(ours, v), want)
        same(ours, theirs)
    assert counter.count == 1


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_scalar_of_the_data_is_looked_at_when_the_program_runs(backend):
    def f(x, y):
        x[1:] = y.mean()
        return x + 1

    fast, _ = compiled(f, backend)
    for y in (np.ones(3), np.array([NAN, 1]), np.full(2, 1e30), np.full(2, -7.9)):
        ours, theirs = np.arange(4), np.arange(4)
        try:
            want = f(theirs, y)
        except (ValueError, OverflowError) as e:
            with pytest.raises(type(e), match=str(e)):
                fast(ours, y)
        else:
            same(fast(ours, y), want)
        same(ours, theirs)


def test_it_is_raised_inside_the_try_block():
    def f(x, y):
        try:
            x[1:] = y.sum()
        except ValueError as e:
            return str(e), x
        return x

    check(f, np.arange(4), np.array([1.0, NAN]))
    check(f, np.arange(4), np.array([1.0, 2.0]))


def test_arrays_are_cast_whatever_they_hold():
    def f(x, y):
        x[...] = y
        return x, y.astype(np.int32), y.astype(np.uint8)

    check(f, np.arange(4), np.array([NAN, INF, 1e30, -2.5]))


def test_the_sign_of_a_constant_zero_is_part_of_the_call():
    def f(x):
        with_zero = np.pad(x, 1, constant_values=0.0)
        with_negative_zero = np.pad(x, 1, constant_values=-0.0)
        return np.signbit(with_zero), np.signbit(with_negative_zero)

    check(f, np.ones(3))


def test_constants_of_nan_are_found_again():
    def f(x):
        first = np.pad(x, 1, constant_values=np.float32(np.nan))
        return first, np.pad(x * 1j, 1, constant_values=complex(np.nan, 1))

    check(f, np.ones(3))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("value", [1e300, np.nan, 300.7, -1.5, 2.0**31, 2.0**63, -(2.0**64)])
@pytest.mark.parametrize("key", [[0, 1], np.array([True, False, True]), slice(None), 0], ids=repr)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_numpy_scalars_are_cast_by_arrays_and_have_to_fit_else(key, value, dtype):
    def given(x, v):
        x[key] = v
        return x

    def made(x, y):
        x[key] = y.sum()
        return x

    check(given, np.zeros(3, dtype), np.float64(value))
    check(made, np.zeros(3, dtype), np.array([value]))


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("value", [complex(np.nan, 1), complex(np.inf), 2.0**40 + 1j, 3.7 - 1j])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_complex_scalars_have_to_fit_by_their_real_part(value, backend):
    def made(x, y):
        x[0] = y[0] + 0
        return x

    x, y = np.zeros(2, np.int32), np.array([value])
    check(made, x, y, backend=backend)
    fast = np_compile.compile(np_compile.wrap_numpy(made), backend=backend)
    given = torch.zeros(2, dtype=torch.int32), torch.from_numpy(y)
    try:
        want = made(x, y)
    except (ValueError, OverflowError) as e:
        with pytest.raises(type(e), match=str(e)):
            fast(*given)
    else:
        assert fast(*given).tolist() == want.tolist()


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("sorter", [[-2, 2, -3], [1, 2, 0], [0, -1, 5], [7, 8, 9]])
def test_a_sorter_has_no_places_from_the_end(sorter, backend):
    def f(a, v, s):
        return np.searchsorted(a * 1.0, v, sorter=s)

    a, v = np.array([3.0, 1, 2]), np.array([0, 1, 2.5, 5])
    check(f, a, v, np.array(sorter), backend=backend, new=False)


def copied(x, v):
    np.copyto(x, v, casting="unsafe")
    return x


def selected(x, v):
    return np.select([x > 1, x < 0], [x, v], v)


def chosen(x, v):
    return np.choose(np.array([0, 1, 0]), [x, v])


@pytest.mark.parametrize("value", [10**30, -(2**63) - 1, 2**64], ids=hex)
@pytest.mark.parametrize("dtype", ["?", "i4", "u8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("f", [copied, selected, chosen])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_integers_of_more_than_64_bits_are_objects_to_numpy(f, dtype, value):
    check(f, np.ones(3, dtype), value)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_histograms_of_complex_numbers_are_numpys(dtype):
    def f(x):
        return np.histogram(x, 3, (0, 2), density=True), np.histogram_bin_edges(x, 3, (0, 2))

    check(f, np.array([1 + 1j, 0, -2.5j, 0.5], dtype))


AT_PLACES = {
    "element": "x[i] = v",
    "row": "x.reshape(3, 3)[i] = v",
    "element of a matrix": "x.reshape(3, 3)[1, i] = v",
    "beside a slice": "x.reshape(3, 3)[1:, i] = v",
    "array of one index": "x[np.array([i])] = v",
    "list": "x[i] = [v]",
    "array": "x[i] = np.array([v])",
    "array without axes": "x[i] = np.array(v)",
    "augmented": "x[i] += v",
}


@pytest.mark.parametrize("value", ["3", "300", "d.sum()", "d[i] * 100", "d[i] * 0.0 * np.inf"])
@pytest.mark.parametrize("statement", AT_PLACES.values(), ids=AT_PLACES)
def test_what_is_stored_at_a_place_that_is_data_has_to_fit(statement, value):
    text = f"def f(x, d, i):\n    d = d * 2\n    v = {value}\n    {statement}\n    return x"
    scope = {"np": np}
    exec(text, scope)
    plain, (fast, _) = scope["f"], compiled(scope["f"], dynamic=True)
    for i, high in ((1, 1), (2, 400), (0, 1)):
        for dtype in ("i1", "u1", "i8"):
            arguments = [(np.arange(9, dtype=dtype), np.arange(9) * high, i) for _ in range(2)]
            want, got = (observe(f, a, {}) for f, a in zip((plain, fast), arguments, strict=True))
            compare(got, want)


@pytest.mark.parametrize("value", [5, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("name", ["add", "maximum", "linspace", "linspace from", "logspace"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_integers_beyond_64_bits_have_numpys_dtypes(name, value):
    def at(x, v):
        getattr(np, name).at(x, [0, 0], v)
        return x

    spaced = {
        "linspace": lambda x, v: np.linspace(0, v, 3),
        "linspace from": lambda x, v: np.linspace(v, x, 3),
        "logspace": lambda x, v: np.logspace(0, v, 2),
    }
    f = spaced.get(name, at)
    arguments = [(np.arange(3), value) for _ in range(2)]
    fast, _ = compiled(f)
    with np.errstate(all="ignore"):
        compare(observe(fast, arguments[0], {}), observe(f, arguments[1], {}))


@pytest.mark.parametrize("value", [3, 2.5])
@pytest.mark.parametrize("casting", ["no", "equiv", "safe"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8"])
def test_a_cast_that_copyto_refuses_is_seen_by_its_handler(dtype, casting, value):
    def f(x, v):
        try:
            np.copyto(x, v, casting=casting)
        except TypeError as error:
            return str(error), x + 1
        return x + 2

    check(f, np.zeros(3, dtype), value)


def test_what_astype_and_mt_refuse():
    def f(x):
        texts = []
        try:
            x.astype("f4", copy=np._CopyMode.NEVER)
        except ValueError as error:
            texts.append(str(error))
        try:
            x.mT  # noqa: B018
        except ValueError as error:
            texts.append(str(error))
        return texts, x.reshape(1, -1).mT + x.astype("f4", copy=False)[:, None]

    check(f, np.arange(3.0))


@pytest.mark.parametrize("value", [np.uint8(200), np.int64(300), np.int16(3), 300, np.float64(300)])
def test_a_number_that_does_not_fit_is_seen_by_its_handler(value):
    def f(x, v):
        try:
            x.fill(v)
        except OverflowError as error:
            return str(error), x + 1
        return x + 2

    for loops in ("recorded", "auto"):
        with np_compile.config.patch(loops=loops):
            check(f, np.zeros(3, "i1"), value)
