"""Take the screenshots of the dashboard for the docs: `./dev screenshots`. Needs Chromium.

Starts an installation with the demo on a free port, adds some data, and captures each page as an administrator sees it,
in light and dark. `--phone` uses the width of a phone; `--to` writes the pictures to another folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx2  # noqa: E402
from playwright.async_api import async_playwright  # noqa: E402

from tests.support.eventually import eventually  # noqa: E402 - found by the line above
from tests.support.servers.process import free_port  # noqa: E402
from tests.support.servers.recipes import Chromium  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

IMAGES = ROOT / "docs" / "images"
DESKTOP, PHONE = (1200, 760), (390, 780)
KEY = "the-administrator-of-the-pictures"
ENOUGH = {"succeeded": 60, "dead": 3, "retrying": 1}
"""Numbers of demo jobs by state to wait for before the screenshots."""
TIMEOUT_S = 180.0
RENDER_MS = 1_500
"""Time for charts to be drawn and the stream to connect."""

PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "job": "/jobs/{dead}",
    "new-job": "/jobs/new?from={dead}",
    "queues": "/queues",
    "dead-letters": "/dead",
    "workers": "/workers",
    "performance": "/performance?window=15m",
    "tenants": "/tenants",
    "keys": "/keys",
}


def main(arguments: list[str]) -> int:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(prog="./dev screenshots", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER", help="folder for the pictures")
    parser.add_argument("--phone", action="store_true", help="use the width of a phone")
    options = parser.parse_args(arguments)
    program = Chromium().find()
    if program is None:
        print("dev: no Chromium found; install it (Debian, Ubuntu: apt-get install chromium)", file=sys.stderr)
        return 1
    options.to.mkdir(parents=True, exist_ok=True)
    with _installation() as url:
        asyncio.run(_take(url, program.path, options.to, phone=options.phone))
    return 0


@contextmanager
def _installation() -> Iterator[str]:
    """Run a demo installation within the block; yield its URL."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        variables = {**os.environ, "PYTHONPATH": path, "HOLDFAST_ADMIN_KEY": KEY}
        command = [sys.executable, "-m", "holdfast", "up", "--demo", "--port", str(port)]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


async def _take(url: str, program: Path, folder: Path, *, phone: bool) -> None:
    async with httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False) as http:
        await eventually(lambda: _ready(http), within=TIMEOUT_S)
        dead = await _add_data(http)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for scheme in ("light", "dark"):
                await _capture(browser, url, folder, scheme, dead=dead, phone=phone)
            await browser.close()


async def _ready(http: httpx2.AsyncClient) -> bool:
    try:
        response = await http.get("/v1/stats")
    except httpx2.TransportError:
        return False
    return response.is_success and all(response.json()["statuses"][each] >= count for each, count in ENOUGH.items())


async def _add_data(http: httpx2.AsyncClient) -> str:
    """Add data that the demo lacks; return the id of a dead job."""

    async def call(method: str, path: str, body: object = None) -> Any:
        response = await http.request(method, path, json=body)
        response.raise_for_status()
        return response.json()

    busiest, *others = sorted((await call("GET", "/v1/queues"))["items"], key=lambda each: -each["rates"]["finished"])
    await call("PATCH", f"/v1/queues/{busiest['name']}", {"max_running": 20, "rate": {"limit": 100, "per": "1s"}})
    if others:
        await call("PATCH", f"/v1/queues/{others[-1]['name']}", {"paused": True, "reason": "mail server maintenance"})
    for name, scopes in {"website": ["submit", "read"], "workers in Berlin": ["worker"], "wallboard": ["read"]}.items():
        await call("POST", "/v1/keys", {"name": name, "scopes": scopes, "tenant": "acme", "expires_in": "90d"})
    return str((await call("GET", "/v1/jobs?status=dead&limit=1"))["items"][0]["id"])


async def _capture(browser: Browser, url: str, folder: Path, scheme: str, *, dead: str, phone: bool) -> None:
    width, height = PHONE if phone else DESKTOP
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        reduced_motion="reduce",
    )
    await context.add_init_script(f"sessionStorage.setItem('holdfast.key', {json.dumps(KEY)})")
    page = await context.new_page()
    for name, path in PAGES.items():
        await page.goto(f"{url}/#{path.format(dead=dead)}")
        await page.wait_for_selector("main h1", state="attached")
        await page.wait_for_selector("main .skeleton", state="detached")
        await page.wait_for_timeout(RENDER_MS)
        picture = folder / f"{name}-{scheme}{'-phone' if phone else ''}.png"
        await page.screenshot(path=picture)
        print(f"{picture} {picture.stat().st_size:,} bytes")
    await context.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
