"""Query plans on PostgreSQL: hot statements read few rows among many jobs in hundreds of lanes.

Each statement is explained as the store sends it, with its settings and kind of plan. The tests measure rows and pages
instead of time.
"""

import json
from uuid import UUID

import pytest

from holdfast.compose import open_store
from holdfast.model.lane import Lane
from tests.dialects.many_jobs import (
    BATCH,
    HOT,
    JOBS,
    MILLION,
    WORKER,
    console,
    held,
    million,
    pytest_generate_tests,
    store,
    undoing,
)
from tests.support.builders import enter, hold, share
from tests.support.clock import Console

__all__ = ["console", "held", "million", "pytest_generate_tests", "store"]


class Explaining:
    """Connection that explains each statement, then runs it for its result."""

    def __init__(self, connection, *, analyze=True):
        self.plans = []
        self._connection = connection
        self._options = f"ANALYZE {analyze}, BUFFERS {analyze}, FORMAT JSON"

    async def fetch(self, text, *values):
        await self._explain(text, values)
        return await self._connection.fetch(text, *values)

    async def execute(self, text, *values):
        await self._explain(text, values)
        return await self._connection.execute(text, *values)

    async def executemany(self, text, rows):
        for values in rows:
            await self.execute(text, *values)

    async def _explain(self, text, values):
        given = f"({', '.join(map(literal, values))})" if values else ""
        await self._connection.execute(f"PREPARE hot AS {text}")
        (row,) = await self._connection.fetch(f"EXPLAIN ({self._options}) EXECUTE hot {given}")
        await self._connection.execute("DEALLOCATE hot")
        self.plans.append(Plan(json.loads(row[0])[0]["Plan"]))


def literal(value):
    """Return a value as text; EXECUTE converts it to the parameter type."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ", ".join("NULL" if item is None else f'"{plain(item)}"' for item in value) + "}'"
    return f"'{plain(value)}'"


def plain(value):
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value) if isinstance(value, int | UUID) else value.replace("'", "''")


class Plan:
    """Executed plan of a statement on PostgreSQL."""

    def __init__(self, root):
        self.root = root
        self.nodes = list(self._walk(root))
        self.scans = [node for node in self.nodes if node["Node Type"].endswith("Scan")]

    def _walk(self, node):
        yield node
        for child in node.get("Plans", ()):
            yield from self._walk(child)

    @property
    def pages(self):
        return self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"]

    @property
    def rows(self):
        """Number of rows read from our tables."""
        lost = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        return sum(
            node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(field, 0) for field in lost))
            for node in self.scans
            if "Relation Name" in node
        )

    @property
    def sorted_rows(self):
        return sum(node["Actual Loops"] * node["Actual Rows"] for node in self.nodes if "Sort" in node["Node Type"])

    def check_riding(self, indexes):
        """Return True if every table is read by an index condition on these indexes, or by row ids."""
        for node in self.scans:
            if "Relation Name" in node or "Index Name" in node:
                kind = node["Node Type"]
                assert kind in {"Index Scan", "Index Only Scan", "Bitmap Index Scan", "Bitmap Heap Scan", "Tid Scan"}
                if "Index Name" in node:
                    assert node["Index Name"] in indexes
                    assert "Index Cond" in node, f"reads all of {node['Index Name']}"
        assert not {node["Node Type"] for node in self.nodes} & {"Hash Join", "Merge Join"}


AS_IT_IS = "SELECT 1"


def known_as(table, *, rows, pages):
    """Set the statistics of a table and its indexes; rolled back with the transaction."""
    itself = f"'{table}'::regclass"
    return (
        f"DELETE FROM pg_statistic WHERE starelid = {itself}; "
        f"UPDATE pg_class SET reltuples = {rows}, relpages = {pages}, relallvisible = 0 "
        f"WHERE oid = {itself} OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = {itself})"
    )


NO_STATISTICS = known_as("holdfast_live", rows=-1, pages=0)
"""Statistics of a table that was never analyzed."""
ONE_LIMIT = known_as("holdfast_limits", rows=1, pages=1)
"""Statistics from when there was one row: then a full scan looks cheapest."""
KNOWN = {"with statistics": f"{AS_IT_IS}; {ONE_LIMIT}", "without statistics": NO_STATISTICS}


async def plans_of(store, name, held=(), *, before=AS_IT_IS, analyze=True):
    return await plans_for(store, lambda tx: HOT[name].work(tx, held), before=before, analyze=analyze)


async def plans_for(store, work, *, before=AS_IT_IS, analyze=True):
    async def explained(tx):
        await tx._connection.execute(before)
        explaining = tx._connection = Explaining(tx._connection, analyze=analyze)
        await work(tx)
        return explaining.plans

    return await undoing(store, explained)


@pytest.mark.databases("postgres")
@pytest.mark.parametrize("knows", KNOWN)
@pytest.mark.parametrize("name", HOT)
async def test_hot_statements_use_their_index_on_postgresql(store, held, name, knows):
    """P34, F21: as planned for any values."""
    for plan in await plans_of(store, name, held, before=KNOWN[knows]):
        plan.check_riding(HOT[name].postgres)
        assert plan.rows <= HOT[name].rows
        assert plan.sorted_rows <= HOT[name].rows


REGISTER = {
    "of an unknown number": known_as("holdfast_workers", rows=-1, pages=0),
    "of one": known_as("holdfast_workers", rows=1, pages=1),
}
"""Statistics of the workers. With those of a single row, as autovacuum may leave them, all indexes look equal."""


@pytest.mark.databases("postgres")
@pytest.mark.parametrize(
    "register",
    [
        "of an unknown number",
        "of one",
    ],
)
@pytest.mark.parametrize("vacuum", ["VACUUM (ANALYZE)", "VACUUM (ANALYZE, TRUNCATE off)"])
async def test_a_plan_made_while_the_table_was_empty_uses_the_same_index(database_url, vacuum, register):
    """A plan lives as long as its connection, and the table may have filled since."""
    store = await open_store(database_url)
    try:
        async with Console(database_url) as console:
            held = await hold(store, await enter(store), n=BATCH)
            await console.run("DELETE FROM holdfast_live")
            await console.run(f"{vacuum} holdfast_live")
        for name, hot in HOT.items():
            for plan in await plans_of(store, name, held, before=REGISTER[register], analyze=False):
                plan.check_riding(hot.postgres)
    finally:
        await store.aclose()


@pytest.mark.databases("postgres")
async def test_a_claim_of_a_hundred_jobs_reads_few_pages(store, console, held):
    """Each job costs its page, its entries in changed indexes, and its new version; nothing else."""
    pages = await console.value("SELECT relpages FROM pg_class WHERE oid = 'holdfast_live'::regclass")
    for name in ("claim", "claim of one lane"):
        (plan,) = await plans_of(store, name)
        assert plan.nodes[0]["Actual Rows"] == BATCH
        assert plan.pages < 25 * BATCH < pages * (MILLION / JOBS) / 5
    (plan,) = await plans_of(store, "renew")
    assert plan.pages < 50
    (plan,) = await plans_of(store, "settle", held)
    assert plan.pages < 25 * BATCH


@pytest.mark.databases("postgres")
async def test_an_empty_lane_costs_a_claim_few_pages(store):
    async def work(tx):
        explaining = tx._connection = Explaining(tx._connection)
        await tx.claim(
            WORKER, [share(Lane("mail", f"empty-{number}", 0), max_jobs=10) for number in range(100)], 100, None
        )
        return explaining.plans

    (plan,) = await undoing(store, work)
    assert plan.rows < 5
    assert plan.pages < 10 * 100
