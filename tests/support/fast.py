"""pytest option `--fast`: the tests for the inner loop, without servers and without anything slow.

Ignores the folders in `IGNORED`, unless an argument names one of them, uses SQLite as the only database, and deselects
tests that need a server, run in a network namespace or are marked `slow`. `tests/unit/conftest.py` reduces the random
examples of property tests.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

TESTS = Path(__file__).parents[1]
IGNORED = frozenset({TESTS / "dialects", TESTS / "faults", TESTS / "e2e"})
SERVER_FIXTURES = frozenset({"postgres_server", "mysql_server", "redis_server"})


def seeds(count: int, fast: int = 3) -> list[ParameterSet]:
    """Return the seeds from 0 to `count` as parameters of a test; `--fast` runs the first `fast` of them."""
    return [pytest.param(seed, marks=() if seed < fast else pytest.mark.slow) for seed in range(count)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="run only quick tests, on SQLite: no tests/dialects, tests/faults or tests/e2e",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes half a second or more on SQLite; left out by --fast")
    if is_fast(config):
        if set(config.option.db or ()) - {"sqlite"}:
            raise pytest.UsageError("--fast runs on SQLite only: leave out --db")
        config.option.db = ["sqlite"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not is_fast(config) or collection_path not in IGNORED:
        return None
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(collection_path) for path in named) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not is_fast(config):
        return
    deselected = [item for item in items if not _is_quick(item)]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if _is_quick(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    if is_fast(session.config):
        gc.collect()
        gc.freeze()  # otherwise every collection during the tests visits the thousands of collected items


def is_fast(config: pytest.Config) -> bool:
    return bool(config.getoption("--fast"))


def _is_quick(item: pytest.Item) -> bool:
    databases = {name for mark in item.iter_markers("databases") for name in mark.args}
    return (
        item.get_closest_marker("slow") is None
        and item.get_closest_marker("isolated_network") is None  # starts another pytest
        and SERVER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        and (not databases or "sqlite" in databases)
    )
