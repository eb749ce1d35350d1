"""The connection to the database breaks at the commit of a submission: responses name what is stored."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest

from holdfast.client import AsyncClient
from holdfast.compose import build_api, open_engine
from holdfast.config import Settings
from holdfast.model.job import JobFilter, JobSpec, Page
from tests.support.commit_proxy import commit_proxy
from tests.support.service_thread import run_service

ADMIN = "an-admin-key-for-tests-only-4711"
TYPE = "cut_here"
COMMIT = rb"COMMIT(?!TED)"

pytestmark = [pytest.mark.databases("postgres", "mysql"), pytest.mark.parametrize("when", ["before", "after"])]


@asynccontextmanager
async def node(database_url):
    """Yield a proxy, an engine that reaches the database through it, and a client of its HTTP service."""
    async with commit_proxy(database_url) as (proxy, url):
        settings = Settings(database_url=url, admin_key=ADMIN)
        engine = await open_engine(settings)
        now = engine.submitter.limited.monotonic()
        engine.submitter.limited.monotonic = lambda: now  # no refresh meanwhile
        transport = httpx2.ASGITransport(build_api(settings, engine))
        headers = {"authorization": f"Bearer {ADMIN}", "holdfast-tenant": "acme"}
        try:
            async with httpx2.AsyncClient(transport=transport, base_url="http://node", headers=headers) as client:
                yield proxy, engine, client
        finally:
            await engine.aclose()


@asynccontextmanager
async def node_in_thread(url):
    """Run a node in a thread; this loop, where the proxy runs, must not wait for it."""
    running = run_service(url)
    service = await asyncio.to_thread(running.__enter__)
    try:
        yield service
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


async def stored_ids(store):
    return {str(job.id) for job in await store.read(lambda tx: tx.find(JobFilter(), Page(100)))}


def body(number, key=None):
    job = {"type": TYPE, "payload": {"n": number}}
    return job if key is None else {**job, "idempotency_key": f"{key}-{number}"}


async def test_the_response_to_a_keyed_submission_has_the_stored_id(store, database_url, when):
    """S2: a repeat returns the same id."""
    async with node(database_url) as (proxy, _, client):
        proxy.cut(COMMIT, when)
        first = await client.post("/v1/jobs", json=body(1), headers={"idempotency-key": "order-1"})
        assert (first.status_code, proxy.cuts) == (201, 1), first.text
        assert {first.json()["id"]} == await stored_ids(store)
        again = await client.post("/v1/jobs", json=body(1), headers={"idempotency-key": "order-1"})
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        assert again.json()["created_at"] == first.json()["created_at"]


async def test_the_response_to_a_submission_without_key_names_a_stored_job_or_says_unknown(store, database_url, when):
    """S2"""
    async with node(database_url) as (proxy, _, client):
        proxy.cut(TYPE.encode(), when)
        response = await client.post("/v1/jobs", json=body(1))
        assert proxy.cuts == 1
        stored = await stored_ids(store)
        if when == "after":
            assert (response.status_code, {response.json().get("id")}) == (201, stored), response.text
        else:
            assert (response.status_code, response.json()["code"], stored) == (503, "outcome_unknown", set())


async def test_the_response_to_a_keyed_batch_has_the_stored_ids(store, database_url, when):
    """S2, F06: one of the jobs existed before, and is the only one that is replayed."""
    async with node(database_url) as (proxy, _, client):
        (old,) = (await client.post("/v1/jobs/batch", json={"jobs": [body(0, "order")]})).json()["items"]
        proxy.cut(COMMIT, when)
        response = await client.post("/v1/jobs/batch", json={"jobs": [body(n, "order") for n in range(5)]})
        assert (response.status_code, proxy.cuts) == (201, 1), response.text
        jobs = response.json()["items"]
        assert {job["id"] for job in jobs} == await stored_ids(store)
        assert [job["replayed"] for job in jobs] == [True, False, False, False, False]
        assert jobs[0]["id"] == old["id"]
        again = await client.post("/v1/jobs/batch", json={"jobs": [body(n, "order") for n in range(5)]})
        assert [job["id"] for job in again.json()["items"]] == [job["id"] for job in jobs]


async def test_the_response_to_a_batch_without_keys_names_stored_jobs_or_says_unknown(store, database_url, when):
    """S2, F06"""
    async with node(database_url) as (proxy, _, client):
        proxy.cut(TYPE.encode(), when)
        response = await client.post("/v1/jobs/batch", json={"jobs": [body(n) for n in range(5)]})
        assert proxy.cuts == 1
        stored = await stored_ids(store)
        if when == "after":
            assert response.status_code == 201, response.text
            assert {job["id"] for job in response.json()["items"]} == stored
            assert len(stored) == 5
        else:
            assert (response.status_code, response.json()["code"], stored) == (503, "outcome_unknown", set())


async def test_a_client_gets_the_stored_ids(store, database_url, when):
    """S2: single and batch, through the Python client, which adds keys of its own."""
    async with commit_proxy(database_url) as (proxy, url):
        async with node_in_thread(url) as service, AsyncClient(service.url, service.key) as client:
            proxy.cut(COMMIT, when)
            job = await client.submit(TYPE, {"n": 1}, tenant="acme")
            proxy.cut(COMMIT, when)
            receipts = await client.submit_many([{"type": TYPE, "payload": {"n": n}} for n in range(3)], tenant="acme")
        ids = {job.id, *(receipt.id for receipt in receipts)}
        assert (len(ids), ids) == (4, await stored_ids(store))


async def test_an_application_gets_the_stored_ids(store, database_url, when):
    """S2: single and batch, with and without keys, without the service."""
    async with node(database_url) as (proxy, engine, _):
        proxy.cut(COMMIT, when)
        receipts = [await engine.jobs.submit(JobSpec(type=TYPE, payload=1, idempotency_key="a"))]
        proxy.cut(COMMIT, when)
        receipts += await engine.jobs.submit_many(
            [JobSpec(type=TYPE, payload=n, idempotency_key=f"b{n}") for n in range(3)]
        )
        assert proxy.cuts == 2
        assert not any(receipt.replayed for receipt in receipts)
        assert {str(receipt.id) for receipt in receipts} == await stored_ids(store)
        assert len(receipts) == 4
