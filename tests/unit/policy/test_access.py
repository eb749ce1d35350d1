"""Validity of API keys, scopes of tokens, and weak secrets."""

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
    TENANT_SCOPES,
    cacheable_for,
    find_weakness,
    is_valid,
    permit,
    permit_granting,
    should_record_use,
    token_scopes,
)

KEY = ApiKey("aa", "acme", "ci", b"", frozenset({Scope.READ}), Instant(0))


def caller(*scopes: Scope, key: str | None = "aa") -> Caller:
    return Caller("acme", frozenset(scopes), "key:aa", key)


@pytest.mark.parametrize(
    "key, at, valid",
    [
        (KEY, 10, True),
        (KEY._replace(expires_at=11), 10, True),
        (KEY._replace(expires_at=10), 10, False),
        (KEY._replace(revoked_at=99), 10, False),
        (KEY._replace(revoked_at=1, expires_at=99), 10, False),
    ],
)
def test_a_key_is_valid_until_it_expires_or_is_revoked(key: ApiKey, at: int, valid: bool) -> None:
    assert is_valid(key, Instant(at)) is valid


@given(expires=st.none() | st.integers(1, 10**9), max_age=st.integers(1, 10**9))
def test_a_key_is_never_cached_beyond_its_expiry(expires: int | None, max_age: int) -> None:
    key = KEY._replace(expires_at=None if expires is None else Instant(expires))
    span = cacheable_for(key, Instant(0), Duration(max_age))

    assert 0 < span <= max_age
    assert expires is None or not is_valid(key, Instant(expires))
    assert expires is None or span <= expires


def test_the_use_of_a_key_is_recorded_once_per_interval() -> None:
    used = KEY._replace(last_used_at=Instant(100))

    assert should_record_use(KEY, Instant(0))
    assert not should_record_use(used, Instant(99 + LAST_USED_INTERVAL))
    assert should_record_use(used, Instant(100 + LAST_USED_INTERVAL))


@given(held=st.frozensets(st.sampled_from(Scope)), requested=st.frozensets(st.sampled_from(Scope)))
def test_a_token_has_no_scope_that_its_caller_lacks(held: frozenset[Scope], requested: frozenset[Scope]) -> None:
    """T09."""
    allowed = requested <= held or (Scope.ADMIN in held and requested <= held | TENANT_SCOPES)
    try:
        assert token_scopes(caller(*held), requested) == requested
        assert allowed
    except Forbidden:
        assert not allowed
    assert token_scopes(caller(*held), None) == held


def test_a_caller_without_an_api_key_cannot_issue_tokens() -> None:
    with pytest.raises(Forbidden):
        token_scopes(caller(Scope.READ, key=None), None)


@pytest.mark.parametrize("held", Scope)
@pytest.mark.parametrize("required", Scope)
def test_a_scope_permits_itself_and_admin_permits_all(held: Scope, required: Scope) -> None:
    if held in (required, Scope.ADMIN):
        permit(caller(held)._replace(tenant="default"), required)
    else:
        with pytest.raises(Forbidden):
            permit(caller(held)._replace(tenant="default"), required)


@pytest.mark.parametrize("required", Scope)
def test_an_administrator_of_a_tenant_has_the_scopes_that_stay_within_it(required: Scope) -> None:
    """T38."""
    if required in TENANT_SCOPES:
        permit(caller(Scope.ADMIN), required, tenant_admin=True)
    else:
        with pytest.raises(Forbidden):
            permit(caller(Scope.ADMIN), required, tenant_admin=True)
    with pytest.raises(Forbidden, match="administrator of the installation"):
        permit(caller(Scope.ADMIN), Scope.ADMIN)


@pytest.mark.parametrize(
    "held, tenant, scopes, allowed",
    [
        (("default", Scope.ADMIN), "acme", set(Scope), True),
        (("acme", Scope.ADMIN), "acme", set(TENANT_SCOPES), True),
        (("acme", Scope.ADMIN), "acme", {Scope.METRICS}, False),
        (("acme", Scope.ADMIN), "umbrella", {Scope.READ}, False),
        (("acme", Scope.ADMIN), "default", {Scope.ADMIN}, False),
    ],
)
def test_an_administrator_of_a_tenant_grants_only_scopes_of_that_tenant(
    held: tuple[str, Scope], tenant: str, scopes: set[Scope], allowed: bool
) -> None:
    """T38."""
    administrator = Caller(held[0], frozenset({held[1]}), "key:aa", "aa")
    if allowed:
        permit_granting(administrator, tenant, frozenset(scopes))
    else:
        with pytest.raises(Forbidden):
            permit_granting(administrator, tenant, frozenset(scopes))


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
def test_a_well_known_secret_is_weak(secret: str) -> None:
    """T05."""
    assert find_weakness(secret, min_bytes=32) == "it is well known or easily guessed"


@pytest.mark.parametrize("key", ["1234567890123456", "0123456789abcdef", "abcdefghijklmnop", "qrstuvwxyz987654"])
def test_an_admin_key_that_counts_or_repeats_is_weak(key: str) -> None:
    assert find_weakness(key, min_bytes=16) == "it is well known or easily guessed"


@given(st.binary(min_size=32, max_size=64))
def test_the_length_of_a_secret_is_counted_in_bytes(noise: bytes) -> None:
    assert find_weakness(noise.hex()[:31], min_bytes=32) == "it has 31 bytes and needs at least 32"
    assert find_weakness("é" * 10, min_bytes=32) == "it has 20 bytes and needs at least 32"


@given(st.integers())
def test_a_random_secret_is_not_weak(seed: int) -> None:
    """Holds for hexadecimal, base64 and letters only."""
    rng = random.Random(seed)
    for alphabet in ("0123456789abcdef", string.ascii_letters + string.digits + "-_", string.ascii_lowercase):
        assert find_weakness("".join(rng.choices(alphabet, k=32)), min_bytes=32) is None
