"""Explain: a job is "runnable" if and only if an idle worker claims it; otherwise the reasons are named."""

import asyncio
import itertools
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

from holdfast.compose import open_store
from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.jobs.actions import cancel
from holdfast.engine.jobs.deadlines import cancel_overdue
from holdfast.engine.jobs.explain import MAX_COUNTED_JOBS, explain, read_facts
from holdfast.errors import NotFound
from holdfast.model.access import Quotas
from holdfast.model.breaker import Breaker, BreakerState
from holdfast.model.ids import worker_name
from holdfast.model.lane import Lane
from holdfast.model.limit import Pause, PauseKind, Rate, key_limit, queue_limit, tenant_limit
from holdfast.model.outcome import Interrupted, Succeeded
from holdfast.model.queue import Queue
from holdfast.model.time import Duration, Instant, days, seconds
from holdfast.model.worker import Unresponsiveness
from holdfast.policy.explain import build_explanation
from holdfast.store.port.store import Retention
from tests.support.builders import a_job, a_worker, enter, error, hold, lane_of, put, read, report, some_jobs, take
from tests.support.clock import CLOCK, Console, ManualClock
from tests.support.long import LONG

RETENTION = Retention(history=days(9), dead=days(9))
_names = itertools.count()


async def why(store, job, tenant=None):
    analytics = Analytics(store)
    try:
        return await explain(store, analytics, job.id, tenant=tenant)
    finally:
        await analytics.aclose()


async def codes(store, job):
    return [reason.code for reason in (await why(store, job)).reasons]


# If and only if


@dataclass(frozen=True)
class Candidate:
    """Worker that can or cannot run the job."""

    queue: bool
    types: str | None
    tenant: str | None
    lease: Duration


@dataclass(frozen=True)
class Scene:
    """State of a job and its surroundings."""

    delay: Duration | None
    deadline: Duration | None
    life: list[str]
    paused: bool
    paused_for: Duration | None
    workers: list[Candidate]
    passes: Duration
    kept_house: bool
    limited: str | None = None
    rests: PauseKind | None = None
    rests_for: Duration | None = None
    broken: Duration | None = None


SPANS = st.sampled_from([seconds(5), seconds(100)])
FULL = ["queue", "tenant", "key", "queue and tenant", "queue with room"]
SPENT = ["queue rate", "tenant rate", "key rate"]
WORKERS = st.builds(
    Candidate,
    st.sampled_from([True, True, True, False]),
    st.sampled_from([None, "send", "send", "other"]),
    st.sampled_from([None, None, "own", "other"]),
    st.sampled_from([seconds(1_000), seconds(1_000), seconds(5)]),
)
SCENES = st.builds(
    Scene,
    delay=st.none() | st.just(Duration(0)) | SPANS,
    deadline=st.none() | st.none() | SPANS,
    life=st.lists(st.sampled_from(["fails", "hands back", "succeeds", "runs", "cancelled"]), max_size=2),
    paused=st.sampled_from([False, False, True]),
    paused_for=st.none() | SPANS,
    workers=st.lists(WORKERS, max_size=2),
    passes=st.sampled_from([Duration(0), Duration(0), seconds(5), seconds(20)]),
    kept_house=st.booleans(),
    limited=st.none() | st.sampled_from(FULL + SPENT).flatmap(lambda how: st.sampled_from([how, f"{how}, released"])),
    rests=st.sampled_from([None, None, None, None, *PauseKind]),
    rests_for=st.none() | SPANS,
    broken=st.none() | SPANS,
)

PLAIN = Scene(None, None, [], False, None, [Candidate(True, None, None, days(1))], Duration(0), False)


async def live(store, job, life):
    """Start a job on a worker that then leaves, and settle it with this outcome."""
    worker = await enter(store, lease=days(9), queues="elsewhere")
    for step in life:
        if step == "cancelled":
            await cancel(store, [job.id], reason="so the test wants it")
            continue
        held = await take(store, worker, lane_of(job))
        if not held or step == "runs":
            break
        outcome = {"fails": error(), "hands back": Interrupted(), "succeeds": Succeeded()}[step]
        await report(store, held, outcome)


async def fill(store, how, other):
    """Fill the limit: run another job of the same queue, tenant and key, or use up the rate."""
    limits = {
        "queue": queue_limit(other.spec.queue),
        "tenant": tenant_limit(other.spec.tenant),
        "key": key_limit(other.spec.tenant, other.spec.concurrency_key or ""),
    }
    how, released, _ = how.partition(", released")
    rate, most = (Rate(1, days(1), 1), None) if "rate" in how else (None, 2 if "room" in how else 1)
    for limit in [limits[name] for name in limits if name in how]:
        await store.run(lambda tx, limit=limit: tx.set_limit(limit, most, rate, "a test"))
    await put(store, other)
    claims = Claims(store, await enter(store, lease=days(9), queues="elsewhere"), [other.spec.queue], None)
    held = await claims.claim(5)
    assert [job.id for job in held] == [other.id]
    if released:
        await report(store, held)


async def trip(store, tenant, until):
    """Open the breaker of the webhook destination for this tenant."""
    broken = Breaker(tenant, "https://example.com:443", BreakerState.OPEN, until=until, error="503")

    async def work(tx):
        await tx.lock_breaker(broken.tenant, broken.destination)
        await tx.save_breaker(broken)

    await store.run(work)
    return broken


async def trial(store, clock, scene):
    """Return the explanation, and whether idle workers claim the job."""
    queue, tenant = f"q{next(_names)}", f"t{next(_names)}"
    began = await store.single(lambda tx: tx.now())
    deadline = None if scene.deadline is None else Instant(began + scene.deadline)
    key = "k" if "key" in (scene.limited or "") else None
    if scene.limited is not None:
        await fill(store, scene.limited, a_job(queue=queue, tenant=tenant, concurrency_key=key))
    # Pauses persist: no other scene may use a paused type.
    to_somewhere = scene.broken is not None and scene.rests is not PauseKind.TYPE
    job = a_job(
        queue=queue,
        tenant=tenant,
        delay=scene.delay,
        deadline=deadline,
        concurrency_key=key,
        type="webhook" if to_somewhere else f"s{queue}",
        payload=b'{"url":"https://example.com/hook"}',
    )
    await put(store, job)
    if to_somewhere:
        await trip(store, tenant, Instant(began + scene.broken))
    if scene.limited is None:
        await live(store, job, scene.life)
    if scene.rests is not None:
        until = None if scene.rests_for is None else Instant(began + scene.rests_for)
        pause = Pause(scene.rests, job.spec.type if scene.rests is PauseKind.TYPE else tenant, until=until)
        await store.run(lambda tx: tx.save_pause(pause))
    if scene.paused:
        until = None if scene.paused_for is None else Instant(began + scene.paused_for)
        await store.run(lambda tx: tx.save_queue(Queue(queue, paused=True, until=until)))
    workers = []
    for each in scene.workers:
        of = {"own": tenant, "other": "other-tenant", None: None}[each.tenant]
        worker = a_worker(
            queues=f"{queue}:5,x" if each.queue else "another",
            types=None if each.types is None else (job.spec.type if each.types == "send" else "other", "more"),
            tenant=of,
        )
        await store.run(lambda tx, worker=worker, lease=each.lease: tx.register(worker, lease))
        workers.append((worker, [queue, "x"] if each.queue else ["another"]))
    await clock.advance(scene.passes)
    if scene.kept_house:
        await store.single(lambda tx: tx.promote(1_000))
        await cancel_overdue(store)
    said = build_explanation(await store.read(lambda tx: read_facts(tx, job.id, tenant)))
    taken = []
    for worker, queues in workers:
        claims = Claims(store, worker.id, queues, worker.types, tenant=worker.tenant)
        taken += [held.id for held in await claims.claim(10)]
    return said, job.id in taken


@pytest.mark.slow
@pytest.mark.timeout(900 if LONG else 300)
def test_a_job_is_runnable_if_and_only_if_an_idle_worker_takes_it(database_url):
    seen = set()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:

        async def begin():
            console = await Console(database_url).__aenter__()
            clock = ManualClock(console)
            await clock.start()
            return console, clock, await open_store(database_url, clock=CLOCK)

        console, clock, store = runner.run(begin())

        @settings(
            max_examples=1_000 if LONG else 40,
            derandomize=not LONG,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(SCENES)
        @example(PLAIN)
        def holds(scene):
            said, was_taken = runner.run(trial(store, clock, scene))
            seen.add(said.runnable)
            assert said.runnable is was_taken, (scene, said)
            assert (said.reasons[0].code == "runnable") is said.runnable

        holds()
        runner.run(store.aclose())
        runner.run(console.__aexit__(None, None, None))
    assert seen == {True, False}


# Reasons


async def test_a_job_of_another_tenant_is_unknown(store):
    """T02"""
    job = a_job(tenant="acme")
    await put(store, job)
    with pytest.raises(NotFound):
        await why(store, job, tenant="umbrella")
    assert (await why(store, job, tenant="acme")).reasons


async def test_reasons_are_ordered_and_complete(manual_store, clock):
    store = manual_store
    job = a_job(delay=seconds(60))
    await put(store, job)
    began = await store.single(lambda tx: tx.now())
    until = Instant(began + seconds(90))
    pause = Queue("mail", paused=True, reason="it moves", until=until, changed_by="key-1")
    await store.run(lambda tx: tx.save_queue(pause))
    said = await why(store, job)
    due, rests, nobody = said.reasons
    assert (due.code, due.until.timestamp()) == ("not_due", (began + seconds(60)) / 1e6)
    assert (rests.code, rests.name, rests.by, rests.why) == ("queue_paused", "mail", "key-1", "it moves")
    assert (nobody.code, nobody.last_seen, said.estimate.at) == ("no_worker", None, None)
    await enter(store, lease=days(1))
    said = await why(store, job)
    assert [reason.code for reason in said.reasons] == ["not_due", "queue_paused"]
    assert said.estimate.at.timestamp() == until / 1e6
    await clock.advance(seconds(100))
    await store.single(lambda tx: tx.promote(10))
    assert await codes(store, job) == ["runnable"]


async def test_a_running_job_that_its_worker_probably_does_not_run_is_explained_as_such(manual_store, clock):
    """F14: its outcome was lost in a failover, and its worker renews its lease."""
    worker = await enter(manual_store, lease=days(1))
    (job,) = await hold(manual_store, worker, timeout=seconds(30))
    (plain,) = (await why(manual_store, job)).reasons
    assert plain.why is None
    await clock.advance(seconds(600))
    (doubted,) = (await why(manual_store, job)).reasons
    assert (doubted.code, doubted.why) == (
        "running", "it is 570 s past its timeout, and its worker would have ended it"
    )  # fmt: skip
    assert "may have lost its outcome in a failover" in doubted.detail


async def test_jobs_of_a_worker_that_does_not_respond_are_explained_by_it(manual_store, clock):
    """F28, F33: waiting jobs and those that it holds."""
    store = manual_store
    worker = await enter(store, lease=days(1))
    (held,) = await hold(store, worker)
    waiting = a_job()
    await put(store, waiting)
    assert await codes(store, waiting) == ["runnable"]

    blocked = Unresponsiveness(seconds(2), "report")
    await store.run(lambda tx: tx.renew(worker, days(1), unresponsive=blocked))
    said = await why(store, waiting)
    (reason,) = said.reasons
    assert (reason.code, reason.name, reason.worker) == ("worker_unresponsive", "report", worker_name(worker))
    assert (reason.why, reason.blocks) == ("a handler of type 'report' blocks its event loop", True)
    assert reason.since.timestamp() == (clock.now - seconds(2)) / 1e6
    assert said.estimate.at is None
    (running,) = (await why(store, held)).reasons
    assert (running.code, running.name) == ("running", "report")
    assert "a handler of type 'report' blocks its event loop" in running.detail

    silent = Unresponsiveness(seconds(5))
    await store.run(lambda tx: tx.renew(worker, days(1), unresponsive=silent))
    (reason,) = (await why(store, waiting)).reasons
    assert (reason.name, reason.why) == (None, "its process gives no sign of life")

    await enter(store, lease=days(1))  # another worker, which responds
    said = await why(store, waiting)
    assert [reason.code for reason in said.reasons] == ["runnable", "worker_unresponsive"]
    assert said.reasons[0].workers == 1
    await store.run(lambda tx: tx.renew(worker, days(1)))
    assert await codes(store, waiting) == ["runnable"]


async def test_a_running_or_finished_job_is_explained_by_its_status_alone(manual_store):
    job = a_job()
    await put(manual_store, job)
    (held,) = await take(manual_store, await enter(manual_store))
    (running,) = (await why(manual_store, job)).reasons
    assert (running.code, running.until - running.since) == ("running", running.until - running.since)
    assert running.worker
    await report(manual_store, held)
    (finished,) = (await why(manual_store, job)).reasons
    assert (finished.code, "succeeded" in finished.detail) == ("finished", True)


async def test_the_last_suitable_worker_is_remembered_for_a_day(manual_store, clock):
    """Includes a lost worker, but no worker that could not run the job."""
    store, job = manual_store, a_job()
    await put(store, job)
    began = await store.single(lambda tx: tx.now())
    fit = await enter(store, queues="mail:3", types=("send",))
    await enter(store, queues="mail", types=("other",), lease=days(1))
    await clock.advance(seconds(10))
    assert await codes(store, job) == ["runnable"]
    await store.run(lambda tx: tx.depart(fit))
    await clock.advance(seconds(60))
    (nobody,) = (await why(store, job)).reasons
    assert (nobody.code, nobody.last_seen.timestamp()) == ("no_worker", began / 1e6)
    await clock.advance(days(1))
    await store.run(lambda tx: tx.prune(RETENTION, 10))
    assert (await why(store, job)).reasons[0].last_seen is None


async def test_jobs_ahead_are_counted_up_to_a_bound_with_their_cost(manual_store, clock):
    store = manual_store
    await store.run(lambda tx: tx.add_tenant("acme", Quotas(weight=3)))
    await enter(store, lease=days(1))
    urgent, first, job, last = a_job(priority=5, cost=7), a_job(cost=2), a_job(), a_job()
    await put(store, urgent, first, job, last, a_job(tenant="umbrella"))
    runnable, line = (await why(store, job)).reasons
    assert (runnable.code, line.code, line.blocks) == ("runnable", "in_line", False)
    assert (line.jobs, line.cost, line.share, line.at_least) == (2, 9, 0.75, False)
    assert (await why(store, urgent)).estimate.at is not None
    assert (await why(store, job)).estimate.at is None
    held = await take(store, await enter(store), limit=1)
    await report(store, held)
    assert (await why(store, job)).estimate.at is not None
    await put(store, *some_jobs(MAX_COUNTED_JOBS + 1, priority=9))
    line = (await why(store, job)).reasons[1]
    assert (line.jobs, line.at_least) == (MAX_COUNTED_JOBS, True)
    assert (await read(store, job)).priority == 0


async def test_a_webhook_with_an_open_breaker_is_claimed_and_explained(manual_store):
    store = manual_store
    await enter(store)
    job = a_job(type="webhook", payload=b'{"url":"https://example.com/hook"}')
    await put(store, job, other := a_job(type="webhook", payload=b'{"url":7}'))
    until = Instant(await store.single(lambda tx: tx.now()) + seconds(30))
    broken = await trip(store, "acme", until)
    said = await why(store, job)
    assert said.runnable
    (held,) = [reason for reason in said.reasons if reason.code == "held_back"]
    assert (held.name, held.why, held.until.timestamp()) == (broken.destination, "503", until / 1e6)
    assert said.estimate.at.timestamp() == until / 1e6
    assert "held_back" not in await codes(store, other)


@pytest.mark.parametrize("full", ["queue", "tenant", "key"])
async def test_a_full_limit_is_explained_with_its_usage_and_holders(manual_store, full):
    store, key = manual_store, "k" if full == "key" else None
    other, job = a_job(concurrency_key=key), a_job(concurrency_key=key)
    await fill(store, full, other)
    await put(store, job)
    await enter(store)
    (reason,) = [each for each in (await why(store, job)).reasons if each.blocks]
    assert (reason.code, reason.used, reason.most, reason.holders) == ("limit_full", 1, 1, [str(other.id)])
    names = {"queue": other.spec.queue, "tenant": other.spec.tenant, "key": "k"}
    assert reason.name == f"{full} {names[full]!r}"


async def test_an_exhausted_rate_limit_is_explained_with_the_next_start(manual_store):
    store, job = manual_store, a_job()
    await fill(store, "queue rate", a_job())
    await put(store, job)
    await enter(store)
    said = await why(store, job)
    (reason,) = [each for each in said.reasons if each.blocks]
    assert (reason.code, (reason.until - said.as_of).total_seconds()) == ("rate_spent", 86_400.0)
    assert said.estimate.at == reason.until


async def test_the_share_of_a_tenant_is_among_tenants_with_ready_jobs(store):
    """Tenants whose jobs all run or wait in other queues do not count."""
    await put(store, a_job(tenant="busy"), a_job("other", tenant="away"), a_job(tenant="later", delay=seconds(60)))
    assert len(await take(store, await enter(store), Lane("mail", "busy", 0))) == 1
    await put(store, *some_jobs(2, tenant="a"), a_job(tenant="b", priority=3), *some_jobs(2), a_job(priority=7))
    assert await store.read(lambda tx: tx.ready_tenants("mail", 10)) == {"a", "acme", "b"}
    assert len(await store.read(lambda tx: tx.ready_tenants("mail", 2))) <= 2
