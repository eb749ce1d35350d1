"""Exceptions by which a handler decides how its job continues, and the retry rule."""

from collections.abc import Sequence
from datetime import timedelta

from holdfast.errors import Invalid
from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, parse_duration
from holdfast.policy.submission import check_retry

Span = float | str | timedelta
"""Length of time: seconds, a string such as '5m' or '1h30m', or a timedelta."""


def duration(value: Span, field: str) -> Duration:
    """Convert a length of time; raise `Invalid` with the name of the field."""
    try:
        return parse_duration(value.total_seconds() if isinstance(value, timedelta) else value)
    except (ValueError, TypeError, AttributeError) as error:
        message = str(error) if isinstance(error, ValueError) else f"{value!r} is not a duration: give seconds or '5m'"
        raise Invalid(f"{field.replace('/', '.')}: {message}", pointer=f"/{field}") from None


class Retry(Exception):
    """Retry rule for `@app.job(retry=…)`, or exception that schedules the next attempt.

    As a rule it sets the delay before each attempt: exponential (`base`, `cap`, `jitter`) or listed (`delays`). Omitted
    arguments have the installation's defaults.

    As an exception it spends an attempt like any other failure, so that the job is dead after its last one. Without
    `in_` the retry rule sets the delay.

    Args:
        reason: Text for the attempt's record; for raising.
        in_: Delay before the next attempt; for raising.
        max_attempts: Number of attempts; for the decorator, like all following arguments.
        base: Delay after the first failed attempt; doubles with each further one.
        cap: Longest delay.
        jitter: Largest random deviation as a share of the delay, from 0 to 1.
        delays: Delay after each failed attempt; the last one repeats.

    Raises:
        Invalid: An argument is out of range, or arguments for raising and for the decorator are mixed.

    Example:
        ```python
        @app.job(retry=Retry(max_attempts=5, base="1s", cap="5m"))
        async def sync(account: int) -> None:
            if await is_rate_limited():
                raise Retry("rate limited", in_="30s")
        ```
    """

    def __init__(
        self,
        reason: str = "",
        *,
        in_: Span | None = None,
        max_attempts: int | None = None,
        base: Span | None = None,
        cap: Span | None = None,
        jitter: float | None = None,
        delays: Sequence[Span] = (),
    ) -> None:
        super().__init__(reason or "the handler requested another attempt")
        self.reason = reason
        self.in_ = None if in_ is None else duration(in_, "retry/in_")
        self.max_attempts = max_attempts
        self._rule = _rule(base, cap, jitter, delays)
        if in_ is not None and (self._rule is not None or max_attempts is not None):
            raise Invalid("Retry(in_=…) is for raising, the other arguments are for the decorator", pointer="/retry")

    def rule(self) -> RetryRule | None:
        """Return the retry rule, or None if the installation's rule applies."""
        return self._rule


class Snooze(Exception):
    """Run this job again later without spending an attempt.

    A job may snooze at most a hundred times; then it is dead.

    Args:
        delay: Time until the job runs again.

    Raises:
        Invalid: The delay is not a length of time.

    Example:
        `raise Snooze("5m")`
    """

    def __init__(self, delay: Span) -> None:
        super().__init__(delay)
        self.delay = duration(delay, "delay")

    def __str__(self) -> str:
        return f"snoozed for {self.args[0]}"


class Hold(Snooze):
    """Snooze without a limit, for a cause outside of the job.

    Use it for an unavailable destination, for example.

    Args:
        delay: Time until the job runs again.

    Example:
        `raise Hold("30s")`
    """


class Cancel(Exception):
    """End the job as cancelled because it is no longer needed.

    Args:
        reason: Text for the job's record.

    Example:
        `raise Cancel("the order was deleted")`
    """

    def __init__(self, reason: str = "cancelled by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Discard(Exception):
    """Move the job to the dead letters at once because no further attempt can succeed.

    Args:
        reason: Text for the job's record.

    Example:
        `raise Discard("the mailbox does not exist")`
    """

    def __init__(self, reason: str = "discarded by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


def _rule(base: Span | None, cap: Span | None, jitter: float | None, delays: Sequence[Span]) -> RetryRule | None:
    if base is None and cap is None and jitter is None and not delays:
        return None
    if isinstance(delays, str):
        raise Invalid("retry.delays is a string: give a list, such as ['1m', '5m']", pointer="/retry/delays")
    if delays and (base is not None or cap is not None):
        raise Invalid("retry.delays cannot be combined with base or cap: leave those out", pointer="/retry/delays")
    default = RetryRule()
    first_delay = default.base if base is None else duration(base, "retry/base")
    rule = RetryRule(
        base=first_delay,
        # A base that is longer than the default cap raises the cap, so that every delay equals the base.
        cap=Duration(max(default.cap, first_delay)) if cap is None else duration(cap, "retry/cap"),
        jitter=default.jitter if jitter is None else jitter,
        delays=tuple(duration(delay, f"retry/delays/{index}") for index, delay in enumerate(delays)),
    )
    check_retry(rule)
    return rule
