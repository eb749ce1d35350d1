"""Failpoints for recovery tests: kill the process at a given point.

`HOLDFAST_FAILPOINT=name:nth:kill` kills the process with SIGKILL at the nth hit. Without the variable, a failpoint
costs one lookup in an empty dictionary.
"""

import os
import signal

POINTS = frozenset(
    {"after_claim", "before_start", "before_step_commit", "after_step_commit", "before_settle", "after_settle"}
)
"""Failpoints that every job passes."""

ISOLATED_POINTS = frozenset({"after_isolated_start"})
"""Failpoints of jobs that run in their own process."""

_hits_left: dict[str, int] = {}
"""Hits until the process is killed, by failpoint."""

if _setting := os.environ.get("HOLDFAST_FAILPOINT"):
    _name, _nth, _action = _setting.split(":")
    if _name not in POINTS | ISOLATED_POINTS or _action != "kill":
        _names = ", ".join(sorted(POINTS | ISOLATED_POINTS))
        raise ValueError(
            f"HOLDFAST_FAILPOINT: {_setting!r} is not valid: write NAME:NTH:kill with one of the names {_names}"
        )
    _hits_left[_name] = int(_nth)


def reach(name: str) -> None:
    """Count a hit of this failpoint, and kill the process at the configured one."""
    if not _hits_left or name not in _hits_left:
        return
    _hits_left[name] -= 1
    if _hits_left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
