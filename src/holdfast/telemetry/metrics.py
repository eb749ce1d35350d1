"""Metrics in the form that Prometheus reads. Figures of jobs are those of the installation, whichever node is asked.

What a node counts itself is named `holdfast_node_…`. No label has the name of a tenant.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, assert_never

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from holdfast.model.change_log import GROWTH, Histogram
from holdfast.telemetry.events import BreakerChanged, Event, JobsReaped, LoopFailed, RedisChanged
from holdfast.telemetry.metric_names import (
    BREAKERS,
    DEPTH,
    FAILED,
    FINISHED,
    INFO,
    JOBS,
    LATENCY,
    LOOPS,
    NODE_REAPED,
    OLDEST,
    POOL,
    POOL_MOST,
    REAPED,
    REDIS,
    REDIS_ASKED,
    REDIS_LOST,
    REQUESTS,
    RUN,
    STARTED,
    STREAMS,
    SUBMITTED,
    WAIT,
    WORKERS,
    WORKERS_LATE,
    WORKERS_LOST,
    Known,
)

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

OTHERS = "(others)"
"""The label of whatever is beyond the first so many; no name can be like it."""

MOST_NAMES = 200
"""Names of queues, and of types, that are told apart: those with the most jobs."""

_LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LATENCY_LABELS = (*(f"{bound:g}" for bound in _LATENCIES), "+Inf")

# Bounds of job histograms are bounds of the buckets that are kept, so that no count is guessed: each is about twice
# the one before it, from a millisecond to a day.
_EDGES = tuple(range(38, 140, 4))
_EDGE_LABELS = tuple(f"{GROWTH**edge / 1e6:.4g}" for edge in _EDGES)


class Requests:
    """What a node answered. Written for each request, so it does as little as can be."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], _Latency] = {}

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """One more, to a route as the table has it (empty: to none)."""
        key = method, route, status
        latency = self._seen.get(key)
        if latency is None:
            latency = self._seen[key] = _Latency([0] * len(_LATENCY_LABELS))
        latency.buckets[bisect_left(_LATENCIES, seconds)] += 1
        latency.total += seconds

    def collect(self) -> Iterator[Metric]:
        """As metrics."""
        counts, times = _counter(REQUESTS), _histogram(LATENCY)
        together: dict[tuple[str, str], _Latency] = {}
        for (method, route, status), seen in list(self._seen.items()):
            counts.add_metric([method, route or OTHERS, str(status)], sum(seen.buckets))
            whole = together.setdefault((method, route or OTHERS), _Latency([0] * len(_LATENCY_LABELS)))
            whole.buckets = [a + b for a, b in zip(whole.buckets, seen.buckets, strict=True)]
            whole.total += seen.total
        for labels, latency in together.items():
            times.add_metric(labels, _cumulative(_LATENCY_LABELS, latency.buckets), latency.total)
        yield from (counts, times)


class _Latency:
    __slots__ = ("buckets", "total")

    def __init__(self, buckets: list[int]) -> None:
        self.buckets = buckets
        self.total = 0.0


class Counted:
    """A sink of events that counts them."""

    def __init__(self) -> None:
        self._reaped = 0
        self._failures: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        """One more."""
        match event:
            case JobsReaped():
                self._reaped += event.jobs
            case LoopFailed():
                self._failures[event.loop] += 1
            case RedisChanged():
                pass  # counted by the link to it
            case BreakerChanged():
                pass  # counted where they are kept, for the installation
            case _:
                assert_never(event)

    def collect(self) -> Iterator[Metric]:
        """As metrics."""
        reaped, failures = _counter(NODE_REAPED), _counter(LOOPS)
        reaped.add_metric([], self._reaped)
        for loop, count in self._failures.items():
            failures.add_metric([loop], count)
        yield from (reaped, failures)


class Standing(NamedTuple):
    """How many jobs stand where, and for how many seconds the one has waited that has waited longest."""

    queue: str
    type: str
    status: str
    jobs: int
    waited: float | None


class Totals(NamedTuple):
    """What ever happened to jobs of one type in one queue."""

    queue: str
    type: str
    submitted: int
    started: int
    failed: int
    finished: Mapping[str, int]
    """By the state they ended in."""
    wait: Histogram
    run: Histogram
    reaped: int = 0


class Installation(NamedTuple):
    """What all nodes know."""

    standings: Sequence[Standing]
    totals: Sequence[Totals]
    workers: int
    expired: int
    breakers: Mapping[str, int] = {}
    """By state."""
    lost: int = 0
    """Workers, ever."""

    def collect(self) -> Iterator[Metric]:
        """As metrics."""
        queues = _most(Counter({each.queue: 0 for each in self.totals}), self.standings, "queue")
        types = _most(Counter({each.type: each.started for each in self.totals}), self.standings, "type")
        yield from self._standing(queues, types)
        yield from self._happened(queues, types)
        for known, value in ((WORKERS, self.workers), (WORKERS_LATE, self.expired)):
            yield _single(known, value)
        lost = _counter(WORKERS_LOST)
        lost.add_metric([], self.lost)
        yield lost
        breakers = _gauge(BREAKERS)
        for state, count in self.breakers.items():
            breakers.add_metric([state], count)
        yield breakers

    def _standing(self, queues: set[str], types: set[str]) -> Iterator[Metric]:
        jobs: Counter[tuple[str, str, str]] = Counter()
        depth: Counter[str] = Counter()
        oldest: dict[str, float] = defaultdict(float)
        for each in self.standings:
            queue = _named(each.queue, queues)
            jobs[queue, _named(each.type, types), each.status] += each.jobs
            depth[queue] += each.jobs if each.status == "ready" else 0
            oldest[queue] = max(oldest[queue], each.waited or 0.0)
        families = _gauge(JOBS), _gauge(DEPTH), _gauge(OLDEST)
        for labels, count in jobs.items():
            families[0].add_metric(labels, count)
        for queue in depth:
            families[1].add_metric([queue], depth[queue])
            families[2].add_metric([queue], oldest[queue])
        yield from families

    def _happened(self, queues: set[str], types: set[str]) -> Iterator[Metric]:
        counts: dict[Known, Counter[tuple[str, ...]]] = {
            known: Counter() for known in (SUBMITTED, STARTED, FAILED, FINISHED, REAPED)
        }
        spans: dict[Known, dict[str, Counter[int]]] = {WAIT: defaultdict(Counter), RUN: defaultdict(Counter)}
        for each in self.totals:
            place = _named(each.queue, queues), _named(each.type, types)
            counts[SUBMITTED][place] += each.submitted
            counts[STARTED][place] += each.started
            counts[FAILED][place] += each.failed
            counts[REAPED][place] += each.reaped
            for status, jobs in each.finished.items():
                counts[FINISHED][*place, status] += jobs
            spans[WAIT][place[1]].update(each.wait)
            spans[RUN][place[1]].update(each.run)
        for known, counted in counts.items():
            family = _counter(known)
            for labels, count in counted.items():
                family.add_metric(labels, count)
            yield family
        for known, by_type in spans.items():
            times = _histogram(known)
            for name, histogram in by_type.items():
                times.add_metric([name], *_spans(histogram))
            yield times


class Node(NamedTuple):
    """What a node knows of itself."""

    version: str
    streams: int
    pool_busy: int
    pool_idle: int
    pool_most: int

    def collect(self) -> Iterator[Metric]:
        """As metrics."""
        info, pool = _gauge(INFO), _gauge(POOL)
        info.add_metric([self.version], 1)
        pool.add_metric(["busy"], self.pool_busy)
        pool.add_metric(["idle"], self.pool_idle)
        yield from (info, pool, _single(POOL_MOST, self.pool_most), _single(STREAMS, self.streams))


class Redis(NamedTuple):
    """What a node knows of its Redis, if it has one."""

    up: bool | None
    lost: int
    asked: Mapping[tuple[str, str], int]

    def collect(self) -> Iterator[Metric]:
        """As metrics."""
        up, lost, asked = _gauge(REDIS), _counter(REDIS_LOST), _counter(REDIS_ASKED)
        if self.up is not None:
            up.add_metric([], self.up)
            lost.add_metric([], self.lost)
        for labels, count in self.asked.items():
            asked.add_metric(labels, count)
        yield from (up, lost, asked)


def written(sources: Iterable[Iterable[Metric]]) -> bytes:
    """The page that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_All([metric for source in sources for metric in source]))
    ProcessCollector(namespace="holdfast_node", registry=registry)
    return generate_latest(registry)


class _All(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def _spans(histogram: Mapping[int, int]) -> tuple[list[tuple[str, float]], float]:
    """Cumulative counts by upper bound, and about what all spans add up to, off by a tenth at the most."""
    buckets = [0] * (len(_EDGES) + 1)
    total = 0.0
    for bucket, count in histogram.items():
        # A bucket ends where the next one begins.
        buckets[bisect_left(_EDGES, bucket + 1)] += count
        total += count * GROWTH**bucket * 2 * GROWTH / (GROWTH + 1) / 1e6
    return _cumulative((*_EDGE_LABELS, "+Inf"), buckets), round(total, 6)


def _cumulative(labels: Sequence[str], buckets: Sequence[int]) -> list[tuple[str, float]]:
    reached = 0
    found: list[tuple[str, float]] = []
    for label, count in zip(labels, buckets, strict=True):
        reached += count
        found.append((label, reached))
    return found


def _most(counted: Counter[str], standings: Iterable[Standing], field: Literal["queue", "type"]) -> set[str]:
    for each in standings:
        counted[getattr(each, field)] += each.jobs
    return {name for name, _ in counted.most_common(MOST_NAMES)}


def _named(name: str, among: set[str]) -> str:
    return name if name in among else OTHERS


def _single(known: Known, value: float) -> Metric:
    family = _gauge(known)
    family.add_metric([], value)
    return family


def _gauge(known: Known) -> GaugeMetricFamily:
    return GaugeMetricFamily(known.name, known.help, labels=known.labels)


def _counter(known: Known) -> CounterMetricFamily:
    return CounterMetricFamily(known.name, known.help, labels=known.labels)


def _histogram(known: Known) -> HistogramMetricFamily:
    return HistogramMetricFamily(known.name, known.help, labels=known.labels)
