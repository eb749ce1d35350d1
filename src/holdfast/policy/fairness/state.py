"""Flows of deficit round robin, and the heap that orders them by service received.

A hot path: every claim touches each lane that it visits once.
"""

from bisect import insort
from collections import deque
from heapq import heappop, heappush

from holdfast.model.lane import Lane
from holdfast.policy.fairness.floors import Floor

AGING_INTERVAL = 8
"""Interval, in visits to a flow, at which a lane other than its most urgent one is served."""

FlowKey = tuple[str, str]
"""Queue and tenant."""


class LaneState(Floor):
    """Active lane with its floor and its flow."""

    __slots__ = ("flow", "lane")

    def __init__(self, lane: Lane, at: int, flow: "Flow") -> None:
        super().__init__(at)
        self.lane = lane
        self.flow = flow
        flow.join(self)


class Flow:
    """Active lanes of a tenant in a queue, and the service received so far."""

    __slots__ = ("claims_in_flight", "key", "lanes", "mean_cost", "received", "tiebreak", "visits", "weight")

    def __init__(self, key: FlowKey, received: float, weight: int, tiebreak: int) -> None:
        self.key = key
        self.received = received
        """Cost of the jobs started, per unit of weight."""
        self.weight = weight
        self.tiebreak = tiebreak
        """Unique number that orders flows with equal service; the smaller one is served first."""
        self.lanes: list[LaneState] = []
        """Active lanes, most urgent first."""
        self.claims_in_flight: list[int] = []
        """Logical times at which the claims in flight were allotted, oldest first."""
        self.visits = 0
        self.mean_cost = 1.0
        """Mean cost of the jobs claimed by the last visit."""

    def join(self, lane: LaneState) -> None:
        """Add a lane."""
        if self.lanes:
            insort(self.lanes, lane, key=_urgency)
        else:
            self.lanes.append(lane)

    def next_lane(self) -> LaneState:
        """Return the lane to visit: the most urgent one, or every `AGING_INTERVAL`th time another."""
        less_urgent = len(self.lanes) - 1
        if not less_urgent or self.visits % AGING_INTERVAL != AGING_INTERVAL - 1:
            return self.lanes[0]
        return self.lanes[1 + self.visits // AGING_INTERVAL % less_urgent]


def _urgency(lane: LaneState) -> int:
    return -lane.lane.priority


class FlowHeap:
    """Priority queue of flows, least service received first.

    A flow that joins or was just served has usually received at least as much as all that wait, so it is appended to a
    sorted deque in constant time. Only the exceptions go to a heap.
    """

    __slots__ = ("_heap", "_sorted")

    def __init__(self) -> None:
        self._sorted: deque[tuple[float, int, Flow]] = deque()
        self._heap: list[tuple[float, int, Flow]] = []

    def push(self, flow: Flow) -> None:
        """Add a flow; its `received` must not change until it is popped."""
        entry = (flow.received, flow.tiebreak, flow)
        if not self._sorted or self._sorted[-1] < entry:
            self._sorted.append(entry)
        else:
            heappush(self._heap, entry)

    def pop(self, below: float) -> Flow | None:
        """Remove and return the first flow if it has received less than `below`; otherwise None."""
        ordered, heap = self._sorted, self._heap
        if heap and (not ordered or heap[0] < ordered[0]):
            return heappop(heap)[2] if heap[0][0] < below else None
        return ordered.popleft()[2] if ordered and ordered[0][0] < below else None
