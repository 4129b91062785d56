"""The text of the loop IR, its parser, and its rules."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from np_compile.kernels.ir import expr as E
from np_compile.kernels.ir.check import check
from np_compile.kernels.ir.expr import Expr
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import Buffer, Call, Loop, Malformed, Program, Statement, text

PROGRAM = """\
x: f32[4,6] strides[6,1] input 0
at: i64[5] strides[1] constant 2
t: f64[4] strides[1] temporary
u: i64[] strides[] register
v: bool[6] strides[1] local
y: f32[4,6] strides[1,4] output
all i < 4: t[i] = 0.0:f64
all i < 4, j < 6: t[i] sum= f64(x[i, j]) over j along i
all i < 4, j < 6: y[i, j] running max= x[i, j] over j
all i < 4, j < 6: u[] argmax= x[i, j] over i j rank (6*i + j)
all k < 5: t[wrap(at[k], 4, 0)] sum= where((at[k] < 3), -1e-07:f64, inf:f64)
all i < 4: t[(3 + -1*i)] = (t[i] / nan:f64)
fence
for i < 4 parallel 2:
  for j < 6 vector 6 lanes 4 chain 2 aligned y:
    y[i, j] = (x[i, j] + maximum(x[(i // 2), j], f32(u[])))
    v[j] = (True:bool & (x[i, j] != 0.125:f32))
  for k < 3 strip 2 overlapping 1:
    for j < 6:
      t[i] min= bits_f64(add(mul(2, at[k]), -7)) over j
      y[i, 2*k] = (x[i, ((3*i + j) % 6)] - 2.5:f32)"""


def test_text_of_a_parsed_text_is_the_text() -> None:
    program = parse(PROGRAM)
    check(program)
    assert text(program) == PROGRAM


def test_what_a_parser_makes() -> None:
    program = parse(PROGRAM)
    x, at, t, u, v, y = program.buffers
    assert (x.dtype, x.shape, x.strides, x.kind, x.position) == ("f32", (4, 6), (6, 1), "input", 0)
    assert (at.kind, at.position, y.kind, y.position) == ("constant", 2, "output", -1)
    assert (u.kind, u.shape, v.kind) == ("register", (), "local")
    _, total, running, best, scatter, *_, nest = program.steps
    assert isinstance(total, Statement)
    assert isinstance(running, Statement)
    assert isinstance(best, Statement)
    assert isinstance(scatter, Statement)
    assert isinstance(nest, Loop)
    i, j = total.axes
    assert (total.target, total.index, total.op, total.over) == (t, (i,), "sum", (j,))
    assert total.vector is i
    assert (running.scan, running.vector) == (True, j)
    assert best.rank is E.plus(E.times(i, 6), j)
    assert (scatter.op, scatter.over) == ("sum", ())
    assert (nest.kind, nest.grain, nest.axis) == ("serial", 2, i)
    assert [s.axes for s in nest.body[0].body] == [(i, j), (i, j)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("x: f32[4] strides[1] inputs", "no kind of buffer is called inputs"),
        ("x: f31[4] strides[1] input", "no dtype is called f31"),
        ("x: f32[4] input", "'strides' is missing before 'input'"),
        ("all i < 4: y[i] = 1.0:f64", "no buffer is called y"),
        ("all i < 4: t[i] = 1.0:f63", "no dtype is called f63"),
        ("all i < 4: t[i] = t[j]", "no axis is called j"),
        ("all i < 4: t[i] = t[i] t[i]", "nothing can follow before 't'"),
        ("all i < 4: t[i] = (t[i] + t[i]", "'' is no sign"),
        ("all i < 4: t[i] = (t[i] , t[i])", "no operation is written ,"),
        ("all i < 4: t[i] = foo(t[i])", "no operation foo takes 1 operands"),
        ("all i < 4: t[i] = exp(t[i], t[i])", "no operation exp takes 2 operands"),
        ("all i < 4: t[i] = (t[i] + 1.0:f32)", "the operands of add have several dtypes"),
        ("all i < 4: t[i] = (t[i] & t[i])", "takes no operands of dtype f64"),
        ("all i < 4: t[i] mean= t[i]", "no reduction is called mean"),
        ("all i < 4: t[i] sum= t[i] over k", "no axis is called k"),
        ("all i < 4: t[i] =", "an expression is missing"),
        ("all i < 4 t[i] = 1.0:f64", "':' is missing before 't'"),
        ("all i < 4: t[i] = 1.0:f64 ?", r"' \?' begins no word"),
        ("for i < 4 quick:", "no kind of loop is called quick"),
        ("for i < 4 parallel:", "':' is no int"),
        ("for i < 4 parallel 0:", "chunks of at least one iteration"),
        ("for i < 4 vector:", "':' is no int"),
        ("for i < 4 vector 4 aligned y:", "no buffer is called y"),
        ("for i < 4:\n    t[i] = 1.0:f64", "the indentation fits no loop"),
        ("  t[0] = 1.0:f64", "the indentation fits no loop"),
        ("t, u = call aten.max(x)", "calls of torch cannot be read"),
    ],
)
def test_what_is_no_text_of_a_program(wrong: str, rule: str) -> None:
    with pytest.raises(Malformed, match=rule) as error:
        parse(f"t: f64[4] strides[1] output\n{wrong}")
    assert wrong.splitlines()[-1].strip() in str(error.value)
    assert "line " in str(error.value)


HEAD = """\
x: f64[4,6] strides[6,1] input 0
n: i64[4] strides[1] input 1
t: f64[4] strides[1] temporary
y: f64[4] strides[1] output
k: i64[] strides[] output
"""


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("x: f64[4] strides[1] local", "two buffers have that name"),
        ("z: f64[4] strides[1,2] local", "it has 1 axes and 2 strides"),
        ("all i < 4: y[i] = x[i]", "x has 2 axes, the index 1"),
        ("all i < 4, j < 6: y[i, j] = x[i, j]", "y has 1 axes, the index 2"),
        ("all i < 4: y[i32(i)] = 1.0:f64", "an index of dtype i32"),
        ("all i < 5: y[i] = 1.0:f64", "i runs over 0..4, beyond extent 4 of y"),
        ("all i < 4: y[i] = x[i, (3 + i)]", "beyond extent 6 of x"),
        ("all i < 4: y[i] = x[i, (-1 + i)]", "runs over -1..2"),
        ("all i < 4: y[i] = t[i]", "t is read and was never written"),
        ("all i < 4: t[i] = t[i]", "t is read and was never written"),
        ("all i < 4: y[i] = n[i]", "stores i64 in f64"),
        ("all i < 4: y[0] sum= n[i] over i", "stores i64 in f64"),
        ("all i < 4: y[0] argmax= x[i, 0] over i rank i", "stores a rank in f64"),
        ("all i < 4: k[] argmax= x[i, 0] over i", "argmin and argmax have a rank"),
        ("all i < 4: y[0] max= x[i, 0] over i rank i", "argmin and argmax have a rank"),
        ("all i < 4, j < 6: y[i] sum= x[i, j] over i", "depends on an axis that it runs over"),
        ("all i < 4: y[i] = x[i, 0] over i", "a store has no axes to reduce over"),
        ("all i < 4: k[] argmax= x[i, 0] rank i", "it reduces over no axis"),
        ("all i < 4: y[i] running sum= x[i, 0]", "it reduces over no axis"),
        ("for i < 4:\n  for i < 4:\n    y[i] = 1.0:f64", "i is looped over twice"),
    ],
)
def test_what_breaks_a_rule(wrong: str, rule: str) -> None:
    program = parse(HEAD + wrong)
    with pytest.raises(Malformed, match=rule):
        check(program)


def _program() -> tuple[Program, Statement]:
    """x copied to y, in one statement."""
    program = parse(
        "x: f64[4] strides[1] input 0\ny: f64[4] strides[1] output\nall i < 4: y[i] = x[i]"
    )
    check(program)
    (s,) = program.steps
    assert isinstance(s, Statement)
    return program, s


def test_rules_that_no_text_breaks() -> None:
    program, s = _program()
    s.line = "user.py:3"
    s.axes = ()
    with pytest.raises(Malformed, match=r"the axis i is not looped over\n  made by user.py:3"):
        check(program)
    program, s = _program()
    program.steps = [Loop(E.axis(4), [s])]
    with pytest.raises(Malformed, match="not those of loops around it, in order"):
        check(program)
    program, s = _program()
    s.op = "mean"
    with pytest.raises(Malformed, match="no reduction is called mean"):
        check(program)
    program, s = _program()
    s.op, s.index, s.over = "sum", (E.integer(0),), (E.axis(4),)
    with pytest.raises(Malformed, match="over an axis that is not its own"):
        check(program)
    program, s = _program()
    s.target = Buffer("z", "f64", (4,), (1,), "output")
    with pytest.raises(Malformed, match="z is no buffer of the program"):
        check(program)
    program, s = _program()
    program.steps = [Loop(s.axes[0], [s], "quick")]
    with pytest.raises(Malformed, match="no kind of loop is called quick"):
        check(program, "scheduled")


def test_a_call_reads_what_was_written() -> None:
    program, s = _program()
    _, y = program.buffers
    call = Call("aten.sort", None, (), {}, [y], [], [], "a test")
    program.steps = [call, s]
    with pytest.raises(Malformed, match="y is read and was never written"):
        check(program)
    program.steps = [s, call]
    check(program)


def test_a_call_reads_a_buffer_of_no_elements() -> None:
    program, s = _program()
    empty = Buffer("e", "f64", (0,), (1,), "temporary")
    program.buffers.append(empty)
    program.steps = [s, Call("aten.sort", None, (), {}, [empty], [], [], "a test")]
    check(program)


def test_a_call_has_a_text() -> None:
    program, s = _program()
    x, y = program.buffers
    program.steps = [Call("aten.sort", None, (), {}, [x], [y], [], "a test"), s]
    assert text(program).splitlines()[2] == "y = call aten.sort(x)"


# Expressions

MEMORY = {
    d: Buffer(d.upper(), d, (50,), (1,), "input", 0) for d in ("f64", "f32", "i32", "bool", "i64")
}
AXES = [E.make("axis", (), "i64", (name, n)) for name, n in (("a", 3), ("b", 4), ("c", 1))]


@st.composite
def indices(draw: st.DrawFn, depth: int = 3) -> Expr:
    """An index expression."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*AXES, E.integer(2), E.load(MEMORY["i64"], AXES[:1])]))
    x = draw(indices(depth - 1))
    kind = draw(st.sampled_from(("plus", "times", "idiv", "imod", "wrap", "choose")))
    if kind == "plus":
        return E.plus(x, draw(indices(depth - 1)))
    if kind == "times":
        return E.times(x, draw(st.integers(-4, 4)))
    if kind == "choose":
        test = E.scalar("lt", x, E.integer(1))
        return E.choose(test, draw(indices(depth - 1)), E.integer(0))
    if kind == "wrap":
        return E.wrap(x, 3, 1)
    return (E.floordiv if kind == "idiv" else E.mod)(x, draw(st.integers(1, 5)))


@st.composite
def values(draw: st.DrawFn, dtype: str, depth: int = 4) -> Expr:
    """A scalar expression of a dtype."""
    if depth == 0:
        if draw(st.booleans()):
            return E.load(MEMORY[dtype], (E.mod(draw(indices()), 50),))
        if dtype == "bool":
            return E.const(draw(st.booleans()), dtype)
        if dtype[0] == "i":
            return E.const(draw(st.integers(-9, 9)), dtype)
        return E.const(draw(st.floats(width=32)), dtype)
    kind = draw(st.sampled_from(("binary", "unary", "where", "cast", "compare", "bits")))
    below = values(dtype, depth - 1)
    if kind == "where":
        return E.scalar("where", draw(values("bool", depth - 1)), draw(below), draw(below))
    if kind == "cast":
        return E.cast(draw(values(draw(st.sampled_from(sorted(MEMORY))), depth - 1)), dtype)
    if kind == "bits" and dtype in ("f32", "i32"):
        return E.bitcast(draw(values("i32" if dtype == "f32" else "f32", depth - 1)), dtype)
    if dtype == "bool":
        other = values(draw(st.sampled_from(sorted(MEMORY))), depth - 1)
        x = draw(other)
        y = draw(values(x.dtype, depth - 1))
        return E.scalar(draw(st.sampled_from(("lt", "ge", "eq", "ne"))), x, y)
    if kind == "unary":
        return E.scalar(draw(st.sampled_from(("neg", "abs", "sign"))), draw(below))
    ops = ("add", "sub", "mul", "maximum", "remainder", *(("div",) if dtype[0] == "f" else ()))
    return E.scalar(draw(st.sampled_from(ops)), draw(below), draw(below))


@given(st.sampled_from(sorted(MEMORY)).flatmap(values), indices())
def test_text_of_a_parsed_expression_is_the_text(value: Expr, index: Expr) -> None:
    head = "".join(f"{b.name}: {b.dtype}[50] strides[1] input 0\n" for b in MEMORY.values())
    name = MEMORY[value.dtype].name
    line = f"all a < 3, b < 4, c < 1: {name}[{index}] = {value}"
    assert text(parse(head + line)) == head + line


@given(st.sampled_from(sorted(MEMORY)).flatmap(values), indices())
def test_loads_come_in_the_order_of_a_walk(value: Expr, index: Expr) -> None:
    for roots in ((value,), (index, value), (value, value, index)):
        assert list(E.loads(*roots)) == [x for x in E.walk(*roots) if x.op == "load"]


@given(indices(), st.integers(1, 6))
def test_bounds_hold_all_values(x: Expr, d: int) -> None:
    loaded = E.load(MEMORY["i64"], AXES[:1])
    for e in (x, E.floordiv(x, d), E.mod(x, d)):
        low, high = E.bounds(e)
        for a in range(3):
            for b in range(4):
                at = _index(e, {AXES[0]: a, AXES[1]: b, AXES[2]: 0, loaded: 7 * a - 9})
                assert low <= at <= high
    for a in range(3):
        for b in range(4):
            known = {AXES[0]: a, AXES[1]: b, AXES[2]: 0, loaded: 7 * a - 9}
            assert _index(E.floordiv(x, d), known) == _index(x, known) // d
            assert _index(E.mod(x, d), known) == _index(x, known) % d


def _index(x: Expr, known: dict[Expr, int]) -> int:
    """The value of an index; `wrap` does not look at its bounds."""
    if x in known:
        return known[x]
    if x.op == "const":
        return int(x.value)
    args = [_index(a, known) for a in x.args]
    if x.op == "affine":
        return int(x.value[0] + sum(c * a for c, a in zip(x.value[1:], args, strict=True)))
    if x.op == "idiv":
        return args[0] // x.value
    if x.op == "imod":
        return args[0] % x.value
    if x.op == "wrap":
        return min(max(args[0] if args[0] >= 0 else args[0] + x.value[0], 0), x.value[0] - 1)
    if x.op == "where":
        return args[1] if args[0] else args[2]
    assert x.op == "lt"
    return args[0] < args[1]


def test_a_statement_that_never_runs_has_no_index_out_of_bounds() -> None:
    check(parse("y: f64[0] strides[1] output\nall i < 0: y[i] running sum= 1.0:f64 over i"))


def test_an_index_that_is_clamped_lies_within() -> None:
    head = "x: f64[3] strides[1] input 0\ny: f64[4] strides[1] output\n"
    check(parse(head + "all i < 4: y[i] = x[(-1 + where(((1 + i) < 3), (1 + i), 3))]"))
    with pytest.raises(Malformed, match=r"runs over 0\.\.3, beyond extent 3 of x"):
        check(parse(head + "all i < 4: y[i] = x[(-1 + where(((1 + i) < 3), 3, (1 + i)))]"))


def test_the_text_of_an_expression_that_repeats_its_parts() -> None:
    x = E.load(MEMORY["f64"], AXES[:1])
    for _ in range(40):  # written out, it had 2**40 words
        x = E.scalar("add", E.scalar("mul", x, x), x)
    s = Statement(AXES[:1], MEMORY["f64"], AXES[:1], x)
    line = str(s)
    assert len(line) < 5000
    head = "".join(f"{b.name}: {b.dtype}[50] strides[1] input 0\n" for b in MEMORY.values())
    whole = f"{head}all a < 3: {line}"
    assert text(parse(whole)) == whole


@pytest.mark.parametrize(
    ("stage", "step", "rule"),
    [
        ("statements", "for i < 4:\n  y[i] = 0.0:f64", "no loops before fusion"),
        ("loops", "for i < 4 vector 4:\n  y[i] = 0.0:f64", "before it is scheduled"),
        ("loops", "all i < 4: y[i] = 0.0:f64", "has axes and no loops"),
        ("scheduled", "for i < 4:\n  z[0, i] = 0.0:f64", "no single place in memory"),
        ("scheduled", "for i < 4 vector 5:\n  y[i] = 0.0:f64", "5 iterations cannot stay"),
        ("scheduled", "for i < 4 strip 4:\n  y[i] = 0.0:f64", "of that kind has loops inside"),
        (
            "scheduled",
            "for i < 4 strip 4 overlapping 3:\n  for j < 2:\n    y[i] sum= 0.0:f64 over j",
            "that run twice are of some vectors",
        ),
        ("scheduled", "for i < 4 parallel 4:\n  y[i] = 0.0:f64", "some iterations of an outermost"),
        ("scheduled", "for i < 4 parallel 3 vector 2:\n  y[i] = 0.0:f64", "multiple of its width"),
        ("scheduled", "for i < 4 jam 2 lanes 4:\n  for j < 2:\n    y[i] = 0.0:f64", "of vectors"),
        ("scheduled", "for i < 4 vector 4:\n  y[0] sum= 0.0:f64 over i", "lanes are there for"),
        ("scheduled", "for i < 4 vector 4 lanes 3:\n  y[0] sum= 0.0:f64 over i", "by halves"),
        (
            "scheduled",
            "for i < 4 strip 3:\n  for j < 2:\n    y[0] sum= 0.0:f64 over i j",
            "by halves",
        ),
        (
            "scheduled",
            "for i < 4 vector 4 lanes 4 chain 2:\n  y[0] max= 0.0:f64 over i",
            "no sum whose lanes",
        ),
        (
            "scheduled",
            "for i < 4 vector 4 aligned z:\n  y[i] = 0.0:f64",
            "what an outermost loop writes",
        ),
    ],
)
def test_rules_of_a_stage(stage: str, step: str, rule: str) -> None:
    head = "y: f64[4] strides[1] output\nz: f64[2,4] strides[4,1] output\n"
    program = parse(head + step)
    check(program)
    with pytest.raises(Malformed, match=rule):
        check(program, stage)


def test_equal_expressions_of_a_compile_are_one() -> None:
    def made() -> Expr:
        return E.plus(E.times(E.axis(5), 3), 1)

    with E.fresh():
        first, again = made(), E.integer(1)
        assert E.integer(1) is again
    assert E.integer(1) is not again
    with E.fresh():
        assert str(made()) == str(first)
        with E.fresh():
            assert E.integer(1).number == 0
        assert E.integer(1).number > 0


def test_each_thread_has_expressions_of_its_own() -> None:
    with ThreadPoolExecutor(1) as pool, E.fresh():
        mine, other = E.integer(1), pool.submit(E.integer, 1).result()
    assert mine is not other
