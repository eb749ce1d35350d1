"""What is known of each that takes turns, and the line in which they wait. Touched once for each lane of a claim."""

from bisect import insort
from collections import deque
from heapq import heappop, heappush

from holdfast.model.lane import Lane
from holdfast.policy.fairness.floors import Floor

AGING_INTERVAL = 8
"""Every so many visits of a tenant's turn go to jobs that are not its most urgent ones."""

FlowKey = tuple[str, str]
"""Queue and tenant: whoever takes turns."""


class LaneState(Floor):
    """A lane that takes part, its floor, and whose it is."""

    __slots__ = ("flow", "lane")

    def __init__(self, lane: Lane, at: int, flow: "Flow") -> None:
        super().__init__(at)
        self.lane = lane
        self.flow = flow
        flow.join(self)


class Flow:
    """What is known of whoever takes turns."""

    __slots__ = ("claims_in_flight", "key", "lanes", "mean_cost", "received", "tiebreak", "visits", "weight")

    def __init__(self, key: FlowKey, received: float, weight: int, tiebreak: int) -> None:
        self.key = key
        self.received = received
        """Cost started, for each unit of weight."""
        self.weight = weight
        self.tiebreak = tiebreak
        """Of two that received the same, who came first. No two have the same."""
        self.lanes: list[LaneState] = []
        """The most urgent first."""
        self.claims_in_flight: list[int] = []
        """When claims that are under way were asked to visit it, the oldest first."""
        self.visits = 0
        self.mean_cost = 1.0
        """What one of its jobs costs, as far as the last visit told."""

    def join(self, lane: LaneState) -> None:
        """Have one more lane."""
        if self.lanes:
            insort(self.lanes, lane, key=_urgency)
        else:
            self.lanes.append(lane)

    def next_lane(self) -> LaneState:
        """Which of its lanes is visited next."""
        others = len(self.lanes) - 1
        if not others or self.visits % AGING_INTERVAL != AGING_INTERVAL - 1:
            return self.lanes[0]
        return self.lanes[1 + self.visits // AGING_INTERVAL % others]


def _urgency(lane: LaneState) -> int:
    return -lane.lane.priority


class FlowHeap:
    """Accounts in the order of what they received, the least first.

    Whoever comes, or was served, has as a rule received no less than all who wait, and goes to the end of a queue. The
    others are a heap beside it, so that many equal lanes cost no search.
    """

    __slots__ = ("_others", "_queue")

    def __init__(self) -> None:
        self._queue: deque[tuple[float, int, Flow]] = deque()
        self._others: list[tuple[float, int, Flow]] = []

    def push(self, flow: Flow) -> None:
        """Get in line. What an account has received changes only while it is not."""
        entry = (flow.received, flow.tiebreak, flow)
        if not self._queue or self._queue[-1] < entry:
            self._queue.append(entry)
        else:
            heappush(self._others, entry)

    def pop(self, below: float) -> Flow | None:
        """Take out who is first, if it received less than that."""
        queue, others = self._queue, self._others
        if others and (not queue or others[0] < queue[0]):
            return heappop(others)[2] if others[0][0] < below else None
        return queue.popleft()[2] if queue and queue[0][0] < below else None
