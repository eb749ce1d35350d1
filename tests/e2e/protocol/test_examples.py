"""The example workers run their jobs on a real node, stop lost jobs, and drain. Skipped without their toolchain."""

import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from holdfast.client import Client
from tests.e2e.clients.conftest import ADMIN
from tests.support.eventually import awaited
from tests.support.slow_site import SlowSite
from tests.support.toolchains import ROOT

EXAMPLES = ROOT / "examples"
WORKERS = ("curl/worker.sh", "go/main.go", "java/Worker.java", "python/jobs.py", "python-http/worker.py")
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


@pytest.fixture
def curl_worker(start):
    """Return a function that starts the worker in bash."""
    missing = [name for name in ("bash", "curl") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"MISSING TOOLCHAIN, this test did not run: install {' and '.join(missing)}")
    return lambda **variables: start(EXAMPLES / "curl" / "worker.sh", **variables)


@pytest.fixture
def site():
    with SlowSite() as running:
        yield running


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


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["jq", "python3"])
def test_the_curl_worker_runs_its_jobs_and_departs(client, curl_worker, site, tmp_path, reader):
    if shutil.which(reader) is None:
        pytest.skip(f"MISSING TOOLCHAIN, this test did not run: install {reader}")
    programs = tmp_path / "programs"  # without the other reader of JSON
    programs.mkdir()
    for name in ("bash", "cat", "curl", "cut", "dirname", "du", "mktemp", "rm", "sleep", "tail", "touch", reader):
        (programs / name).symlink_to(shutil.which(name))
    worker = curl_worker(PATH=str(programs))
    up = client.submit("site.check", {"url": site.url}, queue="ops")
    size = client.submit("folder.size", {"path": str(programs)}, queue="ops")
    wrong = client.submit("site.check", {"url": 'no "address"'}, queue="ops")
    missing = client.submit("folder.size", {"path": str(tmp_path / "none")}, queue="ops", max_attempts=2)

    assert client.wait(up.id, WAIT_S)["status"] == 204
    assert client.wait(size.id, WAIT_S)["kilobytes"] >= 0
    dead = finished(client, wrong)
    assert (dead.status, dead.attempts) == ("dead", 1)
    assert dead.attempt_log[-1].error.message.strip() == "payload.url: 'no \"address\"' is no http address"
    assert finished(client, missing).attempts == 2
    assert drained(worker)
    assert list(client.workers()) == []


@pytest.mark.slow
def test_the_curl_worker_renews_its_lease_while_a_job_runs(client, curl_worker, site):
    curl_worker(HOLDFAST_LEASE_SECONDS="6")
    job = client.submit("site.check", {"url": f"{site.url}/slow"}, queue="ops")
    assert site.arrived.wait(WAIT_S)
    [first] = client.workers()
    awaited(lambda: client.workers()[0].lease_until > first.lease_until + timedelta(seconds=6))
    site.answer.set()

    assert client.wait(job.id, WAIT_S)["status"] == 204
    assert [each.id for each in client.workers()] == [first.id]
    assert client.get(job.id).attempts == 1


@pytest.mark.slow
def test_the_curl_worker_stops_a_cancelled_job_and_runs_the_next(client, curl_worker, site):
    curl_worker()
    slow = client.submit("site.check", {"url": f"{site.url}/slow"}, queue="ops")
    assert site.arrived.wait(WAIT_S)
    client.cancel(slow.id)
    following = client.submit("site.check", {"url": site.url}, queue="ops")

    assert site.left.wait(WAIT_S)
    assert client.wait(following.id, WAIT_S)["status"] == 204
    assert client.get(slow.id).status == "cancelled"


@pytest.mark.slow
def test_the_curl_worker_stops_a_job_at_its_timeout(client, curl_worker, site):
    curl_worker()
    slow = client.submit("site.check", {"url": f"{site.url}/slow"}, queue="ops", timeout=1, max_attempts=1)

    assert site.left.wait(WAIT_S)
    assert [each.outcome for each in finished(client, slow).attempt_log] == ["timed_out"]


@pytest.mark.slow
def test_the_curl_worker_releases_a_job_that_outlasts_the_drain_time(client, curl_worker, site):
    worker = curl_worker(HOLDFAST_DRAIN_SECONDS="1")
    slow = client.submit("site.check", {"url": f"{site.url}/slow"}, queue="ops")
    assert site.arrived.wait(WAIT_S)

    assert drained(worker)
    assert site.left.wait(WAIT_S)
    assert (client.get(slow.id).status, client.get(slow.id).attempts) == ("ready", 0)
    assert list(client.workers()) == []


@pytest.mark.slow
def test_the_handler_of_a_killed_curl_worker_is_stopped(client, curl_worker, site):
    worker = curl_worker()
    client.submit("site.check", {"url": f"{site.url}/slow"}, queue="ops")
    assert site.arrived.wait(WAIT_S)
    worker.kill()
    worker.wait(WAIT_S)

    assert site.left.wait(WAIT_S)
