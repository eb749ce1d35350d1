"""Names of stored codes in SQL files: `{READY}` stands for the code of `Status.READY`."""

import enum
import re
from collections.abc import Mapping

from holdfast.model.breaker import BreakerState
from holdfast.model.limit import QUEUE_SLOT, TENANT_SLOT, LimitKind
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.step import StepState

_NAME = re.compile(r"\{([A-Z_]+)\}")


class Parked(enum.IntEnum):
    """Values of `parked`, the first column of the clustered key on MySQL and MariaDB."""

    NOT_PARKED = 0
    """Ready or running."""
    PARKED_UNTIL_DUE = 1
    """Scheduled, retrying or blocked."""
    PARKED_FOR_KEY = 2
    """Ready, but waiting for its concurrency key."""


CODES: Mapping[str, int] = {
    **{status.name: status.code for status in Status},
    "AWAITING_KEY": AWAITING_KEY,
    **{f"LIMIT_{kind.name}": int(kind) for kind in LimitKind},
    "QUEUE_SLOT": QUEUE_SLOT,
    "TENANT_SLOT": TENANT_SLOT,
    **{f"STEP_{state.name}": int(state) for state in StepState},
    **{f"BREAKER_{state.name}": state.code for state in BreakerState},
    **{parked.name: int(parked) for parked in Parked},
}
"""Codes by the names that SQL files use."""


def substitute_codes(sql: str) -> str:
    """Replace each `{NAME}` by its code.

    Raises:
        KeyError: a name is not in `CODES`.
    """
    return _NAME.sub(lambda match: str(CODES[match.group(1)]), sql)
