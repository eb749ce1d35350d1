"""Which metrics there are: the page of metrics and its description are made of this table."""

from typing import Literal, NamedTuple


class Known(NamedTuple):
    """A metric: what it is called, what it tells, and what its labels are."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


JOBS = Known("holdfast_jobs", "gauge", "Jobs that are unfinished or dead", ("queue", "type", "status"))
DEPTH = Known("holdfast_queue_depth", "gauge", "Jobs that could run now", ("queue",))
OLDEST = Known(
    "holdfast_queue_oldest_wait_seconds", "gauge", "How long the job has waited that has waited longest", ("queue",)
)
SUBMITTED = Known("holdfast_jobs_submitted_total", "counter", "Jobs that were submitted", ("queue", "type"))
STARTED = Known("holdfast_attempts_started_total", "counter", "Attempts that workers started", ("queue", "type"))
FAILED = Known("holdfast_attempts_failed_total", "counter", "Attempts that failed", ("queue", "type"))
FINISHED = Known("holdfast_jobs_finished_total", "counter", "Jobs that came to an end", ("queue", "type", "status"))
WAIT = Known(
    "holdfast_job_wait_seconds", "histogram", "How long attempts that ended had been due before they started", ("type",)
)
RUN = Known("holdfast_job_run_seconds", "histogram", "How long attempts that ended had run", ("type",))
REAPED = Known(
    "holdfast_jobs_reaped_total", "counter", "Jobs that were taken back from workers whose lease ran out",
    ("queue", "type"),
)  # fmt: skip
WORKERS = Known("holdfast_workers", "gauge", "Workers that are registered", ())
WORKERS_LATE = Known("holdfast_workers_expired", "gauge", "Workers whose lease ran out, until they are struck", ())

WORKERS_LOST = Known(
    "holdfast_workers_lost_total", "counter", "Workers that were struck because their lease ran out", ()
)
BREAKERS = Known("holdfast_breakers", "gauge", "Destinations of webhooks that gave trouble lately", ("state",))

REQUESTS = Known(
    "holdfast_node_http_requests_total", "counter", "Requests that this node answered", ("method", "route", "status")
)
LATENCY = Known(
    "holdfast_node_http_request_seconds", "histogram", "How long this node took to answer", ("method", "route")
)
STREAMS = Known("holdfast_node_streams", "gauge", "Streams of events that are open on this node")
POOL = Known("holdfast_node_pool_connections", "gauge", "Database connections of this node", ("state",))
POOL_MOST = Known("holdfast_node_pool_connections_max", "gauge", "Database connections that this node may open")
NODE_REAPED = Known(
    "holdfast_node_jobs_reaped_total", "counter", "Jobs that this node took back from workers whose lease ran out"
)
LOOPS = Known(
    "holdfast_node_housekeeping_failures_total", "counter", "Rounds of housekeeping that failed on this node", ("loop",)
)
REDIS = Known("holdfast_node_redis_up", "gauge", "Whether Redis answers; not told where none is named")
REDIS_LOST = Known("holdfast_node_redis_lost_total", "counter", "How often this node began to do without Redis")
REDIS_ASKED = Known(
    "holdfast_node_redis_asked_total", "counter",
    "What came of asking Redis: `hit` is answered without the database, `miss` and `away` are not", ("part", "answer"),
)  # fmt: skip
INFO = Known("holdfast_node_info", "gauge", "Always 1; the version that this node runs", ("version",))

METRICS = (
    JOBS, DEPTH, OLDEST, SUBMITTED, STARTED, FAILED, FINISHED, REAPED, WAIT, RUN, WORKERS, WORKERS_LATE, WORKERS_LOST,
    BREAKERS, REQUESTS, LATENCY, STREAMS, POOL, POOL_MOST, NODE_REAPED, LOOPS, REDIS, REDIS_LOST, REDIS_ASKED, INFO,
)  # fmt: skip
"""All but those of the process itself, `holdfast_node_process_…`, which Prometheus' own library names."""
