"""The recorder against torch's own tracer, and what it says of each value against the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import Interpreter

import np_compile
from np_compile.lowering import lower as lowering
from np_compile.lowering.record import Recorder

from ..support import data

F = data(6, 4)
G = np.asfortranarray(data(6, 4))
V = data(4)
I = np.arange(24).reshape(6, 4) - 7  # noqa: E741
U = np.arange(24, dtype=np.uint32).reshape(6, 4)
B = F > 0
Z = F + 1j * G
H = F.astype(np.float16)


def _write(x: Any, y: Any) -> Any:
    z = x * 2
    z[1:-1, ::2] += y[1:-1, ::2]
    x[0] = z[0]
    return z.T, x


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _fancy(x: Any, i: Any) -> Any:
    y = x[:, [0, 2]] + 1
    x[[0, 2]] = 5
    np.add.at(x, (np.array([0, 1, 1]), 2), 1.5)
    return y, x[np.abs(i[:, 0]) % 6]


def _constants(x: Any) -> Any:
    w = np.array([1.0, 2.0, 3.0, 4.0])
    y = np.array([0, 1, 0, 1])
    return x * w, np.where(y, x, 0.0), np.asarray([1.5, 2.5])


def _into(x: Any, y: Any) -> Any:
    out = np.empty_like(x)
    np.multiply(x, y, out=out)
    np.add.accumulate(out, 0, out=out)
    return out


def _cycled(x: Any, i: Any) -> Any:
    """The values are taken in turn: a remainder by a number."""
    np.put(x, np.abs(i[:5, 0]) % 24, [1.0, 2.0, 3.0])
    return i[:, 1] % 5


PROGRAMS: dict[str, tuple] = {
    "cycled": (_cycled, F, I),
    "outer sum": (lambda x, y: np.sum(x[:, :, None] * y[:, None, :], (-2, -1)), F, G),
    "two layouts": (lambda x, y: x * y + 1, F, G),
    "layout of Fortran": (lambda x: np.sin(x) + np.abs(x), G),
    "broadcast": (lambda x, v: (x - v) / v, F, V),
    "where": (lambda x, y: np.where(x > 0, x, y), F, G),
    "where of Fortran": (lambda x, v: np.where(x > 0, x, v), G, V),
    "where of numbers": (lambda x: np.where(x > 0, 1, 0), F),
    "where of complex": (lambda x, z: np.where(x > 0, z, 1j), G, Z),
    "where of two dtypes": (lambda b, i, x: np.where(b, i, x), B, I, G),
    "where of bool": (lambda b: np.where(b, b, ~b), B),
    "writes": (_write, F, G),
    "softmax": (_softmax, F),
    "fancy": (_fancy, F, I),
    "constants": (_constants, F),
    "out": (_into, F, G),
    "int": (lambda i: (i // 3, i % 3, i << 2, i & 5, np.sign(i), abs(i)), I),
    "unsigned": (lambda u: (u + 1, u // 3, u > 5, u.sum(), np.sort(u, 0)), U),
    "bool": (lambda b: (~b, b & b.T.T, b.any(0), b.all(), b.sum(1), np.logical_xor(b, True)), B),
    "complex": (lambda z: (z.real + 1, z.imag, np.conj(z) * 2, np.abs(z), np.exp(z)), Z),
    "half": (lambda h: (h + 1, np.exp(h), h.sum(0), h.astype(float)), H),
    "casts": (lambda x, i: (x.astype(np.float32), i.astype(float), (x > 0).astype(int)), F, I),
    "special values": (lambda x: (np.isnan(x), np.isinf(1 / x), np.nan_to_num(x)), F),
    "powers": (lambda x: (x**2, np.power(np.abs(x), 0.3), x**3.0), F),
    "remainders": (lambda x: (x % 0.3, np.fmod(x, 0.3), x // 0.3, np.divmod(x, 0.7)), F),
    "statistics": (lambda x: (x.mean(0), x.std(1), np.var(x), np.median(x, 0)), F),
    "arg": (lambda x: (x.argmax(1), x.argmin(), np.argsort(x, 1)), F),
    "sort": (lambda x: (np.sort(x, 0), np.partition(x, 2, 1)), F),
    "running": (lambda x: (np.cumsum(x, 0), np.cumprod(x, 1), np.maximum.accumulate(x, 0)), F),
    "joins": (lambda x, y: (np.concatenate([x, y]), np.stack([x, y], 1), np.pad(x, 1)), F, G),
    "moves of Fortran": (
        lambda x: (np.roll(x, 2, 0), np.flip(x) + 1, np.roll(x, 1), x[::-2] * 2),
        G,
    ),
    "steps": (lambda v: (np.arange(0, 4) + v, np.arange(0.5, 4.5) - v, np.arange(9, 1, -2) + v), V),
    "parts of products": (lambda x, v: (np.dot(v, v), np.dot(x, v), v @ x.T, 1 - x), F, V),
    "stacks": (lambda x, y: (np.stack([x, y]), np.array([x, y]), np.column_stack([x, y])), F, G),
    "like": (lambda x: (np.ones_like(x) + x, np.full_like(x, 2) * x), G),
    "moves": (lambda x: (np.roll(x, 2, 0), x[::-1], np.tile(x, 2), np.repeat(x, 2, 1)), F),
    "triangles": (lambda x: (np.tril(x), np.triu(x, 1), np.diagonal(x).sum(), np.trace(x)), F),
    "ranges": (lambda v: v + np.arange(4) * np.linspace(0, 1, 4), V),
    "fills": (lambda x: (np.zeros_like(x) + np.ones(4), np.full((6, 4), 2.5) * x), F),
    "products": (lambda x, y: (x @ y.T, np.dot(x[0], y[1]), np.einsum("ij,kj->ik", x, y)), F, G),
    "norms": (lambda x: (np.linalg.norm(x), np.linalg.norm(x, axis=1)), F),
    "fft": (lambda x: (np.fft.fft(x), np.fft.irfft(np.fft.rfft(x, axis=0), axis=0)), F),
    "views": (lambda x: (x.T.reshape(-1)[::3] * 1, x.reshape(4, 6).sum(0)), F),
    "clip": (lambda x, i: (np.clip(x, -0.5, 0.5), np.clip(i, 0, 9)), F, I),
    "search": (lambda x, v: np.searchsorted(np.sort(v), x), F, V),
    "rounding": (lambda x: (np.round(x, 2), np.floor(x), np.rint(x), np.trunc(x)), F),
    "two operands": (lambda x, y: (np.arctan2(x, y), np.hypot(x, y), np.copysign(x, y)), F, G),
    "differences": (lambda x: (np.diff(x, axis=0), np.gradient(x, axis=1)), F),
    "histogram": (lambda i: np.bincount(np.abs(i).ravel(), minlength=30), I),
    "in place": (lambda x: np.multiply(x, 2, out=x).sum(), F),
}


class _Checked(Interpreter):
    """A run of a graph that holds what the graph says of each value against the value."""

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.op != "output":
            said = n.meta["val"]
            pairs = [(result, said)] if isinstance(result, torch.Tensor) else zip(result, said)  # noqa: B905
            for real, meta in pairs:
                assert _layout(real) == _layout(meta), n.format_node()
        return result


def _layout(t: torch.Tensor) -> tuple:
    """All but the data. Strides along axes of one element mean nothing."""
    strides = [s for s, n in zip(t.stride(), t.shape, strict=True) if n != 1] if t.numel() else []
    return t.dtype, t.shape, strides


def _segments(name: str, monkeypatch: pytest.MonkeyPatch, quick: bool) -> list[tuple]:
    """The graphs of a program's segments and their inputs, with either tracer."""
    program, *arrays = PROGRAMS[name]
    if not quick:
        monkeypatch.setattr(lowering, "_plain", lambda t: False)
    found = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        found.append((graph, [t.clone(memory_format=torch.preserve_format) for t in inputs]))
        return graph.forward

    np_compile.compile(program, backend=backend)(*(a.copy(order="K") for a in arrays))
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_tracers_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = _segments(name, monkeypatch, quick=True)
    theirs = _segments(name, monkeypatch, quick=False)
    assert len(ours) == len(theirs) > 0
    last = 1e-14 if name == "fft" else 0  # a transform's last place depends on where the data lie
    for (graph, inputs), (other, same_inputs) in zip(ours, theirs, strict=True):
        results = _Checked(graph).run(*inputs)
        expected = other(*same_inputs)
        for a, b in zip([*results, *inputs], [*expected, *same_inputs], strict=True):
            assert _layout(a) == _layout(b)
            torch.testing.assert_close(a, b, rtol=last, atol=last, equal_nan=True)
        again = graph(*(t.clone() for t in inputs))
        assert [_layout(t)[:2] for t in again] == [_layout(t)[:2] for t in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators that torch cannot split further, on the CPU, with the user's line on each."""
    for graph, _ in _segments(name, monkeypatch, quick=True):
        nodes = list(graph.graph.nodes)
        for n in nodes:
            if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload):
                assert "CompositeImplicit" not in _kinds(n.target), n.format_node()
                assert n.kwargs.get("device", torch.device("cpu")).type == "cpu"
                assert n.users or n.target._schema.is_mutable, n.format_node()
        made = [n for n in nodes if n.op == "call_function"]
        assert made
        assert all("np_call" in n.meta for n in made if n.target.__name__ != "select.int")


def _kinds(op: Any) -> str:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return "CompositeImplicit" if has(op.name(), "CompositeImplicitAutograd") else ""


def test_a_constant_is_fresh_in_each_run() -> None:
    f = np_compile.compile(lambda x: (x + 1, np.asarray([1.5, 2.5])), backend="eager")
    first = f(V)[1]
    first[0] = 7
    assert f(V)[1].tolist() == [1.5, 2.5]


def test_a_write_into_a_constant_is_no_program() -> None:
    """The graph would write to it in each run; whoever asks runs the segment in another way."""
    constant = torch.zeros(3)
    recorder = Recorder()
    x = recorder.input(torch.ones(3))
    with recorder, pytest.raises(RuntimeError, match="writes into a constant"):
        constant.add_(x)
    with recorder:
        _ = constant + x
        with pytest.raises(RuntimeError, match="writes into a constant"):
            constant.add_(1)


def test_constants_that_come_and_go_are_apart() -> None:
    """Nothing else keeps the original of what is copied to a device; its place is used again."""
    recorder = Recorder(torch.device("meta"))  # as any device but the host's
    x = recorder.input(torch.ones(3))
    with recorder:
        for _ in range(20):
            for t in [torch.from_numpy(np.zeros(3)) for _ in range(20)]:
                x = torch.add(x, t)
    recorder.finish([x])
    assert len(recorder.constants) == 400


def test_data_cannot_be_read_while_recording() -> None:
    recorder = Recorder()
    x = recorder.input(torch.ones(3))
    with recorder:
        y = x.sum()
        for read in (y.item, x.tolist, x.cpu().numpy, lambda: bool(y > 1)):
            with pytest.raises((RuntimeError, TypeError)):
                read()


def test_a_tensor_of_another_recording_is_no_program() -> None:
    stranger = Recorder().input(torch.ones(3))
    recorder = Recorder()
    x = recorder.input(torch.ones(3))
    with recorder, pytest.raises(RuntimeError, match="no operator of the program"):
        _ = x + stranger


def test_an_input_that_starts_inside_its_memory() -> None:
    base = torch.arange(12.0)
    recorder = Recorder()
    x = recorder.input(base[4:].reshape(2, 4))
    with recorder:
        diagonal = x.as_strided((2,), (5,), x.storage_offset())
    graph = torch.fx.GraphModule({}, recorder.finish([diagonal]))
    assert graph(base[4:].reshape(2, 4))[0].tolist() == [4.0, 9.0]
