"""Sources and precedence of settings, and errors that name the source of an invalid value."""

import pytest

from holdfast.compose import engine_rules
from holdfast.config import SETTINGS, Settings, load, shown_url
from holdfast.config.values import Url
from holdfast.errors import Misconfigured
from holdfast.model.time import days, parse_duration, seconds

GOOD = {
    "database_url": ("postgresql://u:p@h/db", "postgresql://u:p@h/db"),
    "api_url": ("https://jobs.example:8443", "https://jobs.example:8443"),
    "api_key": ("hf_1_2", "hf_1_2"),
    "redis_url": ("redis://h:6379/0", "redis://h:6379/0"),
    "redis_for": ("limits, wakeups", ("wakeups", "limits")),
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("9000", 9000),
    "metrics_host": ("10.0.0.5", "10.0.0.5"),
    "metrics_port": ("9091", 9091),
    "tls_cert": ("chain.pem", "chain.pem"),
    "tls_key": ("key.pem", "key.pem"),
    "admin_key": ("hunter2", "hunter2"),
    "jwt_secret": ("hunter3", "hunter3"),
    "jwt_previous_secret": ("hunter4", "hunter4"),
    "jwt_public_key_file": ("/srv/key.pem", "/srv/key.pem"),
    "jwt_algorithm": ("ES256", "ES256"),
    "jwt_jwks_file": ("/srv/keys.json", "/srv/keys.json"),
    "jwt_issuer": ("https://id.example", "https://id.example"),
    "jwt_audience": ("jobs", "jobs"),
    "trusted_proxies": ("10.0.0.0/8, ::1", ("10.0.0.0/8", "::1/128")),
    "cors_origins": ("https://a.example, http://b.example:5173", ("https://a.example", "http://b.example:5173")),
    "base_path": ("/jobs/holdfast/", "/jobs/holdfast"),
    "access_log": ("1", True),
    "max_connections": ("500", 500),
    "max_requests_per_key": ("20", 20),
    "payload_check": ("WARN", "warn"),
    "worker_id": ("node-7", "node-7"),
    "worker_pool_size": ("3", 3),
    "worker_slots": ("12", 12),
    "worker_max_jobs": ("500", 500),
    "worker_max_memory_mb": ("300", 300),
    "job_queue_size": ("50", 50),
    "poll_interval_ms": ("200", parse_duration("200ms")),
    "lease_seconds": ("20", seconds(20)),
    "worker_silence_seconds": ("45", seconds(45)),
    "backoff_base_ms": ("500", parse_duration("500ms")),
    "backoff_max_ms": ("60000", seconds(60)),
    "backoff_jitter": ("0.5", 0.5),
    "max_attempts": ("7", 7),
    "job_timeout_seconds": ("120", seconds(120)),
    "fail_rate": ("0.25", 0.25),
    "drain_seconds": ("5", seconds(5)),
    "log_format": ("json", "json"),
    "log_level": ("DEBUG", "debug"),
    "history_days": ("14", days(14)),
    "dead_days": ("60", days(60)),
    "key_days": ("3", days(3)),
    "pool_size": ("4", 4),
    "tenant_rate": ("500", 500),
    "tenant_rate_window_seconds": ("10s", seconds(10)),
    "tenant_backlog": ("100000", 100_000),
    "tenant_queues": ("50", 50),
    "tenant_types": ("60", 60),
    "tenant_workers": ("70", 70),
    "queue_backlog": ("0", 0),
    "webhook_allow": ("10.1.0.0/16, ::1, Hooks.internal:80", ("10.1.0.0/16", "::1/128", "hooks.internal:80")),
    "webhook_ports": ("443, 8443", (443, 8443)),
    "webhook_http": ("1", True),
    "webhook_timeout_seconds": ("10", seconds(10)),
    "breaker_failures": ("3", 3),
    "breaker_rest_seconds": ("5", seconds(5)),
    "breaker_longest_rest_seconds": ("2m", seconds(120)),
    "smtp_url": ("smtps://u:p@mail.example", "smtps://u:p@mail.example"),
    "smtp_from": ("jobs@example.com", "jobs@example.com"),
    "smtp_timeout_seconds": ("20", seconds(20)),
    "email_allow": ("example.com, ops@example.org", ("example.com", "ops@example.org")),
    "strict_durability": ("1", True),
    "demo": ("1", True),
    "compat": ("d, A", ("d", "a")),
    "compat_tenant": ("acme", "acme"),
}

ALIASES = {
    "DATABASE_URL": "database_url",
    "DB_DSN": "database_url",
    "PORT": "port",
    "WORKER_ID": "worker_id",
    "POLL_INTERVAL_MS": "poll_interval_ms",
    "LEASE_SECONDS": "lease_seconds",
    "INSTANCE_ID": "worker_id",
    "LOG_FORMAT": "log_format",
    "WORKER_POOL_SIZE": "worker_slots",
    "JOB_QUEUE_SIZE": "job_queue_size",
    "BACKOFF_BASE_MS": "backoff_base_ms",
    "BACKOFF_MAX_MS": "backoff_max_ms",
    "BACKOFF_JITTER": "backoff_jitter",
    "FAIL_RATE": "fail_rate",
}

BAD = [
    ("database_url", "oracle://h/db"),
    ("database_url", "/srv/holdfast.db"),
    ("database_url", "postgresql"),
    ("database_url", "postgresql://[half/db"),
    ("api_url", "sqlite:///jobs.db"),
    ("redis_url", "http://h"),
    ("redis_for", "wakeups, coffee"),
    ("host", "two\nlines"),
    ("base_path", "holdfast"),
    ("base_path", "/../etc"),
    ("base_path", "//host"),
    ("webhook_allow", "10.0.0.1/8"),
    ("webhook_allow", "http://example.com"),
    ("webhook_allow", "a b"),
    ("webhook_ports", "443, 0"),
    ("smtp_url", "mail.example:25"),
    ("smtp_from", "jobs"),
    ("smtp_from", "Jobs <jobs@example.com>"),
    ("port", "eighty"),
    ("port", "-1"),
    ("port", "65536"),
    ("port", "80.5"),
    ("worker_id", " "),
    ("worker_pool_size", "-1"),
    ("worker_pool_size", "many"),
    ("worker_max_jobs", "0"),
    ("worker_max_memory_mb", "1"),
    ("job_queue_size", "0"),
    ("poll_interval_ms", "0"),
    ("poll_interval_ms", "soon"),
    ("lease_seconds", "0.5"),
    ("lease_seconds", "999ms"),
    ("lease_seconds", "nan"),
    ("lease_seconds", "inf"),
    ("lease_seconds", "-15"),
    ("backoff_base_ms", "-1"),
    ("backoff_max_ms", "x"),
    ("backoff_jitter", "1.1"),
    ("backoff_jitter", "nan"),
    ("max_attempts", "0"),
    ("max_attempts", "1001"),
    ("job_timeout_seconds", "0"),
    ("fail_rate", "-0.1"),
    ("fail_rate", "50%"),
    ("drain_seconds", "1e300"),
    ("log_format", "xml"),
    ("log_level", "loud"),
    ("jwt_algorithm", "HS256"),
    ("jwt_algorithm", "none"),
    ("trusted_proxies", "10.0.0.1/8"),
    ("trusted_proxies", "proxy.example"),
    ("cors_origins", "*"),
    ("cors_origins", "null"),
    ("cors_origins", "https://a.example/"),
    ("access_log", "perhaps"),
    ("max_connections", "0"),
    ("history_days", "0"),
    ("dead_days", "-1"),
    ("key_days", "week"),
    ("pool_size", "0"),
    ("tenant_rate", "0"),
    ("tenant_rate", "many"),
    ("tenant_rate_window_seconds", "0.5"),
    ("tenant_backlog", "-1"),
    ("queue_backlog", "1.5"),
    ("worker_slots", "0"),
    ("compat", "a, f"),
    ("compat", "a, a"),
    ("compat", "a, none"),
    ("compat_tenant", "two words"),
    ("database_url", "root:hunter2@tcp(127.0.0.1:3306)"),
    ("database_url", "root@carrier-pigeon(loft)/jobs"),
    ("database_url", "root@tcp(h)/jobs?tls=preferred"),
    ("database_url", "host=h user=u dbname='half"),
]


@pytest.fixture
def read(tmp_path):
    """Load settings from only the flags, file and variables that the test passes."""

    def call(flags=None, *, toml=None, file=None, **environ):
        if toml is not None:
            (tmp_path / "holdfast.toml").write_text(toml)
        return load(flags or {}, environ=environ, file=file, folder=tmp_path)

    return call


def _setting(key):
    return next(setting for setting in SETTINGS if setting.key == key)


def _value(settings, key):
    return getattr(settings, _setting(key).field)


def test_every_setting_has_a_default(read):
    settings = read()
    assert settings == Settings()
    assert settings.database_url == "sqlite:///holdfast.db"
    assert settings.sources == {}


def test_every_setting_has_a_case_here():
    assert list(GOOD) == [setting.key for setting in SETTINGS]
    assert {alias: s.key for s in SETTINGS for alias in s.bare} == ALIASES


@pytest.mark.parametrize("key", GOOD)
def test_a_setting_is_read_from_its_variable_its_flag_and_its_key(read, key):
    text, value = GOOD[key]
    assert _value(read(**{_setting(key).variable: text}), key) == value
    assert _value(read({key: text}), key) == value
    assert _value(read(toml=f'{key} = "{text}"'), key) == value


@pytest.mark.parametrize("alias, key", ALIASES.items())
def test_a_setting_is_read_from_its_bare_name(read, alias, key):
    text, value = GOOD[key]
    settings = read(**{alias: text})
    assert _value(settings, key) == value
    assert settings.sources[key] == alias


def test_flags_win_over_prefixed_and_bare_variables_the_file_and_the_default(read):
    toml = "port = 4"
    assert read({"port": "1"}, toml=toml, HOLDFAST_PORT="2", PORT="3").port == 1
    assert read(toml=toml, HOLDFAST_PORT="2", PORT="3").port == 2
    assert read(toml=toml, PORT="3").port == 3
    assert read(toml=toml).port == 4
    assert read(toml="").port == 8080


def test_the_first_bare_name_wins(read):
    assert read(DATABASE_URL="sqlite:///a.db", DB_DSN="sqlite:///b.db").database_url == "sqlite:///a.db"


def test_an_empty_variable_is_not_set(read):
    assert read(toml="port = 4", HOLDFAST_PORT="").port == 4


@pytest.mark.parametrize("key, text", BAD)
def test_a_bad_value_is_refused_naming_its_source_and_what_is_expected(read, key, text):
    setting = _setting(key)
    sources = {
        setting.variable: lambda: read(**{setting.variable: text}),
        setting.flag: lambda: read({key: text}),
        **{alias: lambda alias=alias: read(**{alias: text}) for alias in setting.bare},
    }
    for source, load_source in sources.items():
        with pytest.raises(Misconfigured) as refused:
            load_source()
        message = str(refused.value)
        assert message.startswith(f"{source}: ")
        assert (repr(text) in message) is not isinstance(setting.reader, Url)  # a URL may contain a password
        assert setting.reader.expected in message


@pytest.mark.parametrize(
    "line, message",
    [
        ("port = true", "port in"),
        ("port = 80.0", "port in"),
        ("fail_rate = true", "fail_rate in"),
        ("lease_seconds = false", "lease_seconds in"),
        ("host = 5", "host in"),
        ("port = [1]", "port in"),
    ],
)
def test_toml_values_of_the_wrong_type_are_refused(read, line, message):
    with pytest.raises(Misconfigured, match=message):
        read(toml=line)


@pytest.mark.parametrize(
    "key, similar",
    [
        ("prot", "port"),
        ("lease_second", "lease_seconds"),
        ("HOLDFAST_PORT", "port"),
        ("backoff_jiter", "backoff_jitter"),
    ],
)
def test_an_unknown_key_is_refused_with_a_similar_one(read, key, similar):
    with pytest.raises(Misconfigured, match=f"^{key} in .*holdfast.toml.*did you mean {similar}\\?"):
        read(toml=f"{key} = 1")


def test_an_unknown_key_without_a_similar_one_lists_all_keys(read):
    with pytest.raises(Misconfigured, match="database_url, api_url"):
        read(toml="zzzzzz = 1")


def test_an_invalid_toml_file_is_named(read):
    with pytest.raises(Misconfigured, match=r"holdfast\.toml is not valid TOML"):
        read(toml="port: 8080")


def test_a_named_file_must_exist(read, tmp_path):
    with pytest.raises(Misconfigured, match=r"--config: no such file: .*absent\.toml"):
        read(file=tmp_path / "absent.toml")
    with pytest.raises(Misconfigured, match=r"HOLDFAST_CONFIG: no such file: .*absent\.toml"):
        read(HOLDFAST_CONFIG=str(tmp_path / "absent.toml"))


def test_a_named_file_replaces_the_default_file(read, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text("port = 5")
    assert read(toml="port = 4", file=other).port == 5
    assert read(toml="port = 4", HOLDFAST_CONFIG=str(other)).port == 5


def test_a_file_that_is_not_text_is_refused(read, tmp_path):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(Misconfigured, match="not UTF-8"):
        read(file=binary)
    with pytest.raises(Misconfigured, match="cannot read"):
        read(file=tmp_path)


def test_durations_may_be_written_with_their_unit(read):
    assert read(HOLDFAST_LEASE_SECONDS="1m").lease == seconds(60)
    assert read(HOLDFAST_POLL_INTERVAL_MS="2s").poll_interval == seconds(2)
    assert read(toml='history_days = "36h"').history_retention == days(1.5)


def test_the_maximum_backoff_must_not_be_shorter_than_the_first(read):
    with pytest.raises(Misconfigured, match=r"^BACKOFF_MAX_MS: .*500 ms.*1000 ms \(the default of backoff_base_ms\)"):
        read(BACKOFF_MAX_MS="500")


def test_a_lease_is_renewed_three_times_within_its_length(read):
    assert read(HOLDFAST_LEASE_SECONDS="30").renewal == seconds(10)


def test_zero_processes_means_one_per_core(read, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert read().processes == 6
    assert read(HOLDFAST_WORKER_POOL_SIZE="2").processes == 2


def test_the_pool_size_of_source_systems_counts_jobs_of_one_process(read):
    settings = read(WORKER_POOL_SIZE="5")
    assert (settings.worker_slots, settings.processes) == (5, 1)
    assert read(WORKER_POOL_SIZE="5", HOLDFAST_WORKER_POOL_SIZE="3").processes == 3


@pytest.mark.parametrize(
    "dsn, url",
    [
        ("root:root@tcp(127.0.0.1:3310)/scheduler?parseTime=true", "mysql://root:root@127.0.0.1:3310/scheduler"),
        ("u:p@ss/w:rd@tcp([::1]:3306)/jobs", "mysql://u:p%40ss%2Fw%3Ard@[::1]:3306/jobs"),
        ("u@/jobs?loc=Asia%2FTokyo", "mysql://u@127.0.0.1/jobs"),
        ("u@unix(/run/mysql.sock)/jobs", "mysql://u@127.0.0.1/jobs?unix_socket=%2Frun%2Fmysql.sock"),
        ("u:p@tcp(db)/jobs?tls=skip-verify&timeout=5s", "mysql://u:p@db/jobs?ssl=unverified"),
        (
            "host=db user=u password='it''s' dbname=jobs",
            None,
        ),
        (
            r"host=db port=5433 user=u password='it\'s' dbname=jobs sslmode=disable TimeZone=UTC",
            "postgresql://u:it%27s@db:5433/jobs?sslmode=disable",
        ),
        ("user=u dbname=jobs host=/run/pg", "postgresql://u@/jobs?host=%2Frun%2Fpg&port=5432"),
    ],
)
def test_connection_strings_of_go_drivers_become_urls(read, dsn, url):
    if url is None:
        with pytest.raises(Misconfigured, match="DB_DSN: invalid value: expected postgresql://"):
            read(DB_DSN=dsn)
        return
    assert read(DB_DSN=dsn).database_url == url


def test_compatibility_is_off_unless_it_is_set_or_in_demo_mode(read):
    assert read().compat_systems == ()
    assert read(HOLDFAST_DEMO="1").compat_systems == ("a", "b", "c", "d", "e")
    assert read(HOLDFAST_DEMO="1", HOLDFAST_COMPAT="none").compat_systems == ()
    assert read(HOLDFAST_COMPAT="d,a").compat_systems == ("d", "a")


def test_secrets_do_not_appear_in_repr_or_errors(read):
    settings = read(
        HOLDFAST_ADMIN_KEY="hunter2", DATABASE_URL="mysql://u:tops%40cret@h/db", HOLDFAST_REDIS_URL="redis://:pw3@h"
    )
    for secret in ("hunter2", "tops", "pw3"):
        assert secret not in repr(settings)
    with pytest.raises(Misconfigured) as refused:
        read(HOLDFAST_ADMIN_KEY="hunter2\nx")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(Misconfigured) as refused:
        read(DATABASE_URL="oracle://u:hunter2@h/db")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:se@c:r/et@h/db", "postgresql://u:***@h/db"),
        ("redis://:secret@h", "redis://:***@h"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("postgresql://h/db?password=secret&sslmode=require", "postgresql://h/db?password=***&sslmode=require"),
        ("sqlite:///holdfast.db", "sqlite:///holdfast.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url, shown):
    assert shown_url(url) == shown


def test_engine_rules_come_from_the_settings(read):
    rules = engine_rules(
        read(
            BACKOFF_BASE_MS="2000",
            BACKOFF_MAX_MS="9000",
            BACKOFF_JITTER="0",
            HOLDFAST_MAX_ATTEMPTS="3",
            HOLDFAST_KEY_DAYS="1",
        )
    )
    assert (rules.retry.base, rules.retry.cap, rules.retry.jitter) == (seconds(2), seconds(9), 0)
    assert (rules.max_attempts, rules.key_retention) == (3, days(1))
    assert (rules.retention.history, rules.retention.dead) == (days(7), days(30))
