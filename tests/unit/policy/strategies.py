"""Hypothesis strategies for jobs, retry rules, outcomes and payloads."""

from typing import Any

from hypothesis import strategies as st
from msgspec import json

from holdfast.model.bounds import MAX_ATTEMPTS, MAX_DURATION
from holdfast.model.ids import JobId, WorkerId, new_job_id
from holdfast.model.job import Job, JobSpec, NewJob, RetryRule
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant
from holdfast.policy.submission import build_job

NOW = Instant(1_800_000_000_000_000)
SOME_ID = JobId(new_job_id(1_800_000_000_000))

spans = st.integers(0, MAX_DURATION).map(Duration)
random_numbers = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, MAX_ATTEMPTS)


@st.composite
def rules(draw: st.DrawFn) -> RetryRule:
    """Draw any valid retry rule."""
    base, cap = sorted((draw(spans), draw(spans)))
    delays = draw(st.lists(spans, max_size=5).map(tuple))
    return RetryRule(base=Duration(base), cap=Duration(cap), jitter=draw(st.floats(0, 1)), delays=delays)


def a_job(**fields: Any) -> Job:
    """Return a running job in its first attempt, with these fields changed."""
    defaults: dict[str, Any] = {
        "id": SOME_ID,
        "seq": 7,
        "status": Status.RUNNING,
        "fence": 1,
        "worker": WorkerId(9),
        "tenant": "acme",
        "queue": "mail",
        "type": "send",
        "payload": b"{}",
        "priority": 0,
        "attempts": 1,
        "max_attempts": 5,
        "releases": 0,
        "generation": 0,
        "cost": 1,
        "created_at": NOW,
        "scheduled_at": None,
        "started_at": NOW,
        "timeout": None,
        "deadline": None,
        "retry": None,
        "tags": None,
        "concurrency_key": None,
        "idempotency_key": None,
        "attempt_log": None,
    }
    return Job(**defaults | fields)


@st.composite
def running_jobs(draw: st.DrawFn) -> Job:
    """Draw any job that a worker may hold, with one to `max_attempts` attempts."""
    maximum = draw(attempts)
    rule = draw(st.none() | rules())
    return a_job(
        fence=draw(st.integers(1, 2**31 - 1)),
        worker=WorkerId(draw(st.integers(1, 2**62 - 1))),
        attempts=draw(st.integers(1, maximum)),
        max_attempts=maximum,
        releases=draw(st.integers(0, 120)),
        generation=draw(st.integers(0, 50)),
        retry=None if rule is None else json.encode(rule),
    )


failures = st.builds(Failure, kind=st.text(max_size=20), message=st.text(max_size=200))
any_spans = st.integers(-(10**18), 10**18).map(Duration)
"""Any wait that a handler may request, valid or not."""

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, st.none() | st.binary(max_size=20)),
    st.builds(Failed, failures, st.booleans(), st.none() | any_spans),
    st.builds(TimedOut, spans),
    st.builds(Crashed, st.text(max_size=50)),
    st.builds(Snoozed, any_spans),
    st.just(Interrupted()),
    st.builds(BackendUnavailable, failures),
    st.builds(CancelledByHandler, st.text(max_size=50)),
)

numbers = st.integers(-(2**63), 2**64 - 1) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
payloads = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)
"""Any JSON value."""


def build(**fields: Any) -> NewJob:
    """Build the job of a submission with these fields."""
    return build_job(JobSpec(**{"type": "send"} | fields), SOME_ID, max_attempts=5)
