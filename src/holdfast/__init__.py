"""holdfast: a fault-tolerant, multi-tenant job engine on the database you already run."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.handles import AsyncJobHandle, JobHandle
    from holdfast.app.holdfast import Holdfast
    from holdfast.app.job_types import JobType, Unique
    from holdfast.config import Settings
    from holdfast.errors import (
        BacklogFull,
        Conflict,
        Contention,
        DuplicateJob,
        Forbidden,
        HoldfastError,
        IdempotencyMismatch,
        Invalid,
        InvalidBatch,
        JobCancelled,
        JobFailed,
        JobNotHeld,
        LeaseLost,
        Misconfigured,
        NonDeterministic,
        NotFound,
        OutcomeUnknown,
        OverLimit,
        PayloadTooLarge,
        RateLimited,
        Rejected,
        ResultTooLarge,
        SchemaMismatch,
        StepOutcomeUnknown,
        TransactionEnded,
        Unauthorized,
        Unavailable,
        WaitTimeout,
    )
    from holdfast.model.decoded_job import Job
    from holdfast.model.state import Status
    from holdfast.worker.context.context import Context, SyncContext
    from holdfast.worker.handlers.exceptions import Cancel, Discard, Hold, Retry, Snooze
    from holdfast.worker.handlers.signature import CONTEXT

__version__ = "0.1.0"

__all__ = [
    "CONTEXT",
    "AsyncJobHandle",
    "BacklogFull",
    "Cancel",
    "Conflict",
    "Contention",
    "Context",
    "Discard",
    "DuplicateJob",
    "Forbidden",
    "Hold",
    "Holdfast",
    "HoldfastError",
    "IdempotencyMismatch",
    "Invalid",
    "InvalidBatch",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobNotHeld",
    "JobType",
    "LeaseLost",
    "Misconfigured",
    "NonDeterministic",
    "NotFound",
    "OutcomeUnknown",
    "OverLimit",
    "PayloadTooLarge",
    "RateLimited",
    "Rejected",
    "ResultTooLarge",
    "Retry",
    "SchemaMismatch",
    "Settings",
    "Snooze",
    "Status",
    "StepOutcomeUnknown",
    "SyncContext",
    "TransactionEnded",
    "Unauthorized",
    "Unavailable",
    "Unique",
    "WaitTimeout",
]

_HOMES = {
    "app.holdfast": ("Holdfast",),
    "config": ("Settings",),
    "app.handles": ("AsyncJobHandle", "JobHandle"),
    "app.job_types": ("JobType", "Unique"),
    "model.decoded_job": ("Job",),
    "model.state": ("Status",),
    "worker.context.context": ("Context", "SyncContext"),
    "worker.handlers.exceptions": ("Cancel", "Discard", "Hold", "Retry", "Snooze"),
    "worker.handlers.signature": ("CONTEXT",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name):  # noqa: ANN001, ANN202
        """Import a public name on first use, so that unused parts cost no import time."""
        if name not in __all__:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        value = getattr(_import_module(f"holdfast.{_HOME.get(name, 'errors')}"), name)
        globals()[name] = value
        return value

    def __dir__():  # noqa: ANN202
        return sorted({*globals(), *__all__})
