"""Look at jobs and act on them: lists, details, cancel, retry, delete, one by one and in bulk; dead letters."""

import asyncio
import contextlib
from datetime import datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.model.ids import JobId, new_job_id
from holdfast.model.job import HeldJob
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.step import Step, StepState
from holdfast.wire import codec
from holdfast.worker.context.statement_log import StatementLog
from tests.e2e.api.api_users import person
from tests.e2e.api.conftest import problem
from tests.support.builders import enter, report, take


async def submit(client, n=1, **fields):
    jobs = [{"type": "send", "max_attempts": 1, "payload": number, **fields} for number in range(n)]
    answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 201, answer.text
    return [receipt["id"] for receipt in answer.json()["items"]]


async def run(served, *, tenant="acme", queue="default", n=1_000, worker=None):
    store = served.engine.store
    return await take(store, worker or await enter(store), Lane(queue, tenant, 0), limit=n)


async def die(served, client, n=1, message="SMTP 421", **fields):
    """Dead letters; their ids."""
    ids = await submit(client, n, **fields)
    held = await run(served, tenant=fields.get("tenant", "acme"))
    await report(served.engine.store, held, Failed(Failure(kind="SmtpError", message=message)))
    return ids


async def pages(client, path, **params):
    """All pages of a list; the ids in each."""
    found, cursor = [], None
    while True:
        asked = {**params, **({"cursor": cursor} if cursor else {})}
        answer = (await client.get(path, params=asked)).json()
        found.append([job["id"] for job in answer["items"]])
        cursor = answer["next_cursor"]
        if cursor is None:
            return found


async def listed(client, **params):
    return [job_id for page in await pages(client, "/v1/jobs", **params) for job_id in page]


async def test_jobs_are_listed_newest_first_page_by_page(served):
    client = await person(served, "acme")
    ids = await submit(client, 25)
    found = await pages(client, "/v1/jobs", limit=10)
    assert [len(page) for page in found] == [10, 10, 5]
    assert [each for page in found for each in page] == sorted(ids, reverse=True)


async def test_filters_find_jobs_in_every_status(served):
    client = await person(served, "acme")
    mail = await submit(client, 3, queue="mail", tags=["a", "b"])
    done = await submit(client, 2, queue="done", type="sign")
    await report(served.engine.store, await run(served, queue="done"), Succeeded())
    dead = await die(served, client, 2, tags=[","])
    (running,) = await submit(client, 1, queue="busy")
    await run(served, queue="busy")
    later = await submit(client, 1, delay=60)
    everything = {*mail, *done, *dead, running, *later}
    cases = [
        ({}, everything), ({"queue": "mail"}, mail), ({"type": "sign"}, done), ({"tag": "b"}, mail),
        ({"tag": ","}, dead),
        ({"status": "running"}, [running]), ({"status": "dead"}, dead), ({"status": "succeeded"}, done),
        ({"status": "scheduled"}, later), ({"status": "ready"}, mail), ({"status": "cancelled"}, []),
        ({"status": "ready", "tag": "a", "type": "send"}, mail), ({"tag": "A"}, []),
        ({"queue": "mail", "type": "x"}, []),
    ]  # fmt: skip
    for where, expected in cases:
        assert await listed(client, **where) == sorted(expected, reverse=True), where
    (group,) = (await client.get("/v1/dead", params={"group": "fingerprint"})).json()["groups"]
    assert await listed(client, error=group["fingerprint"]) == sorted(dead, reverse=True)
    assert await listed(client, error=group["fingerprint"], status="ready") == []
    # Submissions may share an instant: compare with the stored times.
    created = {each: (await client.get(f"/v1/jobs/{each}")).json()["created_at"] for each in everything}
    for text in {created[mail[0]], created[running], created[later[0]]}:
        at = datetime.fromisoformat(text)
        earlier = {each for each, time in created.items() if datetime.fromisoformat(time) < at}
        assert set(await listed(client, created_before=text)) == earlier
        after = {each for each, time in created.items() if datetime.fromisoformat(time) > at}
        assert set(await listed(client, created_after=text, limit=3)) == after


@pytest.mark.parametrize(
    "query, pointer",
    [
        ("status=gone", "/status"), ("limit=0", "/limit"), ("limit=201", "/limit"), ("limit=x", "/limit"),
        ("cursor=x", "/cursor"),
        ("cursor=%00", "/cursor"), ("created_after=yesterday", "/created_after"), ("colour=red", "/colour"),
        ("created_after=2030-01-01T00:00:00", "/created_after"), ("queue=a%20b", "/queue"),
        ("queue=a&queue=b", "/queue"),
        ("tag=", "/tag"), ("error=" + "x" * 65, "/error"),
    ],
)  # fmt: skip
@pytest.mark.databases("sqlite")
async def test_an_invalid_query_is_rejected(served, query, pointer):
    """T22"""
    client = await person(served, "acme")
    assert problem(await client.get(f"/v1/jobs?{query}"), 422, "invalid")["pointer"] == pointer


async def test_a_job_shows_its_attempts_steps_and_lineage(served):
    client = await person(served, "acme")
    (job_id,) = await submit(client, max_attempts=2)
    (held,) = await run(served)
    await report(served.engine.store, held, Failed(Failure("SmtpError", "SMTP 421", traceback="File …")))
    waiting = (await client.get(f"/v1/jobs/{job_id}")).json()
    assert waiting["status"] == "retrying"
    assert (waiting["error"]["kind"], waiting["error"]["message"]) == ("SmtpError", "SMTP 421")
    (attempt,) = waiting["attempt_log"]
    assert (attempt["attempt"], attempt["outcome"], attempt["error"]["traceback"]) == (1, "failed", "File …")
    assert (await client.post(f"/v1/jobs/{job_id}/retry")).json()["status"] == "ready"
    (held,) = await run(served)
    mine = HeldJob(held.id, held.fence, held.worker)
    assert await served.engine.attempts.record_step(mine, Step("charge", StepState.DONE, b'{"ok":true}'))
    assert await served.engine.attempts.save_progress(mine, b'{"fraction":0.5}')
    running = (await client.get(f"/v1/jobs/{job_id}")).json()
    assert (running["status"], running["progress"], running["actions"]) == ("running", {"fraction": 0.5}, ["cancel"])
    assert running["lease_until"] > running["started_at"]
    (step,) = running["steps"]
    assert (step["key"], step["state"], step["result"]) == ("charge", "done", {"ok": True})
    await report(served.engine.store, held, Succeeded(b"[1]"))
    done = (await client.get(f"/v1/jobs/{job_id}")).json()
    assert (done["result"], done["lease_until"], done["worker"], done["error"]) == ([1], None, None, None)


async def test_a_transaction_step_is_shown_without_its_statement_results(served):
    client = await person(served, "acme")
    (job_id,) = await submit(client)
    (held,) = await run(served)
    async with served.engine.attempts.session(HeldJob(held.id, held.fence, held.worker), "pay") as session:
        journal = StatementLog()
        journal.add("SELECT 1", [(1,)])
        session.record(journal.to_bytes())
    (step,) = (await client.get(f"/v1/jobs/{job_id}")).json()["steps"]
    assert (step["key"], step["state"], step["transaction"], step["result"]) == ("pay", "done", True, None)


async def test_an_action_that_the_status_does_not_allow_is_a_conflict(served):
    client = await person(served, "acme")
    (done,) = await submit(client)
    await report(served.engine.store, await run(served), Succeeded())
    (running,) = await submit(client)
    await run(served)
    (ready,) = await submit(client)
    for job_id, action, why in [(done, "cancel", "succeeded"), (done, "retry", "submit a new job"),
                                (running, "retry", "running"), (ready, "retry", "ready")]:  # fmt: skip
        body = {"json": {}} if action == "cancel" else {}
        found = problem(await client.post(f"/v1/jobs/{job_id}/{action}", **body), 409, "conflict")
        assert why in found["detail"]
    assert "cancel it first" in problem(await client.delete(f"/v1/jobs/{running}"), 409, "conflict")["detail"]


async def test_a_running_job_that_is_cancelled_cannot_be_settled(served):
    """S17: the first of cancel and settle decides; both responses agree with the stored status."""
    client = await person(served, "acme")
    for _ in range(5):
        (job_id,) = await submit(client)
        (held,) = await run(served)
        answer, settled = await asyncio.gather(
            client.post(f"/v1/jobs/{job_id}/cancel", json={"reason": "wrong one"}),
            report(served.engine.store, held, Succeeded()),
        )
        stands = (await client.get(f"/v1/jobs/{job_id}")).json()
        if settled:
            problem(answer, 409, "conflict")
            assert stands["status"] == "succeeded"
        else:
            assert (stands["status"], stands["reason"]) == ("cancelled", "wrong one")
            assert answer.json()["status"] == "cancelled"


async def test_a_deleted_job_is_gone_with_its_steps(served):
    client = await person(served, "acme")
    (job_id,) = await submit(client)
    (held,) = await run(served)
    await served.engine.attempts.record_step(
        HeldJob(held.id, held.fence, held.worker), Step("charge", StepState.DONE, b"1")
    )
    problem(await client.delete(f"/v1/jobs/{job_id}"), 409, "conflict")
    await report(served.engine.store, held, Succeeded())
    answers = await asyncio.gather(*(client.delete(f"/v1/jobs/{job_id}") for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404]
    assert await served.engine.jobs.steps(held.id) == []
    problem(await client.get(f"/v1/jobs/{job_id}"), 404, "not_found")
    dead, waiting = await die(served, client), await submit(client)
    for each in (*dead, *waiting):
        answer = await client.delete(f"/v1/jobs/{each}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert await listed(client) == []


async def test_another_tenants_job_is_not_found(served):
    """T01: byte for byte, whatever is asked."""
    acme, umbrella = await person(served, "acme"), await person(served, "umbrella")
    (foreign,) = await submit(acme)
    for job_id in (foreign, foreign.upper()):
        unknown = str(new_job_id())
        asked = [("GET", "", None), ("DELETE", "", None), ("POST", "/cancel", {}), ("POST", "/retry", None)]
        for method, path, body in asked:
            answers = [
                await umbrella.request(method, f"/v1/jobs/{each}{path}", json=body) for each in (job_id, unknown)
            ]
            assert [answer.status_code for answer in answers] == [404, 404]
            texts = [answer.text.replace(each, "…") for answer, each in zip(answers, (foreign, unknown), strict=True)]
            assert texts[0] == texts[1]
            assert list(answers[0].headers) == list(answers[1].headers)
        assert (await acme.get(f"/v1/jobs/{job_id}")).json()["status"] == "ready"


async def test_lists_and_bulk_actions_do_not_reach_other_tenants_jobs(served):
    """T01, T02: lists, cursors, filters, ids."""
    acme, umbrella = await person(served, "acme"), await person(served, "umbrella")
    foreign = await submit(acme, 30)
    mine = await submit(umbrella, 5)
    cursor = (await acme.get("/v1/jobs", params={"limit": 10})).json()["next_cursor"]
    found = (await umbrella.get("/v1/jobs", params={"cursor": cursor})).json()
    assert {job["tenant"] for job in found["items"]} <= {"umbrella"}
    assert set(await listed(umbrella)) == set(mine)
    problem(await umbrella.get("/v1/jobs", params={"tenant": "acme"}), 403, "forbidden")
    problem(await umbrella.post("/v1/jobs/cancel", json={"filter": {"tenant": "acme"}}), 403, "forbidden")
    answer = await umbrella.post("/v1/jobs/cancel", json={"filter": {"type": "send"}})
    assert answer.json()["changed"] == 5
    assert set(await listed(acme, status="ready")) == set(foreign)
    replay = await umbrella.post("/v1/dead/replay", json={"ids": foreign[:3]})
    assert replay.json() == {"matched": 0, "changed": 0, "dry_run": False, "next_cursor": None}


async def test_an_administrator_sees_all_tenants_or_one(served):
    acme, umbrella, admin = [await person(served, name) for name in ("acme", "umbrella", "admin")]
    first, second = await submit(acme, 2), await submit(umbrella, 2)
    assert set(await listed(admin)) == {*first, *second}
    assert set(await listed(admin, tenant="umbrella")) == set(second)
    assert (await admin.get(f"/v1/jobs/{first[0]}")).json()["tenant"] == "acme"


async def test_a_missing_body_is_treated_as_an_empty_one(served):
    client = await person(served, "acme")
    (job_id,) = await submit(client)
    cancelled = (await client.post(f"/v1/jobs/{job_id}/cancel")).json()
    assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "by key:acme")
    assert problem(await client.post("/v1/jobs"), 422, "invalid")["pointer"] == "/type"


async def test_all_matching_jobs_are_cancelled(served):
    client = await person(served, "acme")
    ready, later = await submit(client, 30, queue="mail"), await submit(client, 5, queue="mail", delay=60)
    others = await submit(client, 4, queue="images")
    running = await run(served, queue="mail", n=3)
    asked = {"filter": {"queue": "mail"}, "dry_run": True}
    assert (await client.post("/v1/jobs/cancel", json=asked)).json() == {
        "matched": 35, "changed": 0, "dry_run": True, "next_cursor": None,
    }  # fmt: skip
    done = (await client.post("/v1/jobs/cancel", json=asked | {"dry_run": False, "reason": "stop"})).json()
    assert (done["matched"], done["changed"]) == (35, 35)
    assert set(await listed(client, status="cancelled")) == {*ready, *later}
    assert set(await listed(client, status="ready")) == set(others)
    assert await report(served.engine.store, running, Succeeded()) == set()
    assert (await client.post("/v1/jobs/cancel", json=asked | {"dry_run": False})).json()["matched"] == 0


async def test_a_bulk_action_without_a_filter_needs_all(served):
    client = await person(served, "acme")
    await submit(client, 3)
    for path in ("/v1/jobs/cancel", "/v1/jobs/retry", "/v1/dead/replay"):
        problem(await client.post(path, json={}), 422, "invalid")
        assert (await client.post(path, json={"all": True, "dry_run": True})).status_code == 200
    problem(await client.delete("/v1/dead"), 422, "invalid")
    assert (await client.post("/v1/jobs/cancel", json={"all": True})).json()["changed"] == 3


async def test_concurrent_bulk_actions_change_each_job_once(served):
    client = await person(served, "acme")
    await submit(client, 60)
    answers = await asyncio.gather(*(client.post("/v1/jobs/cancel", json={"all": True}) for _ in range(3)))
    assert sum(answer.json()["changed"] for answer in answers) == 60


async def test_a_bulk_action_continues_from_its_cursor(served, monkeypatch):
    monkeypatch.setattr("holdfast.engine.jobs.actions.MAX_CHANGES_PER_CALL", 10)
    monkeypatch.setattr("holdfast.engine.jobs.actions.BATCH_SIZE", 4)
    client = await person(served, "acme")
    await submit(client, 33)
    changed, cursor, requests = 0, None, 0
    while requests == 0 or cursor:
        asked = {"all": True, **({"cursor": cursor} if cursor else {})}
        answer = (await client.post("/v1/jobs/cancel", json=asked)).json()
        changed, cursor, requests = changed + answer["changed"], answer["next_cursor"], requests + 1
    assert (changed, requests) == (33, 3)


async def test_dead_letters_are_listed_and_grouped(served):
    client = await person(served, "acme")
    some = await die(served, client, 3, "SMTP 421 at host 7")
    await submit(client, 2, queue="waiting")
    more = await die(served, client, 2, "no such user")
    found = await pages(client, "/v1/dead", limit=2)
    assert [each for page in found for each in page] == sorted({*some, *more}, reverse=True)
    answer = (await client.get("/v1/dead", params={"group": "fingerprint"})).json()
    assert set(answer) == {"groups", "next_cursor"}
    assert [(group["count"], group["more"], group["error"]["message"]) for group in answer["groups"]] == [
        (2, False, "no such user"), (3, False, "SMTP 421 at host 7"),
    ]  # fmt: skip
    assert answer["groups"][0]["newest"]["id"] == max(more)
    first = (await client.get("/v1/dead", params={"group": "fingerprint", "limit": 1})).json()
    second = (
        await client.get("/v1/dead", params={"group": "fingerprint", "limit": 1, "cursor": first["next_cursor"]})
    ).json()
    assert {first["groups"][0]["fingerprint"], second["groups"][0]["fingerprint"]} == {
        group["fingerprint"] for group in answer["groups"]
    }
    umbrella = await person(served, "umbrella")
    for params in ({}, {"cursor": first["next_cursor"]}):
        other = await umbrella.get("/v1/dead", params={"group": "fingerprint", **params})
        assert other.json() == {"groups": [], "next_cursor": None}
    problem(await client.get("/v1/dead?group=fingerprint&queue=mail"), 422, "invalid")


async def test_groups_are_counted_up_to_a_thousand(served, monkeypatch):
    monkeypatch.setattr("holdfast.engine.jobs.queries.MAX_COUNTED_JOBS", 5)
    monkeypatch.setattr("holdfast.api.render.jobs.MAX_COUNTED_JOBS", 5)
    client = await person(served, "acme")
    await die(served, client, 6, "often")
    await die(served, client, 5, "seldom")
    groups = (await client.get("/v1/dead", params={"group": "fingerprint"})).json()["groups"]
    assert [(group["count"], group["more"]) for group in groups] == [(5, False), (5, True)]


async def test_concurrent_replays_create_one_generation_of_each_job(served):
    """S20: by ids and by filter, at the same time."""
    client = await person(served, "acme")
    ids = await die(served, client, 40)
    answers = await asyncio.gather(
        client.post("/v1/dead/replay", json={"ids": ids}),
        client.post("/v1/dead/replay", json={"all": True}),
        client.post("/v1/dead/replay", json={"filter": {"type": "send"}}),
        client.post("/v1/jobs/retry", json={"filter": {"status": "dead"}}),
    )
    assert [answer.status_code for answer in answers] == [200] * 4
    assert sum(answer.json()["changed"] for answer in answers) == 40
    for job_id in ids:
        job = (await client.get(f"/v1/jobs/{job_id}")).json()
        assert (job["status"], job["generation"], job["attempts"]) == ("ready", 1, 0)
        assert len(job["attempt_log"]) == 1
    assert (await client.get("/v1/dead")).json() == {"items": [], "next_cursor": None}


async def test_only_dead_letters_are_replayed(served):
    client = await person(served, "acme")
    waiting = await submit(client, 2, delay=60)
    asked = {"ids": [*waiting, str(new_job_id())]}
    assert (await client.post("/v1/dead/replay", json=asked)).json()["matched"] == 0
    for body, pointer in [({"ids": ["x"]}, "/ids/0"), ({"ids": []}, "/ids"), ({"ids": waiting, "all": True}, "/ids")]:
        assert problem(await client.post("/v1/dead/replay", json=body), 422, "invalid")["pointer"] == pointer


async def test_dead_letters_are_purged_by_filter_by_ids_or_all(served):
    client = await person(served, "acme")
    old, other = await die(served, client, 4, "old"), await die(served, client, 3, "other", type="sign")
    waiting = await submit(client, 2, type="sign", delay=60)
    tried = (await client.delete("/v1/dead", params={"type": "sign", "dry_run": "true"})).json()
    assert tried == {"matched": 3, "changed": 0, "dry_run": True, "next_cursor": None}
    assert (await client.delete("/v1/dead", params={"type": "sign"})).json()["changed"] == 3
    assert (await client.delete("/v1/dead", params={"ids": f"{old[0]},{other[0]},{waiting[0]}"})).json()["changed"] == 1
    assert (await client.delete("/v1/dead", params={"all": "true"})).json()["changed"] == 3
    assert set(await listed(client)) == set(waiting)


@given(st.uuids())
def test_a_cursor_round_trips(number):
    job_id = JobId(UUID(int=number.int))
    assert codec.read_cursor(codec.cursor_of(job_id)) == job_id


@given(st.one_of(st.text(max_size=400), st.from_regex(r"[A-Za-z0-9_-]{0,60}", fullmatch=True)))
def test_any_other_text_is_rejected_as_a_cursor(text):
    """T21"""
    for read in (codec.read_cursor, codec.read_group_cursor):
        with contextlib.suppress(Invalid):
            read(text)


@given(
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,127}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
)
def test_a_group_cursor_round_trips(tenant, fingerprint):
    assert codec.read_group_cursor(codec.group_cursor_of(tenant, fingerprint)) == (tenant, fingerprint)


async def test_a_job_is_explained_only_to_its_own_tenant(served):
    """T02"""
    client, other = await person(served, "acme"), await person(served, "umbrella")
    job = (await client.post("/v1/jobs", json={"type": "send", "delay": "1h"})).json()
    answer = await client.get(f"/v1/jobs/{job['id']}/explain")
    assert answer.status_code == 200
    said = answer.json()
    assert (said["id"], said["status"], said["runnable"]) == (job["id"], "scheduled", False)
    assert [reason["code"] for reason in said["reasons"]] == ["not_due", "no_worker"]
    assert said["reasons"][0]["until"] == job["scheduled_at"]
    assert said["estimate"]["at"] is None
    problem(await other.get(f"/v1/jobs/{job['id']}/explain"), 404, "not_found")
    problem(await client.get("/v1/jobs/nonsense/explain"), 404, "not_found")
