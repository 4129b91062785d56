"""Python processes for tests, which need not import torch anew: that alone takes seconds each.

One process of a test session has imported numpy and torch, and nothing of np_compile. Its forks
take the environment, the words and the text of a new process: they import np_compile themselves,
run the text as `__main__`, and end as interpreters do. What torch reads as it is imported
(OMP_NUM_THREADS and the like) they have from the session.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Mapping
from typing import Any


class Process:
    """One process, with what is used of `subprocess.Popen`."""

    returncode: int | None = None

    def __init__(self, code: str, *words: str, env: Mapping[str, str] | None = None,
                 cwd: str | None = None, quiet: bool = False) -> None:  # fmt: skip
        self._files = [tempfile.NamedTemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        self._template = _template()
        self.pid = self._template.ask({
            "code": code, "words": words, "env": dict(os.environ if env is None else env),
            "cwd": os.getcwd() if cwd is None else cwd, "quiet": quiet,
            "files": [f.name for f in self._files],
        }, 60)  # fmt: skip

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Wait for the end; then the output and the errors."""
        try:
            self.returncode = self._template.ask({"wait": self.pid}, timeout)
        except TimeoutError:
            self.kill()
            raise
        texts = []
        for f in self._files:
            f.seek(0)
            texts.append(f.read())
            f.close()
        return texts[0], texts[1]


def run(code: str, *words: str, timeout: float = 120,
        **options: Any) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a text in a process to its end."""
    process = Process(code, *words, **options)
    out, err = process.communicate(timeout)
    assert process.returncode is not None
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class _Template:
    """The process that forks, and how it is asked."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self.close)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, question: dict[str, Any], timeout: float) -> int:
        """Send a question, and wait for its number."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps(question).encode() + b"\n")
        to.flush()
        if not select.select([back], [], [], timeout)[0]:
            _template.cache_clear()  # it still waits
            raise TimeoutError(f"no answer after {timeout} s")
        return int(back.readline())


@functools.cache
def _template() -> _Template:
    return _Template()


def _serve() -> None:
    """What the template does: fork and wait as it is asked. A fork returns from here."""
    for line in sys.stdin.buffer:
        question = json.loads(line)
        if "wait" in question:
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                _become(question)
                return
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _become(question: dict[str, Any]) -> None:
    """Be the process that was asked for, and run its text."""
    for number, file in enumerate(question["files"], 1):
        opened = os.open(file, os.O_WRONLY)
        os.dup2(opened, number)
        os.close(opened)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    os.environ.update(question["env"])
    os.chdir(question["cwd"])
    sys.argv = ["-c", *question["words"]]
    sys.path.insert(0, "")
    if question["quiet"]:
        warnings.simplefilter("ignore")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    try:
        exec(compile(question["code"], "<string>", "exec"), main.__dict__)
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


if __name__ == "__main__":
    import numpy.fft
    import numpy.random
    import numpy.testing  # noqa: F401
    import torch  # noqa: F401

    _serve()
