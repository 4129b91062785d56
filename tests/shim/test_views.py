"""Views against NumPy: values, strides, sharing, writes that arrive, errors."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, assert_matches, assert_same, shares_memory, shim, to_shim, torch

BASE = np.arange(24).reshape(2, 3, 4)
LAYOUTS = {
    "plain": BASE,
    "columns": np.asfortranarray(BASE),
    "turned": BASE.transpose(1, 0, 2),
    "reversed": BASE[::-1],
    "reversed_last": BASE[:, :, ::-1],
    "reversed_all": BASE[::-1, ::-1, ::-1],
    "strided": np.arange(96).reshape(4, 6, 4)[::2, ::2],
    "broadcast": np.broadcast_to(np.arange(4), (2, 3, 4)),
    "ones": np.arange(12).reshape(1, 3, 1, 4),
    "ones_reversed": np.arange(12).reshape(1, 3, 1, 4)[:, ::-1],
    "empty": np.zeros((0, 3)),
    "vector": np.arange(6),
    "vector_reversed": np.arange(6)[::-1],
    "vector_strided": np.arange(12)[::2],
    "zero_d": np.array(5),
    "scalar": np.float32(5),
}


def pair(a):
    """A NumPy array and a shim array with the same values and strides, both on their own memory."""
    if not isinstance(a, np.ndarray):
        return a, to_shim(a)
    base = a if a.base is None else a.base
    while base.base is not None:
        base = base.base
    copy = base.copy()
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    view = np.ndarray(a.shape, a.dtype, copy.data, offset, a.strides)
    second = base.copy()
    return view, shim.from_numpy(np.ndarray(a.shape, a.dtype, second.data, offset, a.strides))


def check(a, name, *args, **kwargs):
    """The function on an array: result or error, strides, sharing, and a write through the view."""
    theirs, ours = pair(a)
    f = (
        (lambda m: lambda x: getattr(m, name)(x, *args, **kwargs))
        if isinstance(name, str)
        else name
    )
    error = None
    try:
        expected = f(np)(theirs)
    except Exception as e:
        error = e
    if error is not None:
        with pytest.raises(Exception) as caught:  # noqa: PT011 (class and text follow)
            f(shim)(ours)
        assert (type(caught.value), str(caught.value)) == (type(error), str(error))
        return
    got = f(shim)(ours)
    results = (
        zip(got, expected, strict=True)
        if isinstance(expected, (list, tuple))
        else [(got, expected)]
    )
    for g, e in results:
        assert_same(g, e, context=(name, args))
        if not isinstance(e, np.ndarray):
            continue
        shared = isinstance(theirs, np.ndarray) and np.shares_memory(theirs, e)
        if e.size:
            assert shares_memory(g, ours) == shared, (name, args, a.strides)
        if shared:
            steps = [(x, y) for x, y, n in zip(g.strides, e.strides, e.shape, strict=True) if n > 1]
            assert all(x == y for x, y in steps), (g.strides, e.strides)
            assert getattr(g, "_readonly", False) != e.flags.writeable
        if shared and e.flags.writeable and theirs.flags.writeable and 0 not in e.strides:
            values = np.arange(e.size).reshape(e.shape) + 100
            e[...] = values
            g[...] = shim.from_numpy(values.astype(e.dtype))
            assert_same(ours, theirs)


NOTHING = {
    "cut": np.arange(3.0)[::-1][3:],
    "rows": np.zeros((3, 4))[::-1, ::-1][3:],
    "columns": np.zeros((3, 4))[:, ::-1][:, 4:],
    "steps": np.zeros((3, 8))[3:, ::-2],
    "fortran": np.zeros((3, 4), order="F")[::-1][:, 2:2],
    "read-only": np.broadcast_to(1.0, (2, 3))[::-1][2:],
}


@pytest.mark.parametrize("name", NOTHING)
def test_arrays_of_no_elements_that_run_backwards(name):
    a = NOTHING[name]
    ours = shim.from_numpy(a)
    for f in (
        lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[..., ::-2], lambda x: x[..., 9:],
        lambda x: x[()], lambda x: x[-1:-1],
    ):  # fmt: skip
        got, expected = f(ours), f(a)
        assert (got.shape, got.strides) == (expected.shape, expected.strides)
        assert got.flags.c_contiguous == expected.flags.c_contiguous
        assert got.flags.f_contiguous == expected.flags.f_contiguous
        assert got._readonly != expected.flags.writeable
    assert shim.flip(ours).strides == np.flip(a).strides
    assert_same(ours + 1, a + 1)
    assert_same(shim.to_numpy(ours), a)


CALLS = [
    ("reshape", (-1,)), ("reshape", (4, -1)), ("reshape", (2, 12)), ("reshape", (6, 4)),
    ("reshape", 24),
    ("reshape", (3, 2, 2, 2)), ("reshape", (2, 1, 3, 1, 4)), ("reshape", (5, 5)),
    ("reshape", (-1, -1)),
    ("reshape", (-1, 5)), ("reshape", (2, 3, 2, 2), "F"), ("reshape", (6, 4), "F"),
    ("reshape", (4, 6), "A"),
    ("reshape", (12,)), ("reshape", (4, 3)), ("reshape", ()), ("reshape", (6,)),
    ("reshape", (3, 2), "F"),
    ("reshape", (0,)), ("reshape", (-1, 0)), ("reshape", (2, 3, 4), "K"), ("reshape", -2),
    ("reshape", (1, 1)),
    ("ravel",), ("ravel", "F"), ("ravel", "A"), ("ravel", "K"), ("ravel", "X"),
    ("transpose",), ("transpose", (2, 0, 1)), ("transpose", (-1, 0, 1)), ("transpose", (0, 0, 1)),
    ("transpose", (0, 1)), ("transpose", (0, 1, 3)), ("permute_dims", (1, 0, 2)),
    ("swapaxes", 0, 1), ("swapaxes", 0, -1), ("swapaxes", 0, 3), ("swapaxes", -4, 0),
    ("moveaxis", 0, -1), ("moveaxis", (0, 1), (-1, 0)), ("moveaxis", (0, 1), (2,)),
    ("moveaxis", 3, 0),
    ("moveaxis", (0, 0), (1, 2)), ("rollaxis", 2), ("rollaxis", 0, 3), ("rollaxis", 1, -1),
    ("rollaxis", 0, 5),
    ("squeeze",), ("squeeze", 0), ("squeeze", (0, 2)), ("squeeze", 5), ("squeeze", (0, 0)),
    ("expand_dims", 0), ("expand_dims", -1), ("expand_dims", (0, 2)), ("expand_dims", (0, 0)),
    ("expand_dims", 9), ("atleast_1d",), ("atleast_2d",), ("atleast_3d",),
    ("broadcast_to", (5, 2, 3, 4)), ("broadcast_to", (2, 3, 4)), ("broadcast_to", (4,)),
    ("broadcast_to", 6),
    ("broadcast_to", (-1,)), ("broadcast_to", ()), ("broadcast_to", (2, 6)),
    ("broadcast_to", (0, 3)),
    ("diagonal",), ("diagonal", 1), ("diagonal", -1, 0, 2), ("diagonal", 0, 2, 1),
    ("diagonal", 7),
    ("diagonal", -1, 1, 0), ("diagonal", 0, 0, 0), ("diagonal", 0, 0, 5), ("diagonal", 2, 1, 2),
    ("flip",), ("flip", 0), ("flip", (0, -1)), ("flip", 4), ("flip", (0, 0)), ("fliplr",),
    ("flipud",),
    ("rot90",), ("rot90", 2), ("rot90", 3), ("rot90", -1), ("rot90", 4), ("rot90", 1, (2, 0)),
    ("rot90", 1, (0, 0)), ("rot90", 1, (0, 9)), ("rot90", 1, (0, 1, 2)),
    ("split", 2), ("split", 3), ("split", 2, -1), ("split", [1], 1), ("split", [1, 5, 2]),
    ("split", 0),
    ("array_split", 2), ("array_split", 4), ("array_split", 3, 1), ("array_split", -1),
    ("array_split", 2, 7),
    ("array_split", [-1, 1]), ("hsplit", 3), ("hsplit", 2), ("vsplit", 2), ("vsplit", [1]),
    ("dsplit", 2),
    ("matrix_transpose",), ("unstack",),
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: "-".join(map(str, c)))
def test_view(layout, call):
    check(LAYOUTS[layout], *call)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_options(layout):
    a = LAYOUTS[layout]
    for axis in (-1, 1, 5):
        check(a, "unstack", axis=axis)
    for copy, shape in itertools.product((True, False), ((-1,), (2, 12), (6, 4), ())):
        check(a, "reshape", shape, copy=copy)
    check(a, lambda m: lambda x: x.reshape(2, -1))
    check(a, lambda m: lambda x: x.reshape([-1]))
    check(a, lambda m: lambda x: x.reshape(-1, order="F"))
    check(a, lambda m: lambda x: x.transpose())
    check(a, lambda m: lambda x: x.transpose(None))
    check(a, lambda m: lambda x: x.transpose(2, 0, 1))
    check(a, lambda m: lambda x: x.transpose([1, 0]))
    check(a, lambda m: lambda x: x.ravel())
    check(a, lambda m: lambda x: x.swapaxes(0, 1))
    check(a, lambda m: lambda x: x.squeeze())
    check(a, lambda m: lambda x: x.diagonal(1))
    check(a, lambda m: m.linalg.diagonal)
    check(a, lambda m: m.linalg.matrix_transpose)


WINDOWS = (
    *((2, 0), ((2, 3), (0, 1)), ((1, 2, 2),), (4, -1), ([1, 1], [2, 2]), (np.int64(1), 1), (0, 2)),
    *((3,), (9, 0), (-1, 0), (1, 3), (1, -4), ((1, 1), 0), (1.5, 0), (1, 0.5), ((2, 2, 2, 2),)),
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_windows(layout, window):
    a = LAYOUTS[layout]
    check(a, lambda m: lambda x: m.lib.stride_tricks.sliding_window_view(x, *window))
    if layout == "plain":
        check(a, lambda _: lambda x: np.lib.stride_tricks.sliding_window_view(x, *window))


def test_windows_are_read_only():
    x = to_shim(BASE)
    y = shim.lib.stride_tricks.sliding_window_view(x, 2, 0)
    assert y.base is x
    with pytest.raises(ValueError, match="read-only"):
        y[...] = 0


PARTS = {  # each begins at least 16 elements from either end
    "middle": lambda x: x[16:22],
    "backwards": lambda x: x[30:20:-1],
    "steps": lambda x: x[16:24:2],
    "rows": lambda x: x[16:28].reshape(3, 4)[:, ::-1],
    "columns": lambda x: x[16:28].reshape(3, 4).T,
    "one": lambda x: x[20:21].reshape(()),
}
STRIDES = (
    *(((3, 2), (8, 8)), ((2, 3), (0, 8)), ((3,), (-8,)), ((2, 2), (16, -8)), ((), ()), ((0, 2),)),
    *(
        ((1,), (3,)),
        ((2,),),
        ((2, 2),),
        (None, None),
        (None, (0,)),
        ((2, 3), (-24, 8)),
        ((0,), (-8,)),
    ),
    *(((2,), (4,)), ((2,), (12,)), ((2, 2), (8,)), ((-1,), (8,)), ((1.5,), (8,)), (3, 8), (3,)),
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strides", STRIDES, ids=str)
def test_strides_of_ones_own(part, strides):
    def views(m):
        base = m.arange(48.0)
        view = m.lib.stride_tricks.as_strided(PARTS[part](base), *strides)
        writes = [lambda: m.copyto(view, m.arange(view.size).reshape(view.shape) - 9.0)]
        writes += [lambda: view.__iadd__(view), lambda: view.T.__setitem__(..., m.flip(view.T) * 2)]
        seen = [view + 0]
        for write in writes:
            write()
            seen += [view + 0, base + 0]
        return view, seen

    try:
        expected, wanted = views(np)
    except (TypeError, ValueError) as e:
        with pytest.raises(type(e), match=re.escape(str(e))):
            views(shim)
        return
    shim.in_numpy.clear()
    with shim.strict(False):
        got, seen = views(shim)
    assert_same(seen, wanted)
    assert got.shape == expected.shape
    aligned = all(
        n < 2 or s % 8 == 0 for n, s in zip(expected.shape, expected.strides, strict=True)
    )
    assert ("lib.stride_tricks.as_strided" not in {name for name, _ in shim.in_numpy}) == aligned


def test_windows_that_may_be_written_to():
    def f(m):
        x = m.arange(8.0)
        w = m.lib.stride_tricks.sliding_window_view(x, 3, writeable=True)
        w += w
        w[1:, ::-1] = m.arange(15.0).reshape(5, 3)
        seen = x + 0
        v = m.lib.stride_tricks.as_strided(x, (3, 4), (8, 8))
        v[:] = m.arange(12.0).reshape(3, 4)
        v += m.arange(12.0).reshape(3, 4)
        return seen, x, w

    with shim.strict(False):
        assert_same(f(shim), f(np))


def test_strides_of_ones_own_have_the_gradient_of_all_that_they_show():
    x = torch.arange(8.0, requires_grad=True)
    strided = shim.lib.stride_tricks.as_strided
    shim.sum(strided(shim.from_tensor(x)[2:4], (3, 2), (8, 4))).tensor.backward()
    assert x.grad.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    part = shim.from_tensor(x[2:4])  # of the others it is not known whose they are
    assert strided(part, (3, 2), (0, 4)).shape == (3, 2)
    with pytest.raises(shim.NotSupported, match="outside of the memory"):
        strided(part, (3, 2), (8, 4))
    steps = shim.from_tensor(x[::2])
    assert strided(steps, (2, 3), (0, 8)).shape == (2, 3)
    with pytest.raises(shim.NotSupported, match="no gradient"):
        strided(steps, (2, 3), (0, 4))


def test_identity():
    x = to_shim(BASE)
    assert shim.squeeze(x) is x
    assert shim.atleast_2d(x) is x
    assert shim.broadcast_arrays(x, x)[0] is x
    assert shim.reshape(x, x.shape) is not x


def test_several():
    for arrays in (
        (BASE, np.arange(4)),
        (np.arange(3)[:, None], np.arange(4)[::-1]),
        (BASE, BASE),
        (2, BASE),
    ):
        assert_matches("broadcast_arrays", *arrays)
    assert_matches("broadcast_arrays", BASE, np.arange(5))
    assert_matches("broadcast_shapes", (3, 1), (4,))
    assert_matches("atleast_1d", 3, [1, 2], np.float32(2), meta=False)
    assert_matches("atleast_3d", 3, [1, 2], [[3, 4]])
    assert_matches("atleast_2d", 3)


@pytest.mark.parametrize("dtype", ALL)
def test_dtypes(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    for name, args in (
        ("reshape", (3, 2)),
        ("ravel", ("F",)),
        ("flip", ()),
        ("diagonal", ()),
        ("rot90", ()),
    ):
        args = (args,) if name == "reshape" else args
        check(a, name, *args)
        check(a[:, ::-1], name, *args)
        assert_matches(name, a, *args)


AXES = st.integers(0, 5)


@st.composite
def steps(draw):
    """A chain of view operations, each fitting whatever shape it meets."""
    kinds = st.sampled_from(("slice", "transpose", "reshape", "flip", "expand", "squeeze", "order"))
    return [
        (draw(kinds), draw(AXES), draw(st.integers(-3, 3).filter(bool)), draw(st.integers(0, 99)))
        for _ in range(draw(st.integers(1, 6)))
    ]


def apply(m, x, step):
    kind, axis, stride, seed = step
    n = x.ndim
    rng = np.random.default_rng(seed)
    if kind == "expand" and n < 6:
        return m.expand_dims(x, axis % (n + 1))
    if n == 0:
        return x
    axis %= n
    if kind == "slice":
        start = int(rng.integers(0, x.shape[axis] + 1))
        index = [slice(None)] * n
        index[axis] = slice(start if rng.random() < 0.5 else None, None, stride)
        return x[tuple(index)]
    if kind == "transpose":
        return m.transpose(x, tuple(int(d) for d in rng.permutation(n)))
    if kind == "flip":
        return m.flip(x, axis)
    if kind == "squeeze":
        return m.squeeze(x)
    total = int(np.prod(x.shape))
    first = [k for k in range(1, total + 1) if total % k == 0] or [0]
    k = first[seed % len(first)]
    shape = (k, -1) if k else x.shape[::-1]
    return m.reshape(x, shape, order="F" if kind == "order" else "C")


@given(st.sampled_from([(4, 3, 2), (6,), (2, 2, 2, 3), (1, 5), (3, 0)]), steps())
@settings(max_examples=250, deadline=None)
def test_chains(shape, chain):
    a = np.arange(int(np.prod(shape))).reshape(shape)
    base, x = a.copy(), shim.from_numpy(a.copy())
    theirs, ours = base, x
    for step in chain:
        theirs, ours = apply(np, theirs, step), apply(shim, ours, step)
        assert_same(ours, theirs)
        if theirs.size:
            shared = np.shares_memory(base, theirs)
            assert shares_memory(ours, x) == shared
            if shared:
                for g, e, n in zip(ours.strides, theirs.strides, theirs.shape, strict=True):
                    assert n == 1 or g == e
    if isinstance(theirs, np.ndarray):
        values = np.arange(theirs.size).reshape(theirs.shape) + 500
        theirs[...] = values
        ours[...] = shim.from_numpy(values)
        assert_same(ours, theirs)
        assert_same(x, base)


def test_gradient_flows_through_views():
    t = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    x = shim.from_tensor(t)
    y = shim.reshape(shim.flip(shim.reshape(x, (2, 3)), 1), (3, 2))
    (y.tensor * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert t.grad.tolist() == [2, 1, 0, 5, 4, 3]


@pytest.mark.parametrize("order", "CFKA")
def test_ravel_of_one_element_has_the_step_of_one(order):
    """Whatever strides an axis of one element has."""
    x = shim.lib.stride_tricks.as_strided(to_shim(np.ones((1, 1))), strides=(120, 432))
    assert x.ravel(order).strides == (8,)
    assert np.shares_memory(np.asarray(x.ravel(order)), np.asarray(x))


C, F = np.arange(24.0).reshape(2, 3, 4) + 1, np.arange(24.0).reshape(4, 3, 2).T + 1


@pytest.mark.parametrize(
    "made",
    [
        lambda m, c, f: f + c,
        lambda m, c, f: c < f,
        lambda m, c, f: f * f.copy(order="F"),
        lambda m, c, f: f.astype("i4") // c.astype("i8"),
        lambda m, c, f: f.transpose(0, 2, 1) - f.transpose(0, 2, 1).copy(order="C"),
        lambda m, c, f: f + f[:1],
        lambda m, c, f: f[:, :1] + c[..., :1],
        lambda m, c, f: f.T[:1] * c.T,
        lambda m, c, f: m.divmod(f, c)[0],
        lambda m, c, f: m.logaddexp(f, c),
        lambda m, c, f: m.where(f > 2, c, f),
        lambda m, c, f: m.where(f > 2, f, 0.0),
        lambda m, c, f: m.clip(f, c, f),
        lambda m, c, f: m.isclose(f, c),
        lambda m, c, f: m.argsort(f, axis=0),
        lambda m, c, f: f.argsort(axis=1, kind="stable"),
        lambda m, c, f: m.argpartition(f, 1, 0),
        lambda m, c, f: m.sort(f, 0),
        lambda m, c, f: m.quantile(f, 0.5, 0),
        lambda m, c, f: m.percentile(f, [20, 50], 1),
        lambda m, c, f: m.kron(f, f),
        lambda m, c, f: m.vander(c[0, 0]),
        lambda m, c, f: m.einsum("ij,jk->ki", c[0], c[0].T),
        lambda m, c, f: m.einsum("ij,ij->ji", f[0], f[0]),
        lambda m, c, f: m.einsum("ijk->ij", f),
    ],
)
def test_layouts(made):
    got, expected = made(shim, to_shim(C), to_shim(F)), made(np, C, F)
    assert_same(got, expected)
    assert got.strides == expected.strides
