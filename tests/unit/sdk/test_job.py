"""The job that applications, handlers and HTTP clients get: decoded, and the same for all of them."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import holdfast.client
from holdfast import Job, JobFailed, Status
from holdfast.model import decoded_job, job
from holdfast.model.decoded_job import decode_job
from holdfast.model.ids import WorkerId, new_job_id
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.time import Instant, seconds
from holdfast.policy.lifecycle import actions
from holdfast.wire import codec
from holdfast.worker.context import context
from holdfast.worker.context.context import Context, SyncContext

AT = Instant(1_893_456_000_123_456)
LOG = (
    b'[{"attempt":1,"generation":0,"worker":"w","started_at":"2030-01-01T00:00:00Z","ended_at":"2030-01-01T00:00:01Z",'
    b'"outcome":"failed","error":{"kind":"ValueError","message":"no user","fingerprint":"f","traceback":"Trace"}},'
    b'{"attempt":2,"generation":0,"worker":"w","started_at":"2030-01-01T00:00:02Z","ended_at":"2030-01-01T00:00:03Z",'
    b'"outcome":"snoozed"}]'
)


def stored(**changes):
    given = dict.fromkeys(job.Job.__struct_fields__) | {
        "id": new_job_id(), "seq": 7, "status": Status.RUNNING, "fence": 3, "worker": WorkerId(5), "tenant": "acme",
        "queue": "mail", "type": "welcome", "payload": b'{"user_id":42}', "priority": 2, "attempts": 2,
        "max_attempts": 5, "releases": 0, "generation": 1, "cost": 3, "created_at": AT, "started_at": AT + 1,
        "timeout": seconds(2.5), "attempt_log": LOG, "progress": b'{"fraction":0.5,"note":"half"}',
        "tags": b'["a","b"]', "slots": 0,
    }  # fmt: skip
    return job.Job(**(given | changes))


EXAMPLES = {
    "running": stored(),
    "bare": stored(
        status=Status.READY, worker=None, started_at=None, timeout=None, attempt_log=None, progress=None, tags=None,
        payload=b"null",
    ),
    "scheduled": stored(status=Status.SCHEDULED, scheduled_at=AT + 5, deadline=AT + 10, concurrency_key="k"),
    "succeeded": stored(status=Status.SUCCEEDED, finished_at=AT + 9, result=b'{"sent":[1,2.5,null]}'),
    "dead": stored(status=Status.DEAD, finished_at=AT + 9, fingerprint="f", idempotency_key="order-1"),
    "cancelled": stored(status=Status.CANCELLED, finished_at=AT + 9, reason="enough"),
}  # fmt: skip


def test_the_job_of_applications_is_the_job_of_the_http_client():
    assert Job is holdfast.client.Job
    assert issubclass(holdfast.client.JobDetail, Job)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_decoded_job_equals_the_decoded_response_of_a_node(example):
    allowed = actions(example.status)
    response = msgspec.json.encode(codec.job_out(example, actions=allowed))
    assert decode_job(example, allowed) == msgspec.json.decode(response, type=Job)


def test_a_decoded_job_has_values_instead_of_bytes_and_integers():
    decoded = decode_job(EXAMPLES["running"], ["cancel"])
    assert decoded.payload == {"user_id": 42}
    assert decoded.created_at == datetime.fromtimestamp(0, UTC) + timedelta(microseconds=AT)
    assert (decoded.timeout, decoded.tags, decoded.progress.note) == (2.5, ["a", "b"], "half")
    assert (decoded.error.kind, decoded.error.message, decoded.error.traceback) == (
        "ValueError",
        "no user",
        msgspec.UNSET,
    )


def test_every_field_of_a_job_is_documented():
    documented = {line.partition(":")[0].strip() for line in Job.__doc__.splitlines() if ":" in line}
    assert set(Job.__struct_fields__) <= documented


def test_a_handle_returns_the_decoded_job_with_its_error(app, by_hand):
    @app.job
    def load(user_id: int) -> None: ...

    handle = load.enqueue(42)
    by_hand.settle_now(Failed(Failure("ValueError", "no such user"), retryable=False))
    with pytest.raises(JobFailed):
        handle.wait()
    found = handle.job()
    assert (type(found), found.id, found.status, found.payload) == (Job, str(handle.id), Status.DEAD, {"user_id": 42})
    assert (found.error.kind, found.error.message) == ("ValueError", "no such user")
    assert found.finished_at.tzinfo is UTC


async def test_an_async_handle_returns_the_decoded_result(app, by_hand):
    @app.job
    async def load(user_id: int) -> list[int]:
        return [user_id]

    async with app:
        handle = await load.aenqueue(42)
        await by_hand.settle(Succeeded(b"[42]"))
        found = await handle.job()
    assert (type(found), found.result, found.error, found.actions) == (Job, [42], None, ["delete"])


async def test_a_context_decodes_its_job_on_first_use_only(monkeypatch):
    decoded = []

    def count(*args):
        decoded.append(args)
        return decode_job(*args)

    monkeypatch.setattr(context, "decode_job", count)
    ctx = Context(EXAMPLES["running"], None)
    sync = SyncContext(ctx, asyncio.get_running_loop())
    ctx.log("a line")
    assert (ctx.attempt, ctx.fence, sync.fence, ctx.idempotency_key("x").endswith(":x")) == (2, 3, 3, True)
    assert decoded == []
    assert ctx.job is ctx.job is sync.job
    assert type(ctx.job) is decoded_job.Job
    assert (ctx.job.payload, len(decoded)) == ({"user_id": 42}, 1)
