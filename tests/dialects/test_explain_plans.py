"""Explaining a job with many jobs ahead of it reads only as many as are counted, and scans no table.

Runs on the dataset of `many_jobs`; measures rows instead of time, and rolls back.
"""

from typing import NamedTuple
from uuid import UUID

import pytest

from holdfast.engine.jobs.explain import MAX_COUNTED_JOBS, MAX_TENANTS, read_facts
from holdfast.model.ids import JobId
from holdfast.model.limit import queue_limit
from holdfast.store.postgres.pool import READER
from tests.dialects import many_jobs
from tests.dialects.many_jobs import BATCH, DEEP, HELD, JOBS, PARKED
from tests.dialects.test_plans import KNOWN, plans_for
from tests.dialects.test_plans_on_mysql import rows_for, steps_for

million, store, pytest_generate_tests = many_jobs.million, many_jobs.store, many_jobs.pytest_generate_tests

LIVE = ("holdfast_live", "l", "n")
"""Name of the jobs table in plans. The other tables are empty or small."""

A_LOOK = MAX_COUNTED_JOBS + 6 * MAX_TENANTS + 100
"""Maximum of rows: jobs ahead in the lane, tenants of the queue, and a few more."""

RUNNING = 3 * JOBS * 5 // 100
"""All running jobs, bounded by worker slots: needed for uncounted jobs and for holders of a limit."""


class Case(NamedTuple):
    """Job at the end of the queue, its obstacle, and the maximum number of rows to read."""

    number: int
    ahead: int
    full: bool
    most: int | None
    """How many of its queue may run."""
    rows: int


ASKED = {
    "at the end of a deep lane": Case(PARKED + BATCH + DEEP, MAX_COUNTED_JOBS, full=False, most=None, rows=A_LOOK),
    "in line for a key": Case(PARKED - 2, 0, full=True, most=None, rows=100),
    "under a limit that is full": Case(
        PARKED + BATCH + DEEP, MAX_COUNTED_JOBS, full=True, most=1, rows=A_LOOK + RUNNING
    ),
}


def explaining(asked):
    """Read the facts of an explanation and check the expected reason."""

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
async def test_an_explanation_reads_a_bounded_number_of_rows_on_postgresql(store, what, knows):
    shown = await plans_for(store, explaining(ASKED[what]), before=f"{KNOWN[knows]}; {AS_A_READER}")
    for plan in shown:
        for node in plan.scans:
            if node.get("Relation Name") in LIVE:
                assert "Index Cond" in node or node.get("Index Name") == HELD, node
    assert sum(plan.rows for plan in shown) <= ASKED[what].rows
    assert sum(plan.sorted_rows for plan in shown) <= 100


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("what", ASKED)
async def test_an_explanation_reads_a_bounded_number_of_rows_on_mysql(store, what):
    for step in await steps_for(store, explaining(ASKED[what])):
        if step.table in LIVE:
            assert step.kind not in {"ALL", "index"}, step
            assert "filesort" not in step.extra, step
    assert await rows_for(store, explaining(ASKED[what])) <= ASKED[what].rows
