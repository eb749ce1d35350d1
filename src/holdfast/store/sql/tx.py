"""Transaction parts that all dialects share."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from holdfast.errors import Contention
from holdfast.model import change_log
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, InsertResult, Job, JobFilter, NewJob
from holdfast.model.lane import Lane, LaneReady
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant
from holdfast.model.transition import Transition
from holdfast.store.port.store import NO_REPLACEMENTS, Retention, Tx
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.breakers import SqlBreakers
from holdfast.store.sql.change_log import SqlChangeLog
from holdfast.store.sql.codec import Row, count_of, job_of
from holdfast.store.sql.job_search import SqlJobSearch
from holdfast.store.sql.job_types import SqlJobTypes
from holdfast.store.sql.limits import SqlLimits, is_limited, keys_of
from holdfast.store.sql.queues import SqlQueues
from holdfast.store.sql.quotas import SqlQuotas
from holdfast.store.sql.steps import SqlSteps
from holdfast.store.sql.workers import SqlWorkers

KeyKind = Literal["idempotency_key", "unique"]

_IDEMPOTENCY_KEY, _UNIQUE_KEY = 0, 1
"""Stored kinds of keys."""

_MAX_KEY_ATTEMPTS = 5
_FINISHED = (Status.SUCCEEDED, Status.CANCELLED, Status.DEAD)


class KeyRequest(NamedTuple):
    """Request of a job for a key. Keys are locked in the order of these fields."""

    tenant: str
    kind: int
    key: str
    job_id: JobId
    fingerprint: bytes
    span: Duration

    @property
    def name(self) -> tuple[str, int, str]:
        """Identity of the key: tenant, kind and key."""
        return self[:3]


class KeyOwner(NamedTuple):
    """Job that a key belongs to; `valid` is False once the key has expired."""

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
    Tx,
):
    """Transaction without the set-based statements, which differ by dialect."""

    def __init__(self) -> None:
        self.ready_lanes: list[LaneReady] = []
        """Lanes in which this transaction made jobs ready; announced after the commit."""
        self.changed = False
        """True if jobs were claimed or changed, so that readers of the change log are notified."""
        self.ended_at = Instant(0)
        """Approximate end of the attempts that are being settled; 0 if unknown."""

    # Set-based statements of a dialect.

    @abstractmethod
    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time. Adds to `ready_lanes`."""

    @abstractmethod
    async def take_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist; wait for concurrent inserts of the same keys."""

    @abstractmethod
    async def lock_keys(self, requests: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Lock these keys and return their owners."""

    @abstractmethod
    async def reassign_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Reassign these locked keys to other jobs."""

    @abstractmethod
    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""

    @abstractmethod
    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place; return (id, status, queue, tenant, priority, seq) of each."""

    @abstractmethod
    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table; return the same columns as `requeue`."""

    # Shared by all dialects.

    async def insert(
        self, jobs: Sequence[NewJob], *, key_retention: Duration, replacing: Mapping[JobId, JobId] = NO_REPLACEMENTS
    ) -> list[InsertResult]:
        plain = all(job.spec.idempotency_key is None and job.unique is None for job in jobs)
        keys = keys_of(job.spec for job in jobs)
        if plain and not keys:
            at = await self.insert_rows(jobs)
            return [InsertResult(job.id, at) for job in jobs]
        async with self.in_transaction():
            if plain:
                at = await self.insert_rows(jobs)
                inserted = [InsertResult(job.id, at) for job in jobs]
            else:
                inserted = await self._insert_keyed(jobs, key_retention, replacing)
            await self.grant_key_slots(keys)
            return inserted

    async def _insert_keyed(
        self, jobs: Sequence[NewJob], key_retention: Duration, replacing: Mapping[JobId, JobId]
    ) -> list[InsertResult]:
        repeats: dict[JobId, tuple[KeyKind, KeyOwner]] = {}
        idempotent = [
            KeyRequest(job.spec.tenant, _IDEMPOTENCY_KEY, key, job.id, job.fingerprint, key_retention)
            for job in jobs
            if (key := job.spec.idempotency_key) is not None
        ]
        if idempotent:
            repeats |= await self._acquire_keys("idempotency_key", idempotent, replacing)
        unique = [
            KeyRequest(job.spec.tenant, _UNIQUE_KEY, job.unique.key, job.id, job.fingerprint, job.unique.within)
            for job in jobs
            if job.unique is not None and job.id not in repeats
        ]
        if unique:
            taken = await self._acquire_keys("unique", unique, replacing)
            # A job that duplicates a unique job is not inserted: its idempotency key must point to the existing job,
            # or be released if the conflict is an error.
            accepts_existing = {job.id for job in jobs if job.unique is not None and job.unique.on_conflict == "return"}
            repointed = [
                request._replace(job_id=taken[request.job_id][1].job_id)
                if request.job_id in accepts_existing
                else request._replace(span=Duration(0))
                for request in idempotent
                if request.job_id in taken
            ]
            if repointed:
                await self.reassign_keys(repointed)
            repeats |= taken
        fresh = [job for job in jobs if job.id not in repeats]
        at = await self.insert_rows(fresh) if fresh else await self.now()
        return [_insert_result(job, at, repeats.get(job.id)) for job in jobs]

    async def append_transitions(self, transitions: Sequence[Transition]) -> None:
        """Append a row to the change log for transitions that were applied."""
        await self.append_change(change_log.encode_transitions(transitions, self.ended_at))

    async def apply(self, transitions: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        self.ended_at = ended_at
        if not any(map(is_limited, transitions)):
            return {transition.id for transition in await self._apply_and_log(transitions)}
        async with self.in_transaction():
            applied = await self._apply_and_log(transitions)
            await self.release_and_grant(applied)
            return {transition.id for transition in applied}

    async def _apply_and_log(self, transitions: Sequence[Transition]) -> Sequence[Transition]:
        """Apply transitions and log them; return those that were applied."""
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
        criteria = {"tenant": where.tenant, "queue": where.queue, "type": where.type, "status": status}
        live = await self.rows("counts_live", **criteria)
        dead = await self.rows("counts_dead", **criteria)
        return [count_of(row) for row in (*live, *dead)]

    async def lanes(self, queues: Sequence[str], max_lanes: int) -> list[LaneReady]:
        return [
            LaneReady(Lane(queue, tenant, priority), first)
            for queue in queues
            for tenant, priority, first in await self.rows("lanes", queue=queue, max_lanes=max_lanes)
        ]

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return [job_of(row) for row in await self.rows("held_by", worker=worker, limit=limit)]

    async def lock_held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return [job_of(row) for row in await self.rows("lock_held_by", worker=worker, limit=limit)]

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        return [(row[0], row[1]) for row in await self.rows("held_attempts", worker=worker, limit=limit)]

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

    async def ahead(self, job: Job, max_count: int) -> tuple[int, int]:
        position = {"queue": job.queue, "tenant": job.tenant, "priority": job.priority, "seq": job.seq}
        jobs, cost = (await self.rows("ahead", **position, max_count=max_count))[0]
        return jobs, int(cost)

    async def ready_tenants(self, queue: str, max_count: int) -> set[str]:
        return {row[0] for row in await self.rows("ready_tenants", queue=queue, max_count=max_count)}

    async def _acquire_keys(
        self, kind: KeyKind, requests: Sequence[KeyRequest], replacing: Mapping[JobId, JobId]
    ) -> dict[JobId, tuple[KeyKind, KeyOwner]]:
        """Acquire keys; return the owners of those that belong to other jobs, by requesting job."""
        requests = sorted(requests)
        for _ in range(_MAX_KEY_ATTEMPTS):
            await self.take_keys(requests)
            owners = await self.lock_keys(requests)
            if len(owners) == len(requests):
                break
            # A key existed when it was requested and was pruned before it was locked: try again.
        else:
            raise Contention(f"{kind} {requests[0].key!r} is created and deleted concurrently; try again")

        def is_free(owner: KeyOwner, request: KeyRequest) -> bool:
            if owner.job_id == request.job_id:  # even if it released the key before, in this transaction
                return request.job_id in replacing and not owner.valid
            return not owner.valid or owner.job_id == replacing.get(request.job_id)

        if any(is_free(owners[request.name], request) for request in requests):
            # A transaction that waited for a lock sees the current key, but jobs as of the start of its statement: the
            # job that now owns the key may be missing from that snapshot. A second read under the lock sees it.
            owners = await self.lock_keys(requests)
        reassigned = [request for request in requests if is_free(owners[request.name], request)]
        if reassigned:
            await self.reassign_keys(reassigned)
        acquired = {request.job_id for request in reassigned}
        acquired |= {request.job_id for request in requests if owners[request.name].job_id == request.job_id}
        return {request.job_id: (kind, owners[request.name]) for request in requests if request.job_id not in acquired}


def _insert_result(job: NewJob, at: Instant, repeat: tuple[KeyKind, KeyOwner] | None) -> InsertResult:
    if repeat is None:
        return InsertResult(job.id, at)
    kind, owner = repeat
    return InsertResult(owner.job_id, at, kind, same_body=owner.fingerprint == job.fingerprint)
