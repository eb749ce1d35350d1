"""Requests as HTTP clients of other languages write them."""

import json

import pytest

from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.model.ids import new_worker_id, worker_name
from tests.e2e.api.conftest import problem
from tests.e2e.api.raw_http import JOB, post, running_server
from tests.e2e.api.test_worker_protocol import crew, submit

DOCUMENT = describe(ALL, "0")

UPGRADES = {
    "h2c, as Java and curl send it": (
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAEAAEAA",
    ),
    "in lower case": (b"connection: upgrade", b"upgrade: h2c"),
    "of several protocols": (b"Connection: Upgrade", b"Upgrade: h2c", b"Upgrade: websocket, TLS/1.2"),
}


@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("pieces", [1, 3, 40])
@pytest.mark.databases("sqlite")
async def test_a_request_that_offers_an_upgrade_keeps_its_body_and_its_connection(served, headers, pieces):
    async with running_server(served) as server:
        connection = await server.connect()
        for request in (post(JOB, *headers), post(JOB)):
            size = len(request) // pieces + 1
            await connection.send(*[request[at : at + size] for at in range(0, len(request), size)])
            status, _, body = await connection.response()
            assert (status, b'"type":"send"' in body) == (201, True), body


async def test_a_cancelled_job_ends_alone_and_a_lost_lease_ends_the_worker(served):
    """S7: a worker that obeys the codes keeps its other jobs after one of them was cancelled."""
    first, second = await submit(served, 2)
    acme = await crew(served)
    jobs = {job["id"]: {"id": job["id"], "fence": job["fence"]} for job in await acme.claim()}
    await served.engine.jobs.cancel([first], reason="by a person")
    for path, more in (("/steps", {"key": "a"}), ("/progress", {"fraction": 1})):
        problem(await acme.post(path, **jobs[str(first)], **more), 409, "job_not_held")
        assert (await acme.post(path, **jobs[str(second)], **more)).status_code == 204
    acme.worker = worker_name(new_worker_id())
    for path, more in (("/steps", {"key": "a"}), ("/progress", {"fraction": 1})):
        problem(await acme.post(path, **jobs[str(second)], **more), 409, "lease_lost")


async def test_an_oversized_result_is_truncated_and_the_other_outcomes_are_settled(served):
    """S7: the work of the job is done, as in a worker that uses the database."""
    large, small = await submit(served, 2)
    acme = await crew(served)
    await acme.claim()
    text = "x" * MAX_RESULT_BYTES
    outcomes = [
        {"id": str(large), "fence": 1, "outcome": "succeeded", "result": text},
        {"id": str(small), "fence": 1, "outcome": "succeeded", "result": 1},
    ]
    answer = await acme.post("/settle", outcomes=outcomes)
    assert (answer.status_code, answer.json()["refused"]) == (200, []), answer.text
    assert sorted(answer.json()["settled"]) == sorted([str(large), str(small)])
    stored = json.loads((await served.engine.jobs.get(large)).result)
    assert (stored["truncated"], stored["bytes"]) == (True, len(text) + 2)
    assert (await acme.post("/settle", outcomes=outcomes)).json() == answer.json()


async def test_an_invalid_outcome_is_refused_alone(served):
    ids = [str(each) for each in await submit(served, 4)]
    acme = await crew(served)
    await acme.claim()
    named = [{"id": each, "fence": 1} for each in ids]
    error = {"kind": "Boom"}
    outcomes = [
        named[0] | {"outcome": "failed", "error": error, "retry_in": "soon"},
        named[1] | {"outcome": "succeeded"},
        named[2] | {"outcome": "finished"},
        named[3] | {"outcome": "failed", "error": error, "colour": "red"},
    ]
    answer = (await acme.post("/settle", outcomes=outcomes)).json()
    assert answer["settled"] == [ids[1]]
    assert [(fault["index"], fault["code"]) for fault in answer["refused"]] == [
        (0, "invalid"),
        (2, "invalid"),
        (3, "invalid"),
    ]
    assert [fault["pointer"] for fault in answer["refused"]] == [
        "/outcomes/0/retry_in",
        "/outcomes/2/outcome",
        "/outcomes/3/colour",
    ]
    assert await acme.settle(named[2], "succeeded") == [ids[2]]
    problem(await acme.http.post("/v1/leases/settle", json={"worker": "me", "outcomes": []}), 422, "invalid")


EMPTY = {"nothing": b"", "a blank line": b"\r\n", "null": b"null", "an empty object": b"{}"}


@pytest.mark.parametrize("body", EMPTY.values(), ids=EMPTY)
@pytest.mark.databases("sqlite")
async def test_every_optional_body_may_be_empty(live, body):
    """Generated over the routes: those whose body has no required field."""
    (job,) = await submit(live)
    admin = await live.client()
    await admin.post("/v1/tenants", json={"name": "acme"})
    optional = [
        route for route in ALL
        if route.body is not None and not DOCUMENT["paths"][route.path][route.method.lower()]["requestBody"]["required"]
    ]  # fmt: skip
    assert {f"{route.method} {route.path}" for route in optional} >= {"POST /v1/jobs/{id}/cancel", "POST /v1/tokens"}
    for route in optional:
        path = route.path.format(id=job, name="acme")
        answer = await admin.request(route.method, path, content=body, headers={"content-type": "application/json"})
        expected = 409 if route.path == "/v1/tokens" else 200  # this node cannot sign tokens
        assert answer.status_code == expected, (route.path, answer.text)


@pytest.mark.parametrize("body", EMPTY.values(), ids=EMPTY)
@pytest.mark.databases("sqlite")
async def test_an_empty_body_that_lacks_a_field_names_the_field(served, body):
    admin = await served.client()
    answer = await admin.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    assert problem(answer, 422, "invalid")["pointer"] == "/type"


@pytest.mark.databases("sqlite")
async def test_an_integer_may_be_written_as_a_float(served):
    """JSON has one kind of number, and JSON Schema calls 1.0 an integer."""
    admin = await served.client()
    job = (await admin.post("/v1/jobs", json={"type": "send", "priority": 2.0, "payload": {"n": 1.0}})).json()
    assert (job["priority"], json.dumps(job["payload"])) == (2, '{"n": 1.0}')
    batch = [{"type": "send", "max_attempts": 3.0}, {"type": "send", "cost": 1.0, "delay": 0.5}]
    assert (await admin.post("/v1/jobs/batch", json={"jobs": batch})).status_code == 201
    for wrong in (2.5, 1e300, True, "2"):
        answer = await admin.post("/v1/jobs", json={"type": "send", "priority": wrong})
        assert problem(answer, 422, "invalid")["pointer"] == "/priority"

    (job_id,) = await submit(served)
    acme = await crew(served)
    (held,) = await acme.claim(limit=1.0)
    named = {"id": held["id"], "fence": float(held["fence"])}
    assert (await acme.post("/renew", held=[named])).json()["lost"] == []
    assert (await acme.post("/progress", **named, fraction=1)).status_code == 204
    assert await acme.settle(named, "succeeded", result=1.0) == [str(job_id)]
    assert (await served.engine.jobs.get(job_id)).result == b"1.0"


async def test_wrong_keys_from_an_address_do_not_stop_renewals_behind_it(served):
    """T18, S6: a worker behind the same proxy keeps its lease."""
    acme = await crew(served)
    stranger = await served.client("hf_0123456789abcdef_" + "0" * 64)
    answers = [(await stranger.post("/v1/leases/renew", json={"worker": acme.worker})).status_code for _ in range(12)]
    assert answers[-1] == 429
    assert (await acme.post("/renew")).status_code == 200


@pytest.mark.databases("sqlite")
async def test_other_requests_of_a_key_do_not_stop_its_renewals(served):
    """S6: a key that has all its requests in progress still renews the leases of its workers."""
    acme = await crew(served)
    slots = served.api.service.slots
    key = acme.http.headers["authorization"].split("_")[1]
    taken = await slots.acquire(key, slots._max_requests)
    assert taken == slots._max_requests
    assert (await acme.post("/renew")).status_code == 200
    slots.release(key, taken)


@pytest.mark.databases("sqlite")
async def test_a_result_with_many_parts_is_settled(served):
    (job,) = await submit(served)
    acme = await crew(served)
    await acme.claim()
    assert await acme.settle({"id": str(job), "fence": 1}, "succeeded", result=[[]] * 80_000) == [str(job)]


@pytest.mark.databases("sqlite")
async def test_a_chunked_body_arrives_after_the_offer_of_an_upgrade(served):
    chunks = b"10\r\n" + JOB + b"\r\n0\r\n\r\n"
    headers = (b"Transfer-Encoding: chunked", *UPGRADES["h2c, as Java and curl send it"])
    async with running_server(served) as server:
        connection = await server.connect()
        await connection.send(post(chunks, *headers, length=False))
        assert (await connection.response())[0] == 201
