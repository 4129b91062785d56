"""Calls that are known: which of them are alike, how they are made, and what they cost nobody."""

from __future__ import annotations

import gc
import math
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.capture.policy.choice import SAMPLED, signature
from np_compile.replay.arrays import exact
from np_compile.replay.calls import MISS, Entry, Table, Way
from np_compile.replay.keeper import KEPT
from np_compile.replay.kinds import alike
from np_compile.replay.results import Give, giver
from np_compile.tools.explain import kept_calls


def table(*entries):
    made = Table()
    made.publish(entries)
    return made


def entry(args, kwargs=None, function=None, read=None, writes=False, way=Way.COMPILED):
    """An entry for such calls, which gives a tuple of what it was called with."""
    kwargs = kwargs or {}
    all_of_them = (*args, *kwargs.values())
    names = [f"a{k}" for k in range(len(all_of_them))]
    guards = exact(all_of_them, names, read or {}, writes)
    made = Entry(way, len(all_of_them), tuple(kwargs), guards)
    made.calls(function or (lambda given: given))
    return made


def known(one, *args, **kwargs):
    """Whether a call is known by an entry, by both ways to ask."""
    t = table(one)
    found = t.find((*args, *kwargs.values()), tuple(kwargs)) is one
    called = t.call(*args, **kwargs)
    assert (called is not MISS) == found
    if found:
        assert all(a is b for a, b in zip(called, (*args, *kwargs.values()), strict=True))
    return found


# Which calls are alike

VALUES = [
    0, 1, -1, True, False, 0.0, -0.0, 1.0, math.inf, -math.inf, 2**70, -(2**70), "", "a", "1", None,
    1j, complex(0.0, -0.0), complex(-0.0, 0.0), 0j, (), (1,), (1.0,), (True,), (0.0,), (-0.0,),
    ((1, 2), "a"), ((1, 2.0), "a"), (None,), (1, 2, 3),
]  # fmt: skip


@pytest.mark.parametrize("a", VALUES, ids=repr)
def test_a_value_is_like_itself_alone(a):
    one = entry((a,))
    for b in VALUES:
        copy = pickle.loads(pickle.dumps(b))
        assert known(one, copy) == (repr(a) == repr(b) and type(a) is type(b)), b


def test_numbers_that_are_no_numbers():
    nan = float("nan")
    assert known(entry((nan,)), float("nan"))  # of one bit pattern
    assert not known(entry((nan,)), math.copysign(nan, -1.0))
    assert not known(entry((nan,)), 1.0)


class Sub(np.ndarray):
    pass


def test_an_array_is_like_those_of_its_layout():
    a = np.zeros((3, 4))
    one = entry((a,))
    assert known(one, np.ones((3, 4)))
    assert known(one, np.ones((6, 4))[3:])
    strange = [
        np.ones((4, 3)), np.ones(12), np.ones((3, 4, 1)), np.ones((3, 4), order="F"),
        np.ones((3, 8))[:, ::2], np.ones((3, 4), np.float32), np.ones((3, 4), np.int64),
        np.ones((3, 4), ">f8"), np.ones((3, 4)).view(Sub), np.float64(1), 1.0, None, [[0.0] * 4],
    ]  # fmt: skip
    assert not any(known(one, b) for b in strange)
    fixed = np.ones((3, 4))
    fixed.flags.writeable = False
    assert not known(one, fixed)
    unaligned = np.zeros(3 * 4 * 8 + 1, np.uint8)[1:].view(float).reshape(3, 4)
    assert not known(one, unaligned)


def test_a_dtype_may_be_another_object():
    dtype = pickle.loads(pickle.dumps(np.dtype(float)))
    a = np.zeros(3, dtype)
    a = pickle.loads(pickle.dumps(a))
    assert known(entry((np.zeros(3),)), a)


def test_the_number_and_names_of_arguments():
    a = np.zeros(2)
    one = entry((a, 1), {"k": 2, "m": 3})
    assert known(one, a, 1, k=2, m=3)
    assert not known(one, a, 1, k=2)
    assert not known(one, a, 1, 2, 3)
    assert not known(one, a, 1, m=3, k=2)
    assert not known(one, a, 1, k=2, n=3)
    assert not known(one, a, 1)
    assert not known(entry((a, 1)), a, k=1)


def test_arguments_that_are_one_or_overlap():
    x = np.zeros(20)
    assert not known(entry((x[:5], x[5:10])), *[np.zeros(5)] * 2)
    same = np.zeros(5)
    assert known(entry((same, same)), *[np.zeros(5)] * 2)
    assert not known(entry((same, same)), np.zeros(5), np.zeros(5))
    for writes in (False, True):
        one = entry((np.zeros(5), np.zeros(5)), writes=writes)
        assert known(one, x[:5], x[5:10])
        assert known(one, x[5:10], x[:5])
        assert known(one, x[:5], x[4:9]) != writes
        assert known(one, x[4:9], x[:5]) != writes
    empty = entry((np.zeros(9)[4:4], np.zeros(5)), writes=True)
    assert known(empty, x[2:2], x[:5])


@given(st.data())
def test_elements_are_compared(data):
    shape = data.draw(st.sampled_from([(5,), (2, 3), (2, 1, 4)]))
    a = np.arange(math.prod(shape), dtype=float).reshape(shape)
    layout = data.draw(st.sampled_from(["C", "F", "strided"]))
    a = np.repeat(a, 2, -1)[..., ::2] if layout == "strided" else np.array(a, order=layout)
    index = data.draw(st.just(...) | st.tuples(*[st.integers(-n, n - 1) for n in shape]))
    one = entry((a,), read={(0, index): a[index].tobytes()})
    assert known(one, a)
    changed = data.draw(st.tuples(*[st.integers(0, n - 1) for n in shape]))
    b = np.empty_like(a) if layout != "strided" else np.repeat(a, 2, -1)[..., ::2]
    b[...] = a
    assert b.strides == a.strides
    b[changed] = -1
    assert known(one, b) == (b[index].tobytes() == a[index].tobytes())


ALIKE = [
    1, 2, True, "a", "b", None, 1.0, 2.0, np.float64(1), np.float32(1), np.zeros(2), np.ones(2),
    np.zeros(3), np.zeros((2, 1)), np.zeros(4)[::2], np.zeros(2, np.float32), np.zeros(2, int), 1j,
    np.zeros(2).view(Sub),
]  # fmt: skip


def test_plain_calls_are_alike_where_their_signatures_are():
    for a in ALIKE:
        one = Entry(Way.UNSETTLED, 2, (), alike((a, 0), "ab")[0])
        for b in ALIKE:
            same = signature((a, 0), {}) == signature((b, 0), {}) and type(a) is type(b)
            assert (table(one).find((b, 0), ()) is one) == same, (a, b)


# What an entry does


def test_entries_are_asked_in_their_order():
    a, b = np.zeros(2), np.zeros(3)
    first, second, third = entry((a,)), entry((b,)), entry((b,))
    t = table(first, second, third)
    assert t.find((b,), ()) is second
    t.publish([third, second])
    assert t.find((b,), ()) is third
    assert t.find((a,), ()) is None
    t.publish([])
    assert t.call(b) is MISS


def test_an_unsettled_entry_is_found_and_not_called():
    a = np.zeros(2)
    one = entry((a,), way=Way.UNSETTLED)
    t = table(one)
    assert t.find((a,), ()) is one
    assert t.call(a) is MISS
    one.settle()
    assert t.call(a)[0] is a
    one.settle(False)
    assert t.call(a) is MISS


def test_a_plain_entry_lets_one_call_of_some_pass():
    def f(x, *, k):
        return x, k

    a = np.zeros(2)
    one = Entry(Way.PLAIN, 2, ("k",), alike((a, 3), "ak")[0])
    one.calls(f, SAMPLED)
    t = table(one)
    passed = [t.call(a, k=3) is MISS for _ in range(3 * SAMPLED)]
    assert passed == ([False] * (SAMPLED - 1) + [True]) * 3
    assert t.call(a, k=3)[0] is a


def test_what_the_function_raises_is_raised():
    def fails(given):
        raise KeyError("mine")

    t = table(entry((1,), function=fails))
    with pytest.raises(KeyError, match="mine"):
        t.call(1)


def test_results_of_all_kinds():
    def f(x, y):
        s = x + 1
        return [x, (s, s.sum(), 3, "a"), s[::-1], y]

    compiled = np_compile.compile(f)
    with config.patch(plain="never"):
        for _ in range(4):
            x, y = np.arange(3.0), np.ones(2)
            got = compiled(x, y)
    assert len(kept_calls(compiled)) == 1
    assert type(got) is list
    assert got[0] is x
    assert got[3] is y
    assert type(got[1]) is tuple
    assert got[1][2:] == (3, "a")
    assert type(got[1][1]) is np.float64
    assert got[1][1] == 6
    np.testing.assert_array_equal(got[1][0], [1, 2, 3])
    np.testing.assert_array_equal(got[2], [3, 2, 1])
    assert got[1][0].base is None
    assert got[1][0].flags.owndata


def test_a_result_of_another_order():
    def f(x):
        return np.sin(x)

    for x in (
        np.asfortranarray(np.ones((3, 4))),
        np.ones((2, 3, 4)).transpose(1, 2, 0),
        np.ones((1, 3)).T,
    ):
        compiled = np_compile.compile(f)
        with config.patch(plain="never"):
            for _ in range(4):
                got = compiled(x)
        assert len(kept_calls(compiled)) == 1
        want = f(x)
        assert got.strides == want.strides
        assert got.dtype == want.dtype
        assert got.flags.owndata
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_what_is_described_is_given():
    parts = (
        Give.TUPLE,
        [(Give.ARGUMENT, 1), (Give.LIST, [(Give.MADE, 7), (Give.CONSTANT, 5)]), (Give.SCALAR, 9),
         (Give.VIEW, ((Give.MADE, 7), [("ndarray.reshape", (2, 1), {}, None)])),
         (Give.DICT, (("a",), [(Give.CONSTANT, None)]))],
    )  # fmt: skip
    made = [np.zeros(2), np.array(3.0)]
    got = giver(parts, [7, 9].index, False)([10, 20], made)
    assert got[:3] == (20, [made[0], 5], 3.0)
    assert type(got[2]) is np.float64
    assert got[3].base is made[0]
    assert got[3].shape == (2, 1)
    assert got[4] == {"a": None}
    tensors = {7: torch.zeros(2), 9: torch.tensor(3.0)}
    got = giver(parts, int, True)([10, 20], tensors)
    assert got[2] is tensors[9]
    assert got[3].shape == (2, 1)
    assert got[3].data_ptr() == tensors[7].data_ptr()


# The function around it


def scaled(x, *, by=2.0):
    return np.sqrt(x) * by


def test_a_call_by_keyword_is_kept():
    compiled = np_compile.compile(scaled)
    with config.patch(plain="never"):
        for k in range(6):
            x = np.full(4, float(k))
            np.testing.assert_array_equal(compiled(x, by=3.0), scaled(x, by=3.0))
        assert len(kept_calls(compiled)) == 1
        np.testing.assert_array_equal(compiled(x, by=4.0), scaled(x, by=4.0))
        np.testing.assert_array_equal(compiled(x=x), scaled(x))
        np.testing.assert_array_equal(compiled(x), scaled(x))


def test_fullgraph_calls_are_kept():
    compiled = np_compile.compile(scaled, fullgraph=True)
    for k in range(6):
        x = np.full(4, float(k))
        np.testing.assert_array_equal(compiled(x), scaled(x))
    assert len(kept_calls(compiled)) == 1


def small(x):
    return x.reshape(-1)


def chosen_plain():
    """A compiled function that runs as it stands on such an array, and the array."""
    compiled = np_compile.compile(small)
    x = np.zeros((2, 2))
    compiled(x)
    (choice,) = compiled._options.choices.values()
    choice.way, choice.plain, choice.compiled = "plain", 1.0, 2.0
    compiled(x)
    return compiled, x


def test_plain_calls_are_known_and_timed_now_and_then(clock):
    clock.look = 1e-6
    compiled, x = chosen_plain()
    (choice,) = compiled._options.choices.values()
    assert len(compiled._keeper.plain) == 1
    choice._until = 10_000
    compiled(x)  # from here on calls begin in C
    entry = next(iter(compiled._keeper.plain.values())).entry
    entry.skips = entry.left = SAMPLED - 1
    before = choice._until = 10_000
    for _ in range(SAMPLED):
        assert np.shares_memory(compiled(x), x)
    assert choice._until == before - SAMPLED  # and that was short
    assert entry.skips + 1 == choice.sampled > SAMPLED
    entry.left = entry.skips
    after = before - SAMPLED - choice.sampled
    for _ in range(entry.left + 1):
        compiled(x)
    assert choice._until == after
    with config.patch(plain="never"):
        compiled(x)
    assert choice._until == after


def test_a_plain_way_that_is_given_up_is_forgotten():
    compiled, x = chosen_plain()
    (choice,) = compiled._options.choices.values()
    choice.compiled = 1e-12  # so that each timed call looks slow
    for _ in range(5 * SAMPLED):
        compiled(x)
        if choice.way != "plain":
            break
    assert choice.way is None
    assert not compiled._keeper.plain
    assert np.shares_memory(compiled(x), x)


def test_not_more_plain_calls_are_known_than_a_few():
    with config.patch(compile_in="call"):
        compiled = np_compile.compile(lambda x, k: x.reshape(-1))
        x = np.zeros((2, 2))
        kinds = [*map(str, range(3 * KEPT))]
        for k in kinds:
            compiled(x, k)
        for choice in compiled._options.choices.values():
            choice.way, choice.plain, choice.compiled = "plain", 1.0, 2.0
        for k in kinds:
            compiled(x, k)
        known = list(compiled._keeper.plain.values())
        assert len(known) == KEPT
        for k in kinds:
            assert np.shares_memory(compiled(x, k), x)
        assert list(compiled._keeper.plain.values()) == known


def test_a_disabled_setting_runs_the_original():
    compiled = np_compile.compile(scaled)
    with config.patch(plain="never"):
        for _ in range(4):
            compiled(np.ones(3))
        assert len(kept_calls(compiled)) == 1
        with config.patch(disable=True):
            result = compiled([4.0, 9.0])
    np.testing.assert_array_equal(result, [4.0, 6.0])


# What is held


def test_nothing_of_a_call_is_held():
    compiled = np_compile.compile(lambda x: [x, np.sin(x), np.sin(x).sum(), x[::2], 5])
    with config.patch(plain="never"):
        for _ in range(4):
            compiled(np.ones(3))
        assert len(kept_calls(compiled)) == 1
        x = np.ones(3).view()
        ref = weakref.ref(x)
        result = compiled(x)
        made = weakref.ref(result[1])
        count = sys.getrefcount(x)
        for _ in range(50):
            compiled(x)
        assert sys.getrefcount(x) == count
        del x, result
        gc.collect()
    assert ref() is None
    assert made() is None


def test_a_dropped_function_gives_everything_back():
    compiled = np_compile.compile(lambda x: np.sin(x) * 2)
    with config.patch(plain="never"):
        for _ in range(4):
            compiled(np.ones(3))
    kept = weakref.ref(compiled._keeper.kept[0].entry)
    del compiled
    gc.collect()
    assert kept() is None


def test_an_entry_may_be_dropped_while_it_runs():
    t = Table()
    done = []

    def f(given):
        t.publish([])
        gc.collect()
        done.append(1)
        return given

    t.publish([entry((1,), function=f)])
    assert t.call(1) == (1,)
    assert t.call(1) is MISS
    assert done == [1]


def test_threads_that_call_while_others_record():
    compiled = np_compile.compile(lambda x, k: np.sin(x) * k + 1)
    wrong = []

    def run(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            x, k = rng.random(int(rng.integers(1, 12))), int(rng.integers(3))
            if not np.allclose(compiled(x, k), np.sin(x) * k + 1, rtol=1e-14):
                wrong.append((x, k))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    with config.patch(plain="never"):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_calls_that_turn_out_faster_compiled_are_made_in_c():
    compiled = np_compile.compile(lambda x: np.sqrt(np.sqrt(x) + np.sqrt(x + 1)) * 2 + 1 - x)
    x = np.ones(3000)
    for _ in range(60):
        compiled(x)
    (choice,) = compiled._options.choices.values()
    choice.way = "compiled"  # whatever was measured
    compiled(x)
    assert compiled._keeper._table.call(x) is not MISS


LEVEL = 2.0


def levelled(x, reads):
    if reads:
        float(x.sum())
    return np.sin(x) * LEVEL


@pytest.mark.parametrize("tensors", [False, True])
def test_a_call_is_kept_with_what_it_has_read(tensors, monkeypatch):
    f = np_compile.wrap_numpy(levelled) if tensors else levelled
    compiled = np_compile.compile(f)
    x = torch.ones(5, dtype=torch.float64) if tensors else np.ones(5)
    with config.patch(plain="never"):
        for _ in range(3):
            compiled(x, True)  # what it reads is known from here on, and it is not kept
        monkeypatch.setattr(sys.modules[__name__], "LEVEL", 3.0)
        compiled(x, False)
        monkeypatch.setattr(sys.modules[__name__], "LEVEL", 2.0)
        for _ in range(3):
            np.testing.assert_array_equal(compiled(x, False), levelled(np.ones(5), False))


@pytest.mark.parametrize("tensors", [False, True])
def test_what_changes_during_a_call_is_seen(tensors, monkeypatch):
    me = sys.modules[__name__]
    f = np_compile.wrap_numpy(levelled) if tensors else levelled
    compiled = np_compile.compile(f)
    x = torch.ones(5, dtype=torch.float64) if tensors else np.ones(5)
    keeper = compiled._keeper
    keep = keeper.keep

    def late(*args):  # as another thread would do, between the call and its end
        monkeypatch.setattr(me, "LEVEL", 3.0)
        keeper.reach = None
        assert keeper.watch((x, False), {}) is not None
        return keep(*args)

    with config.patch(plain="never"):
        compiled(x, False)
        keeper.keep = late
        compiled(x, False)
        keeper.keep = keep
        assert me.LEVEL == 3.0
        np.testing.assert_array_equal(compiled(x, False), levelled(np.ones(5), False))


@pytest.mark.parametrize("tensors", [False, True])
def test_what_changes_before_a_call_ends_and_back_after_it(tensors, monkeypatch):
    me = sys.modules[__name__]
    f = np_compile.wrap_numpy(levelled) if tensors else levelled
    compiled = np_compile.compile(f)
    x = torch.ones(5, dtype=torch.float64) if tensors else np.ones(5)
    keeper = compiled._keeper
    watch = keeper.watch

    def late(*args):  # what the function reads is known, and then it reads something else
        found = watch(*args)
        monkeypatch.setattr(me, "LEVEL", 3.0)
        return found

    with config.patch(plain="never"):
        compiled(x, False)
        keeper.watch = late
        compiled(x, False)
        keeper.watch = watch
        assert not kept_calls(compiled)
        monkeypatch.setattr(me, "LEVEL", 2.0)
        np.testing.assert_array_equal(compiled(x, False), levelled(np.ones(5), False))
