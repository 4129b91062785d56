"""Smaller programs that still show a finding: statements and parts of expressions are dropped."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator


def minimised(source: str, fails: Callable[[str], bool], seconds: float) -> str:
    """A source in which nothing more can be dropped, or as far as the time allowed."""
    ends = time.monotonic() + seconds
    best = source
    changed = True
    while changed and time.monotonic() < ends:
        changed = False
        at = 0
        while time.monotonic() < ends:
            trial = _trial(best, at)
            if trial is None:
                break
            if trial != best and fails(trial):
                best, changed = trial, True
            else:
                at += 1
    return best


def _trial(source: str, at: int) -> str | None:
    """The source with its change number `at`; None if there are not as many."""
    tree = ast.parse(source)
    for k, change in enumerate(_changes(tree)):
        if k == at:
            change()
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return None


def _changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """What may be done to a tree, the largest cuts first. `data` stays as it is."""
    nodes_of = [
        node for top in tree.body if getattr(top, "name", "") != "data" for node in ast.walk(top)
    ]
    blocks = [
        (nodes, k)
        for node in [tree, *nodes_of]
        for part in ("body", "orelse", "finalbody", "handlers")
        if isinstance(nodes := getattr(node, part, None), list)
        for k in reversed(range(len(nodes)))
    ]
    for nodes, k in blocks:
        yield lambda nodes=nodes, k=k: _drop(nodes, k)
    for nodes, k in blocks:
        inner = getattr(nodes[k], "body", None)
        if isinstance(inner, list) and not isinstance(nodes[k], (ast.FunctionDef, ast.ClassDef)):
            yield lambda nodes=nodes, k=k, inner=inner: _replace(nodes, k, inner)
    for node in nodes_of:
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and name != "func":
                for new in _simpler(value):
                    yield lambda node=node, name=name, new=new: setattr(node, name, new)
            elif isinstance(value, list) and name in ("elts", "args", "values", "keywords"):
                for k, item in enumerate(value):
                    yield lambda value=value, k=k: value.pop(k)
                    if isinstance(item, ast.expr):
                        for new in _simpler(item):
                            yield lambda value=value, k=k, new=new: value.__setitem__(k, new)


def _drop(nodes: list, k: int) -> None:
    del nodes[k]
    if not nodes:
        nodes.append(ast.Pass())


def _replace(nodes: list, k: int, inner: list) -> None:
    nodes[k : k + 1] = inner


def _simpler(e: ast.expr) -> Iterator[ast.expr]:
    """Expressions that might take the place of one: its parts, and small constants."""
    if isinstance(getattr(e, "ctx", None), (ast.Store, ast.Del)):
        if isinstance(e, ast.Tuple) and len(e.elts) == 1:
            yield e.elts[0]
        return
    for part in ast.iter_child_nodes(e):
        if isinstance(e, ast.Call) and part is e.func:
            part = getattr(part, "value", part)  # of `x.copy()`: x
            if (isinstance(part, ast.Name) and part.id in ("np", "math")) or part is e.func:
                continue
        if isinstance(part, ast.expr):
            yield copy.deepcopy(part)
    if isinstance(e, ast.Constant) and isinstance(e.value, int) and e.value > 2:
        yield ast.Constant(e.value // 2)
    if isinstance(e, (ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Subscript)):
        yield ast.Constant(1)
