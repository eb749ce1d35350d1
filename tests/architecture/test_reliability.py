"""Checks of the reliability catalogue: every number has tests or a reason, on every database where it matters.

P… are bugs of peers, F… are faults. A number counts as tested on a database if the docstring of a test that runs there,
or of its module, cites it.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.architecture.source import DIALECTS, ROOT
from tools import reliability

NUMBER = re.compile(r"\b[PF]\d\d\b")

NOT_ON_SQLITE = {
    "P05": "has no connections that could be reset",
    "F09": "has no server that could restart and no sessions to end",
}
"""Cases that do not exist on SQLite. Lost responses (F10) and silence (F11, P39) are tested with workers over HTTP."""

WITHOUT_PROCESSES = {
    "P10": "a month passes on the test's own clock",
    "P24": "the reaper is held between its read and its write",
    "P25": "ten thousand leases are prepared in one statement",
    "P28": "a hundred connections in one process, half of which roll back",
}
"""Cases that need an order of events or a time that a kill cannot produce: tested on the store or the engine."""


def number_ranges(letter: str, *ranges: tuple[int, int]) -> set[str]:
    """Return the numbers of a letter within the given ranges, both ends included."""
    return {f"{letter}{n:02d}" for low, high in ranges for n in range(low, high + 1)}


COVERED_EVERYWHERE = number_ranges("P", (1, 18), (22, 29), (38, 42)) | number_ranges(
    "F", (1, 4), (8, 11), (24, 24), (28, 34)
)
"""Numbers that must be tested on every database."""

PROCESS_TESTS = "tests/faults/"
FOLDERS = [PROCESS_TESTS, "tests/conformance", "tests/unit/engine"]
"""Folders with stores and nodes. A citation elsewhere does not count as a test on a database."""

COLLECT = f"""
import json, sys
import pytest

FOLDERS = {FOLDERS}

class Collector:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if any(mark.args and mark.args[0] for mark in item.iter_markers("skipif")):
                continue
            callspec = getattr(item, "callspec", None)
            names = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
            docs = [item.function.__doc__ or "", item.module.__doc__ or ""]
            print("collected", json.dumps([item.nodeid, names, docs]))

sys.exit(pytest.main(["--collect-only", "-qqq", "-p", "no:cacheprovider", "-p", "no:xdist", *FOLDERS], [Collector()]))
"""


def databases_by_number() -> dict[tuple[str, bool], set[str]]:
    """Return the databases on which each number is cited: by any test (False), and by tests with processes (True)."""
    run = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found: dict[tuple[str, bool], set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        if not line.startswith("collected "):
            continue
        nodeid, names, docs = json.loads(line.removeprefix("collected "))
        for number in NUMBER.findall(" ".join(docs)):
            for with_processes in {False, nodeid.startswith(PROCESS_TESTS)}:
                found[number, with_processes] |= set(DIALECTS).intersection(names)
    return found


@pytest.mark.slow
def test_every_case_is_tested_with_processes_on_every_database() -> None:
    databases = databases_by_number()
    tested = {number: databases[number, number not in WITHOUT_PROCESSES] for number in COVERED_EVERYWHERE}
    assert tested == {number: set(DIALECTS) - ({"sqlite"} if number in NOT_ON_SQLITE else set()) for number in tested}
    assert not [number for number in WITHOUT_PROCESSES if databases[number, True] == set(DIALECTS)]


def test_exceptions_name_covered_numbers() -> None:
    assert {*NOT_ON_SQLITE, *WITHOUT_PROCESSES} <= COVERED_EVERYWHERE


@pytest.mark.slow
def test_catalogue_agrees_with_the_tests() -> None:
    """Every cited number is defined, every defined number has a test or a reason, and the links are up to date."""
    assert reliability.problems(reliability.PAGE.read_text(), reliability.citations()) == []


def test_numbers_of_each_letter_have_no_gaps() -> None:
    """Numbers are never reused or dropped: S1, S2, …; P01, P02, …."""
    by_letter: dict[str, list[int]] = defaultdict(list)
    for number in reliability.read(reliability.PAGE.read_text()).numbers:
        by_letter[number[0]].append(int(number[1:]))
    assert sorted(by_letter) == sorted("SLCWMDPFT")
    assert {letter: list(range(1, len(found) + 1)) for letter, found in by_letter.items()} == by_letter


PAGE = f"""# Page

## S: safety

### S1

First.

### S2

Second.

## P: bugs of peers

### P01

Third.

{reliability.REASONS}

| number | reason |
|---|---|
| P01 | planned |
"""


def module(*folders: str) -> Path:
    return reliability.TESTS.joinpath(*folders)


def test_rewriting_links_each_entry_to_its_tests_wherever_they_are() -> None:
    covered = {"S1": [module("test_a.py"), module("unit", "test_b.py")], "S2": [module("test_a.py")]}
    page = reliability.rewrite(PAGE, covered)
    assert "First.\n\nCovered by: [a](../tests/test_a.py) · [b](../tests/unit/test_b.py)\n\n### S2" in page
    assert "Third.\n\nCovered by: no test ([reason](#numbers-without-a-test))\n\n## Numbers without a test" in page
    assert reliability.rewrite(page, covered) == page
    assert reliability.problems(page, covered) == []


def test_rewriting_follows_a_renamed_test_module() -> None:
    page = reliability.rewrite(PAGE, {"S1": [module("test_a.py")], "S2": [module("test_a.py")]})
    renamed = {"S1": [module("faults", "test_b.py")], "S2": [module("test_a.py")]}
    assert any("out of date" in problem for problem in reliability.problems(page, renamed))
    assert "First.\n\nCovered by: [b](../tests/faults/test_b.py)\n\n### S2" in reliability.rewrite(page, renamed)
    assert reliability.problems(reliability.rewrite(page, renamed), renamed) == []


@pytest.mark.slow
def test_every_link_of_the_catalogue_leads_to_a_test_that_cites_the_number() -> None:
    """The other direction of the links: from an entry to its tests."""
    links = reliability.links(reliability.PAGE.read_text())
    assert len(links) > 100
    for number, modules in links.items():
        for cited_by in modules:
            assert number in reliability.cited(cited_by.read_text()), f"{number} links to {cited_by}"


def test_problems_of_a_page_are_found() -> None:
    stale = reliability.rewrite(PAGE, {})
    covered = {"S1": [module("test_a.py")], "S9": [module("test_a.py")], "P01": [module("test_a.py")]}
    found = "\n".join(reliability.problems(stale, covered))
    assert "tests/test_a.py cites S9, which docs/reliability.md does not define" in found
    assert "S2 has neither a test" in found
    assert "P01 is cited by a test: remove its row" in found
    assert "out of date" in found


def test_citations_are_found_in_docstrings_comments_and_strings_only() -> None:
    source = '"""S1–S3, P7: text."""\nT10 = "%C3%BC and W-9"  # F30\nassert S5, "L4: text"\n'
    assert reliability.cited(source) == {"S1", "S2", "S3", "P07", "F30", "L4"}
