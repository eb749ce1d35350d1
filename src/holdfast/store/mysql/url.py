"""Where the database is: the URL, read once and refused in words."""

import ssl
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.errors import Misconfigured

SETTING = "HOLDFAST_DATABASE_URL"

_FORM = "write it as mysql://user:password@host:3306/database"
_KNOWN = ("unix_socket", "ssl", "ssl_ca")
_SSL_WORDS = ("true", "false", "unverified")


class Address(NamedTuple):
    """What the driver needs to connect."""

    host: str
    port: int
    user: str
    password: str
    database: str
    unix_socket: str | None
    tls: ssl.SSLContext | None

    def arguments(self) -> dict[str, Any]:
        """As the driver's keyword arguments."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password.encode(),  # as text the driver would take it for Latin-1
            "database": self.database,
            "unix_socket": self.unix_socket,
            "ssl": self.tls,
        }

    def __str__(self) -> str:
        """The address without its password, for people."""
        return f"{self.user}@{self.unix_socket or f'{self.host}:{self.port}'}/{self.database}"


def read_url(url: str) -> Address:
    """The address in a URL; `Misconfigured` says what is wrong with it, without repeating the password."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise Misconfigured(f"{SETTING}: the host or port cannot be read ({error}): {_FORM}") from error
    database = unquote(parts.path.lstrip("/"))
    if not database or "/" in database:
        raise Misconfigured(f"{SETTING} names no database: {_FORM}")
    if not parts.username:
        raise Misconfigured(f"{SETTING} names no user: {_FORM}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(options) - set(_KNOWN)):
        raise Misconfigured(f"{SETTING}: unknown parameter {', '.join(unknown)}; there are {', '.join(_KNOWN)}")
    return Address(
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
    wanted = options.get("ssl", "true" if authority else "false")
    if wanted not in _SSL_WORDS:
        raise Misconfigured(f"{SETTING}: ssl={wanted} is not one of {', '.join(_SSL_WORDS)}")
    if wanted == "false":
        return None
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise Misconfigured(f"{SETTING}: the certificates in ssl_ca={authority} cannot be read ({error})") from error
    if wanted == "unverified":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
