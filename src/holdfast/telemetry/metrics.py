"""Metrics in the Prometheus text format.

Metrics of jobs cover the whole installation and are the same on every node; those of a single node are named
`holdfast_node_…`. Tenants do not appear in labels.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, assert_never

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from holdfast.model.change_log import BUCKET_GROWTH, Histogram
from holdfast.telemetry.events import (
    AttemptFinished,
    BreakerChanged,
    DatabaseChanged,
    Event,
    JobsReaped,
    LoopFailed,
    RedisChanged,
)
from holdfast.telemetry.metric_names import (
    BREAKERS,
    DEPTH,
    FAILED,
    FINISHED,
    INFO,
    JOBS,
    LATENCY,
    MAINTENANCE_FAILURES,
    NODE_REAPED,
    OLDEST,
    POOL,
    POOL_MAX,
    REAPED,
    REDIS,
    REDIS_LOST,
    REDIS_QUERIES,
    REQUESTS,
    RUN,
    STARTED,
    STREAMS,
    SUBMITTED,
    WAIT,
    WORKERS,
    WORKERS_EXPIRED,
    WORKERS_LOST,
    MetricInfo,
)

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

OTHER_LABEL = "(others)"
"""Label for names beyond `MAX_LABEL_NAMES`; not a valid name of a queue or type."""

MAX_LABEL_NAMES = 200
"""Queues and types with their own label: those with the most jobs."""

_LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LATENCY_LABELS = (*(f"{bound:g}" for bound in _LATENCIES), "+Inf")

# Bounds of the job histograms: a subset of the stored bucket bounds, so that counts are exact. Each is about twice the
# previous one, from a millisecond to a day.
_EDGES = tuple(range(38, 140, 4))
_EDGE_LABELS = tuple(f"{BUCKET_GROWTH**edge / 1e6:.4g}" for edge in _EDGES)


class RequestMetrics:
    """Counters and latencies of HTTP requests. Updated on every request, so it does little."""

    def __init__(self) -> None:
        self._latencies: dict[tuple[str, str, int], _Latency] = {}

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request; `route` is the pattern of the route, empty if there is none."""
        key = method, route, status
        latency = self._latencies.get(key)
        if latency is None:
            latency = self._latencies[key] = _Latency([0] * len(_LATENCY_LABELS))
        latency.buckets[bisect_left(_LATENCIES, seconds)] += 1
        latency.total += seconds

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        counts, times = _counter(REQUESTS), _histogram(LATENCY)
        by_route: dict[tuple[str, str], _Latency] = {}
        for (method, route, status), latency in list(self._latencies.items()):
            counts.add_metric([method, route or OTHER_LABEL, str(status)], sum(latency.buckets))
            merged = by_route.setdefault((method, route or OTHER_LABEL), _Latency([0] * len(_LATENCY_LABELS)))
            merged.buckets = [a + b for a, b in zip(merged.buckets, latency.buckets, strict=True)]
            merged.total += latency.total
        for labels, latency in by_route.items():
            times.add_metric(labels, _cumulative(_LATENCY_LABELS, latency.buckets), latency.total)
        yield from (counts, times)


class _Latency:
    __slots__ = ("buckets", "total")

    def __init__(self, buckets: list[int]) -> None:
        self.buckets = buckets
        self.total = 0.0


class EventCounters:
    """Event sink that counts events."""

    def __init__(self) -> None:
        self._reaped = 0
        self._failures: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case JobsReaped():
                self._reaped += event.jobs
            case LoopFailed():
                self._failures[event.loop] += 1
            case RedisChanged():
                pass  # counted by the Redis connection
            case BreakerChanged() | AttemptFinished():
                pass  # counted in the database, for the installation
            case DatabaseChanged():
                pass  # shown by the readiness check
            case _:
                assert_never(event)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        reaped, failures = _counter(NODE_REAPED), _counter(MAINTENANCE_FAILURES)
        reaped.add_metric([], self._reaped)
        for loop, count in self._failures.items():
            failures.add_metric([loop], count)
        yield from (reaped, failures)


class JobGauge(NamedTuple):
    """Number of jobs in a queue, of a type and in a state, and the longest wait in seconds."""

    queue: str
    type: str
    status: str
    jobs: int
    waited: float | None


class JobCounters(NamedTuple):
    """Lifetime counters of the jobs of one type in one queue."""

    queue: str
    type: str
    submitted: int
    started: int
    failed: int
    finished: Mapping[str, int]
    """Finished jobs by final state."""
    wait: Histogram
    run: Histogram
    reaped: int = 0


class InstallationStats(NamedTuple):
    """Metrics of the installation, the same on every node."""

    gauges: Sequence[JobGauge]
    counters: Sequence[JobCounters]
    workers: int
    expired: int
    breakers: Mapping[str, int] = {}
    """Number of breakers by state."""
    lost: int = 0
    """Workers lost since the installation was created."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        queues = _most_common(Counter({each.queue: 0 for each in self.counters}), self.gauges, "queue")
        types = _most_common(Counter({each.type: each.started for each in self.counters}), self.gauges, "type")
        yield from self._gauge_metrics(queues, types)
        yield from self._counter_metrics(queues, types)
        for info, value in ((WORKERS, self.workers), (WORKERS_EXPIRED, self.expired)):
            yield _single(info, value)
        lost = _counter(WORKERS_LOST)
        lost.add_metric([], self.lost)
        yield lost
        breakers = _gauge(BREAKERS)
        for state, count in self.breakers.items():
            breakers.add_metric([state], count)
        yield breakers

    def _gauge_metrics(self, queues: set[str], types: set[str]) -> Iterator[Metric]:
        jobs: Counter[tuple[str, str, str]] = Counter()
        depth: Counter[str] = Counter()
        oldest: dict[str, float] = defaultdict(float)
        for each in self.gauges:
            queue = _label(each.queue, queues)
            jobs[queue, _label(each.type, types), each.status] += each.jobs
            depth[queue] += each.jobs if each.status == "ready" else 0
            oldest[queue] = max(oldest[queue], each.waited or 0.0)
        families = _gauge(JOBS), _gauge(DEPTH), _gauge(OLDEST)
        for labels, count in jobs.items():
            families[0].add_metric(labels, count)
        for queue in depth:
            families[1].add_metric([queue], depth[queue])
            families[2].add_metric([queue], oldest[queue])
        yield from families

    def _counter_metrics(self, queues: set[str], types: set[str]) -> Iterator[Metric]:
        counts: dict[MetricInfo, Counter[tuple[str, ...]]] = {
            info: Counter() for info in (SUBMITTED, STARTED, FAILED, FINISHED, REAPED)
        }
        spans: dict[MetricInfo, dict[str, Counter[int]]] = {WAIT: defaultdict(Counter), RUN: defaultdict(Counter)}
        for each in self.counters:
            labels = _label(each.queue, queues), _label(each.type, types)
            counts[SUBMITTED][labels] += each.submitted
            counts[STARTED][labels] += each.started
            counts[FAILED][labels] += each.failed
            counts[REAPED][labels] += each.reaped
            for status, jobs in each.finished.items():
                counts[FINISHED][*labels, status] += jobs
            spans[WAIT][labels[1]].update(each.wait)
            spans[RUN][labels[1]].update(each.run)
        for info, values in counts.items():
            family = _counter(info)
            for label_values, count in values.items():
                family.add_metric(label_values, count)
            yield family
        for info, by_type in spans.items():
            times = _histogram(info)
            for name, histogram in by_type.items():
                times.add_metric([name], *_spans(histogram))
            yield times


class NodeStats(NamedTuple):
    """Metrics of this node."""

    version: str
    streams: int
    pool_busy: int
    pool_idle: int
    pool_max: int

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        info, pool = _gauge(INFO), _gauge(POOL)
        info.add_metric([self.version], 1)
        pool.add_metric(["busy"], self.pool_busy)
        pool.add_metric(["idle"], self.pool_idle)
        yield from (info, pool, _single(POOL_MAX, self.pool_max), _single(STREAMS, self.streams))


class RedisStats(NamedTuple):
    """Metrics of the Redis connection of this node; `up` is None without Redis."""

    up: bool | None
    lost: int
    queries: Mapping[tuple[str, str], int]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        up, lost, queries = _gauge(REDIS), _counter(REDIS_LOST), _counter(REDIS_QUERIES)
        if self.up is not None:
            up.add_metric([], self.up)
            lost.add_metric([], self.lost)
        for labels, count in self.queries.items():
            queries.add_metric(labels, count)
        yield from (up, lost, queries)


def render_page(sources: Iterable[Iterable[Metric]]) -> bytes:
    """Render the metrics page for Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FixedCollector([metric for source in sources for metric in source]))
    ProcessCollector(namespace="holdfast_node", registry=registry)
    return generate_latest(registry)


class _FixedCollector(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def _spans(histogram: Mapping[int, int]) -> tuple[list[tuple[str, float]], float]:
    """Return cumulative counts by upper bound, and the sum of all durations within 10 %."""
    buckets = [0] * (len(_EDGES) + 1)
    total = 0.0
    for bucket, count in histogram.items():
        # The upper bound of a bucket is the lower bound of the next.
        buckets[bisect_left(_EDGES, bucket + 1)] += count
        total += count * BUCKET_GROWTH**bucket * 2 * BUCKET_GROWTH / (BUCKET_GROWTH + 1) / 1e6
    return _cumulative((*_EDGE_LABELS, "+Inf"), buckets), round(total, 6)


def _cumulative(labels: Sequence[str], buckets: Sequence[int]) -> list[tuple[str, float]]:
    total = 0
    cumulative: list[tuple[str, float]] = []
    for label, count in zip(labels, buckets, strict=True):
        total += count
        cumulative.append((label, total))
    return cumulative


def _most_common(jobs: Counter[str], gauges: Iterable[JobGauge], field: Literal["queue", "type"]) -> set[str]:
    for each in gauges:
        jobs[getattr(each, field)] += each.jobs
    return {name for name, _ in jobs.most_common(MAX_LABEL_NAMES)}


def _label(name: str, labelled: set[str]) -> str:
    return name if name in labelled else OTHER_LABEL


def _single(info: MetricInfo, value: float) -> Metric:
    family = _gauge(info)
    family.add_metric([], value)
    return family


def _gauge(info: MetricInfo) -> GaugeMetricFamily:
    return GaugeMetricFamily(info.name, info.help, labels=info.labels)


def _counter(info: MetricInfo) -> CounterMetricFamily:
    return CounterMetricFamily(info.name, info.help, labels=info.labels)


def _histogram(info: MetricInfo) -> HistogramMetricFamily:
    return HistogramMetricFamily(info.name, info.help, labels=info.labels)
