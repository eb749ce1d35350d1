"""Every page shows what there is, on a desk and on a phone, to everybody."""

import json
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.e2e.browser.looking import DESKTOP, PHONE, Hand

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

AXE = Path(__file__).with_name("axe.min.js")
_RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .map(({id, impact, nodes}) => ({id, impact, nodes: nodes.map((node) => `${node.html} ${node.failureSummary}`)}))"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scenery(system):
    """Something of everything; the id of a dead job."""
    for name in ("acme", "globex"):
        await system.ask("POST", "/v1/tenants", {"name": name, "weight": 2, "backlog": 5_000})
    done = [await system.submit("sink", {"key": f"scenery-{number}"}, queue="mail") for number in range(6)]
    await system.submit("report.render", {"big": 2**63 - 1}, queue="reports", tags=["monthly"], tenant="acme")
    await system.submit("report.render", queue="reports", delay="1h", tenant="globex")
    await system.ask("PATCH", "/v1/queues/reports", {"paused": True, "reason": "the printer is empty"})
    await system.ask("PATCH", "/v1/queues/mail", {"max_running": 3})
    (dead, *_) = await system.dead(3, queue="billing", error=("CardDeclined", "the card was declined"), tenant="acme")
    await system.key("read", tenant="acme", name="reader of acme")
    for job in done:
        await system.reached(job, "succeeded")
    return dead


PAGES = {
    "/": ["Throughput and failures", "the printer is empty", "CardDeclined"],
    "/jobs": ["report.render", "sink"],
    "/jobs?status=dead&queue=billing": ["fail.always"],
    "/jobs/new": ["Payload"],
    "/jobs/DEAD": ["CardDeclined", "Timeline", "Attempts"],
    "/queues": ["billing", "paused: the printer is empty", "3 at once"],
    "/dead": ["CardDeclined", "the card was declined", "Replay …"],
    "/workers": ["0 of 12", "Heard of"],
    "/performance": ["By type", "wait p95", "sink"],
    "/tenants": ["globex", "Received of entitled", "5,000 unfinished"],
    "/keys": ["reader of acme", "New key"],
}


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_shows_what_there_is_to_everybody(looking, scenery, path):
    """No serious finding of axe, in light on a desk and in dark on a phone, and nothing wider than either."""
    page = await looking.open(path.replace("DEAD", scenery))
    for text in PAGES[path]:
        await expect(page.get_by_text(text).first).to_be_visible()
    assert await page.title() != ""
    assert await looking.overflows() == 0
    await page.evaluate(AXE.read_text())
    found = await page.evaluate(_RUN)
    await page.emulate_media(color_scheme="dark")
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("button", name="Menu")).to_be_visible()
    assert await looking.overflows() == 0
    found += await page.evaluate(_RUN)
    serious = [each for each in found if each["impact"] in {"serious", "critical"}]
    assert serious == [], json.dumps(serious, indent=1)


async def test_pages_are_reached_by_keys_and_by_the_menu_of_a_phone(looking):
    page = await looking.open("/")
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


async def test_a_page_that_is_not_there_says_so(looking):
    page = await looking.open("/nowhere")
    await expect(page.get_by_text("There is no such page")).to_be_visible()


async def test_workers_show_what_they_run_and_are_drained(looking, system, queue):
    job = await system.submit("crunch.numbers", queue=queue)
    async with Hand(system, queue, "the fast one") as hand:
        await hand.take(1)
        await hand.renew(memory=84_200_000)
        page = await looking.open("/workers")
        row = page.get_by_role("row").filter(has_text="the fast one")
        await expect(row).to_contain_text("1 of 50")
        await expect(row).to_contain_text("84 MB")
        await page.get_by_role("button", name="Drain the fast one").click()
        await expect(page.get_by_role("dialog")).to_contain_text("lets the 1 job that it runs finish")
        assert not (await hand.renew())["draining"]
        await page.get_by_role("button", name="Drain it").click()
        await expect(row).to_contain_text("draining")
        await expect(page.get_by_role("button", name="Drain the fast one")).to_have_count(0)
        assert (await hand.renew())["draining"]
        await row.get_by_role("link", name="crunch.numbers").click()
        await expect(page.get_by_text(job)).to_be_visible()
        await system.ask("POST", f"/v1/jobs/{job}/cancel", {})
