"""Kept calls on arrays in lists, tuples and dicts: found by what these hold, and how."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import np_compile
from np_compile import config

from ..support import Copier, compare, observe

R = np.random.default_rng(3)
X = R.standard_normal((5, 4))


@pytest.fixture(autouse=True)
def recorded():
    with config.patch(loops="recorded", compile_in="call", plain="never"):
        yield


def check(fast, f, *args, **kwargs):
    want = observe(f, *Copier()((args, kwargs)))
    compare(observe(fast, *Copier()((args, kwargs))), want, 1e-13)


def layers(x, weights, p):
    for w, b in weights:
        x = np.tanh(x @ w + b)
    return x * p["scale"] + p["shift"], x.sum()


def given():
    weights = [(R.standard_normal((4, 4)), R.standard_normal(4)) for _ in range(3)]
    return weights, {"scale": 2.0, "shift": R.standard_normal(4)}


def kept(f, *args, **kwargs):
    """A compiled function that has kept such a call."""
    fast = np_compile.compile(f)
    for _ in range(4):
        check(fast, f, *args, **kwargs)
    assert fast._keeper.kept
    return fast


def test_structures_hold_other_arrays_in_the_next_call():
    fast = kept(layers, X, *given())
    before = fast._keeper.kept
    for _ in range(3):
        check(fast, layers, X + 1, *given())
    assert fast._keeper.kept == before


@pytest.mark.parametrize(
    "change",
    [
        lambda w, p: w.append((np.eye(4), np.ones(4))),
        lambda w, p: w.clear(),
        lambda w, p: w.__setitem__(0, [*w[0]]),
        lambda w, p: w.__setitem__(0, w[1]),
        lambda w, p: w.__setitem__(1, (w[1][0], 0.5)),
        lambda w, p: w.__setitem__(2, (w[2][0].astype("f4"), w[2][1])),
        lambda w, p: p.update(scale=-0.0),
        lambda w, p: p.update(scale=2),
        lambda w, p: p.update(more=1.0),
        lambda w, p: p.update(scale=p.pop("scale")),
        lambda w, p: p.update(shift=p["shift"][::-1]),
    ],
)
def test_structures_that_hold_something_else(change):
    weights, p = given()
    fast = kept(layers, X, weights, p)
    change(weights, p)
    for _ in range(2):
        check(fast, layers, X, weights, p)


def test_types_of_structures():
    class Sub(list):
        pass

    def f(x, ws):
        return x + ws[0], type(ws) is list

    fast = kept(f, X, [X, 1])
    for ws in ((X, 1), Sub([X, 1]), {0: X}, [X, True], [X]):
        check(fast, f, X, ws)


def test_one_array_in_two_places():
    def f(x, pair):
        x += 1
        return pair[0] + pair[1]

    fast = kept(f, X, [X + 0, X + 1])
    check(fast, f, X, [X, X + 1])
    same = X + 0
    check(fast, f, same, [same, same])
    check(fast, f, X, [same[1:], same[:-1]])


def test_one_list_in_two_places():
    def f(x, a, b):
        return x + a[0], a is b

    fast = kept(f, X, [X], [X + 1])
    one = [X]
    check(fast, f, X, one, one)
    check(fast, f, X, [X], [X + 1])


def test_one_list_of_numbers_in_two_places():
    def f(x, a, b):
        return x + a[0], a is b

    fast, one = kept(f, X, [1.0], [1.0]), [1.0]
    check(fast, f, X, one, one)
    check(fast, f, X, [1.0], [1.0])


def test_arrays_are_written_and_given_back():
    def f(x, p):
        p["u"] += x
        p["v"][1:] = 0
        return p["u"], [p["v"], x * 2]

    fast = kept(f, X, {"u": X + 0, "v": X + 1})
    u, v = X + 0, X + 1
    got = fast(X, {"u": u, "v": v})
    assert got[0] is u
    assert got[1][0] is v
    np.testing.assert_array_equal(u, X + X)
    assert not v[1:].any()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, p: p.update(x=x * 2),
        lambda x, p: p.__setitem__("w", p["w"] + x) or p["w"],
        lambda x, p: p,
        lambda x, p: [p["w"], p],
        lambda x, p: p.pop("w") + x,
    ],
)
def test_structures_that_are_changed_or_given_back(f):
    fast = np_compile.compile(f)
    for _ in range(5):
        check(fast, f, X, {"w": X + 1, "n": 1})
        p = {"w": X + 1, "n": 1}
        if fast(X, p) is p:
            assert f(X, p) is p


def test_by_name_and_of_other_sizes():
    fast = kept(layers, X, weights=given()[0], p=given()[1])
    for n in (7, 8, 9, 1, 0):
        weights, p = given()
        check(fast, layers, R.standard_normal((n, 4)), p=p, weights=weights)
        check(fast, layers, R.standard_normal((n, 4)), weights=weights, p=p)
    assert fast._keeper.for_sizes


def test_an_index_out_of_bounds_is_numpys_error():
    def f(x, p):
        return x[p["at"]] * 2

    fast = kept(f, X, {"at": np.array([0, 1])})
    check(fast, f, X, {"at": np.array([0, 9])})


def test_a_list_that_another_thread_changes_meanwhile():
    """A call has the arrays with which it began, also when nobody else has."""
    x, w = np.ones((400, 400)), [np.ones((400, 400)), 0.5]

    def f(x, w):
        return np.sin(x) * w[0] + w[1]

    fast = kept(f, x, w)
    stop = threading.Event()

    def changes():
        k = 0
        while not stop.is_set():
            k += 1
            w[0] = np.full((400, 400), float(k % 7))

    thread = threading.Thread(target=changes)
    thread.start()
    try:
        for _ in range(200):
            y = fast(x, w)
            assert y.min() == y.max()
    finally:
        stop.set()
        thread.join()
