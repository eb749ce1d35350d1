"""`holdfast top`: queues, workers, rates and failures, as they change."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from holdfast.cli.commands import queues as of_queues
from holdfast.cli.commands import workers as of_workers
from holdfast.cli.commands.dead import GROUPS
from holdfast.cli.render import COLOURS, as_json, console, fitted, json_option
from holdfast.cli.target import asked, way_options
from holdfast.errors import RateLimited, Unavailable
from holdfast.sdk import calls
from holdfast.sdk.models import DeadGroup, Queue, Stats, Summary, Worker

if TYPE_CHECKING:
    from holdfast.sdk.async_client import AsyncClient

_GROUPS_SHOWN = 5


class Picture(msgspec.Struct, frozen=True):
    """How things stand."""

    as_of: datetime
    stats: Stats
    last_5_minutes: Summary
    queues: list[Queue]
    workers: list[Worker]
    failures: list[DeadGroup]


@click.command()
@click.option("--every", type=click.FloatRange(0.2), default=2.0, show_default=True, metavar="SECONDS",
              help="between two looks")  # fmt: skip
@click.option("--once", is_flag=True, help="one look, then end")
@click.option("--tenant", metavar="VALUE", help="of this tenant alone (for administrators)")
@json_option
@way_options
def top(every: float, tenant: str | None, *, once: bool, json: bool) -> None:
    r"""Watch queues, workers, rates, the oldest wait and what fails, until Ctrl-C.

    \b
      holdfast top
      holdfast top --once
      holdfast top --every 10 --json >> figures.jsonl
    """
    asked(lambda client: _watch(client, every, tenant, once=once, json=json))


async def _watch(client: "AsyncClient", every: float, tenant: str | None, *, once: bool, json: bool) -> None:
    out = console()
    if json or once or not out.is_terminal:
        while True:
            picture = await look(client, tenant)
            if json:
                print(as_json(picture) if once else msgspec.json.encode(picture).decode(), flush=True)
            else:
                out.print(draw(picture, out.width))
            if once or not json:
                return
            await asyncio.sleep(every)
    from rich.live import Live
    from rich.text import Text

    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(draw(await look(client, tenant), out.width), refresh=True)
            except (Unavailable, RateLimited) as error:  # it comes back, and who watches wants to see that
                live.update(Text(f"waiting: {error}", "yellow"), refresh=True)
            await asyncio.sleep(every)


async def look(client: "AsyncClient", tenant: str | None) -> Picture:
    """Ask for all of it at once."""
    of = {} if tenant is None else {"tenant": tenant}
    stats, recent, queues, workers, groups = await asyncio.gather(
        client.stats(tenant=tenant),
        client.analytics("5m", **of),
        client.queues(tenant=tenant),
        client.workers(),
        client.execute(calls.dead_groups(tenant).at(None)),
    )
    latest = sorted(groups.items, key=lambda group: group.last_at, reverse=True)
    return Picture(stats.as_of, stats, recent, list(queues), list(workers), latest[:_GROUPS_SHOWN])


def draw(picture: Picture, width: int) -> Any:
    """What is shown of it."""
    from rich.console import Group
    from rich.text import Text

    head = Text(f"holdfast  {picture.as_of.astimezone():%H:%M:%S}  ", "bold")
    for name in ("ready", "running", "scheduled", "retrying", "dead"):
        head.append(f"{getattr(picture.stats.statuses, name):,} {name}  ", COLOURS[name])
    recent = picture.last_5_minutes
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
    busiest = sorted(picture.queues, key=lambda queue: (-queue.statuses.ready, -queue.rates.finished, queue.name))
    parts.append(fitted(busiest, of_queues.COLUMNS, width) or Text("no queues", "dim"))
    parts += [Text(""), fitted(picture.workers, of_workers.COLUMNS, width) or Text("no workers", "dim")]
    if picture.failures:
        parts += [Text(""), Text("dead letters by error", "bold"), fitted(picture.failures, GROUPS, width)]
    return Group(*parts)
