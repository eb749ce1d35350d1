"""The routes, by what they are about. `ALL` is the whole table."""

from holdfast.api.routes import access, dead, events, health, jobs, leases
from holdfast.api.table import Route

ALL: tuple[Route, ...] = (*jobs.ROUTES, *dead.ROUTES, *leases.ROUTES, *events.ROUTES, *access.ROUTES, *health.ROUTES)
