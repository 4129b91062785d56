"""The documentation is true: every Python block runs, every section and setting is there."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import types
from pathlib import Path

import pytest

import np_compile
from np_compile import config, errors

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page with their line numbers."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m.group(1)) for m in _BLOCK.finditer(text)]


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as they are made from the text."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A module on disk, so that messages can quote its lines.
    module = types.ModuleType(f"documentation_{page.stem}")
    for line, text in blocks(page):
        source = tmp_path / f"{page.stem}_{line}.py"
        source.write_text(text, encoding="utf-8")
        tree = ast.parse(text, str(source))
        try:
            exec(compile(tree, str(source), "exec"), vars(module))
        except Exception as e:
            e.add_note(f"in the block at {page.name}:{line}")
            raise


def documented() -> list[str]:
    """Modules with examples in their docstrings."""
    found = []
    for path in sorted((ROOT / "np_compile").rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append(".".join(p for p in parts if p != "__init__"))
    return found


@pytest.mark.parametrize("name", documented())
def test_docstrings_run(name: str) -> None:
    failures, tests = doctest.testmod(importlib.import_module(name))
    assert tests > 0
    assert failures == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), target


def own_errors() -> list[type[errors.NpCompileError]]:
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.NpCompileError)
    ]


@pytest.mark.parametrize("error", own_errors(), ids=lambda e: e.__name__)
def test_each_error_has_its_section(error: type[errors.NpCompileError]) -> None:
    if error is errors.NpCompileError:
        return
    page = ROOT / errors.DOCS
    assert error.section in anchors(page)
    text = page.read_text(encoding="utf-8").partition(f"\n## {error.section}\n")[2]
    assert f"`{error.__name__}`" in text.partition("\n## ")[0]


def test_each_setting_is_in_the_guide() -> None:
    text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \| (.+) \|$", text, flags=re.MULTILINE)
    stated = {(name, variable, default, doc) for name, variable, default, doc in rows}
    declared = {
        (s.name, s.variable, str(int(s.default) if s.default is False else s.default), s.doc)
        for s in config.SETTINGS
    }
    assert stated == declared


def test_each_public_name_is_in_the_guide() -> None:
    text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    for name in np_compile.__all__:
        if not name.startswith("__") and not isinstance(
            getattr(np_compile, name), types.ModuleType
        ):
            assert name in text


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|c))?)`", page.read_text(encoding="utf-8")))
    places = (ROOT, ROOT / "np_compile", ROOT / "np_compile" / "kernels")
    missing = [name for name in named if not any((p / name).exists() for p in places)]
    assert not missing, sorted(missing)
