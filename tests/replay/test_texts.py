"""What a kept call compares, and why a call is not kept, in words: `explain` shows them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.replay.guards import Refused
from np_compile.replay.proof import reach

dt = 0.1


@pytest.fixture(autouse=True)
def _never_plain():
    with config.patch(plain="never"):
        yield


def explained(f, *args, calls=3, **named):
    """What `explain` says after some calls that are recorded."""
    compiled = np_compile.compile(f)
    with config.patch(loops="recorded"):
        for _ in range(calls):
            compiled(*args, **named)
        return np_compile.explain(compiled)(*args, **named)


def guards(f, *args, **named):
    (one,) = explained(f, *args, **named).kept
    return one.guards


def step(x, k):
    return x + dt * k


def test_arrays_values_and_names():
    assert guards(step, np.zeros(100), 2.5) == [
        "called with x, k",
        "argument x: float64[100], C order",
        "argument k is 2.5",
        "function step has the code and defaults it had",
        "global dt is 0.1",
    ]


def test_layouts():
    def f(a, b, c):
        return a + b + c

    a = np.zeros((3, 4), np.float32)
    found = guards(f, a, np.asfortranarray(a), np.zeros((3, 8), np.float32)[:, ::2])
    assert found[1:4] == [
        "argument a: float32[3, 4], C order",
        "argument b: float32[3, 4], Fortran order",
        "argument c: float32[3, 4], strides (32, 8)",
    ]


def test_arguments_by_name_and_many_of_them():
    def f(x, *rest, k=1.0):
        return x + rest[0] * k

    assert guards(f, np.zeros(3), 2.0, k=3.0)[:4] == [
        "called with x, rest[0], k; by name: k",
        "argument x: float64[3], C order",
        "argument rest[0] is 2.0",
        "argument k is 3.0",
    ]


def test_arguments_that_are_one_or_lie_apart():
    def f(x, y):
        x += y
        return x

    x = np.zeros(3)
    assert "arguments x and y are two, apart in memory" in guards(f, x, np.ones(3))
    assert "arguments x and y are one" in guards(lambda x, y: x + y, x, x)
    assert "arguments x and y are two" in guards(lambda x, y: x + y, x, np.ones(3))


def test_elements_that_were_read():
    def f(x, taps):
        return x * taps[1] + taps[-1]

    assert "taps was [1.0, 2.0, 3.0] when it was read" in guards(f, np.zeros(4), np.arange(1.0, 4))
    found = guards(f, np.zeros(4), np.arange(100.0))
    assert "taps[1] was 1.0 when it was read" in found
    assert "taps[-1] was 99.0 when it was read" in found


def test_what_a_function_reads():
    factor = 2

    def inner(x, *, shift=1.0):
        return np.sin(x) * factor + math.pi + shift + len(x)

    def f(x):
        return inner(x)

    found = guards(f, np.zeros(3))
    assert "variable factor is 2" in found
    assert "default shift of test_what_a_function_reads.<locals>.inner is 1.0" in found
    assert "global np is the module numpy" in found
    assert "numpy.sin is what it was" in found
    assert "math.pi is 3.141592653589793" in found
    assert "global len is not there" in found
    assert "builtin len is len" in found


def test_tensors():
    def f(pair, w, k):
        pair[0] *= w["a"]
        return pair[0] + pair[1] * k

    x = torch.zeros(3)
    g = np_compile.wrap_numpy(f)
    pair = [x, torch.ones(2, 3, dtype=torch.float64).T[:, 0]]
    assert guards(g, pair, {"a": torch.ones(3)}, k=2.0)[:8] == [
        "called with pair[0], pair[1], w['a'], k; by name: k; structure: [., .], {'a': .}, .; "
        "gradients are recorded",
        "argument k is 2.0",
        "argument pair[0]: tensor float32[3], C order, on cpu; "
        "argument pair[1]: tensor float64[3], C order, on cpu; "
        "argument w['a']: tensor float32[3], C order, on cpu",
        "arguments pair[0] and pair[1] are two, apart in memory",
        "arguments pair[0] and w['a'] are two, apart in memory",
        "function test_tensors.<locals>.f has the code and defaults it had",
        "torch's level of forward derivatives is -1",
    ]
    y = torch.ones(3, requires_grad=True)
    found = guards(np_compile.wrap_numpy(lambda x, y: x * y), y, y)
    assert "arguments y and x are one" in found
    assert "argument x: tensor float32[3], C order, on cpu, requires a gradient" in found


def test_a_report_prints_guards():
    text = str(explained(step, np.zeros(2), 1))
    assert "  kept call: 1 programs, without Python, for calls where\n    called with x" in text
    assert "\n    global dt is 0.1" in text
    assert "not kept" not in text


# Why a call is not kept


def prints(x):
    print("called")
    return x + 1


def in_a_block(x):
    with open("nowhere") as f:
        return x + len(f.read())


counts = []


def appends(x):
    counts.append(1)
    return x + 1


def generates(x):
    def each():
        yield x
        yield x

    return sum(each())


def quiet_state(x):
    state = np.errstate(all="ignore")
    return x + 1, state


def raising(x):
    with np.errstate(divide="raise"):
        return 1 / x


def tried(x):
    try:
        return x[9]
    except IndexError:
        return x


def in_the_end(x):
    try:
        return x[9]
    finally:
        x[0] = 7


def looks(x):
    return x.flags


class Counted:
    made = 0

    def __init__(self):
        Counted.made += 1


def counts_objects(x):
    Counted()
    return x + 1


class Cached:
    seen = []  # noqa: RUF012

    def add(self, x):
        self.seen.append(x)
        return x


def keeps(x):
    return Cached().add(x)


class Loud:
    def __del__(self):
        print("gone")

    def __call__(self, x):
        return x


def goes(x):
    return Loud()(x)


class Rows:
    def __iter__(self):
        yield 1


def iterates(x):
    return x * sum(Rows())


class Meta(type):
    pass


class OfMeta(metaclass=Meta):
    def run(self, x):
        return x


def of_meta(x):
    return OfMeta().run(x)


class Told:
    def __repr__(self):
        return str(id(self))


def told(x):
    return x + len(f"{Told()}")


def sets_shape(x):
    x.shape = (-1,)
    return x


one = Cached()


def sets_an_attribute(x):
    one.x = x
    return x


REFUSED = [
    (keeps, "the attribute Cached.seen, a list"),
    (goes, r"the name print, a builtin_function_or_method \(line \d+, in Loud.__del__\)"),
    (iterates, "Rows.__iter__ is a generator or coroutine"),
    (of_meta, "the name OfMeta, a Meta"),
    (told, r"the name id, a builtin_function_or_method \(line \d+, in Told.__repr__\)"),
    (sets_shape, "it sets the attribute shape"),
    (sets_an_attribute, "the name one, a Cached"),
    (prints, r"the name print, a builtin_function_or_method \(line \d+, in prints\)"),
    (appends, r"the name counts, a list \(line \d+, in appends\)"),
    (in_a_block, r"the name open, a builtin_function_or_method \(line \d+, in in_a_block\)"),
    (generates, "generates.<locals>.each is a generator or coroutine"),
    (quiet_state, "the name numpy.errstate, a type"),
    (raising, "the name numpy.errstate, a type"),
    (tried, "a handler of exceptions"),
    (in_the_end, "a handler of exceptions"),
    (looks, r"the attribute flags \(line \d+, in looks\)"),
    (lambda x, cache=[]: x, "a default of <lambda> can change"),
    (lambda x: np.random.rand(), r"the name numpy.random.rand"),
    (lambda x: unknown + x, "the name unknown, which leads nowhere"),  # noqa: F821
    (lambda x: [].sort() or __import__("os"), r"the name __import__, a builtin"),
    (np.linalg.norm, "is no Python function"),
]


def ignores_errors(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x / (x - x)
    return y + 1


def of_neighbours(x):
    return sum(np.roll(x, i) for i in (-1, 1)) + sum(x[i] for i in range(3) if i != 1)


@pytest.mark.parametrize("f", [ignores_errors, of_neighbours])
def test_calls_with_quiet_blocks_and_generator_expressions_are_kept(f):
    report = explained(f, np.arange(5.0))
    assert report.kept
    assert report.not_kept is None
    np.testing.assert_array_equal(report.result, f(np.arange(5.0)))


@pytest.mark.parametrize(("f", "why"), REFUSED, ids=lambda p: getattr(p, "__name__", None))
def test_functions_that_are_not_pure(f, why):
    with pytest.raises(Refused, match=why):
        reach(f)


class Recorder:
    """Of its methods those count that are reached, and those that Python looks up."""

    scale = 2.0

    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return str(id(self))

    def save(self):
        print(self.x)

    def scaled(self):
        return self.x * self.scale

    @property
    def doubled(self):
        return self.x * 2


@dataclasses.dataclass
class State:
    x: np.ndarray
    k: float = 2.0

    def next(self):
        return State(np.sin(self.x) * self.k)


def with_objects(x):
    a = Recorder(x)
    b = State(a.scaled() + a.doubled)

    class Last(Recorder):
        def __init__(self, x, k):
            super().__init__(x)
            self.k = k

        def __call__(self, y):
            self.x = self.x + y
            return self.x * self.k

    return Last(b.next().x, 3.0)(x)


def test_calls_that_make_objects_are_kept():
    report = explained(with_objects, np.arange(5.0))
    assert report.not_kept is None
    (one,) = report.kept
    assert "class Recorder has the attributes and bases it had" in one.guards
    assert "Recorder.scale is 2.0" in one.guards
    np.testing.assert_allclose(report.result, with_objects(np.arange(5.0)), rtol=1e-14)


def test_a_call_that_changes_a_class_or_a_function_is_not_kept():
    def sets(x):
        sets.calls = 1
        return x + 1

    made = Counted.made
    for f in (counts_objects, sets):
        compiled = np_compile.compile(f)
        with config.patch(loops="recorded"):
            for _ in range(5):
                compiled(np.ones(3))
        assert not compiled._keeper.kept
    assert Counted.made == made + 5


def test_nothing_of_the_users_is_asked_for_its_text():
    class Silent:
        def __repr__(self):
            raise AssertionError

        def __call__(self, x):
            return x + 1

    one = Silent()
    for f in (one, lambda x: one(x), lambda x: x if one is x else x + 1):
        with pytest.raises(Refused):
            reach(f)
    why = explained(lambda x, y: x + 1, np.ones(3), one).not_kept
    assert why == f"an argument is a {__name__}.Silent"


def test_a_function_that_is_not_pure_is_explained(capsys):
    for calls in (0, 3):
        report = explained(prints, np.ones(3), calls=calls)
        assert not report.kept
        assert report.not_kept.startswith("the name print, a builtin_function_or_method (line ")
        assert f"\n  not kept: {report.not_kept}" in str(report)
    capsys.readouterr()


def test_a_value_that_python_reads():
    def f(x):
        return x * 2 if x.sum() > 0 else x

    assert explained(f, np.ones(3)).not_kept == "branches on an array's value"


def test_an_element_that_is_read_after_a_write():
    def f(x, y, n):
        for k in range(n):
            x += 1.0
            x *= y[k]
        return x

    why = "Python reads an element of an argument after something was written"
    args = np.ones(3), np.ones(40), 40
    with config.patch(loops="recorded"):
        compiled = np_compile.compile(f, dynamic=False)
        for _ in range(3):
            compiled(*args)
        assert np_compile.explain(compiled)(*args).not_kept == why
        assert explained(f, *args).not_kept is None  # they are data from then on


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (([1.0] * 65,), "lists and dicts among the arguments hold more than 64 things"),
        ((np.ones(4)[::-1],), "an argument is an array of float64 with strides (-8,), which no"),
        ((np.float64(1),), "an argument is a numpy.float64"),
    ],
)
def test_arguments_that_are_not_compared(args, why):
    assert explained(lambda x: np.add(x, 1), *args).not_kept.startswith(why)


def test_results_that_are_not_known():
    def f(x, k):
        y = (x + 1)[1:]
        return [y, y] if k else slice(len(x))

    assert explained(f, np.ones(3), 1).not_kept == "it gives an object in two places"
    assert explained(f, np.ones(3), 0).not_kept == "it gives a slice"


def test_a_call_that_may_be_kept_has_no_reason():
    report = explained(step, np.zeros(2), 1, calls=0)
    assert report.kept == []
    assert report.not_kept is None


@pytest.mark.parametrize("tensors", [False, True])
def test_a_call_with_too_many_arguments(tensors):
    f = np_compile.compile(np_compile.wrap_numpy(lambda x: x + 1) if tensors else lambda x: x + 1)
    x = torch.zeros(2) if tensors else np.zeros(2)
    for _ in range(3):
        f(x)
        with pytest.raises(TypeError, match="takes 1 positional argument but 3 were given"):
            f(x, x, x)
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            f(x, z=x)


def test_a_disabled_function_has_nothing_to_say():
    f = np_compile.compile(step, disable=True)
    report = np_compile.explain(f)(np.zeros(2), 1)
    assert report.kept == []
    assert report.not_kept is None
