"""Objects in compiled loops: their attributes, methods, and who else sees them."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import np_compile

from ..support import observe, same
from .support import Case, check, check_call, each, exact, refusals, whole

State = namedtuple("State", "x v t")


class Simulation:
    scale = 0.5

    def __init__(self, n):
        self.u = np.linspace(0, 1, n)
        self.v = np.zeros(n)
        self.t = 0.0
        self.steps = 0
        self.log = []

    @property
    def energy(self):
        return float(self.u.sum()) * self.scale

    def step(self, dt):
        for i in range(1, len(self.u) - 1):
            self.v[i] += dt * (self.u[i + 1] - 2 * self.u[i] + self.u[i - 1])
        self.u, self.v = self.v, self.u
        self.t += dt
        self.steps += 1
        return self.t

    def run(self, n, dt):
        last = 0.0
        for _ in range(n):
            last = self.step(dt)
        return last, self.u.sum()

    def reset(self, k):
        for i in range(k):
            self.u[i] = 0.0
            if i == 2:
                self.t = -1
                self.steps = "reset"

    def checked(self, limit):
        for i in range(len(self.u)):
            self.steps = i
            if self.u[i] > limit:
                raise ValueError(f"{self.u[i]} at {self.steps}")
            self.u[i] += 1


class Slotted:
    __slots__ = ("count", "x")

    def __init__(self, n):
        self.x = np.arange(float(n))
        self.count = 0


@dataclasses.dataclass
class Particle:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0
    hits: int = 0


class Watched:
    """One that notes what is set."""

    def __init__(self, n):
        self.seen = []
        self.x = np.zeros(n)

    def __setattr__(self, name, value):
        if name != "seen":
            self.seen.append(name)
        object.__setattr__(self, name, value)


def run_from_outside(s, n, dt):
    e = 0.0
    for _ in range(n):
        e += s.step(dt)
    return e, s.energy


def attributes_in_loop(s, n):
    for k in range(n):
        s.t = s.t + s.u[k] * s.scale
        if s.u[k] > 0.5:
            s.steps = s.steps + k
    return s.t


def two_names(s, r, n):
    for k in range(n):
        s.u[k] += 1
        r.u[k] *= 2
        s.t += 1
        r.t *= 2
    return s.t, r.t, s.u[0]


def rebinds(s, n):
    for k in range(n):
        s.u = s.u * 2
        if k == 1:
            s.u = s.u[1:]
    return s.u


def new_attribute(s, n):
    for k in range(n):
        s.found = k
        s.u[k] = s.found
    return s.found


def missing_attribute(s, n):
    total = 0
    for k in range(n):
        s.u[k] = 5
        total += s.nothing
    return total


def slots(s, n):
    for k in range(n):
        s.count += 1
        s.x[k] += s.count
    s.x = s.x[::-1]
    return s.count


def bounce(p, n, dt):
    for _ in range(n):
        p.position += dt * p.velocity
        for j in range(len(p.position)):
            if p.position[j] < 0 or p.position[j] > 1:
                p.velocity[j] = -p.velocity[j]
                p.hits += 1
    return p.mass * np.sum(p.velocity**2)


def of_state(s, n, dt):
    x, v, t = s
    for _ in range(n):
        v = v - dt * s.x
        x = x + dt * v
        t += dt
    return State(x, v, t)


def in_state(s, n):
    for k in range(n):
        s = State(s.x + s.v, s.v, s.t + k)
    return s


def sets_watched(w, n):
    for k in range(n):
        w.x[k] = k
        w.last = k
    return w.x


def nested(world, n):
    for k in range(n):
        world.inner.x[k] += world.factor
        world.factor *= 2
        world.inner.count += 1
    return world.inner.count


def list_of_arrays(layers, x):
    for k in range(len(layers)):
        w, b = layers[k]
        x = np.maximum(w @ x + b, 0)
        b += 1
    return x


def dict_of_arrays(d, n):
    for k in range(n):
        d["x"][k] += d["y"][-k - 1]
    d["n"] = n
    return d


def world():
    return SimpleNamespace(inner=SimpleNamespace(x=np.zeros(4), count=0), factor=1.5)


def layers():
    rng = np.random.default_rng(3)
    return [(rng.integers(-2, 3, (4, 4)).astype(float), np.ones(4)) for _ in range(3)]


def particle():
    return Particle(np.array([0.2, 0.9]), np.array([0.75, -0.5]))


def twice(make):
    """Arguments with one object in two places."""
    s = make()
    return s, s


CASES = [
    (Simulation.run, lambda: (Simulation(7), 5, 0.25)),
    (Simulation.run, lambda: (Simulation(2), 0, 0.25)),
    (Simulation.step, lambda: (Simulation(9), 0.5)),
    (Simulation.reset, lambda: (Simulation(5), 4)),
    (Simulation.reset, lambda: (Simulation(5), 7)),
    (Simulation.checked, lambda: (Simulation(5), 0.6)),
    (Simulation.checked, lambda: (Simulation(5), 2.0)),
    (run_from_outside, lambda: (Simulation(7), 5, 0.25)),
    (attributes_in_loop, lambda: (Simulation(7), 7)),
    (attributes_in_loop, lambda: (Simulation(3), 7)),
    (two_names, lambda: (Simulation(4), Simulation(4), 4)),
    (two_names, lambda: (*twice(lambda: Simulation(4)), 4)),
    (rebinds, lambda: (Simulation(4), 3)),
    (new_attribute, lambda: (Simulation(4), 3)),
    (new_attribute, lambda: (Simulation(4), 0)),
    (missing_attribute, lambda: (Simulation(4), 2)),
    (missing_attribute, lambda: (Simulation(4), 0)),
    (slots, lambda: (Slotted(4), 3)),
    (slots, lambda: (Slotted(4), 6)),
    (bounce, lambda: (particle(), 9, 0.25)),
    (of_state, lambda: (State(1.0, 0.0, 0), 5, 0.125)),
    (of_state, lambda: (State(np.ones(3), np.zeros(3), 0.0), 5, 0.125)),
    (in_state, lambda: (State(1.0, 0.5, 0), 4)),
    (in_state, lambda: (State(np.ones(3), np.ones(3), 0.0), 4)),
    (sets_watched, lambda: (Watched(4), 3)),
    (nested, lambda: (world(), 3)),
    (nested, lambda: (world(), 6)),
    (list_of_arrays, lambda: (layers(), np.ones(4))),
    (dict_of_arrays, lambda: ({"x": np.zeros(3), "y": np.arange(3.0)}, 3)),
    (dict_of_arrays, lambda: ({"x": np.zeros(3), "y": np.arange(3.0)}, 4)),
]


def shown(seen):
    """What a call did: its result, error, and the values of its arguments, objects taken apart."""
    return [parts(seen.result), repr(seen.error), parts(seen.args), seen.text]


def parts(x, within=()):
    if any(x is y for y in within):
        return "again"
    inside = (*within, x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return [type(x).__name__, *(parts(v, inside) for v in x)]
    if isinstance(x, (list, tuple)):
        return type(x)(parts(v, inside) for v in x)
    if isinstance(x, dict):
        return {k: parts(v, inside) for k, v in x.items()}
    if isinstance(x, Slotted):
        return [type(x).__name__, x.count, x.x]
    if hasattr(x, "__dict__") and not isinstance(x, type):
        return [type(x).__name__, parts(vars(x), inside)]
    return x


@pytest.mark.parametrize(
    ("f", "make"), CASES, ids=[f"{f.__qualname__}-{k}" for k, (f, _) in enumerate(CASES)]
)
def test_objects(f, make) -> None:
    fast = np_compile.compile(f)
    with whole():
        for _ in range(2):
            mine, theirs = make(), make()
            same(shown(observe(fast, mine, {})), shown(observe(f, theirs, {})))


def test_methods_are_read() -> None:
    fast = np_compile.compile(Simulation.run)
    with whole():
        fast(Simulation(7), 5, 0.25)
    assert not refusals(fast)


def test_objects_change_between_calls() -> None:
    """Attributes of other types, methods that are replaced, attributes of the class."""
    fast = np_compile.compile(run_from_outside)
    mine, theirs = Simulation(5), Simulation(5)

    def both(change):
        for s in (mine, theirs):
            change(s)
        got, want = (
            observe(fast, (mine, 3, 0.5), {}),
            observe(run_from_outside, (theirs, 3, 0.5), {}),
        )
        same(shown(got), shown(want))

    original = Simulation.step
    with whole():
        both(lambda s: None)
        both(lambda s: setattr(s, "t", 3))
        both(lambda s: setattr(s, "u", s.u.astype("f4")))
        both(lambda s: setattr(s, "scale", 2))
        both(lambda s: setattr(s, "u", np.ones((3, 2))))
        both(lambda s: setattr(s, "u", np.ones(5)))
        both(lambda s: setattr(s, "step", lambda dt: dt * 100))
        both(lambda s: delattr(s, "step"))
        try:
            Simulation.step = lambda self, dt: self.t * dt
            both(lambda s: None)
        finally:
            Simulation.step = original
        both(lambda s: setattr(s, "v", s.u))
        both(lambda s: delattr(s, "t"))


def test_an_object_that_is_two_arguments() -> None:
    fast = np_compile.compile(two_names)
    with whole():
        for make in (lambda: (Simulation(4), Simulation(4)), lambda: twice(lambda: Simulation(4))):
            mine, theirs = make(), make()
            got = observe(fast, (*mine, 4), {})
            want = observe(two_names, (*theirs, 4), {})
            same(shown(got), shown(want))


# What changes between calls, and what methods set before they return


X = np.array([3.0, -1.0, 4.0, 1.5, -9.5])


class Stepper:
    def __init__(self):
        self.n = 0
        self.rate = 2.0

    def step(self, x):
        return x

    @property
    def twice(self):
        return self.rate * 2

    def bump(self, limit):
        self.n += 1
        if self.n > limit:
            return self.n
        self.n += 10
        return -1

    def only_in_a_branch(self, x):
        if x > 0:
            self.n += 3
            return 1
        else:
            raise ValueError("not positive")

    def searches(self, x):
        k = 0
        while k < len(x):
            self.n += 1
            while x[k] > 0:
                self.n += 5
                if x[k] > 3:
                    return k
                x[k] -= 1
            k += 1
        return None


STEPPER = Stepper()


def steps(x):
    s = x
    for _ in range(3):
        s = STEPPER.step(s) + STEPPER.twice
    return s


def test_a_method_that_is_replaced_between_calls(monkeypatch) -> None:
    fast = np_compile.compile(steps)
    with whole():
        assert fast(1.0) == steps(1.0)
        with monkeypatch.context() as m:
            m.setattr(Stepper, "step", lambda self, x: x + self.rate)
            assert fast(1.0) == steps(1.0) == 19.0
        assert fast(1.0) == steps(1.0)
        with monkeypatch.context() as m:
            m.setattr(STEPPER, "step", lambda x: x + 5, raising=False)
            assert fast(1.0) == steps(1.0) == 28.0
        with monkeypatch.context() as m:
            m.setattr(Stepper, "twice", property(lambda self: -1.0))
            assert fast(1.0) == steps(1.0) == -2.0
        assert fast(1.0) == steps(1.0)


def bumps(s, n, limit):
    found = []
    for _ in range(n):
        found.append(s.bump(limit))  # noqa: PERF401
    return found, s.n


def bumps_after_another_loop(s, x, limit):
    for v in x:
        s.only_in_a_branch(v)
    total = 0
    while total < 3:
        total += 1
        for _ in range(2):
            total += s.bump(limit)
    return total, s.n


def searching(s, x):
    a = s.searches(x)
    b = s.n
    return a, b, s.searches(x), s.n


@each(
    [
        exact(bumps, (Stepper(), 5, 12), (Stepper(), 0, 3), (Stepper(), 3, -1)),
        exact(
            bumps_after_another_loop, (Stepper(), X, 20),
            (Stepper(), np.abs(X) + 1, 20), (Stepper(), X[:0], -9),
        ),
        exact(searching, (Stepper(), X.copy()), (Stepper(), np.zeros(3)), (Stepper(), X[:0])),
    ]
)  # fmt: skip
def test_attributes_that_are_set_before_a_return(c: Case) -> None:
    check(c)


def without_arguments():
    total = 0
    for k in range(10):
        total += k * k
    return total


def gives_back(z):
    for _ in range(3):
        pass
    return z, z.T


def test_a_function_without_arguments_and_one_that_gives_its_argument_back() -> None:
    check(exact(without_arguments, ()))
    z = np.arange(3, dtype="f4").reshape(1, 3).T
    with whole():
        assert np_compile.compile(gives_back)(z)[0] is z


class Forest:
    """Methods that are compiled each by itself, and call each other."""

    def __init__(self, n):
        self.parent = np.arange(n)
        self.size = np.ones(n, dtype=int)

    @np_compile.compile
    def find(self, i):
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    @np_compile.compile
    def union(self, pairs):
        joined = 0
        for k in range(len(pairs)):
            a = self.find(pairs[k, 0])
            b = self.find(pairs[k, 1])
            if a == b:
                continue
            if self.size[a] < self.size[b]:
                a, b = b, a
            self.parent[b] = a
            self.size[a] += self.size[b]
            joined += 1
        return joined


class Lazy(Forest):
    @np_compile.compile
    def find(self, i):
        while self.parent[i] != i:
            i = self.parent[i]
        return i


@pytest.mark.parametrize("kind", [Forest, Lazy])
def test_compiled_methods_are_read_by_others(kind) -> None:
    class Plain(kind):
        find = kind.find.__wrapped__
        union = kind.union.__wrapped__

    with whole():
        for seed in range(3):
            pairs = np.random.default_rng(seed).integers(0, 9, (12, 2))
            mine, theirs = kind(9), Plain(9)
            assert mine.union(pairs) == theirs.union(pairs)
            same([mine.parent, mine.size], [theirs.parent, theirs.size])
            same([mine.find(pairs[0, 0])], [theirs.find(pairs[0, 0])])
    assert not refusals(kind.union)
    assert not refusals(kind.find)


def test_a_compiled_method_that_is_replaced_between_calls(monkeypatch) -> None:
    pairs = np.array([[0, 1], [1, 2], [3, 2], [0, 3]])
    with whole():
        for find in (Forest.find, Lazy.find, lambda self, i: 0 * i, Forest.find):
            monkeypatch.setattr(Forest, "find", find)
            plain, fast = Forest(5), Forest(5)
            assert fast.union(pairs) == Forest.union.__wrapped__(plain, pairs)
            same([fast.parent, fast.size], [plain.parent, plain.size])


class Clipper:
    limit = 2

    def __init__(self, x):
        self.x = x

    @staticmethod
    def low(v):
        return v if v > -1 else -1.0

    @staticmethod
    def count(*given):
        return len(given)

    @classmethod
    def high(cls, v):
        return v if v < cls.limit else cls.limit

    def run(self):
        for k in range(len(self.x)):
            self.x[k] = self.low(self.x[k]) + self.count(k, k)
        return self.x

    def run_by_class(self):
        for k in range(len(self.x)):
            self.x[k] = self.high(self.x[k])
        return self.x


@pytest.mark.parametrize(("f", "refused"), [(Clipper.run, ""), (Clipper.run_by_class, "'high'")])
def test_static_and_class_methods(f, refused) -> None:
    fast = np_compile.compile(f)
    with whole():
        for n in (5, 9, 5):
            mine, theirs = Clipper(np.arange(n) - 3.0), Clipper(np.arange(n) - 3.0)
            same(fast(mine), f(theirs))
    assert (not refusals(fast)) if not refused else refused in refusals(fast)[0]


def test_a_static_method_that_is_replaced_between_calls(monkeypatch) -> None:
    fast = np_compile.compile(Clipper.run)
    with whole():
        for low in (Clipper.low, lambda v: v * 2, Clipper.low):
            monkeypatch.setattr(Clipper, "low", staticmethod(low))
            mine, theirs = Clipper(np.arange(5) - 3.0), Clipper(np.arange(5) - 3.0)
            same(fast(mine), theirs.run())


class Counter:
    def __init__(self, n=1):
        self.n = n
        self.x = 0.5


def counts_in_two(a, b, n):
    total = 0
    for _ in range(n):
        a.n += 1
        total += b.n
    return total, a.n


def counts_one_of_a_pair(pair, n):
    total = 0
    for k in range(n):
        pair[0].n += pair[1]
        total += pair[0].n * k
    return total


def sums_in_two(a, b, n):
    total = 0.0
    for k in range(n):
        a["total"] += k
        total += b["total"]
    return total


def test_an_object_under_two_names_is_one() -> None:
    one, record = Counter(), {"total": 1.5}
    fast, of_dicts = np_compile.compile(counts_in_two), np_compile.compile(sums_in_two)
    with whole():
        for _ in range(3):
            check_call(fast, counts_in_two, (Counter(), Counter(5), 4), 0)
            check_call(fast, counts_in_two, (one, one, 4), 0)
            check_call(of_dicts, sums_in_two, ({"total": 1.5}, {"total": 2.5}, 4), 0)
            check_call(of_dicts, sums_in_two, (record, record, 4), 0)
    assert fast._reading.serves
    assert of_dicts._reading.serves


# Dicts whose keys are text


def relaxes(p, steps):
    total = 0.0
    for k in range(steps):
        p["t"] += p["dt"]
        p["count"] += 1
        for j in range(p["n"]):
            total += p["x"][j] * p["t"]
            p["x"][j] += p["more"]["a.b"]
        p["more"]["a.b"] *= 2
        p["log"].append(k)
    return total


SETTINGS = {"rate": 0.5, "steps": 4}


def by_settings(x):
    for k in range(SETTINGS["steps"]):
        for i in range(len(x)):
            x[i] = x[i] * SETTINGS["rate"] + k
    return x


def may_lack(p, n):
    total = 0
    for k in range(n):
        total += p["b"]
        if k == 2:
            p["new"] = total
    return total


def made(n, **changes):
    x = np.linspace(0, 1, n)
    parts = {"t": 0.0, "dt": 0.1, "count": 0, "n": n, "x": x, "more": {"a.b": 1.5}, "log": [1]}
    return parts | changes


RECORDS = [
    exact(relaxes, (made(5), 4), (made(3, dt=1, extra="text"), 3), (made(9, t=2, log=[]), 12),
          (made(2, count=(1 << 63) - 2), 5)),
    exact(counts_one_of_a_pair, ((Counter(), 3), 4), ((Counter(2), 5), 3)),
    exact(may_lack, ({"b": 1.5}, 2), ({"b": 1}, 5), ({"c": 1}, 3), ({}, 3), ({"b": None}, 2),
          ({"b": "x"}, 1), refused="a key that a dict does not have"),
]  # fmt: skip


@each(RECORDS)
def test_dicts_whose_keys_are_text(c: Case) -> None:
    check(c)


def test_a_dict_whose_keys_are_text_may_change_between_calls(monkeypatch) -> None:
    fast = np_compile.compile(by_settings)
    with whole():
        for rate, steps in ((0.5, 4), (0.25, 4), (2, 3), (0.5, 9)):
            monkeypatch.setitem(SETTINGS, "rate", rate)
            monkeypatch.setitem(SETTINGS, "steps", steps)
            check_call(fast, by_settings, (np.ones(5),), 0)
    assert not refusals(fast)
