"""Helpers of the browser tests: access to the system under test, a manual worker and a page driver."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from playwright.async_api import expect

from tests.support.eventually import eventually

if TYPE_CHECKING:
    import httpx2
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

    from tests.support.ledger import Ledger

ADMIN = "an-admin-key-for-tests-in-a-browser-4711"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}

_WATCH = """
window.addEventListener("securitypolicyviolation", (event) =>
  window.violated(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""

_EXCESS_WIDTH = """Math.max(...[document.documentElement, ...document.querySelectorAll(".table-wrap")]
  .map((element) => element.scrollWidth - element.clientWidth))"""


class System:
    """HTTP access to the running node, as administrator."""

    def __init__(self, url: str, http: httpx2.AsyncClient, ledger: Ledger) -> None:
        self.url = url
        self._http = http
        self._ledger = ledger

    async def request(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """Send a request that must succeed; return the decoded body."""
        response = await self._http.request(method, path, json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    async def rejected(self, method: str, path: str, body: object = None, **headers: str) -> int:
        """Send a request that must be rejected; return the status code."""
        encoded = {name: value.encode("utf-8") for name, value in headers.items()}
        response = await self._http.request(method, path, json=body, headers=encoded)
        assert response.is_client_error, f"{method} {path}: {response.status_code} {response.text}"
        return response.status_code

    async def submit(self, kind: str = "sink", payload: object = None, **options: Any) -> str:
        """Submit a job; return its id."""
        tenant = options.pop("tenant", None)
        headers = {"holdfast-tenant": tenant} if tenant else {}
        body = {"type": kind, "payload": payload or {}, **options}
        return str((await self.request("POST", "/v1/jobs", body, **headers))["id"])

    async def reached(self, job: str, *statuses: str) -> Any:
        """Wait until the job has one of these statuses; return the job."""

        async def has_status() -> Any:
            found = await self.request("GET", f"/v1/jobs/{job}")
            return found if found["status"] in statuses else None

        return await eventually(has_status, within=90)

    async def dead(self, count: int, *, queue: str, error: tuple[str, str], **options: Any) -> list[str]:
        """Submit jobs and report each as failed permanently with this error; return their ids."""
        ids = [await self.submit("fail.always", queue=queue, max_attempts=1, **options) for _ in range(count)]
        async with ManualWorker(self, queue) as worker:
            kind, message = error
            failure = {"kind": kind, "message": message, "traceback": f"Traceback: {message}"}
            await worker.settle(len(ids), {"outcome": "failed", "error": failure})
        return ids

    async def key(self, *scopes: str, tenant: str = "default", name: str = "test key") -> str:
        """Create an API key; return its token."""
        body = {"name": name, "scopes": list(scopes), "tenant": tenant}
        return str((await self.request("POST", "/v1/keys", body))["token"])

    def release(self, key: str) -> None:
        """Let the handler that waits for this key finish."""
        self._ledger.write("go", job="", key=key, attempt=0, fence=0, pid=0)


class ManualWorker:
    """Worker over HTTP that claims and settles jobs only when the test calls it."""

    def __init__(self, system: System, queue: str, name: str = "manual", **about: Any) -> None:
        self._system = system
        self._queue = queue
        self._name = name
        self._about = about
        self._worker = ""

    async def __aenter__(self) -> Self:
        about = {
            "name": self._name,
            "host": self._name,
            "queues": self._queue,
            "slots": 50,
            "version": "1",
        } | self._about
        response = await self._system.request("POST", "/v1/leases", {"register": about, "lease": "60s"})
        self._worker = response["worker"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._system.request("POST", "/v1/leases/depart", {"worker": self._worker})

    async def renew(self, **report: Any) -> Any:
        """Renew the lease, with a report such as the memory in use."""
        return await self._system.request(
            "POST", "/v1/leases/renew", {"worker": self._worker, "lease": "60s", **report}
        )

    async def claim(self, count: int) -> list[Any]:
        """Claim this number of jobs from the queue."""
        claimed: list[Any] = []

        async def has_enough() -> bool:
            body = {"worker": self._worker, "queues": [self._queue], "limit": count - len(claimed), "wait": 1}
            claimed.extend((await self._system.request("POST", "/v1/leases", body))["jobs"])
            return len(claimed) >= count

        await eventually(has_enough, within=60)
        return claimed

    async def settle(self, count: int, outcome: dict[str, Any]) -> None:
        """Claim this number of jobs and report the same outcome for each."""
        outcomes = [{**outcome, "id": job["id"], "fence": job["fence"]} for job in await self.claim(count)]
        body = {"worker": self._worker, "outcomes": outcomes}
        settled = await self._system.request("POST", "/v1/leases/settle", body)
        assert len(settled["settled"]) == count


class Driver:
    """Page of a new browser context. Policy violations, console errors and the like are added to `problems`."""

    page: Page
    _context: BrowserContext

    def __init__(self, browser: Browser, system: System) -> None:
        self._browser = browser
        self._system = system
        self.problems: list[str] = []
        self.expected_errors: set[int] = set()
        """Status codes that the test provokes, because the browser logs each to its console."""

    async def __aenter__(self) -> Self:
        self._context = await self._browser.new_context(viewport=DESKTOP, locale="en-GB", timezone_id="Europe/Berlin")
        self._context.set_default_timeout(45_000)
        await self._context.expose_function("violated", lambda what: self.problems.append(f"policy: {what}"))
        await self._context.add_init_script(_WATCH)
        self.page = await self._context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self._on_dialog)
        self.page.on("request", self._on_request)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._context.close()

    async def open(self, path: str = "/", *, key: str | None = ADMIN) -> Page:
        """Open a page of the dashboard, signed in with this API key."""
        if self.page.url == "about:blank" and key:
            token = json.dumps(key)
            script = f"sessionStorage.getItem('holdfast.key') ?? sessionStorage.setItem('holdfast.key', {token})"
            await self.page.add_init_script(script)
        await self.page.goto(f"{self._system.url}/#{path}")
        return self.page

    async def live(self) -> None:
        """Wait until the page receives live events."""
        await expect(self.page.get_by_role("banner").get_by_text("Live", exact=True)).to_be_visible()

    async def overflows(self) -> int:
        """Return by how many pixels the page exceeds the window, or a table its container.

        Waits for the layout to settle, because charts redraw after the window was resized.
        """
        excess = 0

        async def fits() -> bool:
            nonlocal excess
            excess = int(await self.page.evaluate(_EXCESS_WIDTH))
            return excess == 0

        with suppress(TimeoutError):
            await eventually(fits, within=10)
        return excess

    def _on_console(self, message: ConsoleMessage) -> None:
        expected = [f"the server responded with a status of {status} " for status in self.expected_errors]
        if message.type == "error" and not any(text in message.text for text in expected):
            self.problems.append(f"console: {message.text}")

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self._system.url, "data:", "blob:")):
            self.problems.append(f"foreign: {request.url}")
