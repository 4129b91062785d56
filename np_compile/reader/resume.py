"""The Python that goes on where compiled code leaves: made of the source, from a path in it.

A path says, from the outermost block inwards, which statement of a block is next, and which loops
and branches it is in. The code that is made has the rest of the innermost block first, then the
iterations that are left of the loop around it, and so on; in a loop of its own for each loop, so
that `break` and `continue` mean what they mean. Its name, file and lines are the function's.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from .source import code_of, own_names

RETURNED, WENT_ON = "returned", "went on"
_FIRST = "__first"
_LIST_ITERATOR: Any = type(iter([]))


def rest_of(values: Iterable, k: int, begun: bool) -> Iterable:
    """What is left of an iterable after k values. begun: the next one is bound already; None
    stands for it, as what it was taken from may have changed."""
    if begun:
        return chain((None,), _after(values, k + 1))
    return _after(values, k)


def _after(values: Iterable, k: int) -> Iterable:
    """What is left after k values, as Python's iterator stands there now: what changes later, the
    length of a list, say, changes nothing of where it is."""
    if isinstance(values, range):
        return values[k:]
    made: Any = values
    if type(values) is enumerate:
        inner, begin = made.__reduce__()[1]
        return enumerate(_after(inner, k), begin + k)
    if type(values) is zip:
        _, inner, *strict = made.__reduce__()
        return zip(*[_after(x, k) for x in inner], strict=bool(strict))
    rest: Any = iter(values)
    if type(rest) is _LIST_ITERATOR:
        return _items(rest.__reduce__()[1][0], k)
    next(islice(rest, k, k), None)
    return rest


def _items(values: list, k: int) -> Iterator[Any]:
    """The items of a list from one on, which may be beyond the end of one that grows again."""
    while k < len(values):
        yield values[k]
        k += 1


class Entered:
    """A context manager that was entered before, for what is left of its block."""

    def __init__(self, manager: Any):
        self._manager = manager

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> Any:
        return type(self._manager).__exit__(self._manager, *raised)


class _Returns(ast.NodeTransformer):
    """`return x` as one that says so."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.Constant(None)
        pair = ast.Tuple([ast.Constant(RETURNED), value], ast.Load())
        return ast.copy_location(ast.Return(ast.copy_location(pair, node)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def _name(text: str, store: bool = False) -> ast.Name:
    return ast.Name(text, ast.Store() if store else ast.Load())


def _call(f: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(f), list(args), [])


class _Made:
    """The statements that go on from a path. given: whether what is left of a call at the
    path's end is a function `__value`."""

    def __init__(self, path: Sequence[tuple], given: bool, until: int | None):
        self._path, self._given, self._until = path, given, until
        self._count = 0

    def statements(self) -> list[ast.stmt]:
        return self._block(0, self._until)

    def _block(self, at: int, until: int | None = None) -> list[ast.stmt]:
        _, nodes, k, _ = self._path[at]
        rest = list(nodes[k + 1 : until])
        if at == len(self._path) - 1:
            if self._given:
                return [*self._with_value(nodes[k]), *rest]
            return [nodes[k], *rest] if until is None or k < until else []
        return [*self._inside(at + 1), *rest]

    def _with_value(self, node: ast.stmt) -> list[ast.stmt]:
        value = ast.Subscript(_call("__value"), ast.Constant(1), ast.Load())
        if isinstance(node, ast.Assign):
            return [ast.copy_location(ast.Assign(node.targets, value), node)]
        if isinstance(node, ast.Return):
            return [ast.copy_location(ast.Return(value), node)]
        return [ast.copy_location(ast.Expr(value), node)]

    def _inside(self, at: int) -> list[ast.stmt]:
        step = self._path[at]
        if step[0] == "block":  # of a statement that was taken apart
            return self._block(at)
        if step[0] in ("if", "past"):
            return self._block(at + 1)
        if step[0] == "try":
            _, node, part = step
            rest = self._block(at + 1)
            if part == "finalbody" or (part == "orelse" and not node.finalbody):
                return rest
            handlers, orelse = ([], []) if part == "orelse" else (node.handlers, node.orelse)
            made = ast.Try(rest, handlers, orelse, node.finalbody)
            return [ast.copy_location(made, node)]
        if step[0] == "with":
            return [ast.copy_location(ast.With(step[1].items, self._block(at + 1)), step[1])]
        if step[0] == "unrolled":
            return self._loop(step[1], at, _name(step[2]), ast.Constant(step[3]))
        if step[0] == "for":
            return self._loop(step[1], at, step[3], _name(step[2]))
        node = step[1]
        if step[2] == "test":  # the loop goes on with its test
            return [ast.copy_location(ast.While(node.test, node.body, node.orelse), node)]
        first = self._first()
        test = ast.BoolOp(ast.Or(), [_name(first), node.test])
        body = self._begun(first, at, node)
        return [
            _assign(first, ast.Constant(True)),
            ast.copy_location(ast.While(test, body, node.orelse), node),
        ]

    def _first(self) -> str:
        self._count += 1
        return f"{_FIRST}{self._count}"

    def _loop(self, node: ast.For, at: int, values: ast.expr, k: ast.expr) -> list[ast.stmt]:
        if at == len(self._path) - 1:  # the k-th value is still to be bound
            rest = _call("__rest_of", values, k, ast.Constant(False))
            return [ast.copy_location(ast.For(node.target, rest, node.body, node.orelse), node)]
        rest = _call("__rest_of", values, k, ast.Constant(True))
        first, value = self._first(), f"{_FIRST}{self._count}_value"
        # The target was bound in this iteration already, and may have been bound again.
        body = self._begun(first, at, node)
        body[0].orelse.insert(0, ast.copy_location(ast.Assign([node.target], _name(value)), node))  # type: ignore[attr-defined]
        return [
            _assign(first, ast.Constant(True)),
            ast.copy_location(ast.For(_name(value, True), rest, body, node.orelse), node),
        ]

    def _begun(self, first: str, at: int, node: Any) -> list[ast.stmt]:
        """The body: what is left of it in the first iteration, all of it later."""
        begun = [_assign(first, ast.Constant(False)), *self._block(at + 1)]
        return [ast.If(_name(first), begun, list(node.body))]


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([_name(name, True)], value)


def _copied(node: Any) -> Any:
    """A copy in which no two parts are one object: the body of a loop is there twice."""
    if isinstance(node, list):
        return [_copied(x) for x in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{name: _copied(x) for name, x in ast.iter_fields(node)})
    return ast.copy_location(made, node)


def function(
    f: types.FunctionType, node: Any, path: Sequence[tuple], names: Sequence[str],
    given: bool = False, until: int | None = None, makes: Sequence[ast.stmt] = (),
) -> types.FunctionType:  # fmt: skip
    """A function of the values of `names` (and of what goes on in a call, if it is `given`) that
    goes on in f from a path, to its end or to the statement `until` of its body. It gives RETURNED
    and what f returns, or WENT_ON and the names' values. makes: statements that make functions of
    its own."""
    body = _copied([*makes, *_Made(path, given, until).statements()])
    body = [_Returns().visit(s) for s in body]
    if until is None:
        end: ast.expr = ast.Tuple([ast.Constant(RETURNED), ast.Constant(None)], ast.Load())
    else:
        end = ast.Tuple([ast.Constant(WENT_ON), _call("__locals")], ast.Load())
    free = f.__code__.co_freevars
    params = [*names, *(["__value"] if given else []), *HELPERS]
    arguments = ast.arguments([], [ast.arg(n) for n in params], None, [], [], None, [])
    # Names that have no value yet are local all the same.
    local: list[ast.stmt] = [
        _assign(n, ast.Constant(None)) for n in own_names(f, node) if n.isidentifier()
    ]
    local = [ast.If(ast.Constant(False), local, [])] if local else []
    inner = ast.FunctionDef(
        name="__inner", args=arguments, body=[*local, *body, ast.Return(end)], decorator_list=[],
        returns=None,
    )  # fmt: skip
    # Inside a function that has its free names, so that they are free in it too.
    outer = ast.FunctionDef(
        name="__outer", args=ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []),
        body=[inner], decorator_list=[], returns=None,
    )  # fmt: skip
    for x in (inner, outer):
        vars(x)["type_params"] = []
        ast.copy_location(x, node)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    code = code_of(module, f.__code__.co_filename)
    # Not under the function's name, which would then be its own in it.
    found = _code_of(_code_of(code, "__outer"), "__inner")
    found = found.replace(co_name=f.__code__.co_name, co_qualname=f.__code__.co_qualname)
    cells = dict(zip(free, f.__closure__ or (), strict=True))
    closure = tuple(cells[n] for n in found.co_freevars)
    return types.FunctionType(found, f.__globals__, f.__name__, None, closure)


def _code_of(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def at_top(path: list[tuple], top: int) -> list[tuple]:
    """A path whose first block is the rest of a body, as one of the whole body."""
    _, nodes, k, part = path[0]
    return [("block", [*[ast.Pass()] * (top - k), *nodes], top, part), *path[1:]]


def locals_of_caller() -> dict[str, Any]:
    """The names of the function that asks."""
    return {
        k: v for k, v in sys._getframe(1).f_locals.items()
        if not k.startswith(("__first", "__value", *HELPERS))
    }  # fmt: skip


# What the code that is made is given, beside the names' values.
HELPERS = {"__rest_of": rest_of, "__locals": locals_of_caller, "__entered": Entered}
