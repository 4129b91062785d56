"""What an instance holds, read without a dictionary of its own."""

import gc
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import np_compile
from np_compile.attributes import held, set_held


class Account:
    kind = "current"

    def __init__(self):
        self.rate, self.count = 0.5, 0
        self.names = []
        self.last = 0
        self.first = None

    @property
    def doubled(self):
        raise AssertionError("it is run")

    def adds(self, x):
        self.count += 1
        self.last = x * self.rate
        return self.last


class Savings(Account):
    __slots__ = ("limit",)

    def __init__(self):
        super().__init__()
        self.limit = 3
        self.kind = "savings"


class Guarded:
    def __init__(self):
        object.__setattr__(self, "value", 1)

    def __getattr__(self, name):
        raise AssertionError(name)

    def __setattr__(self, name, value):
        raise AssertionError(name)


@dataclass
class Body:
    mass: float = 1.5
    label: str = "body"
    charge: float = 1.5
    parts: list = field(default_factory=list)
    known: float = field(default=1.5, init=False)

    def moves(self, x):
        return x * self.mass


def has_own_dict(x: Any) -> bool:
    """Whether an object has a dictionary, in which its attributes lie."""
    return any(type(r) is dict and r.keys() == vars_of(x).keys() for r in gc.get_referents(x))


def vars_of(x: Any) -> dict:
    other = object.__new__(type(x))  # as that of x is not to be asked for
    other.__init__()
    return vars(other)


without = pytest.mark.skipif(sys.version_info >= (3, 13), reason="a dictionary costs nothing")


@pytest.mark.parametrize("kind", [Account, Savings, Guarded, Body])
def test_it_is_what_vars_says_in_its_order(kind):
    x = kind()
    found = held(x)
    assert list(found.items()) == list(vars(x).items())
    assert list(held(x).items()) == list(vars(x).items())  # which has a dictionary now


@pytest.mark.parametrize("kind", [Account, Savings, Body])
@without
def test_no_dictionary_is_made(kind):
    x = kind()
    held(x)
    held(x)
    assert not has_own_dict(x)
    vars(x)
    assert has_own_dict(x)


def test_a_name_that_the_class_does_not_mention():
    x = Account()
    held(x)
    x.__dict__["others"] = 7
    assert held(x) == vars(x)
    y = Account()
    setattr(y, "of the caller", 8)
    assert held(y) == vars(y)
    assert list(held(y)) == [*held(Account()), "of the caller"]


def test_what_hides_an_attribute_of_the_class():
    x = Account()
    x.kind = Account.kind  # the same object
    vars(x)["doubled"] = 2
    assert held(x) == vars(x)
    assert (held(x)["kind"], held(x)["doubled"]) == ("current", 2)


def test_an_attribute_that_is_gone():
    x = Account()
    del x.names
    assert held(x) == vars(x)
    y = Body()
    del y.mass  # of the class now, which has the same
    assert held(y) == vars(y)
    assert "mass" not in held(y)


@without
def test_what_is_set_goes_to_the_object_itself():
    x, y = Account(), Account()
    for z in (x, y):
        set_held(z, {**held(z), "rate": 2.0, "new": [1]})
    assert not has_own_dict(x)
    assert (x.rate, x.new) == (2.0, [1])
    assert list(vars(y)) == [*vars_of(y), "new"]
    set_held(x, {"first": 1, "doubled": 2})
    assert list(vars(x).items()) == [("first", 1), ("doubled", 2)]
    g = Guarded()
    set_held(g, {"value": 4, "more": 5})
    assert held(g) == vars(g) == {"value": 4, "more": 5}


@without
@pytest.mark.parametrize("loops", ["auto", "recorded"])
def test_an_object_of_compiled_methods_has_no_dictionary(loops):
    with np_compile.config.patch(compile_in="call", loops=loops):
        x, adds = Account(), np_compile.compile(Account.adds)
        for k in range(5):
            assert np.array_equal(adds(x, np.arange(4.0) + k), 0.5 * (np.arange(4.0) + k))
    assert x.count == 5
    assert not has_own_dict(x)


class Tally:
    def __init__(self):
        self.total = np.float64(0.0)
        self.label = "tally"  # which no other code mentions
        self.seen = np.zeros(0)

    def add(self, x):
        self.total = self.total + x.sum()
        return np.sqrt(x)


@without
def test_names_that_only_exchanged_code_mentions_are_known():
    with np_compile.config.patch(compile_in="call"):
        add = np_compile.compile(Tally.add)
        x = Tally()
        for _ in range(3):
            add(x, np.ones(3))
    assert x.total == 9.0
    assert not has_own_dict(x)
