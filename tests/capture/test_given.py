"""Lists and dicts that code outside a captured function is given: what it does to them stays."""

from __future__ import annotations

from collections import UserList, deque

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.exchange.escape import _Search

from ..support import check

KEPT: list = []


@np_compile.disable
def _extended(items, x=None):
    items.append(items[0] if x is None else x)
    items[1] = items[1] * 2
    items[0][0] = 5
    return items


@np_compile.disable
def _renewed(d):
    d["new"] = d["a"] * 2
    del d["b"]
    d["a"][0] = 9
    return d["new"]


@np_compile.disable
def _kept(items):
    KEPT.append(items.pop())


@np_compile.disable
def _failing(items):
    items.append(items[0] + 1)
    raise ValueError("half done")


def _dict(items, rng):
    d = {"a": items[0] * 1, "b": items[1]}
    return _renewed(d), d


def _caught(items, rng):
    try:
        _failing(items)
    except ValueError as e:
        return str(e), items[-1] * 2


def _nested(items, rng):
    pairs = [[items[0], items[1] * 2], [items[2]], (items[0], 1)]
    rng.shuffle(pairs)
    return pairs, [items[0] is p[0] for p in pairs]


def _of_pairs(items, rng):
    pairs = list(zip(items, range(4), strict=True))
    first = pairs[0]
    rng.shuffle(pairs)
    return pairs, [p is first for p in pairs], [a * b for a, b in pairs]


def _popped(items, rng):
    last = items[-1]
    _kept(items)
    last += 1
    return len(items), last


def _same_list(items, rng):
    return _extended(items, items[2] * 3) is items, items[-1] + 1


@np_compile.disable
def _views(x):
    a = x * 2
    return a[1:], a, {"same": a, "end": [a[-2:], x[1:]]}


@np_compile.disable
def _overlapping(x):
    a = x * 2
    return a[1:], a[:-1]


def _of_one_array(items, rng):
    b, a, more = _views(items[3])
    a -= 1
    z = b * 2
    more["end"][0] += z[0]
    items[3] += 1
    return a, b, more, z, more["same"] is a


def _in_part(items, rng):
    b, a = _overlapping(items[3])
    a -= 1
    z = b * 2
    b += 1
    return a, b, z


CASES = {
    "shuffled": lambda items, rng: rng.shuffle(items),
    "and read": lambda items, rng: (rng.shuffle(items), items[0] * 2),
    "by the module": lambda items, rng: (np.random.shuffle(items), items[0] * 2),
    "extended": lambda items, rng: _extended(items),
    "object array": lambda items, rng: rng.shuffle(np.array([*items, None], dtype=object)),
    "dict": _dict,
    "caught": _caught,
    "nested": _nested,
    "pairs": _of_pairs,
    "popped": _popped,
    "the same list": _same_list,
    "views of one array": _of_one_array,
    "views that overlap": _in_part,
}


def _equal(a, b):
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(b, dict):
        return list(a) == list(b) and all(_equal(a[k], b[k]) for k in b)
    return type(a) is type(b) and np.array_equal(a, b)


@pytest.mark.parametrize("plain", ["auto", "never", "always"])
@pytest.mark.parametrize("f", CASES.values(), ids=CASES)
def test_what_code_outside_does_to_containers_stays(f, plain, monkeypatch):
    monkeypatch.setattr(config, "plain", plain)
    fast = np_compile.compile(f)
    for seed in range(4):
        seen = []
        for run in (f, fast):
            KEPT.clear()
            np.random.seed(seed)
            items = [np.random.default_rng(seed).random(n + 1) for n in range(4)]
            before = list(items)
            result = run(items, np.random.default_rng(seed))
            places = [[a is b for b in before] for a in items]
            seen.append((result, items, places, list(KEPT)))
        assert _equal(seen[1], seen[0])


@pytest.mark.parametrize("f", CASES.values(), ids=CASES)
def test_nobody_is_looked_for_who_holds_what_was_given(f, monkeypatch):
    """Where a call's stand-ins are gone when it ends, no search through all objects is needed."""

    def everywhere(self):
        raise AssertionError("something holds the capture")

    monkeypatch.setattr(_Search, "everywhere", everywhere)
    monkeypatch.setattr(config, "plain", "never")
    fast = np_compile.compile(f)
    for seed in range(3):
        KEPT.clear()
        fast([np.arange(n + 1.0) for n in range(4)], np.random.default_rng(seed))


def test_an_array_of_objects_with_new_arrays_is_given_to_numpy():
    def f(x):
        o = np.empty((2, 1), dtype=object)
        o[0, 0], o[1, 0] = x * 2, x[:2] + 1
        joined = np.concatenate(o.ravel())
        x += 1
        o[0, 0][0] = 7
        return o.tolist(), joined, np.concatenate(list(o[:, 0]))

    check(f, np.arange(3.0))


def test_what_numpy_takes_out_of_an_array_of_objects_is_the_array_that_was_put_in():
    def f(x):
        o = np.empty(2, dtype=object)
        o[0], o[1] = y, z = x * 2, x[1:]
        rng = np.random.RandomState(3)
        drawn = rng.choice(o[:1])
        rows = np.take(o, [1, 0])
        rows[0][0] = 7
        return drawn is y, rows[0] is z, rows[1] is y, x, y

    check(f, np.arange(3.0))


def test_an_array_of_objects_that_numpy_makes_holds_the_arrays_of_its_list():
    def f(x):
        y = x + 1
        o = np.array([y, x[:2], None], dtype=object)
        o[0][0] = 5
        joined = np.concatenate([o, o[:1]])
        return o[0] is y, joined[3] is y, o[1] is joined[1], o.tolist(), y

    check(f, np.arange(3.0))


class Frames:
    """A sequence of the user's."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[k]


class Rows(list):
    pass


@pytest.mark.parametrize(
    "kind", [deque, Rows, Frames, UserList, lambda x: dict(enumerate(x)).values()]
)
def test_numpy_is_called_with_sequences_of_other_classes(kind):
    """NumPy asks the arrays in them, which it alone finds, who makes the call."""

    def f(x):
        rows, found = kind([x, x * 2]), []
        for function in (np.stack, np.concatenate, np.vstack, np.column_stack):
            try:
                found.append(function(rows))
            except (TypeError, ValueError) as e:
                found.append((type(e).__name__, str(e)))
        return found

    check(f, np.arange(3.0))


FRAMES = deque([np.ones(3)], maxlen=2)


def test_numpy_is_called_with_a_deque_from_outside():
    def f(x):
        FRAMES.append(x * 2)
        return np.stack(FRAMES).sum(axis=0), np.choose([0, 1, 0], FRAMES)

    with np_compile.config.patch(plain="never"):
        fast = np_compile.compile(f, backend="eager")
        for k in range(4):
            before = deque(FRAMES)
            want = f(np.arange(3.0) + k)
            FRAMES.clear()
            FRAMES.extend(before)
            for a, b in zip(fast(np.arange(3.0) + k), want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_numpys_calls_with_a_deque_are_recorded():
    def f(x):
        return np.stack(deque([x, x * 2])).sum(axis=0)

    (segment,) = np_compile.explain(np_compile.compile(f))(np.arange(3.0)).segments
    assert segment.calls == ["multiply", "stack", "ndarray.sum"]
