"""The project's language: rules of `docs/contributing/style.md` that a program can check, and the glossary."""

import ast
import re

import pytest

from tests.architecture import language
from tests.architecture.language import Offence
from tests.architecture.source import PACKAGE, ROOT, modules

GLOSSARY = ROOT / "docs" / "glossary.md"


def listing(offences: list[Offence]) -> str:
    """Return the offences one per line, as `file:line: rule`."""
    return "\n".join(["", *map(str, offences)])


@pytest.mark.slow
def test_prose_follows_the_style_guide() -> None:
    """Openings, banned phrases and bound names everywhere; the length of first docstring lines in src."""
    offences = [offence for file in language.files() for offence in language.check(file)]
    assert not offences, listing(offences)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "dev",
        "docs/guide/python.md",
        "docs/reference/cli.md",
        "deploy/compose.yaml",
        "dashboard/src/pages/Overview.tsx",
        "dashboard/src/styles/app.css",
        "src/holdfast/errors.py",
        "src/holdfast/store/common/columns.sql",
        "tests/architecture/language.py",
        "tools/reliability.py",
    ],
)
def test_every_kind_of_file_is_checked(path: str) -> None:
    assert ROOT / path in language.files()


@pytest.mark.slow
def test_enough_files_are_checked() -> None:
    """A scan that finds no files would pass without checking anything."""
    assert len(language.files()) > 700
    assert len(language.classes()) > 400


def test_pages_that_quote_the_phrases_exist() -> None:
    assert [path for path in language.QUOTES_THE_PHRASES if not (ROOT / path).is_file()] == []


@pytest.mark.slow
def test_class_names_are_unique_in_src() -> None:
    offences = language.duplicate_classes()
    assert not offences, listing(offences)


@pytest.mark.slow
def test_allowed_duplicates_are_still_duplicates() -> None:
    places = language.classes()
    assert {
        name: folders for name, (folders, _) in language.SAME_NAME_ALLOWED.items() if len(places[name]) != len(folders)
    } == {}


@pytest.mark.parametrize(
    "source, line",
    [
        ('"""At the\nmost two."""', 1),
        ("x = 1  # it is not any\n# more there", 1),
        ('x = (\n    "forked "\n    "of it"\n)', 2),
        ('x = f"{y} tells of it"', 1),
        ("def test_nobody_waits(): ...", 1),
    ],
)
def test_banned_phrase_is_found(source: str, line: int) -> None:
    assert [found for found, _ in language.banned_phrases(language.python_prose(source))] == [line]


@pytest.mark.parametrize("source", ['x = ["made", "of"]', "somebody = 1", '"""At most two."""'])
def test_code_and_plain_prose_are_accepted(source: str) -> None:
    assert list(language.banned_phrases(language.python_prose(source))) == []


@pytest.mark.parametrize("source", ['"""What it is."""', 'x = 1\n"""Of jobs."""', f'"""{"x" * 91}"""'])
def test_bad_docstring_is_found(source: str) -> None:
    assert len(list(language.bad_docstrings(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "page",
    ["Text. Of two jobs one runs.", "# Head\n\nWhat runs is kept.", "a | b\n| Those jobs | b |", "x\n\n* Also\n  this"],
)
def test_bad_sentence_is_found(page: str) -> None:
    assert len(list(language.bad_sentences(page))) == 1


@pytest.mark.parametrize(
    "page", ["## What doctor checks", "* What runs? Jobs.", "```\n\nOf code\n```", "Use it. `Of` is fine."]
)
def test_questions_headings_and_code_are_accepted(page: str) -> None:
    assert list(language.bad_sentences(page)) == []


@pytest.mark.parametrize("source", ["MOST_JOBS = 1", "print(a.LONGEST_IDLE)", "from a import _LEAST_X"])
def test_bad_bound_is_found(source: str) -> None:
    assert len(list(language.bad_bounds(ast.parse(source)))) == 1


def test_glossary_is_in_alphabetical_order() -> None:
    terms = re.findall(r"^\*\*(.+?)\.\*\*", GLOSSARY.read_text(), re.MULTILINE)
    assert terms
    assert terms == sorted(terms, key=str.lower)


@pytest.mark.slow
def test_glossary_names_existing_files_and_classes() -> None:
    text = GLOSSARY.read_text()
    classes = {node.name for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    files = [name for name in re.findall(r"`([\w/]+\.py)`", text) if not name.startswith("tests/")]
    assert files
    assert [name for name in files if not (PACKAGE / name).exists()] == []
    assert set(re.findall(r"`([A-Z]\w+)`", text)) - classes == set()
