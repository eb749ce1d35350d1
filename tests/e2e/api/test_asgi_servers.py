"""`holdfast.asgi:app` on real ASGI servers: uvicorn and Granian, as processes of their own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from tests.e2e.api.conftest import ADMIN
from tests.support.eventually import awaited
from tests.support.nodes import ROOT
from tests.support.servers.process import free_port

pytestmark = pytest.mark.databases("sqlite")

COMMANDS = {
    "uvicorn": ["-m", "uvicorn", "holdfast.asgi:app", "--host", "127.0.0.1", "--port"],
    "granian": ["-m", "granian", "--interface", "asgi", "holdfast.asgi:app", "--host", "127.0.0.1", "--port"],
}


class AsgiServer:
    """ASGI server process that runs `holdfast.asgi:app`."""

    def __init__(self, name, database_url, folder):
        self._command = [sys.executable, *COMMANDS[name]]
        self._database_url = database_url
        self._log = Path(folder) / f"{name}.log"
        self.process = None
        self.url = ""

    def start(self, *options, **variables):
        port = free_port()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        settings = {
            "HOLDFAST_DATABASE_URL": self._database_url,
            "HOLDFAST_ADMIN_KEY": ADMIN,
            "PYTHONPATH": str(ROOT / "src"),
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._command, str(port), *options],
                cwd=self._log.parent, env=inherited | settings | variables, stdout=log, stderr=log,
            )  # fmt: skip
        self.url = f"http://127.0.0.1:{port}"

    def wait_ready(self):
        def ready():
            assert self.process.poll() is None, self.log
            with contextlib.suppress(httpx2.TransportError):
                return httpx2.get(f"{self.url}/readyz", trust_env=False).status_code == 200

        awaited(ready)

    def stop(self):
        """Send SIGTERM; return the seconds until the process has ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        return time.monotonic() - began

    @property
    def log(self):
        return self._log.read_text()


@pytest.fixture(params=COMMANDS)
def server(request, database_url, tmp_path):
    """ASGI server that is not started yet."""
    server = AsgiServer(request.param, database_url, tmp_path)
    yield server
    if server.process is not None and server.process.poll() is None:
        server.process.kill()
        server.process.wait(30)


@pytest.fixture
def client(server):
    server.start()
    server.wait_ready()
    headers = {"authorization": f"Bearer {ADMIN}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def submit(client, **fields):
    response = client.post("/v1/jobs", json={"type": "send", **fields})
    assert response.status_code == 201, response.text
    return response.json()


def test_a_client_submits_and_reads_a_job(client):
    job = submit(client, payload={"to": "ann"})
    assert client.get(f"/v1/jobs/{job['id']}").json()["payload"] == {"to": "ann"}


def test_a_request_without_a_valid_key_is_rejected(client):
    for headers in ({"authorization": "Bearer wrong"}, {"authorization": ""}):
        response = client.get("/v1/jobs", headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized")


def test_an_oversized_body_is_rejected(client):
    response = client.post("/v1/jobs", json={"type": "send", "payload": "x" * 3_000_000})
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


def test_a_long_poll_returns_a_job_that_is_submitted_later(client):
    worker = client.post("/v1/leases", json={"queues": ["mail"], "limit": 1}).json()["worker"]
    claimed = []

    def poll():
        body = {"worker": worker, "queues": ["mail"], "limit": 1, "wait": 20}
        claimed.append(client.post("/v1/leases", json=body).json()["jobs"])

    polling = threading.Thread(target=poll)
    polling.start()
    job = submit(client, queue="mail")
    polling.join(60)
    assert [each["id"] for each in claimed[0]] == [job["id"]]


def test_an_event_stream_delivers_events_and_ends_with_its_client(client):
    with client.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        assert stream.status_code == 200
        next(lines)
        job = submit(client)
        assert any(job["id"] in line for line in lines)
        assert "holdfast_node_streams 1" in client.get("/metrics").text
    awaited(lambda: "holdfast_node_streams 0" in client.get("/metrics").text)


def test_maintenance_runs(server, client):
    """A scheduled job becomes ready when it is due, which only maintenance does."""
    job = submit(client, delay=0.2)
    awaited(lambda: client.get(f"/v1/jobs/{job['id']}").json()["status"] == "ready")


def test_sigterm_ends_streams_and_long_polls_and_closes_the_engine(server, client):
    """F05: neither waits for the other, although ASGI servers report the shutdown only after all responses."""
    worker = client.post("/v1/leases", json={"queues": ["mail"], "limit": 1}).json()["worker"]
    started, outcome = threading.Event(), {}

    def read_events():
        with client.stream("GET", "/v1/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            started.set()
            outcome["events"] = list(lines)

    def poll():
        body = {"worker": worker, "queues": ["mail"], "limit": 1, "wait": 30}
        response = client.post("/v1/leases", json=body)
        outcome["poll"] = (response.status_code, response.json()["jobs"])

    threads = [threading.Thread(target=read_events), threading.Thread(target=poll)]
    for thread in threads:
        thread.start()
    assert started.wait(60)
    time.sleep(0.5)  # the poll has no visible sign that it waits
    assert server.stop() < 20
    for thread in threads:
        thread.join(60)
    assert outcome["poll"] == (200, [])
    assert any("stopping" in line for line in outcome["events"]), outcome["events"]
    assert "Traceback" not in server.log, server.log


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"HOLDFAST_ADMIN_KEY": "short"}, "holdfast: HOLDFAST_ADMIN_KEY: it has 5 bytes"),
        ({"HOLDFAST_DATABASE_URL": "nonsense://x"}, "holdfast: HOLDFAST_DATABASE_URL: "),
        ({"HOLDFAST_TLS_CERT": "chain.pem"}, "holdfast: HOLDFAST_TLS_CERT: the ASGI server terminates TLS here"),
    ],
)
def test_the_server_does_not_start_with_wrong_settings(server, variables, text):
    server.start(**variables)
    assert server.process.wait(60) != 0
    assert text in server.log


async def test_a_server_without_lifespan_gets_a_response_that_says_so():
    from holdfast.asgi import NodeApplication

    sent = []

    async def send(message):
        sent.append(message)

    await NodeApplication()({"type": "http"}, None, send)
    assert sent[0]["status"] == 503
    assert "without --lifespan off" in json.loads(sent[1]["body"])["detail"]
