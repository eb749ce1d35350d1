"""Scenarios of the conformance kit, in the order in which they run."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from holdfast.protocol_check.scenarios import faults, outcomes, stopping
from holdfast.protocol_check.trial import Trial


class Scenario(NamedTuple):
    """Situation that a worker is put into."""

    id: str
    summary: str
    run: Callable[[Trial], Awaitable[None]]


SCENARIOS = (
    Scenario("success", "jobs succeed, and the idle worker stops on SIGTERM", outcomes.success),
    Scenario("failure", "a job fails and must not be retried", outcomes.failure),
    Scenario("retry", "a job fails once, and succeeds at its second attempt", outcomes.retry),
    Scenario("snooze", "a handler asks to run again later", outcomes.snooze),
    Scenario("steps", "attempts end between and within steps", outcomes.steps),
    Scenario("large", "results of 200,000 and 300,000 bytes", outcomes.large),
    Scenario("types", "the queue contains a job of a type that the worker does not handle", outcomes.types),
    Scenario("timeout", "a handler runs longer than its timeout", stopping.timeout),
    Scenario("cancel", "one of several running jobs is cancelled", stopping.cancel),
    Scenario("renew", "a job runs for longer than two leases", stopping.renew),
    Scenario("drain", "SIGTERM while jobs run", stopping.drain_by_signal),
    Scenario("drain-request", "an operator drains the worker through the API", stopping.drain_by_request),
    Scenario("kill", "kill -9 while a job runs; another process takes over", faults.kill),
    Scenario("freeze", "the worker is frozen for longer than its lease (SIGSTOP, SIGCONT)", faults.freeze),
    Scenario("restart", "the node crashes and returns within the lease", faults.restart),
    Scenario("outage", "the node is gone for longer than the lease", faults.outage),
    Scenario("throttle", "the node answers 429 and 503 with Retry-After", faults.throttle),
    Scenario("lost-settle", "an outcome and then the response to it are lost", faults.lost_settle),
    Scenario("lost-claim", "the response to a claim is lost", faults.lost_claim),
)
