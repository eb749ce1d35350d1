"""A believable mix of jobs, to see an installation at work."""

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
"""The job types of demo mode, and the queue of each."""

TENANTS = {"acme": Quotas(weight=4), "globex": Quotas(weight=2), "initech": Quotas(), "umbrella": Quotas()}

TAG = "demo"
"""What all of these jobs are tagged with, so that they can be told from others."""

_SHARES = (6, 3, 2, 1)
_SLEEPS = {"demo.thumbnail": 0.1, "demo.report": 1.5, "demo.sync": 0.4}
_RETRY = RetryRule(base=seconds(1), cap=seconds(8), jitter=0.3)
_REASONS = ("the bank did not answer", "disk quota exceeded", "unexpected field 'vat_id'")


def mix(dice: random.Random) -> Iterator[JobSpec]:
    """Jobs without end: most succeed at once, some fail and succeed later, a few die, some are due later."""
    names, tenants = tuple(TYPES), tuple(TENANTS)
    while True:
        name = dice.choice(names)
        tenant = dice.choices(tenants, weights=_SHARES)[0]
        sleep = dice.expovariate(1 / _SLEEPS.get(name, 0.25))
        payload: dict[str, object] = {"sleep": round(min(sleep, 10.0), 3), "result": {"rows": dice.randint(1, 500)}}
        attempts, delay = 5, None
        kind = dice.random()
        if kind < 0.12:
            payload["fail_times"] = dice.randint(1, 3)  # succeeds in the end
        elif kind < 0.16:
            payload["fail_times"], attempts = 9, 3  # ends as a dead letter
            payload["reason"] = dice.choice(_REASONS)
        elif kind < 0.20:
            payload["fail_rate"] = 0.5
        elif kind < 0.32:
            delay = Duration(seconds(dice.uniform(2, 30)))
        yield JobSpec(
            name,
            payload,
            tenant=tenant,
            queue=TYPES[name],
            priority=dice.choice((0, 0, 0, 5, 10)),
            delay=delay,
            max_attempts=attempts,
            retry=_RETRY,
            tags=(TAG, name.rpartition(".")[2]),
        )
