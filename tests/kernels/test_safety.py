"""What goes wrong in a call, and what happens beside it: indices out of bounds, sizes beyond 2^31,
threads, forks, the end of the process."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import np_compile
from np_compile.kernels.run import pool

from .. import fresh
from ..support import check, thorough


@pytest.fixture(autouse=True)
def always_compiled() -> Iterator[None]:
    """No call runs in plain NumPy because that is the faster way."""
    with np_compile.config.patch(plain="never"):
        yield


# -- indices out of bounds -----------------------------------------------------------------------


def _outcome(f: Callable, args: tuple) -> tuple[BaseException | None, list[Any]]:
    """What a call on copies of the arguments raises, and the copies afterwards."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        f(*own)
    except Exception as e:
        return e, own
    return None, own


def refused(f: Callable, *args: Any) -> None:
    """f raises NumPy's IndexError, compiled too, and writes what NumPy has written by then."""
    want, written = _outcome(f, args)
    assert isinstance(want, IndexError)
    compiled = np_compile.compile(f, backend="native")
    for _ in range(4):  # the first call compiles, later ones may run without Python
        got, after = _outcome(compiled, args)
        assert type(got) is IndexError
        assert str(got) == str(want)
        for a, b in zip(after, written, strict=True):
            np.testing.assert_array_equal(a, b)


def _gather(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    return np.sin(x[i]) * 2


def _scatter(x: np.ndarray, i: np.ndarray) -> None:
    x[i] = 1.0


def _add_at(x: np.ndarray, i: np.ndarray) -> None:
    np.add.at(x, i, 2.0)


def _add_in_place(x: np.ndarray, i: np.ndarray) -> None:
    x[i] += 1


def _take(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    return np.take(x, i) + 1


def _put(x: np.ndarray, i: np.ndarray) -> None:
    np.put(x, i, 3.0)


def _along(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, i, axis=0) * 2


def _put_along(x: np.ndarray, i: np.ndarray) -> None:
    np.put_along_axis(x, i, 7.0, axis=0)


def _written_before(x: np.ndarray, i: np.ndarray) -> None:
    x += 1
    x[2:4] *= 3
    np.add.at(x, i, 1.0)


def _written_after(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    y = x[i]
    x[:] = 0
    return y


def _read_last(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    x -= x.mean()
    return x[i] * x[i[::-1]]


def _in_a_loop(x: np.ndarray, i: np.ndarray) -> None:
    for _ in range(3):
        x *= 2
        x[i] += 1


def _computed(x: np.ndarray, i: np.ndarray) -> None:
    x *= 2
    x[i * 2 - i] = x[0]


def _into_new(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    y = np.cos(x)
    y[i] = 2
    return y


_TABLE = np.arange(10.0)


def _from_a_table(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    x += 1
    return _TABLE[i]


ONE_INDEX = (
    _gather, _scatter, _add_at, _add_in_place, _take, _put, _along, _put_along, _written_before,
    _written_after, _read_last, _in_a_loop, _computed, _into_new, _from_a_table,
)  # fmt: skip


@pytest.mark.parametrize("f", ONE_INDEX, ids=lambda f: f.__name__[1:])
@pytest.mark.parametrize("wrong", [10, -11, 2**40, -(2**62)])
def test_an_index_out_of_bounds(f: Callable, wrong: int) -> None:
    refused(f, np.arange(10.0), np.array([1, wrong, 2, -10, 9]))


@pytest.mark.parametrize("f", ONE_INDEX, ids=lambda f: f.__name__[1:])
def test_one_wrong_index_among_many_in_several_threads(f: Callable) -> None:
    i = np.arange(200_000)[::-1].copy()
    i[77_777] = 200_000
    refused(f, np.arange(200_000.0), i)


@pytest.mark.parametrize("f", ONE_INDEX, ids=lambda f: f.__name__[1:])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, *thorough(np.int32, np.uint8)])
def test_indices_up_to_the_ends_are_accepted(f: Callable, dtype: type) -> None:
    low = [] if dtype is np.uint8 else [-10, -1, -4]
    i = np.array([0, 9, 3, *low], dtype)
    if f is _put_along:
        i = i[:3]
    x = np.linspace(1, 2, 10)
    mine, own = x.copy(), x.copy()
    want, got = f(own, i), np_compile.compile(f, backend="native")(mine, i)
    np.testing.assert_allclose(mine, own, rtol=1e-12)
    if want is not None:
        np.testing.assert_allclose(got, want, rtol=1e-12)


def _get_two(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return x[i, j] + 1


def _set_two(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
    x[i, j] = -1.0


def _add_two(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
    x += 1
    np.add.at(x, (i, j), 1.0)


def _get_outer(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return x[i[:, None], j] * 2


def _get_columns(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return x[i][:, j] * 2


@pytest.mark.parametrize(
    "f", [_get_two, _set_two, _add_two, _get_outer, _get_columns], ids=lambda f: f.__name__[1:]
)
@pytest.mark.parametrize(
    ("i", "j"), [([0, 3], [0, 1]), ([0, 1], [0, 4]), ([0, 1], [-5, 1]), ([-4, 1], [2, 2])]
)
def test_several_index_arrays(f: Callable, i: list, j: list) -> None:
    refused(f, np.arange(12.0).reshape(3, 4), np.array(i), np.array(j))


# Statements of random programs, every index of which is used.
STATEMENTS = (
    "x += 1", "y *= 2", "x[2:5] *= y[1:4]", "x[i] += 1", "y[j] = x[i]", "x[j] = 3.0",
    "z = z + x[i] * y[j]", "np.add.at(x, i, y[j])", "np.add.at(y, j, 1.0)", "np.put(y, i, 4.0)",
    "x[1:-1] += 0.1 * (x[:-2] - x[2:])", "k = i + j - i; y[k] -= 1", "x -= x.mean()",
    "z = z + np.sin(x)[i] + z.sum()", "y += np.cumsum(y)", "np.take(x, i, out=z)",
    "m[i % 4, j % 5] += z[0]", "m += m[:, ::-1]", "z += np.roll(x, 1)[j]",
    "x[::2] = y[::2] + z.max()", "z = z + np.where(x[i] > 0, y[j], z.mean())",
)  # fmt: skip


@pytest.mark.parametrize("seed", [*range(10), *thorough(*range(10, 24))])
def test_random_programs_write_what_numpy_writes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([12, 40, 30_000]))
    body = "\n    ".join(rng.choice(STATEMENTS, size=rng.integers(2, 7)))
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x, y, z, m, i, j):\n    {body}\n    return z * 1", names)
    f, compiled = names["f"], np_compile.compile(names["f"], backend="native")
    for turn in range(4):
        i, j = rng.integers(-n, n, 7), rng.permutation(n)[:7]
        if turn % 2:
            (i, j)[rng.integers(2)][rng.integers(7)] = rng.choice([n, -n - 1, n + 5, 2**35])
        args = (rng.random(n), rng.random(n), rng.random(7), rng.random((4, 5)), i, j)
        want, wanted = _outcome(f, args)
        got, after = _outcome(compiled, args)
        assert (type(got), str(got)) == (type(want), str(want)), body
        for a, b in zip(after, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=body)


def _two_writes(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
    x[i] = 1
    x[j] = 2


def _index_of_index(x: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
    x[j[i]] = 0


@pytest.mark.parametrize("f", [_two_writes, _index_of_index], ids=lambda f: f.__name__[1:])
def test_the_second_index_is_wrong(f: Callable) -> None:
    refused(f, np.arange(10.0), np.array([1, 2]), np.array([3, 4, -11]))


def _take_into(x: np.ndarray, i: np.ndarray, out: np.ndarray) -> None:
    np.take(x, i, out=out)


def _index_moved(x: np.ndarray, i: np.ndarray) -> None:
    i += 2
    x[i] = 1.0


def _index_given_first(i: np.ndarray, x: np.ndarray) -> None:
    _index_moved(x, i)


def _index_into_itself(i: np.ndarray, values: np.ndarray) -> None:
    i[i] = values
    i[i - 3] += values


@pytest.mark.parametrize("f", [_index_moved, _index_given_first, _index_into_itself])
def test_an_index_array_that_is_written_to(f: Callable) -> None:
    memory = np.zeros(104)
    low, high, values = np.arange(85, 89), np.arange(95, 99), np.array([4, 3, 6, 5])
    right: tuple = (memory[:100], low)
    wrong: tuple = (memory[:100], high)
    if f is _index_given_first:
        right, wrong = right[::-1], wrong[::-1]
    elif f is _index_into_itself:
        right, wrong = (np.array([3, 1, 2, 0]), values), (np.array([3, 1, 4, 0]), values)
    compiled = np_compile.compile(f, backend="native")
    error, _ = _outcome(f, wrong)
    for args in (right, wrong) * 3:  # the later calls may run without Python
        memory[:] = 0
        own = [a if a.base is memory else a.copy() for a in args]
        _, written = _outcome(f, args)
        if args is wrong:
            with pytest.raises(IndexError) as raised:
                compiled(*own)
            assert str(raised.value) == str(error)
        else:
            compiled(*own)
        assert not memory[100:].any()
        for a, b in zip(own, written, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_index_array_that_it_writes_to_call_by_call() -> None:
    for i in ([3, 1, 2, 0], [0, 0, 1, 3]):
        check(_index_into_itself, np.array(i), np.array([4, 3, 6, 5]), new=False)


def test_out_keeps_its_values() -> None:
    refused(_take_into, np.arange(10.0), np.array([1, 10, 2]), np.zeros(3))


def test_two_arrays_of_which_the_second_index_is_wrong() -> None:
    def both(x: np.ndarray, y: np.ndarray, i: np.ndarray) -> None:
        x *= 2
        y[i] += 1

    refused(both, np.ones(4), np.ones(3), np.array([0, 3]))


def test_an_empty_array_has_no_index() -> None:
    refused(_gather, np.zeros(0), np.array([0]))


@pytest.mark.parametrize("f", ONE_INDEX, ids=lambda f: f.__name__[1:])
def test_a_wrong_index_after_calls_with_right_ones(f: Callable) -> None:
    compiled = np_compile.compile(f, backend="native")
    for _ in range(4):
        compiled(np.arange(10.0), np.array([1, 0, 2]))
    for wrong in (10, -11):
        args = np.arange(10.0), np.array([1, wrong, 2])
        want, written = _outcome(f, args)
        got, after = _outcome(compiled, args)
        assert type(got) is IndexError
        assert str(got) == str(want)
        np.testing.assert_array_equal(after[0], written[0])


def test_a_call_after_a_refused_one() -> None:
    f = np_compile.compile(_written_before, backend="native")
    x = np.arange(10.0)
    with pytest.raises(IndexError):
        f(x, np.array([10]))
    f(x, np.array([0]))
    want = np.arange(10.0)
    with pytest.raises(IndexError):
        _written_before(want, np.array([10]))
    _written_before(want, np.array([0]))
    np.testing.assert_array_equal(x, want)


def test_a_tensor_is_left_as_it_is() -> None:
    f = np_compile.compile(np_compile.wrap_numpy(_written_before), backend="native")
    x = torch.arange(10.0)
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        f(x, torch.tensor([10]))
    assert x.tolist() == list(range(10))


# -- more than 2^31 elements ---------------------------------------------------------------------

FAR = 2**31 + 1000


def _native(f: Callable, *args: Any) -> Any:
    return np_compile.compile(f, backend="native", fullgraph=True)(*args)


def test_a_sum_of_more_elements_than_32_bits_count() -> None:
    x = np.broadcast_to(np.int8(1), (FAR,))
    assert _native(lambda x: x.sum(), x) == FAR
    y = np.broadcast_to(np.array([1, 2, 3], np.uint8), (2**30, 3))
    assert _native(lambda y: (y * np.uint8(2)).sum(axis=0), y).tolist() == [2**31, 2**32, 3 * 2**31]


@pytest.fixture(scope="module")
def far() -> np.ndarray:
    """Zeros of which only the touched pages take memory."""
    return np.zeros(FAR, np.uint8)


def test_a_position_beyond_32_bits(far: np.ndarray) -> None:
    far[FAR - 5] = 7
    assert _native(lambda x: (x.argmax(), x.max(), x.any()), far) == (FAR - 5, 7, True)
    rows = far.reshape(2, FAR // 2)
    found = _native(lambda x: x.argmax(axis=1), rows)
    assert found.tolist() == [0, FAR // 2 - 5]


def test_slices_and_indices_beyond_32_bits(far: np.ndarray) -> None:
    def change(x: np.ndarray) -> None:
        x[2**31 + 10 : 2**31 + 20] += 3
        x[-3:] = x[2**31 + 8 : 2**31 + 11]

    _native(change, far)
    assert far[2**31 + 8 : 2**31 + 12].tolist() == [0, 0, 3, 3]
    assert far[-4:].tolist() == [0, 0, 0, 3]
    i = np.array([2**31 + 10, -1, 5])
    assert _native(lambda x, i: x[i] * 2, far, i).tolist() == [6, 6, 0]
    _native(lambda x, i: np.add.at(x, i, 1), far, i)
    assert far[i].tolist() == [4, 4, 1]
    with pytest.raises(
        IndexError, match=f"index {FAR} is out of bounds for axis 0 with size {FAR}"
    ):
        _native(lambda x, i: x[i] * 2, far, np.array([FAR]))


def test_strides_beyond_32_bits(far: np.ndarray) -> None:
    far[:: 2**30] = 1
    x = np.lib.stride_tricks.as_strided(far, (3, 4), (2**30, 1))
    y = _native(lambda x: x + 1, x)
    assert y[:, 0].tolist() == [2, 2, 2]
    assert _native(lambda x: x[:: 2**30] + 1, far).tolist() == [2, 2, 2]
    assert _native(lambda x: x[:: -(2**30)] + 1, far[: 2**31 + 1]).tolist() == [2, 2, 2]


# -- threads -------------------------------------------------------------------------------------


def _wave(x: np.ndarray) -> np.ndarray:
    return np.sin(x) * 2 + x.sum()


def _smooth(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return y


def _rows(x: np.ndarray) -> np.ndarray:
    z = x.reshape(100, -1)
    return (z - z.mean(axis=1, keepdims=True)).std(axis=0)


def _picked(x: np.ndarray) -> np.ndarray:
    return x[np.arange(0, x.size, 2) % 1000] + 1


def test_many_threads_call_one_and_several_functions() -> None:
    functions = [_wave, _smooth, _rows, _picked]
    compiled = [np_compile.compile(f, backend="native") for f in functions]
    data = [np.random.default_rng(k).random(100_000) for k in range(3)]
    wanted = [[f(x) for x in data] for f in functions]
    together = threading.Barrier(6)
    helpers = pool.library().npc_helpers()

    def work(number: int) -> None:
        together.wait()
        for turn in range(20):
            k, j = (number + turn) % 4, turn % 3
            np.testing.assert_allclose(compiled[k](data[j]), wanted[k][j], rtol=1e-11)

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(work, n) for n in range(6)]:
            done.result(timeout=120)
    assert pool.library().npc_helpers() <= max(helpers, torch.get_num_threads() - 1)


def test_threads_that_fail_among_others() -> None:
    f = np_compile.compile(_written_before, backend="native")
    good, bad = np.arange(50_000), np.array([50_000])
    want, want_before = np.arange(50_000.0), np.arange(50_000.0)
    _written_before(want, good)
    with pytest.raises(IndexError):
        _written_before(want_before, bad)

    def work(number: int) -> None:
        for turn in range(20):
            x = np.arange(50_000.0)
            if (number + turn) % 2:
                with pytest.raises(IndexError):
                    f(x, bad)
                want_now = want_before
            else:
                f(x, good)
                want_now = want
            np.testing.assert_array_equal(x, want_now)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, n) for n in range(4)]:
            done.result(timeout=120)


_HEAD = """
import atexit, os, sys, threading
import numpy as np
import torch
import np_compile
from np_compile.kernels.run import pool

@np_compile.compile(backend="native")
def wave(x):
    return np.sin(x) * 2 + x.sum()

@np_compile.compile(backend="native")
def other(x):
    return np.sqrt(x).mean() + x

x = np.linspace(0, 1, 400_000)

def right(f):
    return np.allclose(f(x), f.__wrapped__(x))
"""


def run(code: str, timeout: float = 120) -> str:
    """Python's words for a program that begins with `_HEAD`; its exit status must be 0."""
    done = fresh.run(
        _HEAD + textwrap.dedent(code), env=os.environ | {"NP_COMPILE_PLAIN": "never"},
        timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_one_thread_means_no_helper() -> None:
    said = run("""
        torch.set_num_threads(1)
        assert right(wave)
        print(pool.library().npc_helpers())
        torch.set_num_threads(3)
        for _ in range(50):
            assert right(wave)
        print(pool.library().npc_helpers() <= 2)
    """)
    assert said.split() == ["0", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes() -> None:
    said = run("""
        torch.set_num_threads(2)
        for _ in range(20):
            assert right(wave)
        for _ in range(5):
            child = os.fork()
            if not child:
                code = 1
                try:
                    code = 0 if right(wave) and right(other) and right(wave) else 2
                finally:
                    os._exit(code)
            assert right(wave)
            assert os.waitpid(child, 0)[1] == 0
        assert right(wave) and right(other)
        print("done")
    """)
    assert said == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_other_threads_compute() -> None:
    said = run("""
        for _ in range(4):  # past the imports, whose locks a child would find taken
            assert right(wave)
        stop = threading.Event()
        failed = []
        def work():
            while not stop.is_set():
                if not right(wave):
                    failed.append(1)
        workers = [threading.Thread(target=work) for _ in range(2)]
        for w in workers:
            w.start()
        for _ in range(10):
            child = os.fork()
            if not child:
                code = 1
                try:
                    code = 0 if right(wave) else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for w in workers:
            w.join()
        print("failed" if failed else "done")
    """)
    assert said == "done\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs the start method fork")
def test_processes_of_multiprocessing() -> None:
    said = run("""
        import multiprocessing
        def work(k):
            return right(wave) and right(other)
        assert right(wave)
        with multiprocessing.get_context("fork").Pool(2) as processes:
            print(processes.map(work, range(6)))
    """)
    assert said == f"{[True] * 6}\n"


def test_calls_at_the_end_of_the_process() -> None:
    said = run("""
        assert right(wave)
        atexit.register(lambda: print("exit", right(wave), right(other)))
    """)
    assert said == "exit True True\n"


def test_the_main_thread_ends_while_another_computes() -> None:
    said = run("""
        assert right(wave)
        def work():
            for _ in range(50):
                assert right(wave)
            print("thread", right(other))
        threading.Thread(target=work).start()
        print("main")
    """)
    assert said == "main\nthread True\n"
