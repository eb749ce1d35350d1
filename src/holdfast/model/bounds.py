"""Bounds of a submission, for its validation, the HTTP schemas and the client."""

from holdfast.model.time import days

MAX_BATCH_SIZE = 10_000
"""Jobs in one atomic batch."""

MAX_JOB_BYTES = 1024 * 1024
"""JSON of one job, alone or in a batch."""

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_PAYLOAD_DEPTH = 32
MAX_PAYLOAD_KEYS = 10_000
"""Keys of all objects in a payload together."""

MAX_STRING_LENGTH = 65_536
MAX_RESULT_BYTES = 256 * 1024
MIN_PRIORITY, MAX_PRIORITY = -1_000, 1_000
MAX_ATTEMPTS = 1_000
MAX_COST = 1_000_000
MAX_DURATION = days(366)
MAX_RETRY_DELAYS = 100
MAX_TAGS = 20
MAX_TAG_LENGTH = 100
MAX_KEY_LENGTH = 255
"""Length of an idempotency key, a concurrency key or a step key."""

KEY_PATTERN = r"[\x20-\x7e]+"
"""Idempotency and concurrency keys: printable ASCII."""

MAX_NAME_LENGTH = 128
"""Length of the name of a job type, a queue or a tenant."""

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*"
