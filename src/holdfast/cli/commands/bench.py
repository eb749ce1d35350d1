"""`holdfast bench`: figures of this machine and these databases, and ratios between figures of one run."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import click

from holdfast.bench import ratios as comparing
from holdfast.bench import suite
from holdfast.bench.measures import Progress, Rate
from holdfast.bench.ratios import BareLoop, Ratio, Scale
from holdfast.bench.suite import Figures, Plan
from holdfast.cli.event_loop import collect_seldom, run
from holdfast.cli.exit_codes import FAILED, OK, starting
from holdfast.cli.options import settings_options
from holdfast.cli.render import as_json, table
from holdfast.config import Settings
from holdfast.store.console import dialect_of

_COUNT = click.IntRange(min=1)
_MAYBE = click.IntRange(min=0)
_URLS = click.option("--url", "urls", multiple=True, help="a database to measure; may be given again")


class Bars:
    """Progress on standard error, if somebody looks at it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    @contextmanager
    def step(self, name: str, total: int) -> Iterator[Progress]:
        """See `Watcher`."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bar(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            task = bar.add_task(name, total=total)
            yield lambda more: bar.advance(task, more)


@click.group(invoke_without_command=True)
@settings_options()
@_URLS
@click.option("--jobs", type=_COUNT, default=50_000, show_default=True, help="jobs of each measure")
@click.option("--tenants", type=_COUNT, default=100, show_default=True, help="tenants the jobs are spread over")
@click.option("--only", metavar="PARTS", help=f"some of {', '.join(suite.PARTS)}, with commas between")
@click.option("--history", type=_MAYBE, default=0, metavar="N", help="put N finished jobs there first")
@click.option("--backlog", type=_MAYBE, default=0, metavar="N", help="put N more ready jobs there before the drain")
@click.option("--pin", type=_MAYBE, default=0, metavar="SECONDS", help="sustain plain, and with a snapshot held open")
@click.option("--force", is_flag=True, help="also on a database that holds jobs")
@click.option("--json", "json", is_flag=True, help="for programs")
@click.pass_context
def bench(
    context: click.Context,
    settings: Settings,
    *,
    urls: tuple[str, ...],
    jobs: int,
    tenants: int,
    only: str | None,
    history: int,
    backlog: int,
    pin: int,
    force: bool,
    json: bool,
) -> None:
    r"""Measure enqueue, drain and pick-up on each database, all guarantees on.

    The databases should be empty ones of their own; the schema is made if it is not there. Without --url it is
    the database of the settings.

    \b
      holdfast bench --url sqlite:///bench.db --jobs 10000
    """
    context.obj = urls
    if context.invoked_subcommand is not None:
        return
    plan = Plan(jobs, tenants, _parts(only), history, backlog, pin, force)
    figures = run(_measure_all(_targets(settings, urls), plan))
    if json:
        print(as_json(figures))
        return
    for each in figures:
        _show(each)


@bench.command()
@settings_options()
@_URLS
@click.option(
    "--bare-loop", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="script to compare with"
)
@click.option("--bare-url", help="database of --bare-loop, which WIPES it")
@click.option("--rounds", type=_COUNT, default=3, show_default=True, help="each ratio is the median of so many")
@click.option("--jobs", type=_COUNT, default=100_000, show_default=True, help="jobs of each drain")
@click.option("--tenants", type=_COUNT, default=100, show_default=True, help="tenants of a plain drain")
@click.option("--many-tenants", type=_COUNT, default=10_000, show_default=True, help="tenants of a drain with many")
@click.option("--history", type=_COUNT, default=1_000_000, show_default=True, help="finished jobs in the database")
@click.option("--backlog", type=_COUNT, default=1_000_000, show_default=True, help="ready jobs in the database")
@click.option("--pin", type=_COUNT, default=60, show_default=True, help="seconds of a sustained run")
@click.option("--json", "json", is_flag=True, help="for programs")
@click.pass_context
def ratios(
    context: click.Context,
    settings: Settings,
    *,
    urls: tuple[str, ...],
    bare_loop: Path | None,
    bare_url: str | None,
    rounds: int,
    jobs: int,
    tenants: int,
    many_tenants: int,
    history: int,
    backlog: int,
    pin: int,
    json: bool,
) -> int:
    r"""Hold figures against each other, measured one right after the other, with the target of each.

    The databases must be empty; they are emptied again between the trials and at the end. Exit code 1 if a target
    is missed.

    \b
      holdfast bench ratios --url sqlite:///bench.db
    """
    urls = urls or context.obj or ()
    if not urls:
        raise click.UsageError("give at least one --url: an empty database for the benchmark alone")
    if bool(bare_loop) != bool(bare_url):
        raise click.UsageError("--bare-loop and --bare-url belong together")
    bare = BareLoop(bare_loop, bare_url) if bare_loop and bare_url else None
    scale = Scale(jobs, tenants, many_tenants, max(history, jobs), backlog, pin)
    found = run(_compare(_targets(settings, urls), scale, bare, rounds))
    if json:
        print(as_json([{"name": r.name, "ratio": r.value, "target": r.target, "met": r.met} for r in found]))
    else:
        rows = [(r.name, r.upper, r.lower, r.value, r.target, "met" if r.met else "MISSED") for r in found]
        table(["", "jobs/s", "against", "ratio", "target", ""], rows, title=f"medians of {rounds} rounds")
    return OK if all(each.met for each in found) else FAILED


def _parts(only: str | None) -> frozenset[str]:
    parts = frozenset(part.strip() for part in only.split(",")) if only else frozenset({"enqueue", "drain", "pickup"})
    if unknown := parts - set(suite.PARTS):
        raise click.BadParameter(f"{min(unknown)!r} is not one of {', '.join(suite.PARTS)}", param_hint="'--only'")
    return parts


def _targets(settings: Settings, urls: tuple[str, ...]) -> list[Settings]:
    return [suite.at(settings, url) for url in urls] or [settings]


async def _measure_all(targets: list[Settings], plan: Plan) -> list[Figures]:
    figures = []
    collect_seldom()  # as workers do
    for target in targets:
        async with AsyncExitStack() as stack:
            with starting(target):
                ground = await stack.enter_async_context(suite.opened(target, force=plan.force))
            await stack.enter_async_context(ground.in_service())
            figures.append(await suite.measure(ground, plan, Bars()))
    return figures


async def _compare(targets: list[Settings], scale: Scale, bare: BareLoop | None, rounds: int) -> list[Ratio]:
    async with AsyncExitStack() as stack:
        grounds = {}
        collect_seldom()
        for target in targets:
            with starting(target):
                ground = await stack.enter_async_context(suite.opened(target))
            grounds[dialect_of(target.database_url)] = ground
        found = [await comparing.one_round(number, grounds, scale, bare, Bars()) for number in range(rounds)]
        return comparing.ratios(found)


def _show(each: Figures) -> None:
    rates: list[tuple[str, Rate | None]] = [
        ("enqueue one by one, 1 client", each.enqueue_one),
        (f"enqueue one by one, {suite.CLIENTS} clients", each.enqueue_one_concurrent),
        ("enqueue many, batches of 1,000", each.enqueue_many),
        ("drain", each.drain),
        ("enqueue and drain at once", each.sustained),
        ("the same, a snapshot pinned", each.sustained_pinned),
    ]
    rows: list[tuple[object, ...]] = [(name, rate.per_second, rate.cpu_us) for name, rate in rates if rate]
    if rows:
        table(["", "jobs/s", "Python µs/job"], rows, title=each.server)
    if each.pickup_ms:
        late = each.pickup_ms
        title = None if rows else each.server
        table(["", "p50 ms", "p99 ms", "longest ms"], [("pick-up", late.p50, late.p99, late.longest)], title=title)
