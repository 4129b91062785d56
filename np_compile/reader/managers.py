"""Context managers, as statements that do the same.

`with C() as x: b` becomes `m = C()`, `x = m.__enter__()`, and an `Entered` block: b, and what ends
it. Where compiled code leaves in b, Python goes on in a `with` of the manager that was entered. One
that `contextlib.contextmanager` makes of a generator becomes the generator's statements, with b in
the place of its `yield`: what b raises is raised there, as `contextlib` does. `return`, `break` and
`continue` that go out of a `with` or of a `try` with `finally` run what ends it first.
"""

from __future__ import annotations

import ast
import contextlib
import copy
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from .expressions import expression
from .generators import gives, is_generator, opened
from .objects import class_of
from .read import Frame, Reader, dotted
from .source import written
from .values import Bound, Known, Unreadable, Value
from .walk import children, walk

_BY_GENERATOR = contextlib.contextmanager(lambda: iter(())).__code__
_OTHERS = ("numpy", "contextlib")
_LOOPS = ("for", "while", "unrolled")


class Entered(ast.With):
    """The block of a manager that was entered, as Python has it where compiled code leaves
    (`resume.Entered`). ending: what compiled code does at its end."""

    ending: list[ast.stmt]


def goes_out(frame: Frame, node: ast.stmt) -> bool:
    """Whether a jump goes out of the innermost `finally` or `with` of the function."""
    if not frame.held:
        return False
    inside = frame.path[frame.held[-1][0] :]
    return isinstance(node, ast.Return) or not any(step[0] in _LOOPS for step in inside)


def named(r: Reader, node: ast.expr) -> Any:
    """The value of a dotted name; nothing is written or read, whatever a property on the way to it
    does. None of another expression."""
    if not dotted(node):
        return None
    saved, missing = r.save(), set(r.missing)
    try:
        with r.at_statement():
            return expression(r, node)
    except Unreadable:
        return None
    finally:
        r.restore(saved)
        r.missing = missing


def function_of(r: Reader, call: ast.Call) -> tuple[Any, list[ast.expr]]:
    """What a call is of, and its arguments: of a method, its function, and the object too."""
    f = named(r, call.func)
    if isinstance(f, Known):
        return f.value, call.args
    if isinstance(f, Bound) and isinstance(call.func, ast.Attribute):
        kind = class_of(f.owner)
        method = written(f.more.get("f") or getattr(kind, f.name, None)) if kind else None
        if isinstance(method, FunctionType):
            return method, [call.func.value, *call.args]
    return None, call.args


def apart(r: Reader, node: ast.With) -> list[ast.stmt] | None:
    """A `with` as other statements; None of one that is read as it stands, or not at all."""
    if isinstance(node, Entered):
        return None
    cache = r.entry.normalized
    if len(node.items) > 1:
        key: Any = (id(node), "with")
        make = lambda: _nested(node)  # noqa: E731
    else:
        of = node.items[0].context_expr
        f: Any = None
        args: list[ast.expr] = []
        if isinstance(of, ast.Call):
            f, args = function_of(r, of)
        key = (id(node), f)
        if isinstance(f, FunctionType) and f.__code__ is _BY_GENERATOR:
            make = lambda: _by_generator(r, node, f, args)  # noqa: E731
        elif f is contextlib.suppress:
            make = lambda: _suppressed(node, args)  # noqa: E731
        elif _may_be_manager(f, named(r, of)):
            make = lambda: _entered(r, node)  # noqa: E731
        else:
            return None
    if key not in cache:
        made = make()
        for x in made:
            ast.copy_location(x, node)
            ast.fix_missing_locations(x)
        cache[key] = (made, node)
    return cache[key][0]


def _may_be_manager(f: Any, x: Value | None) -> bool:
    """Whether what is called, or named, is the user's: a class of managers, what gives one, or
    one."""
    kind = f if isinstance(f, type) else class_of(x) if x is not None else None
    of: Any = f if kind is None else kind
    if not isinstance(of, (type, FunctionType)) or of.__module__.split(".")[0] in _OTHERS:
        return False
    found = [getattr(kind, name, None) for name in ("__enter__", "__exit__")]
    return kind is None or all(isinstance(written(g), FunctionType) for g in found)


def _nested(node: ast.With) -> list[ast.stmt]:
    inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
    return [ast.With(node.items[:1], [inner])]


def _suppressed(node: ast.With, args: Sequence[ast.expr]) -> list[ast.stmt]:
    if node.items[0].optional_vars is not None:
        raise Unreadable("what suppress gives")
    kinds = ast.Tuple(list(args), ast.Load())
    return [ast.Try(node.body, [ast.ExceptHandler(kinds, None, [ast.Pass()])], [], [])]


def _entered(r: Reader, node: ast.With) -> list[ast.stmt]:
    item = node.items[0]
    name = r.hidden("with", item.context_expr)
    enter = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "__enter__", ast.Load()), [], [])
    leave = ast.Attribute(ast.Name(name, ast.Load()), "__exit__", ast.Load())
    ending = ast.Expr(ast.Call(leave, [ast.Constant(None)] * 3, []))
    goes_on = ast.Call(ast.Name("__entered", ast.Load()), [ast.Name(name, ast.Load())], [])
    block = Entered([ast.withitem(goes_on)], node.body)
    block.ending = [ast.copy_location(ending, node)]
    ast.fix_missing_locations(block.ending[0])
    return [
        ast.Assign([ast.Name(name, ast.Store())], item.context_expr), _bound(item, enter), block,
    ]  # fmt: skip


def _bound(item: ast.withitem, value: ast.expr) -> ast.stmt:
    target = item.optional_vars
    return ast.Expr(value) if target is None else ast.Assign([target], value)


def _by_generator(
    r: Reader, node: ast.With, f: FunctionType, args: Sequence[ast.expr]
) -> list[ast.stmt]:
    """The statements of a generator with one `yield`, with the block in its place."""
    g: Any = vars(f)["__wrapped__"]
    if not is_generator(g):
        raise Unreadable(f"{g.__name__}, which is no generator")
    r.entry.watch(("function", g, "__code__"), g.__code__)
    r.entry.watch(("function", g, "__defaults__"), g.__defaults__)
    call = node.items[0].context_expr
    made, body = opened(r, call, g, args, f"{r.hidden('with', node.items[0].context_expr)}_")
    inside = [x for part in body for x in walk(part)]
    if sum(map(_is_yield, inside)) != 1 or any(isinstance(x, ast.Return) for x in inside):
        raise Unreadable(f"{g.__name__}, which returns, or gives not once")
    return [*made, *_in_place(body, node, _jumps_out(node.body))]


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom))


def _in_place(body: Sequence[ast.stmt], node: ast.With, jumps: bool) -> list[ast.stmt]:
    """jumps: whether the block may end by a jump, which runs what is in `finally`, but nothing
    else behind it."""
    (k, x) = next((k, x) for k, x in enumerate(body) if gives(x))
    if isinstance(x, ast.Expr) and isinstance(x.value, ast.Yield):
        given = _bound(node.items[0], x.value.value or ast.Constant(None))
        middle = [ast.copy_location(given, node), *node.body]
    elif isinstance(x, ast.Try) and any(map(gives, x.body)) and not (jumps and x.orelse):
        x = copy.copy(x)
        x.body = _in_place(x.body, node, jumps)
        middle = [x]
    else:
        raise Unreadable("a yield in a loop, a branch or an expression")
    if jumps and body[k + 1 :]:
        raise Unreadable("a return, break or continue that goes by the end of a generator")
    return [*body[:k], *middle, *body[k + 1 :]]


def _jumps_out(nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements may end by `return`, `break` or `continue`."""
    waiting: list[tuple[ast.AST, bool]] = [(x, False) for x in nodes]
    while waiting:
        x, in_loop = waiting.pop()
        if isinstance(x, ast.Return) or (isinstance(x, (ast.Break, ast.Continue)) and not in_loop):
            return True
        in_loop = in_loop or isinstance(x, (ast.For, ast.While))
        if not isinstance(x, (ast.FunctionDef, ast.Lambda)):
            waiting += [(y, in_loop) for y in children(x)]
    return False
