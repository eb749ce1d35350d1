"""Turn by turn over the lanes: which lanes the next claim visits, and how much it may take from each.

Deterministic: no clock of its own, no database. A worker keeps one `Rotation` and tells it what it saw.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence
from operator import neg
from typing import NamedTuple

from holdfast.model.lane import Lane, News, Share

QUANTUM = 10
"""How many jobs a lane gives on one visit when many lanes compete."""

MOST_SHARES = 500
"""How many lanes one claim visits at most."""

FLOOR_TRAIL = 0.05
"""Seconds a floor stays behind what was claimed: longer than most commits take. News of a later one lower the floor."""

SWEEP_EVERY = 1.0
"""Seconds between looks at all lanes without floors, at the least."""

SWEEP_SHARE = 50
"""A look at all lanes happens no more often than this many times what it costs."""


CHEAP_SWEEP = 0.05
"""Seconds: a look that took no longer may be repeated at once, when something is known to have become ready."""


class Taken(NamedTuple):
    """What a claim took from one lane: how many jobs, and the furthest position."""

    jobs: int
    furthest: int


class _Floor:
    """A position in a lane below which nothing is left, as far as is known."""

    __slots__ = ("at", "next", "next_since")

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.next = at
        self.next_since = -math.inf

    def advance(self, furthest: int, now: float) -> None:
        if now - self.next_since >= FLOOR_TRAIL:
            self.at = self.next
            self.next, self.next_since = furthest, now

    def lower(self, seq: int) -> None:
        if seq <= self.at:
            self.at = seq - 1
        if seq <= self.next:
            self.next = seq - 1


_Turn = tuple[str, str]
"""Queue and tenant: whoever takes turns."""


class Rotation:
    """The lanes a worker knows of, in the order of their turns. Times are monotonic seconds of the caller."""

    def __init__(self) -> None:
        self._order: deque[_Turn] = deque()
        self._visited: dict[_Turn, int] = {}
        self._priorities: dict[_Turn, list[int]] = {}
        self._floors: dict[Lane, _Floor] = {}
        self._per_visit = float(QUANTUM)
        self._next_sweep = -math.inf
        self._earliest_sweep = -math.inf
        self._rest: dict[_Turn, int] = {}

    def __len__(self) -> int:
        return len(self._priorities)

    def sweep_due(self, now: float) -> bool:
        """Whether to look for lanes in the database before the next claim."""
        return now >= self._next_sweep

    def swept(self, lanes: Iterable[Lane], now: float, cost: float) -> None:
        """Take in what a look at the database found; all floors fall, so a late commit is seen again."""
        for lane in lanes:
            self._add(lane)
        self._floors.clear()
        self._next_sweep = now + max(SWEEP_EVERY, SWEEP_SHARE * cost)
        self._earliest_sweep = now + (SWEEP_SHARE * cost if cost > CHEAP_SWEEP else 0.0)

    def heard(self, news: Iterable[News]) -> None:
        """Jobs became ready: the lane takes part from now on, from that position at the latest."""
        for lane, seq in news:
            if self._add(lane):
                # It was empty as far as is known: what lies before can only be what was claimed, until a sweep tells.
                self._floors[lane] = _Floor(seq - 1)
            elif floor := self._floors.get(lane):
                floor.lower(seq)

    def look_again(self) -> None:
        """Something became ready, it is not known where: look for it, at once unless the last look was costly."""
        self._next_sweep = min(self._next_sweep, self._earliest_sweep)

    def allot(self, slots: int) -> list[Share]:
        """The next lanes in turn. Together they may offer more than `slots`; the claim stops there."""
        if slots <= 0 or not self._priorities:
            return []
        turns = self._next_turns(min(MOST_SHARES, math.ceil(slots / self._per_visit)))
        if not turns:
            return []
        quota = min(slots, max(QUANTUM, -(-slots // len(turns))))
        shares = []
        for turn in turns:
            lane = Lane(*turn, self._priorities[turn][0])
            floor = self._floors.get(lane)
            shares.append(Share(lane, self._rest.pop(turn, quota), floor.at if floor else 0))
        return shares

    def took(self, shares: Sequence[Share], taken: dict[Lane, Taken], slots: int, now: float) -> None:
        """Take in what a claim over `shares` brought.

        A lane that gave nothing though it was asked is dropped; one the claim did not reach keeps its turn, and one it
        was cut short in keeps the rest of its turn.
        """
        full = sum(took.jobs for took in taken.values()) >= slots
        last = max((i for i, share in enumerate(shares) if share.lane in taken), default=-1)
        reached = shares[: last + 1] if full else shares
        if full and (rest := shares[last].quota - taken[shares[last].lane].jobs) > 0:
            lane = shares[last].lane
            self._rest[(lane.queue, lane.tenant)] = rest
            reached = shares[:last]
        for lane, took in taken.items():
            self._floors.setdefault(lane, _Floor()).advance(took.furthest, now)
        for share in reached:
            if share.lane not in taken:
                self._drop(share.lane)
        for share in reached:
            self._back_in_line(share.lane, first=False)
        for share in reversed(shares[len(reached) :]):
            self._back_in_line(share.lane, first=True)
        if reached:
            seen = sum(taken[share.lane].jobs for share in reached if share.lane in taken) / len(reached)
            self._per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._per_visit + 0.5 * seen))

    def gave_up(self, shares: Sequence[Share]) -> None:
        """A claim over `shares` failed: they keep their turn."""
        for share in reversed(shares):
            self._back_in_line(share.lane, first=True)

    def _next_turns(self, width: int) -> list[_Turn]:
        turns = [self._order.popleft() for _ in range(min(width, len(self._order)))]
        if not turns:  # every lane is being visited by another claim: visit the same, locked rows are skipped
            turns = [turn for turn in self._visited if turn in self._priorities][:width]
        for turn in turns:
            self._visited[turn] = self._visited.get(turn, 0) + 1
        return turns

    def _back_in_line(self, lane: Lane, *, first: bool) -> None:
        turn = (lane.queue, lane.tenant)
        visits = self._visited.get(turn, 0) - 1
        if visits > 0:
            self._visited[turn] = visits
            return
        if self._visited.pop(turn, None) and turn in self._priorities:
            (self._order.appendleft if first else self._order.append)(turn)

    def _add(self, lane: Lane) -> bool:
        """Have a lane take part; whether it did not before."""
        turn = (lane.queue, lane.tenant)
        known = self._priorities.get(turn)
        if known is None:
            self._priorities[turn] = [lane.priority]
            if turn not in self._visited:
                self._order.append(turn)
            return True
        if lane.priority in known:
            return False
        insort(known, lane.priority, key=neg)
        return True

    def _drop(self, lane: Lane) -> None:
        turn = (lane.queue, lane.tenant)
        self._floors.pop(lane, None)
        known = self._priorities.get(turn)
        if known and lane.priority in known:
            known.remove(lane.priority)
            if not known:
                del self._priorities[turn]
                self._rest.pop(turn, None)
