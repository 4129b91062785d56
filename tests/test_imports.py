"""Imports point one way: the table below says which, and every source file is held to it."""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_ROOMS = ("ir", "frontend", "analysis", "passes", "targets", "build", "run")  # of kernels/

# part -> the parts that it may import. `tape` (the data structure of a recording) and `log` (its
# texts) are modules of capture/ and tools/ that stand below the packages they lie in.
ALLOWED: dict[str, set[str]] = {
    "shim": set(),
    "errors": set(),
    "config": {"errors"},
    "kernels.ir": set(),
    "kernels.frontend": {"kernels.ir"},
    "kernels.analysis": {"kernels.ir"},
    "kernels.passes": {"kernels.analysis", "kernels.ir"},
    "kernels.targets": {"kernels.analysis", "kernels.ir"},
    "kernels.build": {"config", "errors"},
    "kernels.run": {"kernels.analysis", "kernels.build", "kernels.ir"},
    "kernels": {"config", *(f"kernels.{room}" for room in _ROOMS)},
    "backends": {"config", "errors", "kernels", "kernels.build", "kernels.frontend", "kernels.run"},
    "tape": {"shim"},
    "log": {"config", "tape"},
    "lowering": {"shim", "tape"},
    "runtime": {
        *("backends", "config", "errors", "log", "lowering", "shim", "tape"),
        *("kernels.build", "kernels.run"),
    },
    "capture": {"config", "errors", "log", "lowering", "runtime", "shim", "tape"},
    "eager": {"capture", "shim"},
    "made": set(),
    "api": {"backends", "capture", "config", "eager", "errors", "made", "tape"},
    "tools": {"api", "backends", "capture", "config", "errors", "kernels.run", "log", "tape"},
    "package": {"api", "config", "errors", "tools"},
}
_OWN_PART = {"np_compile.capture.tape": "tape", "np_compile.tools.log": "log"}


def sources() -> Iterator[tuple[str, Path]]:
    """Module names and files; a package's __init__ has the package's name."""
    for folder, top in ((ROOT / "np_compile", "np_compile"), (ROOT / "shim", "np_compile.shim")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            yield ".".join((top, *parts)), path


MODULES = dict(sources())


def part(module: str) -> str:
    """The part of the architecture that a module belongs to."""
    if module in _OWN_PART:
        return _OWN_PART[module]
    _, top, room = (*module.split("."), "", "")[:3]
    return f"{top}.{room}" if top == "kernels" and room in _ROOMS else top or "package"


def imports(module: str, path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, with the line; relative imports made absolute."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                inner = f"{target}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else target


def test_the_table_has_no_cycle() -> None:
    order = list(graphlib.TopologicalSorter(ALLOWED).static_order())
    assert set(order) == set(ALLOWED)


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_table(module: str) -> None:
    mine = part(module)
    assert mine in ALLOWED, f"{module} belongs to no part of the table"
    wrong = []
    for line, name in imports(module, MODULES[module]):
        if name.partition(".")[0] != "np_compile":
            continue
        theirs = part(name)
        if theirs != mine and theirs not in ALLOWED[mine]:
            wrong.append(f"{MODULES[module].name}:{line} imports {name}: {mine} -> {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", [m for m in MODULES if part(m) == "shim"])
def test_the_shim_needs_torch_and_numpy_only(module: str) -> None:
    for line, name in imports(module, MODULES[module]):
        top = name.partition(".")[0]
        own = name == "np_compile.shim" or name.startswith("np_compile.shim.")
        known = own or top in ("numpy", "torch") or top in sys.stdlib_module_names
        assert known, f"{MODULES[module].name}:{line} imports {name}"
