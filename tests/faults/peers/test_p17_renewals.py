"""P17: pgqueuer#430, pgqueuer#323: the heartbeat interval equalled the lease; a running job was claimed again."""

import pytest

from holdfast.config import load
from holdfast.model.time import in_seconds
from tests.support.eventually import eventually

LEASE = 2.0


@pytest.mark.parametrize("lease", ["1", "2.5", "15", "3600"])
def test_a_lease_is_renewed_after_a_third_of_it(lease, tmp_path):
    settings = load(environ={"HOLDFAST_LEASE_SECONDS": lease}, folder=tmp_path)
    assert settings.renewal * 3 <= settings.lease


async def test_a_lease_never_comes_near_its_end_while_the_processors_are_busy(scene):
    """L4: measured by the database's clock over two leases, while another process spins."""
    node = scene.node(lease=LEASE)
    (worker,) = await scene.workers(1)
    await scene.submit("spin", "process", action="spin", amount=2 * LEASE)
    seen, shortest = set(), LEASE

    async def watched_until_the_end():
        nonlocal shortest
        now = await scene.engine.store.single(lambda tx: tx.now())
        rows = await scene.engine.workers.all()
        assert [row.info.id for row in rows] == [worker.info.id], scene.logs()
        seen.add(rows[0].expires_at)
        shortest = min(shortest, in_seconds(rows[0].expires_at - now))
        return (await scene.job("spin")).status == "succeeded"

    await eventually(watched_until_the_end)
    assert len(seen) >= 4  # twice as often as needed
    assert shortest > 0
    assert "its lease" not in node.log
