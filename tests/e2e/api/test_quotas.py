"""Limits over HTTP: how a refusal reads, and that sizes are refused before they are taken in."""

import json

import pytest

from holdfast.api.routing import MAX_BATCH_BODY_BYTES, MAX_BODY_BYTES
from holdfast.config import Settings
from holdfast.model.bounds import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, MAX_PAYLOAD_KEYS, MAX_STRING_LENGTH
from holdfast.model.job import JobFilter, Page
from holdfast.model.time import seconds
from tests.e2e.api.conftest import ADMIN, problem

JOB = {"type": "send"}


async def limited(served, **quotas):
    """A client of a tenant with limits, on a node that knows of them."""
    admin = await served.client()
    assert (await admin.post("/v1/tenants", json={"name": "acme", **quotas})).status_code == 201
    await served.engine.submitter.limited.refresh()
    return await served.client(await served.key("acme"))


async def stored(served):
    return await served.engine.jobs.find(JobFilter(), Page(1_000))


class TestRate:
    async def test_a_rejection_says_when_to_retry(self, served):
        """S15, T20"""
        client = await limited(served, rate=3, rate_window="1m")
        assert (await client.post("/v1/jobs", json={**JOB, "cost": 2})).status_code == 201
        for answer in (
            await client.post("/v1/jobs", json={**JOB, "cost": 2}),
            await client.post("/v1/jobs/batch", json={"jobs": [JOB, JOB]}),
        ):
            found = problem(answer, 429, "rate_limited")
            assert "cost of 3 in 60 s" in found["detail"]
            assert 1 <= int(answer.headers["retry-after"]) <= 62
        assert (await client.post("/v1/jobs", json=JOB)).status_code == 201
        assert len(await stored(served)) == 2

    async def test_a_request_above_the_quota_is_rejected_for_good(self, served):
        """S15"""
        client = await limited(served, rate=3)
        found = problem(await client.post("/v1/jobs", json={**JOB, "cost": 4}), 422, "over_limit")
        assert found["pointer"] == "/cost"
        answer = await client.post("/v1/jobs/batch", json={"jobs": [JOB] * 4})
        assert "can never be accepted" in problem(answer, 422, "over_limit")["detail"]
        assert "retry-after" not in answer.headers

    async def test_a_rejected_request_can_be_retried_with_its_key(self, served):
        """T40"""
        client = await limited(served, rate=1)
        await client.post("/v1/jobs", json=JOB)
        headers = {"idempotency-key": "order-1"}
        problem(await client.post("/v1/jobs", json=JOB, headers=headers), 429, "rate_limited")
        admin = await served.client()
        await admin.patch("/v1/tenants/acme", json={"rate": 2})
        assert (await client.post("/v1/jobs", json=JOB, headers=headers)).status_code == 201

    async def test_a_raised_quota_applies_at_once(self, served):
        client = await limited(served, rate=1)
        await client.post("/v1/jobs", json=JOB)
        problem(await client.post("/v1/jobs", json=JOB), 429, "rate_limited")
        admin = await served.client()
        await admin.patch("/v1/tenants/acme", json={"rate": None})
        assert (await client.post("/v1/jobs", json=JOB)).status_code == 201


class TestBacklog:
    async def test_a_full_backlog_has_its_own_code(self, served):
        """T20"""
        client = await limited(served, backlog=2, queue_backlog=1)
        assert (await client.post("/v1/jobs", json=JOB)).status_code == 201
        answer = await client.post("/v1/jobs", json=JOB)
        assert "'default'" in problem(answer, 429, "backlog_full")["detail"]
        assert answer.headers["retry-after"] == "1"
        assert (await client.post("/v1/jobs", json={**JOB, "queue": "b"})).status_code == 201
        problem(await client.post("/v1/jobs", json={**JOB, "queue": "c"}), 429, "backlog_full")


class TestDefaults:
    @pytest.fixture
    def settings(self, database_url):
        return Settings(
            database_url=database_url,
            admin_key=ADMIN,
            tenant_rate=2,
            tenant_rate_window=seconds(10),
            tenant_backlog=5,
            queue_backlog=1,
        )

    async def test_the_defaults_limit_tenants_that_were_never_created(self, served):
        admin = await served.client()
        for tenant in ("acme", "blue"):
            headers = {"holdfast-tenant": tenant}
            assert (await admin.post("/v1/jobs", json=JOB, headers=headers)).status_code == 201
            problem(await admin.post("/v1/jobs", json=JOB, headers=headers), 429, "backlog_full")
            other = {**JOB, "queue": "b"}
            assert (await admin.post("/v1/jobs", json=other, headers=headers)).status_code == 201
            answer = await admin.post("/v1/jobs", json=other, headers=headers)
            problem(answer, 429, "rate_limited")
            assert int(answer.headers["retry-after"]) <= 11


@pytest.mark.databases("sqlite")
class TestSizes:
    @pytest.mark.parametrize("path, most", [("/v1/jobs", MAX_BODY_BYTES), ("/v1/jobs/batch", MAX_BATCH_BODY_BYTES)])
    @pytest.mark.parametrize("announced", [None, 10, 1 << 30])
    async def test_an_oversized_body_is_rejected_while_it_is_read(self, served, path, most, announced):
        """F35, T17: no more is taken in than the limit and a piece, whatever its head says of it."""
        key = await served.key("acme")
        sent, answers = 0, []

        async def receive():
            nonlocal sent
            sent += 65_536
            return {"type": "http.request", "body": b"[" * 65_536, "more_body": True}

        async def send(message):
            answers.append(message)

        headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {key}".encode())]
        if announced is not None:
            headers.append((b"content-length", str(announced).encode()))
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        await served.api(scope, receive, send)
        assert answers[0]["status"] == 413
        assert sent <= (0 if announced == 1 << 30 else most + 65_536)

    @pytest.mark.parametrize("path, most", [("/v1/jobs", MAX_BODY_BYTES), ("/v1/jobs/batch", MAX_BATCH_BODY_BYTES)])
    async def test_a_body_of_the_maximum_size_is_accepted(self, served, path, most):
        """T17"""
        client = await served.client(await served.key("acme"))
        body = json.dumps(JOB if path == "/v1/jobs" else {"jobs": [JOB]}).encode()
        headers = {"content-type": "application/json"}
        assert (await client.post(path, content=body.ljust(most), headers=headers)).status_code == 201
        problem(await client.post(path, content=body.ljust(most + 1), headers=headers), 413, "too_large")

    @pytest.mark.parametrize(
        "payload, status",
        [
            (["x" * (MAX_PAYLOAD_BYTES // 5)] * 5, 413),
            ("x" * (MAX_STRING_LENGTH + 1), 422),
            ({f"{number}": 0 for number in range(MAX_PAYLOAD_KEYS + 1)}, 422),
            (json.loads("[" * (MAX_PAYLOAD_DEPTH + 1) + "]" * (MAX_PAYLOAD_DEPTH + 1)), 422),
        ],
        ids=["bytes", "text", "keys", "depth"],
    )
    async def test_an_oversized_payload_is_rejected(self, served, payload, status):
        """T17"""
        client = await served.client(await served.key("acme"))
        answer = await client.post("/v1/jobs", json={**JOB, "payload": payload})
        assert (answer.status_code, answer.json()["pointer"].split("/")[1]) == (status, "payload")
        assert (await client.post("/v1/jobs/batch", json={"jobs": [JOB, {**JOB, "payload": payload}]})).is_client_error
        assert await stored(served) == []
