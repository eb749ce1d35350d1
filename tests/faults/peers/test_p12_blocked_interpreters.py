"""P12: dramatiq#692, bullmq#3183: a busy loop or a C extension blocked heartbeats; the job ran twice."""

from tests.support.eventually import eventually
from tests.support.fault_env import KINDS, TIMEOUT_S

LEASE = 1.5


async def test_handlers_that_hold_the_interpreter_for_five_leases_start_once(scene):
    """F29, L4: the lease stays valid, other jobs wait or continue, and nothing runs twice."""
    await _run_once(scene, "hold_gil", KINDS)


async def test_a_handler_that_blocks_the_loop_for_five_leases_starts_once_and_is_named(scene):
    """F28, L4: the supervisor renews the lease, even if the worker is blocked."""
    (node,) = await _run_once(scene, "block", ["async"])
    assert "handler 'sink' has blocked the event loop" in node.log


async def _run_once(scene, action, kinds):
    """On a node each, with other jobs beside and behind them, and another node that would take them over.

    They are let go when their workers have claimed all there is: a process that is stopped in the middle of a write
    keeps a file of SQLite locked for everybody, its own supervisor too.
    """
    nodes = [scene.node(lease=LEASE, queues=f"{kind}:10") for kind in kinds]
    for kind in kinds:
        await scene.submit(f"beside {kind}", "thread", queue=kind, sleep=600, held=True)
        await scene.submit(kind, kind, queue=kind, sleep=600, held=True, action=action, amount=5 * LEASE)
    for kind in kinds:
        await scene.starts(f"beside {kind}")
        await scene.starts(kind)
    for kind in kinds:
        scene.let_go(kind)
    for kind in kinds:
        await scene.noted("acts", kind)
        scene.let_go(f"beside {kind}")
    scene.node(lease=LEASE, queues=",".join(f"{kind}:10" for kind in kinds))
    for n in range(5):
        for kind in kinds:
            await scene.submit(f"later {n} {kind}", queue=kind)

    async def over():
        return all(scene.ledger.count("end", kind) or scene.ledger.count("start", kind) > 1 for kind in kinds)

    await eventually(over, within=TIMEOUT_S)
    assert {kind: scene.ledger.count("start", kind) for kind in kinds} == dict.fromkeys(kinds, 1), scene.logs()
    jobs = await scene.becomes("succeeded")
    assert set(scene.ledger.per_key("start").values()) == {1}
    assert {(job.attempts, job.fence) for job in jobs} == {(1, 1)}
    assert not [node.log for node in nodes if "its lease" in node.log]
    return nodes
