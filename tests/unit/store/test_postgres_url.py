"""Database URLs of PostgreSQL: hosts and parameters."""

import pytest

from holdfast.errors import Misconfigured
from holdfast.store.postgres.url import CONNECT_TIMEOUT_S, read_url


def test_a_plain_url_is_passed_on_unchanged():
    address = read_url("postgresql+asyncpg://u:p%40ss@db.internal:5433/jobs?sslmode=require")
    assert address.dsns == ("postgresql://u:p%40ss@db.internal:5433/jobs?sslmode=require",)
    assert (address.hosts, address.connect_timeout) == (("db.internal:5433",), CONNECT_TIMEOUT_S)


def test_several_hosts_are_tried_for_one_that_accepts_writes():
    address = read_url("postgresql://u:p@a:5432,b/jobs")
    assert address.dsns == (
        "postgresql://u:p@a:5432/jobs?target_session_attrs=read-write",
        "postgresql://u:p@b/jobs?target_session_attrs=read-write",
    )
    assert address.hosts == ("a:5432", "b")


def test_hosts_may_be_parameters():
    address = read_url("postgresql:///jobs?host=a,b&port=5432,5433&user=u&target_session_attrs=any")
    assert address.hosts == ("a:5432", "b:5433")
    assert address.dsns[1] == "postgresql://b:5433/jobs?user=u&target_session_attrs=any"
    assert read_url("postgresql:///jobs?host=/var/run/postgresql").hosts == ("/var/run/postgresql",)


def test_parameters_reach_the_driver(tmp_path):
    for name in ("ca.pem", "c.pem", "k.pem"):
        (tmp_path / name).touch()
    files = f"sslrootcert={tmp_path}/ca.pem&sslcert={tmp_path}/c.pem&sslkey={tmp_path}/k.pem"
    options = "options=-c%20search_path%3Djobs"
    address = read_url(f"postgresql://h/db?connect_timeout=3&sslmode=verify-full&{files}&{options}&application_name=x")
    assert (address.connect_timeout, address.names_application) == (3.0, True)
    (dsn,) = address.dsns
    assert "connect_timeout" not in dsn
    for part in ("sslmode=verify-full", "sslrootcert=", "sslcert=", "sslkey=", "options=-c%20search_path%3Djobs"):
        assert part in dsn


@pytest.mark.parametrize(
    "query, problem",
    [
        ("connect_timeout=0", "connect_timeout=0 is not valid: give 1 to 600 whole seconds"),
        ("connect_timeout=soon", "connect_timeout=soon is not valid"),
        ("target_session_attrs=standby", "target_session_attrs=standby is not possible, because holdfast writes"),
        ("sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "sslrootcert=/nowhere/ca.pem cannot be read"),
        ("sslcert=/nowhere/c.pem", "sslcert=/nowhere/c.pem cannot be read"),
        ("sslrootcert=/dev/null", "sslrootcert checks nothing without sslmode: add sslmode=verify-full"),
        ("host=a,b&port=1,2,3", "port has 3 numbers for 2 hosts"),
        ("channel_binding=require", "unknown parameter 'channel_binding' in the URL: remove it, or use application_n"),
    ],
)
def test_an_invalid_parameter_is_named(query, problem):
    with pytest.raises(Misconfigured, match="HOLDFAST_DATABASE_URL: ") as refused:
        read_url(f"postgresql://u:secret@h/db?{query}")
    assert problem in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("hosts", ["a:port,b", "a:70000", "a:1,b:0", "a:1:2"])
def test_hosts_that_cannot_be_read_are_refused_without_being_shown(hosts):
    with pytest.raises(Misconfigured, match="the host or port cannot be read") as refused:
        read_url(f"postgresql://u:secret@{hosts}/db")
    assert "secret" not in str(refused.value)
