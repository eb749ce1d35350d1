"""Jobs that send welcome messages and compute reports. `holdfast work` runs them, over HTTP or with the database.

    export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
    holdfast work jobs:app --queues mail:4,reports:2

Submit both jobs:

    python jobs.py
"""

import asyncio

from holdfast import Context, Discard, Holdfast, Snooze

app = Holdfast()


class ServiceBusy(Exception):
    """The mail service asks to try again later."""


@app.job(name="welcome", queue="mail")
async def welcome(ctx: Context, address: str) -> dict[str, str]:
    """Send a welcome message."""
    if "@" not in address:
        raise Discard(f"{address!r} is not an address")  # the job is dead; other errors are retried
    # A later attempt gets the recorded text and does not render it again.
    text = await ctx.step("render", lambda: f"Welcome, {address}")
    try:
        # The mail service recognises the key of a repeated call.
        message_id = await ctx.step("send", send_mail, address, text, key=ctx.idempotency_key("send"))
    except ServiceBusy:
        raise Snooze(60) from None  # runs again in a minute, and this attempt does not count
    ctx.log("welcome sent", message_id=message_id)
    return {"message_id": message_id}


@app.job(name="report", queue="reports")
async def report(ctx: Context, days: int) -> dict[str, int]:
    """Add up the revenue of many days. The worker cancels the handler at its next `await` when it must stop."""
    total = 0
    for day in range(days):
        total += await revenue(day)
        await ctx.progress((day + 1) / days, f"day {day + 1}")
    return {"days": days, "revenue": total}


async def send_mail(address: str, text: str, key: str) -> str:
    """Stand for the call of a mail service; return the id of the message."""
    await asyncio.sleep(0.05)
    return f"{key} to {address}, {len(text)} characters"


async def revenue(day: int) -> int:
    """Stand for a query."""
    await asyncio.sleep(0.01)
    return 100 + day % 7


if __name__ == "__main__":
    print("submitted", welcome.enqueue("ada@example.org").id)
    print("submitted", report.enqueue(30).id)
