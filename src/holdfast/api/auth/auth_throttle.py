"""Failed attempts to be recognised: so many a minute from one address or at one key, and no more."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from holdfast.api.http import HttpRequest

MAX_FAILURES = 10
WINDOW_S = 60.0

_MAX_TRACKED = 10_000
_MAX_HOPS = 20

Network = IPv4Network | IPv6Network


class FailureThrottle:
    """Counts failures by whatever they have in common. The longest ago are forgotten when there are too many."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def wait(self, who: str) -> float:
        """Seconds until the next attempt is looked at; 0 when it is now."""
        found = self._failures.get(who)
        if found is None or len(found) < MAX_FAILURES:
            return 0.0
        return max(0.0, found[0] + WINDOW_S - self._monotonic())

    def failed(self, who: str) -> None:
        """Count one more."""
        found = self._failures.setdefault(who, deque(maxlen=MAX_FAILURES))
        found.append(self._monotonic())
        self._failures.move_to_end(who)
        if len(self._failures) > _MAX_TRACKED:
            self._failures.popitem(last=False)


class ClientAddresses:
    """Where requests come from, past the proxies that are trusted to say so."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted: tuple[Network, ...] = tuple(ip_network(each) for each in trusted)

    def of(self, request: HttpRequest) -> str:
        """The nearest address that is none of a trusted proxy. What others say of themselves counts for nothing."""
        if not self._trusted:
            return _plain(request.address)
        nearest = _address(request.address)
        if nearest is None:
            return request.address
        said = (request.header("x-forwarded-for") or "").split(",")
        for each in said[: -_MAX_HOPS - 1 : -1]:
            if not self._trusts(nearest):
                break
            further = _address(each)
            if further is None:
                break
            nearest = further
        return str(nearest)

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._trusted)


@lru_cache(_MAX_TRACKED)  # most requests come from where others came from just now
def throttle_key(address: str) -> str:
    """What attempts from an address are counted by: of IPv6 the network, for a single host has all of its addresses."""
    found = _address(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((found, 64), strict=False))
    return address


@lru_cache(_MAX_TRACKED)
def _plain(text: str) -> str:
    """An address in its usual form; what is none stays as it is."""
    found = _address(text)
    return text if found is None else str(found)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
