"""The lease protocol holds in every interleaving, and each of its rules is needed (S4, S7, S8, S11, S17, L4)."""

import pytest

from tests.protocol_models.lease_protocol import Broken, Size, check

EVERYTHING = Size(workers=2, attempts=2, releases=1, replays=1, answers_get_lost=True)


@pytest.mark.parametrize(
    "size",
    [
        Size(workers=2, attempts=3),
        Size(workers=3, attempts=3),
        pytest.param(Size(workers=4, attempts=4), marks=pytest.mark.slow),
        Size(workers=2, attempts=3, answers_get_lost=True),
        Size(workers=2, attempts=3, releases=2),
        Size(workers=2, attempts=3, replays=1),
        pytest.param(EVERYTHING, marks=pytest.mark.slow),
    ],
    ids=lambda size: "-".join(map(str, size)),
)
def test_nothing_can_go_wrong_and_an_end_is_always_in_reach(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.story) == ("", [])
    assert found.stuck == []
    assert found.states > 300


PLAIN = Size()
LOSSY = Size(answers_get_lost=True)

NEEDED = [
    (Broken.SETTLE_BY_ID, PLAIN, "S7", "claim0 step0 expire scan reap settle0"),
    (Broken.SETTLE_BY_STATE, PLAIN, "S7", "claim0 expire scan reap claim1 fail0"),
    (Broken.REAP_BY_ID, PLAIN, "S4", "claim0 expire scan cancel reap"),
    (Broken.REAP_BY_STATE, PLAIN, "L4", "claim0 expire scan fail0 claim0 reap"),
    (Broken.RENEW_BY_JOB, PLAIN, "S7", "claim0 expire scan reap claim1 renew0"),
    (Broken.STEP_UNFENCED, PLAIN, "S17", "claim0 cancel step0"),
    (Broken.GUARD_FIRST, PLAIN, "S11", "claim0 guard0 expire scan reap claim1 guard1 settle1"),
    (Broken.EFFECT_FIRST, PLAIN, "S11", "claim0 act0 expire scan reap claim1 act1"),
    (Broken.COUNT_ON_FAILURE, PLAIN, "S8", "claim0 fail0 claim0 fail0 claim0 expire scan reap claim1"),
    (Broken.CANCEL_BY_FLAG, PLAIN, "S17", "cancel claim0"),
    (Broken.RENEW_REVIVES | Broken.REAP_TRUSTS_ITS_SCAN, PLAIN, "L4", "claim0 expire scan renew0 reap"),
    (
        Broken.TOKEN_IS_THE_ATTEMPT,
        Size(releases=2, answers_get_lost=True),
        "S7",
        "claim0 hand back, lost0 claim1 again0",
    ),
    (Broken.HAND_BACK_UNCAPPED, Size(releases=1), "S8", "claim0 hand back0 claim0 hand back0"),
    (Broken.REPLAY_RESETS_THE_TOKEN, Size(replays=1), "S7", "claim0 cancel replay claim1 fail0"),
    (Broken.REPORT_AGAIN_BY_STATE, LOSSY, "S7", "claim0 fail, lost0 claim1 again0"),
]


@pytest.mark.parametrize("broken, size, invariant, story", NEEDED, ids=[str(case[0]) for case in NEEDED])
def test_a_broken_rule_is_found_out_by_its_shortest_story(
    broken: Broken, size: Size, invariant: str, story: str
) -> None:
    found = check(size, broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.story) == story


@pytest.mark.parametrize("broken", [Broken.RENEW_REVIVES, Broken.REAP_TRUSTS_ITS_SCAN], ids=str)
def test_either_of_two_rules_alone_may_be_relaxed_but_not_both(broken: Broken) -> None:
    """Each covers for the other, so two authors may each find their own relaxation harmless: we keep both rules."""
    for size in (Size(workers=3), Size(releases=1, answers_get_lost=True)):
        assert check(size, broken).fault == ""


def test_every_rule_that_can_be_broken_is_tried() -> None:
    tried = Broken.RENEW_REVIVES | Broken.REAP_TRUSTS_ITS_SCAN
    for broken, *_ in NEEDED:
        tried |= broken

    assert tried == ~Broken.NOTHING
