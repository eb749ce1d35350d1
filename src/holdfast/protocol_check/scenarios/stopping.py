"""Scenarios in which handlers have to stop, or must not."""

import time

from holdfast.protocol_check import rules
from holdfast.protocol_check.exchanges import longest_gap
from holdfast.protocol_check.processes import WorkerUnderTest
from holdfast.protocol_check.trial import Trial, ticks

FOREVER_S = 600.0
CLAIM_GRACE_S = 1.0
"""Time after a request to drain in which a claim may still be sent."""


async def timeout(trial: Trial) -> None:
    """The worker ends an attempt at its timeout; the node does not."""
    await trial.start_worker()
    job, path = await trial.tick(FOREVER_S, timeout=1, max_attempts=1)
    ended = await trial.finished(job, rules.TIMEOUT)
    outcomes = [attempt.outcome for attempt in ended.attempt_log]
    trial.require(rules.TIMEOUT, outcomes == ["timed_out"], f"the attempts of job {job} ended as {outcomes}")
    await trial.stops(path, rules.TIMEOUT, job)


async def cancel(trial: Trial) -> None:
    """Cancelled jobs stop; the job beside them and the worker continue."""
    await trial.start_worker()
    silent, silent_path = await trial.tick(FOREVER_S)
    talking, talking_path = await trial.tick(FOREVER_S, progress=True)
    beside, beside_path = await trial.tick(trial.options.lease + 1.0)
    for job in (silent, talking):
        await trial.client.cancel(job, "cancelled by the conformance kit")
    await trial.stops(silent_path, rules.STOP_JOB, silent)
    await trial.stops(talking_path, rules.STOP_JOB, talking)
    await trial.succeeds(beside, rules.STOP_JOB)
    fences = {tick.fence for tick in ticks(beside_path)}
    trial.require(rules.STOP_JOB, len(fences) == 1, f"job {beside}, which was not cancelled, was claimed again")
    trial.require(rules.STOP_JOB, len(trial.registrations()) == 1, "the worker registered again")


async def renew(trial: Trial) -> None:
    """A job that is longer than two leases keeps its lease."""
    await trial.start_worker()
    job, path = await trial.tick(2 * trial.options.lease + 1)
    await trial.succeeds(job, rules.RENEW)
    gap = longest_gap(trial.exchanges, time.monotonic())
    trial.require(rules.RENEW, gap < trial.options.lease, f"no renewal for {gap:.1f} s")
    fences = {tick.fence for tick in ticks(path)}
    trial.require(rules.RENEW, len(fences) == 1, f"job {job} was claimed {len(fences)} times")


async def drain_by_signal(trial: Trial) -> None:
    """SIGTERM drains the worker."""
    worker = await trial.start_worker()
    await _drain(trial, worker, by_signal=True)


async def drain_by_request(trial: Trial) -> None:
    """The worker learns from a renewal or a claim that it has to drain."""
    worker = await trial.start_worker()
    await _drain(trial, worker, by_signal=False)


async def _drain(trial: Trial, worker: WorkerUnderTest, *, by_signal: bool) -> None:
    trial.may_exit = True
    (worker_id,) = trial.registrations()
    long, long_path = await trial.tick(FOREVER_S)
    # Short enough to finish within the drain time, and long enough to be running when the worker drains.
    short, _ = await trial.tick(trial.options.drain / 2 if by_signal else trial.options.lease / 3 + 0.5)
    if by_signal:
        worker.terminate()
    else:
        await trial.client.drain_worker(worker_id)

        async def told() -> bool:
            return any(each.response.get("draining") for each in trial.exchanges)

        await trial.until(rules.DRAIN_FINISH, "the worker learns that it has to drain", told)
    began = time.monotonic()
    late = await trial.submit("echo", {"value": 1})
    await trial.exits(worker, rules.DEPART)
    await trial.succeeds(short, rules.DRAIN_FINISH)
    for job_id, ends in ((long, [("ready", 0)]), (late, [("ready", 0), ("succeeded", 1)])):
        # The signal and the late job may cross each other: the worker then runs it, or releases it.
        job = await trial.job(job_id)
        state = f"job {job_id} is {job.status} after {job.attempts} attempts"
        trial.require(rules.DRAIN_RELEASE, (job.status, job.attempts) in ends, state)
    await trial.stops(long_path, rules.DRAIN_RELEASE, long)
    claims = [each for each in trial.exchanges if each.is_claim and each.began > began + CLAIM_GRACE_S]
    trial.require(rules.DRAIN_FINISH, not claims, f"the draining worker sent {len(claims)} claims")
    listed = {each.id for each in await trial.client.workers()}
    trial.require(rules.DEPART, worker_id not in listed, f"worker {worker_id} exited without departing")
