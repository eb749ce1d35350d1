"""Fixtures for tests of the Go and TypeScript packages. A test is skipped if its toolchain is not on this machine."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.support.databases import migrate
from tests.support.long import LONG
from tests.support.services import Service
from tests.support.toolchains import ROOT, MissingToolchain

ADMIN = "an-admin-key-for-tests-only-4711"
QUICK_SCENARIOS = "success,failure,steps,cancel,drain,lost-claim,lost-settle"
"""Scenarios of the conformance kit that the short run tries; long tests run all."""


@pytest.fixture
def toolchain():
    """Return a function that calls a build, and skips the test if the toolchain is missing."""

    def build(call, *arguments):
        try:
            return call(*arguments)
        except MissingToolchain as missing:
            pytest.skip(f"MISSING TOOLCHAIN, this test did not run: {missing}")

    return build


@pytest.fixture
async def service(database_url, tmp_path):
    """Return a running node."""
    await migrate(database_url)
    node = Service(database_url, tmp_path, {"HOLDFAST_ADMIN_KEY": ADMIN})
    node.start()
    yield node
    node.stop()


@pytest.fixture
def example(service):
    """Return a function that runs an example: its worker, a submission, and the drain of the worker."""
    environment = {**os.environ, "HOLDFAST_API_URL": service.url, "HOLDFAST_API_KEY": ADMIN}
    started = []

    def run(command):
        worker = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        started.append(worker)
        submitted = subprocess.run(
            [*command, "submit", "ada@example.org"], env=environment, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        worker.send_signal(signal.SIGTERM)
        _, log = worker.communicate(timeout=60)
        return submitted, worker.returncode, log

    yield run
    for worker in started:
        with suppress(ProcessLookupError):
            worker.kill()


@pytest.fixture
def check_protocol():
    """Return a function that runs the conformance kit on a worker, and fails with its table."""

    def check(command):
        scenarios = [] if LONG else ["--only", QUICK_SCENARIOS]
        kit = [sys.executable, "-m", "holdfast", "protocol", "check", *scenarios, "--", *command]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        found = subprocess.run(kit, env=environment, capture_output=True, text=True, timeout=500, check=False)
        assert found.returncode == 0, found.stdout + found.stderr

    return check
