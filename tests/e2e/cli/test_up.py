"""`holdfast up`: everything under one command, and a way in that only its owner has."""

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
    """Start it in an empty folder; it is ended by its id when the test is over."""
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
    """Wait until `fact` gives something, as long as the process lives."""

    def given():
        found = fact()
        assert found is not None or process.poll() is None, process.stderr.read()
        return None if found is None else (found,)

    return awaited(given)[0]


def call(url, key, path, body=None):
    headers = {"Authorization": f"Bearer {key}"}
    return (
        httpx.get(url + path, headers=headers) if body is None else httpx.post(url + path, headers=headers, json=body)
    )


def test_it_serves_and_works_and_ends_in_good_order(up, tmp_path):
    process = up("--port", "0", "--database-url", f"sqlite:///{tmp_path}/jobs.db")  # a flag is its workers' too
    note = tmp_path / ".holdfast" / "url"
    url = while_alive(
        lambda: note.read_text().strip() if note.exists() and note.read_text().endswith("\n") else None, process
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
    while_alive(lambda: None if workers() else True, process)  # the workers end, the API goes on to answer
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert "stopped" in said
    assert key not in said
    assert not (tmp_path / "holdfast.db").exists()
    told = said.partition(f"{url}/#ticket=")[2].splitlines()
    assert re.fullmatch(r"[\w-]{43}", told[0])
    tries = [re.search(r"holdfast (top|submit demo|dead groups) ", line)[1] for line in told[2:5]]
    assert tries == ["top", "submit demo", "dead groups"]
    assert "stopping: no more jobs are claimed" in said


def test_its_secrets_are_made_once_and_are_readable_by_their_owner_alone(up, tmp_path):
    """T45."""
    folder = tmp_path / ".holdfast"
    kept = []
    for _ in range(2):
        process = up("--port", "0")
        while_alive(lambda: True if (folder / "url").exists() else None, process)
        kept.append([(folder / name).read_text() for name in ("admin.key", "jwt.secret")])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=100)
        (folder / "url").unlink()
    assert kept[0] == kept[1]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("admin.key", "jwt.secret")} == {0o600}


def test_a_key_that_others_can_read_is_not_used(up, tmp_path):
    """T45."""
    folder = tmp_path / ".holdfast"
    folder.mkdir(mode=0o700)
    (folder / "admin.key").write_text("a" * 64)
    (folder / "admin.key").chmod(0o644)
    process = up("--port", "0")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "chmod 600" in said
    assert "a" * 64 not in said
