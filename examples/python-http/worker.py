"""A worker that sends welcome messages and computes reports, over HTTP with Python's standard library alone.

    export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
    python worker.py

Submit a job for it:

    curl "$HOLDFAST_API_URL/v1/jobs" -H "Authorization: Bearer $HOLDFAST_API_KEY" -H "Content-Type: application/json" \
        -d '{"type": "welcome", "queue": "mail", "payload": {"address": "ada@example.org"}}'

`holdfast_worker.py` beside this file has the loop: it registers, claims, renews the lease, reports outcomes and drains.
"""

from holdfast_worker import PermanentError, Snooze, Worker

worker = Worker(queues="mail,reports", slots=4)


class ServiceBusy(Exception):
    """The mail service asks to try again later."""


@worker.handler("welcome")
def welcome(job, address):
    """Send a welcome message; the fields of the payload are the arguments."""
    if "@" not in address:
        raise PermanentError(f"{address!r} is not an address")  # the job is dead; other errors are retried
    # A later attempt gets the recorded text and does not render it again.
    text = job.step("render", lambda: f"Welcome, {address}")
    try:
        # The mail service recognises the key of a repeated call.
        message_id = job.step("send", lambda: send_mail(address, text, key=job.idempotency_key("send")))
    except ServiceBusy:
        raise Snooze(60) from None  # runs again in a minute, and this attempt does not count
    return {"message_id": message_id}


@worker.handler("report")
def report(job, days):
    """Add up the revenue of many days.

    `job.sleep`, `job.step` and `job.progress` end the handler when it must stop: the job was cancelled or timed out,
    the drain time is over, or the worker has lost its lease. A handler that waits for nothing calls `job.sleep(0)`.
    """
    total = 0
    for day in range(days):
        total += revenue(day)
        job.progress((day + 1) / days, f"day {day + 1}")
        job.sleep(0.01)  # stands for the time of the query
    return {"days": days, "revenue": total}


def send_mail(address, text, key):
    """Stand for the call of a mail service; return the id of the message."""
    return f"{key} to {address}, {len(text)} characters"


def revenue(day):
    """Stand for a query."""
    return 100 + day % 7


if __name__ == "__main__":
    worker.run()  # until SIGTERM or Ctrl-C; running jobs may finish for 30 s, then they are released
