"""Calls that begin in C: no Python of ours runs, and functions are functions to everybody."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import pickle
import sys
import threading
import traceback
import types
import warnings
import weakref

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.api import Compiled
from np_compile.capture import state
from np_compile.kernels.run import private

from ..support import wait_for

pytestmark = pytest.mark.usefixtures("without_cupy")


def caller():
    """The name of the function that has called the one that asks."""
    return sys._getframe(2).f_code.co_name


def flat(x, *, by=1, **more):
    if by == 0:
        raise ZeroDivisionError("by nothing")
    return x.reshape(-1), caller(), by, more


def known(f, *args, **kwargs):
    """A compiled function that runs as it stands on such arguments, as C knows."""
    compiled = np_compile.compile(f)
    with config.patch(compile_in="call"):
        compiled._keeper.table(True)
        compiled(*args, **kwargs)  # from here on calls begin in C
        for choice in compiled._options.choices.values():
            choice.way, choice.plain, choice.compiled = "plain", 1.0, 2.0
        compiled(*args, **kwargs)
    assert compiled._keeper.plain
    return compiled


X = np.zeros((2, 2))


def test_a_call_that_is_known_is_the_functions_alone():
    compiled = known(flat, X)
    assert isinstance(Compiled.__call__, types.WrapperDescriptorType)
    result, who, by, more = compiled(X)
    assert np.shares_memory(result, X)
    assert who == "test_a_call_that_is_known_is_the_functions_alone"
    assert (by, more) == (1, {})
    assert compiled(np.zeros(3))[1] != who  # not known


def test_arguments_by_name_and_many_of_them():
    compiled = known(flat, X, by=2)
    assert compiled(X, by=2)[1:] == ("test_arguments_by_name_and_many_of_them", 2, {})
    assert compiled(X, by=3)[2] == 3
    many = {f"k{k}": k for k in range(40)}
    assert compiled(X, **many)[3] == many
    assert compiled(by=2, x=X, **many)[2:] == (2, many)
    everything = np_compile.compile(lambda *args: args)
    assert everything(*range(50)) == tuple(range(50))
    assert everything() == ()


def test_wrong_arguments_have_pythons_words():
    compiled = known(flat, X)
    for args, kwargs in ((), {}), ((X, 2), {}), ((X,), {"x": X}):
        with pytest.raises(TypeError) as plain:
            flat(*args, **kwargs)
        with pytest.raises(TypeError) as found:
            compiled(*args, **kwargs)
        assert str(found.value) == str(plain.value)


def test_an_exception_shows_no_lines_but_the_users():
    places = [0]
    compiled = known(lambda x: x.shape[places[0]], X)
    assert compiled(X) == 2
    places[0] = 9
    with pytest.raises(IndexError) as info:
        compiled(X)
    lines = traceback.extract_tb(info.value.__traceback__)
    assert {line.filename for line in lines} == {__file__}


class Model:
    def __init__(self):
        self.k = 3

    @np_compile.compile
    def bound(self, x):
        return self.k, x.reshape(-1)

    @staticmethod
    @np_compile.compile
    def static(x):
        return x.reshape(-1)

    @classmethod
    @np_compile.compile
    def of_class(cls, x):
        return cls, x.reshape(-1)


def test_methods_of_all_kinds():
    m = Model()
    for _ in range(60):
        k, a = m.bound(X)
        assert k == 3
        assert np.shares_memory(a, X)
        assert np.shares_memory(m.static(X), X)
        cls, b = m.of_class(X)
        assert cls is Model
        assert np.shares_memory(b, X)
    assert np.shares_memory(Model.bound(m, X)[1], X)
    method = types.MethodType(known(flat, X), X)
    assert np.shares_memory(method()[0], X)


def test_methods_are_bound_as_those_of_functions_are():
    known(flat, X)  # calls of the class begin in C
    assert isinstance(Compiled.__get__, types.WrapperDescriptorType)
    assert Compiled.__flags__ & types.FunctionType.__flags__ & 1 << 17  # as methods are called

    class Thing:
        method = np_compile.compile(lambda self, *args, **more: (self, args, more))

    thing, f = Thing(), vars(Thing)["method"]
    assert Thing.method is f
    assert f.__get__(None, Thing) is f
    assert type(thing.method) is types.MethodType
    assert (thing.method.__self__, thing.method.__func__) == (thing, f)
    assert thing.method(1, by=2) == f(thing, 1, by=2) == (thing, (1,), {"by": 2})
    thing.method = lambda: "its own"
    assert thing.method() == "its own"


def flag(kind, bit):
    return kind.__flags__ >> bit & 1


def test_calls_are_handed_over_as_those_of_functions_are():
    known(flat, X)
    for bit in (8, 11, 17):  # Python remembers what it looked up, makes no tuple, nor a method
        assert flag(Compiled, bit) == flag(types.FunctionType, bit) == 1
    with pytest.raises(TypeError):
        Compiled.__call__ = None


def test_functions_call_themselves_as_deep_as_others():
    left = [0]

    def down(x):
        left[0] -= 1
        return again(x) if left[0] > 0 else 0

    def deepest(f):
        low, high = 1, 4000  # it gives 0 for the first, and raises for the other
        while high - low > 1:
            left[0] = middle = (low + high) // 2
            try:
                f(X)
                low = middle
            except RecursionError:
                high = middle
        return low

    again = functools.partial(
        down
    )  # a function of C, of which Python 3.12 has fewer in one another
    plain = deepest(down)
    again = known(down, X)
    for kind in again._keeper.plain.values():
        kind.entry.skips = kind.entry.left = -1  # none is timed
    left[0] = 3
    assert again(X) == left[0] == 0
    assert plain > 500
    assert deepest(again) >= plain - 10


@pytest.mark.parametrize("count", [3, 31, 32, 60])
def test_calls_of_all_forms_that_python_makes(count):
    everything = np_compile.compile(lambda *args, **by_name: (args, by_name))
    known(flat, X)  # calls of the class begin in C
    given = tuple(range(count))
    by_name = {f"k{k}": k for k in given}
    half = {name: by_name[name] for name in [*by_name][count // 2 :]}
    for _ in range(4):
        assert everything(*given) == (given, {})
        assert everything(**by_name) == ((), by_name)
        assert everything(*given, **half) == (given, half)
        assert types.MethodType(everything, "self")(*given, **half) == (("self", *given), half)
        assert functools.partial(everything, "first", k0=0)(*given) == (
            ("first", *given),
            {"k0": 0},
        )
        assert Compiled.__call__(everything, *given, **half) == (given, half)


def test_it_is_a_function_to_everybody():
    compiled = known(flat, X)
    assert inspect.signature(compiled) == inspect.signature(flat)
    assert compiled.__name__ == "flat"
    assert callable(compiled)
    assert weakref.ref(compiled)() is compiled
    assert copy.copy(compiled) is compiled
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert np.shares_memory(other(X)[0], X)
        assert other(np.ones(3))[2] == 1
    assert Compiled.__call__(compiled, X)[0].shape == (4,)
    with pytest.raises(TypeError):
        Compiled.__call__(3, X)


def test_a_compiled_function_of_a_compiled_one():
    compiled = np_compile.compile(known(flat, X))
    for _ in range(40):
        assert np.shares_memory(compiled(X)[0], X)


def test_settings_are_asked_before_each_call():
    compiled = known(flat, X)
    this = "test_settings_are_asked_before_each_call"
    for settings in ({"disable": True}, {"plain": "never"}, {"deterministic": True}):
        with config.patch(**settings):
            assert compiled(X)[1] != this
        assert compiled(X)[1] == this
    config.plain = "never"
    try:
        assert compiled(X)[1] != this
    finally:
        config.plain = "auto"
    assert compiled(X)[1] == this


def test_what_torch_wants_to_see_goes_the_long_way():
    compiled = known(flat, X)
    with torch.device("cpu"):
        assert compiled(X)[1] != "test_what_torch_wants_to_see_goes_the_long_way"
    seen = []

    @torch.compile(backend="eager")
    def g(t):
        torch._dynamo.graph_break()
        seen.append(compiled(X))
        return t + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions of torch tell what they do not trace
        for _ in range(3):
            g(torch.ones(2))
            assert np.shares_memory(seen[-1][0], X)
            assert "resume" not in seen[-1][1]  # which torch has made of the rest of g


def test_each_thread_has_modes_of_its_own():
    compiled = known(flat, X)
    this = "in_thread"

    def in_thread(seen, inside):
        with torch.device("cpu") if inside else contextlib.nullcontext():
            seen.append(compiled(X)[1])
        seen.append(compiled(X)[1])

    for inside in (True, False, True):  # a thread may have the place of one that has ended
        seen = []
        thread = threading.Thread(target=in_thread, args=(seen, inside))
        with torch.device("cpu"):
            assert compiled(X)[1] != "test_each_thread_has_modes_of_its_own"
            thread.start()
            thread.join()
        assert (seen[0] == this) is not inside
        assert seen[1] == this
        assert compiled(X)[1] == "test_each_thread_has_modes_of_its_own"


def test_where_torch_has_its_modes_is_known():
    assert private.modes_at
    assert private.runs_frames
    assert private.usual


def test_captured_code_records_what_is_known_elsewhere():
    inner = known(flat, X)
    outer = np_compile.compile(lambda x: np.sin(inner(x)[0]) + 1)
    with config.patch(plain="never", compile_in="call"):
        for _ in range(4):
            np.testing.assert_allclose(outer(X), np.ones(4))
    assert state.captures.value == 0
    assert inner(X)[1] == "test_captured_code_records_what_is_known_elsewhere"


def test_captures_are_counted_where_calls_raise():
    def f(x, bad):
        y = np.sin(x)
        if bad:
            raise KeyError(bad)
        return y

    compiled = np_compile.compile(f)
    with config.patch(plain="never", compile_in="call"):
        for bad in (False, True, False, True):
            try:
                compiled(np.ones(3), bad)
            except KeyError:
                assert bad
            assert state.captures.value == 0


def test_a_forked_process_counts_its_own_captures():
    compiled = known(flat, X)
    with state._counting:  # as if another thread were about to begin one
        state.captures.value += 1
        child = os.fork()
        if child == 0:
            mine = compiled(X)[1] == "test_a_forked_process_counts_its_own_captures"
            with state._counting:
                os._exit(0 if mine and state.captures.value == 0 else 1)
        state.captures.value -= 1
    assert os.waitpid(child, 0)[1] == 0


def test_functions_of_python_and_numpy_call_it():
    compiled = known(flat, X)
    assert [r[0].shape for r in map(compiled, [X] * 3)] == [(4,)] * 3
    assert functools.partial(compiled, by=2)(X)[2] == 2
    first = np_compile.compile(lambda a: a[0])
    for _ in range(40):
        np.testing.assert_array_equal(np.apply_along_axis(first, 0, np.eye(3)), [1.0, 0.0, 0.0])
    assert sorted([3, 1, 2], key=np_compile.compile(lambda n: -n)) == [3, 2, 1]


def test_a_call_within_one():
    def down(x, n):
        return (n, *(again(x, n - 1) if n else (x.reshape(-1),)))

    again = np_compile.compile(down)
    for _ in range(40):
        result = again(X, 5)
        assert result[:-1] == (5, 4, 3, 2, 1, 0)
        assert np.shares_memory(result[-1], X)
    deep = np_compile.compile(lambda x, n: deep(x, n - 1) if n else x.reshape(-1))
    assert np.shares_memory(deep(X, 50), X)


def collatz(n):
    steps = 0
    found = {}
    while n != 1:
        found[str(n)] = steps  # texts are not read
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps, caller()


def triple(n):
    return 3 * n, caller()


def test_what_stands_is_called_until_its_code_changes():
    compiled = np_compile.compile(types.FunctionType(collatz.__code__, globals(), "collatz"))
    for _ in range(60):
        assert compiled(27)[0] == 111
    if compiled._reading.stands is None:
        pytest.fail(f"it is compiled: {compiled._reading.report()}")
    this = "test_what_stands_is_called_until_its_code_changes"

    def calls():
        return compiled(27)[1] == "calls"

    wait_for(calls)  # C is made beside the program
    assert compiled(27)[1] == this
    with pytest.raises(TypeError):
        compiled("7")
    with config.patch(loops="recorded"):
        assert compiled(27)[1] != this
    compiled.__wrapped__.__code__ = triple.__code__
    assert compiled(27)[0] == 81


def test_threads_share_a_function():
    compiled = known(flat, X)
    wrong = []

    def run(n):
        for k in range(2000):
            x = X if k % 3 else np.ones(n)
            if not np.shares_memory(compiled(x)[0], x):
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nothing_of_a_call_is_held():
    compiled = known(flat, X, by=2)
    x = X.copy()
    for _ in range(100):
        compiled(x, by=2)
        compiled(x)
    many = {f"k{k}": x for k in range(40)}
    count = sys.getrefcount(x), sys.getrefcount(compiled), sys.getrefcount(flat)
    for _ in range(300):
        compiled(x, by=2)
        compiled(x)
        compiled(x, **many)
    after = sys.getrefcount(x), sys.getrefcount(compiled), sys.getrefcount(flat)
    assert all(abs(a - b) < 10 for a, b in zip(after, count, strict=True))
