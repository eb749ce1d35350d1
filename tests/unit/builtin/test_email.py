"""E-mail sent to a real server: messages, and the outcome for each reply."""

import json
import os
import ssl
import subprocess
import sys
from contextlib import contextmanager
from email.header import decode_header, make_header
from pathlib import Path

import msgspec
import pytest

from holdfast.builtin.email import Email, SmtpServer
from holdfast.errors import Misconfigured
from holdfast.model.outcome import Failed, Succeeded
from holdfast.model.time import Instant, seconds
from tests.support.certificate import a_certificate

pytestmark = pytest.mark.slow  # starts processes

ROOT = Path(__file__).resolve().parents[3]


class MailServer:
    def __init__(self, port, file):
        self.port = port
        self._file = file

    @property
    def taken(self):
        return [json.loads(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []


@contextmanager
def started(folder, *options):
    file = folder / f"mail-{len(list(folder.glob('mail-*')))}"
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.mailserver", str(file), *options]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    try:
        yield MailServer(int(process.stdout.readline()), file)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def mail(tmp_path_factory):
    with started(tmp_path_factory.mktemp("mail")) as server:
        yield server


@pytest.fixture
def send(bench, mail):
    async def run(*, job=None, to="ann@example.com", subject="hello", text="hi", timeout=10, **payload):
        settings = {"smtp_url": f"smtp+plain://127.0.0.1:{mail.port}", "smtp_from": "jobs@example.org"}
        job = job or await bench.claim("email", {"to": to, "subject": subject, "text": text} | payload)
        before = len(mail.taken)
        outcome, _ = await bench.attempt(job, smtp_timeout=seconds(timeout), **settings)
        return outcome, mail.taken[before:]

    return run


def headers(mail):
    return {name: value for name, value in mail["headers"] if name not in ("Content-Transfer-Encoding", "Content-Type")}


async def test_a_message_contains_exactly_the_given_fields(send, bench):
    """T16: envelope and headers are exactly these."""
    job = await bench.claim(
        "email",
        {
            "to": ["ann@example.com", "bob@example.com"], "cc": ["cyd@example.com"], "bcc": ["dan@example.com"],
            "subject": "Zażółć gęślą jaźń ✓", "text": "zażółć\n.\n.hidden\nend", "html": "<p>zażółć</p>",
            "reply_to": "desk@example.com",
        },
    )  # fmt: skip
    job = msgspec.structs.replace(job, created_at=Instant(1_700_000_000_000_000))
    outcome, (got,) = await send(job=job)

    assert isinstance(outcome, Succeeded)
    everybody = ["ann@example.com", "bob@example.com", "cyd@example.com", "dan@example.com"]
    message_id = f"<{job.id}@example.org>"
    assert json.loads(outcome.result) == {
        "message_id": message_id, "accepted": everybody, "refused": {}, "answer": "taken",
    }  # fmt: skip
    assert (got["from"], got["to"]) == ("jobs@example.org", everybody)
    assert headers(got) == {
        "From": "jobs@example.org", "To": "ann@example.com, bob@example.com", "Cc": "cyd@example.com",
        "Reply-To": "desk@example.com", "Subject": "Zażółć gęślą jaźń ✓", "Date": "Tue, 14 Nov 2023 22:13:20 +0000",
        "Message-ID": message_id, "MIME-Version": "1.0",
    }  # fmt: skip
    assert {kind: text.split() for kind, text in got["texts"].items()} == {
        "text/plain": ["zażółć", ".", ".hidden", "end"], "text/html": ["<p>zażółć</p>"],
    }  # fmt: skip


HOSTILE = [
    {"subject": f"hello{break_}Bcc: evil@example.com"}
    for break_ in ("\r\n", "\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\x00")
] + [
    {"to": address}
    for address in (
        "", "ann", "ann@", "@example.com", "ann@example.com\r\nRCPT TO:<evil@example.com>", "ann@example.com>",
        "<ann@example.com>", "Ann <ann@example.com>", "ann@example.com,evil@example.com", "ann@exa mple.com",
        '"ann evil"@example.com', "ann@example.com\u2028", "ann@ex\u00e4mple.com", "ann@-example.com",
        "a" * 300 + "@example.com", "=?utf-8?q?ann=0D=0ABcc=3Aevil?=@example.com",
    )
] + [
    {"to": []}, {"to": [f"u{n}@example.com" for n in range(51)]}, {"cc": ["x"]}, {"bcc": ["x\n@y"]}, {"text": None},
    {"to": [f"u{n}@example.com" for n in range(50)], "bcc": ["one@example.com"]}, {"reply_to": "a@b\r\nX: y"},
    {"reply_to": "=?utf-8?q?a=0AX=3Ay?=@example.com"}, {"cc": ["=?utf-8?b?YQ0KWDp5?=@example.com"]},
    {"from": "boss@example.com"}, {"headers": {"X": "y"}}, {"subject": "x" * 501}, {"subject": 7}, {"to": {"a": 1}},
]  # fmt: skip


async def test_a_payload_cannot_inject_headers_commands_or_recipients(send, mail):
    """T16: each is rejected before anything reaches the server."""
    before = len(mail.taken)
    for payload in HOSTILE:
        outcome, _ = await send(**payload)
        assert isinstance(outcome, Failed), payload
        assert (outcome.failure.kind, outcome.retryable) == ("InvalidPayload", False), payload
    assert len(mail.taken) == before


async def test_a_payload_cannot_choose_the_server_or_its_credentials(send, mail):
    """T13: the server comes from the settings."""
    before = len(mail.taken)
    for name in ("host", "port", "server", "smtp_url", "url", "user", "password", "sender"):
        outcome, _ = await send(**{name: "smtp://169.254.169.254"})
        assert isinstance(outcome, Failed), name
        assert (outcome.failure.kind, outcome.retryable) == ("InvalidPayload", False), name
    assert len(mail.taken) == before


@pytest.mark.parametrize(
    "subject",
    [
        "=?utf-8?q?hi=0D=0AFrom=3A_boss=40example.com?=", "=?utf-8?q?hi=0ABcc=3A_evil=40example.com?= tail",
        "=?us-ascii?b?aGkNClg6IHk=?=", "=?utf-8?q?hi?=", "a =?utf-8?q?=0D?=\u00e4", "=?", "  two  spaces  ",
        "word " * 100, "x" * 500, "\u00e9" * 500, "=?utf-8?q?" + "=0D=0A" * 80 + "?=", "From: boss@example.com", "",
    ],
)  # fmt: skip
async def test_a_subject_arrives_as_it_was_given_and_adds_no_header(send, subject):
    """T16: text that looks like an encoded word (RFC 2047) is text, on every supported version of Python."""
    outcome, (got,) = await send(subject=subject)

    assert isinstance(outcome, Succeeded)
    assert [name for name, _ in got["headers"]] == [
        "From", "To", "Subject", "Date", "Message-ID", "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    ]  # fmt: skip
    raw = dict(got["raw_headers"])["Subject"]
    assert str(make_header(decode_header(raw))) == subject


@pytest.mark.parametrize(
    "text", ["a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", "a\n.\nb\r.\rc", "\x00\x1b[31m", "x" * 5_000]
)
async def test_a_body_cannot_end_its_message_early(send, text):
    """T16: an end marker in the text is part of the text."""
    outcome, taken = await send(text=text)
    assert isinstance(outcome, Succeeded)
    (got,) = taken
    assert got["to"] == ["ann@example.com"]
    assert got["texts"]["text/plain"].split() == text.split()


async def test_permanently_rejected_recipients_are_reported_and_the_others_get_the_mail(send):
    """F40."""
    outcome, (got,) = await send(to=["ann@example.com", "never@example.com"])
    assert got["to"] == ["ann@example.com"]
    assert json.loads(outcome.result)["refused"] == {"never@example.com": "550 no such user"}


async def test_a_permanently_rejected_message_is_dead(send):
    """F40: 5xx."""
    for payload in ({"to": "never@example.com"}, {"subject": "spam"}):
        outcome, taken = await send(**payload)
        assert (outcome.retryable, taken) == (False, [])


async def test_a_deferred_message_is_retried(send, bench):
    """F40: 4xx."""
    job = await bench.claim("email", {"to": "ann@example.com", "subject": "greylist", "text": "hi"})
    outcome, taken = await send(job=job)
    assert taken == []
    outcome, taken = await send(job=await bench.again(job, outcome))
    assert isinstance(outcome, Succeeded)
    assert len(taken) == 1


async def test_only_deferred_recipients_are_retried(send, bench):
    """F40: recipients that have the message do not get it again."""
    to = ["ann@example.com", "later1@example.com", "never@example.com"]
    job = await bench.claim("email", {"to": to, "subject": "hello", "text": "hi"})
    outcome, (first,) = await send(job=job)
    assert first["to"] == ["ann@example.com"]
    outcome, (second,) = await send(job=await bench.again(job, outcome))

    assert second["to"] == ["later1@example.com"]
    result = json.loads(outcome.result)
    assert result["accepted"] == ["ann@example.com", "later1@example.com"]
    assert list(result["refused"]) == ["never@example.com"]
    assert dict(first["headers"])["Message-ID"] == dict(second["headers"])["Message-ID"] == result["message_id"]


async def test_a_message_with_unknown_outcome_is_retried_with_the_same_id(send, bench):
    """F40: a receiver can recognise the duplicate."""
    job = await bench.claim("email", {"to": "ann@example.com", "subject": "drop", "text": "hi"})
    outcome, (first,) = await send(job=job)
    outcome, (second,) = await send(job=await bench.again(job, outcome))
    assert isinstance(outcome, Succeeded)
    assert first["raw"] == second["raw"]


async def test_a_hanging_server_times_out_and_is_retried(send, bench):
    """F40."""
    outcome, taken = await send(subject="hang", timeout=0.5)
    assert (outcome.retryable, taken) == (True, [])
    nobody = {"smtp_url": "smtp+plain://127.0.0.1:1", "smtp_from": "jobs@example.org"}
    outcome = await bench.run("email", {"to": "a@example.com", "subject": "x", "text": "y"}, **nobody)
    assert outcome.retryable
    assert "cannot be reached" in outcome.failure.message


async def test_tls_and_login_follow_the_settings(bench, tmp_path):
    certificate, key = a_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=certificate)
    password = "secret%20of%20the%20mail%20server"
    for mode, scheme in (("starttls", "smtp"), ("tls", "smtps")):
        with started(tmp_path, "--mode", mode, "--certificate", certificate, "--key", key, "--login") as server:
            for user, context, kind in (
                (f"jobs:{password}", trust, Succeeded),
                ("jobs:wrong", trust, Failed),
                (f"jobs:{password}", None, Failed),
            ):
                url = f"{scheme}://{user}@localhost:{server.port}"
                made = Email(SmtpServer.parse(url, "jobs@example.org", timeout=seconds(10)), trust=context)
                outcome = await _sent_by(bench, made)
                assert isinstance(outcome, kind), (mode, user, outcome)
                assert kind is Succeeded or (outcome.retryable and "secret" not in str(outcome))
                assert ("535" in str(outcome)) is (user == "jobs:wrong")
            (got,) = server.taken
            assert (got["tls"], got["login"]) == (True, True)


async def _sent_by(bench, made):
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.worker.handlers.registry import Handler, Registry
    from holdfast.worker.handlers.signature import Arguments
    from holdfast.worker.running.runner import Runner

    registry = Registry()
    registry.add(Handler("email", made.email, "async", Arguments(made.email, "email")))
    runner = Runner(registry, bench.engine.attempts, threads=ThreadPoolExecutor(1))
    job = await bench.claim("email", {"to": "ann@example.com", "subject": "x", "text": "y"})
    task = runner.call(job)
    return await runner.run(job, task, runner.context(job, task, None))


async def test_mail_is_sent_only_to_allowed_recipients(bench, mail):
    """T16."""
    settings = {
        "smtp_url": f"smtp+plain://127.0.0.1:{mail.port}", "smtp_from": "jobs@example.org",
        "email_allow": ("example.com", "ops@example.net"),
    }  # fmt: skip
    for to, allowed in (("a@Example.com", True), ("ops@example.net", True), ("x@example.net", False)):
        job = await bench.claim("email", {"to": to, "subject": "x", "text": "y"})
        outcome, _ = await bench.attempt(job, **settings)
        assert isinstance(outcome, Succeeded if allowed else Failed), to


@pytest.mark.parametrize(
    "url, sender", [("smtp://", "a@b.c"), ("smtp+plain://u:p@h", "a@b.c"), ("smtps://h", None), ("smtp://h:x", "a@b.c")]
)
def test_an_invalid_server_setting_is_rejected_at_startup(url, sender):
    with pytest.raises(Misconfigured, match=r"^HOLDFAST_SMTP_"):
        SmtpServer.parse(url, sender, timeout=seconds(1))
