"""Known weak points of compilers for NumPy code, each shown to be none here."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import np_compile

from ..support import check, compiled, counted_nodes, data


def unbroken(f, *args):
    """Assert that f is one segment without breaks, and right."""
    e = np_compile.explain(np_compile.compile(f, backend="eager"))(*args)
    assert e.breaks == [], e
    assert len(e.segments) <= 1, e
    check(f, *args)


# -- values and dtypes -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
def test_fix_cbrt_clip_sign_heaviside_of_special_values():
    x = np.array([-8.0, -2.5, -0.0, 2.7, np.nan, np.inf])
    check(lambda x: (np.fix(x), np.cbrt(x), np.sign(x), np.heaviside(x, 0.5)), x)


def test_clip_with_bounds_outside_of_the_dtype():
    check(lambda x: np.clip(x, -1000, 1000), data(5, dtype=np.int8))
    check(lambda x: np.clip(x, -2, 5), data(5, dtype=np.uint8))


def test_cumulative_sums_and_products_of_small_integers():
    x = np.array([100, 100, 100], dtype=np.int8)
    check(
        lambda x: (np.cumsum(x), np.cumprod(x), x.cumsum(dtype=np.int8), np.cumsum(x, dtype="i1")),
        x,
    )


def test_square_and_reciprocal_of_integers_keep_their_dtype():
    check(
        lambda x: (np.square(x), np.reciprocal(x), x / x, np.sqrt(x)), np.array([1, 2, 3], np.int8)
    )


def test_sums_and_logic_of_unsigned_bytes():
    x = np.array([200, 100, 0], dtype=np.uint8)
    check(lambda x: (x.sum(), x.any(), x.all(), x.prod(), np.any(x), x.mean()), x)


def test_median_and_percentile_shapes():
    check(
        lambda x: (
            np.median(x), np.median(x, axis=0), np.median(x, axis=(0, 1), keepdims=True),
            np.percentile(x, 30),
            np.percentile(x, [10, 50], axis=1), np.quantile(x, 0.25, axis=0, keepdims=True),
        ),
        data(4, 5),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
def test_wide_unsigned_integers_compute(dtype):
    top = np.iinfo(dtype).max
    x = np.array([1, 2, top, top - 3], dtype)

    def f(x, y):
        return [
            x + y, x - y, x * y, x // y, x % y, x / y, x & y, x | y, x ^ y, ~x, x << 1, x >> 1,
            x == y, x < y,
            np.maximum(x, y), x.max(), x.min(), x.sum(), x.argmax(), np.sort(x)[::-1], np.sqrt(x),
            -x, x**2,
            x[::-1], np.where(x > y, x, y), x.astype(float), x.mean(), np.minimum.accumulate(x),
        ]  # fmt: skip

    check(f, x, np.array([3, 5, 7, top], dtype))


def test_integer_division_by_zero_is_zero_as_in_numpy():
    def f(x, y):
        with np.errstate(all="ignore"):
            return x // y, x % y, np.fmod(x, y), np.floor_divide(x, 0)

    check(f, np.array([5, -5, 0]), np.array([0, 0, 0]), new=False)


def test_nan_against_numbers_survives_the_compiler():
    def f(x):
        return (x == x).sum(), np.isnan(x * 0), np.maximum(x, 1), np.fmax(x, 1), np.nan_to_num(x)

    check(f, np.array([np.nan, np.inf, 1.0]))
    check(f, np.array([np.nan, np.inf, 1.0]), backend="aot_eager")


def test_integers_to_negative_integer_powers_raise():
    check(lambda x: x**-2, np.arange(1, 4))
    check(lambda x, y: x**y, np.arange(1, 4), np.array([-1, 2, 3]))


def test_a_read_only_argument_is_not_changed():
    x = data(4)
    x.flags.writeable = False
    check(lambda x: x.__iadd__(1), x)
    check(lambda x: np.sin(x, out=x), x)


def test_writes_through_reversed_and_flipped_views_arrive():
    def f(x):
        x[::-1][0] = 10
        np.flip(x)[1] = 20
        x[::-2] += 1
        return x

    check(f, data(5))


def test_seeded_randomness_is_numpys():
    def f():
        np.random.seed(0)
        return np.random.rand(3), np.random.randn(2), np.random.randint(0, 9, 4)

    check(f)


def test_the_random_module_of_python_is_called_at_each_call():
    def f(x):
        return x * random.random() + random.randint(1, 6)

    fast, _ = compiled(f)
    random.seed(5)
    want = [f(data(3)) for _ in range(3)]
    random.seed(5)
    got = [fast(data(3)) for _ in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    assert not np.array_equal(got[0], got[1])


def test_errors_are_numpys_classes():
    check(lambda x: x + np.zeros(7), data(3))
    check(lambda x: np.max(x[:0]), data(3))
    check(lambda x: x + 300, data(3, dtype=np.uint8))
    check(lambda x: x.reshape(2, 2), data(3))


# -- scalars -----------------------------------------------------------------------------------


def test_round_of_a_scalar_is_a_python_int():
    check(lambda x: round(np.floor(x[0])), np.array([3.1]))


def test_results_of_reductions_elements_and_dot_are_numpy_scalars():
    check(
        lambda a, b: (a.sum(), a[0, 0], np.dot(b, b), a.max(), isinstance(a.sum(), float)),
        data(2, 2),
        data(3),
    )


def test_int_of_an_array_value():
    check(lambda x: x[: int(x[0])] * int(x.max()), np.array([2.0, 3.0, 4.0]))


def test_six_different_integers_compile_at_most_twice():
    fast, counter = compiled(lambda x, s: x * s)
    for s in range(2, 12):
        np.testing.assert_array_equal(fast(np.arange(3.0), s), np.arange(3.0) * s)
    assert counter.count <= 2


# -- no break, no refusal ----------------------------------------------------------------------


def test_dtype_flags_and_base_do_not_break():
    unbroken(
        lambda x: x + 1 if x.dtype == float and x.flags.writeable and x.base is None else x, data(3)
    )


def test_asarray_of_a_list_of_arrays_does_not_break():
    unbroken(lambda x: np.asarray([x, x + 1]) + np.array([x[0], x[1]])[:, None], data(2))


REFUSED_ELSEWHERE = {
    "add.reduce": lambda x: np.add.reduce(x, axis=0),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=1, initial=0.5),
    "multiply.outer": lambda x: np.multiply.outer(x[0], x[1]),
    "add.accumulate": lambda x: np.add.accumulate(x, axis=1),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 1, 3], axis=0),
    "Fortran order": lambda x: np.zeros((2, 3), order="F") + x[:2, :3].copy(order="F"),
    "ravel in Fortran order": lambda x: x.ravel(order="F"),
    "where=": lambda x: np.sum(x, where=x > 0),
    "where= and out=": lambda x: np.sqrt(x, out=np.zeros_like(x), where=x > 0),
    "initial=": lambda x: np.max(x, initial=3.0),
    "pad reflect": lambda x: np.pad(x, 1, mode="reflect"),
    "convolve same": lambda x: np.convolve(x[0], x[1], mode="same"),
    "take clip": lambda x: np.take(x, [0, 99], mode="clip"),
    "vectorize": lambda x: np.vectorize(lambda v: v * 2)(x),
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, x),
    "ndenumerate": lambda x: [v for _, v in np.ndenumerate(x)],
    "nansum": lambda x: (np.nansum(x), np.nanmean(x, axis=0), np.nanmax(x), np.nanstd(x)),
    "interp": lambda x: np.interp(x[0], [0.0, 1.0], [5.0, 6.0]),
    "digitize": lambda x: np.digitize(x, [-1.0, 0.0, 1.0]),
    "ix_": lambda x: x[np.ix_([0, 1], [1, 2])],
    "select": lambda x: np.select([x > 0, x < -1], [x, -x], 7.0),
    "lexsort": lambda x: np.lexsort((x[0], x[1])),
    "partition": lambda x: np.partition(x[0], 2)[2],
    "unwrap": lambda x: np.unwrap(x[0] * 9),
    "delete and insert": lambda x: (np.delete(x, 1, axis=0), np.insert(x, 1, 0.0, axis=1)),
    "tril_indices": lambda x: x[np.tril_indices(3)],
    "NumPy 2 names": lambda x: (
        np.concat([x, x]),
        np.permute_dims(x, (1, 0)),
        np.acos(x / 9),
        np.pow(x, 2),
    ),
    "sorts complex": lambda x: np.sort((x + 1j * x.T).ravel()),
    "sliding windows": lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 2).sum(1),
}


@pytest.mark.parametrize("name", REFUSED_ELSEWHERE)
def test_what_others_refuse_runs(name):
    check(REFUSED_ELSEWHERE[name], data(4, 4))


WITHOUT_A_BREAK = [
    "add.reduce", "maximum.reduce", "multiply.outer", "add.accumulate", "where=",
    "where= and out=", "initial=",
    "take clip", "select", "NumPy 2 names", "tril_indices", "ravel in Fortran order",
]  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_A_BREAK)
def test_what_others_refuse_is_one_segment(name):
    unbroken(REFUSED_ELSEWHERE[name], data(4, 4))


def test_a_structured_dtype_made_inside():
    def f(x):
        r = np.zeros(2, dtype=[("a", "f8"), ("b", "i4")])
        r["a"] = x[:2]
        return r, x * 2

    check(f, data(3))


def test_a_data_dependent_while():
    def f(x):
        n = 0
        while x.max() > 0.01:
            x = x * 0.5
            n += 1
        return x, n

    check(f, abs(data(4)))


def test_ufuncs_heed_where_with_out():
    def f(x, o):
        np.sin(x, out=o, where=x > 0)
        return o

    unbroken(f, data(5), np.full(5, 7.0))


def test_a_long_recurrence_is_compiled_as_one_iteration():
    def f(x):
        for _ in range(400):
            x = 0.99 * x + np.sin(x) * 0.01
        return x

    fast, counter = compiled(f)
    got = fast(data(8))
    np.testing.assert_allclose(got, f(data(8)), rtol=1e-10)
    assert counter.count <= 3
    assert counted_nodes(fast) <= 20  # of 1600 calls


def test_a_break_in_a_loop_keeps_the_rest_compiled():
    def f(x):
        for i in range(12):
            x = np.sin(x) + 1
            print(i, bool(x[0] > 0))
            x = x * 2
        return x

    c = check(f, data(3))
    with np_compile.config.patch(plain="never"):
        e = np_compile.explain(c.compiled)(data(3))
    assert sum(s.runs for s in e.segments) >= 12
    assert c.compiles <= 4


def test_gradients_survive_a_break():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            y = y * 3
        return y.sum()

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    np_compile.compile(np_compile.wrap_numpy(f), backend="eager")(x).backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_globals_are_not_frozen():
    scale = [2.0]
    fast, _ = compiled(lambda x: x * scale[0])
    assert fast(np.ones(1)).tolist() == [2]
    scale[0] = 3.0
    assert fast(np.ones(1)).tolist() == [3]


def test_indices_are_checked():
    fast, _ = compiled(lambda x, i: x[i])
    assert fast(np.arange(3.0), 2) == 2
    for i in (3, -4, 100):
        with pytest.raises(IndexError, match=f"index {i} is out of bounds for axis 0 with size 3"):
            fast(np.arange(3.0), i)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(lambda x, i: x[i])[0](np.arange(3.0), np.array([0, 7]))


def test_in_place_updates_inside_and_masks_under_compile():
    def f(x):
        x[1] = 5
        x[x > 1] = 0
        return x, x[x != 0]

    check(f, data(5))


def test_shapes_that_vary_do_not_give_up():
    fast, counter = compiled(lambda x: np.sin(x) * 2 + x.sum())
    for n in range(1, 14):
        np.testing.assert_allclose(fast(data(n)), np.sin(data(n)) * 2 + data(n).sum())
    assert counter.count <= 13


def test_forty_variants_of_one_function_stay_right():
    fast, _ = compiled(lambda x, mode: x.sum() if mode == 0 else x * mode)
    for mode in range(40):
        want = data(3).sum() if mode == 0 else data(3) * mode
        np.testing.assert_allclose(fast(data(3), mode), want)
