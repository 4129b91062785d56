"""x[index] and x[index] = value, every kind of index, against NumPy's."""

from __future__ import annotations

import collections
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import assert_matches, assert_meta, assert_same, from_shim, quiet, shim, to_shim

X = np.arange(24.0).reshape(2, 3, 4)
MASK = X[0] > 3
INDICES = [
    0,
    -1,
    (0, 1),
    (0, 1, 2),
    (-1, -1, -1),
    (),
    Ellipsis,
    None,
    (Ellipsis, 0),
    (0, Ellipsis),
    (0, 1, 2, Ellipsis),
    (None, 0, None),
    slice(None),
    slice(None, None, -1),
    (slice(None), slice(None, None, -1), 0),
    (slice(1, 0), slice(5, None, -2)),
    (slice(None, None, -1), slice(2, 0, -1), slice(None, None, 3)),
    [0, 1],
    [1, 0, 1, -1],
    [],
    (slice(None), [2, 0]),
    ([0, 1], slice(None), [1, 2]),
    ([0, 1], [1, 2]),
    (0, slice(None), [1, 2]),
    (slice(None), 0, [1, 2]),
    (slice(None), [0], Ellipsis, [1]),
    ([0, 1], None, [1, 2]),
    (Ellipsis, [[0, 1], [2, 3]]),
    (slice(None, None, -1), [2, 0], slice(None, None, -2)),
    np.array([[0, 1], [1, 0]]),
    np.array(1),
    (np.array(1), np.array(2)),
    (np.int64(1), np.uint8(2)),
    X > 5,
    (slice(None), MASK),
    (0, MASK),
    (slice(None), MASK[:, 0]),
    (slice(None), MASK[:, 0], slice(None, None, -1)),
    (slice(None, None, -1), slice(None, None, -1), MASK[0]),
    np.zeros((2, 3), bool),
    ([True, False], [0, 2]),
    True,
    False,
    (True, [0, 1]),
    (slice(None), True, 0),
    np.array([1, 0], np.uint64),
]
BAD = [
    2,
    (0, -4),
    (0, 0, 0, 0),
    1.5,
    "a",
    [1.5],
    np.array([0.5]),
    (Ellipsis, Ellipsis),
    [5],
    (slice(None), [0, 5]),
    ([0, 1], [0, 1, 2]),
    np.array([True, False, True]),
    np.zeros((2, 3, 4, 1), bool),
    slice(None, None, 0),
    slice("a", None),
]


def _both(index, x=X):
    """NumPy's array and index, and the shim's."""
    if isinstance(index, tuple):
        ours = tuple(to_shim(i) if isinstance(i, np.ndarray) else i for i in index)
    else:
        ours = to_shim(index) if isinstance(index, np.ndarray) else index
    return x.copy(), index, shim.from_numpy(x.copy()), ours


def _static(index):
    parts = index if isinstance(index, tuple) else (index,)
    return not any(np.asarray(p).dtype == bool for p in parts if isinstance(p, (np.ndarray, list)))


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("layout", ["c", "t", "flipped"])
def test_get(index, layout):
    x, i, a, j = _both(index)
    if layout == "t":
        x, a = np.transpose(x, (0, 1, 2)).copy("F"), shim.from_numpy(x.copy("F"))
    if layout == "flipped":
        x, a = x[::-1, :, ::-1], a[::-1, :, ::-1]
    assert_same(a[j], x[i])
    if _static(index):
        assert_meta(lambda v: v[j], a[j], (a,), {})


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_views_and_copies(index):
    x, i, a, j = _both(index)
    expected, got = x[i], a[j]
    if isinstance(expected, np.ndarray):
        expected[...] = 100
        got[...] = 100
    assert_same(a, x)


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("dtype", ["d", "H", "L", "D"])
def test_set(index, dtype):
    x, i, _, j = _both(index)
    x = x.astype(dtype)
    for flipped in (False, True):
        theirs, ours = x.copy(), shim.from_numpy(x.copy())
        left, right = (theirs[::-1, :, ::-1], ours[::-1, :, ::-1]) if flipped else (theirs, ours)
        left[i] = 5
        right[j] = 5
        assert_same(ours, theirs)
        shape = x[i].shape
        value = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype("d")
        left[i] = value
        right[j] = to_shim(value)
        assert_same(ours, theirs)
        if shape:
            row = value[..., :1]
            left[i] = row
            right[j] = to_shim(row)
            assert_same(ours, theirs)


@pytest.mark.parametrize("index", BAD, ids=repr)
def test_errors(index):
    x, i, a, j = _both(index)
    with pytest.raises(Exception) as expected:  # noqa: PT011
        x[i]
    with pytest.raises(type(expected.value)) as got:
        a[j]
    assert str(got.value) == str(expected.value)
    with pytest.raises(type(expected.value)) as got:
        a[j] = 0
    assert str(got.value) == str(expected.value)


@pytest.mark.parametrize(
    ("index", "value", "dtype"),
    [
        (0, np.ones(4), "d"),
        ([0, 1], np.ones(4), "d"),
        (X[0, :2, :3] > 2, np.ones(5), "d"),
        (X[0, :2, :3] > 2, np.ones((1, 3)), "d"),
        ((0, 0), np.ones(3), "d"),
        ((0, 0), [3], "d"),
        (0, 1j, "d"),
        (0, 1j, "l"),
        (0, np.nan, "l"),
        (0, np.inf, "l"),
        (0, 300, "B"),
        (0, -1, "L"),
        (0, 2.7, "l"),
        (0, [1, 2, 3], "H"),
        (0, [300, 2, 3], "B"),
        (0, True, "d"),
        (0, 2, "?"),
        (0, np.array([1.5, 2, 3]), "b"),
        (0, np.array([1j, 1, 1]), "f"),
        (0, np.ones((1, 1, 3)), "d"),
        ([0], np.ones((1, 1, 1, 3)), "d"),
        ((slice(None), [True, False, True]), np.ones((3, 2)), "d"),
        ((slice(None), [True, False, True]), np.ones((2, 1)), "d"),
    ],
    ids=repr,
)
def test_set_values(index, value, dtype):
    x = np.arange(6.0).reshape(2, 3).astype(dtype)
    theirs, ours = x.copy(), shim.from_numpy(x.copy())
    error = None
    with quiet():
        try:
            theirs[index] = value
        except Exception as e:
            error = e
        ours_index = to_shim(index) if isinstance(index, np.ndarray) else index
        if error is None:
            ours[ours_index] = to_shim(value) if isinstance(value, np.ndarray) else value
            assert_same(ours, theirs)
            return
        with pytest.raises(type(error)) as got:
            ours[ours_index] = to_shim(value) if isinstance(value, np.ndarray) else value
    assert str(got.value) == str(error)


def test_last_of_repeated_indices_wins():
    index = [1, 0, 1, 2, 1]
    for dtype in "dHL":
        x = np.zeros(3, dtype)
        a = shim.from_numpy(x.copy())
        x[index] = [1, 2, 3, 4, 5]
        a[index] = [1, 2, 3, 4, 5]
        assert_same(a, x)
    t = torch.arange(1.0, 6.0, dtype=torch.float64, requires_grad=True)
    a = shim.from_tensor(torch.zeros(3, dtype=torch.float64))
    a[index] = shim.from_tensor(t)
    a.tensor.sum().backward()
    assert t.grad.tolist() == [0, 1, 0, 1, 1]


def test_overlap():
    for step in (slice(1, None), slice(None, -1)):
        x = np.arange(10.0)
        a = shim.from_numpy(x.copy())
        other = slice(None, -1) if step == slice(1, None) else slice(1, None)
        x[step] = x[other]
        a[step] = a[other]
        assert_same(a, x)
    a[::-1] = a
    x[::-1] = x.copy()
    assert_same(a, x)


def test_read_only():
    a = shim.from_numpy(np.zeros(3))
    a.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        a[0] = 1
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        a[1:][...] = 1
    with pytest.raises(TypeError, match="does not support item assignment"):
        shim.add(1.0, 2.0)[()] = 3
    with pytest.raises(IndexError, match="invalid index to scalar variable"):
        shim.add(1.0, 2.0)[0]


def test_scalars_and_views():
    a = shim.from_numpy(X.copy())
    element = a[0, 0, 0]
    assert type(element) is np.float64
    a[0, 0, 0] = 50
    assert float(element) == 0
    view = a[0, 0, 0, ...]
    assert not view._scalar
    view[...] = 7
    assert float(a[0, 0, 0]) == 7
    assert a[0].base is a
    assert a[0][1].base is a
    assert a[[0]].base is None


def test_meta():
    a = shim.ndarray(torch.empty((3, 4), device="meta"))
    mask = shim.ndarray(torch.empty((3, 4), dtype=torch.bool, device="meta"))
    index = shim.ndarray(torch.empty((), dtype=torch.int64, device="meta"))
    with pytest.raises(shim.DataDependent):
        a[mask]
    a[mask] = 0
    a[mask] = shim.ndarray(torch.empty(5, device="meta"))
    assert a[index].shape == (4,)
    assert a[index, index].shape == ()
    assert a[index, index]._scalar
    a[index] = 1
    a[index, 1:] = a[index, :-1]


def test_gradients():
    t = torch.arange(12.0, dtype=torch.float64).reshape(3, 4).requires_grad_()

    def through(t):
        a = shim.from_tensor(t.clone())
        a[1:, ::-1] = a[:-1]
        a[[0, 2], [1, 1]] = a[1, 0]
        a[a > 5.5] = 1.5
        return (a * a).tensor

    assert torch.autograd.gradcheck(through, t)


_SLICE = st.builds(
    slice,
    st.none() | st.integers(-5, 5),
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]),
)


@st.composite
def _index_into(draw, shape):
    parts, axis = [], 0
    dots = False
    while axis < len(shape):
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "new", "array", "mask", "dots", "end"])
        )
        n = shape[axis]
        if kind == "end":
            break
        if kind == "new":
            parts.append(None)
        elif kind == "dots":
            if not dots:
                parts.append(Ellipsis)
                dots = True
                axis += draw(st.integers(0, len(shape) - axis))
        elif kind == "int" and n:
            parts.append(draw(st.integers(-n, n - 1)))
            axis += 1
        elif kind == "array" and n:
            size = draw(st.sampled_from([(2,), (1,), (2, 2), (2, 1)]))
            flat = [draw(st.integers(-n, n - 1)) for _ in range(int(np.prod(size)))]
            parts.append(np.array(flat).reshape(size))
            axis += 1
        elif kind == "mask":
            parts.append(np.array([draw(st.booleans()) for _ in range(n)], bool))
            axis += 1
        else:
            parts.append(draw(_SLICE))
            axis += 1
    return tuple(parts)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_any_index(data):
    shape = data.draw(st.sampled_from([(4,), (3, 4), (2, 3, 4), (3, 1, 2), (0, 2)]))
    index = data.draw(_index_into(shape))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    flipped = data.draw(st.booleans())
    a = shim.from_numpy(x.copy())
    if flipped:
        x, a = x[::-1], a[::-1]
    ours = tuple(to_shim(i) if isinstance(i, np.ndarray) else i for i in index)
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            a[ours]
        return
    got = a[ours]
    assert_same(got, expected, context=(shape, index, flipped))
    if isinstance(expected, np.ndarray) and isinstance(from_shim(got), np.ndarray):
        assert (
            np.shares_memory(expected, x)
            == (
                got._t.numel() > 0
                and got._t.untyped_storage()._cdata == a._t.untyped_storage()._cdata
            )
            or not expected.size
        )
    value = np.arange(expected.size).reshape(expected.shape) + 100
    theirs = x.copy()
    mine = shim.from_numpy(np.ascontiguousarray(x))[::1]
    theirs[index] = value
    mine[ours] = to_shim(value)
    assert_same(mine, theirs, context=(shape, index))


def test_gradients_of_reading():
    t = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    for index in (0, (1, 2), [1, 0, 1], (slice(None), [2, 0]), (slice(None, None, -1), 1)):
        assert torch.autograd.gradcheck(lambda v, i=index: shim.from_tensor(v)[i].tensor, t)
    mask = shim.from_numpy(np.array([True, False]))
    assert torch.autograd.gradcheck(lambda v: shim.from_tensor(v)[mask].tensor, t)


OUTSIDE = [
    "x[[9]]", "x[[-10]]", "x[[0, 9]]", "x[np.array([9, 0])]", "x[np.array([-10])]",
    "x[np.array(9)]", "x[None, [9]]", "x[[[9], [0]]]", "x.__setitem__([9], 1)",
    "x.__setitem__([-10, 0], [1, 2])", "x.__setitem__(np.array([0, 9]), 1.5)", "np.take(x, [9])",
    "x.take([-10])", "np.put(x, [9], 1)", "np.add.at(x, [9], 1)", "np.add.at(x, [0, -10], 1)",
    "np.take_along_axis(x, np.array([9]), 0)", "np.put_along_axis(x, np.array([-10]), 1, 0)",
    "np.delete(x, [9])", "np.insert(x, [10], 1)", "x.__getitem__([9]).sum()",
]  # fmt: skip


@pytest.mark.parametrize("expression", OUTSIDE)
@pytest.mark.parametrize("base", ["v[::-1]", "v.reshape(9, 1)[::-1].T[0]", "np.flip(v)"])
def test_out_of_bounds_on_a_reversed_axis(expression, base):
    def run(np, v):
        x = eval(base, {"np": np, "v": v})
        return eval(expression, {"np": np, "x": x}), v

    assert_matches(run, np.arange(9.0), meta=False)


def test_an_index_that_a_trace_does_not_know_stays_out_of_bounds():
    from np_compile.shim._index_plan import plan, positions_of

    x = shim.from_numpy(np.arange(9))[::-1]
    for i, place in ((0, 8), (8, 0), (-1, 0), (-9, 8)):
        (found,) = positions_of(plan(x, [i]))
        assert int(found[0]) % 9 == place
    p = plan(x, [0])
    for i in (9, 100, -10, 2**62):
        p.gathers = [(0, torch.tensor([i]))]
        (found,) = positions_of(p)
        assert not -9 <= int(found[0]) < 9


def test_one_element_takes_no_list():
    def run(np, x, key, v):
        x[key] = v
        return x

    for v in ([1.0], [], [1, 2], (3,)):
        assert_matches(run, np.arange(3.0), 0, v, meta=False)
        assert_matches(run, X.copy(), (0, 1, 2), v, meta=False)
    assert_matches(lambda np, x: x.fill([1]), np.arange(3.0), meta=False)


def test_a_named_tuple_is_a_tuple_of_indices():
    Place = collections.namedtuple("Place", "row column")
    x = np.arange(12.0).reshape(3, 4)
    for index in (Place(1, 2), Place([1], [2]), Place(slice(1, 3), None), Place(x > 1, None)):
        if index.column is None and not isinstance(index.row, slice):
            index = Place(index.row, Ellipsis)
        a = to_shim(x)
        assert_same(a[index], x[index])
        theirs = x.copy()
        theirs[index] = a[index] = -1
        assert_same(a, theirs)


@pytest.mark.parametrize("places", [[0, 1, 9, 2], [9, 0], [-1, 0, -9, 1]])
def test_put_sets_what_comes_before_a_place_outside(places):
    x = np.arange(4)
    y = to_shim(x)
    with pytest.raises(IndexError) as expected:
        x.put(places, [7, 8])
    with pytest.raises(IndexError) as told:
        y.put(to_shim(np.array(places)), [7, 8])
    assert str(told.value) == str(expected.value)
    assert_same(y, x)


@pytest.mark.parametrize("values", [[7.0], []])
def test_put_into_an_array_without_elements(values):
    def put(np):
        x = np.zeros((2, 0))
        try:
            np.put(x, [0], values)
        except IndexError as e:
            return str(e)
        return x.shape

    assert put(shim) == put(np)


@pytest.mark.parametrize("index", [lambda m: m, lambda m: (m,), lambda m: (m, ...)])
@pytest.mark.parametrize("shape", [(1, 2), (1, 1), (2, 1)])
def test_values_with_axes_under_a_mask(index, shape):
    def store(np, v):
        x = np.arange(4.0)
        x[index(x > 1)] = v
        return x

    try:
        expected = store(np, np.ones(shape))
    except (TypeError, ValueError) as e:
        with pytest.raises(type(e), match=re.escape(str(e))):
            store(shim, shim.ones(shape))
    else:
        assert_same(store(shim, shim.ones(shape)), expected)
