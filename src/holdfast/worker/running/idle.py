"""Wait of an idle queue until it is time to claim again."""

import time
from collections.abc import Callable

from holdfast.worker.ports import JobClaims, WakeupSubscription

IDLE_CLAIM_INTERVAL_S = 60.0
"""Longest time between two claims of an idle queue whose subscription polls."""


async def wait_for_jobs(
    subscription: WakeupSubscription,
    claims: JobClaims,
    *,
    poll: float,
    recheck_at: float,
    interrupted: Callable[[], bool],
) -> None:
    """Wait for a wake-up, or until the queue must claim without one.

    A subscription that finds all jobs by itself polls for all queues of the process together, so the queue does not
    poll too.

    Args:
        subscription: Wake-ups of the queue.
        claims: Claims to which wake-ups are passed on.
        poll: Seconds until a claim without a wake-up.
        recheck_at: Time at which the caller has something else to do.
        interrupted: Checked after each `poll` seconds; True ends the wait.
    """
    until = time.monotonic() + IDLE_CLAIM_INTERVAL_S
    while True:
        pause = min(poll, claims.recheck_delay(), recheck_at - time.monotonic())
        news = await subscription.wait(max(0.0, pause))
        claims.on_ready(news)
        found_within = subscription.poll_interval_s
        if news is not None or found_within is None or found_within > poll:
            return
        if pause < poll or time.monotonic() >= until or interrupted():
            return
