"""Run schemathesis against a node: valid and invalid requests get the responses that OpenAPI describes.

python tools/fuzz.py --url postgresql://… --examples 200
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.api.auth import auth_throttle
from holdfast.api.server.server import bind, serve
from holdfast.compose import build_api, open_engine
from holdfast.config import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
KEY = "the-key-of-a-node-that-is-fuzzed-0815"

_SETTINGS = """\
[checks.positive_data_acceptance]
# A schema cannot express some rules: fields that exclude each other, durations out of bounds.
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429", "503"]

[checks.negative_data_rejection]
# Invalid data may also be too long, which is checked first.
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "414", "415", "422", "428", "429", "431"]

[[operations]]
# `null` counts as an empty object, and an invalid outcome is refused in a response to the others.
include-operation-id = ["cancel_job", "change_queue", "change_tenant", "create_token", "lease_jobs", "settle_jobs"]
checks.negative_data_rejection.expected-statuses = [
  "2xx", "400", "401", "403", "404", "405", "406", "409", "413", "414", "415", "422", "428", "429", "431",
]

[[operations]]
# A new tenant has no secret until one is created, so that 404 is correct here.
include-path = "/v1/tenants/{name}/webhook-secret"
include-method = "GET"
checks.ensure_resource_availability.enabled = false
"""


async def _serve(url: str, port: int) -> None:
    """Run a node without throttling of failed authentication, because the fuzzer sends many bad keys."""
    auth_throttle.MAX_FAILURES = 10**9
    settings = Settings(database_url=url, admin_key=KEY, jwt_secret="s" * 16 + KEY)
    engine = await open_engine(settings, migrate=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    maintenance = asyncio.create_task(engine.run_maintenance(stop))
    ready = lambda: print("ready", flush=True)  # noqa: E731
    await serve(build_api(settings, engine), bind("127.0.0.1", port), stop=stop, ready=ready)
    await maintenance
    await engine.aclose()


@contextmanager
def a_node(url: str, log: Path) -> Iterator[str]:
    """Start such a node in a process; yield its URL."""
    listening = bind("127.0.0.1", 0)
    port: int = listening.getsockname()[1]
    listening.close()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fuzz", url, str(port)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=output,
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def fuzz(
    url: str, folder: Path, *, examples: int, seed: int, seconds: int | None = None, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run all checks of schemathesis against a node on this database, except on event streams.

    The same seed gives the same requests. With `seconds` it runs at most this long.
    """
    (folder / "schemathesis.toml").write_text(_SETTINGS)
    time_limit = () if seconds is None else ("--max-time", str(seconds))
    with a_node(url, folder / "node.log") as address:
        return subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json",
                "-H", f"Authorization: Bearer {KEY}", "--exclude-path", "/v1/events",
                "--seed", str(seed), "--generation-database", "none", "--max-examples", str(examples), *time_limit,
                "--continue-on-failure", "--no-color", "--request-timeout", "40", *options,
            ],
            cwd=folder, capture_output=True, text=True, check=False,
            timeout=None if seconds is None else seconds * 3 + 60,
        )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
