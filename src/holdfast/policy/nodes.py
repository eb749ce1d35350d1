"""Which workers end together, and what may be asked of one."""

from collections.abc import Iterable, Sequence

from holdfast.model.ids import WorkerId
from holdfast.model.time import Instant
from holdfast.model.worker import WorkerAction, WorkerRow


def node_of(worker: WorkerId, fleet: Iterable[WorkerRow]) -> list[WorkerRow]:
    """A worker and, behind it, the other processes of its node; none when it is not in the fleet.

    A node is taken for the same only among workers of the same tenant: what they call it is their own word.
    """
    rows = list(fleet)
    named = next((row for row in rows if row.info.id == worker), None)
    if named is None:
        return []
    info = named.info
    others = [
        row
        for row in rows
        if row is not named and info.node and (row.info.node, row.info.tenant) == (info.node, info.tenant)
    ]
    return [named, *others]


def actions(row: WorkerRow, at: Instant) -> Sequence[WorkerAction]:
    """What an administrator may ask of a worker now."""
    return ["drain"] if row.expires_at > at and not row.draining else []
