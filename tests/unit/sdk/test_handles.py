"""Handles: wait for a result, cancel, retry."""

import asyncio
from dataclasses import dataclass
from uuid import UUID

import pytest

from holdfast import Invalid, JobCancelled, JobFailed, Misconfigured, ResultTooLarge, Status, WaitTimeout
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.model.outcome import CancelledByHandler, Failed, Failure, Succeeded
from holdfast.worker.running.runner import outcome_of_result

BROKEN = Failed(Failure("ValueError", "no such user"), retryable=False)


@dataclass
class Account:
    id: UUID
    email: str


ANN = Account(UUID(int=7), "ann@example.org")
ANN_AS_JSON = {"id": str(ANN.id), "email": ANN.email}
RESULT = Succeeded(b'{"id":"00000000-0000-0000-0000-000000000007","email":"ann@example.org"}')


@pytest.fixture
def load(app):
    @app.job
    def load(user_id: int) -> Account:
        return ANN

    return load


def test_wait_returns_the_result_as_the_return_annotation(app, load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(RESULT)
    assert handle.wait() == ANN
    assert handle.status() is Status.SUCCEEDED
    assert load.handle(handle.id).wait(timeout=0) == ANN
    assert app.handle(handle.id).wait() == ANN_AS_JSON


async def test_async_wait_returns_once_there_is_a_result(app, load, by_hand):
    async with app:
        handle = await load.aenqueue(1)
        waiting = asyncio.create_task(handle.wait(timeout="1m"))
        await asyncio.sleep(0)
        assert not waiting.done()
        await by_hand.settle(RESULT)
        assert await waiting == ANN
        assert await app.ahandle(handle.id).wait() == ANN_AS_JSON


def test_wait_blocks_in_another_thread(app, load, by_hand):
    from concurrent.futures import ThreadPoolExecutor

    handle = load.enqueue(1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.wait, "1m")
        by_hand.settle_now(RESULT)
        assert waiting.result() == ANN


def test_waiting_for_a_dead_job_raises_its_last_error(load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(BROKEN)
    with pytest.raises(JobFailed, match="is dead after 1 attempt: ValueError: no such user") as raised:
        handle.wait()
    error = raised.value
    assert (error.kind, error.message, error.attempts) == ("ValueError", "no such user", 1)
    assert error.job_id == str(handle.id)


async def test_async_waiting_for_a_dead_job_raises_its_last_error(app, load, by_hand):
    async with app:
        handle = await load.aenqueue(1)
        await by_hand.settle(BROKEN)
        with pytest.raises(JobFailed):
            await handle.wait()


def test_waiting_for_a_cancelled_job_raises_the_reason(load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(CancelledByHandler("the account is gone"))
    with pytest.raises(JobCancelled) as raised:
        handle.wait()
    assert raised.value.reason == "the account is gone"


def test_wait_times_out_while_the_job_continues(load):
    handle = load.enqueue(1)
    with pytest.raises(WaitTimeout, match="is still ready"):
        handle.wait(timeout=0)
    with pytest.raises(TimeoutError):
        handle.wait(timeout="1ms")
    assert handle.status() is Status.READY
    with pytest.raises(Invalid, match="not a duration"):
        handle.wait(timeout="soon")


def test_a_handle_cancels_and_retries_its_job(load, by_hand):
    handle = load.enqueue(1)
    assert handle.cancel("not needed")
    assert not handle.cancel()
    with pytest.raises(JobCancelled, match="not needed"):
        handle.wait()
    assert handle.retry()
    assert not handle.retry()
    by_hand.settle_now(RESULT)
    assert not handle.cancel()
    assert handle.wait() == ANN


async def test_an_async_handle_cancels_and_retries_its_job(app, load):
    async with app:
        handle = await load.aenqueue(1)
        assert await handle.cancel()
        assert not await handle.cancel()
        with pytest.raises(JobCancelled, match="cancelled by the application"):
            await handle.wait()
        assert await handle.retry()
        assert await handle.status() is Status.READY


def test_waiting_for_a_result_that_was_too_large_says_so(app, load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(outcome_of_result("x" * (MAX_RESULT_BYTES - 1)))
    for waiting in (handle.wait, app.handle(handle.id).wait):
        with pytest.raises(ResultTooLarge, match="result of 262,145 bytes exceeds the limit of 262,144") as raised:
            waiting()
    assert (raised.value.size, raised.value.job_id) == (MAX_RESULT_BYTES + 1, str(handle.id))
    assert handle.status() is Status.SUCCEEDED


def test_a_result_that_looks_truncated_is_returned(app, load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(Succeeded(b'{"truncated":true,"bytes":7,"head":"abc"}'))
    assert app.handle(handle.id).wait() == {"truncated": True, "bytes": 7, "head": "abc"}


def test_a_job_that_returns_what_json_cannot_represent_is_rejected_when_it_is_declared(app):
    class Connection:
        pass

    def connect() -> Connection:
        return Connection()

    with pytest.raises(Misconfigured, match="'connect' returns a Connection, which JSON cannot represent"):
        app.job(connect)


def test_a_result_that_does_not_match_the_annotation_is_rejected(load, by_hand):
    handle = load.enqueue(1)
    by_hand.settle_now(Succeeded(b'{"id":7}'))
    with pytest.raises(Invalid, match="does not match the return type of 'load'") as raised:
        handle.wait()
    assert raised.value.pointer == "/result"


def test_a_job_without_a_result_returns_none(app, by_hand):
    @app.job
    def work() -> None:
        pass

    handle = work.enqueue()
    by_hand.settle_now(Succeeded(b"null"))
    assert handle.wait() is None


def test_handles_of_one_job_are_equal(load, app):
    handle = load.enqueue(1)
    assert handle == app.handle(handle.id)
    assert len({handle, app.handle(handle.id), load.enqueue(1)}) == 2
    assert handle != app.ahandle(handle.id)
    assert str(handle.id) in repr(handle)
