"""Lengths that depend on data, taken to be what they nearly always are.

`np.bincount(x, minlength=n)` has n elements, unless x holds a number from n on. A call that can be
made again, since the function only computes and nothing has been written to its arguments, goes on
with n; the program finds any number beyond, as an index out of bounds. Then the call is made again
without guesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from np_compile.tape.node import Break

if TYPE_CHECKING:
    import torch

    from np_compile.runtime.program import Program

    from ..capture import Capture

# The rows of the shim that take arrays without data to have such a length.
GUESSED = ("bincount",)


class Wrong(BaseException):
    """A length was not what it was taken to be. Not an error: no handler of the user's sees it."""


def allowed(capture: Capture) -> bool:
    """Whether the call that is recorded could be made again."""
    watch = capture.watch
    return (
        watch is not None
        and watch.guesses
        and not watch.spoiled
        and not watch.written
        and capture.options.backend == "native"
    )


def reason(name: str) -> Break:
    """Why the tape is cut where a length cannot be guessed."""
    return Break("data", f"np.{name}: its result depends on the data")


def check(program: Program, by_operators: bool, device: torch.device | None) -> None:
    """Wrong, for a program with a guess that might write to arguments before it finds it wrong; on
    a device, for one of torch's operators, as an index out of bounds ends the process there."""
    native = program.direct and not by_operators
    if not native and (program.mutates or device is not None):
        raise Wrong
