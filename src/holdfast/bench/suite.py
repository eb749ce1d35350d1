"""The plain benchmark of one database: enqueue, drain, pick-up."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from holdfast.bench import measures
from holdfast.bench.dataset import Ground, holds_jobs
from holdfast.bench.measures import Latency, Progress, Rate
from holdfast.compose import engine_rules, open_store
from holdfast.config import Settings, shown_url
from holdfast.engine.engine import Engine
from holdfast.errors import Misconfigured
from holdfast.store.console import open_console

PARTS = ("enqueue", "drain", "pickup", "sustained")
CLIENTS = 32


class Plan(NamedTuple):
    """What to measure."""

    jobs: int
    tenants: int
    parts: frozenset[str]
    history: int = 0
    backlog: int = 0
    pin: float = 0
    force: bool = False


class Figures(Struct, frozen=True, omit_defaults=True):
    """What was measured on one database."""

    server: str
    url: str
    enqueue_one: Rate | None = None
    enqueue_one_concurrent: Rate | None = None
    enqueue_many: Rate | None = None
    drain: Rate | None = None
    pickup_ms: Latency | None = None
    sustained: Rate | None = None
    sustained_pinned: Rate | None = None


class Watcher(Protocol):
    """Shows people how far it is."""

    def step(self, name: str, total: int) -> AbstractContextManager[Progress]:
        """One part of the work, of so many jobs."""


@asynccontextmanager
async def opened(settings: Settings, *, force: bool = False) -> AsyncIterator[Ground]:
    """A database in the hands of a benchmark: empty unless `force`, and migrated only after that is sure."""
    url = settings.database_url
    async with AsyncExitStack() as stack:
        store = await open_store(url, pool_size=settings.pool_size)
        stack.push_async_callback(store.aclose)
        console = await open_console(url)
        stack.push_async_callback(console.aclose)
        if not force and await holds_jobs(console):
            raise Misconfigured(
                f"{shown_url(url)} holds jobs: they would spoil the figures, and those of the queue "
                f"{measures.QUEUE!r} would be run: give an empty database, or --force"
            )
        await store.migrate()
        yield Ground(url, await Engine.open(store, engine_rules(settings)), console)


async def measure(ground: Ground, plan: Plan, watch: Watcher) -> Figures:
    """All parts of the plan, one after the other; leaves nothing ready behind."""
    found: dict[str, Rate | Latency] = {}
    if plan.history:
        with watch.step("history", plan.history) as progress:
            await ground.add_history(plan.history, progress)
    if "enqueue" in plan.parts:
        found |= await _singles(ground, plan, watch)
    if plan.parts & {"enqueue", "drain"}:
        found |= await _batches(ground, plan, watch)
    if "pickup" in plan.parts:
        few = max(2, min(plan.jobs, 300))
        with watch.step("pick-up", few) as progress:
            found["pickup_ms"] = await measures.pick_up(ground.engine, few, progress=progress)
    if plan.pin or "sustained" in plan.parts:
        found |= await _sustained(ground, plan, watch)
    return Figures(str(await ground.server()), shown_url(ground.url), **found)  # type: ignore[arg-type]


async def _singles(ground: Ground, plan: Plan, watch: Watcher) -> dict[str, Rate]:
    found: dict[str, Rate] = {}
    for name, clients, most in (("enqueue_one", 1, 2_000), ("enqueue_one_concurrent", CLIENTS, 20_000)):
        jobs = min(plan.jobs, most)
        with watch.step(f"enqueue one by one, clients: {clients}", jobs) as progress:
            found[name] = await measures.enqueue_one(ground.engine, jobs, clients=clients, progress=progress)
        await measures.drain(ground.engine, jobs, progress=measures.quiet)
    return found


async def _batches(ground: Ground, plan: Plan, watch: Watcher) -> dict[str, Rate]:
    engine = ground.engine
    with watch.step("enqueue many", plan.jobs) as progress:
        sent = await measures.enqueue_many(engine, plan.jobs, tenants=plan.tenants, progress=progress)
    if plan.backlog:
        with watch.step("backlog", plan.backlog) as progress:
            await ground.add_backlog(plan.backlog, tenants=plan.tenants, progress=progress)
    with watch.step("drain", plan.jobs) as progress:
        drained = await measures.drain(engine, plan.jobs, progress=progress)
    if plan.backlog:
        with watch.step("drain the backlog", plan.backlog) as progress:
            await measures.drain(engine, plan.backlog, progress=progress)
    found = {"enqueue_many": sent} if "enqueue" in plan.parts else {}
    return found | ({"drain": drained} if "drain" in plan.parts else {})


async def _sustained(ground: Ground, plan: Plan, watch: Watcher) -> dict[str, Rate]:
    seconds = plan.pin or 10
    with watch.step("sustained", int(seconds)) as progress:
        plain = await measures.sustained(ground.engine, seconds, tenants=plan.tenants, progress=progress)
    if not plan.pin:
        return {"sustained": plain}
    with watch.step("sustained, snapshot pinned", int(seconds)) as progress:
        async with ground.pinned():
            pinned = await measures.sustained(ground.engine, seconds, tenants=plan.tenants, progress=progress)
    return {"sustained": plain, "sustained_pinned": pinned}


def at(settings: Settings, url: str) -> Settings:
    """The settings with another database, named by `--url`."""
    return replace(settings, database_url=url, sources={**settings.sources, "database_url": "--url"})
