"""Payloads of known job types are checked when they are submitted over HTTP."""

import pytest
from msgspec.structs import replace

from holdfast.compose import build_api
from holdfast.engine.submitting import payload_schemas
from holdfast.model.job_type import JobType
from tests.e2e.api.conftest import problem
from tests.support.builders import a_worker

SCHEMA = '{"type":"object","properties":{"user_id":{"type":"integer"}},"required":["user_id"]}'
OTHER_SCHEMA = SCHEMA.replace("integer", "string")


async def describe(served, schema=SCHEMA):
    worker = a_worker(types=("welcome",))
    await served.engine.workers.register(worker, 60_000_000, [JobType("welcome", schema=schema)])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Every submission reads changed schemas."""
    monkeypatch.setattr(payload_schemas, "REFRESH_INTERVAL_S", 0.0)


async def test_a_payload_that_does_not_match_is_refused_and_the_field_named(served, admin):
    await describe(served)
    fault = problem(
        await admin.post("/v1/jobs", json={"type": "welcome", "payload": {"user_id": "42"}}), 422, "invalid"
    )
    assert fault["pointer"] == "/payload/user_id"
    assert fault["detail"].startswith("payload.user_id: expected a whole number, got a text")
    assert (await admin.post("/v1/jobs", json={"type": "welcome", "payload": {"user_id": 42}})).status_code == 201
    assert (await admin.post("/v1/jobs", json={"type": "unknown", "payload": {"user_id": "42"}})).status_code == 201


async def test_a_batch_names_every_payload_that_does_not_match(served, admin):
    await describe(served)
    jobs = [{"type": "welcome", "payload": {"user_id": value}} for value in (1, "2", 3, None)]
    fault = problem(await admin.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "invalid_batch")
    assert [(each["index"], each["pointer"]) for each in fault["errors"]] == [
        (1, "/payload/user_id"),
        (3, "/payload/user_id"),
    ]
    assert (await admin.get("/v1/jobs")).json()["items"] == []


async def test_a_changed_schema_applies_to_later_submissions(served, admin):
    await describe(served)
    job = {"type": "welcome", "payload": {"user_id": "42"}}
    problem(await admin.post("/v1/jobs", json=job), 422, "invalid")
    await describe(served, OTHER_SCHEMA)
    assert (await admin.post("/v1/jobs", json=job)).status_code == 201


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("mode", ["warn", "ignore"])
async def test_a_setting_accepts_payloads_that_do_not_match(settings, served, admin, caplog, mode):
    await describe(served)
    build_api(replace(settings, payload_check=mode), served.engine)
    for _ in range(2):
        answer = await admin.post("/v1/jobs", json={"type": "welcome", "payload": {}})
        assert answer.status_code == 201
    said = [record.getMessage() for record in caplog.records if record.name == "holdfast.submit"]
    assert len(said) == (mode == "warn")
    assert all("payload.user_id: it is missing" in line for line in said)


@pytest.mark.databases("sqlite")
async def test_submissions_within_the_interval_read_the_schemas_once(served, admin, monkeypatch):
    await describe(served)
    monkeypatch.setattr(payload_schemas, "REFRESH_INTERVAL_S", 3_600.0)
    reads = []
    original = served.engine.store.read

    async def read(work):
        if getattr(work, "func", None) is payload_schemas._read_changes:
            reads.append(work)
        return await original(work)

    monkeypatch.setattr(served.engine.store, "read", read)
    for _ in range(5):
        assert (await admin.post("/v1/jobs", json={"type": "welcome", "payload": {"user_id": 1}})).status_code == 201
    assert len(reads) == 1
