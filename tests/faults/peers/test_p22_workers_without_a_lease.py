"""P22: solid_queue#589, solid_queue#778: a process whose heartbeats failed kept working as a zombie.

P41: loupe#50: a worker that had lost its lease kept working for hours.
"""

from signal import SIGCONT

from holdfast.model.time import Duration
from tests.support.fault_env import KINDS


async def test_a_worker_that_lost_its_lease_stops_its_handlers(scene):
    """The lease expires in the database; the worker learns it from its next renewal."""
    node = scene.node(lease=2.0)
    (worker,) = await scene.workers(1)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=600)
    for kind in KINDS:
        await scene.starts(kind)
    await scene.engine.workers.renew(worker.info.id, Duration(1))
    await scene.says(node, "stopping its handlers")
    await scene.gone(worker.info.pid)
    for kind in KINDS:
        await scene.gone(scene.ledger.entries("start", kind)[0].pid)
        await scene.starts(kind, times=2)
    assert scene.ledger.count("cancelled", "async") == 1


async def test_a_worker_whose_supervisor_is_frozen_stops_its_handlers_by_itself(scene):
    """P41, F03: its own timer stops them before the lease ends and another node takes over."""
    frozen = scene.node(lease=2.0)
    await scene.workers(1)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=600, held=True)
    for kind in KINDS:
        await scene.starts(kind)
    first = {kind: scene.ledger.entries("start", kind)[0].pid for kind in KINDS}
    await scene.freeze(frozen, supervisor_only=True)
    scene.node(lease=2.0)
    for pid in set(first.values()):
        await scene.gone(pid)
    for kind in KINDS:
        await scene.starts(kind, times=2)
        scene.let_go(kind)
    await scene.becomes("succeeded")
    frozen.signal(SIGCONT)
    await scene.workers(2)
    for kind in KINDS:
        job = await scene.job(kind)
        assert (job.fence, scene.ledger.count("start", kind), scene.ledger.count("end", kind)) == (2, 2, 1)
    for kind in ("async", "thread"):
        (stopped,), (_, again) = scene.ledger.entries("cancelled", kind), scene.ledger.entries("start", kind)
        assert stopped.at < again.at
