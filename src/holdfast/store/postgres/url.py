"""Parsing of the database URL: hosts and parameters."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from holdfast.errors import Misconfigured
from holdfast.store.drivers import is_misread, misread
from holdfast.store.postgres.errors import SETTING

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECT_TIMEOUT_S = 600

_FORM = "write it as postgresql://user:password@host:5432/database"
_HOST = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]*)(?::(\d{0,5}))?")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_KNOWN = frozenset(
    {"host", "port", "user", "password", "dbname", "database", "passfile", "application_name", "options"}
    | {"connect_timeout", "target_session_attrs", "sslmode", "sslpassword", "ssl_min_protocol_version", *_FILES}
)
_TARGETS = ("any", "primary", "read-write")
_VERIFYING = ("require", "verify-ca", "verify-full")


class PostgresAddress(NamedTuple):
    """Connection parameters."""

    dsns: tuple[str, ...]
    """URLs for the driver, of one host each, in the order in which they are tried."""
    hosts: tuple[str, ...]
    """Hosts with their ports, for display."""
    connect_timeout: float
    """Seconds for each host."""
    names_application: bool
    """True if the URL has an `application_name`."""


def read_url(url: str) -> PostgresAddress:
    """Parse a URL; raise `Misconfigured`, without showing the password, if it is invalid."""
    try:
        parts = urlsplit(url)
    except ValueError:  # its text may contain a part of the password
        raise Misconfigured(f"{SETTING}: {misread(_FORM)}") from None
    user, at, netloc = parts.netloc.rpartition("@")
    if is_misread(parts):
        raise Misconfigured(f"{SETTING}: {misread(_FORM)}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - _KNOWN):
        raise Misconfigured(
            f"{SETTING}: unknown parameter {unknown[0]!r} in the URL: remove it, or use {', '.join(sorted(_KNOWN))}"
        )
    hosts = _hosts(netloc, options.pop("host", ""), options.pop("port", ""))
    timeout = _connect_timeout(options.pop("connect_timeout", ""))
    _check(options)
    if len(hosts) > 1:
        options.setdefault("target_session_attrs", "read-write")
    scheme, query = parts.scheme.split("+", 1)[0], urlencode(options, quote_via=quote)
    return PostgresAddress(
        tuple(urlunsplit((scheme, f"{user}{at}{host}", parts.path, query, "")) for host in hosts),
        tuple(unquote(host) for host in hosts),
        timeout,
        "application_name" in options,
    )


def _hosts(netloc: str, names: str, ports: str) -> list[str]:
    """Return the hosts in the form of a URL; `host=` and `port=` replace the others."""
    hosts = [quote(name, safe="[]:") for name in names.split(",")] if names else netloc.split(",")
    given = ports.split(",") if ports else []
    if given and len(given) not in (1, len(hosts)):
        raise Misconfigured(f"{SETTING}: port has {len(given)} numbers for {len(hosts)} hosts: give one per host")
    if len(given) == 1:
        given *= len(hosts)
    found = []
    for index, text in enumerate(hosts):
        match = _HOST.fullmatch(text)
        port = given[index] if given else match and match[2]
        if match is None or (port and not (port.isdecimal() and 0 < int(port) < 65_536)):
            raise Misconfigured(f"{SETTING}: {misread(_FORM)}")
        found.append(f"{match[1]}:{port}" if port else match[1])
    return found


def _connect_timeout(text: str) -> float:
    if not text:
        return CONNECT_TIMEOUT_S
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_CONNECT_TIMEOUT_S):
        raise Misconfigured(
            f"{SETTING}: connect_timeout={text[:20]} is not valid: give 1 to {MAX_CONNECT_TIMEOUT_S} whole seconds"
        )
    return float(text)


def _check(options: Mapping[str, str]) -> None:
    target = options.get("target_session_attrs")
    if target is not None and target not in _TARGETS:
        raise Misconfigured(
            f"{SETTING}: target_session_attrs={target[:40]} is not possible, because holdfast writes: "
            f"use one of {', '.join(_TARGETS)}"
        )
    for name in _FILES:
        path = options.get(name)
        if path is not None and not os.access(path, os.R_OK):
            raise Misconfigured(f"{SETTING}: {name}={path} cannot be read: check the path and its permissions")
    if "sslrootcert" in options and options.get("sslmode") not in _VERIFYING:
        raise Misconfigured(
            f"{SETTING}: sslrootcert checks nothing without sslmode: add sslmode=verify-full, or verify-ca to accept "
            "any host name"
        )
