"""What a kept call for many sizes needs of the sizes of its arguments, as one function of these.

What follows from sizes is computed once with symbols in their place, as a program for many sizes is
made: extents become `Size`s, and what is asked of them guards. That is written down as Python, a
line after the other, which serves every later call. What no `Size` can say (a number of floats) is
computed by the same code from numbers, each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from np_compile.size import Facts, Size, hint

# Of a call's arguments what it needs of sizes; None for others than served.
Evaluate = Callable[[Sequence[Any]], "tuple | None"]
_LEAST = -(1 << 62)  # nothing is known of an integer that is computed
_LITERALS = (int, bool, str, type(None))  # what has the same text in Python


class Sight(NamedTuple):
    """An array as far as sizes go: its shape, and its strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(a: np.ndarray) -> Sight:
        """That of an array."""
        return Sight(a.shape, _strides(a))


def _strides(a: np.ndarray) -> tuple[int, ...]:
    """Strides in elements. Errors: LookupError, where they are no multiples of these."""
    found = [divmod(s, a.itemsize or 1) for s in a.strides]
    if any(rest for _, rest in found):
        raise LookupError
    return tuple([n for n, _ in found])


class Code(str):
    """A number that is no `Size`, as text."""

    __slots__ = ()


class Evaluation:
    """Sizes as symbols, and the Python that computes what follows from them.

    shapes: of the arrays among the arguments, by their positions.
    """

    def __init__(self, given: Mapping[int, Sight]):
        self.facts = Facts()
        self.shapes: dict[int, tuple[Size, ...]] = {}
        self._given = given
        self._strides: dict[int, tuple[Size, ...]] = {}
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"strides": _strides}  # what the lines refer to
        self._told = 0  # guards that are among the lines
        for k, a in given.items():
            self.shapes[k] = self._numbers(f"given[{k}].shape", a.shape, 0)

    def strides(self, position: int) -> tuple[Size, ...]:
        """Of an argument, in elements."""
        found = self._strides.get(position)
        if found is None:
            now = self._given[position].strides
            found = self._numbers(f"strides(given[{position}])", now, 0)
            self._strides[position] = found
        return found

    def test(self, holds: bool) -> None:
        """What is True at hand, and has led to guards."""
        if not holds:
            raise LookupError("a condition does not hold for the sizes at hand")

    def call(self, function: Callable, *args: Any, least: int = _LEAST) -> Any:
        """The integers that a function gives of such arguments, and floats after them. It raises
        LookupError for others."""
        ints, floats = function(*[_hints(a) for a in args])
        made = self._variable(function, args)
        found = self._numbers(f"{made}[0]", ints, least)
        return found, [Code(f"{made}[1][{k}]") for k in range(len(floats))]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """If the block raises, nothing has been asked in it."""
        mark = self.facts.mark()
        try:
            yield
        except Exception:
            self.facts.back(mark)
            raise

    def function(self, results: Sequence[Any]) -> Evaluate:
        """What gives the results for other arguments: tuples, lists and dicts of sizes and numbers.
        None where a guard does not hold. Errors: LookupError, likewise."""
        self._guards()
        lines = [*self._lines, f"return {self._text(tuple(results))}"]
        code = "def at(given):\n" + "".join(f"    {line}\n" for line in lines)
        exec(code, self._names)
        made: Evaluate = self._names["at"]
        return made

    def _variable(self, function: Callable, args: Iterable[Any]) -> str:
        """A variable that is what a function gives."""
        name = f"f{len(self._names)}"
        self._names[name] = function
        self._guards()
        self._lines.append(f"r{name} = {name}({', '.join(map(self._text, args))})")
        return f"r{name}"

    def _text(self, x: Any) -> str:
        """Sizes and numbers as Python has them."""
        kind = type(x)
        if kind is Size:
            return str(x.text("//"))
        if kind is tuple:
            return f"({''.join([self._text(v) + ', ' for v in x])})"
        if kind is list:
            return f"[{', '.join(map(self._text, x))}]"
        if kind is dict:
            return "{" + ", ".join([f"{k!r}: {self._text(v)}" for k, v in x.items()]) + "}"
        if kind is Code:
            return str(x)
        if kind in _LITERALS or (kind is float and math.isfinite(x)):
            return repr(x)
        name = f"c{len(self._names)}"  # such as an infinity, which has no literal
        self._names[name] = x
        return name

    def _numbers(self, code: str, now: Sequence[int], least: int) -> tuple[Size, ...]:
        """Symbols for numbers that code gives."""
        first = len(self.facts.values)
        names = [f"s{first + k}" for k in range(len(now))]
        if names:
            self._guards()
            self._lines.append(f"{', '.join(names)}, = {code}")
        return tuple([self.facts.symbol(n, v, least) for n, v in zip(names, now, strict=True)])

    def _guards(self) -> None:
        """What was asked until now comes before what follows."""
        new = self.facts.guards[self._told :]
        self._told += len(new)
        if new:
            tests = dict.fromkeys(guard.test for guard in new)
            self._lines.append(f"if not ({' and '.join(tests)}): return None")


def _hints(x: Any) -> Any:
    return tuple(map(_hints, x)) if type(x) is tuple else hint(x)
