"""Submission quotas hold across real processes, one of which is killed."""

from holdfast.model.access import Quotas
from holdfast.model.job import JobFilter, Page
from holdfast.model.time import seconds
from tests.support.eventually import eventually
from tests.support.submitters import TENANT, AcceptedJob, over, submitters

RATE, WINDOW = 60, seconds(1)


async def test_no_window_exceeds_the_rate_while_submitters_compete_and_die(store, database_url, tmp_path):
    """S15, T20, F01: four processes with six concurrent submitters each; every accepted submission is checked."""
    await store.run(lambda tx: tx.add_tenant(TENANT, Quotas(rate=RATE, rate_window=WINDOW)))

    with submitters(database_url, tmp_path, 4, 3 * WINDOW) as processes:
        await eventually(processes[0].was_refused)
        processes[0].kill()
        for each in processes[1:]:
            await eventually(each.has_ended)

        assert [each.process.returncode for each in processes[1:]] == [0, 0, 0]
        reported = [each for process in processes for each in process.accepted()]
        stored = await store.read(lambda tx: tx.find(JobFilter(), Page(100_000)))
        stored_ids = {str(job.id) for job in stored}
        assert {each.id.split("/")[0] for each in reported} <= stored_ids
        # Submissions with a response, including repeats, and those that the killed process did not report.
        known = {each.id.split("/")[0] for each in reported}
        unreported = [AcceptedJob(str(job.id), job.created_at, job.cost) for job in stored if str(job.id) not in known]
        accepted = reported + unreported
        assert over(accepted, WINDOW, RATE) == []
        assert sum(each.cost for each in accepted) > RATE  # more than one window
        assert all(process.refused() for process in processes)


def test_the_sweep_finds_a_window_that_exceeds_the_rate():
    """S15: proves that the sweep can fail."""
    fine = [AcceptedJob("a", 0, 5), AcceptedJob("b", 11, 5), AcceptedJob("c", 22, 5)]
    assert over(fine, 10, 5) == []
    assert over(fine, 11, 5) == [(11, 10), (22, 10)]
    assert over([AcceptedJob("a", 7, 3), AcceptedJob("b", 7, 3)], 10, 5) == [(7, 6)]
