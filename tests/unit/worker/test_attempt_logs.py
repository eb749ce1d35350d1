"""Log lines of handlers."""

import asyncio
import logging
import threading

import msgspec
import pytest

from holdfast import Context
from holdfast.model.job import RetryRule
from holdfast.model.outcome import CancelledByHandler, Failed, Failure, Interrupted, LogLine, Logs, Snoozed, Succeeded
from holdfast.model.time import Duration, Instant
from holdfast.policy import lifecycle
from holdfast.policy.logs import MAX_LINE_LENGTH, MAX_LINES, MAX_LOG_BYTES, bound_logs
from holdfast.worker.context.attempt_logs import AttemptLogs
from tests.unit.worker.conftest import a_job

SECRET = "hunter2-canary"


@pytest.fixture
def logged(app, runner):
    """Run a function as a handler and return the stored lines."""

    async def run(function):
        app.job(name="work")(function)
        made = runner()
        job = a_job()
        call = made.call(job)
        context = made.context(job, call, None)
        await made.run(job, call, context)
        return context.attempt_logs.logs()

    return run


def lines(*messages):
    return tuple(LogLine("2026-11-15T12:00:00.000Z", "info", message) for message in messages)


async def test_a_log_line_is_stored_with_its_level_and_fields(logged):
    async def work(*, ctx: Context):
        ctx.log("sent", to="ada", size=7)
        ctx.log("slow\nERROR forged", level=logging.WARNING)

    bound_logs = await logged(work)
    assert [(line.level, line.message) for line in bound_logs.lines] == [
        ("info", "sent to=ada size=7"),
        ("warning", r"slow\nERROR forged"),
    ]


@pytest.mark.parametrize(
    "message, fields",
    [
        (f"password={SECRET}", {}),
        ("connect", {"url": f"postgresql://shop:{SECRET}@db/shop"}),
        ("headers", {"Authorization": f"Bearer {SECRET}"}),
        ("key", {"api_key": f"two words {SECRET}"}),
    ],
)
async def test_secrets_are_neither_stored_nor_logged(logged, caplog, message, fields):
    """T25"""

    async def work(*, ctx: Context):
        ctx.log(message, **fields)

    with caplog.at_level(logging.INFO, "holdfast.job"):
        bound_logs = await logged(work)
    (record,) = [each for each in caplog.records if each.name == "holdfast.job"]
    assert SECRET not in bound_logs.lines[0].message
    assert SECRET not in record.getMessage() + repr(record.fields)
    assert "***" in bound_logs.lines[0].message


async def test_a_handler_that_logs_nothing_stores_nothing(logged):
    async def work(*, ctx: Context):
        pass

    assert await logged(work) is None


async def test_the_newest_lines_are_stored_and_dropped_ones_are_counted(logged):
    async def work(*, ctx: Context):
        for n in range(3 * MAX_LINES):
            ctx.log(str(n))

    logs = bound_logs(await logged(work))
    assert [line.message for line in logs.lines] == [str(n) for n in range(2 * MAX_LINES, 3 * MAX_LINES)]
    assert logs.dropped == 2 * MAX_LINES


async def test_lines_of_many_threads_are_all_counted(logged):
    book = AttemptLogs()

    def write():
        for line in lines(*"x" * 500):
            book.add(line)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    logs = book.logs()
    assert len(logs.lines) + logs.dropped == 2_000


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "✓" * 5_000, "\x01" * 5_000, "\ud800\x00" * 5_000], ids=["long", "wide", "escaped", "odd"]
)
def test_any_logged_text_has_a_bounded_size_and_can_be_stored(text):
    logs = bound_logs(Logs(lines(*[text] * 50)))
    assert logs.lines
    assert len(logs.lines) + logs.dropped == 50
    assert len(msgspec.json.encode(logs.lines)) <= MAX_LOG_BYTES + 2 * MAX_LINES
    assert all(len(line.message) <= MAX_LINE_LENGTH for line in logs.lines)


def test_lines_that_were_dropped_earlier_stay_counted():
    assert bound_logs(Logs(lines("a", "b"), dropped=7)) == Logs(lines("a", "b"), dropped=7)


def settle(job, outcome, logs=None):
    return lifecycle.settle(job, outcome, logs=logs, now=Instant(0), default=RetryRule(), rand=0.5).attempt_log


@pytest.mark.parametrize(
    "outcome, recorded",
    [
        (Succeeded(), "succeeded"),
        (CancelledByHandler("pointless"), "cancelled"),
        (Failed(Failure("E", "m")), "failed"),
    ],
    ids=["succeeded", "cancelled", "failed"],
)
def test_an_attempt_is_recorded_with_its_lines_for_every_outcome(outcome, recorded):
    (entry,) = lifecycle.attempt_log(a_job(attempt_log=settle(a_job(), outcome, Logs(lines("a")))))
    assert (entry.outcome, entry.logs) == (recorded, Logs(lines("a")))


@pytest.mark.parametrize("outcome", [Snoozed(Duration(1)), Interrupted()], ids=["snoozed", "interrupted"])
def test_an_outcome_that_spends_no_attempt_leaves_no_record(outcome):
    assert settle(a_job(), outcome, Logs(lines("a"))) is None


def test_a_job_with_many_attempts_keeps_the_lines_of_the_newest():
    log, many = None, lifecycle.MAX_ATTEMPTS_WITH_LOGS + 5
    for attempt in range(1, many + 1):
        job = a_job(attempts=attempt, max_attempts=100, attempt_log=log)
        log = settle(job, Failed(Failure("E", "m")), Logs(lines("a", "b")))
    entries = lifecycle.attempt_log(a_job(attempt_log=log))
    assert [entry.logs for entry in entries] == [Logs((), 2)] * 5 + [
        Logs(lines("a", "b"))
    ] * lifecycle.MAX_ATTEMPTS_WITH_LOGS
