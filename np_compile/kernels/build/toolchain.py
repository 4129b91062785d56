"""Finding the C compiler, its flags for this processor, and the libraries that it links."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from np_compile.errors import BackendError

from . import cache

_REMEDY = "install gcc or clang, or `pip install ziglang`, or set CC to a C compiler"
_ALL = ("gcc", "clang", "zig")
# No flag changes values: no -ffast-math, and no contraction of a*b+c. -fno-math-errno and
# -fno-trapping-math give up only what no kernel looks at, errno and the moment of a trap.
# Flag, the kinds that know it, and the processor's word that asks for it (none: always).
FLAGS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("-O3", _ALL, ""),
    ("-march=native", _ALL, "x86"),
    ("-mcpu=native", _ALL, "arm"),
    ("-mprefer-vector-width=512", _ALL, "avx512f"),
    # Where a loop of a few instructions lies across two lines of the code cache, it takes half as
    # long again on some processors.
    ("-falign-loops=64", ("gcc",), "x86"),
    ("-ffp-contract=off", _ALL, ""),
    ("-fno-math-errno", _ALL, ""),
    ("-fno-trapping-math", _ALL, ""),
    ("-fopenmp-simd", _ALL, ""),
    # With it gcc 12 has made wrong code of a program of seventy short nests (the least of complex
    # numbers, among other reductions); of each nest alone it has not.
    ("-fno-ivopts", ("gcc",), ""),
    # Signed numbers wrap around. gcc 12.2 makes wrong code of a loop with several sums that go by
    # way of unsigned ones (x.sum(axis=0) of integers with two columns, added to an array).
    ("-fwrapv", _ALL, ""),
    ("-fno-sanitize=all", ("zig",), ""),  # zig turns some on by itself
    ("-fPIC", _ALL, ""),
    ("-shared", _ALL, ""),
    ("-w", _ALL, ""),
)


class NoCompiler(BackendError):
    """There is no C compiler, or `CC` names none."""


class CompileFailed(BackendError):
    """The compiler did not make a library that can be loaded."""

    def warn(self, what: str) -> None:
        """Say so where something else does the work. what: comes of it."""
        warnings.warn(f"np_compile: {what}: {self}", RuntimeWarning, stacklevel=3)


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
    return tuple(flag for flag, kinds, need in FLAGS if need in needs and compiler.kind in kinds)


def linked(kind: str) -> tuple[str, ...]:
    """What a program is linked with, after the source, as linkers want it."""
    return ("-pthread", *libraries(vector_math_available(kind)))


@functools.cache
def vector_math_available(compiler: str = "gcc") -> str | None:
    """The vector functions that `compiler` ("gcc" or another) and this system have, or None."""
    if compiler != "gcc" or sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        return None
    # These came last, in glibc 2.35.
    newest = ("_ZGVeN8v_tanh", "_ZGVdN8v_erff", "_ZGVbN2vv_hypot")
    return "libmvec" if all(hasattr(library, name) for name in newest) else None


def libraries(vector_math: str | None) -> tuple[str, ...]:
    """The linker's arguments for programs made with `vector_math`."""
    return ("-lmvec", "-lm") if vector_math == "libmvec" else ("-lm",)
