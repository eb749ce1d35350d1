-- name: save_type
INSERT INTO holdfast_types (tenant, type, digest, about, seen_at) VALUES (:tenant, :type, :digest, :about, clock())
ON DUPLICATE KEY UPDATE digest = VALUES(digest), about = VALUES(about), seen_at = VALUES(seen_at);
