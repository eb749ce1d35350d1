"""P42: huey#844, huey#733, huey#253: a claimed job was deleted from the queue and lost when its worker died.

Ten thousand jobs with HOLDFAST_LONG_TESTS=1.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE

from holdfast.model.time import seconds
from tests.support.builders import put, reap_once, some_jobs
from tests.support.eventually import eventually
from tests.support.long import LONG

JOBS = 10_000 if LONG else 2_000
PROCESSES = 8
CLAIM_ALL = """
import asyncio, json, sys
from holdfast.compose import open_store
from holdfast.model.time import Duration
from tests.support.builders import enter, report, share, take

async def main(url, lease, die):
    store = await open_store(url)
    worker = await enter(store, lease=Duration(int(lease)))
    while jobs := await take(store, worker, share(max_jobs=100)):
        print(json.dumps([(str(job.id), job.fence) for job in jobs]), flush=True)
        if die:
            await asyncio.Event().wait()
        await report(store, jobs)
    await store.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


async def claimer(url, lease, die=""):
    return await asyncio.create_subprocess_exec(sys.executable, "-c", CLAIM_ALL, url, str(lease), die, stdout=PIPE)


async def test_eight_processes_claim_each_job_once_and_jobs_of_a_killed_one_again(store, database_url):
    """F01, S6: even on SQLite, where a claim must not read before it writes."""
    jobs = some_jobs(JOBS)
    await put(store, *jobs)
    killed = await claimer(database_url, seconds(1), "die")
    lost = json.loads(await killed.stdout.readline())
    killed.kill()
    await killed.wait()
    assert len(lost) == await eventually(lambda: reap_once(store))
    others = [await claimer(database_url, seconds(600)) for _ in range(PROCESSES)]
    printed = await asyncio.gather(*(process.communicate() for process in others))
    claimed = [tuple(each) for output, _ in printed for line in output.splitlines() for each in json.loads(line)]
    again = {job for job, _ in lost}
    assert sorted(claimed) == sorted((str(job.id), 2 if str(job.id) in again else 1) for job in jobs)
    assert [process.returncode for process in others] == [0] * PROCESSES
