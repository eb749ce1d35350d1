"""Identifiers: of jobs (UUIDv7, so that they sort by age) and of worker incarnations."""

import os
import time
from typing import NewType
from uuid import UUID

JobId = NewType("JobId", UUID)

WorkerId = NewType("WorkerId", int)
"""One incarnation of a worker: 62 random bits, never reused, so a restarted node never inherits a lease."""


def new_job_id(at_ms: int | None = None) -> JobId:
    """A UUIDv7 of that millisecond (by default this node's): 74 random bits, safe across forks."""
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    noise = int.from_bytes(os.urandom(10))
    return JobId(UUID(int=(ms << 80) | (7 << 76) | ((noise >> 68) << 64) | (2 << 62) | (noise & ((1 << 62) - 1))))


def first_job_id(at_ms: int) -> JobId:
    """Comes before every id of that millisecond, and after all of those before it."""
    return JobId(UUID(int=min(max(at_ms, 0), (1 << 48) - 1) << 80))


def new_worker_id() -> WorkerId:
    """A worker incarnation nobody had before."""
    return WorkerId(int.from_bytes(os.urandom(8)) >> 2 or 1)


def worker_name(worker: WorkerId) -> str:
    """How an incarnation is written for people."""
    return f"w-{worker:016x}"
