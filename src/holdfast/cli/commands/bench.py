"""`holdfast bench`: measure this machine and its databases, and compare the results."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import click

from holdfast.bench import ratios as bench_ratios
from holdfast.bench import suite
from holdfast.bench.measures import Progress, Throughput
from holdfast.bench.ratios import BareLoop, RatioResult, Scale
from holdfast.bench.suite import BenchResults, Plan
from holdfast.cli.event_loop import reduce_gc, run
from holdfast.cli.exit_codes import FAILED, OK, startup_errors
from holdfast.cli.options import settings_options
from holdfast.cli.render import as_json, table
from holdfast.config import Settings
from holdfast.store.console import dialect_of

_COUNT = click.IntRange(min=1)
_COUNT_OR_ZERO = click.IntRange(min=0)
_URLS = click.option("--url", "urls", multiple=True, help="database to measure; may be repeated")


class ProgressBars:
    """Progress bars on standard error, if it is a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    @contextmanager
    def step(self, name: str, total: int) -> Iterator[Progress]:
        """Show a bar for one step; yield the function that advances it."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bar(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            task = bar.add_task(name, total=total)
            yield lambda more: bar.advance(task, more)


@click.group(invoke_without_command=True)
@settings_options()
@_URLS
@click.option("--jobs", type=_COUNT, default=50_000, show_default=True, help="jobs per measurement")
@click.option("--tenants", type=_COUNT, default=100, show_default=True, help="tenants that submit the jobs")
@click.option("--only", metavar="PARTS", help=f"comma-separated parts: {', '.join(suite.PARTS)}")
@click.option("--history", type=_COUNT_OR_ZERO, default=0, metavar="N", help="insert N finished jobs first")
@click.option(
    "--backlog", type=_COUNT_OR_ZERO, default=0, metavar="N", help="insert N more ready jobs before the drain"
)
@click.option(
    "--pin",
    type=_COUNT_OR_ZERO,
    default=0,
    metavar="SECONDS",
    help="length of the sustained runs",
)
@click.option("--force", is_flag=True, help="run even on a database that contains jobs")
@click.option("--json", "json", is_flag=True, help="print JSON")
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
    r"""Measure enqueue, drain and pick-up on each database, with all guarantees enabled.

    Use empty databases that nothing else uses; a missing schema is created. Without --url it uses the database of the
    settings.

    \b
      holdfast bench --url sqlite:///bench.db --jobs 10000
    """
    context.obj = urls
    if context.invoked_subcommand is not None:
        return
    plan = Plan(jobs, tenants, _parts(only), history, backlog, pin, force)
    results = run(_measure_all(_targets(settings, urls), plan))
    if json:
        print(as_json(results))
        return
    for result in results:
        _show(result)


@bench.command()
@settings_options()
@_URLS
@click.option(
    "--bare-loop", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="script to compare with"
)
@click.option("--bare-url", help="database of --bare-loop, which WIPES it")
@click.option("--rounds", type=_COUNT, default=3, show_default=True, help="rounds; a ratio is their median")
@click.option("--jobs", type=_COUNT, default=100_000, show_default=True, help="jobs per drain")
@click.option("--tenants", type=_COUNT, default=100, show_default=True, help="tenants in a normal drain")
@click.option("--many-tenants", type=_COUNT, default=10_000, show_default=True, help="tenants in a drain with many")
@click.option("--history", type=_COUNT, default=1_000_000, show_default=True, help="finished jobs in the database")
@click.option("--backlog", type=_COUNT, default=1_000_000, show_default=True, help="ready jobs in the database")
@click.option("--pin", type=_COUNT, default=60, show_default=True, help="seconds of a sustained run")
@click.option("--json", "json", is_flag=True, help="print JSON")
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
    r"""Compare measurements taken right after each other with a target ratio.

    The databases must be empty; they are emptied again after each trial. Exit code 1 if a target is missed.

    \b
      holdfast bench ratios --url sqlite:///bench.db
    """
    urls = urls or context.obj or ()
    if not urls:
        raise click.UsageError("give at least one --url of an empty database that only the benchmark uses")
    if bool(bare_loop) != bool(bare_url):
        raise click.UsageError("--bare-loop and --bare-url need each other: give both")
    bare = BareLoop(bare_loop, bare_url) if bare_loop and bare_url else None
    scale = Scale(jobs, tenants, many_tenants, max(history, jobs), backlog, pin)
    results = run(_compare(_targets(settings, urls), scale, bare, rounds))
    if json:
        print(as_json([{"name": r.name, "ratio": r.value, "target": r.target, "met": r.met} for r in results]))
    else:
        rows = [(r.name, r.upper, r.lower, r.value, r.target, "met" if r.met else "MISSED") for r in results]
        table(["", "jobs/s", "compared to", "ratio", "target", ""], rows, title=f"medians of {rounds} rounds")
    return OK if all(result.met for result in results) else FAILED


def _parts(only: str | None) -> frozenset[str]:
    parts = frozenset(part.strip() for part in only.split(",")) if only else frozenset({"enqueue", "drain", "pickup"})
    if unknown := parts - set(suite.PARTS):
        raise click.BadParameter(f"{min(unknown)!r} is not one of {', '.join(suite.PARTS)}", param_hint="'--only'")
    return parts


def _targets(settings: Settings, urls: tuple[str, ...]) -> list[Settings]:
    return [suite.with_database(settings, url) for url in urls] or [settings]


async def _measure_all(targets: list[Settings], plan: Plan) -> list[BenchResults]:
    results = []
    reduce_gc()  # as workers do
    for target in targets:
        async with AsyncExitStack() as stack:
            with startup_errors(target):
                database = await stack.enter_async_context(suite.open_database(target, force=plan.force))
            await stack.enter_async_context(database.in_service())
            results.append(await suite.measure(database, plan, ProgressBars()))
    return results


async def _compare(targets: list[Settings], scale: Scale, bare: BareLoop | None, rounds: int) -> list[RatioResult]:
    async with AsyncExitStack() as stack:
        databases = {}
        reduce_gc()
        for target in targets:
            with startup_errors(target):
                database = await stack.enter_async_context(suite.open_database(target))
            databases[dialect_of(target.database_url)] = database
        measured = [
            await bench_ratios.run_round(number, databases, scale, bare, ProgressBars()) for number in range(rounds)
        ]
        return bench_ratios.ratios(measured)


def _show(results: BenchResults) -> None:
    rates: list[tuple[str, Throughput | None]] = [
        ("enqueue one by one, 1 client", results.enqueue_one),
        (f"enqueue one by one, {suite.CLIENTS} clients", results.enqueue_one_concurrent),
        ("enqueue many, batches of 1,000", results.enqueue_many),
        ("drain", results.drain),
        ("enqueue and drain concurrently", results.sustained),
        ("the same, a snapshot pinned", results.sustained_pinned),
    ]
    rows: list[tuple[object, ...]] = [(name, rate.per_second, rate.cpu_us) for name, rate in rates if rate]
    if rows:
        table(["", "jobs/s", "Python µs/job"], rows, title=results.server)
    if latency := results.pickup_ms:
        title = None if rows else results.server
        row = ("pick-up", latency.p50, latency.p99, latency.longest)
        table(["", "p50 ms", "p99 ms", "longest ms"], [row], title=title)
