"""Check of submitted payloads against the schemas that workers declared for their job types."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from holdfast import tasks
from holdfast.errors import HoldfastError, Invalid
from holdfast.model.job import JobSpec
from holdfast.model.job_type import ALL_TENANTS, MAX_DESCRIBED_TYPES
from holdfast.policy.payload_schema import PayloadFault, compile_schema, invalid_payload
from holdfast.store.port.store import Store, Tx

PayloadMode = Literal["refuse", "warn", "ignore"]
"""Treatment of payloads that do not match the schema of their type."""

REFRESH_INTERVAL_S = 5.0
"""Longest time for which a node uses an outdated schema."""

MAX_TENANTS = 1_000
"""Tenants whose schemas are cached."""

_MAX_WARNINGS = 1_000
_LARGE_BATCH_SIZE = 500
_PAGE_SIZE = 200
_LOG = logging.getLogger("holdfast.submit")


class _TenantSchemas(NamedTuple):
    """Schemas that a tenant sees."""

    read_at: float = float("-inf")
    digests: frozenset[tuple[str, str, str]] = frozenset()
    """Tenant, type and digest of each description."""
    schemas: dict[str, str] = {}  # noqa: RUF012 - a value, never changed


class PayloadSchemas:
    """Schemas of known job types by tenant, cached. Belongs to one event loop.

    One submission per tenant and interval reads whether descriptions have changed; all others use the cache.
    """

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.mode: PayloadMode = "refuse"
        self._store = store
        self._monotonic = monotonic
        self._tenants: OrderedDict[str, _TenantSchemas] = OrderedDict()
        self._warned: set[tuple[str, str, tuple[str, ...]]] = set()

    async def check(self, spec: JobSpec) -> None:
        """Raise `Invalid` if the payload does not match the schema of its type.

        With the mode `"warn"` a mismatch is logged instead.
        """
        if self.mode == "ignore":
            return
        schemas = await self._schemas(spec.tenant)
        if (fault := _fault(spec, schemas)) is not None:
            self._report(spec, fault)

    async def check_many(self, specs: Sequence[JobSpec | Invalid]) -> Sequence[JobSpec | Invalid]:
        """Return the specs, with an error in place of each that `check` would refuse."""
        if self.mode == "ignore":
            return specs
        tenants = {spec.tenant for spec in specs if isinstance(spec, JobSpec)}
        schemas = {tenant: await self._schemas(tenant) for tenant in tenants}
        if not any(schemas.values()):
            return specs
        find = partial(_faults, specs, schemas)
        faults = find() if len(specs) < _LARGE_BATCH_SIZE else await tasks.call_in_thread(find)
        checked = list(specs)
        for index, (spec, fault) in faults.items():
            try:
                self._report(spec, fault)
            except Invalid as error:
                checked[index] = error.with_traceback(None)
        return checked

    def _report(self, spec: JobSpec, fault: PayloadFault) -> None:
        error = invalid_payload(spec.type, fault)
        if self.mode == "refuse":
            raise error
        # A field that is wrong in one job is usually wrong in all of them: one line is enough.
        place = (spec.tenant, spec.type, fault.path)
        if place not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add(place)
            fields = {"tenant": spec.tenant, "job_type": spec.type, "pointer": error.pointer}
            _LOG.warning("accepted a payload that its handler will reject: %s", error, extra={"fields": fields})

    async def _schemas(self, tenant: str) -> dict[str, str]:
        """Return the schemas by type; read changes first if the cached ones are old."""
        cached = self._tenants.get(tenant)
        if cached is not None and self._monotonic() - cached.read_at < REFRESH_INTERVAL_S:
            return cached.schemas
        before = cached or _TenantSchemas()
        # Set at once, so that concurrent submissions do not read too. If the read fails, the next interval tries again.
        self._tenants[tenant] = before._replace(read_at=self._monotonic())
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > MAX_TENANTS:
            self._tenants.popitem(last=False)
        with suppress(HoldfastError):
            changed = await self._store.read(partial(_read_changes, tenant, before.digests))
            if changed is not None:
                before = self._tenants[tenant] = _TenantSchemas(self._monotonic(), *changed)
        return before.schemas


async def _read_changes(
    tenant: str, known: frozenset[tuple[str, str, str]], tx: Tx
) -> tuple[frozenset[tuple[str, str, str]], dict[str, str]] | None:
    """Return the digests and schemas that the tenant sees; None if no digest has changed."""
    own, shared = (
        await tx.type_marks(tenant, MAX_DESCRIBED_TYPES),
        await tx.type_marks(ALL_TENANTS, MAX_DESCRIBED_TYPES),
    )
    digests = frozenset((tenant, mark.type, mark.digest) for mark in own)
    digests |= {(ALL_TENANTS, mark.type, mark.digest) for mark in shared}
    if digests == known:
        return None
    schemas: dict[str, str] = {}
    after = ("", "")
    while True:
        page = await tx.types(tenant, after, _PAGE_SIZE)
        schemas |= {row.about.type: row.about.schema for row in page if row.about.schema is not None}
        if len(page) < _PAGE_SIZE:
            return digests, schemas
        after = (page[-1].about.type, page[-1].tenant)


def _fault(spec: JobSpec, schemas: dict[str, str]) -> PayloadFault | None:
    schema = schemas.get(spec.type)
    check = None if schema is None else compile_schema(schema)
    return None if check is None else check.fault(spec.payload)


def _faults(
    specs: Sequence[JobSpec | Invalid], schemas: dict[str, dict[str, str]]
) -> dict[int, tuple[JobSpec, PayloadFault]]:
    return {
        index: (spec, fault)
        for index, spec in enumerate(specs)
        if isinstance(spec, JobSpec) and (fault := _fault(spec, schemas[spec.tenant])) is not None
    }
