"""`holdfast stats`: totals, rates and durations of a window."""

import asyncio
from typing import Any

import click

from holdfast.cli.render import Column, as_json, json_option, print_list, span
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls, operator_calls
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.models import Summary
from holdfast.wire.analytics import TenantShareOut, TypeStats

_FIGURES: list[Column[Any]] = [
    Column("submitted", lambda stats: stats.totals.submitted),
    Column("succeeded", lambda stats: stats.totals.succeeded),
    Column("failed", lambda stats: stats.totals.failed),
    Column("dead", lambda stats: stats.totals.dead),
    Column("done/s", lambda stats: stats.rates.finished, drop_order=3),
    Column("wait p50", lambda stats: span(stats.wait.p50), drop_order=2),
    Column("wait p99", lambda stats: span(stats.wait.p99), drop_order=4),
    Column("run p50", lambda stats: span(stats.run.p50), drop_order=1),
    Column("run p99", lambda stats: span(stats.run.p99), drop_order=5),
]
_TYPES: list[Column[TypeStats]] = [Column("type", lambda stats: stats.type, text=True), *_FIGURES]
_TENANTS: list[Column[TenantShareOut]] = [
    Column("tenant", lambda share: share.tenant, text=True),
    Column("weight", lambda share: share.weight),
    Column("received", lambda share: share.received),
    Column("share", lambda share: f"{share.received_share:.1%}"),
    Column("entitled", lambda share: f"{share.entitled_share:.1%}", drop_order=1),
    Column("waited", lambda share: f"{share.backlogged:.0%}", drop_order=2),
]


@click.command()
@click.option("--window", default="1h", show_default=True, metavar="SPAN", help="length of the window, such as 24h")
@click.option("--queue", metavar="NAME", help="only this queue")
@click.option("--type", "type_", metavar="NAME", help="only this job type")
@click.option("--tenant", metavar="NAME", help="only this tenant (for administrators)")
@click.option("--fairness", is_flag=True, help="service that each tenant received (for administrators)")
@json_option
@target_options
def stats(window: str, queue: str | None, type_: str | None, tenant: str | None, *, fairness: bool, json: bool) -> None:
    r"""Show totals, rates and durations of a window, in total and by job type.

    Deleted jobs count too: these are numbers of events, not of stored jobs.

    \b
      holdfast stats --window 24h --queue mail
      holdfast stats --fairness --window 15m
    """
    if fairness:
        _print_fairness(window, json=json)
        return
    fields = {"window": window, "queue": queue, "type": type_, "tenant": tenant}

    async def fetch(client: AsyncClient) -> tuple[Summary, list[TypeStats]]:
        return await asyncio.gather(client.execute(calls.analytics(fields)), client.execute(calls.type_stats(fields)))

    summary, by_type = run_with_client(fetch)
    if json:
        print(as_json({"total": summary, "types": by_type}))
        return
    print_list([summary], _FIGURES, none="")
    if by_type:
        print()
        print_list(by_type, _TYPES, none="")


def _print_fairness(window: str, *, json: bool) -> None:
    report = run_with_client(lambda client: client.execute(operator_calls.fairness(window)))
    if json:
        print(as_json(report))
    else:
        print_list(report.items, _TENANTS, none="no tenant was served in this window")
