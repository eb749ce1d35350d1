"""`holdfast up` runs the API and a worker, and keeps its secrets private."""

import re
import signal
import stat
import subprocess
import sys

import httpx2 as httpx
import pytest

from tests.support.eventually import awaited

START = "from holdfast.cli.main import main; main()"


@pytest.fixture
def up(tmp_path, environment):
    """Start `up` in an empty folder; stop it after the test."""
    started = []

    def start(*arguments, **variables):
        process = subprocess.Popen(
            [sys.executable, "-c", START, "up", "--demo", *arguments],
            cwd=tmp_path, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def while_alive(fact, process):
    """Wait until `fact` returns a value; fail if the process exits first."""

    def check():
        found = fact()
        assert found is not None or process.poll() is None, process.stderr.read()
        return None if found is None else (found,)

    return awaited(check)[0]


def call(url, key, path, body=None):
    headers = {"Authorization": f"Bearer {key}"}
    return (
        httpx.get(url + path, headers=headers) if body is None else httpx.post(url + path, headers=headers, json=body)
    )


def test_up_serves_runs_jobs_and_stops_gracefully(up, tmp_path):
    process = up("--port", "0", "--database-url", f"sqlite:///{tmp_path}/jobs.db")  # the workers get the flag too
    url_file = tmp_path / ".holdfast" / "url"
    url = while_alive(
        lambda: url_file.read_text().strip() if url_file.exists() and url_file.read_text().endswith("\n") else None,
        process,
    )
    key = (tmp_path / ".holdfast" / "admin.key").read_text().strip()

    job = call(
        url, key, "/v1/jobs", {"type": "demo", "queue": "demo", "priority": 1000, "payload": {"result": 42}}
    ).json()

    def done():
        found = call(url, key, f"/v1/jobs/{job['id']}").json()
        return found if found["status"] == "succeeded" else None

    assert while_alive(done, process)["result"] == 42
    assert call(url, "0" * 64, "/v1/jobs").status_code == 401

    def workers():
        return call(url, key, "/v1/workers").json()["items"]

    (worker,) = workers()
    assert call(url, key, f"/v1/workers/{worker['id']}/drain", {}).status_code == 200
    while_alive(lambda: None if workers() else True, process)  # the workers exit, the API stays up
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert "stopped" in output
    assert key not in output
    assert not (tmp_path / "holdfast.db").exists()
    lines = output.partition(f"{url}/#ticket=")[2].splitlines()
    assert re.fullmatch(r"[\w-]{43}", lines[0])
    tries = [re.search(r"holdfast (top|submit demo|dead groups) ", line)[1] for line in lines[2:5]]
    assert tries == ["top", "submit demo", "dead groups"]
    assert "stopping: no more jobs are claimed" in output


def test_up_creates_its_secrets_once_readable_only_by_their_owner(up, tmp_path):
    """T45."""
    folder = tmp_path / ".holdfast"
    secrets = []
    for _ in range(2):
        process = up("--port", "0")
        while_alive(lambda: True if (folder / "url").exists() else None, process)
        secrets.append([(folder / name).read_text() for name in ("admin.key", "jwt.secret")])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=100)
        assert not (folder / "url").exists()
    assert secrets[0] == secrets[1]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("admin.key", "jwt.secret")} == {0o600}


def test_up_refuses_a_key_file_that_other_users_can_read(up, tmp_path):
    """T45."""
    folder = tmp_path / ".holdfast"
    folder.mkdir(mode=0o700)
    (folder / "admin.key").write_text("a" * 64)
    (folder / "admin.key").chmod(0o644)
    process = up("--port", "0")
    _, output = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "chmod 600" in output
    assert "a" * 64 not in output
