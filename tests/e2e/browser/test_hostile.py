"""What jobs, workers and people say is shown as it is, and does nothing (T27)."""

import re
from urllib.parse import quote

import pytest
from playwright.async_api import expect

from tests.e2e.browser.hostile import HOSTILE
from tests.e2e.browser.looking import Hand

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_GROWN = [
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
"""Elements that no page has in its content unless a text became one."""


async def test_what_is_said_is_text_everywhere(looking, system, queue):
    """T27: the whole corpus as payload, error, log and reason, and as names of keys and workers."""
    assert len(set(HOSTILE)) >= 30
    everything = {f"{number} {text}": [text, {"deeper": text}] for number, text in enumerate(HOSTILE)}
    told = " ".join(HOSTILE)
    whole = await system.submit("hostile.payload", everything, queue=queue)
    fails = [
        await system.submit("hostile.error", {"said": text}, queue=f"{queue}-error", max_attempts=1) for text in HOSTILE
    ]
    lines = {"lines": [{"at": "2030-01-31T12:00:00Z", "level": "ERROR", "message": text} for text in HOSTILE]}
    async with Hand(system, f"{queue}-error", HOSTILE[1]) as hand:
        outcomes = [
            {"outcome": "failed", "error": {"kind": text, "message": text, "traceback": told}, "retryable": False}
            for text in HOSTILE
        ]
        for outcome in outcomes:
            await hand.settle(1, {**outcome, "logs": lines})
    for text in HOSTILE[:3]:
        await system.key("read", name=text[:60])
    await system.ask("PATCH", f"/v1/queues/{queue}", {"paused": True, "reason": told[:500]})
    gone = await system.submit("hostile.reason", queue=queue)
    await system.ask("POST", f"/v1/jobs/{gone}/cancel", {"reason": told[:500]})
    names = [HOSTILE[number] for number in (0, 1, 13, 28)]
    hands = [Hand(system, f"{queue}-idle", name) for name in names]
    for each in hands:
        await each.__aenter__()
    try:
        await look_at_all(looking, whole, fails, queue)
    finally:
        for each in hands:
            await each.__aexit__()


async def look_at_all(looking, whole, fails, queue):
    page = await looking.open(f"/jobs/{whole}")
    await expect(page.get_by_role("heading", name="hostile.payload")).to_be_visible()
    text = await page.get_by_role("main").inner_text()
    for each in ("<script>alert(1)</script>", "<svg onload=alert(1)>", "javascript:alert(1)"):
        assert each in text
    await nothing_came_of_it(looking)
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
        await looking.open(path)
        await expect(page.get_by_role("main").get_by_text(seen, exact=False).first).to_be_attached()
        await nothing_came_of_it(looking)


async def nothing_came_of_it(looking):
    assert await looking.page.locator("main").locator(", ".join(_GROWN)).count() == 0
    assert await looking.page.evaluate("({}).polluted") is None
    assert looking.troubles == []


async def test_names_of_types_queues_and_tenants_cannot_be_such(looking, system):
    """T27: the service refuses them, and a page whose address has them shows them as they are."""
    for text in HOSTILE:
        for body, headers in (
            ({"type": text}, {}),
            ({"type": "x", "queue": text}, {}),
            ({"type": "x"}, {"holdfast-tenant": text}),
        ):
            answer = await system.refused("POST", "/v1/jobs", body, **headers)
            assert answer in {400, 403, 404, 422}, (text, body)
    looking.refusals = {400, 404, 422}
    page = await looking.open("/jobs")
    for text in HOSTILE[::6]:
        for field in ("type", "queue", "tenant"):
            await looking.open(f"/jobs?{field}={quote(text, safe='')}")
            await expect(page.get_by_role("combobox", name="Search jobs")).to_have_value(re.compile(".+"))
            await nothing_came_of_it(looking)
