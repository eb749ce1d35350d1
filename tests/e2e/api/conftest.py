"""HTTP service in process, on each database: `served` for requests, `live` if a socket matters."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import pytest_asyncio

from holdfast.api.server.server import bind, serve
from holdfast.compose import build_api, open_engine
from holdfast.config import Settings
from holdfast.engine.access import Access
from holdfast.model.access import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.api.app import Api
    from holdfast.engine.engine import Engine

ADMIN = "an-admin-key-for-tests-only-4711"


class Served:
    """Service node whose clients call it in process, from any address."""

    def __init__(self, api: Api, engine: Engine, stack: AsyncExitStack, url: str | None = None) -> None:
        self.api = api
        self.engine = engine
        self.url = url or "http://holdfast.test"
        self._stack = stack
        self._listens = url is not None

    async def key(self, tenant: str = "acme", *scopes: str, **options: Any) -> str:
        """Create an API key of this tenant with these scopes (default: submit, read, cancel); return its token."""
        wanted = frozenset(Scope(each) for each in scopes or ("submit", "read", "cancel"))
        return (await self.engine.access.create_key(tenant, "of a test", wanted, **options))[1]

    async def client(
        self, key: str | None = ADMIN, *, address: str = "127.0.0.1", **headers: str
    ) -> httpx2.AsyncClient:
        """Return a client that sends this key or token, or none; closed after the test."""
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        # Errors of the service become responses, in process as on a socket.
        inner = None if self._listens else httpx2.ASGITransport(self.api, client=(address, 4711))
        made = httpx2.AsyncClient(base_url=self.url, headers=headers, transport=inner, trust_env=False, timeout=60)
        return await self._stack.enter_async_context(made)


@pytest_asyncio.fixture
async def settings(database_url: str) -> Settings:
    """Settings of the node; override this fixture for other settings."""
    return Settings(database_url=database_url, admin_key=ADMIN)


@pytest_asyncio.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    opened = await open_engine(settings)
    yield opened
    await opened.aclose()


@pytest_asyncio.fixture
async def served(settings: Settings, engine: Engine) -> AsyncIterator[Served]:
    """Node without a socket; responses arrive whole, so tests of streams need `live`."""
    async with AsyncExitStack() as stack:
        yield Served(build_api(settings, engine), engine, stack)


class Ticker:
    """Monotonic clock that advances only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def ticker() -> Ticker:
    return Ticker()


@pytest_asyncio.fixture
async def ticking(settings: Settings, ticker: Ticker) -> AsyncIterator[Served]:
    """Second node on the same database whose clock advances only when a test says so."""
    engine = await open_engine(settings)
    engine.access = Access(engine.store, monotonic=ticker)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.aclose)
        yield Served(build_api(settings, engine, monotonic=ticker), engine, stack)


@pytest_asyncio.fixture
async def live(settings: Settings, engine: Engine) -> AsyncIterator[Served]:
    """Node on a real server, on a free port of 127.0.0.1."""
    api = build_api(settings, engine)
    listening = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    up, stop = asyncio.Event(), asyncio.Event()
    answering = asyncio.create_task(serve(api, listening, stop=stop, ready=up.set))
    await up.wait()
    async with AsyncExitStack() as stack:
        yield Served(api, engine, stack, url)
    stop.set()
    await answering


@pytest_asyncio.fixture
async def admin(served: Served) -> httpx2.AsyncClient:
    """Client with the admin key."""
    return await served.client()


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Check that a response is this problem; return it."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    found: dict[str, Any] = answer.json()
    assert (found["status"], found["code"]) == (status, code), found
    return found
