"""Calls that run without Python: what proves that they may, and what they give."""

from __future__ import annotations

import builtins
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.replay.guards import Refused
from np_compile.replay.proof import reach
from np_compile.tools.explain import kept_calls

from ..support import examples

FACTOR = 2.0
SEEN: list = []


def rng():
    return np.random.default_rng(0)


def repeated(f, *args, calls=4):
    """The compiled function after some calls on copies of the arguments, and its last result."""
    compiled = np_compile.compile(f)
    for _ in range(calls):
        result = compiled(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    return compiled, result


@pytest.fixture(autouse=True)
def _never_plain():
    with config.patch(plain="never"):
        yield


def scaled(x):
    return FACTOR * np.sin(x)


def helper(x):
    return scaled(x) + 1


def kept(compiled):
    return len(kept_calls(compiled))


# What is proved


def appends(x):
    SEEN.append(1)
    return x + 1


def prints(x):
    print("called")
    return x + 1


def draws(x):
    return x + np.random.random()


def counts(x):
    counts.calls += 1
    return x + 1


counts.calls = 0


def has_an_attribute(x):
    return x * has_an_attribute.factor


has_an_attribute.factor = 2.0


def sets_state(x):
    np.seterr(all="ignore")
    return x + 1


def writes_global(x):
    global FACTOR
    FACTOR = 3.0
    return x + 1


def in_a_block(x):
    with np.errstate(all="raise"):
        return x / 0.0


def changes_a_default(x, cache=[]):  # noqa: B006
    cache.append(1)
    return x + len(cache)


def makes_a_list(x):
    parts = [np.sin(x) * k for k in range(3)]
    total = sum(parts)
    return total, [p + 1 for p in parts]


@pytest.mark.parametrize(
    "f",
    [
        appends, prints, draws, counts, sets_state, writes_global, in_a_block, changes_a_default,
        lambda x: x + 1 if x.__array_interface__["data"][0] % 64 else x,
        lambda x: x.tofile("nowhere"), lambda x: setattr(x, "shape", (3,)), lambda x: input(),
        has_an_attribute, lambda x, y: np.shares_memory(x, y), lambda x: np.ndarray.base,
        lambda x: x + 1 if x.base is None else x, lambda x: x.flags.owndata, lambda x: x.data,
        lambda x, y: x if np.may_share_memory(x, y) else y, lambda x: x.ctypes.data, np.linalg.norm,
    ],
)  # fmt: skip
def test_functions_that_may_do_more_than_compute(f):
    with pytest.raises(Refused):
        reach(f)


@pytest.mark.parametrize(
    "f", [scaled, helper, makes_a_list, lambda x: x.T @ x, lambda x: np.linalg.norm(x, axis=0)]
)
def test_functions_that_only_compute(f):
    assert reach(f).guards


def writes_a_variable_of_another_function():
    last = 0

    def f(x):
        nonlocal last
        last = len(x)
        return x + 1

    return f, lambda: last


def test_a_variable_of_another_function_is_written_in_every_call():
    f, last = writes_a_variable_of_another_function()
    with pytest.raises(Refused):
        reach(f)
    compiled, _ = repeated(f, np.ones(3), calls=5)
    for n in (4, 3):
        compiled(np.ones(n))
        assert last() == n


def test_names_that_a_dict_of_another_kind_leads_to():
    class Names(dict):
        def __getitem__(self, name):
            return 5.0 if name == "K" else super().__getitem__(name)

    scope = Names(np=np, K=2.0)
    exec("def f(x): return np.sin(x) * K", scope)
    with pytest.raises(Refused):
        reach(scope["f"])


def test_side_effects_happen_in_every_call():
    SEEN.clear()
    compiled, _ = repeated(appends, np.ones(3), calls=5)
    assert len(SEEN) == 5
    assert kept(compiled) == 0


def test_random_numbers_are_drawn_in_every_call():
    compiled = np_compile.compile(draws)
    np.random.seed(0)
    got = [compiled(np.zeros(2))[0] for _ in range(4)]
    np.random.seed(0)
    assert got == [np.random.random() for _ in range(4)]


# What is compared


def test_a_call_like_the_kept_one_runs_no_python():
    calls = []

    def f(x):
        return np.sin(x) + 1

    compiled, _ = repeated(f, np.ones(5))
    assert kept(compiled) == 1
    compiled._run = lambda *a: calls.append(a)
    x = rng().random(5)
    np.testing.assert_allclose(compiled(x), np.sin(x) + 1, rtol=1e-15)
    assert not calls


def test_other_arrays_and_values():
    def f(x, k, name):
        return x * k if name == "mul" else x + k

    compiled = np_compile.compile(f)
    args = [
        (np.arange(4.0), 2.0, "mul"), (np.arange(4.0), 3.0, "mul"), (np.arange(4.0), 2, "mul"),
        (np.arange(4), 2.0, "mul"), (np.arange(4.0), 2.0, "add"), (np.arange(5.0), 2.0, "mul"),
        (np.arange(8.0)[::2], 2.0, "mul"), (np.arange(4.0)[::-1], 2.0, "mul"),
        (np.arange(4.0, dtype=">f8"), 2.0, "mul"), (np.arange(4.0), -0.0, "mul"),
        (np.arange(4.0), 0.0, "mul"), (np.arange(4.0), np.nan, "mul"),
        (np.arange(4.0), True, "mul"),
        (np.arange(4.0), np.float32(2), "mul"), (3.0, 2.0, "mul"), ([1.0, 2.0], 2, "mul"),
        (np.float64(3), 2.0, "mul"),
    ]  # fmt: skip
    for _ in range(3):
        for a in args:
            got, want = compiled(*a), f(*a)
            assert type(got) is type(want)
            assert repr(got) == repr(want)
            if isinstance(want, np.ndarray):
                assert np.array_equal(np.signbit(got), np.signbit(want))


def test_a_rebound_global_is_seen(monkeypatch):
    compiled, _ = repeated(helper, np.ones(3))
    assert kept(compiled) == 1
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    np.testing.assert_allclose(compiled(np.ones(3)), 5 * np.sin(1) + 1)
    monkeypatch.setitem(globals(), "scaled", lambda x: x)
    np.testing.assert_allclose(compiled(np.ones(3)), np.full(3, 2.0))


def test_a_changed_helper_default_and_closure_are_seen():
    factor = 2.0

    def inner(x, shift=1.0):
        return x * factor + shift

    def f(x):
        return inner(x) + 0.0

    compiled, _ = repeated(f, np.ones(3))
    assert kept(compiled) == 1
    inner.__defaults__ = (10.0,)
    assert compiled(np.ones(3))[0] == 12.0
    factor = 3.0
    assert compiled(np.ones(3))[0] == 13.0
    inner.__code__ = (lambda x, shift=1.0: x - shift + 0 * factor).__code__
    assert compiled(np.ones(3))[0] == f(np.ones(3))[0]


def test_an_attribute_of_a_function_and_an_emptied_closure_are_seen():
    def scale(x):
        return x * scale.factor if with_attribute else x * 2.0  # noqa: F821

    with_attribute = False

    def f(x):
        return scale(x) + 0.0

    compiled, _ = repeated(f, np.ones(3))
    scale.factor = 5.0
    with_attribute = True
    assert compiled(np.ones(3))[0] == 5.0
    scale.__dict__.clear()
    with_attribute = False
    assert compiled(np.ones(3))[0] == 2.0
    del with_attribute
    with pytest.raises(NameError):
        compiled(np.ones(3))

    compiled, _ = repeated(has_an_attribute, np.ones(3))
    assert kept(compiled) == 0


# What a function of x reads, and a change of it. `set` is monkeypatch.setattr.
_RECORD = "R = np.zeros((), [('a', float)])[()]\nR['a'] = 2.0\n"
_MAKE = "def make():\n  k = 2.0\n  {}\n  def f(x): return h(x) + 1\n  return f, h\nf, h = make()"
_METHOD = "class C:\n  def m(self, x, k=2.0): return x * k\nm = C().m\ndef f(x): return m(x) + 1"
_PARTIAL = "from functools import partial\ndef h(x, k=2.0): return x * k\n"
_CLASS = (
    "class B:\n  b = 2.0\n  p = property(lambda self: 2.0)\n"
    "class C(B):\n  c = 2.0\n  def __init__(self, k=2.0): self.k = k\n"
    "  def m(self, x): return x * self.k * self.c\n  s = staticmethod(lambda x: x + 1)\n"
    "  def __neg__(self): return 2.0\n"
    "def f(x):\n  o = C()\n  y = o.s(o.m(x)) * o.p + o.b\n"
    "  return y * -o * (1 if o else 2)\n"
)
_SIN = "def f(x): return np.sin(x) + 1"
_OWN = "own = {'__builtins__': {'abs': lambda x: x * 2, 'K': 3.0}}\nexec(%r, own)\n"
CHANGES = {
    "a record": (_RECORD + "def f(x): return x * R['a']", "R['a'] = 5.0"),
    "a record as default": (_RECORD + "def f(x, r=R): return x * r['a']", "R['a'] = 5.0"),
    "a record in a tuple": (_RECORD + "T = R, 1\ndef f(x): return x * T[0]['a']", "R['a'] = 5.0"),
    "a field's name": (
        "D = np.dtype([('a', float)])\ndef f(x): return x * len(D.names[0])", "D.names = 'long',"
    ),
    "an enum's value": (
        "import enum\nclass E(enum.IntEnum): A = 2\nA = E.A\ndef f(x): return x * A.value",
        "A._value_ = 5",
    ),
    "an operator": (
        "V = [2.0]\nclass S(float):\n  def __mul__(self, x): return x * V[0]\nR = S(1.0)\n"
        "def f(x): return R * x", "V[0] = 5.0",
    ),
    "a keyword default in place": (
        "def f(x, *, k=2.0): return x * k", "f.__kwdefaults__['k'] = 5.0",
    ),
    "a keyword default that is gone": (
        "def h(x, *, k=2.0): return x * k\ndef f(x): return h(x)", "del h.__kwdefaults__['k']",
    ),
    "a helper's default": (
        "def h(x, k=2.0): return x * k\ndef f(x): return h(x) + 1", "h.__defaults__ = 5.0,",
    ),
    "a helper's keyword defaults": (
        "def h(x, *, k=2.0): return x * k\ndef f(x): return h(x) + 1",
        "h.__kwdefaults__ = {'k': 5.0}",
    ),
    "a helper's keyword default in place": (
        "def h(x, *, k=2.0): return x * k\ndef f(x): return h(x) + 1",
        "h.__kwdefaults__['k'] = 5.0",
    ),
    "a helper's code": (
        "K = 7.0\ndef h(x): return x * 2.0\ndef f(x): return h(x) + 1",
        "h.__code__ = (lambda x: np.cos(x) * K).__code__",
    ),
    "a helper's helper": (
        "def g(x, k=2.0): return x * k\ndef h(x): return g(x)\ndef f(x): return h(x) + 1",
        "g.__code__ = (lambda x, k: x - k).__code__",
    ),
    "the default of a helper in a closure": (
        _MAKE.format("def h(x, m=3.0): return x * k + m"), "h.__defaults__ = 5.0,",
    ),
    "the keyword default of a helper in a closure": (
        _MAKE.format("def h(x, *, m=3.0): return x * k + m"), "h.__kwdefaults__['m'] = 5.0",
    ),
    "the code of a helper in a closure": (
        _MAKE.format("def h(x): return x * k"),
        "def other(k):\n  return lambda x: x - k\nh.__code__ = other(1).__code__",
    ),
    "a method's default": (_METHOD, "C.m.__defaults__ = 5.0,"),
    "a method's code": (_METHOD, "C.m.__code__ = (lambda self, x, k: x - k).__code__"),
    "the default of what is partial": (
        _PARTIAL + "p = partial(h)\ndef f(x): return p(x) + 1", "h.__defaults__ = 5.0,",
    ),
    "a keyword of what is partial": (
        _PARTIAL + "p = partial(h, k=3.0)\ndef f(x): return p(x) + 1", "p.keywords['k'] = 5.0",
    ),
    "all of what is partial": (
        _PARTIAL + "p = partial(h, k=3.0)\ndef f(x): return p(x) + 1",
        "p.__setstate__((h, (), {'k': 5.0}, None))",
    ),
    "what a decorator has wrapped": (
        "import functools\ndef d(g):\n  @functools.wraps(g)\n  def w(*a): return g(*a)\n"
        "  return w\n@d\ndef h(x, k=2.0): return x * k\ndef f(x): return h(x) + 1",
        "h.__wrapped__.__defaults__ = 5.0,",
    ),
    "a function in a dict": (
        "def h(x): return x * 2.0\nD = {'h': h}\ndef f(x): return D['h'](x) + 1",
        "h.__code__ = (lambda x: x * 5.0).__code__",
    ),
    "what a compiled helper wraps": (
        "import np_compile\ndef g(x, k=2.0): return x * k\n"
        "h = np_compile.compile(g, backend='eager')\ndef f(x): return h(x) + 1",
        "g.__defaults__ = 5.0,",
    ),
    "a function of NumPy": (_SIN, "set(np, 'sin', np.cos)"),
    "a function in NumPy of the user's": (
        _SIN, "from numpy import sin\nK = 3.0\ndef mine(x): return sin(x) * K\n"
        "set(np, 'sin', mine)",
    ),
    "a function of NumPy that is gone": (_SIN, "undo.delattr(np, 'sin')"),
    "a function of a module of NumPy": (
        "def f(x): return np.linalg.norm(x, axis=0)",
        "set(np.linalg, 'norm', lambda x, axis: np.max(x))",
    ),
    "a module of NumPy": (
        "def f(x): return np.linalg.norm(x, axis=0)",
        "class L:\n  norm = staticmethod(lambda x, axis: np.max(x))\nset(np, 'linalg', L)",
    ),
    "a function of an imported NumPy": (
        "def f(x):\n  import numpy as n\n  return n.sin(x)", "set(np, 'sin', np.cos)",
    ),
    "a function that makes arrays": (
        "def f(x): return x + np.zeros(5)", "set(np, 'zeros', np.ones)",
    ),
    "a function of NumPy's that draws": (
        "def f(x): return x + np.random.default_rng(0).random(5)",
        "make = np.random.default_rng\nset(np.random, 'default_rng', lambda s: make(5))",
    ),
    "a constant of NumPy": ("def f(x): return x * np.pi", "set(np, 'pi', 3)"),
    "a type of NumPy": ("def f(x): return x.astype(np.float32)", "set(np, 'float32', np.float64)"),
    "a new name in NumPy": (
        "undo.setattr(np, 'mine', 2.0, raising=False)\ndef f(x): return x * np.mine",
        "np.mine = 5.0",
    ),
    "a function of math": ("def f(x): return x * math.sin(1.0)", "set(math, 'sin', math.cos)"),
    "a builtin": ("def f(x): return abs(x)", "set(builtins, 'abs', lambda x: x * 5.0)"),
    "a builtin of which recording has its own": (
        "def f(x): return x * max(1.0, 2.0)", "set(builtins, 'max', lambda a, b: a)",
    ),
    "a global in the place of a builtin": (
        "def f(x): return x * sum((1.0, 2.0))", "sum = lambda v: 5.0",
    ),
    "a new builtin": (
        "undo.setattr(builtins, 'MINE', 2.0, raising=False)\ndef f(x): return x * MINE",
        "builtins.MINE = 5.0",
    ),
    "a builtin that a global had hidden": (
        "MINE = 2.0\ndef f(x): return x * MINE",
        "undo.setattr(builtins, 'MINE', 5.0, raising=False)\ndel MINE",
    ),
    "builtins of its own": (
        _OWN % "def f(x): return abs(x) * K" + "f = own['f']",
        "own['__builtins__'].update(abs=lambda x: x * 7, K=5.0)",
    ),
    "a helper's builtins of its own": (
        _OWN % "def h(x): return abs(x) * K" + "h = own['h']\ndef f(x): return h(x) + abs(x)",
        "own['__builtins__'].update(abs=lambda x: x * 7, K=5.0)",
    ),
    "a class's attribute": (
        "class S(float): k = 2.0\ndef f(x): return x * S.k", "S.k = 5.0",
    ),
    **{
        f"of a class of objects, {what}": (_CLASS, change)
        for what, change in {
            "a method": "C.m = lambda self, x: x - self.k",
            "a method's code": "C.m.__code__ = (lambda self, x: x - self.k).__code__",
            "a method's default": "C.__init__.__defaults__ = 5.0,",
            "a constant": "C.c = 5.0",
            "a property": "C.p = property(lambda self: 5.0)",
            "what a property asks": "B.p.fget.__code__ = (lambda self: 5.0).__code__",
            "a static method": "C.s = staticmethod(lambda x: x - 1)",
            "an operator": "C.__neg__ = lambda self: 5.0",
            "a truth that is new": "C.__bool__ = lambda self: False",
            "a property that is new": "C.k = property(lambda self: 5.0, lambda self, v: None)",
            "an attribute of its base": "B.b = 5.0",
            "its bases": "class D:\n  p, b = 1.0, 9.0\nC.__bases__ = D,",
            "its name": "class C(C): c = 5.0",
            "what reads attributes": "C.__getattribute__ = lambda self, n: 5.0 if n == 'k' else "
            "object.__getattribute__(self, n)",
        }.items()
    },
    "the base of a class that is made": (
        "class B: k = 2.0\ndef f(x):\n  class C(B):\n    def m(self, x): return x * self.k\n"
        "  return C().m(x)", "B.k = 5.0",
    ),
    "a name in a class that is made": (
        "K = 2.0\ndef f(x):\n  class C: k = K\n  return x * C.k", "K = 5.0",
    ),
    "an attribute of a module of another kind": (
        "import types\nV = [2.0]\nclass M(types.ModuleType): k = property(lambda self: V[0])\n"
        "m = M('numpy.mine')\ndef f(x): return x * m.k", "V[0] = 5.0",
    ),
    **{
        f"an attribute of a {kind}": (
            f"class S({kind}): pass\nR = S({value})\nR.k = 2.0\ndef f(x{given}): return x * R.k",
            "R.k = 5.0",
        )
        for given in ("", ", R=R")
        for kind, value in [("float", 1.0), ("int", 1), ("str", "'a'"), ("np.float64", 1.0)]
    },
}  # fmt: skip


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "recorded"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_function_reads_may_change(change, keeps):
    def seen(function):
        try:
            return function(np.linspace(0.1, 1.0, 5)).tolist()
        except (AttributeError, TypeError) as e:
            return repr(e)

    with pytest.MonkeyPatch.context() as undo:  # and nothing else runs on names that are changed
        scope = {"np": np, "math": math, "builtins": builtins, "undo": undo, "set": undo.setattr}
        source, changes = CHANGES[change]
        exec(source, scope)
        f = scope["f"]
        compiled = np_compile.compile(f, backend="eager")
        if not keeps:
            compiled._keeper = None
        before, first = seen(f), [seen(compiled) for _ in range(3)]
        exec(changes, scope)
        after, then = seen(f), [seen(compiled) for _ in range(3)]
    assert after != before
    for got, want in [(r, before) for r in first] + [(r, after) for r in then]:
        assert got == want if type(want) is str else np.allclose(got, want, rtol=1e-15)


PLACES = {
    "a global": lambda s, v: s.update(K=v),
    "a default": lambda s, v: setattr(s["f"], "__defaults__", (v,)),
    "a keyword default": lambda s, v: s["f"].__kwdefaults__.update(m=v),
    "a cell": lambda s, v: s["put"](v),
    "a helper's default": lambda s, v: setattr(s["h"], "__defaults__", (v,)),
    "a helper's code": lambda s, v: setattr(
        s["h"], "__code__", (s["add"] if v > 2 else s["multiply"]).__code__
    ),
    "NumPy": lambda s, v: setattr(np, "pi", v),
    "a function of NumPy": lambda s, v: setattr(np, "sin", (np.cos, np.exp)[int(v) % 2]),
    "a list": lambda s, v: s["L"].__setitem__(0, v),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(PLACES)), st.integers(1, 4)), max_size=12))
@settings(deadline=None, max_examples=examples(30))
def test_any_of_them_at_any_time(steps):
    scope = {"np": np}
    exec(
        "K, L = 1.0, [1.0]\n"
        "def multiply(x, k=1.0): return x * k\n"
        "def add(x, k=1.0): return x + k * K\n"
        "def h(x, k=1.0): return x * k\n"
        "def make():\n"
        "  c = 1.0\n"
        "  def f(x, d=1.0, *, m=1.0): return h(np.sin(x) * d, c) + np.pi * K * h(x * m + len(x))\n"
        "  def g(x): return f(x) * L[0]\n"
        "  def put(v):\n"
        "    nonlocal c\n"
        "    c = v\n"
        "  return f, g, put\n"
        "f, g, put = make()",
        scope,
    )
    x = np.linspace(0.1, 1.0, 4)
    pairs = [(f, np_compile.compile(f, backend="eager")) for f in (scope["f"], scope["g"])]
    with pytest.MonkeyPatch.context() as undo, config.patch(plain="never"):
        undo.setattr(np, "pi", np.pi)
        undo.setattr(np, "sin", np.sin)
        for place, value in [("a global", 1.0)] * 3 + steps:
            PLACES[place](scope, float(value))
            for plain, compiled in pairs:
                np.testing.assert_allclose(compiled(x), plain(x), rtol=1e-14)
    assert kept(pairs[0][1]) <= 1
    assert kept(pairs[1][1]) == 0


def test_what_captured_code_changes_of_a_helper_is_changed():
    scope = {"np": np}
    exec(
        "def h(x, k=2.0, *, m=1.0): return x * k + m\n"
        "def other(x, k, *, m): return x - k - m\n"
        "def f(x, n):\n"
        "  if n == 1: h.__defaults__ = 5.0,\n"
        "  if n == 2: h.__kwdefaults__ = {'m': 7.0}\n"
        "  if n == 3: h.__code__ = other.__code__\n"
        "  return h(x)\n",
        scope,
    )
    compiled = np_compile.compile(scope["f"], backend="eager")
    x = np.ones(3)
    for n, want in ((0, 3.0), (1, 6.0), (0, 6.0), (2, 12.0), (0, 12.0), (3, -11.0), (0, -11.0)):
        assert compiled(x, n).tolist() == [want] * 3
        assert scope["h"](1.0) == want


def test_a_function_whose_code_is_exchanged_while_another_is_captured():
    scope = {"np": np, "np_compile": np_compile}
    exec(
        "K, SEEN = 2.0, []\n"
        "def g(x):\n"
        "  SEEN.append(1)\n"
        "  return x * K\n"
        "def h(x): return x * K\n"
        "FUNCTIONS = [g, h]\n"
        "inner = np_compile.compile(lambda x: g(x) + 1, backend='eager')\n"
        "pure = np_compile.compile(lambda x: h(x) + 1, backend='eager')\n"
        "@np_compile.disable\n"
        "def calls(x): return [inner(x) + pure(x) for _ in range(5)][-1]\n"
        "outer = np_compile.compile(lambda x: FUNCTIONS[0](x) + calls(x) + FUNCTIONS[1](x),\n"
        "  backend='eager')\n",
        scope,
    )
    x = np.ones(2)
    for k in (2.0, 3.0):
        scope["K"] = k
        assert scope["outer"](x).tolist() == [4 * k + 2] * 2
        assert [scope["pure"](x).tolist() for _ in range(3)] == [[k + 1] * 2] * 3
    assert len(scope["SEEN"]) == 12
    assert kept(scope["inner"]) == 0
    assert kept(scope["pure"]) == 1


def test_helpers_that_are_new_in_each_call_are_let_go():
    def times(k):
        return lambda x: x * k

    helper = None
    compiled = np_compile.compile(lambda x: helper(x), backend="eager")
    for k in range(300):
        helper = times(k)
        assert compiled(np.ones(2)).tolist() == [k, k]
    (substitution,) = compiled._local.free
    assert len(substitution._functions) < 100
    assert len(substitution._cells) < 100


def test_where_arrays_lie_is_looked_at_in_every_call():
    def f(x, y):
        return x + 1 if np.shares_memory(x, y) else x - 1

    def g(x):
        return x + 1 if x.base is None else x - 1

    compiled, _ = repeated(f, np.ones(4), np.ones(4))
    x = np.ones(4)
    np.testing.assert_array_equal(compiled(x[:], x), f(x[:], x))
    compiled, _ = repeated(g, np.ones(4))
    np.testing.assert_array_equal(compiled(np.ones((1, 4))[0]), g(np.ones((1, 4))[0]))


def test_arguments_that_overlap_or_are_one():
    def f(x, y):
        x += 1
        return y * 2

    compiled, _ = repeated(f, np.zeros(6), np.zeros(6))
    assert kept(compiled) == 1
    for make in (
        lambda: (z := np.zeros(6), z),
        lambda: ((z := np.zeros(7))[1:], z[:-1]),
        lambda: (np.zeros(6), np.zeros(6)),
    ):
        for _ in range(3):
            mine, plain = make(), make()
            np.testing.assert_array_equal(compiled(*mine), f(*plain))
            np.testing.assert_array_equal(mine[0], plain[0])
            np.testing.assert_array_equal(mine[1], plain[1])


def test_arguments_that_overlap_in_each_call():
    def f(x, y):
        return x * 2 + y

    def g(x, y):
        return x * y[0] if x[1] > 2 else y

    for function in (f, g):
        compiled = np_compile.compile(function)
        for k in range(6):
            z = np.arange(7.0) * k
            got, want = compiled(z[1:], z[:-1]), function(z[1:], z[:-1])
            np.testing.assert_array_equal(got, want)


def test_a_read_only_array_is_not_written_to():
    def f(x):
        x += 1
        return x

    compiled, _ = repeated(f, np.zeros(3))
    x = np.zeros(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(x)
    assert x[0] == 0


def test_values_that_reach_python_are_looked_at_in_every_call():
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    compiled, _ = repeated(f, np.ones(3))
    assert kept(compiled) == 0
    assert compiled(-np.ones(3))[0] == -2.0

    def g(x):
        return x * x[0]

    def h(x):
        return x + float(x[1])

    for function in (g, h):
        compiled, _ = repeated(function, np.ones(3))
        x = np.array([3.0, 4.0, 5.0])
        np.testing.assert_array_equal(compiled(x), function(x))


# What it gives


def test_results():
    def f(x, y):
        x[1:] = y[:-1]
        s = x + y
        return x, s, [s.sum(), (1, None, "text")], y > 0.5, y.argmax()

    compiled, _ = repeated(f, np.zeros(4), rng().random(4))
    assert kept(compiled) == 1
    x, y = np.zeros(4), rng().random(4)
    plain_x = np.zeros(4)
    got, want = compiled(x, y), f(plain_x, y)
    assert got[0] is x
    np.testing.assert_array_equal(x, plain_x)
    assert repr(got) == repr(want)
    assert type(got[2][0]) is np.float64
    assert type(got[4]) is np.int64


def shape_of(x, seen):
    """The types in a nested result; a number for a list or array that has been met before."""
    if isinstance(x, (list, dict, np.ndarray)):
        if id(x) in seen:
            return seen[id(x)]
        seen[id(x)] = len(seen)
    if isinstance(x, (list, tuple, dict)):
        return [type(x), *[shape_of(v, seen) for v in (x.values() if type(x) is dict else x)]]
    return type(x)


def filled(x):
    c = np.empty(20)
    for i in range(20):  # long enough that Python fills it while the loop runs
        c[i] = i + 0.5
    return c, [c], (c, x + 1)


def cyclic(x):
    made = [x * 2, (1.0, [])]
    made[1][1].append(made)
    return made


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (y := x + 1, y), lambda x: (y := x + 1, [y], [(y, x)], [x]),
        lambda x: (y := [x + 1], y), lambda x: (y := [1, 2], [x + 1, y]), lambda x: (y := [], y, x),
        lambda x: (y := x[1:], y), lambda x: ([y := x[1:]], [y]), lambda x: ([x[1:]], [x[1:]]),
        lambda x: (y := x + 1, [z := y[1:]], [z], [y[1:]]), lambda x: ([y := x[x > 1]], [y]),
        lambda x: ([x[x > 1]], [x[x > 1]]), lambda x: (y := {"a": x + 1}, y),
        lambda x: (y := (x + 1).reshape(2, 2), [y], (y,)), filled, cyclic,
    ],
)  # fmt: skip
def test_what_is_given_twice_is_one_thing(f):
    x = np.arange(4.0)
    compiled = np_compile.compile(f, backend="eager")
    for _ in range(5):
        got, want = compiled(x), f(x)
        assert shape_of([x, got], {}) == shape_of([x, want], {})
        assert repr(got) == repr(want)


def test_results_that_stand_in_several_places_are_kept():
    compiled, _ = repeated(lambda x: (y := x + 1, [y], x, (x, y.sum()), (1, 2), []), np.zeros(4))
    assert kept(compiled) == 1
    got = compiled(np.zeros(4))
    assert got[0] is got[1][0]


def test_views_of_results_and_arguments():
    def f(x, k):
        x += 1
        y = x * 2
        _, bottom = np.split(y, 2)
        view = y[k:, ::-1]
        return y, y.T, (view, view[0], bottom), x[1:], x.reshape(-1)[::2], np.diagonal(y)

    for k in (1, 2):
        compiled, _ = repeated(f, np.zeros((4, 3)), k)
        assert kept(compiled) == 1
        x, plain = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3)
        got, want = compiled(x, k), f(plain, k)
        assert repr(got) == repr(want)
        y, view = got[0], got[2][0]
        assert all(np.shares_memory(v, y) for v in (got[1], *got[2], got[5]))
        assert np.shares_memory(got[3], x)
        assert got[4].strides == want[4].strides
        assert got[5].flags.writeable is want[5].flags.writeable
        view[0, 0] = -5.0
        assert y[k, -1] == -5.0


def test_an_index_out_of_bounds_raises_and_changes_nothing():
    def f(x, i):
        x[i] = 1.0
        return x * 2

    compiled, _ = repeated(f, np.zeros(4), np.array([0, 2]))
    x = np.zeros(4)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 4"):
        compiled(x, np.array([0, 7]))
    assert not x.any()
    np.testing.assert_array_equal(compiled(x, np.array([0, 2])), [2, 0, 2, 0])


def test_loops_of_many_segments():
    def f(u, steps, r):
        for _ in range(steps):
            u[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u.sum()

    compiled, _ = repeated(f, rng().random(300), 30, 0.2)
    assert kept(compiled) == 1
    u, v = rng().random(300), rng().random(300)
    assert np.isclose(compiled(u, 30, 0.2), f(v, 30, 0.2), rtol=1e-13)
    np.testing.assert_allclose(u, v, rtol=1e-13)


def test_many_threads():
    def f(x, y):
        return np.sqrt(x) * y + x.sum()

    compiled, _ = repeated(f, np.ones(1000), np.ones(1000))
    wrong = []

    def work(seed):
        x, y = np.random.default_rng(seed).random((2, 1000))
        right = [np.allclose(compiled(x, y), f(x, y), rtol=1e-12) for _ in range(50)]
        wrong.extend(seed for r in right if not r)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_inside_another_compiled_function_and_with_explain():
    compiled, _ = repeated(scaled, np.ones(3))

    @np_compile.compile
    def outer(x):
        return compiled(x) + 1

    for _ in range(3):
        np.testing.assert_allclose(outer(np.ones(3)), 2 * np.sin(1) + 1)
    report = np_compile.explain(compiled)(np.ones(3))
    assert len(report.segments) == 1


def test_an_array_that_no_program_reads_may_be_of_any_layout():
    def f(x, y):
        return y, x + 1

    y = np.zeros((4, 3))[::-1, ::2]
    compiled = np_compile.compile(f)
    for _ in range(4):
        got = compiled(np.zeros(3), y)
        assert got[0] is y
        np.testing.assert_array_equal(got[1], np.ones(3))


def test_arrays_of_constants():
    def f(x, taps):
        y = x[2:] + taps.sum() * x[:-2]
        weights = np.array([0.25, 0.5, 0.25])
        return y, x[:3] * weights, (x[:3] * np.arange(3.0)).sum()

    compiled, _ = repeated(f, rng().random(20), np.array([1.0, 2.0, 3.0]))
    assert kept(compiled) == 1
    for seed in range(3):
        x, taps = np.random.default_rng(seed).random((2, 20))
        x, taps = x.copy(), taps[:3].copy()
        for got, want in zip(compiled(x, taps), f(x, taps), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


def test_an_array_of_constants_that_is_written_to():
    def f(x):
        weights = np.array([1.0, 2.0, 3.0])
        weights += x
        return weights * 2

    compiled, _ = repeated(f, np.zeros(3))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.ones(3)), [4.0, 6.0, 8.0])


def test_many_elements_are_read_at_once():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i]
        return total

    compiled, _ = repeated(f, np.arange(200.0), calls=5)
    assert compiled(np.arange(200.0)) == f(np.arange(200.0))


# Elements that Python reads


def fir(x, taps):
    return taps[0] * x[:-1] + taps[1] * x[1:]


def test_elements_that_python_read_are_compared():
    x = rng().random(50)
    compiled, _ = repeated(fir, x, np.array([0.5, 2.0]))
    assert kept(compiled) == 1
    for taps in ([0.5, 2.0], [0.5, 3.0], [-0.0, 2.0], [0.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]):
        with np.errstate(invalid="ignore"):
            got, want = compiled(x, np.array(taps)), fir(x, np.array(taps))
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_elements_of_several_dimensions_and_from_the_end():
    def f(x, k):
        return k[0, 1] * x + k[-1, -1] * x[::-1] + (k[1, 0] > 0)

    compiled, _ = repeated(f, np.arange(6.0), np.arange(4).reshape(2, 2))
    assert kept(compiled) == 1
    for k in (np.arange(4).reshape(2, 2), np.array([[1, 2], [-3, 4]]), np.array([[1, 2], [3, 5]])):
        got, want = compiled(np.arange(6.0), k), f(np.arange(6.0), k)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


def test_an_element_that_was_written_to_before_it_is_read():
    def f(x, y):
        x *= 2.0
        return y * x[0]

    def g(x, y):
        x[0] = y[1]
        return y * x[0]

    def h(x, n):
        for _ in range(n):
            x[1:] += 1.0
        return x * x[1]

    for function, args in ((f, (np.ones(3), np.ones(3))), (g, (np.ones(3), np.ones(3)))):
        compiled, _ = repeated(function, *args)
        mine, plain = [np.array([3.0, 4.0, 5.0])] * 2, [np.array([3.0, 4.0, 5.0])] * 2
        np.testing.assert_array_equal(
            compiled(mine[0].copy(), mine[1].copy()), function(plain[0].copy(), plain[1].copy())
        )
    compiled, _ = repeated(h, np.ones(3), 30)
    np.testing.assert_array_equal(compiled(np.full(3, 7.0), 30), h(np.full(3, 7.0), 30))


def test_an_element_of_an_array_that_the_call_has_written_to():
    def f(y):
        for _ in range(21):
            y *= -1.0
        if y[3] > 0:
            return y * 2
        return y - 2

    def g(y, z):
        for _ in range(21):
            z *= -1.0
        return y * 2 if z[0] > 0 else z + y[0]

    for function, n in ((f, 1), (g, 2)):
        for first in (1.0, -1.0):  # what is there after one call is there before the next
            compiled, _ = repeated(function, *[np.full(5, first)] * n)
            for start in (-first, first, -first):
                mine, plain = ([np.full(5, start) for _ in range(n)] for _ in range(2))
                np.testing.assert_array_equal(compiled(*mine), function(*plain))
                np.testing.assert_array_equal(mine, plain)


def test_an_index_out_of_bounds_of_an_element():
    def f(x):
        return x[:2] * x[9]

    compiled = np_compile.compile(f)
    for _ in range(4):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
            compiled(np.ones(3))


# Arrays that a function makes of constants


def recurrence(u, r):
    n = len(u)
    c = np.empty(n)
    c[0] = r
    for i in range(1, n):
        c[i] = r / (2.0 + c[i - 1])
    for i in range(1, n):
        u[i] = u[i] * c[i] + u[i - 1]


@pytest.mark.usefixtures("recorded")
def test_coefficients_computed_element_by_element():
    compiled, _ = repeated(recurrence, rng().random((40, 5)), 0.3)
    assert kept(compiled) == 1
    for seed in range(3):
        u = np.random.default_rng(seed).random((40, 5))
        v = u.copy()
        compiled(u, 0.3)
        recurrence(v, 0.3)
        np.testing.assert_allclose(u, v, rtol=1e-13)


def test_an_array_of_constants_that_python_wrote_to_and_gives_or_uses():
    def gives(x):
        c = np.zeros(3)
        c[0] = 5.0
        c[1] = c[0] + 1.0
        return x + 1, c

    def uses(x):
        c = np.zeros(3)
        c[0] = 5.0
        c[1] = c[0] + 1.0
        return x * c

    def constant(x):
        w = np.array([1.0, 2.0, 3.0])
        return x * w, w

    def filled_and_used(x):
        c = np.zeros(20)
        for i in range(1, 20):
            c[i] = c[i - 1] + i
        return x * c[17:]

    def made_and_written(x):
        for _ in range(20):
            c = np.zeros(3)
        for _ in range(20):
            c -= x
        return x * 2 if c[1] > -30 else x - c

    for f in (gives, uses, constant, filled_and_used, made_and_written):
        compiled, first = repeated(f, np.ones(3))
        for _ in range(2):
            got, want = compiled(np.full(3, 2.0)), f(np.full(3, 2.0))
            np.testing.assert_array_equal(got, want)
            if f in (gives, constant):
                assert got[1] is not first[1]
                got[1][:] = -1  # what a caller does with a result changes no later one


# Many programs as one call


def blocks(compiled):
    return kept_calls(compiled)[0].scratch_bytes


def test_a_loop_of_new_arrays_needs_the_memory_of_two():
    def f(steps):
        price = np.full(steps.shape[1], 2.0)
        for step in steps:
            price = price * np.exp(step)
        return price.sum()

    steps = rng().random((60, 1000))
    compiled, result = repeated(f, steps)
    assert kept(compiled) == 1
    assert result == pytest.approx(f(steps), rel=1e-12)
    assert blocks(compiled) <= 3 * 8000 + 1024


def test_results_are_new_in_each_call():
    def f(x):
        y = x + 1
        for _ in range(30):
            y += x
        return y, y.T @ y, np.asfortranarray(y)

    compiled, _ = repeated(f, np.ones((3, 4)))
    one, two = compiled(np.ones((3, 4))), compiled(np.full((3, 4), 2.0))
    for got, x in ((one, np.ones((3, 4))), (two, np.full((3, 4), 2.0))):
        for a, b in zip(got, f(x), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.strides == b.strides


@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
def test_results_of_all_dtypes(dtype):
    def f(x):
        return x[::-1] + x, (x * x).sum(), x.astype("F"), np.asfortranarray(x.reshape(2, 3))

    x = np.array([0, 1, 2, 3, 1, 0], dtype)
    compiled, got = repeated(f, x)
    assert kept(compiled) == 1
    assert repr(got) == repr(f(x))


def test_an_index_out_of_bounds_after_something_was_written():
    def f(x, i, n):
        for k in range(n):
            x += 1.0
            x[i[k : k + 2]] = 0.0
        return x * 2

    good, bad = np.zeros(40, int), np.zeros(40, int)
    bad[30] = 9
    compiled, _ = repeated(f, np.zeros(4), good, 35)
    x, y = np.zeros(4), np.zeros(4)
    for function, a in ((compiled, x), (f, y)):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
            function(a, bad, 35)
    np.testing.assert_array_equal(x, y - 1.0)  # nothing of the iteration that failed is written
    x, y = np.zeros(4), np.zeros(4)
    np.testing.assert_array_equal(compiled(x, good, 35), f(y, good, 35))


def test_many_threads_in_a_loop_of_programs():
    def f(u, n):
        for _ in range(n):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
            v = u * 2.0
        return v

    compiled, _ = repeated(f, rng().random(200), 40)
    wrong = []

    def work(seed):
        u = np.random.default_rng(seed).random(200)
        for _ in range(20):
            mine, plain = u.copy(), u.copy()
            if not np.allclose(compiled(mine, 40), f(plain, 40), rtol=1e-12):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_without_a_sequence_the_programs_run_one_by_one(monkeypatch):
    def f(x, y):
        x += 1
        return np.sin(x) * y, x.sum()

    monkeypatch.setattr("np_compile.replay.plan.sequence", lambda *parts: None)
    compiled, _ = repeated(f, np.ones(5), np.ones(5))
    assert not kept_calls(compiled)[0].one_call
    x, y = rng().random((2, 5))
    plain = x.copy()
    np.testing.assert_allclose(compiled(x, y)[0], f(plain, y)[0], rtol=1e-15)
    np.testing.assert_array_equal(x, plain)
