"""Whole files as users have them, each function in them compiled, nested ones and methods too."""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import io
import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from np_compile import config

from .support import first
from .test_whole_programs import quiet, same  # noqa: F401 - a fixture
from .whole_programs import PROGRAMS, Whole

FOLDER = Path(__file__).parent / "whole_files"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
PACKAGE = f"{__package__}.whole_files"


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Those that are no generators, which `compile` refuses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not _yields(node):
            yield node


def _yields(node: ast.AST) -> bool:
    inside = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
    return any(
        isinstance(child, (ast.Yield, ast.YieldFrom))
        or (not isinstance(child, inside) and _yields(child))
        for child in ast.iter_child_nodes(node)
    )


def all_compiled(name: str) -> types.ModuleType:
    """The module with `@compile` before each function, next to it."""
    path = FOLDER / f"{name}.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    defined = sorted((f.lineno, f.col_offset) for f in _functions(ast.parse("\n".join(lines))))
    for line, column in reversed(defined):
        lines.insert(line - 1, " " * column + "@np_compile.compile")
    at = lines.index("import numpy as np")
    text = "\n".join([*lines[:at], "import np_compile", *lines[at:]])
    module = types.ModuleType(f"{PACKAGE}.{name}_compiled")
    module.__package__ = PACKAGE
    module.__file__ = f"{path}.compiled"
    sys.modules[module.__name__] = module  # dataclasses look there
    linecache.cache[module.__file__] = len(text), None, text.splitlines(True), module.__file__
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def programs(name: str, compiled: bool) -> list[Whole]:
    """Those of a file, which is made or found; they are among all programs only as they stand."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    if not compiled:
        return [p for p in PROGRAMS if p.function.__module__ == module.__name__]
    before = len(PROGRAMS)
    all_compiled(name)
    made = PROGRAMS[before:]
    del PROGRAMS[before:]
    return made


@pytest.mark.parametrize("name", first(NAMES, "linear_programs", "autodiff", "finite_elements"))
def test_each_function_is_compiled(name):
    plain, fast = programs(name, False), programs(name, True)
    assert len(plain) == len(fast) > 0
    with config.patch(plain="never", loops="recorded", backend="eager"):
        for p, f in zip(plain, fast, strict=True):
            for k in range(2):
                mine, its = copy.deepcopy(p.arguments), copy.deepcopy(f.arguments)
                said, its_text = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(said):
                    want = p.function(*mine)
                with contextlib.redirect_stdout(its_text):
                    got = f.function(*its)
                same(got, want, f"call {k}")
                same(its, mine, f"arguments of call {k}")
                assert its_text.getvalue() == said.getvalue()
