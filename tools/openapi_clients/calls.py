"""Real calls through the client that openapi-python-client generates; `tools/openapi.py` runs it."""

from __future__ import annotations

import os

from holdfast_client import AuthenticatedClient
from holdfast_client.api.events import stream_events
from holdfast_client.api.jobs import cancel_job, get_job, list_jobs, submit_batch, submit_job
from holdfast_client.models import (
    CancelRequest,
    JobOut,
    JobStatus,
    Problem,
    ProblemCode,
    SubmitBatch,
    SubmitBatchJob,
    SubmitJob,
)

client = AuthenticatedClient(base_url=os.environ["HOLDFAST_API_URL"], token=os.environ["HOLDFAST_API_KEY"])

job = submit_job.sync(client=client, body=SubmitJob(type_="mail.send", payload={"to": "ada"}, delay="1h", priority=5))
assert isinstance(job, JobOut), job
assert (job.status, job.priority, job.created_at.tzinfo is not None) == (JobStatus.SCHEDULED, 5, True)

made = submit_batch.sync(
    client=client, body=SubmitBatch([SubmitBatchJob(type_="mail.send", delay=60) for _ in range(5)])
)
assert len(made.items) == 5

found, cursor = [], None
while True:
    page = list_jobs.sync(client=client, type_="mail.send", limit=2, **({} if cursor is None else {"cursor": cursor}))
    found += [each.id for each in page.items]
    cursor = page.next_cursor
    if cursor is None:
        break
assert len(found) == len(set(found)) == 6, found

cancelled = cancel_job.sync(job.id, client=client, body=CancelRequest(reason="not needed"))
assert (cancelled.status, cancelled.reason) == (JobStatus.CANCELLED, "not needed")

missing = get_job.sync("01981a52-7c3e-7000-8000-000000000000", client=client)
assert isinstance(missing, Problem)
assert (missing.status, missing.code) == (404, ProblemCode.NOT_FOUND)

request = stream_events._get_kwargs(job=str(made.items[0].id))  # noqa: SLF001 - the client has no streams
with client.get_httpx_client().stream(**request) as stream:
    assert stream.headers["content-type"].startswith("text/event-stream")
    cancel_job.sync(made.items[0].id, client=client, body=CancelRequest())
    assert any('"cancelled"' in line for line in stream.iter_lines() if line.startswith("data:"))
print("submit, batch, list, cancel, 404 and events: ok")
