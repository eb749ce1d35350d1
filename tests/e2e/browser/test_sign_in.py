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
    await page.evaluate("location.hash = '#/workers'")  # the page may already have asked for a key
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


async def test_an_administrator_of_a_tenant_manages_the_keys_of_that_tenant(driver, system):
    """T27: it sees its own tenant only, and can grant no scope of the installation."""
    await system.request("POST", "/v1/tenants", {"name": "branch", "weight": 3})
    await system.key("read", tenant="elsewhere", name="of another tenant")
    page = await driver.open("/keys", key=await system.key("admin", tenant="branch", name="of the branch"))
    table = page.get_by_role("table", name="API keys")
    await expect(table).to_contain_text("of the branch")
    await expect(table).not_to_contain_text("of another tenant")
    await page.get_by_role("button", name="New API key").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("checkbox")).to_have_count(5)
    await expect(dialog.get_by_role("textbox", name="Tenant")).to_have_count(0)
    await dialog.get_by_role("textbox", name="Name").fill("mailer")
    await dialog.get_by_role("button", name="Create key").click()
    await expect(dialog.locator("[data-token]")).to_contain_text("hf_")
    await dialog.get_by_role("button", name="Done").click()
    keys = (await system.request("GET", "/v1/keys?tenant=branch"))["items"]
    assert [key["scopes"] for key in keys if key["name"] == "mailer"] == [["read"]]
    await page.get_by_role("button", name="Revoke mailer").click()
    await page.get_by_role("button", name="Revoke key").click()
    await expect(page.get_by_role("button", name="Revoke mailer")).to_have_count(0)
    await page.get_by_role("link", name="Tenants").click()
    await expect(page.locator("dl.facts")).to_contain_text("Weight3")
    await expect(page.get_by_role("button", name="New tenant")).to_have_count(0)
