"""`holdfast migrate`: migrate the schema, show its state, or print the SQL for review."""

import click

from holdfast import compose
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import FAILED, OK, startup_errors
from holdfast.cli.options import settings_options
from holdfast.cli.render import as_json, table
from holdfast.compose import open_store
from holdfast.config import Settings, shown_url
from holdfast.errors import SchemaMismatch
from holdfast.store import migrate as schema
from holdfast.store.console import dialect_of, has_table, is_new_file, open_console
from holdfast.store.migrate import AppliedMigration, Migration


@click.group(invoke_without_command=True)
@settings_options()
@click.option("--json", "json", is_flag=True, help="print JSON")
@click.pass_context
def migrate(context: click.Context, settings: Settings, *, json: bool) -> None:
    r"""Migrate the database schema to this version of holdfast.

    Safe while nodes are running, and on several nodes at the same time. Without a subcommand it migrates.

    \b
      holdfast migrate
      holdfast migrate --database-url postgresql://localhost/jobs
    """
    if context.invoked_subcommand is not None:
        return
    done = run(_up(settings))
    if json:
        print(as_json({"applied": done}))
    elif done:
        print("\n".join(f"applied {name}" for name in done))
    else:
        print(f"up to date: {shown_url(settings.database_url)}")


@migrate.command()
@settings_options()
@click.option("--json", "json", is_flag=True, help="print JSON")
def status(settings: Settings, *, json: bool) -> int:
    r"""Show which migrations are applied. Exit code 1 if some are pending.

    \b
      holdfast migrate status
    """
    known = schema.migrations(dialect_of(settings.database_url))
    missing = schema.pending(known, run(_applied(settings)))
    names = [f"{step.version:04d}_{step.name}" for step in known]
    states = ["pending" if step in missing else "applied" for step in known]
    if json:
        print(as_json({"steps": [{"name": n, "state": s} for n, s in zip(names, states, strict=True)]}))
    else:
        table(["step", "state"], list(zip(names, states, strict=True)))
    return FAILED if missing else OK


@migrate.command()
@settings_options()
@click.option("--all", "everything", is_flag=True, help="all migrations, including applied ones; does not connect")
def sql(settings: Settings, *, everything: bool) -> None:
    r"""Print the SQL of pending migrations, for review. Changes nothing.

    \b
      holdfast migrate sql
    """
    known = schema.migrations(dialect_of(settings.database_url))
    migrations = known if everything else schema.pending(known, run(_applied(settings)))
    if not migrations:
        print("-- up to date: nothing to apply")
    for step in migrations:
        print(_as_sql(step))


@migrate.command()
@settings_options()
@click.option("--json", "json", is_flag=True, help="print JSON")
def indexes(settings: Settings, *, json: bool) -> None:
    r"""Recreate missing indexes. Jobs continue to run meanwhile.

    \b
      holdfast migrate indexes
    """
    created = run(_create_indexes(settings))
    if json:
        print(as_json({"made": created}))
    else:
        print("\n".join(f"created {name}" for name in created) if created else "no index is missing")


async def _create_indexes(settings: Settings) -> list[str]:
    from holdfast.cli.checks.database import missing_indexes

    with startup_errors(settings):
        store = await open_store(settings.database_url, pool_size=2)
        try:
            await store.check_schema()
        finally:
            await store.aclose()
    created = []
    console = await open_console(settings.database_url)
    try:
        for index in await missing_indexes(console):
            if console.dialect == "postgres":  # an interrupted CREATE INDEX leaves an invalid index
                await console.rows(f"DROP INDEX IF EXISTS {index.name}")
            await console.rows(index.statement)
            created.append(index.name)
    finally:
        await console.aclose()
    return created


def _as_sql(step: Migration) -> str:
    line = "-" * 60
    return (
        f"-- {line}\n-- step {step.version:04d}_{step.name}, checksum {step.checksum}\n-- {line}\n{step.sql.rstrip()}\n"
    )


async def _up(settings: Settings) -> list[str]:
    with startup_errors(settings):
        return await compose.migrate(settings.database_url)


async def _applied(settings: Settings) -> list[AppliedMigration]:
    """Read the applied migrations.

    Opens the store first, because it checks the database and reports errors well.
    """
    if dialect_of(settings.database_url) == "sqlite" and is_new_file(settings.database_url):
        return []  # do not create the file
    with startup_errors(settings):
        store = await open_store(settings.database_url, pool_size=2)
        try:
            await store.check_schema()
        except SchemaMismatch:
            pass  # the caller reports it
        finally:
            await store.aclose()
    console = await open_console(settings.database_url)
    try:
        if not await has_table(console, "holdfast_schema"):
            return []
        rows = await console.rows("SELECT version, name, checksum FROM holdfast_schema ORDER BY version")
        return [AppliedMigration(*row) for row in rows]
    finally:
        await console.aclose()
