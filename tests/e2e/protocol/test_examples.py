"""The example workers run their jobs on a real node, stop lost jobs, and drain. Skipped without their toolchain."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from holdfast.client import Client
from tests.e2e.clients.conftest import ADMIN
from tests.support.eventually import awaited
from tests.support.toolchains import ROOT

EXAMPLES = ROOT / "examples"
WORKERS = ("go/main.go", "java/Worker.java", "python/jobs.py", "python-http/worker.py")
WORKERS += ("typescript/worker.ts",)
WAIT_S = 90

pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.timeout(300)]


@pytest.fixture
def client(service):
    with Client(service.url, ADMIN) as connected:
        yield connected


@pytest.fixture
def start(service):
    """Return a function that starts a worker; keywords are environment variables."""
    started = []

    def run(*command, **variables):
        settings = {"HOLDFAST_API_URL": service.url, "HOLDFAST_API_KEY": ADMIN, "HOLDFAST_LEASE_SECONDS": "9"}
        settings["PYTHONPATH"] = os.pathsep.join([str(EXAMPLES / "python"), str(ROOT / "src")])
        worker = subprocess.Popen(list(map(str, command)), env={**os.environ, **settings, **variables})
        started.append(worker)
        return worker

    yield run
    for worker in started:
        if worker.poll() is None:
            worker.kill()
        worker.wait(WAIT_S)


@pytest.fixture(params=["python-http", "python", "java"])
def command(request, tmp_path):
    """Command of an example that has the handlers `welcome` and `report`."""
    if request.param == "python-http":
        return [sys.executable, EXAMPLES / "python-http" / "worker.py"]
    if request.param == "python":
        return [
            sys.executable,
            "-m",
            "holdfast",
            "work",
            "jobs:app",
            "--queues",
            "mail:2,reports:2",
            "--processes",
            "1",
        ]
    if shutil.which("javac") is None:
        pytest.skip("MISSING TOOLCHAIN, this test did not run: install a JDK, version 17 or newer")
    subprocess.run(["javac", "-d", tmp_path, "Worker.java"], cwd=EXAMPLES / "java", check=True)
    return ["java", "-cp", tmp_path, "Worker"]


def drained(worker):
    worker.send_signal(signal.SIGTERM)
    return worker.wait(WAIT_S) == 0


def finished(client, job):
    return awaited(lambda: (found := client.get(job.id)).finished_at and found)


@pytest.mark.parametrize("path", WORKERS)
def test_an_example_is_short_enough_to_read_at_once(path):
    lines = (EXAMPLES / path).read_text().splitlines()
    assert 60 <= len(lines) <= 120
    assert max(map(len, lines)) <= 120


@pytest.mark.slow
def test_an_example_runs_its_jobs_and_departs(client, start, command):
    worker = start(*command)
    sent = client.submit("welcome", {"address": "ada@example.org"}, queue="mail")
    wrong = client.submit("welcome", {"address": "nowhere"}, queue="mail")
    report = client.submit("report", {"days": 3}, queue="reports")

    assert client.wait(sent.id, WAIT_S)["message_id"].endswith(" to ada@example.org, 24 characters")
    assert client.wait(report.id, WAIT_S) == {"days": 3, "revenue": 303}
    assert finished(client, wrong).status == "dead"
    assert [step.key for step in client.steps(sent.id)] == ["render", "send"]
    assert drained(worker)
    assert list(client.workers()) == []


@pytest.mark.slow
def test_an_example_releases_a_job_that_outlasts_the_drain_time(client, start, command):
    worker = start(*command, HOLDFAST_DRAIN_SECONDS="1")
    report = client.submit("report", {"days": 1_000_000}, queue="reports")
    awaited(lambda: client.get(report.id).progress)

    assert drained(worker)
    assert (client.get(report.id).status, client.get(report.id).attempts) == ("ready", 0)


@pytest.mark.slow
def test_the_loop_in_plain_python_fails_a_job_whose_result_is_not_json(client, start):
    program = """
from holdfast_worker import Worker
worker = Worker()
worker.handler("number")(lambda job: float("nan"))  # Python writes it as NaN, and the node refuses that
worker.handler("object")(lambda job: object())
worker.run()
"""
    worker = start(sys.executable, "-c", program, PYTHONPATH=str(EXAMPLES / "python-http"))
    number, thing = (client.submit(each, {}, max_attempts=2) for each in ("number", "object"))

    refused, failed = finished(client, number), finished(client, thing)
    assert (refused.status, refused.attempts, failed.status, failed.attempts) == ("dead", 1, "dead", 2)
    assert refused.attempt_log[-1].error.message.startswith("the node refused the outcome: 4")
    assert failed.attempt_log[-1].error.message == "Object of type object is not JSON serializable"
    assert drained(worker)


@pytest.mark.slow
def test_the_python_example_submits_its_jobs(client, start):
    assert start(sys.executable, EXAMPLES / "python" / "jobs.py").wait(WAIT_S) == 0
    assert {job.type for job in client.list()} == {"welcome", "report"}
