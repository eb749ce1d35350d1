"""Performance of the Jobs page with a million jobs and 500 changes per second. Needs Chromium.

    python bench/dashboard.py                                  # on a private PostgreSQL
    python bench/dashboard.py --jobs 100000 --seconds 10

First it measures the requests of the page, with 100 jobs in the database and then with all: milliseconds of each, and
the rows and index entries that PostgreSQL visited. The rows are the reliable measure: they do not depend on the load of
the machine.

Then it measures the page: idle; while jobs that are submitted, run and succeed cause this many changes per second, of
which the server lists about fifty and counts the others; and with as many single events in the stream. It prints the
CPU time of the main thread per second, the tasks of more than 50 ms, and the gaps between frames (16.7 ms if nothing
stutters). Tasks and gaps are measured by the clock, so that other load on the machine affects them.
"""

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
from playwright.async_api import CDPSession, Page, async_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.model.change_log import MAX_LISTED_CHANGES  # noqa: E402
from tests.support.databases import DATABASES, drop_all  # noqa: E402
from tests.support.servers import Server, running  # noqa: E402
from tests.support.servers.recipes import Chromium  # noqa: E402
from tests.support.services import Service  # noqa: E402

KEY = "a-key-for-a-benchmark-and-nothing-else"
FEW = 100
ROUNDS = 15
"""Times that each request is options."""
REQUESTS = {
    "all": "/v1/jobs?limit=50",
    "ready": "/v1/jobs?limit=50&status=ready",
    "running": "/v1/jobs?limit=50&status=running",
    "scheduled": "/v1/jobs?limit=50&status=scheduled",
    "succeeded": "/v1/jobs?limit=50&status=succeeded",
    "dead": "/v1/jobs?limit=50&status=dead",
    "cancelled": "/v1/jobs?limit=50&status=cancelled",
    "a queue": "/v1/jobs?limit=50&queue=q7",
    "a type": "/v1/jobs?limit=50&type=type.7",
    "a tenant": "/v1/jobs?limit=50&tenant=t7",
    "a tag": "/v1/jobs?limit=50&tag=monthly",
    "a rare type": "/v1/jobs?limit=50&type=not.there",
    "older": "",
    "counts": "/v1/stats",
    "me": "/v1/me",
}
"""Requests of the page. `older` uses the cursor of the first page."""

# Of a hundred jobs, 60 have succeeded, 3 were cancelled, 5 are dead, and most others are ready. Ids follow time.
_NUMBERED = """
  SELECT n, n % 100 AS nth, ((extract(epoch FROM now()) * 1000)::bigint - {all} + n) * 1000 AS at,
    (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - {all} + n), 12, '0') || '70008000'
      || lpad(to_hex(n), 12, '0'))::uuid AS id,
    't' || n % 200 AS tenant, 'q' || n % 20 AS queue, 'type.' || n % 30 AS type,
    convert_to('{{"order": ' || n || '}}', 'UTF8') AS payload,
    CASE WHEN n % 10 = 0 THEN convert_to('["monthly"]', 'UTF8') END AS tags
  FROM generate_series(0, {all} - 1) AS n"""
_LIVE = """
INSERT INTO holdfast_live (id, created_at, scheduled_at, status, attempts, max_attempts, tenant, queue, type, payload,
                           tags)
SELECT id, at, CASE WHEN nth >= 96 THEN at + 86400000000 END, CASE WHEN nth >= 96 THEN 5 ELSE 0 END, 0, 5,
       tenant, queue, type, payload, tags
FROM ({numbered}) AS j WHERE nth >= 68"""
_ENDED = """
INSERT INTO {table} (id, seq, created_at, started_at, finished_at, fence, cost, status, priority, attempts,
                     max_attempts, releases, generation, tenant, queue, type, payload, tags, fingerprint)
SELECT id, n, at, at, at + 1000, 1, 1, {status}, 0, 1, 5, 0, 0, tenant, queue, type, payload, tags, {fingerprint}
FROM ({numbered}) AS j WHERE nth {which}"""
_FILL = (
    _LIVE,
    _ENDED.replace("{table}", "holdfast_history")
    .replace("{status}", "CASE WHEN nth < 60 THEN 2 ELSE 4 END")
    .replace("{fingerprint}", "NULL")
    .replace("{which}", "< 63"),
    _ENDED.replace("{table}", "holdfast_dead")
    .replace("{status}", "3")
    .replace("{fingerprint}", "'fp' || n % 50")
    .replace("{which}", "BETWEEN 63 AND 67"),
)
_VISITED = """
SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"""

# Counts events of the stream, frames and long tasks; a late frame appears as a gap. `flood` adds this many events per
# second to the stream, half of them of visible jobs, because the server lists only about fifty.
_WATCH = r"""
window.events = 0; window.gaps = []; window.long = []; window.flood = 0;
const fetched = window.fetch;
const written = new TextEncoder();
const named = (text) => { window.events += text.split("event: job\n").length - 1; return text; };
const more = (count) => {
  const rows = [...document.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
  const states = ["ready", "running", "succeeded"];
  return Array.from({length: count}, (_, index) => {
    const id = index % 2 && rows.length ? rows[Math.floor(Math.random() * rows.length)] : crypto.randomUUID();
    const change = {id, tenant: "default", queue: "bench", type: "bench.changes", attempts: 1, fence: 1,
      status: states[Math.floor(Math.random() * 3)], at: new Date().toISOString()};
    return `event: job\ndata: ${JSON.stringify(change)}\n\n`;
  }).join("");
};
window.fetch = async (url, ...rest) => {
  const response = await fetched(url, ...rest);
  if (!String(url).includes("v1/events") || !response.body) return response;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer, owed = 0, since = performance.now();
  const both = new ReadableStream({
    start(controller) {
      timer = setInterval(() => {
        const now = performance.now();
        owed += window.flood * (now - since) / 1000;
        since = now;
        const count = Math.floor(owed);
        if (count) controller.enqueue(written.encode(named(more(count))));
        owed -= count;
      }, 20);
      const pass = async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          controller.enqueue(written.encode(named(part.value)));
        }
        clearInterval(timer);
        controller.close();
      };
      pass().catch((error) => { clearInterval(timer); controller.error(error); });
    },
    cancel() { clearInterval(timer); return reader.cancel(); },
  });
  return new Response(both, {status: response.status, headers: response.headers});
};
new PerformanceObserver((list) => window.long.push(...list.getEntries().map((each) => each.duration)))
  .observe({type: "longtask"});
let last = performance.now();
const frame = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(frame); };
requestAnimationFrame(frame);
"""


def main() -> int:
    """Measure and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="number of jobs")
    parser.add_argument("--events", type=int, default=500, help="changes per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measurement")
    options = parser.parse_args()
    program = Chromium().find()
    if program is None:
        print("there is no Chromium here: apt install chromium", file=sys.stderr)
        return 1
    with running({"postgres"}) as servers:
        server = servers["postgres"]
        if not isinstance(server, Server):
            print(server, file=sys.stderr)
            return 1
        asyncio.run(_measure(server.url, program.path, options))
    return 0


async def _measure(server_url: str, program: Path, options: argparse.Namespace) -> None:
    prefix = f"holdfast_bench_{secrets.token_hex(6)}_"
    urls: dict[int, str] = {}
    try:
        for jobs in (FEW, options.jobs):
            async with DATABASES["postgres"](server_url, f"{prefix}{jobs}") as database:
                await database.migrate()
                urls[jobs] = database.url
            async with _node(database.url):
                await _fill(database.url, jobs)  # after the node has made the partitions of history
        few, many = [await _options_for(url) for url in urls.values()]
        _print_requests(few, many, options.jobs)
        sys.stdout.flush()
        small, large = [await _looked_at(url, program, options) for url in urls.values()]
        _print_page(small, large, options)
    finally:
        await drop_all("postgres", server_url, prefix)


Requests = dict[str, tuple[float, float]]
Frames = dict[str, dict[str, float]]


@asynccontextmanager
async def _node(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A node on this database, and the way to ask it."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(url, Path(folder), {"HOLDFAST_ADMIN_KEY": KEY})
        service.start()
        headers = {"authorization": f"Bearer {KEY}"}
        try:
            async with httpx2.AsyncClient(base_url=service.url, headers=headers, trust_env=False, timeout=60) as http:
                yield http
        finally:
            service.kill()


async def _fill(url: str, jobs: int) -> None:
    console = await asyncpg.connect(url)
    for statement in _FILL:
        await console.execute(statement.replace("{numbered}", _NUMBERED).format(all=jobs))
    await console.execute("VACUUM ANALYZE")
    await console.close()


async def _options_for(url: str) -> Requests:
    async with _node(url) as http:
        console = await asyncpg.connect(url)
        try:
            return await _requests(http, console)
        finally:
            await console.close()


async def _looked_at(url: str, program: Path, options: argparse.Namespace) -> Frames:
    async with _node(url) as http:
        return await _frames(str(http.base_url).rstrip("/"), http, program, options)


async def _requests(http: httpx2.AsyncClient, console: asyncpg.Connection) -> Requests:
    first = (await _get(http, REQUESTS["all"])).json()
    paths = {**REQUESTS, "older": f"/v1/jobs?limit=50&cursor={first['next_cursor']}"}
    rest = await _settled(console)
    await asyncio.sleep(5)
    meanwhile = (await _settled(console) - rest) / 5  # what the node does by itself, each second
    found = {}
    for name, path in paths.items():
        await _get(http, path)
        before, began = await _settled(console), time.perf_counter()
        took = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            await _get(http, path)
            took.append((time.perf_counter() - start) * 1_000)
        after = await _settled(console)
        visited = after - before - meanwhile * (time.perf_counter() - began)
        found[name] = statistics.median(took), max(0.0, visited / ROUNDS)
    return found


async def _get(http: httpx2.AsyncClient, path: str) -> httpx2.Response:
    response = await http.get(path)
    response.raise_for_status()
    return response


async def _settled(console: asyncpg.Connection) -> float:
    """Rows and entries visited so far, once the sessions have reported what they did."""
    await asyncio.sleep(1.2)
    await console.execute("SELECT pg_stat_clear_snapshot()")
    return float(await console.fetchval(_VISITED))


async def _frames(url: str, http: httpx2.AsyncClient, program: Path, options: argparse.Namespace) -> Frames:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page(viewport={"width": 1360, "height": 900})
        await page.add_init_script(f"sessionStorage.setItem('holdfast.key', {json.dumps(KEY)});{_WATCH}")
        began = time.perf_counter()
        await page.goto(f"{url}/#/jobs")
        await page.wait_for_selector("[data-row]")
        shown = (time.perf_counter() - began) * 1_000
        await page.get_by_role("banner").get_by_text("Live", exact=True).wait_for()
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})  # processor time, not the clock's
        found = {
            "quiet": await _measure_page(page, session, lambda: asyncio.sleep(options.seconds)),
            "busy": await _measure_page(page, session, lambda: _change(http, options.events, options.seconds)),
        }
        await page.evaluate("(many) => { window.flood = many; }", options.events)
        found["flooded"] = await _measure_page(page, session, lambda: asyncio.sleep(options.seconds))
        found["quiet"]["first rows after, ms"] = shown
        await browser.close()
        return found


async def _measure_page(page: Page, session: CDPSession, while_: Callable[[], Awaitable[None]]) -> dict[str, float]:
    await page.evaluate("window.events = 0; window.gaps = []; window.long = []")
    before, began = await _read_metrics(session), time.perf_counter()
    await while_()
    span = time.perf_counter() - began
    after = await _read_metrics(session)
    seen: dict[str, Any] = await page.evaluate(
        "({events: window.events, gaps: window.gaps.slice(1), long: window.long})"
    )
    gaps = sorted(seen["gaps"])
    return {
        "events a second": seen["events"] / span,
        "main thread, CPU ms a s": 1_000 * (after["TaskDuration"] - before["TaskDuration"]) / span,
        "of it script, ms a s": 1_000 * (after["ScriptDuration"] - before["ScriptDuration"]) / span,
        "tasks over 50 ms": len(seen["long"]),
        "the longest, ms": max(seen["long"], default=0),
        "frames a second": len(gaps) / span,
        "gap p50, ms": gaps[len(gaps) // 2],
        "gap p99, ms": gaps[len(gaps) * 99 // 100],
        "gap max, ms": gaps[-1],
        "gaps over 100 ms": sum(each > 100 for each in gaps),
    }


async def _read_metrics(session: CDPSession) -> dict[str, float]:
    response = await session.send("Performance.getMetrics")
    return {each["name"]: each["value"] for each in response["metrics"]}


async def _change(http: httpx2.AsyncClient, events: int, seconds: float) -> None:
    """Submit, claim and settle jobs over HTTP at this pace; each job makes three changes.

    The batches are small enough for the stream to list each job instead of counting them.
    """
    about = {"name": "bench", "host": "bench", "queues": "bench", "slots": 1_000, "version": "1"}
    worker = (await _post(http, "/v1/leases", {"register": about, "lease": "60s"}))["worker"]
    pace, due = MAX_LISTED_CHANGES * 3 / events, time.monotonic()
    until = due + seconds
    while time.monotonic() < until:
        batch = [{"type": "bench.changes", "queue": "bench"}] * MAX_LISTED_CHANGES
        await _post(http, "/v1/jobs/batch", {"jobs": batch})
        options = {"worker": worker, "queues": ["bench"], "limit": MAX_LISTED_CHANGES, "wait": 0}
        jobs = (await _post(http, "/v1/leases", options))["jobs"]
        outcomes = [{"outcome": "succeeded", "id": job["id"], "fence": job["fence"]} for job in jobs]
        if outcomes:
            await _post(http, "/v1/leases/settle", {"worker": worker, "outcomes": outcomes})
        due += pace
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await _post(http, "/v1/leases/depart", {"worker": worker})


async def _post(http: httpx2.AsyncClient, path: str, body: object) -> Any:
    response = await http.post(path, json=body)
    response.raise_for_status()
    return response.json() if response.content else None


def _print_requests(few: Requests, many: Requests, jobs: int) -> None:
    print(f"{'request of the page':<22}{'100 jobs':>22}{f'{jobs:,} jobs':>24}")
    print(f"{'':<22}{'ms':>10}{'visited':>12}{'ms':>12}{'visited':>12}")
    for name in few:
        print(f"{name:<22}{few[name][0]:>10.1f}{few[name][1]:>12.0f}{many[name][0]:>12.1f}{many[name][1]:>12.0f}")


def _print_page(few: Frames, many: Frames, options: argparse.Namespace) -> None:
    columns = [of[how] for of in (few, many) for how in ("quiet", "busy", "flooded")]
    heads = ("quiet", f"{options.events} a s", "all named") * 2
    print(f"\n{'the page':<26}{'100 jobs':>11}{f'{options.jobs:,} jobs':>41}")
    print(f"{'':<26}" + "".join(f"{head:>11}" for head in heads))
    for name in few["quiet"]:
        print(f"{name:<26}" + "".join(f"{each[name]:>11.1f}" if name in each else f"{'':>11}" for each in columns))


if __name__ == "__main__":
    sys.exit(main())
