"""Names of types that are not structs: enumerations, durations and unions."""

from typing import Any, Literal

from holdfast.model.decoded_job import Action
from holdfast.model.explanation import ReasonCode
from holdfast.model.job import OnConflict
from holdfast.model.worker import WorkerAction
from holdfast.wire import durations
from holdfast.wire.access import ScopeName
from holdfast.wire.deliveries import BreakerStateName
from holdfast.wire.events import EventStatus, ResetReason
from holdfast.wire.job_detail import TruncatedField
from holdfast.wire.limits import KindName, PauseName
from holdfast.wire.problems import CODES
from holdfast.wire.types import StatusName, StepStateName
from holdfast.wire.worker_protocol import OutcomeIn

NAMED_TYPES: dict[str, tuple[Any, str]] = {
    "JobStatus": (StatusName, "Status of a job."),
    "EventStatus": (EventStatus, "New status of a job; `deleted` if the job was deleted."),
    "JobAction": (Action, "Action on a job."),
    "WorkerAction": (WorkerAction, "Action on a worker."),
    "Scope": (ScopeName, "Permission of an API key or token."),
    "BreakerState": (BreakerStateName, "State of a circuit breaker."),
    "LimitKind": (KindName, "Object that a limit applies to."),
    "PauseKind": (PauseName, "Object that is paused."),
    "TruncatedField": (TruncatedField, "List of a job that may be incomplete."),
    "StepState": (StepStateName, "Progress of a step."),
    "OnConflict": (OnConflict, "Reaction to a job with the same unique key."),
    "ReasonCode": (ReasonCode, "Stable code of a reason why a job is or is not running."),
    "ResetReason": (ResetReason, "Reason why a stream of events ends or has a gap."),
    "ProblemCode": (Literal[*CODES], "Stable code of an error."),
    "Duration": (durations.Seconds, "Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'."),
    "LeaseDuration": (durations.Lease, "Length of a lease: 1 second to 1 day, as seconds or as a text such as '30s'."),
    "AnalyticsWindow": (durations.Window, "Window of statistics: '1m' to '90d', as seconds or as a text."),
    "FairnessWindow": (
        durations.FairnessWindow,
        "Window of the fairness report: '1m' to '7d', as seconds or as a text.",
    ),
    "RateWindow": (durations.RateWindow, "Window of a quota: 1 second to 1 day, as seconds or as a text such as '1m'."),
    "RatePeriod": (
        durations.RatePeriod,
        "Period of a rate limit: 1 ms to 1 day, as seconds or as a text such as '1s'.",
    ),
    "SecretOverlap": (
        durations.Overlap,
        "Overlap of two secrets: 0 to 30 days, as seconds or as a text such as '24h'.",
    ),
    "KeyLifetime": (durations.KeyLifetime, "Lifetime of an API key: 1 second to 3,650 days, such as '90d'."),
    "TokenLifetime": (durations.TokenLifetime, "Lifetime of a token: 1 second to 1 hour, such as '15m'."),
    "Outcome": (OutcomeIn, "Outcome of an attempt, by the field `outcome`."),
}
"""Type and description by name."""
