"""Statements: assignments, branches, loops, calls of the user's functions."""

from __future__ import annotations

import ast
import copy
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import index, outside
from .calls import least_int
from .expressions import (
    condition,
    expression,
    index_items,
    kept,
    look_up,
    operate,
)
from .functions import array_of
from .linear import WIDE
from .lists import assign_list_item, length, list_item, new_list, range_length
from .nest import materialized
from .read import Frame, LoopState, Reader, assigned, dotted
from .values import (
    Arr,
    Bound,
    Conflict,
    Known,
    Lazy,
    Lst,
    Maybe,
    Num,
    Obj,
    Opaque,
    Range,
    Rng,
    Tup,
    Unreadable,
    Value,
    python,
)
from .variables import Variable, as_type, is_same, join, same_type, stored

Block = Sequence[ast.stmt]
_BRANCH = 8  # operations on single elements that a test of a value is as good as
_STRIP = 1 << 16  # iterations of an innermost loop between looks at what Python wants
_SOME = 30  # iterations of a loop of which nothing is known


# Functions


def function(r: Reader, f: Any, node: Any, env: dict[str, Value], whole: bool) -> Value:
    """The result of a function that is read in place."""
    scope = dict.fromkeys((*f.__code__.co_varnames, *f.__code__.co_cellvars))
    outer = r.frame
    whole = whole and outer.whole
    frame = Frame(f, node, env, scope, whole=whole, scopes=len(r.owned))
    if not whole and not outer.whole:
        frame.made |= outer.made
    frame.label = r.fresh("ret")
    was = r.inlined
    r.inlined = (*was, (id(node), r.here))
    loops, r.loops = r.loops, []
    r.frames.append(frame)
    try:
        block(r, node.body, "body")
    finally:
        r.frames.pop()
        r.loops = loops
        r.inlined = was
    if not frame.dead:
        frame.returns.append((Known(None), r.lines, []))
        last_falls = True
    else:
        last_falls = False
    return _result(r, frame, last_falls)


def _result(r: Reader, frame: Frame, falls: bool) -> Value:
    """The value of a call, of the values at its `return` statements."""
    if not frame.returns:
        r.leave("the function does not return")
        raise Unreadable("the function does not return")
    if len(frame.returns) == 1 and (falls or frame.returns[0][1] is r.lines):
        return frame.returns[0][0]
    of = frame.returns[0][0]
    for x, _, _ in frame.returns[1:]:
        of = join(of, x, r)
    if isinstance(of, Conflict):
        raise Unreadable(f"what {frame.function.__name__} returns: {of.why}")
    if isinstance(of, Known):
        for _, place, free in frame.returns:
            place += [*free, f"goto {frame.label};"]
        r.line(f"{frame.label}: ;")
        return of
    v = Variable(r, "result", as_type(of))
    for x, place, free in frame.returns:
        place += [*v.store(r, x), *free, f"goto {frame.label};"]
    r.declarations += v.declare
    r.line(f"{frame.label}: ;")
    for name in v.buffers():
        r.owned[-1].append(name)
    return v.load(r)


# Blocks and statements


def block(r: Reader, nodes: Block, part: str) -> None:
    """Statements, one after the other. part: the field of the statement around it."""
    frame = r.frame
    frame.path.append(("block", nodes, 0, part))
    k = 0
    nodes = list(nodes)
    while k < len(nodes) and not frame.dead:
        more = normalized(r, nodes[k])
        if more is not None:
            nodes[k : k + 1] = more
            continue
        frame.path[-1] = ("block", nodes, k, part)
        statement(r, nodes[k])
        k += 1
    frame.path.pop()


def statement(r: Reader, node: ast.stmt) -> None:
    read: Any = _READERS.get(type(node))
    here = r.here
    r.here = (id(node), r.inlined)
    try:
        with r.at_statement():
            saved = r.save()
            try:
                r.line(f"/* {_text(node)} */")
                r.ran(node)
                if read is None:
                    raise Unreadable(f"a statement of kind {type(node).__name__}")
                read(r, node)
            except Unreadable as e:
                if not r.frame.whole:
                    raise
                if _is_print(r, node):
                    r.restore(saved)
                    outside.statement(r, node)
                    return
                if r.is_inside and not r.cold:
                    raise Stopped(str(e), node) from e
                r.restore(saved)
                r.leave(f"{e} (line {node.lineno})")
                r.frame.dead = True
    finally:
        r.here = here


@functools.lru_cache(4096)
def _text(node: ast.stmt) -> str:
    """The first line of a statement, for people who read the C."""
    text = ast.unparse(node).partition("\n")[0]
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "")[:80]


def _is_print(r: Reader, node: ast.stmt) -> bool:
    """Whether a statement prints and does nothing else."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    name = call.func.id
    if name in r.env or name in r.frame.function.__globals__ or name != "print":
        return False
    names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
    return not any(
        isinstance(x, (ast.NamedExpr, ast.Attribute)) and not isinstance(x, ast.Attribute)
        for x in ast.walk(node)
    ) and names <= {*r.frame.scope, *_KNOWN}


_KNOWN = frozenset(
    ("print", "round", "abs", "len", "str", "repr", "int", "float", "min", "max", "sum", "format",
     "np", "numpy", "math", "sorted", "list", "tuple", "bool", "zip", "enumerate", "range")
)  # fmt: skip


class Stopped(Exception):
    """A statement that cannot be read, and that each iteration, or each call, comes to."""

    def __init__(self, why: str, node: ast.stmt):
        super().__init__(why)
        self.node = node


def _assign(r: Reader, node: ast.Assign) -> None:
    if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Name, ast.Tuple)):
        r.alone = node.value
    value = expression(r, node.value)
    if (isinstance(value, Lazy) and _is_view_of_names(node.targets)) or not isinstance(value, Lazy):
        value = kept(r, value)
    commits = [target(r, t, value) for t in node.targets]
    for commit in commits:
        commit()


def _is_view_of_names(targets: Sequence[ast.expr]) -> bool:
    """Whether a value is bound to a name, or to several places."""
    return len(targets) > 1 or not isinstance(targets[0], ast.Subscript)


def _ann_assign(r: Reader, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    target(r, node.target, kept(r, expression(r, node.value)))()


def target(r: Reader, node: ast.expr, value: Value) -> Callable[[], None]:
    """What assigns a value to a target; the checks are made now."""
    if isinstance(node, ast.Name):
        return lambda: bind(r, node.id, value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _unpack(r, node, value)
    if isinstance(node, ast.Attribute):
        owner = expression(r, node.value)
        if not isinstance(owner, Obj):
            raise Unreadable("an attribute of this is set")
        return lambda: _set_attribute(r, owner, node.attr, value)
    if isinstance(node, ast.Subscript):
        owner = expression(r, node.value)
        items = index_items(r, node.slice)
        if isinstance(owner, Lst):
            commit = assign_list_item(r, owner, items, value)
            return lambda: _changing(r, owner.roots, commit)
        if not isinstance(owner, Arr):
            raise Unreadable("an item of this is set")
        if isinstance(value, (Tup, Lst)):
            value = array_of(r, value)
        if not isinstance(value, (Arr, Lazy, Num)):
            raise Unreadable("this is stored in an array")
        commit = index.assign(r, owner, items, value)
        return lambda: _changing(r, owner.roots, commit)
    raise Unreadable(f"{type(node).__name__} as a target")


def _changing(r: Reader, roots: frozenset[str], commit: Callable[[], None]) -> None:
    r.effect(roots)
    commit()


def bind(r: Reader, name: str, value: Value) -> None:
    if isinstance(value, Num) and value.kind == "int" and value.lin is None and value.value is None:
        value = r.integer(value.text, value.low, value.high)
    r.env[name] = value


def _set_attribute(r: Reader, owner: Obj, name: str, value: Value) -> None:
    r.effect()
    r.entry.may_set(r, owner, name)
    r.frames[0].env[f"@{owner.path}.{name}"] = value


def _unpack(r: Reader, node: ast.Tuple | ast.List, value: Value) -> Callable[[], None]:
    if any(isinstance(t, ast.Starred) for t in node.elts):
        raise Unreadable("* in a target")
    n = len(node.elts)
    if isinstance(value, Lazy):
        value = materialized(r, value)
    if isinstance(value, Tup):
        if len(value.items) != n:
            raise Unreadable("another number of values")
        items = list(value.items)
    elif isinstance(value, Arr) and value.ndim:
        d = value.dims[0]
        if d.value is None:
            r.leave_if(f"{d.text} != {n}", "another number of values")
            if d.lin is not None:
                r.facts.add(d.lin - n)
        elif d.value != n:
            raise Unreadable("another number of values")
        items = [index.view(r, value, [python(k)]) for k in range(n)]
    else:
        raise Unreadable("this is unpacked")
    commits = [target(r, t, x) for t, x in zip(node.elts, items, strict=True)]

    def commit() -> None:
        for c in commits:
            c()

    return commit


def _aug_assign(r: Reader, node: ast.AugAssign) -> None:
    op = type(node.op).__name__
    t = node.target
    if isinstance(t, ast.Name):
        old = look_up(r, t.id)
        new = expression(r, node.value)
        _augmented(r, op, old, new, lambda x: bind(r, t.id, x))
    elif isinstance(t, ast.Attribute):
        old = expression(r, ast.copy_location(ast.Attribute(t.value, t.attr, ast.Load()), t))
        owner = expression(r, t.value)
        if not isinstance(owner, Obj):
            raise Unreadable("an attribute of this is set")
        new = expression(r, node.value)
        _augmented(r, op, old, new, lambda x: _set_attribute(r, owner, t.attr, x))
    elif isinstance(t, ast.Subscript):
        owner = expression(r, t.value)
        items = index_items(r, t.slice)
        _augment_item(r, op, owner, items, node)
    else:
        raise Unreadable("this is changed in place")


def _augmented(r: Reader, op: str, old: Value, new: Value, store: Callable[[Value], None]) -> None:
    if isinstance(old, Arr):
        _in_place(r, op, old, new)
        store(old)
        return
    if isinstance(old, (Lst,)) or (isinstance(old, Tup) and old.made is list):
        raise Unreadable("a list is changed in place")
    store(kept(r, operate(r, op, old, new)))


def _in_place(r: Reader, op: str, a: Arr, new: Value) -> None:
    """`a op= new`, of an array."""
    if isinstance(new, (Tup, Lst)):
        new = array_of(r, new)
    made = operate(r, op, a, new)
    if isinstance(made, Num):
        raise Unreadable("an array without axes")
    if not np.can_cast(made.dtype, a.dtype, "same_kind"):
        raise Unreadable("a result of another kind of dtype")
    if made.ndim != a.ndim:
        raise Unreadable("a result of another shape")
    commit = index.assign(r, a, [Known(Ellipsis)], made)
    _changing(r, a.roots, commit)


def _augment_item(r: Reader, op: str, owner: Value, items: list[Any], node: ast.AugAssign) -> None:
    if isinstance(owner, Lst):
        old = list_item(r, owner, items)
        made = kept(r, operate(r, op, old, expression(r, node.value)))
        commit = assign_list_item(r, owner, items, made)
        _changing(r, owner.roots, commit)
        return
    if not isinstance(owner, Arr):
        raise Unreadable("an item of this is changed")
    if index.is_advanced(items):
        if any(isinstance(x, Lazy) for x in items):
            items = [materialized(r, x) if isinstance(x, Lazy) else x for x in items]
        old = index.gathered(r, owner, items)
        made = operate(r, op, old, expression(r, node.value))
        commit = index.assign(r, owner, items, made)
        _changing(r, owner.roots, commit)
        return
    if not any(isinstance(x, (index.Slice, Known)) for x in items) and len(items) == owner.ndim:
        items = [index.checked(r, i, n) for i, n in zip(items, owner.dims, strict=True)]
        old = index.view(r, owner, items)
        made = operate(r, op, old, expression(r, node.value))
        if isinstance(made, Lazy) and made.ndim:
            raise Unreadable("an array into an element")
        commit = index.assign(r, owner, items, made)
        _changing(r, owner.roots, commit)
        return
    part = index.view(r, owner, items)
    assert isinstance(part, Arr)
    _in_place(r, op, part, expression(r, node.value))


def _expr(r: Reader, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    r.alone = node.value
    expression(r, node.value)


def _return(r: Reader, node: ast.Return) -> None:
    r.alone = node.value
    value = Known(None) if node.value is None else kept(r, expression(r, node.value))
    frame = r.frame
    frame.dead = True
    if len(r.frames) == 1:
        r.entry.result(r, value)
        return
    place: list = []
    r.lines.append(place)
    frame.returns.append((value, place if frame.depth else r.lines, r.releases(frame.scopes)))


def _pass(r: Reader, node: ast.stmt) -> None:
    """Nothing."""


def _assert(r: Reader, node: ast.Assert) -> None:
    test = condition(r, node.test)
    if test.value is None:
        r.leave_if(f"!{test.text}", "an assertion fails")
        for fact in test.true:
            r.facts.add(fact)
    elif not test.value:
        r.leave("an assertion fails")
        r.frame.dead = True


def _raise(r: Reader, node: ast.Raise) -> None:
    r.leave("an exception is raised")
    r.frame.dead = True


# Branches


def _if(r: Reader, node: ast.If) -> None:
    test = condition(r, node.test)
    if test.value is None:
        r.one_by_one(_BRANCH)
    if test.value is not None:
        chosen = node.body if test.value else node.orelse
        r.frame.path.append(("if", node, "body" if test.value else "orelse"))
        block(r, chosen, "body" if test.value else "orelse")
        r.frame.path.pop()
        return
    frame = r.frame
    before = dict(frame.env)
    attributes = r.frames[0]
    outside = dict(attributes.env) if attributes is not frame else None
    ways: list[tuple[list, dict[str, Value], dict[str, Value] | None, bool, list]] = []
    for nodes, part, facts in ((node.body, "body", test.true), (node.orelse, "orelse", test.false)):
        lines: list = []
        frame.env, frame.dead = dict(before), False
        if outside is not None:
            attributes.env = dict(outside)
        with r.elsewhere(lines), r.scope(), r.branch():
            for fact in facts:
                r.facts.add(fact)
            frame.path.append(("if", node, part))
            block(r, nodes, part)
            frame.path.pop()
            releases = r.releases(len(r.owned) - 1)
        other = dict(attributes.env) if outside is not None else None
        ways.append((lines, frame.env, other, frame.dead, releases))
    (yes, a, a_out, a_dead, a_free), (no, b, b_out, b_dead, b_free) = ways
    frame.dead = a_dead and b_dead
    variables: dict[str, Variable] = {}
    held: dict[str, Variable] = {}
    if a_dead or b_dead:
        alive = b if a_dead else a
        frame.env = dict(alive)
        if outside is not None:
            attributes.env = dict((b_out if a_dead else a_out) or {})
        # What one way has made is seen behind the branch.
        variables = _exported(r, before, frame.env)
        if outside is not None:
            held = _exported(r, outside, attributes.env)
    else:
        frame.env, variables = _merged(r, a, b)
        if outside is not None:
            attributes.env, held = _merged(r, a_out or {}, b_out or {})
    for v in (*variables.values(), *held.values()):
        for line in v.declare:
            r.line(line)
    for lines, env, out, dead, free in (
        (yes, a, a_out, a_dead, a_free),
        (no, b, b_out, b_dead, b_free),
    ):
        if dead:
            continue
        with r.elsewhere(lines):
            r.lines += stored(r, [*_values_of(r, variables, env), *_values_of(r, held, out or {})])
        lines += free
    r.lines += [f"if ({test.text}) {{", yes, "}"]
    if no:
        r.lines += ["else {", no, "}"]
    for name, v in variables.items():
        frame.env[name] = v.load(r)
        r.owned[-1] += v.buffers()
    for name, v in held.items():
        attributes.env[name] = v.load(r)
        r.owned[-1] += v.buffers()
    if not frame.dead:
        for fact in test.false if a_dead else test.true if b_dead else ():
            r.facts.add(fact)


def _values_of(
    r: Reader, variables: dict[str, Variable], env: dict[str, Value]
) -> Iterator[tuple[Variable, Value]]:
    """What variables hold on one way."""
    for name, v in variables.items():
        if name in env:
            yield v, env[name]
        elif name.startswith("@"):
            yield v, r.entry.attributes[name]


def _exported(r: Reader, before: dict[str, Value], after: dict[str, Value]) -> dict[str, Variable]:
    """Variables for what a way changed."""
    made: dict[str, Variable] = {}
    for name, x in after.items():
        if name in before and is_same(before[name], x):
            continue
        if isinstance(x, (Num, Arr, Tup, Lst, Maybe)) and not _is_constant(x):
            made[name] = Variable(r, name, as_type(x))
    return made


def _is_constant(x: Value) -> bool:
    if isinstance(x, Num):
        return x.value is not None
    return isinstance(x, Tup) and all(map(_is_constant, x.items))


def _merged(
    r: Reader, a: dict[str, Value], b: dict[str, Value]
) -> tuple[dict[str, Value], dict[str, Variable]]:
    """The names behind a branch, and the variables that carry those that differ."""
    env: dict[str, Value] = {}
    variables: dict[str, Variable] = {}
    for name in {**a, **b}:
        if name in a and name in b:
            x, y = a[name], b[name]
            if is_same(x, y):
                env[name] = x
                continue
            of = join(x, y, r)
        else:
            x = a[name] if name in a else b[name]
            if name.startswith("@"):
                of = join(x, r.entry.attributes[name], r)
                variables[name] = Variable(r, name, as_type(of))
                if isinstance(of, Conflict):
                    raise Unreadable(f"{name[1:]}: {of.why}")
                continue
            if isinstance(x, (Known, Obj, Opaque, Range, Conflict, Rng, Bound)):
                env[name] = Conflict("it has a value on one way only")
                continue
            of = x if isinstance(x, Maybe) else Maybe(as_type(x), "")
        if isinstance(of, Conflict) or not isinstance(of, (Num, Arr, Tup, Lst, Maybe)):
            env[name] = of if isinstance(of, Conflict) else Conflict("it is one or another")
            continue
        variables[name] = Variable(r, name, as_type(of))
    return env, variables


def _try(r: Reader, node: ast.Try) -> None:
    """What is tried; where something is raised, compiled code leaves, and Python has the rest."""
    if node.finalbody:
        raise Unreadable("finally")
    for nodes, part in ((node.body, "body"), (node.orelse, "orelse")):
        if not r.frame.dead:
            r.frame.path.append(("try", node, part))
            with r.branch():  # what cannot be read in it may be what is to be caught
                block(r, nodes, part)
            r.frame.path.pop()


def _with(r: Reader, node: ast.With) -> None:
    """`with np.errstate(...)` that asks for no exceptions."""
    for x in node.items:
        call = x.context_expr
        if x.optional_vars is not None or not isinstance(call, ast.Call) or call.args:
            raise Unreadable("with")
        f = expression(r, call.func)
        words = [k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)]
        quiet = len(words) == len(call.keywords) and set(words) <= {"ignore", "warn"}
        if not isinstance(f, Known) or f.value is not np.errstate or not quiet:
            raise Unreadable("with")
    r.frame.path.append(("with", node))
    block(r, node.body, "body")
    r.frame.path.pop()


# Loops


def _for(r: Reader, node: ast.For) -> None:
    iterable = _iterable(r, node.iter)
    if isinstance(iterable, Tup):
        _unrolled(r, node, iterable)
        return
    header = _Header(r, node, *iterable)
    loop(r, node, header)


def _unrolled(r: Reader, node: ast.For, values: Tup) -> None:
    """A loop over a tuple: its body once for each item."""
    if len(values.items) > 64:
        raise Unreadable("a loop over a long tuple")
    if any(isinstance(x, (ast.Break, ast.Continue)) for x in _own(node.body)) or node.orelse:
        raise Unreadable("break in a loop over a tuple")
    hidden = f"__src{node.lineno}_{node.col_offset}"
    for k, x in enumerate(values.items):
        r.env[hidden] = values
        target(r, node.target, x)()
        r.frame.path.append(("unrolled", node, hidden, k))
        block(r, node.body, "body")
        r.frame.path.pop()
        if r.frame.dead:
            return


def _own(nodes: Block) -> list[ast.AST]:
    """Statements of a loop's body, without those of loops inside."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        x = waiting.pop()
        found.append(x)
        if not isinstance(x, (ast.For, ast.While)):
            waiting += list(ast.iter_child_nodes(x))
    return found


Get = Callable[[Reader, Num], Value]


def _iterable(r: Reader, node: ast.expr) -> Tup | tuple[Num, Get, dict[str, Value], ast.expr]:
    """Of what a loop runs over: a tuple; or the number of values, what gives the k-th, the values
    that it is made of by hidden names, and its expression in these names."""
    if isinstance(node, ast.Call) and not node.keywords:
        f = expression(r, node.func)
        name = f.value if isinstance(f, Known) else None
        if name is enumerate and len(node.args) in (1, 2):
            inner = _iterable(r, node.args[0])
            start = expression(r, node.args[1]) if len(node.args) == 2 else python(0)
            if isinstance(inner, Tup):
                if not isinstance(start, Num) or start.value is None:
                    raise Unreadable("enumerate from a value")
                items = [Tup((python(start.value + k), x)) for k, x in enumerate(inner.items)]
                return Tup(tuple(items))
            n, get, sources, text = inner
            return (
                n, lambda r, k: Tup((operate(r, "Add", start, k), get(r, k))), sources,
                _with_args(node, [text, *node.args[1:]]),
            )  # fmt: skip
        if name is reversed and len(node.args) == 1:
            inner = _iterable(r, node.args[0])
            if isinstance(inner, Tup):
                return Tup(tuple(reversed(inner.items)))
            n, get, sources, text = inner
            last = operate(r, "Sub", n, python(1))
            return (
                n, lambda r, k: get(r, operate(r, "Sub", last, k)), sources,
                _with_args(node, [text]),
            )  # fmt: skip
        if name is zip and node.args:
            return _zipped(r, node, [_iterable(r, a) for a in node.args])
    value = kept(r, expression(r, node))
    return _values(r, value, node)


def _with_args(node: ast.Call, args: list[ast.expr]) -> ast.expr:
    return ast.copy_location(ast.Call(node.func, args, []), node)


def _zipped(r: Reader, node: ast.Call, parts: list) -> Any:
    if all(isinstance(p, Tup) for p in parts):
        return Tup(tuple(Tup(x) for x in zip(*[p.items for p in parts], strict=False)))
    if any(isinstance(p, Tup) for p in parts):
        raise Unreadable("zip of a tuple and an array")
    n = parts[0][0]
    for p in parts[1:]:
        n = least_int(r, "min", n, p[0])
    sources = {k: v for p in parts for k, v in p[2].items()}
    gets = [p[1] for p in parts]
    return (
        n, lambda r, k: Tup(tuple(g(r, k) for g in gets)), sources,
        _with_args(node, [p[3] for p in parts]),
    )  # fmt: skip


def _values(r: Reader, value: Value, node: ast.expr) -> Any:
    if isinstance(value, Tup):
        return value
    hidden = f"__src{node.lineno}_{node.col_offset}"
    name = ast.copy_location(ast.Name(hidden, ast.Load()), node)
    if isinstance(value, Range):
        n = range_length(r, value)
        start, step = value.start, value.step

        def at(r: Reader, k: Num) -> Value:
            assert k.lin is not None
            assert start.lin is not None
            if step.value == 1 and start.value == 0:
                return k
            if step.value is None:
                made = r.integer(f"({start.text} + {k.text} * {step.text})", start.low)
                assert made.lin is not None
                last = value.stop
                if last.lin is not None:
                    r.facts.add(made.lin - start.lin)
                    r.facts.add(last.lin - made.lin - 1)
                return made
            return r.integer(
                f"({start.text} + {k.text} * {step.text})" if step.value != 1 else
                f"({start.text} + {k.text})", lin=start.lin + k.lin * step.value
            )  # fmt: skip

        return n, at, {hidden: value}, name
    if isinstance(value, Arr) and value.ndim:
        return value.dims[0], lambda r, k: index.view(r, value, [k]), {hidden: value}, name
    if isinstance(value, Lst):
        if value.buf.startswith("?"):
            return Tup(())  # its items are known when it is read again
        return (
            length(r, value),
            lambda r, k: list_item(r, value, [k]),
            {hidden: value},
            name,
        )
    raise Unreadable("a loop over this")


class _Header:
    """The head of a `for` loop."""

    def __init__(self, r: Reader, node: ast.For, n: Num, get: Get, sources: dict, text: ast.expr):
        self.n, self._get, self.sources, self.text, self._node = n, get, sources, text, node
        self.hidden = f"__at{node.lineno}_{node.col_offset}"
        r.env.update(sources)

    def head(self, r: Reader) -> str:
        self.k = r.fresh("k")
        return f"for (i64 {self.k} = 0; {self.k} < {self.n.text}; {self.k}++)"

    def in_strips(self, r: Reader, body: list) -> list:
        """The loop, with looks at what Python wants every so many iterations."""
        n = self.n.text
        if self.n.value is not None and self.n.value <= _STRIP:
            return [f"for (i64 {self.k} = 0; {self.k} < {n}; {self.k}++) {{", body, "}"]
        begin, end = r.fresh("begin"), r.fresh("end")
        return [
            f"for (i64 {begin} = 0; {begin} < {n}; {begin} += {_STRIP}) {{",
            f"if (__builtin_expect({begin} != 0, 0) && is_wanted(rt)) return -1;",
            f"const i64 {end} = {n} - {begin} < {_STRIP} ? {n} : {begin} + {_STRIP};",
            f"for (i64 {self.k} = {begin}; {self.k} < {end}; {self.k}++) {{",
            body, "}", "}",
        ]  # fmt: skip

    def times(self, r: Reader) -> float:
        """How often the body runs, as far as the values of this call tell."""
        n = r.entry.at(self.n.lin)
        r.entry.known[self.k] = (n or _SOME) // 2
        return n or _SOME

    def begin(self, r: Reader) -> None:
        lin = r.facts.name(self.k, 0, max(self.n.high - 1, 0))
        if self.n.lin is not None:
            r.facts.add(self.n.lin - lin - 1)
        k = Num(self.k, "i64", ("int",), "", lin, 0, max(self.n.high - 1, 0))
        r.env[self.hidden] = k
        target(r, self._node.target, kept(r, self._get(r, k)))()

    def step(self, r: Reader) -> tuple:
        return ("for", self._node, self.hidden, self.text)

    always = False


class _While:
    """The head of a `while` loop."""

    def __init__(self, node: ast.While):
        self._node = node
        self.always = isinstance(node.test, ast.Constant) and bool(node.test.value)

    def head(self, r: Reader) -> str:
        return "for (;;)"

    def times(self, r: Reader) -> float:
        return _SOME

    def begin(self, r: Reader) -> None:
        """The test; what it is where it is true is known in the body."""
        if self.always:
            return
        r.frame.path.append(("while", self._node, "test"))
        with r.at_statement():
            test = condition(r, self._node.test)
        r.frame.path.pop()
        if test.value is True:
            return
        r.one_by_one(_BRANCH)
        lines: list = []
        r.loops[-1].ends.append((_snapshot(r), lines))
        r.lines += [f"if (!{test.text}) {{", lines, "break; }"]
        for fact in test.true:
            r.facts.add(fact)

    def step(self, r: Reader) -> tuple:
        return ("while", self._node, "body")


def _while(r: Reader, node: ast.While) -> None:
    loop(r, node, _While(node))


def loop(r: Reader, node: ast.For | ast.While, header: Any) -> None:
    """A loop. It is read until the types of the names that it changes are settled."""
    key = ("loop", id(node), r.inlined)
    memory = r.memory.setdefault(key, {})
    wanted = dict.fromkeys(name if "." not in name else None for name in assigned([node]))
    wanted.pop(None, None)
    for _ in range(40):
        saved = r.save()
        attributes = dict(r.frames[0].env)
        missing, r.missing = r.missing, set()
        if _attempt(r, node, header, memory, wanted):
            r.missing = missing | r.missing
            return
        r.missing = missing
        r.restore(saved)
        r.frames[0].env = attributes | {k: r.entry.attributes[k] for k in r.late}
    raise Unreadable("a loop whose types do not settle")


Key = tuple[int, str]  # whose name it is: 0 of the function that is read, 1 of the outermost one


def _attempt(
    r: Reader, node: ast.For | ast.While, header: Any, memory: dict[Key, Value], wanted: dict
) -> bool:
    """Read a loop once; False if a name needs another type than was thought."""
    frame = r.frame
    before = _snapshot(r)
    carried = _carried(r, before, memory, wanted)
    envs = _environments(r)
    for (which, name), v in carried.items():
        for line in v.declare:
            r.line(line)
        if name in envs[which]:
            r.lines += v.store(r, envs[which][name])
    state = LoopState(len(r.owned))
    body: list = []
    head = header.head(r)
    with r.elsewhere(body), r.scope(), r.in_loop(state, header.times(r)):
        for (which, name), v in carried.items():
            envs[which][name] = v.load(r)
        entry = _snapshot(r)
        tick: list = []
        r.lines.append(tick)
        frame.path.append(header.step(r))
        header.begin(r)
        block(r, node.body, "body")
        frame.path.pop()
        if not frame.dead:
            end: list = []
            state.agains.append((_snapshot(r), end))
            r.lines.append(end)
            r.lines += r.releases(state.scopes)
    frame.dead = False
    if _outgrown(r, node, carried, entry, state, memory):
        return False
    fresh = _new_names(r, node, entry, state)
    carried |= fresh
    if not _stores(r, carried, entry, state, memory):
        return False
    for v in fresh.values():
        for line in v.declare:
            r.line(line)
    if isinstance(node, ast.While) or _loops_in(body) or _ends_early(node):
        tick.append("TICK;")
        r.lines += [head + " {", body, "}"]
    else:
        r.lines += header.in_strips(r, body)
    if header.always and not state.ends:
        frame.dead = True
        return True
    envs = _environments(r)
    for which, env in enumerate(envs):
        env.clear()
        env.update(before[which])
    for (which, name), v in carried.items():
        envs[which][name] = v.load(r)
        r.owned[-1] += v.buffers()
    for (which, name), known in memory.items():
        if isinstance(known, Conflict):
            envs[which][name] = known
    return True


def _carried(
    r: Reader, before: list[dict[str, Value]], memory: dict[Key, Value], wanted: dict
) -> dict[Key, Variable]:
    """Variables for the names that a loop changes, with the types that are known so far."""
    carried: dict[Key, Variable] = {}
    envs = _environments(r)
    for which, env in enumerate(before):
        for name, x in env.items():
            key = which, name
            if key not in memory and name not in (wanted if which == 0 else ()):
                continue
            known = memory.get(key)
            of = x if known is None else join(x, known, r)
            if isinstance(of, Conflict):
                envs[which][name] = of
            elif isinstance(of, (Num, Arr, Tup, Lst, Maybe)):
                memory[key] = of = as_type(of, keep=True)
                carried[key] = Variable(r, name, of)
            elif known is not None:
                envs[which][name] = Conflict("it is one or another")
    for key, known in memory.items():  # names that get their first value in the loop
        if key[1] not in before[key[0]] and isinstance(known, Maybe):
            carried[key] = Variable(r, key[1], known)
    return carried


def _outgrown(
    r: Reader, node: ast.stmt, carried: dict[Key, Variable], entry: list, state: LoopState,
    memory: dict[Key, Value],
) -> bool:  # fmt: skip
    """Whether the types that come back to the head of a loop are not those it was read for."""
    grew = False
    for snapshot, _ in state.agains:
        for which, env in enumerate(snapshot):
            for name, x in env.items():
                key = which, name
                old = entry[which].get(name)
                if key in carried:
                    if not same_type(carried[key].of, x, r):
                        _grow(r, memory, key, carried[key].of, x)
                        grew = True
                elif old is not None:
                    same = is_same(old, x) or isinstance(old, Conflict)
                    if not same and not name.startswith("__"):
                        memory[key] = as_type(join(old, x, r), keep=True)
                        grew = True
                elif name.startswith("@"):
                    r.late.add(name)
                    grew = True
                elif name in r.missing or (
                    # Bound in some iterations: what an earlier one has bound is kept.
                    isinstance(x, Maybe)
                    and not name.startswith("__")
                    and r.is_read_outside(node, name)
                ):
                    memory[key] = as_type(x) if isinstance(x, Maybe) else Maybe(as_type(x), "")
                    grew = True
    return grew


def _stores(
    r: Reader, carried: dict[Key, Variable], entry: list, state: LoopState,
    memory: dict[Key, Value],
) -> bool:  # fmt: skip
    """Write the stores at each way back, and each way out; False if a type does not do."""
    for snapshot, lines in (*state.agains, *state.ends):
        stores: list = []
        pairs: list[tuple[Variable, Value]] = []
        with r.elsewhere(stores):
            for (which, name), v in carried.items():
                if name not in snapshot[which]:
                    continue
                x = snapshot[which][name]
                if name in entry[which] and is_same(entry[which][name], x):
                    continue
                if not same_type(v.of, x, r):
                    memory[which, name] = as_type(join(v.of, x, r), keep=True)
                    return False
                pairs.append((v, x))
            r.lines += stored(r, pairs)
        lines[:0] = stores
    return True


def _environments(r: Reader) -> list[dict[str, Value]]:
    """The names of the function that is read, and of the outermost one."""
    return [r.frame.env] if r.frame is r.frames[0] else [r.frame.env, r.frames[0].env]


def _snapshot(r: Reader) -> list[dict[str, Value]]:
    return [dict(env) for env in _environments(r)]


def _grow(r: Reader, memory: dict, key: Key, of: Value, x: Value) -> None:
    """Make the type of a name hold x as well."""
    new = as_type(join(of, x, r), keep=True)
    if isinstance(new, Num) and isinstance(of, Num) and new.rep == of.rep:
        low = of.low if new.low >= of.low else 0 if new.low >= 0 else -WIDE
        high = of.high if new.high <= of.high else WIDE - 1
        new = replace(new, low=low, high=high)
    memory[key] = new


def _loops_in(lines: list) -> bool:
    """Whether there are loops in what was written."""
    return any(
        _loops_in(x) if isinstance(x, list) else isinstance(x, str) and x.startswith("for (")
        for x in lines
    )


def _ends_early(node: ast.For | ast.While) -> bool:
    return any(isinstance(x, (ast.Break, ast.Return)) for x in _own(node.body))


def _new_names(r: Reader, node: ast.stmt, entry: list, state: LoopState) -> dict[Key, Variable]:
    """Variables for names that have their first value in a loop, and are asked for behind it."""
    found: dict[Key, Value] = {}
    for snapshot, _ in (*state.agains, *state.ends):
        for which, env in enumerate(snapshot):
            for name, x in env.items():
                if name in entry[which] or name.startswith("__"):
                    continue
                if isinstance(x, (Known, Obj, Opaque, Range, Conflict, Rng, Bound)):
                    continue
                if which == 0 and not r.is_read_outside(node, name):
                    continue
                old = found.get((which, name))
                new = x if isinstance(x, Maybe) else Maybe(x, "")
                of = new if old is None else join(old, new, r)
                if not isinstance(of, Conflict):
                    found[which, name] = Maybe(as_type(of.value), "")
    return {key: Variable(r, key[1], of) for key, of in found.items()}


def _break(r: Reader, node: ast.Break) -> None:
    lines: list = []
    if not r.loops:
        raise Unreadable("break")
    state = r.loops[-1]
    state.ends.append((_snapshot(r), lines))
    r.lines += [lines, *r.releases(state.scopes), "break;"]
    r.frame.dead = True


def _continue(r: Reader, node: ast.Continue) -> None:
    lines: list = []
    if not r.loops:
        raise Unreadable("continue")
    state = r.loops[-1]
    state.agains.append((_snapshot(r), lines))
    r.lines += [lines, *r.releases(state.scopes), "continue;"]
    r.frame.dead = True


# Comprehensions


def comprehension(r: Reader, node: ast.ListComp | ast.GeneratorExp) -> Value:
    """A list of numbers, made by a loop."""
    hidden = f"__list{node.lineno}_{node.col_offset}"
    at = {"lineno": node.lineno, "col_offset": node.col_offset,
          "end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}  # fmt: skip
    tree = _comprehensions.get(id(node))
    if tree is None:
        name = ast.Name(hidden, ast.Load())
        inner: ast.stmt = ast.Expr(
            ast.Call(ast.Attribute(name, "append", ast.Load()), [node.elt], [])
        )
        for g in reversed(node.generators):
            for test in reversed(g.ifs):
                inner = ast.If(test, [inner], [])
            inner = ast.For(g.target, g.iter, [inner], [])
        for x in ast.walk(inner):
            if not hasattr(x, "lineno") and isinstance(x, (ast.stmt, ast.expr)):
                for k, v in at.items():
                    setattr(x, k, v)
        tree = _comprehensions[id(node)] = (inner, node)
    frame = r.frame
    whole, env = frame.whole, dict(frame.env)
    r.here = (id(node), r.inlined)
    names = assigned([tree[0]])
    scope = dict(frame.scope)
    frame.scope = {**scope, **dict.fromkeys(names), hidden: None}
    frame.whole = False
    made, frame.made = frame.made, set()
    r.comprehensions += 1
    try:
        frame.env[hidden] = new_list(r, [])
        statement(r, tree[0])
        result = frame.env[hidden]
    finally:
        r.comprehensions -= 1
        frame.whole, frame.scope = whole, scope
        frame.made |= made
    frame.env = {k: env[k] if k in names else v for k, v in frame.env.items() if k in env}
    return result


_comprehensions: dict[int, tuple[ast.stmt, ast.AST]] = {}


# Statements that are taken apart first


def normalized(r: Reader, node: ast.stmt) -> list[ast.stmt] | None:
    """Statements that do the same, in which a call that changes something stands alone, and loops
    have no `else`."""
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        return _without_else(r, node)
    found = _changing_call(r, node)
    if found is None:
        return None
    call, where = found
    cache = r.entry.normalized
    key = (id(node), id(call))
    if key in cache:
        return cache[key][0]
    name = f"__call{call.lineno}_{call.col_offset}_{len(cache)}"
    if where == "bool":  # in a test, behind `and` or `or`
        made = _split_test(node, name)
    else:
        first = ast.Assign([ast.Name(name, ast.Store())], call)
        made = [first, _replaced(node, call, ast.Name(name, ast.Load()))]
    for x in made:
        ast.copy_location(x, node)
        ast.fix_missing_locations(x)
    cache[key] = (made, node)
    return made


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
        name = f"__broke{node.lineno}_{node.col_offset}"
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


def _flat_breaks(name: str, node: ast.stmt) -> Any:
    return _Breaks(name).visit(node)


def _changing_call(r: Reader, node: ast.stmt) -> tuple[ast.Call, str] | None:
    """The first call in a statement that changes something, and does not stand alone."""
    if isinstance(node, (ast.For, ast.While)):
        roots: list[ast.AST] = [node.iter] if isinstance(node, ast.For) else []
    elif isinstance(node, ast.If):
        roots = [node.test]
    elif isinstance(node, (ast.Try, ast.With)):  # its statements are taken apart as they are read
        roots = []
    else:
        roots = [node]
    alone = None
    if isinstance(node, (ast.Expr, ast.Return)) or (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], (ast.Name, ast.Tuple))
    ):
        alone = node.value
    for root in roots:
        for call, conditional in _calls(root, False):
            if call is alone or not _changes(r, call):
                continue
            if conditional:
                if isinstance(node, ast.If) and isinstance(node.test, ast.BoolOp):
                    return call, "bool"
                continue
            return call, ""
    return None


def _changes(r: Reader, node: ast.Call) -> bool:
    """Whether a call changes what is not its own."""
    if not dotted(node.func):
        return False
    lines, r.lines = r.lines, []
    missing = set(r.missing)
    try:
        with r.at_statement():
            f = expression(r, node.func)
    except Unreadable:
        return False
    finally:
        r.lines, r.missing = lines, missing
    if isinstance(f, Bound):
        if isinstance(f.owner, Rng):
            return True
        found = getattr(f.owner.type, f.name, None) if isinstance(f.owner, Obj) else None
    else:
        found = f.value if isinstance(f, Known) else None
    return isinstance(found, types.FunctionType) and found.__code__ in r.effectful


def _calls(node: ast.AST, conditional: bool) -> list[tuple[ast.Call, bool]]:
    """Calls in the order in which they are made, and whether each is made only sometimes."""
    found: list[tuple[ast.Call, bool]] = []
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.Lambda)):
        return found
    for k, x in enumerate(ast.iter_child_nodes(node)):
        sometimes = (
            conditional
            or (isinstance(node, ast.BoolOp) and k > 1)
            or (isinstance(node, ast.IfExp) and x is not node.test)
        )
        found += _calls(x, sometimes)
    if isinstance(node, ast.Call):
        found.append((node, conditional))
    return found


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


def _replaced(node: ast.stmt, old: ast.AST, new: ast.AST) -> ast.stmt:
    """A copy of a statement with another expression in the place of one. Blocks in it stay the
    same objects."""
    memo = {id(old): new}
    for field in ("body", "orelse"):
        for x in getattr(node, field, []):
            memo[id(x)] = x
    return copy.deepcopy(node, memo)


_READERS = {
    ast.Assign: _assign, ast.AnnAssign: _ann_assign, ast.AugAssign: _aug_assign, ast.Expr: _expr,
    ast.Return: _return, ast.Pass: _pass, ast.Assert: _assert, ast.Raise: _raise, ast.If: _if,
    ast.For: _for, ast.While: _while, ast.Break: _break, ast.Continue: _continue, ast.Try: _try,
    ast.With: _with,
}  # fmt: skip
