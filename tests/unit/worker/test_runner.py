"""Outcomes of handlers for everything they can return or raise."""

import asyncio
import dataclasses
import sys

import msgspec
import pytest

from holdfast import Cancel, Discard, Retry, Snooze
from holdfast.errors import (
    Contention,
    Invalid,
    LeaseLost,
    NonDeterministic,
    OutcomeUnknown,
    StepOutcomeUnknown,
    Unavailable,
)
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.model.job import RetryRule
from holdfast.model.outcome import BackendUnavailable, CancelledByHandler, Crashed, Failed, Failure, Snoozed, Succeeded
from holdfast.model.time import Instant, seconds
from holdfast.policy.lifecycle import SUSPECT_GROUP_SIZES, settle
from tests.unit.worker.conftest import a_job

SECRET = "hunter2-canary"


@pytest.fixture
def outcome(app, runner):
    """Run a function as the handler of a job and return the outcome."""

    async def run(function, payload=None, **options):
        app.job(name="work", **options)(function)
        made = runner()
        job = a_job(payload=payload)
        call = made.call(job)
        return await made.run(job, call, made.context(job, call, None))

    return run


def both_ways(function):
    """Return the function itself and an `async` version of it."""

    async def coroutine():
        return function()

    return [function, coroutine]


async def test_a_result_is_stored_as_json(outcome):
    def work() -> dict[str, list[int]]:
        return {"sent": [1, 2]}

    assert await outcome(work) == Succeeded(b'{"sent":[1,2]}')


async def test_a_coroutine_gets_its_arguments(outcome):
    async def work(user: int, *, greeting: str = "hello") -> str:
        return f"{greeting} {user}"

    assert await outcome(work, {"user": 42}) == Succeeded(b'"hello 42"')


async def test_a_handler_without_a_result_stores_null(outcome):
    async def work() -> None:
        return None

    assert await outcome(work) == Succeeded(b"null")


@pytest.mark.parametrize(
    "value", [object(), {1, 2, object()}, "lone \ud800 surrogate", float], ids=["object", "set", "text", "class"]
)
async def test_a_result_that_json_cannot_represent_is_not_retried(outcome, value):
    """F36: another attempt would return the same value."""

    async def work():
        return value

    failed = await outcome(work)
    assert isinstance(failed, Failed)
    assert (failed.failure.kind, failed.retryable) == ("ResultNotJson", False)


async def test_a_result_that_contains_itself_is_not_retried(outcome):
    """F36"""

    async def work():
        loop = []
        loop.append(loop)
        return loop

    failed = await outcome(work)
    assert (failed.failure.kind, failed.retryable) == ("ResultNotJson", False)


async def test_a_result_that_is_too_large_is_truncated_and_marked(outcome):
    """F36: the job succeeds, and its row stays small."""

    async def work() -> str:
        return "x" * (8 * MAX_RESULT_BYTES)

    done = await outcome(work)
    assert isinstance(done, Succeeded)
    kept = msgspec.json.decode(done.result)
    assert (kept["truncated"], kept["bytes"]) == (True, 8 * MAX_RESULT_BYTES + 2)
    assert len(done.result) < 2_000


@pytest.mark.parametrize(
    "raised, expected",
    [
        (Snooze("5m"), Snoozed(seconds(300))),
        (Cancel("no longer wanted"), CancelledByHandler("no longer wanted")),
        (Cancel(f"password={SECRET}"), CancelledByHandler("password=***")),
    ],
    ids=["snooze", "cancel", "cancel, secret"],
)
@pytest.mark.parametrize("way", [0, 1], ids=["thread", "loop"])
async def test_a_control_exception_sets_the_outcome(outcome, raised, expected, way):
    def work():
        raise raised

    assert await outcome(both_ways(work)[way]) == expected


@pytest.mark.parametrize(
    "raised, retryable, retry_in",
    [(Retry(in_="30s"), True, seconds(30)), (Retry(), True, None), (Discard("useless"), False, None)],
    ids=["retry in", "retry", "discard"],
)
async def test_an_exception_sets_retry_and_delay(outcome, raised, retryable, retry_in):
    async def work():
        raise raised

    failed = await outcome(work)
    assert (failed.retryable, failed.retry_in) == (retryable, retry_in)


@pytest.mark.parametrize(
    "raised",
    [
        StepOutcomeUnknown("an earlier attempt started step 'pay'"),
        NonDeterministic("another statement"),
        Invalid("step 'k' was used before in this attempt", pointer="/step"),
    ],
    ids=["unknown", "not deterministic", "step used twice"],
)
async def test_an_error_that_every_attempt_would_repeat_is_not_retried(outcome, raised):
    """F02: the step records do not change, so another attempt would only repeat what comes before."""

    async def work():
        raise raised

    failed = await outcome(work)
    assert not failed.retryable
    assert failed.failure.message == str(raised)


@pytest.mark.parametrize(
    "raised",
    [
        Unavailable("no free connection"),
        Contention("a deadlock persisted"),
        OutcomeUnknown("the connection broke during the commit"),
        ExceptionGroup("of two steps", [Unavailable("away"), ExceptionGroup("inner", [Contention("busy")])]),
    ],
    ids=["unavailable", "contention", "outcome unknown", "group"],
)
@pytest.mark.parametrize("way", [0, 1], ids=["thread", "loop"])
async def test_trouble_of_the_engines_own_database_is_no_failure_of_the_handler(outcome, raised, way):
    """F08: it uses no attempt, whatever call of the context raised it."""

    def work():
        raise raised

    ended = await outcome(both_ways(work)[way])
    assert isinstance(ended, BackendUnavailable)
    assert ended.failure.message == str(raised)


async def test_an_exception_group_with_an_error_of_the_handler_is_a_failure(outcome):
    async def work():
        raise ExceptionGroup("of two steps", [Unavailable("away"), ValueError("no such user")])

    assert isinstance(await outcome(work), Failed)


async def test_an_invalid_submission_by_a_handler_is_an_ordinary_failure(outcome):
    async def work():
        raise Invalid("queue: too long", pointer="/queue")

    assert (await outcome(work)).retryable


async def test_a_crash_suspect_runs_in_a_job_process_until_it_is_replayed(app, runner):
    """P04: neither can it crash another job, nor another job it."""
    app.job(name="work")(_nothing)
    made = runner(processes=object())
    crashed = settle(a_job(), Crashed("signal SIGSEGV"), now=Instant(0), default=RetryRule(), rand=0.5).attempt_log
    failed = settle(a_job(), _failed("crashed"), now=Instant(0), default=RetryRule(), rand=0.5).attempt_log
    assert made.call(a_job()).place == "loop"
    assert made.call(a_job(attempt_log=failed)).place == "loop"
    assert made.call(a_job(attempt_log=crashed)).place == "process"
    assert made.call(a_job(attempt_log=crashed, generation=1)).place == "loop"


async def test_only_coroutines_share_a_job_process_with_other_suspects(app, runner):
    """P04: a thread cannot be stopped without ending the process."""
    sizes = []

    class Elsewhere:
        async def run(self, job, *, group_size, on_start, attempt_logs, entry):
            sizes.append(group_size)
            return Succeeded()

    app.job(name="work")(_nothing)
    app.job(name="thread")(_nothing_plain)
    app.job(name="apart", isolation="process")(_nothing_plain)
    made = runner(processes=Elsewhere())
    log = settle(a_job(), Crashed("signal SIGKILL"), now=Instant(0), default=RetryRule(), rand=0.5).attempt_log
    for kind in ("work", "thread", "apart"):
        job = a_job(kind, attempt_log=log, attempts=2)
        await made.run(job, made.call(job), None)
    assert sizes == [SUSPECT_GROUP_SIZES[0], 1, None]


async def test_a_lost_lease_is_reported_as_such(outcome):
    async def work():
        raise LeaseLost("gone")

    assert (await outcome(work)).failure.kind == "LeaseLost"


async def test_a_payload_that_does_not_match_the_signature_is_not_retried(outcome):
    """F37: the signature changed after the job was submitted."""

    async def work(user: int) -> None:
        pass

    failed = await outcome(work, {"user": "not a number"})
    assert (failed.failure.kind, failed.retryable) == ("InvalidPayload", False)


@pytest.mark.parametrize(
    "raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("odd")], ids=repr
)
@pytest.mark.parametrize("way", [0, 1], ids=["thread", "loop"])
async def test_a_handler_that_tries_to_end_the_program_fails(outcome, raised, way):
    """F30: the worker continues, and the attempt is spent."""

    def work():
        raise raised

    failed = await outcome(both_ways(work)[way])
    assert isinstance(failed, Failed)
    assert failed.retryable
    assert type(raised).__name__ in failed.failure.kind + failed.failure.message


async def test_a_thread_that_raises_stop_iteration_fails_without_hanging(outcome):
    """A future cannot hold StopIteration, so the caller would wait forever."""

    def work():
        next(iter([]))

    assert (await outcome(work)).failure.kind.endswith("HandlerExit")


async def test_a_handler_that_awaits_something_cancelled_fails(outcome):
    """The handler itself was not cancelled, so its slot must not end."""

    async def work():
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        await waiting

    assert (await outcome(work)).failure.kind.endswith("HandlerExit")


async def test_cancelling_the_call_raises_instead_of_returning_an_outcome(outcome):
    async def work():
        await asyncio.Event().wait()

    running = asyncio.create_task(outcome(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    "text",
    [
        f"connect to postgresql://shop:{SECRET}@db/shop failed",
        f"401 for Authorization: Bearer {SECRET}",
        f"{{'api_key': '{SECRET}', 'user': 7}}",
        f"password={SECRET}",
        f"cookie: {SECRET}; path=/",
    ],
)
async def test_secrets_in_an_exception_are_not_stored(outcome, text):
    """T25: neither in the message, nor in the traceback, nor in the cause."""

    async def work():
        raise RuntimeError(f"wrapped: {text}") from ValueError(text)

    failed = await outcome(work)
    assert failed.failure.kind == "RuntimeError"
    assert SECRET not in failed.failure.message
    assert SECRET not in failed.failure.traceback
    assert "***" in failed.failure.message


async def test_a_traceback_shows_lines_but_no_values(outcome):
    """T25: values of local variables are not stored."""

    async def work():
        card = "4111-" + "1111"
        assert card
        raise RuntimeError("declined")

    trace = (await outcome(work)).failure.traceback
    assert "declined" in trace
    assert "test_runner.py" in trace
    assert "4111-1111" not in trace


async def test_the_traceback_of_a_deep_recursion_is_shortened(outcome):
    """F36: the innermost frames are kept."""

    async def work():
        def deeper(n):
            return deeper(n + 1)

        deeper(0)

    failed = await outcome(work)
    assert failed.failure.kind == "RecursionError"
    assert len(failed.failure.traceback) < 20_000


async def test_an_exception_whose_str_fails_is_stored(outcome):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    async def work():
        raise Odd

    failed = await outcome(work)
    assert failed.failure.kind.endswith("Odd")
    assert "str() of the exception raised RuntimeError" in failed.failure.message


async def test_an_unknown_type_has_no_handler_call(runner):
    """F37"""
    assert runner().call(a_job("gone")) is None


async def test_the_fail_rate_makes_attempts_fail(app, runner):
    app.job(name="work")(_nothing)
    made = runner(fail_rate=0.5, rng=iter([0.4, 0.6]).__next__)
    job = a_job()
    results = [await made.run(job, made.call(job), None) for _ in range(2)]
    assert [type(result) for result in results] == [Failed, Succeeded]
    assert results[0].failure.kind == "FailedOnPurpose"


async def test_a_job_with_process_isolation_is_passed_to_the_process_pool(app, runner):
    @dataclasses.dataclass
    class Elsewhere:
        seen: list

        async def run(self, job, *, group_size, on_start, attempt_logs, entry):
            self.seen.append(job)
            return Crashed("signal SIGSEGV")

    app.job(name="work", isolation="process")(_nothing_plain)
    elsewhere = Elsewhere([])
    made = runner(processes=elsewhere)
    job = a_job()
    assert await made.run(job, made.call(job), None) == Crashed("signal SIGSEGV")
    assert elsewhere.seen == [job]


def _failed(message):
    return Failed(Failure("RuntimeError", message))


async def _nothing() -> None:
    pass


def _nothing_plain() -> None:
    sys.getrefcount(None)
