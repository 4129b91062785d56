"""Where a function may store an array: after the call the real one is there, and nothing else."""

import collections
import contextvars
import dataclasses
import functools
import gc
import queue
import threading
import types
import unittest.mock
import weakref

import numpy as np
import pytest

import np_compile
from np_compile.capture.arrays.array import Array
from np_compile.capture.exchange import escape

from ..support import check, compiled, data


class Slotted:
    __slots__ = ("n", "x")


@dataclasses.dataclass(slots=True, frozen=True)
class Frozen:
    x: object = None


class Wrapping:
    def __setattr__(self, name, value):
        object.__setattr__(self, "_" + name, [value])


class Plain:
    total = None


class Doubled(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, (value, value))


class UserDict(collections.UserDict):
    pass


def _remember(x, seen=[]):  # noqa: B006 - a default that changes is what is tested
    seen.append(x)


def _lazily(y):
    held = [y]
    yield y
    yield from held


@functools.cache
def _cached(key):
    return Frozen(key)


LOCAL, CONTEXT = threading.local(), contextvars.ContextVar("context")


def _set(name):
    return lambda holder, y: setattr(holder, name, y)


def _put(key):
    return lambda holder, y: holder.__setitem__(key, y)


def _replaced(holder, y):
    holder.x = y
    holder.n = [(y, {"k": y})]


# name: (made once, what the function does with it, what it holds afterwards)
HOLDERS = {
    "object": (Plain, _set("x"), lambda h: h.x),
    "slots": (Slotted, _replaced, lambda h: (h.x, h.n)),
    "nested": (Plain, _replaced, lambda h: (h.x, h.n)),
    "own __setattr__": (Wrapping, _set("x"), lambda h: h._x),
    "namespace": (types.SimpleNamespace, _set("x"), lambda h: h.x),
    "class": (lambda: Plain, _set("total"), lambda h: h.total),
    "list": (list, lambda h, y: h.append(y), lambda h: h[-1]),
    "dict": (dict, _put("k"), lambda h: h["k"]),
    "key": (dict, lambda h, y: h.__setitem__(y.sum(), 1), lambda h: list(h)[-1]),
    "set": (set, lambda h, y: h.add(y.max()), lambda h: max(h)),
    "own __setitem__": (Doubled, _put("k"), lambda h: h["k"]),
    "UserDict": (UserDict, _put("k"), lambda h: h.data["k"]),
    "deque": (collections.deque, lambda h, y: h.append((y, 1)), lambda h: h[-1]),
    "defaultdict": (
        lambda: collections.defaultdict(list), lambda h, y: h["k"].append(y), lambda h: h["k"][-1],
    ),
    "OrderedDict": (collections.OrderedDict, _put("k"), lambda h: h["k"]),
    "ChainMap": (collections.ChainMap, _put("k"), lambda h: h["k"]),
    "Queue": (queue.Queue, lambda h, y: h.put(y), lambda h: h.get()),
    "SimpleQueue": (queue.SimpleQueue, lambda h, y: h.put(y), lambda h: h.get()),
    "array of objects": (lambda: np.empty(2, object), _put(1), lambda h: h[1]),
    "thread's": (lambda: LOCAL, _set("x"), lambda h: h.x),
    "context": (lambda: CONTEXT, lambda h, y: h.set(y), lambda h: h.get()),
    "default": (
        lambda: _remember, lambda h, y: h(y), lambda h: h.__defaults__[0][-1],
    ),
    "cache": (lambda: _cached, lambda h, y: h(y.sum()), lambda h: None),
    "partial": (
        Plain, lambda h, y: setattr(h, "f", functools.partial(max, y, key=y)),
        lambda h: (h.f.args, h.f.keywords),
    ),
    "method": (Plain, lambda h, y: setattr(h, "f", y.sum), lambda h: (h.f.__self__, h.f())),
    "closure": (Plain, lambda h, y: setattr(h, "f", lambda: y), lambda h: h.f()),
    "defaults": (
        Plain, lambda h, y: setattr(h, "f", lambda v=y, *, w=y: [v, w]), lambda h: h.f(),
    ),
    "generator": (Plain, lambda h, y: setattr(h, "f", _lazily(y)), lambda h: next(h.f)),
    "frozen": (Plain, lambda h, y: setattr(h, "f", Frozen((y, [y]))), lambda h: h.f.x),
}  # fmt: skip


def _leaves(x):
    if isinstance(x, (tuple, list)):
        return [leaf for v in x for leaf in _leaves(v)]
    return _leaves(list(x.values())) if isinstance(x, dict) else [x]


@pytest.fixture
def few_objects():
    """What there is before a test is no matter of a look through all objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def _without_heap(monkeypatch):
    def looked(_capture):
        raise AssertionError("a look through all objects of the process")

    monkeypatch.setattr(escape, "_stand_ins", looked)


# Each comes from one place each time, and from the other one with `pytest -m thorough`.
@pytest.mark.parametrize(
    ("name", "how"),
    [
        (name, how)
        if k % 2 == (how == "global")
        else pytest.param(name, how, marks=pytest.mark.thorough)
        for k, name in enumerate(HOLDERS)
        for how in ("argument", "global")
    ],
)
def test_a_stored_array_is_real_after_the_call(name, how, monkeypatch, few_objects):
    make, store, look = HOLDERS[name]
    _without_heap(monkeypatch)
    holder = make()

    if how == "argument":

        def f(x, holder):
            y = x * 2
            store(holder, y)
            return y + 1

        args = (holder,)
    else:

        def f(x):
            y = x * 2
            store(holder, y)
            return y + 1

        args = ()
    fast, _ = compiled(f)
    before = _stand_in_count()
    for k in range(3):
        x = data(4, seed=k)
        np.testing.assert_array_equal(fast(x, *args), x * 2 + 1)
        for leaf in _leaves(look(holder)):
            assert type(leaf) in (np.ndarray, np.float64, int, type(None)), type(leaf)
            if type(leaf) is np.ndarray:
                np.testing.assert_array_equal(leaf, x * 2)
    assert _stand_in_count() <= before


def _stand_in_count():
    gc.collect()
    return sum(type(x) is Array for x in gc.get_referrers(Array))  # each refers to its class


def test_one_array_in_several_places_stays_one():
    def f(x, o, names, queue):
        y = x * 2
        o.x = names["y"] = y
        queue.append((y, y[1:]))
        return y

    o, names, line = Plain(), {}, collections.deque()
    y = compiled(f)[0](data(4), o, names, line)
    assert o.x is y
    assert names["y"] is y
    assert line[0][0] is y
    assert line[0][1].base is y


def test_an_exception_leaves_no_stand_ins(monkeypatch):
    _without_heap(monkeypatch)

    class Stopped(Exception):
        pass

    def f(x, o):
        y = x * 2
        o.x = y
        raise Stopped(y)

    fast, _ = compiled(f)
    before = _stand_in_count()
    for k in range(3):
        o, x = Plain(), data(3, seed=k)
        with pytest.raises(Stopped) as caught:
            fast(x, o)
        np.testing.assert_array_equal(caught.value.args[0], x * 2)
        np.testing.assert_array_equal(o.x, x * 2)
        frame = caught.traceback[-1].frame.f_locals
        assert type(frame["y"]) is np.ndarray
        del caught, frame
    assert _stand_in_count() <= before


def test_what_only_a_library_knows_is_found_among_all_objects():
    class Owner:
        pass

    found = []

    def f(x, owner):
        weakref.finalize(owner, found.append, x * 2)
        return x

    x, owner = data(3), Owner()
    compiled(f)[0](x, owner)
    del owner
    assert [type(v) for v in found] == [np.ndarray]
    np.testing.assert_array_equal(found[0], x * 2)


def test_names_of_numpy_and_of_helpers_are_themselves_afterwards():
    def helper(x):
        return x

    def f(o):
        o.xp, o.f, o.solve, o.linalg, o.helper = np, np.sin, np.linalg.solve, np.linalg, helper
        o.rng, o.r, o.inner = np.random.default_rng(0), range(3), {"xp": [np]}
        return np.cos, [helper]

    for o in (Plain(), types.SimpleNamespace()):
        cos, (kept,) = compiled(f)[0](o)
        assert (o.xp, o.f, o.solve, o.linalg) == (np, np.sin, np.linalg.solve, np.linalg)
        assert cos is np.cos
        assert kept is helper
        assert o.helper is helper
        assert type(o.rng) is np.random.Generator
        assert type(o.r) is range
        assert o.inner["xp"][0] is np


def test_what_is_put_into_modules_is_itself_afterwards(monkeypatch):
    mine = types.ModuleType("of_the_user")
    mine.helper = lambda x: x + 1
    monkeypatch.setitem(globals(), "mine", mine)
    norm, total = np.linalg.norm, np.sum

    def f(x):
        kept, np.linalg.norm = np.linalg.norm, max
        np.linalg.norm = kept
        mine.f, mine.xp = np.sin, np
        del mine.helper
        with unittest.mock.patch.object(np, "sum", len):
            inside = np.sum(x)
        with unittest.mock.patch.object(mine, "f", np.cos):
            cos = mine.f(x)
        return inside, np.sum(x), cos, vars(np)["prod"](x), vars(mine)["f"](x)

    try:
        got = compiled(f)[0](data(3))
        assert (np.linalg.norm, np.sum) == (norm, total)
        assert np.linalg.norm is norm
        assert np.sum is total
    finally:
        np.linalg.norm, np.sum = norm, total
    x = data(3)
    assert got[0] == 3
    for value, expected in zip(got[1:], (x.sum(), np.cos(x), x.prod(), np.sin(x)), strict=True):
        np.testing.assert_allclose(value, expected)
    assert mine.f is np.sin
    assert mine.xp is np
    assert not hasattr(mine, "helper")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__delitem__("n"),
        lambda d: d.popitem(),
        lambda d: d.clear(),
        lambda d: d.update(z=d.pop("x")),
        lambda d: d.update(x=d.pop("x")),
        lambda d: (d.pop("x"), d.pop("n")),
    ],
)
def test_keys_and_attributes_that_are_deleted(change):
    def of_dict(d):
        y = d["x"] * 2
        change(d)
        return y

    def of_object(o):
        y = o.x * 2
        change(vars(o))
        return y

    for names in ({"x": data(3), "n": 1}, {"n": 1, "x": data(3)}, {"x": data(3), "n": data(2)}):
        check(of_dict, dict(names))
        o = Plain()
        o.__dict__.update(names)
        check(of_object, o)


def test_deleted_attribute():
    def f(o):
        del o.n
        return o.x * 2

    o = Plain()
    o.x, o.n = data(3), 1
    check(f, o)


def test_a_call_does_not_look_at_other_objects_of_the_process(monkeypatch):
    def never(*_):
        raise AssertionError("a look through all objects of the process")

    monkeypatch.setattr(gc, "get_referrers", never)
    places = {}

    def f(x, o, names):
        o.x = x * 2
        names.append(x * 3)
        places["x"] = x * 4
        return x

    with np_compile.config.patch(plain="never"):
        fast = np_compile.compile(f, backend="native")
        for _ in range(3):
            o, names = Plain(), []
            fast(data(3), o, names)
            assert {type(v) for v in (o.x, names[0], places["x"])} == {np.ndarray}


# -- functions that are made in a call and outlive it ---------------------------------------------

SCALE = 1


def _adder(by):
    def add(x):
        return np.asarray(x) * SCALE + by

    return add


def _counter(start):
    n = start

    def up():
        nonlocal n
        n += SCALE
        return n

    def reset():
        nonlocal n
        n = start
        return up()

    return {"up": up, "others": [reset]}


def _recursive(by):
    def factorial(n):
        return SCALE if n <= 0 else n * factorial(n - 1) + by

    return factorial


def _partial(by):
    return functools.partial(lambda a, b: a * SCALE + b, by)


def _with_an_array(by):
    w = np.arange(3.0) * by
    return lambda x: w * SCALE + x


def _with_defaults(by):
    helper = _adder(by)
    return lambda x, f=helper, *, g=helper: f(x) + g(x) * SCALE


def _remembering(f):
    known = {}

    @functools.wraps(f)
    def inner(*args):
        if args not in known:
            known[args] = f(*args)
        return known[args]

    inner.known = known
    return inner


@pytest.mark.parametrize(
    "make", [_adder, _recursive, _partial, _with_an_array, _with_defaults], ids=lambda f: f.__name__
)
def test_a_function_that_outlives_its_call_sees_the_names_of_its_module(make, monkeypatch):
    plain, fast = make(2), compiled(make)[0](2)
    for scale in (1, 3, 10):
        monkeypatch.setitem(globals(), "SCALE", scale)
        want, got = plain(4), fast(4)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)


def test_functions_that_outlive_their_call_share_their_variables(monkeypatch):
    made = compiled(_counter)[0](3)
    assert [made["up"](), made["others"][0](), made["up"]()] == [4, 4, 5]
    monkeypatch.setitem(globals(), "SCALE", 10)
    assert [made["up"](), made["others"][0](), made["up"]()] == [15, 13, 23]


def test_a_decorator_that_is_compiled():
    remembering = compiled(_remembering)[0]

    @remembering
    def paths(i, j):
        return 1 if i == 0 or j == 0 else paths(i - 1, j) + paths(i, j - 1) * later

    later = 1
    assert paths(3, 3) == 20
    assert len(paths.known) == 15
    assert paths.__name__ == "paths"
    assert paths.__wrapped__(1, 1) == 2


def test_a_function_that_is_stored_outlives_its_call(monkeypatch):
    class Holder:
        pass

    def f(holder, x):
        holder.function = _adder(2)
        f.last = lambda v: v + SCALE
        return x * 2

    holder = Holder()
    compiled(f)[0](holder, data(3))
    monkeypatch.setitem(globals(), "SCALE", 10)
    assert (holder.function(1), f.last(1)) == (12, 11)
    assert holder.function.__globals__ is globals()


def _class_of(by):
    class Base:
        def value(self):
            return SCALE

    class Scaled(Base):
        def __init__(self, x):
            self.x = x * SCALE

        @property
        def twice(self):
            return 2 * self.x + SCALE

        @classmethod
        def of(cls, x):
            return cls(x + SCALE)

        @staticmethod
        def moved(x):
            return x + by * SCALE

        def value(self):
            return super().value() + self.moved(self.x)

    return Scaled, Scaled(by)


def test_a_class_that_outlives_the_call_in_which_it_was_made(monkeypatch):
    def values(kind, old):
        new = kind.of(5)
        return new.twice, new.value(), kind.moved(1), old.twice, old.value(), type(old) is kind

    plain, fast = _class_of(2), compiled(_class_of)[0](2)
    for scale in (1, 3, 10):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert values(*fast) == values(*plain)


def test_a_function_that_outlives_its_call_has_the_cells_of_what_is_around():
    state = 5

    def make():
        nonlocal state
        state += 1
        return lambda: state

    fast, _ = compiled(make)
    first = fast()
    second = fast()
    assert (first(), second(), state) == (7, 7, 7)
    state = 9
    assert (first(), second()) == (9, 9)
