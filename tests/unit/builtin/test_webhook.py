"""Webhooks as receivers see them: requests, signatures, and the outcome of each response."""

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest

from holdfast.model.outcome import Failed, Snoozed, Succeeded
from holdfast.model.time import seconds
from tests.support.receiver import answers, drips, hangs, pours, resets
from tests.unit.builtin.conftest import delivered
from tests.unit.worker.conftest import a_job


def verified(got, secret, *, tolerance=300):
    """Verify a signature as the Standard Webhooks specification says; return the body."""
    message, at = got.header("webhook-id"), got.header("webhook-timestamp")
    assert abs(time.time() - int(at)) < tolerance
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.digest(key, b".".join([message.encode(), at.encode(), got.body]), hashlib.sha256)
    good = base64.b64encode(mac).decode()
    given = [each.split(",", 1) for each in got.header("webhook-signature").split(" ")]
    assert any(version == "v1" and hmac.compare_digest(value, good) for version, value in given)
    return json.loads(got.body)


async def test_a_delivery_identifies_itself_and_records_the_response(deliver, receiver):
    receiver.behave = answers(202, body=b'{"ok": true}\n')
    job = a_job("webhook", {"url": receiver.url, "headers": {"X-Shop": "7"}, "body": {"order": 1}})
    record = json.loads(delivered(await deliver(receiver.url, job=job)))

    (got,) = receiver.got
    assert got.line == "POST /hook HTTP/1.1"
    assert json.loads(got.body) == {"order": 1}
    assert (got.header("content-type"), got.header("x-shop")) == ("application/json", "7")
    assert got.header("idempotency-key") == f"{job.id}:deliver"
    assert got.header("webhook-id") == str(job.id)
    assert got.header("webhook-signature") is None
    assert got.header("user-agent").startswith("holdfast-")
    taken = record.pop("seconds"), record.pop("sent_at")
    assert 0 <= taken[0] < 60
    assert abs(datetime.fromisoformat(taken[1]).timestamp() - time.time()) < 60
    assert record == {
        "status": 202, "destination": f"http://127.0.0.1:{receiver.port}", "attempt": 1, "signed": False,
        "answer": '{"ok": true}\n',
    }  # fmt: skip


@pytest.mark.parametrize(
    "body, expected",
    [
        (b'{"id": 7, "ok": true}', {"response": {"id": 7, "ok": True}}),
        (b"null", {"response": None}),
        (b"", {"response": None, "not_kept": "the response is not JSON"}),
        (b"<html>", {"response": None, "not_kept": "the response is not JSON"}),
        (b'"' + b"x" * 65_534 + b'"', {"response": "x" * 65_534}),
        (b'"' + b"x" * 65_535 + b'"', {"response": None, "not_kept": "the response has more than 65,536 bytes"}),
    ],
    ids=["an object", "null", "nothing", "no JSON", "64 KiB", "more than 64 KiB"],
)
async def test_a_job_keeps_a_json_response_if_it_asks_for_it(deliver, receiver, body, expected):
    receiver.behave = answers(200, body=body)
    kept = json.loads(delivered(await deliver(receiver.url, keep_response=True)))
    assert {name: kept[name] for name in ("response", "not_kept") if name in kept} == expected
    usual = json.loads(delivered(await deliver(receiver.url)))
    assert {"response", "not_kept"}.isdisjoint(usual)


async def test_a_receiver_can_verify_the_signature_with_both_keys_during_a_rotation(deliver, receiver, engine):
    """T15: verified by an independent implementation."""
    old, _ = await engine.deliveries.rotate_secret("acme", seconds(60))
    delivered(await deliver(receiver.url, body={"n": 1}))
    new, _ = await engine.deliveries.rotate_secret("acme", seconds(60))
    delivered(await deliver(receiver.url, body={"n": 2}))

    first, second = receiver.got
    assert verified(first, old) == {"n": 1}
    assert verified(second, old) == verified(second, new) == {"n": 2}
    with pytest.raises(AssertionError):
        verified(first, new)
    with pytest.raises(AssertionError):
        verified(second._replace(body=b'{"n": 3}'), new)


async def test_all_attempts_share_the_id_and_key_but_not_the_signature(deliver, receiver, engine):
    """S12."""
    await engine.deliveries.rotate_secret("acme", seconds(60))
    job = a_job("webhook", {"url": receiver.url})
    for attempt in (1, 2):
        await deliver(receiver.url, job=msgspec.structs.replace(job, attempts=attempt, fence=attempt))
    one, two = receiver.got
    assert [one.header(name) == two.header(name) for name in ("webhook-id", "idempotency-key")] == [True, True]


async def test_the_signature_covers_empty_and_text_bodies_as_sent(deliver, receiver, engine):
    secret, _ = await engine.deliveries.rotate_secret("acme", seconds(60))
    delivered(await deliver(receiver.url, body="zażółć", headers={"Content-Type": "text/csv"}))
    delivered(await deliver(receiver.url, method="DELETE"))
    text, empty = receiver.got
    assert (text.body.decode(), text.header("content-type")) == ("zażółć", "text/csv")
    assert (empty.line, empty.body) == ("DELETE /hook HTTP/1.1", b"")
    for got in receiver.got:
        with pytest.raises(json.JSONDecodeError):
            verified(got, secret)


ANSWERS = [
    (500, (), {}, True, None),
    (503, ("Retry-After: 17",), {}, True, 17),
    (429, ("Retry-After: 99999999",), {}, True, 3_600),
    (429, ("Retry-After: 0",), {}, True, 0),
    (200, (), {"expect": 201}, False, None),
    (429, ("Retry-After: soon",), {}, True, None),
    (500, ("Retry-After: 17",), {}, True, None),
    (408, (), {}, True, None),
    (404, (), {}, False, None),
    (404, (), {"retry_on": [404]}, True, None),
    (410, (), {}, False, None),
    (301, ("Location: http://169.254.169.254/",), {}, False, None),
]
"""Response, request options, whether a retry follows, and its delay if the receiver asks for one."""


async def test_the_response_decides_the_outcome(deliver, receiver):
    """F39, T35: `Retry-After` is respected up to an hour; permanent errors are not retried."""
    for case in ANSWERS:
        status, headers, payload, retryable, wait = case
        receiver.behave = answers(status, *headers)
        outcome = await deliver(receiver.url, **payload)
        assert isinstance(outcome, Failed), case
        assert outcome.retryable is retryable, case
        assert outcome.retry_in == (None if wait is None else seconds(wait)), case
        assert f"HTTP {status}" in outcome.failure.message
    assert len(receiver.got) == len(ANSWERS)


async def test_a_date_in_retry_after_is_respected(deliver, receiver):
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    receiver.behave = answers(503, f"Retry-After: {at}")
    outcome = await deliver(receiver.url)
    assert seconds(500) < outcome.retry_in <= seconds(600)


async def test_the_caller_chooses_the_expected_statuses(deliver, receiver):
    receiver.behave = answers(404)
    assert isinstance(await deliver(receiver.url, expect=[200, 404]), Succeeded)


@pytest.mark.parametrize("behaviour, why", [(hangs, "within 0.3 s"), (drips, "within 0.3 s"), (resets, "127.0.0.1")])
async def test_an_unresponsive_receiver_is_retried(bench, receiver, behaviour, why):
    """F39: the timeout covers the whole request."""
    receiver.behave = behaviour
    payload = {"url": receiver.url, "timeout": 0.3}
    outcome, context = await bench.attempt(a_job("webhook", payload), webhook_allow=("127.0.0.0/8",))
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert why in outcome.failure.message
    assert len(context.attempt_logs.logs().lines) == 1


@pytest.mark.slow
async def test_a_request_times_out_before_its_attempt(deliver, receiver):
    """F39: so that the outcome is known and reported to the breaker."""
    receiver.behave = hangs
    outcome = await deliver(receiver.url, timeout=0.5)
    assert "no response within" in outcome.failure.message


@pytest.mark.slow
async def test_a_very_long_response_is_not_read(deliver, receiver):
    """F39, T35: the status decides; the start of the body is stored as text."""
    receiver.behave = pours(100)
    record = json.loads(delivered(await deliver(receiver.url)))
    assert record["answer"] == "x" * 1_024


@pytest.mark.parametrize(
    "body, kept",
    [
        (b"\x00\xff\x1b[31mred", "\ufffd\ufffd\ufffd[31mred"),
        (b"token=hunter2-canary", "token=***"),
        ("zażółć".encode("utf-16"), None),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
async def test_every_response_body_is_stored_as_text(deliver, receiver, body, kept):
    """T35."""
    receiver.behave = answers(200, "Content-Type: text/html; charset=bogus", "Content-Encoding: gzip", body=body)
    answer = json.loads(delivered(await deliver(receiver.url)))["answer"]
    assert kept is None or answer == kept
    assert all(c.isprintable() or c in "\n\t" for c in answer)


HEADERS = [
    ("X-A", "a\r\nHost: evil"), ("X-A", "a\nb"), ("X-A", "a\rb"), ("X-A", "a\x00b"), ("X-A", "é"), ("X-A", " a"),
    ("X-A\r\nX-B", "a"), ("X A", "a"), ("X:A", "a"), ("", "a"), ("X-Ä", "a"), ("Host", "evil"), ("host", "evil"),
    ("Content-Length", "0"), ("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Proxy-Authorization", "x"),
    ("Cookie", "a=b"), ("webhook-signature", "v1,x"), ("Webhook-Id", "x"), ("Idempotency-Key", "x"), ("TE", "x"),
    ("Upgrade", "h2c"), ("Expect", "100-continue"),
]  # fmt: skip
PAYLOADS = [
    {"method": "TRACE"}, {"method": "POST / HTTP/1.1\r\nX: y"}, {"method": "GET", "body": 1}, {"expect": 99},
    {"expect": [200] * 51}, {"timeout": -1}, {"timeout": "1d"}, {"timeout": 0}, {"unknown": 1}, {"headers": []},
    {"headers": {f"X-{n}": "a" for n in range(51)}}, {"retry_on": ["x"]}, {"headers": {"X-A": "1", "x-a": "2"}},
]  # fmt: skip


async def test_headers_cannot_smuggle_a_request_or_replace_ours(bench, receiver):
    """T14: the receiver gets no request, nor for an invalid payload."""
    for payload in [{"headers": dict([each])} for each in HEADERS] + PAYLOADS:
        outcome = await bench.run("webhook", {"url": receiver.url} | payload, webhook_allow=("127.0.0.0/8",))
        assert isinstance(outcome, Failed), payload
        assert (outcome.failure.kind, outcome.retryable) == ("InvalidPayload", False), payload
    assert receiver.connections == 0


async def test_connections_are_reused_without_cookies(deliver, receiver):
    receiver.behave = answers(200, "Set-Cookie: session=1; Path=/", body=b"ok")
    for _ in range(3):
        delivered(await deliver(receiver.url))
    assert (receiver.connections, len(receiver.got)) == (1, 3)
    assert all(got.header("cookie") is None for got in receiver.got)


async def test_a_connection_closed_while_idle_uses_no_attempt(deliver, receiver):
    delivered(await deliver(receiver.url))

    async def hang_up(got, reader, writer):
        writer.close()

    once = iter([hang_up])
    plain = receiver.behave

    async def behave(got, reader, writer):
        await next(once, plain)(got, reader, writer)

    receiver.behave = behave
    delivered(await deliver(receiver.url))
    assert receiver.connections == 2


async def test_proxies_from_the_environment_are_ignored(deliver, receiver, monkeypatch):
    """T11."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    delivered(await deliver(receiver.url))


async def test_an_open_breaker_holds_jobs_without_using_attempts(bench, receiver, engine):
    receiver.behave = answers(500)
    payload = {"url": receiver.url}
    outcomes = [await bench.run("webhook", payload, webhook_allow=("127.0.0.0/8",)) for _ in range(8)]
    assert [type(each) for each in outcomes] == [Failed] * 5 + [Snoozed] * 3
    assert all(each.held and seconds(14) < each.delay < seconds(30) for each in outcomes[5:])
    assert len(receiver.got) == 5
    (breaker,) = await engine.deliveries.breakers("acme")
    assert (breaker.destination, breaker.state, breaker.error) == (
        f"http://127.0.0.1:{receiver.port}", "open", "HTTP 500",
    )  # fmt: skip


async def test_rejections_of_single_requests_do_not_open_the_breaker(bench, receiver, engine):
    receiver.behave = answers(404)
    for _ in range(6):
        await bench.run("webhook", {"url": receiver.url}, webhook_allow=("127.0.0.0/8",))
    assert len(receiver.got) == 6
    assert await engine.deliveries.breakers(None) == []
