"""Functions that wait for other threads run as they stand: nothing of theirs may come later."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import np_compile
from np_compile.errors import GraphBreak

TOTAL = 0
LOCK = threading.Lock()


class Account:
    def __init__(self):
        self.lock = threading.Lock()
        self.sums, self.n = np.zeros(3), 0

    def add(self, x):
        with self.lock:
            self.n += 1
            self.sums += x


class Counter:
    def count(self):
        global TOTAL
        with LOCK:
            TOTAL += 1


def in_a_global(x, account, waits):
    global TOTAL
    y = np.exp(x)
    with LOCK:
        TOTAL += 1
    waits()
    return y.sum()


def in_an_object(x, account, waits):
    account.add(x)
    waits()
    return np.exp(x).sum()


def by_a_method_of_an_object(x, account, waits):
    Counter().count()
    waits()
    return np.exp(x).sum()


@pytest.mark.parametrize("f", [in_a_global, in_an_object, by_a_method_of_an_object])
def test_what_threads_share_under_a_lock(f):
    global TOTAL
    with np_compile.config.patch(plain="never", compile_in="call"):
        fast = np_compile.compile(f)
        for _ in range(2):
            TOTAL, account = 0, Account()
            inside, go_on = threading.Event(), threading.Event()

            def waits(inside=inside, go_on=go_on):
                inside.set()
                assert go_on.wait(10)

            first = threading.Thread(target=fast, args=(np.ones(3), account, waits))
            first.start()
            assert inside.wait(10)
            fast(np.ones(3), account, lambda: None)
            go_on.set()
            first.join()
            if f is in_an_object:
                assert account.n == 2
                assert account.sums.tolist() == [2.0] * 3
            else:
                assert TOTAL == 2


def test_a_function_with_a_lock_is_said_to_run_as_it_stands():
    report = np_compile.explain(np_compile.compile(in_an_object, backend="eager"))(
        np.ones(3), Account(), int
    )
    assert "lock" in str(report)
    with pytest.raises(GraphBreak, match="lock"):
        np_compile.compile(in_an_object, fullgraph=True)(np.ones(3), Account(), int)
