"""What goes to a receiver and comes back, apart from the client: that takes long to import, and many never need it."""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.builtin.webhooks.address_guard import Target


class Request(NamedTuple):
    """What is sent."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes | None


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None
    beginning: bytes


class NoAnswer(Exception):
    """There was none; the text says why."""


class Blocked(Exception):
    """The request may not go there; the text says why."""
