"""`POST /v1/jobs` and `/v1/jobs/batch`: what is answered, and what is refused how."""

import asyncio
import contextlib
import gc
import json
import tracemalloc

import msgspec
import pytest

from holdfast.api.http import HttpRequest
from holdfast.errors import Invalid
from holdfast.model import bounds
from holdfast.model.job import JobFilter, Page
from holdfast.wire import types
from holdfast.wire.json import read
from tests.e2e.api.api_users import person
from tests.e2e.api.conftest import ADMIN, problem

EVERYTHING = {
    "type": "mail.send",
    "payload": {"to": "ann@example.org", "n": [1, 2.5, None, True]},
    "queue": "mail",
    "priority": 7,
    "delay": "5m",
    "max_attempts": 3,
    "timeout": 30,
    "retry": {"base": 1, "cap": "1m", "jitter": 0.5},
    "cost": 2,
    "tags": ["urgent", "ünïcode"],
    "unique": {"by": ["payload.to"], "within": "1h", "on_conflict": "return"},
    "deadline": "2099-01-01T00:00:00+02:00",
    "concurrency_key": "ann",
}


async def stored(served):
    return await served.engine.jobs.find(JobFilter())


async def test_the_response_shows_the_job_as_stored(served):
    client = await person(served, "acme")
    answer = await client.post("/v1/jobs", json=EVERYTHING, headers={"idempotency-key": "k-1"})
    assert answer.status_code == 201
    job = answer.json()
    again = (await client.get(f"/v1/jobs/{job['id']}")).json()
    assert {name: again[name] for name in job} == job
    for name in ("type", "payload", "queue", "priority", "max_attempts", "timeout", "cost", "tags", "concurrency_key"):
        assert job[name] == EVERYTHING[name]
    assert (job["tenant"], job["status"], job["attempts"]) == ("acme", "scheduled", 0)
    assert job["deadline"] == "2098-12-31T22:00:00.000000Z"
    assert job["idempotency_key"] == "k-1"
    assert job["actions"] == ["cancel", "retry", "delete"]
    assert (again["attempt_log"], again["steps"]) == ([], [])
    assert again["lineage"] == {"generation": 0, "parent_id": None, "schedule": None, "workflow_id": None}


@pytest.mark.parametrize("asked", [{}, {"delay": 0}, {"delay": 60}, {"scheduled_at": "2001-01-01T00:00:00Z"}], ids=str)
async def test_a_job_with_few_fields_is_shown_as_stored(served, asked):
    client = await person(served, "acme")
    job = (await client.post("/v1/jobs", json={"type": "send", **asked})).json()
    again = (await client.get(f"/v1/jobs/{job['id']}")).json()
    assert {name: again[name] for name in job} == job


async def test_the_same_idempotency_key_returns_the_same_job(served):
    """S2: also when both come at once."""
    client = await person(served, "acme")
    body, key = {"type": "send", "payload": {"a": 1, "b": 2}}, {"idempotency-key": "once"}
    answers = await asyncio.gather(*(client.post("/v1/jobs", json=body, headers=key) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    for answer in answers:
        assert (answer.headers.get("idempotent-replayed") == "true") is (answer.status_code == 200)
    reordered = await client.post("/v1/jobs", json={"payload": {"b": 2, "a": 1}, "type": "send"}, headers=key)
    assert reordered.status_code == 200
    assert len(await stored(served)) == 1


async def test_the_same_key_with_another_body_is_rejected(served):
    client = await person(served, "acme")
    key = {"idempotency-key": "once"}
    await client.post("/v1/jobs", json={"type": "send", "payload": 1}, headers=key)
    found = problem(
        await client.post("/v1/jobs", json={"type": "send", "payload": 2}, headers=key), 422, "idempotency_mismatch"
    )
    assert "new key" in found["detail"]


async def test_the_same_key_of_two_tenants_creates_two_jobs(served):
    """T02"""
    for name in ("acme", "umbrella"):
        client = await person(served, name)
        answer = await client.post("/v1/jobs", json={"type": "send"}, headers={"idempotency-key": "once"})
        assert answer.status_code == 201
    assert len(await stored(served)) == 2


async def test_a_unique_conflict_names_the_job(served):
    client = await person(served, "acme")
    body = {"type": "send", "payload": 1, "unique": {"on_conflict": "reject"}}
    first = (await client.post("/v1/jobs", json=body)).json()
    assert problem(await client.post("/v1/jobs", json=body), 409, "duplicate_job")["job_id"] == first["id"]
    body["unique"]["on_conflict"] = "return"
    again = await client.post("/v1/jobs", json=body)
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    body["unique"] = {"by": ["type"], "on_conflict": "explode"}
    assert problem(await client.post("/v1/jobs", json=body), 422, "invalid")["pointer"] == "/unique/on_conflict"


async def test_a_batch_lists_every_unique_conflict(served):
    """F06: with the code that it has alone and the job in its way, beside other faults; none is taken."""
    client = await person(served, "acme")
    lonely = [{"type": "send", "payload": n, "unique": {"on_conflict": "reject"}} for n in range(3)]
    first, third = [(await client.post("/v1/jobs", json=lonely[n])).json()["id"] for n in (0, 2)]
    other = {"type": "send", "payload": 9, "idempotency_key": "once"}
    assert (await client.post("/v1/jobs/batch", json={"jobs": [other]})).status_code == 201
    batch = [*lonely, {"type": "send"}, other | {"payload": 10}]
    found = problem(await client.post("/v1/jobs/batch", json={"jobs": batch}), 422, "invalid_batch")
    assert [(each["index"], each["code"], each.get("job_id")) for each in found["errors"]] == [
        (0, "duplicate_job", first),
        (2, "duplicate_job", third),
        (4, "idempotency_mismatch", None),
    ]
    assert len(await stored(served)) == 3
    twice = [lonely[1], lonely[1], {"type": "a", "idempotency_key": "k"}, {"type": "b", "idempotency_key": "k"}]
    found = problem(await client.post("/v1/jobs/batch", json={"jobs": twice}), 422, "invalid_batch")
    assert [(each["index"], each["pointer"]) for each in found["errors"]] == [(1, "/unique"), (3, "/idempotency_key")]


async def test_a_job_replaces_a_waiting_unique_job(served):
    client = await person(served, "acme")
    body = {"type": "send", "payload": 1, "unique": {"by": ["type"], "on_conflict": "replace"}}
    first = (await client.post("/v1/jobs", json=body)).json()
    second = await client.post("/v1/jobs", json=body | {"payload": 2, "priority": 5})
    assert (second.status_code, second.json()["payload"], second.json()["priority"]) == (201, 2, 5)
    replaced = (await client.get(f"/v1/jobs/{first['id']}")).json()
    assert (replaced["status"], replaced["reason"]) == ("cancelled", f"replaced by job {second.json()['id']}")


async def test_a_key_outlives_its_job(served):
    """A key that is repeated never makes a second job, not even after the first was deleted."""
    client = await person(served, "acme")
    key = {"idempotency-key": "once"}
    first = (await client.post("/v1/jobs", json={"type": "send"}, headers=key)).json()
    assert (await client.delete(f"/v1/jobs/{first['id']}")).status_code == 204
    found = problem(await client.post("/v1/jobs", json={"type": "send"}, headers=key), 409, "conflict")
    assert first["id"] in found["detail"]
    assert "new idempotency key" in found["detail"]
    assert await stored(served) == []


BAD = {
    "no type": ({}, "/type"),
    "type of another kind": ({"type": 5}, "/type"),
    "type with a blank": ({"type": "a b"}, "/type"),
    "an internal field": ({"type": "send", "tenant": "umbrella"}, "/tenant"),
    "attempts": ({"type": "send", "attempts": 3}, "/attempts"),
    "status": ({"type": "send", "status": "succeeded"}, "/status"),
    "an id": ({"type": "send", "id": "x"}, "/id"),
    "a fence": ({"type": "send", "fence": 1}, "/fence"),
    "priority": ({"type": "send", "priority": 1_001}, "/priority"),
    "priority as text": ({"type": "send", "priority": "1"}, "/priority"),
    "attempts allowed": ({"type": "send", "max_attempts": 1_001}, "/max_attempts"),
    "no attempts": ({"type": "send", "max_attempts": 0}, "/max_attempts"),
    "a delay of years": ({"type": "send", "delay": "367d"}, "/delay"),
    "a delay of nothing known": ({"type": "send", "delay": "soon"}, "/delay"),
    "a negative delay": ({"type": "send", "delay": -1}, "/delay"),
    "a timeout of none": ({"type": "send", "timeout": 0}, "/timeout"),
    "a time without offset": ({"type": "send", "scheduled_at": "2030-01-01T00:00:00"}, "/scheduled_at"),
    "two times": ({"type": "send", "delay": 1, "scheduled_at": "2030-01-01T00:00:00Z"}, "/delay"),
    "a tag too long": ({"type": "send", "tags": ["x" * 101]}, "/tags/0"),
    "too many tags": ({"type": "send", "tags": ["x"] * 21}, "/tags"),
    "a cap below its base": ({"type": "send", "retry": {"base": 5, "cap": 1}}, "/retry/cap"),
    "a delay in a list": ({"type": "send", "retry": {"delays": [1, "never"]}}, "/retry/delays/1"),
    "unique by nothing known": ({"type": "send", "unique": {"by": ["colour"]}}, "/unique/by"),
    "a long text": ({"type": "send", "payload": {"a": ["x" * 65_537]}}, "/payload/a/0"),
    "U+0000": ({"type": "send", "payload": {"a": "\0"}}, "/payload/a"),
    "a deep payload": ({"type": "send", "payload": json.loads("[" * 40 + "]" * 40)}, "/payload" + "/0" * 32),
    "many keys": ({"type": "send", "payload": dict.fromkeys(map(str, range(10_001)))}, "/payload"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
async def test_invalid_input_is_rejected_with_its_pointer(served, what):
    """T10, T17, T41: one by one and in a batch."""
    client = await person(served, "acme")
    body, pointer = BAD[what]
    assert problem(await client.post("/v1/jobs", json=body), 422, "invalid")["pointer"] == pointer
    batch = problem(await client.post("/v1/jobs/batch", json={"jobs": [{"type": "ok"}, body]}), 422, "invalid_batch")
    assert [(each["index"], each["pointer"]) for each in batch["errors"]] == [(1, pointer)]
    assert await stored(served) == []


async def test_an_oversized_payload_is_rejected(served):
    client = await person(served, "acme")
    body = {"type": "send", "payload": ["x" * 60_000] * 5}
    assert problem(await client.post("/v1/jobs", json=body), 413, "payload_too_large")["pointer"] == "/payload"


async def test_receipts_have_the_order_of_the_batch(served):
    client = await person(served, "acme")
    jobs = [{"type": "send", "payload": number, "idempotency_key": f"k-{number}"} for number in range(300)]
    answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 201
    receipts = answer.json()["items"]
    found = {str(job.id): job for job in await served.engine.jobs.find(JobFilter(), Page(1_000))}
    assert [int(found[receipt["id"]].payload) for receipt in receipts] == list(range(300))
    again = (await client.post("/v1/jobs/batch", json={"jobs": jobs})).json()["items"]
    assert [receipt["id"] for receipt in again] == [receipt["id"] for receipt in receipts]
    assert all(receipt["replayed"] for receipt in again)


async def test_a_batch_lists_every_invalid_job(served):
    """Whatever is wrong with each: its shape, a length of time, or a rule."""
    client = await person(served, "acme")
    jobs = [{"type": f"t{number}"} for number in range(100)]
    jobs[3] = {"type": 7}
    jobs[20] = 5
    jobs[50] = {"type": "x", "delay": "soon"}
    jobs[70] = {"type": "x", "unique": {"by": ["colour"]}}
    jobs[99] = {"type": "x", "colour": "red"}
    found = problem(await client.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "invalid_batch")
    assert [(each["index"], each.get("pointer", "")) for each in found["errors"]] == [
        (3, "/type"), (20, ""), (50, "/delay"), (70, "/unique/by"), (99, "/colour"),
    ]  # fmt: skip
    assert await stored(served) == []


async def test_a_batch_has_at_most_ten_thousand_jobs(served):
    client = await person(served, "acme")
    for jobs in ([{"type": "x"}] * 10_001, [5] * 10_001):
        found = problem(await client.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "invalid")
        assert found["pointer"] == "/jobs"
    assert (await client.post("/v1/jobs/batch", json={"jobs": []})).json() == {"items": []}


@pytest.mark.databases("sqlite")
async def test_a_batch_of_ten_thousand_small_jobs_is_accepted(served):
    """F35: the number of names that a batch may have does not depend on its size in bytes."""
    client = await person(served, "acme")
    job = {"type": "x", "queue": "q", "priority": 1, "tags": ["a", "b"], "payload": {"n": 1, "m": {"k": "v"}}}
    answer = await client.post("/v1/jobs/batch", json={"jobs": [job] * 10_000})
    assert answer.status_code == 201, answer.text[:300]
    assert len(answer.json()["items"]) == 10_000
    found = problem(await client.post("/v1/jobs", json={"type": "x", "payload": [[]] * 70_000}), 400, "malformed")
    assert "60,000" in found["detail"]


@pytest.mark.databases("sqlite")
async def test_a_job_of_a_batch_that_is_too_large_is_rejected_before_the_batch_is_parsed(served, monkeypatch):
    """F35: as large as the body of a single job may be."""
    client = await person(served, "acme")
    monkeypatch.setattr("holdfast.wire.json.parse", None)
    jobs = [{"type": "ok"}, {"type": "send", "payload": [[0]] * 290_000}]
    found = problem(await client.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "invalid_batch")
    assert [(each["index"], each["code"]) for each in found["errors"]] == [(1, "payload_too_large")]
    assert "1,048,576" in found["errors"][0]["detail"]


REFUSED = {
    "shape": {"type": 7},
    "option": {"type": "x", "delay": "soon"},
    "rule": {"type": "x", "unique": {"by": ["colour"]}},
    "payload": {"type": "x", "payload": "a" * 70_000},
    "duplicate": {"type": "x", "idempotency_key": "same"},
}


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("why", REFUSED)
async def test_a_refused_batch_is_freed_without_the_garbage_collector(served, why):
    """F35: no error keeps a traceback, which would keep the jobs that were being parsed."""
    await person(served, "acme")
    count = 50 if why == "payload" else 2_000
    jobs = [{"type": "x", "payload": [[], {}]}] * count + [REFUSED[why]] * count
    body = json.dumps({"jobs": jobs}).encode()

    async def refuse():
        headers = {b"content-type": b"application/json", b"authorization": f"Bearer {ADMIN}".encode()}
        request = HttpRequest("POST", "/v1/jobs/batch", b"", headers, "127.0.0.1", None)
        request.body = body
        assert (await served.api.respond(request)).head.status == 422

    await refuse()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(5):
            await refuse()
        assert len(gc.get_objects()) - before < count
    finally:
        gc.enable()


BOMBS = {
    "NaN": b'{"type": "send", "payload": NaN}',
    "infinity": b'{"type": "send", "payload": 1e999}',
    "U+0000": b'{"type": "send", "payload": "\\u0000"}',
    "U+0000 in a name": b'{"type": "send", "payload": {"\\u0000": 1}}',
    "a lone surrogate": b'{"type": "send", "payload": "\\ud800"}',
    "a surrogate the wrong way round": b'{"type": "send", "payload": "\\udc00\\ud800"}',
    "a number of 5,000 digits": b'{"type": "send", "payload": ' + b"9" * 5_000 + b"}",
    "a name twice": b'{"type": "send", "type": "sign"}',
    "a name twice inside": b'{"type": "send", "payload": [{"a": 1, "b": {"c": 1, "c": 2}}]}',
    "a name twice, and what looks like another": b'{"type": "send", "payload": {"a": 1, "a": "\\u003a"}}',
    "a name twice, and a colon in a text": b'{"type": "send", "payload": {"a": ":", "a": 1}}',
    "a name twice, once escaped": b'{"type": "send", "payload": {"a": 1, "\\u0061": 2}}',
    "depth 100,000": b'{"type": "send", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "depth 100,000 of objects": b'{"type": "send", "payload": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "many keys": b'{"type": "send", "payload": {' + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}}",
    "many lists": b'{"type": "send", "payload": [' + b",".join([b"[]"] * 300_000) + b"]}",
    "many texts": b'{"type": "send", "payload": [' + b",".join([b'"ab"'] * 200_000) + b"]}",
    "bad UTF-8": b'{"type": "send", "payload": "\xff\xfe"}',
    "a mark of byte order": b'\xef\xbb\xbf{"type": "send"}',
    "UTF-16": '{"type": "send"}'.encode("utf-16"),
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "two values": b'{"type": "send"}{"type": "send"}',
    "a comment": b'{"type": "send"} // now',
    "a comma too many": b'{"type": "send",}',
    "half": b'{"type": "se',
}


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/batch"])
@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.databases("sqlite")
async def test_a_json_bomb_is_rejected(served, what, path):
    """F35, T17: a clear refusal, nothing stored."""
    client = await person(served, "acme")
    body = BOMBS[what] if path == "/v1/jobs" else b'{"jobs": [' + (BOMBS[what] or b",") + b"]}"
    answer = await client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 413, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["detail"]) > 10
    assert len(answer.content) < 3_000
    assert await stored(served) == []


@pytest.mark.databases("sqlite")
async def test_a_compressed_body_is_rejected_unread(served):
    """F35"""
    client = await person(served, "acme")
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    problem(await client.post("/v1/jobs", content=b"\x1f\x8b", headers=headers), 415, "encoded_body")
    problem(await client.post("/v1/jobs", content=b"{}", headers={"content-type": "text/plain"}), 415, "not_json")


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("announced", [True, False])
async def test_a_gigabyte_is_rejected_before_it_is_read(served, announced):
    """F35: announced, not a byte of it is read; in pieces, no more than the limit and a piece."""
    service = (await person(served, "acme"), served.api)[1]
    sent = 0

    async def receive():
        nonlocal sent
        sent += 65_536
        assert sent < 2 * 1024 * 1024
        return {"type": "http.request", "body": bytes(65_536), "more_body": True}

    answers = []

    async def send(message):
        answers.append(message)

    headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer acme")]
    if announced:
        headers.append((b"content-length", str(1 << 30).encode()))
    scope = {"type": "http", "method": "POST", "path": "/v1/jobs", "headers": headers, "query_string": b""}
    await service(scope, receive, send)
    assert answers[0]["status"] == 413
    assert (sent == 0) is announced


# One source of every bound: what the description says is what the rule refuses.


def test_openapi_has_the_bounds_of_the_rules():
    schema = msgspec.json.schema_components([types.SubmitJob, types.SubmitBatchJob])[1]["SubmitJob"]["properties"]

    def schema_of(name):
        kinds = schema[name].get("anyOf", [schema[name]])
        return next(kind for kind in kinds if kind.get("type") != "null")

    assert (schema_of("priority")["minimum"], schema_of("priority")["maximum"]) == (
        bounds.MIN_PRIORITY,
        bounds.MAX_PRIORITY,
    )
    assert (schema_of("max_attempts")["minimum"], schema_of("max_attempts")["maximum"]) == (1, bounds.MAX_ATTEMPTS)
    assert (schema_of("cost")["minimum"], schema_of("cost")["maximum"]) == (1, bounds.MAX_COST)
    assert schema_of("tags")["maxItems"] == bounds.MAX_TAGS
    assert schema_of("tags")["items"]["maxLength"] == bounds.MAX_TAG_LENGTH
    assert schema_of("concurrency_key")["maxLength"] == bounds.MAX_KEY_LENGTH
    for name in ("type", "queue"):
        assert schema_of(name)["maxLength"] == bounds.MAX_NAME_LENGTH
        assert schema_of(name)["pattern"] == f"^{bounds.NAME_PATTERN}$"
    retry = msgspec.json.schema_components([types.RetryShape])[1]["RetryShape"]["properties"]
    assert retry["delays"]["maxItems"] == bounds.MAX_RETRY_DELAYS


@pytest.mark.parametrize("what", BOMBS)
def test_a_json_bomb_uses_little_memory(what):
    """F35: what is refused is refused before it grows."""
    tracemalloc.start()
    try:
        with contextlib.suppress(Invalid):
            read(BOMBS[what], types.SubmitJob)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 1024 * 1024
