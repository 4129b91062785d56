"""Work that is done while the program goes on: compiles, of libraries above all.

A few daemon threads wait for the compilers. An interpreter that ends does not wait for these: it
starts what has not been started, and that is completed without it, see `publish`. It gives what
makes C, in Python, a moment to end, and stops it then: a thread that is in C++ when the interpreter
goes ends the process. A fork has none of its parent's threads: there a job begins again, and finds
in the cache what the parent has made meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_int64
from typing import Any

from . import library
from .toolchain import CompileFailed, NoCompiler

_SECONDS, _BYTES = 0.1, 20_000  # what a compile takes, of sources of that length; until it is known
# Seconds that the interpreter's lock is kept while others wait for it. NumPy gives it back in each
# call, and would wait for the usual 5 ms each time that a worker takes it meanwhile.
_SLICE = 2e-4
# Seconds that an interpreter that ends waits for what makes C: of processors, and of a clock; and
# then for threads to hear that they are to stop, unless they are in C++ for longer.
_WORK, _WAIT, _STOP = 0.2, 1.0, 10.0
_STEP = 0.02


class _Stops(BaseException):
    """Ends what a worker does, as the interpreter ends."""


def _but_stops(told: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """As a hook, but for a _Stops that came within a finalizer, where Python drops it."""
    return lambda found: None if found.exc_type is _Stops else told(found)


class _Slices:
    """Threads take the interpreter's lock by short turns while a worker has something to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers = 0
        self._before = self._set = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._workers += 1
            if self._workers == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SLICE))
                self._set = sys.getswitchinterval()

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._workers -= 1
            if self._workers == 0 and sys.getswitchinterval() == self._set:
                sys.setswitchinterval(self._before)


class _Workers:
    """The threads, and the jobs that wait for one. They end when there is nothing to do."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: deque[Job] = deque()
        self.running: dict[Job, int] = {}  # and the threads that are at work on them
        self.threads = 0
        self.ending = self.held = False
        self.slices = _Slices()
        # Held by what makes C: one thread at a time, as Python is all that it does, and none while
        # the process forks. A fork has the locks as they are, those of imports among them.
        self.making = threading.RLock()
        self.seconds, self.bytes = _SECONDS, _BYTES

    def add(self, job: Job) -> None:
        with self.lock:
            if self.ending and isinstance(job, Compile):
                return job.start()
            if job.waits:  # compilers work while another thread goes on in Python
                self.jobs.appendleft(job)
            else:
                self.jobs.append(job)
        self.wake()

    def wake(self) -> None:
        """Have one more thread do what waits, if there may be one."""
        with self.lock:
            most = 0 if self.ending or self.held else os.cpu_count() or 1
            if not self.jobs or self.threads >= most:
                return
            self.threads += 1
        threading.Thread(target=self._work, name="np_compile compiler", daemon=True).start()

    def _work(self) -> None:
        with contextlib.suppress(_Stops):
            self._do()

    def _do(self) -> None:
        while True:
            with self.lock:
                if not self.jobs or self.held:
                    self.threads -= 1
                    return
                job = self.jobs.popleft()
                self.running[job] = threading.get_ident()
            start = time.perf_counter()
            try:
                with self.slices, contextlib.nullcontext() if job.waits else self.making:
                    job.run()
                job.took = time.perf_counter() - start
            finally:
                job.done.set()
                Job.ended.value += 1  # a lost one costs a pause
            with self.lock:
                self.running.pop(job, None)
                if isinstance(job, Compile):
                    self.seconds += job.took
                    self.bytes += job.bytes

    def end(self) -> None:
        """Start the compilers that are still to be started, wait a moment for what makes C for
        them, and stop that then."""
        with self.lock:
            self.ending = True
            compiles = [j for j in (*self.running, *self.jobs) if isinstance(j, Compile)]
            self.jobs = deque(j for j in self.jobs if not isinstance(j, Compile))
        for compile_ in compiles:
            compile_.start()
        work, start = time.process_time() + _WORK, time.monotonic()
        while (left := self._left()) and time.monotonic() < start + _WAIT:
            left[0].done.wait(_STEP)
            if time.process_time() > work:
                break
        with self.lock:
            self.jobs.clear()
        sys.unraisablehook = _but_stops(sys.unraisablehook)
        while (left := self._left()) and time.monotonic() < start + _STOP:
            for job in left:
                thread = ctypes.c_ulong(self.running.get(job, 0))
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Stops))
            left[0].done.wait(_STEP)

    def _left(self) -> list[Job]:
        """The jobs that threads are at work on, or will be, but for compiles."""
        with self.lock:
            every = (*self.running, *(self.jobs if self.threads else ()))
            return [j for j in every if not isinstance(j, Compile) and not j.done.is_set()]


_workers = _Workers()


@contextlib.contextmanager
def held() -> Iterator[None]:
    """No thread takes up a job meanwhile: what calls cost that wait for one, and nothing beside."""
    _workers.held = True
    try:
        yield
    finally:
        _workers.held = False
        _workers.wake()


_forking: list[threading.RLock] = []  # what is held while the process forks


def _before_fork() -> None:
    making = _workers.making
    if making.acquire(timeout=_WAIT):
        _forking.append(making)


def _after_fork() -> None:
    while _forking:
        _forking.pop().release()


def _in_fork() -> None:
    global _workers
    _after_fork()
    _workers = _Workers()


atexit.register(lambda: _workers.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_fork)


class Job:
    """Work that a thread of the workers does. done: set when it is. took: seconds. waits: whether
    all that it does is to wait for compilers. ended: how many have been done, where C reads it."""

    ended = c_int64()
    waits = False

    def __init__(self, work: Callable[[], Any]):
        self._work = work
        self._made: Any = None
        self._error: BaseException | None = None
        self.took = 0.0
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self.done = threading.Event()
        _workers.add(self)

    def run(self) -> None:
        """Do it; called by a worker."""
        try:
            self._made = self._work()
        except BaseException as e:
            self._error = e

    @property
    def ready(self) -> bool:
        """Whether there is a result, or an error."""
        if self._pid != os.getpid() and not self.done.is_set():
            self._begin()
        return self.done.is_set()

    @property
    def error(self) -> BaseException | None:
        """Why there is no result, once it is done."""
        return self._error

    def result(self) -> Any:
        """What the work gives, once it is done. Errors: those of the work."""
        if not self.ready:
            if _workers.ending:  # nobody else does it
                self.run()
            else:
                self.done.wait()
        if self._error is not None:
            raise self._error
        return self._made


class Compile(Job):
    """Libraries of (source, name) pairs on their way. CompileFailed if one cannot be made. bytes:
    that the compiler has to read."""

    waits = True

    def __init__(self, sources: Sequence[tuple[str, str]]):
        self.bytes = sum(len(text) for text, _ in sources)
        self._sources = sources
        self._builds: list[library.Build] = []
        super().__init__(lambda: library.load_all(sources, self._builds, outlives=True))

    def start(self) -> None:
        """Start all compilers, whose libraries nobody waits for."""
        for source in self._sources[len(self._builds) :]:
            with contextlib.suppress(CompileFailed, NoCompiler):
                self._builds.append(library.start(*source, outlives=True))

    @property
    def seconds(self) -> float:
        """How long it will take, roughly, from its beginning."""
        return self.bytes * _workers.seconds / _workers.bytes


class Libraries:
    """The libraries of (source, name) pairs, which may be on their way.

    waits: for the compiler, here; else `get` does, and it works beside the program until then.
    took: seconds of the compiler, once it is done.
    """

    def __init__(self, sources: Sequence[tuple[str, str]], waits: bool):
        start = time.perf_counter()
        found = library.load_all(sources) if waits else library.load_cached(sources)
        self.took = time.perf_counter() - start
        self._job = None if found is not None else Compile(sources)
        self._found = found

    @property
    def ready(self) -> bool:
        """Whether `get` waits for nothing."""
        return self._job is None or self._job.ready

    @property
    def seconds_left(self) -> float:
        """How long it does, roughly."""
        return 0.0 if self._job is None else self._job.seconds

    def get(self) -> list[ctypes.CDLL]:
        """The libraries. CompileFailed if one cannot be made."""
        if self._found is None:
            assert self._job is not None
            self._found = self._job.result()
            self.took += self._job.took
            self._job = None
        return self._found
