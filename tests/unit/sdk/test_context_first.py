"""Handlers whose first parameter is the context: callers leave it out."""

import asyncio

import pytest

from holdfast import Context, Invalid, SyncContext
from tests.unit.worker.conftest import a_job


@pytest.fixture
def charge(app):
    @app.job
    async def charge(ctx: Context, order_id: int, *, loud: bool = False) -> int:
        return order_id + (ctx.attempt if loud else 0)

    return charge


@pytest.fixture
def resize(app):
    @app.job
    def resize(ctx: SyncContext, width: int) -> int:
        return width if width < 100 else ctx.attempt

    return resize


def test_enqueue_takes_the_arguments_after_the_context(charge, resize):
    assert charge.enqueue(42, loud=True).job().payload == {"order_id": 42, "loud": True}
    assert resize.enqueue(width=7).job().payload == {"width": 7}
    assert [handle.job().payload for handle in resize.enqueue_many([(1,), {"width": 2}])] == [
        {"width": 1},
        {"width": 2},
    ]


def test_enqueue_refuses_a_context(charge):
    with pytest.raises(Invalid, match="'ctx' is passed by the worker: leave it out"):
        charge.enqueue(42, ctx=None)


async def test_a_direct_call_may_leave_the_context_out(charge, resize):
    assert await charge(42) == 42
    assert resize(7) == 7
    with pytest.raises(AttributeError, match="only a worker passes a context"):
        await charge(42, loud=True)


async def test_a_direct_call_may_pass_a_context(charge, resize):
    context = Context(a_job(attempts=3), None)
    assert await charge(context, 42, loud=True) == 45
    assert await charge(42, loud=True, ctx=context) == 45
    assert resize(SyncContext(context, asyncio.get_running_loop()), 100) == 3


def test_the_schema_does_not_contain_the_context(charge):
    assert '"ctx"' not in charge.handler.arguments.schema()
