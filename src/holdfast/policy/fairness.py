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
"""Seconds a floor stays behind what was claimed where no news tell of a late commit: longer than most commits take."""

SWEEP_EVERY = 1.0
"""Seconds between looks at all lanes, at the least."""

SWEEP_SHARE = 50
"""Looks are further apart than that if they are dear, by this many times what one costs, up to `SWEEP_SELDOM`."""

SWEEP_SELDOM = 5.0
"""Seconds between dear looks: for about so long a late commit may be hidden whose news are lost."""

SWEEP_MOST = 20
"""Whatever the above says, looks are further apart than this many times what one costs."""

CHEAP_SWEEP = 0.05
"""Seconds: a look that took no longer may be repeated at once, when something is known to have become ready."""


class Taken(NamedTuple):
    """What a claim took from one lane: how many jobs, and the furthest position."""

    jobs: int
    furthest: int


class Round(list[Share]):
    """The shares of one claim, and the moment they were allotted: what was heard later, the claim may have missed."""

    __slots__ = ("asked",)

    def __init__(self, shares: Iterable[Share] = (), asked: int = 0) -> None:
        super().__init__(shares)
        self.asked = asked


class _Floor:
    """A position in a lane below which nothing is left, as far as is known."""

    __slots__ = ("_told", "at", "next", "next_since")

    def __init__(self, at: int) -> None:
        self.at = at
        self.next = at
        self.next_since = -math.inf
        self._told: list[tuple[int, int]] = []
        """What was heard while claims were under way: moments and positions, both rising."""

    def advance(self, furthest: int, now: float, trail: float) -> None:
        if now - self.next_since >= trail:
            self.at = self.next if trail else furthest
            self.next, self.next_since = furthest, now

    def lower(self, seq: int) -> None:
        if seq <= self.at:
            self.at = seq - 1
        if seq <= self.next:
            self.next = seq - 1

    def tell(self, seq: int, moment: int, oldest: int) -> None:
        """Keep for the claims under way what they may have missed; the oldest of them was asked at `oldest`."""
        self._told = [(at, first) for at, first in self._told if at > oldest and first < seq]
        self._told.append((moment, seq))

    def missed(self, asked: int) -> int | None:
        """The first position that was heard of since a claim was asked, if any was."""
        return next((seq for moment, seq in self._told if moment > asked), None)


_Turn = tuple[str, str]
"""Queue and tenant: whoever takes turns."""


class Rotation:
    """The lanes a worker knows of, in the order of their turns. Times are monotonic seconds of the caller."""

    def __init__(self) -> None:
        self._order: deque[_Turn] = deque()
        self._visited: dict[_Turn, list[int]] = {}
        """Whom claims under way visit, and when each was asked, the oldest first."""
        self._priorities: dict[_Turn, list[int]] = {}
        self._floors: dict[Lane, _Floor] = {}
        """Of every lane that takes part."""
        self._moment = 0
        """Counts what was heard and seen: tells of two things which came first."""
        self._per_visit = float(QUANTUM)
        self._next_sweep = -math.inf
        self._earliest_sweep = -math.inf
        self._rest: dict[_Turn, int] = {}

    def __len__(self) -> int:
        return len(self._priorities)

    def sweep_due(self, now: float) -> bool:
        """Whether to look for lanes in the database before the next claim."""
        return now >= self._next_sweep

    def swept(self, found: Iterable[News], now: float, cost: float, *, complete: bool = True) -> None:
        """Take in the lanes that a look at the database found, each with its first ready job.

        `complete`: there were no more than it could name.
        """
        # A floor must not hide a late commit for longer than until the next look. One that this look saw is not before
        # the position named for its lane, and the floor falls to there, whatever was claimed beyond. One that it did
        # not see was committed after it: the next look will. The floor of a lane that takes part is only ever lowered
        # here, since news of an earlier position may have come while the look was under way. A lane without one is
        # new, or was found empty by a claim that began after all its news: nothing lies before what the look saw.
        if not complete:
            for floor in self._floors.values():
                floor.lower(1)
        self.heard(found)
        self._next_sweep = now + max(SWEEP_EVERY, min(SWEEP_SHARE * cost, SWEEP_SELDOM), SWEEP_MOST * cost)
        self._earliest_sweep = self._next_sweep if cost > CHEAP_SWEEP else now

    def heard(self, news: Iterable[News]) -> None:
        """Jobs became ready: the lane takes part from now on, from that position at the latest."""
        self._moment += 1
        for lane, seq in news:
            if self._add(lane):
                # It was empty as far as is known: what lies before can only be what was claimed, until a sweep tells.
                self._floors[lane] = _Floor(seq - 1)
            else:
                self._floors[lane].lower(seq)
            if visits := self._visited.get((lane.queue, lane.tenant)):
                self._floors[lane].tell(seq, self._moment, visits[0])

    def look_again(self) -> None:
        """Something became ready, it is not known where: look for it, at once unless the last look was costly."""
        self._next_sweep = min(self._next_sweep, self._earliest_sweep)

    def allot(self, slots: int) -> Round:
        """The next lanes in turn. Together they may offer more than `slots`; the claim stops there."""
        shares = Round(asked=self._moment)
        if slots <= 0 or not self._priorities:
            return shares
        turns = self._next_turns(min(MOST_SHARES, math.ceil(slots / self._per_visit)))
        if not turns:
            return shares
        quota = min(slots, max(QUANTUM, -(-slots // len(turns))))
        for turn in turns:
            lane = Lane(*turn, self._priorities[turn][0])
            shares.append(Share(lane, self._rest.pop(turn, quota), self._floors[lane].at))
        return shares

    def took(
        self, shares: Round, taken: dict[Lane, Taken], slots: int, now: float, *, trail: float = FLOOR_TRAIL
    ) -> None:
        """Take in what a claim over `shares` brought. `trail`: how long floors stay behind; 0 where news tell all.

        A lane that gave nothing though it was asked is dropped, unless there were news of it meanwhile: the claim may
        have begun before them. One the claim did not reach keeps its turn, and one it was cut short in keeps the rest
        of its turn.
        """
        full = sum(took.jobs for took in taken.values()) >= slots
        last = max((i for i, share in enumerate(shares) if share.lane in taken), default=-1)
        reached: Sequence[Share] = shares[: last + 1] if full else shares
        if full and (rest := shares[last].quota - taken[shares[last].lane].jobs) > 0:
            lane = shares[last].lane
            self._rest[(lane.queue, lane.tenant)] = rest
            reached = shares[:last]
        for share in shares:
            if took := taken.get(share.lane):
                self._advance(share, took.furthest, shares.asked, now, trail)
        for share in reached:
            if share.lane not in taken:
                self._found_empty(share.lane, shares.asked)
        for share in reached:
            self._back_in_line(share.lane, shares.asked, first=False)
        for share in reversed(shares[len(reached) :]):
            self._back_in_line(share.lane, shares.asked, first=True)
        if reached:
            seen = sum(taken[share.lane].jobs for share in reached if share.lane in taken) / len(reached)
            self._per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._per_visit + 0.5 * seen))

    def gave_up(self, shares: Round) -> None:
        """A claim over `shares` failed: they keep their turn."""
        for share in reversed(shares):
            self._back_in_line(share.lane, shares.asked, first=True)

    def _next_turns(self, width: int) -> list[_Turn]:
        turns = [self._order.popleft() for _ in range(min(width, len(self._order)))]
        if not turns:  # every lane is being visited by another claim: visit the same, locked rows are skipped
            turns = [turn for turn in self._visited if turn in self._priorities][:width]
        for turn in turns:
            self._visited.setdefault(turn, []).append(self._moment)
        return turns

    def _back_in_line(self, lane: Lane, asked: int, *, first: bool) -> None:
        turn = (lane.queue, lane.tenant)
        visits = self._visited[turn]
        visits.remove(asked)
        if visits:
            return
        del self._visited[turn]
        if turn in self._priorities:
            (self._order.appendleft if first else self._order.append)(turn)

    def _advance(self, share: Share, furthest: int, asked: int, now: float, trail: float) -> None:
        if self._add(share.lane):  # another claim found it empty, since this one had locked what there was
            self._floors[share.lane] = _Floor(share.floor)
        floor = self._floors[share.lane]
        missed = floor.missed(asked)
        # What was committed while the claim was under way may lie before what it took.
        floor.advance(furthest if missed is None else min(furthest, missed - 1), now, trail)

    def _found_empty(self, lane: Lane, asked: int) -> None:
        floor = self._floors.get(lane)
        if floor and floor.missed(asked) is None:
            self._drop(lane)

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
        del self._floors[lane]
        known = self._priorities[turn]
        known.remove(lane.priority)
        if not known:
            del self._priorities[turn]
            self._rest.pop(turn, None)
