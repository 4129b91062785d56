"""Which iterations can touch one element, against all values of their axes."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from np_compile.kernels.analysis.dependence import disjoint, same_iteration
from np_compile.kernels.ir import expr as E
from np_compile.kernels.ir.expr import Expr
from np_compile.kernels.passes.linearize import linearize
from np_compile.kernels.passes.schedule import schedule
from np_compile.kernels.passes.tile import tile

from ..graphs import after


def _value(x: Expr, axes: dict[Expr, int]) -> int:
    """An index for given values of its axes."""
    if x.op == "const":
        return int(x.value)
    if x.op == "axis":
        return axes[x]
    inner = [_value(y, axes) for y in x.args]
    if x.op == "affine":
        return int(x.value[0]) + sum(c * v for c, v in zip(x.value[1:], inner, strict=True))
    return inner[0] // x.value if x.op == "idiv" else inner[0] % x.value


def _index(rng: random.Random, axes: list[Expr]) -> Expr:
    total = E.integer(rng.randrange(3))
    for a in axes:
        kind = rng.randrange(8)
        part = E.floordiv(a, 2) if kind == 0 else E.mod(a, 3) if kind == 1 else a
        total = E.plus(total, E.times(part, rng.choice((-12, -7, -4, -3, -2, -1, 1, 2, 3, 4, 12))))
    return total


def test_equal_elements_and_equal_iterations() -> None:
    rng = random.Random(0)
    proved = 0
    for _ in range(3000):
        axes = [E.axis(rng.choice((1, 2, 3, 4)), "i") for _ in range(rng.randint(1, 3))]
        others = [E.axis(a.extent, "j") for a in axes]
        at = rng.randrange(len(axes))
        around = rng.randrange(at + 1)
        known = dict(zip(others[:around], axes[:around], strict=True))
        x = _index(rng, axes)
        y = E.substitute(x, dict(zip(axes, others, strict=True)))
        y = y if rng.randrange(4) else _index(rng, others)
        places: dict[tuple, set[int]] = {}
        for values in itertools.product(*(range(a.extent) for a in axes)):
            element = _value(x, dict(zip(axes, values, strict=True)))
            places.setdefault((values[:around], element), set()).add(values[at])
        meets = mixed = False
        every = {element for _, element in places}
        for values in itertools.product(*(range(a.extent) for a in axes)):
            element = _value(y, dict(zip(others, values, strict=True)))
            meets = meets or element in every
            mixed = mixed or bool(places.get((values[:around], element), set()) - {values[at]})
        assert not (disjoint((x,), (y,)) and meets)
        if same_iteration((x,), (y,), axes[at], others[at], known):
            assert not mixed, (x, y)
            proved += 1
    assert proved > 500


def _marks(text: str) -> list[str]:
    """The marks of the loops of a large nest, from the outermost on."""
    lines = after(text, linearize, schedule).splitlines()
    return [re.sub(r"^ *for \w+ < \d+|:$| \d+", "", line) for line in lines if "for " in line]


HEAD = "x: f64[300002] strides[1] input 0\ny: f64[100000,3] strides[3,1] input 1\n"


@pytest.mark.parametrize(
    ("element", "marks"),
    [
        ("x[(3*i + j)]", [" parallel", " vector"]),
        ("x[(299999 + -3*i + -1*j)]", [" parallel", " vector"]),
        ("x[(i + 100000*j)]", [" parallel", " vector"]),
        ("x[(2*i + j)]", ["", " vector"]),
        ("x[(i + -1*j + 2)]", ["", " vector"]),
        ("x[i]", [" parallel", ""]),
    ],
)
def test_loops_that_write_to_one_element_run_in_order(element: str, marks: list[str]) -> None:
    text = f"{HEAD}for i < 100000:\n  for j < 3:\n    {element} = y[i, j]"
    assert _marks(text) == marks


def test_strips_write_to_no_element_twice() -> None:
    strip = f"{HEAD}for i < 100000:\n  for j < 3:\n    {{}} = y[i, j] along i"
    assert _marks(strip.format("x[(i + 100000*j)]"))[0] == " parallel strip"
    assert "strip" not in _marks(strip.format("x[(i + 50000*j)]"))[0]


def test_tiles_write_to_no_element_twice() -> None:
    text = (
        "x: f64[40000] strides[1] input 0\ny: f64[200,200] strides[200,1] input 1\n"
        "for i < 200:\n  for j < 200:\n    x[(i + {}*j)] = y[i, j]"
    )
    assert "for w" in after(text.format(200), linearize, tile)
    assert "for w" not in after(text.format(190), linearize, tile)
