"""Views at indices that are data of the program: reads and writes through them, as in NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import np_compile

from ..support import check, compiled, data, same

A = np.ndarray


def read_while_written(x: A, i: int) -> Any:
    x -= x[i]
    x *= x[i, 0, ...]
    return x


def shifted(x: A, i: int) -> Any:
    x = x.reshape(-1)
    x[1:6] = x[i : i + 5]
    x[:6:2] += x[i : i + 3]
    return x


def out_is_read(x: A, i: int) -> Any:
    r = np.multiply(x, x[i], x)
    return r is x, x


def added_at(x: A, i: int) -> Any:
    np.add.at(x, [0, i, i], x[i])
    return x


def out_in_a_tuple(x: A, i: int) -> Any:
    np.add(x[0], 1, out=(x[i],))
    np.divmod(x[0], 2.0, out=(x[i], x[i - 1]))
    return x


def no_dimensions(x: A, i: int) -> Any:
    x = x.reshape(-1)
    s = x[i, ...]
    x[i] = 5.0
    s += 1
    return s * 2, x


def an_element_is_a_copy(x: A, i: int) -> Any:
    x = x.ravel() * 2
    s = x[i]
    x[i] = 100.0
    return s, x


def index_array_gives_a_copy(x: A, i: int) -> Any:
    y = x[i : i + 2][np.array([1, 0])]
    x[i] = 0
    return y, x


def in_an_index(x: A, i: int) -> Any:
    rows = np.arange(6)
    x[rows[i : i + 2]] += 1
    v = x[i : i + 2]
    v[rows[i : i + 1] * 0] = 9
    return x, v[rows[:1]]


def by_keyword(x: A, i: int) -> Any:
    v = np.reshape(x[i : i + 2], shape=(-1,))
    v += 1
    w = np.transpose(axes=(1, 0), a=x[i : i + 2])
    w *= 2
    return x


def several_views(x: A, i: int) -> Any:
    v, w = np.split(x[i : i + 2], 2)
    v += w
    w *= v
    a, b = np.broadcast_arrays(x, x[i])
    return a + b, v, x


def overlapping(x: A, i: int) -> Any:
    x = x.reshape(-1)
    np.add(x[i : i + 6], x[i + 1 : i + 7], out=x[i + 2 : i + 8])
    return x


def in_order_of_columns(x: A, i: int) -> Any:
    y = x.copy(order="F") if i % 2 else np.asfortranarray(x)
    v = y[i : i + 3].reshape(-1, order="F")
    v[:2] = 7
    w = y[:, i % 2 : i % 2 + 2].reshape(-1, order="F")  # a view
    w[:3] = 8
    return y, v


def of_new_axes_and_numbers(x: A, i: int) -> Any:
    y = x[:, :1][i : i + 3]
    y[i % 2 : i % 2 + 2, 0, None] += y[:1]
    return x


def into_integers(x: A, i: int) -> Any:
    y = x.astype(np.int32)
    y[i] = x[i] * 1.7
    y[i : i + 2] += np.int8(3)
    y[i] //= 2
    np.subtract(y, y[i], out=y[...])
    return y


PROGRAMS = (
    read_while_written, shifted, out_is_read, added_at, out_in_a_tuple, no_dimensions,
    an_element_is_a_copy, index_array_gives_a_copy, in_an_index, by_keyword, several_views,
    overlapping, in_order_of_columns, of_new_axes_and_numbers, into_integers,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_parts_are_read_and_written_at_once(program: Callable) -> None:
    fast, _ = compiled(program, dynamic=True)
    for i in range(4):
        mine, theirs = data(6, 4, seed=i), data(6, 4, seed=i)
        same((fast(theirs, i), theirs), (program(mine, i), mine), f"with {i}", 1e-12)


LISTED = (  # slices that begin at i, and lists beside them
    "i:i + 2, [0, -1]", "[0, -1], i:i + 2", "i:i + 2, :, [0, -1]", "[0, 1], :, i:i + 2",
    "i:i + 2, [0, 1], [1, 0]", "[0, 1], i:i + 2, [1, 0]", "i:i + 2, 0, [0, 1]", "1, i:i + 2, [0]",
    "0, [0, 1], i:i + 2", "None, i:i + 2, [0, 1, 0]", "i:i + 2, None, [0, 1]",
    "i:i + 2, [0, 1], None, 0", "..., i:i + 2, [0, 1]", "[0, 1], ..., i:i + 2", "i:i + 2, []",
    "i:i + 2, i:i + 1, [0, -1, 0]", "[-1, 0], None, i, i:i + 2", "i:i + 2, [True]",
    "i:i + 2, [0, i]", "[i, 1], :, i:i + 2", "[i], i:i + 2, [1 - i]",
)  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("key", LISTED)
def test_lists_beside_slices_that_begin_elsewhere_each_time(key: str, dynamic: bool | None) -> None:
    names: dict[str, Any] = {}
    exec(
        f"def f(x, i):\n    y = x[{key}]\n    x[{key}] = i + 0.5\n    x[{key}] *= 2\n"
        f"    z = x[{key}]\n    z += y\n    return y, z, x",
        names,
    )
    fast, counter = compiled(names["f"], dynamic=dynamic)
    for i in range(3):
        mine, theirs = data(4, 5, 6, seed=i), data(4, 5, 6, seed=i)
        try:
            want = names["f"](mine, i)
        except IndexError as error:
            with pytest.raises(IndexError, match=re.escape(str(error))):
                fast(theirs, i)
        else:
            same((fast(theirs, i), theirs), (want, mine), f"with {i}")
    assert counter.count <= 2


def test_a_loop_that_reads_what_it_writes_to() -> None:
    def f(x: A) -> A:
        for i in range(12):
            x -= x[i]
        return x

    check(f, data(12, 5))
    check(f, data(12, 5), backend="native")
    check(f, data(12, 5), backend="aot_eager")


def test_only_what_is_written_to_is_written_back_with_gradients() -> None:
    import torch

    def f(x: Any, i: int) -> Any:
        y = x * 2
        y -= y[i]
        y[i : i + 2] += y[:2]
        return y.sum(axis=0)

    want = np.arange(12.0).reshape(4, 3)
    wrapped = np_compile.wrap_numpy(np_compile.compile(f, backend="eager", dynamic=True))
    for i in range(3):
        t = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).requires_grad_()
        np.testing.assert_array_equal(wrapped(t, i).detach().numpy(), f(want, i))
