"""Typed uses of job types. Checked by mypy in `test_types.py`, and never run.

A line that must be refused has its error ignored; an error that does not come makes the comment one too many.
"""

from datetime import datetime
from typing import Any, assert_type
from uuid import UUID

from holdfast import CONTEXT, AsyncJobHandle, Context, Holdfast, Job, JobHandle, Retry, Status, SyncContext, Unique

app = Holdfast("sqlite:///x.db")


@app.job
async def plain(user_id: int, name: str = "") -> str:
    return f"{user_id}{name}"


@app.job(queue="mail", retry=Retry(max_attempts=5, base=1, cap="5m"), timeout="30s", isolation="process")
async def with_context(user_id: UUID, *, loud: bool = False, ctx: Context = CONTEXT) -> list[int]:
    assert_type(ctx.job, Job)
    return [ctx.attempt, ctx.fence]


@app.job(name="sum")
def in_thread(*, numbers: list[int], ctx: SyncContext = CONTEXT) -> int:
    assert_type(ctx.job.started_at, datetime | None)
    return sum(numbers) + ctx.attempt


@app.job
def returns_nothing() -> None: ...


@app.job
async def context_required(user_id: int, *, ctx: Context) -> str:
    return str(user_id)


@app.job
async def context_first(ctx: Context, user_id: int, *, loud: bool = False) -> str:
    return f"{user_id}{ctx.attempt}"


@app.job(queue="mail")
def context_first_in_thread(ctx: SyncContext, user_id: int) -> int:
    return user_id + ctx.attempt


@app.job
async def takes_anything(payload: Any) -> str:
    return str(payload)


def sync_code(some_id: UUID) -> None:
    assert_type(context_first.enqueue(1, loud=True), JobHandle[str])
    assert_type(context_first_in_thread.enqueue(1).wait(), int)
    assert_type(context_first_in_thread(1), int)
    takes_anything.enqueue({"a": 1})
    assert_type(plain.enqueue(1), JobHandle[str])
    assert_type(plain.enqueue(user_id=1, name="x").wait(), str)
    assert_type(with_context.enqueue(some_id, loud=True).wait(timeout="5s"), list[int])
    assert_type(in_thread.enqueue(numbers=[1]).wait(), int)
    assert_type(in_thread(numbers=[1]), int)
    assert_type(plain.options(delay="5m", tenant="acme", unique=Unique(within=60)).enqueue(1), JobHandle[str])
    assert_type(plain.enqueue_many([(1,), {"user_id": 2}]), list[JobHandle[str]])
    assert_type(plain.handle("…").wait(), str)
    assert_type(app.handle("…").wait(), Any)
    assert_type(plain.enqueue(1).cancel(reason="x"), bool)
    assert_type(plain.name, str)
    assert_type(plain.enqueue(1).job(), Job)
    assert_type(plain.enqueue(1).job().created_at, datetime)
    assert_type(plain.enqueue(1).job().finished_at, datetime | None)
    assert_type(plain.enqueue(1).job().status, Status)


async def async_code(some_id: UUID) -> None:
    assert_type(await plain.aenqueue(1), AsyncJobHandle[str])
    assert_type(await (await with_context.aenqueue(some_id)).wait(), list[int])
    assert_type(await plain.options(priority=3).aenqueue(1), AsyncJobHandle[str])
    assert_type(await plain.aenqueue_many([(1,)]), list[AsyncJobHandle[str]])
    assert_type(await plain(1), str)
    assert_type(await with_context(some_id, ctx=CONTEXT), list[int])
    async with app as same:
        assert_type(same, Holdfast)


def refused(some_id: UUID) -> None:
    plain.enqueue("1")  # type: ignore[arg-type]
    plain.enqueue()  # type: ignore[call-arg]
    plain.enqueue(1, nonsense=2)  # type: ignore[call-arg]
    plain.options(delay="5m").enqueue("1")  # type: ignore[arg-type]
    plain.options(nonsense=1)  # type: ignore[call-arg]
    plain.options(connection=None)  # type: ignore[call-arg]
    with_context.enqueue(1)  # type: ignore[arg-type]
    in_thread.enqueue([1])  # type: ignore[call-arg]
    number: int = plain.enqueue(1).wait()  # type: ignore[assignment]
    returns_nothing.enqueue(1)  # type: ignore[call-arg]
    returns_nothing.enqueue().wait()
    context_required.enqueue(1)  # type: ignore[call-arg]
    context_first.enqueue("1")  # type: ignore[arg-type]
    context_first.enqueue(CONTEXT, 1)  # type: ignore[arg-type, call-arg]
    context_first_in_thread.enqueue()  # type: ignore[call-arg]
    app.job(queue=5)  # type: ignore[call-overload]
    app.job(isolation="moon")  # type: ignore[call-overload]
    app.nonsense()  # type: ignore[attr-defined]
    assert number


async def refused_async() -> None:
    await plain.aenqueue("1")  # type: ignore[arg-type]
    plain("x")  # type: ignore[arg-type, unused-coroutine]
