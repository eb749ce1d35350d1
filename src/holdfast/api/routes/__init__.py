"""The routes, by what they are about. `ALL` is the whole table."""

from holdfast.api.routes import access, health, jobs
from holdfast.api.table import Route

ALL: tuple[Route, ...] = (*jobs.ROUTES, *access.ROUTES, *health.ROUTES)
