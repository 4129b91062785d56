"""The interpreter, on programs small enough to see what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import symbolic_trace

from np_compile.kernels.frontend.translate import Translation
from np_compile.kernels.ir.interpret import execute, run
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import Call, Malformed, Tensor


def ran(text: str, backwards: bool = False, **memory: Any) -> dict[str, np.ndarray]:
    """Memory by the names of buffers after a program has run on some."""
    program = parse(text)
    buffers = {b.name: b for b in program.buffers}
    arrays = {buffers[k]: np.array(v) for k, v in memory.items()}
    run(program, arrays, backwards)
    return {b.name: a for b, a in arrays.items()}


def test_a_store_reads_all_before_it_writes() -> None:
    text = """\
x: f64[5] strides[1] input 0
all i < 4: x[(1 + i)] = (x[i] + x[(1 + i)])"""
    assert ran(text, x=[1.0, 2, 3, 4, 5])["x"].tolist() == [1, 3, 5, 7, 9]


def test_a_store_in_a_loop_sees_the_iterations_before() -> None:
    text = """\
x: f64[5] strides[1] input 0
for i < 4:
  x[(1 + i)] = (x[i] + x[(1 + i)])"""
    assert ran(text, x=[1.0, 2, 3, 4, 5])["x"].tolist() == [1, 3, 6, 10, 15]


def test_loops_that_are_marked_run_backwards_on_request() -> None:
    text = """\
x: f64[4] strides[1] input 0
for i < 3 {}:
  x[(1 + i)] = x[i]"""
    start = [1.0, 2, 3, 4]
    assert ran(text.format("vector 4"), True, x=start)["x"].tolist() == [1, 1, 2, 3]
    assert ran(text.format("vector 4"), x=start)["x"].tolist() == [1, 1, 1, 1]
    assert ran(text.replace(" {}", ""), True, x=start)["x"].tolist() == [1, 1, 1, 1]


def test_an_element_lies_at_index_times_stride() -> None:
    text = """\
x: f64[2,3] strides[1,4] input 0
y: f64[2,3] strides[3,1] output
all i < 2, j < 3: y[i, j] = x[i, j]"""
    assert ran(text, x=np.arange(10.0))["y"].tolist() == [0, 4, 8, 1, 5, 9]


@pytest.mark.parametrize("text", [
    "all i < 2, j < 3: y[i] sum= x[i, j] over j",
    "all j < 3, i < 2: y[i] sum= x[i, j] over j",
    "for i < 2:\n  for j < 3 vector 4:\n    y[i] sum= x[i, j] over j",
    "for j < 3:\n  for i < 2 vector 4:\n    y[i] sum= x[i, j] over j",
])  # fmt: skip
def test_a_reduction_starts_from_its_identity(text: str) -> None:
    head = "x: f64[2,3] strides[3,1] input 0\ny: f64[2] strides[1] input 1\n"
    got = ran(head + text, x=np.arange(6.0), y=[50.0, 60])
    assert got["y"].tolist() == [3, 12]


def test_a_reduction_over_nothing_is_its_identity() -> None:
    head = "x: i32[2,0] strides[1,1] input 0\n"
    for op, wanted in (("sum", 0), ("prod", 1), ("max", -(2**31)), ("min", 2**31 - 1)):
        for form in ("all i < 2, j < 0: {}", "for i < 2:\n  for j < 0:\n    {}"):
            text = form.format(f"y[i] {op}= x[i, j] over j")
            got = ran(head + "y: i32[2] strides[1] output\n" + text, x=np.zeros(0, "i4"))
            assert got["y"].tolist() == [wanted] * 2


def test_a_reduction_holds_its_result_only_when_its_loop_has_ended() -> None:
    text = """\
x: f64[3] strides[1] input 0
s: f64[] strides[] temporary
y: f64[3] strides[1] output
for i < 3:
  s[] sum= x[i] over i
  y[i] = s[]"""
    got = ran(text, x=[1.0, 2, 3])
    assert got["s"].tolist() == [6]
    assert np.isnan(got["y"]).all()


def test_a_running_reduction_stores_each_step() -> None:
    head = "x: f64[2,3] strides[3,1] input 0\ny: f64[2,3] strides[3,1] output\n"
    rows = np.arange(1.0, 7)
    for form in (
        "all i < 2, j < 3: {}", "all j < 3, i < 2: {}", "for i < 2:\n  for j < 3:\n    {}",
        "for j < 3:\n  for i < 2:\n    {}",
    ):  # fmt: skip
        text = head + form.format("y[i, j] running sum= x[i, j] over j")
        assert ran(text, x=rows)["y"].tolist() == [1, 3, 6, 4, 9, 15]
        text = head + form.format("y[i, j] running prod= x[i, j] over i")
        assert ran(text, x=rows)["y"].tolist() == [1, 2, 3, 4, 10, 18]


@pytest.mark.parametrize(
    ("op", "values", "wanted"),
    [
        ("argmax", [1, 3, 3, 2], 1),
        ("argmin", [2, 1, 1, 3], 1),
        ("argmax", [1, np.nan, 5, np.nan], 1),
        ("argmin", [1, 5, np.nan, -1], 2),
        ("argmin", [np.inf, np.inf, np.inf, np.inf], 0),
        ("argmax", [-np.inf, -np.inf, -np.inf, -np.inf], 0),
    ],
)
@pytest.mark.parametrize("form", ["all i < 4: {}", "for i < 4 vector 4:\n  {}"])
@pytest.mark.parametrize("backwards", [False, True])
def test_an_extreme_is_the_first_of_its_like(
    op: str, values: list, wanted: int, form: str, backwards: bool
) -> None:
    head = "x: f64[4] strides[1] input 0\ny: i64[] strides[] output\n"
    text = head + form.format(f"y[] {op}= x[i] over i rank i")
    assert ran(text, backwards, x=np.array(values, float))["y"].tolist() == [wanted]


@pytest.mark.parametrize("form", ["all i < 5: {}", "for i < 5:\n  {}"])
def test_combining_with_what_is_there(form: str) -> None:
    text = """\
at: i64[5] strides[1] input 0
x: f64[3] strides[1] input 1
""" + form.format("x[wrap(at[i], 3, 0)] sum= f64(i)")
    assert ran(text, at=[0, -1, 2, 0, 1], x=[10.0, 20, 30])["x"].tolist() == [13, 24, 33]


@pytest.mark.parametrize("form", ["all i < 3: {}", "for i < 3:\n  {}"])
def test_of_stores_to_one_element_the_last_stays(form: str) -> None:
    text = """\
at: i64[3] strides[1] input 0
x: i64[2] strides[1] input 1
""" + form.format("x[wrap(at[i], 2, 0)] = (i + 7)")
    assert ran(text, at=[1, 0, 1], x=[0, 0])["x"].tolist() == [8, 9]


def test_an_index_out_of_bounds_has_the_words_of_numpy() -> None:
    text = """\
at: i64[3] strides[1] input 0
x: f64[2] strides[1] input 1
y: f64[3] strides[1] output
all i < 3: y[i] = x[wrap(at[i], 2, 4)]"""
    with pytest.raises(IndexError, match=r"^index 5 is out of bounds for axis 4 with size 2$"):
        ran(text, at=[1, 5, 1], x=[0.0, 0])
    with pytest.raises(IndexError, match="index -3 is out"):
        ran(text, at=[1, 1, -3], x=[0.0, 0])


def test_an_index_that_no_data_made_is_the_fault_of_the_program() -> None:
    text = """\
x: f64[2] strides[1] input 0
all i < 2: x[(1 + i)] = 0.0:f64"""
    with pytest.raises(Malformed, match=r"x: .* outside of its axis of 2"):
        ran(text, x=[0.0, 0])


def test_a_register_is_new_in_each_iteration() -> None:
    text = """\
x: f64[3] strides[1] input 0
r: f64[] strides[] register
y: f64[3] strides[1] output
for i < 3:
  y[i] = r[]
  r[] = x[i]"""
    assert np.isnan(ran(text, x=[1.0, 2, 3])["y"]).all()


def test_scratch_memory_lives_through_the_loops_of_its_body() -> None:
    text = """\
x: f64[2,3] strides[3,1] input 0
s: f64[] strides[] register
t: f64[3] strides[1] local
for i < 2:
  for j < 3:
    t[j] = (x[i, j] * 2.0:f64)
    s[] sum= t[j] over j
  for k < 3:
    x[i, k] = (t[k] - s[])"""
    got = ran(text, x=np.arange(6.0))["x"]
    assert got.tolist() == [-6, -4, -2, -18, -16, -14]


def test_index_arithmetic() -> None:
    text = """\
y: i64[6] strides[1] output
all i < 6: y[(5 + -1*i)] = (3*(i // 4) + (i % 4))"""
    assert ran(text)["y"].tolist() == [4, 3, 3, 2, 1, 0]


def test_bits_and_casts() -> None:
    text = """\
x: f32[2] strides[1] input 0
y: i32[2] strides[1] output
z: bf16[2] strides[1] output
all i < 2: y[i] = bits_i32(x[i])
all i < 2: z[i] = (bf16(x[i]) + 0.0078125:bf16)"""
    got = ran(text, x=np.array([1.0, 1 / 3], "f4"))
    assert got["y"].tolist() == np.array([1.0, 1 / 3], "f4").view("i4").tolist()
    assert got["z"].tolist() == [1.0078125, 0.341796875]


def test_a_program_with_calls_of_torch() -> None:
    program = parse("""\
x: f64[2,3] strides[3,1] input 0
r: f64[2,2] strides[2,1] temporary
y: f64[2,2] strides[2,1] output
all i < 2, j < 2: y[i, j] = (r[i, j] + 1.0:f64)""")
    x, r, _ = program.buffers
    transposed = Tensor(x, 1, (2, 2), (1, 3), torch.float64)
    call = Call("mm", torch.mm, (transposed, transposed), {}, [x], [r], [(1, 2)], "a test")
    r.strides = (1, 2)
    program.steps.insert(0, call)
    memory = {x: np.arange(6.0)}
    run(program, memory)
    part = np.arange(6.0).reshape(2, 3)[:, 1:].T
    np.testing.assert_array_equal(memory[program.buffers[2]].reshape(2, 2), part @ part + 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex128])
def test_a_graph_that_writes_to_its_inputs(dtype: torch.dtype) -> None:
    def f(x: torch.Tensor) -> list[torch.Tensor]:
        torch.ops.aten.add_.Tensor(x, 1)
        return [torch.ops.aten.mul.Tensor(x, 2)]

    x = torch.arange(12).to(dtype).reshape(3, 4)[:, 1:3]
    module = _traced(f, x)
    translation = Translation(module.graph, lambda name: getattr(module, name))
    mine = torch.arange(12).to(dtype).reshape(3, 4)[:, 1:3]
    (got,) = execute(translation.program, translation.interface, [mine])
    assert torch.equal(mine, x + 1)
    assert torch.equal(got, (x + 1) * 2)


def _traced(f: Any, x: torch.Tensor) -> torch.fx.GraphModule:
    """The graph of f with the values that a translation looks at."""
    module = symbolic_trace(f)
    values: dict[Any, Any] = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
        elif node.op == "call_function":
            args = [values.get(a, a) if isinstance(a, torch.fx.Node) else a for a in node.args]
            values[node] = node.target(*args)
        else:
            continue
        node.meta["val"] = values[node]
    return module
