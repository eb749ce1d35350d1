-- Column lists and expressions that many statements share; used as {name}.

-- columns: job
id, seq, status, fence, worker, tenant, queue, type, payload, priority, attempts, max_attempts, releases, generation,
cost, created_at, scheduled_at, started_at, timeout, deadline, retry, tags, concurrency_key, idempotency_key, attempt_log,
progress, slots

-- columns: past
-- Same as `job`, for a finished job.
id, seq, status, fence, worker, tenant, queue, type, payload, priority, attempts, max_attempts, releases, generation,
cost, created_at, scheduled_at, started_at, timeout, deadline, retry, tags, concurrency_key, idempotency_key, attempt_log,
progress, 0 AS slots

-- columns: ended
finished_at, result, reason, fingerprint

-- columns: finished
id, seq, created_at, scheduled_at, started_at, finished_at, worker, timeout, deadline, fence, cost, status, priority,
attempts, max_attempts, releases, generation, tenant, queue, type, concurrency_key, idempotency_key, payload, retry,
tags, attempt_log, progress, result, reason, fingerprint

-- columns: finishing
id, seq, created_at, scheduled_at, started_at, clock(), worker, timeout, deadline, fence, cost, becomes, priority,
attempts, max_attempts, releases, generation, tenant, queue, type, concurrency_key, idempotency_key, payload, retry,
tags, coalesce(log, attempt_log), progress, result, reason, fingerprint

-- columns: revived
id, created_at, scheduled_at, timeout, deadline, fence, cost, status, priority, max_attempts, generation, tenant, queue,
type, concurrency_key, idempotency_key, payload, retry, tags, attempt_log, progress

-- columns: reviving
-- Drops a deadline that has passed, because a replayed job is meant to run.
id, created_at, clock(), timeout, CASE WHEN deadline > clock() THEN deadline END, fence, cost,
CASE WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END, priority, max_attempts, next_generation, tenant,
queue, type, concurrency_key, idempotency_key, payload, retry, tags, attempt_log, progress

-- columns: visible_status
-- Public status of an unfinished job: a job that waits for its concurrency key is ready.
CASE WHEN status = {AWAITING_KEY} THEN {READY} ELSE status END
