"""Scenarios of attempts that end by themselves."""

from typing import Any

from holdfast.protocol_check import rules
from holdfast.protocol_check.trial import Trial, read_lines

VALUES: tuple[Any, ...] = ({"text": "naïve – 東京 🚀", "list": [1, 2.5, None, True]}, None, [])
MAX_RESULT_BYTES = 256 * 1024


async def success(trial: Trial) -> None:
    """Jobs succeed with their results; the idle worker then stops on SIGTERM."""
    worker = await trial.start_worker()
    for value in VALUES:
        job = await trial.submit("echo", {"value": value})
        await trial.succeeds(job, rules.OUTCOME, result=value)
    many = [await trial.submit("echo", {"value": number}) for number in range(3 * trial.options.slots)]
    for number, job in enumerate(many):
        await trial.succeeds(job, rules.OUTCOME, result=number)
    worker.terminate()
    await trial.exits(worker, rules.DEPART)


async def failure(trial: Trial) -> None:
    """A job whose error is not retryable is dead after one attempt, with its message."""
    await trial.start_worker()
    text = "no such account: 4711"
    payload = {"times": 9, "message": text, "retryable": False, "retry_in": None}
    job = await trial.finished(await trial.submit("fail", payload), rules.OUTCOME)
    trial.require(rules.OUTCOME, job.status == "dead", f"job {job.id} is {job.status}, not dead")
    trial.require(rules.OUTCOME, job.attempts == 1, f"job {job.id} took {job.attempts} attempts, not 1")
    message = "" if job.error is None else job.error.message
    trial.require(rules.OUTCOME, text in message, f"the error of job {job.id} is {message!r}")


async def retry(trial: Trial) -> None:
    """A failed attempt is retried at once, because the outcome says so."""
    await trial.start_worker()
    payload = {"times": 1, "message": "try again", "retryable": True, "retry_in": 0}
    job = await trial.submit("fail", payload, max_attempts=3, retry={"delays": [3600]})
    await trial.succeeds(job, rules.OUTCOME, result={"attempts": 2}, attempts=2)
    await trial.succeeds(await trial.submit("echo", {"value": 1}), rules.OUTCOME, result=1)


async def snooze(trial: Trial) -> None:
    """A snoozed job runs again after its delay, and has used no attempt."""
    await trial.start_worker()
    job = await trial.submit("snooze", {"path": trial.path(), "delay": 0.2})
    await trial.succeeds(job, rules.OUTCOME, result={"snoozed": True})


async def steps(trial: Trial) -> None:
    """Steps of earlier attempts are reused; an at-most-once step never starts twice."""
    await trial.start_worker()
    path = trial.path()
    job = await trial.submit("steps", {"path": path, "stop": "first"}, max_attempts=3)
    found = await trial.succeeds(job, rules.STEPS, attempts=2)
    trial.require(
        rules.STEPS, found.result == {"first": {"fence": 1}, "charge": "charged"}, f"its result is {found.result}"
    )
    lines = read_lines(path)
    trial.require(rules.STEPS, lines == ["first", "charge"], f"the steps that ran are {lines}")

    path = trial.path()
    job = await trial.submit("steps", {"path": path, "stop": "charge"}, max_attempts=3)
    found = await trial.finished(job, rules.STEPS)
    lines = read_lines(path)
    trial.require(rules.STEPS, lines == ["first", "charge"], f"the steps that ran are {lines}")
    trial.require(
        rules.STEPS, found.status == "dead", f"job {job} is {found.status}: the outcome of its step was not known"
    )


async def large(trial: Trial) -> None:
    """A result above the limit is truncated, and affects no other outcome."""
    await trial.start_worker()
    fits = await trial.submit("large", {"bytes": 200_000})
    exceeds = await trial.submit("large", {"bytes": MAX_RESULT_BYTES + 40_000})
    others = [await trial.submit("echo", {"value": number}) for number in range(trial.options.slots)]
    for number, job in enumerate(others):
        await trial.succeeds(job, rules.RESULT_SIZE, result=number)
    await trial.succeeds(fits, rules.RESULT_SIZE, result="x" * 200_000)
    await trial.succeeds(exceeds, rules.RESULT_SIZE)


async def types(trial: Trial) -> None:
    """A job of another type stays in the queue, untouched."""
    other = await trial.submit("other", {})
    await trial.start_worker()
    await trial.succeeds(await trial.submit("echo", {"value": 1}), rules.OUTCOME, result=1)
    job = await trial.job(other)
    trial.require(
        rules.TYPES, (job.status, job.attempts) == ("ready", 0), f"job {other} of type check.other is {job.status}"
    )
