"""Statements: assignments, branches, loops, calls of the user's functions."""

from __future__ import annotations

import ast
import copy
import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import assignments, builtins, catching, loops, outside
from .dicts import new_table
from .expressions import anything, condition, expression, kept, made_function
from .leaving import returning
from .managers import Entered, goes_out
from .normalize import normalized, of_generator
from .objects import finished
from .read import BRANCH, Frame, Reader, Return, assigned, certain, imported_name
from .records import new_list
from .recursion import Unresolved
from .selection import selected
from .source import nonlocals, own_names
from .values import (
    HELD,
    Begun,
    Conflict,
    Known,
    Maybe,
    NoKey,
    NotYet,
    Num,
    Unreadable,
    Value,
    python,
)
from .variables import Variable, as_type, is_same, join, stored
from .walk import walk
from .ways import Way, joined, loaded

Block = Sequence[ast.stmt]


# Functions


def function(r: Reader, f: Any, node: Any, env: dict[str, Value], whole: bool) -> Value:
    """The result of a function that is read in place."""
    scope = dict.fromkeys(own_names(f, node))
    outer = r.frame
    whole = whole and outer.whole
    home = r.local[f][1] if f in r.local else None
    frame = Frame(f, node, env, scope, whole=whole, scopes=len(r.owned), home=home)
    if not whole and not outer.whole:
        frame.made |= outer.made
    frame.label = r.fresh("ret")
    was = r.inlined
    r.lists += 1
    r.inlined = (*was, (id(node), r.here, r.lists))
    loops, r.loops = r.loops, []
    attributes = _attributes(r)
    begin: list[str] = []
    r.lines.append(begin)
    r.frames.append(frame)
    r.owned.append([])
    mark = r.facts.mark()
    try:
        block(r, node.body, "body")
        if not frame.dead:
            frame.returns.append(
                Return(Known(None), r.lines, r.releases(frame.scopes), _attributes(r))
            )
    finally:
        r.frames.pop()
        r.loops = loops
        r.inlined = was
        made = r.owned.pop()
    if len(frame.returns) == 1 and frame.returns[0].place is r.lines:
        r.owned[-1] += made
        r.frames[0].env |= frame.returns[0].attributes
        return frame.returns[0].value
    r.facts.back_to(mark)  # what holds where the last statement is reached
    return _result(r, frame, attributes, begin)


def _attributes(r: Reader) -> dict[str, Value]:
    """What attributes of objects hold that were set, and names that are bound by `nonlocal`."""
    outermost = r.frames[0]
    bound = nonlocals(outermost.node)
    return {k: x for k, x in outermost.env.items() if k.startswith("@") or k in bound}


def _result(r: Reader, frame: Frame, before: dict[str, Value], begin: list[str]) -> Value:
    """The value of a call, of the values at its `return` statements; and what it has set. before:
    what attributes held when it was called. begin: lines where it begins."""
    returns = frame.returns
    if not returns:
        raise Unreadable(frame.why or f"{frame.function.__name__} does not return")
    value = functools.reduce(lambda x, y: join(x, y, r), [x.value for x in returns])
    if isinstance(value, Conflict):
        raise Unreadable(f"what {frame.function.__name__} returns: {value.why}")
    result = None if isinstance(value, Known) else Variable(r, "result", as_type(value))
    found = {name: x for y in returns for name, x in y.attributes.items()}
    set_: dict[str, Variable] = {}
    for name in found:
        of = [y.attributes.get(name, r.entry.attributes.get(name)) for y in returns]
        if name in before and all(is_same(x, before[name]) for x in of):
            continue
        there = [x for x in of if x is not None]
        together = functools.reduce(lambda x, y: join(x, y, r), there)
        if isinstance(together, Conflict):
            raise Unreadable(f"{name.lstrip('@')}: {together.why}")
        if len(there) < len(of) and not isinstance(together, Maybe):  # of a new object
            if not isinstance(together, HELD):
                raise Unreadable(f"{name.lstrip('@')!r}, which is set on one way only")
            together = Maybe(together, "")
        if isinstance(together, HELD):
            set_[name] = Variable(r, "attribute", as_type(together))
        else:
            r.frames[0].env[name] = together
    for y in returns:
        pairs = [(result, y.value)] if result is not None else []
        held = [(v, y.attributes.get(n, r.entry.attributes.get(n))) for n, v in set_.items()]
        pairs += [(v, x) for v, x in held if x is not None]
        y.place += [*stored(r, pairs), *y.releases, f"goto {frame.label};"]
    for v in (*([result] if result is not None else []), *set_.values()):
        r.declarations += v.declare
        r.owned[-1] += v.buffers()
        # What it held was given back since the last call, or was of another object.
        begin += [f"{name} = 0;" for name in (*v.buffers(), *v.flags())]
    r.line(f"{frame.label}: ;")
    for name, v in set_.items():
        r.frames[0].env[name] = v.load(r)
    return value if result is None else result.load(r)


# Blocks and statements


def block(r: Reader, nodes: Block, part: str) -> None:
    """Statements, one after the other. part: the field of the statement around it."""
    frame = r.frame
    frame.path.append(("block", nodes, 0, part))
    for k, node in enumerate(nodes):
        if frame.dead:
            break
        frame.path[-1] = ("block", nodes, k, part)
        apart = normalized(r, node)
        if apart is None:
            statement(r, node)
        else:
            block(r, apart, "apart")
    frame.path.pop()


def statement(r: Reader, node: ast.stmt) -> None:
    read: Any = _READERS.get(type(node))
    r.goes_on()
    here, lists = r.here, r.lists
    r.here, r.lists = (id(node), r.inlined), 0
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
                if r.is_inside and not r.cold and not isinstance(e, (NotYet, Unresolved)):
                    raise Stopped(str(e), node) from e
                r.restore(saved)
                if not (isinstance(e, NoKey) and catching.asks_once(r, node)):
                    r.frame.why = f"{e} (line {node.lineno})"
                    r.leave(r.frame.why)
                r.frame.dead = True
    finally:
        r.here, r.lists = here, lists


@functools.lru_cache(4096)
def _text(node: ast.stmt) -> str:
    """The first line of a statement, for people who read the C."""
    if getattr(node, "body", None):
        node = copy.copy(node)
        for name in {"body", "orelse", "handlers", "finalbody"}.intersection(node._fields):
            setattr(node, name, [])
    text = ast.unparse(node).partition("\n")[0]
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "")[:80]


class Stopped(Exception):
    """A statement that cannot be read, and that each iteration, or each call, comes to."""

    def __init__(self, why: str, node: ast.stmt):
        super().__init__(why)
        self.node = node


def _expr(r: Reader, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    if outside.is_print(r, node):
        outside.printed(r, node)
        return
    r.alone = node.value
    anything(r, node.value)


def _return(r: Reader, node: ast.Return) -> None:
    if _passes(r, node):
        return
    r.alone = node.value
    value = Known(None) if node.value is None else kept(r, anything(r, node.value))
    if isinstance(value, Begun) and r.begun[value.path] == len(r.frames) - 1:
        value = finished(r, value)
    frame = r.frame
    frame.dead = True
    if len(r.frames) == 1:
        returning(r, value)
        return
    place: list = []
    r.lines.append(place)
    if not frame.depth:
        place = r.lines
    frame.returns.append(Return(value, place, r.releases(frame.scopes), _attributes(r)))


def _def(r: Reader, node: ast.FunctionDef) -> None:
    r.env[node.name] = made_function(r, node, node)


def _nonlocal(r: Reader, node: ast.Nonlocal) -> None:
    """Names of the function around it: where it leaves, they are what they were at its call."""
    if r.frame.home is not r.frames[0] or (r.frame.whole and not r.finds):
        raise Unreadable("nonlocal, in a function that changes more, or in another one's")


def _import(r: Reader, node: ast.Import | ast.ImportFrom) -> None:
    """An import of modules that are there: names are bound, and nothing else happens."""
    if r.loops:
        raise Unreadable("an import in a loop")
    for x in node.names:
        if isinstance(node, ast.Import):
            module = x.name if x.asname else imported_name(x)
            made = sys.modules[module] if x.name in sys.modules else None
        else:
            home = None if node.level else sys.modules.get(node.module or "")
            made = getattr(home, x.name, None)
            if home is not None:
                r.entry.watch(("module", home, x.name), made)
        if not isinstance(made, _IMPORTED):
            raise Unreadable(f"an import of {x.name}")
        r.env[imported_name(x)] = Known(made)


_IMPORTED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)


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
    if not catching.caught(r, node):
        r.leave("an exception is raised")
    r.frame.dead = True


# Branches


def _if(r: Reader, node: ast.If) -> None:
    test = condition(r, node.test)
    frame = r.frame
    if test.value is not None:
        part = "body" if test.value else "orelse"
        frame.path.append(("if", node, part))
        block(r, getattr(node, part), part)
        frame.path.pop()
        return
    r.one_by_one(BRANCH)
    before = r.snapshot()
    ways: list[Way] = []
    for part, facts in (("body", test.true), ("orelse", test.false)):
        lines: list = []
        r.set_names(before)
        frame.dead = False
        with r.elsewhere(lines), r.scope(), r.branch():
            for fact in facts:
                r.facts.add(fact)
            frame.path.append(("if", node, part))
            block(r, getattr(node, part), part)
            frame.path.pop()
            releases = r.releases(len(r.owned) - 1)
        ways.append(Way(lines, r.snapshot(), frame.dead, releases))
    variables = joined(r, before, ways)
    alive = [way for way in ways if not way.dead]
    yes, no = ways
    all_ = [v for of_frame in variables for v in of_frame.values()]
    made = None
    if len(alive) == 2:
        both = yes.lines, no.lines
        made = selected(r, node.test, test.text, both, all_, variables[0])
    if made is not None:
        r.lines += made
    else:
        r.lines += [f"if ({test.text}) {{", yes.lines, "}"]
        if no.lines:
            r.lines += ["else {", no.lines, "}"]
    loaded(r, variables)
    if len(alive) == 1:
        for fact in test.true if yes in alive else test.false:
            r.facts.add(fact)


def _passes(r: Reader, node: ast.Return | ast.Break | ast.Continue) -> bool:
    """Whether a jump goes out of a `finally` or a `with`: what ends it is read first, in the place
    that the jump goes to. What is returned is a name already (`normalize.py`)."""
    frame = r.frame
    if not goes_out(frame, node):
        return False
    depth, ending = frame.held[-1]
    path, held = frame.path, frame.held
    frame.path, frame.held = [*path[:depth], ("past", node)], held[:-1]
    block(r, [*ending, node], "past")
    frame.path, frame.held = path, held
    return True


def _break(r: Reader, node: ast.Break) -> None:
    if not _passes(r, node):
        loops.break_(r, node)


def _continue(r: Reader, node: ast.Continue) -> None:
    if not _passes(r, node):
        loops.continue_(r, node)


def _with(r: Reader, node: ast.With) -> None:
    """`with np.errstate(...)` that asks for nothing (see `np_compile.errstate`), or the block of a
    manager that has been entered (`managers.py`)."""
    if isinstance(node, Entered):
        frame = r.frame
        frame.held.append((len(frame.path), node.ending))
        frame.path.append(("with", node))
        block(r, node.body, "body")
        frame.path.pop()
        frame.held.pop()
        if not frame.dead:
            frame.path.append(("past", node))
            block(r, node.ending, "past")
            frame.path.pop()
        return
    for x in node.items:
        call = x.context_expr
        if x.optional_vars is not None or not isinstance(call, ast.Call) or call.args:
            raise Unreadable("with")
        f = expression(r, call.func)
        words = [k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)]
        quiet = len(words) == len(call.keywords) and set(words) <= {"ignore", "warn"}
        quiet = quiet and not any(
            k.arg in ("all", "under") and w == "warn"
            for k, w in zip(call.keywords, words, strict=True)
        )
        if not isinstance(f, Known) or f.value is not np.errstate or not quiet:
            raise Unreadable("with")
    r.frame.path.append(("with", node))
    block(r, node.body, "body")
    r.frame.path.pop()


# Comprehensions


def comprehension(
    r: Reader, node: ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp, by: str = "",
    start: Value | None = None,
) -> Value:  # fmt: skip
    """A list, a dict or a set, made by a loop; or what `sum`, `any` or `all` makes of the items.
    by: which of these. start: what a sum begins with."""
    if any(isinstance(x, ast.NamedExpr) for x in walk(node)):
        raise Unreadable(":= in a comprehension, which binds a name of the function")
    # Names that begin with __ are no names that loops carry on, which a list needs not.
    hidden = f"{'_total' if by == 'sum' else '__list'}{node.lineno}_{node.col_offset}"
    at = {"lineno": node.lineno, "col_offset": node.col_offset,
          "end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}  # fmt: skip
    key = id(node), by, start is None
    tree = _comprehensions.get(key)
    if tree is None:
        name = ast.Name(hidden, ast.Load())
        inner: ast.stmt
        if by == "sum":
            inner = _added(hidden, node.elt, start is None)  # type: ignore[union-attr]
        elif by:  # the first item that decides
            found = ast.Assign([ast.Name(hidden, ast.Store())], ast.Constant(by == "any"))
            assert isinstance(node, ast.GeneratorExp)
            test = node.elt if by == "any" else ast.UnaryOp(ast.Not(), node.elt)
            inner = ast.If(test, [found, ast.Break()], [])
        elif isinstance(node, ast.DictComp):
            place = ast.Subscript(name, node.key, ast.Store())
            inner = ast.Assign([place], node.value)
        else:
            add = "add" if isinstance(node, ast.SetComp) else "append"
            inner = _put(ast.Attribute(name, add, ast.Load()), node.elt)
        for g in reversed(node.generators):
            for test in reversed(g.ifs):
                inner = ast.If(test, [inner], [])
            inner = ast.For(g.target, g.iter, [inner], [])
        for x in walk(inner):
            if not hasattr(x, "lineno") and isinstance(x, (ast.stmt, ast.expr)):
                for k, v in at.items():
                    setattr(x, k, v)
        tree = _comprehensions[key] = (inner, node)
    frame = r.frame
    whole, env = frame.whole, dict(frame.env)
    r.here = (id(node), r.inlined)
    names = assigned([tree[0]])
    scope = dict(frame.scope)
    frame.scope = {**scope, **dict.fromkeys(names), hidden: None}
    frame.whole = False
    inside, frame.inside = frame.inside, frame.inside.union(names)
    made, frame.made = frame.made, set()
    r.comprehensions.append(node)
    try:
        made_of = {ast.DictComp: dict, ast.SetComp: set}.get(type(node))
        if by == "sum":
            frame.env[hidden] = Known(None) if start is None else start
            r.totals.add(hidden)
        elif by:
            frame.env[hidden] = python(by == "all")
        else:
            frame.env[hidden] = new_list(r, []) if made_of is None else new_table(r, made_of, ())
        apart = of_generator(r, tree[0])
        if apart is None:
            statement(r, tree[0])
        else:
            block(r, apart, "apart")
        result = frame.env[hidden]
        if by == "sum":
            result = python(0) if result == Known(None) else certain(r, result)
            if builtins.COMPENSATES and isinstance(result, Num) and "float" in result.kinds:
                raise Unreadable("a sum of floats that are no list")
    finally:
        r.comprehensions.pop()
        frame.whole, frame.scope, frame.inside = whole, scope, inside
        frame.made |= made
    frame.env = {k: env[k] if k in names else v for k, v in frame.env.items() if k in env}
    return result


def _put(add: ast.expr, item: ast.expr) -> ast.stmt:
    """What adds an item to a list or a set; by branches where it is one thing or another."""
    if isinstance(item, ast.IfExp):
        return ast.If(item.test, [_put(add, item.body)], [_put(add, item.orelse)])
    return ast.Expr(ast.Call(add, [item], []))


_comprehensions: dict[tuple[int, str, bool], tuple[ast.stmt, ast.AST]] = {}


def _added(name: str, item: ast.expr, from_zero: bool) -> ast.stmt:
    """The item is added to a sum; from_zero: which is None before the first one: that is added to
    0."""
    to: list[ast.expr] = [ast.Name(name, ast.Store())]
    is_first = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [ast.Constant(None)])
    first = ast.Assign(to, ast.BinOp(ast.Constant(0), ast.Add(), item))
    other = ast.Assign(to, ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), item))
    return ast.If(is_first, [first], [other]) if from_zero else other


_READERS = {
    ast.Assign: assignments.assign, ast.AnnAssign: assignments.annotated,
    ast.AugAssign: assignments.augmented, ast.Expr: _expr, ast.Return: _return, ast.Pass: _pass,
    ast.Assert: _assert, ast.Raise: _raise, ast.If: _if, ast.For: loops.for_,
    ast.While: loops.while_, ast.Break: _break, ast.Continue: _continue,
    ast.Try: catching.try_, ast.With: _with, Entered: _with, ast.FunctionDef: _def,
    ast.Delete: assignments.deleted, ast.Nonlocal: _nonlocal, ast.Import: _import,
    ast.ImportFrom: _import,
}  # fmt: skip
