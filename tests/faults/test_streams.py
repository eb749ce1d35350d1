"""Nodes that are killed while they stream events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import httpx2
import pytest_asyncio

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.model.job import JobSpec
from holdfast.model.lane import Lane
from holdfast.model.outcome import Succeeded
from holdfast.model.time import seconds
from tests.support.builders import enter, take
from tests.support.eventually import eventually
from tests.support.services import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from holdfast.engine.engine import Engine

KEY = "an-admin-key-for-tests-only-4711"
KILLS = 4


class Follower:
    """Client that reconnects to any node after its last event id and fetches jobs that were only counted."""

    def __init__(self, *nodes: Service) -> None:
        self._nodes = nodes
        self.reported: set[str] = set()
        self.resets = 0
        self.opened = 0
        self._last = ""

    async def follow(self) -> None:
        turn = 0
        while True:
            node = self._nodes[turn % len(self._nodes)]
            turn += 1
            headers = {"authorization": f"Bearer {KEY}"} | ({"last-event-id": self._last} if self._last else {})
            with contextlib.suppress(httpx2.HTTPError):
                async with (
                    httpx2.AsyncClient(base_url=node.url, headers=headers, trust_env=False, timeout=60) as client,
                    client.stream("GET", "/v1/events") as answer,
                ):
                    await self._read(client, answer)
            await asyncio.sleep(0)

    async def _read(self, client: httpx2.AsyncClient, answer: httpx2.Response) -> None:
        if answer.status_code != 200:
            return
        self.opened += 1
        event = ""
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                self._last = value
            elif name == "event":
                event = value
                self.resets += event == "reset"
            elif name == "data" and event == "job":
                job = json.loads(value)
                if job["status"] == "succeeded":
                    self.reported.add(job["id"])
            elif name == "data" and event == "jobs":
                self.reported |= await _read_succeeded(client)


async def _read_succeeded(client: httpx2.AsyncClient) -> set[str]:
    """Return the ids of all succeeded jobs, of which there may be many pages on a slow machine."""
    found: set[str] = set()
    query = {"status": "succeeded", "limit": "200"}
    while True:
        page = (await client.get("/v1/jobs", params=query)).json()
        found |= {job["id"] for job in page["items"]}
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


@pytest_asyncio.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    opened = await open_engine(Settings(database_url=database_url))
    yield opened
    await opened.aclose()


async def test_an_event_reader_misses_nothing_if_either_of_two_nodes_is_killed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    """F41: jobs run one at a time while nodes are killed in turn; each success is reported by one of them."""
    monkeypatch.setenv("HOLDFAST_ADMIN_KEY", KEY)
    nodes = [Service(database_url, tmp_path), Service(database_url, tmp_path / "other")]
    (tmp_path / "other").mkdir()
    for node in nodes:
        node.start()
    ran: list[str] = []
    follower = Follower(*nodes)
    following = asyncio.create_task(follower.follow())

    async def run_one() -> None:
        await engine.jobs.submit(JobSpec("t", queue="q", tenant="a"))
        (job,) = await take(engine.store, worker, Lane("q", "a", 0), limit=1)
        await engine.attempts.settle(job, Succeeded())
        ran.append(str(job.id))

    async def told_of_most() -> bool:
        await run_one()
        return len(follower.reported) >= expected

    async def connected() -> bool:
        return follower.opened > 0

    try:
        worker = await enter(engine.store, lease=seconds(3_600))  # its lease is not renewed
        await eventually(connected)
        for kill in range(KILLS):
            expected = len(follower.reported) + 10
            await eventually(told_of_most)
            node = nodes[kill % 2]
            node.kill()
            await run_one()
            node.start()
        await eventually(lambda: _covers(follower, ran))
        assert follower.resets == 0
        assert follower.opened > 1
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        for node in nodes:
            node.kill()


async def _covers(follower: Follower, ran: list[str]) -> bool:
    return set(ran) <= follower.reported
