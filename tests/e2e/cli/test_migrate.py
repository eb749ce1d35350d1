"""`holdfast migrate` on each database."""

import json

from holdfast.store.console import dialect_of
from holdfast.store.migrate import migrations


def test_migrate_applies_all_migrations_and_then_none(holdfast, empty_database_url):
    names = [f"{step.version:04d}_{step.name}" for step in migrations(dialect_of(empty_database_url))]
    first = holdfast("migrate", HOLDFAST_DATABASE_URL=empty_database_url)
    assert (first.code, first.out.split()) == (0, [word for name in names for word in ("applied", name)])
    second = holdfast("migrate", HOLDFAST_DATABASE_URL=empty_database_url)
    assert second.code == 0
    assert second.out.startswith("up to date: ")
    assert json.loads(holdfast("migrate", "--json", HOLDFAST_DATABASE_URL=empty_database_url).out) == {"applied": []}


def test_status_lists_pending_and_applied_migrations(holdfast, empty_database_url):
    before = holdfast("migrate", "status", "--json", HOLDFAST_DATABASE_URL=empty_database_url)
    assert before.code == 1
    assert {step["state"] for step in json.loads(before.out)["steps"]} == {"pending"}
    holdfast("migrate", HOLDFAST_DATABASE_URL=empty_database_url)
    after = holdfast("migrate", "status", HOLDFAST_DATABASE_URL=empty_database_url)
    assert after.code == 0
    assert "0001_initial" in after.out
    assert "applied" in after.out


def test_sql_prints_pending_migrations_and_changes_nothing(holdfast, empty_database_url):
    url = {"HOLDFAST_DATABASE_URL": empty_database_url}
    pending = holdfast("migrate", "sql", **url).out
    assert pending == holdfast("migrate", "sql", **url).out
    for step in migrations(dialect_of(empty_database_url)):
        assert step.sql.rstrip() in pending
    holdfast("migrate", **url)
    assert holdfast("migrate", "sql", **url).out == "-- up to date: nothing to apply\n"
    assert holdfast("migrate", "sql", "--all", **url).out == pending


def test_status_and_sql_create_no_file(holdfast, tmp_path):
    assert holdfast("migrate", "status").code == 1
    assert holdfast("migrate", "sql").code == 0
    assert list(tmp_path.iterdir()) == []


def test_sql_of_all_migrations_needs_no_server(holdfast):
    assert "CREATE TABLE holdfast_live" in holdfast("migrate", "sql", "--all", DB_DSN="postgresql://absent/db").out


def test_a_password_is_not_shown(holdfast, database_url):
    out = holdfast("migrate", HOLDFAST_DATABASE_URL=database_url).out
    assert out.startswith("up to date")
    assert "@" not in out or ":***@" in out
