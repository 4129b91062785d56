"""Statements that are taken apart first: into statements that do the same."""

from __future__ import annotations

import ast
import bisect
import copy
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import heaps, iterators, managers, named_items
from .assignments import depend_on_each_other
from .calls import TAKES_ALL
from .dicts import CHANGING
from .generators import Renamed, expanded, is_generator
from .managers import named
from .objects import class_of, initializer
from .read import Reader, dotted, is_effectful
from .source import written
from .values import Bound, Known, Lst, MadeRng, Maybe, Rng, Table, Unreadable
from .walk import walk


def normalized(r: Reader, node: ast.stmt) -> list[ast.stmt] | None:
    """Statements that do the same, in which a call that changes something stands alone, behind
    what is evaluated before it, and loops have no `else`."""
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        return _without_else(r, node)
    if isinstance(node, ast.While) and any(_is_named(x) for x in walk(node.test)):
        return _with_test_inside(r, node)
    made = of_generator(r, node) or _of_record(r, node)
    if isinstance(node, ast.Match):
        return _as_branches(r, node)
    if made is None and isinstance(node, ast.Assign):
        if depend_on_each_other(node.targets):
            made = _one_by_one(r, node)
        elif _chooses_unset(r, node):
            made = _at_first(r, node, 5, lambda: _by_branches(node) or [])
    if made is None and isinstance(node, ast.With):
        made = managers.apart(r, node)
    if made is None and isinstance(node, ast.Return) and managers.goes_out(r.frame, node):
        made = _with_value_first(r, node)
    if made is not None:
        return made
    found = _find(r, node, _alone(node)) if _may_change(r, node) else None
    if found is None:
        return None
    cache = r.entry.normalized
    key = (id(node), id(found.call), len(found.before))
    if key not in cache:
        prefix = f"__call{found.call.lineno}_{found.call.col_offset}_{len(cache)}"
        made = _taken_apart(r, node, found, prefix)
        for x in made or ():
            ast.copy_location(x, node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    return cache[key][0]


def _at_first(
    r: Reader, node: ast.stmt, kind: int, make: Callable[[], list[ast.stmt]]
) -> list[ast.stmt]:
    """What a statement is taken apart into, made once."""
    cache, key = r.entry.normalized, (id(node), kind)
    if key not in cache:
        made = [ast.fix_missing_locations(ast.copy_location(x, node)) for x in make()]
        cache[key] = (made, node)
    return cache[key][0]


def _one_by_one(r: Reader, node: ast.Assign) -> list[ast.stmt]:
    """`i, x[i] = a, b` as `t = a`, `u = b`, `i = t`, `x[i] = u`."""

    def make() -> list[ast.stmt]:
        (first, *others), value = node.targets, node.value
        prefix = r.hidden("target", node)
        if others:
            named = ast.Name(prefix, ast.Load())
            return [_assign(prefix, value), *(ast.Assign([t], named) for t in node.targets)]
        assert isinstance(first, (ast.Tuple, ast.List))
        names = [f"{prefix}_{k}" for k in range(len(first.elts))]
        then: list[ast.stmt] = []
        before: list[ast.expr] = []
        for name, t in zip(names, first.elts, strict=True):
            held: ast.expr = ast.Name(name, ast.Store())
            starred = isinstance(t, ast.Starred)
            before.append(ast.Starred(held, ast.Store()) if starred else held)
            to = t.value if isinstance(t, ast.Starred) else t
            then.append(ast.Assign([to], ast.Name(name, ast.Load())))
        return [ast.Assign([ast.Tuple(before, ast.Store())], value), *then]

    return _at_first(r, node, 6, make)


def _with_value_first(r: Reader, node: ast.Return) -> list[ast.stmt] | None:
    """`return x` as `value = x`, `return value`: what x gives is not changed by what runs before it
    is returned."""
    name = f"__value{node.lineno}_{node.col_offset}"
    if node.value is None or (isinstance(node.value, ast.Name) and node.value.id == name):
        return None
    cache, key = r.entry.normalized, (id(node), 2)
    if key not in cache:
        returned = ast.Return(ast.Name(name, ast.Load()))
        made: list[ast.stmt] = [_assign(name, node.value), returned]
        for x in made:
            ast.copy_location(x, node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    return cache[key][0]


def _of_record(r: Reader, node: ast.stmt) -> list[ast.stmt] | None:
    """A loop over the items of a dict from outside, which may get others meanwhile."""
    call = named_items.items_of(node)
    if call is None or not named_items.has_named_items(named(r, call.func.value)):  # type: ignore[attr-defined]
        return None
    cache, key = r.entry.normalized, (id(node), 4)
    if key not in cache:
        made = named_items.one_by_one(node, call, r.hidden("key", node))  # type: ignore[arg-type]
        cache[key] = ([ast.fix_missing_locations(ast.copy_location(x, node)) for x in made], node)
    return cache[key][0]


def _as_branches(r: Reader, node: ast.Match) -> list[ast.stmt]:
    """`match x: case 1 | 2: b` as `y = x`, `if y == 1 or y == 2: b`; of values, without names."""
    cache, key = r.entry.normalized, (id(node), 3)
    if key not in cache:
        name = r.hidden("match", node)
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            tests = [x for x in (_test_of(case.pattern, name), case.guard) if x is not None]
            if not tests:
                rest = case.body
                continue
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            rest = [ast.copy_location(ast.If(test, case.body, rest), case.pattern)]
        made = [ast.copy_location(_assign(name, node.subject), node), *rest]
        cache[key] = ([ast.fix_missing_locations(x) for x in made], node)
    return cache[key][0]


def _test_of(pattern: ast.pattern, name: str) -> ast.expr | None:
    """Whether a value, which has a name, is as a pattern says; None if any is."""
    value = ast.Name(name, ast.Load())
    match pattern:
        case ast.MatchValue():
            return ast.Compare(value, [ast.Eq()], [pattern.value])
        case ast.MatchSingleton():
            return ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)])
        case ast.MatchOr():
            tests = [_test_of(x, name) for x in pattern.patterns]
            return None if None in tests else ast.BoolOp(ast.Or(), [x for x in tests if x])
        case ast.MatchAs(pattern=None, name=None):
            return None
    raise Unreadable("match by more than values")


def of_generator(r: Reader, node: ast.stmt) -> list[ast.stmt] | None:
    """A loop over what a generator gives, as the generator's statements; None of another one."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return None
    f, args = managers.function_of(r, node.iter)
    if f is enumerate:
        return _enumerated(r, node, node.iter)
    found = iterators.generator_of(f, node.iter)
    if found is None and not is_generator(f):
        return None
    if found is not None:
        f, args = found
    cache, key = r.entry.normalized, (id(node), f)
    if key not in cache:
        made = expanded(r, node, f, args)
        for x in made:
            ast.copy_location(x, node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    r.entry.watch(("function", f, "__defaults__"), f.__defaults__)
    return cache[key][0]


def _enumerated(r: Reader, node: ast.For, call: ast.Call) -> list[ast.stmt] | None:
    """`for k, x in enumerate(g(a)): b` as `n = 0`, `for y in g(a): k, x = n, y; n += 1; b`."""
    words = {k.arg: k.value for k in call.keywords}
    start = call.args[1] if len(call.args) == 2 else words.get("start", ast.Constant(0))
    is_plain = isinstance(start, ast.Constant) and type(start.value) is int
    if not call.args or not isinstance(call.args[0], ast.Call) or not is_plain:
        return None
    if len(call.args) + len(words) > 2 or words.keys() - {"start"}:
        return None
    inner = call.args[0]
    f, _ = managers.function_of(r, inner)
    if iterators.generator_of(f, inner) is None and not is_generator(f):
        return None

    def make() -> list[ast.stmt]:
        prefix = r.hidden("numbered", node)
        place, item = (ast.Name(f"{prefix}_{k}", ast.Load()) for k in ("place", "item"))
        both = ast.Tuple([place, item], ast.Load())
        later = ast.AugAssign(ast.Name(place.id, ast.Store()), ast.Add(), ast.Constant(1))
        body = [ast.Assign([node.target], both), later, *node.body]
        loop = ast.For(ast.Name(item.id, ast.Store()), inner, body, [])
        return [_assign(place.id, start), loop]

    return _at_first(r, node, 7, make)


def _taken_apart(r: Reader, node: ast.stmt, found: _Found, prefix: str) -> list[ast.stmt] | None:
    if _is_named(found.call) and _is_read_before(node, found.call):
        return None
    if not found.certain:
        if isinstance(node, ast.If) and isinstance(node.test, ast.BoolOp):
            return _split_test(node, prefix)
        return _by_branches(node)
    if (
        isinstance(node, ast.AugAssign)
        and not isinstance(node.target, ast.Name)
        and (found.call is node.target or found.call in walk(node.value))
    ):
        return _change_apart(r, node, prefix)
    made, memo = _named(r, (*found.before, found.call), prefix)
    return [*made, _replaced(node, memo)]


def _change_apart(r: Reader, node: ast.AugAssign, prefix: str) -> list[ast.stmt]:
    """`t op= x` as `old = t`, `old op= x`, `t = old`."""
    old = f"{prefix}_old"
    parts = [part for x in _operands(node.target) for part in _parts(r, x)]
    made, memo = _named(r, parts, prefix)
    load, store = copy.deepcopy(node.target, {**memo}), copy.deepcopy(node.target, {**memo})
    load.ctx = ast.Load()
    change = ast.AugAssign(ast.Name(old, ast.Store()), node.op, node.value)
    return [*made, _assign(old, load), change, ast.Assign([store], ast.Name(old, ast.Load()))]


def _named(
    r: Reader, parts: Sequence[ast.expr], prefix: str
) -> tuple[list[ast.stmt], dict[int, Any]]:
    """Assignments of expressions to names, and by the expressions' ids what stands for them."""
    made: list[ast.stmt] = []
    memo: dict[int, Any] = {}
    for k, part in enumerate(parts):
        value: ast.expr = part
        through = part if isinstance(part, _COMPREHENSIONS) else _goes_through(r, part)
        if through is not None:
            made += _as_loop(through, f"{prefix}_{k}")
            memo[id(part)] = ast.Name(f"{prefix}_{k}", ast.Load())
            continue
        if isinstance(part, ast.NamedExpr):
            made.append(_assign(part.target.id, part.value))
            value = ast.Name(part.target.id, ast.Load())
        made.append(_assign(f"{prefix}_{k}", value))
        memo[id(part)] = ast.Name(f"{prefix}_{k}", ast.Load())
    return made, memo


def _as_loop(node: Any, name: str) -> list[ast.stmt]:
    """A comprehension as statements that give it a name; its own names get others. What a
    generator is given to takes all of it."""
    own = {x.id for g in node.generators for x in walk(g.target) if isinstance(x, ast.Name)}
    (first, *others) = copy.deepcopy(node.generators)
    renamed = Renamed(own, f"{name}_")
    values = first.iter  # in the names around it
    made = ast.Name(name, ast.Load())
    start: ast.expr = ast.List([], ast.Load())
    body: list[ast.stmt]
    if isinstance(node, ast.DictComp):  # the key is evaluated first
        start, key = ast.Dict([], []), f"{name}_key"
        place = ast.Subscript(made, ast.Name(key, ast.Load()), ast.Store())
        value = renamed.visit(copy.deepcopy(node.value))
        body = [_assign(key, renamed.visit(copy.deepcopy(node.key))), ast.Assign([place], value)]
    else:
        add = "append"
        if isinstance(node, ast.SetComp):  # `{*()}`, whatever `set` means there
            add, nothing = "add", ast.Starred(ast.Tuple([], ast.Load()), ast.Load())
            start = ast.Set([nothing])
        item = renamed.visit(copy.deepcopy(node.elt))
        body = [ast.Expr(ast.Call(ast.Attribute(made, add, ast.Load()), [item], []))]
    for g in reversed([first, *others]):
        for test in reversed(g.ifs):
            body = [ast.If(renamed.visit(test), body, [])]
        source = values if g is first else renamed.visit(g.iter)
        body = [ast.For(renamed.visit(g.target), source, body, [])]
    return [_assign(name, start), *body]


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


class _Breaks(ast.NodeTransformer):
    """A loop's `break` statements, with an assignment before each."""

    def __init__(self, name: str):
        self.name = name

    def visit_Break(self, node: ast.Break) -> Any:
        broke = ast.Assign([ast.Name(self.name, ast.Store())], ast.Constant(True))
        return [ast.copy_location(broke, node), node]

    def visit_For(self, node: ast.For) -> Any:
        return node

    visit_While = visit_For  # type: ignore[assignment]


def _without_else(r: Reader, node: ast.For | ast.While) -> list[ast.stmt]:
    """`for ...: ... else: b` as a loop that notes whether it broke, and `if not broke: b`."""
    key = (id(node), 0)
    cache = r.entry.normalized
    if key not in cache:
        name = r.hidden("broke", node)
        loop = copy.copy(node)
        loop.body = [_flat_breaks(name, s) for s in copy.deepcopy(node.body)]
        loop.body = [x for part in loop.body for x in (part if isinstance(part, list) else [part])]
        loop.orelse = []
        before = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(False))
        test = ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))
        made: list[ast.stmt] = [before, loop, ast.If(test, node.orelse, [])]
        for x in made:
            ast.copy_location(x, node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    return cache[key][0]


def _is_named(node: ast.AST) -> bool:
    return isinstance(node, ast.NamedExpr)


def _is_read_before(node: ast.stmt, named: Any) -> bool:
    """Whether the name of `name := ...` is read earlier in the statement."""
    return any(
        isinstance(x, ast.Name)
        and x.id == named.target.id
        and (x.lineno, x.col_offset) < (named.lineno, named.col_offset)
        for part in _operands(node)
        for x in walk(part)
    )


def _with_test_inside(r: Reader, node: ast.While) -> list[ast.stmt]:
    """`while t: b` as `while True: if t: b else: break`."""
    cache = r.entry.normalized
    key = (id(node), 1)
    if key not in cache:
        body: list[ast.stmt] = [ast.If(node.test, node.body, [ast.Break()])]
        made: list[ast.stmt] = [ast.While(ast.Constant(True), body, [])]
        for x in made:
            ast.copy_location(x, node)
            ast.copy_location(body[0], node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    return cache[key][0]


def _flat_breaks(name: str, node: ast.stmt) -> Any:
    return _Breaks(name).visit(node)


@dataclass(frozen=True)
class _Found:
    """A call that changes something, or `name := ...`. certain: whether it is made whenever the
    statement is carried out. before: what is evaluated before it."""

    call: ast.expr
    certain: bool
    before: tuple[ast.expr, ...] = ()


def _alone(node: ast.stmt) -> ast.expr | None:
    """The expression of a statement that does nothing else with it than to bind or return it."""
    if isinstance(node, (ast.Expr, ast.Return)):
        return node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.value if isinstance(node.targets[0], ast.Name) else None
    return None


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHANGING = (ast.Call, ast.NamedExpr, *_COMPREHENSIONS)


@functools.lru_cache(1 << 14)
def _changing(node: ast.AST) -> frozenset[str] | None:
    """The names whose items an expression asks for, or the expressions of a statement itself; None
    where more in them may change something."""
    found: set[str] = set()
    parts: list[ast.expr] = [node.target] if isinstance(node, ast.AugAssign) else []
    parts += [node] if isinstance(node, ast.expr) else _operands(node)
    for x in (x for part in parts for x in walk(part)):
        if isinstance(x, ast.Subscript):
            if not isinstance(x.value, (ast.Name, ast.Subscript)):
                return None
            found |= {x.value.id} if isinstance(x.value, ast.Name) else set()
        elif isinstance(x, _CHANGING):
            return None
    return frozenset(found)


def _may_change(r: Reader, node: ast.AST) -> bool:
    """Whether there may be what `_find` looks for."""
    names = _changing(node)
    return names is None or any(isinstance(r.env.get(name), Table) for name in names)


def _find(r: Reader, node: ast.AST, alone: ast.expr | None) -> _Found | None:
    """The first call in a statement or an expression that changes something, or `name := ...`."""
    before: list[ast.expr] = []
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        before += _parts(r, ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
    for k, x in enumerate(_operands(node)):
        found = _find(r, x, alone) if _may_change(r, x) else None
        if isinstance(x, ast.GeneratorExp) and isinstance(node, ast.Call):
            f = named(r, node.func)
            is_taken = isinstance(f, Known) and any(f.value is g for g in TAKES_ALL)
            if is_taken and ("apart", x) in r.memory:
                found = _Found(x, True)
        if isinstance(x, ast.Call) and _goes_through(r, x) is not None:
            found = _Found(x, True)
        if found is not None:
            sometimes = (
                k > 0
                if isinstance(node, (ast.BoolOp, ast.IfExp))
                else (k > 1 and isinstance(node, ast.Compare))
            )
            return _Found(found.call, found.certain and not sometimes, (*before, *found.before))
        if not (isinstance(node, ast.Call) and x is node.func and dotted(x)):
            before += _parts(r, x)
    if isinstance(node, ast.Call) and node is not alone and _changes(r, node):
        return _Found(node, True)
    if isinstance(node, ast.NamedExpr):
        return _Found(node, True)
    if isinstance(node, _COMPREHENSIONS[:3]) and ("apart", node) in r.memory:
        return _Found(node, True)
    part = node.target if isinstance(node, ast.AugAssign) else node
    if isinstance(part, ast.Subscript) and part is not alone and _may_add(r, node, part):
        return _Found(part, True)
    return None


def _goes_through(r: Reader, node: ast.expr) -> ast.expr | None:
    """The comprehension that goes through an iterator which a call makes for another one, if it is
    to be a loop."""
    made, _ = r.entry.normalized.get((id(node), "listed"), (None, None))
    return made if made is not None and ("apart", made) in r.memory else None


def _may_add(r: Reader, node: ast.AST, part: ast.Subscript) -> bool:
    """Whether an item that is asked for is added where there is none."""
    if node is part and not isinstance(part.ctx, ast.Load):
        return False
    x = r.env.get(part.value.id) if isinstance(part.value, ast.Name) else named(r, part.value)
    return isinstance(x, Table) and x.factory is not None


def _parts(r: Reader, node: ast.expr) -> list[ast.expr]:
    """The expressions that a tuple, a slice or another is made of, but for those that have the
    same value before and after any call: of names, those that may have none."""
    if isinstance(node, (ast.Tuple, ast.Slice, ast.Starred)):
        return [part for x in _operands(node) for part in _parts(r, x)]
    if isinstance(node, ast.Name):
        return [node] if isinstance(r.env.get(node.id), Maybe) else []
    return [] if isinstance(node, ast.Constant) else [node]


def _operands(node: ast.AST) -> list[ast.expr]:
    """The expressions of a statement or an expression itself, in the order of evaluation."""
    match node:
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as target], value=value):
            return [value, *_operands(target)]
        case ast.AugAssign(target=target, value=value):
            return [*_operands(target), value]
        case ast.Expr(value=value) | ast.Return(value=value) | ast.Assign(value=value):
            found = [value]
        case ast.AnnAssign(value=value) | ast.Attribute(value=value) | ast.Starred(value=value):
            found = [value]
        case ast.NamedExpr(value=value):
            found = [value]
        case ast.If(test=test) | ast.Assert(test=test):
            found = [test]
        case ast.For(iter=values):
            found = [values]
        case ast.Call(func=func, args=args, keywords=keywords):
            found = [func, *args, *(k.value for k in keywords)]
        case ast.BinOp(left=left, right=right):
            found = [left, right]
        case ast.UnaryOp(operand=operand):
            found = [operand]
        case ast.Compare(left=left, comparators=others):
            found = [left, *others]
        case ast.BoolOp(values=values):
            found = list(values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            found = [test, body, orelse]
        case ast.Subscript(value=value, slice=part):
            found = [value, part]
        case ast.Slice(lower=lower, upper=upper, step=step):
            found = [lower, upper, step]
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            found = list(items)
        case ast.Dict(keys=keys, values=values):
            found = [x for pair in zip(keys, values, strict=True) for x in pair]
        case _:
            found = []
    return [x for x in found if x is not None]


def _changes(r: Reader, node: ast.Call) -> bool:
    """Whether a call changes what is not its own."""
    f = named(r, node.func)
    if isinstance(f, Bound):
        if isinstance(f.owner, (Rng, MadeRng, Lst)):
            return True
        if isinstance(f.owner, Table):
            return f.name in CHANGING
        kind = class_of(f.owner)
        found = written(f.more.get("f") or (getattr(kind, f.name, None) if kind else None))
    elif (kind := class_of(f)) is not None:
        found = written(inspect.getattr_static(kind, "__call__", None))
    else:
        found = f.value if isinstance(f, Known) else None
        if isinstance(found, type):
            found = initializer(found)
    if found in _CHANGES:
        return True
    return isinstance(found, types.FunctionType) and is_effectful(r, found)


_CHANGES = (*heaps.TABLE, bisect.insort_left, bisect.insort_right)


def _split_test(node: ast.stmt, name: str) -> list[ast.stmt]:
    """`if a or b:` as `c = a`, `if not c: c = b`, `if c:`."""
    assert isinstance(node, ast.If)
    assert isinstance(node.test, ast.BoolOp)
    load = ast.Name(name, ast.Load())
    is_and = isinstance(node.test.op, ast.And)

    def assign(x: ast.expr) -> ast.stmt:
        return ast.Assign(
            [ast.Name(name, ast.Store())], ast.Call(ast.Name("bool", ast.Load()), [x], [])
        )

    made: list[ast.stmt] = [assign(node.test.values[0])]
    for x in node.test.values[1:]:
        test: ast.expr = load if is_and else ast.UnaryOp(ast.Not(), load)
        made.append(ast.If(test, [assign(x)], []))
    made.append(ast.If(load, node.body, node.orelse))
    return made


def _by_branches(node: ast.stmt) -> list[ast.stmt] | None:
    """`x = a if t else b` as `if t: x = a` and `else: x = b`; None of another statement."""
    if not isinstance(node, (ast.Assign, ast.Return, ast.Expr)):
        return None
    if not isinstance(node.value, ast.IfExp):
        return None
    branches: list[ast.stmt] = []
    for value in (node.value.body, node.value.orelse):
        branch = copy.copy(node)
        branch.value = value
        branches.append(branch)
    return [ast.If(node.value.test, [branches[0]], [branches[1]])]


def _chooses_unset(r: Reader, node: ast.Assign) -> bool:
    """Whether a value is one or another, of which one asks for a name that may have none: the other
    way is carried out first (`v = x[i] if i == 0 else a * v + x[i]`)."""
    if not isinstance(node.value, ast.IfExp):
        return False
    ways = (*walk(node.value.body), *walk(node.value.orelse))
    names = {x.id for x in ways if isinstance(x, ast.Name) and x.id in r.frame.scope}
    return any(name not in r.env or isinstance(r.env[name], Maybe) for name in names)


def _replaced(node: ast.stmt, memo: dict[int, Any]) -> ast.stmt:
    """A copy of a statement with other expressions in the place of some. Blocks in it stay the
    same objects."""
    for field in ("body", "orelse"):
        for x in getattr(node, field, []):
            memo[id(x)] = x
    return copy.deepcopy(node, memo)
