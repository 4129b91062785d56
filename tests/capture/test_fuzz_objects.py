"""Random programs on arrays that lie in objects and containers, reached by names and by arguments,
changed by methods, by code that is not captured, and by libraries that keep memory."""

from __future__ import annotations

import collections
import types

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..support import compiled, examples


class Record:
    def __init__(self, x):
        self.x = x

    def scale(self, k):
        self.x *= k

    def shifted(self):
        r = np.zeros_like(self.x)
        np.copyto(r[1:], self.x[:-1])
        return r

    @property
    def total(self):
        return self.x.sum()

    @total.setter
    def total(self, value):
        self.x = self.x - self.x.mean() + value / self.x.size

    def __add__(self, other):
        r = np.empty_like(self.x)
        np.add(self.x, other.x, out=r)
        return type(self)(r)

    def __call__(self, y):
        np.add.at(self.x, [0, 0, 2], y[:3])
        return self.x

    def lazily(self):  # a generator, which is not captured
        r = np.zeros(4)
        np.put(r, [0, 3], self.x[:2])
        yield r
        np.multiply(self.x, 0.5, out=self.x)
        yield self.x


class Slotted(Record):
    __slots__ = ("hidden",)


class Bare:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    scale = Record.scale
    shifted = Record.shifted


class World:
    """The places where arrays lie."""

    def __init__(self, rng):
        def new():
            return rng.integers(-4, 5, 4).astype(float)

        self.record, self.slotted, self.bare = Record(new()), Slotted(new()), Bare(new())
        self.slotted.hidden = new()
        self.names = {"a": new(), "b": self.record.x}
        self.line = collections.deque([new(), self.bare.x], maxlen=4)
        self.items = [new(), (new(), [new()])]
        self.space = types.SimpleNamespace(x=new(), inner=Record(new()))
        self.functions = {"f": lambda x: np.tanh(x), "g": [Record.shifted]}
        self.kept = []
        self.log = []

    def objects(self):
        return [self.record, self.slotted, self.bare, self.space.inner]

    def arrays(self):
        return [
            self.record.x, self.slotted.x, self.slotted.hidden, self.bare.x, self.names["a"],
            self.names["b"], self.line[0], self.line[-1], self.items[0], self.items[1][0],
            self.items[1][1][0], self.space.x, self.space.inner.x,
        ]  # fmt: skip

    def store(self, i, x):
        places = [
            lambda: setattr(self.record, "x", x), lambda: setattr(self.slotted, "hidden", x),
            lambda: setattr(self.bare, "x", x), lambda: self.names.update(a=x),
            lambda: self.names.update({f"n{i}": x}), lambda: self.line.append(x),
            lambda: self.items.__setitem__(0, x), lambda: self.items[1][1].__setitem__(0, x),
            lambda: setattr(self.space, "x", x), lambda: setattr(self.record, "extra", (x, [x])),
        ]  # fmt: skip
        places[i % len(places)]()

    def state(self):
        """All arrays, which of them are one, and what was logged."""
        arrays = [*self.arrays(), *(x for n, x in self.names.items() if n > "b")]
        arrays += [self.record.extra[0]] if hasattr(self.record, "extra") else []
        assert all(type(x) is np.ndarray for x in arrays), [type(x) for x in arrays]
        one = [[k for k, y in enumerate(arrays) if y is x] for x in arrays]
        shared = [[bool(np.shares_memory(x, y)) for y in arrays] for x in arrays]
        log = [_rounded(x) for x in self.log]
        return [_rounded(x) for x in arrays], one, shared, list(self.names), len(self.line), log


def _rounded(x):
    """Values that do not depend on the order of additions."""
    if isinstance(x, list):
        return [_rounded(v) for v in x]
    return type(x), x if isinstance(x, (str, bool)) else np.round(x, 9).tolist()


WORLD = World(np.random.default_rng(0))  # reached by its name


def _of(things, i):
    return things[i % len(things)]


# Each takes the world and three numbers.
STEPS = {
    "scale": lambda w, i, j, a: _of(w.objects(), i).scale(a),
    "shifted": lambda w, i, j, a: w.store(j, _of(w.objects(), i).shifted()),
    "total": lambda w, i, j, a: w.log.append(w.record.total * a),
    "set total": lambda w, i, j, a: setattr(w.slotted, "total", float(a)),
    "operator": lambda w, i, j, a: w.store(j, (w.record + w.slotted).x),
    "call": lambda w, i, j, a: w.store(i, w.record(_of(w.arrays(), j))),
    "generator": lambda w, i, j, a: w.log.extend(r * a for r in w.record.lazily()),
    "function in a dict": lambda w, i, j, a: w.store(i, w.functions["f"](_of(w.arrays(), j))),
    "method in a list": lambda w, i, j, a: w.store(i, w.functions["g"][0](_of(w.objects(), j))),
    "in place": lambda w, i, j, a: np.add(_of(w.arrays(), i), a, out=_of(w.arrays(), i)),
    "part": lambda w, i, j, a: _of(w.arrays(), i).__setitem__(slice(a % 3, None), a),
    "element": lambda w, i, j, a: _of(w.arrays(), i).__setitem__(j % 4, a),
    "copyto": lambda w, i, j, a: np.copyto(_of(w.arrays(), i), _of(w.arrays(), j)),
    "put": lambda w, i, j, a: np.put(_of(w.arrays(), i), [0, 1], _of(w.arrays(), j)[2:]),
    "view": lambda w, i, j, a: w.store(i, _of(w.arrays(), j)[::-1]),
    "same": lambda w, i, j, a: w.store(i, _of(w.arrays(), j)),
    "new": lambda w, i, j, a: w.store(i, _of(w.arrays(), j) * 0.5 + a),
    "rebuilt": lambda w, i, j, a: setattr(w, "record", Record(_of(w.arrays(), j) + 1)),
    "deleted": lambda w, i, j, a: (setattr(w.record, "n", a), delattr(w.record, "n")),
    "popped": lambda w, i, j, a: w.log.append(w.names.pop("n3", None) is None),
    "sorted": lambda w, i, j, a: w.items[1][1].sort(key=np.sum),
    "logged": lambda w, i, j, a: w.log.append(_of(w.arrays(), i) + a),
    "branch": lambda w, i, j, a: w.record.scale(2) if _of(w.arrays(), i).sum() > a else None,
    "text": lambda w, i, j, a: w.log.append(f"{_of(w.arrays(), i)[0]:.2f}"),
    "masked": lambda w, i, j, a: w.kept.append(np.ma.array(_of(w.arrays(), i), copy=False)),
    "sparse": lambda w, i, j, a: w.kept.append(
        scipy.sparse.csr_matrix((_of(w.arrays(), i), [0, 1, 2, 3], [0, 4]), copy=False)
    ),
    "memoryview": lambda w, i, j, a: w.kept.append(memoryview(_of(w.arrays(), i))),
    "kept": lambda w, i, j, a: w.log.append(
        [x[1] if isinstance(x, memoryview) else x.sum() for x in w.kept[-2:]]
    ),
    "written by a keeper": lambda w, i, j, a: [
        x.__setitem__(0, float(a)) for x in w.kept[-2:] if not scipy.sparse.issparse(x)
    ],
}  # fmt: skip


def run(world, steps):
    for name, i, j, a in steps:
        STEPS[name](world, i, j, a)


def by_name(steps):
    run(WORLD, steps)


numbers = st.integers(0, 12)
programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), numbers, numbers, st.integers(-2, 3)),
    min_size=2, max_size=10,
)  # fmt: skip


@settings(
    max_examples=examples(60), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(programs, st.booleans(), st.integers(0, 3))
def test_random_programs_on_objects(steps, named, seed):
    fast, _ = compiled(by_name if named else run)
    for k in range(2):
        states = []
        for f in (by_name if named else run, fast):
            world = World(np.random.default_rng(seed + k))
            if named:
                vars(WORLD).clear()
                vars(WORLD).update(vars(world))
                world = WORLD
                f(steps)
            else:
                f(world, steps)
            states.append(world.state())
        assert states[1] == states[0]
