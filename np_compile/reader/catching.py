"""`try`: what is raised and caught in what is read.

A check that fails leaves compiled code, and Python raises. Where it is known what that would be,
and that a `try` around it catches it, compiled code goes to what catches it instead: all that a
statement has done before such a check is to ask. The same holds for `raise` of an exception that is
made of nothing that could fail.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .managers import named
from .read import Frame, Reader
from .values import Known, Num, Unreadable, Value
from .walk import walk
from .ways import Names, Way, joined, loaded

_LOOPS = ("for", "while")
# Exceptions that ask for arguments of their own, or that end more than a function.
_OTHERS = (UnicodeError, BaseExceptionGroup, ImportError, SyntaxError, OSError)
_TRIED: dict[str, Any] = {"int": 1, "float": 1.0, "float64": 1.0, "bool": True}


@dataclass
class Catch:
    """A `try` whose body is being read. depth: how long its path is. kinds: of each handler, what
    it catches; None where it is Python's. places: where something is caught: by which handler, the
    names there, and lines that will store them. labels: of the handlers."""

    frame: Frame
    depth: int
    scopes: int
    kinds: list[Any]
    labels: list[str]
    places: list[tuple[int, list[Names], list]] = field(default_factory=list)


def try_(r: Reader, node: ast.Try) -> None:
    """What is tried. What is not caught in compiled code has it leave."""
    if node.finalbody or not node.handlers or r.is_called:
        _tried(r, node)
        return
    frame = r.frame
    catch = Catch(
        frame, len(frame.path), len(r.owned), [_caught_by(r, h) for h in node.handlers],
        [r.fresh("caught") for _ in node.handlers],
    )  # fmt: skip
    saved, before = r.save(), r.snapshot()
    r.catches.append(catch)
    try:
        _tried(r, node)
        if not catch.places:
            return
        r.restore(saved)
        r.set_names(before)
        catch.places.clear()
        lines: list = []
        with r.elsewhere(lines), r.scope():
            catch.scopes = len(r.owned) - 1
            _part(r, node, "body")
            r.catches.remove(catch)
            _part(r, node, "orelse")
            releases = r.releases(len(r.owned) - 1)
        ways = [Way(lines, r.snapshot(), frame.dead, releases)]
    finally:
        if catch in r.catches:
            r.catches.remove(catch)
    starts = []
    for k, handler in enumerate(node.handlers):
        places = [(names, to) for of, names, to in catch.places if of == k]
        if places:
            starts.append(catch.labels[k])
            ways.append(_handled(r, handler, before, places))
    variables = joined(r, before, ways)
    end = r.fresh("tried")
    r.lines += ["{", ways[0].lines, "}"]
    for label, way in zip(starts, ways[1:], strict=True):
        r.lines += [f"goto {end};", f"{label}: ;", "{", way.lines, "}"]
    r.lines.append(f"{end}: ;")
    loaded(r, variables)


def _tried(r: Reader, node: ast.Try) -> None:
    for part in ("body", "orelse", "finalbody"):
        _part(r, node, part)


def _part(r: Reader, node: ast.Try, part: str) -> None:
    frame = r.frame
    if frame.dead:
        return
    held = bool(node.finalbody) and part != "finalbody"
    if held:
        frame.held.append((len(frame.path), node.finalbody))
    frame.path.append(("try", node, part))
    with r.branch():  # what cannot be read in it may be what is to be caught
        r.grammar.block(r, getattr(node, part), part)
    frame.path.pop()
    if held:
        frame.held.pop()


def _handled(
    r: Reader, handler: ast.ExceptHandler, before: list[Names],
    places: Sequence[tuple[list[Names], list]],
) -> Way:  # fmt: skip
    """A handler, for the names at the places that come to it."""
    frame = r.frame
    ways = [Way(to, names, False, []) for names, to in places]
    lines: list = []
    frame.dead = False
    variables = joined(r, before, [*ways, Way([], before, False, [])])
    with r.elsewhere(lines), r.scope(), r.branch():
        loaded(r, variables)
        frame.path.append(("past", handler))
        r.grammar.block(r, handler.body, "past")
        frame.path.pop()
        releases = r.releases(len(r.owned) - 1)
    return Way(lines, r.snapshot(), frame.dead, releases)


def _caught_by(r: Reader, handler: ast.ExceptHandler) -> Any:
    """The classes that a handler catches; None if Python has to make what it does: where it asks
    for the exception, or raises."""
    asks = (ast.Raise, ast.Try, ast.With)
    inside = [x for part in handler.body for x in walk(part)]
    if any(isinstance(x, asks) or (isinstance(x, ast.Name) and x.id == handler.name)
           for x in inside):  # fmt: skip
        return None
    if handler.type is None:
        return Exception
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    found = [named(r, part) for part in parts]
    kinds = tuple(x.value for x in found if isinstance(x, Known) and isinstance(x.value, type))
    return kinds if len(kinds) == len(parts) else None


def place(r: Reader, kind: type) -> str | None:
    """The C that goes to what catches an exception of this class here; None if that is Python's."""
    for catch in reversed(r.catches):
        inner = r.frames[r.frames.index(catch.frame) + 1 :]
        paths = [catch.frame.path[catch.depth :], *(f.path for f in inner)]
        if any(step[0] in _LOOPS for path in paths for step in path):
            return None
        if any(f.held for f in inner) or any(at >= catch.depth for at, _ in catch.frame.held):
            return None
        for k, kinds in enumerate(catch.kinds):
            if kinds is None:
                return None
            if issubclass(kind, kinds):
                return _goes(r, catch, k)
    return None


def _goes(r: Reader, catch: Catch, k: int) -> str:
    outermost = r.frames[0]
    frames = [catch.frame] if catch.frame is outermost else [catch.frame, outermost]
    lines: list = []
    catch.places.append((k, [dict(f.env) for f in frames], lines))
    r.lines += ["{", lines, *r.releases(catch.scopes), f"goto {catch.labels[k]};", "}"]
    return catch.labels[k]


def caught(r: Reader, node: ast.Raise) -> bool:
    """Whether what a statement raises is caught in what is read: the C that goes there is made."""
    if node.exc is None or node.cause is not None or not r.catches:
        return False
    call = node.exc if isinstance(node.exc, ast.Call) else ast.Call(node.exc, [], [])
    x = named(r, call.func)
    kind = x.value if isinstance(x, Known) else None
    if not isinstance(kind, type) or not issubclass(kind, Exception) or not _is_plain(kind):
        return False
    if call.keywords or not all(_is_made(r, a) for a in call.args):
        return False
    return place(r, kind) is not None


def asks_once(r: Reader, node: ast.stmt) -> bool:
    """Whether a statement that asks a dict without items does nothing else before, and what it
    raises is caught in what is read: the C that goes there is made."""
    inside = list(walk(node))
    if not all(isinstance(x, _SIMPLE) for x in inside):
        return False
    asked = [x for x in inside if isinstance(x, ast.Subscript)]
    return len(asked) == 1 and place(r, KeyError) is not None


_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Subscript, ast.Name, ast.Constant, ast.Tuple,
           ast.expr_context, ast.operator)  # fmt: skip


def _is_plain(kind: type[Exception]) -> bool:
    """Whether nothing of the user's runs where it is made, and any arguments do."""
    plain = [getattr(c, "__module__", "") == "builtins" for c in kind.__mro__]
    names = ("__new__", "__init__", "__init_subclass__", "__del__")
    own = [c for c, is_builtin in zip(kind.__mro__, plain, strict=True) if not is_builtin]
    made = any(name in vars(c) for c in own for name in names)
    return type(kind) is type and not made and not issubclass(kind, _OTHERS)


def _is_made(r: Reader, node: ast.expr) -> bool:
    """Whether an argument of an exception is made without a fault; C is made of what may be one."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.JoinedStr):
        return all(_is_shown(r, x) for x in node.values)
    return isinstance(node, (ast.Name, ast.Attribute)) and _read(r, node) is not None


def _is_shown(r: Reader, node: ast.expr) -> bool:
    if not isinstance(node, ast.FormattedValue):
        return isinstance(node, ast.Constant)
    if not isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    x = _read(r, node.value)
    if not isinstance(x, Num) and not (isinstance(x, Known) and type(x.value) is str):
        return False
    if node.format_spec is None:
        return True
    parts = node.format_spec.values  # type: ignore[attr-defined]
    tried = _TRIED.get(x.kind or "") if isinstance(x, Num) else None
    constant = all(isinstance(p, ast.Constant) for p in parts)
    if tried is None or node.conversion != -1 or not constant:
        return False
    try:
        format(tried, "".join(p.value for p in parts))
    except ValueError:
        return False
    return True


def _read(r: Reader, node: ast.expr) -> Value | None:
    try:
        return r.grammar.anything(r, node)
    except Unreadable:
        return None
