"""C source to a loaded library: the compiler, and the cache of what it made."""

from .library import key, load, load_all
from .toolchain import CompileFailed, Compiler, NoCompiler, compiler, flags

__all__ = [
    "CompileFailed",
    "Compiler",
    "NoCompiler",
    "compiler",
    "flags",
    "key",
    "load",
    "load_all",
]
