"""Code that the capture does not reach: it has NumPy's own names and works on real arrays, while
what it gets from captured code are stand-ins."""

import dataclasses
import functools
import operator

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.sparse
from numpy.random import random as _drawn

import np_compile
from np_compile.capture import frames
from np_compile.capture.arrays.array import Array

from ..support import check, compiled, data

# Each writes to the real array `r`, given the stand-in x (or an element of it).
WRITES = {
    "copyto": lambda r, x: np.copyto(r, x),
    "copyto where": lambda r, x: np.copyto(r, x, where=x > 0),
    "place": lambda r, x: np.place(r, x > 0, [7.0, 8.0]),
    "place values": lambda r, x: np.place(r, np.array([True, False, True, True]), x),
    "put": lambda r, x: np.put(r, [0, 2], x[:2]),
    "put indices": lambda r, x: np.put(r, (x > 0).astype(int), 5.0),
    "putmask": lambda r, x: np.putmask(r, x > 0, x * 2),
    "put_along_axis": lambda r, x: np.put_along_axis(r, np.array([2]), x[:1], 0),
    "fill_diagonal": lambda r, x: np.fill_diagonal(r.reshape(2, 2), x[0]),
    "add.at": lambda r, x: np.add.at(r, [0, 0, 3], x[:3]),
    "maximum.at": lambda r, x: np.maximum.at(r, [0, 0, 3], x[:3]),
    "shuffle": lambda r, x: np.random.default_rng(int(abs(x[0]))).shuffle(r),
    "ufunc": lambda r, x: np.sin(x, out=r),
    "ufunc positional": lambda r, x: np.multiply(x, 2, r),
    "ufunc where": lambda r, x: np.sin(x, out=r, where=x > 0),
    "two outputs": lambda r, x: np.modf(x, r, np.zeros(4)),
    "ufunc.accumulate": lambda r, x: np.add.accumulate(x, out=r),
    "ufunc.reduce": lambda r, x: np.add.reduce(x[:, None], axis=1, out=r),
    "ufunc.reduceat": lambda r, x: np.add.reduceat(x, [0, 1, 2, 3], out=r),
    "ufunc.outer": lambda r, x: np.multiply.outer(x[:2], x[2:], out=r.reshape(2, 2)),
    "sum": lambda r, x: np.sum(x[:, None], axis=1, out=r),
    "mean": lambda r, x: np.mean(x[:, None], axis=1, out=r),
    "median": lambda r, x: np.median(x[:, None], axis=1, out=r),
    "std": lambda r, x: np.std(x[:, None] * np.arange(3), axis=1, out=r),
    "percentile": lambda r, x: np.percentile(x[:, None], 50, axis=1, out=r),
    "nansum": lambda r, x: np.nansum(x[:, None], axis=1, out=r),
    "cumsum": lambda r, x: np.cumsum(x, out=r),
    "cumprod": lambda r, x: np.cumprod(x, out=r),
    "clip": lambda r, x: np.clip(x, 0, 1, out=r),
    "round": lambda r, x: np.round(x, 1, out=r),
    "dot": lambda r, x: np.dot(np.eye(4), x, out=r),
    "matmul": lambda r, x: np.matmul(np.eye(4), x, out=r),
    "einsum": lambda r, x: np.einsum("i->i", x, out=r),
    "take": lambda r, x: np.take(x, [0, 0, 1, 1], out=r, mode="clip"),
    "choose": lambda r, x: np.choose([0, 0, 0, 0], [x], out=r),
    "compress": lambda r, x: np.compress([1, 1, 1, 1], x, out=r),
    "concatenate": lambda r, x: np.concatenate([x[:2], x[2:]], out=r),
    "stack": lambda r, x: np.stack([x], out=r[None]),
    "nan_to_num": lambda r, x: np.nan_to_num(r + 0, copy=False, nan=x[0]),
    "outer": lambda r, x: np.outer(x[:2], x[2:], out=r.reshape(2, 2)),
    "fft": lambda r, x: np.fft.fft(x, out=np.zeros(4, complex)),
    "store": lambda r, x: operator.setitem(r, slice(1, None), x[1:]),
    "store element": lambda r, x: operator.setitem(r, 1, x.sum()),
    "store by mask": lambda r, x: operator.setitem(r, r == 0, x),
    "store at indices": lambda r, x: operator.setitem(r, [3, 2, 1, 0], x),
    "in place": lambda r, x: operator.iadd(r, x),
    "in place product": lambda r, x: operator.imul(r.reshape(2, 2), x.reshape(2, 2)),
    "flat": lambda r, x: operator.setitem(r.flat, slice(None), x),
    "view": lambda r, x: np.copyto(r[::-1], x),
}


class Holder:
    """`run` is a method: it makes an array with NumPy's own name."""

    def __init__(self, write):
        self.write = write

    def run(self, x):
        r = np.zeros(4)
        result = self.write(r, x)
        return r, None if result is None else np.array(result)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_a_real_array_is_done(name):
    write = WRITES[name]

    def f(x, holder):
        return holder.run(x * 2)

    check(f, data(4), Holder(write), alias=False)


class State:
    """Code reached through methods, properties, calls, operators and descriptors."""

    def __init__(self, x):
        self.x = x

    def copy(self):
        r = np.zeros(4)
        np.copyto(r, self.x)
        return r

    copied = property(copy)

    def __call__(self, k):
        r = np.zeros(4)
        np.multiply(self.x, k, out=r)
        return r

    def __add__(self, other):
        r = np.zeros(4)
        np.add(self.x, other, out=r)
        return State(r)

    def __getitem__(self, key):
        r = np.zeros(4)
        np.copyto(r, self.x)
        return r[key]

    def __setitem__(self, key, value):
        r = np.zeros(4)
        np.copyto(r, self.x)
        r[key] = value
        self.x = r

    def __len__(self):
        return int(np.add.reduce(self.x > 0))

    def __enter__(self):
        np.multiply(self.x, 2, out=self.x)
        return self

    def __exit__(self, *_):
        np.multiply(self.x, 0.5, out=self.x)

    def __iter__(self):
        r = np.zeros(4)
        np.copyto(r, self.x)
        return iter(r)

    @classmethod
    def of(cls, x):
        r = np.zeros(4)
        np.copyto(r, x)
        return cls(r)

    @staticmethod
    def doubled(x):
        r = np.zeros(4)
        np.multiply(x, 2, out=r)
        return r


TABLE = {"double": lambda x: np.multiply(x, 2, out=np.zeros(4)), "plus": [State.doubled]}
WAYS = {
    "method": lambda s: s.copy(),
    "property": lambda s: s.copied,
    "call": lambda s: s(3.0),
    "operator": lambda s: (s + 1.0).x,
    "item": lambda s: s[1:],
    "store": lambda s: (operator.setitem(s, slice(2), 7.0), s.x)[1],
    "length": len,
    "iteration": lambda s: [v * 2 for v in s],
    "class method": lambda s: State.of(s.x * 2).x,
    "static method": lambda s: s.doubled(s.x),
    "function in a dict": lambda s: TABLE["double"](s.x),
    "function in a list": lambda s: TABLE["plus"][0](s.x * 2),
}


@pytest.mark.parametrize("name", WAYS)
def test_writes_arrive_however_code_is_reached(name):
    way = WAYS[name]
    check(lambda s: way(s), State(data(4)))
    check(lambda x: way(State(x * 2)), data(4))


def test_a_block_of_with():
    def f(s):
        with s:
            y = s.x + 1
        return y, s.x

    check(f, State(data(4)))


def test_what_writes_gives_its_own_array_back():
    class Own:
        def run(self, x):
            r = np.zeros(4)
            return np.clip(x, 0, 1, out=r) is r, np.add(x, 1, out=r) is r

    check(lambda x, o: o.run(x * 2), data(4), Own())


def test_memory_that_numpy_is_shown_stays():
    """A scalar's memory belongs to the array that NumPy makes of it."""

    class Own:
        def of(self, x):
            return np.array(x, copy=None)

    def f(x, o):
        shown = o.of(x.sum())
        junk = [np.float64(k) for k in range(100)]
        whole = o.of(x * 2)
        return shown, type(whole.base), len(junk)

    fast, _ = compiled(f)
    shown, base, _ = fast(data(4), Own())
    assert shown == data(4).sum()
    assert base is not Array


# -- memory that code outside keeps --------------------------------------------------------------


def _csr(data, copy=False):
    return scipy.sparse.csr_matrix((data, [0, 1, 2, 3], [0, 2, 4]), shape=(2, 4), copy=copy)


def _first(pointer, x):
    pointer[0] = x
    return pointer


KEEPERS = {
    "masked array, written after": lambda y: (np.ma.array(y, mask=[0, 1, 0, 0], copy=False), y),
    "sparse matrix": lambda y: (_csr(y), y),
    "interpolation": lambda y: (scipy.interpolate.interp1d(np.arange(4.0), y, copy=False), y),
    "memoryview": lambda y: (memoryview(y), y),
    "buffer": lambda y: (y.data, y),
    "flat": lambda y: (y.flat, y),
    "nditer": lambda y: (np.nditer(y, op_flags=["readwrite"]), y),
    "record array": lambda y: (y.view(np.recarray), y),
    "matrix": lambda y: (np.matrix(y, copy=False), y),
    "frombuffer": lambda y: (np.frombuffer(y), y),
    "in a list": lambda y: ([np.asarray(y)[1:]], y),
}
LOOKS = {
    "masked array, written after": lambda m: m.sum(),
    "sparse matrix": lambda m: m @ np.ones(4),
    "interpolation": lambda f: f([0.0, 1.5]),
    "memoryview": lambda m: m[0],
    "buffer": lambda m: m[0],
    "flat": lambda it: (next(it), it[0]),
    "nditer": lambda it: it[0].copy(),
    "record array": lambda r: np.asarray(r),
    "matrix": lambda m: np.asarray(m),
    "frombuffer": lambda b: b * 1,
    "in a list": lambda views: views[0] * 1,
}
WRITERS = {
    "masked array, written after": lambda m: m.__setitem__(0, 100.0),
    "sparse matrix": lambda m: m.data.__setitem__(0, 100.0),
    "memoryview": lambda m: _first(m, 100.0),
    "buffer": lambda m: _first(m, 100.0),
    "flat": lambda it: _first(it, 100.0),
    "nditer": lambda it: it[0].__setitem__(..., 100.0),
    "matrix": lambda m: m.__setitem__((0, 0), 100.0),
    "frombuffer": lambda b: _first(b, 100.0),
    "in a list": lambda views: _first(views[0], 100.0),
}


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("name", KEEPERS)
def test_who_keeps_memory_sees_what_is_written(name, made):
    keep, look = KEEPERS[name], LOOKS[name]

    def f(x):
        y = x * 2 if made else x
        kept, y = keep(y)
        y[0] = 5.0
        y += 1
        return look(kept), y

    check(f, data(4), alias=False)


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_keeper_writes_comes_after_what_was_read_before(name):
    keep, write = KEEPERS[name], WRITERS[name]

    def f(x):
        y = x * 2
        kept, y = keep(y)
        before = y + 1
        write(kept)
        return before, y, y * 2

    check(f, data(4), alias=False)


def test_what_is_given_back_is_recorded_again():
    def f(x):
        y = np.sin(x)
        total = np.linalg.matrix_rank(np.asarray(scipy.linalg.toeplitz(y)))
        z = np.cos(y) * total
        return np.exp(z) + np.tan(z)

    checked = check(f, data(4))
    assert checked.compiles == 2


@pytest.mark.parametrize("plain", ["never", "always"])
def test_what_is_kept_in_a_loop_is_kept_after_it(plain):
    def kept(x):
        y, views = x * 2, []
        for k in range(12):
            y += k
            if k == 7:
                views.append(np.ma.array(y, copy=False))
        z = y + 1
        views[0][0] = 100.0
        y *= 2
        return z, y, views[0].sum()

    def shared(x):
        y = x * 2
        for k in range(12):
            if k == 7:
                words = np.asarray(y).view(np.int64)
            y += k
        z = y + 1
        words[0] = 0
        y *= 2
        return z, y, words[1:]

    def frozen(x):
        y = x * 2
        for k in range(12):
            y += 1
            if k == 7:
                y.flags.writeable = False
                y = y.copy()
        return y * 2

    for f in (kept, shared, frozen):
        check(f, data(4), alias=False, plain=plain)


KEPT = np.zeros(4)


class Generating:
    """A generator of a method is code that the capture does not reach."""

    def each(self, x):
        for k in range(2):
            np.copyto(KEPT, x * (k + 1))
            yield KEPT.sum()


def test_a_generator_writes_to_a_global_array():
    def f(x, o):
        return list(o.each(x))

    fast, _ = compiled(f)
    for k in range(3):
        x = data(4, seed=k)
        assert fast(x, Generating()) == f(x, Generating())
        KEPT[:] = 0
        fast(x, Generating())
        np.testing.assert_array_equal(KEPT, x * 2)


def test_a_function_outside_keeps_what_its_argument_is_a_view_of():
    def run(wrap):
        kept = []
        keep = np_compile.disable(lambda v: kept.append(v.base))

        def f(x):
            y = x * 2
            keep(y[1:])
            z = y + 1
            kept[0][:] = 100.0
            y *= 2
            return z, y

        return wrap(f)(data(4))

    np.testing.assert_array_equal(run(lambda f: compiled(f)[0]), run(lambda f: f))


def draws_by_name(x):
    return x + _drawn(3)


def test_a_function_of_a_cython_class_among_the_globals():
    np.random.seed(3)
    want = draws_by_name(np.ones(3))
    np.random.seed(3)
    np.testing.assert_array_equal(np_compile.compile(draws_by_name)(np.ones(3)), want)


def test_whose_code_a_file_is():
    own = np.__file__.rpartition("/")[0]
    for file, is_own in (
        (f"{own}/lib/_function_base_impl.py", True),
        (f"{own}/lib/tests/test_histograms.py", False),
        (f"{own}_financial/rates.py", False),
        (frames.__file__, True),
        (frames.__file__.replace("np_compile/capture", "np_compile_user/capture"), False),
        ("<np_compile.shim stack>", True),
        ("user.py", False),
    ):
        assert frames._is_own(file) == is_own, file


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: float


def sets_a_frozen_attribute(x, d):
    y = x * 2
    d.k = y
    return y


def test_variables_of_all_frames_of_a_traceback_can_be_looked_at():
    """Also of those that lead to a method of a class, with variables of a function around it."""
    fast, seen = compiled(sets_a_frozen_attribute)[0], []
    for _ in range(3):
        with pytest.raises(dataclasses.FrozenInstanceError) as caught:
            fast(data(3), Frozen(1.0))
        trace = caught.value.__traceback__
        while trace is not None:
            seen += trace.tb_frame.f_locals
            trace = trace.tb_next
    assert "FrozenInstanceError" in seen


def _called_as_it_was(x):
    return type(x) is np.ndarray, np.sin(x)


@functools.wraps(_called_as_it_was)
def _wrapper(x):
    return _wrapper.__wrapped__(x)


def test_a_function_that_a_wrapper_refers_to():
    check(lambda x: _wrapper(x * 2), np.arange(3.0))


@np_compile.disable
def _bits(y):
    return y.view("i8")


@pytest.mark.parametrize("within", ["a loop", "errstate"])
def test_numpy_runs_to_the_end_where_code_outside_looks_at_an_array_as_another_dtype(within):
    """Not only to the end of what it went on in NumPy for before: the other array is NumPy's own,
    and is read as it is."""

    def in_a_loop(x):
        y = x * 2
        for _ in range(2):
            v = _bits(y)
        y += 1
        seen = v.copy()
        y *= 2
        return seen, y, v

    def in_errstate(x):
        y = x * 2
        with np.errstate(divide="raise"):
            z = y + 1
            v = _bits(y)
            z += 1
        y += z
        seen = v.copy()
        y *= 2
        return seen, y, v

    check(in_a_loop if within == "a loop" else in_errstate, np.arange(3.0))
