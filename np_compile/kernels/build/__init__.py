"""C source to a loaded library: the compiler, and the cache of what it made."""

from .beside import Compile, Job, Libraries
from .library import key, load, load_all, load_cached
from .toolchain import CompileFailed, Compiler, NoCompiler, compiler, flags

__all__ = [
    "Compile",
    "CompileFailed",
    "Compiler",
    "Job",
    "Libraries",
    "NoCompiler",
    "compiler",
    "flags",
    "key",
    "load",
    "load_all",
    "load_cached",
]
