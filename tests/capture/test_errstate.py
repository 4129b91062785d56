"""Floating-point errors where somebody asks for them: exceptions, calls, warnings as errors."""

import threading
import warnings

import numpy as np
import pytest
import torch
from np_compile.shim import quiet
from np_compile.shim._quiet import _FILTER

import np_compile
from np_compile import config

from ..support import check

Z = np.array([0.0, 1.0, -1.0])
LARGE = np.full(4, 1e308)

PROGRAMS = {}


def program(*args):
    def enter(f):
        PROGRAMS[f.__name__] = f, args
        return f

    return enter


@program(Z)
def raises(z):
    with np.errstate(divide="raise"):
        return 1 / z


@program(Z)
def catches(z):
    y = z * 2
    with np.errstate(all="raise"):
        try:
            y = np.log(y)
        except FloatingPointError as e:
            return str(e), y
    return y


@program(Z)
def around_some(z):
    with np.errstate(all="ignore"):
        y = np.log(z) + 1
        with np.errstate(invalid="raise"):
            y += np.exp(z)
        return y * np.sqrt(z)


@program(Z)
def sets_and_sets_back(z):
    old = np.seterr(divide="raise", invalid="ignore")
    try:
        return (z * 2) / z
    finally:
        np.seterr(**old)


@program(LARGE)
def calls(b):
    told = []
    with np.errstate(over="call", call=lambda kind, flag: told.append((kind, flag))):
        y = b * b + 1
    return y, told


@program(Z)
def by_argument(z, how="ignore"):
    with np.errstate(divide=how):
        return z + 1 / z


@program(Z, "raise")
def by_another_argument(z, how):
    return by_argument(z, how)


@program(Z)
def after_an_error(z):
    try:
        with np.errstate(all="raise"):
            z / 0
    except FloatingPointError:
        pass
    with np.errstate(all="ignore"):
        return z / 0


@program(Z)
def in_a_loop(z):
    s = 0.0
    with np.errstate(all="raise"):
        for i in range(3):
            try:
                s += 1 / z[i]
            except FloatingPointError:
                s += 100
    return s


@program(Z)
def before_a_loop(z):
    old = np.seterr(divide="raise")
    s = 0.0
    try:
        for i in range(100):
            s += 1 / z[2 - i % 3]
    except FloatingPointError as e:
        return s, str(e)
    finally:
        np.seterr(**old)


@program(np.array([1, 0, 2]))
def integers(i):
    with np.errstate(divide="raise"):
        return 5 // i


@np.errstate(all="raise")
def helper(z):
    return np.sqrt(z)


@program(Z)
def decorated_helper(z):
    return helper(np.abs(z)) + helper(z)


@program(Z)
def decorated_inside(z):
    @np.errstate(divide="raise")
    def inverse(z):
        return 1 / z

    y = inverse(z + 2)
    return y + inverse(z)


@program(Z)
def warnings_of_all_kinds(z):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        with np.errstate(all="warn"):
            y = np.exp(z - 745) * 1e-300
    return y, [str(w.message) for w in seen]


@program(Z)
def warnings_of_underflow_in_a_loop(z):
    s = 1e-300
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with np.errstate(under="warn"):
            for i in range(len(z)):
                s = np.float64(s) * (z[i] + 1e-40)
    return s, len(seen)


PROGRAMS["decorated"] = helper, (Z,)


@program(Z)
def warnings_as_errors(z):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.sqrt(z)


@program(Z)
def warnings_recorded(z):
    y = z + 1
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = y / z
        s = np.sqrt(z)
    return y, s, [str(w.message) for w in seen], y * 2


@program(Z)
def warnings_before_a_loop(z):
    with warnings.catch_warnings():
        pass
    warnings.filterwarnings("error", category=RuntimeWarning)
    s = 0.0
    for i in range(100):
        s += 1 / z[2 - i % 3]
    return s


@pytest.fixture(autouse=True)
def _warnings_as_by_default():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_asked_inside(name, backend):
    f, args = PROGRAMS[name]
    with warnings.catch_warnings():  # those that a function sets and leaves
        check(f, *args, backend=backend)


def _quotient(z):
    return (z * 3 + 1) / z


def _sum_of_inverses(z):
    s = 0.0
    for i in range(len(z)):
        s += 1 / z[i]
    return s


@pytest.mark.parametrize("options", [{}, {"backend": "eager"}], ids=["native", "eager"])
@pytest.mark.parametrize("f", [_quotient, _sum_of_inverses])
def test_asked_around(f, options):
    c = np_compile.compile(f, **options)
    for _ in range(6):  # kept, on the way
        np.testing.assert_array_equal(c(Z), f(Z))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            c(Z)
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(c(Z), f(Z))
        assert c(Z + 3) == pytest.approx(f(Z + 3))


FILTERS = {
    "category": lambda: warnings.simplefilter("error", RuntimeWarning),
    "text": lambda: warnings.filterwarnings("error", "divide", RuntimeWarning),
}


@pytest.mark.parametrize("options", [{}, {"backend": "eager"}], ids=["native", "eager"])
@pytest.mark.parametrize("f", [_quotient, _sum_of_inverses])
@pytest.mark.parametrize("name", FILTERS)
def test_warnings_as_errors_around(f, name, options):
    c = np_compile.compile(f, **options)
    for _ in range(6):  # kept, on the way
        np.testing.assert_array_equal(c(Z), f(Z))
        with warnings.catch_warnings():
            FILTERS[name]()
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                c(Z)
        with warnings.catch_warnings():
            FILTERS[name]()
            warnings.simplefilter("ignore", RuntimeWarning)  # the last one counts
            np.testing.assert_array_equal(c(Z), f(Z))
        assert c(Z + 3) == pytest.approx(f(Z + 3))


def test_means_of_nothing_as_errors_around():
    def f(x):
        return x[x > 9].mean() + np.nanmean(x * np.nan)

    c = np_compile.compile(f)
    for _ in range(3):
        assert np.isnan(c(Z))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with pytest.raises(RuntimeWarning, match="Mean of empty slice"):
                c(Z)


@pytest.mark.parametrize("options", [{}, {"backend": "eager"}], ids=["native", "eager"])
@pytest.mark.parametrize("f", [_quotient, _sum_of_inverses])
def test_warnings_asked_for_around(f, options):
    c = np_compile.compile(f, **options)
    for _ in range(6):
        np.testing.assert_array_equal(c(Z), f(Z))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with np.errstate(all="warn"):
                c(Z)
        assert [(str(w.message), w.filename) for w in seen][:1] == [
            (
                "divide by zero encountered in "
                + ("divide" if f is _quotient else "scalar divide"),
                __file__,
            )
        ]


@config.patch(plain="never")
def test_filters_around_kept_calls():
    f = np_compile.compile(_quotient)
    with warnings.catch_warnings():
        for _ in range(6):
            f(Z)
        call = f._keeper._table.call
        assert call(Z) is not np_compile.replay.calls.MISS
        for setting in ("error", "ignore", "error"):
            warnings.simplefilter(setting, RuntimeWarning)
            assert call(Z) is np_compile.replay.calls.MISS  # who asks has to be looked up
            if setting == "error":
                with pytest.raises(RuntimeWarning):
                    f(Z)
            else:
                f(Z)
                assert call(Z) is not np_compile.replay.calls.MISS
        warnings.filters.pop(0)
    f(Z)
    assert call(Z) is not np_compile.replay.calls.MISS


@config.patch(plain="never")
def test_asked_around_kept_calls():
    f = np_compile.compile(_quotient)
    for _ in range(4):
        f(Z)
    call = f._keeper._table.call
    f(Z)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        f(Z)
    with np.errstate(all="ignore"):
        f(Z)
        assert call(Z) is not np_compile.replay.calls.MISS
    f(Z)
    assert call(Z) is not np_compile.replay.calls.MISS


def test_asked_in_one_thread():
    f = np_compile.compile(_quotient)
    seen = []
    with np.errstate(divide="raise"):
        thread = threading.Thread(target=lambda: seen.append(f(Z)))
        thread.start()
        thread.join()
        with pytest.raises(FloatingPointError):
            f(Z)
    np.testing.assert_array_equal(seen[0], f(Z))


def test_explain_says_so():
    f = np_compile.compile(_quotient)
    with np.errstate(over="raise"):
        report = np_compile.explain(f)(Z + 3)
    assert report.segments == []
    assert [b.kind for b in report.breaks] == ["plain"]
    assert "np.errstate asks" in report.breaks[0].reason


def test_fullgraph_says_so():
    f = np_compile.compile(_quotient, fullgraph=True)
    with np.errstate(over="raise"), pytest.raises(np_compile.errors.GraphBreak, match="errstate"):
        f(Z)
    g = np_compile.compile(raises, fullgraph=True)
    with pytest.raises(np_compile.errors.GraphBreak, match="errstate"):
        g(Z)


class _Beside:
    """A thread that is in `quiet()` while this block runs."""

    def __enter__(self):
        self.entered, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.entered.wait()
        return self

    def _run(self):
        with quiet():
            warnings.warn("not to be seen", stacklevel=1)
            self.entered.set()
            self.leave.wait()

    def end(self):
        self.leave.set()
        self.thread.join()

    def __exit__(self, *_):
        self.end()


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_filters_of_the_caller_that_a_function_changes(backend):
    def f(z):
        y = z + 1
        warnings.simplefilter("error")
        return y, np.sqrt(z)

    f = np_compile.compile(f, backend=backend)
    for _ in range(3):
        with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="invalid value"):
            f(Z)


def test_quiet_threads_leave_others_their_warnings():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with _Beside():
            warnings.warn("to be seen", stacklevel=1)
        warnings.warn("also", stacklevel=1)
    assert [str(w.message) for w in seen] == ["to be seen", "also"]


def test_quiet_for_some_texts():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with quiet("a text"):
            warnings.warn("a text, and more", stacklevel=1)
            warnings.warn("another text", stacklevel=1)
            with quiet():
                warnings.warn("another text", stacklevel=1)
            warnings.warn("b", stacklevel=1)
    assert [str(w.message) for w in seen] == ["another text", "b"]


def test_quiet_threads_that_leave_out_of_order():
    def users():
        return [f for f in warnings.filters if f is not _FILTER]

    before = users()
    with _Beside() as first:
        second = _Beside().__enter__()
        first.end()
        second.end()
    assert users() == before
    with pytest.warns(UserWarning, match="to be seen"):
        warnings.warn("to be seen", stacklevel=1)


def test_functions_do_not_hear_what_other_threads_filter():
    warnings.simplefilter("default")

    def steps(z):
        y = np.sin(z) + 1
        with _Beside():
            y = np.cos(y) * 2
        return y - 1

    report = np_compile.explain(np_compile.compile(steps))(Z)
    assert [b.reason for b in report.breaks if b.kind == "plain"] == []
    assert len(report.segments) == 1


def means_of_nothing(x):
    middle = x.mean(axis=0)
    return middle + 1, np.median(x), x.mean() * 2


def too_few_for_a_variance(x):
    return np.var(x, ddof=len(x)), np.cov(x, ddof=4) + 1, np.nanstd(x.astype(int), ddof=9)


def counts_of_bools(x):
    edges = np.histogram_bin_edges(x, [0.0, 0.5, 2.0])
    return np.histogram(x)[0] + 1, np.histogram(x, edges, density=True), edges


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (means_of_nothing, np.ones((0, 3))),
        (too_few_for_a_variance, np.ones(3)),
        (counts_of_bools, np.ones(3, bool)),
        (counts_of_bools, np.ones((), bool)),
        (counts_of_bools, np.ones((2, 0), bool)),
    ],
)
def test_warnings_that_follow_from_shapes_and_dtypes(f, x):
    """No kernel computes what NumPy warns of whatever the data are."""
    fast = np_compile.compile(f, backend="eager")
    for _ in range(3):
        with pytest.warns(RuntimeWarning) as wanted:
            f(x)
        with pytest.warns(RuntimeWarning) as given:
            fast(x)
        assert [str(w.message) for w in given] == [str(w.message) for w in wanted]
        assert [(w.filename, w.lineno) for w in given] == [(w.filename, w.lineno) for w in wanted]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match=r"Degrees|Mean|Converting"):
                fast(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(np.ones((12, 12)))


def test_gradients_beside_a_mean_of_nothing():
    @np_compile.compile(backend="eager")
    @np_compile.wrap_numpy
    def f(x):
        return np.sum(x * 2) + np.nansum(np.mean(x[:0]))

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="Mean of empty slice") as given:
        f(x).backward()
    assert {w.filename for w in given} == {__file__}
    assert x.grad.tolist() == [2, 2, 2]


def test_filters_may_be_set_elsewhere():
    """Libraries carry the filters of warnings to their threads and processes."""
    np_compile.compile(lambda x: np.sqrt(x) + 1)(np.array([-1.0]))
    with quiet():
        given = list(warnings.filters)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        for action, message, category, _, line in given:
            text = message if message is None or isinstance(message, str) else message.pattern
            warnings.filterwarnings(action, text or "", category, "", line, append=True)
        assert any(action == "ignore" for action, *_ in warnings.filters)
        with pytest.warns(UserWarning, match="seen"):
            warnings.warn("seen", UserWarning, stacklevel=1)
