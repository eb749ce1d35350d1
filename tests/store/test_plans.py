"""With many unfinished jobs in hundreds of lanes, what runs all the time looks at no more than what was asked for.

How many is more than any statement may look at by far; a million with HOLDFAST_LONG_TESTS=1.

Each statement is looked at as the store itself sends it, with the settings and the kind of plan it has there. What is
measured is rows and pages, never time. All tests undo what they do: the processes of a run share the database.
"""

import asyncio
import fcntl
import json
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from msgspec import structs

from holdfast.compose import open_store
from holdfast.model.ids import WorkerId
from holdfast.model.job import Held
from holdfast.model.lane import Lane
from holdfast.model.limit import QUEUE_SLOT, TENANT_SLOT, Limit, queue_limit, tenant_limit
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from tests.support.builders import Undone, a_move, enter, hold, share
from tests.support.clock import Console
from tests.support.databases import DATABASES
from tests.support.long import LONG
from tests.support.plugin import dialects

MILLION = 1_000_000
JOBS = MILLION if LONG else 100_000
TENANTS = 1_000 if LONG else 500
DEAD, WORKER = WorkerId(1), WorkerId(2)
"""Of five workers who hold a hundredth of the jobs each, one whose lease ran out and another."""

LANES = [Lane("mail", f"t{number}", 0) for number in range(TENANTS)]
BATCH = 100
PARKED = JOBS // 8
"""Jobs of one more tenant that wait for two concurrency keys, of which one is held; behind them, a batch with none."""
KEYED = Lane("mail", "keyed", 0)
DEEP = JOBS // 8
"""Ready jobs of yet another, behind all the others in the table."""


# The data


def pytest_generate_tests(metafunc):
    if "million" in metafunc.fixturenames:
        names = [name for name in dialects(metafunc) if name in DATABASES]
        metafunc.parametrize("million", names, indirect=True, ids=names, scope="module")


@pytest.fixture(scope="module")
def million(request, run):
    """The URL of a database with so many jobs, made once for all processes of the run."""
    server = run.server(request.param)
    with (run.servers.folder / f"million-{request.param}").open("a+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        note.seek(0)
        url = note.read()
        if not url:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                url = runner.run(_make(request.param, server.url, f"{run.prefix}million"))
            note.write(url)
    return url


@pytest.fixture
async def store(million):
    opened = await open_store(million)
    yield opened
    await opened.aclose()


@pytest.fixture
async def console(million):
    async with Console(million) as opened:
        yield opened


@pytest.fixture
async def held(store):
    """Jobs that the worker holds, as they were read."""
    return await store.run(lambda tx: tx.held_by(WORKER, BATCH))


async def _make(dialect, server_url, name):
    async with DATABASES[dialect](server_url, name) as database:
        await database.migrate()
        async with Console(database.url) as console:
            for statement in FILL[dialect]:
                await console.run(statement)
        return database.url


def _jobs(numbers, nth):
    """Of each hundred jobs of a tenant 84 are ready, 5 run, 5 are scheduled, 4 wait for another try, and 2 for others.

    Half of those that wait for another try are due.
    """
    return f"""
        SELECT n, CASE WHEN {nth} < 84 THEN 0 WHEN {nth} < 89 THEN 1 WHEN {nth} < 94 THEN 5 WHEN {nth} < 98 THEN 6
                       ELSE 7 END AS status,
          CASE WHEN {nth} BETWEEN 84 AND 88 THEN {nth} - 83 END AS worker,
          CASE WHEN {nth} BETWEEN 89 AND 95 THEN 4000000000000000 + n WHEN {nth} IN (96, 97) THEN 1000 + n END AS at
        FROM {numbers}"""


_WORKERS = (
    "INSERT INTO holdfast_workers (id, name, host, pid, version, queues, slots, started_at, expires_at) VALUES "
    + ", ".join(f"({n}, 'w', 'h', 1, '0', 'mail', 10, 1, {1 if n == DEAD else 4 * 10**15})" for n in range(1, 6))
)


def _digits(many=10):
    return "(" + " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(many)) + ")"


_DIGITS = _digits()
_NUMBERS = f"""
    (SELECT c.d + 10 * b.d + 100 * a.d + 1000 * f.d + 10000 * e.d + 100000 * d.d AS n
     FROM {_DIGITS} a STRAIGHT_JOIN {_DIGITS} b STRAIGHT_JOIN {_DIGITS} c
       STRAIGHT_JOIN {_digits(JOBS // 100_000)} d STRAIGHT_JOIN {_DIGITS} e STRAIGHT_JOIN {_DIGITS} f) AS numbers"""

# In the order of the table, so that it takes seconds: on PostgreSQL of arrival, on MySQL tenant by tenant.
_POSTGRES_JOBS = f"""
    INSERT INTO holdfast_live (id, created_at, scheduled_at, started_at, worker, fence, status, attempts, max_attempts,
                               tenant, queue, type, payload)
    SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, at, worker, worker, (status = 1)::int,
           status, 1, 5, 't' || n % {TENANTS}, 'mail', 'send', ''
    FROM ({_jobs(f"generate_series(0, {JOBS - 1}) AS n", nth=f"(n / {TENANTS} % 100)")}) AS j"""
_MYSQL_JOBS = f"""
    INSERT INTO holdfast_live (id, created_at, scheduled_at, started_at, worker, fence, status, attempts, max_attempts,
                               tenant, queue, type, payload, priority, seq, parked, due)
    SELECT UNHEX(CONCAT('00000000000070008000', LPAD(HEX(n), 12, '0'))), 1, at, COALESCE(worker, 0),
           COALESCE(worker, 0), status = 1, status, 1, 5, CONCAT('t', MOD(n, {TENANTS})), 'mail', 'send', '', 0, 1 + n,
           status >= 5, IF(status < 5, 0, COALESCE(at, 9223372036854775807))
    FROM ({_jobs(_NUMBERS, nth=f"MOD(n DIV {TENANTS}, 100)")}) AS j"""
_KEYED = f"""
    SELECT n, CASE WHEN n > {PARKED + BATCH} THEN 'deep' ELSE 'keyed' END AS tenant,
      CASE WHEN n < {PARKED} THEN 8 WHEN n = {PARKED} THEN 1 ELSE 0 END AS status,
      CASE WHEN n = {PARKED} THEN 3 END AS worker,
      CASE WHEN n > {PARKED} THEN NULL WHEN n % 2 = 0 THEN 'full' ELSE 'free' END AS concurrency_key"""
_POSTGRES_KEYED = f"""
    INSERT INTO holdfast_live (id, created_at, started_at, worker, fence, status, attempts, max_attempts, tenant, queue,
                               type, payload, concurrency_key)
    SELECT ('00000000-0000-7000-8001-' || lpad(to_hex(n), 12, '0'))::uuid, 1, worker, worker, (status = 1)::int, status,
           1, 5, tenant, 'mail', 'send', '', concurrency_key
    FROM ({_KEYED} FROM generate_series(0, {PARKED + BATCH + DEEP}) AS n) AS j"""
_MYSQL_KEYED = f"""
    INSERT INTO holdfast_live (id, created_at, started_at, worker, fence, status, attempts, max_attempts, tenant, queue,
                               type, payload, concurrency_key, priority, seq, parked, due)
    SELECT UNHEX(CONCAT('00000000000070008001', LPAD(HEX(n), 12, '0'))), 1, COALESCE(worker, 0), COALESCE(worker, 0),
           status = 1, status, 1, 5, tenant, 'mail', 'send', '', concurrency_key, 0, {1 + JOBS} + n,
           IF(status = 8, 2, 0), 0
    FROM ({_KEYED} FROM {_NUMBERS} WHERE n <= {PARKED + BATCH + DEEP}) AS j ORDER BY n"""
# As if 250 had been claimed at a time.
_MYSQL_CLAIMS = """
    INSERT INTO holdfast_claims (worker, id, fence, look_at, ids)
    SELECT worker, MIN(id), 1, 4000000000000000, GROUP_CONCAT(id ORDER BY id SEPARATOR '')
    FROM holdfast_live WHERE status = 1 GROUP BY worker, (seq - 1) DIV 100000, MOD(seq - 1, 4)"""

FILL = {
    "postgres": [
        "ALTER TABLE holdfast_live SET (autovacuum_enabled = off)",  # what is known of it is up to the tests
        _WORKERS,
        _POSTGRES_JOBS,
        _POSTGRES_KEYED,
        "ANALYZE",
    ],
    "mysql": [
        "SET SESSION tx_isolation = 'READ-COMMITTED'",
        _WORKERS,
        _MYSQL_JOBS,
        _MYSQL_KEYED,
        "SET SESSION group_concat_max_len = 1000000",
        _MYSQL_CLAIMS,
        "ANALYZE TABLE holdfast_live, holdfast_workers, holdfast_claims",
    ],
}


# What runs all the time


class Hot(NamedTuple):
    """A call to the store, the indexes it may ride, and how many rows it may look at."""

    work: Any
    postgres: set[str]
    mysql: set[str]
    rows: int
    more_on_mysql: int = 0


def some(n, jobs=BATCH):
    """Shares of so many lanes that make so many jobs."""
    return [share(lane, quota=jobs // n) for lane in LANES[100 : 100 + n]]


READY, ID, HELD, DUE = "holdfast_live_ready", "holdfast_live_pkey", "holdfast_live_held", "holdfast_live_due"
WORKERS, EXPIRY = "holdfast_workers_pkey", "holdfast_workers_expiry"
LIMITS, TURNS, QUEUED = "holdfast_limits_pkey", "holdfast_live_turns", "holdfast_live_queued"
MY_ID, MY_KEY = "holdfast_live_id", "holdfast_live_key"
A_CLAIM = 250
"""On MySQL what a worker holds is found by what it claimed: a claim is looked at as a whole, each job of it once."""

STEP = Step("charge", StepState.DONE, None)


def limited(job):
    """The job as if it were counted in a limit of its queue and one of its tenant."""
    return structs.replace(job, slots=QUEUE_SLOT | TENANT_SLOT)


async def lock_and_write(tx):
    for name in (queue_limit("mail"), tenant_limit("t1")):
        await tx.set_limit(name, 10, None, "")
    await tx.lock_limits(WORKER, [queue_limit("mail"), tenant_limit("t1"), tenant_limit("t2")])
    await tx.save_limits([Limit(queue_limit("mail"), used=7), Limit(tenant_limit("t1"), used=7)])


def as_held(job):
    return Held(job.id, job.fence, job.worker)


HOT = {
    # Rows are looked at when they are found, when they are locked and when they are written.
    "claim": Hot(
        lambda tx, held: tx.claim(WORKER, some(10), BATCH, None), {READY, WORKERS}, {"PRIMARY", MY_ID}, 4 * BATCH
    ),
    "claim of one lane": Hot(
        lambda tx, held: tx.claim(WORKER, some(1), BATCH, None), {READY, WORKERS}, {"PRIMARY", MY_ID}, 4 * BATCH
    ),
    "claim of some types": Hot(
        lambda tx, held: tx.claim(WORKER, some(10), BATCH, ["send", "sign"]),
        {READY, WORKERS},
        {"PRIMARY", MY_ID},
        4 * BATCH,
    ),
    "claim behind keys that are full": Hot(
        lambda tx, held: tx.claim(WORKER, [share(KEYED, quota=BATCH)], BATCH, None),
        {READY, WORKERS},
        {"PRIMARY", MY_ID},
        4 * BATCH,
    ),
    "pass a turn of a key": Hot(
        lambda tx, held: tx.pass_turns([("keyed", "free")]),
        {LIMITS, TURNS, QUEUED},
        {"PRIMARY", MY_KEY, MY_ID},
        20,
    ),
    "pass no turn of a full key": Hot(
        lambda tx, held: tx.pass_turns([("keyed", "full")]),
        {LIMITS, TURNS, QUEUED},
        {"PRIMARY", MY_KEY, MY_ID},
        20,
    ),
    "settle": Hot(
        lambda tx, held: tx.apply([a_move(job, Status.SUCCEEDED) for job in held]), {ID, LIMITS}, {MY_ID}, 8 * BATCH
    ),
    "settle as dead": Hot(
        lambda tx, held: tx.apply([a_move(job, Status.DEAD) for job in held]), {ID, LIMITS}, {MY_ID}, 8 * BATCH
    ),
    "settle under limits": Hot(
        lambda tx, held: tx.apply([a_move(limited(job), Status.SUCCEEDED) for job in held]),
        {ID, LIMITS},
        {MY_ID, "PRIMARY"},
        9 * BATCH,
    ),
    "lock and write limits": Hot(
        lambda tx, held: lock_and_write(tx), {LIMITS, WORKERS, "holdfast_terms_pkey"}, {"PRIMARY"}, 40
    ),
    "retry": Hot(
        lambda tx, held: tx.apply([a_move(job, Status.RETRYING, delay=seconds(9)) for job in held]),
        {ID},
        {MY_ID},
        8 * BATCH,
    ),
    "hand back": Hot(
        lambda tx, held: tx.apply([a_move(job, Status.READY) for job in held]), {ID}, {MY_ID}, 8 * BATCH
    ),
    "promote": Hot(lambda tx, held: tx.promote(BATCH), {DUE}, {DUE, MY_ID}, 6 * BATCH),
    "expired": Hot(lambda tx, held: tx.expired(10), {EXPIRY}, {EXPIRY}, 10),
    "held by": Hot(lambda tx, held: tx.held_by(DEAD, BATCH), {HELD}, {MY_ID, "PRIMARY"}, 2 * BATCH, A_CLAIM),
    "depart": Hot(lambda tx, held: tx.depart(WORKER), {HELD, WORKERS}, {MY_ID, "PRIMARY"}, 10, A_CLAIM),
    "forget": Hot(lambda tx, held: tx.forget([DEAD]), {HELD, WORKERS}, {MY_ID, "PRIMARY", EXPIRY}, 20, A_CLAIM),
    "renew": Hot(lambda tx, held: tx.renew(WORKER, seconds(15)), {WORKERS}, {"PRIMARY"}, 5),
    "still held": Hot(lambda tx, held: tx.lost([as_held(job) for job in held]), {ID}, {MY_ID}, 2 * BATCH),
    "lanes": Hot(lambda tx, held: tx.lanes(["mail"], TENANTS), {READY}, {"PRIMARY"}, 6 * TENANTS),
    "next due": Hot(lambda tx, held: tx.next_due(), {DUE}, {DUE}, 5),
    "record a step": Hot(
        lambda tx, held: tx.record_step(as_held(held[0]), STEP), {ID}, {MY_ID, "PRIMARY"}, 10
    ),
    "save progress": Hot(lambda tx, held: tx.save_progress(as_held(held[0]), b"{}"), {ID}, {MY_ID}, 10),
}  # fmt: skip


async def undoing(store, work):
    """What the work gives, in a transaction that is undone."""
    seen = []

    async def whole(tx):
        seen.append(await work(tx))
        raise Undone

    with pytest.raises(Undone):
        await store.run(whole)
    return seen[0]


# PostgreSQL


class Explaining:
    """A connection that shows how each statement runs, then runs it again for its answer."""

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
    """A value as text: EXECUTE reads it as the type that the statement wants."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ", ".join("NULL" if each is None else f'"{plain(each)}"' for each in value) + "}'"
    return f"'{plain(value)}'"


def plain(value):
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value) if isinstance(value, int | UUID) else value.replace("'", "''")


class Plan:
    """What a statement did on PostgreSQL."""

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
        """How many rows of our tables were looked at."""
        lost = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        return sum(
            node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(each, 0) for each in lost))
            for node in self.scans
            if "Relation Name" in node
        )

    @property
    def sorted_rows(self):
        return sum(node["Actual Loops"] * node["Actual Rows"] for node in self.nodes if "Sort" in node["Node Type"])

    def check_riding(self, indexes):
        """Every table is looked into by one of these indexes, at given places, or by the places of rows themselves."""
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
    """What is known of a table and its indexes; undone with the transaction."""
    itself = f"'{table}'::regclass"
    return (
        f"DELETE FROM pg_statistic WHERE starelid = {itself}; "
        f"UPDATE pg_class SET reltuples = {rows}, relpages = {pages}, relallvisible = 0 "
        f"WHERE oid = {itself} OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = {itself})"
    )


NO_STATISTICS = known_as("holdfast_live", rows=-1, pages=0)
"""How a table is that was never analysed."""
ONE_LIMIT = known_as("holdfast_limits", rows=1, pages=1)
"""Counted while there was one: then all of them are soonest read, if the statement leaves the choice."""
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
async def test_what_runs_all_the_time_rides_its_index_on_postgresql(store, held, name, knows):
    """P34, F21: as it is planned for any values."""
    for plan in await plans_of(store, name, held, before=KNOWN[knows]):
        plan.check_riding(HOT[name].postgres)
        assert plan.rows <= HOT[name].rows
        assert plan.sorted_rows <= HOT[name].rows


REGISTER = {
    "of nobody knows how many": known_as("holdfast_workers", rows=-1, pages=0),
    "of one": known_as("holdfast_workers", rows=1, pages=1),
}
"""What is known of the workers. Counted while there is one, as autovacuum may, all indexes look equally good."""


@pytest.mark.databases("postgres")
@pytest.mark.parametrize(
    "register",
    [
        "of nobody knows how many",
        "of one",
    ],
)
@pytest.mark.parametrize("vacuum", ["VACUUM (ANALYZE)", "VACUUM (ANALYZE, TRUNCATE off)"])
async def test_a_plan_made_while_the_table_was_empty_is_as_good(database_url, vacuum, register):
    """A statement stays planned for as long as its connection lives, and the table may have filled meanwhile."""
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
async def test_a_claim_of_a_hundred_touches_a_few_pages_of_many_jobs(store, console, held):
    """Each job costs its page, its place in each index it leaves or enters, and its new version; nothing else does."""
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
async def test_an_empty_lane_costs_a_claim_next_to_nothing(store):
    async def work(tx):
        explaining = tx._connection = Explaining(tx._connection)
        await tx.claim(
            WORKER, [share(Lane("mail", f"nobody-{number}", 0), quota=10) for number in range(100)], 100, None
        )
        return explaining.plans

    (plan,) = await undoing(store, work)
    assert plan.rows < 5
    assert plan.pages < 10 * 100


# MariaDB


class ExplainingLink:
    """A connection that shows how each statement is planned before it runs."""

    def __init__(self, link):
        self.steps = []
        self._link = link

    async def send(self, *statements):
        results = []
        for statement in statements:
            if statement.lstrip("(").startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
                (shown,) = await self._link.send(f"EXPLAIN {statement}")
                self.steps += [planned(row) for row in shown.rows if row[1] != "INSERT"]
            results += await self._link.send(statement)
        return results

    def __getattr__(self, name):
        return getattr(self._link, name)


class PlanStep(NamedTuple):
    table: str
    kind: str
    key: str | None
    extra: str


def planned(row):
    """A line of EXPLAIN; MySQL has two columns more than MariaDB."""
    kind, key = (row[4], row[6]) if len(row) == 12 else (row[3], row[5])
    return PlanStep(row[2] or "", kind or "", key, row[-1] or "")


async def steps_for(store, work):
    async def shown(tx):
        explaining = tx._link = ExplainingLink(tx._link)
        await work(tx)
        await tx.now()  # and with it what was held back
        return explaining.steps

    return await undoing(store, shown)


async def rows_for(store, work):
    """How many rows the server looked at for this."""

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
async def test_what_runs_all_the_time_rides_its_index_on_mysql(store, held, name):
    """P34: no scan, which would lock what is others', and no sort, which would lock every candidate."""
    for step in await steps_for(store, lambda tx: HOT[name].work(tx, held)):
        assert "filesort" not in step.extra
        if step.table and not step.table.startswith("<"):
            assert step.kind not in {"ALL", "index"}, step
            assert step.key in HOT[name].mysql, step


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("name", HOT)
async def test_what_runs_all_the_time_looks_at_what_was_asked_for_on_mysql(store, held, name):
    rows = await rows_for(store, lambda tx: HOT[name].work(tx, held))
    assert rows <= HOT[name].rows + HOT[name].more_on_mysql


@pytest.mark.databases("mysql")
async def test_statistics_that_know_nothing_of_the_jobs_change_no_plan_on_mysql(store, console, held):
    """They lag behind a table that fills and empties."""
    name = await console.value("SELECT DATABASE()")
    mine = f"WHERE database_name = '{name}' AND table_name = 'holdfast_live'"
    await console.run(f"UPDATE mysql.innodb_table_stats SET n_rows = 0, clustered_index_size = 1 {mine}")
    await console.run(f"UPDATE mysql.innodb_index_stats SET stat_value = 1 {mine}")
    await console.run("FLUSH TABLES holdfast_live")
    try:
        for hot in HOT:
            await test_what_runs_all_the_time_rides_its_index_on_mysql(store, held, hot)
    finally:
        await console.run("ANALYZE TABLE holdfast_live")
