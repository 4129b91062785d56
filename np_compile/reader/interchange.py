"""Loop interchange: a loop that goes along the last axis of arrays, whose statements do the same to
all elements of the other axes.

`for k in ...: out[:, :, k] = a[:, :, k] * out[:, :, k - 1]` steps over rows in each statement.
Where each statement takes what it does along an axis only from the same place of that axis, the
loops over these axes may be the outer ones: a *tile* of some elements goes through all iterations,
then the next one. The body is read again for a tile, with names that mean parts of the arrays. The
order of the iterations stays, so that what they hand on is as before.

Nothing in a tile may leave, since Python could not go on there: what may is not interchanged. What
shows only as it runs (extents, addresses) is looked at before the first tile.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import index
from .dependence import Independence
from .nest import FAR
from .read import SOME, Leave, Reader
from .stack import settle
from .threads import Iteration, Threaded, rests_on
from .values import Arr, Known, Num, Slice, Unreadable
from .walk import names_in, walk

_TILE = 8  # elements of the last axis in a tile
_WAYS = 16  # copies of the last statement
_NUMBERS = (min, max, abs, int, float, bool, round)
_ALIKE = (np.zeros_like, np.ones_like, np.empty_like, np.copy)
# What stands in lines that leave, call Python or make arrays.
_HINTS = ("goto ", "return", "python(", "call_numpy", "allocate(", "retain(", "rt->")

Labels = tuple  # of each axis of an array: which of the outer loops goes along it, or None


class _Refused(Exception):
    """A statement does not do the same to all elements."""


@dataclass
class Plan:
    """A loop that may be interchanged. labels: of each array from around the loop. arrays: these
    arrays. dims: the extents that the outer loops go along; counted: those of axes that it goes
    along itself. node: the loop, with a body in which nothing follows a branch; made: names that it
    gives values."""

    labels: dict[str, Labels]
    arrays: dict[str, Arr]
    dims: list[Num]
    counted: list[Num]
    node: ast.For
    made: set[str]


# Whether all elements are alike


def planned(r: Reader, node: ast.For) -> Plan | None:
    """How to interchange a loop, by its statements and the arrays that it has."""
    live = r.entry.live(r.frame.node).get(id(node))
    if not r.frame.whole or live is None or node.orelse or not isinstance(node.target, ast.Name):
        return None
    made, added = _bound_in(node)
    if not _goes_along_last(r, node, made):
        return None
    whole = frozenset(x for x in added - made if isinstance(r.env.get(x), Arr))
    key = "interchanged", id(node), whole
    if key not in r.entry.normalized:
        r.entry.normalized[key] = _taken_apart(node, whole)
    own = r.entry.normalized[key]
    if own is None:
        return None
    made |= added - whole
    if made & (live.begin | live.after | live.shared):
        return None
    r.entry.live(r.frame.node)[id(own)] = live
    arrays: dict[str, Arr] = {}
    labels: dict[str, Labels] = {}
    counted: list[Num] = []
    for name, parts in _subscripts(own.body).items():
        a = r.env.get(name)
        if name in made or not isinstance(a, Arr):
            continue
        arrays[name] = a
        axes = [k for k in range(a.ndim) if all(k >= len(p) or _is_all(p[k]) for p in parts)]
        labels[name] = tuple(k if k in axes else None for k in range(a.ndim))
        for items in parts:
            for k, x in enumerate(items[: a.ndim]):
                if isinstance(x, ast.Name) and x.id == node.target.id:
                    counted.append(a.dims[k])
    rank = max((sum(k is not None for k in x) for x in labels.values()), default=0)
    if not rank:
        return None
    for name, own_axes in labels.items():  # they end alike
        places = iter(range(rank - sum(k is not None for k in own_axes), rank))
        labels[name] = tuple(None if k is None else next(places) for k in own_axes)
    for name in sorted(names_in(own) - made - labels.keys()):  # arrays that are meant whole
        a = r.env.get(name)
        if isinstance(a, Arr):
            if a.ndim > rank:
                return None
            arrays[name] = a
            labels[name] = tuple(range(rank - a.ndim, rank))
    dims = _extents(arrays, labels, rank)
    if dims is None or any(d.value is not None and d.value < 2 for d in dims):
        return None
    try:
        _Elements(r, labels).block(own.body, {node.target.id: ()})
    except _Refused:
        return None
    return Plan(labels, arrays, dims, counted, own, made)


def _goes_along_last(r: Reader, node: ast.For, made: set[str]) -> bool:
    """Whether a loop goes along the last axis of an array, where the next element is the next one
    in memory."""
    assert isinstance(node.target, ast.Name)
    for name, parts in _subscripts(node.body).items():
        a = r.env.get(name)
        if name in made or not isinstance(a, Arr) or a.ndim < 2 or a.strides[-1].value != 1:
            continue
        last = (x[a.ndim - 1] for x in parts if len(x) == a.ndim)
        if any(isinstance(x, ast.Name) and x.id == node.target.id for x in last):
            return True
    return False


def _bound_in(node: ast.For) -> tuple[set[str], set[str]]:
    """The names that a loop binds, and those that it adds to."""
    adds = (x.target for x in walk(node) if isinstance(x, ast.AugAssign))
    added = {x.id for x in adds if isinstance(x, ast.Name)}
    targets = (y for x in walk(node) if isinstance(x, ast.Assign) for y in x.targets)
    made = {y.id for y in (*targets, node.target) if isinstance(y, ast.Name)}
    return made, added


class _InPlace(ast.NodeTransformer):
    """`y += x` of these names as `y[:] += x`."""

    def __init__(self, names: frozenset[str]):
        self._names = names

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        to = node.target
        if isinstance(to, ast.Name) and to.id in self._names:
            part = ast.Subscript(ast.Name(to.id, ast.Load()), ast.Slice(), ast.Store())
            node.target = ast.copy_location(part, to)
        return node


def _taken_apart(node: ast.For, whole: frozenset[str]) -> ast.For | None:
    """The loop with what follows a branch in both of its ways. whole: arrays that are added to."""
    plain = (ast.Assign, ast.AugAssign, ast.If, ast.Expr, ast.Pass)
    if any(isinstance(x, ast.stmt) and not isinstance(x, plain) for x in walk(node)[1:]):
        return None
    if any(isinstance(x, (ast.NamedExpr, ast.comprehension, ast.Lambda)) for x in walk(node)):
        return None
    try:
        body = _tails(node.body, node.body[-1], [_WAYS])
    except _Refused:
        return None
    own = ast.copy_location(ast.For(node.target, node.iter, body, [], None), node)
    return ast.fix_missing_locations(_InPlace(whole).visit(copy.deepcopy(own)))


def _tails(nodes: Sequence[ast.stmt], end: ast.stmt, left: list[int]) -> list[ast.stmt]:
    for k, x in enumerate(nodes):
        if isinstance(x, ast.If):
            left[0] -= 1
            if left[0] < 0:
                raise _Refused
            rest = nodes[k + 1 :]
            ways = [_tails([*way, *rest], end, left) for way in (x.body, x.orelse)]
            return [*nodes[:k], ast.copy_location(ast.If(x.test, *ways), x)]
    return [*nodes, ast.copy_location(ast.Continue(), end)]  # no names come together behind it


def _subscripts(nodes: Sequence[ast.stmt]) -> dict[str, list[list[ast.expr]]]:
    """The indices of names that are indexed."""
    found: dict[str, list[list[ast.expr]]] = {}
    for x in ast.walk(ast.Module(list(nodes), [])):
        if isinstance(x, ast.Subscript) and isinstance(x.value, ast.Name):
            found.setdefault(x.value.id, []).append(_items(x))
    return found


def _items(x: ast.Subscript) -> list[ast.expr]:
    return list(x.slice.elts) if isinstance(x.slice, ast.Tuple) else [x.slice]


def _is_all(x: ast.AST) -> bool:
    return isinstance(x, ast.Slice) and x.lower is x.upper is x.step is None


def _extents(arrays: dict[str, Arr], labels: dict[str, Labels], rank: int) -> list[Num] | None:
    dims: list[Num | None] = [None] * rank
    for name, a in arrays.items():
        for d, k in zip(a.dims, labels[name], strict=True):
            if k is not None and (dims[k] is None or dims[k].value is None):
                dims[k] = d
    return None if any(d is None or d.lin is None for d in dims) else dims  # type: ignore


class _Elements:
    """Labels of the values of statements; _Refused where an element takes something from another
    one's place. outer: labels of the arrays from around the loop."""

    def __init__(self, r: Reader, outer: dict[str, Labels]):
        self._r, self._outer = r, outer

    def block(self, nodes: Sequence[ast.stmt], names: dict[str, Labels]) -> None:
        for x in nodes:
            if isinstance(x, ast.If):
                self._number(x.test, names)
                self.block(x.body, dict(names))
                self.block(x.orelse, dict(names))
            elif isinstance(x, ast.Assign):
                value = self._value(x.value, names)
                for to in x.targets:
                    if isinstance(to, ast.Name) and to.id not in self._outer:
                        names[to.id] = value
                    else:
                        self._store(to, value, names)
            elif isinstance(x, ast.AugAssign):
                value = self._value(x.value, names)
                if isinstance(x.target, ast.Name) and self._value(x.target, names) == ():
                    if value:
                        raise _Refused
                elif isinstance(x.op, ast.MatMult):
                    raise _Refused
                else:
                    self._store(x.target, value, names)
            elif isinstance(x, ast.Expr) and not isinstance(x.value, ast.Constant):
                raise _Refused

    def _store(self, to: ast.expr, value: Labels, names: dict[str, Labels]) -> None:
        if not isinstance(to, (ast.Name, ast.Subscript)):
            raise _Refused
        place = self._value(to, names)
        if _together(place, value) != place:
            raise _Refused

    def _number(self, x: ast.expr, names: dict[str, Labels]) -> Labels:
        if self._value(x, names):
            raise _Refused
        return ()

    def _value(self, x: ast.expr, names: dict[str, Labels]) -> Labels:
        of = self._value
        if isinstance(x, ast.Constant) and isinstance(x.value, (int, float, complex)):
            return ()
        if isinstance(x, ast.Name):
            found = names.get(x.id, self._outer.get(x.id))
            if found is None and not isinstance(self._known(x), Num):
                raise _Refused
            return found or ()
        if isinstance(x, ast.BinOp) and not isinstance(x.op, ast.MatMult):
            return _together(of(x.left, names), of(x.right, names))
        if isinstance(x, ast.UnaryOp):
            check = self._number if isinstance(x.op, ast.Not) else of
            return check(x.operand, names)
        if isinstance(x, ast.Compare) and all(
            isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in x.ops
        ):
            each = of if len(x.ops) == 1 else self._number
            return _together(*(each(y, names) for y in (x.left, *x.comparators)))
        if isinstance(x, ast.BoolOp):
            return _together(*(self._number(y, names) for y in x.values))
        if isinstance(x, ast.Subscript):
            return self._part(x, names)
        if isinstance(x, ast.Call):
            return self._call(x, names)
        raise _Refused

    def _part(self, x: ast.Subscript, names: dict[str, Labels]) -> Labels:
        labels, items = self._value(x.value, names), _items(x)
        if len(items) > len(labels):
            raise _Refused
        left = []
        for k, item in zip(labels, items, strict=False):
            if _is_all(item):
                left.append(k)
                continue
            if k is not None:
                raise _Refused
            if isinstance(item, ast.Slice):
                for bound in (item.lower, item.upper, item.step):
                    if bound is not None:
                        self._number(bound, names)
                left.append(k)
            else:
                self._number(item, names)
        return (*left, *labels[len(items) :])

    def _call(self, x: ast.Call, names: dict[str, Labels]) -> Labels:
        if x.keywords:
            raise _Refused
        if isinstance(x.func, ast.Attribute) and x.func.attr == "copy" and not x.args:
            if isinstance(x.func.value, (ast.Name, ast.Subscript)):
                return self._value(x.func.value, names)
            raise _Refused
        found = self._known(x.func)
        f = found.value if isinstance(found, Known) else None
        given = [self._value(y, names) for y in x.args]
        if f in _NUMBERS and not any(given):
            return ()
        alike = f in _ALIKE and len(given) == 1
        ufunc = isinstance(f, np.ufunc) and not f.signature and f.nin == len(given) and f.nout == 1
        if alike or ufunc or f is abs or (f is np.where and len(given) == 3):
            return _together(*given)
        raise _Refused

    def _known(self, x: ast.expr) -> Any:
        if not isinstance(x, (ast.Name, ast.Attribute)):
            raise _Refused
        try:
            return self._r.grammar.operand(self._r, x)
        except Unreadable:
            raise _Refused from None


def _together(*shapes: Labels) -> Labels:
    """The labels of what goes element by element."""
    found: Labels = max(shapes, key=lambda x: len(x), default=())
    for shape in shapes:
        if shape and found[len(found) - len(shape) :] != shape:
            raise _Refused
    return found


# The tiles


def tiled(r: Reader, plan: Plan, read: Any) -> tuple[list, str] | None:
    """The lines that go through all tiles, and the C name of whether they have; None where it
    cannot be. read: what reads a loop."""
    saved, before = r.save(), r.snapshot()
    outside = len(r.tables), len(r.declarations)  # what stands before the function's own lines
    kept = r.guesses, r.quiet, set(r.missing), dict(r.dependent), dict(r.accesses.arrays)
    lines: list = []
    tests: dict[str, None] = {}
    try:
        r.quiet = True
        with r.elsewhere(lines), r.scope():
            _agree(r, plan, tests)
            _tiles(r, plan, read, 0, [], tests)
    except Unreadable:
        lines = []
    fit = (len(r.tables), len(r.declarations)) == outside
    names = r.names
    r.restore(saved)
    r.set_names(before)
    r.guesses, r.quiet, r.missing, r.dependent, r.accesses.arrays = kept
    if not lines or not fit:
        return None
    if any(hint in x for x in _flat(lines) for hint in _HINTS):
        return None
    r.goes_on_from(names)
    done = r.fresh("done")
    test = " || ".join(tests) or "0"
    return [f"const int {done} = !({test});", f"if ({done}) {{", lines, "}"], done


def _agree(r: Reader, plan: Plan, tests: dict[str, None]) -> None:
    """Arrays have the extents that are taken to be the same; looked at where it is not known."""
    first: dict[int, Arr] = {}
    pairs = [(d, plan.counted[0]) for d in plan.counted]
    for name, a in plan.arrays.items():
        pairs += zip(a.dims, first.setdefault(a.ndim, a).dims, strict=True)
        for d, k in zip(a.dims, plan.labels[name], strict=True):
            pairs += [(d, plan.dims[k])] if k is not None else []
    for d, e in pairs:
        if d.lin is None or e.lin is None:
            raise Unreadable("an extent of which nothing is known")
        if not r.facts.same(d.lin, e.lin):
            if d.value is not None and e.value is not None:
                raise Unreadable("extents that differ")
            tests[f"{d.text} != {e.text}"] = None
            r.facts.add(d.lin - e.lin)
            r.facts.add(e.lin - d.lin)


def _tiles(
    r: Reader, plan: Plan, read: Any, axis: int, at: list[tuple[Num, int]], tests: dict[str, None]
) -> None:
    """Loops over the tiles along an axis and those behind it. at: where along those before.
    Threads share the outermost one, but for what is no whole tile."""
    if axis == len(plan.dims):
        _tile(r, plan, read, at)
        return
    n = plan.dims[axis]
    last = axis == len(plan.dims) - 1
    assert n.lin is not None
    for size in (_TILE, 1) if last else (1,):
        k = r.fresh("k")
        body: list = []
        since, born, spent = len(r.accesses.noted), len(r.born), r.seconds
        with r.elsewhere(body), r.scope():
            lin = r.facts.name(k, 0, FAR)
            r.entry.known[k] = 0
            r.accesses.counters.append(k)
            start: Any = lin * size
            r.facts.add(n.lin - start - size)
            first = r.integer(f"({k} * {size})" if size > 1 else k, 0, FAR, start)
            _tiles(r, plan, read, axis + 1, [*at, (first, size)], tests)
            found = r.accesses.leave(since, k, set(r.born[born:]))
        if found is None:
            raise Unreadable("elements that depend on each other")
        tests |= dict.fromkeys(rests_on(r, found))
        rest = last and size == 1
        begin = f"{n.text} / {_TILE} * {_TILE}" if rest else "0"
        end = f"{n.text} / {size}" if size > 1 else n.text
        if not axis:
            settle(body)
            body = [*_flat(body)]
        if axis or rest:
            r.lines += [f"for (i64 {k} = {begin}; {k} < {end}; {k}++) {{", body, "}"]
        else:
            each = (r.seconds - spent) / max(r.executions, 1)
            r.lines.append(_shared(r, plan, found, k, size, f"({end})", body, each))


def _shared(
    r: Reader, plan: Plan, found: Independence, k: str, size: int, n: str, body: list[str],
    each: float,
) -> Threaded:  # fmt: skip
    """The outermost loop over tiles, for threads. k: its counter; size: of its tiles; n: how many
    there are; each: seconds that Python would take for one of each loop inside."""
    first, *inner = (r.entry.at(d.lin) or SOME for d in plan.dims)
    times = math.prod(inner) / (_TILE if inner else 1)
    end = plan.node.end_lineno or plan.node.lineno
    one = Iteration(k, body, each * times, first / size, end, False)
    lines = [f"for (i64 {k} = from; {k} < to; {k}++) {{", *body, "}"]
    written = [f"{{{a.span}}}" for a in found.written]
    number = k.rpartition("_")[2]
    return Threaded(plan.node.lineno, number, lines, n, [], [], written, [], one, True)


def _tile(r: Reader, plan: Plan, read: Any, at: list[tuple[Num, int]]) -> None:
    for name in plan.made:
        r.env.pop(name, None)
    outer = dict(r.env)
    for key in [key for key in r.memory if key[:2] == ("loop", id(plan.node))]:
        del r.memory[key]  # of tiles of another size
    for name, a in plan.arrays.items():
        items = []
        for k in plan.labels[name]:
            if k is None:
                items.append(Slice.of(None, None, None))
                continue
            first, size = at[k]
            assert first.lin is not None
            stop = r.integer(f"({first.text} + {size})", 0, FAR, first.lin + size)
            items.append(Slice.of(first, stop, None))
        r.env[name] = index.view(r, a, items)
    read(r, plan.node)
    r.frame.env = outer


def _flat(lines: list) -> Iterator[str]:
    """The lines, without the ways out, which nothing goes to."""
    for x in lines:
        if isinstance(x, list):
            yield from _flat(x)
        elif isinstance(x, Leave):
            continue
        elif isinstance(x, str):
            yield x
        else:
            yield from _flat(x.in_place(x.lines))
