"""A program in the forms that docs/deviations.md has: with these one that differs from NumPy is
compared before it counts as a finding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

HELPERS = '''

def _as_it_was(value):
    """An array on the right side, before anything is written."""
    return value.copy() if isinstance(value, np.ndarray) else value


class _Unused:
    """The element of an index out of bounds: nothing can be done with it."""


def _is_out_of_bounds(error):
    return "out of bounds for axis" in str(error)
'''


class _Taken(ast.NodeTransformer):
    """`m[k] = m[:, n]` takes the column as it was."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if isinstance(node.targets[0], ast.Subscript) and not isinstance(node.value, ast.Constant):
            node.value = ast.Call(ast.Name("_as_it_was", ast.Load()), [node.value], [])
        return node


class _Dropped(ast.NodeTransformer):
    """`v = x[k]` out of bounds raises nothing, as long as nobody uses v. Within `try` it does."""

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        return self._tried(node, names) if len(names) == len(node.targets) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        is_unused = isinstance(node.value, ast.Subscript) or _changes_a_copy(node.value)
        return self._tried(node, []) if is_unused else node

    def _tried(self, node: ast.Assign | ast.Expr, names: list[str]) -> ast.AST:
        if not any(isinstance(n, ast.Subscript) for n in ast.walk(node.value)):
            return node
        lost = "; ".join([f"{name} = _Unused()" for name in names]) or "pass"
        text = (
            "try:\n    pass\nexcept IndexError as _e:\n"
            f"    if not _is_out_of_bounds(_e): raise\n    {lost}\n"
        )
        tried = ast.parse(text).body[0]
        assert isinstance(tried, ast.Try)
        tried.body = [node]
        return tried


def _changes_a_copy(node: ast.AST) -> bool:
    """Whether a call stores into what an index array takes out, `np.add.at(x[i], k, v)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    first = node.args[0]
    stores = node.func.attr in ("at", "put", "put_along_axis")
    return stores and isinstance(first, ast.Subscript) and isinstance(first.slice, ast.Name)


def forms(source: str, recorded: bool) -> Iterator[tuple[str, str]]:
    """What each is about, and the program in that form. recorded: whether something of it was
    recorded; only there indices that nobody uses are not looked at."""
    about = [("a row that is set to a column that it meets", (_Taken(),))]
    if recorded:
        about.append(("an index out of bounds that nobody uses", (_Dropped(),)))
        about.append(("both", (_Taken(), _Dropped())))
    plain = ast.unparse(ast.parse(source))
    for what, changes in about:
        tree = ast.parse(source)
        for change in changes:
            for part in tree.body:
                if isinstance(part, ast.ClassDef) or (
                    isinstance(part, ast.FunctionDef) and part.name not in ("data", "history")
                ):
                    change.visit(part)
        changed = ast.unparse(ast.fix_missing_locations(tree))
        if changed != plain:
            yield what, f"{changed}\n{HELPERS}"
