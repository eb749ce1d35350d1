"""Worker nodes: which processes stop together, and the actions an administrator may apply."""

from collections.abc import Iterable, Sequence

from holdfast.model.ids import WorkerId
from holdfast.model.time import Instant
from holdfast.model.worker import WorkerAction, WorkerRow


def node_of(worker: WorkerId, fleet: Iterable[WorkerRow]) -> list[WorkerRow]:
    """Return a worker and then the other processes of its node; empty if it is not registered.

    Node names are chosen by the workers, so two workers share a node only if they also have the same tenant.
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


def worker_actions(row: WorkerRow, at: Instant) -> Sequence[WorkerAction]:
    """Return the actions that an administrator may apply to a worker now."""
    return ["drain"] if row.expires_at > at and not row.draining else []
