"""Table of all metrics, for the metrics page and the reference."""

from typing import Literal, NamedTuple


class MetricInfo(NamedTuple):
    """Name, kind, help text and labels of a metric."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


JOBS = MetricInfo("holdfast_jobs", "gauge", "Unfinished and dead jobs", ("queue", "type", "status"))
DEPTH = MetricInfo("holdfast_queue_depth", "gauge", "Jobs that are ready to run", ("queue",))
OLDEST = MetricInfo(
    "holdfast_queue_oldest_wait_seconds", "gauge", "Age of the job that has been ready longest", ("queue",)
)
SUBMITTED = MetricInfo("holdfast_jobs_submitted_total", "counter", "Submitted jobs", ("queue", "type"))
STARTED = MetricInfo("holdfast_attempts_started_total", "counter", "Started attempts", ("queue", "type"))
FAILED = MetricInfo("holdfast_attempts_failed_total", "counter", "Failed attempts", ("queue", "type"))
FINISHED = MetricInfo("holdfast_jobs_finished_total", "counter", "Finished jobs", ("queue", "type", "status"))
WAIT = MetricInfo("holdfast_job_wait_seconds", "histogram", "Time from due to start of finished attempts", ("type",))
RUN = MetricInfo("holdfast_job_run_seconds", "histogram", "Run time of finished attempts", ("type",))
REAPED = MetricInfo(
    "holdfast_jobs_reaped_total", "counter", "Jobs reclaimed from workers whose lease expired",
    ("queue", "type"),
)  # fmt: skip
WORKERS = MetricInfo("holdfast_workers", "gauge", "Registered workers", ())
WORKERS_EXPIRED = MetricInfo(
    "holdfast_workers_expired", "gauge", "Workers whose lease expired and that are not removed yet", ()
)

WORKERS_LOST = MetricInfo("holdfast_workers_lost_total", "counter", "Workers removed because their lease expired", ())
BREAKERS = MetricInfo(
    "holdfast_breakers", "gauge", "Circuit breakers of webhook destinations with recent failures", ("state",)
)

REQUESTS = MetricInfo(
    "holdfast_node_http_requests_total", "counter", "HTTP requests handled by this node", ("method", "route", "status")
)
LATENCY = MetricInfo(
    "holdfast_node_http_request_seconds",
    "histogram",
    "Response time of HTTP requests on this node",
    ("method", "route"),
)
STREAMS = MetricInfo("holdfast_node_streams", "gauge", "Open event streams on this node")
POOL = MetricInfo("holdfast_node_pool_connections", "gauge", "Database connections of this node", ("state",))
POOL_MAX = MetricInfo(
    "holdfast_node_pool_connections_max", "gauge", "Maximum number of database connections of this node"
)
NODE_REAPED = MetricInfo(
    "holdfast_node_jobs_reaped_total", "counter", "Jobs that this node reclaimed from workers whose lease expired"
)
MAINTENANCE_FAILURES = MetricInfo(
    "holdfast_node_housekeeping_failures_total", "counter", "Failed rounds of maintenance loops on this node", ("loop",)
)
REDIS = MetricInfo("holdfast_node_redis_up", "gauge", "1 if Redis is available, 0 if not; absent if none is configured")
REDIS_LOST = MetricInfo(
    "holdfast_node_redis_lost_total", "counter", "Number of times that this node lost its connection to Redis"
)
REDIS_QUERIES = MetricInfo(
    "holdfast_node_redis_asked_total", "counter",
    "Lookups in Redis: `hit` saved a query to the database, `miss` and `away` did not", ("part", "answer"),
)  # fmt: skip
INFO = MetricInfo("holdfast_node_info", "gauge", "Always 1; labelled with the version of this node", ("version",))

METRICS = (
    JOBS, DEPTH, OLDEST, SUBMITTED, STARTED, FAILED, FINISHED, REAPED, WAIT, RUN,
    WORKERS, WORKERS_EXPIRED, WORKERS_LOST, BREAKERS,
    REQUESTS, LATENCY, STREAMS, POOL, POOL_MAX, NODE_REAPED, MAINTENANCE_FAILURES,
    REDIS, REDIS_LOST, REDIS_QUERIES, INFO,
)  # fmt: skip
"""All metrics except `holdfast_node_process_…`, which the Prometheus library defines."""
