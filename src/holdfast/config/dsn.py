"""Connection strings of Go drivers, converted to database URLs."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode

_ENDPOINT = re.compile(r"(?:(?P<net>tcp|tcp6|unix)(?:\((?P<address>[^()]*)\))?)?")
_KEYWORD = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s'\\]*))(?=\s|$)")
_TLS = {"true": "true", "skip-verify": "unverified", "false": "false"}
"""Value of `ssl` in our URLs for each of `tls` in Go; `preferred` has no counterpart."""


def url_of_dsn(text: str) -> str | None:
    """Return the URL of a Go connection string; None if the text is not one.

    Two forms are known: `user:password@tcp(host:3306)/database?parseTime=true` of go-sql-driver/mysql, and
    `host=… port=5432 user=… password=… dbname=… sslmode=disable` of pgx and lib/pq.
    """
    if "://" in text:
        return None
    return _mysql_url(text) or _postgres_url(text)


def _mysql_url(text: str) -> str | None:
    """Convert a DSN of MySQL; options that only concern Go, such as `parseTime`, are dropped."""
    # Like the driver, take the last slash and the last @ before it: passwords may contain both.
    head, slash, tail = text.rpartition("/")
    credentials, at, endpoint = head.rpartition("@")
    match = _ENDPOINT.fullmatch(endpoint)
    if not slash or not at or match is None:
        return None
    user, colon, password = credentials.partition(":")
    database, _, query = tail.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    address, kept = match["address"] or "", {}
    if "tls" in options:
        if options["tls"] not in _TLS:
            return None
        kept["ssl"] = _TLS[options["tls"]]
    if match["net"] == "unix":
        kept["unix_socket"], address = address, ""
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if colon else "")
    return _url("mysql", login, address or "127.0.0.1", database, kept)


def _postgres_url(text: str) -> str | None:
    """Convert a connection string of keywords and values."""
    values: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _KEYWORD.match(text, position)
        if match is None:
            return None
        values[match[1]] = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        position = match.end()
    if not {"host", "dbname", "user"} & set(values):
        return None
    host, port = values.pop("host", "127.0.0.1"), values.pop("port", "5432")
    user, password, database = (values.pop(name, "") for name in ("user", "password", "dbname"))
    values.pop("TimeZone", None)
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    if host.startswith("/"):  # the folder of a socket
        return _url("postgresql", login, "", database, {"host": host, "port": port, **values})
    return _url("postgresql", login, f"{f'[{host}]' if ':' in host else host}:{port}", database, values)


def _url(scheme: str, login: str, address: str, database: str, options: Mapping[str, str]) -> str:
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"{scheme}://{login}{'@' if login else ''}{address}/{quote(database, safe='')}{query}"
