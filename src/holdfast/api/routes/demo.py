"""Something to look at: only there in demo mode."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Call, Route
from holdfast.engine import demo
from holdfast.model.access import Scope
from holdfast.policy.demo import TENANTS
from holdfast.wire.deliveries import Cleared, Seeded, SeedQuery


async def seed_demo(call: Call[None, SeedQuery]) -> HttpResponse | Stream:
    """Submit a believable mix of jobs of several tenants."""
    jobs = await demo.seed(call.service.engine, call.query.jobs)
    return HttpResponse(Seeded(jobs, list(TENANTS)), 201)


async def clear_demo(call: Call[None, None]) -> HttpResponse | Stream:
    """Remove what the demo submitted, whatever became of it."""
    return HttpResponse(Cleared(await demo.clear(call.service.engine)))


ROUTES = (
    Route(
        "POST", "/v1/demo/seed", Scope.ADMIN, seed_demo, "Submit a mix of jobs (in demo mode)", {201: Seeded},
        query=SeedQuery, tag="demo", demo=True,
    ),
    Route(
        "POST", "/v1/demo/clear", Scope.ADMIN, clear_demo, "Remove the jobs of the demo (in demo mode)", {200: Cleared},
        tag="demo", demo=True,
    ),
)  # fmt: skip
