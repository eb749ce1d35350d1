"""Request and response types of jobs, and field types that several routes share."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from msgspec import UNSET, Meta, MsgspecError, Raw, Struct, UnsetType, field, json

from holdfast.errors import HoldfastError, Invalid, InvalidBatch, PayloadTooLarge
from holdfast.model import bounds
from holdfast.model.decoded_job import ErrorOut, JobFields
from holdfast.model.job import OnConflict
from holdfast.wire.durations import Seconds

# Constraints in `extra_json_schema` only document; the codec checks them, with better error messages.
PRINTABLE: dict[str, str] = {"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}
When = Annotated[datetime, Meta(tz=True, description="RFC 3339, with offset.", examples=["2030-01-31T12:00:00Z"])]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""Time in a response, as text."""
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
"""Id of a job in a response."""
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=bounds.MAX_NAME_LENGTH,
        pattern=f"^{bounds.NAME_PATTERN}$",
        description=(
            f"1 to {bounds.MAX_NAME_LENGTH} letters, digits or _ . : / @ + -, starting with a letter, a digit or _."
        ),
    ),
]
Tag = Annotated[str, Meta(min_length=1, max_length=bounds.MAX_TAG_LENGTH)]
NewTag = Annotated[str, Meta(min_length=1, max_length=bounds.MAX_TAG_LENGTH, extra_json_schema=PRINTABLE)]
Fingerprint = Annotated[
    str, Meta(min_length=1, max_length=64, description="Fingerprint of an error: `error.fingerprint` of a job.")
]
IdPrefix = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-fA-F]{8}(-?[0-9a-fA-F]){0,24}-?$",
        description="First digits of a job id, at least 8; the first 12 are the millisecond of the submission.",
    ),
]
Cursor = Annotated[str, Meta(min_length=1, max_length=400, description="`next_cursor` of the previous page.")]
StepCursor = Annotated[str, Meta(min_length=1, max_length=1_400, description="`next_cursor` of the previous page.")]
Limit = Annotated[int, Meta(ge=1, le=200)]
StatusName = Literal["blocked", "scheduled", "ready", "running", "retrying", "succeeded", "dead", "cancelled"]
StepStateName = Literal["started", "done"]

TimeT = TypeVar("TimeT")
JsonT = TypeVar("JsonT")
LineT = TypeVar("LineT")
LogsT = TypeVar("LogsT")
JobT = TypeVar("JobT")
# A response type that contains times or JSON is defined once, as generic `…Fields`. The API binds it to text and raw
# JSON (`…Out`), which it writes without further conversion; `holdfast.sdk.models` binds it to `datetime` and values.

MAX_IDS = 1_000


class RequestBody(Struct, forbid_unknown_fields=True):
    """Request body; unknown fields are rejected, so that a typo is not silently ignored."""


class Query(Struct, forbid_unknown_fields=True):
    """Query parameters; unknown ones are rejected."""


class RetryShape(RequestBody):
    """Wait before the next attempt: exponential, or a list of delays whose last entry repeats."""

    base: Seconds | UnsetType = UNSET
    """Wait after the first failure; it doubles with each further one."""
    cap: Seconds | UnsetType = UNSET
    """Longest wait."""
    jitter: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    """Random part of a wait, as a fraction from 0 to 1."""
    delays: Annotated[list[Seconds], Meta(max_length=100)] | UnsetType = UNSET
    """Waits after the first, second, … failure; replaces `base` and `cap`."""


class UniqueShape(RequestBody):
    """Uniqueness of a job: one job at a time with equal values of the fields in `by`."""

    by: list[str] | UnsetType = UNSET
    """Fields that make two jobs equal: `type`, `queue`, `payload`, or a field of the payload."""
    within: Seconds | UnsetType = UNSET
    """Time for which the key stays in use after the submission."""
    on_conflict: OnConflict | UnsetType = UNSET
    """Reaction to such a job: return it, replace it or reject the submission."""


class SubmitJob(RequestBody):
    """Job to submit."""

    type: Name
    """Type of the job, which names its handler."""
    payload: Any = None
    queue: Name = "default"
    """Queue in which the job waits."""
    priority: Annotated[int, Meta(ge=bounds.MIN_PRIORITY, le=bounds.MAX_PRIORITY)] = 0
    scheduled_at: When | None = None
    """Time before which the job does not start; not together with `delay`."""
    delay: Seconds | None = None
    """Time to wait before the job may start; not together with `scheduled_at`."""
    max_attempts: Annotated[int, Meta(ge=1, le=bounds.MAX_ATTEMPTS)] | None = None
    timeout: Seconds | None = None
    retry: RetryShape | None = None
    """Waits between attempts; null for the default rule."""
    cost: Annotated[int, Meta(ge=1, le=bounds.MAX_COST)] = 1
    tags: Annotated[list[NewTag], Meta(max_length=bounds.MAX_TAGS)] = []
    unique: UniqueShape | None = None
    """Uniqueness among jobs; null if any number of equal jobs may exist."""
    deadline: When | None = None
    concurrency_key: Annotated[str, Meta(min_length=1, max_length=bounds.MAX_KEY_LENGTH)] | None = None


class SubmitBatchJob(SubmitJob):
    """Job of a batch, with its own idempotency key."""

    idempotency_key: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=bounds.MAX_KEY_LENGTH,
                extra_json_schema={"pattern": f"^{bounds.KEY_PATTERN}$"},
            ),
        ]
        | None
    ) = None


class SubmitBatch(RequestBody):
    """Jobs to submit together, all or none."""

    jobs: Annotated[list[SubmitBatchJob], Meta(max_length=bounds.MAX_BATCH_SIZE)]
    """Jobs of the batch, at most 10,000."""

    @classmethod
    def check_items(cls, body: bytes) -> None:
        """Raise `InvalidBatch` if a job is too large, before the jobs are parsed."""
        if body.count(b",") > _MAX_SPLIT_COMMAS:
            return
        try:
            jobs = _SPLIT(body).jobs
        except (MsgspecError, RecursionError):
            return  # the parser describes the error
        excess = f"as JSON, and {bounds.MAX_JOB_BYTES:,} are allowed: store the data elsewhere and submit a reference"
        large: dict[int, HoldfastError] = {
            index: PayloadTooLarge(f"the job has {len(memoryview(job)):,} bytes {excess}")
            for index, job in enumerate(jobs)
            if len(memoryview(job)) > bounds.MAX_JOB_BYTES
        }
        if large:
            raise InvalidBatch(large)

    @classmethod
    def parse_items(
        cls, value: Any, read: Callable[[Any, type[SubmitBatchJob]], SubmitBatchJob | Invalid]
    ) -> Self | None:
        """Return the batch with an error for each invalid job; None if `value` is not a batch."""
        if type(value) is not dict or set(value) != {"jobs"} or type(value["jobs"]) is not list:
            return None
        if len(value["jobs"]) > bounds.MAX_BATCH_SIZE:
            return None
        return cls([read(job, SubmitBatchJob) for job in value["jobs"]])  # type: ignore[misc]


class _SplitBatch(Struct):
    """Batch whose jobs are not parsed."""

    jobs: list[Raw]


_SPLIT = json.Decoder(_SplitBatch).decode

_MAX_SPLIT_COMMAS = 300_000
"""A batch with more commas, which may have as many items, is parsed without a split."""


class ReceiptFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a receipt."""

    id: str
    created_at: TimeT
    """Time of the submission."""
    replayed: bool
    """True if an earlier submission with the same idempotency key created this job."""


class ReceiptOut(ReceiptFields[Time], frozen=True):
    """Receipt for one job of a batch; the job is durable."""


class BatchOut(Struct, frozen=True):
    """Receipts of a batch, in the order of its jobs."""

    items: list[ReceiptOut]


class JobOut(JobFields[Time, Raw, StatusName, Raw], frozen=True):
    """A job."""


class LogLineFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a log line."""

    at: TimeT
    """Time of the line."""
    level: str
    """Level of the line, such as `INFO`."""
    message: str


class LogLineOut(LogLineFields[Time], frozen=True):
    """Line that a handler wrote to the log of its job."""


class LogsFields(Struct, Generic[LineT], frozen=True):
    """Fields of an attempt's log."""

    lines: list[LineT]
    """Lines, oldest first."""
    dropped: int = 0
    """Number of older lines that were dropped."""


class LogsOut(LogsFields[LogLineOut], frozen=True):
    """Newest log lines of an attempt, oldest first."""


class AttemptFields(Struct, Generic[TimeT, LogsT], frozen=True):
    """Fields of an attempt."""

    attempt: int
    generation: int
    worker: str
    """Id of the worker that ran it."""
    started_at: TimeT
    """Start of the attempt."""
    ended_at: TimeT
    """End of the attempt."""
    outcome: str
    """End of the attempt, such as `failed` or `timed_out`."""
    error: ErrorOut | None = None
    """Error of the attempt; null if it has none."""
    logs: LogsT | None = None


class AttemptOut(AttemptFields[Time, LogsOut], frozen=True):
    """Attempt that did not succeed, or that logged something."""


class StepFields(Struct, Generic[TimeT, JsonT], frozen=True):
    """Fields of a step."""

    key: str
    """Key of the step, unique in its job."""
    state: StepStateName
    """`done`, or `started` for a step that must run at most once."""
    recorded_at: TimeT
    """Time at which it was recorded."""
    result: JsonT
    """Result of the step as any JSON; null if it has none."""
    transaction: bool
    """True for a committed transaction; the results of its statements are not shown."""


class StepOut(StepFields[Time, Raw], frozen=True):
    """Recorded step of a job."""


class LineageOut(Struct, frozen=True):
    """Origin of a job."""

    generation: int
    """Number of replays."""
    parent_id: str | None = None
    """Reserved; null."""
    schedule: str | None = None
    """Reserved; null."""
    workflow_id: str | None = None


class JobPage(Struct, frozen=True):
    """Page of jobs, newest first.

    A page may contain fewer items than `limit`, even none; follow `next_cursor` until it is null.
    """

    items: list[JobOut]
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class DeadFilter(RequestBody):
    """Filter for dead letters; omitted fields match everything."""

    type: Name | None = None
    queue: Name | None = None
    tag: Tag | None = None
    tenant: Name | None = None
    created_after: When | None = None
    created_before: When | None = None
    error: Fingerprint | None = None


class FilterShape(DeadFilter):
    """Filter for jobs; omitted fields match everything."""

    status: StatusName | None = None


class BulkRequest(RequestBody):
    """Action on all matching jobs; repeat it with `next_cursor` as `cursor` until that is null."""

    filter: FilterShape = field(default_factory=FilterShape)
    all: bool = False
    """Required if the filter is empty."""
    dry_run: bool = False
    """Only count the matching jobs."""
    cursor: Cursor | None = None


class BulkCancel(BulkRequest):
    """Cancellation of all matching jobs."""

    reason: Annotated[str, Meta(max_length=500)] = ""


class ReplayRequest(RequestBody):
    """Dead letters to replay, by their ids or all that match."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=MAX_IDS)] | None = None
    """Ids of the dead letters, instead of a filter."""
    filter: DeadFilter | None = None
    all: bool = False
    """Required if there are no ids and the filter is empty."""
    dry_run: bool = False
    cursor: Cursor | None = None


class BulkOut(Struct, frozen=True):
    """Result of an action on many jobs."""

    matched: int
    """Number of jobs in a state that allows the action."""
    changed: int
    """Number of jobs that this request changed; the rest changed concurrently."""
    dry_run: bool
    """True if nothing was changed, because the request asked only to count."""
    next_cursor: str | None
    """Not null if there are more jobs: repeat the request with this value as `cursor`."""


class GroupFields(Struct, Generic[TimeT, JobT], frozen=True):
    """Fields of a group of dead letters."""

    tenant: str
    fingerprint: str
    count: int
    """Number of jobs in the group."""
    more: bool
    """Counting stopped; there are more."""
    first_at: TimeT
    """Time of death of the job submitted first."""
    last_at: TimeT
    """Time of death of the job submitted last."""
    error: ErrorOut | None
    """Error of that job."""
    newest: JobT
    """Job of the group that was submitted last."""


class GroupOut(GroupFields[Time, JobOut], frozen=True):
    """Dead letters of one tenant with the same error."""


class DeadPage(Struct, frozen=True):
    """Page of dead letters, newest first, or of groups if `group` was requested."""

    items: list[JobOut] | UnsetType = UNSET
    """Dead letters of this page; absent if groups were requested."""
    groups: list[GroupOut] | UnsetType = UNSET
    """Groups; pages are ordered by tenant and error, groups within a page by their latest death."""
    next_cursor: str | None = None
