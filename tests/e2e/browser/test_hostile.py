"""Text from jobs, workers and users is shown as text and never executed (T27)."""

import re
from urllib.parse import quote

import pytest
from playwright.async_api import expect

from tests.e2e.browser.driver import ManualWorker
from tests.e2e.browser.hostile import HOSTILE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_MARKUP = [
    *(
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form[action]",
        "video",
        "audio",
        "base",
        "meta",
        "link",
        "template",
    ),
    *("math", "details", "style", "[onerror]", "[onload]", "[onfocus]", "[onmouseover]", "[ontoggle]", "[onblur]"),
    *("a[href^='javascript' i]", "a[href^='data:' i]", "[contenteditable]"),
]
"""Elements that occur in a page's content only if text was rendered as markup."""


async def test_hostile_strings_are_shown_as_text_on_every_page(driver, system, queue):
    """T27: the whole corpus as payload, error, log line and reason, and as names of API keys and workers."""
    assert len(set(HOSTILE)) >= 30
    everything = {f"{number} {text}": [text, {"deeper": text}] for number, text in enumerate(HOSTILE)}
    joined = " ".join(HOSTILE)
    whole = await system.submit("hostile.payload", everything, queue=queue)
    fails = [
        await system.submit("hostile.error", {"said": text}, queue=f"{queue}-error", max_attempts=1) for text in HOSTILE
    ]
    lines = {"lines": [{"at": "2030-01-31T12:00:00Z", "level": "ERROR", "message": text} for text in HOSTILE]}
    async with ManualWorker(system, f"{queue}-error", HOSTILE[1]) as worker:
        outcomes = [
            {"outcome": "failed", "error": {"kind": text, "message": text, "traceback": joined}, "retryable": False}
            for text in HOSTILE
        ]
        for outcome in outcomes:
            await worker.settle(1, {**outcome, "logs": lines})
    for text in HOSTILE[:3]:
        await system.key("read", name=text[:60])
    await system.request("PATCH", f"/v1/queues/{queue}", {"paused": True, "reason": joined[:500]})
    gone = await system.submit("hostile.reason", queue=queue)
    await system.request("POST", f"/v1/jobs/{gone}/cancel", {"reason": joined[:500]})
    names = [HOSTILE[number] for number in (0, 1, 13, 28)]
    workers = [ManualWorker(system, f"{queue}-idle", name) for name in names]
    for worker in workers:
        await worker.__aenter__()
    try:
        await check_every_page(driver, whole, fails, queue)
    finally:
        for worker in workers:
            await worker.__aexit__()


async def check_every_page(driver, whole, fails, queue):
    page = await driver.open(f"/jobs/{whole}")
    await expect(page.get_by_role("heading", name="hostile.payload")).to_be_visible()
    text = await page.get_by_role("main").inner_text()
    for hostile in ("<script>alert(1)</script>", "<svg onload=alert(1)>", "javascript:alert(1)"):
        assert hostile in text
    await check_text_stays_text(driver)
    for path, seen in {
        f"/jobs/{fails[0]}": HOSTILE[0],
        f"/jobs/{fails[1]}": HOSTILE[1],
        f"/jobs?queue={queue}-error&status=dead": HOSTILE[-2],
        f"/jobs?queue={queue}": "hostile.reason",
        "/dead": HOSTILE[-2],
        "/queues": HOSTILE[0],
        "/workers": HOSTILE[1],
        "/keys": HOSTILE[2],
        "/": HOSTILE[-2],
    }.items():
        await driver.open(path)
        await expect(page.get_by_role("main").get_by_text(seen, exact=False).first).to_be_attached()
        await check_text_stays_text(driver)


async def check_text_stays_text(driver):
    assert await driver.page.locator("main").locator(", ".join(_MARKUP)).count() == 0
    assert await driver.page.evaluate("({}).polluted") is None
    assert driver.problems == []


async def test_hostile_names_of_types_queues_and_tenants_are_rejected(driver, system):
    """T27: the service rejects them, and a page with one in its URL shows it as text."""
    for text in HOSTILE:
        for body, headers in (
            ({"type": text}, {}),
            ({"type": "x", "queue": text}, {}),
            ({"type": "x"}, {"holdfast-tenant": text}),
        ):
            status = await system.rejected("POST", "/v1/jobs", body, **headers)
            assert status in {400, 403, 404, 422}, (text, body)
    driver.expected_errors = {400, 404, 422}
    page = await driver.open("/jobs")
    for text in HOSTILE[::6]:
        for field in ("type", "queue", "tenant"):
            await driver.open(f"/jobs?{field}={quote(text, safe='')}")
            await expect(page.get_by_role("combobox", name="Search jobs")).to_have_value(re.compile(".+"))
            await check_text_stays_text(driver)
