"""The tree of a function is its own, or there is none."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import warnings

import pytest

import np_compile
from np_compile.reader import source
from np_compile.reader.values import Unreadable
from np_compile.reader.walk import children, walk

TEXT = """
from __future__ import annotations
import functools


def keep(f):
    return f


def plain(x):
    return x + 1


def calls(x):
    return functools.reduce(max, x)


@keep
@functools.lru_cache(maxsize=None)
def decorated(x):
    return x + 2


if True:
    def within(x):
        return x + 3


class Thing:
    def method(self, x):
        return x + self.__secret(x)


def outer(y):
    def inner(x: Unknown) -> Unknown:
        return x + y
    return inner


one, two = (lambda x: x + 1), (lambda x: x + 2)
alone = lambda x: x + 3
nested = lambda x: (lambda y: y + x)
chosen = [lambda x: (
    x - 1), lambda x: x if x > 0 else -x]
"""


@pytest.fixture
def module(tmp_path):
    """A module from a file, and the file."""
    path = tmp_path / "written.py"

    def load(text):
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("written", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    source._tree.cache_clear()  # equal code of another file is known
    yield load, path
    linecache.checkcache(str(path))


def shown(f):
    return ast.unparse(source.tree(f)).splitlines()[-1].strip()


def test_functions_of_all_kinds(module):
    made = module[0](TEXT)
    assert shown(made.plain) == "return x + 1"
    assert shown(made.decorated.__wrapped__) == "return x + 2"
    assert shown(made.within) == "return x + 3"
    assert shown(made.Thing.method) == "return x + self.__secret(x)"
    assert shown(made.outer) == "return inner"
    assert shown(made.outer(1)) == "return x + y"
    assert shown(made.alone) == "return x + 3"
    assert shown(made.one) == "return x + 1"
    assert shown(made.two) == "return x + 2"
    assert shown(made.nested) == "return lambda y: y + x"
    assert shown(made.nested(1)) == "return y + x"
    assert shown(made.chosen[1]) == "return x if x > 0 else -x"


@pytest.mark.parametrize(
    "change",
    [
        ("return x + 1", "return x - 1"),
        ("return x + 1", "return y + 1"),
        ("return x + 1", "return x + 9"),
        ("return x + 1", "return x + True"),
        ("def plain", "\ndef plain"),
    ],
)
def test_a_file_that_has_changed(module, change):
    load, path = module
    made = load(TEXT)
    path.write_text(TEXT.replace(*change))
    with pytest.raises(Unreadable):
        source.tree(made.plain)


def test_a_function_alone_is_compiled(module, monkeypatch):
    made = module[0](TEXT)

    def whole(*_):
        raise AssertionError("the whole file is compiled")

    monkeypatch.setattr(source, "_codes", whole)
    assert shown(made.plain) == "return x + 1"
    assert shown(made.calls) == "return functools.reduce(max, x)"
    assert shown(made.within) == "return x + 3"
    assert shown(made.Thing.method) == "return x + self.__secret(x)"
    assert shown(made.outer) == "return inner"
    assert shown(made.outer(1)) == "return x + y"


def test_a_walk_goes_as_pythons_does():
    tree = ast.parse(TEXT)
    assert [*walk(tree)] == [x for x in ast.walk(tree) if not isinstance(x, ast.expr_context)]
    for x in walk(tree):
        below = [y for y in ast.iter_child_nodes(x) if not isinstance(y, ast.expr_context)]
        assert [*children(x)] == below


FILE = '''
from math import (
    floor,
    sqrt,
)
import functools

OTHER = "x" "y"


def plain(x):
    return sqrt(x) + floor(x)


@functools.lru_cache(
    maxsize=3,
)
def decorated(
    x,
):
    # in between

    return x + 1


class Kind:
    size = 3

    def method(self, x):
        def inner(y):
            return y + x
        return inner(x)


def misleading(x):
    text = """
def other(x):
"""
    return text, x
'''


def test_a_statement_is_parsed_without_the_rest_of_its_file(tmp_path, monkeypatch):
    path = tmp_path / "several.py"
    path.write_text(FILE)
    names: dict = {}
    exec(compile(FILE, str(path), "exec"), names)
    parsed, parse = [], source._file
    monkeypatch.setattr(source, "_file", lambda *of: parsed.append(of[1]) or parse(*of))
    for f in (names["plain"], names["decorated"].__wrapped__, names["Kind"].method):
        assert source.tree(f).name == f.__name__
    assert FILE not in parsed
    assert source.tree(names["misleading"]).name == "misleading"
    assert FILE in parsed


def test_what_python_has_warned_of_is_no_error_later(module):
    """As where a source was compiled before warnings became errors."""
    load, _ = module
    text = (
        "def f(x):\n    for i in range(3):\n        x = x + i if x is not 0 else x\n    return x\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = load(text)
    fast = np_compile.compile(made.f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [fast(2.0) for _ in range(3)] == [made.f(2.0)] * 3
        assert source.tree(made.f).name == "f"
