-- name: api_keys
SELECT {api_key} FROM holdfast_api_keys
WHERE (:tenant::text IS NULL OR tenant = :tenant) AND (created_at < :at OR (created_at = :at AND id < :id))
ORDER BY created_at DESC, id DESC LIMIT :limit;
