"""Job states and the table of transitions between them."""

import enum


class Status(enum.StrEnum):
    """Status of a job. API, SDK and dashboard use the same words."""

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"

    @property
    def code(self) -> int:
        """The small integer stored in the tables."""
        return _CODES[self]

    @property
    def terminal(self) -> bool:
        """True if a job in this state has finished."""
        return self in TERMINAL


_CODES = {
    Status.READY: 0,
    Status.RUNNING: 1,
    Status.SUCCEEDED: 2,
    Status.DEAD: 3,
    Status.CANCELLED: 4,
    Status.SCHEDULED: 5,
    Status.RETRYING: 6,
    Status.BLOCKED: 7,
}
AWAITING_KEY = 8
"""Stored code of a ready job that waits for its concurrency key; claims skip it."""

STATUS_OF_CODE = (*sorted(_CODES, key=lambda status: _CODES[status]), Status.READY)
"""Status by its stored code."""

TERMINAL = frozenset({Status.SUCCEEDED, Status.DEAD, Status.CANCELLED})
WAITING = frozenset({Status.BLOCKED, Status.SCHEDULED, Status.READY, Status.RETRYING})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    # Waits for parents; released to ready, or cancelled with a parent that died.
    Status.BLOCKED: frozenset({Status.READY, Status.SCHEDULED, Status.CANCELLED}),
    # Due later: promoted when the database's clock says so.
    Status.SCHEDULED: frozenset({Status.READY, Status.CANCELLED}),
    Status.RETRYING: frozenset({Status.READY, Status.CANCELLED}),
    Status.READY: frozenset({Status.RUNNING, Status.CANCELLED}),
    # To ready: released, or the lease expired. To scheduled: snoozed.
    Status.RUNNING: frozenset(
        {Status.SUCCEEDED, Status.RETRYING, Status.READY, Status.SCHEDULED, Status.DEAD, Status.CANCELLED}
    ),
    Status.SUCCEEDED: frozenset(),
    # A replay starts a new generation of the same job.
    Status.DEAD: frozenset({Status.READY}),
    Status.CANCELLED: frozenset({Status.READY}),
}


def can_transition(was: Status, to: Status) -> bool:
    """Return True if the transition is allowed."""
    return to in TRANSITIONS[was]
