"""Parts of docs/reference/compatibility.md, generated from the tables of the source systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.compat.systems import CALLS
from holdfast.model.time import in_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.api.compat.calls import System

_INTRODUCTION = """\
With `HOLDFAST_COMPAT`, a node serves the calls of the systems that holdfast replaces, in their own words, next to
`/v1`. The value lists systems in order of precedence: `HOLDFAST_COMPAT=d,a` serves D and A, and answers the calls that
both have in the words of D. It is off by default. In demo mode (`holdfast up --demo`) all five are on;
`HOLDFAST_COMPAT=none` turns them off. [Coming from another system](../guide/coming-from-another-system.md) describes
how to move.

These calls are not part of `/openapi.json`, and new clients should use [`/v1`](http.md)."""

_REQUESTS = """\
All systems accept the same body: the fields of `POST /v1/jobs`, `idempotency_key`, and `due_at` as another name of
`scheduled_at`. The body is read as JSON whatever its `Content-Type`. `Idempotency-Key` works on every submission: the
first request creates the job (201), a repeat returns it (200). `payload.body` of an e-mail is another name of `text`.

An id may have hyphens or not. A list takes `status` (a word of the system), `type`, `limit` (up to 200), and `page`,
`offset` or `cursor`; `page` and `offset` reach the first 1,000 jobs, and a cursor, from `next_cursor` or the header
`Next-Cursor`, has no such limit. An administrator sees the jobs of the tenant `default`, with `tenant=NAME` those of
another tenant, and with `all` those of all tenants. Errors are the problem documents of `/v1`.

Numbers of finished jobs in `GET /stats` cover the last 90 days."""

_ACCESS = """\
| system | credentials |
|---|---|
| A, D, E | none from this machine; an API key or a token from others, or none if `HOLDFAST_COMPAT_TENANT` is set |
| B | a token (JWT); [Keys, tokens and tenants](../guide/access.md) describes its claims |
| C | an API key in `X-API-Key` or `Authorization: Bearer`, or a token |

A call without credentials comes from this machine if its address is a loopback address, `Host` is `localhost` or a
loopback address, `Origin` is absent, local or one of `HOLDFAST_CORS_ORIGINS`, and no header says that a proxy forwarded
it. It may submit, read and cancel jobs of the tenant `default`, and nothing else. **Behind a proxy on the same machine
that adds none of these headers, every client seems to be local**: do not name A, D or E there without
`HOLDFAST_COMPAT_TENANT`."""

_NOTES = {
    "a": "`GET /healthz` is a route of the API. `locked_by` and `locked_until` are the worker and its lease.",
    "b": "Without an idempotency key, a job with the type and payload of another one of the last 24 hours is that job.",
    "c": "`/api/demo/…` needs demo mode and an administrator. Statistics and workers have the fields of `/v1`.",
    "d": "A cancelled job counts as `failed`. The response of `GET /jobs` is a JSON array.",
    "e": "Without a type, the type of a task is its `payload.action`, or `task`.",
}


def parts() -> Iterator[str]:
    """Yield the parts of the page."""
    yield _INTRODUCTION
    yield "## Requests and lists"
    yield _REQUESTS
    yield "## Access"
    yield _ACCESS
    for system, calls in CALLS.values():
        yield f"## System {system.letter.upper()}"
        yield "\n".join(["| call | scope |", "|---|---|", *(f"| `{c.method} {c.path}` | {c.scope} |" for c in calls)])
        yield f"{_describe(system)} {_NOTES[system.letter]}"


def _describe(system: System) -> str:
    shape, submission = system.shape, system.submission
    words = ", ".join(f"`{word}`" for word in dict.fromkeys(shape.words))
    fields = ", ".join(f"`{name}`" for name in ("id", *shape.fields))
    text = f"States: {words}. A job has {fields}."
    if shape.hex_ids:
        text += " Ids have 32 digits without hyphens."
    if system.receipt is not None:
        text += f" A submission returns {', '.join(f'`{name}`' for name in ('id', *system.receipt))}."
    if submission.retry is not None:
        rule = submission.retry
        delays = [in_seconds(delay) for delay in rule.delays] or [in_seconds(rule.base) * 2**n for n in range(3)]
        shown = ", ".join(f"{delay:g}" for delay in delays) + (" …" if not rule.delays else "")
        text += f" By default, {submission.max_attempts} attempts, with pauses of {shown} s."
    return text
