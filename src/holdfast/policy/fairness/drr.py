"""Deficit round robin: lanes that the next claim visits, and how many jobs it may take.

A flow is a tenant in a queue. `received` is the cost of the jobs it has started, divided by its weight; the flow that
has received least is served next. A claim raises the flows it visits to one common level. The distance of a flow from
that level is its deficit, and bounds how many jobs the claim takes from it. The jobs actually taken are charged by
their cost. A flow that took more than its deficit is skipped until the rest have caught up. A flow that had fewer jobs
than its deficit saves no credit, and a flow that joins starts at the level of the flow served next. So for any two
flows that always have work, the cost started per weight differs by at most a quantum plus the size of one claim,
regardless of their backlogs.

Within a flow the most urgent lane goes first; every `AGING_INTERVAL`th visit serves the less urgent lanes in turn.

Deterministic, without a clock or a database: a worker owns one `DeficitRoundRobin` and reports events to it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.policy.fairness.state import Flow, FlowHeap, FlowKey, LaneState

QUANTUM = 10
"""Jobs taken from a lane per visit when many lanes compete."""

MAX_SHARES = 500
"""Lanes visited by one claim."""

FLOOR_LAG_S = 0.05
"""Delay before a floor is raised if the store does not notify of late commits.

Longer than most commits take.
"""

MIN_SCAN_INTERVAL_S = 1.0
"""Minimum time between two scans for lanes."""

SCAN_COST_FACTOR = 50
"""Minimum interval of expensive scans, as a multiple of their duration.

Capped at `MAX_SCAN_BACKOFF_S`.
"""

MAX_SCAN_BACKOFF_S = 5.0
"""Cap of that interval.

It is about the time for which a late commit stays hidden if its notification is lost.
"""

MIN_SCAN_COST_FACTOR = 20
"""Scans are always at least this many times their own duration apart, even beyond the cap."""

CHEAP_SCAN_S = 0.05
"""Longest scan that may be repeated at once when jobs are known to have become ready."""


class LaneResult(NamedTuple):
    """Jobs that a claim took from one lane: their number, furthest position and total cost."""

    jobs: int
    furthest: int
    cost: int


class Allocation(list[Share]):
    """Shares of one claim, and the logical time at which they were allotted.

    The claim may have missed jobs whose notification arrived later.
    """

    __slots__ = ("allotted_at",)

    def __init__(self, shares: Iterable[Share] = (), allotted_at: int = 0) -> None:
        super().__init__(shares)
        self.allotted_at = allotted_at


Blocked = tuple[Literal["queue", "tenant"], str]
"""Queue or tenant whose limit has no capacity."""


class DeficitRoundRobin:
    """Scheduler over the lanes that a worker knows.

    All times are monotonic seconds supplied by the caller.
    """

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        self._weights: Mapping[str, int] = weights or {}
        """Weights of tenants; the default is 1."""
        self._flows: dict[FlowKey, Flow] = {}
        """Flows with active lanes or claims in flight."""
        self._lanes: dict[Lane, LaneState] = {}
        """Active lanes."""
        self._ready = FlowHeap()
        """Active flows that are neither blocked nor visited by a claim in flight."""
        self._visiting: dict[Flow, None] = {}
        """Flows visited by claims in flight."""
        self._blocked: defaultdict[Blocked, list[Flow]] = defaultdict(list)
        """Flows skipped because a queue or tenant limit has no capacity, by that queue or tenant."""
        self._level = 0.0
        """Service received by the first flow of the latest claim; new flows start here."""
        self._next_tiebreak = 0
        self._clock = 0
        """Logical clock: counts notifications and scans, and so orders them relative to claims."""
        self._jobs_per_visit = float(QUANTUM)
        self._next_scan = -math.inf
        self._earliest_scan = -math.inf

    def __len__(self) -> int:
        return len(self._lanes)

    def scan_due(self, now: float) -> bool:
        """Return True if the database must be scanned for lanes before the next claim."""
        return now >= self._next_scan

    def on_scan(self, lanes: Iterable[LaneReady], now: float, cost: float, *, complete: bool = True) -> None:
        """Record the result of a scan: the lanes with ready jobs, each with its first position.

        Args:
            lanes: Lanes with ready jobs.
            now: Current time.
            cost: Duration of the scan in seconds.
            complete: The scan found all lanes, not just as many as it may return.
        """
        # A floor must not hide a late commit beyond the next scan. A commit that this scan saw is at or after the
        # position it returned for the lane, so lowering the floor to there reveals it. A commit that it did not see
        # happened later, and the next scan finds it. The floor of an active lane is only ever lowered here, because
        # a notification of an earlier position may have arrived during the scan. A lane without a floor is new, or a
        # claim that began after all its notifications found it empty: nothing lies before the position of the scan.
        if not complete:
            for lane in self._lanes.values():
                lane.lower(1)
        self.on_ready(lanes)
        self._next_scan = now + max(
            MIN_SCAN_INTERVAL_S, min(SCAN_COST_FACTOR * cost, MAX_SCAN_BACKOFF_S), MIN_SCAN_COST_FACTOR * cost
        )
        self._earliest_scan = self._next_scan if cost > CHEAP_SCAN_S else now

    def on_ready(self, notifications: Iterable[LaneReady]) -> None:
        """Activate lanes that have ready jobs, and lower their floors below these jobs."""
        self._clock += 1
        for lane, seq in notifications:
            state = self._lanes.get(lane)
            if state is None:
                # The lane was empty, so everything before `seq` was claimed, unless a scan finds otherwise.
                state = self._join(lane, seq - 1)
            else:
                state.lower(seq)
            if state.flow.claims_in_flight:
                state.record_arrival(seq, self._clock, state.flow.claims_in_flight[0])

    def request_scan(self) -> None:
        """Request a scan, at once unless the last one was expensive.

        Called when jobs became ready in unknown lanes.
        """
        self._next_scan = min(self._next_scan, self._earliest_scan)

    def set_weights(self, weights: Mapping[str, int]) -> None:
        """Set the weights of tenants; service already received is not recalculated."""
        self._weights = weights
        for (_, tenant), flow in self._flows.items():
            flow.weight = weights.get(tenant, 1)

    def unblock(self, blocked: Blocked) -> None:
        """Serve the flows of a blocked queue or tenant again, because its limit may have capacity."""
        for flow in self._blocked.pop(blocked, ()):
            self._ready.push(flow)

    def allot(self, slots: int, blocked: Collection[Blocked] = ()) -> Allocation:
        """Return the shares of the next claim.

        They may add up to more than `slots`; the claim stops there.

        Args:
            slots: Free slots of the worker.
            blocked: Queues and tenants whose limits have no capacity; their flows are skipped until `unblock`.
        """
        shares = Allocation(allotted_at=self._clock)
        if slots <= 0 or not self._lanes:
            return shares
        flows, level = self._select_flows(slots, blocked)
        for flow in flows:
            lane = flow.next_lane()
            max_jobs = math.ceil((level - flow.received) * flow.weight / flow.mean_cost - 1e-6)
            shares.append(Share(lane.lane, 1 if max_jobs < 1 else min(max_jobs, slots), lane.at))
        return shares

    def on_claimed(
        self, shares: Allocation, taken: dict[Lane, LaneResult], slots: int, now: float, *, lag: float = FLOOR_LAG_S
    ) -> None:
        """Record the result of a claim over `shares`.

        A visited lane without jobs is dropped, unless a notification for it arrived after the claim was allotted. A
        flow that the claim did not reach, or cut short, has received less service and so comes first next time.

        Args:
            shares: Shares that the claim was allotted.
            taken: Jobs taken, by lane.
            slots: Slots that the claim could fill.
            now: Current time.
            lag: Delay before floors are raised; 0 if every commit is notified.
        """
        jobs = sum(result.jobs for result in taken.values())
        last = len(shares) - 1
        if full := jobs >= slots:  # the claim did not reach the lanes after the last one that it took jobs from
            last = next((i for i in range(last, -1, -1) if shares[i].lane in taken), -1)
        for index, share in enumerate(shares):
            result = taken.get(share.lane)
            if result is not None:
                emptied = result.jobs < share.max_jobs and not (full and index == last)
                flow = self._charge(share, result, shares.allotted_at, now, lag, emptied=emptied)
            else:
                flow = self._flows[share.lane[:2]]
                if index <= last:
                    self._drop_if_empty(share.lane, shares.allotted_at)
            self._return_to_heap(flow, shares.allotted_at)
        if last >= 0:
            self._jobs_per_visit = min(float(QUANTUM), max(1.0, 0.5 * self._jobs_per_visit + 0.5 * jobs / (last + 1)))

    def on_failed(self, shares: Allocation) -> None:
        """Return the flows of a claim that failed or was not made, without charging them."""
        for share in shares:
            self._return_to_heap(self._flows[share.lane[:2]], shares.allotted_at)

    def _select_flows(self, slots: int, blocked: Collection[Blocked]) -> tuple[list[Flow], float]:
        """Return the next flows, and the level to which `slots` jobs of mean cost raise them all."""
        width = min(MAX_SHARES, math.ceil(slots / self._jobs_per_visit))
        flows: list[Flow] = []
        jobs_per_level = jobs_below = 0.0
        level = math.inf
        # A flow at or above the level of those before it has no deficit, so the selection ends there.
        while len(flows) < width and (flow := self._ready.pop(below=level)):
            if blocked and (name := _blocked_by(flow.key, blocked)) is not None:
                self._blocked[name].append(flow)
                continue
            if not flows:
                self._level = max(self._level, flow.received)
            flows.append(flow)
            jobs = flow.weight / flow.mean_cost
            jobs_per_level += jobs
            jobs_below += jobs * flow.received
            level = (slots + jobs_below) / jobs_per_level
        if not flows:  # other claims visit every flow: visit the same ones, because claims skip locked rows
            visited = (flow for flow in self._visiting if flow.lanes and _blocked_by(flow.key, blocked) is None)
            flows = list(islice(visited, width))
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

    def _charge(
        self, share: Share, result: LaneResult, allotted_at: int, now: float, lag: float, *, emptied: bool
    ) -> Flow:
        """Charge a flow for the jobs taken from a lane; `emptied`: the lane had no more."""
        state = self._lanes.get(share.lane)
        if state is None:  # another claim found the lane empty because this one had locked its jobs
            state = self._join(share.lane, share.floor)
        missed = state.missed(allotted_at)
        # Jobs committed during the claim may lie before the ones it took.
        state.advance(result.furthest if missed is None else min(result.furthest, missed - 1), now, lag)
        flow = state.flow
        flow.received += result.cost / flow.weight
        if emptied and flow.received < self._level:
            flow.received = self._level  # the flow was idle for a moment, and idle flows save no credit
        flow.mean_cost = result.cost / result.jobs
        flow.visits += 1
        self._next_tiebreak += 1
        flow.tiebreak = self._next_tiebreak
        return flow

    def _join(self, lane: Lane, floor: int) -> LaneState:
        """Make a lane active."""
        key = (lane.queue, lane.tenant)
        flow = self._flows.get(key)
        if flow is None:
            self._next_tiebreak += 1
            flow = Flow(key, self._level, self._weights.get(lane.tenant, 1), self._next_tiebreak)
            self._flows[key] = flow
            self._ready.push(flow)
        elif not flow.lanes:  # it becomes active again while a claim still visits it
            flow.received = max(flow.received, self._level)
        state = self._lanes[lane] = LaneState(lane, floor, flow)
        return state

    def _drop_if_empty(self, lane: Lane, allotted_at: int) -> None:
        state = self._lanes.get(lane)
        if state is not None and state.missed(allotted_at) is None:
            del self._lanes[lane]
            state.flow.lanes.remove(state)


def _blocked_by(key: FlowKey, blocked: Collection[Blocked]) -> Blocked | None:
    """Return the blocked queue or tenant that a flow belongs to."""
    names: tuple[Blocked, Blocked] = (("queue", key[0]), ("tenant", key[1]))
    return next((name for name in names if name in blocked), None)


def _common_level(flows: Sequence[Flow], slots: int) -> float:
    """Return the level to which `slots` jobs of mean cost raise these flows."""
    jobs_per_level = sum(flow.weight / flow.mean_cost for flow in flows)
    jobs_below = sum(flow.weight / flow.mean_cost * flow.received for flow in flows)
    return (slots + jobs_below) / jobs_per_level if flows else math.inf
