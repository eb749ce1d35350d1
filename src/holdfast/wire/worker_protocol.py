"""Request and response types of the worker protocol."""

from collections.abc import Callable
from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from holdfast.errors import Invalid
from holdfast.model import bounds
from holdfast.wire.durations import Lease, Seconds
from holdfast.wire.types import (
    PRINTABLE,
    AttemptOut,
    LogLineOut,
    Name,
    Query,
    RequestBody,
    StepCursor,
    StepStateName,
    Time,
)

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


class TypeIn(RequestBody):
    """Description of a job type that the worker handles."""

    type: Name
    """Name of the type."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the payload, up to 16 KiB."""
    queue: Name | None = None
    """Default queue of its jobs."""
    max_attempts: Annotated[int, Meta(ge=1, le=bounds.MAX_ATTEMPTS)] | None = None
    """Default number of attempts."""
    timeout: Seconds | None = None
    """Default timeout of an attempt."""
    priority: Annotated[int, Meta(ge=bounds.MIN_PRIORITY, le=bounds.MAX_PRIORITY)] | None = None
    """Default priority."""
    cost: Annotated[int, Meta(ge=1, le=bounds.MAX_COST)] | None = None
    """Default cost."""


class About(RequestBody):
    """Description of a worker, given when it registers."""

    name: Short = ""
    """Name of the worker for people; by default its id."""
    host: Short = ""
    pid: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    version: Short = ""
    """Version of the worker's software."""
    queues: Annotated[str, Meta(max_length=10_000)] = ""
    """Queues that it serves, separated by commas; by default those of its first claim."""
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
    """Id of a registered worker; null to register a new one."""
    register: About | None = None
    """Description of a worker to register."""
    lease: Lease | None = None
    """Renews the lease for this long; for a new worker, the length of its lease (15 s)."""
    queues: Annotated[list[Name], Meta(max_length=1_000)] = field(default_factory=list)
    """Queues to claim from."""
    types: Annotated[list[Name], Meta(max_length=MAX_TYPES)] | None = None
    """Types of jobs to claim; null for all."""
    limit: Annotated[int, Meta(ge=0, le=MAX_JOBS_PER_REQUEST)] = 1
    """Maximum number of jobs."""
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0
    """Seconds to wait for the first job; at most half the lease, if that is given."""


class HeldShape(Struct, frozen=True, forbid_unknown_fields=True):
    """Held job, identified by its id and fence."""

    id: JobText
    """Id of the job."""
    fence: Fence


class RenewRequest(RequestBody):
    """Renewal of a lease; the response lists lost jobs."""

    worker: WorkerText
    lease: Lease = DEFAULT_LEASE_S
    """Time until the lease expires, from now."""
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
    """Jobs to check."""


class HeldRequest(RequestBody):
    """Query for the jobs that a worker holds."""

    worker: WorkerText
    limit: Annotated[int, Meta(ge=1, le=MAX_HELD_JOBS)] = MAX_JOBS_PER_REQUEST
    """Maximum number of jobs."""


class DepartRequest(RequestBody):
    """Removal of a worker that holds no jobs."""

    worker: WorkerText


class ErrorIn(RequestBody):
    """Error of a failed attempt."""

    kind: Annotated[str, Meta(max_length=10_000)]
    """Type of the error, such as the name of an exception."""
    message: Annotated[str, Meta(max_length=1_000_000)] = ""
    """Text of the error."""
    traceback: Annotated[str, Meta(max_length=1_000_000)] = ""


class LogsIn(RequestBody):
    """Newest log lines of an attempt, oldest first."""

    lines: Annotated[list[LogLineOut], Meta(max_length=1_000)]
    """Lines, oldest first."""
    dropped: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Number of older lines that were dropped."""


class _OutcomeBase(RequestBody, tag_field="outcome", kw_only=True):
    id: JobText
    """Id of the job."""
    fence: Fence
    logs: LogsIn | None = None
    """Log of the attempt; null if it has none."""


class SucceededIn(_OutcomeBase, tag="succeeded"):
    """The attempt succeeded, with a result of up to 256 KiB."""

    result: Any = None
    """Result of the job, as any JSON."""


class FailedIn(_OutcomeBase, tag="failed"):
    """The attempt failed; retried by its rule or after `retry_in`, unless not `retryable`."""

    error: ErrorIn
    """Error of the attempt."""
    retryable: bool = True
    """False if a further attempt cannot succeed; the job is then dead."""
    retry_in: Seconds | None = None
    """Time until the next attempt; null for the rule of the job."""


class TimedOutIn(_OutcomeBase, tag="timed_out"):
    """The attempt exceeded its timeout."""

    after: Seconds
    """Time for which the attempt ran."""


class CrashedIn(_OutcomeBase, tag="crashed"):
    """The process of the attempt died."""

    how: Annotated[str, Meta(max_length=10_000)]
    """Cause of the death, such as a signal."""


class SnoozedIn(_OutcomeBase, tag="snoozed"):
    """The handler asked to run again later; uses no attempt."""

    delay: Seconds
    """Time until the job is due again."""
    held: bool = False
    """True for a hold, which has no limit on how often; false for a snooze."""


class ReleasedIn(_OutcomeBase, tag="released"):
    """The worker released the job unfinished; uses no attempt."""

    started: bool = True
    """False if the handler had not started; such releases are unlimited."""


class UnavailableIn(_OutcomeBase, tag="unavailable"):
    """A call to this service failed inside the handler; uses no attempt for ten minutes."""

    error: ErrorIn
    """Error of the call."""


class CancelledIn(_OutcomeBase, tag="cancelled"):
    """The handler cancelled the job."""

    reason: Annotated[str, Meta(max_length=10_000)] = ""


OutcomeIn = SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | UnavailableIn | CancelledIn


class SettleRequest(RequestBody):
    """Outcomes of attempts."""

    worker: WorkerText
    outcomes: Annotated[list[OutcomeIn], Meta(max_length=MAX_JOBS_PER_REQUEST)]
    """Outcomes, at most one of each job."""

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
    """Id of the job."""
    fence: Fence
    key: Annotated[str, Meta(min_length=1, max_length=bounds.MAX_KEY_LENGTH, extra_json_schema=PRINTABLE)]
    """Key of the step, unique in its job."""
    state: StepStateName = "done"
    """`done`, or `started` before a step that must run at most once."""
    result: Any | UnsetType = UNSET
    """Result of the step as any JSON."""


class StepsQuery(Query):
    """Held job whose steps to list, and page of the list."""

    worker: WorkerText
    id: JobText
    """Id of the job."""
    fence: Fence
    cursor: StepCursor | None = None


class ProgressRequest(RequestBody):
    """Progress of a held job."""

    worker: WorkerText
    id: JobText
    """Id of the job."""
    fence: Fence
    fraction: Annotated[float, Meta(ge=0, le=1)]
    """Fraction of the work that is done, from 0 to 1."""
    note: Annotated[str, Meta(max_length=10_000)] = ""
    """Text for people."""


class LeasedJob(Struct, frozen=True):
    """Claimed job."""

    id: str
    """Id of the job."""
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
    created_at: Time
    scheduled_at: Time | None
    started_at: Time | None
    timeout: float | None
    """Timeout of the attempt in seconds."""
    deadline: Time | None
    tags: list[str]
    concurrency_key: str | None
    idempotency_key: str | None
    progress: Raw
    attempt_log: list[AttemptOut]
    """Earlier attempts, oldest first, without their logs."""


class LeaseOut(Struct, frozen=True):
    """Worker and the jobs that it has claimed."""

    worker: str
    """Id of the worker; send it with every further request."""
    jobs: list[LeasedJob]
    """Claimed jobs, which the worker now holds."""
    draining: bool = False
    """True if the worker should drain: finish or release its jobs, then depart."""


class LostOut(Struct, frozen=True):
    """Jobs that the worker no longer holds; it should stop them."""

    lost: list[str]
    """Ids of jobs to stop."""
    paused: list[str] = []
    """Jobs whose queue, type or tenant is paused: release those that have not started."""
    draining: bool = False
    """True if the worker should drain: finish or release its jobs, then depart."""


class HeldOut(Struct, frozen=True):
    """Job that a worker holds."""

    id: str
    """Id of the job."""
    fence: int
    queue: str
    type: str


class HeldPage(Struct, frozen=True):
    """Jobs that a worker holds, according to the database."""

    jobs: list[HeldOut]
    """Held jobs."""


class OutcomeFault(Struct, frozen=True):
    """Error of one outcome of a settlement; the worker still holds its job."""

    index: int
    """Position in `outcomes`."""
    code: str
    detail: str
    """Explanation for people: the error, and what to do."""
    pointer: str
    """Invalid field, as a JSON pointer into the body."""


class SettledOut(Struct, frozen=True):
    """Jobs whose outcomes were applied; the worker had lost those that are in neither list."""

    settled: list[str]
    """Ids of settled jobs, now or by an earlier request with the same outcome."""
    refused: list[OutcomeFault] = []
    """Invalid outcomes, which changed nothing; if all are invalid, the response is 422."""


class DepartedOut(Struct, frozen=True):
    """Result of a removal; a worker that holds jobs is not removed."""

    departed: bool
    """True if the worker was removed."""


class StepRecord(Struct, frozen=True):
    """Step that an earlier attempt recorded."""

    key: str
    """Key of the step."""
    state: StepStateName
    """`done`, or `started` if it is unknown whether the step took effect."""
    result: Raw
    """Result of the step as any JSON."""
    transaction: bool = False
    """True for a committed transaction in the engine's database; its result is not sent."""


class StepList(Struct, frozen=True):
    """Page of the steps that earlier attempts recorded, by key; follow `next_cursor`."""

    steps: list[StepRecord]
    next_cursor: str | None = None
