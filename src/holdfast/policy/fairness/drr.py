"""Turn by turn over the lanes: which lanes the next claim visits, and how much it may take from each.

Deficit round robin over whoever takes turns, a tenant in a queue: each has received so much cost for each unit of its
weight, and whoever received least is next. A claim lifts those it visits to one level; how far one is below the level
is its deficit, and that is what it may take. What it did take is charged by its cost. Whoever took more than its
deficit is left out until the others have caught up; whoever had less to give than it might saves nothing up, and
whoever comes, or comes back, begins at the level of who is served next. So for any two that have work all the time,
cost started by weight differs by no more than a quantum and what one claim may take, whatever they have waiting.

Within one turn the most urgent jobs go first; every `AGING_INTERVAL`th visit serves the less urgent ones in rotation.

Deterministic: no clock of its own, no database. A worker keeps one `DeficitRoundRobin` and tells it what it saw.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.policy.fairness.state import Flow, FlowHeap, FlowKey, LaneState

QUANTUM = 10
"""How many jobs a lane gives on one visit when many lanes compete."""

MAX_SHARES = 500
"""How many lanes one claim visits at most."""

FLOOR_LAG_S = 0.05
"""Seconds a floor stays behind what was claimed where no news tell of a late commit: longer than most commits take."""

MIN_SCAN_INTERVAL_S = 1.0
"""Seconds between looks at all lanes, at the least."""

SCAN_COST_FACTOR = 50
"""Looks are further apart than that if they are dear, by this many times what one costs, up to `SCAN_BACKOFF_CAP_S`."""

SCAN_BACKOFF_CAP_S = 5.0
"""Seconds between dear looks: for about so long a late commit may be hidden whose news are lost."""

MIN_SCAN_COST_FACTOR = 20
"""Whatever the above says, looks are further apart than this many times what one costs."""

CHEAP_SCAN_S = 0.05
"""Seconds: a look that took no longer may be repeated at once, when something is known to have become ready."""


class LaneResult(NamedTuple):
    """What a claim took from one lane: how many jobs, the furthest position, and what they cost together."""

    jobs: int
    furthest: int
    cost: int


class Allocation(list[Share]):
    """The shares of one claim, and the moment they were allotted: what was heard later, the claim may have missed."""

    __slots__ = ("allotted_at",)

    def __init__(self, shares: Iterable[Share] = (), allotted_at: int = 0) -> None:
        super().__init__(shares)
        self.allotted_at = allotted_at


Blocked = tuple[Literal["queue", "tenant"], str]
"""A queue or a tenant that a limit leaves no room for."""


class DeficitRoundRobin:
    """The lanes a worker knows of, and what each has received. Times are monotonic seconds of the caller."""

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        self._weights: Mapping[str, int] = weights or {}
        """Of tenants; others have 1."""
        self._flows: dict[FlowKey, Flow] = {}
        """Of everybody who takes part, or is being visited still."""
        self._lanes: dict[Lane, LaneState] = {}
        """All that take part."""
        self._ready = FlowHeap()
        """Everybody who takes part, is not being visited and does not sleep."""
        self._visiting: dict[Flow, None] = {}
        """Whom claims under way visit."""
        self._blocked: defaultdict[Blocked, list[Flow]] = defaultdict(list)
        """Who is left out while a limit of a queue or tenant leaves no room, by that."""
        self._level = 0.0
        """What the one had received who was first in the latest claim: where newcomers begin."""
        self._next_tiebreak = 0
        self._clock = 0
        """Counts what was heard and seen: tells of two things which came first."""
        self._jobs_per_visit = float(QUANTUM)
        self._next_scan = -math.inf
        self._earliest_scan = -math.inf

    def __len__(self) -> int:
        return len(self._lanes)

    def scan_due(self, now: float) -> bool:
        """Whether to look for lanes in the database before the next claim."""
        return now >= self._next_scan

    def on_scan(self, found: Iterable[LaneReady], now: float, cost: float, *, complete: bool = True) -> None:
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
        self.on_ready(found)
        self._next_scan = now + max(
            MIN_SCAN_INTERVAL_S, min(SCAN_COST_FACTOR * cost, SCAN_BACKOFF_CAP_S), MIN_SCAN_COST_FACTOR * cost
        )
        self._earliest_scan = self._next_scan if cost > CHEAP_SCAN_S else now

    def on_ready(self, news: Iterable[LaneReady]) -> None:
        """Jobs became ready: the lane takes part from now on, from that position at the latest."""
        self._clock += 1
        for lane, seq in news:
            known = self._lanes.get(lane)
            if known is None:
                # It was empty as far as is known: what lies before can only be what was claimed, until a sweep tells.
                known = self._join(lane, seq - 1)
            else:
                known.lower(seq)
            if known.flow.claims_in_flight:
                known.record_arrival(seq, self._clock, known.flow.claims_in_flight[0])

    def request_scan(self) -> None:
        """Something became ready, it is not known where: look for it, at once unless the last look was costly."""
        self._next_scan = min(self._next_scan, self._earliest_scan)

    def set_weights(self, weights: Mapping[str, int]) -> None:
        """Weights of tenants, from now on; what was received stays as it was counted."""
        self._weights = weights
        for (_, tenant), flow in self._flows.items():
            flow.weight = weights.get(tenant, 1)

    def unblock(self, blocked: Blocked) -> None:
        """There may be room again for this queue or tenant: who was left out for it takes part again."""
        for flow in self._blocked.pop(blocked, ()):
            self._ready.push(flow)

    def allot(self, slots: int, blocked: Collection[Blocked] = ()) -> Allocation:
        """The next lanes in turn. Together they may offer more than `slots`; the claim stops there.

        `blocked`: whom limits leave no room for. Their lanes sleep until `unblock`.
        """
        shares = Allocation(allotted_at=self._clock)
        if slots <= 0 or not self._lanes:
            return shares
        flows, level = self._select_flows(slots, blocked)
        for flow in flows:
            lane = flow.next_lane()
            quota = math.ceil((level - flow.received) * flow.weight / flow.mean_cost - 1e-6)
            shares.append(Share(lane.lane, 1 if quota < 1 else min(quota, slots), lane.at))
        return shares

    def on_claimed(
        self, shares: Allocation, taken: dict[Lane, LaneResult], slots: int, now: float, *, lag: float = FLOOR_LAG_S
    ) -> None:
        """Take in what a claim over `shares` brought. `lag`: how long floors stay behind; 0 where news tell all.

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
                flow = self._charge(share, took, shares.allotted_at, now, lag, idle=all_it_had)
            else:
                flow = self._flows[share.lane[:2]]
                if index <= last:
                    self._drop_if_empty(share.lane, shares.allotted_at)
            self._return_to_heap(flow, shares.allotted_at)
        if last >= 0:
            self._jobs_per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._jobs_per_visit + 0.5 * jobs / (last + 1)))

    def on_failed(self, shares: Allocation) -> None:
        """A claim over `shares` failed, or was not made: they keep their turn."""
        for share in shares:
            self._return_to_heap(self._flows[share.lane[:2]], shares.allotted_at)

    def _select_flows(self, slots: int, blocked: Collection[Blocked]) -> tuple[list[Flow], float]:
        """Who is next, and the level to which all of them together are lifted by so many jobs, at what theirs cost."""
        width = min(MAX_SHARES, math.ceil(slots / self._jobs_per_visit))
        flows: list[Flow] = []
        pace = lifted = 0.0
        level = math.inf
        # Who is not below the level of those before stays out: it is theirs, whatever they are given.
        while len(flows) < width and (flow := self._ready.pop(below=level)):
            if blocked and (why := _blocked_by(flow.key, blocked)) is not None:
                self._blocked[why].append(flow)
                continue
            if not flows:
                self._level = max(self._level, flow.received)
            flows.append(flow)
            each = flow.weight / flow.mean_cost
            pace += each
            lifted += each * flow.received
            level = (slots + lifted) / pace
        if not flows:  # every lane is being visited by another claim: visit the same, locked rows are skipped
            again = (each for each in self._visiting if each.lanes and _blocked_by(each.key, blocked) is None)
            flows = list(islice(again, width))
            level = _common_level(flows, slots)
        for flow in flows:
            flow.claims_in_flight.append(self._clock)
            self._visiting[flow] = None
        return flows, level

    def _return_to_heap(self, flow: Flow, allotted_at: int) -> None:
        flow.claims_in_flight.remove(allotted_at)
        if flow.claims_in_flight:
            return
        del self._visiting[flow]
        if flow.lanes:
            self._ready.push(flow)
        else:
            del self._flows[flow.key]

    def _charge(self, share: Share, took: LaneResult, allotted_at: int, now: float, lag: float, *, idle: bool) -> Flow:
        """Take in what a lane gave; `idle`: it was all that it had."""
        known = self._lanes.get(share.lane)
        if known is None:  # another claim found it empty, since this one had locked what there was
            known = self._join(share.lane, share.floor)
        missed = known.missed(allotted_at)
        # What was committed while the claim was under way may lie before what it took.
        known.advance(took.furthest if missed is None else min(took.furthest, missed - 1), now, lag)
        flow = known.flow
        flow.received += took.cost / flow.weight
        if idle and flow.received < self._level:
            flow.received = self._level  # it was idle for a moment, and what it did not use is not saved up
        flow.mean_cost = took.cost / took.jobs
        flow.visits += 1
        self._next_tiebreak += 1
        flow.tiebreak = self._next_tiebreak
        return flow

    def _join(self, lane: Lane, floor: int) -> LaneState:
        """Have a lane take part that did not."""
        key = (lane.queue, lane.tenant)
        flow = self._flows.get(key)
        if flow is None:
            self._next_tiebreak += 1
            flow = Flow(key, self._level, self._weights.get(lane.tenant, 1), self._next_tiebreak)
            self._flows[key] = flow
            self._ready.push(flow)
        elif not flow.lanes:  # it comes back while it is being visited still
            flow.received = max(flow.received, self._level)
        known = self._lanes[lane] = LaneState(lane, floor, flow)
        return known

    def _drop_if_empty(self, lane: Lane, allotted_at: int) -> None:
        known = self._lanes.get(lane)
        if known is not None and known.missed(allotted_at) is None:
            del self._lanes[lane]
            known.flow.lanes.remove(known)


def _blocked_by(key: FlowKey, blocked: Collection[Blocked]) -> Blocked | None:
    """Why this one cannot take its turn."""
    names: tuple[Blocked, Blocked] = (("queue", key[0]), ("tenant", key[1]))
    return next((name for name in names if name in blocked), None)


def _common_level(flows: Sequence[Flow], slots: int) -> float:
    """To which so many jobs lift these, at what theirs cost."""
    pace = sum(each.weight / each.mean_cost for each in flows)
    lifted = sum(each.weight / each.mean_cost * each.received for each in flows)
    return (slots + lifted) / pace if flows else math.inf
