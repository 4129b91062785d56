"""Arrays put together, repeated, padded, cut, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, assert_matches, assert_same, sample, shares_memory, shim, to_shim

A = np.arange(6).reshape(2, 3)
STACKS = ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]


@pytest.mark.parametrize("name", STACKS)
def test_joins(name):
    f = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for parts in (
        [A, A + 1], (A, A.astype("f4")), [A[:, ::-1], f], [np.arange(3), np.arange(3.0)], [A],
        [np.float32(1), 2], [1, 2.5], [[1, 2], [3, 4]], [A.astype("u2"), A.astype("i1")], [],
        [A, A[:1]],
        [A, np.arange(3)], [np.zeros((0, 3)), A], A, [np.zeros((2, 0)), np.zeros((2, 0), "F")],
        [f, f],
        [np.zeros(0), A],
    ):  # fmt: skip
        assert_matches(name, parts, meta=isinstance(parts, (list, tuple)))
    assert not shares_memory(getattr(shim, name)([to_shim(A)]), to_shim(A))


@pytest.mark.parametrize("dtype", ALL)
def test_join_dtypes(dtype):
    a = sample(dtype, (2, 3))
    for other in ("?", "i1", "u8", "f4", "F"):
        for name in ("concatenate", "stack", "vstack"):
            assert_matches(name, [a, np.ones((2, 3), other)])
        assert_matches("concatenate", [a, a], dtype=other)
        assert_matches(
            "concatenate", [a, a], dtype=other, casting="unsafe"
        ) if dtype not in "efdFD" else None
    assert_matches("append", a, a[::-1])
    assert_matches("append", a, a, axis=1)
    assert_matches("append", a, [1, 2])


def test_join_options():
    for axis in (0, 1, -1, None, 2, -3):
        assert_matches("concatenate", [A, A + 1.5], axis=axis)
        assert_matches("stack", [A, A + 1], axis=axis)
        assert_matches("concat", (A, A), axis=axis)
    assert_matches("concatenate", [A, A], casting="no")
    assert_matches("concatenate", [A, A.astype("f4")], casting="no")
    assert_matches("concatenate", [A, A], casting="never")
    assert_matches("concatenate", [A, A], dtype="f4", casting="safe")
    assert_matches("stack", [A, A], dtype="f4")
    assert_matches("vstack", [A, A], dtype="i2", casting="safe")
    assert_matches("stack", [A, A[:1]])


def test_join_out():
    for dtype in ("i8", "f8", "F"):
        theirs, ours = np.zeros((4, 3), dtype), to_shim(np.zeros((4, 3), dtype))
        np.concatenate([A, A], out=theirs)
        assert shim.concatenate([to_shim(A), to_shim(A)], out=ours) is ours
        assert_same(ours, theirs)
    backwards = to_shim(np.zeros((4, 3)))[::-1]
    shim.concatenate([to_shim(A), to_shim(A + 9)], out=backwards)
    assert_same(backwards, np.concatenate([A, A + 9]).astype(float))
    x = to_shim(A)
    for out, more, error in (
        (np.zeros((3, 3)), {}, "Output array is the wrong shape"),
        (np.zeros((4, 3), bool), {}, "Cannot cast"),
        (np.zeros((4, 3)), {"dtype": "f4"}, "only takes `out` or `dtype`"),
    ):
        with pytest.raises((ValueError, TypeError), match=error):
            shim.concatenate([x, x], out=to_shim(out), **more)


def test_block():
    assert_matches("block", [A, A])
    assert_matches("block", [[A, A], [A, A + 0.5]])
    assert_matches("block", [[1, A[0, :2]], [np.zeros((2, 3))]])
    assert_matches("block", 3)
    assert_matches("block", A)
    assert_matches("block", [[[A]], [[A]]])
    assert_matches("block", [[A], A])
    assert_matches("block", [[A, A], [A]])
    assert_matches("block", (A, A))
    assert_matches("block", [A, (A, A)])
    assert_matches("block", [])
    assert_matches("block", [[A], []])


MASK = [True, False, True]  # np.insert of NumPy 2.4 takes masks as arrays only
PLACES = [
    0, 1, -1, 2, 3, 9, -9, slice(None), slice(0, 2), slice(None, None, -1), slice(5, 9),
    [0, 2], [1, 1], [], [-1, 0], MASK, np.array([0, 2]), [9], 1.5, np.int64(1), [[0, 1]],
]  # fmt: skip


@pytest.mark.parametrize("place", [*PLACES, np.array(MASK)], ids=repr)
def test_delete_and_insert(place):
    meta = not isinstance(place, (np.ndarray, np.generic))
    for axis in (None, 1, -1, 0, 5):
        for a in (A, A[:, ::-1], np.arange(3), np.arange(3, dtype="u2"), np.arange(3.0)):
            assert_matches("delete", a, place, axis, meta=meta)
            for values in (7, 2.5, [5, 6], [5, 6, 7], [[8], [9]], np.arange(6).reshape(2, 3)):
                if isinstance(place, float) or place is MASK:
                    continue
                assert_matches("insert", a, place, values, axis, meta=meta)


@pytest.mark.parametrize("dtype", ALL)
def test_repeats(dtype):
    a = sample(dtype, (2, 3))
    for reps in (2, (2,), (1, 2), (2, 1, 2), (), 1, 0, (2, -1)):
        assert_matches("tile", a, reps)
        assert_matches("tile", a[::-1], reps)
    assert not shares_memory(shim.tile(to_shim(a), 1), to_shim(a))
    for repeats, axis in itertools.product(
        (2, 0, [1, 2, 0], [3], -1, [1, 2], [1, -1, 2]), (None, 1, 0, 7)
    ):
        assert_matches("repeat", a, repeats, axis)
    assert_matches("repeat", 3, 2)
    assert_matches("repeat", a, np.array([2, 0, 1]), 1, meta=False)
    for shift, axis in itertools.product(
        (1, -2, 0, 9, (1, 2), (1, 2, 3)), (None, 0, -1, (0, 1), (0, 0), 3)
    ):
        assert_matches("roll", a, shift, axis)
        assert_matches("roll", a[:, ::-1], shift, axis)
    assert_matches("roll", np.zeros((0, 3), dtype), 1)
    assert_matches("roll", np.zeros((), dtype), 1)
    for shape in (4, (3, 4), (0,), (2, 3), (2, -1), ()):
        assert_matches("resize", a, shape)
    assert_matches("resize", np.zeros(0, dtype), (2, 2))
    assert_matches("resize", np.zeros(2, dtype), np.array(1))


def test_repeats_of_traced_counts_need_data():
    counts = shim.ndarray(shim.as_array([1, 2])._t.to("meta"))
    with pytest.raises(Exception, match="depends on the values"):
        shim.repeat(shim.as_array([1, 2]), counts)


@pytest.mark.parametrize("trim", ["fb", "f", "b", "bf", "x"])
def test_trim_zeros(trim):
    for a in (
        np.array([0, 0, 1, 0, 2, 0]),
        np.zeros(3),
        np.eye(4)[1:3],
        np.array([0, 0, 3, 0])[::-1],
    ):
        assert_matches("trim_zeros", a, trim, meta=False)


MODES = [
    ("constant", {}), ("constant", {"constant_values": 7}),
    ("constant", {"constant_values": (1, 2)}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}), ("edge", {}), ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}), ("linear_ramp", {}), ("linear_ramp", {"end_values": (5, 2)}), ("maximum", {}),
    ("mean", {}),
    ("minimum", {}), ("maximum", {"stat_length": 2}), ("mean", {"stat_length": ((1, 2), (3, 1))}),
    ("minimum", {"stat_length": 0}), ("edge", {"stat_length": 3}), ("nothing", {}),
    ("reflect", {"x": 1}),
]  # fmt: skip
WIDTHS = [0, 1, (1, 2), ((1, 2), (3, 0)), ((7, 8), (9, 1)), ((1,), (2,)), {0: 2}, {-1: (1, 2)}]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_pad(mode, width):
    name, options = mode
    for a in (A, A[:, ::-1] * 1.5, A.astype("u2"), A.astype("i1"), (A * 0.3).astype("f4"), A + 1j):
        assert_matches("pad", a, width, name, **options, rtol=1e-6 if a.dtype.kind in "fc" else 0)
    assert not shares_memory(shim.pad(to_shim(A), 0), to_shim(A))


@pytest.mark.parametrize("width", [(0, 2), (1, 0), (1, 2), ((0, 0), (0, 1)), 0], ids=str)
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_pad_of_no_elements(mode, width):
    for a in (A[:0], A[:, :0], A[:0, :0]):
        assert_matches("pad", a, width, mode)


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_stay_columns(order):
    x = np.asarray(np.arange(12.0).reshape(3, 4), order=order)

    def strides(m, a):
        found = [m.delete(a, 1, axis=d).strides for d in (0, 1, None)]
        found += [m.insert(a, 1, 5, axis=d).strides for d in (0, 1, None)]
        return found + [m.pad(a, 1, how).strides for how in ("edge", "constant", "mean", "wrap")]

    assert strides(shim, to_shim(x)) == strides(np, x)


def test_pad_more():
    for mode in ("constant", "edge", "wrap", "reflect", "mean"):
        assert_matches("pad", np.zeros((0, 2)), ((0, 0), (1, 1)), mode)
        assert_matches("pad", np.zeros((0, 2)), 1, mode)
        assert_matches("pad", np.arange(1), 3, mode)
        assert_matches("pad", A > 2, 1, mode) if mode != "mean" else None
    assert_matches("pad", A, 1.5)
    assert_matches("pad", A, -1)
    assert_matches("pad", A, (1, 2, 3))
    assert shim.pad(to_shim(A), 1, "empty").shape == (4, 5)
    for mode, options in (
        ("median", {}),
        ("reflect", {"reflect_type": "odd"}),
        (lambda *a: None, {}),
    ):
        with pytest.raises(NotImplementedError):
            shim.pad(to_shim(A), 1, mode, **options)


@given(
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(0, 9),
    st.sampled_from(["reflect", "symmetric", "wrap"]),
)
@settings(max_examples=60, deadline=None)
def test_pad_widths(n, before, after, mode):
    assert_matches("pad", np.arange(n), (before, after), mode, meta=False)


@pytest.mark.parametrize("dtype", ALL)
def test_triangles(dtype):
    for a in (
        sample(dtype, (3, 4)),
        sample(dtype, (2, 3, 2))[:, ::-1],
        sample(dtype, (3,)),
        np.zeros((0, 2), dtype),
    ):
        for k in (0, 1, -1, 9):
            assert_matches("tril", a, k)
            assert_matches("triu", a, k)
    assert_matches("tril", np.zeros((), dtype))


def test_index_arrays():
    for args in ((3,), (3, 1), (3, -1, 4), (2, 0, 5), (4, 1, 2), (0,), (3, 9)):
        assert_matches("tril_indices", *args)
        assert_matches("triu_indices", *args)
    for a in (np.ones((3, 4)), np.ones(3), np.ones((2, 2, 2)), np.ones((3, 3))):
        assert_matches("tril_indices_from", a, 1)
        assert_matches("triu_indices_from", a)
        assert_matches("diag_indices_from", a)
    assert_matches("diag_indices", 4)
    assert_matches("diag_indices", 2, 3)
    triangle = {np.ndarray: np.triu, shim.ndarray: shim.triu}
    assert_matches("mask_indices", 3, lambda m, k: triangle[type(m)](m, k), meta=False)
    assert_matches("ix_", [0, 2], [1, 3])
    assert_matches("ix_", [0, 2], [True, False, True], meta=False)
    assert_matches("ix_", np.arange(3)[::-1], [])
    assert_matches("ix_", [[1]])


@pytest.mark.parametrize("dtype", ALL)
def test_fill_diagonal(dtype):
    shapes = [(3, 3), (2, 5), (7, 2), (2, 2, 2), (0, 0), (1, 3)]
    for shape, wrap, value in itertools.product(
        shapes, (True, False), (1, [1, 0], [[3], [2], [1]], True)
    ):
        for turn in (lambda x: x, lambda x: x[::-1], lambda x: x.T, lambda x: x[:, ::-1][::-1]):
            theirs, ours = np.zeros(shape, dtype), to_shim(np.zeros(shape, dtype))
            np.fill_diagonal(turn(theirs), value, wrap)
            assert shim.fill_diagonal(turn(ours), value, wrap) is None
            assert_same(ours, theirs)
    assert_matches("fill_diagonal", np.zeros(3, dtype), 1)
    assert_matches("fill_diagonal", np.zeros((2, 3, 3), dtype), 1)


def test_flat_indices():
    flat = np.array([[0, 5, 11], [7, 3, 2]])
    for order in "CF":
        for value in (flat, 7, [1, 2], flat.astype("u1"), flat[:, ::-1], np.uint64(3)):
            assert_matches(
                "unravel_index", value, (3, 4), order=order, meta=not isinstance(value, np.generic)
            )
        for multi in (([0, 1], [2, 3]), (1, 2), ([[0], [2]], [0, 3]), ([0, 1],), ([0, 1], 5, 2)):
            assert_matches("ravel_multi_index", multi, (3, 4), order=order)
    for mode in ("raise", "wrap", "clip", ("wrap", "clip"), "no", ("wrap",)):
        assert_matches(
            "ravel_multi_index", ([0, -1, 4], [2, 9, -7]), (3, 4), mode=mode, meta=mode != "raise"
        )
    assert_matches("unravel_index", 12, (3, 4), meta=False)
    assert_matches("unravel_index", -1, (3, 4), meta=False)
    assert_matches("unravel_index", 1.5, (3, 4))
    assert_matches("unravel_index", 0, ())
    assert_matches("unravel_index", 3, 5)
    assert_matches("ravel_multi_index", ([0.5], [1]), (3, 4))
    assert_matches("ravel_multi_index", ([0], [0]), (2**40, 2**40), meta=False)


def test_functions_of_parts():
    for axis in (0, 1, -1, 5):
        for f in (lambda v: v.sum(), lambda v: v * 2, lambda v: v[:1], lambda v: v.reshape(-1, 1)):
            assert_matches("apply_along_axis", f, axis, A, meta=False)
            assert_matches("apply_along_axis", f, axis, A[:, ::-1], meta=False)
    assert_matches("apply_along_axis", lambda v: v.sum(), 0, np.zeros((2, 0)), meta=False)

    def total(m):
        return np.sum if m is np else shim.sum

    assert_matches(lambda m: m.apply_over_axes(total(m), m.ones((2, 3, 4)), [0, 2]), meta=False)
    assert_matches(lambda m: m.apply_over_axes(total(m), m.ones((2, 3, 4)), -1), meta=False)
    x = np.linspace(-2, 2, 9)
    for functions in ([-1, 1], [lambda v: -v, lambda v: v * 2], [lambda v: -v, 1, 7]):

        def call(m, functions=functions):
            y = m.asarray(x)
            return m.piecewise(y, [y < 0, y >= 1], functions)

        assert_matches(call, meta=False)
    assert_matches("piecewise", x, [x < 0], [1, 2, 3], meta=False)
    assert_matches("piecewise", 2.5, [True], [lambda v: v * 2], meta=False)


def test_questions():
    for name in ("shape", "ndim", "size", "isscalar", "iterable"):
        for value in (A, 3, [1, 2], np.float32(2), A[:0], [[1], [2]]):
            assert_matches(name, value)
    assert_matches("size", A, 1)
    assert_matches("size", A, 7)
    for a in (A[:, ::-1], A[:0], np.float32([[1.5]]), np.array(3)):
        pairs, own = list(shim.ndenumerate(to_shim(a))), list(np.ndenumerate(a))
        assert [(i, type(v), v) for i, v in pairs] == [(i, type(v), v) for i, v in own]
    for cut in ((slice(0, 3), slice(3, 6)), (slice(0, 4), slice(3, 6)),
                (slice(None, None, 2), slice(1, None, 2)),
                (slice(None, None, -1), slice(0, 1)),
                (slice(None, None, -2), slice(0, None, 2))):  # fmt: skip
        for name in ("shares_memory", "may_share_memory"):

            def call(m, cut=cut, name=name):
                base = m.arange(6)
                return getattr(m, name)(base[cut[0]], base[cut[1]])

            assert_matches(call)
    assert shim.shares_memory(shim.ones(2), shim.ones(2)) is False


@pytest.mark.parametrize("dtype", ALL)
def test_polyval(dtype):
    for p in ([1, 2, 3], [], [2.5], np.array([1, 2], "u1")):
        for x in (sample(dtype, (4,)), np.float32(2), 3):
            assert_matches("polyval", p, x)


NUMBERS_AMONG = [
    lambda x: [1, 2.5, x],
    lambda x: [True, 2, x],
    lambda x: [np.float32(1), 2, x],
    lambda x: [x, x, 1.5],
    lambda x: [x, x, 1j],
    lambda x: [300, x, x],
    lambda x: [x, -1],
    lambda x: [1, 2],
]


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u1", "f8", "c8"])
@pytest.mark.parametrize("make", NUMBERS_AMONG)
def test_numbers_promote_weakly_in_flat_joins_and_choices(make, dtype):
    parts = make(np.arange(3).astype(dtype))
    assert_matches("concatenate", parts, axis=None)
    assert_matches("choose", np.arange(len(parts)) if len(parts) == 3 else np.array(1), parts)
    assert_matches("hstack", parts)
