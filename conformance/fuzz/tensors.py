"""Programs of whole arrays on tensors, as `wrap_numpy` makes them: in the tensors' memory."""

from __future__ import annotations

import random
import re

from .arrays import Arrays
from .maker import Parameter, Program


class Tensors(Arrays):
    """As `Arrays`. Of what comes in nothing runs backwards or is read-only: torch has no such."""

    def given(
        self, parameters: list[Parameter], sizes: dict[str, int], numbers: dict[str, str]
    ) -> list[str]:
        lines = super().given(parameters, sizes, numbers)
        return [
            re.sub(r"(np\.broadcast_to\(.*\))$", r"\1.copy()", line.replace("[::-1]", "[:]"))
            for line in lines
            if "writeable" not in line
        ]

    def source(self) -> str:
        return super().source() + "\n\nON_TENSORS = True\n"


def program(rng: random.Random) -> Program:
    """A program of whole arrays, for tensors."""
    exact = rng.random() < 0.65
    return Program(Tensors(rng, exact).source(), exact)
