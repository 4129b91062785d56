"""Compiles beside the program: NumPy runs until the kernels are there."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture import segments
from np_compile.capture.policy import decide
from np_compile.kernels import build
from np_compile.kernels.build import Job, library
from np_compile.kernels.build.toolchain import CompileFailed
from np_compile.runtime.program import Program

from .. import fresh
from ..support import data, wait_for, wait_for_workers


class Gate:
    """Holds compiles back until it is opened. begun: how many have begun."""

    def __init__(self):
        self.begun = 0
        self._open = threading.Event()

    def load(self, sources, builds=None, *, outlives=False):
        if outlives:
            self.begun += 1
            assert self._open.wait(120)
        return build.load_all(sources)

    def waits_for_one(self):
        """Wait until a compile has begun."""
        wait_for(lambda: self.begun)

    def open(self):
        """Let them go on, and wait for those that have begun."""
        self._open.set()
        wait_for_workers()


@pytest.fixture
def gate(monkeypatch):
    """No library is in the cache, and compiles beside the program wait for the gate."""
    made = Gate()
    monkeypatch.setattr(library, "load_cached", lambda _: None)
    monkeypatch.setattr(library, "load_all", made.load)
    with config.patch(compile_in="background"):
        yield made
    made.open()


def programs(fast):
    """Of each program of a compiled function, also of one in the making, whether it is ready."""
    found, open_ = [], list(fast._options.roots.values())
    while open_:
        node = open_.pop()
        open_ += node.next.values()
        for v in node.programs.values():
            found += [p.ready for p in v.programs.values()]
            found += [False for _ in v.jobs]
    return found


def norm(x):
    y = np.sin(x) + x
    y -= y.mean()
    return y / y.std()


def same(fast, f, *args):
    """The compiled function gives, and leaves in its arguments, what the function does."""
    mine, theirs = [[np.copy(a) for a in args] for _ in range(2)]
    got, wanted = fast(*mine), f(*theirs)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def chain(x):
    for k in range(15):
        x = np.sin(x) + k
    return x


@pytest.mark.parametrize(("f", "calls"), [(norm, 6), (chain, 30)])
def test_calls_are_translated_beside_the_program(f, calls, gate, monkeypatch):
    threads = []
    build = segments.build

    def noted(*args):
        threads.append(threading.current_thread() is threading.main_thread())
        return build(*args)

    monkeypatch.setattr(segments, "build", noted)
    with config.patch(unroll=100, loops="recorded"):
        fast = np_compile.compile(f)
        same(fast, f, data(50))
        gate.open()
        for _ in range(20):
            same(fast, f, data(50))
        assert threads == [False]
        assert programs(fast) == [True]
        assert [len(c.calls) for c in np_compile.recompiles(fast)] == [calls]


def test_a_translation_beside_the_program_that_fails_is_made_again_in_the_call(gate, monkeypatch):
    build, failed = segments.build, []

    def fails(*args):
        if threading.current_thread() is not threading.main_thread():
            failed.append(True)
            raise MemoryError
        return build(*args)

    monkeypatch.setattr(segments, "build", fails)
    with config.patch(unroll=100, loops="recorded"):
        fast = np_compile.compile(chain)
        same(fast, chain, data(50))
        gate.open()

        def made_again():
            same(fast, chain, data(50))
            gate.open()  # what the call has begun
            return True in programs(fast)

        wait_for(made_again)
        assert failed == [True]


def test_numpy_runs_until_the_kernels_are_there(gate):
    fast = np_compile.compile(norm)
    for _ in range(3):
        same(fast, norm, data(50))
    gate.waits_for_one()
    assert programs(fast) == [False]
    gate.open()
    assert programs(fast) == [True]
    (report,) = np_compile.explain(fast)(data(50)).segments
    assert report.runs == 1
    same(fast, norm, data(50))


def test_every_segment_of_a_call_is_begun_in_it(gate):
    def f(x):
        if np.sin(x).sum() > 100:
            return x
        y = np.cumsum(x * 2)
        y[np.argmax(y)] = float(y.min())
        return np.exp(-y) + 1

    fast = np_compile.compile(f)
    same(fast, f, data(20))
    first = programs(fast)
    assert len(first) >= 2
    assert not any(first)
    same(fast, f, data(20))
    assert programs(fast) == first
    gate.open()
    for _ in range(4):
        same(fast, f, data(20))


def test_writes_views_and_errors_while_the_compiler_works(gate):
    def f(x, i):
        view = x[::-1]
        view *= 2
        x[i] += 1
        try:
            x[i + 3] = 0
        except IndexError as e:
            return str(e), view[:2]
        return view.copy()

    fast = np_compile.compile(f)
    for i in ([0, 1], [4], [0, 1], [4]):
        mine, theirs = data(6), data(6)
        assert str(fast(mine, np.array(i))) == str(f(theirs, np.array(i)))
        np.testing.assert_array_equal(mine, theirs)


def steps(x, n):
    for _ in range(n):
        x = x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
    return x


def steps_without_marks(x, n):
    k = 0
    while k < n:
        x = x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
        k += 1
    return x


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("f", [steps, steps_without_marks])
def test_a_loop_goes_on_with_kernels_when_they_are_there(gate, f):
    fast = np_compile.compile(f)
    same(fast, f, data(30), 40)
    gate.waits_for_one()
    gate.open()
    for _ in range(5):
        same(fast, f, data(30), 40)
    assert any(programs(fast))


@pytest.mark.usefixtures("recorded")
def test_kernels_are_used_within_the_call_that_waited_for_them(gate, monkeypatch):
    ran = []
    run = Program.run

    def noted(program, *args):
        ran.append(program)
        return run(program, *args)

    def f(x, here):
        for k in range(60):
            x = np.tanh(x) + 0.25
            if k == 30:
                here()
        return x

    monkeypatch.setattr(Program, "run", noted)
    x = data(20_000)  # so that an iteration is worth recording
    got = np_compile.compile(f)(x, np_compile.disable(gate.open))
    np.testing.assert_allclose(got, f(x, lambda: None), rtol=1e-12)
    assert len(ran) >= 3


def test_tensors_run_operator_by_operator_meanwhile(gate):
    @np_compile.compile
    @np_compile.wrap_numpy
    def loss(x, w):
        return (np.tanh(x @ w) ** 2).sum()

    x, w = torch.ones(4, 3, dtype=torch.float64), torch.full((3,), 0.5, dtype=torch.float64)
    w.requires_grad_()
    found = []
    for k in range(4):
        if k == 2:
            gate.open()
        w.grad = None
        value = loss(x, w)
        value.backward()
        found.append((value.item(), w.grad.clone()))
    for value, gradient in found[1:]:
        assert value == pytest.approx(found[0][0])
        torch.testing.assert_close(gradient, found[0][1])


def test_what_a_library_refuses_meanwhile(gate):
    """The graph that runs until then is not the one whose checks the halves have as results."""
    fast = np_compile.compile(np_compile.wrap_numpy(lambda a: np.linalg.inv(a * 1.0).sum()))
    for k in range(4):
        a = torch.eye(3, dtype=torch.float64) * (k != 2)
        if k == 2:
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                fast(a.requires_grad_())
        else:
            assert fast(a.requires_grad_()).item() == 3
        if k == 1:
            assert programs(fast) == [False]
            gate.open()


def test_a_call_that_takes_longer_in_numpy_waits(gate, monkeypatch):
    monkeypatch.setattr(decide, "likely_seconds", lambda *_: 1e9)
    threading.Timer(0.2, gate._open.set).start()
    fast = np_compile.compile(norm)
    same(fast, norm, data(50))
    assert programs(fast) == [True]


@pytest.mark.parametrize("setting", [{"compile_in": "call"}, {"deterministic": True}])
def test_a_setting_waits(gate, setting):
    fast = np_compile.compile(norm)
    with config.patch(**setting):
        same(fast, norm, data(50))
    assert gate.begun == 0
    assert programs(fast) == [True]


def test_explain_and_inspect_wait(gate):
    gate._open.set()
    assert "section_0" in str(np_compile.inspect(np_compile.compile(norm))(data(50)))
    (segment,) = np_compile.explain(np_compile.compile(norm))(data(50)).segments
    assert segment.runs == 1


def test_a_compiler_that_fails_warns_once_and_numpy_goes_on(gate, monkeypatch):
    def fails(*sources, **options):
        raise CompileFailed("the disk is full")

    monkeypatch.setattr(library, "load_all", fails)
    fast = np_compile.compile(norm)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(5):
            same(fast, norm, data(50))
            wait_for_workers()
    assert [w.category for w in warned] == [RuntimeWarning]
    assert "the disk is full" in str(warned[0].message)


def test_threads_call_while_a_compile_ends(gate):
    fast = np_compile.compile(norm)
    wrong = []

    def calls():
        for k in range(200):
            x = data(40, seed=k)
            if not np.allclose(fast(x), norm(x), rtol=1e-12):
                wrong.append(k)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for t in threads:
        t.start()
    time.sleep(0.05)
    gate.open()
    for t in threads:
        t.join()
    assert not wrong


ENDS = """
import os, time
import numpy as np
import np_compile
f = np_compile.compile(lambda x: np.sin(x) * x + np.cos(x * 7))
f(np.arange(7.0))
while sum(".so" in name for name in os.listdir({folder!r})) < {count}:
    time.sleep(0.001)  # until the compilers are at work
"""


def run_python(code, folder, **env):
    done = fresh.run(code, env=os.environ | {"NP_COMPILE_CACHE_DIR": str(folder)} | env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_interpreter_that_ends_leaves_what_it_began(tmp_path):
    # Kernels, their threads, what kept calls need, and before Python 3.12 buffers of stand-ins.
    count = 5 if sys.version_info < (3, 12) else 4
    code = ENDS.format(folder=str(tmp_path), count=count)
    run_python(code, tmp_path, NP_COMPILE_COMPILE_IN="background")
    wait_for(lambda: len(list(tmp_path.glob("*.so"))) >= count)
    kept = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.so")}
    assert len(kept) == count
    run_python(code, tmp_path, NP_COMPILE_COMPILE_IN="call")
    now = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.so")}
    assert now == kept


ENDS_AT_ONCE = """
import os, sys
import numpy as np
import np_compile
from np_compile.kernels.build import Job, beside
if {long}:
    Job(lambda: [k for k in range(1 << 60) if k < 0])
f = np_compile.compile(lambda x: np.sin(x) * x + np.cos(x * 7))
beside._WORK, beside._WAIT = {work}, 60
f(np.arange(7.0))
"""


def test_an_interpreter_that_ends_at_once_leaves_what_is_translated_in_a_moment(tmp_path):
    run_python(ENDS_AT_ONCE.format(long=False, work=60), tmp_path)
    wait_for(lambda: list(tmp_path.glob("*.so")))


def test_an_interpreter_that_ends_stops_what_takes_longer(tmp_path):
    start = time.monotonic()
    run_python(ENDS_AT_ONCE.format(long=True, work=0.2), tmp_path)
    assert time.monotonic() - start < 60


ENDS_IN_TORCH = """
import threading
import torch
from np_compile.kernels.build import Job
begun = threading.Event()
a = torch.zeros(1200, 1200)
def work():
    begun.set()
    for _ in range(6):
        a @ a
        print("one", flush=True)
Job(work)
begun.wait()
"""


def test_an_interpreter_that_ends_stops_finalizers_in_silence():
    code = """
import time
from np_compile.kernels.build import beside


def spend():
    end = time.monotonic() + 0.04
    while time.monotonic() < end:
        pass


class Slow:
    def __del__(self):
        spend()


def work():
    while True:
        Slow()
        spend()


beside.Job(work)
time.sleep(0.05)
"""
    done = fresh.run(code)
    assert done.returncode == 0
    assert done.stderr == ""


def test_an_interpreter_that_ends_waits_for_what_is_in_torch(tmp_path):
    assert "one" in run_python(ENDS_IN_TORCH, tmp_path)


FORKS = """
import os, sys, time
import numpy as np
import np_compile
f = np_compile.compile(lambda x: np.sin(x) * x + 3)
x = np.arange(50.0)
want = np.sin(x) * x + 3
f(x)
child = os.fork()
for k in range(12000):
    assert np.allclose(f(x), want)
    time.sleep(0.01)
    choice = next(iter(f._options.choices.values()))
    if choice.awaited is None and k > 20:
        break
else:
    raise AssertionError("the kernels never came")
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_its_own_kernels(tmp_path):
    run_python(FORKS, tmp_path, NP_COMPILE_COMPILE_IN="background")


FORKS_AMID_AN_IMPORT = """
import os, signal, sys, threading
from np_compile.kernels.build import Job
sys.path.insert(0, {folder!r})
begun = threading.Event()
sys.begun = begun
Job(lambda: __import__("slow"))
begun.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    import slow
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_waits_for_what_is_done_in_python(tmp_path):
    (tmp_path / "slow.py").write_text("import sys, time\nsys.begun.set()\ntime.sleep(0.2)\n")
    run_python(FORKS_AMID_AN_IMPORT.format(folder=str(tmp_path)), tmp_path)


def test_deterministic_calls_give_equal_bits(gate):
    def f(x):
        for _ in range(12):
            x = np.tanh(x) + x.mean() / (1 + np.abs(x).sum())
        return x, x.sum(), x @ x

    fast = np_compile.compile(f)
    with config.patch(deterministic=True):
        found = {b"".join(np.asarray(r).tobytes() for r in fast(data(1001))) for _ in range(30)}
    assert len(found) == 1
    assert fast._options.choices == {}


def test_threads_take_short_turns_while_a_worker_works():
    before, inside, gate = sys.getswitchinterval(), [], threading.Event()
    jobs = [Job(lambda: inside.append(sys.getswitchinterval()) or gate.wait(60)) for _ in range(2)]
    wait_for(lambda: inside)
    assert max(inside) < before
    gate.set()
    for job in jobs:
        job.result()
    wait_for_workers()
    assert sys.getswitchinterval() == before


def test_turns_that_somebody_else_has_set_meanwhile_stay():
    before, gate = sys.getswitchinterval(), threading.Event()
    try:
        job = Job(lambda: gate.wait(60))
        wait_for(lambda: sys.getswitchinterval() != before)
        sys.setswitchinterval(0.01)
        gate.set()
        job.result()
        wait_for_workers()
        assert sys.getswitchinterval() == pytest.approx(0.01)
    finally:
        sys.setswitchinterval(before)
