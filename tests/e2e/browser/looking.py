"""What the tests in a browser share: the system they look at, and somebody who looks."""

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


_WIDER = """Math.max(...[document.documentElement, ...document.querySelectorAll(".table-wrap")]
  .map((each) => each.scrollWidth - each.clientWidth))"""


class System:
    """A running node and its worker, by way of the API."""

    def __init__(self, url: str, http: httpx2.AsyncClient, ledger: Ledger) -> None:
        self.url = url
        self._http = http
        self._ledger = ledger

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """One request as administrator; it must be done."""
        answer = await self._http.request(method, path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    async def refused(self, method: str, path: str, body: object = None, **headers: str) -> int:
        """The status of a request that must not be done."""
        encoded = {name: value.encode("utf-8") for name, value in headers.items()}
        answer = await self._http.request(method, path, json=body, headers=encoded)
        assert answer.is_client_error, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.status_code

    async def submit(self, kind: str = "sink", payload: object = None, **options: Any) -> str:
        """A job; its id."""
        tenant = options.pop("tenant", None)
        headers = {"holdfast-tenant": tenant} if tenant else {}
        body = {"type": kind, "payload": payload or {}, **options}
        return str((await self.ask("POST", "/v1/jobs", body, **headers))["id"])

    async def reached(self, job: str, *statuses: str) -> Any:
        """The job, once it has come to one of these."""

        async def there() -> Any:
            found = await self.ask("GET", f"/v1/jobs/{job}")
            return found if found["status"] in statuses else None

        return await eventually(there, within=90)

    async def dead(self, count: int, *, queue: str, error: tuple[str, str], **options: Any) -> list[str]:
        """Jobs that failed for good with this error, as a worker over HTTP would have it."""
        ids = [await self.submit("fail.always", queue=queue, max_attempts=1, **options) for _ in range(count)]
        async with Hand(self, queue) as hand:
            kind, message = error
            failure = {"kind": kind, "message": message, "traceback": f"Traceback: {message}"}
            await hand.settle(len(ids), {"outcome": "failed", "error": failure})
        return ids

    async def key(self, *scopes: str, tenant: str = "default", name: str = "of a test") -> str:
        """The token of a new key."""
        body = {"name": name, "scopes": list(scopes), "tenant": tenant}
        return str((await self.ask("POST", "/v1/keys", body))["token"])

    def let_go(self, key: str) -> None:
        """Let a handler that is held come to its end."""
        self._ledger.write("go", job="", key=key, attempt=0, fence=0, pid=0)


class Hand:
    """A worker over HTTP that does what the test says."""

    def __init__(self, system: System, queue: str, name: str = "by hand", **about: Any) -> None:
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
        answer = await self._system.ask("POST", "/v1/leases", {"register": about, "lease": "60s"})
        self._worker = answer["worker"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._system.ask("POST", "/v1/leases/depart", {"worker": self._worker})

    async def renew(self, **told: Any) -> Any:
        """Be heard of."""
        return await self._system.ask("POST", "/v1/leases/renew", {"worker": self._worker, "lease": "60s", **told})

    async def take(self, count: int) -> list[Any]:
        """Claim so many jobs of the queue."""
        taken: list[Any] = []

        async def more() -> bool:
            asked = {"worker": self._worker, "queues": [self._queue], "limit": count - len(taken), "wait": 1}
            taken.extend((await self._system.ask("POST", "/v1/leases", asked))["jobs"])
            return len(taken) >= count

        await eventually(more, within=60)
        return taken

    async def settle(self, count: int, outcome: dict[str, Any]) -> None:
        """Claim so many, and have all end like this."""
        outcomes = [{**outcome, "id": job["id"], "fence": job["fence"]} for job in await self.take(count)]
        asked = {"worker": self._worker, "outcomes": outcomes}
        settled = await self._system.ask("POST", "/v1/leases/settle", asked)
        assert len(settled["settled"]) == count


class Looking:
    """Somebody in front of a page. What goes wrong behind the scenes is written down in `troubles`."""

    page: Page
    _context: BrowserContext

    def __init__(self, browser: Browser, system: System) -> None:
        self._browser = browser
        self._system = system
        self.troubles: list[str] = []
        self.refusals: set[int] = set()
        """Statuses of answers that the test provokes: the browser writes each to its console."""

    async def __aenter__(self) -> Self:
        self._context = await self._browser.new_context(viewport=DESKTOP, locale="en-GB", timezone_id="Europe/Berlin")
        self._context.set_default_timeout(45_000)
        await self._context.expose_function("violated", lambda what: self.troubles.append(f"policy: {what}"))
        await self._context.add_init_script(_WATCH)
        self.page = await self._context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._went)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._context.close()

    async def open(self, path: str = "/", *, key: str | None = ADMIN) -> Page:
        """A page of the dashboard, signed in with this key as `holdfast.key` of the tab."""
        if self.page.url == "about:blank" and key:
            kept = json.dumps(key)
            script = f"sessionStorage.getItem('holdfast.key') ?? sessionStorage.setItem('holdfast.key', {kept})"
            await self.page.add_init_script(script)
        await self.page.goto(f"{self._system.url}/#{path}")
        return self.page

    async def live(self) -> None:
        """Wait until the stream of changes is open."""
        await expect(self.page.get_by_role("banner").get_by_text("Live", exact=True)).to_be_visible()

    async def overflows(self) -> int:
        """By how many pixels the page is wider than the window, or a table than the room it has, once drawn to fit.

        Charts hear of a new width after it is there, and draw themselves anew.
        """
        wider = 0

        async def fits() -> bool:
            nonlocal wider
            wider = int(await self.page.evaluate(_WIDER))
            return wider == 0

        with suppress(TimeoutError):
            await eventually(fits, within=10)
        return wider

    def _said(self, message: ConsoleMessage) -> None:
        expected = [f"the server responded with a status of {status} " for status in self.refusals]
        if message.type == "error" and not any(each in message.text for each in expected):
            self.troubles.append(f"console: {message.text}")

    async def _asked(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _went(self, request: Request) -> None:
        if not request.url.startswith((self._system.url, "data:", "blob:")):
            self.troubles.append(f"foreign: {request.url}")
