"""Remote workers whose service node is killed, stopped or silent."""

import time
from contextlib import AsyncExitStack

import pytest

from holdfast.model.time import in_seconds
from tests.support.eventually import eventually
from tests.support.fault_env import KINDS
from tests.support.long import LONG
from tests.support.proxy import proxied

pytestmark = [pytest.mark.only_by_http, pytest.mark.databases("sqlite", *(["postgres"] if LONG else []))]

LEASE = 3.0


async def begun(scene, more):
    """Wait until this many more handlers have started, or all."""
    wanted = min(scene.ledger.count("start") + more, len(scene._jobs))

    async def so_many():
        return scene.ledger.count("start") >= wanted

    await eventually(so_many, within=60)


@pytest.mark.timeout(300)
@pytest.mark.databases("postgres")
async def test_jobs_survive_repeated_kills_of_the_service(scene):
    """F01, F08, F10, S1, S3: during claims, settles and steps; it is back before the lease ends.

    No lease is lost meanwhile, so no job starts twice: workers look up the outcome of requests with a lost response.
    """
    node = scene.node(lease=600, queues="default:4", processes=2)  # longer than any start of the service
    for n in range(60):
        await scene.submit(f"job-{n}", "stepping" if n % 3 == 0 else "async", **({} if n % 3 == 0 else {"sleep": 0.1}))
    for _ in range(3):
        await begun(scene, 8)
        scene.service.kill()
        scene.service.start()
    await scene.becomes("succeeded")
    again = {key: await scene.attempts(key) for key in scene._jobs if (await scene.job(key)).attempts != 1}
    assert not again, f"{again}\n{scene.logs()}"
    twice = {key: times for key, times in scene.ledger.per_key("start").items() if times != 1}
    assert not twice, f"{twice}\n{scene.logs()}"
    assert set(scene.ledger.per_key("end").values()) == {1}
    assert scene.ledger.count("effect") == 20
    assert node.alive()
    assert len(await scene.workers(2)) == 2


@pytest.mark.parametrize("how", ["killed", "silent"])
async def test_handlers_are_stopped_before_their_lease_ends_even_if_the_service_is_silent(scene, how):
    """P39, F11, S6: a timer stops them if connections are refused or hang; the node recovers afterwards."""
    async with AsyncExitStack() as stack:
        proxy, url = await stack.enter_async_context(proxied(scene.service.url))
        node = scene.node(lease=LEASE, environment={"HOLDFAST_API_URL": url})
        (worker,) = await scene.workers(1)
        for kind in KINDS:
            await scene.submit(kind, kind, sleep=600)
        for kind in KINDS:
            await scene.starts(kind)
        if how == "killed":
            scene.service.kill()
        else:
            proxy.black_hole()
        for kind in ("async", "thread"):
            await scene.noted("cancelled", kind)
        await scene.gone(worker.info.pid)
        stopped = {entry.key: entry.at for entry in scene.ledger.entries("cancelled")}
        now = await scene.engine.store.single(lambda tx: tx.now())
        left = in_seconds(await expiry(scene, worker) - now)
        assert all(at < time.monotonic() + left for at in stopped.values())
        await scene.gone(scene.ledger.entries("start", "process")[0].pid)
        assert scene.ledger.count("end") == 0

        if how == "killed":
            scene.service.start()
        else:
            proxy.heal()
        for kind in KINDS:
            await scene.starts(kind, times=2)
        assert node.alive()


async def expiry(scene, worker):
    """Return the end of a worker's lease, or an upper bound of it if the worker was removed since."""
    rows = {row.info.id: row.expires_at for row in await scene.engine.workers.all()}
    return rows.get(worker.info.id, await scene.engine.store.single(lambda tx: tx.now()))


async def test_a_service_that_shuts_down_ends_waiting_claims(scene):
    """F04: at once; workers continue with the next node at the same address."""
    scene.node(queues="default:2")
    await scene.submit("before")
    await scene.becomes("succeeded", "before")
    assert scene.service.stop() == 0
    scene.service.start()
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    assert set(scene.ledger.per_key("start").values()) == {1}


async def test_a_cancellation_reaches_a_handler_on_a_remote_worker(scene):
    """S7, S19: the handler is stopped and cannot record anything."""
    scene.node()
    for kind in ("async", "thread"):
        await scene.submit(kind, kind, sleep=600)
        await scene.starts(kind)
    ids = [(await scene.job(kind)).id for kind in ("async", "thread")]
    assert await scene.engine.jobs.cancel(ids, reason="by a person") == set(ids)
    for kind in ("async", "thread"):
        await scene.noted("cancelled", kind)
    assert scene.ledger.count("end") == 0
    await scene.submit("after")
    await scene.becomes("succeeded", "after")


async def test_a_transaction_is_rejected_on_a_worker_without_a_database(scene):
    """The job is dead at once with advice, because every attempt would fail."""
    scene.node()
    await scene.submit("job", "effect", sql="SELECT 1", args=[])
    await scene.becomes("dead", "job")
    (attempt,) = await scene.attempts("job")
    assert "no database" in attempt.error.message


async def test_a_node_with_a_wrong_api_key_reports_it_and_ends(scene):
    node = scene.node(environment={"HOLDFAST_API_KEY": f"hf_{'0' * 16}_{'0' * 64}"})
    assert node.wait() != 0
    assert "the API key or token is missing or not valid" in node.log
