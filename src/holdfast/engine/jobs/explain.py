"""Explain one job: read what a claim of it would meet, on one snapshot and with a bounded amount of work."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.jobs.queries import require_tenant
from holdfast.engine.limits import is_unsettled
from holdfast.model.breaker import BreakerState
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobFilter, Page
from holdfast.model.limit import DEFAULT_CONCURRENCY_PER_KEY, LimitKind, LimitName, PauseKind
from holdfast.model.state import TERMINAL, Status
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy import breaker
from holdfast.policy import explain as policy
from holdfast.policy.explain_facts import ActivePause, ExternalHold, Facts, LimitFact, QueuePosition, ServiceRate
from holdfast.policy.limits import limits_for
from holdfast.store.port.store import Store, Tx

COUNTED = 1_000
"""Up to how many jobs ahead are counted, of its priority and of higher ones each."""

TENANTS_LOOKED_AT = 1_000
"""Of how many tenants with ready jobs in its queue the weights are looked at."""

DEPARTED_LOOKED_AT = 1_000
"""How many workers that are gone are looked at for the last that could have run it."""

HOLDERS_LOOKED_AT, HOLDERS_NAMED = 1_000, 5
"""Among how many running jobs those are looked for that a limit counts, and how many are named."""

PACE_OVER = seconds(300)

Look = Callable[[Tx, Job, Instant], Awaitable[ExternalHold | None]]
"""Reads what outside the engine holds a job back, by the type of the job."""


async def explain(store: Store, analytics: Analytics, job_id: JobId, *, tenant: str | None) -> Explanation:
    """Why a job of this tenant (None: of any) is (not) running; raises `NotFound`."""
    facts = await store.read(lambda tx: read_facts(tx, job_id, tenant))
    if facts.ahead.jobs:
        facts = facts._replace(service_rate=await _pace(analytics, facts.job))
    return policy.explain(facts)


async def read_facts(tx: Tx, job_id: JobId, tenant: str | None) -> Facts:
    """What a claim of this job would meet."""
    job = require_tenant(await tx.get([job_id]), job_id, tenant)
    now = await tx.now()
    if job.status in TERMINAL:
        return Facts(job, now)
    if job.status is Status.RUNNING:
        return Facts(job, now, None if job.worker is None else await tx.lease_until(job.worker))
    workers, last_seen = await _handlers(tx, job, now)
    return Facts(
        job,
        now,
        pauses=await _rests(tx, job, now),
        limits=await _limits(tx, job, now, tenant),
        held_back=[held for look in LOOKS.get(job.type, ()) if (held := await look(tx, job, now)) is not None],
        workers=workers,
        last_seen=last_seen,
        ahead=await _ahead(tx, job) if job.status is Status.READY else QueuePosition(),
    )


async def _rests(tx: Tx, job: Job, now: Instant) -> list[ActivePause]:
    queues = [
        ActivePause("queue", queue.name, queue.changed_at, queue.changed_by, queue.reason, queue.until)
        for queue in await tx.queues()
        if queue.name == job.queue and not queue.open_at(now)
    ]
    return queues + [
        ActivePause(
            "type" if pause.kind is PauseKind.TYPE else "tenant",
            pause.name,
            pause.changed_at,
            pause.changed_by,
            pause.reason,
            pause.until,
        )
        for pause in sorted(await tx.pauses())
        if pause.holds_at(now) and pause.name == (job.type if pause.kind is PauseKind.TYPE else job.tenant)
    ]


async def _limits(tx: Tx, job: Job, now: Instant, tenant: str | None) -> list[LimitFact]:
    """How the limits stand that the job is under. Who asks for a tenant is told of its own jobs alone."""
    facts = []
    for limit in await tx.limits_named(limits_for(job)):
        uncounted = await tx.uncounted(limit.of) if is_unsettled(limit) else 0
        room, frees_in = limit.room(now, uncounted=uncounted), limit.opens_in(now, uncounted=uncounted)
        of = {LimitKind.QUEUE: "queue", LimitKind.TENANT: "tenant", LimitKind.KEY: "key"}[limit.of.kind]
        if limit.of.kind is LimitKind.KEY and job.status is Status.READY:
            # A ready job with a key has a turn of it, or waits in line for one: no claim sees it before.
            room = int(await tx.holds_key_slot(job.id))
        frees_at = None if room > 0 or frees_in is None else Instant(now + frees_in)
        most = (
            limit.max_running
            if limit.of.kind is not LimitKind.KEY
            else (limit.max_running or DEFAULT_CONCURRENCY_PER_KEY)
        )
        holders = [] if room > 0 or frees_at is not None else await _holders(tx, limit.of, tenant)
        facts.append(LimitFact(f"{of} {limit.of.name!r}", room, limit.used + uncounted, most, holders, frees_at))
    return facts


async def _holders(tx: Tx, of: LimitName, tenant: str | None) -> list[str]:
    """Some jobs that a limit counts: those that run, and of a key those that have a turn."""
    if of.kind is LimitKind.KEY:
        return [str(each) for each in await tx.key_holder_ids((of.tenant, of.name), HOLDERS_NAMED)]
    whose = of.name if of.kind is LimitKind.TENANT else tenant
    queue = of.name if of.kind is LimitKind.QUEUE else None
    where = JobFilter(tenant=whose, queue=queue, status=Status.RUNNING)
    found = await tx.seek(where, Page(HOLDERS_NAMED), most=HOLDERS_LOOKED_AT)
    return [str(job.id) for job in found.jobs]


async def _handlers(tx: Tx, job: Job, now: Instant) -> tuple[int, Instant | None]:
    """How many workers could take it, and if none can, when one last could have."""
    here = [row for row in await tx.workers() if policy.handles(row.info, job)]
    alive = sum(row.expires_at > now and not row.draining for row in here)
    if alive:
        return alive, None
    gone = [seen for worker, seen in await tx.departed(DEPARTED_LOOKED_AT) if policy.handles(worker, job)]
    return 0, max([*gone, *(row.renewed_at for row in here)], default=None)


async def _ahead(tx: Tx, job: Job) -> QueuePosition:
    jobs, cost = await tx.ahead(job, COUNTED)
    if not jobs:
        return QueuePosition()
    weights = (await tx.dispatch_settings()).weights
    tenants = await tx.contenders(job.queue, TENANTS_LOOKED_AT) | {job.tenant}
    share = weights.get(job.tenant, 1) / sum(weights.get(each, 1) for each in tenants)
    return QueuePosition(jobs, cost, at_least=jobs >= COUNTED, share=share)


async def _breaker(tx: Tx, job: Job, now: Instant) -> ExternalHold | None:
    """The breaker of the destination of a webhook, where it is open."""
    try:
        destination = breaker.destination(msgspec.json.decode(job.payload, type=_Destination).url)
    except msgspec.MsgspecError:
        return None
    found = None if destination is None else await tx.breaker(job.tenant, destination)
    if found is None or found.state is BreakerState.CLOSED or found.until is None or found.until <= now:
        return None
    return ExternalHold(found.destination, found.error or "it failed too often", found.until)


class _Destination(msgspec.Struct):
    url: str


LOOKS: Mapping[str, Sequence[Look]] = {"webhook": (_breaker,)}
"""What is looked at besides, for the types of jobs in the box."""


async def _pace(analytics: Analytics, job: Job) -> ServiceRate:
    window = await analytics.window(job.tenant, PACE_OVER)
    cost = sum(figures.cost for place, figures in window.counted.items() if place.queue == job.queue)
    return ServiceRate(cost, Duration(window.until - window.since))
