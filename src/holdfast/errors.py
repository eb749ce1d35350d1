"""All exceptions that holdfast raises. Each has a stable `code`, and its message says what to do."""

from collections.abc import Mapping
from typing import ClassVar


class HoldfastError(Exception):
    """Base class of all errors raised by holdfast.

    Example:
        try:
            send.enqueue(42)
        except HoldfastError as error:
            log.warning("not submitted: %s (%s)", error, error.code)
    """

    code: ClassVar[str] = "error"


class Misconfigured(HoldfastError):
    """A setting or declaration is invalid; the message names it and the fix."""

    code = "misconfigured"


class Invalid(HoldfastError):
    """The submitted data is invalid. `pointer` is the JSON pointer of the invalid field."""

    code = "invalid"

    def __init__(self, message: str, *, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class InvalidBatch(Invalid):
    """Some jobs of a batch are invalid, so none was accepted. `faults` maps the index of each to its error."""

    code = "invalid_batch"

    def __init__(self, faults: Mapping[int, HoldfastError]) -> None:
        shown = "; ".join(f"[{index}] {fault}" for index, fault in list(faults.items())[:5])
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        super().__init__(f"{len(faults)} of the jobs are invalid, so none was accepted: {shown}{more}")
        self.faults = dict(faults)

    @classmethod
    def too_many(cls, given: int, most: int) -> "InvalidBatch":
        """Return the error for a batch with too many jobs."""
        return cls({most: Invalid(f"there are {given:,} jobs; a batch has at most {most:,}: send several batches")})


class PayloadTooLarge(Invalid):
    """The payload is larger than the maximum payload size."""

    code = "payload_too_large"


class OverLimit(Invalid):
    """The submission alone exceeds the tenant's quota, so retrying cannot help."""

    code = "over_limit"


class IdempotencyMismatch(Invalid):
    """The idempotency key was already used for a different submission."""

    code = "idempotency_mismatch"


class NotFound(HoldfastError):
    """The object does not exist, or it belongs to another tenant."""

    code = "not_found"

    @classmethod
    def job(cls, job_id: object) -> "NotFound":
        """Return the error for a missing job; the same for another tenant's, so that ids cannot be probed."""
        return cls(f"there is no job {str(job_id)[:40]!r}")


class Unauthorized(HoldfastError):
    """The API key or token is missing, unknown, expired or revoked."""

    code = "unauthorized"


class Forbidden(HoldfastError):
    """The API key or token is valid but does not permit this request."""

    code = "forbidden"


class RateLimited(HoldfastError):
    """The rate limit is exceeded; retry after `retry_after` seconds."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, evidence: object = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.evidence = evidence
        """State of the rate window, so that a cache can reject early without asking the database."""


class BacklogFull(RateLimited):
    """The tenant has reached its quota of unfinished jobs, in total or in this queue."""

    code = "backlog_full"


class Conflict(HoldfastError):
    """The state of the object does not allow the requested action."""

    code = "conflict"


class DuplicateJob(Conflict):
    """A job with the same unique key already exists; `job_id` is its id."""

    code = "duplicate_job"

    def __init__(self, message: str, *, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class LeaseLost(HoldfastError):
    """The worker's lease expired or was revoked, so its writes are refused."""

    code = "lease_lost"


class StepOutcomeUnknown(HoldfastError):
    """An earlier attempt started an at-most-once step, and it is unknown whether the step took effect."""

    code = "step_unknown"


class NonDeterministic(HoldfastError):
    """The handler diverged from the steps or statements that an earlier attempt recorded."""

    code = "not_deterministic"


class TransactionEnded(HoldfastError):
    """A handler's transaction ended before its `with` block; the message says what happened to its writes."""

    code = "transaction_ended"


class Unavailable(HoldfastError):
    """The database is unreachable or does not respond; a retry may succeed."""

    code = "unavailable"


class OutcomeUnknown(Unavailable):
    """The connection broke during a commit, so the change may or may not have taken effect."""

    code = "outcome_unknown"


class Rejected(HoldfastError):
    """The database rejected a statement or its values; retrying the same call cannot help."""

    code = "rejected"


class Contention(Unavailable):
    """A deadlock or serialization failure persisted through all retries."""

    code = "contention"


class SchemaMismatch(Misconfigured):
    """The database schema does not match this version of holdfast."""

    code = "schema_mismatch"


class JobFailed(HoldfastError):
    """The awaited job is dead; `kind` and `message` describe the error of its last attempt."""

    code = "job_failed"

    def __init__(self, job_id: str, *, kind: str, message: str, attempts: int) -> None:
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"job {job_id} is dead after {tries}: {kind}: {message}")
        self.job_id = job_id
        self.kind = kind
        self.message = message
        self.attempts = attempts


class JobCancelled(HoldfastError):
    """The awaited job was cancelled, for `reason`."""

    code = "job_cancelled"

    def __init__(self, job_id: str, *, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled: {reason}")
        self.job_id = job_id
        self.reason = reason


class WaitTimeout(HoldfastError, TimeoutError):
    """The awaited job did not finish in time; it continues to run."""

    code = "wait_timeout"
