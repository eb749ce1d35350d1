"""Route handlers by subject; `ALL` is the complete route table."""

from holdfast.api.routes import (
    access,
    analytics,
    dashboard,
    dead,
    demo,
    events,
    health,
    jobs,
    limits,
    queues,
    webhooks,
    worker_protocol,
    workers,
)
from holdfast.api.routing import Route

ALL: tuple[Route, ...] = (
    *jobs.ROUTES,
    *dead.ROUTES,
    *worker_protocol.ROUTES,
    *workers.ROUTES,
    *events.ROUTES,
    *queues.ROUTES,
    *limits.ROUTES,
    *analytics.ROUTES,
    *access.ROUTES,
    *webhooks.ROUTES,
    *demo.ROUTES,
    *dashboard.ROUTES,
    *health.ROUTES,
)
