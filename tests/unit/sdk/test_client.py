"""`holdfast.client`: the sync and the async client pass the same tests against a real node."""

import asyncio
import gc
import inspect
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from holdfast import client as public
from holdfast.client import (
    AsyncClient,
    Client,
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    JobCancelled,
    JobFailed,
    NotFound,
    RateLimited,
    ResultTooLarge,
    Unauthorized,
    Unavailable,
    WaitTimeout,
)
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.sdk import async_client, http_transport
from holdfast.sdk import client as sync
from holdfast.sdk.responses import Response
from holdfast.sdk.sse import EventParser
from holdfast.worker.running.runner import outcome_of_result
from tests.support.service_thread import FAILS, WORKS, run_service
from tests.unit.sdk.scripted import REFUSED, RESET, ScriptedTransport, ok, problem

UNKNOWN_ID = "01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11"


class OnALoop:
    """Async client with the interface of the sync one."""

    def __init__(self, *args, **options):
        self._runner = asyncio.Runner()
        self._client = self._runner.run(self._made(args, options))

    async def _made(self, args, options):
        return AsyncClient(*args, **options)

    def __getattr__(self, name):
        def call(*args, **options):
            found = getattr(self._client, name)(*args, **options)
            return self._all(found) if hasattr(found, "__anext__") else self._runner.run(found)

        return call

    def _all(self, items):
        while True:
            try:
                yield self._runner.run(anext(items))
            except StopAsyncIteration:
                return
            except GeneratorExit:
                self._runner.run(items.aclose())
                raise

    def close(self):
        self.aclose()
        self._runner.close()


@pytest.fixture
def node(database_url):
    with run_service(database_url) as found:
        yield found


@pytest.fixture(params=[Client, OnALoop], ids=["sync", "async"])
def kind(request):
    return request.param


@pytest.fixture
def client(kind, node):
    made = kind(node.url, node.key)
    yield made
    made.close()


on_a_database = pytest.mark.databases("sqlite", "postgres")


@on_a_database
def test_a_job_from_submit_to_delete(client, node):
    later = datetime.now(UTC) + timedelta(hours=1)
    job = client.submit("send", {"to": 1}, queue="mail", delay=timedelta(minutes=5), tags=["a"], priority=3)
    assert (job.type, job.payload, job.status, job.tags, job.priority) == ("send", {"to": 1}, "scheduled", ["a"], 3)
    assert job.scheduled_at - job.created_at == timedelta(minutes=5)
    other = client.submit("send", tenant="acme", scheduled_at=later, retry={"delays": ["1s", 2]})
    assert (other.tenant, other.scheduled_at) == ("acme", later)

    assert client.get(job.id).attempt_log == []
    assert [each.id for each in client.list(queue="mail", status="scheduled")] == [job.id]
    assert [each.id for each in client.list(created_after=later)] == []
    assert client.retry(job.id).status == "ready"
    assert client.cancel(job.id, "not wanted").reason == "not wanted"
    with pytest.raises(Conflict, match="already cancelled"):
        client.cancel(job.id)
    client.delete(job.id)
    for gone in (job.id, UNKNOWN_ID, "no id"):
        with pytest.raises(NotFound):
            client.get(gone)


@on_a_database
def test_a_batch_is_atomic_and_lists_continue_over_pages(client, node, monkeypatch):
    receipts = client.submit_many([{"type": "send", "payload": n} for n in range(5)])
    assert [each.replayed for each in receipts] == [False] * 5
    monkeypatch.setattr(sys.modules["holdfast.sdk.calls"], "MAX_PAGE_SIZE", 2)
    assert {each.id for each in client.list()} == {each.id for each in receipts}
    with pytest.raises(InvalidBatch) as caught:
        client.submit_many([{"type": "send"}, {"type": "no such name!"}, {"type": "send", "priority": 10**6}])
    assert sorted(caught.value.faults) == [1, 2]
    with pytest.raises(InvalidBatch, match="10,001"):
        client.submit_many([{"type": "send"}] * 10_001)
    assert len(list(client.list())) == 5


@on_a_database
def test_wait_returns_the_result_or_raises_the_outcome(client, node):
    job = client.submit("send")
    with pytest.raises(WaitTimeout, match="continues to run"):
        client.wait(job.id, timeout=0.05)
    node.settle(WORKS)
    assert client.wait(job.id, timeout="10s") == {"sent": 1}
    dead = client.submit("send")
    node.settle(FAILS)
    with pytest.raises(JobFailed, match="SmtpError: 421") as caught:
        client.wait(dead.id)
    assert caught.value.attempts == 1
    large = client.submit("send")
    node.settle(outcome_of_result("x" * MAX_RESULT_BYTES))
    with pytest.raises(ResultTooLarge, match="store it elsewhere"):
        client.wait(large.id)
    gone = client.submit("send")
    client.cancel(gone.id, "enough")
    with pytest.raises(JobCancelled, match="enough"):
        client.wait(gone.id)
    with pytest.raises(Invalid, match="timeout"):
        client.wait(gone.id, timeout="soon")


@on_a_database
def test_dead_letters_can_be_counted_replayed_and_purged(client, node):
    ids = {each.id for each in client.submit_many([{"type": "send", "queue": "mail"}] * 3)}
    node.settle(FAILS, queue="mail")
    assert {each.id for each in client.dead(queue="mail")} == ids
    (group,) = client.dead_groups()
    assert (group.count, group.error.kind, group.newest.status) == (3, "SmtpError", "dead")
    with pytest.raises(Invalid, match="filter is empty"):
        client.replay()
    assert client.replay(queue="mail", dry_run=True).matched == 3
    one, two, three = sorted(ids)
    assert client.replay([one]).changed == 1
    assert client.purge(queue="mail", dry_run=True).matched == 2
    assert client.purge([two]).changed == 1
    assert client.replay(error=group.fingerprint).changed == 1
    assert {each.id for each in client.list(status="ready")} == {one, three}
    assert client.cancel_all(queue="mail", reason="all of them").changed == 2
    assert client.retry_all(status="cancelled", dry_run=True).matched == 2
    assert client.get(three).generation == 1


@pytest.mark.databases("sqlite")
def test_an_administrator_manages_queues_tenants_and_keys(client, node):
    client.submit("send", queue="mail")
    rests = client.pause("mail", reason="the provider is down", until=datetime.now(UTC) + timedelta(hours=1))
    assert (rests.paused, rests.reason, rests.statuses.ready) == (True, "the provider is down", 1)
    assert [queue.name for queue in client.queues()] == ["mail"]
    assert client.resume("mail").paused is False
    assert client.stats().statuses.ready == 1
    assert client.analytics("5m", queue="mail").totals.submitted == 1
    assert list(client.workers()) == []
    worker, beside = node.enter("n"), node.enter("n")
    assert [(each.type, each.schema["required"], each.workers) for each in client.types()] == [("send", ["to"], 2)]
    assert [(each.id, each.draining) for each in client.drain_worker(worker)] == [(worker, True), (beside, True)]
    with pytest.raises(NotFound):
        client.drain_worker("w-1")
    assert client.create_tenant("acme", weight=3).weight == 3
    with pytest.raises(Conflict):
        client.create_tenant("acme")
    assert client.change_tenant("acme", weight=None, rate=10, rate_window=timedelta(minutes=1)).rate_window == 60
    assert [each.name for each in client.tenants()] == ["acme"]

    key = client.create_key("shop", ["submit"], tenant="acme", expires="1d")
    assert client.create_key("now", ["read"], expires=datetime.now(UTC) + timedelta(days=1)).expires_at
    narrow = Client(node.url, key.token)
    assert narrow.submit("send", {"to": "a@example.com"}).tenant == "acme"
    with pytest.raises(Forbidden):
        narrow.queues()
    assert client.revoke_key(key.id).revoked_at
    assert {each.name for each in client.keys(tenant="acme")} == {"shop"}
    narrow.close()
    with Client(node.url, "hf_" + "0" * 16 + "_" + "0" * 64) as stranger, pytest.raises(Unauthorized):
        stranger.stats()


@on_a_database
def test_submissions_with_the_same_idempotency_key_create_one_job(client):
    first = client.submit("send", 1, idempotency_key="k")
    assert client.submit("send", 1, idempotency_key="k").id == first.id
    with pytest.raises(IdempotencyMismatch):
        client.submit("send", 2, idempotency_key="k")
    (receipt,) = client.submit_many([{"type": "send", "payload": 1, "idempotency_key": "k"}])
    assert (receipt.id, receipt.replayed) == (first.id, True)


@pytest.mark.databases("sqlite")
def test_events_arrive_as_they_happen(client, node):
    events = client.events(queue="mail")
    seen = []

    def submitted(engine):
        from holdfast.model.job import JobSpec

        return engine.jobs.submit(JobSpec("send", queue="mail"))

    import threading

    # A stream starts at an unknown moment after the request, so submit until an event arrives.
    heard = threading.Event()

    def submit():
        while not heard.wait(0.2):
            node.do(submitted)

    beside = threading.Thread(target=submit)
    beside.start()
    try:
        seen.append(next(events))
    finally:
        heard.set()
        beside.join()
        events.close()
    assert (seen[0].kind, seen[0].data["queue"], seen[0].data["status"]) == ("job", "mail", "ready")
    assert seen[0].id


# Without a node: requests and retries


@pytest.fixture
def pauses(monkeypatch):
    """Return the list of requested sleeps, without sleeping."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(async_client.asyncio, "sleep", sleep)
    monkeypatch.setattr(sync.time, "sleep", slept.append)
    return slept


@pytest.fixture
def scripted(kind):
    """Return a factory of clients with scripted responses; closed with the test."""
    made = []

    def make(*steps):
        transport = ScriptedTransport(*steps)
        made.append(kind("http://node", "key", transport=transport))
        return made[-1], transport

    yield make
    for each in made:
        each.close()


RECEIPT = {"items": [{"id": UNKNOWN_ID, "created_at": "2030-01-31T12:00:00Z", "replayed": True}]}


def test_a_submission_is_retried_with_the_same_given_or_generated_key(scripted, pauses):
    """S2, F10."""
    failures = [RESET, REFUSED, Response(502, b"<html>")]
    client, transport = scripted(*failures, ok(RECEIPT, 201))
    assert client.submit_many([{"type": "send"}])[0].replayed is True
    bodies = {request.body for request in transport.requests}
    assert (len(transport.requests), len(bodies)) == (4, 1)
    assert msgspec.json.decode(bodies.pop())["jobs"][0]["idempotency_key"].startswith("auto-")

    client, transport = scripted(RESET, problem(401, "unauthorized"))
    with pytest.raises(Unauthorized, match="what to do"):
        client.submit("send")
    keys = {request.headers["idempotency-key"] for request in transport.requests}
    assert (len(transport.requests), len(keys)) == (2, 1)


def test_the_client_waits_as_long_as_the_service_asks_or_raises_at_once(scripted, pauses):
    client, _ = scripted(problem(429, "rate_limited", retry_after="4"), ok({"items": []}))
    assert list(client.workers()) == []
    assert pauses == [4.0]
    client, transport = scripted(problem(429, "rate_limited", retry_after="3600"))
    with pytest.raises(RateLimited) as caught:
        client.workers()
    assert (caught.value.retry_after, len(transport.requests)) == (3600, 1)


def test_a_request_that_is_not_safe_to_repeat_is_sent_once(scripted, pauses):
    client, transport = scripted(RESET)
    with pytest.raises(Unavailable):
        client.retry(UNKNOWN_ID)
    assert len(transport.requests) == 1


def test_a_stream_resumes_after_the_last_event(scripted, pauses):
    def stream(text):
        return Response(200, text.encode(), {"content-type": "text/event-stream"})

    client, transport = scripted(
        stream('retry: 2000\nid: 7\n\nid: 8\nevent: job\ndata: {"n":1}\n\nid: 9\nevent: job\ndata: {"n'),
        REFUSED,
        problem(503, "unavailable", retry_after="1"),
        stream(': alive\n\nid: 9\nevent: job\ndata: {"n":2}\n\nevent: reset\ndata: {"reason":"revoked"}\n\n'),
    )
    found = [(event.kind, event.data, event.id) for event in client.events(job=UNKNOWN_ID)]
    assert found == [("job", {"n": 1}, "8"), ("job", {"n": 2}, "9"), ("reset", {"reason": "revoked"}, "9")]
    assert [request.headers.get("last-event-id") for request in transport.requests] == [None, "9", "9", "9"]
    client, _ = scripted(problem(404, "not_found"))
    with pytest.raises(NotFound):
        list(client.events(job=UNKNOWN_ID))


def test_the_parser_accepts_events_in_any_pieces():
    text = b'id: 1\r\nevent: job\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
    for cut in range(len(text)):
        events = EventParser()
        assert [e.data for e in events.feed(text[:cut]) + events.feed(text[cut:])] == [{"a": 1}]


@pytest.mark.parametrize(
    "bad, said",
    [
        ({"payload": float("nan")}, "JSON cannot represent"), ({"payload": object()}, "cannot be encoded as JSON"),
        ({"scheduled_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - just that
        ({"idempotency_key": "schlüssel"}, "idempotency_key"), ({"tenant": "a\nb"}, "tenant"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected_before_sending(scripted, bad, said):
    client, transport = scripted()
    with pytest.raises(Invalid, match=said):
        client.submit("send", **bad)
    assert not transport.requests


def test_an_unreachable_service_raises_after_the_retry_timeout(kind, monkeypatch):
    monkeypatch.setattr(http_transport, "CONNECT_TIMEOUT_S", 0.2)
    client = kind("http://127.0.0.1:1", "key", retry_timeout=0)
    with pytest.raises(Unavailable, match="cannot be reached"):
        client.stats()
    client.close()


@on_a_database
def test_an_operator_manages_limits_pauses_webhooks_and_tokens(client, kind, node):
    limit = client.set_limit(tenant="acme", max_running=20, rate="100/m")
    assert (limit.kind, limit.max_running, limit.rate.limit, limit.rate.per) == ("tenant", 20, 100, 60)
    assert client.set_limit(tenant="acme", concurrency_key="card", max_running=3).concurrency_key == "card"
    assert [each.kind for each in client.limits(kind="key", tenant="acme")] == ["key"]
    assert client.change_queue("mail", rate="5/30s").rate.per == 30
    assert client.change_queue("mail", rate=None).rate is None
    with pytest.raises(Invalid, match="write 10/s"):
        client.set_limit(tenant="acme", rate="fast")

    until = datetime.now(UTC) + timedelta(hours=1)
    assert client.pause_type("send", reason="audit", until=until).until == until
    assert client.pause_tenant("acme").kind == "tenant"
    assert {(each.kind, each.name) for each in client.pauses()} == {("type", "send"), ("tenant", "acme")}
    client.resume_type("send")
    client.resume_tenant("acme")
    client.resume_tenant("acme")
    assert list(client.pauses()) == []

    client.create_tenant("acme")
    assert list(client.breakers()) == []
    made = client.rotate_webhook_secret("acme", overlap=timedelta(hours=1))
    assert client.webhook_secret("acme").created_at == made.created_at
    client.delete_webhook_secret("acme")
    with pytest.raises(NotFound):
        client.webhook_secret("acme")

    token = client.create_token(["read"], expires_in=timedelta(minutes=5))
    assert (token.token_type, token.tenant, token.scopes) == ("Bearer", "default", ["read"])
    assert timedelta(0) < token.expires_at - datetime.now(UTC) <= timedelta(minutes=5)
    reader = kind(node.url, token.token)
    assert list(reader.list()) == []
    with pytest.raises(Forbidden):
        reader.submit("send")
    reader.close()
    assert len(client.create_token().scopes) > 1


@on_a_database
def test_jobs_are_listed_by_the_first_digits_of_their_ids(client, node):
    ids = [client.submit("send").id for _ in range(3)]
    assert [job.id for job in client.list(id_prefix=ids[1])] == [ids[1]]
    assert set(ids) <= {job.id for digits in {each[:8] for each in ids} for job in client.list(id_prefix=digits)}
    with pytest.raises(Invalid, match="at least the first 8 digits"):
        list(client.list(id_prefix="0198"))


@on_a_database
def test_statistics_of_a_window_are_read(client, node):
    client.submit("send", queue="mail")
    assert client.throughput("1h", queue="mail").points
    assert client.fairness().items == []
    assert client.type_stats("1h") is not None


# Both clients, and imports


def test_the_sync_client_matches_the_output_of_its_generator():
    from tools import sync_client

    for source, target in sync_client.MODULES.items():
        assert (sync_client.FOLDER / target).read_text() == sync_client.generate(source), "run ./dev fmt"


def test_both_clients_have_the_same_methods():
    def methods(kind):
        found = inspect.getmembers(kind, inspect.isfunction)
        return {
            name: [(p.name, p.default, p.kind) for p in inspect.signature(each).parameters.values()]
            for name, each in found
            if not name.startswith("_") and name not in ("close", "aclose")
        }

    assert methods(Client) == methods(AsyncClient)


def test_all_public_names_exist_and_are_quick_to_import():
    assert all(hasattr(public, name) for name in public.__all__)
    heavy = ("apsw", "asyncpg", "asyncmy", "rich", "click", "holdfast.engine", "holdfast.store", "holdfast.worker")
    start = f"import sys, holdfast.client; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


FORKS = """
import os
from holdfast.client import Client
from tests.unit.sdk.scripted import ScriptedTransport, ok

client = Client("http://node", "key", transport=ScriptedTransport(*[ok({"items": []})] * 3))
assert client.workers() == []
child = os.fork()
if child == 0:
    os._exit(0 if client.workers() == [] else 1)
assert os.waitpid(child, 0)[1] == 0
assert client.workers() == []  # and exits without `close`
"""


def test_a_sync_client_works_after_a_fork_and_without_close():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_thread_of_a_dropped_sync_client_ends():
    client = Client("http://node", "key", transport=ScriptedTransport(ok({"items": []})))
    client.workers()
    (thread,) = [loop_thread._thread for loop_thread in client._sender._threads.values()]
    del client
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


# The guide


@pytest.mark.slow
@pytest.mark.databases("sqlite")
def test_the_examples_of_the_client_guide_run(node, capsys, monkeypatch):
    import re
    import threading
    from pathlib import Path

    text = (Path(__file__).parents[3] / "docs" / "guide" / "client.md").read_text()
    plain, on_a_loop = [
        block.replace("https://jobs.example.org", node.url).replace("hf_…", node.key)
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
    over = threading.Event()

    def work():
        while not over.wait(0.1):
            with Client(node.url, node.key) as boss:
                for job in boss.list(status="scheduled"):
                    boss.retry(job.id)
            node.settle(WORKS, queue="mail")
            node.settle(WORKS)

    working = threading.Thread(target=work)
    working.start()
    try:
        exec(compile(plain, "client.md", "exec"), {})
        assert capsys.readouterr().out == "{'sent': 1}\n"
        names = {}
        exec(compile(on_a_loop, "client.md", "exec"), names)

        class Heard(Exception):
            pass

        def heard(*_):
            raise Heard

        names["print"] = heard  # the stream has no end
        with Client(node.url, node.key) as boss:
            news = threading.Thread(
                target=lambda: [boss.submit("x", queue="mail") for _ in range(600) if not over.wait(0.1)]
            )
            news.start()
            with pytest.raises(Heard):
                asyncio.run(names["main"]())
            over.set()
            news.join()
    finally:
        over.set()
        working.join()
