"""Counting the unfinished jobs of a tenant does not read waiting jobs of other tenants."""

import pytest

from tests.dialects.many_jobs import JOBS, TENANTS, console, million, pytest_generate_tests, store, undoing
from tests.dialects.test_plans import KNOWN, Explaining
from tests.dialects.test_plans_on_mysql import ExplainingConnection

__all__ = ["console", "million", "pytest_generate_tests", "store"]

OWN = JOBS // TENANTS
"""Number of jobs of each tenant."""
RUNNING = JOBS // 20
"""Number of running jobs of all tenants; PostgreSQL reads all of them."""

COUNTS = {
    "all": (lambda tx: tx.tenant_backlog("t7", 2_000), OWN, OWN),
    "a few": (lambda tx: tx.tenant_backlog("t7", 11), 3 * 11, 11),
    "a queue": (lambda tx: tx.queue_backlogs("t7", ["mail"], 2_000), OWN, OWN),
    "a queue, a few": (lambda tx: tx.queue_backlogs("t7", ["mail"], 11), 2 * 11 + 50, 11),
    "other queues": (lambda tx: tx.queue_backlogs("t7", ["a", "z"], 11), 0, 0),
    "unknown tenant": (lambda tx: tx.tenant_backlog("unknown", 11), 0, 0),
}
"""Counts, and the number of the tenant's jobs that each database reads for them."""

INDEXES = {"holdfast_live_ready", "holdfast_live_held", "holdfast_live_parked_in"}


@pytest.mark.databases("postgres")
@pytest.mark.parametrize("knows", KNOWN)
@pytest.mark.parametrize("name", COUNTS)
async def test_a_count_uses_its_indexes_on_postgresql(store, name, knows):
    """T20, P34"""
    count, own, _ = COUNTS[name]

    async def work(tx):
        await tx._connection.execute(KNOWN[knows])
        explaining = tx._connection = Explaining(tx._connection)
        await count(tx)
        return explaining.plans

    (plan,) = await undoing(store, work)
    assert {node.get("Index Name") for node in plan.scans if "Relation Name" in node} <= INDEXES
    assert plan.rows <= own + RUNNING + 10
    running = [node for node in plan.scans if node.get("Index Name") == "holdfast_live_held"]
    assert sum(node["Actual Loops"] for node in running) <= 1


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("name", COUNTS)
async def test_a_count_uses_the_primary_key_on_mysql(store, name):
    """T20, P34"""
    count, _, own = COUNTS[name]

    async def looked_at(tx):
        (shown,) = await tx.send("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in shown.rows)

    async def work(tx):
        explaining = tx._connection = ExplainingConnection(tx._connection)
        await count(tx)
        tx._connection = explaining._connection
        before = await looked_at(tx)
        await count(tx)
        after = await looked_at(tx)
        return explaining.steps, after - before - (await looked_at(tx) - after)

    steps, rows = await undoing(store, work)
    assert {step.key for step in steps if step.table and not step.table.startswith("<")} == {"PRIMARY"}
    assert rows <= 2 * own + 60


@pytest.mark.databases("mysql", "postgres")
async def test_the_counts_are_correct(store):
    async def work(tx):
        return await tx.tenant_backlog("t7", 5_000), await tx.queue_backlogs("t7", ["mail"], 5_000)

    assert await store.run(work) == (OWN, {"mail": OWN})
