"""A concurrency limit is correct in every interleaving, and every rule is needed (S16, P18)."""

import pytest

from tests.protocol_models.limited_leases import Broken, Size, check


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(), marks=pytest.mark.slow),
        Size(workers=3, attempts=1),
        pytest.param(Size(jobs=3, limit=2, attempts=1), marks=pytest.mark.slow),
    ],
    ids=lambda size: "-".join(map(str, size)),
)
def test_no_fault_is_reachable_and_all_slots_can_become_free(size: Size) -> None:
    found = check(size)

    assert (found.fault, found.trace) == ("", [])
    assert found.stuck == []
    assert found.states > 300


TWO = Size()
THREE = Size(jobs=3, attempts=1)

TRACES = [
    (Broken.RELEASE_UNFENCED, TWO, "S16", "claim 0 by 0 fail, lost0 claim 0 by 1 again0 claim 1 by 0"),
    (Broken.RELEASE_AGAIN, TWO, "S16", "claim 0 by 0 fail, lost0 claim 0 by 1 again0 claim 1 by 0"),
    (Broken.RELEASE_TWICE, TWO, "S16", "claim 0 by 0 fail0 claim 0 by 0 claim 1 by 1"),
    (Broken.RELEASE_SEPARATELY, TWO, "P18", "claim 0 by 0 settle0 die0"),
    (Broken.REAP_KEEPS_SLOT, TWO, "P18", "claim 0 by 0 expire 0 scan 0 reap"),
    (Broken.REAP_RELEASES_UNCHECKED, TWO, "S16", "claim 0 by 0 expire 0 scan 0 fail0 claim 0 by 0 skip claim 1 by 1"),
    (Broken.CANCEL_KEEPS_SLOT, TWO, "P18", "claim 0 by 0 cancel 0"),
    (Broken.CANCEL_ALWAYS_RELEASES, THREE, "S16", "claim 0 by 0 cancel 1 claim 2 by 1"),
    (Broken.CHECK_SEPARATELY, TWO, "S16", "check0 check1 claim 0 by 0 claim 1 by 1"),
    (Broken.CLAIM_UNCHECKED, TWO, "S16", "claim 0 by 0 claim 1 by 1"),
]


@pytest.mark.parametrize("broken, size, invariant, trace", TRACES, ids=[str(case[0]) for case in TRACES])
def test_a_broken_rule_leads_to_a_fault_by_its_shortest_trace(
    broken: Broken, size: Size, invariant: str, trace: str
) -> None:
    found = check(size, broken)

    assert found.fault.startswith(invariant), found
    assert " ".join(found.trace) == trace


def test_every_rule_is_covered() -> None:
    tried = Broken.NOTHING
    for broken, *_ in TRACES:
        tried |= broken

    assert tried == ~Broken.NOTHING
