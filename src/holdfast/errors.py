"""Exceptions that holdfast raises, each with a stable `code` and advice in its message."""

from collections.abc import Mapping
from typing import ClassVar


class HoldfastError(Exception):
    """Base class of all errors raised by holdfast.

    `code` is stable across versions and the same in Python, in HTTP problem documents and in the CLI.

    Example:
        try:
            send.enqueue(42)
        except HoldfastError as error:
            log.warning("not submitted: %s (%s)", error, error.code)
    """

    code: ClassVar[str] = "error"


def forget_frames(error: HoldfastError) -> None:
    """Remove traceback and causes of an error that is kept as a value.

    A traceback refers to frames, and these to everything that was being parsed. If a frame also refers to the error,
    only the garbage collector can free them.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None


class Misconfigured(HoldfastError):
    """A setting or declaration is invalid.

    Raised at startup or when a job type is declared. Fix the setting or declaration that the message names.
    """

    code = "misconfigured"


class Invalid(HoldfastError):
    """The arguments of a call are invalid, so nothing was changed.

    Correct the field that `pointer` names; retrying the same call cannot help.
    """

    code = "invalid"

    def __init__(self, message: str, *, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer
        """JSON pointer of the invalid field; empty if the error concerns the whole request."""


class InvalidBatch(Invalid):
    """Some jobs of a batch are invalid, so none of the batch was accepted.

    Correct or remove the jobs listed in `faults`, and submit the batch again.
    """

    code = "invalid_batch"

    def __init__(self, faults: Mapping[int, HoldfastError]) -> None:
        for fault in faults.values():
            forget_frames(fault)
        shown = "; ".join(f"[{index}] {fault}" for index, fault in list(faults.items())[:5])
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        super().__init__(f"{len(faults)} of the jobs are invalid, so none was accepted: {shown}{more}")
        self.faults = dict(faults)
        """Error of each invalid job, by its index in the batch."""

    @classmethod
    def too_many(cls, jobs: int, maximum: int) -> "InvalidBatch":
        """Return the error for a batch with too many jobs."""
        return cls(
            {maximum: Invalid(f"there are {jobs:,} jobs; a batch has at most {maximum:,}: send several batches")}
        )


class PayloadTooLarge(Invalid):
    """The payload exceeds the maximum size.

    Store the data elsewhere, for example in object storage, and submit a reference to it.
    """

    code = "payload_too_large"


class OverLimit(Invalid):
    """The submission is larger than the tenant's whole quota, so retrying cannot help.

    Submit fewer or cheaper jobs at once, or ask an administrator to raise the quota.
    """

    code = "over_limit"


class IdempotencyMismatch(Invalid):
    """The idempotency key was already used for a submission with different content.

    Use a new key for a new job; to repeat a submission, send exactly the same content.
    """

    code = "idempotency_mismatch"


class NotFound(HoldfastError):
    """The object does not exist, was deleted or pruned, or belongs to another tenant.

    The message is the same in all cases, so that ids cannot be probed. Check the id and the tenant of your API key.
    """

    code = "not_found"

    @classmethod
    def job(cls, job_id: object) -> "NotFound":
        """Return the error for a job that the caller cannot see."""
        return cls(f"there is no job {str(job_id)[:40]!r}")


class Unauthorized(HoldfastError):
    """The API key or token is missing, unknown, expired or revoked.

    Send a valid one, or ask an administrator to create one.
    """

    code = "unauthorized"


class Forbidden(HoldfastError):
    """The API key or token is valid but does not permit this request.

    Use a key with the scope or the tenant that the message names.
    """

    code = "forbidden"


class RateLimited(HoldfastError):
    """The tenant's rate quota is used up, or requests arrive too frequently.

    Nothing was changed. Retry after `retry_after` seconds.
    """

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, evidence: object = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait before a retry."""
        self.evidence = evidence
        """State of the rate window, so that a cache can reject early without asking the database."""


class BacklogFull(RateLimited):
    """The tenant has reached its quota of unfinished jobs, in total or in this queue.

    Nothing was changed. Retry after `retry_after` seconds, when workers may have finished some jobs.
    """

    code = "backlog_full"


class Conflict(HoldfastError):
    """The current state of the object does not allow the action.

    The message says which state it is in, and what you can do instead.
    """

    code = "conflict"


class DuplicateJob(Conflict):
    """A job with the same unique key exists, and the submission asked to reject duplicates.

    Use the existing job, `job_id`, or submit again when it has finished.
    """

    code = "duplicate_job"

    def __init__(self, message: str, *, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id
        """Id of the existing job."""


class LeaseLost(HoldfastError):
    """The worker no longer holds its lease, or this job, so its writes are rejected.

    Another worker may already run the job. Stop the attempt; its result is discarded. A handler need not catch this.
    """

    code = "lease_lost"


class JobNotHeld(LeaseLost):
    """The worker does not hold this job (any longer): it was cancelled, timed out or taken away.

    Stop this attempt; its result is discarded. The lease of the worker and its other jobs are not affected.
    """

    code = "job_not_held"


class StepOutcomeUnknown(HoldfastError):
    """An earlier attempt started an at-most-once step, and it is unknown whether it took effect.

    Catch this in the handler, check whether the step took effect, and continue without it. If you do not catch it, the
    job is dead.
    """

    code = "step_unknown"


class NonDeterministic(HoldfastError):
    """The handler diverged from the steps or statements that an earlier attempt recorded.

    The job is dead at once, because every attempt would fail. Make the handler run the recorded steps and statements in
    the same order, then replay the job.
    """

    code = "not_deterministic"


class TransactionEnded(HoldfastError):
    """A transaction of `ctx.transaction()` ended before its `with` block did.

    The message says whether its writes were committed or rolled back. Keep transactions short, and do not end them with
    your own statements.
    """

    code = "transaction_ended"


class Unavailable(HoldfastError):
    """The database or the server is unreachable or does not respond.

    Retry later. Submit with an idempotency key, so that a retry does not create a second job.
    """

    code = "unavailable"
    retry_after: float = 0.0
    """Seconds that the node asks the caller to wait; 0 if it does not say."""


class OutcomeUnknown(Unavailable):
    """The connection broke during a commit, so the change may or may not have taken effect.

    Repeat the call if it is idempotent, for example a submission with an idempotency key; otherwise check first.
    """

    code = "outcome_unknown"


class Rejected(HoldfastError):
    """The database rejected a statement or its values.

    Retrying the same call cannot help. In a handler's transaction, correct the statement that the message names.
    """

    code = "rejected"


class Contention(Unavailable):
    """A deadlock, a serialization failure or concurrent changes persisted through all retries.

    Nothing was changed. Retry later.
    """

    code = "contention"


class SchemaMismatch(Misconfigured):
    """The database schema does not match this version of holdfast.

    Run `holdfast migrate`, or install the version that fits the schema.
    """

    code = "schema_mismatch"


class JobFailed(HoldfastError):
    """The awaited job is dead: its last attempt failed.

    Read the attempt log for all errors; after fixing the cause, replay the job.
    """

    code = "job_failed"

    def __init__(self, job_id: str, *, kind: str, message: str, attempts: int) -> None:
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"job {job_id} is dead after {tries}: {kind}: {message}")
        self.job_id = job_id
        self.kind = kind
        """Type of the error of the last attempt."""
        self.message = message
        """Message of that error."""
        self.attempts = attempts


class JobCancelled(HoldfastError):
    """The awaited job was cancelled by a user, by its handler or at its deadline.

    `reason` says why.
    """

    code = "job_cancelled"

    def __init__(self, job_id: str, *, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled: {reason}")
        self.job_id = job_id
        self.reason = reason


class ResultTooLarge(HoldfastError):
    """The awaited job succeeded, but its result exceeded the maximum size and was not stored.

    Let the handler store the data elsewhere, for example in object storage, and return its location.
    """

    code = "result_too_large"

    def __init__(self, job_id: str, *, size: int, maximum: int) -> None:
        super().__init__(
            f"job {job_id} succeeded, but its result of {size:,} bytes exceeds the limit of {maximum:,} and was not "
            "stored: let the handler store it elsewhere and return its location"
        )
        self.job_id = job_id
        self.size = size
        """Size of the encoded result in bytes."""


class WaitTimeout(HoldfastError, TimeoutError):
    """The awaited job did not finish within the timeout of the wait.

    The job is not affected. Wait again, or cancel it.
    """

    code = "wait_timeout"
