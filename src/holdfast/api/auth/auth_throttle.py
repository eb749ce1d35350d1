"""Throttle for failed authentication: at most ten failures a minute per address and per key."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from holdfast.api.http import HttpRequest

MAX_FAILURES = 10
WINDOW_S = 60.0

_MAX_TRACKED_SOURCES = 10_000
_MAX_HOPS = 20

Network = IPv4Network | IPv6Network


class FailureThrottle:
    """Counts failures per source in a sliding window; the oldest sources are dropped first."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def wait(self, source: str) -> float:
        """Return the seconds until the next attempt is allowed; 0 if it is allowed now."""
        failures = self._failures.get(source)
        if failures is None or len(failures) < MAX_FAILURES:
            return 0.0
        return max(0.0, failures[0] + WINDOW_S - self._monotonic())

    def record_failure(self, source: str) -> None:
        """Record a failure."""
        failures = self._failures.setdefault(source, deque(maxlen=MAX_FAILURES))
        failures.append(self._monotonic())
        self._failures.move_to_end(source)
        if len(self._failures) > _MAX_TRACKED_SOURCES:
            self._failures.popitem(last=False)


class ClientAddresses:
    """Client address of a request, read from `X-Forwarded-For` behind trusted proxies."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted: tuple[Network, ...] = tuple(ip_network(network) for network in trusted)

    def of(self, request: HttpRequest) -> str:
        """Return the nearest address that is not a trusted proxy; ignore headers set by anyone else."""
        if not self._trusted:
            return _canonical(request.address)
        nearest = _address(request.address)
        if nearest is None:
            return request.address
        hops = (request.header("x-forwarded-for") or "").split(",")
        for hop in hops[: -_MAX_HOPS - 1 : -1]:
            if not self._trusts(nearest):
                break
            further = _address(hop)
            if further is None:
                break
            nearest = further
        return str(nearest)

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._trusted)


@lru_cache(_MAX_TRACKED_SOURCES)  # most requests come from a few addresses
def throttle_key(address: str) -> str:
    """Return the throttle key of an address: for IPv6 the /64, which one host owns."""
    parsed = _address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, 64), strict=False))
    return address


@lru_cache(_MAX_TRACKED_SOURCES)
def _canonical(text: str) -> str:
    """Return an address in canonical form; text that is not an address is returned unchanged."""
    parsed = _address(text)
    return text if parsed is None else str(parsed)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return parsed.ipv4_mapped or parsed if isinstance(parsed, IPv6Address) else parsed
