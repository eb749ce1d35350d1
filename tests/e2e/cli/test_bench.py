"""`holdfast bench` measures all parts on each database; the results themselves are not tested."""

import asyncio
import json
import signal
import subprocess
import sys

import apsw
import pytest

from holdfast.bench.ratios import Pair, RatioName, ratios
from holdfast.store.console import open_console
from tests.e2e.cli.conftest import START
from tests.support.eventually import eventually

SMALL = ("--jobs", "40", "--tenants", "3")


async def _count(url, table):
    console = await open_console(url)
    try:
        return (await console.rows(f"SELECT count(*) FROM {table}"))[0][0]
    finally:
        await console.aclose()


async def test_bench_measures_all_parts_and_leaves_no_ready_jobs(holdfast, empty_database_url):
    ended = holdfast("bench", "--url", empty_database_url, *SMALL, "--json")
    assert ended.code == 0, ended.err
    (results,) = json.loads(ended.out)
    for part in ("enqueue_one", "enqueue_one_concurrent", "enqueue_many", "drain"):
        assert results[part]["per_second"] > 0
    assert 0 <= results["pickup_ms"]["p50"] <= results["pickup_ms"]["p99"]
    assert await _count(empty_database_url, "holdfast_live") == 0
    assert await _count(empty_database_url, "holdfast_workers") == 0
    assert await _count(empty_database_url, "holdfast_history") == 40 * 4


async def test_bench_measures_with_history_backlog_and_a_pinned_snapshot(holdfast, empty_database_url):
    options = ("--only", "drain", "--history", "2500", "--backlog", "60", "--pin", "1")
    ended = holdfast("bench", "--url", empty_database_url, *SMALL, *options, "--json")
    assert ended.code == 0, ended.err
    (results,) = json.loads(ended.out)
    assert set(results) == {"server", "url", "drain", "sustained", "sustained_pinned"}
    assert await _count(empty_database_url, "holdfast_live") == 0
    assert await _count(empty_database_url, "holdfast_history") >= 2500 + 40 + 60


async def test_bench_refuses_a_database_with_jobs(holdfast, database_url):
    assert holdfast("bench", "--url", database_url, *SMALL, "--only", "drain").code == 0
    refused = holdfast("bench", "--url", database_url, *SMALL)
    assert refused.code == 2
    assert refused.complaint.startswith("--url: ")
    assert "holds jobs" in refused.complaint
    assert "--force" in refused.complaint
    assert await _count(database_url, "holdfast_history") == 40
    assert holdfast("bench", "--url", database_url, *SMALL, "--only", "drain", "--force").code == 0
    assert holdfast("bench", "ratios", "--url", database_url).code == 2


async def test_a_refused_database_is_not_migrated(holdfast, tmp_path):
    db = apsw.Connection(str(tmp_path / "old.db"))
    db.execute("CREATE TABLE holdfast_history (id BLOB); INSERT INTO holdfast_history VALUES (x'00')")
    db.close()
    assert "holds jobs" in holdfast("bench", "--url", "sqlite:///old.db", *SMALL).complaint
    assert await _count(f"sqlite:///{tmp_path}/old.db", "sqlite_schema") == 1


def test_bench_prints_a_table(holdfast):
    ended = holdfast("bench", *SMALL)
    assert ended.code == 0
    assert "synchronous=full" in ended.out
    assert "enqueue one by one, 32 clients" in ended.out
    assert "p99 ms" in ended.out
    assert ended.err == ""


BARE = "import json, sys; assert sys.argv[2] == 'drain'; print(json.dumps({'drain_per_s': 1e9}))"


async def test_ratios_leave_the_database_empty(holdfast, empty_database_url, tmp_path):
    (tmp_path / "bare.py").write_text(BARE)
    scale = (
        "--rounds",
        "1",
        "--jobs",
        "20",
        "--many-tenants",
        "20",
        "--history",
        "1500",
        "--backlog",
        "30",
        "--pin",
        "1",
    )
    bare = ("--bare-loop", "bare.py", "--bare-url", "postgresql://nowhere/db")
    ended = holdfast("bench", "ratios", "--url", empty_database_url, *scale, *bare, "--json")
    found = json.loads(ended.out)
    on_postgres = empty_database_url.startswith("postgres")
    assert len(found) == (5 if on_postgres else 4)
    assert all(each["ratio"] > 0 for each in found)
    assert ended.code == (0 if all(each["met"] for each in found) else 1)
    for table in ("holdfast_live", "holdfast_history", "holdfast_workers"):
        assert await _count(empty_database_url, table) == 0


def test_ratios_are_medians_of_pairs():
    history, other = RatioName("postgres", "history"), RatioName("sqlite", "postgres")
    rounds = [{history: Pair(a, b), other: Pair(c, 10)} for a, b, c in ((9, 10, 4), (1, 100, 5), (8, 12, 6))]
    found = {each.name: each for each in ratios(rounds)}
    assert found["postgres: with history / plain"].value == pytest.approx(8 / 12)
    assert not found["postgres: with history / plain"].met
    assert found["sqlite / postgres"].value == pytest.approx(0.5)
    assert found["sqlite / postgres"].met
    assert len(found) == 2


@pytest.mark.databases("postgres")
def test_a_failed_bare_loop_is_reported(holdfast, tmp_path, empty_database_url):
    (tmp_path / "bare.py").write_text("raise SystemExit('no luck')")
    bare = ("--bare-loop", "bare.py", "--bare-url", "postgresql://nowhere/db")
    ended = holdfast("bench", "ratios", "--url", empty_database_url, "--jobs", "20", *bare)
    assert ended.code == 1
    assert ended.complaint == "--bare-loop: bare.py exited with code 1: no luck"


def test_ctrl_c_stops_a_benchmark_with_130(tmp_path, environment):
    endless = ("bench", "--url", "sqlite:///b.db", "--jobs", "100000000", "--only", "drain")
    with subprocess.Popen(
        [sys.executable, "-c", START, *endless], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            asyncio.run(eventually(lambda: _enqueued(tmp_path / "b.db")))
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
        assert process.stderr.read().strip() == ""


async def _enqueued(file):
    try:
        return await _count(f"sqlite:///{file}", "holdfast_live") > 0
    except (apsw.CantOpenError, apsw.SQLError):  # the file or its tables do not exist yet
        return False
