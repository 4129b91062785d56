"""Where a segment ends: the values, prints and reasons are right, and the rest stays compiled."""

from __future__ import annotations

import inspect as python_inspect
import json
import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.special
import torch

import np_compile
from np_compile import config
from np_compile.errors import GraphBreak

from ..support import check, compiled, data


def explained(f, *args):
    return np_compile.explain(np_compile.compile(f, backend="eager"))(*args)


# -- every kind, by the function that shows it -------------------------------------------------


def prints(x):
    y = x * 2
    print(y)
    return y + 1


def branches(x):
    y = x * 2
    if y.sum() < 0:
        y = -y
    return y + 1


def loops_until(x):
    y = x * 2
    while np.abs(y).max() > 0.1:
        y = y / 3
    return y


def to_float(x):
    return x * float((x * 2).sum())


def to_int(x):
    return x + int((x * 2).max())


def to_index(x):
    return x + [10, 20, 30, 40, 50, 60, 70, 80][(x * 2).argmax()]


def to_list(x):
    return (x * 2).tolist(), x + 1


def to_item(x):
    return (x * 2).sum().item(), x + 1


def masks(x):
    y = x * 2
    return np.sort(y[y > 0]) + 1


def finds(x):
    (i,) = np.nonzero(x * 2 > 0)
    return i + 1, x[i]


def uniques(x):
    u = np.unique(np.floor(x * 2))
    return u + 1


def calls_scipy(x):
    return scipy.special.erf(x * 2) + 1


def calls_char(x):
    y = x * 2
    names = np.char.add(np.array(["a", "b"]), "c")
    return y + 1, names


def asks(x):
    y = x * 2
    np_compile.graph_break()
    return y + 1


@np_compile.disable
def outside(x):
    return np.cumsum(x)


def disabled(x):
    return outside(x * 2) + 1


def formats(x):
    y = x * 2
    return f"{y.sum():.4f}", y + 1


def iterates(x):
    return [float(v) for v in x * 2]


def nonzero_method(x):
    return (x * 2 > 0).nonzero(), np.argwhere(x > 0), np.flatnonzero(x > 0), np.where(x > 0)


def object_arrays(x):
    o = (x * 2).astype(object)
    o[0] = "text"
    return o, x + 1


def structured(x):
    r = np.zeros(len(x), dtype=[("a", "f8"), ("b", "i4")])
    r["a"] = x * 2
    r["b"] = 3
    return r["a"] + 1, r, r[r["a"] > 0]


def dates(x):
    d = np.datetime64("2020-01-01") + np.arange(len(x))
    return d[1:] - d[:-1], d, x * 2


def long_doubles(x):
    y = (x * 2).astype(np.longdouble)
    return y + 1, y.dtype, x + 1


def strings(x):
    s = (x > 0).astype("U5")
    return s, np.char.upper(s), x + 1


def masked(x):
    m = np.ma.masked_array(x * 2, x > 0)
    return m.filled(0) + 1, m.sum()


def vectorized(x):
    f = np.vectorize(lambda v: v + 1 if v > 0 else -v)
    return f(x * 2) + 1


def along_axis(x):
    return np.apply_along_axis(lambda r: r.sum() * r, 0, x * 2) + 1


def enumerated(x):
    return [(i, v * 2) for i, v in np.ndenumerate(x * 2)], list(np.ndindex(2, 2))


def nditers(x):
    y = x * 2
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for v in it:
            v[...] = v * 3
    return y


def histograms(x):
    h, edges = np.histogram(x * 2, bins=4)
    return h / h.sum(), edges


def polynomials(x):
    p = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    return p(x * 2) + 1, np.polyfit(np.arange(len(x)), x, 1)


def texts(x):
    return np.array2string(np.round(x * 2)), json.dumps((x * 2).tolist()), x + 1


def pickles(x):
    return pickle.loads(pickle.dumps(x * 2)) + 1


def dictionary_keys(x):
    return {s: i for i, s in enumerate(np.round(x * 2))}


def minimizes(x):
    r = scipy.optimize.minimize_scalar(lambda t: ((x - t) ** 2).sum())
    return np.round(r.x, 4) + x


def filters(x):
    return scipy.ndimage.uniform_filter1d(x * 2, 3) + 1, scipy.linalg.norm(x + 1)


def interpolates(x):
    return (
        np.interp(x * 2, [0, 1, 2], [0, 10, 40]),
        np.digitize(x, [-1, 0, 1]),
        np.searchsorted(np.sort(x), x),
    )


def sets(x):
    a = np.round(x * 2)
    return np.union1d(a, [1, 2]), np.isin(a, [0, 1]), np.intersect1d(a, a + 1), np.setdiff1d(a, [0])


def raw_memory(x):
    y = x * 2
    return y.tobytes(), memoryview(y).shape, y.ctypes.data != 0, np.frombuffer(y.tobytes())


def inserts(x):
    y = np.insert(x * 2, 1, 5.0)
    return (
        np.delete(y, 0),
        np.append(y, x),
        np.repeat(x, [1] * len(x)),
        np.resize(x, 3),
        np.trim_zeros(x),
    )


def choose_and_select(x):
    return (
        np.select([x < 0, x > 1], [x * 2, x * 3], 0),
        np.choose([0, 1], [x[:2], x[2:4]]),
        np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2]),
    )


def to_numpy_real(x):
    return np.asarray(x * 2, dtype="f4"), np.frompyfunc(lambda v: v + 1, 1, 1)(x[:2]), x + 1


def compares_and_any(x):
    if (x > 1e6).any() or not np.isfinite(x).all() or np.allclose(x, 0) or np.array_equal(x, x + 1):
        return None
    return x * 2


def stays_after_swap(x):
    y = x * 2
    if y[0] > y[1]:
        y[0], y[1] = y[1], y[0]
    return y


def loops_with_breaks(x):
    total = x * 0
    for i in range(12):
        total = total + x * i
        if total.sum() > 100:
            print("stopped at", i)
            break
        if i % 5 == 4:
            print(i, np.round(total[0], 6))
    return total


BREAKING = [
    prints, branches, loops_until, to_float, to_int, to_index, to_list, to_item, masks, finds,
    uniques,
    calls_scipy, calls_char, asks, disabled, formats, iterates, nonzero_method, object_arrays,
    structured,
    dates, long_doubles, strings, masked, vectorized, along_axis, enumerated, nditers, histograms,
    polynomials, texts, pickles, dictionary_keys, minimizes, filters, interpolates, sets,
    raw_memory,
    inserts, choose_and_select, to_numpy_real, compares_and_any, stays_after_swap,
    loops_with_breaks,
]  # fmt: skip


@pytest.mark.parametrize("f", BREAKING, ids=lambda f: f.__name__)
def test_a_break_changes_nothing_that_the_caller_sees(f):
    check(f, data(8))


@pytest.mark.parametrize("f", BREAKING[:18], ids=lambda f: f.__name__)
def test_a_break_under_a_back_end_of_torch(f):
    check(f, data(8), backend="aot_eager")


@pytest.mark.parametrize("f", BREAKING[:17], ids=lambda f: f.__name__)
def test_a_break_in_a_loop(f):
    def looped(x, n):
        out = []
        for i in range(n):
            out.append(f(x + i))
            x = x * 0.5
        return out, x

    check(looped, data(8), 10)


# -- reasons -----------------------------------------------------------------------------------


def line_of(f, text):
    lines, start = python_inspect.getsourcelines(f)
    return start + next(i for i, line in enumerate(lines) if text in line)


REASONS = [
    (prints, "value", "print(y)", "text"),
    (branches, "value", "if y.sum()", "branches"),
    (loops_until, "value", "while np.abs", "branches"),
    (to_float, "value", "float((x", "float()"),
    (to_int, "value", "int((x", "int()"),
    (to_index, "value", "[10, 20", "index"),
    (to_list, "value", "tolist", "tolist"),
    (to_item, "value", "item()", "item"),
    (masks, "data", "y[y > 0]", "depends on the data"),
    (finds, "data", "nonzero", "np.nonzero"),
    (uniques, "data", "np.unique", "np.unique"),
    (calls_scipy, "foreign", "erf", "erf"),
    (asks, "asked", "graph_break", "graph_break()"),
    (disabled, "asked", "outside(", "outside"),
    (formats, "value", 'f"', "text"),
]


@pytest.mark.parametrize(
    ("f", "kind", "text", "word"), REASONS, ids=lambda v: getattr(v, "__name__", "")
)
def test_explain_names_the_reason_and_the_line(f, kind, text, word):
    e = explained(f, abs(data(8)))
    found = [b for b in e.breaks if word in b.reason]
    assert found, e
    assert found[0].kind == kind, e
    place = f"{__file__}:{line_of(f, text)}"
    assert found[0].line.startswith(place), (found[0].line, place)
    assert text in found[0].line
    assert found[0].reason in str(e)
    assert place in str(e)


@pytest.mark.parametrize(
    ("f", "kind", "text", "word"), REASONS, ids=lambda v: getattr(v, "__name__", "")
)
def test_fullgraph_raises_at_the_first_break_with_the_users_line(f, kind, text, word):
    x = abs(data(8))
    fast, _ = compiled(f, fullgraph=True)
    for _ in range(2):
        with pytest.raises(GraphBreak) as e:
            fast(x.copy())
        assert f"{__file__}:{line_of(f, text)}" in str(e.value)
        assert word in str(e.value)
        assert "fullgraph" in str(e.value)
        assert "Remedy" in str(e.value)


def test_fullgraph_passes_a_function_without_breaks():
    def f(x, s, n):
        y = np.where(x > 0, x, 0) * s + n
        for i in range(3):
            y = y + i
        return y.sum(0), y.T, x.shape, y[0]

    check(f, data(4, 3), 0.5, 2, fullgraph=True)


def test_fullgraph_changes_nothing_of_the_callers_when_it_raises():
    def f(x):
        x += 1
        print(x)

    fast, _ = compiled(f, fullgraph=True)
    x = np.zeros(3)
    with pytest.raises(GraphBreak):
        fast(x)
    assert x.tolist() in ([0, 0, 0], [1, 1, 1])


def test_explain_gives_segments_calls_lines_and_result():
    def f(x):
        y = np.sin(x) + 1
        if y.sum() > 0:
            y = np.exp(y)
        return y * 2

    x = data(4)
    e = explained(f, x)
    np.testing.assert_allclose(e.result, f(x))
    assert [s.calls for s in e.segments] == [
        ["sin", "add", "ndarray.sum", "greater"],
        ["exp", "multiply"],
    ]
    assert [b.kind for b in e.breaks] == ["value"]
    assert f"{__file__}:{line_of(f, 'np.sin')}" in e.segments[0].lines[0]
    assert "2 segments" in str(e)


def test_explain_counts_runs_and_repeats_of_breaks():
    def f(x):
        n = 0
        while x.sum() > 1:
            x = x / 2
            n += 1
        return n

    # (the loop itself is counted: it does too little to be recorded to its end)
    with np_compile.config.patch(plain="never"):
        e = explained(f, np.full(4, 8.0))
    assert e.result == 5
    assert len(e.breaks) == 1
    assert e.breaks[0].times == 6


def test_explain_of_a_plain_function():
    with np_compile.config.patch(backend="eager"):
        e = np_compile.explain(branches)(abs(data(3)))
    np.testing.assert_array_equal(e.result, branches(abs(data(3))))
    assert [b.kind for b in e.breaks] == ["value"]


def test_a_call_of_numpy_that_the_shim_lacks_names_it():
    def f(x):
        return np.polyfit(np.arange(len(x)), x * 2, 1)

    e = explained(f, data(5))
    assert any("np.polyfit" in b.reason for b in e.breaks), e


def test_segments_before_and_after_a_break_are_compiled_once():
    fast, counter = compiled(branches)
    for k in range(5):
        fast(abs(data(8, seed=k)) + k)
    assert counter.count == 2
    fast(-abs(data(8)))
    assert counter.count == 3


def test_an_array_that_lives_across_breaks_keeps_its_memory():
    def f(x):
        y = x[1:]
        y += 1
        print(y[0] > 0)
        y *= 2
        print(x[1] > 0)
        z = y[::-1]
        z[0] = 7
        return x, y, z

    check(f, data(5))


def test_intermediates_and_views_live_across_breaks():
    def f(x):
        base = x * 2
        part = base[1:3]
        rev = base[::-1]
        s = float(base.sum())
        part += s
        t = float(rev[0])
        rev[:2] = t
        base[0] = 5
        return base, part, rev

    check(f, data(5))


def test_a_third_party_function_that_writes_to_its_argument():
    def f(x):
        y = x * 2
        np_compile.disable(lambda a: a.__setitem__(0, 99.0))(y)
        scipy.ndimage.gaussian_filter1d(y, 1.0, output=y)
        return y + 1

    check(f, data(6))


def test_a_callback_of_a_library_is_plain_numpy():
    def f(x):
        def objective(p):
            assert type(p) is np.ndarray
            return ((p - x * 2) ** 2).sum()

        return np.round(scipy.optimize.minimize(objective, np.zeros(2)).x, 3)

    check(f, data(2))


def test_a_break_in_a_helper_names_the_helpers_line():
    def helper(y):
        return y if y.sum() > 0 else -y

    def f(x):
        return helper(x * 2) + 1

    e = explained(f, data(4))
    assert f"{__file__}:{line_of(helper, 'return y if')}" in e.breaks[0].line


def test_nothing_is_recorded_after_the_function_ended():
    fast, counter = compiled(lambda x: x * 2)
    y = fast(data(3))
    before = counter.count
    z = (y + 1).sum()
    assert type(z) is np.float64
    assert counter.count == before


def test_torch_used_inside_a_plain_compiled_function():
    def f(x):
        t = torch.from_numpy(x) * 2
        return t.numpy() + np.sin(x)

    check(f, data(4))


def test_data_dependent_shapes_then_numpy_again():
    def f(x):
        pos = x[x > 0]
        order = np.argsort(pos)
        ranked = pos[order][::-1]
        return ranked.sum(), ranked / ranked.max(), np.cumsum(ranked), len(pos)

    check(f, data(12))


def test_boolean_mask_assignments():
    def f(x):
        x[x < 0] = 0
        x[x > 1] *= 0.5
        x[(x > 0.1) & (x < 0.3)] = x.mean()
        m = x == 0
        x[m] = np.arange(m.sum())
        np.putmask(x, x > 2, -1)
        np.place(x, x < 0, [9.0])
        return x

    check(f, data(16))


def test_boolean_masks_in_two_dimensions():
    def f(x):
        rows = x[x[:, 0] > 0]
        columns = x[:, x[0] > 0]
        cells = x[x > 0]
        x[x[:, 1] > 0] = 0
        x[np.abs(x) > 1] = 1
        return rows, columns, cells, x.T[x.T > 0.5]

    check(f, data(6, 4))


@pytest.mark.parametrize("backend", ["native", "eager"])
def test_a_view_of_thousands_of_views(backend, monkeypatch):
    monkeypatch.setattr(config, "plain", "never")
    monkeypatch.setattr(config, "loops", "recorded")

    def f(x):
        v = x
        for _ in range(501):
            v = v.T
        v[0] = 7.0
        return v, float(v.sum()), v[1:] * 2

    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    for want, got in zip(f(a), np_compile.compile(f, backend=backend)(b), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    np.testing.assert_array_equal(b, a)


def test_an_error_that_data_tell_is_met_within_its_try_block():
    def f(a, b):
        said = []
        try:
            said.append(np.isin(a, b, kind="table"))
        except RuntimeError as e:
            said.append(str(e))
        return said, a + 1

    a, b = np.array([0, 0, 1, 1], "i2"), np.array([-128, 0, 127], "i1")
    check(f, a, b)
    check(f, a, b[:2])


NEARLY = np.arange(9.0).reshape(3, 3)  # which rounding decides: singular, or with a huge inverse


@pytest.mark.parametrize("name", ["inv", "pinv", "matrix_rank", "eigvals", "svd", "cond"])
def test_a_librarys_results_on_arrays_are_numpys_own(name):
    """Each call, whether it was recorded, is kept, or is compiled whole by then."""

    def f(x):
        y = x + 1
        return y, getattr(np.linalg, name)(y)

    def seen(g):
        try:
            return repr(g(NEARLY))
        except np.linalg.LinAlgError as e:
            return str(e)

    for backend in ("eager", "native"):
        fast = compiled(f, backend)[0]
        assert [seen(fast) for _ in range(5)] == [seen(f)] * 5
