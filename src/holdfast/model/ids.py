"""Identifiers of jobs (UUIDv7, sorted by age) and of worker incarnations."""

import os
import struct
import time
from typing import NamedTuple, NewType
from uuid import UUID, SafeUUID

JobId = NewType("JobId", UUID)

WorkerId = NewType("WorkerId", int)
"""Incarnation of a worker: 62 random bits.

Ids are never reused, so that a restarted node never inherits a lease.
"""


_BATCH_SIZE = 256
_pool: list[int] = []
"""Random lower halves of ids; one urandom call per id would double the cost."""
os.register_at_fork(after_in_child=_pool.clear)

_new, _set = object.__new__, object.__setattr__


def new_job_id(at_ms: int | None = None) -> JobId:
    """Return a UUIDv7 for that millisecond (default: now), with 74 random bits.

    Safe to call in threads and forked processes.
    """
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    try:
        random_bits = _pool.pop()
    except IndexError:
        random_bits = _refill()
    # Bypasses the argument checks of `UUID(int=…)` for speed.
    uuid = _new(UUID)
    _set(uuid, "int", (ms << 80) | random_bits)
    _set(uuid, "is_safe", SafeUUID.unknown)
    return JobId(uuid)


def _refill() -> int:
    """Refill the pool and return one value."""
    numbers = struct.iter_unpack("<QH", os.urandom(10 * _BATCH_SIZE))
    halves: list[int] = [(7 << 76) | ((high & 0xFFF) << 64) | (2 << 62) | (low >> 2) for low, high in numbers]
    _pool.extend(halves[1:])
    return halves[0]


def first_job_id(at_ms: int) -> JobId:
    """Return the smallest id of that millisecond, for range queries."""
    return JobId(UUID(int=min(max(at_ms, 0), (1 << 48) - 1) << 80))


class IdRange(NamedTuple):
    """Range of job ids, both ends included."""

    first: JobId
    last: JobId


def ids_with_prefix(prefix: str) -> IdRange:
    """Return the range of the ids that begin with these hexadecimal digits; hyphens are ignored.

    The first 12 digits are the millisecond of the submission, so that jobs of one batch differ only after them.
    """
    digits = prefix.replace("-", "")
    return IdRange(JobId(UUID(hex=digits.ljust(32, "0"))), JobId(UUID(hex=digits.ljust(32, "f"))))


def new_worker_id() -> WorkerId:
    """Return a new random worker id."""
    return WorkerId(int.from_bytes(os.urandom(8)) >> 2 or 1)


def worker_name(worker: WorkerId) -> str:
    """Format a worker id for display."""
    return f"w-{worker:016x}"
