"""An application migrates the schema of its database from Python."""

import pytest

from holdfast import Holdfast, Misconfigured


@pytest.fixture
def fresh(tmp_path):
    with Holdfast(f"sqlite:///{tmp_path}/fresh.db") as app:
        yield app


def test_migrate_prepares_a_fresh_database_and_is_idempotent(fresh):
    @fresh.job
    def work(n: int) -> int:
        return n

    applied = fresh.migrate()
    assert applied
    assert fresh.migrate() == []
    assert work.enqueue(1).status() == "ready"


async def test_amigrate_prepares_a_fresh_database_on_a_running_event_loop(fresh):
    @fresh.job
    async def work(n: int) -> int:
        return n

    assert await fresh.amigrate()
    assert await fresh.amigrate() == []
    assert await (await work.aenqueue(1)).status() == "ready"
    await fresh.aclose()


async def test_migrate_works_where_an_event_loop_runs_already(fresh):
    assert fresh.migrate()


def test_an_application_of_a_node_says_where_to_migrate():
    app = Holdfast("http://node:8080", key="secret-key")
    with pytest.raises(Misconfigured, match="is a node, which has no schema") as caught:
        app.migrate()
    assert "secret-key" not in str(caught.value)


def test_migrate_changes_nothing_on_a_current_database_of_any_kind(app):
    assert app.migrate() == []
