"""S14 with weights and costs: deficit round robin over thousands of random mixes of tenants."""

from collections import Counter, defaultdict
from random import Random

import pytest

from holdfast.model.lane import Lane, LaneReady
from holdfast.policy.fairness.drr import QUANTUM, Allocation, DeficitRoundRobin, LaneResult
from holdfast.policy.fairness.state import AGING_INTERVAL
from tests.support.fast import seeds

MIXES = 2_000
PARTS = 10
CLAIMS = 25


class Tenants:
    """Tenants that never run out of jobs, each with its own costs and weight."""

    def __init__(self, rng: Random) -> None:
        self.weights = {f"t{n}": rng.randint(1, 4) for n in range(rng.randint(2, 6))}
        self.max_cost = rng.choice([1, 3, QUANTUM, 4 * QUANTUM])
        self.received: Counter[str] = Counter(dict.fromkeys(self.weights, 0))
        self._rng = rng
        self._steady = {tenant: rng.choice([0, 1, self.max_cost]) for tenant in self.weights}
        self._seq = 0

    def claim(self, rotation: DeficitRoundRobin, slots: int) -> int:
        """Take all jobs that the shares offer; return the number started."""
        shares = rotation.allot(slots)
        taken: dict[Lane, LaneResult] = {}
        left = slots
        for lane, quota, _ in shares:
            costs = [self._cost(lane.tenant) for _ in range(min(quota, left))]
            if costs:
                self._seq += len(costs)
                taken[lane] = LaneResult(len(costs), self._seq, sum(costs))
                self.received[lane.tenant] += sum(costs)
            left -= len(costs)
        rotation.on_claimed(shares, taken, slots, 0.0)
        return slots - left

    def spread(self) -> float:
        """Return the largest difference of service received per weight."""
        by_weight = [self.received[tenant] / weight for tenant, weight in self.weights.items()]
        return max(by_weight) - min(by_weight)

    def _cost(self, tenant: str) -> int:
        return self._steady[tenant] or self._rng.randint(1, self.max_cost)


@pytest.mark.parametrize("part", seeds(PARTS, fast=1))
def test_the_service_of_backlogged_tenants_stays_within_the_bound(part: int) -> None:
    """S14: |S_i/w_i - S_j/w_j| <= Q + 2 C + W C at every claim, for all weights, costs and numbers of slots."""
    for seed in range(part * MIXES // PARTS, (part + 1) * MIXES // PARTS):
        rng = Random(seed)
        tenants = Tenants(rng)
        rotation = DeficitRoundRobin(tenants.weights)
        rotation.on_ready([LaneReady(Lane("q", tenant, 0), 1) for tenant in tenants.weights])
        max_slots = rng.choice([1, 2, 5, 20, 100])
        bound = QUANTUM + 2 * tenants.max_cost + max_slots * tenants.max_cost
        for _ in range(CLAIMS):
            slots = rng.randint(1, max_slots)
            assert tenants.claim(rotation, slots) == slots, "work conserving: no slot stays empty"
            assert tenants.spread() <= bound, (seed, tenants.weights, tenants.received)


@pytest.mark.parametrize("seed", seeds(20))
def test_service_follows_the_weights(seed: int) -> None:
    """S14: within 5 % after 2,000 claims, for all costs."""
    rng = Random(seed)
    tenants = Tenants(rng)
    rotation = DeficitRoundRobin(tenants.weights)
    rotation.on_ready([LaneReady(Lane("q", tenant, 0), 1) for tenant in tenants.weights])
    for _ in range(2_000):
        tenants.claim(rotation, 10)

    total, weights = tenants.received.total(), sum(tenants.weights.values())
    for tenant, weight in tenants.weights.items():
        assert tenants.received[tenant] / total == pytest.approx(weight / weights, rel=0.05)


def test_a_job_that_costs_more_than_the_quantum_is_served_and_charged() -> None:
    """S14: a job whose cost exceeds the quantum is served; then other tenants catch up."""
    rotation = DeficitRoundRobin()
    expensive, cheap = Lane("q", "expensive", 0), Lane("q", "cheap", 0)
    rotation.on_ready([LaneReady(expensive, 1), LaneReady(cheap, 1)])
    received: Counter[str] = Counter()
    for _ in range(400):
        shares = rotation.allot(1)
        cost = 50 * QUANTUM if shares[0].lane == expensive else 1
        rotation.on_claimed(shares, {shares[0].lane: LaneResult(1, 1, cost)}, 1, 0.0)
        received[shares[0].lane.tenant] += 1

    assert received == {"expensive": 1, "cheap": 399}


@pytest.mark.parametrize("seed", seeds(40))
def test_no_tenant_starves_and_no_slot_stays_empty_while_there_are_jobs(seed: int) -> None:
    """Tenants become idle and active again; every job starts, and a claim that is not full leaves no job behind."""
    rng = Random(seed)
    rotation = DeficitRoundRobin({f"t{n}": rng.randint(1, 4) for n in range(10)})
    ready: defaultdict[Lane, list[int]] = defaultdict(list)
    waited: Counter[Lane] = Counter()
    for step in range(400):
        if step < 200 and rng.random() < 0.5:
            lane = Lane("q", f"t{rng.randint(0, 9)}", rng.choice([0, 0, 5]))
            ready[lane] += [rng.randint(1, 30) for _ in range(rng.randint(1, 40))]
            rotation.on_ready([LaneReady(lane, 1)])
        slots = rng.randint(1, 60)
        started = 0
        while started < slots and (shares := rotation.allot(slots - started)):
            taken = {}
            room = slots - started
            for lane, quota, _ in shares:
                costs = ready[lane][: min(quota, room)]
                if costs:
                    taken[lane] = LaneResult(len(costs), 1, sum(costs))
                    del ready[lane][: len(costs)]
                    room -= len(costs)
            rotation.on_claimed(shares, taken, slots - started, 0.0)
            started = slots - room
            for lane in ready:
                waited[lane] = waited[lane] + 1 if ready[lane] and lane not in taken else 0
        assert started == slots or not any(ready.values())
    assert not any(ready.values())
    assert max(waited.values()) == 0


class TestAging:
    def test_less_urgent_lanes_are_visited_once_per_aging_interval(self) -> None:
        rotation = DeficitRoundRobin()
        lanes = [Lane("q", "t", priority) for priority in (9, 5, 0, -5)]
        rotation.on_ready([LaneReady(lane, 1) for lane in lanes])
        visits: list[int] = []
        for _ in range(AGING_INTERVAL * 6):
            shares = rotation.allot(5)
            rotation.on_claimed(shares, {shares[0].lane: LaneResult(5, 1, 5)}, 5, 0.0)
            visits.append(shares[0].lane.priority)

        assert Counter(visits) == {9: 6 * (AGING_INTERVAL - 1), 5: 2, 0: 2, -5: 2}
        assert visits[: AGING_INTERVAL - 1] == [9] * (AGING_INTERVAL - 1)


class TestBlockedFlows:
    def test_are_skipped_until_they_are_unblocked(self) -> None:
        rotation = DeficitRoundRobin()
        rotation.on_ready([LaneReady(Lane(queue, tenant, 0), 1) for queue in "pq" for tenant in "ab"])

        blocked = {("queue", "p"), ("tenant", "b")}
        shares = rotation.allot(40, blocked)
        assert [share.lane[:2] for share in shares] == [("q", "a")]
        rotation.on_failed(shares)
        rotation.unblock(("tenant", "b"))
        assert [share.lane[:2] for share in rotation.allot(40, {("queue", "p")})] == [("q", "a"), ("q", "b")]
        rotation.unblock(("queue", "p"))
        assert [share.lane[:2] for share in rotation.allot(40)] == [("p", "a"), ("p", "b")]

    def test_keep_notifications_that_arrive_while_they_are_blocked(self) -> None:
        rotation = DeficitRoundRobin()
        lane = Lane("q", "a", 0)
        rotation.on_ready([LaneReady(lane, 100)])
        assert rotation.allot(10, {("queue", "q")}) == Allocation()
        rotation.on_ready([LaneReady(lane, 7)])
        rotation.unblock(("queue", "q"))

        assert rotation.allot(10)[0].floor == 6
