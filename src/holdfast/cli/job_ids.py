"""Job ids in arguments of commands, which may be shortened to an unambiguous prefix."""

import re
from collections.abc import Sequence
from uuid import UUID

from holdfast.errors import Invalid, NotFound
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient

MIN_DIGITS = 8
"""Digits of the shortest prefix: the ids of about a minute share them."""

MAX_CANDIDATES = 5
"""Jobs that the error for an ambiguous prefix lists."""

_DIGITS = 32
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+(-[0-9a-fA-F]+)*-?", re.ASCII)


async def resolve_job_id(client: AsyncClient, text: str) -> str:
    """Return the id of the only job whose id begins with `text`.

    A complete id is returned without a request. Text that cannot be a prefix is returned too: the service rejects it.

    Raises:
        Invalid: The prefix is too short, or several jobs have it.
        NotFound: No visible job has it.
    """
    digits = text.replace("-", "").lower()
    if not _HEXADECIMAL.fullmatch(text) or len(digits) > _DIGITS:
        return text
    if len(digits) == _DIGITS:
        return str(UUID(hex=digits))
    if len(digits) < MIN_DIGITS:
        raise Invalid(f"{text!r} is too short for a job id: give at least its first {MIN_DIGITS} digits")
    found = []
    async for job in client.pages(calls.jobs({"id_prefix": digits}, MAX_CANDIDATES + 1)):
        found.append(job.id)
        if len(found) > MAX_CANDIDATES:
            break
    if not found:
        raise NotFound(f"there is no job whose id begins with {text!r}")
    if len(found) > 1:
        more = " and others" if len(found) > MAX_CANDIDATES else ""
        raise Invalid(f"{text!r} is ambiguous: it could be {', '.join(found[:MAX_CANDIDATES])}{more}; give more digits")
    return found[0]


async def resolve_job_ids(client: AsyncClient, texts: Sequence[str]) -> list[str]:
    """Return the ids of these jobs, each once, in the order given; raises like `resolve_job_id`."""
    return list(dict.fromkeys([await resolve_job_id(client, text) for text in texts]))
