-- name: add_tenant
-- IGNORE hides no other error here: every value fits its column.
INSERT IGNORE INTO holdfast_tenants (name, weight, rate, rate_window, backlog, queue_backlog, created_at)
VALUES (:name, :weight, :rate, :rate_window, :backlog, :queue_backlog, clock());
