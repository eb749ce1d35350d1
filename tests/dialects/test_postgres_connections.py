"""Connections to PostgreSQL by the parameters of the URL."""

import socket

import pytest

from holdfast.compose import open_store
from holdfast.errors import Unavailable

pytestmark = pytest.mark.databases("postgres")


def with_query(url, **options):
    separator = "&" if "?" in url else "?"
    return url + separator + "&".join(f"{name}={value}" for name, value in options.items())


def with_host_before(url, host):
    scheme, rest = url.split("://")
    user, at, netloc = rest.rpartition("@")
    return f"{scheme}://{user}{at}{host},{netloc}"


@pytest.fixture
def closed_port():
    """Address at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


async def setting(store, name):
    async def read(tx):
        return await tx._connection.fetchval(f"SELECT current_setting('{name}')")

    return await store.run(read)


async def test_a_store_sets_options_and_the_application_name_of_the_url(database_url):
    url = with_query(
        database_url,
        options="-c%20holdfast.trial%3D7",
        application_name="shop",
        connect_timeout=5,
        target_session_attrs="primary",
    )
    store = await open_store(url)
    try:
        assert await setting(store, "holdfast.trial") == "7"
        assert await setting(store, "application_name") == "shop"
        assert await setting(store, "plan_cache_mode") == "force_generic_plan"
    finally:
        await store.aclose()


async def test_a_store_uses_the_first_of_several_hosts_that_answers(database_url, closed_port):
    store = await open_store(with_host_before(database_url, closed_port))
    try:
        assert await setting(store, "application_name") == "holdfast"
    finally:
        await store.aclose()


async def test_an_error_names_each_host_that_cannot_be_used(database_url, closed_port):
    scheme, rest = database_url.split("://")
    user, at, netloc = rest.rpartition("@")
    _, slash, path = netloc.partition("/")
    with pytest.raises(Unavailable, match=f"no host of the database URL can be used .*{closed_port}.*{closed_port}"):
        await open_store(f"{scheme}://{user}{at}{closed_port},{closed_port}{slash}{path}")


async def test_a_server_that_refuses_writes_is_not_used(database_url):
    url = with_query(database_url, options="-c%20default_transaction_read_only%3Don", target_session_attrs="read-write")
    with pytest.raises(Unavailable, match="a standby, or read-only"):
        await open_store(url)
