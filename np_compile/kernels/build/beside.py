"""Work that is done while the program goes on: compiles, of libraries above all.

A few daemon threads wait for the compilers. An interpreter that ends does not wait for these; what
was begun is completed without it, see `publish`. It waits for what such a thread does in Python
(less than a second, as a rule): a thread that is in C++ when the interpreter goes ends the process.
A fork has none of its parent's threads: there a job begins again, and finds in the cache what the
parent has made meanwhile.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from . import library

_SECONDS, _BYTES = 0.1, 20_000  # what a compile takes, of sources of that length; until it is known
# Seconds that the interpreter's lock is kept while others wait for it. NumPy gives it back in each
# call, and would wait for the usual 5 ms each time that a worker takes it meanwhile.
_SLICE = 2e-4


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
        self.running: set[Job] = set()
        self.threads = 0
        self.ending = False
        self.slices = _Slices()
        self.seconds, self.bytes = _SECONDS, _BYTES

    def add(self, job: Job) -> None:
        with self.lock:
            if not self.ending:
                self.jobs.append(job)
                if self.threads >= (os.cpu_count() or 1):
                    return
                self.threads += 1
        if self.ending:
            job.run()
            job.done.set()
            return
        threading.Thread(target=self._work, name="np_compile compiler", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self.lock:
                if not self.jobs:
                    self.threads -= 1
                    return
                job = self.jobs.popleft()
                self.running.add(job)
            start = time.perf_counter()
            with self.slices:
                job.run()
            job.took = time.perf_counter() - start
            job.done.set()
            with self.lock:
                self.running.discard(job)
                if job.bytes:
                    self.seconds += job.took
                    self.bytes += job.bytes

    def end(self) -> None:
        """Begin nothing more, and wait for what is no compile."""
        with self.lock:
            self.ending = True
            left = [job for job in self.jobs if job.bytes]
            self.jobs = deque(left)
            running = [job for job in self.running if not job.bytes]
        for job in running:
            job.done.wait()


_workers = _Workers()


def _forget() -> None:
    global _workers
    _workers = _Workers()


atexit.register(lambda: _workers.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Job:
    """Work that a thread of the workers does. done: set when it is. took: seconds. bytes: of C
    sources that a compiler has to read for it."""

    bytes = 0

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

    def result(self) -> Any:
        """What the work gives, once it is done. Errors: those of the work."""
        if not self.ready:
            self.done.wait()
        if self._error is not None:
            raise self._error
        return self._made


class Compile(Job):
    """Libraries of (source, name) pairs on their way. CompileFailed if one cannot be made."""

    def __init__(self, sources: Sequence[tuple[str, str]]):
        self.bytes = sum(len(text) for text, _ in sources)
        super().__init__(lambda: library.load_all(sources, outlives=True))

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
