"""One test file in one process: `python -m conformance.worker MODE FILE RESULTS [DONE]`.

Each outcome is written to RESULTS, a line of JSON, as soon as it is known, so that a crash costs
one test. MODE: `shim` (NumPy's place is taken by the shim), `compiled:BACKEND` (each test function
runs compiled), `numpy` (as NumPy has it), `collect` (so too, and nothing runs). DONE: a file of ids
that are not to run again.
"""

from __future__ import annotations

import json
import signal
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

from .reasons import reason_of
from .substitute import TOUCHED, load

SECONDS = 60  # of CPU time for one test: a busy machine makes none late
WAITING = 600  # by the clock, for one that waits for something


class _Late(BaseException):
    """A test took too long."""


def _ring(number: int, _: Any) -> None:
    cpu = number == signal.SIGPROF
    raise _Late(f"longer than {SECONDS} s of CPU time" if cpu else f"longer than {WAITING} s")


def _limit(seconds: float, waiting: int) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(waiting)


def module_name(path: Path) -> str:
    """The dotted name of a file of NumPy's."""
    parts = path.with_suffix("").parts
    return ".".join(parts[len(parts) - 1 - parts[::-1].index("numpy") :])


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _names(c)
    return found


class _File(pytest.Module):
    """A test file, loaded by `substitute.load`."""

    mode = "shim"

    def _getobj(self) -> types.ModuleType:
        return load(self.path, module_name(self.path), self.mode == "shim")


class _Plugin:
    def __init__(self, mode: str, results: Path, done: set[str]):
        self.mode, self.done = mode, done
        self.out = results.open("a", encoding="utf-8")
        _File.mode = mode

    def write(self, **entry: Any) -> None:
        self.out.write(json.dumps(entry) + "\n")
        self.out.flush()

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> Any:
        return _File.from_parent(parent, path=module_path)

    def pytest_configure(self, config: Any) -> None:
        for mark in ("slow", "leaks_references", "thread_unsafe", "parallel_threads", "iterations",
                     "valgrind_error", "parallel_threads_limit"):  # fmt: skip
            config.addinivalue_line("markers", f"{mark}: NumPy's own")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list) -> None:
        items[:] = [i for i in items if not i.get_closest_marker("slow")]
        if items:
            for line, error in getattr(items[0].getparent(_File).obj, "__lost__", ()):
                self.write(lost=line, error=error)
        self.write(functions=sorted({i.nodeid.partition("[")[0] for i in items}))
        if self.mode == "collect":
            items.clear()
        items[:] = [i for i in items if i.nodeid not in self.done]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.write(start=item.nodeid)
        TOUCHED.start()
        private = getattr(item.getparent(_File).obj, "__private__", {})
        code = getattr(getattr(item, "function", None), "__code__", None)
        if code is not None and self.mode == "shim":
            TOUCHED.private.update(private[n] for n in _names(code) if n in private)
        self.failed: str | None = None
        self.skipped = False
        self.segments = 0
        signal.signal(signal.SIGALRM, _ring)
        signal.signal(signal.SIGPROF, _ring)
        _limit(SECONDS, WAITING)
        try:
            return (yield)
        finally:
            _limit(0, 0)
            self.write(
                id=item.nodeid,
                outcome=self._outcome(),
                why=self.failed or "",
                private=sorted(TOUCHED.private),
                segments=self.segments,
            )

    def _outcome(self) -> str:
        if self.failed is not None:
            return "failed"
        if self.skipped:
            return "skipped"
        if TOUCHED.missing:
            self.failed = "vacuous: " + ", ".join(sorted(TOUCHED.missing))
            return "failed"
        return "passed"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if report.skipped:
            self.skipped = True
        elif report.failed and self.failed is None:
            error = call.excinfo.value if call.excinfo else None
            self.failed = f"{reason_of(error)}: {type(error).__name__}: {str(error)[:300]}"
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Any:
        if not self.mode.startswith("compiled"):
            return None
        import np_compile

        arguments = {n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames}
        function = pyfuncitem.obj
        own = ()
        if isinstance(function, types.MethodType):  # what is compiled are functions
            function, own = function.__func__, (function.__self__,)
        compiled = np_compile.compile(function, backend=self.mode.partition(":")[2])
        report = np_compile.explain(compiled)(*own, **arguments)
        self.segments = len(report.segments)
        return True


def main() -> int:
    mode, file, results, *more = sys.argv[1:]
    done = set(Path(more[0]).read_text(encoding="utf-8").split("\n")) if more else set()
    path = Path(file)
    root = Path(*path.parts[: len(path.parts) - path.parts[::-1].index("numpy")])
    import hypothesis
    import torch

    torch.set_num_threads(1)
    hypothesis.settings.register_profile(
        "conformance",
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("conformance")
    warnings.simplefilter("default")
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-c",
               "/dev/null", "--rootdir", str(root.parent), "-W", "default",
               "--continue-on-collection-errors"]  # fmt: skip
    return pytest.main([*options, str(path)], plugins=[_Plugin(mode, Path(results), done)])


if __name__ == "__main__":
    sys.exit(main())
