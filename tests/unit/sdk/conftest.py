"""An application on each database, and jobs that the tests settle in place of a worker."""

import asyncio

import pytest

from holdfast import Holdfast
from holdfast.compose import open_store
from holdfast.model.lane import Lane
from tests.support.builders import enter, report, take


class ByHand:
    """Stands in for a worker: claims the one job of a queue and settles it."""

    def __init__(self, url):
        self._url = url

    async def settle(self, outcome, *, queue="default", tenant="default"):
        store = await open_store(self._url)
        try:
            (job,) = await take(store, await enter(store), Lane(queue, tenant, 0))
            await report(store, job, outcome)
        finally:
            await store.aclose()
        return job

    def settle_now(self, outcome, **where):
        return asyncio.run(self.settle(outcome, **where))


@pytest.fixture
def by_hand(database_url):
    return ByHand(database_url)


@pytest.fixture
def app(database_url):
    made = Holdfast(database_url)
    yield made
    made.close()


@pytest.fixture
def nowhere():
    """An application whose database is never opened."""
    return Holdfast("sqlite:////nowhere/holdfast.db")
