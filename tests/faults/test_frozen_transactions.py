"""A node that freezes inside a handler's transaction, with row locks, while other nodes die."""

from __future__ import annotations

from signal import SIGCONT, SIGKILL
from typing import TYPE_CHECKING

import pytest

from tests.support.clock import Console, dialect_of
from tests.support.eventually import eventually
from tests.support.fault_env import TIMEOUT_S

if TYPE_CHECKING:
    from holdfast.model.ids import JobId
    from tests.support.fault_env import Scene

LEASE = 2.0

NO_IDLE_TIMEOUT = {"FAULT_APP_IDLE_TIMEOUT_S": "3600"}
"""The server does not end the frozen transaction during the test, however slow that is."""

LOCK = {
    "postgres": "SELECT id FROM holdfast_live WHERE id = '{}' FOR UPDATE SKIP LOCKED",
    "mysql": "SELECT id FROM holdfast_live WHERE id = UNHEX(REPLACE('{}', '-', '')) FOR UPDATE SKIP LOCKED",
}


async def is_locked(scene: Scene, job: JobId) -> bool:
    """Tell if a transaction holds a lock of the job's row."""
    async with Console(scene.url) as console:
        return not await console.run(LOCK[dialect_of(scene.url)].format(job))


@pytest.mark.databases("postgres", "mysql")  # SQLite has one writer, and a frozen one stops all others
@pytest.mark.only_by_database
async def test_jobs_of_dead_nodes_are_recovered_while_another_is_frozen_in_a_transaction(scene: Scene) -> None:
    """F03, L3: the frozen node's row locks delay only its own job."""
    frozen = scene.node(lease=LEASE, queues="frozen:1", environment=NO_IDLE_TIMEOUT)
    locked = await scene.submit("locked", "transaction", queue="frozen", max_attempts=5)
    await scene.noted("in transaction", "locked")
    (worker,) = await scene.workers_of(frozen)
    dead = scene.node(lease=LEASE)
    await scene.submit("lost", sleep=600, held=True)
    await scene.starts("lost")

    await scene.freeze(frozen)

    async def lease_has_expired() -> bool:
        now, rows = await scene.engine.workers.fleet()
        return any(row.info.id == worker.info.id and row.expires_at <= now for row in rows)

    await eventually(lease_has_expired, within=TIMEOUT_S)  # so that reapers find the frozen worker first
    dead.signal_all(SIGKILL)
    scene.node(lease=LEASE, queues="default:10,frozen:1")
    await scene.starts("lost", times=2)
    scene.let_go("lost")
    await scene.becomes("succeeded", "lost")
    assert await is_locked(scene, locked)
    assert scene.ledger.count("start", "locked") == 1

    frozen.signal_all(SIGCONT)
    await scene.starts("locked", times=2)
    scene.let_go("locked")
    await scene.becomes("succeeded", "locked")
