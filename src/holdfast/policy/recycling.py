"""Recycling: when a process that runs jobs is replaced because of its age or size."""

from typing import NamedTuple

MIB = 1 << 20


class RecyclingRules(NamedTuple):
    """Bounds after which a process is replaced; None means never."""

    max_jobs: int | None = None
    """Finished attempts."""
    max_memory: int | None = None
    """Resident bytes."""


NEVER = RecyclingRules()


def recycling_reason(rules: RecyclingRules, *, jobs: int, memory: int | None) -> str | None:
    """Return why a process is due for replacement, or None.

    A process that has finished no job is never due, so that a bound below the size of the application does not replace
    processes that did nothing.

    Args:
        rules: Bounds of the installation.
        jobs: Attempts that finished in the process.
        memory: Its resident bytes; None if they are unknown.
    """
    if not jobs:
        return None
    if rules.max_jobs is not None and jobs >= rules.max_jobs:
        return f"it has finished {jobs:,} jobs (HOLDFAST_WORKER_MAX_JOBS is {rules.max_jobs:,})"
    if rules.max_memory is not None and memory is not None and memory > rules.max_memory:
        return f"it uses {memory // MIB:,} MiB (HOLDFAST_WORKER_MAX_MEMORY_MB is {rules.max_memory // MIB:,})"
    return None
