"""Actions that a user may apply to a job, and the error if its state forbids one."""

from msgspec.structs import replace

from holdfast.errors import Conflict, Invalid
from holdfast.model.access import Caller, Scope
from holdfast.model.decoded_job import Action
from holdfast.model.job import Job, JobFilter
from holdfast.model.state import Status
from holdfast.policy.access import has_scope
from holdfast.policy.lifecycle import actions

_WHY_FORBIDDEN: dict[Action, dict[Status, str]] = {
    "cancel": {
        Status.SUCCEEDED: "it has already succeeded",
        Status.DEAD: "it is already dead: delete it if you no longer need it",
        Status.CANCELLED: "it is already cancelled",
    },
    "retry": {
        Status.READY: "it is ready: it runs as soon as a worker claims it",
        Status.RUNNING: "it is running: wait for it, or cancel it first",
        Status.BLOCKED: "it waits for its parents and runs when they have succeeded",
        Status.SUCCEEDED: "it has succeeded: submit a new job to do it again",
    },
    "delete": {
        Status.RUNNING: "it is running: cancel it first",
        Status.BLOCKED: "it waits for its parents: cancel it first",
    },
}


def allowed_actions(caller: Caller, status: Status) -> list[Action]:
    """Return the actions the caller may apply in this state; none without the `cancel` scope."""
    return actions(status) if has_scope(caller, Scope.CANCEL) else []


def is_allowed(job: Job, action: Action) -> bool:
    """Return True if the job's state allows the action."""
    return action in actions(job.status)


def forbidden_action(job: Job, action: Action) -> Conflict:
    """Return the error that says why the job's state forbids the action."""
    why = _WHY_FORBIDDEN[action].get(job.status, f"it is {job.status.value}")
    return Conflict(f"job {job.id} cannot be {_PARTICIPLE[action]}: {why}")


_PARTICIPLE: dict[Action, str] = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}


def bulk_filter(
    where: JobFilter, action: Action, *, everything: bool, implied: frozenset[str] = frozenset({"tenant"})
) -> JobFilter:
    """Return the effective filter of a bulk action.

    Cancel applies to unfinished jobs; retry and delete apply to dead ones unless the filter names a status.

    Args:
        where: The caller's filter.
        action: The action to apply.
        everything: The caller explicitly asked for all jobs. Without it an empty filter is an error, so that
            a forgotten filter does not select everything.
        implied: Fields that the server sets and that do not make a filter non-empty.

    Raises:
        Invalid: The filter is empty and `everything` is false.
    """
    selective = any(getattr(where, name) is not None for name in where.__struct_fields__ if name not in implied)
    if not selective and not everything:
        raise Invalid(
            "the filter is empty and would match every job: add a filter, or set `all`: true", pointer="/filter"
        )
    if action == "cancel":
        return replace(where, finished=False)
    if where.status is None:
        return replace(where, status=Status.DEAD)
    return where
