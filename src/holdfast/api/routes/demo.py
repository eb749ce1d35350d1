"""Routes of demo mode, which fill and clear the demo data."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Route, RouteCall
from holdfast.engine import demo
from holdfast.model.access import Scope
from holdfast.policy.demo import TENANTS
from holdfast.wire.deliveries import Cleared, Seeded, SeedQuery


async def seed_demo(call: RouteCall[None, SeedQuery]) -> HttpResponse | Stream:
    """Submit a realistic mix of jobs for several tenants."""
    jobs = await demo.seed(call.service.engine, call.query.jobs)
    return HttpResponse(Seeded(jobs, list(TENANTS)), 201)


async def clear_demo(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Delete all demo jobs, whatever their state, and their statistics."""
    return HttpResponse(Cleared(await demo.clear(call.service.engine)))


ROUTES = (
    Route(
        "POST", "/v1/demo/seed", Scope.ADMIN, seed_demo, "Submit a mix of jobs (demo mode)", {201: Seeded},
        query=SeedQuery, tag="demo", demo=True,
    ),
    Route(
        "POST", "/v1/demo/clear", Scope.ADMIN, clear_demo, "Delete the demo jobs and their statistics (demo mode)",
        {200: Cleared}, tag="demo", demo=True,
    ),
)  # fmt: skip
