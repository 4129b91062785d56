"""Statements on the elements under one mask: `z[m] = z[m] * z[m] + c[m]` as one loop.

NumPy takes the elements out, computes with them, and puts them back. Where every array of the
statement is indexed by the same mask, and an element depends on those at its own place only, one
loop over all places does the same where the mask is true, and nothing is taken out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

import numpy as np

from . import index
from .expressions import expression
from .nest import inner_axis, lazy, load, loops, note_work, overlap, write
from .read import Reader
from .threads import shared
from .values import PARTS, Arr, Lazy, Num

_CHEAP = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr, ast.BitXor)


def assigned(
    r: Reader, target: ast.expr, value: ast.expr, in_place: bool = False
) -> Callable[[], Arr] | None:
    """What carries out `target = value`, all checks made, and gives the array that it changes; None
    where it is no statement of this kind. in_place: of `target op= ...`, whose result is to be of a
    kind of dtype that the array can take."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Name):
        return None
    mask = r.env.get(target.slice.id)
    if not isinstance(mask, Arr) or mask.rep != "bool":
        return None
    owner, sources = _array(r, target, mask), _sources(r, value, mask, target.slice.id)
    if owner is None or owner.readonly or not sources:
        return None
    if overlap(r, owner, mask) != "disjoint":
        return None
    if any(overlap(r, owner, x) not in ("same", "disjoint") for x in sources):
        return None
    for x in (owner, *sources):
        index._mask(r, x, mask)
        r.accesses.note(x)
    r.accesses.note(mask)
    made = lazy(expression(r, _Whole().visit(copy.deepcopy(value))))
    if in_place and not np.can_cast(made.dtype, owner.dtype, "same_kind"):
        return None
    given = index.stored(made, r, owner.rep)
    assert isinstance(given, Lazy)

    def commit() -> Arr:
        note_work(r, owner.dims)
        r.accesses.note(owner, write=True)
        with shared(r, owner), loops(r, owner.dims, inner_axis(owner)) as at:
            if owner.rep in PARTS:
                with r.block(f"if ({load(mask, at)})"):
                    write(r, owner, at, given.at(at))
            else:  # a loop of vectors
                was = load(owner, at)
                write(r, owner, at, f"({load(mask, at)} != 0 ? {given.at(at)} : {was})")
        return owner

    return commit


def _array(r: Reader, node: ast.expr, mask: Arr) -> Arr | None:
    """The array of which a mask of as many axes takes elements."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    a = r.env.get(node.value.id)
    return a if isinstance(a, Arr) and a.ndim == mask.ndim else None


def _sources(r: Reader, node: ast.expr, mask: Arr, name: str) -> list[Arr]:
    """The arrays that an expression takes elements of; none where it does anything else but cheap
    operations on these and on numbers."""
    found: list[Arr] = []

    def look(x: ast.expr) -> bool:
        if isinstance(x, ast.BinOp):
            power = isinstance(x.op, ast.Pow) and isinstance(x.right, ast.Constant)
            square = power and x.right.value == 2  # type: ignore[attr-defined]
            return (square or isinstance(x.op, _CHEAP)) and look(x.left) and look(x.right)
        if isinstance(x, ast.UnaryOp):
            return isinstance(x.op, ast.USub) and look(x.operand)
        if isinstance(x, ast.Constant):
            return type(x.value) in (int, float, complex)
        if isinstance(x, ast.Name):
            number = r.env.get(x.id)
            return isinstance(number, Num) and len(number.kinds) == 1
        if not isinstance(x, ast.Subscript) or not isinstance(x.slice, ast.Name):
            return False
        a = _array(r, x, mask)
        if a is None or x.slice.id != name:
            return False
        found.append(a)
        return True

    return found if look(node) else []


class _Whole(ast.NodeTransformer):
    """The whole arrays in the place of their elements under the mask."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node.value
