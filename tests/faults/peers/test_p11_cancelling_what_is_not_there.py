"""P11: arq#485: aborting a job that did not exist killed a later job with the same id."""

from holdfast.model.ids import new_job_id


async def test_cancelling_an_unknown_job_leaves_no_trace(scene):
    unknown = new_job_id()
    assert await scene.engine.jobs.cancel([unknown], reason="not there") == set()
    assert await scene.engine.jobs.counts() == []
    scene.node()
    await scene.submit("job")
    await scene.becomes("succeeded", "job")


async def test_cancelling_a_finished_job_leaves_no_trace(scene):
    node = scene.node()
    done = await scene.submit("job")
    (before,) = await scene.becomes("succeeded", "job")
    assert await scene.engine.jobs.cancel([done], reason="too late") == set()
    assert await scene.job("job") == before
    await scene.submit("next")
    await scene.becomes("succeeded", "next")
    assert set(scene.ledger.per_key("start").values()) == {1}
    assert node.alive()
