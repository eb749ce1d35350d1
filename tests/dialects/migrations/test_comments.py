"""Comments on tables: every table has one, and the guide repeats it."""

import re

import pytest

from tests.architecture.source import ROOT
from tests.dialects.migrations import golden

PAGE = ROOT / "docs" / "guide" / "tables.md"
ROW = re.compile(r"^\| `(holdfast_\w+)` \| (.*) \| (.*) \|$", re.MULTILINE)
PRODUCTS = {"postgres": "PostgreSQL", "mysql": "MySQL", "sqlite": "SQLite"}
CREATED_BY_THE_MIGRATOR = {"holdfast_schema"}
"""Table that exists before the first migration, and has no comment."""


def documented(dialect: str) -> dict[str, str]:
    """Return the tables that the guide lists for a database, with their descriptions."""
    rows = ROW.findall(PAGE.read_text())
    return {table: text for table, text, where in rows if where == "all" or PRODUCTS[dialect] in where}


def tables(dialect: str) -> dict[str, dict[str, str]]:
    return {
        name: entry
        for name, entry in golden.expected(dialect).items()
        if entry["kind"] == "table" and name.startswith("holdfast_")
    }


@pytest.mark.parametrize("dialect", PRODUCTS)
def test_the_guide_lists_every_table(dialect: str) -> None:
    assert sorted(documented(dialect)) == sorted(tables(dialect))


@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
def test_every_table_has_the_comment_that_the_guide_repeats(dialect: str) -> None:
    comments = {name: entry.get("comment") for name, entry in tables(dialect).items()}
    expected = documented(dialect)
    assert {name: comments[name] for name in comments if name not in CREATED_BY_THE_MIGRATOR} == {
        name: text for name, text in expected.items() if name not in CREATED_BY_THE_MIGRATOR
    }
