"""Schema steps: applied in order, refused where they are not ours."""

import pytest

from holdfast.errors import SchemaMismatch
from holdfast.store.migrate import AppliedMigration, Migration, pending, require_current

ONE, TWO, THREE = (Migration(n, f"step{n}", f"CREATE TABLE t{n} (n int);", f"sum{n}") for n in (1, 2, 3))


def applied(*migrations: Migration) -> list[AppliedMigration]:
    return [AppliedMigration(step.version, step.name, step.checksum) for step in migrations]


def test_an_empty_database_gets_everything_in_order() -> None:
    assert pending([ONE, TWO, THREE], []) == [ONE, TWO, THREE]


def test_an_older_database_gets_what_it_lacks() -> None:
    assert pending([ONE, TWO, THREE], applied(ONE)) == [TWO, THREE]


def test_a_current_database_gets_nothing() -> None:
    assert pending([ONE, TWO], applied(ONE, TWO)) == []
    require_current([ONE, TWO], applied(ONE, TWO))


def test_a_newer_database_is_refused_and_the_node_is_to_be_upgraded() -> None:
    with pytest.raises(SchemaMismatch, match=r"version 3.*works with 2.*upgrade"):
        pending([ONE, TWO], applied(ONE, TWO, THREE))


def test_a_step_that_was_changed_after_it_was_applied_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="0001_step1"):
        pending([ONE._replace(checksum="other")], applied(ONE))


def test_an_old_database_is_refused_with_the_command_that_helps() -> None:
    with pytest.raises(SchemaMismatch, match=r"version 1.*works with 3.*holdfast migrate"):
        require_current([ONE, TWO, THREE], applied(ONE))


def test_a_step_is_cut_into_its_statements_without_comments() -> None:
    step = ONE._replace(sql="-- why\nCREATE TABLE a (x int);\n\n  -- more\nCREATE TABLE b (y int);\n")

    assert [statement.split()[2] for statement in step.statements()] == ["a", "b"]
