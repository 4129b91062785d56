"""Views as indices: reads through every kind of view, and writes through them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import np_compile
from np_compile.kernels.compile import compile_graph
from np_compile.kernels.frontend.nodes import Unsupported
from np_compile.kernels.ir.program import Call

from ..support import data
from .native_checks import Case, check_table

VIEWS = {
    "backwards": lambda x: x[::-1, ::-2],
    "transposed": lambda x: x.T,
    "swapped": lambda x: np.swapaxes(x, 0, 1)[1:],
    "moved": lambda x: np.moveaxis(x, 0, 1),
    "diagonal": lambda x: np.diagonal(x, 1),
    "lower diagonal": lambda x: np.diagonal(x, -2),
    "diagonal of rows with gaps read backwards": lambda x: np.diagonal(x[::2, ::3][::-1]) * 2,
    "diagonal of columns with gaps, too": lambda x: np.diagonal(x[1::2, ::2][:, ::-1], -1),
    "reshaped": lambda x: x.reshape(3, 8),
    "reshaped after a transpose": lambda x: x.T.reshape(3, 8),
    "reshaped in Fortran's order": lambda x: np.reshape(x, (8, 3), order="F"),
    "raveled in Fortran's order": lambda x: x.ravel("F"),
    "flat": lambda x: x.flatten(),
    "broadcast": lambda x: np.broadcast_to(x[:, None], (4, 3, 6)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1),
    "new axes": lambda x: x[None, :, None, 1],
    "one element left": lambda x: x[..., 0],
    "empty": lambda x: x[2:2],
    "split": lambda x: np.split(x, 2, axis=1)[1],
    "three parts": lambda x: np.hsplit(x, 3)[2],
    "squeezed": lambda x: np.squeeze(x[:1]),
    "expanded": lambda x: np.expand_dims(x, (0, 2)),
    "three dimensions": np.atleast_3d,
    "flipped": np.flip,
    "turned": np.rot90,
    "turned twice": lambda x: np.rot90(x, 2),
    "rolled": lambda x: np.roll(x, 2),
    "rolled along axes": lambda x: np.roll(x, (1, -2), (0, 1)),
    "tiled": lambda x: np.tile(x, (2, 3)),
    "repeated": lambda x: np.repeat(x, 2, axis=1),
    "each repeated": lambda x: np.repeat(x, 3),
    "in Fortran's order": np.asfortranarray,
    "trace": np.trace,
    "differences": np.diff,
    "second differences": lambda x: np.diff(x, 2, axis=0),
    "lower triangle": np.tril,
    "upper triangle": lambda x: np.triu(x, 1),
    "gradient": lambda x: np.gradient(x, axis=1),
    "matrix of a diagonal": lambda x: np.diag(x[0]),
    "matrix of a flat diagonal": lambda x: np.diagflat(x[0], -1),
    "powers": lambda x: np.vander(x[0], 4),
    "outer": lambda x: np.outer(x, x),
    "kron": lambda x: np.kron(x, x),
    "cross": lambda x: np.cross(x[:, :3], x[:, 3:]),
}


@pytest.mark.parametrize("dtype", "dfliB?D")
def test_reads_through_views(dtype):
    x = data(4, 6, dtype=dtype)
    unfit = ("differences", "second differences", "gradient", "powers", "kron", "cross")
    table: dict[str, Case] = {}
    for name, view in VIEWS.items():
        if dtype in "?B" and name in unfit:
            continue
        table[name] = (lambda x, v=view: v(x) * x.dtype.type(1), (x,))
    check_table(table, {"aten.cumprod.default"} if dtype == "D" else ())


@pytest.mark.parametrize("layout", ["fortran", "strided", "backwards", "broadcast"])
def test_views_of_arguments_in_other_layouts(layout):
    x = {
        "fortran": np.asfortranarray(data(4, 6)),
        "strided": data(8, 18)[::2, ::3],
        "backwards": data(4, 6)[::-1, ::-1],
        "broadcast": np.broadcast_to(data(6), (4, 6)),
    }[layout]
    table = {n: (lambda x, v=v: v(x) * 2, (x,)) for n, v in VIEWS.items()}
    check_table(table, alias=False, new=layout != "broadcast")


def backwards(y):
    y[::-2, ::-1] = np.arange(6.0)


def rows_of_the_transpose(y):
    y.T[1:3] += y.T[2:4]


def diagonal(y):
    np.fill_diagonal(y, 7)


def shifted_down(y):
    y[1:] = y[:-1]


def added_to_the_row_before(y):
    y[:-1] += y[1:]


def reshaped(y):
    y.reshape(3, 8)[1] = 0


def twice_sliced(y):
    y[:, ::2][1:, 1] = 3


def rows_in_turn(y):
    y[1] = y[0]
    y[0] = y[2]
    y[...] *= 2


def bits(y):
    y.view("i8")[...] = 5


def changed_bits(y):
    y.view("i8")[1:] ^= 3


def scattered_bits(y):
    y.view("i8")[[0, 2, 0]] = np.arange(6)


def added_to_bits(y):
    np.add.at(y.view("i8"), [0, 2, 0], 1)


def out_backwards(y):
    np.add(y, 1, out=y)
    np.multiply(y, y, out=y[::-1])


def out_where(y):
    np.exp(y, out=y, where=y > 0)


def real_parts(y):
    y.view("D").real[:, 1:] = 2
    y.view("D").imag[...] *= y.view("D").real


WRITES = (
    backwards, rows_of_the_transpose, diagonal, shifted_down, added_to_the_row_before, reshaped,
    twice_sliced, rows_in_turn, bits, changed_bits, scattered_bits, added_to_bits, out_backwards,
    out_where, real_parts,
)  # fmt: skip


def test_writes_through_views_of_a_new_array():
    def on_copy(write):
        def run(x):
            y = x * 1
            write(y)
            return y

        return run

    check_table({w.__name__: (on_copy(w), (data(4, 6),)) for w in WRITES})


def test_writes_through_views_of_an_argument():
    def on_argument(write):
        def run(x):
            write(x)
            return x.sum()

        return run

    check_table({w.__name__: (on_argument(w), (data(4, 6),)) for w in WRITES})


@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
def test_what_is_rolled_along_axes_is_new(dtype):
    def run(x):
        return np.roll(x, (1, -2), (0, 1))

    x = data(4, 6).astype(dtype)
    compiled = np_compile.compile(run, backend="native")
    with np_compile.config.patch(plain="never", compile_in="call"):
        for given in (x, x[::-1, ::2], x[:1]):
            got, want = compiled(given), run(given)
            assert (got.dtype, got.strides) == (want.dtype, want.strides)
            assert not np.shares_memory(got, given)
            np.testing.assert_array_equal(got, want)
    programs = np_compile.recompiles(compiled)
    assert programs
    assert all([str(c) for c in p.calls] == ["roll"] for p in programs)


def test_the_diagonal_of_no_columns():
    def run(x):
        np.fill_diagonal(x[::-1], 7)
        return x

    check_table({"no columns": (run, (data(4, 6)[:, 2:2],))})


@pytest.mark.parametrize("layout", ["fortran", "strided", "backwards"])
def test_writes_to_arguments_in_other_layouts(layout):
    def arrays():
        return {
            "fortran": np.asfortranarray(data(4, 6)),
            "strided": data(8, 18)[::2, ::3],
            "backwards": data(4, 6)[::-1, ::-1],
        }[layout]

    def on_argument(write):
        def run(x):
            write(x)
            return x.sum()

        return run

    whole = [w for w in WRITES if "bits" not in w.__name__ and w is not real_parts]
    check_table({w.__name__: (on_argument(w), (arrays(),)) for w in whole}, alias=False)


def test_writes_to_nothing():
    def empty(x):
        y = np.zeros((0, 3))
        y[...] = 1
        x[2:2] = 5
        y[:, 1] += 2
        return y.sum() + x

    check_table({"empty": (empty, (data(4, 6),))})


def test_complex_memory_that_is_written_in_part():
    def row(x):
        z = np.empty(x.shape, complex)
        z[1] = x[0]
        return z[1]

    def whole(x):
        z = np.empty(x.shape, complex)[...]
        np.multiply(x, 2j, out=z)
        return z, z[:, 0] * 2

    check_table({f.__name__: (f, (data(4, 6),)) for f in (row, whole)}, alias=False)


def test_parts_of_complex_numbers():
    z = data(4, 4, dtype="D")

    def set_real(z):
        y = z * 1
        y.real = 2
        y.imag[1:] = y.real[:-1]
        y.real[:, ::2] += 1
        return y

    check_table(
        {
            "parts": (lambda z: (z.real * 2, z.imag + 1, z.conj(), abs(z), np.angle(z)), (z,)),
            "set": (set_real, (z,)),
            "as pairs": (lambda z: z.view("d") * 2, (z,)),
            "from pairs": (lambda x: x.copy().view("D") * 2, (data(4, 6),)),
        }
    )


def test_bits_under_another_width():
    check_table(
        {
            "wider": (lambda x: x.view("i4") + 1, (data(4, 8, dtype="b"),)),
            "narrower": (lambda x: x.view("i1") + np.int8(1), (data(4, 6),)),
            "halves": (lambda x: x.view("u4") ^ np.uint32(5), (data(4, 6),)),
            "floats": (lambda x: x.view("f4") * 2, (data(4, 6, dtype="i"),)),
            "joined": (lambda x: x.view("f8") * 2, (data(4, 6, dtype="f"),)),
        }
    )


def test_results_have_the_strides_of_torchs():
    def results(x, z):
        y = x + 1
        return [
            (x * 2).expand(3, 4, 6),
            y[:, ::2],
            y.t(),
            (x + 3)[1:, 2:4].t(),
            (z * 2)[:, ::2],
            (z * 3)[:1].expand(5, 6),
            x.unfold(1, 3, 1) * 1,
        ]

    x, z = torch.from_numpy(data(4, 6)), torch.from_numpy(data(4, 6, dtype="D"))
    got = compile_graph(make_fx(results, tracing_mode="fake")(x, z))(x, z)
    for a, b in zip(got, results(x, z), strict=True):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b)


def test_torchs_operators_write_through_views():
    def results(x, i):
        y = x * 0.1
        y.t()[1:].erfinv_()
        y.view(torch.int64).index_put_((i,), i[:, None], accumulate=True)
        return [y, y.sum(0)]

    x, i = torch.from_numpy(data(4, 6)), torch.tensor([0, 2, 0])
    made = compile_graph(make_fx(results, tracing_mode="fake")(x, i))
    assert len([s for s in made.source.program.steps if isinstance(s, Call)]) == 2
    for a, b in zip(made(x, i), results(x, i), strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


def test_a_view_without_an_index_map_that_is_written_to_is_refused():
    def results(x):
        y = x * 2
        y.view(torch.int16)[0] = 5
        return [y]

    x = torch.from_numpy(data(4, 6, dtype="e"))
    with pytest.raises(Unsupported, match="view"):
        compile_graph(make_fx(results, tracing_mode="fake")(x))


def test_a_small_array_on_the_stack() -> None:
    """gcc 12 stored 16 bytes of one at an address that it took for aligned."""

    def f(m, y, z, i):
        _, k = m.shape
        m[:-1] *= np.where(m[1:, ::-1] > i, m[:-1, ::-1], m[:-1]) // 2
        np.multiply(m[::-1, 1:], y[-1], out=m[::-1, :-1], casting="unsafe")
        return m, z[::-1] != i, np.zeros((1, k))

    def grid(*shape: int) -> np.ndarray:
        return (np.arange(np.prod(shape)) * 7 % 19 - 6).astype("i4").reshape(shape)

    def calls() -> list[tuple]:
        yes = np.ones(9, bool)
        return [
            (grid(2, 1), yes[:2], np.ones((3, 1))[1:2], 4),
            (grid(2, 1), yes[2:4], np.ones((1, 1)), 1),
            (grid(7, 7).T, yes[1:-1], np.ones((1, 7)), 4),
            (grid(7, 9)[:, 1:-1], yes[:7][::-1], grid(1, 7), 6),
        ]

    fast = np_compile.compile(f)
    with np_compile.config.patch(
        backend="native", plain="never", loops="recorded", compile_in="call"
    ):
        for mine, theirs in zip(calls(), calls(), strict=True):
            for got, want in zip(fast(*mine), f(*theirs), strict=True):
                np.testing.assert_array_equal(got, want)
