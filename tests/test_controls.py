"""`allow_in_graph`, `disallow_in_graph` and `disable`: the user's word on single functions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config, disallowed, errors, explain

from .support import data

calls = []
TABLE = np.array([1.0, 2.0, 4.0])


@pytest.fixture(autouse=True)
def _compiled():
    with config.patch(compile_in="call", plain="never"):
        yield
    disallowed.functions.clear()
    disallowed.rows.clear()
    calls.clear()


def compiled(f, **settings):
    return np_compile.compile(f, **settings)


def spread(x, width, mode="all"):
    calls.append(mode)
    parts = {k: np.sin(x) * width + k for k in range(3)}
    return sum(parts.values()) if mode == "all" else parts[0]


allowed = np_compile.allow_in_graph(spread)


def uses_allowed(x, w):
    y = allowed(x + 1, w)
    return np.cos(y) * allowed(y, 2.0, mode="first")


def uses_plain(x, w):
    y = spread(x + 1, w)
    return np.cos(y) * spread(y, 2.0, mode="first")


# allow_in_graph


@pytest.mark.parametrize("backend", ["native", "eager", "aot_eager"])
def test_an_allowed_function_is_one_call(backend):
    fast = compiled(uses_allowed, fullgraph=True, backend=backend)
    for n, w in (5, 0.5), (5, 0.25), (8, 1.0), (9, 3.0), (1, 2.0), (0, 1.0):
        np.testing.assert_allclose(fast(data(n), w), uses_plain(data(n), w))
    report = explain(fast)(data(5), 0.5)
    assert [len(s.calls) for s in report.segments] == [5]
    calls.clear()
    fast(data(5), 0.75)
    assert not calls or backend != "native"  # its code does not run again


def test_alone_it_is_the_function():
    assert isinstance(allowed(data(3), 2.0), np.ndarray)
    assert allowed.__wrapped__ is spread
    assert allowed.__name__ == "spread"
    again = pickle.loads(pickle.dumps(allowed))
    np.testing.assert_array_equal(again(data(3), 2.0), allowed(data(3), 2.0))


def test_gradients_through_an_allowed_function():
    t = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
    for f in (
        np_compile.wrap_numpy(uses_allowed),
        compiled(np_compile.wrap_numpy(uses_allowed), fullgraph=True),
    ):
        expected = torch.autograd.grad(np_compile.wrap_numpy(uses_plain)(t, 0.5).sum(), t)
        found = torch.autograd.grad(f(t, 0.5).sum(), t)
        torch.testing.assert_close(found, expected)


def test_what_it_writes_views_and_several_results():
    @np_compile.allow_in_graph
    def halve(x, y):
        x *= 0.5
        return y[::2], (x, [x.sum()], len(x))

    def f(x, y):
        view, (same, sums, n) = halve(x, y)
        view += 1
        return view, same is x, sums[0] * n, isinstance(sums[0], np.float64)

    def plain(x, y):
        view, (same, sums, n) = halve.__wrapped__(x, y)
        view += 1
        return view, same is x, sums[0] * n, isinstance(sums[0], np.float64)

    fast = compiled(f)
    for _ in range(3):
        own, other = (data(6), data(7)), (data(6), data(7))
        found, expected = fast(*own), plain(*other)
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[1:] == expected[1:]
        assert np.shares_memory(found[0], own[1])
        np.testing.assert_array_equal(own[0], other[0])
        np.testing.assert_array_equal(own[1], other[1])


def test_what_it_writes_and_a_view():
    """Each alone is part of the program; a call that does both is NumPy's."""

    @np_compile.allow_in_graph
    def halve(x, y):
        x *= 0.5
        return x, [x.sum()]

    @np_compile.allow_in_graph
    def every_second(y):
        return y[::2]

    def f(x, y):
        same, (total,) = halve(x, y)
        view = every_second(y)
        view += total
        return view, same is x

    fast = compiled(f, fullgraph=True)
    for n in (4, 4, 5, 6):
        x, y = data(n), data(n + 2)
        view, same = fast(x, y)
        assert same
        np.testing.assert_array_equal(x, data(n) * 0.5)
        np.testing.assert_allclose(view, data(n + 2)[::2] + x.sum())
        assert np.shares_memory(view, y)


def test_torch_within():
    @np_compile.allow_in_graph
    def gelu(x):
        return torch.nn.functional.gelu(torch.from_numpy(x))

    fast = compiled(lambda x: np.exp(gelu(x + 1)), fullgraph=True)
    expected = np.exp(torch.nn.functional.gelu(torch.from_numpy(data(4) + 1)).numpy())
    np.testing.assert_allclose(fast(data(4)), expected)


def test_what_needs_values_or_other_arrays_runs_in_numpy():
    @np_compile.allow_in_graph
    def signed(x):
        return x + 1 if x.sum() > 0 else x - 1

    @np_compile.allow_in_graph
    def tabled(x):
        return x * TABLE

    @np_compile.allow_in_graph
    def named(x):
        return {"x": x * 2}

    def f(x):
        return signed(named(x)["x"]) + tabled(x)

    global TABLE
    before, fast = TABLE, compiled(f)
    try:
        for x in (data(3), -data(3)):
            np.testing.assert_allclose(fast(x), (x * 2 + (1 if x.sum() > 0 else -1)) + x * TABLE)
        TABLE = TABLE + 1
        np.testing.assert_allclose(fast(x), (x * 2 - 1) + x * TABLE)
    finally:
        TABLE = before
    assert [b.reason.split(":")[0].rpartition(".")[2] for b in explain(fast)(data(3)).breaks] == [
        "named",
        "signed",
        "tabled",
    ]
    with pytest.raises(errors.GraphBreak, match="tabled: it uses an array that is no argument"):
        compiled(lambda x: tabled(x) + 1, fullgraph=True)(data(3))


def test_random_numbers_are_not_frozen():
    @np_compile.allow_in_graph
    def noisy(x):
        return x + np.random.random(x.shape)

    fast = compiled(lambda x: noisy(x) * 2)
    np.random.seed(3)
    found = [fast(np.zeros(3)) for _ in range(4)]
    np.random.seed(3)
    np.testing.assert_allclose(found, [np.random.random(3) * 2 for _ in range(4)])


def test_a_wrapped_function_that_is_not_compiled_runs_it_as_any():
    """It may draw, look at values, and use what is around."""

    @np_compile.allow_in_graph
    def noisy(x):
        found = {"x": x * TABLE + np.random.random(3)}
        return found if x.sum() > 0 else {}

    np.random.seed(3)
    y = np_compile.wrap_numpy(lambda x: noisy(x)["x"] * 2)(torch.ones(3, requires_grad=True))
    y.sum().backward()
    np.random.seed(3)
    np.testing.assert_allclose(y.detach().numpy(), (TABLE + np.random.random(3)) * 2)


def test_an_error_within_is_the_function_s():
    @np_compile.allow_in_graph
    def wrong(x):
        raise KeyError("no such mode")

    with pytest.raises(KeyError, match="no such mode"):
        compiled(lambda x: wrong(x + 1))(data(3))
    with pytest.raises(errors.NotCompilable, match="allow_in_graph"):
        np_compile.allow_in_graph(np.sin)


# disallow_in_graph


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.cumsum(x + 1) * 2,
        lambda x: (x + 1).cumsum() * 2,
    ],
)
def test_a_disallowed_function_of_numpy_s(f):
    expected = f(data(4))
    assert not explain(compiled(f))(data(4)).breaks
    np_compile.disallow_in_graph(np.cumsum)
    fast = compiled(f)
    np.testing.assert_array_equal(fast(data(4)), expected)
    (found,) = explain(fast)(data(4)).breaks
    assert found.reason.endswith("cumsum is kept out of programs by disallow_in_graph")
    with pytest.raises(errors.GraphBreak, match="disallow_in_graph"):
        compiled(f, fullgraph=True)(data(4))


def test_a_disallowed_operator_and_several_functions():
    np_compile.disallow_in_graph([np.multiply, np.linalg.norm])
    fast = compiled(lambda x: (x + 1) * x - np.linalg.norm(x))
    np.testing.assert_allclose(fast(data(4)), (data(4) + 1) * data(4) - np.linalg.norm(data(4)))
    assert len(explain(fast)(data(4)).breaks) == 2


def helper(x):
    calls.append("compiled" if np_compile.is_compiling() else "plain")
    return np.sqrt(x)


class Model:
    def scaled(self, x):
        calls.append("compiled" if np_compile.is_compiling() else "plain")
        return x * 3


def test_disallowed_functions_of_the_user_s():
    model = Model()

    def f(x, model):
        return helper(x + 1) * model.scaled(x)

    np_compile.disallow_in_graph((helper, Model.scaled))
    fast = compiled(f)
    np.testing.assert_allclose(fast(data(4), model), np.sqrt(data(4) + 1) * data(4) * 3)
    assert set(calls) == {"plain"}
    assert len(explain(fast)(data(4), model).breaks) == 2


def tripled(x):
    return x * 3


def test_a_disallowed_function_that_is_handed_on():
    def f(x, g):
        same = g is tripled
        return g(np.exp(x)) + tripled(x), same

    np_compile.disallow_in_graph(tripled)
    fast = compiled(f)
    got, same = fast(data(4), tripled)
    np.testing.assert_allclose(got, np.exp(data(4)) * 3 + data(4) * 3)
    assert same
    (found,) = explain(fast)(data(4), tripled).breaks
    assert found.times == 2
    assert compiled(lambda x, g: x * g(2))(data(1), tripled) == data(1) * 6


@pytest.mark.parametrize("how", ["function", "method", "operator"])
def test_loops_with_what_is_disallowed_are_not_compiled(how):
    def loop(x):
        s = 0.0
        for i in range(1, len(x)):
            if how == "function":
                s += np.sum(x[:i])
            elif how == "method":
                s += x[:i].sum()
            else:
                s += (x[:i] * x[:i])[0]
        return s

    with config.patch(loops="whole", plain="auto"):
        assert "compiled whole" in str(explain(compiled(loop))(data(9)))
        np_compile.disallow_in_graph([np.sum, np.multiply])
        fast = compiled(loop)
        assert fast(data(9)) == pytest.approx(loop(data(9)))
        assert "disallow_in_graph" in str(explain(fast)(data(9)))


def test_what_cannot_be_disallowed():
    for what in (3, np.float64, "sum"):
        with pytest.raises(errors.NotCompilable, match="disallow_in_graph"):
            np_compile.disallow_in_graph(what)


# disable


def test_disable_of_one_function_alone():
    local = 2.0

    def inner(x):
        calls.append("compiled" if np_compile.is_compiling() else "plain")
        return np.sqrt(x) * local

    @np_compile.disable(recursive=False)
    def steps(x, *, k=1):
        """Steps."""
        assert not np_compile.is_compiling()
        return inner(x) + helper(x) + sum(inner(x) for _ in range(k))

    def f(x):
        return steps(x + 1, k=2) * 2

    fast = compiled(f)
    y = data(4) + 1
    expected = (np.sqrt(y) * 2 * 3 + np.sqrt(y)) * 2
    np.testing.assert_allclose(fast(data(4)), expected)
    assert set(calls) == {"compiled"}
    assert steps.__doc__ == "Steps."
    (found,) = explain(fast)(data(4)).breaks
    assert "is marked @disable" in found.reason
    calls.clear()
    np.testing.assert_allclose(steps(y, k=2) * 2, expected)
    assert set(calls) == {"compiled"}


def test_disable_alone_sees_names_as_they_are():
    global TABLE
    before = TABLE

    @np_compile.disable(recursive=False)
    def f(x):
        return x * TABLE, abs(-1)

    try:
        np.testing.assert_array_equal(f(np.ones(3))[0], before)
        TABLE = before + 1
        np.testing.assert_array_equal(f(np.ones(3))[0], before + 1)
    finally:
        TABLE = before


def writes(x):
    global TABLE
    TABLE = x


def test_what_cannot_be_disabled_alone():
    with pytest.raises(errors.NotCompilable, match="writes to the global TABLE"):
        np_compile.disable(writes, recursive=False)
    with pytest.raises(errors.NotCompilable, match="disable"):
        np_compile.disable(np.sin, recursive=False)


@np_compile.disable(recursive=False)
def named(x):
    return helper(x)


def test_a_disabled_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(named)) is named
