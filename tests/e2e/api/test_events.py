"""Event streams: complete, isolated by tenant, and not delayed by clients that do not read."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from holdfast.api.app import Api
from holdfast.api.events import broadcaster, event_stream
from holdfast.api.events.broadcaster import EventBroadcaster
from holdfast.api.events.event_stream import (
    HEARTBEAT_INTERVAL_S,
    MAX_BUFFERED_EVENTS,
    MAX_EVENTS_PER_S,
    MAX_LIFETIME_S,
    EventFilter,
    EventReader,
)
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import PUBLIC, Route, Routes
from holdfast.api.server.server import bind, serve
from holdfast.compose import build_api, open_engine
from holdfast.engine.changes.rollups import CHANGE_LOG_RETENTION, update_rollups
from holdfast.errors import RateLimited
from holdfast.model.access import Caller, Scope
from holdfast.model.change_log import MAX_LISTED_CHANGES, ChangeBody, ChangeEntry, ChangeGroup, JobChange
from holdfast.model.ids import new_job_id
from holdfast.model.job import JobFilter, JobSpec
from holdfast.model.outcome import Succeeded
from holdfast.model.time import Instant
from holdfast.wire.events import job_event
from tests.e2e.api.conftest import ADMIN, Served, problem
from tests.support.builders import KEY_RETENTION, a_job, enter, error, hold, put, take
from tests.support.clock import Console, console
from tests.support.eventually import TIMEOUT_S, eventually
from tests.support.interleave import Interleaving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from holdfast.config import Settings
    from holdfast.engine.engine import Engine
    from holdfast.store.port.store import Tx

__all__ = ["console"]

CANARY = "canary-of-b"


class Listening:
    """A stream that is read to its end; what came so far."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.text = ""
        self.ended = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def events(self) -> list[tuple[str, Any, str]]:
        """(kind, data, id) of each."""
        found, last = [], ""
        for block in self.text.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":")
            last = fields.get("id", last)
            if "event" in fields:
                found.append((fields["event"], json.loads(fields["data"]), last))
        return found

    @property
    def last_id(self) -> str:
        """The id to resume after."""
        blocks = [line for line in self.text.split("\n") if line.startswith("id: ")]
        return blocks[-1].removeprefix("id: ")

    def jobs(self) -> list[tuple[str, str]]:
        """(id, status) of each job that was named."""
        return [(data["id"], data["status"]) for kind, data, _ in self.events if kind == "job"]

    def counted(self, status: str) -> int:
        """How many jobs came into a state, named or counted."""
        named = sum(1 for _, each in self.jobs() if each == status)
        counts = [count for kind, data, _ in self.events if kind == "jobs" for count in data["counts"]]
        return named + sum(int(count["jobs"]) for count in counts if count["status"] == status)

    async def until(self, fact: Any) -> None:
        """Until this is true of it."""
        async with asyncio.timeout(TIMEOUT_S):
            while not fact():
                self._news.clear()
                await self._news.wait()

    def heard(self, text: str) -> None:
        self.text += text
        self._news.set()


@asynccontextmanager
async def listening(client: httpx2.AsyncClient, path: str = "/v1/events", **headers: str) -> AsyncIterator[Listening]:
    """A stream that is open: whatever happens in the block is told by it."""
    async with client.stream("GET", path, headers=headers) as answer:
        heard = Listening(answer.status_code)
        if answer.status_code != 200:
            heard.heard((await answer.aread()).decode())
            yield heard
            return

        async def read() -> None:
            async for text in answer.aiter_text():
                heard.heard(text)
            heard.ended.set()
            heard.heard("")

        reading = asyncio.create_task(read())
        try:
            await heard.until(lambda: "\n\n" in heard.text)
            yield heard
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def another(settings: Settings) -> AsyncIterator[Served]:
    """Another node on the same database; it ends with the block, its streams with it."""
    engine = await open_engine(settings)
    api = build_api(settings, engine)
    socket = bind("127.0.0.1", 0)
    up, stop = asyncio.Event(), asyncio.Event()
    answering = asyncio.create_task(serve(api, socket, stop=stop, ready=up.set))
    await up.wait()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.aclose)
        try:
            yield Served(api, engine, stack, f"http://127.0.0.1:{socket.getsockname()[1]}")
        finally:
            stop.set()
            await answering


async def run_one(engine: Engine) -> None:
    """Claim a job of the lane that `a_job` is in, and let it succeed."""
    (job,) = await take(engine.store, await enter(engine.store), limit=1)
    await engine.attempts.settle(job, Succeeded())


class TestStream:
    async def test_a_stream_sends_every_status_of_a_job(self, live: Served) -> None:
        client = await live.client(await live.key("acme"))
        async with listening(client) as heard:
            job = a_job()
            await put(live.engine.store, job)
            await run_one(live.engine)
            await heard.until(lambda: len(heard.jobs()) == 3)

            assert heard.jobs() == [(str(job.id), status) for status in ("ready", "running", "succeeded")]

    async def test_a_stream_sends_only_matching_events(self, live: Served) -> None:
        client = await live.client(await live.key("acme"))
        mine, other_queue, other_type = a_job("q", type="t"), a_job("r", type="t"), a_job("q", type="u")
        last = a_job("q", type="t")
        async with listening(client, "/v1/events?queue=q&type=t") as heard:
            for job in (other_queue, other_type, mine, last):
                await put(live.engine.store, job)
            await heard.until(lambda: len(heard.jobs()) == 2)

            assert heard.jobs() == [(str(mine.id), "ready"), (str(last.id), "ready")]

    async def test_a_stream_of_one_job_follows_it_through_bulk_changes(self, live: Served) -> None:
        client = await live.client(await live.key("acme"))
        job = a_job()
        await put(live.engine.store, job)
        async with listening(client, f"/v1/events?job={job.id}") as heard:
            await put(live.engine.store, a_job(), a_job())
            await live.engine.jobs.cancel([job.id], reason="")
            await heard.until(lambda: len(heard.jobs()) == 1)
            assert heard.jobs() == [(str(job.id), "cancelled")]
            others = [a_job() for _ in range(MAX_LISTED_CHANGES + 1)]
            await put(live.engine.store, *others)
            await live.engine.jobs.retry([job.id])
            await heard.until(lambda: len(heard.jobs()) == 2)
            await live.engine.jobs.cancel([job.id, *[each.id for each in others]], reason="")
            await heard.until(lambda: len(heard.jobs()) == 3)

            assert heard.jobs() == [(str(job.id), status) for status in ("cancelled", "ready", "cancelled")]
            assert {kind for kind, _, _ in heard.events} == {"job"}
            last = heard.last_id
        await live.engine.jobs.retry([job.id, *[each.id for each in others]])
        async with listening(client, f"/v1/events?job={job.id}", **{"Last-Event-ID": last}) as heard:
            await heard.until(lambda: (str(job.id), "ready") in heard.jobs())
            await live.engine.jobs.apply_to_matching("delete", JobFilter(tenant="acme"))
            await heard.until(lambda: (str(job.id), "deleted") in heard.jobs())

            assert {kind for kind, _, _ in heard.events} == {"job"}

    async def test_a_stream_sends_deletions(self, live: Served) -> None:
        """Single deletions and purges of many dead letters; other tenants do not see them."""
        client = await live.client(await live.key("acme"))
        job, many = a_job(), [a_job() for _ in range(MAX_LISTED_CHANGES + 1)]
        await put(live.engine.store, job)
        for each in await hold(live.engine.store, await enter(live.engine.store), len(many), max_attempts=1):
            await live.engine.attempts.settle(each, error())
        stranger = await live.client(await live.key("other"))
        async with listening(client) as heard, listening(stranger) as overheard:
            assert (await client.delete(f"/v1/jobs/{job.id}")).status_code == 204
            await heard.until(lambda: heard.jobs() == [(str(job.id), "deleted")])
            assert (await client.delete("/v1/dead?all=true")).status_code == 200
            await heard.until(lambda: heard.counted("deleted") == 1 + len(many))
            await put(live.engine.store, a_job(tenant="other"))
            await overheard.until(lambda: len(overheard.jobs()) == 1)

            assert overheard.counted("deleted") == 0

    async def test_a_stream_counts_changes_above_the_rate_limit(self, live: Served) -> None:
        """Over the rate of a reader, changes are counted once a second; none is left out."""
        client = await live.client(await live.key("acme"))
        jobs = 3 * MAX_EVENTS_PER_S
        async with listening(client) as heard:
            for _ in range(jobs):
                await put(live.engine.store, a_job())
            await heard.until(lambda: heard.counted("ready") == jobs)

    async def test_administrators_see_all_tenants_and_workers(self, live: Served) -> None:
        admin = await live.client()
        async with listening(admin) as heard, listening(admin, "/v1/events?tenant=b") as narrow:
            for tenant in ("a", "b"):
                await put(live.engine.store, a_job(tenant=tenant))
            worker = await enter(live.engine.store)
            await live.engine.workers.depart(worker)
            await heard.until(lambda: heard.text.count("event: worker") == 2)
            await narrow.until(lambda: len(narrow.jobs()) == 1)

            assert {data["tenant"] for kind, data, _ in heard.events if kind == "job"} == {"a", "b"}
            assert {data["tenant"] for kind, data, _ in narrow.events if kind == "job"} == {"b"}

    async def test_a_stream_ends_when_the_node_stops_without_delaying_it(self, settings: Settings) -> None:
        async with another(settings) as node:
            client = await node.client()
            async with listening(client) as heard:
                node.api.service.stopping.set()
                await heard.until(heard.ended.is_set)
                assert heard.events[-1][:2] == ("reset", {"reason": "stopping"})

    async def test_a_stream_ends_when_its_key_is_revoked(self, live: Served) -> None:
        key = await live.key("acme")
        async with listening(await live.client(key)) as heard, listening(await live.client()) as other:
            (found,) = await live.engine.access.keys("acme")
            await live.engine.access.revoke_key(found.id)
            await live.api.service.streams.check_keys()
            await heard.until(heard.ended.is_set)

            assert heard.events == [("reset", {"reason": "revoked"}, heard.last_id)]
            assert not other.ended.is_set()

    async def test_a_stream_accepts_no_credentials_in_the_url(self, live: Served) -> None:
        """T31: the key comes in a header; one in the URL is a parameter that there is not."""
        client = await live.client(None)
        problem(await client.get(f"/v1/events?token={ADMIN}"), 401, "unauthorized")
        admin = await live.client()
        assert (await admin.get(f"/v1/events?token={ADMIN}")).status_code == 422

    async def test_a_head_request_gets_no_stream(self, live: Served) -> None:
        answer = await (await live.client()).head("/v1/events")
        assert (answer.status_code, len(live.api.service.streams)) == (200, 0)


class TestTenantIsolation:
    async def test_a_tenant_receives_no_byte_of_another_tenant(self, live: Served) -> None:
        """S23, T03: whatever tenant B does, alone or in bulk, not a byte of it reaches A."""
        client = await live.client(await live.key("a"))
        async with listening(client) as heard, listening(client, "/v1/events?queue=mail") as narrow:
            theirs = [a_job(CANARY, tenant=CANARY, type=CANARY) for _ in range(MAX_LISTED_CHANGES + 5)]
            await put(live.engine.store, theirs[0])
            await put(live.engine.store, *theirs[1:])
            await put(live.engine.store, a_job(CANARY, tenant=CANARY), *[a_job(tenant="a") for _ in range(3)])
            mixed = [a_job(CANARY, tenant=CANARY, type=CANARY), a_job(tenant="a")]
            await put(live.engine.store, *mixed, *[a_job(tenant="a") for _ in range(MAX_LISTED_CHANGES)])
            worker = await enter(live.engine.store, name=CANARY)
            await live.engine.workers.depart(worker)
            await put(live.engine.store, a_job(tenant="a"))
            for each in (heard, narrow):
                await each.until(lambda each=each: each.counted("ready") == MAX_LISTED_CHANGES + 5)
                assert CANARY not in each.text
            again = heard.last_id
        async with listening(client, **{"last-event-id": "0"}) as resumed:
            assert CANARY not in resumed.text
            assert again.isdecimal()

    async def test_a_tenant_cannot_request_events_of_another_tenant(self, live: Served) -> None:
        client = await live.client(await live.key("a"))
        theirs = a_job(tenant="b")
        await put(live.engine.store, theirs)

        problem(await client.get("/v1/events?tenant=b"), 403, "forbidden")
        problem(await client.get(f"/v1/events?job={theirs.id}"), 404, "not_found")
        problem(await client.get("/v1/events?job=nonsense"), 404, "not_found")

    async def test_an_event_without_a_tenant_is_not_delivered(self) -> None:
        """T03: an event without a tenant matches no stream."""
        streams, reader = unattached(Caller("a", frozenset({Scope.READ}), "key:a"), EventFilter("a"))
        admin = EventReader(streams, ADMINISTRATOR, EventFilter(), None, 0)
        entry = ChangeEntry(1, Instant(1), ChangeBody(c=[change("")], g=[ChangeGroup("", "q", "t", 0, 1)]))
        for each in (reader, admin):
            each.add_entry(entry, 0, {}, 0)
            each.end("old")
        assert [await anext_of(each) for each in (reader, admin)] == [CUT_TIMEOUT_S["old"]] * 2

    async def test_an_event_of_another_tenant_in_the_buffer_is_not_sent(self) -> None:
        """T03: looked at once more when it is written."""
        streams, reader = unattached(Caller("a", frozenset({Scope.READ}), "key:a"), EventFilter(None))
        reader.add_entry(ChangeEntry(1, Instant(1), ChangeBody(c=[change("b")])), 0, {}, 0)
        reader.add_entry(ChangeEntry(2, Instant(1), ChangeBody(c=[change("a")])), 0, {}, 0)
        text = await anext_of(reader)

        assert (text.count(b"event: job"), b'"tenant":"b"' in text) == (1, False)
        assert len(streams) == 0


class TestReconnect:
    async def test_a_client_misses_nothing_on_another_node_while_jobs_run(
        self, settings: Settings, live: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S21: every success is sent by one of the nodes, although each of them stops in the middle."""
        for limit in ("MAX_EVENTS_PER_S", "MAX_BUFFERED_EVENTS"):  # each job is to be named
            monkeypatch.setattr(event_stream, limit, 10**6)
        key = await live.key("acme")
        ran: list[str] = []
        rounds, stop = asyncio.Semaphore(0), asyncio.Event()

        async def work() -> None:
            worker = await enter(live.engine.store)
            while await rounds.acquire() and not stop.is_set():
                jobs = [a_job(), a_job()]
                await put(live.engine.store, *jobs)
                for job in await take(live.engine.store, worker, limit=2):
                    await live.engine.attempts.settle(job, Succeeded())
                    ran.append(str(job.id))

        working = asyncio.create_task(work())
        told: set[str] = set()
        last: dict[str, str] = {}
        for _ in range(3):
            async with another(settings) as node, listening(await node.client(key), **last) as heard:
                for _ in range(300):  # no more in all than a reader may miss
                    rounds.release()
                before = len(ran)
                await heard.until(lambda heard=heard, n=before: heard.counted("succeeded") >= 5 and len(ran) >= n + 5)
                node.api.service.stopping.set()  # the node goes away in the middle of it
                await heard.until(heard.ended.is_set)
                told |= {job for job, status in heard.jobs() if status == "succeeded"}
                last = {"last-event-id": heard.last_id}
        stop.set()
        rounds.release()
        await working
        async with listening(await live.client(key), **last) as heard:
            await eventually(lambda: caught_up(heard, told, ran))

    async def test_a_client_receives_rows_that_were_committed_late(self, live: Served, console: Console) -> None:
        """A number drawn before that of a row which was told already is still to come: no resume may pass it."""
        client = await live.client(await live.key("acme"))
        store = live.engine.store
        slow, quick = a_job(), a_job()
        ids: list[str] = []

        async def insert(tx: Tx) -> None:
            await tx.insert([slow], key_retention=KEY_RETENTION)

        async with listening(client) as heard:

            async def others() -> None:
                await put(store, quick)
                await heard.until(lambda: (str(quick.id), "ready") in heard.jobs())
                ids.append(heard.last_id)

            async def nothing(_tx: Tx, _seen: None) -> None:
                return

            await Interleaving(console).run(store, insert, others, nothing)
            await heard.until(lambda: (str(slow.id), "ready") in heard.jobs())
        async with listening(client, **{"last-event-id": ids[0]}) as resumed:
            await resumed.until(lambda: (str(slow.id), "ready") in resumed.jobs() or console.dialect == "sqlite")

    async def test_a_client_that_was_away_too_long_gets_a_reset(self, live: Served, console: Console) -> None:
        """S21"""
        store = live.engine.store
        await put(store, a_job())
        first = (await store.single(lambda tx: tx.change_log_range())).last
        await put(store, a_job())
        await update_rollups(store)
        await console.run(f"UPDATE holdfast_change_log SET at = at - {2 * CHANGE_LOG_RETENTION}")
        # Numbers that earlier tests used up are not waited for.
        await console.run(
            "UPDATE holdfast_rollup_position SET gaps = '[]'" if console.dialect != "sqlite" else "SELECT 1"
        )
        await update_rollups(store)
        client = await live.client()
        for gone in (str(first), "999999999999", "nonsense"):
            async with listening(client, **{"last-event-id": gone}) as heard:
                ((kind, data, again),) = heard.events
                assert (kind, data) == ("reset", {"reason": "expired"})
            async with listening(client, **{"last-event-id": again}) as heard:
                assert heard.events == []


async def caught_up(heard: Listening, told: set[str], ran: list[str]) -> bool:
    return set(ran) <= told | {job for job, status in heard.jobs() if status == "succeeded"}


ADMINISTRATOR = Caller("default", frozenset(Scope), "key:admin")
CUT_TIMEOUT_S = {
    reason: b'event: reset\ndata: {"reason":"%b"}\n\n' % reason.encode() for reason in ("old", "slow", "stopping")
}


class _Nobody:
    async def is_still_valid(self, caller: Caller) -> bool:
        del caller
        return True


def unattached(caller: Caller, wanted: EventFilter) -> tuple[EventBroadcaster, EventReader]:
    """A stream without a node: events are put into it by hand."""
    streams = EventBroadcaster(None, _Nobody(), asyncio.Event(), monotonic=lambda: 0.0)  # type: ignore[arg-type]
    return streams, EventReader(streams, caller, wanted, None, 0)


def change(tenant: str = "a") -> JobChange:
    return JobChange(new_job_id(), tenant, "q", "t", 0, 0, 0)


async def anext_of(reader: EventReader) -> bytes:
    reader._started = True
    return await asyncio.wait_for(anext(reader), TIMEOUT_S)


class TestReader:
    async def test_a_reader_that_does_not_read_is_ended(self) -> None:
        """T19, F41: the buffer of a reader is bounded; beyond it, the stream ends with a reset."""
        _, reader = unattached(ADMINISTRATOR, EventFilter())
        for number in range(2 * MAX_BUFFERED_EVENTS):
            reader.add_entry(ChangeEntry(number, Instant(1), ChangeBody(c=[change()])), number, {}, float(2 * number))
        assert reader.cut.done()
        assert await anext_of(reader) == CUT_TIMEOUT_S["slow"]
        with pytest.raises(StopAsyncIteration):
            await anext(reader)

    async def test_a_reader_that_does_not_read_the_end_is_abandoned(
        self, served: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F41: a socket that its client does not read holds no resources."""
        monkeypatch.setattr("holdfast.api.server.streaming.CUT_TIMEOUT_S", 0.01)
        _, reader = unattached(ADMINISTRATOR, EventFilter())
        reader._started = True
        reader.add_entry(ChangeEntry(1, Instant(1), ChangeBody(c=[change()])), 0, {}, 0)
        stuck = asyncio.Event()

        async def events(call: Any) -> HttpResponse | Stream:
            del call
            return Stream(reader, "text/event-stream", {}, reader.cut)

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                stuck.set()
                await asyncio.Event().wait()

        async def receive() -> Any:
            return await asyncio.Event().wait()

        routes = Routes([Route("GET", "/stuck", PUBLIC, events, "", {200: "text/event-stream"})])
        api = Api(served.api.service._replace(routes=routes))
        scope = {"type": "http", "method": "GET", "path": "/stuck", "headers": []}
        sending = asyncio.create_task(api(scope, receive, send))
        await stuck.wait()
        reader.end("slow")
        await asyncio.wait_for(sending, TIMEOUT_S)

    async def test_a_reader_gets_a_change_once_if_a_refresh_saw_it_before_its_row(self) -> None:
        """Many jobs changed, so the job was refreshed; it had changed again, and that row comes later."""
        job = change()
        streams, _ = unattached(ADMINISTRATOR, EventFilter())
        reader = EventReader(streams, ADMINISTRATOR, EventFilter(job=str(job.id)), None, 0, job=job)
        many = ChangeEntry(1, Instant(1), ChangeBody(g=[ChangeGroup("a", "q", "t", 0, jobs=999)]))
        ahead, back = replace(job, status=5, fence=2), replace(job, status=1, fence=1)

        for learnt, rows in ((ahead, [ahead]), (replace(ahead, fence=4), [back, replace(ahead, fence=4)])):
            reader.add_entry(many, 1, {}, 0)
            reader.refresh(learnt, 1, 0)
            for number, row in enumerate(rows, 2):
                reader.add_entry(ChangeEntry(number, Instant(1), ChangeBody(c=[row])), number, {}, 0)

        told = [ahead, replace(ahead, fence=4), back, replace(ahead, fence=4)]
        text = await anext_of(reader)
        assert [event.split(b"data: ")[1] for event in text.split(b"\n\n")[:-1]] == [
            job_event(each, Instant(1)).split(b"data: ")[1].strip() for each in told
        ]

    async def test_an_idle_reader_gets_heartbeats_and_is_ended_after_an_hour(self) -> None:
        """T19."""
        _, reader = unattached(ADMINISTRATOR, EventFilter())
        reader.tick(HEARTBEAT_INTERVAL_S - 1, 5)
        reader.tick(HEARTBEAT_INTERVAL_S, 6)
        assert await anext_of(reader) == b"id: 6\n: beat\n\n"
        reader.tick(MAX_LIFETIME_S, 7)
        assert (await anext_of(reader)).endswith(b": beat\n\n")
        assert await anext_of(reader) == CUT_TIMEOUT_S["old"]

    async def test_a_reader_gets_no_id_beyond_unsent_counts(self) -> None:
        """Who leaves before the counts are sent hears of those jobs again when it comes back."""
        _, reader = unattached(ADMINISTRATOR, EventFilter())
        for number in range(MAX_EVENTS_PER_S + 2):
            reader.add_entry(ChangeEntry(number, Instant(1), ChangeBody(c=[change()])), number, {}, 0)
        reader.add_entry(ChangeEntry(99, Instant(1), ChangeBody(c=[change()])), 99, {}, 1)
        text = await anext_of(reader)
        assert text.count(b"event: job\n") == MAX_EVENTS_PER_S + 1
        assert f"id: {MAX_EVENTS_PER_S}\n".encode() in text.rsplit(b"\n\n", 2)[1] + b"\n"
        reader.tick(2, 100)
        assert (await anext_of(reader)).startswith(f"id: {MAX_EVENTS_PER_S}\nevent: jobs".encode())


class TestMaximum:
    async def test_a_key_may_open_five_streams(self, live: Served) -> None:
        """T19: one more is refused, until one ends."""
        client = await live.client(await live.key("acme"))
        async with AsyncExitStack() as stack:
            for _ in range(broadcaster.MAX_STREAMS_PER_KEY - 1):
                await stack.enter_async_context(listening(client))
            async with listening(client):
                refused = await client.get("/v1/events")
                problem(refused, 429, "rate_limited")
                assert refused.headers["retry-after"] == "5"
            await eventually(lambda: left(live, broadcaster.MAX_STREAMS_PER_KEY - 1))
            async with listening(client) as heard:
                assert heard.status == 200
        await eventually(lambda: left(live, 0))

    @pytest.mark.parametrize("limit, tenants", [("MAX_STREAMS_PER_TENANT", 1), ("MAX_STREAMS_PER_NODE", 3)])
    async def test_a_tenant_and_a_node_have_a_maximum_of_streams(
        self, monkeypatch: pytest.MonkeyPatch, limit: str, tenants: int
    ) -> None:
        """T19."""
        monkeypatch.setattr(broadcaster, limit, 3)
        monkeypatch.setattr(EventBroadcaster, "_run", lambda self, begun: asyncio.sleep(0))
        streams, _ = unattached(ADMINISTRATOR, EventFilter())
        callers = [Caller(f"t{n % tenants}", frozenset({Scope.READ}), f"key:{n}") for n in range(4)]
        opened = [streams.open(caller, EventFilter(caller.tenant), None) for caller in callers[:3]]
        with pytest.raises(RateLimited):
            streams.open(callers[3], EventFilter(callers[3].tenant), None)
        await opened[0].aclose()
        await opened[0].aclose()
        opened[0] = streams.open(callers[3], EventFilter(callers[3].tenant), None)
        for reader in opened:
            await reader.aclose()
        assert len(streams) == 0


async def left(live: Served, streams: int) -> bool:
    return len(live.api.service.streams) == streams


async def test_the_database_is_not_read_without_streams(live: Served) -> None:
    client = await live.client()
    tasks = ("holdfast event streams read", "holdfast event streams tick", "holdfast event streams stop")
    async with listening(client):
        assert {task.get_name() for task in asyncio.all_tasks()} >= set(tasks)
    await eventually(lambda: left(live, 0))
    await live.engine.jobs.submit(JobSpec("after"))
    assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint(tasks)
