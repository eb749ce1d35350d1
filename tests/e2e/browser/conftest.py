"""A real system and a real browser: a node of the service and a worker as processes of their own, and Chromium.

There is one of each for a test process (the browser is the run's), and a fresh context of the browser for each test.
A page fails its test if it violates its policy, writes an error to the console, opens a dialog or asks a foreign host.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.e2e.browser.looking import ADMIN, Looking, System
from tests.support import nodes
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.services import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser

    from tests.support.nodes import Node
    from tests.support.servers import Server

expect.set_options(timeout=45_000)


@pytest.fixture(scope="session")
def chromium(run) -> Server:
    return run.server("chromium")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        connected = await playwright.chromium.connect_over_cdp(chromium.url, timeout=60_000)
        yield connected
        await connected.close()


@pytest.fixture(scope="session")
def processes(chromium, databases, tmp_path_factory) -> Iterator[tuple[Service, Node, Ledger]]:
    """Asked for after the browser: nothing is started where there is none."""
    del chromium
    folder = tmp_path_factory.mktemp("browser")
    url = databases.clean("sqlite", folder)
    ledger = Ledger(folder / "ledger").create()
    with ExitStack() as stack:
        service = Service(url, folder, {"HOLDFAST_ADMIN_KEY": ADMIN})
        service.start()
        stack.callback(service.kill)
        worker = nodes.start(url, folder, ledger=ledger.path, queues="default:8,mail:4", lease=15.0)
        stack.callback(worker.end)
        yield service, worker, ledger


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(processes) -> AsyncIterator[System]:
    service, worker, ledger = processes
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, trust_env=False, timeout=60) as http:
        made = System(service.url, http, ledger)

        async def is_at_work() -> bool:
            assert worker.alive(), worker.log
            return bool((await made.ask("GET", "/v1/workers"))["items"])

        await eventually(is_at_work, within=90)
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def looking(browser, system) -> AsyncIterator[Looking]:
    """Somebody in front of a browser, signed in as administrator unless told otherwise."""
    async with Looking(browser, system) as somebody:
        yield somebody
    assert somebody.troubles == []


@pytest.fixture
def queue(request) -> str:
    """A queue of the test's own, that no worker looks at."""
    return request.node.name.split("[")[0][:100]
