"""Writes in the database of the job queue happen once, even if workers die meanwhile.

Twelve kills with HOLDFAST_LONG_TESTS=1.
"""

from tests.support.effects import EffectCounts, Plan, run
from tests.support.long import LONG

PLAN = Plan(jobs=600, kills=12) if LONG else Plan(jobs=150, kills=4, slots=5)


async def test_every_effect_happens_once_even_if_workers_are_killed_throughout(database_url, tmp_path):
    """S11, F01, F02: guard, effect and fence commit in one transaction, so that no row is written twice."""
    found = await run(database_url, tmp_path, PLAN)
    assert found == EffectCounts(
        succeeded=PLAN.jobs, rows=PLAN.jobs, duplicates=0, missing_rows=0, kills=PLAN.kills,
        interrupted=found.interrupted,
    )  # fmt: skip
    assert found.interrupted > 0
