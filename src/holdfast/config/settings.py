"""Settings of an installation: their values and defaults."""

import os
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from holdfast.config.definitions import COMPAT_SYSTEMS, SETTINGS
from holdfast.model.time import Duration, days, seconds


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of a process. `sources` has the flag, variable or key of each value that is set."""

    database_url: str = "sqlite:///holdfast.db"
    api_url: str | None = None
    api_key: str | None = None
    redis_url: str | None = None
    redis_for: tuple[str, ...] = ("wakeups", "limits")
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    admin_key: str | None = None
    jwt_secret: str | None = None
    jwt_previous_secret: str | None = None
    jwt_public_key_file: str | None = None
    jwt_algorithm: str = "RS256"
    jwt_jwks_file: str | None = None
    jwt_issuer: str = "holdfast"
    jwt_audience: str = "holdfast"
    trusted_proxies: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    base_path: str = ""
    access_log: bool = False
    max_connections: int = 2_000
    max_requests_per_key: int = 100
    payload_check: Literal["refuse", "warn", "ignore"] = "refuse"
    worker_id: str = ""
    worker_pool_size: int = 0
    worker_slots: int | None = None
    worker_max_jobs: int | None = None
    worker_max_memory_mb: int | None = None
    job_queue_size: int = 1_000
    poll_interval: Duration = seconds(1)
    lease: Duration = seconds(15)
    worker_silence: Duration = seconds(30)
    backoff_base: Duration = seconds(1)
    backoff_max: Duration = seconds(300)
    backoff_jitter: float = 0.2
    max_attempts: int = 5
    job_timeout: Duration | None = None
    fail_rate: float = 0.0
    drain: Duration = seconds(30)
    log_format: str = "text"
    log_level: str = "info"
    history_retention: Duration = days(7)
    dead_retention: Duration = days(30)
    idempotency_key_retention: Duration = days(7)
    pool_size: int = 10
    tenant_rate: int | None = None
    tenant_rate_window: Duration = seconds(60)
    tenant_backlog: int | None = None
    tenant_queues: int = 1_000
    tenant_types: int = 1_000
    tenant_workers: int = 1_000
    queue_backlog: int | None = None
    webhook_allow: tuple[str, ...] = ()
    webhook_ports: tuple[int, ...] = (80, 443)
    webhook_http: bool = False
    webhook_timeout: Duration = seconds(30)
    breaker_failures: int = 5
    breaker_pause: Duration = seconds(15)
    breaker_max_pause: Duration = seconds(60)
    smtp_url: str | None = None
    smtp_from: str | None = None
    smtp_timeout: Duration = seconds(60)
    email_allow: tuple[str, ...] = ()
    strict_durability: bool = False
    demo: bool = False
    compat: tuple[str, ...] | None = None
    compat_tenant: str | None = None
    sources: Mapping[str, str] = {}

    @property
    def jobs_url(self) -> str:
        """URL through which applications and workers reach jobs: the database, or else the API."""
        if self.api_url is not None and "database_url" not in self.sources:
            return self.api_url
        return self.database_url

    @property
    def renewal(self) -> Duration:
        """Interval of lease renewals: two may fail before the lease expires."""
        return Duration(self.lease // 3)

    @property
    def processes(self) -> int:
        """Number of worker processes to run."""
        return self.worker_pool_size or (1 if self.worker_slots is not None else os.cpu_count()) or 1

    @property
    def compat_systems(self) -> tuple[str, ...]:
        """Source systems whose calls the API serves: those of `compat`, or all in demo mode."""
        if self.compat is not None:
            return self.compat
        return COMPAT_SYSTEMS if self.demo else ()

    def __repr__(self) -> str:
        """Return the settings without secrets, because they may be logged."""
        shown = [f"{each.field}={each.shown(getattr(self, each.field))}" for each in SETTINGS]
        return f"Settings({', '.join(shown)})"
