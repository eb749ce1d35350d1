"""P39: aegra#547: the heartbeat itself hung longer than the lease, so the handler was never stopped."""

import time

import pytest

from holdfast.model.time import in_seconds
from tests.support.fault_env import KINDS
from tests.support.proxy import proxied

LEASE = 3.0


@pytest.mark.only_by_database
@pytest.mark.databases("postgres", "mysql")
async def test_handlers_are_stopped_before_their_lease_ends_even_if_the_database_is_silent(scene):
    """F11, S6: packets vanish without an error. A timer stops the handlers; the node recovers afterwards."""
    async with proxied(scene.url) as (proxy, url):
        node = scene.node(lease=LEASE, url=url)
        (worker,) = await scene.workers(1)
        for kind in KINDS:
            await scene.submit(kind, kind, sleep=600)
        for kind in KINDS:
            await scene.starts(kind)
        proxy.black_hole()
        for kind in ("async", "thread"):
            await scene.noted("cancelled", kind)
        await scene.gone(worker.info.pid)
        holder = (await scene.job("async")).worker  # a slow registration is repeated under another id
        (row,) = [row for row in await scene.engine.workers.all() if row.info.id == holder]  # not through the proxy
        left = in_seconds(row.expires_at - await scene.engine.store.single(lambda tx: tx.now()))
        over = time.monotonic() + left
        assert all(entry.at < over for entry in scene.ledger.entries("cancelled"))
        await scene.gone(scene.ledger.entries("start", "process")[0].pid)
        assert scene.ledger.count("end") == 0

        proxy.heal()
        for kind in KINDS:
            await scene.starts(kind, times=2)
        assert node.alive()
