"""Submissions while a table is locked: answered within seconds, and nothing is stored."""

import asyncio

from holdfast.model.access import Quotas
from holdfast.model.job import JobFilter, Page
from holdfast.store.console import dialect_of
from tests.e2e.api.api_users import person
from tests.e2e.api.conftest import problem
from tests.support.clock import Console

LOCK = {
    "postgres": ["BEGIN", "LOCK TABLE holdfast_live IN ACCESS EXCLUSIVE MODE"],
    "mysql": ["LOCK TABLES holdfast_live WRITE"],
    "sqlite": ["BEGIN IMMEDIATE"],
}
UNLOCK = {"postgres": "ROLLBACK", "mysql": "UNLOCK TABLES", "sqlite": "ROLLBACK"}


async def test_submissions_to_a_locked_table_get_retry_after_and_store_nothing(served, database_url):
    """F21: single, keyed and batched ones, of tenants with and without quotas; the lock outlasts every response."""
    dialect = dialect_of(database_url)
    await served.engine.store.run(lambda tx: tx.add_tenant("limited", Quotas(rate=1_000)))
    client, limited = await person(served, "acme"), await person(served, "limited")
    assert (await client.post("/v1/jobs", json={"type": "before"})).status_code == 201
    assert (await limited.post("/v1/jobs", json={"type": "before"})).status_code == 201
    async with Console(database_url) as holder:
        for statement in LOCK[dialect]:
            await holder.run(statement)
        answers = await asyncio.gather(
            *(
                request
                for caller in (client, limited)
                for request in (
                    *(caller.post("/v1/jobs", json={"type": "x"}) for _ in range(5)),
                    caller.post("/v1/jobs", json={"type": "x"}, headers={"Idempotency-Key": "once"}),
                    caller.post("/v1/jobs/batch", json={"jobs": [{"type": "x"}] * 10}),
                )
            )
        )
        await holder.run(UNLOCK[dialect])
    for answer in answers:
        problem(answer, 503, answer.json()["code"])
        assert answer.json()["code"] in {"contention", "unavailable"}, "nothing was stored, and the response says so"
        assert int(answer.headers["retry-after"]) >= 1
    stored = await served.engine.store.read(lambda tx: tx.find(JobFilter(), Page(100)))
    assert [job.type for job in stored] == ["before", "before"]
    repeated = await client.post("/v1/jobs", json={"type": "x"}, headers={"Idempotency-Key": "once"})
    assert (repeated.status_code, repeated.headers.get("idempotent-replayed")) == (201, None)
