"""Check of a run under faults: compare what was acknowledged and recorded with what the database contains."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.support.ledger import Entry

CLAIM_SLACK_S = 0.5
"""Longest expected time between the refill of a token bucket and the recorded time of the claim."""


class StoredJob(NamedTuple):
    """Job in the database; `key` is from its payload."""

    key: str
    id: str
    status: str
    limits: tuple[str, ...] = ()
    """Names of the concurrency limits that apply to it."""


class Freeze(NamedTuple):
    """Time during which processes were stopped by SIGSTOP, by the monotonic clock."""

    pids: frozenset[int]
    begin: float
    end: float


class Attempt(NamedTuple):
    """Time during which a handler ran while its worker could hold the job."""

    job: str
    fence: int
    start: float
    end: float


class Attempts(NamedTuple):
    """Attempts from the ledger."""

    all: Sequence[Attempt]
    interrupted: int
    """Attempts whose process was killed."""
    stale: int
    """Attempts that ran on after a freeze in which they lost their lease; their reports are rejected."""
    unknown: int
    """Attempts whose end was not recorded; each counts as an instant."""


class Claim(NamedTuple):
    """Transaction that claimed jobs of a queue, by the clock of the database in seconds."""

    at: float
    jobs: int


class RateLimit(NamedTuple):
    """Starts per second, and the size of the token bucket."""

    per_second: float
    burst: int


class Facts(NamedTuple):
    """Facts about a run."""

    acknowledged: Iterable[tuple[str, str]]
    """Key and id of each acknowledged submission, including repeats."""
    stored: Sequence[StoredJob]
    effects: Mapping[str, int]
    """Number of rows that handlers wrote, by key."""
    attempts: Sequence[Attempt] = ()
    limits: Mapping[str, int] = {}
    """Maximum number of concurrent attempts by name of the limit."""
    claims: Mapping[str, Sequence[Claim]] = {}
    rates: Mapping[str, RateLimit] = {}
    freezes: Sequence[Freeze] = ()
    """Freezes by the clock of the database."""
    sampled: Mapping[str, int] = {}
    """Largest number of running jobs that a query returned, by name of the limit."""


class Violation(NamedTuple):
    """Broken promise."""

    kind: str
    subject: str
    detail: str


KINDS = (
    "job lost",
    "job under another id",
    "job doubled",
    "job not succeeded",
    "effect doubled",
    "effect missing",
    "claim started twice",
    "attempts of one job overlap",
    "concurrency limit exceeded",
    "rate exceeded",
)
"""All kinds of violations, in the order of the report."""


def find_violations(facts: Facts) -> list[Violation]:
    """Return everything that contradicts the promises."""
    return [*_jobs(facts), *_effects(facts), *_attempts(facts), *_rates(facts)]


def _jobs(facts: Facts) -> Iterable[Violation]:
    ids: dict[str, list[str]] = defaultdict(list)
    for job in facts.stored:
        ids[job.key].append(job.id)
    for key, job_id in facts.acknowledged:
        if key not in ids:
            yield Violation("job lost", key, f"acknowledged as {job_id}, not in the database")
        elif job_id not in ids[key]:
            yield Violation("job under another id", key, f"acknowledged as {job_id}, stored as {', '.join(ids[key])}")
    for key, stored in ids.items():
        if len(stored) > 1:
            yield Violation("job doubled", key, f"stored as {', '.join(stored)}")
    for job in facts.stored:
        if job.status != "succeeded":
            yield Violation("job not succeeded", job.key, f"{job.id} is {job.status}")


def _effects(facts: Facts) -> Iterable[Violation]:
    for job in facts.stored:
        if job.status == "succeeded" and not facts.effects.get(job.key):
            yield Violation("effect missing", job.key, f"{job.id} succeeded without its row")
    for key, rows in facts.effects.items():
        if rows > 1:
            yield Violation("effect doubled", key, f"{rows} rows")


def _attempts(facts: Facts) -> Iterable[Violation]:
    starts = Counter((each.job, each.fence) for each in facts.attempts)
    for (job, fence), times in starts.items():
        if times > 1:
            yield Violation("claim started twice", job, f"fence {fence} started {times} times")
    by_job: dict[str, list[Attempt]] = defaultdict(list)
    for each in facts.attempts:
        by_job[each.job].append(each)
    for job, attempts in by_job.items():
        if most_concurrent(attempts) > 1:
            ran = ", ".join(
                f"fence {each.fence} {each.start:.3f}–{each.end:.3f}" for each in sorted(attempts, key=_start)
            )
            yield Violation("attempts of one job overlap", job, ran)
    for name, peak in limit_peaks(facts).items():
        if peak > facts.limits[name]:
            yield Violation("concurrency limit exceeded", name, f"{peak} ran, {facts.limits[name]} allowed")


def _rates(facts: Facts) -> Iterable[Violation]:
    for name, rate in facts.rates.items():
        excess, at = rate_excess(facts.claims.get(name, ()), rate, facts.freezes)
        if excess > 0:
            yield Violation("rate exceeded", name, f"{excess:.2f} starts too many at {at:.3f}")


def _start(attempt: Attempt) -> float:
    return attempt.start


def limit_peaks(facts: Facts) -> dict[str, int]:
    """Return the largest number of concurrent attempts under each limit, recorded or sampled."""
    limits = {job.id: job.limits for job in facts.stored}
    under: dict[str, list[Attempt]] = defaultdict(list)
    for each in facts.attempts:
        for name in limits.get(each.job, ()):
            under[name].append(each)
    return {name: max(most_concurrent(under[name]), facts.sampled.get(name, 0)) for name in facts.limits}


def most_concurrent(attempts: Iterable[Attempt]) -> int:
    """Return the largest number of attempts that ran at the same time."""
    changes = [change for each in attempts if each.end > each.start for change in ((each.start, 1), (each.end, -1))]
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def rate_excess(claims: Sequence[Claim], rate: RateLimit, freezes: Sequence[Freeze] = ()) -> tuple[float, float]:
    """Return by how many starts the claims exceed the token bucket at most, and the time when they do.

    In every window, at most `burst` jobs plus the refill of the window may start. A claim is recorded slightly after
    the refill that it is based on, but the limit is locked in between, so that the refill is later than the previous
    claim. A worker that is frozen during its claim lengthens this time.
    """
    worst, worst_at = 0.0, 0.0
    started, lowest, previous = 0, float("inf"), float("-inf")
    for claim in sorted(claims):
        slack = CLAIM_SLACK_S + sum(
            claim.at - each.begin for each in freezes if each.begin <= claim.at <= each.end + 2 * CLAIM_SLACK_S
        )
        refilled = max(previous, claim.at - slack)
        lowest = min(lowest, started - rate.per_second * refilled)
        started += claim.jobs
        excess = started - rate.per_second * claim.at - lowest - rate.burst
        if excess > max(worst, 1e-3):
            worst, worst_at = excess, claim.at
        previous = claim.at
    return worst, worst_at


def attempts_in(entries: Sequence[Entry], killed: Mapping[int, Sequence[float]], freezes: Sequence[Freeze]) -> Attempts:
    """Return the attempts that handlers recorded, given the times at which processes were killed and frozen.

    A long run uses a process id several times, so `killed` has the times of all processes with this id.

    A handler that was frozen until its worker had lost the lease runs on for a moment afterwards, while another worker
    may run the job: its attempt ends with the begin of the freeze. Only a later start of the same job shows the loss.
    """
    ended = {(each.job, each.fence): each.at for each in entries if each.event in ("end", "stopped")}
    last: dict[str, int] = defaultdict(int)
    frozen: dict[int, list[Freeze]] = defaultdict(list)
    for each in entries:
        last[each.job] = max(last[each.job], each.fence)
    for freeze in freezes:
        for pid in freeze.pids:
            frozen[pid].append(freeze)
    found: list[Attempt] = []
    interrupted = stale = unknown = 0
    for start in entries:
        if start.event != "start":
            continue
        over = ended.get((start.job, start.fence))
        dies = min((at for at in killed.get(start.pid, ()) if at >= start.at), default=None)
        if over is None and dies is not None:
            interrupted += 1
            over = dies
        if last[start.job] > start.fence:
            stops = [
                each.begin for each in frozen[start.pid] if start.at <= each.end and (over or each.begin) >= each.begin
            ]
            if stops:
                stale += 1
                over = max(start.at, min(stops))
        if over is None:
            unknown += 1
            over = start.at
        found.append(Attempt(start.job, start.fence, start.at, over))
    return Attempts(found, interrupted, stale, unknown)
