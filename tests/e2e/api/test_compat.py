"""Calls of the source systems: words, precedence, pages and access, in process on each database."""

from uuid import UUID

import httpx2
import msgspec
import pytest

from holdfast.compose import build_api
from holdfast.engine.changes import query_cache
from holdfast.model.ids import JobId
from holdfast.model.job import RetryRule
from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import in_seconds
from holdfast.policy.retry import backoff
from tests.e2e.api.conftest import ADMIN, problem
from tests.support.builders import a_transition, enter, hold, move, put, report, some_jobs, take

SECRET = "f3a9c2e17b5d4860a1c3e5f7092b4d6e8a0c2e4f"
LATER = "2099-01-31T12:00:00Z"


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch):
    """Keep no statistics, so that a test sees at once what it did."""
    monkeypatch.setattr(query_cache, "CACHE_S", -1.0)
    monkeypatch.setattr(query_cache, "COST_FACTOR", 0)


@pytest.fixture
def node(settings, engine):
    """Build a node with these systems; `client` calls it from an address, without credentials by default."""
    opened = []

    def build(systems, **more):
        changed = {"compat": tuple(systems), "jwt_secret": SECRET, **more}
        api = build_api(msgspec.structs.replace(settings, **changed), engine)

        def client(key=None, address="127.0.0.1", host="localhost:8080", **headers):
            if key is not None:
                headers["authorization"] = f"Bearer {key}"
            transport = httpx2.ASGITransport(api, client=(address, 4711))
            opened.append(
                httpx2.AsyncClient(base_url=f"http://{host}", headers=headers, transport=transport, trust_env=False)
            )
            return opened[-1]

        return client

    return build


DOCUMENTED = {
    "a": ["POST /jobs", "GET /jobs/{id}", "GET /healthz"],
    "b": ["POST /addJob", "GET /failedJobs"],
    "c": [
        "POST /api/tasks", "POST /api/tasks/batch", "GET /api/tasks", "GET /api/tasks/{id}",
        "POST /api/tasks/{id}/cancel", "GET /api/analytics", "GET /api/analytics/throughput",
        "GET /api/analytics/types", "GET /api/workers", "GET /api/sse/events", "GET /api/health",
        "POST /api/demo/seed", "POST /api/demo/clear",
    ],
    "d": ["POST /jobs", "GET /jobs", "GET /jobs/{id}", "GET /stats", "GET /health"],
    "e": ["POST /tasks"],
}  # fmt: skip


async def answers(client, call):
    method, path = call.split()
    answer = await client.request(method, path.replace("{id}", "0" * 32), headers={"x-probe": "1"})
    return not (answer.status_code == 404 and answer.json()["code"] == "no_such_route") and answer.status_code != 405


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("letter", DOCUMENTED)
async def test_a_node_serves_exactly_the_documented_calls_of_its_systems(node, letter):
    client = node([letter], demo=True)(address="203.0.113.9")
    others = {call for calls in DOCUMENTED.values() for call in calls} - {*DOCUMENTED[letter], "GET /healthz"}
    assert [call for call in DOCUMENTED[letter] if not await answers(client, call)] == []
    assert [call for call in others if await answers(client, call)] == []


@pytest.mark.databases("sqlite")
async def test_compatibility_is_off_by_default_on_in_demo_mode_and_not_in_the_api_description(served, node):
    assert not await answers(await served.client(), "POST /jobs")
    client = node((), compat=None, demo=True)()
    assert await answers(client, "POST /jobs")
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert not {"/jobs", "/tasks", "/addJob", "/api/tasks", "/stats"} & set(paths)
    assert "/addJob" not in (await client.get("/docs")).text


async def test_a_submits_once_per_key_and_gives_ids_of_32_digits(node, engine):
    client = node("a")()
    body = {"type": "demo", "payload": {"msg": "hello"}, "max_attempts": 3}
    first, again = [await client.post("/jobs", json=body, headers={"Idempotency-Key": "demo-1"}) for _ in range(2)]
    assert (first.status_code, again.status_code, first.json()) == (201, 200, again.json())
    job = first.json()
    assert (len(job["id"]), job["id"].isalnum(), job["status"], job["attempts"]) == (32, True, "PENDING", 0)
    assert (job["payload"], job["max_attempts"], job["locked_by"]) == ({"msg": "hello"}, 3, None)
    (held,) = await take(engine.store, await enter(engine.store), Lane("default", "default", 0))
    running = (await client.get(f"/jobs/{job['id']}")).json()
    assert (running["status"], running["attempts"], len(running["locked_by"])) == ("RUNNING", 1, 18)
    assert running["locked_until"] > running["created_at"]
    await report(engine.store, held)
    done = (await client.get(f"/jobs/{UUID(job['id'])}")).json()  # with hyphens too
    assert (done["id"], done["status"], done["locked_by"]) == (job["id"], "SUCCESS", None)
    assert done["updated_at"] > done["created_at"]
    problem(await client.get("/jobs/nothing"), 404, "not_found")
    problem(await client.post("/jobs", json={"payload": 1}), 422, "invalid")
    conflict = await client.post("/jobs", json={"type": "other"}, headers={"Idempotency-Key": "demo-1"})
    assert conflict.status_code in (409, 422)


async def test_a_body_is_json_whatever_its_media_type(node):
    client = node("a")()
    form = {"content-type": "application/x-www-form-urlencoded"}  # what curl -d sends without a header
    assert (await client.post("/jobs", content=b'{"type": "demo"}', headers=form)).status_code == 201
    problem(await client.post("/jobs", content=b"type=demo", headers=form), 400, "malformed")
    problem(await (node("a")(ADMIN)).post("/v1/jobs", content=b'{"type": "demo"}', headers=form), 415, "not_json")


@pytest.mark.databases("sqlite")
async def test_the_first_system_named_decides_the_words_of_a_shared_call(node):
    of_d = {"type": "email", "payload": {"to": "a@b.example", "subject": "s", "body": "b"}, "scheduled_at": LATER}
    of_a = {"type": "demo", "payload": {"msg": "hello"}, "max_attempts": 3}
    first_a, first_d = node("ad")(), node("da")()
    for body in (of_a, of_d):
        a, d = (await first_a.post("/jobs", json=body)).json(), (await first_d.post("/jobs", json=body)).json()
        assert (len(a["id"]), a["status"], len(d["id"]), d) == (32, "PENDING", 36, {"id": d["id"], "status": "pending"})
        for job_id in (a["id"], d["id"]):
            assert (await first_a.get(f"/jobs/{job_id}")).json()["status"] == "PENDING"
            assert (await first_d.get(f"/jobs/{job_id}")).json()["status"] == "pending"
    assert (await first_a.get("/stats")).json()["pending"] == 4  # a call of D alone keeps the words of D


SUBMISSIONS = {
    "a": ("/jobs", {"type": "demo"}, None, [1, 2, 4, 8]),
    "b": ("/addJob", {"type": "demo"}, 5, [1, 2, 4, 8]),
    "c": ("/api/tasks", {"type": "demo"}, None, [1, 2, 4, 8]),
    "d": ("/jobs", {"type": "demo"}, 3, [2, 4, 8]),
    "e": ("/tasks", {"payload": {"action": "demo"}}, 5, [60, 300, 900, 900]),
}


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("letter", SUBMISSIONS)
async def test_retries_follow_the_delays_that_a_system_documents(node, engine, served, letter):
    path, body, attempts, delays = SUBMISSIONS[letter]
    build = node([letter])
    token = (await build(ADMIN).post("/v1/tokens", json={})).json()["token"]
    job = (await build(token).post(path, json=body)).json()
    stored = await engine.jobs.get(JobId(UUID(job["id"])))
    rule = RetryRule(jitter=0) if stored.retry is None else msgspec.json.decode(stored.retry, type=RetryRule)
    waits = [in_seconds(backoff(rule, attempt, 0.9)) for attempt in range(1, len(delays) + 1)]
    assert (waits, stored.max_attempts) == (delays, attempts or 5)
    own_body = body | {"max_attempts": 9, "retry": {"base": 7}, "idempotency_key": "own"}
    own = (await build(token).post(path, json=own_body)).json()
    assert (await engine.jobs.get(JobId(UUID(own["id"])))).max_attempts == 9


async def test_d_lists_counts_and_shows_jobs_in_its_words(node, engine):
    client, store = node("d")(), engine.store
    jobs = await hold(store, await enter(store), 5, tenant="default", queue="q", type="t")
    await report(store, jobs[:2])
    await move(store, a_transition(jobs[2], Status.DEAD), a_transition(jobs[3], Status.CANCELLED))
    await put(store, *some_jobs(1, tenant="default", queue="q", type="u"))
    await put(store, *some_jobs(3, tenant="acme", queue="q", type="u"))  # not visible without credentials
    later = (await client.post("/jobs", json={"type": "u", "scheduled_at": LATER})).json()["id"]

    async def found(**query):
        answer = await client.get("/jobs", params=query)
        assert answer.status_code == 200, answer.text
        return answer

    for word, number in {"pending": 2, "running": 1, "completed": 2, "failed": 2}.items():
        listed = (await found(status=word)).json()
        assert [job["status"] for job in listed] == [word] * number
        pages = []
        for page in range(1, number + 2):
            pages += (await found(status=word.upper(), limit=1, page=page)).json()
        assert pages == listed
    assert len((await found()).json()) == 7
    cursor, by_cursor = None, []
    while True:
        page = await found(limit=3, **({} if cursor is None else {"cursor": cursor}))
        by_cursor += page.json()
        if (cursor := page.headers.get("next-cursor")) is None:
            break
    assert by_cursor == (await found()).json()
    answer = await client.get("/stats")
    assert list(answer.json().items()) == [("completed", 2), ("failed", 2), ("pending", 2), ("running", 1)]
    job = (await client.get(f"/jobs/{later}")).json()
    assert job["scheduled_at"].startswith("2099-01-31T12:00:00")
    assert (job["started_at"], job["completed_at"], job["attempts"], job["max_attempts"]) == (None, None, 0, 3)
    problem(await client.get("/jobs", params={"status": "SUCCESS"}), 422, "invalid")
    problem(await client.get("/jobs", params={"page": 40, "limit": 50}), 422, "invalid")
    problem(await client.get("/jobs", params={"cursor": "?"}), 422, "invalid")
    health = await client.get("/health")
    assert (health.text, health.headers["content-type"]) == ("ok", "text/plain; charset=utf-8")


async def test_e_takes_the_type_from_the_action(node, engine):
    client = node("e")()
    task = {"due_at": "2026-01-20T12:00:00Z", "payload": {"action": "email_user", "user_id": 42}}
    made = (await client.post("/tasks", json=task)).json()
    assert (made["type"], made["status"], made["payload"]) == ("email_user", "PENDING", task["payload"])
    assert made["due_at"].startswith("2026-01-20T12:00:00")
    assert (await engine.jobs.get(JobId(UUID(made["id"])))).status is Status.READY  # its time is past
    assert (await client.post("/tasks", json={"payload": [1]})).json()["type"] == "task"
    assert (await client.post("/tasks", json={"type": "own", "payload": {"action": 1}})).json()["type"] == "own"
    wrong = problem(await client.post("/tasks", json={"payload": {"action": "no spaces"}}), 422, "invalid")
    assert wrong["pointer"] == "/payload/action"
    both = problem(await client.post("/tasks", json={"due_at": LATER, "scheduled_at": LATER}), 422, "invalid")
    assert both["pointer"] == "/due_at"


async def test_b_needs_a_token_adds_a_job_once_and_pages_through_dead_letters(node, engine, served):
    build = node("b")
    job = {"type": "welcome", "payload": {"user_id": 42}}
    for client in (build(), build(ADMIN), build(await served.key()), build("a.b.c")):
        problem(await client.post("/addJob", json=job), 401, "unauthorized")
        problem(await client.get("/failedJobs"), 401, "unauthorized")
    token = (await build(await served.key("acme")).post("/v1/tokens", json={})).json()
    client = build(token["token"])
    first, again = [await client.post("/addJob", json=job) for _ in range(2)]
    assert (first.status_code, again.status_code, first.json()) == (201, 200, again.json())
    other = await client.post("/addJob", json=job | {"payload": {"user_id": 43}})
    assert other.json()["id"] != first.json()["id"]
    dead = await hold(engine.store, await enter(engine.store), 3, tenant="acme", queue="q", type="t")
    await move(engine.store, *[a_transition(each, Status.DEAD) for each in dead])
    pages = [(await client.get("/failedJobs", params={"page": page, "limit": 2})).json() for page in (1, 2, 3)]
    assert [len(page["jobs"]) for page in pages] == [2, 1, 0]
    assert {job["id"] for page in pages for job in page["jobs"]} == {str(each.id) for each in dead}
    assert {job["status"] for page in pages for job in page["jobs"]} == {"failed"}


async def test_c_submits_lists_cancels_and_reports_for_the_tenant_of_the_key(node, served, engine):
    build = node("c", demo=True)
    acme = build(**{"x-api-key": await served.key("acme")})
    admin = build(ADMIN)
    problem(await build().get("/api/tasks"), 401, "unauthorized")
    task = (await acme.post("/api/tasks", json={"type": "report", "payload": {"rows": 3}, "priority": 5})).json()
    assert (task["status"], task["tenant_id"], task["priority"]) == ("pending", "acme", 5)
    batch = [{"type": "report", "payload": number} for number in range(3)]
    for body in (batch, {"tasks": batch}):
        made = await acme.post("/api/tasks/batch", json=body)
        assert (made.status_code, made.json()["count"], len(set(made.json()["ids"]))) == (201, 3, 3)
    refused = await acme.post("/api/tasks/batch", json=[{"type": "a"}, {"payload": 1}, {"type": "b", "delay": "soon"}])
    assert [fault["index"] for fault in problem(refused, 422, "invalid_batch")["errors"]] == [1, 2]
    cancelled = (await acme.post(f"/api/tasks/{task['id']}/cancel")).json()
    assert (cancelled["id"], cancelled["status"]) == (task["id"], "cancelled")
    assert (await acme.get(f"/api/tasks/{task['id']}")).json() == cancelled
    problem(await acme.post(f"/api/tasks/{task['id']}/cancel"), 409, "conflict")

    async def tasks(client, query=""):
        answer = await client.get(f"/api/tasks{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()["tasks"]

    assert len(await tasks(acme)) == len(await tasks(acme, "?all")) == len(await tasks(admin, "?all")) == 7
    assert (await tasks(admin), len(await tasks(admin, "?tenant=acme"))) == ([], 7)
    assert len(await tasks(acme, "?status=pending&type=report&limit=4&offset=4")) == 2
    assert await tasks(acme, "?status=cancelled") == [cancelled]
    problem(await acme.get("/api/tasks?tenant=default"), 403, "forbidden")
    assert (await acme.get("/api/analytics")).json()["totals"]["submitted"] == 7
    assert (await acme.get("/api/analytics/throughput?window=15m")).json()["points"]
    assert [item["type"] for item in (await acme.get("/api/analytics/types")).json()["items"]] == ["report"]
    assert (await acme.get("/api/workers")).json()["items"] == []
    assert (await build().get("/api/health")).json() == {"status": "ok"}
    problem(await acme.post("/api/demo/seed"), 403, "forbidden")
    assert (await admin.post("/api/demo/seed?jobs=20")).json()["jobs"] == 20
    assert (await admin.post("/api/demo/clear")).json()["jobs"] == 20


async def test_a_submission_counts_by_its_length_against_the_rate_of_a_tenant(node, served, admin):
    """T20"""
    tenant = {"name": "acme", "rate": 5, "rate_window": "1h"}
    assert (await admin.post("/v1/tenants", json=tenant)).status_code == 201
    await served.engine.submitter.limited.refresh()
    acme = node("c")(**{"x-api-key": await served.key("acme")})
    assert (await acme.post("/api/tasks/batch", json=[{"type": "a"}] * 4)).status_code == 201
    limited = await acme.post("/api/tasks/batch", json=[{"type": "a"}] * 2)
    assert (limited.status_code, "retry-after" in limited.headers) == (429, True)
    assert (await acme.post("/api/tasks", json={"type": "a"})).status_code == 201


FOREIGN = [
    {"address": "203.0.113.9"},
    {"x-forwarded-for": "127.0.0.1"},
    {"x-real-ip": "10.0.0.1"},
    {"host": "evil.example"},
    {"origin": "https://evil.example"},
    {"origin": "null"},
]


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("letter, path", [("a", "/jobs"), ("d", "/jobs"), ("e", "/tasks")])
async def test_calls_without_credentials_are_local_unless_a_tenant_is_named(node, served, letter, path):
    body = {"type": "demo"}
    build = node([letter])
    for options in FOREIGN:
        problem(await build(**options).post(path, json=body), 401, "unauthorized")
    problem(await build("hf_0123456789abcdef_" + "0" * 64).post(path, json=body), 401, "unauthorized")
    for options in ({}, {"address": "::1", "host": "[::1]:80"}, {"origin": "http://localhost:5173"}):
        assert (await build(**options).post(path, json=body)).status_code == 201
    acme = await served.key("acme")
    assert (await build(acme, address="203.0.113.9").post(path, json=body)).status_code == 201
    named = node([letter], compat_tenant="globex")
    for options in FOREIGN:
        assert (await named(**options).post(path, json=body)).status_code == 201
    tenants = {job["tenant"] for job in (await build(ADMIN).get("/v1/jobs")).json()["items"]}
    assert tenants == {"default", "acme", "globex"}
    problem(await named(address="203.0.113.9").get("/v1/jobs"), 401, "unauthorized")
