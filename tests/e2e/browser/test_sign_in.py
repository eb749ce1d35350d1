"""Sign-in, sign-out, and the limits of a read-only API key."""

import pytest
from playwright.async_api import expect

from tests.e2e.browser.driver import ADMIN

CANCEL = """async (id) => {
  const key = sessionStorage.getItem("holdfast.key");
  const headers = {authorization: `Bearer ${key}`, "content-type": "application/json"};
  return (await fetch(`v1/jobs/${id}/cancel`, {method: "POST", body: "{}", headers})).status;
}"""

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_sign_in_rejects_a_wrong_key_and_keeps_a_valid_one_in_its_tab(driver):
    """T31: the key does not appear in the URL."""
    driver.expected_errors = {401}
    page = await driver.open("/queues", key=None)
    field = page.get_by_role("textbox", name="API key or token")
    await field.fill("hf_not_a_key")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Sign-in failed")
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


async def test_a_revoked_key_leads_back_to_the_sign_in_page(driver, system):
    driver.expected_errors = {401}
    token = await system.key("read", name="to be revoked")
    page = await driver.open("/jobs", key=token)
    await expect(page.get_by_role("heading", name="Jobs")).to_be_attached()
    keys = (await system.request("GET", "/v1/keys"))["items"]
    found = next(key["id"] for key in keys if key["name"] == "to be revoked")
    await system.request("DELETE", f"/v1/keys/{found}")
    await page.get_by_role("link", name="Workers").click()
    await expect(page.get_by_role("textbox", name="API key or token")).to_be_visible()


async def test_a_read_only_key_sees_its_tenant_and_no_actions(driver, system, queue):
    """T27: the server rejects the action too, regardless of what the page shows."""
    driver.expected_errors = {403}
    job = await system.submit("seen", queue=queue, tenant="readers")
    hidden = await system.submit("hidden", queue=queue, tenant="others")
    await system.dead(1, queue=f"{queue}-dead", error=("Broken", "for readers"), tenant="readers")
    page = await driver.open(f"/jobs?queue={queue}", key=await system.key("read", tenant="readers"))
    await expect(page.locator(f"[data-row='{job}']")).to_be_visible()
    await expect(page.locator(f"[data-row='{hidden}']")).to_have_count(0)
    actions = ["New job", "Cancel all matching …", "Cancel …", "Replay …", "Delete …", "Pause …"]
    shown = {
        f"/jobs?queue={queue}": "seen",
        f"/jobs/{job}": "Timeline",
        "/queues": queue,
        "/dead": "for readers",
        "/workers": "Heartbeat",
        "/performance": "By type",
    }
    for path, text in shown.items():
        await driver.open(path)
        await expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
        for action in actions:
            await expect(page.get_by_role("main").get_by_text(action, exact=True)).to_have_count(0)
    for name in ("Tenants", "API keys"):
        await expect(page.get_by_role("link", name=name)).to_have_count(0)
    await driver.open("/keys")
    await expect(page.get_by_role("alert")).to_contain_text("Permission denied")
    assert await page.evaluate(CANCEL, job) == 403
    assert (await system.request("GET", f"/v1/jobs/{job}"))["status"] == "ready"
