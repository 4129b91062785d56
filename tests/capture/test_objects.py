"""Programs with methods and objects: code reached through objects is captured as helpers are."""

import dataclasses
import functools
import inspect
import threading
from collections import deque

import numpy as np
import pytest
import torch

import np_compile
from np_compile.capture.names.entrances import own_code
from np_compile.capture.names.substitute import _Copy

from ..support import check, compiled, data


class Field:
    """A simulation as people write them; `np` is NumPy's own in its methods."""

    count = 0

    def __init__(self, u):
        self.u = u
        self.t = 0.0
        Field.count += 1

    @property
    def mean(self):
        return np.mean(self.u)

    @mean.setter
    def mean(self, value):
        self.u = self.u - np.mean(self.u) + value

    @functools.cached_property
    def norm(self):
        return np.sqrt(np.sum(self.u**2))

    def laplacian(self):
        lap = np.zeros_like(self.u)
        lap[1:-1] = self.u[:-2] - 2 * self.u[1:-1] + self.u[2:]
        return lap

    def step(self, dt, *, substeps=1, **unused):
        for _ in range(substeps):
            self.u += dt * self.laplacian()
            self.t += dt
        return self

    def total(self):
        return self.u.sum()

    @classmethod
    def of(cls, x):
        return cls(np.sin(x))

    @staticmethod
    def smoothed(x):
        return np.convolve(x, np.ones(3) / 3, mode="same")

    def __matmul__(self, other):
        return np.dot(self.u, other.u)

    def __call__(self, x):
        return np.interp(x, np.arange(len(self.u)), self.u)


class Heated(Field):
    def step(self, dt, **options):
        super().step(dt, **options)
        self.u[0] = np.maximum(self.u[0], 1.0)
        return self


@dataclasses.dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0

    def kick(self, force, dt):
        self.velocity += dt * np.asarray(force) / self.mass

    def drift(self, dt):
        self.position += dt * self.velocity

    def energy(self):
        return 0.5 * self.mass * np.sum(self.velocity**2)


# name: (function, arguments). Each is one segment, methods included.
ONE_SEGMENT = {
    "steps": (lambda f: f.step(0.1, substeps=4).u * 2, lambda: (Field(data(8)),)),
    "inherited": (lambda f: f.step(0.1, substeps=4).u, lambda: (Heated(data(8)),)),
    "property": (lambda f: f.mean + f.norm + f.norm, lambda: (Field(data(8)),)),
    "made inside": (lambda x: (Field.of(x).step(0.1), Heated(x * 2).step(0.2)), lambda: (data(8),)),
    "static": (lambda f: f.smoothed(f.u * 2) + Field.smoothed(f.u), lambda: (Field(data(8)),)),
    "operators": (lambda f, g: f @ g + f(2.5), lambda: (Field(data(8)), Heated(data(8, seed=1)))),
    "bound method": (lambda g, x: x * g(), lambda: (Field(data(8)).total, data(8))),
    "callback": (lambda x, g: g(x) + 1, lambda: (data(8), Field.smoothed)),
    "callback in a dict": (lambda x, d: d["g"](x) + 1, lambda: (data(8), {"g": Field.smoothed})),
    "list of objects": (
        lambda fields: [f.step(0.1).total() for f in fields],
        lambda: ([Field(data(8)), Heated(data(8, seed=1))],),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_SEGMENT)
def test_methods_are_captured(name):
    f, make = ONE_SEGMENT[name]
    checked = check(f, *make())
    assert checked.compiles == 1


def test_setters_and_class_attributes():
    def f(x):
        field = Field(x * 2)
        field.mean = 3.0
        return field, Field.count >= 0

    check(f, data(8))


def test_bodies():
    def f(bodies, dt):
        for _ in range(6):
            for i, a in enumerate(bodies):
                force = np.zeros(3)
                for j, b in enumerate(bodies):
                    if i != j:
                        d = b.position - a.position
                        force += b.mass * d / (np.sum(d**2) + 0.1) ** 1.5
                a.kick(force, dt)
            for a in bodies:
                a.drift(dt)
        return sum(a.energy() for a in bodies)

    check(f, [Body(data(3, seed=k), data(3, seed=k + 9), k + 1.0) for k in range(3)], 0.01)


# -- objects and containers that the module holds -----------------------------------------------

FIELD = Field(data(8))
FIELDS = [Field(data(8)), Heated(data(8, seed=1))]
TABLE = {"a": data(8), "b": (data(8, seed=1), [data(8, seed=2)])}
ARRAY = data(8)
STEP = FIELD.step
STEPS = [f.step for f in FIELDS]


class Reader:
    def total(self):
        return ARRAY.sum()

    def raise_all(self):
        global ARRAY
        ARRAY += 1


def _of_module():
    for f, a in ((FIELD, data(8)), (FIELDS[0], data(8)), (FIELDS[1], data(8, seed=1))):
        f.u, f.t = a, 0.0
    TABLE.update(a=data(8), b=(data(8, seed=1), [data(8, seed=2)]))
    ARRAY[:] = data(8)
    return FIELD, FIELDS, TABLE, ARRAY


GLOBAL_PROGRAMS = {
    "object": lambda x: (FIELD.step(0.1, substeps=3).u * 2, FIELD.total()),
    "objects in a list": lambda x: [f.step(0.1).total() for f in FIELDS],
    "dict": lambda x: (np.multiply(TABLE["a"], 2, out=TABLE["a"]), TABLE["b"][1][0] + x),
    "rebound in a dict": lambda x: TABLE.update(a=x * 2, new=x.sum()),
    "array read by a method": lambda x: (ARRAY.__setitem__(..., x), Reader().total()),
    "array written by a method": lambda x: (ARRAY * 2, Reader().raise_all(), ARRAY + 1),
    "sorted by a method": lambda x: [f.t for f in sorted(FIELDS, key=Field.total)],
    "method by a name": lambda x: (
        STEP(0.1),
        FIELD.total(),
        setattr(FIELD, "u", x * 2),
        STEP(0.1).u,
    ),
    "methods in a list": lambda x: ([s(0.1).t for s in STEPS], FIELDS[1].u * 2, STEPS),
    "rebound through a method": lambda x: STEP(0.1, substeps=int(FIELD.t == 0.0)).laplacian(),
    "what it was": lambda x: (FIELD is FIELD, TABLE["a"] is TABLE["a"], FIELDS),
}


@pytest.mark.parametrize("name", GLOBAL_PROGRAMS)
def test_objects_of_the_module(name):
    f = GLOBAL_PROGRAMS[name]
    fast, _ = compiled(f)
    for k in range(3):
        x = data(8, seed=k)
        _of_module()
        want = repr((f(x), FIELD.u, [g.u for g in FIELDS], TABLE, ARRAY))
        before = (*_of_module(), *STEPS)
        got = repr((fast(x), FIELD.u, [g.u for g in FIELDS], TABLE, ARRAY))
        assert _numbers(got) == _numbers(want)
        assert all(
            a is b for a, b in zip(before, (FIELD, FIELDS, TABLE, ARRAY, *STEPS), strict=True)
        )
    TABLE.pop("new", None)


def _numbers(text):
    """Texts of results without addresses, and to ten places."""
    import re

    text = re.sub(r"0x[0-9a-f]+", "", text)
    return re.sub(r"-?\d+\.\d*(e-?\d+)?", lambda m: f"{float(m[0]):.6g}", text)


@pytest.mark.parametrize(
    "f",
    [
        lambda u: (np.add(u, 1, out=u), FIELD.total(), FIELD.u is u),
        lambda u: (u.fill(3.0), FIELD.u[0], FIELD.u.sum()),
        lambda u: (FIELD.step(0.1), u * 2),
    ],
)
def test_an_argument_that_an_object_of_the_module_holds_too(f):
    fast, _ = compiled(f)
    for _ in range(2):
        _of_module()
        want = _numbers(repr(f(FIELD.u)))
        _of_module()
        assert _numbers(repr(fast(FIELD.u))) == want


# -- what the user sees of it --------------------------------------------------------------------


def test_functions_have_their_own_code_afterwards():
    functions = [Field.step, Field.mean.fget, Field.mean.fset, Field.of.__func__, Field.smoothed]
    functions += [Field.norm.func, Heated.step, Field.__matmul__]
    codes = [f.__code__ for f in functions]
    signatures = [str(inspect.signature(f)) for f in functions]

    def f(field):
        inside.append([str(inspect.signature(g)) for g in functions])
        assert [own_code(g) for g in functions] == codes
        return field.step(0.1).total()

    inside = []
    compiled(f)[0](Heated(data(8)))
    assert inside == [signatures]
    assert [g.__code__ for g in functions] == codes

    def fails(field):
        field.step(0.1)
        raise KeyError("a")

    with pytest.raises(KeyError):
        compiled(fails)[0](Heated(data(8)))
    assert [g.__code__ for g in functions] == codes


def test_other_threads_see_the_functions_as_they_are():
    entered, left = threading.Event(), threading.Event()
    results = []

    def other():
        entered.wait(10)
        field = Field(data(8))
        field.step(0.1, substeps=2)
        results.append((type(field.u), field.u, field.mean, Field.of(data(8)).u))
        left.set()

    def f(field):
        field.step(0.1)
        entered.set()
        left.wait(10)
        return field.u * 2

    thread = threading.Thread(target=other)
    thread.start()
    compiled(f)[0](Field(data(8)))
    thread.join()
    want = Field(data(8)).step(0.1, substeps=2)
    kind, u, mean, of = results[0]
    assert kind is np.ndarray
    np.testing.assert_array_equal(u, want.u)
    assert mean == want.mean
    np.testing.assert_array_equal(of, np.sin(data(8)))


def test_methods_under_wrap_numpy():
    import torch

    def f(x):
        return Field(x * 2).step(0.1, substeps=2).u

    x = data(8)
    for wrapped in (np_compile.wrap_numpy(f), np_compile.compile(np_compile.wrap_numpy(f))):
        t = torch.from_numpy(x).requires_grad_()
        y = wrapped(t)
        np.testing.assert_allclose(y.detach().numpy(), f(x), rtol=1e-12)
        y.sum().backward()
        assert t.grad is not None


def test_signatures_of_all_kinds_lead_through():
    class All:
        def f(self, a, /, b=2, *rest, c, d=np.pi, **others):
            return np.sin(a), b, rest, c, d, others

        def __private(self, __x):
            return np.cos(__x)

        def g(self, x):
            return self.__private(x)

        def h(self, n):
            return np.float64(1.0) if n == 0 else n * self.h(n - 1) + np.float64(0)

    def program(x, o):
        return o.f(x, c=1), o.f(x, 3, 4, 5, c=x, d=1, e=x), o.g(x), o.h(5)

    check(program, data(4), All())
    check(lambda x, o: o.f(x), data(4), All())  # TypeError, in its words


def test_an_object_with_slots_and_a_deque_of_arrays():
    import collections

    class Slotted:
        __slots__ = ("u", "unset")

        def __init__(self, u):
            self.u = u

        def step(self):
            np.multiply(self.u, 2, out=self.u)
            self.u = np.roll(self.u, 1)

    def f(o, line):
        o.step()
        line[0] += o.u
        line.append(line[0] * 2)
        return o.u

    fast, counter = compiled(f)
    o, p = Slotted(data(4)), Slotted(data(4))
    a, b = collections.deque([data(4)], maxlen=2), collections.deque([data(4)], maxlen=2)
    for _ in range(3):
        np.testing.assert_array_equal(fast(o, a), f(p, b))
        np.testing.assert_array_equal(list(a), list(b))
        assert type(o.u) is np.ndarray
    assert counter.count <= 2


def test_code_that_a_call_gives_a_method_stays():
    def program(f):
        class Signal:
            def value(self, x):
                return np.sin(x)

        def other(self, x):
            return np.cos(x) + self.shift

        def g(x, s):
            first = s.value(x)
            Signal.value.__code__ = other.__code__
            s.shift = 1.0
            return first, s.value(x)

        s = Signal()
        results = [f(g)(data(4), s) for _ in range(3)]
        return [*results, s.value(data(4)), Signal.value.__code__ is other.__code__]

    plain, fast = program(lambda g: g), program(lambda g: compiled(g)[0])
    np.testing.assert_array_equal(np.array(fast[:3]), np.array(plain[:3]))
    np.testing.assert_array_equal(fast[3], plain[3])
    assert (fast[4], plain[4]) == (True, True)


@pytest.mark.usefixtures("recorded")
def test_methods_that_stay_are_not_compared_anew(monkeypatch):
    compared = []

    class Signal:
        def __call__(self, k):
            return str(k)

    def f(x, s):
        for k in range(30):
            x = x * 2 - len(s(k))
        return x

    agree = _Copy._agree
    monkeypatch.setattr(_Copy, "_agree", lambda copy: compared.append(copy) or agree(copy))
    x, s = data(4), Signal()
    np.testing.assert_array_equal(np_compile.compile(f)(x, s), f(x, s))
    assert 1 <= len(compared) < 10


# Functions that a call makes, on objects of the caller's


class Variable:
    """Of a tape of gradients: its function is on the objects that it was made of."""

    def __init__(self, data, parents=()):
        self.data = np.asarray(data, dtype=float)
        self.grad = np.zeros_like(self.data)
        self.parents = set(parents)
        self.backward = lambda: None

    def times(self, other):
        out = Variable(self.data * other.data, (self, other))

        def backward():
            self.grad = self.grad + other.data * out.grad
            other.grad = other.grad + self.data * out.grad

        out.backward = backward
        return out

    def times_of_list(self, other):
        out = Variable(self.data * other.data, (self, other))
        operands = [self, {"other": other}]

        def backward():
            first, second = operands[0], operands[1]["other"]
            first.grad = first.grad + second.data * out.grad
            second.grad = second.grad + first.data * out.grad

        out.backward = backward
        return out

    def times_by_default(self, other):
        out = Variable(self.data * other.data, (self, other))

        def backward(first=self, *, second=other):
            first.grad = first.grad + second.data * out.grad
            second.grad = second.grad + first.data * out.grad

        out.backward = backward
        return out

    def times_of_function(self, other):
        out = Variable(self.data * other.data, (self, other))

        def add(x, g):
            if x is self:
                self.grad = self.grad + g
            else:
                other.grad = other.grad + g

        def backward():
            add(self, other.data * out.grad)
            add(other, self.data * out.grad)

        out.backward = backward
        return out


@pytest.mark.parametrize(
    "name", ["times", "times_of_list", "times_by_default", "times_of_function"]
)
@pytest.mark.parametrize("backend", ["native", "eager"])
def test_functions_made_in_a_call_are_on_the_callers_objects(name, backend):
    plain = getattr(Variable, name)
    fast = np_compile.compile(plain, backend=backend)
    for _ in range(3):
        gradients = []
        for times in (plain, fast):
            a, b = Variable(np.arange(3.0)), Variable(np.full(3, 2.0))
            c = times(a, b)
            d = times(c, a)
            assert d.parents == {c, a}
            d.grad = np.ones(3)
            d.backward()
            c.backward()
            gradients.append([x.grad.tolist() for x in (a, b, c)])
        assert gradients[0] == gradients[1]


class Quantity:
    """Numbers with a unit, which NumPy asks for what its functions give."""

    def __init__(self, values, unit):
        self.values, self.unit = np.asarray(values, float), unit

    def __array_function__(self, function, types, args, kwargs):
        if function is np.mean:
            return Quantity(
                np.mean((args[0] if args else kwargs.pop("a")).values, *args[1:], **kwargs),
                self.unit,
            )
        if function is np.concatenate:
            return Quantity(np.concatenate([q.values for q in args[0]], **kwargs), self.unit)
        return NotImplemented

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        values = [x.values if isinstance(x, Quantity) else x for x in inputs]
        if method == "__call__" and ufunc is np.add:
            return Quantity(ufunc(*values, **kwargs), self.unit)
        return NotImplemented


@pytest.mark.parametrize("plain", ["auto", "always", "never"])
@pytest.mark.parametrize("backend", ["native", "eager"])
def test_objects_are_asked_of_numpys_functions_themselves(backend, plain):
    def f(x):
        a, b = Quantity(x, "m"), Quantity([1.0, 2.0], "s")
        means = [np.mean(a), np.mean(a=b), np.concatenate([a, b]), np.concatenate((b, a), axis=0)]
        sums = [np.add(a, a), np.add(b, 1)]
        try:
            np.sum(b)
        except TypeError as e:
            text = type(e).__name__
        return [(q.values.tolist(), q.unit) for q in means + sums], text, float(x[0])

    check(f, data(4), backend=backend, plain=plain)


class Settings(dict):
    __getattr__ = dict.__getitem__  # raises a KeyError of what is not there
    __setattr__ = dict.__setitem__

    def __call__(self, x):
        return x * self.lr


SETTINGS = Settings(lr=0.5, w=np.ones(3))


@pytest.mark.parametrize("wraps", [False, True])
def test_dicts_whose_items_are_attributes(wraps):
    def f(x, settings):
        settings.last = x * SETTINGS.lr + SETTINGS.w
        SETTINGS.w = SETTINGS.w + 1
        return SETTINGS(x) + settings(x)

    for make in (np_compile.wrap_numpy, lambda f: np_compile.compile(np_compile.wrap_numpy(f))):
        fast = make(f) if wraps else np_compile.compile(f, backend="eager")
        for _ in range(2):
            own = Settings(lr=2.0)
            SETTINGS.update(w=np.ones(3))
            x = np.arange(3.0)
            result = fast(torch.from_numpy(x) if wraps else x, own)
            assert result.tolist() == [0.0, 2.5, 5.0]
            assert own["last"].tolist() == [1.0, 1.5, 2.0]
            assert np.asarray(SETTINGS["w"]).tolist() == [2.0] * 3


class Guarded(list):
    """A list with code of its own, which nobody calls."""

    def _refuses(self, *args):
        raise TypeError("it is guarded")

    __setitem__ = clear = extend = __delitem__ = _refuses


class Frozen(dict):
    def _refuses(self, *args):
        raise TypeError("it is frozen")

    __setitem__ = clear = update = __delitem__ = items = _refuses


class Counted(deque):
    def __setitem__(self, k, v):
        raise TypeError("it is counted")


class Closed(set):
    def clear(self):
        raise TypeError("it is closed")


def test_code_of_classes_derived_from_containers_is_not_called():
    def f(x):
        return Guarded([x * 2, 1]), Frozen(a=x + 1, b=[x - 1]), Counted([x]), Closed({x.sum()})

    for k in range(3):
        got, want = (
            np_compile.compile(f, backend="eager")(np.arange(3.0 + k)),
            f(np.arange(3.0 + k)),
        )
        assert [*map(type, got)] == [*map(type, want)]
        assert str(got) == str(want)


def test_derived_containers_among_the_arguments_keep_their_code_to_themselves():
    def f(rows, table):
        list.append(rows, rows[0] * 2)
        dict.__setitem__(table, "b", table["a"] + 1)
        return rows, table

    fast = np_compile.compile(f, backend="eager")
    for k in range(3):
        mine, its = ((Guarded([np.arange(3.0 + k)]), Frozen(a=np.ones(2))) for _ in range(2))
        got, want = fast(*its), f(*mine)
        assert got[0] is its[0]
        assert got[1] is its[1]
        assert str(got) == str(want)
