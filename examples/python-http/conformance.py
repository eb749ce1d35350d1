"""Job types of the conformance kit, run by the loop of holdfast_worker.py.

holdfast protocol check -- python conformance.py
"""

import os
import time

from holdfast_worker import PermanentError, Retry, Snooze, Worker

worker = Worker()


@worker.handler("check.echo")
def echo(job, value):
    """Return the payload."""
    return value


@worker.handler("check.fail")
def fail(job, times, message, retryable, retry_in):
    """Fail the first attempts."""
    if job.attempts > times:
        return {"attempts": job.attempts}
    raise Retry(message, retry_in) if retryable else PermanentError(message)


@worker.handler("check.snooze")
def snooze(job, path, delay):
    """Snooze once."""
    if os.path.exists(path):
        return {"snoozed": True}
    append(path, "snoozed")
    raise Snooze(delay)


@worker.handler("check.tick")
def tick(job, path, seconds, progress):
    """Write a line every tenth of a second."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        append(path, f"{job.id} {job.fence}")
        if progress:
            job.progress(passed / seconds)
        job.sleep(0.1)
    return {"fence": job.fence}


@worker.handler("check.steps")
def steps(job, path, stop):
    """Run one step at least once, and another at most once."""

    def first():
        append(path, "first")
        return {"fence": job.fence}

    def charge():
        append(path, "charge")
        if stop == "charge" and job.attempts == 1:
            raise Retry("stopped within the step 'charge'", 0)
        return "charged"

    done = job.step("first", first)
    if stop == "first" and job.attempts == 1:
        raise Retry("stopped after the first step", 0)
    return {"first": done, "charge": job.step("charge", charge, at_most_once=True)}


@worker.handler("check.large")
def large(job, bytes):
    """Return a result of this size."""
    return "x" * bytes


def append(path, line):
    """Append a line to a file in one write."""
    with open(path, "a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    worker.run()
