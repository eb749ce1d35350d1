"""Nodes of the HTTP service that are killed or lose their database."""

import asyncio
import contextlib
import itertools
from collections import Counter

import httpx2
import pytest

from holdfast.compose import build_api, open_engine
from holdfast.config import Settings
from holdfast.model.job import JobFilter, Page
from tests.support.eventually import eventually
from tests.support.long import LONG
from tests.support.services import Service

KILLS = 200 if LONG else 6
BATCH = 40
KEY = "an-admin-key-for-tests-only-4711"


@pytest.fixture
def service(database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_ADMIN_KEY", KEY)
    made = Service(database_url, tmp_path)
    made.start()
    yield made
    made.kill()


def client(service):
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx2.AsyncClient(base_url=service.url, headers=headers, trust_env=False, timeout=60)


@pytest.mark.timeout(1_800 if LONG else 120)
async def test_a_batch_is_stored_completely_or_not_at_all_if_its_node_is_killed(service, database_url):
    """F06, S2, S10: 6 kills (HOLDFAST_LONG_TESTS=1: 200). Batches without a response are resolved by their keys."""
    engine = await open_engine(Settings(database_url=database_url))
    numbers = itertools.count()
    confirmed: set[int] = set()
    submitted: set[int] = set()

    def batch(number):
        return {"jobs": [{"type": f"b{number}", "idempotency_key": f"{number}-{n}"} for n in range(BATCH)]}

    async def submit(http, number):
        submitted.add(number)
        with contextlib.suppress(httpx2.HTTPError):
            response = await http.post("/v1/jobs/batch", json=batch(number))
            if response.status_code == 201:
                confirmed.add(number)

    async def keep_on(stop):
        while not stop.is_set():
            async with client(service) as http:
                await submit(http, next(numbers))

    for kill in range(KILLS):
        stop = asyncio.Event()
        seen = len(confirmed)
        clients = [asyncio.create_task(keep_on(stop)) for _ in range(4)]
        # At a different moment each time: while requests are read, written or responded to.
        await eventually(lambda seen=seen, more=kill % 5: _true(len(confirmed) > seen + more))
        service.kill()
        stop.set()
        await asyncio.gather(*clients)
        await asyncio.to_thread(service.start)

    stored = Counter()
    page = Page(limit=1_000)
    while jobs := await engine.jobs.find(JobFilter(), page):
        stored.update(int(job.type[1:]) for job in jobs)
        page = Page(limit=1_000, before=jobs[-1].id)
    assert set(stored.values()) == {BATCH}  # whole
    assert confirmed <= set(stored) <= submitted  # a response is a promise
    ambiguous = submitted - confirmed
    async with client(service) as http:
        for number in ambiguous:
            response = await http.post("/v1/jobs/batch", json=batch(number))
            assert response.status_code == 201
            replayed = [item["replayed"] for item in response.json()["items"]]
            assert replayed == [number in stored] * BATCH
    assert len(ambiguous) >= KILLS / 6  # it was killed during a request
    await engine.aclose()


async def _true(fact):
    return fact


async def test_callers_get_retry_after_during_an_outage_and_succeed_afterwards(private_server):
    """F09: 503 with Retry-After and no other error; the node recovers without a restart."""
    url = await private_server.new_database()
    settings = Settings(database_url=url, admin_key=KEY)
    engine = await open_engine(settings)
    transport = httpx2.ASGITransport(build_api(settings, engine))
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(base_url="http://node", headers=headers, transport=transport) as http:
        assert (await http.post("/v1/jobs", json={"type": "before"})).status_code == 201
        private_server.crash()
        for method, path, body in (
            ("POST", "/v1/jobs", {"type": "lost"}),
            ("POST", "/v1/jobs/batch", {"jobs": [{"type": "lost"}]}),
            ("GET", "/v1/jobs", None),
            ("GET", "/readyz", None),
            ("GET", "/v1/keys", None),
            ("GET", "/metrics", None),
        ):
            response = await http.request(method, path, json=body)
            assert (response.status_code, path) == (503, path), response.text
            assert int(response.headers["retry-after"]) >= 1
            assert url.partition("@")[2] not in response.text
        assert (await http.get("/healthz")).status_code == 200
        private_server.start()

        async def back():
            return (await http.post("/v1/jobs", json={"type": "after"})).status_code == 201

        await eventually(back, within=5)
        assert (await http.get("/readyz")).json()["ready"] is True
        found = [job["type"] for job in (await http.get("/v1/jobs")).json()["items"]]
        assert "lost" not in found
    await engine.aclose()
