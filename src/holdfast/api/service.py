"""What the routes work with: the engine, and whatever else a node holds beside it."""

import asyncio
from typing import NamedTuple

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.tickets import Tickets
from holdfast.api.events.broadcaster import Streams
from holdfast.api.metrics_page import Scrapes
from holdfast.api.routing import Routes
from holdfast.engine.engine import Engine
from holdfast.telemetry.metrics import Counted, Requests


class ServiceRules(NamedTuple):
    """How this node answers."""

    version: str
    demo: bool = False
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    access_log: bool = False
    base_path: str = ""
    """What a proxy leaves in front of every path."""


class Service(NamedTuple):
    """One node of the service. Belongs to one event loop."""

    engine: Engine
    auth: Authenticator
    routes: Routes
    rules: ServiceRules
    stopping: asyncio.Event
    """Set when the node shuts down: whatever goes on ends then."""
    streams: Streams
    scrapes: Scrapes
    """Figures of the installation."""
    requests: Requests
    """What this node answered, counted."""
    events: Counted
    """What happened on this node, counted."""
    tickets: Tickets
    """Ways in that were printed, each good once."""
