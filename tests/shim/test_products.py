"""Products of arrays against NumPy: dtypes, shapes, errors, out=."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from np_compile.shim._matmul import _by_limbs

from .support import ALL, assert_matches, assert_same, shares_memory, shim, to_shim, torch


def data(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    if d.kind in "iu":
        return rng.integers(np.iinfo(d).min, np.iinfo(d).max, shape, d, endpoint=True)
    a = rng.integers(-9, 10, shape) / 4
    a = a + 1j * rng.integers(-3, 4, shape) if d.kind == "c" else a
    return np.asarray(a > 0.5 if d.kind == "b" else a).astype(d)


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((3,),
    (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((), ()), ((3,), ()), ((), (2, 3)), ((3,),
    (4,)),
    ((2, 3), (2, 3)), ((2, 3), (4, 3)), ((5, 2, 3), (4, 3, 2)), ((0,), (0,)), ((2, 0), (0, 3)),
    ((0, 3), (3, 2)), ((2, 3), (3, 1)), ((2, 3, 4), (3,)),
]  # fmt: skip
NAMES = ["matmul", "dot", "inner", "outer", "vdot", "kron", "vecdot", "matvec", "vecmat",
         "linalg.matmul", "linalg.outer", "linalg.vecdot"]  # fmt: skip
NAMES = [n for n in NAMES if hasattr(np, n) or "." in n]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes(name, shapes):
    a, b = data("d", shapes[0]), data("d", shapes[1], 1)
    if name.startswith("linalg.") and () in shapes:
        return  # both refuse, NumPy in other words
    assert_matches(name, a, b)
    if a.ndim and b.ndim:
        assert_matches(name, a[::-1], b[::-1])
        assert_matches(name, a.T, b.T)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ALL)
def test_dtypes(name, dtype):
    shapes = (
        ((3,), (3,))
        if name in ("linalg.outer",)
        else ((3, 3), (3,))
        if name == "matvec"
        else ((3,), (3, 3))
    )
    shapes = shapes if name not in ("vecdot", "linalg.vecdot", "inner") else ((3,), (3,))
    shapes = ((3, 3), (3, 3)) if name == "vdot" else shapes
    for other in (dtype, "?", "i1", "u8", "f4", "e", "D"):
        a, b = data(dtype, shapes[0]), data(other, shapes[1], 1)
        rtol = {"e": 6e-3, "f": 2e-6, "F": 5e-6}.get(np.result_type(a, b).char)
        assert_matches(name, a, b, rtol=rtol)


def test_python_operands():
    for name in ("matmul", "dot", "inner", "vdot", "outer", "kron"):
        assert_matches(name, [1, 2], [3, 4.5])
        assert_matches(name, np.float32([1, 2]), [3, 4])
    assert_matches("dot", np.float32([1, 2]), 2.0)
    assert_matches("dot", 2, 3)
    assert_matches("matmul", [[1, 2]], 3)


@pytest.mark.parametrize(
    "name", [n for n in ("matmul", "vecdot", "matvec", "vecmat") if n in NAMES]
)
def test_gufunc_options(name):
    shapes = {
        "matmul": ((2, 3), (3, 4)),
        "vecdot": ((2, 3), (2, 3)),
        "matvec": ((2, 3), (3,)),
        "vecmat": ((2,), (2, 3)),
    }
    a, b = data("f", shapes[name][0]), data("f", shapes[name][1], 1)
    for options in (
        {"dtype": "d"}, {"dtype": "i8"}, {"casting": "no"},
        {"casting": "unsafe", "dtype": "i4"}, {"order": "F"},
        {"order": "C"}, {"order": "X"}, {"keepdims": True}, {"axis": 0},
        {"axis": -1, "keepdims": True},
    ):  # fmt: skip
        assert_matches(name, a, b, **options)
    expected = getattr(np, name)(a, b)
    for dtype in ("f", "d", "F"):
        out = to_shim(np.zeros(expected.shape, dtype))
        assert getattr(shim, name)(to_shim(a), to_shim(b), out=out) is out
        assert_same(out, expected.astype(dtype), 1e-6)
    out = to_shim(np.zeros(expected.shape, "f"))[::-1]
    getattr(shim, name)(to_shim(a), to_shim(b), out)
    assert_same(out, expected)
    for out in (np.zeros(expected.shape, "i4"), np.zeros((9, 9), "f")):
        with pytest.raises((TypeError, ValueError)) as theirs:
            getattr(np, name)(a, b, out=out)
        with pytest.raises((TypeError, ValueError)) as ours:
            getattr(shim, name)(to_shim(a), to_shim(b), out=to_shim(out))
        assert isinstance(theirs.value, ours.type)
    with pytest.raises(NotImplementedError, match="axes"):
        getattr(shim, name)(to_shim(a), to_shim(b), axes=[0, 1, 2])


def test_dot_out():
    a, b = data("d", (2, 3)), data("d", (3, 4))
    out = to_shim(np.zeros((2, 4)))
    assert shim.dot(to_shim(a), to_shim(b), out) is out
    assert_same(out, a @ b)
    assert_matches("dot", a, b, np.zeros((2, 4), "f"))
    assert_matches("dot", a, b, np.zeros((4, 2)))
    assert to_shim(a).dot(to_shim(b)).shape == (2, 4)


def test_out_of_one_number_is_not_the_result():
    a = data("d", (3,))
    for compute in (
        lambda m, x, out: m.dot(x, x, out=out),
        lambda m, x, out: x.dot(x, out),
        lambda m, x, out: m.linalg.multi_dot([x, x], out=out),
    ):
        got, expected = to_shim(np.zeros(())), np.zeros(())
        assert_same(compute(shim, to_shim(a), got), compute(np, a, expected))
        assert_same(got, expected)


@pytest.mark.parametrize("empty", [[], (), range(0), [[]], [(), []]], ids=str)
def test_a_list_of_nothing_has_the_dtype_of_the_first_operand(empty):
    for a in (np.zeros(0, "i4"), np.zeros((2, 0), "F"), np.zeros(0, "?"), np.ones(1)):
        for name in ("dot", "inner", "vdot", "matmul"):
            assert_matches(name, a, empty)
        assert_matches("linalg.multi_dot", [a, empty])
    for a in (np.int8(3), 2, 1.5):
        assert_same(shim.dot(a, empty), np.dot(a, empty))
        assert_same(shim.dot(empty, a), np.dot(empty, a))
    x = np.zeros(0, "i2")
    if np.ndim(empty) == 1:
        assert_same(to_shim(x).dot(empty), x.dot(empty))
    assert_matches("dot", x, [x])
    three = [np.ones((2, 2), "f"), np.zeros((2, 0), "f"), np.zeros((0, 1))]
    assert_matches("linalg.multi_dot", three)
    assert_matches("linalg.multi_dot", iter([x, x]))
    assert_matches("linalg.multi_dot", np.ones((3, 2, 2)))


def test_integers_are_exact_by_limbs():
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        limit = torch.iinfo(dtype)
        a = torch.randint(limit.min, limit.max, (3, 5), dtype=dtype)
        b = torch.randint(limit.min, limit.max, (5, 4), dtype=dtype)
        assert torch.equal(_by_limbs(a, b), torch.matmul(a, b))


def test_tensordot_and_cross():
    a, b = data("d", (2, 3, 4)), data("d", (4, 3, 5))
    for axes in (
        0,
        1,
        2,
        ([1, 2], [1, 0]),
        (2, 0),
        ([2], [0]),
        ([1, 1], [1, 1]),
        ([0], [0]),
        (-1, 0),
        ([], []),
    ):
        assert_matches("tensordot", a, b, axes)
        assert_matches("linalg.tensordot", a, b, axes=axes)
    for dtype in ALL:
        assert_matches(
            "tensordot",
            data(dtype, (2, 3)),
            data(dtype, (3, 2)),
            1,
            rtol=6e-3 if dtype == "e" else None,
        )
        assert_matches(
            "cross", data(dtype, (4, 3)), data(dtype, (3,), 1), rtol=6e-3 if dtype == "e" else None
        )
    a, b = data("d", (3, 4)), data("d", (3, 4), 1)
    assert_matches("cross", a, b, axis=0)
    assert_matches("cross", a, b, 0, 0, 0)
    assert_matches("cross", a, b, 0, 0)
    assert_matches("cross", a, b)
    assert_matches("cross", a[:2], b, axis=0)
    assert_matches("cross", a[:2], b[:2], axis=0)
    assert_matches("cross", a, b, axis=7)
    assert_matches("cross", 3, b)
    assert_matches("linalg.cross", a, b, axis=0)
    assert_matches("linalg.cross", a[:2], b, axis=0)


@pytest.mark.parametrize("dtype", ALL)
def test_trace(dtype):
    a = data(dtype, (3, 4, 2))
    rtol = 6e-3 if dtype == "e" else None
    for args in ((), (1,), (-1, 1, 2), (0, 0, 0), (9,)):
        assert_matches("trace", a, *args, rtol=rtol)
        assert_matches("trace", a[:, ::-1], *args, rtol=rtol)
    assert_matches("trace", a[:, :, 0], dtype="D")
    assert_matches("linalg.trace", a, offset=1, rtol=rtol)
    assert_matches("trace", a[0, 0])


SUBSCRIPTS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)), ("ii", (3, 3)),
    ("ij->", (2, 3)), ("ij->j", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i", (3,), (3,)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,kj,kl->il", (2, 3), (4, 3), (4, 5)),
    ("...", (2, 3)), ("i...->...", (2, 3)),
    ("ijk,ik->kj", (2, 3, 4), (2, 4)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,j,k->k", (2, 3),
    (3,), (4,)), ("i,->i", (3,), ()),
    (",", (), ()), ("iij->ij", (2, 2, 3)), ("iji->j", (2, 3, 2)), ("ij,ij", (2, 1), (2, 3)),
    ("a...b,b...->a...", (2, 5, 3), (3, 5)),
    ("ij , jk -> ki", (2, 3), (3, 4)), ("ba", (2, 3)), ("i", (3,)), ("ii->ii", (2, 2)),
    ("ij,jk->il", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (4, 4)), ("ij", (3,)), ("ij,jk->ii", (2, 3), (3, 4)), ("i,j", (2,)),
    ("i->.i", (2,)), ("i$", (2,)),
    ("ii->i", (2, 3)), ("i...->i", (2, 3)), ("ij->ijj", (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", SUBSCRIPTS, ids=lambda c: c[0])
def test_einsum(case):
    text, *shapes = case
    for dtype in ("d", "l", "?", "F", "u2", "e"):
        rtol = {"e": 6e-3, "F": 5e-6}.get(dtype)
        arrays = [data(dtype, s, i) for i, s in enumerate(shapes)]
        assert_matches("einsum", text, *arrays, rtol=rtol)
        for optimize in (True, "optimal") if dtype in "d" else ():
            assert_matches("einsum", text, *arrays, optimize=optimize) if len(shapes) > 1 else None
    arrays = [data("d", s)[::-1] if s else data("d", s) for s in shapes]
    assert_matches("einsum", text, *arrays)


def test_einsum_forms():
    a, b = data("d", (2, 3)), data("d", (3, 4))
    assert_matches("einsum", a, [0, 1], b, [1, 2], [0, 2])
    assert_matches("einsum", a, [0, 1], b, [1, 2])
    assert_matches("einsum", a, [0, 1], [1, 0])
    assert_matches("einsum", a, [Ellipsis, 1], b, [1, 2], [Ellipsis, 2])
    assert_matches("einsum", "ij,jk", a.astype("f"), b)
    assert_matches("einsum", "ij,jk", a, b, dtype="D")
    assert_matches("einsum", "ij,jk", a, b, dtype="f")
    assert_matches("einsum", "ij,jk", a, b, dtype="f", casting="same_kind", rtol=1e-5)
    assert_matches("einsum", "ij,jk->ik", [[1, 2]], [[3], [4]])
    assert_matches("einsum", "ij->ji", a, order="C")
    assert_matches("einsum", "ij,jk,kl,lm->im", a, b, b.T, a.T, optimize="greedy")
    assert_matches("einsum_path", "ij,jk,kl->il", a, b, b.T, optimize="greedy")
    assert_matches("einsum_path", "ij,jk->ik", a, b)
    out = to_shim(np.zeros((2, 4)))
    assert shim.einsum("ij,jk", to_shim(a), to_shim(b), out=out) is out
    assert_same(out, a @ b)
    x = to_shim(data("d", (3, 3)))
    assert shares_memory(shim.einsum("ij->ji", x), x)
    diagonal = shim.einsum("ii->i", x[::-1])
    diagonal[...] = 9.0
    expected = data("d", (3, 3))
    np.einsum("ii->i", expected[::-1])[...] = 9.0
    assert_same(x, expected)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=3), st.randoms())
@settings(max_examples=60, deadline=None)
def test_einsum_of_any_labels(terms, random):
    sizes = {"a": 2, "b": 3, "c": 1}
    used = sorted({x for t in terms for x in t})
    output = [x for x in used if random.random() < 0.5]
    random.shuffle(output)
    arrays = [data("d", tuple(sizes[x] for x in t), i) for i, t in enumerate(terms)]
    text = ",".join("".join(t) for t in terms) + "->" + "".join(output)
    assert_matches("einsum", text, *arrays)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.sampled_from("lBHLd"))
@settings(max_examples=40, deadline=None)
def test_matmul_of_any_size(n, k, m, dtype):
    assert_matches("matmul", data(dtype, (n, k)), data(dtype, (k, m), 1))


def test_batches():
    for lead in itertools.product(((), (1,), (5,), (2, 5)), repeat=2):
        a, b = data("d", (*lead[0], 2, 3)), data("d", (*lead[1], 3, 4), 1)
        assert_matches("matmul", a, b)
    assert_matches("matmul", data("d", (2, 2, 3)), data("d", (3, 3, 4)))


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [((3, 3), (3, 1), (3, 3)), ((3,), (3, 1), (2,)), ((2, 3, 3), (3, 1), (2, 3, 3))],
)
def test_out_has_the_core_dimensions_of_the_product(a, b, out):
    def call(m, x, y, z):
        return m.matmul(x, y, out=z)

    assert_matches(call, np.ones(a), np.ones(b), np.ones(out), meta=False)


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "c", "f", "a", "k"])
@pytest.mark.parametrize("by_column", [True, False])
def test_order_of_einsum(order, by_column):
    a, b = np.arange(30.0).reshape(2, 3, 5), np.arange(12.0).reshape(4, 3)
    if by_column:
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    for text in ("...ft,mf->...mt", "aft,mf->tma", "aft,mf->ta"):
        expected = np.einsum(text, a, b, order=order)
        got = shim.einsum(text, to_shim(a), to_shim(b), order=order)
        assert_same(got, expected)
        assert got.strides == expected.strides


@pytest.mark.parametrize("optimize", [False, True])
def test_an_order_that_einsum_lacks(optimize):
    assert_matches("einsum", "ij->j", np.ones((2, 3)), order="W", optimize=optimize)
    assert_matches("einsum", "i,i", np.ones(2), np.ones(2), order="w", optimize=optimize)
