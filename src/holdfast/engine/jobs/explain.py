"""Explain why one job is (not) running, with a bounded amount of work on one snapshot."""

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
from holdfast.model.worker import WorkerRow
from holdfast.policy.breaker import destination_of
from holdfast.policy.explain import build_explanation, handles
from holdfast.policy.explain_facts import (
    ActivePause,
    ExternalHold,
    Facts,
    JobHolder,
    JobsAhead,
    LimitFact,
    ServiceRate,
    UnresponsiveWorker,
)
from holdfast.policy.limits import limits_for
from holdfast.store.port.store import Store, Tx

MAX_COUNTED_JOBS = 1_000
"""Jobs ahead that are counted: this many of the same priority, and as many of higher ones."""

MAX_TENANTS = 1_000
"""Tenants with ready jobs that are considered for the share of the job's tenant."""

MAX_DEPARTED_WORKERS = 1_000
"""Departed workers that are searched for the last one that handled the job."""

MAX_SCANNED_HOLDERS, MAX_HOLDERS = 1_000, 5
"""Running jobs scanned for those that a limit counts, and how many of these are listed."""

SERVICE_RATE_WINDOW = seconds(300)
"""Window over which the recent service rate is measured."""

FindHold = Callable[[Tx, Job, Instant], Awaitable[ExternalHold | None]]
"""Finds an external condition that delays a job."""


async def explain(store: Store, analytics: Analytics, job_id: JobId, *, tenant: str | None) -> Explanation:
    """Explain why a job of this tenant (None: of any) is (not) running; raises `NotFound`."""
    facts = await store.read(lambda tx: read_facts(tx, job_id, tenant))
    if facts.ahead.jobs:
        facts = facts._replace(service_rate=await _service_rate(analytics, facts.job))
    return build_explanation(facts)


async def read_facts(tx: Tx, job_id: JobId, tenant: str | None) -> Facts:
    """Read the facts that decide whether a claim takes this job; raises `NotFound`."""
    job = require_tenant(await tx.get([job_id]), job_id, tenant)
    now = await tx.now()
    if job.status in TERMINAL:
        return Facts(job, now)
    if job.status is Status.RUNNING:
        return await _running_facts(tx, job, now)
    workers, unresponsive, last_seen = await _handlers(tx, job, now)
    return Facts(
        job,
        now,
        pauses=await _pauses(tx, job, now),
        limits=await _limits(tx, job, now, tenant),
        held_back=[
            hold for find_hold in FIND_HOLDS.get(job.type, ()) if (hold := await find_hold(tx, job, now)) is not None
        ],
        workers=workers,
        unresponsive=unresponsive,
        last_seen=last_seen,
        ahead=await _ahead(tx, job) if job.status is Status.READY else JobsAhead(),
    )


async def _running_facts(tx: Tx, job: Job, now: Instant) -> Facts:
    row = next((row for row in await tx.workers(job.tenant) if row.info.id == job.worker), None)
    if row is None or job.worker is None:
        return Facts(job, now)
    held = await tx.held_attempts(job.worker, MAX_COUNTED_JOBS)
    return Facts(job, now, row.expires_at, JobHolder(row.info.slots, len(held), _unresponsive(row)))


async def _pauses(tx: Tx, job: Job, now: Instant) -> list[ActivePause]:
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
    """Return the usage of the job's limits; with a `tenant`, holders of others are hidden."""
    facts = []
    for limit in await tx.limits_named(limits_for(job)):
        uncounted = await tx.uncounted(limit.of) if is_unsettled(limit) else 0
        room, frees_in = limit.room(now, uncounted=uncounted), limit.opens_in(now, uncounted=uncounted)
        of = {LimitKind.QUEUE: "queue", LimitKind.TENANT: "tenant", LimitKind.KEY: "key"}[limit.of.kind]
        if limit.of.kind is LimitKind.KEY and job.status is Status.READY:
            # A ready job with a concurrency key holds a slot of it, or waits for one and is invisible to claims.
            room = int(await tx.holds_key_slot(job.id))
        frees_at = None if room > 0 or frees_in is None else Instant(now + frees_in)
        max_running = limit.max_running
        if limit.of.kind is LimitKind.KEY and not max_running:
            max_running = DEFAULT_CONCURRENCY_PER_KEY
        holders = [] if room > 0 or frees_at is not None else await _holders(tx, limit.of, tenant)
        facts.append(LimitFact(f"{of} {limit.of.name!r}", room, limit.used + uncounted, max_running, holders, frees_at))
    return facts


async def _holders(tx: Tx, of: LimitName, tenant: str | None) -> list[str]:
    """Return the ids of some jobs that a limit counts."""
    if of.kind is LimitKind.KEY:
        return [str(job_id) for job_id in await tx.key_holder_ids((of.tenant, of.name), MAX_HOLDERS)]
    queue = of.name if of.kind is LimitKind.QUEUE else None
    where = JobFilter(tenant=of.name if of.kind is LimitKind.TENANT else tenant, queue=queue, status=Status.RUNNING)
    found = await tx.seek(where, Page(MAX_HOLDERS), max_rows=MAX_SCANNED_HOLDERS)
    return [str(job.id) for job in found.jobs]


async def _handlers(tx: Tx, job: Job, now: Instant) -> tuple[int, list[UnresponsiveWorker], Instant | None]:
    """Return the live workers that handle the job: how many respond, and those that do not.

    If there is no live worker, also returns when one was last seen.
    """
    registered = [row for row in await tx.workers(job.tenant) if handles(row.info, job)]
    alive = [row for row in registered if row.expires_at > now and not row.draining]
    if alive:
        unresponsive = [worker for row in alive if (worker := _unresponsive(row)) is not None]
        return len(alive) - len(unresponsive), unresponsive, None
    departed = [seen for worker, seen in await tx.departed(MAX_DEPARTED_WORKERS) if handles(worker, job)]
    return 0, [], max([*departed, *(row.renewed_at for row in registered)], default=None)


def _unresponsive(row: WorkerRow) -> UnresponsiveWorker | None:
    since = row.unresponsive_since
    return None if since is None else UnresponsiveWorker(row.info.id, since, row.blocked_by)


async def _ahead(tx: Tx, job: Job) -> JobsAhead:
    jobs, cost = await tx.ahead(job, MAX_COUNTED_JOBS)
    if not jobs:
        return JobsAhead()
    weights = (await tx.dispatch_settings()).weights
    tenants = await tx.ready_tenants(job.queue, MAX_TENANTS) | {job.tenant}
    share = weights.get(job.tenant, 1) / sum(weights.get(tenant, 1) for tenant in tenants)
    return JobsAhead(jobs, cost, at_least=jobs >= MAX_COUNTED_JOBS, share=share)


async def _breaker(tx: Tx, job: Job, now: Instant) -> ExternalHold | None:
    """Return the open breaker of a webhook's destination, if any."""
    try:
        destination = destination_of(msgspec.json.decode(job.payload, type=_Destination).url)
    except msgspec.MsgspecError:
        return None
    found = None if destination is None else await tx.breaker(job.tenant, destination)
    if found is None or found.state is BreakerState.CLOSED or found.until is None or found.until <= now:
        return None
    return ExternalHold(found.destination, found.error or "it failed too often", found.until)


class _Destination(msgspec.Struct):
    url: str


FIND_HOLDS: Mapping[str, Sequence[FindHold]] = {"webhook": (_breaker,)}
"""External conditions to check, by built-in job type."""


async def _service_rate(analytics: Analytics, job: Job) -> ServiceRate:
    window = await analytics.window(job.tenant, SERVICE_RATE_WINDOW)
    cost = sum(stats.cost for key, stats in window.stats.items() if key.queue == job.queue)
    return ServiceRate(cost, Duration(window.until - window.since))
