"""Every page shows its data and is accessible, on a desktop and on a phone."""

import json
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.e2e.browser.driver import DESKTOP, PHONE, ManualWorker

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

AXE = Path(__file__).with_name("axe.min.js")
_RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .map(({id, impact, nodes}) => ({id, impact, nodes: nodes.map((node) => `${node.html} ${node.failureSummary}`)}))"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sample_data(system):
    """Create one of everything; return the id of a dead job."""
    for name in ("acme", "globex"):
        await system.request("POST", "/v1/tenants", {"name": name, "weight": 2, "backlog": 5_000})
    mails = [await system.submit("sink", {"key": f"sample-{number}"}, queue="mail") for number in range(6)]
    await system.submit("report.render", {"big": 2**63 - 1}, queue="reports", tags=["monthly"], tenant="acme")
    await system.submit("report.render", queue="reports", delay="1h", tenant="globex")
    await system.request("PATCH", "/v1/queues/reports", {"paused": True, "reason": "the printer is empty"})
    await system.request("PATCH", "/v1/queues/mail", {"max_running": 3})
    (dead, *_) = await system.dead(3, queue="billing", error=("CardDeclined", "the card was declined"), tenant="acme")
    await system.key("read", tenant="acme", name="reader of acme")
    for job in mails:
        await system.reached(job, "succeeded")
    return dead


PAGES = {
    "/": ["Throughput and failures", "the printer is empty", "CardDeclined"],
    "/jobs": ["report.render", "sink"],
    "/jobs?status=dead&queue=billing": ["fail.always"],
    "/jobs/new": ["Payload"],
    "/jobs/DEAD": ["CardDeclined", "Timeline", "Attempts"],
    "/queues": ["billing", "paused: the printer is empty", "max 3 running"],
    "/dead": ["CardDeclined", "the card was declined", "Replay …"],
    "/workers": ["0 of 12", "Heartbeat"],
    "/performance": ["By type", "wait p95", "sink"],
    "/tenants": ["globex", "Fair share received", "5,000 unfinished"],
    "/keys": ["reader of acme", "New API key"],
}


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_shows_its_data_and_is_accessible(driver, sample_data, path):
    """axe reports no serious violation, in light on a desktop and in dark on a phone, and nothing overflows."""
    page = await driver.open(path.replace("DEAD", sample_data))
    for text in PAGES[path]:
        await expect(page.get_by_text(text).first).to_be_visible()
    assert await page.title() != ""
    assert await driver.overflows() == 0
    await page.evaluate(AXE.read_text())
    found = await page.evaluate(_RUN)
    await page.emulate_media(color_scheme="dark")
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("button", name="Menu")).to_be_visible()
    assert await driver.overflows() == 0
    found += await page.evaluate(_RUN)
    serious = [violation for violation in found if violation["impact"] in {"serious", "critical"}]
    assert serious == [], json.dumps(serious, indent=1)


async def test_pages_are_reachable_by_keyboard_and_by_the_phone_menu(driver):
    page = await driver.open("/")
    await expect(page.get_by_role("heading", name="Overview")).to_be_attached()
    await page.keyboard.press("g")
    await page.keyboard.press("q")
    await expect(page.get_by_role("heading", name="Queues").first).to_be_attached()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("link", name="Dead letters").click()
    await expect(page.get_by_text("Dead letters by error")).to_be_visible()
    await page.set_viewport_size(DESKTOP)


async def test_an_unknown_address_shows_page_not_found(driver):
    page = await driver.open("/nowhere")
    await expect(page.get_by_text("Page not found")).to_be_visible()


async def test_a_worker_shows_its_jobs_and_can_be_drained(driver, system, queue):
    job = await system.submit("crunch.numbers", queue=queue)
    async with ManualWorker(system, queue, "the fast one") as worker:
        await worker.claim(1)
        await worker.renew(memory=84_200_000)
        page = await driver.open("/workers")
        row = page.get_by_role("row").filter(has_text="the fast one")
        await expect(row).to_contain_text("1 of 50")
        await expect(row).to_contain_text("84 MB")
        await page.get_by_role("button", name="Drain the fast one").click()
        await expect(page.get_by_role("dialog")).to_contain_text("finishes its 1 running job")
        assert not (await worker.renew())["draining"]
        await page.get_by_role("button", name="Drain worker").click()
        await expect(row).to_contain_text("draining")
        await expect(page.get_by_role("button", name="Drain the fast one")).to_have_count(0)
        assert (await worker.renew())["draining"]
        await row.get_by_role("link", name="crunch.numbers").click()
        await expect(page.get_by_text(job)).to_be_visible()
        await system.request("POST", f"/v1/jobs/{job}/cancel", {})
