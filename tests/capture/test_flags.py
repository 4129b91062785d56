"""`flags` and `setflags`: what is made read-only refuses writes, inside a function and outside."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from ..support import check, data

FREEZE = {
    "attribute": "z.flags.writeable = False",
    "item": "z.flags['WRITEABLE'] = False",
    "letter": "z.flags['W'] = False",
    "method": "z.setflags(write=False)",
    "position": "z.setflags(0)",
}
ARRAYS = {"argument": "x", "view": "x[1:]", "made": "x * 2", "view of what was made": "(x * 2)[1:]"}
WRITES = [
    "z[0] = 1", "z += 1", "z[...] = 2", "z[z > 1] = 0", "z.fill(1)", "z.sort()", "z.flat = 1",
    "np.add(z, 1, out=z)", "np.copyto(z, 1)", "np.put(z, [0], 1)", "np.cumsum(z, out=z)",
    "np.clip(z, 0, 1, out=z)", "z[::2][0] = 1", "z.T[0] = 1", "z.view()[0] = 1", "z[[0, 1]] *= 2",
    "np.mean(z[None], axis=0, out=z)", "np.nan_to_num(z, copy=False)", "z.real = 1",
]  # fmt: skip


def function(*lines):
    scope = {"np": np}
    exec("def f(x):\n" + "".join(f"    {line}\n" for line in lines), scope)
    return scope["f"]


@pytest.mark.parametrize("how", FREEZE)
@pytest.mark.parametrize("array", ARRAYS)
def test_a_frozen_array_reaches_the_caller_so(array, how):
    check(function(f"z = {ARRAYS[array]}", FREEZE[how], "return z"), np.arange(6.0))


@pytest.mark.parametrize("write", WRITES)
def test_later_writes_raise(write):
    lines = ("z.flags.writeable = False", write, "return z")
    check(function("z = x * 2", *lines), np.arange(6.0))
    check(function("z = x", *lines), np.arange(6.0))


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_a_read_only_argument_raise(write):
    x = np.arange(6.0)
    x.flags.writeable = False
    check(function("z = x", write, "return z"), x)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 3), (0,)])
def test_read_only_arrays_that_are_read_backwards(shape):
    x = np.arange(float(np.prod(shape))).reshape(shape)[::-1, ...]
    x.flags.writeable = False
    check(lambda x: (x[::1] + 1, x.T * 2), x)


def test_flags_are_read_and_set():
    def f(x):
        z = x * 2
        z.flags.writeable = False
        seen = [z.flags.writeable, z[1:].flags.writeable, z.copy().flags.writeable]
        z.flags.writeable = True
        z[0] = 7
        y = x.reshape(2, 3)
        return z, seen, y.flags.c_contiguous, y.T.flags.f_contiguous, y.flags["F"], z.flags == 3

    check(f, np.arange(6.0))


def test_a_branch_without_the_flag_writes_on():
    def f(x, freeze):
        z = x * 2
        if freeze:
            z.setflags(write=False)
        z[0] = 1
        return z

    for freeze in (False, True, False):
        check(f, np.arange(3.0), freeze)


def test_wrong_flags():
    check(function("x.flags.foo = 1"), np.arange(3.0))
    check(function("x.flags.c_contiguous = True"), np.arange(3.0))
    check(function("x.flags['FOO'] = 1"), np.arange(3.0))
    check(function("z = x[:2]", "x.setflags(write=False)", "z.base.flags.writeable = True"),
          np.arange(3.0))  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_the_imaginary_part_of_a_real_array_is_read_only(dtype):
    x = np.arange(6).astype(dtype)
    check(function("return x.imag, np.imag(x), (x * 2).imag"), x)
    for write in ("x.imag[0] = 1", "x.imag += 1", "np.imag(x)[x > 2] = 1", "x.imag.fill(1)"):
        check(function(write, "return x"), x)
        check(function(write, "return x"), x * 1j)


def test_what_a_function_outside_gives_may_be_read_only():
    @np_compile.disable
    def fixed(x):
        r = x * 2
        r.flags.writeable = False
        return r

    def element(y, x):
        y[0] = 1.0

    def whole(y, x):
        y += x

    def part(y, x):
        y[1:] = x[1:]

    for change in (element, whole, part):

        def f(x, change=change):
            y = fixed(x)
            try:
                change(y, x)
            except ValueError as e:
                return str(e), y + 1
            return y

        check(f, data(4))


@pytest.mark.parametrize("array", ["x", "x[1:]", "x * 2", "(x * 2)[1:]", "x[[0, 2]]", "x[x > 0]"])
@pytest.mark.parametrize("view", ["z", "z[1:]", "z[::-1]"])
def test_what_may_be_written_to_may_be_made_so(array, view):
    lines = (f"z = {array}", "q = z.sum() > 0", f"v = {view}", "v.setflags(write=True)", "v[0] = 9")
    check(function(*lines, "v.flags.writeable = True", "return z, v, bool(q)"), np.arange(6.0))


@pytest.mark.parametrize("array", ["x", "x * 2"])
def test_a_view_of_a_frozen_array_may_not(array):
    lines = (f"z = {array}", "v = z[1:]", "z.flags.writeable = False", "v.setflags(write=True)")
    check(function(*lines), np.arange(6.0)[:5])


def _given_a_shape_first(x):
    x.shape = (3, 4)
    y = x[1:]
    x.setflags(write=False)
    try:
        x[0] = 1
    except ValueError as e:
        y[0] = 2
        return x, str(e)


def _writeable_again(x):
    z = x * 2
    for a in (x, z):
        a.setflags(write=False)
        a.shape = (3, 4)
        a.setflags(write=True)
        a[0] = 3
    return x, z


def _a_view_alone(x):
    y = x[:6]
    y.shape = (2, 3)
    y.setflags(write=False)
    x[0] = 4
    return x, y, y[0]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize("f", [_given_a_shape_first, _writeable_again, _a_view_alone])
def test_flags_of_arrays_whose_shape_is_set(f):
    check(f, np.arange(12.0))


def test_views_that_are_there_stay_writeable():
    def f(x):
        z = x * 2
        y, turned, first = x[1:], x.reshape(3, 4).T[::-1], z[:1]
        total = turned.sum()
        x.setflags(write=False)
        z.flags.writeable = False
        y[0] = 2
        turned[0] += 3
        first[:] = 1
        return x, y, turned, z, first, total, x[2:]

    check(f, np.arange(12.0))


WHOLE = np.arange(12.0)
GIVEN = {
    "its own": np.arange(6.0), "a view": WHOLE[1:7], "backwards": WHOLE[::-1], "none": WHOLE[:0],
    "a buffer's": np.frombuffer(bytearray(48)), "spread": np.broadcast_to(WHOLE, (2, 12)),
}  # fmt: skip


@pytest.mark.parametrize("loops", ["whole", "recorded"])
@pytest.mark.parametrize("given", GIVEN)
def test_whose_the_memory_of_an_argument_is(given, loops):
    def f(x):
        first, total = x.flags.owndata, 0.0
        for i in range(len(x)):
            total = total + x[i]
        y = x * 2
        return (
            total,
            first,
            x.flags["O"],
            x.flags.num,
            x.T.flags.owndata,
            y.flags.owndata,
            y.flags.num,
        )

    with np_compile.config.patch(loops=loops, compile_in="call"):
        check(f, GIVEN[given])


def test_the_memory_of_bytes_stays_read_only():
    data = bytes(8)

    def f(x):
        a, b = np.frombuffer(data, "u1"), np.frombuffer(bytearray(8), "u1")
        said = []
        for view in (a, b, a[2:]):
            try:
                view.setflags(write=True)
                view[0] = 7
            except ValueError as e:
                said.append(str(e))
        return said, a, b, x + a[0], a.flags.writeable

    check(f, np.arange(3.0))
    assert data == bytes(8)


def test_a_dtype_is_set_while_numpy_runs():
    """A view of another dtype is NumPy's own array there, and the memory is that of the old one."""

    def f(x):
        memory = memoryview(x)
        rest = x[1:]
        x.dtype = np.int64
        x[1] = 5
        y = x * 2
        y.dtype = np.uint32
        with np.errstate(all="raise"):
            z = rest + 1
            z.dtype = np.int64
        return x, rest, y, z, memory.nbytes

    check(f, np.arange(4.0))


def row_of_itself(m):
    m[0] = m[0]


def row_of_a_part_of_itself(m):
    part = m[1:]
    part[0] = part[0]


@pytest.mark.parametrize("f", [row_of_itself, row_of_a_part_of_itself])
def test_what_is_read_only_refuses_its_own_part(f):
    """As it stands at the end of `m[0] += 1`, where it has been written to already."""
    fast = np_compile.compile(f, backend="eager")
    for _ in range(3):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            fast(np.broadcast_to(2.0, (2, 2)))
        fast(np.ones((2, 2)))
