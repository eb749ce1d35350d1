"""Fixtures with a real system and a real browser: a service node, a worker and Chromium, each in its own process.

Each test process has its own node and worker, the whole run shares one browser, and each test gets a new browser
context. A test fails if its page violates the content security policy, logs a console error, opens a dialog or sends
a request to another host.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.e2e.browser.driver import ADMIN, Driver, System
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
    """Start the node and the worker, unless Chromium is missing and the tests are skipped."""
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
        system = System(service.url, http, ledger)

        async def worker_is_registered() -> bool:
            assert worker.alive(), worker.log
            return bool((await system.request("GET", "/v1/workers"))["items"])

        await eventually(worker_is_registered, within=90)
        yield system


@pytest_asyncio.fixture(loop_scope="session")
async def driver(browser, system) -> AsyncIterator[Driver]:
    """Return a driver of a new browser context; `open` signs in as administrator by default."""
    async with Driver(browser, system) as driver:
        yield driver
    assert driver.problems == []


@pytest.fixture
def queue(request) -> str:
    """Return a queue name that is unique to the test and that no worker serves."""
    return request.node.name.split("[")[0][:100]
