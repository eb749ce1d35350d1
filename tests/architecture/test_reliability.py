"""Each case of the reliability catalogue that is promised by now is cited by a test that runs where it must.

P… are bugs that others had, F… are faults. A number counts where the docstring of a test or of its module has it.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict

from tests.architecture.source import DIALECTS, ROOT

NUMBER = re.compile(r"\b[PF]\d\d\b")

NOT_YET: dict[str, str] = {}

NOT_ON_SQLITE = {
    "P05": "has no connections that could be reset",
    "F09": "has no server that could restart, nor sessions to end",
}
"""What has no meaning there. Lost answers (F10) and silence (F11, P39) come with workers that reach it by HTTP."""

WITHOUT_PROCESSES = {
    "P10": "a month passes on a clock of the test's own",
    "P24": "the reaper is held between its read and its write",
    "P25": "ten thousand leases are prepared at a stroke",
    "P28": "a hundred connections in one process, half of which roll back",
}
"""What is shown in an order or at a time that no signal could bring about: by tests of the store or the engine."""


def numbers(letter: str, *spans: tuple[int, int]) -> set[str]:
    return {f"{letter}{n:02d}" for low, high in spans for n in range(low, high + 1)}


PROMISED = numbers("P", (1, 18), (22, 29), (38, 42)) | numbers("F", (1, 4), (8, 11), (24, 24), (28, 34))

FOLDERS = [f"tests/{name}" for name in ("faults", "conformance", "unit/engine")]
"""With stores and nodes. Elsewhere a citation is welcome, but does not count."""

COLLECT = f"""
import json, sys
import pytest

FOLDERS = {FOLDERS}

class Seen:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if any(mark.args and mark.args[0] for mark in item.iter_markers("skipif")):
                continue
            given = getattr(item, "callspec", None)
            names = [value for value in given.params.values() if isinstance(value, str)] if given else []
            docs = [item.function.__doc__ or "", item.module.__doc__ or ""]
            print("seen", json.dumps([item.nodeid, names, docs]))

sys.exit(pytest.main(["--collect-only", "-qqq", "-p", "no:cacheprovider", "-p", "no:xdist", *FOLDERS], [Seen()]))
"""


def cited() -> dict[tuple[str, bool], set[str]]:
    """The databases on which a number is cited: by any test, and by one with processes."""
    run = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found: dict[tuple[str, bool], set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        if not line.startswith("seen "):
            continue
        nodeid, names, docs = json.loads(line.removeprefix("seen "))
        with_processes = nodeid.startswith(("tests/faults/", "tests/faults/peers/"))
        for number in NUMBER.findall(" ".join(docs)):
            for known in {False, with_processes}:
                found[number, known] |= set(DIALECTS).intersection(names)
    return found


def test_each_case_is_tried_on_every_database_with_processes_or_it_is_said_why_not() -> None:
    databases = cited()
    everywhere = {number: databases[number, number not in WITHOUT_PROCESSES] for number in PROMISED - set(NOT_YET)}
    assert everywhere == {
        number: set(DIALECTS) - ({"sqlite"} if number in NOT_ON_SQLITE else set()) for number in everywhere
    }
    assert not [number for number in NOT_YET if databases[number, False]]
    assert not [number for number in WITHOUT_PROCESSES if databases[number, True] == set(DIALECTS)]


def test_exceptions_are_of_what_is_promised() -> None:
    assert {*NOT_YET, *NOT_ON_SQLITE, *WITHOUT_PROCESSES} <= PROMISED
