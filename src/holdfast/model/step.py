"""Recorded steps of a job, so that the next attempt does not repeat them."""

import enum

from msgspec import Struct

from holdfast.model.time import Instant


class StepState(enum.IntEnum):
    """State of a step. The values are stored."""

    STARTED = 0
    """An at-most-once step started; it is unknown whether it took effect."""
    DONE = 1


TRANSACTION_MARK = b"\x01"
"""Prefix of transaction records. No JSON starts with it, so they differ from step results."""


class Step(Struct, frozen=True):
    """Step record. `result` is JSON, or the statement results of a transaction guard."""

    key: str
    state: StepState
    result: bytes | None = None
    fence: int = 0
    """Fence of the attempt that recorded it."""
    recorded_at: Instant = Instant(0)

    @property
    def is_transaction(self) -> bool:
        """True if the record guards a transaction; its result is internal."""
        return self.result is not None and self.result.startswith(TRANSACTION_MARK)
