"""Validation of submitted jobs. An error points to the field and says how to fix it."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.errors import HoldfastError, Invalid, InvalidBatch, PayloadTooLarge
from holdfast.model.bounds import (
    KEY_PATTERN,
    MAX_ATTEMPTS,
    MAX_COST,
    MAX_DURATION,
    MAX_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PAYLOAD_BYTES,
    MAX_PAYLOAD_DEPTH,
    MAX_PAYLOAD_KEYS,
    MAX_PRIORITY,
    MAX_RETRY_DELAYS,
    MAX_STRING_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    MIN_PRIORITY,
    NAME_PATTERN,
)
from holdfast.model.ids import JobId
from holdfast.model.job import JobSpec, NewJob, RetryRule, Unique
from holdfast.policy.dedupe import body_fingerprint, unique_key
from holdfast.policy.text import sanitize

_NAME = re.compile(NAME_PATTERN, re.ASCII)
_KEY = re.compile(KEY_PATTERN, re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ENCODE = msgspec.json.Encoder().encode


def build_job(spec: JobSpec, job_id: JobId, *, max_attempts: int, from_json: bool = False) -> NewJob:
    """Validate a submission and return the job to insert.

    Args:
        spec: The submission.
        job_id: Id of the new job.
        max_attempts: Default for submissions that do not set it.
        from_json: The payload was decoded from JSON, so it contains only JSON types and can be checked faster.

    Raises:
        Invalid: A field is invalid; `pointer` names it.
        PayloadTooLarge: The payload exceeds `MAX_PAYLOAD_BYTES`.
    """
    check_options(spec)
    attempts = max_attempts if spec.max_attempts is None else spec.max_attempts
    _check_int(attempts, 1, MAX_ATTEMPTS, "max_attempts")
    payload = encode_payload(spec.payload, from_json=from_json)
    fingerprint = body_fingerprint(spec) if spec.idempotency_key is not None else b""
    return NewJob(job_id, spec, payload, attempts, fingerprint, _unique(spec, payload))


def build_jobs(
    specs: Sequence[JobSpec | Invalid], new_id: Callable[[], JobId], *, max_attempts: int, from_json: bool = False
) -> list[NewJob]:
    """Validate a batch and return the jobs to insert.

    Raises `InvalidBatch`, which names every fault by index.

    A submission that could not be decoded is passed as its error. See `build_job` for the arguments.
    """
    jobs: list[NewJob] = []
    faults: dict[int, HoldfastError] = {}
    for index, spec in enumerate(specs):
        if isinstance(spec, Invalid):
            faults[index] = spec
            continue
        try:
            jobs.append(build_job(spec, new_id(), max_attempts=max_attempts, from_json=from_json))
        except Invalid as fault:
            faults[index] = fault
    if faults:
        raise InvalidBatch(faults)
    return jobs


def check_options(spec: JobSpec) -> None:
    """Validate everything but the payload; raises `Invalid`."""
    try:
        _check_names(spec.type, spec.queue, spec.tenant)
    except TypeError:  # unhashable, so the cache cannot look it up; check without the cache
        _check_names.__wrapped__(spec.type, spec.queue, spec.tenant)
    if spec.max_attempts is not None:
        _check_int(spec.max_attempts, 1, MAX_ATTEMPTS, "max_attempts")
    _check_int(spec.priority, MIN_PRIORITY, MAX_PRIORITY, "priority")
    _check_int(spec.cost, 1, MAX_COST, "cost")
    if spec.scheduled_at is not None and spec.delay is not None:
        raise Invalid("scheduled_at and delay are mutually exclusive: give one of them", pointer="/delay")
    if spec.delay is not None:
        _check_duration(spec.delay, "delay")
    if spec.timeout is not None:
        _check_duration(spec.timeout, "timeout", minimum=1)
    if spec.scheduled_at is not None:
        _check_instant(spec.scheduled_at, "scheduled_at")
    if spec.deadline is not None:
        _check_deadline(spec.deadline, spec.scheduled_at)
    if spec.retry is not None:
        check_retry(spec.retry)
    if spec.tags:
        _check_tags(spec.tags)
    if spec.concurrency_key is not None:
        _check_key(spec.concurrency_key, "concurrency_key")
    if spec.idempotency_key is not None:
        _check_key(spec.idempotency_key, "idempotency_key")


def _check_deadline(deadline: int, scheduled_at: int | None) -> None:
    _check_instant(deadline, "deadline")
    if scheduled_at is not None and deadline <= scheduled_at:
        raise Invalid(
            "deadline is not after scheduled_at: the job could never start; give a later one", pointer="/deadline"
        )


def encode_payload(payload: Any, *, from_json: bool = False) -> bytes:
    """Encode a payload as JSON; raises `Invalid` for values that JSON cannot represent exactly."""
    if from_json and (encoded_small := _encode_if_small(payload)) is not None:
        return encoded_small
    try:
        _check_json(payload, 1, [0])
    except _NotJson as fault:
        raise Invalid(fault.message, pointer=fault.pointer()) from None
    try:
        encoded = _ENCODE(payload)
    except (UnicodeEncodeError, OverflowError, ValueError) as error:
        raise Invalid(f"the payload cannot be encoded as JSON: {error}", pointer="/payload") from error
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise _too_large(len(encoded))
    return encoded


def _encode_if_small(payload: Any) -> bytes | None:
    """Encode a payload decoded from JSON if it is clearly within all limits; else None.

    Counts characters of the encoded text instead of walking the payload.
    """
    try:
        encoded = _ENCODE(payload)
    except (RecursionError, OverflowError, ValueError):
        return None
    within_limits = (
        len(encoded) <= MAX_STRING_LENGTH
        and encoded.count(b":") <= MAX_PAYLOAD_KEYS
        and encoded.count(b"[") + encoded.count(b"{") < MAX_PAYLOAD_DEPTH
        and b"\\u0000" not in encoded
    )
    return encoded if within_limits else None


def _too_large(size: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the payload has {size:,} bytes; at most {MAX_PAYLOAD_BYTES:,} are allowed: "
        "store the data elsewhere and pass a reference",
        pointer="/payload",
    )


def check_retry(rule: RetryRule) -> None:
    """Validate a retry rule; raises `Invalid`."""
    if type(rule.jitter) not in (int, float) or not 0 <= rule.jitter <= 1:
        raise Invalid(
            f"retry.jitter is {_abbreviate(rule.jitter)}; it must be between 0 and 1", pointer="/retry/jitter"
        )
    for span, field in ((rule.base, "retry/base"), (rule.cap, "retry/cap")):
        if span is None:
            raise Invalid(
                f"{field.replace('/', '.')} is missing: give seconds or a text such as '5m'", pointer=f"/{field}"
            )
        _check_duration(span, field)
    if rule.cap < rule.base:
        raise Invalid("retry.cap is below retry.base: raise it", pointer="/retry/cap")
    if len(rule.delays) > MAX_RETRY_DELAYS:
        raise Invalid(
            f"retry.delays has {len(rule.delays)} entries; at most {MAX_RETRY_DELAYS}", pointer="/retry/delays"
        )
    for index, delay in enumerate(rule.delays):
        _check_duration(delay, f"retry/delays/{index}")


_LATEST = 253_402_300_799_999_999  # the year 9999


def _check_name(value: object, field: str) -> None:
    if not isinstance(value, str) or not is_name(value):
        raise Invalid(
            f"{field} is {_abbreviate(value)}; it must be 1 to {MAX_NAME_LENGTH} letters, digits or _ . : / @ + -, "
            "beginning with a letter, a digit or _",
            pointer=f"/{field}",
        )


@lru_cache(4_096)  # very many jobs share few names; invalid names raise and are not cached
def _check_names(job_type: object, queue: object, tenant: object) -> None:
    _check_name(job_type, "type")
    _check_name(queue, "queue")
    _check_name(tenant, "tenant")


def is_name(value: str) -> bool:
    """Return True if this is a valid name of a type, queue or tenant."""
    return len(value) <= MAX_NAME_LENGTH and _is_name(value)


@lru_cache(4_096)  # very many jobs share few names
def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None


def _check_key(value: object, field: str) -> None:
    if value is not None and (not isinstance(value, str) or len(value) > MAX_KEY_LENGTH or not _KEY.fullmatch(value)):
        raise Invalid(
            f"{field} is {_abbreviate(value)}; it must be 1 to {MAX_KEY_LENGTH} printable ASCII characters",
            pointer=f"/{field}",
        )


def _check_int(value: object, minimum: int, maximum: int, field: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise Invalid(
            f"{field} is {_abbreviate(value)}; it must be an integer from {minimum} to {maximum}", pointer=f"/{field}"
        )


def _check_instant(value: object, field: str) -> None:
    if type(value) is not int or not 0 <= value <= _LATEST:
        raise Invalid(f"{field}: give a time from the year 1970 to the year 9999", pointer=f"/{field}")


def _check_duration(value: object, field: str, *, minimum: int = 0) -> None:
    if value is not None and (type(value) is not int or not minimum <= value <= MAX_DURATION):
        raise Invalid(
            f"{field.replace('/', '.')} must be {'more than 0' if minimum else '0 or more'} and at most 366 days",
            pointer=f"/{field}",
        )


def _check_tags(tags: Sequence[object]) -> None:
    if len(tags) > MAX_TAGS:
        raise Invalid(f"there are {len(tags)} tags; at most {MAX_TAGS} are allowed", pointer="/tags")
    for index, tag in enumerate(tags):
        if not isinstance(tag, str) or not 0 < len(tag) <= MAX_TAG_LENGTH or _CONTROL.search(tag):
            raise Invalid(
                f"tags[{index}] is {_abbreviate(tag)}; "
                f"a tag has 1 to {MAX_TAG_LENGTH} characters and no control characters",
                pointer=f"/tags/{index}",
            )


def _unique(spec: JobSpec, payload: bytes) -> Unique | None:
    if spec.unique is None:
        return None
    _check_duration(spec.unique.within, "unique/within")
    key = unique_key(spec.type, spec.queue, payload, spec.unique.by)
    return Unique(key, spec.unique.within, spec.unique.on_conflict)


class _NotJson(Exception):
    """Invalid value in a payload.

    Its path is collected while the stack unwinds, so that valid payloads do not pay for it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[str] = []

    def pointer(self) -> str:
        steps = [step.replace("~", "~0").replace("/", "~1") for step in reversed(self.path)]
        return sanitize("/".join(["/payload", *steps]), 500)


def _check_json(value: Any, depth: int, keys: list[int]) -> None:
    """Raise `_NotJson` for values that JSON would lose or change.

    `keys[0]` counts the object keys seen so far.
    """
    kind = type(value)
    if kind is str:
        _check_text(value)
        return
    if kind is int or kind is bool or value is None:
        return
    if kind is float:
        if not math.isfinite(value):
            raise _NotJson(f"{value} is not a JSON number")
        return
    if depth > MAX_PAYLOAD_DEPTH:
        raise _NotJson(f"the payload is nested deeper than {MAX_PAYLOAD_DEPTH} levels")
    if kind is dict:
        _check_keys(value, keys)
        items: Iterable[tuple[object, Any]] = value.items()
    elif kind is list or kind is tuple:
        items = enumerate(value)
    else:
        raise _NotJson(f"a {kind.__name__} is not JSON: convert it to strings, numbers, lists or objects")
    step: object = None
    try:
        for step, item in items:  # noqa: B007 - the handler below needs the step
            _check_json(item, depth + 1, keys)
    except _NotJson as fault:
        fault.path.append(str(step))
        raise


def _check_keys(value: dict[Any, Any], keys: list[int]) -> None:
    keys[0] += len(value)
    if keys[0] > MAX_PAYLOAD_KEYS:
        raise _NotJson(f"the payload has more than {MAX_PAYLOAD_KEYS:,} keys")
    for key in value:
        if type(key) is not str:
            raise _NotJson(f"the key {_abbreviate(key)} is not a string; keys of JSON objects must be strings")
        _check_text(key)


def _check_text(text: str) -> None:
    if len(text) > MAX_PAYLOAD_BYTES:
        raise _too_large(len(text))
    if len(text) > MAX_STRING_LENGTH:
        raise _NotJson(
            f"a string has {len(text):,} characters; at most {MAX_STRING_LENGTH:,} are allowed: "
            "pass a reference instead"
        )
    if "\0" in text:
        raise _NotJson("a string contains the character U+0000, which not all databases can store: remove it")


def _abbreviate(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
