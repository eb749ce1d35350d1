"""Sizes of responses: pages, groups and claims end by size, and lists of names are paged."""

import pytest

from holdfast.engine.changes import query_cache
from holdfast.engine.jobs import queries
from holdfast.engine.remote_workers import MAX_CLAIM_BYTES
from holdfast.model.job import JobSpec
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure
from tests.support.builders import enter, put, report, some_jobs, take

LARGE = "x" * 60_000
COUNT = 40
"""Jobs of 240 KB: together 9.6 MB, which is more than a page or a claim may have."""


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch):
    """Statistics are not cached, so that a test sees at once what it did."""
    monkeypatch.setattr(query_cache, "CACHE_S", -1.0)
    monkeypatch.setattr(query_cache, "COST_FACTOR", 0)


async def submit_large(served, count=COUNT):
    specs = [JobSpec("send", {str(part): LARGE for part in range(4)}, tenant="acme") for _ in range(count)]
    return [str(receipt.id) for receipt in await served.engine.jobs.submit_many(specs)]


async def all_pages(client, path, **params):
    """Return the items of each page; assert that no page is much larger than the bound."""
    pages, cursor = [], None
    while cursor is not None or not pages:
        response = await client.get(path, params=params | ({} if cursor is None else {"cursor": cursor}))
        assert response.status_code == 200, response.text
        assert len(response.content) <= queries.MAX_PAGE_BYTES + 300_000
        page = response.json()
        pages.append(page.get("items") or page.get("groups"))
        cursor = page["next_cursor"]
    return pages


async def test_a_page_of_jobs_ends_by_size_and_the_cursor_reaches_the_rest(served):
    """F35: 200 large jobs would be a response of 50 MB."""
    ids = await submit_large(served)
    client = await served.client(await served.key())
    pages = await all_pages(client, "/v1/jobs", limit=200)
    assert len(pages) > 5
    assert [job["id"] for page in pages for job in page] == sorted(ids, reverse=True)


async def test_a_page_of_small_jobs_ends_by_number(served):
    await served.engine.jobs.submit_many([JobSpec("send", {}, tenant="acme") for _ in range(130)])
    client = await served.client(await served.key())
    assert [len(page) for page in await all_pages(client, "/v1/jobs", limit=60)] == [60, 60, 10]


async def test_pages_and_groups_of_dead_letters_end_by_size(served):
    """F35: a group shows its newest job."""
    ids, engine = await submit_large(served, 12), served.engine
    worker = await enter(engine.store)
    held = await take(engine.store, worker, Lane("default", "acme", 0), limit=12)
    words = ("alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi")
    for job, word in zip(held, words, strict=True):
        await report(engine.store, job, Failed(Failure(kind=f"{word.title()}Error", message=word), retryable=False))
    client = await served.client(await served.key())
    pages = await all_pages(client, "/v1/dead", limit=200)
    assert len(pages) > 1
    assert [job["id"] for page in pages for job in page] == sorted(ids, reverse=True)
    groups = await all_pages(client, "/v1/dead", group="fingerprint", limit=200)
    assert len(groups) > 1
    assert sorted(group["newest"]["id"] for page in groups for group in page) == sorted(ids)


async def test_a_claim_ends_by_size_and_releases_the_other_jobs(served):
    """F35: a claim of 500 large jobs would be a response of 120 MB."""
    ids = await submit_large(served)
    http = await served.client(await served.key("acme", "worker"))
    worker = (await http.post("/v1/leases", json={"limit": 0, "lease": 60})).json()["worker"]
    claimed = []
    while len(claimed) < COUNT:
        response = await http.post("/v1/leases", json={"worker": worker, "queues": ["default"], "limit": 500})
        assert len(response.content) <= MAX_CLAIM_BYTES + 300_000
        jobs = response.json()["jobs"]
        assert jobs
        claimed += jobs
    assert sorted(job["id"] for job in claimed) == sorted(ids)
    assert {job["attempts"] for job in claimed} == {1}


async def test_queues_are_listed_page_by_page(served):
    """F35: a tenant with many queues does not make the list large."""
    names = [f"queue-{number:03}" for number in range(25)]
    await put(served.engine.store, *[job for name in names for job in some_jobs(1, tenant="acme", queue=name)])
    client = await served.client(await served.key())
    pages = await all_pages(client, "/v1/queues", limit=10)
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [queue["name"] for page in pages for queue in page] == names
    assert {queue["statuses"]["ready"] for page in pages for queue in page} == {1}


async def test_counts_by_queue_and_type_are_listed_page_by_page(served):
    """F35: each name is on one page, and the totals are on every page."""
    jobs = [
        job
        for number in range(25)
        for job in some_jobs(1, tenant="acme", queue=f"queue-{number:03}", type=f"type-{number % 3}")
    ]
    await put(served.engine.store, *jobs)
    client = await served.client(await served.key())
    queues, types, cursor = [], [], ""
    while cursor is not None:
        page = (await client.get("/v1/stats", params={"limit": 10} | ({"cursor": cursor} if cursor else {}))).json()
        assert page["statuses"]["ready"] == 25
        assert max(len(page["queues"]), len(page["types"])) <= 10
        queues += page["queues"]
        types += page["types"]
        cursor = page["next_cursor"]
    assert [queue["name"] for queue in queues] == [f"queue-{number:03}" for number in range(25)]
    assert {each["name"]: each["statuses"]["ready"] for each in types} == {"type-0": 9, "type-1": 8, "type-2": 8}
