"""Requests and responses of webhooks, without the client, which is slow to import."""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.builtin.webhooks.address_guard import Target


class WebhookRequest(NamedTuple):
    """Request to a receiver."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes | None


class WebhookResponse(NamedTuple):
    """Response of a receiver."""

    status: int
    retry_after: str | None
    body_start: bytes
    complete: bool = True
    """False if the body is longer than `body_start`."""


class NoResponse(Exception):
    """The receiver did not respond; the text says why."""


class DestinationBlocked(Exception):
    """The address guard does not allow the destination; the text says why."""
