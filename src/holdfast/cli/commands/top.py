"""`holdfast top`: live view of queues, workers, rates and failures."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from holdfast.cli.commands import queues as queue_commands
from holdfast.cli.commands import workers as worker_commands
from holdfast.cli.commands.dead import GROUPS
from holdfast.cli.render import COLOURS, as_json, console, fit_table, json_option
from holdfast.cli.target import run_with_client, target_options
from holdfast.errors import RateLimited, Unavailable
from holdfast.sdk import calls
from holdfast.sdk.models import DeadGroup, Queue, Stats, Summary, Worker

if TYPE_CHECKING:
    from holdfast.sdk.async_client import AsyncClient

_GROUPS_SHOWN = 5


class Snapshot(msgspec.Struct, frozen=True):
    """State of the installation at one time."""

    as_of: datetime
    stats: Stats
    last_5_minutes: Summary
    queues: list[Queue]
    workers: list[Worker]
    failures: list[DeadGroup]


@click.command()
@click.option("--every", type=click.FloatRange(0.2), default=2.0, show_default=True, metavar="SECONDS",
              help="time between updates")  # fmt: skip
@click.option("--once", is_flag=True, help="print one snapshot and exit")
@click.option("--tenant", metavar="VALUE", help="only this tenant (for administrators)")
@json_option
@target_options
def top(every: float, tenant: str | None, *, once: bool, json: bool) -> None:
    r"""Show queues, workers, rates, the oldest wait and recent failures, until Ctrl-C.

    \b
      holdfast top
      holdfast top --once
      holdfast top --every 10 --json >> stats.jsonl
    """
    run_with_client(lambda client: _watch(client, every, tenant, once=once, json=json))


async def _watch(client: "AsyncClient", every: float, tenant: str | None, *, once: bool, json: bool) -> None:
    out = console()
    if json or once or not out.is_terminal:
        while True:
            snapshot = await take_snapshot(client, tenant)
            if json:
                print(as_json(snapshot) if once else msgspec.json.encode(snapshot).decode(), flush=True)
            else:
                out.print(render(snapshot, out.width))
            if once or not json:
                return
            await asyncio.sleep(every)
    from rich.live import Live
    from rich.text import Text

    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(render(await take_snapshot(client, tenant), out.width), refresh=True)
            except (Unavailable, RateLimited) as error:  # keep watching until it is back
                live.update(Text(f"waiting: {error}", "yellow"), refresh=True)
            await asyncio.sleep(every)


async def take_snapshot(client: "AsyncClient", tenant: str | None) -> Snapshot:
    """Request all parts of a snapshot concurrently."""
    filters = {} if tenant is None else {"tenant": tenant}
    stats, recent, queues, workers, groups = await asyncio.gather(
        client.stats(tenant=tenant),
        client.analytics("5m", **filters),
        client.queues(tenant=tenant),
        client.workers(),
        client.execute(calls.dead_groups(tenant).at(None)),
    )
    latest = sorted(groups.items, key=lambda group: group.last_at, reverse=True)
    return Snapshot(stats.as_of, stats, recent, list(queues), list(workers), latest[:_GROUPS_SHOWN])


def render(snapshot: Snapshot, width: int) -> Any:
    """Render a snapshot for a terminal of this width."""
    from rich.console import Group
    from rich.text import Text

    head = Text(f"holdfast  {snapshot.as_of.astimezone():%H:%M:%S}  ", "bold")
    for name in ("ready", "running", "scheduled", "retrying", "dead"):
        head.append(f"{getattr(snapshot.stats.statuses, name):,} {name}  ", COLOURS[name])
    recent = snapshot.last_5_minutes
    rates = recent.rates
    flow = Text("5 min  ", "dim")
    flow.append(f"{rates.submitted:,.1f}/s in  {rates.finished:,.1f}/s done  {rates.failed:,.1f}/s failed", "default")
    if recent.failure_ratio is not None:
        flow.append(f" ({recent.failure_ratio:.1%})", "red" if recent.failure_ratio > 0.1 else "default")
    if recent.wait.p95 is not None:
        flow.append(f"  wait p95 {recent.wait.p95:.2f}s", "default")
    if recent.run.p95 is not None:
        flow.append(f"  run p95 {recent.run.p95:.2f}s", "default")
    parts: list[Any] = [head, flow, Text("")]
    busiest = sorted(snapshot.queues, key=lambda queue: (-queue.statuses.ready, -queue.rates.finished, queue.name))
    parts.append(fit_table(busiest, queue_commands.COLUMNS, width) or Text("no queues", "dim"))
    parts += [Text(""), fit_table(snapshot.workers, worker_commands.COLUMNS, width) or Text("no workers", "dim")]
    if snapshot.failures:
        parts += [Text(""), Text("dead letters by error", "bold"), fit_table(snapshot.failures, GROUPS, width)]
    return Group(*parts)
