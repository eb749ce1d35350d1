"""A transaction on any of the databases: what they share. A dialect adds how sets of rows travel."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, NamedTuple

from holdfast.errors import Contention
from holdfast.model import change_log
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, HeldJob, InsertResult, Job, JobFilter, NewJob
from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.model.limit import LimitName
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant
from holdfast.model.transition import Transition
from holdfast.store.port.store import NOTHING, Retention
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.breakers import SqlBreakers
from holdfast.store.sql.change_log import SqlChangeLog
from holdfast.store.sql.codec import Row, count_of, job_of
from holdfast.store.sql.job_search import SqlJobSearch
from holdfast.store.sql.job_types import SqlJobTypes
from holdfast.store.sql.limits import SqlLimits, binds, keys_of
from holdfast.store.sql.queues import SqlQueues
from holdfast.store.sql.quotas import SqlQuotas
from holdfast.store.sql.steps import SqlSteps
from holdfast.store.sql.workers import SqlWorkers

KeyKind = Literal["idempotency_key", "unique"]

_TRIES_FOR_KEYS = 5
_FINISHED = (Status.SUCCEEDED, Status.CANCELLED, Status.DEAD)


class KeyRequest(NamedTuple):
    """A job asks for a key. The order of the fields is the order in which keys are locked."""

    tenant: str
    kind: int
    key: str
    job_id: JobId
    fingerprint: bytes
    span: Duration

    @property
    def name(self) -> tuple[str, int, str]:
        """What is unique."""
        return self[:3]


class KeyOwner(NamedTuple):
    """Whom a key belongs to, and whether it still does."""

    job_id: JobId
    fingerprint: bytes
    valid: bool


class SqlTx(
    SqlQueues,
    SqlWorkers,
    SqlJobTypes,
    SqlLimits,
    SqlSteps,
    SqlJobSearch,
    SqlAccess,
    SqlQuotas,
    SqlChangeLog,
    SqlBreakers,
):
    """See `holdfast.store.port.store.Tx`."""

    def __init__(self) -> None:
        self.ready_lanes: list[LaneReady] = []
        """What became ready by this transaction, to be told when it is committed."""
        self.changed = False
        """Whether jobs were taken or moved: those who follow the feed want to know."""
        self.ended_at = Instant(0)
        """When the attempts that are being settled ended, as far as is known."""

    def in_transaction(self) -> AbstractAsyncContextManager[None]:
        """Group statements into one transaction, even in autocommit mode."""
        return nullcontext()

    # How a dialect moves sets of rows.

    @abstractmethod
    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time. Adds to `ready_lanes`."""

    @abstractmethod
    async def take_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist; wait for concurrent inserts of the same keys."""

    @abstractmethod
    async def lock_keys(self, claims: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Lock these keys and return their owners."""

    @abstractmethod
    async def retake_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Reassign these locked keys to other jobs."""

    @abstractmethod
    async def claim(
        self,
        worker: WorkerId,
        shares: Sequence[Share],
        limit: int,
        types: Sequence[str] | None,
        *,
        without: Sequence[str] = (),
        counting: Collection[LimitName] = (),
    ) -> list[Job]:
        """Claim ready jobs, lane by lane."""

    @abstractmethod
    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""

    @abstractmethod
    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place; (id, status, queue, tenant, priority, seq) of each."""

    @abstractmethod
    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table; (id, status, queue, tenant, priority, seq) of each."""

    @abstractmethod
    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """Return the jobs that exist, in no order."""

    @abstractmethod
    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the jobs that their holder no longer holds."""

    @abstractmethod
    async def promote(self, limit: int) -> int:
        """Make due jobs ready; return how many."""

    # What is the same for all.

    async def now(self) -> Instant:
        return Instant((await self.rows("now"))[0][0])

    async def insert(
        self, jobs: Sequence[NewJob], *, key_retention: Duration, replacing: Mapping[JobId, JobId] = NOTHING
    ) -> list[InsertResult]:
        plain = all(job.idempotency_key is None and job.unique is None for job in jobs)
        keys = keys_of(jobs)
        if plain and not keys:
            at = await self.insert_rows(jobs)
            return [InsertResult(job.id, at) for job in jobs]
        async with self.in_transaction():
            if plain:
                at = await self.insert_rows(jobs)
                inserted = [InsertResult(job.id, at) for job in jobs]
            else:
                inserted = await self._insert_keyed(jobs, key_retention, replacing)
            await self.pass_turns(keys)
            return inserted

    async def _insert_keyed(
        self, jobs: Sequence[NewJob], key_retention: Duration, replacing: Mapping[JobId, JobId]
    ) -> list[InsertResult]:
        repeats: dict[JobId, tuple[KeyKind, KeyOwner]] = {}
        wanted = [
            KeyRequest(job.tenant, 0, job.idempotency_key, job.id, job.fingerprint, key_retention)
            for job in jobs
            if job.idempotency_key is not None
        ]
        if wanted:
            repeats |= await self._taken("idempotency_key", wanted, replacing)
        unique = [
            KeyRequest(job.tenant, 1, job.unique.key, job.id, job.fingerprint, job.unique.within)
            for job in jobs
            if job.unique is not None and job.id not in repeats
        ]
        if unique:
            taken = await self._taken("unique", unique, replacing)
            # Its idempotency key is its own, but the job will not be: whoever repeats it must find the other. Unless
            # that is refused: what was not accepted leaves no key behind.
            content = {job.id for job in jobs if job.unique is not None and job.unique.on_conflict == "return"}
            repointed = [
                claim._replace(job_id=taken[claim.job_id][1].job_id)
                if claim.job_id in content
                else claim._replace(span=Duration(0))
                for claim in wanted
                if claim.job_id in taken
            ]
            if repointed:
                await self.retake_keys(repointed)
            repeats |= taken
        fresh = [job for job in jobs if job.id not in repeats]
        at = await self.insert_rows(fresh) if fresh else await self.now()
        return [_inserted(job, at, repeats.get(job.id)) for job in jobs]

    async def append_transitions(self, transitions: Sequence[Transition]) -> None:
        """Write a row of the feed for moves that took effect."""
        await self.append_change(change_log.of_moves(transitions, self.ended_at))

    async def apply(self, transitions: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        self.ended_at = ended_at
        if not any(map(binds, transitions)):
            return {transition.id for transition in await self._applied(transitions)}
        async with self.in_transaction():
            applied = await self._applied(transitions)
            await self.let_go(applied)
            return {transition.id for transition in applied}

    async def _applied(self, transitions: Sequence[Transition]) -> Sequence[Transition]:
        """Make these changes and tell of them; those that took effect."""
        done = await self._apply(transitions)
        applied = (
            transitions
            if len(done) == len(transitions)
            else [transition for transition in transitions if transition.id in done]
        )
        if applied:
            self.changed = True
            await self.append_transitions(applied)
        return applied

    async def _apply(self, transitions: Sequence[Transition]) -> set[JobId]:
        done: set[JobId] = set()
        if finishing := [transition for transition in transitions if transition.to in _FINISHED]:
            done |= await self.finish(finishing)
        if len(finishing) == len(transitions):
            return done
        waiting = [transition for transition in transitions if transition.to not in _FINISHED]
        reviving = [transition for transition in waiting if transition.was in _FINISHED]
        requeued = [transition for transition in waiting if transition.was not in _FINISHED]
        rows = [*(await self.requeue(requeued) if requeued else ()), *(await self.revive(reviving) if reviving else ())]
        for job_id, status, queue, tenant, priority, seq in rows:
            done.add(job_id)
            if status == Status.READY.code:
                self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
        return done

    async def counts(self, where: JobFilter) -> list[Count]:
        status = None if where.status is None else where.status.code
        asked = {"tenant": where.tenant, "queue": where.queue, "type": where.type, "status": status}
        live = await self.rows("counts_live", **asked)
        dead = await self.rows("counts_dead", **asked)
        return [count_of(row) for row in (*live, *dead)]

    async def lanes(self, queues: Sequence[str], cap: int) -> list[LaneReady]:
        return [
            LaneReady(Lane(queue, tenant, priority), first)
            for queue in queues
            for tenant, priority, first in await self.rows("lanes", queue=queue, cap=cap)
        ]

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return [job_of(row) for row in await self.rows("held_by", worker=worker, limit=limit)]

    async def orphans(self, limit: int) -> list[Job]:
        return [job_of(row) for row in await self.rows("orphans", limit=limit)]

    async def overdue(self, limit: int) -> list[Job]:
        return [job_of(row) for row in await self.rows("overdue", limit=limit)]

    async def next_due(self) -> Duration | None:
        wait = (await self.rows("next_due"))[0][0]
        return None if wait is None else Duration(max(0, wait))

    async def prune(self, rule: Retention, limit: int) -> int:
        return (
            await self.count("prune_history", keep=rule.history, limit=limit)
            + await self.count("prune_dead", keep=rule.dead, limit=limit)
            + await self.count("prune_keys", limit=limit)
            + await self.prune_steps(rule, limit)
            + await self.count("prune_departed")
        )

    async def ahead(self, job: Job, most: int) -> tuple[int, int]:
        asked = {"queue": job.queue, "tenant": job.tenant, "priority": job.priority, "seq": job.seq, "most": most}
        jobs, cost = (await self.rows("ahead", **asked))[0]
        return jobs, int(cost)

    async def contenders(self, queue: str, most: int) -> set[str]:
        return {row[0] for row in await self.rows("contenders", queue=queue, most=most)}

    async def _taken(
        self, kind: KeyKind, wanted: Sequence[KeyRequest], replacing: Mapping[JobId, JobId]
    ) -> dict[JobId, tuple[KeyKind, KeyOwner]]:
        """Ask for these keys; those that others rightly have, by the job that asked."""
        claims = sorted(wanted)
        for _ in range(_TRIES_FOR_KEYS):
            await self.take_keys(claims)
            owners = await self.lock_keys(claims)
            if len(owners) == len(claims):
                break
            # One was there when it was asked for and pruned before it was locked: ask again.
        else:
            raise Contention(f"{kind} {claims[0].key!r}: it keeps appearing and disappearing; try again")

        def free(owner: KeyOwner, claim: KeyRequest) -> bool:
            if owner.job_id == claim.job_id:  # also if it gave it up before, in this transaction
                return claim.job_id in replacing and not owner.valid
            return not owner.valid or owner.job_id == replacing.get(claim.job_id)

        if any(free(owners[claim.name], claim) for claim in claims):
            # Whoever waited for a lock has seen the key as it is, but jobs as they were when the statement began: the
            # job that the key went over to may have been none then. Under the lock a second look sees it.
            owners = await self.lock_keys(claims)
        retaken = [claim for claim in claims if free(owners[claim.name], claim)]
        if retaken:
            await self.retake_keys(retaken)
        mine = {c.job_id for c in retaken} | {c.job_id for c in claims if owners[c.name].job_id == c.job_id}
        return {c.job_id: (kind, owners[c.name]) for c in claims if c.job_id not in mine}


def _inserted(job: NewJob, at: Instant, repeat: tuple[KeyKind, KeyOwner] | None) -> InsertResult:
    if repeat is None:
        return InsertResult(job.id, at)
    kind, owner = repeat
    return InsertResult(owner.job_id, at, kind, same_body=owner.fingerprint == job.fingerprint)
