"""Build stores, engines and the API from settings; the only module that names adapters."""

import asyncio
import functools
import time
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from holdfast.config import Settings
from holdfast.coordination.no_redis import NoRedis, NoRejectionCache
from holdfast.coordination.port import Coordination
from holdfast.engine.engine import Engine, EngineRules
from holdfast.engine.jobs.attempt_events import finished_attempts
from holdfast.errors import Misconfigured
from holdfast.model.ids import JobId
from holdfast.model.job import RetryRule
from holdfast.model.outcome import Report, Succeeded
from holdfast.model.time import Instant
from holdfast.policy import lifecycle
from holdfast.policy.breaker import BreakerRules
from holdfast.policy.quotas import TenantQuota
from holdfast.policy.recycling import MIB, RecyclingRules
from holdfast.policy.tenant_bounds import TenantBounds
from holdfast.store.drivers import needs_driver
from holdfast.store.port.store import Retention, Store
from holdfast.telemetry.emit import Emit, log_event, logs_successes

if TYPE_CHECKING:
    from holdfast.api.app import Api
    from holdfast.sdk.remote import RemoteEngine

_SETTING = "HOLDFAST_DATABASE_URL"


async def open_store(url: str, *, clock: str | None = None, pool_size: int = 10) -> Store:
    """Connect to the database at a URL, without checking or changing its schema.

    Args:
        url: URL of a database.
        clock: SQL expression that replaces the clock of the database, for tests.
        pool_size: Maximum number of connections.

    Raises:
        Misconfigured: The URL is not one of a supported database.
    """
    scheme = urlsplit(url).scheme
    match scheme.split("+", 1)[0]:
        case "postgresql" | "postgres":
            with needs_driver("PostgreSQL", "postgres"):
                from holdfast.store.postgres.store import PostgresStore

            return await PostgresStore.open(url, clock=clock, pool_size=pool_size)
        case "mysql" | "mariadb":
            with needs_driver("MySQL", "mysql"):
                from holdfast.store.mysql.store import MysqlStore

            return await MysqlStore.open(url, clock=clock, pool_size=pool_size)
        case "sqlite":
            from holdfast.store.sqlite.store import SqliteStore

            return await SqliteStore.open(url, clock=clock)
        case _:
            if is_node(url):
                raise Misconfigured(f"{_SETTING}: a database is needed here, and {scheme}://… is a node of the service")
            raise Misconfigured(
                f"{_SETTING}: {scheme or url!r} is not a supported database; "
                "use postgresql://…, mysql://… or sqlite:///path/to/file.db"
            )


def engine_rules(settings: Settings) -> EngineRules:
    """Return the rules of the engine that the settings define."""
    return EngineRules(
        retry=RetryRule(settings.backoff_base, settings.backoff_max, settings.backoff_jitter),
        max_attempts=settings.max_attempts,
        key_retention=settings.idempotency_key_retention,
        retention=Retention(history=settings.history_retention, dead=settings.dead_retention),
        quota=TenantQuota(
            settings.tenant_rate, settings.tenant_rate_window, settings.tenant_backlog, settings.queue_backlog
        ),
        breakers=BreakerRules(settings.breaker_failures, settings.breaker_pause, settings.breaker_max_pause),
    )


async def migrate(url: str) -> list[str]:
    """Migrate the schema of a database; return the names of the applied steps."""
    store = await open_store(url, pool_size=2)
    try:
        return await store.migrate()
    finally:
        await store.aclose()


def recycling_rules(settings: Settings) -> RecyclingRules:
    """Return when the settings replace a process that runs jobs."""
    memory = settings.worker_max_memory_mb
    return RecyclingRules(settings.worker_max_jobs, None if memory is None else memory * MIB)


def tenant_bounds(settings: Settings) -> TenantBounds:
    """Return the default bounds of tenants; a backlog quota in the settings replaces its bound."""
    bounds = TenantBounds(queues=settings.tenant_queues, types=settings.tenant_types, workers=settings.tenant_workers)
    return bounds if settings.tenant_backlog is None else bounds._replace(backlog=settings.tenant_backlog)


async def open_engine(settings: Settings, *, migrate: bool = False, emit: Emit = log_event) -> Engine:
    """Open an engine on the database of the settings; `migrate` updates its schema first."""
    store = await open_store(settings.database_url, pool_size=settings.pool_size)
    try:
        if migrate:
            await store.migrate()
        coordination = await open_coordination(settings, store, emit=emit)
    except BaseException:
        await store.aclose()
        raise
    try:
        return await Engine.open(store, engine_rules(settings), coordination=coordination, emit=emit)
    except BaseException:
        await coordination.aclose()
        await store.aclose()
        raise


async def open_coordination(
    settings: Settings, store: Store, *, emit: Emit = log_event, timeout: float | None = None
) -> Coordination:
    """Open the coordination of nodes: in Redis if the settings name one, or in the database.

    An unavailable Redis is not an error: it is used as soon as it becomes available. `timeout` is that of its
    responses in seconds, for tests.
    """
    if settings.redis_url is None or not settings.redis_for:
        return NoRedis()
    try:
        from holdfast.coordination.redis_bus import RedisBus
        from holdfast.coordination.redis_connection import RedisConnection
        from holdfast.coordination.redis_coordination import REJECTION_WINDOW, RedisCoordination, RedisRejectionCache
        from holdfast.coordination.redis_protocol import RESPONSE_TIMEOUT_S
    except ImportError as error:
        raise Misconfigured(
            f"HOLDFAST_REDIS_URL: the Redis driver is not installed ({error.name}): pip install 'holdfast[redis]'"
        ) from error
    await store.check_schema()
    # Other installations may share the Redis: prefix the keys with the unique id of this database.
    prefix = f"holdfast:{sha256((await store.installation()).encode()).hexdigest()[:16]}:"
    timeout = timeout or RESPONSE_TIMEOUT_S
    connection = RedisConnection(settings.redis_url, [REJECTION_WINDOW], timeout=timeout, emit=emit)
    await connection.start()
    rejections = RedisRejectionCache(connection, prefix) if "limits" in settings.redis_for else NoRejectionCache()
    bus = RedisBus(connection, prefix) if "wakeups" in settings.redis_for else None
    if bus is not None:
        store.join(bus)
    return RedisCoordination(connection, prefix, rejections, bus)


async def open_jobs(settings: Settings, url: str, *, check: bool = True) -> "Engine | RemoteEngine":
    """Open an engine on a database, or a remote engine for the URL of a node.

    With `check`, raise `Unavailable` if the node does not respond, as for a database.
    """
    if is_node(url):
        from holdfast.sdk.remote import RemoteEngine

        remote = await RemoteEngine.open(url, settings.api_key, check=check)
        remote.attempts.on_settled = functools.partial(_log_attempts, engine_rules(settings))
        return remote
    return await open_engine(replace(settings, database_url=url))


def _log_attempts(rules: EngineRules, reports: Sequence[Report], done: Collection[JobId]) -> None:
    """Log attempts that a remote worker has reported.

    The node decides on their retries by the same rules.
    """
    successes, now = logs_successes(), Instant(time.time_ns() // 1_000)
    if not successes:
        reports = [report for report in reports if type(report.outcome) is not Succeeded]
    transitions = [
        lifecycle.settle(report.job, report.outcome, now=now, default=rules.retry, rand=0.5) for report in reports
    ]
    for event in finished_attempts(reports, transitions, done=done, ended_at=now, successes=successes):
        log_event(event)


def preload(url: str) -> None:
    """Import what `open_jobs` needs for this URL, in the fork server; open nothing."""
    match urlsplit(url).scheme.split("+", 1)[0]:
        case "postgresql" | "postgres":
            with needs_driver("PostgreSQL", "postgres"):
                import holdfast.store.postgres.store
        case "mysql" | "mariadb":
            with needs_driver("MySQL", "mysql"):
                import holdfast.store.mysql.store
        case "sqlite":
            import holdfast.store.sqlite.store
        case "http" | "https":
            import holdfast.sdk.remote  # noqa: F401
        case _:  # `open_jobs` reports it
            pass


def is_node(url: str) -> bool:
    """Tell if a URL belongs to a node of the service."""
    return urlsplit(url).scheme in ("http", "https")


def with_key(url: str, key: str | None) -> str:
    """Return the URL of a node with the API key as its password."""
    if key is None:
        return url
    if not is_node(url):
        raise Misconfigured("an API key needs the URL of a node, such as http://localhost:8080")
    at = urlsplit(url)
    return at._replace(netloc=f":{quote(key, safe='')}@{at.netloc.rpartition('@')[2]}").geturl()


def build_api(
    settings: Settings,
    engine: Engine,
    *,
    admin_key: str | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> "Api":
    """Build the HTTP API on an engine.

    Raises:
        Misconfigured: A key is too weak, or its file cannot be read.
    """
    from holdfast import __version__
    from holdfast.api.app import Api
    from holdfast.api.auth.auth_throttle import ClientAddresses, FailureThrottle
    from holdfast.api.auth.authenticator import AdminKey, BearerAuthenticator
    from holdfast.api.auth.tickets import Tickets
    from holdfast.api.auth.tokens import KeyFile, TokenKeys, Tokens
    from holdfast.api.compat.access import AnonymousAccess
    from holdfast.api.compat.systems import routes_of
    from holdfast.api.events.broadcaster import EventBroadcaster
    from holdfast.api.metrics_page import InstallationMetrics
    from holdfast.api.request_slots import LONG_POLL_FACTOR, RequestSlots
    from holdfast.api.routes import ALL
    from holdfast.api.routing import Routes
    from holdfast.api.service import Service, ServiceRules
    from holdfast.api.tenant_guard import TenantGuard
    from holdfast.policy.access import MIN_ADMIN_KEY_BYTES, find_weakness
    from holdfast.policy.tokens import Audience
    from holdfast.telemetry.metrics import EventCounters, RequestMetrics

    key = settings.admin_key or admin_key
    if key is not None and (weak := find_weakness(key, min_bytes=MIN_ADMIN_KEY_BYTES)):
        raise Misconfigured(f"HOLDFAST_ADMIN_KEY: {weak}: create one with 'openssl rand -hex 32'")
    files = []
    if settings.jwt_public_key_file is not None:
        path = Path(settings.jwt_public_key_file)
        files.append(KeyFile("HOLDFAST_JWT_PUBLIC_KEY_FILE", path, settings.jwt_algorithm))
    if settings.jwt_jwks_file is not None:
        files.append(KeyFile("HOLDFAST_JWT_JWKS_FILE", Path(settings.jwt_jwks_file)))
    addresses = ClientAddresses(settings.trusted_proxies)
    authenticator = BearerAuthenticator(
        engine.access.key_cache,
        Tokens(
            TokenKeys(settings.jwt_secret, settings.jwt_previous_secret, tuple(files), monotonic=monotonic),
            Audience(settings.jwt_issuer, settings.jwt_audience),
        ),
        admin=None if key is None else AdminKey(key),
        addresses=addresses,
        throttle=FailureThrottle(monotonic=monotonic),
    )
    anonymous = AnonymousAccess(settings.compat_tenant, addresses, settings.cors_origins)
    routes = Routes(
        (route for route in ALL if settings.demo or not route.demo),
        routes_of(settings.compat_systems, anonymous, demo_mode=settings.demo),
    )
    rules = ServiceRules(
        version=__version__,
        demo=settings.demo,
        cors_origins=settings.cors_origins,
        trusted_proxies=settings.trusted_proxies,
        access_log=settings.access_log,
        base_path=settings.base_path,
        tls=settings.tls_cert is not None,
    )
    stopping = asyncio.Event()
    streams = EventBroadcaster(engine.store, authenticator, stopping, monotonic=monotonic)
    events = EventCounters()
    engine.add_sink(events)
    engine.jobs.payload_schemas.mode = settings.payload_check
    metrics = InstallationMetrics(engine, monotonic=monotonic)
    return Api(
        Service(
            engine,
            authenticator,
            routes,
            rules,
            stopping,
            streams,
            metrics,
            RequestMetrics(),
            events,
            RequestSlots(settings.max_requests_per_key),
            RequestSlots(LONG_POLL_FACTOR * settings.max_requests_per_key),
            RequestSlots(settings.max_requests_per_key),
            TenantGuard(engine, tenant_bounds(settings), monotonic=monotonic),
            Tickets(monotonic=monotonic),
        )
    )


async def require_access(settings: Settings, engine: Engine) -> None:
    """Raise `Misconfigured` unless there is an API key or a way to verify tokens."""
    token_keys = (settings.jwt_secret, settings.jwt_public_key_file, settings.jwt_jwks_file)
    if settings.admin_key is not None or any(token_keys) or await engine.access.has_valid_key():
        return
    fix = "set HOLDFAST_ADMIN_KEY to a long random text (openssl rand -hex 32)"
    if not _is_loopback(settings.host):
        raise Misconfigured(
            f"HOLDFAST_HOST: other machines can reach {settings.host}, and there is no API key yet: {fix}"
        )
    raise Misconfigured(f"HOLDFAST_ADMIN_KEY: no client could call the API, because there is no API key yet: {fix}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
