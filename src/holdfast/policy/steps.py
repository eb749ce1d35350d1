"""Decision on whether an attempt runs a step, given the record of an earlier attempt."""

import enum

from holdfast.model.step import Step, StepState


class StepDecision(enum.Enum):
    """Handling of a step."""

    RUN = enum.auto()
    REUSE = enum.auto()
    """Return the recorded result."""
    UNKNOWN = enum.auto()
    """The step may have taken effect and must not run twice: the handler has to decide."""


def decide_step(recorded: Step | None, *, at_most_once: bool) -> StepDecision:
    """Decide whether to run a step.

    A step that was only started may or may not have taken effect. It runs again with the same idempotency key unless
    it is at-most-once. Such a step is not skipped either, because that could lose the effect: its outcome is unknown.
    """
    if recorded is None:
        return StepDecision.RUN
    if recorded.state is StepState.DONE:
        return StepDecision.REUSE
    return StepDecision.UNKNOWN if at_most_once else StepDecision.RUN
