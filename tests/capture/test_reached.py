"""Functions of tensors whose calls are not kept: what their names lead to lets them run on arrays,
and what they put there are tensors."""

from __future__ import annotations

import abc
import enum
import functools
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

import np_compile
from np_compile import reached


def compiled(f):
    return np_compile.compile(np_compile.wrap_numpy(f))


def series(n=20, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).random(n))


def part(x, rng):
    """Of another length in each call, so that calls are not kept."""
    return x[: rng.integers(3, 9)] if np.median(x) < 9 else x


class Cell(enum.IntEnum):
    FREE = 0
    WALL = 1

    @property
    def cost(self):
        return WEIGHT * self if self is Cell.WALL else 0.5


WEIGHT = 3.0


class Way(enum.Enum):
    UP = (0, 1)
    DOWN = (1, 0)

    def __init__(self, a, b):
        self.turn = a - b


def raised(x, by, at=(1, 2)):
    return x**by + at[0]


@dataclass
class Model:
    gain: float
    taps: np.ndarray
    seen: list = field(default_factory=list)
    last: object = None

    def apply(self, x):
        self.last = np.convolve(x, self.taps) * self.gain
        self.seen.append(self.last[0])
        return self.last


POWERS = {"square": functools.partial(raised, by=2), "cube": functools.partial(raised, by=3)}
MODEL = Model(2.0, np.array([0.5, 0.25]))
NUMBERS = deque([1.0, 2.0], maxlen=3)
WORD = re.compile("[a-z]+")
SPACE = types.SimpleNamespace(low=0.25, table=[1, 2])


def by_partials(x, rng):
    return POWERS["cube" if rng.random() < 0.5 else "square"](part(x, rng))


def by_members(x, rng):
    y = part(x, rng)
    return y * Cell(int(rng.integers(2))).cost + Way.UP.turn


def by_an_object(x, rng):
    return MODEL.apply(part(x, rng))


def by_a_method(x, rng, apply=MODEL.apply):
    return apply(part(x, rng))


def by_numbers(x, rng):
    NUMBERS.append(float(rng.random()))
    return part(x, rng) * NUMBERS[0] + len(WORD.findall("a b c")) * SPACE.low + SPACE.table[1]


def by_a_default(x, rng, powers=[1, 2]):  # noqa: B006 - a list that is a default
    return part(x, rng) ** powers[-1]


@functools.lru_cache
def table(n):
    return np.arange(float(n))


def by_a_cache(x, rng):
    return part(x, rng)[:3] * table(3) + table(int(rng.integers(3, 6)))[-1]


def by_nonlocal(x, rng):
    count, rest = 0, part(x, rng)

    def take():
        nonlocal count, rest
        count += 1
        rest = rest[1:]

    while len(rest) > 2:
        take()
    return rest * count


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self, x): ...


class Disk(Shape):
    def area(self, x):
        return np.pi * x**2


def by_a_base_class(x, rng):
    return Disk().area(part(x, rng))


def by_its_attribute(x, rng):
    by_its_attribute.seen["last"] = part(x, rng)
    return by_its_attribute.seen["last"]


by_its_attribute.seen = {}


@pytest.mark.parametrize(
    "f",
    [
        by_a_base_class,
        by_its_attribute,
        by_a_cache,
        by_nonlocal,
        by_partials,
        by_members,
        by_an_object,
        by_a_method,
        by_numbers,
        by_a_default,
    ],
)
def test_names_that_lead_to_no_tensor(f):
    fast, rng, of_plain = compiled(f), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        numbers = [*NUMBERS]
        got = fast(series(), rng)
        NUMBERS.extend(numbers)
        assert type(got) is torch.Tensor
        np.testing.assert_allclose(got, f(series().numpy(), of_plain))
        MODEL.last, MODEL.seen[:] = None, []
    assert fast._reading._why == ""


def test_members_among_the_arguments():
    def turned(x, way, rng):
        return part(x, rng) * way.turn, way, way is Way.DOWN

    fast, rng = compiled(turned), np.random.default_rng(3)
    for k in range(5):
        way = [*Way][k % 2]
        y, its, down = fast(series(), way, rng)
        assert its is way
        assert (type(y), down) == (torch.Tensor, k % 2 == 1)
    assert fast._reading._why == ""


@pytest.mark.parametrize("kind", [b"ab", np.tanh, np.float32, Model, slice(1, 3), re.compile("a")])
def test_values_among_the_arguments(kind):
    def f(x, kind, rng):
        return part(x, rng), kind

    fast, rng = compiled(f), np.random.default_rng(3)
    for _ in range(5):
        y, its = fast(series(), kind, rng)
        assert type(y) is torch.Tensor
        assert its is kind
    assert fast._reading._why == ""


def test_a_variable_of_the_code_around_is_left_to_recording():
    last = None

    def keeps(x, rng):
        nonlocal last
        last = part(x, rng)
        return len(last)

    fast, rng = compiled(keeps), np.random.default_rng(3)
    for _ in range(5):
        fast(series(), rng)
        assert type(last) is torch.Tensor


def test_what_an_object_gets_is_a_tensor():
    fast, rng = compiled(by_an_object), np.random.default_rng(3)
    MODEL.seen.clear()
    for _ in range(5):
        MODEL.last = None
        got = fast(series(), rng)
        assert MODEL.last is got
        assert type(MODEL.seen[-1]) is torch.Tensor
        assert type(MODEL.taps) is np.ndarray
        MODEL.seen.clear()
    assert fast._reading._why == ""
    MODEL.last = None


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda t: functools.partial(np.multiply, t), "the name HELD, which holds a Tensor"),
        (lambda t: Model(1.0, t).apply, "the name HELD, which holds a Tensor"),
        (lambda t: enum.Enum("Held", {"A": t}).A, "Held, which holds a Tensor"),
        (lambda t: defaultdict(lambda: t), "the name t, a Tensor"),
        (lambda t: deque([t]), "the name HELD, which holds a Tensor"),
        (lambda t: marked(raised, t), "an attribute of made, which holds a Tensor"),
    ],
    ids=["partial", "method", "member", "factory", "deque", "attribute"],
)
def test_names_that_lead_to_tensors(make, why, monkeypatch):
    def held(x, rng):
        y = part(x, rng)
        return y if HELD is None else y + 1

    monkeypatch.setitem(globals(), "HELD", make(torch.ones(3)))
    fast, rng = compiled(held), np.random.default_rng(3)
    for _ in range(4):
        fast(series(), rng)
    assert fast._reading._why == why


HELD = None


def marked(f, value):
    def made(x):
        return f(x)

    made.value = value
    return made


MAKES = {
    "defaultdict": lambda y: (d := defaultdict(list), d["a"].append(y), d)[-1],
    "OrderedDict": lambda y: OrderedDict(b=y, a=[y]),
    "Counter": lambda y: Counter({"a": y}),
    "deque": lambda y: deque([y, y + 1], maxlen=2),
}


@pytest.mark.parametrize("kind", MAKES)
def test_results_in_containers_of_other_classes(kind):
    def made(x, rng):
        return MAKES[kind](part(x, rng) * 2)

    fast, rng, of_plain = compiled(made), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        got, want = fast(series(), rng), made(series().numpy(), of_plain)
        assert type(got) is type(want)
        leaves, of_want = (
            [v for x in (r.values() if isinstance(r, dict) else r)
             for v in (x if type(x) is list else [x])]
            for r in (got, want)
        )  # fmt: skip
        for a, b in zip(leaves, of_want, strict=True):
            assert type(a) is torch.Tensor
            np.testing.assert_allclose(a, b)
    assert fast._reading._why == ""


class Place:
    def __init__(self, cost):
        self.cost, self.near = cost, []


PLACES = [Place(float(k)) for k in range(30)]
for k, place in enumerate(PLACES):
    place.near += [PLACES[k - 1], PLACES[(k + 1) % 30], PLACES[(k + 7) % 30], PLACES[k - 9]]


def by_a_graph(x, rng):
    place = PLACES[0]
    for _ in range(3):
        place = place.near[rng.integers(4)]
    return part(x, rng) + place.cost


def test_objects_that_lead_to_one_another_are_looked_at_once(monkeypatch):
    looked = []
    read = reached._read_by_value

    def counting(where, x, *rest):
        looked.append(x)
        assert len(looked) < 20_000
        return read(where, x, *rest)

    monkeypatch.setattr(reached, "_read_by_value", counting)
    fast, rng, of_plain = compiled(by_a_graph), *map(np.random.default_rng, (3, 3))
    for _ in range(5):
        np.testing.assert_allclose(fast(series(), rng), by_a_graph(series().numpy(), of_plain))
    assert len(looked) > 100
