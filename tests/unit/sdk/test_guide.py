"""The examples of the Python guide run unchanged."""

import asyncio
import re
from pathlib import Path

import pytest

import holdfast.app.handles
from holdfast.compose import open_store
from holdfast.engine.engine import Engine
from holdfast.model.job import Job
from holdfast.model.lane import Lane
from holdfast.model.outcome import Succeeded
from tests.support.builders import enter, take
from tests.support.databases import migrate

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Change to a folder with the database of the guide."""
    monkeypatch.chdir(tmp_path)
    asyncio.run(migrate("sqlite:///shop.db"))


@pytest.fixture
def worked(monkeypatch):
    """Run a job with its handler when an example waits for it."""
    apps = []
    plain = holdfast.app.handles.wait_until_finished

    async def finished(engine: Engine, job_id, timeout) -> Job:
        store = await open_store("sqlite:///shop.db")
        wanted = await engine.jobs.get(job_id)
        jobs = await take(store, await enter(store), Lane(wanted.queue, wanted.tenant, wanted.priority))
        (job,) = [job for job in jobs if job.id == job_id]
        handler = apps[0].registry.get(job.type)
        result = handler.function(**handler.arguments.decode(job.payload))
        await engine.attempts.settle(job, Succeeded(str(result).encode()))
        await store.aclose()
        return await plain(engine, job_id, timeout)

    monkeypatch.setattr(holdfast.app.handles, "wait_until_finished", finished)
    return apps


def test_the_examples_of_the_guide_run(shop, worked, capsys):
    blocks = list(BLOCK.finditer(GUIDE.read_text()))
    assert len(blocks) > 8
    names = {"__name__": "shop"}
    try:
        for block in blocks:
            line = GUIDE.read_text()[: block.start(1)].count("\n")
            exec(compile("\n" * line + block[1], str(GUIDE), "exec"), names)
            worked[:] = [names["app"]]
        assert names["handle"].status() == "succeeded"
        assert "ready" in capsys.readouterr().out
    finally:
        names["app"].close()
