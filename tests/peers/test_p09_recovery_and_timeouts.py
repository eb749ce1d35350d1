"""P09: arq#343, arq#407: the job of a crashed worker lay idle until its own timeout, which may be hours.

On SQLite only; that jobs of a killed node run elsewhere is tested on all databases, in tests/faults/test_leases.py.
"""

from signal import SIGKILL

import pytest


@pytest.mark.databases("sqlite")
async def test_a_job_is_run_again_long_before_its_timeout(scene):
    first = scene.node(lease=2.0)
    await scene.submit("job", sleep=1, timeout=24 * 3600)
    await scene.starts("job")
    first.signal_all(SIGKILL)
    scene.node(lease=2.0)
    await scene.becomes("succeeded", "job")
    assert scene.ledger.count("start", "job") == 2
