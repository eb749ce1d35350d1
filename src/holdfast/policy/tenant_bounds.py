"""Default bounds of a tenant: unfinished jobs, queues and job types. Pure functions.

They protect an installation against one tenant that uses it up. The counts are a few seconds old, so they are cheap and
approximate; a tenant's own quotas (`holdfast.policy.quotas`) are exact.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.errors import BacklogFull, HoldfastError, OverLimit

RETRY_AFTER_S = 5.0
"""About the age of the counts."""


class TenantBounds(NamedTuple):
    """Maximum numbers that every tenant may use."""

    backlog: int = 1_000_000
    """Unfinished jobs, unless the tenant has its own quotas."""
    queues: int = 1_000
    """Queues with jobs."""
    types: int = 1_000
    """Types of its jobs."""
    workers: int = 1_000
    """Registered workers without a database."""


class Usage:
    """Numbers of one tenant: as they were counted last, plus what this node accepted since."""

    __slots__ = ("backlog", "queues", "types")

    def __init__(self) -> None:
        self.backlog = 0
        self.queues: set[str] = set()
        self.types: set[str] = set()


class JobNames(NamedTuple):
    """Queue and type of a job that is submitted."""

    queue: str
    type: str


def admit(usage: Usage, bounds: TenantBounds, jobs: Iterable[JobNames], *, has_quotas: bool) -> HoldfastError | None:
    """Add these jobs to the usage, or return why they are rejected."""
    counts = Counter(jobs)
    total = counts.total()
    if not has_quotas and usage.backlog + total > bounds.backlog:
        return BacklogFull(
            f"the tenant has about {usage.backlog:,} unfinished jobs, and may have {bounds.backlog:,}: wait until some "
            "have finished, or ask an administrator for a quota of its own",
            retry_after=RETRY_AFTER_S,
        )
    for kind, known, used, maximum in (
        ("queue", usage.queues, {names.queue for names in counts}, bounds.queues),
        ("type", usage.types, {names.type for names in counts}, bounds.types),
    ):
        new = used - known
        if new and len(known) + len(new) > maximum:
            return OverLimit(
                f"{kind}: the tenant uses {len(known):,} {kind}s, and may use {maximum:,}, so {min(new)!r} cannot be "
                f"added: use fewer names, or ask the operator to raise HOLDFAST_TENANT_{kind.upper()}S",
                pointer=f"/{kind}" if total == 1 else "",
            )
    usage.backlog += total
    usage.queues.update(names.queue for names in counts)
    usage.types.update(names.type for names in counts)
    return None
