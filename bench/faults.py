"""Run jobs under kills, freezes, cut connections and database crashes, and check every acknowledged job.

    python bench/faults.py --db postgres --jobs 100000 --minutes 60    # half an hour
    python bench/faults.py --db mysql --jobs 3000 --seed 7
    python bench/faults.py --url postgresql://…              # an empty database; its server is not crashed

Jobs are submitted singly and in batches, with and without idempotency keys, by an engine in this process and over
HTTP. Each writes one row in the engine's database with `ctx.transaction`. Some are in a queue with a concurrency limit,
some in queues with a rate limit, some have a concurrency key. Meanwhile:

* worker processes, whole nodes and the node of the HTTP service are killed with SIGKILL,
* worker processes and nodes are frozen with SIGSTOP, for less and for more than their lease,
* connections of submitters and of workers are cut before and after the COMMIT of a transaction, or its only statement,
* the private database server is killed with SIGKILL and started again.

SQLite has no server and no connections: there, all nodes are killed at once instead.

Afterwards the checker (`tests/support/fault_checker.py`) compares every acknowledged id with the database, counts the
rows, and checks limits and rates with the recorded starts. Submissions and faults end after `--minutes`; the jobs that
remain then have ten minutes to finish. Exit code 1 if a promise was broken, 2 if the time was too short for all jobs.
"""

import argparse
import asyncio
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.cli.event_loop import run  # noqa: E402
from holdfast.client import AsyncClient  # noqa: E402
from holdfast.compose import open_engine  # noqa: E402
from holdfast.config import Settings  # noqa: E402
from holdfast.engine.engine import Engine  # noqa: E402
from holdfast.errors import Unavailable  # noqa: E402
from holdfast.model.job import Job, JobFilter, JobSpec, Page  # noqa: E402
from holdfast.model.limit import Rate, queue_limit  # noqa: E402
from holdfast.model.state import Status  # noqa: E402
from holdfast.model.time import seconds  # noqa: E402
from tests.support import fault_checker as checker  # noqa: E402
from tests.support.clock import Console, dialect_of  # noqa: E402
from tests.support.commit_proxy import CommitProxy, When, commit_proxy  # noqa: E402
from tests.support.databases import migrate  # noqa: E402
from tests.support.effects import INSERT, TABLE  # noqa: E402
from tests.support.eventually import awaited, eventually  # noqa: E402
from tests.support.fault_env import Scene  # noqa: E402
from tests.support.nodes import Node, children_of, is_stopped  # noqa: E402
from tests.support.outages import Outages, outages  # noqa: E402
from tests.support.services import Service  # noqa: E402

NODES, PROCESSES, LEASE_S = 2, 2, 3.0
LIMITED, MAX_RUNNING = "limited", 3
RATED, RATE = ("rated-a", "rated-b"), checker.RateLimit(per_second=4, burst=5)
CONCURRENCY_KEYS = 20
QUEUES = ("default", LIMITED, *RATED)
SHARES = (0.86, 0.10, 0.02, 0.02)
"""Share of each queue in the jobs."""
KEYED_SHARE, REPEAT_SHARE = 0.8, 0.1
SUBMITTERS, MAX_BATCH, MAX_BACKLOG = 4, 40, 2_000
SLEEPS_S = (0.0, 0.02, 0.1, 0.4)
"""Times between the row of a job and its end, so that faults hit jobs in between."""
COMMIT, INSERTED = rb"COMMIT(?!TED)", rb"effect"
FAULT_INTERVAL_S, POLL_INTERVAL_S, DRAIN_S = 1.5, 0.2, 600.0
LOG_INTERVAL_S, LOOK_BACK = 5.0, 5_000
"""Time between reads of the change log, and the numbers read again, because a lower one can appear after a higher."""
ADMIN_KEY = "fault-bench-key-only-for-loopback-7395"


class Options(NamedTuple):
    """Options of the command line."""

    url: str
    db: str
    jobs: int
    minutes: float
    rate: float
    seed: int


class Submissions:
    """Clients that submit jobs and remember what was acknowledged."""

    def __init__(self, engine: Engine, client: AsyncClient, dialect: str, options: Options) -> None:
        self._engine, self._client, self._sql, self._options = engine, client, INSERT[dialect], options
        self._numbers = itertools.count()
        self.acknowledged: list[tuple[str, str]] = []
        self.accepted = self.unanswered = self.repeats = 0
        self.backlog = 0
        """Number of unfinished jobs, as last counted."""

    async def run(self, until: float) -> None:
        """Submit until enough jobs are acknowledged or the time is over."""
        async with asyncio.TaskGroup() as group:
            for number in range(SUBMITTERS):
                group.create_task(self._submit_all(random.Random(f"{self._options.seed}-{number}"), until))

    async def _submit_all(self, rng: random.Random, until: float) -> None:
        start_time = time.monotonic()
        while self.accepted < self._options.jobs and time.monotonic() < until:
            due = self._options.rate * (time.monotonic() - start_time)
            if self.accepted > due or self.backlog > MAX_BACKLOG:
                await asyncio.sleep(POLL_INTERVAL_S)
                continue
            count = min(rng.choice((1, 1, MAX_BATCH // 4, MAX_BATCH)), self._options.jobs - self.accepted)
            keyed = rng.random() < KEYED_SHARE
            jobs = [self._job(rng, keyed=keyed) for _ in range(count)]
            send = self._over_http if rng.random() < 0.3 else self._by_engine
            while ids := await self._acknowledged(send, jobs, until, keyed=keyed):
                self.acknowledged += zip((job["payload"]["key"] for job in jobs), ids, strict=True)
                if not keyed or rng.random() >= REPEAT_SHARE:
                    self.accepted += len(ids)
                    break
                self.repeats += len(ids)

    async def _acknowledged(
        self, send: Callable[[list[dict[str, Any]]], Any], jobs: list[dict[str, Any]], until: float, *, keyed: bool
    ) -> Sequence[str]:
        """Return the ids of a submission, which is repeated only with keys; nothing if it was not acknowledged."""
        while time.monotonic() < until + 60:
            try:
                return list(await send(jobs))
            except Unavailable:
                self.unanswered += 1
                if not keyed:
                    return ()
                await asyncio.sleep(0.05)
        return ()

    async def _by_engine(self, jobs: list[dict[str, Any]]) -> list[str]:
        if len(jobs) == 1:
            return [str((await self._engine.jobs.submit(JobSpec(**jobs[0]))).id)]
        return [str(receipt.id) for receipt in await self._engine.jobs.submit_many([JobSpec(**job) for job in jobs])]

    async def _over_http(self, jobs: list[dict[str, Any]]) -> list[str]:
        if len(jobs) == 1:
            (job,) = jobs
            options = {name: value for name, value in job.items() if name not in ("type", "payload")}
            return [str((await self._client.submit(job["type"], job["payload"], **options)).id)]
        return [str(receipt.id) for receipt in await self._client.submit_many(jobs)]  # type: ignore[arg-type]

    def _job(self, rng: random.Random, *, keyed: bool) -> dict[str, Any]:
        key = f"e{next(self._numbers)}"
        (queue,) = rng.choices(QUEUES, SHARES)
        payload = {"key": key, "sql": self._sql, "args": [key, "write"], "sleep": rng.choice(SLEEPS_S)}
        job: dict[str, Any] = {"type": "effect", "payload": payload, "queue": queue, "max_attempts": 1_000}
        if keyed:
            job["idempotency_key"] = f"key-{key}"
        if queue == "default" and rng.random() < 0.1:
            job["concurrency_key"] = f"c{rng.randrange(CONCURRENCY_KEYS)}"
        return job


class Faults:
    """Nodes and a service that are killed and frozen, proxies that cut connections, and a server that crashes."""

    def __init__(self, scene: Scene, service: Service, rng: random.Random, server: Outages | None, url: str) -> None:
        self._scene, self._service, self._rng, self._server, self.url = scene, service, rng, server, url
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0
        """Duration of the run until the last fault."""
        self.killed: dict[int, list[float]] = defaultdict(list)
        self.freezes: list[checker.Freeze] = []
        self.fleet = [self._start() for _ in range(NODES)]

    def _start(self) -> Node:
        queues = ",".join(f"{queue}:10" for queue in QUEUES)
        return self._scene.node(url=self.url, lease=LEASE_S, queues=queues, processes=PROCESSES, drain=0.0)

    async def run(self) -> None:
        """Inflict one fault after another, in random order, until this is cancelled."""
        kinds: list[Callable[[], None]] = [
            *(4 * [self._kill_worker]),
            *(2 * [self._kill_node]),
            self._freeze_worker,
            self._freeze_briefly,
            self._freeze_beyond_the_lease,
            self._kill_service,
            self._crash,
        ]
        while True:
            self._rng.shuffle(kinds)
            for fault in kinds:
                await asyncio.sleep(FAULT_INTERVAL_S)
                await _finish(asyncio.to_thread(self._inflict, fault))

    def _inflict(self, fault: Callable[[], None]) -> None:
        self.replace_ended()
        fault()

    def replace_ended(self) -> None:
        """Start another node for each that has exited, for example because it started without a database."""
        for index, node in enumerate(self.fleet):
            if not node.alive():
                self.counts["nodes that exited"] += 1
                self.fleet[index] = self._start()

    async def cut(self, proxy: CommitProxy, name: str, patterns: Sequence[bytes]) -> None:
        """Cut one connection after another until this is cancelled."""
        whens: tuple[When, When] = ("before", "after")
        for when in itertools.cycle(whens):
            await asyncio.sleep(self._rng.uniform(0.2, 0.8))
            before = proxy.cuts
            proxy.cut(self._rng.choice(patterns), when)
            with suppress(TimeoutError):

                async def hit(before: int = before) -> bool:
                    return proxy.cuts > before

                await eventually(hit, within=3)
            self.counts[f"cuts {when} COMMIT, {name}"] += proxy.cuts - before

    def _kill_worker(self) -> None:
        if workers := self._rng.choice(self.fleet).children():
            self._kill(_descendants(self._rng.choice(workers))[:1])
            self.counts["worker processes killed"] += 1

    def _kill_node(self) -> None:
        index = self._rng.randrange(len(self.fleet))
        self._kill(self.fleet[index].all_processes())
        self.fleet[index].wait()
        self.fleet[index] = self._start()
        self.counts["nodes killed"] += 1

    def _kill(self, pids: Sequence[int]) -> None:
        affected = {each for pid in pids for each in _descendants(pid)}  # children are killed with their parent
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        now = time.monotonic()
        for pid in affected:
            self.killed[pid].append(now)

    def _kill_service(self) -> None:
        self._service.kill()
        self._start_service()
        self.counts["service killed"] += 1

    def _start_service(self) -> None:
        for _ in range(20):
            with suppress(AssertionError):  # its first connection was cut
                self._service.start()
                return
        raise RuntimeError("the service does not start")

    def _freeze_worker(self) -> None:
        if workers := self._rng.choice(self.fleet).children():
            self._freeze([self._rng.choice(workers)], LEASE_S / 2, "workers frozen")

    def _freeze_briefly(self) -> None:
        self._freeze(self._rng.choice(self.fleet).all_processes(), LEASE_S / 3, "nodes frozen briefly")

    def _freeze_beyond_the_lease(self) -> None:
        self._freeze(self._rng.choice(self.fleet).all_processes(), LEASE_S * 1.7, "nodes frozen beyond the lease")

    def _freeze(self, pids: Sequence[int], duration: float, name: str) -> None:
        """Freeze processes, but none during a write to SQLite, which would keep the file locked."""
        with self._scene._block_writes():  # noqa: SLF001
            begin = time.monotonic()
            _signal(pids, SIGSTOP)
            awaited(lambda: all(is_stopped(pid) for pid in pids))
        time.sleep(duration)
        self.freezes.append(checker.Freeze(frozenset(pids), begin, time.monotonic()))
        _signal(pids, SIGCONT)
        self.counts[name] += 1

    def _crash(self) -> None:
        if self._server is not None:
            self._server.crash()
            self._server.start()
            self.counts["database crashes"] += 1
        elif dialect_of(self.url) == "sqlite":
            self._kill([pid for node in self.fleet for pid in node.all_processes()])
            for node in self.fleet:
                node.wait()
            self.fleet = [self._start() for _ in self.fleet]
            self.counts["all nodes killed at once"] += 1


class Observer:
    """Observer of the database: backlog, running jobs of the limited queue, and claims of the rated queues."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._claims: dict[int, tuple[float, Counter[str]]] = {}
        self._last = 0
        self.most_running = 0
        self.backlog = 0

    async def run(self, submissions: Submissions) -> None:
        """Observe until this is cancelled."""
        due = 0.0
        while True:
            with suppress(Unavailable):
                submissions.backlog = await self.observe()
                if time.monotonic() >= due:
                    await self.read_claims()
                    due = time.monotonic() + LOG_INTERVAL_S
            await asyncio.sleep(POLL_INTERVAL_S)

    async def observe(self) -> int:
        """Count the unfinished jobs."""
        counts = await self._engine.jobs.counts()
        running = sum(each.jobs for each in counts if each.queue == LIMITED and each.status is Status.RUNNING)
        self.most_running = max(self.most_running, running)
        self.backlog = sum(each.jobs for each in counts)
        return self.backlog

    async def read_claims(self) -> None:
        """Read the new rows of the change log, which is pruned after minutes."""
        first = max(0, self._last - LOOK_BACK)
        while True:
            at = first
            rows = await self._engine.store.read(lambda tx, at=at: tx.changes_after(at, 5_000))  # type: ignore[misc]
            for row in rows:
                started = Counter(
                    {each.queue: each.jobs for each in row.body.groups() if each.status == Status.RUNNING.code}
                )
                self._claims[row.seq] = (row.at / 1e6, started)
            if not rows:
                return
            first = max(row.seq for row in rows)
            self._last = max(self._last, first)

    def claims(self) -> dict[str, list[checker.Claim]]:
        """Return the claims of each rated queue."""
        found: dict[str, list[checker.Claim]] = defaultdict(list)
        for at, started in self._claims.values():
            for queue in RATED:
                if started[queue]:
                    found[queue].append(checker.Claim(at, started[queue]))
        return found


async def main(options: Options) -> int:
    """Run, check and print the results; return the exit code."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_disk())))
        server: Outages | None = None
        url = options.url or f"sqlite:///{folder}/faults.db"
        if not options.url and options.db != "sqlite":
            found = stack.enter_context(outages(options.db))
            if isinstance(found, str):
                raise SystemExit(found)
            server, url = found, await found.new_database()
        else:
            await migrate(url)
        return await _run(options, url, folder, server, stack)


async def _run(options: Options, url: str, folder: Path, server: Outages | None, stack: AsyncExitStack) -> int:
    engine = await open_engine(Settings(database_url=url))
    stack.push_async_callback(engine.aclose)
    if await engine.jobs.find(JobFilter(), Page(1)):
        raise SystemExit("this database contains jobs: use an empty one")
    async with Console(url) as console:
        await console.run(TABLE)
    await engine.limits.set(queue_limit(LIMITED), max_running=MAX_RUNNING, rate=None)
    for queue in RATED:
        rate = Rate(int(RATE.per_second), seconds(1), RATE.burst)
        await engine.limits.set(queue_limit(queue), max_running=None, rate=rate)
    submit_url = work_url = url
    proxies: list[tuple[CommitProxy, str, Sequence[bytes]]] = []
    if dialect_of(url) != "sqlite":
        proxy, submit_url = await stack.enter_async_context(commit_proxy(url))
        proxies.append((proxy, "submitters", (COMMIT, COMMIT, INSERTED)))
        proxy, work_url = await stack.enter_async_context(commit_proxy(url))
        proxies.append((proxy, "workers", (COMMIT,)))
    submitter = await open_engine(Settings(database_url=submit_url))
    stack.push_async_callback(submitter.aclose)
    service = Service(submit_url, folder, {"HOLDFAST_ADMIN_KEY": ADMIN_KEY})
    await asyncio.to_thread(service.start)
    stack.callback(service.kill)
    client = await stack.enter_async_context(AsyncClient(service.url, ADMIN_KEY))

    scene = Scene(url, folder, engine, stack.enter_context(ExitStack()))
    submissions = Submissions(submitter, client, dialect_of(url), options)
    observer = Observer(engine)
    faults = Faults(scene, service, random.Random(options.seed), server, work_url)
    clock_offset = time.time() - time.monotonic()
    start_time = time.monotonic()
    await scene.workers(NODES * PROCESSES)
    observing = asyncio.create_task(observer.run(submissions))
    inflicting = [asyncio.create_task(faults.run())]
    inflicting += [asyncio.create_task(faults.cut(*each)) for each in proxies]
    reporting = asyncio.create_task(_report(submissions, faults))
    try:
        await _first(submissions.run(start_time + 60 * options.minutes), [observing, *inflicting])
        await _cancel(inflicting)
        for proxy, _, _ in proxies:
            proxy.disarm()
        faults.seconds = time.monotonic() - start_time
        await _drain(faults, observer, observing)
    finally:
        await _cancel([observing, reporting, *inflicting])
    for node in faults.fleet:
        await asyncio.to_thread(node.end)
    await observer.observe()
    await observer.read_claims()
    attempts = checker.attempts_in(scene.ledger.entries(), faults.killed, faults.freezes)
    facts = await _facts(engine, url, submissions, observer, attempts.all)
    shifted = [each._replace(begin=each.begin + clock_offset, end=each.end + clock_offset) for each in faults.freezes]
    facts = facts._replace(freezes=shifted)
    return _print(options, facts, attempts, submissions, faults)


async def _first(work: Any, others: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the submissions; the other tasks end earlier only if they fail."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task, *others], return_when=asyncio.FIRST_COMPLETED)
    for each in (task, *others):
        if each.done():
            each.result()
    if not task.done():
        await _cancel([task])


async def _cancel(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _finish(work: Any) -> None:
    """Await even if cancelled meanwhile, so that no process stays frozen and no server stays down."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _drain(faults: Faults, observer: Observer, observing: "asyncio.Task[None]") -> None:
    """Wait until no job is unfinished, or for `DRAIN_S`."""

    async def drained() -> bool:
        if observing.done():
            observing.result()
        await asyncio.to_thread(faults.replace_ended)
        with suppress(Unavailable):
            return await observer.observe() == 0
        return False

    with suppress(TimeoutError):
        await eventually(drained, within=DRAIN_S)


async def _report(submissions: Submissions, faults: Faults) -> None:
    while True:
        await asyncio.sleep(30)
        inflicted = sum(count for name, count in faults.counts.items() if name != "nodes that exited")
        print(
            f"  {submissions.accepted:,} acknowledged, {submissions.backlog:,} unfinished, {inflicted} faults",
            flush=True,
        )


async def _facts(
    engine: Engine, url: str, submissions: Submissions, observer: Observer, attempts: Sequence[checker.Attempt]
) -> checker.Facts:
    stored: list[checker.StoredJob] = []
    page = Page(1_000)
    while found := await engine.store.read(lambda tx: tx.find(JobFilter(), page)):  # noqa: B023
        stored += map(_stored, found)
        page = Page(1_000, found[-1].id)
    async with Console(url) as console:
        effects = {
            key: int(rows) for key, rows in await console.run("SELECT job, count(*) FROM ledger_tx GROUP BY job")
        }
    keys = {name: 1 for job in stored for name in job.limits if name != LIMITED}
    return checker.Facts(
        acknowledged=submissions.acknowledged,
        stored=stored,
        effects=effects,
        attempts=attempts,
        limits={LIMITED: MAX_RUNNING, **keys},
        claims=observer.claims(),
        rates=dict.fromkeys(RATED, RATE),
        sampled={LIMITED: observer.most_running},
    )


def _stored(job: Job) -> checker.StoredJob:
    limits = [LIMITED] if job.queue == LIMITED else []
    if job.concurrency_key is not None:
        limits.append(f"key {job.concurrency_key}")
    return checker.StoredJob(msgspec.json.decode(job.payload)["key"], str(job.id), str(job.status), tuple(limits))


def _print(
    options: Options,
    facts: checker.Facts,
    attempts: checker.Attempts,
    submissions: Submissions,
    faults: Faults,
) -> int:
    violations = checker.find_violations(facts)
    peaks = checker.limit_peaks(facts)
    rows: list[tuple[str, object]] = [
        ("jobs acknowledged", submissions.accepted),
        ("acknowledgements compared", len(submissions.acknowledged)),
        ("submissions without response", submissions.unanswered),
        ("jobs repeated with their key", submissions.repeats),
        ("jobs stored", len(facts.stored)),
        ("effect rows", sum(facts.effects.values())),
        ("attempts started", len(attempts.all)),
        ("  interrupted by a kill", attempts.interrupted),
        ("  fenced off after a freeze", attempts.stale),
        ("  end not recorded", attempts.unknown),
        *sorted(faults.counts.items()),
        (f"most concurrent, limit {MAX_RUNNING}", peaks[LIMITED]),
        ("most concurrent per key, limit 1", max((peak for name, peak in peaks.items() if name != LIMITED), default=0)),
        ("starts under a rate limit", sum(claim.jobs for claims in facts.claims.values() for claim in claims)),
        ("seconds under faults", round(faults.seconds)),
    ]
    print(f"{dialect_of(faults.url)}: {options.jobs:,} jobs, seed {options.seed}")
    for name, value in rows:
        print(f"  {name:36}{value:>12,}")
    found = Counter(violation.kind for violation in violations)
    for kind in checker.KINDS:
        print(f"  {kind:36}{found[kind]:>12,}")
    for violation in violations[:50]:
        print(f"  {violation.kind}: {violation.subject}: {violation.detail}")
    if violations:
        print("BROKEN PROMISES", flush=True)
        return 1
    if submissions.accepted < options.jobs:
        print("correct, but the time was too short for all jobs", flush=True)
        return 2
    print("correct", flush=True)
    return 0


def _descendants(pid: int) -> list[int]:
    """Return the process and all below it."""
    return [pid, *(each for child in children_of(pid) for each in _descendants(child))]


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _disk() -> str | None:
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="an empty database, which is migrated; instead of --db")
    parser.add_argument("--db", choices=("postgres", "mysql", "sqlite"), default="postgres", help="a private database")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="time for submissions and faults")
    parser.add_argument("--rate", type=float, default=60.0, help="jobs submitted per second at most")
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(run(main(Options(**vars(parser.parse_args())))))
