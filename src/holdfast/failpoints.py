"""Failpoints for recovery tests: `HOLDFAST_FAILPOINT=name:nth:kill` kills the process at the nth hit.

Without the variable, a failpoint costs one lookup in an empty dictionary.
"""

import os
import signal

POINTS = frozenset(
    {"after_claim", "before_start", "before_step_commit", "after_step_commit", "before_settle", "after_settle"}
)
"""Failpoints that every job passes."""
APART = frozenset({"begun_apart"})
"""Failpoints of jobs with process isolation."""
_LEFT: dict[str, int] = {}

if _asked := os.environ.get("HOLDFAST_FAILPOINT"):
    _name, _nth, _action = _asked.split(":")
    if _name not in POINTS | APART or _action != "kill":
        raise ValueError(f"HOLDFAST_FAILPOINT: {_asked!r} is not name:nth:kill with a name of {sorted(POINTS | APART)}")
    _LEFT[_name] = int(_nth)


def reach(name: str) -> None:
    """Count a hit of this failpoint, and kill the process at the configured one."""
    if not _LEFT or name not in _LEFT:
        return
    _LEFT[name] -= 1
    if _LEFT[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
