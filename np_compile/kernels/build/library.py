"""Compiling and loading: C source to a shared object, by way of the disk cache.

A library is known by the hash of everything that it depends on: the source, the compiler (its file,
not its words, which would take a process to ask for), the flags and the processor. On the way to a
cached library nothing is started, and the cost is a hash and two system calls or so.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import cache, publish, toolchain
from .toolchain import CompileFailed, Compiler, flags, linked

if TYPE_CHECKING:
    import subprocess

_LINES = 30  # of a compiler's words that an error quotes
_FORMAT = "1"  # of the cache's files: part of each key


def key(source: str, compiler: Compiler) -> str:
    """The name of the library made of `source`, without an ending.

    The kind of the compiler follows from its identity, so the table stands for the flags, and the
    compiler need not be asked.
    """
    import hashlib

    parts = (
        _FORMAT,
        compiler.argv,
        compiler.identity,
        toolchain.FLAGS,
        toolchain.vector_math_available(),
        toolchain.processor(),
    )
    return hashlib.sha256(f"{parts!r}\0{source}".encode()).hexdigest()


_loaded: dict[str, ctypes.CDLL] = {}


def loaded(name: str) -> ctypes.CDLL | None:
    """The library of this name: of this process, or of the cache; None if there is none that can be
    loaded."""
    library = _loaded.get(name)
    if library is None:
        path = os.path.join(cache.folder(), name + ".so")
        if cache.find(path):
            try:
                library = _loaded.setdefault(name, ctypes.CDLL(path))
            except OSError:
                cache.discard(path)
    return library


class Build:
    """A library on its way: it is loaded already, or a compiler is at work on it.

    outlives: whether the compiler goes on when this process ends, and the cache has the library
    then all the same.
    """

    def __init__(self, source: str, name: str, outlives: bool):
        self._name = name
        self._outlives = outlives and bool(sys.executable)
        self._source = source
        self._compiler = toolchain.compiler()
        self._key = key(source, self._compiler)
        self._library = loaded(self._key)
        self._process: subprocess.Popen[bytes] | None = None
        if self._library is None:
            self._launch(cache.folder())

    def _launch(self, folder: str) -> None:
        """Write the source into a folder and start the compiler on it."""
        import subprocess

        self._folder = folder
        self._text = os.path.join(folder, self._key + ".c")
        self._target = os.path.join(folder, self._key + ".so")
        try:
            cache.write(self._text, self._source.encode())
        except OSError as e:
            return self._elsewhere(e)
        self._output = cache.temporary(self._target)
        self._command = [
            *self._compiler.argv,
            *flags(self._compiler),
            "-o",
            self._output,
            self._text,
            *linked(self._compiler.kind),
        ]
        command = self._command
        if self._outlives:
            own = [sys.executable, "-I", "-S", publish.__file__, self._output, self._target]
            command = [*own, *command]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=self._outlives,
            )
        except OSError as e:
            raise self._failure(str(e)) from e

    def _elsewhere(self, error: OSError) -> None:
        """Begin again in the private folder, since the cache folder takes no files."""
        if cache.is_private(self._folder):
            raise CompileFailed(
                f"compiling {self._name!r}: no folder takes its files: {error}. Remedy: free some "
                "space, or set TMPDIR."
            ) from error
        self._launch(cache.refuse(error.strerror or str(error)))

    def _failure(self, words: str) -> CompileFailed:
        lines = words.splitlines()
        if len(lines) > _LINES:
            lines = [*lines[:_LINES], f"... and {len(lines) - _LINES} lines more"]
        quoted = "".join(f"\n    {line}" for line in lines)
        return CompileFailed(
            f"compiling {self._name!r} failed.\n  Command: {shlex.join(self._command)}\n"
            f"  Source:  {self._text}\n  It said:{quoted or ' nothing'}"
        )

    def result(self) -> ctypes.CDLL:
        """The loaded library, once it is there. CompileFailed if it cannot be."""
        while self._library is None:
            self._finish()
        return self._library

    def _finish(self) -> None:
        """Wait for the compiler and load what it made, or begin again in another folder."""
        assert self._process is not None
        try:
            words = self._process.communicate()[0].decode(errors="replace")
        except BaseException:
            self.cancel()
            raise
        output = self._output
        try:
            made = self._target if self._outlives else output
            if self._process.returncode or not os.path.isfile(made):
                # The folder is to blame, or the source is: only the first is worth another try.
                if cache.is_private(self._folder) or cache.writable(self._folder):
                    end = f"exit status {self._process.returncode}, and no library"
                    raise self._failure(words or end)
                return self._elsewhere(OSError(0, "no space is left in it, or it is read-only"))
            try:
                if not self._outlives:
                    publish.publish(output, self._target)
            except OSError as e:
                return self._elsewhere(e)
        finally:
            cache.discard(output)
        try:
            self._library = _loaded.setdefault(self._key, ctypes.CDLL(self._target))
        except OSError as e:
            raise self._failure(f"{words}\nbut it cannot be loaded: {e}".lstrip()) from e
        cache.sweep(self._folder)

    def cancel(self) -> None:
        """Stop the compiler, if it is still at work, and delete what it wrote."""
        if self._process is not None and self._process.returncode is None:
            if self._outlives:  # with the compiler that it runs
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.communicate()
            cache.discard(self._output)


def start(source: str, name: str = "program", *, outlives: bool = False) -> Build:
    """Begin to load the library of a C source; `result()` of what comes back is the library."""
    try:
        return Build(source, name, outlives)
    except OSError as e:
        raise CompileFailed(f"compiling {name!r}: no folder takes its files: {e}.") from e


def load(source: str, *, name: str = "program") -> ctypes.CDLL:
    """The loaded library of a C source: of this process, of the cache, or compiled now."""
    return start(source, name).result()


def load_cached(sources: Sequence[tuple[str, str]]) -> list[ctypes.CDLL] | None:
    """The libraries of (source, name) pairs, if none has to be compiled."""
    compiler = toolchain.compiler()
    found = []
    for source, _ in sources:
        library = loaded(key(source, compiler))
        if library is None:
            return None
        found.append(library)
    return found


def load_all(
    sources: Sequence[tuple[str, str]], builds: list[Build] | None = None, *, outlives: bool = False
) -> list[ctypes.CDLL]:
    """The libraries of (source, name) pairs, in their order; as many compilers as cores at once.
    builds: gets those that are started. outlives: see `Build`."""
    width = os.cpu_count() or 1
    builds = [] if builds is None else builds
    libraries: list[ctypes.CDLL] = []
    try:
        for done in range(len(sources)):
            while len(builds) < min(len(sources), done + width):
                builds.append(start(*sources[len(builds)], outlives=outlives))
            libraries.append(builds[done].result())
    finally:
        for build in builds:
            build.cancel()
    return libraries
