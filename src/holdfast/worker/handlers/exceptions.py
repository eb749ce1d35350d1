"""What a handler raises to say how its job goes on, and the rule of retries that a decorator takes."""

from collections.abc import Sequence
from datetime import timedelta

from holdfast.errors import Invalid
from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, parse_duration
from holdfast.policy.submission import check_retry

Span = float | str | timedelta
"""A length of time as people give it: seconds, a text such as '5m' or '1h30m', or a timedelta."""


def duration(value: Span, field: str) -> Duration:
    """Read a length of time; `Invalid` names the field."""
    try:
        return parse_duration(value.total_seconds() if isinstance(value, timedelta) else value)
    except (ValueError, TypeError, AttributeError) as error:
        message = str(error) if isinstance(error, ValueError) else f"{value!r} is not a duration: give seconds or '5m'"
        raise Invalid(f"{field.replace('/', '.')}: {message}", pointer=f"/{field}") from None


class Retry(Exception):
    """Two things, by its arguments.

    A rule, for `@app.job(retry=…)`: `Retry(max_attempts=5, base=1, cap=300, jitter=0.2)` waits longer after each failed
    attempt, `Retry(delays=["1m", "5m", "15m"])` as long as listed. What is left out is as the installation has it.

    And an exception: `raise Retry(in_="30s")` fails this attempt and has the next one after that time; without `in_`
    the rule decides. It spends an attempt: when it was the last one, the job is dead.
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
        super().__init__(reason or "the handler asked for another attempt")
        self.reason = reason
        self.in_ = None if in_ is None else duration(in_, "retry/in_")
        self.max_attempts = max_attempts
        self._rule = _rule(base, cap, jitter, delays)
        if in_ is not None and (self._rule is not None or max_attempts is not None):
            raise Invalid("Retry(in_=…) is for raising, the other arguments are for the decorator", pointer="/retry")

    def rule(self) -> RetryRule | None:
        """The rule it stands for; None when it says nothing of waits, so that the installation's rule holds."""
        return self._rule


class Snooze(Exception):
    """Run this job again after that time: `raise Snooze("5m")`. Spends no attempt."""

    def __init__(self, delay: Span) -> None:
        super().__init__(delay)
        self.delay = duration(delay, "delay")

    def __str__(self) -> str:
        return f"snoozed for {self.args[0]}"


class Hold(Snooze):
    """As `Snooze`, for a reason outside of the job, such as a destination that is down: as often as it takes.

    A job may snooze a hundred times before it is dead. It may be held any number of times.
    """


class Cancel(Exception):
    """The job is pointless: it ends as cancelled, with this reason."""

    def __init__(self, reason: str = "the handler cancelled it") -> None:
        super().__init__(reason)
        self.reason = reason


class Discard(Exception):
    """No further attempt can help: the job is dead at once, with this reason."""

    def __init__(self, reason: str = "the handler gave it up") -> None:
        super().__init__(reason)
        self.reason = reason


def _rule(base: Span | None, cap: Span | None, jitter: float | None, delays: Sequence[Span]) -> RetryRule | None:
    if base is None and cap is None and jitter is None and not delays:
        return None
    if isinstance(delays, str):
        raise Invalid("retry.delays is a text: give a list, such as ['1m', '5m']", pointer="/retry/delays")
    if delays and (base is not None or cap is not None):
        raise Invalid("retry.delays stands alone: leave out base and cap", pointer="/retry/delays")
    plain = RetryRule()
    first = plain.base if base is None else duration(base, "retry/base")
    rule = RetryRule(
        base=first,
        # A base alone may be longer than the usual cap: it is then the only wait there is.
        cap=Duration(max(plain.cap, first)) if cap is None else duration(cap, "retry/cap"),
        jitter=plain.jitter if jitter is None else jitter,
        delays=tuple(duration(each, f"retry/delays/{index}") for index, each in enumerate(delays)),
    )
    check_retry(rule)
    return rule
