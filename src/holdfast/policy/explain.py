"""The predicates of a claim, by name and in order, asked of one job: why it runs, or why not, and when it may.

What a claim tests in its statement, or decides before it, stands here as a question to facts that were read at one
instant. Each gives its reasons; a job that none of them blocks is claimed by the next worker whose turn comes to it.
"""

from collections.abc import Callable, Iterable, Sequence

from holdfast.model.explanation import Code, Estimate, Explanation, Reason, moment
from holdfast.model.ids import worker_name
from holdfast.model.job import Job
from holdfast.model.state import TERMINAL, Status
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerInfo
from holdfast.policy.explain_facts import Facts

Predicate = Callable[[Facts], Iterable[Reason]]


def explain(facts: Facts) -> Explanation:
    """Ask all predicates; a job that is finished or runs has that one reason."""
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
        as_of=moment(facts.now),
        runnable=runnable,
        reasons=reasons,
        estimate=_estimate(facts, reasons, runnable=runnable),
    )


def handles(worker: WorkerInfo, job: Job) -> bool:
    """Whether a worker would claim jobs like this one, as far as it told when it registered."""
    return (
        worker.tenant in (None, job.tenant)
        and (worker.types is None or job.type in worker.types)
        and (not worker.queues or job.queue in queues_of(worker.queues))
    )


def queues_of(told: str) -> set[str]:
    """The queues of a worker that wrote `mail:10,default`: a number behind the last colon is of slots."""
    names = set()
    for each in told.split(","):
        name, colon, slots = each.strip().rpartition(":")
        names.add(name if colon and slots.isdecimal() else each.strip())
    return names


# One after the other, in the order in which they are named to people


def _finished(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status in TERMINAL:
        when = "" if job.finished_at is None else f" at {rfc3339(job.finished_at)}"
        why = f": {job.reason}" if job.reason else ""
        ended = None if job.finished_at is None else moment(job.finished_at)
        yield Reason(
            code="finished", detail=f"it is {job.status}{when}{why}", blocks=True, since=ended, why=job.reason or None
        )


def _running(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status is not Status.RUNNING:
        return
    worker = None if job.worker is None else worker_name(job.worker)
    started = "" if job.started_at is None else f" since {rfc3339(job.started_at)}"
    lease = "its worker is not registered any more, and it is about to be given to another"
    if facts.lease_until is not None:
        past = facts.lease_until <= facts.now
        until = rfc3339(facts.lease_until)
        lease = (
            f"its lease ran out at {until}, and it is about to be given to another" if past else f"lease until {until}"
        )
    yield Reason(
        code="running",
        detail=f"it runs on worker {worker}{started}, attempt {job.attempts} of {job.max_attempts}; {lease}",
        blocks=True,
        worker=worker,
        since=None if job.started_at is None else moment(job.started_at),
        until=None if facts.lease_until is None else moment(facts.lease_until),
    )


def _parents(facts: Facts) -> Iterable[Reason]:
    if facts.job.status is Status.BLOCKED:
        yield Reason(code="parents_missing", detail="it waits for its parents to succeed", blocks=True)


def _due(facts: Facts) -> Iterable[Reason]:
    job = facts.job
    if job.status not in (Status.SCHEDULED, Status.RETRYING):
        return
    due = job.scheduled_at
    if due is not None and due > facts.now:
        wait = _span(Duration(due - facts.now))
        why = f"attempt {job.attempts} failed, and it is tried again" if job.status is Status.RETRYING else "it is due"
        yield Reason(code="not_due", detail=f"{why} at {rfc3339(due)}, {wait} from now", blocks=True, until=moment(due))
    else:
        yield Reason(
            code="not_due",
            detail="it is due, and made ready within a second where a node runs housekeeping",
            blocks=True,
            until=moment(facts.now),
        )


def _deadline(facts: Facts) -> Iterable[Reason]:
    deadline = facts.job.deadline
    if deadline is not None and deadline <= facts.now:
        yield Reason(
            code="deadline_passed",
            detail=f"its deadline, {rfc3339(deadline)}, has passed: it never starts and is about to be cancelled",
            blocks=True,
            since=moment(deadline),
        )


def _pauses(facts: Facts) -> Iterable[Reason]:
    codes: dict[str, Code] = {"queue": "queue_paused", "type": "type_paused", "tenant": "tenant_paused"}
    for pause in facts.pauses:
        by = f" by {pause.by}" if pause.by else ""
        why = f": {pause.reason}" if pause.reason else ""
        until = "until it is resumed" if pause.until is None else f"until {rfc3339(pause.until)}"
        yield Reason(
            code=codes[pause.kind],
            detail=f"the {pause.kind} {pause.name!r} is paused{by} since {rfc3339(pause.since)}, {until}{why}",
            blocks=True,
            name=pause.name,
            since=moment(pause.since),
            until=None if pause.until is None else moment(pause.until),
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
                detail=f"the rate of {limit.name} is spent; its next start is free at {rfc3339(limit.frees_at)}",
                blocks=True,
                name=limit.name,
                until=moment(limit.frees_at),
            )
            continue
        some = "among others " if limit.used > len(limit.holders) else ""
        held = f", held {some}by {', '.join(limit.holders)}" if limit.holders else ""
        yield Reason(
            code="limit_full",
            detail=f"the limit of {limit.name} is full: {limit.used} of {limit.most} run{held}",
            blocks=True,
            name=limit.name,
            used=limit.used,
            most=limit.most,
            holders=list(limit.holders),
        )


def _held_back(facts: Facts) -> Iterable[Reason]:
    for held in facts.held_back:
        until = "" if held.until is None else f" until {rfc3339(held.until)}"
        yield Reason(
            code="held_back",
            detail=f"what goes to {held.name} is held back{until}: {held.why}",
            blocks=False,
            name=held.name,
            why=held.why,
            until=None if held.until is None else moment(held.until),
        )


def _handled(facts: Facts) -> Iterable[Reason]:
    if facts.workers:
        return
    job = facts.job
    seen = "none was here in the last day" if facts.last_seen is None else f"last seen at {rfc3339(facts.last_seen)}"
    yield Reason(
        code="no_worker",
        detail=f"no live worker handles jobs of type {job.type!r} in the queue {job.queue!r}; {seen}",
        blocks=True,
        workers=0,
        last_seen=None if facts.last_seen is None else moment(facts.last_seen),
    )


def _in_line(facts: Facts) -> Iterable[Reason]:
    ahead = facts.ahead
    if facts.job.status is not Status.READY or not ahead.jobs:
        return
    many = "1 job is" if ahead.jobs == 1 else f"{'at least' if ahead.at_least else 'about'} {ahead.jobs:,} jobs are"
    yield Reason(
        code="in_line",
        detail=f"{many} ahead of it in its lane (cost {ahead.cost:,}), which gets {_part(ahead.share)} of its queue",
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
    _in_line,
)
"""In the order in which their reasons are told."""


def _runnable(facts: Facts) -> Reason:
    turn = ", when its turn comes" if facts.ahead.jobs else ""
    many = "1 worker handles" if facts.workers == 1 else f"{facts.workers} workers handle"
    return Reason(
        code="runnable",
        detail=f"it is runnable now: {many} it, and the next with a free slot takes it{turn}",
        blocks=False,
        workers=facts.workers,
    )


def _estimate(facts: Facts, reasons: Sequence[Reason], *, runnable: bool) -> Estimate:
    """When it may start: not before what blocks it ends, and after what is ahead of it, at the pace of late."""
    job = facts.job
    if job.status in TERMINAL:
        return Estimate(at=None, basis="it is finished")
    if job.status is Status.RUNNING:
        return Estimate(at=None, basis="it has started")
    if job.deadline is not None and job.deadline <= facts.now:
        return Estimate(at=None, basis="it never starts")
    endless = [reason.code for reason in reasons if reason.blocks and reason.until is None]
    if endless:
        return Estimate(at=None, basis=f"nobody can tell when this ends: {', '.join(endless)}")
    delays = [reason for reason in reasons if reason.blocks or reason.code == "held_back"]
    ends = [reason.until for reason in delays if reason.until is not None]
    earliest = max([moment(facts.now), *ends])
    said = "nothing blocks it" if runnable else "when the last of what blocks it ends"
    if not facts.ahead.jobs:
        return Estimate(at=earliest, basis=f"{said}, and nothing is ahead of it")
    rate = 0.0 if facts.service_rate is None else facts.service_rate.per_second
    if rate <= 0:
        return Estimate(at=None, basis="nothing of its lane was served in the last minutes: no rate to estimate from")
    wait = Duration(round(facts.ahead.cost / rate * 1_000_000))
    if in_seconds(wait) > _MAX_ESTIMATE_S:
        return Estimate(at=None, basis="not within a year at the rate of the last minutes")
    least = "at the earliest, for there is more ahead than was counted; " if facts.ahead.at_least else ""
    return Estimate(
        at=moment(Instant(facts.now + wait)) + (earliest - moment(facts.now)),
        basis=f"{said}; {least}{facts.ahead.cost:,} cost ahead at {rate:.3g} per second, the recent rate of its lane",
    )


_MAX_ESTIMATE_S = 366 * 86_400.0


def _part(share: float) -> str:
    """A share in hundredths, in two digits however small it is."""
    return f"{share * 100:.0f}%" if share >= _WHOLE else f"{share * 100:.2g}%"


_WHOLE = 0.1
"""From here on whole hundredths are fine enough."""


def _span(span: Duration) -> str:
    whole = round(in_seconds(span))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= 2 * size:
            return f"{whole / size:.0f} {unit}"
    return f"{whole} s"
