"""Validation of the header and claims of a JSON Web Token (the signature is checked before)."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.model.access import ApiKey, Caller, Scope, administers_installation
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy.access import TENANT_SCOPES, is_tenant

LEEWAY = seconds(10)
"""Allowed difference between the clocks of the issuer and the database."""

MAX_TOKEN_LENGTH = 8_192
MAX_LIFETIME = seconds(3_600)
DEFAULT_LIFETIME = seconds(900)
"""Lifetimes of the tokens that holdfast issues."""

_HEADER = frozenset({"alg", "typ", "kid", "x5t", "x5t#S256"})
"""Allowed header fields.

Others are rejected, above all those that say where to find a key (`jku`, `jwk`, `x5u`).
"""
_TYPES = frozenset({"jwt", "at+jwt"})
_MAX_NAME_LENGTH = 255
_MAX_TIMESTAMP_S = 253_402_300_800
"""End of the year 9999, in seconds since 1970."""
_SCOPES = frozenset(Scope)
_KEY_ID = re.compile(r"[0-9a-z-]{1,32}", re.ASCII)


class Audience(NamedTuple):
    """Expected issuer and audience of a token."""

    issuer: str = "holdfast"
    audience: str = "holdfast"


def parse_header(header: Any) -> tuple[str | None, str] | None:
    """Return the key id and algorithm that a token header names; None if it is not acceptable."""
    if not isinstance(header, dict) or not header.keys() <= _HEADER:
        return None
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or not isinstance(kind, str) or kind.lower() not in _TYPES:
        return None
    if "kid" in header and not isinstance(kid, str):
        return None
    return kid, algorithm


def caller_of(
    claims: Any, expected: Audience, at: Instant, *, signed_by: tuple[str | None, str] | None = None
) -> Caller | None:
    """Return the caller that a token authenticates; None if its claims are not valid."""
    if not isinstance(claims, dict) or claims.get("iss") != expected.issuer:
        return None
    if not _has_audience(claims, expected.audience):
        return None
    until = _instant(claims.get("exp"))
    if until is None or at >= until + LEEWAY or not _is_active(claims, at):
        return None
    subject, tenant, scope, key = (claims.get(name) for name in ("sub", "tenant", "scope", "key"))
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_NAME_LENGTH or not subject.isprintable():
        return None
    if not isinstance(tenant, str) or not is_tenant(tenant):
        return None
    if not isinstance(scope if "scope" in claims else "", str):
        return None
    if "key" in claims and not (isinstance(key, str) and _KEY_ID.fullmatch(key)):
        return None
    # Unknown scopes are ignored: they permit nothing, and do not invalidate the token.
    scopes = frozenset(Scope(word) for word in (scope or "").split(" ") if word in _SCOPES)
    return Caller(tenant, scopes, f"token:{subject}", key, until, signed_by)


def restrict_to_key(caller: Caller, key: ApiKey) -> Caller | None:
    """Restrict the caller of a token to the scopes of its issuing key; None if not allowed."""
    if administers_installation(key.tenant, key.scopes):
        return caller
    if caller.tenant != key.tenant:
        return None
    granted = key.scopes | TENANT_SCOPES if Scope.ADMIN in key.scopes else key.scopes
    return caller._replace(scopes=caller.scopes & granted)


def claims_of(caller: Caller, expected: Audience, at: Instant, lifetime: Duration, token_id: str) -> dict[str, Any]:
    """Return the claims of a new token, which expires no later than the caller's own."""
    until = at + min(lifetime, MAX_LIFETIME)
    if caller.until is not None:
        until = min(until, caller.until)
    claims: dict[str, Any] = {
        "iss": expected.issuer,
        "aud": expected.audience,
        "sub": caller.name.removeprefix("token:"),
        "iat": at // 1_000_000,
        "exp": until // 1_000_000,
        "jti": token_id,
        "tenant": caller.tenant,
        "scope": " ".join(sorted(caller.scopes)),
    }
    return claims if caller.key is None else claims | {"key": caller.key}


def _has_audience(claims: Mapping[str, Any], audience: str) -> bool:
    claimed = claims.get("aud")
    if isinstance(claimed, list):
        return all(isinstance(item, str) for item in claimed) and audience in claimed
    return isinstance(claimed, str) and claimed == audience


def _is_active(claims: Mapping[str, Any], at: Instant) -> bool:
    for name in ("nbf", "iat"):
        if name in claims:
            since = _instant(claims[name])
            if since is None or since > at + LEEWAY:
                return False
    return True


def _instant(value: Any) -> Instant | None:
    """Convert a NumericDate (RFC 7519); None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or not 0 <= value < _MAX_TIMESTAMP_S:
        return None
    return Instant(int(value * 1_000_000))
