"""Dependencies of the routes: the engine and the per-node services."""

import asyncio
from typing import NamedTuple

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.tickets import Tickets
from holdfast.api.events.broadcaster import EventBroadcaster
from holdfast.api.metrics_page import InstallationMetrics
from holdfast.api.request_slots import RequestSlots
from holdfast.api.routing import Routes
from holdfast.api.tenant_guard import TenantGuard
from holdfast.engine.engine import Engine
from holdfast.telemetry.metrics import EventCounters, RequestMetrics


class ServiceRules(NamedTuple):
    """Settings of this node's HTTP service."""

    version: str
    demo: bool = False
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    access_log: bool = False
    base_path: str = ""
    """Path prefix that a reverse proxy keeps."""
    tls: bool = False
    """True if this node serves HTTPS itself."""


class Service(NamedTuple):
    """Services of one node; bound to one event loop."""

    engine: Engine
    auth: Authenticator
    routes: Routes
    rules: ServiceRules
    stopping: asyncio.Event
    """Set at shutdown; ends streams and long polls."""
    streams: EventBroadcaster
    scrapes: InstallationMetrics
    """Metrics of the installation."""
    requests: RequestMetrics
    """Request counters of this node."""
    events: EventCounters
    """Event counters of this node."""
    slots: RequestSlots
    """Requests in progress by API key."""
    long_polls: RequestSlots
    """Long polls in progress by API key."""
    renewals: RequestSlots
    """Renewals of leases in progress by API key."""
    tenants: TenantGuard
    """Default bounds of tenants."""
    tickets: Tickets
    """Single-use sign-in tickets."""
