"""Sizes that are not known: arithmetic, comparisons, and the guards that these leave."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from np_compile.size import Facts, Size, evaluated, span

NAMES = ("a", "b", "c")
POINTS = st.tuples(*(st.integers(2, 40) for _ in NAMES))


@st.composite
def expressions(draw, depth=3):
    """A function of as many integers as there are names, written with integer operators."""
    if depth == 0 or draw(st.booleans()):
        k = draw(st.integers(0, len(NAMES) + 1))
        if k < len(NAMES):
            return lambda v: v[k]
        n = draw(st.integers(-3, 9))
        return lambda _: n
    left = draw(expressions(depth=depth - 1))
    op = draw(st.sampled_from("+-*/%"))
    if op in "/%":
        d = draw(st.integers(1, 9))
        function = operator.floordiv if op == "/" else operator.mod
        return lambda v: function(left(v), d)
    right = draw(expressions(depth=depth - 1))
    function = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
    return lambda v: function(left(v), right(v))


def symbols(point):
    facts = Facts()
    return facts, [facts.symbol(n, x) for n, x in zip(NAMES, point, strict=True)]


@settings(max_examples=300)
@given(expressions(), POINTS, POINTS)
def test_arithmetic_is_that_of_integers(f, here, there):
    facts, sizes = symbols(here)
    found = f(sizes)
    if isinstance(found, Size):
        assert found.hint == f(here)
    values = dict(zip(NAMES, there, strict=True))
    if facts.predicate()(there):
        assert evaluated(found, values) == f(there)


COMPARE = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@settings(max_examples=300)
@given(expressions(), expressions(), st.sampled_from(COMPARE), POINTS, POINTS)
def test_a_comparison_holds_wherever_the_guards_do(f, g, compare, here, there):
    facts, sizes = symbols(here)
    found = compare(f(sizes), g(sizes))
    assert found == compare(f(here), g(here))
    assert facts.predicate()(here)
    if facts.predicate()(there):
        assert compare(f(there), g(there)) == found


@settings(max_examples=300)
@given(expressions(), POINTS, POINTS)
def test_the_lower_bound_is_one(f, here, there):
    facts, sizes = symbols(here)
    found = f(sizes)
    if isinstance(found, Size) and facts.predicate()(there):
        assert found.least <= f(there)


@settings(max_examples=300)
@given(expressions(), POINTS)
def test_the_text_is_the_value_in_python(f, here):
    facts, sizes = symbols(here)
    found = f(sizes)
    if isinstance(found, Size):
        assert eval(found.text("//"), dict(facts.values)) == f(here)


def test_what_follows_needs_no_guard():
    facts, (a, b, _) = symbols((5, 7, 9))
    assert a > 1
    assert a * b >= a + 2
    assert a * b - a >= 0
    assert (a * b) // b is a or (a * b) // b == a
    assert (4 * a + b) // 4 == a + b // 4
    assert (a * b) % a == 0
    assert a % 8 < 8
    assert -(-a // 4) == (a + 3) // 4
    assert a + 1 - a == 1
    assert facts.guards == []


def test_what_does_not_follow_is_a_guard():
    facts, (a, b, _) = symbols((5, 7, 9))
    assert a < b
    assert a != b  # follows from the first
    assert a < b + 1
    assert [str(g).partition(",")[0] for g in facts.guards] == ["(b-1-a) >= 0"]
    holds = facts.predicate()
    assert holds((5, 6, 2))
    assert not holds((6, 6, 2))


def test_a_size_that_is_a_number_is_one_from_then_on():
    facts, (a, _, _) = symbols((5, 7, 9))
    assert list(range(a)) == [0, 1, 2, 3, 4]
    holds = facts.predicate()
    assert holds((5, 3, 3))
    assert not holds((6, 3, 3))
    assert "(a-5) == 0" in str(facts.guards[0])


def test_floats_know_no_sizes():
    _, (a, _, _) = symbols((5, 7, 9))
    with pytest.raises(TypeError):
        a * 0.5
    with pytest.raises(TypeError):
        a / 2


def test_a_span_of_known_length_has_any_place():
    facts, (a, _, _) = symbols((5, 7, 9))
    assert [x - a for x in span(a, a + 3)] == [0, 1, 2]
    assert facts.guards == []


def test_sizes_of_two_compiles_are_apart():
    (_, (a, *_)), (_, (b, c, _)) = symbols((5, 7, 9)), symbols((5, 7, 9))
    assert a != b
    assert a != c
    assert a.facts.guards == b.facts.guards == []


def dividends(size):
    """What is divided in a size."""
    for product, _ in size.key:
        for atom in product:
            if atom.op != "symbol":
                inside = Size(dict(atom.terms), size.facts)
                yield inside
                yield from dividends(inside)


@settings(max_examples=300)
@given(expressions(), POINTS, POINTS)
def test_dividends_are_not_negative(f, here, there):
    """Quotients in C round to zero."""
    facts, sizes = symbols(here)
    found = f(sizes)
    if isinstance(found, Size) and facts.predicate()(there):
        values = dict(zip(NAMES, there, strict=True))
        assert all(x.value(values) >= 0 for x in dividends(found))


def test_later_symbols_follow_from_the_others():
    facts, _ = symbols((5, 7, 9))
    area = facts.later(lambda values: values["a"] * values["b"])
    assert area.hint == 35
    assert facts.all_values({"a": 2, "b": 3, "c": 4})[str(area)] == 6
