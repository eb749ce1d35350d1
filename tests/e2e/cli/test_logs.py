"""Logs have one line per record, as text or as JSON."""

import io
import json
import logging
import signal
import subprocess
import sys

import pytest

from holdfast.telemetry import logs
from holdfast.telemetry.emit import log_event, logs_successes
from holdfast.telemetry.events import AttemptFinished, LoopFailed
from tests.support.eventually import awaited

APP = """
import asyncio, os, signal
from holdfast import CONTEXT, Context, Holdfast

app = Holdfast()

@app.job
async def mail(to: str, *, ctx: Context = CONTEXT) -> None:
    ctx.log("sent", to=to, text="two words")

@app.job
def refuse(to: str) -> None:
    raise ValueError(f"no such address: {to}")

@app.job(isolation="process")
def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)

@app.job(timeout=0.1)
async def hang() -> None:
    await asyncio.Event().wait()
"""


def an_attempt(**changes):
    given = {
        "job_id": "01a1", "job_type": "mail", "queue": "mails", "tenant": "acme", "attempt": 1, "max_attempts": 2,
        "outcome": "failed", "status": "retrying", "seconds": 0.25, "retry_in": 4.0, "error": "ValueError: no",
        "fingerprint": "f00d", "traceback": "Traceback (most recent call last):\nValueError: no\n",
    }  # fmt: skip
    return AttemptFinished(**given | changes)


@pytest.fixture
def set_up_logs():
    """Return a function that sets up logging in a format and returns the stream it writes to."""
    log = logging.getLogger("holdfast")
    before = (log.handlers[:], log.propagate, log.level)
    stream = io.StringIO()

    def set_up(log_format, level="info"):
        logs.set_up(log_format, level, stream=stream)
        return stream

    yield set_up
    logging.getLogger(logs.ATTEMPTS).setLevel(logging.NOTSET)
    log.handlers[:], log.propagate = before[:2]
    log.setLevel(before[2])


def test_text_has_time_level_and_message_in_one_line(set_up_logs):
    stream = set_up_logs("text")
    logging.getLogger("holdfast").warning("reclaimed\n%d jobs", 3)
    at, level, message = stream.getvalue().split(" ", 2)
    assert at.endswith("Z")
    assert (level, message) == ("WARNING", "reclaimed\\n3 jobs\n")


def test_json_includes_the_extra_fields_of_a_record(set_up_logs):
    stream = set_up_logs("json")
    logging.getLogger("holdfast.worker").warning("it failed", extra={"loop": "reap", "failures": 2, "what": object})
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "level": "warning",
        "logger": "holdfast.worker",
        "message": "it failed",
        "loop": "reap",
        "failures": 2,
        "what": "<class 'object'>",
    }


def test_json_includes_the_traceback_of_an_exception(set_up_logs):
    stream = set_up_logs("json")
    try:
        raise KeyError("bug")  # noqa: TRY301
    except KeyError:
        logging.getLogger("holdfast").exception("odd")
    (line,) = stream.getvalue().splitlines()
    assert "KeyError: 'bug'" in json.loads(line)["traceback"]


def test_setting_up_again_replaces_the_first_handler(set_up_logs):
    stream = set_up_logs("text")
    set_up_logs("json")
    logging.getLogger("holdfast").info("once")
    assert stream.getvalue().count("once") == 1


def test_importing_does_not_set_up_logging(holdfast):
    start = "import holdfast.compose, logging; print(logging.getLogger('holdfast').handlers, logging.root.handlers)"
    assert holdfast(start=start).out == "[] []\n"


def test_commands_write_logs_in_the_configured_format(holdfast):
    start = (
        "import logging, holdfast.cli.commands.migrate as m\n"
        "async def up(settings): logging.getLogger('holdfast').warning('hello'); return []\n"
        "m._up = up\n"
        "from holdfast.cli.main import main; main(['migrate'])"
    )
    assert json.loads(holdfast(start=start, HOLDFAST_LOG_FORMAT="json").err)["message"] == "hello"
    assert holdfast(start=start).err.endswith(" WARNING hello\n")


def test_text_ends_with_the_fields_of_a_record(set_up_logs):
    stream = set_up_logs("text")
    fields = {"to": "ada", "text": 'two "words"', "lines": "a\nb"}
    logging.getLogger("holdfast.job").info("sent", extra={"job_id": "01a1", "fields": fields})
    assert stream.getvalue().endswith(' INFO sent job_id=01a1 to=ada text="two \\"words\\"" lines=a\\nb\n')


def test_a_failed_attempt_is_one_warning_without_its_traceback(set_up_logs):
    stream = set_up_logs("text")
    log_event(an_attempt())
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(
        " WARNING mail: attempt 1 of 2 failed after 0.25 s, runs again in 4 s: ValueError: no"
        " job_id=01a1 queue=mails tenant=acme fingerprint=f00d"
    )


def test_the_last_attempt_is_an_error_with_its_traceback(set_up_logs):
    stream = set_up_logs("text")
    log_event(an_attempt(attempt=2, status="dead"))
    line, *traceback = stream.getvalue().splitlines()
    assert " ERROR mail: attempt 2 of 2 failed after 0.25 s, the job is dead: ValueError: no " in line
    assert traceback == ["Traceback (most recent call last):", "ValueError: no"]


def test_json_has_the_fields_of_an_attempt(set_up_logs):
    stream = set_up_logs("json")
    log_event(an_attempt(status="dead"))
    entry = json.loads(stream.getvalue())
    assert (entry["level"], entry["job_id"], entry["fingerprint"]) == ("error", "01a1", "f00d")
    assert entry["traceback"].endswith("ValueError: no\n")
    assert "text_fields" not in entry


def test_debug_logs_successes_and_every_traceback(set_up_logs):
    stream = set_up_logs("text", "debug")
    assert logs_successes()
    log_event(an_attempt(outcome="succeeded", status="succeeded", error="", fingerprint="", traceback=""))
    log_event(an_attempt())
    lines = stream.getvalue().splitlines()
    assert " DEBUG mail: attempt 1 of 2 succeeded after 0.25 s job_id=01a1" in lines[0]
    assert lines[-1] == "ValueError: no"


def test_a_success_is_not_logged_at_the_default_level(set_up_logs):
    stream = set_up_logs("text")
    assert not logs_successes()
    log_event(an_attempt(outcome="succeeded", status="succeeded", error="", fingerprint="", traceback=""))
    assert stream.getvalue() == ""


def test_a_terminal_shows_some_of_many_successes_and_counts_the_others(set_up_logs, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("time.time", lambda: 1_000.5)
    stream = set_up_logs("terminal")
    success = an_attempt(outcome="succeeded", status="succeeded", error="", fingerprint="", traceback="")
    for _ in range(logs.MAX_SUCCESSES_PER_S + 32):
        log_event(success)
    monkeypatch.setattr("time.time", lambda: 1_001.5)
    log_event(success)
    lines = stream.getvalue().splitlines()
    lines = [line for line in lines if line]
    assert len(lines) == logs.MAX_SUCCESSES_PER_S + 1
    assert "(and 32 more that are not shown)" in lines[-1]


def test_a_maintenance_loop_that_keeps_failing_is_logged_ever_more_rarely(set_up_logs):
    stream = set_up_logs("text")
    for failures in range(1, 101):
        log_event(LoopFailed(loop="reap", error="bug", failures=failures))
    assert len(stream.getvalue().splitlines()) == 7


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_worker_logs_each_failed_attempt(holdfast, tmp_path, environment, log_format):
    """A handler that raises, hangs or crashes its process leaves a line in the log of `work`."""
    (tmp_path / "shop.py").write_text(APP)
    assert holdfast("migrate").code == 0
    for kind, payload in (("mail", '{"to": "ada"}'), ("refuse", '{"to": "ada"}'), ("crash", "{}"), ("hang", "{}")):
        assert holdfast("submit", kind, payload, "--max-attempts", 1).code == 0
    log = tmp_path / "log"
    with log.open("w") as stream:
        worker = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "work", "shop:app", "--processes", "1"],
            cwd=tmp_path, env=environment | {"HOLDFAST_LOG_FORMAT": log_format}, stderr=stream,
        )  # fmt: skip
    try:
        awaited(lambda: log.read_text().count("the job is dead") == 3 and "sent" in log.read_text(), within=40)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)
    text = log.read_text()
    for expected in (
        "ValueError: no such address: ada",
        "signal SIGSEGV",
        "exceeded its timeout of 0.1 s",
        "in refuse",
    ):
        assert expected in text
    if log_format == "json":
        entries = [json.loads(line) for line in text.splitlines()]
        assert next(entry for entry in entries if entry["message"] == "sent")["fields"]["to"] == "ada"
    else:
        assert 'to=ada text="two words"' in text
