"""Scenarios in which a process, the node or the connection between them fails."""

import asyncio
import signal
import time
from itertools import dropwhile, pairwise

from holdfast.protocol_check import rules
from holdfast.protocol_check.exchanges import CLAIM, RENEW, SETTLE, RecordedExchange
from holdfast.protocol_check.proxy import InjectedFault
from holdfast.protocol_check.rules import Rule
from holdfast.protocol_check.scenarios.stopping import FOREVER_S
from holdfast.protocol_check.trial import STILL_S, Trial, ticks
from holdfast.sdk.options import RetryOptions

RESTART_LEASE_S = 20.0
"""Lease of a worker that must survive a restart of the node, which takes a second or more."""
THROTTLE_LEASE_S = 6.0
"""Lease that outlasts some refused renewals with a `Retry-After` of a second."""
CLOCK_SLACK_S = 0.5
"""Delay that a busy machine may add to a timer of the worker."""
AT_ONCE: RetryOptions = {"delays": [0.0]}
"""Retry rule without a delay."""


async def kill(trial: Trial) -> None:
    """The jobs of a killed process go to the next one, which registers again."""
    worker = await trial.start_worker()
    job, path = await trial.tick(1, retry=AT_ONCE)
    await worker.kill()
    (killed,) = trial.registrations()
    sent = len(trial.exchanges)
    await trial.start_worker()
    await trial.succeeds(job, rules.RECOVER, attempts=2)
    await trial.stops(path, rules.STOP_ALL, job, fence=1)
    reused = [each.path for each in trial.exchanges[sent:] if each.worker == killed]
    trial.require(rules.WORKER_ID, not reused, f"the new process uses the id of the killed one: {reused[:1]}")


async def freeze(trial: Trial) -> None:
    """After a freeze beyond its lease, the worker stops its handlers and registers again."""
    worker = await trial.start_worker()
    job, path = await trial.tick(FOREVER_S, retry=AT_ONCE, max_attempts=10)
    worker.signal_all(signal.SIGSTOP)

    async def reaped() -> bool:
        return (await trial.job(job)).status != "running"

    await trial.until(rules.RECOVER, "the node takes the job from the frozen worker", reaped)
    worker.signal_all(signal.SIGCONT)
    await _runs_again(trial, job, path)


async def restart(trial: Trial) -> None:
    """A crash of the node costs no attempt if it returns within the lease."""
    await trial.start_worker(lease=RESTART_LEASE_S)
    job, path = await trial.tick(3)
    await trial.node.kill()
    await trial.node.start()
    await trial.succeeds(job, rules.RECOVER)
    trial.require(rules.RECOVER, len({tick.fence for tick in ticks(path)}) == 1, f"job {job} was claimed again")
    await trial.succeeds(await trial.submit("echo", {"value": 1}), rules.RECOVER, result=1)


async def outage(trial: Trial) -> None:
    """Without a node, handlers stop before the lease is over; afterwards the worker continues."""
    await trial.start_worker()
    job, path = await trial.tick(FOREVER_S, retry=AT_ONCE, max_attempts=10)
    await trial.node.kill()
    renewed = max(each.began for each in trial.exchanges if each.renews)
    await asyncio.sleep(max(0.0, renewed + trial.options.lease + CLOCK_SLACK_S - time.monotonic()))
    before = len(ticks(path))
    await asyncio.sleep(STILL_S)
    trial.require(rules.STOP_ALL, len(ticks(path)) == before, f"the handler of job {job} runs after its lease")
    await trial.node.start()
    await _runs_again(trial, job, path)


async def throttle(trial: Trial) -> None:
    """Refused calls are repeated after `Retry-After`, and nothing is lost."""
    lease = max(trial.options.lease, THROTTLE_LEASE_S)
    await trial.start_worker(lease=lease)
    trial.inject(InjectedFault("refuse", lambda each: each.is_claim and each.worker is not None, status=429))
    trial.inject(InjectedFault("refuse", lambda each: each.path == RENEW, status=503))
    trial.inject(InjectedFault("refuse", lambda each: each.path == SETTLE, status=429))
    trial.inject(InjectedFault("refuse", lambda each: each.path == SETTLE, status=503))
    job, _ = await trial.tick(lease / 2)
    await trial.succeeds(job, rules.RETRY_AFTER)
    _require_waits(trial, SETTLE, rules.RETRY_AFTER)


async def lost_settle(trial: Trial) -> None:
    """An outcome is sent until it is answered."""
    await trial.start_worker()
    trial.inject(InjectedFault("lose_request", lambda each: each.path == SETTLE))
    trial.inject(InjectedFault("lose_response", lambda each: each.path == SETTLE))
    job = await trial.submit("echo", {"value": 1})
    await trial.succeeds(job, rules.SETTLE_REPEAT, result=1)

    async def answered() -> bool:
        return any(job in each.response.get("settled", ()) for each in trial.exchanges if each.path == SETTLE)

    await trial.until(rules.SETTLE_REPEAT, f"the outcome of job {job} is sent until the node answers", answered)
    sent = [each.body for each in trial.exchanges if each.path == SETTLE]
    outcomes = [item for body in sent for item in body["outcomes"] if item["id"] == job]
    same = all(item == outcomes[0] for item in outcomes)
    trial.require(rules.SETTLE_REPEAT, same, f"the repeated outcomes of job {job} differ")
    await trial.succeeds(await trial.submit("echo", {"value": 2}), rules.SETTLE_REPEAT, result=2)


async def lost_claim(trial: Trial) -> None:
    """Jobs of a lost response are released: by the worker, or by the node.

    The node releases jobs that the worker leaves out of `held` in its renewals.
    """
    await trial.start_worker()
    trial.inject(InjectedFault("lose_response", lambda each: each.path == CLAIM and bool(each.response.get("jobs"))))
    job = await trial.submit("echo", {"value": 1})
    await trial.succeeds(job, rules.CLAIM_LOST, result=1)


async def _runs_again(trial: Trial, job: str, path: str) -> None:
    """Wait until a job runs under a new fence; no line of the old attempt may follow."""
    old = ticks(path)[0].fence

    async def claimed_again() -> bool:
        return ticks(path)[-1].fence > old

    await trial.until(rules.RECOVER, f"the worker registers again and runs job {job}", claimed_again)
    await asyncio.sleep(STILL_S)
    later = [tick.fence for tick in dropwhile(lambda tick: tick.fence == old, ticks(path))]
    trial.require(rules.STOP_ALL, old not in later, f"two attempts of job {job} run at the same time")


def _require_waits(trial: Trial, path: str, rule: Rule) -> None:
    """Require that calls to a path are repeated not before `Retry-After`."""
    calls: list[RecordedExchange] = [each for each in trial.exchanges if each.path == path]
    for refused, following in pairwise(calls):
        waited = following.began - (refused.ended or refused.began)
        early = refused.injected and waited < 0.9
        trial.require(rule, not early, f"{path} was repeated after {waited:.2f} s; Retry-After was 1 s")
