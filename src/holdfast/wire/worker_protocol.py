"""The shapes of the worker protocol: what a worker sends, and what it is answered."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from holdfast.model import bounds
from holdfast.wire.types import PRINTABLE, AttemptOut, LogLineOut, Name, Query, RequestBody, Seconds, Span

DEFAULT_LEASE_S = 15
MAX_WAIT_S = 30.0
MAX_JOBS_PER_REQUEST = 500
"""In one claim, and outcomes in one settle."""
MAX_HELD_JOBS = 10_000

WorkerText = Annotated[
    str, Meta(pattern=r"^w-[0-3][0-9a-f]{15}$", description="A worker's id, never used again once it is gone.")
]
JobText = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]
Fence = Annotated[int, Meta(ge=0, le=2**31 - 1, description="Rises at each claim; only its holder knows the newest.")]
Short = Annotated[str, Meta(max_length=255, extra_json_schema=PRINTABLE)]
Lease = Annotated[
    Span,
    Meta(description="Seconds, or a text such as '30s': how long the worker may be silent.", examples=[15]),
]


class TypeIn(RequestBody):
    """What a worker tells of a type of jobs that it handles."""

    type: Name
    schema: dict[str, Any] | None = None
    """JSON Schema of the payload, of up to 16 KiB."""
    queue: Name | None = None
    """Where its jobs go that name no other queue."""
    max_attempts: Annotated[int, Meta(ge=1, le=bounds.MAX_ATTEMPTS)] | None = None
    timeout: Seconds | None = None
    priority: Annotated[int, Meta(ge=bounds.MIN_PRIORITY, le=bounds.MAX_PRIORITY)] | None = None
    cost: Annotated[int, Meta(ge=1, le=bounds.MAX_COST)] | None = None


class About(RequestBody):
    """What a worker says of itself when it registers, for the register of workers."""

    name: Short = ""
    host: Short = ""
    pid: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    version: Short = ""
    queues: Annotated[str, Meta(max_length=10_000)] = ""
    slots: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    types: Annotated[list[Name], Meta(max_length=10_000)] | None = None
    """Which types of jobs it has handlers for; left out: those it claims first."""
    described: Annotated[list[TypeIn], Meta(max_length=1_000)] = field(default_factory=list)
    """What there is to tell of them, for whoever makes such jobs."""
    node: Short = ""
    """The same for processes that end together; left out: this one is alone."""


class LeaseRequest(RequestBody):
    """Claim jobs. Without `worker`, or with `register`, a worker is registered first, and answered at once."""

    worker: WorkerText | None = None
    register: About | None = None
    lease: Lease | None = None
    """Prolongs the lease by so much from now; of a new worker, its lease (15 s)."""
    queues: Annotated[list[Name], Meta(max_length=1_000)] = field(default_factory=list)
    types: Annotated[list[Name], Meta(max_length=10_000)] | None = None
    """Only jobs of these types; null: of any."""
    limit: Annotated[int, Meta(ge=0, le=MAX_JOBS_PER_REQUEST)] = 1
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0
    """Seconds to wait for the first job; half the lease at the most if that is given."""


class HeldShape(Struct, frozen=True, forbid_unknown_fields=True):
    """A job as its holder names it."""

    id: JobText
    fence: Fence


class RenewRequest(RequestBody):
    """Prolong a lease, and hear which jobs were taken away."""

    worker: WorkerText
    lease: Lease = DEFAULT_LEASE_S
    memory: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None
    """Bytes of main memory that the worker has."""
    draining: bool = False
    """The worker is about to end: it claims nothing more."""
    held: Annotated[list[HeldShape], Meta(max_length=MAX_HELD_JOBS)] = field(default_factory=list)


class LostRequest(RequestBody):
    """Hear which jobs were taken away, without prolonging anything."""

    worker: WorkerText
    held: Annotated[list[HeldShape], Meta(max_length=MAX_HELD_JOBS)]


class HeldRequest(RequestBody):
    """What a worker holds."""

    worker: WorkerText
    limit: Annotated[int, Meta(ge=1, le=MAX_HELD_JOBS)] = MAX_JOBS_PER_REQUEST


class DepartRequest(RequestBody):
    """Strike a worker that holds nothing."""

    worker: WorkerText


class ErrorIn(RequestBody):
    """What an attempt failed with."""

    kind: Annotated[str, Meta(max_length=10_000)]
    message: Annotated[str, Meta(max_length=1_000_000)] = ""
    traceback: Annotated[str, Meta(max_length=1_000_000)] = ""


class LogsIn(RequestBody):
    """The newest lines that an attempt logged, oldest first."""

    lines: Annotated[list[LogLineOut], Meta(max_length=1_000)]
    dropped: Annotated[int, Meta(ge=0, le=2**53)] = 0


class _OutcomeBase(RequestBody, tag_field="outcome", kw_only=True):
    id: JobText
    fence: Fence
    logs: LogsIn | None = None


class SucceededIn(_OutcomeBase, tag="succeeded"):
    """It was done; up to 256 KiB of result are kept."""

    result: Any = None


class FailedIn(_OutcomeBase, tag="failed"):
    """It was not; tried again by its rule, or after `retry_in`, or never if it is not `retryable`."""

    error: ErrorIn
    retryable: bool = True
    retry_in: Seconds | None = None


class TimedOutIn(_OutcomeBase, tag="timed_out"):
    """It took longer than it may."""

    after: Seconds


class CrashedIn(_OutcomeBase, tag="crashed"):
    """The process that ran it ended."""

    how: Annotated[str, Meta(max_length=10_000)]


class SnoozedIn(_OutcomeBase, tag="snoozed"):
    """It wants to be run again later; no attempt is spent."""

    delay: Seconds
    held: bool = False
    """Something outside holds it back: it is not counted how often."""


class ReleasedIn(_OutcomeBase, tag="released"):
    """It is handed back before it ended; no attempt is spent."""


class CancelledIn(_OutcomeBase, tag="cancelled"):
    """Its handler decided that it is pointless."""

    reason: Annotated[str, Meta(max_length=10_000)] = ""


OutcomeIn = SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | CancelledIn


class SettleRequest(RequestBody):
    """What came of attempts."""

    worker: WorkerText
    outcomes: Annotated[list[OutcomeIn], Meta(max_length=MAX_JOBS_PER_REQUEST)]


class StepRequest(RequestBody):
    """A step of a job that is done, or about to be done at most once."""

    worker: WorkerText
    id: JobText
    fence: Fence
    key: Annotated[str, Meta(min_length=1, max_length=bounds.MAX_KEY_LENGTH, extra_json_schema=PRINTABLE)]
    state: Literal["started", "done"] = "done"
    result: Any | UnsetType = UNSET


class StepsQuery(Query):
    """Of which job."""

    worker: WorkerText
    id: JobText
    fence: Fence


class ProgressRequest(RequestBody):
    """How far a job is."""

    worker: WorkerText
    id: JobText
    fence: Fence
    fraction: Annotated[float, Meta(ge=0, le=1)]
    note: Annotated[str, Meta(max_length=10_000)] = ""


class LeasedJob(Struct, frozen=True):
    """A job for the worker that claimed it."""

    id: str
    fence: int
    """To be named with whatever is reported of this attempt."""
    tenant: str
    queue: str
    type: str
    payload: Raw
    priority: int
    attempts: int
    """This one included."""
    max_attempts: int
    releases: int
    """How often it was handed back or snoozed."""
    generation: int
    """How often it was replayed."""
    cost: int
    created_at: str
    scheduled_at: str | None
    started_at: str | None
    timeout: float | None
    """Seconds that the attempt may take."""
    deadline: str | None
    tags: list[str]
    concurrency_key: str | None
    idempotency_key: str | None
    progress: Raw
    attempt_log: list[AttemptOut]
    """Earlier attempts, oldest first, without what they logged."""


class LeaseOut(Struct, frozen=True):
    """The worker, and the jobs it holds from now on."""

    worker: str
    jobs: list[LeasedJob]
    draining: bool = False
    """The worker is to end: it gets no more jobs. Finish what it has, or hand it back, and depart."""


class LostOut(Struct, frozen=True):
    """The jobs that are the worker's no more: stop them, nothing they do counts."""

    lost: list[str]
    draining: bool = False
    """The worker is to end: claim no more, finish what runs or hand it back, depart. Told by a renewal."""


class HeldOut(Struct, frozen=True):
    """A job that a worker holds."""

    id: str
    fence: int
    queue: str
    type: str


class HeldPage(Struct, frozen=True):
    """What a worker holds, by the database's account."""

    jobs: list[HeldOut]


class SettledOut(Struct, frozen=True):
    """The jobs whose outcome took effect. The others were taken away before."""

    settled: list[str]


class DepartedOut(Struct, frozen=True):
    """Whether the worker is struck; it is not while it holds jobs."""

    departed: bool


class StepRecord(Struct, frozen=True):
    """What a step of an earlier attempt left."""

    key: str
    state: Literal["started", "done"]
    result: Raw
    transaction: bool = False
    """It was a transaction in the engine's database: done, and nobody else's to read."""


class StepList(Struct, frozen=True):
    """What earlier attempts recorded, oldest first."""

    steps: list[StepRecord]
