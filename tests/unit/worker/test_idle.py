"""Wait of an idle queue: who polls, the subscription or the queue."""

import math

import pytest

from holdfast.worker.running.idle import wait_for_jobs


class Scripted:
    """Subscription and claims whose first waits time out."""

    def __init__(self, poll_interval_s, timeouts=3):
        self.poll_interval_s = poll_interval_s
        self.timeouts = timeouts
        self.waits = 0

    async def wait(self, timeout):
        self.waits += 1
        return None if self.waits <= self.timeouts else []

    def on_ready(self, news):
        self.news = news

    def recheck_delay(self):
        return math.inf


@pytest.mark.parametrize("found_within, waits", [(0.5, 4), (None, 1), (2.0, 1)])
async def test_a_queue_claims_without_a_wake_up_only_if_its_subscription_may_miss_jobs(found_within, waits):
    """Otherwise each queue of a process would poll, beside the one poll for all of them."""
    both = Scripted(found_within)
    await wait_for_jobs(both, both, poll=1.0, recheck_at=math.inf, interrupted=lambda: False)
    assert both.waits == waits
    assert both.news == ([] if waits == 4 else None)


async def test_a_wait_ends_if_the_queue_has_something_else_to_do():
    both = Scripted(0.5)
    await wait_for_jobs(both, both, poll=1.0, recheck_at=math.inf, interrupted=lambda: True)
    await wait_for_jobs(both, both, poll=1.0, recheck_at=0.0, interrupted=lambda: False)
    assert both.waits == 2
