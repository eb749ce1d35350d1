"""Signs that a live worker does not run a job that the database says it holds.

A failover to a server that lacks the latest writes brings back jobs whose outcomes were reported. Workers find and
release them; these signs are for people who look at a job before that, or whose worker does not compare.
"""

MIN_AGE_S = 60.0
"""Time after which a job that is claimed ahead has started or was released."""


def why_not_run(age: float, timeout: float | None, *, slots: int, held: int) -> str | None:
    """Return why the holder of a running job probably does not run it, or None.

    Args:
        age: Seconds since the job was claimed.
        timeout: Timeout of the job in seconds.
        slots: Slots of its worker; 0 if unknown.
        held: Number of jobs that its worker holds.
    """
    if timeout is not None and age > timeout + MIN_AGE_S:
        return f"it is {age - timeout:.0f} s past its timeout, and its worker would have ended it"
    if age > MIN_AGE_S and 0 < slots < held:
        return "its worker holds more jobs than it has slots"
    return None
