"""Imports point one way: the table below says which, and every source file is held to it."""

from __future__ import annotations

import ast
import functools
import graphlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import fresh

ROOT = Path(__file__).parent.parent

# Of kernels/.
_ROOMS = ("target", "ir", "frontend", "analysis", "passes", "targets", "build", "run")

# part -> the parts that it may import.
ALLOWED: dict[str, set[str]] = {
    "shim": set(),
    "errors": set(),
    "config": {"errors"},
    "attributes": {"made"},
    "errstate": set(),
    "disallowed": set(),
    "size": set(),
    "kernels.target": set(),
    "kernels.ir": {"size"},
    "kernels.frontend": {"kernels.analysis", "kernels.ir", "size"},
    "kernels.analysis": {"kernels.ir", "kernels.target", "size"},
    "kernels.passes": {"kernels.analysis", "kernels.ir", "kernels.target", "size"},
    "kernels.targets": {"kernels.analysis", "kernels.ir", "kernels.target", "size"},
    "kernels.build": {"config", "errors"},
    "kernels.run": {"kernels.analysis", "kernels.build", "kernels.ir", "kernels.target", "size"},
    "kernels": {"config", "size", *(f"kernels.{room}" for room in _ROOMS)},
    "backends": {
        *("config", "errors", "kernels", "kernels.build", "kernels.frontend", "kernels.run"),
        *("lowering", "shim", "size"),
    },
    "tape": {"attributes", "shim", "size"},
    "debug_output": {"config"},
    "dict_tags": set(),
    "log": {"config", "debug_output", "tape"},
    "lowering": {"shim", "size", "tape"},
    "runtime": {
        *("backends", "config", "errors", "lowering", "shim", "tape"),
        *("kernels.build", "kernels.run"),
    },
    "capture": {
        "attributes",
        "config",
        "debug_output",
        "devices",
        "disallowed",
        "errors",
        "errstate",
        "log",
        "lowering",
        "runtime",
        "shim",
        "tape",
    },
    "replay": {
        *("capture", "config", "dict_tags", "errstate", "kernels.build", "kernels.run", "runtime"),
        *("shim", "size", "tape"),
    },
    "reader": {
        "attributes",
        "config",
        "debug_output",
        "dict_tags",
        "disallowed",
        "errstate",
        "kernels.build",
        "kernels.ir",
        "kernels.run",
        "kernels.target",
        "kernels.targets",
        "log",
        "shim",  # for `quiet`, `is_writeable`
    },
    "eager": {"attributes", "capture", "shim", "tape"},
    "made": set(),
    "loan": {"attributes", "tape"},
    "cupy_arrays": {"capture", "errors", "loan"},
    "devices": {"shim"},
    "reached": {"attributes", "capture", "loan", "reader", "replay"},
    "tensor_loops": {"capture", "config", "loan", "reached", "reader", "replay", "shim"},
    "api": {
        *("backends", "capture", "config", "cupy_arrays", "devices", "eager", "errors", "errstate"),
        *("made", "reader", "replay", "shim", "tape", "tensor_loops"),
    },
    "tools": {
        *("api", "backends", "capture", "config", "cupy_arrays", "errors", "kernels.run", "log"),
        *("reader", "shim", "tape"),
    },
    "controls": {"api", "capture", "disallowed", "eager", "errors", "made", "shim", "tape"},
    "package": {"api", "config", "controls", "errors", "tools"},
}


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
    _, top, room = (*module.split("."), "", "")[:3]
    return f"{top}.{room}" if top == "kernels" and room in _ROOMS else top or "package"


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """The imports of a file, and its conditions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [x for x in ast.walk(tree) if isinstance(x, (ast.Import, ast.ImportFrom, ast.If))]


def imports(module: str, path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, with the line; relative imports made absolute."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                inner = f"{target}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else target


def _unchecked(path: Path) -> set[int]:
    """Lines of imports that are made for types alone."""
    return {
        line
        for node in nodes(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def test_no_modules_need_each_other() -> None:
    needs = {
        module: {
            name
            for line, name in imports(module, path)
            if name in MODULES and name != module and line not in unchecked
        }
        for module, path in MODULES.items()
        for unchecked in [_unchecked(path)]
    }
    for package in [m for m, path in MODULES.items() if path.name == "__init__.py"]:
        needs[package] = set()  # it gives names of its modules, which come first
    list(graphlib.TopologicalSorter(needs).static_order())


def test_every_package_is_built() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    built = tomllib.loads(text)["tool"]["setuptools"]["packages"]
    assert set(built) == {m for m, path in MODULES.items() if path.name == "__init__.py"}


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


@pytest.mark.parametrize("package", ["np_compile.replay"])
def test_no_module_of_a_package_imports_another_in_a_circle(package: str) -> None:
    mine = {m: path for m, path in MODULES.items() if m.startswith(f"{package}.")}
    within = {m: {name for _, name in imports(m, path)} & {*mine} for m, path in mine.items()}
    assert [*graphlib.TopologicalSorter(within).static_order()]


@pytest.mark.parametrize("module", [m for m in MODULES if part(m) == "shim"])
def test_the_shim_needs_torch_and_numpy_only(module: str) -> None:
    for line, name in imports(module, MODULES[module]):
        top = name.partition(".")[0]
        own = name == "np_compile.shim" or name.startswith("np_compile.shim.")
        known = own or top in ("numpy", "torch") or top in sys.stdlib_module_names
        assert known, f"{MODULES[module].name}:{line} imports {name}"


def test_what_the_import_makes_is_old_at_once() -> None:
    """A collection in a first call would look at all that torch's modules hold, for 0.1 s."""
    process = fresh.run(
        "import gc\nimport np_compile\n"
        "print(len(gc.get_objects(0)) + len(gc.get_objects(1)), gc.isenabled())"
    )
    young, enabled = process.stdout.split()
    assert int(young) < 3000
    assert enabled == "True"
    code = "import gc\ngc.disable()\nimport np_compile\nassert not gc.isenabled()"
    assert fresh.run(code).returncode == 0
