"""One class per mistake a user can make. Where NumPy has a class for it, NumPy's is raised."""

from __future__ import annotations

DOCS = "docs/errors.md"


class NpCompileError(Exception):
    """Base of this package's own errors. `section` names the part of docs/errors.md on it."""

    section = ""

    def __init__(self, message: str):
        if self.section:
            message += f"\n  See {DOCS}#{self.section}"
        super().__init__(message)


class SettingError(NpCompileError, ValueError):
    """A setting, by argument or environment variable, that makes no sense."""

    section = "settings"


class UnknownBackend(NpCompileError, ValueError):
    """`backend=` names no back end."""

    section = "unknown-backend"


class BackendError(NpCompileError, RuntimeError):
    """A back end failed to compile or to run a tensor program."""

    section = "backend-failed"


class GraphBreak(NpCompileError, RuntimeError):
    """`fullgraph=True`, and something needs Python or NumPy in the middle of the function."""

    section = "fullgraph"


class NotCompilable(NpCompileError, TypeError):
    """`@compile` on something that is no plain function: a generator, a coroutine, a class."""

    section = "not-compilable"


class TensorArgument(NpCompileError, TypeError):
    """A torch tensor where NumPy code expects an array."""

    section = "tensor-argument"


class GradientLost(NpCompileError, RuntimeError):
    """A call that only NumPy can run, on a tensor that requires a gradient."""

    section = "gradient-lost"
