"""Webhooks from real workers that are killed during deliveries or whose destinations are down."""

import asyncio
import json
import os
import random
from collections import Counter
from contextlib import AsyncExitStack, suppress
from signal import SIGKILL

import pytest

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.model.breaker import BreakerState
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.state import Status
from holdfast.model.time import Duration
from tests.support import nodes
from tests.support.eventually import eventually
from tests.support.long import LONG
from tests.support.receiver import OK, Receiver, answers

TIMEOUT_S = 600.0 if LONG else 90.0
JOBS, KILLS = (2_000, 40) if LONG else (40, 3)
RETRY = RetryRule(base=Duration(20_000), cap=Duration(100_000), jitter=0.5)
FAILURES, SLOTS = 3, 8
ALLOW = {"HOLDFAST_WEBHOOK_ALLOW": "127.0.0.0/8"}


class LeaseService:
    """Nodes without an application, on one database."""

    def __init__(self, url, folder, stack, environment):
        self._url, self._folder, self._stack = url, folder, stack
        self._environment = ALLOW | environment
        self.nodes = []

    def start(self, **options):
        node = nodes.start(self._url, self._folder, app="", environment=self._environment, **options)
        self._stack.callback(node.end)
        self.nodes.append(node)
        return node

    def logs(self):
        return "\n".join(node.log for node in self.nodes)


async def all_of(engine, ids, status, fleet):
    async def so():
        jobs = await engine.store.single(lambda tx: tx.get(ids))
        return jobs if all(job.status is status for job in jobs) else []

    try:
        return await eventually(so, within=TIMEOUT_S)
    except TimeoutError:
        jobs = await engine.store.single(lambda tx: tx.get(ids))
        raise AssertionError(f"{Counter(job.status for job in jobs)}\n{fleet.logs()}") from None


@pytest.mark.timeout(1_800 if LONG else 120)
@pytest.mark.databases("sqlite")
async def test_each_delivery_is_applied_once_even_if_workers_are_killed_during_it(database_url, tmp_path):
    """S12, F01: a second delivery happens only after an interruption and has the same idempotency key."""
    got = []

    async def slowly(request, _reader, writer):
        got.append(request)
        await asyncio.sleep(0.05)
        writer.write(OK)

    async with AsyncExitStack() as stack:
        engine = await open_engine(Settings(database_url=database_url))
        stack.push_async_callback(engine.aclose)
        receiver = await stack.enter_async_context(Receiver())
        receiver.behave = slowly
        fleet = LeaseService(database_url, tmp_path, stack, {})
        specs = [
            JobSpec("webhook", {"url": receiver.url, "body": {"n": n}}, max_attempts=1_000, retry=RETRY)
            for n in range(JOBS)
        ]
        ids = [receipt.id for receipt in await engine.jobs.submit_many(specs)]
        for _ in range(2):
            fleet.start(queues="default:5")
        rand = random.Random(7)
        for _ in range(KILLS):
            goal = len(got) + JOBS // (KILLS + 2)

            async def further(goal=goal):
                return len(got) >= goal

            await eventually(further, within=TIMEOUT_S)
            children = [pid for node in fleet.nodes for pid in node.children()]
            with suppress(ProcessLookupError):
                os.kill(rand.choice(children), SIGKILL)
        jobs = await all_of(engine, ids, Status.SUCCEEDED, fleet)

    applied, deliveries = {}, Counter()
    for request in got:  # deduplicate by key, as a receiver does
        key = request.header("idempotency-key")
        assert request.header("webhook-id") == key.removesuffix(":deliver")
        deliveries[key] += 1
        applied.setdefault(key, json.loads(request.body)["n"])
        assert applied[key] == json.loads(request.body)["n"]
    interruptions = {f"{job.id}:deliver": job.fence - 1 for job in jobs}
    assert sorted(applied.values()) == list(range(JOBS))
    assert all(deliveries[key] - 1 <= interruptions[key] for key in deliveries)
    assert sum(interruptions.values()) > 0


@pytest.mark.databases("postgres")
async def test_a_destination_that_is_down_gets_probes_and_other_destinations_are_unaffected(database_url, tmp_path):
    """F39: four worker processes share one breaker; no attempt is spent while it is open; all jobs succeed."""
    rules = {"HOLDFAST_BREAKER_FAILURES": str(FAILURES), "HOLDFAST_BREAKER_REST_SECONDS": "0.5",
             "HOLDFAST_BREAKER_LONGEST_REST_SECONDS": "0.5"}  # fmt: skip
    async with AsyncExitStack() as stack:
        engine = await open_engine(Settings(database_url=database_url))
        stack.push_async_callback(engine.aclose)
        down = await stack.enter_async_context(Receiver("127.0.0.2"))
        well = await stack.enter_async_context(Receiver("127.0.0.1"))
        down.behave = answers(503)
        fleet = LeaseService(database_url, tmp_path, stack, rules)
        for _ in range(2):
            fleet.start(queues="default:2", processes=2)

        def to(receiver, n):
            return JobSpec("webhook", {"url": receiver.url, "body": n}, tenant="acme", max_attempts=20, retry=RETRY)

        held = [each.id for each in await engine.jobs.submit_many([to(down, n) for n in range(40)])]

        async def probed():
            found = await engine.deliveries.breakers("acme")
            return found[0] if found and found[0].openings >= 3 else None

        async def opened():
            found = await engine.deliveries.breakers("acme")
            return bool(found) and found[0].state is not BreakerState.CLOSED

        await eventually(opened, within=TIMEOUT_S)
        fine = [each.id for each in await engine.jobs.submit_many([to(well, n) for n in range(40)])]
        jobs = await all_of(engine, fine, Status.SUCCEEDED, fleet)
        assert {job.attempts for job in jobs} == {1}
        assert len(well.got) == 40

        breaker = await eventually(probed, within=TIMEOUT_S)
        # The deliveries that opened the breaker, one per slot before its process knew of that, and the probes.
        assert len(down.got) <= FAILURES + 2 * SLOTS + breaker.openings

        down.behave = answers(200)
        jobs = await all_of(engine, held, Status.SUCCEEDED, fleet)
        assert sum(job.attempts for job in jobs) == len(down.got)
        assert max(job.attempts for job in jobs) < 20
        assert [each.state for each in await engine.deliveries.breakers("acme")] == [BreakerState.CLOSED]
