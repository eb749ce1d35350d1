"""Results of the clients: the response types of `holdfast.wire` with Python values."""

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from holdfast.model import decoded_job
from holdfast.wire.access import KeyFields, TenantFields
from holdfast.wire.analytics import QueueFields, StatsFields, SummaryFields
from holdfast.wire.deliveries import BreakerFields, WebhookSecretFields
from holdfast.wire.job_detail import TruncatedOut
from holdfast.wire.limits import LimitFields, PauseFields
from holdfast.wire.types import (
    AttemptFields,
    BulkOut,
    GroupFields,
    LineageOut,
    LogLineFields,
    LogsFields,
    ReceiptFields,
    StepFields,
)
from holdfast.wire.workers import TypeFields, WorkerFields

T = TypeVar("T")

Job = decoded_job.Job
Error = decoded_job.ErrorOut
Progress = decoded_job.ProgressOut
Lineage = LineageOut
Bulk = BulkOut
Truncated = TruncatedOut


class LogLine(LogLineFields[datetime], frozen=True):
    """Line that a handler wrote to the log of its job."""


class Logs(LogsFields[LogLine], frozen=True):
    """Newest log lines of an attempt, oldest first."""


class Attempt(AttemptFields[datetime, Logs], frozen=True):
    """Attempt that did not succeed, or that logged something."""


class Step(StepFields[datetime, Any], frozen=True):
    """Recorded step of a job."""


class JobDetail(Job, frozen=True):
    """A job with its attempts, steps and lineage."""

    attempt_log: list[Attempt]
    """Oldest first; only the newest if `truncated` says so."""
    steps: list[Step]
    """Oldest first; only some if `truncated` says so."""
    lineage: Lineage
    truncated: list[Truncated] = field(default_factory=list)
    """Lists that are too large to be complete; see `client.attempts` and `client.steps`."""


class Receipt(ReceiptFields[datetime], frozen=True):
    """Receipt for one job of a batch; the job is durable."""


class DeadGroup(GroupFields[datetime, Job], frozen=True):
    """Dead letters of one tenant with the same error."""


class Queue(QueueFields[datetime], frozen=True):
    """A queue. Numbers cover the caller's own jobs; for administrators, all jobs."""


class Stats(StatsFields[datetime], frozen=True):
    """Numbers of jobs by status, queue and type."""


class Summary(SummaryFields[datetime], frozen=True):
    """Totals, rates and durations of a window."""


class Worker(WorkerFields[datetime], frozen=True):
    """A worker: one incarnation of a process that runs jobs."""


class JobType(TypeFields[datetime], frozen=True):
    """Job type as its workers describe it. Fields that they left out are None."""


class Tenant(TenantFields[datetime], frozen=True):
    """A tenant. None means the installation's default."""


class Key(KeyFields[datetime], frozen=True):
    """An API key, without its secret."""


class NewKey(Key, frozen=True):
    """A new API key."""

    token: str
    """Available only here: the service does not show it again."""


class Limit(LimitFields[datetime], frozen=True):
    """Limit of a queue, a tenant or a concurrency key, with its current use."""


class Pause(PauseFields[datetime], frozen=True):
    """Paused type or tenant."""


class Breaker(BreakerFields[datetime], frozen=True):
    """Circuit breaker of a webhook destination that failed recently."""


class WebhookSecret(WebhookSecretFields[datetime], frozen=True):
    """Metadata of a tenant's webhook secret."""


class NewWebhookSecret(WebhookSecret, frozen=True):
    """A new webhook secret."""

    secret: str
    """Available only here: the service does not show it again."""


class Token(Struct, frozen=True):
    """A new token; it is valid until it expires or its API key is revoked."""

    token: str
    token_type: str
    tenant: str
    scopes: list[str]
    expires_at: datetime


class ListPage(Struct, Generic[T], frozen=True):
    """Page of a list, possibly empty; more pages follow while it has a `next_cursor`."""

    items: list[T] = field(default_factory=list)
    next_cursor: str | None = None


class DeadGroupPage(Struct, frozen=True):
    """Page of groups of dead letters."""

    groups: list[DeadGroup]
    next_cursor: str | None = None


class Event(NamedTuple):
    """Event of a stream."""

    kind: str
    """`job`, `jobs` (a count of changes), `worker`, or `reset` (reload what you display)."""
    data: dict[str, Any]
    id: str
    """Position to resume from."""
