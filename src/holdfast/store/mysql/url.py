"""Parsing of the database URL."""

import ssl
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.errors import Misconfigured
from holdfast.store.drivers import is_misread, misread

SETTING = "HOLDFAST_DATABASE_URL"

_FORM = "write it as mysql://user:password@host:3306/database"
_KNOWN = ("unix_socket", "ssl", "ssl_ca")
_SSL_MODES = ("true", "false", "unverified")


class MysqlAddress(NamedTuple):
    """Connection parameters."""

    host: str
    port: int
    user: str
    password: str
    database: str
    unix_socket: str | None
    tls: ssl.SSLContext | None

    def arguments(self) -> dict[str, Any]:
        """Return the driver's keyword arguments."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password.encode(),  # the driver would encode text as Latin-1
            "database": self.database,
            "unix_socket": self.unix_socket,
            "ssl": self.tls,
        }

    def __str__(self) -> str:
        """Return the address without its password, for display."""
        return f"{self.user}@{self.unix_socket or f'{self.host}:{self.port}'}/{self.database}"


def read_url(url: str) -> MysqlAddress:
    """Parse a URL; raise `Misconfigured`, without showing the password, if it is invalid."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError:  # its text may contain a part of the password
        raise Misconfigured(f"{SETTING}: {misread(_FORM)}") from None
    if is_misread(parts):
        raise Misconfigured(f"{SETTING}: {misread(_FORM)}")
    database = unquote(parts.path.lstrip("/"))
    if not database or "/" in database:
        raise Misconfigured(f"{SETTING} names no database: {_FORM}")
    if not parts.username:
        raise Misconfigured(f"{SETTING} names no user: {_FORM}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(options) - set(_KNOWN)):
        raise Misconfigured(f"{SETTING}: unknown parameter {', '.join(unknown)}: use only {', '.join(_KNOWN)}")
    return MysqlAddress(
        host=parts.hostname or "localhost",
        port=port,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        database=database,
        unix_socket=options.get("unix_socket"),
        tls=_tls(options),
    )


def _tls(options: dict[str, str]) -> ssl.SSLContext | None:
    authority = options.get("ssl_ca")
    mode = options.get("ssl", "true" if authority else "false")
    if mode not in _SSL_MODES:
        raise Misconfigured(f"{SETTING}: ssl={mode} is not one of {', '.join(_SSL_MODES)}")
    if mode == "false":
        return None
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise Misconfigured(f"{SETTING}: the certificates in ssl_ca={authority} cannot be read ({error})") from error
    if mode == "unverified":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
