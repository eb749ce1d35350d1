"""A search in large tables of live, dead and finished jobs reads a bounded number of rows.

The tables have a million rows each with HOLDFAST_LONG_TESTS=1. The tests measure rows instead of time, for any filter.
The jobs of the small tenant are the oldest.
"""

from typing import Any, NamedTuple

import pytest

from holdfast.compose import open_store
from holdfast.model.ids import ids_with_prefix
from holdfast.model.job import JobFilter, Page
from holdfast.model.state import Status
from tests.dialects.many_jobs import FILL, JOBS, made_once
from tests.dialects.test_plans import Explaining
from tests.support.clock import Console
from tests.support.databases import DATABASES
from tests.support.plugin import dialects

MAX_ROWS, PAGE = 1_000, 50

_COLUMNS = (
    "seq, created_at, tenant, queue, type, payload, fence, cost, priority, attempts, max_attempts, releases, generation"
)
_SOME = "seq, created_at, tenant, queue, type, payload, fence, cost, priority, attempts, max_attempts, 0, 0"
_SMALL = "UPDATE holdfast_{} SET tenant = 'small' WHERE id < {}"


def _ended(dialect):
    """Insert as many dead jobs, with twenty errors per tenant, and succeeded jobs."""
    alike = "'e' || seq / 1000 % 20" if dialect == "postgres" else "CONCAT('e', MOD(seq DIV 1000, 20))"
    first = "'00000000-0000-7000-8000-000000000014'" if dialect == "postgres" else "x'00000000000070008000000000000014'"
    for table, status, error in (("dead", 3, alike), ("history", 2, "NULL")):
        yield (
            f"INSERT INTO holdfast_{table} (id, finished_at, status, fingerprint, {_COLUMNS}) "
            f"SELECT id, 1000000000000000 + seq, {status}, {error}, {_SOME} FROM holdfast_live WHERE seq <= {JOBS}"
        )
    for table in ("live", "dead", "history"):
        yield _SMALL.format(table, first)
    yield "UPDATE holdfast_live SET status = 0 WHERE status = 1 AND worker > 1"  # a hundredth of them run
    if dialect == "mysql":
        yield "DELETE FROM holdfast_claims WHERE worker > 1"
    tables = "holdfast_live, holdfast_dead, holdfast_history"
    yield f"VACUUM (ANALYZE) {tables}" if dialect == "postgres" else f"ANALYZE TABLE {tables}"


def pytest_generate_tests(metafunc):
    if "millions" in metafunc.fixturenames:
        names = [name for name in dialects(metafunc) if name in DATABASES]
        metafunc.parametrize("millions", names, indirect=True, ids=names, scope="module")


@pytest.fixture(scope="module")
def millions(request, run):
    """Return the URL of a database with these jobs of each kind, created once per run."""
    return made_once(run, request.param, "millions", _make)


async def _make(dialect, server_url, name):
    async with DATABASES[dialect](server_url, name) as database:
        await database.migrate()
        async with Console(database.url) as console:
            for statement in (*FILL[dialect], *_ended(dialect)):
                await console.run(statement)
        return database.url


@pytest.fixture
async def store(millions):
    opened = await open_store(millions)
    yield opened
    await opened.aclose()


class Search(NamedTuple):
    """Filter, the maximum number of rows to read, and whether the first search must find jobs."""

    where: dict[str, Any]
    rows: int
    finds: bool | None = True


WALK = 2 * MAX_ROWS + 2 * PAGE
"""Rows read per table: once for the window and once for the matches."""
GATHER = 5_000 + 2_000
RUNNING = JOBS // 100

LOOKS = {
    "all": Search({}, 3 * 2 * PAGE),
    "a tenant": Search({"tenant": "t7"}, RUNNING + 3 * GATHER),
    "a small tenant": Search({"tenant": "small"}, RUNNING + 3 * GATHER),
    "a small tenant's ready ones": Search({"tenant": "small", "status": Status.READY}, GATHER),
    "unknown tenant": Search({"tenant": "unknown"}, RUNNING + 3 * GATHER, finds=False),
    "ready ones": Search({"status": Status.READY}, GATHER + WALK, finds=None),
    "running ones": Search({"status": Status.RUNNING}, 2 * RUNNING + WALK),
    "scheduled ones": Search({"status": Status.SCHEDULED}, GATHER + WALK, finds=None),
    "blocked ones of a tenant": Search({"tenant": "t7", "status": Status.BLOCKED}, GATHER),
    "succeeded ones": Search({"status": Status.SUCCEEDED}, WALK),
    "cancelled ones": Search({"status": Status.CANCELLED}, WALK, finds=False),
    "dead ones": Search({"status": Status.DEAD}, 2 * PAGE),
    "dead ones of a tenant": Search({"status": Status.DEAD, "tenant": "t7"}, 2 * PAGE),
    "a type that is not there": Search({"type": "rare"}, 3 * WALK, finds=False),
    "a tag that is not there": Search({"tag": "rare"}, 3 * WALK, finds=False),
    "a queue": Search({"queue": "mail"}, 3 * WALK),
    "an error": Search({"error": "e7"}, WALK, finds=False),
    "an error of a tenant": Search({"error": "e7", "tenant": "t7"}, 2 * PAGE),
    "an error of a small tenant": Search({"error": "e0", "tenant": "small"}, 2 * PAGE),
    "an id": Search({"ids": ids_with_prefix("00000000-0000-7000-8000-000000000100")}, 3 * 2),
    "8 digits that all ids share": Search({"ids": ids_with_prefix("00000000")}, 3 * 2 * PAGE),
    "30 digits that 256 ids share": Search({"ids": ids_with_prefix("00000000-0000-7000-8000-0000000001")}, 3 * 2 * 256),
    "30 digits of ids of a tenant": Search(
        {"ids": ids_with_prefix("00000000-0000-7000-8000-0000000001"), "tenant": "t7"}, WALK + 2 * 2 * PAGE, finds=None
    ),
    "everything at once": Search(
        {"error": "e7", "tenant": "t7", "type": "send", "queue": "mail", "tag": "x"}, WALK, finds=False
    ),
}


def seeking(look):
    return lambda tx: tx.seek(JobFilter(**look.where), Page(PAGE), max_rows=MAX_ROWS)


async def plans_of(store, work):
    async def explained(tx):
        explaining = tx._connection = Explaining(tx._connection)
        return await work(tx), explaining.plans

    return await store.read(explained)


def mapped(plan):
    """Return the number of index entries that were collected before the first row was read."""
    return sum(
        node["Actual Loops"] * node["Actual Rows"] for node in plan.scans if node["Node Type"] == "Bitmap Index Scan"
    )


async def rows_read(store, work):
    async def looked_at(tx):
        (shown,) = await tx.send("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in shown.rows)

    async def counted(tx):
        before = await looked_at(tx)
        found = await work(tx)
        after = await looked_at(tx)
        return found, after - before - (await looked_at(tx) - after)

    return await store.read(counted)


@pytest.mark.databases("postgres")
@pytest.mark.parametrize("what", LOOKS)
async def test_a_search_reads_a_bounded_number_of_rows_on_postgresql(store, what):
    """T21: no table is scanned."""
    found, plans = await plans_of(store, seeking(LOOKS[what]))
    assert LOOKS[what].finds in (None, bool(found.jobs))
    assert sum(plan.rows + mapped(plan) for plan in plans) <= LOOKS[what].rows
    assert sum(plan.sorted_rows for plan in plans) <= LOOKS[what].rows


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("what", LOOKS)
async def test_a_search_reads_a_bounded_number_of_rows_on_mysql(store, what):
    found, rows = await rows_read(store, seeking(LOOKS[what]))
    assert LOOKS[what].finds in (None, bool(found.jobs))
    assert rows <= LOOKS[what].rows + 2 * MAX_ROWS


GROUPS = {"of all": (None, 50), "of one": ("t7", 20), "of a small one": ("small", 1)}


@pytest.mark.databases("postgres", "mysql")
@pytest.mark.parametrize("whose", GROUPS)
async def test_groups_are_found_without_reading_all_dead_letters(store, whose, request):
    """Dead letters of a group are counted up to the requested maximum."""
    tenant, expected = GROUPS[whose]

    async def work(tx):
        return await tx.dead_groups(tenant, None, limit=50, max_count=40)

    if "postgres" in request.node.name:
        groups, plans = await plans_of(store, work)
        rows = sum(plan.rows for plan in plans)
    else:
        groups, rows = await rows_read(store, work)
    assert len(groups) == expected
    assert rows <= expected * (2 * 40 + 20) + 20
