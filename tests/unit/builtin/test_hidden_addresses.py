"""Errors of webhooks to internal names: they tell a tenant nothing about the answer of the name server."""

import pytest

from holdfast.builtin.webhooks.address_guard import AddressGuard


@pytest.mark.parametrize("address", ["10.1.2.3", "127.0.0.1", "169.254.169.254", "fd00::1", "::ffff:10.1.2.3"])
def test_the_address_of_an_internal_name_is_not_shown(address: str) -> None:
    guard = AddressGuard()
    reasons = {guard.refusal(guard.parse("https://vault.internal/x"), each) for each in (address, "192.168.7.7")}
    assert reasons == {"its name does not resolve to a public address (HOLDFAST_WEBHOOK_ALLOW can allow it)"}


def test_the_reason_is_shown_for_an_address_that_the_payload_contains() -> None:
    guard = AddressGuard()
    reason = guard.refusal(guard.parse("https://10.1.2.3/x"), "10.1.2.3")
    assert reason == "10.1.2.3 is on a private network (HOLDFAST_WEBHOOK_ALLOW can allow it)"
    assert "on this host" in str(guard.refusal(guard.parse("https://[::1]/x"), "127.0.0.1"))
