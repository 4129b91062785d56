"""A segment that fails on its data: what was made before the call that failed is there, where the
function has put it; what was to come after it is not."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from ..support import check


class Box:
    def __init__(self, u, v):
        self.u, self.v, self.w = u, v, v * 0


BACKENDS = pytest.mark.parametrize("backend", ["eager", "native"])
OUTSIDE = np.array([0, 5])


@BACKENDS
def test_attributes_have_what_was_made_before(backend):
    def f(box, index):
        box.u = box.u + 1
        box.v[index] = box.v * 2
        box.w = box.u + 3

    box = Box(np.arange(2.0), np.arange(2.0))
    assert isinstance(check(f, box, OUTSIDE, backend=backend).first.error, IndexError)


@BACKENDS
def test_items_have_what_was_made_before(backend):
    def f(items, names, index):
        items[0] = items[0] + 1
        names["a"] = items[0] * 2
        names["b"] = names["a"][index]
        names["c"] = names["b"] + 1

    seen = check(f, [np.arange(2.0)], {}, OUTSIDE, backend=backend).first
    assert isinstance(seen.error, IndexError)
    assert list(seen.args[1]) == ["a"]


@BACKENDS
def test_a_new_list_has_what_was_made_before(backend):
    def f(lists, x, index):
        new = [x + 1]
        lists.append(new)
        new.append(x[index])
        new.append(x + 2)

    seen = check(f, [], np.arange(2.0), OUTSIDE, backend=backend).first
    assert isinstance(seen.error, IndexError)


TOTAL = None


@BACKENDS
def test_names_are_not_bound_to_what_was_not_made(backend):
    def f(x, index):
        global TOTAL
        y = x[index]
        TOTAL = y * 2

    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        np_compile.compile(f, backend=backend)(np.arange(2.0), OUTSIDE)
    assert TOTAL is None


@BACKENDS
def test_cells_are_not_bound_to_what_was_not_made(backend):
    last = "nothing"

    def f(x, index):
        nonlocal last
        y = x[index]
        last = y * 2

    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        np_compile.compile(f, backend=backend)(np.arange(2.0), OUTSIDE)
    assert last == "nothing"
