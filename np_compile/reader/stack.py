"""Small arrays that nobody holds on to: on the stack, where a C compiler keeps them in registers.

An array of a constant size, made in a loop, would be allocated in each iteration. Where nothing but
the ways out names its memory (no variable holds it, no list, no result), it is a C array. A way out
copies it into memory that Python can be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .read import Line

MOST = 1024  # bytes of an array on the stack
_BUFFER = re.compile(r"\bb_\w+")


@dataclass(frozen=True)
class Small:
    """An array whose memory may be on the stack. buf, data: its C names; allocate: the C that makes
    memory for it; item: the C type of its elements; n: how many; zero: whether they are zero."""

    buf: str
    data: str
    allocate: str
    item: str
    n: int
    zero: bool

    def lines(self) -> list[Line]:
        """The C that declares it, as memory of its own; of each line is known what it is of."""
        made = (
            f"Buf *const {self.buf} = {self.allocate};",
            f"{self.item} *const {self.data} = ({self.item} *){self.buf}->data;",
        )
        return [Line(text, self) for text in made]

    def on_stack(self) -> list[str]:
        """The C that declares it on the stack."""
        name = f"own_{self.data}"
        zero = " = {0}" if self.zero else ""
        return [f"{self.item} {name}[{self.n}]{zero};", f"{self.item} *const {self.data} = {name};"]

    def moved(self, name: str) -> list[str]:
        """The C that copies it into memory of its own, under a name."""
        return [
            f"Buf *const {name} = {self.allocate};",
            f"if ({name} == 0) __builtin_trap();",
            f"{{ struct all {{ {self.item} at[{self.n}]; }};",
            f"*(struct all *){name}->data = *(struct all *){self.data}; }}",
        ]


def _places(lines: list) -> Iterator[tuple[list, int, str]]:
    for k, x in enumerate(lines):
        if isinstance(x, str):
            yield lines, k, x
        elif isinstance(x, list):
            yield from _places(x)
        elif hasattr(x, "lines"):
            yield from _places(x.lines)


def settle(lines: list) -> dict[str, Small]:
    """Put arrays on the stack, in lines of C in which the ways out are not written yet; those that
    are there, by the names of their memory."""
    found: dict[str, Small] = {}
    held: set[str] = set()
    for _, _, x in _places(lines):
        what: Any = getattr(x, "what", None)
        if isinstance(what, Small):
            found[what.buf] = what
        elif not x.startswith("release(rt, "):
            held.update(_BUFFER.findall(x))
    local = {name: x for name, x in found.items() if name not in held}
    gone = {f"release(rt, {name});" for name in local}
    for those, k, x in list(_places(lines)):
        what = getattr(x, "what", None)
        if isinstance(what, Small) and what.buf in local:
            those[k] = what.on_stack() if x.startswith("Buf *") else []
        elif x in gone:
            those[k] = []
    return local
