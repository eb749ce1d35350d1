"""A lease of a worker's incarnation: claims and reaps cannot miss each other (S6, L1, P15)."""

import pytest

from tests.protocol_models.worker_lease import Broken, Row, Size, World, check


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(), marks=pytest.mark.slow),
        Size(processes=1, lives=3),
        pytest.param(Size(processes=3, lives=1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_no_job_is_ever_held_by_a_worker_that_is_never_reaped(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.trace) == ("", [])
    assert found.states > 200
    assert all(_no_worker_is_left(world, size) for world in found.stuck)


def _no_worker_is_left(world: World, size: Size) -> bool:
    """Return True if all incarnations have ended: a job may wait forever only then, because the model is bounded."""
    last = {number * size.lives + size.lives - 1 for number in range(size.processes)}
    current = {process.incarnation for process in world.processes}
    return current == last and not any(world.rows[incarnation] is Row.LIVE for incarnation in current)


TRACES = [
    (Broken.CLAIM_WITHOUT_LOCK, "P15", "register0 claim0 expire0 remove0 take0"),
    (Broken.REMOVE_FIRST, "P15", "register0 claim0 take0 expire0 remove0 die mid-reap"),
    (Broken.INCARNATION_REUSED, "L1", "register0 claim0 take0 restart0 renew0"),
    (Broken.LOST_CLAIM_IGNORED, "L1", "register0 claim0 take, lost0 renew0"),
]


@pytest.mark.parametrize("broken, invariant, trace", TRACES, ids=[str(case[0]) for case in TRACES])
def test_a_broken_rule_leads_to_a_fault_by_its_shortest_trace(broken: Broken, invariant: str, trace: str) -> None:
    found = check(Size(), broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.trace) == trace


def test_every_rule_is_covered() -> None:
    tried = Broken.NOTHING
    for broken, *_ in TRACES:
        tried |= broken

    assert tried == ~Broken.NOTHING
