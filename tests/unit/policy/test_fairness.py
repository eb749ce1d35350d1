"""Turn by turn over the lanes (S14): nobody starves, nobody waits for another's backlog."""

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
    MAX_SHARES,
    MIN_SCAN_COST_FACTOR,
    MIN_SCAN_INTERVAL_S,
    QUANTUM,
    SCAN_BACKOFF_CAP_S,
    SCAN_COST_FACTOR,
    Allocation,
    DeficitRoundRobin,
    LaneResult,
)

A, B, C = (Lane("mail", tenant, 0) for tenant in "abc")


def plain(jobs: int, furthest: int) -> LaneResult:
    """Jobs that cost 1 each."""
    return LaneResult(jobs, furthest, jobs)


def rotation_over(lanes: Iterable[Lane]) -> DeficitRoundRobin:
    rotation = DeficitRoundRobin()
    rotation.on_scan([LaneReady(lane, 1) for lane in lanes], now=0.0, cost=0.0)
    return rotation


class Backlog:
    """Lanes of ready jobs in memory, as spans of positions: gives a claim what a database would."""

    def __init__(self) -> None:
        self.ready: defaultdict[Lane, deque[range]] = defaultdict(deque)
        self._seq = 0

    def add(self, lane: Lane, jobs: int) -> LaneReady:
        """So many more jobs become ready."""
        first = self._seq + 1
        self.ready[lane].append(range(first, first + jobs))
        self._seq += jobs
        return LaneReady(lane, first)

    def lanes(self) -> list[Lane]:
        return sorted(lane for lane, spans in self.ready.items() if spans)

    def look(self) -> list[LaneReady]:
        """Each lane with its first ready job, as a look at the database finds them."""
        return [LaneReady(lane, min(span.start for span in self.ready[lane])) for lane in self.lanes()]

    def claim(self, shares: Iterable[Share], limit: int) -> dict[Lane, LaneResult]:
        """Lane by lane in the order given, past each floor, never over the limit."""
        taken: dict[Lane, LaneResult] = {}
        for lane, quota, floor in shares:
            took = self._take(lane, min(quota, limit), floor)
            limit -= took.jobs
            if took.jobs:
                taken[lane] = took
        return taken

    def _take(self, lane: Lane, most: int, floor: int) -> LaneResult:
        left: deque[range] = deque()
        jobs = furthest = 0
        for span in self.ready[lane]:
            seen = range(max(span.start, floor + 1), span.stop)[: most - jobs]
            jobs += len(seen)
            furthest = max(furthest, *seen[-1:], 0)
            rest = (range(span.start, min(floor + 1, span.stop)), range(max(seen.stop, span.start), span.stop))
            left.extend(part for part in (rest if seen else (span,)) if part)
        self.ready[lane] = left
        return plain(jobs, furthest)

    def __len__(self) -> int:
        return sum(len(span) for spans in self.ready.values() for span in spans)


def claim(rotation: DeficitRoundRobin, backlog: Backlog, slots: int, now: float = 0.0) -> dict[Lane, LaneResult]:
    """As the engine claims: until something is found or no lane is left."""
    while shares := rotation.allot(slots):
        taken = backlog.claim(shares, slots)
        rotation.on_claimed(shares, taken, slots, now)
        if taken:
            return taken
    return {}


class TestAllot:
    def test_gives_nothing_without_lanes_or_slots(self) -> None:
        assert DeficitRoundRobin().allot(10) == []
        assert rotation_over([A]).allot(0) == []

    def test_gives_a_lone_lane_all_slots(self) -> None:
        assert rotation_over([A]).allot(500) == [Share(A, 500, 0)]

    @given(st.integers(1, 3_000), st.integers(1, 700))
    def test_never_offers_a_lane_more_than_the_slots(self, slots: int, lanes: int) -> None:
        shares = rotation_over(Lane("q", f"{n:04}", 0) for n in range(lanes)).allot(slots)

        assert all(1 <= share.quota <= slots for share in shares)
        assert len({share.lane for share in shares}) == len(shares) <= MAX_SHARES

    @given(st.integers(1, 3_000), st.integers(1, 700))
    def test_offers_enough_to_fill_the_slots(self, slots: int, lanes: int) -> None:
        """Work conserving: slots stay empty only for want of work."""
        shares = rotation_over(Lane("q", f"{n:04}", 0) for n in range(lanes)).allot(slots)

        assert sum(share.quota for share in shares) >= slots

    def test_visits_the_most_urgent_jobs_of_a_tenant_first(self) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        for priority in (0, 5, -5, 9):
            rotation.on_ready([backlog.add(Lane("q", "t", priority), 3)])

        served = [lane.priority for _ in range(4) for lane in claim(rotation, backlog, 10)]
        assert served == [9, 5, 0, -5]

    def test_lets_urgent_news_go_first_from_then_on(self) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(A, 100)])
        claim(rotation, backlog, 10)
        rotation.on_ready([backlog.add(A._replace(priority=7), 1)])

        assert [lane.priority for lane in claim(rotation, backlog, 10)] == [7]

    def test_takes_turns_by_tenant_and_queue_not_by_priority(self) -> None:
        """A tenant that spreads its jobs over many priorities gets no more turns for it."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        for priority in range(20):
            rotation.on_ready([backlog.add(A._replace(priority=priority), 1_000)])
        rotation.on_ready([backlog.add(B, 1_000)])

        served = Counter(lane.tenant for _ in range(20) for lane in claim(rotation, backlog, 10))
        assert served == {"a": 10, "b": 10}


class TestOneRound:
    @given(st.integers(1, 200), st.integers(1, 300))
    def test_visits_every_lane_that_has_work(self, lanes: int, slots: int) -> None:
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), 10_000) for n in range(lanes)])

        served: list[str] = []
        while len(served) < lanes:
            served += [lane.tenant for lane in claim(rotation, backlog, slots)]
        assert max(Counter(served).values()) <= 2

    @given(st.integers(2, 50), st.integers(1, 500))
    def test_serves_a_lane_with_one_job_among_huge_backlogs(self, lanes: int, slots: int) -> None:
        """S14: a tenant that becomes backlogged starts within one round, whatever the others have waiting."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), 100_000) for n in range(lanes)])
        claim(rotation, backlog, slots)
        small = Lane("q", "small", 0)
        rotation.on_ready([backlog.add(small, 1)])

        others = 0
        while small not in (taken := claim(rotation, backlog, slots)):
            others += sum(took.jobs for took in taken.values())
        assert others <= lanes * max(QUANTUM, slots)

    def test_serves_all_small_tenants_while_a_huge_one_gets_no_more_than_its_turns(self) -> None:
        """One tenant has a hundred times what all others have together."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        big = Lane("q", "000", 0)
        rotation.on_ready([backlog.add(big, 100_000)])
        rotation.on_ready([backlog.add(Lane("q", f"{n:03}", 0), QUANTUM) for n in range(1, 100)])

        of_big = 0
        while backlog.lanes() != [big]:
            of_big += claim(rotation, backlog, 100).get(big, plain(0, 0)).jobs
        assert of_big <= 3 * QUANTUM

    @given(st.integers(2, 8), st.integers(1, 333))
    @example(lanes=7, slots=64)
    @example(lanes=2, slots=15)
    def test_keeps_backlogged_lanes_within_a_bound_of_each_other(self, lanes: int, slots: int) -> None:
        """S14, with weight and cost 1: Q + 2·C + W·C. The gap never grows with time or backlog."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n}", 0), 100_000 * (1 + n)) for n in range(lanes)])
        served: Counter[str] = Counter({f"{n}": 0 for n in range(lanes)})
        for _ in range(200):
            for lane, took in claim(rotation, backlog, slots).items():
                served[lane.tenant] += took.jobs
            assert max(served.values()) - min(served.values()) <= QUANTUM + 2 + slots


class TestTook:
    def test_drops_a_lane_that_gave_nothing(self) -> None:
        rotation = rotation_over([A, B])
        shares = rotation.allot(20)
        rotation.on_claimed(shares, {A: plain(1, 1)}, 20, 0.0)

        assert [share.lane for share in rotation.allot(20)] == [A]
        assert len(rotation) == 1

    def test_keeps_a_lane_that_gave_less_than_it_might(self) -> None:
        rotation = rotation_over([A])
        rotation.on_claimed(rotation.allot(20), {A: plain(1, 1)}, 20, 0.0)

        assert [share.lane for share in rotation.allot(20)] == [A]

    def test_leaves_a_lane_that_was_not_reached_its_turn(self) -> None:
        rotation = rotation_over([A, B, C])
        shares = rotation.allot(30)
        assert [share.lane for share in shares] == [A, B, C]
        rotation.on_claimed(shares, {A: plain(30, 30)}, 30, 0.0)

        assert [share.lane for share in rotation.allot(10)] == [B]
        assert [share.lane for share in rotation.allot(10)] == [C]
        assert [share.lane for share in rotation.allot(10)] == [A]

    def test_a_tenant_falls_back_on_its_less_urgent_jobs(self) -> None:
        rotation = rotation_over([A, A._replace(priority=5)])
        rotation.on_claimed(rotation.allot(10), {}, 10, 0.0)

        assert [share.lane for share in rotation.allot(10)] == [A]

    def test_narrow_lanes_are_visited_more_at_a_time(self) -> None:
        """Lanes of one job each would fill a tenth of the slots if each were expected to give ten."""
        rotation, backlog = DeficitRoundRobin(), Backlog()
        rotation.on_ready([backlog.add(Lane("q", f"{n:04}", 0), 1) for n in range(2_000)])

        claims = 0
        while len(backlog):
            assert claim(rotation, backlog, 100)
            claims += 1
        assert claims <= 40


class TestSeveralClaimsAtOnce:
    def test_visit_different_lanes(self) -> None:
        rotation = rotation_over([A, B, C])

        assert [rotation.allot(5)[0].lane for _ in range(3)] == [A, B, C]

    def test_visit_the_same_when_there_are_no_others(self) -> None:
        rotation = rotation_over([A])

        assert [rotation.allot(5)[0].lane for _ in range(3)] == [A, A, A]

    def test_do_not_stumble_over_a_lane_that_another_claim_found_empty(self) -> None:
        rotation = rotation_over([A, B])
        first, _second, _third = (rotation.allot(5) for _ in range(3))
        rotation.on_claimed(first, {}, 5, 0.0)  # A is empty, and a third claim is still visiting it

        assert {share.lane for share in rotation.allot(5)} <= {B}

    def test_a_lane_that_gets_work_while_it_is_visited_is_not_forgotten(self) -> None:
        rotation = rotation_over([A])
        one, other = rotation.allot(5), rotation.allot(5)
        rotation.on_claimed(one, {}, 5, 0.0)
        rotation.on_ready([LaneReady(A, 9)])
        rotation.on_claimed(other, {A: plain(1, 9)}, 5, 0.0)

        assert [share.lane for share in rotation.allot(5)] == [A]

    @pytest.mark.parametrize("told", ["by a wake-up", "by a look"])
    def test_that_began_before_a_commit_do_not_drop_the_lane_that_it_was_in(self, told: str) -> None:
        """Or the next news of that lane would have it taken up after what was forgotten."""
        rotation = rotation_over([A])
        shares = rotation.allot(5)
        if told == "by a wake-up":
            rotation.on_ready([LaneReady(A, 9)])
        else:
            rotation.on_scan([LaneReady(A, 9)], 0.0, 0.0)
        rotation.on_claimed(shares, {}, 5, 0.0)

        again = rotation.allot(5)
        assert [share.lane for share in again] == [A]
        assert again[0].floor < 9
        rotation.on_claimed(again, {}, 5, 0.0)
        assert rotation.allot(5) == []

    def test_keep_a_lane_that_gave_one_of_them_jobs_though_it_looked_empty_to_another(self) -> None:
        """What the first had locked, the second passed by."""
        rotation = rotation_over([A])
        first, second = rotation.allot(5), rotation.allot(5)
        rotation.on_claimed(second, {}, 5, 0.0)
        rotation.on_claimed(first, {A: plain(5, 5)}, 5, 0.0)

        assert [share.lane for share in rotation.allot(5)] == [A]

    def test_that_failed_leave_their_lanes_their_turn(self) -> None:
        rotation = rotation_over([A, B, C])
        rotation.on_failed(rotation.allot(20))

        assert [share.lane for share in rotation.allot(30)] == [A, B, C]

    @pytest.mark.parametrize("seed", range(50))
    def test_drain_everything_in_whatever_order_they_end_or_fail(self, seed: int) -> None:
        rng, rotation, backlog = Random(seed), DeficitRoundRobin(), Backlog()
        for n in range(rng.randint(1, 6)):
            rotation.on_ready([backlog.add(Lane("q", f"{n}", n % 2), rng.randint(1, 30))])

        under_way: list[tuple[Allocation, int]] = []
        for _ in range(10_000):
            if not len(backlog) and not under_way:
                break
            slots = rng.randint(1, 25)
            shares = rotation.allot(slots) if len(under_way) < 4 and rng.random() < 0.5 else Allocation()
            if shares:
                under_way.append((shares, slots))
            elif under_way:
                shares, slots = under_way.pop(rng.randrange(len(under_way)))
                if rng.random() < 0.1:
                    rotation.on_failed(shares)  # the database was away, nothing was claimed
                else:
                    rotation.on_claimed(shares, backlog.claim(shares, slots), slots, 0.0)
            elif rng.random() < 0.1:
                rotation.on_scan(backlog.look(), 0.0, 0.0)
        assert not len(backlog)


class TestFloors:
    def test_trail_what_was_claimed(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)

        floors = []
        for step in range(6):
            shares = rotation.allot(10)
            floors.append(shares[0].floor)
            rotation.on_claimed(shares, backlog.claim(shares, 10), 10, step * FLOOR_LAG_S * 1.01)
        assert floors == [0, 0, 10, 20, 30, 40]

    def test_do_not_follow_at_once(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(50):
            claim(rotation, backlog, 10, now=step * FLOOR_LAG_S / 100)

        assert rotation.allot(10)[0].floor == 0

    @given(st.integers(1, 400))
    def test_fall_at_news_of_an_earlier_position(self, seq: int) -> None:
        """A late commit starts at its wake-up."""
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(40):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, seq)])

        assert rotation.allot(10)[0].floor < seq

    def test_stay_at_news_of_a_later_position(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, 5_000)])

        assert rotation.allot(10)[0].floor == 90

    @given(st.integers(1, 400))
    def test_fall_to_the_first_job_that_a_look_found(self, seq: int) -> None:
        """A late commit whose wake-up was lost starts after the next look."""
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_scan([LaneReady(A, seq)], now=10.0, cost=0.0)

        assert rotation.allot(10)[0].floor == min(seq - 1, 90)

    def test_begin_where_a_look_found_the_first_job(self) -> None:
        """Whatever died before it is not walked over, not even once."""
        rotation = DeficitRoundRobin()
        rotation.on_scan([LaneReady(A, 7_000)], now=0.0, cost=0.0)

        assert rotation.allot(10) == [Share(A, 10, 6_999)]

    @given(st.integers(1, 400), st.integers(1, 400))
    def test_are_not_raised_by_a_look_over_what_was_heard_meanwhile(self, heard: int, seen: int) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 300)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, heard)])
        rotation.on_scan([LaneReady(A, seen)], now=10.0, cost=0.0)

        assert rotation.allot(10)[0].floor < min(heard, seen)

    def test_fall_to_nothing_when_a_look_could_not_name_all_lanes(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 1_000)
        for step in range(10):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_scan([LaneReady(B, 5)], now=10.0, cost=0.0, complete=False)

        assert {share.lane: share.floor for share in rotation.allot(20)} == {A: 0, B: 4}

    @pytest.mark.parametrize("told", ["by a wake-up", "by a look"])
    def test_do_not_follow_a_claim_past_what_it_could_not_see(self, told: str) -> None:
        """Two claims began before a commit of earlier positions, and end one after the other when it is known."""
        rotation = rotation_over([A])
        claims = [rotation.allot(10), rotation.allot(10)]
        if told == "by a wake-up":
            rotation.on_ready([LaneReady(A, 1)])
        else:
            rotation.on_scan([LaneReady(A, 1)], 0.0, 0.0)
        for ended, shares in enumerate(claims, 1):
            rotation.on_claimed(shares, {A: plain(10, 1_000 + 10 * ended)}, 10, now=float(ended))

        for step in range(3, 6):  # the next takes the earlier ones, and they are more than it can take at once
            shares = rotation.allot(10)
            assert shares[0].floor < 10 * (step - 2)
            rotation.on_claimed(shares, {A: plain(10, 10 * (step - 2))}, 10, now=float(step))

    def test_follow_claims_during_which_later_jobs_became_ready(self) -> None:
        """Or a pinned snapshot would slow a busy lane down."""
        rotation = rotation_over([A])
        under_way = rotation.allot(10)
        for step in range(1, 100):
            following = rotation.allot(10)
            rotation.on_ready([LaneReady(A, 10 * step + 1_000)])
            rotation.on_claimed(under_way, {A: plain(10, 10 * step)}, 10, now=float(step))
            under_way = following

        assert rotation.allot(10)[0].floor == 980

    def test_are_forgotten_with_their_lane(self) -> None:
        rotation, backlog = rotation_over([A]), Backlog()
        backlog.add(A, 100)
        for step in range(12):
            claim(rotation, backlog, 10, now=float(step))
        rotation.on_ready([LaneReady(A, 1)])

        assert rotation.allot(10) == [Share(A, 10, 0)]


class Database:
    """Ready jobs of some lanes; claims and looks see what was committed when they began, and no more."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ready: dict[Lane, set[int]] = {lane: set() for lane in (A, B, A._replace(priority=5))}
        self.uncommitted: list[tuple[Lane, range]] = []
        self.seq = 0

    def insert(self) -> None:
        """Positions are drawn now, in any transaction."""
        jobs = self.rng.randint(1, 40)
        self.uncommitted.append((self.rng.choice(list(self.ready)), range(self.seq + 1, self.seq + 1 + jobs)))
        self.seq += jobs

    def commit(self) -> LaneReady:
        """One of the transactions, not the oldest first."""
        lane, jobs = self.uncommitted.pop(self.rng.randrange(len(self.uncommitted)))
        self.ready[lane] |= set(jobs)
        return LaneReady(lane, jobs[0])

    def snapshot(self) -> dict[Lane, set[int]]:
        return {lane: set(jobs) for lane, jobs in self.ready.items()}

    def look(self) -> list[LaneReady]:
        return [LaneReady(lane, min(jobs)) for lane, jobs in self.ready.items() if jobs]

    def claim(self, shares: Allocation, slots: int, seen: dict[Lane, set[int]]) -> dict[Lane, LaneResult]:
        """What was ready when the claim began and still is."""
        taken: dict[Lane, LaneResult] = {}
        for lane, quota, floor in shares:
            jobs = sorted(job for job in seen[lane] & self.ready[lane] if job > floor)[: min(quota, slots)]
            self.ready[lane] -= set(jobs)
            slots -= len(jobs)
            if jobs:
                taken[lane] = plain(len(jobs), jobs[-1])
        return taken


class Overlap:
    """Inserts, commits, wake-ups, claims and looks, each begun and ended at any time."""

    def __init__(self, seed: int, lost: float, looking: float, lag: float) -> None:
        self.lag = lag
        self.rng = Random(seed)
        self.database = Database(self.rng)
        self.rotation = DeficitRoundRobin()
        self.lost, self.looking = lost, looking
        self.claims: list[tuple[Allocation, int, dict[Lane, set[int]]]] = []
        self.looks: list[list[LaneReady]] = []
        self.told: deque[LaneReady] = deque()
        self.now = 0.0

    def step(self) -> None:
        self.now += FLOOR_LAG_S
        match self.rng.randrange(8):
            case 0:
                self.database.insert()
            case 1 if self.database.uncommitted:
                self.told.append(self.database.commit())
            case 2 if self.told:
                news = self.told.popleft()
                self.rotation.on_ready([news] if self.rng.random() >= self.lost else [])
            case 3 if self.looks:
                self.rotation.on_scan(self.looks.pop(), self.now, 0.0)
            case 4 if not self.looks and self.rng.random() < self.looking:
                self.looks.append(self.database.look())
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

    def come_to_rest(self) -> None:
        """All commits are told of, or seen by one more look; then claims go on for as long as there are lanes."""
        while self.claims:
            self.end_claim()
        while self.database.uncommitted:
            self.told.append(self.database.commit())
        self.rotation.on_ready(self.told)
        if self.lost:
            self.rotation.on_scan(self.database.look(), self.now, 0.0)
        while self.begin_claim():
            self.now += FLOOR_LAG_S
            self.end_claim()


@pytest.mark.parametrize("lost, looking", [(0.0, 0.0), (0.0, 0.2), (0.5, 0.2)])
@pytest.mark.parametrize("lag", [0.0, FLOOR_LAG_S])
@pytest.mark.parametrize("seed", range(40))
def test_nothing_stays_hidden_however_commits_claims_and_looks_overlap(
    seed: int, lost: float, looking: float, lag: float
) -> None:
    """Where all wake-ups arrive, they suffice, with looks or without; else one more look finds what is left."""
    overlap = Overlap(seed, lost, looking, lag)
    for _ in range(600):
        overlap.step()
    overlap.come_to_rest()
    assert not any(overlap.database.ready.values())


class TestSweeps:
    def test_are_due_at_first_and_then_now_and_again(self) -> None:
        rotation = DeficitRoundRobin()
        assert rotation.scan_due(0.0)

        rotation.on_scan([], now=100.0, cost=0.0)
        assert not rotation.scan_due(100.0 + MIN_SCAN_INTERVAL_S * 0.99)
        assert rotation.scan_due(100.0 + MIN_SCAN_INTERVAL_S)

    @given(st.floats(0.0, 100.0))
    def test_are_seldom_when_they_are_dear_but_not_ever_more_so(self, cost: float) -> None:
        """A late commit whose news are lost waits for the next one."""
        rotation = DeficitRoundRobin()
        rotation.on_scan([], now=0.0, cost=cost)

        assert not rotation.scan_due(min(SCAN_COST_FACTOR * cost, SCAN_BACKOFF_CAP_S) * 0.99)
        assert not rotation.scan_due(MIN_SCAN_COST_FACTOR * cost * 0.99)
        assert rotation.scan_due(max(SCAN_BACKOFF_CAP_S, MIN_SCAN_COST_FACTOR * cost))

    @given(st.floats(0.0, 100.0))
    def test_that_are_dear_are_not_hurried(self, cost: float) -> None:
        rotation = DeficitRoundRobin()
        rotation.on_scan([], now=0.0, cost=cost)
        rotation.request_scan()

        assert rotation.scan_due(0.0) is (cost <= CHEAP_SCAN_S)

    def test_are_due_at_once_when_something_happened_nobody_knows_where(self) -> None:
        rotation = rotation_over([A])
        rotation.request_scan()

        assert rotation.scan_due(0.0)

    def test_find_lanes_without_giving_them_a_second_turn(self) -> None:
        rotation = rotation_over([A, B])
        rotation.on_scan([LaneReady(lane, 1) for lane in (A, B, C)], now=1.0, cost=0.0)

        assert [rotation.allot(1)[0].lane for _ in range(3)] == [A, B, C]


@pytest.mark.parametrize("seed", range(40))
def test_any_mix_of_lanes_is_drained_and_no_lane_starves(seed: int) -> None:
    """A simulation with a clock of its own: random backlogs, arrivals, lost news, late commits and sweeps."""
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
            rotation.on_scan(backlog.look(), now, 0.0)
        if arrivals and rng.random() < 0.3:
            arrivals -= 1
            news = backlog.add(rng.choice(lanes), rng.randint(1, 30))
            if rng.random() < 0.7:
                rotation.on_ready([news])  # else it is lost: the sweep finds it
        taken = claim(rotation, backlog, slots, now)
        for lane in backlog.lanes():
            waiting_since.setdefault(lane, claims)
        for lane in taken:
            waiting_since.pop(lane, None)
        # A round is at most one visit to each lane; a sweep may be a second away, a claim is a hundredth of it.
        bound = len(lanes) + 2 + 2 * 100
        of_most_urgent = {lane[:2]: lane for lane in sorted(backlog.lanes())}.values()
        assert all(claims - waiting_since.get(lane, claims) <= bound for lane in of_most_urgent)
    assert not len(backlog)
