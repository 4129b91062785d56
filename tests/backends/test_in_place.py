"""Results made in the memory of an input: they are what the graph that copies gives."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx

from np_compile.backends.in_place import updated, updates
from np_compile.backends.saved import placeholders

from ..support import examples

aten = torch.ops.aten
SHAPE = (4, 4)
NUMBERS = st.integers(0, 1000)


class Graphs:
    """A graph that is made step by step, with what each node is."""

    def __init__(self):
        self.graph = fx.Graph()
        self.arrays = [self.input(SHAPE), self.input(SHAPE)]
        self.rows = [self.input(SHAPE[:1])]

    def input(self, shape):
        node = self.graph.placeholder(f"input_{len(placeholders(self.graph))}")
        node.meta["val"] = torch.empty(shape, dtype=torch.float64, device="meta")
        return node

    def call(self, target, *args, **kwargs):
        node = self.graph.call_function(target, args, kwargs)
        values = fx.map_arg((args, kwargs), lambda n: n.meta["val"])
        node.meta["val"] = target(*values[0], **{**values[1], **self._place(target)})
        return node

    @staticmethod
    def _place(target):
        return {"device": "meta"} if target is aten.full.default else {}

    def index(self, k):
        return self.call(aten.full.default, [], k, dtype=torch.int64)


def put(g, a, row, k, where):
    return g.call(aten.index_put.default, a, [g.index(where)], row)


def put_columns(g, a, row, k, where):
    turned = g.call(aten.permute.default, a, [1, 0])
    return g.call(aten.permute.default, put(g, turned, row, k, where), [1, 0])


def zeros(g):
    return g.call(aten.full.default, list(SHAPE), 0, dtype=torch.float64)


def scatter(g, row, where):
    return g.call(aten.index_put.default, zeros(g), [g.index(where)], row, True)


def add(g, a, row, k, where):
    found = scatter(g, row, where)
    return g.call(aten.add.Tensor, a, found) if k % 2 else g.call(aten.add.Tensor, found, a)


def add_two(g, a, row, k, where):
    turned = g.call(aten.permute.default, scatter(g, row, k % 4), [1, 0])
    return g.call(aten.add.Tensor, a, g.call(aten.add.Tensor, scatter(g, row, where), turned))


def turned(g, a, row, k, where):
    return g.call(aten.permute.default, a, [1, 0])


def alias(g, a, row, k, where):
    return g.call(aten.alias.default, a)


WRITES = [put, put, put_columns, add, add_two, turned, alias]


def read(g, a, k):
    return g.call(aten.index.Tensor, a, [g.index(k % 4)])


def view(g, a, k):
    return g.call(aten.select.int, a, k % 2, k % 4)


def product(g, a, k):
    return g.call(aten.mul.Tensor, g.rows[k % len(g.rows)], g.rows[-1])


READS = [read, read, view, product]


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.booleans(), NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=9),
    st.lists(NUMBERS, max_size=2),
)
def test_random_graphs(steps, more):
    g = Graphs()
    for writes, which, k, where in steps:
        a = g.arrays[-1 - k % min(3, len(g.arrays))]
        if writes:
            row = g.rows[-1 - where % len(g.rows)]
            g.arrays.append(WRITES[which % len(WRITES)](g, a, row, k // 3, where % 4))
        else:
            g.rows.append(READS[which % len(READS)](g, a, where))
    rows = [g.call(aten.clone.default, g.rows[k % len(g.rows)]) for k in more]
    g.graph.output((g.arrays[-1], *rows, *[a for a in g.arrays[-2:-1] if len(more) == 2]))
    check(g.graph)


def test_a_later_write_of_what_an_earlier_one_writes_over():
    g = Graphs()
    row = view(g, g.arrays[0], 0)
    written = put_columns(g, g.arrays[0], g.rows[0], 0, 1)
    g.graph.output((add(g, written, row, 0, 0),))
    check(g.graph)


def check(graph):
    pairs = updates(graph)
    results = len(next(iter(reversed(graph.nodes))).args[0])
    found = updated(graph, pairs)
    if found is None:
        return False
    found.lint()
    inputs = [torch.rand(n.meta["val"].shape, dtype=torch.float64) for n in placeholders(graph)]
    before = [t.clone() for t in inputs]
    want = fx.GraphModule({}, graph)(*inputs)
    for t, old in zip(inputs, before, strict=True):
        assert torch.equal(t, old)
    rest = iter(fx.GraphModule({}, found)(*inputs))
    got = [inputs[pairs[k]] if k in pairs else next(rest) for k in range(results)]
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-14, atol=1e-14)
    for k, t in enumerate(inputs):
        assert k in pairs.values() or torch.equal(t, before[k])
    return bool(pairs)


def test_a_row_of_rows_is_written_in_place():
    g = Graphs()
    row = g.call(aten.mul.Tensor, read(g, g.arrays[0], 1), g.rows[0])
    made = put(g, g.arrays[0], row, 0, 2)
    g.graph.output((made, read(g, made, 2)))
    assert check(g.graph)
    assert "index_put_" in str(updated(g.graph, updates(g.graph)))


def test_what_is_read_after_the_write_is_refused():
    g = Graphs()
    made = put(g, g.arrays[0], g.rows[0], 0, 2)
    after = g.call(aten.add.Tensor, g.call(aten.select.int, g.arrays[0], 0, 2), read(g, made, 2))
    g.graph.output((made, after))
    assert not check(g.graph)


def test_a_view_of_what_was_there_is_not_what_is_there():
    g = Graphs()
    old = view(g, g.arrays[0], 2)
    made = put(g, g.arrays[0], g.rows[0], 0, 2)
    g.graph.output((made, g.call(aten.mul.Tensor, old, read(g, made, 2))))
    assert not check(g.graph)


def test_values_that_lie_where_they_are_written_to():
    g = Graphs()
    made = put_columns(g, g.arrays[0], view(g, g.arrays[0], 2), 0, 1)
    g.graph.output((made,))
    assert check(g.graph)


def test_another_layout_is_another_array():
    g = Graphs()
    g.graph.output((turned(g, put(g, g.arrays[0], g.rows[0], 0, 2), None, 0, 0),))
    assert updates(g.graph) == {}
