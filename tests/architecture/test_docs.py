"""Files and classes that the documentation names must exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, modules

PAGES = sorted(
    [
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "README.md",
        *(ROOT / "docs" / "adr").glob("*.md"),
        *(ROOT / "docs" / "guide").glob("*.md"),
        *(ROOT / "docs" / "how-it-works").glob("*.md"),
        *PACKAGE.rglob("README.md"),
    ]
)
BASES = (
    ROOT,
    PACKAGE,
    PACKAGE / "store",
    PACKAGE / "worker" / "processes",
    ROOT / "dashboard" / "src",
    ROOT / "tests" / "protocol_models",
    ROOT / "tests" / "e2e" / "api",
)
"""Folders that a path may be relative to."""

INLINE = re.compile(r"`([\w./-]+/(?:[\w.*-]+)?|[\w/-]+\.(?:py|sql|lua|toml))`")
INDENTED = re.compile(r"^ {0,2}([a-z]\w*/[\w/]+\.py)\b", re.MULTILINE)
EXAMPLE = re.compile(
    r"^(/|v1/|text/|http/|application/|\.holdfast/|\./|bin/|[\w.]+\.(example|internal|org|com)\b)|^(shop|orders|shop_jobs)\.py$|^holdfast\.toml$"
)
"""Routes, user files and hosts, which look like paths."""


def named_paths(page: Path) -> list[str]:
    """Return the paths of the repository that a page names in running text or at the start of a line of a diagram."""
    text = page.read_text()
    found = INLINE.findall(text) + (INDENTED.findall(text) if page.name == "ARCHITECTURE.md" else [])
    return [path for path in found if not EXAMPLE.search(path)]


def exists(page: Path, path: str) -> bool:
    """Return whether a path, which may be a pattern, exists relative to its page or to one of the usual folders."""
    return any(next(base.glob(path.rstrip("/")), None) for base in (page.parent, *BASES))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_named_files_exist(page: Path) -> None:
    assert [path for path in named_paths(page) if not exists(page, path)] == []


CODE_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)+|[A-Z][a-z]\w*)(?:\(\))?`")
FOREIGN_NAMES = {"Authorization", "Host", "Origin", "element.style"}
"""Headers and names of the browser."""


def code_names() -> set[str]:
    """Return every name that the package defines or uses."""
    names: set[str] = set()
    for module in modules():
        for node in ast.walk(module.tree):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    names.add(node.name)
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    names.add(name)
    return names


@pytest.mark.slow
def test_code_that_decision_records_name_exists() -> None:
    known = code_names()
    named = {
        (page.name, name)
        for page in PAGES
        if page.parent.name in {"adr", "how-it-works"} or page.name == "ARCHITECTURE.md"
        for name in CODE_NAME.findall(page.read_text())
        if not INLINE.fullmatch(f"`{name}`") and name not in FOREIGN_NAMES
    }
    assert len(named) > 20
    assert {(page, name) for page, name in named if name.rpartition(".")[2] not in known} == set()


def test_the_architecture_page_names_files() -> None:
    """A pattern that finds nothing would pass without checking anything."""
    assert len(named_paths(ROOT / "ARCHITECTURE.md")) > 80


@pytest.mark.slow
def test_the_architecture_page_names_existing_classes() -> None:
    classes = {node.name for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    named = set(re.findall(r"\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b", (ROOT / "ARCHITECTURE.md").read_text()))
    products = {"PostgreSQL", "MariaDB"}
    assert named
    assert named - classes - products == set()


def test_every_top_level_folder_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders
    assert {folder for folder in folders if not re.search(rf"\b{folder}\b", text)} == set()
