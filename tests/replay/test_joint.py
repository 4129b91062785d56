"""Kept calls with gradients: all programs as one call, and their gradients as another one."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

import np_compile
from np_compile import config
from np_compile.backends import joint
from np_compile.backends.joint import adding
from np_compile.kernels.compile import listening

from ..support import data, examples, first

F64 = torch.float64


def rnn(x, h, wx, wh, b):
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ wx + h @ wh + b)
    return h


def columns(x, w):
    s = np.zeros(x.shape[0])
    for t in range(x.shape[1]):
        s = np.sin(s) + x[:, t] * w + x[:, t - 1]
    return s


def states(y, k):
    made = []
    for _ in range(40):
        y = y + 0.1 * (np.sin(y) - k * y)
        made.append(y)
    return made


def stacked(y, k):
    """The gradient of the last segment needs nothing that was saved."""
    made = []
    for _ in range(40):
        y = np.tanh(y * k)
        made.append(y)
    return np.stack(made).sum()


def last_two(y, k):
    before = y
    for _ in range(40):
        before, y = y, 2 * y - before * k
    return before, y, (y > 0).sum()


def skipped(y, k):
    total = k.sum()
    for _ in range(40):
        y = np.cos(y) * k
        total = total + np.abs(y).max()
    return total, y


def constants(y, k):
    weights = np.linspace(0, 1, 5)
    for t in range(40):
        y = y * weights + k * weights[t % 5] + t
    return y.reshape(1, 5)


def structure(d):
    y = d["y"]
    for w in range(40):
        y = np.exp(-y * y) + d["k"][0] * w
    return {"y": y}


def momentum(w, k):
    """Writes, in each segment, to what autograd has saved in the one before."""
    w, m, v = w.copy(), np.zeros_like(w), np.zeros_like(w)
    for t in range(1, 40):
        g = w * k - np.sin(w)
        m *= 0.9
        m += 0.1 * g
        v += 0.1 * g * g
        w -= 0.1 * m / (1 - 0.9**t) / (np.sqrt(v) + 0.1)
    return w, m


def recurrence(y, k):
    made = np.empty((40, 5))
    made[0] = y
    for t in range(1, 40):
        made[t] = np.tanh(made[t - 1]) * k
    return made


def sums(y, k):
    """Saves sums that are called as the gradients of arguments are, to which is added."""
    u = np.ones(5)
    for _ in range(30):
        v = k / (y @ u)
        u = y / (k @ v)
        u = u / (u @ v)
    return u * v


def sweep(y, k):
    """Makes, beside what has a gradient, floats that have none."""
    c, made = np.zeros(40), np.zeros(40)
    for t in range(1, 40):
        c[t] = 1.0 / (4.0 - c[t - 1])
        made[t] = c[t] * (y[0] * t - made[t - 1]) * k[0]
    return made, c


def vec(n, seed=0):
    return torch.from_numpy(data(n, seed=seed)).to(F64)


def mat(*shape, seed=0):
    return torch.from_numpy(data(*shape, seed=seed)).to(F64)


def two(x, w):
    """Writes to two arrays by turns."""
    a, b = np.zeros(x.shape), np.zeros(x.shape)
    a[0] = x[0]
    for t in range(1, x.shape[0]):
        b[t] = np.sin(a[t - 1]) * w
        a[t] = b[t] + x[t] * b[t - 1]
    return a, b


def written_columns(x, w):
    made = np.zeros((x.shape[1], x.shape[0]))
    for t in range(1, x.shape[0]):
        made[:, t] = np.tanh(made[:, t - 1] * w + x[t])
    return made


def read_later(x, w):
    made = np.zeros(x.shape)
    made[0] = x[0]
    for t in range(1, x.shape[0]):
        made[t] = np.tanh(made[t - 1] * w + x[t])
    total = 0.0
    for t in range(1, x.shape[0]):
        total = total + (made[t] * made[t - 1]).sum()
    return total


def versions(x, w):
    """Arrays as they were in between are read later, by programs and by gradients."""
    a, b = np.ones(x.shape), x * w
    total, before = np.zeros(x.shape), b
    for t in range(1, x.shape[0]):
        a[t] = np.sin(a[t - 1]) * b[t - 1]
        old = a[t] * 2
        total = total + a * before
        before = b * b
        a[t - 1] = old * w
        b[t] = b[t] * np.sin(a[t - 1])
    return total, a, b


class Cell:
    def __init__(self, k, h):
        self.k = k
        self.h = h

    def step(self, x):
        self.h = np.tanh(self.h * self.k + x)
        return self.h


def objects(x, k):
    class Sum:
        total = 0.0

        def add(self, h):
            self.total = self.total + h * h

    cell, total = Cell(k, np.zeros(x.shape[1])), Sum()
    for t in range(x.shape[0]):
        total.add(cell.step(x[t]))
    return cell.h, total.total


def filtered(z, q):
    """Each iteration asks a library, between kernels."""
    m, p = np.zeros(2), np.eye(2)
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    total = 0.0
    for t in range(z.shape[0]):
        m, p = f @ m, f @ p @ f.T + q[0] ** 2 * np.eye(2)
        s = p + np.eye(2)
        k = np.linalg.solve(s, p).T
        e = z[t] - m
        m, p = m + k @ e, (np.eye(2) - k) @ p
        total = total - np.linalg.slogdet(s)[1] - e @ np.linalg.inv(s) @ e
    return total, m


def whitened(x, k):
    """Kernels alone in a loop, then a library."""
    w = np.eye(5) + np.outer(k, k) / 10
    for t in range(x.shape[0]):
        w = w + 0.01 * np.outer(np.tanh(x[t]), x[t])
    return np.log(np.abs(np.linalg.det(w))), np.linalg.cholesky(w @ w.T)[2:]


def propagated(x, k):
    """Results and arguments that the gradients read, and one that nothing depends on."""
    made = []
    for t in range(12):
        x = np.fft.ifft(np.fft.fft(x) * np.exp(1j * k * t)).real * np.tanh(x)
        made.append(x.argmax())
        if t % 4 == 0:
            made.append(x)
    return made, k * 2


LIBRARY = {
    "filtered": (filtered, lambda: (mat(20, 2), vec(5, 1))),
    "whitened": (whitened, lambda: (mat(20, 5), vec(5, 1))),
    "propagated": (propagated, lambda: (vec(5), vec(5, 1))),
}
PROGRAMS = {
    **LIBRARY,
    "objects": (objects, lambda: (mat(40, 5), vec(5, 1))),
    "rnn": (rnn, lambda: (mat(12, 4, 3), mat(4, 5), mat(3, 5), mat(5, 5), vec(5))),
    "columns": (columns, lambda: (mat(6, 40), vec(6, 1))),
    "states": (states, lambda: (vec(5), vec(5, 1))),
    "stacked": (stacked, lambda: (vec(5), vec(5, 1))),
    "last_two": (last_two, lambda: (vec(5), vec(5, 1))),
    "skipped": (skipped, lambda: (vec(5), vec(5, 1))),
    "constants": (constants, lambda: (vec(5), vec(5, 1))),
    "structure": (structure, lambda: ({"y": vec(5), "k": [vec(5, 1)]},)),
    "momentum": (momentum, lambda: (vec(5), vec(5, 1))),
    "recurrence": (recurrence, lambda: (vec(5), vec(5, 1))),
    "sweep": (sweep, lambda: (vec(5), vec(5, 1))),
    "sums": (sums, lambda: (vec(5), vec(5, 1))),
    "two": (two, lambda: (mat(40, 5), vec(5, 1))),
    "written_columns": (written_columns, lambda: (mat(40, 5), vec(5, 1))),
    "read_later": (read_later, lambda: (mat(40, 5), vec(5, 1))),
    "versions": (versions, lambda: (mat(40, 5), vec(5, 1) / 10)),
    "large": (last_two, lambda: (vec(200_000), vec(200_000, 1))),
}


def tensors_of(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for v in x for t in tensors_of(v)] if isinstance(x, (list, tuple)) else []


def outcome(f, make, some=None):
    """Results and gradients, where `some` says which arguments have one."""
    args = make()
    leaves = tensors_of(args)
    for k, t in enumerate(leaves):
        t.requires_grad_(some is None or k in some)
    results = tensors_of(f(*args))
    wanted = [r for r in results if r.requires_grad]
    weights = [torch.linspace(0.5, 1.5, r.numel(), dtype=r.dtype).reshape(r.shape) for r in wanted]
    torch.autograd.backward(wanted, weights)
    return [r.detach() for r in results], [t.grad for t in leaves], results


def same(got, want):
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if g is not None:
            torch.testing.assert_close(g, w, rtol=1e-9, atol=1e-9)


def chains(fast):
    return [k._joint for k in fast._keeper.kept if k._joint is not None]


def joints(fast):
    """The programs of kernels alone that are one call."""
    return [joint.made for c in chains(fast) for joint, _ in c._runs if joint is not None]


@pytest.fixture(autouse=True)
def _settings():
    with config.patch(compile_in="call"):
        yield


def compiled(f):
    return np_compile.compile(np_compile.wrap_numpy(f))


@pytest.mark.parametrize(
    "name",
    first(
        PROGRAMS,
        "objects",
        "rnn",
        "columns",
        "stacked",
        "skipped",
        "momentum",
        "sweep",
        "sums",
        "versions",
        "large",
        "filtered",
        "propagated",
    ),
)
def test_results_and_gradients(name):
    f, make = PROGRAMS[name]
    fast, slow = compiled(f), np_compile.wrap_numpy(f)
    for some in (None, {1}):
        want = outcome(slow, make, some)
        for _ in range(6):
            got = outcome(fast, make, some)
            same(got[0], want[0])
            same(got[1], want[1])
            assert [r.requires_grad for r in got[2]] == [r.requires_grad for r in want[2]]
    assert any(c.is_ready() for c in chains(fast))
    assert joints(fast) or name in LIBRARY


def kept(f, make):
    """The function, after calls that were kept and have become joint."""
    fast = compiled(f)
    for _ in range(5):
        outcome(fast, make)
    assert [c.is_ready() for c in chains(fast)] == [True]
    return fast


@pytest.mark.parametrize("name", ["rnn", "filtered", "whitened"])
def test_a_loop_is_one_node(name):
    fast = kept(*PROGRAMS[name])
    args = [t.requires_grad_() for t in PROGRAMS[name][1]()]
    result = fast(*args)  # which holds the node
    node = (result if name == "rnn" else result[0]).grad_fn
    assert {type(n).__name__ for n, _ in node.next_functions} == {"AccumulateGrad"}


def test_what_one_part_hands_to_the_next_is_given_back_when_nothing_needs_it():
    def f(x, k):
        for _ in range(40):
            x = np.linalg.solve(np.eye(2) * 2, x) + k  # needs nothing of x
        return x

    fast = compiled(f)
    x, k = mat(2, 100_000), vec(1)
    for _ in range(5):
        outcome(fast, lambda: (x, k))
    (chain,) = chains(fast)
    assert chain.is_ready()
    sizes = [t.numel() for t in chain.forward([x, k])]
    assert sum(n >= x.numel() for n in sizes) == 1


def test_a_library_that_fails_in_a_call_of_several_parts():
    fast = kept(*PROGRAMS["whitened"])
    x, k = (t.requires_grad_() for t in PROGRAMS["whitened"][1]())
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        fast(x * torch.nan, k)
    make = PROGRAMS["whitened"][1]
    same(outcome(fast, make)[1], outcome(np_compile.wrap_numpy(whitened), make)[1])


def test_several_calls_before_their_gradients_and_a_graph_that_is_gone_through_twice():
    f, make = PROGRAMS["rnn"]
    fast, slow = kept(f, make), np_compile.wrap_numpy(f)
    found = []
    for g in (slow, fast):
        first = [t.requires_grad_() for t in make()]
        second = [(t * 0.5).requires_grad_() for t in make()]
        a, b = g(*first), g(*second)
        (a * b).sum().backward(retain_graph=True)
        (a + 1).sum().backward()
        found.append([t.grad for t in (*first, *second)])
    same(found[1], found[0])


def test_what_is_saved_must_not_change():
    f, make = PROGRAMS["columns"]
    fast = kept(f, make)
    args = [t.requires_grad_() for t in make()]
    y = fast(*args)
    with torch.no_grad():
        args[1] += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_gradient_of_a_gradient_is_refused():
    f, make = PROGRAMS["columns"]
    fast = kept(f, make)
    x, w = (t.requires_grad_() for t in make())
    (g,) = torch.autograd.grad(fast(x, w).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        g.sum().backward()


def test_gradients_of_some_results_alone():
    f, make = PROGRAMS["states"]
    fast, slow = kept(f, make), np_compile.wrap_numpy(f)
    for k in (0, 5, 11):
        found = []
        for g in (slow, fast):
            args = [t.requires_grad_() for t in make()]
            made = g(*args)
            grads = [torch.full((5,), 2.0, dtype=F64) for _ in range(2)]
            torch.autograd.backward([made[k], made[3]], grads)
            assert all((t == 2).all() for t in grads)  # what is given is not added to
            found.append([t.grad for t in args])
        same(found[1], found[0])


def test_the_gradient_of_a_row_touches_a_row():
    fast = kept(*PROGRAMS["rnn"])
    texts = [
        str(adding(halves.second, adds).graph) for j in joints(fast) for halves, adds in j._made
    ]
    # Of the first iteration the index is a constant; that of the others is data.
    rows = [text for text in texts if "index_put_" in text]
    assert rows
    for text in rows:
        assert "full" not in text
        assert "index_put.default" not in text


@pytest.mark.parametrize("piece", [1, joint._PIECE])
def test_gradients_of_many_results_at_once(piece, monkeypatch):
    monkeypatch.setattr(joint, "_PIECE", piece)
    f, make = PROGRAMS["columns"]
    fast = kept(f, make)
    (made,) = joints(fast)
    count = made._forward.blocks.count
    assert count == (len(made._backward.needs) if piece == 1 else 1)
    x, w = make()
    want = torch.autograd.functional.jacobian(lambda x: np_compile.wrap_numpy(f)(x, w), x)
    for vectorize in (False, True):
        got = torch.autograd.functional.jacobian(lambda x: fast(x, w), x, vectorize=vectorize)
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["columns", "rows"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(name, reentrant):
    def rows(x, w):
        return np.sin(x).sum(axis=1) * w

    f = columns if name == "columns" else rows
    make = PROGRAMS["columns"][1]
    fast, slow = compiled(f), np_compile.wrap_numpy(f)
    want = outcome(slow, make)
    for k in range(8):
        checked = functools.partial(checkpoint, fast, use_reentrant=reentrant)
        got = outcome(checked if k > 4 else fast, make)
        same(got[1], want[1])


def test_threads():
    f, make = PROGRAMS["rnn"]
    fast, slow = kept(f, make), np_compile.wrap_numpy(f)
    want, wrong = outcome(slow, make), []

    def work():
        for _ in range(20):
            got = outcome(fast, make)
            for g, w in zip((*got[0], *got[1]), (*want[0], *want[1]), strict=True):
                if not torch.allclose(g, w):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def rows(x, w):
    """Writes a row in each iteration, and reads others: by a number that changes, and by one that
    does not."""
    y = np.zeros(x.shape)
    y[0] = x[0] * w
    for t in range(1, x.shape[0]):
        y[t] = np.sin(y[t - 1]) * w + x[t] * y[0]
    return y


def large_ones(result):
    """How many arrays as large as a result are in its history, in their own memory."""
    size = result.untyped_storage().nbytes()
    held, seen, nodes = set(), set(), [result.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        found += getattr(node, "saved_tensors", ())
        found += getattr(node, "inputs", ())
        memory = [t.untyped_storage() for t in found if isinstance(t, torch.Tensor)]
        held |= {m.data_ptr() for m in memory if m.nbytes() >= size}
        nodes += [n for n, _ in node.next_functions]
    return len(held)


def test_the_history_of_an_array_written_row_by_row_is_rows():
    fast = np_compile.compile(np_compile.wrap_numpy(rows), backend="native")
    x = (mat(40, 50) / 10).requires_grad_()
    w = vec(50, 1).requires_grad_()
    plain = np_compile.wrap_numpy(rows)(x, w)
    want = torch.autograd.grad((plain * plain).sum(), (x, w))
    for _ in range(4):
        result = fast(x, w)
        assert large_ones(result) < 10
        same(torch.autograd.grad((result * result).sum(), (x, w)), want)


@pytest.mark.parametrize("name", ["two", "written_columns", "read_later"])
def test_rows_are_written_to_what_is_not_read_again(name):
    """No step of the loop copies an array, nor its gradient."""
    f, make = PROGRAMS[name]
    fast = kept(f, make)
    args = [t.requires_grad_() for t in make()]
    plain = tensors_of(np_compile.wrap_numpy(f)(*args))
    want = torch.autograd.grad([(r * r).sum() for r in plain], args)
    made = tensors_of(fast(*args))
    total = sum((r * r).sum() for r in made)
    for _ in range(2):
        same(torch.autograd.grad(total, args, retain_graph=True), want)
    (found,) = joints(fast)
    size = 8 * args[0].numel()
    forward, backward = found._forward, found._backward
    assert sum(map(len, forward._pairs)) >= 36
    assert sum(joint._NEW in modes for (_, modes), *_ in backward._runs[-36:]) <= 3
    assert sum(forward.types[n].bytes for n in backward.needs) < 10 * size


STATEMENTS = {
    "row": "a[t] = np.sin(a[t - 1]) * w + x[t]",
    "other": "b[t] = a[t] * b[t - 1] + w",
    "back": "a[t - 1] = b[t] * 0.5",
    "again": "a[t] = a[t] * a[t]",
    "column": "b[:4, 1] = a[t] * 0.3",
    "element": "b[t, 1] = a[t - 1, 2] * x[t, 0]",
    "part": "a[t, 1:3] = b[t - 1, :2]",
    "turned": "a[t] = a[t][::-1]",
    "view": "v = a[t - 1]",
    "of_view": "b[t - 1] = v * w",
    "to_view": "v[0] = b[t, 1]",
    "whole": "b = b * 0.9 + a[t]",
    "sum": "s = s + (a[t] * b[t - 1]).sum()",
    "keep": "k = a * 2.0",
    "swap": "a, b = b, a",
    "add": "a[t] = a[t] + x[t - 1] * k[t]",
}
FRAME = """
def f(x, w):
    a, b, k, s = np.zeros(x.shape), x * 0.5, x + w, w.sum()
    a[0] = x[0]
    v = a[0]
    for t in range(1, x.shape[0]):
        {}
    return a, b, k, s, v * 1.0
"""


def check_program(names):
    found = {"np": np}
    exec(FRAME.format("\n        ".join(map(STATEMENTS.__getitem__, names))), found)
    f = found["f"]

    def make():
        return mat(40, 4) / 4, vec(4, 1) / 4

    fast, slow = compiled(f), np_compile.wrap_numpy(f)
    want = outcome(slow, make)
    for _ in range(5):
        got = outcome(fast, make)
        same(got[0], want[0])
        same(got[1], want[1])
    return joints(fast)


@pytest.mark.parametrize(
    "names",
    [
        ("row", "other", "back", "sum"),
        ("row", "view", "again", "of_view", "to_view"),
        ("row", "keep", "add", "turned", "part"),
        ("column", "element", "swap", "row"),
    ],
)
def test_writes_and_reads_of_rows(names):
    made = check_program(names)
    assert any(j.is_ready() for j in made)


@pytest.mark.thorough
@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(list(STATEMENTS)), min_size=2, max_size=6))
def test_random_programs_of_rows(names):
    check_program(names)


def test_gradients_are_those_of_differences():
    f, make = PROGRAMS["two"]
    fast = kept(f, make)
    args = [t.requires_grad_() for t in make()]
    assert torch.autograd.gradcheck(fast, args, fast_mode=True)


def collected(x, w):
    h, out = np.zeros(x.shape[1]), []
    for t in range(x.shape[0]):
        h = np.tanh(h * w + x[t])
        out.append(h)
    return out


JOINS = {
    "stack": lambda x, w: np.stack(collected(x, w)),
    "stack, last axis": lambda x, w: np.stack(tuple(collected(x, w)), axis=-1),
    "concatenate": lambda x, w: np.concatenate(collected(x, w)),
    "concatenate, all": lambda x, w: np.concatenate(collected(x, w), None),
    "vstack": lambda x, w: np.vstack(collected(x, w)),
    "hstack": lambda x, w: np.hstack(collected(x, w)),
    "dstack": lambda x, w: np.dstack(collected(x, w)),
    "column_stack": lambda x, w: np.column_stack(collected(x, w)),
    "array": lambda x, w: np.array(collected(x, w)),
    "mean": lambda x, w: np.mean(collected(x, w), axis=0),
    "scalars": lambda x, w: np.array([h.sum() for h in collected(x, w)]),
    "views": lambda x, w: np.stack([x[t] for t in range(x.shape[0])][::-1]) * w,
    "tuples": lambda x, w: np.stack([(h[0], h[1]) for h in collected(x, w)]),
}


@pytest.mark.parametrize("name", first(JOINS, "stack", "tuples"))
def test_a_long_list_is_joined(name):
    f = JOINS[name]
    fast, slow = compiled(f), np_compile.wrap_numpy(f)
    want = outcome(slow, lambda: (mat(43, 3), vec(3, 1)))
    for _ in range(4):
        got = outcome(fast, lambda: (mat(43, 3), vec(3, 1)))
        same(got[0], want[0])
        same(got[1], want[1])


def test_a_long_list_is_joined_by_as_many_programs_whatever_its_length():
    counts = []
    for n in (80, 160):
        made = []
        fast = compiled(JOINS["stack"])
        with listening(made.append):
            for _ in range(4):
                outcome(fast, lambda n=n: (mat(n, 3), vec(3, 1)))
        assert len(joints(fast)) == 1
        counts.append(len(made))
    assert counts[0] == counts[1]


def test_lists_that_cannot_be_joined_raise_as_numpy_does():
    def f(x):
        return np.stack([x[: 1 + t % 7] * 2 for t in range(40)])

    x = vec(9).requires_grad_()
    with pytest.raises(ValueError, match="all input arrays must have the same shape"):
        compiled(f)(x)


def test_short_loops_of_many_calls_are_no_single_graph():
    """With gradients each call of a graph takes torch's compiler milliseconds."""

    def table(x, w):
        r = np.zeros(x.shape)
        for i in range(1, 6):
            for j in range(1, 6):
                r[i, j] = np.tanh(r[i - 1, j] * w[0]) + np.sin(r[i, j - 1] * w[1]) + x[i, j]
        return r.sum()

    steps = {}
    for grad in (True, False):
        x, w = mat(6, 6).requires_grad_(grad), vec(2).requires_grad_(grad)
        fast = np_compile.compile(np_compile.wrap_numpy(table), backend="eager")
        with config.patch(loops="recorded", plain="never"):
            for _ in range(4):
                fast(x, w)
        (one,) = fast._keeper.kept
        steps[grad] = len(one.plan.steps)
    assert steps[True] > 4
    assert steps[False] == 1


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_sizes_that_come_again_are_joined_too(place):
    """The first of other sizes run as programs for many."""
    if place == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")

    def batch(n):
        shapes = (12, n, 3), (n, 5), (3, 5), (5, 5), (5,)
        made = [torch.from_numpy(data(*s, seed=k)).to(place) for k, s in enumerate(shapes)]
        return [t.requires_grad_() for t in made]

    fast, slow = compiled(rnn), np_compile.wrap_numpy(rnn)
    for n in (*[4] * 5, 9, 11, *[7] * 9):
        made = []
        for f in (fast, slow):
            given = batch(n)
            result = f(*given)
            made.append([result, *torch.autograd.grad((result**2).sum(), given)])
        same(*made)
    if place == "cpu":
        assert [c.is_ready() for c in chains(fast)] == [True, True]
    steps = [k.plan.steps for k in fast._keeper.kept]
    assert sum(any(program.general for program, *_ in s) for s in steps) == 2  # of 9 and 11
