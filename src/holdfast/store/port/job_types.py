"""Port for the job types that workers handle. Part of `holdfast.store.port.store`."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.model.job_type import TypeMark, TypeRow
from holdfast.model.time import Duration


class JobTypeRepository(Protocol):
    """Job types as reported by workers. `tenant` is '' for workers that serve all tenants."""

    async def type_marks(self, tenant: str, limit: int) -> list[TypeMark]:
        """Return the stored types of a tenant, by name, without their descriptions."""

    async def save_type(self, tenant: str, name: str, digest: str, about: bytes) -> None:
        """Insert or replace the description of a type, seen now."""

    async def mark_types_seen(self, tenant: str, names: Sequence[str]) -> None:
        """Mark these types as seen now."""

    async def delete_types(self, tenant: str, names: Sequence[str]) -> None:
        """Delete these types."""

    async def types(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[TypeRow]:
        """Return types by name, after the name and tenant `after`.

        For a tenant: its own and the shared types, its own where both exist. None: all types.
        """

    async def prune_types(self, keep: Duration) -> int:
        """Delete types not seen for `keep`; return how many."""
