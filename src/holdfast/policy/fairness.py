"""Turn by turn over the lanes: which lanes the next claim visits, and how much it may take from each.

Deficit round robin over whoever takes turns, a tenant in a queue: each has received so much cost for each unit of its
weight, and whoever received least is next. A claim lifts those it visits to one level; how far one is below the level
is its deficit, and that is what it may take. What it did take is charged by its cost. Whoever took more than its
deficit is left out until the others have caught up; whoever had less to give than it might saves nothing up, and
whoever comes, or comes back, begins at the level of who is served next. So for any two that have work all the time,
cost started by weight differs by no more than a quantum and what one claim may take, whatever they have waiting.

Inside a turn the most urgent jobs go first, and every `AGEING`th visit goes to less urgent ones, to each in its turn.

Deterministic: no clock of its own, no database. A worker keeps one `Rotation` and tells it what it saw.
"""

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import neg
from typing import Literal, NamedTuple

from holdfast.model.lane import Lane, News, Share
from holdfast.policy.floors import Floor

QUANTUM = 10
"""How many jobs a lane gives on one visit when many lanes compete."""

AGEING = 8
"""Every so many visits of a tenant's turn go to jobs that are not its most urgent ones."""

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
    """What a claim took from one lane: how many jobs, the furthest position, and what they cost together."""

    jobs: int
    furthest: int
    cost: int


class Round(list[Share]):
    """The shares of one claim, and the moment they were allotted: what was heard later, the claim may have missed."""

    __slots__ = ("asked",)

    def __init__(self, shares: Iterable[Share] = (), asked: int = 0) -> None:
        super().__init__(shares)
        self.asked = asked


_Turn = tuple[str, str]
"""Queue and tenant: whoever takes turns."""

Shut = tuple[Literal["queue", "tenant"], str]
"""A queue or a tenant that a limit leaves no room for."""


class _Account:
    """What is known of whoever takes turns."""

    __slots__ = ("dear", "place", "priorities", "received", "visits", "weight")

    def __init__(self, received: float, weight: int, place: int) -> None:
        self.received = received
        """Cost started, for each unit of weight."""
        self.weight = weight
        self.place = place
        """Of two that received the same, who came first."""
        self.priorities: list[int] = []
        """Of its lanes, the most urgent first."""
        self.visits = 0
        self.dear = 1.0
        """What one of its jobs costs, as far as the last visit told."""

    def urgency(self) -> int:
        """Which of its priorities is visited next."""
        if self.visits % AGEING != AGEING - 1 or len(self.priorities) == 1:
            return self.priorities[0]
        others = len(self.priorities) - 1
        return self.priorities[1 + self.visits // AGEING % others]


class Rotation:
    """The lanes a worker knows of, and what each has received. Times are monotonic seconds of the caller."""

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        self._weights: Mapping[str, int] = weights or {}
        """Of tenants; others have 1."""
        self._accounts: dict[_Turn, _Account] = {}
        """Of everybody who takes part."""
        self._line: list[tuple[float, int, _Turn]] = []
        """Everybody who is not being visited and does not sleep, as a heap: whoever received least is first."""
        self._asleep: defaultdict[Shut, list[_Turn]] = defaultdict(list)
        """Who is left out while a limit of a queue or tenant leaves no room, by that."""
        self._level = 0.0
        """What the one had received who was first in the latest claim: where newcomers begin."""
        self._places = 0
        self._visited: dict[_Turn, list[int]] = {}
        """Whom claims under way visit, and when each was asked, the oldest first."""
        self._floors: dict[Lane, Floor] = {}
        """Of every lane that takes part."""
        self._moment = 0
        """Counts what was heard and seen: tells of two things which came first."""
        self._per_visit = float(QUANTUM)
        self._next_sweep = -math.inf
        self._earliest_sweep = -math.inf

    def __len__(self) -> int:
        return len(self._accounts)

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
                self._floors[lane] = Floor(seq - 1)
            else:
                self._floors[lane].lower(seq)
            if visits := self._visited.get((lane.queue, lane.tenant)):
                self._floors[lane].tell(seq, self._moment, visits[0])

    def look_again(self) -> None:
        """Something became ready, it is not known where: look for it, at once unless the last look was costly."""
        self._next_sweep = min(self._next_sweep, self._earliest_sweep)

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Weights of tenants, from now on; what was received stays as it was counted."""
        self._weights = weights
        for (_, tenant), account in self._accounts.items():
            account.weight = weights.get(tenant, 1)

    def wake(self, shut: Shut) -> None:
        """There may be room again for this queue or tenant: who was left out for it takes part again."""
        for turn in self._asleep.pop(shut, ()):
            if turn in self._accounts:
                self._stand(turn)

    def allot(self, slots: int, shut: Collection[Shut] = ()) -> Round:
        """The next lanes in turn. Together they may offer more than `slots`; the claim stops there.

        `shut`: whom limits leave no room for. Their lanes sleep until `wake`.
        """
        shares = Round(asked=self._moment)
        if slots <= 0 or not self._accounts:
            return shares
        turns = self._next_turns(slots, shut)
        if not turns:
            return shares
        # The level to which all of them together are lifted by so many jobs, at what their jobs cost.
        pace = [account.weight / account.dear for _, account in turns]
        lifted = sum(each * account.received for each, (_, account) in zip(pace, turns, strict=True))
        level = (slots + lifted) / sum(pace)
        for each, (turn, account) in zip(pace, turns, strict=True):
            lane = Lane(*turn, account.urgency())
            deficit = math.ceil(each * (level - account.received) - 1e-6)
            shares.append(Share(lane, min(slots, max(1, deficit)), self._floors[lane].at))
        return shares

    def took(
        self, shares: Round, taken: dict[Lane, Taken], slots: int, now: float, *, trail: float = FLOOR_TRAIL
    ) -> None:
        """Take in what a claim over `shares` brought. `trail`: how long floors stay behind; 0 where news tell all.

        A lane that gave nothing though it was asked is dropped, unless there were news of it meanwhile: the claim may
        have begun before them. Who was not reached, or was cut short, has received less and so is first next time.
        """
        full = sum(took.jobs for took in taken.values()) >= slots
        last = max((i for i, share in enumerate(shares) if share.lane in taken), default=-1)
        reached: Sequence[Share] = shares[: last + 1] if full else shares
        for share in shares:
            if took := taken.get(share.lane):
                self._advance(share, took.furthest, shares.asked, now, trail)
                self._charge(share, took)
        for index, share in enumerate(reached):
            took = taken.get(share.lane)
            if took is None:
                self._found_empty(share.lane, shares.asked)
            elif took.jobs < share.quota and not (full and index == last):
                # All it had: it was idle for a moment, and what it did not use is not saved up.
                account = self._accounts[share.lane[:2]]
                account.received = max(account.received, self._level)
        for share in shares:
            self._back_in_line(share.lane, shares.asked)
        if reached:
            seen = sum(taken[share.lane].jobs for share in reached if share.lane in taken) / len(reached)
            self._per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._per_visit + 0.5 * seen))

    def gave_up(self, shares: Round) -> None:
        """A claim over `shares` failed, or was not made: they keep their turn."""
        for share in shares:
            self._back_in_line(share.lane, shares.asked)

    def _next_turns(self, slots: int, shut: Collection[Shut]) -> list[tuple[_Turn, _Account]]:
        width = min(MOST_SHARES, math.ceil(slots / self._per_visit))
        turns: list[tuple[_Turn, _Account]] = []
        pace = lifted = 0.0
        while self._line and len(turns) < width:
            received, _, turn = self._line[0]
            if turns and pace * received >= slots + lifted:
                break  # the others stay below this one, whatever they are given
            heappop(self._line)
            if shut and (why := _shut_out(turn, shut)) is not None:
                self._asleep[why].append(turn)
                continue
            account = self._accounts[turn]
            if not turns:
                self._level = max(self._level, received)
            turns.append((turn, account))
            pace += account.weight / account.dear
            lifted += account.weight / account.dear * received
        if not turns:  # every lane is being visited by another claim: visit the same, locked rows are skipped
            again = [turn for turn in self._visited if turn in self._accounts]
            turns = [(turn, self._accounts[turn]) for turn in again if _shut_out(turn, shut) is None][:width]
        for turn, _ in turns:
            self._visited.setdefault(turn, []).append(self._moment)
        return turns

    def _stand(self, turn: _Turn) -> None:
        account = self._accounts[turn]
        heappush(self._line, (account.received, account.place, turn))

    def _back_in_line(self, lane: Lane, asked: int) -> None:
        turn = (lane.queue, lane.tenant)
        visits = self._visited[turn]
        visits.remove(asked)
        if visits:
            return
        del self._visited[turn]
        if turn in self._accounts:
            self._stand(turn)

    def _charge(self, share: Share, took: Taken) -> None:
        account = self._accounts[share.lane.queue, share.lane.tenant]
        account.received += took.cost / account.weight
        account.dear = took.cost / took.jobs
        account.visits += 1
        self._places += 1
        account.place = self._places

    def _advance(self, share: Share, furthest: int, asked: int, now: float, trail: float) -> None:
        if self._add(share.lane):  # another claim found it empty, since this one had locked what there was
            self._floors[share.lane] = Floor(share.floor)
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
        account = self._accounts.get(turn)
        if account is None:
            self._places += 1
            account = _Account(self._level, self._weights.get(lane.tenant, 1), self._places)
            self._accounts[turn] = account
            account.priorities.append(lane.priority)
            if turn not in self._visited:
                self._stand(turn)
            return True
        if lane.priority in account.priorities:
            return False
        insort(account.priorities, lane.priority, key=neg)
        return True

    def _drop(self, lane: Lane) -> None:
        turn = (lane.queue, lane.tenant)
        del self._floors[lane]
        account = self._accounts[turn]
        account.priorities.remove(lane.priority)
        if not account.priorities:
            del self._accounts[turn]


def _shut_out(turn: _Turn, shut: Collection[Shut]) -> Shut | None:
    """Why this one cannot take its turn."""
    names: tuple[Shut, Shut] = (("queue", turn[0]), ("tenant", turn[1]))
    return next((name for name in names if name in shut), None)
