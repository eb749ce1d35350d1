"""What an installation can choose: the values, and for each its names, its kind and what it is for."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from holdfast.config.values import (
    Mailbox,
    Networks,
    Numbers,
    Origins,
    PathPrefix,
    Ratio,
    Reader,
    Span,
    Switch,
    Targets,
    Text,
    Url,
    Whole,
    Word,
    Words,
)
from holdfast.model.time import Duration, days, seconds

PREFIX = "HOLDFAST_"
DATABASES = ("postgresql", "postgres", "mysql", "mariadb", "sqlite")

_PASSWORD = re.compile(r"(?<=://)([^/?#:@]*):(.*)(?=@)", re.DOTALL)
_SECRET_OPTION = re.compile(r"(?i)([?&](?:password|passwd|sslpassword)=)[^&#]*")


def shown_url(url: str) -> str:
    """A URL as people may see it: the password masked."""
    return _SECRET_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***", url))


class Settings(Struct, frozen=True, kw_only=True):
    """What an installation can choose. `sources` tells where each value came from that is not a default."""

    database_url: str = "sqlite:///holdfast.db"
    api_url: str | None = None
    api_key: str | None = None
    redis_url: str | None = None
    redis_for: tuple[str, ...] = ("wakeups", "limits")
    host: str = "127.0.0.1"
    port: int = 8080
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
    worker_id: str = ""
    worker_pool_size: int = 0
    job_queue_size: int = 1_000
    poll_interval: Duration = seconds(1)
    lease: Duration = seconds(15)
    backoff_base: Duration = seconds(1)
    backoff_max: Duration = seconds(300)
    backoff_jitter: float = 0.2
    max_attempts: int = 5
    fail_rate: float = 0.0
    drain: Duration = seconds(30)
    log_format: str = "text"
    history_kept: Duration = days(7)
    dead_kept: Duration = days(30)
    keys_kept: Duration = days(7)
    pool_size: int = 10
    tenant_rate: int | None = None
    tenant_rate_window: Duration = seconds(60)
    tenant_backlog: int | None = None
    queue_backlog: int | None = None
    webhook_allow: tuple[str, ...] = ()
    webhook_ports: tuple[int, ...] = (80, 443)
    webhook_http: bool = False
    webhook_timeout: Duration = seconds(30)
    breaker_failures: int = 5
    breaker_rest: Duration = seconds(15)
    breaker_longest_rest: Duration = seconds(60)
    smtp_url: str | None = None
    smtp_from: str | None = None
    smtp_timeout: Duration = seconds(60)
    email_allow: tuple[str, ...] = ()
    strict_durability: bool = False
    demo: bool = False
    sources: Mapping[str, str] = {}

    @property
    def jobs_url(self) -> str:
        """Where applications and workers reach their jobs: a database, or a node if one is named and no database is."""
        if self.api_url is not None and "database_url" not in self.sources:
            return self.api_url
        return self.database_url

    @property
    def renewal(self) -> Duration:
        """How often leases are renewed: two renewals may fail before one runs out."""
        return Duration(self.lease // 3)

    @property
    def processes(self) -> int:
        """How many worker processes to run."""
        return self.worker_pool_size or os.cpu_count() or 1

    def __repr__(self) -> str:
        """Without secrets: settings end up in logs."""
        shown = [f"{each.field}={each.shown(getattr(self, each.field))}" for each in SETTINGS]
        return f"Settings({', '.join(shown)})"


class Setting(NamedTuple):
    """One setting. `key` is its name in `holdfast.toml`; flag and variable are made of it."""

    key: str
    field: str
    reader: Reader
    help: str
    bare: tuple[str, ...] = ()
    """Further variables it answers to; the prefixed one wins."""
    secret: bool = False

    @property
    def flag(self) -> str:
        """Its name on the command line, where a command takes it."""
        return f"--{self.key.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.key.upper()

    def shown(self, value: object) -> str:
        """The value as people may see it."""
        if value is None or value == "":
            return repr(value)
        if self.secret:
            return "***"
        return repr(shown_url(value) if isinstance(value, str) else value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "database_url", "database_url", Url(DATABASES, "postgresql://…, mysql://… or sqlite:///path/to/file.db"),
        "where the jobs are kept", ("DATABASE_URL", "DB_DSN"),
    ),
    Setting(
        "api_url", "api_url", Url(("http", "https"), "http://… or https://…"),
        "a node to reach the jobs through, for applications and workers without a database of their own",
    ),
    Setting(
        "api_key", "api_key", Text("a text in one line"),
        "the key for that node: scope `worker` to work, `submit`, `read` and `cancel` to enqueue and look", secret=True,
    ),
    Setting(
        "redis_url", "redis_url", Url(("redis", "rediss", "unix"), "redis://host:6379/0"),
        "a Redis that wakes, caches and counts; nothing is lost without it",
    ),
    Setting(
        "redis_for", "redis_for", Words(("wakeups", "limits", "keys", "workers")),
        "what that Redis is used for; the rest is asked of the database",
    ),
    Setting("host", "host", Text("an address or a host name"), "the address the API listens on"),
    Setting("port", "port", Whole(0, 65_535), "the port the API listens on; 0 takes a free one", ("PORT",)),
    Setting(
        "tls_cert", "tls_cert", Text("the path of a file"),
        "certificate chain (PEM) of the API, which then speaks HTTPS; needs `tls_key`",
    ),
    Setting("tls_key", "tls_key", Text("the path of a file"), "private key (PEM, not encrypted) of `tls_cert`"),
    Setting(
        "admin_key", "admin_key", Text("a text in one line"),
        "the key of the first administrator, 16 characters or more", secret=True,
    ),
    Setting(
        "jwt_secret", "jwt_secret", Text("a text in one line"),
        "signs tokens (HS256), those of POST /v1/tokens too; 32 bytes or more", secret=True,
    ),
    Setting(
        "jwt_previous_secret", "jwt_previous_secret", Text("a text in one line"),
        "the secret before this one: tokens that name it as their key are still good", secret=True,
    ),
    Setting(
        "jwt_public_key_file", "jwt_public_key_file", Text("the path of a file"),
        "a public key in PEM, for tokens that name no key; read again when it changes",
    ),
    Setting("jwt_algorithm", "jwt_algorithm", Word(("RS256", "ES256", "EdDSA")), "what that key is for"),
    Setting(
        "jwt_jwks_file", "jwt_jwks_file", Text("the path of a file"),
        "keys (JWKS) for tokens that name one of them; read again when it changes",
    ),
    Setting("jwt_issuer", "jwt_issuer", Text("a text in one line"), "who issues tokens: their `iss`"),
    Setting("jwt_audience", "jwt_audience", Text("a text in one line"), "for whom tokens are meant: their `aud`"),
    Setting(
        "trusted_proxies", "trusted_proxies", Networks(),
        "proxies that are believed when they say where a request came from (X-Forwarded-For)",
    ),
    Setting(
        "cors_origins", "cors_origins", Origins(),
        "origins whose pages may call the API from a browser; none by default",
    ),
    Setting(
        "base_path", "base_path", PathPrefix(),
        "the path below which a proxy shows the API and the dashboard, if it leaves it in what it asks for",
    ),
    Setting("access_log", "access_log", Switch(), "whether each request is logged; failures of ours always are"),
    Setting(
        "max_connections", "max_connections", Whole(1, 100_000),
        "connections to the API, for each node; more are told to come back",
    ),
    Setting(
        "worker_id", "worker_id", Text("a text in one line"),
        "what this node is called in the register of workers; by default the machine's name", ("WORKER_ID",),
    ),
    Setting(
        "worker_pool_size", "worker_pool_size", Whole(0, 1_024),
        "worker processes on this node; 0 is one for each core", ("WORKER_POOL_SIZE",),
    ),
    Setting(
        "job_queue_size", "job_queue_size", Whole(1, 10_000),
        "jobs a worker process holds at the most, waiting ones included", ("JOB_QUEUE_SIZE",),
    ),
    Setting(
        "poll_interval_ms", "poll_interval", Span("ms", Duration(1_000), "250ms"),
        "how long an idle worker waits for a wake-up before it looks by itself", ("POLL_INTERVAL_MS",),
    ),
    Setting(
        "lease_seconds", "lease", Span("s", seconds(1), "15s"),
        "how long a worker that says nothing keeps its jobs; renewed every third of it", ("LEASE_SECONDS",),
    ),
    Setting(
        "backoff_base_ms", "backoff_base", Span("ms", Duration(0), "1s"),
        "wait after the first failed attempt; each further one doubles it", ("BACKOFF_BASE_MS",),
    ),
    Setting(
        "backoff_max_ms", "backoff_max", Span("ms", Duration(0), "5m"),
        "longest wait between two attempts", ("BACKOFF_MAX_MS",),
    ),
    Setting(
        "backoff_jitter", "backoff_jitter", Ratio(),
        "by which part, at random, a wait is lengthened or shortened", ("BACKOFF_JITTER",),
    ),
    Setting("max_attempts", "max_attempts", Whole(1, 1_000), "attempts of a job that does not say itself how many"),
    Setting(
        "fail_rate", "fail_rate", Ratio(), "for tests: the part of attempts that fail on purpose", ("FAIL_RATE",)
    ),
    Setting(
        "drain_seconds", "drain", Span("s", Duration(0), "30s"),
        "how long running jobs may go on after a worker was told to stop",
    ),
    Setting("log_format", "log_format", Word(("text", "json")), "how log lines are written"),
    Setting(
        "history_days", "history_kept", Span("d", seconds(60), "7d"), "how long succeeded and cancelled jobs are kept"
    ),
    Setting("dead_days", "dead_kept", Span("d", seconds(60), "30d"), "how long dead letters are kept"),
    Setting("key_days", "keys_kept", Span("d", seconds(60), "7d"), "how long an idempotency key belongs to its job"),
    Setting("pool_size", "pool_size", Whole(1, 1_000), "connections to the database, for each process"),
    Setting(
        "tenant_rate", "tenant_rate", Whole(1, 10**12),
        "cost that a tenant may submit in each window, unless it has a rate of its own",
    ),
    Setting(
        "tenant_rate_window_seconds", "tenant_rate_window", Span("s", seconds(1), "60s"),
        "the window of a tenant that has none of its own",
    ),
    Setting(
        "tenant_backlog", "tenant_backlog", Whole(0, 10**12),
        "unfinished jobs that a tenant may have, unless it has a limit of its own",
    ),
    Setting(
        "queue_backlog", "queue_backlog", Whole(0, 10**12),
        "unfinished jobs that a tenant may have in one queue, unless it has a limit of its own",
    ),
    Setting(
        "webhook_allow", "webhook_allow", Targets(),
        "networks and hosts that webhooks may reach though they are not public, by http and on any port too",
    ),
    Setting(
        "webhook_ports", "webhook_ports", Numbers(1, 65_535), "ports of public hosts that webhooks may reach"
    ),
    Setting("webhook_http", "webhook_http", Switch(), "whether webhooks may reach public hosts without TLS"),
    Setting(
        "webhook_timeout_seconds", "webhook_timeout", Span("s", seconds(0.1), "30s"),
        "how long a delivery may take in all, unless it says so itself",
    ),
    Setting(
        "breaker_failures", "breaker_failures", Whole(1, 1_000),
        "failed deliveries in a row, from any worker, after which a destination is given a rest",
    ),
    Setting(
        "breaker_rest_seconds", "breaker_rest", Span("s", seconds(0.1), "15s"),
        "how long that is before it is tried again; each further failure doubles it",
    ),
    Setting(
        "breaker_longest_rest_seconds", "breaker_longest_rest", Span("s", seconds(0.1), "60s"),
        "the longest rest of a destination",
    ),
    Setting(
        "smtp_url", "smtp_url",
        Url(("smtp", "smtps"), "smtps://user:password@host:465, smtp://… (STARTTLS) or smtp+plain://… (without TLS)"),
        "the server that mail goes out by; without it a worker takes no jobs of type `email`",
    ),
    Setting("smtp_from", "smtp_from", Mailbox(), "the address that all mail comes from"),
    Setting(
        "smtp_timeout_seconds", "smtp_timeout", Span("s", seconds(0.1), "60s"),
        "how long sending a mail may take in all",
    ),
    Setting(
        "email_allow", "email_allow", Targets(),
        "addresses and domains that mail may go to; any by default",
    ),
    Setting(
        "strict_durability", "strict_durability", Switch(),
        "whether nodes and workers refuse to start on a server whose settings let a commit be lost; else they warn",
    ),
    Setting("demo", "demo", Switch(), "demo mode: the job type `demo`, and routes that fill and clear everything"),
)  # fmt: skip
