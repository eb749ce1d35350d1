"""pytest plugin: tests with `@pytest.mark.isolated_network` run in a network namespace, or not at all.

Those of one file run in one pytest process inside the namespace. Where no namespace can be created, they are skipped,
and the last lines of the run say so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.network_namespace import is_isolated, missing_reason, run_isolated

MARK = "isolated_network"
NOT_RUN = "no network namespace for hostile addresses"


RESULTS = pytest.StashKey[dict[Path, tuple[set[str], str]]]()
"""Tests that passed in their namespace, and the output, by file."""


class IsolatedItem(pytest.Item):
    """A test that runs in a namespace; none of its fixtures is set up outside."""

    original: pytest.Item
    """The test as it was collected."""

    def runtest(self) -> None:
        reason = missing_reason()
        if reason is not None:
            pytest.skip(f"{NOT_RUN}: {reason}")
        results = self.session.stash.setdefault(RESULTS, {})
        if self.path not in results:
            results[self.path] = _run_file([item.nodeid for item in self.session.items if item.path == self.path])
        passed, output = results[self.path]
        if self.nodeid not in passed:
            pytest.fail(f"in its network namespace:\n{output}", pytrace=False)


def _run_file(tests: list[str]) -> tuple[set[str], str]:
    """Run tests in a new namespace; return those that passed, and the output."""
    options = ["-rp", "-q", "--color=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    output = run_isolated([sys.executable, "-m", "pytest", *options, *tests], PYTEST_ADDOPTS="").stdout
    lines = output.splitlines()
    return {line.removeprefix("PASSED ") for line in lines if line.startswith("PASSED ")}, output


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: run the test in a network namespace without other interfaces")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace marked tests, unless this process is in such a namespace."""
    if is_isolated():
        return
    for index, item in enumerate(items):
        if item.get_closest_marker(MARK) is not None and item.parent is not None:
            replacement = IsolatedItem.from_parent(item.parent, name=item.name, nodeid=item.nodeid)
            replacement.original = item
            replacement.own_markers.extend(item.own_markers)
            replacement.keywords.update(item.keywords)
            items[index] = replacement


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests did not run because no namespace could be created."""
    skipped = [each for each in terminalreporter.stats.get("skipped", []) if NOT_RUN in str(each.longrepr)]
    if skipped:
        terminalreporter.line(
            f"WITHOUT a network namespace, {len(skipped)} tests of hostile addresses SKIPPED: {missing_reason()}",
            red=True, bold=True,
        )  # fmt: skip
