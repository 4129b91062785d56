"""The settings `debug` and `logs`: what is printed of compiles, topic by topic."""

from __future__ import annotations

import functools
import os
import time

import numpy as np
import pytest

import np_compile
from np_compile import config, errors
from np_compile.reader import dispatch

from .. import fresh
from ..support import data

TEXTS = {
    "breaks": "break (value): ",
    "compiles": ": compiled 2 NumPy calls",
    "recompiles": ": compiled anew: shape of input 0: (3,) -> (4,)",
    "times": "lower ",
    "calls": "= np.sin(v0)",
    "graph": "def program",
    "output": "# made by the back end 'native'",
}


def wave(x):
    return np.sin(x) + 1 if x.sum() < 99 else x


def printed(capfd, **settings):
    capfd.readouterr()
    fast = np_compile.compile(wave, dynamic=False)
    with config.patch(compile_in="call", plain="never", loops="recorded", **settings):
        fast(data(3))
        fast(data(4))
    return capfd.readouterr().err


@pytest.mark.parametrize("topic", TEXTS)
def test_a_topic_alone(topic, capfd):
    found = {name for name, text in TEXTS.items() if text in printed(capfd, logs=topic)}
    assert found == {topic}


def test_topics_together_and_levels(capfd):
    names = list(TEXTS)
    found = printed(capfd, logs="calls, breaks")
    assert [name for name in names if TEXTS[name] in found] == ["breaks", "calls"]
    for level, shown in enumerate((0, 3, 4, 5, 6, 7)):
        found = printed(capfd, debug=level)
        assert [name for name in names if TEXTS[name] in found] == names[:shown]
    assert printed(capfd) == ""


def test_loops(capfd):
    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * i
        return s

    def hopeless(x):
        for i in range(len(x)):
            x[i] = __import__("os").getpid()
        return x

    with config.patch(compile_in="call", loops="whole", logs="loops"):
        np_compile.compile(total)(data(5))
        np_compile.compile(hopeless)(data(5))
    read, refused = capfd.readouterr().err.split("np_compile: ")[1:3]
    assert read.startswith("total: compiled with its loops\n  at ")
    assert refused.startswith("hopeless: not compiled with its loops: ")
    assert f"{__file__}:{hopeless.__code__.co_firstlineno + 2}" in refused


def test_a_library_of_calls_that_fails(capfd, monkeypatch):
    monkeypatch.setattr(dispatch, "source", lambda: "int f(void) { return nothing; }")
    for f in (dispatch._making, dispatch._library):
        monkeypatch.setattr(dispatch, f.__name__, functools.cache(f.__wrapped__))

    def running(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * i
        return s

    with config.patch(compile_in="call", loops="whole", logs="loops"):
        fast, x = np_compile.compile(running), data(5)
        assert fast(x) == running(x)
        while not dispatch._making().result().ready:
            time.sleep(0.01)
        with pytest.warns(RuntimeWarning, match="calls of loops go by Python.*C compiler failed"):
            assert fast(x) == running(x)
    notes = capfd.readouterr().err.split("np_compile: ")
    (note,) = [text for text in notes if text.startswith("calls of loops go by Python: ")]
    assert "nothing" in note


def test_the_environment_variable():
    code = (
        "import numpy as np, np_compile\n"
        "np_compile.compile(lambda x: np.sin(x) + 1, backend='eager')(np.zeros(3))\n"
    )
    for topics, status in ("calls,compiles", 0), ("calls,nonsense", 1):
        done = fresh.run(code, env=os.environ | {"NP_COMPILE_LOGS": topics})
        assert done.returncode == status
        text = "np.sin(v0)" if status == 0 else "no topic 'nonsense'; there are breaks, compiles,"
        assert text in done.stderr


def test_no_such_topic():
    with pytest.raises(errors.SettingError, match="no topic 'speed'"), config.patch(logs="speed"):
        pass
