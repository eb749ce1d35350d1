"""Callers do not wait for an unresponsive Redis, and use it again when it responds."""

import asyncio
import secrets
import time

import pytest
import uvloop

from holdfast.compose import open_coordination, open_store
from holdfast.config import Settings
from holdfast.coordination.redis_connection import RedisConnection
from holdfast.coordination.redis_coordination import REJECTION_WINDOW
from holdfast.coordination.redis_protocol import RESPONSE_TIMEOUT_S, PipelinedConnection, RedisUnavailable, parse_url
from holdfast.errors import Misconfigured, RateLimited, Unavailable
from holdfast.model.access import Quotas
from holdfast.model.job import JobSpec
from holdfast.model.time import seconds
from holdfast.telemetry.metrics import RedisStats, render_page
from tests.support.coordinated import hits, is_up, node
from tests.support.eventually import TIMEOUT_S, eventually
from tests.support.interleave import FaultyStore, before
from tests.support.proxy import proxied


async def until(connection, *, up):
    async def changed():
        return connection.up is up

    await eventually(changed)


async def connected(url, **options):
    connection = RedisConnection(url, [REJECTION_WINDOW], **options)
    await connection.start()
    return connection


async def test_concurrent_callers_share_one_connection_and_get_their_own_responses(redis_server):
    connection = await connected(redis_server.url, timeout=TIMEOUT_S)
    name = f"holdfast:test-{secrets.token_hex(8)}"
    assert await asyncio.gather(*(connection.query("APPEND", name, "x") for _ in range(100))) == list(range(1, 101))
    with pytest.raises(RedisUnavailable, match="WRONGTYPE"):
        await connection.query("LPUSH", name, "1")
    assert await connection.query("GET", name) == b"x" * 100  # an error affects only its own command
    await connection.query("DEL", name)
    await connection.aclose()
    with pytest.raises(RedisUnavailable):
        await connection.query("PING")


async def test_a_silent_server_fails_all_pending_callers_at_the_deadline(redis_server):
    """F24: the network drops all packets. Uses the real deadline; without one this test would never end."""
    events = []
    async with proxied(redis_server.url) as (proxy, url):
        connection = await connected(url, timeout=TIMEOUT_S, emit=events.append)
        await until(connection, up=True)
        connection._current.set_timeout(RESPONSE_TIMEOUT_S)
        proxy.black_hole()
        responses = await asyncio.gather(*(connection.query("PING") for _ in range(20)), return_exceptions=True)
        assert all(isinstance(response, RedisUnavailable) for response in responses)
        await until(connection, up=False)
        proxy.heal()
        await until(connection, up=True)
        assert await connection.query("PING") == b"PONG"
        assert connection.losses == sum(not event.up for event in events)
        await connection.aclose()
    assert [event.up for event in events[:3]] == [True, False, True]
    assert "no response within 25 ms" in events[1].reason


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_busy_process_gives_up_too(new_loop):
    """F24: each late iteration of the loop could be the reason that the response was not read yet."""

    async def iterations_waited():
        connection = PipelinedConnection(timeout=RESPONSE_TIMEOUT_S)
        connection.connection_made(SilentTransport())
        response = asyncio.ensure_future(connection.query("PING"))
        iterations = 0
        while not response.done() and iterations < MANY:
            iterations += 1
            time.sleep(RESPONSE_TIMEOUT_S)  # noqa: ASYNC251 - the loop is to be busy
            await asyncio.sleep(0)
        connection.close("the test is over")
        with pytest.raises(RedisUnavailable, match="no response within 25 ms"):
            await response
        return iterations

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(iterations_waited()) < MANY


MANY = 20
"""Iterations of a loop; a few are enough."""


class SilentTransport(asyncio.Transport):
    """Accepts data and never responds."""

    def write(self, data):
        pass

    def abort(self):
        pass


async def test_a_slow_server_is_not_used_until_it_is_fast(redis_server):
    """F24: every response arrives, but late."""
    events = []
    async with proxied(redis_server.url) as (proxy, url):
        proxy.delay = 0.3
        connection = await connected(url, timeout=0.5, emit=events.append)
        await until_reported(events)
        assert not connection.up
        assert "500 ms are allowed" in events[0].reason or "reached" in events[0].reason
        proxy.delay = 0.0
        await until(connection, up=True)
        await connection.aclose()


async def until_reported(events):
    async def reported():
        return events

    await eventually(reported)


async def test_a_wrong_password_is_reported_once_and_raises_nothing(redis_server):
    """F24"""
    events = []
    user, _, place = redis_server.url.rpartition("@")
    connection = await connected(f"{user}wrong@{place}", emit=events.append)
    await until_reported(events)
    assert (connection.up, events[0].up) == (False, False)
    assert "WRONGPASS" in events[0].reason
    await connection.aclose()


async def test_scripts_are_loaded_again_after_the_server_lost_them(redis_server):
    connection = await connected(redis_server.url, timeout=TIMEOUT_S)
    await until(connection, up=True)
    await connection.query("SCRIPT", "FLUSH")
    with pytest.raises(RedisUnavailable, match="NOSCRIPT"):
        await connection.run(REJECTION_WINDOW, "holdfast:none", "ask", 1, 1)
    await until(connection, up=False)
    await until(connection, up=True)
    assert await connection.run(REJECTION_WINDOW, "holdfast:none", "ask", 1, 1) is None
    await connection.aclose()


@pytest.mark.parametrize(
    "url", ["redis://host:port/0", "rediss://host?ssl_cert_reqs=perhaps", "redis://host?socket_timeout=long"]
)
def test_a_malformed_url_is_rejected_with_the_name_of_its_setting(url):
    with pytest.raises(Misconfigured, match="HOLDFAST_REDIS_URL"):
        parse_url(url)


def test_a_url_gives_address_and_login():
    address = parse_url("rediss://ada:secret@example.com:7000/3")
    assert (address.endpoint["host"], address.endpoint["port"], address.endpoint["ssl"].check_hostname) == (
        "example.com",
        7000,
        True,
    )
    assert address.login == [("AUTH", "ada", "secret"), ("SELECT", 3)]
    assert parse_url("unix:///run/redis.sock").endpoint == {"path": "/run/redis.sock"}


async def over_quota(*engines, tenant="acme"):
    """Create a tenant that has used its whole rate quota."""
    await engines[0].access.create_tenant(tenant, Quotas(rate=1, rate_window=seconds(3_600)))
    for engine in engines:
        await engine.submitter.limited.refresh()
    await engines[0].jobs.submit(JobSpec("send", tenant=tenant))


@pytest.mark.databases("sqlite")
async def test_a_cached_rejection_needs_no_database(database_url, redis_server):
    async with node(database_url, redis_server.url, around=FaultyStore) as engine:
        await is_up(engine)
        await over_quota(engine)
        with pytest.raises(RateLimited):
            await engine.jobs.submit(JobSpec("send", tenant="acme"))
        engine.store.faults = [before(Unavailable)] * 9
        with pytest.raises(RateLimited):
            await engine.jobs.submit(JobSpec("send", tenant="acme"))
        with pytest.raises(RateLimited):
            await engine.jobs.submit_many([JobSpec("send", tenant="acme")])
        with pytest.raises(Unavailable):
            await engine.jobs.submit(JobSpec("send", tenant="other"))
        assert hits(engine, "limits") == 2


@pytest.mark.databases("sqlite")
async def test_two_installations_that_share_a_redis_are_separate(database_url, redis_server, tmp_path):
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    other_store = await open_store(other_url)
    await other_store.migrate()
    await other_store.aclose()
    async with node(database_url, redis_server.url) as one, node(other_url, redis_server.url) as other:
        assert one.coordination.prefix != other.coordination.prefix
        await is_up(one)
        await over_quota(one)
        for _ in range(2):
            with pytest.raises(RateLimited):
                await one.jobs.submit(JobSpec("send", tenant="acme"))
        other.coordination.rejections._rejected["acme"] = float("inf")
        assert await other.coordination.rejections.lookup("acme", 1) is None


@pytest.mark.databases("sqlite")
async def test_metrics_report_the_connection_and_its_lookups(database_url, redis_server):
    async with node(database_url, redis_server.url) as engine:
        await is_up(engine)
        await over_quota(engine)
        for _ in range(2):
            with pytest.raises(RateLimited):
                await engine.jobs.submit(JobSpec("send", tenant="acme"))
        page = render_page([RedisStats(*engine.coordination.status()).collect()]).decode()
    assert "holdfast_node_redis_up 1.0" in page
    assert "holdfast_node_redis_lost_total 0.0" in page
    assert 'holdfast_node_redis_asked_total{answer="hit",part="limits"} 1.0' in page
    without = render_page([RedisStats(None, 0, {}).collect()]).decode()
    assert "\nholdfast_node_redis_up" not in without  # absent, not 0, without a configured Redis


@pytest.mark.databases("sqlite")
async def test_redis_is_used_only_for_the_configured_parts(store, redis_server):
    for parts, cache in ((("limits",), "RedisRejectionCache"), (("wakeups",), "NoRejectionCache")):
        coordination = await open_coordination(Settings(redis_url=redis_server.url, redis_for=parts), store)
        assert type(coordination.rejections).__name__ == cache
        await coordination.aclose()
    none = await open_coordination(Settings(redis_url=redis_server.url, redis_for=()), store)
    assert none.status().up is None
