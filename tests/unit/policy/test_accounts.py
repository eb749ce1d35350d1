"""The line of those who take turns: in order of what they received, however they came."""

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.policy.fairness.state import Flow, FlowHeap

STEPS = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=60)
"""Somebody who received so much gets in line; None: who is first leaves it."""


@given(STEPS)
def test_who_received_least_is_first_and_of_equals_who_came_first(steps: list[int | None]) -> None:
    line, waiting = FlowHeap(), list[Flow]()
    for tiebreak, received in enumerate(steps):
        if received is None:
            first = min(waiting, key=lambda each: (each.received, each.tiebreak), default=None)
            assert line.pop(below=math.inf) is first
            if first is not None:
                waiting.remove(first)
        else:
            flow = Flow(("q", "t"), received, 1, tiebreak)
            line.push(flow)
            waiting.append(flow)


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(0, 10))
def test_nobody_leaves_it_who_received_as_much_as_was_named(received: list[int], below: int) -> None:
    line = FlowHeap()
    for tiebreak, each in enumerate(received):
        line.push(Flow(("q", "t"), each, 1, tiebreak))

    first = line.pop(below)
    if min(received) < below:
        assert first is not None
        assert first.received == min(received)
    else:
        assert first is None
