"""What a compiled function does to, and with, its caller's arguments."""

from __future__ import annotations

import collections
import dataclasses
import threading

import numpy as np
import pytest

import np_compile

from ..support import check, compiled, data

# -- in-place changes arrive in the caller's arrays --------------------------------------------


def add_in_place(x):
    x += 1.5


def scale_half(x):
    x[: len(x) // 2] *= 2


def write_element(x):
    x[0] = 7


def write_all(x):
    x[...] = x * 2 + 1


def through_out(x):
    np.add(x, 1, out=x)


def through_method(x):
    x.sort()


def through_copyto(x):
    np.copyto(x, x[::-1].copy())


def twice(x):
    x += 1
    y = x * 2
    x -= y


WRITERS = [
    add_in_place, scale_half, write_element, write_all, through_out, through_method,
    through_copyto, twice,
]  # fmt: skip

LAYOUTS = {
    "contiguous": lambda: data(6, 4),
    "one axis": lambda: data(8),
    "transposed": lambda: data(6, 4).T,
    "every second row": lambda: data(12, 4)[::2],
    "every second column": lambda: data(6, 8)[:, ::2],
    "part": lambda: data(9, 9)[2:8, 1:5],
    "reversed": lambda: data(8)[::-1],
    "reversed rows": lambda: data(6, 4)[::-1],
    "reversed both with steps": lambda: data(12, 9)[::-2, ::-3],
    "Fortran": lambda: np.asfortranarray(data(6, 4)),
    "swapped axes of three": lambda: data(4, 3, 2).swapaxes(0, 2),
    "float32": lambda: data(8, dtype=np.float32),
    "complex": lambda: data(8, dtype=np.complex128),
    "real part": lambda: data(8, dtype=np.complex128).real,
    "diagonal": lambda: np.lib.stride_tricks.as_strided(data(5, 5), (5,), (48,)),
}


@pytest.mark.parametrize("writer", WRITERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_arrives_in_the_callers_array(layout, writer):
    check(writer, LAYOUTS[layout]())


@pytest.mark.parametrize("writer", WRITERS[:5], ids=lambda f: f.__name__)
def test_a_write_to_a_view_arrives_in_what_it_views(writer):
    whole = data(10, 6)
    check(lambda whole, part: writer(part), whole, whole[2:8, ::2])
    check(lambda whole, part: writer(part), whole, whole.T[::-1])


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "?"])
def test_writes_to_every_real_dtype(dtype):
    def f(x):
        x[1:3] = x[0]
        x[::2] = x[::-2] if x.size % 2 else x[::-1][::2]
        return x

    check(f, data(7, dtype=dtype))


def test_an_integer_array_keeps_its_dtype_in_place():
    def f(x):
        x += 3
        x //= 2
        x <<= 1
        x ^= 5
        return x

    check(f, data(9, dtype=np.int32))


def test_in_place_with_a_float_on_integers_raises_as_numpy():
    def f(x):
        x += 1
        x *= 1.5

    check(f, data(4, dtype=np.int64))


def test_overlapping_arguments():
    def f(a, b):
        a += b
        b *= 2
        return a.sum()

    x = data(10)
    check(f, x[:6], x[4:])
    check(f, x[::2], x[::2])
    check(f, x[:5], x[4::-1])
    check(f, x, x)


def test_arguments_apart_from_each_other_within_a_third():
    def f(whole, left, right):
        left *= 2
        whole += 1
        right -= whole[:2]
        return whole * 1, left + right

    x = data(10)
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)):
        arrays = [x, x[1:3], x[6:8]]
        names = ["whole", "left", "right"]
        check(f, kwargs={names[i]: arrays[i] for i in order}, new=False)
    check(
        lambda a, b, c, d: (b.__iadd__(a[:2]), c.__imul__(d[:2]), a, d),
        x[:6],
        x[1:3],
        x[4:6],
        x[8:],
    )


def test_elements_read_between_writes_through_other_arguments():
    def f(whole, left, right):
        whole += 1
        a = right[0]
        left *= 3
        b = whole[2]
        right[1] = -7.0
        return whole * 2, a, b, left[0]

    x = data(10)
    check(f, x, x[1:3], x[6:8], new=False)
    check(f, x[:9], x[2:4], x[5:9], new=False)


def test_arguments_that_overlap_by_half_an_element():
    def f(a, b):
        a += b
        b *= 2
        return a.sum()

    x = data(20)
    check(f, x[:8].view(complex), x[1:9].view(complex), new=False)


@pytest.mark.parametrize("plain", ["never", "always"])
def test_a_read_only_argument_within_another(plain):
    def f(a, b, i):
        for _ in range(12):
            a += b[: len(a)]
        a[0] = b[1]
        return a * 2, b[i]

    x = data(10)
    b = x[2:]
    b.flags.writeable = False
    for i in ([0, 1], [9]):
        check(f, x[:5], b, np.array(i), plain=plain)


def test_overlapping_assignment_within_one_array():
    def f(x):
        x[1:] = x[:-1]
        x[:-2] += x[2:]
        x[::-1] = x
        return x

    check(f, data(9))
    check(f, data(9, 3))


def test_the_same_array_twice_and_in_a_structure():
    def f(a, items):
        a += 1
        items[0] *= 2
        items.append(a)
        return items[0] is a, items

    x = data(4)
    check(f, x, [x, data(4, seed=1)])
    check(f, x, [x.copy()])


def test_arguments_that_begin_to_alias_after_the_first_call():
    def f(a, b):
        a += 1
        b *= 2
        return a + b

    fast, _ = compiled(f)
    for shared in (False, True, False, True):
        x = data(6)
        y = x if shared else data(6)
        want = x.copy()
        wy = want if shared else y.copy()
        expected = f(want, wy)
        got = fast(x, y)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(y, wy)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda f: f.__name__)
def test_a_read_only_argument_raises_and_stays(writer):
    x = data(8)
    x.flags.writeable = False
    check(writer, x)


def test_a_read_only_view_of_a_writeable_array():
    x = data(8)
    v = x[2:]
    v.flags.writeable = False

    def f(x, v):
        x[:4] = 0
        y = v * 2
        v[0] = 1
        return y

    check(f, x, v)


def test_a_broadcast_argument_is_read_only():
    check(add_in_place, np.broadcast_to(data(3), (4, 3)))
    check(lambda x: x * 2, np.broadcast_to(data(3), (4, 3)))


def test_an_error_leaves_what_the_plain_function_leaves():
    def f(x, y):
        x += 1
        y[2] = 5
        x[0] = y[99]
        x += 100

    check(f, data(4), data(4))


def test_zero_dimensional_arguments():
    def f(x):
        x += 2
        x[()] = x * 3
        x[...] -= 1
        return x, x + 1, x[()], x.item()

    check(f, np.array(1.5))
    check(f, np.array(3))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_arguments(shape):
    def f(x):
        x += 1
        return x.sum(), x * 2, x.sum(0), x.reshape(-1), x.T, x[:0]

    check(f, np.zeros(shape), new=False)


# -- results that are arguments, or views of them ----------------------------------------------

VIEWS = {
    "itself": lambda x: x,
    "slice": lambda x: x[1:4],
    "reversed": lambda x: x[::-1],
    "row": lambda x: x[2],
    "column": lambda x: x[:, 1],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "reshape that copies": lambda x: x.T.reshape(-1),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "newaxis": lambda x: x[:, None],
    "squeeze": lambda x: x.squeeze(),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "flip": lambda x: np.flip(x, 1),
    "rot90": lambda x: np.rot90(x),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "diagonal": lambda x: np.diagonal(x),
    "view": lambda x: x.view(),
    "asarray": lambda x: np.asarray(x),
    "asarray of the same dtype": lambda x: np.asarray(x, dtype=x.dtype),
    "asarray of another dtype": lambda x: np.asarray(x, dtype=np.float32),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x),
    "ascontiguousarray of a transpose": lambda x: np.ascontiguousarray(x.T),
    "astype": lambda x: x.astype(x.dtype),
    "astype without copy": lambda x: x.astype(x.dtype, copy=False),
    "array": lambda x: np.array(x),
    "array without copy": lambda x: np.array(x, copy=None),
    "copy": lambda x: x.copy(),
    "atleast_3d": lambda x: np.atleast_3d(x),
    "split": lambda x: np.split(x, 2),
    "rows": lambda x: list(x),
    "unpacked": lambda x: (lambda a, *rest: (a, rest))(*x),
    "real": lambda x: x.real,
    "fancy": lambda x: x[[0, 1]],
    "ellipsis": lambda x: x[...],
    "twice the same view": lambda x: (x[1:], x[1:]),
    "view of a view": lambda x: x[1:][::-1].T[:2],
    "view and copy": lambda x: (x[0], x[0].copy()),
    "a new array and its view": lambda x: (lambda y: (y, y[::2], y.T))(x + 1),
    "sliding window": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "in place and returned": lambda x: x.__iadd__(1),
    "where": lambda x: np.where(x > 0, x, 0),
    "clip": lambda x: x.clip(-1, 1),
    "tuple of nothing": lambda x: (),
    "nothing": lambda x: None,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_result_shares_memory_exactly_as_in_numpy(name):
    check(VIEWS[name], data(6, 4))


@pytest.mark.parametrize("name", VIEWS)
def test_a_result_of_a_strided_argument_shares_memory_exactly_as_in_numpy(name):
    check(VIEWS[name], data(8, 12)[::-1, 1::2][:6])


def test_writing_to_a_result_view_changes_the_argument():
    fast, _ = compiled(lambda x: x[::-1].T)
    for _ in range(2):
        x = data(3, 2)
        fast(x)[0, 0] = 99
        assert x[2, 0] == 99


# -- structures --------------------------------------------------------------------------------

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: np.ndarray
    n: int


class Model:
    """An object with arrays, a method, a property and a static method."""

    bias = 0.5

    def __init__(self, w):
        self.w = w
        self.steps = 0

    def forward(self, x):
        return np.tanh(x @ self.w + self.bias)

    @property
    def norm(self):
        return np.sqrt((self.w**2).sum())

    @staticmethod
    def double(x):
        return x * 2

    @classmethod
    def made(cls, w):
        return cls(w + 1)

    def update(self, x, rate=0.1):
        self.w -= rate * x.T @ self.forward(x)
        self.w = self.w / self.norm
        self.steps += 1
        self.last = x[0]
        return self

    def __call__(self, x):
        return self.forward(x)


def test_nested_tuples_and_lists():
    def f(nest):
        a, (b, [c, d]) = nest
        c += a
        return [a + b, (c, [d, d])], {"a": a, "s": a.sum()}

    check(f, (data(3), (data(3, seed=1), [data(3, seed=2), data(3, seed=3)])))


def test_lists_of_arrays_are_changed_in_place():
    def f(items):
        items[0] = items[0] + 1
        items[1] += 1
        items.append(items[0] * items[1])
        items.insert(0, None)
        del items[3]
        return items

    check(f, [data(3), data(3, seed=1), data(3, seed=2)])


def test_dicts_of_arrays_are_changed_in_place():
    def f(state):
        state["w"] = state["w"] * 2
        state["b"] -= 1
        state["new"] = state["w"].sum()
        del state["gone"]
        for k, v in state.items():
            if k == "b":
                v += 1
        return state

    check(f, {"w": data(3), "b": data(3, seed=1), "gone": data(1), "text": "t", "n": 3})


def test_a_dict_keeps_numpys_order_of_keys():
    def f(state):
        state["z"] = state.pop("a") + 1
        state["a"] = state["z"] * 2
        return list(state)

    check(f, {"a": data(3), "b": data(3)})


def test_namedtuples():
    def f(p):
        return Point(p.x + 1, p.y), p._replace(x=p.y * 2), p

    check(f, Point(data(3), data(3, seed=1)))


def test_dataclasses():
    def f(b, dt):
        b.velocity -= b.position * dt
        b.position = b.position + b.velocity * dt
        b.mass *= 2
        b.tags.append("moved")
        return b, Body(b.position * 2, b.velocity)

    check(f, Body(data(3), data(3, seed=1)), 0.25)


def test_frozen_dataclasses():
    def f(b):
        b.a[0] = 5
        return dataclasses.replace(b, a=b.a * 2), b.a.sum()

    check(f, Frozen(data(3), 2))


def test_nested_objects():
    def f(world):
        for body in world["bodies"]:
            body.position += world["drift"]
        world["bodies"].reverse()
        return world["bodies"][0].position

    check(f, {"bodies": [Body(data(2, seed=i), data(2)) for i in range(3)], "drift": data(2)})


def test_one_object_in_two_places_stays_one_object():
    def f(items):
        items[0].position += 1
        return items[0] is items[1], items[1].position

    b = Body(data(2), data(2))
    check(f, [b, b])


def test_methods_and_properties():
    def f(m, x):
        y = m.forward(x) + m(x) + m.norm
        m.update(x, rate=0.5)
        return y, Model.double(y), m.double(y), m.last

    check(f, Model(data(3, 3)), data(5, 3, seed=1))


def test_an_object_made_inside_and_returned():
    def f(w):
        m = Model.made(w)
        m.update(w)
        return m

    check(f, data(3, 3))


def test_a_compiled_method():
    class Layer:
        def __init__(self, w):
            self.w = w

        @np_compile.compile(backend="eager")
        def forward(self, x):
            self.calls = getattr(self, "calls", 0) + 1
            return x @ self.w

    layer = Layer(data(3, 3))
    x = data(2, 3)
    for n in (1, 2):
        np.testing.assert_allclose(layer.forward(x), x @ layer.w)
        assert layer.calls == n


def test_a_compiled_bound_method():
    m = Model(data(3, 3))
    fast = np_compile.compile(m.update, backend="eager")
    other = Model(data(3, 3))
    x = data(4, 3)
    assert fast(x) is m
    other.update(x)
    np.testing.assert_allclose(m.w, other.w)
    assert m.steps == 1
    assert type(m.w) is np.ndarray
    assert type(m.last) is np.ndarray


def test_an_object_with_slots():
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    def f(s):
        s.a += 1
        s.b = s.a * 2
        return s.b.sum()

    plain, fast = Slotted(data(3)), Slotted(data(3))
    want = f(plain)
    got = compiled(f)[0](fast)
    assert got == want
    assert type(got) is type(want)
    np.testing.assert_array_equal(fast.a, plain.a)
    np.testing.assert_array_equal(fast.b, plain.b)
    assert type(fast.b) is np.ndarray


def test_sets_and_deques_and_object_keys():
    def f(queue, seen):
        queue.append(queue[0] + 1)
        queue.popleft()
        seen.add(3)
        return len(queue), queue[-1]

    a = data(3)
    plain, fast = collections.deque([a.copy()]), collections.deque([a.copy()])
    want = f(plain, s1 := {1})
    got = compiled(f)[0](fast, s2 := {1})
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])
    assert s1 == s2
    assert type(fast[-1]) is np.ndarray
    np.testing.assert_array_equal(fast[-1], plain[-1])


def test_a_set_keeps_its_order():
    pairs = [(1, 0), (2, 1), (0, 0), (1, 1), (2, 0), (0, 1)]

    def f(x):
        seen = set()
        for pair in pairs:
            seen.add(pair)
        return seen, {"also": seen}, x + 1

    want = list(f(data(3))[0])
    again: set = set()
    again.update({pair for pair in want})  # noqa: C416  (it is what is tested)
    assert list(again) != want  # one that is filled anew has another
    fast, _ = compiled(f)
    for _ in range(3):
        seen, others, _ = fast(data(3))
        assert list(seen) == want
        assert others["also"] is seen


# -- ways to pass ------------------------------------------------------------------------------


def test_keyword_arguments_and_defaults():
    def f(x, y=2.0, *, scale=3, bias=None):
        bias = np.zeros_like(x) if bias is None else bias
        return x * y + scale + bias

    check(f, data(3))
    check(f, data(3), 4.0)
    check(f, data(3), kwargs={"scale": 2, "y": 1.0})
    check(f, kwargs={"bias": data(3, seed=1), "x": data(3)})


def test_wrong_arguments_raise_as_python_does():
    def f(x, y=1):
        return x + y

    check(f)
    check(f, data(3), kwargs={"z": 1})
    check(f, data(3), 1, 2)


def test_star_arguments():
    def f(first, *rest, **named):
        total = first
        for r in rest:
            total = total + r
        for k in sorted(named):
            total = total * named[k]
        return total, rest, named

    check(f, data(3), data(3, seed=1), 2.0, kwargs={"a": data(3, seed=2), "b": 3})


def test_positional_only_arguments():
    def f(x, /, y):
        return x - y

    check(f, data(3), kwargs={"y": 1})
    check(f, kwargs={"x": data(3), "y": 1})


def test_a_mutable_default_is_one_object_over_calls():
    def make():
        def f(x, seen=[]):  # noqa: B006
            seen.append(float(x.sum()))
            return list(seen)

        return f

    check(None, data(3), make=make)


def test_an_array_as_a_default():
    def make():
        table = np.arange(3.0)

        def f(x, t=table):
            t += 1
            return x * t

        return f

    check(None, data(3), make=make, alias=False)


def test_argument_names_of_the_original_stay():
    def f(x, y=1):
        """Text."""
        return x

    fast = np_compile.compile(f, backend="eager")
    assert fast.__wrapped__ is f
    assert fast.__name__ == "f"
    assert fast.__doc__ == "Text."


def test_ints_floats_strings_none_as_arguments():
    def f(x, n, p, mode, flag, nothing, z):
        if mode == "double" and flag and nothing is None:
            x = x * 2
        return x * n + p + z, n + 1, p * 2, mode, isinstance(n, int)

    check(f, data(3), 3, 0.5, "double", True, None, 1j)


def test_numpy_scalars_as_arguments():
    def f(x, a, b, c):
        return x * a, a + b, a + 1, b * 2.5, c & True, type(a) is np.float32

    check(f, data(3), np.float32(1.5), np.int16(3), np.bool_(True))


def test_dtypes_and_types_as_arguments():
    def f(x, dtype, kind):
        return x.astype(dtype), np.zeros(3, kind), np.dtype(kind) == dtype

    check(f, data(3), np.dtype("f4"), np.float32)


def test_an_array_is_the_argument_it_was():
    def f(x, y, items):
        return x is y, x is items[0], items[0] is items[1], y is items[1]

    x = data(2)
    check(f, x, x, [x, data(2)])


def test_shapes_and_dtypes_change_from_call_to_call():
    def f(x):
        y = x * 2
        y[0] = 1
        return y.sum(), y

    fast, _ = compiled(f)
    for shape in [(3,), (4, 2), (1,), (2, 2, 2), (3,)]:
        for dtype in [np.float64, np.int32, np.complex64, np.uint8, np.float16]:
            x = data(*shape, dtype=dtype)
            want = f(x)
            got = fast(x)
            assert type(got[0]) is type(want[0])
            assert got[1].dtype == want[1].dtype
            np.testing.assert_allclose(got[1], want[1], rtol=1e-3)


def test_threads_call_one_compiled_function_at_once():
    def f(x, n):
        y = x.copy()
        for i in range(20):
            y[i % 3 :] += np.sin(y[: len(y) - i % 3]) * n
            if y.sum() > 1e9:
                break
        return y

    fast, _ = compiled(f)
    inputs = [(data(20 + i % 3, seed=i), i / 50) for i in range(12)]
    wanted = [f(*a) for a in inputs]
    found: list = [None] * len(inputs)

    def work(k):
        for _ in range(3):
            found[k] = fast(*inputs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize(
    "function", [np.sum, np.zeros, np.fromiter, np.stack, np.array, np.exp, np.indices]
)
@pytest.mark.filterwarnings("ignore:Calling np.sum:DeprecationWarning")
def test_an_iterator_is_used_up_as_far_as_numpy_does_it(function):
    def f(x, items):
        try:
            made = function(items, float) if function is np.fromiter else function(items)
        except TypeError:
            made = "TypeError"
        if made is items or (type(made) is np.ndarray and made.dtype == object):
            made = "the iterator itself"
        return made, list(items), x * 2

    fast, _ = compiled(f)
    for _ in range(3):
        got, want = fast(data(3), iter([1, 2])), f(data(3), iter([1, 2]))
        assert repr(got[0]) == repr(want[0])
        assert got[1] == want[1]


def test_an_attribute_in_a_slot_is_deleted():
    class Slotted:
        __slots__ = ("x", "y")

    def f(o):
        o.x = o.x * 2
        del o.y
        return o.x

    for call in (f, compiled(f)[0]):
        o = Slotted()
        o.x, o.y = data(3), data(3, seed=1)
        np.testing.assert_array_equal(call(o), data(3) * 2)
        assert not hasattr(o, "y")
        assert type(o.x) is np.ndarray


@pytest.mark.parametrize(
    "made",
    [
        iter, reversed, memoryview, lambda x: x.flat, lambda x: (e for e in x),
        lambda x: (v[0] for v in [x]), lambda x: map(abs, x),
        lambda x: zip(iter(x), [1], strict=False), np.nditer,
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", [lambda g: g, lambda g: [g], lambda g: {"g": (g, 1)}])
def test_what_goes_through_an_array_by_itself_sees_it_as_it_is(made, within) -> None:
    def f(x, g):
        x += 1
        g = g["g"][0] if isinstance(g, dict) else g[0] if isinstance(g, list) else g
        return list(g) if isinstance(g, memoryview) else repr(next(g))

    x, y = np.arange(3.0), np.arange(3.0)
    assert np_compile.compile(f, backend="eager")(x, within(made(x))) == f(y, within(made(y)))
    assert x.tolist() == y.tolist()


def test_iterators_of_numbers_are_compiled() -> None:
    def f(x, g):
        return x * next(g)

    fast = np_compile.compile(f, backend="eager")
    assert fast(np.arange(3.0), iter([2, 3])).tolist() == [0, 2, 4]
    assert fast(np.arange(3.0), (k for k in (4, 5))).tolist() == [0, 4, 8]
    assert np_compile.recompiles(fast)


def test_a_generator_that_holds_itself():
    def generate():
        me = yield 0
        yield 1 + (me is None)
        yield 2

    def begun():
        g = generate()
        next(g)
        g.send(g)
        return g

    def f(x, g):
        return np.sin(x) + next(g)

    x = np.arange(3.0)
    np.testing.assert_array_equal(np_compile.compile(f, backend="eager")(x, begun()), f(x, begun()))
