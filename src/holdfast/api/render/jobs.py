"""Render jobs, groups of dead letters and bulk results."""

from holdfast.engine.jobs.actions import BulkResult
from holdfast.engine.jobs.queries import MAX_COUNTED_JOBS, DeadLetterGroup
from holdfast.model.access import Caller
from holdfast.model.decoded_job import latest_error
from holdfast.model.job import Job
from holdfast.model.time import rfc3339
from holdfast.policy.actions import allowed_actions
from holdfast.wire import codec
from holdfast.wire.types import BulkOut, GroupOut, JobOut


def render_job(job: Job, caller: Caller) -> JobOut:
    """Render a job as this caller may see it."""
    return codec.job_out(job, actions=allowed_actions(caller, job.status))


def render_bulk_result(result: BulkResult, *, dry_run: bool) -> BulkOut:
    """Render the result of an action on many jobs."""
    return BulkOut(result.matched, result.changed, dry_run, codec.cursor_of(result.cursor))


def render_group(group: DeadLetterGroup, caller: Caller) -> GroupOut:
    """Render a group of dead letters with the same error."""
    counted, newest, oldest = group
    return GroupOut(
        tenant=counted.tenant,
        fingerprint=counted.error,
        count=min(counted.jobs, MAX_COUNTED_JOBS),
        more=counted.jobs > MAX_COUNTED_JOBS,
        first_at=rfc3339(oldest.finished_at or oldest.created_at),
        last_at=rfc3339(newest.finished_at or newest.created_at),
        error=latest_error(newest),
        newest=render_job(newest, caller),
    )
