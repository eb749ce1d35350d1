"""Sizes of responses: pages, groups and claims end by size, and lists of names are paged."""

import pytest

from holdfast.engine import sized_pages
from holdfast.engine.changes import query_cache
from holdfast.engine.remote_workers import MAX_CLAIM_BYTES
from holdfast.model.ids import worker_name
from holdfast.model.job import HeldJob, JobSpec, RetryRule
from holdfast.model.job_type import JobType
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from tests.e2e.api.conftest import problem
from tests.support.builders import a_worker, enter, put, report, some_jobs, take

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
        assert len(response.content) <= sized_pages.MAX_PAGE_BYTES + 300_000
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


async def test_workers_are_listed_page_by_page_and_pages_end_by_size(served):
    """F35: a tenant may register many workers, each with a long list of queues."""
    queues = ",".join(f"queue-{number:03}-{'x' * 80}" for number in range(100))
    ids = []
    for _ in range(130):
        worker = a_worker(queues=queues, tenant="acme")
        await served.engine.workers.register(worker, seconds(60))
        ids.append(worker_name(worker.id))
    client = await served.client(await served.key())
    pages = await all_pages(client, "/v1/workers", limit=1_000)
    assert len(pages) > 1
    assert sorted(worker["id"] for page in pages for worker in page) == sorted(ids)
    assert [len(page) for page in await all_pages(client, "/v1/workers", limit=60)] == [60, 60, 10]
    assert problem(await client.get("/v1/workers", params={"cursor": "%%"}), 422, "invalid")["pointer"] == "/cursor"


async def test_a_page_of_job_types_ends_by_size(served):
    """F35: 1,000 schemas of 16 KiB would be a response of 16 MB."""
    described = [JobType(f"type-{n:03}", f'{{"title":"{"x" * 16_000}"}}', "mail") for n in range(150)]
    names = [job_type.type for job_type in described]
    await served.engine.workers.register(a_worker(types=tuple(names)), seconds(60), described)
    client = await served.client(await served.key())
    pages = await all_pages(client, "/v1/types", limit=1_000)
    assert len(pages) > 1
    assert [job_type["type"] for page in pages for job_type in page] == names


async def hold(served, **options):
    """Submit a job and claim it; return its client, the job as it is held, and its path."""
    receipt = await served.engine.jobs.submit(JobSpec("send", {}, tenant="acme", **options))
    worker = await enter(served.engine.store)
    (job,) = await take(served.engine.store, worker, Lane("default", "acme", 0))
    return await served.client(await served.key()), job, f"/v1/jobs/{receipt.id}"


async def test_a_job_with_large_steps_shows_some_and_says_how_to_get_the_others(served):
    """F35: a handler may record any number of steps, each with a result of 256 KiB."""
    client, job, path = await hold(served)
    held = HeldJob(job.id, job.fence, job.worker)
    result = b'"' + b"x" * 200_000 + b'"'
    keys = [f"schritt-ü-{number:02}" for number in range(20)]
    for key in keys:
        assert await served.engine.attempts.record_step(held, Step(key, StepState.DONE, result))
    response = await client.get(path)
    assert len(response.content) <= sized_pages.MAX_PAGE_BYTES + 300_000
    detail = response.json()
    (truncated,) = detail["truncated"]
    assert (truncated["field"], truncated["path"]) == ("steps", f"{path}/steps")
    rest = await client.get(truncated["path"], params={"cursor": truncated["next_cursor"]})
    shown = [step["key"] for step in detail["steps"]]
    assert 0 < len(shown) < 20
    assert shown + [step["key"] for step in rest.json()["items"]] == keys[: len(shown) + len(rest.json()["items"])]
    assert [step["key"] for page in await all_pages(client, f"{path}/steps") for step in page] == keys
    assert problem(await client.get(f"{path}/steps", params={"cursor": "%%"}), 422, "invalid")["pointer"] == "/cursor"
    problem(await (await served.client(await served.key("other"))).get(f"{path}/steps"), 404, "not_found")


async def test_a_job_with_large_attempts_shows_the_newest_and_says_how_to_get_the_others(served):
    """F35: a traceback of 8,000 characters may have 32,000 bytes, and a job keeps 50 attempts."""
    client, job, path = await hold(served, max_attempts=100, retry=RetryRule(base=0, cap=0))
    error = Failure(kind="Grave", message="x", traceback="\U0001f600" * 8_000)
    for number in range(30):
        if number:
            (job,) = await take(served.engine.store, job.worker, Lane("default", "acme", 0))
        await report(served.engine.store, job, Failed(error))
        await served.engine.store.single(lambda tx: tx.promote(100))
    detail = (await client.get(path)).json()
    (truncated,) = detail["truncated"]
    assert (truncated["field"], truncated["path"]) == ("attempt_log", f"{path}/attempts")
    shown = [attempt["attempt"] for attempt in detail["attempt_log"]]
    assert shown[-1] == 30
    assert 1 < len(shown) < 30
    rest = (await client.get(truncated["path"], params={"cursor": truncated["next_cursor"]})).json()["items"]
    assert rest[0]["attempt"] == shown[0] - 1
    pages = await all_pages(client, f"{path}/attempts")
    assert [attempt["attempt"] for page in pages for attempt in page] == list(range(30, 0, -1))
    problem(await client.get(f"{path}/attempts", params={"cursor": "eA"}), 422, "invalid")


async def test_a_small_job_is_shown_whole(served):
    client, _, path = await hold(served)
    assert (await client.get(path)).json()["truncated"] == []


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
