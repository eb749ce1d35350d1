"""Deficit round robin over lanes (S14): no tenant starves or waits for the backlog of another."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.policy.fairness.drr import (
    CHEAP_SCAN_S,
    FLOOR_LAG_S,
    MAX_SCAN_BACKOFF_S,
    MAX_SHARES,
    MIN_SCAN_COST_FACTOR,
    MIN_SCAN_INTERVAL_S,
    QUANTUM,
    SCAN_COST_FACTOR,
    Allocation,
    DeficitRoundRobin,
    LaneResult,
)
from tests.support.fast import seeds

A, B, C = (Lane("mail", tenant, 0) for tenant in "abc")


def unit_cost(jobs: int, furthest: int) -> LaneResult:
    """Return the result of taking jobs that cost 1 each."""
    return LaneResult(jobs, furthest, jobs)


def rotation_over(lanes: Iterable[Lane]) -> DeficitRoundRobin:
    rotation = DeficitRoundRobin()
    rotation.on_scan([LaneReady(lane, 1) for lane in lanes], now=0.0, cost=0.0)
    return rotation


class Backlog:
    """In-memory lanes of ready jobs, as ranges of positions; claims take from it as from a database."""

    def __init__(self) -> None:
        self.ready: defaultdict[Lane, deque[range]] = defaultdict(deque)
        self._seq = 0

    def add(self, lane: Lane, jobs: int) -> LaneReady:
        """Add ready jobs; return the notification."""
        first = self._seq + 1
        self.ready[lane].append(range(first, first + jobs))
        self._seq += jobs
        return LaneReady(lane, first)

    def lanes(self) -> list[Lane]:
        return sorted(lane for lane, spans in self.ready.items() if spans)

    def scan(self) -> list[LaneReady]:
        """Return each lane with its first ready job, like a scan of the database."""
        return [LaneReady(lane, min(span.start for span in self.ready[lane])) for lane in self.lanes()]

    def claim(self, shares: Iterable[Share], limit: int) -> dict[Lane, LaneResult]:
        """Take jobs lane by lane in the order of the shares, past each floor, up to the limit."""
        taken: dict[Lane, LaneResult] = {}
        for lane, quota, floor in shares:
            result = self._take(lane, min(quota, limit), floor)
            limit -= result.jobs
            if result.jobs:
                taken[lane] = result
        return taken

    def _take(self, lane: Lane, maximum: int, floor: int) -> LaneResult:
        left: deque[range] = deque()
        jobs = furthest = 0
        for span in self.ready[lane]:
            seen = range(max(span.start, floor + 1), span.stop)[: maximum - jobs]
            jobs += len(seen)
            furthest = max(furthest, *seen[-1:], 0)
            rest = (range(span.start, min(floor + 1, span.stop)), range(max(seen.stop, span.start), span.stop))
            left.extend(part for part in (rest if seen else (span,)) if part)
        self.ready[lane] = left
        return unit_cost(jobs, furthest)

    def __len__(self) -> int:
        return sum(len(span) for spans in self.ready.values() for span in spans)


def claim(rotation: DeficitRoundRobin, backlog: Backlog, slots: int, now: float = 0.0) -> dict[Lane, LaneResult]:
    """Claim like the engine: until jobs are found or no lane is left."""
    while shares := rotation.allot(slots):
        taken = backlog.claim(shares, slots)
        rotation.on_claimed(shares, taken, slots, now)
        if taken:
            return taken
    return {}


class TestAllot:
    def test_returns_no_shares_without_lanes_or_slots(self) -> None:
        assert DeficitRoundRobin().allot(10) == []
        assert rotation_over([A]).allot(0) == []

    def test_offers_all_slots_to_a_single_lane(self) -> None:
        assert rotation_over([A]).allot(500) == [Share(A, 500, 0)]

    @given(st.integers(1, 3_000), st.integers(1, 700))
    def test_never_offers_more_than_the_slots_to_a_lane(self, slots: int, lanes: int) -> None:
        shares = rotation_over(Lane("q", f"{n:04}", 0) for n in range(lanes)).allot(slots)

        assert all(1 <= share.max_jobs <= slots for share in shares)
        assert len({share.lane for share in shares}) == len(shares) <= MAX_SHARES

    @given(st.integers(1, 3_000), st.integers(1, 700))
    def test_offers_enough_to_fill_the_slots(self, slots: int, lanes: int) -> None:
        """Work conserving: slots stay empty only if there are no jobs."""
        shares = rotation_over(Lane("q", f"{n:04}", 0) for n in range(lanes)).allot(slots)

        assert sum(share.max_jobs for share in shares) >= slots

    def test_visits_the_most_urgent_lane_of_a_tenant_first(self) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        for priority in (0, 5, -5, 9):
            rotation.on_ready([backlog.add(Lane("q", "t", priority), 3)])

        served = [lane.priority for _ in range(4) for lane in claim(rotation, backlog, 10)]
        assert served == [9, 5, 0, -5]

    def test_visits_a_new_urgent_lane_first(self) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(A, 100)])
        claim(rotation, backlog, 10)
        rotation.on_ready([backlog.add(A._replace(priority=7), 1)])

        assert [lane.priority for lane in claim(rotation, backlog, 10)] == [7]

    def test_schedules_by_tenant_and_queue_not_by_priority(self) -> None:
        """A tenant that spreads its jobs over many priorities gets no more service."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        for priority in range(20):
            rotation.on_ready([backlog.add(A._replace(priority=priority), 1_000)])
        rotation.on_ready([backlog.add(B, 1_000)])

        served = Counter(lane.tenant for _ in range(20) for lane in claim(rotation, backlog, 10))
        assert served == {"a": 10, "b": 10}


class TestOneRound:
    @given(st.integers(1, 200), st.integers(1, 300))
    def test_visits_every_lane_with_jobs(self, lanes: int, slots: int) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), 10_000) for n in range(lanes)])

        served: list[str] = []
        while len(served) < lanes:
            served += [lane.tenant for lane in claim(rotation, backlog, slots)]
        assert max(Counter(served).values()) <= 2

    @given(st.integers(2, 50), st.integers(1, 500))
    def test_serves_a_lane_with_one_job_despite_huge_backlogs(self, lanes: int, slots: int) -> None:
        """S14: a tenant's first job starts within one round, regardless of the backlogs of other tenants."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), 100_000) for n in range(lanes)])
        claim(rotation, backlog, slots)
        small = Lane("q", "small", 0)
        rotation.on_ready([backlog.add(small, 1)])

        others = 0
        while small not in (taken := claim(rotation, backlog, slots)):
            others += sum(result.jobs for result in taken.values())
        assert others <= lanes * max(QUANTUM, slots)

    def test_serves_all_small_tenants_while_a_huge_one_gets_only_its_share(self) -> None:
        """The huge tenant has a hundred times the jobs of all others together."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        big = Lane("q", "000", 0)
        rotation.on_ready([backlog.add(big, 100_000)])
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), QUANTUM) for n in range(1, 100)])

        of_big = 0
        while backlog.lanes() != [big]:
            of_big += claim(rotation, backlog, 100).get(big, unit_cost(0, 0)).jobs
        assert of_big <= 3 * QUANTUM

    @given(st.integers(2, 8), st.integers(1, 333))
    @example(lanes=7, slots=64)
    @example(lanes=2, slots=15)
    def test_keeps_the_service_of_backlogged_lanes_within_a_bound(self, lanes: int, slots: int) -> None:
        """S14, with weight and cost 1: Q + 2·C + W·C. The difference does not grow with time or backlog."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n}", 0), 100_000 * (1 + n)) for n in range(lanes)])
        served: Counter[str] = Counter({f"{n}": 0 for n in range(lanes)})
        for _ in range(200):
            for lane, result in claim(rotation, backlog, slots).items():
                served[lane.tenant] += result.jobs
            assert max(served.values()) - min(served.values()) <= QUANTUM + 2 + slots


class TestAClaimResult:
    def test_drops_a_lane_without_jobs(self) -> None:
        rotation = rotation_over([A, B])
        shares = rotation.allot(20)
        rotation.on_claimed(shares, {A: unit_cost(1, 1)}, 20, 0.0)

        assert [share.lane for share in rotation.allot(20)] == [A]
        assert len(rotation) == 1

    def test_keeps_a_lane_with_fewer_jobs_than_its_share(self) -> None:
        rotation = rotation_over([A])
        rotation.on_claimed(rotation.allot(20), {A: unit_cost(1, 1)}, 20, 0.0)

        assert [share.lane for share in rotation.allot(20)] == [A]

    def test_puts_a_lane_that_was_not_reached_first_next_time(self) -> None:
        rotation = rotation_over([A, B, C])
        shares = rotation.allot(30)
        assert [share.lane for share in shares] == [A, B, C]
        rotation.on_claimed(shares, {A: unit_cost(30, 30)}, 30, 0.0)

        assert [share.lane for share in rotation.allot(10)] == [B]
        assert [share.lane for share in rotation.allot(10)] == [C]
        assert [share.lane for share in rotation.allot(10)] == [A]

    def test_without_urgent_jobs_moves_on_to_the_less_urgent_lane(self) -> None:
        rotation = rotation_over([A, A._replace(priority=5)])
        rotation.on_claimed(rotation.allot(10), {}, 10, 0.0)

        assert [share.lane for share in rotation.allot(10)] == [A]

    def test_with_few_jobs_per_lane_widens_the_next_claim(self) -> None:
        """With one job per lane, a claim that expects ten from each would fill a tenth of the slots."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:04}", 0), 1) for n in range(2_000)])

        claims = 0
        while len(backlog):
            assert claim(rotation, backlog, 100)
            claims += 1
        assert claims <= 40


class TestConcurrentClaims:
    def test_visit_different_lanes(self) -> None:
        rotation = rotation_over([A, B, C])

        assert [rotation.allot(5)[0].lane for _ in range(3)] == [A, B, C]

    def test_visit_the_same_lane_if_it_is_the_only_one(self) -> None:
        rotation = rotation_over([A])

        assert [rotation.allot(5)[0].lane for _ in range(3)] == [A, A, A]

    def test_skip_a_lane_that_another_claim_found_empty(self) -> None:
        rotation = rotation_over([A, B])
        first, _second, _third = (rotation.allot(5) for _ in range(3))
        rotation.on_claimed(first, {}, 5, 0.0)  # A is empty, and a third claim is still visiting it

        assert {share.lane for share in rotation.allot(5)} <= {B}

    def test_keep_a_lane_that_gets_jobs_while_it_is_visited(self) -> None:
        rotation = rotation_over([A])
        one, other = rotation.allot(5), rotation.allot(5)
        rotation.on_claimed(one, {}, 5, 0.0)
        rotation.on_ready([LaneReady(A, 9)])
        rotation.on_claimed(other, {A: unit_cost(1, 9)}, 5, 0.0)

        assert [share.lane for share in rotation.allot(5)] == [A]

    @pytest.mark.parametrize("source", ["notification", "scan"])
    def test_that_began_before_a_commit_do_not_drop_its_lane(self, source: str) -> None:
        """Otherwise the next notification would activate the lane with a floor above the missed jobs."""
        rotation = rotation_over([A])
        shares = rotation.allot(5)
        if source == "notification":
            rotation.on_ready([LaneReady(A, 9)])
        else:
            rotation.on_scan([LaneReady(A, 9)], 0.0, 0.0)
        rotation.on_claimed(shares, {}, 5, 0.0)

        again = rotation.allot(5)
        assert [share.lane for share in again] == [A]
        assert again[0].floor < 9
        rotation.on_claimed(again, {}, 5, 0.0)
        assert rotation.allot(5) == []

    def test_keep_a_lane_that_had_jobs_for_only_one_of_them(self) -> None:
        """The second claim skipped the rows that the first had locked."""
        rotation = rotation_over([A])
        first, second = rotation.allot(5), rotation.allot(5)
        rotation.on_claimed(second, {}, 5, 0.0)
        rotation.on_claimed(first, {A: unit_cost(5, 5)}, 5, 0.0)

        assert [share.lane for share in rotation.allot(5)] == [A]

    def test_that_failed_charge_nothing_to_their_lanes(self) -> None:
        rotation = rotation_over([A, B, C])
        rotation.on_failed(rotation.allot(20))

        assert [share.lane for share in rotation.allot(30)] == [A, B, C]

    @pytest.mark.parametrize("seed", seeds(50))
    def test_drain_all_lanes_in_any_order_of_results_and_failures(self, seed: int) -> None:
        rng, rotation, backlog = Random(seed), DeficitRoundRobin(), Backlog()
        for n in range(rng.randint(1, 6)):
            rotation.on_ready([backlog.add(Lane("q", f"{n}", n % 2), rng.randint(1, 30))])

        in_flight: list[tuple[Allocation, int]] = []
        for _ in range(10_000):
            if not len(backlog) and not in_flight:
                break
            slots = rng.randint(1, 25)
            shares = rotation.allot(slots) if len(in_flight) < 4 and rng.random() < 0.5 else Allocation()
            if shares:
                in_flight.append((shares, slots))
            elif in_flight:
                shares, slots = in_flight.pop(rng.randrange(len(in_flight)))
                if rng.random() < 0.1:
                    rotation.on_failed(shares)  # the database was unavailable, so nothing was claimed
                else:
                    rotation.on_claimed(shares, backlog.claim(shares, slots), slots, 0.0)
            elif rng.random() < 0.1:
                rotation.on_scan(backlog.scan(), 0.0, 0.0)
        assert not len(backlog)


class TestFloors:
    def test_follow_the_claimed_positions(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)

        floors = []
        for step in range(6):
            shares = rotation.allot(10)
            floors.append(shares[0].floor)
            rotation.on_claimed(shares, backlog.claim(shares, 10), 10, step * FLOOR_LAG_S * 1.01)
        assert floors == [0, 0, 10, 20, 30, 40]

    def test_follow_only_after_the_lag(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(50):
            claim(rotation, backlog, 10, now=step * FLOOR_LAG_S / 100)

        assert rotation.allot(10)[0].floor == 0

    @given(st.integers(1, 400))
    def test_drop_at_the_notification_of_an_earlier_position(self, seq: int) -> None:
        """The jobs of a late commit are claimable after its notification."""
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(40):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, seq)])

        assert rotation.allot(10)[0].floor < seq

    def test_stay_at_the_notification_of_a_later_position(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, 5_000)])

        assert rotation.allot(10)[0].floor == 90

    @given(st.integers(1, 400))
    def test_drop_to_the_first_job_found_by_a_scan(self, seq: int) -> None:
        """The jobs of a late commit without a notification are claimable after the next scan."""
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_scan([LaneReady(A, seq)], now=10.0, cost=0.0)

        assert rotation.allot(10)[0].floor == min(seq - 1, 90)

    def test_start_at_the_first_job_found_by_a_scan(self) -> None:
        """Dead rows before it are never read."""
        rotation = DeficitRoundRobin()
        rotation.on_scan([LaneReady(A, 7_000)], now=0.0, cost=0.0)

        assert rotation.allot(10) == [Share(A, 10, 6_999)]

    @given(st.integers(1, 400), st.integers(1, 400))
    def test_are_not_raised_by_a_scan_above_a_notified_position(self, notified: int, scanned: int) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 300)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, notified)])
        rotation.on_scan([LaneReady(A, scanned)], now=10.0, cost=0.0)

        assert rotation.allot(10)[0].floor < min(notified, scanned)

    def test_drop_to_zero_after_an_incomplete_scan(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_scan([LaneReady(B, 5)], now=10.0, cost=0.0, complete=False)

        assert {share.lane: share.floor for share in rotation.allot(20)} == {A: 0, B: 4}

    @pytest.mark.parametrize("source", ["notification", "scan"])
    def test_do_not_rise_above_jobs_that_a_claim_could_not_see(self, source: str) -> None:
        """Two claims begin before a commit of earlier positions, and end after it was notified."""
        rotation = rotation_over([A])
        claims = [rotation.allot(10), rotation.allot(10)]
        if source == "notification":
            rotation.on_ready([LaneReady(A, 1)])
        else:
            rotation.on_scan([LaneReady(A, 1)], 0.0, 0.0)
        for ended, shares in enumerate(claims, 1):
            rotation.on_claimed(shares, {A: unit_cost(10, 1_000 + 10 * ended)}, 10, now=float(ended))

        for step in range(3, 6):  # the next claims take the earlier jobs, ten at a time
            shares = rotation.allot(10)
            assert shares[0].floor < 10 * (step - 2)
            rotation.on_claimed(shares, {A: unit_cost(10, 10 * (step - 2))}, 10, now=float(step))

    def test_follow_claims_during_which_later_jobs_become_ready(self) -> None:
        """Otherwise the floor of a busy lane would never rise."""
        rotation = rotation_over([A])
        in_flight = rotation.allot(10)
        for step in range(1, 100):
            following = rotation.allot(10)
            rotation.on_ready([LaneReady(A, 10 * step + 1_000)])
            rotation.on_claimed(in_flight, {A: unit_cost(10, 10 * step)}, 10, now=float(step))
            in_flight = following

        assert rotation.allot(10)[0].floor == 980

    def test_are_dropped_with_their_lane(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 100)
        for step in range(12):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, 1)])

        assert rotation.allot(10) == [Share(A, 10, 0)]


class Database:
    """In-memory database: claims and scans see a snapshot of what was committed when they began."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ready: dict[Lane, set[int]] = {lane: set() for lane in (A, B, A._replace(priority=5))}
        self.uncommitted: list[tuple[Lane, range]] = []
        self.seq = 0

    def insert(self) -> None:
        """Assign positions in a new transaction."""
        jobs = self.rng.randint(1, 40)
        self.uncommitted.append((self.rng.choice(list(self.ready)), range(self.seq + 1, self.seq + 1 + jobs)))
        self.seq += jobs

    def commit(self) -> LaneReady:
        """Commit any one of the transactions; return its notification."""
        lane, jobs = self.uncommitted.pop(self.rng.randrange(len(self.uncommitted)))
        self.ready[lane] |= set(jobs)
        return LaneReady(lane, jobs[0])

    def snapshot(self) -> dict[Lane, set[int]]:
        return {lane: set(jobs) for lane, jobs in self.ready.items()}

    def scan(self) -> list[LaneReady]:
        return [LaneReady(lane, min(jobs)) for lane, jobs in self.ready.items() if jobs]

    def claim(self, shares: Allocation, slots: int, seen: dict[Lane, set[int]]) -> dict[Lane, LaneResult]:
        """Take jobs that were ready when the claim began and still are."""
        taken: dict[Lane, LaneResult] = {}
        for lane, quota, floor in shares:
            jobs = sorted(job for job in seen[lane] & self.ready[lane] if job > floor)[: min(quota, slots)]
            self.ready[lane] -= set(jobs)
            slots -= len(jobs)
            if jobs:
                taken[lane] = unit_cost(len(jobs), jobs[-1])
        return taken


class Overlap:
    """Simulation of overlapping inserts, commits, notifications, claims and scans."""

    def __init__(self, seed: int, lost: float, scan_rate: float, lag: float) -> None:
        self.lag = lag
        self.rng = Random(seed)
        self.database = Database(self.rng)
        self.rotation = DeficitRoundRobin()
        self.lost, self.scan_rate = lost, scan_rate
        self.claims: list[tuple[Allocation, int, dict[Lane, set[int]]]] = []
        self.scans: list[list[LaneReady]] = []
        self.notifications: deque[LaneReady] = deque()
        self.now = 0.0

    def step(self) -> None:
        self.now += FLOOR_LAG_S
        match self.rng.randrange(8):
            case 0:
                self.database.insert()
            case 1 if self.database.uncommitted:
                self.notifications.append(self.database.commit())
            case 2 if self.notifications:
                notification = self.notifications.popleft()
                self.rotation.on_ready([notification] if self.rng.random() >= self.lost else [])
            case 3 if self.scans:
                self.rotation.on_scan(self.scans.pop(), self.now, 0.0)
            case 4 if not self.scans and self.rng.random() < self.scan_rate:
                self.scans.append(self.database.scan())
            case 5 | 6 if len(self.claims) < 3:
                self.begin_claim()
            case _ if self.claims:
                self.end_claim()

    def begin_claim(self) -> bool:
        slots = self.rng.randint(1, 30)
        if shares := self.rotation.allot(slots):
            self.claims.append((shares, slots, self.database.snapshot()))
        return bool(shares)

    def end_claim(self) -> None:
        shares, slots, seen = self.claims.pop(self.rng.randrange(len(self.claims)))
        self.rotation.on_claimed(shares, self.database.claim(shares, slots, seen), slots, self.now, lag=self.lag)

    def finish(self) -> None:
        """Commit and notify everything, scan if notifications were lost, then claim while there are lanes."""
        while self.claims:
            self.end_claim()
        while self.database.uncommitted:
            self.notifications.append(self.database.commit())
        self.rotation.on_ready(self.notifications)
        if self.lost:
            self.rotation.on_scan(self.database.scan(), self.now, 0.0)
        while self.begin_claim():
            self.now += FLOOR_LAG_S
            self.end_claim()


@pytest.mark.parametrize("lost, scan_rate", [(0.0, 0.0), (0.0, 0.2), (0.5, 0.2)])
@pytest.mark.parametrize("lag", [0.0, FLOOR_LAG_S])
@pytest.mark.parametrize("seed", seeds(40))
def test_no_job_stays_hidden_for_any_overlap_of_commits_claims_and_scans(
    seed: int, lost: float, scan_rate: float, lag: float
) -> None:
    """If no notification is lost, no scan is needed; otherwise one more scan finds the remaining jobs."""
    overlap = Overlap(seed, lost, scan_rate, lag)
    for _ in range(600):
        overlap.step()
    overlap.finish()
    assert not any(overlap.database.ready.values())


class TestScans:
    def test_are_due_at_first_and_then_once_per_interval(self) -> None:
        rotation = DeficitRoundRobin()
        assert rotation.scan_due(0.0)

        rotation.on_scan([], now=100.0, cost=0.0)
        assert not rotation.scan_due(100.0 + MIN_SCAN_INTERVAL_S * 0.99)
        assert rotation.scan_due(100.0 + MIN_SCAN_INTERVAL_S)

    @given(st.floats(0.0, 100.0))
    def test_are_rarer_when_they_are_expensive_up_to_a_cap(self, cost: float) -> None:
        """A late commit whose notification was lost waits for the next scan."""
        rotation = DeficitRoundRobin()
        rotation.on_scan([], now=0.0, cost=cost)

        assert not rotation.scan_due(min(SCAN_COST_FACTOR * cost, MAX_SCAN_BACKOFF_S) * 0.99)
        assert not rotation.scan_due(MIN_SCAN_COST_FACTOR * cost * 0.99)
        assert rotation.scan_due(max(MAX_SCAN_BACKOFF_S, MIN_SCAN_COST_FACTOR * cost))

    @given(st.floats(0.0, 100.0))
    def test_that_are_expensive_are_not_run_early(self, cost: float) -> None:
        rotation = DeficitRoundRobin()
        rotation.on_scan([], now=0.0, cost=cost)
        rotation.request_scan()

        assert rotation.scan_due(0.0) is (cost <= CHEAP_SCAN_S)

    def test_are_due_at_once_on_request(self) -> None:
        rotation = rotation_over([A])
        rotation.request_scan()

        assert rotation.scan_due(0.0)

    def test_do_not_schedule_known_lanes_twice(self) -> None:
        rotation = rotation_over([A, B])
        rotation.on_scan([LaneReady(lane, 1) for lane in (A, B, C)], now=1.0, cost=0.0)

        assert [rotation.allot(1)[0].lane for _ in range(3)] == [A, B, C]


@pytest.mark.parametrize("seed", seeds(40))
def test_any_mix_of_lanes_is_drained_and_no_lane_starves(seed: int) -> None:
    """Simulation with its own clock: random backlogs, arrivals, lost notifications, late commits and scans."""
    rng = Random(seed)
    rotation, backlog = DeficitRoundRobin(), Backlog()
    lanes = [Lane(f"q{n % 3}", f"t{n}", rng.choice([0, 0, 0, 5])) for n in range(rng.randint(1, 60))]
    for lane in lanes:
        backlog.add(lane, min(1_000, int(rng.paretovariate(0.7))) if rng.random() < 0.9 else 1_000)
    slots = rng.choice([1, 8, 10, 50, 200])
    arrivals, now = 60, 0.0
    waiting_since: dict[Lane, int] = {}
    for claims in range(60_000):
        if not len(backlog):
            break
        now += 0.01
        if rotation.scan_due(now):
            rotation.on_scan(backlog.scan(), now, 0.0)
        if arrivals and rng.random() < 0.3:
            arrivals -= 1
            notification = backlog.add(rng.choice(lanes), rng.randint(1, 30))
            if rng.random() < 0.7:
                rotation.on_ready([notification])  # otherwise it is lost, and the scan finds the jobs
        taken = claim(rotation, backlog, slots, now)
        for lane in backlog.lanes():
            waiting_since.setdefault(lane, claims)
        for lane in taken:
            waiting_since.pop(lane, None)
        # A round is at most one visit to each lane; a scan may be a second away, and a claim takes a hundredth of it.
        bound = len(lanes) + 2 + 2 * 100
        of_most_urgent = {lane[:2]: lane for lane in sorted(backlog.lanes())}.values()
        assert all(claims - waiting_since.get(lane, claims) <= bound for lane in of_most_urgent)
    assert not len(backlog)
