"""The source of a function, as a syntax tree that is sure to belong to its code."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import linecache
import opcode
import types
import warnings
from collections import Counter, defaultdict, deque
from typing import Any

import numpy as np

from .values import Unreadable
from .walk import children, names_in, stores, walk


def code_of(text: Any, name: str, mode: str = "exec", flags: int = 0) -> Any:
    """The code of a text or a tree, or the tree of a text. What Python warns of in a source
    it has said when it compiled that; where warnings are errors this must not fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, name, mode, flags, dont_inherit=True)


@functools.lru_cache(64)
def _file(name: str, text: str) -> ast.Module:
    """The tree of a file."""
    tree: ast.Module = code_of(text, name, flags=ast.PyCF_ONLY_AST)
    return tree


@functools.lru_cache(64)
def _codes(name: str, text: str) -> dict[tuple, types.CodeType | None]:
    """As `_codes_of`, of a file."""
    return _codes_of(code_of(_file(name, text), name))


def _codes_of(module: types.CodeType) -> dict[tuple, types.CodeType | None]:
    """The code objects in that of a module, by name and place."""
    codes: dict[tuple, types.CodeType | None] = {}

    def visit(code: types.CodeType) -> None:
        key = _place(code)
        codes[key] = None if key in codes else code  # of two in one place, neither is sure
        for c in code.co_consts:
            if isinstance(c, types.CodeType):
                visit(c)

    visit(module)
    return codes


@functools.lru_cache(4096)
def _tree(code: types.CodeType) -> Any:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    text = "".join(lines)
    if not text:
        raise Unreadable("its source is not there")
    for part in (_statement_around(lines, code.co_firstlineno - 1), text):
        try:
            tree = _file(code.co_filename, part)
        except SyntaxError:
            continue
        for outer in tree.body:
            if _encloses(outer, code) and _compiles_to(tree, outer, code):
                return _checked(_node_of(outer, code))
    try:
        tree = _file(code.co_filename, text)
        found = _codes(code.co_filename, text).get(_place(code))
    except SyntaxError as e:
        raise Unreadable("its source is not there") from e
    if found is None or not _alike(found, code):
        raise Unreadable("its source has changed")
    if (node := _node_of(tree, code)) is None:
        raise Unreadable("its source is not there")
    return _checked(node)


_INNER = " \t\f\r\n#)]}"  # with which lines within a statement begin
_HEADS = ("def ", "async ", "class ")


def _statement_around(lines: list[str], at: int) -> str:
    """The text of a file with its imports and the statement that a line stands in alone, as far as
    can be seen from how lines begin: parsing takes as long as there is text."""
    made = ["\n"] * len(lines)
    is_open = goes_on = False  # an import in parentheses, or in several lines
    for k, line in enumerate(lines):
        if goes_on or line.startswith(("import ", "from ")):
            made[k] = line
            is_open = (is_open or "(" in line) and ")" not in line
            goes_on = is_open or line.endswith("\\\n")
    begin = min(at, len(lines) - 1)
    while begin > 0 and lines[begin][0] in _INNER:
        begin -= 1
    head = next(
        (k for k in range(begin, len(lines)) if lines[k].startswith(_HEADS)), begin
    ) if lines[begin].startswith("@") else begin  # fmt: skip
    end = begin + 1
    while end < len(lines) and (end <= head or lines[end][0] in _INNER):
        end += 1
    made[begin:end] = lines[begin:end]
    return "".join(made)


def _encloses(outer: ast.stmt, code: types.CodeType) -> bool:
    return _first_line(outer) <= code.co_firstlineno <= (outer.end_lineno or 0)


def _first_line(node: Any) -> int:
    return min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", [])]])


def _node_of(tree: Any, code: types.CodeType) -> Any:
    """The function of that name that stands in a tree where one of such code does; None without."""
    found = [x for x in walk(tree) if _stands_at(x, code)]
    if code.co_name != "<lambda>":
        return found[0] if found else None
    return min(found, key=_length, default=None)  # of several inside one another


def _stands_at(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        return (node.name, _first_line(node)) == (code.co_name, code.co_firstlineno)
    if not isinstance(node, ast.Lambda) or code.co_name != "<lambda>":
        return False
    x: Any = node.body
    first, last = (x.lineno, x.col_offset), (x.end_lineno, x.end_col_offset)
    return node.lineno == code.co_firstlineno and all(
        first <= (line, column) and (end, end_column) <= last
        for line, end, column, end_column in _positions(code)
    )


def _length(node: Any) -> tuple[int, int]:
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset


@functools.lru_cache(4096)
def _positions(code: types.CodeType) -> tuple:
    """The places of what code does in its file: where Python notes columns, lines and columns."""
    return tuple([p for p in code.co_positions() if None not in p and p[2:] != (0, 0)])


def _place(code: types.CodeType) -> tuple:
    """What tells a function from others in its file: several lambdas may stand on a line."""
    of_lambda = (_positions(code),) if code.co_name == "<lambda>" else ()
    return (code.co_name, code.co_firstlineno, *of_lambda)


def _compiles_to(tree: ast.Module, outer: ast.stmt, code: types.CodeType) -> bool:
    """Whether a statement of a module has one function of that name and line, with this code. It is
    compiled alone, but for the imports: the code says of which names these are."""
    imports = [x for x in tree.body if isinstance(x, (ast.Import, ast.ImportFrom))]
    module = ast.Module([*imports, outer], [])
    own = _codes_of(code_of(module, code.co_filename)).get(_place(code))
    return own is not None and _alike(own, code)


def _alike(found: types.CodeType, code: types.CodeType) -> bool:
    """Whether both do the same: the file may have got another constant meanwhile."""

    def same(x: Any, y: Any) -> bool:
        if isinstance(x, types.CodeType) and isinstance(y, types.CodeType):
            return _alike(x, y)
        return repr(x) == repr(y)

    alike = found.co_code == code.co_code and found.co_names == code.co_names
    constants = found.co_consts, code.co_consts
    return alike and len(constants[0]) == len(constants[1]) and all(map(same, *constants))


def tree(f: types.FunctionType, generator: bool = False) -> Any:
    """The tree of a function; Unreadable if there is none that is sure to be its own, or if it asks
    Python for its names. generator: whether it may be one."""
    if f.__code__.co_flags & _GENERATORS and not generator:
        raise Unreadable("yield in it")
    node = _tree(f.__code__)
    for name in getattr(node, "declared", ()):
        if name not in f.__globals__:
            raise Unreadable(f"the global {name!r}, which has no value yet")
    for name in _asking_for_names(node):
        known = getattr(builtins, name)
        if name not in own_names(f, node) and f.__globals__.get(name, known) is known:
            raise Unreadable(f"{name} in it, which sees its names")
    return node


def own_names(f: types.FunctionType, node: Any) -> tuple[str, ...]:
    """The names that are a function's own, of its parameters first. From Python 3.12 on its code
    has those of its comprehensions too, which may be others' outside of them."""
    foreign = _bound_in_comprehensions_alone(node)
    return tuple([
        n for n in (*f.__code__.co_varnames, *f.__code__.co_cellvars) if n not in foreign
    ])  # fmt: skip


@functools.lru_cache(4096)
def _bound_in_comprehensions_alone(node: Any) -> frozenset[str]:
    bound = {x.arg for x in walk(node.args) if isinstance(x, ast.arg)}
    found: set[str] = set()
    waiting: list[Any] = list(node.body)
    while waiting:
        x = waiting.pop()
        if isinstance(x, ast.comprehension):
            found |= stores(x.target)
            waiting += [x.iter, *x.ifs]
            continue
        if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load):
            bound.add(x.id)
        elif isinstance(x, ast.alias):
            bound.add((x.asname or x.name).partition(".")[0])
        else:  # functions, handlers of exceptions, patterns
            bound.update(filter(None, (getattr(x, "name", None), getattr(x, "rest", None))))
        inside: list = []  # of other scopes
        if isinstance(x, (ast.FunctionDef, ast.Lambda)):
            inside = x.body if isinstance(x.body, list) else [x.body]
        waiting += [y for y in children(x) if y not in inside]
    return frozenset(found - (bound - outer_names(node)))


@functools.lru_cache(4096)
def _asking_for_names(node: Any) -> frozenset[str]:
    """The names in a function of Python's functions that see the names of who calls them: those
    that compiled code has, or that Python needs no more, are not there."""
    mentioned = [x.id for x in walk(node) if isinstance(x, ast.Name) and x.id in _SEEING]
    harmless = [
        x.func.id
        for x in walk(node)
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id in _SEEING
        and len(x.args) + len(x.keywords) > _SEEING[x.func.id]
    ]  # fmt: skip
    return frozenset(n for n in mentioned if mentioned.count(n) > harmless.count(n))


# With how many arguments at most Python's functions see the names of who calls them.
_SEEING = {"locals": 0, "vars": 0, "dir": 0, "eval": 1, "exec": 1}


def made_in(f: types.FunctionType, node: Any) -> types.FunctionType:
    """The function that a `def` or a `lambda` in f makes, but for its cells: those of names that
    are f's own are empty."""
    name = getattr(node, "name", "<lambda>")
    found = [
        c for c in f.__code__.co_consts
        if isinstance(c, types.CodeType) and (c.co_name, c.co_firstlineno) == (name, node.lineno)
    ]  # fmt: skip
    values = [*node.args.defaults, *(x for x in node.args.kw_defaults if x is not None)]
    if len(found) != 1 or getattr(node, "decorator_list", []):
        raise Unreadable("a function that is made in it, with a decorator or beside another one")
    if not all(isinstance(x, ast.Constant) for x in values):
        raise Unreadable("a function that is made in it, with a default that is computed")
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    closure = tuple([cells.get(x) or types.CellType() for x in found[0].co_freevars])
    made = types.FunctionType(found[0], f.__globals__, name, None, closure)
    made.__defaults__ = tuple([x.value for x in node.args.defaults]) or None
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    made.__kwdefaults__ = {a.arg: x.value for a, x in named if x is not None} or None
    return made


@functools.lru_cache(4096)
def makes_functions(node: Any) -> bool:
    """Whether a function makes others."""
    inner = (ast.FunctionDef, ast.Lambda)
    return any(isinstance(x, inner) for part in node.body for x in walk(part))


_GENERATORS = 0x20 | 0x80 | 0x200  # the flags of a generator's code, a coroutine's
_REFUSED = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.ClassDef)
_BINDING = (ast.FunctionDef, ast.ExceptHandler, ast.alias, ast.MatchAs, ast.MatchStar)


@functools.lru_cache(4096)
def outer_names(node: Any) -> frozenset[str]:
    """The names of others that a function's `nonlocal` statements let it bind."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        x = waiting.pop()
        if isinstance(x, ast.Nonlocal):
            found.update(x.names)
        if not isinstance(x, (ast.FunctionDef, ast.Lambda)):
            waiting += children(x)
    return frozenset(found)


@functools.lru_cache(4096)
def nonlocals(node: Any) -> frozenset[str]:
    """The names that functions which a function makes bind by `nonlocal`."""
    return frozenset(n for x in walk(node) if isinstance(x, ast.Nonlocal) for n in x.names)


def stores_into_arguments(f: types.FunctionType) -> bool:
    """Whether a function is sure to store items or attributes of its arguments, by its source."""
    if f.__name__.startswith("__"):
        return False
    try:
        return _stores_into_arguments(_tree(f.__code__))
    except Unreadable:
        return False


@functools.lru_cache(4096)
def _stores_into_arguments(node: Any) -> bool:
    given = {a.arg for a in (*node.args.posonlyargs, *node.args.args)} - stores(node)
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        x = waiting.pop()
        if isinstance(x, (ast.For, ast.While, ast.With)):
            waiting += x.body
        targets: list[Any] = list(getattr(x, "targets", ()))
        targets += [x.target] if isinstance(x, ast.AugAssign) else []
        for target in (y for t in targets for y in (t.elts if isinstance(t, ast.Tuple) else [t])):
            root = target
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if root is not target and isinstance(root, ast.Name) and root.id in given:
                return True
    return False


@functools.lru_cache(4096)
def giving(node: Any) -> Any:
    """An `__init__` as a function that returns the object."""
    params = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if not params or params[0] in stores(node):
        raise Unreadable("an __init__ that binds the name of its object")
    made = _Giving(params[0]).changed(copy.deepcopy(node))
    return ast.fix_missing_locations(made)


class _Giving(ast.NodeTransformer):
    """`return` as `return self`, at the end too."""

    def __init__(self, name: str):
        self._name = name

    def changed(self, node: Any) -> Any:
        node.body = [self.visit(x) for x in node.body]
        node.body.append(ast.copy_location(self._given(), node.body[-1]))
        return node

    def _given(self) -> ast.Return:
        return ast.Return(ast.Name(self._name, ast.Load()))

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None and not _is_none(node.value):
            raise Unreadable("an __init__ that returns something")
        return ast.copy_location(self._given(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _without_global(node: Any) -> Any:
    """A function with items of `globals()` in the place of the names that it declares global."""
    found = [x for x in _own_scope(node) if isinstance(x, ast.Global)]
    if not found:
        return node
    names = frozenset(name for x in found for name in x.names)
    for x in _own_scope(node):
        hidden = (
            {getattr(x, "name", ""), getattr(x, "asname", "")} if isinstance(x, _BINDING)
            else stores(x.target) if isinstance(x, (ast.comprehension, ast.NamedExpr))
            else set()
        )  # fmt: skip
        inside = names_in(x) if isinstance(x, _FUNCTIONS) else set()
        if names & (hidden | inside) or "globals" in names:
            raise Unreadable("global in it, of a name that is bound by more than assignments")
    made = copy.deepcopy(node)
    made.body = [_Globals(names).visit(x) for x in made.body]
    made.declared = names
    return ast.fix_missing_locations(made)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _own_scope(node: Any) -> list[ast.AST]:
    """What stands in a function, without what does in others that it makes."""
    found: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    for x in found:
        if not isinstance(x, _FUNCTIONS):
            found += children(x)
    return found


class _Globals(ast.NodeTransformer):
    """Names as items of `globals()`."""

    def __init__(self, names: frozenset[str]):
        self._names = names

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._names:
            return node
        found = ast.Call(ast.Name("globals", ast.Load()), [], [])
        return ast.copy_location(ast.Subscript(found, ast.Constant(node.id), node.ctx), node)


def _checked(node: Any) -> Any:
    node = _without_global(node)
    own = [node.body] if isinstance(node, ast.Lambda) else node.body  # not what decorates it
    for x in (y for part in own for y in walk(part)):
        of_a_name = isinstance(x, ast.Delete) and any(isinstance(t, ast.Name) for t in x.targets)
        if isinstance(x, _REFUSED) or of_a_name:
            raise Unreadable(f"{type(x).__name__.lower()} in it")
    if isinstance(node, ast.Lambda):
        body: list = [ast.copy_location(ast.Return(node.body), node.body)]
        made = ast.FunctionDef(
            name="<lambda>", args=node.args, body=body, decorator_list=[], returns=None,
        )  # fmt: skip
        return ast.fix_missing_locations(ast.copy_location(made, node))
    return node


def only_ignores(node: Any, filters: frozenset[str]) -> bool:
    """Whether all that a function does with these functions of `warnings` is to ask, in statements
    of their own, that some be ignored: compiled code gives none."""
    mentioned = sum(
        getattr(x, "attr", getattr(x, "id", "")) in filters
        for x in walk(node)
        if isinstance(x, (ast.Name, ast.Attribute))
    )
    calls = [
        x.value for x in node.body if isinstance(x, ast.Expr) and isinstance(x.value, ast.Call)
    ]
    quiet = [
        x for x in calls
        if getattr(x.func, "attr", getattr(x.func, "id", "")) in filters
        and x.args and isinstance(x.args[0], ast.Constant) and x.args[0].value == "ignore"
    ]  # fmt: skip
    return mentioned == len(quiet)


def has_loops(f: types.FunctionType, classes: tuple[type, ...] = (), depth: int = 3) -> bool:
    """Whether a function has a loop or calls itself, or one that it calls by a global name, or a
    method of that name of the given classes or of those that it mentions."""
    code = f.__code__
    if _loops(code):
        return True
    found = [f.__globals__.get(name) for name in code.co_names]
    known = (*classes, *(x for x in found if isinstance(x, type)))
    methods = [vars(c).get(name) for kind in known for c in kind.__mro__ for name in code.co_names]
    called = [g for g in map(written, (*found, *methods)) if isinstance(g, types.FunctionType)]
    return f in called or (depth > 0 and any(has_loops(g, known, depth - 1) for g in called))


def written(x: Any) -> Any:
    """The function behind a compiled one; x itself, if it is none."""
    return getattr(x, "__np_compile_captured__", x) if type(x).__name__ == "Compiled" else x


def may_loop(node: ast.stmt, f: types.FunctionType) -> bool:
    """Whether a statement has a loop, or calls a function or a method of the user's."""
    for x in walk(node):
        if isinstance(x, (ast.For, ast.While)):
            return True
        if isinstance(x, ast.Call):
            g = x.func
            if isinstance(g, ast.Name):
                made = written(f.__globals__.get(g.id))
                if isinstance(made, types.FunctionType) and has_loops(made):
                    return True
            elif isinstance(g, ast.Attribute) and not hasattr(np.ndarray, g.attr):
                root: ast.expr = g.value
                while isinstance(root, ast.Attribute):
                    root = root.value
                name = root.id if isinstance(root, ast.Name) else ""
                if not isinstance(f.__globals__.get(name), types.ModuleType):
                    return True
    return False


_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset((list, dict, set, deque, defaultdict, Counter))


def makes_containers(node: ast.stmt, f: types.FunctionType) -> bool:
    """Whether a statement makes a list, a dict, a set, or an object of a class of the user's."""
    for x in walk(node):
        if isinstance(x, _DISPLAYS):
            return True
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
            name = x.func.id
            made = f.__globals__.get(name, getattr(builtins, name, None))
            if isinstance(made, type) and (
                made in _CONTAINERS or made.__module__ == f.__globals__.get("__name__")
            ):
                return True
    return False


@functools.lru_cache(4096)
def _loops(code: types.CodeType) -> bool:
    """Whether code jumps back, or has a comprehension, whose code is its own up to Python 3.11, or
    makes a function that calls itself."""
    if not _BACK.isdisjoint(code.co_code[::2]):
        return True
    return any(
        isinstance(c, types.CodeType)
        and ((c.co_name.startswith("<") and c.co_name != "<lambda>") or c.co_name in c.co_freevars)
        for c in code.co_consts
    )


_BACK = frozenset(
    code for name, code in opcode.opmap.items()
    if any(word in name for word in ("FOR_ITER", "BACKWARD", "JUMP_ABSOLUTE"))
)  # fmt: skip


@functools.lru_cache(4096)
def by_element(node: Any) -> bool:
    """Whether a loop in a function's source goes by elements, or on and on until a test fails."""
    for loop in walk(node):
        if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
            return True
        if isinstance(loop, ast.For):
            names = {x.id for x in walk(loop.target) if isinstance(x, ast.Name)}
            for x in walk(loop):
                part = (
                    x.slice
                    if isinstance(x, ast.Subscript)
                    else x
                    if isinstance(x, ast.If)
                    else None
                )
                test = part.test if isinstance(part, ast.If) else part
                if test is not None and any(
                    isinstance(y, ast.Name) and y.id in names for y in walk(test)
                ):
                    return True
    return False
