"""Processes are replaced after a number of jobs, or when they are large."""

import pytest

from holdfast.policy.recycling import MIB, NEVER, RecyclingRules, recycling_reason


@pytest.mark.parametrize(
    "rules, jobs, memory, due",
    [
        (NEVER, 10**9, 10**12, False),
        (RecyclingRules(max_jobs=100), 99, 10**12, False),
        (RecyclingRules(max_jobs=100), 100, None, True),
        (RecyclingRules(max_memory=300 * MIB), 1, 300 * MIB, False),
        (RecyclingRules(max_memory=300 * MIB), 1, 300 * MIB + 1, True),
        (RecyclingRules(max_memory=300 * MIB), 0, 400 * MIB, False),
        (RecyclingRules(max_memory=300 * MIB), 1, None, False),
    ],
)
def test_a_process_is_due_when_it_has_reached_a_bound(rules, jobs, memory, due):
    assert (recycling_reason(rules, jobs=jobs, memory=memory) is not None) == due


def test_the_reason_names_the_figures_and_the_setting():
    rules = RecyclingRules(max_jobs=1_000, max_memory=300 * MIB)
    assert recycling_reason(rules, jobs=1_200, memory=None) == (
        "it has finished 1,200 jobs (HOLDFAST_WORKER_MAX_JOBS is 1,000)"
    )
    assert recycling_reason(rules, jobs=1, memory=400 * MIB) == (
        "it uses 400 MiB (HOLDFAST_WORKER_MAX_MEMORY_MB is 300)"
    )
