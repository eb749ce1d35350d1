"""Every documented call and setting of the source systems works as documented, on the database each names."""

import http.server
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.e2e.compat.conftest import curl, go_dsn
from tests.support.eventually import awaited

SECRET = "f3a9c2e17b5d4860a1c3e5f7092b4d6e8a0c2e4f"
ENDED = ("success", "succeeded", "completed", "failed", "dead", "cancelled")
JSON = '-H "Content-Type: application/json"'


def wait_for(status, line, **values):
    """Repeat a curl line until the job in its response has this status; return the job."""

    def found():
        job = curl(line, **values).json
        assert job["status"] == status or job["status"].lower() not in ENDED, job
        return job if job["status"] == status else None

    return awaited(found)


@pytest.mark.databases("mysql", "sqlite")
def test_system_a(start, database_url):
    """`DB_DSN`, the pool, lease, poll and backoff settings; one job per `Idempotency-Key`; `SUCCESS` when done."""
    node = start(
        "up", DB_DSN=go_dsn(database_url), PORT="0", WORKER_ID="worker-1", POLL_INTERVAL_MS="200", LEASE_SECONDS="10",
        WORKER_POOL_SIZE="4", JOB_QUEUE_SIZE="16", BACKOFF_BASE_MS="10", BACKOFF_MAX_MS="50", BACKOFF_JITTER="0.2",
        FAIL_RATE="0", HOLDFAST_COMPAT="a", HOLDFAST_DEMO="1",
    )  # fmt: skip
    url = node.url
    assert curl("curl $url/healthz", url=url).status == 200
    submit = (
        f'curl -X POST $url/jobs {JSON} -H "Idempotency-Key: demo-1" '
        """-d '{"type": "demo", "payload": {"msg": "hello"}, "max_attempts": 3}'"""
    )
    first, again = curl(submit, url=url), curl(submit, url=url)
    assert (first.status, again.status) == (201, 200)
    assert re.fullmatch("[0-9a-f]{32}", first.json["id"])
    assert again.json["id"] == first.json["id"]
    done = wait_for("SUCCESS", "curl $url/jobs/$id", url=url, id=first.json["id"])
    assert (done["type"], done["attempts"], done["max_attempts"], done["payload"]) == ("demo", 1, 3, {"msg": "hello"})
    assert {"id", "created_at", "updated_at"} <= set(done)
    retried = curl("""curl $url/jobs -d '{"type": "demo", "payload": {"fail_times": 2}}'""", url=url).json
    assert wait_for("SUCCESS", "curl $url/jobs/$id", url=url, id=retried["id"])["attempts"] == 3
    (worker,) = curl('curl -H "Authorization: Bearer $key" $url/v1/workers', url=url, key=node.admin_key).json["items"]
    assert (worker["name"].partition("/")[0], "default:4" in worker["queues"]) == ("worker-1", True)
    assert node.stop() == 0


@pytest.mark.databases("sqlite")
def test_system_a_fails_attempts_on_purpose(start, database_url):
    """`FAIL_RATE=1` fails every attempt."""
    node = start(
        "up", DB_DSN=database_url, PORT="0", FAIL_RATE="1", BACKOFF_BASE_MS="1", HOLDFAST_COMPAT="a", HOLDFAST_DEMO="1"
    )
    job = curl("""curl $url/jobs -d '{"type": "demo", "max_attempts": 2}'""", url=node.url).json
    assert wait_for("FAILED", "curl $url/jobs/$id", url=node.url, id=job["id"])["attempts"] == 2


@pytest.mark.databases("postgres", "sqlite")
def test_system_b(start, database_url):
    """`/addJob` and `/failedJobs` with a JWT; without one, 401; a repeated job is added once."""
    node = start(
        "up", DATABASE_URL=database_url, PORT="0", HOLDFAST_JWT_SECRET=SECRET, HOLDFAST_COMPAT="b", HOLDFAST_DEMO="1"
    )
    url = node.url
    token = curl(
        f'curl -X POST $url/v1/tokens -H "Authorization: Bearer $key" {JSON} -d "{{}}"', url=url, key=node.admin_key
    ).json["token"]
    assert curl("curl -X POST $url/addJob -d '{}'", url=url).status == 401
    assert curl("curl $url/failedJobs", url=url).status == 401
    add = (
        f'curl -X POST $url/addJob -H "Authorization: Bearer $token" {JSON} '
        """-d '{"type": "demo", "payload": {"fail_times": 9}, "max_attempts": 1}'"""
    )
    first, again = curl(add, url=url, token=token), curl(add, url=url, token=token)
    assert (first.status, again.status, first.json["id"]) == (201, 200, again.json["id"])

    def failed():
        line = 'curl -H "Authorization: Bearer $token" "$url/failedJobs?page=1&limit=100"'
        page = curl(line, url=url, token=token).json
        return [job for job in page["jobs"] if job["id"] == first.json["id"]]

    (job,) = awaited(failed)
    assert (job["status"], job["type"], job["attempts"]) == ("failed", "demo", 1)
    assert "attempt 1 of 9" in job["error"]


@pytest.mark.databases("mysql", "sqlite")
def test_system_c(start, database_url, tmp_path):
    """All calls of the task API with an API key, and `INSTANCE_ID`, `PORT` and `LOG_FORMAT`."""
    node = start(
        "up", DB_DSN=go_dsn(database_url), INSTANCE_ID="backend-2", PORT="0", LOG_FORMAT="text", HOLDFAST_COMPAT="c",
        HOLDFAST_DEMO="1",
    )  # fmt: skip
    values = {"url": node.url, "key": node.admin_key}
    auth = '-H "X-API-Key: $key"'
    assert curl("curl $url/api/health", **values).json == {"status": "ok"}
    assert curl("curl $url/api/tasks", **values).status == 401
    with (tmp_path / "events").open("wb") as output:
        stream = subprocess.Popen(
            ["curl", "--silent", "--no-buffer", "--noproxy", "*", "-H", f"Authorization: Bearer {values['key']}",
             f"{values['url']}/api/sse/events?tenant=default"],
            stdout=output,
        )  # fmt: skip
    try:
        awaited((tmp_path / "events").read_text)
        body = """'{"type": "demo", "payload": {"sleep": 0}}'"""
        task = curl(f"curl -X POST $url/api/tasks {auth} {JSON} -d {body}", **values).json
        done = wait_for("completed", f"curl {auth} $url/api/tasks/$id", id=task["id"], **values)
        assert (done["type"], done["attempts"], done["error"]) == ("demo", 1, None)
        awaited(lambda: re.search(rf'"id":"{task["id"]}".*"status":"completed"', (tmp_path / "events").read_text()))
    finally:
        stream.kill()
        stream.wait(30)
    body = """'[{"type": "later", "delay": "1h"}, {"type": "later"}]'"""
    batch = curl(f"curl -X POST $url/api/tasks/batch {auth} {JSON} -d {body}", **values)
    assert (batch.status, batch.json["count"]) == (201, 2)
    listed = curl(f'curl {auth} "$url/api/tasks?status=pending&type=later&page=1&limit=10"', **values).json["tasks"]
    assert {task["id"] for task in listed} == set(batch.json["ids"])
    assert curl(f'curl {auth} "$url/api/tasks?all"', **values).json["tasks"]
    cancelled = curl(f"curl -X POST {auth} $url/api/tasks/$id/cancel", id=listed[0]["id"], **values)
    assert cancelled.json["status"] == "cancelled"
    for path in ("analytics", "analytics/throughput", "analytics/types", "workers"):
        assert curl(f"curl {auth} $url/api/{path}", **values).status == 200, path
    (worker,) = curl(f"curl {auth} $url/api/workers", **values).json["items"]
    assert worker["name"].startswith("backend-2/")
    assert curl(f'curl -X POST {auth} "$url/api/demo/seed?jobs=10"', **values).json["jobs"] == 10
    assert curl(f"curl -X POST {auth} $url/api/demo/clear", **values).status == 200
    assert "listening on" in node.log


class Hook(http.server.BaseHTTPRequestHandler):
    """Receiver of webhooks that keeps what it got."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.headers["x-token"], json.loads(body)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def hook():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.got = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(30)


@pytest.fixture
def mail(tmp_path):
    """Mail server: its port, and the file with the messages."""
    file = tmp_path / "mail.jsonl"
    command = [sys.executable, "-m", "tests.support.mailserver", str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as server:
        yield int(server.stdout.readline()), file
        server.kill()


@pytest.mark.databases("postgres", "sqlite")
def test_system_d(start, database_url, mail, hook):
    """E-mail and webhook jobs, `scheduled_at`, the list by status, `/stats` and `/health`."""
    port, messages = mail
    node = start(
        "up", DB_DSN=go_dsn(database_url), PORT="0", HOLDFAST_COMPAT="d",
        HOLDFAST_SMTP_URL=f"smtp+plain://127.0.0.1:{port}", HOLDFAST_SMTP_FROM="jobs@example.com",
        HOLDFAST_WEBHOOK_ALLOW="127.0.0.1", HOLDFAST_WEBHOOK_HTTP="1",
    )  # fmt: skip
    url = node.url
    assert curl("curl $url/health", url=url).text == "ok"
    email = """'{"type": "email", "payload": {"to": "ann@example.com", "subject": "Hello", "body": "Welcome"}}'"""
    sent = curl(f"curl -X POST $url/jobs {JSON} -d {email}", url=url)
    assert (sent.status, set(sent.json), sent.json["status"]) == (201, {"id", "status"}, "pending")
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sent.json["id"])
    job = wait_for("completed", "curl $url/jobs/$id", url=url, id=sent.json["id"])
    assert job["payload"] == {"to": "ann@example.com", "subject": "Hello", "body": "Welcome"}
    assert (job["type"], job["attempts"], job["max_attempts"]) == ("email", 1, 3)
    assert job["created_at"] <= job["scheduled_at"] <= job["started_at"] <= job["completed_at"] <= job["updated_at"]
    assert "Welcome" in messages.read_text()
    webhook = {
        "url": f"http://127.0.0.1:{hook.server_port}/x", "method": "PUT", "body": {"n": 1}, "headers": {"X-Token": "t"}
    }  # fmt: skip
    body = json.dumps({"type": "webhook", "payload": webhook})
    delivered = curl(f"curl -X POST $url/jobs {JSON} -d '{body}'", url=url).json
    wait_for("completed", "curl $url/jobs/$id", url=url, id=delivered["id"])
    assert hook.got == [("t", {"n": 1})]
    payload = {"to": "a@b.example", "subject": "s", "body": "b"}
    later = {"type": "email", "payload": payload, "scheduled_at": "2099-01-31T12:00:00Z", "max_attempts": 7}
    waiting = curl(f"curl -X POST $url/jobs {JSON} -d '{json.dumps(later)}'", url=url).json
    (pending,) = curl('curl "$url/jobs?status=pending"', url=url).json
    assert (pending["id"], pending["max_attempts"]) == (waiting["id"], 7)
    expected = {"completed": 2, "failed": 0, "pending": 1, "running": 0}
    awaited(lambda: curl("curl $url/stats", url=url).json == expected)


@pytest.mark.databases("postgres", "sqlite")
def test_system_e(start, database_url):
    """Producer and consumer are separate processes; the type of a task is its action."""
    producer = start(
        "serve", DATABASE_URL=database_url, PORT="0", HOLDFAST_COMPAT="e", HOLDFAST_ADMIN_KEY=SECRET,
    )  # fmt: skip
    url = producer.url
    task = """'{"due_at": "2026-01-20T12:00:00Z", "payload": {"action": "email_user", "user_id": 42}}'"""
    made = curl(f"curl -X POST $url/tasks {JSON} -d {task}", url=url)
    assert (made.status, made.json["type"], made.json["status"]) == (201, "email_user", "PENDING")
    simple = curl("""curl -X POST $url/tasks -d '{"payload": {"action": "demo.sync"}}'""", url=url).json
    start("work", DATABASE_URL=database_url, HOLDFAST_DEMO="1", HOLDFAST_WORKER_POOL_SIZE="1")
    show = 'curl -H "Authorization: Bearer $key" $url/v1/jobs/$id'
    dead = wait_for("dead", show, url=url, id=simple["id"], key=SECRET)  # the demo has no argument `action`
    assert dead["type"] == "demo.sync"
    plain = curl("""curl -X POST $url/tasks -d '{"type": "demo", "due_at": "2026-01-20T12:00:00Z"}'""", url=url).json
    wait_for("succeeded", show, url=url, id=plain["id"], key=SECRET)
