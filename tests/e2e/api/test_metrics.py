"""Prometheus metrics: the same on every node, cheap to read, and as documented."""

import re

import httpx2
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from holdfast.api.server.server import bind
from holdfast.cli.commands.serve import listen
from holdfast.engine.changes.rollups import update_rollups
from holdfast.errors import Misconfigured
from holdfast.model.change_log import BUCKET_GROWTH, bucket_of
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.time import Duration
from holdfast.telemetry.events import JobsReaped, LoopFailed
from holdfast.telemetry.metric_names import METRICS
from holdfast.telemetry.metrics import (
    MAX_LABEL_NAMES,
    OTHER_LABEL,
    InstallationStats,
    JobCounters,
    JobGauge,
    RequestMetrics,
    render_page,
)
from tests.e2e.api.conftest import problem
from tests.support.builders import enter, reap_all, report, take


async def scraped(client):
    """All samples by name and labels; every line must be one that Prometheus takes."""
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(answer.text))
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def at(name, **labels):
    return name, tuple(sorted(labels.items()))


async def work(served, admin):
    """Four jobs of one type: one succeeds, one dies, one runs, one waits."""
    jobs = [{"type": "send", "queue": "mail", "max_attempts": 1} for _ in range(4)]
    assert (await admin.post("/v1/jobs/batch", json={"jobs": jobs})).status_code == 201
    store = served.engine.store
    held = await take(store, await enter(store), Lane("mail", "default", 0), limit=3)
    await report(store, held[0], Succeeded())
    await report(store, held[1], Failed(Failure(kind="SmtpError", message="421")))


async def test_jobs_are_counted_for_the_installation(served, ticking, ticker, admin):
    """The same from a node that did nothing of it, before the feed was folded and after."""
    await work(served, admin)
    place = {"queue": "mail", "type": "send"}
    for folded in (False, True):
        if folded:
            await update_rollups(served.engine.store)
        ticker.advance(2)
        found = await scraped(await ticking.client())
        assert found[at("holdfast_jobs", **place, status="ready")] == 1
        assert found[at("holdfast_jobs", **place, status="running")] == 1
        assert found[at("holdfast_jobs", **place, status="dead")] == 1
        assert found[at("holdfast_queue_depth", queue="mail")] == 1
        assert found[at("holdfast_queue_oldest_wait_seconds", queue="mail")] >= 0
        assert found[at("holdfast_jobs_submitted_total", **place)] == 4
        assert found[at("holdfast_attempts_started_total", **place)] == 3
        assert found[at("holdfast_attempts_failed_total", **place)] == 1
        assert found[at("holdfast_jobs_finished_total", **place, status="succeeded")] == 1
        assert found[at("holdfast_jobs_finished_total", **place, status="dead")] == 1
        assert found[at("holdfast_job_wait_seconds_count", type="send")] == 2
        assert found[at("holdfast_job_wait_seconds_bucket", type="send", le="+Inf")] == 2
        assert found[at("holdfast_workers")] == 1


async def test_lost_leases_are_counted_for_the_installation(served, ticking, ticker, admin):
    """S22: whether a worker or a node reaped the lease; a worker that left in an orderly way is not lost."""
    jobs = [{"type": "send", "queue": "mail"} for _ in range(3)]
    assert (await admin.post("/v1/jobs/batch", json={"jobs": jobs})).status_code == 201
    store = served.engine.store
    lost, left = await enter(store), await enter(store)
    assert len(await take(store, lost, Lane("mail", "default", 0), limit=2)) == 2
    assert await served.engine.workers.depart(left)
    assert await served.engine.workers.renew(lost, Duration(0))
    assert await reap_all(store) == 2
    place = {"queue": "mail", "type": "send"}
    for folded in (False, True):
        if folded:
            await update_rollups(store)
        ticker.advance(2)
        found = await scraped(await ticking.client())
        assert found[at("holdfast_jobs_reaped_total", **place)] == 2
        assert found[at("holdfast_workers_lost_total")] == 1
        assert found[at("holdfast_node_jobs_reaped_total")] == 0


async def test_counters_only_grow(served, ticking, ticker, admin):
    """They do not shrink when the jobs behind them are deleted."""
    totals = []
    for _ in range(3):
        await work(served, admin)
        await update_rollups(served.engine.store)
        await served.engine.store.run(lambda tx: tx.prune_changes(10**9, 0, 10**6))
        ticker.advance(2)
        found = await scraped(await ticking.client())
        totals.append(found[at("holdfast_jobs_submitted_total", queue="mail", type="send")])
    assert totals == [4, 8, 12]


@pytest.mark.databases("sqlite")
async def test_a_node_counts_its_responses(served, admin):
    for path in ("/v1/jobs", "/v1/jobs", "/v1/jobs/nonsense", "/nowhere", "/elsewhere"):
        await admin.get(path)
    served.api.service.events(JobsReaped(jobs=3))
    served.api.service.events(LoopFailed(loop="reap", error="x", failures=1))
    found = await scraped(admin)
    name = "holdfast_node_http_requests_total"
    assert found[at(name, method="GET", route="/v1/jobs", status="200")] == 2
    assert found[at(name, method="GET", route="/v1/jobs/{id}", status="404")] == 1
    assert found[at(name, method="GET", route=OTHER_LABEL, status="404")] == 2
    assert found[at("holdfast_node_http_request_seconds_count", method="GET", route="/v1/jobs")] == 2
    assert found[at("holdfast_node_jobs_reaped_total")] == 3
    assert found[at("holdfast_node_housekeeping_failures_total", loop="reap")] == 1
    assert found[at("holdfast_node_streams")] == 0
    assert found[at("holdfast_node_pool_connections_max")] == 2
    assert any(name == "holdfast_node_process_resident_memory_bytes" for name, _ in found)


async def test_events_of_a_node_are_counted(served):
    served.engine._emit(JobsReaped(jobs=2))
    assert found_in(served.api.service.events)["holdfast_node_jobs_reaped_total"] == 2


def found_in(source):
    return {sample.name: sample.value for family in source.collect() for sample in family.samples}


@pytest.mark.databases("sqlite")
async def test_the_database_is_read_at_most_once_a_second(ticking, ticker, monkeypatch):
    client = await ticking.client()
    asked = []
    ask = ticking.api.service.scrapes._ask

    async def counted():
        asked.append(1)
        return await ask()

    monkeypatch.setattr(ticking.api.service.scrapes, "_ask", counted)
    for _ in range(5):
        await client.get("/metrics")
    assert len(asked) == 1
    ticker.advance(1)
    await client.get("/metrics")
    assert len(asked) == 2


@pytest.mark.databases("sqlite")
async def test_every_metric_is_documented(served, admin):
    await work(served, admin)
    served.api.service.events(LoopFailed(loop="reap", error="x", failures=1))
    page = (await admin.get("/metrics")).text
    told = set(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))
    assert {name for name in told if not name.startswith("holdfast_node_process_")} == {each.name for each in METRICS}
    for each in METRICS:
        assert each.name.startswith("holdfast_")
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert "tenant" not in each.labels


def test_names_beyond_the_maximum_are_reported_as_other():
    gauges = [JobGauge(f"q{n}", "send", "ready", 1, 1.0) for n in range(MAX_LABEL_NAMES + 50)]
    totals = [JobCounters(f"q{n}", "send", 1, 1, 0, {}, {}, {}) for n in range(MAX_LABEL_NAMES + 50)]
    page = render_page([InstallationStats(gauges, totals, 0, 0).collect()]).decode()
    assert len(re.findall(r"^holdfast_queue_depth\{", page, re.MULTILINE)) == MAX_LABEL_NAMES + 1
    assert f'holdfast_queue_depth{{queue="{OTHER_LABEL}"}} 50.0' in page


def test_histogram_counts_are_exact():
    """Each bound is one of a bucket that is kept: what is below it is below it."""
    spans = [900, 1_100, 10_000, 2_000_000, 10**12]
    histogram = {bucket_of(span): 1 for span in spans}
    page = render_page(
        [InstallationStats([], [JobCounters("q", "t", 0, 0, 0, {}, histogram, {})], 0, 0).collect()]
    ).decode()
    found = re.findall(r'^holdfast_job_wait_seconds_bucket\{le="([^"]+)",type="t"\} (\S+)', page, re.MULTILINE)
    for bound, count in found:
        below = sum(BUCKET_GROWTH ** (bucket_of(span) + 1) / 1e6 <= float(bound) * 1.001 for span in spans)
        assert float(count) == (len(spans) if bound == "+Inf" else below), bound


def test_a_request_is_counted_in_the_right_bucket():
    requests = RequestMetrics()
    for seconds in (0.0005, 0.001, 0.0011, 100.0):
        requests.record("GET", "/x", 200, seconds)
    samples = {
        sample.labels.get("le"): sample.value
        for family in requests.collect()
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    assert (samples["0.001"], samples["0.0025"], samples["60"], samples["+Inf"]) == (2, 3, 3, 4)


async def test_a_key_with_the_metrics_scope_reads_metrics_and_nothing_else(served, admin):
    """T38: a scraper needs no administrator's key."""
    scraper = await served.client(await served.key("acme", "metrics"))
    assert await scraped(scraper)
    for path in ("/v1/jobs", "/v1/keys", "/v1/stats"):
        problem(await scraper.get(path), 403, "forbidden")
    other = await served.client(await served.key("acme", "submit", "read", "cancel", "worker"))
    problem(await other.get("/metrics"), 403, "forbidden")


@pytest.mark.databases("sqlite")
async def test_the_private_port_has_metrics_and_health_without_a_key_and_no_other_route(served, settings):
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    chosen = replace(settings, port=0, metrics_port=port)
    async with listen(chosen, served.api, None) as url, httpx2.AsyncClient() as client:
        private = f"http://127.0.0.1:{port}"
        assert "holdfast_jobs" in (await client.get(f"{private}/metrics")).text
        assert [(await client.get(private + path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]
        for path in ("/", "/v1/jobs", "/v1/keys", "/docs"):
            problem(await client.get(private + path), 404, "no_such_route")
        problem(await client.get(f"{url}/metrics"), 401, "unauthorized")


@pytest.mark.databases("sqlite")
async def test_a_private_port_that_is_taken_is_named(served, settings):
    with bind("127.0.0.1", 0) as taken:
        chosen = replace(settings, port=0, metrics_port=taken.getsockname()[1])
        with pytest.raises(Misconfigured, match="HOLDFAST_METRICS_PORT: cannot listen on "):
            async with listen(chosen, served.api, None):
                pass
