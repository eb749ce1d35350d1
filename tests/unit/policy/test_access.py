"""What keys and chosen secrets are worth."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Forbidden
from holdfast.model.access import ApiKey, Caller, Scope
from holdfast.model.time import Duration, Instant
from holdfast.policy.access import (
    LAST_USED_INTERVAL,
    cacheable_for,
    find_weakness,
    is_valid,
    permit,
    should_record_use,
    token_scopes,
)

KEY = ApiKey("aa", "acme", "ci", b"", frozenset({Scope.READ}), Instant(0))


def caller(*scopes: Scope, key: str | None = "aa") -> Caller:
    return Caller("acme", frozenset(scopes), "key:aa", key)


@pytest.mark.parametrize(
    "key, at, good",
    [
        (KEY, 10, True),
        (KEY._replace(expires_at=11), 10, True),
        (KEY._replace(expires_at=10), 10, False),
        (KEY._replace(revoked_at=99), 10, False),
        (KEY._replace(revoked_at=1, expires_at=99), 10, False),
    ],
)
def test_a_key_is_good_until_it_expires_or_is_revoked(key: ApiKey, at: int, good: bool) -> None:
    assert is_valid(key, Instant(at)) is good


@given(expires=st.none() | st.integers(1, 10**9), most=st.integers(1, 10**9))
def test_nobody_relies_on_a_key_beyond_its_end(expires: int | None, most: int) -> None:
    key = KEY._replace(expires_at=None if expires is None else Instant(expires))
    span = cacheable_for(key, Instant(0), Duration(most))

    assert 0 < span <= most
    assert expires is None or not is_valid(key, Instant(expires))
    assert expires is None or span <= expires


def test_a_use_is_news_now_and_then() -> None:
    used = KEY._replace(last_used_at=Instant(100))

    assert should_record_use(KEY, Instant(0))
    assert not should_record_use(used, Instant(99 + LAST_USED_INTERVAL))
    assert should_record_use(used, Instant(100 + LAST_USED_INTERVAL))


@given(held=st.frozensets(st.sampled_from(Scope)), asked=st.frozensets(st.sampled_from(Scope)))
def test_a_token_has_no_scope_that_its_caller_lacks(held: frozenset[Scope], asked: frozenset[Scope]) -> None:
    """T09."""
    may = asked <= held or Scope.ADMIN in held
    try:
        assert token_scopes(caller(*held), asked) == asked
        assert may
    except Forbidden:
        assert not may
    assert token_scopes(caller(*held), None) == held


def test_a_caller_without_a_key_narrows_nothing() -> None:
    with pytest.raises(Forbidden):
        token_scopes(caller(Scope.READ, key=None), None)


@pytest.mark.parametrize("held", Scope)
@pytest.mark.parametrize("wanted", Scope)
def test_a_scope_permits_itself_and_admin_permits_all(held: Scope, wanted: Scope) -> None:
    if held in (wanted, Scope.ADMIN):
        permit(caller(held), wanted)
    else:
        with pytest.raises(Forbidden):
            permit(caller(held), wanted)


@pytest.mark.parametrize(
    "secret",
    [
        "change-me-change-me-change-me-change-me", "changeme1234567890changeme1234567890", "a" * 64, "ab" * 32,
        "0123456789abcdef0123456789abcdef", "12345678901234567890123456789012",
        "your-256-bit-secret-your-256-bit-secret",
        "a-string-secret-at-least-256-bits-long", "SuperSecretPasswordSuperSecretPassword!", "password" * 8,
        "this_is_a_very_long_secret_key_1234567890", "MyVeryLongSecretKey-Replace-Me-1234567890",
        "abcdefghijklmnopqrstuvwxyz0123456789", "holdfast-holdfast-holdfast-holdfast-secret",
    ],
)  # fmt: skip
def test_a_secret_that_everybody_knows_is_weak(secret: str) -> None:
    """T05."""
    assert find_weakness(secret, min_bytes=32) == "it is well known or easily guessed"


@given(st.binary(min_size=32, max_size=64))
def test_length_is_counted_in_bytes(noise: bytes) -> None:
    assert find_weakness(noise.hex()[:31], min_bytes=32) == "it has 31 bytes and needs at least 32"
    assert find_weakness("é" * 10, min_bytes=32) == "it has 20 bytes and needs at least 32"


@given(st.integers())
def test_a_random_secret_is_not_weak(seed: int) -> None:
    """Whatever the alphabet: hexadecimal, base64, or letters alone."""
    rng = random.Random(seed)
    for alphabet in ("0123456789abcdef", string.ascii_letters + string.digits + "-_", string.ascii_lowercase):
        assert find_weakness("".join(rng.choices(alphabet, k=32)), min_bytes=32) is None
