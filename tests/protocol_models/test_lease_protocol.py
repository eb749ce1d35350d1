"""The lease protocol is correct in every interleaving, and every rule is needed (S4, S7, S8, S11, S17, L4)."""

import pytest

from tests.protocol_models.lease_protocol import Broken, Size, check

ALL_FEATURES = Size(workers=2, attempts=2, releases=1, replays=1, lossy_responses=True)


@pytest.mark.parametrize(
    "size",
    [
        Size(workers=2, attempts=3),
        Size(workers=3, attempts=3),
        pytest.param(Size(workers=4, attempts=4), marks=pytest.mark.slow),
        Size(workers=2, attempts=3, lossy_responses=True),
        Size(workers=2, attempts=3, releases=2),
        Size(workers=2, attempts=3, replays=1),
        pytest.param(ALL_FEATURES, marks=pytest.mark.slow),
    ],
    ids=lambda size: "-".join(map(str, size)),
)
def test_no_fault_is_reachable_and_every_job_can_finish(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.trace) == ("", [])
    assert found.stuck == []
    assert found.states > 300


DEFAULT = Size()
LOSSY = Size(lossy_responses=True)

TRACES = [
    (Broken.SETTLE_BY_ID, DEFAULT, "S7", "claim0 step0 expire scan reap settle0"),
    (Broken.SETTLE_BY_STATE, DEFAULT, "S7", "claim0 expire scan reap claim1 fail0"),
    (Broken.REAP_BY_ID, DEFAULT, "S4", "claim0 expire scan cancel reap"),
    (Broken.REAP_BY_STATE, DEFAULT, "L4", "claim0 expire scan fail0 claim0 reap"),
    (Broken.RENEW_BY_JOB, DEFAULT, "S7", "claim0 expire scan reap claim1 renew0"),
    (Broken.STEP_UNFENCED, DEFAULT, "S17", "claim0 cancel step0"),
    (Broken.GUARD_FIRST, DEFAULT, "S11", "claim0 guard0 expire scan reap claim1 guard1 settle1"),
    (Broken.EFFECT_FIRST, DEFAULT, "S11", "claim0 act0 expire scan reap claim1 act1"),
    (Broken.COUNT_ON_FAILURE, DEFAULT, "S8", "claim0 fail0 claim0 fail0 claim0 expire scan reap claim1"),
    (Broken.CANCEL_BY_FLAG, DEFAULT, "S17", "cancel claim0"),
    (Broken.RENEW_REVIVES | Broken.REAP_TRUSTS_ITS_SCAN, DEFAULT, "L4", "claim0 expire scan renew0 reap"),
    (
        Broken.TOKEN_IS_THE_ATTEMPT,
        Size(releases=2, lossy_responses=True),
        "S7",
        "claim0 release, lost0 claim1 again0",
    ),
    (Broken.RELEASE_UNCAPPED, Size(releases=1), "S8", "claim0 release0 claim0 release0"),
    (Broken.REPLAY_RESETS_THE_TOKEN, Size(replays=1), "S7", "claim0 cancel replay claim1 fail0"),
    (Broken.REPORT_AGAIN_BY_STATE, LOSSY, "S7", "claim0 fail, lost0 claim1 again0"),
]


@pytest.mark.parametrize("broken, size, invariant, trace", TRACES, ids=[str(case[0]) for case in TRACES])
def test_a_broken_rule_leads_to_a_fault_by_its_shortest_trace(
    broken: Broken, size: Size, invariant: str, trace: str
) -> None:
    found = check(size, broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.trace) == trace


@pytest.mark.slow
@pytest.mark.parametrize("broken", [Broken.RENEW_REVIVES, Broken.REAP_TRUSTS_ITS_SCAN], ids=str)
def test_two_rules_cover_for_each_other(broken: Broken) -> None:
    """Breaking either one is harmless; breaking both is not, so the protocol keeps both."""
    for size in (Size(workers=3), Size(releases=1, lossy_responses=True)):
        assert check(size, broken).fault == ""


def test_every_rule_is_covered() -> None:
    tried = Broken.RENEW_REVIVES | Broken.REAP_TRUSTS_ITS_SCAN
    for broken, *_ in TRACES:
        tried |= broken

    assert tried == ~Broken.NOTHING
