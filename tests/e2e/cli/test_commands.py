"""Commands give the same results on a database and over a service, as text and as JSON."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.cli import render, target
from holdfast.cli.main import COMMANDS
from holdfast.cli.render import Column
from holdfast.cli.state_dir import published_url
from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from holdfast.wire.worker_protocol_codec import worker_id
from tests.support.builders import enter, take
from tests.support.eventually import awaited
from tests.support.service_thread import ADMIN, FAILS, JWT_SECRET, WORKS

UNKNOWN_ID = "01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11"
START = "from holdfast.cli.main import main; main()"


def test_a_job_can_be_submitted_listed_shown_retried_cancelled_and_deleted(ask, ask_json, node):
    job = ask_json("submit", "send", '{"to": 1}', "--queue", "mail", "--delay", "5m", "--tag", "a", "--tenant", "acme")
    assert (job["status"], job["payload"], job["tags"], job["tenant"]) == ("scheduled", {"to": 1}, ["a"], "acme")
    again = ask("submit", "send", "1", "--idempotency-key", "k").out.strip()
    assert ask("submit", "send", "1", "--idempotency-key", "k").out.strip() == again
    assert [each["id"] for each in ask_json("jobs", "list", "--queue", "mail", "--after", "1h")["items"]] == [job["id"]]
    assert ask_json("jobs", "list", "--before", "1h")["items"] == []
    assert job["id"] in ask("jobs", "list", "--status", "scheduled").out
    assert ask("jobs", "list", "--tag", "z").out == "no jobs match\n"
    shown = ask("jobs", "show", job["id"]).out
    assert all(part in shown for part in ("send  scheduled", "acme", '"to": 1', f"holdfast jobs cancel {job['id']}"))
    assert ask_json("jobs", "show", job["id"])["attempt_log"] == []

    assert ask_json("jobs", "retry", job["id"]) == {"done": [job["id"]], "refused": []}
    assert ask("jobs", "cancel", job["id"], "--reason", "wrong").out == f"cancelled {job['id']}\n"
    assert ask_json("jobs", "show", job["id"])["reason"] == "wrong"
    refused = ask("jobs", "cancel", job["id"], UNKNOWN_ID)
    assert (refused.code, refused.out) == (4, "")
    assert "already cancelled" in refused.err
    assert f"there is no job '{UNKNOWN_ID}'" in refused.err
    assert ask_json("jobs", "cancel", "--queue", "default", "--dry-run") == {
        "matched": 1,
        "changed": 0,
        "dry_run": True,
    }
    assert ask_json("jobs", "cancel", "--all", "--yes")["changed"] == 1
    assert ask("jobs", "retry", "--status", "cancelled", "--queue", "default").out == "1 set to run\n"
    assert ask("jobs", "delete", job["id"], "--yes").code == 0
    assert ask("jobs", "show", job["id"]).code == 4


@pytest.mark.databases("sqlite", "postgres")
def test_dead_letters_are_listed_grouped_replayed_and_purged(ask, ask_json, node):
    ids = [ask_json("submit", "send", "--queue", "mail")["id"] for _ in range(3)]
    node.settle(FAILS, queue="mail")
    assert {each["id"] for each in ask_json("dead", "list")["items"]} == set(ids)
    (group,) = ask_json("dead", "groups")["items"]
    assert (group["count"], group["error"]["kind"]) == (3, "SmtpError")
    assert "SmtpError: 421 try again" in ask("dead", "groups").out
    assert "SmtpError: 421 try again" in ask("jobs", "show", ids[0]).out
    assert ask("dead", "replay", "--error", group["fingerprint"], "--dry-run").out.startswith("3 would be replayed")
    assert ask_json("dead", "replay", ids[0]) == {"matched": 1, "changed": 1, "dry_run": False, "missing": 0}
    assert ask_json("dead", "replay", ids[0], UNKNOWN_ID, code=1)["missing"] == 2
    assert ask("dead", "purge", ids[1], "--yes").out == "1 deleted\n"
    unsure = ask("dead", "purge", "--all")
    assert (unsure.code, "--yes" in unsure.complaint) == (2, True)
    assert ask("dead", "replay", "--queue", "mail").out == "1 replayed\n"
    assert ask("dead", "replay", "--all").out == "no jobs match\n"


@pytest.mark.databases("sqlite")
def test_a_job_is_shown_with_its_last_traceback_and_folded_frames_of_the_engine(ask, ask_json, node):
    frame = '  File "/venv/holdfast/worker/running/runner.py", line 130, in run\n    result = await call()\n'
    own = '  File "/app/shop.py", line 7, in send\n    raise ValueError("\x1b[31mbad")\n'
    traceback = f"Traceback (most recent call last):\n{frame}{frame}{own}ValueError: bad"
    job = ask_json("submit", "send", "--queue", "mail", "--max-attempts", "1")
    node.settle(Failed(Failure("ValueError", "bad", traceback)), queue="mail")
    shown = ask("jobs", "show", job["id"]).out
    assert "  … 2 frames of holdfast\n" in shown
    assert 'raise ValueError("\ufffd[31mbad")' in shown
    assert "runner.py" not in shown


@pytest.mark.databases("sqlite")
def test_a_queue_that_was_paused_and_resumed_by_mistake_is_not_listed(ask, ask_json, node):
    ask_json("submit", "send", "--queue", "mail")
    ask("queues", "pause", "mial")
    assert {queue["name"] for queue in ask_json("queues", "list")["items"]} == {"mail", "mial"}
    ask("queues", "resume", "mial")
    ask("queues", "set", "later", "--max-running", 2)
    assert {queue["name"] for queue in ask_json("queues", "list")["items"]} == {"mail", "later"}
    ask("queues", "set", "later", "--max-running", "none")
    assert [queue["name"] for queue in ask_json("queues", "list")["items"]] == ["mail"]


@pytest.mark.databases("sqlite")
def test_answering_no_changes_nothing_and_exits_with_1(ask, ask_json, node, monkeypatch):
    job = ask_json("submit", "send", "--queue", "mail")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    ended = ask("jobs", "delete", job["id"])
    assert ended.code == 1
    assert ended.err.endswith("holdfast: nothing was changed\n")
    assert ask("jobs", "show", job["id"]).code == 0


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize(
    "arguments, message",
    [
        (["submit", "a b"], "type: wrong form: use letters, digits and _ . : / @ + -"),
        (["tenants", "set", "acme", "--weight", "2"], "create it with 'holdfast tenants create NAME'"),
        (["tenants", "set", "a b", "--weight", "2"], "'holdfast tenants list' lists them"),
        (["keys", "revoke", "a-b"], "'holdfast keys list' lists them"),
        (["workers", "drain", "w-1"], "'holdfast workers' lists them"),
    ],
)
def test_errors_name_commands_and_allowed_values(ask, arguments, message):
    ended = ask(*arguments)
    assert ended.code in (2, 4)
    assert message in ended.complaint
    assert "/v1/" not in ended.complaint


@pytest.mark.databases("sqlite")
def test_the_error_for_an_invalid_payload_names_the_command_with_the_schema(ask, node):
    node.enter()
    ended = ask("submit", "send", "[]")
    assert (ended.code, ended.complaint.endswith("see the schema of the type 'send' in 'holdfast types'")) == (2, True)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("by", ["service", "database"])
def test_a_token_is_created_with_fewer_scopes_and_a_lifetime(cli, node, database_url, by):
    service = {"HOLDFAST_API_URL": node.url, "HOLDFAST_API_KEY": node.key}
    database = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_JWT_SECRET": JWT_SECRET}
    issuer = service if by == "service" else database | {"HOLDFAST_ADMIN_KEY": node.key}
    made = json.loads(cli("keys", "token", "--scope", "read", "--expires", "5m", "--json", **issuer).out)
    assert (made["tenant"], made["scopes"]) == ("default", ["read"])
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(0) < lifetime <= timedelta(minutes=5)
    assert cli("keys", "token", "--scope", "nothing", **issuer).code == 2

    token = cli("keys", "token", "--scope", "read", "--scope", "submit", **issuer).out.strip()
    access = {"HOLDFAST_API_URL": node.url, "HOLDFAST_API_KEY": token}
    assert cli("submit", "send", **access).code == 0
    assert cli("jobs", "list", **access).code == 0
    assert cli("jobs", "cancel", "--all", "--yes", **access).code == 5

    refused = cli("keys", "token", **database)
    assert (refused.code, refused.out) == (2, "")
    assert "a token belongs to an API key" in refused.complaint


@pytest.mark.databases("sqlite")
def test_limits_pauses_webhook_secrets_and_statistics_are_managed(ask, ask_json, node):
    assert ask_json("queues", "set", "mail", "--rate", "10/s")["rate"] == {"limit": 10, "per": 1.0, "burst": 10}
    assert "10/s" in ask("queues", "list").out
    wrong = ask("queues", "set", "mail", "--rate", "fast")
    assert (wrong.code, "write 10/s" in wrong.complaint) == (2, True)

    assert ask_json("limits", "set", "--tenant", "acme", "--max-running", "2", "--rate", "100/m")["max_running"] == 2
    ask_json("limits", "set", "--tenant", "acme", "--concurrency-key", "card", "--max-running", "3")
    listed = ask("limits", "list").out
    assert "tenant acme" in listed
    assert "100/m" in listed
    assert "key card of acme" in listed
    assert ask_json("limits", "remove", "--tenant", "acme")["max_running"] is None
    assert ask("limits", "set", "--tenant", "acme").code == 2

    assert ask_json("pauses", "start", "--type", "send", "--reason", "audit", "--until", "1h")["reason"] == "audit"
    assert "type send" in ask("pauses", "list").out
    assert ask("pauses", "end", "--type", "send").out == "type send is not paused\n"
    assert ask_json("pauses", "list") == {"items": []}
    assert ask("pauses", "start").code == 2

    missing = ask("webhooks", "secret", "acme")
    assert (missing.code, "/v1/" in missing.complaint) == (4, False)
    ask_json("tenants", "create", "acme")
    assert ask_json("webhooks", "rotate-secret", "acme", "--overlap", "2d")["secret"]
    assert "was created" in ask("webhooks", "secret", "acme").out
    assert ask("webhooks", "delete-secret", "acme").code == 0
    assert ask("webhooks", "breakers").out == "no webhook destination failed recently\n"

    assert ask_json("stats", "--window", "15m", "--queue", "mail")["total"]["totals"]["dead"] == 0
    assert "submitted" in ask("stats").out
    assert ask_json("stats", "--fairness", "--window", "15m")["items"] == []


@pytest.mark.databases("sqlite")
def test_a_submission_takes_delays_between_attempts_and_uniqueness(ask, ask_json, node):
    unique = ("--unique", "payload.user", "--unique-within", "1h")
    first = ask_json("submit", "report", '{"user": 1}', *unique, "--retry", "10s,1m")
    assert ask_json("submit", "report", '{"user": 1}', *unique)["id"] == first["id"]
    assert ask_json("submit", "report", '{"user": 2}', *unique, "--retry", "base=2s,cap=5m")["id"] != first["id"]
    assert ask("submit", "report", '{"user": 1}', *unique, "--on-conflict", "reject").code == 1
    for wrong in (["--on-conflict", "reject"], ["--retry", "sometimes"], ["--retry", "bse=1s"], ["--unique", "user"]):
        assert ask("submit", "report", *wrong).code == 2, wrong


@pytest.mark.databases("sqlite")
def test_queues_workers_tenants_and_keys_are_managed(ask, ask_json, node):
    ask("submit", "send", "--queue", "mail")
    assert ask("queues", "pause", "mail", "--reason", "down", "--until", "30m").out.startswith(
        "mail is paused, ends in "
    )
    (queue,) = ask_json("queues", "list")["items"]
    assert (queue["paused"], queue["reason"], queue["statuses"]["ready"]) == (True, "down", 1)
    assert "mail" in ask("queues", "list").out
    assert ask("queues", "resume", "mail").out == "mail is open\n"
    assert ask_json("workers") == {"items": []}
    assert ask("workers").out.startswith("no workers: start one")
    assert ask("types").out.startswith("no job types yet: ")
    worker = node.enter("n")
    node.do(lambda engine: engine.workers.renew(worker_id(worker), seconds(60), memory=300 * 2**20))
    assert all(part in ask("workers").out for part in (worker, "alive", "0/2"))
    (job_type,) = ask_json("types")["items"]
    assert (job_type["type"], job_type["queues"], job_type["workers"]) == ("send", ["mail"], 1)
    assert "to, [cc]" in ask("types").out
    drained = ask("workers", "drain", worker)
    assert (drained.code, drained.out.splitlines()[0]) == (0, "draining 1 worker, with 0 jobs running:")
    (row,) = ask_json("workers", "drain", worker)["items"]
    assert (row["draining"], row["memory"], row["actions"]) == (True, 300 * 2**20, [])
    assert "draining" in ask("workers").out
    assert ask("workers", "drain", "w-0").code == 4
    assert ask_json("tenants", "create", "acme", "--weight", "3", "--backlog", "10")["weight"] == 3
    changed = ask_json("tenants", "set", "acme", "--weight", "none", "--rate", "5", "--rate-window", "60s")
    assert (changed["weight"], changed["rate_window"], changed["backlog"]) == (None, 60, 10)
    assert ask("tenants", "create", "acme").code == 1
    assert "acme" in ask("tenants", "list").out
    made = ask("keys", "create", "shop", "--scope", "read", "--tenant", "acme", "--expires", "1d")
    assert made.out.startswith("hf_")
    (key,) = ask_json("keys", "list")["items"]
    assert key["id"] in made.err
    assert ask("keys", "revoke", key["id"]).out == f"revoked {key['id']} (shop)\n"
    assert "revoked" in ask("keys", "list").out
    assert ask("keys", "revoke", "0" * 16).code == 4
    snapshot = ask_json("top", "--once")
    assert snapshot["stats"]["statuses"]["ready"] == 1
    assert "1 ready" in ask("top", "--once").out


@pytest.mark.databases("sqlite")
def test_payloads_come_from_files_standard_input_and_lines(ask, ask_json, tmp_path, monkeypatch):
    (tmp_path / "one.json").write_text('{"n": 1}')
    (tmp_path / "many.jsonl").write_text('{"n": 2}\n\n[3]\n')
    assert ask_json("submit", "send", "@one.json")["payload"] == {"n": 1}
    with (tmp_path / "one.json").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert ask_json("submit", "send", "-")["payload"] == {"n": 1}
    assert ask_json("submit", "send", "--lines", "many.jsonl")["submitted"] == 2
    assert len(ask_json("jobs", "list")["items"]) == 4
    (tmp_path / "bad.jsonl").write_text('1\n{"n": \n')
    refused = ask("submit", "send", "--lines", "bad.jsonl")
    assert (refused.code, "line 2 is not JSON" in refused.complaint) == (2, True)
    for bad in ("@absent.json", "{no json"):
        assert ask("submit", "send", bad).code == 2
    assert len(ask_json("jobs", "list")["items"]) == 4


@pytest.mark.databases("sqlite")
def test_submit_waits_for_a_job_and_tail_follows_events(database_url, environment, node, tmp_path):
    """Runs in processes: `submit --wait` must exit by itself and print the result."""
    target = {"HOLDFAST_API_URL": node.url, "HOLDFAST_API_KEY": node.key}

    def start(*arguments):
        return subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=tmp_path, env=environment | target, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    with start("submit", "send", "1", "--wait") as waits, start("jobs", "tail", "--json") as follows:
        try:
            job = awaited(lambda: node.settle(WORKS))[0]
            out, err = waits.communicate(timeout=60)
            assert (waits.returncode, json.loads(out)) == (0, {"sent": 1})
            assert err.startswith(f"submitted {job.id}\n")
            # `tail` shows events after it connected, so submit jobs until it has printed one.
            node.do(lambda engine: _submit_until_output(engine, follows))
            events = (json.loads(line) for line in follows.stdout)
            assert any(each["event"] == "job" and each["data"]["type"] == "again" for each in events)
            follows.send_signal(signal.SIGINT)
            assert (follows.wait(60), follows.stderr.read().strip()) == (130, "")
        finally:
            for process in (waits, follows):
                process.kill()


async def _submit_until_output(engine, process):
    import asyncio
    import select

    from holdfast.model.job import JobSpec

    readable = []
    while not readable:
        await engine.jobs.submit(JobSpec("again", queue="other"))
        readable, _, _ = await asyncio.to_thread(select.select, [process.stdout], [], [], 0.1)
    await engine.jobs.submit(JobSpec("again", queue="other"))  # the first output may belong to another event


@pytest.mark.databases("sqlite")
def test_tail_exits_when_the_job_has_finished(ask, node):
    done = ask("submit", "send").out.strip()
    node.settle(WORKS)
    ended = ask("jobs", "tail", done)
    assert (ended.code, json.loads(ended.out)) == (0, {"sent": 1})
    dead = ask("submit", "send").out.strip()
    node.settle(FAILS)
    ended = ask("jobs", "tail", dead)
    assert (ended.code, ended.out) == (1, "dead after 1 of 5 attempts: SmtpError: 421 try again\n")
    assert ask("jobs", "tail", UNKNOWN_ID).code == 4


# Errors


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["jobs", "cancel"], "select the jobs to cancel"),
        (["jobs", "cancel", UNKNOWN_ID, "--queue", "mail"], "ids and filters exclude each other"),
        (["dead", "purge"], "select the jobs to purge"),
        (["queues", "set", "mail"], "--max-running or --rate"),
        (["queues", "set", "mail", "--max-running", "many"], "neither a whole number nor 'none'"),
        (["tenants", "set", "acme"], "nothing to set"),
        (["jobs", "list", "--after", "yesterday"], "is not a time"),
        (["jobs", "list", "--status", "asleep"], "'asleep' is not one of"),
        (["submit", "send", "1", "--lines", "x"], "--lines cannot be combined with PAYLOAD"),
        (["jobs", "list", "--api", "http://127.0.0.1:1", "--url", "sqlite:///x.db"], "exclude each other"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
)
def test_misuse_prints_one_line_and_exits_with_2(cli, arguments, message):
    ended = cli(*arguments)
    assert ended.code == 2
    assert message in ended.complaint


def test_without_a_target_the_error_names_the_fix_and_no_file_is_created(cli, tmp_path):
    ended = cli("jobs", "list")
    assert ended.code == 2
    assert all(part in ended.complaint for part in ("holdfast up", "--api", "--url"))
    assert cli("jobs", "list", "--url", "sqlite:///absent.db").complaint.startswith("--database-url: no such file")
    assert list(tmp_path.iterdir()) == []


def test_an_unavailable_service_exits_with_3_and_a_missing_key_with_2(cli, monkeypatch):
    monkeypatch.setattr(target, "RETRY_TIMEOUT_S", 0.0)
    away = cli("jobs", "list", "--api", "http://127.0.0.1:1", "--key", "x")
    assert (away.code, "cannot be reached" in away.complaint) == (3, True)
    assert (keyless := cli("jobs", "list", "--api", "http://127.0.0.1:1")).code == 2
    assert "--key" in keyless.complaint


@pytest.mark.databases("sqlite")
def test_an_invalid_or_insufficient_key_exits_with_5(cli, holdfast, node):
    stranger = holdfast("jobs", "list", "--api", node.url, "--key", "hf_none")
    assert (stranger.code, "--key" in stranger.complaint) == (5, True)
    token = cli("keys", "create", "x", "--scope", "submit", "--api", node.url, "--key", ADMIN).out.strip()
    assert cli("jobs", "list", "--api", node.url, "--key", token).code == 5
    assert cli("submit", "send", "--api", node.url, "--key", token).code == 0


@pytest.mark.databases("sqlite")
def test_commands_find_the_up_of_this_folder_or_its_database(cli, node, database_url, tmp_path):
    home = tmp_path / ".holdfast"
    home.mkdir(mode=0o700)
    (home / "admin.key").write_text(ADMIN)
    with published_url(node.url, home):
        assert cli("submit", "send").code == 0
        assert len(json.loads(cli("jobs", "list", "--json").out)["items"]) == 1
    with published_url("http://127.0.0.1:1", home):
        assert (tmp_path / "holdfast.db").exists()
        assert len(json.loads(cli("jobs", "list", "--json").out)["items"]) == 1
    assert len(json.loads(cli("jobs", "list", "--json").out)["items"]) == 1
    assert cli("jobs", "list", "--json", HOLDFAST_API_URL="http://127.0.0.1:1", HOLDFAST_API_KEY="x").code == 3


@pytest.mark.databases("sqlite")
def test_commands_send_no_key_to_the_address_of_an_up_that_was_killed(cli, tmp_path):
    """T45: another program may listen at its port."""
    home = tmp_path / ".holdfast"
    home.mkdir(mode=0o700)
    (home / "admin.key").write_text(ADMIN)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        (home / "url").write_text(f"http://127.0.0.1:{server.getsockname()[1]}\n")
        assert "no service and no database found here" in cli("jobs", "list").err
        with pytest.raises(BlockingIOError):
            server.accept()


# Output


def rendered_lines(width, rows, columns):
    out = Console(width=width, file=Path(os.devnull).open("w"), record=True, force_terminal=False)  # noqa: SIM115
    try:
        render.print_list(rows, columns, none="none", out=out)
        return [line.rstrip() for line in out.export_text().splitlines()]
    finally:
        out.file.close()


COLUMNS = [
    Column("id", lambda row: row[0]),
    Column("spare", lambda row: row[1], drop_order=2),
    Column("sparest", lambda row: row[2], drop_order=3),
    Column("text", lambda row: row[3], text=True),
]
ROW = ("01981f5e", "kept", "dropped", "a long text that may be shortened if needed")


@pytest.mark.parametrize(
    "width, last",
    [
        (90, "01981f5e   kept    dropped   a long text that may be shortened if needed"),
        (50, "01981f5e   kept    dropped   a long text that may…"),
        (36, "01981f5e   kept    a long text that…"),
        (24, "01981f5e   a long text …"),
        (4, "01981f5e   a l…"),
    ],
)
def test_a_table_fits_the_terminal_and_ids_stay_whole(width, last):
    assert rendered_lines(width, [ROW], COLUMNS)[-1] == last


def test_control_characters_are_removed_from_output(capsys):
    render.print_list([("\x1b[2Jevil\nname", None, True, 1234567)], COLUMNS, none="none")
    shown = capsys.readouterr().out.splitlines()[-1].split()
    assert shown == ["[2Jevil", "name", "–", "yes", "1,234,567"]


@pytest.mark.parametrize(
    "seconds, text", [(0.25, "0.2s"), (59, "59s"), (61, "1m 1s"), (3_600, "1h"), (90_061, "1d 1h"), (None, "–")]
)
def test_durations_are_printed_in_their_two_largest_units(seconds, text):
    assert render.span(seconds) == text


def test_every_command_has_help_with_an_example(cli):
    import click

    from holdfast.cli.main import cli as group

    def walk(command, path):
        for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
            walk(inner, [*path, name])
        shown = cli(*path, "--help")
        assert shown.code == 0
        assert "\x08" not in shown.out
        assert "\\b" not in shown.out
        assert f"  holdfast {' '.join(path)}" in shown.out.split("Options:")[0].partition("\n")[2], path

    context = click.Context(group)
    for name in COMMANDS:
        walk(group.get_command(context, name), [name])


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(cli, shell):
    assert "_HOLDFAST_COMPLETE" in cli("completion", shell).out


def test_bash_completes_commands_and_flags(holdfast):
    def complete(words):
        ended = holdfast(_HOLDFAST_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
        return [line.partition(",")[2] for line in ended.out.splitlines()]

    assert complete("holdfast do") == ["doctor"]
    assert complete("holdfast jobs ca") == ["cancel"]
    assert "--status" in complete("holdfast jobs list --st")


@pytest.mark.databases("sqlite")
def test_a_job_whose_steps_do_not_fit_into_a_response_is_shown_whole(ask_json, node):
    keys = [f"step-{number:02}" for number in range(12)]

    async def record(engine):
        receipt = await engine.jobs.submit(JobSpec("send", {}, tenant="acme"))
        worker = await enter(engine.store)
        (job,) = await take(engine.store, worker, Lane("default", "acme", 0))
        for key in keys:
            step = Step(key, StepState.DONE, b'"' + b"x" * 200_000 + b'"')
            assert await engine.attempts.record_step(HeldJob(job.id, job.fence, worker), step)
        return str(receipt.id)

    shown = ask_json("jobs", "show", node.do(record))
    assert [step["key"] for step in shown["steps"]] == keys
    assert shown["truncated"] == []


@pytest.mark.databases("sqlite")
def test_waiting_for_a_job_that_no_worker_handles_says_so(ask, node):
    why = "no live worker handles jobs of type 'send' in the queue 'mail'"
    ended = ask("submit", "send", "--queue", "mail", "--wait-for", "1ms")
    assert ended.err.count(why) == 1
    node.do(lambda engine: enter(engine.store, queues="mail"))
    assert why not in ask("submit", "send", "--queue", "mail", "--wait-for", "1ms").err
