"""C source to a loaded shared object, by way of the cache of `cache.py`.

A library is known by the hash of everything that it depends on: the source, the compiler (its file,
not its words, which would take a process to ask for), the flags and the processor. On the way to a
cached library nothing is started, and the cost is a hash and two system calls or so.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from np_compile.errors import BackendError

from . import cache, libm

if TYPE_CHECKING:
    import subprocess

_FORMAT = "1"  # of the cache's files: part of each key
_REMEDY = "install gcc or clang, or `pip install ziglang`, or set CC to a C compiler"
_LINES = 30  # of a compiler's words that an error quotes

_ALL = ("gcc", "clang", "zig")
# No flag changes values: no -ffast-math, and no contraction of a*b+c. -fno-math-errno and
# -fno-trapping-math give up only what no kernel looks at, errno and the moment of a trap.
# Flag, the kinds that know it, and the processor's word that asks for it (none: always).
_FLAGS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("-O3", _ALL, ""),
    ("-march=native", _ALL, "x86"),
    ("-mcpu=native", _ALL, "arm"),
    ("-mprefer-vector-width=512", _ALL, "avx512f"),
    ("-ffp-contract=off", _ALL, ""),
    ("-fno-math-errno", _ALL, ""),
    ("-fno-trapping-math", _ALL, ""),
    ("-fopenmp-simd", _ALL, ""),
    # With it gcc 12 has made wrong code of a program of seventy short nests (the least of complex
    # numbers, among other reductions); of each nest alone it has not.
    ("-fno-ivopts", ("gcc",), ""),
    ("-fno-sanitize=all", ("zig",), ""),  # zig turns some on by itself
    ("-fPIC", _ALL, ""),
    ("-shared", _ALL, ""),
    ("-w", _ALL, ""),
)


class NoCompiler(BackendError):
    """There is no C compiler, or `CC` names none."""


class CompileFailed(BackendError):
    """The compiler did not make a library that can be loaded."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: how it is called, and the files it consists of as far as they are seen."""

    argv: tuple[str, ...]
    identity: str

    @functools.cached_property
    def version(self) -> str:
        """What it says of itself. Asked once, then kept in the cache folder."""
        import hashlib

        name = hashlib.sha256(self.identity.encode()).hexdigest()[:32]
        path = os.path.join(cache.folder(), f"compiler-{name}.txt")
        kept = cache.read(path)
        if kept is not None:
            return kept.decode(errors="replace")
        text = _ask(self.argv)
        try:
            cache.write(path, text.encode())
        except OSError as e:
            cache.refuse(e.strerror or str(e))
        return text

    @property
    def kind(self) -> str:
        """Its family: "gcc", "clang" or "zig". One of no known family is called as gcc is."""
        if "ziglang" in self.argv or os.path.basename(self.argv[0]).startswith("zig"):
            return "zig"
        return "clang" if "clang" in self.version.lower() else "gcc"


def _ask(argv: Sequence[str]) -> str:
    """The words of `--version`."""
    import subprocess

    try:
        done = subprocess.run(
            [*argv, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as e:
        raise NoCompiler(f"{shlex.join(argv)} cannot be run: {e}. Remedy: {_REMEDY}.") from e
    return done.stdout.decode(errors="replace").strip()


def compiler() -> Compiler:
    """The compiler of this process: `$CC`, cc, gcc, clang or the package ziglang, in this order."""
    return _compiler(os.environ.get("CC", "").strip(), os.environ.get("PATH"))


@functools.lru_cache(maxsize=16)
def _compiler(chosen: str, path: str | None) -> Compiler:
    if chosen:
        return _chosen(chosen, path)
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name, path=path)
        if found:
            return Compiler((found,), _identity((found,)))
    return _ziglang()


def _chosen(text: str, path: str | None) -> Compiler:
    """The compiler that `CC` names, which may have arguments or a wrapper before it."""
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise NoCompiler(f"CC={text!r} cannot be read: {e}. Remedy: {_REMEDY}.") from None
    first = shutil.which(words[0], path=path) if words else None
    if first is None:
        raise NoCompiler(f"CC={text!r} names no program. Unset it, or: {_REMEDY}.")
    programs = [first, *(shutil.which(w, path=path) for w in words[1:] if not w.startswith("-"))]
    return Compiler((first, *words[1:]), _identity(p for p in programs if p))


def _ziglang() -> Compiler:
    import importlib.util

    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise NoCompiler(f"there is no C compiler. Remedy: {_REMEDY}.")
    argv = (sys.executable, "-m", "ziglang", "cc")
    return Compiler(argv, _identity((sys.executable, spec.origin)))


def _identity(programs: Iterable[str]) -> str:
    """Text that changes when a program is replaced: its resolved path, size and time."""
    lines = []
    for program in programs:
        path = os.path.realpath(program)
        status = os.stat(path)
        lines.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(lines)


@functools.cache
def processor() -> str:
    """What the kernels' machine code depends on: architecture, model and features."""
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ID", "")
    try:
        # The file grows with the number of processors; the first one's part is at its beginning.
        handle = os.open("/proc/cpuinfo", os.O_RDONLY)
    except OSError:
        import platform

        return f"{machine} {platform.processor()}"
    text = b""
    try:
        while b"\n\n" not in text and (more := os.read(handle, 16384)):
            text += more
    finally:
        os.close(handle)
    lines = text.partition(b"\n\n")[0].decode(errors="replace").splitlines()
    wanted = ("vendor_id", "model", "cpu family", "stepping", "flags", "CPU ", "Features", "isa")
    return "\n".join([machine, *(line for line in lines if line.startswith(wanted))])


def _needs() -> frozenset[str]:
    """The words of the processor that flags ask for."""
    words = processor().split()
    machine = words[0].lower() if words else ""
    family = {"x86_64": "x86", "amd64": "x86", "i686": "x86", "aarch64": "arm", "arm64": "arm"}
    return frozenset([*words, family.get(machine, machine), ""])


def flags(compiler: Compiler) -> tuple[str, ...]:
    """The options for a compiler, on this processor."""
    needs = _needs()
    return tuple(flag for flag, kinds, need in _FLAGS if need in needs and compiler.kind in kinds)


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
        _FLAGS,
        libm.vector_math_available(),
        processor(),
    )
    return hashlib.sha256(f"{parts!r}\0{source}".encode()).hexdigest()


def _libraries(kind: str) -> tuple[str, ...]:
    """What a program is linked with, after the source, as linkers want it."""
    return ("-pthread", *libm.libraries(libm.vector_math_available(kind)))


_loaded: dict[str, ctypes.CDLL] = {}


class Build:
    """A library on its way: it is loaded already, or a compiler is at work on it."""

    def __init__(self, source: str, name: str):
        self._name = name
        self._source = source
        self._compiler = compiler()
        self._key = key(source, self._compiler)
        self._library = _loaded.get(self._key) or self._cached()
        self._process: subprocess.Popen[bytes] | None = None
        if self._library is None:
            self._launch(cache.folder())

    def _cached(self) -> ctypes.CDLL | None:
        """The library out of the cache; None if there is none that can be loaded."""
        path = os.path.join(cache.folder(), self._key + ".so")
        if not cache.find(path):
            return None
        try:
            return self._remember(ctypes.CDLL(path))
        except OSError:
            cache.discard(path)
            return None

    def _remember(self, library: ctypes.CDLL) -> ctypes.CDLL:
        return _loaded.setdefault(self._key, library)

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
            *_libraries(self._compiler.kind),
        ]
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
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
            if self._process.returncode or not os.path.isfile(output):
                # The folder is to blame, or the source is: only the first is worth another try.
                if cache.is_private(self._folder) or cache.writable(self._folder):
                    end = f"exit status {self._process.returncode}, and no library"
                    raise self._failure(words or end)
                return self._elsewhere(OSError(0, "no space is left in it, or it is read-only"))
            try:
                cache.publish(output, self._target)
            except OSError as e:
                return self._elsewhere(e)
        finally:
            cache.discard(output)
        try:
            self._library = self._remember(ctypes.CDLL(self._target))
        except OSError as e:
            raise self._failure(f"{words}\nbut it cannot be loaded: {e}".lstrip()) from e
        cache.sweep(self._folder)

    def cancel(self) -> None:
        """Stop the compiler, if it is still at work, and delete what it wrote."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
            cache.discard(self._output)


def start(source: str, name: str = "program") -> Build:
    """Begin to load the library of a C source; `result()` of what comes back is the library."""
    try:
        return Build(source, name)
    except OSError as e:
        raise CompileFailed(f"compiling {name!r}: no folder takes its files: {e}.") from e


def load(source: str, *, name: str = "program") -> ctypes.CDLL:
    """The loaded library of a C source: of this process, of the cache, or compiled now."""
    return start(source, name).result()


def load_all(sources: Sequence[tuple[str, str]]) -> list[ctypes.CDLL]:
    """The libraries of (source, name) pairs, in their order; as many compilers as cores at once."""
    width = os.cpu_count() or 1
    builds: list[Build] = []
    libraries: list[ctypes.CDLL] = []
    try:
        for done in range(len(sources)):
            while len(builds) < min(len(sources), done + width):
                builds.append(start(*sources[len(builds)]))
            libraries.append(builds[done].result())
    finally:
        for build in builds:
            build.cancel()
    return libraries
