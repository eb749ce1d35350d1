"""`holdfast import`: take over unfinished jobs from the table of a source system."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from holdfast.cli.bulk import bar
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.importing import layouts
from holdfast.cli.importing.layouts import LAYOUTS, HeldRow, ImportedRow, InvalidRow, Layout
from holdfast.cli.importing.source import open_table
from holdfast.cli.render import as_json, json_option, note
from holdfast.cli.target import run_with_client, target_options
from holdfast.config.definitions import DATABASE_URL
from holdfast.errors import IdempotencyMismatch, InvalidBatch
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient

if TYPE_CHECKING:
    from holdfast.sdk.options import NewJob

BATCH_SIZE = 500
BATCH_BYTES = 4 * 1024 * 1024
"""Size of the jobs of a request, below the limit of its body."""

_MAX_SHOWN_FAULTS = 10


class SourceUrl(click.ParamType[str]):
    """URL of a database, or the connection string of a Go driver."""

    name = "url"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return DATABASE_URL.read(value)
        except ValueError:  # the text may contain a password
            self.fail(f"this is not a database: write {DATABASE_URL.expected}", param, ctx)


class ImportResult(NamedTuple):
    """Outcome of an import."""

    ids: dict[str, str]
    """Job ids by the ids of their rows, of this run and of earlier ones."""
    new: int
    existing: int
    held: list[str]
    faults: list[InvalidRow]


@click.command("import")
@click.option("--from", "source", type=SourceUrl(), required=True, metavar="URL", help="database of the source system")
@click.option("--layout", type=click.Choice(list(LAYOUTS)), required=True, help="source system whose table it is")
@click.option("--table", metavar="NAME", help="table to read; default: jobs for a and d, tasks for c and e")
@click.option("--tenant", metavar="NAME", help="tenant of rows that name none; default: that of the API key")
@click.option("--queue", metavar="NAME", help="queue of the jobs; default: 'default'")
@click.option("--dry-run", is_flag=True, help="only count the rows and check them")
@json_option
@target_options
def import_jobs(
    source: str, layout: str, table: str | None, tenant: str | None, queue: str | None, *, dry_run: bool, json: bool
) -> int:
    r"""Import the unfinished jobs of a source system, and leave its table as it is.

    Stop the workers of the source system first. A row is imported once, however often the command runs. Rows that a
    worker still holds are skipped; run the command again when its lease has expired.

    \b
      holdfast import --from 'root:root@tcp(127.0.0.1:3310)/scheduler' --layout a --dry-run
      holdfast import --from postgresql://localhost/jobs --layout d --tenant acme
    """
    chosen = LAYOUTS[layout]
    name = table or chosen.table

    async def act(client: AsyncClient) -> ImportResult:
        rows = await _read(source, chosen, name)
        if dry_run:
            return ImportResult(
                {}, sum(isinstance(row, ImportedRow) for row in rows), 0,
                [row.id for row in rows if isinstance(row, HeldRow)],
                [row for row in rows if isinstance(row, InvalidRow)],
            )  # fmt: skip
        return await _submit(client, rows, tenant, queue)

    result = run_with_client(act)
    if json:
        print(
            as_json({
                "dry_run": dry_run, "imported": result.new, "existing": result.existing, "ids": result.ids,
                "held": result.held, "invalid": [fault._asdict() for fault in result.faults],
            })
        )  # fmt: skip
    else:
        _print(result, dry_run=dry_run)
    return FAILED if result.held or result.faults else OK


async def _read(source: str, layout: Layout, name: str) -> list[ImportedRow | HeldRow | InvalidRow]:
    async with open_table(source, name) as table:
        layouts.check_columns(layout, name, table.columns)
        rows = await table.unfinished(layouts.FINISHED)
        now = layouts.read_now(await table.now())
    return [layouts.convert(layout, name, row, now) for row in rows]


async def _submit(
    client: AsyncClient, rows: Sequence[ImportedRow | HeldRow | InvalidRow], tenant: str | None, queue: str | None
) -> ImportResult:
    result = ImportResult({}, 0, 0, [], [])
    by_tenant: dict[str | None, list[ImportedRow]] = defaultdict(list)
    for row in rows:
        match row:
            case ImportedRow():
                by_tenant[row.tenant or tenant].append(row)
            case HeldRow():
                result.held.append(row.id)
            case InvalidRow():
                result.faults.append(row)
    with bar("import", sum(map(len, by_tenant.values()))) as advance:
        for owner, owned in by_tenant.items():
            for batch in _batches(owned):
                result = await _submit_batch(client, batch, owner, queue, result)
                advance(len(batch))
    return result


def _batches(rows: Sequence[ImportedRow]) -> Iterator[list[ImportedRow]]:
    """Split rows into batches that a request can carry."""
    batch: list[ImportedRow] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == BATCH_SIZE or size + row.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.size
    if batch:
        yield batch


async def _submit_batch(
    client: AsyncClient, batch: list[ImportedRow], tenant: str | None, queue: str | None, result: ImportResult
) -> ImportResult:
    """Submit the jobs of a batch without those that are refused."""
    new, existing = result.new, result.existing
    while batch:
        jobs: list[NewJob] = [row.job if queue is None else {**row.job, "queue": queue} for row in batch]
        try:
            receipts = await client.execute(calls.submit_many(jobs, tenant))
        except InvalidBatch as refused:
            for index, fault in refused.faults.items():
                if isinstance(fault, IdempotencyMismatch):  # the row has changed since it was imported
                    existing += 1
                else:
                    result.faults.append(InvalidRow(batch[index].id, str(fault)))
            batch = [row for index, row in enumerate(batch) if index not in refused.faults]
            continue
        result.ids.update({row.id: receipt.id for row, receipt in zip(batch, receipts, strict=True)})
        replayed = sum(receipt.replayed for receipt in receipts)
        new, existing = new + len(receipts) - replayed, existing + replayed
        break
    return result._replace(new=new, existing=existing)


def _print(result: ImportResult, *, dry_run: bool) -> None:
    print(f"{'would import' if dry_run else 'imported'} {result.new:,} jobs")
    if result.existing:
        print(f"{result.existing:,} were imported before")
    if result.held:
        note(
            f"holdfast: {len(result.held):,} rows are held by a worker of the source system: stop it, and repeat the "
            "command when its lease has expired"
        )
    for reason, number in Counter(fault.reason for fault in result.faults).most_common(_MAX_SHOWN_FAULTS):
        example = next(fault.id for fault in result.faults if fault.reason == reason)
        others = f" and {number - 1:,} more" if number > 1 else ""
        note(f"holdfast: row {example}{others} was not imported: {reason}")
