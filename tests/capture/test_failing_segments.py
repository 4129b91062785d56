"""A segment that fails on its data: what was made before the call that failed is there, where the
function has put it; what was to come after it is not."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

import np_compile

from ..support import check, data, thorough
from .test_devices import fails_after_writes


class Box:
    def __init__(self, u, v):
        self.u, self.v, self.w = u, v, v * 0


BACKENDS = pytest.mark.parametrize("backend", ["eager", "native"])
OUTSIDE = np.array([0, 5])


@BACKENDS
def test_attributes_have_what_was_made_before(backend):
    def f(box, index):
        box.u = box.u + 1
        box.v[index] = box.v * 2
        box.w = box.u + 3

    box = Box(np.arange(2.0), np.arange(2.0))
    assert isinstance(check(f, box, OUTSIDE, backend=backend).first.error, IndexError)


@BACKENDS
def test_items_have_what_was_made_before(backend):
    def f(items, names, index):
        items[0] = items[0] + 1
        names["a"] = items[0] * 2
        names["b"] = names["a"][index]
        names["c"] = names["b"] + 1

    seen = check(f, [np.arange(2.0)], {}, OUTSIDE, backend=backend).first
    assert isinstance(seen.error, IndexError)
    assert list(seen.args[1]) == ["a"]


@BACKENDS
def test_a_new_list_has_what_was_made_before(backend):
    def f(lists, x, index):
        new = [x + 1]
        lists.append(new)
        new.append(x[index])
        new.append(x + 2)

    seen = check(f, [], np.arange(2.0), OUTSIDE, backend=backend).first
    assert isinstance(seen.error, IndexError)


TOTAL = None


@BACKENDS
def test_names_are_not_bound_to_what_was_not_made(backend):
    def f(x, index):
        global TOTAL
        y = x[index]
        TOTAL = y * 2

    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        np_compile.compile(f, backend=backend)(np.arange(2.0), OUTSIDE)
    assert TOTAL is None


@BACKENDS
def test_cells_are_not_bound_to_what_was_not_made(backend):
    last = "nothing"

    def f(x, index):
        nonlocal last
        y = x[index]
        last = y * 2

    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        np_compile.compile(f, backend=backend)(np.arange(2.0), OUTSIDE)
    assert last == "nothing"


HANDLED = {
    "at": lambda x, m, i: np.add.at(x, i, 1),
    "at_with_tuples": lambda x, m, i: np.maximum.at(m, (0, i), 1),
    "store": lambda x, m, i: m.__setitem__((i, 0), 2),
    "list": lambda x, m, i: x[[0, 7]],
    "list of an axis": lambda x, m, i: m[1:, ..., [0, -4]],
    "list beside an array": lambda x, m, i: m[i - i, [0, 1, 3]],
    "stores at a list": lambda x, m, i: x.__setitem__([1, 3], 0),
    "take": lambda x, m, i: x.take(i),
    "along_axis": lambda x, m, i: np.take_along_axis(x, i, 0),
    "choose": lambda x, m, i: np.choose(i, [x, x]),
    "reduceat": lambda x, m, i: np.add.reduceat(x, i),
    "unravel": lambda x, m, i: np.unravel_index(i, (2,)),
    "bins": lambda x, m, i: np.histogram(x, [3, 1]),
    "bools": lambda x, m, i: np.histogram(x, [0, 1, 3], weights=x > 1),
    "quantile": lambda x, m, i: np.quantile(x, x[2]),
    "repeat": lambda x, m, i: np.repeat(x, -i),
    "sorter": lambda x, m, i: np.searchsorted(x, x, sorter=i),
    "power": lambda x, m, i: i ** (i - 9),
    "period": lambda x, m, i: np.interp(x, x, x, period=i[2] - 1),
    "period of Python's": lambda x, m, i: np.interp(x, x, x, None, None, 0.0),
    "period of Python's, and complex": lambda x, m, i: np.interp(x, x, x * 1j, period=0),
}


@pytest.mark.parametrize("backend", ["eager", *thorough("native")])
@pytest.mark.parametrize("name", HANDLED)
def test_errors_come_within_the_try_block(name, backend):
    call = HANDLED[name]

    def f(x, m, i):
        y = x + 1
        try:
            call(y, m, i)
        except (IndexError, ValueError, TypeError) as e:
            return str(e), y, y * 2
        return y * 3

    check(f, np.arange(3.0), np.arange(9.0).reshape(3, 3), np.array([2, 7, 1]), backend=backend)


def at_a_number(x, n):
    try:
        picked = x[[0, n]] * 2
    except IndexError as e:
        return str(e), x.sum()
    return picked, x.sum()


def in_the_middle(x, n):
    try:
        x[[0, len(x) // 2, 9]] += 1
    except IndexError as e:
        return str(e), x.sum()
    return x * 2


@BACKENDS
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("f", [at_a_number, in_the_middle])
def test_lists_that_are_out_of_bounds_in_some_calls(f, dynamic, backend):
    """Whichever program knows the call: for its number, for all, for its size, for all."""
    fast = np_compile.compile(f, backend=backend, dynamic=dynamic)
    inside = [(20, 1), (20, 1), (20, 3), (20, 19), (24, 22), (9, 8), (9, -9)]
    for size, n in [*inside, (20, 20), (9, 9), (9, -10), (20, 8)]:
        want, got = f(np.arange(float(size)), n), fast(np.arange(float(size)), n)
        assert repr(got) == repr(want)


def writes_and_fails(x, i):
    x -= 1
    y = x * 2
    x[i] = y[i + 40]


def keeps_what_it_read_between(x, i):
    out = []
    for _ in range(2):
        x[...] = x / 2
        out.append(np.sum(x))
        try:
            np.add.at(x, i + 40, 1.0)
        except IndexError as e:
            out.append(str(e))
    return out


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("f", [fails_after_writes, writes_and_fails, keeps_what_it_read_between])
def test_what_comes_before_an_index_that_fails_is_written(f, backend):
    check(f, data(6), np.array([3, 1, 2]), backend=backend)


def test_a_handler_in_a_test_of_numpys():
    """Its file lies in NumPy's folder, and it is user code."""
    source = """
def f(x, index):
    try:
        y = x[index] * 2
    except IndexError:
        return -1
    return y + 1
"""
    names = {"np": np}
    file = np.__file__.replace("__init__.py", "lib/tests/test_made.py")
    exec(compile(source, file, "exec"), names)
    check(names["f"], np.arange(3.0), OUTSIDE)


def a_value_in_a_try_block(x, i):
    y = x[i]
    try:
        total = float((x + 1).sum())
    except Exception:
        total = None
    return y, total


def a_print_in_a_try_block(x, i):
    y = np.take(x, i) + 1
    try:
        print(y)
    except IndexError:
        return "handled"
    return y


def a_write_and_a_try_block(x, i):
    x += 1
    x[i] = 0
    with contextlib.suppress(IndexError):
        if x.sum() > 3:
            x *= 2
    return x


def a_call_that_may_raise_in_a_try_block(x, i):
    y = x[i]
    z = x * 2
    try:
        w = x[i * 0]
    except IndexError:
        w = z + 1
    return y, z, w


def memory_that_numpy_reads_in_a_try_block(x, i):
    """Errors of code that NumPy asks for memory are dropped by it."""
    y = x[i]
    try:
        z = np.vectorize(lambda v: v + 1)(x)
    except (IndexError, TypeError):
        z = None
    return y, z


def handled_in_both(x, i):
    try:
        y = x[i]
    except IndexError:
        y = x[:1]
    try:
        z = float((y * x[i]).sum())
    except IndexError:
        z = 3.0
    return y, z


@pytest.mark.parametrize(
    ("plain", "backend"),
    [
        *(("never", "native"), ("auto", "eager")),
        pytest.param("never", "eager", marks=pytest.mark.thorough),
        pytest.param("auto", "native", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize(
    "f",
    [
        a_value_in_a_try_block, a_print_in_a_try_block, a_write_and_a_try_block,
        a_call_that_may_raise_in_a_try_block, memory_that_numpy_reads_in_a_try_block,
        handled_in_both,
    ],
)  # fmt: skip
def test_errors_come_from_before_the_try_block(f, plain, backend):
    """What stands before a `try` block is not handled by it."""
    for index in (OUTSIDE, np.array([0, 1]), OUTSIDE):
        seen = check(f, np.arange(2.0), index, backend=backend, plain=plain)
        fails = index is OUTSIDE and f is not handled_in_both
        assert isinstance(seen.first.error, IndexError) == fails


def at_the_end(x, i):
    y = x[i] * 2
    return y


@BACKENDS
@pytest.mark.parametrize("plain", ["never", "auto"])
def test_an_error_names_the_line_of_the_call(plain, backend):
    """No frame of the function is left when its last segment runs."""
    fast = np_compile.compile(at_the_end, backend=backend)
    with np_compile.config.patch(plain=plain):
        for _ in range(4):
            with pytest.raises(IndexError) as e:
                fast(np.arange(2.0), OUTSIDE)
            assert e.value.__notes__ == [
                f"  of a call recorded at {__file__}:{at_the_end.__code__.co_firstlineno + 1}"
                "  y = x[i] * 2"
            ]


@BACKENDS
@pytest.mark.parametrize("compile_in", ["call", "background"])
def test_tensors_without_gradients_have_numpys_words(compile_in, backend):
    """Also where the kernels are not there yet, and operators run."""
    fast = np_compile.compile(np_compile.wrap_numpy(at_the_end), backend=backend)
    with np_compile.config.patch(plain="never", compile_in=compile_in):
        for _ in range(3):
            with pytest.raises(IndexError) as e:
                fast(torch.arange(2.0), torch.tensor([0, 5]))
            assert str(e.value) == "index 5 is out of bounds for axis 0 with size 2"
            with pytest.raises(IndexError, match="index 5 is out of bounds") as e:
                fast(torch.arange(2.0, requires_grad=True), torch.tensor([0, 5]))
            assert "While executing" not in str(e.value)


CONTEXTS = {
    "put": lambda x: np.put(x, [1, 99], 5),
    "rows": lambda x: x[np.array([77])],
    "one": lambda x: x[len(x)],
    "singular": lambda x: np.linalg.inv(x.reshape(2, 2) * 0),
}


@BACKENDS
@pytest.mark.parametrize("name", CONTEXTS)
def test_the_context_of_an_exception_is_the_functions(name, backend):
    call = CONTEXTS[name]

    def f(x, handles):
        if handles:
            try:
                return {}["k"]
            except KeyError:
                return call(x)
        return call(x)

    fast = np_compile.compile(f, backend=backend)
    for handles in (False, True):
        with pytest.raises((IndexError, np.linalg.LinAlgError)) as raised:
            fast(np.arange(4.0), handles)
        context = raised.value.__context__
        assert type(context) is (KeyError if handles else type(None))
        assert not raised.value.__suppress_context__


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_arrays_among_the_indices_of_an_element_bring_the_error_themselves(backend):
    """The element lies in host memory, but its index asks for what was recorded before."""

    def f(w, a, at):
        w[at] = w
        try:
            a[at % 2, :, 0] = 0.5
        except ValueError:
            a[0] = 7

    def g(w, a, at):
        w[at] = w
        return a[at % 2, at % 1, 0]

    for h in (f, g):
        fast = np_compile.compile(h, backend=backend)
        for at in (1, 0, 1):
            w, a = np.ones(1), np.ones((2, 1, 2))
            if at:
                with pytest.raises(IndexError, match="index 1 is out of bounds"):
                    fast(w, a, np.array([at]))
            else:
                fast(w, a, np.array([at]))
