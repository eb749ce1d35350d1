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

    A subscription with a `poll_interval_s` polls once for all queues of the process. If that is often enough, this
    queue claims only after a wake-up or every `IDLE_CLAIM_INTERVAL_S`.

    Args:
        subscription: Wake-ups of the queue.
        claims: Claims to which wake-ups are passed on.
        poll: Seconds until a claim without a wake-up.
        recheck_at: Time by the monotonic clock at which to return at the latest.
        interrupted: Checked after each `poll` seconds; True ends the wait.
    """
    until = time.monotonic() + IDLE_CLAIM_INTERVAL_S
    while True:
        pause = min(poll, claims.recheck_delay(), recheck_at - time.monotonic())
        notifications = await subscription.wait(max(0.0, pause))
        claims.on_ready(notifications)
        poll_interval = subscription.poll_interval_s
        if notifications is not None or poll_interval is None or poll_interval > poll:
            return
        if pause < poll or time.monotonic() >= until or interrupted():
            return
