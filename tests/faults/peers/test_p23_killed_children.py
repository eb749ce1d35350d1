"""P23: solid_queue#751: a supervisor ran without noticing that its worker was dead."""

import os
from signal import SIGKILL

from tests.support.eventually import eventually


async def test_each_killed_worker_process_is_replaced_and_the_register_shows_it(scene):
    node = scene.node(processes=2, lease=600)  # far longer than the test: nothing waits for a lease
    known = {row.info.pid: row.info.id for row in await scene.workers(2)}
    for pid in list(known):
        await scene.submit(f"job-{pid}", sleep=0.5)
        os.kill(pid, SIGKILL)
        await scene.gone(pid)

        async def replaced(pid=pid):
            rows = {row.info.pid: row.info.id for row in await scene.engine.workers.all()}
            return rows if len(rows) == 2 and pid not in rows else None

        now = await eventually(replaced)
        assert set(now) == set(node.children())
        assert len(set(now.values()) | set(known.values())) == len(known) + 1  # worker ids are never reused
        known |= now
    await scene.becomes("succeeded")
    assert node.log.count("ended by signal SIGKILL; starting another") == 2
