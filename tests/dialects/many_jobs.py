"""Dataset of many unfinished jobs in hundreds of lanes, and the hot calls whose plans are tested.

The number is far above what a statement may read; it is a million with HOLDFAST_LONG_TESTS=1. The processes of a run
share the database, so the tests roll back.
"""

import asyncio
import fcntl
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from holdfast.compose import open_store
from holdfast.model.ids import WorkerId
from holdfast.model.job import HeldJob
from holdfast.model.lane import Lane
from holdfast.model.limit import QUEUE_SLOT, TENANT_SLOT, Limit, queue_limit, tenant_limit
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from tests.support.builders import RolledBack, a_transition, share
from tests.support.clock import Console
from tests.support.databases import DATABASES
from tests.support.long import LONG
from tests.support.plugin import dialects

MILLION = 1_000_000
JOBS = MILLION if LONG else 100_000
TENANTS = 1_000 if LONG else 500
DEAD, WORKER = WorkerId(1), WorkerId(2)
"""Two of five workers that each hold a hundredth of the jobs: one with an expired lease, and another."""

LANES = [Lane("mail", f"t{number}", 0) for number in range(TENANTS)]
BATCH = 100
PARKED = JOBS // 8
"""Jobs of another tenant that wait for two concurrency keys, one of them held; then a batch without keys."""
KEYED = Lane("mail", "keyed", 0)
DEEP = JOBS // 8
"""Ready jobs of a third tenant, at the end of the table."""


# The data


def pytest_generate_tests(metafunc):
    if "million" in metafunc.fixturenames:
        names = [name for name in dialects(metafunc) if name in DATABASES]
        metafunc.parametrize("million", names, indirect=True, ids=names, scope="module")


def made_once(run, dialect, name, make):
    """Return the URL of a database that the first process of the run creates."""
    server = run.server(dialect)
    with (run.servers.folder / f"{name}-{dialect}").open("a+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        note.seek(0)
        url = note.read()
        if not url:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                url = runner.run(make(dialect, server.url, f"{run.prefix}{name}"))
            note.write(url)
    return url


@pytest.fixture(scope="module")
def million(request, run):
    """Return the URL of a database with these jobs, created once per run."""
    return made_once(run, request.param, "million", _make)


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
    """Return jobs that the worker holds."""
    return await store.run(lambda tx: tx.held_by(WORKER, BATCH))


async def _make(dialect, server_url, name):
    async with DATABASES[dialect](server_url, name) as database:
        await database.migrate()
        async with Console(database.url) as console:
            for statement in FILL[dialect]:
                await console.run(statement)
        return database.url


def _jobs(numbers, nth):
    """Insert jobs: of a hundred, 84 are ready, 5 run, 5 are scheduled, 4 retry, and 2 are blocked.

    Half of the retries are due.
    """
    return f"""
        SELECT n, CASE WHEN {nth} < 84 THEN 0 WHEN {nth} < 89 THEN 1 WHEN {nth} < 94 THEN 5 WHEN {nth} < 98 THEN 6
                       ELSE 7 END AS status,
          CASE WHEN {nth} BETWEEN 84 AND 88 THEN {nth} - 83 END AS worker,
          CASE WHEN {nth} BETWEEN 89 AND 95 THEN 4000000000000000 + n WHEN {nth} IN (96, 97) THEN 1000 + n END AS at
        FROM {numbers}"""


_WORKERS = (
    "INSERT INTO holdfast_workers (id, name, host, pid, version, queues, slots, started_at, expires_at, lease) VALUES "
    + ", ".join(
        f"({n}, 'w', 'h', 1, '0', 'mail', 10, 1, {1 if n == DEAD else 4 * 10**15}, 15000000)" for n in range(1, 6)
    )
)


def _digits(many=10):
    return "(" + " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(many)) + ")"


_DIGITS = _digits()
_NUMBERS = f"""
    (SELECT c.d + 10 * b.d + 100 * a.d + 1000 * f.d + 10000 * e.d + 100000 * d.d AS n
     FROM {_DIGITS} a STRAIGHT_JOIN {_DIGITS} b STRAIGHT_JOIN {_DIGITS} c
       STRAIGHT_JOIN {_digits(JOBS // 100_000)} d STRAIGHT_JOIN {_DIGITS} e STRAIGHT_JOIN {_DIGITS} f) AS numbers"""

# In the order of the table, so that it takes seconds: by arrival on PostgreSQL, by tenant on MySQL.
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
# As if each claim had taken 250 jobs.
_MYSQL_CLAIMS = """
    INSERT INTO holdfast_claims (worker, id, fence, check_at, ids)
    SELECT worker, MIN(id), 1, 4000000000000000, GROUP_CONCAT(id ORDER BY id SEPARATOR '')
    FROM holdfast_live WHERE status = 1 GROUP BY worker, (seq - 1) DIV 100000, MOD(seq - 1, 4)"""

FILL = {
    "postgres": [
        "ALTER TABLE holdfast_live SET (autovacuum_enabled = off)",  # the tests set the statistics
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


# Hot calls


class Hot(NamedTuple):
    """Call to the store, the indexes it may use, and the maximum number of rows it may read."""

    work: Any
    postgres: set[str]
    mysql: set[str]
    rows: int
    more_on_mysql: int = 0


def some(n, jobs=BATCH):
    """Return shares of this many lanes, with this many jobs in total."""
    return [share(lane, max_jobs=jobs // n) for lane in LANES[100 : 100 + n]]


READY, ID, HELD, DUE = "holdfast_live_ready", "holdfast_live_pkey", "holdfast_live_held", "holdfast_live_due"
WORKERS, EXPIRY = "holdfast_workers_pkey", "holdfast_workers_expiry"
LIMITS, TURNS, QUEUED = "holdfast_limits_pkey", "holdfast_live_key_slots", "holdfast_live_queued"
MY_ID, MY_KEY = "holdfast_live_id", "holdfast_live_key"
A_CLAIM = 250
"""On MySQL, held jobs are found through claims; a claim is read completely, each of its jobs once."""

STEP = Step("charge", StepState.DONE, None)


def limited(job):
    """Return the job as if limits of its queue and tenant counted it."""
    return structs.replace(job, slots=QUEUE_SLOT | TENANT_SLOT)


async def lock_and_write(tx):
    for name in (queue_limit("mail"), tenant_limit("t1")):
        await tx.set_limit(name, 10, None, "")
    await tx.lock_limits(WORKER, [queue_limit("mail"), tenant_limit("t1"), tenant_limit("t2")])
    await tx.save_limits([Limit(queue_limit("mail"), used=7), Limit(tenant_limit("t1"), used=7)])


def as_held(job):
    return HeldJob(job.id, job.fence, job.worker)


HOT = {
    # Rows are read when they are found, locked and written.
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
        lambda tx, held: tx.claim(WORKER, [share(KEYED, max_jobs=BATCH)], BATCH, None),
        {READY, WORKERS},
        {"PRIMARY", MY_ID},
        4 * BATCH,
    ),
    "pass a turn of a key": Hot(
        lambda tx, held: tx.grant_key_slots([("keyed", "free")]),
        {LIMITS, TURNS, QUEUED},
        {"PRIMARY", MY_KEY, MY_ID},
        20,
    ),
    "pass no turn of a full key": Hot(
        lambda tx, held: tx.grant_key_slots([("keyed", "full")]),
        {LIMITS, TURNS, QUEUED},
        {"PRIMARY", MY_KEY, MY_ID},
        20,
    ),
    "settle": Hot(
        lambda tx, held: tx.apply([a_transition(job, Status.SUCCEEDED) for job in held]),
        {ID, LIMITS},
        {MY_ID},
        8 * BATCH,
    ),
    "settle as dead": Hot(
        lambda tx, held: tx.apply([a_transition(job, Status.DEAD) for job in held]), {ID, LIMITS}, {MY_ID}, 8 * BATCH
    ),
    "settle under limits": Hot(
        lambda tx, held: tx.apply([a_transition(limited(job), Status.SUCCEEDED) for job in held]),
        {ID, LIMITS},
        {MY_ID, "PRIMARY"},
        9 * BATCH,
    ),
    "lock and write limits": Hot(
        lambda tx, held: lock_and_write(tx), {LIMITS, WORKERS, "holdfast_dispatch_version_pkey"}, {"PRIMARY"}, 40
    ),
    "retry": Hot(
        lambda tx, held: tx.apply([a_transition(job, Status.RETRYING, delay=seconds(9)) for job in held]),
        {ID},
        {MY_ID},
        8 * BATCH,
    ),
    "hand back": Hot(
        lambda tx, held: tx.apply([a_transition(job, Status.READY) for job in held]), {ID}, {MY_ID}, 8 * BATCH
    ),
    "promote": Hot(lambda tx, held: tx.promote(BATCH), {DUE}, {DUE, MY_ID}, 6 * BATCH),
    "lock_expired": Hot(lambda tx, held: tx.lock_expired(10), {EXPIRY}, {EXPIRY}, 10),
    "lock_expired_worker": Hot(lambda tx, held: tx.lock_expired_worker(DEAD), {WORKERS}, {"PRIMARY"}, 5),
    "lock_held_by": Hot(lambda tx, held: tx.lock_held_by(DEAD, BATCH), {HELD}, {MY_ID, "PRIMARY"}, 2 * BATCH, A_CLAIM),
    "held by": Hot(lambda tx, held: tx.held_by(DEAD, BATCH), {HELD}, {MY_ID, "PRIMARY"}, 2 * BATCH, A_CLAIM),
    "depart": Hot(lambda tx, held: tx.depart(WORKER), {HELD, WORKERS}, {MY_ID, "PRIMARY"}, 10, A_CLAIM),
    "delete_expired": Hot(
        lambda tx, held: tx.delete_expired([DEAD]), {HELD, WORKERS}, {MY_ID, "PRIMARY", EXPIRY}, 20, A_CLAIM
    ),
    "renew": Hot(lambda tx, held: tx.renew(WORKER, seconds(15)), {WORKERS}, {"PRIMARY"}, 5),
    "still held": Hot(lambda tx, held: tx.lost([as_held(job) for job in held]), {ID}, {MY_ID}, 2 * BATCH),
    "lanes": Hot(lambda tx, held: tx.lanes(["mail"], TENANTS), {READY}, {"PRIMARY"}, 6 * TENANTS),
    "ready_queues": Hot(lambda tx, held: tx.ready_queues(["mail", "none"]), {READY}, {"PRIMARY"}, 10, A_CLAIM),
    "next due": Hot(lambda tx, held: tx.next_due(), {DUE}, {DUE}, 5),
    "record a step": Hot(
        lambda tx, held: tx.record_step(as_held(held[0]), STEP), {ID}, {MY_ID, "PRIMARY"}, 10
    ),
    "save progress": Hot(lambda tx, held: tx.save_progress(as_held(held[0]), b"{}"), {ID}, {MY_ID}, 10),
}  # fmt: skip


async def undoing(store, work):
    """Run work in a transaction that is rolled back, and return its result."""
    seen = []

    async def whole(tx):
        seen.append(await work(tx))
        raise RolledBack

    with pytest.raises(RolledBack):
        await store.run(whole)
    return seen[0]
