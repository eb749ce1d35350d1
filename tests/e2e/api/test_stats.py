"""Counts, statistics, queues and workers over HTTP: correct, current, and isolated by tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.engine.changes import query_cache
from holdfast.engine.changes.rollups import update_rollups
from holdfast.model.job import JobSpec
from holdfast.model.state import Status
from holdfast.model.time import seconds
from tests.e2e.api.conftest import problem
from tests.support.builders import a_job, a_transition, enter, error, hold, move, put, report, some_jobs

if TYPE_CHECKING:
    import httpx2

    from holdfast.engine.engine import Engine
    from tests.e2e.api.conftest import Served

CANARY = "canary-of-b"


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are not kept: a test looks at once at what it did."""
    monkeypatch.setattr(query_cache, "CACHE_S", -1.0)
    monkeypatch.setattr(query_cache, "COST_FACTOR", 0)


async def some_work(engine: Engine) -> None:
    """Jobs of tenant a in queue q: 10 succeeded, 2 of them ran again, 1 dead, 1 cancelled; 3 ready, 2 scheduled."""
    store = engine.store
    jobs = await hold(store, await enter(store), 14, tenant="a", queue="q", type="t")
    await report(store, jobs[:10])
    await report(store, jobs[10:12], error())
    await move(store, a_transition(jobs[12], Status.DEAD), a_transition(jobs[13], Status.CANCELLED))
    await put(store, *some_jobs(3, tenant="a", queue="q", type="u"))
    await put(store, *some_jobs(2, tenant="a", queue="q", type="u", delay=seconds(600)))
    await put(store, *some_jobs(4, tenant=CANARY, queue=CANARY, type=CANARY))


async def get(client: httpx2.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


OF_A = {
    "blocked": 0, "scheduled": 2, "ready": 3, "running": 0, "retrying": 2, "succeeded": 10, "dead": 1, "cancelled": 1,
}  # fmt: skip


@pytest.mark.parametrize("folded", [False, True])
class TestStats:
    """Before the feed was folded into rollups, and after."""

    async def fill(self, served: Served, *, folded: bool) -> httpx2.AsyncClient:
        await some_work(served.engine)
        while folded and (await update_rollups(served.engine.store)).more:
            pass
        return await served.client(await served.key("a"))

    async def test_jobs_are_counted_by_status(self, served: Served, folded: bool) -> None:
        client = await self.fill(served, folded=folded)
        found = await get(client, "/v1/stats")

        assert found["statuses"] == OF_A
        assert [(each["name"], each["statuses"]) for each in found["queues"]] == [("q", OF_A)]
        assert {each["name"]: each["statuses"]["ready"] for each in found["types"]} == {"t": 0, "u": 3}

    async def test_a_window_is_summed_up(self, served: Served, folded: bool) -> None:
        client = await self.fill(served, folded=folded)
        for window in ("5m", "1h", "24h"):
            found = await get(client, f"/v1/analytics?window={window}")
            assert found["totals"] == {
                "submitted": 19, "started": 14, "succeeded": 10, "failed": 3, "dead": 1, "cancelled": 1,
            }  # fmt: skip
            assert found["failure_ratio"] == pytest.approx(3 / 13)
            assert all(found[which][part] > 0 for which in ("wait", "run") for part in ("p50", "p90", "p95", "p99"))
            assert found["rates"]["submitted"] > 0
        narrow = await get(client, "/v1/analytics?type=u")
        assert (narrow["totals"]["submitted"], narrow["failure_ratio"], narrow["run"]["p99"]) == (5, None, None)

    async def test_throughput_has_every_step(self, served: Served, folded: bool) -> None:
        client = await self.fill(served, folded=folded)
        found = await get(client, "/v1/analytics/throughput?window=10m")
        assert (found["step"], len(found["points"]) in (10, 11, 12)) == (60.0, True)
        assert sum(point["totals"]["succeeded"] for point in found["points"]) == 10
        for point in found["points"]:
            ended = point["totals"]["succeeded"] + point["totals"]["failed"] > 0
            assert [(point["run"][part] or 0) > 0 for part in ("p50", "p90", "p95", "p99")] == [ended] * 4
            assert (point["wait"]["p50"] is None) == (point["totals"]["started"] == 0)
        assert (await get(client, "/v1/analytics/throughput?window=24h"))["step"] == 3_600.0

    async def test_types_are_reported_separately(self, served: Served, folded: bool) -> None:
        client = await self.fill(served, folded=folded)
        found = await get(client, "/v1/analytics/types")
        assert [(each["type"], each["totals"]["submitted"]) for each in found["items"]] == [("t", 14), ("u", 5)]

    async def test_stats_contain_no_other_tenants_jobs(self, served: Served, folded: bool) -> None:
        """S23: not a byte of another tenant is in any answer; the administrator sees all."""
        client = await self.fill(served, folded=folded)
        paths = ("/v1/stats", "/v1/analytics", "/v1/analytics/throughput", "/v1/analytics/types", "/v1/queues")
        admin = await served.client()
        await served.engine.queues.pause(CANARY, reason=CANARY)
        await enter(served.engine.store, name=CANARY, host=CANARY)
        for path in (*paths, "/v1/workers"):
            assert CANARY not in (await client.get(path)).text
        for path in paths:
            problem(await client.get(f"{path}?tenant={CANARY}"), 403, "forbidden")
            assert (await admin.get(f"{path}?tenant={CANARY}")).status_code == 200
        assert (await get(admin, "/v1/stats"))["statuses"]["ready"] == 7
        assert (await get(admin, f"/v1/stats?tenant={CANARY}"))["statuses"]["ready"] == 4
        assert (await get(admin, f"/v1/analytics?tenant={CANARY}"))["totals"]["submitted"] == 4


async def test_a_window_has_a_minimum_and_a_maximum(admin: httpx2.AsyncClient) -> None:
    for window in ("1s", "91d", "nonsense", "-5"):
        assert problem(await admin.get(f"/v1/analytics?window={window}"), 422, "invalid")["pointer"] == "/window"


class TestQueues:
    async def test_queues_show_depth_oldest_wait_and_rates(self, served: Served) -> None:
        await some_work(served.engine)
        client = await served.client(await served.key("a"))
        (queue,) = (await get(client, "/v1/queues"))["items"]

        assert (queue["name"], queue["paused"], queue["statuses"]) == ("q", False, OF_A)
        assert queue["oldest_wait"] >= 0
        assert queue["rates"]["submitted"] > 0

    async def test_queues_are_paused_and_resumed(self, served: Served, admin: httpx2.AsyncClient) -> None:
        paused = (await admin.patch("/v1/queues/mail", json={"paused": True, "reason": "moving house"})).json()
        assert (paused["paused"], paused["reason"], paused["until"]) == (True, "moving house", None)
        assert [q["paused"] for q in (await get(admin, "/v1/queues"))["items"]] == [True]
        later = (await admin.patch("/v1/queues/mail", json={"until": "2099-01-01T00:00:00Z"})).json()
        assert (later["paused"], later["reason"], later["until"][:4]) == (True, "moving house", "2099")
        resumed = (await admin.patch("/v1/queues/mail", json={"paused": False})).json()
        assert (resumed["paused"], resumed["reason"], resumed["until"]) == (False, "", None)
        (known,) = (await served.engine.queues.all())[1]
        assert known.changed_by == "key:admin"

    async def test_tenants_see_that_a_queue_is_paused(self, served: Served) -> None:
        await put(served.engine.store, a_job("q", tenant="a"))
        await served.engine.queues.pause("q", reason="maintenance")
        (queue,) = (await get(await served.client(await served.key("a")), "/v1/queues"))["items"]
        assert (queue["paused"], queue["reason"]) == (True, "maintenance")

    @pytest.mark.parametrize(
        "body, pointer",
        [
            ({"max_running": -1}, "/max_running"),
            ({"rate": {"limit": 5, "per": "2d"}}, "/rate/per"),
            ({"rate": "5/s"}, "/rate"),
            ({"paused": True, "until": "2001-01-01T00:00:00Z"}, "/until"),
            ({"until": "2099-01-01T00:00:00Z"}, "/until"),
            ({"pause": True}, "/pause"),
        ],
    )
    async def test_invalid_changes_are_rejected(self, admin: httpx2.AsyncClient, body: Any, pointer: str) -> None:
        """Invalid changes are rejected, not ignored."""
        assert problem(await admin.patch("/v1/queues/mail", json=body), 422, "invalid")["pointer"] == pointer

    async def test_only_administrators_change_queues(self, served: Served, admin: httpx2.AsyncClient) -> None:
        client = await served.client(await served.key("a"))
        problem(await client.patch("/v1/queues/mail", json={"paused": True}), 403, "forbidden")
        assert (await admin.patch("/v1/queues/-bad", json={"paused": True})).status_code == 422


async def test_workers_show_the_jobs_they_hold(served: Served, admin: httpx2.AsyncClient) -> None:
    store = served.engine.store
    worker = await enter(store, queues="q,r", host="node-7", pid=99)
    await hold(store, worker, 2, tenant="a")
    await hold(store, worker, 3, tenant="b")
    (full,) = (await get(admin, "/v1/workers"))["items"]
    (seen,) = (await get(await served.client(await served.key("a")), "/v1/workers"))["items"]

    assert (full["host"], full["pid"], full["queues"], full["running"]) == ("node-7", 99, ["q", "r"], 5)
    assert (full["alive"], full["heartbeat_age"] >= 0, full["slots"]) == (True, True, 10)
    assert (seen["host"], seen["pid"], seen["running"]) == (None, None, 2)


async def test_concurrent_requests_share_one_query(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_cache, "CACHE_S", 3_600.0)
    await served.engine.jobs.submit(JobSpec("t", tenant="a"))
    client = await served.client(await served.key("a"))
    assert (await get(client, "/v1/stats"))["statuses"]["ready"] == 1
    await served.engine.jobs.submit(JobSpec("t", tenant="a"))
    assert (await get(client, "/v1/stats"))["statuses"]["ready"] == 1


async def test_fairness_is_for_administrators_and_shows_service_received(
    served: Served, admin: httpx2.AsyncClient
) -> None:
    """T02"""
    store = served.engine.store
    await report(store, await hold(store, await enter(store), 3, tenant="a", cost=2))
    answer = await get(admin, "/v1/analytics/fairness?window=10m")
    assert (answer["served"], answer["tenants"], answer["jain"]) == (6, 1, None)
    (share,) = answer["items"]
    assert (share["tenant"], share["received"], share["received_share"], share["ratio"]) == ("a", 6, 1.0, 1.0)
    problem(await admin.get("/v1/analytics/fairness?window=30d"), 422, "invalid")
    tenant = await served.client(await served.key("a", "read"))
    problem(await tenant.get("/v1/analytics/fairness"), 403, "forbidden")
