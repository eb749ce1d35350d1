"""P09: arq#343, arq#407: the job of a crashed worker stayed idle until its own timeout, possibly for hours."""

from signal import SIGKILL


async def test_a_job_is_run_again_long_before_its_timeout(scene):
    first = scene.node(lease=1.0)
    await scene.submit("job", sleep=600, held=True, timeout=24 * 3600)
    await scene.starts("job")
    first.signal_all(SIGKILL)
    scene.node(lease=1.0)
    await scene.starts("job", times=2)
    scene.let_go("job")
    await scene.becomes("succeeded", "job")
    assert scene.ledger.count("start", "job") == 2
