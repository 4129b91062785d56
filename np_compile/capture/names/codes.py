"""What code objects do with names: which they mention, which they compare."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR")


def _each(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _each(constant)


def _pushes_null(step: dis.Instruction) -> bool:
    """Whether a global is loaded to be called."""
    return bool((step.arg or 0) & 1)


@functools.cache
def mentioned(code: types.CodeType) -> tuple[str, ...]:
    """The global names that a code object and those inside it mention."""
    return tuple(sorted({name for c in _each(code) for name in c.co_names}))


@functools.cache
def compared(code: types.CodeType) -> frozenset[str]:
    """The names, global and of cells, that a code object and those inside it do more with than call
    what they lead to, or ask it for an attribute: they may compare it with what lies elsewhere."""
    found: set[str] = set()
    for c in _each(code):
        steps = list(dis.get_instructions(c))
        for before, step, after in zip((None, *steps), steps, (*steps[1:], None), strict=False):
            if step.opname not in _LOADS or (after and after.opname in _OF_ATTRIBUTES):
                continue
            called = any(s and s.opname == "PUSH_NULL" for s in (before, after))
            if not (_pushes_null(step) if step.opname == "LOAD_GLOBAL" else called):
                found.add(step.argval)
    return frozenset(found)


@functools.cache
def compared_attributes(code: types.CodeType) -> frozenset[str]:
    """As `compared`, of attributes: those that are more to code than what it calls."""
    found: set[str] = set()
    for c in _each(code):
        steps = list(dis.get_instructions(c))
        is_called = False  # what the chain of attributes leads to
        for before, step, after in zip((None, *steps), steps, (*steps[1:], None), strict=False):
            if step.opname in _LOADS:
                in_load = step.opname == "LOAD_GLOBAL" and _pushes_null(step)
                is_called = in_load or bool(before and before.opname == "PUSH_NULL")
            elif step.opname == "LOAD_ATTR":
                in_load = sys.version_info >= (3, 12) and _pushes_null(step)
                called = is_called or in_load or bool(after and after.opname == "PUSH_NULL")
                if not called and not (after and after.opname in _OF_ATTRIBUTES):
                    found.add(step.argval)
            elif step.opname == "IMPORT_FROM":
                found.add(step.argval)
            else:
                is_called = False
    return frozenset(found)


@functools.cache
def compared_by_identity(code: types.CodeType) -> frozenset[tuple[str, str | None]]:
    """The global names, each with the attribute of it or None, that code compares by `is`."""
    found: set[tuple[str, str | None]] = set()
    for c in _each(code):
        steps = list(dis.get_instructions(c))
        for i, step in enumerate(steps):
            if step.opname != "IS_OP":
                continue
            before = steps[max(i - 4, 0) : i]  # two operands, of a name and an attribute at most
            for name, attribute in zip(before, (*before[1:], step), strict=True):
                if name.opname == "LOAD_GLOBAL" and not _pushes_null(name):
                    of = attribute.argval if attribute.opname == "LOAD_ATTR" else None
                    found.add((name.argval, of))
    return frozenset(found)
