"""Places where a test can have this process killed: `HOLDFAST_FAILPOINT=name:nth:kill`, at its nth passing.

Costs a look at an empty dictionary where none is set. For tests of recovery; nothing else reads the variable.
"""

import os
import signal

POINTS = frozenset(
    {"after_claim", "before_start", "before_step_commit", "after_step_commit", "before_settle", "after_settle"}
)
"""On the way of each job."""
APART = frozenset({"begun_apart"})
"""On the way of those in processes of their own."""
_LEFT: dict[str, int] = {}

if _asked := os.environ.get("HOLDFAST_FAILPOINT"):
    _name, _nth, _action = _asked.split(":")
    if _name not in POINTS | APART or _action != "kill":
        raise ValueError(f"HOLDFAST_FAILPOINT: {_asked!r} is not name:nth:kill with a name of {sorted(POINTS | APART)}")
    _LEFT[_name] = int(_nth)


def reach(name: str) -> None:
    """This place is passed."""
    if not _LEFT or name not in _LEFT:
        return
    _LEFT[name] -= 1
    if _LEFT[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
