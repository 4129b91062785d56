"""Compiled functions, and the others that are made of functions: pickled and copied as they are."""

from __future__ import annotations

import copy
import functools
import operator
import os
import pickle
import subprocess
import sys
import types

import cloudpickle
import numpy as np
import pytest
import torch

import np_compile

FACTOR = 3.0
X = np.arange(3.0)
compile = functools.partial(np_compile.compile, backend="eager")


def wrapped_and_compiled(f):
    return compile(np_compile.wrap_numpy(f))


@compile(dynamic=True)
def scaled(x):
    return x * FACTOR


class Registered:
    """Python makes class methods of two functions by their names."""

    found = ()

    @compile
    def __init_subclass__(cls, scale=1.0):
        cls.scale = scale
        Registered.found += (cls.__name__,)

    @compile
    def __class_getitem__(cls, key):
        return cls.__name__, key


def test_class_methods_by_name():
    class Twice(Registered, scale=2.0):
        pass

    assert (Twice.scale, Registered.found) == (2.0, ("Twice",))
    assert (Twice[3], Registered["x"]) == (("Twice", 3), ("Registered", "x"))


@compile
def factorial(x, n):
    return x if n == 0 else factorial(x, n - 1) * n


@np_compile.compile(backend="eager")
@np_compile.wrap_numpy
def on_tensors(x):
    return np.sqrt(x)


@np_compile.wrap_numpy
def wrapped(x):
    return np.sqrt(x)


@np_compile.disable
def disabled(x):
    return x * FACTOR


def plain(x, k=2.0):
    return x * k


class Model:
    def __init__(self):
        self.k = 2.0
        self.step = compile(self.plainly)

    def plainly(self, x):
        return x * self.k

    @compile
    def method(self, x):
        return x * self.k

    @staticmethod
    @compile
    def static(x):
        return x * 7.0


of_another_name = compile(plain, fullgraph=True)
partial = compile(functools.partial(plain, k=5.0))
wrapped_elsewhere = np_compile.wrap_numpy(plain)
disabled_elsewhere = np_compile.disable(plain)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "f", [scaled, factorial, on_tensors, wrapped, disabled, Model.method, Model.static],
    ids=lambda f: f.__qualname__,
)  # fmt: skip
def test_what_its_name_leads_to_is_pickled_by_name(f, protocol):
    assert pickle.loads(pickle.dumps(f, protocol)) is f
    assert pickle.loads(cloudpickle.dumps(f)) is f


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "f", [of_another_name, partial, wrapped_elsewhere, disabled_elsewhere, Model().step]
)
def test_what_has_no_name_is_pickled_as_what_it_was_made_of(f, protocol):
    x = torch.arange(3.0) if f is wrapped_elsewhere else X
    got = pickle.loads(pickle.dumps(f, protocol))
    assert type(got) is type(f)
    assert got is not f
    np.testing.assert_array_equal(got(x), f(x))
    assert got._settings() == f._settings()


def test_an_object_that_holds_one():
    model = Model()
    model.step(X)
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        made.k = 10.0
        assert made.step(X).tolist() == made.method(X).tolist() == [0.0, 10.0, 20.0]
        assert pickle.loads(pickle.dumps(made.method))(X).tolist() == [0.0, 10.0, 20.0]
    assert model.step(X).tolist() == [0.0, 2.0, 4.0]
    assert copy.copy(model).step is model.step


def test_copies_are_the_function_itself():
    for f in (scaled, on_tensors, wrapped, disabled, compile(lambda x: x)):
        assert copy.copy(f) is f
        assert copy.deepcopy([f])[0] is f


def local():
    k = 4.0

    @compile(dynamic=False)
    def inner(x, n=1):
        return x * k if n == 0 else inner(x, n - 1)

    inner.note = "mine"
    return inner


@pytest.mark.parametrize("make", [compile, np_compile.wrap_numpy, wrapped_and_compiled])
@pytest.mark.parametrize("outer", [compile, np_compile.wrap_numpy, wrapped_and_compiled])
def test_wraps_leaves_it_the_function_that_it_is(make, outer):
    calls = []

    @make
    def inner(x):
        return x + 1

    inner.unit = "m"

    @functools.wraps(inner)
    @outer
    def logged(x):
        calls.append(len(x))
        return inner(x) * 2

    x = np.ones(2) if make is outer is compile else torch.ones(2)
    for k in range(3):
        assert logged(x).tolist() == [4, 4]
        assert inner(x).tolist() == [2, 2]
        assert len(calls) == k + 1
    assert (logged.__name__, logged.unit, logged.__wrapped__) == ("inner", "m", inner)


def test_a_local_function_is_pickled_with_its_code():
    f = local()
    with pytest.raises(Exception, match=r"Can't (pickle|get) local object"):
        pickle.dumps(f)
    for make in (cloudpickle.dumps(f), cloudpickle.dumps(compile(lambda x: x * 4.0))):
        got = pickle.loads(make)
        assert got(X).tolist() == [0.0, 4.0, 8.0]
    got = pickle.loads(cloudpickle.dumps(f))
    assert got is not f
    assert got.note == "mine"
    assert got._options.dynamic is False
    with pytest.raises(AttributeError, match="'Compiled' object has no attribute 'other'"):
        _ = got.other
    made = pickle.loads(cloudpickle.dumps(np_compile.disable(lambda x: x * 4.0)))
    assert made(X).tolist() == [0.0, 4.0, 8.0]


def test_a_function_of_a_module_that_the_other_side_has_not():
    module = types.ModuleType("users_module")
    sys.modules["users_module"] = module
    try:
        exec(
            "import numpy as np, np_compile\n"
            "K = 3.0\n"
            "@np_compile.compile(backend='eager', fullgraph=True)\n"
            "def f(x, n): return x if n == 0 else f(x, n - 1) * K\n"
            "@np_compile.compile(backend='eager')\n"
            "@np_compile.wrap_numpy\n"
            "def g(x): return np.sqrt(x) * K\n"
            "@np_compile.disable\n"
            "def d(x): return x * K\n"
            "class C:\n"
            "  @np_compile.compile(backend='eager')\n"
            "  def m(self, x): return x * K\n",
            vars(module),
        )
        assert pickle.loads(pickle.dumps(module.f)) is module.f
        cloudpickle.register_pickle_by_value(module)
        try:
            made = cloudpickle.dumps((module.f, module.g, module.d, module.C()))
        finally:
            cloudpickle.unregister_pickle_by_value(module)
        f, g, d, c = pickle.loads(made)
        assert f is not module.f  # it came with its code
    finally:
        del sys.modules["users_module"]
    f, g, d, c = pickle.loads(made)
    assert f._options.fullgraph is True
    assert f(X, 2).tolist() == [0.0, 9.0, 18.0]
    assert g(torch.tensor([4.0])).tolist() == [6.0]
    assert d(X).tolist() == c.m(X).tolist() == [0.0, 3.0, 6.0]
    assert f.__name__ == "f"
    assert f.__wrapped__.__qualname__ == "f"


def test_one_that_takes_the_name_of_another():
    module = types.ModuleType("users_module")
    sys.modules["users_module"] = module
    try:
        source = "import np_compile\n@np_compile.wrap_numpy\ndef f(x): return x * 2\n"
        exec(source, vars(module))
        wrapped = module.f
        assert pickle.loads(pickle.dumps(wrapped)) is wrapped
        module.f = compile(wrapped)
        assert pickle.loads(pickle.dumps(module.f)) is module.f
        cloudpickle.register_pickle_by_value(module)
        try:
            made = cloudpickle.dumps([module.f, compile(module.f.__wrapped__)])
        finally:
            cloudpickle.unregister_pickle_by_value(module)
    finally:
        del sys.modules["users_module"]
    for f in pickle.loads(made):
        assert type(f) is type(of_another_name)
        assert pickle.loads(cloudpickle.dumps(f))(torch.ones(2)).tolist() == [2.0, 2.0]
        assert f(torch.ones(2)).tolist() == [2.0, 2.0]


SCRIPT = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from joblib.externals.loky import get_reusable_executor

import np_compile

K = 3.0


@np_compile.compile
def f(x):
    return np.sin(x) * K


class C:
    @np_compile.compile
    def m(self, x):
        return x * K


def call(g, x):
    return g(x)


if __name__ == "__main__":
    x = np.linspace(0.0, 1.0, 50_000)
    for _ in range(4):
        want = f(x)
    for method in ("fork", "spawn"):
        if method not in multiprocessing.get_all_start_methods():
            continue
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            assert all(np.allclose(r, want) for r in pool.map(f, [x, x, x])), method
            assert np.allclose(pool.submit(call, C().m, x).result(), x * K), method
    functions = [f, np_compile.compile(lambda x: np.sin(x) * 3.0)]
    workers = get_reusable_executor(max_workers=1)  # joblib's
    assert all(np.allclose(workers.submit(g, x).result(), want) for g in functions)
    workers.shutdown()
    print("done")
"""


def test_in_other_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment,
        timeout=300, check=False,
    )  # fmt: skip
    assert ran.stdout == "done\n", ran.stderr


def test_those_who_look_into_a_function_find_what_it_was_made_of():
    def f(x, n=2, *, k=3.0):
        return x * n + k + X[0]

    for make in (compile, np_compile.wrap_numpy, np_compile.disable):
        made = make(f)
        assert made.__code__ is f.__code__
        assert made.__code__.co_varnames[: made.__code__.co_argcount] == ("x", "n")
        assert made.__defaults__ == (2,)
        assert made.__kwdefaults__ == {"k": 3.0}
        assert made.__globals__ is globals()
        assert made.__closure__ is None
    assert not hasattr(compile(functools.partial(f, n=1)), "__code__")


class Compiled:
    __call__ = compile(lambda self, x: x * 3)


class Static:
    __call__ = staticmethod(lambda x: x + 9)


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (functools.partial(np.add, 1), 1),
        (functools.partial(functools.partial(np.multiply, 2)), 0),
        (functools.partial(sum), 3),
        (functools.partial(operator.itemgetter(0)), 0),
        (functools.partial(compile(lambda a, b: a + b), 1), 1),
        (functools.partial(Compiled()), 0),
        (Compiled(), 0),
        (Static(), 9),
    ],
)
def test_what_has_no_code_of_its_own_is_called(given, first):
    """`functools.partial` of a function in C hung; a `__call__` that is static got its object."""
    for make in (compile, np_compile.compile):
        made = make(given)
        for _ in range(3):
            assert np.ravel(made(X))[0] == first
