"""A graph of results and gradients is split where least is kept between the halves."""

from __future__ import annotations

import copy
import random
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import fx

import np_compile
import np_compile.backends.split as module
from np_compile.backends.cut import cut
from np_compile.backends.differentiated import differentiated
from np_compile.backends.saved import placeholders, results_of
from np_compile.backends.split import merge, split

from .. import fresh
from ..support import data
from .test_differentiated import PROGRAMS, slopes

_HEAVY = ("torch._dynamo", "torch._inductor", "torch._functorch.partitioners", "sympy", "networkx")


def cost(kept, weights):
    return sum(weights[v] for v in kept)


def is_cut(kept, edges, given, needed):
    """Whether all that is needed follows from what is kept."""
    waiting, seen = [v for v in needed if v not in kept], set()
    while waiting:
        v = waiting.pop()
        if v in given:
            return False
        for a, b in edges:
            if b == v and a not in kept and a not in seen:
                seen.add(a)
                waiting.append(a)
    return True


def subsets(values):
    return chain.from_iterable(combinations(values, n) for n in range(len(values) + 1))


@pytest.mark.parametrize("seed", range(60))
def test_no_cut_is_cheaper(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 8)
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.4]
    given = {0, *(v for v in range(n) if rng.random() < 0.2)}
    edges = [(a, b) for a, b in edges if b not in given]
    needed = {n - 1, *(v for v in range(n) if rng.random() < 0.2)}
    weights = {v: rng.randint(1, 9) for v in range(n)}
    lost = {v for v in range(n) if v not in given and v not in needed and rng.random() < 0.2}
    kept = cut({v: None if v in lost else w for v, w in weights.items()}, edges, given, needed)
    assert not kept & lost
    assert is_cut(kept, edges, given, needed)
    every = [set(s) for s in subsets([v for v in range(n) if v not in lost])]
    valid = [cost(s, weights) for s in every if is_cut(s, edges, given, needed)]
    assert cost(kept, weights) == min(valid)


def test_of_equal_cuts_the_last_one_is_taken():
    assert cut({1: 4, 2: 4, 3: 4}, [(1, 2), (2, 3)], {1}, {3}) == {3}
    assert cut({1: 3, 2: 4, 3: 4}, [(1, 2), (2, 3)], {1}, {3}) == {1}


def joint_of(function, *tensors):
    graph = fx.experimental.proxy_tensor.make_fx(function)(*[t.detach() for t in tensors])
    joint, _ = differentiated(graph, tensors, torch.device("cpu"), ())
    return joint


def kept_of(function, *tensors):
    """The names of what is kept between the halves of a function of some results in a list."""
    forward, _ = split(joint_of(function, *tensors), 1)
    return [n.name for n in results_of(forward.graph)[1:]]


def test_elementwise_values_are_computed_again():
    x = torch.ones(10, 10, requires_grad=True)
    assert kept_of(lambda x: [(torch.sin(x).exp() * torch.cos(x)).sum()], x) == ["primals_1"]


def test_products_and_small_sums_are_kept():
    x = torch.ones(10, 10, requires_grad=True)
    assert kept_of(lambda x: [torch.exp(x @ x)], x) == ["exp", "permute"]
    assert kept_of(lambda x: [x / x.sum(1, keepdim=True)], x) == ["primals_1", "sum_1"]


def test_of_a_long_chain_some_values_are_kept():
    def f(x):
        for _ in range(300):
            x = torch.sin(x) * 0.5
        return [x]

    assert 2 < len(kept_of(f, torch.ones(10, requires_grad=True))) < 12


def test_equal_values_are_computed_once():
    def f(x):
        return [torch.exp(x) * 2.0 + torch.exp(x) * 2, torch.exp(x) - 0.0 + (torch.exp(x) - -0.0)]

    joint = joint_of(f, torch.ones(3, requires_grad=True))
    merge(joint.graph)
    names = [n.target.overloadpacket.__name__ for n in joint.graph.nodes if n.op == "call_function"]
    assert names.count("exp") == 1
    assert names.count("sub") == 2  # zeros of two signs


def test_equal_results_are_two_arrays():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    compiled = np_compile.compile(np_compile.wrap_numpy(lambda x: (np.sin(x), np.sin(x))))
    for _ in range(3):
        a, b = compiled(x)
        a.detach()[:] = 0
        assert b.tolist() == torch.sin(x).tolist()


def test_random_numbers_are_drawn_for_each_call():
    graph = fx.Graph()
    drawn = [graph.call_function(torch.ops.aten.rand.default, ([2],)) for _ in range(2)]
    for node in drawn:
        node.meta["val"] = torch.empty(2, device="meta")
    total = graph.call_function(torch.ops.aten.add.Tensor, tuple(drawn))
    total.meta["val"] = torch.empty(2, device="meta")
    graph.output((total,))
    merge(graph)
    assert [n for n in graph.nodes if n.op == "call_function"] == [*drawn, total]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_no_more_is_kept_than_by_torchs_partitioner(f, monkeypatch):
    from torch._functorch.partitioners import min_cut_rematerialization_partition as theirs

    found = []

    def both(joint, count):
        graph = copy.deepcopy(joint.graph)
        for node, other in zip(joint.graph.nodes, graph.nodes, strict=True):
            other.meta = dict(node.meta)
        halves = split(joint, count)
        torchs = theirs(fx.GraphModule(joint, graph), None, num_fwd_outputs=count)
        for forward, _ in (halves, torchs):
            kept, given = (
                {n.meta["val"].untyped_storage()._cdata: n.meta["val"] for n in nodes}
                for nodes in (results_of(forward.graph)[count:], placeholders(forward.graph))
            )  # a view keeps all of what it is of; what was given is there
            new = [t for memory, t in kept.items() if memory not in given]
            found.append(sum(t.untyped_storage().nbytes() for t in new))
        return halves

    monkeypatch.setattr(module, "split", both)
    slopes(np_compile.compile(np_compile.wrap_numpy(f), fullgraph=True), data(3, 3), data(3, 3))
    ours, torchs = found[::2], found[1::2]
    assert ours
    assert sum(ours) <= sum(torchs)


_RUN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import numpy as np, torch
import np_compile
from tests.backends.test_differentiated import PROGRAMS, slopes

x = np.arange(9.0).reshape(3, 3) / 7 + np.eye(3)

def loss(x, y):
    h = np.tanh(x @ y[0])
    return np.mean((h @ x - y[1]) ** 2) / 2 + np.abs(np.tril(x)).mean() + 1e-3 * (y[0] @ y[1])

for f in [loss, *PROGRAMS]:
    if f.__name__ != "factored":  # the gradient of a determinant asks torch for a diagonal
        slopes(np_compile.compile(np_compile.wrap_numpy(f), fullgraph=True), x, x[::-1])
        print(f.__name__, *[m for m in {_HEAVY} if m in sys.modules])
"""


def test_first_gradients_import_no_compiler_of_torchs():
    done = fresh.run(_RUN)
    assert not done.returncode, done.stderr
    names = [f.__name__ for f in PROGRAMS if f.__name__ != "factored"]
    assert done.stdout.splitlines() == ["loss", *names]
