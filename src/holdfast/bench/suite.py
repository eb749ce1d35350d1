"""Benchmark of one database: enqueue, drain, pick-up."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from holdfast.bench import measures
from holdfast.bench.dataset import BenchDatabase, has_jobs
from holdfast.bench.measures import Latency, Progress, Throughput
from holdfast.compose import engine_rules, open_store
from holdfast.config import Settings, shown_url
from holdfast.engine.engine import Engine
from holdfast.errors import Misconfigured
from holdfast.store.console import open_console

PARTS = ("enqueue", "drain", "pickup", "sustained")
CLIENTS = 32


class Plan(NamedTuple):
    """Parts and sizes of a benchmark."""

    jobs: int
    tenants: int
    parts: frozenset[str]
    history: int = 0
    backlog: int = 0
    pin: float = 0
    force: bool = False


class BenchResults(Struct, frozen=True, omit_defaults=True):
    """Results of a benchmark on one database."""

    server: str
    url: str
    enqueue_one: Throughput | None = None
    enqueue_one_concurrent: Throughput | None = None
    enqueue_many: Throughput | None = None
    drain: Throughput | None = None
    pickup_ms: Latency | None = None
    sustained: Throughput | None = None
    sustained_pinned: Throughput | None = None


class ProgressDisplay(Protocol):
    """Display of the progress of a benchmark."""

    def step(self, name: str, total: int) -> AbstractContextManager[Progress]:
        """Show a step with this many jobs."""


@asynccontextmanager
async def open_database(settings: Settings, *, force: bool = False) -> AsyncIterator[BenchDatabase]:
    """Open a database for a benchmark and migrate it; refuse one with jobs unless `force`."""
    url = settings.database_url
    async with AsyncExitStack() as stack:
        store = await open_store(url, pool_size=settings.pool_size)
        stack.push_async_callback(store.aclose)
        console = await open_console(url)
        stack.push_async_callback(console.aclose)
        if not force and await has_jobs(console):
            raise Misconfigured(
                f"{shown_url(url)} holds jobs: they would distort the results, and those in queue {measures.QUEUE!r} "
                "would run: use an empty database, or --force"
            )
        await store.migrate()
        yield BenchDatabase(url, await Engine.open(store, engine_rules(settings)), console)


async def measure(database: BenchDatabase, plan: Plan, reporter: ProgressDisplay) -> BenchResults:
    """Measure all parts of the plan in turn; leave no ready jobs."""
    found: dict[str, Throughput | Latency] = {}
    if plan.history:
        with reporter.step("history", plan.history) as progress:
            await database.add_history(plan.history, progress)
    if "enqueue" in plan.parts:
        found |= await _singles(database, plan, reporter)
    if plan.parts & {"enqueue", "drain"}:
        found |= await _batches(database, plan, reporter)
    if "pickup" in plan.parts:
        jobs = max(2, min(plan.jobs, 300))
        with reporter.step("pick-up", jobs) as progress:
            found["pickup_ms"] = await measures.pick_up(database.engine, jobs, progress=progress)
    if plan.pin or "sustained" in plan.parts:
        found |= await _sustained(database, plan, reporter)
    return BenchResults(str(await database.server()), shown_url(database.url), **found)  # type: ignore[arg-type]


async def _singles(database: BenchDatabase, plan: Plan, reporter: ProgressDisplay) -> dict[str, Throughput]:
    found: dict[str, Throughput] = {}
    for name, clients, max_jobs in (("enqueue_one", 1, 2_000), ("enqueue_one_concurrent", CLIENTS, 20_000)):
        jobs = min(plan.jobs, max_jobs)
        with reporter.step(f"enqueue one by one, clients: {clients}", jobs) as progress:
            found[name] = await measures.enqueue_one(database.engine, jobs, clients=clients, progress=progress)
        await measures.drain(database.engine, jobs, progress=measures.no_progress)
    return found


async def _batches(database: BenchDatabase, plan: Plan, reporter: ProgressDisplay) -> dict[str, Throughput]:
    engine = database.engine
    with reporter.step("enqueue many", plan.jobs) as progress:
        sent = await measures.enqueue_many(engine, plan.jobs, tenants=plan.tenants, progress=progress)
    if plan.backlog:
        with reporter.step("backlog", plan.backlog) as progress:
            await database.add_backlog(plan.backlog, tenants=plan.tenants, progress=progress)
    with reporter.step("drain", plan.jobs) as progress:
        drained = await measures.drain(engine, plan.jobs, progress=progress)
    if plan.backlog:
        with reporter.step("drain the backlog", plan.backlog) as progress:
            await measures.drain(engine, plan.backlog, progress=progress)
    found = {"enqueue_many": sent} if "enqueue" in plan.parts else {}
    return found | ({"drain": drained} if "drain" in plan.parts else {})


async def _sustained(database: BenchDatabase, plan: Plan, reporter: ProgressDisplay) -> dict[str, Throughput]:
    seconds = plan.pin or 10
    with reporter.step("sustained", int(seconds)) as progress:
        plain = await measures.sustained(database.engine, seconds, tenants=plan.tenants, progress=progress)
    if not plan.pin:
        return {"sustained": plain}
    with reporter.step("sustained, snapshot pinned", int(seconds)) as progress:
        async with database.pinned():
            pinned = await measures.sustained(database.engine, seconds, tenants=plan.tenants, progress=progress)
    return {"sustained": plain, "sustained_pinned": pinned}


def with_database(settings: Settings, url: str) -> Settings:
    """Return the settings with the database of `--url`."""
    return replace(settings, database_url=url, sources={**settings.sources, "database_url": "--url"})
