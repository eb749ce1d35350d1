"""Explanations: the reasons and their order, and the estimated start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from holdfast.model.explanation import Explanation
from holdfast.model.state import Status
from holdfast.model.time import Instant, seconds
from holdfast.model.worker import WorkerInfo
from holdfast.policy.explain import build_explanation, handles, parse_queues
from holdfast.policy.explain_facts import ActivePause, ExternalHold, Facts, JobsAhead, LimitFact, ServiceRate
from tests.unit.policy.strategies import a_job

if TYPE_CHECKING:
    from holdfast.model.job import Job

NOW = Instant(1_900_000_000_000_000)
LATER = Instant(NOW + seconds(60))


def job(**changes: Any) -> Job:
    return replace(a_job(), **{"status": Status.READY, "worker": None, "deadline": None, **changes})


def reasons(facts: Facts) -> list[str]:
    return [reason.code for reason in build_explanation(facts).reasons]


def estimate(facts: Facts) -> float | None:
    at = build_explanation(facts).estimate.at
    return None if at is None else at.timestamp() - NOW / 1e6


def test_all_blocking_reasons_are_listed_in_order() -> None:
    facts = Facts(
        job(status=Status.RETRYING, scheduled_at=LATER, deadline=NOW),
        NOW,
        pauses=[ActivePause("queue", "q", NOW), ActivePause("type", "t", NOW), ActivePause("tenant", "x", NOW)],
        limits=[LimitFact("key k", 0, 3, 3, ["a", "b"]), LimitFact("queue q", 0, 0, None, frees_at=LATER)],
        held_back=[ExternalHold("https://x", "503", LATER)],
        ahead=JobsAhead(5, 9),
    )
    assert reasons(facts) == [
        "not_due", "deadline_passed", "queue_paused", "type_paused", "tenant_paused", "limit_full", "rate_spent",
        "held_back", "no_worker",
    ]  # fmt: skip
    assert not build_explanation(facts).runnable
    full = next(reason for reason in build_explanation(facts).reasons if reason.code == "limit_full")
    assert (full.used, full.most, full.holders) == (3, 3, ["a", "b"])
    assert "3 of 3" in full.detail


def test_a_limit_with_capacity_does_not_block() -> None:
    facts = Facts(job(), NOW, limits=[LimitFact("queue q", 1, 2, 3)], workers=2)
    assert reasons(facts) == ["runnable"]
    assert "2 workers handle it" in str(build_explanation(facts))


@pytest.mark.parametrize(
    "facts, expected",
    [
        (Facts(job(), NOW, workers=1), 0),
        (Facts(job(status=Status.SCHEDULED, scheduled_at=LATER), NOW, workers=1), 60),
        (Facts(job(), NOW, workers=1, pauses=[ActivePause("queue", "q", NOW)]), None),
        (Facts(job(), NOW, workers=1, pauses=[ActivePause("queue", "q", NOW, until=LATER)]), 60),
        (Facts(job(), NOW), None),
        (Facts(job(), NOW, workers=1, ahead=JobsAhead(10, 100)), None),
        (Facts(job(), NOW, workers=1, ahead=JobsAhead(10, 100), service_rate=ServiceRate(50, seconds(10))), 20),
        (
            Facts(job(), NOW, workers=1, ahead=JobsAhead(10, 100), service_rate=ServiceRate(1, seconds(10_000_000))),
            None,
        ),
        (Facts(job(status=Status.RUNNING), NOW), None),
        (Facts(job(status=Status.DEAD), NOW), None),
        (Facts(job(deadline=NOW), NOW, workers=1), None),
    ],
)
def test_the_estimate_adds_the_blocking_time_and_the_jobs_ahead_at_the_recent_rate(
    facts: Facts, expected: float | None
) -> None:
    assert estimate(facts) == (None if expected is None else pytest.approx(expected, abs=1e-5))
    assert build_explanation(facts).estimate.basis


def test_a_worker_handles_the_queues_types_and_tenant_it_registered() -> None:
    info = WorkerInfo(7, "w", "h", 1, "0", queues="mail:10, a:b", types=("send",))  # type: ignore[arg-type]
    our_job = job(queue="mail", type="send", tenant="acme")
    assert handles(info, our_job)
    assert not handles(info, replace(our_job, type="other"))
    assert not handles(info, replace(our_job, queue="default"))
    assert not handles(replace(info, tenant="umbrella"), our_job)
    assert handles(replace(info, queues="", types=None, tenant="acme"), replace(our_job, queue="x", type="y"))
    assert parse_queues("mail:10, a:b,x:y:3") == {"mail", "a:b", "x:y"}


def test_an_explanation_omits_unknown_facts_in_json() -> None:
    import msgspec

    encoded = msgspec.json.encode(build_explanation(Facts(job(), NOW, workers=1)))
    assert msgspec.json.decode(encoded, type=Explanation) == build_explanation(Facts(job(), NOW, workers=1))
    assert set(msgspec.json.decode(encoded)["reasons"][0]) == {"code", "detail", "blocks", "workers"}
