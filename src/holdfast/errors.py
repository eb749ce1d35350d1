"""Every exception a user may catch, as one tree. Each has a stable `code`; each message says what to do."""

from collections.abc import Mapping
from typing import ClassVar


class HoldfastError(Exception):
    """The root of all errors raised by holdfast."""

    code: ClassVar[str] = "error"


class Misconfigured(HoldfastError):
    """A setting cannot be used as it is; the message names it and the fix."""

    code = "misconfigured"


class Invalid(HoldfastError):
    """Something submitted is not acceptable. `pointer` is the JSON pointer of the field."""

    code = "invalid"

    def __init__(self, message: str, *, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class InvalidBatch(Invalid):
    """Some jobs of a batch are not acceptable, so none was taken. `faults` maps index to error."""

    code = "invalid_batch"

    def __init__(self, faults: Mapping[int, HoldfastError]) -> None:
        shown = "; ".join(f"[{index}] {fault}" for index, fault in list(faults.items())[:5])
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        super().__init__(f"{len(faults)} of the jobs cannot be accepted, so none was: {shown}{more}")
        self.faults = dict(faults)

    @classmethod
    def too_many(cls, given: int, most: int) -> "InvalidBatch":
        """The batch itself is too large."""
        return cls({most: Invalid(f"there are {given:,} jobs; a batch has at most {most:,}: send several batches")})


class PayloadTooLarge(Invalid):
    """The payload is larger than a job may carry."""

    code = "payload_too_large"


class OverLimit(Invalid):
    """More is asked for at once than the tenant's limit allows in all: waiting does not help."""

    code = "over_limit"


class IdempotencyMismatch(Invalid):
    """The idempotency key was used before, for another submission."""

    code = "idempotency_mismatch"


class NotFound(HoldfastError):
    """There is no such thing, or it belongs to another tenant."""

    code = "not_found"

    @classmethod
    def job(cls, job_id: object) -> "NotFound":
        """The one answer for a job that is not there and for one that belongs to somebody else."""
        return cls(f"there is no job {str(job_id)[:40]!r}")


class Unauthorized(HoldfastError):
    """No key or token came with the request, or it is not (any more) a good one."""

    code = "unauthorized"


class Forbidden(HoldfastError):
    """The key or token is good, but not for this."""

    code = "forbidden"


class RateLimited(HoldfastError):
    """Too much was asked for in too short a time; after `retry_after` seconds it may be asked again."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, evidence: object = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.evidence = evidence
        """What it was decided by, for whoever decides again before the database is asked."""


class BacklogFull(RateLimited):
    """The tenant, or the tenant in this queue, has as many unfinished jobs as it may have."""

    code = "backlog_full"


class Conflict(HoldfastError):
    """The thing is not in a state that allows what was asked."""

    code = "conflict"


class DuplicateJob(Conflict):
    """A unique job of this kind exists already; `job_id` is its id."""

    code = "duplicate_job"

    def __init__(self, message: str, *, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class LeaseLost(HoldfastError):
    """The worker's lease ran out or was taken away; it may change nothing any more."""

    code = "lease_lost"


class StepOutcomeUnknown(HoldfastError):
    """A step that is to be done at most once was begun by an earlier attempt: whether it was done, nobody knows."""

    code = "step_unknown"


class NonDeterministic(HoldfastError):
    """A handler did something else than at an earlier attempt, whose records do not fit it any more."""

    code = "not_deterministic"


class TransactionEnded(HoldfastError):
    """A handler's transaction ended before its block did; what the message says of its writes is all that is known."""

    code = "transaction_ended"


class Unavailable(HoldfastError):
    """The database cannot be reached or does not answer; trying again later may help."""

    code = "unavailable"


class OutcomeUnknown(Unavailable):
    """The connection broke while the database was committing: it may or may not have taken effect."""

    code = "outcome_unknown"


class Rejected(HoldfastError):
    """The database refused a statement or its values; trying the same again cannot help."""

    code = "rejected"


class Contention(Unavailable):
    """A deadlock or serialisation failure, over and over, in spite of retries."""

    code = "contention"


class SchemaMismatch(Misconfigured):
    """The database's schema is not the one this version of holdfast works with."""

    code = "schema_mismatch"


class JobFailed(HoldfastError):
    """The job that was waited for is dead: what its last attempt failed with."""

    code = "job_failed"

    def __init__(self, job_id: str, *, kind: str, message: str, attempts: int) -> None:
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"job {job_id} is dead after {tries}: {kind}: {message}")
        self.job_id = job_id
        self.kind = kind
        self.message = message
        self.attempts = attempts


class JobCancelled(HoldfastError):
    """The job that was waited for was cancelled, for this `reason`."""

    code = "job_cancelled"

    def __init__(self, job_id: str, *, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled: {reason}")
        self.job_id = job_id
        self.reason = reason


class WaitTimeout(HoldfastError, TimeoutError):
    """The job that was waited for is not finished yet; it goes on."""

    code = "wait_timeout"
