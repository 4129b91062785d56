"""Translation rules of products: reductions of products, or calls of the kernels' own gemm.

A product of matrices is a loop only if it is small, or narrow; one of larger matrices of f32 or f64
is a step for `gemm.c`. So is one of a vector and a larger matrix that lies in memory. Where the
matrix is computed, it is a loop, which is one pass with what computes it. On a GPU a product with
few columns is a sum for each of them, of which one loop makes all: it reads the large matrix once.
One with short sums is an expression, in one pass with what uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from np_compile.size import reaches

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr, number
from ..ir.program import MULTIPLIED, Product, Statement, accesses, elements
from .arrays import Array, of_torch, strided
from .nodes import args_of
from .reductions import accumulator

# A product of two matrices is a loop up to so many multiplications, with two extents so narrow, or
# with sums so short: to write the result is then most of the work.
_SMALL = 16 * 32 * 32
# On a GPU up to so many, of so many results: the threads share the sums. Sums of any length, where
# there are so few of them.
_SMALL_ON_GPU = 1 << 22
_FEW_ON_GPU = 1 << 12
_FEWEST_ON_GPU = 1 << 6
_NARROW = 4
_LARGE = 1 << 30  # what is not known
_SHORT = 8
# On a GPU: most bytes of a short sum; of a row of the columns that one loop sums, and where the
# large matrix is computed; fewest rows, and elements of such a sum.
_SHORT_BYTES = 64
_ROW_BYTES = 16
_COMPUTED_BYTES = 40
_ROWS = 1 << 8
_LONG = 1 << 6
_SIDE = 32  # extents of a matrix from which a product with a vector is no loop


def _multiply(a: Expr, b: Expr) -> Expr:
    return E.scalar("mul", a, b)


def _parts(a: Sequence[Expr], b: Sequence[Expr], conjugate: bool) -> tuple[Expr, ...]:
    """The parts of a product of two numbers, real or complex."""
    if len(a) == 1:
        return (_multiply(a[0], b[0]),)
    (ar, ai), (br, bi) = a, b
    rr, ii, ri, ir = _multiply(ar, br), _multiply(ai, bi), _multiply(ar, bi), _multiply(ai, br)
    if conjugate:
        return E.scalar("add", rr, ii), E.scalar("sub", ri, ir)
    return E.scalar("sub", rr, ii), E.scalar("add", ri, ir)


def _loops(rows: int, sums: int, columns: int, gpu: bool) -> bool:
    """Whether a product of matrices of these extents is a loop."""
    known = sorted(n for n in (rows, sums, columns) if isinstance(n, int))
    least, middle, _ = (*known, _LARGE, _LARGE, _LARGE)[:3]
    small = len(known) == 3 and (
        elements(known) <= _SMALL
        or (gpu and elements(known) <= _SMALL_ON_GPU and rows * columns <= _FEW_ON_GPU)
        or (gpu and rows * columns <= _FEWEST_ON_GPU)
    )
    return small or middle <= _NARROW or least <= 1 or not reaches(sums, _SHORT + 1)


def _product(left: str, right: str, conjugate: bool = False) -> Callable[..., Array | None]:
    """A rule: the axes of the operands by letters, k the one that is summed over."""

    def rule(t: Any, node: fx.Node) -> Array | None:
        value = node.meta["val"]
        dtype, _ = of_torch(value.dtype)
        if dtype == "bool":
            return None
        a, b = t.array(args_of(node)[0]), t.array(args_of(node)[1])
        extents = dict(zip(left + right, a.shape + b.shape, strict=True))
        if t.gpu and (left, right) == ("ik", "kj") and not a.complex:
            narrow = _narrow(t, dtype, a, b)
            if narrow is not None:
                return narrow
        matrices = {"i", "j"} <= extents.keys()
        if t.gpu and dtype[0] in "iu":
            matrices = False  # cuBLAS has no integers: a loop, whatever the extents
        if matrices and not _loops(extents["i"], extents["k"], extents["j"], t.gpu):
            own = dtype in MULTIPLIED and not a.complex and not t.gpu
            return _in_blocks(t, node, a, b) if own else None
        if (left, right) == ("ik", "k") and dtype in MULTIPLIED and not t.gpu and _lies(a):
            return _in_blocks(t, node, a, b)
        axes = {x: E.axis(extents[x], x) for x in dict.fromkeys(left + right)}
        kept = tuple(axes[x] for x in axes if x != "k")
        wide = accumulator("sum", dtype)
        pairs = (array.at([axes[x] for x in letters]) for array, letters in ((a, left), (b, right)))
        first, second = (tuple(E.cast(p, wide) for p in parts) for parts in pairs)
        made = []
        for part in _parts(first, second, conjugate):
            held = t.fresh(wide, [x.extent for x in kept])
            if not extents["k"]:
                t.add(kept, held, kept, E.cast(E.integer(0), wide))
            else:
                t.add((*kept, axes["k"]), held, kept, part, op="sum", over=(axes["k"],))
            made.append(E.cast(E.load(held, kept), dtype))
        return Array(kept, tuple(made))

    return rule


def _narrow(t: Any, dtype: str, a: Array, b: Array) -> Array | None:
    """The product of two matrices on a GPU, if one of them is narrow: what a library reads and
    writes then takes longer than the product."""
    (rows, sums), columns = a.shape, b.shape[1]
    size = DTYPES[accumulator("sum", dtype)].size
    if isinstance(sums, int) and sums <= _SHORT_BYTES // size and reaches(rows, _LONG):
        return _written_out(t, dtype, a, _side_by_side(t, b, 1))

    def few(n: int, others: int, large: Array) -> bool:
        most = (_COMPUTED_BYTES if _computed(t, large) else _ROW_BYTES) // size
        known = isinstance(n, int) and 1 < n <= most
        return known and reaches(others, _ROWS) and reaches(sums, _LONG)

    if few(columns, rows, a):
        return _by_columns(t, dtype, a, b)
    if few(rows, columns, b):
        return _by_columns(t, dtype, b.permute((1, 0)), a.permute((1, 0))).permute((1, 0))
    return None


def _computed(t: Any, matrix: Array) -> bool:
    """Whether a loop before makes a matrix by elements, and can be one pass with what reads it."""
    place = strided(matrix)
    return place is None or any(
        isinstance(s, Statement) and s.target is place[0] and s.op is None for s in t.program.steps
    )


def _by_columns(t: Any, dtype: str, a: Array, b: Array) -> Array:
    """The product of a matrix with one of few columns, a statement for each of these."""
    wide = accumulator("sum", dtype)
    rows, sums, columns = E.axis(a.shape[0], "i"), E.axis(a.shape[1], "k"), b.shape[1]
    place = strided(a)
    if place is None or place[2][1] == 1:  # threads share a sum
        b = _side_by_side(t, b, 0)
    held = t.fresh(wide, (rows.extent, columns))
    (first,) = a.at([rows, sums])
    for c in range(columns):
        (second,) = b.at([sums, E.integer(c)])
        part = _multiply(E.cast(first, wide), E.cast(second, wide))
        t.add((rows, sums), held, (rows, E.integer(c)), part, op="sum", over=(sums,))
    kept = (rows, E.axis(columns, "j"))
    return Array(kept, (E.cast(E.load(held, kept), dtype),))


def _written_out(t: Any, dtype: str, a: Array, b: Array) -> Array:
    """The product of two matrices with short sums, as an expression."""
    wide = accumulator("sum", dtype)
    kept = (E.axis(a.shape[0], "i"), E.axis(b.shape[1], "j"))
    total: Expr = number(0, wide)
    for k in range(a.shape[1]):
        pair = (a.at([kept[0], E.integer(k)]), b.at([E.integer(k), kept[1]]))
        total = E.scalar("add", total, _multiply(*(E.cast(p, wide) for (p,) in pair)))
    held = t.fresh(wide, [x.extent for x in kept])
    t.add(kept, held, kept, total)
    return Array(kept, (E.cast(E.load(held, kept), dtype),))


def _side_by_side(t: Any, matrix: Array, axis: int) -> Array:
    """A matrix whose elements along an axis lie side by side, as threads next to each other read
    them; a copy, where they do not."""
    place = strided(matrix)
    if place is not None and place[2][axis] == 1:
        return matrix
    order = (1 - axis, axis)
    before = list(t.program.steps)
    turned: Array = t.materialize(matrix.permute(order))
    if place is not None and not any(place[0] in accesses(s)[1] for s in before):
        t.program.steps[:] = [*t.program.steps[len(before) :], *before]  # not between what fuses
    return turned.permute(order)


def _lies(matrix: Array) -> bool:
    """Whether a matrix lies in memory before the program begins, row by row or column by column,
    and has many of both."""
    place = None if matrix.complex else strided(matrix)
    if place is None or place[0].kind not in ("input", "constant"):
        return False
    dense = any(type(step) is int and step == 1 for step in place[2])
    return dense and all(reaches(n, _SIDE) for n in matrix.shape)


def _in_blocks(t: Any, node: fx.Node, a: Array, b: Array) -> Array:
    """A step of its own, which reads and writes memory."""
    value = node.meta["val"]
    first, second = (
        t.tensor(x, like.meta["val"]) for x, like in zip((a, b), args_of(node)[:2], strict=True)
    )
    whole: Array = t.empty(value)
    step = product(t.tensor(whole, value), first, second, str(node.target), t.line)
    t.program.steps.append(step)
    return whole


RULES: dict[str, Callable[[Any, fx.Node], Any]] = {
    "dot": _product("k", "k"),
    "vdot": _product("k", "k", conjugate=True),
    "mv": _product("ik", "k"),
    "mm": _product("ik", "kj"),
    "bmm": _product("bik", "bkj"),
}


def product(c: Any, a: Any, b: Any, name: str, line: str) -> Product:
    """The step that stores a product, or several, of a `Tensor` and another in a third."""
    return Product(
        name, _multiplied, (c, a, b), {}, [a.buffer, b.buffer], [c.buffer], [],
        "it is computed in blocks that fit into the caches", line,
    )  # fmt: skip


def _multiplied(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    """What the step means."""
    c.copy_(torch.matmul(a, b))
