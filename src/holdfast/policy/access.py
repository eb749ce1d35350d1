"""Who may do what, and which keys are good."""

import re

from holdfast.errors import Forbidden, Invalid
from holdfast.model.access import ApiKey, Caller, Scope
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy.submission import is_name

LAST_USED_INTERVAL = seconds(300)
"""How exact `last_used_at` is: a key in use is noted no more often."""

MIN_ADMIN_KEY_BYTES = 16
MIN_SECRET_BYTES = 32
"""Bytes; what HS256 itself is as strong as."""

_WORDS = frozenset({
    "change", "this", "please", "replace", "me", "it", "my", "your", "the", "is", "a", "own", "top", "super", "very",
    "long", "short", "strong", "string", "random", "secure", "secret", "password", "passwd", "pass", "word", "admin",
    "administrator", "root", "user", "test", "testing", "demo", "dev", "development", "prod", "production",
    "default", "example", "sample", "dummy", "insecure", "unsafe", "foo", "bar", "baz", "bit", "bits", "byte",
    "bytes", "char", "characters", "least", "at", "jwt", "token", "api", "key", "signing", "hs", "holdfast",
    "letmein", "welcome", "hello", "world", "qwerty", "qwertyuiop", "asdfghjkl", "zxcvbnm", "abc", "abcdef",
    "abcdefghijklmnopqrstuvwxyz",
})  # fmt: skip
"""Of which well-known secrets are made."""


def permit(caller: Caller, scope: Scope) -> None:
    """Raise `Forbidden` unless the caller holds this scope."""
    if scope not in caller.scopes and not caller.is_admin:
        held = ", ".join(sorted(caller.scopes)) or "none"
        raise Forbidden(f"this needs the scope {scope.value!r}; the key or token has: {held}")


def visible_tenant(caller: Caller, asked: str | None) -> str | None:
    """Whose things a caller sees who asks for those of `asked`; None is everybody's, for administrators only."""
    if asked is not None and not is_tenant(asked):
        raise Invalid("a tenant's name has 1 to 128 letters, digits or _ . : / @ + -", pointer="/tenant")
    if caller.is_admin:
        return asked
    if asked is not None and asked != caller.tenant:
        raise Forbidden(f"this key or token belongs to the tenant {caller.tenant!r}: leave `tenant` out")
    return caller.tenant


def acting_tenant(caller: Caller, asked: str | None) -> str:
    """For whom a caller acts: their own tenant, or the one an administrator names."""
    return visible_tenant(caller, asked) or caller.tenant


def is_tenant(name: str) -> bool:
    """Whether a tenant can be called so."""
    return is_name(name)


def is_valid(key: ApiKey, at: Instant) -> bool:
    """Whether a key opens anything at that time."""
    return key.revoked_at is None and (key.expires_at is None or at < key.expires_at)


def cacheable_for(key: ApiKey, at: Instant, most: Duration) -> Duration:
    """For how long what was read of a good key may be relied upon: until it expires, and never longer than `most`."""
    return most if key.expires_at is None else min(most, Duration(key.expires_at - at))


def should_record_use(key: ApiKey, at: Instant) -> bool:
    """Whether it is time to note that a key is in use."""
    return key.last_used_at is None or key.last_used_at + LAST_USED_INTERVAL <= at


def token_scopes(caller: Caller, asked: frozenset[Scope] | None) -> frozenset[Scope]:
    """The scopes of a token that a caller wants: those of the key they came with, or fewer; `Forbidden` for others."""
    if caller.key is None:
        raise Forbidden("a token is made with a key, or with a token that was made with one: this has none behind it")
    if asked is None:
        return caller.scopes
    for scope in sorted(asked):
        permit(caller, scope)
    return asked


def find_weakness(secret: str, *, least: int) -> str | None:
    """What is wrong with a secret that somebody chose: too short, or easily guessed. None when nothing is seen."""
    size = len(secret.encode())
    if size < least:
        return f"it has {size} bytes, and needs at least {least}"
    letters = re.sub(r"[^a-z]", "", secret.lower())
    if _repeats(secret.lower()) or len(set(secret)) < 6 or (letters and _is_words(letters)):
        return "it is well known or easily guessed"
    return None


def _repeats(text: str) -> bool:
    """Whether a text is a shorter one over and over: `abcabcab`, or a row of digits."""
    return any(text.startswith(text[period:]) for period in range(1, len(text) // 2 + 1))


def _is_words(letters: str) -> bool:
    """Whether a text is made of well-known words alone."""
    ends = {0}
    for end in range(1, len(letters) + 1):
        if any(letters[start:end] in _WORDS for start in ends if end - start <= 26):
            ends.add(end)
    return len(letters) in ends
