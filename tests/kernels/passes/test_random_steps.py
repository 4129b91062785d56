"""Random programs of the loop IR mean after each pass what they meant before it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from np_compile.kernels.ir.check import check
from np_compile.kernels.ir.interpret import run
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import Program
from np_compile.kernels.passes.pipeline import stages
from np_compile.kernels.target import Target

from ...support import examples
from ..graphs import SMALL, SMALL_GPU

# Arrays that a program may have, by name: those of one letter are arguments.
SHAPES = {"x": (6,), "y": (4, 6), "z": (6, 4), "tx": (6,), "ty": (4, 6), "tz": (6, 4), "to": (6, 6)}
# Integers that are indices of an axis of so many elements, some from its end.
PLACES = {4: [1, 3, -4, 0, 3, -1], 6: [5, 0, -6, 2, 2, -1]}
OPERATIONS = ("({} + {})", "({} - {})", "minimum({}, {})", "maximum({}, {})")


def buffer(name: str, shape: tuple[int, ...], dtype: str, kind: str) -> str:
    """The line of a contiguous array."""
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    return (
        f"{name}: {dtype}[{','.join(map(str, shape))}] strides[{','.join(map(str, strides))}] "
        f"{kind}"
    )


HEAD = [
    *(
        buffer(n, shape, "f64", "temporary" if n[0] == "t" else f"input {'xyz'.index(n)}")
        for n, shape in SHAPES.items()
    ),
    buffer("p4", (6,), "i64", "input 3"),
    buffer("p6", (6,), "i64", "input 4"),
    buffer("tw", (6,), "i64", "temporary"),
    buffer("r", (4, 6), "f64", "output"),
]


class Writer:
    """A program in the making. Temporary arrays are read once they are written whole."""

    def __init__(self, draw: Callable):
        self.draw = draw
        self.readable = ["x", "y", "z"]
        self.lines: list[str] = []

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def program(self) -> str:
        """A program of some steps, the last of which gives what it has made."""
        for _ in range(self.number(2, 7)):
            self.pick(self.store, self.store, self.store, self.update, self.reduce, self.search)()  # type: ignore[operator]
        axes = [("i", 4), ("j", 6)]
        self.line(axes, f"r[i, j] = {self.value(axes, 'r')}")
        return "\n".join([*HEAD, *self.lines])

    def store(self) -> None:
        """An array, or a part of one that is written already."""
        name = str(self.pick(*SHAPES))
        whole = name not in self.readable
        axes, index = [], []
        for letter, extent in zip("ij", SHAPES[name], strict=False):
            length = extent if whole else self.number(1, extent)
            low = self.number(0, extent - length)
            if length == 1:
                index.append(str(low))
                continue
            axes.append((letter, length))
            index.append(self.pick(f"({low} + {letter})", f"({low + length - 1} + -1*{letter})"))
        if self.pick(False, True):
            axes.reverse()
        element = f"{name}[{', '.join(map(str, index))}]"
        self.line(axes, f"{element} = {self.value(axes, name, element)}")
        if whole:
            self.readable.append(name)

    def update(self) -> None:
        """Values put or added at places that data say."""
        name = str(self.pick(*self.readable))
        axes = [("k", self.number(2, 6)), ("l", 4)][: len(SHAPES[name])]
        index = [
            f"wrap(p{extent}[{letter}], {extent}, {d})"
            if d == 0 or self.pick(False, True)
            else f"wrap(p{extent}[({extent - 1} + -1*{letter})], {extent}, {d})"
            for d, ((letter, _), extent) in enumerate(zip(axes, SHAPES[name], strict=True))
        ]
        op = self.pick("=", "sum=", "max=")
        self.line(axes, f"{name}[{', '.join(index)}] {op} {self.value(axes, name)}")

    def reduce(self) -> None:
        """A reduction, running or not."""
        name = str(self.pick("tx", "ty", "tz"))
        axes = list(zip("ij", SHAPES[name], strict=False))
        op = self.pick("sum", "min", "max")
        index = ", ".join(letter for letter, _ in axes)
        if self.pick(False, True):
            over = str(self.pick(*(letter for letter, _ in axes)))
            text = f"{name}[{index}] running {op}= {self.value(axes, name)} over {over}"
        else:
            axes.append(("k", self.number(1, 4)))
            text = f"{name}[{index}] {op}= {self.value(axes, name)} over k"
        self.line(self.draw(st.permutations(axes)), text)
        if name not in self.readable:
            self.readable.append(name)

    def search(self) -> None:
        """Values put at places, by the last position of each."""
        name = str(self.pick(*(n for n in self.readable if SHAPES[n] == (6,))))
        source = "tx" if name == "x" and "tx" in self.readable else "x"
        count = self.number(2, 6) if source != name else 0
        if not count:
            return
        at, found = "wrap(p6[k], 6, 0)", "wrap(tw[wrap(p6[k], 6, 0)], 6, 0)"
        self.line([("i", 6)], "tw[i] = -1")
        self.line([("k", count)], f"tw[{at}] max= {self.pick('k', 'k', f'({count - 1} + -1*k)')}")
        if self.pick(False, False, True):
            self.line([("i", 3)], "tw[i] = -1")
        where = self.pick(at, at, f"wrap(p6[({count - 1} + -1*k)], 6, 0)")
        self.line([("k", count)], f"{name}[{where}] = ({source}[{found}] + 1.0:f64)")

    def line(self, axes: list[tuple[str, int]], text: str) -> None:
        """Add a statement. Its axes are its own, as those of a translated operator are."""
        head = ", ".join(f"{letter} < {extent}" for letter, extent in axes)
        text = f"all {head}: {text}" if head else text
        self.lines.append(re.sub(r"\b([ijkl])\b", rf"\g<1>{len(self.lines)}", text))

    def value(
        self, axes: list[tuple[str, int]], name: str, element: str = "", depth: int = 2
    ) -> str:
        """An expression of arrays, but not of the one named; element: the one of its elements
        that may be read."""
        if depth and self.pick(False, True):
            one, other = (self.value(axes, name, element, depth - 1) for _ in range(2))
            return str(self.pick(*OPERATIONS)).format(one, other)
        names = [n for n in self.readable if n != name]
        if element and name in self.readable and self.number(0, 3) == 0:
            return element
        if not names or self.number(0, 7) == 0:
            return f"{self.number(-3, 3)}.0:f64"
        read = str(self.pick(*names))
        index = (self.index(n, d, axes) for d, n in enumerate(SHAPES[read]))
        return f"{read}[{', '.join(index)}]"

    def index(self, extent: int, d: int, axes: list[tuple[str, int]]) -> str:
        """A place on an axis of so many elements."""
        fits = [(letter, n) for letter, n in axes if n <= extent]
        if not fits or self.number(0, 5) == 0:
            return str(self.number(0, extent - 1))
        letter, n = self.draw(st.sampled_from(fits))
        low = self.number(0, extent - n)
        kind = self.number(0, 9)
        if kind == 0:
            return f"(({self.number(0, extent)} + {letter}) % {extent})"
        if kind == 1:
            return f"({letter} // 2)"
        if kind == 2:
            return f"wrap(p{extent}[{letter}], {extent}, {d})"
        if kind < 5:
            return f"({low + n - 1} + -1*{letter})"
        return f"({low} + {letter})"


def memory_of(program: Program) -> dict:
    """The arguments of a program."""
    rng = np.random.default_rng(1)
    made = {}
    for b in program.buffers:
        if b.kind == "input":
            given = PLACES.get(int(b.name[1:] or 0))
            size = int(np.prod(b.shape))
            made[b] = np.array(given) if given else rng.integers(-3, 4, size).astype(float)
    return made


def result(program: Program, backwards: bool = False) -> list[np.ndarray]:
    """What a program leaves in its arguments and gives."""
    memory = memory_of(program)
    run(program, memory, backwards)
    return [memory[b] for b in program.buffers if b.kind in ("input", "output")]


@settings(max_examples=examples(100))
@given(st.data())
def test_passes_keep_the_meaning_of_random_steps(data: st.DataObject) -> None:
    keeps_its_meaning(Writer(data.draw).program())


@pytest.mark.thorough
@settings(max_examples=1000, derandomize=False)
@given(st.data())
def test_passes_keep_the_meaning_of_many_random_steps(data: st.DataObject) -> None:
    keeps_its_meaning(Writer(data.draw).program())


def keeps_its_meaning(text: str) -> None:
    """After each pass a program does what it did before."""
    program = parse(text)
    check(program)
    wanted = result(program)
    for machine in (SMALL, SMALL_GPU):
        keeps_its_meaning_for(machine, text, wanted)


def keeps_its_meaning_for(machine: Target, text: str, wanted: list) -> None:
    program = parse(text)
    passes = [*stages(machine)]
    for step, stage in passes:
        before = str(program)
        program = step(program, machine)
        check(program, stage)
        if str(program) == before and step is not passes[-1][0]:
            continue  # it does what it did, as the text says all
        for backwards in (False, True) if step is passes[-1][0] else (False,):
            got = result(program, backwards)
            what = f"after {step.__name__}:\n{program}\n\nbefore:\n{before}"
            for a, b in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=what)


RANK_IN_MEMORY = """
x: f64[2,6] strides[6,1] input 0
t: i64[2,6] strides[6,1] temporary
r: i64[2] strides[1] output
all i < 2, j < 6: t[i, j] = (5 + 6*i + -1*j)
all i < 2, j < 6: r[i] argmin= x[i, j] over j rank t[i, j]
"""
SEARCH_THAT_RUNS_BACK = """
x: f64[6] strides[1] input 0
p6: i64[6] strides[1] input 4
t: i64[6] strides[1] temporary
r: f64[6] strides[1] output
all i < 6: r[i] = 0.0:f64
all i < 6: t[i] = -1
all k < 3: t[wrap(p6[k], 6, 0)] max= (2 + -1*k)
all k < 3: r[wrap(p6[k], 6, 0)] = (x[wrap(t[wrap(p6[k], 6, 0)], 6, 0)] + 1.0:f64)
"""


@pytest.mark.parametrize("text", [RANK_IN_MEMORY, SEARCH_THAT_RUNS_BACK])
def test_passes_keep_the_meaning_of_steps(text: str) -> None:
    keeps_its_meaning(text)
