"""Checks of the reliability catalogue: each number has a place in one of the groups below, and the tests agree.

A number counts as tested on a database if a test that runs there, or the docstring of its class or module, cites it.
Numbers without any test have a reason in the section "Numbers without a test" of the catalogue.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from tests.architecture.source import DIALECTS, ROOT
from tools import reliability

V = TypeVar("V")

WITH_PROCESSES = set(
    reliability.numbers_in(
        "S1–S3 S6–S8 S10–S12 S15 S16 S19 L4 P01–P04 P06–P09 P11–P18 P22 P23 P26 P27 P29 P38–P42 P77 "
        "F01–F04 F06–F08 F10 F11 F24 F28–F34 F38 F41 T20"
    )
)
"""Tested on every database with processes that are killed, frozen or cut off (tests/faults)."""

ON_EVERY_DATABASE = {
    "S4 S5": "the conformance suite applies every transition; with processes on the servers only",
    "S9 S14 S17 S20–S25": "rules of the store and the engine; a process adds nothing",
    "L1": "the longest wait is asserted by a benchmark of two tenants",
    "L3": "an outage of the database needs a server; the loops are tested on every store",
    "P10": "a month passes on the test's own clock",
    "P24": "the reaper is held between its read and its write",
    "P25": "ten thousand leases are prepared in one statement",
    "P28": "a hundred connections in one process, half of which roll back",
    "P33 F25 F26": "the clock is the test's own, or the node's is wrong",
    "P34–P37 F22": "locks and counts of single statements",
    "T01–T04 T07–T10 T15 T17 T19 T21 T22 T25 T28 T31 T38 T40 T41 T43": "requests to a node, or calls of the engine",
}
"""Tested on every database, but not with processes, and why."""

ON_SOME_DATABASES = {
    "P05 P30 F09 F15 F44": (
        "mysql postgres",
        "SQLite has no server that could end, and no connections that could be reset",
    ),
    "F14": ("", "a failover needs a server; the rules for jobs that a worker does not run are pure"),
    "F18": ("mysql postgres", "the setting belongs to a server"),
    "F05": ("mysql sqlite", "the restarts concern the nodes; a cluster runs on one server"),
    "F21": ("postgres sqlite", "a locked file on SQLite, a cancelled statement on PostgreSQL"),
    "F39": ("postgres", "the faults are the receiver's; the breaker's rows are tested on every store"),
    "F35 F45 T05 T16 T18 T26 T27 T30 T32 T33 T37 T45": (
        "sqlite",
        "the node or the browser decides, before any database",
    ),
    "T34": ("postgres sqlite", "the routing table decides, before any database"),
    "P20 P21 F23": ("", "PgBouncer in front of PostgreSQL, whose tests are not parametrised by database"),
    "L2 F13 F20 F36 F37 F40": ("", "worker, supervisor or proxy under test; the store is a stand-in or SQLite"),
    "P86 T23 T24 T44": ("", "the source and the deployment files are searched"),
    "T06 T11 T12 T13 T14 T29 T35 T36 T42": ("", "tokens, addresses, headers and ids, without a database"),
}
"""Tested on at least these databases, which may be none, and why not on all."""

PROCESS_TESTS = "tests/faults/"

COLLECT = """
import inspect, json, sys, textwrap
import pytest
from tools import reliability

class Collector:
    def pytest_collection_finish(self, session):
        cited = {}
        for collected in session.items:
            item = getattr(collected, "original", collected)
            if any(mark.args and mark.args[0] for mark in item.iter_markers("skipif")):
                continue
            property_test = getattr(item.function, "hypothesis", None)
            function = property_test.inner_test if property_test else item.function
            if function not in cited:
                source = textwrap.dedent(inspect.getsource(function))
                docs = f"{item.module.__doc__} {item.cls.__doc__ if item.cls else None}"
                cited[function] = reliability.cited(source) | set(reliability.numbers_in(docs))
            callspec = getattr(item, "callspec", None)
            names = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
            print("collected", json.dumps([item.nodeid, names, sorted(cited[function])]))

sys.exit(pytest.main(["--collect-only", "-qqq", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"], [Collector()]))
"""


class Databases(NamedTuple):
    """Databases on which tests cite a number."""

    anywhere: set[str]
    with_processes: set[str]


def collect() -> dict[str, Databases]:
    """Return the databases on which each number is cited."""
    run = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found: dict[str, Databases] = defaultdict(lambda: Databases(set(), set()))
    for line in run.stdout.splitlines():
        if not line.startswith("collected "):
            continue
        nodeid, names, numbers = json.loads(line.removeprefix("collected "))
        databases = set(DIALECTS).intersection(names)
        for number in numbers:
            found[number].anywhere.update(databases)
            if nodeid.startswith(PROCESS_TESTS):
                found[number].with_processes.update(databases)
    return found


def expand(table: dict[str, V]) -> dict[str, V]:
    """Return the value of each number of a table whose keys are lists of numbers."""
    return {number: value for numbers, value in table.items() for number in reliability.numbers_in(numbers)}


def test_every_number_of_the_catalogue_is_in_one_group() -> None:
    """A number is tested with processes, on every or on some databases, or has a reason why no test covers it."""
    numbers, reasons = reliability.read(reliability.PAGE.read_text())
    groups = [WITH_PROCESSES, set(expand(ON_EVERY_DATABASE)), set(expand(ON_SOME_DATABASES)), set(reasons)]
    listed = sorted(number for group in groups for number in group)
    assert listed == sorted(numbers)


def test_every_reason_says_something() -> None:
    reasons = [*ON_EVERY_DATABASE.values(), *(reason for _, reason in ON_SOME_DATABASES.values())]
    reasons += reliability.read(reliability.PAGE.read_text()).reasons.values()
    assert [reason for reason in reasons if len(reason.split()) < 3] == []


@pytest.mark.slow
def test_every_number_is_tested_where_its_group_says() -> None:
    tested = collect()
    every = set(DIALECTS)
    assert {number: tested[number].with_processes for number in WITH_PROCESSES} == dict.fromkeys(WITH_PROCESSES, every)
    stores = expand(ON_EVERY_DATABASE)
    assert {number: tested[number].anywhere for number in stores} == dict.fromkeys(stores, every)
    assert [number for number in stores if tested[number].with_processes == every] == []
    some = {number: set(databases.split()) for number, (databases, _) in expand(ON_SOME_DATABASES).items()}
    assert [number for number in some if number not in tested] == []
    assert {number: tested[number].anywhere & some[number] for number in some} == some


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
