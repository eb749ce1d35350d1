"""Batcher: each caller gets one result, after its own item was flushed."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from holdfast.engine import batcher as batcher_module
from holdfast.engine.batcher import Batcher
from holdfast.errors import Unavailable
from tests.support.eventually import eventually

T = TypeVar("T")
Results = Sequence[str | BaseException]


class Database:
    """Scripted database that records its batches and ends a flush when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gates: list[asyncio.Future[Results | None]] = []

    async def flush(self, items: Sequence[int]) -> Results:
        self.batches.append(list(items))
        self.gates.append(asyncio.get_running_loop().create_future())
        results = await self.gates[-1]
        return [f"done {item}" for item in items] if results is None else results

    def finish(self, batch: int, results: Results | None = None) -> None:
        """End a flush, successfully or with these results."""
        self.gates[batch].set_result(results)


@pytest.fixture
def database() -> Database:
    return Database()


async def settle_down() -> None:
    """Run all tasks until they wait for a flush."""
    for _ in range(20):
        await asyncio.sleep(0)


async def start(*calls: Coroutine[Any, Any, T]) -> list[asyncio.Task[T]]:
    tasks = [asyncio.create_task(call) for call in calls]
    await settle_down()
    return tasks


async def test_a_lone_item_is_flushed_at_once(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10)
    await start(batcher.submit(1))

    assert database.batches == [[1]]
    database.finish(0)
    await batcher.drain()


async def test_a_caller_gets_its_result_only_after_its_own_flush(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=1)
    (first, second) = await start(batcher.submit(1), batcher.submit(2))
    assert database.batches == [[1, 2]]
    (third,) = await start(batcher.submit(3))

    database.finish(0)
    await settle_down()
    assert (first.result(), second.result(), third.done()) == ("done 1", "done 2", False)
    database.finish(1)
    assert await third == "done 3"


async def test_items_that_arrive_during_a_flush_share_the_next_one(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=100, width=1)
    await start(batcher.submit(0))
    await start(*(batcher.submit(n) for n in range(1, 51)))
    assert database.batches == [[0]]

    database.finish(0)
    await settle_down()
    assert database.batches == [[0], list(range(1, 51))]
    database.finish(1)
    await batcher.drain()


async def test_a_batch_has_a_maximum_size(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=1)
    await start(batcher.submit(0))
    calls = await start(*(batcher.submit(n) for n in range(1, 26)))
    for batch in range(4):
        database.finish(batch)
        await settle_down()

    assert [len(batch) for batch in database.batches] == [1, 10, 10, 5]
    assert [await call for call in calls] == [f"done {n}" for n in range(1, 26)]


async def test_at_most_two_flushes_run_concurrently(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=2)
    for n in range(5):
        await start(batcher.submit(n))

    assert database.batches == [[0], [1]]
    database.finish(0)
    await settle_down()
    assert database.batches == [[0], [1], [2, 3, 4]]
    for batch in (1, 2):
        database.finish(batch)
    await batcher.drain()


async def test_another_flush_starts_when_as_many_items_wait_as_are_in_flight(database: Database) -> None:
    """Half of the callers prepare new items while the other half is flushed."""
    batcher = Batcher(database.flush, max_batch_size=100, width=3)
    await start(*(batcher.submit(n) for n in range(4)))
    for n in range(4, 7):
        await start(batcher.submit(n))
    assert database.batches == [[0, 1, 2, 3]]
    await start(batcher.submit(7))
    assert database.batches == [[0, 1, 2, 3], [4, 5, 6, 7]]
    await start(*(batcher.submit(n) for n in range(8, 12)))
    assert len(database.batches) == 2

    database.finish(0)  # four items are still in flight, and four wait
    await settle_down()
    assert database.batches[2:] == [[8, 9, 10, 11]]
    for batch in (1, 2):
        database.finish(batch)
    await batcher.drain()


async def test_waiting_items_are_flushed_when_the_only_flush_ends(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=100, width=3)
    await start(*(batcher.submit(n) for n in range(4)))
    (late,) = await start(batcher.submit(4))
    database.finish(0)
    await settle_down()

    assert database.batches[1:] == [[4]]
    database.finish(1)
    assert await late == "done 4"


async def test_items_wait_only_briefly_for_a_stuck_flush(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example behind a lock: a few waiting items are flushed after a short time."""
    monkeypatch.setattr(batcher_module, "MAX_FLUSH_DELAY_S", 0.001)
    batcher = Batcher(database.flush, max_batch_size=100, width=2)
    await start(*(batcher.submit(n) for n in range(4)))
    (late,) = await start(batcher.submit(4))

    async def left() -> bool:
        return database.batches[1:] == [[4]]

    await eventually(left)
    database.finish(1)
    assert await late == "done 4"
    database.finish(0)
    await batcher.drain()


async def test_a_burst_larger_than_one_batch_is_flushed_in_several(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=2)
    await start(*(batcher.submit(n) for n in range(25)))

    assert [len(batch) for batch in database.batches] == [10, 10]
    database.finish(0)
    database.finish(1)
    await settle_down()
    database.finish(2)
    await batcher.drain()
    assert [len(batch) for batch in database.batches] == [10, 10, 5]


async def test_an_error_goes_only_to_its_own_caller(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10)
    fine, bad, other = await start(batcher.submit(1), batcher.submit(2), batcher.submit(3))
    database.finish(0, ["done 1", ValueError("two is bad"), "done 3"])

    assert (await fine, await other) == ("done 1", "done 3")
    with pytest.raises(ValueError, match="two is bad"):
        await bad


async def test_a_failed_flush_fails_its_own_callers_and_no_others(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=1)
    one, two = await start(batcher.submit(1), batcher.submit(2))
    (three,) = await start(batcher.submit(3))
    database.gates[0].set_exception(OSError("away"))
    await settle_down()
    database.finish(1)

    for call in (one, two):
        with pytest.raises(OSError, match="away"):
            await call
    assert await three == "done 3"


async def test_the_item_of_a_cancelled_caller_is_not_flushed(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=1)
    (first,) = await start(batcher.submit(1))
    waiting, other = await start(batcher.submit(2), batcher.submit(3))
    waiting.cancel()
    database.finish(0)
    await settle_down()

    assert database.batches == [[1], [3]]
    database.finish(1)
    assert (await first, await other) == ("done 1", "done 3")


async def test_a_caller_cancelled_during_its_flush_does_not_affect_others(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10)
    gone, other = await start(batcher.submit(1), batcher.submit(2))
    gone.cancel()
    await settle_down()
    database.finish(0)

    assert await other == "done 2"


async def submit_repeatedly(submit: Callable[[int], Awaitable[str]], times: int) -> list[str]:
    return [await submit(n) for n in range(times)]


@pytest.mark.parametrize("width", [1, 2, 3])
async def test_a_caller_that_submits_again_at_once_is_served(database: Database, width: int) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=width)
    (caller,) = await start(submit_repeatedly(batcher.submit, 5))
    for batch in range(5):
        database.finish(batch)
        await settle_down()

    assert caller.result() == [f"done {n}" for n in range(5)]


async def test_the_last_item_of_a_burst_is_flushed_when_two_flushes_end_together(database: Database) -> None:
    """It arrives after both flushes ended, and no item follows."""
    batcher = Batcher(database.flush, max_batch_size=10, width=2)
    (eager,) = await start(submit_repeatedly(batcher.submit, 2))
    (other,) = await start(batcher.submit(9))
    database.finish(0)
    database.finish(1)
    await settle_down()

    assert database.batches == [[0], [9], [1]]
    database.finish(2)
    assert (await eager, await other) == (["done 0", "done 1"], "done 9")


async def test_every_item_of_any_mix_of_callers_is_flushed() -> None:
    flushed: list[int] = []

    async def flush(items: Sequence[int]) -> Sequence[int]:
        for _ in range(len(items) % 5):
            await asyncio.sleep(0)
        flushed.extend(items)
        return items

    batcher = Batcher(flush, max_batch_size=7)

    async def caller(number: int) -> None:
        for n in range(number % 9 + 1):
            assert await batcher.submit(number * 100 + n) == number * 100 + n
            for _ in range((number + n) % 4):
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(60):
            group.create_task(caller(number))
    assert sorted(flushed) == [number * 100 + n for number in range(60) for n in range(number % 9 + 1)]


async def test_drain_waits_for_items_in_flight_and_for_waiting_items(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10, width=1)
    calls = await start(batcher.submit(1))
    calls += await start(batcher.submit(2))
    draining = asyncio.create_task(batcher.drain())
    await settle_down()
    assert not draining.done()

    database.finish(0)
    await settle_down()
    assert not draining.done()
    database.finish(1)
    await draining
    assert [call.result() for call in calls] == ["done 1", "done 2"]


async def test_a_flush_that_returns_too_few_results_fails_every_caller(database: Database) -> None:
    batcher = Batcher(database.flush, max_batch_size=10)
    calls = await start(batcher.submit(1), batcher.submit(2))
    database.finish(0, ["done 1"])
    await settle_down()

    assert all(call.done() for call in calls)
    with pytest.raises(Exception):  # noqa: B017, PT011 - the type of the error is not part of the contract
        await calls[1]


async def test_items_that_arrive_together_set_no_timer(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches grow with the latency of the database, not by a timer."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a timer was set")

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", refuse)
    monkeypatch.setattr(loop, "call_at", refuse)
    batcher = Batcher(database.flush, max_batch_size=10)
    calls = await start(*(batcher.submit(n) for n in range(3)))
    database.finish(0)

    assert [await call for call in calls] == ["done 0", "done 1", "done 2"]


async def test_items_that_waited_long_for_a_failed_flush_are_rejected_untried(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F21: a locked table is answered within seconds, however many callers wait; younger items are tried."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    batcher = Batcher(database.flush, max_batch_size=1, width=1)
    first, second, third = await start(*(batcher.submit(n) for n in range(3)))
    now = batcher_module.MAX_WAIT_S + 1
    (late,) = await start(batcher.submit(3))
    database.finish(0, [Unavailable("locked")])
    await settle_down()
    assert database.batches == [[0], [3]]
    database.finish(1)
    assert await late == "done 3"
    for call in (first, second, third):
        with pytest.raises(Unavailable):
            await call


async def test_items_that_waited_long_are_flushed_if_the_database_only_is_slow(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    batcher = Batcher(database.flush, max_batch_size=1, width=1)
    calls = await start(*(batcher.submit(n) for n in range(2)))
    now = batcher_module.MAX_WAIT_S + 1
    database.finish(0)
    await settle_down()
    database.finish(1)
    assert [await call for call in calls] == ["done 0", "done 1"]
