"""Query plans of hot statements on MySQL and MariaDB: see `test_plans.py`."""

from typing import NamedTuple

import pytest

from tests.dialects.many_jobs import HOT, console, held, million, pytest_generate_tests, store, undoing

__all__ = ["console", "held", "million", "pytest_generate_tests", "store"]


class ExplainingConnection:
    """Connection that explains each statement before it runs."""

    def __init__(self, connection):
        self.steps = []
        self._connection = connection

    async def send(self, *statements):
        results = []
        for statement in statements:
            if statement.lstrip("(").startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
                (shown,) = await self._connection.send(f"EXPLAIN {statement}")
                self.steps += [planned(row) for row in shown.rows if row[1] != "INSERT"]
            results += await self._connection.send(statement)
        return results

    def __getattr__(self, name):
        return getattr(self._connection, name)


class PlanStep(NamedTuple):
    table: str
    kind: str
    key: str | None
    extra: str


def planned(row):
    """Row of EXPLAIN; MySQL has two more columns than MariaDB."""
    kind, key = (row[4], row[6]) if len(row) == 12 else (row[3], row[5])
    return PlanStep(row[2] or "", kind or "", key, row[-1] or "")


async def steps_for(store, work):
    async def shown(tx):
        explaining = tx._connection = ExplainingConnection(tx._connection)
        await work(tx)
        await tx.now()  # sends the deferred statements too
        return explaining.steps

    return await undoing(store, shown)


async def rows_for(store, work):
    """Return the number of rows that the server read."""

    async def looked_at(tx):
        (shown,) = await tx.send("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in shown.rows)

    async def counted(tx):
        before = await looked_at(tx)
        await work(tx)
        after = await looked_at(tx)
        itself = await looked_at(tx) - after
        return after - before - itself

    return await undoing(store, counted)


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("name", HOT)
async def test_hot_statements_use_their_index_on_mysql(store, held, name):
    """P34: no scan, which would lock rows of other transactions, and no sort, which would lock every candidate."""
    for step in await steps_for(store, lambda tx: HOT[name].work(tx, held)):
        assert "filesort" not in step.extra
        if step.table and not step.table.startswith("<"):
            assert step.kind not in {"ALL", "index"}, step
            assert step.key in HOT[name].mysql, step


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("name", HOT)
async def test_hot_statements_read_few_rows_on_mysql(store, held, name):
    rows = await rows_for(store, lambda tx: HOT[name].work(tx, held))
    assert rows <= HOT[name].rows + HOT[name].more_on_mysql


@pytest.mark.databases("mysql")
async def test_outdated_statistics_change_no_plan_on_mysql(store, console, held):
    """Statistics lag behind a table that fills and empties."""
    name = await console.value("SELECT DATABASE()")
    mine = f"WHERE database_name = '{name}' AND table_name = 'holdfast_live'"
    await console.run(f"UPDATE mysql.innodb_table_stats SET n_rows = 0, clustered_index_size = 1 {mine}")
    await console.run(f"UPDATE mysql.innodb_index_stats SET stat_value = 1 {mine}")
    await console.run("FLUSH TABLES holdfast_live")
    try:
        for hot in HOT:
            await test_hot_statements_use_their_index_on_mysql(store, held, hot)
    finally:
        await console.run("ANALYZE TABLE holdfast_live")
