"""Applications and workers over HTTP, against a node on a real socket."""

import asyncio
import contextlib
import socket
import struct
import threading

import msgspec
import pytest
import uvloop

from holdfast import CONTEXT, Context, Holdfast
from holdfast.api.server.server import bind, serve
from holdfast.app.job_types import Unique
from holdfast.compose import build_api, is_node, open_engine, with_key
from holdfast.config import Settings, load
from holdfast.errors import (
    BacklogFull,
    Conflict,
    DuplicateJob,
    Forbidden,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    JobCancelled,
    JobFailed,
    JobNotHeld,
    LeaseLost,
    Misconfigured,
    NotFound,
    OutcomeUnknown,
    OverLimit,
    RateLimited,
    Rejected,
    Unauthorized,
    Unavailable,
    WaitTimeout,
)
from holdfast.model.access import Scope
from holdfast.model.ids import WorkerId, new_worker_id, worker_name
from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.job_type import JobType
from holdfast.model.lane import Lane
from holdfast.model.outcome import Crashed, Failed, Failure, Interrupted, Report, Succeeded
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, seconds
from holdfast.model.worker import LeaseStatus, WorkerInfo
from holdfast.sdk import calls, retry, worker_requests
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.remote import RemoteEngine
from holdfast.sdk.responses import Response, error_of
from holdfast.sdk.sender import Sender
from holdfast.sdk.worker_requests import Request
from holdfast.worker.running.runner import outcome_of
from tests.support.builders import enter, take
from tests.support.eventually import eventually
from tests.unit.policy.strategies import a_job
from tests.unit.sdk.scripted import REFUSED, RESET, ScriptedTransport, ok, problem


class Node:
    """Node that listens, its engine, and API keys for it."""

    def __init__(self, url, engine):
        self.url = url
        self.engine = engine

    async def key(self, tenant="acme", *scopes):
        wanted = frozenset(Scope(each) for each in scopes) or frozenset(Scope) - {Scope.ADMIN}
        return (await self.engine.access.create_key(tenant, "of a test", wanted))[1]


@pytest.fixture
async def node(database_url):
    settings = Settings(database_url=database_url)
    engine = await open_engine(settings)
    api = build_api(settings, engine)
    listening = bind("127.0.0.1", 0)
    up, stop = asyncio.Event(), asyncio.Event()
    answering = asyncio.create_task(serve(api, listening, stop=stop, ready=up.set))
    await up.wait()
    yield Node(f"http://127.0.0.1:{listening.getsockname()[1]}", engine)
    stop.set()
    await answering
    await engine.aclose()


@pytest.fixture
async def app(node):
    made = Holdfast(node.url, key=await node.key())
    yield made
    await made.aclose()


@pytest.fixture
async def remote(node):
    made = await RemoteEngine.open(node.url, await node.key())
    yield made
    await made.aclose()


async def at_work(remote, node, *, queues=("default",)):
    """Register a worker; return its id and its claims."""
    worker = WorkerInfo(new_worker_id(), "w", "here", 1, "1")
    await remote.workers.register(worker, seconds(60))
    return worker.id, remote.attempts.claims(worker.id, queues)


pytestmark = pytest.mark.databases("sqlite", "postgres")


async def test_a_job_is_enqueued_run_and_awaited_over_http(app, remote, node):
    @app.job(name="add")
    async def add(left: int, right: int) -> int:
        return left + right

    handle = await add.aenqueue(1, right=2)
    assert await handle.status() == "ready"
    job = await handle.job()
    assert (job.tenant, job.payload) == ("acme", {"left": 1, "right": 2})
    with pytest.raises(WaitTimeout):
        await handle.wait(timeout=0.01)
    _, claims = await at_work(remote, node)
    (job,) = await claims.claim(5)
    assert (job.id, job.fence, job.payload) == (handle.id, 1, b'{"left":1,"right":2}')
    assert await remote.attempts.settle_many([Report(job, Succeeded(b"3"))]) == {handle.id}
    assert await handle.wait(timeout=10) == 3
    assert await handle.cancel() is False


async def test_synchronous_code_enqueues_over_http(app, node):
    @app.job(name="add")
    def add(left: int) -> int:
        return left

    def plainly():
        first = add.enqueue(1)
        many = add.enqueue_many([{"left": 2}, (3,)])
        assert first.cancel("not wanted") is True
        assert [handle.status() for handle in (first, *many)] == ["cancelled", "ready", "ready"]
        with pytest.raises(JobCancelled, match="not wanted"):
            first.wait()
        assert first.retry() is True
        assert first.retry() is False
        app.close()

    await asyncio.to_thread(plainly)


async def test_a_dead_job_raises_its_error_over_http(app, remote, node):
    @app.job(name="add")
    async def add(left: int) -> int:
        return left

    handle = await add.options(max_attempts=1).aenqueue(1)
    _, claims = await at_work(remote, node)
    (job,) = await claims.claim(5)
    await remote.attempts.settle_many([Report(job, Failed(Failure("SmtpError", "421")))])
    with pytest.raises(JobFailed, match="SmtpError: 421"):
        await handle.wait(timeout=10)
    assert await handle.retry() is True


async def test_errors_are_the_same_as_those_of_a_local_engine(app, node):
    """P11, T01"""

    @app.job(name="add")
    async def add(left: int) -> int:
        return left

    keyed = add.options(idempotency_key="k-1")
    first, again = await keyed.aenqueue(1), await keyed.aenqueue(1)
    assert (first.id, first.replayed, again.replayed) == (again.id, False, True)
    with pytest.raises(IdempotencyMismatch):
        await keyed.aenqueue(2)
    unique = add.options(unique=Unique(on_conflict="reject"))
    one = await unique.aenqueue(7)
    with pytest.raises(DuplicateJob) as caught:
        await unique.aenqueue(7)
    assert caught.value.job_id == str(one.id)
    with pytest.raises(InvalidBatch) as refused:
        await unique.aenqueue_many([{"left": 8}, {"left": 7}])
    assert {index: (type(each), each.job_id) for index, each in refused.value.faults.items()} == {
        1: (DuplicateJob, str(one.id))
    }
    newest = await add.options(unique=Unique(on_conflict="replace")).aenqueue(7)
    assert (newest.replayed, (await one.job()).reason) == (False, f"replaced by job {newest.id}")
    unknown = app.ahandle("0190b5a2-7c3e-7000-8000-000000000000")
    with pytest.raises(NotFound):
        await unknown.job()
    assert await unknown.cancel() is False
    with pytest.raises(Forbidden):
        await add.options(tenant="other").aenqueue(1)
    with pytest.raises(Invalid, match="JSON cannot represent"):
        worker_requests.submit(JobSpec("t", {"x": [float("nan")]}))
    with pytest.raises(Invalid, match="several tenants"):
        worker_requests.submit_many([JobSpec("t", tenant="a"), JobSpec("t", tenant="b")])


async def test_a_rejected_batch_reports_every_fault(remote):
    with pytest.raises(InvalidBatch) as caught:
        await remote.jobs.submit_many([JobSpec("t"), JobSpec("t", priority=9_999), JobSpec("t", cost=0)])
    assert sorted(caught.value.faults) == [1, 2]
    assert await remote.jobs.submit_many([]) == []
    with pytest.raises(InvalidBatch):
        await remote.jobs.submit_many([JobSpec("t")] * 10_001)


async def test_every_option_of_a_submission_reaches_the_node(remote, node):
    spec = JobSpec(
        "t", {"a": [1, None, "é"]}, queue="mail", priority=7, delay=seconds(90), max_attempts=9,
        timeout=Duration(1_500_000), cost=3, tags=("x", "y"), concurrency_key="c", idempotency_key="k", tenant="acme",
    )  # fmt: skip
    by_http = await node.engine.jobs.get((await remote.jobs.submit(spec)).id)
    direct = await node.engine.jobs.get(
        (await node.engine.jobs.submit(msgspec.structs.replace(spec, idempotency_key="l"))).id
    )
    same = [name for name in by_http.__struct_fields__ if name not in ("id", "seq", "created_at", "scheduled_at")]
    assert {name: getattr(by_http, name) for name in same if name != "idempotency_key"} == {
        name: getattr(direct, name) for name in same if name != "idempotency_key"
    }


# A worker's port


async def test_a_worker_describes_its_types_and_receives_a_drain_request(remote, node):
    about = JobType("send", '{"title":"send"}', "mail", (), 3, Duration(1_500_000), 5, 2)
    worker = WorkerInfo(new_worker_id(), "w", "here", 1, "1", "mail:1", 1, types=("send",), node="n")
    await remote.workers.register(worker, seconds(60), [about])
    engine = node.engine
    (row,) = await engine.store.single(lambda tx: tx.types(None, ("", ""), 10))
    assert row.about == msgspec.structs.replace(about, queues=("mail",))
    assert await remote.workers.renew(worker.id, seconds(60), memory=9) is LeaseStatus.KEPT
    _, (row,) = await engine.workers.drain(worker.id)
    assert (row.info.node, row.memory, row.draining) == ("n", 9, True)
    assert await remote.workers.renew(worker.id, seconds(60)) is LeaseStatus.DRAINING


async def test_a_worker_of_another_tenant_or_without_a_lease_holds_nothing(remote, node):
    """P22, T38: the results are those of an engine for a worker that was reaped."""
    nobody = new_worker_id()
    assert await remote.workers.renew(nobody, seconds(10)) is LeaseStatus.LOST
    assert await remote.attempts.held_by(nobody, 10) == []
    held = HeldJob(a_job().id, 1, nobody)
    assert await remote.attempts.lost([held]) == {held.id}
    assert await remote.attempts.settle_many([Report(a_job(worker=nobody), Succeeded())]) == set()
    assert await remote.attempts.record_step(held, Step("a", StepState.DONE, b"1")) is False
    assert await remote.attempts.save_progress(held, b'{"fraction":0.5}') is False
    assert await remote.workers.depart(nobody) is True
    with pytest.raises(LeaseLost):
        await remote.attempts.steps_of(held)
    with pytest.raises(LeaseLost):
        await remote.attempts.claims(nobody, ["default"]).claim(1)


async def test_a_supervisor_can_release_the_jobs_of_its_worker(remote, node):
    """F01, F04: a supervisor knows the jobs of a dead child only from the node."""
    ids = {(await remote.jobs.submit(JobSpec("t", tenant="acme"))).id for _ in range(3)}
    worker, claims = await at_work(remote, node)
    assert {job.id for job in await claims.claim(5)} == ids
    held = await remote.attempts.held_by(worker, 100_000)
    assert {job.id for job in held} == ids
    assert await remote.workers.depart(worker) is False
    assert await remote.attempts.settle_many([Report(job, Interrupted()) for job in held]) == ids
    assert await remote.workers.depart(worker) is True
    assert {(await node.engine.jobs.get(each)).attempts for each in ids} == {0}


async def test_a_worker_loses_a_cancelled_job(remote, node):
    """S7"""
    receipts = await remote.jobs.submit_many([JobSpec("t"), JobSpec("t")])
    worker, claims = await at_work(remote, node)
    jobs = await claims.claim(5)
    held = [HeldJob(job.id, job.fence, worker) for job in jobs]
    assert await remote.attempts.lost(held) == set()
    assert await remote.jobs.cancel([receipts[0].id], reason="no") == {receipts[0].id}
    assert await remote.attempts.lost(held) == {receipts[0].id}


async def test_outcomes_above_the_limits_of_a_request_are_split(remote, node):
    """S1: outcomes of any number and size."""
    await remote.jobs.submit_many([JobSpec("t") for _ in range(40)])
    _, claims = await at_work(remote, node)
    jobs = await claims.claim(40)
    large = b'"' + b"x" * 250_000 + b'"'
    reports = [Report(job, Succeeded(large)) for job in jobs]
    assert len(list(worker_requests.settle(WorkerId(1), reports))) >= 3
    many_parts = [Report(job, Succeeded(b"[" + b"[1]," * 2_000 + b"1]")) for job in jobs]
    assert len(list(worker_requests.settle(WorkerId(1), many_parts))) == 2
    assert await remote.attempts.settle_many(reports) == {job.id for job in jobs}


async def test_an_outcome_that_the_node_rejects_raises_rejected(remote, node):
    """F10: the settler then reports one by one, and fails the invalid one permanently."""
    await remote.jobs.submit_many([JobSpec("t"), JobSpec("t")])
    _, claims = await at_work(remote, node)
    bad, good = await claims.claim(2)
    for reports in (
        [Report(bad, Crashed("x" * 20_000)), Report(good, Succeeded())],
        [Report(bad, Crashed("x" * 20_000))],
    ):
        with pytest.raises(Rejected):
            await remote.attempts.settle_many(reports)
    assert (await node.engine.jobs.get(good.id)).status is Status.SUCCEEDED


async def test_a_transaction_is_rejected_without_a_retry(remote):
    job = a_job(worker=new_worker_id())
    context = Context(job, remote.attempts)
    with pytest.raises(Invalid, match="no database connection") as caught:
        async with context.transaction():
            raise AssertionError("never entered")
    assert outcome_of(caught.value).retryable is False


# Addresses and keys


async def test_a_wrong_key_or_address_raises_a_clear_error(node):
    stranger = RemoteEngine(Sender(node.url, "hf_" + "0" * 16 + "_" + "0" * 64))
    with pytest.raises(Unauthorized):
        await stranger.jobs.submit(JobSpec("t"))
    await stranger.aclose()
    with pytest.raises(Misconfigured, match="HOLDFAST_API_KEY"):
        Sender(node.url)
    with pytest.raises(Misconfigured, match="HOLDFAST_API_URL"):
        Sender("ftp://localhost", "key")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await RemoteEngine.open("http://127.0.0.1:1", "key")
    reader = await RemoteEngine.open(node.url, await node.key("acme", "read"))
    with pytest.raises(Forbidden):
        await reader.workers.register(WorkerInfo(new_worker_id(), "w", "h", 1, "1"), seconds(5))
    await reader.aclose()


def test_an_api_key_is_not_shown():
    """T25"""
    app = Holdfast("https://jobs.example.org/base", key="hf_secret/1")
    assert app.url == "https://:hf_secret%2F1@jobs.example.org/base"
    assert "secret" not in repr(app)
    client = Sender(app.url)
    assert client.url == "https://jobs.example.org/base"
    assert client._address.headers["authorization"] == "Bearer hf_secret/1"
    assert is_node(app.url)
    with pytest.raises(Misconfigured):
        with_key("sqlite:///jobs.db", "key")


@pytest.mark.parametrize(
    "environ, url",
    [
        ({}, "sqlite:///holdfast.db"),
        ({"HOLDFAST_API_URL": "http://n:1"}, "http://n:1"),
        ({"HOLDFAST_API_URL": "http://n:1", "DATABASE_URL": "mysql://d/x"}, "mysql://d/x"),
        ({"HOLDFAST_API_URL": "http://n:1", "HOLDFAST_DATABASE_URL": ""}, "http://n:1"),
    ],
)
def test_a_configured_database_takes_precedence_over_a_node(environ, url, tmp_path):
    assert load(environ=environ, folder=tmp_path).jobs_url == url


# Retries


def client(*steps):
    transport = ScriptedTransport(*steps)
    return Sender("http://node", "key", transport=transport), transport


AWAY = [
    REFUSED,
    RESET,
    problem(503, "unavailable"),
    problem(503, "outcome_unknown"),
    problem(500, "internal"),
    Response(502, b"<html>"),
    problem(429, "rate_limited", retry_after="0"),
]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(retry, "_MIN_DELAY_S", 0.0)


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_node_that_resets_every_connection_counts_as_unavailable_on_every_loop(loop_of):
    """F08, P05: no other error may escape on any loop, because it would end the worker."""

    async def ask():
        def reset(connection):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    reset(listening.accept()[0])

        async def once():
            sender = Sender(f"http://127.0.0.1:{listening.getsockname()[1]}", "key")
            try:
                with pytest.raises((Unavailable, OutcomeUnknown)):
                    await sender.send(Request("GET", "/v1/jobs"), retry_timeout=0)
            finally:
                await sender.aclose()

        with socket.create_server(("127.0.0.1", 0)) as listening:
            resetting = threading.Thread(target=answer)
            resetting.start()
            for _ in range(20):
                await asyncio.gather(*(once() for _ in range(5)))
            listening.shutdown(socket.SHUT_RDWR)
            resetting.join()

    with asyncio.Runner(loop_factory=loop_of) as runner:
        runner.run(ask())


async def test_a_repeatable_request_is_retried_while_the_node_is_unavailable(quick):
    """F08"""
    http, transport = client(*AWAY, ok({}))
    answer = await http.send(Request("GET", "/v1/jobs", repeatable=True))
    assert (answer.status, len(transport.requests)) == (200, len(AWAY) + 1)


@pytest.mark.parametrize("fault", [AWAY[1], *AWAY[3:6]])
async def test_a_request_that_may_have_taken_effect_is_not_repeated(quick, fault):
    """F10, S2"""
    http, transport = client(fault)
    with pytest.raises(OutcomeUnknown):
        await http.send(worker_requests.submit(JobSpec("t")))
    assert len(transport.requests) == 1


@pytest.mark.parametrize("fault", [AWAY[0], AWAY[2]])
async def test_a_request_without_effect_is_retried(quick, fault):
    """F08"""
    http, transport = client(fault, ok({}, 201))
    assert (await http.send(worker_requests.submit(JobSpec("t")))).status == 201
    assert len(transport.requests) == 2


async def test_retries_end_at_the_timeout(quick):
    http, transport = client(REFUSED, REFUSED)
    with pytest.raises(Unavailable, match="refused"):
        await http.send(Request("GET", "/", repeatable=True), retry_timeout=-1)
    http, transport = client(problem(429, "backlog_full", retry_after="3600"))
    with pytest.raises(BacklogFull) as caught:
        await http.send(Request("GET", "/", repeatable=True))
    assert (caught.value.retry_after, len(transport.requests)) == (3600, 1)


@pytest.mark.parametrize(
    "status, code, kind",
    [
        (400, "malformed", Invalid), (401, "unauthorized", Unauthorized), (403, "forbidden", Forbidden),
        (404, "not_found", NotFound), (404, "no_such_route", NotFound), (405, "method_not_allowed", NotFound),
        (409, "conflict", Conflict), (409, "lease_lost", LeaseLost), (409, "job_not_held", JobNotHeld),
        (409, "anything", Conflict),
        (413, "too_large", Invalid), (415, "not_json", Invalid), (422, "invalid", Invalid),
        (422, "over_limit", OverLimit), (429, "rate_limited", RateLimited), (429, "backlog_full", BacklogFull),
        (503, "unavailable", Unavailable), (500, "internal", OutcomeUnknown), (418, "teapot", Unavailable),
    ],
)  # fmt: skip
def test_a_problem_response_becomes_its_original_error(status, code, kind):
    body = msgspec.json.encode({"title": "t", "status": status, "code": code, "detail": "what to do", "pointer": "/x"})
    error = error_of(Response(status, body))
    assert type(error) is kind
    assert "what to do" in str(error)
    if kind is Invalid:
        assert error.pointer == "/x"


@pytest.mark.slow
async def test_claims_poll_briefly_after_a_response_was_lost():
    """F10: the worker must soon look for jobs that it holds without knowing."""
    http, transport = client(RESET, ok({"worker": "w-0000000000000001", "jobs": []}))
    claims = RemoteEngine(http).attempts.claims(WorkerId(1), ["default"])
    with pytest.raises(OutcomeUnknown):
        await claims.claim(5)
    assert await claims.claim(5) == []
    assert [msgspec.json.decode(each.body)["wait"] for each in transport.requests] == [20.0, 0.5]


async def test_a_stopping_worker_closes_its_poll_before_it_releases_jobs(remote, node):
    """F04: a released job must not be claimed again by the same worker."""
    _, claims = await at_work(remote, node)
    waiting = asyncio.create_task(claims.claim(5))

    async def polls(count):
        return sum(state.polls for state in node.engine.remote_workers._poll_states.values()) == count

    await eventually(lambda: polls(1))
    claims.stop()
    assert await waiting == []
    await eventually(lambda: polls(0))
    receipt = await remote.jobs.submit(JobSpec("t"))
    assert await claims.claim(5) == []
    assert (await node.engine.jobs.get(receipt.id)).status == "ready"


def test_an_application_connects_on_first_use():
    app = Holdfast("http://127.0.0.1:1", key="k")

    @app.job(name="t")
    async def declared(left: int, *, ctx: Context = CONTEXT) -> int:
        return left

    assert app.registry.types() == ["t"]


async def test_a_remote_worker_gets_permits_and_signatures_from_the_node(remote, node):
    """T15, T38: the secret stays with the node, which signs for jobs that the worker holds."""
    at, destination = 1_700_000_000, "https://example.com:443"
    await node.engine.deliveries.rotate_secret("acme", seconds(60))
    await node.engine.jobs.submit(JobSpec("webhook", {"url": "https://example.com/"}, tenant="acme"))
    _, polls = await at_work(remote, node)
    (job,) = await polls.claim(1)

    async def ask(source, job=job, body=b"{}"):
        return await source.before_delivery(job, destination, probe_for=seconds(40), at=at, body=body)

    cleared = await ask(remote.deliveries)
    assert cleared == await ask(node.engine.deliveries)
    assert cleared.signature.startswith("v1,")
    assert (await ask(remote.deliveries, body=b"[]")).signature != cleared.signature
    for _ in range(5):
        await remote.deliveries.after_delivery(job, destination, probe=False, error="HTTP 503")
    (breaker,) = await node.engine.deliveries.breakers("acme")
    assert (breaker.state, breaker.error) == ("open", "HTTP 503")
    held = await ask(remote.deliveries)
    assert held.permit.wait > 0
    assert held.signature == ""

    stale, foreign = (
        msgspec.structs.replace(job, fence=job.fence + 1),
        msgspec.structs.replace(job, worker=new_worker_id()),
    )
    for stranger, code in ((stale, "job_not_held"), (foreign, "lease_lost")):
        with pytest.raises(LeaseLost) as refused:
            await ask(remote.deliveries, stranger)
        assert refused.value.code == code
        await remote.deliveries.after_delivery(stranger, destination, probe=True, error=None)
    assert (await node.engine.deliveries.breakers("acme"))[0] == breaker


async def test_steps_and_workers_are_read_page_by_page(node):
    """F35: a response has about 1 MiB, and a job may have any number of steps."""
    engine = node.engine
    await engine.jobs.submit(JobSpec("send", {}, tenant="acme"))
    workers = [await enter(engine.store, tenant="acme") for _ in range(3)]
    (job,) = await take(engine.store, workers[0], Lane("default", "acme", 0))
    held = HeldJob(job.id, job.fence, workers[0])
    result = b'"' + b"x" * 200_000 + b'"'
    keys = [f"step-{number:02}" for number in range(12)]
    for key in keys:
        assert await engine.attempts.record_step(held, Step(key, StepState.DONE, result))
    sender = Sender(node.url, await node.key())
    steps = await RemoteEngine(sender).attempts.steps_of(held)
    await sender.aclose()
    assert [(step.key, step.result) for step in steps] == [(key, result) for key in keys]
    async with AsyncClient(node.url, await node.key()) as client:
        assert [step.key async for step in client.steps(job.id)] == keys
        pages = calls.workers(limit=2)
        assert {worker.id async for worker in client.pages(pages)} == {worker_name(worker) for worker in workers}
        assert len((await client.execute(pages.at(None))).items) == 2
