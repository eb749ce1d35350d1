"""pytest plugin: the fixture `private_server`, a database server that tests crash, restart and reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.outages import Outages, outages

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVERS = ("postgres", "mysql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests with the fixture over the selected servers; SQLite has none."""
    if "private_server" in metafunc.fixturenames:
        selected = metafunc.config.getoption("--db") or SERVERS
        names = [name for name in SERVERS if name in selected]
        metafunc.parametrize("private_server", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def private_server(request: pytest.FixtureRequest) -> Iterator[Outages]:
    """Server that only the tests of one module use."""
    with outages(request.param) as made:
        if isinstance(made, str):
            pytest.skip(made)
        yield made
