"""Walks over syntax trees. A reading asks the same of the same statements again and again: at each
loop, and at each place where compiled code may leave. So it is remembered: nobody changes a tree
that was asked for."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

Names = frozenset[str]
_MEMORY = 1 << 14  # nodes of which is known what they mention


@functools.lru_cache(_MEMORY)
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all below it, as `ast.walk` gives them, but for what says how a name is meant."""
    found = [node]
    for x in found:
        found += children(x)
    return tuple(found)


@functools.lru_cache(4 * _MEMORY)
def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes that one is made of, as `ast.iter_child_nodes` gives them, likewise."""
    found: list[ast.AST] = []
    for name in node._fields:
        below = getattr(node, name, None)
        if type(below) is list:
            found += [y for y in below if isinstance(y, ast.AST)]
        elif isinstance(below, ast.AST) and name != "ctx":
            found.append(below)
    return tuple(found)


@functools.lru_cache(_MEMORY)
def names_in(node: ast.AST) -> Names:
    """The names that are mentioned."""
    return frozenset([x.id for x in walk(node) if isinstance(x, ast.Name)])


@functools.lru_cache(_MEMORY)
def loads(node: ast.AST | None) -> Names:
    """Names that are asked for, or deleted."""
    if node is None:
        return frozenset()
    return frozenset(
        [x.id for x in walk(node) if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Store)]
    )


@functools.lru_cache(_MEMORY)
def stores(node: ast.AST | None) -> Names:
    """Names that are bound in any case: not those of an element or an attribute."""
    if node is None:
        return frozenset()
    return frozenset(
        [x.id for x in walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)]
    )


@functools.lru_cache(_MEMORY)
def count_loads(node: ast.AST) -> Mapping[str, int]:
    """How often names are asked for."""
    counts: Counter[str] = Counter()
    for x in walk(node):
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load):
            counts[x.id] += 1
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            counts[x.target.id] += 1
    return MappingProxyType(counts)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@functools.lru_cache(_MEMORY)
def shared_names(function: ast.AST) -> Names:
    """Names that other scopes see, or that are seen elsewhere."""
    found: set[str] = set()
    for node in walk(function):
        if node is not function and isinstance(node, _SCOPES):
            found |= names_in(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= set(node.names)
    return frozenset(found)
