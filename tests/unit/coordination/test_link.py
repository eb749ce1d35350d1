"""Nobody waits for a Redis that does not answer, and it is used again by itself when it does."""

import asyncio
import secrets
import time

import pytest
import uvloop

from holdfast.compose import open_coordination, open_store
from holdfast.config import Settings
from holdfast.coordination.in_redis import SCRIPTS, WINDOW
from holdfast.coordination.redis_connection import Link
from holdfast.coordination.redis_protocol import DEADLINE, Away, Wire, read_url
from holdfast.errors import Misconfigured, Unavailable
from holdfast.model.job import JobSpec
from holdfast.telemetry.metrics import RedisStats, render_page
from tests.support.coordinated import hits, is_up, node
from tests.support.eventually import PATIENCE, eventually
from tests.support.interleave import Counting, Faulty, before
from tests.support.proxy import proxied


async def until(link, *, up):
    async def so():
        return link.up is up

    await eventually(so)


async def made(url, **options):
    link = Link(url, SCRIPTS, **options)
    await link.start()
    return link


async def test_many_share_one_connection_and_each_gets_its_own_answer(redis_server):
    link = await made(redis_server.url, deadline=PATIENCE)
    name = f"holdfast:test-{secrets.token_hex(8)}"
    assert await asyncio.gather(*(link.ask("APPEND", name, "x") for _ in range(100))) == list(range(1, 101))
    with pytest.raises(Away, match="WRONGTYPE"):
        await link.ask("LPUSH", name, "1")
    assert await link.ask("GET", name) == b"x" * 100  # an error is the answer to one question
    await link.ask("DEL", name)
    await link.aclose()
    with pytest.raises(Away):
        await link.ask("PING")


async def test_silence_is_not_waited_for_and_all_who_wait_are_told(redis_server):
    """F24: the address swallows what it is sent. With the real deadline: without one this test would never end."""
    events = []
    async with proxied(redis_server.url) as (proxy, url):
        link = await made(url, deadline=PATIENCE, emit=events.append)
        await until(link, up=True)
        link._wire.expect(DEADLINE)
        proxy.black_hole()
        answers = await asyncio.gather(*(link.ask("PING") for _ in range(20)), return_exceptions=True)
        assert all(isinstance(each, Away) for each in answers)
        await until(link, up=False)
        proxy.heal()
        await until(link, up=True)
        assert await link.ask("PING") == b"PONG"
        assert link.losses == sum(not event.up for event in events)
        await link.aclose()
    assert [event.up for event in events[:3]] == [True, False, True]
    assert "no answer within 25 ms" in events[1].reason


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_busy_process_does_not_wait_for_ever_either(new_loop):
    """F24: every turn of its loop comes late, and each could be what keeps it from seeing the answer."""

    async def turns_waited():
        wire = Wire(deadline=DEADLINE)
        wire.connection_made(Silence())
        answer = asyncio.ensure_future(wire.ask("PING"))
        turns = 0
        while not answer.done() and turns < MANY:
            turns += 1
            time.sleep(DEADLINE)  # noqa: ASYNC251 - the loop is to be busy
            await asyncio.sleep(0)
        wire.close("the test is over")
        with pytest.raises(Away, match="no answer within 25 ms"):
            await answer
        return turns

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(turns_waited()) < MANY


MANY = 20
"""Turns of a loop, of which a few are enough."""


class Silence(asyncio.Transport):
    """Takes everything and says nothing."""

    def write(self, data):
        pass

    def abort(self):
        pass


async def test_one_that_is_too_slow_is_not_used_until_it_is_quick(redis_server):
    """F24: it answers everything, only late."""
    events = []
    async with proxied(redis_server.url) as (proxy, url):
        proxy.delay = 0.3
        link = await made(url, deadline=0.5, emit=events.append)
        await until_told(events)
        assert not link.up
        assert "500 ms are allowed" in events[0].reason or "reached" in events[0].reason
        proxy.delay = 0.0
        await until(link, up=True)
        await link.aclose()


async def until_told(events):
    async def told():
        return events

    await eventually(told)


async def test_a_wrong_password_is_told_and_is_no_error(redis_server):
    """F24: in the log, once."""
    events = []
    user, _, place = redis_server.url.rpartition("@")
    link = await made(f"{user}wrong@{place}", emit=events.append)
    await until_told(events)
    assert (link.up, events[0].up) == (False, False)
    assert "WRONGPASS" in events[0].reason
    await link.aclose()


async def test_scripts_that_were_forgotten_are_sent_again(redis_server):
    link = await made(redis_server.url, deadline=PATIENCE)
    await until(link, up=True)
    await link.ask("SCRIPT", "FLUSH")
    with pytest.raises(Away, match="NOSCRIPT"):
        await link.run(WINDOW, "holdfast:none", "ask", 1, 1)
    await until(link, up=False)
    await until(link, up=True)
    assert await link.run(WINDOW, "holdfast:none", "ask", 1, 1) is None
    await link.aclose()


@pytest.mark.parametrize(
    "url", ["redis://host:port/0", "rediss://host?ssl_cert_reqs=perhaps", "redis://host?socket_timeout=long"]
)
def test_a_url_that_cannot_be_used_is_named(url):
    with pytest.raises(Misconfigured, match="HOLDFAST_REDIS_URL"):
        read_url(url)


def test_a_url_says_where_and_how():
    at = read_url("rediss://ada:secret@example.com:7000/3")
    assert (at.place["host"], at.place["port"], at.place["ssl"].check_hostname) == ("example.com", 7000, True)
    assert at.greeting == [("AUTH", "ada", "secret"), ("SELECT", 3)]
    assert read_url("unix:///run/redis.sock").place == {"path": "/run/redis.sock"}


@pytest.mark.databases("sqlite")
async def test_a_hit_is_answered_without_the_database_and_doubt_is_not(database_url, redis_server):
    """Not one transaction; and what is not known is asked of a database that is away."""
    spec = JobSpec(type="send", payload=1, idempotency_key="k1")
    async with node(database_url, redis_server.url, around=Faulty) as engine:
        await is_up(engine)
        made = await engine.jobs.submit(spec)
        engine.store.turns = [before(Unavailable)] * 9
        assert (await engine.jobs.submit(spec)).id == made.id
        assert [each.id for each in await engine.jobs.submit_many([spec])] == [made.id]
        with pytest.raises(Unavailable):
            await engine.jobs.submit(JobSpec(type="send", payload=1, idempotency_key="k2"))
        assert hits(engine, "keys") == 2


@pytest.mark.databases("sqlite")
async def test_a_key_is_not_believed_for_as_long_as_it_is_kept(database_url, redis_server):
    """What is remembered goes, and is believed, for half of the key's term and an hour at the most."""
    async with node(database_url, redis_server.url, idempotency_key_retention=600_000_000, around=Counting) as engine:
        await is_up(engine)
        made = await engine.jobs.submit(JobSpec(type="send", payload=1, idempotency_key="k1"))
        link = engine.coordination._link
        names = await link.ask("KEYS", f"{engine.coordination.prefix}key:*")
        assert len(names) == 1
        assert 0 < await link.ask("PTTL", names[0]) <= 300_000
        asked = engine.store.transactions
        engine.clock.offset_ms += 301_000  # it is five minutes later
        again = await engine.jobs.submit(JobSpec(type="send", payload=1, idempotency_key="k1"))
        assert (again.id, again.replayed) == (made.id, True)
        assert engine.store.transactions > asked


@pytest.mark.databases("sqlite")
async def test_what_a_restored_database_has_forgotten_is_made_anew(database_url, redis_server, tmp_path):
    """The key is remembered, its job is not there: as with a database that was restored from a backup."""
    spec = JobSpec(type="send", payload=1, idempotency_key="k1")
    async with node(database_url, redis_server.url) as engine:
        await is_up(engine)
        made = await engine.jobs.submit(spec)
        await engine.store._writer.call(
            lambda db: [db.execute(f"DELETE FROM {table}").fetchall() for table in ("holdfast_live", "holdfast_keys")]
        )
        again = await engine.jobs.submit_and_get(spec)
        assert (again.receipt.id != made.id, again.earlier) == (True, None)


@pytest.mark.databases("sqlite")
async def test_two_installations_in_one_redis_do_not_meet(database_url, redis_server, tmp_path):
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    other_store = await open_store(other_url)
    await other_store.migrate()
    await other_store.aclose()
    spec = JobSpec(type="send", payload=1, idempotency_key="k1")
    async with node(database_url, redis_server.url) as one, node(other_url, redis_server.url) as other:
        await is_up(one)
        await is_up(other)
        await one.jobs.submit(spec)
        assert not (await other.jobs.submit(spec)).replayed
        assert hits(other, "keys") == 0


@pytest.mark.databases("sqlite")
async def test_metrics_tell_how_it_stands(database_url, redis_server):
    spec = JobSpec(type="send", payload=1, idempotency_key="k1")
    async with node(database_url, redis_server.url) as engine:
        await is_up(engine)
        await engine.jobs.submit(spec)
        await engine.jobs.submit(spec)
        page = render_page([RedisStats(*engine.coordination.figures()).collect()]).decode()
    assert "holdfast_node_redis_up 1.0" in page
    assert "holdfast_node_redis_lost_total 0.0" in page
    for answer in ("hit", "miss"):
        assert f'holdfast_node_redis_asked_total{{answer="{answer}",part="keys"}} 1.0' in page
    without = render_page([RedisStats(None, 0, {}).collect()]).decode()
    assert "\nholdfast_node_redis_up" not in without  # where none is named, none is said to be down


@pytest.mark.databases("sqlite")
async def test_only_the_parts_that_are_asked_for_are_used(store, redis_server):
    settings = Settings(redis_url=redis_server.url)
    chosen = await open_coordination(settings, store)
    assert [type(part).__name__ for part in (chosen.keys, chosen.limiter, chosen.registry)] == [
        "KeysInDatabase",
        "LimiterInRedis",
        "RegistryInDatabase",
    ]
    await chosen.aclose()
    none = await open_coordination(Settings(redis_url=redis_server.url, redis_for=()), store)
    assert none.figures().up is None
