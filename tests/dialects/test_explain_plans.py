"""Explaining a job with many ahead of it looks at as many as are counted, and reads no table of jobs through.

On the jobs of `many_jobs`. What is measured is rows, never time; all is undone.
"""

from typing import NamedTuple
from uuid import UUID

import pytest

from holdfast.engine.jobs.explain import MAX_COUNTED, MAX_TENANTS, read_facts
from holdfast.model.ids import JobId
from holdfast.model.limit import queue_limit
from holdfast.store.postgres.pool import READER
from tests.dialects import many_jobs
from tests.dialects.many_jobs import BATCH, DEEP, HELD, JOBS, PARKED
from tests.dialects.test_plans import KNOWN, plans_for
from tests.dialects.test_plans_on_mysql import rows_for, steps_for

million, store, pytest_generate_tests = many_jobs.million, many_jobs.store, many_jobs.pytest_generate_tests

LIVE = ("holdfast_live", "l", "n")
"""The table of the jobs, as plans name it. Others are empty here or grow with what people set up."""

A_LOOK = MAX_COUNTED + 6 * MAX_TENANTS + 100
"""What is ahead in its lane, the tenants that it shares its queue with, and a few rows besides."""

RUNNING = 3 * JOBS * 5 // 100
"""All that run, of whom there are as many as workers have slots: what a limit does not count yet, and who holds it."""


class Asked(NamedTuple):
    """One of the jobs behind those of all tenants, what it meets, and how many rows may be looked at."""

    number: int
    ahead: int
    full: bool
    most: int | None
    """How many of its queue may run."""
    rows: int


ASKED = {
    "at the end of a deep lane": Asked(PARKED + BATCH + DEEP, MAX_COUNTED, full=False, most=None, rows=A_LOOK),
    "in line for a key": Asked(PARKED - 2, 0, full=True, most=None, rows=100),
    "under a limit that is full": Asked(PARKED + BATCH + DEEP, MAX_COUNTED, full=True, most=1, rows=A_LOOK + RUNNING),
}


def explaining(asked):
    """Read what an explanation is made of, and see that it is about what was meant."""

    async def work(tx):
        if asked.most is not None:
            await tx.set_limit(queue_limit("mail"), asked.most, None, "")
        facts = await read_facts(tx, JobId(UUID(f"00000000-0000-7000-8001-{asked.number:012x}")), None)
        assert facts.ahead.jobs == asked.ahead
        assert any(limit.room <= 0 and limit.holders for limit in facts.limits) is asked.full

    return work


AS_A_READER = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in READER.items())


@pytest.mark.databases("postgres")
@pytest.mark.parametrize("knows", KNOWN)
@pytest.mark.parametrize("what", ASKED)
async def test_an_explanation_reads_no_more_than_it_may_on_postgresql(store, what, knows):
    shown = await plans_for(store, explaining(ASKED[what]), before=f"{KNOWN[knows]}; {AS_A_READER}")
    for plan in shown:
        for node in plan.scans:
            if node.get("Relation Name") in LIVE:
                assert "Index Cond" in node or node.get("Index Name") == HELD, node
    assert sum(plan.rows for plan in shown) <= ASKED[what].rows
    assert sum(plan.sorted_rows for plan in shown) <= 100


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("what", ASKED)
async def test_an_explanation_reads_no_more_than_it_may_on_mysql(store, what):
    for step in await steps_for(store, explaining(ASKED[what])):
        if step.table in LIVE:
            assert step.kind not in {"ALL", "index"}, step
            assert "filesort" not in step.extra, step
    assert await rows_for(store, explaining(ASKED[what])) <= ASKED[what].rows
