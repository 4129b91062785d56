"""Objects whose class has a `__getattr__`: the program alone asks it."""

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.attributes import is_answered, own_dict
from np_compile.capture.policy.budget import Budget

ASKED = []


class Answering:
    """Knows `gain`, and is asked for nothing else."""

    def __init__(self, bias):
        self.bias = bias

    def __getattr__(self, name):
        ASKED.append(name)
        return {"gain": 2.0}[name]


class Slotted:
    __slots__ = ("bias", "unset")
    __init__ = Answering.__init__
    __getattr__ = Answering.__getattr__


class Counting:
    """Another value each time."""

    def __init__(self, bias):
        self.bias = bias
        self.count = 0

    def __getattr__(self, name):
        if name != "gain":
            raise AttributeError(name)
        self.count += 1
        return float(self.count)


model = None


def of_argument(m, x):
    return np.sin(x) * m.gain + m.bias


def in_a_loop(m, x):
    s = 0.0
    for v in x:
        s += v * m.gain
    return s + m.bias


def of_a_global(_, x):
    return np.sin(x) * model.gain + model.bias


def of_a_global_in_a_loop(_, x):
    s = 0.0
    for v in x:
        s += v * model.bias
    return s


def in_a_list(m, x):
    return [np.sin(x) * each.bias for each in [m, m]]


def not_used(m, x):
    return np.cos(x)


FUNCTIONS = (of_argument, in_a_loop, of_a_global, of_a_global_in_a_loop, in_a_list, not_used)


@pytest.mark.parametrize("bias", [1.0, np.ones(3)], ids=["number", "array"])
@pytest.mark.parametrize("kind", [Answering, Slotted, Counting])
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("settings", [{}, {"plain": "never", "compile_in": "call"}], ids=str)
def test_nothing_but_the_program_asks(f, kind, bias, settings, monkeypatch):
    if f is of_a_global_in_a_loop and type(bias) is not float:
        return
    fast = np_compile.compile(f, backend="native" if settings else "eager")
    with config.patch(**settings):
        for k in range(3):
            x = np.arange(3.0) + k
            seen = []
            for call in (f, fast):
                ASKED.clear()
                monkeypatch.setitem(globals(), "model", kind(bias))
                result = call(model, x)
                seen.append((result, list(ASKED), own_dict(model).get("count")))
            (want, asked, count), (got, *others) = seen
            np.testing.assert_allclose(got, want)
            assert others == [asked, count]


def test_the_size_of_a_call_is_that_of_its_arrays():
    class Table:
        @property
        def nbytes(self):
            raise AssertionError("asked for its size")

    class Text:
        nbytes = "many"

    b = Budget(asked=False)
    for _ in range(4):
        b.compiled(10, 0.6)
    assert not b.captures((Table(), Text(), np.ones(3)), {"t": Table()})
    assert b.captures((Table(), np.empty(10**7)), {})


def test_what_an_instance_holds_is_read_past_its_class():
    assert own_dict(Slotted(1)) == {}
    assert own_dict(Answering(1)) == {"bias": 1}
    assert is_answered(Slotted(1), "unset")
    assert is_answered(Slotted(1), "gain")
    assert not is_answered(Slotted(1), "bias")
    assert not is_answered(Counting(1), "count")
    assert not is_answered(Counting(1), "__init__")
