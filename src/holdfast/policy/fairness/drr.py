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
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from holdfast.model.lane import Lane, News, Share
from holdfast.policy.fairness.state import Account, KnownLane, Line, Turn

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


Shut = tuple[Literal["queue", "tenant"], str]
"""A queue or a tenant that a limit leaves no room for."""


class Rotation:
    """The lanes a worker knows of, and what each has received. Times are monotonic seconds of the caller."""

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        self._weights: Mapping[str, int] = weights or {}
        """Of tenants; others have 1."""
        self._accounts: dict[Turn, Account] = {}
        """Of everybody who takes part, or is being visited still."""
        self._lanes: dict[Lane, KnownLane] = {}
        """All that take part."""
        self._line = Line()
        """Everybody who takes part, is not being visited and does not sleep."""
        self._visited: dict[Account, None] = {}
        """Whom claims under way visit."""
        self._asleep: defaultdict[Shut, list[Account]] = defaultdict(list)
        """Who is left out while a limit of a queue or tenant leaves no room, by that."""
        self._level = 0.0
        """What the one had received who was first in the latest claim: where newcomers begin."""
        self._places = 0
        self._moment = 0
        """Counts what was heard and seen: tells of two things which came first."""
        self._per_visit = float(QUANTUM)
        self._next_sweep = -math.inf
        self._earliest_sweep = -math.inf

    def __len__(self) -> int:
        return len(self._lanes)

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
            for lane in self._lanes.values():
                lane.lower(1)
        self.heard(found)
        self._next_sweep = now + max(SWEEP_EVERY, min(SWEEP_SHARE * cost, SWEEP_SELDOM), SWEEP_MOST * cost)
        self._earliest_sweep = self._next_sweep if cost > CHEAP_SWEEP else now

    def heard(self, news: Iterable[News]) -> None:
        """Jobs became ready: the lane takes part from now on, from that position at the latest."""
        self._moment += 1
        for lane, seq in news:
            known = self._lanes.get(lane)
            if known is None:
                # It was empty as far as is known: what lies before can only be what was claimed, until a sweep tells.
                known = self._join(lane, seq - 1)
            else:
                known.lower(seq)
            if known.account.asked:
                known.tell(seq, self._moment, known.account.asked[0])

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
        for account in self._asleep.pop(shut, ()):
            self._line.stand(account)

    def allot(self, slots: int, shut: Collection[Shut] = ()) -> Round:
        """The next lanes in turn. Together they may offer more than `slots`; the claim stops there.

        `shut`: whom limits leave no room for. Their lanes sleep until `wake`.
        """
        shares = Round(asked=self._moment)
        if slots <= 0 or not self._lanes:
            return shares
        accounts, level = self._next_turns(slots, shut)
        for account in accounts:
            lane = account.next_lane()
            quota = math.ceil((level - account.received) * account.weight / account.dear - 1e-6)
            shares.append(Share(lane.lane, 1 if quota < 1 else min(quota, slots), lane.at))
        return shares

    def took(
        self, shares: Round, taken: dict[Lane, Taken], slots: int, now: float, *, trail: float = FLOOR_TRAIL
    ) -> None:
        """Take in what a claim over `shares` brought. `trail`: how long floors stay behind; 0 where news tell all.

        A lane that gave nothing though it was asked is dropped, unless there were news of it meanwhile: the claim may
        have begun before them. Who was not reached, or was cut short, has received less and so is first next time.
        """
        jobs = sum(took.jobs for took in taken.values())
        last = len(shares) - 1
        if full := jobs >= slots:  # whoever comes after the last that gave something was not reached
            last = next((i for i in range(last, -1, -1) if shares[i].lane in taken), -1)
        for index, share in enumerate(shares):
            took = taken.get(share.lane)
            if took is not None:
                all_it_had = took.jobs < share.quota and not (full and index == last)
                account = self._charge(share, took, shares.asked, now, trail, idle=all_it_had)
            else:
                account = self._accounts[share.lane[:2]]
                if index <= last:
                    self._found_empty(share.lane, shares.asked)
            self._back_in_line(account, shares.asked)
        if last >= 0:
            self._per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._per_visit + 0.5 * jobs / (last + 1)))

    def gave_up(self, shares: Round) -> None:
        """A claim over `shares` failed, or was not made: they keep their turn."""
        for share in shares:
            self._back_in_line(self._accounts[share.lane[:2]], shares.asked)

    def _next_turns(self, slots: int, shut: Collection[Shut]) -> tuple[list[Account], float]:
        """Who is next, and the level to which all of them together are lifted by so many jobs, at what theirs cost."""
        width = min(MOST_SHARES, math.ceil(slots / self._per_visit))
        accounts: list[Account] = []
        pace = lifted = 0.0
        level = math.inf
        # Who is not below the level of those before stays out: it is theirs, whatever they are given.
        while len(accounts) < width and (account := self._line.pop(below=level)):
            if shut and (why := _shut_out(account.turn, shut)) is not None:
                self._asleep[why].append(account)
                continue
            if not accounts:
                self._level = max(self._level, account.received)
            accounts.append(account)
            each = account.weight / account.dear
            pace += each
            lifted += each * account.received
            level = (slots + lifted) / pace
        if not accounts:  # every lane is being visited by another claim: visit the same, locked rows are skipped
            again = (each for each in self._visited if each.lanes and _shut_out(each.turn, shut) is None)
            accounts = list(islice(again, width))
            level = _level_of(accounts, slots)
        for account in accounts:
            account.asked.append(self._moment)
            self._visited[account] = None
        return accounts, level

    def _back_in_line(self, account: Account, asked: int) -> None:
        account.asked.remove(asked)
        if account.asked:
            return
        del self._visited[account]
        if account.lanes:
            self._line.stand(account)
        else:
            del self._accounts[account.turn]

    def _charge(self, share: Share, took: Taken, asked: int, now: float, trail: float, *, idle: bool) -> Account:
        """Take in what a lane gave; `idle`: it was all that it had."""
        known = self._lanes.get(share.lane)
        if known is None:  # another claim found it empty, since this one had locked what there was
            known = self._join(share.lane, share.floor)
        missed = known.missed(asked)
        # What was committed while the claim was under way may lie before what it took.
        known.advance(took.furthest if missed is None else min(took.furthest, missed - 1), now, trail)
        account = known.account
        account.received += took.cost / account.weight
        if idle and account.received < self._level:
            account.received = self._level  # it was idle for a moment, and what it did not use is not saved up
        account.dear = took.cost / took.jobs
        account.visits += 1
        self._places += 1
        account.place = self._places
        return account

    def _join(self, lane: Lane, floor: int) -> KnownLane:
        """Have a lane take part that did not."""
        turn = (lane.queue, lane.tenant)
        account = self._accounts.get(turn)
        if account is None:
            self._places += 1
            account = Account(turn, self._level, self._weights.get(lane.tenant, 1), self._places)
            self._accounts[turn] = account
            self._line.stand(account)
        elif not account.lanes:  # it comes back while it is being visited still
            account.received = max(account.received, self._level)
        known = self._lanes[lane] = KnownLane(lane, floor, account)
        return known

    def _found_empty(self, lane: Lane, asked: int) -> None:
        known = self._lanes.get(lane)
        if known is not None and known.missed(asked) is None:
            del self._lanes[lane]
            known.account.lanes.remove(known)


def _shut_out(turn: Turn, shut: Collection[Shut]) -> Shut | None:
    """Why this one cannot take its turn."""
    names: tuple[Shut, Shut] = (("queue", turn[0]), ("tenant", turn[1]))
    return next((name for name in names if name in shut), None)


def _level_of(accounts: Sequence[Account], slots: int) -> float:
    """To which so many jobs lift these, at what theirs cost."""
    pace = sum(each.weight / each.dear for each in accounts)
    lifted = sum(each.weight / each.dear * each.received for each in accounts)
    return (slots + lifted) / pace if accounts else math.inf
