"""Concurrent requests of one API key: bounded, in order, and without effect on other keys."""

import asyncio
import threading

import pytest
import pytest_asyncio

from holdfast.api import request_slots
from holdfast.api.request_slots import LARGE_BODY_WEIGHT, MAX_LARGE_PAGES, RequestSlots
from holdfast.config import Settings
from holdfast.errors import RateLimited
from tests.e2e.api.conftest import ADMIN, Served, problem
from tests.support.eventually import eventually


@pytest_asyncio.fixture
async def settings(database_url):
    return Settings(database_url=database_url, admin_key=ADMIN, max_requests_per_key=2)


class BlockedReads:
    """Searches that wait until they are released."""

    def __init__(self, served: Served, monkeypatch) -> None:
        self.started = 0
        self.release = asyncio.Event()
        jobs = served.engine.jobs
        search = jobs.search

        async def blocked(*args, **kwargs):
            self.started += 1
            await self.release.wait()
            return await search(*args, **kwargs)

        monkeypatch.setattr(jobs, "search", blocked)


async def test_further_requests_of_a_key_wait_and_other_keys_do_not(served, monkeypatch):
    """F35: one client cannot use up a node."""
    blocked = BlockedReads(served, monkeypatch)
    acme, other = await served.client(await served.key("acme")), await served.client(await served.key("other"))

    async def is_full():
        return blocked.started == 2

    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(acme.get("/v1/jobs")) for _ in range(5)]
        await eventually(is_full)
        assert (await other.get("/v1/queues")).status_code == 200
        assert blocked.started == 2
        blocked.release.set()
    assert [request.result().status_code for request in requests] == [200] * 5
    assert not len(served.api.service.slots)


async def test_a_key_reads_only_a_few_large_pages_at_once(served, monkeypatch):
    """F35: a small read of another caller waits for the same database connections, behind the pages."""
    monkeypatch.setattr(served.api.service.slots, "_max_requests", 40)
    blocked = BlockedReads(served, monkeypatch)
    acme, other = await served.client(await served.key("acme")), await served.client(await served.key("other"))

    async def are_started():
        return blocked.started == MAX_LARGE_PAGES

    async def all_wait():
        return len(served.api.service.slots._keys[key].waiting) == 20 - MAX_LARGE_PAGES

    async with asyncio.TaskGroup() as group:
        requests = [
            group.create_task(acme.get(path))
            for path in ["/v1/jobs?limit=200", "/v1/dead?limit=200"]
            for _ in range(10)
        ]
        await eventually(are_started)
        (key,) = served.api.service.slots._keys
        await eventually(all_wait)
        assert (await other.post("/v1/jobs", json={"type": "send"})).status_code == 201
        assert blocked.started == MAX_LARGE_PAGES
        blocked.release.set()
    assert [request.result().status_code for request in requests] == [200] * 20


async def test_a_request_that_waits_too_long_gets_429(served, monkeypatch):
    monkeypatch.setattr(request_slots, "WAIT_TIMEOUT_S", 0.05)
    blocked = BlockedReads(served, monkeypatch)
    acme = await served.client(await served.key("acme"))

    async def is_full():
        return blocked.started == 2

    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(acme.get("/v1/jobs")) for _ in range(2)]
        await eventually(is_full)
        rejected = await acme.get("/v1/jobs")
        assert problem(rejected, 429, "rate_limited")["detail"].startswith("this key has 2 requests in progress")
        assert rejected.headers["retry-after"]
        blocked.release.set()
    assert [request.result().status_code for request in requests] == [200] * 2
    assert not len(served.api.service.slots)


async def test_long_polls_of_workers_do_not_count(served):
    http = await served.client(await served.key("acme", "worker"))
    worker = (await http.post("/v1/leases", json={"limit": 0, "lease": 60})).json()["worker"]
    polls = [{"worker": worker, "queues": ["default"], "limit": 1, "wait": 0.1} for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(http.post("/v1/leases", json=poll)) for poll in polls]
    assert [request.result().status_code for request in requests] == [200] * 5


async def test_long_polls_of_a_key_are_bounded_and_those_of_other_keys_are_not_affected(served, monkeypatch):
    """F35: each long poll holds a connection and two tasks."""
    started, release = 0, asyncio.Event()

    async def blocked(*_args, **_kwargs):
        nonlocal started
        started += 1
        await release.wait()
        return [], False

    acme, other = [await served.client(await served.key(tenant, "worker")) for tenant in ("acme", "other")]
    polls = {}
    for http in (acme, other):
        worker = (await http.post("/v1/leases", json={"limit": 0, "lease": 60})).json()["worker"]
        polls[http] = {"worker": worker, "queues": ["default"], "limit": 1, "wait": 20}
    monkeypatch.setattr(served.engine.remote_workers, "claim", blocked)
    bound = 2 * request_slots.LONG_POLL_FACTOR

    async def all_started(expected):
        return started == expected

    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(acme.post("/v1/leases", json=polls[acme])) for _ in range(bound)]
        await eventually(lambda: all_started(bound))
        rejected = await acme.post("/v1/leases", json=polls[acme])
        assert problem(rejected, 429, "rate_limited")["detail"].startswith(f"this key has {bound} long polls")
        assert rejected.headers["retry-after"]
        requests.append(group.create_task(other.post("/v1/leases", json=polls[other])))
        await eventually(lambda: all_started(bound + 1))
        release.set()
    assert [request.result().status_code for request in requests] == [200] * (bound + 1)
    assert not len(served.api.service.long_polls)


async def test_slots_are_given_in_the_order_of_arrival():
    """A request with a large body is not overtaken for ever by small ones."""
    slots = RequestSlots(LARGE_BODY_WEIGHT)
    order = []

    async def run(name, weight):
        taken = await slots.acquire("key", weight)
        order.append(name)
        await asyncio.sleep(0)
        slots.release("key", taken)

    held = await slots.acquire("key", 1)
    async with asyncio.TaskGroup() as group:
        group.create_task(run("large", 2 * LARGE_BODY_WEIGHT))
        await asyncio.sleep(0)
        group.create_task(run("small", 1))
        await asyncio.sleep(0)
        assert order == []
        slots.release("key", held)
    assert order == ["large", "small"]
    assert not len(slots)


async def test_a_cancelled_request_leaves_the_line(monkeypatch):
    slots = RequestSlots(1)
    held = await slots.acquire("key", 1)
    waiting = asyncio.ensure_future(slots.acquire("key", 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    monkeypatch.setattr(request_slots, "WAIT_TIMEOUT_S", 0.0)
    with pytest.raises(RateLimited):
        await slots.acquire("key", 1)
    slots.release("key", held)
    assert not len(slots)


async def test_a_large_batch_is_parsed_and_validated_in_a_thread(served, monkeypatch):
    """F35: other requests are answered meanwhile; a small one needs no thread."""
    threads = []
    for module, name in (("holdfast.wire.json", "read"), ("holdfast.engine.submitting.submitter", "build_jobs")):
        function = getattr(__import__(module, fromlist=[name]), name)

        def record(*args, call=function, **kwargs):
            threads.append(threading.current_thread() is threading.main_thread())
            return call(*args, **kwargs)

        monkeypatch.setattr(f"{module}.{name}", record)
    client = await served.client(await served.key("acme"))
    large = {"jobs": [{"type": "send", "payload": "x" * 1_000} for _ in range(600)]}
    assert (await client.post("/v1/jobs/batch", json=large)).status_code == 201
    assert threads == [False, False]
    threads.clear()
    large["jobs"][7]["priority"] = "high"
    problem(await client.post("/v1/jobs/batch", json=large), 422, "invalid_batch")
    assert threads[:1] == [False]
    threads.clear()
    assert (await client.post("/v1/jobs/batch", json={"jobs": [{"type": "send"}]})).status_code == 201
    assert threads == [True, True]


async def test_a_key_waits_after_a_refused_large_body_and_other_keys_do_not(monkeypatch):
    """F35: refused batches cost their key time, in proportion to the time that they took."""
    now, pauses = [1_000.0], []

    async def sleep(seconds):
        pauses.append(seconds)
        now[0] += seconds

    slots = RequestSlots(100)
    for key in ("refused", "other"):
        await slots.acquire(key, 1)
    with monkeypatch.context() as patch:
        patch.setattr(request_slots.time, "monotonic", lambda: now[0])
        patch.setattr(request_slots.asyncio, "sleep", sleep)
        await slots.wait_after_refusals("refused")
        slots.refused("refused", 0.5)
        slots.refused("refused", 0.25)
        await slots.wait_after_refusals("other")
        assert pauses == []
        await slots.wait_after_refusals("refused")
        assert pauses == [request_slots.REFUSAL_FACTOR * 0.75]
