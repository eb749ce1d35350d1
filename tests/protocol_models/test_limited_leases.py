"""A limit on what runs holds in every interleaving, loses no slot, and each of its rules is needed (S16, P18)."""

import pytest

from tests.protocol_models.limited_leases import Broken, Size, check


@pytest.mark.parametrize(
    "size",
    [Size(), Size(workers=3, attempts=1), pytest.param(Size(jobs=3, limit=2, attempts=1), marks=pytest.mark.slow)],
    ids=lambda size: "-".join(map(str, size)),
)
def test_the_limit_holds_and_an_end_with_all_slots_free_is_always_in_reach(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.story) == ("", [])
    assert found.stuck == []
    assert found.states > 300


TWO = Size()
THREE = Size(jobs=3, attempts=1)

NEEDED = [
    (Broken.GIVE_BACK_UNFENCED, TWO, "S16", "claim 0 by 0 fail, lost0 claim 0 by 1 again0 claim 1 by 0"),
    (Broken.GIVE_BACK_AGAIN, TWO, "S16", "claim 0 by 0 fail, lost0 claim 0 by 1 again0 claim 1 by 0"),
    (Broken.GIVE_BACK_TWICE, TWO, "S16", "claim 0 by 0 fail0 claim 0 by 0 claim 1 by 1"),
    (Broken.GIVE_BACK_APART, TWO, "P18", "claim 0 by 0 settle0 die0"),
    (Broken.REAP_FORGETS, TWO, "P18", "claim 0 by 0 expire 0 scan 0 reap"),
    (Broken.REAP_GIVES_BACK_UNSEEN, TWO, "S16", "claim 0 by 0 expire 0 scan 0 fail0 claim 0 by 0 pass by claim 1 by 1"),
    (Broken.CANCEL_FORGETS, TWO, "P18", "claim 0 by 0 cancel 0"),
    (Broken.CANCEL_GIVES_BACK_ALWAYS, THREE, "S16", "claim 0 by 0 cancel 1 claim 2 by 1"),
    (Broken.LOOK_APART, TWO, "S16", "look0 look1 claim 0 by 0 claim 1 by 1"),
    (Broken.CLAIM_FIRST_UNCHECKED, TWO, "S16", "claim 0 by 0 claim 1 by 1"),
]


@pytest.mark.parametrize("broken, size, invariant, story", NEEDED, ids=[str(case[0]) for case in NEEDED])
def test_a_broken_rule_is_found_out_by_its_shortest_story(
    broken: Broken, size: Size, invariant: str, story: str
) -> None:
    found = check(size, broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.story) == story


def test_every_rule_that_can_be_broken_is_tried() -> None:
    tried = Broken.NOTHING
    for broken, *_ in NEEDED:
        tried |= broken

    assert tried == ~Broken.NOTHING
