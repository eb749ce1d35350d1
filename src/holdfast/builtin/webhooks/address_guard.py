"""Guard that checks the address of every webhook connection when its socket is created.

Neither the payload of a job nor the name server that resolves its host is trusted. No connection is opened to an
address that was not checked.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import Invalid
from holdfast.policy.breaker import destination_of

if TYPE_CHECKING:
    from yarl import URL

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_URL_LENGTH = 4_096
MAX_DESTINATION_LENGTH = 300

NOT_PUBLIC = "its name does not resolve to a public address (HOLDFAST_WEBHOOK_ALLOW can allow others)"
"""Error for unknown and for internal names alike, so that a tenant cannot probe them."""

_PUBLIC_IPV6 = ip_network("2000::/3")
"""The part of IPv6 that is assigned to public networks."""

_DENIED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "on this host"),
    ("10.0.0.0/8", "on a private network"),
    ("100.64.0.0/10", "on a carrier's internal network"),
    ("127.0.0.0/8", "on this host"),
    ("168.63.129.16/32", "an internal service of a cloud"),
    ("169.254.0.0/16", "link-local, where clouds serve their metadata"),
    ("172.16.0.0/12", "on a private network"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "reserved for documentation"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("192.168.0.0/16", "on a private network"),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("198.51.100.0/24", "reserved for documentation"),
    ("203.0.113.0/24", "reserved for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("2001::/23", "reserved for protocols, Teredo among them"),
    ("2001:db8::/32", "reserved for documentation"),
    ("3fff::/20", "reserved for documentation"),
)
_DENIED_NETWORKS = tuple((ip_network(network), why) for network, why in _DENIED)

_LAST_32 = tuple(ip_network(network) for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
"""IPv6 networks that embed an IPv4 address: compatible, mapped, translated, and NAT64."""
_COMPATIBLE = _LAST_32[0]
_6TO4 = ip_network("2002::/16")
_TEREDO = ip_network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE, 0x0100_5EFE, 0x0300_5EFE)


class AddressRefused(OSError):
    """The guard does not allow a connection to this address."""


class Target(NamedTuple):
    """Destination of a request."""

    url: "URL"
    destination: str
    """Scheme, host and port."""
    trusted: bool
    """The settings allow this host by name."""


class GuardRules(NamedTuple):
    """Addresses and ports that the settings allow."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    """Host names, with or without a port: `hooks.internal`, `hooks.internal:8080`."""
    ports: frozenset[int] = frozenset({80, 443})
    plain_http: bool = False

    @classmethod
    def of(cls, allowed: Iterable[str], ports: Iterable[int], *, plain_http: bool) -> "GuardRules":
        """Return the rules of the settings; an entry that is not a network is a host name."""
        networks: list[Network] = []
        hosts: list[str] = []
        for entry in allowed:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                hosts.append(entry.lower())
        return cls(tuple(networks), frozenset(hosts), frozenset(ports), plain_http)


_target: ContextVar[tuple[Target, list[str]]] = ContextVar("holdfast webhook target")


class AddressGuard:
    """Creates sockets only for addresses that a request may reach."""

    def __init__(self, rules: GuardRules = GuardRules()) -> None:
        self._rules = rules

    def parse(self, url: str) -> Target:
        """Return the destination of a URL; raises `Invalid` for a URL that is never allowed."""
        from yarl import URL  # noqa: PLC0415 - most workers send no webhooks

        if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or set(url) & {" ", "\\"}:
            raise _invalid(f"give at most {MAX_URL_LENGTH:,} printable ASCII characters, without spaces or backslashes")
        try:
            parsed = URL(url)
            host, port = parsed.raw_host, parsed.port
        except (ValueError, TypeError, UnicodeError) as error:
            raise _invalid(f"it cannot be read ({error})") from None
        if parsed.scheme not in ("http", "https") or not host or not port:
            raise _invalid("give one such as https://example.com/hooks")
        if parsed.raw_user is not None or parsed.raw_password is not None:
            raise _invalid("give no user or password in it: send an Authorization header")
        name = host.rstrip(".").lower()
        trusted = name in self._rules.hosts or f"{name}:{port}" in self._rules.hosts
        called = destination_of(url)
        if called is None or len(called) > MAX_DESTINATION_LENGTH:
            raise _invalid("this is not a valid host name")
        return Target(parsed.with_fragment(None), called, trusted)

    def set_target(self, target: Target) -> list[str]:
        """Set the target of this task's connections; return a list that collects refusals."""
        refusals: list[str] = []
        _target.set((target, refusals))
        return refusals

    def create_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Return a socket for one resolved address; raises `AddressRefused`."""
        family, kind, protocol, _, at = info
        try:
            target, refusals = _target.get()
        except LookupError:
            raise AddressRefused("the connection belongs to no request") from None
        reason = self.refusal(target, str(at[0]))
        if reason is not None:
            refusals.append(reason)
            raise AddressRefused(reason)
        return socket.socket(family, kind, protocol)

    def refusal(self, target: Target, address: str) -> str | None:
        """Return why a request to this target may not connect to this address; None if it may."""
        if target.trusted:
            return None
        allowed, reason = check_address(address, self._rules.networks)
        if reason is not None and _is_address(target.url.raw_host or ""):
            return f"{address} is {reason} (HOLDFAST_WEBHOOK_ALLOW can allow it)"
        if reason is not None:
            return NOT_PUBLIC
        if allowed:
            return None
        if target.url.scheme != "https" and not self._rules.plain_http:
            return "plain http is not allowed: use https, or set HOLDFAST_WEBHOOK_HTTP=1"
        if target.url.port not in self._rules.ports:
            return f"port {target.url.port} is not among HOLDFAST_WEBHOOK_PORTS"
        return None


@lru_cache(4_096)
def check_address(address: str, allowed: Sequence[Network]) -> tuple[bool, str | None]:
    """Return whether the settings allow an address, and if not, why it is denied (None: public).

    IPv4 addresses embedded in an IPv6 address are checked too; if one is denied, the address is denied.
    """
    try:
        outer = ip_address(address.partition("%")[0])
    except ValueError:
        return False, "not an IP address"
    if _among(outer, allowed):
        return True, None
    allowed_inside = False
    for checked in (outer, *embedded_addresses(outer)):
        if _among(checked, allowed):
            allowed_inside = True
        elif (reason := _denied(checked)) is not None:
            return False, reason
    return allowed_inside, None


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def _among(address: IPAddress, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def embedded_addresses(address: IPAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses embedded in an IPv6 address, in every standard notation."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if any(address in network for network in _LAST_32):
        yield IPv4Address(number & 0xFFFF_FFFF)
    if address in _6TO4:
        yield IPv4Address(number >> 80 & 0xFFFF_FFFF)
    if address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFF_FFFF)
        yield IPv4Address(~number & 0xFFFF_FFFF)
    if number >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(number & 0xFFFF_FFFF)


def _denied(address: IPAddress) -> str | None:
    for network, reason in _DENIED_NETWORKS:
        if address.version == network.version and address in network:
            return reason
    if isinstance(address, IPv4Address):
        return None
    if address in _COMPATIBLE:
        return "a deprecated IPv4-compatible address"
    if address in _PUBLIC_IPV6 or any(address in network for network in _LAST_32[1:]):
        return None
    return "not on the public network"


def _invalid(reason: str) -> Invalid:
    return Invalid(f"url: {reason}", pointer="/payload/url")
