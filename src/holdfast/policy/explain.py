"""Explanation of why a job is (not) running, and an estimate of when it starts.

Each condition that a claim tests, in its SQL or before it, has a predicate here that evaluates it on facts read on one
snapshot and returns reasons. If none of them blocks the job, the next worker with a free slot claims it in order.
"""

from collections.abc import Callable, Iterable, Sequence

from holdfast.model.explanation import Estimate, Explanation, Reason, ReasonCode, to_datetime
from holdfast.model.ids import worker_name
from holdfast.model.job import Job
from holdfast.model.state import TERMINAL, Status
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerInfo
from holdfast.policy.explain_facts import Facts
from holdfast.policy.unknown_jobs import why_not_run
from holdfast.policy.unresponsive import describe_unresponsive

Predicate = Callable[[Facts], Iterable[Reason]]


def build_explanation(facts: Facts) -> Explanation:
    """Evaluate all predicates; a finished or running job has only that reason."""
    job = facts.job
    reasons = [reason for predicate in PREDICATES for reason in predicate(facts)]
    if job.status in TERMINAL or job.status is Status.RUNNING:
        reasons = reasons[:1]
    runnable = not any(reason.blocks for reason in reasons)
    if runnable:
        reasons.insert(0, _runnable(facts))
    return Explanation(
        id=str(job.id),
        status=job.status,
        as_of=to_datetime(facts.now),
        runnable=runnable,
        reasons=reasons,
        estimate=_estimate(facts, reasons, runnable=runnable),
    )


def handles(worker: WorkerInfo, job: Job) -> bool:
    """Return True if a worker with this registration claims jobs like this one."""
    return (
        worker.tenant in (None, job.tenant)
        and (worker.types is None or job.type in worker.types)
        and (not worker.queues or job.queue in parse_queues(worker.queues))
    )


def parse_queues(text: str) -> set[str]:
    """Parse a worker's queues, such as `mail:10,default`; a number after the colon means slots."""
    names = set()
    for item in text.split(","):
        name, colon, slots = item.strip().rpartition(":")
        names.add(name if colon and slots.isdecimal() else item.strip())
    return names


def _finished(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status in TERMINAL:
        when = "" if job.finished_at is None else f" at {rfc3339(job.finished_at)}"
        why = f": {job.reason}" if job.reason else ""
        ended = None if job.finished_at is None else to_datetime(job.finished_at)
        yield Reason(
            code="finished", detail=f"it is {job.status}{when}{why}", blocks=True, since=ended, why=job.reason or None
        )


def _running(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status is not Status.RUNNING:
        return
    worker = None if job.worker is None else worker_name(job.worker)
    started = "" if job.started_at is None else f" since {rfc3339(job.started_at)}"
    lease = "its worker is no longer registered, so the job is recovered shortly"
    if facts.lease_until is not None:
        past = facts.lease_until <= facts.now
        until = rfc3339(facts.lease_until)
        lease = f"its lease expired at {until}, so the job is recovered shortly" if past else f"lease until {until}"
    doubt = _doubt(facts)
    runs = "it runs on worker" if doubt is None else "it is held by worker"
    advice = "" if doubt is None else f"; the worker probably does not run it: {doubt}. {_AFTER_FAILOVER}"
    unresponsive = None if facts.holder is None else facts.holder.unresponsive
    if unresponsive is not None:
        why = describe_unresponsive(unresponsive.blocked_by)
        lease += f"; the worker has not responded since {rfc3339(unresponsive.since)}: {why}"
    yield Reason(
        code="running",
        detail=f"{runs} {worker}{started}, attempt {job.attempts} of {job.max_attempts}; {lease}{advice}",
        blocks=True,
        worker=worker,
        why=doubt or (None if unresponsive is None else describe_unresponsive(unresponsive.blocked_by)),
        name=None if unresponsive is None else unresponsive.blocked_by,
        since=None if job.started_at is None else to_datetime(job.started_at),
        until=None if facts.lease_until is None else to_datetime(facts.lease_until),
    )


_AFTER_FAILOVER = (
    "The database may have lost its outcome in a failover. Workers release such jobs within a minute; "
    "if it stays, cancel and retry it"
)


def _doubt(facts: Facts) -> str | None:
    """Return why the worker that holds the job probably does not run it, or None."""
    job, holder = facts.job, facts.holder
    if holder is None or job.started_at is None:
        return None
    timeout = None if job.timeout is None else in_seconds(job.timeout)
    age = in_seconds(Duration(facts.now - job.started_at))
    return why_not_run(age, timeout, slots=holder.slots, held=holder.held)


def _parents(facts: Facts) -> Iterable[Reason]:
    if facts.job.status is Status.BLOCKED:
        yield Reason(code="parents_missing", detail="it waits for its parents to succeed", blocks=True)


def _due(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status not in (Status.SCHEDULED, Status.RETRYING):
        return
    due = job.scheduled_at
    if due is not None and due > facts.now:
        wait = _format_duration(Duration(due - facts.now))
        why = f"attempt {job.attempts} failed, and the next starts" if job.status is Status.RETRYING else "it is due"
        yield Reason(
            code="not_due", detail=f"{why} at {rfc3339(due)}, {wait} from now", blocks=True, until=to_datetime(due)
        )
    else:
        yield Reason(
            code="not_due",
            detail="it is due and becomes ready within a second if a node runs maintenance",
            blocks=True,
            until=to_datetime(facts.now),
        )


def _deadline(facts: Facts) -> Iterable[Reason]:
    deadline = facts.job.deadline
    if deadline is not None and deadline <= facts.now:
        yield Reason(
            code="deadline_passed",
            detail=f"its deadline, {rfc3339(deadline)}, has passed: it never starts and is cancelled shortly",
            blocks=True,
            since=to_datetime(deadline),
        )


def _pauses(facts: Facts) -> Iterable[Reason]:
    codes: dict[str, ReasonCode] = {"queue": "queue_paused", "type": "type_paused", "tenant": "tenant_paused"}
    for pause in facts.pauses:
        by = f" by {pause.by}" if pause.by else ""
        why = f": {pause.reason}" if pause.reason else ""
        until = "until it is resumed" if pause.until is None else f"until {rfc3339(pause.until)}"
        yield Reason(
            code=codes[pause.kind],
            detail=f"the {pause.kind} {pause.name!r} is paused{by} since {rfc3339(pause.since)}, {until}{why}",
            blocks=True,
            name=pause.name,
            since=to_datetime(pause.since),
            until=None if pause.until is None else to_datetime(pause.until),
            by=pause.by or None,
            why=pause.reason or None,
        )


def _limits(facts: Facts) -> Iterable[Reason]:
    for limit in facts.limits:
        if limit.room > 0:
            continue
        if limit.frees_at is not None:
            yield Reason(
                code="rate_spent",
                detail=f"the rate limit of {limit.name} is used up; the next start is possible at "
                f"{rfc3339(limit.frees_at)}",
                blocks=True,
                name=limit.name,
                until=to_datetime(limit.frees_at),
            )
            continue
        some = "including " if limit.used > len(limit.holders) else ""
        held = f": {some}{', '.join(limit.holders)}" if limit.holders else ""
        yield Reason(
            code="limit_full",
            detail=f"the concurrency limit of {limit.name} is reached, {limit.used} of {limit.max_running} run{held}",
            blocks=True,
            name=limit.name,
            used=limit.used,
            most=limit.max_running,
            holders=list(limit.holders),
        )


def _held_back(facts: Facts) -> Iterable[Reason]:
    for hold in facts.held_back:
        until = "" if hold.until is None else f" until {rfc3339(hold.until)}"
        yield Reason(
            code="held_back",
            detail=f"deliveries to {hold.name} are held back{until}: {hold.why}",
            blocks=False,
            name=hold.name,
            why=hold.why,
            until=None if hold.until is None else to_datetime(hold.until),
        )


def _handled(facts: Facts) -> Iterable[Reason]:
    if facts.workers or facts.unresponsive:
        return
    job = facts.job
    seen = "none was seen in the last day" if facts.last_seen is None else f"last seen at {rfc3339(facts.last_seen)}"
    yield Reason(
        code="no_worker",
        detail=f"no live worker handles jobs of type {job.type!r} in the queue {job.queue!r}; {seen}",
        blocks=True,
        workers=0,
        last_seen=None if facts.last_seen is None else to_datetime(facts.last_seen),
    )


def _unresponsive(facts: Facts) -> Iterable[Reason]:
    for worker in facts.unresponsive[:_MAX_UNRESPONSIVE_WORKERS]:
        name, why = worker_name(worker.worker), describe_unresponsive(worker.blocked_by)
        yield Reason(
            code="worker_unresponsive",
            detail=f"worker {name}, which handles it, has not responded since {rfc3339(worker.since)}: {why}",
            blocks=not facts.workers,
            name=worker.blocked_by,
            worker=name,
            why=why,
            since=to_datetime(worker.since),
        )


_MAX_UNRESPONSIVE_WORKERS = 5
"""Unresponsive workers that an explanation lists."""


def _in_line(facts: Facts) -> Iterable[Reason]:
    ahead = facts.ahead
    if facts.job.status is not Status.READY or not ahead.jobs:
        return
    count = "1 job is" if ahead.jobs == 1 else f"{'at least' if ahead.at_least else 'about'} {ahead.jobs:,} jobs are"
    share = _format_share(ahead.share)
    yield Reason(
        code="in_line",
        detail=f"{count} ahead of it in its lane (cost {ahead.cost:,}), which gets {share} of its queue",
        blocks=False,
        jobs=ahead.jobs,
        cost=ahead.cost,
        at_least=ahead.at_least,
        share=ahead.share,
    )


PREDICATES: tuple[Predicate, ...] = (
    _finished,
    _running,
    _parents,
    _due,
    _deadline,
    _pauses,
    _limits,
    _held_back,
    _handled,
    _unresponsive,
    _in_line,
)
"""Predicates, in the order of their reasons."""


def _runnable(facts: Facts) -> Reason:
    order = " after the jobs ahead of it" if facts.ahead.jobs else ""
    count = "1 worker handles" if facts.workers == 1 else f"{facts.workers} workers handle"
    return Reason(
        code="runnable",
        detail=f"it is runnable now: {count} it, and the next one with a free slot claims it{order}",
        blocks=False,
        workers=facts.workers,
    )


def _estimate(facts: Facts, reasons: Sequence[Reason], *, runnable: bool) -> Estimate:
    """Estimate the start: when the last blocking condition ends, plus the time for jobs ahead."""
    job = facts.job
    if job.status in TERMINAL:
        return Estimate(at=None, basis="it is finished")
    if job.status is Status.RUNNING:
        return Estimate(at=None, basis="it has started")
    if job.deadline is not None and job.deadline <= facts.now:
        return Estimate(at=None, basis="it never starts")
    open_ended = list(dict.fromkeys(reason.code for reason in reasons if reason.blocks and reason.until is None))
    if open_ended:
        return Estimate(at=None, basis=f"it is unknown when this ends: {', '.join(open_ended)}")
    delays = [reason for reason in reasons if reason.blocks or reason.code == "held_back"]
    ends = [reason.until for reason in delays if reason.until is not None]
    earliest = max([to_datetime(facts.now), *ends])
    basis = "nothing blocks it" if runnable else "when the last blocking condition ends"
    if not facts.ahead.jobs:
        return Estimate(at=earliest, basis=f"{basis}, and no jobs are ahead of it")
    rate = 0.0 if facts.service_rate is None else facts.service_rate.per_second
    if rate <= 0:
        return Estimate(
            at=None, basis="no job of its lane ran in the last minutes, so there is no rate to estimate from"
        )
    wait = Duration(round(facts.ahead.cost / rate * 1_000_000))
    if in_seconds(wait) > _MAX_ESTIMATE_S:
        return Estimate(at=None, basis="not within a year at the rate of the last minutes")
    partial = "at the earliest, because only part of the jobs ahead were counted; " if facts.ahead.at_least else ""
    return Estimate(
        at=to_datetime(Instant(facts.now + wait)) + (earliest - to_datetime(facts.now)),
        basis=f"{basis}; {partial}{facts.ahead.cost:,} cost ahead at its lane's recent rate of {rate:.3g} per second",
    )


_MAX_ESTIMATE_S = 366 * 86_400.0


def _format_share(share: float) -> str:
    """Format a share as a percentage with two significant digits."""
    return f"{share * 100:.0f}%" if share >= 0.1 else f"{share * 100:.2g}%"


def _format_duration(span: Duration) -> str:
    whole = round(in_seconds(span))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= 2 * size:
            return f"{whole / size:.0f} {unit}"
    return f"{whole} s"
