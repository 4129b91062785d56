"""Expressions of the loop IR: hash-consed nodes; indices in an affine normal form.

An expression is an immutable, interned node; equal expressions of one compile (`fresh`) are the
same object, and so are those that a thread makes outside of any. Index expressions (dtype "i64")
are kept in one normal form, an affine sum of atoms,

    const + c1 * atom1 + c2 * atom2 + ...

where an atom is an axis or something that is not affine (a quotient, a remainder, a choice, a
loaded integer). Quotients and remainders by constants are simplified by the ranges of the axes, so
that a reshape of an array costs nothing where it is no more than another way to count.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from np_compile.size import Size, hint, zero

from . import scalars

_FAR = 1 << 62


class _Nodes(threading.local):
    """The nodes that a thread knows, and their numbers."""

    def __init__(self) -> None:
        self.known: MutableMapping[tuple, Expr] = WeakValueDictionary()
        self.numbers = itertools.count()


_nodes = _Nodes()


@contextmanager
def fresh() -> Iterator[None]:
    """Within the block this thread makes the expressions of one compile: they count from zero, and
    none of them is one that was made outside."""
    before = _nodes.known, _nodes.numbers
    _nodes.known, _nodes.numbers = {}, itertools.count()
    try:
        yield
    finally:
        _nodes.known, _nodes.numbers = before


class NoOperation(Exception):
    """A scalar operation that is not defined on a dtype."""


class Expr:
    """A node: operation, operands, dtype of the result, and what else says what it is.

    op      value                       meaning
    const   the number
    axis    (name, extent)              0 <= value of a loop's variable < extent
    affine  (const, c1, c2, ...)        const + c1*args[0] + c2*args[1] + ...
    load    buffer                      element of the buffer at the indices args
    cast, bitcast
    idiv, imod  d                       quotient and remainder of an index by d > 0
    wrap    (extent, dim)               an integer from data as an index: checked against the
                                        extent; negative ones count from the end
    known   extent                      an integer of which it is known that 0 <= it < extent
    other   a row of scalars.OPS

    number: in the order of creation.
    """

    __slots__ = (
        "__weakref__", "_atoms", "_loads", "_range", "args", "dtype", "number", "op", "value",
    )  # fmt: skip

    op: str
    args: tuple[Expr, ...]
    dtype: str
    value: Any
    number: int
    _range: tuple[int, int] | None
    _atoms: frozenset[Expr] | None
    _loads: tuple[Expr, ...] | None

    def __repr__(self) -> str:
        return show(self)

    @property
    def extent(self) -> int:
        """Number of values of an axis."""
        return self.value[1]


def make(op: str, args: tuple[Expr, ...], dtype: str, value: Any = None) -> Expr:
    """The node of that operation, as it stands; the functions below simplify first."""
    # A number by its text: 0.0 equals -0.0, and NaN nothing.
    text = op == "const" and type(value) is not Size
    key = (op, args, dtype, repr(value) if text else value)
    found = _nodes.known.get(key)
    if found is None:
        found = _nodes.known[key] = Expr()
        found.op, found.args, found.dtype, found.value = op, args, dtype, value
        found._range = found._atoms = found._loads = None
        found.number = next(_nodes.numbers)
    return found


def const(value: Any, dtype: str) -> Expr:
    return make("const", (), dtype, value)


def integer(value: int | Size) -> Expr:
    """A constant index."""
    return make("const", (), "i64", value if type(value) is Size else int(value))


def axis(extent: int, hint: str = "i") -> Expr:
    """A new axis of `extent` steps."""
    return make("axis", (), "i64", (f"{hint}{next(_nodes.numbers)}", extent))


def load(buffer: Any, index: Iterable[Expr]) -> Expr:
    return make("load", tuple(index), buffer.dtype, buffer)


def cast(x: Expr, dtype: str) -> Expr:
    """x as `dtype`; of a constant, the constant."""
    if x.dtype == dtype:
        return x
    if x.op == "const" and type(x.value) is not Size:
        return const(scalars.convert(x.value, x.dtype, dtype), dtype)
    return make("cast", (x,), dtype)


def bitcast(x: Expr, dtype: str) -> Expr:
    """The bits of x under another dtype of the same width."""
    if x.dtype == dtype:
        return x
    if x.op == "bitcast":
        return bitcast(x.args[0], dtype)
    return make("bitcast", (x,), dtype)


def wrap(x: Expr, extent: int, dim: int) -> Expr:
    """An integer from data as an index into an axis: checked, negative ones from the end."""
    x = _from_end(x, extent)
    lo, hi = bounds(x)
    if lo >= 0 and hi < extent:
        return x
    return make("wrap", (_before_lift(x, extent),), "i64", (extent, dim))


def known(x: Expr, extent: int) -> Expr:
    """An integer from data that is an index into an axis, as has been found before."""
    lo, hi = bounds(x)
    return x if lo >= 0 and hi < extent else make("known", (x,), "i64", extent)


def from_data(x: Expr) -> bool:
    """Whether x is an integer from data as an index."""
    return x.op == "wrap" or x.op == "known"


def _before_lift(x: Expr, extent: int) -> Expr:
    """r, where x is r lifted by `extent` if negative, and `extent` if it is negative still: what
    `wrap` does to r."""
    checked = unless_negative(x)
    lifted = unless_negative(checked[0]) if checked else None
    if checked is None or lifted is None or checked[1] is not integer(extent):
        return x
    r = as_index(lifted[0])
    return r if terms(as_index(lifted[1])) == (extent, {r: 1}) else x


def unless_negative(x: Expr) -> tuple[Expr, Expr] | None:
    """r and v, where x is "v if r < 0, else r"."""
    if x.op == "where" and x.args[0].op == "lt":
        r, zero = x.args[0].args
        if r is x.args[2] and zero is integer(0):
            return r, x.args[1]
    return None


def _from_end(x: Expr, extent: int) -> Expr:
    """The plain index of one whose negative values have been counted from the end already."""
    if x.op == "where" and x.args[0].op == "lt" and x.args[0].args[1] is integer(0):
        inner = x.args[0].args[0]
        _, yes, no = x.args
        if no is inner and yes.op == "add" and set(yes.args) == {inner, integer(extent)}:
            return inner  # where(x < 0, x + n, x) -> x
        if no is inner and yes is integer(
            extent
        ):  # where(y < 0, n, y): what is too low is an error
            plain = _from_end(inner, extent)
            return x if plain is inner else plain
    return x


def as_index(x: Expr) -> Expr:
    """A scalar expression of an integer as an index expression, affine where it is."""
    if x.dtype != "i64":
        return cast(x, "i64")
    if x.op in ("add", "sub"):
        b = as_index(x.args[1])
        return plus(as_index(x.args[0]), b if x.op == "add" else times(b, -1))
    if x.op == "mul":
        for a, b in (x.args, x.args[::-1]):
            if b.op == "const":
                return times(as_index(a), b.value)
    return x


def scalar(op: str, *args: Expr) -> Expr:
    """An operation of the scalar table. Constants are folded; exact identities are used."""
    try:
        dtype = scalars.result_dtype(op, args[-1].dtype)
    except TypeError as e:
        raise NoOperation(str(e)) from None
    if op == "where":
        condition, yes, no = args
        if condition.op == "const":
            return yes if condition.value else no
        if yes is no:
            return yes
    elif all(a.op == "const" and type(a.value) is not Size for a in args):
        return const(scalars.fold(op, args[0].dtype, [a.value for a in args]), dtype)
    elif op in ("mul", "div") and _is_one(args[1]):  # x * 1 -> x, x / 1 -> x
        return args[0]
    elif op == "mul" and _is_one(args[0]):  # 1 * x -> x
        return args[1]
    elif op == "add" and dtype == "i64" and integer(0) in args:  # x + 0 -> x, of integers
        return args[1] if args[0] is integer(0) else args[0]
    elif op in _COMPARE and args[0].dtype == "i64":
        known = _compare_ranges(op, args[0], args[1])
        if known is not None:
            return const(known, "bool")
    return make(op, args, dtype)


_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")


def _is_one(x: Expr) -> bool:
    return x.op == "const" and x.value == 1


def _compare_ranges(op: str, a: Expr, b: Expr) -> bool | None:
    if a is b:
        return op in ("le", "ge", "eq")
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    if op in ("gt", "ge"):
        al, ah, bl, bh = bl, bh, al, ah
        op = "lt" if op == "gt" else "le"
    if op == "lt":
        return True if ah < bl else False if al >= bh else None
    if op == "le":
        return True if ah <= bl else False if al > bh else None
    if ah < bl or bh < al:
        return op == "ne"
    if al == ah == bl == bh:
        return op == "eq"
    return None


# Index arithmetic


def terms(x: Expr) -> tuple[int, dict[Expr, int]]:
    """An index as its constant and its atoms with their coefficients."""
    if x.op == "const":
        return x.value, {}
    if x.op == "affine":
        return x.value[0], dict(zip(x.args, x.value[1:], strict=True))
    return 0, {x: 1}


def affine(constant: int, atoms: Mapping[Expr, int]) -> Expr:
    """const + sum of coefficient * atom, in normal form."""
    if any(a.op == "imod" for a in atoms):
        atoms = _recombined(atoms)
    items = [(a, c) for a, c in atoms.items() if c != 0]
    if not items:
        return integer(constant)
    if zero(constant) and len(items) == 1 and items[0][1] == 1:
        return items[0][0]
    items.sort(key=lambda item: item[0].number)  # the same text in every process
    return make("affine", tuple(a for a, _ in items), "i64", (constant, *(c for _, c in items)))


def _recombined(atoms: Mapping[Expr, int]) -> dict[Expr, int]:
    """Atoms with (x // m) * m*c + (x % m) * c -> x * c."""
    result = dict(atoms)
    for a in atoms:
        if a.op != "imod":
            continue
        x, m, c = a.args[0], a.value, result.get(a, 0)
        quotient = floordiv(x, m)
        if c and quotient.op == "idiv" and result.get(quotient) == c * m:
            constant, inner = terms(x)
            if constant:
                continue
            del result[a], result[quotient]
            for atom, n in inner.items():
                result[atom] = result.get(atom, 0) + n * c
    return result


def plus(a: Expr, b: Expr | int) -> Expr:
    if not isinstance(b, Expr):
        if zero(b):
            return a
        k, atoms = terms(a)
        return affine(k + b, atoms)
    k, atoms = terms(a)
    m, others = terms(b)
    for atom, c in others.items():
        atoms[atom] = atoms.get(atom, 0) + c
    return affine(k + m, atoms)


def times(a: Expr, factor: int) -> Expr:
    if factor == 1:
        return a
    k, atoms = terms(a)
    return affine(k * factor, {x: c * factor for x, c in atoms.items()})


def floordiv(a: Expr, d: int) -> Expr:
    """a // d for a positive constant d."""
    if d == 1:
        return a
    quotient, rest = _divide(a, d)
    lo, hi = bounds(rest)
    if lo // d == hi // d and hi < _FAR:
        return plus(quotient, lo // d)
    if rest.op == "idiv":  # (r // c) // d -> r // (c*d)
        inner = floordiv(rest.args[0], rest.value * d)
    else:
        inner = make("idiv", (rest,), "i64", d)
    return plus(quotient, inner)


def mod(a: Expr, d: int) -> Expr:
    """a % d for a positive constant d."""
    if d == 1:
        return integer(0)
    _, rest = _divide(a, d)
    _, atoms = terms(rest)
    if any(x.op == "imod" and c * x.value % d == 0 for x, c in atoms.items()):
        # (y % m)*c -> y*c, where d divides m*c
        for x, c in atoms.items():
            whole = x.op == "imod" and c * x.value % d == 0
            rest = plus(rest, times(plus(x.args[0], times(x, -1)), c)) if whole else rest
        return mod(rest, d)
    lo, hi = bounds(rest)
    if lo // d == hi // d and hi < _FAR:
        return plus(rest, -(lo // d) * d)
    return make("imod", (rest,), "i64", d)


def _divide(a: Expr, d: int) -> tuple[Expr, Expr]:
    """a as d*quotient + rest, with every multiple of d that can be seen in the quotient."""
    k, atoms = terms(a)
    whole = {x: c // d for x, c in atoms.items() if c % d == 0}
    rest = {x: c for x, c in atoms.items() if c % d != 0}
    return affine(k // d, whole), affine(k % d, rest)


def choose(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """An index that depends on a condition."""
    return scalar("where", condition, yes, no)


def bounds(x: Expr) -> tuple[int, int]:
    """Least and greatest value that an index can have."""
    found = x._range
    if found is None:
        found = x._range = _bounds(x)
    return found


def _bounds(x: Expr) -> tuple[int, int]:
    if x.op == "const":
        return x.value, x.value
    if x.op == "axis":
        n = x.value[1]
        return 0, n - 1 if type(n) is Size else max(n - 1, 0)  # of none, anything is true
    if x.op == "affine":
        lo = hi = x.value[0]
        for atom, c in zip(x.args, x.value[1:], strict=True):
            low, high = bounds(atom)
            if low <= -_FAR or high >= _FAR:
                return -_FAR, _FAR
            near, far = (low, high) if c >= 0 else (high, low)
            lo += c * near
            hi += c * far
        return lo, hi
    if x.op == "imod":
        return 0, x.value - 1
    if x.op == "idiv":
        low, high = bounds(x.args[0])
        if low <= -_FAR or high >= _FAR:
            return -_FAR, _FAR
        return low // x.value, high // x.value
    if x.op == "where" and x.dtype == "i64":
        test, yes, no = x.args
        (a, b), (c, d) = bounds(yes), bounds(no)
        if test.op == "lt" and test.args[0] is yes:  # a minimum
            b = min(b, bounds(test.args[1])[1] - 1)
        return min(a, c), max(b, d)
    if x.op == "wrap":
        return 0, x.value[0] - 1
    if x.op == "known":
        return 0, x.value - 1
    return -_FAR, _FAR


# Walks


def axes_of(x: Expr) -> frozenset[Expr]:
    """The axes that an expression depends on."""
    found = x._atoms
    if found is None:
        if x.op == "axis":
            found = frozenset((x,))
        elif not x.args:
            found = frozenset()
        else:
            found = frozenset().union(*(axes_of(a) for a in x.args))
        x._atoms = found
    return found


def walk(*roots: Expr) -> list[Expr]:
    """Every node below the roots once, operands first."""
    seen: set[Expr] = set()
    order: list[Expr] = []

    def visit(x: Expr) -> None:
        if x in seen:
            return
        seen.add(x)
        for a in x.args:
            visit(a)
        order.append(x)

    for root in roots:
        visit(root)
    return order


def loads(*roots: Expr) -> tuple[Expr, ...]:
    """Every load below the roots once, those in the indices of another one before it."""
    if len(roots) == 1:
        (x,) = roots
        return (*_loads_below(x), x) if x.op == "load" else _loads_below(x)
    found = [some for x in roots if (some := loads(x))]
    return _joined(found) if found else ()


def _loads_below(x: Expr) -> tuple[Expr, ...]:
    found = x._loads
    if found is None:  # it is asked for again and again, and most nodes have those of an operand
        found = x._loads = loads(*x.args) if x.args else ()
    return found


def _joined(parts: list[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    if len(parts) == 1:
        return parts[0]
    every = dict.fromkeys(itertools.chain.from_iterable(parts))
    return parts[0] if len(every) == len(parts[0]) else tuple(every)


def rebuild(x: Expr, args: tuple[Expr, ...]) -> Expr:
    """The same operation of other operands, simplified."""
    op = x.op
    if op == "affine":
        total = x.value[0]
        atoms: dict[Expr, int] = {}
        for a, c in zip(args, x.value[1:], strict=True):
            k, inner = terms(a)
            total += k * c
            for atom, m in inner.items():
                atoms[atom] = atoms.get(atom, 0) + m * c
        return affine(total, atoms)
    if op == "idiv":
        return floordiv(args[0], x.value)
    if op == "imod":
        return mod(args[0], x.value)
    if op == "cast":
        return cast(args[0], x.dtype)
    if op == "bitcast":
        return bitcast(args[0], x.dtype)
    if op == "wrap":
        return wrap(args[0], *x.value)
    if op == "known":
        return known(args[0], x.value)
    if op == "load":
        return make(op, args, x.dtype, x.value)
    return scalar(op, *args)


Rewrite = Callable[[Expr], Expr]


def rewriter(
    change: Callable[[Expr, Rewrite], Expr | None], memo: dict[Expr, Expr] | None = None
) -> Rewrite:
    """A function that gives an expression with nodes replaced: change(x, again) is the replacement
    of a node, None to look below it; `again` is that function, for operands. memo: known results.
    """
    known = {} if memo is None else memo

    def again(x: Expr) -> Expr:
        found = known.get(x)
        if found is None:
            found = change(x, again)
            if found is None:
                args = tuple([again(a) for a in x.args])
                found = x if args == x.args else rebuild(x, args)
            known[x] = found
        return found

    return again


def replaced(mapping: Mapping[Expr, Expr]) -> Rewrite:
    """A rewriter of some nodes."""
    return rewriter(lambda *_: None, dict(mapping))


def loads_replaced(change: Callable[[Expr], Expr | None]) -> Rewrite:
    """A rewriter of loads: `change` is given one whose indices are rewritten, None to keep it."""

    def below(x: Expr, again: Rewrite) -> Expr | None:
        if x.op != "load":
            return None
        args = tuple(map(again, x.args))
        new = x if args == x.args else make("load", args, x.dtype, x.value)
        return change(new) or new

    return rewriter(below)


def axes_replaced(mapping: Mapping[Expr, Expr]) -> Rewrite:
    """A rewriter of axes."""

    def below(x: Expr, again: Rewrite) -> Expr | None:
        return mapping.get(x) if x.op == "axis" else (None if axes_of(x) else x)

    again = rewriter(below)
    return lambda x: again(x) if mapping and axes_of(x) & mapping.keys() else x


def substitute(x: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """x with axes replaced."""
    return axes_replaced(mapping)(x)


# Text

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


def show(x: Expr, names: dict[Expr, str] | None = None) -> str:
    """Text of an expression, in the grammar of program.py. names: of expressions inside it that
    are not written out."""
    return _text(x, {} if names is None else names)


def repeated(*roots: Expr, most: int = 400) -> list[Expr]:
    """Expressions that stand at several places, inner ones first, where the text without names for
    them had more than `most` words; else none."""
    size: dict[Expr, int] = {}
    count: dict[Expr, int] = {}
    for x in walk(*roots):  # the arguments of an expression come before it
        size[x] = 1 + sum(size[a] for a in x.args)
        for a in x.args:
            count[a] = count.get(a, 0) + 1
    if sum(size[x] for x in roots) <= most:
        return []
    return [x for x in size if count.get(x, 0) > 1 and x.args]


def _text(x: Expr, names: dict[Expr, str]) -> str:
    if x in names:
        return names[x]
    if x.op == "const":
        if x.dtype == "i64":
            return str(x.value)
        value = x.value
        if isinstance(value, np.generic):
            value = value.item()
        return f"{value!r}:{x.dtype}"
    if x.op == "axis":
        return x.value[0]
    if x.op == "affine":
        parts = [] if zero(x.value[0]) else [str(x.value[0])]
        parts += [
            ("" if type(c) is int and c == 1 else f"{c}*") + text
            for text, c in sorted(
                ((_text(a, names), c) for a, c in zip(x.args, x.value[1:], strict=True)),
                key=lambda item: (-hint(item[1]), item[0]),
            )
        ]
        return "(" + " + ".join(parts) + ")" if len(parts) > 1 else parts[0]
    inner = [_text(a, names) for a in x.args]
    if x.op == "load":
        return f"{x.value.name}[{', '.join(inner)}]"
    if x.op in ("cast", "bitcast"):
        return f"{'bits_' if x.op == 'bitcast' else ''}{x.dtype}({inner[0]})"
    if x.op in INFIX and not (x.dtype == "i64" and x.op in ("add", "sub", "mul")):
        return f"({inner[0]} {INFIX[x.op]} {inner[1]})"
    if x.op == "wrap":
        return f"wrap({inner[0]}, {x.value[0]}, {x.value[1]})"
    if x.op == "known":
        return f"known({inner[0]}, {x.value})"
    if x.op == "idiv":
        return f"({inner[0]} // {x.value})"
    if x.op == "imod":
        return f"({inner[0]} % {x.value})"
    return f"{x.op}({', '.join(inner)})"


def new_axes(shape: Sequence[int]) -> tuple[Expr, ...]:
    return tuple(axis(n, "ijklmn"[min(k, 5)]) for k, n in enumerate(shape))


def number(value: Any, dtype: str) -> Expr:
    return const(scalars.convert_constant(value, dtype), dtype)
