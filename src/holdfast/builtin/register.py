"""Registration of the built-in job types with a worker."""

from typing import Any

from holdfast.builtin.demo import demo
from holdfast.builtin.webhooks.address_guard import GuardRules
from holdfast.builtin.webhooks.handler import Webhook, WebhookRules
from holdfast.builtin.webhooks.ports import DeliveryState
from holdfast.config import Settings
from holdfast.policy.demo import TYPES as DEMO_TYPES
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments

QUEUE = "default"
"""Queue of submissions that name none."""


def register_builtin(registry: Registry, settings: Settings, deliveries: DeliveryState) -> list[str]:
    """Register the built-in types that the application does not define, and return their names.

    `webhook` is always available, `email` if a mail server is configured, `demo` in demo mode.
    """
    rules = WebhookRules(
        GuardRules.of(settings.webhook_allow, settings.webhook_ports, plain_http=settings.webhook_http),
        settings.webhook_timeout,
    )
    functions: dict[str, Any] = {"webhook": Webhook(rules, deliveries).webhook}
    queues: dict[str, str] = {}
    if settings.smtp_url is not None:
        from holdfast.builtin.email import Email, SmtpServer  # noqa: PLC0415 - most workers send no mail

        server = SmtpServer.parse(
            settings.smtp_url, settings.smtp_from, timeout=settings.smtp_timeout, allowed=settings.email_allow
        )
        functions["email"] = Email(server).email
    if settings.demo:
        functions |= dict.fromkeys(DEMO_TYPES, demo)
        queues = DEMO_TYPES
    added = [name for name in functions if registry.get(name) is None]
    for name in added:
        function = functions[name]
        registry.add(Handler(name, function, "async", Arguments(function, name), queue=queues.get(name, QUEUE)))
    return added
