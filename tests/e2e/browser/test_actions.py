"""Actions in the dashboard, and their effects on the page without a reload."""

import re

import pytest
from playwright.async_api import expect

from tests.e2e.browser.driver import ManualWorker
from tests.support.eventually import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def badge(page, status):
    return page.locator(f"h1 ~ .state.{status}")


async def test_the_job_page_follows_a_job_without_a_reload(driver, system):
    """The document stays the same from scheduled to succeeded."""
    job = await system.submit("sink", {"key": "seen", "held": True, "sleep": 120}, delay="1h")
    page = await driver.open(f"/jobs/{job}")
    await driver.live()
    await expect(badge(page, "scheduled")).to_be_visible()
    await page.evaluate("window.stayed = true")
    await page.get_by_role("button", name="Run now").click()
    await expect(badge(page, "running")).to_be_visible()
    system.release("seen")
    await expect(badge(page, "succeeded")).to_be_visible()
    await expect(page.get_by_text("Result", exact=True)).to_be_visible()
    assert await page.evaluate("window.stayed")


async def test_the_job_list_follows_a_job_without_a_reload(driver, system):
    page = await driver.open("/jobs?queue=mail")
    await driver.live()
    await page.evaluate("window.stayed = true")
    job = await system.submit("sink", {"key": "listed", "held": True, "sleep": 120}, queue="mail")
    row = page.locator(f"[data-row='{job}']")
    await expect(row.locator(".state.running")).to_be_visible()
    system.release("listed")
    await expect(row.locator(".state.succeeded")).to_be_visible()
    assert await page.evaluate("window.stayed")


async def test_a_job_is_cancelled_with_a_reason_and_retried(driver, system, queue):
    job = await system.submit("slow.thing", queue=queue)
    page = await driver.open(f"/jobs/{job}")
    await page.get_by_role("button", name="Cancel …").click()
    await page.get_by_role("textbox", name="Reason").fill("no longer <b>needed</b>")
    await page.get_by_role("button", name="Cancel job").click()
    await expect(badge(page, "cancelled")).to_be_visible()
    await expect(page.get_by_text("no longer <b>needed</b>").first).to_be_visible()
    assert (await system.request("GET", f"/v1/jobs/{job}"))["reason"] == "no longer <b>needed</b>"
    await page.get_by_role("button", name="Retry").click()
    await expect(badge(page, "ready")).to_be_visible()


async def test_a_dead_job_is_replayed(driver, system):
    job = await system.submit("sink", {"key": "fails", "action": "fail_times", "amount": 1}, max_attempts=1)
    await system.reached(job, "dead")
    page = await driver.open(f"/jobs/{job}")
    await expect(badge(page, "dead")).to_be_visible()
    await page.get_by_role("button", name="Replay", exact=True).click()

    async def failed_again():  # the replay restarts with attempt 1
        found = await system.request("GET", f"/v1/jobs/{job}")
        return (found["generation"], found["status"]) == (1, "dead")

    await eventually(failed_again, within=60)
    await expect(page.get_by_role("definition").get_by_text("1 time", exact=True)).to_be_visible()


async def test_matching_jobs_are_cancelled_after_a_preview(driver, system, queue):
    ids = [await system.submit("many", queue=queue) for _ in range(7)]
    other = await system.submit("other", queue=queue)
    page = await driver.open(f"/jobs?queue={queue}&type=many")
    await page.get_by_role("button", name="Cancel all matching …").click()
    await expect(page.get_by_role("dialog")).to_contain_text("This affects 7 jobs")
    assert {(await system.request("GET", f"/v1/jobs/{job}"))["status"] for job in ids} == {"ready"}
    await page.get_by_role("button", name="Cancel 7").click()
    await expect(page.get_by_role("dialog")).to_contain_text("7 jobs changed")
    assert {(await system.request("GET", f"/v1/jobs/{job}"))["status"] for job in ids} == {"cancelled"}
    assert (await system.request("GET", f"/v1/jobs/{other}"))["status"] == "ready"


async def test_submitting_json_keeps_large_integers_exact(driver, system, queue):
    page = await driver.open("/jobs/new")
    await page.get_by_label("Type").fill("exact.numbers")
    await page.get_by_label("Queue").fill(queue)
    await page.get_by_label("Payload").fill('{"n": 9007199254740993}')
    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_role("heading", name="exact.numbers")).to_be_visible()
    await expect(page.get_by_text("9007199254740993").first).to_be_visible()
    (job,) = (await system.request("GET", f"/v1/jobs?queue={queue}"))["items"]
    assert job["payload"] == {"n": 9_007_199_254_740_993}


SCHEMA = {
    "type": "object",
    "description": "Prints an order.",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "size": {"enum": ["A4", "A5"], "default": "A4"},
        "urgent": {"type": "boolean", "default": False},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "lines": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["order", "lines"],
}


async def test_the_form_of_a_job_type_validates_and_submits(driver, system, queue):
    """T27: large integers stay exact, errors are shown at their fields, and the form switches to JSON and back."""
    described = [{"type": "print.order", "schema": SCHEMA, "queue": queue}]
    async with ManualWorker(system, queue, types=["print.order"], described=described):
        page = await driver.open("/jobs/new")
        await page.get_by_label("Type").fill("print.order")
        await expect(page.get_by_text("Prints an order. Handled by 1 worker.")).to_be_visible()
        await page.get_by_label("order").fill("9007199254740993.5")
        await page.get_by_role("button", name="Submit").click()
        await expect(page.get_by_text("Enter an integer.")).to_be_visible()
        await expect(page.get_by_text("Required.")).to_be_visible()
        await page.get_by_label("order").fill("9007199254740993")
        await page.get_by_label("size").select_option("A5")
        await page.get_by_label("lines").fill('["one", "<b>two</b>"]')
        await page.get_by_role("button", name="JSON", exact=True).click()
        await expect(page.get_by_role("textbox", name="Payload")).to_have_value(
            re.compile('"order": 9007199254740993,')
        )
        await page.get_by_role("button", name="form", exact=True).click()
        await page.get_by_label("urgent").select_option("true")
        await page.get_by_role("button", name="Submit").click()
        await expect(page.get_by_role("heading", name="print.order")).to_be_visible()
    (job,) = (await system.request("GET", f"/v1/jobs?queue={queue}"))["items"]
    expected = {"order": 9_007_199_254_740_993, "size": "A5", "urgent": True, "lines": ["one", "<b>two</b>"]}
    assert job["payload"] == expected


async def test_a_queue_is_paused_resumed_and_limited(driver, system, queue):
    job = await system.submit("waits", queue=queue)
    page = await driver.open("/queues")
    await page.get_by_role("button", name=f"Pause {queue}").click()
    await page.get_by_role("textbox", name="Reason").fill("database migration")
    await page.get_by_role("button", name="Pause", exact=True).click()
    row = page.locator(f"[data-row='{queue}']")
    await expect(row).to_contain_text("paused: database migration")
    await driver.open(f"/jobs/{job}")
    await expect(page.get_by_text("database migration").first).to_be_visible()
    await driver.open("/queues")
    await page.get_by_role("button", name=f"Resume {queue}").click()
    await expect(row).not_to_contain_text("paused:")
    await page.get_by_role("button", name=f"Limits of {queue}:").click()
    await page.get_by_role("textbox", name="Max. running jobs").fill("2")
    await page.get_by_role("textbox", name="Rate limit").fill("100/m")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(row).to_contain_text("max 2 running, 100/m")
    queues = {entry["name"]: entry for entry in (await system.request("GET", "/v1/queues"))["items"]}
    assert (queues[queue]["paused"], queues[queue]["max_running"]) == (False, 2)


async def test_a_type_is_paused_and_resumed(driver, system, queue):
    job = await system.submit("paused.here", queue=queue)
    page = await driver.open("/queues")
    await page.get_by_role("button", name="Pause a type …").click()
    await page.get_by_role("combobox", name="Type").fill("paused.here")
    await page.get_by_role("textbox", name="Reason").fill("the partner is closed")
    await page.get_by_role("button", name="Pause", exact=True).click()
    paused = page.get_by_role("listitem").filter(has_text="paused.here")
    await expect(paused).to_contain_text("the partner is closed")
    await driver.open(f"/jobs/{job}")
    await expect(page.get_by_text("the partner is closed").first).to_be_visible()
    await driver.open("/")
    await expect(page.get_by_text("The type paused.here is paused: the partner is closed")).to_be_visible()
    await driver.open("/queues")
    await page.get_by_role("button", name="Resume paused.here").click()
    await expect(paused).to_have_count(0)
    assert (await system.request("GET", "/v1/pauses"))["items"] == []


async def test_dead_letters_are_replayed_in_stages(driver, system, queue):
    ids = await system.dead(24, queue=queue, error=("Unreachable", f"cannot reach {queue}"))

    async def ready():
        found = [await system.request("GET", f"/v1/jobs/{job}") for job in ids]
        return sum(job["status"] == "ready" for job in found)

    page = await driver.open("/dead")
    group = page.get_by_role("listitem").filter(has_text=f"cannot reach {queue}")
    await expect(group).to_contain_text("24")
    await group.get_by_role("button", name="Replay …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Replay one").click()
    await expect(dialog).to_contain_text("One: 1 job replayed")
    assert await ready() == 1
    await dialog.get_by_role("button", name="Replay 2 more (5 %)").click()
    await expect(dialog).to_contain_text("Sample: 2 jobs replayed")
    assert await ready() == 3
    await dialog.get_by_role("button", name="Replay the rest").click()
    await expect(dialog).to_contain_text("Rest: 21 jobs replayed")
    assert await ready() == 24
    await expect(dialog).to_contain_text("20 unfinished")
    await dialog.get_by_text("Close", exact=True).click()
    await expect(group).to_have_count(0)


async def test_an_api_key_is_shown_once_and_can_be_revoked(driver, system):
    page = await driver.open("/keys")
    await page.get_by_role("button", name="New API key").click()
    await page.get_by_role("textbox", name="Name").fill("shown once")
    await page.get_by_role("textbox", name="Tenant").fill("acme-of-keys")
    await page.get_by_role("checkbox", name="submit").check()
    await page.get_by_role("button", name="Create key").click()
    token = (await page.locator("[data-token]").inner_text()).strip()
    me = await system.request("GET", "/v1/me", authorization=f"Bearer {token}")
    assert (me["tenant"], sorted(me["scopes"])) == ("acme-of-keys", ["read", "submit"])
    await page.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="shown once")
    await expect(row).to_contain_text("active")
    assert token not in await page.content()
    await page.get_by_role("button", name="Revoke shown once").click()
    await page.get_by_role("button", name="Revoke key").click()
    await expect(row).to_contain_text("revoked")


async def test_a_tenant_is_created_with_a_weight(driver, system):
    driver.expected_errors = {422}
    page = await driver.open("/tenants")
    await page.get_by_role("button", name="New tenant").click()
    await page.get_by_role("textbox", name="Name").fill("not a name")
    await page.get_by_label("Weight").fill("3")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("dialog").get_by_text("wrong form").first).to_be_visible()
    await page.get_by_role("textbox", name="Name").fill("created-here")
    await page.get_by_role("button", name="Create").click()
    row = page.locator("[data-row='created-here']")
    await expect(row).to_contain_text("3")
    found = {entry["name"]: entry for entry in (await system.request("GET", "/v1/tenants"))["items"]}
    assert found["created-here"]["weight"] == 3
