"""Writes in the engine's own database happen once, whoever dies meanwhile.

Twelve kills with HOLDFAST_LONG_TESTS=1.
"""

from tests.support.effects import Found, Plan, run
from tests.support.long import LONG

PLAN = Plan(jobs=600, kills=12) if LONG else Plan(jobs=150, kills=4, slots=5)


async def test_every_effect_happens_once_even_if_workers_are_killed_throughout(database_url, tmp_path):
    """S11, F01, F02: nothing but guard, effect and fence in one transaction keeps a row from being written twice."""
    found = await run(database_url, tmp_path, PLAN)
    assert found == Found(
        succeeded=PLAN.jobs, rows=PLAN.jobs, written_twice=0, not_written=0, kills=PLAN.kills,
        interrupted=found.interrupted,
    )  # fmt: skip
    assert found.interrupted > 0
