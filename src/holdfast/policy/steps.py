"""What a step's record means to the attempt that finds it."""

import enum

from holdfast.model.step import Step, StepState


class Verdict(enum.Enum):
    """What to do about a step."""

    RUN = enum.auto()
    REUSE = enum.auto()
    UNKNOWN = enum.auto()
    """It may have been done, and must not be done twice."""


def verdict(found: Step | None, *, at_most_once: bool) -> Verdict:
    """Whether a step is to be run, given what an earlier attempt left of it.

    One that was only started may or may not have had its effect. It is run again, with the same idempotency key,
    unless it asked never to be: skipping it would lose the effect, so then a person or the handler has to decide.
    """
    if found is None:
        return Verdict.RUN
    if found.state is StepState.DONE:
        return Verdict.REUSE
    return Verdict.UNKNOWN if at_most_once else Verdict.RUN
