"""Definitions of the settings: names, parsers and descriptions."""

import re
from typing import NamedTuple

from holdfast.config.values import (
    Choice,
    Choices,
    DurationValue,
    Flag,
    Fraction,
    Int,
    IntList,
    Mailbox,
    Networks,
    Origins,
    PathPrefix,
    Reader,
    Systems,
    Targets,
    TenantName,
    Text,
    Url,
)
from holdfast.model.time import Duration, seconds

PREFIX = "HOLDFAST_"
DATABASES = ("postgresql", "postgres", "mysql", "mariadb", "sqlite")
DATABASE_URL = Url(
    DATABASES, "postgresql://…, mysql://… or sqlite:///path/to/file.db, or a DSN of a Go driver", accepts_dsn=True
)
COMPAT_SYSTEMS = ("a", "b", "c", "d", "e")

_PASSWORD = re.compile(r"(?<=://)([^/?#:@]*):(.*)(?=@)", re.DOTALL)
_SECRET_OPTION = re.compile(r"(?i)([?&](?:password|passwd|sslpassword)=)[^&#]*")


def shown_url(url: str) -> str:
    """Return a URL with its password masked."""
    return _SECRET_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***", url))


class Setting(NamedTuple):
    """Names, parser and description of a setting. `key` is its name in `holdfast.toml`."""

    key: str
    field: str
    reader: Reader
    help: str
    bare: tuple[str, ...] = ()
    """Other environment variables that set it; the prefixed one wins."""
    secret: bool = False

    @property
    def flag(self) -> str:
        """Name on the command line, if a command accepts it."""
        return f"--{self.key.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """Name in the environment."""
        return PREFIX + self.key.upper()

    def shown(self, value: object) -> str:
        """Format a value for people, with secrets masked."""
        if value is None or value == "":
            return repr(value)
        if self.secret:
            return "***"
        return repr(shown_url(value) if isinstance(value, str) else value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "database_url", "database_url", DATABASE_URL,
        "database that stores the jobs", ("DATABASE_URL", "DB_DSN"),
    ),
    Setting(
        "api_url", "api_url", Url(("http", "https"), "http://… or https://…"),
        "node that applications and workers use instead of a database",
    ),
    Setting(
        "api_key", "api_key", Text("text in one line"),
        "API key for that node: scope `worker` for workers, `submit`, `read` and `cancel` for applications",
        secret=True,
    ),
    Setting(
        "redis_url", "redis_url", Url(("redis", "rediss", "unix"), "redis://host:6379/0"),
        "Redis for wake-ups, caches and counters; optional, and safe to lose",
    ),
    Setting(
        "redis_for", "redis_for", Choices(("wakeups", "limits")),
        "features that use Redis; the others use the database",
    ),
    Setting("host", "host", Text("an address or a host name"), "address that the API listens on"),
    Setting("port", "port", Int(0, 65_535), "port that the API listens on; 0 chooses a free one", ("PORT",)),
    Setting("metrics_host", "metrics_host", Text("an address or a host name"), "address of `metrics_port`"),
    Setting(
        "metrics_port", "metrics_port", Int(0, 65_535),
        "private port for `/metrics`, `/healthz` and `/readyz` without a key; 0 chooses a free one",
    ),
    Setting(
        "tls_cert", "tls_cert", Text("path of a file"),
        "certificate chain (PEM) of the API, which then speaks HTTPS; needs `tls_key`",
    ),
    Setting("tls_key", "tls_key", Text("path of a file"), "private key (PEM, not encrypted) of `tls_cert`"),
    Setting(
        "admin_key", "admin_key", Text("text in one line"),
        "API key of the first administrator, at least 16 characters", secret=True,
    ),
    Setting(
        "jwt_secret", "jwt_secret", Text("text in one line"),
        "signing key of tokens (HS256), including those of POST /v1/tokens; at least 32 bytes", secret=True,
    ),
    Setting(
        "jwt_previous_secret", "jwt_previous_secret", Text("text in one line"),
        "previous secret; tokens signed with it remain valid", secret=True,
    ),
    Setting(
        "jwt_public_key_file", "jwt_public_key_file", Text("path of a file"),
        "public key (PEM) for tokens without a key id; reloaded when it changes",
    ),
    Setting("jwt_algorithm", "jwt_algorithm", Choice(("RS256", "ES256", "EdDSA")), "algorithm of that public key"),
    Setting(
        "jwt_jwks_file", "jwt_jwks_file", Text("path of a file"),
        "public keys (JWKS) for tokens with a key id; reloaded when it changes",
    ),
    Setting("jwt_issuer", "jwt_issuer", Text("text in one line"), "issuer of tokens (`iss`)"),
    Setting("jwt_audience", "jwt_audience", Text("text in one line"), "audience of tokens (`aud`)"),
    Setting(
        "trusted_proxies", "trusted_proxies", Networks(),
        "proxies whose X-Forwarded-For header is trusted",
    ),
    Setting(
        "cors_origins", "cors_origins", Origins(),
        "web origins that may call the API from a browser; default: none",
    ),
    Setting(
        "base_path", "base_path", PathPrefix(),
        "path prefix of API and dashboard behind a proxy that does not remove it",
    ),
    Setting("access_log", "access_log", Flag(), "log every request; server errors are always logged"),
    Setting(
        "max_connections", "max_connections", Int(1, 100_000),
        "connections to the API per node; a further one closes the longest idle one",
    ),
    Setting(
        "max_requests_per_key", "max_requests_per_key", Int(1, 100_000),
        "requests per API key in progress on a node; further ones wait, up to 10 s. Long polls: five times as many",
    ),
    Setting(
        "payload_check", "payload_check", Choice(("refuse", "warn", "ignore")),
        "payloads submitted over HTTP that do not match the schema of their job type: refuse them, or only log it",
    ),
    Setting(
        "worker_id", "worker_id", Text("text in one line"),
        "name of this node in the list of workers; default: the host name", ("WORKER_ID", "INSTANCE_ID"),
    ),
    Setting(
        "worker_pool_size", "worker_pool_size", Int(0, 1_024),
        "worker processes on this node; 0 for one per core, or for one process if `worker_slots` is set",
    ),
    Setting(
        "worker_slots", "worker_slots", Int(1, 1_000),
        "jobs of a queue that a worker process runs at once, without `--queues`", ("WORKER_POOL_SIZE",),
    ),
    Setting(
        "worker_max_jobs", "worker_max_jobs", Int(1, 10**9),
        "jobs after which a worker or job process is replaced; default: never",
    ),
    Setting(
        "worker_max_memory_mb", "worker_max_memory_mb", Int(16, 10**6),
        "resident MiB above which a worker or job process is replaced after a job; default: never",
    ),
    Setting(
        "job_queue_size", "job_queue_size", Int(1, 10_000),
        "maximum number of jobs that a worker process holds, including waiting ones", ("JOB_QUEUE_SIZE",),
    ),
    Setting(
        "poll_interval_ms", "poll_interval", DurationValue("ms", Duration(1_000), "250ms"),
        "time that an idle worker waits for a wake-up before it polls", ("POLL_INTERVAL_MS",),
    ),
    Setting(
        "lease_seconds", "lease", DurationValue("s", seconds(1), "15s"),
        "lease of a worker: time after the last heartbeat until its jobs are reclaimed", ("LEASE_SECONDS",),
    ),
    Setting(
        "worker_silence_seconds", "worker_silence", DurationValue("s", seconds(2), "30s"),
        "time without a sign of life after which a worker process is killed and replaced",
    ),
    Setting(
        "backoff_base_ms", "backoff_base", DurationValue("ms", Duration(0), "1s"),
        "delay after the first failed attempt; doubles with each further one", ("BACKOFF_BASE_MS",),
    ),
    Setting(
        "backoff_max_ms", "backoff_max", DurationValue("ms", Duration(0), "5m"),
        "maximum delay between two attempts", ("BACKOFF_MAX_MS",),
    ),
    Setting(
        "backoff_jitter", "backoff_jitter", Fraction(),
        "fraction by which a delay is randomly lengthened or shortened", ("BACKOFF_JITTER",),
    ),
    Setting("max_attempts", "max_attempts", Int(1, 1_000), "attempts of a job that sets no number itself"),
    Setting(
        "job_timeout_seconds", "job_timeout", DurationValue("s", seconds(0.1), "5m"),
        "timeout of an attempt if neither the job nor its handler has one, for workers; default: none",
    ),
    Setting(
        "fail_rate", "fail_rate", Fraction(), "fraction of attempts that fail on purpose, for tests", ("FAIL_RATE",)
    ),
    Setting(
        "drain_seconds", "drain", DurationValue("s", Duration(0), "30s"),
        "time that running jobs get to finish when a worker stops",
    ),
    Setting(
        "log_format", "log_format", Choice(("text", "json", "terminal")),
        "format of log lines; `up` and `work` use `terminal` on a terminal unless this is set", ("LOG_FORMAT",),
    ),
    Setting(
        "log_level", "log_level", Choice(("debug", "info", "warning", "error")),
        "lowest level of log lines; `debug` logs attempts that succeed, and the traceback of every failure",
    ),
    Setting(
        "history_days", "history_retention", DurationValue("d", seconds(60), "7d"),
        "retention of succeeded and cancelled jobs",
    ),
    Setting("dead_days", "dead_retention", DurationValue("d", seconds(60), "30d"), "retention of dead letters"),
    Setting(
        "key_days", "idempotency_key_retention", DurationValue("d", seconds(60), "7d"), "retention of idempotency keys"
    ),
    Setting("pool_size", "pool_size", Int(1, 1_000), "database connections per pool; a worker process has two pools"),
    Setting(
        "tenant_rate", "tenant_rate", Int(1, 10**12),
        "cost that a tenant may submit per window, unless it has its own rate",
    ),
    Setting(
        "tenant_rate_window_seconds", "tenant_rate_window", DurationValue("s", seconds(1), "60s"),
        "rate window of tenants without their own",
    ),
    Setting(
        "tenant_backlog", "tenant_backlog", Int(0, 10**12),
        "unfinished jobs that a tenant may have, unless it has its own quota; default: about 1,000,000 over HTTP",
    ),
    Setting(
        "tenant_queues", "tenant_queues", Int(1, 10**6),
        "queues that a tenant may use over HTTP, about; counted every few seconds",
    ),
    Setting(
        "tenant_types", "tenant_types", Int(1, 10**6),
        "job types that a tenant may use over HTTP, about; counted every few seconds",
    ),
    Setting(
        "tenant_workers", "tenant_workers", Int(1, 10**6),
        "workers without a database that a tenant may register",
    ),
    Setting(
        "queue_backlog", "queue_backlog", Int(0, 10**12),
        "unfinished jobs that a tenant may have in one queue, unless it has its own quota",
    ),
    Setting(
        "webhook_allow", "webhook_allow", Targets(),
        "non-public networks and hosts that webhooks may reach, also with http and on any port",
    ),
    Setting(
        "webhook_ports", "webhook_ports", IntList(1, 65_535), "ports of public hosts that webhooks may reach"
    ),
    Setting("webhook_http", "webhook_http", Flag(), "allow webhooks to public hosts without TLS"),
    Setting(
        "webhook_timeout_seconds", "webhook_timeout", DurationValue("s", seconds(0.1), "30s"),
        "total time of a webhook delivery that sets none itself",
    ),
    Setting(
        "breaker_failures", "breaker_failures", Int(1, 1_000),
        "consecutive failed deliveries, from any worker, after which the breaker of a destination opens",
    ),
    Setting(
        "breaker_rest_seconds", "breaker_pause", DurationValue("s", seconds(0.1), "15s"),
        "time until an open breaker lets a delivery through; doubles with each further failure",
    ),
    Setting(
        "breaker_longest_rest_seconds", "breaker_max_pause", DurationValue("s", seconds(0.1), "60s"),
        "maximum time that a breaker stays open",
    ),
    Setting(
        "smtp_url", "smtp_url",
        Url(("smtp", "smtps"), "smtps://user:password@host:465, smtp://… (STARTTLS) or smtp+plain://… (without TLS)"),
        "mail server; without it, a worker runs no jobs of type `email`",
    ),
    Setting("smtp_from", "smtp_from", Mailbox(), "sender address of all mail"),
    Setting(
        "smtp_timeout_seconds", "smtp_timeout", DurationValue("s", seconds(0.1), "60s"),
        "total time of sending a mail",
    ),
    Setting(
        "email_allow", "email_allow", Targets(),
        "addresses and domains that mail may be sent to; default: any",
    ),
    Setting(
        "strict_durability", "strict_durability", Flag(),
        "refuse to start, instead of warning, if the server's settings allow commits to be lost",
    ),
    Setting(
        "demo", "demo", Flag(),
        "demo mode: job type `demo`, and routes that create demo jobs or delete everything",
    ),
    Setting(
        "compat", "compat", Systems(COMPAT_SYSTEMS),
        "source systems whose own calls the API serves; the first one that has a call decides the words of its "
        "responses. Default: none, in demo mode all",
    ),
    Setting(
        "compat_tenant", "compat_tenant", TenantName(),
        "tenant of calls without credentials to the source systems a, d and e, from any address; default: such calls "
        "are accepted only from this machine, for the tenant `default`",
    ),
)  # fmt: skip
