"""The routes, by what they are about. `ALL` is the whole table."""

from holdfast.api.routes import (
    access,
    analytics,
    dashboard,
    dead,
    deliveries,
    demo,
    events,
    fleet,
    health,
    jobs,
    leases,
    limits,
    queues,
)
from holdfast.api.table import Route

ALL: tuple[Route, ...] = (
    *jobs.ROUTES,
    *dead.ROUTES,
    *leases.ROUTES,
    *fleet.ROUTES,
    *events.ROUTES,
    *queues.ROUTES,
    *limits.ROUTES,
    *analytics.ROUTES,
    *access.ROUTES,
    *deliveries.ROUTES,
    *demo.ROUTES,
    *dashboard.ROUTES,
    *health.ROUTES,
)
