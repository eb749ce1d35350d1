"""Make the pictures of the dashboard's pages for the docs: `./dev screenshots`. Needs Chromium.

An installation with the demo is started on a free port and given something of everything; each page is shown as an
administrator sees it, in light and dark. `--phone` shows what a phone shows; `--to` puts the pictures elsewhere.
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
"""What must have come of the demo's jobs before the pictures are taken."""
PATIENCE = 180.0
SETTLES = 1_500
"""Milliseconds in which charts are drawn and the stream is open: this is a picture, not a test."""

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
    """Make them all."""
    parser = argparse.ArgumentParser(prog="./dev screenshots", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER", help="where the pictures go")
    parser.add_argument("--phone", action="store_true", help="as wide as a phone")
    asked = parser.parse_args(arguments)
    program = Chromium().find()
    if program is None:
        print("dev: there is no Chromium here: apt install chromium", file=sys.stderr)
        return 1
    asked.to.mkdir(parents=True, exist_ok=True)
    with _installation() as url:
        asyncio.run(_take(url, program.path, asked.to, phone=asked.phone))
    return 0


@contextmanager
def _installation() -> Iterator[str]:
    """A demo of its own, gone with the block."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        variables = {**os.environ, "PYTHONPATH": path, "HOLDFAST_ADMIN_KEY": KEY}
        command = [sys.executable, "-m", "holdfast", "up", "--demo", "--port", str(port)]
        with Path(folder, "said").open("wb") as said:
            process = subprocess.Popen(command, cwd=folder, env=variables, stdout=said, stderr=said)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


async def _take(url: str, program: Path, folder: Path, *, phone: bool) -> None:
    async with httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False) as http:
        await eventually(lambda: _ready(http), within=PATIENCE)
        dead = await _scenery(http)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for scheme in ("light", "dark"):
                await _show(browser, url, folder, scheme, dead=dead, phone=phone)
            await browser.close()


async def _ready(http: httpx2.AsyncClient) -> bool:
    try:
        answer = await http.get("/v1/stats")
    except httpx2.TransportError:
        return False
    return answer.is_success and all(answer.json()["statuses"][each] >= count for each, count in ENOUGH.items())


async def _scenery(http: httpx2.AsyncClient) -> str:
    """What the demo does not do by itself; the id of a job worth looking at."""

    async def ask(method: str, path: str, body: object = None) -> Any:
        answer = await http.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()

    busiest, *others = sorted((await ask("GET", "/v1/queues"))["items"], key=lambda each: -each["rates"]["finished"])
    await ask("PATCH", f"/v1/queues/{busiest['name']}", {"max_running": 20, "rate": {"limit": 100, "per": "1s"}})
    if others:
        await ask("PATCH", f"/v1/queues/{others[-1]['name']}", {"paused": True, "reason": "the mail server moves"})
    for name, scopes in {"website": ["submit", "read"], "workers of Berlin": ["worker"], "wallboard": ["read"]}.items():
        await ask("POST", "/v1/keys", {"name": name, "scopes": scopes, "tenant": "acme", "expires_in": "90d"})
    return str((await ask("GET", "/v1/jobs?status=dead&limit=1"))["items"][0]["id"])


async def _show(browser: Browser, url: str, folder: Path, scheme: str, *, dead: str, phone: bool) -> None:
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
        await page.wait_for_timeout(SETTLES)
        picture = folder / f"{name}-{scheme}{'-phone' if phone else ''}.png"
        await page.screenshot(path=picture)
        print(f"{picture} {picture.stat().st_size:,} bytes")
    await context.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
