"""Fixtures that run holdfast as the source systems document their own start, and call it with curl."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.eventually import awaited
from tests.support.nodes import ROOT

_LISTENING = re.compile(r"listening on (http://\S+:\d+);")
_OURS = ("HOLDFAST_", "DATABASE_URL", "DB_DSN", "PORT", "INSTANCE_ID", "LOG_FORMAT", "WORKER_")


class Running:
    """A `holdfast up` or `holdfast serve` process."""

    def __init__(self, command, folder, variables):
        self._log = folder / f"{command[0]}.log"
        self._folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        inherited["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", *command],
                cwd=folder, env=inherited | variables, stdout=output, stderr=output,
            )  # fmt: skip

    @property
    def log(self):
        """Output of the process."""
        return self._log.read_text(errors="replace")

    @property
    def url(self):
        """URL of the API, once it listens."""

        def listening():
            assert self.process.poll() is None, self.log
            return _LISTENING.search(self.log)

        return awaited(listening)[1]

    @property
    def admin_key(self):
        """API key that `holdfast up` created."""
        return (self._folder / ".holdfast" / "admin.key").read_text().strip()

    def stop(self):
        """Stop the process with SIGTERM; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def start(tmp_path):
    """Start `holdfast` with a command and only these settings; kill what still runs after the test."""
    started = []

    def begin(*command, **variables):
        started.append(Running(command, tmp_path, variables))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait(60)


class Answer:
    """Response to a curl command."""

    def __init__(self, output):
        self.text, _, status = output.rpartition("\n")
        self.status = int(status)

    @property
    def json(self):
        """Decoded body."""
        return json.loads(self.text)


def curl(line, **values):
    """Run a documented curl line, with `$NAME` replaced by values; return the response."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed: the documented lines were not run")
    words = [re.sub(r"\$(\w+)", lambda match: str(values[match[1]]), word) for word in shlex.split(line)]
    assert words[0] == "curl"
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--noproxy", "*", "--write-out", "\n%{http_code}", *words[1:]],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Answer(done.stdout)


def go_dsn(url):
    """Write a database URL in the form of Go's drivers; SQLite URLs stay as they are."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.scheme.startswith("mysql"):
        secret = f":{password}" if password else ""
        return f"{user}{secret}@tcp({parts.hostname}:{parts.port})/{parts.path[1:]}?parseTime=true"
    if parts.scheme.startswith("postgres"):
        secret = f" password={password}" if password else ""
        return f"host={parts.hostname} port={parts.port} user={user}{secret} dbname={parts.path[1:]} sslmode=disable"
    return url
