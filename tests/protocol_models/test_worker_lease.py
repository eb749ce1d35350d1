"""A lease that belongs to a worker's incarnation: claim and reap cannot miss each other (S6, L1, P15)."""

import pytest

from tests.protocol_models.worker_lease import Broken, Row, Size, World, check


@pytest.mark.parametrize("size", [Size(), Size(processes=1, lives=3), Size(processes=3, lives=1)], ids=str)
def test_no_job_is_ever_held_by_a_worker_that_nobody_will_reap(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.story) == ("", [])
    assert found.states > 200
    assert all(_all_lives_are_lived(world, size) for world in found.stuck)


def _all_lives_are_lived(world: World, size: Size) -> bool:
    """The only way to wait for ever is that no worker is left, which a model with few of them allows."""
    last = {number * size.lives + size.lives - 1 for number in range(size.processes)}
    current = {process.incarnation for process in world.processes}
    return current == last and not any(world.rows[incarnation] is Row.LIVE for incarnation in current)


NEEDED = [
    (Broken.CLAIM_WITHOUT_LOCK, "P15", "register0 ask0 expire0 strike0 take0"),
    (Broken.STRIKE_FIRST, "P15", "register0 ask0 take0 expire0 strike0 die mid-reap"),
    (Broken.INCARNATION_REUSED, "L1", "register0 ask0 take0 restart0 renew0"),
    (Broken.LOST_CLAIM_FORGOTTEN, "L1", "register0 ask0 take, lost0 renew0"),
]


@pytest.mark.parametrize("broken, invariant, story", NEEDED, ids=[str(case[0]) for case in NEEDED])
def test_a_broken_rule_is_found_out_by_its_shortest_story(broken: Broken, invariant: str, story: str) -> None:
    found = check(Size(), broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.story) == story


def test_every_rule_that_can_be_broken_is_tried() -> None:
    tried = Broken.NOTHING
    for broken, *_ in NEEDED:
        tried |= broken

    assert tried == ~Broken.NOTHING
