"""Steps of a job: what an attempt recorded, so that the next one need not do it again."""

import enum

from msgspec import Struct

from holdfast.model.time import Instant


class StepState(enum.IntEnum):
    """How far a step came. The numbers are stored."""

    STARTED = 0
    """It was about to be done, at most once: whether it was, nobody knows."""
    DONE = 1


TRANSACTION_MARK = b"\x01"
"""What the record of a transaction begins with. No JSON begins so: it cannot be mistaken for the result of a step."""


class Step(Struct, frozen=True):
    """One record. Of a transaction's guard, `result` holds what its statements gave; of a step, its result as JSON."""

    key: str
    state: StepState
    result: bytes | None = None
    fence: int = 0
    """Of the attempt that recorded it."""
    recorded_at: Instant = Instant(0)

    @property
    def is_transaction(self) -> bool:
        """Whether it guards a transaction; what its statements gave is for the next attempt alone."""
        return self.result is not None and self.result.startswith(TRANSACTION_MARK)
