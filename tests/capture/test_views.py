"""Views of arguments and of intermediates: written through, in every order, and given back."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import np_compile

from ..support import check, compiled, data

VIEWS = {
    "part": lambda x: x[1:4, 1:],
    "steps": lambda x: x[::2, 1::2],
    "reversed": lambda x: x[::-1, ::-1],
    "reversed steps": lambda x: x[::-2],
    "row": lambda x: x[2],
    "column": lambda x: x[:, -1],
    "transpose": lambda x: x.T,
    "transposed matrices": lambda x: x.mT,
    "ravel": lambda x: x.ravel(),
    "reshape": lambda x: x.reshape(4, -1),
    "newaxis": lambda x: x[:, None],
    "flip": lambda x: np.flip(x),
    "fliplr": lambda x: np.fliplr(x),
    "rot90": lambda x: np.rot90(x),
    "swapaxes": lambda x: x.swapaxes(0, 1)[1:],
    "diagonal by stride": lambda x: x.reshape(-1)[:: x.shape[1] + 1],
    "view": lambda x: x.view(),
    "split": lambda x: np.split(x, 2)[1],
    "nested": lambda x: x[1:][::-1].T[1:3],
    "everything": lambda x: x[...],
    "moveaxis": lambda x: np.moveaxis(x, 0, 1)[::-1],
    "one element": lambda x: x[2:3, 1:2],
    "empty": lambda x: x[3:3],
}


@pytest.mark.parametrize("owner", ["argument", "intermediate"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_write_through_a_view_changes_its_base(name, owner):
    make = VIEWS[name]

    def f(x):
        y = x if owner == "argument" else x * 1
        v = make(y)
        v += 10
        first = y.copy()
        v[...] = v * 2
        v -= y.sum()
        return y, v, first

    check(f, data(6, 4))


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_the_base_is_seen_in_the_view(name):
    make = VIEWS[name]

    def f(x):
        v = make(x)
        before = v.copy()
        x *= 3
        x[2] = 5
        return v, before, v + 1, v.sum()

    check(f, data(6, 4))


PAIRS = list(
    itertools.combinations(["part", "reversed", "transpose", "ravel", "column", "nested"], 2)
)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("broken", [False, True])
def test_two_views_written_in_turn(a, b, broken):
    def f(x):
        y = x + 0
        v, w = VIEWS[a](y), VIEWS[b](y)
        v += 1
        w *= 2
        if broken and float(v.sum()) > 1e9:
            return None
        v[...] = v[..., ::-1]
        y[0] = w.ravel()[0]
        w -= 3
        return y, v, w, v.sum() + w.sum()

    check(f, data(6, 4))


def test_view_writes_before_and_after_a_value_is_asked():
    def f(x):
        v = x[::-1]
        v[0] = 1
        a = float(x[-1])
        v[1] = a + 1
        w = v[1:3]
        b = float(w.sum())
        w[...] = b
        return x, v, w

    check(f, data(6))


def test_a_view_taken_before_a_break_is_written_after_it():
    def f(x):
        y = x * 2
        views = [y[i : i + 2] for i in range(3)]
        print(y.shape, float(y[0]) > 100)
        for k, v in enumerate(views):
            v += k
        print(float(y[1]) > 100)
        return y, views

    check(f, data(5))


def through_flat(x):
    y = x * 2
    x.flat[0] = 100.0
    z = x + 1
    x.flat = 3.0
    return y, z, x * 1


def through_memory(x):
    y = x * 2
    memoryview(np.asarray(x))[0] = 3
    z = y + x
    memoryview(x)[1] = 4
    return y, z, x * 1


def through_a_view(x):
    rows = x.reshape(2, -1)
    y = rows.sum(axis=0)
    x.flat[1] = 50.0
    rows.flat[-1] = 60.0
    return y, rows * 2, x


@pytest.mark.parametrize("f", [through_flat, through_memory, through_a_view])
def test_writes_outside_the_tape_come_after_recorded_readers(f):
    check(f, data(6))


def test_overlapping_operands_of_in_place_operations():
    def f(x):
        x[1:] += x[:-1]
        x[:-1] *= x[1:]
        x[::-1] += x
        np.add(x[:-2], x[2:], out=x[1:-1])
        np.multiply(x, x[::-1], out=x)
        return x

    check(f, data(9))


def test_in_place_with_a_transpose_of_itself():
    def f(x):
        x += x.T
        x[...] = x.T @ x
        x.T[0] = 1
        return x

    check(f, data(4, 4))


OUTS = {
    "add": lambda x, o: np.add(x, 1, out=o),
    "positional": lambda x, o: np.add(x, 1, o),
    "tuple": lambda x, o: np.add(x, 1, out=(o,)),
    "sum": lambda x, o: np.sum(x, axis=0, out=o[0]),
    "cumsum": lambda x, o: np.cumsum(x, axis=1, out=o),
    "matmul": lambda x, o: np.matmul(x, x, out=o),
    "dot": lambda x, o: np.dot(x, x, out=o),
    "clip": lambda x, o: np.clip(x, 0, 1, out=o),
    "where": lambda x, o: np.add(x, 1, out=o, where=x > 0),
    "take": lambda x, o: np.take(x, [0, 1, 2, 3], axis=0, out=o),
    "copyto": lambda x, o: np.copyto(o, x, where=x > 0),
    "concatenate": lambda x, o: np.concatenate([x[:2], x[2:]], out=o),
    "stack": lambda x, o: np.stack([x[0], x[1], x[2], x[3]], out=o),
    "mean": lambda x, o: x.mean(1, out=o[:, 0]),
    "round": lambda x, o: np.round(x, 1, out=o),
    "einsum": lambda x, o: np.einsum("ij,jk->ik", x, x, out=o),
    "modf": lambda x, o: np.modf(x, o, x),
    "divmod": lambda x, o: np.divmod(x, 0.5, out=(o, x)),
    "subtract.outer": lambda x, o: np.subtract.outer(x[0], x[1], out=o),
    "add.reduce": lambda x, o: np.add.reduce(x, axis=1, out=o[1]),
    "add.accumulate": lambda x, o: np.add.accumulate(x, axis=1, out=o),
    "add.at": lambda x, o: np.add.at(o, ([0, 0, 1], [1, 1, 2]), x[0, :3]),
    "ndarray.fill": lambda x, o: o.fill(3),
    "ndarray.put": lambda x, o: o.put([0, 5], [9, 8]),
    "ndarray.sort": lambda x, o: o.sort(axis=0),
    "ndarray.partition": lambda x, o: o.sort(),
    "put_along_axis": lambda x, o: np.put_along_axis(o, np.argsort(x, 1), x, 1),
    "fill_diagonal": lambda x, o: np.fill_diagonal(o, 5),
    "ndarray.itemset by index": lambda x, o: o.__setitem__((1, 1), 4),
    "ndarray.resize": lambda x, o: o.reshape(16).__setitem__(slice(0, 2), 1),
}


@pytest.mark.parametrize("name", OUTS)
def test_out_and_other_writers_on_whole_arrays_and_views(name):
    write = OUTS[name]

    def f(x, o):
        r = write(x, o)
        return r is o, r, o

    check(f, data(4, 4), data(4, 4, seed=1))
    check(f, data(4, 4), data(8, 9, seed=1)[::-2, ::2][:, :4])
    check(f, data(4, 4), data(4, 4, seed=1).T)


def test_out_with_a_dtype_that_does_not_fit_raises():
    check(lambda x, o: np.add(x, 0.5, out=o), data(3), np.zeros(3, int))
    check(lambda x, o: np.add(x, 1, out=o), data(3), np.zeros(4))
    check(lambda x, o: np.add(x, 1, out=o), data(3), [1, 2, 3])


def test_diagonal_writes():
    def f(x):
        n = len(x)
        x[np.arange(n), np.arange(n)] = 0
        x.flat[:: n + 1] = 2
        x[range(n), list(range(n))[::-1]] += 5
        np.fill_diagonal(x, x.diagonal() + 1)
        return x, np.diag(x), np.diagonal(x, 1)

    check(f, data(4, 4))


def test_diagonal_is_read_only():
    check(lambda x: x.diagonal().__setitem__(0, 1), data(4, 4))


def test_fancy_assignment():
    def f(x):
        i = np.array([0, 2, 2])
        x[i] += 1
        x[[1, 3]] = x[[3, 1]]
        x[i, 1] = np.arange(3.0)
        x[np.ix_([0, 1], [2, 3])] = 7
        x[:, [0, -1]] *= 2
        x[np.array([True, False, True, False])] -= 1
        np.add.at(x, i, 1)
        np.subtract.at(x, (i, i), x[0, :3])
        return x

    check(f, data(4, 4))


def test_swaps_by_tuple_assignment():
    def f(x):
        x[0], x[1] = x[1].copy(), x[0].copy()
        x[[0, 2]] = x[[2, 0]]
        x[:, 0], x[:, 1] = x[:, 1], x[:, 0]
        return x

    check(f, data(4, 4))


def test_slots_of_one_array_as_variables():
    def f(x):
        position, velocity = x[:3], x[3:]
        for _ in range(3):
            velocity -= 0.1 * position
            position += 0.1 * velocity
        return x, position

    check(f, data(6))


def test_shape_assignment_and_reshape_in_place():
    def f(x):
        y = x * 2
        y.shape = (2, 6)
        y[0] = 1
        z = y.reshape(-1)
        z[3] = 9
        return y, z, x.reshape(2, 6).T

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        check(f, data(3, 4))


def test_a_copy_is_no_view():
    def f(x):
        y, z, w = x.copy(), np.array(x), x[[0, 1]]
        y += 1
        z += 2
        w += 3
        x[:] = 0
        return y, z, w, x.flatten()

    check(f, data(4))


def test_a_copy_by_columns_stays_so():
    def f(x):
        y, z = copy.copy(x.T), copy.deepcopy(x.T)
        return y, y.flags.f_contiguous, z.strides, x.T.copy().strides

    check(f, data(3, 4))


@pytest.mark.parametrize("name", ["T", "mT", "size", "ndim", "nbytes", "itemsize", "base", "flags"])
def test_attributes_that_are_only_read_say_so(name):
    def f(x):
        y = x * 2
        setattr(y, name, x)

    with pytest.raises(AttributeError, match=f"attribute '{name}' of 'numpy.ndarray' objects"):
        np_compile.compile(f, backend="eager")(np.ones((2, 2)))


def test_real_and_imaginary_parts_are_written_through():
    def f(z):
        z.real += 1
        z.imag = z.real * 2
        z.real[::2] = 0
        w = z.conj()
        return z, w, z.real, z.imag

    check(f, data(6, dtype=np.complex128))


@pytest.mark.parametrize(
    "made",
    [
        np.linalg.inv,
        np.linalg.cholesky,
        lambda x: np.linalg.solve(x, x + 1),
        lambda x: np.linalg.svd(x)[2],
        lambda x: np.fft.fft(x, axis=0),
        np.fft.fft2,
        lambda x: np.gradient(x)[0],
        lambda x: np.select([x.T > 1], [x.T]),
        lambda x: x.T + x,
        lambda x: np.where(x.T > 1, x, 0.0),
        lambda x: np.argsort(x.T, axis=0),
        lambda x: np.quantile(x.T, [0.2, 0.5], axis=0),
        lambda x: np.vander(x[0]),
        lambda x: np.einsum("ij,jk->ki", x, x),
    ],
)
def test_what_numpy_lays_by_rows_has_views(made):
    def f(x):
        y = made(x)
        flat = y.ravel()
        flat[1] = 7
        return y, flat, y.view("f4")

    check(f, data(4, 4) @ data(4, 4).T + 4 * np.eye(4), new=False, rtol=1e-6)


def test_views_of_another_dtype():
    def f(x):
        b = x.view(np.int64)
        c = x.view("u1")
        b[0] = 0
        return b, c[:8], x, x.view(np.complex128)

    check(f, data(4))


def test_unpacked_rows_and_nested_unpacking_write_through():
    def f(x):
        (a, _), (_, d) = x
        r, *rest = x
        r += 1
        rest[0][1] = 5
        p, q = np.split(x.ravel(), 2)
        p *= q
        return a, d, x

    check(f, data(2, 2))


def test_sliding_windows_and_strides():
    def f(x):
        w = np.lib.stride_tricks.sliding_window_view(x, 3)
        s = np.lib.stride_tricks.as_strided(x, (3, 2), (x.strides[0] * 2, x.strides[0]))
        x[2] = 50
        return w.mean(axis=1), w, s.sum(0), s

    check(f, data(8))


STRIDED = {
    "frames": lambda x: as_strided(x, (x.size // 2 - 1, 3), (2 * x.strides[0], x.strides[0])) * 2,
    "backwards": lambda x: as_strided(x[-1:], (3, 2), (-8, -16)).sum(1),
    "beyond a part": lambda x: as_strided(x[2:4], (4, 2), (8, 8)) + x[:2],
    "every other": lambda x: as_strided(x[::2], (x.size // 2, 2), (16, 8)).max(1),
    "no step": lambda x: as_strided(x[1:], (3, 4), (0, 8)) - 1,
    "read-only": lambda x: as_strided(x, (4,), (8,), writeable=False).flags.writeable,
    "stored": lambda x: as_strided(x, (x.size // 2,), (16,)).__setitem__(slice(1, None), 7.0),
    "diagonal": lambda x: as_strided(x[:4].reshape(2, 2), (2,), (24,)).__imul__(5.0),
}


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("name", STRIDED)
def test_strides_of_ones_own(name, backend):
    def f(x):
        return STRIDED[name](x), x

    fast = np_compile.compile(f, backend=backend)
    for n in (8, 8, 10, 12, 14, 8):
        x = data(n)
        mine = x.copy()
        want, got = f(x), fast(mine)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(mine, x)
        assert got[1] is mine


def test_strides_of_ones_own_are_fused():
    def f(x):
        return (as_strided(x, (x.size - 2, 3), (8, 8)) * np.arange(3.0)).sum(1)

    why = str(np_compile.explain(np_compile.compile(f))(data(8)))
    assert "1 segments" in why
    assert "0 breaks" in why


def test_broadcast_views():
    def f(x):
        a, b = np.broadcast_arrays(x[:, None], x)
        c = np.broadcast_to(x, (2, len(x)))
        x += 1
        return a + b, c.sum(0), c

    check(f, data(4), alias=False)


def test_swapped_results_are_the_views_of_their_arguments():
    def f(a, b):
        return {"second": b[1:], "first": a.T, "both": [a, b], "new": a + b, "again": b}

    check(f, data(3, 3), data(3, 3, seed=1))


def test_a_result_and_a_view_of_it_share_memory():
    def f(x):
        y = np.sin(x)
        y[0] = 1
        v = y[1:]
        v += 1
        return y, v, y.T, v[::-1]

    check(f, data(5))


def test_views_of_results_across_a_loop():
    def f(x, n):
        halves = x[: len(x) // 2], x[len(x) // 2 :]
        for i in range(n):
            halves[i % 2][...] += i
            halves[0][0] = halves[1].sum()
        return halves, x

    check(f, data(6), 14)


@pytest.mark.parametrize("loops", ["recorded", "whole"])
def test_empty_views_that_run_backwards(loops):
    def f(x, n):
        k = int(x.argmax()) + n  # is data
        rest = x[k:]
        return rest, rest + 1, rest[::-1].strides, rest.flags.c_contiguous

    def given(x):
        return x * 2, x[::-1], x.strides, np.cumsum(x)

    with np_compile.config.patch(loops=loops, plain="never"):
        for x in (np.arange(3.0)[::-1], np.arange(12.0).reshape(3, 4)[::-1, ::-1]):
            check(f, x, 3)
            check(given, x[3:])


def test_empty_views_and_zero_strides():
    def f(x):
        v = x[4:2]
        v += 1
        x[10:] = 3
        x[:0] = np.zeros(0)
        z = np.zeros((0, 3))
        z[...] = 1
        return v, x, z.sum(0), x[5:][::-1]

    check(f, data(5))


# Calls that give several arrays, some of them arguments as they are

SEVERAL = {
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "atleast_3d": np.atleast_3d,
    "broadcast_arrays": np.broadcast_arrays,
    "without copies": lambda a, b: np.meshgrid(a, b, copy=False),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    "shapes", [((6,), (1, 6)), ((1, 6), (6,)), ((6,), (3, 6)), ((), (6,)), ((2, 3, 6), (6,))]
)
def test_some_results_are_arguments_and_others_views_of_them(name, shapes):
    several = SEVERAL[name]

    def f(a, b, n):
        u, v = several(a, b)
        np_compile.graph_break()
        total = (u * 2 + v.sum()).sum()
        for i in range(n):
            w, z = several(a * i, b)
            total = total + w.sum() + z.ravel()[-1]
        given = u, v, *several(a.sum(), b)
        return total, given if "atleast" in name else [r + 0 for r in given]

    a, b = (data(*shape, seed=k) for k, shape in enumerate(shapes))
    check(f, np.asarray(a), np.asarray(b), 3)
    check(f, np.asarray(a), np.asarray(b), 12)  # the loop is cut


def test_writes_to_results_that_are_views_or_arguments():
    def f(a, b):
        u, v = np.atleast_2d(a, b)
        u += 1.0
        np_compile.graph_break()
        v *= u
        return u, v

    check(f, data(6), data(2, 6, seed=1))
    check(f, data(2, 6), data(6, seed=1)[:6])


def test_a_call_that_gives_two_arrays_again():
    def f(x, y):
        q, r = np.divmod(x, y)
        m, e = np.frexp(x)
        return q, r, divmod(x, y), m, e, np.modf(x)

    check(f, data(4), data(4, seed=1))


SAME = [
    "np.linalg.matrix_power(m, 1)", "np.asarray(m)", "np.atleast_2d(m)", "np.real(m)", "m.real",
    "np.squeeze(m)", "np.require(m)", "np.ascontiguousarray(m)", "np.nan_to_num(m, copy=False)",
    "m.astype(float, copy=False)", "m.conj()", "np.linalg.matrix_power(m, 2)", "np.ravel(m)",
    "m.flatten()", "np.positive(m)", "np.broadcast_to(m, (3, 3))", "m[...]", "np.copy(m)",
    "np.einsum('ij', m)", "np.einsum('ij->ji', m)", "np.einsum('ii->i', m)", "np.round(m)",
    "np.atleast_1d(m[0], m)[1]", "np.unstack(m)[1]",
]  # fmt: skip


@pytest.mark.parametrize("call", SAME)
@pytest.mark.parametrize("m", ["x", "x + 1", "x[::-1]"])
def test_what_gives_its_argument_back_or_a_view_of_it(call, m):
    scope = {"np": np}
    text = f"def f(x):\n    m = {m}\n    r = {call}\n    same = r is m\n"
    text += "    if r.flags.writeable:\n        r[(0,) * r.ndim] += 5\n"
    exec(text + "    return same, r, m", scope)
    check(scope["f"], np.arange(9.0).reshape(3, 3))


def _rows(x, step=2, width=3):
    """Rows that share elements with their neighbours."""
    n = (x.size - width) // step + 1
    return as_strided(x, (n, width), (8 * step, 8))


ON_ITSELF = {
    "store": lambda v, o: v.__setitem__(slice(None), o * 2),
    "transposed": lambda v, o: v.T.__setitem__(slice(None), o.T * 2),
    "backwards": lambda v, o: v[::-1, ::-1].__setitem__(slice(None), o * 2),
    "operator": lambda v, o: v.__iadd__(o),
    "out": lambda v, o: np.sqrt(np.abs(o), out=v),
    "running": lambda v, o: np.cumsum(o, axis=1, out=v),
    "mask": lambda v, o: v.__setitem__(o > 0, 7.0),
    "rows": lambda v, o: v.__setitem__(np.arange(len(v)), o),
    "sum": lambda v, o: np.sum(np.stack([o, o, o]), axis=0, out=v),
}


@pytest.mark.parametrize("name", ON_ITSELF)
def test_writes_to_elements_that_lie_in_one_place(name):
    def f(x, o):
        v = _rows(x)
        ON_ITSELF[name](v, o)
        ON_ITSELF[name](sliding_window_view(x[: len(o) + 2], 3, writeable=True), o)
        v[::2] = 5  # these do not meet each other
        return v.sum()

    check(f, data(41), data(20, 3))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_large_writes_to_elements_that_lie_in_one_place(backend):
    def f(x, o):
        _rows(x)[:] = o * 2
        as_strided(x, (len(o),), (0,))[:] = o[:, 0]

    for _ in range(4):
        check(f, data(200_001), data(100_000, 3), backend=backend, new=False)


def test_one_of_several_arguments_that_overlap_lies_backwards():
    def f(a, b, c):
        r = b * 2
        a *= c
        return r + b, a + b

    z = data(10)
    check(f, z[5:1:-1], z[1:5], data(4, seed=1), backend="native")
    check(f, z[1:5], z[5:1:-1], data(4, seed=1), backend="native")


def rows_of(x):
    return as_strided(x, (3, 3), (8, 8))


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_rows_that_overlap_are_written_in_order(backend):
    def changed(v):
        v[0] = 5.0
        v[1] *= 2.0
        v[2] += v[1]
        return v.sum()

    def through_views(v):
        first, second, third = v[0], v[1], v[2]
        second *= 2.0
        third += second
        first -= third
        return v * 1.0

    def f(x):
        return through_views(np_compile.disable(rows_of)(x)), x + 1

    check(changed, rows_of(np.arange(8.0)), backend=backend)
    check(through_views, rows_of(np.arange(8.0)), backend=backend)
    check(f, np.arange(6.0), backend=backend)


def test_arguments_of_two_dtypes_that_share_memory():
    def f(x, words):
        x += 1
        words[0] = 0
        x *= 2
        return x.sum()

    a = np.arange(4.0)
    check(f, a, a.view(np.int64))


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_views_of_an_array_whose_shape_is_set():
    def f(x):
        v = x[1:]
        w = v[1:]
        x.shape = (2, 3)
        v[0] = 5.0
        w += 1
        return x, v, w

    check(f, np.arange(6.0))


def _of_an_array_shaped_twice(x):
    x.shape = (3, 4)
    column, turned = x[:, 1], x.T
    x.shape = (12,)
    column += 1
    return x, column, turned.swapaxes(0, 1)


def _of_a_view_that_is_shaped(x):
    part = x[2:10]
    every = part[::3]
    part.shape = (2, 4)
    every[0] = 9.0
    part *= 2
    return part, every, every[1:]


def _of_a_view_under_another_dtype(x):
    part = x[2:10]
    first = part[:3]
    part.dtype = np.int64
    part += 1
    first *= 2
    return part, first


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize(
    "f", [_of_an_array_shaped_twice, _of_a_view_that_is_shaped, _of_a_view_under_another_dtype]
)
def test_views_of_a_view_that_is_changed_in_place(f):
    check(f, np.arange(12.0))


def _flattened(x):
    x.shape = (len(x),)
    x.shape = (len(x),)
    return x


def _column_and_back(x):
    part = x[:2]
    x.shape = (len(x), 1)
    x *= 2
    x.shape = (len(x),)
    part += 1
    return x


def _as_integers_and_back(x):
    x.dtype = np.int64
    x += 1
    x.dtype = np.float64
    return x


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize("f", [_flattened, _column_and_back, _as_integers_and_back])
def test_an_argument_that_has_its_shape_and_dtype_again_is_itself(f):
    fast, _ = compiled(f)
    for _ in range(2):
        for x in (np.arange(6.0), np.arange(12.0)[::2]):
            assert fast(x) is x
        check(f, np.arange(6.0))


def test_an_array_that_shares_memory_in_part_with_one_that_torch_has():
    def run(wrap):
        whole = np.arange(8.0)
        given = np_compile.disable(lambda: whole)

        def f(x):
            t = torch.from_numpy(x)
            y = given()
            y += 1
            x *= 2
            t.add_(1)
            return y.sum(), x.sum()

        return wrap(f)(whole[2:5]), whole.tolist()

    assert run(lambda f: compiled(f)[0]) == run(lambda f: f)


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_an_index_that_is_computed_in_a_loop_over_rows(backend):
    def f(rows, names):
        found = []
        for row in rows:
            found.append(names[np.argmax(row)])  # noqa: PERF401
        return np.array(found), found

    check(f, np.arange(12.0).reshape(3, 4), np.array([3, 4, 5, 6]), backend=backend)


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_an_index_that_is_computed_beside_an_ellipsis(shape):
    def f(x, y):
        k = np.argmax(x)
        y[k] += 1
        return y[k], y[k, ...], y[..., k], y[k:], y[k] + 1

    check(f, np.arange(2.0), np.arange(np.prod(shape), dtype=float).reshape(shape))


def test_a_mask_that_shares_memory_with_what_is_written():
    def values(z):
        mask = z[:-1]
        z[1:][mask] = (~z[1:, ::-1])[mask]
        return z

    def number(z):
        z[1:][z[:-1]] = True
        return z

    z = (np.arange(12) % 3 > 1).reshape(6, 2)
    check(values, z)
    check(number, z)
    check(number, z[:, 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loops", ["whole", "recorded"])
@pytest.mark.parametrize("plain", ["never", "always"])
def test_broadcast_arrays_are_looked_at_without_a_warning(loops, plain):
    """NumPy warns of their `flags.writeable`."""

    def f(u, x):
        total = 0.0
        for i in range(len(x)):
            if x[i] > 0:
                a, b = np.broadcast_arrays(x[:, None], x)
                total += a[i, 0] * u[i, 0] + b[0, i]
        return total

    with np_compile.config.patch(loops=loops, plain=plain):
        given = np.broadcast_arrays(np.arange(12.0)[:, None], np.ones((12, 12)))[0]
        x = np.linspace(-1, 1, 12)
        assert np.isclose(np_compile.compile(f, backend="eager")(given, x), f(given, x))


@pytest.mark.parametrize("plain", ["never", "always"])
def test_a_shape_that_needs_other_memory_is_refused(plain):
    def f(x):
        text = ""
        for _ in range(12):
            y = x[::-1].view()
            try:
                y.shape = (x.size,)
            except AttributeError as e:
                text = str(e)
        return text, y.shape

    check(f, data(4, 4), plain=plain)


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
def test_arrays_without_elements_are_changed_in_place_after_flags_were_set():
    def f(x, y):
        x.setflags()
        part = x[:, 1:]
        x.shape = (0, 3)
        part.shape = (-1, 4)
        new = np.zeros((2, 0))
        new.shape = 0
        y.dtype = np.int32
        x.flags.writeable = False
        return x, part, new, y, x.shape, y.shape

    check(f, data(5, 0), data(4)[:0])


@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 5), (5, 2)])
@pytest.mark.parametrize("turned", [np.flipud, np.fliplr, lambda x: x[::-1, ::-1]])
def test_diagonals_of_reversed_matrices(turned, shape, backend):
    def f(m, v):
        np.fill_diagonal(m, v)
        return np.diagonal(m) * 2, np.diagonal(m, 1).sum(), np.trace(m)

    check(f, turned(data(*shape)), 1.5, backend=backend, rtol=1e-12)


WHOLE = np.arange(24.0)
OWNERS = {
    "its own": WHOLE.copy(), "a view": WHOLE[1:], "a view of a view": WHOLE[2:][::2],
    "of a buffer": np.frombuffer(bytearray(64)), "of that": np.frombuffer(bytearray(64))[1:],
}  # fmt: skip


@pytest.mark.parametrize("name", OWNERS)
def test_base_is_the_array_that_numpy_names(name):
    def f(a, whole):
        c = a[1:]
        c += 1
        more = (a + 1).T
        views = c, c[1:], a.T, a.reshape(-1), a, more, more[1:]
        seen = [(v.base is a, v.base is whole, v.base is a.base, v.base is None) for v in views]
        return seen, c.base is a, more.base is None

    for loops in ("recorded", "auto"):
        with np_compile.config.patch(plain="never", loops=loops):
            fast, _ = compiled(f)
            for _ in range(2):
                assert fast(OWNERS[name], WHOLE) == f(OWNERS[name], WHOLE)


def test_the_base_of_what_was_made_and_read_is_none():
    def f(x):
        y = x.astype(float)
        for _ in y:
            pass
        return y.base is None, x.base is None

    for loops in ("recorded", "auto"):
        with np_compile.config.patch(plain="never", loops=loops):
            fast, _ = compiled(f)
            assert [fast(np.arange(3.0)) for _ in range(2)] == [(True, True)] * 2


CUT = {
    "bytes": (lambda x: (x * 2).view("u1"), 3),
    "bytes of an argument": (lambda x: x.view("u1"), 3),
    "halves of integers": (lambda x: x.astype("i4").view("i2")[1:], 0),
    "several": (lambda x: x.astype("u1").view("f8"), 0),
    "and back": (lambda x: x.view("u1").view("f8"), 1),
    "bits of halves": (lambda x: x.astype("f2").view("i2"), 1),
    "bools": (lambda x: (x > 3).view("u1"), 1),
    "bits": (lambda x: (x * 2).view("i8"), 1),
    "parts": (lambda x: (x + 1j).astype("c8").view("i4"), 1),
}


@pytest.mark.parametrize("name", CUT)
def test_elements_are_written_under_another_dtype(name):
    made, k = CUT[name]

    def f(x):
        y = made(x)
        z = y[:2] + 1
        y[k] = 1
        y[k : k + 1] += y[k]
        return y, z, x, y.sum()

    check(f, data(16), backend="native")
