"""What a person may do with a job, and why not."""

from holdfast.errors import Conflict, Invalid
from holdfast.model.access import Caller, Scope
from holdfast.model.job import Job, JobFilter
from holdfast.model.state import Status
from holdfast.policy.lifecycle import Action, actions

_WHY: dict[Action, dict[Status, str]] = {
    "cancel": {
        Status.SUCCEEDED: "it has succeeded already",
        Status.DEAD: "it is dead already: delete it if it is not wanted any more",
        Status.CANCELLED: "it is cancelled already",
    },
    "retry": {
        Status.READY: "it is ready: it runs as soon as a worker takes it",
        Status.RUNNING: "it is running: wait for it, or cancel it first",
        Status.BLOCKED: "it waits for its parents: it runs when they have succeeded",
        Status.SUCCEEDED: "it has succeeded: submit a new job to do it again",
    },
    "delete": {
        Status.RUNNING: "it is running: cancel it first",
        Status.BLOCKED: "it waits for its parents: cancel it first",
    },
}


def allowed_actions(caller: Caller, status: Status) -> list[Action]:
    """What this caller may do with a job in this state: nothing, without the scope for it."""
    return actions(status) if Scope.CANCEL in caller.scopes or caller.is_admin else []


def may(job: Job, action: Action) -> bool:
    """Whether this may be done with the job as it is."""
    return action in actions(job.status)


def refusal(job: Job, action: Action) -> Conflict:
    """Why it may not."""
    why = _WHY[action].get(job.status, f"it is {job.status.value}")
    return Conflict(f"job {job.id} cannot be {_DONE[action]}: {why}")


_DONE: dict[Action, str] = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}


def reach(
    where: JobFilter, action: Action, *, everything: bool, given: frozenset[str] = frozenset({"tenant"})
) -> JobFilter:
    """Which jobs an action in bulk looks at: nobody reaches all of them by leaving the filter out.

    `given`: fields that say nothing about what the caller wants, because they are always there.
    """
    asked = any(getattr(where, name) is not None for name in where.__struct_fields__ if name not in given)
    if not asked and not everything:
        raise Invalid("an empty filter means every one there is: give a filter, or say `all`: true", pointer="/filter")
    if action == "cancel":
        return _changed(where, finished=False)
    if where.status is None:
        return _changed(where, status=Status.DEAD)
    return where


def _changed(where: JobFilter, **fields: object) -> JobFilter:
    given = {name: getattr(where, name) for name in where.__struct_fields__}
    return JobFilter(**(given | fields))
