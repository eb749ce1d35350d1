"""Errors of webhooks to internal names: they tell a tenant nothing about the answer of the name server."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.builtin.webhooks.address_guard import NOT_PUBLIC, AddressGuard
from holdfast.builtin.webhooks.client import WebhookClient
from holdfast.builtin.webhooks.handler import Webhook, WebhookRules
from holdfast.engine.engine import Engine
from holdfast.model.outcome import Failed
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments
from holdfast.worker.running.runner import Runner
from tests.unit.worker.conftest import a_job


@pytest.mark.parametrize("address", ["10.1.2.3", "127.0.0.1", "169.254.169.254", "fd00::1", "::ffff:10.1.2.3"])
def test_the_address_of_an_internal_name_is_not_shown(address: str) -> None:
    guard = AddressGuard()
    reasons = {guard.refusal(guard.parse("https://vault.internal/x"), each) for each in (address, "192.168.7.7")}
    assert reasons == {NOT_PUBLIC}


class InternalNames(AbstractResolver):
    """Internal name server: knows `vault.internal` and no other name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host != "vault.internal":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        flags = socket.AI_NUMERICHOST
        return [ResolveResult(hostname=host, host="10.1.2.3", port=port, family=socket.AF_INET, proto=0, flags=flags)]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_an_internal_name_fails_like_an_unknown_one(engine: Engine, scheme: str) -> None:
    """T11: text, traceback, retries and breaker are the same, so that a tenant cannot tell whether the name exists."""
    handler = Webhook(WebhookRules(), engine.deliveries, client=WebhookClient(AddressGuard(), resolver=InternalNames()))
    registry = Registry()
    registry.add(Handler("webhook", handler.webhook, "async", Arguments(handler.webhook, "webhook")))
    runner = Runner(registry, engine.attempts, threads=ThreadPoolExecutor(1))
    seen = []
    for name in ("vault.internal", "vaulx.internal"):
        job = a_job("webhook", {"url": f"{scheme}://{name}/x"}, tenant="acme")
        task = runner.call(job)
        outcome = await runner.run(job, task, runner.context(job, task, None))
        assert isinstance(outcome, Failed)
        seen.append(repr(outcome).replace("vaulx", "vault"))
    await handler.aclose()
    assert NOT_PUBLIC in seen[0]
    assert seen[0] == seen[1]


def test_the_reason_is_shown_for_an_address_that_the_payload_contains() -> None:
    guard = AddressGuard()
    reason = guard.refusal(guard.parse("https://10.1.2.3/x"), "10.1.2.3")
    assert reason == "10.1.2.3 is on a private network (HOLDFAST_WEBHOOK_ALLOW can allow it)"
    assert "on this host" in str(guard.refusal(guard.parse("https://[::1]/x"), "127.0.0.1"))
