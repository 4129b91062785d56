"""What operators give of tensors whose sizes may change, against the operators themselves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from np_compile.lowering.extents import _view_strides
from np_compile.lowering.sized import SizedRecorder, evaluate
from np_compile.lowering.symint import SizeNode, size_of, symint
from np_compile.size import Facts, Real, Size, evaluated

aten = torch.ops.aten

# Of two matrices of one shape (n, m), n and m not less than 2, in any order in memory.
OPERATORS = {
    "add": lambda x, y: x + y,
    "add a row": lambda x, y: x + y[0],
    "add a column": lambda x, y: x + y[:, :1],
    "where": lambda x, y: torch.where(x > 0, x, y),
    "where with a row": lambda x, y: torch.where(x > 0, x, y[1]),
    "compare": lambda x, y: x < y,
    "to": lambda x, y: x.to(torch.int32),
    "clone": lambda x, y: x.clone(),
    "contiguous": lambda x, y: x.contiguous(),
    "like": lambda x, y: torch.ones_like(x),
    "sum": lambda x, y: x.sum(),
    "sum of columns": lambda x, y: x.sum(0),
    "sum of rows, kept": lambda x, y: x.sum(1, keepdim=True),
    "amax": lambda x, y: x.amax((0, 1)),
    "argmax": lambda x, y: x.argmax(1),
    "var": lambda x, y: x.var(0, correction=1),
    "max with places": lambda x, y: x.max(0),
    "cumsum": lambda x, y: x.cumsum(1),
    "sort": lambda x, y: x.sort(stable=True, dim=0),
    "flip": lambda x, y: x.flip(0),
    "roll": lambda x, y: x.roll(1, 1),
    "product": lambda x, y: x @ y.T,
    "product with a vector": lambda x, y: x @ y[0],
    "dot": lambda x, y: x[:, 0] @ y[:, 1],
    "bmm": lambda x, y: torch.bmm(x[None], y.T[None]),
    "transpose": lambda x, y: x.T,
    "ravel": lambda x, y: x.reshape(-1),
    "another shape": lambda x, y: x.reshape(x.shape[1], x.shape[0]),
    "halves": lambda x, y: torch.cat([x, x]).reshape(2, -1),
    "a new axis": lambda x, y: x[:, None] * y[None],
    "expand": lambda x, y: x[:, :1].expand(-1, 7),
    "squeeze": lambda x, y: x[:1].squeeze(),
    "a slice": lambda x, y: x[1:, :-1],
    "a slice of steps": lambda x, y: x[::2, 1::3],
    "a slice beyond": lambda x, y: x[3:],
    "select": lambda x, y: x[-1],
    "diagonal": lambda x, y: x.diagonal(),
    "a diagonal beside": lambda x, y: x.diagonal(-1),
    "unfold": lambda x, y: x.unfold(0, 2, 1),
    "cat": lambda x, y: torch.cat([x, y[1:]]),
    "cat of columns": lambda x, y: torch.cat([x, y], 1),
    "stack": lambda x, y: torch.stack([x, y], 1),
    "repeat": lambda x, y: x.repeat(2, 3),
    "index": lambda x, y: x[torch.tensor([1, 0, 1])],
    "index of columns": lambda x, y: x[:, torch.tensor([[1, 0], [0, 0]])],
    "indices apart": lambda x, y: x[None][torch.tensor([0]), :, torch.tensor([1])],
    "index_select": lambda x, y: x.index_select(1, torch.tensor([1, 0])),
    "gather": lambda x, y: x.gather(0, (y > 0).long()),
    "pad": lambda x, y: torch.constant_pad_nd(x, [1, 2, 0, 1]),
    "convolution": lambda x, y: torch.conv1d(x[:, None], y[None, :1, :2], padding=1, stride=2),
    "tril": lambda x, y: x.tril(),
    "scatter": lambda x, y: x.scatter_add(0, (y > 0).long(), y),
    "empty": lambda x, y: x.new_zeros((x.shape[1] + 1, 3)),
    "arange": lambda x, y: torch.arange(x.shape[0] - 5, 2 * x.shape[1], 3, device=x.device),
    "fill": lambda x, y: x.clone().fill_(3),
    "copy": lambda x, y: torch.empty_like(x)[1:].copy_(y[0]),
    "complex": lambda x, y: torch.complex(x, y),
    "parts of complex": lambda x, y: torch.view_as_real(torch.complex(x, y))[..., 1],
    "bytes": lambda x, y: x.clone().view(torch.int64),
    "fft": lambda x, y: torch.fft.fft(x.to(torch.complex128), dim=0),
    "rfft": lambda x, y: torch.fft.rfft(x),
    "irfft": lambda x, y: torch.fft.irfft(torch.complex(x, y), n=2 * x.shape[1]),
    "searchsorted": lambda x, y: torch.searchsorted(x[0].contiguous(), y.contiguous()),
    "of slices": lambda x, y: x[1:, :-1] + y[:-1, 1:].T.T,
    "of a slice and its transpose": lambda x, y: x[:2, :2] * x[:2, :2].T,
    "of axes in another order": lambda x, y: (x[1:, None, 1:].permute(2, 0, 1) * 2).sum(1),
    "a product of slices": lambda x, y: (x[:, 1:] @ y[:, 1:].T).reshape(-1),
    "mean": lambda x, y: x.mean(1) / x.shape[0],
}


def _strides(shape, layout):
    """C order, Fortran's, every second row, a row of one beside others, one row again and again."""
    n, m = shape
    return {
        "C": (m, 1), "F": (1, n), "rows": (2 * m, 1), "gaps": (3 * m, 3), "same": (0, 1),
    }[layout]  # fmt: skip


def _layouts(result, facts, values):
    parts = result if isinstance(result, (tuple, list)) else [result]
    found = []
    for t in parts:
        integers = (*t.shape, *t.stride(), t.storage_offset())
        found.append([t.dtype, *[evaluated(size_of(n), values) for n in integers]])
    return found


@pytest.mark.parametrize("name", OPERATORS)
@given(
    st.lists(st.tuples(st.integers(2, 9), st.integers(2, 9)), min_size=2, max_size=5),
    st.sampled_from(["C", "F", "rows", "gaps", "same"]), st.sampled_from(["C", "F", "rows"]),
)  # fmt: skip
def test_results_are_those_of_the_operator(name, shapes, one, other):
    n, m = shapes[0]
    facts = Facts()
    N, M = facts.symbol("n0", n), facts.symbol("n1", m)
    recorder = SizedRecorder(facts, torch.device("cpu"))
    x, y = (
        recorder.sized_input((N, M), _strides((N, M), layout), torch.float64)
        for layout in (one, other)
    )
    function = OPERATORS[name]
    try:
        with recorder:
            made = function(x, y)
    except (NotImplementedError, RuntimeError):
        return  # there is no program for many sizes then
    holds = facts.predicate()
    assert holds([n, m])
    for n, m in shapes:
        if not holds([n, m]):
            continue
        real = []
        for layout in (one, other):
            room = torch.randn(4 * n * m * 3, dtype=torch.float64)
            real.append(room.as_strided((n, m), _strides((n, m), layout)))
        want = function(*real)
        values = {"n0": n, "n1": m}
        assert _layouts(made, facts, values) == _layouts(want, facts, values)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_operator_is_left_out(name):
    facts = Facts()
    N, M = facts.symbol("n0", 6), facts.symbol("n1", 8)
    recorder = SizedRecorder(facts, torch.device("cpu"))
    inputs = [recorder.sized_input((N, M), (M, 1), torch.float64) for _ in range(2)]
    with recorder:
        OPERATORS[name](*inputs)
    assert not facts.fixed()


def test_axes_in_another_order_want_another_program():
    facts = Facts()
    rows, columns = facts.symbol("n0", 10), facts.symbol("n1", 2)
    recorder = SizedRecorder(facts, torch.device("cpu"))
    x = recorder.sized_input((4, 5), (rows, columns), torch.float64)
    with recorder:
        made = x + 1
    assert made.stride() == (5, 1)
    holds = facts.predicate()
    assert holds([10, 2])
    assert holds([16, 3])
    assert not holds([2, 8])


def test_the_graph_computes_the_integers_that_it_needs():
    facts = Facts()
    N = facts.symbol("n0", 6)
    recorder = SizedRecorder(facts, torch.device("cpu"))
    x = recorder.sized_input((N,), (1,), torch.float64)
    with recorder:
        made = torch.cat([x, x.new_ones(2 * N.facts.size("n0").hint - 11)]) / x.shape[0]
        more = made[x.shape[0] // 4 :].reshape(-1, 1).expand(-1, 2)
    graph = torch.fx.GraphModule(recorder.constants, recorder.finish([more]))
    for n in (6, 10, 14):
        t = torch.randn(n, dtype=torch.float64)
        want = (torch.cat([t, t.new_ones(1)]) / n)[n // 4 :].reshape(-1, 1).expand(-1, 2)
        torch.testing.assert_close(graph(t)[0], want)


def test_evaluate():
    assert evaluate("(n0*n1-(n0//3))", n0=7, n1=2) == 12


def test_numbers_of_sizes_are_asked_for_by_guards():
    facts = Facts()
    n = symint(facts.symbol("n0", 6))
    assert n >= 2
    assert n + 1 > n
    assert not facts.guards
    assert torch.sym_max(n, 4) == n
    assert [str(g.size) for g in facts.guards] == ["(3-n0)"]
    assert type(torch.sym_float(n).node.value) is Real
    assert isinstance(size_of(n * n // n), Size)
    assert n / 4 == 1.5
    assert facts.fixed() == {"n0"}


def test_symbols_that_are_equal_become_one():
    facts = Facts()
    a, b, c = (facts.symbol(f"n{k}", 5) for k in range(3))
    assert b == c
    assert a == b
    assert facts.merged() == {"n1": "n0", "n2": "n0"}
    assert (b * c + b % 3).renamed(facts.merged()) == a * a + a % 3
    assert SizeNode(a).number() == 5
    assert facts.fixed() == {"n0"}


def test_axes_with_a_gap_between_them_are_not_one():
    n = Facts().symbol("n0", 4)
    assert _view_strides([n, 3], [3, 1], [3 * n]) == [1]
    assert _view_strides([n, 3], [5, 1], [3 * n]) is None
    assert _view_strides([n, 6], [8, 1], [n, 2, 3]) == [8, 3, 1]
