"""Heap of flows: ordered by service received, for any order of pushes."""

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.policy.fairness.state import Flow, FlowHeap

STEPS = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=60)
"""A number pushes a flow that has received as much; None pops the first one."""


@given(STEPS)
def test_the_flow_with_the_least_service_is_popped_first_and_ties_in_order_of_arrival(steps: list[int | None]) -> None:
    heap, waiting = FlowHeap(), list[Flow]()
    for tiebreak, received in enumerate(steps):
        if received is None:
            first = min(waiting, key=lambda flow: (flow.received, flow.tiebreak), default=None)
            assert heap.pop(below=math.inf) is first
            if first is not None:
                waiting.remove(first)
        else:
            flow = Flow(("q", "t"), received, 1, tiebreak)
            heap.push(flow)
            waiting.append(flow)


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(0, 10))
def test_a_flow_at_or_above_the_level_is_not_popped(received: list[int], below: int) -> None:
    heap = FlowHeap()
    for tiebreak, service in enumerate(received):
        heap.push(Flow(("q", "t"), service, 1, tiebreak))

    first = heap.pop(below)
    if min(received) < below:
        assert first is not None
        assert first.received == min(received)
    else:
        assert first is None
