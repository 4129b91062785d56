"""A `Size` as torch's symbolic integers have it: what torch asks of sizes is noted by its `Facts`.

torch takes any object behind `torch.SymInt` that has the methods of its `SymNode`. Its own one asks
SymPy, which takes milliseconds for each operator; these ask a polynomial.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from np_compile.size import Real, Size


class _Condition:
    """A question about sizes, which becomes a guard when somebody asks for the answer."""

    __slots__ = ("answer",)

    def __init__(self, answer: Callable[[], bool]):
        self.answer = answer


class SizeNode:
    """The value of a `SymInt`, a `SymFloat` or a `SymBool`: a number, or what is one for each
    program: a `Size`, one as a float (`Real`), a question. A size that torch needs as a float in
    arithmetic is the number that it is from then on, by a guard."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    # -- what it is ----------------------------------------------------------------------------

    def is_int(self) -> bool:
        return type(self.value) in (int, Size)

    def is_float(self) -> bool:
        return type(self.value) in (float, Real)

    def is_bool(self) -> bool:
        return type(self.value) in (bool, _Condition)

    def is_constant(self) -> bool:
        return type(self.value) in (int, bool)  # torch asks for the number of such only

    def is_symbolic(self) -> bool:
        return not self.is_constant()

    def is_nested_int(self) -> bool:
        return False

    def nested_int(self) -> None:
        return None

    def has_hint(self) -> bool:
        return True

    def maybe_as_int(self) -> int | None:
        return self.value if type(self.value) is int else None

    def wrap_int(self, n: int) -> SizeNode:
        return SizeNode(n)

    wrap_float = wrap_bool = wrap_int

    def clone(self) -> SizeNode:
        return self

    def str(self) -> str:
        return f"{self.value}"

    __repr__ = _graph_repr = str

    # -- its number, by a guard ----------------------------------------------------------------

    def int_(self) -> int:
        return int(self.value)

    def bool_(self) -> bool:
        return self.value.answer() if type(self.value) is _Condition else bool(self.value)

    def number(self) -> Any:
        """The Python number that it is from now on."""
        if type(self.value) is Real:
            return float(int(self.value.size))
        return self.bool_() if self.is_bool() else _number(self.value)

    def guard_int(self, file: Any, line: Any) -> int:
        return self.int_()

    def guard_float(self, file: Any, line: Any) -> float:
        return float(self.number())

    def guard_bool(self, file: Any, line: Any) -> bool:
        return self.bool_()

    expect_true = guard_size_oblivious = guard_or_false = guard_or_true = guard_bool

    def statically_known_true(self, file: Any, line: Any) -> bool:
        return self.value is True

    # -- arithmetic ----------------------------------------------------------------------------

    def sym_float(self) -> SizeNode:
        value = self.value
        return SizeNode(Real(value) if type(value) is Size else self.number() * 1.0)

    def neg(self) -> SizeNode:
        return _by(operator.neg, self)

    def abs(self) -> SizeNode:
        return _by(operator.abs, self)

    def floor(self) -> SizeNode:
        return self if self.is_int() else SizeNode(int(self.number() // 1))

    def ceil(self) -> SizeNode:
        return self if self.is_int() else SizeNode(-int(-self.number() // 1))

    def sym_not(self) -> SizeNode:
        return _asked(lambda: not self.bool_())

    def sym_and(self, other: SizeNode) -> SizeNode:
        return _asked(lambda: self.bool_() and other.bool_())

    def sym_or(self, other: SizeNode) -> SizeNode:
        return _asked(lambda: self.bool_() or other.bool_())

    def sym_ite(self, then: SizeNode, otherwise: SizeNode) -> SizeNode:
        return then if self.bool_() else otherwise

    # -- of a tensor's layout ------------------------------------------------------------------

    def is_contiguous(self, sizes: Sequence[Any], strides: Sequence[Any]) -> SizeNode:
        return _asked(lambda: _is_dense(sizes, strides, range(len(sizes))))

    def is_channels_last_contiguous_2d(
        self, sizes: Sequence[Any], strides: Sequence[Any]
    ) -> SizeNode:
        return _asked(lambda: len(sizes) == 4 and _is_dense(sizes, strides, (0, 2, 3, 1)))

    def is_channels_last_contiguous_3d(
        self, sizes: Sequence[Any], strides: Sequence[Any]
    ) -> SizeNode:
        return _asked(lambda: len(sizes) == 5 and _is_dense(sizes, strides, (0, 2, 3, 4, 1)))

    is_channels_last_strides_2d = is_channels_last_contiguous_2d
    is_channels_last_strides_3d = is_channels_last_contiguous_3d

    def is_non_overlapping_and_dense(
        self, sizes: Sequence[Any], strides: Sequence[Any]
    ) -> SizeNode:
        def dense() -> bool:
            numbers = [_hint(s) for s in strides]
            return _is_dense(sizes, strides, sorted(range(len(sizes)), key=lambda d: -numbers[d]))

        return _asked(dense)

    is_non_overlapping_and_dense_indicator = is_non_overlapping_and_dense


def _number(x: Any) -> Any:
    return int(x) if type(x) is Size else x


def _value(x: Any) -> Any:
    """What is behind a node, also behind one that C++ has wrapped."""
    return x.value if isinstance(x, SizeNode) else x


def _hint(x: Any) -> int:
    value = _value(x)
    return value.hint if type(value) is Size else value


def _is_dense(sizes: Sequence[Any], strides: Sequence[Any], order: Sequence[int]) -> bool:
    """Whether the axes, the innermost one last in `order`, lie without gaps."""
    step: Any = 1
    for d in reversed(order):
        n, s = _value(sizes[d]), _value(strides[d])
        if n == 1:
            continue
        if s != step:
            return False
        step = step * n
    return True


def _asked(answer: Callable[[], bool]) -> SizeNode:
    return SizeNode(_Condition(answer))


def _by(function: Callable, *nodes: SizeNode) -> SizeNode:
    """Arithmetic on nodes: of integers with sizes as they are, of others with numbers."""
    if all(node.is_int() for node in nodes):
        return SizeNode(function(*[node.value for node in nodes]))
    return SizeNode(function(*[node.number() for node in nodes]))


def _arithmetic(function: Callable) -> Callable[[SizeNode, SizeNode], SizeNode]:
    return lambda self, other: _by(function, self, other)


def _on_numbers(function: Callable) -> Callable[[SizeNode, SizeNode], SizeNode]:
    return lambda self, other: SizeNode(function(self.number(), other.number()))


def _comparison(function: Callable) -> Callable[[SizeNode, SizeNode], SizeNode]:
    def compared(self: SizeNode, other: SizeNode) -> SizeNode:
        if self.is_constant() and other.is_constant():
            return SizeNode(function(self.value, other.value))
        if self.is_int() and other.is_int():
            return _asked(lambda: function(self.value, other.value))
        return _asked(lambda: function(self.number(), other.number()))

    return compared


def _power(a: Any, b: Any) -> Any:
    exponent = int(b)
    if type(a) is not Size:
        return a**exponent
    total: Any = 1
    for _ in range(exponent):
        total = total * a
    return total


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
for _names, _made in (
    (("add",), _arithmetic(operator.add)),
    (("sub",), _arithmetic(operator.sub)),
    (("mul",), _arithmetic(operator.mul)),
    (("floordiv", "int_floordiv"), _arithmetic(operator.floordiv)),
    (("mod",), _arithmetic(operator.mod)),
    (("sym_max",), _arithmetic(max)),
    (("sym_min",), _arithmetic(min)),
    (("pow_by_natural",), _arithmetic(_power)),
    (("truediv", "int_truediv", "float_truediv"), _on_numbers(operator.truediv)),
    (("pow", "float_pow"), _on_numbers(operator.pow)),
    *(
        ((name,), _comparison(getattr(operator, name)))
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
):
    for _name in _names:
        setattr(SizeNode, _name, _made)


def symint(n: Any) -> Any:
    """A number or a size, as torch takes it."""
    return torch.SymInt(SizeNode(n)) if type(n) is Size else n


def size_of(n: Any) -> Any:
    """Of an integer of torch's the number, or the size, that it is."""
    if type(n) is not torch.SymInt:
        return n
    return n.node.value
