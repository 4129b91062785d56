"""The passes that change how loops run: each on programs that need it, and seen in the loops."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.kernels.compile import listening
from np_compile.kernels.ir.program import text

from ...support import check


def loops(f, *args):
    """The texts of the programs that a call compiles."""
    made = []
    with listening(made.append):
        np_compile.compile(f, backend="native")(*args)
    return [text(e.source.program) for e in made]


def rng():
    return np.random.default_rng(0)


# Updates in place from neighbours: a ring of rows, chunks, saved rows.


def five_points(u):
    u[1:-1, 1:-1] += 0.1 * (
        u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    )


def two_behind(u):
    u[2:] = u[:-2] + 0.5 * u[1:-1] + u[2:]


def two_ahead(u):
    u[:-2] = u[:-2] + u[1:-1] * u[2:]


def backwards(u):
    u[::-1][1:] = u[::-1][:-1] * 2 - u[::-1][1:]


def two_fields(u, v):
    u[1:-1] += 0.1 * (u[2:] + u[:-2] - 2 * u[1:-1]) + v[1:-1]
    v[1:-1] = u[:-2] + v[2:]


@pytest.mark.parametrize("shape", [(30, 7), (47, 30), (1001, 13), (90, 9, 11), (4000,)])
@pytest.mark.parametrize("f", [five_points, two_behind, two_ahead, backwards, two_fields])
def test_updates_from_neighbours(f, shape):
    if f is five_points and len(shape) != 2:
        pytest.skip("a program for two axes")
    args = [rng().random(shape) for _ in range(2 if f is two_fields else 1)]
    check(f, *args, backend="native", rtol=1e-12)


def test_a_stencil_needs_two_rows_of_scratch_memory_and_the_saved_ones():
    made = []
    with listening(made.append):
        np_compile.compile(five_points, backend="native")(rng().random((700, 700)))
    program = text(made[0].source.program)
    assert "halo" in program
    assert "local" in program
    assert made[0].scratch_bytes < 700 * 700 * 8 / 20


# Indices that wrap around


def neighbours(x):
    return (
        np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, (2, -3), (0, 1)) - np.roll(x, 5),
        np.roll(np.roll(x, 1, 1), -1, 1),
    )


@pytest.mark.parametrize("shape", [(10, 12), (3, 100), (64, 64), (1, 9)])
def test_rolled_arrays(shape):
    check(neighbours, rng().random(shape), backend="native")


def test_a_rolled_loop_is_cut_where_it_wraps():
    def f(x):
        return np.roll(x, 1) + np.roll(x, -1)

    (program,) = loops(f, rng().random(1000))
    assert "%" not in program
    assert program.count("for ") == 3


# Reductions


def by_columns(x):
    return x.sum(0), x.max(0), (x * x).mean(0), x.sum(), x.prod(1), x.argmin(0), x.argmax()


@pytest.mark.parametrize("shape", [(20_000, 7), (4097, 32), (5000, 1), (4096, 3), (8, 9000)])
def test_reductions_of_tall_and_wide_arrays(shape):
    check(by_columns, rng().random(shape) - 0.5, backend="native", rtol=1e-11)


def test_a_tall_reduction_is_made_in_parts():
    (program,) = loops(lambda x: x.sum(0), rng().random((100_000, 4)))
    assert "part" in program
    assert "parallel" in program


def test_rows_are_normalized_in_one_nest():
    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    (program,) = loops(softmax, rng().random((50, 30)))
    assert sum(line.startswith("for ") for line in program.splitlines()) == 1


# Two orders of memory


def across(x, y):
    return x.T.copy(), x.T + y, (x[:, ::-1].T * 2, np.asfortranarray(y))


@pytest.mark.parametrize("shape", [(64, 64), (100, 300), (129, 257), (400, 70)])
def test_transposed_arrays(shape):
    x = rng().random(shape)
    check(across, x, rng().random(shape[::-1]), backend="native")
    check(across, np.asfortranarray(x), rng().random(shape).T, backend="native")


def test_a_transposed_copy_runs_in_tiles():
    (program,) = loops(lambda x: np.ascontiguousarray(x.T), rng().random((300, 200)))
    assert "for w" in program


# Stores at computed indices


def assigned(x, i, v):
    x[i] = v
    return x[i]


@pytest.mark.parametrize("trailing", [(), (5,)])
def test_the_last_of_several_values_for_a_place_stays(trailing):
    i = rng().integers(-50, 50, 400)
    args = np.zeros((50, *trailing)), i, rng().random((400, *trailing))
    check(assigned, *args, backend="native")


def test_no_search_for_the_last_of_several_values():
    i = rng().integers(-50, 50, 400)
    (program,) = loops(assigned, np.zeros(50), i, rng().random(400))
    assert "-1" not in program


def test_addition_at_indices_changes_the_array_where_it_lies():
    def f(x, i, v):
        np.add.at(x, i, v)

    args = np.zeros(50), rng().integers(-50, 50, 400), rng().random(400)
    check(f, *args, backend="native")
    (program,) = loops(f, *args)
    assert "x0[known(" in program


# Sorting and transforms by NumPy's library


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "?"])
def test_sorting(dtype):
    def f(x):
        return (
            np.sort(x), np.argsort(x), np.argsort(x, kind="stable"), np.sort(x.reshape(20, -1), 0),
            np.argsort(x.reshape(20, -1), axis=0), np.median(x),
        )  # fmt: skip

    x = (rng().random(2000) * 100).astype(dtype)
    if x.dtype.kind == "f":
        x[::100] = np.nan
    check(f, x, backend="native")


@pytest.mark.parametrize("n", [4095, 4096, 5001])
def test_long_real_transforms(n):
    def f(x):
        z = np.fft.rfft(x)
        return (
            z,
            np.fft.irfft(z, len(x)),
            np.fft.irfft(z),
            np.fft.rfft(x, norm="ortho"),
            np.fft.fft(x),
        )

    check(f, rng().random(n), backend="native", rtol=1e-9)


# Rows: much to compute of what their reductions give


def probabilities(x, w):
    return 1 / (1 + np.exp(-(x @ w)))


def lengths(x, k):
    best = x.argmax(1)
    return np.sqrt((x * x).sum(1)) ** 0.3 + best, np.exp(x.min(1))[:, None] * (x + k)


@pytest.mark.parametrize("shape", [(1, 3), (15, 1), (16, 5), (33, 10), (100, 40), (3000, 6)])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_what_is_computed_of_rows(shape, dtype):
    x = rng().standard_normal(shape).astype(dtype)
    check(probabilities, x, x[0].copy(), backend="native")
    check(lengths, x, 2, backend="native", rtol=1e-5 if dtype == "f" else None)


def test_what_is_computed_of_rows_runs_for_strips_of_them():
    (program,) = loops(probabilities, rng().random((1000, 12)), rng().random(12))
    (head,) = [line for line in program.splitlines() if "rows" in line]
    assert head.startswith("for ")
    assert "rows" not in loops(lambda x: x.sum(1) + 1, rng().random((1000, 12)))[0]


def test_local_arrays_of_rows():
    def f(x, centres):
        distances = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        member = nearest[:, None] == np.arange(len(centres))
        return nearest, distances.min(axis=1), member.astype(np.float64)

    x, centres = rng().random((500, 8)), rng().random((8, 8))
    assert "rows" in "".join(loops(f, x, centres))
    for n in (1, 31, 32, 33, 500, 5000):
        check(f, rng().random((n, 8)), centres, backend="native")


def test_elements_with_gaps_are_loaded_before_conditions():
    def escapes(z, c):
        inside = z.real < 4.0
        return np.where(inside, z * z + c, z), np.where(inside, c.real, 0.5)

    made = []
    z, c = (np.random.default_rng(k).standard_normal((2, 500)) for k in range(2))
    with listening(made.append):
        check(escapes, z[0] + 1j * z[1], c[0] + 1j * c[1], backend="native")
    lines = [line for m in made for line in m.source.text.splitlines() if "?" in line]
    assert lines
    # The C compiler makes no vectors where such a load depends on a condition.
    assert not any("[" in line.partition("?")[2] for line in lines), lines


def test_what_a_function_gives_of_an_element_does_not_follow_from_its_address():
    def f(x):
        np.sin(x, out=x)
        x *= 1.5

    compiled = np_compile.compile(f)
    x = np.random.default_rng(0).uniform(-100, 100, 5000)
    memory = np.empty(x.size + 8)
    found = set()
    with config.patch(plain="never"):
        for shift in range(8):
            place = memory[shift : shift + x.size]
            place[:] = x
            compiled(place)
            found.add(place.tobytes())
    assert len(found) == 1


# Reductions over pairs: the axis of the vector is not the innermost one.


def over_pairs(x, y):
    return np.sum(x[:, :, None] * y[:, None, :], (-2, -1)), np.max(
        x[:, :, None] - y[:, None], (1, 2)
    )


@pytest.mark.parametrize("shape", [(1, 5), (7, 64), (3, 71), (40, 33), (2, 1), (0, 4), (4, 0)])
def test_reductions_over_pairs(shape):
    x, y = rng().random(shape), rng().random(shape)
    f = over_pairs if shape[1] else lambda x, y: np.sum(x[:, :, None] * y[:, None], (-2, -1))
    check(f, x, y, backend="native", rtol=1e-13)
    if min(shape) >= 7:
        (text,) = loops(over_pairs, x, y)
        assert text.count(" strip ") == 1
        assert " vector " not in text


def test_sums_of_what_depends_on_both_go_along_memory():
    def sums(x, y):
        return np.sum(x[:, ::2] * y[:, :, None], (1, 2))

    x, y = rng().random((9, 80, 50)), rng().random((9, 40))
    check(sums, x, y, backend="native", rtol=1e-13)
    (text,) = loops(sums, x, y)
    assert " strip " not in text
