"""What people do, and what they see of it without loading the page again."""

import re

import pytest
from playwright.async_api import expect

from tests.e2e.browser.looking import Hand
from tests.support.eventually import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def badge(page, status):
    return page.locator(f"h1 ~ .state.{status}")


async def test_a_job_is_seen_to_run_without_a_reload(looking, system):
    """The same document from ready to succeeded, on the job's own page and in the list."""
    job = await system.submit("sink", {"key": "seen", "held": True, "sleep": 120}, delay="1h")
    page = await looking.open(f"/jobs/{job}")
    await looking.live()
    await expect(badge(page, "scheduled")).to_be_visible()
    await page.evaluate("window.stayed = true")
    await page.get_by_role("button", name="Run now").click()
    await expect(badge(page, "running")).to_be_visible()
    system.let_go("seen")
    await expect(badge(page, "succeeded")).to_be_visible()
    await expect(page.get_by_text("Result", exact=True)).to_be_visible()
    assert await page.evaluate("window.stayed")


async def test_a_list_changes_by_itself(looking, system):
    page = await looking.open("/jobs?queue=mail")
    await looking.live()
    await page.evaluate("window.stayed = true")
    job = await system.submit("sink", {"key": "listed", "held": True, "sleep": 120}, queue="mail")
    row = page.locator(f"[data-row='{job}']")
    await expect(row.locator(".state.running")).to_be_visible()
    system.let_go("listed")
    await expect(row.locator(".state.succeeded")).to_be_visible()
    assert await page.evaluate("window.stayed")


async def test_a_job_is_cancelled_with_a_reason_and_run_after_all(looking, system, queue):
    job = await system.submit("slow.thing", queue=queue)
    page = await looking.open(f"/jobs/{job}")
    await page.get_by_role("button", name="Cancel …").click()
    await page.get_by_role("textbox", name="Reason").fill("not wanted <b>any</b> more")
    await page.get_by_role("button", name="Cancel the job").click()
    await expect(badge(page, "cancelled")).to_be_visible()
    await expect(page.get_by_text("not wanted <b>any</b> more").first).to_be_visible()
    assert (await system.ask("GET", f"/v1/jobs/{job}"))["reason"] == "not wanted <b>any</b> more"
    await page.get_by_role("button", name="Run after all").click()
    await expect(badge(page, "ready")).to_be_visible()


async def test_a_dead_job_is_replayed(looking, system):
    job = await system.submit("sink", {"key": "fails", "action": "fail_times", "amount": 1}, max_attempts=1)
    await system.reached(job, "dead")
    page = await looking.open(f"/jobs/{job}")
    await expect(badge(page, "dead")).to_be_visible()
    await page.get_by_role("button", name="Replay", exact=True).click()

    async def failed_anew():  # its attempts are counted anew
        found = await system.ask("GET", f"/v1/jobs/{job}")
        return (found["generation"], found["status"]) == (1, "dead")

    await eventually(failed_anew, within=60)
    await expect(
        page.get_by_text("2 attempts").or_(page.get_by_text("attempt 1 of 1 that are to fail")).first
    ).to_be_visible()


async def test_all_that_match_are_cancelled_after_a_preview(looking, system, queue):
    ids = [await system.submit("many", queue=queue) for _ in range(7)]
    other = await system.submit("other", queue=queue)
    page = await looking.open(f"/jobs?queue={queue}&type=many")
    await page.get_by_role("button", name="Cancel all that match …").click()
    await expect(page.get_by_role("dialog")).to_contain_text("This reaches 7 jobs")
    assert {(await system.ask("GET", f"/v1/jobs/{job}"))["status"] for job in ids} == {"ready"}
    await page.get_by_role("button", name="Cancel 7").click()
    await expect(page.get_by_role("dialog")).to_contain_text("7 jobs changed")
    assert {(await system.ask("GET", f"/v1/jobs/{job}"))["status"] for job in ids} == {"cancelled"}
    assert (await system.ask("GET", f"/v1/jobs/{other}"))["status"] == "ready"


async def test_a_job_is_submitted_with_numbers_as_they_are(looking, system, queue):
    page = await looking.open("/jobs/new")
    await page.get_by_label("Type").fill("exact.numbers")
    await page.get_by_label("Queue").fill(queue)
    await page.get_by_label("Payload").fill('{"n": 9007199254740993}')
    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_role("heading", name="exact.numbers")).to_be_visible()
    await expect(page.get_by_text("9007199254740993").first).to_be_visible()
    (job,) = (await system.ask("GET", f"/v1/jobs?queue={queue}"))["items"]
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


async def test_a_job_is_submitted_by_the_form_of_its_type(looking, system, queue):
    """T27: whole numbers as they are; what is wrong is said at its field; the JSON of it is one press away."""
    described = [{"type": "print.order", "schema": SCHEMA, "queue": queue}]
    async with Hand(system, queue, types=["print.order"], described=described):
        page = await looking.open("/jobs/new")
        await page.get_by_label("Type").fill("print.order")
        await expect(page.get_by_text("Prints an order. Handled by 1 worker.")).to_be_visible()
        await page.get_by_label("order").fill("9007199254740993.5")
        await page.get_by_role("button", name="Submit").click()
        await expect(page.get_by_text("A whole number is needed.")).to_be_visible()
        await expect(page.get_by_text("This is needed.")).to_be_visible()
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
    (job,) = (await system.ask("GET", f"/v1/jobs?queue={queue}"))["items"]
    kept = {"order": 9_007_199_254_740_993, "size": "A5", "urgent": True, "lines": ["one", "<b>two</b>"]}
    assert job["payload"] == kept


async def test_a_queue_rests_and_is_resumed_and_limited(looking, system, queue):
    job = await system.submit("waits", queue=queue)
    page = await looking.open("/queues")
    await page.get_by_role("button", name=f"Pause {queue}").click()
    await page.get_by_role("textbox", name="Reason").fill("we move house")
    await page.get_by_role("button", name="Pause", exact=True).click()
    row = page.locator(f"[data-row='{queue}']")
    await expect(row).to_contain_text("paused: we move house")
    await looking.open(f"/jobs/{job}")
    await expect(page.get_by_text("we move house").first).to_be_visible()
    await looking.open("/queues")
    await page.get_by_role("button", name=f"Resume {queue}").click()
    await expect(row).not_to_contain_text("paused")
    await page.get_by_role("button", name=f"Limits of {queue}:").click()
    await page.get_by_role("textbox", name="At once").fill("2")
    await page.get_by_role("textbox", name="Starts").fill("100/m")
    await page.get_by_role("button", name="Set", exact=True).click()
    await expect(row).to_contain_text("2 at once, 100/m")
    queues = {each["name"]: each for each in (await system.ask("GET", "/v1/queues"))["items"]}
    assert (queues[queue]["paused"], queues[queue]["max_running"]) == (False, 2)


async def test_a_type_rests_and_is_resumed(looking, system, queue):
    job = await system.submit("rests.here", queue=queue)
    page = await looking.open("/queues")
    await page.get_by_role("button", name="Pause a type …").click()
    await page.get_by_role("combobox", name="Type").fill("rests.here")
    await page.get_by_role("textbox", name="Reason").fill("the partner is closed")
    await page.get_by_role("button", name="Pause", exact=True).click()
    paused = page.get_by_role("listitem").filter(has_text="rests.here")
    await expect(paused).to_contain_text("the partner is closed")
    await looking.open(f"/jobs/{job}")
    await expect(page.get_by_text("the partner is closed").first).to_be_visible()
    await looking.open("/")
    await expect(page.get_by_text("The type rests.here is paused: the partner is closed")).to_be_visible()
    await looking.open("/queues")
    await page.get_by_role("button", name="Resume rests.here").click()
    await expect(paused).to_have_count(0)
    assert (await system.ask("GET", "/v1/pauses"))["items"] == []


async def test_dead_letters_are_replayed_in_stages(looking, system, queue):
    ids = await system.dead(24, queue=queue, error=("Unreachable", f"no way to {queue}"))

    async def ready():
        found = [await system.ask("GET", f"/v1/jobs/{job}") for job in ids]
        return sum(job["status"] == "ready" for job in found)

    page = await looking.open("/dead")
    group = page.get_by_role("listitem").filter(has_text=f"no way to {queue}")
    await expect(group).to_contain_text("24")
    await group.get_by_role("button", name="Replay …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Replay one").click()
    await expect(dialog).to_contain_text("One: 1 job sent back")
    assert await ready() == 1
    await dialog.get_by_role("button", name="Replay 2 more (5 %)").click()
    await expect(dialog).to_contain_text("Some: 2 jobs sent back")
    assert await ready() == 3
    await dialog.get_by_role("button", name="Replay all that are left").click()
    await expect(dialog).to_contain_text("21 jobs sent back")
    assert await ready() == 24
    await expect(dialog).to_contain_text("20 not yet decided")
    await dialog.get_by_text("Close", exact=True).click()
    await expect(group).to_have_count(0)


async def test_a_key_is_shown_once_and_revoked(looking, system):
    page = await looking.open("/keys")
    await page.get_by_role("button", name="New key").click()
    await page.get_by_role("textbox", name="Name").fill("shown once")
    await page.get_by_role("textbox", name="Tenant").fill("acme-of-keys")
    await page.get_by_role("checkbox", name="submit").check()
    await page.get_by_role("button", name="Make the key").click()
    token = (await page.locator("[data-token]").inner_text()).strip()
    me = await system.ask("GET", "/v1/me", authorization=f"Bearer {token}")
    assert (me["tenant"], sorted(me["scopes"])) == ("acme-of-keys", ["read", "submit"])
    await page.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row").filter(has_text="shown once")
    await expect(row).to_contain_text("good")
    assert token not in await page.content()
    await page.get_by_role("button", name="Revoke shown once").click()
    await page.get_by_role("button", name="Revoke it").click()
    await expect(row).to_contain_text("revoked")


async def test_a_tenant_is_entered_with_its_quotas(looking, system):
    looking.refusals = {422}
    page = await looking.open("/tenants")
    await page.get_by_role("button", name="New tenant").click()
    await page.get_by_role("textbox", name="Name").fill("not a name")
    await page.get_by_label("Weight").fill("3")
    await page.get_by_role("button", name="Enter").click()
    await expect(page.get_by_role("dialog").get_by_text("matching regex").first).to_be_visible()
    await page.get_by_role("textbox", name="Name").fill("entered-here")
    await page.get_by_role("button", name="Enter").click()
    row = page.locator("[data-row='entered-here']")
    await expect(row).to_contain_text("3")
    found = {each["name"]: each for each in (await system.ask("GET", "/v1/tenants"))["items"]}
    assert found["entered-here"]["weight"] == 3
