"""Realistic mix of jobs for demo mode."""

import random
from collections.abc import Iterator

from holdfast.model.access import Quotas
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.time import Duration, seconds

TYPES = {
    "demo": "demo",
    "demo.invoice": "billing",
    "demo.charge": "billing",
    "demo.thumbnail": "media",
    "demo.report": "reports",
    "demo.sync": "default",
}
"""Queue of each demo job type."""

TENANTS = {"acme": Quotas(weight=4), "globex": Quotas(weight=2), "initech": Quotas(), "umbrella": Quotas()}

TAG = "demo"
"""Tag of all demo jobs, by which they are found and removed."""

_SHARES = (6, 3, 2, 1)
_SLEEPS = {"demo.thumbnail": 0.1, "demo.report": 1.5, "demo.sync": 0.4}
_RETRY = RetryRule(base=seconds(1), cap=seconds(8), jitter=0.3)
_REASONS = ("the bank did not respond", "disk quota exceeded", "unexpected field 'vat_id'")


def job_mix(rng: random.Random) -> Iterator[JobSpec]:
    """Yield an endless mix of jobs.

    Most succeed at once, some after retries, a few die, and some are scheduled for later.
    """
    names, tenants = tuple(TYPES), tuple(TENANTS)
    while True:
        name = rng.choice(names)
        tenant = rng.choices(tenants, weights=_SHARES)[0]
        sleep = rng.expovariate(1 / _SLEEPS.get(name, 0.25))
        payload: dict[str, object] = {"sleep": round(min(sleep, 10.0), 3), "result": {"rows": rng.randint(1, 500)}}
        attempts, delay = 5, None
        kind = rng.random()
        if kind < 0.12:
            payload["fail_times"] = rng.randint(1, 3)  # succeeds after retries
        elif kind < 0.16:
            payload["fail_times"], attempts = 9, 3  # ends as a dead letter
            payload["reason"] = rng.choice(_REASONS)
        elif kind < 0.20:
            payload["fail_rate"] = 0.5
        elif kind < 0.32:
            delay = Duration(seconds(rng.uniform(2, 30)))
        yield JobSpec(
            name,
            payload,
            tenant=tenant,
            queue=TYPES[name],
            priority=rng.choice((0, 0, 0, 5, 10)),
            delay=delay,
            max_attempts=attempts,
            retry=_RETRY,
            tags=(TAG, name.rpartition(".")[2]),
        )
