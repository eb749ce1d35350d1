"""What is known of each that takes turns, and the line in which they wait. Touched once for each lane of a claim."""

from bisect import insort
from collections import deque
from heapq import heappop, heappush

from holdfast.model.lane import Lane
from holdfast.policy.fairness.floors import Floor

AGEING = 8
"""Every so many visits of a tenant's turn go to jobs that are not its most urgent ones."""

Turn = tuple[str, str]
"""Queue and tenant: whoever takes turns."""


class KnownLane(Floor):
    """A lane that takes part, its floor, and whose it is."""

    __slots__ = ("account", "lane")

    def __init__(self, lane: Lane, at: int, account: "Account") -> None:
        super().__init__(at)
        self.lane = lane
        self.account = account
        account.join(self)


class Account:
    """What is known of whoever takes turns."""

    __slots__ = ("asked", "dear", "lanes", "place", "received", "turn", "visits", "weight")

    def __init__(self, turn: Turn, received: float, weight: int, place: int) -> None:
        self.turn = turn
        self.received = received
        """Cost started, for each unit of weight."""
        self.weight = weight
        self.place = place
        """Of two that received the same, who came first. No two have the same."""
        self.lanes: list[KnownLane] = []
        """The most urgent first."""
        self.asked: list[int] = []
        """When claims that are under way were asked to visit it, the oldest first."""
        self.visits = 0
        self.dear = 1.0
        """What one of its jobs costs, as far as the last visit told."""

    def join(self, lane: KnownLane) -> None:
        """Have one more lane."""
        if self.lanes:
            insort(self.lanes, lane, key=_urgency)
        else:
            self.lanes.append(lane)

    def next_lane(self) -> KnownLane:
        """Which of its lanes is visited next."""
        others = len(self.lanes) - 1
        if not others or self.visits % AGEING != AGEING - 1:
            return self.lanes[0]
        return self.lanes[1 + self.visits // AGEING % others]


def _urgency(lane: KnownLane) -> int:
    return -lane.lane.priority


class Line:
    """Accounts in the order of what they received, the least first.

    Whoever comes, or was served, has as a rule received no less than all who wait, and goes to the end of a queue. The
    others are a heap beside it, so that many equal lanes cost no search.
    """

    __slots__ = ("_others", "_queue")

    def __init__(self) -> None:
        self._queue: deque[tuple[float, int, Account]] = deque()
        self._others: list[tuple[float, int, Account]] = []

    def stand(self, account: Account) -> None:
        """Get in line. What an account has received changes only while it is not."""
        entry = (account.received, account.place, account)
        if not self._queue or self._queue[-1] < entry:
            self._queue.append(entry)
        else:
            heappush(self._others, entry)

    def pop(self, below: float) -> Account | None:
        """Take out who is first, if it received less than that."""
        queue, others = self._queue, self._others
        if others and (not queue or others[0] < queue[0]):
            return heappop(others)[2] if others[0][0] < below else None
        return queue.popleft()[2] if queue and queue[0][0] < below else None
