"""Identifiers: of jobs (UUIDv7, so that they sort by age) and of worker incarnations."""

import os
import struct
import time
from typing import NewType
from uuid import UUID, SafeUUID

JobId = NewType("JobId", UUID)

WorkerId = NewType("WorkerId", int)
"""One incarnation of a worker: 62 random bits, never reused, so a restarted node never inherits a lease."""


_BATCH_SIZE = 256
_noise: list[int] = []
"""Lower halves of ids, each taken by one: to ask the system for each alone takes as long as all else."""
os.register_at_fork(after_in_child=_noise.clear)

_new, _set = object.__new__, object.__setattr__


def new_job_id(at_ms: int | None = None) -> JobId:
    """A UUIDv7 of that millisecond (by default this node's): 74 random bits, safe across forks and threads."""
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    try:
        noise = _noise.pop()
    except IndexError:
        noise = _draw()
    # As `UUID(int=…)`, which first looks which of its seven arguments it was given.
    made = _new(UUID)
    _set(made, "int", (ms << 80) | noise)
    _set(made, "is_safe", SafeUUID.unknown)
    return JobId(made)


def _draw() -> int:
    """Fill up what is drawn ahead; one of it."""
    drawn = struct.iter_unpack("<QH", os.urandom(10 * _BATCH_SIZE))
    halves: list[int] = [(7 << 76) | ((high & 0xFFF) << 64) | (2 << 62) | (low >> 2) for low, high in drawn]
    _noise.extend(halves[1:])
    return halves[0]


def first_job_id(at_ms: int) -> JobId:
    """Comes before every id of that millisecond, and after all of those before it."""
    return JobId(UUID(int=min(max(at_ms, 0), (1 << 48) - 1) << 80))


def new_worker_id() -> WorkerId:
    """A worker incarnation nobody had before."""
    return WorkerId(int.from_bytes(os.urandom(8)) >> 2 or 1)


def worker_name(worker: WorkerId) -> str:
    """How an incarnation is written for people."""
    return f"w-{worker:016x}"
