"""Rules of the worker protocol that the kit checks, as on its page of the reference."""

from typing import NamedTuple


class Rule(NamedTuple):
    """Rule that a worker must keep."""

    id: str
    text: str


START = Rule("start", "The worker registers, and runs until it is asked to stop.")
VALID = Rule("valid", "The node refuses no request of the worker with 400, 401, 403, 404, 405, 413, 415 or 422.")
WORKER_ID = Rule(
    "worker-id", "A worker id is used by one process and until the first `lease_lost`; then it registers again."
)
TYPES = Rule("types", "A worker claims only job types that it handles.")
FENCE = Rule("fence", "Every call about a job carries the fence of the newest claim of that job.")
OUTCOME = Rule("outcome", "Each attempt ends with one outcome; results and errors arrive unchanged.")
SETTLE_ONCE = Rule("settle-once", "An outcome that the node has answered is not sent again.")
SETTLE_REPEAT = Rule("settle-repeat", "An outcome without a response is sent again, unchanged, until there is one.")
CLAIM_LOST = Rule("claim-lost", "Jobs of a claim whose response was lost are released, not forgotten.")
RESULT_SIZE = Rule("result-size", "A job with a result above 256 KiB succeeds, and blocks no other outcome.")
STEPS = Rule("steps", "A recorded step is not run again, and an at-most-once step is marked before it runs.")
TIMEOUT = Rule("timeout", "The worker stops an attempt at its timeout and reports `timed_out`.")
RENEW = Rule("renew", "The worker renews its lease while jobs run.")
STOP_JOB = Rule("stop-job", "A job that is no longer held is stopped; other jobs and the worker continue.")
STOP_ALL = Rule("stop-all", "When the lease is over by the worker's own clock, all its handlers have stopped.")
RECOVER = Rule("recover", "The worker survives an outage of the node, and registers again after a lost lease.")
RETRY_AFTER = Rule("retry-after", "After 429 or 503 the worker waits for `Retry-After`, then sends the call again.")
DRAIN_FINISH = Rule("drain-finish", "A draining worker claims no more jobs and lets running ones finish.")
DRAIN_RELEASE = Rule(
    "drain-release", "A draining worker releases the jobs that it does not finish; they use no attempt."
)
DEPART = Rule("depart", "A drained worker departs and exits with code 0.")

RULES = (
    START, VALID, WORKER_ID, TYPES, FENCE, OUTCOME, SETTLE_ONCE, SETTLE_REPEAT, CLAIM_LOST, RESULT_SIZE, STEPS,
    TIMEOUT, RENEW, STOP_JOB, STOP_ALL, RECOVER, RETRY_AFTER, DRAIN_FINISH, DRAIN_RELEASE, DEPART,
)  # fmt: skip


class RuleBroken(Exception):
    """The worker broke a rule. The message says how."""

    def __init__(self, rule: Rule, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail
