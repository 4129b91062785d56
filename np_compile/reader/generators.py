"""Generators that a `for` loop goes through: their statements in the place of the loop.

`for t in g(a): b` becomes what g does, with `t = e` and b in the place of each `yield e`. The names
of g get others than those around it. Where b may go on with the next value or end the loop, it is a
loop of its own that runs once, and a name says that it ended.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from . import iterators, source
from .read import Reader
from .values import Unreadable
from .walk import children, walk

GENERATOR = 0x20  # of a code object's flags
_SIMPLE = (bool, int, float, complex, str, type(None))


def is_generator(f: Any) -> bool:
    return isinstance(f, FunctionType) and bool(f.__code__.co_flags & GENERATOR)


def expanded(r: Reader, node: ast.For, f: FunctionType, args: Sequence[ast.expr]) -> list[ast.stmt]:
    """A loop over what a generator gives, as statements. args: of its call."""
    inside: frozenset[CodeType] = getattr(node, "generators", frozenset())
    if f.__code__ in inside:
        raise Unreadable(f"{f.__name__} goes through itself")
    prefix = f"{r.hidden('each', node)}_"
    made, body = opened(r, node.iter, f, args, prefix)
    inside_it = [x for part in body for x in walk(part)]
    for part in inside_it:
        if isinstance(part, ast.For):
            part.generators = inside | {f.__code__}  # type: ignore[attr-defined]
    returns = any(isinstance(x, ast.Return) for x in inside_it)
    ended = f"{prefix}ended" if returns or _ends(node.body) else ""
    if ended:
        made.append(_assign(ended, ast.Constant(False)))
    made += _in_place(body, node, ended, in_loop=False)
    return made


def opened(
    r: Reader, call: Any, f: FunctionType, args: Sequence[ast.expr], prefix: str
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Of a call of a generator, assignments of the parameters, and the generator's statements with
    names of their own."""
    tree = source.tree(f, generator=True)
    names = r.frame.function.__globals__
    is_known = f.__globals__ is names or (
        f.__module__ == iterators.__name__
        and not names.keys() & {"list", "range", "len", "enumerate"}
    )
    home = r.local[f][1] if f in r.local else None
    if not is_known or (f.__code__.co_freevars and home is not r.frame):
        raise Unreadable(f"{f.__name__} sees other names")
    own = {*source.own_names(f, tree)}
    mentioned = {x.id for x in walk(tree) if isinstance(x, ast.Name)} - own
    if mentioned & {*r.frame.scope} - {*f.__code__.co_freevars}:
        raise Unreadable(f"{f.__name__} has names of others that are the function's own")
    params = {x.arg for x in (*tree.args.posonlyargs, *tree.args.args)}
    if _bound_in(tree.body, params, own) is None:
        raise Unreadable(f"{f.__name__}, a name of which may have no value")
    body = [Renamed(own, prefix).visit(copy.deepcopy(x)) for x in tree.body]
    inside_it = [x for part in body for x in walk(part)]
    if any(isinstance(x, _REFUSED) or (isinstance(x, ast.Return) and x.value) for x in inside_it):
        raise Unreadable(f"{f.__name__}, which gives a value back or makes functions")
    return _bound(f, tree, call, args, prefix), body


_REFUSED = (ast.FunctionDef, ast.Lambda, ast.NamedExpr,
            ast.Nonlocal, ast.Global)  # fmt: skip


def _bound_in(body: Sequence[ast.stmt], bound: set[str], own: set[str]) -> set[str] | None:
    """Of a generator's own names, those that have a value behind statements; None if one may be
    asked for that has none: the text of Python's error has its name."""
    bound = set(bound)
    for x in body:
        if isinstance(x, (ast.Try, ast.With)):
            after = _bound_in_try(x, bound, own)
            if after is None:
                return None
            bound = after
            continue
        blocks = [x.body, x.orelse] if isinstance(x, (ast.For, ast.While, ast.If)) else []
        parts = [x] if not blocks else [x.iter] if isinstance(x, ast.For) else [x.test]  # type: ignore[attr-defined]
        names = [y for part in parts for y in walk(part) if isinstance(y, ast.Name)]
        asked = {y.id for y in names if isinstance(y.ctx, ast.Load)}
        if isinstance(x, ast.AugAssign):
            asked |= {y.id for y in [x.target] if isinstance(y, ast.Name)}
        if asked & own - bound:
            return None
        bound |= {y.id for y in names if isinstance(y.ctx, ast.Store)}
        first = set(bound)
        if isinstance(x, ast.For):
            first |= {y.id for y in walk(x.target) if isinstance(y, ast.Name)}
        ends = [_bound_in(block, first, own) for block in blocks]
        if None in ends:
            return None
        if isinstance(x, ast.If):
            bound = set.intersection(*(end for end in ends if end is not None))
        if isinstance(x, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return own
    return bound


def _bound_in_try(x: ast.Try | ast.With, bound: set[str], own: set[str]) -> set[str] | None:
    """The same of `try` and `with`."""
    if isinstance(x, ast.With):
        items = [y for item in x.items for y in walk(item) if isinstance(y, ast.Name)]
        if {y.id for y in items if isinstance(y.ctx, ast.Load)} & own - bound:
            return None
        return _bound_in(x.body, bound | {y.id for y in items if isinstance(y.ctx, ast.Store)}, own)
    ends = [_bound_in([*x.body, *x.orelse], bound, own)]
    for handler in x.handlers:
        if (
            handler.type is not None
            and {y.id for y in walk(handler.type) if isinstance(y, ast.Name)} & own
        ):
            return None
        ends.append(_bound_in(handler.body, bound | {handler.name or ""}, own))
    last = _bound_in(x.finalbody, bound, own)
    if None in ends or last is None:
        return None
    return set.intersection(*(end for end in ends if end is not None)) | last


class Renamed(ast.NodeTransformer):
    """Statements with other names in the place of some."""

    def __init__(self, names: set[str], prefix: str):
        self._names, self._prefix = names, prefix

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._names:
            return node
        return ast.copy_location(ast.Name(self._prefix + node.id, node.ctx), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if node.name in self._names:
            node.name = self._prefix + node.name
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """`yield from x` as `for y in x: yield y`."""
        self.generic_visit(node)
        if not isinstance(node.value, ast.YieldFrom):
            return node
        name = f"{self._prefix}from{node.lineno}_{node.col_offset}"
        each = ast.Expr(ast.Yield(ast.Name(name, ast.Load())))
        loop = ast.For(ast.Name(name, ast.Store()), node.value.value, [each], [])
        return ast.fix_missing_locations(ast.copy_location(loop, node))


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _bound(
    f: FunctionType, tree: Any, call: Any, args: Sequence[ast.expr], prefix: str
) -> list[ast.stmt]:
    """The parameters' values."""
    a = tree.args
    words = [k for k in call.keywords if f.__module__ != iterators.__name__]
    if a.vararg or a.kwarg or a.kwonlyargs or any(isinstance(x, ast.Starred) for x in args):
        raise Unreadable(f"the arguments of {f.__name__}")
    names = [x.arg for x in (*a.posonlyargs, *a.args)]
    given = dict(zip(names, args, strict=False))
    given |= {k.arg: k.value for k in words}
    defaults = dict(zip(reversed(names), reversed(f.__defaults__ or ()), strict=False))
    if len(args) > len(names) or not given.keys() <= {*names}:
        raise Unreadable(f"the arguments of {f.__name__}")
    for name in names:
        if name not in given:
            if type(defaults.get(name, f)) not in _SIMPLE:
                raise Unreadable(f"the argument {name!r} of {f.__name__}")
            given[name] = ast.Constant(defaults[name])
    return [_assign(prefix + name, value) for name, value in given.items()]


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body has `break` or `continue` of its own."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        x = waiting.pop()
        if isinstance(x, (ast.Break, ast.Continue)):
            return True
        if not isinstance(x, (ast.For, ast.While)):
            waiting += children(x)
    return False


class _Noted(ast.NodeTransformer):
    """A body's `break` statements, with a note before each."""

    def __init__(self, name: str):
        self._name = name

    def visit_Break(self, node: ast.Break) -> Any:
        note = ast.copy_location(_assign(self._name, ast.Constant(True)), node)
        return [note, node]

    def visit_For(self, node: ast.For) -> Any:
        return node

    visit_While = visit_For  # type: ignore[assignment]


def gives(node: ast.AST) -> bool:
    return any(isinstance(x, (ast.Yield, ast.YieldFrom)) for x in walk(node))


def _in_place(body: Sequence[ast.stmt], node: ast.For, ended: str, in_loop: bool) -> list[ast.stmt]:
    """Statements of a generator, with the loop's body in the place of each `yield`."""
    made: list[ast.stmt] = []
    for k, x in enumerate(body):
        rest = body[k + 1 :]
        if isinstance(x, ast.Expr) and isinstance(x.value, ast.Yield):
            value = x.value.value or ast.Constant(None)
            target = copy.deepcopy(node.target)
            made.append(ast.copy_location(ast.Assign([target], value), node))
            inner = [copy.deepcopy(s) for s in node.body]
            if ended:
                noted = ast.Module([_Noted(ended).visit(s) for s in inner], [])
                flat = [y for s in noted.body for y in (s if isinstance(s, list) else [s])]
                once = ast.Call(ast.Name("range", ast.Load()), [ast.Constant(1)], [])
                inner = [ast.For(ast.Name(f"{ended}_once", ast.Store()), once, flat, [])]
            made += inner
        elif isinstance(x, ast.Return):
            made.append(_assign(ended, ast.Constant(True)))
            made += [ast.Break()] if in_loop else []
            break
        elif gives(x) or any(isinstance(y, ast.Return) for y in walk(x)):
            if not isinstance(x, (ast.For, ast.While, ast.If, ast.Try)):
                raise Unreadable("a yield in an expression or with")
            if isinstance(x, ast.Try) and (x.handlers or any(map(gives, x.finalbody))):
                raise Unreadable("a yield in try that catches, or in finally")
            if isinstance(x, (ast.For, ast.While)) and x.orelse:
                raise Unreadable("a yield in a loop that has else")
            looped = in_loop or isinstance(x, (ast.For, ast.While))
            x = copy.copy(x)
            x.body = _in_place(x.body, node, ended, looped)
            x.orelse = _in_place(x.orelse, node, ended, looped)
            made.append(x)
        else:
            made.append(x)
            continue
        if ended and in_loop:
            made.append(ast.If(ast.Name(ended, ast.Load()), [ast.Break()], []))
        elif ended and rest:
            rest = _in_place(rest, node, ended, in_loop)
            test = ast.UnaryOp(ast.Not(), ast.Name(ended, ast.Load()))
            made.append(ast.If(test, list(rest), []))
            break
    return made
