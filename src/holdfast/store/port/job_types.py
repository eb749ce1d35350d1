"""What the engine asks of a database about the types that workers handle. A part of `holdfast.store.port.store`."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.model.job_type import TypeMark, TypeRow
from holdfast.model.time import Duration


class Types(Protocol):
    """Types of jobs, as workers tell of them. `tenant` is '' for workers that serve everybody."""

    async def type_marks(self, tenant: str, limit: int) -> list[TypeMark]:
        """What is remembered for a tenant, by name, without what was told."""

    async def save_type(self, tenant: str, name: str, digest: str, about: bytes) -> None:
        """Remember this of a type, seen now; what was remembered before is replaced."""

    async def see_types(self, tenant: str, names: Sequence[str]) -> None:
        """Note that these were seen now."""

    async def forget_types(self, tenant: str, names: Sequence[str]) -> None:
        """Remember them no more."""

    async def types(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[TypeRow]:
        """By name: of a tenant and of everybody, the tenant's own where there are both; None: all that are told.

        Those behind the name and tenant `after`.
        """

    async def prune_types(self, keep: Duration) -> int:
        """Forget those that were not seen for so long; how many."""
