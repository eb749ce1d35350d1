"""Request and response types of the worker protocol."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from holdfast.errors import Invalid
from holdfast.model import bounds
from holdfast.wire.types import PRINTABLE, AttemptOut, LogLineOut, Name, Query, RequestBody, Seconds, Span, StepCursor

DEFAULT_LEASE_S = 15
MAX_WAIT_S = 30.0
MAX_JOBS_PER_REQUEST = 500
"""Maximum number of jobs in one claim, and of outcomes in one settle."""
MAX_HELD_JOBS = 10_000
MAX_TYPES = 1_000
"""Maximum number of job types of a worker; each explanation of a job reads them."""

WorkerText = Annotated[str, Meta(pattern=r"^w-[0-3][0-9a-f]{15}$", description="Id of a worker; never reused.")]
JobText = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]
Fence = Annotated[
    int,
    Meta(
        ge=0, le=2**31 - 1, description="Fencing token: increases at each claim, and only its holder knows the newest."
    ),
]
Short = Annotated[str, Meta(max_length=255, extra_json_schema=PRINTABLE)]
Lease = Annotated[
    Span,
    Meta(description="Seconds, or a text such as '30s': maximum time between two renewals.", examples=[15]),
]


class TypeIn(RequestBody):
    """Description of a job type that the worker handles."""

    type: Name
    schema: dict[str, Any] | None = None
    """JSON Schema of the payload, up to 16 KiB."""
    queue: Name | None = None
    """Default queue of its jobs."""
    max_attempts: Annotated[int, Meta(ge=1, le=bounds.MAX_ATTEMPTS)] | None = None
    timeout: Seconds | None = None
    priority: Annotated[int, Meta(ge=bounds.MIN_PRIORITY, le=bounds.MAX_PRIORITY)] | None = None
    cost: Annotated[int, Meta(ge=1, le=bounds.MAX_COST)] | None = None


class About(RequestBody):
    """Description of a worker, given when it registers."""

    name: Short = ""
    host: Short = ""
    pid: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    version: Short = ""
    queues: Annotated[str, Meta(max_length=10_000)] = ""
    slots: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    types: Annotated[list[Name], Meta(max_length=MAX_TYPES)] | None = None
    """Types that it has handlers for; by default, the types of its first claim."""
    described: Annotated[list[TypeIn], Meta(max_length=1_000)] = field(default_factory=list)
    """Descriptions of these types, for clients that submit such jobs."""
    node: Short = ""
    """Id shared by processes that drain together; empty for a single process."""


class LeaseRequest(RequestBody):
    """Claim of jobs.

    Without `worker`, or with `register`, the worker is registered first and gets its response at once.
    """

    worker: WorkerText | None = None
    register: About | None = None
    lease: Lease | None = None
    """Renews the lease for this long; for a new worker, the length of its lease (15 s)."""
    queues: Annotated[list[Name], Meta(max_length=1_000)] = field(default_factory=list)
    types: Annotated[list[Name], Meta(max_length=MAX_TYPES)] | None = None
    """Types of jobs to claim; null for all."""
    limit: Annotated[int, Meta(ge=0, le=MAX_JOBS_PER_REQUEST)] = 1
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0
    """Seconds to wait for the first job; at most half the lease, if that is given."""


class HeldShape(Struct, frozen=True, forbid_unknown_fields=True):
    """Held job, identified by its id and fence."""

    id: JobText
    fence: Fence


class RenewRequest(RequestBody):
    """Renewal of a lease; the response lists lost jobs."""

    worker: WorkerText
    lease: Lease = DEFAULT_LEASE_S
    memory: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None
    """Resident memory of the worker, in bytes."""
    draining: bool = False
    """True if the worker is draining and claims no more jobs."""
    unresponsive: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    """Seconds for which its process has not responded; null if it responds."""
    blocked_by: Name | None = None
    """Job type whose handler blocks its event loop; null if the process gives no sign of life."""
    held: Annotated[list[HeldShape], Meta(max_length=MAX_HELD_JOBS)] | None = None
    """All jobs that the worker runs or has not settled yet; null if it does not say.

    Jobs that it holds and leaves out for a whole lease are released, because their outcomes may have been lost.
    """


class LostRequest(RequestBody):
    """Query for lost jobs that does not renew the lease."""

    worker: WorkerText
    held: Annotated[list[HeldShape], Meta(max_length=MAX_HELD_JOBS)]


class HeldRequest(RequestBody):
    """Query for the jobs that a worker holds."""

    worker: WorkerText
    limit: Annotated[int, Meta(ge=1, le=MAX_HELD_JOBS)] = MAX_JOBS_PER_REQUEST


class DepartRequest(RequestBody):
    """Removal of a worker that holds no jobs."""

    worker: WorkerText


class ErrorIn(RequestBody):
    """Error of a failed attempt."""

    kind: Annotated[str, Meta(max_length=10_000)]
    message: Annotated[str, Meta(max_length=1_000_000)] = ""
    traceback: Annotated[str, Meta(max_length=1_000_000)] = ""


class LogsIn(RequestBody):
    """Newest log lines of an attempt, oldest first."""

    lines: Annotated[list[LogLineOut], Meta(max_length=1_000)]
    dropped: Annotated[int, Meta(ge=0, le=2**53)] = 0


class _OutcomeBase(RequestBody, tag_field="outcome", kw_only=True):
    id: JobText
    fence: Fence
    logs: LogsIn | None = None


class SucceededIn(_OutcomeBase, tag="succeeded"):
    """The attempt succeeded, with a result of up to 256 KiB."""

    result: Any = None


class FailedIn(_OutcomeBase, tag="failed"):
    """The attempt failed; retried by its rule or after `retry_in`, unless not `retryable`."""

    error: ErrorIn
    retryable: bool = True
    retry_in: Seconds | None = None


class TimedOutIn(_OutcomeBase, tag="timed_out"):
    """The attempt exceeded its timeout."""

    after: Seconds


class CrashedIn(_OutcomeBase, tag="crashed"):
    """The process of the attempt died."""

    how: Annotated[str, Meta(max_length=10_000)]


class SnoozedIn(_OutcomeBase, tag="snoozed"):
    """The handler asked to run again later; uses no attempt."""

    delay: Seconds
    held: bool = False
    """True for a hold, which has no limit on how often; false for a snooze."""


class ReleasedIn(_OutcomeBase, tag="released"):
    """The worker released the job unfinished; uses no attempt."""

    started: bool = True
    """False if the handler had not started; such releases are unlimited."""


class UnavailableIn(_OutcomeBase, tag="unavailable"):
    """A call to this service failed inside the handler; uses no attempt for ten minutes."""

    error: ErrorIn


class CancelledIn(_OutcomeBase, tag="cancelled"):
    """The handler cancelled the job."""

    reason: Annotated[str, Meta(max_length=10_000)] = ""


OutcomeIn = SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | UnavailableIn | CancelledIn


class SettleRequest(RequestBody):
    """Outcomes of attempts."""

    worker: WorkerText
    outcomes: Annotated[list[OutcomeIn], Meta(max_length=MAX_JOBS_PER_REQUEST)]

    @classmethod
    def parse_items(cls, value: Any, read: Callable[[Any, Any], Any]) -> Self | None:
        """Return the settlement with an error for each invalid outcome; None if `value` is none."""
        if type(value) is not dict or set(value) != {"worker", "outcomes"} or type(value["outcomes"]) is not list:
            return None
        if len(value["outcomes"]) > MAX_JOBS_PER_REQUEST:
            return None
        worker = read(value["worker"], WorkerText)
        return (
            None if isinstance(worker, Invalid) else cls(worker, [read(each, OutcomeIn) for each in value["outcomes"]])
        )


class StepRequest(RequestBody):
    """Step of a job: done, or started if it must run at most once."""

    worker: WorkerText
    id: JobText
    fence: Fence
    key: Annotated[str, Meta(min_length=1, max_length=bounds.MAX_KEY_LENGTH, extra_json_schema=PRINTABLE)]
    state: Literal["started", "done"] = "done"
    result: Any | UnsetType = UNSET


class StepsQuery(Query):
    """Held job whose steps to list, and page of the list."""

    worker: WorkerText
    id: JobText
    fence: Fence
    cursor: StepCursor | None = None


class ProgressRequest(RequestBody):
    """Progress of a held job."""

    worker: WorkerText
    id: JobText
    fence: Fence
    fraction: Annotated[float, Meta(ge=0, le=1)]
    note: Annotated[str, Meta(max_length=10_000)] = ""


class LeasedJob(Struct, frozen=True):
    """Claimed job."""

    id: str
    fence: int
    """Fencing token that every report of this attempt must carry."""
    tenant: str
    queue: str
    type: str
    payload: Raw
    priority: int
    attempts: int
    """Attempts so far, including this one."""
    max_attempts: int
    releases: int
    """Number of releases and snoozes."""
    generation: int
    """Number of replays."""
    cost: int
    created_at: str
    scheduled_at: str | None
    started_at: str | None
    timeout: float | None
    """Timeout of the attempt in seconds."""
    deadline: str | None
    tags: list[str]
    concurrency_key: str | None
    idempotency_key: str | None
    progress: Raw
    attempt_log: list[AttemptOut]
    """Earlier attempts, oldest first, without their logs."""


class LeaseOut(Struct, frozen=True):
    """Worker and the jobs that it has claimed."""

    worker: str
    jobs: list[LeasedJob]
    draining: bool = False
    """True if the worker should drain: finish or release its jobs, then depart."""


class LostOut(Struct, frozen=True):
    """Jobs that the worker no longer holds; it should stop them."""

    lost: list[str]
    paused: list[str] = []
    """Jobs whose queue, type or tenant is paused: release those that have not started."""
    draining: bool = False
    """True if the worker should drain: finish or release its jobs, then depart."""


class HeldOut(Struct, frozen=True):
    """Job that a worker holds."""

    id: str
    fence: int
    queue: str
    type: str


class HeldPage(Struct, frozen=True):
    """Jobs that a worker holds, according to the database."""

    jobs: list[HeldOut]


class OutcomeFault(Struct, frozen=True):
    """Error of one outcome of a settlement; the worker still holds its job, so it can report another outcome."""

    index: int
    """Position in `outcomes`."""
    code: str
    detail: str
    pointer: str
    """Invalid field, as a JSON pointer into the body."""


class SettledOut(Struct, frozen=True):
    """Jobs whose outcomes were applied; the worker had lost those that are neither settled nor refused."""

    settled: list[str]
    refused: list[OutcomeFault] = []
    """Invalid outcomes, which changed nothing; if all are invalid, the response is 422."""


class DepartedOut(Struct, frozen=True):
    """Result of a removal; a worker that holds jobs is not removed."""

    departed: bool


class StepRecord(Struct, frozen=True):
    """Step that an earlier attempt recorded."""

    key: str
    state: Literal["started", "done"]
    result: Raw
    transaction: bool = False
    """True for a committed transaction in the engine's database; its result is not sent."""


class StepList(Struct, frozen=True):
    """Page of the steps that earlier attempts recorded, by key; follow `next_cursor`."""

    steps: list[StepRecord]
    next_cursor: str | None = None
