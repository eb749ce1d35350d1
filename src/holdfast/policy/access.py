"""Authorization: scopes, tenants, and the validity of API keys and secrets."""

import re
from itertools import pairwise

from holdfast.errors import Forbidden, Invalid
from holdfast.model.access import DEFAULT_TENANT, ApiKey, Caller, Scope
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy.submission import is_name

LAST_USED_INTERVAL = seconds(300)
"""Minimum time between two writes of a key's `last_used_at`, and so its precision."""

TENANT_SCOPES = frozenset({Scope.SUBMIT, Scope.READ, Scope.CANCEL, Scope.WORKER, Scope.ADMIN})
"""Scopes that reach no further than the tenant of a key, unless that is the default tenant."""

MIN_ADMIN_KEY_BYTES = 16
MIN_SECRET_BYTES = 32
"""Length of the HS256 digest: a shorter secret would be weaker than the algorithm."""

_WORDS = frozenset({
    "change", "this", "please", "replace", "me", "it", "my", "your", "the", "is", "a", "own", "top", "super", "very",
    "long", "short", "strong", "string", "random", "secure", "secret", "password", "passwd", "pass", "word", "admin",
    "administrator", "root", "user", "test", "testing", "demo", "dev", "development", "prod", "production",
    "default", "example", "sample", "dummy", "insecure", "unsafe", "foo", "bar", "baz", "bit", "bits", "byte",
    "bytes", "char", "characters", "least", "at", "jwt", "token", "api", "key", "signing", "hs", "holdfast",
    "letmein", "welcome", "hello", "world", "qwerty", "qwertyuiop", "asdfghjkl", "zxcvbnm", "abc", "abcdef",
    "abcdefghijklmnopqrstuvwxyz",
})  # fmt: skip
"""Words that well-known secrets consist of."""

_MAX_WORD_LENGTH = max(map(len, _WORDS))
_MIN_DISTINCT_CHARACTERS = 6


def permit(caller: Caller, scope: Scope, *, tenant_admin: bool = False) -> None:
    """Raise `Forbidden` unless the caller has this scope.

    Args:
        caller: Caller of the request.
        scope: Scope that the request needs.
        tenant_admin: `admin` is enough for the caller's own tenant, because the request is restricted to it.
    """
    if not has_scope(caller, scope):
        held = ", ".join(sorted(caller.scopes)) or "none"
        raise Forbidden(f"this needs the scope {scope.value!r}; the key or token has: {held}")
    if scope is Scope.ADMIN and not caller.is_admin and not tenant_admin:
        raise Forbidden(
            f"this needs an administrator of the installation, with a key of the tenant {DEFAULT_TENANT!r}; "
            f"the key or token administers the tenant {caller.tenant!r}"
        )


def has_scope(caller: Caller, scope: Scope) -> bool:
    """Return True if the caller has a scope, or an `admin` scope that includes it."""
    return scope in caller.scopes or caller.is_admin or (caller.is_tenant_admin and scope in TENANT_SCOPES)


def permit_granting(caller: Caller, tenant: str, scopes: frozenset[Scope]) -> None:
    """Raise `Forbidden` unless the caller may create a key of this tenant with these scopes."""
    if caller.is_admin:
        return
    visible_tenant(caller, tenant)
    if beyond := sorted(scopes - TENANT_SCOPES):
        raise Forbidden(f"the scope {beyond[0]!r} covers the whole installation: an administrator of it can grant it")


def visible_tenant(caller: Caller, requested: str | None) -> str | None:
    """Return the tenant whose data the caller may see; None means all (administrators only).

    Raises:
        Invalid: `requested` is not a valid tenant name.
        Forbidden: `requested` is another tenant, and the caller is not an administrator.
    """
    if requested is not None and not is_tenant(requested):
        raise Invalid("a tenant name has 1 to 128 letters, digits or _ . : / @ + -", pointer="/tenant")
    if caller.is_admin:
        return requested
    if requested is not None and requested != caller.tenant:
        raise Forbidden(f"this key or token belongs to the tenant {caller.tenant!r}: leave `tenant` out")
    return caller.tenant


def acting_tenant(caller: Caller, requested: str | None) -> str:
    """Return the tenant the caller acts for: their own, or one chosen by an administrator."""
    return visible_tenant(caller, requested) or caller.tenant


def is_tenant(name: str) -> bool:
    """Return True if this is a valid tenant name."""
    return is_name(name)


def is_valid(key: ApiKey, at: Instant) -> bool:
    """Return True if the key is neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or at < key.expires_at)


def cacheable_for(key: ApiKey, at: Instant, max_age: Duration) -> Duration:
    """Return how long a valid key may be cached: until it expires, and at most `max_age`."""
    return max_age if key.expires_at is None else min(max_age, Duration(key.expires_at - at))


def should_record_use(key: ApiKey, at: Instant) -> bool:
    """Return True if the stored time of the key's last use is due for an update."""
    return key.last_used_at is None or key.last_used_at + LAST_USED_INTERVAL <= at


def token_scopes(caller: Caller, requested: frozenset[Scope] | None) -> frozenset[Scope]:
    """Return the scopes for a new token: all of the caller's, or the requested subset of them.

    Raises:
        Forbidden: The caller lacks a requested scope, or did not authenticate with an API key or a token issued by one.
    """
    if caller.key is None:
        raise Forbidden("this token was not issued by an API key, so it cannot issue tokens: use an API key")
    if requested is None:
        return caller.scopes
    for scope in sorted(requested):
        permit(caller, scope, tenant_admin=True)
    return requested


def find_weakness(secret: str, *, min_bytes: int) -> str | None:
    """Describe why a secret is weak: too short or easily guessed; None if it seems strong."""
    size = len(secret.encode())
    if size < min_bytes:
        return f"it has {size} bytes and needs at least {min_bytes}"
    letters = re.sub(r"[^a-z]", "", secret.lower())
    lower = secret.lower()
    if (
        _repeats(lower)
        or _counts(lower)
        or len(set(secret)) < _MIN_DISTINCT_CHARACTERS
        or (letters and _is_words(letters))
    ):
        return "it is well known or easily guessed"
    return None


def _repeats(text: str) -> bool:
    """Return True if a text repeats, at least for its last third, such as `12345678901234`."""
    return any(text.startswith(text[period:]) for period in range(1, len(text) * 2 // 3 + 1))


def _counts(text: str) -> bool:
    """Return True if most characters are next to the one before, such as `abcdef123456`."""
    steps = sum(abs(ord(second) - ord(first)) <= 1 for first, second in pairwise(text))
    return steps > len(text) * 2 // 3


def _is_words(letters: str) -> bool:
    """Return True if a text consists of well-known words only."""
    ends = {0}
    for end in range(1, len(letters) + 1):
        if any(letters[start:end] in _WORDS for start in ends if end - start <= _MAX_WORD_LENGTH):
            ends.add(end)
    return len(letters) in ends
