"""Built-in types run as in a worker, on an engine with a real database."""

import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import pytest_asyncio

from holdfast.builtin import register
from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.model.outcome import Succeeded
from holdfast.model.time import Duration, seconds
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.running.runner import Runner
from tests.support.builders import a_job as a_new_job
from tests.support.builders import enter, put
from tests.support.receiver import Receiver
from tests.unit.worker.conftest import a_job


@pytest_asyncio.fixture
async def engine(tmp_path):
    made = await open_engine(Settings(database_url=f"sqlite:///{tmp_path}/e.db"), migrate=True)
    yield made
    await made.aclose()


@pytest_asyncio.fixture
async def receiver():
    async with Receiver() as made:
        yield made


class Bench:
    """Runs attempts of built-in types and returns their outcomes."""

    def __init__(self, engine):
        self.engine = engine
        self._claims = None
        self._runners = {}
        self._closing = []

    def runner(self, **settings):
        key = repr(settings)
        if key not in self._runners:
            registry = Registry()
            register.register_builtin(registry, Settings(**settings), self.engine.deliveries)
            for handler in registry:
                owner = getattr(handler.function, "__self__", None)
                if hasattr(owner, "aclose"):
                    self._closing.append(owner)
            self._runners[key] = Runner(registry, self.engine.attempts, threads=ThreadPoolExecutor(1))
        return self._runners[key]

    async def claim(self, kind, payload, **options):
        """Submit and claim a job."""
        await put(self.engine.store, a_new_job("default", type=kind, payload=msgspec.json.encode(payload), **options))
        return await self._next()

    async def again(self, job, outcome):
        """Settle an attempt with this outcome and return the next attempt."""
        assert outcome.retryable
        assert await self.engine.attempts.settle(job, msgspec.structs.replace(outcome, retry_in=Duration(0)))
        return await self._next()

    async def _next(self):
        if self._claims is None:
            self._claims = self.engine.attempts.claims(await enter(self.engine.store, lease=seconds(600)), ["default"])
        self._claims.on_ready([])
        (job,) = await self._claims.claim(1)
        return job

    async def attempt(self, job, *, timeout=None, **settings):
        runner = self.runner(**settings)
        task = runner.call(job)
        context = runner.context(job, task, None if timeout is None else time.monotonic() + timeout)
        outcome = await runner.run(job, task, context)
        return outcome, context

    async def run(self, kind, payload, *, timeout=None, job=None, **settings):
        outcome, _ = await self.attempt(job or a_job(kind, payload), timeout=timeout, **settings)
        return outcome

    async def aclose(self):
        for each in self._closing:
            await each.aclose()


@pytest_asyncio.fixture
async def bench(engine):
    made = Bench(engine)
    yield made
    await made.aclose()


@pytest.fixture
def deliver(bench):
    """Deliver webhooks to this machine, whose networks the settings of these tests allow."""

    async def run(url, *, job=None, timeout=None, allow=("127.0.0.0/8",), **payload):
        payload["url"] = url
        return await bench.run("webhook", payload, job=job, timeout=timeout, webhook_allow=allow)

    return run


def delivered(outcome):
    assert isinstance(outcome, Succeeded), outcome
    return outcome.result
