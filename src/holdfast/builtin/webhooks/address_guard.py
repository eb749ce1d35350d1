"""Which addresses a webhook may reach. Asked at the socket: after names were resolved, and for literal addresses alike.

The payload of a job is not trusted, nor is the name server that resolves what it names. Whatever stands in front, an
address is looked at where a socket is made for it, and nothing is connected that was not looked at.
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

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 4_096
LONGEST_DESTINATION = 300

_WITHIN = ip_network("2000::/3")
"""All of IPv6 that is given out to networks at all."""

_DENIED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "on this host"),
    ("10.0.0.0/8", "on a private network"),
    ("100.64.0.0/10", "on a carrier's own network"),
    ("127.0.0.0/8", "on this host"),
    ("168.63.129.16/32", "a cloud's own service"),
    ("169.254.0.0/16", "on this link, where clouds keep their metadata"),
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
"""Where the last 32 bits are an IPv4 address: compatible, mapped, translated, and NAT64."""
_COMPATIBLE = _LAST_32[0]
_6TO4 = ip_network("2002::/16")
_TEREDO = ip_network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE, 0x0100_5EFE, 0x0300_5EFE)


class Refused(OSError):
    """A connection that is not made."""


class Target(NamedTuple):
    """Where a request goes."""

    url: "URL"
    destination: str
    """Scheme, host and port."""
    trusted: bool
    """The installation allows this host by name."""


class GuardRules(NamedTuple):
    """What an installation allows beyond the public network."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    """Names, or names with a port: `hooks.internal`, `hooks.internal:8080`."""
    ports: frozenset[int] = frozenset({80, 443})
    plain_http: bool = False

    @classmethod
    def of(cls, allowed: Iterable[str], ports: Iterable[int], *, plain_http: bool) -> "GuardRules":
        """Rules from settings: what can be read as a network is one, all else is a name."""
        networks: list[Network] = []
        hosts: list[str] = []
        for each in allowed:
            try:
                networks.append(ip_network(each))
            except ValueError:
                hosts.append(each.lower())
        return cls(tuple(networks), frozenset(hosts), frozenset(ports), plain_http)


_target: ContextVar[tuple[Target, list[str]]] = ContextVar("holdfast webhook target")


class Guard:
    """Makes sockets for those addresses that a request may reach."""

    def __init__(self, rules: GuardRules = GuardRules()) -> None:
        self._rules = rules

    def target(self, url: str) -> Target:
        """Read a URL; `Invalid` for one that no request may go to, whatever it resolves to."""
        from yarl import URL  # noqa: PLC0415  comes with the client, which most workers never need

        if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or set(url) & {" ", "\\"}:
            raise _invalid(f"give at most {LONGEST_URL:,} printable ASCII characters, without spaces or backslashes")
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
        if called is None or len(called) > LONGEST_DESTINATION:
            raise _invalid("no host has such a name")
        return Target(parsed.with_fragment(None), called, trusted)

    def enter(self, target: Target) -> list[str]:
        """From here on, in this task, connections are for this target; gives the list of what is refused."""
        refused: list[str] = []
        _target.set((target, refused))
        return refused

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for one resolved address, or `Refused`."""
        family, kind, protocol, _, at = info
        try:
            target, refused = _target.get()
        except LookupError:
            raise Refused("a connection that no request asked for") from None
        why = self.why_not(target, str(at[0]))
        if why is not None:
            refused.append(why)
            raise Refused(why)
        return socket.socket(family, kind, protocol)

    def why_not(self, target: Target, address: str) -> str | None:
        """Why a request to this target may not connect to this address; None when it may."""
        if target.trusted:
            return None
        allowed, why = look(address, self._rules.networks)
        if why is not None:
            return f"{address} is {why} (HOLDFAST_WEBHOOK_ALLOW can allow it)"
        if allowed:
            return None
        if target.url.scheme != "https" and not self._rules.plain_http:
            return "plain http is not allowed: use https, or set HOLDFAST_WEBHOOK_HTTP=1"
        if target.url.port not in self._rules.ports:
            return f"port {target.url.port} is not among HOLDFAST_WEBHOOK_PORTS"
        return None


@lru_cache(4_096)
def look(address: str, allowed: Sequence[Network]) -> tuple[bool, str | None]:
    """Whether an address is expressly allowed, and if not, why it is denied.

    An address that carries others is as they are: one that is denied anywhere in it is denied.
    """
    try:
        outer = ip_address(address.partition("%")[0])
    except ValueError:
        return False, "no address at all"
    if _among(outer, allowed):
        return True, None
    expressly = False
    for each in (outer, *carried(outer)):
        if _among(each, allowed):
            expressly = True
        elif (why := _denied(each)) is not None:
            return False, why
    return expressly, None


def _among(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def carried(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that are written into an IPv6 address, in any of the ways there are."""
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


def _denied(address: Address) -> str | None:
    for network, why in _DENIED_NETWORKS:
        if address.version == network.version and address in network:
            return why
    if isinstance(address, IPv4Address):
        return None
    if address in _COMPATIBLE:
        return "of no network any more"
    if address in _WITHIN or any(address in network for network in _LAST_32[1:]):
        return None
    return "not of the public network"


def _invalid(why: str) -> Invalid:
    return Invalid(f"url: {why}", pointer="/payload/url")
