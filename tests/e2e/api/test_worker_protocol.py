"""The worker protocol: what a worker without a database sends, and what it never gets."""

import asyncio
import json

import msgspec
import pytest

from holdfast.api.routes import worker_protocol as routes
from holdfast.engine import unknown_jobs
from holdfast.model.ids import new_worker_id, worker_name
from holdfast.model.job import HeldJob, JobFilter, JobSpec
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    LogLine,
    Logs,
    Report,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, seconds
from holdfast.policy.lifecycle import attempt_log
from holdfast.sdk import worker_requests
from holdfast.wire import worker_protocol_codec as wire
from holdfast.wire.worker_protocol import SettleRequest
from tests.e2e.api.conftest import Served, problem
from tests.support.eventually import eventually
from tests.unit.policy.strategies import a_job


class Crew:
    """A client with a key of one tenant, and a worker of it."""

    def __init__(self, http, worker):
        self.http = http
        self.worker = worker

    async def post(self, what="", **asked):
        return await self.http.post(f"/v1/leases{what}", json={"worker": self.worker, **asked})

    async def claim(self, **asked):
        answer = await self.post(**({"queues": ["default"], "limit": 10} | asked))
        assert answer.status_code == 200, answer.text
        return answer.json()["jobs"]

    async def settle(self, job, outcome, **more):
        named = {"id": job["id"], "fence": job["fence"], "outcome": outcome}
        answer = await self.post("/settle", outcomes=[named | more])
        assert answer.status_code == 200, answer.text
        return answer.json()["settled"]


async def crew(served: Served, tenant="acme", *, lease=60, **options):
    http = await served.client(await served.key(tenant, "worker"))
    answer = await http.post("/v1/leases", json={"limit": 0, "lease": lease, **options})
    assert answer.status_code == 200, answer.text
    return Crew(http, answer.json()["worker"])


async def submit(served, n=1, tenant="acme", **options):
    return [(await served.engine.jobs.submit(JobSpec("send", {"n": k}, tenant=tenant, **options))).id for k in range(n)]


async def test_a_worker_claims_a_job_and_returns_its_result(served):
    (job_id,) = await submit(served, timeout=seconds(30), tags=("nightly",), max_attempts=3)
    acme = await crew(served, register={"name": "press", "host": "here", "pid": 7, "version": "9", "slots": 2})
    (job,) = await acme.claim()
    expected = {
        "id": str(job_id), "fence": 1, "tenant": "acme", "queue": "default", "type": "send", "attempts": 1,
        "payload": {"n": 0}, "max_attempts": 3, "timeout": 30.0, "tags": ["nightly"], "attempt_log": [],
    }  # fmt: skip
    assert {name: job[name] for name in expected} == expected
    assert await acme.claim() == []

    assert await acme.settle(job, "succeeded", result={"ok": [1, 2.5, None]}) == [str(job_id)]
    found = await served.engine.jobs.get(job_id)
    assert (found.status, json.loads(found.result)) == (Status.SUCCEEDED, {"ok": [1, 2.5, None]})
    (row,) = await served.engine.workers.all()
    assert (row.info.name, row.info.host, row.info.pid, row.info.slots, row.info.tenant) == (
        "press", "here", 7, 2, "acme"
    )  # fmt: skip
    assert (await acme.post("/depart")).json() == {"departed": True}
    assert await served.engine.workers.all() == []


@pytest.mark.parametrize(
    "outcome, more, becomes",
    [
        ("succeeded", {}, Status.SUCCEEDED),
        ("failed", {"error": {"kind": "SmtpError", "message": "421"}}, Status.RETRYING),
        ("failed", {"error": {"kind": "SmtpError"}, "retry_in": "5m"}, Status.RETRYING),
        ("failed", {"error": {"kind": "SmtpError"}, "retryable": False}, Status.DEAD),
        ("timed_out", {"after": 30}, Status.RETRYING),
        ("crashed", {"how": "signal SIGSEGV"}, Status.READY),
        ("snoozed", {"delay": 60}, Status.SCHEDULED),
        ("released", {}, Status.READY),
        ("cancelled", {"reason": "pointless"}, Status.CANCELLED),
    ],
)
@pytest.mark.databases("sqlite")
async def test_every_outcome_can_be_settled(served, outcome, more, becomes):
    (job_id,) = await submit(served)
    acme = await crew(served)
    (job,) = await acme.claim()
    lines = {"lines": [{"at": "2026-01-01T00:00:00Z", "level": "info", "message": "began"}]}
    assert await acme.settle(job, outcome, logs=lines, **more) == [str(job_id)]
    found = await served.engine.jobs.get(job_id)
    assert found.status is becomes
    assert await acme.settle(job, outcome, **more) == [str(job_id)], "to repeat it does no harm and says the same"
    assert await served.engine.jobs.get(job_id) == found
    spent = outcome not in ("snoozed", "released")
    assert found.attempts == spent
    logged = [entry.logs.lines[0].message for entry in attempt_log(found)]
    assert logged == (["began"] if spent else [])


OUTCOMES = [
    Succeeded(b'{"a":[1,2.5,"\\u00e9"]}'),
    Succeeded(None),
    Failed(Failure("Boom", "why", "File …"), retryable=False),
    Failed(Failure("Boom", "why"), retry_in=Duration(1_500_001)),
    TimedOut(Duration(250_000)),
    Crashed("exit code 3"),
    Snoozed(Duration(86_400_000_001)),
    Interrupted(),
    BackendUnavailable(Failure("Unavailable", "away", "File …")),
    CancelledByHandler("not wanted"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda each: type(each).__name__)
def test_an_outcome_round_trips(outcome):
    """A node parses exactly what a worker sends, for every kind of outcome."""
    job = a_job(worker=new_worker_id())
    logs = Logs((LogLine("2026-01-01T00:00:00Z", "info", "é"),), dropped=3)
    (request,) = worker_requests.settle(job.worker, [Report(job, outcome, logs)])
    read = msgspec.json.decode(request.body, type=SettleRequest)
    assert wire.worker_id(read.worker) == job.worker
    (given,) = read.outcomes
    assert (given.id, given.fence) == (str(job.id), job.fence)
    found, found_logs = wire.outcome_of(given, "/outcomes/0")
    assert found_logs == logs
    if outcome == Succeeded(None):
        assert found == Succeeded(b"null")
    elif isinstance(outcome, Succeeded):
        assert json.loads(found.result) == json.loads(outcome.result)
    else:
        assert found == outcome


async def test_settling_trusts_the_database_and_not_the_worker(served):
    """S7, T01: a worker names a job and its fence; all else of it is what the database says."""
    (job_id, other) = await submit(served, 2, max_attempts=1)
    acme = await crew(served)
    job, _ = await acme.claim()
    stale = {"id": job["id"], "fence": job["fence"] + 1, "outcome": "succeeded"}
    unknown = {"id": "0190b5a2-7c3e-7000-8000-000000000000", "fence": 1, "outcome": "succeeded"}
    answer = await acme.post("/settle", outcomes=[stale, unknown])
    assert answer.json() == {"settled": [], "refused": []}
    assert (await served.engine.jobs.get(job_id)).status is Status.RUNNING
    await acme.settle(job, "failed", error={"kind": "Boom"})
    assert (await served.engine.jobs.get(job_id)).status is Status.DEAD
    assert (await served.engine.jobs.get(other)).status is Status.RUNNING
    twice = {"id": str(other), "fence": 1, "outcome": "released"}
    problem(await acme.post("/settle", outcomes=[twice, twice]), 422, "invalid")


async def test_settling_does_not_reveal_that_another_tenants_job_exists(served):
    """T01: the response is the same for jobs of others and for ids that no job has."""
    (foreign,) = await submit(served, tenant="umbrella")
    acme = await crew(served)
    for outcome in ("released", "failed", "succeeded"):
        probe = {"id": str(foreign), "fence": 0, "outcome": outcome}
        answer = await acme.post(
            "/settle", outcomes=[probe | ({"error": {"kind": "x"}} if outcome == "failed" else {})]
        )
        assert answer.json() == {"settled": [], "refused": []}


async def test_jobs_that_a_worker_does_not_name_in_its_renewals_are_released(served, monkeypatch):
    """F14: the outcome was lost in a failover; a renewal without `held` compares nothing."""
    monkeypatch.setattr(unknown_jobs, "COMPARE_INTERVAL_S", 0.0)
    monkeypatch.setattr(unknown_jobs, "MIN_MISSING_S", 0.0)
    kept, lost = await submit(served, 2)
    acme = await crew(served)
    claimed = {job["id"]: {"id": job["id"], "fence": job["fence"]} for job in await acme.claim()}
    for _ in range(3):
        await acme.post("/renew", lease=60)
    assert [(await served.engine.jobs.get(job)).status for job in (kept, lost)] == [Status.RUNNING] * 2

    async def released():
        assert (await acme.post("/renew", lease=1, held=[claimed[str(kept)]])).status_code == 200
        return (await served.engine.jobs.get(lost)).status is not Status.RUNNING

    await eventually(released)
    assert (await served.engine.jobs.get(kept)).status is Status.RUNNING
    (record,) = attempt_log(await served.engine.jobs.get(lost))
    assert record.error.kind == "ReportLost"


async def test_renewing_reports_lost_jobs(served):
    """S7: a cancel reaches a worker that is somewhere else."""
    ids = await submit(served, 2)
    acme = await crew(served)
    held = [{"id": job["id"], "fence": job["fence"]} for job in await acme.claim()]
    assert (await acme.post("/renew", lease=60, held=held)).json() == {"lost": [], "paused": [], "draining": False}
    await served.engine.jobs.cancel([ids[0]], reason="by a person")
    assert (await acme.post("/renew", lease=60, held=held)).json() == {
        "lost": [str(ids[0])],
        "paused": [],
        "draining": False,
    }
    assert (await acme.post("/lost", held=held)).json() == {"lost": [str(ids[0])], "paused": [], "draining": False}
    assert (await acme.post("/held")).json()["jobs"] == [
        {"id": str(ids[1]), "fence": 1, "queue": "default", "type": "send"}
    ]
    assert (await acme.post("/depart")).json() == {"departed": False}


async def test_a_worker_with_an_expired_lease_gets_and_changes_nothing(served):
    """S6, P22: it neither claims nor renews, but may still report jobs that were not reaped yet."""
    first, second = await submit(served, 2)
    acme = await crew(served)
    (job,) = await acme.claim(limit=1)
    await served.engine.workers.renew(wire.worker_id(acme.worker), Duration(1))

    async def over():
        worker = wire.worker_id(acme.worker)
        return (await served.engine.store.single(lambda tx: tx.lease_state(worker))).left < 0

    await eventually(over)
    for path, asked in (("", {"queues": ["default"]}), ("/renew", {})):
        problem(await acme.post(path, **asked), 409, "lease_lost")
    assert await acme.settle(job, "succeeded") == [str(first)]
    assert (await served.engine.jobs.get(second)).status is Status.READY


# Waiting


async def test_a_claim_waits_for_a_job(live):
    """L1: and no longer."""
    acme = await crew(live)
    waiting = asyncio.create_task(acme.claim(wait=30))
    await at_the_desk(live, 1)
    (job_id,) = await submit(live)
    async with asyncio.timeout(15):
        (job,) = await waiting
    assert job["id"] == str(job_id)


async def at_the_desk(served, polls):
    """Wait until this many polls are waiting."""

    async def waiting():
        return sum(state.polls for state in served.engine.remote_workers._poll_states.values()) == polls

    await eventually(waiting)


async def test_a_claim_returns_empty_after_its_wait(live):
    acme = await crew(live)
    assert await acme.claim(wait=0.05) == []
    assert await acme.claim(wait=0) == []


async def test_a_stopping_node_ends_waiting_claims(live):
    """F04: the worker asks another node at once."""
    acme = await crew(live)
    waiting = asyncio.create_task(acme.claim(wait=30))
    await at_the_desk(live, 1)
    live.api.service.stopping.set()
    async with asyncio.timeout(15):
        assert await waiting == []


async def test_nothing_is_claimed_for_a_disconnected_client(live):
    """F10: it hangs up while it waits; the next job is another's."""
    acme = await crew(live)
    waiting = asyncio.create_task(acme.claim(wait=30))
    await at_the_desk(live, 1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await at_the_desk(live, 0)
    (job_id,) = await submit(live)
    other = await crew(live)
    (job,) = await other.claim()
    assert (job["id"], job["fence"]) == (str(job_id), 1)


async def test_jobs_claimed_for_a_disconnected_client_are_released(live, monkeypatch):
    """F10: it hangs up while the database claims; no attempt is spent."""
    claimed, go_on = asyncio.Event(), asyncio.Event()
    engine_claim = type(
        live.engine.attempts.claims(new_worker_id(), [])
    )  # the class that both kinds of workers claim by
    plain = engine_claim.claim

    async def slowly(self, slots):
        jobs = await plain(self, slots)
        claimed.set()
        await go_on.wait()
        return jobs

    acme = await crew(live)
    (job_id,) = await submit(live)
    monkeypatch.setattr(engine_claim, "claim", slowly)
    waiting = asyncio.create_task(acme.claim(wait=30))
    await claimed.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await left()
    await at_the_desk(live, 1)
    go_on.set()

    async def back():
        job = await live.engine.jobs.get(job_id)
        return (job.status, job.fence, job.attempts, job.releases) == (Status.READY, 1, 0, 0)

    await eventually(back)


async def left():
    """Wait until the server has seen that the client is gone."""

    async def seen():
        return not [task for task in asyncio.all_tasks() if "wait_disconnected" in repr(task.get_coro())]

    await eventually(seen)


async def test_fairness_state_is_kept_between_claims_and_expires(served, monkeypatch):
    """S14: tenants take turns though each claim is a request of its own."""
    for tenant in ("a", "b", "c"):
        await submit(served, 30, tenant)
    http = await served.client()
    everybody = Crew(http, (await http.post("/v1/leases", json={"limit": 0, "lease": 60})).json()["worker"])
    seen = []
    for _ in range(6):
        seen += [job["tenant"] for job in await everybody.claim(limit=10)]
    assert {tenant: seen.count(tenant) for tenant in "abc"} == {"a": 20, "b": 20, "c": 20}
    assert len(served.engine.remote_workers._poll_states) == 1
    monkeypatch.setattr("holdfast.engine.remote_workers.POLL_STATE_RETENTION_S", 0.0)
    await everybody.claim(queues=["elsewhere"])
    assert not served.engine.remote_workers._poll_states


# Whose worker it is


def asked_of(route, worker, job):
    """A request to a route that would be right for the holder of this job."""
    held = {"id": job["id"], "fence": job["fence"]}
    given = {
        "worker": worker,
        **held,
        "held": [held],
        "lease": 60,
        "key": "step",
        "fraction": 0.5,
        "queues": ["default"],
    }
    given["outcomes"] = [{**held, "outcome": "succeeded"}]
    wanted = (route.body or route.query).__struct_fields__
    return {name: value for name, value in given.items() if name in wanted}


async def ask(client, route, asked):
    if route.method == "GET":
        return await client.get(route.path, params=asked)
    return await client.post(route.path, json=asked)


@pytest.mark.parametrize("route", routes.ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_another_tenants_worker_is_not_found(served, route):
    """T01, T38: generated over all lease routes; a key of another tenant neither sees nor changes anything."""
    (job_id,) = await submit(served)
    acme = await crew(served)
    (job,) = await acme.claim()
    await submit(served)
    before = await served.engine.jobs.get(job_id)
    rows = await served.engine.workers.all()
    stranger = await served.client(await served.key("other", "worker"))
    never = worker_name(new_worker_id())
    answers = [await ask(stranger, route, asked_of(route, worker, job)) for worker in (acme.worker, never)]
    for answer in answers:
        problem(answer, 409, "lease_lost")
    assert answers[0].text.replace(acme.worker, "") == answers[1].text.replace(never, "")
    assert await served.engine.jobs.get(job_id) == before
    assert [(row.info, row.expires_at) for row in await served.engine.workers.all()] == [
        (row.info, row.expires_at) for row in rows
    ]
    assert await served.engine.jobs.steps(job_id) == []
    # Its owner is answered.
    assert (await ask(acme.http, route, asked_of(route, acme.worker, job))).status_code in (200, 204)


async def test_a_worker_of_one_tenant_gets_no_job_of_another(served):
    """T01, T38: whatever the queues have; and one of an administrator serves all, or the tenant that is named."""
    await submit(served, 3, "other")
    await submit(served, 2, "acme", priority=-5)
    acme = await crew(served)
    assert {job["tenant"] for job in await acme.claim()} == {"acme"}
    assert await acme.claim() == []
    foreign = (await served.engine.jobs.find(JobFilter(tenant="other")))[0]
    problem(await acme.http.get("/v1/leases/steps", params=_named(acme.worker, foreign)), 409, "job_not_held")
    admin = await served.client()
    named = await admin.post(
        "/v1/leases", json={"queues": ["default"], "limit": 10}, headers={"Holdfast-Tenant": "acme"}
    )
    assert named.json()["jobs"] == []
    everybody = await admin.post("/v1/leases", json={"queues": ["default"], "limit": 10})
    assert {job["tenant"] for job in everybody.json()["jobs"]} == {"other"}
    assert [row.info.tenant for row in await served.engine.workers.all()] == ["acme", "acme", None]


def _named(worker, job):
    return {"worker": worker, "id": str(job.id), "fence": job.fence}


async def test_a_worker_id_cannot_be_registered_twice(served):
    """T38: not even under their own."""
    acme = await crew(served)
    about = {"register": {"name": "me"}, "limit": 0}
    problem(await acme.post(**about), 409, "lease_lost")
    stranger = await served.client(await served.key("other", "worker"))
    problem(await stranger.post("/v1/leases", json={"worker": acme.worker, **about}), 409, "lease_lost")
    problem(await acme.http.post("/v1/leases", json={"worker": f"w-{0:016x}", **about}), 422, "invalid")
    (row,) = await served.engine.workers.all()
    assert row.info.tenant == "acme"


async def test_a_worker_needs_the_worker_scope(served):
    """T09, T38."""
    http = await served.client(await served.key("acme", "submit", "read", "cancel"))
    for route in routes.ROUTES:
        problem(await http.request(route.method, route.path, json={}), 403, "forbidden")


# Records


async def test_only_the_holder_records_steps_and_progress(served):
    """S7, F02: what is done stays; who lost the job records nothing."""
    (job_id,) = await submit(served)
    acme = await crew(served)
    (job,) = await acme.claim()
    held = {"id": job["id"], "fence": job["fence"]}
    assert (await acme.post("/steps", **held, key="pay", state="started")).status_code == 204
    assert (await acme.post("/steps", **held, key="pay", result={"sum": 3})).status_code == 204
    assert (await acme.post("/steps", **held, key="pay", result="other")).status_code == 204
    assert (await acme.post("/progress", **held, fraction=0.25, note="so far")).status_code == 204
    assert [(step.key, step.state, step.result) for step in await served.engine.jobs.steps(job_id)] == [
        ("pay", StepState.DONE, b'{"sum":3}')
    ]
    assert (await served.engine.jobs.get(job_id)).progress == b'{"fraction":0.25,"note":"so far"}'

    journal = Step("transaction-1", StepState.DONE, b"\x01[]")  # by an attempt that had the database
    assert await served.engine.attempts.record_step(HeldJob(job_id, 1, wire.worker_id(acme.worker)), journal)
    found = (await acme.http.get("/v1/leases/steps", params={"worker": acme.worker, **held})).json()["steps"]
    assert [(step["key"], step["result"], step["transaction"]) for step in found] == [
        ("pay", {"sum": 3}, False), ("transaction-1", None, True),
    ]  # fmt: skip

    await served.engine.jobs.cancel([job_id], reason="by a person")
    problem(await acme.post("/steps", **held, key="later"), 409, "job_not_held")
    problem(await acme.post("/progress", **held, fraction=1), 409, "job_not_held")
    problem(await acme.http.get("/v1/leases/steps", params={"worker": acme.worker, **held}), 409, "job_not_held")


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize(
    "what, asked, pointer",
    [
        ("", {"queues": ["a b"]}, "/queues/0"),
        ("", {"limit": 501}, "/limit"),
        ("", {"wait": 31}, "/wait"),
        ("", {"lease": 0.5}, "/lease"),
        ("", {"worker": "press-7"}, "/worker"),
        ("", {"worker": None, "register": {"name": "a\nb"}}, "/register/name"),
        ("/renew", {"lease": "2d"}, "/lease"),
        ("/settle", {"outcomes": [{"id": "7", "fence": 1, "outcome": "released"}]}, "/outcomes/0/id"),
        ("/settle", {"outcomes": [{"outcome": "sung"}]}, "/outcomes/0/outcome"),
        ("/progress", {"fraction": 2}, "/fraction"),
        ("/steps", {"key": ""}, "/key"),
        ("/steps", {"key": "a\nb"}, "/key"),
    ],
)
async def test_invalid_input_is_rejected_with_its_pointer(served, what, asked, pointer):
    """T16."""
    acme = await crew(served)
    given = {"id": "0190b5a2-7c3e-7000-8000-000000000000", "fence": 1} if what in ("/progress", "/steps") else {}
    assert problem(await acme.post(what, **(given | asked)), 422, "invalid")["pointer"] == pointer


async def test_a_new_worker_may_claim_with_the_same_request(served):
    """The whole protocol in two calls: what the guide shows."""
    (job_id,) = await submit(served)
    http = await served.client(await served.key("acme", "worker"))
    answer = (await http.post("/v1/leases", json={"queues": ["default"], "wait": 30})).json()
    assert [job["id"] for job in answer["jobs"]] == [str(job_id)]
    again = await http.post("/v1/leases", json={"worker": answer["worker"], "lease": 30, "queues": ["default"]})
    assert again.json() == {"worker": answer["worker"], "jobs": [], "draining": False}
