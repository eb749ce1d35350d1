"""Schema migrations: applied in order, and rejected if they do not match."""

import pytest

from holdfast.errors import SchemaMismatch
from holdfast.store.migrate import AppliedMigration, Migration, pending, require_current

ONE, TWO, THREE = (Migration(n, f"migration{n}", f"CREATE TABLE t{n} (n int);", f"sum{n}") for n in (1, 2, 3))


def applied(*migrations: Migration) -> list[AppliedMigration]:
    return [AppliedMigration(migration.version, migration.name, migration.checksum) for migration in migrations]


def test_an_empty_database_gets_all_migrations_in_order() -> None:
    assert pending([ONE, TWO, THREE], []) == [ONE, TWO, THREE]


def test_an_older_database_gets_the_missing_migrations() -> None:
    assert pending([ONE, TWO, THREE], applied(ONE)) == [TWO, THREE]


def test_a_current_database_gets_no_migrations() -> None:
    assert pending([ONE, TWO], applied(ONE, TWO)) == []
    require_current([ONE, TWO], applied(ONE, TWO))


def test_a_newer_database_is_rejected_with_the_advice_to_upgrade() -> None:
    with pytest.raises(SchemaMismatch, match=r"version 3.*works with 2.*upgrade"):
        pending([ONE, TWO], applied(ONE, TWO, THREE))


def test_a_migration_changed_after_it_was_applied_is_rejected() -> None:
    with pytest.raises(SchemaMismatch, match="0001_migration1"):
        pending([ONE._replace(checksum="other")], applied(ONE))


def test_an_old_database_is_rejected_with_the_command_to_run() -> None:
    with pytest.raises(SchemaMismatch, match=r"version 1.*works with 3.*holdfast migrate"):
        require_current([ONE, TWO, THREE], applied(ONE))


def test_a_migration_is_split_into_statements_without_comments() -> None:
    migration = ONE._replace(sql="-- why\nCREATE TABLE a (x int);\n\n  -- more\nCREATE TABLE b (y int);\n")

    assert [statement.split()[2] for statement in migration.statements()] == ["a", "b"]
