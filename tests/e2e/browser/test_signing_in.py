"""The way in, and what a key may not do."""

import pytest
from playwright.async_api import expect

from tests.e2e.browser.looking import ADMIN

CANCEL = """async (id) => {
  const key = sessionStorage.getItem("holdfast.key");
  const headers = {authorization: `Bearer ${key}`, "content-type": "application/json"};
  return (await fetch(`v1/jobs/${id}/cancel`, {method: "POST", body: "{}", headers})).status;
}"""

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_a_wrong_key_opens_nothing_and_a_good_one_stays_in_its_tab(looking):
    """T31: no key in an address."""
    looking.refusals = {401}
    page = await looking.open("/queues", key=None)
    field = page.get_by_role("textbox", name="API key or token")
    await field.fill("hf_not_a_key")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("no good key")
    await field.fill(ADMIN)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Queues").first).to_be_attached()
    assert ADMIN not in page.url
    assert await page.evaluate("[localStorage.length, document.cookie].join()") in ("0,", "1,")
    assert ADMIN not in await page.evaluate("JSON.stringify(localStorage)")
    await page.reload()
    await expect(page.get_by_role("heading", name="Queues").first).to_be_attached()
    await page.get_by_role("button", name="Sign out").click()
    await expect(field).to_be_visible()
    assert await page.evaluate("sessionStorage.getItem('holdfast.key')") is None


async def test_a_key_that_is_revoked_meanwhile_leads_back_to_the_door(looking, system):
    looking.refusals = {401}
    token = await system.key("read", name="to be revoked")
    page = await looking.open("/jobs", key=token)
    await expect(page.get_by_role("heading", name="Jobs")).to_be_attached()
    keys = (await system.ask("GET", "/v1/keys"))["items"]
    found = next(key["id"] for key in keys if key["name"] == "to be revoked")
    await system.ask("DELETE", f"/v1/keys/{found}")
    await page.get_by_role("link", name="Workers").click()
    await expect(page.get_by_role("textbox", name="API key or token")).to_be_visible()


async def test_a_key_to_read_sees_everything_and_is_offered_nothing(looking, system, queue):
    """T27: and the server refuses it, whatever the page shows."""
    looking.refusals = {403}
    job = await system.submit("seen", queue=queue, tenant="readers")
    hidden = await system.submit("hidden", queue=queue, tenant="others")
    await system.dead(1, queue=f"{queue}-dead", error=("Broken", "for readers"), tenant="readers")
    page = await looking.open(f"/jobs?queue={queue}", key=await system.key("read", tenant="readers"))
    await expect(page.locator(f"[data-row='{job}']")).to_be_visible()
    await expect(page.locator(f"[data-row='{hidden}']")).to_have_count(0)
    offers = ["New job", "Cancel all that match …", "Cancel …", "Replay …", "Delete …", "Pause …"]
    shown = {
        f"/jobs?queue={queue}": "seen",
        f"/jobs/{job}": "Timeline",
        "/queues": queue,
        "/dead": "for readers",
        "/workers": "Heard of",
        "/performance": "By type",
    }
    for path, text in shown.items():
        await looking.open(path)
        await expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
        for offer in offers:
            await expect(page.get_by_role("main").get_by_text(offer, exact=True)).to_have_count(0)
    for name in ("Tenants", "Keys"):
        await expect(page.get_by_role("link", name=name)).to_have_count(0)
    await looking.open("/keys")
    await expect(page.get_by_role("alert")).to_contain_text("may not")
    assert await page.evaluate(CANCEL, job) == 403
    assert (await system.ask("GET", f"/v1/jobs/{job}"))["status"] == "ready"
