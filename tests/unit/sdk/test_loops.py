"""Threads, event loops and processes: each has its own engine, opened on demand and closed."""

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Holdfast, Unavailable
from holdfast.app.runtime import EngineProvider
from holdfast.model.job import JobFilter, Page


@pytest.fixture
def work(app):
    @app.job
    def work(n: int) -> int:
        return n

    return work


def payloads(app):
    jobs = app._engines.run(lambda engine: engine.jobs.find(JobFilter(), Page(1_000)))
    return sorted(int(job.payload[5:-1]) for job in jobs)


def lives(app):
    return app._engines._by_process[os.getpid()]._lifetimes


def test_many_threads_enqueue_concurrently(app, work):
    with ThreadPoolExecutor(16) as pool:
        handles = list(pool.map(work.enqueue, range(200)))
    assert len({handle.id for handle in handles}) == 200
    assert payloads(app) == list(range(200))
    assert [thread.name for thread in threading.enumerate()].count("holdfast") == 1


async def test_many_tasks_share_one_engine(app, work):
    async with app:
        await asyncio.gather(*(work.aenqueue(n) for n in range(200)))
        assert len(lives(app)) == 1
        assert payloads(app) == list(range(200))


def test_each_consecutive_loop_opens_and_closes_its_own_engine(app, work):
    for n in range(3):
        asyncio.run(work.aenqueue(n))
        assert lives(app) == {}
    assert payloads(app) == [0, 1, 2]


def test_concurrent_loops_have_their_own_engines(app, work):
    both_open = threading.Barrier(2)

    async def enqueue(n):
        await work.aenqueue(n)
        await asyncio.to_thread(both_open.wait)
        return await app._engines.here()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda n: asyncio.run(enqueue(n)), range(2))
    assert first is not second
    assert payloads(app) == [0, 1]
    assert len(lives(app)) == 1  # that of the thread


async def test_a_cancelled_caller_does_not_cancel_the_opening_of_the_engine(app, work):
    async with app:
        first, second = (asyncio.create_task(work.aenqueue(n)) for n in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).id
        assert first.cancelled()


async def test_a_closed_application_can_be_used_again(app, work):
    for n in range(2):
        async with app:
            await work.aenqueue(n)
        assert lives(app) == {}
    with app:
        assert payloads(app) == [0, 1]
    assert "holdfast" not in [thread.name for thread in threading.enumerate()]
    app.close()
    await app.aclose()


def test_the_engine_of_a_closed_loop_is_dropped(app, work):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(work.aenqueue(1))
    engine = loop.run_until_complete(app._engines.here())
    loop.run_until_complete(engine.aclose())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    assert loop in lives(app)
    asyncio.run(work.aenqueue(2))
    assert loop not in lives(app)


def test_a_caller_that_waits_while_the_application_closes_gets_an_error():
    started = threading.Event()

    class Opened:
        async def aclose(self):
            pass

    async def opener():
        return Opened()

    async def wait_for_ever(_):
        started.set()
        await asyncio.Event().wait()

    engines = EngineProvider(opener)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engines.run, wait_for_ever)
        started.wait()
        engines.close()
        with pytest.raises(Unavailable, match="was closed during the call"):
            waiting.result()


FORKS = """
import os, sys
from holdfast import Holdfast

app = Holdfast(sys.argv[1])

@app.job
def work(n: int) -> int:
    return n

work.enqueue(0)
children = []
for n in (1, 2):
    child = os.fork()
    if not child:
        handle = work.enqueue(n)
        assert handle.status() == "ready"
        assert work.enqueue(n + 10).id != handle.id
        if n == 1:
            app.close()
        sys.exit(0)
    children.append(child)
work.enqueue(3)
codes = [os.waitpid(child, 0)[1] for child in children]
assert codes == [0, 0], codes
assert work.enqueue(4).status() == "ready"
print("done")
"""


def run(program, url):
    found = subprocess.run(
        [sys.executable, "-W", "default", "-W", "ignore::DeprecationWarning", "-c", program, url],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_opens_its_own_engine(app, work, database_url):
    code, said, complained = run(FORKS, database_url)
    assert (code, said, complained) == (0, "done\n", "")
    assert payloads(app) == [0, 1, 2, 3, 4, 11, 12]


ENDS = """
import asyncio, sys
from holdfast import Holdfast

app = Holdfast(sys.argv[1])

@app.job
def work(n: int) -> int:
    return n

work.enqueue(0)
asyncio.run(work.aenqueue(1))
"""


@pytest.mark.slow
def test_a_program_that_does_not_close_its_application_exits_cleanly(app, work, database_url):
    assert run(ENDS, database_url) == (0, "", "")
    assert payloads(app) == [0, 1]


def test_an_unused_application_can_be_closed():
    with Holdfast("sqlite:////nowhere/holdfast.db") as app:
        pass
    asyncio.run(app.aclose())
